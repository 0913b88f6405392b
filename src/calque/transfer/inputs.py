"""Items of a task as rows that an encoder reads, and the units that a head is given.

Long texts are read in windows with context: every word is scored in exactly one of them, the one in which it
has the most context on its poorer side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from calque.encoders.rows import Row, Rows
from calque.encoders.spans import Layout
from calque.encoders.tokens import PairFrame, Reader
from calque.errors import BadSetting
from calque.text.labelled.items import Question, TextPair
from calque.types import Flags, Ints, Longs, Sentences

_NO_UNITS = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows, and their units as the sequences that a head is given.

    Shape: first (sequences + 1,) into the units in `order` (units,); item (sequences,) says whose sequence it
    is; spoken (units,) is each unit's language as a place in `languages`. `counts` tells what was cut.
    """

    rows: Rows
    order: Longs
    first: Longs
    item: Longs
    languages: tuple[str, ...]
    spoken: Longs
    counts: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.item)

    @property
    def lengths(self) -> Longs:
        """Units in each sequence. Shape: (sequences,)."""
        return np.diff(self.first)


class Window(NamedTuple):
    """A stretch of pieces."""

    start: int
    end: int


def windows(length: int, room: int, overlap: int) -> list[Window]:
    """Stretches of at most `room` pieces that cover a text; neighbours share `overlap` or more.

    >>> windows(10, 6, 2), windows(5, 6, 2)
    ([Window(start=0, end=6), Window(start=4, end=10)], [Window(start=0, end=5)])
    """
    if length <= room:
        return [Window(0, length)]
    if not 0 <= overlap < room:
        raise BadSetting(f"windows of {room} pieces share {overlap}", remedy=f"--overlap 0 to {room - 1}")
    starts = [*range(0, length - room, room - overlap), length - room]
    return [Window(start, start + room) for start in starts]


def owners(start: Longs, end: Longs, held: Sequence[Window]) -> Longs:
    """The window that each word is scored in. Shape: start, end (words,) to (words,).

    A word that no window holds whole belongs to the one that holds most of it from its beginning on.
    """
    length = held[-1].end
    context = []
    for window in held:
        left = np.where(window.start > 0, start - window.start, length)
        right = np.where(window.end < length, window.end - end, length)
        begins = (start >= window.start) & (start < window.end)
        whole = begins & (end <= window.end)
        part = np.where(begins, window.end - start, 0) - length
        context.append(np.where(whole, np.minimum(left, right), part))
    return np.asarray(np.argmax(np.stack(context), axis=0), np.int64)


# --------------------------------------------------------------------------------------------- words


def word_inputs(
    texts: Sequence[Sequence[str]], language: str, reader: Reader, *, longest: int, overlap: int
) -> Inputs:
    """Sentences whose words are the units, a sequence each.

    A word that the tokenizer makes nothing of has the vector of the piece after it.
    """
    layout = reader.layout(Sentences.of(language, texts))
    frame = layout.frame
    room = min(longest, reader.limit) - len(frame.head) - len(frame.tail)
    if room < 1:
        raise BadSetting(
            f"rows of {longest} pieces leave no room for words",
            remedy="a higher --window, within --max-length",
        )
    rows: list[Row] = []
    place: list[Longs] = []
    counts: Counter[str] = Counter()
    for number in range(len(layout)):
        made, order = _windowed(layout, number, room, overlap)
        place.append(order)
        rows += made
        counts["in several windows"] += len(made) > 1
    lengths = np.array([len(text) for text in texts], np.int64)
    first = np.concatenate([[0], np.cumsum(lengths)])
    order = np.concatenate(
        [np.zeros(0, np.int64), *(own + at for own, at in zip(place, first, strict=False))]
    )
    whole = Rows.of(rows)
    empty = int((layout.end <= layout.start).sum())
    told = {"words without pieces": empty, **counts}
    return Inputs(
        whole,
        order,
        first,
        np.arange(len(texts)),
        (language,),
        np.zeros(len(whole.units), np.int64),
        {name: count for name, count in told.items() if count},
    )


def _windowed(layout: Layout, number: int, room: int, overlap: int) -> tuple[list[Row], Longs]:
    """The rows of one sentence, and where each of its words is among their units."""
    frame = layout.frame
    pieces = layout.pieces[layout.offsets[number] : layout.offsets[number + 1]]
    words = slice(layout.words[number], layout.words[number + 1])
    head = len(frame.head)
    start, end = layout.start[words] - head, layout.end[words] - head
    end = np.maximum(end, start + 1)
    held = windows(len(pieces), room, overlap)
    if len(held) == 1:
        return [_row(frame.head, pieces, frame.tail, start, end)], np.arange(len(start))
    # A word without pieces at the very end belongs where the last piece does.
    owner = owners(np.minimum(start, len(pieces) - 1), np.minimum(end, len(pieces)), held)
    rows = [
        _row(
            frame.head,
            pieces[window.start : window.end],
            frame.tail,
            start[owner == k] - window.start,
            np.maximum(np.minimum(end[owner == k], window.end), start[owner == k] + 1) - window.start,
        )
        for k, window in enumerate(held)
    ]
    return rows, np.argsort(np.argsort(owner, kind="stable"), kind="stable")


def _row(head: Ints, pieces: Ints, tail: Ints, start: Longs, end: Longs) -> Row:
    whole = np.concatenate([head, pieces, tail])
    last = max(1, len(whole))
    ends = np.stack([(start + len(head)).clip(0, last - 1), (end + len(head)).clip(1, last)], 1)
    return Row(whole, np.zeros_like(whole), ends.astype(np.int64))


# --------------------------------------------------------------------------------------------- pairs


def pair_inputs(
    pairs: Sequence[TextPair], reader: Reader, *, longest: int, every_piece: bool = False
) -> Inputs:
    """Two texts in a row; its one unit is the first special token, or its units are all its pieces.

    What does not fit is cut from the end of the longer text.
    """
    texts = [
        reader.read([pair.first for pair in pairs], first=True),
        reader.read([pair.second for pair in pairs]),
    ]
    frame = reader.pair
    room = min(longest, reader.limit) - frame.size
    if room < 2:
        raise BadSetting(
            f"rows of {longest} pieces leave no room for two texts",
            remedy="a higher --window, within --max-length",
        )
    rows, spoken, cut = [], [], 0
    codes = _codes([pair.languages for pair in pairs])
    for pair, first, second in zip(pairs, *texts, strict=True):
        sizes = shortened(len(first), len(second), room)
        cut += sizes != (len(first), len(second))
        row, text = _pair_row(frame, first[: sizes[0]], second[: sizes[1]])
        own = np.array([codes[language] for language in pair.languages])
        ends = _each_piece(len(row.pieces)) if every_piece else np.array([[0, 1]], np.int64)
        rows.append(Row(row.pieces, row.kind, ends))
        spoken.append(own[text[ends[:, 0]]])
    return _one_sequence_a_row(
        rows, np.arange(len(rows)), codes, spoken, {"pairs cut to fit": cut} if cut else {}
    )


def shortened(first: int, second: int, room: int) -> tuple[int, int]:
    """Lengths of two texts that fit together, the longer one cut; as tokenizers cut the longest first.

    >>> shortened(10, 3, 8), shortened(10, 10, 8), shortened(2, 3, 8), shortened(10, 10, 9)
    ((5, 3), (4, 4), (2, 3), (4, 5))
    """
    if first + second <= room:
        return first, second
    shorter = min(first, second, room // 2)
    return (shorter, room - shorter) if first <= second else (room - shorter, shorter)


def _pair_row(frame: PairFrame, first: Ints, second: Ints) -> tuple[Row, Longs]:
    """A row of two texts, and to which of them each piece belongs."""
    parts = (frame.head, first, frame.middle, second, frame.tail)
    sizes = [len(part) for part in parts]
    kind = np.repeat(np.array(frame.kinds, np.int32), sizes)
    return Row(np.concatenate(parts), kind, _NO_UNITS), np.repeat([0, 0, 0, 1, 1], sizes)


def _codes(languages: Sequence[tuple[str, str]]) -> dict[str, int]:
    return {code: place for place, code in enumerate(dict.fromkeys(c for pair in languages for c in pair))}


def _each_piece(count: int) -> Longs:
    start = np.arange(count)
    return np.stack([start, start + 1], 1)


def _one_sequence_a_row(
    rows: Sequence[Row],
    item: Longs,
    codes: Mapping[str, int],
    spoken: Sequence[Longs],
    counts: Mapping[str, int],
) -> Inputs:
    whole = Rows.of(rows)
    return Inputs(
        whole,
        np.arange(len(whole.units)),
        whole.first,
        item,
        tuple(codes),
        np.concatenate([np.zeros(0, np.int64), *spoken]),
        counts,
    )


# ----------------------------------------------------------------------------------------- questions


@dataclass(frozen=True, eq=False)
class QuestionInputs:
    """Questions with windows of their paragraphs; every piece is a unit, every row a sequence.

    Shape: allowed (units,) whether a piece may be in an answer (the first of a row stands for none in this
    window); begin, end (units,) are its characters in the paragraph, 0 elsewhere.
    """

    inputs: Inputs
    allowed: Flags
    begin: Longs
    end: Longs


def question_inputs(
    questions: Sequence[Question], reader: Reader, *, longest: int, overlap: int, question_pieces: int = 64
) -> QuestionInputs:
    """Every paragraph in windows beside its question; a question is cut to `question_pieces`."""
    asked = reader.read([question.question for question in questions], first=True)
    known: dict[str, tuple[Ints, Longs]] = {}
    codes = _codes([question.languages for question in questions])
    rows, item, spoken, ends, allowed = [], [], [], [], []
    counts: Counter[str] = Counter()
    for number, (question, pieces) in enumerate(zip(questions, asked, strict=True)):
        if question.context not in known:
            known[question.context] = reader.characters(question.context)
        text, places = known[question.context]
        counts["questions cut to fit"] += len(pieces) > question_pieces
        pieces = pieces[:question_pieces]
        room = min(longest, reader.limit) - reader.pair.size - len(pieces)
        if room < 8:
            raise BadSetting(
                f"rows of {longest} pieces leave {room} for a paragraph",
                remedy="a higher --window, within --max-length",
            )
        held = windows(len(text), room, overlap if overlap < room else room // 2)
        counts["paragraphs in several windows"] += len(held) > 1
        for window in held:
            row, side = _pair_row(reader.pair, pieces, text[window.start : window.end])
            begin = len(reader.pair.head) + len(pieces) + len(reader.pair.middle)
            inside = slice(begin, begin + window.end - window.start)
            own, may = np.zeros((len(row.pieces), 2), np.int64), np.zeros(len(row.pieces), np.bool_)
            own[inside], may[inside], may[0] = places[window.start : window.end], True, True
            rows.append(Row(row.pieces, row.kind, _each_piece(len(row.pieces))))
            item.append(number)
            spoken.append(np.array([codes[code] for code in question.languages])[side])
            ends.append(own)
            allowed.append(may)
    told = {name: count for name, count in counts.items() if count}
    inputs = _one_sequence_a_row(rows, np.array(item, np.int64), codes, spoken, told)
    flat = np.concatenate([_NO_UNITS, *ends])
    return QuestionInputs(inputs, np.concatenate([np.zeros(0, np.bool_), *allowed]), flat[:, 0], flat[:, 1])
