"""Rows of pieces of any make, one text or two, and the runs of pieces whose vectors are asked for.

`Layout` is sentences, all in one frame; here a row is whatever a task wants an encoder to read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch

from calque.encoders.spans import Spans, ragged
from calque.types import Flags, Ints, Longs, TextBatch


class Readable(Protocol):
    """Rows that an encoder can read. Shape: lengths (rows,)."""

    @property
    def lengths(self) -> Longs: ...

    def rows(self, chosen: Longs, pad: int) -> tuple[Longs, Flags]:
        """These rows as one padded matrix. Shape: (n,) to pieces, mask (n, longest)."""
        ...

    def kinds(self, chosen: Longs) -> Longs | None:
        """Segments of these rows (token types), or None where all are 0. Shape: (n,) to (n, longest)."""
        ...


@dataclass(frozen=True, eq=False)
class Row:
    """One row before it is laid beside others. Shape: pieces, kind (pieces,); units (n, 2) as start, end."""

    pieces: Ints
    kind: Ints
    units: Longs


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of pieces, special tokens included, and units: runs of them that get a vector each.

    Shape: pieces, kind (all pieces,), offsets (rows + 1,). Units are ordered by row; `units.sentence` is the
    row.
    """

    pieces: Ints
    kind: Ints
    offsets: Longs
    units: Spans

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Rows:
        lengths = np.array([len(row.pieces) for row in rows], np.int64)
        counts = np.array([len(row.units) for row in rows], np.int64)
        ends = np.concatenate([np.zeros((0, 2), np.int64), *(row.units for row in rows)])
        empty = np.zeros(0, np.int32)
        return cls(
            np.concatenate([empty, *(row.pieces for row in rows)]).astype(np.int32),
            np.concatenate([empty, *(row.kind for row in rows)]).astype(np.int32),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            Spans(np.repeat(np.arange(len(rows)), counts), ends[:, 0], ends[:, 1]),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Longs:
        """Pieces in each row. Shape: (rows,)."""
        return np.diff(self.offsets)

    @cached_property
    def first(self) -> Longs:
        """Where the units of each row begin. Shape: (rows + 1,)."""
        return np.searchsorted(self.units.sentence, np.arange(len(self) + 1)).astype(np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of pieces and units."""
        digest = hashlib.sha256()
        for column in (self.pieces, self.kind, self.offsets, self.first, self.units.start, self.units.end):
            digest.update(np.asarray(column, np.int64).tobytes())
        return digest.hexdigest()

    def rows(self, chosen: Longs, pad: int) -> tuple[Longs, Flags]:
        """These rows as one padded matrix. Shape: (n,) to pieces, mask (n, longest).

        A row is never wholly masked: attention over nothing is not a number.
        """
        matrix = self._matrix(self.pieces, chosen, pad)
        return matrix, np.arange(matrix.shape[1]) < np.maximum(self.lengths[chosen], 1)[:, None]

    def kinds(self, chosen: Longs) -> Longs | None:
        """Segments of these rows, or None where all are 0. Shape: (n,) to (n, longest)."""
        return self._matrix(self.kind, chosen, 0) if self._two else None

    @cached_property
    def _two(self) -> bool:
        return bool(self.kind.any())

    def _matrix(self, column: Ints, chosen: Longs, fill: int) -> Longs:
        lengths = self.lengths[chosen]
        matrix = np.full((len(chosen), max(1, int(lengths.max(initial=1)))), fill, np.int64)
        row, place = ragged(self.offsets[chosen], lengths)
        matrix[row, ragged(np.zeros(len(chosen), np.int64), lengths)[1]] = column[place]
        return matrix

    def part(self, first: int, last: int) -> Rows:
        """Rows first..last, with their units."""
        a, b = self.offsets[first], self.offsets[last]
        units = self.units.take(np.arange(self.first[first], self.first[last]))
        return Rows(
            self.pieces[a:b],
            self.kind[a:b],
            self.offsets[first : last + 1] - a,
            Spans(units.sentence - first, units.start, units.end),
        )

    def batch(self, chosen: Longs, pad: int) -> TextBatch:
        """These rows (different ones) as an encoder reads them; its words are the units of these rows."""
        pieces, mask = self.rows(chosen, pad)
        kinds = self.kinds(chosen)
        row, unit = ragged(self.first[chosen], self.first[chosen + 1] - self.first[chosen])
        return TextBatch(
            language="",
            pieces=torch.from_numpy(pieces),
            mask=torch.from_numpy(mask),
            row=row,
            word=unit,
            start=self.units.start[unit],
            end=self.units.end[unit],
            specials=np.full((len(chosen), 2), -1, np.int64),
            segments=None if kinds is None else torch.from_numpy(kinds),
        )
