"""The six tasks: labels that are known, items that are cut, answers across windows, files for others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paired_encoders import paired, tokenizer
from small_tasks import DATA, learner, pairs, parts, questions, tagged, trees

from calque.encoders.tokens import Reader
from calque.errors import BadInput, BadSetting
from calque.stats.answers import AnswerStyle
from calque.stats.spans import Repair
from calque.stats.tasks import METRICS, task_scores
from calque.text.conllu import Tree
from calque.text.labelled.items import Answer, Labelled, Question, Tagged, TextPair
from calque.text.labelled.open import READERS
from calque.text.labelled.plain import read_unlabelled
from calque.transfer.heads import HeadKind
from calque.transfer.learning import GoldLabels, Prepared
from calque.transfer.task import Labels, Reading, known_labels
from calque.transfer.tasks import TASKS, task_named
from calque.transfer.tasks.parsing import RELATIONS, Parse, cut_gold, first_words
from calque.types import UPOS

READER = Reader(tokenizer("bert"))
PLAIN = Reading(longest=40, overlap=4)


def test_every_task_has_a_reader_metrics_and_heads() -> None:
    assert set(TASKS) == set(READERS) == set(METRICS)
    for name, task in TASKS.items():
        assert task.name == name and task.metrics == METRICS[name] and task.heads()
        assert len({*task.heads()}) == len(task.heads()) and task.suffix.startswith(".")
    with pytest.raises(BadSetting, match=r"unknown task 'parse' \(did you mean parsing"):
        task_named("parse")


# ------------------------------------------------------------------------------------------------ labels


def test_labels_are_those_of_the_training_data_and_what_follows_from_them() -> None:
    said = Labelled("en", (Tagged(("a", "b"), ("B-x", "O")), Tagged(("c",), ("I-y",))))
    assert task_named("ner").labels([said]).names == ("B-x", "B-y", "I-x", "I-y", "O")
    assert task_named("slots").labels([said, tagged()]).number["I-THING"] == 5
    assert set(task_named("pos").labels([parts()]).names) == set(UPOS[1:]), "universal tags are all known"
    penn = Labelled("en", (Tagged(("a", "b"), ("DT", "NN")),))
    assert task_named("pos").labels([penn]).names == ("DT", "NN")
    assert task_named("nli").labels([pairs()]).names == ("contradiction", "entailment", "neutral")
    assert task_named("qa").labels([questions()]).names == ()
    other = replace(trees().items[0], labels=("root", *["obl:x"] * (len(trees().items[0]) - 1)))
    names = task_named("parsing").labels([Labelled("en", (other,))]).names
    assert set(names) == {*RELATIONS, "obl:x"} and list(names) == sorted(names) and len(RELATIONS) == 37


def test_a_label_never_seen_is_told_with_file_and_line() -> None:
    task, labels = task_named("ner"), Labels(("B-PER", "O"))
    good, bad = Tagged(("a",), ("O",), line=3), Tagged(("a", "b"), ("O", "B-PRE"), line=7)
    data = Labelled("de", (good, bad, good), "de.tsv", {"columns": 2})
    with pytest.raises(
        BadInput, match=r"de\.tsv:7: label 'B-PRE' was never seen.*did you mean B-PER"
    ) as held:
        known_labels(data, task, labels, skip_bad=False)
    assert held.value.line == 7 and "--skip-bad" in str(held.value.remedy)
    kept = known_labels(data, task, labels, skip_bad=True)
    assert kept.items == (good, good) and kept.dropped == {"columns": 2, "label never seen in training": 1}
    assert (kept.origin, kept.language) == ("de.tsv", "de")
    with pytest.raises(BadInput, match="no item is left"):
        known_labels(replace(data, items=(bad,)), task, labels, skip_bad=True)
    nowhere = Labelled("de", (replace(bad, line=0),))
    with pytest.raises(BadInput, match=r"^de: label"):
        known_labels(nowhere, task, labels, skip_bad=False)


@pytest.mark.parametrize("name", ["ner", "pos", "nli", "parsing", "qa"])
def test_labels_of_the_training_data_are_known(name: str) -> None:
    task, data = task_named(name), DATA[name]()
    assert known_labels(data, task, task.labels([data]), skip_bad=False).items == data.items


# ------------------------------------------------------------------------------------------------- words


def test_tags_stand_beside_their_words_and_may_be_missing() -> None:
    task, labels = task_named("ner"), Labels(("B-x", "O"))
    items = (Tagged(("cat", "dog"), ("O", "B-x")), Tagged(("it", "the", "cat"), ()), Tagged(("a",), ("B-q",)))
    prepared = task.prepare(Labelled("en", items), labels, READER, PLAIN)
    assert prepared.gold.units["tags"].tolist() == [1, 0, -1, -1, -1, -1]
    assert prepared.inputs.lengths.tolist() == [2, 3, 1]
    said = task.predictions(Labelled("en", items), prepared, [[0, 1], [1, 1, 0], [0]], labels, PLAIN)
    assert said == [("B-x", "O"), ("O", "O", "B-x"), ("B-x",)]


def test_tags_are_scored_as_spans_or_as_words() -> None:
    gold = Labelled("en", (Tagged(("a", "b", "c"), ("B-x", "I-x", "O")), Tagged(("d",), ("B-y",))))
    said = [("I-x", "I-x", "O"), ("O",)]
    ner = task_named("ner").statistics(gold, said, PLAIN)
    scores = task_scores("ner", ner)
    assert scores["f1"] == pytest.approx(2 / 3) and scores["accuracy"] == pytest.approx(2 / 4)
    strict = task_named("ner").statistics(gold, said, replace(PLAIN, repair=Repair.DISCARD))
    assert task_scores("ner", strict)["f1"] == 0, "an I- without its B- is in no span"
    pos = task_named("pos").statistics(gold, said, PLAIN)
    assert task_scores("pos", pos) == {"accuracy": 0.5}
    assert task_named("ner").clusters(gold).tolist() == [0, 1]


# ------------------------------------------------------------------------------------------------- trees

TREE = Tree(
    ("the", "cat", "sat", "the", "mat"),
    ("DET", "NOUN", "VERB", "DET", "NOUN"),
    (2, 3, 0, 5, 3),
    ("det", "nsubj", "root", "det", "obl"),
    ("the", "cat", "sit", "the", "mat"),
    "s1",
    "the cat sat the mat",
    4,
)


def test_only_the_first_words_of_a_tree_are_parsed() -> None:
    cut = first_words(TREE, 4)
    assert cut.words == TREE.words[:4] and cut.heads == (2, 3, 0, -1) and cut.labels == TREE.labels[:4]
    assert cut_gold(TREE, 4).heads == (2, 3, 0, 5), "to be scored it keeps the head that was cut off"
    assert first_words(TREE, 5) is first_words(TREE, None) is cut_gold(TREE, 9) is TREE
    task, labels = task_named("parsing"), task_named("parsing").labels([])
    prepared = task.prepare(Labelled("en", (TREE, TREE)), labels, READER, replace(PLAIN, words=4))
    assert prepared.inputs.lengths.tolist() == [4, 4]
    assert prepared.gold.units["heads"].tolist() == [2, 3, 0, -1] * 2
    names = [labels.names[k] for k in prepared.gold.units["relations"][:4]]
    assert names == ["det", "nsubj", "root", "det"]


def test_parsed_words_are_scored_and_a_head_that_was_cut_off_is_never_right() -> None:
    task = task_named("parsing")
    data = Labelled("en", (TREE, TREE))
    labels = Labels(("det", "nsubj", "obl", "root"))
    said = [([2, 3, 0, 3], [0, 1, 3, 0]), ([2, 3, 0, 5, 3], [0, 1, 3, 0, 0])]
    prepared = Prepared(None, GoldLabels({}, {}))  # type: ignore[arg-type]
    found = task.predictions(data, prepared, said, labels, PLAIN)
    assert found[0] == Parse((2, 3, 0, 3), ("det", "nsubj", "root", "det"))
    values = task.statistics(data, found, PLAIN)
    assert values["uas_right"].tolist() == [3, 5] and values["las_right"].tolist() == [3, 4]
    assert values["words"].tolist() == [4, 5]


# ------------------------------------------------------------------------------------------------- pairs


def test_pairs_without_a_label_can_be_predicted() -> None:
    task, labels = task_named("nli"), Labels(("no", "yes"))
    items = tuple(
        TextPair(a, "x", label, ("en", "de")) for a, label in [("a", "yes"), ("b", ""), ("a", "no")]
    )
    data = Labelled("en", items)
    prepared = task.prepare(data, labels, READER, PLAIN)
    assert prepared.gold.sequences["label"].tolist() == [1, -1, 0]
    assert prepared.inputs.lengths.tolist() == [1, 1, 1]
    wide = task.prepare(data, labels, READER, replace(PLAIN, every_piece=True))
    assert wide.inputs.lengths.tolist() == [5, 5, 5]
    assert task.predictions(data, prepared, [1, 0, 0], labels, PLAIN) == ["yes", "no", "no"]
    assert task.clusters(data).tolist() == [0, 1, 0], "hypotheses of one premise belong together"
    values = task.statistics(data, ["yes", "no", "yes"], PLAIN)
    assert values["right"].tolist() == [1, 0, 0] and task_scores("nli", values) == {"accuracy": 1 / 3}


# --------------------------------------------------------------------------------------------- questions


def long_question() -> tuple[Labelled[Question], Prepared]:
    text = " ".join(["the cat", *["mat"] * 12, "it dog", *["life"] * 12])
    one = Question("it", text, (Answer("dog", text.index("dog")),), ("en", "de"), "q")
    data = Labelled("en", (replace(one, id="p"), one))
    return data, task_named("qa").prepare(data, Labels(()), READER, replace(PLAIN, longest=16, overlap=4))


def test_the_likeliest_answer_of_any_window_wins() -> None:
    data, prepared = long_question()
    inputs, read = prepared.inputs, prepared.extra
    own = np.flatnonzero(inputs.item == 1)
    assert len(own) > 2
    nothing = [(np.full(n, -np.inf), np.full(n, -np.inf)) for n in inputs.lengths.tolist()]

    def answers(**more: Any) -> list[str]:
        reading = replace(PLAIN, **more)
        return task_named("qa").predictions(data, prepared, said, Labels(()), reading)

    def put(number: int, first: int, last: int, score: float) -> None:
        said[number][0][first], said[number][1][last] = score, score

    def shown(number: int, first: int, last: int) -> str:
        at = inputs.first[number]
        return data.items[1].context[read.begin[at + first] : read.end[at + last]]

    said = nothing
    assert answers() == ["", ""]
    begin = int(np.flatnonzero(read.allowed[inputs.first[own[0]] : inputs.first[own[0] + 1]])[1])
    put(own[0], begin, begin + 1, -2.0)
    assert answers() == ["", shown(own[0], begin, begin + 1)] and answers()[1]
    put(own[2], begin + 2, begin + 4, -1.0)
    assert answers()[1] == shown(own[2], begin + 2, begin + 4) != shown(own[0], begin, begin + 1)
    put(own[1], 0, 0, 0.0)
    assert answers()[1] == shown(own[2], begin + 2, begin + 4), "that a window has none is no answer"
    put(own[1], 1, 1, 0.0)
    assert answers()[1] == shown(own[2], begin + 2, begin + 4), "nor is the question"
    assert answers(longest_answer=2)[1] == shown(own[0], begin, begin + 1), "too long an answer"


def test_answers_are_compared_as_the_paragraphs_language_wants() -> None:
    data, _ = long_question()
    task = task_named("qa")
    found = task.statistics(data, ["der dog", "the dog"], PLAIN)
    assert found["answer_em"].tolist() == [1, 0], "a German paragraph: der is an article, the is not"
    squad = task.statistics(data, ["der dog", "the dog"], replace(PLAIN, answers=AnswerStyle.SQUAD))
    assert squad["answer_em"].tolist() == [0, 1]
    assert task.clusters(data).tolist() == [0, 0], "questions to one paragraph belong together"


def test_gold_places_are_of_every_window() -> None:
    data, prepared = long_question()
    start, end = prepared.gold.sequences["start"], prepared.gold.sequences["end"]
    assert (start >= 0).all() and (start > 0).any() and (start == 0).any() and (start <= end).all()
    assert prepared.gold.units["allowed"].dtype == np.bool_
    bare = Labelled("en", (replace(data.items[0], answers=()),))
    told = task_named("qa").prepare(bare, Labels(()), READER, PLAIN).gold.sequences
    assert set(told["start"].tolist()) == set(told["end"].tolist()) == {-1}


# ------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("name", ["ner", "slots", "pos"])
def test_written_tags_are_read_again(name: str, tmp_path: Path) -> None:
    data = parts() if name == "pos" else tagged()
    task = task_named(name)
    said = [("NOUN" if name == "pos" else "B-THING",) * len(item) for item in data.items]
    path = tmp_path / f"predictions{task.suffix}"
    task.write(path, data, said)
    rows = [line.split("\t") for line in path.read_text().splitlines() if line]
    assert [row[0] for row in rows] == [word for item in data.items for word in item.words]
    assert [row[1] for row in rows] == [tag for item in data.items for tag in item.tags], "gold beside it"
    if name != "pos":  # three columns are not a file of parts of speech
        again = READERS[name](path, "en")
        assert [item.tags for item in again.items] == said
    bare = replace(data, items=tuple(replace(item, tags=()) for item in data.items))
    task.write(path, bare, said)
    again = READERS[name](path, "en")
    assert [item.words for item in again.items] == [item.words for item in data.items]
    assert [item.tags for item in again.items] == said, "predictions in the place of labels"


def test_written_pairs_trees_and_answers_are_read_again(tmp_path: Path) -> None:
    nli, data = task_named("nli"), pairs()
    nli.write(tmp_path / "nli.tsv", data, ["neutral"] * len(data))
    again = READERS["nli"](tmp_path / "nli.tsv", "en")
    assert [(one.first, one.second, one.label) for one in again.items] == [
        (one.first, one.second, one.label) for one in data.items
    ]
    lines = (tmp_path / "nli.tsv").read_text().splitlines()
    assert [line.split("\t")[3] for line in lines[1:]] == ["neutral"] * len(data)
    held = trees()
    said = [Parse((0, *[1] * (len(tree) - 1)), ("root", *["dep"] * (len(tree) - 1))) for tree in held.items]
    said[0] = Parse((0, 1), ("root", "dep"))  # cut to two words
    task_named("parsing").write(tmp_path / "trees.conllu", held, said)
    read = READERS["parsing"](tmp_path / "trees.conllu", "en")
    assert [(tree.heads, tree.labels) for tree in read.items] == [tuple(one) for one in said]
    assert read.items[0].words == held.items[0].words[:2] and read.items[1].words == held.items[1].words
    qa = questions(3)
    task_named("qa").write(tmp_path / "qa.json", qa, ["cat", "", "東京"])
    assert json.loads((tmp_path / "qa.json").read_text()) == {"q0": "cat", "q1": "", "q2": "東京"}


@pytest.mark.parametrize("name", ["ner", "slots", "pos", "parsing", "nli", "qa"])
def test_text_without_labels_can_be_prepared(name: str, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    lines = ["the cat sat", "it is \u200b life"]
    two = name in ("nli", "qa")
    path.write_text("\n".join(f"{line}\tthe dog sat" if two else line for line in lines) + "\n")
    data = read_unlabelled(name, path, "en", tokenised=True)
    known = "ner" if name == "slots" else name
    labels = task_named(known).labels([DATA[known]()])
    prepared = task_named(name).prepare(data, labels, READER, PLAIN)
    assert len(prepared.inputs) == 2
    for labelled in (*prepared.gold.units.values(), *prepared.gold.sequences.values()):
        assert labelled.dtype == np.bool_ or (labelled == -1).all()


def test_a_head_predicts_text_without_labels() -> None:
    held = learner("ner", paired("bert"), layers=(3,))
    bare = Labelled("en", (Tagged(("the", "cat"), ()), Tagged(("\u200b",), ())))
    found = held.predict(held.model(0), bare)
    assert [len(tags) for tags in found] == [2, 1] and set(found[0]) <= set(held.labels.names)
    assert held.options.head is HeadKind.TAG
