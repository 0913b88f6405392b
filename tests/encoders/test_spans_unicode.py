"""Words of any characters: every one has a run of pieces of its own, or is told to have none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_encoders import unigram, wordpiece

from calque.encoders.tokens import Reader
from calque.errors import BadInput
from calque.types import Sentences, WordIndex

#: Marks, joiners, directions, spaces, control characters, what is no character, and what a word may be alone.
_ODD = (
    "\u0301 a\u0301 \u200d \u200c \u200b \u00ad \ufeff \u202e\u05d0 \u0627\u0644\u0639 "
    "\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea "
    "\U0001f44d\U0001f3fd 1\ufe0f\u20e3 \uffff \U0010ffff \0 \x1b \x85 \u2028 "
    "\x1f \x7f ﷺ İ ﬁ </s> <mask> [SEP] ▁ ##"
)
ODD = [*_ODD.split(" "), " ", "\t", "\r", "\n", "\u3000", "\u00a0", " a ", "x" * 3000, "東" * 500]
words = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5)
texts = st.lists(st.lists(words, max_size=7), min_size=1, max_size=4)


def sound(reader: Reader, text: list[list[str]]) -> None:
    """Spans are in order, apart, and inside the pieces of their sentence; each word cut alone is the same."""
    held = Sentences.of("en", text)
    layout = reader.layout(held)
    found = layout.find(WordIndex.every(held))
    assert found.present.sum() + sum(found.dropped.values()) == len(found.present) == sum(map(len, text))
    frame, spans = layout.frame, found.spans
    assert (spans.start < spans.end).all() and (spans.start >= len(frame.head)).all()
    assert (spans.end <= len(frame.head) + layout.kept[spans.sentence]).all()
    same = spans.sentence[1:] == spans.sentence[:-1]
    assert (spans.start[1:] >= spans.end[:-1])[same].all()
    rows, mask = layout.rows(np.arange(len(text)), 0)
    assert mask.sum() == np.maximum(layout.lengths, 1).sum() and rows.shape[1] <= max(frame.limit, 1)
    for sentence, start, end in zip(spans.sentence, spans.start, spans.end, strict=True):
        assert mask[sentence, start:end].all()


def placed(reader: Reader, text: str) -> None:
    """Pieces lie inside the text, in order."""
    pieces, places = reader.characters(text)
    assert places.shape == (len(pieces), 2)
    assert (places >= 0).all() and (places <= len(text)).all() and (places[:, 0] <= places[:, 1]).all()
    assert (np.diff(places[:, 0]) >= 0).all()


@pytest.mark.parametrize("tokenizer", [wordpiece(), unigram()], ids=["wordpiece", "unigram"])
def test_any_word_has_its_span_or_none(tokenizer: Any) -> None:
    @settings(max_examples=150)
    @given(texts, st.sampled_from([4, 12, 512]))
    def every(text: list[list[str]], limit: int) -> None:
        reader = Reader(tokenizer, limit=limit)
        sound(reader, text)
        placed(reader, " ".join(word for sentence in text for word in sentence))

    every()


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["spans", "characters"])
def test_any_word_in_the_pieces_of_e5(shape: str, e5_directory: Path) -> None:
    from transformers import AutoTokenizer

    reader = Reader(AutoTokenizer.from_pretrained(e5_directory), prefix="query: ")

    @settings(max_examples=2000)
    @given(texts)
    def every(text: list[list[str]]) -> None:
        if shape == "spans":
            sound(reader, text)
        else:
            placed(reader, " ".join(word for sentence in text for word in sentence))

    every()


@pytest.mark.parametrize("unit", ["x", "東", "\u0301", "\u200d", "."])
def test_a_word_of_a_hundred_thousand_characters(unit: str) -> None:
    sound(Reader(wordpiece(), limit=64), [["a", unit * 100_000, "b"]])


def test_half_a_character_is_refused_with_its_word() -> None:
    with pytest.raises(BadInput, match=r"half a character in the word 'a\\ud800'"):
        Sentences.of("en", [["b", "a\ud800"]])
