"""Rows of pieces: padding and units by brute force, vectors by the model itself, frames by the tokenizer."""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from paired_encoders import TEMPLATES, paired, tokenizer
from tiny_encoders import TEXT, build, marian, unigram, wordpiece
from tokenizers import Tokenizer, normalizers

from calque.encoders.cached import CachedEncoder, stretches
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.rows import Row, Rows
from calque.encoders.tokens import Reader, cut, pair_frame, with_marks
from calque.errors import BadSetting

#: Words of several scripts, with accents of their own, without spaces, and with what tokenizers drop.
WORDS = [
    "cat",
    "it's",
    "Straßenkehrer",
    "Кошка",
    "東京へ行きます",
    "e\u0301te\u0301",
    "ﬁx",
    "ก\u0e34น",
    "…",
    "x1",
]


def row(pieces: list[int], kind: list[int], units: list[tuple[int, int]]) -> Row:
    return Row(np.array(pieces, np.int32), np.array(kind, np.int32), np.array(units, np.int64).reshape(-1, 2))


@st.composite
def some_rows(draw: st.DrawFn, least: int = 1) -> list[Row]:
    made = []
    for _ in range(draw(st.integers(1, 6))):
        size = draw(st.integers(least, 7))
        kinds = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
        pieces = draw(st.lists(st.integers(4, 99), min_size=size, max_size=size))
        starts = draw(st.lists(st.integers(0, size - 1), max_size=3)) if size else []
        made.append(row(pieces, kinds, [(a, draw(st.integers(a + 1, size))) for a in starts]))
    return made


# ------------------------------------------------------------------------------------------ the arrays


@given(some_rows(least=0), st.data())
def test_chosen_rows_are_padded_and_masked_as_by_hand(given: list[Row], data: st.DataObject) -> None:
    rows = Rows.of(given)
    chosen = data.draw(st.lists(st.sampled_from(range(len(given))), min_size=1, unique=True))
    pieces, mask = rows.rows(np.array(chosen), 77)
    kinds = rows.kinds(np.array(chosen))
    width = max(1, *(len(given[k].pieces) for k in chosen))
    assert pieces.shape == mask.shape == (len(chosen), width)
    for place, k in enumerate(chosen):
        size = len(given[k].pieces)
        assert pieces[place].tolist() == [*given[k].pieces, *[77] * (width - size)]
        assert mask[place].tolist() == [i < max(1, size) for i in range(width)], "attention over nothing"
        if kinds is not None:
            assert kinds[place].tolist() == [*given[k].kind, *[0] * (width - size)]
    assert (kinds is None) == (not any(one.kind.any() for one in given))
    assert rows.lengths.tolist() == [len(one.pieces) for one in given] and len(rows) == len(given)


@given(some_rows(), st.data())
def test_a_batch_has_the_units_of_its_rows(given: list[Row], data: st.DataObject) -> None:
    rows = Rows.of(given)
    chosen = data.draw(st.lists(st.sampled_from(range(len(given))), min_size=1, unique=True))
    batch = rows.batch(np.array(chosen), 77)
    before = np.cumsum([0, *(len(one.units) for one in given)])
    expected = [
        (place, int(before[k]) + unit, *ends)
        for place, k in enumerate(chosen)
        for unit, ends in enumerate(given[k].units.tolist())
    ]
    found = zip(
        batch.row.tolist(), batch.word.tolist(), batch.start.tolist(), batch.end.tolist(), strict=True
    )
    assert list(found) == expected
    assert batch.pieces.tolist() == rows.rows(np.array(chosen), 77)[0].tolist()
    assert (batch.segments is None) == (rows.kinds(np.array(chosen)) is None)


@given(some_rows(), st.data())
def test_a_part_is_what_its_rows_alone_would_be(given: list[Row], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(given) - 1))
    last = data.draw(st.integers(first + 1, len(given)))
    part, alone = Rows.of(given).part(first, last), Rows.of(given[first:last])
    assert part.fingerprint == alone.fingerprint
    assert part.units.sentence.tolist() == alone.units.sentence.tolist()


def test_everything_that_changes_vectors_changes_the_fingerprint() -> None:
    plain = ([5, 6, 7], [0, 0, 1], [(0, 1), (1, 3)])
    others = [([5, 6, 8], *plain[1:]), (plain[0], [0, 1, 1], plain[2]), (*plain[:2], [(0, 1), (1, 2)])]
    others += [(*plain[:2], [(0, 1)]), (*plain[:2], [(0, 1), (2, 3)])]
    prints = [Rows.of([row(*one)]).fingerprint for one in [plain, *others]]
    prints.append(Rows.of([row([5], [0], [(0, 1)]), row([6, 7], [0, 1], [(0, 2)])]).fingerprint)
    assert len(set(prints)) == len(prints) == 7


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 12))
def test_stretches_hold_every_row_once_and_no_more_than_asked(sizes: list[int], most: int) -> None:
    found = list(stretches(np.array(sizes, np.int64), most))
    assert [k for first, last in found for k in range(first, last)] == list(range(len(sizes)))
    for first, last in found:
        full = [size for size in sizes[first:last] if size]
        assert sum(full) <= most or len(full) == 1
    for (first, last), (_, after) in pairwise(found):
        assert sum(sizes[first : last + 1]) > most and after > last, "a stretch is as long as it can be"


# ---------------------------------------------------------------------------------------------- vectors


def drawn(encoder: HuggingFaceEncoder, seed: int = 0, count: int = 9) -> list[Row]:
    """Random rows; the second part of each is another segment."""
    random, top = np.random.default_rng(seed), encoder.body.get_input_embeddings().num_embeddings
    made = []
    for _ in range(count):
        size = int(random.integers(2, 14))
        starts = random.integers(0, size, 3)
        ends = [int(random.integers(a + 1, size + 1)) for a in starts]
        kind = (np.arange(size) >= random.integers(1, size + 1)).astype(int)
        pieces = random.integers(4, top, size)
        made.append(row(pieces.tolist(), kind.tolist(), list(zip(starts.tolist(), ends, strict=True))))
    return made


def by_the_model(encoder: HuggingFaceEncoder, made: list[Row], layer: int, pooling: str) -> np.ndarray:
    """Vectors of units, a row at a time, as the model itself gives its hidden states."""
    out = []
    for one in made:
        inputs: dict[str, Any] = {"input_ids": torch.from_numpy(one.pieces.astype(np.int64))[None]}
        if encoder.name in ("bert", "xlm-roberta"):
            inputs["token_type_ids"] = torch.from_numpy(one.kind.astype(np.int64))[None]
        with torch.no_grad():
            hidden = encoder.model(**inputs, output_hidden_states=True).hidden_states[layer][0].numpy()
        take = {"mean": lambda h: h.mean(0), "first": lambda h: h[0], "last": lambda h: h[-1]}[pooling]
        out += [take(hidden[a:b]) for a, b in one.units.tolist()]
    return np.stack(out)


@pytest.mark.parametrize(
    ("family", "pooling"),
    [("bert", "mean"), ("bert", "first"), ("xlm-roberta", "last"), ("modernbert", "mean")],
)
def test_unit_vectors_are_the_models_own(family: str, pooling: Any) -> None:
    encoder = build(family, batch_tokens=30)
    made = drawn(encoder)
    found = encoder.unit_vectors(Rows.of(made), layers=(1, 3), pooling=pooling)
    for level, layer in enumerate((1, 3)):
        np.testing.assert_allclose(found[level], by_the_model(encoder, made, layer, pooling), atol=1e-5)


def test_segments_matter_to_bert() -> None:
    encoder = build("bert")
    made = [row([5, 6, 7, 8], [0, 0, 1, 1], [(0, 4)]), row([5, 6, 7, 8], [0, 0, 0, 0], [(0, 4)])]
    a, b = encoder.unit_vectors(Rows.of(made), layers=(3,))[0]
    assert np.abs(a - b).max() > 1e-3


def test_a_row_without_pieces_has_finite_vectors_and_changes_no_other() -> None:
    encoder = build("llama")
    full = row([5, 6, 7], [0, 0, 0], [(0, 3)])
    found = encoder.unit_vectors(Rows.of([row([], [], [(0, 1)]), full]), layers=(3,))[0]
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[1], by_the_model(encoder, [full], 3, "mean")[0], atol=1e-5)
    assert np.isfinite(encoder.unit_vectors(Rows.of([row([], [], [(0, 1)])]), layers=(3,))).all()


@pytest.mark.parametrize("numbers", [10**9, 4 * 24 * 7])
def test_cached_unit_vectors_are_rounded_made_once_and_in_parts(
    monkeypatch: pytest.MonkeyPatch, numbers: int
) -> None:
    encoder = build("bert")
    rows, calls = Rows.of(drawn(encoder)), []
    bare = encoder.unit_vectors(rows, layers=(0, 2, 3))
    plain = encoder.unit_vectors

    def counted(part: Rows, **how: Any) -> Any:
        calls.append((len(part), tuple(how["layers"])))
        return plain(part, **how)

    monkeypatch.setattr(encoder, "unit_vectors", counted)
    monkeypatch.setattr("calque.encoders.anchors.BLOCK_NUMBERS", numbers)
    parts = [9] if numbers == 10**9 else [2, 2, 2, 2, 1]  # three units a row, seven a part
    for _ in range(2):
        found = CachedEncoder(encoder).unit_vectors(rows, layers=(3, 0))
        assert calls == [(size, (3, 0)) for size in parts], "not encoded again"
        assert [len(part) for part in found.parts[0]] == [3 * size for size in parts]
        whole = np.asarray(found)
        assert whole.dtype == np.float16 and whole.shape == found.shape == (2, 27, 24)
        # Rows of a part are padded otherwise than all together: the last bits may differ.
        np.testing.assert_allclose(whole, bare[[2, 0]].astype(np.float16), atol=2e-3)
    if numbers == 10**9:
        assert (whole == bare[[2, 0]].astype(np.float16)).all()
    calls.clear()
    CachedEncoder(encoder).unit_vectors(rows, layers=(0, 2))
    assert {layers for _, layers in calls} == {(2,)}, "only what is missing"
    CachedEncoder(encoder).unit_vectors(rows, layers=(0,), pooling="first")
    assert {layers for _, layers in calls} == {(2,), (0,)}, "another pooling is another entry"


def test_only_what_reads_pieces_has_units() -> None:
    encoder = build("bert")
    with pytest.raises(BadSetting, match="does not read pieces"):
        CachedEncoder(CachedEncoder(encoder)).unit_vectors(Rows.of(drawn(encoder)), layers=(1,))


# ------------------------------------------------------------------------------------------------ frames


@pytest.mark.parametrize("family", TEMPLATES)
def test_a_pair_is_framed_as_the_tokenizer_does(family: str) -> None:
    known = tokenizer(family)
    frame = Reader(known).pair
    for first, second in (("a b", "Die Katze saß"), ("東京", "x"), ("the", "the the"), ("", "a"), ("a", "")):
        a, b = cut(known, [first, second])
        told = {name: one[0] for name, one in known([first], [second]).items()}  # alone, "" would be no text
        assert [*frame.head, *a, *frame.middle, *b, *frame.tail] == told["input_ids"]
        sizes = (len(frame.head), len(a), len(frame.middle), len(b), len(frame.tail))
        assert np.repeat(frame.kinds, sizes).tolist() == told.get("token_type_ids", [0] * sum(sizes))
    assert frame.size == known.num_special_tokens_to_add(pair=True)


def test_the_frames_of_the_families_are_not_all_alike() -> None:
    assert len(Reader(tokenizer("xlm-roberta")).pair.middle) == 2, "two </s> in the middle"
    assert Reader(tokenizer("bert")).pair.kinds == (0, 0, 0, 1, 1)


def test_segments_that_a_tokenizer_keeps_to_itself_are_not_given() -> None:
    modern = tokenizer("modernbert")  # its template has them, but what it gives has not
    assert modern("a", "b", return_token_type_ids=True)["token_type_ids"] == [0, 0, 0, 1, 1]
    assert "token_type_ids" not in modern("a", "b") and pair_frame(modern).kinds == (0, 0, 0, 0, 0)


def test_a_slow_tokenizer_has_a_frame(tmp_path: Path) -> None:
    known = marian(tmp_path)[1]
    frame = Reader(known).pair
    a, b = cut(known, ["the cat", "it"])
    assert [*frame.head, *a, *frame.middle, *b, *frame.tail] == known("the cat", "it")["input_ids"]


@pytest.mark.parametrize(("known", "mark"), [(wordpiece, "[SEP]"), (unigram, "</s>")])
def test_a_tokenizer_that_frames_one_text_only_gets_a_frame_of_the_like(known: Any, mark: str) -> None:
    frame, ids = pair_frame(known()), known().convert_tokens_to_ids
    assert known()("a", "a")["input_ids"] == cut(known(), ["a"])[0] * 2, "it puts nothing between them"
    assert frame.head.tolist() == known()("a")["input_ids"][:1]
    assert frame.middle.tolist() == frame.tail.tolist() == [ids(mark)]


def test_the_prefix_stands_before_the_first_text() -> None:
    known = tokenizer("xlm-roberta")
    plain, led = Reader(known).pair, Reader(known, prefix="the cat: ").pair
    assert led.head.tolist() == [*plain.head, *cut(known, ["the cat:"])[0]]
    assert (led.middle.tolist(), led.tail.tolist()) == (plain.middle.tolist(), plain.tail.tolist())
    spaced = Reader(tokenizer("modernbert"), prefix="the:")
    whole = [*spaced.pair.head[1:], *spaced.read(["cat sat"], first=True)[0]]
    assert whole == cut(spaced.tokenizer, ["the: cat sat"])[0]
    assert spaced.read(["cat sat"])[0].tolist() == cut(spaced.tokenizer, ["cat sat"])[0]


# -------------------------------------------------------------------------------------------- characters

texts = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", "  ", "\n", "\u3000", " \t"])),
    min_size=1,
    max_size=8,
).map(lambda parts: "".join(word + space for word, space in parts))


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert"])
@given(text=texts)
@settings(max_examples=40)
def test_pieces_lie_where_their_characters_are(family: str, text: str) -> None:
    known = tokenizer(family)
    pieces, places = Reader(known).characters(text)
    assert pieces.tolist() == cut(known, [text])[0] and places.shape == (len(pieces), 2)
    assert (places[:, 0] <= places[:, 1]).all() and places.min() >= 0 and places.max() <= len(text)
    assert (np.diff(places[:, 0]) >= 0).all()
    covered = {k for a, b in places.tolist() for k in range(a, b)}
    assert {k for k, character in enumerate(text) if not character.isspace()} <= covered
    if family == "bert":
        names = known.convert_ids_to_tokens(pieces.tolist())
        for name, (a, b) in zip(names, places.tolist(), strict=True):
            assert name == "[UNK]" or name.removeprefix("##") == text[a:b]


def test_an_accent_belongs_to_its_letter_and_nothing_invisible_does() -> None:
    text = "e\u0301x\u200b y\u0323\u0302"
    told = np.array([[0, 1], [2, 3], [4, 6]])
    found = with_marks(text, told)
    assert [text[a:b] for a, b in found.tolist()] == ["e\u0301", "x", " y\u0323\u0302"]
    assert told.tolist() == [[0, 1], [2, 3], [4, 6]], "what is given stays"
    assert with_marks("", np.zeros((0, 2), np.int64)).shape == (0, 2)
    assert with_marks("ab", np.array([[0, 1], [0, 1], [1, 2]])).tolist() == [[0, 1], [0, 1], [1, 2]]


def test_an_accent_that_the_tokenizer_strips_is_in_no_gap() -> None:
    backend = Tokenizer.from_str(wordpiece().backend_tokenizer.to_str())
    backend.normalizer = normalizers.BertNormalizer(strip_accents=True)
    known = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")
    text = "the\u0301 cat\u0323\u0302 \u200bdog"
    told = known(text, return_offsets_mapping=True)["offset_mapping"]
    assert "\u0301" not in {text[k] for a, b in told for k in range(a, b)}
    places = Reader(known).characters(text)[1]
    assert set(range(len(text))) - {k for a, b in places.tolist() for k in range(a, b)} == {4, 10, 11}


def test_a_slow_tokenizer_tells_whole_words() -> None:
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(marian(Path(folder))[1])
        text = "The  cat\nStraßenkehrer "
        pieces, places = reader.characters(text)
    assert pieces.tolist() == [p for word in text.split() for p in cut(reader.tokenizer, [word])[0]]
    assert {text[a:b] for a, b in places.tolist()} == {"The", "cat", "Straßenkehrer"}
    pieces, places = reader.characters("  ")
    assert pieces.shape == (0,) and places.shape == (0, 2)


def test_texts_are_cut_as_by_the_tokenizer() -> None:
    for family in TEMPLATES:
        known, given = tokenizer(family), [*TEXT[:4], "a  b", "", "東京へ行きます"]
        assert [found.tolist() for found in Reader(known).read(given)] == cut(known, given)
    assert paired("bert").reader.read([]) == []
