"""Entities and slots as spans: BIO tags read, repaired and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from calque.errors import BadInput
from calque.recipe import Choice


class Repair(Choice):
    """What an I- that does not continue a span of its own type stands for.

    new-span: the first word of a new span, as conlleval, seqeval's default mode and the program of Wu &
    Dredze (2020) read it. Tags read without any repair give the same spans.
    last-type: part of the span before it, or the first word of a new one where there is none; a span of
    several types is of its last word's type (Conneau, Wu et al. 2020: B-X I-Y I-Z becomes B-Z I-Z I-Z).
    discard: in no span at all, as seqeval's strict mode with its scheme IOB2 reads it.
    """

    NEW_SPAN = "new-span"
    LAST_TYPE = "last-type"
    DISCARD = "discard"


class Span(NamedTuple):
    """Words start to end (end excluded) are a `type`."""

    start: int
    end: int
    type: str


class Counts(NamedTuple):
    """What F1 is made of: how many were found, how many were predicted, how many there are."""

    hits: int
    predicted: int
    gold: int


_Tag: TypeAlias = tuple[str, str]


def spans(tags: Sequence[str]) -> set[Span]:
    """The spans of one sentence, read as conlleval reads them: an I- that continues nothing begins a span.

    >>> sorted(spans(["B-PER", "I-PER", "O", "I-LOC"]))
    [Span(start=0, end=2, type='PER'), Span(start=3, end=4, type='LOC')]
    """
    found: set[Span] = set()
    start, open_type = 0, ""
    for place, (prefix, type_) in enumerate([*map(_parts, tags), ("O", "")]):
        if prefix == "I" and type_ == open_type:
            continue
        if open_type:
            found.add(Span(start, place, open_type))
        start, open_type = place, type_
    return found


def repair(tags: Sequence[str], how: Repair = Repair.NEW_SPAN) -> list[str]:
    """Tags in which every I- continues a span of its own type.

    >>> repair(["I-X", "O", "B-X", "I-Y", "I-Z"], Repair.LAST_TYPE)
    ['B-X', 'O', 'B-Z', 'I-Z', 'I-Z']
    >>> repair(["I-X", "O", "B-X", "I-Y", "I-Z"], Repair.NEW_SPAN)
    ['B-X', 'O', 'B-X', 'B-Y', 'B-Z']
    >>> repair(["I-X", "O", "B-X", "I-Y", "I-Z"], Repair.DISCARD)
    ['O', 'O', 'B-X', 'O', 'O']
    """
    mended = _REPAIRS[Repair.parse(how)]([_parts(tag) for tag in tags])
    return [f"{prefix}-{type_}" if type_ else prefix for prefix, type_ in mended]


@lru_cache(1024)
def _parts(tag: str) -> _Tag:
    """Prefix and type; a type may hold dashes itself, O has none."""
    prefix, _, type_ = tag.partition("-")
    if tag != "O" and (prefix not in ("B", "I") or not type_):
        raise BadInput(f"{tag!r} is no BIO tag", remedy="O, or B- or I- and a type, such as B-PER")
    return prefix, type_


def _new_span(tags: list[_Tag]) -> list[_Tag]:
    before = [("O", ""), *tags]
    return [
        ("B", type_) if prefix == "I" and type_ != last else (prefix, type_)
        for (_, last), (prefix, type_) in zip(before, tags, strict=False)
    ]


def _last_type(tags: list[_Tag]) -> list[_Tag]:
    mended: list[_Tag] = []
    last = ""
    for prefix, type_ in reversed(tags):
        last = (last or type_) if prefix != "O" else ""
        mended.append((prefix, last))
        if prefix == "B":
            last = ""
    return _new_span(mended[::-1])


def _discard(tags: list[_Tag]) -> list[_Tag]:
    mended: list[_Tag] = []
    open_type = ""
    for prefix, type_ in tags:
        open_type = type_ if prefix == "B" or type_ == open_type else ""
        mended.append((prefix, type_) if open_type else ("O", ""))
    return mended


_REPAIRS: Mapping[Repair, Callable[[list[_Tag]], list[_Tag]]] = {
    Repair.NEW_SPAN: _new_span,
    Repair.LAST_TYPE: _last_type,
    Repair.DISCARD: _discard,
}


def span_counts(gold: Set[Span], predicted: Set[Span]) -> Counts:
    """Counts of one sentence; a span is a hit when both its ends and its type are right."""
    return Counts(len(gold & predicted), len(predicted), len(gold))


def span_counts_by_type(gold: Set[Span], predicted: Set[Span]) -> dict[str, Counts]:
    """Counts of one sentence for every type that occurs in it, by name.

    >>> span_counts_by_type(spans(["B-PER", "B-LOC"]), spans(["B-PER", "B-ORG"]))["LOC"]
    Counts(hits=0, predicted=0, gold=1)
    """
    hits, said, true = (Counter(span.type for span in held) for held in (gold & predicted, predicted, gold))
    return {type_: Counts(hits[type_], said[type_], true[type_]) for type_ in sorted(said | true)}


def token_counts(gold: Sequence[str], predicted: Sequence[str]) -> Counts:
    """Words of one sentence whose tag is not O; a word is a hit when its whole tag is right, B or I included.

    >>> token_counts(["B-PER", "I-PER", "O"], ["B-PER", "B-PER", "B-LOC"])
    Counts(hits=1, predicted=3, gold=2)
    """
    check_lengths(gold, predicted)
    hits = sum(a == b != "O" for a, b in zip(gold, predicted, strict=True))
    return Counts(hits, *(len(tags) - list(tags).count("O") for tags in (predicted, gold)))


def check_lengths(gold: Sequence[str], predicted: Sequence[str]) -> None:
    """Every word has a gold tag and a predicted one, or it is an error."""
    if len(gold) != len(predicted):
        raise BadInput(f"{len(predicted)} predicted tags for {len(gold)} words", remedy="one tag a word")
