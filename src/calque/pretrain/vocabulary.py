"""A tokenizer of one's own: one vocabulary over the words of all languages.

Words come split and are taken as they are, case and all. The same text gives the same tokenizer, to the bit.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from calque.errors import BadInput, BadSetting
from calque.recipe import Choice
from calque.types import Sentences

PAD, UNKNOWN, FIRST, LAST, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIALS = [PAD, UNKNOWN, FIRST, LAST, MASK]


class Cutting(Choice):
    """How words are cut into pieces.

    wordpiece: as BERT, the pieces inside a word marked `##`. bpe: merges of frequent neighbours, the
    beginning of a word marked `▁`. unigram: the likeliest pieces of a unigram model, marked the same way.
    """

    WORDPIECE = "wordpiece"
    BPE = "bpe"
    UNIGRAM = "unigram"


def train_tokenizer(
    texts: Sequence[Sentences], size: int, cutting: Cutting = Cutting.WORDPIECE, *, max_length: int = 512
) -> PreTrainedTokenizerFast:
    """A fast tokenizer of at most `size` pieces, specials and every character of the text among them."""
    letters = sorted({letter for text in texts for word in text.vocabulary for letter in word})
    least = len(SPECIALS) + 2 * len(letters) + 1
    if not letters:
        raise BadInput("no words to make a vocabulary of")
    if size < least:
        raise BadSetting(
            f"a vocabulary of {size} pieces for {len(letters)} characters", remedy=f"at least {least}"
        )
    backend = _BACKENDS[cutting](texts, size, letters)
    ends = [(token, backend.token_to_id(token)) for token in (FIRST, LAST)]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{FIRST} $A {LAST}", pair=f"{FIRST} $A {LAST} $B:1 {LAST}:1", special_tokens=ends
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=max_length,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        pad_token=PAD,
        unk_token=UNKNOWN,
        cls_token=FIRST,
        sep_token=LAST,
        mask_token=MASK,
    )


def _lines(texts: Sequence[Sentences]) -> Iterator[str]:
    return (" ".join(words) for text in texts for words in text)


def _wordpiece(texts: Sequence[Sentences], size: int, letters: list[str]) -> Any:
    # The trainer numbers inner letters in the order in which it meets them, which is a hash table's, and ties
    # between merges are broken by number. Named as specials, they have fixed numbers. Only the vocabulary of
    # this trainer is kept, so that `##a` is no special of the tokenizer.
    inner = [f"##{letter}" for letter in letters]
    draft = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    draft.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=SPECIALS + inner, initial_alphabet=letters, show_progress=False
    )
    draft.train_from_iterator(_lines(texts), trainer)
    made = Tokenizer(models.WordPiece(draft.get_vocab(), unk_token=UNKNOWN))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.decoder = decoders.WordPiece()
    return made


def _bpe(texts: Sequence[Sentences], size: int, letters: list[str]) -> Any:
    made = _marked(models.BPE(unk_token=UNKNOWN))
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIALS, initial_alphabet=letters, show_progress=False
    )
    made.train_from_iterator(_lines(texts), trainer)
    return made


def _unigram(texts: Sequence[Sentences], size: int, letters: list[str]) -> Any:
    """Trained by sentencepiece on one thread, which is repeatable as the trainer of `tokenizers` is not."""
    held = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_lines(texts),
        model_writer=held,
        # Its own three specials are dropped below.
        vocab_size=size - len(SPECIALS) + 3,
        hard_vocab_limit=False,
        model_type="unigram",
        normalization_rule_name="identity",
        required_chars="".join(letters),
        character_coverage=1.0,
        num_threads=1,
        minloglevel=2,
    )
    trained = sentencepiece.SentencePieceProcessor(model_proto=held.getvalue())
    scored = [
        (trained.id_to_piece(i), trained.get_score(i))
        for i in range(trained.get_piece_size())
        if not (trained.is_control(i) or trained.is_unknown(i))
    ]
    specials = [(token, 0.0) for token in SPECIALS]
    return _marked(models.Unigram(specials + scored, unk_id=SPECIALS.index(UNKNOWN)))


def _marked(model: Any) -> Any:
    """A tokenizer that marks where words begin."""
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.add_special_tokens(SPECIALS)
    return made


_BACKENDS: dict[Cutting, Callable[[Sequence[Sentences], int, list[str]], Any]] = {
    Cutting.WORDPIECE: _wordpiece,
    Cutting.BPE: _bpe,
    Cutting.UNIGRAM: _unigram,
}
