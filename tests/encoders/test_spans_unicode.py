"""Words of any characters: every one has a run of pieces of its own, or is told to have none.

`tests/fuzz` does the same with 100,000 inputs for each of four tokenizers, e5's among them.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from span_laws import placed, sound
from tiny_encoders import unigram, wordpiece

from calque.encoders.tokens import Reader
from calque.errors import BadInput
from calque.types import Sentences
from corners import WHOLE

ODD = [*WHOLE, " a ", "x" * 3000, "東" * 500]
words = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5)
texts = st.lists(st.lists(words, max_size=7), min_size=1, max_size=4)


@pytest.mark.parametrize("tokenizer", [wordpiece(), unigram()], ids=["wordpiece", "unigram"])
def test_any_word_has_its_span_or_none(tokenizer: Any) -> None:
    @settings(max_examples=150)
    @given(texts, st.sampled_from([4, 12, 512]))
    def every(text: list[list[str]], limit: int) -> None:
        reader = Reader(tokenizer, limit=limit)
        sound(reader, text)
        placed(reader, " ".join(word for sentence in text for word in sentence))

    every()


@pytest.mark.parametrize("unit", ["x", "東", "\u0301", "\u200d", "."])
def test_a_word_of_a_hundred_thousand_characters(unit: str) -> None:
    sound(Reader(wordpiece(), limit=64), [["a", unit * 100_000, "b"]])


def test_half_a_character_is_refused_with_its_word() -> None:
    with pytest.raises(BadInput, match=r"half a character in the word 'a\\ud800'"):
        Sentences.of("en", [["b", "a\ud800"]])
