"""Items of two languages at once."""

import random
from dataclasses import replace

import pytest

from calque.errors import BadInput
from calque.text.labelled.items import Answer, Labelled, Question, TextPair
from calque.text.labelled.mixed import mixed_pairs, mixed_questions

LABELS = ("entailment", "neutral", "contradiction")


def pairs(language: str, count: int = 200, *, ids: bool = False) -> Labelled[TextPair]:
    items = tuple(
        TextPair(
            f"{language} premise {n}",
            f"{language} hypothesis {n}",
            LABELS[n % 3],
            (language, language),
            str(n) if ids else "",
            n + 1,
        )
        for n in range(count)
    )
    return Labelled(language, items, f"{language}.tsv", {"no consensus": 2})


def test_one_side_of_every_pair_is_english() -> None:
    mixed = mixed_pairs(pairs("de"), pairs("en"), seed=1)
    assert (mixed.language, mixed.origin, mixed.dropped) == ("de+en", "de.tsv + en.tsv", {"no consensus": 2})
    for n, pair in enumerate(mixed.items):
        assert sorted(pair.languages) == ["de", "en"]
        assert (pair.first, pair.second) == (
            f"{pair.languages[0]} premise {n}",
            f"{pair.languages[1]} hypothesis {n}",
        )
        assert pair.label == LABELS[n % 3]
    first = sum(pair.languages[0] == "en" for pair in mixed.items)
    assert 70 <= first <= 130, "fair coins leave this range once in 30000"


def test_the_seed_decides() -> None:
    sides = [
        [pair.languages for pair in mixed_pairs(pairs("de"), pairs("en"), seed=s).items] for s in (1, 1, 2)
    ]
    assert sides[0] == sides[1] != sides[2]


def test_ids_count_before_order() -> None:
    english = pairs("en", ids=True)
    shuffled = replace(english, items=tuple(random.Random(0).sample(english.items, len(english))))
    german = pairs("de", ids=True)
    assert mixed_pairs(german, shuffled, seed=3).items == mixed_pairs(german, english, seed=3).items
    with pytest.raises(BadInput, match=r"de.tsv:1: pair 1 is entailment, but"):
        mixed_pairs(pairs("de"), shuffled, seed=3)


def test_pairs_that_do_not_belong_together() -> None:
    with pytest.raises(BadInput, match=r"de.tsv: 200 pairs, but en.tsv has 199"):
        mixed_pairs(pairs("de"), pairs("en", 199), seed=0)
    german, english = pairs("de", 3, ids=True), pairs("en", 3, ids=True)
    other = replace(english, items=(*english.items[:2], replace(english.items[2], id="x")))
    with pytest.raises(BadInput, match=r"pair 2 is not in en.tsv"):
        mixed_pairs(german, other, seed=0)
    wrong = replace(english, items=(*english.items[:2], replace(english.items[2], label="neutral")))
    with pytest.raises(BadInput, match=r"de.tsv:3: pair 2 is contradiction, but neutral in en.tsv"):
        mixed_pairs(german, wrong, seed=0)


def questions(language: str, *ids: str) -> Labelled[Question]:
    items = tuple(
        Question(f"{language}? {id}", f"{language} {id}", (Answer(id, 3),), (language, language), id)
        for id in ids
    )
    return Labelled(language, items, f"{language}.json")


def test_questions_in_both_directions() -> None:
    german, english = questions("de", "1", "2", "3"), questions("en", "3", "1")
    asked_in_english = mixed_questions(german, english)
    assert asked_in_english.items == (
        Question("en? 1", "de 1", (Answer("1", 3),), ("en", "de"), "1"),
        Question("en? 3", "de 3", (Answer("3", 3),), ("en", "de"), "3"),
    )
    assert (asked_in_english.language, asked_in_english.dropped) == ("en+de", {"no partner": 1})
    asked_in_german = mixed_questions(english, german)
    assert (asked_in_german.language, asked_in_german.dropped) == ("de+en", {})
    assert [item.question for item in asked_in_german.items] == ["de? 3", "de? 1"]


def test_questions_that_do_not_belong_together() -> None:
    with pytest.raises(BadInput, match=r"no question of en.json has its id here"):
        mixed_questions(questions("de", "1"), questions("en", "2"))
    with pytest.raises(BadInput, match=r"en.json: question ids are repeated"):
        mixed_questions(questions("de", "1"), questions("en", "1", "1"))
