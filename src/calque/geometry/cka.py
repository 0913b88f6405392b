"""Linear CKA of paired vectors from sums over rows: d² numbers a pair of views, however many rows there are.

A view is one set of vectors of the same things, such as one layer of an encoder over some text. With n rows
a and b about their means, and squared lengths k = |a|² and l = |b|² (Kornblith et al. 2019):

    linear    HSIC = ‖Σ a bᵀ‖²
    debiased  HSIC = ‖Σ a bᵀ‖² − n/(n−2) Σ k l + Σk Σl / ((n−1)(n−2))
    CKA(x, y) = HSIC(x, y) / √(HSIC(x, x) HSIC(y, y))

The second is the estimator of Song et al. (2012) times n(n−3), which cancels: their sums over Gram matrices
without the diagonal, written out for vectors about their mean. What remains of each sum when one row is left
out follows from the sums and that row alone, so that a second pass gives the exact jackknife.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calque.errors import BadInput
from calque.types import Doubles

View = TypeVar("View", bound=Hashable)

#: The order of both figures wherever they stand in one array.
VARIANTS = ("linear", "debiased")
#: The fewest rows with which the debiased figure can still lose one.
FEWEST = 5

_FLAT, _NONE = 1e-10, 1e-9


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums over paired rows of two views about their means.

    Shape: product Σ a bᵀ (d, e), left Σ l a (d,), right Σ k b (e,).
    """

    count: int
    product: Doubles
    left: Doubles
    right: Doubles
    lengths: float
    spreads: tuple[float, float]

    def hsic(self) -> Doubles:
        """Linear and debiased, each up to a factor that cancels in CKA. Shape: (2,)."""
        squared = float(np.vdot(self.product, self.product))
        return _both(self.count, squared, self.lengths, *self.spreads)

    def without_each(self, a: Doubles, b: Doubles) -> Doubles:
        """`hsic` of all rows but one, for each of these rows. Shape: a (n, d), b (n, e) to (2, n)."""
        n = self.count
        less, grown = n - 1, n / (n - 1)
        k, l = np.einsum("nd,nd->n", a, a), np.einsum("nd,nd->n", b, b)  # noqa: E741 (as in the formula)
        along = np.einsum("ne,ne->n", a @ self.product, b)
        squared = np.vdot(self.product, self.product) - 2 * grown * along + grown**2 * k * l
        # The mean moves by a row's own share of the others, hence terms up to the fourth order in it.
        lengths = (
            self.lengths
            + 2 * (b @ self.right + a @ self.left) / less
            + (l * self.spreads[0] + k * self.spreads[1] + 4 * along) / less**2
            + (n / less**4 - grown**4) * k * l
        )
        return _both(less, squared, lengths, self.spreads[0] - grown * k, self.spreads[1] - grown * l)


class _Raw:
    """As in `PairSums`, about any two points."""

    def __init__(self, d: int, e: int) -> None:
        self.product, self.left, self.right, self.lengths = np.zeros((d, e)), np.zeros(d), np.zeros(e), 0.0

    def add(self, a: Doubles, b: Doubles, k: Doubles, l: Doubles) -> None:  # noqa: E741 (as in the formula)
        self.product += a.T @ b
        self.left += l @ a
        self.right += k @ b
        self.lengths += float(k @ l)


class ViewSums(Generic[View]):
    """Sums over rows of several views, gathered block by block in double precision.

    `pairs` are the views to compare; every view is also summed with itself. Sums are taken about the mean of
    the first block, so that vectors far from the origin lose nothing, and moved to the means in the end.

    >>> rows = np.array([[0.0, 1.0], [1.0, 3.0], [4.0, 1.0], [2.0, 2.0], [0.0, 5.0]])
    >>> sums = ViewSums([("x", "y")])
    >>> sums.add({"x": rows, "y": rows[:, ::-1] * 3 + 1})
    >>> sums.cka("x", "y").round(6).tolist()
    [1.0, 1.0]
    """

    def __init__(self, pairs: Iterable[tuple[View, View]]) -> None:
        asked = list(dict.fromkeys(pairs))
        self.views = tuple(dict.fromkeys(view for pair in asked for view in pair))
        self.pairs = tuple(dict.fromkeys([*((view, view) for view in self.views), *asked]))
        self.count = 0
        self._about: dict[View, Doubles] = {}
        self._sums: dict[View, Doubles] = {}
        self._spread: dict[View, float] = {}
        self._raw: dict[tuple[View, View], _Raw] = {}
        self._settled: dict[tuple[View, View], PairSums] = {}

    def add(self, views: Mapping[View, NDArray[Any]]) -> None:
        """Add rows: row k of every view is the same thing. Shape: each (n, d), n the same for all."""
        if not self.count:
            self._begin(views)
        rows = self._rows(views, self._about)
        sizes = {len(a) for a in rows.values()}
        if len(sizes) > 1:
            raise BadInput(f"views must have the same rows, not {' and '.join(map(str, sorted(sizes)))}")
        self.count += sizes.pop()
        lengths = {view: np.einsum("nd,nd->n", a, a) for view, a in rows.items()}
        for view, a in rows.items():
            self._sums[view] += a.sum(0)
            self._spread[view] += float(lengths[view].sum())
        for x, y in self.pairs:
            self._raw[x, y].add(rows[x], rows[y], lengths[x], lengths[y])
        self._settled.clear()

    def pair(self, x: View, y: View) -> PairSums:
        """What two views have in common, about their means."""
        if (x, y) not in self._settled:
            self._settled[x, y] = self._settle(x, y)
        return self._settled[x, y]

    def cka(self, x: View, y: View) -> Doubles:
        """Linear and debiased CKA. Shape: (2,)."""
        for view in (x, y):
            if reason := self.trouble(view):
                raise BadInput(reason)
        return _ratio(self.pair(x, y).hsic(), self.pair(x, x).hsic(), self.pair(y, y).hsic())

    def trouble(self, view: View) -> str:
        """Why there is no CKA with this view; nothing where there is one."""
        if self.count < FEWEST:
            return f"CKA needs {FEWEST} rows at least, and there are {self.count}"
        own = self.pair(view, view)
        mean = self._about[view] + self._sums[view] / self.count
        if own.spreads[0] <= _FLAT * self.count * float(mean @ mean):
            return "all vectors are the same"
        linear, debiased = own.hsic()
        return "all vectors are equally far from each other" if debiased <= _NONE * linear else ""

    def without_each(
        self, views: Mapping[View, NDArray[Any]], pairs: Iterable[tuple[View, View]]
    ) -> Iterator[tuple[tuple[View, View], Doubles]]:
        """CKA of these pairs over all rows but one, for each of these rows. Shape: (n, d) to (2, n) each.

        Where nothing varies without a row, nothing is alike without it: 0.
        """
        asked = list(pairs)
        means = {view: self._about[view] + self._sums[view] / self.count for view in self.views}
        rows = self._rows(views, {view: means[view] for pair in asked for view in pair})
        own = {view: self.pair(view, view).without_each(a, a) for view, a in rows.items()}
        full = {view: self.pair(view, view).hsic() for view in rows}
        for x, y in asked:
            left = [_varying(own[view], full[view]) for view in (x, y)]
            yield (x, y), _ratio(self.pair(x, y).without_each(rows[x], rows[y]), *left)

    def _begin(self, views: Mapping[View, NDArray[Any]]) -> None:
        for view in self.views:
            if views[view].ndim != 2 or not len(views[view]):
                raise BadInput(f"vectors must have a shape (n, d), not {views[view].shape}")
            self._about[view] = views[view].mean(0, dtype=np.float64)
            self._sums[view], self._spread[view] = np.zeros_like(self._about[view]), 0.0
        for x, y in self.pairs:
            self._raw[x, y] = _Raw(len(self._about[x]), len(self._about[y]))

    def _rows(self, views: Mapping[View, NDArray[Any]], about: Mapping[View, Doubles]) -> dict[View, Doubles]:
        rows = {view: np.asarray(views[view], np.float64) - middle for view, middle in about.items()}
        for a in rows.values():
            if not np.isfinite(a.sum()):
                raise BadInput(
                    "vectors hold NaN or infinity", remedy="check the encoder's output and its precision"
                )
        return rows

    def _settle(self, x: View, y: View) -> PairSums:
        """Sums about the means from sums about other points, from which the means are s/n and t/n away."""
        raw, n, s, t = self._raw[x, y], self.count, self._sums[x], self._sums[y]
        k, l = self._spread[x], self._spread[y]  # noqa: E741 (as in the formula)
        a, b = -s / n, -t / n
        aa, bb = float(a @ a), float(b @ b)
        to_left, to_right = raw.product @ b, a @ raw.product
        lengths = raw.lengths + 2 * float(raw.right @ b + raw.left @ a + 2 * a @ to_left)
        return PairSums(
            n,
            raw.product - np.outer(s, t / n),
            raw.left + l * a + 2 * to_left - 2 * n * bb * a,
            raw.right + k * b + 2 * to_right - 2 * n * aa * b,
            lengths + bb * k + aa * l - 3 * n * aa * bb,
            (k - n * aa, l - n * bb),
        )


def linear_cka(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Linear CKA of vectors in hand. Shape: (n, d), (n, e).

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(50, 4))
    >>> round(linear_cka(rows, 2 * rows[:, ::-1] + 1), 6)
    1.0
    """
    return float(_of(x, y)[0])


def debiased_cka(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Debiased CKA of vectors in hand: about 0 for unrelated ones, however few. Shape: (n, d), (n, e)."""
    return float(_of(x, y)[1])


def jackknife(figure: ArrayLike, without: Doubles, sizes: Doubles | None = None) -> Doubles:
    """A value a row, whose mean is the figure and whose spread is its uncertainty: jackknife pseudo-values.

    With `sizes`, a value a piece of so many rows, of whose `without` only the sum is known; one of no rows
    has none. Shape: figure (...), without (..., n): the figure without each row, sizes (n,), to (..., n).
    """
    held = np.ones(without.shape[-1]) if sizes is None else sizes
    n, used = held.sum(), held > 0
    mean = without.sum(-1, keepdims=True) / n
    sums = held * np.asarray(figure)[..., None] + (n - 1) * (held * mean - without)
    values: Doubles = sums[..., used] * (np.count_nonzero(used) / n)
    return values


def passes(
    pairs: Sequence[tuple[View, View]], sizes: Mapping[View, int], most: int
) -> Iterator[list[tuple[View, View]]]:
    """Pairs in parts whose products hold at most so many numbers (or one product): each part is one pass."""
    part: list[tuple[View, View]] = []
    held = 0
    for x, y in pairs:
        size = sizes[x] * sizes[y]
        if part and held + size > most:
            yield part
            part, held = [], 0
        part.append((x, y))
        held += size
    if part:
        yield part


def _of(x: NDArray[Any], y: NDArray[Any]) -> Doubles:
    sums = ViewSums([(0, 1)])
    sums.add({0: x, 1: y})
    return sums.cka(0, 1)


def _both(n: int, squared: Any, lengths: Any, k: Any, l: Any) -> Doubles:  # noqa: E741 (as in the formula)
    return np.stack([squared, squared - n / (n - 2) * lengths + k * l / ((n - 1) * (n - 2))])


def _ratio(both: Doubles, x: Doubles, y: Doubles) -> Doubles:
    """CKA of three HSICs, never beyond what it can be but for rounding. Shape: each (2, ...)."""
    under = np.sqrt(np.maximum(x, 0) * np.maximum(y, 0))
    found = np.divide(both, under, out=np.zeros_like(both), where=under > 0)
    clipped: Doubles = np.clip(found, -1.0, 1.0)
    return clipped


def _varying(without: Doubles, whole: Doubles) -> Doubles:
    """HSIC of a view with itself, 0 where only rounding is left of it. Shape: (2, n), (2,)."""
    bound = np.stack([np.full(without.shape[1], 1e-13 * whole[0]), _NONE * without[0]])
    return np.where(without > bound, without, 0.0)
