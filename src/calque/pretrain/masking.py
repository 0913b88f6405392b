"""Hiding pieces for a model to guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calque.errors import BadSetting
from calque.types import Flags, Longs

#: The label of a piece that need not be guessed, as torch's cross entropy knows it.
NOT_ASKED = -100


class Hidden(NamedTuple):
    """Rows with hidden pieces. Shape: both (rows, pieces); labels are NOT_ASKED where nothing is hidden."""

    pieces: Longs
    labels: Longs


@dataclass(frozen=True, eq=False)
class Masker:
    """BERT's masking: of the pieces asked for, 80 % become `mask`, 10 % any ordinary piece, 10 % stay.

    Shape: ordinary (vocabulary,), the pieces that may be asked for and drawn at random: all but specials,
    whatever the language, or those of one language.

    >>> masker = Masker(mask=1, ordinary=np.array([False, False, True, True]), share=0.5)
    >>> masker.hide(np.array([[0, 2, 3, 2, 0]]), np.random.default_rng(0)).labels.tolist()
    [[-100, 2, 3, 2, -100]]
    """

    mask: int
    ordinary: Flags
    share: float = 0.15

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise BadSetting(f"share of masked pieces is {self.share}", remedy="above 0, at most 1")

    @classmethod
    def of(cls, tokenizer: Any, share: float = 0.15) -> Masker:
        """For this tokenizer's vocabulary."""
        ordinary = np.ones(len(tokenizer), bool)
        ordinary[tokenizer.all_special_ids] = False
        return cls(int(tokenizer.mask_token_id), ordinary, share)

    def hide(self, pieces: Longs, rng: np.random.Generator) -> Hidden:
        """Hide some pieces of these rows. Shape: (rows, pieces)."""
        asked = (rng.random(pieces.shape) < self.share) & self.ordinary[pieces]
        labels = np.where(asked, pieces, NOT_ASKED)
        fate = rng.random(int(asked.sum()))
        anything = rng.choice(np.flatnonzero(self.ordinary), len(fate))
        shown = pieces.copy()
        shown[asked] = np.select([fate < 0.8, fate < 0.9], [self.mask, anything], pieces[asked])
        return Hidden(shown, labels)
