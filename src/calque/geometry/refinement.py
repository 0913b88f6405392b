"""Refinement of a map: words that it brings together teach the next one, again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from calque.errors import BadSetting
from calque.geometry.neighbours import Distinct, two_way
from calque.geometry.solvers import PairMaps
from calque.progress import bar
from calque.types import Floats, Longs

#: Maps from paired vectors, (n, d) each.
Solve: TypeAlias = Callable[[Floats, Floats], PairMaps]


@dataclass(frozen=True)
class Round:
    """How good a map was: how many rows found each other, and the mean cosine of rows with what they find."""

    pairs: int
    cosine: float


@dataclass(frozen=True, eq=False)
class Refined:
    """The best of all maps that were tried, and how good each was, that of the start first.

    Shape: pairs (n, 2), the rows of source and target that find each other under it.
    """

    maps: PairMaps
    pairs: Longs
    rounds: tuple[Round, ...]


def refine(
    source: Floats,
    target: Floats,
    maps: PairMaps,
    solve: Solve,
    *,
    rounds: int = 5,
    radius_k: int = 10,
    device: str = "cpu",
) -> Refined:
    """Solve again from the mutual nearest neighbours (by CSLS) under the map before; at most `rounds` times.

    Shape: source (n, d), target (m, d): frequent words, whose neighbours can be trusted most. Of all maps,
    the first among them, that one wins under which source rows lie nearest to what they find, which needs no
    dictionary to tell. It ends early when a round changes no pair.
    """
    if rounds < 1:
        raise BadSetting(f"rounds is {rounds}", remedy="1 or more")
    tried: list[Refined] = []
    with bar("refinement", rounds + 1, "rounds") as advance:
        while True:
            moved, held = maps.moves.apply(source), maps.held.apply(target)
            pairs, cosine = mutual_neighbours(moved, held, radius_k=radius_k, device=device)
            same = bool(tried) and np.array_equal(pairs, tried[-1].pairs)
            tried.append(Refined(maps, pairs, (Round(len(pairs), cosine),)))
            advance(1)
            if same or not len(pairs) or len(tried) > rounds:
                break
            maps = solve(source[pairs[:, 0]], target[pairs[:, 1]])
    best = max(tried, key=lambda one: one.rounds[0].cosine)
    return replace(best, rounds=tuple(one.rounds[0] for one in tried))


def mutual_neighbours(
    source: Floats, target: Floats, *, radius_k: int = 10, device: str = "cpu"
) -> tuple[Longs, float]:
    """Rows that are each other's nearest by CSLS, and the mean cosine of source rows with their nearest.

    Shape: (n, d), (m, d) to (pairs, 2).

    >>> pairs, cosine = mutual_neighbours(np.eye(3, dtype="f"), np.eye(3, dtype="f")[[2, 0]], radius_k=1)
    >>> pairs.tolist(), round(cosine, 3)
    ([[0, 1], [2, 0]], 0.667)
    """
    s, t = Distinct.of(source), Distinct.of(target)
    found = two_way(s, t, radius_k=radius_k, device=device)
    forward, backward = found.forward.index[:, 0], found.backward.index[:, 0]
    rows = np.arange(len(forward))
    mutual = backward[forward] == rows
    near = (s.rows[s.which] * t.rows[t.which[forward]]).sum(1)
    return np.stack([rows[mutual], forward[mutual]], 1), float(near.double().mean())
