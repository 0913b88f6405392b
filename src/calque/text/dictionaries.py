"""Bilingual dictionaries in the format of MUSE: a word, a tab or a space, and its translation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from calque.errors import BadInput, BadSetting
from calque.text.languages import check_language
from calque.text.lines import read_lines


@dataclass(frozen=True)
class Dictionary:
    """Word pairs in the order of their file, each once. A word may have several translations.

    >>> Dictionary((("bank", "Bank"), ("bank", "Ufer"))).translations
    {'bank': ('Bank', 'Ufer')}
    """

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Dictionary:
        """These pairs, each once."""
        return cls(tuple(dict.fromkeys(pairs)))

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def translations(self) -> dict[str, tuple[str, ...]]:
        """Every source word with its translations, in order."""
        found: dict[str, list[str]] = defaultdict(list)
        for source, target in self.pairs:
            found[source].append(target)
        return {source: tuple(targets) for source, targets in found.items()}

    def words(self) -> tuple[list[str], list[str]]:
        """The different words of either language, in order."""
        source, target = zip(*self.pairs, strict=True) if self.pairs else ((), ())
        return list(dict.fromkeys(source)), list(dict.fromkeys(target))

    def swapped(self) -> Dictionary:
        """The same pairs the other way round."""
        return Dictionary(tuple((target, source) for source, target in self.pairs))


def read_dictionary(path: str | Path) -> Dictionary:
    """Read a dictionary. With tabs between the columns an entry may have several words."""
    pairs: dict[tuple[str, str], None] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")] if "\t" in line else line.split()
        if len(columns) != 2 or not all(columns):
            raise BadInput(
                f"{len([*filter(None, columns)])} words where a dictionary has two: {line.strip()[:60]!r}",
                where=path,
                line=number,
                remedy="a word and its translation, with a tab or a space between",
            )
        pairs[columns[0], columns[1]] = None
    if not pairs:
        raise BadInput("no word pairs here", where=path)
    return Dictionary(tuple(pairs))


def languages_of(path: str | Path) -> tuple[str, str] | None:
    """The two languages that a dictionary's name tells, as those of MUSE do.

    >>> languages_of("dictionaries/en-de.5000-6500.txt"), languages_of("words.txt")
    (('en', 'de'), None)
    """
    first, dash, second = Path(path).name.partition(".")[0].partition("-")
    try:
        return (check_language(first), check_language(second)) if dash else None
    except BadSetting:
        return None
