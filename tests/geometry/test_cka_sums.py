"""CKA from sums against Gram matrices written out, and against what must be true of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.geometry.cka import ViewSums, debiased_cka, jackknife, linear_cka, passes
from planted import orthogonal

# ----------------------------------------------------------------------------- the formulas written out


def centred_hsic(k: np.ndarray, l: np.ndarray) -> float:  # noqa: E741
    """Kornblith et al. (2019): tr(KHLH) / (n − 1)²."""
    n = len(k)
    h = np.eye(n) - np.full((n, n), 1 / n)
    return float(np.trace(k @ h @ l @ h)) / (n - 1) ** 2


def unbiased_hsic(k: np.ndarray, l: np.ndarray) -> float:  # noqa: E741
    """Song et al. (2012), equation 5, as used for CKA by Nguyen et al. (2021)."""
    n, ones = len(k), np.ones(len(k))
    k, l = k - np.diag(np.diag(k)), l - np.diag(np.diag(l))  # noqa: E741
    sums = (ones @ k @ ones) * (ones @ l @ ones) / ((n - 1) * (n - 2))
    return float(np.trace(k @ l) + sums - 2 / (n - 2) * (ones @ k @ l @ ones)) / (n * (n - 3))


def by_gram(x: np.ndarray, y: np.ndarray, hsic=centred_hsic) -> float:
    x, y = x - x.mean(0), y - y.mean(0)
    k, l = x @ x.T, y @ y.T  # noqa: E741
    return hsic(k, l) / np.sqrt(hsic(k, k) * hsic(l, l))


def both_by_gram(x: np.ndarray, y: np.ndarray) -> list[float]:
    return [by_gram(x, y), by_gram(x, y, unbiased_hsic)]


def related(seed: int, n: int, d: int, e: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which some dimensions depend on each other, far from the origin if wished."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * rng.uniform(0.2, 3, d)
    y = x[:, :1] * rng.normal(size=e) + rng.normal(size=(n, e))
    return x + shift, y - 2 * shift


def gathered(x: np.ndarray, y: np.ndarray, block: int) -> ViewSums:
    sums = ViewSums([("x", "y")])
    for start in range(0, len(x), block):
        sums.add({"x": x[start : start + block], "y": y[start : start + block]})
    return sums


SIZES = st.tuples(st.integers(0, 99), st.integers(5, 40), st.integers(2, 30), st.integers(2, 30))


@settings(max_examples=40)
@given(SIZES, st.integers(1, 40), st.sampled_from([0.0, 100.0]))
def test_sums_give_what_gram_matrices_give(size: tuple[int, ...], block: int, shift: float) -> None:
    x, y = related(*size, shift)
    assert np.allclose(gathered(x, y, block).cka("x", "y"), both_by_gram(x, y), atol=1e-8)


@settings(max_examples=15)
@given(SIZES, st.integers(1, 40))
def test_the_jackknife_is_that_of_leaving_out_each_row(size: tuple[int, ...], block: int) -> None:
    x, y = related(*size, shift=5.0)
    sums = gathered(x, y, block)
    ((_, without),) = sums.without_each({"x": x, "y": y}, [("x", "y")])
    rows = range(len(x))
    brute = np.array([both_by_gram(np.delete(x, i, 0), np.delete(y, i, 0)) for i in rows]).T
    few = len(x) == 5  # then the debiased figure of four rows rests on a difference of nearly equal numbers
    assert np.allclose(without[0], brute[0], atol=1e-8)
    assert np.allclose(without[1], brute[1], atol=1e-4 if few else 1e-6)
    values = jackknife(sums.cka("x", "y")[0], without[0])
    assert values.mean() == pytest.approx(by_gram(x, y))
    spread = (len(x) - 1) / len(x) * ((brute[0] - brute[0].mean()) ** 2).sum()
    assert values.var() / (len(x) - 1) == pytest.approx(spread, rel=1e-4, abs=1e-12), "Tukey's variance"


def test_single_and_half_precision_are_summed_in_double() -> None:
    x, y = related(1, 300, 6, 4, shift=30.0)
    for dtype in (np.float32, np.float16):
        rounded = x.astype(dtype), y.astype(dtype)
        exact = both_by_gram(*(side.astype(np.float64) for side in rounded))
        assert np.allclose(gathered(*rounded, 70).cka("x", "y"), exact, atol=1e-9)


def test_values_of_pieces_are_the_sums_of_their_rows() -> None:
    rng = np.random.default_rng(6)
    without, piece = rng.random(10), np.array([0, 0, 0, 1, 1, 3, 3, 3, 3, 3])
    rows = jackknife(0.4, without)
    sums, sizes = np.bincount(piece, without), np.bincount(piece)
    pieces = jackknife(0.4, sums, sizes)
    assert np.allclose(pieces, np.bincount(piece, rows)[sizes > 0] * 3 / 10)
    assert pieces.mean() == pytest.approx(0.4) == rows.mean()


# --------------------------------------------------------------------------------- what must be true


def test_rotation_scale_and_shift_change_nothing_but_a_linear_map_does() -> None:
    x, y = related(2, 60, 12, 12)
    before = linear_cka(x, y), debiased_cka(x, y)
    moved = 7 * x @ orthogonal(12, 1) + 3
    assert (linear_cka(moved, y), debiased_cka(moved, y)) == pytest.approx(before)
    assert (linear_cka(x, moved), debiased_cka(x, moved)) == pytest.approx((1, 1))
    assert abs(linear_cka(x * np.arange(1, 13) ** 2, y) - before[0]) > 1e-3
    assert linear_cka(x, y) == pytest.approx(linear_cka(y, x))


def test_unrelated_vectors_are_far_from_nothing_only_without_the_correction() -> None:
    rng = np.random.default_rng(0)
    drawn = [[rng.normal(size=(30, 100)) for _ in range(2)] for _ in range(40)]
    assert np.mean([linear_cka(*two) for two in drawn]) > 0.7
    debiased = np.array([debiased_cka(*two) for two in drawn])
    assert abs(debiased.mean()) < 3 * debiased.std() / np.sqrt(len(debiased)) + 1e-3
    x = rng.normal(size=(20_000, 5))
    assert linear_cka(x, rng.normal(size=(20_000, 5))) < 1e-3


def test_the_two_agree_where_there_are_many_rows() -> None:
    x, y = related(5, 20_000, 4, 4)
    assert linear_cka(x, y) == pytest.approx(debiased_cka(x, y), abs=2e-3)


def test_jackknife_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    """y = x + noise: Cov(x, y) = Cov(x) = I and Cov(y) = 2I in three dimensions, so CKA is 3 / √(3 · 12)."""
    rng, hits = np.random.default_rng(3), 0
    for _ in range(200):
        x = rng.normal(size=(150, 3))
        y = x + rng.normal(size=x.shape)
        sums = gathered(x, y, 150)
        ((_, without),) = sums.without_each({"x": x, "y": y}, [("x", "y")])
        values = jackknife(sums.cka("x", "y")[1], without[1])
        hits += abs(values.mean() - 0.5) < 1.96 * values.std() / np.sqrt(len(values))
    assert 175 <= hits <= 199


def test_many_pairs_in_one_pass_are_each_pair_by_itself() -> None:
    rng = np.random.default_rng(4)
    views = {name: rng.normal(size=(25, 3 + place)) for place, name in enumerate("abcd")}
    pairs = [("a", "b"), ("a", "c"), ("d", "b"), ("c", "d")]
    sums = ViewSums(pairs)
    for start in (0, 10, 20):
        sums.add({name: rows[start : start + 10] for name, rows in views.items()})
    for x, y in pairs:
        assert sums.cka(x, y)[0] == pytest.approx(linear_cka(views[x], views[y]))
        assert sums.cka(x, y)[1] == pytest.approx(debiased_cka(views[x], views[y]))


def test_pairs_are_cut_into_passes_that_fit() -> None:
    pairs = [(x, y) for x in range(3) for y in range(3)]
    sizes = dict.fromkeys(range(3), 10)
    parts = list(passes(pairs, sizes, 250))
    assert [len(part) for part in parts] == [2, 2, 2, 2, 1]
    assert [pair for part in parts for pair in part] == pairs
    assert [len(part) for part in passes(pairs, sizes, 1)] == [1] * 9


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "x, told",
    [
        (np.ones((1, 3)), "5 rows at least, and there are 1"),
        (np.random.default_rng(0).normal(size=(4, 3)), "there are 4"),
        (np.full((9, 3), 0.1), "the same"),
        (np.zeros((9, 3)), "the same"),
        (np.eye(9), "equally far"),
        (np.full((9, 3), np.nan), "NaN"),
        (np.zeros((0, 3)), "shape"),
    ],
)
def test_what_has_no_cka_is_told(x: np.ndarray, told: str) -> None:
    y = np.random.default_rng(1).normal(size=(len(x), 2))
    with pytest.raises(BadInput, match=told):
        linear_cka(x, y)
    with pytest.raises(BadInput, match=told):
        debiased_cka(y, x)


def test_unequal_rows_are_refused() -> None:
    with pytest.raises(BadInput, match="the same rows, not 6 and 7"):
        linear_cka(np.eye(6), np.eye(7))


def test_a_figure_that_hangs_on_one_row_has_a_wide_interval_and_no_nan() -> None:
    x = np.zeros((12, 3))
    x[0] = 1.0
    x[1, 1] = 1e-9
    sums = gathered(x, x, 12)
    ((_, without),) = sums.without_each({"x": x, "y": x}, [("x", "y")])
    assert np.isfinite(without).all() and without[0, 0] == 0 and without[0, 5] == pytest.approx(1)
