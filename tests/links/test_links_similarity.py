"""Similarity linkers against plain loops, and against a planted answer."""

from dataclasses import replace

import numpy as np
import pytest

from calque.errors import BadSetting
from calque.links import similarity
from calque.links.similarity import SimilarityLinker, SimilarityMethod, iterative, mutual
from calque.types import Bitext, WordPairs
from planted import planted

SHAPES = [(5, 7), (2, 6), (1, 1), (8, 3), (3, 8)]


def padded(seed: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Random matrices of several sizes, and the same as one batch."""
    rng = np.random.default_rng(seed)
    single = [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]
    batch = np.full((len(SHAPES), 8, 8), -np.inf, np.float32)
    real = np.zeros(batch.shape, bool)
    for k, matrix in enumerate(single):
        batch[k, : matrix.shape[0], : matrix.shape[1]] = matrix
        real[k, : matrix.shape[0], : matrix.shape[1]] = True
    return single, batch, real


def links_of(batch: np.ndarray, k: int) -> set[tuple[int, int]]:
    return set(map(tuple, np.argwhere(batch[k]).tolist()))


@pytest.mark.parametrize("seed", range(5))
def test_mutual_is_mutual(seed: int) -> None:
    single, batch, real = padded(seed)
    found = mutual(batch, real)
    for k, matrix in enumerate(single):
        n, m = matrix.shape
        expected = {
            (i, j)
            for i in range(n)
            for j in range(m)
            if matrix[i, j] == max(matrix[i]) and matrix[i, j] == max(matrix[:, j])
        }
        assert links_of(found, k) == expected


def itermax(matrix: np.ndarray, rounds: int) -> set[tuple[int, int]]:
    """Sabet et al. 2020 on one matrix of positive similarities, with masks multiplied in as they do."""
    n, m = matrix.shape
    links = np.eye(m)[matrix.argmax(1)] * np.eye(n)[matrix.argmax(0)].T
    if min(n, m) <= 2:
        return set(map(tuple, np.argwhere(links).tolist()))
    for _ in range(rounds - 1):
        free_a, free_b = 1 - links.sum(1).clip(0, 1)[:, None], 1 - links.sum(0).clip(0, 1)[None]
        if free_a.sum() < 1 or free_b.sum() < 1:
            break
        allowed = 1 - (1 - free_a) * (1 - free_b)
        seen = matrix * (0.9 * free_a + 0.9 * free_b).clip(0, 0.9)
        links = links + np.eye(m)[seen.argmax(1)] * allowed * (np.eye(n)[seen.argmax(0)].T * allowed)
    return set(map(tuple, np.argwhere(links).tolist()))


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_iterative_is_itermax(seed: int, rounds: int) -> None:
    single, batch, real = padded(seed)
    found = iterative(batch, real, rounds)
    for k, matrix in enumerate(single):
        assert links_of(found, k) == itermax(matrix - single[k].min() + 0.01, rounds)


def test_softmax_is_two_softmaxes() -> None:
    from scipy.special import softmax

    single, batch, real = padded(0)
    there, back = similarity.probabilities(batch, real)
    for k, matrix in enumerate(single):
        n, m = matrix.shape
        np.testing.assert_allclose(there[k, :n, :m], softmax(matrix, 1), rtol=1e-5)
        np.testing.assert_allclose(back[k, :n, :m], softmax(matrix, 0), rtol=1e-5)
    assert not there[~real].any()
    assert not back[~real].any()


def shared_space() -> tuple[SimilarityLinker, WordPairs]:
    """An encoder that gives translations one vector, and the links it should find."""
    encoder, gold, _ = planted(types=300, width=32, sentences=300)
    pairs = gold["xx"]
    strings = sorted(pairs.types())
    tables = {"en": encoder.tables["en"], "xx": {b: encoder.tables["en"][a] for a, b in strings}}
    for word in encoder.tables["xx"]:
        tables["xx"].setdefault(word, np.zeros(32))
    return SimilarityLinker(replace(encoder, tables=tables), layer=1), pairs


@pytest.mark.parametrize("method", SimilarityMethod)
def test_planted_links_are_found(method: SimilarityMethod) -> None:
    linker, gold = shared_space()
    linker = replace(linker, method=method, threshold=0.4)
    found = linker.link(gold.bitext)
    assert found.linker == f"{method}/planted/layer 1"
    mine = set(zip(found.sentence.tolist(), found.source.tolist(), found.target.tolist(), strict=True))
    true = set(zip(gold.sentence.tolist(), gold.source.tolist(), gold.target.tolist(), strict=True))
    assert len(mine & true) > 0.8 * len(true)
    assert len(mine & true) > 0.8 * len(mine)
    assert ((found.score >= 0) & (found.score <= 1)).all()


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    linker, gold = shared_space()
    whole = linker.link(gold.bitext)
    monkeypatch.setattr(similarity, "CHUNK", 7)
    parts = linker.link(gold.bitext)
    np.testing.assert_array_equal(whole.sentence, parts.sentence)
    np.testing.assert_array_equal(whole.source, parts.source)
    np.testing.assert_array_equal(whole.target, parts.target)


def test_words_the_encoder_cannot_see_get_no_link() -> None:
    linker, gold = shared_space()
    hidden = gold.bitext.source[0][0]
    blind = replace(linker, encoder=replace(linker.encoder, missing=frozenset({hidden})))
    found = blind.link(gold.bitext)
    strings = gold.bitext.source.vocabulary.strings
    assert len(found) > 0
    assert hidden not in {strings[i] for i in found.source_ids}


def test_a_sentence_of_unseen_words_is_empty() -> None:
    linker, _ = shared_space()
    word = next(iter(linker.encoder.tables["en"]))
    text = Bitext.of(("en", "xx"), [[word, word]], [[next(iter(linker.encoder.tables["xx"]))]])
    blind = replace(linker, encoder=replace(linker.encoder, missing=frozenset({word})))
    for method in SimilarityMethod:
        assert len(replace(blind, method=method).link(text)) == 0


@pytest.mark.parametrize("wrong", [{"layer": 3}, {"layer": -1}, {"threshold": 1.0}, {"rounds": 0}])
def test_settings_out_of_bounds(wrong: dict[str, float]) -> None:
    linker, _ = shared_space()
    with pytest.raises(BadSetting):
        replace(linker, **wrong)
