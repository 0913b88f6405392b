"""How far to shrink a map, chosen by cross-validation from moments alone: no vector is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from calque.errors import BadInput
from calque.geometry.moments import PairMoments, merged
from calque.geometry.solvers import PairMaps, SolverOptions
from calque.types import Doubles, SpaceMap

#: What is tried. 0 is not: a hundredth of a prior changes nothing but keeps every map determined.
SHRINKS = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


def choose_shrink(
    folds: Sequence[PairMoments],
    solve: Callable[[PairMoments, SolverOptions], PairMaps],
    options: SolverOptions,
) -> float:
    """The shrink of `SHRINKS` under which held-out translations lie nearest to each other.

    Each fold is held out in turn. The error has one valley along `SHRINKS`, so it is walked downhill from the
    middle: a handful of fits instead of all.
    """
    parts = [fold for fold in folds if fold.count]
    if len(parts) < 2:
        raise BadInput("too few pairs to choose shrink by cross-validation", remedy="give shrink a number")
    others = [merged(parts[:k] + parts[k + 1 :]) for k in range(len(parts))]
    known: dict[int, float] = {}

    def error(place: int) -> float:
        if place not in known:
            tried = replace(options, shrink=SHRINKS[place])
            known[place] = sum(
                squared_distance(solve(rest, tried), held) for rest, held in zip(others, parts, strict=True)
            )
        return known[place]

    place = len(SHRINKS) // 2
    while True:
        near = [at for at in (place, place - 1, place + 1) if 0 <= at < len(SHRINKS)]
        best = min(near, key=error)
        if best == place:
            return SHRINKS[place]
        place = best


def squared_distance(maps: PairMaps, pairs: PairMoments) -> float:
    """Sum over pairs of ‖moves(s) − held(t)‖², for maps that are affine.

    Without the source's own product the linear part of `moves` must be a rotation, and `held` the identity.
    """
    turn, shift = _affine(maps.moves, pairs.width)
    other, offset = _affine(maps.held, pairs.width)
    gap = turn @ pairs.source_mean + shift - other @ pairs.target_mean - offset
    own = (
        float(np.sum((turn @ pairs.source(centred=True)) * turn))
        if "source" in pairs.products
        else pairs.source_trace(centred=True)
    )
    theirs = (
        float(np.sum((other @ pairs.target(centred=True)) * other))
        if "target" in pairs.products
        else pairs.count * float(pairs.target_variance.sum())
    )
    across = float(np.sum((other @ pairs.cross(centred=True)) * turn))
    return own + theirs - 2 * across + pairs.count * float(gap @ gap)


def _affine(space_map: SpaceMap, width: int) -> tuple[Doubles, Doubles]:
    """The matrix and the shift of a map without `Unit` steps."""
    shift = space_map.apply(np.zeros((1, width)))[0]
    return (space_map.apply(np.eye(width)) - shift).T, shift
