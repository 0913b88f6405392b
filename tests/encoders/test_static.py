"""Static vectors: brute-force twins, round trips, and files of every kind, whole and broken."""

import gzip
import re
import string
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.encoders.static import (
    SentenceAugmented,
    StaticEncoder,
    WordTable,
    augment,
    is_static_spec,
    load_static,
    open_static_spec,
    parse_static_spec,
    read_vec,
    save_static,
)
from calque.errors import BadInput, BadSetting
from calque.types import FIRST_SPECIAL, Sentences, WordIndex, WordVectors

WORDS = ["the", "The", "cat", "Sat", "mat"]
TABLE = WordTable.of(WORDS, np.random.default_rng(0).normal(size=(5, 3)))
ENCODER = StaticEncoder({"en": TABLE}, name="toy")
texts = st.lists(st.lists(st.sampled_from([*WORDS, "THE", "CAT", "sat", "dog", "ß"]), max_size=5), max_size=5)


def slow_vector(word: str) -> np.ndarray | None:
    for form in (word, word.lower()):
        if form in WORDS:
            return TABLE.vectors[WORDS.index(form)]
    return None


# ------------------------------------------------------------------------------------------- encoders


@given(texts)
def test_words_one_by_one(sentences):
    held = ENCODER.word_vectors(Sentences.of("en", sentences), layers=(0,))
    slow = [slow_vector(word) for sentence in sentences for word in sentence]
    assert held.present.tolist() == [vector is not None for vector in slow]
    assert held.dropped == {"unknown": sum(vector is None for vector in slow)}
    known = [vector for vector in slow if vector is not None]
    assert held.vectors.shape == (1, len(known), 3)
    assert np.array_equal(held.layer(0), np.reshape(known, (-1, 3)).astype(np.float32))


@given(texts)
def test_sentences_one_by_one(sentences):
    held = ENCODER.sentence_vectors(Sentences.of("en", sentences), layers=(0,))
    assert held.shape == (1, len(sentences), 3) and held.dtype == np.float32
    for sentence, vector in zip(sentences, held[0], strict=True):
        known = [v for v in map(slow_vector, sentence) if v is not None]
        assert np.allclose(vector, np.mean(known, 0) if known else 0, atol=1e-6)


@given(texts, st.data())
def test_augmented_words_one_by_one(sentences, data):
    text = Sentences.of("en", sentences)
    every = WordIndex.every(text)
    picked = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(text.ids), max_size=len(text.ids))), bool
    )
    asked = WordIndex(every.sentence[picked], every.word[picked])
    held = SentenceAugmented(ENCODER).word_vectors(text, asked, layers=(0,))
    slow = []
    for row, place in zip(*asked, strict=True):
        known = [v for v in map(slow_vector, sentences[row]) if v is not None]
        own = slow_vector(sentences[row][place])
        if own is not None:
            slow.append(np.concatenate([own, np.mean(known, 0), np.max(known, 0), np.min(known, 0)]))
    assert held.present.sum() == len(slow) and len(held.present) == picked.sum()
    assert np.allclose(held.layer(0), np.reshape(slow, (-1, 12)), atol=1e-6)


def test_augmented_flag_is_the_wrapper():
    text = Sentences.of("en", [["the", "cat"], ["dog"], [], ["Sat", "mat", "mat"]])
    flagged, wrapped = StaticEncoder({"en": TABLE}, sentence_augmented=True), SentenceAugmented(ENCODER)
    assert flagged.width == wrapped.width == 12
    ours, theirs = (e.word_vectors(text, layers=(0,)) for e in (flagged, wrapped))
    assert np.array_equal(ours.vectors, theirs.vectors) and np.array_equal(ours.present, theirs.present)
    ours, theirs = (e.sentence_vectors(text, layers=(0,)) for e in (flagged, wrapped))
    assert np.array_equal(ours, theirs)
    assert np.allclose(ours[0, 0, :6].reshape(2, 3), TABLE.vectors[[0, 2]].mean(0))
    assert not ours[0, 1:3].any()
    assert flagged.fingerprint != ENCODER.fingerprint


class Rotated:
    """An encoder whose vectors are mapped before they are handed out."""

    def __init__(self, inner: StaticEncoder, matrix: np.ndarray) -> None:
        self.inner, self.matrix = inner, matrix
        self.name, self.width, self.depth = "rotated", inner.width, 0
        self.languages, self.fingerprint = inner.languages, "rotated"

    def word_vectors(self, sentences, words=None, *, layers, pooling="mean"):
        held = self.inner.word_vectors(sentences, words, layers=layers, pooling=pooling)
        return WordVectors(held.layers, held.vectors @ self.matrix.T, held.present, held.dropped)


def test_parts_are_joined_after_the_maps():
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0].astype(np.float32)
    text = Sentences.of("en", [["the", "cat", "mat"], ["Sat", "dog", "cat"]])
    held = SentenceAugmented(Rotated(ENCODER, rotation)).word_vectors(text, layers=(0,)).layer(0)
    plain = ENCODER.word_vectors(text, layers=(0,)).layer(0) @ rotation.T
    assert np.allclose(held, augment(plain, np.array([0, 0, 0, 1, 1])), atol=1e-6)
    before = SentenceAugmented(ENCODER).word_vectors(text, layers=(0,)).layer(0)
    assert not np.allclose(held[:, 6:9], before[:, 6:9] @ rotation.T, atol=1e-3)


def test_augment_takes_layers():
    vectors = np.random.default_rng(2).normal(size=(2, 4, 3))
    held = augment(vectors, np.array([3, 3, 5, 5]))
    assert held.shape == (2, 4, 12)
    assert np.allclose(held[1], augment(vectors[1], np.array([0, 0, 1, 1])))
    assert augment(vectors[:, :0], np.zeros(0, int)).shape == (2, 0, 12)


def test_case():
    text = Sentences.of("en", [["The", "THE", "CAT", "sat"]])
    assert ENCODER.word_vectors(text, layers=(0,)).present.tolist() == [True, True, True, False]
    exact = StaticEncoder({"en": TABLE}, lowercase=False)
    assert exact.word_vectors(text, layers=(0,)).present.tolist() == [True, False, False, False]


def test_special_tokens_are_not_there():
    text = Sentences.of("en", [["the", "dog"]])
    asked = WordIndex(np.array([0, 0], np.int32), np.array([FIRST_SPECIAL, 0], np.int32))
    for encoder in (ENCODER, SentenceAugmented(ENCODER)):
        held = encoder.word_vectors(text, asked, layers=(0,))
        assert held.present.tolist() == [False, True] and held.dropped == {"unknown": 0, "special": 1}


def test_refusals():
    text = Sentences.of("en", [["the"]])
    pieces = Sentences("en", text.ids, text.offsets, text.vocabulary, unit="piece")
    for encoder in (ENCODER, SentenceAugmented(ENCODER)):
        with pytest.raises(BadSetting, match="no hidden states"):
            encoder.batch(text)
        with pytest.raises(BadSetting, match="no hidden states"):
            encoder.states(None, (0,))
        with pytest.raises(BadSetting, match="no layer 3"):
            encoder.word_vectors(text, layers=(0, 3))
        with pytest.raises(BadSetting, match="no pieces"):
            encoder.word_vectors(pieces, layers=(0,))
        with pytest.raises(BadSetting, match=r"no vectors for 'de'.*known: en"):
            encoder.word_vectors(Sentences.of("de", [["der"]]), layers=(0,))
        with pytest.raises(BadSetting, match="special token"):
            encoder.sentence_vectors(text, layers=(0,), pooling="first")
    with pytest.raises(BadSetting, match="en 3, de 2"):
        StaticEncoder({"en": TABLE, "de": WordTable.of(["der"], np.ones((1, 2)))})
    with pytest.raises(BadSetting, match="none given"):
        StaticEncoder({})
    with pytest.raises(BadInput, match="2 words"):
        WordTable.of(["a", "b"], np.ones((3, 2)))


def test_fingerprint_is_of_the_content():
    again = StaticEncoder({"en": WordTable.of(WORDS, TABLE.vectors.copy())}, name="another name")
    other = StaticEncoder({"en": WordTable.of([*WORDS[:-1], "Mat"], TABLE.vectors)})
    moved = StaticEncoder({"en": WordTable.of(WORDS, TABLE.vectors + 1)})
    named = StaticEncoder({"de": TABLE})
    assert again.fingerprint == ENCODER.fingerprint
    assert len({e.fingerprint for e in (ENCODER, other, moved, named)}) == 4


# ----------------------------------------------------------------------------------------------- files

forms = st.text(
    st.characters(exclude_characters="\n", exclude_categories=("Cs",)), min_size=1, max_size=6
).filter(lambda word: word.strip(" \r\t\x0b\x0c") == word and not re.search(r"^\d|\d$| .*\d", word))
numbers = st.floats(-1e6, 1e6, width=32)
tables = st.dictionaries(forms, st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=6)


def as_text(table: dict[str, list[float]], *, header: bool) -> bytes:
    lines = [f"{len(table)} 3"] if header else []
    lines += [" ".join([word, *map(repr, values)]) for word, values in table.items()]
    return ("\n".join(lines) + "\n").encode()


def as_binary(table: dict[str, list[float]], *, ended: bool) -> bytes:
    end = b"\n" if ended else b""
    rows = [word.encode() + b" " + np.array(v, "<f4").tobytes() + end for word, v in table.items()]
    return f"{len(table)} 3\n".encode() + b"".join(rows)


@settings(deadline=None)
@given(table=tables, kind=st.sampled_from(["vec", "vec.gz"]))
def test_text_round_trip(tmp_path_factory, table, kind):
    """Any word without a line feed, spaces inside it included."""
    path = tmp_path_factory.mktemp("vec") / f"words.{kind}"
    data = as_text(table, header=True)
    path.write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    held = read_vec(path)
    assert held.words.strings == list(table)
    assert np.array_equal(held.vectors, np.array(list(table.values()), np.float32))


@settings(deadline=None)
@given(table=tables, ended=st.booleans())
def test_binary_round_trip(tmp_path_factory, table, ended):
    """Words with spaces can be told apart only where vectors end with a line feed."""
    if not ended or " " in next(iter(table)):
        table = {word.replace(" ", "_"): values for word, values in table.items()}
    path = tmp_path_factory.mktemp("bin") / "words.bin"
    path.write_bytes(as_binary(table, ended=ended))
    held = read_vec(path)
    assert held.words.strings == list(table)
    assert np.array_equal(held.vectors, np.array(list(table.values()), np.float32))


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_glove_has_no_header(tmp_path):
    held = read_vec(write(tmp_path / "glove.txt", "the 1 2 3\n. . . 4 5 6\n\n"))
    assert held.words.strings == ["the", ". . ."] and held.vectors.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_spellings_of_lines_and_numbers(tmp_path):
    held = read_vec(write(tmp_path / "a.vec", "4 2\r\nthe 1. .5 \r\n\u00a0 1e-3 +2\n\u2028 -0 7\n 1 1\n"))
    assert held.words.strings == ["the", "\u00a0", "\u2028", ""]
    assert held.vectors[0].tolist() == [1, 0.5] and held.vectors[1, 1] == 2


def test_first_of_equal_words_and_limit(tmp_path):
    path = write(tmp_path / "a.vec", "4 1\na 1\na 2\nb 3\nc 4\n")
    assert read_vec(path).vectors.ravel().tolist() == [1, 3, 4]
    assert read_vec(path, limit=2).words.strings == ["a", "b"]
    with pytest.raises(BadSetting, match="limit is 0"):
        read_vec(path, limit=0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2 3\na 1 2 3\nb 1 2\n", r"a\.vec:3: .*3 values should be"),
        ("2 3\na 1 2 3\nb 1 2 x\n", r"a\.vec:3: something that is no number"),
        ("2 3\na 1 2 3 4\nb 1 2 3\n", r"a\.vec:2: 4 values"),
        ("2 3\na 1 2 3\nb 1 nan 3\n", r"a\.vec:3: .*not finite"),
        ("2 3\na 1 2 3\nb 1 1e99 3\n", r"a\.vec:3: .*not finite"),
        ("3 3\na 1 2 3\nb 1 2 3\n", "ends after 2 words of 3"),
        ("", "first line holds no vector"),
        ("7 0\n", "first line holds no vector"),
        ("word\n", "first line holds no vector"),
        ("the 1 2\ncat 1\n", r"a\.vec:2: 1 values"),
    ],
)
def test_broken_text_is_named(tmp_path, text, told):
    with pytest.raises(BadInput, match=told):
        read_vec(write(tmp_path / "a.vec", text))


def test_broken_binaries_are_named(tmp_path):
    whole = as_binary({"a": [1, 2, 3], "b": [4, 5, 6]}, ended=True)
    cases = {
        "ends after 1 words of 2": whole[:-3],
        "no word2vec header": b"the 1 2 3\n",
        "a fastText model": (793712314).to_bytes(4, "little") + whole,
        "not finite": as_binary({"a": [1, 2, float("nan")]}, ended=False),
    }
    for told, data in cases.items():
        (tmp_path / "a.bin").write_bytes(data)
        with pytest.raises(BadInput, match=told):
            read_vec(tmp_path / "a.bin")
    (tmp_path / "a.bin").write_bytes(b"")
    with pytest.raises(BadInput, match="no word2vec header"):
        read_vec(tmp_path / "a.bin")
    (tmp_path / "a.bin.gz").write_bytes(gzip.compress(whole))
    assert read_vec(tmp_path / "a.bin.gz", limit=1).words.strings == ["a"]


def test_broken_gzip_and_no_file(tmp_path):
    data = gzip.compress(as_text({string.ascii_letters: [1, 2, 3]}, header=True))
    (tmp_path / "a.vec.gz").write_bytes(data[:-12])
    with pytest.raises(BadInput, match="broken gzip"):
        read_vec(tmp_path / "a.vec.gz")
    with pytest.raises(BadInput, match="no such file"):
        read_vec(tmp_path / "b.vec")


# ------------------------------------------------------------------------------------ folders and names


@pytest.mark.parametrize("flags", [{}, {"lowercase": False}, {"sentence_augmented": True}])
def test_save_and_load(tmp_path, flags):
    german = WordTable.of(["der", "Straße"], np.ones((2, 3)))
    encoder = StaticEncoder({"en": TABLE, "de": german}, name="toy", **flags)
    (tmp_path / "kept.txt").write_text("what was there before")
    save_static(tmp_path, encoder)
    held = load_static(tmp_path)
    assert (tmp_path / "kept.txt").exists()
    assert (held.fingerprint, held.name, held.width) == (encoder.fingerprint, "toy", encoder.width)
    assert held.languages == {"en", "de"} and held.tables["de"].words.strings == ["der", "Straße"]
    text = Sentences.of("en", [["THE", "mat"]])
    ours, theirs = (e.word_vectors(text, layers=(0,)) for e in (held, encoder))
    assert np.array_equal(ours.vectors, theirs.vectors) and np.array_equal(ours.present, theirs.present)


def test_broken_folders_are_named(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        load_static(tmp_path)
    save_static(tmp_path, ENCODER)
    tables = tmp_path / "tables.safetensors"
    tables.write_bytes(tables.read_bytes()[:-4])
    with pytest.raises(BadInput, match=r"tables\.safetensors: broken"):
        load_static(tmp_path)
    tables.unlink()
    with pytest.raises(BadInput, match=r"tables\.safetensors: no such file"):
        load_static(tmp_path)
    (tmp_path / "static.json").write_text('{"kind": "something else"}')
    with pytest.raises(BadInput, match="not static vectors"):
        load_static(tmp_path)


def test_specs(tmp_path):
    english = write(tmp_path / "wiki.en.vec", "1 2\nthe 1 2\n")
    german = write(tmp_path / "wiki.de.vec", "2 2\nder 3 4\ndie 5 6\n")
    encoder = open_static_spec(f"en={english},de={german}", limit=1)
    assert encoder.languages == {"en", "de"} and len(encoder.tables["de"]) == 1
    assert is_static_spec(f"en={english}") and is_static_spec("zh-Hant=a.vec")
    assert not is_static_spec("models/a=b") and not is_static_spec("en=")
    for spec, told in {"en": "LANGUAGE=FILE", "en=a.vec,": "LANGUAGE=FILE", "en=a,en=b": "two files"}.items():
        with pytest.raises(BadSetting, match=told):
            parse_static_spec(spec)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 4\na [1,2] [3,4] 5 6\n", ":2: something that is no number"),
        ("a [1,2] [3,4]\n", ":1: something that is no number"),
        ("a true 1\n", ":1: something that is no number"),
        (f"a {'9' * 400} 1\n", ":1: a value that is not finite"),
        ("1 1000000000000\na 1\n", ":2: "),
        ("1000000000000 2\na 1 2\n", "ends after 1 words of 1000000000000"),
        ("0 3\n", "no words here"),
        (f"{'9' * 5000} 2\na 1 2\n", ":2: 2 values, where 1 values should be"),
    ],
)
def test_vectors_that_are_not_what_they_announce(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a.vec").write_text(text)
    with pytest.raises(BadInput, match=told):
        read_vec(tmp_path / "a.vec")


@pytest.mark.parametrize("header", ["1000000000000 2", "1 1000000000000", f"{'9' * 5000} 2", "0 2"])
def test_binaries_that_announce_too_much(tmp_path: Path, header: str) -> None:
    (tmp_path / "a.bin").write_bytes(header.encode() + b"\na " + np.float32([1, 2]).tobytes())
    with pytest.raises(BadInput, match=r"a\.bin"):
        read_vec(tmp_path / "a.bin")


def test_vectors_compressed_by_xz_are_read(tmp_path: Path) -> None:
    import lzma

    (tmp_path / "a.vec.xz").write_bytes(lzma.compress(b"a 1 2\n"))
    assert read_vec(tmp_path / "a.vec.xz").vectors.tolist() == [[1, 2]]
