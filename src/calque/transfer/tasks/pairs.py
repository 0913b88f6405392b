"""Natural language inference: one label for two texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calque.encoders.tokens import Reader
from calque.stats.ratios import Ratio
from calque.stats.tasks import label_statistics, metrics_of, statistics
from calque.text.labelled.items import Labelled, TextPair
from calque.text.labelled.writers import write_pairs_tsv
from calque.transfer.heads import HeadKind
from calque.transfer.inputs import pair_inputs
from calque.transfer.learning import GoldLabels, Prepared
from calque.transfer.task import Labels, Reading
from calque.types import Doubles, Longs


@dataclass(frozen=True)
class PairTask:
    """Premise and hypothesis in one row; the head reads its first token."""

    name: str = "nli"
    suffix: str = ".tsv"

    @property
    def metrics(self) -> tuple[Ratio, ...]:
        return metrics_of(self.name)

    def heads(self) -> tuple[HeadKind, ...]:
        return (HeadKind.POOLED, HeadKind.CLASSIFY)

    def labels(self, train: Sequence[Labelled[TextPair]]) -> Labels:
        return Labels.of(item.label for data in train for item in data.items)

    def names(self, item: TextPair) -> Iterable[str]:
        return (item.label,)

    def prepare(self, data: Labelled[TextPair], labels: Labels, reader: Reader, reading: Reading) -> Prepared:
        inputs = pair_inputs(data.items, reader, longest=reading.longest, every_piece=reading.every_piece)
        number = labels.number
        gold = np.array([number.get(item.label, -1) for item in data.items], np.int64)
        return Prepared(inputs, GoldLabels({}, {"label": gold}))

    def predictions(
        self,
        data: Labelled[TextPair],
        prepared: Prepared,
        said: Sequence[int],
        labels: Labels,
        reading: Reading,
    ) -> list[str]:
        return [labels.names[one] for one in said]

    def statistics(
        self, data: Labelled[TextPair], predictions: Sequence[str], reading: Reading
    ) -> dict[str, Doubles]:
        return statistics(
            [label_statistics(item.label, said) for item, said in zip(data.items, predictions, strict=True)]
        )

    def clusters(self, data: Labelled[TextPair]) -> Longs:
        """Hypotheses of one premise belong together."""
        known: dict[str, int] = {}
        return np.array([known.setdefault(item.first, len(known)) for item in data.items], np.int64)

    def write(self, path: Path, data: Labelled[TextPair], predictions: Sequence[str]) -> None:
        write_pairs_tsv(path, data.items, predictions)
