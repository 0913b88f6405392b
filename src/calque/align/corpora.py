"""Linked sentences as training takes them: links that the encoder sees, words that can be told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calque.align.sources import word_types
from calque.encoders.encoder import HuggingFaceEncoder
from calque.errors import BadInput
from calque.text.names import pair_names
from calque.types import (
    FIRST_SPECIAL,
    LAST_SPECIAL,
    Bitext,
    Flags,
    Ints,
    Longs,
    Sentences,
    WordIndex,
    WordPairs,
)

#: What is linked: words, the first special token of both sides, the first and the last, or all of these.
Supervision = Literal["words", "cls", "cls+sep", "all"]
#: Which side of the pairs moves; the other is held.
Moves = Literal["target", "source"]


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a corpus, and its words that are linked.

    Shape: at, word (links,): the word's place in its sentence, and a number that is the same for the same
    word of the same language.
    """

    text: Sentences
    at: Longs
    word: Longs


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentence pairs with links, all of which the encoder can see.

    `read` are the names of the sentence pairs, as `pair_names` gives them.
    Shape: first (sentences + 1,) into the links; length (sentences,), pieces of the longer side; read
    (sentences,).
    """

    languages: tuple[str, str]
    held: Side
    moving: Side
    first: Longs
    length: Longs
    types: frozenset[tuple[str, str]]
    coverage: Mapping[str, int]
    read: Longs


@dataclass(frozen=True, eq=False)
class _Links:
    """Links of words and special tokens, ordered by sentence. Shape: all (links,)."""

    sentence: Ints
    source: Ints
    target: Ints

    def keep(self, rows: Flags) -> _Links:
        return _Links(self.sentence[rows], self.source[rows], self.target[rows])


class Preparer:
    """Makes corpora out of pairs; the same word has the same number in all of them.

    `most` sentence pairs of each are drawn.
    """

    def __init__(
        self,
        encoder: HuggingFaceEncoder,
        *,
        supervision: Supervision = "words",
        moves: Moves = "target",
        most: int | None = None,
        seed: int = 0,
    ) -> None:
        self.encoder, self.supervision, self.moves, self.most = encoder, supervision, moves, most
        self._random = np.random.default_rng(seed)
        self._numbers: dict[tuple[str, str], int] = {}
        self._sentences = 0

    def corpus(self, pairs: WordPairs) -> Corpus:
        """Draw sentence pairs, keep the links that the encoder sees, and count the others."""
        drawn = self._drawn(pairs)
        links, lengths, counts = self._visible(drawn.bitext, link_table(drawn, self.supervision))
        used, row = np.unique(links.sentence.astype(np.int64), return_inverse=True)
        counts["sentences without links"] = len(drawn.bitext) - len(used)
        if not len(used):
            raise BadInput(
                f"no links to train on; {told(counts)}",
                where="-".join(pairs.languages),
                remedy="check the links, their filters and max_length",
            )
        words = links.keep(links.source >= 0)
        text = drawn.bitext.select(used)
        sides = [self._side(text.source, row, links.source), self._side(text.target, row, links.target)]
        held, moving = sides if self.moves == "target" else sides[::-1]
        self._sentences += len(used)
        return Corpus(
            languages=pairs.languages,
            held=held,
            moving=moving,
            first=np.searchsorted(row, np.arange(len(used) + 1)),
            length=lengths[used],
            types=frozenset(
                word_types(WordPairs.of(drawn.bitext, words.sentence, words.source, words.target))
            ),
            coverage={reason: count for reason, count in counts.items() if count},
            read=pair_names(text),
        )

    def _drawn(self, pairs: WordPairs) -> WordPairs:
        if self.most is None or self.most >= len(pairs.bitext):
            return pairs
        return pairs.sentences(np.sort(self._random.permutation(len(pairs.bitext))[: self.most]))

    def _visible(self, bitext: Bitext, links: _Links) -> tuple[_Links, Longs, Counter[str]]:
        """Links of which both words have a vector; pieces of the longer side of each pair; what was lost."""
        counts: Counter[str] = Counter()
        seen, lengths = np.ones(len(links.sentence), np.bool_), np.zeros(len(bitext), np.int64)
        for side, words in ((bitext.source, links.source), (bitext.target, links.target)):
            layout = self.encoder.reader.layout(side)
            found = layout.find(WordIndex(links.sentence, words))
            seen &= found.present
            counts.update(found.dropped)
            lengths = np.maximum(lengths, layout.lengths)
        counts["used"] = int(seen.sum())
        return links.keep(seen), lengths, counts

    def _side(self, text: Sentences, row: Longs, word: Ints) -> Side:
        # A special token stands for its sentence, and that is another one everywhere.
        numbers = -1 - 2 * (self._sentences + row) - (word == LAST_SPECIAL)
        plain = word >= 0
        ids = text.ids[text.offsets[row[plain]] + word[plain]].astype(np.int64)
        used, inverse = np.unique(ids, return_inverse=True)
        strings = text.vocabulary.strings
        known = [
            self._numbers.setdefault((text.language, strings[i]), len(self._numbers)) for i in used.tolist()
        ]
        numbers[plain] = np.array(known, np.int64)[inverse]
        return Side(text, word.astype(np.int64), numbers)


def link_table(pairs: WordPairs, supervision: str) -> _Links:
    """The links that are asked for: of words, of special tokens, or of both."""
    rows = np.arange(len(pairs.bitext), dtype=np.int32)
    marks = {"words": [], "cls": [FIRST_SPECIAL], "cls+sep": [LAST_SPECIAL, FIRST_SPECIAL]}
    columns = [(rows, np.full_like(rows, mark)) for mark in marks.get(supervision, marks["cls+sep"])]
    sentence, source, target = ([one[place] for one in columns] for place in (0, 1, 1))
    if supervision in ("words", "all"):
        sentence, source, target = (
            [*sentence, pairs.sentence],
            [*source, pairs.source],
            [*target, pairs.target],
        )
    whole = np.concatenate(sentence)
    order = np.argsort(whole, kind="stable")
    return _Links(whole[order], np.concatenate(source)[order], np.concatenate(target)[order])


def told(counts: Mapping[str, int]) -> str:
    """Counts in words.

    >>> told({"used": 0, "truncated": 3})
    '0 used, 3 truncated'
    """
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
