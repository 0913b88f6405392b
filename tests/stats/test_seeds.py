"""Comparisons over seeds against SciPy, brute force, hand-worked sums, and what must never change them."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import BadInput, BadSetting
from calque.stats.ratios import Ratio
from calque.stats.seed_tests import Columns, pseudo_values, strata
from calque.stats.seed_verdicts import overall, points, probability, verdicts
from calque.stats.seeds import (
    Arms,
    Runs,
    SeedComparison,
    SeedTest,
    Spread,
    comparable_seeds,
    compare_means,
)
from calque.stats.significance import holm

ACCURACY = Ratio("accuracy", {"right": 1}, {"count": 1})
F1 = Ratio("f1", {"hits": 2}, {"predicted": 1, "gold": 1})


def runs(right: object, cluster: object = None, seeds: tuple[int, ...] | None = None) -> Runs:
    values = np.asarray(right, np.float64)
    n, m = values.shape
    place = np.arange(m) if cluster is None else np.asarray(cluster, np.int64)
    return Runs({"right": values, "count": np.ones((n, m))}, place, seeds or tuple(range(n)))


def compare_runs(baseline: Runs, method: Runs, metric: Ratio, **options: Any) -> SeedComparison:
    """On one language's items."""
    return compare_means([(baseline, method)], metric, **options)


def random_runs(rng: np.random.Generator, n: int, m: int, p: float = 0.7, cluster: object = None) -> Runs:
    return runs(rng.random((n, m)) < p, cluster)


def random_spans(rng: np.random.Generator, n: int, m: int, rate: float = 0.6) -> Runs:
    gold = np.tile(rng.poisson(1.0, m), (n, 1))
    hits = rng.binomial(gold, rate)
    predicted = hits + rng.poisson(0.3, (n, m))
    columns = {"hits": hits, "predicted": predicted, "gold": gold}
    return Runs({k: v.astype(np.float64) for k, v in columns.items()}, np.arange(m), tuple(range(n)))


# ---------------------------------------------------------------------------------- known elsewhere


def test_a_comparison_worked_by_hand() -> None:
    """Two seeds and three items each.

    Baseline 1 0 0 / 1 1 0: scores 1/3, 2/3. Method 1 1 1 / 1 1 0: scores 1, 2/3. Difference 1/3.
    Seeds: variance 1/18 in both arms, over 2 seeds 1/36 each, together 1/18.
    Items: gains 0, 1/2, 1/2: variance 1/12, over 3 items 1/36.
    Both at once: residuals of an arm are ±1/6 ±1/3 ±1/6 (in some order): Σ² = 2 (1/36 + 4/36 + 1/36) = 1/3,
    over (2 − 1)(3 − 1) and over 6: 1/36 each, together 1/18.
    V = 1/18 + (1/18 − 1/18) + 0 = 1/18, since 1/36 − 1/18 < 0.
    Freedom: V² / (2 (1/36)² / 1 + (1/36)² / 2 + 2 (1/36)² / 2) = 4 / 3.5.
    """
    told = compare_runs(runs([[1, 0, 0], [1, 1, 0]]), runs([[1, 1, 1], [1, 1, 0]]), ACCURACY)
    freedom, error = 4 / 3.5, (1 / 18) ** 0.5
    assert (told.baseline.mean, told.method.mean) == (pytest.approx(0.5), pytest.approx(5 / 6))
    assert [told.baseline.std, told.method.std] == pytest.approx([18**-0.5] * 2)
    assert told.difference == pytest.approx(1 / 3)
    assert told.p == pytest.approx(2 * scipy.stats.t.sf(1 / 3 / error, freedom))
    half = scipy.stats.t.ppf(0.975, freedom) * error
    assert (told.low, told.high) == (pytest.approx(1 / 3 - half), pytest.approx(1 / 3 + half))
    assert told.detectable == pytest.approx(half + scipy.stats.t.ppf(0.8, freedom) * error)
    assert (told.items, told.clusters, told.languages, told.conditional) == (3, 3, 1, False)


@pytest.mark.parametrize("counts", [(5, 5), (3, 6), (2, 2)])
def test_seed_t_is_welchs_test_of_scipy(counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    a, b = random_runs(rng, counts[0], 80), random_runs(rng, counts[1], 80, 0.75)
    told = compare_runs(a, b, ACCURACY, test=SeedTest.SEED_T)
    theirs = scipy.stats.ttest_ind(b.values["right"].mean(1), a.values["right"].mean(1), equal_var=False)
    ends = theirs.confidence_interval()
    assert told.p == pytest.approx(theirs.pvalue)
    assert (told.low, told.high) == (pytest.approx(ends.low), pytest.approx(ends.high))
    assert told.given == "these items"


def test_seed_t_of_paired_seeds_is_the_paired_test_of_scipy() -> None:
    rng = np.random.default_rng(1)
    a, b = random_runs(rng, 6, 50), random_runs(rng, 6, 50)
    told = compare_runs(a, b, ACCURACY, test=SeedTest.SEED_T, paired_seeds=True)
    theirs = scipy.stats.ttest_rel(b.values["right"].mean(1), a.values["right"].mean(1))
    assert told.p == pytest.approx(theirs.pvalue)


def test_item_t_is_the_paired_test_of_scipy_on_items_averaged_over_seeds() -> None:
    rng = np.random.default_rng(2)
    a, b = (
        random_runs(rng, 5, 60, cluster=np.arange(60) // 3),
        random_runs(rng, 4, 60, cluster=np.arange(60) // 3),
    )
    told = compare_runs(a, b, ACCURACY, test=SeedTest.ITEM_T)
    theirs = scipy.stats.ttest_rel(b.values["right"].mean(0), a.values["right"].mean(0))
    assert told.p == pytest.approx(theirs.pvalue)
    assert told.low == pytest.approx(theirs.confidence_interval().low)
    assert (told.given, told.conditional) == ("these seeds", True)


def test_one_seed_is_the_paired_test_of_scipy_on_clusters() -> None:
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(20), 3)
    a, b = (random_runs(rng, 1, 60, cluster=cluster) for _ in range(2))
    told = compare_runs(a, b, ACCURACY)
    means = [x.values["right"].reshape(20, 3).mean(1) for x in (b, a)]
    assert told.p == pytest.approx(scipy.stats.ttest_rel(*means).pvalue)
    assert (told.given, told.single, told.baseline.std, told.mark) == ("these seeds", "seed", None, "")


def test_with_paired_seeds_the_variance_is_that_of_a_two_way_table() -> None:
    """Random seeds, random items: mean squares of seeds + items − residual, over all cells (Cochran 1951)."""
    rng = np.random.default_rng(4)
    n, m = 6, 40
    gain = rng.normal(0, 1, (n, 1)) + rng.normal(0, 3, (1, m)) + rng.normal(size=(n, m))
    told = compare_runs(runs(np.zeros((n, m))), runs(gain), ACCURACY, paired_seeds=True)
    seeds = m * gain.mean(1).var(ddof=1)
    items = n * gain.mean(0).var(ddof=1)
    rest = ((gain - gain.mean(1)[:, None] - gain.mean(0) + gain.mean()) ** 2).sum() / ((n - 1) * (m - 1))
    assert min(seeds, items) > rest
    freedom = (seeds + items - rest) ** 2 / (
        seeds**2 / (n - 1) + items**2 / (m - 1) + rest**2 / ((n - 1) * (m - 1))
    )
    error = ((seeds + items - rest) / (n * m)) ** 0.5
    assert told.p == pytest.approx(2 * scipy.stats.t.sf(abs(gain.mean()) / error, freedom))


def test_pseudo_values_leave_clusters_out_one_by_one() -> None:
    rng = np.random.default_rng(5)
    a = random_spans(rng, 2, 30)
    cluster = rng.integers(0, 8, 30)
    columns = [*F1.parts(a.values)]
    one = Columns((columns[0],) * 2, (columns[1],) * 2, cluster)
    ours = strata([one])[0][0]
    for row, (seed, name) in zip(ours.T.ravel(), product(np.unique(cluster), range(2)), strict=True):
        kept = {k: v[name][cluster != seed] for k, v in a.values.items()}
        whole = {k: v[name] for k, v in a.values.items()}
        assert row == pytest.approx(8 * F1.score(whole) - 7 * F1.score(kept))


def test_the_jackknife_knows_how_far_f1_moves() -> None:
    """Against the spread of F1 over 4000 fresh samples of sentences."""
    rng = np.random.default_rng(6)
    scores = [F1.score(random_spans(rng, 1, 200).values)[0] for _ in range(4000)]
    errors = []
    for _ in range(50):
        values = pseudo_values(*F1.parts(random_spans(rng, 1, 200).values))[0]
        errors.append(values.std(ddof=1) / len(values) ** 0.5)
    assert np.mean(errors) == pytest.approx(np.std(scores), rel=0.05)


@pytest.mark.parametrize("metric", [ACCURACY, F1], ids=lambda metric: metric.name)
def test_randomisation_by_enumeration(metric: Ratio) -> None:
    """All 2¹² exchanges of two seeds' predictions on six items."""
    rng = np.random.default_rng(7)
    draw = random_runs if metric is ACCURACY else random_spans
    a, b = draw(rng, 2, 6, 0.5), draw(rng, 2, 6, 0.9)
    flip = ((np.arange(4096)[:, None] >> np.arange(12)) & 1).reshape(-1, 2, 6).astype(bool)
    arms = [
        metric.score({k: np.where(flip, x.values[k], y.values[k]).reshape(4096, 12) for k in x.values})
        for x, y in ((a, b), (b, a))
    ]
    gains = arms[1] - arms[0]
    seen = gains[0]
    exact = (np.abs(gains) >= abs(seen) - 1e-12).mean()
    told = compare_runs(a, b, metric, test=SeedTest.RANDOMISATION, rounds=20_000)
    assert told.p == pytest.approx(exact, abs=0.015)
    assert told.conditional and 0 < told.p < 1


# ----------------------------------------------------------------------------------- what changes nothing


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.integers(1, 12), st.booleans())
def test_exchanged_arms_and_other_orders(seed: int, n: int, k: int, m: int, spans: bool) -> None:
    rng = np.random.default_rng(seed)
    draw, metric = (random_spans, F1) if spans else (random_runs, ACCURACY)
    a, b = draw(rng, n, m), draw(rng, k, m)
    place = rng.integers(0, 4, m)
    a, b = replace(a, cluster=place), replace(b, cluster=place)
    there, back = compare_runs(a, b, metric), compare_runs(b, a, metric)
    assert back.difference == pytest.approx(-there.difference, abs=1e-12)
    assert (back.p, there.p >= 0, there.p <= 1) == (pytest.approx(there.p), True, True)
    if there.low is None:
        assert back.low is None and there.p == 1 and there.given == "these seeds and items"
    else:
        assert there.low <= there.difference <= there.high and (there.detectable or 0) >= 0
        assert back.low == pytest.approx(-there.high)
    items, rows = rng.permutation(m), rng.permutation(n)
    mixed = Runs(
        {c: v[rows][:, items] for c, v in a.values.items()}, place[items], tuple(np.array(a.seeds)[rows])
    )
    other = replace(b, values={c: v[:, items] for c, v in b.values.items()}, cluster=place[items])
    again = compare_runs(mixed, other, metric)
    assert again.difference == pytest.approx(there.difference, abs=1e-12)
    assert again.p == pytest.approx(there.p, abs=1e-9)


def test_clusters_of_equal_items_count_once() -> None:
    rng = np.random.default_rng(8)
    a, b = random_runs(rng, 4, 50), random_runs(rng, 4, 50, 0.8)
    twice = [runs(np.repeat(x.values["right"], 3, 1), np.repeat(np.arange(50), 3)) for x in (a, b)]
    once, thrice = compare_runs(a, b, ACCURACY), compare_runs(*twice, ACCURACY)
    assert thrice.p == pytest.approx(once.p) and thrice.detectable == pytest.approx(once.detectable)
    assert (thrice.items, thrice.clusters) == (150, 50)
    by_item = compare_runs(*twice, ACCURACY, test=SeedTest.ITEM_T)
    assert by_item.p < compare_runs(a, b, ACCURACY, test=SeedTest.ITEM_T).p


# ------------------------------------------------------------------------------------------- languages


def test_a_mean_over_one_language_is_that_language() -> None:
    rng = np.random.default_rng(9)
    a, b = random_spans(rng, 3, 40), random_spans(rng, 3, 40, 0.7)
    for test in SeedTest:
        assert compare_means([(a, b)], F1, test=test, parallel=True) == compare_runs(a, b, F1, test=test)


def test_seeds_are_averaged_over_languages_and_items_added() -> None:
    rng = np.random.default_rng(10)
    sizes = (30, 80)
    pairs = [(random_runs(rng, 4, m), random_runs(rng, 3, m, 0.8)) for m in sizes]
    means = [np.mean([pair[arm].values["right"].mean(1) for pair in pairs], axis=0) for arm in (0, 1)]
    by_seed = compare_means(pairs, ACCURACY, test=SeedTest.SEED_T)
    assert by_seed.p == pytest.approx(scipy.stats.ttest_ind(*means, equal_var=False).pvalue)
    assert by_seed.baseline.std == pytest.approx(means[0].std(ddof=1))
    gains = [b.values["right"].mean(0) - a.values["right"].mean(0) for a, b in pairs]
    parts = np.array([gain.var(ddof=1) / len(gain) / 4 for gain in gains])
    freedom = parts.sum() ** 2 / (parts**2 / (np.array(sizes) - 1)).sum()
    by_item = compare_means(pairs, ACCURACY, test=SeedTest.ITEM_T)
    t = np.mean([gain.mean() for gain in gains]) / parts.sum() ** 0.5
    assert by_item.p == pytest.approx(2 * scipy.stats.t.sf(abs(t), freedom))
    assert (by_item.items, by_item.languages) == (110, 2)


def test_translations_of_the_same_items_count_once() -> None:
    """The same predictions in three languages say no more than in one; taken for others they would."""
    rng = np.random.default_rng(11)
    pair = random_runs(rng, 5, 60), random_runs(rng, 5, 60, 0.8)
    one = compare_runs(*pair, ACCURACY)
    same = compare_means([pair] * 3, ACCURACY, parallel=True)
    other = compare_means([pair] * 3, ACCURACY)
    assert (same.p, same.clusters, same.items) == (pytest.approx(one.p), 60, 180)
    assert other.detectable < same.detectable


def test_translations_may_lack_items() -> None:
    """With no cluster in common, translations are as independent as other languages, but for n − 1."""
    rng = np.random.default_rng(12)
    pairs = [(random_runs(rng, 3, 300), random_runs(rng, 3, 300)) for _ in range(2)]
    apart = [tuple(replace(x, cluster=x.cluster + 300 * i) for x in pair) for i, pair in enumerate(pairs)]
    assert compare_means(apart, ACCURACY, parallel=True).detectable == pytest.approx(
        compare_means(pairs, ACCURACY).detectable, rel=0.01
    )


# ---------------------------------------------------------------------------------------------- seeds


def test_seeds_that_can_be_compared() -> None:
    def of(*seeds: int) -> Runs:
        return runs(np.zeros((len(seeds), 3)), seeds=seeds)

    pairs = [(of(2, 0, 1), of(5, 1, 2)), (of(0, 2), of(1, 5, 2))]
    assert comparable_seeds(pairs) == Arms((0, 2), (1, 2, 5))
    assert comparable_seeds(pairs, paired_seeds=True) == Arms((2,), (2,))
    assert comparable_seeds(pairs, test=SeedTest.RANDOMISATION) == Arms((2,), (2,))
    assert comparable_seeds(pairs[:1], test=SeedTest.RANDOMISATION) == Arms((0, 1, 2), (1, 2, 5))
    assert comparable_seeds([(of(0), of(1)), (of(0), of(2))]) == Arms((0,), ())


def test_runs_of_some_seeds() -> None:
    a = runs([[1, 0], [0, 0], [1, 1]], seeds=(7, 3, 5))
    some = a.of((5, 7, 9))
    assert some.seeds == (7, 5) and some.values["right"].tolist() == [[1, 0], [1, 1]]
    assert a.of({3, 5, 7}) is a
    with pytest.raises(BadInput, match="0 seeds"):
        a.of(())


# ------------------------------------------------------------------------------------------ degenerate


@pytest.mark.parametrize("test", SeedTest)
@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (2, 1), (2, 30), (5, 30)])
def test_the_same_predictions_are_no_evidence(test: SeedTest, shape: tuple[int, int]) -> None:
    a = random_runs(np.random.default_rng(0), *shape)
    told = compare_runs(a, a, ACCURACY, test=test)
    assert (told.difference, told.p, told.mark) == (0, 1, "")
    assert told.low is None or told.low <= 0 <= told.high


def test_identical_runs_of_all_seeds_are_no_evidence() -> None:
    a = runs(np.tile([1, 0, 1, 1.0], (3, 1)))
    for test in SeedTest:
        assert compare_runs(a, a, ACCURACY, test=test).p == 1


def test_where_nothing_varies_signs_are_counted() -> None:
    """Every run right on every item, against every run wrong."""
    wrong, right = np.zeros((3, 8)), np.ones((3, 8))
    told = compare_runs(runs(wrong), runs(right), ACCURACY)
    assert (told.difference, told.low, told.high, told.p, told.mark) == (1, 1, 1, 0.5**7, "better")
    by_seed = compare_runs(runs(wrong), runs(right), ACCURACY, test=SeedTest.SEED_T)
    assert by_seed.p == pytest.approx(2 / 20)
    two = compare_runs(runs(wrong[:, :2]), runs(right[:, :2]), ACCURACY)
    assert two.p == 0.5


@pytest.mark.parametrize("test", [SeedTest.SEED_T, SeedTest.BOTH])
def test_where_all_pairs_gain_the_same_the_signs_of_pairs_are_counted(test: SeedTest) -> None:
    """SciPy's sign test of five gains; of one cluster, as of no items, nothing but seeds is counted."""
    before = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0.0]])
    after, together = before + np.array([0, 0, 0, 1.0]), np.zeros(4)
    told = compare_runs(runs(before, together), runs(after, together), ACCURACY, test=test, paired_seeds=True)
    assert told.given == "these items" and told.low == told.high == pytest.approx(0.25)
    assert told.p == pytest.approx(scipy.stats.binomtest(5, 5).pvalue) == 0.0625


def test_seeds_that_agree_leave_the_items() -> None:
    """Deterministic training: seeds vary by nothing, and items decide."""
    rng = np.random.default_rng(13)
    a, b = (np.tile(rng.random(40) < p, (3, 1)).astype(float) for p in (0.5, 0.8))
    told = compare_runs(runs(a), runs(b), ACCURACY)
    assert told.p == pytest.approx(scipy.stats.ttest_rel(b[0], a[0]).pvalue)
    assert not told.conditional


def test_one_cluster_cannot_tell() -> None:
    rng = np.random.default_rng(14)
    a, b = (random_runs(rng, 4, 20, p, np.zeros(20)) for p in (0.3, 0.9))
    told = compare_runs(a, b, ACCURACY)
    assert (told.given, told.single) == ("these items", "cluster")
    assert told.p == pytest.approx(compare_runs(a, b, ACCURACY, test=SeedTest.SEED_T).p)
    nothing = compare_runs(*(runs(x.values["right"][:1], x.cluster) for x in (a, b)), ACCURACY)
    assert (nothing.p, nothing.low, nothing.detectable) == (1, None, None)
    assert nothing.given == "these seeds and items"


def test_nothing_to_count_is_a_score_of_zero() -> None:
    empty = Runs({k: np.zeros((3, 5)) for k in F1.columns}, np.arange(5), (0, 1, 2))
    told = compare_runs(empty, empty, F1)
    assert (told.baseline.mean, told.method.mean, told.p) == (0, 0, 1)
    assert told.detectable is None, "what never varies says nothing of what would be seen"
    some = random_spans(np.random.default_rng(15), 3, 5)
    for test in SeedTest:
        assert 0 <= compare_runs(empty, some, F1, test=test).p <= 1
    hits = np.zeros((3, 5))
    hits[:, 0] = 1  # all there is to find is in one sentence
    lone = Runs({k: hits for k in F1.columns}, np.arange(5), (0, 1, 2))
    assert 0 < compare_runs(empty, lone, F1).p <= 1


def test_what_cannot_be_compared() -> None:
    rng = np.random.default_rng(0)
    a, b = random_runs(rng, 3, 10), random_runs(rng, 2, 10)
    with pytest.raises(BadInput, match="10 items of the baseline and 9"):
        compare_runs(a, random_runs(rng, 3, 9), ACCURACY)
    with pytest.raises(BadInput, match="not the same"):
        compare_runs(a, replace(b, cluster=b.cluster[::-1]), ACCURACY)
    with pytest.raises(BadInput, match="f1 needs hits"):
        compare_runs(a, b, F1)
    with pytest.raises(BadInput, match="one by one: 3 seeds against 2"):
        compare_runs(a, b, ACCURACY, test=SeedTest.RANDOMISATION)
    with pytest.raises(BadInput, match="cannot be paired"):
        compare_runs(a, b, ACCURACY, paired_seeds=True)
    with pytest.raises(BadInput, match="different seeds"):
        compare_means([(a, b), (b, b)], ACCURACY)
    with pytest.raises(BadInput, match="no language"):
        compare_means([], ACCURACY)
    with pytest.raises(BadSetting, match="rounds is 0"):
        compare_runs(a, b, ACCURACY, rounds=0)
    with pytest.raises(BadSetting, match="did you mean seed-t"):
        compare_runs(a, b, ACCURACY, test="seeds-t")  # type: ignore[arg-type]


def test_what_runs_cannot_be() -> None:
    good = np.ones((2, 3))
    with pytest.raises(BadInput, match=r"right is of shape \(2, 3\)"):
        Runs({"right": good}, np.arange(4), (0, 1))
    with pytest.raises(BadInput, match="occurs twice"):
        Runs({"right": good}, np.arange(3), (1, 1))
    with pytest.raises(BadInput, match="NaN"):
        Runs({"right": good * np.nan}, np.arange(3), (0, 1))
    with pytest.raises(BadInput, match="0 seeds"):
        Runs({}, np.arange(3), ())


# --------------------------------------------------------------------------------------------- verdicts


def comparison(difference: float, p: float, *, seeds: int = 5, **more: object) -> SeedComparison:
    base = Spread(0.5, 0.01 if seeds > 1 else None, seeds)
    known = SeedComparison(
        "f1", base, replace(base, mean=0.5 + difference), difference, difference - 0.01, difference + 0.01, p,
        0.0131, SeedTest.BOTH, "" if seeds > 1 else "these seeds", 10_000, 10_000, 3,
    )  # fmt: skip
    return replace(known, **more)


def test_marks_are_one_standard_deviation_of_the_baseline() -> None:
    assert [comparison(x, 0.5).mark for x in (0.011, -0.011, 0.009, 0.01)] == ["better", "worse", "", ""]
    assert comparison(0.3, 0.5, seeds=1).mark == ""


def test_verdicts_in_words() -> None:
    told = {
        "NER": comparison(0.018, 0.004),
        "NLI": comparison(-0.002, 0.6, languages=1),
        "POS": comparison(-0.03, 0.0001),
        "QA": comparison(0.012, 0.01, seeds=1),
        "slots": comparison(0.01, 0.03),
    }
    found = verdicts(told)
    assert [one.corrected for one in found] == holm([one.p for one in told.values()])
    unseen = "a true difference under 1.3 points would often go unseen"
    assert [one.line("words") for one in found] == [
        "NER: helped: +1.8 points over 3 languages (p = 0.004, after Holm p = 0.016; 5 seeds, 10,000 words)",
        f"NLI: no evidence either way: −0.2 points (p = 0.600; 5 seeds, 10,000 words); {unseen}",
        "POS: hurt: −3.0 points over 3 languages (p < 0.001, after Holm p < 0.001; 5 seeds, 10,000 words)",
        "QA: one seed: cannot tell: +1.2 points over 3 languages (p = 0.010, after Holm p = 0.030; "
        "1 seed, 10,000 words); what another seed would give is not known",
        "slots: no evidence either way: +1.0 points over 3 languages (p = 0.030, after Holm p = 0.060; "
        f"5 seeds, 10,000 words); {unseen}",
    ]
    assert overall(found) == (
        "overall: helped on NER; hurt on POS; no evidence either way on NLI, slots; cannot tell on QA"
    )


def test_figures_are_written_as_the_page_writes_them() -> None:
    from calque.report import words
    from calque.report.tasks import Metric

    for p in (0.0, 1e-9, 0.00099, 0.001, 0.0123, 0.5, 0.99951, 1.0):
        assert probability(p) == words.p_value(p)
    sizes = [0.0, *(a * 10.0**-b for a in (1, 2.5, 4.99, 5, 6, 9.5, 9.99) for b in range(1, 9))]
    for gain in (*sizes, *(-size for size in sizes)):
        assert f"{points(gain)} points" == words.points(gain, Metric())


def test_a_verdict_from_a_conditional_test_says_so() -> None:
    told = comparison(0.02, 0.001, given="these seeds", test=SeedTest.ITEM_T)
    (found,) = verdicts({"NER": told})
    assert found.line().startswith("NER: helped, given these seeds: +2.0 points")
    assert overall([found]) == "overall: helped on NER (given these seeds or items only)"


def test_one_lucky_seed_never_helps() -> None:
    rng = np.random.default_rng(16)
    a, b = random_runs(rng, 1, 500, 0.3), random_runs(rng, 5, 500, 0.9)
    told = compare_runs(a, b, ACCURACY)
    (found,) = verdicts({"NLI": told})
    assert told.p < 1e-6 and found.finding == "cannot tell"
    assert found.line().startswith("NLI: one seed: cannot tell: +6") and "1 and 5 seeds" in found.line()


def test_a_level_is_a_share() -> None:
    assert verdicts({}) == [] and verdicts({"a": comparison(0.1, 0.06)}, level=0.1)[0].finding == "helped"
    with pytest.raises(BadSetting, match="level is 5"):
        verdicts({}, level=5)


# ------------------------------------------------------------------------------------------ gold counts


def test_arms_that_count_other_words_are_refused() -> None:
    """As parsing with `words` 3 against 128 does: the denominators differ, whatever is predicted."""
    metric = Ratio("las", {"las_right": 1}, {"scored_words": 1})

    def arm(words: list[float]) -> Runs:
        many = np.tile(words, (2, 1))
        return Runs({"las_right": many / 2, "scored_words": many}, np.arange(3), (0, 1))

    assert compare_means([(arm([3, 5, 7]), arm([3, 5, 7]))], metric).difference == 0
    with pytest.raises(BadInput, match=r"scored_words of item 1 is 3 and 5 .* 2 of 3 items: .*otherwise"):
        compare_means([(arm([3, 5, 7]), arm([3, 3, 3]))], metric)


def test_arms_may_predict_as_many_spans_as_they_like() -> None:
    metric = Ratio("f1", {"span_hits": 2}, {"span_predicted": 1, "span_gold": 1})
    ones = np.ones((2, 4))
    a = {"span_hits": ones, "span_predicted": ones, "span_gold": ones}
    b = {**a, "span_predicted": 3 * ones}
    pair = (Runs(a, np.arange(4), (0, 1)), Runs(b, np.arange(4), (0, 1)))
    assert compare_means([pair], metric).difference == -0.5
