"""Words replaced by their translations, so that languages meet in the same sentence (extra anchors)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calque.errors import BadInput, BadSetting
from calque.types import Doubles, Ints, Longs, Sentences, Vocabulary

#: Translations of each word, with how good each is.
Weighted = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Switcher:
    """Replaces words of one language by translations, each drawn by its quality.

    A word of the dictionary is replaced with the chance `share`, and of all words at most the part `most`.
    Shape: first (types + 1,) into translation and upto (translations,): where in `translation`, ids of words,
    those of each type lie, and the sum of quality up to each of them, from 0 to 1 within a type.
    """

    first: Longs
    translation: Ints
    upto: Doubles
    share: float = 0.3
    most: float = 0.15

    def __post_init__(self) -> None:
        for name in ("share", "most"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadSetting(f"{name} of replaced words is {getattr(self, name)}", remedy="from 0 to 1")

    def switch(self, text: Sentences, rng: np.random.Generator) -> Sentences:
        """The same sentences with some words replaced."""
        ids = np.asarray(text.ids)
        known = np.flatnonzero(self.first[ids + 1] > self.first[ids])
        chosen = known[rng.random(len(known)) < self.share]
        room = int(self.most * len(ids))
        if len(chosen) > room:
            chosen = rng.choice(chosen, room, replace=False)
        drawn = self._draw(ids[chosen], rng)
        replaced = ids.copy()
        replaced[chosen] = drawn
        return replace(text, ids=replaced, tags=None)

    def _draw(self, words: Ints, rng: np.random.Generator) -> Ints:
        """A translation of each word. Shape: (n,) to (n,)."""
        # Sums of quality rise from 0 to 1 within a type; with its number added they rise through all types.
        owner = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        place = np.searchsorted(self.upto + owner, words + rng.random(len(words)), "right")
        return self.translation[np.minimum(place, self.first[words + 1] - 1)]


def switchable(
    text: Sentences, translations: Weighted, *, share: float = 0.3, most: float = 0.15
) -> tuple[Sentences, Switcher]:
    """A text whose vocabulary has the translations of its words too, and what replaces them.

    Words are looked up as they are, and where they are not there, in lower case.
    """
    strings = list(text.vocabulary.strings)
    number = {word: place for place, word in enumerate(strings)}
    rows: list[Mapping[str, float]] = [
        translations.get(word) or translations.get(word.lower()) or {} for word in strings
    ]
    if not any(rows):
        raise BadInput(
            f"no word of the {text.language} text is in the dictionary",
            remedy="a dictionary from this language, in its script",
        )
    for row in rows:
        for word in row:
            number.setdefault(word, len(number))
    whole = replace(text, vocabulary=Vocabulary.of(number))
    rows += [{}] * (len(number) - len(rows))
    return whole, _switcher(rows, number, share, most)


def _switcher(
    rows: Sequence[Mapping[str, float]], number: Mapping[str, int], share: float, most: float
) -> Switcher:
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    translation = np.array([number[word] for row in rows for word in row], np.int32)
    parts = [np.cumsum(list(row.values())) / sum(row.values()) for row in rows if row]
    return Switcher(first, translation, np.concatenate([np.zeros(0), *parts]), share, most)
