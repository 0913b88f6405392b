"""The floor of a measure: an encoder as another is built, with weights drawn at random."""

from __future__ import annotations

import torch

from calque.encoders.bylanguage import LanguageEncoders, PieceReader
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.tying import tie
from calque.encoders.wrapped import Wrapped
from calque.types import Encoder


def untrained(encoder: Encoder, seed: int = 0) -> PieceReader | None:
    """The architecture, tokenizer and options of an encoder with random weights; None where there is none.

    Maps and caches around a Hugging Face encoder are left behind. The same seed gives the same weights. Of
    encoders by language each has its own draw, and they share what they shared.
    """
    inner: object = encoder
    while isinstance(inner, Wrapped):
        inner = inner.inner
    if isinstance(inner, LanguageEncoders):
        return _each(inner, seed)
    return _drawn(inner, seed) if isinstance(inner, HuggingFaceEncoder) else None


def _drawn(encoder: HuggingFaceEncoder, seed: int) -> HuggingFaceEncoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = type(encoder.model)(encoder.model.config)
    name = f"{encoder.name} with random weights"
    return HuggingFaceEncoder.from_model(model, encoder.tokenizer, name, encoder.options)


def _each(encoders: LanguageEncoders, seed: int) -> LanguageEncoders:
    drawn = {code: _drawn(part, seed + i) for i, (code, part) in enumerate(encoders.parts.items())}
    if encoders.separate is not None:
        tie([part.model for part in drawn.values()], encoders.separate)
    name = f"{encoders.name} with random weights"
    return LanguageEncoders(drawn, separate=encoders.separate, name=name)
