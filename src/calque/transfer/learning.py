"""Learning a task: the one training loop is given batches of sequences, and says what a head has learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from calque.encoders.spans import batches, ragged
from calque.progress import bar, say
from calque.training.batches import bucketed
from calque.training.crew import Crew
from calque.training.loop import GradientTerm, Taken
from calque.transfer.heads import TaskModel
from calque.transfer.inputs import Inputs
from calque.transfer.vectors import Live, Vectors
from calque.types import Flags, Longs

#: Units, padding included, that are decoded at once.
DECODED = 8192
#: A loss beside the task's that is so many times its size is told of.
HEAVY = 5


@dataclass(frozen=True, eq=False)
class GoldLabels:
    """Labels of a set of items. Shape: units, each (units of all sequences,); sequences, each (sequences,).

    Flags among them are no labels: a head is given them when it predicts, too.
    """

    units: Mapping[str, Longs | Flags]
    sequences: Mapping[str, Longs]

    def flags(self) -> GoldLabels:
        """Only what is no label."""
        return GoldLabels({name: one for name, one in self.units.items() if one.dtype == np.bool_}, {})

    def of(self, inputs: Inputs, chosen: Longs, device: torch.device) -> dict[str, torch.Tensor]:
        """Labels of these sequences; −1 where a shorter one has ended."""
        count = inputs.lengths[chosen]
        row, place = ragged(inputs.first[chosen], count)
        column = ragged(np.zeros(len(chosen), np.int64), count)[1]
        found = {name: torch.from_numpy(values[chosen]) for name, values in self.sequences.items()}
        for name, values in self.units.items():
            fill = False if values.dtype == np.bool_ else -1
            matrix = np.full((len(chosen), max(1, int(count.max(initial=1)))), fill, values.dtype)
            matrix[row, column] = values[place]
            found[name] = torch.from_numpy(matrix)
        return {name: tensor.to(device) for name, tensor in found.items()}


@dataclass(frozen=True, eq=False)
class Prepared:
    """A set of items as rows with their labels; `extra` is what its task needs to read predictions."""

    inputs: Inputs
    gold: GoldLabels
    extra: Any = None


@dataclass(frozen=True, eq=False)
class Material:
    """Sequences to learn from or to predict, with where their vectors come from."""

    vectors: Vectors
    gold: GoldLabels

    def loss(self, model: TaskModel, chosen: Longs, device: torch.device) -> tuple[torch.Tensor, int]:
        """The summed loss of these sequences, and how many things that is."""
        stacked, mask = self.vectors.of(chosen)
        return model.loss(stacked, mask, self.gold.of(self.vectors.inputs, chosen, device))


class Auxiliary(Protocol):
    """Another loss beside the task's, with batches of its own: alignment goes on while a task is learned."""

    @property
    def terms(self) -> Sequence[GradientTerm]: ...

    @property
    def modules(self) -> Mapping[str, torch.nn.Module]: ...

    def batches(self, epoch: int, count: int) -> Sequence[Any]:
        """So many batches, the same on every process and whenever it is asked."""
        ...

    def step(self, batch: Any, crew: Crew) -> Taken:
        """Its losses, weighted."""
        ...

    def state(self) -> dict[str, torch.Tensor]: ...

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None: ...


class Batch(NamedTuple):
    """Sequences of a step, numbered through all materials, and what the other loss is given."""

    rows: Longs
    other: Any = None


class TransferTask:
    """A task as `train` wants it: a head, and the encoder below it where that is trained too."""

    unit = "items"

    def __init__(
        self,
        model: TaskModel,
        materials: Sequence[Material],
        *,
        batch: int,
        seed: int,
        encoder: torch.nn.Module | None = None,
        auxiliary: Auxiliary | None = None,
    ) -> None:
        self.model, self.materials, self.batch, self.seed = model, materials, batch, seed
        self.auxiliary, self._weighed = auxiliary, False
        self.modules: dict[str, torch.nn.Module] = {"model": model}
        if encoder is not None:
            self.modules["encoder"] = encoder
        if auxiliary is not None:
            self.modules |= {f"other {name}": one for name, one in auxiliary.modules.items()}
        self._sizes = np.concatenate([material.vectors.sizes for material in materials])
        self._first = np.cumsum([0, *(len(material.vectors.inputs) for material in materials)])

    @property
    def terms(self) -> Sequence[GradientTerm]:
        return () if self.auxiliary is None else self.auxiliary.terms

    def batches(self, epoch: int) -> list[Batch]:
        """All sequences of all languages in batches of like length."""
        rows = bucketed(self._sizes, size=self.batch, seed=self.seed, epoch=epoch)
        if self.auxiliary is None:
            return [Batch(one) for one in rows]
        return [
            Batch(one, other)
            for one, other in zip(rows, self.auxiliary.batches(epoch, len(rows)), strict=True)
        ]

    def step(self, batch: Batch, crew: Crew) -> Taken:
        """The task's loss over this process's share, and the other loss."""
        share = np.array(crew.share(batch.rows.tolist()), np.int64)
        summed, counted = self._loss(share, crew.device)
        losses = {"task": summed / max(1.0, float(crew.total(float(counted))))}
        watched: dict[str, float] = {}
        if self.auxiliary is not None:
            other = self.auxiliary.step(batch.other, crew)
            self._weigh(losses, other.losses)
            losses |= other.losses
            watched |= other.watched
        return Taken(losses, len(share), watched)

    def _weigh(self, *both: Mapping[str, torch.Tensor]) -> None:
        """Say once where the other loss leaves the task no say."""
        if self._weighed:
            return
        self._weighed = True
        task, other = (float(sum(one.detach() for one in held.values())) for held in both)
        if other > HEAVY * task > 0:
            say(
                f"what goes on beside the task weighs {other / task:.0f} times as much as the task: "
                "a lower --alpha, or an encoder that was aligned as --continual-preset aligns"
            )

    def _loss(self, rows: Longs, device: torch.device) -> tuple[torch.Tensor, int]:
        summed, counted = torch.zeros((), device=device), 0
        owner = np.searchsorted(self._first, rows, "right") - 1
        for number in np.unique(owner).tolist():
            chosen = rows[owner == number] - self._first[number]
            part, count = self.materials[number].loss(self.model, chosen, device)
            summed, counted = summed + part, counted + count
        return summed, counted

    def state(self) -> dict[str, torch.Tensor]:
        return {} if self.auxiliary is None else self.auxiliary.state()

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        if self.auxiliary is not None:
            self.auxiliary.load_state(state)

    def read_in(self, parts: int) -> bool:
        """The encoders that are trained read a batch in parts; kept vectors are read by none."""
        live = [material.vectors for material in self.materials if isinstance(material.vectors, Live)]
        encoders = {id(one.encoder): one.encoder for one in live}
        return any([encoder.read_in(parts) for encoder in encoders.values()])


@torch.no_grad()
def decoded(model: TaskModel, material: Material, told: str = "predicting") -> list[Any]:
    """What the head says of every sequence, in their order."""
    vectors, flags = material.vectors, material.gold.flags()
    found: list[Any] = [None] * len(vectors.inputs)
    with bar(told, len(found), "items") as advance:
        for rows in batches(vectors.sizes, DECODED):
            stacked, mask = vectors.of(rows)
            more = flags.of(vectors.inputs, rows, mask.device)
            for row, said in zip(rows.tolist(), model.decode(stacked, mask, **more), strict=True):
                found[row] = said
            advance(len(rows))
    return found
