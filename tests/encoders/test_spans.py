"""Spans: against word_ids() of three families of tokenizers on any text, and against a plain loop."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_encoders import byte_level, unigram, wordpiece
from tokenizers import pre_tokenizers

from calque.encoders.spans import Frame, PieceTable, batches, joined, lay_out, leading, only, ragged
from calque.encoders.tokens import Reader, leading_space
from calque.errors import BadInput, BadSetting
from calque.types import FIRST_SPECIAL, LAST_SPECIAL, Sentences, WordIndex

ODD = """\u200b \u200d \ufeff é ﬁ \u0301 a\u0301 \U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea 한국어 ไทย
    नमस्ते ▁ Ġ ##a ß ２３ don't"""
characters = st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc"))
words = st.one_of(
    st.sampled_from(ODD.split()),
    st.text(characters, min_size=1, max_size=6),
    st.text("aehtn'.,s", min_size=1),
)
sentences = st.lists(st.lists(words, max_size=8), min_size=1, max_size=4)


def byte_pairs() -> Any:
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return byte_level("[CLS] $A [SEP]", ("[PAD]", "[UNK]", "[CLS]", "[SEP]"), **names)


TOKENIZERS = {"wordpiece": wordpiece(), "unigram": unigram(), "byte-level": byte_pairs()}
REFERENCES = copy.deepcopy(TOKENIZERS)
REFERENCES["byte-level"].backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
MARKS = {"wordpiece": (), "unigram": ("▁",), "byte-level": ("Ġ",)}


def reference(family: str, text: list[list[str]], limit: int) -> list[tuple[list[int], dict[int, list[int]]]]:
    """Pieces and word places by the tokenizer's own account, a lone space mark taken off a word's front."""
    tokenizer = REFERENCES[family]
    found = []
    for sentence in text:
        whole = tokenizer([sentence], is_split_into_words=True)
        cut = tokenizer([sentence], is_split_into_words=True, truncation=True, max_length=limit)
        spans = {}
        for word in range(len(sentence)):
            places = [i for i, owner in enumerate(cut.word_ids(0)) if owner == word]
            complete = len(places) == whole.word_ids(0).count(word)
            while places and cut.tokens(0)[places[0]] in MARKS[family]:
                places = places[1:]
            if places and complete:
                spans[word] = places
        found.append((cut["input_ids"][0], spans))
    return found


@pytest.fixture(scope="module", params=TOKENIZERS)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@settings(max_examples=60, deadline=None)
@given(text=sentences, limit=st.sampled_from([4, 9, 100]))
def test_spans_are_the_tokenizers_own(family: str, text: list[list[str]], limit: int) -> None:
    layout = Reader(TOKENIZERS[family], limit=limit).layout(Sentences.of("en", text))
    asked = WordIndex.every(Sentences.of("en", text))
    found = layout.find(asked)
    matrix, mask = layout.rows(np.arange(len(text)), 0)
    spans = zip(found.spans.sentence, found.spans.start, found.spans.end, strict=True)
    ours = [(int(s), list(range(a, b))) for s, a, b in spans]
    expected = reference(family, text, limit)
    assert ours == [(s, places) for s, (_, row) in enumerate(expected) for places in row.values()]
    assert [m[k].tolist() for m, k in zip(matrix, mask, strict=True)] == [ids for ids, _ in expected]
    assert found.present.sum() + sum(found.dropped.values()) == len(found.present)


def test_a_lone_mark_is_no_first_piece() -> None:
    reader = Reader(unigram())
    text = Sentences.of("ja", [["東京", "\u3000", "猫"]])
    assert reader.pieces(text)[0][0] == "▁"
    found = reader.layout(text).find(WordIndex.every(text))
    assert found.present.tolist() == [True, False, True]
    assert found.dropped == {"truncated": 0, "empty": 1}
    assert found.spans.start[0] == 2  # after <s> and ▁


def test_byte_level_words_take_their_form_inside_a_sentence() -> None:
    tokenizer = byte_pairs()
    assert [leading_space(one) for one in (tokenizer, wordpiece(), unigram())] == [" ", "", ""]
    running = tokenizer(" the cat", add_special_tokens=False)["input_ids"]
    text = Sentences.of("en", [["the", "cat"]])
    assert Reader(tokenizer).layout(text).pieces.tolist() == running


def test_specials_and_prefix_belong_to_no_word() -> None:
    reader = Reader(wordpiece(), prefix="the cat: ")
    text = Sentences.of("en", [["9"], []])
    layout = reader.layout(text)
    rows, mask = layout.rows(np.array([0, 1]), 0)
    names = reader.tokenizer.convert_ids_to_tokens(rows[0].tolist())
    before = names.index("9")
    assert names[:2] == ["[CLS]", "the"] and names[before - 1] not in ("[CLS]", "9")
    asked = WordIndex(np.array([0, 0, 0, 1]), np.array([FIRST_SPECIAL, 0, LAST_SPECIAL, LAST_SPECIAL]))
    found = layout.find(asked)
    assert found.spans.start.tolist() == [0, before, len(names) - 1, mask[1].sum() - 1]
    assert rows[1][found.spans.start[3]] == reader.tokenizer.sep_token_id
    texts = layout.texts()
    assert texts.start.tolist() == [before, before] and texts.end.tolist() == [len(names) - 1, before]


def test_missing_special_tokens_are_counted() -> None:
    layout = Reader(unigram("$A </s>")).layout(Sentences.of("en", [["cat"]]))
    found = layout.find(WordIndex(np.zeros(2, np.int32), np.array([FIRST_SPECIAL, LAST_SPECIAL])))
    assert found.present.tolist() == [False, True] and found.dropped["no special token"] == 1


def test_pieces_are_read_back_as_they_are() -> None:
    text = Sentences.of("en", [["don't", "東", "cats"], [], ["ß"]], np.array([3, 1, 2, 5], np.uint8))
    for tokenizer in TOKENIZERS.values():
        reader = Reader(tokenizer)
        pieces = reader.pieces(text)
        again = reader.layout(pieces)
        assert again.pieces.tolist() == reader.layout(text).pieces.tolist()
        assert pieces.unit == "piece" and len(pieces.ids) == len(again.start)
        assert np.all(again.end - again.start == 1)
        assert pieces.tags is not None and pieces.tags[0] == 3 and pieces.tags[-1] == 5
        assert reader.pieces(pieces) is pieces


def test_an_unknown_piece_is_named() -> None:
    text = Sentences(**{**vars(Sentences.of("en", [["no-such-piece"]])), "unit": "piece"})
    with pytest.raises(BadInput, match="no-such-piece"):
        Reader(wordpiece()).layout(text)


def test_no_room_for_words() -> None:
    with pytest.raises(BadSetting, match="leaves no room"):
        Reader(wordpiece(), prefix="the", limit=3).layout(Sentences.of("en", [["cat"]]))


@pytest.mark.parametrize(("sentence", "word"), [(0, 2), (1, 0), (0, -3)])
def test_words_that_are_not_there(sentence: int, word: int) -> None:
    layout = Reader(wordpiece()).layout(Sentences.of("en", [["a", "b"], []]))
    with pytest.raises(BadInput, match=f"word {word} of sentence {sentence}"):
        layout.find(WordIndex(np.array([sentence]), np.array([word])))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5))))
def test_ragged_is_the_loop(ranges: list[tuple[int, int]]) -> None:
    start, count = (np.array([r[k] for r in ranges], np.int64) for k in (0, 1))
    owner, index = ragged(start, count)
    pairs = [(i, a + k) for i, (a, n) in enumerate(ranges) for k in range(n)]
    assert list(zip(owner.tolist(), index.tolist(), strict=True)) == pairs


@given(st.lists(st.lists(st.booleans(), max_size=4)))
def test_leading_is_the_loop(runs: list[list[bool]]) -> None:
    flat = np.array([flag for run in runs for flag in run], np.bool_)
    expected = [next((i for i, flag in enumerate(run) if not flag), len(run)) for run in runs]
    assert leading(flat, np.array([len(run) for run in runs], np.int64)).tolist() == expected


@given(st.lists(st.integers(1, 60), max_size=40), st.integers(1, 100))
def test_batches_hold_every_row_once_within_budget(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths, np.int64)
    made = list(batches(sizes, budget))
    assert sorted(int(row) for rows in made for row in rows) == list(range(len(sizes)))
    assert all(len(rows) == 1 or len(rows) * sizes[rows].max() <= budget for rows in made)


def test_each_word_is_cut_once() -> None:
    asked: list[str] = []

    def cut(some: Any) -> list[list[int]]:
        asked.extend(some)
        return [[len(word)] for word in some]

    text = Sentences.of("en", [["a", "bb", "a"], ["ccc", "bb"]])
    table = PieceTable(len(text.vocabulary), cut, np.zeros(0, np.int32))
    frame = Frame(np.array([7], np.int32), np.zeros(0, np.int32), 10, True, False)
    assert lay_out(text.select([0]), table, frame).pieces.tolist() == [1, 2, 1]
    assert lay_out(text, table, frame).pieces.tolist() == [1, 2, 1, 3, 2]
    assert asked == ["a", "bb", "ccc"]


def test_only_the_sentences_that_hold_asked_words() -> None:
    text = Sentences.of("en", [["a"], ["b"], ["c", "d"]])
    kept, asked = only(text, WordIndex(np.array([2, 0, 2], np.int32), np.array([1, 0, 0], np.int32)))
    assert list(kept) == [["a"], ["c", "d"]]
    assert [kept.word(s, w) for s, w in zip(*asked, strict=True)] == ["d", "a", "c"]
    with pytest.raises(BadInput, match="sentence 3 asked for; there are 3"):
        only(text, WordIndex(np.array([3], np.int32), np.array([0], np.int32)))


def test_joined_sides_come_apart_again() -> None:
    text = Sentences.of("en", [["a", "b"], [], ["c"], ["d", "a"]])
    both = joined(text.select([0, 1]), text.select([2, 3]))
    assert list(both) == list(text)
