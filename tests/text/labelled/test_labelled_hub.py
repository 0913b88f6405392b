"""Datasets by name: the usual columns of each task, labels by their names."""

import builtins
from pathlib import Path
from typing import Any

import pytest

from calque.errors import BadInput, MissingExtra
from calque.text.conllu import Tree
from calque.text.labelled.items import Answer, Question, Tagged, TextPair
from calque.text.labelled.open import read_labelled

datasets = pytest.importorskip("datasets")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str | None, str], Any]:
    """Datasets in memory, by name, config and split."""
    held: dict[tuple[str, str | None, str], Any] = {}

    def load(name: str, config: str | None, *, split: str) -> Any:
        if (name, config, split) not in held:
            raise ValueError("not on the hub")
        return held[name, config, split]

    monkeypatch.setattr(datasets, "load_dataset", load)
    return held


def table(rows: dict[str, list[Any]], **kinds: Any) -> Any:
    made = datasets.Dataset.from_dict(rows)
    return made.cast(datasets.Features({**made.features, **kinds})) if kinds else made


def labels(*names: str) -> Any:
    return datasets.Sequence(datasets.ClassLabel(names=list(names)))


def test_xnli(hub: dict[Any, Any]) -> None:
    rows = {"premise": ["a", "c", "e"], "hypothesis": ["b", "d", "f"], "label": [2, 0, -1]}
    expected = (
        TextPair("a", "b", "contradiction", ("de", "de"), line=1),
        TextPair("c", "d", "entailment", ("de", "de"), line=2),
    )
    hub["xnli", "de", "test"] = table(rows)
    found = read_labelled("nli", "hf:xnli:de:test", "de")
    assert (found.items, found.dropped) == (expected, {"no consensus": 1})
    named = datasets.ClassLabel(names=["contradiction", "neutral", "entailment"])
    hub["other", None, "train"] = table({**rows, "label": [0, 2, -1]}, label=named)
    assert read_labelled("nli", "hf:other", "de").items == expected


def test_xnli_in_all_languages(hub: dict[Any, Any]) -> None:
    hub["xnli", "all_languages", "test"] = table(
        {
            "premise": [{"de": "eins", "en": "one"}],
            "hypothesis": [{"language": ["de", "en"], "translation": ["zwei", "two"]}],
            "label": [1],
        }
    )
    spec = "hf:xnli:all_languages:test"
    assert read_labelled("nli", spec, "en").items == (
        TextPair("one", "two", "neutral", ("en", "en"), line=1),
    )
    with pytest.raises(BadInput, match="nothing in 'sw' here"):
        read_labelled("nli", spec, "sw")


def test_wikiann(hub: dict[Any, Any]) -> None:
    rows = {
        "tokens": [["Oslo", "is"], ["New", "York"]],
        "ner_tags": [[1, 0], [1, 2]],
        "langs": [["en"] * 2] * 2,
    }
    hub["wikiann", "en", "train"] = table(rows, ner_tags=labels("O", "B-LOC", "I-LOC"))
    found = read_labelled("ner", "hf:wikiann:en", "en", limit=2)
    assert found.items == (
        Tagged(("Oslo", "is"), ("B-LOC", "O"), line=1),
        Tagged(("New", "York"), ("B-LOC", "I-LOC"), line=2),
    )
    hub["bare", None, "train"] = table(rows)
    with pytest.raises(BadInput, match=r"hf:bare:1: the tag of 'Oslo' is 1"):
        read_labelled("ner", "hf:bare", "en")


def test_slots_and_tags_that_are_text(hub: dict[Any, Any]) -> None:
    hub["s", None, "train"] = table(
        {"words": [["at", "9"], ["x"]], "slots": [["O", "B-time"], ["time"]], "id": ["a", "b"]}
    )
    with pytest.raises(BadInput, match=r"hf:s:2: tag 'time' of 'x'"):
        read_labelled("slots", "hf:s", "en")
    found = read_labelled("slots", "hf:s", "en", skip_bad=True)
    assert found.items == (Tagged(("at", "9"), ("O", "B-time"), "a", 1),)
    assert found.dropped == {"tag without BIO": 1}


def test_universal_dependencies(hub: dict[Any, Any]) -> None:
    """The loader keeps multiword tokens as words without a head."""
    hub["universal_dependencies", "es_gsd", "test"] = table(
        {
            "idx": ["s1"],
            "text": ["al mar"],
            "tokens": [["al", "a", "el", "mar"]],
            "lemmas": [["_", "a", "el", "mar"]],
            "upos": [[3, 0, 1, 2]],
            "head": [["None", "3", "3", "0"]],
            "deprel": [["_", "case", "det", "root:x"]],
        },
        upos=labels("ADP", "DET", "NOUN", "_"),
    )
    spec = "hf:universal_dependencies:es_gsd:test"
    words, upos = ("a", "el", "mar"), ("ADP", "DET", "NOUN")
    parsed = read_labelled("parsing", spec, "es")
    assert parsed.items == (Tree(words, upos, (3, 3, 0), ("case", "det", "root"), words, "s1", "al mar"),)
    assert read_labelled("pos", spec, "es").items == (Tagged(words, upos, "s1", 1),)


def test_trees_that_are_none(hub: dict[Any, Any]) -> None:
    rows = {"tokens": [["a", "b"]] * 2, "upos": [["X", "X"]] * 2, "deprel": [["d", "d"]] * 2}
    hub["u", None, "train"] = table({**rows, "head": [["0", "1"], ["0", "0"]]})
    with pytest.raises(BadInput, match=r"hf:u:2: 2 roots"):
        read_labelled("parsing", "hf:u", "en")
    assert read_labelled("parsing", "hf:u", "en", skip_bad=True).dropped == {"several roots": 1}


def test_squad(hub: dict[Any, Any]) -> None:
    hub["xquad", "xquad.de", "validation"] = table(
        {
            "id": ["1", "2"],
            "context": ["a b", "a b"],
            "question": ["?", "?"],
            "answers": [{"text": ["b"], "answer_start": [2]}, {"text": [], "answer_start": []}],
        }
    )
    found = read_labelled("qa", "hf:xquad:xquad.de:validation", "de")
    assert found.items == (Question("?", "a b", (Answer("b", 2),), ("de", "de"), "1", 1),)
    assert found.dropped == {"no answer": 1}


def test_what_is_missing_is_said(hub: dict[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="hf:no: cannot be loaded: not on the hub"):
        read_labelled("ner", "hf:no", "en")
    hub["x", None, "train"] = table({"text": ["a"], "label": [0]})
    for task, what in [
        ("ner", "no column tokens or words"),
        ("parsing", "no column tokens"),
        ("qa", "no column context"),
        ("nli", "not a premise"),
    ]:
        with pytest.raises(BadInput, match=rf"{what}.*it holds text, label"):
            read_labelled(task, "hf:x", "en")

    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "datasets":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"calque\[datasets\]"):
        read_labelled("ner", "hf:x", "en")


def test_a_dataset_saved_to_disk(tmp_path: Path) -> None:
    table({"tokens": [["a"]], "ner_tags": [["O"]]}).save_to_disk(str(tmp_path / "d"))
    assert read_labelled("ner", f"hf:{tmp_path}/d", "en").items == (Tagged(("a",), ("O",), "", 1),)
