"""Solvers against answers computed elsewhere: planted maps, SciPy, NumPy, and properties."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import BadInput, BadSetting
from calque.geometry.moments import PairMoments
from calque.geometry.solvers import (
    CLOSED_FORM,
    NEEDS,
    STREAMED,
    Method,
    PairMaps,
    SolverOptions,
    nearest_rotation,
)

PLAIN = SolverOptions()
ROTATIONS = (Method.ROTATION, Method.CENTRED_ROTATION)


def orthogonal(d: int, seed: int) -> np.ndarray:
    return scipy.stats.ortho_group.rvs(d, random_state=seed)


def noisy(n: int, d: int, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    s = rng.normal(0.5, np.linspace(0.5, 2, d), (n, d))
    return s, s @ orthogonal(d, seed).T + rng.normal(0.2, noise, (n, d))


def moments_of(s: np.ndarray, t: np.ndarray, method: Method | None = None) -> PairMoments:
    moments = PairMoments() if method is None else PairMoments(NEEDS[method])
    for start in range(0, len(s), 997):
        moments.add(s[start : start + 997], t[start : start + 997])
    return moments


def solve(method: Method, s: np.ndarray, t: np.ndarray, options: SolverOptions = PLAIN) -> PairMaps:
    if method in STREAMED:
        return STREAMED[method](lambda: stream(s, t), options)
    return CLOSED_FORM[method](moments_of(s, t, method), options)


def stream(s: np.ndarray, t: np.ndarray, size: int = 500) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, len(s), size):
        yield s[start : start + size], t[start : start + size]


def matrix(maps: PairMaps) -> np.ndarray:
    [step] = [step for step in maps.moves.steps if hasattr(step, "matrix")]
    return step.matrix


def test_every_method_has_one_solver() -> None:
    assert CLOSED_FORM.keys().isdisjoint(STREAMED)
    assert CLOSED_FORM.keys() | STREAMED.keys() == set(Method)
    assert NEEDS.keys() == CLOSED_FORM.keys()


@pytest.mark.parametrize("method", ROTATIONS)
def test_planted_rotation_recovered(method: Method) -> None:
    """Single-precision vectors with an offset far greater than their spread, in many blocks."""
    rng, turn = np.random.default_rng(1), orthogonal(48, 1)
    s = rng.normal(0, 1, (20_000, 48)) + rng.normal(0, 5, 48)
    if method is Method.ROTATION:
        t = s @ turn.T
    else:
        t = (s - s.mean(0)) @ turn.T + 7
    maps = solve(method, s.astype(np.float32), t.astype(np.float32))
    assert np.abs(matrix(maps) - turn).max() < 1e-6
    np.testing.assert_allclose(maps.moves.apply(s), t, atol=1e-5)
    assert maps.held.steps == ()


def test_rotation_equals_scipy() -> None:
    s, t = noisy(400, 12)
    theirs, _ = scipy.linalg.orthogonal_procrustes(s, t)
    np.testing.assert_allclose(matrix(solve(Method.ROTATION, s, t)), theirs.T, atol=1e-10)
    theirs, _ = scipy.linalg.orthogonal_procrustes(s - s.mean(0), t - t.mean(0))
    np.testing.assert_allclose(matrix(solve(Method.CENTRED_ROTATION, s, t)), theirs.T, atol=1e-10)


def test_least_squares_equals_numpy() -> None:
    s, t = noisy(400, 12)
    theirs = np.linalg.lstsq(s, t)[0].T
    np.testing.assert_allclose(matrix(solve(Method.LEAST_SQUARES, s, t)), theirs, atol=1e-9)


def test_shrunk_least_squares_is_ridge_towards_the_identity() -> None:
    s, t = noisy(30, 8)
    ridge = 0.25 / 0.75 * (s**2).sum() / 8
    stacked = np.concatenate([s, np.sqrt(ridge) * np.eye(8)]), np.concatenate([t, np.sqrt(ridge) * np.eye(8)])
    theirs = np.linalg.lstsq(*stacked)[0].T
    found = solve(Method.LEAST_SQUARES, s, t, SolverOptions(shrink=0.25))
    np.testing.assert_allclose(matrix(found), theirs, atol=1e-9)
    turned, _ = scipy.linalg.orthogonal_procrustes(*stacked)
    found = solve(Method.ROTATION, s, t, SolverOptions(shrink=0.25))
    np.testing.assert_allclose(matrix(found), turned.T, atol=1e-9)


@settings(deadline=None)
@given(st.integers(2, 8), st.integers(0, 10_000), st.floats(0, 0.9))
def test_rotations_are_orthogonal_and_swapping_inverts_them(d: int, seed: int, shrink: float) -> None:
    s, t = noisy(d + 10, d, seed)
    moments = moments_of(s, t)
    for method in ROTATIONS:
        there = matrix(CLOSED_FORM[method](moments, SolverOptions(shrink=shrink)))
        np.testing.assert_allclose(there @ there.T, np.eye(d), atol=1e-10)
        back = matrix(CLOSED_FORM[method](moments.swapped(), PLAIN))
        if shrink == 0:
            np.testing.assert_allclose(back, there.T, atol=1e-8)


def test_centring_and_z_norm() -> None:
    s, t = noisy(1000, 5)
    s[:, 3] = np.float32(3.3)
    for side, rows in (("moves", s), ("held", t)):
        centred = getattr(solve(Method.CENTRING, s, t), side).apply(rows)
        np.testing.assert_allclose(centred, rows - rows.mean(0), atol=1e-12)
    maps = solve(Method.STANDARDISE, s, t)
    np.testing.assert_allclose(maps.held.apply(t), scipy.stats.zscore(t), atol=1e-10)
    scaled = maps.moves.apply(s)
    np.testing.assert_allclose(scaled.std(0), [1, 1, 1, 0, 1], atol=1e-10)
    assert np.abs(scaled[:, 3]).max() < 1e-10


def test_z_norm_of_a_constant_in_single_precision() -> None:
    """Rounding noise around a constant must not be blown up."""
    s = np.full((20_000, 2), 0.1, np.float32)
    s[:, 0] = np.random.default_rng(0).normal(size=20_000)
    maps = CLOSED_FORM[Method.STANDARDISE](moments_of(s, s), PLAIN)
    assert np.abs(maps.moves.apply(np.full((1, 2), 0.2))[0, 1]) < 0.2


def test_top_components_equal_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    s, t = noisy(500, 10)
    maps = solve(Method.TOP_COMPONENTS, s, t, SolverOptions(components=2))
    for space, rows in ((maps.moves, s), (maps.held, t)):
        pca = PCA(2).fit(rows)
        expected = rows - pca.inverse_transform(pca.transform(rows))
        np.testing.assert_allclose(space.apply(rows), expected, atol=1e-8)


@pytest.mark.parametrize("method", [method for method in Method if method is not Method.CENTRED_ROTATION])
def test_shrink_one_is_the_identity_and_the_path_is_monotone(method: Method) -> None:
    s, t = noisy(300, 6)
    fast = {"steps": 200, "learning_rate": 0.01, "rounds": 2}
    away = []
    for shrink in (0, 0.3, 0.6, 0.9, 0.999, 1):
        maps = solve(method, s, t, SolverOptions(shrink=shrink, **fast))
        moved = maps.moves.apply(s)
        if method is Method.ITERATIVE_NORMALISATION:  # unit length stays on the way; directions go home
            moved, home = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (moved, s))
        else:
            home = s
        away.append(np.linalg.norm(moved - home))
    assert away[-1] == 0 and maps.moves.steps == maps.held.steps == ()
    assert all(a > b for a, b in pairwise(away)), away
    assert away[-2] < 0.05 * away[0]


def test_shrinking_a_centred_rotation_leaves_the_means_where_they_are() -> None:
    s, t = noisy(300, 6)
    turned = []
    for shrink in (0, 0.3, 0.6, 0.9, 0.999, 1):
        maps = solve(Method.CENTRED_ROTATION, s, t, SolverOptions(shrink=shrink))
        np.testing.assert_allclose(maps.moves.apply(s).mean(0), t.mean(0), atol=1e-9)
        turned.append(np.linalg.norm(maps.moves.apply(s) - (s - s.mean(0) + t.mean(0))))
    assert turned[-1] == 0
    assert all(a > b for a, b in pairwise(turned)), turned


def test_iterative_normalisation_replays_on_new_vectors() -> None:
    s, t = noisy(8000, 16, noise=0.05)
    maps = solve(Method.ITERATIVE_NORMALISATION, s[:4000], t[:4000])
    for space, rows in ((maps.moves, s[4000:]), (maps.held, t[4000:])):
        new = space.apply(rows)
        assert np.abs(np.linalg.norm(new, axis=1) - 1).max() < 0.02
        assert np.linalg.norm(new.mean(0)) < 0.05
    alike = (maps.moves.apply(s[4000:]) * maps.held.apply(t[4000:])).sum(1)
    assert np.median(alike) > 0.95


def test_iterative_normalisation_equals_its_whole_array_twin() -> None:
    s, t = noisy(700, 6)
    maps = solve(Method.ITERATIVE_NORMALISATION, s, t, SolverOptions(rounds=3))
    for _ in range(3):
        s, t = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (s, t))
        s, t = s - s.mean(0), t - t.mean(0)
    theirs, _ = scipy.linalg.orthogonal_procrustes(s, t)
    np.testing.assert_allclose(matrix(maps), theirs.T, atol=1e-9)
    np.testing.assert_allclose(maps.held.apply(noisy(700, 6)[1]), t, atol=1e-9)


def test_orthogonal_gradient_approaches_the_rotation() -> None:
    s, _ = noisy(3000, 10)
    t = s @ scipy.linalg.expm(0.1 * np.triu(np.ones((10, 10)), 1) - 0.1 * np.tril(np.ones((10, 10)), -1)).T
    options = SolverOptions(steps=3000, learning_rate=5e-3)
    found = matrix(solve(Method.ORTHOGONAL_GRADIENT, s, t, options))
    np.testing.assert_allclose(found, matrix(solve(Method.ROTATION, s, t)), atol=1e-3)
    again = matrix(solve(Method.ORTHOGONAL_GRADIENT, s, t, options))
    np.testing.assert_array_equal(found, again)


def test_orthogonal_gradient_keeps_near_orthogonal_where_the_data_scale() -> None:
    s, _ = noisy(3000, 6)
    found = matrix(
        solve(Method.ORTHOGONAL_GRADIENT, s, 1.3 * s, SolverOptions(steps=1500, learning_rate=1e-3, beta=0.1))
    )
    assert np.abs(found @ found.T - np.eye(6)).max() < 0.05


def test_fewer_pairs_than_a_batch() -> None:
    s, t = noisy(20, 4)
    found = matrix(solve(Method.ORTHOGONAL_GRADIENT, s, t, SolverOptions(steps=10)))
    assert np.isfinite(found).all()


def test_vanishing_singular_values_leave_the_identity() -> None:
    """Pairs in a plane of six dimensions turn that plane and nothing else."""
    turn = np.eye(6)
    turn[:2, :2] = [[0, -1], [1, 0]]
    s = np.zeros((50, 6))
    s[:, :2] = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_allclose(matrix(solve(Method.ROTATION, s, s @ turn.T)), turn, atol=1e-9)
    np.testing.assert_array_equal(nearest_rotation(np.zeros((3, 3))), np.eye(3))
    solution = matrix(solve(Method.LEAST_SQUARES, s, s @ turn.T))
    np.testing.assert_allclose(s @ solution.T, s @ turn.T, atol=1e-9)


@pytest.mark.parametrize("method", [*ROTATIONS, Method.LEAST_SQUARES, Method.ITERATIVE_NORMALISATION])
def test_too_few_pairs(method: Method) -> None:
    s, t = noisy(5, 8)
    with pytest.raises(BadSetting, match=r"5 pairs .* 8 dimensions .*--shrink 0.1"):
        solve(method, s, t)
    assert np.isfinite(solve(method, s, t, SolverOptions(shrink=0.1)).moves.apply(s)).all()


@pytest.mark.parametrize("method", list(Method))
def test_no_pairs(method: Method) -> None:
    with pytest.raises(BadInput, match="no pairs"):
        solve(method, np.zeros((0, 4)), np.zeros((0, 4)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"shrink": -0.1},
        {"shrink": 1.1},
        {"shrink": float("nan")},
        {"components": 0},
        {"rounds": 0},
        {"steps": 0},
        {"batch": 0},
        {"beta": 0.5},
        {"learning_rate": 0.0},
    ],
)
def test_options_out_of_bounds(wrong: dict[str, float]) -> None:
    with pytest.raises(BadSetting, match=next(iter(wrong))):
        SolverOptions(**wrong)


def test_too_many_components() -> None:
    with pytest.raises(BadSetting, match="at most 3"):
        solve(Method.TOP_COMPONENTS, *noisy(50, 4), SolverOptions(components=4))
