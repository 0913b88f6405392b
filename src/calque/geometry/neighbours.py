"""Nearest neighbours between two sets of vectors, by cosine, CSLS or margin, in both directions at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from calque.errors import BadInput, BadSetting
from calque.geometry.margin import MarginSearch, halved, margins
from calque.geometry.search import Bounds, Found, Search, bound_both_ways, each_part
from calque.recipe import Choice
from calque.types import Doubles, Floats, Longs

#: Scores are rounded to this, and then equal ones are ties; exact in single precision up to 4.
_TIE = 2.0**-22
_PART = 4096

#: Vectors to search for or among, one a row: as they come, or made ready.
Rows: TypeAlias = "NDArray[Any] | torch.Tensor | Distinct"


class Similarity(Choice):
    """What near means: cosine, or cosine corrected for crowded neighbourhoods.

    csls subtracts how near others are, margin divides by it.
    """

    COSINE = "cosine"
    CSLS = "csls"
    MARGIN = "margin"


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The best candidates of each query, best first. Shape: index, score (queries, k)."""

    index: Longs
    score: Floats


@dataclass(frozen=True, eq=False)
class TwoWay:
    """Neighbours of source rows among the target rows (forward), and the other way round (backward)."""

    forward: Neighbours
    backward: Neighbours


def two_way(
    source: Rows,
    target: Rows,
    *,
    similarity: Similarity = Similarity.CSLS,
    k: int = 1,
    radius_k: int = 10,
    queries: tuple[Longs | None, Longs | None] = (None, None),
    device: str = "cpu",
    block: int = 1024,
) -> TwoWay:
    """The k most similar rows of the other side, in both directions.

    Shape: source (n, d), target (m, d), of any length: rows are brought to unit length here (or before, in a
    `Distinct`, so that the vectors it was made of can be let go), and a row of zeros has cosine 0 with
    everything. `queries` are row numbers to search for on either side (None: all); candidates are always
    all rows. Fewer than k candidates give as many columns as there are.
    csls(x, y) = 2cos(x, y) − r_T(x) − r_S(y), r the mean cosine to the `radius_k` nearest rows of the other
    side (to all, when it has fewer); margin(x, y) = 2cos(x, y) / (r_T(x) + r_S(y)), where an r below 0.01
    counts as 0.01. Scores are multiples of 2⁻²² (2e-7, finer than single-precision vectors can tell); of
    equal candidates the lowest row number wins, whatever the `block`, which sets only how many rows are
    multiplied at once.

    >>> found = two_way(np.eye(3), np.eye(3)[[2, 0, 1]], radius_k=1)
    >>> found.forward.index.ravel().tolist(), found.backward.index.ravel().tolist()
    ([1, 2, 0], [2, 0, 1])
    """
    if k < 1 or radius_k < 1 or block < 1:
        raise BadSetting(f"k, radius_k and block must be at least 1, not {k}, {radius_k} and {block}")
    s, t = each_part(Distinct.of, [source, target])
    if s.rows.shape[1] != t.rows.shape[1]:
        raise BadInput(f"vectors of {s.rows.shape[1]} and of {t.rows.shape[1]} dimensions cannot be compared")
    ways = _Way(s, t, queries[0]), _Way(t, s, queries[1])
    bounds = bound_both_ways(s.rows, t.rows, device=device, block=block)
    if similarity is Similarity.COSINE:
        forward, backward = (_by_cosine(way, bound, k) for way, bound in zip(ways, bounds, strict=True))
    else:
        forward, backward = _by_radii(ways, bounds, k, radius_k, similarity)
    return TwoWay(forward, backward)


@dataclass(frozen=True, eq=False)
class Distinct:
    """Rows at unit length, equal ones only once, in the order of their first occurrence.

    Equal rows (the same word, in static vectors) would tie with each other; held once, they cannot.
    Shape: rows (u, d); which (n,) the distinct row of each row; count (u,); copies (n,) row numbers by
    distinct row, those of row i from start[i] on.
    """

    rows: torch.Tensor
    which: Longs
    count: Longs
    start: Longs
    copies: Longs

    @classmethod
    def of(cls, given: Rows) -> Distinct:
        if isinstance(given, Distinct):
            return given
        rows = unit_rows(given)
        first, which = _first_copies(rows.numpy())
        distinct = rows if len(first) == len(rows) else rows[torch.from_numpy(first)]
        count = np.bincount(which)
        return cls(distinct, which, count, np.cumsum(count) - count, np.argsort(which, kind="stable"))

    def __len__(self) -> int:
        return len(self.which)

    def spread(self, found: Found, k: int) -> Neighbours:
        """Every copy of each distinct row found, in order of score and row number; the first k of them."""
        score = (np.round(found.score / _TIE) * _TIE).astype(np.float32)
        if len(self.count) == len(self):
            return Neighbours(found.index[:, :k], score[:, :k])
        copy = np.arange(min(k, int(self.count.max())))
        there = copy < self.count[found.index][..., None]
        place = np.where(there, self.start[found.index][..., None] + copy, 0)
        flat = len(score), score.shape[1] * len(copy)
        index = np.where(there, self.copies[place], len(self)).reshape(flat)
        scores = np.where(there, score[..., None], -np.inf).reshape(flat)
        order = np.lexsort((index, -scores), axis=-1)[:, :k]
        return Neighbours(np.take_along_axis(index, order, 1), np.take_along_axis(scores, order, 1))


def _first_copies(rows: Floats) -> tuple[Longs, Longs]:
    """Where each distinct row first occurs, and which of them each row is. Shape: (u,), (n,)."""
    bits = rows.view(np.uint32)
    weights = np.random.default_rng(0).integers(0, 2**63, bits.shape[1], np.uint64)
    # In parts: the product makes 64-bit numbers of what it is given.
    mixed = np.concatenate([bits[start : start + _PART] @ weights for start in range(0, len(bits), _PART)])
    if len(np.unique(mixed)) == len(rows):
        return np.arange(len(rows)), np.arange(len(rows))
    whole = bits.view(np.dtype((np.void, bits.itemsize * bits.shape[1]))).ravel()
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[which.ravel()]


def unit_rows(given: NDArray[Any] | torch.Tensor) -> torch.Tensor:
    """Rows at unit length in single precision; rows of zeros stay. Shape: (n, d) to (n, d)."""
    rows = torch.as_tensor(given).to("cpu", torch.float32)
    if rows.ndim != 2 or not rows.numel():
        raise BadInput(f"no vectors to search among: shape {tuple(rows.shape)}, not (n, d)")
    norm = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    if not torch.isfinite(norm).all():
        raise BadInput("vectors hold NaN or infinity", remedy="check the encoder's output and its precision")
    # Adding zero turns -0 into 0, so that equal rows are equal bytes.
    return (rows / torch.where(norm > 0, norm, 1)).add_(0.0).contiguous()


@dataclass(frozen=True, eq=False)
class _Way:
    """One direction of a search: from which rows, among which, and for which row numbers."""

    x: Distinct
    y: Distinct
    queries: Longs | None

    def near(self, bounds: Bounds, rows: Longs, k: int, tie: float = _TIE) -> Found:
        """Nearest by cosine, at most as many as there are distinct rows."""
        none, nothing = torch.zeros(len(self.x.rows)), torch.zeros(len(self.y.rows))
        search = Search(self.x.rows, self.y.rows, bounds, 1.0, none.double(), nothing.double(), tie)
        return search.best(torch.from_numpy(rows), min(k, len(self.y.rows)))

    def asked(self) -> tuple[Longs, Longs]:
        """Distinct rows to search for, and which of them answers each query."""
        which = self.x.which if self.queries is None else self.x.which[np.asarray(self.queries, np.int64)]
        rows, answer = np.unique(which, return_inverse=True)
        return rows, answer.ravel()

    def answer(self, found: Found, answer: Longs, k: int) -> Neighbours:
        spread = self.y.spread(found, min(k, len(self.y)))
        return Neighbours(spread.index[answer], spread.score[answer])


def _by_cosine(way: _Way, bounds: Bounds, k: int) -> Neighbours:
    rows, answer = way.asked()
    return way.answer(way.near(bounds, rows, k), answer, k)


def _by_radii(
    ways: tuple[_Way, _Way], bounds: tuple[Bounds, Bounds], k: int, radius_k: int, similarity: Similarity
) -> list[Neighbours]:
    """Radii of rows of both sides from their nearest by cosine; then the search itself."""
    needed = [_needed(*both) for both in (ways, ways[::-1])]
    near = [
        way.near(bound, rows, max(k, radius_k), tie=2.0**-50)
        for way, bound, rows in zip(ways, bounds, needed, strict=True)
    ]
    radii = [_radii(*side, radius_k) for side in zip(ways, near, needed, strict=True)]
    found = []
    for place, (way, bound, close) in enumerate(zip(ways, bounds, near, strict=True)):
        ours, theirs = radii[place], radii[1 - place]
        (rows, answer), wanted = way.asked(), min(k, len(way.y.rows))
        # The nearest by cosine are a good guess, and any k candidates bound the k-th best.
        at = np.searchsorted(needed[place], rows)
        cosine, radius = close.score[at], theirs[close.index[at]]
        search: Search
        if similarity is Similarity.MARGIN:
            guess = margins(cosine, ours[rows, None], radius)
            search = MarginSearch(way.x.rows, way.y.rows, bound, 1.0, halved(ours), halved(theirs), _TIE)
        else:
            guess = 2 * cosine - radius
            offset, penalty = torch.from_numpy(ours), torch.from_numpy(theirs)
            search = Search(way.x.rows, way.y.rows, bound, 2.0, offset, penalty, _TIE)
        least = torch.from_numpy(-np.partition(-guess, wanted - 1, axis=1)[:, wanted - 1]).float()
        found.append(way.answer(search.best(torch.from_numpy(rows), wanted, least), answer, k))
    return found


def _needed(way: _Way, other: _Way) -> Longs:
    """Rows whose radius matters: all as candidates of the other way, or only those asked for. Shape: (n,)."""
    asks = other.queries is None or len(other.queries) > 0
    return np.arange(len(way.x.rows)) if asks else way.asked()[0]


def _radii(way: _Way, near: Found, rows: Longs, radius_k: int) -> Doubles:
    """Mean cosine of these rows to the `radius_k` nearest, counting every copy; 0 of others. Shape: (n,)."""
    wanted = min(radius_k, len(way.y))
    count = way.y.count[near.index]
    before = np.cumsum(count, axis=1) - count
    out = np.zeros(len(way.x.rows))
    out[rows] = (near.score * np.clip(wanted - before, 0, count)).sum(1) / wanted
    return out
