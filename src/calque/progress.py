"""Progress of long work: rooms say where they are, the command line decides whether to show it.

A library call is silent unless it runs inside `shown()`; a bar appears only when work takes over two seconds.
Where there is no terminal, as in a cluster's log, a line is written every half minute instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from calque.errors import printable

T = TypeVar("T")
PATIENCE = 2.0
#: Seconds between lines where there is no terminal.
BETWEEN_LINES = 30.0

_show: ContextVar[bool] = ContextVar("calque_progress", default=False)


@contextmanager
def shown(on: bool = True) -> Iterator[None]:
    """Show progress bars (on standard error) for what runs inside."""
    token = _show.set(on)
    try:
        yield
    finally:
        _show.reset(token)


def say(line: str) -> None:
    """A line about what runs, on standard error, where progress is shown."""
    if _show.get():
        print(printable(line), file=sys.stderr, flush=True)


class Advance(Protocol):
    """Says how many more are done; a note stands in place of the rate."""

    def __call__(self, more: int, note: str = "") -> None: ...


def duration(seconds: float) -> str:
    """A time as one says it.

    >>> duration(42), duration(200), duration(7300)
    ('42 s', '3 min', '2 h 2 min')
    """
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def bar(label: str, total: int | None = None, unit: str = "", done: int = 0) -> Iterator[Advance]:
    """A function to call with how many more are done. Draws rate and time left after two seconds.

    `done` is how many were done before.
    """
    from rich.console import Console

    screen = Console(stderr=True)
    if not _show.get():
        yield lambda more, note="": None
        return
    if not screen.is_terminal:
        yield _Lines(label, total, unit, done)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        rate,
        TimeRemainingColumn(),
        console=screen,
        transient=True,
    )
    task = progress.add_task(label, total=total, completed=done, rate="")
    began, new, started = time.monotonic(), 0, False

    def advance(more: int, note: str = "") -> None:
        nonlocal new, started
        new += more
        spent = time.monotonic() - began
        if not started and spent > PATIENCE:
            progress.start()
            started = True
        progress.update(task, advance=more, rate=note or f"{new / max(spent, 1e-9):,.0f} {unit}/s")

    try:
        yield advance
    finally:
        if started:
            progress.stop()


class _Lines:
    """Progress as a line now and then."""

    def __init__(self, label: str, total: int | None, unit: str, done: int) -> None:
        self.label, self.total, self.unit, self.first, self.done = label, total, unit, done, done
        self.began = self.told = time.monotonic()

    def __call__(self, more: int, note: str = "") -> None:
        self.done += more
        now = time.monotonic()
        if now - self.told >= BETWEEN_LINES:
            self.told = now
            say(self.line(now - self.began, note))

    def line(self, spent: float, note: str) -> str:
        """Where the work stands.

        >>> _Lines("training", 200, "steps", 0).line(30.0, "l2 0.5")
        'training: 0 of 200 steps, l2 0.5'
        """
        new = self.done - self.first
        whole = f" of {self.total:,}" if self.total else ""
        told = [f"{self.label}: {self.done:,}{whole} {self.unit}"]
        told.append(note or f"{new / max(spent, 1e-9):,.0f} {self.unit}/s")
        if self.total and new:
            left = (self.total - self.done) * spent / new
            told.append(f"{left // 60:.0f} min {left % 60:.0f} s left")
        return ", ".join(told)


def track(items: Iterable[T], label: str, total: int | None = None, unit: str = "") -> Iterator[T]:
    """Go through items with a bar."""
    size = len(items) if total is None and isinstance(items, Sized) else total
    with bar(label, size, unit) as advance:
        for item in items:
            yield item
            advance(1)
