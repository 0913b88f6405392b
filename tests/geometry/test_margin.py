"""The margin by its own formula: degenerate rows, and the two-step search of the published program."""

import numpy as np
from test_neighbours import brute, encoder_like, unit

from calque.geometry.margin import FLOOR, margins
from calque.geometry.neighbours import Similarity, two_way


def test_no_neighbour_with_a_positive_cosine() -> None:
    """All on opposite sides: margins are below zero, and the least negative one is still found."""
    rng = np.random.default_rng(0)
    s, t = (sign + rng.normal(size=(60, 8)) * 0.4 for sign in (1, -1))
    ours = two_way(s, t, similarity=Similarity.MARGIN, k=3)
    theirs = brute(s, t, Similarity.MARGIN, 3)
    assert (ours.forward.score < 0).all() and np.isfinite(ours.forward.score).all()
    np.testing.assert_array_equal(ours.forward.index, theirs.forward.index)
    np.testing.assert_allclose(ours.backward.score, theirs.backward.score, rtol=1e-6)


def test_zero_rows_give_finite_margins() -> None:
    found = two_way(np.zeros((3, 4)), np.zeros((2, 4)), similarity=Similarity.MARGIN)
    assert (found.forward.score == 0).all() and (found.forward.index == 0).all()
    assert margins(np.zeros(1), np.array([-1.0]), np.zeros(1)).tolist() == [0.0] and FLOOR > 0


def test_never_below_the_best_of_the_nearest_by_cosine() -> None:
    """The published program looks among the nearest by cosine only; here every row is a candidate."""
    s, t = encoder_like(500, 400, 24)
    a, b = unit(s).astype("d"), unit(t).astype("d")
    cosine = a @ b.T
    near = np.argsort(-cosine, 1)[:, :4]
    forward = np.take_along_axis(cosine, near, 1)
    backward = -np.sort(-cosine, 0)[:4]
    program = margins(forward, forward.mean(1, keepdims=True), backward.mean(0)[near]).max(1)
    found = two_way(s, t, similarity=Similarity.MARGIN, radius_k=4).forward.score[:, 0]
    assert (found > program - 1e-6).all() and (found > program + 1e-4).any()
    assert np.isclose(found, program, atol=1e-6).mean() > 0.6
