"""Items and predictions in the formats of the tasks, so that any program can read and score them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calque.errors import BadInput
from calque.files import write_json, write_text
from calque.text.conllu import Tree, one_line, write_conllu
from calque.text.labelled.items import Question, Tagged, TextPair

# ----------------------------------------------------------------------------------------------- items


def write_labelled(task: str, path: str | Path, items: Sequence[Any]) -> None:
    """Items of a task with their ids, as `read_labelled` reads them back.

    Tags are word ⇥ tag, inferences TSV with names of columns, trees CoNLL-U, questions SQuAD's JSON.
    """
    _WRITERS.get(task, _write_tags)(Path(path), items)


def _write_tags(path: Path, sentences: Sequence[Tagged]) -> None:
    blocks = (
        f"# id = {one_line(one.id)}\n" * bool(one.id) + _block(replace(one, tags=()), one.tags, "\t")
        for one in sentences
    )
    write_text(path, "".join(blocks))


def _write_pairs(path: Path, pairs: Sequence[TextPair]) -> None:
    rows = [("premise", "hypothesis", "label", "id")]
    rows += [(pair.first, pair.second, pair.label, pair.id) for pair in pairs]
    write_text(path, "".join("\t".join(map(one_line, row)) + "\n" for row in rows))


def _write_questions(path: Path, questions: Sequence[Question]) -> None:
    write_json(path, {"version": "1.1", "data": [{"title": "", "paragraphs": [*map(_asked, questions)]}]})


def _asked(question: Question) -> dict[str, Any]:
    answers = [{"text": answer.text, "answer_start": answer.start} for answer in question.answers]
    asked = {"id": question.id, "question": question.question, "answers": answers}
    return {"context": question.context, "qas": [asked]}


_WRITERS: dict[str, Callable[[Path, Sequence[Any]], None]] = {
    "nli": _write_pairs,
    "parsing": write_conllu,
    "qa": _write_questions,
}


# ----------------------------------------------------------------------------------------- predictions


def write_tagged(
    path: str | Path,
    sentences: Sequence[Tagged],
    predicted: Sequence[Sequence[str]],
    *,
    separator: str = " ",
) -> None:
    """Word, gold tag and predicted tag a line, as `conlleval` reads them; no gold where there is none.

    Spaces inside a word become `_`, or columns would be lost.
    """
    write_text(
        Path(path),
        "".join(
            _block(sentence, tags, separator) for sentence, tags in zip(sentences, predicted, strict=True)
        ),
    )


def _block(sentence: Tagged, predicted: Sequence[str], separator: str) -> str:
    words = [re.sub(r"\s", "_", word) for word in sentence.words]
    columns = [words, sentence.tags, predicted] if sentence.tags else [words, predicted]
    return "".join(separator.join(row) + "\n" for row in zip(*columns, strict=True)) + "\n"


def write_pairs_tsv(path: str | Path, pairs: Sequence[TextPair], predicted: Sequence[str]) -> None:
    """Premise, hypothesis, gold label and predicted label, under names that `read_nli` knows."""
    rows = [("premise", "hypothesis", "gold_label", "predicted")]
    rows += [
        (pair.first, pair.second, pair.label, label) for pair, label in zip(pairs, predicted, strict=True)
    ]
    lines = ("\t".join(" ".join(cell.split()) for cell in row) for row in rows)
    write_text(Path(path), "".join(line + "\n" for line in lines))


def write_trees(
    path: str | Path,
    trees: Sequence[Tree],
    heads: Sequence[Sequence[int]],
    labels: Sequence[Sequence[str]],
) -> None:
    """The sentences as CoNLL-U with predicted heads and relations in the place of their own."""
    write_conllu(path, (_parsed(*each) for each in zip(trees, heads, labels, strict=True)))


def _parsed(tree: Tree, heads: Iterable[int], labels: Iterable[str]) -> Tree:
    return replace(tree, heads=tuple(map(int, heads)), labels=tuple(labels))


def write_answers(path: str | Path, questions: Sequence[Question], predicted: Sequence[str]) -> None:
    """`{id: answer}`, as SQuAD's own program reads predictions."""
    answers: Mapping[str, str] = {
        question.id: text for question, text in zip(questions, predicted, strict=True)
    }
    if len(answers) != len(questions) or "" in answers:
        raise BadInput("question ids are missing or repeated, so answers cannot be told by them", where=path)
    write_json(Path(path), answers)
