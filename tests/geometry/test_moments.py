"""Moments against whole-array sums, however the pairs are cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.geometry.moments import PairMoments


def pairs(n: int, d: int, seed: int = 0, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(offset, 1, (n, d)), rng.normal(-offset, 2, (n, d))


def gathered(s: np.ndarray, t: np.ndarray, cuts: list[int]) -> PairMoments:
    moments = PairMoments()
    for a, b in zip(np.split(s, cuts), np.split(t, cuts), strict=True):
        moments.add(a, b)
    return moments


def assert_same(a: PairMoments, b: PairMoments) -> None:
    assert a.count == b.count
    for name in ("source_mean", "target_mean", "source_variance", "target_variance"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-12)
    for name in ("source", "target", "cross"):
        for centred in (False, True):
            ours, theirs = getattr(a, name)(centred=centred), getattr(b, name)(centred=centred)
            np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_whole_array_sums() -> None:
    s, t = pairs(20_000, 7, offset=3)
    moments = gathered(s.astype(np.float32), t.astype(np.float32), [1, 9000])
    s, t = s.astype(np.float32).astype(np.float64), t.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(moments.cross(), t.T @ s, rtol=1e-12)
    np.testing.assert_allclose(moments.source(), s.T @ s, rtol=1e-12)
    np.testing.assert_allclose(moments.target(centred=True), len(t) * np.cov(t.T, bias=True), rtol=1e-9)
    np.testing.assert_allclose(moments.source_variance, s.var(0))
    assert moments.source_trace() == pytest.approx(np.trace(s.T @ s))
    assert moments.source_trace(centred=True) == pytest.approx(np.trace(moments.source(centred=True)))


@given(st.lists(st.integers(0, 40), max_size=6), st.integers(0, 1000))
def test_cuts_and_merges_do_not_matter(cuts: list[int], seed: int) -> None:
    s, t = pairs(40, 3, seed, offset=2)
    whole = gathered(s, t, [])
    assert_same(gathered(s, t, sorted(cuts)), whole)
    left, right = gathered(s[:13], t[:13], []), gathered(s[13:], t[13:], [])
    left.merge(right)
    assert_same(left, whole)
    assert_same(PairMoments(), gathered(s[:0], t[:0], []))


def test_far_from_the_origin_nothing_is_lost() -> None:
    s, t = pairs(5000, 4)
    near, far = gathered(s, t, [100, 2000]), gathered(s + 1e6, t - 1e6, [100, 2000])
    np.testing.assert_allclose(far.cross(centred=True), near.cross(centred=True), rtol=1e-6, atol=1e-4)


def test_merging_does_not_share_memory() -> None:
    s, t = pairs(10, 2)
    one, other = gathered(s, t, []), PairMoments()
    other.merge(one)
    other.add(s, t)
    assert_same(one, gathered(s, t, []))


def test_swapped_roles() -> None:
    s, t = pairs(30, 3)
    assert_same(gathered(s, t, [7]).swapped(), gathered(t, s, []))
    some = PairMoments(["source"])
    some.add(s, t)
    np.testing.assert_allclose(some.swapped().target(), s.T @ s)


def test_only_the_products_asked_for() -> None:
    moments = PairMoments(["cross"])
    moments.add(*pairs(5, 2))
    with pytest.raises(ValueError, match="not gathered"):
        moments.source()


def test_bad_vectors() -> None:
    moments = PairMoments()
    with pytest.raises(BadInput, match="one shape"):
        moments.add(np.zeros((2, 3)), np.zeros((3, 3)))
    with pytest.raises(BadInput, match="NaN"):
        moments.add(np.full((2, 3), np.nan), np.zeros((2, 3)))
    with pytest.raises(BadInput, match="infinity"):
        moments.add(np.zeros((2, 3)), np.array([[0.0, np.inf, 0.0], [0.0, 0.0, 0.0]]))
    moments.add(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(BadInput, match="2 dimensions after vectors of 3"):
        moments.add(np.zeros((2, 2)), np.zeros((2, 2)))
