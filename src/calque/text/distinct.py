"""Sentences that stand in a text more than once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from calque.types import Longs, Sentences


@dataclass(frozen=True, eq=False)
class Distinct:
    """Different sentences of a text, in the order of their first occurrence.

    Shape: first (different,) where each stands first; which (sentences,) the one that each sentence is.

    >>> held = Distinct.of(Sentences.of("en", [["a", "b"], ["b"], ["a", "b"]]))
    >>> held.first.tolist(), held.which.tolist()
    ([0, 1], [0, 1, 0])
    """

    first: Longs
    which: Longs

    @classmethod
    def of(cls, sentences: Sentences) -> Distinct:
        ids, cuts = np.asarray(sentences.ids), sentences.offsets.tolist()
        known: dict[bytes, int] = {}
        numbers = (known.setdefault(ids[a:b].tobytes(), len(known)) for a, b in pairwise(cuts))
        which = np.fromiter(numbers, np.int64, len(sentences))
        return cls(np.unique(which, return_index=True)[1], which)

    def __len__(self) -> int:
        return len(self.first)
