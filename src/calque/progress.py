"""Progress of long work: rooms say where they are, the command line decides whether to show it.

A library call is silent unless it runs inside `shown()`; a bar appears only when work takes over two seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")
PATIENCE = 2.0

_show: ContextVar[bool] = ContextVar("calque_progress", default=False)


@contextmanager
def shown(on: bool = True) -> Iterator[None]:
    """Show progress bars (on standard error) for what runs inside."""
    token = _show.set(on)
    try:
        yield
    finally:
        _show.reset(token)


class Advance(Protocol):
    """Says how many more are done; a note stands in place of the rate."""

    def __call__(self, more: int, note: str = "") -> None: ...


@contextmanager
def bar(label: str, total: int | None = None, unit: str = "", done: int = 0) -> Iterator[Advance]:
    """A function to call with how many more are done. Draws rate and time left after two seconds.

    `done` is how many were done before.
    """
    from rich.console import Console

    screen = Console(stderr=True)
    if not _show.get() or not screen.is_terminal:
        yield lambda more, note="": None
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


def track(items: Iterable[T], label: str, total: int | None = None, unit: str = "") -> Iterator[T]:
    """Go through items with a bar."""
    size = len(items) if total is None and isinstance(items, Sized) else total
    with bar(label, size, unit) as advance:
        for item in items:
            yield item
            advance(1)
