"""What verbs about word types read: dictionaries and text by language, and the words that there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from calque.encoders.wordtypes import Types, folded, forms_of, in_one_piece, table_words
from calque.errors import BadInput, BadSetting
from calque.measure.lexicon import TypeVector
from calque.text.bitext import read_sentences
from calque.text.dictionaries import Dictionary, languages_of, read_dictionary
from calque.text.languages import check_language, primary_subtag
from calque.types import Bitext, Encoder, Sentences

LanguagePair = tuple[str, str]


# --------------------------------------------------------------------------------------- dictionaries


def read_dictionaries(
    paths: Sequence[str | Path], languages: LanguagePair | None
) -> dict[LanguagePair, Dictionary]:
    """Dictionaries by their languages; several of the same languages and direction are one.

    Languages that are given come first and in their order: the only dictionary of the other direction is
    turned round.
    """
    held: dict[LanguagePair, Dictionary] = {}
    for path in paths:
        pair = _pair_of(path, languages)
        read = read_dictionary(path)
        held[pair] = read if pair not in held else Dictionary.of((*held[pair].pairs, *read.pairs))
    return held if languages is None or not held else _in_order(held, _codes(languages))


def _in_order(held: dict[LanguagePair, Dictionary], given: LanguagePair) -> dict[LanguagePair, Dictionary]:
    if given not in held:
        return {given: held[given[::-1]].swapped()}
    return {given: held[given], **held}


def _codes(languages: LanguagePair) -> LanguagePair:
    return check_language(languages[0]), check_language(languages[1])


def _pair_of(path: str | Path, languages: LanguagePair | None) -> LanguagePair:
    """As given, or turned round when the name of the file (de-en.txt) says so; else as that name says."""
    told = languages_of(path)
    if languages is not None:
        given = _codes(languages)
        return given[::-1] if told is not None and _is_turned(told, given) else given
    if told is None:
        raise BadSetting(
            "its name does not tell the languages of this dictionary",
            where=path,
            remedy="--languages en de, or a name such as en-de.txt",
        )
    return told


def _is_turned(told: LanguagePair, given: LanguagePair) -> bool:
    said, asked = ([primary_subtag(code) for code in pair] for pair in (told, given))
    return told == given[::-1] != given or said == asked[::-1] != asked


def by_direction(
    held: Mapping[LanguagePair, Dictionary], *, backward: bool
) -> dict[LanguagePair, dict[str, Dictionary]]:
    """Dictionaries by direction for each two languages, in the order of the first that was given.

    With `backward`, where there is a dictionary of one direction only, it serves for the other as well.
    """
    pairs: dict[LanguagePair, dict[str, Dictionary]] = {}
    for (a, b), dictionary in held.items():
        if (b, a) in pairs:
            pairs[b, a]["backward"] = dictionary
        else:
            pairs[a, b] = {"forward": dictionary}
    if backward:
        for ways in pairs.values():
            ways.setdefault("backward", ways["forward"].swapped())
    return pairs


# ----------------------------------------------------------------------------------------------- text


@dataclass(frozen=True, eq=False)
class Texts:
    """Text by language, or by pair of languages where it comes with pairs."""

    files: Mapping[str, Sentences]
    bitexts: Mapping[frozenset[str], Bitext]

    @classmethod
    def read(
        cls,
        files: Sequence[str],
        bitexts: Iterable[Bitext] = (),
        *,
        tokenised: bool = False,
        limit: int | None = None,
    ) -> Texts:
        """Files as LANGUAGE=FILE, or bitexts."""
        read = {
            code: read_sentences(path, code, tokenised=tokenised, limit=limit)
            for code, path in files_by_language(files).items()
        }
        held: dict[frozenset[str], Bitext] = {}
        for one in bitexts:
            if frozenset(one.languages) in held:
                raise BadSetting(
                    f"two sets of pairs of {' and '.join(one.languages)}",
                    remedy="give one, or files by --text",
                )
            held[frozenset(one.languages)] = one
        if read and held:
            raise BadSetting("text both by --text and by --pairs", remedy="give one of them")
        return cls(read, held)

    def of(self, language: str, pair: LanguagePair) -> Sentences | None:
        """The text of one of two languages, if there is any."""
        bitext = self.bitexts.get(frozenset(pair))
        if bitext is not None:
            return bitext.source if bitext.source.language == language else bitext.target
        return self.files.get(language)

    def fingerprints(self) -> dict[str, str]:
        """By name, for a recipe."""
        files = {f"text {code}": text.fingerprint for code, text in self.files.items()}
        return files | {f"text {'-'.join(one.languages)}": one.fingerprint for one in self.bitexts.values()}


def files_by_language(given: Sequence[str]) -> dict[str, str]:
    """Files given as LANGUAGE=FILE, each by itself or with commas between.

    >>> files_by_language(["en=news.en", "de=a,b.txt,fr=c.txt"])
    {'en': 'news.en', 'de': 'a,b.txt', 'fr': 'c.txt'}
    """
    files: dict[str, str] = {}
    for one in chain.from_iterable(re.split(r",(?=[\w-]+=)", held) for held in given):
        language, equals, path = one.partition("=")
        if not (language and equals and path):
            raise BadSetting(f"--text {one!r} is not LANGUAGE=FILE", remedy="for example en=news.en")
        code = check_language(language)
        if code in files:
            raise BadSetting(f"two texts for {code}", remedy="give one file a language")
        files[code] = path
    return files


# ---------------------------------------------------------------------------------------------- words


@dataclass(frozen=True)
class WordsOptions:
    """Which words there are: how often they must occur, how many at most, and whether case counts."""

    fold: bool = True
    min_count: int = 1
    most: int | None = None


def word_types(
    kind: TypeVector,
    encoders: Sequence[Encoder],
    language: str,
    text: Sentences | None,
    dictionary: Iterable[str] = (),
    options: WordsOptions = WordsOptions(),
) -> Types:
    """The words of a language whose vectors can be asked for.

    Those of the text; without a text, those of the first table of static vectors; without one of these, those
    of the dictionary.
    """
    if kind is TypeVector.ANCHORS:
        if text is None:
            raise BadSetting(
                f"no {language} text to take the means of words over",
                remedy=f"--text {language}=FILE, or --pairs with {language}",
            )
        return Types.of_text(text, fold=options.fold, min_count=options.min_count, most=options.most)
    forms = _forms(encoders, language, text, dictionary, options)
    if kind is TypeVector.EMBEDDINGS:
        single = np.logical_and.reduce([in_one_piece(one, language, forms) for one in encoders])
        if not single.any():
            raise BadInput(
                f"none of {len(forms)} {language} words is a single piece",
                remedy="means over a text take any: --vectors anchors, to align --supervision dictionary",
            )
        forms = [forms[i] for i in np.flatnonzero(single).tolist()]
    return Types.of_words(language, forms, fold=options.fold, most=options.most)


def _forms(
    encoders: Sequence[Encoder],
    language: str,
    text: Sentences | None,
    dictionary: Iterable[str],
    options: WordsOptions,
) -> Sequence[str]:
    """Words as they are written, the most frequent first."""
    if text is not None:
        # Case is folded afterwards, so that the form that is a single piece can stand for a type.
        kept = Types.of_text(text, fold=options.fold, min_count=options.min_count)
        return [form for form in forms_of(text) if folded(form, options.fold) in kept.place]
    tables = (table_words(one, language) for one in encoders)
    found = next((words for words in tables if words is not None), None)
    return list(dict.fromkeys(dictionary)) if found is None else found
