"""Bootstrap intervals that resample whole sentences, because words of one sentence are not independent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calque.errors import BadInput, BadSetting
from calque.types import Doubles, Longs

_CELLS = 1_000_000


@dataclass(frozen=True)
class Interval:
    """The two ends of a percentile interval."""

    low: float
    high: float


def bootstrap_mean(
    values: ArrayLike, cluster: ArrayLike, *, rounds: int = 1000, seed: int = 0, level: float = 0.95
) -> Interval:
    """Interval of the mean over items, clusters resampled with replacement. Shape: both (items,).

    >>> bootstrap_mean([1, 1, 0, 0, 1], [0, 0, 1, 1, 2], seed=1)
    Interval(low=0.0, high=1.0)
    """
    items = np.asarray(values, np.float64)
    _, place = clusters(items, cluster)
    return bootstrap_ratio(
        np.bincount(place, items), np.bincount(place), rounds=rounds, seed=seed, level=level
    )


def bootstrap_ratio(
    numerator: ArrayLike, denominator: ArrayLike, *, rounds: int = 1000, seed: int = 0, level: float = 0.95
) -> Interval:
    """Interval of Σ numerator / Σ denominator. Shape: both (clusters,)."""
    return bootstrap_ratios([numerator], [denominator], rounds=rounds, seed=seed, level=level)[0]


def bootstrap_groups(
    values: ArrayLike,
    cluster: ArrayLike,
    groups: ArrayLike,
    *,
    rounds: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> list[Interval]:
    """Intervals of the mean of each group of items, one resampling serving all groups.

    Shape: values, cluster (items,); groups (items,) numbered from 0, a negative number is in no group.
    """
    items, group = np.asarray(values, np.float64), np.asarray(groups, np.int64)
    names, place = clusters(items, cluster)
    shown = group >= 0
    if not shown.any():
        raise BadInput("no group has any item")
    count = int(group.max()) + 1
    cell, shape = group[shown] * len(names) + place[shown], (count, len(names))
    sums = np.bincount(cell, items[shown], count * len(names)).reshape(shape)
    sizes = np.bincount(cell, minlength=count * len(names)).reshape(shape)
    return bootstrap_ratios(sums, sizes, rounds=rounds, seed=seed, level=level)


def bootstrap_ratios(
    numerators: Any, denominators: Any, *, rounds: int = 1000, seed: int = 0, level: float = 0.95
) -> list[Interval]:
    """Intervals of several ratios of sums over the same clusters. Shape: both (groups, clusters).

    A resample in which a group does not occur says nothing about it and is left out for that group.
    """
    top, bottom = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)
    if rounds < 1 or not 0 < level < 1:
        raise BadSetting(f"rounds must be at least 1 and level between 0 and 1, not {rounds} and {level}")
    if top.shape != bottom.shape or top.ndim != 2 or not top.size:
        raise BadInput(f"sums of shape {top.shape} and sizes of shape {bottom.shape} give no intervals")
    if (bottom.sum(1) <= 0).any():
        raise BadInput(f"group {int(np.argmin(bottom.sum(1)))} has no items")
    draws = [(weights @ top.T, weights @ bottom.T) for weights in resamples(top.shape[1], rounds, seed)]
    drawn, size = (np.concatenate(parts) for parts in zip(*draws, strict=True))
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    return [_percentiles(a[b > 0] / b[b > 0], ends) for a, b in zip(drawn.T, size.T, strict=True)]


def _percentiles(values: Doubles, ends: Doubles) -> Interval:
    low, high = np.quantile(values, ends)
    return Interval(float(low), float(high))


def resamples(count: int, rounds: int, seed: int) -> Iterator[Doubles]:
    """How often each of `count` clusters is drawn, in chunks of rounds. Shape: each (chunk, count)."""
    rng = np.random.default_rng(seed)
    chunk = max(1, _CELLS // count)
    for start in range(0, rounds, chunk):
        size = min(chunk, rounds - start)
        drawn = rng.integers(0, count, (size, count)) + np.arange(size)[:, None] * count
        yield np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count).astype(np.float64)


def clusters(values: NDArray[Any], cluster: ArrayLike) -> tuple[Longs, Longs]:
    """The distinct clusters, and each item's place among them. Shape: (clusters,), (items,)."""
    member = np.asarray(cluster, np.int64)
    if values.ndim != 1 or values.shape != member.shape:
        raise BadInput(f"{values.shape} values for {member.shape} clusters: each item has one of both")
    if not len(values):
        raise BadInput("no items to resample")
    if not np.isfinite(values).all():
        raise BadInput("item values hold NaN or infinity")
    names, place = np.unique(member, return_inverse=True)
    return names, place
