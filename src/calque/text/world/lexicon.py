"""The lexicon: reading it, and drawing from it by Zipf's law within a class."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from calque.errors import BadInput

LEXICON = Path(__file__).with_name("lexicon.txt")
_FORMS = frozenset({"plural", "past", "done", "ing", "object", "kind"})
_UPOS = {"noun": "NOUN", "verb": "VERB", "adj": "ADJ", "adverb": "ADV", "name": "PROPN", "number": "NUM"}


@dataclass(frozen=True, eq=False, slots=True)
class Lemma:
    """A word of the world in one of its senses; `key` is what its invented words are made from."""

    text: str
    sense: str
    upos: str
    particle: str
    forms: Mapping[str, str]

    @property
    def key(self) -> str:
        return " ".join(filter(None, (self.sense or self.text, self.particle, self.upos)))


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """A lemma under one section: its class or frame, its settings there, and its Zipf weight."""

    lemma: Lemma
    kind: str
    settings: Mapping[str, str]
    weight: float


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """Entries to draw from, by weight."""

    entries: tuple[Entry, ...]
    cumulative: tuple[float, ...]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Pool:
        held = tuple(entries)
        return cls(held, tuple(accumulate(entry.weight for entry in held)))

    def at(self, share: float) -> Entry:
        """The entry at this share (0 to 1) of the total weight."""
        return self.entries[bisect(self.cumulative, share * self.cumulative[-1])]


class Section(NamedTuple):
    """A header of the lexicon file: part of speech, classes, settings shared by its lines."""

    part: str
    classes: tuple[str, ...]
    settings: Mapping[str, str]


class Lexicon:
    """Every entry, by part of speech and class."""

    def __init__(self, path: Path = LEXICON) -> None:
        self.path = path
        self.lemmas: dict[str, Lemma] = {}
        self.groups: dict[str, tuple[str, ...]] = {}
        self._entries: dict[tuple[str, str], list[Entry]] = {}
        self._pools: dict[tuple[str, str, str], Pool] = {}
        self._kinds: dict[str, tuple[str, ...]] = {}
        for number, section, rank, line in _lines(path):
            self._add(number, section, rank, line)

    def _add(self, number: int, section: Section, rank: int, line: str) -> None:
        if section.part == "group":
            name, _, classes = line.partition(" = ")
            self.groups[name] = tuple(part for c in classes.split() for part in self.groups.get(c, (c,)))
            return
        word, *own = line.split()
        if section.part not in _UPOS and section.part != "word":
            raise BadInput(f"unknown section [{section.part}]", where=self.path, line=number)
        settings = {**section.settings, **_settings(own, self.path, number)}
        lemma = self._lemma(word, section, settings, number)
        for kind in section.classes:
            for part in self.groups.get(kind, (kind,)):
                entry = Entry(lemma, part, MappingProxyType(settings), 1.0 / rank)
                self._entries.setdefault((section.part, part), []).append(entry)

    def _lemma(self, word: str, section: Section, settings: Mapping[str, str], number: int) -> Lemma:
        """The lemma of a line, which may have been met before. Senses of function words are not told."""
        function = section.part == "word"
        upos = section.classes[0] if function else _UPOS[section.part]
        text, _, sense = (word, "", "") if upos == "PUNCT" else word.partition(".")
        forms = {name: value for name, value in settings.items() if name in _FORMS}
        told, particle = word if sense and not function else "", settings.get("particle", "")
        lemma = Lemma(text, told, upos, particle, MappingProxyType(forms))
        known = self.lemmas.setdefault(f"{word} {upos}" if function else lemma.key, lemma)
        if forms and forms != known.forms:
            raise BadInput(f"{word} had other forms before", where=self.path, line=number)
        return known

    def pool(self, part: str, classes: str, *, without: str = "") -> Pool:
        """Entries of these classes (joined by |), but for those that have the setting `without`."""
        name = (part, classes, without)
        if name not in self._pools:
            found = [entry for kind in self.kinds(classes) for entry in self._entries.get((part, kind), ())]
            self._pools[name] = self._kept(name, found, without)
        return self._pools[name]

    def verbs(self, frames: str, role: str, kind: str, *, without: str = "") -> Pool:
        """Verbs of these frames that a thing of this kind can be the `subj` or the `obj` of."""
        name = (frames, f"{role} {kind}", without)
        if name not in self._pools:
            every = self.pool("verb", frames).entries
            found = [entry for entry in every if kind in self.kinds(entry.settings.get(role, ""))]
            self._pools[name] = self._kept(name, found, without)
        return self._pools[name]

    def _kept(self, name: tuple[str, str, str], found: list[Entry], without: str) -> Pool:
        kept = [entry for entry in found if without not in entry.settings]
        if not kept:
            raise BadInput(f"no word for {' '.join(name)}", where=self.path, remedy="add one under its class")
        return Pool.of(kept)

    def kinds(self, classes: str) -> tuple[str, ...]:
        """The single classes behind some classes joined by |."""
        if classes not in self._kinds:
            kinds = (kind for c in classes.split("|") for kind in self.groups.get(c, (c,)))
            self._kinds[classes] = tuple(dict.fromkeys(kinds))
        return self._kinds[classes]

    def has(self, part: str, kind: str) -> bool:
        """Whether there is any word of a class."""
        return (part, kind) in self._entries

    def word(self, name: str, upos: str) -> Lemma:
        """A word by name, such as ("that.clause", "SCONJ")."""
        return self.lemmas[f"{name} {upos}"]


CLOSED = frozenset({"ADP", "AUX", "CCONJ", "DET", "INTJ", "PART", "PRON", "SCONJ", "PUNCT"})


def _lines(path: Path) -> Iterator[tuple[int, Section, int, str]]:
    """Line number, section, rank within the section, and text of every entry."""
    section, rank = None, 0
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = raw.strip()
        if line.startswith("["):
            part, *rest = line.strip("[]").split()
            classes = tuple(rest[0].split("|")) if rest and "=" not in rest[0] else (part,)
            section = Section(part, classes, _settings([r for r in rest if "=" in r], path, number))
            rank = 0
        elif line and not line.startswith("#"):
            if section is None:
                raise BadInput("a word before any [section]", where=path, line=number)
            rank += 1
            yield number, section, rank, line


def _settings(parts: Iterable[str], path: Path, number: int) -> dict[str, str]:
    held = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or not value:
            raise BadInput(
                f"{part!r} is not a setting",
                where=path,
                line=number,
                remedy="write name=value, without spaces",
            )
        held[name] = value
    return held


@cache
def lexicon() -> Lexicon:
    """The world's own lexicon, read once."""
    return Lexicon()
