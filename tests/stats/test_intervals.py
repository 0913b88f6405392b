"""Bootstrap intervals against SciPy, known coverage, and their own brute-force twin."""

import tracemalloc

import numpy as np
import pytest
import scipy.stats

from calque.errors import BadInput, BadSetting
from calque.stats.intervals import bootstrap_groups, bootstrap_mean, bootstrap_ratio, bootstrap_ratios


def test_single_items_agree_with_scipy() -> None:
    values = np.random.default_rng(3).random(200)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    ours = bootstrap_mean(values, np.arange(200), rounds=20_000)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=2e-3)


def test_clusters_agree_with_scipy_on_ratios() -> None:
    rng = np.random.default_rng(5)
    hits, sizes = rng.integers(0, 5, 80), rng.integers(5, 20, 80)
    theirs = scipy.stats.bootstrap(
        (hits, sizes),
        lambda a, b, axis: a.sum(axis) / b.sum(axis),
        n_resamples=20_000,
        paired=True,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    ours = bootstrap_ratio(hits, sizes, rounds=20_000)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=3e-3)
    items = np.concatenate([np.arange(n) < h for h, n in zip(hits, sizes, strict=True)])
    assert bootstrap_mean(items, np.repeat(np.arange(80) * 7 - 3, sizes), rounds=20_000) == ours


def test_items_of_a_sentence_stay_together() -> None:
    """Copies of an item in its own sentence add nothing: the interval must not shrink."""
    values = np.random.default_rng(0).integers(0, 2, 50)
    once = bootstrap_mean(values, np.arange(50))
    assert bootstrap_mean(np.repeat(values, 9), np.repeat(np.arange(50), 9)) == once
    apart = bootstrap_mean(np.repeat(values, 9), np.arange(450))
    assert apart.high - apart.low < 0.5 * (once.high - once.low)


def test_groups_are_the_same_as_one_by_one() -> None:
    rng = np.random.default_rng(1)
    values, cluster, groups = rng.random(300), rng.integers(0, 40, 300), rng.integers(-1, 3, 300)
    intervals = bootstrap_groups(values, cluster, groups, seed=4)
    _, place = np.unique(cluster, return_inverse=True)
    for group, interval in enumerate(intervals):
        inside = groups == group
        sums = np.bincount(place, values * inside)
        one = bootstrap_ratio(sums, np.bincount(place, inside), seed=4)
        assert (one.low, one.high) == pytest.approx((interval.low, interval.high))
    assert len(intervals) == 3


def test_a_group_in_one_sentence_only() -> None:
    """Most resamples lack it; the rest say that it does not vary."""
    [interval] = bootstrap_ratios([[0.0] * 9 + [3.0]], [[0.0] * 9 + [4.0]])
    assert (interval.low, interval.high) == (0.75, 0.75)


def test_seed_and_level() -> None:
    values, cluster = np.random.default_rng(0).random(100), np.arange(100) // 3
    assert bootstrap_mean(values, cluster, seed=1) == bootstrap_mean(values, cluster, seed=1)
    assert bootstrap_mean(values, cluster, seed=1) != bootstrap_mean(values, cluster, seed=2)
    wide, narrow = (bootstrap_mean(values, cluster, level=level) for level in (0.99, 0.5))
    assert wide.low < narrow.low < values.mean() < narrow.high < wide.high


def test_memory_does_not_grow_with_rounds() -> None:
    sums, sizes = np.ones(20_000), np.ones(20_000)
    peaks = []
    for rounds in (200, 800):
        tracemalloc.start()
        bootstrap_ratio(sums, sizes, rounds=rounds)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.slow
def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """400 worlds of 150 sentences whose words share a sentence effect; 95 % should hold the true mean."""
    rng, held = np.random.default_rng(0), 0
    for world in range(400):
        sizes = rng.integers(2, 20, 150)
        chance = np.repeat(rng.beta(2, 2, 150), sizes)
        interval = bootstrap_mean(
            rng.random(len(chance)) < chance, np.repeat(np.arange(150), sizes), seed=world
        )
        held += interval.low <= 0.5 <= interval.high
    assert 0.91 <= held / 400 <= 0.98


@pytest.mark.parametrize(
    ("values", "cluster", "what"),
    [
        ([], [], "no items"),
        ([1.0], [1, 2], "each item"),
        ([np.nan], [0], "NaN"),
    ],
)
def test_bad_items(values: list[float], cluster: list[int], what: str) -> None:
    with pytest.raises(BadInput, match=what):
        bootstrap_mean(values, cluster)


def test_bad_settings() -> None:
    with pytest.raises(BadInput, match="group 1 has no items"):
        bootstrap_ratios([[1.0], [0.0]], [[1.0], [0.0]])
    with pytest.raises(BadInput, match="no intervals"):
        bootstrap_ratio([1.0, 2.0], [1.0])
    with pytest.raises(BadInput, match="no group"):
        bootstrap_groups([1.0], [0], [-1])
    for wrong in ({"rounds": 0}, {"level": 1.0}):
        with pytest.raises(BadSetting, match="rounds must be at least 1 and level"):
            bootstrap_mean([1.0, 0.0], [0, 1], **wrong)
