"""Sentence vectors block by block are those of the whole text."""

from pathlib import Path

import numpy as np
import pytest
import tiny_encoders

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.blocks import cut, sentence_blocks
from calque.encoders.cached import CachedEncoder
from calque.files import Cache
from calque.types import Encoder, MapKey, Matrix, Sentences, Shift, SpaceMap

TEXT = Sentences.of("en", [["The", "cat", "sat"], ["a", "dog"], ["it"], ["on", "the", "mat"], ["a", "life"]])


def joined(encoder: Encoder, rows: int) -> np.ndarray:
    return np.concatenate(list(sentence_blocks(encoder, TEXT, rows, layers=[1, 3])), 1)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 9])
def test_blocks_are_the_text(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calque.encoders.anchors.BLOCK_NUMBERS", 2 * 4 * 24)
    plain = tiny_encoders.build("bert")
    cache = Cache(tmp_path)
    kept = CachedEncoder(plain, cache)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(24, 24)))[0].astype(np.float32)
    maps = {MapKey("en", "en", 3): SpaceMap((Matrix(turn), Shift(np.ones(24, np.float32))))}
    for encoder in (plain, kept, AlignedEncoder(kept, maps, "en"), AlignedEncoder(plain, maps, "en")):
        whole = encoder.sentence_vectors(TEXT, layers=[1, 3])
        found = joined(encoder, rows)
        assert found.dtype == np.float32 and np.allclose(found, whole, atol=1e-5)
    assert len(cache.entries()) == 2, "one entry a layer, however many blocks"


def test_cutting() -> None:
    whole = np.random.default_rng(1).normal(size=(10, 2)).astype(np.float32)
    parts = [whole[:3], whole[3:4], whole[4:]]
    for first in range(10):
        for last in range(first + 1, 11):
            assert np.array_equal(cut(parts, first, last), whole[first:last])
