"""Did it help? Paired tests over the same items, with correction for many comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calque.errors import BadInput, BadSetting
from calque.stats.intervals import bootstrap_ratio, clusters
from calque.types import Doubles, Items, Longs

Test: TypeAlias = Literal["permutation", "t"]
Verdict: TypeAlias = Literal["helped", "hurt", "no evidence"]

_CELLS = 1_000_000


@dataclass(frozen=True)
class Comparison:
    """What `b` has more than `a` on the same items, an interval of it, and the chance of so much by luck."""

    difference: float
    low: float
    high: float
    p: float
    test: Test
    count: int


def paired(
    a: ArrayLike,
    b: ArrayLike,
    cluster: ArrayLike,
    *,
    test: Test = "permutation",
    rounds: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare `b` with the baseline `a`: difference = mean(b) − mean(a). Shape: all (items,).

    permutation: the two are exchanged within each cluster (sentence) at random, all its items together;
    p = (1 + rounds at least as far apart) / (1 + rounds), two-sided.
    t: Student's paired test on the clusters' means. The interval resamples clusters (1000 rounds, 95 %).
    """
    before, after = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if before.shape != after.shape:
        raise BadInput(f"{before.shape} items cannot be paired with {after.shape}", remedy="use match_items")
    if test not in ("permutation", "t"):
        raise BadSetting(f"unknown test {test!r}", remedy="known: permutation, t")
    if rounds < 1:
        raise BadSetting(f"rounds must be at least 1, not {rounds}")
    gain = after - before
    _, place = clusters(gain, cluster)
    sums: Doubles = np.bincount(place, gain).astype(np.float64, copy=False)
    sizes = np.bincount(place)
    interval = bootstrap_ratio(sums, sizes, seed=seed)
    p = _permutation(sums, rounds, seed) if test == "permutation" else _student(sums / sizes)
    return Comparison(float(gain.mean()), interval.low, interval.high, p, test, len(gain))


def _permutation(sums: Doubles, rounds: int, seed: int) -> float:
    moving = sums[sums != 0]
    if not len(moving):
        return 1.0
    rng, hits = np.random.default_rng(seed), 0
    # Sums in another order differ in the last digits; an equal one counts as a hit.
    bound = abs(moving.sum()) - 1e-9 * np.abs(moving).sum()
    chunk = max(1, _CELLS // len(moving))
    for start in range(0, rounds, chunk):
        flips = rng.integers(0, 2, (min(chunk, rounds - start), len(moving)), np.int8)
        hits += int((np.abs(2 * (flips @ moving) - moving.sum()) >= bound).sum())
    return (1 + hits) / (1 + rounds)


def _student(means: Doubles) -> float:
    from scipy.stats import ttest_1samp

    if len(means) < 2 or not means.any():
        return 1.0
    if np.ptp(means) == 0:
        return 0.0
    return float(ttest_1samp(means, 0.0).pvalue)


def match_items(a: Items, b: Items) -> tuple[Items, Items]:
    """The items that both hold, in one order."""
    names = sorted(a.keys)
    if names != sorted(b.keys):
        raise BadInput(f"items are named by {names} and by {sorted(b.keys)}: these are different measures")
    both = np.concatenate([np.stack([items.keys[name] for name in names], 1) for items in (a, b)])
    _, place = np.unique(both, axis=0, return_inverse=True)
    ours, theirs = np.split(place.ravel(), [len(a.cluster)])
    for rows in (ours, theirs):
        if len(np.unique(rows)) < len(rows):
            raise BadInput("two items have the same keys")
    _, left, right = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    if not len(left):
        raise BadInput("the two have no item in common", remedy="measure both on the same text")
    return _rows(a, left), _rows(b, right)


def _rows(items: Items, rows: Longs) -> Items:
    return replace(
        items,
        keys={name: column[rows] for name, column in items.keys.items()},
        cluster=items.cluster[rows],
        values={name: column[rows] for name, column in items.values.items()},
    )


def holm(ps: Sequence[float]) -> list[float]:
    """p-values corrected for how many there are (Holm 1979), in the order given.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(ps, np.float64)
    if ((values < 0) | (values > 1) | np.isnan(values)).any():
        raise BadInput("p-values lie between 0 and 1")
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(raised, 1)
    return [float(p) for p in corrected]


def verdict(comparison: Comparison, alpha: float = 0.05) -> Verdict:
    """In words: helped or hurt when p < alpha, otherwise no evidence."""
    if comparison.p >= alpha or comparison.difference == 0:
        return "no evidence"
    return "helped" if comparison.difference > 0 else "hurt"
