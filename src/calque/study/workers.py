"""Who computes cells: this process, some others on this machine, or Ray.

All three are given cells as they become ready and answer with what became of each. A cell is computed by the
same function everywhere, with the same number of threads, so that it comes out the same.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from calque.errors import BadSetting, CalqueError, MissingExtra
from calque.files import FINISHED, write_text
from calque.locks import remove_at_once
from calque.stopping import end_with_parent, stoppable
from calque.study.cells import CELLS, Cell

#: Where it is told at length what went wrong with a cell.
FAILURES = "failures"
#: Seconds that a process which is told to stop has to put its things away.
PATIENCE = 10.0


@dataclass(frozen=True)
class Asked:
    """How cells are computed: the study's folder, threads for each, and on what."""

    root: Path
    threads: int
    device: str = "auto"
    gpus: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What became of a cell; `error` in one line where it failed."""

    key: str
    seconds: float
    error: str | None = None


class Workers(Protocol):
    """Computes several cells at once."""

    @property
    def free(self) -> int: ...

    def start(self, cell: Cell) -> None: ...

    def finished(self) -> Outcome:
        """Wait for the next cell that is done."""
        ...

    def stop(self) -> None: ...


def compute_cell(cell: Cell, asked: Asked) -> Outcome:
    """Compute one cell; what goes wrong is an outcome, not an exception, but for an interrupt."""
    began = time.monotonic()
    folder = asked.root / CELLS / cell.key
    try:
        if not (folder / FINISHED).is_file():
            with _threads(asked.threads):
                _computed(cell, asked, folder)
        return Outcome(cell.key, time.monotonic() - began)
    except Exception as error:
        known = isinstance(error, CalqueError | OSError)
        name = "" if known and str(error) else type(error).__name__
        told = ": ".join(filter(None, (name, str(error))))
        with suppress(CalqueError):  # on a full disk there is no room for this either
            write_text(asked.root / FAILURES / f"{cell.key}.txt", f"{cell.title}\n{traceback.format_exc()}")
        return Outcome(cell.key, time.monotonic() - began, told.split("\n")[0])


def _computed(cell: Cell, asked: Asked, folder: Path) -> None:
    from calque.pipeline.runs import forget_peak
    from calque.study.verbs import compute

    forget_peak()
    cell.check_inputs()
    compute(cell.verb, cell.resolved(asked.root), folder, asked.device)
    try:
        cell.check_inputs()
    except CalqueError:
        remove_at_once(folder)
        raise


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """So many threads for torch, and for libraries with threads of their own, loaded by now or later."""
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count), _environment(OMP_NUM_THREADS=str(count)):
            yield
    finally:
        torch.set_num_threads(before)


# ----------------------------------------------------------------------------------- this process


class Alone:
    """One cell after the other, here."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.waiting = asked, list[Cell]()

    @property
    def free(self) -> int:
        return 1 - len(self.waiting)

    def start(self, cell: Cell) -> None:
        self.waiting.append(cell)

    def finished(self) -> Outcome:
        return compute_cell(self.waiting.pop(), self.asked)

    def stop(self) -> None:
        self.waiting.clear()


# ------------------------------------------------------------------------------- processes of ours


def _serve(pipe: Connection, asked: Asked) -> None:
    """What a process does: cells as they come, until there are no more."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process stops the others
    with stoppable(tell=False):
        while (cell := pipe.recv()) is not None:
            pipe.send(compute_cell(cell, asked))


class Processes:
    """Several at once on this machine; a process that dies fails its cell, and another takes its place."""

    def __init__(self, asked: Asked, count: int) -> None:
        self.asked, self.context = asked, get_context("spawn")
        self.idle: list[tuple[Any, Connection]] = []
        self.busy: dict[Connection, tuple[Any, Cell, float]] = {}
        self.count = count

    @property
    def free(self) -> int:
        return self.count - len(self.busy)

    def start(self, cell: Cell) -> None:
        process, pipe = self._living() or self._born()
        with suppress(OSError):  # it died just now, as is found out when its cell is awaited
            pipe.send(cell)
        self.busy[pipe] = (process, cell, time.monotonic())

    def _living(self) -> tuple[Any, Connection] | None:
        """An idle process; those that died meanwhile are let go."""
        while self.idle:
            process, pipe = self.idle.pop()
            if process.is_alive():
                return process, pipe
            pipe.close()
        return None

    def _born(self) -> tuple[Any, Connection]:
        here, there = self.context.Pipe()
        process = self.context.Process(target=_serve, args=(there, self.asked), daemon=True)
        with _environment(OMP_NUM_THREADS=str(self.asked.threads)), _deaf():
            process.start()
        there.close()
        return process, here

    def finished(self) -> Outcome:
        pipe = next(one for one in wait(list(self.busy)) if isinstance(one, Connection))
        process, cell, began = self.busy.pop(pipe)
        try:
            found = pipe.recv()
            self.idle.append((process, pipe))
            assert isinstance(found, Outcome)
            return found
        except (EOFError, ConnectionError):
            process.join()
            pipe.close()
            told = f"its process ended with code {process.exitcode}" + (
                ": out of memory?" if process.exitcode == -9 else ""
            )
            return Outcome(cell.key, time.monotonic() - began, told)

    def stop(self) -> None:
        started = [one for one, _ in self.idle] + [one for one, _, _ in self.busy.values()]
        for process in started:
            process.terminate()
        limit = time.monotonic() + PATIENCE
        for process in started:
            process.join(max(0.0, limit - time.monotonic()))
        for process in started:  # in the midst of what hears no signal; the next run sweeps up
            process.kill()


@contextmanager
def _deaf() -> Iterator[None]:
    """What is begun here does not hear Ctrl-C, not even while it starts; this process does afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which lets Ctrl-C in again when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Variables that a process begins with."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# --------------------------------------------------------------------------------------------- Ray


class Ray:
    """As many at once as a cluster has room for; a local one unless an address is given.

    Where this process is connected to Ray already, cells are computed there, and it stays connected. All
    machines must see the study's folder and files under the same paths.
    """

    def __init__(self, asked: Asked, address: str | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise MissingExtra("--workers ray", "ray") from None
        self.ray, self.asked, self.ours = ray, asked, _connected(ray, address)
        self.busy: dict[Any, tuple[Cell, float]] = {}
        self.room = self._room()
        if not self.room:
            self.stop()
            # A cell that no machine has room for would wait for ever.
            raise BadSetting(
                f"no machine of the cluster has {asked.threads} CPUs and {asked.gpus:g} GPUs for a cell",
                remedy="fewer --threads or --gpus",
            )
        needs = {"num_cpus": asked.threads, "num_gpus": asked.gpus, "max_retries": 0}
        variables = {"OMP_NUM_THREADS": str(asked.threads)}
        self.remote = ray.remote(**needs, runtime_env={"env_vars": variables})(compute_cell)

    def _room(self) -> int:
        return room(self.ray.nodes(), self.asked.threads, self.asked.gpus)

    @property
    def free(self) -> int:
        return max(1, self.room) - len(self.busy)

    def start(self, cell: Cell) -> None:
        self.busy[self.remote.remote(cell, self.asked)] = (cell, time.monotonic())

    def finished(self) -> Outcome:
        (done,), _ = self.ray.wait(list(self.busy), num_returns=1)
        cell, began = self.busy.pop(done)
        self.room = self._room()  # machines come and go
        try:
            found = self.ray.get(done)
            assert isinstance(found, Outcome)
            return found
        except self.ray.exceptions.RayError as error:
            return Outcome(cell.key, time.monotonic() - began, f"{type(error).__name__}: its process ended")

    def stop(self) -> None:
        if self.ours:
            self.ray.shutdown()
        else:
            for one in self.busy:
                self.ray.cancel(one, force=True)


def _connected(ray: Any, address: str | None) -> bool:
    """Connect this process to a cluster; False where it was connected before."""
    if ray.is_initialized():
        if address is not None:
            raise BadSetting(
                f"{address}: this process is connected to a Ray cluster already", remedy="leave it out"
            )
        return False
    try:
        ray.init(address=address, include_dashboard=False, log_to_driver=False, configure_logging=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = f" at {address}" if address else ""
        raise BadSetting(f"no Ray cluster{where}: {error}", remedy="its address, host:6379") from None
    return True


def room(nodes: Iterable[Mapping[str, Any]], threads: int, gpus: float) -> int:
    """How many cells machines have room for at once, each with all that it needs on one of them.

    >>> room([{"Alive": True, "Resources": {"CPU": 1.0}}] * 2, threads=2, gpus=0)
    0
    """
    return sum(_fitting(node["Resources"], threads, gpus) for node in nodes if node["Alive"])


def _fitting(held: Mapping[str, float], threads: int, gpus: float) -> int:
    cells = int(held.get("CPU", 0)) // threads
    if not gpus:
        return cells
    whole = int(held.get("GPU", 0))
    # Parts of GPUs are not put together: three cells of 0.6 need three.
    return min(cells, whole // int(gpus) if gpus >= 1 else whole * int(1 / gpus + 1e-9))


def make_workers(kind: str, asked: Asked, address: str | None = None) -> Workers:
    """`1` or serial computes here, a number in as many processes, `ray` on a cluster."""
    check_workers(kind, address, asked.gpus)
    if kind == "ray":
        return Ray(asked, address)
    count = worker_count(kind)
    return Alone(asked) if count == 1 else Processes(asked, count)


def check_workers(kind: str, address: str | None = None, gpus: float = 0.0) -> None:
    """Refuse what does not go together, before anything is begun."""
    worker_count(kind)
    if kind != "ray" and address is not None:
        raise BadSetting("an address is of a Ray cluster", remedy="--workers ray")
    if kind != "ray" and gpus:
        raise BadSetting("GPUs of each cell are of a Ray cluster", remedy="--workers ray, or --device cuda")
    if not gpus >= 0 or (gpus > 1 and gpus % 1):
        raise BadSetting(f"{gpus:g} GPUs for each cell", remedy="a part of one, or a whole number")


def worker_count(kind: str) -> int:
    """How many cells are computed at once on this machine."""
    if kind in ("serial", "ray"):
        return 1
    if not kind.isdecimal() or int(kind) < 1:
        raise BadSetting(f"workers {kind!r}", remedy="a number, serial or ray")
    return int(kind)
