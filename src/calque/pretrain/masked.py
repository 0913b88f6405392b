"""Masked language modelling as a task of the training loop: each batch of one text, and its language's model.

Translation language modelling is the same over rows that hold a sentence and its translation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from calque.encoders.memory import halving, portions
from calque.encoders.spans import batches
from calque.errors import BadInput, BadSetting
from calque.pretrain.masking import NOT_ASKED, Masker
from calque.pretrain.texts import MaskedText, Shown
from calque.training.batches import bucketed
from calque.training.crew import Crew
from calque.training.loop import GradientTerm, Taken
from calque.types import Longs


@dataclass(frozen=True)
class MaskedOptions:
    """How text becomes batches.

    A batch holds at most `batch_tokens` pieces, padding included. Languages are drawn in proportion to
    (sentences)^alpha: 1 reads every sentence once an epoch, 0 every language equally often. Of the rows of an
    epoch, the part `paired` are sentences beside their translation.
    """

    batch_tokens: int = 1024
    alpha: float = 0.7
    paired: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise BadSetting(f"alpha is {self.alpha}", remedy="from 0 (languages alike) to 1 (as they are)")
        if not 0 <= self.paired < 1:
            raise BadSetting(f"the part of paired rows is {self.paired}", remedy="from 0 to below 1")


@dataclass(frozen=True, eq=False)
class Learned:
    """A text to learn from, the model that reads it, and what is hidden of it.

    Texts of languages that share everything have one model. `paired` text has two languages in a row.
    """

    text: MaskedText
    model: Any
    masker: Masker
    paired: bool = False


class MaskedBatch(NamedTuple):
    """Some sentences of one text. Shape: rows (n,). `draw` seeds what is hidden."""

    text: int
    rows: Longs
    draw: tuple[int, int, int]


class MaskedLanguageModel:
    """Models with a masked-language-modelling head, and the texts to train them on."""

    unit = "pieces"

    def __init__(self, texts: Sequence[Learned], options: MaskedOptions) -> None:
        if not texts or not all(len(one.text.lengths) for one in texts):
            raise BadInput("a text has no sentences", remedy="leave its language out")
        self.texts, self.options = texts, options
        models = {id(one.model): one.model for one in texts}
        self.modules: Mapping[str, torch.nn.Module] = {
            f"model{number or ''}": model for number, model in enumerate(models.values())
        }
        self.terms: Sequence[GradientTerm] = ()
        self._counts = row_counts(texts, options)
        self._portions, self._rows = 1, 0

    def batches(self, epoch: int) -> Sequence[MaskedBatch]:
        """As many rows as all texts have, but languages in the proportion asked for."""
        seed, tokens = self.options.seed, self.options.batch_tokens
        made = []
        for number, (held, count) in enumerate(zip(self.texts, self._counts, strict=True)):
            lengths = held.text.lengths
            rows = visited(len(lengths), count, epoch, (seed, number))
            lots = bucketed(lengths[rows], tokens=tokens, seed=seed + number, epoch=epoch)
            made += [(number, rows[lot]) for lot in lots]
        order = np.random.default_rng((seed, epoch)).permutation(len(made))
        return [
            MaskedBatch(text, rows, (seed, epoch, place))
            for place, (text, rows) in enumerate(made[i] for i in order)
        ]

    def step(self, batch: MaskedBatch, crew: Crew) -> Taken:
        """This process's share of the mean loss over all hidden pieces of the batch."""
        held, rng = self.texts[batch.text], np.random.default_rng(batch.draw)
        shown = held.text.shown(batch.rows, held.model.config.pad_token_id, rng)
        hidden = held.masker.hide(shown.pieces, rng)
        count = max(1, int((hidden.labels != NOT_ASKED).sum()))
        mine = np.asarray(crew.share(range(len(batch.rows))), np.int64)
        name = "paired" if held.paired else "masked"
        if not len(mine):
            return Taken({name: torch.zeros((), device=crew.device)}, 0)
        part, labels = shown.take(mine)._replace(pieces=hidden.pieces[mine]), hidden.labels[mine]
        loss = self._summed(held.model, part, labels) / count
        return Taken({name: loss}, int(part.there.sum()))

    def _summed(self, model: Any, shown: Shown, labels: Longs) -> torch.Tensor:
        """The summed loss over all hidden pieces of these rows."""
        self._rows = len(labels)

        def summed(rows: slice) -> torch.Tensor:
            guessed, right = guess(model, shown.take(rows), labels[rows])
            return cross_entropy(guessed.float(), right, reduction="sum")

        if self._portions == 1:
            return summed(slice(None))
        parts = portions(self._rows, self._portions)
        return torch.stack([checkpoint(summed, rows, use_reentrant=False) for rows in parts]).sum()

    def read_in(self, parts: int) -> bool:
        """Batches go through the model in parts, with the same loss."""
        before, self._portions = self._portions, parts
        return before < self._rows

    def state(self) -> dict[str, torch.Tensor]:
        return {}

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        pass


def guess(model: Any, shown: Shown, labels: Longs) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of every piece at the hidden places only, and the right pieces.

    Shape: labels (rows, pieces) to (hidden, vocabulary), (hidden,).
    """
    given = {
        "input_ids": shown.pieces,
        # Attention without a mask is faster, and most batches of like length need none.
        "attention_mask": None if shown.there.all() else shown.there,
        "token_type_ids": shown.kinds,
        "position_ids": shown.places,
    }
    device = model.device
    inputs = {name: torch.from_numpy(part).to(device) for name, part in given.items() if part is not None}
    states = model.base_model(**inputs).last_hidden_state
    right = torch.from_numpy(labels).to(device)
    asked = right != NOT_ASKED
    return head_of(model)(states[asked]), right[asked]


def head_of(model: Any) -> Any:
    """The part of a masked language model that scores pieces: BERT's `cls`, or RoBERTa's `lm_head`."""
    found = getattr(model, "cls", None) or getattr(model, "lm_head", None)
    if found is None:
        raise BadSetting(
            f"a {type(model).__name__} guesses in a way that is not known here",
            remedy="models like BERT and RoBERTa (XLM-R)",
        )
    return found


def row_counts(texts: Sequence[Learned], options: MaskedOptions) -> list[int]:
    """Rows of each text in an epoch of as many as there are."""
    total = sum(len(one.text.lengths) for one in texts)
    paired = options.paired if any(one.paired for one in texts) else 0.0
    counts: dict[int, int] = {}
    for kind, part in ((True, paired), (False, 1 - paired)):
        here = [number for number, one in enumerate(texts) if one.paired is kind]
        sizes = [len(texts[number].text.lengths) for number in here]
        counts |= dict(zip(here, language_counts(sizes, options.alpha, round(part * total)), strict=True))
    return [counts[number] for number in range(len(texts))]


def language_counts(sizes: Sequence[int], alpha: float, total: int | None = None) -> list[int]:
    """Sentences of each language in an epoch of `total`, by default of as many as there are.

    >>> language_counts([900, 100], 1.0), language_counts([900, 100], 0.5), language_counts([900, 100], 0)
    ([900, 100], [750, 250], [500, 500])
    """
    weights = np.asarray(sizes, np.float64) ** alpha
    whole = sum(sizes) if total is None else total
    return [max(1, round(share)) for share in (weights / max(weights.sum(), 1) * whole).tolist()]


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


def _scored(model: Any, shown: Shown, labels: Longs, rows: slice) -> tuple[int, float, Longs]:
    """Right guesses in these rows, their summed loss, and the right pieces. Shape: (hidden,)."""
    guessed, right = guess(model, shown.take(rows), labels[rows])
    loss = float(cross_entropy(guessed.float(), right, reduction="sum"))
    return int((guessed.argmax(1) == right).sum()), loss, right.cpu().numpy()


@torch.no_grad()
def masked_score(held: Learned, *, seed: int = 0) -> MaskedScore:
    """Hide pieces of a text and let its model guess them."""
    model, was_training = held.model, held.model.training
    model.eval()
    hits, losses, asked = 0, 0.0, [np.zeros(0, np.int64)]
    for number, rows in enumerate(batches(held.text.lengths, 4096)):
        rng = np.random.default_rng((seed, number))
        shown = held.text.shown(rows, model.config.pad_token_id, rng)
        hidden = held.masker.hide(shown.pieces, rng)
        shown = shown._replace(pieces=hidden.pieces)
        for part in halving(partial(_scored, model, shown, hidden.labels), len(rows)):
            hits, losses = hits + part[0], losses + part[1]
            asked.append(part[2])
    model.train(was_training)
    every = np.concatenate(asked)
    if not len(every):
        raise BadInput("no piece of the text was hidden", remedy="give more sentences")
    return MaskedScore(
        hits / len(every), losses / len(every), float(np.bincount(every).max() / len(every)), len(every)
    )
