"""A study folder read back: what was asked, which cells there are, and what those that are done found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from calque.documents import read_text
from calque.errors import BadInput
from calque.files import finished
from calque.report.collect import STUDY, Run, collect, place_of, results_of
from calque.report.parts import Record, mapping, number, strings
from calque.report.tasks import TASKS
from calque.report.transfer import PREFIX, Comparison, Trained, spoken_name, trained
from calque.report.verdict import ALPHA, Measured, measured
from calque.text.typology import distance
from calque.types import Result

DONE, FAILED, LEFT_OUT, WAITING = "done", "failed", "left out", "waiting"
#: Verbs of cells that are looked into.
ALIGN, TRANSFER, COMPARE, MEASURE = "align", "transfer", "compare", "measure "
_TOLD_ALL = ("results", "examples", "senses", "grids", "heatmaps", "histograms", "projections", "scatters")


@dataclass(frozen=True)
class Cell:
    """One run of a study: what it is, how it went, what it cost. `axes` is where it lies in the matrix."""

    key: str
    verb: str
    title: str
    axes: Mapping[str, str]
    status: str
    needs: tuple[str, ...] = ()
    error: str = ""
    seconds: float | None = None
    memory: float | None = None

    @classmethod
    def of(cls, record: Record, costs: Record) -> Cell:
        """A record of study.json; what it cost may stand in `costs` as well."""
        key, axes = str(record["key"]), record.get("axes", {})
        own = {**costs.get(key, {}), **{name: value for name, value in record.items() if value is not None}}
        seconds, memory = (
            None if own.get(name) is None else number(own[name]) for name in ("seconds", "peak_memory_mb")
        )
        told = {str(name): str(value) for name, value in axes.items()}
        error, title = str(record.get("error") or ""), str(record.get("title") or key)
        needs, status = strings(record.get("needs", ())), str(record["status"])
        return cls(key, str(record["verb"]), title, told, status, needs, error, seconds, memory)

    @property
    def seed(self) -> int | None:
        told = self.axes.get("seed", "")
        return int(told) if told.isdigit() else None


@dataclass(frozen=True)
class Group:
    """An encoder as it is, and all that was made of it; or encoders of which the first is the baseline."""

    encoder: str
    baseline: str
    methods: tuple[str, ...]

    @classmethod
    def of(cls, record: Record) -> Group:
        return cls(str(record["encoder"]), str(record["baseline"]), strings(record["methods"]))

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.baseline, *self.methods)

    def label_of(self, cell: Cell) -> str | None:
        """Whom of this group a cell is about; one that names no method is about the encoder as it is."""
        told = cell.axes.get("method") or self.baseline
        if told in self.labels and cell.axes.get("encoder", self.encoder) in (self.encoder, told):
            return told
        named = f"{cell.axes.get('encoder', '')} {told}"
        return named if named in self.labels else None


@dataclass(frozen=True)
class Method:
    """What was done to an encoder; `axes` is what varies in the study beside it."""

    encoder: str
    method: str
    axes: Mapping[str, str]

    @classmethod
    def of(cls, record: Record) -> Method:
        axes = {str(name): str(value) for name, value in record.get("axes", {}).items()}
        return cls(str(record["encoder"]), str(record["method"]), axes)


@dataclass(frozen=True)
class GroupComparison:
    """What `calque compare` found of a group: corrected p below `level` counts.

    `against` is set where others are compared with one of its methods, and not with its baseline.
    """

    group: Group
    held: Comparison
    level: float
    paired: bool
    against: bool = False


@dataclass(frozen=True)
class GroupMeasure:
    """What one measure found of a group, with every seed.

    `name` is what the study calls it where it takes one measure in several ways. `runs` are by seed, the
    fullest first. `drawn` are the seeds that methods were aligned with which a seed changes.
    """

    group: Group
    verb: str
    name: str
    runs: Mapping[int, Run]
    drawn: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def first(self) -> Run:
        """The seed that is shown in full: the first of those in which least is missing."""
        return next(iter(self.runs.values()))

    @property
    def others(self) -> tuple[Run, ...]:
        return tuple(self.runs.values())[1:]

    @cached_property
    def measured(self) -> tuple[Measured, ...]:
        """What was measured with the first seed."""
        return measured(self.first)

    @cached_property
    def seeds(self) -> dict[int, tuple[Result, ...]]:
        """Figures of encoders by seed, without differences and breakdowns."""
        return {
            seed: tuple(r for r in run.results if r.baseline is None and r.group is None)
            for seed, run in self.runs.items()
        }


@dataclass(frozen=True)
class StudyFolder:
    """All that a study says. What is not there yet is empty.

    `tasks` says of every task, by the study's name for it, whether its tests are translations, None where
    that is not known. `base` is the folder that the recipe's relative paths begin at, seen from this one.
    """

    folder: Path
    about: str
    paper: str | None
    source: str
    seeds: tuple[int, ...]
    groups: tuple[Group, ...]
    methods: Mapping[str, Method]
    tasks: Mapping[str, bool | None]
    cells: tuple[Cell, ...]
    recipe_text: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, Any] = field(default_factory=dict)
    finished: Mapping[str, Any] | None = None
    base: str | None = None

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def labels(self) -> tuple[str, ...]:
        """Every encoder and method under the name that it has in results."""
        return tuple(dict.fromkeys(label for group in self.groups for label in group.labels))

    @property
    def noun(self) -> str:
        """What is compared: methods, or encoders where nothing was done to them."""
        others = [name for group in self.groups for name in group.methods]
        return "method" if any(name in self.methods for name in others) else "encoder"

    def of_status(self, status: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.status == status)

    @property
    def waiting(self) -> tuple[Cell, ...]:
        """Cells that did not come to anything yet."""
        return self.of_status(WAITING)

    def done(self, verb: str) -> Iterator[tuple[Cell, Path]]:
        """Cells of a verb that came to their end, and what they left."""
        for cell in self.cells:
            folder = self.folder / "cells" / cell.key
            if cell.verb.startswith(verb) and cell.status == DONE and folder.is_dir():
                yield cell, folder

    def far(self, code: str) -> float | None:
        """How far a language is from the source; of texts in several, how far the furthest is."""
        held = [distance(self.source, one) for one in code.split("+")]
        known = [one for one in held if one is not None]
        return max(known) if len(known) == len(held) else None

    def by_distance(self, codes: Iterable[str]) -> list[str]:
        """Languages, the nearest to the source first, those of which nothing is known last."""
        held = {code: self.far(code) for code in codes}
        return sorted(held, key=lambda code: (held[code] is None, held[code] or 0.0, spoken_name(code), code))

    # ------------------------------------------------------------------------------------ transfer

    @cached_property
    def _learned(self) -> dict[str, list[Result]]:
        """Results of every task, under the name that the study has for it."""
        found: dict[str, list[Result]] = {}
        for cell, folder in self.done(TRANSFER):
            for r in _results(folder):
                found.setdefault(cell.axes.get("task", r.task.removeprefix(PREFIX)), []).append(r)
        return found

    @cached_property
    def trained(self) -> dict[tuple[str, str], Trained]:
        """Every task as every encoder and method learned it, by both names, over seeds and languages."""
        return {
            (name, one.encoder): one
            for name, held in self._learned.items()
            for one in reversed(trained(held, None))
        }

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Which task stands under each name of the study."""
        held = {name: own[0].task.removeprefix(PREFIX) for name, own in self._learned.items()}
        found = held | {row.task: row.kind or row.task for one in self.comparisons for row in one.held.rows}
        return {name: found[name] for name in sorted(found, key=lambda name: place_of(name, list(held)))}

    def translated(self, name: str) -> bool | None:
        """Whether the tests of a task are translations."""
        kind = self.kinds.get(name, name)
        if name in self.tasks or kind in self.kinds:
            return self.tasks.get(name)
        return self.tasks.get(kind)

    @cached_property
    def comparisons(self) -> tuple[GroupComparison, ...]:
        """What was compared, in the order of groups; a group has several where a task is there twice."""
        return tuple(one for one in self._compared if not one.against)

    @cached_property
    def contrasts(self) -> tuple[GroupComparison, ...]:
        """Methods that were compared with another method, in the order of groups and their methods."""
        found = [one for one in self._compared if one.against]
        return tuple(sorted(found, key=lambda one: self.labels.index(one.held.baseline)))

    @cached_property
    def _compared(self) -> tuple[GroupComparison, ...]:
        found = [one for cell, folder in self.done(COMPARE) if (one := self._comparison(cell, folder))]
        return tuple(sorted(found, key=lambda one: self.groups.index(one.group)))

    def _comparison(self, cell: Cell, folder: Path) -> GroupComparison | None:
        run = collect(folder)
        if run.comparison is None:
            return None
        told, names = run.comparison, self._names(cell)
        against = "against" in cell.axes
        group = next(
            (g for g in self.groups if told.baseline in (g.methods if against else (g.baseline,))), None
        )
        if group is None:
            return None
        order = self.by_distance(told.languages)
        near = sorted(told.rows, key=lambda row: order.index(row.language))
        rows, tasks = (
            tuple(replace(row, task=names.get(row.task, row.task), kind=row.task) for row in held)
            for held in (near, told.tasks)
        )
        level = run.recipe.get("level", ALPHA)
        level = level if isinstance(level, int | float) else ALPHA
        paired = bool(run.recipe.get("paired_seeds"))
        learned = {names.get(task, task): codes for task, codes in told.trained.items()}
        held = replace(told, rows=rows, tasks=tasks, trained=learned)
        return GroupComparison(group, held, level, paired, against)

    def _names(self, compare: Cell) -> dict[str, str]:
        """What the study calls the tasks of a comparison, which knows them by what they are."""
        read = {cell.axes["task"] for cell in self.cells if cell.key in compare.needs and "task" in cell.axes}
        held = {name: own[0].task.removeprefix(PREFIX) for name, own in self._learned.items()}
        return {held[name]: name for name in read if name in held}

    # ------------------------------------------------------------------------------------ measures

    @cached_property
    def alignments(self) -> dict[str, tuple[Cell, ...]]:
        """By method the cells that aligned it: its own, and those that its tasks rest on."""
        aligned = {one.key: one for one in self.of_status(DONE) if one.verb == ALIGN}
        found: dict[str, dict[str, Cell]] = {}
        for cell in self.of_status(DONE):
            # Methods that differ in a task only share an alignment, which has the name of the first.
            keys = [cell.key] if cell.verb == ALIGN else cell.needs if cell.verb == TRANSFER else ()
            own = {key: aligned[key] for key in keys if key in aligned}
            for label in filter(None, (group.label_of(cell) for group in self.groups)):
                found.setdefault(label, {}).update(own)
        return {label: tuple(own.values()) for label, own in found.items()}

    @cached_property
    def _drawn(self) -> dict[str, frozenset[int]]:
        """By method the seeds that it was aligned with, where a seed changes it."""
        seeds = {
            label: frozenset(cell.seed for cell in own if cell.seed is not None)
            for label, own in self.alignments.items()
        }
        return {label: own for label, own in seeds.items() if own}

    @cached_property
    def measures(self) -> tuple[GroupMeasure, ...]:
        """One a measure and group: measures in the order in which they are listed, groups in theirs."""
        keyed: dict[tuple[str, str, int], dict[int, list[Path]]] = {}
        for cell, folder in self.done(MEASURE):
            group = self.groups.index(self.group_of(cell, folder))
            own = keyed.setdefault((cell.verb, cell.axes.get("measure", ""), group), {})
            own.setdefault(cell.seed or 0, []).append(folder)
        made = [
            replace(_measure(verb, name, self.groups[place], held), drawn=self._drawn)
            for (verb, name, place), held in keyed.items()
        ]
        return tuple(sorted(made, key=lambda one: (*_rank(one), self.groups.index(one.group))))

    def group_of(self, cell: Cell, folder: Path) -> Group:
        """Whose run this is: by its axes where they tell, otherwise by whom it measured."""
        told = [group for group in self.groups if group.encoder == cell.axes.get("encoder")]
        if len(told) == 1 or len(self.groups) == 1:
            return (told or self.groups)[0]
        names = {r.encoder for r in _results(folder)}
        return max(self.groups, key=lambda group: len(names & set(group.labels)))


def _measure(verb: str, name: str, group: Group, held: Mapping[int, Sequence[Path]]) -> GroupMeasure:
    runs = {
        seed: of_group(together([collect(folder) for folder in folders]), group)
        for seed, folders in held.items()
    }
    order = sorted(runs, key=lambda seed: (*_missing(runs[seed]), seed))
    return GroupMeasure(group, verb, name, {seed: runs[seed] for seed in order})


def of_group(run: Run, group: Group) -> Run:
    """A run with the labels of a group, and no differences but those to its baseline: where that failed, a
    measure compares with the next encoder that is there."""
    own = tuple(r for r in run.results if r.baseline in (None, group.baseline))
    return replace(run, results=own, recipe={**run.recipe, "labels": list(group.labels)})


def _missing(run: Run) -> tuple[int, int]:
    """Orders runs of one measure: the more languages the sooner, then the more encoders and differences."""
    pairs = {r.languages for r in run.results}
    return -len(pairs), -len({(r.languages, r.encoder, r.baseline is None) for r in run.results})


def _results(folder: Path) -> tuple[Result, ...]:
    path = folder / "results.jsonl"
    return results_of(path) if path.is_file() else ()


def together(runs: Sequence[Run]) -> Run:
    """Runs of one measure in different languages as one."""
    first, *others = runs
    joined: dict[str, Any] = {
        name: tuple(one for run in runs for one in getattr(run, name)) for name in _TOLD_ALL
    }
    counts = {} if others else first.counts
    return replace(first, beside=tuple(run.folder for run in others), counts=counts, **joined)


def _rank(one: GroupMeasure) -> tuple[object, ...]:
    tasks = [panel.task for panel in one.first.panels]
    return place_of(tasks[0] if tasks else "", list(TASKS)), one.verb, one.name


# ------------------------------------------------------------------------------------------- reading


def is_study(folder: Path) -> bool:
    """Whether `calque study` wrote this folder, or writes it just now."""
    return (folder / STUDY).is_file()


def read_study(folder: Path) -> StudyFolder:
    """What study.json and the files beside it say; cells are read when they are asked for."""
    path, recipe = folder / STUDY, folder / "recipe.toml"
    held, cost = mapping(path), mapping(folder / "cost.json")
    costs = cost.get("cells")
    costs = costs if isinstance(costs, dict) else {}
    try:
        groups = tuple(map(Group.of, held["groups"]))
        if not groups:
            raise ValueError("no groups")
        return StudyFolder(
            folder=folder,
            about=str(held.get("about") or ""),
            paper=None if held.get("paper") is None else str(held["paper"]),
            source=str(held["source"]),
            seeds=tuple(map(int, held["seeds"])),
            groups=groups,
            methods={str(label): Method.of(one) for label, one in held.get("methods", {}).items()},
            tasks={str(name): _translated(one) for name, one in held.get("tasks", {}).items()},
            cells=tuple(Cell.of(_by_now(folder, one), costs) for one in held["cells"]),
            recipe_text=read_text(recipe) if recipe.is_file() else "",
            environment=mapping(folder / "environment.json"),
            cost=cost,
            finished=finished(folder),
            base=None if held.get("base") is None else str(held["base"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadInput(f"does not fit: {error!r}", where=path, remedy="run the study again") from None


def _by_now(folder: Path, record: Record) -> Record:
    """A cell that waited when study.json was written may have come to its end since."""
    run = folder / "cells" / str(record["key"])
    if record["status"] != WAITING or finished(run) is None:
        return record
    spent = mapping(run / "cost.json")
    seconds = spent.get("seconds")
    total = seconds.get("total") if isinstance(seconds, dict) else None
    return {**record, "status": DONE, "seconds": total, "peak_memory_mb": spent.get("peak_memory_mb")}


def _translated(record: Record) -> bool | None:
    told = record.get("translated")
    if told is not None and not isinstance(told, bool):
        raise ValueError(f"translated is {told!r}, not true, false or null")
    return told
