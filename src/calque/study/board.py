"""The live table of a study: how many cells wait, run, stand or failed, and how long the rest may take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Self

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


class Board:
    """Told what happens to cells, shows it: a table on a terminal, a line for each cell elsewhere."""

    def __init__(self, show: bool) -> None:
        self.screen, self.show = Console(stderr=True), show
        self.live = (
            Live(get_renderable=self.table, console=self.screen, refresh_per_second=2, transient=True)
            if show and self.screen.is_terminal
            else None
        )
        self.cells: Mapping[str, Cell] = {}
        self.state: dict[str, str] = {}
        self.began: dict[str, float] = {}
        self.spent: dict[str, list[float]] = {}
        self.guess: Callable[[Cell], float | None] = lambda cell: None

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
        self.cells = plan.cells
        self.state = {
            key: "done" if key in done else "failed" if key in failed else "waiting" for key in plan.cells
        }
        self.guess = guess
        if self.show and self.live is None:
            print_line(self.screen, f"{len(plan.cells)} cells, {len(done)} of them there already")

    def started(self, cell: Cell) -> None:
        """A cell is being computed."""
        self.state[cell.key], self.began[cell.key] = "running", time.monotonic()

    def ended(self, cell: Cell, outcome: Outcome) -> None:
        """A cell is done, or failed."""
        self.state[cell.key] = "done" if outcome.error is None else "failed"
        self.began.pop(cell.key, None)
        if outcome.error is None:
            self.spent.setdefault(cell.verb, []).append(outcome.seconds)
        if not self.show:
            return
        counts = Counter(self.state.values())
        ended = counts["done"] + counts["failed"]
        told = f"failed: {outcome.error}" if outcome.error else duration(outcome.seconds)
        if self.live is None or outcome.error:
            line = f"{ended} of {len(self.cells)}: {cell.verb} {cell.title}: {told}"
            print_line(self.screen, line + ("" if self.live else self.left_text()))

    def left(self) -> float | None:
        """Seconds for what is still to do, one after the other; None where a kind was never seen."""
        total = 0.0
        for key, state in self.state.items():
            if state in ("waiting", "running"):
                cell = self.cells[key]
                seen = self.spent.get(cell.verb)
                about = sum(seen) / len(seen) if seen else self.guess(cell)
                if about is None:
                    return None
                ran = time.monotonic() - self.began[key] if key in self.began else 0.0
                total += max(0.0, about - ran)
        return total

    def left_text(self) -> str:
        """The time left in words, where it is known and any is left."""
        left = self.left()
        if not left:
            return ""
        return f"; about {duration(left / max(1, len(self.began)))} left"

    def table(self) -> Table:
        """Cells by verb and state, and those that are running."""
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


def print_line(screen: Console, line: str) -> None:
    """One line as it is."""
    screen.print(line, markup=False, highlight=False, soft_wrap=True)
