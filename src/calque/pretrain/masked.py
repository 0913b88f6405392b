"""Masked language modelling as a task of the training loop: each batch of one language, one model for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from calque.encoders.spans import Layout, batches
from calque.errors import BadInput, BadSetting
from calque.pretrain.masking import NOT_ASKED, Hidden, Masker
from calque.training.batches import bucketed
from calque.training.crew import Crew
from calque.training.loop import GradientTerm, Taken
from calque.types import Flags, Longs


@dataclass(frozen=True)
class MaskedOptions:
    """How text becomes batches.

    A batch holds at most `batch_tokens` pieces, padding included. Languages are drawn in proportion to
    (sentences)^alpha: 1 reads every sentence once an epoch, 0 every language equally often.
    """

    batch_tokens: int = 1024
    alpha: float = 0.7
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise BadSetting(f"alpha is {self.alpha}", remedy="from 0 (languages alike) to 1 (as they are)")


class MaskedBatch(NamedTuple):
    """Some sentences of one text. Shape: rows (n,). `draw` seeds what is hidden."""

    text: int
    rows: Longs
    draw: tuple[int, int, int]


class MaskedLanguageModel:
    """A model with a masked-language-modelling head (BERT's `cls`), and the texts to train it on."""

    unit = "pieces"

    def __init__(self, model: Any, texts: Sequence[Layout], masker: Masker, options: MaskedOptions) -> None:
        if not texts or not all(map(len, texts)):
            raise BadInput("a text has no sentences", remedy="leave its language out")
        self.model, self.texts, self.masker, self.options = model, texts, masker, options
        self.modules: Mapping[str, torch.nn.Module] = {"model": model}
        self.terms: Sequence[GradientTerm] = ()
        self._counts = language_counts([len(text) for text in texts], options.alpha)

    def batches(self, epoch: int) -> Sequence[MaskedBatch]:
        """As many sentences as all texts have, but languages in the proportion asked for."""
        seed, tokens = self.options.seed, self.options.batch_tokens
        made = []
        for number, (text, count) in enumerate(zip(self.texts, self._counts, strict=True)):
            rows = visited(len(text), count, epoch, (seed, number))
            lots = bucketed(text.lengths[rows], tokens=tokens, seed=seed + number, epoch=epoch)
            made += [(number, rows[lot]) for lot in lots]
        order = np.random.default_rng((seed, epoch)).permutation(len(made))
        return [
            MaskedBatch(text, rows, (seed, epoch, place))
            for place, (text, rows) in enumerate(made[i] for i in order)
        ]

    def step(self, batch: MaskedBatch, crew: Crew) -> Taken:
        """This process's share of the mean loss over all hidden pieces of the batch."""
        pieces, there = self.texts[batch.text].rows(batch.rows, self.model.config.pad_token_id)
        hidden = self.masker.hide(pieces, np.random.default_rng(batch.draw))
        count = max(1, int((hidden.labels != NOT_ASKED).sum()))
        mine = np.asarray(crew.share(range(len(pieces))), np.int64)
        if not len(mine):
            return Taken({"masked": torch.zeros((), device=crew.device)}, 0)
        guessed, right = guess(self.model, Hidden(*(part[mine] for part in hidden)), there[mine])
        loss = cross_entropy(guessed.float(), right, reduction="sum") / count
        return Taken({"masked": loss}, int(there[mine].sum()))

    def state(self) -> dict[str, torch.Tensor]:
        return {}

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        pass


def guess(model: Any, hidden: Hidden, there: Flags) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of every piece at the hidden places only, and the right pieces.

    Shape: there (rows, pieces) to (hidden, vocabulary), (hidden,).
    """
    device = model.device
    pieces, labels, mask = (torch.from_numpy(part).to(device) for part in (*hidden, there))
    # Attention without a mask is faster, and most batches of like length need none.
    states = model.base_model(pieces, attention_mask=None if there.all() else mask).last_hidden_state
    asked = labels != NOT_ASKED
    return model.cls(states[asked]), labels[asked]


def language_counts(sizes: Sequence[int], alpha: float) -> list[int]:
    """Sentences of each language in an epoch of as many as there are.

    >>> language_counts([900, 100], 1.0), language_counts([900, 100], 0.5), language_counts([900, 100], 0)
    ([900, 100], [750, 250], [500, 500])
    """
    weights = np.asarray(sizes, np.float64) ** alpha
    return [max(1, round(share)) for share in (weights / weights.sum() * sum(sizes)).tolist()]


def visited(size: int, count: int, epoch: int, seed: tuple[int, ...]) -> Longs:
    """The sentences that an epoch reads: its stretch of an endless row of shuffled rounds through the text.

    So every sentence has been read as often as any other, but for one, after any number of epochs.
    Shape: (count,).
    """
    first, last = epoch * count, (epoch + 1) * count
    rounds = range(first // size, -(-last // size))
    shuffled = [np.random.default_rng((*seed, number)).permutation(size) for number in rounds]
    return np.concatenate(shuffled)[first - rounds[0] * size :][:count].astype(np.int64)


@dataclass(frozen=True)
class MaskedScore:
    """How well hidden pieces are guessed: accuracy, mean loss in nats, and how many were asked.

    `commonest` is the accuracy of always saying the piece that is asked for most often.
    """

    accuracy: float
    loss: float
    commonest: float
    count: int


@torch.no_grad()
def masked_score(model: Any, text: Layout, masker: Masker, *, seed: int = 0) -> MaskedScore:
    """Hide pieces of a text and let the model guess them."""
    was_training = model.training
    model.eval()
    hits, losses, asked = 0, 0.0, [np.zeros(0, np.int64)]
    for number, rows in enumerate(batches(text.lengths, 4096)):
        pieces, there = text.rows(rows, model.config.pad_token_id)
        guessed, right = guess(model, masker.hide(pieces, np.random.default_rng((seed, number))), there)
        hits += int((guessed.argmax(1) == right).sum())
        losses += float(cross_entropy(guessed.float(), right, reduction="sum"))
        asked.append(right.cpu().numpy())
    model.train(was_training)
    every = np.concatenate(asked)
    if not len(every):
        raise BadInput("no piece of the text was hidden", remedy="give more sentences")
    return MaskedScore(
        hits / len(every), losses / len(every), float(np.bincount(every).max() / len(every)), len(every)
    )
