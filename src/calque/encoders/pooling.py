"""Pieces to words: pooling of hidden states over spans, for a whole batch at once and differentiable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch

from calque.encoders.spans import ragged
from calque.errors import BadSetting
from calque.types import Longs, Pooling, TextBatch


@dataclass(frozen=True, eq=False)
class Bags:
    """Which pieces of a flattened batch make each vector; one piece each when `offsets` is None.

    Shape: index (pieces to read,), offsets (vectors,) into it.
    """

    index: torch.Tensor
    offsets: torch.Tensor | None = None


def bags(row: Longs, start: Longs, end: Longs, *, width: int, pooling: Pooling) -> Bags:
    """The pieces of spans in a batch whose rows are `width` long. Shape: row, start, end (n,).

    >>> bags(np.array([1]), np.array([0]), np.array([2]), width=5, pooling="mean").index.tolist()
    [5, 6]
    """
    if pooling == "first":
        return Bags(torch.from_numpy(row * width + start))
    if pooling == "last":
        return Bags(torch.from_numpy(row * width + end - 1))
    if pooling != "mean":
        raise BadSetting(f"unknown pooling {pooling!r}", remedy="known: " + ", ".join(get_args(Pooling)))
    count = end - start
    if (count == 1).all():
        return Bags(torch.from_numpy(row * width + start))
    index = ragged(row * width + start, count)[1]
    return Bags(torch.from_numpy(index), torch.from_numpy(np.cumsum(count) - count))


def pool(hidden: torch.Tensor, chosen: Bags) -> torch.Tensor:
    """Mean of each bag's pieces. Shape: (batch, pieces, d) to (vectors, d)."""
    flat = hidden.reshape(-1, hidden.shape[-1])
    index = chosen.index.to(flat.device)
    if chosen.offsets is None:
        return flat.index_select(0, index)
    offsets = chosen.offsets.to(flat.device)
    return torch.nn.functional.embedding_bag(index, flat, offsets, mode="mean")


def pool_words(hidden: torch.Tensor, batch: TextBatch, pooling: Pooling = "mean") -> torch.Tensor:
    """One vector a word of the batch, in its order. Shape: (batch, pieces, d) to (words present, d)."""
    return pool(hidden, bags(batch.row, batch.start, batch.end, width=batch.pieces.shape[1], pooling=pooling))
