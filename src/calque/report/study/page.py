"""The page of a study: the verdict, one big table, gains by language, measures, cost, how to repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calque.report.made import flat
from calque.report.measures import MeasureView, measure_view
from calque.report.rendering import html_page
from calque.report.run_shown import RunView, run_view
from calque.report.shown import Limits
from calque.report.study.content import Content
from calque.report.study.contrasts import ContrastView
from calque.report.study.cost import CostTable, megabytes
from calque.report.study.gains import GainTable, Split
from calque.report.study.over_seeds import SeedMeasure, measure_title
from calque.report.study.reading import DONE, FAILED, LEFT_OUT, Cell, StudyFolder
from calque.report.study.repeat import Repeating, repeating
from calque.report.study.retrieval import Beside
from calque.report.study.table import MOST_PUBLISHED, BigTable, RowBlock, Scores
from calque.report.study.told import Finding, Missing, begun, merged, missing, overall, reason
from calque.report.transfer import spoken_name
from calque.report.transfer_shown import MOST_LETTERS, TESTS, ComparisonView, TaskView, comparison_view
from calque.report.words import capital, listed

#: A page that can still be sent by mail; letters up to which what a study is about can be its title.
MOST_BYTES, LONGEST_TITLE = 3_000_000, 120
#: Figures of single layers above which their tables are left out: they alone would fill a page.
MOST_FIGURES = 3000
_STATES = {DONE: "helped", FAILED: "hurt", LEFT_OUT: "untested"}


@dataclass(frozen=True)
class GroupTask:
    """A task of one group: pictures of the gains, and the tables behind them."""

    encoder: str
    view: ComparisonView
    task: TaskView


@dataclass(frozen=True)
class MeasureFold:
    """One measure of a group: what it is, its verdict, the first seed in full; figures give way to size."""

    title: str
    about: str
    view: RunView
    seeds: tuple[int, ...]
    alone: str


@dataclass(frozen=True)
class StudyView:
    """What the page shows of a study."""

    study: StudyFolder
    title: str
    summary: tuple[str, ...]
    headline: str
    notes: tuple[str, ...]
    missing: Missing | None
    findings: tuple[Finding, ...]
    test: str
    tables: tuple[BigTable, ...]
    published: tuple[RowBlock, ...]
    published_tables: tuple[BigTable, ...]
    contrasts: tuple[ContrastView, ...]
    tasks: tuple[tuple[str, tuple[GroupTask, ...]], ...]
    gains: tuple[GainTable, ...]
    split: Split | None
    beside: Beside | None
    measure_tables: tuple[BigTable, ...]
    alone: str
    measures: tuple[MeasureFold, ...]
    lean: bool
    cost: CostTable
    repeating: Repeating
    environment: tuple[tuple[str, str], ...]
    cells: tuple[tuple[Cell, str, str, str], ...]
    markdown: str

    @property
    def long(self) -> bool:
        """Whether the headline is to be set smaller."""
        return len(self.headline) > MOST_LETTERS

    @property
    def seeds(self) -> str:
        many = len(self.study.seeds)
        return "one seed" if many == 1 else f"{many} seeds"


def render_study(study: StudyFolder) -> str:
    """The page as text. Where it would be too large, fewer pictures are shown, then no figures of layers."""
    made = _Made(study)
    limits, lean = Limits().shared([one.first for one in study.measures]), made.figures > MOST_FIGURES
    while True:
        view = made.view(limits, lean=lean)
        text = html_page("study.html.j2", title=view.title, view=view, made_from="study")
        if len(text.encode()) < MOST_BYTES or (lean and limits == limits.halved()):
            return text
        limits, lean = limits.halved() if lean else limits, True


class _Made(Content):
    """A study's parts, and single measures as pages show them."""

    def __init__(self, study: StudyFolder) -> None:
        super().__init__(study)
        self._views: dict[tuple[int, bool], tuple[MeasureView, ...]] = {}

    @property
    def figures(self) -> int:
        """How many figures all layers, languages and encoders have."""
        panels = [panel for one in self.study.measures for panel in one.first.panels]
        return sum(len(panel.layers) * len(panel.encoders) for panel in panels)

    def view(self, limits: Limits, *, lean: bool) -> StudyView:
        """All that the page shows, at most so much of each kind."""
        study, tasks = self.study, self.tasks
        inside = study.paper is not None and sum(len(one.rows) for one in self.published) <= MOST_PUBLISHED
        whole = merged(study)
        return StudyView(
            study=study,
            title=_title(study),
            summary=tuple(_summary(study, self.scores)),
            headline=begun(overall(study, self.measures), study),
            notes=whole.notes if whole else (),
            missing=missing(study),
            findings=self.findings,
            test=" ".join(filter(None, (_test(study), self.corrections))),
            tables=tasks.cut(self.published if inside else ()),
            published=self.published,
            published_tables=() if inside else BigTable(tasks.heads, ()).cut(self.published),
            contrasts=self.contrasts,
            tasks=tuple(self._tasks(limits)),
            gains=self.gains,
            split=self.split,
            beside=self.beside,
            measure_tables=self.measured.cut(),
            alone=_alone(self.measures),
            measures=tuple(self._folds(limits, lean=lean)),
            lean=lean,
            cost=self.cost,
            repeating=repeating(study),
            environment=tuple((name, str(value)) for name, value in flat(study.environment)),
            cells=tuple(
                (cell, _STATES.get(cell.status, "untested"), megabytes(cell.memory), reason(study, cell))
                for cell in study.cells
            ),
            markdown=_markdown([one for one in (tasks, self.measured) if one.blocks]),
        )

    def _tasks(self, limits: Limits) -> list[tuple[str, tuple[GroupTask, ...]]]:
        """Every task with the pictures and tables of all groups."""
        held: dict[str, list[GroupTask]] = {name: [] for name in self.study.kinds}
        for one in self.study.comparisons:
            view = comparison_view(one.held, level=one.level, paired=one.paired, most=limits.contrasts)
            for name, task in zip(one.held.names, view.tasks, strict=True):
                held[name].append(GroupTask(one.group.encoder, view, task))
        return [(own[0].task.title, tuple(own)) for own in held.values() if own]

    def _folds(self, limits: Limits, *, lean: bool) -> list[MeasureFold]:
        found = []
        for place, one in enumerate(self.study.measures):
            own = one.measured
            views = self._views.get((place, lean)) or tuple(measure_view(held, lean=lean) for held in own)
            self._views[place, lean] = views
            view = run_view(one.first, f"measure{place}", limits, own, views, written=False)
            many = f", {one.group.encoder}" if len(self.study.groups) > 1 else ""
            agreed = next((held for held in self.measures if held.measure is one), None)
            title = agreed.title if agreed else measure_title(view.title, one)
            about = begun(agreed.headline, self.study) if agreed else ""
            alone = _alone([agreed] if agreed else [])
            found.append(MeasureFold(f"{title}{many}", about, view, tuple(one.seeds), alone))
        return found


# -------------------------------------------------------------------------------------------- in words


def _title(study: StudyFolder) -> str:
    if study.about and len(study.about) <= LONGEST_TITLE:
        return study.about
    names = listed([group.encoder for group in study.groups])
    return f"Study of {names}" if len(names) < LONGEST_TITLE else f"Study: {study.name}"


def _summary(study: StudyFolder, scores: Scores) -> list[str]:
    """What it is about, and how large it is."""
    told = [study.about] if len(study.about) > LONGEST_TITLE else []
    codes = {code for name in study.kinds for code in scores.languages(name)} | {
        code for one in study.measures for panel in one.first.panels for code in panel.languages
    }
    codes.discard(study.source)
    methods = max((len(group.methods) for group in study.groups), default=0)
    encoders = listed([group.encoder for group in study.groups])
    if study.noun == "encoder":
        encoders, methods = listed([label for group in study.groups for label in group.labels]), 0
    seeds, tasks = len(study.seeds), list(study.kinds)
    parts = [
        f"{methods} {'method' if methods == 1 else 'methods'} on {encoders}" if methods else encoders,
        f"{len(tasks)} {'task' if len(tasks) == 1 else 'tasks'}" if tasks else "",
        f"labels in {spoken_name(study.source)}" if tasks else "",
        _languages(study.by_distance(codes)),
        "one seed" if seeds == 1 else f"{seeds} seeds",
    ]
    return [*told, f"{', '.join(filter(None, parts))}."]


def _languages(codes: Sequence[str]) -> str:
    if not codes:
        return ""
    return (
        f"tested in {listed(list(map(spoken_name, codes)))}" if len(codes) <= 6 else f"{len(codes)} languages"
    )


def _test(study: StudyFolder) -> str:
    """How figures were tested, where any were."""
    tests = dict.fromkeys(one.held.test for one in study.comparisons)
    varies = dict.fromkeys(one.held.varies for one in study.comparisons)
    told = [TESTS.get(name, name) for name in tests]
    return " ".join([*told, *(f"A seed varies {capital(one)[:1].lower()}{one[1:]}." for one in varies)])


def _alone(measures: Sequence[SeedMeasure]) -> str:
    """Which methods were aligned with one seed where another would give other figures."""
    names = [label for one in measures for label in one.measure.group.methods if one.lone(label)]
    return listed(list(dict.fromkeys(names)))


def _markdown(tables: Sequence[BigTable]) -> str:
    return "\n\n".join(one.written().markdown for one in tables)
