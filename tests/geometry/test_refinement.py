"""Refinement: planted maps found from few and partly wrong pairs, and never a map worse than the first."""

import numpy as np
import pytest

from calque.errors import BadSetting
from calque.geometry.neighbours import two_way
from calque.geometry.refinement import mutual_neighbours, refine
from calque.geometry.solvers import IDENTITY, Matrix, Method, PairMaps, SolverOptions, solve_pairs
from planted import orthogonal

FEW = SolverOptions(shrink=1e-6)


def languages(
    words: int = 1200, width: int = 40, noise: float = 0.3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two languages whose word k means the same, the second turned; and the turn."""
    rng = np.random.default_rng(0)
    fading = np.arange(1, width + 1) ** -0.4
    turn = orthogonal(width, 1)
    source = rng.normal(size=(words, width)) * fading
    target = (source + noise * rng.normal(size=source.shape) * fading) @ turn.T
    return source.astype("f"), target.astype("f"), turn


def seed_pairs(words: int, count: int, wrong: float) -> np.ndarray:
    """Shape: (count, 2); a share of the pairs joins words that have nothing to do with each other."""
    rng = np.random.default_rng(2)
    rows = rng.permutation(words)[:count]
    other = np.where(rng.random(count) < wrong, rng.permutation(words)[:count], rows)
    return np.stack([rows, other], 1)


def rotation(source: np.ndarray, target: np.ndarray) -> PairMaps:
    return solve_pairs(Method.ROTATION, source, target, FEW)


def right(maps: PairMaps, source: np.ndarray, target: np.ndarray) -> float:
    """P@1 over all words."""
    found = two_way(maps.moves.apply(source), maps.held.apply(target)).forward.index[:, 0]
    return float((found == np.arange(len(source))).mean())


@pytest.mark.parametrize("count, wrong", [(32, 0.3), (25, 0.2), (20, 0.0)])
def test_a_planted_rotation_is_recovered_from_a_small_noisy_seed(count: int, wrong: float) -> None:
    source, target, turn = languages()
    pairs = seed_pairs(len(source), count, wrong)
    start = rotation(source[pairs[:, 0]], target[pairs[:, 1]])
    refined = refine(source, target, start, rotation, rounds=10)
    assert right(start, source, target) < 0.75 and right(refined.maps, source, target) > 0.99
    (step,) = refined.maps.moves.steps
    assert np.abs(step.matrix - turn).max() < 0.05
    cosines = [one.cosine for one in refined.rounds]
    assert cosines[0] < 0.7 < 0.9 < max(cosines)
    assert refined.rounds[-1].pairs > 0.99 * len(source) > refined.rounds[0].pairs
    assert (refined.pairs[:, 0] == refined.pairs[:, 1]).mean() > 0.99


@pytest.mark.parametrize(
    "method", [Method.CENTRED_ROTATION, Method.ITERATIVE_NORMALISATION, Method.LEAST_SQUARES]
)
def test_other_methods_are_refined_too(method: Method) -> None:
    source, target, _ = languages()
    pairs = seed_pairs(len(source), 28, 0.2)
    options = SolverOptions(shrink=0.01, rounds=2)
    solve = lambda a, b: solve_pairs(method, a, b, options)  # noqa: E731
    start = solve(source[pairs[:, 0]], target[pairs[:, 1]])
    refined = refine(source, target, start, solve, rounds=8)
    assert right(start, source, target) < 0.8 and right(refined.maps, source, target) > 0.99


def test_it_ends_when_nothing_changes_and_not_later_than_asked() -> None:
    source, target, turn = languages()
    there = PairMaps(IDENTITY.moves.__class__((Matrix(turn.astype("f")),)), IDENTITY.held)
    assert len(refine(source, target, there, rotation, rounds=9).rounds) < 4
    pairs = seed_pairs(len(source), 25, 0.2)
    start = rotation(source[pairs[:, 0]], target[pairs[:, 1]])
    assert len(refine(source, target, start, rotation, rounds=1).rounds) == 2
    with pytest.raises(BadSetting, match="rounds is 0"):
        refine(source, target, start, rotation, rounds=0)


def test_the_best_map_wins_even_when_it_is_the_first() -> None:
    source, target, _ = languages()
    there = rotation(source, target)
    spoiled = lambda a, b: rotation(a, b[::-1])  # noqa: E731
    refined = refine(source, target, there, spoiled, rounds=3)
    assert refined.maps is there and len(refined.rounds) == 4
    assert refined.rounds[0].cosine == max(one.cosine for one in refined.rounds)


def test_mutual_neighbours_are_brute_force() -> None:
    rng = np.random.default_rng(5)
    source, target = rng.normal(size=(70, 6)).astype("f"), rng.normal(size=(50, 6)).astype("f")
    s, t = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (source, target))
    cos = (s @ t.T).astype(np.float64)
    scores = 2 * cos - np.sort(cos, 1)[:, -10:].mean(1)[:, None] - np.sort(cos, 0)[-10:].mean(0)
    slow = [[i, j] for i, j in enumerate(scores.argmax(1)) if scores[:, j].argmax() == i]
    pairs, cosine = mutual_neighbours(source, target)
    assert pairs.tolist() == slow
    assert cosine == pytest.approx(np.mean([cos[i, j] for i, j in enumerate(scores.argmax(1))]), abs=1e-6)


def test_constant_vectors_leave_the_map_as_it_was() -> None:
    flat = np.ones((30, 4), "f")
    refined = refine(flat, flat, IDENTITY, rotation, rounds=3)
    assert np.isfinite(refined.maps.moves.apply(flat)).all()
    assert refined.rounds[0].pairs == 1, "the first of equals finds the first"


def test_same_input_same_map() -> None:
    source, target, _ = languages(400, 20)
    pairs = seed_pairs(400, 20, 0.2)
    start = rotation(source[pairs[:, 0]], target[pairs[:, 1]])
    once, twice = (refine(source, target, start, rotation, rounds=5) for _ in range(2))
    assert np.array_equal(once.maps.moves.steps[0].matrix, twice.maps.moves.steps[0].matrix)
    assert once.rounds == twice.rounds
