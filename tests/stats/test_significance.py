"""Paired tests against SciPy, exact enumeration, and their own promise under the null hypothesis."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput, BadSetting
from calque.stats.significance import Comparison, holm, match_items, paired, verdict
from calque.types import Items


def test_permutation_agrees_with_scipy_exactly_enumerated() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(10), rng.random(10) + 0.15
    theirs = scipy.stats.permutation_test(
        (b, a), lambda x, y, axis: (x - y).mean(axis), permutation_type="samples", n_resamples=np.inf
    )
    ours = paired(a, b, np.arange(10), rounds=40_000)
    assert ours.p == pytest.approx(theirs.pvalue, abs=0.01)
    assert ours.difference == pytest.approx(b.mean() - a.mean())
    assert ours.low < ours.difference < ours.high and ours.count == 10


def test_permutation_of_sentences_by_enumeration() -> None:
    """All 2⁸ exchanges of whole sentences."""
    rng = np.random.default_rng(2)
    cluster, a, b = np.repeat(np.arange(8), 3), rng.random(24), rng.random(24) + 0.1
    sums = np.bincount(cluster, b - a)
    signs = 1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)
    exact = (np.abs(signs @ sums) >= abs(sums.sum()) - 1e-12).mean()
    assert paired(a, b, cluster, rounds=40_000).p == pytest.approx(exact, abs=0.01)


def test_t_equals_scipy_on_cluster_means() -> None:
    rng = np.random.default_rng(1)
    a, b, cluster = rng.random(60), rng.random(60), np.repeat(np.arange(20), 3)
    means = [x.reshape(20, 3).mean(1) for x in (b, a)]
    ours = paired(a, b, cluster, test="t")
    assert ours.p == pytest.approx(scipy.stats.ttest_rel(*means).pvalue)
    assert ours.test == "t"


def test_what_p_cannot_be() -> None:
    a = np.random.default_rng(0).random(40)
    for test in ("permutation", "t"):
        same = paired(a, a, np.arange(40), test=test)
        assert (same.difference, same.p, verdict(same)) == (0, 1, "no evidence")
    assert paired(a, a + 1, np.arange(40), rounds=99).p == 0.01
    one = paired(a, a + 1, np.zeros(40), test="t")
    assert (one.p, verdict(one)) == (1, "no evidence")


def test_exchanging_the_two_turns_the_sign() -> None:
    rng = np.random.default_rng(0)
    a, b, cluster = rng.random(90), rng.random(90), np.arange(90) // 4
    there, back = paired(a, b, cluster), paired(b, a, cluster)
    assert back.difference == -there.difference
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low))
    assert back.p == pytest.approx(there.p)


def test_verdicts() -> None:
    gain = Comparison(0.1, 0.05, 0.15, 0.01, "permutation", 10)
    assert verdict(gain) == "helped"
    assert verdict(replace(gain, difference=-0.1)) == "hurt"
    assert verdict(replace(gain, p=0.05)) == "no evidence"
    assert verdict(gain, alpha=0.005) == "no evidence"


@pytest.mark.slow
@pytest.mark.parametrize("test", ["permutation", "t"])
def test_p_is_uniform_when_nothing_differs(test: str) -> None:
    rng, ps = np.random.default_rng(0), []
    for world in range(600):
        effect = np.repeat(rng.normal(0, 1, 40), 5)
        a, b = rng.normal(0, 1, 200), rng.normal(0, 1, 200) + effect
        ps.append(paired(a, b, np.repeat(np.arange(40), 5), test=test, rounds=500, seed=world).p)
    assert scipy.stats.kstest(ps, "uniform").pvalue > 0.01


def test_bad_pairs() -> None:
    with pytest.raises(BadInput, match="match_items"):
        paired([1.0], [1.0, 2.0], [0])
    with pytest.raises(BadInput, match="no items"):
        paired([], [], [])
    with pytest.raises(BadSetting, match="known: permutation, t"):
        paired([1.0], [1.0], [0], test="sign")
    with pytest.raises(BadSetting, match="rounds"):
        paired([1.0], [1.0], [0], rounds=0)


def items(sentence: list[int], word: list[int], hit: list[float]) -> Items:
    keys = {"sentence": np.array(sentence, np.int64), "word": np.array(word, np.int64)}
    return Items(keys, keys["sentence"], {"hit": np.array(hit)})


def test_items_are_matched_by_all_their_keys() -> None:
    a = items([0, 0, 1, 5], [0, 1, 0, 2], [0.1, 0.2, 0.3, 0.4])
    b = items([5, 1, 0, 7], [2, 0, 1, 0], [1.4, 1.3, 1.2, 1.0])
    left, right = match_items(a, b)
    np.testing.assert_array_equal(left.keys["word"], right.keys["word"])
    np.testing.assert_array_equal(left.cluster, right.cluster)
    assert sorted(left.values["hit"].tolist()) == [0.2, 0.3, 0.4]
    np.testing.assert_allclose(right.values["hit"] - left.values["hit"], 1)


def test_items_that_cannot_be_matched() -> None:
    a = items([0, 1], [0, 0], [1, 1])
    with pytest.raises(BadInput, match="no item in common"):
        match_items(a, items([2], [0], [1]))
    with pytest.raises(BadInput, match="same keys"):
        match_items(a, items([1, 1], [0, 0], [1, 0]))
    with pytest.raises(BadInput, match="different measures"):
        match_items(a, replace(a, keys={"sentence": a.cluster}))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_properties(ps: list[float]) -> None:
    corrected = holm(ps)
    assert all(p <= q <= min(1, p * len(ps) + 1e-12) for p, q in zip(ps, corrected, strict=True))
    order = np.argsort(ps, kind="stable")
    assert np.all(np.diff(np.array(corrected)[order]) >= 0)
    assert min(corrected) == min(1, min(ps) * len(ps))


def test_holm_by_hand() -> None:
    assert holm([0.04, 0.001, 0.5, 0.02]) == pytest.approx([0.08, 0.004, 0.5, 0.06])
    assert holm([]) == []
    with pytest.raises(BadInput, match="between 0 and 1"):
        holm([0.5, float("nan")])
