"""Word types of a language: which there are, the most frequent first, and a text that they occur in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calque.encoders.bylanguage import LanguageEncoders
from calque.encoders.static import StaticEncoder
from calque.encoders.wrapped import Wrapped
from calque.errors import BadInput, BadSetting
from calque.files import text_digest
from calque.types import Encoder, Flags, Longs, Sentences, Vocabulary

#: Words that are cut into pieces at a time.
_CUT = 8192


@dataclass(frozen=True, eq=False)
class Types:
    """Word types, the most frequent first, and a text in which they occur.

    With `fold`, words that differ in case only are one type, in lower case.
    Shape: rows (vocabulary of the text,): which type a word is, -1 for one that is left out.

    >>> types = Types.of_text(Sentences.of("de", [["Das", "Haus"], ["das", "Ufer"]]))
    >>> types.words, types.find(["DAS", "Hof"]).tolist()
    (('das', 'haus', 'ufer'), [0, -1])
    """

    words: tuple[str, ...]
    text: Sentences
    rows: Longs
    fold: bool = True

    @classmethod
    def of_text(
        cls, text: Sentences, *, fold: bool = True, min_count: int = 1, most: int | None = None
    ) -> Types:
        """The words of a text: those that occur often enough, and of these the most frequent."""
        counts = np.bincount(text.ids, minlength=len(text.vocabulary))
        used, strings = np.flatnonzero(counts), text.vocabulary.strings
        known: dict[str, int] = {}
        names = (known.setdefault(folded(strings[i], fold), len(known)) for i in used.tolist())
        which = np.fromiter(names, np.int64, len(used))
        total = np.bincount(which, counts[used], len(known))
        order = np.argsort(-total, kind="stable")[: int((total >= min_count).sum())][:most]
        if not len(order):
            told = f"no word occurs {min_count} times" if len(known) else "no words"
            raise BadInput(f"{told} in the {text.language} text", remedy="give more text, or --min-count 1")
        place = np.full(len(known), -1, np.int64)
        place[order] = np.arange(len(order))
        rows = np.full(len(counts), -1, np.int64)
        rows[used] = place[which]
        strings = list(known)
        return cls(tuple(strings[i] for i in order.tolist()), text, rows, fold)

    @classmethod
    def of_words(
        cls, language: str, forms: Iterable[str], *, fold: bool = True, most: int | None = None
    ) -> Types:
        """Words by themselves, a sentence each; of several that are one type the first."""
        first: dict[str, str] = {}
        for form in forms:
            if len(first) == most:
                break
            first.setdefault(folded(form, fold), form)
        return cls(
            tuple(first), one_word_sentences(language, tuple(first.values())), np.arange(len(first)), fold
        )

    def __len__(self) -> int:
        return len(self.words)

    @property
    def language(self) -> str:
        return self.text.language

    @property
    def alone(self) -> bool:
        """Whether every word stands by itself, without a context."""
        return bool((self.text.lengths <= 1).all())

    @cached_property
    def place(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    def find(self, words: Iterable[str]) -> Longs:
        """The row of each of these words, -1 where there is none. Shape: (words,)."""
        return np.array([self.place.get(folded(word, self.fold), -1) for word in words], np.int64)

    def keep(self, chosen: Longs) -> Types:
        """These types in this order. Shape: chosen (n,)."""
        place = np.full(len(self) + 1, -1, np.int64)
        place[chosen] = np.arange(len(chosen))
        kept = replace(self, words=tuple(self.words[i] for i in chosen.tolist()), rows=place[self.rows])
        return kept._without_others() if self.alone else kept

    def _without_others(self) -> Types:
        """Words by themselves: those of no type leave the text too."""
        text = self.text.select(np.flatnonzero(self.text.lengths))
        return replace(self, text=text.select(np.flatnonzero(self.rows[text.ids] >= 0)))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the text, and of which of its words are which type."""
        used = np.unique(self.text.ids)
        strings = self.text.vocabulary.strings
        names = (f"{strings[i]}\t{row}" for i in used.tolist() if (row := self.rows[i]) >= 0)
        return text_digest(self.text.fingerprint, str(len(self)), *sorted(names))


def folded(word: str, fold: bool) -> str:
    """A word as it is compared: in lower case, or as it is written."""
    lower = word.lower() if fold else word
    # Most words are in lower case already, and one string is enough.
    return word if lower == word else lower


def one_word_sentences(language: str, words: Sequence[str]) -> Sentences:
    """Each word as a sentence of its own."""
    ids = np.arange(len(words), dtype=np.int32)
    return Sentences(language, ids, np.arange(len(words) + 1, dtype=np.int64), Vocabulary.of(words))


def forms_of(text: Sentences) -> list[str]:
    """The words of a text as they are written, the most frequent first."""
    counts = np.bincount(text.ids, minlength=len(text.vocabulary))
    strings = text.vocabulary.strings
    return [strings[i] for i in np.argsort(-counts, kind="stable")[: int((counts > 0).sum())].tolist()]


def table_words(encoder: Encoder, language: str) -> Sequence[str] | None:
    """The words that static vectors are there for, in the order of their file; None for another encoder."""
    core = innermost(encoder)
    if not isinstance(core, StaticEncoder):
        return None
    if language not in core.tables:
        known = ", ".join(sorted(core.tables))
        raise BadSetting(f"{core.name} has no vectors for {language!r}", remedy=f"known: {known}")
    return core.tables[language].words.strings


def innermost(encoder: Encoder) -> Encoder:
    """The encoder inside all that is wrapped around it."""
    while isinstance(encoder, Wrapped):
        encoder = encoder.inner
    return encoder


def in_one_piece(encoder: Encoder, language: str, words: Sequence[str]) -> Flags:
    """Which words are a single piece of this encoder, and not its piece for unknown ones. Shape: (words,).

    Static vectors have no pieces: all their words are in one.
    """
    core = innermost(encoder)
    if isinstance(core, LanguageEncoders):
        core = core.speaking(language)
    single = np.zeros(len(words), bool)
    for start in range(0, len(words), _CUT):
        text = one_word_sentences(language, words[start : start + _CUT])
        if isinstance(core, StaticEncoder):
            single[start : start + _CUT] = core.word_vectors(text, layers=[0]).present
            continue
        batch = core.batch(text)
        piece = batch.pieces.cpu().numpy()[batch.row, batch.start]
        unknown = getattr(getattr(core, "tokenizer", None), "unk_token_id", None)
        single[start + batch.row] = (batch.end - batch.start == 1) & (
            piece != (-1 if unknown is None else unknown)
        )
    return single
