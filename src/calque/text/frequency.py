"""How often words occur, and their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calque.types import Longs, Sentences


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Occurrences of every word of a vocabulary. Shape: counts (types,)."""

    counts: Longs

    @cached_property
    def rank(self) -> Longs:
        """1 for the most frequent word, 0 for one that never occurs; equal counts in vocabulary order.

        Shape: (types,).
        """
        rank = np.zeros(len(self.counts), np.int64)
        rank[np.argsort(-self.counts, kind="stable")] = np.arange(1, len(rank) + 1)
        rank[self.counts == 0] = 0
        return rank


def frequencies(sentences: Sentences) -> Frequencies:
    """Counts over some sentences.

    >>> found = frequencies(Sentences.of("en", [["a", "cat"], ["a", "dog"]]))
    >>> found.counts.tolist(), found.rank.tolist()
    ([2, 1, 1], [1, 2, 3])
    """
    return Frequencies(np.bincount(sentences.ids, minlength=len(sentences.vocabulary)))
