"""Anchors: one vector a word type, the mean of its contextual vectors over a corpus (streamed)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calque.progress import bar
from calque.types import Doubles, Encoder, Longs, Pooling, Sentences, WordIndex

#: Numbers held at once while vectors stream by, per side: 64 million are 256 MB.
BLOCK_NUMBERS = 1 << 26


@dataclass(frozen=True, eq=False)
class Anchors:
    """Shape: vectors (layers, types, d), counts (types,). A type never seen has count 0 and a zero vector."""

    vectors: Doubles
    counts: Longs


def anchors(
    encoder: Encoder,
    sentences: Sentences,
    types: Longs,
    rows: int,
    *,
    layers: Sequence[int],
    pooling: Pooling = "mean",
) -> Anchors:
    """Mean vectors of word types. Memory is types × layers × d, whatever the corpus size.

    `types` (vocabulary,) gives each vocabulary id its row among the `rows` anchors, or -1 for a word that is
    not wanted.
    """
    total = np.zeros((len(layers), rows, encoder.width))
    counts = np.zeros(rows, np.int64)
    wanted = WordIndex.every(sentences)
    kept = np.flatnonzero(types[sentences.ids] >= 0)
    wanted = WordIndex(wanted.sentence[kept], wanted.word[kept])
    with bar("anchors", len(sentences), "sentences") as advance:
        for first, last, part in word_chunks(wanted, len(sentences), len(layers) * encoder.width):
            chunk = sentences.select(range(first, last))
            found = encoder.word_vectors(chunk, part, layers=layers, pooling=pooling)
            place = types[chunk.at(part)][found.present]
            counts += np.bincount(place, minlength=rows)
            for layer in range(len(layers)):
                np.add.at(total[layer], place, found.vectors[layer])
            advance(last - first)
    return Anchors(total / np.maximum(counts, 1)[:, None], counts)


def word_chunks(words: WordIndex, sentences: int, numbers: int) -> Iterator[tuple[int, int, WordIndex]]:
    """Cut asked words at sentence borders into pieces that fit in memory.

    Yields (first sentence, last sentence excluded, words with sentences renumbered from the first).
    """
    budget = max(1, BLOCK_NUMBERS // max(1, numbers))
    ends = np.searchsorted(words.sentence, np.arange(1, sentences + 1))
    first = 0
    while first < sentences:
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + budget, side="right")))
        part = slice(done, ends[last - 1])
        yield first, last, WordIndex(words.sentence[part] - np.int32(first), words.word[part])
        first = last
