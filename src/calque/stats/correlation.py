"""Do two figures go together? Pearson and Spearman with bootstrap intervals and permutation p-values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from calque.errors import BadInput, BadSetting
from calque.types import Doubles, Flags

#: The fewest points that have a correlation at all, and below which an interval is no more than a hint.
FEWEST, FEW = 3, 10
#: With so few points every order is tried, and the p-value is exact.
EXACT = 8

_CELLS = 1_000_000


@dataclass(frozen=True)
class Correlation:
    """A coefficient, its 95 % interval, and the chance of one as far from 0 between unrelated figures.

    `exact` says that every order was tried for that chance.
    """

    value: float
    low: float
    high: float
    p: float
    count: int
    exact: bool


def pearson(x: ArrayLike, y: ArrayLike, *, rounds: int = 10_000, seed: int = 0) -> Correlation:
    """How far points lie on a line. Shape: both (points,).

    >>> found = pearson([1, 2, 3, 4], [2, 4, 5, 9])
    >>> round(found.value, 3), round(found.p, 3), found.exact
    (0.965, 0.083, True)
    """
    return _correlation(*_points(x, y), _same, rounds, seed)


def spearman(x: ArrayLike, y: ArrayLike, *, rounds: int = 10_000, seed: int = 0) -> Correlation:
    """How far points rise together, by rank; equal numbers have their mean rank. Shape: both (points,)."""
    return _correlation(*_points(x, y), ranks, rounds, seed)


KINDS: dict[str, Callable[..., Correlation]] = {"pearson": pearson, "spearman": spearman}


def ranks(numbers: Doubles) -> Doubles:
    """The rank of each number in its row. Shape: (..., points) to the same."""
    from scipy.stats import rankdata

    found: Doubles = rankdata(numbers, axis=-1)
    return found


def _same(numbers: Doubles) -> Doubles:
    return numbers


def _points(x: ArrayLike, y: ArrayLike) -> tuple[Doubles, Doubles]:
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise BadInput(f"points have two numbers each, not {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise BadInput("points hold NaN or infinity")
    if len(a) < FEWEST:
        raise BadInput(f"a correlation needs {FEWEST} points at least, and there are {len(a)}")
    for numbers in (a, b):
        if _flat(numbers):
            raise BadInput(f"no correlation: all {len(a)} points have the same value {numbers[0]:.6g}")
    return a, b


def _correlation(
    x: Doubles, y: Doubles, scale: Callable[[Doubles], Doubles], rounds: int, seed: int
) -> Correlation:
    if rounds < 1:
        raise BadSetting(f"rounds is {rounds}", remedy="1 or more")
    value, rng = float(_coefficients(scale(x), scale(y))), np.random.default_rng(seed)
    drawn = np.concatenate(list(_resampled(x, y, scale, rounds, rng)))
    # A resample in which all points are equal says nothing.
    telling = drawn[np.isfinite(drawn)]
    low, high = np.quantile(telling, [0.025, 0.975]) if len(telling) else (-1.0, 1.0)
    exact = len(x) <= EXACT
    p = _exact(scale(x), scale(y), value) if exact else _sampled(scale(x), scale(y), value, rounds, rng)
    return Correlation(value, float(low), float(high), p, len(x), exact)


def _coefficients(x: Doubles, y: Doubles) -> Doubles:
    """Pearson's coefficient a row, NaN where a side does not vary. Shape: (..., points) twice to (...)."""
    flat = _flat(x) | _flat(y)
    x, y = (side - side.mean(-1, keepdims=True) for side in (x, y))
    under = np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Doubles = np.where(flat, np.nan, np.clip((x * y).sum(-1) / under, -1, 1))
    return found


def _flat(numbers: Doubles) -> Flags:
    """Whether a row has one value only, but for rounding. Shape: (..., points) to (...)."""
    flat: Flags = np.ptp(numbers, axis=-1) <= 1e-12 * np.abs(numbers).max(-1)
    return flat


def _chunks(count: int, rounds: int) -> Iterator[tuple[int, int]]:
    """Rounds in parts that fit in memory, each as a shape (rounds, points)."""
    chunk = max(1, _CELLS // count)
    return ((min(chunk, rounds - start), count) for start in range(0, rounds, chunk))


def _resampled(
    x: Doubles, y: Doubles, scale: Callable[[Doubles], Doubles], rounds: int, rng: np.random.Generator
) -> Iterator[Doubles]:
    for shape in _chunks(len(x), rounds):
        at = rng.integers(0, len(x), shape)
        yield _coefficients(scale(x[at]), scale(y[at]))


def _exact(x: Doubles, y: Doubles, value: float) -> float:
    orders = np.array(list(permutations(range(len(y)))))
    return float(_as_far(x, y[orders], value).mean())


def _sampled(x: Doubles, y: Doubles, value: float, rounds: int, rng: np.random.Generator) -> float:
    shuffled = (rng.permuted(np.broadcast_to(y, shape), axis=-1) for shape in _chunks(len(y), rounds))
    hits = sum(int(_as_far(x, rows, value).sum()) for rows in shuffled)
    return (1 + hits) / (1 + rounds)


def _as_far(x: Doubles, y: Doubles, value: float) -> Flags:
    """Which rows correlate at least as much, either way; sums in another order differ in the last digits."""
    found: Flags = np.abs(_coefficients(x, y)) >= abs(value) - 1e-9
    return found
