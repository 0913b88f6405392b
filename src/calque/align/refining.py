"""Linear maps refined: the next is learned from frequent words that find each other under the one before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from calque.align.linear import LinearAligner, keyed
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.anchors import anchors
from calque.encoders.wordtypes import Types
from calque.errors import BadSetting
from calque.geometry.refinement import Refined, refine
from calque.geometry.solvers import Method, PairMaps, SolverOptions, solve_pairs
from calque.types import Floats, MapKey, SpaceMap

#: Methods whose map does not depend on what is paired with what: there is nothing to refine.
UNPAIRED = (Method.CENTRING, Method.STANDARDISE, Method.TOP_COMPONENTS)
#: So little shrink that it only settles what pairs leave open: refinement may begin with a handful.
BARELY = 1e-6

#: Frequent words of each two languages, in the order of the pairs, among which new pairs are sought.
Vocabularies: TypeAlias = Mapping[tuple[str, str], tuple[Types, Types]]


def check_refinable(aligner: LinearAligner, languages: int) -> None:
    """Refuse what cannot be refined. `languages` is how many move."""
    if aligner.method in UNPAIRED:
        raise BadSetting(
            f"{aligner.method.value} cannot be refined: it does not depend on pairs",
            remedy="--method rotation",
        )
    if aligner.method is Method.ITERATIVE_NORMALISATION and languages > 1:
        raise BadSetting(
            f"iterative-normalisation is refined for one pair of languages, not {languages}",
            remedy="--method rotation, or one pair at a time",
        )


def refine_maps(
    aligned: AlignedEncoder, aligner: LinearAligner, types: Vocabularies, rounds: int
) -> AlignedEncoder:
    """The same encoder with better maps, each layer by itself; `about` tells how it went."""
    check_refinable(aligner, len(types))
    maps: dict[MapKey, SpaceMap] = dict(aligned.maps)
    told: dict[str, list[dict[str, Any]]] = {}
    for (first, second), sides in types.items():
        turned = aligner.moves == "target"
        moving, held = (second, first) if turned else (first, second)
        found = [
            anchors(aligned.inner, side, layers=aligned.layers, pooling=aligner.pooling)
            for side in (sides[::-1] if turned else sides)
        ]
        for place, layer in enumerate(aligned.layers):
            source, target = (one.layer(layer)[one.counts > 0] for one in found)
            start = PairMaps(maps[MapKey(moving, held, layer)], maps[MapKey(held, held, layer)])
            options = _options(aligned, aligner, moving, place)
            best = _refined(source, target, start, aligner.method, options, rounds)
            maps |= keyed({moving: best.maps}, held, best.maps.held, layer)
            told.setdefault(moving, []).append({"layer": layer, **_told(best)})
    return replace(aligned, maps=maps, about={**aligned.about, "refined": told})


def _refined(
    source: Floats, target: Floats, start: PairMaps, method: Method, options: SolverOptions, rounds: int
) -> Refined:
    def solve(a: Floats, b: Floats) -> PairMaps:
        return solve_pairs(method, a, b, options)

    return refine(source, target, start, solve, rounds=rounds)


def _options(aligned: AlignedEncoder, aligner: LinearAligner, moving: str, place: int) -> SolverOptions:
    """Those of the aligner, with the shrink that was chosen for this language and layer."""
    chosen = aligned.about["shrink"][moving][place] if aligner.validate else aligner.options.shrink
    return replace(aligner.options, shrink=max(chosen, BARELY))


def _told(best: Refined) -> dict[str, Any]:
    return {
        "pairs": [one.pairs for one in best.rounds],
        "cosine": [round(one.cosine, 5) for one in best.rounds],
    }
