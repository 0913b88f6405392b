"""Treebanks in CoNLL-U: https://universaldependencies.org/format.html."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern

from calque.errors import BadInput
from calque.files import write_text
from calque.text.lines import read_lines

_ENDS = re.compile("[\t\r\n]")
_NUMBER = re.compile(r"\d{1,9}")
_NOT_A_WORD = re.compile(r"\d+[-.]\d+")


@dataclass(frozen=True)
class Tree:
    """One sentence of a treebank: a value a word in every column.

    `heads` are 1-based, 0 is the root, -1 a word whose head is not given ("_"). `line` is where it begins.
    """

    words: tuple[str, ...]
    upos: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]
    lemmas: tuple[str, ...]
    id: str = ""
    text: str = ""
    line: int = field(default=0, compare=False)

    def __len__(self) -> int:
        return len(self.words)


def read_conllu(path: str | Path) -> list[Tree]:
    """Every sentence of a treebank; multiword tokens (`1-2`) and empty nodes (`1.1`) are passed over."""
    return [parse_tree(rows, path) for rows in _sentences(path)]


def _sentences(path: str | Path) -> Iterator[list[tuple[int, str]]]:
    """Numbered lines of one sentence after the other."""
    rows: list[tuple[int, str]] = []
    for number, line in enumerate(read_lines(path), 1):
        if line:
            rows.append((number, line))
        elif rows:
            yield rows
            rows = []
    if rows:
        yield rows


def parse_tree(rows: Sequence[tuple[int, str]], path: str | Path) -> Tree:
    """The sentence of these numbered lines, comments and words; `path` is for messages."""
    about: dict[str, str] = {}
    words: list[Sequence[str]] = []
    lines: list[int] = []
    for number, line in rows:
        if line[0] == "#":
            key, _, value = line[1:].partition("=")
            about[key.strip()] = value.strip()
            continue
        columns = line.split("\t")
        if len(columns) != 10:
            raise BadInput(f"{len(columns)} columns where CoNLL-U has 10", where=path, line=number)
        if columns[0] != str(len(words) + 1):
            if _NOT_A_WORD.fullmatch(columns[0]):
                continue
            raise BadInput(f"word id {columns[0]!r}, expected {len(words) + 1}", where=path, line=number)
        if not columns[1]:
            raise BadInput(f"word {columns[0]} is empty", where=path, line=number)
        words.append(columns)
        lines.append(number)
    if not words:
        raise BadInput("a sentence without words", where=path, line=rows[0][0])
    _, forms, lemmas, upos, _, _, heads, labels, _, _ = zip(*words, strict=True)
    return Tree(
        _once(forms),
        _once(upos),
        _heads(heads, lines, path),
        _once(labels),
        _once(lemmas),
        about.get("sent_id", ""),
        about.get("text", ""),
        lines[0],
    )


def _once(column: Sequence[str]) -> tuple[str, ...]:
    """The same strings, each held once however many sentences it stands in."""
    return tuple(map(intern, column))


def _heads(column: Sequence[str], lines: list[int], path: str | Path) -> tuple[int, ...]:
    heads = tuple(-1 if head == "_" else int(head) if _NUMBER.fullmatch(head) else -2 for head in column)
    for place, head in enumerate(heads):
        if not -1 <= head <= len(heads) or head == place + 1:
            raise BadInput(
                f"word {place + 1} of {len(heads)} has head {column[place]!r}",
                where=path,
                line=lines[place],
                remedy="0 for the root, or the number of another word of the sentence",
            )
    return heads


def one_line(text: str) -> str:
    """A text as one cell of a line: what would end the cell or the line becomes a space."""
    return _ENDS.sub(" ", text)


def write_conllu(path: str | Path, trees: Iterable[Tree]) -> None:
    """Write what `read_conllu` reads; the file appears whole or not at all."""
    write_text(Path(path), "".join(map(_lines, trees)))


def _lines(tree: Tree) -> str:
    about = [("sent_id", tree.id), ("text", tree.text)]
    lines = [f"# {key} = {one_line(value)}" for key, value in about if value]
    columns = zip(tree.words, tree.lemmas, tree.upos, tree.heads, tree.labels, strict=True)
    for place, (word, lemma, upos, head, label) in enumerate(columns, 1):
        given = word, lemma, upos, "_", "_", "_" if head < 0 else str(head), label, "_", "_"
        lines.append("\t".join([str(place), *map(one_line, given)]))
    return "\n".join(lines) + "\n\n"
