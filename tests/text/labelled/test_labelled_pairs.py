"""Premise and hypothesis files: columns with and without names, JSON lines, labels as files spell them."""

import json
from pathlib import Path

import pytest

from calque.errors import BadInput
from calque.text.labelled.items import TextPair
from calque.text.labelled.pairs import read_nli


def put(folder: Path, text: str, name: str = "a.tsv") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def rows(*cells: tuple[str, ...]) -> str:
    return "".join("\t".join(row) + "\n" for row in cells)


XNLI = (
    "language",
    "gold_label",
    "sentence1_binary_parse",
    "sentence1",
    "sentence2",
    "promptID",
    "pairID",
    "match",
)
MULTINLI = ("gold_label", "sentence1_parse", "sentence1", "sentence2", "pairID", "label1", "label2", "label3")


def test_plain_columns(tmp_path: Path) -> None:
    found = read_nli(put(tmp_path, 'He "left".\tHe went.\tentailment\r\n\r\na\tb\tcontradictory\n'), "de")
    pair = ("de", "de")
    assert found.items == (
        TextPair('He "left".', "He went.", "entailment", pair, line=1),
        TextPair("a", "b", "contradiction", pair, line=3),
    )


def test_xnli_keeps_one_language(tmp_path: Path) -> None:
    text = rows(
        XNLI,
        ("ar", "neutral", "", "x", "y", "1", "1", "True"),
        ("zh", "neutral", "", "甲", "乙", "1", "1", "True"),
        ("zh", "-", "", "丙", "丁", "1", "2", "False"),
        ("zh", "entailment", "", "戊", "己", "1", "3", "True"),
    )
    path = put(tmp_path, text)
    found = read_nli(path, "zh-Hans")
    pair = ("zh-Hans", "zh-Hans")
    assert found.items == (
        TextPair("甲", "乙", "neutral", pair, "1", 3),
        TextPair("戊", "己", "entailment", pair, "3", 5),
    )
    assert found.dropped == {"no consensus": 1, "other language": 1}
    with pytest.raises(BadInput, match=r"nothing in 'sw' here \(it holds ar, zh"):
        read_nli(path, "sw")


def test_multinli_leaves_out_empty_ends(tmp_path: Path) -> None:
    text = rows(
        MULTINLI,
        ("neutral", "( a )", "a", "b", "12n", "neutral", "", ""),
        ("entailment", "( c )", "c", "d", "12e", "entailment"),
    )
    found = read_nli(put(tmp_path, text, "multinli_1.0_train.txt"), "en")
    assert [(pair.first, pair.second, pair.label, pair.id) for pair in found.items] == [
        ("a", "b", "neutral", "12n"),
        ("c", "d", "entailment", "12e"),
    ]
    with pytest.raises(BadInput, match=r":2: 4 columns"):
        read_nli(put(tmp_path, rows(MULTINLI, ("neutral", "( a )", "a", "b"))), "en")


def test_machine_translated_training_file(tmp_path: Path) -> None:
    found = read_nli(put(tmp_path, rows(("premise", "hypo", "label"), ("a", "b", "contradictory"))), "fr")
    assert found.items[0].label == "contradiction"


def test_json_lines(tmp_path: Path) -> None:
    held = [
        {"sentence1": "a\tb", "sentence2": "c", "gold_label": "neutral", "pairID": "7n", "language": "en"},
        {"premise": "d", "hypothesis": "e", "label": 0},
        {"premise": "d", "hypothesis": "e", "label": "2"},
        {"premise": "d", "hypothesis": "e", "label": -1},
    ]
    found = read_nli(put(tmp_path, "\n".join(map(json.dumps, held)), "a.jsonl"), "en")
    assert [pair.label for pair in found.items] == ["neutral", "entailment", "contradiction"]
    assert (found.items[0].first, found.items[0].id, found.items[2].line) == ("a\tb", "7n", 3)
    assert found.dropped == {"no consensus": 1}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a\tb\tneutral\nc\td\n", "2 columns"),
        ("a\tb\tneutral\nc\td\te\tneutral\n", "4 columns"),
        ("a\tb\tneutral\nc\td\tmaybe\n", "label 'maybe' (it must be entailment, neutral, contradiction)"),
        ("a\tb\tneutral\nc\td\t3\n", "label '3'"),
        ("a\tb\tneutral\nc\t \tneutral\n", "an empty text"),
        ("a\tb\tneutral\nc\0\td\tneutral\n", "NUL character"),
        (
            '{"premise": "a", "hypothesis": "b", "label": 1}\n{"premise": "a"}\n',
            "not a premise, a hypothesis and",
        ),
        ('{"premise": "a", "hypothesis": "b", "label": 1}\n{"premise"\n', "not JSON"),
        ('{"premise": "a", "hypothesis": "b", "label": 1}\n[]\n', "not a JSON object"),
        (
            '{"premise": "a", "hypothesis": "b", "label": 1}\n{"premise": 1, "hypothesis": 2, "label": 1}\n',
            "text is 1",
        ),
        (
            '{"premise": "a", "hypothesis": "b", "label": 1}\n'
            '{"premise": "\\ud83d", "hypothesis": "b", "label": 1}\n',
            "half a character",
        ),
        ('{"premise": "a", "hypothesis": "b", "label": 1}\n' + "[" * 100000 + "\n", "not JSON"),
    ],
)
def test_mistakes_are_placed_or_counted(tmp_path: Path, text: str, what: str) -> None:
    path = put(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        read_nli(path, "en")
    assert caught.value.line == 2
    assert what in str(caught.value)
    found = read_nli(path, "en", skip_bad=True)
    assert (len(found), sum(found.dropped.values())) == (1, 1)


def test_files_for_other_tasks(tmp_path: Path) -> None:
    squad = put(tmp_path, json.dumps({"version": "1.1", "data": []}))
    with pytest.raises(
        BadInput, match=r"it holds version, data; read as jsonl; for nli --format takes tsv, jsonl"
    ):
        read_nli(squad, "en")
    with pytest.raises(BadInput, match=r"2 columns .*premise, hypothesis and label.*--format"):
        read_nli(put(tmp_path, "Oslo\tB-LOC\n"), "en")
    with pytest.raises(BadInput, match="words between spaces: not a file for nli"):
        read_nli(put(tmp_path, "Just a sentence.\n"), "en")
    with pytest.raises(BadInput, match="not a premise, a hypothesis and a label"):
        read_nli(put(tmp_path, rows(("sentence1", "sentence2"), ("a", "b"))), "en")
    with pytest.raises(BadInput, match="no items here"):
        read_nli(put(tmp_path, rows(XNLI)), "en")


@pytest.mark.parametrize(
    "row",
    [
        {"premise": {"language": ["en"], "translation": []}, "hypothesis": "b", "label": 0},
        {"premise": {"language": [1], "translation": ["a"]}, "hypothesis": "b", "label": 0},
        {"premise": {"language": ["en"], "translation": True}, "hypothesis": "b", "label": 0},
        {"premise": "a", "hypothesis": "b", "label": 0, "id": "\ud800"},
        {"premise": "a", "hypothesis": "b", "label": 10**400},
    ],
)
def test_rows_of_another_shape(tmp_path: Path, row: dict[str, object]) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    with pytest.raises(BadInput, match=r"a\.jsonl"):
        read_nli(tmp_path / "a.jsonl", "en", format="jsonl")


def test_texts_with_tabs_and_line_ends_are_written_a_line_each(tmp_path: Path) -> None:
    from calque.text.labelled.writers import write_labelled

    (tmp_path / "a.jsonl").write_text(
        json.dumps({"premise": "a\tb\nc", "hypothesis": "d\r\u2028e", "label": 0, "id": "x\ny"})
    )
    found = read_nli(tmp_path / "a.jsonl", "en")
    write_labelled("nli", tmp_path / "a.tsv", found.items)
    (again,) = read_nli(tmp_path / "a.tsv", "en").items
    assert (again.first, again.second, again.id) == ("a b c", "d \u2028e", "x y")
