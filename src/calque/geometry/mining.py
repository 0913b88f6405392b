"""Translations among the rows of two sides that are not aligned, and scores of pairs that are said to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from calque.geometry.margin import margins
from calque.geometry.neighbours import Neighbours, Similarity, two_way, unit_rows
from calque.geometry.search import cosines
from calque.recipe import Choice
from calque.types import Doubles, Flags, Longs


class Margin(Choice):
    """What a pair scores (Artetxe and Schwenk 2019).

    ratio: its cosine divided by the mean cosine to the nearest rows on both sides. distance: its cosine less
    that mean, which is half of CSLS. absolute: its cosine alone.
    """

    RATIO = "ratio"
    DISTANCE = "distance"
    ABSOLUTE = "absolute"


class Strategy(Choice):
    """Which pairs are taken.

    forward: the best target of every source row. backward: the best source row of every target. intersection:
    pairs that are both. max: pairs that are either, best first, every row in one pair only.
    """

    MAX = "max"
    INTERSECTION = "intersection"
    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True, eq=False)
class Mined:
    """Pairs of rows, best first. Shape: source, target, score (pairs,)."""

    source: Longs
    target: Longs
    score: Doubles

    def __len__(self) -> int:
        return len(self.score)

    def keep(self, rows: Flags | Longs | slice) -> Mined:
        """Some of the pairs."""
        return Mined(self.source[rows], self.target[rows], self.score[rows])


_SIMILARITY = {
    Margin.RATIO: Similarity.MARGIN,
    Margin.DISTANCE: Similarity.CSLS,
    Margin.ABSOLUTE: Similarity.COSINE,
}


def mine_pairs(
    source: NDArray[Any],
    target: NDArray[Any],
    *,
    margin: Margin = Margin.RATIO,
    strategy: Strategy = Strategy.MAX,
    k: int = 4,
    device: str = "cpu",
) -> Mined:
    """Rows of the two sides that are each other's best. Shape: source (n, d), target (m, d).

    `k` nearest rows make the mean that a margin sets a cosine against. The best is the best of all rows, not
    only of the k nearest.

    >>> mined = mine_pairs(np.eye(3), np.eye(3)[[2, 0]], margin=Margin.ABSOLUTE)
    >>> mined.source.tolist(), mined.target.tolist(), mined.score.tolist()
    ([0, 2], [1, 0], [1.0, 1.0])
    """
    best = two_way(source, target, similarity=_SIMILARITY[margin], radius_k=k, device=device)
    scale = 0.5 if margin is Margin.DISTANCE else 1.0
    forward = _pairs(best.forward, scale)
    turned = _pairs(best.backward, scale)
    backward = Mined(turned.target, turned.source, turned.score)
    if strategy is Strategy.FORWARD:
        return _ranked(forward)
    if strategy is Strategy.BACKWARD:
        return _ranked(backward)
    if strategy is Strategy.INTERSECTION:
        return _ranked(forward.keep(backward.source[forward.target] == forward.source))
    columns = zip(*((one.source, one.target, one.score) for one in (forward, backward)), strict=True)
    either = _ranked(Mined(*(np.concatenate(both) for both in columns)))
    return either.keep(_one_to_one(either, len(source), len(target)))


def _pairs(best: Neighbours, scale: float) -> Mined:
    return Mined(np.arange(len(best.index)), best.index[:, 0], best.score[:, 0].astype(np.float64) * scale)


def _ranked(pairs: Mined) -> Mined:
    return pairs.keep(np.lexsort((pairs.target, pairs.source, -pairs.score)))


def _one_to_one(pairs: Mined, n: int, m: int) -> Longs:
    """The pairs whose rows no better pair has taken."""
    free, open_, kept = [True] * n, [True] * m, []
    for place, (i, j) in enumerate(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)):
        if free[i] and open_[j]:
            free[i] = open_[j] = False
            kept.append(place)
    return np.array(kept, np.int64)


def pair_scores(
    source: NDArray[Any],
    target: NDArray[Any],
    rows: Longs,
    *,
    margin: Margin = Margin.RATIO,
    k: int = 4,
    device: str = "cpu",
) -> Doubles:
    """Scores of these pairs, set against all rows. Shape: source (n, d), target (m, d), rows (2, pairs) to
    (pairs,).

    >>> near = np.array([[1.0, 0.0], [0.8, 0.6]])
    >>> pair_scores(near, near, np.array([[0, 0], [0, 1]]), k=2).round(3).tolist()
    [1.111, 0.889]
    """
    x, y = unit_rows(source), unit_rows(target)
    cosine = cosines(x, y, *map(torch.from_numpy, rows))
    if margin is Margin.ABSOLUTE:
        return cosine
    near = two_way(x, y, similarity=Similarity.COSINE, k=k, device=device)
    ours, theirs = (
        way.score.astype(np.float64).mean(1)[at]
        for way, at in zip((near.forward, near.backward), rows, strict=True)
    )
    return margins(cosine, ours, theirs) if margin is Margin.RATIO else cosine - (ours + theirs) / 2
