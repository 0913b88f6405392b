"""One task over one encoder: learn a head, or head and encoder, from labelled text; test it on other text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from calque.circumstances import note
from calque.encoders.bylanguage import PieceReader
from calque.encoders.cached import CachedEncoder
from calque.encoders.encoder import HuggingFaceEncoder
from calque.files import cache_limit
from calque.progress import say
from calque.recipe import Choice
from calque.text.labelled.items import Labelled
from calque.training.loop import TrainLog, TrainOptions, train
from calque.training.trim import harmless, trim_vocabulary
from calque.transfer.heads import HeadKind, TaskModel, make_model
from calque.transfer.learning import Auxiliary, Material, Prepared, TransferTask, decoded
from calque.transfer.task import Labels, Reading, Task
from calque.transfer.vectors import Kept, Live, Space, Vectors
from calque.types import Doubles, Items, Pooling

#: Vectors of frozen encoders that are kept on disk while they are used, whatever the size of the cache.
KEPT = 2e9


class Regime(Choice):
    """What is trained.

    finetune: encoder and head. features: the head alone, over vectors that are computed once.
    """

    FINETUNE = "finetune"
    FEATURES = "features"


@dataclass(frozen=True)
class HeadOptions:
    """What stands on the encoder's vectors; explained by `make_model`."""

    head: HeadKind
    mix: str = "weighted"
    body: str = "none"
    body_width: int | None = None
    body_layers: int | None = None
    dropout: float | None = None
    root_loss: bool = True


class Tested(NamedTuple):
    """Predictions of a set of items, and what metrics are made of. Shape: values, each (items,)."""

    predictions: list[Any]
    values: dict[str, Doubles]


@dataclass(frozen=True, eq=False)
class Learner:
    """A task, an encoder, and how the one is read by the other.

    Of encoders by language each reads the items of its own.
    `space` is where vectors of all languages are taken before the head sees them.
    """

    task: Task
    encoder: PieceReader
    regime: Regime
    labels: Labels
    reading: Reading
    options: HeadOptions
    space: Space
    pooling: Pooling = "first"

    def model(self, seed: int) -> TaskModel:
        """A new head. The same seed gives the same one."""
        count, parse = len(self.labels), self.options.head is HeadKind.PARSE
        return make_model(
            self.options.head,
            width=self.encoder.width,
            layers=len(self.space.layers),
            labels=None if parse else count,
            relations=count if parse else None,
            mix=self.options.mix if len(self.space.layers) > 1 else "mean",
            body=self.options.body,
            body_width=self.options.body_width,
            body_layers=self.options.body_layers,
            dropout=self.options.dropout,
            root_loss=self.options.root_loss,
            positions="sinusoidal" if self.options.body == "transformer" else "none",
            seed=seed,
        ).to(self.encoder.device)

    def prepare(self, data: Labelled[Any]) -> Prepared:
        """Rows and labels of these items."""
        reader = self.encoder.speaking(data.language).reader
        return self.task.prepare(data, self.labels, reader, self.reading)

    def material(self, prepared: Prepared) -> Material:
        """Items to learn from or to predict; frozen vectors are computed here, or found in the cache."""
        return Material(self._vectors(prepared), prepared.gold)

    def _vectors(self, prepared: Prepared) -> Vectors:
        encoder = self.encoder.speaking("/".join(prepared.inputs.languages))
        if self.regime is Regime.FINETUNE:
            return Live(encoder, prepared.inputs, self.space, self.pooling)
        size = len(prepared.inputs.rows.units) * len(self.space.layers) * self.encoder.width * 2
        if size > max(KEPT, cache_limit()):
            say(
                f"vectors of {size / 1e9:,.0f} GB do not fit the cache (CALQUE_CACHE_GB): "
                "they are computed for each batch"
            )
            note("vectors", "each-batch")  # of other batches, and not rounded
            return Live(encoder, prepared.inputs, self.space, self.pooling, frozen=True)
        return Kept(CachedEncoder(encoder), prepared.inputs, self.space, self.pooling, encoder.device)

    def learn(
        self,
        model: TaskModel,
        train_on: Sequence[Labelled[Any]],
        dev: Sequence[Labelled[Any]],
        options: TrainOptions,
        folder: Path,
        *,
        batch: int = 32,
        auxiliary: Auxiliary | None = None,
    ) -> TrainLog:
        """Train; where there is dev data, the weights stay that score best on it after an epoch."""
        tuned = self.encoder.model if self.regime is Regime.FINETUNE else None
        learned = [self.prepare(data) for data in train_on]
        held = [(data, self.prepare(data)) for data in dev]
        read = [*learned, *(prepared for _, prepared in held)]
        with ExitStack() as undo:
            if tuned is not None and auxiliary is None:
                self._trim(read, options.weight_decay, undo)
            task = TransferTask(
                model,
                [self.material(prepared) for prepared in learned],
                batch=batch,
                seed=options.seed,
                encoder=tuned,
                auxiliary=auxiliary,
            )
            if dev:
                steps = -(-len(task.batches(0)) // options.accumulate)
                options = replace(options, evaluate_every=options.evaluate_every or steps)
            score = self._scorer(model, held) if dev else None
            return train(task, options, folder, evaluate=score, resume=True)

    def _trim(self, read: Sequence[Prepared], weight_decay: float, undo: ExitStack) -> None:
        """Leave out pieces that these items do not have, where only time and memory change by it."""
        encoder = self.encoder
        if isinstance(encoder, HuggingFaceEncoder) and harmless(encoder, weight_decay=weight_decay):
            used = np.unique(np.concatenate([prepared.inputs.rows.pieces for prepared in read]))
            undo.callback(trim_vocabulary(encoder, used).restore)

    def _scorer(
        self, model: TaskModel, held: Sequence[tuple[Labelled[Any], Prepared]]
    ) -> Callable[[], float]:
        """The task's first metric, the mean over these sets."""
        materials = [self.material(prepared) for _, prepared in held]

        def score() -> float:
            found = [
                self.task.metrics[0].score(self._tested(model, data, prepared, material).values)
                for (data, prepared), material in zip(held, materials, strict=True)
            ]
            return float(np.mean(found))

        return score

    def test(self, model: TaskModel, data: Labelled[Any]) -> Tested:
        """Predict and score these items."""
        prepared = self.prepare(data)
        return self._tested(model, data, prepared, self.material(prepared))

    def predict(self, model: TaskModel, data: Labelled[Any]) -> list[Any]:
        """Predict items that need no labels."""
        prepared = self.prepare(data)
        return self._predicted(model, data, prepared, self.material(prepared))

    def _tested(
        self, model: TaskModel, data: Labelled[Any], prepared: Prepared, material: Material
    ) -> Tested:
        predictions = self._predicted(model, data, prepared, material)
        return Tested(predictions, self.task.statistics(data, predictions, self.reading))

    def _predicted(
        self, model: TaskModel, data: Labelled[Any], prepared: Prepared, material: Material
    ) -> list[Any]:
        with still(self.encoder.model):
            said = decoded(model, material, f"predicting {data.language}")
        return self.task.predictions(data, prepared, said, self.labels, self.reading)

    def items(self, data: Labelled[Any], values: dict[str, Doubles]) -> Items:
        """Statistics by item, to be kept."""
        return Items({"item": np.arange(len(data))}, self.task.clusters(data), values)


@contextmanager
def still(module: torch.nn.Module) -> Iterator[None]:
    """Without dropout for a while."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)
