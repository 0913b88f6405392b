"""Ambiguous words: which word types have several translations, and what the encoders make of each.

A type is chosen by the text alone: by the entropy of the translations that its occurrences are linked to.
Inflections of one word are one translation, and the commonest types (articles, prepositions, punctuation),
which have a translation for every construction, are left aside.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations, zip_longest
from typing import Any

import numpy as np

from calque.types import Longs, Sentences, WordPairs

#: At most so many types of a source language, occurrences of a type, and words of a sentence around one.
TYPES, OCCURRENCES, AROUND = 24, 6, 20
#: The commonest types that together make up this share of the running words are left aside.
COMMON = 0.45
#: Translations of a type that are told apart, the most frequent first; the rest of a long tail is one more.
_TRANSLATIONS = 20


@dataclass(frozen=True, eq=False)
class Finds:
    """What the source word of every scored link found, by encoder and layer.

    Shape: each of found (links,), a word of the target side counted through all its sentences.
    """

    pairs: WordPairs
    found: Mapping[tuple[str, int], Longs]

    def at(self, layer: int) -> dict[str, Longs]:
        """The finds of every encoder that was asked at this layer."""
        return {label: rows for (label, where), rows in self.found.items() if where == layer}

    @cached_property
    def right(self) -> Longs:
        """The word that each should have found. Shape: (links,)."""
        target = self.pairs.bitext.target
        return np.asarray(target.offsets[self.pairs.sentence] + self.pairs.target, np.int64)


@dataclass(frozen=True)
class Ambiguous:
    """A word type, its links by translation (the most frequent first), and the entropy of these in bits."""

    word: str
    links: tuple[tuple[int, ...], ...]
    entropy: float

    @property
    def count(self) -> int:
        return sum(map(len, self.links))


def senses(measured: Sequence[Finds], layer: int, *, types: int = TYPES) -> list[dict[str, Any]]:
    """Ambiguous types of every source language, and what every encoder found of them at this layer.

    First the types on which the encoders differ, then those that all get right; among these the ones that
    are ambiguous in the most languages, and then the most ambiguous. One record a type and language pair.
    """
    held: dict[tuple[str, str], list[tuple[Finds, Ambiguous]]] = defaultdict(list)
    for finds in measured:
        for one in ambiguous(finds.pairs):
            held[finds.pairs.languages[0], one.word].append((finds, one))
    ranked = sorted(held, key=lambda key: _rank(held[key], key[1], layer))
    sources = {finds.pairs.languages[0] for finds in measured}
    chosen = [key for source in sorted(sources) for key in [k for k in ranked if k[0] == source][:types]]
    return [_record(one, finds, layer) for key in chosen for finds, one in held[key]]


def _rank(held: Sequence[tuple[Finds, Ambiguous]], word: str, layer: int) -> tuple[int, int, float, str]:
    standing = min(_standing(one, finds, layer) for finds, one in held)
    return standing, -len(held), -round(max(one.entropy for _, one in held), 9), word


def _standing(one: Ambiguous, finds: Finds, layer: int) -> int:
    """0 where encoders differ on a link of this type, 1 where all are right, 2 otherwise."""
    links = list(chain.from_iterable(one.links))
    hits = np.stack([rows[links] == finds.right[links] for rows in finds.at(layer).values()])
    return 0 if (hits != hits[0]).any() else 1 if hits.all() else 2


# ------------------------------------------------------------------------------------ which are ambiguous


def ambiguous(pairs: WordPairs) -> Iterator[Ambiguous]:
    """Every source type, whatever its case, whose links go to several different words."""
    strings = [word.casefold() for word in pairs.bitext.source.vocabulary]
    aside = common_types(strings[i] for i in pairs.bitext.source.ids.tolist())
    links: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, (a, b) in enumerate(zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)):
        links[strings[a]][strings[b]].append(row)
    for word, held in links.items():
        if len(held) > 1 and word not in aside and any(map(str.isalpha, word)):
            groups = _groups(held)
            if len(groups) > 1:
                yield Ambiguous(word, groups, entropy([len(group) for group in groups]))


def common_types(words: Iterable[str], share: float = COMMON) -> set[str]:
    """The commonest types, as many as it takes to make up this share of the words.

    >>> sorted(common_types("the cat and the dog and the end".split(), share=0.6))
    ['and', 'the']
    """
    counts = Counter(words)
    found, left = set(), share * counts.total()
    for word, count in sorted(counts.items(), key=lambda held: (-held[1], held[0])):
        if left <= 0:
            break
        found.add(word)
        left -= count
    return found


def entropy(counts: Sequence[int]) -> float:
    """In bits.

    >>> entropy([1, 1]), entropy([2, 1, 1])
    (1.0, 1.5)
    """
    shares = [count / sum(counts) for count in counts]
    return -sum(share * math.log2(share) for share in shares)


def _groups(held: Mapping[str, Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Links by translation, inflections of one translation together; the most frequent first."""
    ranked = sorted(held, key=lambda word: (-len(held[word]), word))
    told, tail = ranked[:_TRANSLATIONS], ranked[_TRANSLATIONS:]
    group = {word: {word} for word in told}
    for a, b in combinations(told, 2):
        if group[a] is not group[b] and same_word(a, b):
            merged = group[a] | group[b]
            group.update(dict.fromkeys(merged, merged))
    parts = [*{id(one): one for one in group.values()}.values(), *([set(tail)] if tail else [])]
    rows = [tuple(sorted(chain.from_iterable(held[word] for word in one))) for one in parts]
    return tuple(sorted(rows, key=lambda links: (-len(links), links)))


@lru_cache(maxsize=100_000)
def same_word(a: str, b: str) -> bool:
    """Whether two words look like forms of one, accents apart: one holds the other; or they share a beginning
    of three letters and half of the shorter; or at most a third of the longer's letters differ.

    >>> same_word("hand", "hände"), same_word("банка", "банковском"), same_word("sahen", "sehen")
    (True, True, True)
    >>> same_word("bank", "ufer")
    False
    """
    first, second = sorted((_plain(a), _plain(b)), key=len)
    shared = next((k for k, (x, y) in enumerate(zip_longest(first, second)) if x != y), len(second))
    if first in second or (shared >= 3 and 2 * shared >= len(first)):
        return True
    return 3 * (len(second) - len(first)) <= len(second) and 3 * _edits(first, second) <= len(second)


def _plain(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def _edits(a: str, b: str) -> int:
    """Letters to insert, delete or replace to make one of the other."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


# -------------------------------------------------------------------------------------------- as records


def _record(one: Ambiguous, finds: Finds, layer: int) -> dict[str, Any]:
    found = finds.at(layer)
    return {
        "languages": list(finds.pairs.languages),
        "layer": layer,
        "word": one.word,
        "count": one.count,
        "entropy": round(one.entropy, 4),
        "occurrences": [_occurrence(finds, found, link) for link in _turns(one.links)[:OCCURRENCES]],
    }


def _turns(links: Sequence[Sequence[int]]) -> list[int]:
    """One link of each translation, then a second of each, and so on.

    >>> _turns([[1, 4, 6], [2], [3, 5]])
    [1, 2, 3, 4, 5, 6]
    """
    return [link for turn in zip_longest(*links) for link in turn if link is not None]


def _occurrence(finds: Finds, found: Mapping[str, Longs], link: int) -> dict[str, Any]:
    pairs = finds.pairs
    query = _word(pairs.bitext.source, int(pairs.sentence[link]), int(pairs.source[link]))
    right = int(finds.right[link])
    return {
        "query": query["word"],
        "sentence": query["sentence"],
        "index": query["index"],
        "gold": _found(pairs.bitext.target, right),
        "retrieved": {
            label: {**_found(pairs.bitext.target, int(rows[link])), "hit": int(rows[link]) == right}
            for label, rows in found.items()
        },
    }


def _found(text: Sentences, place: int) -> dict[str, Any]:
    sentence = int(np.searchsorted(text.offsets, place, "right")) - 1
    return _word(text, sentence, place - int(text.offsets[sentence]))


def _word(text: Sentences, sentence: int, index: int) -> dict[str, Any]:
    """A word in its sentence; of a long one the part around the word."""
    words = text[sentence]
    start = max(index - AROUND, 0)
    part = words[start : index + AROUND + 1]
    if start:
        part = ["…", *part]
    if index + AROUND + 1 < len(words):
        part = [*part, "…"]
    return {"word": words[index], "sentence": part, "index": index - start + bool(start)}
