"""Correlations against scipy, their p-values against every order, their intervals against planted truth."""

from itertools import permutations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import BadInput, BadSetting
from calque.stats.correlation import EXACT, KINDS, pearson, spearman

POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(-50, 50)), min_size=3, max_size=20).filter(
    lambda points: all(len(set(side)) > 1 for side in zip(*points, strict=True))
)


@settings(max_examples=40)
@given(POINTS)
def test_coefficients_are_those_of_scipy_with_ties(points: list[tuple[int, int]]) -> None:
    x, y = np.array(points, float).T
    assert pearson(x, y, rounds=9).value == pytest.approx(scipy.stats.pearsonr(x, y).statistic)
    assert spearman(x, y, rounds=9).value == pytest.approx(scipy.stats.spearmanr(x, y).statistic)


@pytest.mark.parametrize("kind", KINDS)
def test_few_points_have_the_exact_p_value_of_scipy(kind: str) -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 6))
    value = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr}[kind]
    theirs = scipy.stats.permutation_test(
        (x,), lambda x: abs(value(x, y).statistic), permutation_type="pairings", alternative="greater",
        n_resamples=np.inf,
    )  # fmt: skip
    found = KINDS[kind](x, y)
    assert found.exact and found.p == pytest.approx(theirs.pvalue)


def test_the_exact_p_value_counts_every_order() -> None:
    x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 5])
    value = np.corrcoef(x, y)[0, 1]
    far = [
        abs(np.corrcoef(x, y[list(order)])[0, 1]) >= abs(value) - 1e-12 for order in permutations(range(4))
    ]
    assert pearson(x, y).p == np.mean(far)
    assert pearson([1, 2, 3], [1, 2, 3]).p == pytest.approx(2 / 6), "three points never prove anything"


def test_many_points_have_nearly_the_p_value_of_students_test() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=40)
    y = 0.35 * x + rng.normal(size=40)
    found = pearson(x, y, rounds=20_000)
    assert not found.exact and found.p == pytest.approx(scipy.stats.pearsonr(x, y).pvalue, abs=0.01)
    assert found.count == 40 > EXACT


def test_the_interval_is_that_of_scipys_bootstrap() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=60)
    y = x + rng.normal(size=60)
    theirs = scipy.stats.bootstrap(
        (x, y), lambda x, y, axis: scipy.stats.pearsonr(x, y, axis=axis).statistic, paired=True,
        method="percentile", n_resamples=5000, rng=rng,
    ).confidence_interval  # fmt: skip
    found = pearson(x, y)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_a_planted_correlation_is_within_its_interval() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=2000)
    y = 0.6 * x + 0.8 * rng.normal(size=2000)
    found = pearson(x, y, rounds=500)
    assert found.low < 0.6 < found.high and found.high - found.low < 0.08 and found.p < 0.01
    assert spearman(np.exp(x), y, rounds=9).value == pytest.approx(spearman(x, y, rounds=9).value)


def test_the_same_seed_gives_the_same_answer_and_a_line_is_a_line() -> None:
    x = np.arange(12.0)
    assert pearson(x, x**2, seed=5) == pearson(x, x**2, seed=5) != pearson(x, x**2, seed=6)
    assert (found := pearson(x, -3 * x)).value == pytest.approx(-1) and found.p < 0.001
    assert found.low == pytest.approx(-1) and found.high == pytest.approx(-1)


@settings(max_examples=60)
@given(POINTS, st.integers(1, 5))
def test_no_points_give_anything_but_numbers(points: list[tuple[int, int]], rounds: int) -> None:
    x, y = np.array(points, float).T
    for found in (pearson(x, y, rounds=rounds), spearman(x, y, rounds=rounds)):
        assert -1 <= found.low <= found.high <= 1 and 0 < found.p <= 1


@pytest.mark.parametrize(
    "x, y, told",
    [
        ([1, 2], [3, 4], "3 points at least, and there are 2"),
        ([], [], "there are 0"),
        ([1, 2, 3], [4, 4, 4], "all 3 points have the same value 4"),
        ([0.1 + 0.2, 0.3, 0.3], [1, 2, 3], "the same value"),
        ([1, 2, np.nan], [1, 2, 3], "NaN"),
        ([1, 2, 3], [1, 2], "two numbers each"),
    ],
)
def test_what_has_no_correlation_is_told(x: list[float], y: list[float], told: str) -> None:
    for kind in KINDS.values():
        with pytest.raises(BadInput, match=told):
            kind(x, y)
    with pytest.raises(BadSetting, match="rounds"):
        pearson([1, 2, 3], [1, 2, 4], rounds=0)
