"""Ambiguous words for the page: one word, its sentences, and under each what every language made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calque.report.parts import Example, Found, Place, Sense
from calque.report.words import name_of


@dataclass(frozen=True)
class Answer:
    """One occurrence in one language: the right word, and what each encoder found."""

    language: str
    name: str
    gold: Place
    retrieved: Mapping[str, Found]

    def wrong(self, encoders: Sequence[str]) -> dict[Place, list[str]]:
        """What was found in place of the right word, and by which of these encoders."""
        held: dict[Place, list[str]] = {}
        for label in encoders:
            found = self.retrieved.get(label)
            if found is not None and not found.hit:
                held.setdefault(found.place, []).append(label)
        return held


@dataclass(frozen=True)
class Occurrence:
    """The word in one of its sentences, with the answers of all languages."""

    query: Place
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Word:
    """A word type with all its occurrences that are shown."""

    word: str
    language: str
    layer: int | None
    occurrences: tuple[Occurrence, ...]


def words(senses: Sequence[Sense]) -> tuple[Word, ...]:
    """Senses of all language pairs by word; a sentence that several languages share is there once."""
    keyed: dict[tuple[str, str], list[Sense]] = {}
    for sense in senses:
        keyed.setdefault((sense.languages[0], sense.word), []).append(sense)
    return tuple(
        Word(word, language, held[0].layer, _occurrences(held)) for (language, word), held in keyed.items()
    )


def _occurrences(held: Sequence[Sense]) -> tuple[Occurrence, ...]:
    answers: dict[Place, list[Answer]] = {}
    for sense in held:
        for one in sense.occurrences:
            answers.setdefault(one.query, []).append(_answer(one, sense.languages[1]))
    return tuple(Occurrence(query, tuple(found)) for query, found in answers.items())


def _answer(one: Example, language: str) -> Answer:
    return Answer(language, name_of(language), one.gold, one.retrieved)
