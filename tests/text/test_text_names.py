"""Sentences are named by what they say, and words put together from pieces, whatever wrote these."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_encoders import byte_level, unigram, wordpiece

from calque.align.sources import word_types
from calque.text.names import Spelling, sentence_names, text_names
from calque.types import Bitext, Sentences, WordPairs

TOKENIZERS = {
    "wordpiece": wordpiece(),
    "unigram": unigram(),
    "bytes": byte_level("<s> $A", ("<s>", "</s>"), bos_token="<s>", eos_token="</s>"),
}


def in_pieces(tokenizer: Any, texts: list[str]) -> list[list[str]]:
    return [tokenizer.tokenize(f" {text}", add_special_tokens=False) for text in texts]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Schöne Katze .", "schone Katze."),
        ("№ 5", "No 5"),
        ("l´amour", "l´ amour"),
        ("ﬁn", "fin"),
        ("Straßen\u00adkehrer", "STRASSENKEHRER"),
        ("a\u200bb\ufeff", "ab"),
        ("İzmir", "izmir"),
    ],
)
def test_what_tokenisers_take_away_is_in_no_name(one: str, other: str) -> None:
    a, b = text_names([one, other]).tolist()
    assert a == b != int(text_names(["something else"])[0])


@pytest.mark.parametrize("name", TOKENIZERS)
def test_names_do_not_depend_on_how_sentences_are_cut(name: str) -> None:
    texts = ["Die Katze saß auf der Matte", "the cat's mat", *(["Кошка сидела"] if name == "bytes" else [])]
    whole = Sentences.of("de", [text.split() for text in texts])
    cut = replace(Sentences.of("de", in_pieces(TOKENIZERS[name], texts)), unit="piece")
    assert len(cut.ids) > len(whole.ids)
    assert sentence_names(cut).tolist() == sentence_names(whole).tolist()


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=20))
def test_characters_of_bytes_are_the_text_that_was_cut(text: str) -> None:
    spelling = Spelling.of(["Ġa"])
    (pieces,) = in_pieces(TOKENIZERS["bytes"], [text])
    assert spelling.text(pieces) == text.replace(" ", "")


def linked(tokenizer: Any, texts: list[str]) -> Iterator[WordPairs]:
    """Sentences with every word linked to itself: as words, and by the first piece of each."""
    words = Sentences.of("de", [text.split() for text in texts])
    rows = np.repeat(np.arange(len(texts)), words.lengths)
    place = np.concatenate([np.arange(count) for count in words.lengths])
    yield WordPairs.of(Bitext(words, words, np.arange(len(texts))), rows, place, place)
    cut = replace(Sentences.of("de", in_pieces(tokenizer, texts)), unit="piece")
    spelling = Spelling.of(cut.vocabulary.strings)
    firsts = [[i for i, piece in enumerate(one) if spelling.begins(piece)] for one in cut]
    yield WordPairs.of(
        Bitext(cut, cut, np.arange(len(texts))),
        np.repeat(np.arange(len(texts)), list(map(len, firsts))),
        np.concatenate(firsts),
        np.concatenate(firsts),
    )


@pytest.mark.parametrize("name", TOKENIZERS)
def test_words_are_put_together_from_their_pieces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["Die Katze saß auf der Matte", "Straßenkehrer", "the Kinder lachten über den mat"]
    texts += ["Кошка сидела на ковре"] if name == "bytes" else []
    words, pieces = linked(TOKENIZERS[name], texts)
    assert word_types(pieces) == word_types(words) == {(w, w) for text in texts for w in text.split()}
    monkeypatch.setattr("calque.align.sources._STRETCH", 2)
    assert word_types(pieces) == word_types(words), "whatever is put together at a time"


def test_letters_that_look_like_marks_are_letters() -> None:
    """Ġ is one in Maltese; XLM-R's vocabulary has pieces that begin with ##."""
    cut = replace(Sentences.of("mt", [["Ġanni", "jor", "##qod"]]), unit="piece")
    assert sentence_names(cut).tolist() == text_names(["Ġanni jorqod"]).tolist()
    assert Spelling.of(["▁Ġanni", "▁a", "##"]).text(["▁Ġanni", "##"]) == "Ġanni##"
