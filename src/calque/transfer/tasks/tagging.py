"""Entities, slots and parts of speech: a tag a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calque.encoders.tokens import Reader
from calque.stats.ratios import Ratio
from calque.stats.tasks import metrics_of, statistics, tag_statistics, word_statistics
from calque.text.labelled.items import Labelled, Tagged
from calque.text.labelled.writers import write_tagged
from calque.transfer.heads import HeadKind
from calque.transfer.inputs import word_inputs
from calque.transfer.learning import GoldLabels, Prepared
from calque.transfer.task import Labels, Reading
from calque.types import UPOS, Doubles, Longs


@dataclass(frozen=True)
class TaggingTask:
    """A tag a word, in BIO or by itself."""

    name: str
    bio: bool = True
    suffix: str = ".tsv"

    @property
    def metrics(self) -> tuple[Ratio, ...]:
        return metrics_of(self.name)

    def heads(self) -> tuple[HeadKind, ...]:
        return (HeadKind.TAG, HeadKind.CRF)

    def labels(self, train: Sequence[Labelled[Tagged]]) -> Labels:
        """The tags of the training data; a span seen to begin can go on, and universal tags are all known."""
        seen = {tag for data in train for item in data.items for tag in item.tags}
        if self.bio:
            types = {tag[2:] for tag in seen if tag != "O"}
            return Labels.of({"O"} | {f"{mark}-{kind}" for mark in "BI" for kind in types})
        return Labels.of(seen | set(UPOS[1:]) if seen & set(UPOS[1:]) else seen)

    def names(self, item: Tagged) -> Iterable[str]:
        return item.tags

    def prepare(self, data: Labelled[Tagged], labels: Labels, reader: Reader, reading: Reading) -> Prepared:
        inputs = word_inputs(
            [item.words for item in data.items],
            data.language,
            reader,
            longest=reading.longest,
            overlap=reading.overlap,
        )
        number = labels.number
        tags = [number.get(tag, -1) for item in data.items for tag in (item.tags or ("",) * len(item.words))]
        return Prepared(inputs, GoldLabels({"tags": np.array(tags, np.int64)}, {}))

    def predictions(
        self,
        data: Labelled[Tagged],
        prepared: Prepared,
        said: Sequence[Sequence[int]],
        labels: Labels,
        reading: Reading,
    ) -> list[tuple[str, ...]]:
        return [tuple(labels.names[tag] for tag in tags) for tags in said]

    def statistics(
        self, data: Labelled[Tagged], predictions: Sequence[Sequence[str]], reading: Reading
    ) -> dict[str, Doubles]:
        both = zip(data.items, predictions, strict=True)
        if self.bio:
            return statistics([tag_statistics(item.tags, said, repair=reading.repair) for item, said in both])
        return statistics([word_statistics(item.tags, said) for item, said in both])

    def clusters(self, data: Labelled[Tagged]) -> Longs:
        return np.arange(len(data))

    def write(self, path: Path, data: Labelled[Tagged], predictions: Sequence[Sequence[str]]) -> None:
        write_tagged(path, data.items, predictions, separator="\t")
