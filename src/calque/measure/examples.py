"""Ambiguous words: which word types have several senses, and what the encoders make of each.

A type is chosen by the text alone: by the entropy of the senses that its occurrences are linked to. Senses
are told apart by translations, but not every translation is one:

- forms of one word are one translation;
- translations that another word has as well are synonyms, and one sense: `flat` is `eben` and `Wohnung`, and
  no other word is both, but `attack` is `Angriff` and `Anschlag`, and so is `assault` (semantic mirrors);
- so are translations that keep the same company: `Details` and `Einzelheiten` stand among the same words;
- machines link wrongly, so a translation of theirs counts when it is found again, makes up a share of all
  links of either word, and goes with the word beyond chance.

The commonest types (articles, prepositions, punctuation), which have a translation for every construction,
are left aside.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import chain, combinations, zip_longest
from typing import Any, NamedTuple

import numpy as np

from calque.encoders.counts import learn_counts
from calque.errors import BadInput
from calque.stats.association import g_squared
from calque.types import Flags, Floats, Longs, Sentences, Vocabulary, WordPairs

#: At most so many types of a source language, occurrences of a type, and words of a sentence around one.
TYPES, OCCURRENCES, AROUND = 24, 6, 20
#: Translations of a type that are told apart, the most frequent first.
_TRANSLATIONS = 20
#: Words that begin with so many equal letters count as forms of one when translations are counted.
_STEM = 5
#: Company is told from so many sentences, and of words that occur in them so often.
_COMPANY, _COMPANY_COUNT = 20_000, 5
#: A type ranks as if its commonest sense had been met so many times more: few occurrences say little.
_DOUBT = 5


@dataclass(frozen=True)
class Trust:
    """Which translations count as such, and which types are too common to be asked about.

    A translation has at least `least` links with the word, which are `share` of the word's and `back` of its
    own, and goes with it beyond chance (`beyond`, G²). Two of them keep the same `company` when they are
    nearer by the words around them than this share of all pairs of words. The commonest types that make up
    `common` of the running words are aside.
    """

    least: int = 1
    share: float = 0.0
    back: float = 0.0
    beyond: float = -math.inf
    company: float = 1.0
    common: float = 0.45


BY_HAND = Trust()
BY_MACHINE = Trust(least=2, share=0.1, back=0.15, beyond=10.83, company=0.95, common=0.6)


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


class Turned(NamedTuple):
    """Links from the target's side, and which link each was. Shape: row (links,)."""

    pairs: WordPairs
    row: Longs


def turned(pairs: WordPairs) -> Turned:
    """The same links, with the target as source."""
    row = np.lexsort((pairs.source, pairs.target, pairs.sentence))
    held, bitext = pairs.keep(row), pairs.bitext
    sides = replace(bitext, source=bitext.target, target=bitext.source)
    return Turned(replace(held, bitext=sides, source=held.target, target=held.source), row)


@dataclass(frozen=True)
class Ambiguous:
    """A word type, how often it has each sense (the most frequent first), and its links by sense, or some."""

    word: str
    counts: tuple[int, ...]
    links: tuple[tuple[int, ...], ...]

    @property
    def rank(self) -> tuple[float, float, int, str]:
        """By the entropy of senses that are met again and again; then of all; then the more frequent."""
        first, *others = self.counts
        often, all_of_them = (
            [first + _DOUBT, *(max(count - less, 0) for count in others)] for less in (2, 0)
        )
        return -round(entropy(often), 9), -round(entropy(all_of_them), 9), -sum(self.counts), self.word


def senses(
    measured: Sequence[Finds], layer: int, *, types: int = TYPES, occurrences: int = OCCURRENCES
) -> list[dict[str, Any]]:
    """Ambiguous types of every source language, and what every encoder found of them at this layer.

    First come those on which the encoders differ, then those that all get right. One record a type and
    language pair.
    """
    picked = choose([finds.pairs for finds in measured], types)
    keys = [(measured[number].pairs.languages[0], one.word) for number, one in picked]
    standing = dict.fromkeys(keys, 2)
    for key, (number, one) in zip(keys, picked, strict=True):
        standing[key] = min(standing[key], _standing(one, measured[number], layer))
    order = sorted(range(len(picked)), key=lambda k: (keys[k][0], standing[keys[k]]))
    return [
        record(one, measured[number], layer, measured[number].at(layer), occurrences)
        for number, one in (picked[k] for k in order)
    ]


def choose(texts: Sequence[WordPairs], types: int) -> list[tuple[int, Ambiguous]]:
    """The most ambiguous types of every source language, and in which text: a word's texts are neighbours.

    First those that are ambiguous in the most texts, and then the most ambiguous.
    """
    held: dict[tuple[str, str], list[tuple[int, Ambiguous]]] = defaultdict(list)
    for number, pairs in enumerate(texts):
        for one in ambiguous(pairs):
            held[pairs.languages[0], one.word].append((number, one))
    ranked = sorted(held, key=lambda key: (-len(held[key]), min(one.rank for _, one in held[key])))
    sources = sorted({pairs.languages[0] for pairs in texts})
    chosen = [key for source in sources for key in [k for k in ranked if k[0] == source][:types]]
    return [one for key in chosen for one in held[key]]


def _standing(one: Ambiguous, finds: Finds, layer: int) -> int:
    """0 where encoders differ on a link of this type, 1 where all are right, 2 otherwise."""
    links = list(chain.from_iterable(one.links))
    hits = np.stack([rows[links] == finds.right[links] for rows in finds.at(layer).values()])
    return 0 if (hits != hits[0]).any() else 1 if hits.all() else 2


# ------------------------------------------------------------------------------------ which are ambiguous


def ambiguous(pairs: WordPairs, trust: Trust | None = None) -> list[Ambiguous]:
    """Every source type, whatever its case, whose links go to several senses, the most ambiguous first.

    Links made by hand are trusted one by one; a machine's, which have a `/` in their linker's name, together.
    """
    trust = trust or (BY_MACHINE if "/" in pairs.linker else BY_HAND)
    table, synonyms = _Table.of(pairs, str.casefold), _Synonyms.of(pairs, trust)
    running = np.bincount(table.types[pairs.bitext.source.ids], minlength=len(table.names))
    rows = np.flatnonzero(table.trusted(trust) & ~commonest(running, trust.common)[table.source])
    cuts = np.flatnonzero(np.diff(table.source[rows], prepend=-1))
    forms = [word.casefold() for word in pairs.bitext.source.vocabulary]
    found = []
    for own in np.split(rows, cuts[1:]) if len(rows) else []:
        word, links = table.names[table.source[own[0]]], {}
        for row in own.tolist() if len(own) > 1 else ():
            held = table.links(row)
            links[Counter(forms[i] for i in pairs.target_ids[held].tolist()).most_common(1)[0][0]] = held
        groups = _groups(word, links, synonyms)
        if len(groups) > 1:
            found.append(Ambiguous(word, tuple(map(len, groups)), groups))
    return sorted(found, key=lambda one: one.rank)


@dataclass(frozen=True, eq=False)
class _Table:
    """Links by pair of source type and target stem.

    Shape: types (vocabulary,) each word's type as a source; source, target, count, of_source, of_target
    (pairs,) in order, `count` being the links of the pair, the last two all links of its type and of its
    words of this stem; order (links,) row numbers of links by pair; words (pairs,): whether both have letters
    and are not one string.
    """

    names: list[str]
    stems: list[str]
    types: Longs
    source: Longs
    target: Longs
    count: Longs
    of_source: Longs
    of_target: Longs
    order: Longs
    words: Flags

    @classmethod
    def of(cls, pairs: WordPairs, form: Callable[[str], str]) -> _Table:
        """Source words of one form are one type. Of a stem only the words count that translate the type."""
        vocabulary = pairs.bitext.source.vocabulary
        (names, types), (_, folded), (stems, stem) = (
            _numbered(vocabulary, one) for one in (form, str.casefold, _stem)
        )
        a, b, width = types[pairs.source_ids], folded[pairs.target_ids], len(vocabulary)
        codes, one, which, count = np.unique(
            a * width + b, return_index=True, return_inverse=True, return_counts=True
        )
        of_word = np.bincount(b)[codes % width]
        gathered, group = np.unique(codes // width * width + stem[pairs.target_ids[one]], return_inverse=True)
        source, target = np.divmod(gathered, width)
        other = np.bincount(group[which], pairs.source_ids != pairs.target_ids) > 0
        return cls(
            names,
            stems,
            types,
            source,
            target,
            np.bincount(group, count).astype(np.int64),
            np.bincount(a, minlength=len(names))[source],
            np.bincount(group, of_word).astype(np.int64),
            np.argsort(group[which], kind="stable"),
            _lettered(names)[source] & _lettered(stems)[target] & other,
        )

    @cached_property
    def _start(self) -> Longs:
        return np.cumsum(self.count) - self.count

    def links(self, row: int) -> list[int]:
        """The links of one pair of types."""
        start = self._start[row]
        return [int(link) for link in self.order[start : start + self.count[row]]]

    def associated(self, trust: Trust) -> Flags:
        """Which pairs of types are found often enough and together beyond chance."""
        enough = self.words & (self.count >= trust.least)
        if trust.beyond == -math.inf:
            return enough
        return enough & (
            g_squared(self.count, self.of_source, self.of_target, len(self.order)) > trust.beyond
        )

    def trusted(self, trust: Trust) -> Flags:
        """Which pairs of types are word and translation."""
        share = (self.count >= trust.share * self.of_source) & (self.count >= trust.back * self.of_target)
        return self.associated(trust) & share


def _numbered(vocabulary: Iterable[str], form: Callable[[str], str]) -> tuple[list[str], Longs]:
    """The forms of words, and which of them each word has. Shape: (vocabulary,)."""
    known: dict[str, int] = {}
    numbers = [known.setdefault(form(word), len(known)) for word in vocabulary]
    return list(known), np.array(numbers, np.int64)


def _lettered(names: Sequence[str]) -> Flags:
    return np.array([any(map(str.isalpha, name)) for name in names], bool)


@dataclass(frozen=True, eq=False)
class _Company:
    """Unit vectors of words by the words around them, and the cosine from which on two are alike."""

    form: Callable[[str], str]
    vectors: Mapping[str, Floats]
    near: float

    @classmethod
    def of(cls, text: Sentences, form: Callable[[str], str], share: float) -> _Company:
        """Words of one form are one word; `share` of their pairs are less alike than those that count so."""
        part = text.select(np.linspace(0, len(text) - 1, min(len(text), _COMPANY)).round().astype(np.int64))
        names, types = _numbered(text.vocabulary, form)
        plain = replace(
            part, ids=types[part.ids].astype(np.int32), vocabulary=Vocabulary.of(names), tags=None
        )
        try:
            table = learn_counts(plain, min_count=_COMPANY_COUNT)
        except BadInput:
            return cls(form, {}, 1.0)
        vectors = table.vectors / np.linalg.norm(table.vectors, axis=1, keepdims=True).clip(1e-12)
        first, second = np.random.default_rng(0).integers(0, len(vectors), (2, 100_000))
        cosines = np.einsum("nd,nd->n", vectors[first], vectors[second])
        return cls(form, dict(zip(table.words, vectors, strict=True)), float(np.quantile(cosines, share)))

    def alike(self, a: str, b: str) -> bool:
        first, second = (self.vectors.get(self.form(word)) for word in (a, b))
        return first is not None and second is not None and float(first @ second) > self.near


@dataclass(frozen=True, eq=False)
class _Synonyms:
    """What tells that two words of the target language have one sense, besides their forms.

    `mirrors` are the beginnings of source words that each beginning of a target word translates; words keep
    `company` as they are written, and as what they begin with.
    """

    mirrors: Mapping[str, set[str]]
    company: tuple[_Company, ...]

    @classmethod
    def of(cls, pairs: WordPairs, trust: Trust) -> _Synonyms:
        table, mirrors = _Table.of(pairs, _stem), defaultdict(set)
        for row in np.flatnonzero(table.associated(trust)).tolist():
            mirrors[table.stems[table.target[row]]].add(table.names[table.source[row]])
        forms = (str.casefold, _stem) if trust.company < 1 else ()
        return cls(mirrors, tuple(_Company.of(pairs.bitext.target, form, trust.company) for form in forms))

    def alike(self, word: str, a: str, b: str) -> bool:
        """Whether two translations of a word are one sense of it."""
        mirrored = self._others(word, a) & self._others(word, b)
        return same_word(a, b) or bool(mirrored) or any(one.alike(a, b) for one in self.company)

    def _others(self, word: str, translation: str) -> set[str]:
        return self.mirrors.get(_stem(translation), set()) - {_stem(word)}


def commonest(counts: Longs, share: float) -> Flags:
    """The commonest types, as many as it takes to make up this share of the words. Shape: (types,).

    >>> commonest(np.array([1, 3, 2, 1, 1]), share=0.6).tolist()
    [False, True, True, False, False]
    """
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    found = np.zeros(len(counts), bool)
    found[order[before < share * counts.sum()]] = True
    return found


def entropy(counts: Sequence[int]) -> float:
    """In bits.

    >>> entropy([1, 1]), entropy([2, 1, 1])
    (1.0, 1.5)
    """
    shares = [count / sum(counts) for count in counts if count]
    return -sum(share * math.log2(share) for share in shares)


def _groups(word: str, held: Mapping[str, Sequence[int]], synonyms: _Synonyms) -> tuple[tuple[int, ...], ...]:
    """Links by sense, translations that are alike together; the most frequent first."""
    told = sorted(held, key=lambda one: (-len(held[one]), one))[:_TRANSLATIONS]
    group = {one: {one} for one in told}
    for a, b in combinations(told, 2):
        if group[a] is not group[b] and synonyms.alike(word, a, b):
            merged = group[a] | group[b]
            group.update(dict.fromkeys(merged, merged))
    parts = {id(one): one for one in group.values()}.values()
    rows = [tuple(sorted(chain.from_iterable(held[one] for one in part))) for part in parts]
    return tuple(sorted(rows, key=lambda links: (-len(links), links)))


@lru_cache(maxsize=100_000)
def same_word(a: str, b: str) -> bool:
    """Whether two words look like forms of one, accents apart.

    One holds the other; or they share a beginning of three letters and half of the shorter, or a run of four
    letters and three quarters of the shorter; or at most a third of the longer's letters differ.

    >>> same_word("hand", "hände"), same_word("банка", "банковском"), same_word("sahen", "sehen")
    (True, True, True)
    >>> same_word("spielte", "gespielt"), same_word("bank", "ufer")
    (True, False)
    """
    first, second = sorted((_plain(a), _plain(b)), key=len)
    shared = next((k for k, (x, y) in enumerate(zip_longest(first, second)) if x != y), len(second))
    if first in second or (shared >= 3 and 2 * shared >= len(first)):
        return True
    run = SequenceMatcher(None, first, second, autojunk=False).find_longest_match().size
    if run >= 4 and 4 * run >= 3 * len(first):
        return True
    return 3 * (len(second) - len(first)) <= len(second) and 3 * _edits(first, second) <= len(second)


def _plain(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def _stem(word: str) -> str:
    return _plain(word.casefold())[:_STEM]


def _edits(a: str, b: str) -> int:
    """Letters to insert, delete or replace to make one of the other."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


# -------------------------------------------------------------------------------------------- as records


def record(
    one: Ambiguous, finds: Finds, layer: int, found: Mapping[str, Longs], occurrences: int
) -> dict[str, Any]:
    """A type and so many of its occurrences, with what every encoder found, for a person to read."""
    return {
        "languages": list(finds.pairs.languages),
        "layer": layer,
        "word": one.word,
        "count": sum(one.counts),
        "entropy": round(entropy(one.counts), 4),
        "occurrences": [_occurrence(finds, found, link) for link in turns(one.links)[:occurrences]],
    }


def turns(links: Sequence[Sequence[int]]) -> list[int]:
    """One link of each translation, then a second of each, and so on.

    >>> turns([[1, 4, 6], [2], [3, 5]])
    [1, 2, 3, 4, 5, 6]
    """
    return [link for turn in zip_longest(*links) for link in turn if link is not None]


def _occurrence(finds: Finds, found: Mapping[str, Longs], link: int) -> dict[str, Any]:
    pairs = finds.pairs
    query = in_sentence(pairs.bitext.source, int(pairs.sentence[link]), int(pairs.source[link]))
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
    return in_sentence(text, sentence, place - int(text.offsets[sentence]))


def in_sentence(text: Sentences, sentence: int, index: int) -> dict[str, Any]:
    """A word in its sentence; of a long one the part around the word."""
    words = text[sentence]
    start = max(index - AROUND, 0)
    part = words[start : index + AROUND + 1]
    if start:
        part = ["…", *part]
    if index + AROUND + 1 < len(words):
        part = [*part, "…"]
    return {"word": words[index], "sentence": part, "index": index - start + bool(start)}
