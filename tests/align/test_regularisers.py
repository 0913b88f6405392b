"""Regularisers against autograd, and the two ways to know the original's vectors against each other."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_encoders import build

from calque.align import regularisers
from calque.align.regularisers import FrozenCopy, KeptOriginals, NearParameters, originals
from calque.encoders.joining import joined_batches, with_specials
from calque.files import Cache
from calque.types import Sentences

ENGLISH = Sentences.of("en", [["The", "cat", "sat"], ["a", "dog's", "life", "isn't"], [], ["the", "mat"]])
GERMAN = Sentences.of("de", [["Die", "Katze"], ["die", "Kinder", "lachten"]])


@pytest.mark.parametrize("block", [1, 5, 1 << 18])
@pytest.mark.parametrize("form", ["squared", "root"])
def test_the_gradient_of_parameters_is_that_of_autograd(
    form: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regularisers, "BLOCK", block)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2), torch.nn.Linear(5, 5))
    net[2].weight.requires_grad_(False)
    term = NearParameters(net.parameters(), 0.7, form)
    first = [one.detach().clone() for one in net.parameters()]
    with torch.no_grad():
        for one in [*net[0].parameters(), *net[1].parameters()]:
            one.add_(torch.randn_like(one))
    net[:2](torch.randn(5, 3)).square().sum().backward()
    before = [one.grad.clone() for one in net[:2].parameters()]
    moved = list(net[:2].parameters())
    squares = sum((one - then).square().sum() for one, then in zip(moved, first[:4], strict=True))
    value = 0.7 * (squares if form == "squared" else squares.sqrt())
    slopes = torch.autograd.grad(value, moved)
    assert term.add() == pytest.approx(value.item(), rel=1e-6)
    for one, was, slope in zip(moved, before, slopes, strict=True):
        assert torch.allclose(one.grad - was, slope, atol=1e-5)
    assert net[2].bias.grad is None and net[2].weight.grad is None


@pytest.mark.parametrize("form", ["squared", "root"])
def test_parameters_where_they_were_have_no_gradient(form: str) -> None:
    net = torch.nn.Linear(3, 4)
    term = NearParameters(net.parameters(), 1.0, form)
    assert term.add() == 0.0
    net(torch.ones(1, 3)).sum().backward()
    before = net.weight.grad.clone()
    assert term.add() == 0.0 and torch.equal(net.weight.grad, before)


@pytest.mark.parametrize("specials", [False, True])
def test_kept_vectors_and_those_of_a_copy_are_the_same_and_stay(specials: bool) -> None:
    encoder = build("bert")
    how = {"layers": (1, 3), "pooling": "mean"}
    kept = KeptOriginals(encoder, [ENGLISH, GERMAN], specials=specials, **how)
    copied = FrozenCopy(encoder, **how)
    rows = [np.array([3, 1]), np.array([1, 0])]
    batches = [
        encoder.batch(text.select(chosen)) for text, chosen in zip((ENGLISH, GERMAN), rows, strict=True)
    ]
    if specials:
        batches = [with_specials(one) for one in batches]
    held = joined_batches(batches, encoder.reader.pad)
    before = kept.of(held, rows)
    with torch.no_grad():
        for one in encoder.model.parameters():
            one.add_(torch.randn_like(one))
    encoder.model.train()
    for level in range(2):
        assert before[level].shape == (len(held.row), 24)
        assert torch.allclose(copied.of(held, rows)[level], before[level], atol=1e-5)
    now = encoder.word_vectors(GERMAN.select([1]), layers=(3,)).layer(3)
    assert not np.allclose(now, before[1][-5 if not specials else -8 :][: len(now)].numpy(), atol=1e-2)


def test_vectors_are_kept_up_to_a_bound() -> None:
    encoder = build("bert")
    size = len(ENGLISH.ids) * encoder.width * 4
    how = {"layers": (3,), "pooling": "mean"}
    assert isinstance(originals(encoder, [ENGLISH], most=size, **how), KeptOriginals)
    copy = originals(encoder, [ENGLISH], most=size - 1, **how)
    assert isinstance(copy, FrozenCopy) and "frozen copy" in copy.about
    assert isinstance(originals(encoder, [ENGLISH], whole=False, **how), FrozenCopy)


def test_the_next_seed_finds_the_vectors_of_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, cache = build("bert"), Cache(tmp_path)
    how = {"layers": (1, 3), "pooling": "mean"}
    rows, held = [np.arange(len(ENGLISH))], encoder.batch(ENGLISH)
    first = KeptOriginals(encoder, [ENGLISH], cache=cache, **how).of(held, rows)
    monkeypatch.setattr(encoder, "states", None)  # nothing is computed any more
    second = KeptOriginals(encoder, [ENGLISH], cache=cache, **how).of(held, rows)
    plain = KeptOriginals(build("bert"), [ENGLISH], **how).of(held, rows)
    for kept, found, exact in zip(first, second, plain, strict=True):
        assert torch.equal(kept, found) and torch.allclose(kept, exact, atol=2e-3)


def test_parameters_are_drawn_to_those_of_another_model_where_one_is_given() -> None:
    now, first = (torch.nn.Linear(3, 2) for _ in range(2))
    near = NearParameters(now.parameters(), 0.5, toward=first.parameters())
    for one in now.parameters():
        one.grad = torch.zeros_like(one)
    apart = [(a - b).detach() for a, b in zip(now.parameters(), first.parameters(), strict=True)]
    assert near.add() == pytest.approx(0.5 * sum(float(one.square().sum()) for one in apart))
    for one, gap in zip(now.parameters(), apart, strict=True):
        torch.testing.assert_close(one.grad, gap)
