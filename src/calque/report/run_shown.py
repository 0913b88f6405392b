"""What the page shows of one run: title and summary, measures, pictures, examples, how it was made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from calque.report.ambiguous import Word, words
from calque.report.collect import Run, pair_name, spread
from calque.report.figures import links_grid
from calque.report.made import advice, command, cost, counts, flat
from calque.report.measures import MeasureView, pairs_name
from calque.report.parts import Advice, Example
from calque.report.pictures import side_by_side
from calque.report.shown import (
    CloudView,
    HeatView,
    HistogramView,
    Limits,
    ScatterView,
    cloud_views,
    heat_view,
    histogram_views,
    scatter_views,
    telling_maps,
)
from calque.report.tables import link_rows, markdown
from calque.report.tasks import TASKS
from calque.report.transfer_shown import ComparisonView, TrainedView, comparison_view, trained_view
from calque.report.verdict import ALPHA, UNTESTED, Measured, links_sentence
from calque.report.words import capital, listed
from calque.types import Result


@dataclass(frozen=True)
class Line:
    """One measure in the overview: what it is, the sign and words of its verdict, its figures."""

    measure: str
    sign: str
    headline: str
    figures: tuple[str, ...]


@dataclass(frozen=True)
class RunView:
    """What the page shows of one run."""

    run: Run
    anchor: str
    title: str
    summary: str
    measures: tuple[MeasureView, ...]
    heatmaps: tuple[HeatView, ...]
    histograms: tuple[HistogramView, ...]
    clouds: tuple[CloudView, ...]
    scatters: tuple[ScatterView, ...]
    words: tuple[Word, ...]
    links_line: str
    link_metrics: list[str]
    link_rows: list[Any]
    grids: tuple[tuple[str, Markup], ...]
    examples: tuple[Example, ...]
    encoders: tuple[str, ...]
    counts: tuple[tuple[str, str], ...]
    cost: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    signature: str
    command: str
    markdown: str
    advice: tuple[Advice, ...]
    comparison: ComparisonView | None
    trained: tuple[TrainedView, ...]

    @property
    def words_there(self) -> int:
        """Words with several translations, whether they are shown or not."""
        return len(words(self.run.senses))

    @property
    def clouds_there(self) -> int:
        """Planes that there are, whether they are shown or not."""
        return len(side_by_side(self.run.projections))

    @property
    def lines(self) -> list[Line]:
        """The run in the overview: a line a measure, or one for a run that measured nothing."""
        found = [_line(one, self.run) for one in self.measures]
        found += [Line(one.title, "", one.headline, ()) for one in self.trained]
        if self.comparison:
            found += _compared_lines(self.comparison)
        return found or [Line(self.title, "", self.links_line, ())]


def _line(view: MeasureView, run: Run) -> Line:
    held = view.leading.held
    if held.whole.about.drawn:
        return Line(run.scatters[0].title if len(run.scatters) == 1 else view.title, "", held.headline, ())
    words = {verdict.word for verdict in held.verdicts} - {UNTESTED}
    sign = words.pop() if len(words) == 1 else ""
    figures = tuple(f"{one.encoder} {one.figures}" for one in view.leading.judged)
    named = dict.fromkeys((capital(held.whole.activity), view.leading.name))
    return Line(", ".join(named), sign, held.headline, figures)


def _compared_lines(view: ComparisonView) -> list[Line]:
    """A line a method, with the difference on every task."""
    return [
        Line(
            f"{one.method} against {view.held.baseline}",
            one.kind,
            one.word,
            tuple(f"{found.task}: {found.size}" for found in one.found),
        )
        for one in view.judged
    ]


def run_view(
    run: Run,
    anchor: str,
    limits: Limits,
    found: Sequence[Measured],
    measures: tuple[MeasureView, ...],
    *,
    written: bool = True,
) -> RunView:
    """All that the page shows of a run; `found` is what it measured, `measures` what is shown of that.

    Unless its tables are to be `written` as well, there is no Markdown of them.
    """
    metrics, linkers = link_rows(run)
    encoders = _encoders(run)
    layer = found[0].leading.layer if found else None
    compared = _comparison(run, limits)
    trained = tuple(trained_view(one, run.setup, run.name) for one in run.trained)
    transfer = next(((one.title, one.summary) for one in (compared, *trained) if one), None)
    title, summary = transfer or (_title(run, measures), _summary(run, found))
    return RunView(
        run,
        anchor,
        run.about.title if run.about else title,
        run.about.summary if run.about else summary,
        measures,
        tuple(map(heat_view, telling_maps(run.heatmaps, limits.heatmaps))),
        tuple(histogram_views(run, encoders, layer, limits.histograms)),
        tuple(cloud_views(run, anchor, limits)),
        tuple(scatter_views(run, anchor)),
        words(run.senses)[: limits.senses],
        links_sentence(run),
        metrics,
        linkers,
        tuple(_grids(run, limits.grids)),
        tuple(spread(run.examples, limits.examples)),
        encoders,
        tuple(counts(run.counts)),
        tuple(cost(run.cost)),
        tuple((name, str(value)) for name, value in flat(run.environment)),
        next((r.signature for r in _headline_first(run) if r.signature), ""),
        command(run),
        markdown(run, found) if written and (run.panels or run.link_scores or compared or trained) else "",
        run.about.next if run.about else advice(run),
        compared,
        trained,
    )


def _comparison(run: Run, limits: Limits) -> ComparisonView | None:
    """A comparison as the recipe made it."""
    level, paired = run.recipe.get("level", ALPHA), bool(run.recipe.get("paired_seeds"))
    level = level if isinstance(level, int | float) else ALPHA
    if run.comparison is None:
        return None
    return comparison_view(run.comparison, level=level, paired=paired, most=limits.contrasts)


def _encoders(run: Run) -> tuple[str, ...]:
    """Encoders of the figures in their order, then any that only pictures or examples name."""
    figures = [name for panel in run.panels for name in panel.encoders]
    pictures = [name for one in run.histograms for name in one.encoders]
    shown = [*run.examples, *(one for sense in run.senses for one in sense.occurrences)]
    examples = sorted({name for example in shown for name in example.retrieved})
    drawn = [one.encoder for one in run.projections]
    return tuple(dict.fromkeys([*figures, *pictures, *drawn, *examples]))


# ------------------------------------------------------------------------------------- title and summary


def _title(run: Run, measures: Sequence[MeasureView]) -> str:
    """What was done, in which languages; of several measures the first."""
    return measures[0].title if measures else _pictured(run)


def _pictured(run: Run) -> str:
    """The title of a run that left pictures or links and no figures."""
    for held, title in (
        (run.projections, "Words on a plane"),
        (run.heatmaps, "Shape of the spaces (CKA)"),
        (run.histograms, "Distances of linked words"),
    ):
        if held:
            return f"{title}: {pairs_name([one.languages for one in held])}"
    if run.scatters:
        return run.scatters[0].title
    return f"Links of {pair_name(run.languages)}" if run.grids and run.languages else run.name


def _summary(run: Run, found: Sequence[Measured]) -> str:
    """What was asked, and who was compared with whom; of several measures the first."""
    if not found:
        return TASKS["projection"].asked if run.projections else ""
    panel = found[0].leading.whole
    counted = run.counts.get(panel.about.counted)
    told = [f"{counted:,} {panel.about.asked}" if isinstance(counted, int) else capital(panel.about.asked)]
    if panel.baseline:
        # A floor stands among the encoders, and is compared with nobody.
        others = [verdict.encoder for verdict in found[0].leading.verdicts]
        told.append(f"The baseline is {panel.baseline}; compared with it {_be(others)} {listed(others)}.")
    return " ".join(filter(None, told))


def _be(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _headline_first(run: Run) -> Iterator[Result]:
    """Results in the order in which a signature should be taken from them."""
    for panel in run.panels:
        found = (panel.score(name, panel.layers[-1]) for name in panel.encoders)
        yield from (r for r in found if r is not None)
    yield from run.results


def _grids(run: Run, most: int) -> Iterator[tuple[str, Markup]]:
    for place, grid in enumerate(spread(run.grids, most), 1):
        languages = grid.languages or run.languages
        title = f"Links of sentence pair {place}" + (f", {pair_name(languages)}" if languages else "")
        figure = links_grid(
            grid.source, grid.target, grid.links, title=title, languages=languages or ("", "")
        )
        yield title, figure
