"""Neighbours against brute force in double precision, ties and degenerate rows included."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import calque.geometry.search as search_module
from calque.errors import BadInput, BadSetting
from calque.geometry.neighbours import Distinct, Neighbours, Similarity, TwoWay, two_way


def brute(s: np.ndarray, t: np.ndarray, similarity: Similarity, k: int, radius_k: int = 10) -> TwoWay:
    """The formula on whole arrays, rounded as documented, sorted with the lowest row first."""
    a, b = (unit(np.asarray(x, np.float32)).astype(np.float64) for x in (s, t))
    scores = a @ b.T
    r_t = -np.sort(-scores, axis=1)[:, :radius_k].mean(1)[:, None]
    r_s = -np.sort(-scores, axis=0)[:radius_k].mean(0)
    if similarity is Similarity.CSLS:
        scores = 2 * scores - r_t - r_s
    elif similarity is Similarity.MARGIN:
        scores = scores / ((np.maximum(r_t, 0.01) + np.maximum(r_s, 0.01)) / 2)
    scores = np.round(scores * 2**22) / 2**22
    return TwoWay(ranked(scores.astype(np.float32), k), ranked(scores.T.astype(np.float32), k))


def unit(x: np.ndarray) -> np.ndarray:
    norm = torch.linalg.vector_norm(torch.from_numpy(x), dim=1, keepdim=True).numpy()
    return x / np.where(norm > 0, norm, 1)


def ranked(scores: np.ndarray, k: int) -> Neighbours:
    index = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return Neighbours(index, np.take_along_axis(scores, index, 1))


def assert_same(ours: TwoWay, theirs: TwoWay) -> None:
    for way in ("forward", "backward"):
        np.testing.assert_allclose(getattr(ours, way).score, getattr(theirs, way).score, atol=5e-7)
        np.testing.assert_array_equal(getattr(ours, way).index, getattr(theirs, way).index)


def encoder_like(n: int, m: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Paired vectors with a strong common direction, fading components, crowded and lonely regions."""
    rng = np.random.default_rng(seed)
    fading = 1 / np.arange(1, d + 1) ** 0.7
    words = rng.normal(size=(max(n, m), d)) * fading * rng.lognormal(0, 0.8, (max(n, m), 1))
    common = rng.normal(size=d) * 0.2
    noise = rng.normal(size=(2, max(n, m), d)) * fading * 0.4
    return (words + common + noise[0])[:n].astype("f"), (words + common + noise[1])[
        rng.permutation(m)
    ].astype("f")


@pytest.mark.parametrize("similarity", list(Similarity))
@pytest.mark.parametrize(
    ("n", "m", "d", "k"), [(700, 900, 64, 1), (1500, 300, 48, 5), (37, 5, 8, 7), (1, 1, 3, 1)]
)
def test_equals_brute_force(similarity: Similarity, n: int, m: int, d: int, k: int) -> None:
    s, t = encoder_like(n, m, d)
    assert_same(two_way(s, t, similarity=similarity, k=k), brute(s, t, similarity, k))


@pytest.mark.parametrize("block", [1, 64, 100, 4096])
def test_blocks_change_nothing(block: int) -> None:
    s, t = encoder_like(600, 500, 32)
    whole, cut = two_way(s, t, k=3), two_way(s, t, k=3, block=block)
    for way in ("forward", "backward"):
        np.testing.assert_array_equal(getattr(cut, way).index, getattr(whole, way).index)
        np.testing.assert_array_equal(getattr(cut, way).score, getattr(whole, way).score)


SMALL = st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 4))


@settings(deadline=None, max_examples=60)
@given(st.data(), SMALL, st.sampled_from(list(Similarity)), st.integers(1, 6), st.integers(1, 12))
def test_ties_go_to_the_lowest_row(
    data: st.DataObject, shape: tuple[int, int, int], similarity: Similarity, k: int, radius_k: int
) -> None:
    """Few dimensions and few values: equal rows, opposite rows, zero rows, equal scores everywhere."""
    n, m, d = shape
    s, t = (data.draw(arrays(np.float32, (rows, d), elements=st.sampled_from([-1, 0, 1]))) for rows in (n, m))
    ours = two_way(s, t, similarity=similarity, k=k, radius_k=radius_k)
    theirs = brute(s, t, similarity, k, radius_k)
    for way in ("forward", "backward"):
        a, b = getattr(ours, way), getattr(theirs, way)
        np.testing.assert_allclose(a.score, b.score, atol=5e-7)
        # Sums in another order can part scores that are equal on paper; equal rows must never be parted.
        picked = theirs_of(s, t, similarity, radius_k, way)
        np.testing.assert_allclose(np.take_along_axis(picked, a.index, 1), b.score, atol=5e-7)
        candidates = t if way == "forward" else s
        for row in a.index:
            assert_lowest_copies(candidates, row)


def theirs_of(s: np.ndarray, t: np.ndarray, similarity: Similarity, radius_k: int, way: str) -> np.ndarray:
    """All scores of one direction. Shape: (queries, candidates)."""
    found = getattr(brute(s, t, similarity, max(len(s), len(t)), radius_k), way)
    scores = np.empty_like(found.score)
    np.put_along_axis(scores, found.index, found.score, 1)
    return scores


def assert_lowest_copies(candidates: np.ndarray, row: np.ndarray) -> None:
    assert len(set(row)) == len(row)
    for position, index in enumerate(row):
        copies = np.flatnonzero((candidates == candidates[index]).all(1))
        earlier = set(copies[copies < index])
        assert earlier <= set(row[:position])


def test_many_copies_of_few_words() -> None:
    """Static vectors: 2000 tokens of 40 types. Exactly brute force, with exact arithmetic."""
    rng = np.random.default_rng(0)
    types = np.zeros((40, 64), "f")
    for word in types:
        word[rng.choice(64, 4, replace=False)] = 1
    s, t = types[rng.integers(0, 40, 2000)], types[rng.integers(0, 40, 1500)]
    for similarity in Similarity:
        assert_same(two_way(s, t, similarity=similarity, k=4), brute(s, t, similarity, 4))


@pytest.mark.parametrize("similarity", list(Similarity))
def test_only_the_queries_asked_for(similarity: Similarity) -> None:
    s, t = encoder_like(400, 300, 16)
    whole = two_way(s, t, k=2, similarity=similarity)
    rows, columns = np.array([7, 3, 3, 299]), np.zeros(0, np.int64)
    some = two_way(s, t, k=2, queries=(rows, columns), similarity=similarity)
    np.testing.assert_array_equal(some.forward.index, whole.forward.index[rows])
    np.testing.assert_array_equal(some.forward.score, whole.forward.score[rows])
    assert some.backward.index.shape == some.backward.score.shape == (0, 2)
    back = two_way(s, t, k=2, queries=(columns, rows), similarity=similarity)
    np.testing.assert_array_equal(back.backward.index, whole.backward.index[rows])
    np.testing.assert_array_equal(back.backward.score, whole.backward.score[rows])


def test_rows_made_ready_give_the_same() -> None:
    s, t = encoder_like(200, 150, 16)
    t[7] = t[3]
    ready, plain = two_way(Distinct.of(s), Distinct.of(t), k=3), two_way(s, t, k=3)
    np.testing.assert_array_equal(ready.forward.index, plain.forward.index)
    np.testing.assert_array_equal(ready.backward.score, plain.backward.score)


def test_lengths_do_not_matter_and_zero_rows_are_safe() -> None:
    s, t = encoder_like(100, 100, 8)
    scaled = s * np.logspace(-15, 15, 100, dtype="f")[:, None]
    np.testing.assert_array_equal(two_way(scaled, t).forward.index, two_way(s, t).forward.index)
    s[[0, 50]], t[1] = 0, 0
    found = two_way(s, t, similarity=Similarity.COSINE, k=100)
    assert np.isfinite(found.forward.score).all()
    assert (found.forward.score[0] == 0).all()
    np.testing.assert_array_equal(found.forward.index[0], np.arange(100))


def test_torch_and_half_precision_inputs() -> None:
    s, t = encoder_like(50, 60, 8)
    expected = two_way(s.astype(np.float16), t.astype(np.float16))
    found = two_way(torch.from_numpy(s).half(), torch.from_numpy(t).half())
    np.testing.assert_array_equal(found.forward.index, expected.forward.index)


def test_memory_bounds_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger groups, fewer queries and looks at a time, a coarser sketch: the same answers."""
    s, t = encoder_like(900, 800, 48)
    expected = two_way(s, t, k=3)
    for name, value in (
        ("_MAXIMA_BYTES", 20_000),
        ("_VALUES", 500),
        ("_QUERIES", 50),
        ("_SAMPLE", 3),
        ("_ENERGY", 0.3),
        ("_ENERGY", 2.0),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(search_module, name, value)
            found = two_way(s, t, k=3)
        np.testing.assert_array_equal(found.forward.index, expected.forward.index, name)
        np.testing.assert_array_equal(found.backward.score, expected.backward.score, name)


def test_bounds_are_never_below_the_cosine() -> None:
    s, t = (torch.from_numpy(unit(x)) for x in encoder_like(300, 200, 32))
    forward, backward = search_module.bound_both_ways(s, t, device="cpu", block=64)
    for cosine, bounds in ((s @ t.T, forward), (t @ s.T, backward)):
        members = bounds.groups.members
        inside = torch.where(members < 0, -torch.inf, cosine[:, members.clamp(min=0)])
        assert (bounds.maxima[bounds.place].float() + 6e-4 >= inside.amax(2)).all()


def test_csls_undoes_a_hub() -> None:
    """One target near every source takes every cosine query and no CSLS query it does not deserve."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=(200, 20)) + 2
    t = np.concatenate([s + rng.normal(0, 1.5, s.shape), [s.mean(0)]])
    right = {
        similarity: (two_way(s, t, similarity=similarity).forward.index[:, 0] == np.arange(200)).mean()
        for similarity in Similarity
    }
    assert right[Similarity.CSLS] > right[Similarity.COSINE] + 0.1


def test_real_static_tokens(shared_data: Path) -> None:
    """Sentences as bags of character trigrams, a sparse and tied space, both ways against brute force."""
    lines = (shared_data / "bitext" / "tatoeba.en-de.tsv").read_text(encoding="utf-8").splitlines()[:800]
    sides = [np.zeros((800, 128), "f"), np.zeros((800, 128), "f")]
    for row, line in enumerate(lines):
        for side, text in zip(sides, line.split("\t")[:2], strict=True):
            for i in range(len(text) - 2):
                side[row, sum(map(ord, text[i : i + 3])) % 128] += 1
    assert_scores_same(two_way(*sides, k=2), brute(*sides, Similarity.CSLS, 2))


def assert_scores_same(ours: TwoWay, theirs: TwoWay) -> None:
    for way in ("forward", "backward"):
        np.testing.assert_allclose(getattr(ours, way).score, getattr(theirs, way).score, atol=5e-7)
        assert (getattr(ours, way).index == getattr(theirs, way).index).mean() > 0.999


def test_bad_vectors() -> None:
    good = np.ones((3, 2))
    with pytest.raises(BadInput, match="no vectors"):
        two_way(np.zeros((0, 2)), good)
    with pytest.raises(BadInput, match="NaN"):
        two_way(good, np.full((3, 2), np.nan))
    with pytest.raises(BadInput, match="2 and of 3 dimensions"):
        two_way(good, np.ones((3, 3)))
    for wrong in ({"k": 0}, {"radius_k": 0}, {"block": 0}):
        with pytest.raises(BadSetting, match="at least 1"):
            two_way(good, good, **wrong)
