"""Exact nearest neighbours in both directions from one pass over the similarities.

The pass keeps only the greatest similarity of every row with each small *group* of rows of the other side.
These maxima bound what a group can hold, so a query looks only into the few groups that can still hold one of
its neighbours: by cosine, and then, with the radii known, by CSLS, without another pass. Nothing here is
approximate: upper bounds decide where to look, and what is found is scored in double precision.

Two things make the bounds cheap and tight; neither can change an answer. The pass runs on a *sketch*: the
leading principal coordinates and the length of the rest, whose product is never below the cosine (Cauchy and
Schwarz). And rows are grouped with rows of about the same radius, guessed from a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from calque.progress import track
from calque.types import Doubles, Longs

_MAXIMA_BYTES = 640_000_000
_VALUES = 16_000_000
_QUERIES = 8192
_SAMPLE = 1024
_ENERGY = 0.97
#: More than rounding to half precision, and than a single-precision product, can take from a cosine.
_HALF, _SINGLE = 6e-4, 1e-5


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
    """The best candidates of each query, best first, the lower row first where equal in single precision.

    Shape: index, score (queries, k).
    """

    index: Longs
    score: Doubles


# ------------------------------------------------------------------------------------------- the pass


def bound_both_ways(x: torch.Tensor, y: torch.Tensor, *, device: str, block: int) -> tuple[Bounds, Bounds]:
    """Bounds of rows of x among y, and of rows of y among x. Shape: x (n, d), y (m, d), of unit length."""
    size = _group_size(len(x), len(y))
    ours, theirs = _group(x, y, size, block), _group(y, x, size, block)
    forward, backward = _maxima(_sketch(x, y, (ours, theirs)), (ours, theirs), device)
    return Bounds(forward, _places(ours, len(x)), theirs), Bounds(backward, _places(theirs, len(y)), ours)


def _group_size(n: int, m: int) -> int:
    """The least power of two from 32 whose maxima, two bytes each, fit into memory."""
    size = 32
    while 4 * n * m / size > _MAXIMA_BYTES:
        size *= 2
    return size


def _group(x: torch.Tensor, y: torch.Tensor, size: int, block: int) -> Groups:
    """Rows of x in groups of about equal radius."""
    tile = size * max(1, min(block // size, -(-len(x) // size)))
    sample = _sample(y)
    near = min(4, len(sample))
    radius = torch.cat([(part @ sample.T).topk(near, 1).values.mean(1) for part in torch.split(x, _QUERIES)])
    members = torch.full((-(-len(x) // tile) * tile,), -1)
    members[: len(x)] = torch.argsort(radius)
    return Groups(members.view(-1, size), tile)


def _sample(x: torch.Tensor) -> torch.Tensor:
    return x[torch.from_numpy(np.random.default_rng(0).permutation(len(x))[:_SAMPLE])]


def _sketch(
    x: torch.Tensor, y: torch.Tensor, groups: tuple[Groups, Groups]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both sides in the order of the pass, in fewer dimensions where the rows allow it."""
    sample = torch.cat([_sample(x), _sample(y)])
    energy, axes = torch.linalg.eigh(sample.T @ sample)
    share = torch.cumsum(energy.flip(0), 0) / energy.sum().clamp(min=1e-9)
    kept = -(-int((share < _ENERGY).sum() + 1) // 16) * 16
    turn = axes.flip(1) if kept < 0.9 * x.shape[1] else None
    return _placed(x, groups[0].order, turn, kept), _placed(y, groups[1].order, turn, kept)


def _placed(x: torch.Tensor, order: torch.Tensor, turn: torch.Tensor | None, kept: int) -> torch.Tensor:
    width = x.shape[1] if turn is None else kept + 1
    out = torch.zeros((len(order), width))
    for start in range(0, len(order), _QUERIES):
        rows = order[start : start + _QUERIES]
        part = x[rows.clamp(min=0)] * (rows >= 0)[:, None]
        if turn is not None:
            turned = part @ turn
            part = torch.cat([turned[:, :kept], turned[:, kept:].norm(dim=1, keepdim=True)], 1)
        out[start : start + _QUERIES] = part
    return out


def _places(groups: Groups, count: int) -> torch.Tensor:
    order = groups.order
    (taken,) = torch.where(order >= 0)
    place = torch.empty(count, dtype=torch.int64)
    place[order[taken]] = taken
    return place


def _maxima(
    sketch: tuple[torch.Tensor, torch.Tensor], groups: tuple[Groups, Groups], device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """The one pass. Shape: sketches (n, e), (m, e) to maxima (n, groups of m), (m, groups of n)."""
    (x, y), size = sketch, groups[0].size
    rows, columns = groups[0].tile, groups[1].tile
    forward = torch.empty((len(x), len(y) // size), dtype=torch.float16)
    backward = torch.empty((len(y), len(x) // size), dtype=torch.float16)
    product, y = torch.empty((rows, columns), device=device), y.to(device)
    for i in track(range(0, len(x), rows), "similarities", unit="blocks"):
        part = x[i : i + rows].to(device)
        for j in range(0, len(y), columns):
            torch.mm(part, y[j : j + columns].T, out=product)
            over_y = product.view(rows, size, -1).amax(1)
            over_x = product.view(size, -1, columns).amax(0).T
            forward[i : i + rows, j // size : (j + columns) // size] = over_y
            backward[j : j + columns, i // size : (i + rows) // size] = over_x
    return forward, backward


# ----------------------------------------------------------------------------------------- the search


@dataclass(frozen=True, eq=False)
class Search:
    """Finds the candidates with the greatest score: scale · cosine − offset of the query − penalty.

    Shape: x (n, d), y (m, d), of unit length; offset (n,), penalty (m,) in double precision.
    """

    x: torch.Tensor
    y: torch.Tensor
    bounds: Bounds
    scale: float
    offset: torch.Tensor
    penalty: torch.Tensor

    def best(self, rows: torch.Tensor, k: int, least: torch.Tensor | None = None) -> Found:
        """The k best candidates of these rows of x; k ≤ m.

        `least` (rows,) is a score that k candidates of each row are known to reach.
        """
        found = [Found(np.zeros((0, k), np.int64), np.zeros((0, k)))]
        for start in range(0, len(rows), _QUERIES):
            part = slice(start, start + _QUERIES)
            found.append(self._some(rows[part], k, None if least is None else least[part]))
        return _joined(found)

    @cached_property
    def _penalties(self) -> torch.Tensor:
        """Penalty of each member of each group, infinite where there is none. Shape: (groups, size)."""
        members = self.bounds.groups.members
        return self.penalty[members.clamp(min=0)].float().masked_fill_(members < 0, torch.inf)

    def _some(self, rows: torch.Tensor, k: int, least: torch.Tensor | None) -> Found:
        limit = self.bounds.maxima[self.bounds.place[rows]].float()
        limit.mul_(self.scale).sub_(self.offset[rows, None]).sub_(self._penalties.amin(1))
        seen = []
        if least is None:
            top = limit.topk(min(k, limit.shape[1]), 1).indices
            first = self._look(rows, torch.zeros_like(limit, dtype=torch.bool).scatter_(1, top, True))
            least = first.reached(k, len(rows))
            limit.scatter_(1, top, -torch.inf)
            seen.append(first)
        hopeful = limit >= (least - self.scale * (_HALF + _SINGLE))[:, None]
        if len(rows) > 1 and int(hopeful.sum()) * self.bounds.groups.size > _VALUES:
            halves = zip(torch.tensor_split(rows, 2), torch.tensor_split(least, 2), strict=True)
            return _joined([self._some(half, k, known) for half, known in halves])
        seen.append(self._look(rows, hopeful))
        survivors = [part.above(least - self.scale * _SINGLE) for part in seen]
        query, slot = (torch.cat(column) for column in zip(*survivors, strict=True))
        return self._ranked(rows, query, self.bounds.groups.members.view(-1)[slot], k)

    def _look(self, rows: torch.Tensor, chosen: torch.Tensor) -> _Seen:
        """Scores of these rows with all members of their chosen groups. Shape: chosen (rows, groups)."""
        group, query = chosen.T.nonzero(as_tuple=True)
        members, x = self.bounds.groups.members.clamp(min=0), self.x[rows]
        score = torch.empty((len(group), members.shape[1]))
        start = 0
        for number, end in enumerate(torch.cumsum(chosen.sum(0), 0).tolist()):
            if end > start:
                torch.mm(x[query[start:end]], self.y[members[number]].T, out=score[start:end])
                start = end
        score.mul_(self.scale).sub_(self.offset[rows][query, None]).sub_(self._penalties[group])
        return _Seen(query, group, score)

    def _ranked(self, rows: torch.Tensor, query: torch.Tensor, candidate: torch.Tensor, k: int) -> Found:
        """The k best of each row's candidates, at least k each, by exact scores."""
        row = rows[query]
        cosine = _cosines(self.x, self.y, row, candidate)
        score = (self.scale * cosine - self.offset[row] - self.penalty[candidate]).numpy()
        asked, found = query.numpy(), candidate.numpy()
        order = np.lexsort((found, -score.astype(np.float32), asked))
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
        return self.score[order].view(queries, -1).topk(k, 1).values[:, -1]

    def above(self, least: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Query and slot (member of a group) of each score that reaches its query's least."""
        look, member = (self.score >= least[self.query, None]).nonzero(as_tuple=True)
        return self.query[look], self.group[look] * self.score.shape[1] + member


def _cosines(x: torch.Tensor, y: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    """Products of rows i of x with rows j of y in double precision. Shape: (pairs,)."""
    out = torch.empty(len(i), dtype=torch.float64)
    for start in range(0, len(i), 4096):
        part = slice(start, start + 4096)
        out[part] = (x[i[part]].double() * y[j[part]]).sum(1)
    return out


def _joined(found: list[Found]) -> Found:
    return Found(np.concatenate([f.index for f in found]), np.concatenate([f.score for f in found]))
