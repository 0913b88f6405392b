"""Word types that an alignment learns from or is refined by: their languages, the words, what is paired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import numpy as np

from calque.align.sources import DictionaryAnchors, identical_words
from calque.encoders.bylanguage import LanguageEncoders
from calque.encoders.static import StaticEncoder
from calque.encoders.wordtypes import Types, innermost
from calque.errors import BadSetting
from calque.measure.lexicon import TypeVector
from calque.pipeline.vocabularies import LanguagePair, Texts, WordsOptions, read_dictionaries, word_types
from calque.text.dictionaries import Dictionary, read_dictionary
from calque.text.languages import check_language
from calque.types import Encoder, PairSource, WordPairs


@dataclass(frozen=True, eq=False)
class _Set:
    """Two languages, the text to take means over, and the dictionary, where there are any."""

    languages: LanguagePair
    texts: Texts
    dictionary: Dictionary | None = None


@dataclass(frozen=True, eq=False)
class Seeds:
    """What verbs are given to pair word types by, and the types themselves.

    Means are taken over `texts`, or else over the text of `pairs`; static vectors need neither, and layer 0
    of words in one piece needs only the dictionary. With `alone` words are taken so wherever there is a text.
    """

    encoder: Encoder
    layers: tuple[int, ...]
    pairs: Sequence[WordPairs]
    texts: Texts
    dictionaries: Sequence[str] = ()
    languages: LanguagePair | None = None
    most: int | None = None
    alone: bool = False

    def __post_init__(self) -> None:
        if self.alone and self.layers != (0,):
            raise BadSetting(
                f"embeddings are layer 0, and layers {', '.join(map(str, self.layers))} are asked for",
                remedy="--layers 0, or --supervision dictionary for means over a text at any layer",
            )

    def sources(self, supervision: str) -> Iterator[PairSource]:
        """What is paired, one source a set."""
        for one, sides in zip(self.sets, self.types, strict=True):
            if supervision in ("dictionary", "embeddings"):
                if one.dictionary is None:
                    raise BadSetting("no dictionary", remedy="--dictionary FILE in MUSE format")
                yield DictionaryAnchors(one.dictionary, sides)
            else:
                yield DictionaryAnchors(identical_words(sides, numerals=supervision == "numerals"), sides)

    def frequent(self, count: int) -> dict[LanguagePair, tuple[Types, Types]]:
        """The most frequent words of each two languages, as the first set of these languages has them."""
        found: dict[LanguagePair, tuple[Types, Types]] = {}
        for one, (source, target) in zip(self.sets, self.types, strict=True):
            found.setdefault(one.languages, (_first(source, count), _first(target, count)))
        return found

    @cached_property
    def sets(self) -> list[_Set]:
        """One for each set of pairs; without pairs, one for each two languages."""
        if not self.pairs:
            held = read_dictionaries(self.dictionaries, self.languages)
            return [_Set(pair, self.texts, one) for pair, one in held.items()] or [
                _Set(self._two(), self.texts)
            ]
        if self.dictionaries and len(self.dictionaries) != len(self.pairs):
            raise BadSetting(
                f"{len(self.pairs)} sets of pairs and {len(self.dictionaries)} dictionaries",
                remedy="give one --dictionary for each --pairs, in the same order",
            )
        read: list[Dictionary | None] = [read_dictionary(path) for path in self.dictionaries]
        return [
            _Set(one.languages, self.texts if self.texts.files else Texts.read([], [one.bitext]), dictionary)
            for one, dictionary in zip_longest(self.pairs, read)
        ]

    def _two(self) -> LanguagePair:
        """The languages as given, or those of two texts, two tables or two encoders."""
        core = innermost(self.encoder)
        tables = [*core.tables] if isinstance(core, StaticEncoder) else []
        parts = [*core.parts] if isinstance(core, LanguageEncoders) else []
        told = self.languages or [*self.texts.files] or tables or parts
        if len(told) != 2:
            raise BadSetting("which two languages?", remedy="--languages en de")
        return check_language(told[0]), check_language(told[1])

    @cached_property
    def types(self) -> list[tuple[Types, Types]]:
        """The words of each set."""
        return [(self._types(one, 0), self._types(one, 1)) for one in self.sets]

    def _types(self, one: _Set, side: int) -> Types:
        language = one.languages[side]
        # Words of static vectors are ranked in their file, by more text than comes with links.
        static = isinstance(innermost(self.encoder), StaticEncoder) and not self.texts.files
        text = None if static else one.texts.of(language, one.languages)
        words = one.dictionary.words()[side] if one.dictionary is not None else []
        alone = self.alone or (text is None and words and self.layers == (0,))
        kind = TypeVector.STATIC if static else TypeVector.EMBEDDINGS if alone else TypeVector.ANCHORS
        return word_types(kind, [self.encoder], language, text, words, WordsOptions(most=self.most))


def _first(types: Types, count: int) -> Types:
    return types if len(types) <= count else types.keep(np.arange(count))
