"""`calque study`: compute the cells that are not there yet, put their results together, write the page."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from calque.documents import read_text
from calque.errors import BadSetting
from calque.files import FINISHED, read_json, text_digest, write_json, write_text
from calque.locks import locked, sweep_all
from calque.pipeline.runs import environment
from calque.progress import say, shown
from calque.report.page import write_page
from calque.study.board import Board
from calque.study.cells import CELLS, Cell
from calque.study.checking import ready
from calque.study.plan import Plan, make_plan
from calque.study.recipe import RECIPE, STUDY, LoadedStudy, load_study
from calque.study.smoke import smoke_study
from calque.study.workers import FAILURES, Asked, Outcome, Workers, make_workers, worker_count

#: Verbs whose results are figures of the study; what they rest on has its own folder.
TOLD = ("measure", "transfer", "compare", "pretrain", "extend", "link")
#: Verbs that make an encoder, whose results name it by its size: the study has a name for it.
MAKING = ("pretrain", "extend")


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


@dataclass(frozen=True)
class Left:
    """A cell of earlier settings, or what is left of its training, and its size in bytes."""

    key: str
    size: int


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
    with locked(folder, "this study"):
        sweep_all(folder / CELLS)
        # A training that was cut off leaves its checkpoints in `.KEY.training`.
        names = {path: path.name.strip(".").removesuffix(".training") for path in (folder / CELLS).iterdir()}
        found = sorted(path for path, key in names.items() if path.is_dir() and key not in plan.cells)
        left = [Left(path.name, _size(path)) for path in found]
        if not dry_run:
            for one in left:
                shutil.rmtree(folder / CELLS / one.key, ignore_errors=True)
            for path in (folder / FAILURES).glob("*.txt"):
                if path.stem not in plan.cells:
                    path.unlink()
    return left


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


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
    told = list(spent(folder, plan))
    return Planned(plan, standing(folder, plan), {key: guess(one, told) for key, one in plan.cells.items()})


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

    `workers` are serial, a number of processes, or ray; `threads` are those of each cell, by default as many
    as the machine has for each worker. The results are the same whoever computes them, at the same threads.
    """
    loaded = opened(given, changes, smoke=smoke)
    kind, folder = str(workers), Path(out or default_folder(loaded, smoke=smoke))
    if threads is not None and threads < 1:
        raise BadSetting(f"{threads} threads", remedy="one or more")
    ready(loaded)
    with locked(folder, "this study"):
        claim(folder)
        with shown(show):
            chosen = chosen_threads(folder, kind, threads)
        asked = Asked(folder.resolve(), chosen, device, gpus)
        job = _Job(loaded, asked, Board(show))
        return job.run(make_workers(kind, asked, address))


def chosen_threads(folder: Path, workers: str, given: int | None) -> int:
    """As many threads a cell as are given, or as the cells that stand had, or as the machine has for each.

    Last digits of trained encoders depend on them, so those of one study should have the same. Cells on Ray
    have one, and so as many run at once as there is room for.
    """
    before = threads_of(folder)
    if given is None and len(before) == 1:
        return before[0]
    if given is not None and before and before != [given]:
        told = f"{' and '.join(map(str, before))} thread{'s' * (before != [1])}"
        say(f"cells with {told} stand here; those with {given} may differ from theirs in last digits")
    alone = 1 if workers == "ray" else max(1, (os.cpu_count() or 1) // worker_count(workers))
    return given or alone


def threads_of(folder: Path) -> list[int]:
    """The numbers of threads that a study's cells were computed with."""
    path = folder / "environment.json"
    told = read_json(path).get("threads", []) if path.is_file() else []
    return told if isinstance(told, list) else [told]


def claim(folder: Path) -> None:
    """Take a new or empty folder, or that of a study; one with anything else in it is refused."""
    if folder.exists() and not (folder / CELLS).is_dir() and (folder.is_file() or any(folder.iterdir())):
        raise BadSetting("exists and is not a study of calque", where=folder, remedy="choose another --out")
    (folder / CELLS).mkdir(parents=True, exist_ok=True)


def standing(folder: Path, plan: Plan) -> frozenset[str]:
    """The cells that are there."""
    return frozenset(key for key in plan.cells if (folder / CELLS / key / FINISHED).is_file())


def cost(folder: Path, key: str) -> tuple[float | None, int | None]:
    """Seconds and megabytes that a cell took, where it is there."""
    path = folder / CELLS / key / "cost.json"
    if not path.is_file():
        return None, None
    held = read_json(path)
    return held.get("seconds", {}).get("total"), held.get("peak_memory_mb")


#: A cell that was computed once: its verb, its axes, and the seconds that it took.
Spent: TypeAlias = tuple[str, Mapping[str, str], float]


def spent(folder: Path, plan: Plan) -> Iterator[Spent]:
    """What cells took that are there, and those that this study had when it was last run."""
    for key, cell in plan.cells.items():
        if (seconds := cost(folder, key)[0]) is not None:
            yield cell.verb, cell.axes, seconds
    if (folder / STUDY).is_file():
        for one in read_json(folder / STUDY).get("cells", []):
            if one.get("seconds") is not None:
                yield one["verb"], one["axes"], one["seconds"]


def guess(cell: Cell, known: Sequence[Spent]) -> float | None:
    """About how long a cell takes, by the mean of those most like it; None where nothing is known."""
    for alike in (("method", "task", "measure"), ("task", "measure"), ()):
        own = [
            seconds
            for verb, axes, seconds in known
            if verb == cell.verb and all(axes.get(axis) == cell.axes.get(axis) for axis in alike)
        ]
        if own:
            return sum(own) / len(own)
    return None


@dataclass
class _Job:
    """A study under way."""

    loaded: LoadedStudy
    asked: Asked
    board: Board
    failed: dict[str, str] = field(default_factory=dict)
    computed: list[str] = field(default_factory=list)

    def run(self, workers: Workers) -> StudyRun:
        """Compute until nothing new fails: what rests on a failed cell is planned again without it."""
        try:
            with self.board, self._going_on():
                while True:
                    plan, before = make_plan(self.loaded, frozenset(self.failed)), len(self.failed)
                    self._compute(plan, workers)
                    if len(self.failed) == before:
                        break
        finally:
            workers.stop()
        return self._told(plan)

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """Where it is interrupted, say that nothing is lost."""
        try:
            yield
        except KeyboardInterrupt:
            say(f"{len(self.computed)} cells were computed and stand; the same command goes on")
            raise

    def _compute(self, plan: Plan, workers: Workers) -> None:
        done = set(standing(self.asked.root, plan))
        waiting = {
            key: cell for key, cell in plan.cells.items() if key not in done and key not in self.failed
        }
        running: set[str] = set()
        known = list(spent(self.asked.root, plan))
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

    def _told(self, plan: Plan) -> StudyRun:
        """Results, costs and the page; the marker last."""
        root, done = self.asked.root, standing(self.asked.root, plan)
        (root / FINISHED).unlink(missing_ok=True)
        text = self.loaded.recipe.to_toml()
        write_text(root / RECIPE, text)
        write_text(root / "results.jsonl", "".join(f"{line}\n" for line in results(root, plan, done)))
        threads = sorted({*threads_of(root), self.asked.threads})
        told = {**environment(), "threads": threads if len(threads) > 1 else threads[0]}
        write_json(root / "environment.json", told)
        write_json(root / STUDY, self._record(plan, done))
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
            write_json(root / FINISHED, {"recipe": text_digest("study", text), "verb": "study"})
        page = write_page(root) if done else None
        return StudyRun(root, sorted(done), self.computed, dict(self.failed), left, page)

    def _record(self, plan: Plan, done: frozenset[str]) -> dict[str, Any]:
        """Everything that the page needs to know of the matrix."""
        recipe = self.loaded.recipe
        return {
            "about": recipe.about,
            "paper": recipe.paper,
            "base": os.path.relpath(self.loaded.base, self.asked.root),
            "source": recipe.source,
            "seeds": list(recipe.seeds),
            "groups": [asdict(group) for group in plan.groups],
            "methods": plan.methods,
            "tasks": plan.tasks,
            "cells": [self._cell(cell, plan, done) for cell in plan.cells.values()],
        }

    def _cell(self, cell: Cell, plan: Plan, done: frozenset[str]) -> dict[str, Any]:
        seconds, memory = cost(self.asked.root, cell.key)
        told: dict[str, Any] = {"key": cell.key, "verb": cell.verb, "title": cell.title}
        told |= {"axes": dict(cell.axes), "needs": list(cell.needs)}
        if cell.key in done:
            return {**told, "status": "done", "seconds": seconds, "peak_memory_mb": memory}
        if cell.key in self.failed:
            return {**told, "status": "failed", "error": self.failed[cell.key]}
        missing = [plan.cells[key].title for key in cell.needs if key not in done]
        return {**told, "status": "left out", "error": f"needs {', '.join(missing)}"}


def results(root: Path, plan: Plan, done: frozenset[str]) -> list[str]:
    """All results as lines, each once, in an order that does not depend on who computed what when."""
    found: set[str] = set()
    for key, cell in plan.cells.items():
        path = root / CELLS / key / "results.jsonl"
        if key in done and cell.verb.split()[0] in TOLD and path.is_file():
            # Lines end at line feeds alone: a name may hold other characters that end lines.
            lines = filter(None, read_text(path).split("\n"))
            own = _study_names(cell, plan)
            found.update(_renamed(line, own) for line in lines) if own else found.update(lines)
    return sorted(found)


def _study_names(cell: Cell, plan: Plan) -> dict[str, str]:
    """What a study calls the tasks of a cell, which knows them by what they are; and the encoder it makes."""
    if cell.verb in MAKING:
        return {"encoder": cell.axes["encoder"]}
    learned = [cell] if cell.verb == "transfer" else [plan.cells[key] for key in cell.needs]
    return {
        f"transfer-{one.settings['task']}": f"transfer-{one.axes['task']}"
        for one in learned
        if one.verb == "transfer" and one.axes["task"] != one.settings["task"]
    }


def _renamed(line: str, names: Mapping[str, str]) -> str:
    held = json.loads(line)
    task = names.get(held["task"], held["task"])
    told = {**held, "task": task, "encoder": names.get("encoder", held["encoder"])}
    return json.dumps(told, ensure_ascii=False, sort_keys=True)
