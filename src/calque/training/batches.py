"""Batches of like length: pure functions of seed and epoch, so that a training can go on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from calque.encoders.spans import batches
from calque.errors import BadSetting
from calque.types import Longs

#: Batches whose rows are sorted by length together: more pad less, fewer mix better.
POOL = 64
#: Rows of several corpora that are matched by length together.
MATCHED = 4096


def bucketed(
    lengths: Longs, *, size: int | None = None, tokens: int | None = None, seed: int, epoch: int
) -> list[Longs]:
    """Row numbers in batches of like length, shuffled, each row once.

    Shape: lengths (rows,). A batch holds `size` rows, or as many as `tokens` allow when all are padded to
    the longest.

    >>> sorted(map(len, bucketed(np.arange(1, 8), size=3, seed=0, epoch=0)))
    [1, 3, 3]
    """
    if (size is None) == (tokens is None):
        raise BadSetting("batches go by a number of rows or by a number of tokens", remedy="give one of them")
    if (size or tokens or 0) < 1:
        raise BadSetting(f"batches of {size or tokens}", remedy="at least 1")
    random = np.random.default_rng((seed, epoch))
    order = random.permutation(len(lengths))
    mean = max(1.0, float(lengths.mean())) if len(lengths) else 1.0
    wide = size or max(1, int((tokens or 0) / mean))
    made = [
        pool[rows]
        for first in range(0, len(order), POOL * wide)
        for pool in [order[first : first + POOL * wide]]
        for rows in (by_size(lengths[pool], size) if size else batches(lengths[pool], tokens or 0))
    ]
    return [made[i] for i in random.permutation(len(made))]


def by_size(lengths: Longs, size: int) -> Iterator[Longs]:
    """Rows `size` at a time, longest first."""
    order = np.argsort(-lengths, kind="stable")
    return (order[first : first + size] for first in range(0, len(order), size))


def side_by_side(lengths: Sequence[Longs], *, seed: int, epoch: int) -> Longs:
    """One row of every corpus beside each other, of like length; shorter corpora begin again.

    Shape: lengths, each (rows of that corpus,), to (rows of the longest, corpora). Every row of the longest
    corpus is there once, and the others' rows equally often but for one.
    """
    if not lengths or not all(map(len, lengths)):
        raise BadSetting("a corpus has no rows to train on", remedy="leave it out")
    random = np.random.default_rng((seed, epoch, len(lengths)))
    count = max(map(len, lengths))
    columns = [_rounds(len(one), count, random) for one in lengths]
    for column, own in zip(columns, lengths, strict=True):
        for first in range(0, count, MATCHED):
            part = column[first : first + MATCHED]
            part[:] = part[np.argsort(own[part], kind="stable")]
    return np.stack(columns, 1)


def _rounds(rows: int, count: int, random: np.random.Generator) -> Longs:
    """`count` row numbers: all in random order, again and again."""
    rounds = [random.permutation(rows) for _ in range(-(-count // rows))]
    return np.concatenate(rounds)[:count].astype(np.int64)
