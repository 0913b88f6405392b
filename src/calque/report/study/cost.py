"""What a study cost: a row a method, and every cell with its state, time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from calque.report.made import duration
from calque.report.study.reading import ALIGN, TRANSFER, Cell, Group, StudyFolder
from calque.report.study.told import place_in


@dataclass(frozen=True)
class Spent:
    """Seconds and memory of cells of one kind: their mean and the most."""

    seconds: float | None
    memory: float | None
    cells: int

    @property
    def time(self) -> str:
        return "–" if self.seconds is None else duration(self.seconds)

    @property
    def room(self) -> str:
        return megabytes(self.memory)


@dataclass(frozen=True)
class CostRow:
    """A method: what it cost to align, None where nothing was, and every task to learn."""

    label: str
    place: int
    aligned: Spent | None
    tasks: tuple[Spent | None, ...]


@dataclass(frozen=True)
class CostTable:
    """Rows by method; `verbs` are the sums of everything by what was done."""

    tasks: tuple[str, ...]
    rows: tuple[CostRow, ...]
    verbs: tuple[tuple[str, str], ...]

    @property
    def aligned(self) -> bool:
        return any(row.aligned for row in self.rows)


def megabytes(value: float | None) -> str:
    """Memory as a person says it.

    >>> megabytes(812.0), megabytes(2150.0), megabytes(None)
    ('812 MB', '2.1 GB', '–')
    """
    if value is None:
        return "–"
    return f"{value / 1024:.1f} GB" if value >= 1024 else f"{value:.0f} MB"


def cost_table(study: StudyFolder) -> CostTable:
    """Mean over seeds of what aligning and learning cost, and the sum of each verb."""
    timed = [cell for cell in study.cells if cell.seconds is not None]
    tasks = list(dict.fromkeys(cell.axes.get("task", "") for cell in timed if cell.verb == TRANSFER))
    rows = []
    for group in study.groups:
        for label in group.labels:
            own = [cell for cell in timed if label_of(cell, group) == label]
            aligned = _spent([cell for cell in own if cell.verb == ALIGN])
            learned = tuple(
                _spent([c for c in own if c.verb == TRANSFER and c.axes.get("task", "") == task])
                for task in tasks
            )
            if aligned or any(learned):
                rows.append(CostRow(label, place_in(study, label), aligned, learned))
    verbs = dict.fromkeys(cell.verb for cell in timed)
    sums = [(verb, sum(cell.seconds or 0.0 for cell in timed if cell.verb == verb)) for verb in verbs]
    told = [(f"{verb} ({sum(c.verb == verb for c in timed)})", duration(seconds)) for verb, seconds in sums]
    whole = [("all cells", duration(sum(seconds for _, seconds in sums)))] if sums else []
    return CostTable(tuple(tasks), tuple(rows), tuple([*told, *whole]))


def label_of(cell: Cell, group: Group) -> str | None:
    """Whom of a group a cell is about; a cell that names no method is about the encoder as it is."""
    told = cell.axes.get("method") or group.baseline
    if told in group.labels and cell.axes.get("encoder", group.encoder) in (group.encoder, told):
        return told
    named = f"{cell.axes.get('encoder', '')} {told}"
    return named if named in group.labels else None


def _spent(cells: Sequence[Cell]) -> Spent | None:
    seconds = [cell.seconds for cell in cells if cell.seconds is not None]
    memory = [cell.memory for cell in cells if cell.memory is not None]
    if not seconds and not memory:
        return None
    return Spent(fmean(seconds) if seconds else None, fmean(memory) if memory else None, len(cells))
