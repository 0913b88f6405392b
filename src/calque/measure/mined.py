"""Mined pairs against gold ones: precision, recall and F1, as they were kept and at the best threshold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

from calque.geometry.mining import Mined
from calque.stats.intervals import bootstrap_ratios
from calque.stats.metrics import Cut, best_threshold
from calque.types import Flags, Longs, Result

METRICS = ("precision", "recall", "f1")


@dataclass(frozen=True)
class MinedScores:
    """Figures of the pairs that were kept and, as group ("threshold", "best"), at the best threshold."""

    results: list[Result]
    best: Cut


def score_mined(found: Mined, kept: int, gold: Longs, about: Result) -> MinedScores:
    """Score the first `kept` of all pairs found, best first. Shape: gold (pairs, 2), no pair twice.

    `about` says what is scored, without a figure.
    """
    both = np.concatenate([np.stack([found.source, found.target], 1), gold])
    _, number = np.unique(both, axis=0, return_inverse=True)
    ours, theirs = np.split(number.ravel(), [len(found)])
    right = np.isin(ours, theirs)
    best = best_threshold(found.score, right, len(gold))
    cuts = (kept, about), (best.kept, replace(about, group=("threshold", "best")))
    results = [one for cut, told in cuts for one in _figures(told, found.source[:cut], right[:cut], gold)]
    return MinedScores(results, best)


def _figures(about: Result, source: Longs, right: Flags, gold: Longs) -> Iterator[Result]:
    """Figures with intervals, source sentences resampled. Shape: source, right (pairs,).

    F1 is twice the right pairs, divided by all that were mined and all that are gold.
    """
    used, place = np.unique(np.concatenate([source, gold[:, 0]]), return_inverse=True)
    ours, theirs = np.split(place.ravel(), [len(source)])
    mined, true = (np.bincount(part, minlength=len(used)) for part in (ours, theirs))
    hits = np.bincount(ours, right, len(used))
    tops, bottoms = np.stack([hits, hits, 2 * hits]), np.stack([mined, true, mined + true])
    ends = bootstrap_ratios(tops, bottoms, seed=about.seed)
    for metric, top, bottom, end in zip(METRICS, tops.sum(1), bottoms.sum(1), ends, strict=True):
        yield replace(about, metric=metric, value=float(top / bottom), count=int(bottom), **asdict(end))
