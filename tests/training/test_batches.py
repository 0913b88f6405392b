"""Batches: every row once, of like length, within their bound, the same whenever they are asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadSetting
from calque.training.batches import bucketed, side_by_side

LENGTHS = st.lists(st.integers(1, 60), min_size=0, max_size=300).map(lambda one: np.array(one, np.int64))


@given(LENGTHS, st.integers(1, 40), st.integers(0, 3))
def test_every_row_is_there_once_in_batches_of_the_size(lengths: np.ndarray, size: int, epoch: int) -> None:
    made = bucketed(lengths, size=size, seed=1, epoch=epoch)
    assert sorted(np.concatenate([[], *made]).tolist()) == list(range(len(lengths)))
    assert sum(len(rows) != size for rows in made) <= 1 and all(len(rows) <= size for rows in made)


@given(LENGTHS, st.integers(1, 400))
def test_a_budget_of_tokens_holds_padding_too(lengths: np.ndarray, tokens: int) -> None:
    made = bucketed(lengths, tokens=tokens, seed=1, epoch=0)
    assert sorted(np.concatenate([[], *made]).tolist()) == list(range(len(lengths)))
    assert all(len(rows) == 1 or lengths[rows].max() * len(rows) <= tokens for rows in made)


def test_batches_depend_on_seed_and_epoch_alone() -> None:
    lengths = np.random.default_rng(0).integers(5, 50, 1000)

    def told(seed: int, epoch: int) -> list[list[int]]:
        return [rows.tolist() for rows in bucketed(lengths, size=16, seed=seed, epoch=epoch)]

    assert told(0, 0) == told(0, 0)
    assert told(0, 0) != told(0, 1) and told(0, 0) != told(1, 0) and told(0, 1) != told(1, 0)


def test_like_lengths_come_together_and_batches_do_not_come_in_order_of_length() -> None:
    lengths = np.random.default_rng(0).integers(5, 100, 4000)
    made = bucketed(lengths, tokens=1600, seed=0, epoch=0)
    padded = sum(lengths[rows].max() * len(rows) for rows in made)
    assert padded < 1.1 * lengths.sum()
    longest = np.array([lengths[rows].max() for rows in made])
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.25


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.integers(0, 2))
def test_shorter_corpora_begin_again(sizes: list[int], epoch: int) -> None:
    random = np.random.default_rng(0)
    table = side_by_side([random.integers(1, 9, size) for size in sizes], seed=3, epoch=epoch)
    assert table.shape == (max(sizes), len(sizes))
    for column, size in zip(table.T, sizes, strict=True):
        often = np.bincount(column, minlength=size)
        assert often.max() - often.min() <= 1 and len(often) == size


def test_rows_beside_each_other_are_of_like_length() -> None:
    random = np.random.default_rng(0)
    lengths = [random.integers(5, 100, size) for size in (3000, 1000)]
    table = side_by_side(lengths, seed=0, epoch=0)
    apart = np.abs(lengths[0][table[:, 0]] - lengths[1][table[:, 1]])
    assert apart.mean() < 5
    assert not np.array_equal(table, side_by_side(lengths, seed=0, epoch=1))


@pytest.mark.parametrize("bounds", [{}, {"size": 2, "tokens": 9}, {"size": 0}, {"tokens": -1}])
def test_bounds_that_make_no_sense_are_refused(bounds: dict[str, int]) -> None:
    with pytest.raises(BadSetting):
        bucketed(np.ones(3, np.int64), seed=0, epoch=0, **bounds)


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(BadSetting, match="no rows"):
        side_by_side([np.ones(3, np.int64), np.ones(0, np.int64)], seed=0, epoch=0)
