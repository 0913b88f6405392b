"""Bilingual dictionaries in the format of MUSE: a word, a tab or a space, and its translation."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from calque.errors import BadInput
from calque.text.lines import read_lines


@dataclass(frozen=True)
class Dictionary:
    """Word pairs in the order of their file, each once. A word may have several translations.

    >>> Dictionary((("bank", "Bank"), ("bank", "Ufer"))).translations
    {'bank': ('Bank', 'Ufer')}
    """

    pairs: tuple[tuple[str, str], ...]

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def translations(self) -> dict[str, tuple[str, ...]]:
        """Every source word with its translations, in order."""
        found: dict[str, list[str]] = defaultdict(list)
        for source, target in self.pairs:
            found[source].append(target)
        return {source: tuple(targets) for source, targets in found.items()}

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
