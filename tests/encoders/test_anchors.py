"""Word types and their anchors, against sums taken one by one."""

import tracemalloc
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import tiny_encoders
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.encoders import anchors as anchors_module
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.anchors import anchors
from calque.encoders.static import StaticEncoder, WordTable
from calque.encoders.wordtypes import Types, forms_of, in_one_piece, innermost, table_words
from calque.errors import BadInput, BadSetting
from calque.files import Cache
from calque.types import Sentences
from planted import PlantedEncoder

WORDS = ["der", "Der", "hund", "Hund", "Katze", "bellt", "7"]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=1, max_size=8)


def encoder(width: int = 3, **more: object) -> PlantedEncoder:
    rng = np.random.default_rng(0)
    return PlantedEncoder({"de": {word: rng.normal(size=width) for word in WORDS}}, noise=0.3, **more)


# --------------------------------------------------------------------------------------------- types


@given(texts, st.booleans(), st.integers(1, 3), st.integers(1, 5) | st.none())
def test_types_of_a_text_are_its_words_by_frequency(sentences, fold, min_count, most):
    counts = Counter(w.lower() if fold else w for words in sentences for w in words)
    often = [word for word, count in counts.items() if count >= min_count]
    text = Sentences.of("de", sentences)
    if not often:
        with pytest.raises(BadInput, match="de text"):
            Types.of_text(text, fold=fold, min_count=min_count)
        return
    types = Types.of_text(text, fold=fold, min_count=min_count, most=most)
    assert [counts[word] for word in types.words] == sorted((counts[w] for w in often), reverse=True)[:most]
    for word, count in zip(types.words, np.bincount(types.rows[text.ids] + 1)[1:], strict=False):
        assert counts[word] == count
    held = types.find([*WORDS, "nothing"]).tolist()
    assert held == [
        types.words.index(w) if (w := (form.lower() if fold else form)) in types.words else -1
        for form in [*WORDS, "nothing"]
    ]


def test_words_by_themselves_are_types_by_their_first_form():
    types = Types.of_words("de", ["Hund", "hund", "Katze", "bellt"], most=2)
    assert types.words == ("hund", "katze") and types.alone
    assert [*types.text] == [["Hund"], ["Katze"]]
    assert types.keep(np.array([1])).words == ("katze",)
    assert [*types.keep(np.array([1])).text] == [["Katze"]], "others leave the text"
    assert Types.of_words("de", ["Hund", "hund"], fold=False).words == ("Hund", "hund")
    assert forms_of(Sentences.of("de", [["a", "b"], ["b"]])) == ["b", "a"]


@given(texts, st.permutations(range(7)))
def test_kept_types_are_renumbered(sentences, order):
    text = Sentences.of("de", [*sentences, ["der"]])
    types = Types.of_text(text, fold=False)
    chosen = np.array([i for i in order if i < len(types)][:3])
    kept = types.keep(chosen)
    assert kept.words == tuple(types.words[i] for i in chosen)
    for word, row in zip(kept.text.vocabulary, kept.rows, strict=True):
        assert row == (kept.words.index(word) if word in kept.words else -1)


def test_fingerprints_tell_types_apart():
    text = Sentences.of("de", [["der", "Hund"], ["der", "hund"]])
    same, folded = Types.of_text(text), Types.of_text(text, fold=False)
    assert same.fingerprint == Types.of_text(text).fingerprint != folded.fingerprint
    assert same.keep(np.array([0])).fingerprint != same.fingerprint


# ------------------------------------------------------------------------------------------- anchors


def slow(made: PlantedEncoder, text: Sentences, layers: tuple[int, ...]) -> dict[str, np.ndarray]:
    found, rows = made.word_vectors(text, layers=layers), defaultdict(list)
    words = [word for sentence in text for word in sentence]
    present = [word for word, there in zip(words, found.present, strict=True) if there]
    for k, word in enumerate(present):
        rows[word.lower()].append(np.asarray(found.vectors[:, k], np.float64))
    return {word: np.mean(held, 0) for word, held in rows.items()}


@given(texts)
def test_anchors_are_means_over_all_occurrences(sentences):
    text = Sentences.of("de", [*sentences, ["Hund", "der"]])
    made = encoder(missing=frozenset({"Hund", "hund"}))
    types, expected = Types.of_text(text), slow(made, text, (0, 2))
    found = anchors(made, types, layers=(0, 2))
    for row, word in enumerate(types.words):
        assert (found.counts[row] == 0) == (word == "hund")
        for layer, place in ((0, 0), (2, 1)):
            np.testing.assert_allclose(
                found.layer(layer)[row], expected.get(word, np.zeros((2, 3)))[place], atol=1e-6
            )
    assert found.layer(0).dtype == np.float32


def test_large_common_offsets_lose_nothing():
    """A sum in single precision would be off in the second digit."""
    rng = np.random.default_rng(0)
    table = {"w": np.full(4, 1e4), "v": rng.normal(size=4)}
    made = PlantedEncoder({"de": table}, noise=0.001)
    text = Sentences.of("de", [["w"] * 50] * 400 + [["v"]])
    found = anchors(made, Types.of_text(text), layers=(0,))
    assert found.counts.tolist() == [20_000, 1]
    np.testing.assert_allclose(found.layer(0)[0], 1e4, rtol=1e-7)


def test_chunks_change_nothing(monkeypatch):
    """Vectors without noise: the noise of this encoder depends on how much it is asked at once."""
    rng = np.random.default_rng(1)
    made = PlantedEncoder({"de": {word: rng.normal(size=3) for word in WORDS}})
    text = Sentences.of("de", [rng.choice(WORDS, 5).tolist() for _ in range(30)])
    whole = anchors(made, Types.of_text(text), layers=(0, 1))
    monkeypatch.setattr(anchors_module, "BLOCK_NUMBERS", 40)
    made.calls.clear()
    cut = anchors(made, Types.of_text(text), layers=(0, 1))
    assert len(made.calls) > 20
    for layer in (0, 1):
        np.testing.assert_allclose(cut.layer(layer), whole.layer(layer), atol=1e-6)
    assert cut.counts.tolist() == whole.counts.tolist()


def test_memory_is_that_of_types_not_of_occurrences(monkeypatch):
    monkeypatch.setattr(anchors_module, "BLOCK_NUMBERS", 1 << 14)
    table = WordTable.of([f"w{k}" for k in range(200)], np.random.default_rng(0).normal(size=(200, 64)))
    made = StaticEncoder({"de": table})

    def peak(sentences: int) -> int:
        rng = np.random.default_rng(2)
        ids = rng.integers(0, 200, (sentences, 20))
        text = Sentences.of("de", [[f"w{k}" for k in row] for row in ids.tolist()])
        types = Types.of_text(text)
        tracemalloc.start()
        anchors(made, types, layers=(0,))
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # Which words are asked for is a few numbers an occurrence, where vectors would be 64.
        return held - 40 * len(text.ids)

    assert peak(3000) < 1.3 * peak(300) + 200_000


def test_the_cache_holds_layers_and_is_found_again(tmp_path: Path):
    text = Sentences.of("de", [["der", "Hund", "bellt"], ["Der", "hund"]])
    made, types, cache = encoder(), Types.of_text(text), Cache(tmp_path)
    plain = anchors(made, types, layers=(0, 1))
    first = anchors(made, types, layers=(0, 1), cache=cache)
    made.calls.clear()
    again = anchors(made, types, layers=(1, 0), cache=cache)
    assert not made.calls and again.layers == (1, 0)
    for one in (first, again):
        np.testing.assert_array_equal(one.layer(1), plain.layer(1))
        np.testing.assert_array_equal(one.counts, plain.counts)
    anchors(made, types, layers=(0, 2), cache=cache)
    assert made.calls == ["de"], "only what is missing"
    for file in (tmp_path / "vectors").rglob("vectors.npy"):
        file.write_bytes(b"broken")
    np.testing.assert_array_equal(anchors(made, types, layers=(0, 1), cache=cache).layer(1), plain.layer(1))


def test_a_cache_too_small_for_anything_still_works(tmp_path: Path):
    types = Types.of_text(Sentences.of("de", [["der", "Hund"], ["Der"]]))
    found = anchors(encoder(), types, layers=(0, 1, 2), cache=Cache(tmp_path, limit=0))
    np.testing.assert_array_equal(found.layer(1), anchors(encoder(), types, layers=(0, 1, 2)).layer(1))


# ------------------------------------------------------------------------------------- single pieces


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert"])
def test_words_in_one_piece_are_those_the_tokenizer_does_not_cut(family: str):
    made = tiny_encoders.build(family)
    words = ["the", "cat", "Katze", "Straßenkehrer", "a", "7", "dog's", "zzzz", "東京", "ж", "☃"]
    found = in_one_piece(made, "en", words)
    for word, single in zip(words, found, strict=True):
        batch = made.batch(Sentences.of("en", [[word]]))
        pieces = batch.pieces[0, batch.start[0] : batch.end[0]].tolist() if len(batch.start) else []
        assert single == (len(pieces) == 1 and pieces[0] != made.tokenizer.unk_token_id)
    assert found.any() and not found.all()
    assert not found[words.index("Straßenkehrer")]
    if family == "bert":
        assert made.tokenizer.tokenize("☃") == ["[UNK]"] and not found[words.index("☃")]


def test_static_vectors_have_words_in_one_piece_and_a_table():
    made = StaticEncoder({"en": WordTable.of(["the", "Cat"], np.eye(2))})
    wrapped = AlignedEncoder(made, {}, "en")
    assert innermost(wrapped) is made
    assert in_one_piece(wrapped, "en", ["the", "Cat", "CAT", "dog"]).tolist() == [True, True, False, False]
    assert list(table_words(wrapped, "en")) == ["the", "Cat"]
    assert table_words(tiny_encoders.build("bert"), "en") is None
    with pytest.raises(BadSetting, match="no vectors for 'de'"):
        table_words(made, "de")


@settings(max_examples=10)
@given(st.lists(st.sampled_from(["the", "cat", "mat", "dog"]), min_size=1, max_size=4, unique=True))
def test_words_by_themselves_have_the_embedding_of_their_piece(words):
    """Layer 0 of a word alone is its row of the table, with position and normalisation, the same for all."""
    made = tiny_encoders.build("bert")
    types = Types.of_words("en", words)
    found = anchors(made, types, layers=(0,))
    for word, vector in zip(types.words, found.layer(0), strict=True):
        alone = made.word_vectors(Sentences.of("en", [[word]]), layers=(0,)).layer(0)[0]
        np.testing.assert_allclose(vector, alone, atol=1e-5)
