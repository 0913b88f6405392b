"""Spans and their repairs against seqeval, definitions by position, and examples worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, Entities

from calque.errors import BadInput, BadSetting
from calque.stats.spans import (
    Counts,
    Repair,
    Span,
    repair,
    span_counts,
    span_counts_by_type,
    spans,
    token_counts,
)

TYPES = ["PER", "LOC", "date-time"]
TAG = st.sampled_from(["O", *(f"{prefix}-{type_}" for prefix in "BI" for type_ in TYPES)])
TAGS = st.lists(TAG, max_size=12)


def default_mode(tags: list[str]) -> set[tuple[int, int, str]]:
    return {(start, last + 1, type_) for type_, start, last in get_entities(tags)}


def strict_mode(tags: list[str]) -> set[tuple[int, int, str]]:
    (found,) = Entities([tags], IOB2).entities
    return {(entity.start, entity.end, entity.tag) for entity in found}


@given(TAGS)
def test_spans_are_those_of_seqeval(tags: list[str]) -> None:
    assert spans(tags) == default_mode(tags)
    assert spans(repair(tags, Repair.NEW_SPAN)) == default_mode(tags)
    assert spans(repair(tags, Repair.DISCARD)) == strict_mode(tags)


def rewritten(tags: list[str]) -> list[str]:
    """One wrong I after the other becomes a B, from the left, until none is wrong."""
    for place, tag in enumerate(tags):
        allowed = {"B" + tag[1:], "I" + tag[1:]}
        if tag[0] == "I" and (place == 0 or tags[place - 1] not in allowed):
            return rewritten([*tags[:place], "B" + tag[1:], *tags[place + 1 :]])
    return tags


def by_last_type(tags: list[str], place: int) -> str:
    """What one word's tag becomes: its stretch of B I I ... is looked up in both directions."""
    if tags[place] == "O":
        return "O"
    first = last = place
    while tags[first][0] == "I" and first > 0 and tags[first - 1] != "O":
        first -= 1
    while last + 1 < len(tags) and tags[last + 1][0] == "I":
        last += 1
    return ("B" if place == first else "I") + tags[last][1:]


@given(TAGS)
def test_repairs_do_what_they_are_defined_to_do(tags: list[str]) -> None:
    assert repair(tags, Repair.NEW_SPAN) == rewritten(tags)
    assert repair(tags, Repair.LAST_TYPE) == [by_last_type(tags, place) for place in range(len(tags))]


@given(TAGS, st.sampled_from(Repair))
def test_repaired_tags_are_valid_and_stay(tags: list[str], how: Repair) -> None:
    mended = repair(tags, how)
    assert len(mended) == len(tags)
    assert strict_mode(mended) == default_mode(mended) == spans(mended)
    assert repair(mended, how) == mended


@given(TAGS)
def test_valid_tags_are_left_alone(tags: list[str]) -> None:
    valid = rewritten(tags)
    assert all(repair(valid, how) == valid for how in Repair)


@pytest.mark.parametrize(
    ("how", "mended"),
    [
        (Repair.NEW_SPAN, "B-X I-X O B-Y B-Z B-Z O B-X B-Y"),
        (Repair.LAST_TYPE, "B-X I-X O B-Z I-Z B-Z O B-Y I-Y"),
        (Repair.DISCARD, "O O O B-Y O B-Z O O O"),
    ],
)
def test_repairs_by_hand(how: Repair, mended: str) -> None:
    assert repair(["I-X", "I-X", "O", "B-Y", "I-Z", "B-Z", "O", "I-X", "I-Y"], how) == mended.split()


def test_repairs_are_known_by_name() -> None:
    assert repair(["I-X"], "discard") == ["O"]  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="did you mean last-type"):
        repair(["I-X"], "last-typ")  # type: ignore[arg-type]


def test_types_may_hold_dashes_and_slashes() -> None:
    tags = ["B-weather/attribute", "I-weather/attribute", "B-date-time", "I-date-time", "I-date"]
    assert spans(tags) == {Span(0, 2, "weather/attribute"), Span(2, 4, "date-time"), Span(4, 5, "date")}


@pytest.mark.parametrize("tag", ["PER", "B", "I-", "S-PER", "", "o", "BPER", "NoLabel", "O-PER"])
def test_what_is_not_bio_is_an_error(tag: str) -> None:
    for read in (spans, repair):
        with pytest.raises(BadInput, match="no BIO tag"):
            read(["O", tag])


def test_no_words_have_no_spans() -> None:
    assert spans([]) == set()
    assert all(repair([], how) == [] for how in Repair)
    assert token_counts([], []) == Counts(0, 0, 0)


def test_counts_by_hand() -> None:
    gold = spans(["B-PER", "I-PER", "O", "B-LOC", "B-PER"])
    predicted = spans(["B-PER", "I-PER", "O", "B-ORG", "I-ORG"])
    assert span_counts(gold, predicted) == Counts(hits=1, predicted=2, gold=3)
    assert span_counts_by_type(gold, predicted) == {
        "LOC": Counts(0, 0, 1),
        "ORG": Counts(0, 1, 0),
        "PER": Counts(1, 1, 2),
    }


@given(TAGS, TAGS)
def test_counts_by_type_add_up(gold: list[str], predicted: list[str]) -> None:
    true, said = spans(gold), spans(predicted)
    by_type = span_counts_by_type(true, said)
    assert tuple(map(sum, zip(Counts(0, 0, 0), *by_type.values(), strict=True))) == span_counts(true, said)
    for type_, counts in by_type.items():
        one = [{span for span in held if span.type == type_} for held in (true, said)]
        assert counts == span_counts(*one) and max(counts) > 0


def test_words_are_hits_only_with_their_whole_tag() -> None:
    gold = ["B-PER", "I-PER", "O", "B-LOC", "O"]
    predicted = ["B-PER", "B-PER", "B-LOC", "B-LOC", "O"]
    assert token_counts(gold, predicted) == Counts(hits=2, predicted=4, gold=3)


def test_lengths_must_agree() -> None:
    with pytest.raises(BadInput, match="2 predicted tags for 1 words"):
        token_counts(["O"], ["O", "O"])
