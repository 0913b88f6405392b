"""Premise and hypothesis with one of three labels: natural language inference."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calque.documents import parse_json
from calque.errors import BadInput
from calque.text.labelled.hub import read_rows
from calque.text.labelled.items import Labelled, TextPair
from calque.text.labelled.reading import Passed, Remark, Source, TaskFiles, attempt, check_text
from calque.text.languages import primary_subtag
from calque.text.lines import read_lines

#: The labels in the order of their numbers where files have numbers.
LABELS = ("entailment", "neutral", "contradiction")

_MEANING = {
    **{label: label for label in LABELS},
    **{str(number): label for number, label in enumerate(LABELS)},
    "contradictory": "contradiction",  # in machine-translated training files of XNLI
}
_NO_CONSENSUS = frozenset({"-", "-1"})
FIRST, SECOND = ("sentence1", "premise"), ("sentence2", "hypothesis", "hypo")
_LABEL, _ID, _LANGUAGE = ("gold_label", "label"), ("pairid", "id"), ("language",)
#: Labels of single annotators, which MultiNLI leaves out at the ends of lines.
_OPTIONAL = frozenset(f"label{number}" for number in range(1, 6))


def read_nli(
    path: str | Path,
    language: str,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    limit: int | None = None,
) -> Labelled[TextPair]:
    """Premises and hypotheses with entailment, neutral or contradiction.

    tsv: premise ⇥ hypothesis ⇥ label, or any columns under names as XNLI and MultiNLI have them. jsonl: an
    object a line with these names. dataset: `hf:NAME[:CONFIG][:SPLIT]`. Labels may be the numbers 0, 1, 2.
    Pairs on which annotators did not agree ("-") are dropped, counted; so are rows of other languages.
    """
    return NLI.read(path, language, format=format, skip_bad=skip_bad, limit=limit)


# ------------------------------------------------------------------------------------------- readers


def named_rows(
    source: Source, plain: Sequence[str], *, optional: Collection[str] = _OPTIONAL
) -> Iterator[tuple[int, dict[str, str] | int]]:
    """Numbered rows of a TSV as {name: cell}; a row with other columns than the names is their number.

    Names come from the first line when it names a premise and a hypothesis, and are `plain` otherwise.
    `optional` ones may be missing at the end of a row.
    """
    names: Sequence[str] = ()
    for number, line in enumerate(read_lines(source.path), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if not names:
            header = [cell.strip().lower() for cell in cells]
            named = _first(header, FIRST) and _first(header, SECOND)
            names = header if named else plain
            if named:
                continue
        missing = names[len(cells) :]
        fits = len(cells) <= len(names) and all(name in optional for name in missing)
        yield number, dict(zip(names, cells, strict=False)) if fits else len(cells)


def _first(row: Sequence[str] | Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in row), None)


def _read_tsv(source: Source) -> Iterator[TextPair | Remark]:
    for number, row in named_rows(source, ("premise", "hypothesis", "label")):
        if isinstance(row, int):
            yield source.bad(
                "columns", f"{row} columns", line=number, remedy="premise, hypothesis and label between tabs"
            )
        else:
            yield attempt(_pair, row, number, source)


def _read_jsonl(source: Source) -> Iterator[TextPair | Remark]:
    for number, line in enumerate(read_lines(source.path), 1):
        if line.strip():
            yield attempt(_from_json, line, number, source)


def _from_json(line: str, number: int, source: Source) -> TextPair:
    try:
        row = parse_json(line, source.path, line=number, halves=True)
    except BadInput as error:
        raise source.bad("not JSON", error.what, line=number) from None
    if not isinstance(row, dict):
        raise source.bad("not JSON", "not a JSON object", line=number)
    return _pair({str(name).lower(): value for name, value in row.items()}, number, source)


def _read_dataset(source: Source) -> Iterator[TextPair | Remark]:
    for number, row in read_rows(source):
        yield attempt(_pair, {name.lower(): value for name, value in row.items()}, number, source)


# --------------------------------------------------------------------------------------------- pairs


def _pair(row: Mapping[str, Any], number: int, source: Source) -> TextPair:
    first, second, label = (_first(row, names) for names in (FIRST, SECOND, _LABEL))
    if first is None or second is None or label is None:
        wanted = "a premise, a hypothesis and a label"
        raise source.bad("columns", f"not {wanted}", line=number, remedy="it holds " + ", ".join(row))
    own = _first(row, _LANGUAGE)
    if own and primary_subtag(str(row[own])) != primary_subtag(source.language):
        raise Passed("other language", str(row[own]))
    texts = _in_language(row[first], source.language), _in_language(row[second], source.language)
    check_text(source, *texts, line=number)
    id = _first(row, _ID)
    name = str(row[id]) if id else ""
    check_text(source, *filter(None, [name]), line=number, name="id")
    languages = source.language, source.language
    return TextPair(*texts, _meaning(row[label], number, source), languages, name, number)


def _in_language(value: Any, language: str) -> Any:
    """One text of several, where a dataset holds translations."""
    if not isinstance(value, Mapping):
        return value
    if {"language", "translation"} <= value.keys():
        sides = [one if isinstance(one, list) else [one] for one in (value["language"], value["translation"])]
        value = {str(code): text for code, text in zip(*sides, strict=False)}
    keys = [key for key in value if primary_subtag(key) == primary_subtag(language)]
    if not keys:
        raise Passed("other language", ", ".join(value))
    return value[keys[0]]


def _meaning(label: object, number: int, source: Source) -> str:
    told = str(label).strip().lower()
    if told in _NO_CONSENSUS:
        raise Passed("no consensus")
    if told not in _MEANING:
        raise source.bad(
            "unknown label", f"label {str(label)!r}", line=number, remedy="it must be " + ", ".join(LABELS)
        )
    return _MEANING[told]


NLI: TaskFiles[TextPair] = TaskFiles(
    "nli",
    {"tsv": _read_tsv, "jsonl": _read_jsonl, "dataset": _read_dataset},
    {"dataset": "dataset", "json": "jsonl"} | dict.fromkeys(("tabs", "numbered", "conllu"), "tsv"),
)
