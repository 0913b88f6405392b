"""Masking: the right shares, the same for the same generator, never a special."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadSetting
from calque.pretrain.masking import NOT_ASKED, Masker

SIZE, MASK, SPECIALS = 500, 4, [0, 1, 2, 3, 4]
ORDINARY = ~np.isin(np.arange(SIZE), SPECIALS)


def rows(seed: int, shape: tuple[int, int] = (400, 100)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, SIZE, shape)


def test_shares_are_those_of_bert() -> None:
    pieces = rows(0)
    shown, labels = Masker(MASK, ORDINARY).hide(pieces, np.random.default_rng(1))
    asked, ordinary = labels != NOT_ASKED, ORDINARY[pieces]
    masked, kept = shown == MASK, shown == pieces
    # Four standard deviations of 40,000 draws, and of the 6,000 that are asked.
    assert asked.sum() / ordinary.sum() == pytest.approx(0.15, abs=0.0075)
    assert masked[asked].mean() == pytest.approx(0.8, abs=0.021)
    assert kept[asked].mean() == pytest.approx(0.1, abs=0.016)
    replaced = shown[asked & ~masked & ~kept]
    assert len(np.unique(replaced)) > 300


@given(st.integers(0, 10_000), st.floats(0.01, 1.0))
def test_what_is_asked_is_what_was_there_and_never_a_special(seed: int, share: float) -> None:
    pieces = rows(seed, (7, 13))
    before = pieces.copy()
    shown, labels = Masker(MASK, ORDINARY, share).hide(pieces, np.random.default_rng(seed))
    asked = labels != NOT_ASKED
    assert (pieces == before).all()
    assert ORDINARY[pieces[asked]].all() and (labels[asked] == pieces[asked]).all()
    assert (shown[~asked] == pieces[~asked]).all()
    assert (ORDINARY[shown] | (shown == MASK))[asked].all()


def test_the_same_generator_hides_the_same() -> None:
    masker, pieces = Masker(MASK, ORDINARY), rows(2)
    first, again, other = (
        masker.hide(pieces, np.random.default_rng(draw)) for draw in ((0, 1), (0, 1), (0, 2))
    )
    assert (first.pieces == again.pieces).all() and (first.labels == again.labels).all()
    assert (first.labels != other.labels).any()


def test_all_pieces_can_be_asked_for() -> None:
    pieces = np.full((2, 3), 9)
    assert (Masker(MASK, ORDINARY, 1.0).hide(pieces, np.random.default_rng(0)).labels == 9).all()


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1])
def test_a_share_outside_its_bounds_is_refused(share: float) -> None:
    with pytest.raises(BadSetting, match="above 0"):
        Masker(MASK, ORDINARY, share)
