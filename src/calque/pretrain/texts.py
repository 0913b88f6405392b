"""Text as rows for masked language modelling: sentences, streams, sentences with words replaced, pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from calque.encoders.rows import Readable
from calque.encoders.spans import Layout, ragged
from calque.encoders.tokens import PairFrame, Reader
from calque.errors import BadInput
from calque.pretrain.switching import Switcher
from calque.recipe import Choice
from calque.types import Flags, Ints, Longs, Sentences


class Rows(Choice):
    """What a row is: sentences (one each), or streams (as many as fit, cut wherever a row is full)."""

    SENTENCES = "sentences"
    STREAMS = "streams"


class Shown(NamedTuple):
    """Rows before anything is hidden.

    Shape: all (n, longest). `kinds` are segments, `places` positions where they do not count from 0 on.
    """

    pieces: Longs
    there: Flags
    kinds: Longs | None = None
    places: Longs | None = None

    def take(self, rows: Longs | slice) -> Shown:
        """Some of the rows."""
        kinds, places = (None if one is None else one[rows] for one in (self.kinds, self.places))
        return Shown(self.pieces[rows], self.there[rows], kinds, places)


class MaskedText(Protocol):
    """Rows to learn from. Shape: lengths (rows,), in pieces."""

    @property
    def lengths(self) -> Longs: ...

    def shown(self, chosen: Longs, pad: int, rng: np.random.Generator) -> Shown:
        """These rows. Shape: chosen (n,)."""
        ...


@dataclass(frozen=True, eq=False)
class Plain:
    """Rows as they are."""

    held: Readable

    @property
    def lengths(self) -> Longs:
        return self.held.lengths

    def shown(self, chosen: Longs, pad: int, rng: np.random.Generator) -> Shown:
        return Shown(*self.held.rows(chosen, pad), self.held.kinds(chosen))


class Switched:
    """Sentences of which some words are translations, other ones each time."""

    def __init__(self, text: Sentences, reader: Reader, switcher: Switcher) -> None:
        self.text, self.reader, self.switcher = text, reader, switcher
        self.lengths = reader.layout(text).lengths

    def shown(self, chosen: Longs, pad: int, rng: np.random.Generator) -> Shown:
        layout = self.reader.layout(self.switcher.switch(self.text.select(chosen), rng))
        return Shown(*layout.rows(np.arange(len(chosen)), pad))


@dataclass(frozen=True, eq=False)
class Paired:
    """Sentences beside their translations in one row, as translation language modelling has them.

    Positions of the second sentence begin again at 0. Of a pair that is too long both ends are cut, in
    proportion. Shape: kept (2, pairs), pieces of each that are read.
    """

    sides: tuple[Layout, Layout]
    frame: PairFrame
    kept: Longs

    @classmethod
    def of(cls, source: Layout, target: Layout, frame: PairFrame, limit: int) -> Paired:
        if len(source) != len(target):
            raise BadInput(f"{len(source)} sentences beside {len(target)}")
        whole = np.stack([np.diff(source.offsets), np.diff(target.offsets)])
        room = limit - frame.size
        first = np.maximum(1, whole[0] * room // np.maximum(1, whole.sum(0)))
        cut = np.stack([first, room - first])
        return cls((source, target), frame, np.where(whole.sum(0) > room, np.minimum(whole, cut), whole))

    @property
    def lengths(self) -> Longs:
        return np.asarray(self.kept.sum(0) + self.frame.size, np.int64)

    def shown(self, chosen: Longs, pad: int, rng: np.random.Generator) -> Shown:
        a, b = self.kept[:, chosen]
        head, middle = len(self.frame.head), len(self.frame.middle)
        starts = np.stack([np.full_like(a, head), head + a + middle])
        column = np.arange(max(1, int(self.lengths[chosen].max(initial=1))))
        pieces = np.full((len(chosen), len(column)), pad, np.int64)
        for side, kept, start in zip(self.sides, (a, b), starts, strict=True):
            row, at = ragged(start, kept)
            pieces[row, at] = side.pieces[ragged(side.offsets[chosen], kept)[1]]
        for part, start in (
            (self.frame.head, np.zeros_like(a)),
            (self.frame.middle, starts[0] + a),
            (self.frame.tail, starts[1] + b),
        ):
            _put(pieces, part, start)
        second = column >= starts[1][:, None]
        kinds = np.where(second, self.frame.kinds[3], self.frame.kinds[1])
        there = column < self.lengths[chosen][:, None]
        places = np.where(second, column - starts[1][:, None], column)
        return Shown(pieces, there, kinds if kinds.any() else None, places)


def _put(pieces: Longs, part: Ints, start: Longs) -> None:
    """Write some pieces into every row, from its own place on."""
    for offset, piece in enumerate(part.tolist()):
        pieces[np.arange(len(pieces)), start + offset] = piece


def streamed(layout: Layout, between: Ints) -> Layout:
    """All sentences end to end, with these pieces after each, cut into rows that are full.

    Places of words are not kept.
    """
    ends, room = layout.offsets[1:], layout.frame.room
    pieces = np.insert(layout.pieces, np.repeat(ends, len(between)), np.tile(between, len(ends)))
    offsets = np.append(np.arange(0, len(pieces), room), len(pieces)).astype(np.int64)
    none = np.zeros(0, np.int64)
    return Layout(layout.frame, pieces, offsets, np.zeros(len(offsets), np.int64), none, none)
