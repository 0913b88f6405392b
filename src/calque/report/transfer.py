"""Runs of `calque transfer` and `calque compare`, read back: figures over seeds, data, training, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar, get_args

from calque.errors import BadInput
from calque.report.parts import Record, mapping, number, strings
from calque.report.tasks import Metric, Task, metric_of, task_of
from calque.report.words import name_of
from calque.stats.seed_verdicts import Finding
from calque.stats.seeds import Mark, Spread, spread_of
from calque.types import Result

T = TypeVar("T")
PREFIX = "transfer-"
#: The language of a row that is about several of them.
MEAN = "mean"
HELPED, HURT, NONE, UNKNOWN = FINDINGS = get_args(Finding)
MARKS = get_args(Mark)
PARTS = ("train", "dev", "test")


def spoken_name(code: str) -> str:
    """A language by name; of texts in two languages, both.

    >>> spoken_name("de"), spoken_name("de+en"), spoken_name("my dialect")
    ('German', 'German + English', 'my dialect')
    """
    return " + ".join(map(name_of, code.split("+")))


def _held(record: Record, kind: type[T], name: str) -> T:
    """What stands under a name, which must be of this kind."""
    value = record[name]
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {value!r}")
    return value


def _count(told: Any) -> int:
    if isinstance(told, bool) or not isinstance(told, int) or told < 0:
        raise ValueError(f"{told!r} is not a count")
    return told


def _maybe(told: Any) -> float | None:
    return None if told is None else number(told)


def _spread(record: Record, arm: str, seeds: int) -> Spread:
    return Spread(number(record[f"{arm} mean"]), _maybe(record[f"{arm} std"]), seeds)


def _one_of(told: Any, known: Sequence[str]) -> str:
    if told not in known:
        raise ValueError(f"{told!r} is not one of {', '.join(map(repr, known))}")
    return str(told)


# -------------------------------------------------------------------------------------- a comparison


@dataclass(frozen=True)
class Contrasted:
    """A method and the baseline over seeds, in one language or over several; scores from 0 to 1.

    `holm` is p after correction, on which the `finding` rests. `given` is what the answer is conditional on,
    `detectable` the smallest true difference that would be found four times in five. `languages` are those
    that a mean is over; files that are older do not tell. `kind` is the task where that is not its name: a
    study may have one task twice, on different data.
    """

    task: str
    language: str
    method: str
    metric: str
    before: Spread
    after: Spread
    items: int
    difference: float
    low: float | None
    high: float | None
    p: float
    holm: float
    mark: str
    detectable: float | None
    finding: str
    given: str
    line: str
    languages: tuple[str, ...] = ()
    kind: str = ""

    @classmethod
    def of(cls, record: Record) -> Contrasted:
        before, after = map(_count, record["seeds"])
        return cls(
            str(record["task"]),
            str(record["language"]),
            str(record["method"]),
            str(record["metric"]),
            _spread(record, "baseline", before),
            _spread(record, "method", after),
            _count(record["items"]),
            number(record["difference"]),
            _maybe(record["low"]),
            _maybe(record["high"]),
            number(record["p"]),
            number(record["holm"]),
            _one_of(record["mark"], MARKS),
            _maybe(record["detectable"]),
            _one_of(record["finding"], FINDINGS),
            str(record["given"]),
            str(record["line"]),
            strings(record.get("languages", ())),
        )

    @property
    def sure(self) -> bool:
        """Whether there is a difference after correction."""
        return self.finding in (HELPED, HURT)

    @property
    def name(self) -> str:
        """The language in words."""
        return spoken_name(self.language)

    @property
    def about(self) -> Task:
        return named_task(self.task, self.kind)

    @property
    def reading(self) -> Metric:
        return metric_of(self.metric)


def named_task(name: str, kind: str = "") -> Task:
    """A task in words; one that goes by another name than its kind's says so.

    >>> named_task("ner").name, named_task("news", "ner").name
    ('named entities', 'named entities (news)')
    """
    about = task_of(PREFIX + (kind or name))
    if kind in ("", name):
        return about
    return replace(about, name=f"{about.name} ({name})", title=f"{about.title or about.name}: {name}")


@dataclass(frozen=True)
class Comparison:
    """All that `calque compare` found: single languages in `rows`, their mean for every task in `tasks`.

    `trained` are the languages of each task's training data, where that is told, `by_run` those of each label
    where they differ.
    """

    baseline: str
    test: str
    varies: str
    rows: tuple[Contrasted, ...]
    tasks: tuple[Contrasted, ...]
    overall: str
    notes: tuple[str, ...]
    trained: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_run: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Comparison | None:
        """What a file tells; None where there is no file."""
        if not path.is_file():
            return None
        held = mapping(path)
        rows, tasks = (tuple(_contrasts(held, name, path)) for name in ("rows", "tasks"))
        names = dict.fromkeys(row.task for row in (*tasks, *rows))
        try:
            return cls(
                str(held["baseline"]),
                str(held["test"]),
                str(held["a seed varies"]),
                rows,
                tasks,
                str(held["overall"]),
                tuple(map(str, _held(held, list, "notes"))),
                _learned(held.get("trained", {}), names),
                _learned(held.get("trained by run", {}), ()),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _unfit(path, error) from None

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Everything that was compared with the baseline, in its order."""
        return tuple(dict.fromkeys(row.method for row in (*self.tasks, *self.rows)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tasks, in their order."""
        return tuple(dict.fromkeys(row.task for row in (*self.tasks, *self.rows)))

    def learned_in(self, task: str) -> tuple[str, ...]:
        """The languages of a task's training data, where that is told."""
        return self.trained.get(task, ())

    @cached_property
    def learned(self) -> tuple[str, ...]:
        """The languages of all training data."""
        return tuple(sorted({code for codes in self.trained.values() for code in codes}))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Every language that a task was tested in."""
        return tuple(dict.fromkeys(row.language for row in self.rows))

    def of_task(self, task: str) -> tuple[Contrasted, ...]:
        """The languages of a task, and then their mean."""
        return tuple(row for row in (*self.rows, *self.tasks) if row.task == task)

    def of_method(self, method: str) -> tuple[Contrasted, ...]:
        """What was found of a method, a row a task."""
        return tuple(row for row in self.tasks if row.method == method)

    def noted(self, labels: Sequence[str]) -> tuple[str, ...]:
        """What figures of these runs must be read with. A note that no run owns belongs to all."""
        return tuple(note for note in self.notes if self.owner(note) in (None, *labels))

    def owner(self, note: str) -> str | None:
        """Whose note this is, which its beginning says."""
        named = [name for name in (self.baseline, *self.methods) if note.startswith(f"{name}: ")]
        return max(named, key=len, default=None)


def _learned(told: Any, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Languages by task; older files have one list for all tasks."""
    if isinstance(told, dict):
        return {str(task): strings(codes) for task, codes in told.items()}
    return dict.fromkeys(names, strings(told))


def _contrasts(held: Record, name: str, path: Path) -> Iterator[Contrasted]:
    listed = held.get(name)
    if not isinstance(listed, list):
        raise _unfit(path, f"{name} is not a list")
    for place, record in enumerate(listed, 1):
        try:
            yield Contrasted.of(record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _unfit(path, f"{name}, record {place}: {error!r}") from None


def _unfit(path: Path, why: object) -> BadInput:
    told = why if isinstance(why, str) else repr(why)
    return BadInput(f"does not fit: {told}", where=path, remedy="make the run again")


# ------------------------------------------------------------------------------------ data and training


@dataclass(frozen=True)
class Portion:
    """A labelled file: what it was used for, how many items it gave, and how many were dropped, and why."""

    part: str
    language: str
    file: str
    items: int
    dropped: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, part: str, record: Record) -> Portion:
        lost = tuple((str(why), _count(many)) for why, many in record.get("dropped", {}).items())
        return cls(part, str(record["language"]), str(record["file"]), _count(record["items"]), lost)


@dataclass(frozen=True)
class Training:
    """The training of one seed: its steps, and what the weights that were kept score on dev data.

    `space` is the one that languages meet in, where there are several; `epoch` the one that was kept.
    """

    seed: int
    space: str
    steps: int
    best: float | None
    epoch: int | None

    @classmethod
    def of(cls, name: str, record: Record) -> Training:
        epoch = record.get("epoch")
        return cls(
            _count(record["seed"]),
            name.partition("@")[2],
            _count(record["steps"]),
            _maybe(record["best"]),
            None if epoch is None else _count(epoch),
        )


@dataclass(frozen=True)
class Setup:
    """What a run of `calque transfer` learned from and was tested on, and how it was trained."""

    task: str
    label: str
    regime: str
    varies: str
    selected: str
    portions: tuple[Portion, ...]
    trainings: tuple[Training, ...]

    @classmethod
    def read(cls, data: Path, training: Path) -> Setup | None:
        """What two files tell; None where the first is not there."""
        if not data.is_file():
            return None
        held = mapping(data)
        try:
            portions = tuple(Portion.of(part, one) for part in PARTS for one in held[part])
            varies, selected = str(held["a seed varies"]), str(held["selected on"])
            about = {name: str(held[name]) for name in ("task", "label", "regime")}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _unfit(data, error) from None
        return cls(
            **about, varies=varies, selected=selected, portions=portions, trainings=_trainings(training)
        )

    def of_part(self, part: str) -> tuple[Portion, ...]:
        return tuple(one for one in self.portions if one.part == part)

    @property
    def dropped(self) -> int:
        """Items that were left out of all files."""
        return sum(many for one in self.portions for _, many in one.dropped)


def _trainings(path: Path) -> tuple[Training, ...]:
    try:
        found = [Training.of(str(name), one) for name, one in mapping(path).items()]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _unfit(path, error) from None
    return tuple(sorted(found, key=lambda one: (one.seed, one.space)))


# ------------------------------------------------------------------------------------------- one run


@dataclass(frozen=True)
class Trained:
    """One task learned with one encoder: a figure for every language, metric and seed.

    `order` are the languages as they were given, `trained` those of the training data.
    """

    task: str
    encoder: str
    results: tuple[Result, ...]
    order: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()

    @property
    def about(self) -> Task:
        return task_of(self.task)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The figures, the one that tells the task's story first."""
        found = list(dict.fromkeys(r.metric for r in self.results))
        first = [name for name in self.about.metrics if name in found]
        return (*first, *(name for name in found if name not in first))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        found = list(dict.fromkeys(r.languages[1] for r in self.results))
        first = [code for code in self.order if code in found]
        return (*first, *(code for code in found if code not in first))

    @cached_property
    def foreign(self) -> tuple[str, ...]:
        """The languages that a mean is over: all but those of the training data, unless those are all."""
        return tuple(code for code in self.languages if code not in self.trained) or self.languages

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted({r.seed for r in self.results}))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What the figures must be read with."""
        return tuple(dict.fromkeys(r.note for r in self.results if r.note))

    @cached_property
    def _values(self) -> Mapping[tuple[str, str, int], float]:
        return {(r.languages[1], r.metric, r.seed): r.value for r in self.results}

    def value(self, language: str, metric: str, seed: int) -> float | None:
        """One figure; of `MEAN` the mean over languages, where all of them have one."""
        if language != MEAN:
            return self._values.get((language, metric, seed))
        held = [self._values.get((code, metric, seed)) for code in self.foreign]
        found = [value for value in held if value is not None]
        return fmean(found) if found and len(found) == len(held) else None

    def spread(self, language: str, metric: str) -> Spread | None:
        """Mean and standard deviation over the seeds there are."""
        held = [self.value(language, metric, seed) for seed in self.seeds]
        found = [value for value in held if value is not None]
        return spread_of(found) if found else None

    def items(self, language: str) -> int:
        return max((r.count for r in self.results if r.languages[1] == language), default=0)


def trained(results: Sequence[Result], setup: Setup | None) -> tuple[Trained, ...]:
    """Results of transfer, those of one task, encoder and training together."""
    keyed: dict[tuple[str, str, str, str], list[Result]] = {}
    for r in results:
        if r.task.startswith(PREFIX) and r.baseline is None and r.group is None:
            keyed.setdefault((r.task, r.encoder, r.variant, r.languages[0]), []).append(r)
    order = [one.language for one in setup.of_part("test")] if setup else []
    own = [one.language for one in setup.of_part("train")] if setup else []
    return tuple(
        Trained(task, encoder, tuple(held), tuple(order), tuple(own or source.split("+")))
        for (task, encoder, _, source), held in keyed.items()
    )


# ------------------------------------------------------------------------------------------- in words


def comparison_lines(held: Comparison) -> list[str]:
    """The verdict in words: a line a task, one for all, then what it must be read with."""
    return [*(row.line for row in held.tasks), held.overall, *held.notes]


def trained_line(one: Trained) -> str:
    """What a run reached, where nothing was compared."""
    metric = one.metrics[0]
    found = one.spread(MEAN, metric)
    many = f", mean of {len(one.foreign)} languages" if len(one.foreign) > 1 else ""
    where = many or f" in {spoken_name(one.foreign[0])}"
    told = "no figure of every language" if found is None else f"{shown_spread(found)}{where}"
    seeds = "one seed" if len(one.seeds) == 1 else f"{len(one.seeds)} seeds"
    notes = "".join(f" ({note})" for note in one.notes)
    name = metric_of(metric).name or metric
    return f"{one.about.name}: {one.encoder} has {name} {told}, {seeds}{notes}. Nothing was compared."


def shown_spread(held: Spread) -> str:
    """Mean and standard deviation in percent.

    >>> shown_spread(Spread(0.6123, 0.0081, 5)), shown_spread(Spread(0.5, None, 1))
    ('61.2% ± 0.8', '50.0%')
    """
    return f"{100 * held.mean:.1f}%" + ("" if held.std is None else f" ± {100 * held.std:.1f}")
