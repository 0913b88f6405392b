"""Sentence vectors block by block, for texts whose vectors do not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.cached import CachedEncoder
from calque.types import Encoder, Floats, SentencePooling, Sentences


def sentence_blocks(
    encoder: Encoder,
    sentences: Sentences,
    rows: int,
    *,
    layers: Sequence[int],
    pooling: SentencePooling = "mean",
) -> Iterator[Floats]:
    """Vectors of so many sentences at a time, in order. Shape: each (layers, rows, d).

    With a cache under the encoder's maps, the whole text is made first and then read from there: one entry a
    layer, however many blocks.
    """
    aligned = encoder if isinstance(encoder, AlignedEncoder) else None
    inner = encoder if aligned is None else aligned.inner
    held = inner.sentence_entries(sentences, layers, pooling) if isinstance(inner, CachedEncoder) else None
    for first in range(0, len(sentences), rows):
        last = min(first + rows, len(sentences))
        if held is None:
            chunk = sentences.select(range(first, last))
            yield encoder.sentence_vectors(chunk, layers=layers, pooling=pooling)
            continue
        vectors = [cut(entry.parts, first, last) for entry in held]
        if aligned is not None:
            maps = (aligned.map_for(sentences.language, layer) for layer in layers)
            vectors = [one.apply(part) for one, part in zip(maps, vectors, strict=True)]
        yield np.stack(vectors).astype(np.float32, copy=False)


def cut(parts: Sequence[NDArray[Any]], first: int, last: int) -> Floats:
    """Rows `first` to `last` (excluded) of arrays that follow each other. Shape: parts (…, d) to (rows, d).

    >>> cut([np.zeros((2, 1)), np.ones((3, 1))], 1, 4).ravel().tolist()
    [0.0, 1.0, 1.0]
    """
    found, start = [], 0
    for part in parts:
        if start < last and first < start + len(part):
            found.append(part[max(first - start, 0) : last - start])
        start += len(part)
    return np.concatenate(found).astype(np.float32)
