"""Pooling of a whole batch equals a loop over words, values and gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.encoders.pooling import bags, pool, pool_words
from calque.errors import BadSetting
from calque.types import TextBatch

PICK = {"first": lambda x: x[0], "last": lambda x: x[-1], "mean": lambda x: x.mean(0)}
spans = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(1, 3)), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(spans=spans, pooling=st.sampled_from(sorted(PICK)))
def test_pooling_is_the_loop(spans: list[tuple[int, int, int]], pooling: str) -> None:
    row, start, count = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    hidden = torch.randn(3, 8, 5, generator=torch.Generator().manual_seed(1), requires_grad=True)
    ours = pool(hidden, bags(row, start, start + count, width=8, pooling=pooling))
    loop = torch.stack([PICK[pooling](hidden[r, a : a + n]) for r, a, n in spans])
    torch.testing.assert_close(ours, loop)
    weights = torch.arange(ours.numel()).reshape(ours.shape).float()
    (mine,) = torch.autograd.grad((ours * weights).sum(), hidden)
    (theirs,) = torch.autograd.grad((loop * weights).sum(), hidden)
    torch.testing.assert_close(mine, theirs)


def test_nothing_to_pool() -> None:
    none = np.zeros(0, np.int64)
    assert pool(torch.ones(2, 3, 4), bags(none, none, none, width=3, pooling="mean")).shape == (0, 4)


def test_words_of_a_batch() -> None:
    pieces = torch.zeros(2, 4, dtype=torch.long)
    where = [np.array(x, np.int64) for x in ([0, 1], [0, 0], [1, 0], [3, 1])]
    batch = TextBatch("en", pieces, pieces.bool(), *where, specials=np.zeros((2, 2), np.int64))
    hidden = torch.arange(8.0).reshape(2, 4, 1)
    assert pool_words(hidden, batch).flatten().tolist() == [1.5, 4.0]
    assert pool_words(hidden, batch, "last").flatten().tolist() == [2.0, 4.0]


def test_unknown_pooling_is_told() -> None:
    one = np.ones(1, np.int64)
    with pytest.raises(BadSetting, match=r"unknown pooling 'max'.*first, last, mean"):
        bags(one, one, one + 1, width=3, pooling="max")  # type: ignore[arg-type]
