"""A Hugging Face tokenizer as calque uses it: each word on its own, in the form it has inside a sentence."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from calque.encoders.spans import Frame, Layout, PieceTable, as_pieces, lay_out
from calque.errors import BadInput, BadSetting
from calque.files import text_digest
from calque.types import Ints, Longs, Sentences, Vocabulary

_SPACE_MARKS = "▁Ġ "
_PROBES = ("a", "the", "1", ".")
#: Texts that are cut in one call, so that their pieces never all lie in memory as Python's numbers.
_TOGETHER = 10_000


@dataclass(frozen=True, eq=False)
class PairFrame:
    """Special tokens around two texts in one row, and the segment (token type) of every part.

    Shape: head, middle, tail (special tokens,); kinds of head, first text, middle, second text, tail.
    """

    head: Ints
    middle: Ints
    tail: Ints
    kinds: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)

    def begin(self, prefix: Sequence[int]) -> PairFrame:
        """The same with a prefix before the first text."""
        return replace(self, head=_ints([*self.head, *prefix]))

    @property
    def size(self) -> int:
        """How many pieces it takes."""
        return len(self.head) + len(self.middle) + len(self.tail)


class Reader:
    """Sentences to rows of pieces, by one tokenizer.

    The same path serves fast and slow tokenizers: every distinct word is cut once, on its own, which is what
    `is_split_into_words` does to each occurrence. The tokenizer adds no special tokens, padding or
    truncation here: the frame does.
    """

    def __init__(self, tokenizer: Any, *, prefix: str = "", limit: int = 512) -> None:
        self.tokenizer, self.prefix, self.limit = tokenizer, prefix, limit
        self._space = leading_space(tokenizer)
        self._frames: dict[str, Frame] = {}
        self._tables: dict[str, WeakKeyDictionary[Vocabulary, PieceTable]] = {
            unit: WeakKeyDictionary() for unit in ("word", "piece")
        }

    def layout(self, sentences: Sentences) -> Layout:
        """Rows of pieces and the places of words in them."""
        return lay_out(sentences, self._table(sentences), self.frame(sentences.language))

    def pieces(self, sentences: Sentences) -> Sentences:
        """The same text with this tokenizer's pieces for words."""
        if sentences.unit == "piece":
            return sentences
        return as_pieces(sentences, self._table(sentences), self.tokenizer.convert_ids_to_tokens)

    def frame(self, language: str) -> Frame:
        """Special tokens and prefix around a sentence of this language."""
        if language not in self._frames:
            first, last = special_tokens(self.tokenizer, language)
            head = first + (cut(self.tokenizer, [self.prefix.strip()])[0] if self.prefix.strip() else [])
            frame = Frame(_ints(head), _ints(last), self.limit, bool(first), bool(last))
            if frame.room < 1:
                raise BadSetting(
                    f"max_length {self.limit} leaves no room for words",
                    remedy=f"special tokens and prefix take {len(head) + len(last)} pieces",
                )
            self._frames[language] = frame
        return self._frames[language]

    @cached_property
    def pair(self) -> PairFrame:
        """What surrounds two texts that are read as one row."""
        frame = pair_frame(self.tokenizer)
        prefix = cut(self.tokenizer, [self.prefix.strip()])[0] if self.prefix.strip() else []
        return frame.begin(prefix)

    def read(self, texts: Sequence[str], *, first: bool = False) -> list[Ints]:
        """Pieces of whole texts, as the tokenizer itself cuts them; `first` ones follow the prefix."""
        space = self._space if first and self.prefix.strip() else ""
        whole = [space + text for text in texts]
        parts = (whole[at : at + _TOGETHER] for at in range(0, len(whole), _TOGETHER))
        return [_ints(pieces) for part in parts for pieces in cut(self.tokenizer, part)]

    def characters(self, text: str) -> tuple[Ints, Longs]:
        """Pieces of a whole text, and where they lie in it in characters. Shape: (pieces,), (pieces, 2).

        Ends are excluded. Tokenizers without offsets are given a word at a time, and tell no more than the
        whole word.
        """
        if not self.tokenizer.is_fast:
            return self._by_words(text)
        told = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return _ints(told["input_ids"]), with_marks(text, np.array(told["offset_mapping"], np.int64))

    def _by_words(self, text: str) -> tuple[Ints, Longs]:
        words = list(re.finditer(r"\S+", text))
        found = cut(self.tokenizer, [word[0] for word in words]) if words else []
        spans = [word.span() for word, pieces in zip(words, found, strict=True) for _ in pieces]
        flat = [piece for pieces in found for piece in pieces]
        return _ints(flat), np.array(spans, np.int64).reshape(-1, 2)

    @cached_property
    def pad(self) -> int:
        """A piece to fill rows with; it is always masked."""
        known = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id)
        return next((int(piece) for piece in known if piece is not None), 0)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides how words are cut and framed."""
        held = {"vocabulary": self.tokenizer.get_vocab(), "class": type(self.tokenizer).__name__}
        if self.tokenizer.is_fast:
            whole = json.loads(self.tokenizer.backend_tokenizer.to_str())
            held |= {key: whole[key] for key in ("normalizer", "pre_tokenizer", "model", "added_tokens")}
        frame = self.frame("")
        around = [frame.head.tolist(), frame.tail.tolist(), self._space, self.limit]
        return text_digest(json.dumps(held, sort_keys=True), json.dumps(around))

    @cached_property
    def _blank(self) -> Ints:
        """Pieces that are no more than a space mark: the lone `▁` of SentencePiece, `Ġ` of byte-level BPE."""
        marks = [
            i for piece, i in self.tokenizer.get_vocab().items() if not piece.strip(_SPACE_MARKS).strip()
        ]
        return _ints([i for i in marks if not self.tokenizer.decode([i]).strip()])

    def _table(self, sentences: Sentences) -> PieceTable:
        tables, vocabulary = self._tables[sentences.unit], sentences.vocabulary
        if vocabulary not in tables:
            if sentences.unit == "piece":
                tables[vocabulary] = PieceTable(len(vocabulary), self._look_up, _ints([]))
            else:
                tables[vocabulary] = PieceTable(len(vocabulary), self._cut, self._blank)
        return tables[vocabulary]

    def _cut(self, words: Sequence[str]) -> list[list[int]]:
        return cut(self.tokenizer, [self._space + word for word in words])

    def _look_up(self, pieces: Sequence[str]) -> list[list[int]]:
        known = self.tokenizer.get_vocab()
        unknown = [piece for piece in pieces if piece not in known]
        if unknown:
            raise BadInput(
                f"{unknown[0]!r} is not a piece of this encoder ({len(unknown)} such)",
                remedy="link subwords with the encoder that will read them",
            )
        return [[known[piece]] for piece in pieces]


def cut(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Piece ids of each text, without special tokens."""
    found = tokenizer(
        texts,
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    return list(found["input_ids"])


def leading_space(tokenizer: Any) -> str:
    """What to put before a lone word so that it is cut as it would be inside a sentence.

    Byte-level BPE tells `cat` from ` cat` and wants the space; WordPiece and SentencePiece, which add their
    own mark, do not.
    """
    for probe in _PROBES:
        plain, spaced, twice = cut(tokenizer, [probe, f" {probe}", f"{probe} {probe}"])
        inside = twice[len(plain) :]
        if plain != spaced and inside in (plain, spaced):
            return " " if inside == spaced else ""
    return ""


def special_tokens(tokenizer: Any, language: str) -> tuple[list[int], list[int]]:
    """The special tokens before and after a sentence of this language; the tokenizer is left as it was."""
    code = language_code(tokenizer, language)
    if code is None:
        return _around(tokenizer)
    before = tokenizer.src_lang
    tokenizer.src_lang = code
    try:
        return _around(tokenizer)
    finally:
        tokenizer.src_lang = before


def _around(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens before and after a sentence, as the tokenizer is set."""
    for probe in _PROBES:
        bare = cut(tokenizer, [probe])[0]
        framed = list(tokenizer(probe)["input_ids"])
        for at in range(len(framed) - len(bare) + 1):
            if bare and framed[at : at + len(bare)] == bare:
                return framed[:at], framed[at + len(bare) :]
    return [], []


def with_marks(text: str, places: Longs) -> Longs:
    """Ends moved over characters that normalising joined to the one before. Shape: (pieces, 2), kept.

    An accent of its own becomes part of its letter, and tokenizers then tell of the letter alone. Spaces and
    invisible characters that they leave out stay outside, if no other follows them that was left out. Others
    before all pieces are of the first.

    >>> with_marks("e\u0301 a", np.array([[0, 1], [2, 4]])).tolist()
    [[0, 2], [2, 4]]
    >>> with_marks("e \u0e33  a", np.array([[0, 1], [4, 6]])).tolist()  # Thai am is lost
    [[0, 3], [4, 6]]
    >>> with_marks(" \u0e33 a", np.array([[2, 4]])).tolist()
    [[1, 4]]
    """
    places = places.reshape(-1, 2).copy()
    begins = np.append(places[:, 0], len(text))
    stops = begins[np.searchsorted(begins[:-1], places[:, 1])]
    for row in np.flatnonzero(stops > places[:, 1]).tolist():
        end, stop = int(places[row, 1]), int(stops[row])
        while stop > end and unicodedata.category(text[stop - 1])[0] in "CZ":
            stop -= 1
        places[row, 1] = stop
    before = [at for at in range(begins[0]) if unicodedata.category(text[at])[0] not in "CZ"]
    if before and len(places):
        places[0, 0] = before[0]
    return places


def pair_frame(tokenizer: Any) -> PairFrame:
    """The special tokens around two texts, as the tokenizer puts them.

    One that knows how to frame a text but not two puts none around them: then each is framed by itself, with
    one token to begin with.
    """
    for probe in _PROBES:
        bare = cut(tokenizer, [probe])[0]
        told = tokenizer(probe, probe)
        framed, size = list(told["input_ids"]), len(bare)
        found = [at for at in range(len(framed)) if bare and framed[at : at + size] == bare]
        if len(found) != 2:
            continue
        a, b = found
        head, middle, tail = (_ints(part) for part in (framed[:a], framed[a + size : b], framed[b + size :]))
        if len(framed) == 2 * size:
            first, last = map(_ints, special_tokens(tokenizer, ""))
            return PairFrame(first, last if len(last) else first, last)
        # Where a tokenizer marks segments, a special token is of the text that it closes.
        kinds = list(told.get("token_type_ids") or [0] * len(framed))
        at = (0, a, a + size, b, b + size)
        own = tuple(int(kinds[place]) if place < len(kinds) else 0 for place in at)
        return PairFrame(head, middle, tail, (own[0], own[1], own[2], own[3], own[4]))
    raise BadInput("this tokenizer does not put two texts into one row")


def language_code(tokenizer: Any, language: str) -> str | None:
    """A translation model's own code of a language (`de_DE`, `deu_Latn`), where its input has one."""
    if not language or not hasattr(tokenizer, "src_lang"):
        return None
    import langcodes

    codes = sorted(getattr(tokenizer, "lang_code_to_id", None) or tokenizer.all_special_tokens)
    try:
        names = {language, langcodes.get(language).language, langcodes.get(language).to_alpha3()}
        wide = _macrolanguage(language)
    except (LookupError, ValueError):
        names, wide = {language}, ""
    exact = (code for code in codes if code in names or code.partition("_")[0] in names)
    # NLLB names Arabic by one of its languages: arb_Arab.
    part = (code for code in codes if wide and "_" in code and _macrolanguage(code.partition("_")[0]) == wide)
    return next(exact, None) or next(part, None)


def _macrolanguage(language: str) -> str:
    """The language that this is one of, or itself; "" of what is no language."""
    import langcodes

    try:
        return langcodes.get(language).prefer_macrolanguage().language or ""
    except (LookupError, ValueError):
        return ""


def _ints(values: Sequence[int]) -> Ints:
    return np.asarray(values, np.int32)
