"""The cache: the same vectors with and without it, only what is missing made, broken entries made again."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_encoders import TEXT, build

import calque.files
from calque.encoders import anchors, cached
from calque.encoders.cached import CachedEncoder, rounded
from calque.errors import BadInput, CannotWrite
from calque.files import Cache
from calque.progress import shown
from calque.types import Encoder, Sentences, WordIndex, WordVectors
from flipped import flipped, places

SENTENCES = Sentences.of("en", [line.split() for line in TEXT[:5]] + [["\u200b", "cat"], []])


class Counting:
    """An encoder that remembers what it was asked for, and can be made to give large values."""

    def __init__(self, inner: Any, factor: float = 1.0) -> None:
        self.inner, self.factor, self.calls = inner, factor, []
        self.name, self.width, self.depth = inner.name, inner.width, inner.depth
        self.languages, self.fingerprint = inner.languages, f"{inner.fingerprint}{factor}"
        self.batch, self.states = inner.batch, inner.states

    def word_vectors(
        self, sentences: Sentences, words: Any = None, *, layers: Any, pooling: Any = "mean"
    ) -> Any:
        self.calls.append(list(layers))
        found = self.inner.word_vectors(sentences, words, layers=layers, pooling=pooling)
        return WordVectors(found.layers, found.vectors * self.factor, found.present, found.dropped)

    def sentence_vectors(self, sentences: Sentences, *, layers: Any, pooling: Any = "mean") -> Any:
        self.calls.append(list(layers))
        return self.inner.sentence_vectors(sentences, layers=layers, pooling=pooling) * self.factor


@pytest.fixture(scope="module")
def plain() -> Encoder:
    return build("xlm-roberta")


@pytest.fixture
def counting(plain: Encoder) -> Counting:
    return Counting(plain)


def files(cache: Cache, pattern: str) -> Sequence[Path]:
    return sorted(cache.root.glob(f"*/{pattern}"))


def test_vectors_are_rounded_and_kept(counting: Counting) -> None:
    bare = counting.inner.word_vectors(SENTENCES, layers=[0, 3])
    for _ in range(2):
        found = CachedEncoder(counting).word_vectors(SENTENCES, layers=[0, 3])
        assert found.layers == (0, 3) and dict(found.dropped) == dict(bare.dropped)
        assert (found.present == bare.present).all()
        assert (np.asarray(found.vectors) == bare.vectors.astype(np.float16)).all()
        assert isinstance(found.vectors[0], np.memmap) and found.vectors[0].dtype == np.float16
        assert found.layer(3).dtype == np.float32
    assert counting.calls == [[0, 3]]


def test_only_missing_layers_are_computed(counting: Counting) -> None:
    encoder = CachedEncoder(counting)
    encoder.word_vectors(SENTENCES, layers=[1, 2])
    found = encoder.word_vectors(SENTENCES, layers=[3, 2, 0, 1])
    assert counting.calls == [[1, 2], [3, 0]] and found.layers == (3, 2, 0, 1)
    bare = counting.inner.word_vectors(SENTENCES, layers=[3, 2, 0, 1])
    assert (np.asarray(found.vectors) == bare.vectors.astype(np.float16)).all()


def test_other_words_text_pooling_or_encoder_are_other_entries(counting: Counting) -> None:
    encoder, every = CachedEncoder(counting), WordIndex.every(SENTENCES)
    encoder.word_vectors(SENTENCES, layers=[1])
    encoder.word_vectors(SENTENCES, every, layers=[1])  # the same words, said otherwise
    assert len(counting.calls) == 1
    encoder.word_vectors(SENTENCES, WordIndex(every.sentence[:5], every.word[:5]), layers=[1])
    encoder.word_vectors(SENTENCES, layers=[1], pooling="first")
    encoder.word_vectors(SENTENCES.select([0, 1]), layers=[1])
    assert len(counting.calls) == 4
    other = Counting(counting.inner, 2.0)
    CachedEncoder(other).word_vectors(SENTENCES, layers=[1])
    assert len(other.calls) == 1


def test_sentences_are_kept_too(counting: Counting) -> None:
    encoder = CachedEncoder(counting)
    bare = counting.inner.sentence_vectors(SENTENCES, layers=[2, 3])
    for _ in range(2):
        found = encoder.sentence_vectors(SENTENCES, layers=[2, 3])
        assert found.dtype == np.float32 and (found == bare.astype(np.float16)).all()
    assert counting.calls == [[2, 3]]
    encoder.sentence_vectors(SENTENCES, layers=[2], pooling="first")
    assert counting.calls[1:] == [[2]]


def test_sentences_are_made_in_parts_and_read_a_layer_at_a_time(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = counting.inner.sentence_vectors(SENTENCES, layers=[3, 1]).astype(np.float16)
    monkeypatch.setattr("calque.encoders.anchors.BLOCK_NUMBERS", 3 * 4 * counting.width)
    encoder = CachedEncoder(counting)
    for _ in range(2):
        layers = list(cached.sentence_layers(encoder, SENTENCES, layers=[3, 1]))
        assert len(layers) == 2
        np.testing.assert_allclose(np.stack(layers), bare, atol=2e-3)
    assert counting.calls == [[3, 1]] * 3, "seven sentences, three at a time, once"
    plain = list(cached.sentence_layers(counting, SENTENCES, layers=[3, 1]))
    assert (np.stack(plain).astype(np.float16) == bare).all()


def test_values_beyond_half_precision_stay_finite(plain: Encoder) -> None:
    encoder = CachedEncoder(Counting(plain, 1e6))
    bare = plain.word_vectors(SENTENCES, layers=[3]).vectors * np.float32(1e6)
    for _ in range(2):
        found = encoder.word_vectors(SENTENCES, layers=[3])
        assert found.vectors[0].dtype == np.float32
        np.testing.assert_array_equal(found.layer(3), bare[0])
    assert rounded(np.array([65504.0])).dtype == np.float16
    assert rounded(np.array([-65520.0])).dtype == np.float32


@pytest.mark.parametrize("pattern", ["vectors.0.npy", "present.npy", "about.json"])
@pytest.mark.parametrize("harm", ["cut", "empty", "gone"])
def test_a_broken_entry_is_made_again(counting: Counting, pattern: str, harm: str) -> None:
    encoder = CachedEncoder(counting)
    expected = encoder.word_vectors(SENTENCES, layers=[1]).layer(1)
    (path,) = files(encoder.cache, pattern)
    whole = path.read_bytes()
    path.unlink()
    if harm != "gone":
        path.write_bytes(whole[: len(whole) // 2] if harm == "cut" else b"")
    for _ in range(2):
        assert (encoder.word_vectors(SENTENCES, layers=[1]).layer(1) == expected).all()
    assert counting.calls == [[1], [1]]


def test_parts_fit_together(counting: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large requests are encoded and written in parts."""
    monkeypatch.setattr(anchors, "BLOCK_NUMBERS", 24 * 4 * 20)  # twenty words at all layers
    encoder = CachedEncoder(counting)
    bare = counting.inner.word_vectors(SENTENCES, layers=[0, 3])
    for _ in range(2):
        found = encoder.word_vectors(SENTENCES, layers=[0, 3])
        assert (found.present == bare.present).all() and dict(found.dropped) == dict(bare.dropped)
        assert found.vectors.shape == bare.vectors.shape
        np.testing.assert_allclose(np.asarray(found.vectors), bare.vectors, atol=2e-3)
    assert len(counting.calls) > 2 and len(files(encoder.cache, "vectors.1.npy")) == 2


def test_a_cache_that_is_too_small_still_gives_vectors(counting: Counting, tmp_path: Path) -> None:
    encoder = CachedEncoder(counting, Cache(tmp_path, limit=1))
    bare = counting.inner.word_vectors(SENTENCES, layers=[0, 1, 3])
    found = encoder.word_vectors(SENTENCES, layers=[0, 1, 3])
    assert (np.asarray(found.vectors) == bare.vectors.astype(np.float16)).all()
    assert len(encoder.cache.entries()) <= 1


def test_a_cache_that_cannot_be_written_is_said_once_and_read(
    counting: Counting,
    shut: Callable[[Path], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is in it is found; what is not is kept until the process ends, somewhere else."""
    expected = CachedEncoder(counting, Cache(tmp_path / "cache")).word_vectors(SENTENCES, layers=[1]).layer(1)
    shut(tmp_path / "cache")
    counting.calls.clear()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with shown():
        for _ in range(2):  # another encoder finds what the first one made
            encoder = CachedEncoder(counting, Cache(tmp_path / "cache"))
            for layers in ([1], [0, 1], [2]):
                found = encoder.word_vectors(SENTENCES, layers=layers)
                assert 1 not in layers or (found.layer(1) == expected).all()
    told = capsys.readouterr().err
    assert counting.calls == [[0], [2]] and told.count("cannot be written") == 1
    assert "set CALQUE_CACHE to a folder of your own" in told
    assert encoder.cache.prune(0) == [] and len(encoder.cache.entries()) == 1
    (kept,) = temporary.iterdir()
    assert kept.name.endswith(".partial"), "swept up by the next process if this one is killed"


def test_a_cache_that_cannot_be_made_is_no_hindrance(
    counting: Counting, shut: Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    shut(tmp_path / "home")
    encoder = CachedEncoder(counting, Cache(tmp_path / "home" / ".cache" / "calque"))
    bare = counting.inner.word_vectors(SENTENCES, layers=[1]).vectors.astype(np.float16)
    for _ in range(2):
        assert (np.asarray(encoder.word_vectors(SENTENCES, layers=[1]).vectors) == bare).all()
    assert counting.calls == [[1]]


def test_a_file_in_place_of_the_cache_is_named(counting: Counting, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a letter")
    encoder = CachedEncoder(counting, Cache(tmp_path / "file"))
    told = r"cannot be written: \S*file/vectors is a file or lies below one \(set CALQUE_CACHE to a folder of"
    with pytest.raises(CannotWrite, match=told):
        encoder.word_vectors(SENTENCES, layers=[1])
    with pytest.raises(CannotWrite, match=told):
        encoder.cache.prune(0)
    assert counting.calls == [], "nothing is computed first"


def test_an_interrupted_run_leaves_nothing_behind(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = CachedEncoder(counting)
    monkeypatch.setattr(counting.inner, "word_vectors", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        encoder.word_vectors(SENTENCES, layers=[0, 1])
    assert list(encoder.cache.root.iterdir()) == []


def test_a_stack_of_layers_is_an_array(counting: Counting) -> None:
    found = CachedEncoder(counting).word_vectors(SENTENCES, layers=[0, 2])
    whole = counting.inner.word_vectors(SENTENCES, layers=[0, 2]).vectors.astype(np.float16)
    stack = found.vectors
    assert len(stack) == 2 and stack.shape == whole.shape and stack.dtype == whole.dtype
    assert (stack[:, 3:5] == whole[:, 3:5]).all() and (stack[-1] == whole[-1]).all()
    assert (np.stack([2 * layer for layer in stack]) == 2 * whole).all()
    assert (stack.astype(np.float32) == whole).all()
    np.testing.assert_allclose(stack @ np.eye(24), whole)


def test_it_is_the_inner_encoder_otherwise(plain: Encoder) -> None:
    encoder = CachedEncoder(plain)
    assert (encoder.inner, encoder.name, encoder.width, encoder.depth) == (plain, "xlm-roberta", 24, 3)
    assert encoder.languages is None and encoder.fingerprint == plain.fingerprint
    batch = encoder.batch(SENTENCES)
    assert encoder.states(batch, [1]).hidden[0].requires_grad
    assert "xlm-roberta, 7 en sentences, words mean, layer 2" in [
        entry.label
        for _ in [encoder.word_vectors(SENTENCES, layers=[2])]
        for entry in encoder.cache.entries()
    ]


def test_nothing_asked_for(plain: Encoder) -> None:
    encoder, none = CachedEncoder(plain), np.zeros(0, np.int32)
    assert encoder.word_vectors(Sentences.of("en", []), layers=[0]).vectors.shape == (1, 0, 24)
    for _ in range(2):
        assert encoder.word_vectors(SENTENCES, WordIndex(none, none), layers=[0]).vectors.shape == (1, 0, 24)


@pytest.mark.parametrize(
    ("sentence", "said"), [([1, 0], "not ordered"), ([0, 7], "there are 7"), ([-1, 0], "-1")]
)
def test_words_that_cannot_be_asked_for(plain: Encoder, sentence: list[int], said: str) -> None:
    asked = WordIndex(np.array(sentence, np.int32), np.zeros(2, np.int32))
    with pytest.raises(BadInput, match=said):
        CachedEncoder(plain).word_vectors(SENTENCES, asked, layers=[0])


def test_a_flipped_byte_is_seen_and_the_vectors_made_again(
    counting: Counting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = CachedEncoder(counting)
    whole = np.asarray(encoder.word_vectors(SENTENCES, layers=[0, 3]).vectors)
    for path in files(encoder.cache, "*"):
        if path.name == "finished.json":  # says what it is and when it was used: nothing rests on it
            continue
        for place in places(6):
            monkeypatch.setattr(calque.files, "_WHOLE", set())  # as another process would find it
            counting.calls.clear()
            with flipped(path, place), shown():
                found = encoder.word_vectors(SENTENCES, layers=[0, 3])
                assert (np.asarray(found.vectors) == whole).all()
                assert len(counting.calls) == 1, f"{path.name} at {place}"
            assert "is damaged: what it held is computed again" in capsys.readouterr().err


def test_an_entry_is_compared_with_its_checksums_once(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Path]()
    monkeypatch.setattr(calque.files, "damage", lambda folder: asked.append(folder))
    for _ in range(3):
        CachedEncoder(counting).word_vectors(SENTENCES, layers=[0])
    assert len(asked) == 1 and len(counting.calls) == 1


@pytest.mark.parametrize("hours", [-30_000, 30_000])
def test_clocks_that_were_wrong_do_not_disturb_the_cache(
    counting: Counting, tmp_path: Path, hours: float
) -> None:
    cache = Cache(tmp_path)
    CachedEncoder(counting, cache).word_vectors(SENTENCES, layers=[0])
    (odd,) = files(cache, "finished.json")
    moment = time.time() + 3600 * hours
    os.utime(odd, (moment, moment))
    CachedEncoder(counting, cache).word_vectors(SENTENCES, layers=[1])
    assert len(counting.calls) == 2 and max(one.used for one in cache.entries()) <= time.time()
    time.sleep(0.02)
    CachedEncoder(counting, cache).word_vectors(SENTENCES, layers=[1])
    size = sum(one.size for one in cache.entries())
    (removed,) = cache.prune(size - 1)
    assert removed.key == odd.parent.name, "what was used longest ago goes first"
