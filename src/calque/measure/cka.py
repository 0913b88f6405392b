"""CKA of sentence vectors: how alike two sets of vectors of the same sentences are, but for turn and scale.

Between the two languages of a bitext in one encoder, between encoders in one language, and between an encoder
and a random twin of it, which is the floor. Vectors stream by in blocks: memory does not grow with the text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, get_args

import numpy as np

from calque.encoders.blocks import sentence_blocks
from calque.errors import BadInput, BadSetting
from calque.geometry.cka import FEWEST, VARIANTS, ViewSums, jackknife, passes
from calque.measure.scoring import Measurement, Scorer, by_name, check_languages, layers_of
from calque.progress import Advance, bar
from calque.types import Bitext, Doubles, Encoder, Floats, Longs, Result, SentencePooling, Sentences

TASK = METRIC = "cka"
#: Between encoders it is another thing that is measured, with lines of its own.
BETWEEN = "cka-between-encoders"

#: Numbers held at once: of products (1 GB), and of one side's vectors in a block.
HELD_NUMBERS, BLOCK_NUMBERS = 1 << 27, 1 << 23
#: A text whose vectors are fewer numbers than this is kept between passes.
KEPT_NUMBERS = 1 << 25
#: Longer texts are resampled in so many pieces, each of sentences that follow each other.
MOST_PIECES = 4096

#: One side of a comparison: an encoder's label, and which text it reads ("floor" is the target's, random).
_Side: TypeAlias = tuple[str, str]
_View: TypeAlias = tuple[_Side, int]
_Pair: TypeAlias = tuple[_View, _View]


@dataclass(frozen=True)
class CkaOptions:
    """`pooling` is the mean of a sentence's pieces, or its first special token. `same_layer` compares equal
    layers only: no heat maps, and far less to compute. `rounds` are those of the bootstrap."""

    pooling: SentencePooling = "mean"
    same_layer: bool = False
    rounds: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise BadSetting(f"rounds is {self.rounds}", remedy="1 or more")
        if self.pooling not in get_args(SentencePooling):
            raise BadSetting(f"unknown pooling {self.pooling!r}", remedy="one of mean, first")


def cka(
    encoders: Mapping[str, Encoder],
    bitext: Bitext,
    layers: Mapping[str, Sequence[int]] | Sequence[int],
    *,
    floors: Mapping[str, Encoder] | None = None,
    between: Collection[str] | None = None,
    options: CkaOptions = CkaOptions(),
    recipe: str = "",
) -> Measurement:
    """Linear and debiased CKA of every encoder's two languages, by layer and layer by layer.

    `floors` are encoders to read the target side in place of those of the same label. `between` are the
    languages (both, unless given) in which encoders are also compared with the first. A sentence that one of
    the encoders knows nothing of takes part for none. The row without a layer is the mean of the layers.
    """
    chosen = layers_of(encoders, layers)
    check_languages(encoders, bitext.languages)
    if len(bitext) < FEWEST:
        raise BadInput(
            f"{len(bitext)} sentence pairs: CKA needs {FEWEST} at least", where=bitext.origin or None
        )
    text = _Text(bitext, encoders, floors or {}, chosen, options.pooling)
    lines = list(_lines(text, bitext.languages if between is None else between))
    found = _compute(text, lines, options)
    parts = [_measured(some, text, found, options, recipe) for some in _together(lines)]
    return Measurement(
        [result for part in parts for result in part.results],
        {key: items for part in parts for key, items in part.items.items()},
        {"sentences": len(bitext), "scored": found.count, "no vector": len(bitext) - found.count},
        {"heatmaps": [_heatmap(line, found, place) for line in lines for place in (0, 1) if line.mapped]}
        if not options.same_layer
        else {},
    )


# ------------------------------------------------------------------------------------------ the text


class _Text:
    """All sides of a comparison, read block by block: the encoders over both languages, and the floors."""

    def __init__(
        self,
        bitext: Bitext,
        encoders: Mapping[str, Encoder],
        floors: Mapping[str, Encoder],
        layers: Mapping[str, tuple[int, ...]],
        pooling: SentencePooling,
    ) -> None:
        self.bitext, self.encoders, self.floors, self.pooling = bitext, encoders, floors, pooling
        self.layers = layers
        source, target = bitext.source, bitext.target
        self.sides: dict[_Side, tuple[Encoder, Sentences]] = {}
        for label, encoder in encoders.items():
            self.sides[label, "source"] = encoder, source
            self.sides[label, "target"] = encoder, target
        for label, encoder in floors.items():
            self.sides[label, "floor"] = encoder, target
        largest = max((one.depth + 1) * one.width for one, _ in self.sides.values())
        self._rows = max(1, BLOCK_NUMBERS // largest)
        self._kept: list[tuple[Longs, dict[_View, Floats]]] = []

    @property
    def widths(self) -> dict[_View, int]:
        return {
            (side, layer): encoder.width
            for side, (encoder, _) in self.sides.items()
            for layer in self.layers[side[0]]
        }

    def language(self, side: _Side) -> str:
        return self.sides[side][1].language

    def blocks(self, advance: Advance) -> Iterator[tuple[Longs, dict[_View, Floats]]]:
        """Numbers of sentences that all encoders know, and their vectors. Shape: (n,), each (n, d)."""
        if self._kept:
            for block in self._kept:
                yield block
                advance(len(block[0]))
            return
        small = len(self.bitext) * sum(self.widths.values()) <= KEPT_NUMBERS
        rows = np.arange(len(self.bitext))
        sides = [self._side(side) for side in self.sides]
        for first, vectors in zip(range(0, len(rows), self._rows), zip(*sides, strict=True), strict=True):
            block = self._known(rows[first : first + self._rows], vectors)
            if small:
                self._kept.append(block)
            yield block
            advance(len(vectors[0][0]))

    def _side(self, side: _Side) -> Iterator[Floats]:
        encoder, sentences = self.sides[side]
        layers = self.layers[side[0]]
        return sentence_blocks(encoder, sentences, self._rows, layers=layers, pooling=self.pooling)

    def _known(self, rows: Longs, sides: Sequence[Floats]) -> tuple[Longs, dict[_View, Floats]]:
        """The sentences of a block that all encoders know, with their vectors."""
        known = np.logical_and.reduce([(vectors != 0).any((0, 2)) for vectors in sides])
        kept = sides if known.all() else [vectors[:, known] for vectors in sides]
        return rows[known], {
            (side, layer): part
            for side, vectors in zip(self.sides, kept, strict=True)
            for layer, part in zip(self.layers[side[0]], vectors, strict=True)
        }


# ----------------------------------------------------------------------------------- what is compared


@dataclass(frozen=True)
class _Line:
    """Two sides to compare, and what to call the result. `mapped` ones get a heat map."""

    label: str
    languages: tuple[str, str]
    left: _Side
    right: _Side
    names: tuple[str, str]
    same: tuple[_Pair, ...]
    every: tuple[_Pair, ...]
    fingerprint: str

    @property
    def mapped(self) -> bool:
        return self.right[1] != "floor"

    @property
    def task(self) -> str:
        return BETWEEN if self.left[1] == self.right[1] else TASK

    @property
    def alone(self) -> bool:
        """Whether it is compared with no other line: all but the languages of encoders."""
        return self.task == BETWEEN or not self.mapped


def _lines(text: _Text, between: Collection[str]) -> Iterator[_Line]:
    first = next(iter(text.encoders))
    source, target = text.bitext.languages
    for label in text.encoders:
        yield _line(text, label, (label, "source"), (label, "target"), (source, target))
    for label in text.floors:
        yield _line(text, f"{label} floor", (label, "source"), (label, "floor"), (source, target))
    for which in ("source", "target"):
        language = text.language((first, which))
        if language not in between or (which == "target" and source == target):
            continue
        for label in list(text.encoders)[1:]:
            yield _line(text, f"{first} × {label}", (first, which), (label, which), (first, label))


def _line(text: _Text, label: str, left: _Side, right: _Side, names: tuple[str, str]) -> _Line:
    rows, columns = text.layers[left[0]], text.layers[right[0]]
    same = tuple(((left, layer), (right, layer)) for layer in rows if layer in columns)
    every = tuple(((left, a), (right, b)) for a in rows for b in columns)
    languages = text.language(left), text.language(right)
    used = [text.sides[side][0].fingerprint[:12] for side in (left, right)]
    return _Line(label, languages, left, right, names, same, every, "+".join(dict.fromkeys(used)))


def _together(lines: Sequence[_Line]) -> list[list[_Line]]:
    """Lines that are compared with each other: the languages of all encoders; any other line is alone."""
    return [[line for line in lines if not line.alone], *([line] for line in lines if line.alone)]


# -------------------------------------------------------------------------------------- the computing


@dataclass(frozen=True, eq=False)
class _Found:
    """CKA of every pair, and of pairs of equal layers a value a piece of text, whose mean is the CKA.

    Shape: each figure (2,), each of values (2, pieces), start (pieces,): each piece's first sentence.
    """

    count: int
    figures: dict[_Pair, Doubles]
    values: dict[_Pair, Doubles]
    start: Longs


def _compute(text: _Text, lines: Sequence[_Line], options: CkaOptions) -> _Found:
    same = dict.fromkeys(pair for line in lines for pair in line.same)
    every = (pair for line in lines if line.mapped and not options.same_layer for pair in line.every)
    parts = list(passes(list(dict.fromkeys([*same, *every])), text.widths, HELD_NUMBERS))
    again = sum(any(pair in same for pair in part) for part in parts)
    figures: dict[_Pair, Doubles] = {}
    values: dict[_Pair, Doubles] = {}
    pieces = _Pieces(len(text.bitext))
    with bar("CKA", (len(parts) + again) * len(text.bitext), "sentences") as advance:
        for part in parts:
            sums = ViewSums(part)
            for _, views in text.blocks(advance):
                if len(next(iter(views.values()))):
                    sums.add(views)
            _check(sums, text)
            figures |= {pair: sums.cka(*pair) for pair in part}
            asked = [pair for pair in part if pair in same]
            if asked:
                values |= _values(sums, text, asked, pieces, advance)
    return _Found(sums.count, figures, values, pieces.start[pieces.sizes > 0])


def _check(sums: ViewSums[_View], text: _Text) -> None:
    for side, layer in sums.views:
        if reason := sums.trouble((side, layer)):
            if sums.count < FEWEST:
                raise BadInput(
                    f"{sums.count} sentences that every encoder has a vector for: CKA needs {FEWEST} at least"
                )
            raise BadInput(
                f"encoder {side[0]!r} at layer {layer}, {text.language(side)}: {reason}",
                remedy="leave this layer out; a first special token tells nothing at layer 0",
            )


class _Pieces:
    """Sentences one by one, or in pieces where they are very many.

    Shape: of (sentences,), start (pieces,), sizes (pieces,): sentences of each that all encoders know.
    """

    def __init__(self, sentences: int) -> None:
        self.count = min(sentences, MOST_PIECES)
        self.of = np.arange(sentences) * self.count // sentences
        self.start = np.searchsorted(self.of, np.arange(self.count))
        self.sizes = np.zeros(self.count)


def _values(
    sums: ViewSums[_View], text: _Text, pairs: Sequence[_Pair], pieces: _Pieces, advance: Advance
) -> dict[_Pair, Doubles]:
    """A value a piece of text, whose mean is the figure. Shape: each (2, pieces)."""
    without = {pair: np.zeros((2, pieces.count)) for pair in pairs}
    pieces.sizes = np.zeros(pieces.count)
    for rows, views in text.blocks(advance):
        at = pieces.of[rows]
        pieces.sizes += np.bincount(at, minlength=pieces.count)
        for pair, figures in sums.without_each(views, pairs):
            without[pair] += [np.bincount(at, row, pieces.count) for row in figures]
    return {pair: jackknife(sums.cka(*pair), total, pieces.sizes) for pair, total in without.items()}


# ---------------------------------------------------------------------------------------- the figures


def _measured(
    lines: Sequence[_Line], text: _Text, found: _Found, options: CkaOptions, recipe: str
) -> Measurement:
    """Figures of lines that are compared with the first of them, of both variants."""
    parts = []
    for place, variant in enumerate(VARIANTS):
        fared: dict[tuple[str, Any], Doubles] = {}
        for line in lines:
            held = {pair[0][1]: found.values[pair][place] for pair in line.same}
            if len(held) > 1:
                fared[line.label, None] = np.mean(list(held.values()), 0)[None]
            fared |= {(line.label, layer): values[None] for layer, values in held.items()}
        first = lines[0]
        about = Result(first.task, METRIC, 0.0, first.languages, "", variant=variant, seed=options.seed)
        signed = {
            "variant": variant,
            "pooling": options.pooling,
            "data": text.bitext.fingerprint[:12],
            "recipe": recipe[:12] or None,
        }
        scorer = Scorer(
            about,
            {line.label: line.fingerprint for line in lines},
            {"sentence": found.start},
            found.start,
            signed,
            ways={"": [0]},
            rounds=options.rounds,
        )
        parts.append(scorer.measurement(fared))
    # The same line in another language has the same name.
    where = "-".join(lines[0].languages)
    results = [_told(result, found.count, where) for part in parts for result in part.results]
    items = {f"{where}/{key}": held for part in parts for key, held in part.items.items()}
    return Measurement(results, items)


def _told(result: Result, count: int, where: str) -> Result:
    """With the number of its sentences; an interval of CKA itself ends where CKA does."""
    if result.baseline is not None or result.low is None or result.high is None:
        return replace(result, count=count)
    low = max(result.low, 0.0 if result.variant == VARIANTS[0] else -1.0)
    return replace(result, count=count, items=f"{where}/{result.items}", low=low, high=min(result.high, 1.0))


def _heatmap(line: _Line, found: _Found, place: int) -> dict[str, Any]:
    """Every layer of one side with every layer of the other."""
    rows, columns = (sorted({pair[end][1] for pair in line.every}) for end in (0, 1))
    values = [
        [round(float(found.figures[(line.left, a), (line.right, b)][place]), 4) for b in columns]
        for a in rows
    ]
    low = min(map(min, values))
    return {
        "title": f"{line.label}, {by_name(list(dict.fromkeys(line.languages)))}",
        "task": TASK,
        "variant": VARIANTS[place],
        "languages": list(line.languages),
        "rows": {"name": f"layer of {line.names[0]}", "ticks": list(map(str, rows))},
        "columns": {"name": f"layer of {line.names[1]}", "ticks": list(map(str, columns))},
        "values": values,
        **({"low": low, "high": 1.0} if low < 0 else {}),
    }
