"""What lies beside the figures of a run for a person to read: examples, ambiguous words, links, purpose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from calque.documents import shaped
from calque.errors import BadInput
from calque.files import read_json
from calque.store import LARGEST

T = TypeVar("T")
Record = Mapping[str, Any]


def mapping(path: Path) -> dict[str, Any]:
    """The names and values in a JSON file; none where there is no file."""
    held = read_json(path) if path.is_file() else {}
    if not isinstance(held, dict):
        raise BadInput("should hold names and values", where=path, remedy="make the run again")
    return held


def records(path: Path, parse: Callable[[Record], T]) -> tuple[T, ...]:
    """Every record of a JSON list, or the number of the one that does not fit."""
    held = read_json(path) if path.is_file() else []
    if not isinstance(held, list):
        raise BadInput("should hold a list", where=path, remedy="make the run again")
    found = []
    for number, record in enumerate(held, 1):
        with shaped(path, "make the run again", what=f"record {number} does not fit"):
            found.append(parse(record))
    return tuple(found)


def pair_of(told: Any) -> tuple[str, str] | None:
    """A pair of languages, if that is what this is."""
    return (str(told[0]), str(told[1])) if isinstance(told, list) and len(told) == 2 else None


def two_of(told: Any) -> tuple[str, str]:
    """A pair of languages, which must be one."""
    languages = pair_of(told)
    if languages is None:
        raise ValueError("languages are two codes")
    return languages


def number(told: Any) -> float:
    """A finite number, which must be one."""
    whole = isinstance(told, int) and not isinstance(told, bool)  # it may be too large to be made a float
    if not whole and not (isinstance(told, float) and math.isfinite(told)):
        raise ValueError(f"{told!r} is not a number")
    if abs(told) > LARGEST:
        raise ValueError(f"{told!r} is too large to be drawn")
    return float(told)


def strings(held: Iterable[Any]) -> tuple[str, ...]:
    """Words, or whatever is to be read as words."""
    if isinstance(held, str):
        raise ValueError("a list of words is one word")
    return tuple(map(str, held))


@dataclass(frozen=True)
class Place:
    """A word in its sentence. `index` is None when the sentence is not known, or when all of it is meant."""

    word: str
    sentence: tuple[str, ...] = ()
    index: int | None = None

    @classmethod
    def of(cls, record: Record) -> Place:
        held, index = record.get("sentence"), record.get("index")
        sentence = strings(held) if isinstance(held, list) else ()
        known = isinstance(index, int) and 0 <= index < len(sentence)
        word = str(record["word"])
        return cls(word, sentence, index) if known else cls(word)


@dataclass(frozen=True)
class Found:
    """What one encoder retrieved, and whether it was the right word."""

    place: Place
    hit: bool


@dataclass(frozen=True)
class Example:
    """One retrieval for a person to read: the query, the word linked to it, what each encoder found."""

    direction: str
    query: Place
    gold: Place
    retrieved: Mapping[str, Found]
    languages: tuple[str, str] | None = None

    @classmethod
    def of(cls, record: Record) -> Example:
        query = Place.of({**record, "word": record["query"]})
        found = {
            str(label): Found(Place.of(held), bool(held.get("hit")))
            for label, held in record["retrieved"].items()
        }
        direction, languages = str(record.get("direction", "")), pair_of(record.get("languages"))
        return cls(direction, query, Place.of(record["gold"]), found, languages)

    @classmethod
    def of_sentence(cls, record: Record) -> Example:
        """A sentence that searches whole sentences."""
        found = {
            str(label): Found(_whole(held["sentence"]), bool(held.get("hit")))
            for label, held in record["retrieved"].items()
        }
        direction, languages = str(record.get("direction", "")), pair_of(record.get("languages"))
        return cls(direction, _whole(record["query"]), _whole(record["gold"]), found, languages)

    @property
    def way(self) -> tuple[str, str]:
        """The language that is asked in, and the one that is searched; empty where not known."""
        source, target = self.languages or ("", "")
        return (target, source) if self.direction == "backward" else (source, target)


def _whole(told: Any) -> Place:
    """A sentence of which no word is meant more than another."""
    if not isinstance(told, str):
        raise ValueError(f"{told!r} is not a sentence")
    return Place("", tuple(told.split()))


@dataclass(frozen=True)
class Sense:
    """A word type with several translations, and some of its occurrences as retrievals at one layer."""

    word: str
    languages: tuple[str, str]
    layer: int | None
    occurrences: tuple[Example, ...]

    @classmethod
    def of(cls, record: Record) -> Sense:
        languages, layer = two_of(record["languages"]), record.get("layer")
        shared = {"languages": list(languages), "direction": "forward"}
        held = tuple(Example.of({**shared, **one}) for one in record["occurrences"])
        return cls(str(record["word"]), languages, layer, held)


@dataclass(frozen=True)
class Grid:
    """Links of one sentence pair: 0-based source word, target word, score."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, int, float], ...]
    languages: tuple[str, str] | None = None

    @classmethod
    def of(cls, record: Record) -> Grid:
        source, target = strings(record["source"]), strings(record["target"])
        links = tuple(
            (int(link[0]), int(link[1]), number(link[2]) if len(link) > 2 else 1.0)
            for link in record["links"]
        )
        for i, j, _ in links:
            if not (0 <= i < len(source) and 0 <= j < len(target)):
                raise ValueError(f"link {i}-{j} in a pair of {len(source)} and {len(target)} words")
        return cls(source, target, links, pair_of(record.get("languages")))


@dataclass(frozen=True)
class Advice:
    """Something to do next, and the command that does it."""

    text: str
    command: str


@dataclass(frozen=True)
class About:
    """What a run is for, told by whoever made it."""

    title: str
    summary: str
    next: tuple[Advice, ...]

    @classmethod
    def read(cls, path: Path) -> About | None:
        """What is told in a file; None where there is no file."""
        if not path.is_file():
            return None
        held = mapping(path)
        try:
            advice = tuple(Advice(str(one["text"]), str(one["command"])) for one in held.get("next", ()))
            return cls(str(held["title"]), str(held["summary"]), advice)
        except (KeyError, TypeError) as error:
            raise BadInput(
                f"does not fit: {error!r}", where=path, remedy="title, summary, next: [{text, command}]"
            ) from None
