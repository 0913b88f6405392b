"""Where paired vectors come from: linked words or subwords, special tokens, sentences, a dictionary.

Each source yields blocks of paired vectors, so that a map can be learned from a corpus of any size.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from calque.encoders.anchors import Anchors, anchors, block_rows, word_chunks
from calque.encoders.wordtypes import Types
from calque.errors import BadInput
from calque.files import text_digest
from calque.progress import bar
from calque.text.dictionaries import Dictionary
from calque.text.names import Spelling, pair_names
from calque.types import (
    FIRST_SPECIAL,
    LAST_SPECIAL,
    Bitext,
    Encoder,
    Floats,
    Longs,
    PairBlock,
    PairSource,
    Pooling,
    Sentences,
    WordIndex,
    WordPairs,
    WordVectors,
)

_FIGURES = re.compile("[0-9]+")
#: Sentences whose words are put together at a time.
_STRETCH = 10_000


@runtime_checkable
class OfSentences(Protocol):
    """A source that learns from sentences which are translations of each other."""

    def read(self) -> Longs:
        """Their names, as `pair_names` gives them. Shape: (sentence pairs,)."""
        ...


def pairs_read(sources: Iterable[object]) -> Longs:
    """The names of all sentence pairs that these sources learn from, in rising order."""
    names = [source.read() for source in sources if isinstance(source, OfSentences)]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *names]))


@dataclass(frozen=True, eq=False)
class LinkedWords:
    """Words linked in a bitext; subwords when the bitext's unit is the encoder's own piece."""

    pairs: WordPairs
    _counts: Counter[str] = field(default_factory=Counter, repr=False)

    @property
    def languages(self) -> tuple[str, str]:
        return self.pairs.languages

    @property
    def fingerprint(self) -> str:
        return text_digest("words", self.pairs.fingerprint)

    def blocks(self, encoder: Encoder, layers: Sequence[int], pooling: Pooling) -> Iterator[PairBlock]:
        self._counts.clear()
        bitext = self.pairs.bitext
        links = WordIndex(self.pairs.sentence, self.pairs.source)
        done = 0
        with bar("linked words", len(bitext), "sentences") as advance:
            for first, last, source in word_chunks(links, len(bitext), len(layers) * encoder.width):
                rows = slice(done, done + len(source.word))
                target = WordIndex(source.sentence, self.pairs.target[rows])
                done = rows.stop
                chosen = np.arange(first, last)
                a = encoder.word_vectors(bitext.source.select(chosen), source, layers=layers, pooling=pooling)
                b = encoder.word_vectors(bitext.target.select(chosen), target, layers=layers, pooling=pooling)
                yield _block(self.languages, source, a, b, self._counts)
                advance(last - first)

    def coverage(self) -> Mapping[str, int]:
        return dict(self._counts)

    def types(self) -> set[tuple[str, str]]:
        return word_types(self.pairs)

    def read(self) -> Longs:
        return pair_names(self.pairs.bitext.select(np.unique(self.pairs.sentence)))


@dataclass(frozen=True, eq=False)
class SpecialTokens:
    """The first special token of both sides ([CLS]), or the first and the last ([SEP])."""

    bitext: Bitext
    last: bool = False
    _counts: Counter[str] = field(default_factory=Counter, repr=False)

    @property
    def languages(self) -> tuple[str, str]:
        return self.bitext.languages

    @property
    def fingerprint(self) -> str:
        return text_digest("specials", str(self.last), self.bitext.fingerprint)

    def blocks(self, encoder: Encoder, layers: Sequence[int], pooling: Pooling) -> Iterator[PairBlock]:
        self._counts.clear()
        which = [FIRST_SPECIAL, LAST_SPECIAL] if self.last else [FIRST_SPECIAL]
        asked = WordIndex(
            np.repeat(np.arange(len(self.bitext), dtype=np.int32), len(which)),
            np.tile(np.array(which, np.int32), len(self.bitext)),
        )
        with bar("special tokens", len(self.bitext), "sentences") as advance:
            for first, last, words in word_chunks(asked, len(self.bitext), len(layers) * encoder.width):
                chunk = self.bitext.select(np.arange(first, last))
                a = encoder.word_vectors(chunk.source, words, layers=layers, pooling=pooling)
                b = encoder.word_vectors(chunk.target, words, layers=layers, pooling=pooling)
                yield _block(self.languages, words, a, b, self._counts)
                advance(last - first)

    def coverage(self) -> Mapping[str, int]:
        return dict(self._counts)

    def types(self) -> set[tuple[str, str]]:
        return set()

    def read(self) -> Longs:
        return pair_names(self.bitext)


@dataclass(frozen=True, eq=False)
class SentencePairs:
    """Mean vectors of parallel sentences."""

    bitext: Bitext

    @property
    def languages(self) -> tuple[str, str]:
        return self.bitext.languages

    @property
    def fingerprint(self) -> str:
        return text_digest("sentences", self.bitext.fingerprint)

    def blocks(self, encoder: Encoder, layers: Sequence[int], pooling: Pooling) -> Iterator[PairBlock]:
        size = min(4096, block_rows(len(layers) * encoder.width))
        with bar("sentences", len(self.bitext), "sentences") as advance:
            for first in range(0, len(self.bitext), size):
                chunk = self.bitext.select(np.arange(first, min(first + size, len(self.bitext))))
                a = encoder.sentence_vectors(chunk.source, layers=layers)
                b = encoder.sentence_vectors(chunk.target, layers=layers)
                yield PairBlock(self.languages, a, b, np.arange(len(chunk)))
                advance(len(chunk))

    def coverage(self) -> Mapping[str, int]:
        return {"used": len(self.bitext)}

    def types(self) -> set[tuple[str, str]]:
        return set()

    def read(self) -> Longs:
        return pair_names(self.bitext)


@dataclass(frozen=True, eq=False)
class DictionaryAnchors:
    """Dictionary entries, each word by its mean vector over a text, or its own where words stand alone.

    Dictionaries are usually in lower case: where types fold case, so are the words of the dictionary.
    """

    dictionary: Dictionary
    sides: tuple[Types, Types]
    _counts: Counter[str] = field(default_factory=Counter, repr=False)

    @property
    def languages(self) -> tuple[str, str]:
        return self.sides[0].language, self.sides[1].language

    @property
    def fingerprint(self) -> str:
        entries = "\n".join(f"{a}\t{b}" for a, b in self.dictionary.pairs)
        return text_digest("dictionary", entries, *(side.fingerprint for side in self.sides))

    def blocks(self, encoder: Encoder, layers: Sequence[int], pooling: Pooling) -> Iterator[PairBlock]:
        held = [self._anchors(side, encoder, layers, pooling) for side in (0, 1)]
        # One more count, of zero, for entries in row -1.
        there = [np.append(found.counts, 0)[rows] > 0 for found, rows in held]
        both = there[0] & there[1]
        self._counts.clear()
        self._counts.update(
            {
                "used": int(both.sum()),
                "source word not in the corpus": int((~there[0]).sum()),
                "target word not in the corpus": int((there[0] & ~there[1]).sum()),
            }
        )
        if not both.any():
            raise BadInput(
                f"none of the {len(both)} dictionary entries has both words in the corpus",
                remedy="give a dictionary of these languages, in the direction of the pairs",
            )
        a, b = (np.stack([layer[rows[both]] for layer in found.vectors]) for found, rows in held)
        yield PairBlock(self.languages, a, b, held[0][1][both])

    def _anchors(
        self, side: int, encoder: Encoder, layers: Sequence[int], pooling: Pooling
    ) -> tuple[Anchors, Longs]:
        """Anchors of the words of one language, and each entry's row among them, or -1. Shape: (entries,)."""
        types = self.sides[side]
        rows = types.find(pair[side] for pair in self.dictionary.pairs)
        wanted = np.unique(rows[rows >= 0])
        found = anchors(encoder, types.keep(wanted), layers=layers, pooling=pooling)
        return found, np.where(rows < 0, -1, np.searchsorted(wanted, rows))

    def coverage(self) -> Mapping[str, int]:
        return dict(self._counts)

    def types(self) -> set[tuple[str, str]]:
        return set(self.dictionary.pairs)


@dataclass(frozen=True, eq=False)
class Together:
    """Several sources of the same two languages, one after the other."""

    sources: tuple[PairSource, ...]

    @property
    def languages(self) -> tuple[str, str]:
        return self.sources[0].languages

    @property
    def fingerprint(self) -> str:
        return text_digest(*(source.fingerprint for source in self.sources))

    def blocks(self, encoder: Encoder, layers: Sequence[int], pooling: Pooling) -> Iterator[PairBlock]:
        for source in self.sources:
            yield from source.blocks(encoder, layers, pooling)

    def coverage(self) -> Mapping[str, int]:
        total: Counter[str] = Counter()
        for source in self.sources:
            total.update(source.coverage())
        return dict(total)

    def types(self) -> set[tuple[str, str]]:
        return set().union(*(source.types() for source in self.sources))

    def read(self) -> Longs:
        return pairs_read(self.sources)


def word_types(pairs: WordPairs) -> set[tuple[str, str]]:
    """The word-type pairs that are linked; of linked pieces, the words that they are part of."""
    if pairs.bitext.source.unit != "piece":
        return pairs.types()
    spelling = Spelling.of(pairs.bitext.source.vocabulary.strings)
    found: set[tuple[str, str]] = set()
    for first in range(0, len(pairs.bitext), _STRETCH):
        links = slice(*np.searchsorted(pairs.sentence, (first, first + _STRETCH)))
        text = pairs.bitext.select(np.arange(first, min(first + _STRETCH, len(pairs.bitext))))
        row = pairs.sentence[links] - first
        sides = (text.source, pairs.source[links]), (text.target, pairs.target[links])
        source, target = (_words_at(side, side.offsets[row] + at, spelling) for side, at in sides)
        found.update(zip(source, target, strict=True))
    return found


def _words_at(side: Sentences, places: Longs, spelling: Spelling) -> list[str]:
    """The word around each of these pieces. Shape: places (n,)."""
    strings = side.vocabulary.strings
    pieces = [strings[i] for i in side.ids.tolist()]
    starts = np.fromiter(map(spelling.begins, pieces), bool, len(pieces))
    starts[side.offsets[:-1][side.lengths > 0]] = True
    cuts = np.append(np.flatnonzero(starts), len(pieces)).tolist()
    held = (np.cumsum(starts) - 1)[places]
    words = {i: spelling.text(pieces[cuts[i] : cuts[i + 1]]) for i in np.unique(held).tolist()}
    return [words[i] for i in held.tolist()]


def _block(
    languages: tuple[str, str], words: WordIndex, a: WordVectors, b: WordVectors, counts: Counter[str]
) -> PairBlock:
    """The pairs of which both words are present; the rest is counted by reason, never shifted."""
    both = a.present & b.present
    counts["used"] += int(both.sum())
    for vectors in (a, b):
        counts.update({reason: count for reason, count in vectors.dropped.items() if count})
    return PairBlock(languages, _rows(a, both), _rows(b, both), words.sentence[both])


def _rows(found: WordVectors, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
    return np.asarray(found.vectors[:, kept[found.present]], np.float32)


def identical_words(sides: tuple[Types, Types], *, numerals: bool = False) -> Dictionary:
    """Words that are written the same in both languages (or only those in figures) as their translations."""
    there = set(sides[1].words)
    same = [word for word in sides[0].words if word in there and (not numerals or _FIGURES.fullmatch(word))]
    if not same:
        languages = " and ".join(side.language for side in sides)
        what = "number" if numerals else "word"
        raise BadInput(
            f"no {what} is written the same in {languages}", remedy="give a dictionary, or more text of both"
        )
    return Dictionary(tuple((word, word) for word in same))


def linked(pairs: WordPairs, tokens: str = "words") -> PairSource:
    """The links of a bitext with or without special tokens: words, cls, cls+sep, or all (words and both)."""
    made: dict[str, PairSource] = {
        "words": LinkedWords(pairs),
        "cls": SpecialTokens(pairs.bitext),
        "cls+sep": SpecialTokens(pairs.bitext, last=True),
    }
    if tokens == "all":
        return Together((made["words"], made["cls+sep"]))
    return made[tokens]
