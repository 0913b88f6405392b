"""From files to a bitext: read, split into words, clean, and keep as word ids."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, tee
from typing import NamedTuple

import numpy as np

from calque.errors import BadInput, BadSetting
from calque.progress import bar
from calque.recipe import suggestion
from calque.text.clean import STANDARD, Cleaning, reasons
from calque.text.conllu import Tree, read_conllu
from calque.text.languages import check_language
from calque.text.lines import bare_suffix, read_lines
from calque.text.readers import TREEBANKS, BitextFormat, guess_format, read_pairs, read_trees
from calque.text.words import tokenise_all, tokeniser
from calque.types import UPOS, Bitext, Sentences, Vocabulary

_STEP = 1000
_TAGS = {tag: number for number, tag in enumerate(UPOS)}


class _Pair(NamedTuple):
    """A sentence pair as words, with a tag a word where there are any."""

    line: int
    source: Sequence[str]
    target: Sequence[str]
    source_tags: bytes = b""
    target_tags: bytes = b""


class _Side:
    """One side as it grows: word ids, sentence lengths, tags."""

    def __init__(self, known: defaultdict[str, int]) -> None:
        self.known, self.ids, self.ends, self.tags = known, array("i"), array("q", [0]), bytearray()

    def add(self, words: Sequence[str], tags: bytes = b"") -> None:
        self.ids.extend(map(self.known.__getitem__, words))
        self.ends.append(len(self.ids))
        self.tags += tags

    def sentences(self, language: str, vocabulary: Vocabulary) -> Sentences:
        tags = np.frombuffer(self.tags, np.uint8) if self.tags else None
        ids, ends = np.frombuffer(self.ids, np.int32), np.frombuffer(self.ends, np.int64)
        return Sentences(language, ids, ends, vocabulary, tags)


def _numbering() -> defaultdict[str, int]:
    """Words to numbers; a new word gets the next number when it is looked up."""
    known: defaultdict[str, int] = defaultdict()
    known.default_factory = known.__len__
    return known


def read_bitext(
    paths: Sequence[str],
    languages: tuple[str, str],
    *,
    format: BitextFormat | None = None,
    tokenised: bool = False,
    cleaning: Cleaning | None = STANDARD,
    limit: int | None = None,
) -> Bitext:
    """A bitext from one file, or one a language; None tells the format by itself.

    `limit` is how many pairs to read, before cleaning; `cleaning=None` drops nothing. Treebanks keep their
    own words and tags. Sentences become word ids as they are read, so that a million pairs fit easily.
    """
    codes = check_language(languages[0]), check_language(languages[1])
    chosen = guess_format(paths) if format is None else format
    if chosen is BitextFormat.CONLLU:
        pairs = _tagged(paths, limit)
    else:
        pairs = _tokenised(paths, codes, format=chosen, tokenised=tokenised, limit=limit)
    return _assemble(pairs, codes, cleaning, " ".join(paths))


def _tokenised(
    paths: Sequence[str],
    languages: tuple[str, str],
    *,
    format: BitextFormat,
    tokenised: bool,
    limit: int | None,
) -> Iterator[_Pair]:
    source, target = (tokeniser(language, tokenised=tokenised) for language in languages)
    for pair in read_pairs(paths, languages, format=format, limit=limit):
        yield _Pair(pair.line, source(pair.source), target(pair.target))


def _tagged(paths: Sequence[str], limit: int | None) -> Iterator[_Pair]:
    for number, (a, b) in enumerate(islice(read_trees(paths), limit), 1):
        yield _Pair(number, a.words, b.words, _tags(a, paths[0], number), _tags(b, paths[1], number))


def _tags(tree: Tree, path: str, number: int) -> bytes:
    try:
        return bytes(_TAGS[tag] for tag in tree.upos)
    except KeyError as error:
        tag = str(error.args[0])
        raise BadInput(
            f"sentence {number} has the part of speech {tag!r}", where=path, remedy=suggestion(tag, UPOS[1:])
        ) from None


def _assemble(
    pairs: Iterable[_Pair], languages: tuple[str, str], cleaning: Cleaning | None, origin: str
) -> Bitext:
    known = _numbering()
    source, target, lines = _Side(known), _Side(known), array("q")
    dropped: Counter[str] = Counter()
    with bar("reading", unit="pairs") as advance:
        for count, (pair, reason) in enumerate(_judged(pairs, cleaning), 1):
            if count % _STEP == 0:
                advance(_STEP)
            if reason is not None:
                dropped[reason] += 1
                continue
            source.add(pair.source, pair.source_tags)
            target.add(pair.target, pair.target_tags)
            lines.append(pair.line)
    if not lines:
        raise BadInput(_nothing_left(dropped), where=origin)
    vocabulary = Vocabulary.of(known)
    a, b = source.sentences(languages[0], vocabulary), target.sentences(languages[1], vocabulary)
    return Bitext(a, b, np.frombuffer(lines, np.int64), origin, dict(sorted(dropped.items())))


def _judged(pairs: Iterable[_Pair], cleaning: Cleaning | None) -> Iterator[tuple[_Pair, str | None]]:
    if cleaning is None:
        return ((pair, None) for pair in pairs)
    kept, words = tee(pairs)
    return zip(kept, reasons(((pair.source, pair.target) for pair in words), cleaning), strict=True)


def _nothing_left(dropped: Mapping[str, int]) -> str:
    if not dropped:
        return "no sentence pairs here"
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items()))
    return f"no sentence pair left: all {sum(dropped.values())} dropped ({told})"


def read_sentences(
    path: str, language: str, *, tokenised: bool = False, limit: int | None = None
) -> Sentences:
    """Sentences of one language, a line each, or those of a treebank with their tags.

    An empty line is an empty sentence, so that sentence k is line k.
    """
    if limit is not None and limit < 1:
        raise BadSetting(f"limit {limit}", remedy="at least 1")
    code, known = check_language(language), _numbering()
    side = _Side(known)
    if bare_suffix(path) in TREEBANKS:
        for number, tree in enumerate(islice(read_conllu(path), limit), 1):
            side.add(tree.words, _tags(tree, path, number))
    else:
        for words in tokenise_all(code, islice(read_lines(path), limit), tokenised=tokenised):
            side.add(words)
    if len(side.ends) == 1:
        raise BadInput("no sentences here", where=path)
    return side.sentences(code, Vocabulary.of(known))
