"""The CRF against all rows of tags one by one, and against pytorch-crf."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from calque.transfer.crf import NARROW, Crf


def made(seed: int, labels: int, spread: float = 2.0) -> Crf:
    draw = torch.Generator().manual_seed(seed)
    crf = Crf(labels).double()
    with torch.no_grad():
        for one in crf.parameters():
            one.copy_(spread * torch.randn(one.shape, generator=draw, dtype=torch.float64))
    return crf


def batch(seed: int, lengths: list[int], labels: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    emissions = 2 * torch.randn(*mask.shape, labels, generator=draw, dtype=torch.float64)
    return emissions, torch.randint(labels, mask.shape, generator=draw), mask


def row_score(crf: Crf, emissions: torch.Tensor, tags: tuple[int, ...]) -> float:
    score = crf.start[tags[0]] + crf.end[tags[-1]]
    score = score + sum(emissions[k, tag] for k, tag in enumerate(tags))
    score = score + sum(crf.transition[a, b] for a, b in itertools.pairwise(tags))
    return score.item()


seeds = st.integers(0, 10_000)
lengths = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(seeds, lengths, st.integers(1, 3), st.sampled_from([0.5, 2.0, 60.0]))
def test_all_rows_of_tags_one_by_one(seed: int, lengths: list[int], labels: int, spread: float) -> None:
    crf = made(seed, labels, spread)
    emissions, tags, mask = batch(seed, lengths, labels)
    likely = crf.log_likelihood(emissions, tags, mask)
    found = crf.decode(emissions, mask)
    for k, length in enumerate(lengths):
        paths = list(itertools.product(range(labels), repeat=length))
        scores = torch.tensor([row_score(crf, emissions[k], path) for path in paths], dtype=torch.float64)
        own = row_score(crf, emissions[k], tuple(tags[k, :length].tolist()))
        assert likely[k].item() == pytest.approx(own - float(scores.logsumexp(0)), abs=1e-9)
        assert row_score(crf, emissions[k], tuple(found[k])) == pytest.approx(float(scores.max()))
        assert len(found[k]) == length


@pytest.mark.parametrize("spread", [1.0, 60.0])
def test_pytorch_crf_says_the_same(spread: float) -> None:
    torchcrf = pytest.importorskip("torchcrf")
    ours, theirs = made(1, 7, spread), torchcrf.CRF(7, batch_first=True).double()
    span = float(ours.transition.detach().max() - ours.transition.detach().min())
    assert (span > NARROW) == (spread == 60.0)  # both ways of summing are tried
    with torch.no_grad():
        theirs.start_transitions.copy_(ours.start)
        theirs.end_transitions.copy_(ours.end)
        theirs.transitions.copy_(ours.transition)
    emissions, tags, mask = batch(2, [9, 1, 5, 12, 12, 2], 7)
    mine, other = emissions.clone().requires_grad_(), emissions.clone().requires_grad_()
    likely = ours.log_likelihood(mine, tags, mask)
    expected = theirs(other, tags, mask, reduction="none")
    torch.testing.assert_close(likely, expected)
    likely.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(mine.grad, other.grad)
    torch.testing.assert_close(ours.transition.grad, theirs.transitions.grad)
    torch.testing.assert_close(ours.start.grad, theirs.start_transitions.grad)
    torch.testing.assert_close(ours.end.grad, theirs.end_transitions.grad)
    assert ours.decode(emissions, mask) == theirs.decode(emissions, mask)


@given(seeds)
def test_single_precision_keeps_what_double_says(seed: int) -> None:
    """Transitions as far apart as a matrix product may sum, emissions far further."""
    crf = made(seed, 5)
    emissions, tags, mask = batch(seed, [8, 3], 5)
    with torch.no_grad():
        low, high = crf.transition.min(), crf.transition.max()
        crf.transition.copy_((crf.transition - low) * (NARROW - 1) / (high - low))
    exactly = crf.log_likelihood(100 * emissions, tags, mask)
    nearly = crf.float().log_likelihood(100 * emissions.float(), tags, mask)
    torch.testing.assert_close(nearly.double(), exactly, rtol=1e-5, atol=1e-2)


def test_transitions_far_apart_are_summed_exactly_too() -> None:
    """The first tag is certain alone, but a move from it costs more than single precision can multiply."""
    crf = Crf(2)
    with torch.no_grad():
        for one in crf.parameters():
            one.zero_()
        crf.transition[0] = -200.0
    emissions = torch.tensor([[[0.0, -120.0], [0.0, 0.0]]])
    likely = crf.log_likelihood(emissions, torch.tensor([[1, 0]]), torch.ones(1, 2, dtype=torch.bool))
    # Rows 1-0 and 1-1 score −120, rows 0-0 and 0-1 −200.
    assert likely.item() == pytest.approx(-math.log(2), abs=1e-4)


def test_half_precision_does_not_overflow() -> None:
    crf = made(3, 5).float()
    emissions, tags, mask = batch(3, [60, 41], 5)
    large = (3000 * emissions).clamp(-60_000, 60_000).half()  # sums of a few are beyond half precision
    likely = crf.half().log_likelihood(large, tags, mask)
    assert likely.dtype == torch.float32 and bool(torch.isfinite(likely).all())
    torch.testing.assert_close(likely, crf.float().log_likelihood(large.float(), tags, mask))
    assert crf.half().decode(large, mask) == crf.float().decode(large.float(), mask)


def test_autocast_leaves_the_sums_alone() -> None:
    crf = made(5, 5).float()
    emissions, tags, mask = batch(5, [6, 4], 5)
    expected = crf.log_likelihood(emissions.float(), tags, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(crf.log_likelihood(emissions.float(), tags, mask), expected)


def test_what_stands_beyond_a_row_changes_nothing() -> None:
    crf = made(4, 3)
    emissions, tags, mask = batch(4, [5, 2], 3)
    clean = crf.log_likelihood(emissions, tags, mask)
    dirty = emissions.masked_fill(~mask[..., None], torch.inf)
    torch.testing.assert_close(crf.log_likelihood(dirty, tags.masked_fill(~mask, -1), mask), clean)
    alone = crf.log_likelihood(emissions[1:, :2], tags[1:, :2], mask[1:, :2])
    torch.testing.assert_close(alone, clean[1:])
    assert crf.decode(emissions[1:, :2], mask[1:, :2]) == crf.decode(emissions, mask)[1:]
