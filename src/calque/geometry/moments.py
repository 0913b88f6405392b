"""Sums over paired vectors, from which every closed-form map is solved. One pass, O(d²) memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calque.errors import BadInput
from calque.types import Doubles

Product: TypeAlias = Literal["source", "target", "cross"]

#: Every product of second moments; a rotation needs only "cross", centring needs none.
PRODUCTS: frozenset[Product] = frozenset(("source", "target", "cross"))

#: Numbers in a block; twice as many bytes of double precision would be new memory for every block.
_CELLS = 1_500_000


class PairMoments:
    """Count, means and second moments of paired vectors, gathered block by block in double precision.

    Products are held about the running means and blocks are joined by the update of Chan, Golub and LeVeque,
    so vectors far from the origin lose nothing to cancellation. `products` says which d×d products to
    gather, because each costs as much time as all the rest; variances are always gathered.

    Shape: source_mean, target_mean, source_variance, target_variance (d,).

    >>> pairs = PairMoments()
    >>> pairs.add(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 5.0]]))
    >>> pairs.count, pairs.target_mean.tolist(), pairs.cross().tolist(), pairs.cross(centred=True).tolist()
    (2, [0.0, 3.0], [[0.0, 0.0], [16.0, 0.0]], [[0.0, 0.0], [4.0, 0.0]])
    """

    def __init__(self, products: Iterable[Product] = PRODUCTS) -> None:
        self.products = frozenset(products)
        self.width = 0
        self.count = 0
        self._means: tuple[Doubles, Doubles] = (np.zeros(0), np.zeros(0))
        self._spreads: tuple[Doubles, Doubles] = (np.zeros(0), np.zeros(0))
        self._second: dict[Product, Doubles] = {name: np.zeros((0, 0)) for name in self.products}

    @property
    def source_mean(self) -> Doubles:
        return self._means[0]

    @property
    def target_mean(self) -> Doubles:
        return self._means[1]

    @property
    def source_variance(self) -> Doubles:
        return self._spreads[0] / max(self.count, 1)

    @property
    def target_variance(self) -> Doubles:
        return self._spreads[1] / max(self.count, 1)

    def source(self, *, centred: bool = False) -> Doubles:
        """SᵀS, about the origin or about the mean. Shape: (d, d)."""
        return self._product("source", 0, 0, centred)

    def target(self, *, centred: bool = False) -> Doubles:
        """TᵀT, about the origin or about the mean. Shape: (d, d)."""
        return self._product("target", 1, 1, centred)

    def cross(self, *, centred: bool = False) -> Doubles:
        """TᵀS, about the origin or about the means. Shape: (d, d)."""
        return self._product("cross", 1, 0, centred)

    def source_trace(self, *, centred: bool = False) -> float:
        """Trace of SᵀS, known without the product itself."""
        about_mean = float(self._spreads[0].sum())
        return about_mean if centred else about_mean + self.count * float(self._means[0] @ self._means[0])

    def _product(self, name: Product, left: int, right: int, centred: bool) -> Doubles:
        if name not in self.products:
            raise ValueError(f"the {name} product was not gathered: PairMoments(products=…) left it out")
        if centred:
            return self._second[name].copy()
        return self._second[name] + self.count * np.outer(self._means[left], self._means[right])

    def add(self, source: NDArray[Any], target: NDArray[Any]) -> None:
        """Add pairs: row k of one side belongs to row k of the other. Shape: both (n, d)."""
        if source.ndim != 2 or source.shape != target.shape:
            raise BadInput(
                f"paired vectors must have one shape (n, d), not {source.shape} and {target.shape}"
            )
        rows = max(1, _CELLS // max(1, source.shape[1]))
        for start in range(0, len(source), rows):
            self.merge(self._of(source[start : start + rows], target[start : start + rows]))

    def _of(self, source: NDArray[Any], target: NDArray[Any]) -> PairMoments:
        """Moments of one block by itself."""
        block = PairMoments(self.products)
        block.width = source.shape[1]
        block.count = len(source)
        block._means = (source.mean(0, dtype=np.float64), target.mean(0, dtype=np.float64))
        if not (np.isfinite(block._means[0]).all() and np.isfinite(block._means[1]).all()):
            raise BadInput(
                "vectors hold NaN or infinity", remedy="check the encoder's output and its precision"
            )
        s, t = source - block._means[0], target - block._means[1]
        block._spreads = (np.einsum("nd,nd->d", s, s), np.einsum("nd,nd->d", t, t))
        sides: dict[Product, tuple[Doubles, Doubles]] = {"source": (s, s), "target": (t, t), "cross": (t, s)}
        block._second = {name: a.T @ b for name, (a, b) in sides.items() if name in self.products}
        return block

    def merge(self, other: PairMoments) -> None:
        """Add all pairs of another set of moments."""
        if other.products != self.products:
            raise ValueError("moments with different products cannot be merged")
        if not other.count:
            return
        if other.width != (self.width or other.width):
            raise BadInput(f"vectors of {other.width} dimensions after vectors of {self.width}")
        if not self.count:
            self.width, self.count = other.width, other.count
            self._means, self._spreads = other._means, other._spreads
            self._second = {name: product.copy() for name, product in other._second.items()}
            return
        total = self.count + other.count
        steps = tuple(theirs - ours for ours, theirs in zip(self._means, other._means, strict=True))
        weight = self.count * other.count / total
        ends: dict[Product, tuple[int, int]] = {"source": (0, 0), "target": (1, 1), "cross": (1, 0)}
        for name, product in self._second.items():
            left, right = ends[name]
            product += other._second[name]
            product += np.outer(weight * steps[left], steps[right])
        self._means = (
            self._means[0] + steps[0] * (other.count / total),
            self._means[1] + steps[1] * (other.count / total),
        )
        self._spreads = (
            self._spreads[0] + other._spreads[0] + weight * steps[0] ** 2,
            self._spreads[1] + other._spreads[1] + weight * steps[1] ** 2,
        )
        self.count = total

    def swapped(self) -> PairMoments:
        """The same pairs with the roles of source and target exchanged."""
        turned: dict[Product, Product] = {"source": "target", "target": "source", "cross": "cross"}
        other = PairMoments(turned[name] for name in self.products)
        other.width = self.width
        other.count = self.count
        other._means, other._spreads = self._means[::-1], self._spreads[::-1]
        other._second = {turned[name]: product.T.copy() for name, product in self._second.items()}
        return other


def merged(parts: Sequence[PairMoments]) -> PairMoments:
    """The moments of all pairs of several sets together."""
    total = PairMoments(parts[0].products)
    for part in parts:
        total.merge(part)
    return total
