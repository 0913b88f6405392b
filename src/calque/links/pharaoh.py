"""Links as text files.

Pharaoh: a line a sentence, a token a link: `0-1`, possible links `0p1` or `0?1`, scores `0-1:0.873`.
NAACL: a line a link, `sentence source target [S|P]`, counted from 1. XL-WA: tab-separated text and links.
PUD: a folder with two treebanks and links between their word ids as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calque.errors import BadInput
from calque.files import read_json, write_text
from calque.links.gold import GoldLinks
from calque.links.symmetrise import link_codes
from calque.text.conllu import Tree, read_conllu
from calque.text.languages import primary_subtag
from calque.text.lines import read_lines
from calque.types import UPOS, Bitext, Bytes, WordPairs

# Every repetition is bounded: without, a line of digits or spaces takes the square of its length.
_TOKEN = re.compile(
    r"(?<!\S)(\d{1,9})([-p?])(\d{1,9})(?::(\d{1,40}(?:\.\d{0,40})?(?:[eE][-+]?\d{1,9})?))?(?!\S)"
)
_NAACL = re.compile(r"(\d{1,9})\s{1,9}(\d{1,9})\s{1,9}(\d{1,9})(?:\s{1,9}([SP]))?(?:\s{1,9}[\d.]{1,40})?")
_PUD = ("alignment.json", "en.conllu", "target.conllu")


_LARGEST = float(np.finfo(np.float32).max)


class Link(NamedTuple):
    """One link as written in a file."""

    source: int
    target: int
    sure: bool = True
    score: float = 1.0


#: A link with the line it was read from and its sentence, -1 where the bitext does not hold that.
_ROW = np.dtype(
    [("line", "i8"), ("sentence", "i8"), ("source", "i8"), ("target", "i8"), ("sure", "?"), ("score", "f4")]
)


def parse_links(text: str) -> list[Link]:
    """Links of one line.

    >>> parse_links("0-1 2p0 3-3:0.5")
    [Link(source=0, target=1, sure=True, score=1.0), Link(source=2, target=0, sure=False, score=1.0), \
Link(source=3, target=3, sure=True, score=0.5)]
    """
    found = _TOKEN.findall(text)
    tokens = text.split()
    if len(found) != len(tokens):
        wrong = next(token for token in tokens if not _TOKEN.fullmatch(token))
        raise BadInput(f"not a link: {wrong!r}", remedy="write 0-1, 0p1 or 0?1 (possible), or 0-1:0.87")
    links = [Link(int(i), int(j), kind == "-", float(score or 1)) for i, kind, j, score in found]
    if huge := next((link for link in links if link.score > _LARGEST), None):
        raise BadInput(
            f"the score of {huge.source}-{huge.target} is too large", remedy="a score such as 0.87"
        )
    return links


def read_links(path: str | Path, bitext: Bitext, *, one_based: bool = False) -> WordPairs:
    """Read links of a bitext, possible ones included.

    The file has a line for each line that the bitext was read from, whether cleaning kept it or not; or a
    line for each sentence of the bitext.
    """
    lines = _pharaoh_lines(path)
    last = int(bitext.line.max(initial=0))
    if len(lines) < last and len(lines) != len(bitext):
        raise BadInput(
            f"{len(lines)} lines of links for {len(bitext)} sentence pairs",
            where=path,
            remedy=f"give one for each pair, or one for each of the {last} lines that the pairs came from",
        )
    rows = np.fromiter(_pharaoh_rows(path, lines, _places(lines, bitext)), _ROW)
    return _table(path, bitext, rows[rows["sentence"] >= 0], one_based, f"file:{Path(path).name}")


def read_gold(path: str | Path, bitext: Bitext, *, one_based: bool = False) -> GoldLinks:
    """Read hand-made links in Pharaoh, NAACL (always counted from 1) or XL-WA form, told by the first line.

    Lines belong to sentences as in `read_links`. Sentences without a link, or beyond the end of the file,
    were not judged.
    """
    lines = _pharaoh_lines(path)
    naacl = bool(_NAACL.fullmatch(next((line.strip() for line in lines if line.strip()), "")))
    places = {int(line): k for k, line in enumerate(bitext.line)} if naacl else _places(lines, bitext)
    found = _naacl_rows(path, lines, places) if naacl else _pharaoh_rows(path, lines, places)
    rows = np.fromiter(found, _ROW)
    known = rows[rows["sentence"] >= 0]
    if not len(known):
        raise BadInput("no gold links for these sentences", where=path, remedy="give gold of the same file")
    sure, possible = (
        _table(path, bitext, some, one_based or naacl, f"gold:{Path(path).name}")
        for some in (known[known["sure"]], known)
    )
    absent = np.unique(rows["line"][rows["sentence"] < 0])
    return GoldLinks(sure, possible, np.unique(known["sentence"]), len(absent))


def write_links(path: str | Path, pairs: WordPairs, *, one_based: bool = False, scored: bool = False) -> None:
    """Write a line for each sentence of the bitext, also where it has no links."""
    first = int(one_based)
    tokens = [
        f"{i}-{j}"
        for i, j in zip((pairs.source + first).tolist(), (pairs.target + first).tolist(), strict=True)
    ]
    if scored:
        tokens = [f"{token}:{score:.4g}" for token, score in zip(tokens, pairs.score.tolist(), strict=True)]
    cuts = np.searchsorted(pairs.sentence, np.arange(len(pairs.bitext) + 1)).tolist()
    write_text(Path(path), "".join(" ".join(tokens[a:b]) + "\n" for a, b in pairwise(cuts)))


# ---------------------------------------------------------------------------------------------- rows


def _pharaoh_lines(path: str | Path) -> list[str]:
    """The column that holds links, line by line."""
    lines = list(read_lines(path))
    if lines and lines[0].count("\t") == 2:
        return [_third(path, number, line) for number, line in enumerate(lines, 1)]
    return lines


def _third(path: str | Path, number: int, line: str) -> str:
    columns = line.split("\t")
    if line and len(columns) != 3:
        raise BadInput(f"{len(columns)} columns where the first line has 3", where=path, line=number)
    return columns[-1]


def _places(lines: list[str], bitext: Bitext) -> dict[int, int]:
    """Which sentence a line of the file belongs to."""
    positional = len(lines) < bitext.line.max(initial=0) and len(lines) == len(bitext)
    numbers = range(1, len(bitext) + 1) if positional else bitext.line.tolist()
    return {number: sentence for sentence, number in enumerate(numbers)}


def _pharaoh_rows(path: str | Path, lines: list[str], places: dict[int, int]) -> Iterator[tuple[Any, ...]]:
    for number, line in enumerate(lines, 1):
        try:
            links = parse_links(line)
        except BadInput as error:
            raise BadInput(error.what, where=path, line=number, remedy=error.remedy) from None
        sentence = places.get(number, -1)
        yield from ((number, sentence, *link) for link in links)


def _naacl_rows(path: str | Path, lines: list[str], places: dict[int, int]) -> Iterator[tuple[Any, ...]]:
    for number, line in enumerate(lines, 1):
        match = _NAACL.fullmatch(line.strip())
        if match is None:
            if line.strip():
                raise BadInput(f"not a link: {line!r}", where=path, line=number, remedy="write `1 3 4 S`")
            continue
        sentence, source, target, kind = match.groups()
        yield number, places.get(int(sentence), -1), int(source), int(target), kind != "P", 1.0


def _table(path: str | Path, bitext: Bitext, rows: NDArray[Any], one_based: bool, name: str) -> WordPairs:
    """These links, each once, every index within its sentence. Shape: rows (links,) of _ROW."""
    sentence, source, target = rows["sentence"], rows["source"] - one_based, rows["target"] - one_based
    for side, index in ((bitext.source, source), (bitext.target, target)):
        lengths = side.lengths[sentence]
        wrong = np.flatnonzero((index < 0) | (index >= lengths))
        if len(wrong):
            k = wrong[0]
            raise BadInput(
                f"link to word {index[k] + one_based} of a sentence of {lengths[k]} words ({side.language})",
                where=path,
                line=int(rows["line"][k]),
                remedy=f"words are numbered {int(one_based)} to {lengths[k] - 1 + one_based}",
            )
    links = WordPairs.of(bitext, sentence, source, target, rows["score"], name)
    codes = link_codes(links, int(bitext.target.lengths.max(initial=1)))
    return links.keep(np.diff(codes, prepend=-1) != 0)


# ----------------------------------------------------------------------------------------------- PUD


def is_pud(folder: str | Path) -> bool:
    """Whether a folder holds hand-made links in the PUD layout."""
    return all((Path(folder) / name).is_file() for name in _PUD)


def read_pud(folder: str | Path) -> WordPairs:
    """Read hand-made links of two treebanks, with part-of-speech tags; the folder is named like `en-ru`.

    English comes first in it. The annotation is sparse: a missing link is no evidence that two words do not
    translate each other.
    """
    folder = Path(folder)
    if not is_pud(folder):
        raise BadInput("no links in the PUD layout here", where=folder, remedy="needs " + ", ".join(_PUD))
    languages = tuple(folder.resolve().name.split("-"))
    if len(languages) != 2:
        raise BadInput("the folder's name does not say its languages", where=folder, remedy="name it en-ru")
    if primary_subtag(languages[0]) != "en":
        raise BadInput(
            f"its name says {languages[0]!r} first, but its first treebank is English",
            where=folder,
            remedy="name it en-ru, with en first",
        )
    held = _pud_links(read_json(folder / _PUD[0]), folder / _PUD[0])
    trees = [read_conllu(folder / name) for name in _PUD[1:]]
    if not len(held) == len(trees[0]) == len(trees[1]):
        counts = f"{len(held)}, {len(trees[0])} and {len(trees[1])}"
        raise BadInput(f"{counts} sentences in {', '.join(_PUD)}", where=folder, remedy="give all of one set")
    source, target = ([tree.words for tree in side] for side in trees)
    bitext = Bitext.of(languages, source, target, tags=(_tags(trees[0]), _tags(trees[1])), origin=str(folder))
    rows = [
        (number, number - 1, _word_id(folder, number, i), _word_id(folder, number, j), True, 1.0)
        for number, links in enumerate(held, 1)
        for i, others in links.items()
        for j in others
        if i != "X" and j != "X"
    ]
    return _table(folder / _PUD[0], bitext, np.array(rows, _ROW), True, "gold:pud")


def _pud_links(held: Any, path: Path) -> list[dict[str, list[str]]]:
    """For each sentence the words that each word is linked to, checked."""
    for number, links in enumerate(held if isinstance(held, list) else [held], 1):
        words = links.values() if isinstance(links, dict) and isinstance(held, list) else [None]
        if not all(isinstance(ids, list) and all(isinstance(one, str) for one in ids) for ids in words):
            remedy = 'a list of {"word id": ["word id"]}, one for each sentence'
            raise BadInput(f"not links of words, in sentence {number}", where=path, remedy=remedy)
    return list(held)


def _word_id(folder: Path, number: int, text: str) -> int:
    if not (text.isdecimal() and len(text) < 10):
        raise BadInput(
            f"not a word id: {text!r}", where=folder / _PUD[0], line=number, remedy="such as 3, or X"
        )
    return int(text)


def _tags(trees: list[Tree]) -> Bytes:
    number = {tag: k for k, tag in enumerate(UPOS)}
    return np.asarray([number.get(tag, 0) for tree in trees for tag in tree.upos], np.uint8)
