"""Processes that compute the cells of a study."""

import multiprocessing
import signal
import time

import pytest

from calque.study import workers


def deaf(ready: "multiprocessing.synchronize.Event") -> None:
    """As code that is not Python's is, until it ends."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready.set()
    time.sleep(60)


def test_a_worker_that_hears_nothing_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE", 0.2)
    asked = workers.Asked.__new__(workers.Asked)
    pool, context = workers.Processes(asked, 2), multiprocessing.get_context("fork")
    for _ in range(2):
        here, _ = context.Pipe()
        ready = context.Event()
        process = context.Process(target=deaf, args=(ready,), daemon=True)
        process.start()
        ready.wait()
        pool.idle.append((process, here))
    began = time.monotonic()
    pool.stop()
    for process, _ in pool.idle:
        process.join(10)
        assert process.exitcode == -signal.SIGKILL
    assert time.monotonic() - began < 10
