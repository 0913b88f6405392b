"""What tasks are learned from and scored on: items with their labels, the same for every file format.

A sentence with its tree is `calque.text.conllu.Tree`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from calque.text.conllu import Tree


@dataclass(frozen=True)
class Tagged:
    """A sentence with a tag a word: entities or slots in BIO, or parts of speech."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    id: str = ""
    line: int = 0

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True)
class TextPair:
    """Two texts with one label, as premise and hypothesis; `languages` are those of the two texts."""

    first: str
    second: str
    label: str
    languages: tuple[str, str]
    id: str = ""
    line: int = 0


@dataclass(frozen=True)
class Answer:
    """An answer and where it begins in its paragraph, in characters."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question to a paragraph that answers it; `languages` are those of question and paragraph.

    Any of `answers` is right. Text that is only to be answered has none.
    """

    question: str
    context: str
    answers: tuple[Answer, ...]
    languages: tuple[str, str]
    id: str = ""
    line: int = 0


Item = TypeVar("Item", Tagged, TextPair, Question, Tree, covariant=True)


@dataclass(frozen=True, eq=False)
class Labelled(Generic[Item]):
    """Items of one language, where they came from, and how many were dropped or changed for what reason.

    `language` is what results are told by; items of mixed languages know their own.
    """

    language: str
    items: tuple[Item, ...]
    origin: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of language, texts and labels."""
        digest = hashlib.sha256(self.language.encode())
        for item in self.items:
            digest.update(repr({**vars(item), "line": 0}).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()
