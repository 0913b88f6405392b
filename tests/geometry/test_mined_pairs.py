"""Mining and scoring against the published procedure, written out, and against a planted permutation."""

import numpy as np
import pytest
from test_neighbours import encoder_like, unit

from calque.geometry.mining import Margin, Strategy, mine_pairs, pair_scores


def all_scores(s: np.ndarray, t: np.ndarray, margin: Margin, k: int) -> np.ndarray:
    """Every pair's score from the formula. Shape: (n, m)."""
    cosine = unit(s).astype("d") @ unit(t).astype("d").T
    near = np.sort(cosine, 1)[:, -k:].mean(1)[:, None], np.sort(cosine, 0)[-k:].mean(0)
    return {
        Margin.ABSOLUTE: cosine,
        Margin.DISTANCE: cosine - (near[0] + near[1]) / 2,
        Margin.RATIO: cosine / ((near[0] + near[1]) / 2),
    }[margin]


def procedure(score: np.ndarray, strategy: Strategy) -> list[tuple[int, int]]:
    """The pairs that the published program prints, best first (it looks among the nearest only)."""
    forward = [(i, int(j)) for i, j in enumerate(score.argmax(1))]
    backward = [(int(i), j) for j, i in enumerate(score.argmax(0))]
    if strategy is Strategy.FORWARD:
        chosen = forward
    elif strategy is Strategy.BACKWARD:
        chosen = backward
    elif strategy is Strategy.INTERSECTION:
        chosen = [pair for pair in forward if pair in backward]
    else:
        chosen = forward + backward
    ranked = sorted(chosen, key=lambda pair: -score[pair])
    if strategy is not Strategy.MAX:
        return ranked
    rows, columns, kept = set(), set(), []
    for i, j in ranked:
        if i not in rows and j not in columns:
            rows.add(i)
            columns.add(j)
            kept.append((i, j))
    return kept


@pytest.mark.parametrize("margin", list(Margin))
@pytest.mark.parametrize("strategy", list(Strategy))
def test_equals_the_published_procedure(margin: Margin, strategy: Strategy) -> None:
    s, t = encoder_like(150, 90, 16)
    score = all_scores(s, t, margin, 4)
    mined = mine_pairs(s, t, margin=margin, strategy=strategy)
    assert list(zip(mined.source.tolist(), mined.target.tolist(), strict=True)) == procedure(score, strategy)
    np.testing.assert_allclose(mined.score, score[mined.source, mined.target], atol=1e-6)
    assert (np.diff(mined.score) <= 0).all()


@pytest.mark.parametrize("margin", list(Margin))
def test_scores_of_given_pairs(margin: Margin) -> None:
    s, t = encoder_like(80, 120, 16)
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, 80, 200), rng.integers(0, 120, 200)])
    found = pair_scores(s, t, rows, margin=margin, k=5)
    np.testing.assert_allclose(found, all_scores(s, t, margin, 5)[rows[0], rows[1]], atol=1e-6)


def test_a_planted_permutation_is_recovered_among_strangers() -> None:
    """300 of 400 rows have a translation among 350, shuffled."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=(400, 32)) + 0.5
    order = rng.permutation(300)
    t = np.concatenate([s[order] + 0.4 * rng.normal(size=(300, 32)), rng.normal(size=(50, 32)) + 0.5])
    mined = mine_pairs(s, t)
    right = (mined.target < 300) & (order[np.minimum(mined.target, 299)] == mined.source)
    assert right.sum() == 300 and right[:300].all(), "and they come before all others"
    assert len(set(mined.source.tolist())) == len(mined) == len(set(mined.target.tolist()))


def test_one_row_each_and_rows_of_zeros_are_finite() -> None:
    for margin in Margin:
        for s, t in ((np.ones((1, 3)), -np.ones((1, 3))), (np.zeros((2, 3)), np.ones((3, 3)))):
            assert np.isfinite(mine_pairs(s, t, margin=margin).score).all()
            assert np.isfinite(pair_scores(s, t, np.zeros((2, 1), np.int64), margin=margin)).all()
