"""Text and links as arrays: what goes in comes out, whatever is selected."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.types import Bitext, Sentences, SpaceMap, Unit, Vocabulary, WordIndex, WordPairs

words = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=6)
texts = st.lists(st.lists(words, max_size=5), max_size=6)


@given(texts)
def test_sentences_give_back_their_words(text: list[list[str]]) -> None:
    held = Sentences.of("en", text)
    assert list(held) == text
    assert held.lengths.tolist() == [len(sentence) for sentence in text]
    index = WordIndex.every(held)
    again = [held.word(s, w) for s, w in zip(index.sentence.tolist(), index.word.tolist(), strict=True)]
    assert again == [word for sentence in text for word in sentence]
    assert [held.vocabulary[i] for i in held.at(index)] == again


@given(texts, st.data())
def test_selected_sentences_are_those_sentences_and_the_fingerprint_is_of_the_text(
    text: list[list[str]], data: st.DataObject
) -> None:
    held = Sentences.of("en", text)
    chosen = data.draw(st.lists(st.sampled_from(range(len(text))), max_size=8)) if text else []
    part = held.select(chosen)
    assert list(part) == [text[i] for i in chosen]
    fresh = Sentences.of("en", [text[i] for i in chosen])
    assert part.fingerprint == fresh.fingerprint, "whatever vocabulary the ids point into"
    assert Sentences.of("de", [text[i] for i in chosen]).fingerprint != fresh.fingerprint


@pytest.mark.parametrize("other", [[["a b"]], [["a"], ["b"]], [["b", "a"]], [["a", "b"], []]])
def test_other_text_has_another_fingerprint(other: list[list[str]]) -> None:
    assert Sentences.of("en", other).fingerprint != Sentences.of("en", [["a", "b"]]).fingerprint


@given(st.lists(words, unique=True))
def test_a_vocabulary_is_its_words(held: list[str]) -> None:
    vocabulary = Vocabulary.of(held)
    assert list(vocabulary) == held and [vocabulary[i] for i in range(len(held))] == held


def pairs() -> WordPairs:
    bitext = Bitext.of(("en", "de"), [["a", "b"], ["c"], ["a", "x"]], [["A", "B"], ["C"], ["A", "x"]])
    return WordPairs.of(bitext, [2, 0, 1, 0, 2], [1, 1, 0, 0, 0], [1, 1, 0, 0, 0])


def test_links_are_sorted_and_know_their_words() -> None:
    held = pairs()
    assert held.sentence.tolist() == [0, 0, 1, 2, 2]
    assert held.types() == {("a", "A"), ("b", "B"), ("c", "C"), ("x", "x")}
    assert (held.source_ids == held.target_ids).tolist() == [False, False, False, False, True]


def test_selected_sentences_keep_their_links_and_lines() -> None:
    part = pairs().sentences([0, 2])
    assert part.sentence.tolist() == [0, 0, 1, 1] and part.bitext.line.tolist() == [1, 3]
    assert part.types() == {("a", "A"), ("b", "B"), ("x", "x")}


def test_unit_rows_keep_zeros() -> None:
    made = SpaceMap((Unit(),)).apply(np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert np.allclose(made, [[0.6, 0.8], [0, 0]])


@pytest.mark.parametrize(
    ("blob", "offsets", "told"),
    [
        (b"ab", [0, 1], "do not part 2 letters"),
        (b"ab", [0, 2, 1, 2], "do not part"),
        (b"ab", [0, 9], "offsets of letters from 0 to 9"),
        (b"ab", [0.0, 2.0], "type float64"),
        ("é".encode(), [0, 1, 2], "begins inside a character"),
    ],
)
def test_a_vocabulary_that_is_not_sound(blob: bytes, offsets: list[int], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        Vocabulary(np.frombuffer(blob, np.uint8), np.array(offsets)).checked()
    assert Vocabulary.of(["é", "", "b"]).checked()[0] == "é"
