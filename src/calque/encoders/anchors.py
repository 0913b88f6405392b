"""Anchors: one vector a word type, the mean of its contextual vectors over a text (streamed)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calque.encoders.wordtypes import Types
from calque.errors import BadInput
from calque.files import Cache, text_digest
from calque.progress import bar
from calque.store import load_array, save_array
from calque.types import Encoder, Floats, Longs, Pooling, WordIndex

#: Numbers held at once while vectors stream by, per side: 64 million are 256 MB.
BLOCK_NUMBERS = 1 << 26
#: The most rows all the same: beside its vector each takes pieces, places and flags.
_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Anchors:
    """Mean vectors of word types. One that was never seen has count 0 and a vector of zeros.

    Shape: each of vectors (types, d), one a layer; counts (types,).
    """

    layers: tuple[int, ...]
    vectors: Sequence[Floats]
    counts: Longs

    def layer(self, layer: int) -> Floats:
        """Shape: (types, d)."""
        return self.vectors[self.layers.index(layer)]


def anchors(
    encoder: Encoder,
    types: Types,
    *,
    layers: Sequence[int],
    pooling: Pooling = "mean",
    cache: Cache | None = None,
) -> Anchors:
    """Mean vectors of word types. Memory is types × layers × d, whatever the size of the text.

    With a cache, layers that are in it are not computed again, and all are memory-mapped.
    """
    if cache is None:
        return _averaged(encoder, types, tuple(layers), pooling)
    parts = ("anchors 1", encoder.fingerprint, types.fingerprint, pooling)
    keys = {layer: text_digest(*parts, str(layer)) for layer in layers}
    found = {layer: one for layer in keys if (one := _read(cache.find(keys[layer]))) is not None}
    missing = tuple(layer for layer in keys if layer not in found)
    if missing:
        before = encoder.fingerprint
        made = _averaged(encoder, types, missing, pooling)
        if encoder.fingerprint != before:  # lack of memory has halved its batches: other vectors, other keys
            return anchors(encoder, types, layers=layers, pooling=pooling, cache=cache)
        label = f"{encoder.name}, anchors of {len(types)} {types.language} words, layer"
        for layer, vectors in zip(missing, made.vectors, strict=True):
            with cache.add(keys[layer], f"{label} {layer}") as folder:
                save_array(folder / "vectors.npy", vectors)
                save_array(folder / "counts.npy", made.counts)
                # Opened before it is in place: the next entry may push this one out of the cache.
                found[layer] = _read(folder) or (vectors, made.counts)
    return Anchors(tuple(layers), [found[layer][0] for layer in layers], found[layers[0]][1])


def _averaged(encoder: Encoder, types: Types, layers: tuple[int, ...], pooling: Pooling) -> Anchors:
    text = types.text
    every, kept = WordIndex.every(text), np.flatnonzero(types.rows[text.ids] >= 0)
    wanted = WordIndex(every.sentence[kept], every.word[kept])
    # A word that occurs once is its own mean: only sums need double precision.
    once = np.bincount(types.rows[text.ids][kept], minlength=1).max() <= 1
    sums = [np.zeros((len(types), encoder.width), np.float32 if once else np.float64) for _ in layers]
    counts = np.zeros(len(types), np.int64)
    with bar("anchors", len(text), "sentences") as advance:
        for first, last, part in word_chunks(wanted, len(text), (encoder.depth + 1) * encoder.width):
            chunk = text.select(range(first, last))
            found = encoder.word_vectors(chunk, part, layers=layers, pooling=pooling)
            place = types.rows[chunk.at(part)][found.present]
            for total, vectors in zip(sums, found.vectors, strict=True):
                if once:
                    total[place] = vectors
                else:
                    _add(total, place, vectors)
            counts += np.bincount(place, minlength=len(types))
            advance(last - first)
    return Anchors(layers, [_mean(sums.pop(0), counts) for _ in layers], counts)


def _add(total: NDArray[Any], place: Longs, vectors: NDArray[Any]) -> None:
    """Add vectors to the sums of their types. Shape: total (types, d), place (n,), vectors (n, d)."""
    from scipy.sparse import csr_array

    used, which = np.unique(place, return_inverse=True)
    shape = (len(used), len(place))
    members = csr_array((np.ones(len(place), total.dtype), (which, np.arange(len(place)))), shape=shape)
    total[used] += members @ vectors


def _mean(total: NDArray[Any], counts: Longs) -> Floats:
    total /= np.maximum(counts, 1)[:, None]
    return total.astype(np.float32, copy=False)


def _read(folder: Path | None) -> tuple[Floats, Longs] | None:
    """An entry of the cache, or None when it is not there or not whole."""
    try:
        return (
            None
            if folder is None
            else (load_array(folder / "vectors.npy"), load_array(folder / "counts.npy"))
        )
    except (BadInput, OSError):
        return None


def block_rows(numbers: int) -> int:
    """How many rows of so many numbers are held at once.

    >>> block_rows(13 * 384), block_rows(2)
    (13443, 65536)
    """
    return max(1, min(_BLOCK_ROWS, BLOCK_NUMBERS // numbers))


def word_chunks(words: WordIndex, sentences: int, numbers: int) -> Iterator[tuple[int, int, WordIndex]]:
    """Cut asked words at sentence borders into pieces that fit in memory.

    Yields (first sentence, last sentence excluded, words with sentences renumbered from the first).
    """
    budget = block_rows(numbers)
    ends = np.searchsorted(words.sentence, np.arange(1, sentences + 1))
    first = 0
    while first < sentences:
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + budget, side="right")))
        part = slice(done, ends[last - 1])
        yield first, last, WordIndex(words.sentence[part] - np.int32(first), words.word[part])
        first = last
