"""`calque study`: compute the cells that are not there yet, put their results together, write the page."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from calque.errors import BadSetting
from calque.files import FINISHED, finish, text_digest, write_json, write_text
from calque.locks import locked, sweep_all
from calque.pipeline.runs import environment
from calque.progress import say, shown
from calque.report.page import PAGE, write_page
from calque.study.board import Board
from calque.study.cells import CELLS, Cell
from calque.study.checking import ready
from calque.study.folder import (
    Left,
    Spent,
    check_ours,
    claim,
    cost,
    failed_before,
    guess,
    heal,
    prune,
    results,
    spent,
    standing,
    threads_of,
    unwanted,
)
from calque.study.plan import Plan, make_plan
from calque.study.recipe import RECIPE, STUDY, LoadedStudy, load_study
from calque.study.smoke import smoke_study
from calque.study.workers import FAILURES, Asked, Outcome, Workers, make_workers, worker_count


@dataclass(frozen=True)
class StudyRun:
    """What became of a study: cells by state, and where the page is."""

    folder: Path
    done: Sequence[str]
    computed: Sequence[str]
    failed: Mapping[str, str]
    left_out: Sequence[str]
    page: Path | None = None


@dataclass(frozen=True)
class Planned:
    """A study before it runs: its cells, those that stand, and about how long the others take."""

    plan: Plan
    standing: frozenset[str]
    seconds: Mapping[str, float | None]


def prune_study(
    given: str | Path,
    *,
    out: str | Path | None = None,
    changes: Sequence[str] = (),
    smoke: bool = False,
    dry_run: bool = False,
) -> list[Left]:
    """Remove the cells of a study that its recipe does not name any more; returns what they were."""
    loaded = opened(given, changes, smoke=smoke)
    plan, folder = ready(loaded), Path(out or default_folder(loaded, smoke=smoke))
    if not (folder / CELLS).is_dir():
        raise BadSetting("no study here", where=folder, remedy="give its --out")
    check_ours(folder)
    with locked(folder, "this study"):
        sweep_all(folder / CELLS)
        # What stands may have been planned without the cells that failed.
        wanted = {*plan.cells, *make_plan(loaded, frozenset(failed_before(folder))).cells}
        left = unwanted(folder, wanted)
        if not dry_run:
            prune(folder, wanted)
    return left


def opened(given: str | Path, changes: Sequence[str] = (), *, smoke: bool = False) -> LoadedStudy:
    """A study by name or file, as it is or in small."""
    study = load_study(given, changes)
    return smoke_study(study) if smoke else study


def default_folder(study: LoadedStudy, *, smoke: bool = False) -> Path:
    """Where a study is written unless another folder is named."""
    return Path("runs") / f"{study.name}{'-smoke' if smoke else ''}"


def plan_study(
    given: str | Path, *, out: str | Path | None = None, changes: Sequence[str] = (), smoke: bool = False
) -> Planned:
    """What `study` would do."""
    loaded = opened(given, changes, smoke=smoke)
    plan, folder = ready(loaded), Path(out or default_folder(loaded, smoke=smoke))
    told = list(spent(folder, plan.cells))
    return Planned(
        plan, standing(folder, plan.cells), {key: guess(one, told) for key, one in plan.cells.items()}
    )


def study(
    given: str | Path,
    *,
    out: str | Path | None = None,
    changes: Sequence[str] = (),
    smoke: bool = False,
    workers: str | int = "serial",
    threads: int | None = None,
    address: str | None = None,
    gpus: float = 0.0,
    device: str = "auto",
    show: bool = False,
) -> StudyRun:
    """Run a study: cells that stand are not computed again, a failing one does not stop the others.

    `workers` are serial, a number of processes, or ray; `threads` are those of each cell, by default as those
    of cells that stand, or as many as the machine has for each worker; one on Ray. The results are the same
    whoever computes them, at the same threads.
    """
    loaded = opened(given, changes, smoke=smoke)
    kind, folder = str(workers), Path(out or default_folder(loaded, smoke=smoke))
    if threads is not None and threads < 1:
        raise BadSetting(f"{threads} threads", remedy="one or more")
    plan = ready(loaded)
    check_ours(folder)
    with locked(folder, "this study"):
        claim(folder)
        with shown(show):
            chosen = chosen_threads(threads_of(folder, standing(folder, plan.cells)), kind, threads)
        asked = Asked(folder.resolve(), chosen, device, gpus)
        job = _Job(loaded, asked, Board(show), before=failed_before(folder))
        return job.run(make_workers(kind, asked, address))


def chosen_threads(before: Sequence[int], workers: str, given: int | None) -> int:
    """As many threads a cell as are given, or as the cells `before` had, or as there are for each.

    There are as many as OMP_NUM_THREADS says, or as the machine has. Last digits of trained encoders depend
    on them, so those of one study should have the same. Cells on Ray have one, and so as many run at once as
    there is room for.
    """
    if given is None and len(before) == 1:
        return before[0]
    if given is not None and before and list(before) != [given]:
        told = f"{' and '.join(map(str, before))} thread{'s' * (list(before) != [1])}"
        say(f"cells with {told} stand here; those with {given} may differ from theirs in last digits")
    told = os.environ.get("OMP_NUM_THREADS", "")
    there = int(told) if told.isascii() and told.isdigit() else os.cpu_count() or 1
    alone = 1 if workers == "ray" else max(1, there // worker_count(workers))
    return given or alone


@dataclass
class _Job:
    """A study under way."""

    loaded: LoadedStudy
    asked: Asked
    board: Board
    failed: dict[str, str] = field(default_factory=dict)
    computed: list[str] = field(default_factory=list)
    before: Mapping[str, str] = field(default_factory=dict)  # what failed when the study was last run
    looked_at: set[str] = field(default_factory=set)

    def run(self, workers: Workers) -> StudyRun:
        """Compute until nothing new fails: what rests on a failed cell is planned again without it."""
        try:
            with self.board, self._going_on():
                while True:
                    plan, before = make_plan(self.loaded, frozenset(self.failed)), len(self.failed)
                    self._heal(plan)
                    known = list(spent(self.asked.root, plan.cells))
                    self._write_matrix(plan)
                    self._compute(plan, workers, known)
                    if len(self.failed) == before:
                        break
        finally:
            workers.stop()
        # What failed because a file was edited is another cell by now.
        self.failed = {key: told for key, told in self.failed.items() if key in plan.cells}
        return self._told(plan)

    def _heal(self, plan: Plan) -> None:
        """Have damaged cells computed again; each is looked at once."""
        heal(self.asked.root, {key: one for key, one in plan.cells.items() if key not in self.looked_at})
        self.looked_at.update(plan.cells)

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """Where it is interrupted, say that nothing is lost."""
        try:
            yield
        except KeyboardInterrupt:
            say(f"{len(self.computed)} cells were computed and stand; the same command goes on")
            raise

    def _compute(self, plan: Plan, workers: Workers, known: Sequence[Spent]) -> None:
        done = set(standing(self.asked.root, plan.cells))
        waiting = {
            key: cell for key, cell in plan.cells.items() if key not in done and key not in self.failed
        }
        running: set[str] = set()
        self.board.plan(plan, done, self.failed, lambda cell: guess(cell, known))
        while True:
            for key, cell in list(waiting.items()):
                if workers.free > 0 and done.issuperset(cell.needs):
                    del waiting[key]
                    running.add(key)
                    self.board.started(cell)
                    workers.start(cell)
            if not running:
                return
            outcome = workers.finished()
            running.remove(outcome.key)
            self._note(plan.cells[outcome.key], outcome, done)

    def _note(self, cell: Cell, outcome: Outcome, done: set[str]) -> None:
        if outcome.error is None:
            done.add(cell.key)
            self.computed.append(cell.key)
            (self.asked.root / FAILURES / f"{cell.key}.txt").unlink(missing_ok=True)
        else:
            self.failed[cell.key] = outcome.error
        self.board.ended(cell, outcome)

    # -------------------------------------------------------------------------------------- the folder

    def _write_matrix(self, plan: Plan) -> None:
        """The recipe and its cells as they stand, so that there is a page of a study that is cut off."""
        root = self.asked.root
        (root / FINISHED).unlink(missing_ok=True)
        write_text(root / RECIPE, self.loaded.recipe.to_toml())
        write_json(root / STUDY, self._record(plan, standing(root, plan.cells)))

    def _told(self, plan: Plan) -> StudyRun:
        """Results and costs, the marker if all is there, and the page, which tells of the marker."""
        root, done = self.asked.root, standing(self.asked.root, plan.cells)
        self._write_matrix(plan)
        write_text(root / "results.jsonl", "".join(f"{line}\n" for line in results(root, plan.cells, done)))
        threads = threads_of(root, done) or [self.asked.threads]
        told = {**environment(), "threads": threads if len(threads) > 1 else threads[0]}
        write_json(root / "environment.json", told)
        costs = {key: cost(root, key) for key in sorted(done)}
        write_json(
            root / "cost.json",
            {
                "seconds": {"total": round(sum(seconds or 0.0 for seconds, _ in costs.values()), 3)},
                "cells": {key: {"seconds": a, "peak_memory_mb": b} for key, (a, b) in costs.items()},
            },
        )
        left = [key for key in plan.cells if key not in done and key not in self.failed]
        if not self.failed and not left:
            digest = text_digest("study", self.loaded.recipe.to_toml())
            finish(root, digest, "study")
        if not done:
            (root / PAGE).unlink(missing_ok=True)
        page = write_page(root) if done else None
        return StudyRun(root, sorted(done), self.computed, dict(self.failed), left, page)

    def _record(self, plan: Plan, done: frozenset[str]) -> dict[str, Any]:
        """Everything that the page needs to know of the matrix."""
        recipe, lost = self.loaded.recipe, set(self.failed)
        for key, cell in plan.cells.items():  # what a cell needs comes before it
            if key not in done and not lost.isdisjoint(cell.needs):
                lost.add(key)
        return {
            "about": recipe.about,
            "paper": recipe.paper,
            "base": os.path.relpath(self.loaded.base, self.asked.root),
            "source": recipe.source,
            "seeds": list(recipe.seeds),
            "groups": [asdict(group) for group in plan.groups],
            "methods": plan.methods,
            "tasks": plan.tasks,
            "cells": [self._cell(cell, plan, done, lost) for cell in plan.cells.values()],
        }

    def _cell(self, cell: Cell, plan: Plan, done: Set[str], lost: Set[str]) -> dict[str, Any]:
        seconds, memory = cost(self.asked.root, cell.key)
        told: dict[str, Any] = {"key": cell.key, "verb": cell.verb, "title": cell.title}
        told |= {"axes": dict(cell.axes), "needs": list(cell.needs)}
        if cell.key in done:
            return {**told, "status": "done", "seconds": seconds, "peak_memory_mb": memory}
        if cell.key in self.failed:
            return _failed(told, self.failed[cell.key])
        if cell.key not in lost:
            # What failed earlier has failed until it is tried again: its likes are planned without it.
            earlier = self.before.get(cell.key)
            return {**told, "status": "waiting"} if earlier is None else _failed(told, earlier)
        missing = [plan.cells[key].title for key in cell.needs if key in lost]
        return {**told, "status": "left out", "error": f"needs {', '.join(missing)}"}


def _failed(told: Mapping[str, Any], error: str) -> dict[str, Any]:
    return {**told, "status": "failed", "error": error}
