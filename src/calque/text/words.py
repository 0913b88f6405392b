"""Sentences to words: Moses rules, and segmenters for languages written without spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any, TypeAlias

from calque.errors import MissingExtra
from calque.text.languages import primary_subtag

Tokeniser: TypeAlias = Callable[[str], list[str]]

# Characters nobody sees, which would become words of their own. U+200B marks a word boundary; the joiners
# U+200C and U+200D belong to the spelling of a word and stay.
_BOUNDARY = re.compile("[\0\u200b]")
# MeCab takes the square of a text's length; no sentence is as long as this.
_LONGEST = 5000
_DIGITS = frozenset("0123456789")
# What may follow an emoji and belong to it: variation selectors, a keycap, skin tones.
_EMOJI_ENDS = "[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]"
_INVISIBLE = re.compile("[\u00ad\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


def tokeniser(language: str, *, tokenised: bool = False) -> Tokeniser:
    """A function from a sentence to its words; `tokenised` text is split at spaces and left alone otherwise.

    >>> tokeniser("en")("Mr. Smith's e-mail costs $5.00, doesn't it?")
    ['Mr.', 'Smith', "'s", 'e-mail', 'costs', '$', '5.00', ',', 'doesn', "'t", 'it', '?']
    """
    if tokenised:
        return str.split
    code = primary_subtag(language)
    split = _SEGMENTERS.get(code, _moses)(code)
    return lambda text: split(_visible(text))


def tokenise_all(language: str, texts: Iterable[str], *, tokenised: bool = False) -> Iterator[list[str]]:
    """The words of each sentence."""
    return map(tokeniser(language, tokenised=tokenised), texts)


def _visible(text: str) -> str:
    return text if text.isascii() and "\0" not in text else _INVISIBLE.sub("", _BOUNDARY.sub(" ", text))


# --------------------------------------------------------------------------------------------- Moses


@cache
def _moses(language: str) -> Tokeniser:
    """The rules of the Moses tokeniser as sacremoses has them, without escapes.

    The same words as `MosesTokenizer.tokenize`, three times as fast: a rule runs only on text that holds its
    character. One difference: accents and joiners written as characters of their own stay in their word, and
    an emoji made of several characters is one word.
    Languages that Moses does not know get English abbreviations, and an apostrophe is a word of its own.
    """
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(language)
    apostrophes = {
        "en": moses.ENGLISH_SPECIFIC_APOSTROPHE,
        "fr": moses.FR_IT_SPECIFIC_APOSTROPHE,
        "it": moses.FR_IT_SPECIFIC_APOSTROPHE,
    }.get(language, [moses.NON_SPECIFIC_APOSTROPHE])
    commas = [moses.COMMA_SEPARATE_1, moses.COMMA_SEPARATE_2, moses.COMMA_SEPARATE_3]
    symbol = rf"[^{moses.IsAlnum}{_marks()}\s\.'\`\,\-]"
    symbols = [(re.compile(rf"({symbol}(?:{_EMOJI_ENDS}|\u200d{symbol})*)"), r" \1 ")]
    full_stops = _full_stops(moses)

    def split(text: str) -> list[str]:
        text = _apply([moses.ASCII_JUNK], " ".join(text.split())).strip()
        text = _apply(symbols, text)
        dots = ".." in text
        if dots:
            text = moses.replace_multidots(text)
        if "," in text:
            text = _apply(commas, text)
        if "'" in text:
            text = _apply(apostrophes, text)
        if "." in text:
            text = _apply([moses.TRAILING_DOT_APOSTROPHE], full_stops(text))
        return (moses.restore_multidots(text) if dots else text).split()

    return split


def _apply(rules: Iterable[tuple[re.Pattern[str], str]], text: str) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def _full_stops(moses: Any) -> Callable[[str], str]:
    """Split a full stop off its word, unless it belongs to an abbreviation or the sentence goes on."""
    letters, lower = frozenset(moses.IsAlpha), frozenset(moses.IsLower)
    before_numbers = frozenset(moses.NUMERIC_ONLY_PREFIXES)
    abbreviations = frozenset(moses.NONBREAKING_PREFIXES) - before_numbers

    def belongs(word: str, following: str) -> bool:
        return (
            ("." in word and not letters.isdisjoint(word))
            or word in abbreviations
            or following[:1] in lower
            or (word in before_numbers and following[:1] in _DIGITS)
        )

    def split(text: str) -> str:
        words = text.split()
        ends = [place for place, word in enumerate(words) if word[-1] == "." and word != "."]
        for place in ends:
            word = words[place][:-1]
            if not belongs(word, "".join(words[place + 1 : place + 2])):
                words[place] = word + " ."
        return " ".join(words)

    return split


@cache
def _marks() -> str:
    """Combining marks and joiners. Beyond U+FFFF they would make the pattern slow."""
    return "".join(c for c in map(chr, range(0x10000)) if unicodedata.category(c)[0] == "M") + "\u200c\u200d"


# ---------------------------------------------------------------------------------------- segmenters


@cache
def _icu(language: str, *, extra: str) -> Tokeniser:
    try:
        import icu
    except ImportError:
        raise MissingExtra(f"word segmentation of {language!r}", extra) from None
    breaks = icu.BreakIterator.createWordInstance(icu.Locale(language))

    def split(text: str) -> list[str]:
        breaks.setText(text)
        cuts = [0, *breaks]
        if cuts[-1] == len(text):
            pieces = [text[a:b] for a, b in pairwise(cuts)]
        else:  # ICU counts UTF-16 units, and this text has characters of two.
            units = text.encode("utf-16-le")
            pieces = [units[2 * a : 2 * b].decode("utf-16-le") for a, b in pairwise(cuts)]
        return " ".join(pieces).split()  # a space and an accent on it are one piece

    return split


@cache
def _mecab(language: str) -> Tokeniser:
    try:
        import fugashi

        tagger = fugashi.Tagger("-Owakati")
    except (ImportError, RuntimeError):
        raise MissingExtra("word segmentation of Japanese", "ja") from None

    def split(text: str) -> list[str]:
        parts = (text[at : at + _LONGEST] for at in range(0, len(text), _LONGEST))
        return [word for part in parts for word in str(tagger.parse(part)).split()]

    return split


_SEGMENTERS: dict[str, Callable[[str], Tokeniser]] = {
    "zh": partial(_icu, extra="zh"),
    "yue": partial(_icu, extra="zh"),
    "cmn": partial(_icu, extra="zh"),
    "th": partial(_icu, extra="th"),
    "lo": partial(_icu, extra="th"),
    "km": partial(_icu, extra="th"),
    "my": partial(_icu, extra="th"),
    "ja": _mecab,
}
