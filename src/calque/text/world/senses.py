"""Which sense a word of an invented language says: every sense has a stem of its own there."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from calque.errors import BadSetting
from calque.text.world import far, near

_STEMS = {"near": near.stems, "far": far.stems}


def word_senses(words: Iterable[str], language: str) -> list[str]:
    """The sense of each word form of `near` or `far`, such as "bank.river"; "" for a word of one sense.

    >>> river = next(stem for lemma, stem in far.stems().items() if lemma.sense == "bank.river")
    >>> word_senses([river + "ებზე", "ხე"], "far")
    ['bank.river', '']
    """
    if language not in _STEMS:
        raise BadSetting(
            f"words of {language!r} do not tell their senses",
            remedy=f"those of {' and '.join(_STEMS)} do, in which every sense has a word of its own",
        )
    return [_sense(word.casefold(), language) for word in words]


@cache
def _sense(word: str, language: str) -> str:
    """No stem begins with another one, so that at most one beginning of a word is a stem."""
    held, bare = _senses(language), word.removeprefix(far.NOT) if language == "far" else word
    return next((held[bare[:n]] for n in range(1, len(bare) + 1) if bare[:n] in held), "")


@cache
def _senses(language: str) -> dict[str, str]:
    return {stem.casefold(): lemma.sense for lemma, stem in _STEMS[language]().items() if lemma.sense}
