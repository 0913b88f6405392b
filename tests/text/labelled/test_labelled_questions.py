"""Questions to paragraphs: where answers stand, what is moved, dropped and refused."""

import json
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.text.labelled.items import Answer, Question
from calque.text.labelled.questions import place_answer, read_qa

CONTEXT = "The Panthers gave up 308 points and 24 points; see points 1 to 3."


def asked(id: Any, answers: Any, **more: Any) -> dict[str, Any]:
    return {"id": id, "question": "How many?", "answers": answers, **more}


def answer(text: str, start: int) -> dict[str, Any]:
    return {"text": text, "answer_start": start}


def squad(folder: Path, *qas: Any, context: Any = CONTEXT, indent: int | None = None) -> Path:
    held = {
        "version": "1.1",
        "data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(qas)}]}],
    }
    path = folder / "a.json"
    path.write_text(json.dumps(held, indent=indent), encoding="utf-8")
    return path


def test_answers_where_they_stand(tmp_path: Path) -> None:
    path = squad(
        tmp_path, asked("q1", [answer("308", 21), answer("308 points", 21)]), asked("q2", [answer("24", 36)])
    )
    found = read_qa(path, "en")
    pair = ("en", "en")
    assert found.items == (
        Question("How many?", CONTEXT, (Answer("308", 21), Answer("308 points", 21)), pair, "q1"),
        Question("How many?", CONTEXT, (Answer("24", 36),), pair, "q2"),
    )
    assert (found.dropped, found.changed) == ({}, {})
    assert read_qa(path, "en", limit=1).items == found.items[:1]


def test_languages_of_question_and_paragraph(tmp_path: Path) -> None:
    path = squad(tmp_path, asked("q1", [answer("308", 21)]))
    found = read_qa(path, "de", context_language="en")
    assert (found.language, found.items[0].languages) == ("de+en", ("de", "en"))
    assert read_qa(path, "en", context_language="en").language == "en"


def test_answers_that_stand_elsewhere(tmp_path: Path) -> None:
    """`308` stands once; `points` thrice, once two characters from where it should."""
    path = squad(
        tmp_path, asked("q1", [answer("308", 0)]), asked("q2", [answer("points", 27), answer("24", 36)])
    )
    found = read_qa(path, "en")
    assert [item.answers[0] for item in found.items] == [Answer("308", 21), Answer("points", 25)]
    assert found.changed == {"answer moved": 2}


def test_answers_in_other_characters() -> None:
    context = unicodedata.normalize("NFD", "Die Größe von 5\u00a0000 Ämtern, 5 000")
    placed = place_answer(context, "Größe  von 5 000", 4)
    assert placed is not None
    assert placed == Answer(context[4:20], 4)
    assert unicodedata.normalize("NFKC", placed.text) == "Größe von 5 000"


text = st.text(st.sampled_from("ab é\u0301\u00a0"), max_size=12)


@given(text, st.text(st.sampled_from("abé"), min_size=1, max_size=4), text, st.integers(-4, 4))
def test_what_is_placed_stands_there(before: str, planted: str, after: str, shift: int) -> None:
    context = before + planted + after
    placed = place_answer(context, planted, len(before) + shift)
    assert placed is not None, "it stands within four characters"
    assert context[placed.start : placed.start + len(placed.text)] == placed.text
    assert unicodedata.normalize("NFKC", placed.text) == unicodedata.normalize("NFKC", planted)
    assert place_answer(context, "z" + planted, len(before)) is None


def test_questions_without_answers_are_counted(tmp_path: Path) -> None:
    path = squad(
        tmp_path,
        asked("q1", [], is_impossible=True),
        asked("q2", []),
        asked("q3", [answer("24", 36)], is_impossible=False),
        asked("finnish-1", [answer("24", 36)]),
    )
    found = read_qa(path, "en")
    assert [item.id for item in found.items] == ["q3"]
    assert found.dropped == {"impossible": 1, "no answer": 1, "other language": 1}
    assert read_qa(path, "fi").dropped == {"impossible": 1, "no answer": 1}


def test_repeated_ids_are_told_apart(tmp_path: Path) -> None:
    """TyDi's English file in SQuAD's form has 89 ids for 3696 questions."""
    found = read_qa(squad(tmp_path, *[asked(id, [answer("24", 36)]) for id in (0, 1, 0, None, 0)]), "en")
    assert [item.id for item in found.items] == ["0", "1", "0#2", "4", "0#3"]
    assert found.changed == {"id repeated": 2}
    path = squad(tmp_path, *[asked(id, [answer("24", 36)]) for id in ("0", "0", "1")], indent=1)
    lines = path.read_text(encoding="utf-8").split("\n")
    places = [number for number, line in enumerate(lines, 1) if '"id"' in line]
    assert [item.line for item in read_qa(path, "en").items] == places


@pytest.mark.parametrize(
    ("question", "what"),
    [
        (
            asked("q2", [answer("309", 21)]),
            "answer '309' of question q2 does not stand in its paragraph at 21",
        ),
        (asked("q2", [answer("points", 2)]), "does not stand in its paragraph at 2"),
        (asked("q2", [answer("", 3)]), "an answer of question q2 is {'text': '', 'answer_start': 3}"),
        (asked("q2", [{"text": "308"}]), "an answer of question q2 is {'text': '308'}"),
        (asked("q2", [answer("308", True)]), "an answer of question q2"),
        (asked("q2", ["308"]), "an answer of question q2 is '308'"),
        (asked("q2", 308), "answers of question q2 are no list"),
        ({"id": "q2", "answers": [answer("308", 21)]}, "a question is None"),
        ({"id": "q2", "question": " ", "answers": [answer("308", 21)]}, "an empty question"),
        ({"id": "q2", "question": "\0", "answers": [answer("308", 21)]}, "NUL character"),
    ],
)
def test_mistakes_are_named_or_counted(tmp_path: Path, question: dict[str, Any], what: str) -> None:
    good = asked("q1", [answer("308", 21)])
    with pytest.raises(BadInput) as caught:
        read_qa(squad(tmp_path, good, question), "en")
    assert what in str(caught.value)
    assert caught.value.line is None
    path = squad(tmp_path, good, question, indent=1)
    with pytest.raises(BadInput) as caught:
        read_qa(path, "en")
    lines = path.read_text(encoding="utf-8").split("\n")
    assert caught.value.line is not None
    assert '"id": "q2"' in lines[caught.value.line - 1]
    found = read_qa(path, "en", skip_bad=True)
    assert (len(found), sum(found.dropped.values())) == (1, 1)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "an empty file"),
        ('{"data": []}', "no items here"),
        ('{"data": {}}', "no list 'data'"),
        ('{"dates": []}', "not SQuAD .*read as squad; for qa --format takes squad, dataset"),
        ('[{"data": []}]', "no list 'data'"),
        ('{"data": [{"paragraphs": [{"context": "a"}]}]}', "no list 'qas'"),
        ('{"data": [{"paragraphs": [{"context": "a", "qas": [1]}]}]}', "no JSON object"),
        ('{"data": [\n', r"a.json:2: not JSON"),
        ('{"data": ' + "[" * 100000, "not JSON"),
        ('{"data": ' + "1" * 5000 + "}", "not JSON"),
        ("a\tb\tneutral\n", "columns between tabs: not a file for qa"),
    ],
)
def test_other_files(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(BadInput, match=what):
        read_qa(path, "en", skip_bad=True)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"data":\n "\xff"}')
    with pytest.raises(BadInput, match=r"0xff.*not UTF-8"):
        read_qa(path, "en")


@pytest.mark.parametrize("written", ['"id":"ä"', '"id" :\t"\\u00e4"', '"id": "ä"', '"id":"x", "id":"ä"'])
def test_lines_of_ids_however_they_are_written(tmp_path: Path, written: str) -> None:
    asked = '"question": "?", "answers": [{"text": "a", "answer_start": 0}]'
    qas = f'{{{written}, {asked}}},\n{{"id":"\\"b", {asked}}}'
    path = tmp_path / "a.json"
    path.write_text(
        f'{{"data": [{{"paragraphs":\n[{{"context": "a", "qas": [{qas}]}}]}}]}}', encoding="utf-8"
    )
    assert [(one.id, one.line) for one in read_qa(path, "en").items] == [("ä", 2), ('"b', 3)]


@pytest.mark.parametrize("written", ['"id":"{}"', '"id": "\\u0061{}"', '"\\u0069d": "{}"'])
def test_many_ids_take_no_square_of_their_number(tmp_path: Path, written: str) -> None:
    asked = '"question": "?", "answers": [{"text": "a", "answer_start": 0}]'
    qas = ",\n".join(f"{{{written.format(number)}, {asked}}}" for number in range(20_000))
    path = tmp_path / "a.json"
    path.write_text(f'{{"data": [{{"paragraphs": [{{"context": "a", "qas": [\n{qas}]}}]}}]}}')
    start = time.process_time()
    assert len(read_qa(path, "en")) == 20_000
    assert time.process_time() - start < 4
