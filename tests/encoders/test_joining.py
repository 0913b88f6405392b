"""Batches of several languages as one: the same words in the same places, with the same vectors."""

import numpy as np
import pytest
import torch
from tiny_encoders import build

from calque.encoders.joining import joined_batches, places, with_specials
from calque.encoders.pooling import pool_words
from calque.types import FIRST_SPECIAL, LAST_SPECIAL, Sentences, WordIndex

ENGLISH = Sentences.of("en", [["The", "cat", "sat", "on", "the", "mat"], ["a", "dog's", "life"]])
RUSSIAN = Sentences.of("ru", [["Кошка"], [], ["дети", "громко", "смеялись", "над", "дворником"]])


@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_joined_batches_give_the_vectors_of_each(family: str) -> None:
    encoder = build(family)
    joined = joined_batches([encoder.batch(text) for text in (ENGLISH, RUSSIAN)], encoder.reader.pad)
    with torch.no_grad():
        (hidden,) = encoder.states(joined, (3,)).hidden
    expected = [encoder.word_vectors(text, layers=(3,)).layer(3) for text in (ENGLISH, RUSSIAN)]
    assert np.allclose(pool_words(hidden, joined).numpy(), np.concatenate(expected), atol=1e-5)
    assert joined.row.tolist() == [0] * 6 + [1] * 3 + [2] + [4] * 5


def test_special_tokens_stand_among_the_words() -> None:
    encoder = build("bert")
    batch = with_specials(encoder.batch(RUSSIAN))
    with torch.no_grad():
        (hidden,) = encoder.states(batch, (2,)).hidden
    asked = WordIndex(batch.row.astype(np.int32), batch.word.astype(np.int32))
    expected = encoder.word_vectors(RUSSIAN, asked, layers=(2,))
    assert expected.present.all() and np.allclose(
        pool_words(hidden, batch).numpy(), expected.layer(2), atol=1e-5
    )
    assert batch.word[batch.row == 1].tolist() == [LAST_SPECIAL, FIRST_SPECIAL]


def test_places_are_found_as_by_a_search() -> None:
    encoder = build("bert")
    batches = [with_specials(encoder.batch(text)) for text in (ENGLISH, RUSSIAN)]
    batch = joined_batches(batches, encoder.reader.pad)
    known = list(zip(batch.row.tolist(), batch.word.tolist(), strict=True))
    order = np.random.default_rng(0).permutation(len(known))
    found = places(batch, batch.row[order], batch.word[order])
    assert found.tolist() == order.tolist()
    one = np.array([4])
    assert places(batch, one, np.array([FIRST_SPECIAL])).tolist() == [known.index((4, FIRST_SPECIAL))]
