"""Sentences with a dependency tree, and what makes a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from calque.errors import BadInput
from calque.text.conllu import Tree, parse_tree
from calque.text.labelled.hub import column, read_rows
from calque.text.labelled.items import Labelled
from calque.text.labelled.reading import (
    Numbered,
    Remark,
    Source,
    TaskFiles,
    Unusable,
    attempt,
    blocks,
    check_text,
)


def read_parsing(
    path: str | Path,
    language: str,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    limit: int | None = None,
    subtypes: bool = False,
) -> Labelled[Tree]:
    """Sentences with a dependency tree each, checked.

    conllu: a treebank. dataset: `hf:NAME[:CONFIG][:SPLIT]`. Relations are the universal ones (`nsubj` for
    `nsubj:pass`), by which languages are compared; `subtypes` keeps them whole.
    """
    files = PARSING_WITH_SUBTYPES if subtypes else PARSING
    return files.read(path, language, format=format, skip_bad=skip_bad, limit=limit)


def universal(tree: Tree) -> Tree:
    """A tree whose relations have no subtypes.

    >>> universal(Tree(("it",), ("PRON",), (0,), ("nsubj:pass",), ("it",))).labels
    ('nsubj',)
    """
    return replace(tree, labels=tuple(label.partition(":")[0] for label in tree.labels))


# -------------------------------------------------------------------------------------------- checks


def check_tree(tree: Tree, where: str | Path) -> Tree:
    """The tree, if it is one: every word with a head and a relation, one root, no cycle."""
    named = f"the sentence {tree.id}" if tree.id else "the sentence that begins here"

    def bad(reason: str, what: str, remedy: str | None = None) -> Unusable:
        return Unusable(reason, f"{what} in {named}", where=where, line=tree.line or None, remedy=remedy)

    for place, (head, label) in enumerate(zip(tree.heads, tree.labels, strict=True), 1):
        word = f"word {place}, {tree.words[place - 1]!r},"
        if head < 0:
            raise bad("no head", f"{word} has no head")
        if head > len(tree) or head == place:
            raise bad("no head", f"{word} has head {head}", "0 for the root, or another word")
        if label in ("", "_"):
            raise bad("no relation", f"{word} has no relation to its head")
    roots = [place for place, head in enumerate(tree.heads, 1) if head == 0]
    if not roots:
        raise bad("no root", "no root", "one word with head 0")
    if len(roots) > 1:
        raise bad("several roots", f"{len(roots)} roots, words " + ", ".join(map(str, roots)), "one root")
    cycle = find_cycle(tree.heads)
    if cycle:
        raise bad("cycle", "a cycle of words " + " → ".join(map(str, [*cycle, cycle[0]])))
    return tree


def find_cycle(heads: tuple[int, ...]) -> list[int]:
    """Words that lead to one another and never to the root, numbered from 1; none in a tree.

    >>> find_cycle((0, 3, 4, 2)), find_cycle((0, 1, 2))
    ([2, 3, 4], [])
    """
    done = {0}
    for place in range(1, len(heads) + 1):
        path: dict[int, None] = {}
        while place not in done and place not in path:
            path[place] = None
            place = heads[place - 1]
        if place in path:
            held = list(path)
            return held[held.index(place) :]
        done.update(path)
    return []


# ------------------------------------------------------------------------------------------- readers


def tree_of(rows: Numbered, source: Source) -> Tree:
    """The sentence of a treebank's lines; its mistakes count under one reason."""
    try:
        tree = parse_tree(rows, source.path)
    except BadInput as error:
        raise Unusable(
            "not CoNLL-U", error.what, where=error.where, line=error.line, remedy=error.remedy
        ) from None
    check_text(source, *tree.words, line=tree.line, name="word")
    return tree


def tree_from_row(row: Mapping[str, Any], number: int, source: Source) -> Tree:
    """The sentence of a dataset's row; multiword tokens and empty nodes, which have no head, are left out."""
    columns = [("tokens", "words"), ("upos", "pos_tags"), ("head", "heads"), ("deprel", "deprels")]
    words, upos, heads, labels = (row[column(row, names, source)] or [] for names in columns)
    lemmas = row.get("lemmas") or ["_"] * len(words)
    if len({len(part) for part in (words, upos, heads, labels, lemmas)}) != 1:
        raise source.bad("lengths", "columns of different lengths", line=number)
    together = zip(words, upos, map(str, heads), labels, lemmas, strict=True)
    kept = [cells for cells in together if cells[2].isdecimal() or cells[1] not in ("_", None)]
    if not kept:
        raise source.bad("no words", "a sentence without words", line=number)
    words, upos, heads, labels, lemmas = zip(*kept, strict=True)
    check_text(source, *words, line=number, name="word")
    numbers = tuple(int(head) if head.isdecimal() else -1 for head in heads)
    id, text = (str(row.get(name) or "") for name in ("idx", "text"))
    return Tree(words, tuple(map(str, upos)), numbers, labels, lemmas, id, text, number)


def _read_treebank(source: Source) -> Iterator[Tree | Remark]:
    for rows in blocks(source.path):
        yield attempt(_checked, rows, source)


def _checked(rows: Numbered, source: Source) -> Tree:
    return check_tree(tree_of(rows, source), source.path)


def _read_dataset(source: Source) -> Iterator[Tree | Remark]:
    for number, row in read_rows(source):
        yield attempt(_checked_row, row, number, source)


def _checked_row(row: Mapping[str, Any], number: int, source: Source) -> Tree:
    return check_tree(tree_from_row(row, number, source), source.path)


def _universal(found: Iterator[Tree | Remark]) -> Iterator[Tree | Remark]:
    return (universal(one) if isinstance(one, Tree) else one for one in found)


_LOOKS = {"conllu": "conllu", "dataset": "dataset"}

PARSING_WITH_SUBTYPES: TaskFiles[Tree] = TaskFiles(
    "parsing", {"conllu": _read_treebank, "dataset": _read_dataset}, _LOOKS
)
PARSING: TaskFiles[Tree] = TaskFiles(
    "parsing",
    {
        "conllu": lambda source: _universal(_read_treebank(source)),
        "dataset": lambda source: _universal(_read_dataset(source)),
    },
    _LOOKS,
)
