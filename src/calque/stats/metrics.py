"""Scores from counts: counts a sentence first, so that sentences can be resampled; the score second."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calque.errors import BadInput


@dataclass(frozen=True)
class Scores:
    """Precision, recall and their harmonic mean, each 0 where nothing could be counted."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class AlignmentScores:
    """Word links against gold links; `aer` is the alignment error rate, lower is better."""

    precision: float
    recall: float
    f1: float
    aer: float


@dataclass(frozen=True, eq=False)
class AlignmentCounts:
    """What alignment scores are made of, a number for each sentence. Shape: each (sentences,) or ().

    `links` proposed |A|, `sure` gold |S|, and how many proposed links are sure |A∩S| and possible |A∩P|.
    """

    links: NDArray[Any]
    sure: NDArray[Any]
    links_sure: NDArray[Any]
    links_possible: NDArray[Any]

    def scores(self) -> AlignmentScores:
        """Scores over all sentences together.

        Precision |A∩P|/|A|, recall |A∩S|/|S|, AER = 1 − (|A∩S| + |A∩P|)/(|A| + |S|).
        """
        a, s, a_s, a_p = (
            float(np.sum(x)) for x in (self.links, self.sure, self.links_sure, self.links_possible)
        )
        precision, recall = _ratio(a_p, a), _ratio(a_s, s)
        return AlignmentScores(precision, recall, _harmonic(precision, recall), 1 - _ratio(a_s + a_p, a + s))


def alignment_counts(links: Set[Any], sure: Set[Any], possible: Set[Any]) -> AlignmentCounts:
    """Counts of one sentence, or of a corpus when links name their sentence. Sure links are possible too."""
    hits = len(links & sure)
    return AlignmentCounts(
        *(np.asarray(n) for n in (len(links), len(sure), hits, len(links & (possible | sure))))
    )


def alignment_scores(links: Set[Any], sure: Set[Any], possible: Set[Any]) -> AlignmentScores:
    """Scores of links against sure and possible gold links.

    >>> alignment_scores({(0, 0), (1, 2), (2, 1)}, {(0, 0), (1, 1)}, {(1, 2)})
    AlignmentScores(precision=0.6666666666666666, recall=0.5, f1=0.5714285714285715, aer=0.4)
    """
    return alignment_counts(links, sure, possible).scores()


def precision_recall_f1(true_positive: ArrayLike, predicted: ArrayLike, gold: ArrayLike) -> Scores:
    """Scores from counts, summed over sentences when arrays are given. Shape: each () or (sentences,).

    >>> precision_recall_f1([1, 1], [2, 2], [1, 1])
    Scores(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """
    hits, said, true = (float(np.sum(x)) for x in (true_positive, predicted, gold))
    precision, recall = _ratio(hits, said), _ratio(hits, true)
    return Scores(precision, recall, _harmonic(precision, recall))


@dataclass(frozen=True)
class Cut:
    """What is kept when scores of at least `threshold` are."""

    threshold: float
    kept: int
    scores: Scores


def best_threshold(score: ArrayLike, right: ArrayLike, gold: int) -> Cut:
    """Where to cut a ranking for the highest F1; of equals the highest threshold.

    Shape: score (items,) from the highest down, right (items,); `gold` is how many right ones there are in
    all. The threshold lies midway to the next lower score.

    >>> best_threshold([0.9, 0.75, 0.25, 0.2], [1, 1, 0, 0], 2)
    Cut(threshold=0.5, kept=2, scores=Scores(precision=1.0, recall=1.0, f1=1.0))
    """
    values, hits = np.asarray(score, np.float64), np.cumsum(np.asarray(right, np.int64))
    if not values.size:
        raise BadInput("no items to cut")
    ends = np.flatnonzero(np.append(np.diff(values) != 0, True))  # equal scores stay together
    best = int(ends[np.argmax(2 * hits[ends] / (ends + 1 + gold))])
    lower = values[min(best + 1, len(values) - 1)]
    found = precision_recall_f1(hits[best], best + 1, gold)
    return Cut(float((values[best] + lower) / 2), best + 1, found)


def accuracy(correct: ArrayLike) -> float:
    """The share of items that are correct (0 or 1, or anything between). Shape: (items,)."""
    values = np.asarray(correct, np.float64)
    if not values.size:
        raise BadInput("no items to score")
    return float(values.mean())


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _harmonic(a: float, b: float) -> float:
    return _ratio(2 * a * b, a + b)
