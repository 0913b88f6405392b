"""Ctrl-C, SIGTERM and a closed terminal stop work in the same way: everything is put away on the way out."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

#: Seconds in which a second signal is the same press: what is being put away is not disturbed.
AGAIN = 1.0
_TOLD = {"SIGINT": "interrupted", "SIGTERM": "stopped", "SIGHUP": "the terminal was closed"}


class Stop(KeyboardInterrupt):
    """A signal came. A bare KeyboardInterrupt can make Python end by SIGINT, whatever code is asked for."""


class Stops:
    """The signals that asked this process to stop, as interrupts; the first one says how it ends."""

    def __init__(self) -> None:
        self.first: signal.Signals | None = None
        self.last = -AGAIN

    def install(self) -> None:
        """Listen to every signal that would end this process; what it was told to ignore stays ignored."""
        for name in _TOLD:
            number = getattr(signal, name, None)
            if number and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        before, self.last = self.last, time.monotonic()
        if self.first is None or self.last - before > AGAIN:
            self.first = self.first or signal.Signals(number)
            raise Stop

    def end(self, tell: bool) -> None:
        """End this process as asked; nothing may disturb that any more."""
        for name in _TOLD:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        assert self.first is not None
        with suppress(OSError, ValueError):
            if tell:
                print(f"calque: {_TOLD[self.first.name]}; nothing half-written", file=sys.stderr)
        sys.exit(128 + self.first)


@contextmanager
def stoppable(*, tell: bool = True) -> Iterator[None]:
    """Around all that a process does: a signal ends it with 128 and its number, without a traceback."""
    stops = Stops()
    try:
        stops.install()
        yield
    except BaseException as error:
        # What a signal meets may turn it into an error of its own.
        if stops.first is None or (isinstance(error, SystemExit) and not error.code):
            raise
        stops.end(tell)


def end_with_parent() -> None:
    """Let this process, one of several that work for another, not outlive it."""
    from multiprocessing import parent_process
    from threading import Thread

    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=watch, daemon=True).start()
