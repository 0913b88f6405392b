"""Separation figures against scikit-learn, known densities, and resampling that computes them anew."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from calque.errors import BadInput
from calque.stats.intervals import bootstrap_mean
from calque.stats.separation import auc, d_prime, overlap, share

NUMBERS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


def drawn(seed: int, n: int, apart: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(size=n) + apart


@given(NUMBERS)
def test_auc_is_that_of_scikit_learn_with_ties(numbers: list[tuple[int, int]]) -> None:
    near, far = np.array(numbers, float).T
    truth = np.repeat([0, 1], len(near))
    assert auc(near, far).mean() == pytest.approx(roc_auc_score(truth, np.concatenate([near, far])))


@pytest.mark.parametrize("apart", [0.5, 1, 2, 4])
def test_overlap_of_two_bells_is_the_area_under_both(apart: float) -> None:
    assert overlap(*drawn(0, 20_000, apart)).mean() == pytest.approx(2 * norm.cdf(-apart / 2), abs=0.012)


def test_overlap_of_a_narrow_bell_in_a_wide_one() -> None:
    """Densities that cross twice: no threshold tells them apart, but the area is known."""
    rng = np.random.default_rng(1)
    grid = np.linspace(-20, 20, 40_001)
    area = np.minimum(norm.pdf(grid), norm.pdf(grid, scale=3)).sum() * (grid[1] - grid[0])
    assert overlap(rng.normal(size=20_000), 3 * rng.normal(size=20_000)).mean() == pytest.approx(
        area, abs=0.015
    )


def test_overlap_at_the_ends() -> None:
    near, far = drawn(2, 5000, 0)
    assert overlap(near, far).mean() > 0.95
    assert overlap(near, near).mean() == 1
    assert overlap(near, far + 100).mean() == 0
    assert overlap(np.ones(9), np.ones(9)).mean() == 1 and auc(np.ones(9), np.ones(9)).mean() == 0.5


def test_a_change_of_scale_changes_neither_auc_nor_overlap() -> None:
    near, far = drawn(3, 300, 1)
    for figure in (auc, overlap):
        assert np.array_equal(figure(np.exp(near), np.exp(far)), figure(near, far))
    assert d_prime(5 * near + 2, 5 * far + 2).mean() == pytest.approx(d_prime(near, far).mean())


def test_d_prime_is_the_distance_of_the_means_in_standard_deviations() -> None:
    near, far = drawn(4, 50, 1.5)
    expected = (far.mean() - near.mean()) / np.sqrt((near.var() + far.var()) / 2)
    assert d_prime(near, far).mean() == pytest.approx(expected)


def test_shares() -> None:
    part, whole = np.array([1.0, 0.0, 5.0]), np.array([2.0, 1.0, 7.0])
    assert share(part, whole).mean() == pytest.approx(0.6)


@pytest.mark.parametrize("figure", [auc, overlap, d_prime, share])
def test_resampling_values_is_nearly_resampling_items_and_computing_anew(
    figure: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> None:
    rng = np.random.default_rng(5)
    near, far = rng.gamma(3, 1, 400), rng.gamma(6, 1, 400)
    found = bootstrap_mean(figure(near, far), np.arange(400), seed=1)
    anew = [figure(near[at], far[at]).mean() for at in rng.integers(0, 400, (1000, 400))]
    low, high = np.quantile(anew, [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.15 * (high - low))


@settings(max_examples=50)
@given(NUMBERS)
def test_values_are_numbers_whatever_the_distances(numbers: list[tuple[int, int]]) -> None:
    near, far = np.array(numbers, float).T
    for figure in (auc, overlap):
        values = figure(near, far)
        assert np.isfinite(values).all() and -1e-9 <= values.mean() <= 1 + 1e-9


def test_bad_input_is_told() -> None:
    with pytest.raises(BadInput, match="the same"):
        d_prime(np.full(4, 0.3), np.full(4, 0.3))
    with pytest.raises(BadInput, match="nothing"):
        share(np.zeros(3), np.zeros(3))
    with pytest.raises(BadInput, match="two numbers each"):
        auc([1.0], [1.0, 2.0])
    with pytest.raises(BadInput, match="NaN"):
        overlap([np.nan], [1.0])
