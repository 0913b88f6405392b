"""Where words lie among pieces: the pure part of reading text into an encoder.

A word is always cut into the same pieces, so each distinct word is tokenised once and sentences are laid out
from the table by array operations alone. Words cut by truncation, or cut into nothing, have no span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calque.errors import BadInput
from calque.types import FIRST_SPECIAL, LAST_SPECIAL, Flags, Ints, Longs, Sentences, Vocabulary, WordIndex

#: Cuts each of these words into piece ids.
Cutter = Callable[[Sequence[str]], Sequence[Sequence[int]]]


def ragged(start: Longs, count: Longs) -> tuple[Longs, Longs]:
    """Indexes of many ranges laid end to end, and which range each belongs to.

    Shape: start, count (n,) to owner, index (sum of count,).

    >>> owner, index = ragged(np.array([5, 0]), np.array([2, 1]))
    >>> owner.tolist(), index.tolist()
    ([0, 0, 1], [5, 6, 0])
    """
    owner = np.repeat(np.arange(len(count)), count)
    before = np.cumsum(count) - count
    return owner, np.arange(len(owner)) + np.asarray(start - before, np.int64)[owner]


@dataclass(frozen=True, eq=False)
class Frame:
    """What surrounds the words of every sentence.

    Shape: head (special tokens, then the prefix), tail (special tokens). `limit` bounds a whole row.
    `first` and `last` say whether there is a special token at that end.
    """

    head: Ints
    tail: Ints
    limit: int
    first: bool
    last: bool

    @property
    def room(self) -> int:
        """How many pieces of text fit."""
        return self.limit - len(self.head) - len(self.tail)


class PieceTable:
    """The pieces of a vocabulary's words, cut when first needed.

    Shape: start, count, skip (types,), pieces (pieces,). `skip` is how many pieces at a word's start are no
    more than a space mark, such as a lone `▁`; a word of nothing else has no span.
    """

    def __init__(self, types: int, cut: Cutter, blank: Ints) -> None:
        self._cut, self._blank = cut, blank
        self.start = np.full(types, -1, np.int64)
        self.count = np.zeros(types, np.int64)
        self.skip = np.zeros(types, np.int64)
        self.pieces = np.zeros(0, np.int32)

    def fill(self, ids: Ints, vocabulary: Vocabulary) -> None:
        """Cut those of these words that were not cut yet."""
        new = np.unique(ids[self.start[ids] < 0])
        if not len(new):
            return
        strings = vocabulary.strings
        cut = self._cut([strings[i] for i in new])
        count = np.fromiter(map(len, cut), np.int64, len(cut))
        flat = np.fromiter((piece for word in cut for piece in word), np.int32, int(count.sum()))
        self.start[new] = len(self.pieces) + np.cumsum(count) - count
        self.count[new] = count
        self.skip[new] = leading(np.isin(flat, self._blank), count)
        self.pieces = np.concatenate([self.pieces, flat])


def leading(flags: Flags, count: Longs) -> Longs:
    """How many flags at the start of each run are set. Shape: (sum of count,), (n,) to (n,).

    >>> leading(np.array([True, False, True, True, True]), np.array([3, 0, 2])).tolist()
    [1, 0, 2]
    """
    end = np.cumsum(count)
    unset = np.append(np.flatnonzero(~flags), len(flags))
    first_unset = unset[np.searchsorted(unset, end - count)]
    return np.asarray(np.minimum(first_unset, end) - (end - count), np.int64)


@dataclass(frozen=True, eq=False)
class Spans:
    """Runs of pieces to pool. Shape: all (n,); a run is pieces start..end of a sentence's row."""

    sentence: Longs
    start: Longs
    end: Longs

    def __len__(self) -> int:
        return len(self.sentence)

    def take(self, rows: Flags | Longs) -> Spans:
        return Spans(self.sentence[rows], self.start[rows], self.end[rows])


@dataclass(frozen=True, eq=False)
class Found:
    """What became of the words asked for. Shape: spans of the present words; the flags (asked,)."""

    spans: Spans
    present: Flags
    dropped: dict[str, int]


@dataclass(frozen=True, eq=False)
class Layout:
    """Sentences as rows of pieces inside a frame.

    Shape: pieces (all pieces of text,), offsets (sentences + 1,) into it; words (sentences + 1,) into start
    and end (all words,), which are places in a word's row. Rows are cut to the frame only when made.
    """

    frame: Frame
    pieces: Ints
    offsets: Longs
    words: Longs
    start: Longs
    end: Longs

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def kept(self) -> Longs:
        """Pieces of text in each row after truncation. Shape: (sentences,)."""
        return np.minimum(np.diff(self.offsets), self.frame.room)

    @property
    def lengths(self) -> Longs:
        """Pieces in each row, frame included. Shape: (sentences,)."""
        return self.kept + len(self.frame.head) + len(self.frame.tail)

    def find(self, asked: WordIndex) -> Found:
        """Spans of these words and special tokens, and why some have none."""
        sentence, word = (np.asarray(column, np.int64) for column in asked)
        self._check(sentence, word)
        start, end = np.zeros_like(word), np.zeros_like(word)
        plain = word >= 0
        place = self.words[sentence[plain]] + word[plain]
        start[plain], end[plain] = self.start[place], self.end[place]
        for mark, there, at in self._specials(sentence):
            chosen = (word == mark) & there
            start[chosen], end[chosen] = at[chosen], at[chosen] + 1
        whole, cut = end > start, plain & (end > len(self.frame.head) + self.frame.room)
        present = whole & ~cut
        dropped = {"truncated": int((whole & cut).sum()), "empty": int((plain & ~whole).sum())}
        if missing := int((~plain & ~whole).sum()):
            dropped["no special token"] = missing
        return Found(Spans(sentence, start, end).take(present), present, dropped)

    def _specials(self, sentence: Longs) -> Iterator[tuple[int, bool, Longs]]:
        yield FIRST_SPECIAL, self.frame.first, np.zeros_like(sentence)
        yield LAST_SPECIAL, self.frame.last, self.lengths[sentence] - 1

    def _check(self, sentence: Longs, word: Longs) -> None:
        wrong = np.flatnonzero((word < LAST_SPECIAL) | (word >= np.diff(self.words)[sentence]))
        if len(wrong):
            s, w = int(sentence[wrong[0]]), int(word[wrong[0]])
            have = int(self.words[s + 1] - self.words[s])
            raise BadInput(f"word {w} of sentence {s} asked for; it has {have} words, counted from 0")

    def texts(self) -> Spans:
        """The text of every sentence, without specials and prefix."""
        start = np.full(len(self), len(self.frame.head), np.int64)
        return Spans(np.arange(len(self)), start, start + self.kept)

    def rows(self, chosen: Longs, pad: int) -> tuple[Longs, Flags]:
        """These sentences as one padded matrix. Shape: (n,) to pieces, mask (n, longest).

        A row is never wholly masked: attention over nothing is not a number.
        """
        head, tail, kept = self.frame.head, self.frame.tail, self.kept[chosen]
        lengths = self.lengths[chosen]
        matrix = np.full((len(chosen), max(1, int(lengths.max(initial=1)))), pad, np.int64)
        matrix[:, : len(head)] = head
        row, place = ragged(self.offsets[chosen], kept)
        column = ragged(np.full(len(kept), len(head)), kept)[1]
        matrix[row, column] = self.pieces[place]
        for i, piece in enumerate(tail):
            matrix[np.arange(len(chosen)), len(head) + kept + i] = piece
        return matrix, np.arange(matrix.shape[1]) < np.maximum(lengths, 1)[:, None]

    def kinds(self, chosen: Longs) -> None:
        """One text a row is all of one segment."""


def joined(first: Sentences, second: Sentences) -> Sentences:
    """The sentences of two sides that share a vocabulary, one side after the other."""
    tags = None
    if first.tags is not None and second.tags is not None:
        tags = np.concatenate([first.tags, second.tags])
    offsets = np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]])
    return replace(first, ids=np.concatenate([first.ids, second.ids]), offsets=offsets, tags=tags)


def only(sentences: Sentences, words: WordIndex) -> tuple[Sentences, WordIndex]:
    """The sentences that hold these words, and the words renumbered to them."""
    check_sentences(words, len(sentences))
    used, place = np.unique(np.asarray(words.sentence, np.int64), return_inverse=True)
    return sentences.select(used), WordIndex(place.astype(np.int32), words.word)


def check_sentences(words: WordIndex, count: int) -> None:
    """Refuse words of sentences that are not there."""
    wrong = (words.sentence < 0) | (words.sentence >= count)
    if wrong.any():
        first = words.sentence[wrong][0]
        raise BadInput(f"sentence {first} asked for; there are {count}, counted from 0")


def lay_out(sentences: Sentences, table: PieceTable, frame: Frame) -> Layout:
    """Put every sentence's pieces in a row and mark where its words lie."""
    ids = np.asarray(sentences.ids)
    table.fill(ids, sentences.vocabulary)
    count = table.count[ids]
    pieces = table.pieces[ragged(table.start[ids], count)[1]]
    edges = np.concatenate([[0], np.cumsum(count)])
    offsets = edges[sentences.offsets]
    shift = len(frame.head) - np.repeat(offsets[:-1], sentences.lengths)
    start, end = edges[:-1] + table.skip[ids] + shift, edges[1:] + shift
    return Layout(frame, pieces, offsets, np.asarray(sentences.offsets, np.int64), start, end)


def as_pieces(sentences: Sentences, table: PieceTable, names: Callable[[list[int]], list[str]]) -> Sentences:
    """The same text with pieces for words; a piece takes the tag of its word."""
    ids = np.asarray(sentences.ids)
    table.fill(ids, sentences.vocabulary)
    count = table.count[ids]
    owner, place = ragged(table.start[ids], count)
    used, inverse = np.unique(table.pieces[place], return_inverse=True)
    edges = np.concatenate([[0], np.cumsum(count)])
    return replace(
        sentences,
        ids=inverse.astype(np.int32),
        offsets=edges[sentences.offsets],
        vocabulary=Vocabulary.of(names(used.tolist())),
        tags=None if sentences.tags is None else sentences.tags[owner],
        unit="piece",
    )


def batches(lengths: Longs, budget: int) -> Iterator[Longs]:
    """Rows grouped so that a padded batch holds at most `budget` pieces (or one row), longest first.

    >>> [rows.tolist() for rows in batches(np.array([2, 9, 3, 3]), 6)]
    [[1], [2, 3], [0]]
    """
    order = np.argsort(-lengths, kind="stable")
    at = 0
    while at < len(order):
        size = max(1, budget // max(1, int(lengths[order[at]])))
        yield order[at : at + size]
        at += size
