"""Text without labels, to predict them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from calque.errors import BadInput, BadSetting
from calque.recipe import suggestion
from calque.text.conllu import Tree
from calque.text.labelled.items import Labelled, Question, Tagged, TextPair
from calque.text.labelled.pairs import FIRST, SECOND, named_rows
from calque.text.labelled.questions import in_languages, records, told_apart
from calque.text.labelled.reading import (
    LOOKS,
    PEEK,
    Changed,
    Numbered,
    Passed,
    Remark,
    Source,
    attempt,
    blocks,
    check_text,
    gather,
    look,
)
from calque.text.labelled.trees import tree_of
from calque.text.languages import check_language
from calque.text.lines import read_lines
from calque.text.words import Tokeniser, tokeniser


def read_unlabelled(
    task: str,
    path: str | Path,
    language: str,
    *,
    tokenised: bool = False,
    skip_bad: bool = False,
    limit: int | None = None,
    context_language: str | None = None,
) -> Labelled[Any]:
    """What a task can label, without labels; labels that a file has are left aside.

    ner, slots, pos, parsing: a sentence a line, split into words unless `tokenised`, or a treebank, which
    keeps its words; other columns and JSON are refused. nli: premise ⇥ hypothesis, or named columns. qa:
    question ⇥ paragraph, or SQuAD's JSON. Sentences have no tags, heads -1, pairs the label "" and questions
    no answers. Empty lines are dropped, counted.
    """
    if limit is not None and limit < 1:
        raise BadSetting(f"limit {limit}", remedy="at least 1")
    if task not in _TASKS:
        raise BadSetting(f"unknown task {task!r}", remedy=suggestion(task, _TASKS))
    source = Source(str(path), check_language(language), skip_bad, limit)
    if task == "nli":
        return gather(_pairs(source), source)
    if task == "qa":
        found = gather(_questions(source), source)
        return found if context_language is None else in_languages(found, context_language)
    if task == "parsing":
        return gather(_trees(source, tokenised), source)
    return gather(_tagged(source, tokenised), source)


_NEARLY_ALL = 0.9
_TASKS = ("nli", "ner", "slots", "pos", "parsing", "qa")


# ----------------------------------------------------------------------------------------- sentences


def _trees(source: Source, tokenised: bool) -> Iterator[Tree | Remark]:
    looks = look(source.path)
    if looks == "conllu":
        for rows in blocks(source.path):
            yield attempt(_bare_tree, rows, source)
        return
    _check_sentences(source, looks)
    split = tokeniser(source.language, tokenised=tokenised)
    for number, line in enumerate(read_lines(source.path), 1):
        yield attempt(_bare_sentence, line, number, split, source)


def _check_sentences(source: Source, looks: str) -> None:
    """Refuse what is written in columns or as JSON; a few sentences with a tab are still sentences."""
    peek = [line for line in islice(read_lines(source.path), PEEK) if line.strip()]
    rows = [line for line in peek if line[0] != "#" or "\t" in line]
    tabs = sum("\t" in line.strip() for line in rows)
    if looks == "json" or tabs > _NEARLY_ALL * len(rows):
        raise BadInput(
            f"looks like {LOOKS[looks if looks in ('json', 'numbered') else 'tabs']}, not like sentences",
            where=source.path,
            remedy="a sentence a line, or CoNLL-U",
        )


def _bare_tree(rows: Numbered, source: Source) -> Tree:
    tree = tree_of(rows, source)
    blank = ("_",) * len(tree)
    return Tree(tree.words, tree.upos, (-1,) * len(tree), blank, tree.lemmas, tree.id, tree.text, tree.line)


def _bare_sentence(line: str, number: int, split: Tokeniser, source: Source) -> Tree:
    if not line.strip():
        raise Passed("empty line")
    check_text(source, line, line=number)
    words = tuple(split(line))
    if not words:
        raise Passed("no words")
    blank = ("_",) * len(words)
    return Tree(words, blank, (-1,) * len(words), blank, blank, str(number), line, number)


def _tagged(source: Source, tokenised: bool) -> Iterator[Tagged | Remark]:
    for one in _trees(source, tokenised):
        yield Tagged(one.words, (), one.id, one.line) if isinstance(one, Tree) else one


# ----------------------------------------------------------------------------------------- two texts


def _pairs(source: Source) -> Iterator[TextPair | Remark]:
    for number, row in named_rows(source, ("premise", "hypothesis", "label"), optional={"label"}):
        yield attempt(_bare_pair, row, number, source)


def _bare_pair(row: dict[str, str] | int, number: int, source: Source) -> TextPair:
    if isinstance(row, int):
        raise source.bad("columns", f"{row} columns", line=number, remedy="premise ⇥ hypothesis")
    first, second = (next(row[name] for name in names if name in row) for names in (FIRST, SECOND))
    check_text(source, first, second, line=number)
    return TextPair(first, second, "", (source.language, source.language), str(number), number)


def _questions(source: Source) -> Iterator[Question | Remark]:
    if look(source.path) == "json":
        for record in told_apart(records(source)):
            if isinstance(record, Changed):
                yield record
            else:
                place = record.line or 0
                yield attempt(_bare_question, record.question, record.context, record.id, place, source)
        return
    for number, line in enumerate(read_lines(source.path), 1):
        if line.strip():
            cells = line.split("\t")
            if len(cells) != 2:
                yield source.bad(
                    "columns", f"{len(cells)} columns", line=number, remedy="question ⇥ paragraph"
                )
            else:
                yield attempt(_bare_question, *cells, str(number), number, source)


def _bare_question(question: Any, context: Any, id: str, line: int, source: Source) -> Question:
    check_text(source, question, line=line or None, name="question")
    check_text(source, context, line=line or None, name="paragraph")
    return Question(question, context, (), (source.language, source.language), id, line)
