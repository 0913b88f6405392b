"""Linear alignment: a stream of paired vectors to maps that bring languages into one space."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from calque.align.sources import pairs_read
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.cached import rounded
from calque.errors import BadInput, BadSetting
from calque.geometry.moments import PairMoments, merged
from calque.geometry.shrinkage import choose_shrink
from calque.geometry.solvers import CLOSED_FORM, NEEDS, STREAMED, Method, PairMaps, SolverOptions, Stream
from calque.locks import scratch
from calque.progress import track
from calque.types import Encoder, Floats, Longs, MapKey, PairBlock, PairSource, Pooling, SpaceMap, Step, Unit

#: Which side of the pairs moves into the other's space.
Moves = Literal["target", "source"]

#: Methods whose shrink can be chosen by cross-validation: nearness means something, as no scale changes.
VALIDATED = (Method.ROTATION, Method.CENTRED_ROTATION, Method.LEAST_SQUARES)
FOLDS = 3


class _Meeting(NamedTuple):
    """A language that is held, and the sources of those that move into its space."""

    held: str
    members: Mapping[str, Sequence[PairSource]]


class _Fitted(NamedTuple):
    """Maps, and the shrinks of each language's layers where they were chosen."""

    maps: dict[MapKey, SpaceMap]
    shrinks: Mapping[str, list[float]] = {}


@dataclass(frozen=True)
class LinearAligner:
    """Learns one map a language and layer.

    With several sources the languages that move all meet in the space of the one that is held; sources of the
    same two languages add up. With `moves="source"` the first language gets one map a target language.

    Methods that normalise (centring, z-norm, top components, iterative normalisation) move the held language
    too: it is normalised by what all sources together say of it.

    With `validate` each language and layer gets its own shrink, under which translations of held-out
    sentences lie nearest to each other.
    """

    method: Method = Method.CENTRED_ROTATION
    options: SolverOptions = field(default_factory=SolverOptions)
    pooling: Pooling = "mean"
    moves: Moves = "target"
    validate: bool = False

    def __post_init__(self) -> None:
        if self.validate and self.method not in VALIDATED:
            raise BadSetting(
                f"shrink auto is not for {self.method.value}",
                remedy=f"give a number, or one of {', '.join(method.value for method in VALIDATED)}",
            )

    def fit(self, encoder: Encoder, sources: Sequence[PairSource], layers: Sequence[int]) -> AlignedEncoder:
        """Go through the sources once and solve."""
        groups = self._groups(sources)
        solve = self._closed_form if self.method in CLOSED_FORM else self._streamed
        maps: dict[MapKey, SpaceMap] = {}
        shrinks: dict[str, list[float]] = {}
        for held in sorted({pair[1] for pair in groups}):
            members = {moving: group for (moving, space), group in groups.items() if space == held}
            fitted = solve(encoder, _Meeting(held, members), layers)
            maps |= fitted.maps
            shrinks |= fitted.shrinks
        seen: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
        for source in sources:
            seen[source.languages] = seen.get(source.languages, frozenset()) | source.types()
        about = self._about(sources, layers) | ({"shrink": shrinks} if shrinks else {})
        space = min(pair[1] for pair in groups)
        return AlignedEncoder(encoder, maps, space, self.pooling, seen, about, pairs_read(sources))

    def _groups(self, sources: Sequence[PairSource]) -> dict[tuple[str, str], list[PairSource]]:
        """Sources by (language that moves, language that is held)."""
        groups: dict[tuple[str, str], list[PairSource]] = {}
        for source in sources:
            first, second = source.languages
            pair = (second, first) if self.moves == "target" else (first, second)
            groups.setdefault(pair, []).append(source)
        held = {space for _, space in groups}
        if self.moves == "target" and len(held) > 1:
            raise BadSetting(
                f"pairs hold different languages: {', '.join(sorted(held))}",
                remedy="give pairs that all have the same first language, or --moves source",
            )
        return groups

    def _about(self, sources: Sequence[PairSource], layers: Sequence[int]) -> dict[str, object]:
        return {
            "method": self.method.value,
            "shrink": self.options.shrink,
            "moves": self.moves,
            "layers": list(layers),
            "coverage": {"-".join(source.languages): dict(source.coverage()) for source in sources},
        }

    def _blocks(
        self, encoder: Encoder, group: Sequence[PairSource], layers: Sequence[int]
    ) -> Iterator[PairBlock]:
        """Blocks of which the source moves and the target is held."""
        for source in group:
            for block in source.blocks(encoder, layers, self.pooling):
                yield block if self.moves == "source" else _swapped(block)

    def _closed_form(self, encoder: Encoder, meeting: _Meeting, layers: Sequence[int]) -> _Fitted:
        """One pass, O(d²) memory: moments of every layer at once."""
        solve = CLOSED_FORM[self.method]
        moments: dict[str, list[PairMoments]] = {}
        options: dict[str, list[SolverOptions]] = {}
        for language, group in meeting.members.items():
            folds = self._gathered(encoder, group, layers)
            options[language] = self._options(language, folds)
            moments[language] = [merged(layer) for layer in folds]
        maps: dict[MapKey, SpaceMap] = {}
        for place, layer in enumerate(layers):
            solved = {
                language: solve(moments[language][place], options[language][place])
                for language in meeting.members
            }
            shared = next(iter(solved.values())).held
            if len(solved) > 1 and shared.steps:
                shared = solve(merged([one[place] for one in moments.values()]), self.options).held
            maps |= keyed(solved, meeting.held, shared, layer)
        chosen = options if self.validate else {}
        return _Fitted(maps, {language: [one.shrink for one in of] for language, of in chosen.items()})

    def _gathered(
        self, encoder: Encoder, group: Sequence[PairSource], layers: Sequence[int]
    ) -> list[list[PairMoments]]:
        """Moments of each layer in parts: one, or the folds of cross-validation."""
        count = FOLDS if self.validate else 1
        folds = [[PairMoments(NEEDS[self.method]) for _ in range(count)] for _ in layers]
        for block in self._blocks(encoder, group, layers):
            fold = folds_of(block.group, count)
            for part in range(count):
                rows = slice(None) if count == 1 else fold == part
                for layer, moments in enumerate(folds):
                    moments[part].add(block.source[layer][rows], block.target[layer][rows])
        return folds

    def _options(self, language: str, folds: Sequence[Sequence[PairMoments]]) -> list[SolverOptions]:
        """The options of each layer."""
        if not self.validate:
            return [self.options] * len(folds)
        solve = CLOSED_FORM[self.method]
        # A decomposition gains next to nothing from two threads; two of them at a time gain twice.
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(lambda layer: choose_shrink(layer, solve, self.options), folds)
            shrinks = list(track(found, f"shrink {language}", len(folds), "layers"))
        return [replace(self.options, shrink=shrink) for shrink in shrinks]

    def _streamed(self, encoder: Encoder, meeting: _Meeting, layers: Sequence[int]) -> _Fitted:
        """Several passes over vectors that are encoded once and kept in a temporary file."""
        solve = STREAMED[self.method]
        maps: dict[MapKey, SpaceMap] = {}
        with scratch() as folder:
            spools = {
                language: Spool(folder / language, self._blocks(encoder, group, layers))
                for language, group in meeting.members.items()
            }
            for place, layer in enumerate(layers):
                solved = {
                    language: solve(spool.stream(place), self.options) for language, spool in spools.items()
                }
                shared = next(iter(solved.values())).held
                if len(solved) > 1 and shared.steps:
                    shared = solve(
                        _chain([spool.stream(place) for spool in spools.values()]), self.options
                    ).held
                    solved = {
                        language: _rejoin(one, shared, spools[language].stream(place), self.options)
                        for language, one in solved.items()
                    }
                maps |= keyed(solved, meeting.held, shared, layer)
        return _Fitted(maps)


class Spool:
    """Paired vectors in a temporary file, rounded as in the cache, to be read more than once."""

    def __init__(self, folder: Path, blocks: Iterator[PairBlock]) -> None:
        folder.mkdir(parents=True)
        self._files: list[Path] = []
        for block in blocks:
            self._files.append(folder / f"{len(self._files)}.npy")
            both = rounded(np.stack([block.source, block.target], 1))
            _check_room(folder, both.nbytes)
            np.save(self._files[-1], both, allow_pickle=False)

    def stream(self, place: int) -> Stream:
        """Passes over one layer."""

        def pass_over() -> Iterator[tuple[Floats, Floats]]:
            for file in self._files:
                moving, held = np.load(file, mmap_mode="r", allow_pickle=False)[place].astype(np.float32)
                yield moving, held

        return pass_over


def _check_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise BadInput(
            f"{tempfile.gettempdir()} has {free / 1e9:.1f} GB free, vectors need {needed / 1e9:.1f} GB more",
            remedy="set TMPDIR to a larger disk, choose fewer layers, or sample the links",
        )


def keyed(solved: Mapping[str, PairMaps], held: str, shared: SpaceMap, layer: int) -> dict[MapKey, SpaceMap]:
    """The maps of one layer: the languages that move, and the one that is held."""
    maps = {MapKey(language, held, layer): _single(one.moves) for language, one in solved.items()}
    return maps | {MapKey(held, held, layer): _single(shared)}


def folds_of(group: NDArray[np.integer[Any]], count: int) -> Longs:
    """A fold for each pair: stretches of the text, cut between groups. Shape: (n,) to (n,).

    >>> folds_of(np.array([3, 3, 4, 7, 7, 9]), 2).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    groups, rank = np.unique(group, return_inverse=True)
    return np.asarray(rank * count // max(1, len(groups)), np.int64)


def _swapped(block: PairBlock) -> PairBlock:
    return replace(block, source=block.target, target=block.source)


def _chain(streams: Sequence[Stream]) -> Stream:
    def pass_over() -> Iterator[tuple[Floats, Floats]]:
        for stream in streams:
            yield from stream()

    return pass_over


def _rejoin(one: PairMaps, shared: SpaceMap, stream: Stream, options: SolverOptions) -> PairMaps:
    """Learn the last rotation again, towards a held side that is normalised for all languages together."""
    *normalise, _ = one.moves.steps
    before = SpaceMap(tuple(normalise))
    moments = PairMoments(NEEDS[Method.ROTATION])
    for moving, held in stream():
        moments.add(before.apply(moving), shared.apply(held))
    rotation = CLOSED_FORM[Method.ROTATION](moments, options).moves
    return PairMaps(SpaceMap((*normalise, *rotation.steps)), shared)


def _single(space_map: SpaceMap) -> SpaceMap:
    """The same map in single precision, as it is stored and applied."""

    def convert(step: Step) -> Step:
        if isinstance(step, Unit):
            return step
        (name,) = (column.name for column in fields(step))
        return type(step)(**{name: np.asarray(getattr(step, name), np.float32)})

    return SpaceMap(tuple(convert(step) for step in space_map.steps))
