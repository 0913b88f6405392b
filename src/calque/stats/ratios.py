"""Scores that are a ratio of sums over items, so that any of them can be resampled and tested alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calque.types import Doubles


@dataclass(frozen=True)
class Ratio:
    """Σ numerator / Σ denominator, both weighted sums of an item's columns.

    Accuracy is right / count; F1 is 2 hits / (predicted + gold). Where nothing could be counted it is 0.

    >>> f1 = Ratio("f1", {"hits": 2}, {"predicted": 1, "gold": 1})
    >>> float(f1.score({"hits": [1, 1], "predicted": [2, 2], "gold": [1, 1]}).round(3))
    0.667
    """

    name: str
    numerator: Mapping[str, float]
    denominator: Mapping[str, float]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of item statistics that it needs."""
        return tuple(dict.fromkeys([*self.numerator, *self.denominator]))

    def parts(self, values: Mapping[str, ArrayLike]) -> tuple[Doubles, Doubles]:
        """Every item's part of either sum. Shape: columns (..., items) to two of the same."""
        return _weighted(values, self.numerator), _weighted(values, self.denominator)

    def score(self, values: Mapping[str, ArrayLike]) -> Doubles:
        """Shape: columns (..., items) to (...)."""
        top, bottom = (side.sum(-1) for side in self.parts(values))
        return ratio(top, bottom)


def ratio(top: ArrayLike, bottom: ArrayLike) -> Doubles:
    """Division that gives 0 where there is nothing to divide by."""
    above, below = np.broadcast_arrays(np.asarray(top, np.float64), np.asarray(bottom, np.float64))
    return np.asarray(np.divide(above, below, out=np.zeros(above.shape), where=below != 0))


def _weighted(values: Mapping[str, ArrayLike], weights: Mapping[str, float]) -> Doubles:
    parts = [weight * np.asarray(values[name], np.float64) for name, weight in weights.items()]
    return np.asarray(np.sum(parts, axis=0), np.float64)
