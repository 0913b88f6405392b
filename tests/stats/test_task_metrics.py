"""Scores of whole test sets from item statistics, against seqeval and scikit-learn."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score as span_f1
from seqeval.scheme import IOB2
from sklearn.metrics import accuracy_score
from sklearn.metrics import f1_score as token_f1

from calque.errors import BadInput, BadSetting
from calque.stats.intervals import bootstrap_ratio
from calque.stats.spans import Repair
from calque.stats.tasks import (
    METRICS,
    SPAN_F1,
    answer_statistics,
    label_statistics,
    metric_of,
    metrics_of,
    statistics,
    tag_statistics,
    task_scores,
    tree_statistics,
    type_statistics,
    word_statistics,
)
from calque.text.conllu import Tree
from calque.types import Items

INSIDE = [f"{prefix}-{type_}" for prefix in "BI" for type_ in ("PER", "LOC", "date-time")]
TAG = st.sampled_from(["O", *INSIDE])
SENTENCE = st.lists(st.tuples(TAG, TAG), min_size=1, max_size=8)
CORPUS = st.lists(SENTENCE, min_size=1, max_size=5)
Corpus = list[list[tuple[str, str]]]


def split(corpus: Corpus) -> tuple[list[list[str]], list[list[str]]]:
    return [[a for a, _ in s] for s in corpus], [[b for _, b in s] for s in corpus]


def valid(tags: list[str]) -> list[str]:
    """Every I that has nothing to continue as a B."""
    return [
        "B" + tag[1:] if tag[0] == "I" and before[1:] != tag[1:] else tag
        for before, tag in zip(["O", *tags], tags, strict=False)
    ]


def ner(
    gold: list[list[str]], predicted: list[list[str]], repair: Repair = Repair.NEW_SPAN
) -> dict[str, float]:
    rows = [tag_statistics(a, b, repair=repair) for a, b in zip(gold, predicted, strict=True)]
    return task_scores("ner", statistics(rows))


@settings(max_examples=60)
@given(CORPUS)
@pytest.mark.filterwarnings("ignore")
def test_tag_scores_are_those_of_seqeval_and_scikit_learn(corpus: Corpus) -> None:
    gold, predicted = split(corpus)
    scores = ner(gold, predicted)
    assert scores["f1"] == pytest.approx(span_f1(gold, predicted, zero_division=0))
    flat = list(chain(*gold)), list(chain(*predicted))
    assert scores["token-f1"] == pytest.approx(
        token_f1(*flat, labels=INSIDE, average="micro", zero_division=0)
    )
    assert scores["accuracy"] == pytest.approx(accuracy_score(*flat))


@settings(max_examples=60)
@given(CORPUS)
@pytest.mark.filterwarnings("ignore")
def test_discard_is_the_strict_mode_of_seqeval(corpus: Corpus) -> None:
    gold, predicted = split(corpus)
    gold = [valid(tags) for tags in gold]
    expected = span_f1(gold, predicted, mode="strict", scheme=IOB2, zero_division=0)
    assert ner(gold, predicted, Repair.DISCARD)["f1"] == pytest.approx(expected)


@settings(max_examples=60)
@given(CORPUS)
@pytest.mark.filterwarnings("ignore")
def test_every_type_scores_as_seqeval_says(corpus: Corpus) -> None:
    gold, predicted = split(corpus)
    rows = [type_statistics(a, b) for a, b in zip(gold, predicted, strict=True)]
    types = sorted({type_ for row in rows for type_ in row})
    ours = [float(SPAN_F1.score(statistics([row[type_] for row in rows if type_ in row]))) for type_ in types]
    theirs = span_f1(gold, predicted, average=None, zero_division=0) if types else []
    assert ours == pytest.approx(list(theirs))


def test_repair_changes_spans_and_leaves_words() -> None:
    gold, predicted = ["B-PER", "I-PER", "I-PER"], ["B-LOC", "I-LOC", "I-PER"]
    by_last = tag_statistics(gold, predicted, repair=Repair.LAST_TYPE)
    as_read = tag_statistics(gold, predicted)
    assert (by_last["span_hits"], by_last["span_predicted"]) == (1, 1)
    assert (as_read["span_hits"], as_read["span_predicted"]) == (0, 2)
    for column in ("token_hits", "token_predicted", "token_gold", "right", "count"):
        assert by_last[column] == as_read[column]


@pytest.mark.parametrize("how", Repair)
def test_gold_of_old_files_is_not_repaired(how: Repair) -> None:
    """IOB1: `I-PER I-LOC` are two entities."""
    counts = tag_statistics(["I-PER", "I-LOC"], ["B-PER", "B-LOC"], repair=how)
    assert (counts["span_hits"], counts["span_gold"]) == (2, 2)


def test_no_spans_anywhere_score_zero_and_change_nothing_elsewhere() -> None:
    empty = tag_statistics(["O", "O"], ["O", "O"])
    assert task_scores("ner", statistics([empty])) == {"f1": 0, "token-f1": 0, "accuracy": 1}
    full = tag_statistics(["B-PER", "O"], ["B-PER", "B-LOC"])
    alone, beside = (task_scores("ner", statistics(rows)) for rows in ([full], [full, empty]))
    assert alone["f1"] == beside["f1"] == pytest.approx(2 / 3)
    assert task_scores("ner", statistics([tag_statistics([], [])])) == {"f1": 0, "token-f1": 0, "accuracy": 0}


@given(CORPUS)
def test_a_perfect_tagger_scores_one(corpus: Corpus) -> None:
    gold, _ = split(corpus)
    scores = ner(gold, gold)
    inside = float(any(tag != "O" for tags in gold for tag in tags))
    assert scores == {"f1": inside, "token-f1": inside, "accuracy": 1}


def test_labels_and_words() -> None:
    rows = [label_statistics(a, b) for a, b in zip("ncec", "nece", strict=True)]
    assert task_scores("nli", statistics(rows)) == {"accuracy": 0.25}
    words = [word_statistics(["NOUN", "VERB"], ["NOUN", "NOUN"]), word_statistics(["X"], ["X"])]
    assert task_scores("pos", statistics(words)) == {"accuracy": pytest.approx(2 / 3)}


def test_trees() -> None:
    """Four words and a full stop; a wrong head, a subtype, and punctuation hung elsewhere."""
    words = ("a", "b", "c", "d", ".")
    gold = Tree(
        words,
        ("DET", "NOUN", "VERB", "NOUN", "PUNCT"),
        (2, 3, 0, 3, 3),
        ("det", "nsubj:pass", "root", "obl", "punct"),
        words,
    )
    heads, labels = [2, 3, 0, 2, 2], ["det", "nsubj", "root", "obl", "punct"]
    values = statistics([tree_statistics(gold, heads, labels)])
    assert task_scores("parsing", values) == pytest.approx(
        {"las": 2 / 4, "uas": 3 / 4, "las-conll18": 3 / 5, "uas-conll18": 3 / 5}
    )
    without = statistics([tree_statistics(gold, heads, labels, universal=True)])
    assert task_scores("parsing", without)["las"] == 3 / 4


def test_answers() -> None:
    rows = [answer_statistics("the dog", ["dog"], "en"), answer_statistics("red dog", ["dog"], "en")]
    assert task_scores("qa", statistics(rows)) == pytest.approx({"f1": (1 + 2 / 3) / 2, "em": 0.5})


def of_one_item() -> dict[str, dict[str, float]]:
    words = ("a",)
    return {
        "nli": label_statistics("n", "n"),
        "ner": tag_statistics(["O"], ["O"]),
        "slots": tag_statistics(["B-x"], ["B-x"]),
        "pos": word_statistics(["X"], ["X"]),
        "parsing": tree_statistics(Tree(words, ("X",), (0,), ("root",), words), [0], ["root"]),
        "qa": answer_statistics("a", ["a"], "en"),
    }


@pytest.mark.parametrize("task", METRICS)
def test_statistics_hold_what_metrics_need_and_nothing_else(task: str) -> None:
    row = of_one_item()[task]
    assert set(row) == {column for metric in metrics_of(task) for column in metric.columns}
    assert all(type(value) is float for value in row.values())
    assert len({metric.name for metric in metrics_of(task)}) == len(metrics_of(task))


def test_items_hold_them_and_can_be_resampled() -> None:
    rng = np.random.default_rng(0)
    tags = np.array(["O", *INSIDE])
    rows = [tag_statistics(list(rng.choice(tags, 6)), list(rng.choice(tags, 6))) for _ in range(40)]
    items = Items({"item": np.arange(40)}, np.arange(40), statistics(rows))
    assert all(column.shape == (40,) and column.dtype == np.float64 for column in items.values.values())
    interval = bootstrap_ratio(*SPAN_F1.parts(items.values), rounds=200, seed=1)
    assert 0 <= interval.low <= float(SPAN_F1.score(items.values)) <= interval.high <= 1


def test_columns_come_in_the_order_of_items() -> None:
    columns = statistics([{"right": 1.0, "count": 2.0}, {"count": 4.0, "right": 3.0}])
    assert {name: column.tolist() for name, column in columns.items()} == {"right": [1, 3], "count": [2, 4]}


def test_mistakes_are_named() -> None:
    with pytest.raises(BadInput, match="no items"):
        statistics([])
    with pytest.raises(BadInput, match="item 1 has"):
        statistics([{"right": 1.0}, {"count": 1.0}])
    for count in (word_statistics, tag_statistics, type_statistics):
        with pytest.raises(BadInput, match="1 predicted tags for 2 words"):
            count(["O", "O"], ["O"])
    with pytest.raises(BadSetting, match="did you mean parsing"):
        metrics_of("parse")
    with pytest.raises(BadSetting, match="did you mean las"):
        metric_of("parsing", "lass")
    assert metric_of("parsing", "las").name == "las"
