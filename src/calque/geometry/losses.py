"""Losses that bring linked words together, as pure functions of their vectors.

`distance` pulls each pair together. `weak` and `strong` are contrastive: a word is to be nearer to its
translation than to the other words of the other side (weak), or of both sides (strong).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn import functional

Power = Literal[1, 2]


def distance(
    a: torch.Tensor, b: torch.Tensor, *, power: Power = 2, count: float | torch.Tensor = 1.0
) -> torch.Tensor:
    """Σ ‖a − b‖^power over rows, divided by `count`. Shape: a, b (n, d).

    `count` is 1 for a sum and the number of all rows, in whatever process, for a mean.

    >>> distance(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2), power=1).item()
    5.0
    """
    apart = a - b
    # The norm, not the root of the squares: its gradient at zero is zero.
    total = apart.square().sum() if power == 2 else torch.linalg.vector_norm(apart, dim=-1).sum()
    return total / count


@dataclass(frozen=True, eq=False)
class Linked:
    """Vectors of linked words: row k of one side is linked to row k of the other.

    Shape: source, target (n, d); source_words, target_words (n,), the same number for the same word.
    """

    source: torch.Tensor
    target: torch.Tensor
    source_words: torch.Tensor
    target_words: torch.Tensor

    def __len__(self) -> int:
        return len(self.source)

    @property
    def swapped(self) -> Linked:
        """The same links seen from the other side."""
        return Linked(self.target, self.source, self.target_words, self.source_words)

    def detached(self) -> Linked:
        """Without gradients."""
        return self.each(torch.Tensor.detach)

    def each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Linked:
        """All four parts changed alike."""
        return Linked(
            change(self.source), change(self.target), change(self.source_words), change(self.target_words)
        )

    def then(self, more: Linked) -> Linked:
        """These links and more behind them."""
        return Linked(
            torch.cat([self.source, more.source]),
            torch.cat([self.target, more.target]),
            torch.cat([self.source_words, more.source_words]),
            torch.cat([self.target_words, more.target_words]),
        )


@dataclass(frozen=True, eq=False)
class Contrast:
    """What links are contrasted with, and how.

    `batch` are all links of the batch, in whatever process, of which one's own begin at `offset`; None when
    one's own are all. `queue` are more negatives. With `mask_same` another occurrence of the word sought, or
    of the word itself, is no negative.
    """

    temperature: float = 0.1
    mask_same: bool = True
    batch: Linked | None = None
    offset: int = 0
    queue: Linked | None = None


def weak(own: Linked, contrast: Contrast) -> torch.Tensor:
    """Cross-entropy of finding each word's translation among the words of the other side, both ways.

    −1/2B Σᵢ (log p(tᵢ | sᵢ) + log p(sᵢ | tᵢ)), with p a softmax of cosines over the temperature and B the
    links of the whole batch; `own` are the links whose terms are summed here.
    """
    return _both_ways(own, contrast, _across)


def strong(own: Linked, contrast: Contrast) -> torch.Tensor:
    """As `weak`, among the words of both sides but for the word itself."""
    return _both_ways(own, contrast, _across_and_within)


#: Scores of own source words with candidates, of which the batch's target words come first.
_Scores = Callable[[Linked, Linked, Contrast], torch.Tensor]


def _both_ways(own: Linked, contrast: Contrast, scores: _Scores) -> torch.Tensor:
    batch = own if contrast.batch is None else contrast.batch
    here, there = _unit(own), _unit(batch if contrast.queue is None else batch.then(contrast.queue))
    sought = contrast.offset + torch.arange(len(own), device=own.source.device)
    forth = scores(here, there, contrast)
    back = scores(here.swapped, there.swapped, contrast)
    total = sum(functional.cross_entropy(one, sought, reduction="sum") for one in (forth, back))
    return torch.as_tensor(total) / (2 * max(1, len(batch)))


def _across(own: Linked, among: Linked, contrast: Contrast) -> torch.Tensor:
    """Scores of source words with target words; −∞ where another is the same word as the one sought."""
    scores = own.source @ among.target.T / contrast.temperature
    if not contrast.mask_same:
        return scores
    same = own.target_words[:, None] == among.target_words
    return scores.masked_fill(same & ~_own_place(own, among, contrast), -torch.inf)


def _within(own: Linked, among: Linked, contrast: Contrast) -> torch.Tensor:
    """Scores of source words with source words; −∞ for the word itself, in its own place or in any."""
    scores = own.source @ among.source.T / contrast.temperature
    if contrast.mask_same:
        return scores.masked_fill(own.source_words[:, None] == among.source_words, -torch.inf)
    return scores.masked_fill(_own_place(own, among, contrast), -torch.inf)


def _across_and_within(own: Linked, among: Linked, contrast: Contrast) -> torch.Tensor:
    return torch.cat([_across(own, among, contrast), _within(own, among, contrast)], 1)


def _own_place(own: Linked, among: Linked, contrast: Contrast) -> torch.Tensor:
    """Which candidate is the word's own link. Shape: (own, candidates)."""
    rows = contrast.offset + torch.arange(len(own), device=own.source.device)
    return rows[:, None] == torch.arange(len(among), device=own.source.device)


def _unit(links: Linked) -> Linked:
    source, target = (functional.normalize(side, dim=-1) for side in (links.source, links.target))
    return Linked(source, target, links.source_words, links.target_words)


class Head(torch.nn.Sequential):
    """What vectors go through before their cosine is taken, and that is dropped after training."""

    def __init__(self, width: int, out: int = 128) -> None:
        super().__init__(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, out))
