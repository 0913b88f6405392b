"""Encoders of seven families with random weights, small enough to build in a test.

Training a tokenizer is not repeatable, so what was learned once from `TEXT` is kept in `pieces.json`.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder

TEXT = [
    "The cat sat on the mat and it's a dog's life, isn't it?",
    "Die Katze saß auf der Matte, und die Kinder lachten über den Straßenkehrer.",
    "Кошка сидела на ковре, а дети громко смеялись над дворником.",
    "猫 が 座った 東京 へ 行きます 私 は 学生 です",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9",
] * 8
SIZES = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}


def fast(backend: Tokenizer, single: str, specials: dict[str, str]) -> Any:
    """A fast tokenizer with these special tokens around a sentence."""
    ids = [(token, backend.token_to_id(token)) for token in single.split() if token != "$A"]
    if ids:
        backend.post_processor = processors.TemplateProcessing(single=single, special_tokens=ids)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **specials)


PIECES = json.loads(Path(__file__).with_name("pieces.json").read_text(encoding="utf-8"))


@cache
def wordpiece() -> Any:
    known = {piece: place for place, piece in enumerate(PIECES["wordpiece"])}
    backend = Tokenizer(models.WordPiece(known, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=False)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return fast(backend, "[CLS] $A [SEP]", names)


@cache
def unigram(single: str = "<s> $A </s>") -> Any:
    pieces = [(piece, score) for piece, score in PIECES["unigram"]]
    backend = Tokenizer(models.Unigram(pieces, unk_id=3))
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return fast(backend, single, names)


@cache
def byte_level(single: str, specials: tuple[str, ...], **names: str) -> Any:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        show_progress=False, vocab_size=340, special_tokens=list(specials), initial_alphabet=alphabet
    )
    backend.train_from_iterator(TEXT, trainer)
    return fast(backend, single, names)


def bert() -> tuple[Any, Any]:
    tokenizer = wordpiece()
    return transformers.BertModel(transformers.BertConfig(vocab_size=len(tokenizer), **SIZES)), tokenizer


def xlm_roberta() -> tuple[Any, Any]:
    tokenizer = unigram()
    config = transformers.XLMRobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=202, pad_token_id=1, **SIZES
    )
    return transformers.XLMRobertaModel(config), tokenizer


def deberta() -> tuple[Any, Any]:
    tokenizer = unigram()
    config = transformers.DebertaV2Config(
        vocab_size=len(tokenizer),
        relative_attention=True,
        position_buckets=16,
        pos_att_type=["p2c", "c2p"],
        **SIZES,
    )
    return transformers.DebertaV2Model(config), tokenizer


def modern_bert() -> tuple[Any, Any]:
    specials = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    tokenizer = byte_level(
        "[CLS] $A [SEP]", specials, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    )
    config = transformers.ModernBertConfig(
        vocab_size=len(tokenizer),
        pad_token_id=0,
        cls_token_id=2,
        sep_token_id=3,
        bos_token_id=2,
        eos_token_id=3,
        local_attention=16,
        **SIZES,
    )
    return transformers.ModernBertModel(config), tokenizer


def t5() -> tuple[Any, Any]:
    tokenizer = unigram("$A </s>")
    config = transformers.T5Config(
        vocab_size=len(tokenizer),
        d_model=24,
        d_kv=6,
        d_ff=48,
        num_layers=3,
        num_heads=4,
        pad_token_id=1,
        eos_token_id=2,
    )
    return transformers.T5Model(config), tokenizer


def llama() -> tuple[Any, Any]:
    tokenizer = byte_level("<s> $A", ("<s>", "</s>"), bos_token="<s>", eos_token="</s>")
    return transformers.LlamaModel(transformers.LlamaConfig(vocab_size=len(tokenizer), **SIZES)), tokenizer


def marian(folder: Path) -> tuple[Any, Any]:
    """Marian's tokenizer is a slow one: two SentencePiece models and a vocabulary."""
    lines = folder / "lines.txt"
    lines.write_text("\n".join(TEXT), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(lines),
        model_prefix=str(folder / "source"),
        vocab_size=110,
        minloglevel=2,
        hard_vocab_limit=False,
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.model"))
    pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    kept = ["</s>", "<unk>", *(piece for piece in pieces if piece not in ("<s>", "</s>", "<unk>")), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(kept)}))
    model = str(folder / "source.model")
    tokenizer = transformers.MarianTokenizer(model, model, str(folder / "vocab.json"))
    config = transformers.MarianConfig(
        vocab_size=len(tokenizer), d_model=24, encoder_layers=3, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=200,
        pad_token_id=len(tokenizer) - 1, eos_token_id=0, decoder_start_token_id=len(tokenizer) - 1,
    )  # fmt: skip
    return transformers.MarianModel(config), tokenizer


FAMILIES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "bert": bert,
    "xlm-roberta": xlm_roberta,
    "deberta-v2": deberta,
    "modernbert": modern_bert,
    "t5": t5,
    "llama": llama,
}


def build(family: str, **options: Any) -> HuggingFaceEncoder:
    """An encoder of this family; the same weights every time."""
    torch.manual_seed(3)
    model, tokenizer = FAMILIES[family]()
    return HuggingFaceEncoder.from_model(model, tokenizer, family, EncoderOptions(**options))
