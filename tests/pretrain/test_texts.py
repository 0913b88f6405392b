"""Rows: streams hold every piece once, pairs are the tokenizer's own, replaced words keep their bounds."""

from collections import Counter
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.encoders.tokens import Reader
from calque.errors import BadInput, BadSetting
from calque.pretrain.switching import switchable
from calque.pretrain.texts import Paired, Plain, Switched, streamed
from calque.pretrain.vocabulary import Cutting, train_tokenizer
from calque.text.world import world_pairs, world_sentences
from calque.types import Sentences

TEXT = world_sentences(80, "en", seed=3)
TOKENIZER = train_tokenizer([TEXT, world_sentences(80, "far", seed=4)], 500, Cutting.BPE)
RNG = np.random.default_rng(0)


def test_a_stream_has_every_piece_once_and_full_rows() -> None:
    reader = Reader(TOKENIZER, limit=32)
    whole = Reader(TOKENIZER, limit=10**6).layout(TEXT)
    made = streamed(whole, whole.frame.tail)
    rows = streamed(reader.layout(TEXT), whole.frame.tail)
    assert (rows.lengths[:-1] == 32).all() and rows.lengths[-1] <= 32
    shown = Plain(rows).shown(np.arange(len(rows)), TOKENIZER.pad_token_id, RNG)
    flat = np.concatenate([row[there][1:-1] for row, there in zip(shown.pieces, shown.there, strict=True)])
    expected = [piece for words in TEXT for piece in (*cut(words), TOKENIZER.sep_token_id)]
    assert flat.tolist() == expected == made.pieces.tolist()


def cut(words: list[str]) -> list[int]:
    return list(TOKENIZER(words, is_split_into_words=True, add_special_tokens=False)["input_ids"])


def test_pairs_are_rows_of_the_tokenizer_with_positions_that_begin_again() -> None:
    bitext = world_pairs(20, ("en", "far"), seed=5).bitext
    reader = Reader(TOKENIZER, limit=400)
    paired = Paired.of(reader.layout(bitext.source), reader.layout(bitext.target), reader.pair, 400)
    chosen = np.array([3, 0, 11])
    shown = paired.shown(chosen, TOKENIZER.pad_token_id, RNG)
    assert shown.kinds is not None and shown.places is not None
    for row, number in enumerate(chosen.tolist()):
        theirs = TOKENIZER(bitext.source[number], bitext.target[number], is_split_into_words=True)
        there = shown.there[row]
        assert shown.pieces[row][there].tolist() == theirs["input_ids"]
        assert shown.kinds[row][there].tolist() == theirs["token_type_ids"]
        second = theirs["token_type_ids"].index(1)
        assert shown.places[row][there].tolist() == [*range(second), *range(there.sum() - second)]
    assert paired.lengths[chosen].tolist() == shown.there.sum(1).tolist()


def test_a_pair_that_is_too_long_loses_both_ends() -> None:
    long = Sentences.of("en", [["the"] * 90]), Sentences.of("far", [["the"] * 30])
    reader = Reader(TOKENIZER, limit=43)
    paired = Paired.of(*map(reader.layout, long), reader.pair, 43)
    assert paired.lengths.tolist() == [43] and paired.kept[:, 0].tolist() == [30, 10]
    with pytest.raises(BadInput, match="1 sentences beside 80"):
        Paired.of(reader.layout(long[0]), reader.layout(TEXT), reader.pair, 43)


# ------------------------------------------------------------------------------------- words replaced

WORDS = {"a": {"x": 3.0, "y": 1.0}, "b": {"z": 1.0}}


def switched(sentences: list[list[str]], seed: int = 0, **how: Any) -> list[list[str]]:
    text, switcher = switchable(Sentences.of("en", sentences), WORDS, **how)
    return list(switcher.switch(text, np.random.default_rng(seed)))


def test_translations_are_drawn_by_quality() -> None:
    ((*words,),) = switched([["a"] * 8000 + ["c"] * 100], share=1.0, most=1.0)
    counts = Counter(words)
    assert counts["c"] == 100 and counts["a"] == 0
    assert counts["x"] / 8000 == pytest.approx(0.75, abs=0.02)
    assert counts["y"] == 8000 - counts["x"]


def test_a_share_of_the_known_words_is_replaced_and_no_more_than_the_most() -> None:
    ((*words,),) = switched([["b"] * 3000 + ["c"] * 7000])
    assert Counter(words)["z"] / 3000 == pytest.approx(0.3, abs=0.03)
    ((*words,),) = switched([["b"] * 9000 + ["c"] * 1000])
    assert Counter(words)["z"] == 1500, "15 % of all words"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcA"), max_size=6), min_size=1, max_size=5), st.integers(0, 99))
def test_whatever_is_replaced_is_replaced_by_its_translation(sentences: list[list[str]], seed: int) -> None:
    if not any(word in "abA" for words in sentences for word in words):
        return
    again = switched(sentences, seed, share=0.7, most=1.0)
    assert [len(words) for words in again] == [len(words) for words in sentences]
    for old, new in zip(chain(*sentences), chain(*again), strict=True):
        assert new == old or new in WORDS[old.lower()]


def test_replaced_words_are_cut_as_any_others_and_differ_from_draw_to_draw() -> None:
    far = next(word for word in world_sentences(80, "far", seed=4).vocabulary if len(word) > 3)
    text, switcher = switchable(TEXT, {"the": {far: 1.0}, "The": {far: 1.0}}, share=1.0, most=1.0)
    held = Switched(text, Reader(TOKENIZER, limit=64), switcher)
    rows = np.flatnonzero([{"the", "The"} & set(words) for words in TEXT])[:5].astype(np.int64)
    shown = held.shown(rows, 0, np.random.default_rng(1))
    for row, number in enumerate(rows.tolist()):
        words = [far if word in ("the", "The") else word for word in TEXT[number]]
        assert shown.pieces[row][shown.there[row]][1:-1].tolist() == cut(words)
    some = Switched(text, held.reader, switchable(TEXT, {"the": {far: 1.0}})[1])
    drawn = [some.shown(rows, 0, np.random.default_rng(seed)).pieces.tobytes() for seed in range(8)]
    assert len(set(drawn)) > 1


def test_mistakes_in_replacing_are_told() -> None:
    with pytest.raises(BadInput, match="no word of the en text is in the dictionary"):
        switchable(Sentences.of("en", [["d"]]), WORDS)
    with pytest.raises(BadSetting, match="share"):
        switchable(Sentences.of("en", [["a"]]), WORDS, share=2.0)
