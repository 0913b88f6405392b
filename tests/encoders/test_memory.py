"""Where memory does not suffice: smaller batches, told and recorded, and an end where a row is too long."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scarce import scarce
from tiny_encoders import TEXT, build

from calque.circumstances import circumstances, note, with_circumstances
from calque.encoders.anchors import anchors
from calque.encoders.cached import CachedEncoder
from calque.encoders.memory import halving
from calque.encoders.wordtypes import Types
from calque.errors import LackOfMemory, out_of_memory
from calque.files import Cache
from calque.progress import shown
from calque.store import load_results, save_results
from calque.types import Result, Sentences

SENTENCES = Sentences.of("en", [line.split()[: 3 + k] for k, line in enumerate(TEXT[:8])])
ERRORS = [None, MemoryError(), torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")]


@pytest.mark.parametrize("error", ERRORS)
def test_vectors_are_those_of_smaller_batches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Any
) -> None:
    plain, small, tight = build("bert"), build("bert", batch_tokens=64), build("bert", batch_tokens=256)
    before = tight.fingerprint
    read = scarce(tight.body, 70, monkeypatch, error)
    with circumstances() as met, shown():
        found = tight.word_vectors(SENTENCES, layers=[0, 3])
    np.testing.assert_array_equal(found.vectors, small.word_vectors(SENTENCES, layers=[0, 3]).vectors)
    np.testing.assert_allclose(found.vectors, plain.word_vectors(SENTENCES, layers=[0, 3]).vectors, atol=1e-5)
    assert met == {"batch": "64"} and max(read) <= 64
    assert tight.fingerprint == small.fingerprint != before
    assert capsys.readouterr().err.splitlines() == [
        "not enough memory for 256 pieces at a time: 128 from here on",
        "not enough memory for 128 pieces at a time: 64 from here on",
    ]


def test_the_cache_does_not_mix_batches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # In parts: the first fits, a later one does not.
    monkeypatch.setattr("calque.encoders.anchors.BLOCK_NUMBERS", 24 * 4 * 32)
    small, tight = build("bert", batch_tokens=64), build("bert", batch_tokens=128)
    expected = CachedEncoder(small, Cache(tmp_path / "small")).word_vectors(SENTENCES, layers=[0, 3])
    read = scarce(tight.body, 70, monkeypatch)
    cache = Cache(tmp_path / "tight")
    found = CachedEncoder(tight, cache).word_vectors(SENTENCES, layers=[0, 3])
    assert tight.batch_tokens == 64 and read[0] <= 70
    np.testing.assert_array_equal(np.asarray(found.vectors), np.asarray(expected.vectors))
    keys = {entry.key for entry in cache.entries()}
    assert keys == {entry.key for entry in Cache(tmp_path / "small").entries()}
    # One that was not short of memory finds none of them.
    CachedEncoder(build("bert", batch_tokens=128), cache).word_vectors(SENTENCES, layers=[0, 3])
    assert len(cache.entries()) == 2 * len(keys)


def test_anchors_do_not_mix_batches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    types = Types.of_text(SENTENCES)
    small, tight = build("bert", batch_tokens=64), build("bert", batch_tokens=128)
    expected = anchors(small, types, layers=[0, 2], cache=Cache(tmp_path / "small"))
    scarce(tight.body, 70, monkeypatch)
    found = anchors(tight, types, layers=[0, 2], cache=Cache(tmp_path / "tight"))
    for a, b in zip(found.vectors, expected.vectors, strict=True):
        np.testing.assert_array_equal(a, b)
    keys = [{one.key for one in Cache(tmp_path / name).entries()} for name in ("small", "tight")]
    assert keys[0] == keys[1]


def test_one_row_that_does_not_fit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tight = build("bert")
    scarce(tight.body, 12, monkeypatch)
    long = Sentences.of("de", [["die"], TEXT[1].split()])
    with pytest.raises(LackOfMemory, match=r"one row of \d+ pieces, which begins .Die Katze.*max-length"):
        tight.word_vectors(long, layers=[3])


def test_other_errors_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tight = build("bert")
    scarce(tight.body, 12, monkeypatch, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="mat1"):
        tight.word_vectors(SENTENCES, layers=[3])
    assert not out_of_memory(ValueError("out of memory")) and out_of_memory(RuntimeError("std::bad_alloc"))


def test_states_without_gradients_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tight = build("bert")
    batch = tight.batch(SENTENCES)
    with torch.no_grad():
        whole = tight.states(batch, [1, 3]).hidden
        read = scarce(tight.body, batch.pieces.numel() // 3, monkeypatch)
        with circumstances() as met:
            parts = tight.states(batch, [1, 3]).hidden
    assert len(read) == 4 and met == {"portions": "4"}
    for a, b in zip(parts, whole, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=0)
    with pytest.raises(LackOfMemory):
        halving(lambda rows: (_ for _ in ()).throw(MemoryError()), 3)


def test_figures_carry_it(tmp_path: Path) -> None:
    one = Result("words", "accuracy", 0.5, ("en", "de"), "e5", signature="task:words|layer:1|v:0.1.0")
    save_results(tmp_path / "plain.jsonl", [one])
    with circumstances():
        with circumstances():
            note("batch", "512")
            note("batch", "256")
        save_results(tmp_path / "results.jsonl", [one])
        # Put together with others, what was told of a figure stays.
        save_results(tmp_path / "again.jsonl", load_results(tmp_path / "results.jsonl"))
    (found,) = load_results(tmp_path / "results.jsonl")
    assert found.signature == "task:words|layer:1|batch:256|v:0.1.0"
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "results.jsonl").read_bytes()
    assert load_results(tmp_path / "plain.jsonl")[0].signature == one.signature
    assert with_circumstances("") == ""
