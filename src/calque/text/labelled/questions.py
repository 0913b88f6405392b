"""Questions whose answer is a part of a paragraph."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from calque.documents import decoded, parse_json
from calque.errors import BadInput
from calque.text.labelled.hub import column, read_rows
from calque.text.labelled.items import Answer, Labelled, Question
from calque.text.labelled.reading import (
    Changed,
    Passed,
    Remark,
    Source,
    TaskFiles,
    attempt,
    check_text,
)
from calque.text.languages import check_language, primary_subtag
from calque.text.lines import open_binary

_NEAR = 5
#: TyDi's questions begin their ids with their language.
_TYDI = {
    "arabic": "ar",
    "bengali": "bn",
    "english": "en",
    "finnish": "fi",
    "indonesian": "id",
    "japanese": "ja",
    "korean": "ko",
    "russian": "ru",
    "swahili": "sw",
    "telugu": "te",
    "thai": "th",
}


def read_qa(
    path: str | Path,
    language: str,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    limit: int | None = None,
    context_language: str | None = None,
) -> Labelled[Question]:
    """Questions to paragraphs that answer them, in `language`; `context_language` where paragraphs differ.

    squad: JSON as SQuAD 1.1, XQuAD, MLQA and TyDi GoldP have it. dataset: `hf:NAME[:CONFIG][:SPLIT]`.
    An answer that stands elsewhere in its paragraph, but only once or but a few characters away, is moved
    there, counted. Questions without an answer are dropped, counted. A repeated id gets `#2`, counted.
    """
    found = QA.read(path, language, format=format, skip_bad=skip_bad, limit=limit)
    return found if context_language is None else in_languages(found, context_language)


def in_languages(found: Labelled[Question], context_language: str) -> Labelled[Question]:
    """The same with paragraphs of another language; question's and paragraph's language make the name."""
    other = check_language(context_language)
    pair = found.language, other
    name = pair[0] if pair[0] == pair[1] else "+".join(pair)
    items = tuple(replace(question, languages=pair) for question in found.items)
    return replace(found, language=name, items=items)


# ------------------------------------------------------------------------------------------- answers


def place_answer(context: str, text: str, start: int) -> Answer | None:
    """The answer where it stands: at `start`, the only place, or a few characters away; None if nowhere.

    Spaces and the form of Unicode may differ; the answer is then as the paragraph has it.

    >>> place_answer("It has 308 points.", "308", 6)
    Answer(text='308', start=7)
    """
    if start >= 0 and context.startswith(text, start):
        return Answer(text, start)
    if context.count(text) == 1:
        return Answer(text, context.index(text))
    return _nearby(context, text, start)


def _nearby(context: str, text: str, start: int) -> Answer | None:
    wanted = _plain(text)
    shifts = sorted(range(-_NEAR, _NEAR + 1), key=abs)
    for first in (start + shift for shift in shifts):
        for length in (len(text) + shift for shift in shifts):
            piece = context[first : first + length] if first >= 0 and length > 0 else ""
            if piece and piece == piece.strip() and _plain(piece) == wanted:
                return Answer(piece, first)
    return None


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split())


# --------------------------------------------------------------------------------------------- squad


class _Record(NamedTuple):
    """One question as files have it."""

    context: Any
    question: Any
    answers: Any
    id: Any
    line: int | None = None
    impossible: bool = False


def read_document(source: Source) -> tuple[str, Any]:
    """The text of a JSON file, and what it says."""
    with open_binary(source.path) as handle:
        text = decoded(handle.read(), source.path)
    return text, parse_json(text, source.path, halves=True)


def records(source: Source) -> Iterator[_Record]:
    """Every question of a SQuAD file, with its paragraph and its line in the file."""
    text, document = read_document(source)
    at = _Lines(text)
    for article in _list(document, "data", source):
        for paragraph in _list(article, "paragraphs", source):
            for qa in _list(paragraph, "qas", source):
                if not isinstance(qa, dict):
                    raise BadInput("a question is no JSON object", where=source.path)
                id = qa.get("id")
                yield _Record(
                    paragraph.get("context"),
                    qa.get("question"),
                    qa.get("answers"),
                    id,
                    at.line_of(id),
                    bool(qa.get("is_impossible")),
                )


def _list(holder: Any, name: str, source: Source) -> list[Any]:
    held = holder.get(name) if isinstance(holder, Mapping) else None
    if not isinstance(held, list):
        raise BadInput(
            f"no list {name!r}: not SQuAD", where=source.path, remedy="data, paragraphs, qas, as SQuAD 1.1"
        )
    return held


_ID = re.compile(r'"id"[ \t\r\n]*:[ \t\r\n]*("[^"\\]*(?:\\.[^"\\]*)*"|[\w.+-]+)')


class _Lines:
    """Finds the lines of ids, which come in the order of the file; of a file of one line none is told."""

    def __init__(self, text: str) -> None:
        self._places: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
        self._at, line, last = 0, 1, 0
        for found in _ID.finditer(text) if "\n" in text.strip() else ():
            line, last = line + text.count("\n", last, found.start()), found.start()
            self._places[json.dumps(json.loads(found[1]))].append((last, line))

    def line_of(self, id: Any) -> int | None:
        """The line of the next place that says this id."""
        places = self._places.get(json.dumps(id), deque())
        while places:
            place, line = places.popleft()
            if place >= self._at:
                self._at = place + 1
                return line
        return None


# --------------------------------------------------------------------------------------------- items


def _read_squad(source: Source) -> Iterator[Question | Remark]:
    return _questions(records(source), source)


def _read_dataset(source: Source) -> Iterator[Question | Remark]:
    return _questions((_from_row(row, number, source) for number, row in read_rows(source)), source)


def _from_row(row: Mapping[str, Any], number: int, source: Source) -> _Record:
    context, question, answers = (
        row[column(row, (name,), source)] for name in ("context", "question", "answers")
    )
    if isinstance(answers, Mapping):
        names = ("text", "answer_start")
        held = zip(*(answers.get(name) or [] for name in names), strict=False)
        answers = [dict(zip(names, cells, strict=True)) for cells in held]
    return _Record(context, question, answers, row.get("id"), number)


def told_apart(found: Iterable[_Record]) -> Iterator[_Record | Changed]:
    """Questions with ids of their own: a repeated one gets `#2`, a missing one is the question's number."""
    seen: Counter[str] = Counter()
    for number, record in enumerate(found, 1):
        id = str(number if record.id is None else record.id)
        seen[id] += 1
        if seen[id] > 1:
            yield Changed("id repeated")
            id = f"{id}#{seen[id]}"
        yield record._replace(id=id)


def _questions(found: Iterator[_Record], source: Source) -> Iterator[Question | Remark]:
    for record in told_apart(found):
        if isinstance(record, Changed):
            yield record
            continue
        outcome = attempt(_question, record, source)
        if isinstance(outcome, tuple):
            question, moved = outcome
            yield Changed("answer moved", moved)
            yield question
        else:
            yield outcome


def _question(record: _Record, source: Source) -> tuple[Question, int]:
    """The question, and how many of its answers were moved."""
    spoken = _TYDI.get(record.id.partition("-")[0])
    if spoken and spoken != primary_subtag(source.language):
        raise Passed("other language", spoken)
    if record.impossible:
        raise Passed("impossible")
    check_text(source, record.context, line=record.line, name="paragraph")
    check_text(source, record.question, line=record.line, name="question")
    check_text(source, record.id, line=record.line, name="id")
    if not record.answers:
        raise Passed("no answer")
    if not isinstance(record.answers, list):
        raise source.bad("malformed answer", f"answers of question {record.id} are no list", line=record.line)
    placed = [_answer(answer, record, source) for answer in record.answers]
    answers, languages = tuple(answer for answer, _ in placed), (source.language, source.language)
    question = Question(record.question, record.context, answers, languages, record.id, record.line or 0)
    return question, sum(moved for _, moved in placed)


def _answer(answer: Any, record: _Record, source: Source) -> tuple[Answer, bool]:
    """The answer where it stands, and whether that is elsewhere than said."""
    held = answer if isinstance(answer, Mapping) else {}
    text, start = held.get("text"), held.get("answer_start")
    if not isinstance(text, str) or not text.strip() or type(start) is not int:
        what = f"an answer of question {record.id} is {answer!r}"
        raise source.bad("malformed answer", what, line=record.line, remedy="a text and its answer_start")
    found = place_answer(record.context, text, start)
    if found is None:
        what = f"answer {text!r} of question {record.id} does not stand in its paragraph at {start}"
        raise source.bad("answer not in paragraph", what, line=record.line)
    return found, found != Answer(text, start)


QA: TaskFiles[Question] = TaskFiles(
    "qa", {"squad": _read_squad, "dataset": _read_dataset}, {"json": "squad", "dataset": "dataset"}
)
