"""Raw sentence pairs out of the files people have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, TypeVar
from xml.parsers import expat

from calque.errors import BadInput, BadSetting, MissingExtra
from calque.recipe import Choice
from calque.text.conllu import Tree, read_conllu
from calque.text.languages import primary_subtag
from calque.text.lines import bare_suffix, open_binary, read_lines

__all__ = ["BitextFormat", "RawPair", "guess_format", "open_binary", "read_lines", "read_pairs", "read_trees"]

T = TypeVar("T")


@dataclass(frozen=True)
class RawPair:
    """Two sentences as they stand in a file. `line` is their 1-based line or record there."""

    line: int
    source: str
    target: str


class BitextFormat(Choice):
    """How a bitext lies on disk.

    tsv: source ⇥ target, id ⇥ source ⇥ target, or source ⇥ target ⇥ word links. lines: two files, line by
    line. triple: source ||| target. tmx: translation memory. conllu: two treebanks, sentence by sentence.
    dataset: a Hugging Face dataset, `hf:NAME[:CONFIG][:SPLIT]`.
    """

    TSV = "tsv"
    LINES = "lines"
    TRIPLE = "triple"
    TMX = "tmx"
    CONLLU = "conllu"
    DATASET = "dataset"


TREEBANKS = frozenset({".conllu", ".conll"})
_DATASET = "hf:"
_BY_SUFFIX = {".tsv": BitextFormat.TSV, ".tab": BitextFormat.TSV, ".tmx": BitextFormat.TMX}
_TWO_FILES = frozenset({BitextFormat.LINES, BitextFormat.CONLLU})


def guess_format(paths: Sequence[str]) -> BitextFormat:
    """The format of a bitext by its number of files, their suffixes and, failing that, their first line.

    >>> guess_format(["a.en.gz", "a.de.gz"]).value, guess_format(["hf:opus100:de-en"]).value
    ('lines', 'dataset')
    """
    if len(paths) == 2:
        treebanks = all(bare_suffix(path) in TREEBANKS for path in paths)
        return BitextFormat.CONLLU if treebanks else BitextFormat.LINES
    if len(paths) != 1:
        raise BadSetting(f"{len(paths)} files for a bitext", remedy="give one file, or one a language")
    if is_dataset(paths[0]):
        return BitextFormat.DATASET
    return _BY_SUFFIX.get(bare_suffix(paths[0])) or _guess_by_content(paths[0])


def _guess_by_content(path: str) -> BitextFormat:
    first = next((line for line in read_lines(path) if line), "")
    if " ||| " in first:
        return BitextFormat.TRIPLE
    if "\t" in first:
        return BitextFormat.TSV
    raise BadInput(
        "no tab and no ' ||| ' in its first line: not a bitext by itself",
        where=path,
        remedy="give the file of the other language too, or the format by name",
    )


def read_pairs(
    paths: Sequence[str],
    languages: tuple[str, str],
    *,
    format: BitextFormat | None = None,
    limit: int | None = None,
) -> Iterator[RawPair]:
    """Sentence pairs in the order of the file, at most `limit` of them; None tells the format by itself."""
    if limit is not None and limit < 1:
        raise BadSetting(f"limit {limit}", remedy="at least 1")
    chosen = guess_format(paths) if format is None else format
    expected = 2 if chosen in _TWO_FILES else 1
    if len(paths) != expected:
        raise BadSetting(f"{len(paths)} files for format {chosen}", remedy=f"it takes {expected}")
    return islice(_READERS[chosen](paths, languages), limit)


# ------------------------------------------------------------------------------------- lines of text

_PHARAOH = re.compile(r"\d+[-p?:]\d+( \d+[-p?:]\d+)*")
#: A word with a digit, such as 17 or Gen.1.1, or up to three words before it: 1 Kings 2:3.
_ID = re.compile(r"(\S{1,40} ){0,3}[^\s\d]*\d\S*")
_PEEK = 20


def _read_tsv(paths: Sequence[str], languages: tuple[str, str]) -> Iterator[RawPair]:
    (path,) = paths
    count, place = _columns(path)
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if len(columns) != count:
            if line:
                raise BadInput(
                    f"{len(columns)} columns, where the file began with {count}",
                    where=path,
                    line=number,
                    remedy="a tab between columns and none inside a sentence",
                )
            columns = [""] * count
        yield RawPair(number, columns[place], columns[place + 1])


def _columns(path: str) -> tuple[int, int]:
    """How many columns a file has, and which is the first with text.

    Of three columns the first must be an id, unless the last holds word links.
    """
    numbered = enumerate(read_lines(path), 1)
    peek = [(number, line.split("\t")) for number, line in islice(numbered, _PEEK) if line]
    if not peek:
        return 2, 0
    number, first = peek[0]
    if len(first) not in (2, 3):
        raise BadInput(f"{len(first)} columns", where=path, line=number, remedy="two, or three with an id")
    if len(first) == 2 or _links_in(columns for _, columns in peek):
        return len(first), 0
    _check_ids(path, peek)
    return 3, 1


def _links_in(rows: Iterable[Sequence[str]]) -> bool:
    """Whether the third column holds word links, as far as it is filled."""
    last = [columns[2].strip() for columns in rows if len(columns) == 3 and columns[2].strip()]
    return bool(last) and all(map(_PHARAOH.fullmatch, last))


def holds_links(path: str) -> bool:
    """Whether a file has word links beside two columns of text."""
    if not Path(path).is_file() or path.endswith(".tmx"):
        return False
    return _links_in(line.split("\t") for line in islice(read_lines(path), _PEEK))


def _check_ids(path: str, peek: Sequence[tuple[int, list[str]]]) -> None:
    """Refuse what would make pairs of a sentence and its score or licence."""
    cells = [(number, columns[0].strip()) for number, columns in peek if len(columns) == 3]
    wrong = [(number, cell) for number, cell in cells if cell and not _ID.fullmatch(cell)]
    if not wrong:
        return
    number, cell = wrong[0]
    heads = number == cells[0][0] and len(cells) > len(wrong) == 1
    raise BadInput(
        f"three columns, of which the first is no id: {cell[:60]!r}{', perhaps a header' * heads}",
        where=path,
        line=number,
        remedy="remove the header: tail -n +2"
        if heads
        else "an id has a digit; leave the two columns with text: cut -f1,2 (or -f2,3)",
    )


def _read_triple(paths: Sequence[str], languages: tuple[str, str]) -> Iterator[RawPair]:
    (path,) = paths
    for number, line in enumerate(read_lines(path), 1):
        sides = line.split(" ||| ") if line else ["", ""]
        if len(sides) != 2:
            raise BadInput(
                f"{len(sides) - 1} separators ' ||| ' where there must be one", where=path, line=number
            )
        yield RawPair(number, sides[0], sides[1])


def _read_two(paths: Sequence[str], languages: tuple[str, str]) -> Iterator[RawPair]:
    for number, (source, target) in enumerate(_together(paths, map(read_lines, paths), "lines"), 1):
        yield RawPair(number, source, target)


def _together(paths: Sequence[str], sides: Iterable[Iterable[T]], unit: str) -> Iterator[tuple[T, T]]:
    """Two sides item by item; different lengths are told with both counts."""
    a, b = (iter(side) for side in sides)
    for number, (x, y) in enumerate(zip_longest(a, b)):
        if x is None or y is None:
            counts = (
                (number, number + 1 + sum(1 for _ in b))
                if x is None
                else (number + 1 + sum(1 for _ in a), number)
            )
            raise BadInput(
                f"{counts[0]} {unit}, but {paths[1]} has {counts[1]}",
                where=paths[0],
                remedy="the two files must pair up one to one",
            )
        yield x, y


# ----------------------------------------------------------------------------------------- treebanks


def read_trees(paths: Sequence[str]) -> list[tuple[Tree, Tree]]:
    """Two treebanks sentence by sentence; the same sentence ids in another order are an error."""
    source, target = (read_conllu(path) for path in paths)
    pairs = list(_together(paths, (source, target), "sentences"))
    if {tree.id for tree in source} == {tree.id for tree in target}:
        for number, (a, b) in enumerate(pairs, 1):
            if a.id != b.id:
                raise BadInput(
                    f"sentence {number} is {a.id}, but {b.id} in {paths[1]}",
                    where=paths[0],
                    remedy="put both treebanks into the same order",
                )
    return pairs


def _read_conllu(paths: Sequence[str], languages: tuple[str, str]) -> Iterator[RawPair]:
    for number, (source, target) in enumerate(read_trees(paths), 1):
        a, b = (tree.text or " ".join(tree.words) for tree in (source, target))
        yield RawPair(number, a, b)


# ---------------------------------------------------------------------------------------------- tmx

#: A translation unit is no larger than this, with all markup in it: what never ends would fill the memory.
LARGEST_UNIT = 1 << 22
#: Elements inside a segment whose content is formatting code, not text.
_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})


class _Units:
    """Collects the translation units that an XML parser goes past, each as {language: text}."""

    def __init__(self) -> None:
        self.done: list[dict[str, str]] = []
        self._unit: dict[str, str] = {}
        self._language = ""
        self._text: list[str] | None = None
        self._codes = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "tu":
            self._unit = {}
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "seg":
            self._text, self._codes = [], 0
        elif name in _CODES:
            self._codes += 1

    def characters(self, text: str) -> None:
        if self._text is not None and not self._codes:
            self._text.append(text)

    def end(self, name: str) -> None:
        if name in _CODES:
            self._codes -= 1
        elif name == "seg" and self._text is not None:
            self._unit.setdefault(self._language, " ".join("".join(self._text).split()))
            self._text = None
        elif name == "tu":
            self.done.append(self._unit)

    def take(self) -> list[dict[str, str]]:
        done, self.done = self.done, []
        return done


def _units(path: str) -> Iterator[dict[str, str]]:
    def refuse(*_: Any) -> None:
        raise BadInput(
            "declares XML entities", where=path, line=parser.CurrentLineNumber, remedy="expand them"
        )

    units, given, ended = _Units(), 0, 0
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = units.start, units.end
    parser.CharacterDataHandler = units.characters
    # Entities that expand to one another can fill any memory; a translation memory has no use for them.
    parser.EntityDeclHandler = refuse
    with open_binary(path) as handle:
        try:
            while chunk := handle.read(1 << 16):
                parser.Parse(chunk)
                given += len(chunk)
                if done := units.take():
                    ended = given
                    yield from done
                elif given - ended > LARGEST_UNIT:
                    raise BadInput(
                        f"no translation unit in {LARGEST_UNIT >> 20} MiB",
                        where=path,
                        line=parser.CurrentLineNumber,
                    )
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            told = expat.ErrorString(error.code)
            raise BadInput(f"not well-formed XML: {told}", where=path, line=error.lineno) from None
        except (LookupError, ValueError) as error:
            raise BadInput(f"unknown encoding: {error}", where=path, remedy="convert it to UTF-8") from None


def _read_tmx(paths: Sequence[str], languages: tuple[str, str]) -> Iterator[RawPair]:
    """Every translation unit; one that lacks a language has an empty side."""
    (path,) = paths
    found: dict[str, None] = {}
    for number, unit in enumerate(_units(path), 1):
        found.update(dict.fromkeys(unit))
        yield RawPair(number, _of(unit, languages[0]) or "", _of(unit, languages[1]) or "")
    for language in languages:
        _need(found, language, path)


def _of(values: Mapping[str, T], language: str) -> T | None:
    """The value under this very code, or else under another form of the same language."""
    keys = [key for key in values if key.lower() == language.lower()]
    keys += [key for key in values if primary_subtag(key) == primary_subtag(language)]
    return values[keys[0]] if keys else None


def _need(found: Mapping[str, Any], language: str, path: str) -> None:
    if not any(primary_subtag(key) == primary_subtag(language) for key in found):
        raise BadInput(f"nothing in {language!r} here", where=path, remedy="it holds " + ", ".join(found))


# ------------------------------------------------------------------------------------------ datasets

_SPLITS = frozenset({"train", "validation", "test"})


def _read_dataset(paths: Sequence[str], languages: tuple[str, str]) -> Iterator[RawPair]:
    (path,) = paths
    for number, row in enumerate(_rows(path), 1):
        sides = row.get("translation") or row
        if number == 1:
            for language in languages:
                _need(sides, language, path)
        yield RawPair(number, str(_of(sides, languages[0]) or ""), str(_of(sides, languages[1]) or ""))


def is_dataset(path: str) -> bool:
    """Whether this names a dataset and no file."""
    return path.startswith(_DATASET)


def dataset_texts(path: str) -> Iterator[str]:
    """The text of every row of a dataset: its first column of a usual name, line by line."""
    for row in _rows(path):
        column = next((name for name in ("text", "sentence", "content", "document") if name in row), None)
        if column is None:
            raise BadInput(
                "no column text, sentence, content or document",
                where=path,
                remedy="it holds " + ", ".join(row),
            )
        yield from (line.removesuffix("\r") for line in str(row[column]).split("\n"))


def _rows(path: str) -> Iterable[Mapping[str, Any]]:
    try:
        import datasets
    except ImportError:
        raise MissingExtra("reading a dataset by name", "datasets") from None
    name, config, split = _dataset_parts(path)
    try:
        for saved in (Path(name, split), Path(name)):
            if (saved / "state.json").is_file():
                return datasets.load_from_disk(str(saved))  # type: ignore[no-any-return]
        return datasets.load_dataset(name, config, split=split)  # type: ignore[no-any-return]
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise BadInput(f"cannot be loaded: {error}", where=path) from None


def _dataset_parts(path: str) -> tuple[str, str | None, str]:
    """Name, config and split of `hf:NAME[:CONFIG][:SPLIT]`; the split is train unless given.

    >>> _dataset_parts("hf:opus100:de-en:train[:1000]"), _dataset_parts("hf:squad:validation[10%:20%]")
    (('opus100', 'de-en', 'train[:1000]'), ('squad', None, 'validation[10%:20%]'))
    """
    name, *rest = re.split(r":(?![^\[]*\])", path.removeprefix(_DATASET))  # a split may be train[:1000]
    if not name or len(rest) > 2:
        raise BadSetting(f"dataset {path!r} not understood", remedy="hf:NAME[:CONFIG][:SPLIT]")
    if len(rest) == 1 and rest[0].partition("[")[0] in _SPLITS:
        rest = ["", rest[0]]
    config, split = (*rest, "", "")[:2]
    return name, config or None, split or "train"


_READERS: dict[BitextFormat, Callable[[Sequence[str], tuple[str, str]], Iterator[RawPair]]] = {
    BitextFormat.TSV: _read_tsv,
    BitextFormat.LINES: _read_two,
    BitextFormat.TRIPLE: _read_triple,
    BitextFormat.TMX: _read_tmx,
    BitextFormat.CONLLU: _read_conllu,
    BitextFormat.DATASET: _read_dataset,
}
