"""Vectors that can be searched: refused before they become figures that look like findings."""

from __future__ import annotations

from typing import TypeAlias

import torch

from calque.errors import BadInput
from calque.geometry.neighbours import unit_rows
from calque.types import Floats

#: Unit vectors nearer than this in every dimension differ by rounding only.
_SAME = 1e-6
_PART = 4096

Vectors: TypeAlias = "Floats | torch.Tensor"


def check_vectors(vectors: Vectors, whose: str) -> None:
    """Refuse vectors that are not numbers, none at all, or all in one direction. Shape: (n, d)."""
    rows = torch.as_tensor(vectors)
    parts = torch.split(rows, _PART)
    if not all(torch.isfinite(part).all() for part in parts):
        raise BadInput(f"{whose}: vectors that are not numbers", remedy="check the encoder and its precision")
    if not any(part.any() for part in parts):
        raise BadInput(
            f"{whose}: all vectors are zero",
            remedy="check the language codes; static vectors need text with words that they know",
        )
    first = unit_rows(rows[:1])
    if not any((unit_rows(part) - first).abs().max() > _SAME for part in parts):
        raise BadInput(
            f"{whose}: all vectors are the same, so nothing can be told apart",
            remedy="another layer or encoder; a first special token tells nothing at layer 0",
        )


def check_sides(source: Vectors, target: Vectors, label: str, layer: int, languages: tuple[str, str]) -> None:
    """Refuse what one encoder gives at one layer where it cannot be searched. Shape: (n, d), (m, d)."""
    for language, side in zip(languages, (source, target), strict=True):
        check_vectors(side, f"encoder {label!r} at layer {layer}, {language}")
