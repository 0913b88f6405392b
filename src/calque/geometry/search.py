"""Exact nearest neighbours in both directions from one pass over the similarities.

The pass keeps only the greatest similarity of every row with each small *group* of rows of the other side.
These maxima bound what a group can hold, so a query looks only into the few groups that can still hold one of
its neighbours: by cosine, and then, with the radii known, by CSLS, without another pass. Nothing here is
approximate: upper bounds decide where to look, and what is found is scored in double precision.

Two things make the bounds cheap and tight; neither can change an answer. The pass runs on a *sketch*: the
leading principal coordinates and the length of the rest, whose product is never below the cosine (Cauchy and
Schwarz). And groups are made of neighbours, so that a query's own neighbours lie in few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch

from calque.progress import bar
from calque.types import Doubles, Longs

T = TypeVar("T")
R = TypeVar("R")

_SIZE = 32
_MAXIMA_BYTES = 200_000_000
_VALUES = 8_000_000
_QUERIES = 8192
_COLUMNS = 8192
_LANES = 32
#: Few enough rows that temporaries stay in the processor's cache.
_ROWS = 512
_SAMPLE = 1024
_ENERGY = 0.965
#: Leading coordinates by which rows are grouped.
_COARSE = 48
_FEW = 8
#: More than rounding to half precision, and than a single-precision product, can take from a cosine.
_HALF, _SINGLE = 6e-4, 1e-5
#: Penalty of a place in a group that nobody holds.
_NOBODY = 1e4


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows of one side in groups, and the order in which the pass goes through them.

    Shape: members (groups, size), -1 where a group is not full; `tile` rows, whole groups, make a tile.
    """

    members: torch.Tensor
    tile: int

    @property
    def size(self) -> int:
        return self.members.shape[1]

    @property
    def order(self) -> torch.Tensor:
        """Row at each place of the pass, -1 for none. Shape: (places,).

        Within a tile come the first members of all its groups, then all second members: so the maximum over
        groups is one over whole contiguous stretches.
        """
        return self.members.view(-1, self.tile // self.size, self.size).transpose(1, 2).reshape(-1)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Upper bounds of the cosine of each query with each group of candidates.

    Shape: maxima (places, groups) in half precision, place (queries,) where a query stands in `maxima`.
    """

    maxima: torch.Tensor
    place: torch.Tensor
    groups: Groups


@dataclass(frozen=True, eq=False)
class Found:
    """The best candidates of each query, best first, the lower row first where equal.

    Shape: index, score (queries, k).
    """

    index: Longs
    score: Doubles


# ------------------------------------------------------------------------------------------- the pass


def bound_both_ways(x: torch.Tensor, y: torch.Tensor, *, device: str, block: int) -> tuple[Bounds, Bounds]:
    """Bounds of rows of x among y, and of rows of y among x. Shape: x (n, d), y (m, d), of unit length."""
    size = _group_size(len(x), len(y))
    (axes,) = each_part(lambda sides: _Axes.of(*sides), [(x, y)])
    # Wide tiles of y are fast, up to what memory of the product they cost.
    sides = [(x, block), (y, max(block, min(32 * size, _COLUMNS)))]
    ours, theirs = each_part(lambda side: _group(side[0], axes, size, side[1]), sides)
    forward, backward = _maxima((x, y), axes, (ours, theirs), device)
    return Bounds(forward, _places(ours, len(x)), theirs), Bounds(backward, _places(theirs, len(y)), ours)


def _group_size(n: int, m: int) -> int:
    """As small as lets the maxima, two bytes each, fit into memory."""
    size = _SIZE
    while 4 * n * m / size > _MAXIMA_BYTES:
        size *= 2
    return size


@dataclass(frozen=True, eq=False)
class _Axes:
    """Principal axes of both sides, strongest first, and how many of them a sketch keeps (all: no sketch).

    Shape: axes (d, d).
    """

    axes: torch.Tensor
    kept: int

    @property
    def short(self) -> bool:
        """Whether a sketch is shorter than the rows themselves."""
        return self.kept < len(self.axes)

    @classmethod
    def of(cls, x: torch.Tensor, y: torch.Tensor) -> _Axes:
        rng = np.random.default_rng(0)
        sample = torch.cat([z[torch.from_numpy(rng.permutation(len(z))[:_SAMPLE])] for z in (x, y)])
        energy, axes = torch.linalg.eigh(sample.T @ sample)
        share = torch.cumsum(energy.flip(0), 0) / energy.sum().clamp(min=1e-9)
        # One less than a multiple of 16, so that rows with their last length are aligned in memory.
        kept, width = int((share < _ENERGY).sum()) // 16 * 16 + 15, x.shape[1]
        return cls(axes.flip(1), kept if kept < 0.9 * width else width)


def _group(x: torch.Tensor, axes: _Axes, size: int, block: int) -> Groups:
    """Rows of x in groups of neighbours, all full but the last."""
    tile = size * max(1, min(block // size, -(-len(x) // size)))
    members = torch.full((-(-len(x) // tile) * tile,), -1)
    members[: len(x)] = torch.cat(_halved(x @ axes.axes[:, :_COARSE], torch.arange(len(x)), size))
    return Groups(members.view(-1, size), tile)


def _halved(x: torch.Tensor, rows: torch.Tensor, size: int) -> list[torch.Tensor]:
    """Rows cut in two along their longest axis, again and again; a few groups are only put in order."""
    groups, ordered = -(-len(rows) // size), rows[_along_longest(x[rows])]
    if groups <= _FEW:
        return [ordered]
    cut = groups // 2 * size
    return _halved(x, ordered[:cut], size) + _halved(x, ordered[cut:], size)


def _along_longest(x: torch.Tensor) -> torch.Tensor:
    """The order of rows along their longest axis. Shape: (n, d) to (n,)."""
    x -= x.mean(0)
    axis = x[0]
    for _ in range(3):
        axis = torch.nn.functional.normalize((x @ axis) @ x, dim=0)
    return torch.argsort(x @ axis)


def _sketch(x: torch.Tensor, axes: _Axes, order: torch.Tensor) -> torch.Tensor:
    """Rows in the order of the pass, zeros where there is none. Shape: (n, d) to (places, kept + 1) or d."""
    out = torch.zeros((len(order), axes.kept + axes.short))
    for start in range(0, len(order), _ROWS):
        rows = order[start : start + _ROWS]
        part, place = x.index_select(0, rows.clamp(min=0)), out[start : start + _ROWS]
        part *= (rows >= 0)[:, None]
        if axes.short:
            part = part @ axes.axes
            place[:, -1] = part[:, axes.kept :].norm(dim=1)
        place[:, : axes.kept] = part[:, : axes.kept]
    return out


def _places(groups: Groups, count: int) -> torch.Tensor:
    order = groups.order
    (taken,) = torch.where(order >= 0)
    place = torch.empty(count, dtype=torch.int64)
    place[order[taken]] = taken
    return place


def _maxima(
    sides: tuple[torch.Tensor, torch.Tensor], axes: _Axes, groups: tuple[Groups, Groups], device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """The one pass. Shape: sides (n, d), (m, d) to maxima (n, groups of m), (m, groups of n).

    Sketches are made a tile at a time, so that large sides are not held twice; those of y, which every tile
    of x meets, at once where that saves more than memory.
    """
    (x, y), size = sides, groups[0].size
    rows, columns = groups[0].tile, groups[1].tile
    down, along = groups[0].order, groups[1].order
    forward = torch.empty((len(down), len(along) // size), dtype=torch.float16)
    backward = torch.empty((len(along), len(down) // size), dtype=torch.float16)
    held = _sketch(y, axes, along).to(device) if axes.short or device != "cpu" else None
    with bar("similarities", len(down) // rows, "blocks") as advance:

        def across(i: int) -> None:
            part = _sketch(x, axes, down[i : i + rows]).to(device)
            product = torch.empty((rows, columns), device=device)
            for j in range(0, len(along), columns):
                there = slice(j, j + columns)
                other = _sketch(y, axes, along[there]) if held is None else held[there]
                torch.mm(part, other.T, out=product)
                over_y = _over_groups(product, size)
                over_x = product.view(size, -1, columns).amax(0).T
                forward[i : i + rows, j // size : (j + columns) // size] = over_y
                backward[j : j + columns, i // size : (i + rows) // size] = over_x
            advance(1)

        each_part(across, range(0, len(down), rows))
    return forward, backward


def _over_groups(product: torch.Tensor, size: int) -> torch.Tensor:
    """The greatest number of each group along every row. Shape: (rows, columns) to (rows, groups).

    Maxima are fast only when taken over 32 columns or more at once: few groups are taken in parts.
    """
    groups = product.shape[1] // size
    parts = 1 << max(0, (_LANES // groups).bit_length() - 1)
    return product.view(len(product), size // parts, -1).amax(1).view(len(product), parts, groups).amax(1)


# ----------------------------------------------------------------------------------------- the search


@dataclass(frozen=True, eq=False)
class Search:
    """Finds the candidates with the greatest score: scale · cosine − offset of the query − penalty.

    Scores within the same multiple of `tie` are equal.
    Shape: x (n, d), y (m, d), of unit length; offset (n,), penalty (m,) in double precision.
    """

    x: torch.Tensor
    y: torch.Tensor
    bounds: Bounds
    scale: float
    offset: torch.Tensor
    penalty: torch.Tensor
    tie: float

    def best(self, rows: torch.Tensor, k: int, least: torch.Tensor | None = None) -> Found:
        """The k best candidates of these rows of x; k ≤ m.

        `least` (rows,) is what k candidates of each row are known to reach before its offset is taken off.
        """
        if not len(rows):
            return Found(np.zeros((0, k), np.int64), np.zeros((0, k)))
        # Neighbours are searched for together: they look into the same groups.
        order = torch.argsort(self.bounds.place[rows])
        # A query begins with as many groups as it wants neighbours.
        parts = torch.split(order, max(1, min(_QUERIES, _VALUES // (k * self.bounds.groups.size))))
        # What is found goes where it belongs at once: kept part by part, it would lie in memory between the
        # large blocks that parts work with, and these could not be used again.
        found = Found(np.empty((len(rows), k), np.int64), np.empty((len(rows), k)))

        def put(part: torch.Tensor) -> None:
            some, place = self._some(rows[part], k, None if least is None else least[part]), part.numpy()
            found.index[place], found.score[place] = some.index, some.score

        each_part(put, parts)
        return found

    @cached_property
    def _penalties(self) -> torch.Tensor:
        """Of the members of each group. Shape: (groups, size)."""
        members = self.bounds.groups.members
        return torch.where(members < 0, _NOBODY, self.penalty[members.clamp(min=0)]).float()

    def _members(self, group: int) -> torch.Tensor:
        """The members of a group, their penalty as one more dimension. Shape: (size, d + 1)."""
        rows = self.y.index_select(0, self.bounds.groups.members[group].clamp(min=0))
        return torch.cat([rows, self._penalties[group, :, None]], 1)

    def _some(self, rows: torch.Tensor, k: int, least: torch.Tensor | None) -> Found:
        limit = self.bounds.maxima.index_select(0, self.bounds.place[rows]).float()
        weight = self._weight(rows, least)
        limit.addr_(weight, self._penalties.amin(1), alpha=-1 / self.scale)
        x = torch.cat([self.scale * self.x.index_select(0, rows), -weight[:, None]], 1)
        seen = []
        if least is None:
            top = limit.topk(min(k, limit.shape[1]), 1).indices
            seen.append(self._look(x, torch.arange(len(rows)).repeat_interleave(top.shape[1]), top.view(-1)))
            least = seen[0].reached(k, len(rows))
            limit.scatter_(1, top, -torch.inf)
        level = self._level(rows, least)
        query, group = (limit >= (level / self.scale - _HALF - _SINGLE)[:, None]).nonzero(as_tuple=True)
        if len(rows) > 1 and len(query) * self.bounds.groups.size > _VALUES:
            halves = zip(torch.tensor_split(rows, 2), torch.tensor_split(least, 2), strict=True)
            return _joined([self._some(half, k, known) for half, known in halves])
        seen.append(self._look(x, query, group))
        query, slot = (
            torch.cat(column)
            for column in zip(*(part.above(level - self.scale * _SINGLE) for part in seen), strict=True)
        )
        candidate = self.bounds.groups.members.view(-1)[slot]
        return self._ranked(rows, query[candidate >= 0], candidate[candidate >= 0], k)

    def _weight(self, rows: torch.Tensor, least: torch.Tensor | None) -> torch.Tensor:
        """What a penalty counts for. Shape: (rows,).

        A candidate scores at least `least` when scale · cosine − weight · penalty reaches the level.
        """
        return torch.ones(len(rows))

    def _level(self, rows: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
        """See `_weight`. Shape: (rows,)."""
        return least

    def _score(self, cosine: Doubles, row: torch.Tensor, candidate: torch.Tensor) -> Doubles:
        """Exact scores. Shape: all (pairs,)."""
        minus = (self.offset[row] + self.penalty[candidate]).numpy()
        return np.asarray(self.scale * cosine - minus, np.float64)

    def _look(self, x: torch.Tensor, query: torch.Tensor, group: torch.Tensor) -> _Seen:
        """Scores of queries with all members of a group each. Shape: query, group (looks,)."""
        group, order = torch.sort(group, stable=True)
        query = query[order]
        score = torch.empty((len(group), self.bounds.groups.size))
        start = 0
        for number, end in enumerate(torch.cumsum(torch.bincount(group), 0).tolist()):
            if end > start:
                torch.mm(x.index_select(0, query[start:end]), self._members(number).T, out=score[start:end])
                start = end
        return _Seen(query, group, score)

    def _ranked(self, rows: torch.Tensor, query: torch.Tensor, candidate: torch.Tensor, k: int) -> Found:
        """The k best of each row's candidates, at least k each, by exact scores."""
        row = rows[query]
        score = self._score(cosines(self.x, self.y, row, candidate), row, candidate)
        asked, found = query.numpy(), candidate.numpy()
        order = np.lexsort((found, -np.round(score / self.tie), asked))
        starts = np.searchsorted(asked[order], np.arange(len(rows)))
        chosen = order[starts[:, None] + np.arange(k)]
        return Found(found[chosen], score[chosen])


@dataclass(frozen=True, eq=False)
class _Seen:
    """Scores of queries with whole groups. Shape: query, group (looks,), score (looks, size)."""

    query: torch.Tensor
    group: torch.Tensor
    score: torch.Tensor

    def reached(self, k: int, queries: int) -> torch.Tensor:
        """The k-th best score of each query, when each looked into as many groups. Shape: (queries,)."""
        order = torch.argsort(self.query, stable=True)
        best = self.score.topk(min(k, self.score.shape[1]), 1).values
        return best.index_select(0, order).view(queries, -1).topk(k, 1).values[:, -1]

    def above(self, least: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Query and slot (member of a group) of each score that reaches its query's least."""
        look, member = (self.score >= least[self.query, None]).nonzero(as_tuple=True)
        return self.query[look], self.group[look] * self.score.shape[1] + member


def cosines(x: torch.Tensor, y: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> Doubles:
    """Products of rows i of x with rows j of y in double precision. Shape: (pairs,)."""
    out = np.empty(len(i))
    left, right, rows, columns = x.numpy(), y.numpy(), i.numpy(), j.numpy()
    for start in range(0, len(i), _ROWS):
        part = slice(start, start + _ROWS)
        np.einsum("nd,nd->n", left[rows[part]], right[columns[part]], dtype=np.float64, out=out[part])
    return out


def each_part(work: Callable[[T], R], parts: Iterable[T]) -> list[R]:
    """Work on every part, a part a thread: threads inside small products mostly wait for each other."""
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work, parts))
    finally:
        torch.set_num_threads(threads)


def _joined(found: list[Found]) -> Found:
    return Found(np.concatenate([f.index for f in found]), np.concatenate([f.score for f in found]))
