"""Sentences with a tag a word: entities and slots in BIO, parts of speech."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

from calque.errors import BadInput
from calque.recipe import suggestion
from calque.text.conllu import Tree
from calque.text.labelled.hub import column, read_rows
from calque.text.labelled.items import Labelled, Tagged
from calque.text.labelled.reading import (
    Changed,
    Numbered,
    Passed,
    Remark,
    Source,
    TaskFiles,
    attempt,
    blocks,
    check_text,
)
from calque.text.labelled.trees import tree_from_row, tree_of
from calque.text.lines import read_lines
from calque.types import UPOS

_BIO = re.compile(r"O|[BI]-.+")
_DOCUMENT = "-DOCSTART-"
_NOTHING = "NoLabel"


def read_ner(
    path: str | Path,
    language: str,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    limit: int | None = None,
) -> Labelled[Tagged]:
    """Sentences with entities in BIO.

    conll: a word a line, its tag in the last column, as CoNLL-02/03, WikiAnn and pioNER have it. Tags of the
    older kind, where B- only parts neighbours, become BIO, counted; WikiAnn's `en:` before every word goes.
    conllu: `Entity=B-PER` in the last column. dataset: `hf:NAME[:CONFIG][:SPLIT]`.
    An I- without its B- stays as it is.
    """
    return NER.read(path, language, format=format, skip_bad=skip_bad, limit=limit)


def read_slots(
    path: str | Path,
    language: str,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    limit: int | None = None,
) -> Labelled[Tagged]:
    """Requests with slots in BIO.

    conll: number, word, intent, tag, as Facebook's and xSID's files have it (`NoLabel` is O), or a word first
    and its tag last. folder: `seq.in` and `seq.out`, as ATIS and SNIPS have it. conllu: `Slot=B-date` in the
    last column; where some sentences have an intent, those without are dropped, counted. dataset:
    `hf:NAME[:CONFIG][:SPLIT]`.
    """
    return SLOTS.read(path, language, format=format, skip_bad=skip_bad, limit=limit)


def read_pos(
    path: str | Path,
    language: str,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    limit: int | None = None,
) -> Labelled[Tagged]:
    """Sentences with parts of speech.

    conllu: the universal tags of a treebank. tsv: word ⇥ tag, of any tagset. dataset:
    `hf:NAME[:CONFIG][:SPLIT]`.
    """
    return POS.read(path, language, format=format, skip_bad=skip_bad, limit=limit)


# ------------------------------------------------------------------------------------------ BIO tags


def _check_bio(tag: str, word: str, number: int, source: Source) -> None:
    if not _BIO.fullmatch(tag):
        raise source.bad(
            "tag without BIO", f"tag {tag!r} of {word!r}", line=number, remedy="it must be O, B-x or I-x"
        )


def _bio(found: Iterable[Tagged | Remark]) -> Iterator[Tagged | Remark]:
    """Tags as they are, or begun with B- where the whole file is of the older kind."""
    held = list(found)
    if not _is_older(one.tags for one in held if isinstance(one, Tagged)):
        yield from held
        return
    for one in held:
        if isinstance(one, Tagged) and (tags := _from_older(one.tags)) != one.tags:
            yield Changed("IOB1 made BIO")
            yield replace(one, tags=tags)
        else:
            yield one


def _is_older(sentences: Iterable[Sequence[str]]) -> bool:
    """Whether B- stands only where it parts two neighbours of a type, and some entity begins without it."""
    begun = False
    for tags in sentences:
        for before, tag in pairwise(("O", *tags)):
            apart = before[1:] != tag[1:]
            if tag[0] == "B" and apart:
                return False
            begun |= tag[0] == "I" and apart
    return begun


def _from_older(tags: Sequence[str]) -> tuple[str, ...]:
    """Begin every entity with B-.

    >>> _from_older(["I-PER", "I-PER", "B-PER", "O", "I-LOC"])
    ('B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC')
    """
    return tuple(
        "B" + tag[1:] if tag[0] == "I" and before[1:] != tag[1:] else tag
        for before, tag in pairwise(("O", *tags))
    )


# ------------------------------------------------------------------------------------------- columns


def _read_columns(source: Source, *, intents: bool = True, bio: bool = True) -> Iterator[Tagged | Remark]:
    """A word a line, its tag last; the word stands first, or second where the first column counts words."""
    sentences = [rows for block in blocks(source.path) for rows in _parts(block)]
    words = list(chain.from_iterable(map(_words, sentences)))
    if not words:
        raise BadInput("no words here", where=source.path)
    tabs = "\t" in words[0][1]
    width = len(_split(words[0][1], tabs=tabs))
    if width < 2 or (width > 2 and not bio):
        raise BadInput(f"{width} columns, where each word has its tag", where=source.path, line=words[0][0])
    if not intents and any(_intent(rows) for rows in sentences):
        raise BadInput("names intents: slots, not entities", where=source.path)
    place = int(width > 2 and _counts_words(sentences, tabs=tabs))
    prefix = _wikiann_prefix([line for _, line in words]) if width == 2 else ""
    layout = _Layout(tabs, width, place, prefix, bio)
    for rows in sentences:
        yield attempt(_from_columns, rows, layout, source)


class _Layout(NamedTuple):
    """How a file has its columns: the place of the word, what stands before every word, kind of tags."""

    tabs: bool
    width: int
    place: int
    prefix: str
    bio: bool


def _parts(block: Numbered) -> Iterator[Numbered]:
    """A block without the lines that begin documents."""
    rows: Numbered = []
    for number, line in block:
        if not line.startswith(_DOCUMENT):
            rows.append((number, line))
        elif rows:
            yield rows
            rows = []
    if rows:
        yield rows


def _words(rows: Numbered) -> Numbered:
    """The lines of a sentence that are not comments before its first word."""
    start = 0
    while start < len(rows) and _is_comment(rows[start][1], rows[-1][1]):
        start += 1
    return rows[start:]


def _is_comment(line: str, last: str) -> bool:
    """The token "#" is a word in many a file, so a comment has other columns than the last line."""
    tabs = "\t" in last
    return line.startswith("# ") and len(_split(line, tabs=tabs)) != len(_split(last, tabs=tabs))


def _split(line: str, *, tabs: bool) -> list[str]:
    return line.split("\t") if tabs else [part for part in line.split(" ") if part]


def _intent(rows: Numbered) -> bool:
    return any(re.match(r"# intent\s*[:=]", line) for _, line in rows[: len(rows) - len(_words(rows))])


def _counts_words(sentences: Iterable[Numbered], *, tabs: bool) -> bool:
    """Whether most lines begin with the number of their word."""
    score = 0
    for rows in sentences:
        for place, (_, line) in enumerate(_words(rows), 1):
            score += 1 if _split(line, tabs=tabs)[0] == str(place) else -1
    return score > 0


def _wikiann_prefix(lines: Sequence[str]) -> str:
    """`en:` where every word begins with it."""
    found = re.match(r"(?:[a-z]{2,3}(?:-[a-z]+)*|simple):", lines[0])
    return found[0] if found and all(line.startswith(found[0]) for line in lines) else ""


def _from_columns(rows: Numbered, layout: _Layout, source: Source) -> Tagged:
    lines = _words(rows)
    if not lines:
        raise source.bad("no words", "a sentence without words", line=rows[0][0])
    words, tags = zip(*(_word(line, number, layout, source) for number, line in lines), strict=True)
    return Tagged(words, tags, _id(rows), lines[0][0])


def _id(rows: Numbered) -> str:
    """The sentence's id, where a comment gives it."""
    found = (re.match(r"# (?:sent_)?id = (.*)", line) for _, line in rows)
    return next((match[1].strip() for match in found if match), "")


def _word(line: str, number: int, layout: _Layout, source: Source) -> tuple[str, str]:
    columns = _split(line, tabs=layout.tabs)
    if len(columns) != layout.width:
        raise source.bad(
            "columns", f"{len(columns)} columns, where the file began with {layout.width}", line=number
        )
    word, tag = columns[layout.place].removeprefix(layout.prefix), columns[-1].strip()
    tag = "O" if tag == _NOTHING and layout.bio else tag
    check_text(source, word, line=number, name="word")
    check_text(source, tag, line=number, name="tag")
    if layout.bio:
        _check_bio(tag, word, number, source)
    # A word that stands in many sentences is held once.
    return intern(word), intern(tag)


def _read_pos_columns(source: Source) -> Iterator[Tagged | Remark]:
    found = list(_read_columns(source, bio=False))
    tags = {tag for one in found if isinstance(one, Tagged) for tag in one.tags}
    if tags and all(map(_BIO.fullmatch, tags)):
        some = ", ".join(sorted(tags)[:3])
        raise BadInput(f"tags {some}: entities or slots, not parts of speech", where=source.path)
    yield from found


# ------------------------------------------------------------------------------------------- folders


def _read_folder(source: Source) -> Iterator[Tagged | Remark]:
    """Words in `seq.in` and tags in `seq.out`, line by line."""
    folder = Path(source.path)
    if not (folder / "seq.in").is_file():
        held = sorted(path.parent.name for path in folder.glob("*/seq.in"))
        remedy = "give one of its folders: " + ", ".join(held) if held else "seq.in and seq.out"
        raise BadInput("no seq.in in this folder", where=folder, remedy=remedy)
    sides = [replace(source, path=str(folder / name)) for name in ("seq.in", "seq.out")]
    words, tags = (list(read_lines(side.path)) for side in sides)
    if len(words) != len(tags):
        raise BadInput(f"{len(words)} lines, but seq.out has {len(tags)}", where=sides[0].path)
    for number, (line, labels) in enumerate(zip(words, tags, strict=True), 1):
        if line.strip() or labels.strip():
            yield attempt(_from_folder, line, labels, number, sides)


def _from_folder(line: str, labels: str, number: int, sides: Sequence[Source]) -> Tagged:
    words, tags = (tuple(_split(text, tabs=False)) for text in (line, labels))
    check_text(sides[0], *words, line=number, name="word")
    if len(words) != len(tags):
        raise sides[0].bad("lengths", f"{len(words)} words, but {len(tags)} tags in seq.out", line=number)
    for word, tag in zip(words, tags, strict=True):
        _check_bio(tag, word, number, sides[1])
    return Tagged(words, tags, line=number)


# ----------------------------------------------------------------------------------------- treebanks


def _read_misc(source: Source, key: str) -> Iterator[Tagged | Remark]:
    """Tags kept as `key=tag` in the last column of CoNLL-U; a word without is O."""
    sentences = list(blocks(source.path))
    if not any(re.search(rf"[\t|]{key}=", line) for rows in sentences for _, line in rows if line[0] != "#"):
        raise BadInput(f"no {key}= in its last column", where=source.path)
    asked = key == "Slot" and any(_named_intent(rows) for rows in sentences)
    for rows in sentences:
        if asked and not _named_intent(rows):
            yield Passed("no intent")
        else:
            yield attempt(_from_misc, rows, key, source)


def _named_intent(rows: Numbered) -> bool:
    return any(re.match(r"# intent *=", line) for _, line in rows)


def _from_misc(rows: Numbered, key: str, source: Source) -> Tagged:
    tree = tree_of(rows, source)
    cells = [(number, line.split("\t")) for number, line in rows if line[0] != "#"]
    tags = []
    for number, columns in cells:
        if columns[0].isdecimal():
            held = dict(part.partition("=")[::2] for part in columns[9].split("|"))
            tags.append(held.get(key, "O"))
            _check_bio(tags[-1], columns[1], number, source)
    return Tagged(tree.words, tuple(tags), tree.id, tree.line)


def _read_upos(source: Source) -> Iterator[Tagged | Remark]:
    for rows in blocks(source.path):
        yield attempt(_from_treebank, rows, source)


def _from_treebank(rows: Numbered, source: Source) -> Tagged:
    return _with_upos(tree_of(rows, source), source)


def _with_upos(tree: Tree, source: Source) -> Tagged:
    for word, tag in zip(tree.words, tree.upos, strict=True):
        if tag not in UPOS[1:]:
            raise source.bad(
                "part of speech",
                f"{word!r} has the part of speech {tag!r} in the sentence that begins here",
                line=tree.line or None,
                remedy=suggestion(tag, UPOS[1:]),
            )
    return Tagged(tree.words, tree.upos, tree.id, tree.line)


# ------------------------------------------------------------------------------------------ datasets


def _read_dataset(source: Source, names: tuple[str, ...]) -> Iterator[Tagged | Remark]:
    for number, row in read_rows(source):
        yield attempt(_from_row, row, names, number, source)


def _from_row(row: Mapping[str, Any], names: tuple[str, ...], number: int, source: Source) -> Tagged:
    words, tags = (row[column(row, known, source)] or [] for known in (("tokens", "words"), names))
    check_text(source, *words, line=number, name="word")
    if not words or len(words) != len(tags):
        raise source.bad("lengths", f"{len(words)} words and {len(tags)} tags", line=number)
    for word, tag in zip(words, tags, strict=True):
        if not isinstance(tag, str):
            raise source.bad("tag without a name", f"the tag of {word!r} is {tag!r}", line=number)
        if names is not _PARTS:
            _check_bio(tag, word, number, source)
    return Tagged(tuple(words), tuple(tags), str(row.get("id", "")), number)


def _read_pos_dataset(source: Source) -> Iterator[Tagged | Remark]:
    for number, row in read_rows(source):
        if {"upos", "head"} <= row.keys():
            yield attempt(_from_tree_row, row, number, source)
        else:
            yield attempt(_from_row, row, _PARTS, number, source)


def _from_tree_row(row: Mapping[str, Any], number: int, source: Source) -> Tagged:
    return _with_upos(tree_from_row(row, number, source), source)


# --------------------------------------------------------------------------------------------- tasks

_ENTITIES = ("ner_tags", "ner", "tags", "labels")
_SLOTS = ("slot_tags", "slots", "tags", "labels", "ner_tags")
_PARTS = ("upos", "pos_tags", "pos", "tags", "labels")

_COLUMNS = dict.fromkeys(("numbered", "tabs", "spaces"), "conll")

NER: TaskFiles[Tagged] = TaskFiles(
    "ner",
    {
        "conll": lambda source: _bio(_read_columns(source, intents=False)),
        "conllu": lambda source: _bio(_read_misc(source, "Entity")),
        "dataset": lambda source: _bio(_read_dataset(source, _ENTITIES)),
    },
    _COLUMNS | {"conllu": "conllu", "dataset": "dataset"},
)
SLOTS: TaskFiles[Tagged] = TaskFiles(
    "slots",
    {
        "conll": lambda source: _bio(_read_columns(source)),
        "folder": lambda source: _bio(_read_folder(source)),
        "conllu": lambda source: _bio(_read_misc(source, "Slot")),
        "dataset": lambda source: _bio(_read_dataset(source, _SLOTS)),
    },
    _COLUMNS | {"conllu": "conllu", "dataset": "dataset", "folder": "folder"},
)
POS: TaskFiles[Tagged] = TaskFiles(
    "pos",
    {"conllu": _read_upos, "tsv": _read_pos_columns, "dataset": _read_pos_dataset},
    {"conllu": "conllu", "dataset": "dataset", "tabs": "tsv"},
)
