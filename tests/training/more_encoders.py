"""More families with random weights, for what depends on how a model is built inside."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tiny_encoders import FAMILIES, SIZES, marian, t5, unigram, wordpiece

from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.types import Sentences

TEXTS = (
    Sentences.of("en", [["The", "cat", "sat"], ["a", "dog's", "life", ",", "isn't", "it", "?"]]),
    Sentences.of("de", [["Die", "Katze", "saß"], ["Kinder", "lachten"]]),
)


def distilbert() -> tuple[Any, Any]:
    tokenizer = wordpiece()
    config = transformers.DistilBertConfig(
        vocab_size=len(tokenizer), dim=24, n_layers=3, n_heads=4, hidden_dim=48
    )
    return transformers.DistilBertModel(config), tokenizer


def mpnet() -> tuple[Any, Any]:
    tokenizer = unigram()
    config = transformers.MPNetConfig(vocab_size=len(tokenizer), max_position_embeddings=202, **SIZES)
    return transformers.MPNetModel(config), tokenizer


def albert() -> tuple[Any, Any]:
    tokenizer = unigram()
    config = transformers.AlbertConfig(vocab_size=len(tokenizer), embedding_size=16, **SIZES)
    return transformers.AlbertModel(config), tokenizer


def t5_encoder() -> tuple[Any, Any]:
    """Two modules that look pieces up in one matrix, and only one of them is run."""
    model, tokenizer = t5()
    return transformers.T5EncoderModel(model.config), tokenizer


BUILT: dict[str, Callable[[], tuple[Any, Any]]] = {
    **FAMILIES,
    "distilbert": distilbert,
    "mpnet": mpnet,
    "albert": albert,
    "t5-encoder": t5_encoder,
}


def build(family: str, folder: Path, **options: Any) -> HuggingFaceEncoder:
    """An encoder of this family; the same weights every time."""
    torch.manual_seed(3)
    model, tokenizer = marian(folder) if family == "marian" else BUILT[family]()
    return HuggingFaceEncoder.from_model(model, tokenizer, family, EncoderOptions(**options))


def train(
    encoder: HuggingFaceEncoder, steps: int = 3, optimiser: Any = torch.optim.AdamW, **options: Any
) -> None:
    """A few steps that pull the first words of two languages together, without dropout."""
    trained = [parameter for parameter in encoder.model.parameters() if parameter.requires_grad]
    descent = optimiser(trained, **{"lr": 0.01, "weight_decay": 0.0} | options)
    for _ in range(steps):
        ours, theirs = (encoder.states(encoder.batch(text), [1, encoder.depth]).hidden for text in TEXTS)
        loss = sum((a[:, 1] - b[:, 1]).square().sum() for a, b in zip(ours, theirs, strict=True))
        descent.zero_grad()
        loss.backward()
        descent.step()
