"""Alignment that goes on while a task is learned (E): a second loss, with batches of links of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from calque.align.finetune import RELATED, UNRELATED, FinetuneTask
from calque.training.crew import Crew
from calque.training.loop import GradientTerm, Taken
from calque.types import Longs, WordPairs

#: What α multiplies: the alignment with its regulariser, or the alignment alone as E's program has it.
ContinualForm = Literal["paper", "program"]
#: How much further apart unrelated words are than linked ones.
SEPARATION = "separation"


def one_link_each(pairs: WordPairs) -> WordPairs:
    """The same links, each with a sentence pair of its own, so that a batch can count links."""
    rows = np.arange(len(pairs))
    bitext = pairs.bitext.select(pairs.sentence.astype(np.int64))
    return WordPairs.of(bitext, rows, pairs.source, pairs.target, pairs.score, pairs.linker)


@dataclass(frozen=True, eq=False)
class ContinualAlignment:
    """A fine-tuning alignment as another loss of a task's training, weighted by `alpha`."""

    task: FinetuneTask
    alpha: float = 0.01
    form: ContinualForm = "paper"

    @property
    def terms(self) -> Sequence[GradientTerm]:
        return self.task.terms

    @property
    def modules(self) -> Mapping[str, torch.nn.Module]:
        """What it trains besides the encoder, which is the task's too."""
        return {name: one for name, one in self.task.modules.items() if name != "encoder"}

    def batches(self, epoch: int, count: int) -> list[Longs]:
        """So many batches: one pass over the links after the other, on from where the epoch before ended."""
        number, place = 0, epoch * count
        if self.task.options.batch_tokens is None:  # then all passes have as many
            number, place = divmod(place, len(self.task.batches(0)))
        found: list[Longs] = []
        while len(found) < count:
            held = self.task.batches(number)
            found += held[place : place + count - len(found)]
            number, place = number + 1, max(0, place - len(held))
        return found

    def step(self, batch: Longs, crew: Crew) -> Taken:
        """Weighted losses, and how far apart related and unrelated words are."""
        taken = self.task.step(batch, crew)
        loss = self.task.options.loss.value
        weighted = {
            name: value * (self.alpha if self.form == "paper" or name == loss else 1.0)
            for name, value in taken.losses.items()
        }
        apart = taken.watched[RELATED] - taken.watched[UNRELATED]
        return replace(taken, losses=weighted, watched={**taken.watched, SEPARATION: apart})

    def state(self) -> dict[str, torch.Tensor]:
        return self.task.state()

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        self.task.load_state(state)
