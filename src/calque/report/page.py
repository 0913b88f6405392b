"""One self-contained HTML page about a run: the verdict first, then everything that supports it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from calque import __version__
from calque.files import write_text
from calque.report.collect import Example, Panel, Place, Run, collect, place_of, spread
from calque.report.figures import (
    COLOURS,
    Bars,
    Mark,
    Pair,
    Series,
    breakdown_bars,
    dumbbell,
    layer_curve,
    links_grid,
)
from calque.report.tables import Row, link_rows, markdown, rows
from calque.report.verdict import (
    ALPHA,
    WORDS,
    Contrast,
    Verdict,
    amount,
    contrasted,
    links_sentence,
    panel_lines,
    signed,
    together,
    verdicts,
)
from calque.types import Result

MOST_EXAMPLES, MOST_GRIDS, CONTEXT = 24, 8, 14
_WHOLE = ("sentences", "kept", "links", "scored")
_UNSPACED = {"zh", "ja", "th", "lo", "km", "my", "bo"}
_BREAKDOWNS = {
    "pos": ("Part of speech", "Universal part of speech of the word that searches."),
    "pos-group": ("Groups of parts of speech", "Each group is the plain mean of its parts of speech."),
    "rank-gap": (
        "Gap between frequency ranks",
        "How far apart the two words stand in their frequency lists.",
    ),
    "script": ("Script", "Writing system of the word in the target language."),
    "seen": (
        "Seen in training",
        "Whether the two words were linked in the text that an encoder was aligned on.",
    ),
}


#: Settings whose option has another name than they have; those with none are plain arguments.
_OPTIONS = {
    "encoders": "--encoder",
    "labels": "--label",
    "breakdowns": "--by",
    "filters": "--filter",
    "paths": "",
    "text": "",
}


def write_page(folder: Path) -> Path:
    """Write `report.html` into a run folder, or into a folder of runs, from what lies there."""
    path = folder / "report.html"
    write_text(path, render(collect(folder)))
    return path


def render(run: Run) -> str:
    """The page as text."""
    views = [_run_view(part, f"run{place}") for place, part in enumerate(run.runs)]
    title = f"{len(views)} runs in {run.name}" if run.parts else views[0].title
    return (
        _environment()
        .get_template("page.html.j2")
        .render(title=title, views=views, many=bool(run.parts), version=__version__, alpha=ALPHA)
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
    made.filters["colour"] = lambda place: f"s{place % COLOURS}"
    made.filters["p"] = lambda p: "" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"
    return made


# ------------------------------------------------------------------------------------------ the views


@dataclass(frozen=True)
class Breakdown:
    """One breakdown as a picture, with what it is."""

    title: str
    about: str
    figure: Markup


@dataclass(frozen=True)
class Layered:
    """All breakdowns at one layer."""

    layer: int | None
    breakdowns: tuple[Breakdown, ...]


@dataclass(frozen=True)
class PanelView:
    """What the page shows of one panel."""

    panel: Panel
    verdicts: tuple[Verdict, ...]
    lines: tuple[str, ...]
    dumbbells: tuple[Markup, ...]
    curve: Markup | None
    rows: tuple[Row, ...]
    best: tuple[int | None, ...]
    layered: tuple[Layered, ...]

    @property
    def headlines(self) -> str:
        """All verdicts in a few words."""
        return together(self.verdicts) if self.verdicts else self.panel.title

    def shown(self, value: float | None) -> str:
        return "" if value is None else amount(value, self.panel.reading).removesuffix("%")

    def signed(self, value: float | None) -> str:
        return "" if value is None else signed(value, self.panel.reading)

    def better(self, change: Result) -> bool:
        return (change.value > 0) != self.panel.reading.lower


@dataclass(frozen=True)
class RunView:
    """What the page shows of one run."""

    run: Run
    anchor: str
    title: str
    panels: tuple[PanelView, ...]
    links_line: str
    link_metrics: list[str]
    link_rows: list[Any]
    grids: tuple[Markup, ...]
    examples: tuple[Example, ...]
    encoders: tuple[str, ...]
    counts: tuple[tuple[str, str], ...]
    cost: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    signature: str
    command: str
    markdown: str

    @property
    def headlines(self) -> str:
        """The run in a few words."""
        return self.panels[0].headlines if len(self.panels) == 1 else self.title


def _run_view(run: Run, anchor: str) -> RunView:
    panels = tuple(map(_panel_view, run.panels))
    metrics, linkers = link_rows(run)
    return RunView(
        run,
        anchor,
        _title(run, panels),
        panels,
        links_sentence(run),
        metrics,
        linkers,
        tuple(_grids(run)),
        run.examples[:MOST_EXAMPLES],
        _encoders(run),
        tuple(_counts(run.counts)),
        tuple(_cost(run.cost)),
        tuple((name, str(value)) for name, value in _flat(run.environment)),
        next((r.signature for r in _headline_first(run) if r.signature), ""),
        _command(run),
        markdown(run) if run.panels or run.link_scores else "",
    )


def _encoders(run: Run) -> tuple[str, ...]:
    """Encoders of the figures in their order, then any that only examples name."""
    figures = [name for panel in run.panels for name in panel.encoders]
    examples = sorted({name for example in run.examples for name in example.retrieved})
    return tuple(dict.fromkeys([*figures, *examples]))


def _title(run: Run, panels: Sequence[PanelView]) -> str:
    if len(panels) > 1:
        return _tally(panels)
    if panels:
        return panels[0].headlines
    return f"Links of {'–'.join(run.languages)}" if run.grids and run.languages else run.name


def _tally(panels: Sequence[PanelView]) -> str:
    """How many comparisons went which way."""
    words = Counter(verdict.word for panel in panels for verdict in panel.verdicts)
    if not words:
        return f"{len(panels)} measures"
    told = ", ".join(f"{words[word]} {word}" for word in WORDS if word in words)
    return f"{words.total()} comparisons: {told}"


def _headline_first(run: Run) -> Iterator[Result]:
    """Results in the order in which a signature should be taken from them."""
    for panel in run.panels:
        found = (panel.score(name, panel.layers[-1]) for name in panel.encoders)
        yield from (r for r in found if r is not None)
    yield from run.results


def _panel_view(panel: Panel) -> PanelView:
    judged = tuple(verdicts(panel))
    return PanelView(
        panel,
        judged,
        tuple(panel_lines(panel)),
        tuple(_dumbbells(judged)),
        _curve(panel),
        tuple(rows(panel)),
        tuple(panel.best_layer(name) for name in panel.encoders),
        tuple(_layered(panel, judged)),
    )


# ---------------------------------------------------------------------------------------- the figures


def _mark(result: Result, scale: float) -> Mark:
    low, high = result.low, result.high
    return Mark(
        result.value * scale, None if low is None else low * scale, None if high is None else high * scale
    )


def _curve(panel: Panel) -> Markup | None:
    """The figures over the layers, where there are at least two."""
    scale, series = panel.reading.scale, []
    for name in panel.encoders:
        held = [(layer, panel.score(name, layer)) for layer in panel.layers if layer is not None]
        points = tuple((layer, _mark(score, scale)) for layer, score in held if score is not None)
        series.append(Series(name, points))
    if len({layer for line in series for layer, _ in line.points}) < 2:
        return None
    return layer_curve(series, title=f"{panel.title}: {panel.metric} by layer", unit=panel.reading.unit)


def _dumbbells(judged: Sequence[Verdict]) -> Iterator[Markup]:
    """One picture an encoder, all on one axis."""
    drawn = [list(_pairs(verdict)) for verdict in judged]
    marks = [mark for pairs in drawn for pair in pairs for mark in (pair.before, pair.after)]
    for verdict, pairs in zip(judged, drawn, strict=True):
        panel, names = verdict.panel, (verdict.last.before.encoder, verdict.encoder)
        yield dumbbell(
            pairs,
            names,
            title=f"{panel.title}: {names[0]} and {names[1]}",
            unit=panel.reading.unit,
            colour=panel.encoders.index(verdict.encoder),
            also=marks,
        )


def _pairs(verdict: Verdict) -> Iterator[Pair]:
    """The two layers of the verdict, then each direction at the last layer."""
    panel, base, layer = verdict.panel, verdict.last.before.encoder, verdict.last.layer
    alone = len(panel.layers) == 1
    label = "All" if layer is None else f"Layer {layer}" if alone else f"Last layer ({layer})"
    yield _pair(verdict.last, label, panel)
    if not verdict.same:
        yield _pair(verdict.best, f"Layer {verdict.best.layer}, where {base} is best", panel)
    for direction in panel.directions[1:]:
        contrast = contrasted(panel, verdict.encoder, layer, direction)
        if contrast is not None:
            label = _arrow(panel.languages, direction) + ("" if alone else ", last layer")
            yield _pair(contrast, label, panel)


def _pair(contrast: Contrast, label: str, panel: Panel) -> Pair:
    before, after = (_mark(result, panel.reading.scale) for result in (contrast.before, contrast.after))
    told = [amount(result.value, panel.reading) for result in (contrast.before, contrast.after)]
    return Pair(label, before, after, f"{told[0]} → {told[1]}")


def _arrow(languages: tuple[str, str] | None, direction: str) -> str:
    """A direction as languages.

    >>> _arrow(("en", "ru"), "backward")
    'ru → en'
    """
    if languages is None or direction not in ("forward", "backward"):
        return direction
    return " → ".join(languages if direction == "forward" else languages[::-1])


def _layered(panel: Panel, judged: Sequence[Verdict]) -> Iterator[Layered]:
    """Breakdowns at the last layer, and where the baseline is best."""
    asked = [layer for verdict in judged for layer in (verdict.last.layer, verdict.best.layer)]
    for layer in dict.fromkeys(asked or panel.layers[-1:]):
        found = tuple(_breakdowns(panel, layer))
        if found:
            yield Layered(layer, found)


def _breakdowns(panel: Panel, layer: int | None) -> Iterator[Breakdown]:
    """One picture a breakdown, all on one axis."""
    drawn = {
        name: [bars for bin in panel.groups[name] if (bars := _bars(panel, layer, (name, bin)))]
        for name in sorted(panel.groups, key=lambda name: place_of(name, list(_BREAKDOWNS)))
    }
    marks = [mark for groups in drawn.values() for bars in groups for mark in bars.marks if mark]
    where = "" if layer is None else f", layer {layer}"
    for name, groups in drawn.items():
        if groups:
            title, about = _BREAKDOWNS.get(name, (name, ""))
            told = f"{panel.title}: {panel.metric} by {title.lower()}{where}"
            figure = breakdown_bars(groups, panel.encoders, title=told, unit=panel.reading.unit, also=marks)
            yield Breakdown(title, about, figure)


def _bars(panel: Panel, layer: int | None, group: tuple[str, str]) -> Bars | None:
    found = [panel.score(name, layer, group=group) for name in panel.encoders]
    if not any(found):
        return None
    marks = tuple(None if r is None else _mark(r, panel.reading.scale) for r in found)
    return Bars(group[1], max(r.count for r in found if r is not None), marks)


def _grids(run: Run) -> Iterator[Markup]:
    for place, grid in enumerate(spread(run.grids, MOST_GRIDS), 1):
        title = f"Links of sentence pair {place}"
        yield links_grid(
            grid.source, grid.target, grid.links, title=title, languages=run.languages or ("", "")
        )


# -------------------------------------------------------------------------------------------- words


@dataclass(frozen=True)
class Spoken:
    """A sentence cut around one word, for the page."""

    before: str
    word: str
    after: str
    language: str


def sentence(place: Place, language: str) -> Spoken:
    """The words around one, joined as its language joins them; far ones give way to an ellipsis.

    >>> sentence(Place("cat", ("the", "cat", "sat"), 1), "en")
    Spoken(before='the ', word='cat', after=' sat', language='en')
    """
    if place.index is None:
        return Spoken("", place.word, "", language)
    space = "" if language.split("-")[0].lower() in _UNSPACED else " "
    start, end = max(place.index - CONTEXT, 0), place.index + 1 + CONTEXT
    before = [*(["…"] if start else []), *place.sentence[start : place.index]]
    after = [*place.sentence[place.index + 1 : end], *(["…"] if end < len(place.sentence) else [])]
    return Spoken(
        space.join(before) + (space if before else ""),
        place.word,
        (space if after else "") + space.join(after),
        language,
    )


# -------------------------------------------------------------------------------------- how it was made


def _flat(held: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values, those inside others with both names."""
    for name, value in held.items():
        label = f"{above}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{label}, ")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for one in value:
                yield from _flat({k: v for k, v in one.items() if k != "name"}, f"{one.get('name', label)}, ")
        elif value is not None:
            yield label, ", ".join(map(str, value)) if isinstance(value, list) else value


def _counts(counts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What there was, what was scored, then what was left out, the most first."""
    whole = [(name, value) for name, value in _flat(counts) if isinstance(value, int)]
    for name, value in sorted(whole, key=lambda held: (place_of(held[0], _WHOLE)[0], -held[1], held[0])):
        yield name, f"{value:,}"


def _cost(cost: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in _flat(cost):
        if not isinstance(value, int | float):
            yield name, str(value)
        elif name.startswith("seconds"):
            yield name.removeprefix("seconds").removeprefix(", ") or "time", _duration(value)
        elif name.endswith(" mb"):
            yield name.removesuffix(" mb"), f"{value / 1024:.1f} GB" if value >= 1024 else f"{value:.0f} MB"
        else:
            yield name, f"{value:,.6g}"


def _duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> _duration(7.25), _duration(192), _duration(7380)
    ('7.2 s', '3 min 12 s', '2 h 3 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min {seconds % 60:.0f} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _command(run: Run) -> str:
    """The command line that makes this run again, one option a line."""
    if not run.verb:
        return ""
    named = {name: _OPTIONS.get(name, "--" + name.replace("_", "-")) for name in run.recipe}
    parts = [f"calque {run.verb}"]
    for name in sorted(named, key=lambda name: named[name] != ""):
        if name not in ("verb", "inputs"):
            parts += _option(named[name], run.recipe[name], name)
    return " \\\n  ".join([*parts, f"--out {shlex.quote(run.name)}"])


def _option(option: str, value: Any, name: str) -> list[str]:
    """An option as it is typed: a list again and again, but two languages at once; a switch by itself.

    >>> _option("--by", ["pos", "seen"], "breakdowns"), _option("--languages", ["en", "de"], "languages")
    (['--by pos', '--by seen'], ['--languages en de'])
    """
    if isinstance(value, bool) or value == "":
        return [option] if value else []
    values = value if isinstance(value, list) else [value]
    if name == "languages":
        return [f"{option} {shlex.join(map(str, values))}"]
    return [f"{option} {shlex.quote(str(one))}".strip() for one in values]
