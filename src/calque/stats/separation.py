"""How well two kinds of pairs are told apart by one number each: AUC, overlap coefficient, d′.

Every item has both: how far it is from what belongs to it (`near`), and from something unrelated (`far`).
Each figure comes as one value an item whose mean is the figure, so that items can be resampled and compared
like any others: what an item adds to the figure, to first order (the infinitesimal jackknife).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calque.errors import BadInput
from calque.types import Doubles

_GRID = 1024


def auc(near: ArrayLike, far: ArrayLike) -> Doubles:
    """The chance that an unrelated pair is farther apart than a related one, ties counted half.

    0.5 is no separation, 1 a perfect one. Values as those of DeLong et al. (1988). Shape: (n,) twice to (n,).

    >>> float(auc([1.0, 2.0], [2.0, 3.0]).mean())
    0.875
    """
    x, y = _checked(near, far)
    farther, nearer = 1 - _below(x, y), _below(y, x)
    values: Doubles = farther + nearer - farther.mean()
    return values


def overlap(near: ArrayLike, far: ArrayLike) -> Doubles:
    """The area that lies under both densities: 1 when they are the same, 0 when they do not meet.

    Smoothed densities of the ranks among all numbers say where unrelated pairs are denser; the figure is the
    share of related pairs there, and of unrelated ones elsewhere. Any change of scale leaves it as it is.
    Shape: (n,) twice to (n,).
    """
    from scipy.ndimage import gaussian_filter1d

    x, y = _checked(near, far)
    n = len(x)
    cells = np.minimum(_ranks(np.concatenate([x, y])) * _GRID / (2 * n), _GRID - 1).astype(np.int64)
    more = np.bincount(cells[:n], minlength=_GRID) - np.bincount(cells[n:], minlength=_GRID)
    # Silverman's width for numbers spread evenly, which ranks are.
    width = 0.9 * _GRID / np.sqrt(12) * (2 * n) ** -0.2
    denser = gaussian_filter1d(more.astype(np.float64), width, mode="reflect") < 0
    inside: Doubles = denser[cells].astype(np.float64)
    return inside[:n] + 1 - inside[n:]


def d_prime(near: ArrayLike, far: ArrayLike) -> Doubles:
    """How many standard deviations the two means are apart: (μ_far − μ_near) / √((σ²_near + σ²_far) / 2).

    Shape: (n,) twice to (n,).
    """
    x, y = _checked(near, far)
    dx, dy = x - x.mean(), y - y.mean()
    variance = (dx @ dx + dy @ dy) / (2 * len(x))
    if not variance > 1e-24 * max(np.abs(x).max(), np.abs(y).max()) ** 2:
        raise BadInput("no d′: the distances of each kind are all the same")
    figure = (y.mean() - x.mean()) / np.sqrt(variance)
    widened = (dx**2 + dy**2) / 2 - variance
    values: Doubles = figure + (dy - dx) / np.sqrt(variance) - figure / (2 * variance) * widened
    return values


def share(part: ArrayLike, whole: ArrayLike) -> Doubles:
    """Σ part / Σ whole. Shape: (n,) twice to (n,).

    >>> float(share([1, 3], [4, 4]).mean())
    0.5
    """
    x, y = _checked(part, whole)
    if not y.sum() > 0:
        raise BadInput("no share of nothing")
    figure = x.sum() / y.sum()
    values: Doubles = figure + (x - figure * y) / y.mean()
    return values


def _below(numbers: Doubles, among: Doubles) -> Doubles:
    """The share of `among` below each number, those equal to it half. Shape: (n,), (m,) to (n,)."""
    held = np.sort(among)
    both = np.searchsorted(held, numbers, "left") + np.searchsorted(held, numbers, "right")
    values: Doubles = both / (2 * len(held))
    return values


def _ranks(numbers: Doubles) -> Doubles:
    """Place of each number among all, equal ones at the middle of their places. Shape: (n,) to (n,)."""
    return _below(numbers, numbers) * len(numbers)


def _checked(a: ArrayLike, b: ArrayLike) -> tuple[Doubles, Doubles]:
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise BadInput(f"items have two numbers each, not {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise BadInput("distances hold NaN or infinity")
    return x, y
