"""Losses against loops written from their formulas, finite differences, and each other."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from calque.geometry.losses import Contrast, Head, Linked, distance, strong, weak

Loss = Callable[[Linked, Contrast], torch.Tensor]


def links(count: int, seed: int = 0, words: int = 1000, width: int = 5) -> Linked:
    draw = torch.Generator().manual_seed(seed)
    sides = [torch.randn(count, width, generator=draw, dtype=torch.float64) for _ in range(2)]
    numbers = [torch.randint(words, (count,), generator=draw) for _ in range(2)]
    return Linked(*sides, *numbers)


def rows(part: Linked, chosen: slice | torch.Tensor) -> Linked:
    return part.each(lambda column: column[chosen])


def cosine(x: torch.Tensor, y: torch.Tensor) -> float:
    return float(x @ y / (x.norm() * y.norm()))


def by_loop(own: Linked, contrast: Contrast, *, both_sides: bool) -> float:
    """−1/2B Σ log exp(sim(h, aligned(h))/T) / Σ exp(sim(h, h')/T), term by term."""
    queue = links(0) if contrast.queue is None else contrast.queue
    vectors = {"s": [*own.source, *queue.source], "t": [*own.target, *queue.target]}
    words = {"s": [*own.source_words, *queue.source_words], "t": [*own.target_words, *queue.target_words]}
    total = 0.0
    for i in range(len(own)):
        for side, other in (("s", "t"), ("t", "s")):
            sim = cosine(vectors[side][i], vectors[other][i])
            below = math.exp(sim / contrast.temperature)
            for there in (other, side) if both_sides else (other,):
                for j in range(len(vectors[there])):
                    if j == i or (contrast.mask_same and words[there][j] == words[there][i]):
                        continue
                    below += math.exp(cosine(vectors[side][i], vectors[there][j]) / contrast.temperature)
            total += math.log(math.exp(sim / contrast.temperature) / below)
    return -total / (2 * len(own))


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("waiting", [0, 4])
@pytest.mark.parametrize(("loss", "both"), [(weak, False), (strong, True)])
def test_contrastive_losses_are_their_formulas(loss: Loss, both: bool, waiting: int, mask: bool) -> None:
    own, queue = links(9, words=4), links(waiting, seed=1, words=4)
    contrast = Contrast(temperature=0.3, mask_same=mask, queue=queue)
    assert loss(own, contrast).item() == pytest.approx(by_loop(own, contrast, both_sides=both), abs=1e-12)


@pytest.mark.parametrize("loss", [weak, strong])
def test_the_mask_matters_only_where_words_repeat(loss: Loss) -> None:
    repeated, distinct = links(9, words=3), links(9)
    distinct = replace(distinct, source_words=torch.arange(9), target_words=torch.arange(9))
    on, off = Contrast(mask_same=True), Contrast(mask_same=False)
    assert loss(repeated, on) < loss(repeated, off)
    assert loss(distinct, on) == loss(distinct, off)


@pytest.mark.parametrize("loss", [weak, strong])
def test_gradients_are_those_of_finite_differences(loss: Loss) -> None:
    own, queue = links(6, words=3), links(3, seed=2, words=3)

    def of(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return loss(replace(own, source=source, target=target), Contrast(0.2, queue=queue))

    inputs = tuple(side.clone().requires_grad_() for side in (own.source, own.target))
    assert torch.autograd.gradcheck(of, inputs)


@pytest.mark.parametrize("power", [1, 2])
def test_distance_and_its_gradient(power: int) -> None:
    own = links(6)
    expected = sum(float((a - b).norm()) ** power for a, b in zip(own.source, own.target, strict=True)) / 7
    assert distance(own.source, own.target, power=power, count=7).item() == pytest.approx(expected)
    inputs = tuple(side.clone().requires_grad_() for side in (own.source, own.target))
    assert torch.autograd.gradcheck(lambda a, b: distance(a, b, power=power, count=7), inputs)


def test_distance_of_equal_vectors_has_no_gradient() -> None:
    here = torch.ones(2, 3, requires_grad=True)
    distance(here, torch.ones(2, 3), power=1).backward()
    assert here.grad is not None and torch.equal(here.grad, torch.zeros(2, 3))


@pytest.mark.parametrize("loss", [weak, strong])
def test_an_empty_queue_is_no_queue(loss: Loss) -> None:
    own = links(8, words=5)
    assert torch.equal(loss(own, Contrast(queue=links(0))), loss(own, Contrast()))
    assert loss(own, Contrast(queue=links(5, seed=1))) > loss(own, Contrast())


@pytest.mark.parametrize("loss", [weak, strong])
def test_shares_add_up_to_the_whole_with_its_gradient(loss: Loss) -> None:
    own, queue = links(10, words=4), links(3, seed=1, words=4)
    own.source.requires_grad_()
    whole = loss(own, Contrast(queue=queue))
    (slope,) = torch.autograd.grad(whole, own.source)
    shares = [
        loss(rows(own, slice(first, last)), Contrast(batch=own, offset=first, queue=queue))
        for first, last in ((0, 3), (3, 3), (3, 10))
    ]
    assert sum(shares).item() == pytest.approx(whole.item(), abs=1e-12)
    assert torch.allclose(torch.autograd.grad(sum(shares), own.source)[0], slope, atol=1e-12)


@pytest.mark.parametrize("loss", [weak, strong])
def test_order_sides_and_length_do_not_matter(loss: Loss) -> None:
    own = links(10, words=4)
    expected = loss(own, Contrast()).item()
    shuffled = rows(own, torch.randperm(10, generator=torch.Generator().manual_seed(0)))
    longer = replace(own, source=own.source * 3)
    for other in (shuffled, own.swapped, longer):
        assert loss(other, Contrast()).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("loss", [weak, strong])
def test_one_word_alone_has_nothing_to_be_told_from(loss: Loss) -> None:
    assert loss(links(1), Contrast()).item() == 0.0
    everywhere = replace(links(5), source_words=torch.zeros(5, dtype=torch.long),
                         target_words=torch.zeros(5, dtype=torch.long))  # fmt: skip
    assert loss(everywhere, Contrast()).item() == pytest.approx(0.0, abs=1e-12)


def test_the_head_is_one_hidden_layer_of_the_encoders_width() -> None:
    assert [tuple(p.shape) for p in Head(6, 4).parameters()] == [(6, 6), (6,), (4, 6), (4,)]
