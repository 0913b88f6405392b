"""One self-contained HTML page about a run: the verdict first, then everything that supports it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from calque import __version__
from calque.files import write_text
from calque.report.ambiguous import Word, words
from calque.report.collect import Run, collect, name_of, pair_name, place_of, spread
from calque.report.figures import links_grid
from calque.report.made import advice, command, cost, counts, flat
from calque.report.measures import MeasureView, coloured, measure_view, pairs_name
from calque.report.parts import Advice, Example
from calque.report.pictures import side_by_side
from calque.report.sentences import sentence
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
from calque.report.svg import colour
from calque.report.tables import link_rows, markdown
from calque.report.tasks import TASKS
from calque.report.transfer import PREFIX, spoken_name
from calque.report.transfer_shown import ComparisonView, TrainedView, comparison_view, trained_view
from calque.report.verdict import (
    ALPHA,
    UNTESTED,
    Measured,
    amount,
    capital,
    links_sentence,
    listed,
    measured,
    signed,
)
from calque.types import Result

#: A page that can be sent by mail; words with several translations that are not folded.
MOST_BYTES, OPEN_WORDS = 2_000_000, 8


def write_page(folder: Path) -> Path:
    """Write `report.html` into a run folder, or into a folder of runs, from what lies there."""
    path = folder / "report.html"
    write_text(path, render(collect(folder)))
    return path


def render(run: Run) -> str:
    """The page as text. Where it would be too large, fewer examples and points are shown."""
    runs = sorted(run.runs, key=_rank)
    held = [(part, measured(part)) for part in runs]
    measures = [tuple(map(measure_view, found)) for _, found in held]
    limits = Limits().shared(runs)
    while True:
        views = [
            _run_view(part, f"run{place}", limits, found, own)
            for place, ((part, found), own) in enumerate(zip(held, measures, strict=True))
        ]
        text = _rendered(run, views)
        if len(text.encode()) < MOST_BYTES or limits == limits.halved():
            return text
        limits = limits.halved()


def _rendered(run: Run, views: Sequence[RunView]) -> str:
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=f"{len(views)} runs in {run.name}" if run.parts else views[0].title,
            views=views,
            many=bool(run.parts),
            version=__version__,
            alpha=ALPHA,
            most_words=OPEN_WORDS,
            script=_asset("page.js"),
            style=_asset("style.css"),
        )
    )


def _rank(run: Run) -> tuple[object, ...]:
    """Runs by what they measured, as the measures are listed; then those that left pictures, then others."""
    tasks = [*(panel.task for panel in run.panels), *(one.task for one in run.trained)]
    tasks += [PREFIX + name for name in run.comparison.names] if run.comparison else []
    return (
        place_of(tasks[0] if tasks else "", list(TASKS)),
        run.comparison is None,
        not run.pictures,
        run.name,
    )


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("calque.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["sentence"] = sentence
    made.filters["language"] = name_of
    made.filters["spoken"] = spoken_name
    made.filters["pair"] = pair_name
    made.filters["opening"] = opening
    made.filters["colour"] = colour
    made.filters["coloured"] = coloured
    made.filters["digest"] = digest
    made.filters["shown"] = lambda value, reading: amount(value, reading).removesuffix("%")
    made.filters["signed"] = signed
    made.filters["p"] = lambda p: "" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"
    return made


@cache
def _asset(name: str) -> Markup:
    """The page's own script or style, which stands in it as it is."""
    return Markup(files("calque.report").joinpath("templates", name).read_text(encoding="utf-8"))


def digest(text: str) -> str:
    """A script or style as a content policy names it: nothing but this very text may run.

    >>> digest("alert(1)")
    'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='
    """
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def opening(text: str) -> str:
    """A headline with a large first letter, unless it starts with what looks like a file or model name.

    >>> opening("centring helped"), opening("e5-small-q4 hurt")
    ('Centring helped', 'e5-small-q4 hurt')
    """
    return capital(text) if text.split(" ")[0].isalpha() else text


# ------------------------------------------------------------------------------------------ the views


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


def _run_view(
    run: Run, anchor: str, limits: Limits, found: Sequence[Measured], measures: tuple[MeasureView, ...]
) -> RunView:
    metrics, linkers = link_rows(run)
    encoders = _encoders(run)
    layer = found[0].leading.layer if found else None
    compared = _comparison(run, limits)
    trained = tuple(trained_view(one, run.study, run.name) for one in run.trained)
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
        markdown(run, found) if run.panels or run.link_scores or compared or trained else "",
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
