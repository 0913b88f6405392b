"""The products of matrices that a computation cannot do without: the limit of a machine and its library.

Rows are taken at their own lengths, without padding. Nothing is normalised, activated, dropped, looked up or
updated, and arrays are made beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True)
class Shape:
    """A stack of Transformer layers."""

    width: int
    inner: int
    heads: int
    depth: int

    @classmethod
    def of(cls, config: Any) -> Shape:
        return cls(
            config.hidden_size, config.intermediate_size, config.num_attention_heads, config.num_hidden_layers
        )


@dataclass(frozen=True)
class Back:
    """What a pass back computes: `frozen` lower layers have no gradients of weights.

    With `through`, something below them is trained, so that gradients pass through them all the same.
    """

    frozen: int = 0
    through: bool = True


class Products:
    """Products of one shape, on arrays that are made once."""

    def __init__(self, shape: Shape, most: int) -> None:
        """`most` is how many pieces go through at once."""
        self.shape = shape
        width, inner = shape.width, shape.inner
        self._x, self._y = torch.randn(most, width), torch.randn(most, inner)
        self._square, self._up = torch.randn(width, width), torch.randn(inner, width)

    def batch(self, lengths: NDArray[Any], back: Back | None = None) -> None:
        """A pass through all layers for rows of these lengths, and back where asked. Shape: (rows,)."""
        pieces, depth = int(lengths.sum()), self.shape.depth
        x, y = self._x[:pieces], self._y[:pieces]
        rows = self._rows(lengths)
        for _ in range(depth):
            self._forth(x, y)
            for q in rows:
                torch.bmm(torch.bmm(q, q.transpose(1, 2)), q)
        if back is None:
            return
        for layer in range(depth):
            if layer < back.frozen and not back.through:
                continue
            lowest = layer == back.frozen and not back.through
            self._back(x, y, weights=layer >= back.frozen, inputs=not lowest)
            for q in rows:
                # By value and by attention, then by query and by key.
                attention = torch.bmm(q, q.transpose(1, 2))
                for _ in range(3):
                    torch.bmm(attention, q)

    def _rows(self, lengths: NDArray[Any]) -> list[torch.Tensor]:
        """What attention reads, rows of one length together. Shape: each (rows · heads, length, part)."""
        heads, part = self.shape.heads, self.shape.width // self.shape.heads
        sizes, counts = np.unique(lengths, return_counts=True)
        return [
            self._x[: count * size].reshape(count * heads, size, part)
            for size, count in zip(sizes.tolist(), counts.tolist(), strict=True)
        ]

    def _forth(self, x: torch.Tensor, y: torch.Tensor) -> None:
        for _ in range(4):
            x @ self._square.T
        x @ self._up.T
        y @ self._up

    def _back(self, x: torch.Tensor, y: torch.Tensor, *, weights: bool, inputs: bool) -> None:
        """Without `inputs`, what the layer is given needs no gradient: queries, keys, values compute none."""
        for number in range(4):
            if inputs or number == 3:
                x @ self._square
            if weights:
                x.T @ x
        x @ self._up.T
        y @ self._up
        if weights:
            y.T @ x
            x.T @ y

    def all(self, batches: Iterable[NDArray[Any]], back: Back | None = None) -> None:
        """Batch after batch. Shape: each (rows,)."""
        for lengths in batches:
            self.batch(lengths, back)


def linear(rows: int, given: int, made: int, *, back: bool) -> None:
    """One linear layer on so many rows; back, gradients of weights and of what it is given."""
    x, weight = torch.ones(rows, given), torch.ones(made, given)
    y = x @ weight.T
    if back:
        y @ weight
        y.T @ x
