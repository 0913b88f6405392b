"""Does what retrieval gains go over to tasks? One point a method and language, a task at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calque.report.clouds import draw_scatter, plane
from calque.report.pictures import Correlation, Dot, Scatter
from calque.report.shown import ScatterView, correlated
from calque.report.study.gains import Gain, exactly, measure_gains, task_gains, telling
from calque.report.study.over_seeds import SeedMeasure
from calque.report.study.table import Scores
from calque.report.transfer import spoken_name
from calque.report.words import capital
from calque.stats.correlation import spearman

#: Resamples and shuffles of a correlation: one that is a hint needs no more.
ROUNDS = 1000


@dataclass(frozen=True)
class Spot:
    """A method in a language: its figures on the measure and on a task, as they are and as they are drawn."""

    task: str
    about: str
    label: str
    language: str
    measured: float
    reached: float
    scales: tuple[float, float]

    @property
    def x(self) -> float:
        return self.measured * self.scales[0]

    @property
    def y(self) -> float:
        return self.reached * self.scales[1]


@dataclass(frozen=True)
class Points:
    """A picture of two figures, and the points in it."""

    title: str
    names: tuple[str, str]
    spots: tuple[Spot, ...]
    view: ScatterView


@dataclass(frozen=True)
class Beside:
    """Gains against gains where methods were compared, and scores against scores."""

    measure: str
    gains: Points | None
    scores: Points | None


def beside(scores: Scores, measures: Sequence[SeedMeasure]) -> Beside | None:
    """Retrieval of words, or of sentences where there is none, beside every task; None without both."""
    held = [one for one in measures if one.retrieval]
    own = [one for one in held if one.task == held[0].task and one.measure.name == held[0].measure.name]
    if not own or not scores.study.kinds:
        return None
    name, figure = capital(own[0].held.whole.activity), own[0].held.whole.figure
    gains = _drawn(
        "gains",
        f"What {own[0].held.whole.activity} gains, and what tasks gain",
        (f"{name}: gain in points", "Task: gain in points"),
        list(_gains(scores, own)),
    )
    both = _drawn(
        "scores",
        f"{name} and scores on tasks",
        (f"{name}: {figure}, %", "Task: score, %"),
        list(_scores(scores, own)),
    )
    return Beside(own[0].held.whole.activity, gains, both) if gains or both else None


def _gains(scores: Scores, measures: Sequence[SeedMeasure]) -> Iterator[Spot]:
    for one in measures:
        found = measure_gains(one, scores.study)
        for name in scores.study.kinds:
            learned = scores.learned_in(name)
            for (method, code), gain in task_gains(scores, name, one.measure.group).items():
                other: Gain | None = found.get((method, code))
                if other is not None and code not in learned:
                    scales = (other.reading.scale, gain.reading.scale)
                    about = scores.about(name).name
                    yield Spot(name, about, method, code, other.value, gain.value, scales)


def _scores(scores: Scores, measures: Sequence[SeedMeasure]) -> Iterator[Spot]:
    for one in measures:
        for label in one.measure.group.labels:
            for code, panel in one.by_language(scores.study.source).items():
                x = one.score(label, panel.languages)
                for name in scores.study.kinds:
                    figure = scores.figure(name, label, code)
                    if x is not None and figure is not None and code not in scores.learned_in(name):
                        about, scales = scores.about(name).name, (panel.reading.scale, 100.0)
                        yield Spot(name, about, label, code, x.mean, figure.spread.mean, scales)


def _drawn(anchor: str, title: str, names: tuple[str, str], spots: Sequence[Spot]) -> Points | None:
    """The picture, with the rank correlation of all points and of every task's."""
    if len(spots) < 2:
        return None
    tasks = list(dict.fromkeys(spot.about for spot in spots))
    several = len(tasks) > 1
    dots = tuple(
        Dot(
            spot.x,
            spot.y,
            f"{spot.label}, {spoken_name(spot.language)}",
            spot.about if several else spot.label,
            f"{spot.language}, {spot.label}",
        )
        for spot in spots
    )
    whole = plane(Scatter(title, *names, dots, ()))
    told = [f"{task}: {line}" for task in tasks if (line := _correlated(spots, task))]
    told = told if several else [line.partition(": ")[2] for line in told]
    own = f"beside-{anchor}"
    view = ScatterView(whole, own, draw_scatter(whole, own), tuple(map(capital, told)))
    return Points(title, names, tuple(spots), view)


def _correlated(spots: Sequence[Spot], task: str) -> str:
    own = [(exactly(spot.x), exactly(spot.y)) for spot in spots if spot.about == task]
    if not telling(own):
        return ""
    found = spearman(*zip(*own, strict=True), rounds=ROUNDS)
    return correlated(Correlation("spearman", found.value, found.low, found.high, found.p, found.count))
