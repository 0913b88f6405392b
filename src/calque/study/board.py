"""The live table of a study: how many cells wait, run, stand or failed, and how long the rest may take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from threading import Lock
from types import TracebackType
from typing import Self, TypeAlias

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from calque.progress import duration
from calque.study.cells import Cell
from calque.study.plan import Plan
from calque.study.workers import Outcome

#: Running cells that are named.
MOST = 8
#: What makes cells take about as long: their verb, and where they stand in the matrix.
Kind: TypeAlias = tuple[str | None, ...]


class Board:
    """Told what happens to cells, shows it: a table on a terminal, a line for each cell elsewhere."""

    def __init__(self, show: bool) -> None:
        self.screen, self.show = Console(stderr=True), show
        self.cells: Mapping[str, Cell] = {}
        self.state: dict[str, str] = {}
        self.began: dict[str, float] = {}
        self.spent: dict[Kind, list[float]] = {}
        self.at_once = 1
        self.lock = Lock()  # the screen is drawn by another thread
        self.guess: Callable[[Cell], float | None] = lambda cell: None
        # Last: what shows the table asks for it at once.
        self.live = (
            Live(get_renderable=self.table, console=self.screen, refresh_per_second=2, transient=True)
            if show and self.screen.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def plan(
        self,
        plan: Plan,
        done: Collection[str],
        failed: Collection[str],
        guess: Callable[[Cell], float | None],
    ) -> None:
        """What is to be done, what stands, and about how long a cell takes."""
        again = bool(self.cells)
        with self.lock:
            self.cells, self.guess = plan.cells, guess
            self.state = {
                key: "done" if key in done else "failed" if key in failed else "waiting" for key in plan.cells
            }
        if self.show and self.live is None and not again:
            print_line(self.screen, f"{len(plan.cells)} cells, {len(done)} of them there already")

    def started(self, cell: Cell) -> None:
        """A cell is being computed."""
        with self.lock:
            self.state[cell.key], self.began[cell.key] = "running", time.monotonic()
            self.at_once = max(self.at_once, len(self.began))

    def ended(self, cell: Cell, outcome: Outcome) -> None:
        """A cell is done, or failed."""
        with self.lock:
            self.state[cell.key] = "done" if outcome.error is None else "failed"
            self.began.pop(cell.key, None)
            if outcome.error is None:
                self.spent.setdefault(_kind(cell), []).append(outcome.seconds)
        if not self.show:
            return
        counts = Counter(self.state.values())
        ended = counts["done"] + counts["failed"]
        failed = outcome.error is not None
        told = f"failed: {outcome.error}" if failed else duration(outcome.seconds)
        if self.live is None or failed:
            line = f"{ended} of {len(self.cells)}: {cell.verb} {cell.title}: {told}"
            print_line(self.screen, line + ("" if self.live else self.left_text()))

    def left(self) -> float | None:
        """Seconds until all is done that can be; None where a kind was never seen."""
        seconds, lost = dict[str, float](), set[str]()
        for key, cell in self.cells.items():
            if self.state[key] == "failed" or not lost.isdisjoint(cell.needs):
                lost.add(key)
            elif self.state[key] != "done":
                if (about := self.about(cell)) is None:
                    return None
                ran = time.monotonic() - self.began[key] if key in self.began else 0.0
                seconds[key] = max(0.0, about - ran)
        return elapsed(self.cells, seconds, self.at_once)

    def about(self, cell: Cell) -> float | None:
        """Seconds that a cell takes: as those of its kind took now, or as is guessed from earlier ones."""
        if seen := self.spent.get(_kind(cell)):
            return sum(seen) / len(seen)
        if (guessed := self.guess(cell)) is not None:
            return guessed
        near = [one for kind, spent in self.spent.items() if kind[0] == cell.verb for one in spent]
        return sum(near) / len(near) if near else None

    def left_text(self) -> str:
        """The time left in words, where it is known and any is left."""
        left = self.left()
        return f"; about {duration(left)} left" if left else ""

    def table(self) -> Table:
        """Cells by verb and state, and those that are running."""
        with self.lock:
            return self._table()

    def _table(self) -> Table:
        counts = Counter((self.cells[key].verb, state) for key, state in self.state.items())
        states = ("waiting", "running", "done", "failed")
        table = Table("cells", *states, box=None, title_justify="left")
        for verb in dict.fromkeys(cell.verb for cell in self.cells.values()):
            told = [str(counts[verb, state] or "") for state in states]
            table.add_row(verb, *told[:3], Text(told[3], style="red"))
        running = list(self.began.items())
        for key, began in running[:MOST]:
            spent = duration(time.monotonic() - began)
            table.add_row(Text(f"  {self.cells[key].title}", style="dim"), "", spent, "", "")
        table.caption = self.left_text().removeprefix("; ")
        return table


def _kind(cell: Cell) -> Kind:
    return cell.verb, *(cell.axes.get(axis) for axis in ("method", "task", "measure"))


def elapsed(cells: Mapping[str, Cell], seconds: Mapping[str, float], workers: int) -> float:
    """About how long so many workers take for cells of these seconds; the others stand.

    That is what each has to do, or what the longest chain takes in which each cell needs the one before.
    """
    ends: dict[str, float] = {}
    for key, cell in cells.items():  # what a cell needs comes before it
        begin = max((ends.get(need, 0.0) for need in cell.needs), default=0.0)
        ends[key] = begin + seconds.get(key, 0.0)
    return max([sum(seconds.values()) / workers, *ends.values()])


def print_line(screen: Console, line: str) -> None:
    """One line as it is."""
    screen.print(line, markup=False, highlight=False, soft_wrap=True)
