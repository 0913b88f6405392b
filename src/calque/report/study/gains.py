"""Gains of every method by language: ordered by distance from the source, and by kind of test data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from calque.report.study.over_seeds import SeedMeasure
from calque.report.study.reading import Group, StudyFolder
from calque.report.study.table import Scores, evenly, short
from calque.report.tasks import Metric, metric_of
from calque.report.transfer import MEAN, PREFIX, Contrasted, spoken_name
from calque.report.words import capital, signed
from calque.stats.correlation import ranks
from calque.text.typology import described

#: Points from which a correlation is told.
FEWEST = 4
#: Shades of a gain to either side, and points above which it is as strong as it gets.
SHADES, STRONGEST = 4, 4.0
#: Columns that paper has room for.
MOST_COLUMNS = 12


@dataclass(frozen=True)
class Gain:
    """What a method has more than the baseline in one language: as a difference, and whether it is sure."""

    value: float
    sure: bool
    reading: Metric

    @property
    def points(self) -> float:
        return self.value * self.reading.scale

    @property
    def shade(self) -> str:
        """The class of its colour: the more, the stronger; nothing where it rounds to nothing."""
        strongest = STRONGEST if self.reading.percent else STRONGEST / 100
        step = min(round(abs(self.points) / strongest * SHADES), SHADES)
        good = (self.points > 0) != self.reading.lower
        return f"{'g' if good else 'b'}{step}" if step else ""


@dataclass(frozen=True)
class Source:
    """A task or a measure over the methods that gained or lost on it, each with its place among all.

    `key` is the study's own name for it, `task` and `metric` are as in results.
    """

    key: str
    task: str
    metric: str
    title: str
    figure: str
    methods: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Apart:
    """A language: how far it is from the source and why, and the gain of every method there."""

    code: str
    name: str
    about: str
    far: float | None
    cells: tuple[Gain | None, ...]


@dataclass(frozen=True)
class GainTable:
    """Tasks and measures of a group: languages from near to far, and whether gains follow.

    `methods` are those of the group, which the places in heads count from one.
    """

    encoder: str
    baseline: str
    methods: tuple[str, ...]
    heads: tuple[Source, ...]
    rows: tuple[Apart, ...]
    follows: tuple[float | None, ...]

    @property
    def correlated(self) -> bool:
        """Whether there are languages enough for a rank correlation."""
        return any(one is not None for one in self.follows)

    @property
    def columns(self) -> tuple[tuple[Source, str, str], ...]:
        """Of every column its task or measure, and its method in short and in full."""
        return tuple(
            (head, name, self.methods[place - 1]) for head in self.heads for place, name in head.methods
        )


Gains = Mapping[tuple[str, str], Gain]


def gain_tables(scores: Scores, retrieval: Sequence[SeedMeasure]) -> Iterator[GainTable]:
    """Every group: all tasks and then all retrieval measures, in tables that paper has room for."""
    for group in scores.study.groups:
        held = list(_sources(scores, retrieval, group))
        for own in evenly(held, [len(source.methods) for source, _ in held], MOST_COLUMNS):
            yield from _table(scores.study, group, own)


def _sources(
    scores: Scores, retrieval: Sequence[SeedMeasure], group: Group
) -> Iterator[tuple[Source, Gains]]:
    """What methods of a group gained on, without languages that were trained on."""
    found = []
    for name in scores.study.kinds:
        learned, about = scores.learned_in(name), scores.about(name)
        metric = scores.metrics[name]
        figure = metric_of(metric).name or metric
        own = task_gains(scores, name, group)
        foreign = {key: gain for key, gain in own.items() if key[1] not in learned} or own
        place = (name, PREFIX + scores.study.kinds[name], metric)
        found.append((place, about.title or capital(about.name), figure, foreign))
    for one in (one for one in retrieval if one.measure.group == group):
        whole = one.held.whole
        place = (one.measure.name or one.task, one.task, whole.metric)
        found.append((place, one.title, whole.figure, measure_gains(one, scores.study)))
    for place, title, figure, gains in found:
        labels = {method for method, _ in gains}
        methods = tuple((k, short(name, group)) for k, name in enumerate(group.methods, 1) if name in labels)
        if methods:
            yield Source(*place, title, figure, methods), gains


def task_gains(scores: Scores, name: str, group: Group) -> dict[tuple[str, str], Gain]:
    """Gains on a task by method and language, without means."""
    rows: dict[tuple[str, str], Contrasted] = {
        (method, code): row
        for (task, method, code), row in scores.contrasts.items()
        if task == name and method in group.methods and code != MEAN
    }
    return {key: Gain(row.difference, row.sure, row.reading) for key, row in rows.items()}


def measure_gains(one: SeedMeasure, study: StudyFolder) -> dict[tuple[str, str], Gain]:
    """Gains on a measure by method and language: the mean over seeds, sure where every seed shows it."""
    found = {}
    for method in one.measure.group.methods:
        for code, panel in one.by_language(study.source).items():
            change = one.change(method, panel.languages)
            if change is not None:
                found[method, code] = Gain(change.mean, one.sure(method, panel.languages), panel.reading)
    return found


def _table(study: StudyFolder, group: Group, held: Sequence[tuple[Source, Gains]]) -> Iterator[GainTable]:
    """A table of more than one language."""
    codes = study.by_distance({code: None for _, gains in held for _, code in gains})
    if len(codes) < 2:
        return
    columns = [(gains, group.methods[place - 1]) for source, gains in held for place, _ in source.methods]
    rows = tuple(
        Apart(
            code,
            spoken_name(code),
            ", ".join(dict.fromkeys(described(part) for part in code.split("+"))),
            study.far(code),
            tuple(gains.get((name, code)) for gains, name in columns),
        )
        for code in codes
    )
    follows = tuple(_follows([(row.far, row.cells[place]) for row in rows]) for place in range(len(columns)))
    yield GainTable(
        group.encoder, group.baseline, group.methods, tuple(source for source, _ in held), rows, follows
    )


def _follows(held: Sequence[tuple[float | None, Gain | None]]) -> float | None:
    """Spearman's correlation of distance and gain, where there are languages enough that differ."""
    known = [
        (exactly(far), exactly(gain.value)) for far, gain in held if far is not None and gain is not None
    ]
    if not telling(known):
        return None
    apart, gained = ranks(np.array(known).T)
    return float(np.corrcoef(apart, gained).item(1))


def telling(points: Sequence[tuple[float, float]]) -> bool:
    """Whether points are enough for a correlation, and do not all lie on a line across or up."""
    sides = [{one[side] for one in points} for side in (0, 1)]
    return len(points) >= FEWEST and min(map(len, sides)) > 1


def exactly(value: float) -> float:
    """A figure without the last digits, in which equal ones may differ: they would have different ranks."""
    return round(value, 9)


# ------------------------------------------------------------------------------------- translated or not


@dataclass(frozen=True)
class Share:
    """The mean gain over tasks and languages, how many there are, and in how many it was sure."""

    mean: float
    count: int
    up: int
    down: int

    @property
    def told(self) -> str:
        return signed(self.mean, Metric())

    @property
    def findings(self) -> str:
        """In how many there is a difference."""
        sure = [f"better in {self.up}"] if self.up else []
        sure += [f"worse in {self.down}"] if self.down else []
        return f"{', '.join(sure) or 'sure in none'} of {self.count}"


@dataclass(frozen=True)
class KindRow:
    """A method: its share on tests of every kind, None where it has none."""

    label: str
    place: int
    cells: tuple[Share | None, ...]


@dataclass(frozen=True)
class Split:
    """Gains by how test data came about: which tasks are of which kind, and a row a method."""

    kinds: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[KindRow, ...]


_KINDS = {True: "translated", False: "not translated", None: "not told"}


def split(scores: Scores) -> Split | None:
    """Translated and other tests beside each other; None where nothing was compared or no kind is known."""
    study = scores.study
    tasks = {known: [n for n in study.kinds if study.translated(n) is known] for known in _KINDS}
    kinds = {known: names for known, names in tasks.items() if names}
    rows = []
    for group in study.groups:
        for place, label in enumerate(group.methods, 1):
            cells = tuple(_share(scores, group, label, names) for names in kinds.values())
            if any(cells):
                rows.append(KindRow(label, place, cells))
    told = tuple(
        (_KINDS[known], tuple(scores.about(name).name for name in names)) for known, names in kinds.items()
    )
    return Split(told, tuple(rows)) if rows and kinds.keys() != {None} else None


def _share(scores: Scores, group: Group, label: str, names: Sequence[str]) -> Share | None:
    held = [
        gain
        for name in names
        for (method, code), gain in task_gains(scores, name, group).items()
        if method == label and code not in scores.learned_in(name)
    ]
    if not held:
        return None
    sure = [gain.value > 0 for gain in held if gain.sure]
    return Share(fmean(gain.value for gain in held), len(held), sum(sure), len(sure) - sum(sure))
