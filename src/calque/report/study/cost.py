"""What a study cost: a row a method, and every cell with its state, time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from calque.report.made import duration
from calque.report.study.reading import TRANSFER, Cell, StudyFolder
from calque.report.study.told import place_in


@dataclass(frozen=True)
class Spent:
    """Seconds and memory of cells of one kind: what one seed takes, the mean over seeds."""

    seconds: float
    memory: float | None
    cells: int

    @property
    def time(self) -> str:
        return duration(self.seconds)

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
    """Rows by method; `verbs` are the sums of everything by what was done: cells and seconds."""

    tasks: tuple[str, ...]
    rows: tuple[CostRow, ...]
    verbs: tuple[tuple[str, int, float], ...]

    @property
    def sums(self) -> tuple[tuple[str, str], ...]:
        """The sums in words, all of them last."""
        told = [(f"{verb} ({many})", duration(seconds)) for verb, many, seconds in self.verbs]
        whole = sum(seconds for _, _, seconds in self.verbs)
        return (*told, *([("all cells", duration(whole))] if told else []))

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
            own = [cell for cell in timed if group.label_of(cell) == label]
            aligned = _spent([cell for cell in study.alignments.get(label, ()) if cell.seconds is not None])
            learned = tuple(
                _spent([c for c in own if c.verb == TRANSFER and c.axes.get("task", "") == task])
                for task in tasks
            )
            if aligned or any(learned):
                rows.append(CostRow(label, place_in(study, label), aligned, learned))
    verbs = dict.fromkeys(cell.verb for cell in timed)
    sums = (
        (verb, len(own), sum(cell.seconds or 0.0 for cell in own))
        for verb in verbs
        for own in [[cell for cell in timed if cell.verb == verb]]
    )
    return CostTable(tuple(tasks), tuple(rows), tuple(sums))


def _spent(cells: Sequence[Cell]) -> Spent | None:
    """Of every seed the time of all its cells, which may have a language each, and the most memory; without
    seeds that lack a cell."""
    keyed: dict[int | None, list[Cell]] = {}
    for cell in cells:
        keyed.setdefault(cell.seed, []).append(cell)
    most = max(map(len, keyed.values()), default=0)
    whole = [own for own in keyed.values() if len(own) == most]
    if not whole:
        return None
    seconds = fmean(sum(cell.seconds or 0.0 for cell in own) for own in whole)
    memory = [max(held) for own in whole if (held := [one.memory for one in own if one.memory is not None])]
    return Spent(seconds, fmean(memory) if memory else None, sum(map(len, whole)))
