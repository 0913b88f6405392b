"""Tokenizers of one's own: one vocabulary over the words of all languages, or one for each.

Words come split and are taken as they are, case and all. The same text gives the same tokenizer, to the bit.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from calque.errors import BadInput, BadSetting
from calque.recipe import Choice
from calque.types import Flags, Sentences

PAD, UNKNOWN, FIRST, LAST, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIALS = [PAD, UNKNOWN, FIRST, LAST, MASK]
#: The part of a text that must be made of characters that have a piece.
_COVERED = 0.995


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
    """A fast tokenizer of at most `size` pieces, specials and the characters of the text among them.

    Every character has a piece, or, where they are too many (Chinese), the commonest have: those that are
    left out are at most one in 200 of the text, and unknown.
    """
    letters = _alphabet(texts, size, 2 if cutting is Cutting.WORDPIECE else 1)
    return _fast(_BACKENDS[cutting](_lines(texts, letters), size, letters), max_length)


def _lines(texts: Sequence[Sentences], letters: Sequence[str]) -> Iterator[str]:
    """Sentences to learn pieces from, without words that have other letters."""
    known = set(letters)
    return (" ".join(word for word in words if known.issuperset(word)) for text in texts for words in text)


def _alphabet(texts: Sequence[Sentences], size: int, each: int) -> list[str]:
    """The characters that have a piece, in order: all, or the commonest in half of the vocabulary.

    A character takes `each` pieces: in WordPiece one to begin a word and one inside.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        often = np.bincount(text.ids, minlength=len(text.vocabulary)).tolist()
        for word, count in zip(text.vocabulary, often, strict=True):
            for letter in word:
                counts[letter] += count
    if not counts:
        raise BadInput("no words to make a vocabulary of")
    least = len(SPECIALS) + each * len(counts) + 1
    if size >= least:
        return sorted(counts)
    ranked = sorted(counts, key=lambda letter: (-counts[letter], letter))
    room = max(0, size - len(SPECIALS)) // (2 * each)
    covered = np.cumsum([counts[letter] for letter in ranked]) / counts.total()
    if room < 1 or covered[room - 1] < _COVERED:
        enough = min(least, 2 * each * (int(np.searchsorted(covered, _COVERED)) + 1) + len(SPECIALS))
        raise BadSetting(
            f"a vocabulary of {size} pieces for {len(counts)} characters", remedy=f"at least {enough}"
        )
    return sorted(ranked[:room])


class Pieces(Choice):
    """How the pieces of several languages are numbered.

    joint: one vocabulary over all their words. union: one a language, and equal pieces have one number.
    apart: one a language, and only special tokens have a number in common. own: each language counts for
    itself, because its model has embeddings of its own.
    """

    JOINT = "joint"
    UNION = "union"
    APART = "apart"
    OWN = "own"


@dataclass(frozen=True, eq=False)
class Cut:
    """A language's tokenizer, and which numbers are pieces of its own, specials left out. Shape: own (n,)."""

    tokenizer: PreTrainedTokenizerFast
    own: Flags


def train_tokenizers(
    texts: Sequence[Sentences], size: int, cutting: Cutting, pieces: Pieces, *, max_length: int = 512
) -> list[Cut]:
    """A tokenizer for each text; not joint, each has an equal part of the `size` pieces.

    Tokenizers that share numbers hold a piece of another language under its language's name, so that it is
    never found in text.
    """
    if pieces is Pieces.JOINT:
        joint = train_tokenizer(texts, size, cutting, max_length=max_length)
        return [Cut(joint, _ordinary(len(joint)))] * len(texts)
    each = [
        train_tokenizer([text], size // len(texts), cutting, max_length=max_length).backend_tokenizer
        for text in texts
    ]
    if pieces is Pieces.OWN:
        return [Cut(_fast(one, max_length), _ordinary(one.get_vocab_size())) for one in each]
    numbers = _numbered([one.get_vocab() for one in each], shared=pieces is Pieces.UNION)
    names = _names(numbers, [text.language for text in texts])
    return [
        Cut(
            _fast(_renumbered(one, own, names), max_length),
            _ordinary(len(names)) & _marked_by(own, len(names)),
        )
        for one, own in zip(each, numbers, strict=True)
    ]


def _numbered(vocabularies: Sequence[Mapping[str, int]], *, shared: bool) -> list[dict[str, int]]:
    """The pieces of each language with numbers that count through all of them; specials come first.

    >>> _numbered([{"[PAD]": 0, "a": 5}, {"[PAD]": 0, "b": 5, "a": 6}], shared=True)
    [{'[PAD]': 0, 'a': 5}, {'[PAD]': 0, 'b': 6, 'a': 5}]
    """
    known: dict[str, int] = {}
    held, count = [], len(SPECIALS)
    for vocabulary in vocabularies:
        own = {piece: number for number, piece in enumerate(SPECIALS) if piece in vocabulary}
        for piece in sorted(set(vocabulary) - set(SPECIALS), key=vocabulary.__getitem__):
            if not shared or piece not in known:
                known[piece] = count
                count += 1
            own[piece] = known[piece]
        held.append(own)
    return held


def _names(numbers: Sequence[Mapping[str, int]], languages: Sequence[str]) -> dict[int, str]:
    """What a number is called where it is no piece of one's own: its first language and its piece."""
    names: dict[int, str] = {}
    for own, language in zip(numbers, languages, strict=True):
        for piece, number in own.items():
            names.setdefault(number, f"⟨{language}⟩{piece}")
    return names


def _renumbered(backend: Any, own: Mapping[str, int], names: Mapping[int, str]) -> Any:
    """The same tokenizer with other numbers for its pieces, and names for the numbers of other languages."""
    whole = json.loads(backend.to_str())
    model, mine = whole["model"], {number: piece for piece, number in own.items()}
    called = [mine.get(number, names[number]) for number in range(len(names))]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {piece: number for number, piece in enumerate(called)}
    else:
        scores = dict(model["vocab"])
        model["vocab"] = [[piece, scores.get(piece, min(scores.values()))] for piece in called]
    return Tokenizer.from_str(json.dumps(whole))


def _ordinary(size: int) -> Flags:
    return np.arange(size) >= len(SPECIALS)


def _marked_by(own: Mapping[str, int], size: int) -> Flags:
    return np.isin(np.arange(size), list(own.values()))


def _fast(backend: Any, max_length: int) -> PreTrainedTokenizerFast:
    """As Hugging Face has it, with special tokens around one text and two."""
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


def _wordpiece(lines: Iterator[str], size: int, letters: list[str]) -> Any:
    # The trainer numbers inner letters in the order in which it meets them, which is a hash table's, and ties
    # between merges are broken by number. Named as specials, they have fixed numbers. Only the vocabulary of
    # this trainer is kept, so that `##a` is no special of the tokenizer.
    inner = [f"##{letter}" for letter in letters]
    draft = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    draft.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=SPECIALS + inner, initial_alphabet=letters, show_progress=False
    )
    draft.train_from_iterator(lines, trainer)
    made = Tokenizer(models.WordPiece(draft.get_vocab(), unk_token=UNKNOWN))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.decoder = decoders.WordPiece()
    return made


def _bpe(lines: Iterator[str], size: int, letters: list[str]) -> Any:
    made = _marked(models.BPE(unk_token=UNKNOWN))
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIALS, initial_alphabet=letters, show_progress=False
    )
    made.train_from_iterator(lines, trainer)
    return made


def _unigram(lines: Iterator[str], size: int, letters: list[str]) -> Any:
    """Trained by sentencepiece on one thread, which is repeatable as the trainer of `tokenizers` is not."""
    held = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
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


_BACKENDS: dict[Cutting, Callable[[Iterator[str], int, list[str]], Any]] = {
    Cutting.WORDPIECE: _wordpiece,
    Cutting.BPE: _bpe,
    Cutting.UNIGRAM: _unigram,
}
