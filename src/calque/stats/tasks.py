"""How zero-shot tasks are scored: what is counted on an item, and which ratios of counts are the scores.

An item is a text pair, a sentence or a question. Its statistics are a flat dict of numbers, the same columns
for every item of a task, so that items can be kept, resampled and compared; `METRICS` are the ratios made of
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from calque.errors import BadInput, BadSetting
from calque.recipe import suggestion
from calque.stats.answers import AnswerStyle, answer_scores
from calque.stats.attachment import attachment, conll18
from calque.stats.ratios import Ratio
from calque.stats.spans import (
    Counts,
    Repair,
    Span,
    check_lengths,
    span_counts,
    span_counts_by_type,
    spans,
    token_counts,
)
from calque.stats.spans import repair as repaired
from calque.text.conllu import Tree
from calque.types import Doubles, Longs


def _share(name: str, part: str, whole: str) -> Ratio:
    return Ratio(name, {part: 1}, {whole: 1})


def _f1(name: str, kind: str) -> Ratio:
    return Ratio(name, {f"{kind}_hits": 2}, {f"{kind}_predicted": 1, f"{kind}_gold": 1})


ACCURACY = _share("accuracy", "right", "count")
SPAN_F1, TOKEN_F1 = _f1("f1", "span"), _f1("token-f1", "token")
LAS, UAS = _share("las", "las_right", "scored_words"), _share("uas", "uas_right", "scored_words")
LAS_CONLL18 = _share("las-conll18", "las_conll18_right", "words")
UAS_CONLL18 = _share("uas-conll18", "uas_conll18_right", "words")
ANSWER_F1, ANSWER_EM = _share("f1", "answer_f1", "count"), _share("em", "answer_em", "count")

#: The metrics of every task, the one that tells the task's story first.
METRICS: Mapping[str, tuple[Ratio, ...]] = {
    "nli": (ACCURACY,),
    "ner": (SPAN_F1, TOKEN_F1, ACCURACY),
    "slots": (SPAN_F1, TOKEN_F1, ACCURACY),
    "pos": (ACCURACY,),
    "parsing": (LAS, UAS, LAS_CONLL18, UAS_CONLL18),
    "qa": (ANSWER_F1, ANSWER_EM),
}


def metrics_of(task: str) -> tuple[Ratio, ...]:
    """The metrics of a task, or an error that names the tasks there are."""
    if task not in METRICS:
        raise BadSetting(f"unknown task {task!r}", remedy=suggestion(task, METRICS))
    return METRICS[task]


def metric_of(task: str, name: str) -> Ratio:
    """A metric of a task by its name.

    >>> metric_of("qa", "em").columns
    ('answer_em', 'count')
    """
    known = {metric.name: metric for metric in metrics_of(task)}
    if name not in known:
        raise BadSetting(f"{task} has no metric {name!r}", remedy=suggestion(name, known))
    return known[name]


def task_scores(task: str, values: Mapping[str, ArrayLike]) -> dict[str, float]:
    """Every metric of a task over all items, 0 to 1. Shape: each column (items,).

    >>> task_scores("nli", statistics([label_statistics("neutral", "neutral"), label_statistics("a", "b")]))
    {'accuracy': 0.5}
    """
    return {metric.name: float(metric.score(values)) for metric in metrics_of(task)}


# ------------------------------------------------------------------------------------- what an item has


def label_statistics(gold: str, predicted: str) -> dict[str, float]:
    """An item with one label (nli): right, count."""
    return {"right": float(gold == predicted), "count": 1.0}


def word_statistics(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """A sentence with a label a word (pos): words right, count."""
    check_lengths(gold, predicted)
    return {
        "right": float(sum(a == b for a, b in zip(gold, predicted, strict=True))),
        "count": float(len(gold)),
    }


def tag_statistics(
    gold: Sequence[str], predicted: Sequence[str], *, repair: Repair = Repair.NEW_SPAN
) -> dict[str, float]:
    """A sentence in BIO (ner, slots): counts of its spans, of its words that are in one, and of all words.

    Predicted spans are those of the tags repaired; words are compared by their tags as predicted. Gold spans
    are read as conlleval reads them, whatever the repair: in files in IOB1 a span begins with I-.
    """
    counted = word_statistics(gold, predicted)
    true, said = _spans(gold, predicted, repair)
    return (
        _columns("span", span_counts(true, said)) | _columns("token", token_counts(gold, predicted)) | counted
    )


def type_statistics(
    gold: Sequence[str], predicted: Sequence[str], *, repair: Repair = Repair.NEW_SPAN
) -> dict[str, dict[str, float]]:
    """The span columns of `tag_statistics` for every type that occurs in a sentence, to score each alone."""
    check_lengths(gold, predicted)
    by_type = span_counts_by_type(*_spans(gold, predicted, repair))
    return {type_: _columns("span", counts) for type_, counts in by_type.items()}


def tree_statistics(
    gold: Tree, heads: Sequence[int] | Longs, labels: Sequence[str], *, universal: bool = False
) -> dict[str, float]:
    """A parsed sentence: words right and counted, without punctuation and symbols and as in CoNLL 2018.

    Shape: heads, labels (words,). `universal` leaves subtypes of relations out of `las` too.
    """
    plain = attachment(gold, heads, labels, universal=universal)
    shared = conll18(gold, heads, labels)
    return {
        "uas_right": float(plain.heads),
        "las_right": float(plain.labelled),
        "scored_words": float(plain.words),
        "uas_conll18_right": float(shared.heads),
        "las_conll18_right": float(shared.labelled),
        "words": float(shared.words),
    }


def answer_statistics(
    predicted: str, answers: Sequence[str], language: str, *, style: AnswerStyle = AnswerStyle.MLQA
) -> dict[str, float]:
    """An answered question (qa): F1 and exact match with the best right answer; count."""
    scores = answer_scores(predicted, answers, language, style=style)
    return {"answer_f1": scores.f1, "answer_em": scores.em, "count": 1.0}


def statistics(rows: Sequence[Mapping[str, float]]) -> dict[str, Doubles]:
    """The statistics of many items as columns. Shape: each (items,)."""
    if not rows:
        raise BadInput("no items to score")
    names = list(rows[0])
    odd = next((place for place, row in enumerate(rows) if row.keys() != rows[0].keys()), None)
    if odd is not None:
        raise BadInput(f"item {odd} has {sorted(rows[odd])} where the first has {sorted(names)}")
    table = np.array([[row[name] for name in names] for row in rows], np.float64)
    return {name: np.ascontiguousarray(column) for name, column in zip(names, table.T, strict=True)}


def _spans(gold: Sequence[str], predicted: Sequence[str], repair: Repair) -> tuple[set[Span], set[Span]]:
    return spans(gold), spans(repaired(predicted, repair))


def _columns(kind: str, counts: Counts) -> dict[str, float]:
    return {f"{kind}_{name}": float(number) for name, number in counts._asdict().items()}
