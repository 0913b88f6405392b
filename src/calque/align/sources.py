"""Where paired vectors come from: linked words or subwords, special tokens, sentences, a dictionary.

Each source yields blocks of paired vectors, so that a map can be learned from a corpus of any size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from calque.encoders.anchors import BLOCK_NUMBERS, anchors, word_chunks
from calque.errors import BadInput
from calque.files import text_digest
from calque.progress import bar
from calque.text.dictionaries import Dictionary
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
        return self.pairs.types()


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
        size = max(1, min(4096, BLOCK_NUMBERS // (len(layers) * encoder.width)))
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


@dataclass(frozen=True, eq=False)
class DictionaryAnchors:
    """Dictionary entries, each word by its mean vector over the corpus.

    Dictionaries are usually in lower case: a word of the corpus matches as it is or lower-cased.
    """

    dictionary: Dictionary
    bitext: Bitext
    _counts: Counter[str] = field(default_factory=Counter, repr=False)

    @property
    def languages(self) -> tuple[str, str]:
        return self.bitext.languages

    @property
    def fingerprint(self) -> str:
        entries = "\n".join(f"{a}\t{b}" for a, b in self.dictionary.pairs)
        return text_digest("dictionary", entries, self.bitext.fingerprint)

    def blocks(self, encoder: Encoder, layers: Sequence[int], pooling: Pooling) -> Iterator[PairBlock]:
        sides = []
        for side, text in enumerate((self.bitext.source, self.bitext.target)):
            row_of, entry = _entry_rows([pair[side] for pair in self.dictionary.pairs])
            types = _type_rows(text, row_of)
            found = anchors(encoder, text, types, len(row_of), layers=layers, pooling=pooling)
            sides.append((found, entry))
        (a, left), (b, right) = sides
        seen = (a.counts[left] > 0) & (b.counts[right] > 0)
        self._counts.clear()
        self._counts.update(
            {
                "used": int(seen.sum()),
                "source word not in the corpus": int((a.counts[left] == 0).sum()),
                "target word not in the corpus": int(((a.counts[left] > 0) & (b.counts[right] == 0)).sum()),
            }
        )
        if not seen.any():
            raise BadInput(
                f"none of the {len(seen)} dictionary entries has both words in the corpus",
                remedy="give a dictionary of these languages, in the direction of the pairs",
            )
        source, target = a.vectors[:, left[seen]], b.vectors[:, right[seen]]
        yield PairBlock(self.languages, source.astype(np.float32), target.astype(np.float32), left[seen])

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


def _entry_rows(words: Sequence[str]) -> tuple[dict[str, int], Longs]:
    """Distinct words with a row each, and every entry's row. Shape: (entries,)."""
    row_of: dict[str, int] = {}
    rows = [row_of.setdefault(word, len(row_of)) for word in words]
    return row_of, np.array(rows, np.int64)


def _type_rows(text: Sentences, row_of: Mapping[str, int]) -> Longs:
    """Which dictionary row each vocabulary word stands for, or -1. Shape: (vocabulary,)."""
    rows: list[int] = [row_of.get(word, row_of.get(word.lower(), -1)) for word in text.vocabulary.strings]
    return np.array(rows, np.int64)


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
