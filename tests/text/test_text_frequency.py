"""Counts and ranks against a plain count."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from calque.text.frequency import frequencies
from calque.types import Bitext, Sentences


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefgh"))))
def test_counts_and_ranks(sentences: list[list[str]]) -> None:
    text = Sentences.of("en", sentences)
    found = frequencies(text)
    expected = Counter(word for words in sentences for word in words)
    assert dict(zip(text.vocabulary, found.counts.tolist(), strict=True)) == dict(expected)
    # most_common keeps words of equal count in the order of first appearance, which is the vocabulary's.
    order = {word: rank for rank, (word, _) in enumerate(expected.most_common(), 1)}
    assert dict(zip(text.vocabulary, found.rank.tolist(), strict=True)) == order


def test_words_of_the_other_side_have_no_rank() -> None:
    bitext = Bitext.of(("en", "de"), [["a", "b", "b"]], [["x", "b"]])
    found = frequencies(bitext.source)
    assert found.counts.tolist() == [1, 2, 0]
    assert found.rank.tolist() == [2, 1, 0]


def test_the_same_ranks_whatever_part_was_selected() -> None:
    text = Sentences.of("en", [["a", "b"], ["b", "c"], ["c", "c"]])
    part = text.select([1, 2])
    assert frequencies(part).counts.tolist() == [0, 1, 3]
    assert frequencies(replace(part, ids=part.ids[:0], offsets=part.offsets[:1])).rank.tolist() == [0, 0, 0]
