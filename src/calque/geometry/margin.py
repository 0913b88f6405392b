"""The ratio margin: a cosine set against how near other rows are (Artetxe and Schwenk 2019).

margin(x, y) = cos(x, y) / ((r_T(x) + r_S(y)) / 2), r the mean cosine to the nearest rows of the other side.
Rows in crowded places, to which everything is near, thus need a greater cosine to be called translations.
"""

from __future__ import annotations

import numpy as np
import torch

from calque.geometry.search import Search
from calque.types import Doubles

#: Radii below this count as this: a mean cosine of zero or less would turn the ratio upside down.
FLOOR = 0.01


class MarginSearch(Search):
    """Finds the candidates with the greatest cosine / (offset of the query + penalty).

    `best` must be told the least margin that k candidates reach. Offsets and penalties are half a radius.
    cosine / (offset + penalty) ≥ m is cosine − m · penalty ≥ m · offset, so that the bounds of groups serve
    here as well; below zero, where a penalty helps, the greatest penalty of all bounds what it can do.
    """

    def _weight(self, rows: torch.Tensor, least: torch.Tensor | None) -> torch.Tensor:
        assert least is not None
        return least.clamp(min=0)

    def _level(self, rows: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
        offset, most = self.offset[rows].float(), self.penalty.amax().float()
        return least * torch.where(least < 0, offset + most, offset)

    def _score(self, cosine: Doubles, row: torch.Tensor, candidate: torch.Tensor) -> Doubles:
        return np.asarray(cosine / (self.offset[row] + self.penalty[candidate]).numpy(), np.float64)


def halved(radius: Doubles) -> torch.Tensor:
    """Radii as offsets and penalties of a `MarginSearch`. Shape: (n,) to (n,)."""
    return torch.from_numpy(radius.clip(FLOOR) / 2)


def margins(cosine: Doubles, ours: Doubles, theirs: Doubles) -> Doubles:
    """Margins of pairs whose cosines and radii are known. Shape: all the same, or as they broadcast.

    >>> margins(np.array([0.9]), np.array([0.8]), np.array([0.7])).round(6).tolist()
    [1.2]
    """
    return np.asarray(cosine / ((ours.clip(FLOOR) + theirs.clip(FLOOR)) / 2), np.float64)
