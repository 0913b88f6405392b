"""What a task declares: its labels, its rows, its head, how predictions are read, scored and written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from calque.encoders.tokens import Reader
from calque.errors import BadInput
from calque.recipe import suggestion
from calque.stats.answers import AnswerStyle
from calque.stats.ratios import Ratio
from calque.stats.spans import Repair
from calque.text.labelled.items import Labelled
from calque.transfer.heads import HeadKind
from calque.transfer.learning import Prepared
from calque.types import Doubles, Longs

Data = TypeVar("Data", bound=Labelled[Any])


@dataclass(frozen=True)
class Labels:
    """The labels of a task by number.

    >>> Labels.of(["O", "B-PER", "O"]).number["B-PER"]
    0
    """

    names: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> Labels:
        return cls(tuple(sorted(set(names))))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def number(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self.names)}


@dataclass(frozen=True)
class Reading:
    """How items are read and scored.

    `longest` bounds a row in pieces; long texts are read in windows that share `overlap` of them.
    `every_piece` gives a head all pieces of two texts, not the first alone. Of a tree the first `words` words
    are parsed. `repair` is what becomes of tags that do not fit together, `answers` how answers are compared.
    """

    longest: int = 128
    overlap: int = 32
    every_piece: bool = False
    words: int | None = 128
    longest_answer: int = 30
    repair: Repair = Repair.NEW_SPAN
    answers: AnswerStyle = AnswerStyle.MLQA


class Task(Protocol):
    """One declaration a task; the loop that learns and tests it is the same for all."""

    @property
    def name(self) -> str: ...

    @property
    def metrics(self) -> tuple[Ratio, ...]: ...

    @property
    def suffix(self) -> str:
        """Of files with predictions."""
        ...

    def heads(self) -> tuple[HeadKind, ...]:
        """The heads that it can have, the usual one first."""
        ...

    def labels(self, train: Sequence[Labelled[Any]]) -> Labels:
        """The labels to choose from."""
        ...

    def names(self, item: Any) -> Iterable[str]:
        """The labels of one item."""
        ...

    def prepare(self, data: Labelled[Any], labels: Labels, reader: Reader, reading: Reading) -> Prepared:
        """Rows, units and labels of items; an item may be without labels."""
        ...

    def predictions(
        self, data: Labelled[Any], prepared: Prepared, said: Sequence[Any], labels: Labels, reading: Reading
    ) -> list[Any]:
        """A prediction an item from what the head said of every sequence."""
        ...

    def statistics(
        self, data: Labelled[Any], predictions: Sequence[Any], reading: Reading
    ) -> dict[str, Doubles]:
        """What metrics are made of. Shape: each (items,)."""
        ...

    def clusters(self, data: Labelled[Any]) -> Longs:
        """Items that are not independent of each other have the same number. Shape: (items,)."""
        ...

    def write(self, path: Path, data: Labelled[Any], predictions: Sequence[Any]) -> None:
        """Predictions in the task's own format, beside gold labels where it has room for them."""
        ...


def known_labels(data: Data, task: Task, labels: Labels, *, skip_bad: bool) -> Data:
    """The items all of whose labels can be predicted; others are refused, or dropped and counted."""
    known = frozenset(labels.names)
    kept, lost = [], Counter(data.dropped)
    for item in data.items:
        unknown = [name for name in task.names(item) if name not in known]
        if not unknown:
            kept.append(item)
        elif skip_bad:
            lost["label never seen in training"] += 1
        else:
            raise BadInput(
                f"label {unknown[0]!r} was never seen in training",
                where=data.origin or data.language,
                line=item.line or None,
                remedy=f"{suggestion(unknown[0], labels.names)}; --skip-bad drops such items",
            )
    if not kept:
        raise BadInput("no item is left", where=data.origin or data.language)
    return replace(data, items=tuple(kept), dropped=dict(lost))
