"""Extractive question answering: where in a paragraph the answer begins and ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calque.encoders.tokens import Reader
from calque.stats.ratios import Ratio
from calque.stats.tasks import answer_statistics, metrics_of, statistics
from calque.text.labelled.items import Answer, Labelled, Question
from calque.text.labelled.writers import write_answers
from calque.transfer.heads import HeadKind, best_span
from calque.transfer.inputs import QuestionInputs, question_inputs
from calque.transfer.learning import GoldLabels, Prepared
from calque.transfer.task import Labels, Reading
from calque.types import Doubles, Floats, Longs


@dataclass(frozen=True)
class QuestionTask:
    """Question and windows of the paragraph; the answer is the best stretch of pieces in any of them."""

    name: str = "qa"
    suffix: str = ".json"

    @property
    def metrics(self) -> tuple[Ratio, ...]:
        return metrics_of(self.name)

    def heads(self) -> tuple[HeadKind, ...]:
        return (HeadKind.SPAN,)

    def labels(self, train: Sequence[Labelled[Question]]) -> Labels:
        """None: an answer is a place."""
        return Labels(())

    def names(self, item: Question) -> Iterable[str]:
        return ()

    def prepare(self, data: Labelled[Question], labels: Labels, reader: Reader, reading: Reading) -> Prepared:
        read = question_inputs(data.items, reader, longest=reading.longest, overlap=reading.overlap)
        start, end = answer_places(read, data.items)
        gold = GoldLabels({"allowed": read.allowed}, {"start": start, "end": end})
        return Prepared(read.inputs, gold, read)

    def predictions(
        self,
        data: Labelled[Question],
        prepared: Prepared,
        said: Sequence[tuple[Floats, Floats]],
        labels: Labels,
        reading: Reading,
    ) -> list[str]:
        """The likeliest stretch of any window, as it stands in the paragraph."""
        read: QuestionInputs = prepared.extra
        best: list[tuple[float, str]] = [(-np.inf, "")] * len(data)
        for number, (start, end) in enumerate(said):
            first, last = prepared.inputs.first[number : number + 2]
            may = read.allowed[first:last].copy()
            may[0] = False
            if not may.any():
                continue
            a, b = (np.where(may, side[: last - first], -np.inf) for side in (start, end))
            i, j, score = best_span(a, b, reading.longest_answer)
            item = int(prepared.inputs.item[number])
            if score > best[item][0]:
                text = data.items[item].context[read.begin[first + i] : read.end[first + j]]
                best[item] = (score, text.strip())
        return [text for _, text in best]

    def statistics(
        self, data: Labelled[Question], predictions: Sequence[str], reading: Reading
    ) -> dict[str, Doubles]:
        """Answers are normalised as the paragraph's language wants."""
        return statistics(
            [
                answer_statistics(
                    said, [one.text for one in item.answers], item.languages[1], style=reading.answers
                )
                for item, said in zip(data.items, predictions, strict=True)
            ]
        )

    def clusters(self, data: Labelled[Question]) -> Longs:
        """Questions to one paragraph belong together."""
        known: dict[str, int] = {}
        return np.array([known.setdefault(item.context, len(known)) for item in data.items], np.int64)

    def write(self, path: Path, data: Labelled[Question], predictions: Sequence[str]) -> None:
        write_answers(path, data.items, predictions)


def answer_places(read: QuestionInputs, questions: Sequence[Question]) -> tuple[Longs, Longs]:
    """First and last piece of the first answer in every window; 0 where the window does not hold it whole.

    An answer is what pieces hold of it: a tokenizer may leave out a character at its end. Shape: both
    (windows,); −1 where a question has no answer.
    """
    first, item = read.inputs.first, read.inputs.item
    found = np.full((2, len(item)), -1, np.int64)
    usable = read.allowed.copy()
    usable[first[:-1]] = False
    bounds = np.searchsorted(item, np.arange(len(questions) + 1))
    for question, rows in zip(questions, map(range, bounds, bounds[1:]), strict=True):
        if not question.answers:
            continue
        units = slice(first[rows.start], first[rows.stop])
        begin, end = read.begin[units], read.end[units]
        start, stop = _stripped(question.answers[0])
        touched = usable[units] & (end > start) & (begin < stop)
        start = max(start, begin[touched].min(initial=stop))
        stop = min(stop, end[touched].max(initial=start))
        for row in rows:
            held = np.flatnonzero(touched[first[row] - units.start : first[row + 1] - units.start])
            own = held + first[row]
            whole = len(held) and read.begin[own].min() <= start and read.end[own].max() >= stop
            found[:, row] = (held[0], held[-1]) if whole else (0, 0)
    return found[0], found[1]


def _stripped(answer: Answer) -> tuple[int, int]:
    """Where an answer begins and ends without the spaces around it."""
    start = answer.start + len(answer.text) - len(answer.text.lstrip())
    return start, answer.start + len(answer.text.rstrip())
