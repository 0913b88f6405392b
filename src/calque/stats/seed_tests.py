"""How far a difference of mean scores moves with seeds and with items: variances, Student's test, exchanges.

A variance is a list of `Part`s, each with the degrees of freedom of its estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from calque.stats.ratios import ratio
from calque.types import Doubles, Longs

#: Scores that differ by less differ by rounding.
ROUNDING = 1e-12

_CELLS = 1_000_000

#: The same of the baseline and of the method. Shape: mostly (seeds, items) each.
Pair: TypeAlias = tuple[Doubles, Doubles]
#: What an answer is conditional on: it says nothing of other seeds, or of other items, than these.
Given: TypeAlias = Literal["", "these seeds", "these items", "these seeds and items"]


class Part(NamedTuple):
    """A variance and the degrees of freedom of its estimate."""

    variance: float
    freedom: float


class Answer(NamedTuple):
    """A 95 % interval, the chance of so much by luck, and the difference that is found four times in five."""

    low: float
    high: float
    p: float
    detectable: float | None


class Columns(NamedTuple):
    """What a language's items add to Σ top / Σ bottom. Shape: (seeds, items) each, cluster (items,)."""

    tops: Pair
    bottoms: Pair
    cluster: Longs

    def scores(self) -> Pair:
        """The score of every run. Shape: (seeds,) each."""
        a, b = (ratio(top.sum(1), bottom.sum(1)) for top, bottom in zip(self.tops, self.bottoms, strict=True))
        return a, b


# ---------------------------------------------------------------------------------------- pseudo-values


def pseudo_values(top: Doubles, bottom: Doubles) -> Doubles:
    """What each cluster says of Σ top / Σ bottom: the jackknife's pseudo-values, a row a seed.

    With m clusters: m · score − (m − 1) · score without the cluster. For a plain mean they are the values
    themselves. Shape: (seeds, clusters) twice to the same.

    >>> pseudo_values(np.array([[1.0, 0.0, 1.0]]), np.ones((1, 3))).round(9).tolist()
    [[1.0, 0.0, 1.0]]
    """
    count = top.shape[1]
    above, below = top.sum(1, keepdims=True), bottom.sum(1, keepdims=True)
    values: Doubles = count * ratio(above, below) - (count - 1) * ratio(above - top, below - bottom)
    return values


def strata(languages: Sequence[Columns], *, by_item: bool = False, parallel: bool = False) -> list[Pair]:
    """Pseudo-values of each language, or of their mean where a cluster is the same one in all of them.

    `by_item`: every item by itself, whatever its cluster. Shape: pairs of (seeds, clusters).
    """
    labels = [np.arange(len(one.cluster)) if by_item else one.cluster for one in languages]
    names = [np.unique(np.concatenate(labels))] * len(labels) if parallel else [np.unique(x) for x in labels]
    found = [
        _pseudo(one, np.searchsorted(known, label), len(known))
        for one, known, label in zip(languages, names, labels, strict=True)
    ]
    if not parallel:
        return found
    a, b = (np.mean([pair[arm] for pair in found], axis=0) for arm in (0, 1))
    return [(a, b)]


def _pseudo(one: Columns, place: Longs, count: int) -> Pair:
    sums = ((_sums(side, place, count) for side in arm) for arm in zip(one.tops, one.bottoms, strict=True))
    a, b = (pseudo_values(*arm) for arm in sums)
    return a, b


def _sums(values: Doubles, place: Longs, count: int) -> Doubles:
    """Sums over the items of a cluster. Shape: (seeds, items), (items,) to (seeds, count)."""
    return np.stack([np.bincount(place, row, count) for row in values])


# ------------------------------------------------------------------------------------------- variances


def uncertainty(
    scores: Pair, samples: Sequence[Pair], *, seeds: bool = True, items: bool = True, paired: bool = False
) -> tuple[Part | None, Given]:
    """The variance of the difference, from what is counted and occurs more than once; and what it leaves out.

    Shape: scores (seeds,) each, samples as of `strata`.
    """
    runs = [_arms(scores, paired), *(_arms(pair, paired) for pair in samples)]
    gains = [method.mean(0) - baseline.mean(0) for baseline, method in samples]
    by_seed = over_seeds(runs[0]) if seeds and min(map(len, runs[0])) > 1 else None
    by_item = over_items(gains) if items and min(map(len, gains)) > 1 else None
    if by_seed and by_item:
        both = [over_both(arm, len(samples)) for arms in runs[1:] for arm in arms]
        return combined(by_seed, by_item, both), ""
    if by_seed:
        return total(by_seed), "these items"
    return (total(by_item), "these seeds") if by_item else (None, "these seeds and items")


def _arms(pair: Pair, paired: bool) -> list[Doubles]:
    return [pair[1] - pair[0]] if paired else [*pair]


def over_seeds(scores: Sequence[Doubles]) -> list[Part]:
    """How far each arm's mean moves with its seeds. Shape: each (seeds,), two seeds at least."""
    return [Part(float(arm.var(ddof=1)) / len(arm), len(arm) - 1) for arm in scores]


def over_items(gains: Sequence[Doubles]) -> list[Part]:
    """How far a mean over languages moves with each one's items. Shape: each (clusters,), two at least."""
    share = 1 / len(gains) ** 2
    return [Part(share * float(gain.var(ddof=1)) / len(gain), len(gain) - 1) for gain in gains]


def over_both(arm: Doubles, languages: int = 1) -> Part:
    """What differs by seed and item at once, which both of the above hold. Shape: (seeds, clusters)."""
    left = arm - arm.mean(0) - arm.mean(1, keepdims=True) + arm.mean()
    freedom = (arm.shape[0] - 1) * (arm.shape[1] - 1)
    return Part(float((left**2).sum()) / freedom / arm.size / languages**2, freedom)


def total(parts: Sequence[Part]) -> Part:
    """The sum of independent parts, with Satterthwaite's degrees of freedom.

    >>> total([Part(1.0, 4), Part(1.0, 4)])
    Part(variance=2.0, freedom=8.0)
    """
    return _satterthwaite(sum(part.variance for part in parts), parts)


def combined(seeds: Sequence[Part], items: Sequence[Part], both: Sequence[Part]) -> Part:
    """Seeds and items together; what differs by both at once counts once, and nothing below zero.

    >>> combined([Part(3.0, 4)], [Part(2.0, 99)], [Part(1.0, 396)]).variance
    4.0
    """
    s, i, noise = (sum(part.variance for part in parts) for parts in (seeds, items, both))
    # The degrees of freedom stay those of all parts where one falls below zero: that too is an estimate.
    return _satterthwaite(noise + max(s - noise, 0.0) + max(i - noise, 0.0), [*seeds, *items, *both])


def _satterthwaite(variance: float, parts: Sequence[Part]) -> Part:
    under = sum(part.variance**2 / part.freedom for part in parts)
    return Part(variance, variance**2 / under if under else float("inf"))


# ----------------------------------------------------------------------------------------------- tests


def student(difference: float, part: Part, least: float) -> Answer:
    """Two-sided t-test of a difference whose variance was estimated.

    Where nothing varies there is no t, and nothing says what would have been found; then p is `least`, the
    chance that all move one way.
    """
    from scipy.special import stdtr, stdtrit

    error = part.variance**0.5
    if error < ROUNDING:
        return Answer(difference, difference, least if difference else 1.0, None)
    half, more = (float(stdtrit(part.freedom, share)) for share in (0.975, 0.8))
    p = 2 * float(stdtr(part.freedom, -abs(difference) / error))
    return Answer(difference - half * error, difference + half * error, p, (half + more) * error)


def randomised(languages: Sequence[Columns], rounds: int, seed: int) -> float:
    """Approximate randomisation: every prediction of every seed changes its arm by the toss of a coin.

    Tops and bottoms are summed over seeds and items; the mean over languages is compared.
    p = (1 + rounds at least as far apart) / (1 + rounds).
    """
    rng = np.random.default_rng(seed)
    drawn = np.mean([_exchanged(one, rounds, rng) for one in languages], axis=0)
    # The first is the difference that was seen.
    return float((np.abs(drawn) >= abs(drawn[0]) - ROUNDING).mean())


def _exchanged(one: Columns, rounds: int, rng: np.random.Generator) -> Doubles:
    """The difference as it was seen, and after each round. Shape: (1 + rounds,)."""
    top, bottom = (np.stack([side.ravel() for side in pair]) for pair in (one.tops, one.bottoms))
    moving = np.flatnonzero((top[0] != top[1]) | (bottom[0] != bottom[1]))
    gains = np.stack([(side[1] - side[0])[moving] for side in (top, bottom)], 1)
    moved = np.zeros((1 + rounds, 2))
    chunk = max(1, _CELLS // max(1, len(moving)))
    for start in range(1, 1 + rounds, chunk):
        size = min(chunk, 1 + rounds - start)
        moved[start : start + size] = rng.integers(0, 2, (size, len(moving)), np.int8) @ gains
    above, below = top.sum(1), bottom.sum(1)
    after = ratio(above[1] - moved[:, 0], below[1] - moved[:, 1])
    before = ratio(above[0] + moved[:, 0], below[0] + moved[:, 1])
    return after - before
