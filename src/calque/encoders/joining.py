"""Batches of several languages as one, so that an encoder reads them in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from calque.types import FIRST_SPECIAL, LAST_SPECIAL, Longs, TextBatch


def joined_batches(batches: Sequence[TextBatch], pad: int) -> TextBatch:
    """The rows of all batches, padded to one width; words keep their order. It has no one language."""
    width = max(batch.pieces.shape[1] for batch in batches)
    before = np.cumsum([0, *(len(batch.pieces) for batch in batches)])
    return TextBatch(
        language="",
        pieces=torch.cat([_widened(batch.pieces, width, pad) for batch in batches]),
        mask=torch.cat([_widened(batch.mask, width, False) for batch in batches]),
        row=np.concatenate([batch.row + first for batch, first in zip(batches, before, strict=False)]),
        word=np.concatenate([batch.word for batch in batches]),
        start=np.concatenate([batch.start for batch in batches]),
        end=np.concatenate([batch.end for batch in batches]),
        specials=np.concatenate([batch.specials for batch in batches]),
    )


def _widened(rows: torch.Tensor, width: int, fill: int | bool) -> torch.Tensor:
    return torch.nn.functional.pad(rows, (0, width - rows.shape[1]), value=fill)


def with_specials(batch: TextBatch) -> TextBatch:
    """The same batch with its special tokens among the words, before the others of their sentence."""
    rows = np.arange(len(batch.specials))
    marks = [np.full(len(rows), mark, np.int64) for mark in (FIRST_SPECIAL, LAST_SPECIAL)]
    columns = [
        (rows[there], mark[there], place[there], place[there] + 1)
        for mark, place in zip(marks, batch.specials.T, strict=True)
        for there in [place >= 0]
    ]
    row, word, start, end = (
        np.concatenate(parts)
        for parts in zip(*columns, (batch.row, batch.word, batch.start, batch.end), strict=True)
    )
    order = np.lexsort((word, row))
    return replace(batch, row=row[order], word=word[order], start=start[order], end=end[order])


def places(batch: TextBatch, row: Longs, word: Longs) -> Longs:
    """Where words that a batch holds stand among its words. Shape: row, word (n,) to (n,)."""
    high = 1 + max(int(batch.word.max(initial=0)), int(word.max(initial=0))) - LAST_SPECIAL
    keys = batch.row * high + batch.word - LAST_SPECIAL
    return np.searchsorted(keys, row * high + word - LAST_SPECIAL).astype(np.int64)
