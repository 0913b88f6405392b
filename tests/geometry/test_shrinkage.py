"""Shrink chosen by cross-validation: from moments as from vectors, and the right way."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from calque.errors import BadInput
from calque.geometry.moments import PairMoments
from calque.geometry.shrinkage import SHRINKS, choose_shrink, squared_distance
from calque.geometry.solvers import CLOSED_FORM, NEEDS, Method, SolverOptions

VALIDATED = (Method.ROTATION, Method.CENTRED_ROTATION, Method.LEAST_SQUARES)


def pairs(count: int, turn: np.ndarray, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    s = rng.normal(size=(count, len(turn))) + 0.5
    return s, s @ turn.T + noise * rng.normal(size=s.shape) - 0.25


def folds(method: Method, s: np.ndarray, t: np.ndarray, count: int = 4) -> list[PairMoments]:
    made = []
    for rows in np.array_split(np.arange(len(s)), count):
        moments = PairMoments(NEEDS[method])
        moments.add(s[rows], t[rows])
        made.append(moments)
    return made


@pytest.mark.parametrize("method", VALIDATED)
def test_distances_from_moments_equal_distances_of_vectors(method: Method) -> None:
    s, t = pairs(60, ortho_group.rvs(8, random_state=1), 0.3)
    first, second, *_ = folds(method, s, t, 2)
    maps = CLOSED_FORM[method](first, SolverOptions(shrink=0.2))
    apart = maps.moves.apply(s[30:]) - maps.held.apply(t[30:])
    assert squared_distance(maps, second) == pytest.approx(np.square(apart).sum(), rel=1e-9)


@pytest.mark.parametrize("method", VALIDATED)
@pytest.mark.parametrize("seed", range(4))
def test_the_walk_downhill_finds_what_trying_all_finds(method: Method, seed: int) -> None:
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(np.eye(12) + rng.uniform(0.05, 0.4) * rng.normal(size=(12, 12)))[0]
    turn *= np.sign(np.diag(turn))[None]
    s, t = pairs(60, turn, rng.uniform(0.2, 2), seed)
    parts = folds(method, s, t)

    def error(shrink: float) -> float:
        total = 0.0
        for rows in np.array_split(np.arange(60), 4):
            rest = PairMoments(NEEDS[method])
            rest.add(np.delete(s, rows, 0), np.delete(t, rows, 0))
            maps = CLOSED_FORM[method](rest, SolverOptions(shrink=shrink))
            total += np.square(maps.moves.apply(s[rows]) - maps.held.apply(t[rows])).sum()
        return total

    assert choose_shrink(parts, CLOSED_FORM[method], SolverOptions()) == min(SHRINKS, key=error)


def test_many_clear_pairs_shrink_little_and_a_few_noisy_ones_much() -> None:
    turn = ortho_group.rvs(16, random_state=3)
    method = Method.CENTRED_ROTATION
    clear = folds(method, *pairs(2000, turn, 0.1))
    # Translations that already lie where they should: the noise has nothing to teach.
    noisy = folds(method, *pairs(40, np.eye(16), 1.0))
    chosen = [choose_shrink(some, CLOSED_FORM[method], SolverOptions()) for some in (clear, noisy)]
    assert chosen[0] == SHRINKS[0] and chosen[1] >= 0.8


def test_one_fold_is_not_enough() -> None:
    s, t = pairs(20, np.eye(4), 0.1)
    with pytest.raises(BadInput, match="give shrink a number"):
        choose_shrink(folds(Method.ROTATION, s, t, 1), CLOSED_FORM[Method.ROTATION], SolverOptions())
