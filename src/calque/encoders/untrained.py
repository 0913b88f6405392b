"""The floor of a measure: an encoder as another is built, with weights drawn at random."""

from __future__ import annotations

import torch

from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.wrapped import Wrapped
from calque.types import Encoder


def untrained(encoder: Encoder, seed: int = 0) -> HuggingFaceEncoder | None:
    """The architecture, tokenizer and options of an encoder with random weights; None where there is none.

    Maps and caches around a Hugging Face encoder are left behind. The same seed gives the same weights.
    """
    inner: object = encoder
    while isinstance(inner, Wrapped):
        inner = inner.inner
    if not isinstance(inner, HuggingFaceEncoder):
        return None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = type(inner.model)(inner.model.config)
    name = f"{inner.name} with random weights"
    return HuggingFaceEncoder.from_model(model, inner.tokenizer, name, inner.options)
