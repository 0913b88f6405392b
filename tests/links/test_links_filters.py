"""Filters against brute force, their order, and what they say when nothing is left."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput, BadSetting
from calque.links.filters import FilterStep, apply_filters, different, one_to_one, sample
from calque.types import Bitext, WordPairs


@st.composite
def linked(draw: st.DrawFn) -> WordPairs:
    """Sentences over few words, so that identical strings are common, with any links."""
    words = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5)
    text = draw(st.lists(st.tuples(words, words), min_size=1, max_size=5))
    cells = [(k, i, j) for k, (a, b) in enumerate(text) for i in range(len(a)) for j in range(len(b))]
    rows = sorted(draw(st.sets(st.sampled_from(cells))))
    columns = np.asarray(rows, int).reshape(-1, 3).T
    return WordPairs.of(Bitext.of(("aa", "bb"), *zip(*text, strict=True)), *columns)


def rows(pairs: WordPairs) -> list[tuple[int, int, int]]:
    return list(zip(pairs.sentence.tolist(), pairs.source.tolist(), pairs.target.tolist(), strict=True))


@given(linked())
def test_one_to_one_is_what_it_says(pairs: WordPairs) -> None:
    every = rows(pairs)
    expected = [
        (k, i, j)
        for k, i, j in every
        if [x[:2] for x in every].count((k, i)) == 1 and [(x[0], x[2]) for x in every].count((k, j)) == 1
    ]
    assert rows(one_to_one(pairs)) == expected


@given(linked())
def test_different_is_what_it_says(pairs: WordPairs) -> None:
    text = pairs.bitext
    expected = [(k, i, j) for k, i, j in rows(pairs) if text.source[k][i] != text.target[k][j]]
    assert rows(different(pairs)) == expected


def two_links_of_one_word() -> WordPairs:
    """`Paris` is linked to itself and to `die`: which goes depends on the order."""
    text = Bitext.of(("en", "de"), [["Paris", "city"]], [["Paris", "die", "Stadt"]])
    return WordPairs.of(text, [0, 0, 0], [0, 0, 1], [0, 1, 2], [0.9, 0.1, 0.5])


def test_order_matters() -> None:
    pairs = two_links_of_one_word()
    assert rows(apply_filters(pairs, ["different", "one-to-one"]).pairs) == [(0, 0, 1), (0, 1, 2)]
    assert rows(apply_filters(pairs, ["one-to-one", "different"]).pairs) == [(0, 1, 2)]


def test_steps_are_counted() -> None:
    kept, steps = apply_filters(two_links_of_one_word(), ["different", "score>=0.5"])
    assert steps == (FilterStep("different", 2, 1), FilterStep("score>=0.5", 1, 1))
    assert rows(kept) == [(0, 1, 2)]


def test_the_filter_that_empties_is_named() -> None:
    with pytest.raises(BadInput, match=r"no links left after filter 'score>=0.95'; it was given 2"):
        apply_filters(two_links_of_one_word(), ["different", "score>=0.95"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("one-2-one", "did you mean one-to-one"),
        ("diferent", "did you mean different"),
        ("score>0.5", "unknown filter"),
        ("score=0.5", "write score>=0.5"),
        ("score>=high", "'high' is no amount"),
        ("one-to-one=3", "write one-to-one"),
        ("sample", "write sample=1000"),
        ("sample=0", "'0' is no amount"),
        ("sample=-5", "'-5' is no amount"),
        ("sample=10.5", "'10.5' is no amount"),
        ("sample=nan", "'nan' is no amount"),
        ("score>=inf", "'inf' is no amount"),
    ],
)
def test_mistakes_are_said_before_anything_runs(name: str, said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        apply_filters(two_links_of_one_word(), ["score>=0.95", name])


def many() -> WordPairs:
    text = Bitext.of(("aa", "bb"), [["x", "y"]] * 50, [["x", "y"]] * 50)
    return WordPairs.of(text, np.repeat(np.arange(50), 2), [0, 1] * 50, [0, 1] * 50)


def test_samples() -> None:
    pairs = many()
    assert len(sample(pairs, 30, seed=1)) == 30
    assert len(sample(pairs, 0.25, seed=1)) == 25
    assert rows(sample(pairs, 1000, seed=1)) == rows(pairs)
    assert rows(sample(pairs, 30, seed=1)) == rows(sample(pairs, 30, seed=1))
    assert rows(sample(pairs, 30, seed=1)) != rows(sample(pairs, 30, seed=2))
    assert set(rows(sample(pairs, 30, seed=1))) < set(rows(sample(pairs, 60, seed=1)))


def test_sampled_sentences_keep_all_their_links() -> None:
    kept = apply_filters(many(), ["sentences=10"], seed=3).pairs
    assert len(kept.bitext) == 10
    assert len(kept) == 20
    assert kept.bitext.line.tolist() == sorted(kept.bitext.line.tolist())
