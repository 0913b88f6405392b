"""One self-contained HTML page about a run: the verdict first, then everything that supports it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from calque import __version__
from calque.files import write_text
from calque.report.ambiguous import Word, words
from calque.report.collect import Panel, Run, collect, name_of, pair_name, place_of, spread
from calque.report.figures import (
    After,
    Bars,
    Pair,
    Series,
    breakdown_bars,
    dumbbells,
    layer_curve,
    links_grid,
)
from calque.report.parts import Advice, Example
from calque.report.sentences import sentence
from calque.report.svg import Mark, colour
from calque.report.tables import LanguageRow, Row, language_rows, link_rows, markdown, rows
from calque.report.verdict import (
    ALPHA,
    SIGNS,
    Compared,
    Contrast,
    amount,
    capital,
    compared,
    compared_lines,
    contrasted,
    links_sentence,
    listed,
    p_value,
    points,
    signed,
)
from calque.types import Result

MOST_EXAMPLES, MOST_GRIDS, MOST_WORDS = 24, 8, 8
_WHOLE = ("sentences", "kept", "links", "scored")
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
    made.globals["most_words"] = MOST_WORDS
    made.filters["sentence"] = sentence
    made.filters["language"] = name_of
    made.filters["opening"] = opening
    made.filters["colour"] = colour
    made.filters["p"] = lambda p: "" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"
    return made


def opening(text: str) -> str:
    """A headline with a large first letter, unless it starts with what looks like a file or model name.

    >>> opening("centring helped"), opening("e5-small-q4 hurt")
    ('Centring helped', 'e5-small-q4 hurt')
    """
    return capital(text) if text.split(" ")[0].isalpha() else text


# ------------------------------------------------------------------------------------------ the views


@dataclass(frozen=True)
class Breakdown:
    """One breakdown as a picture, with what it is."""

    title: str
    about: str
    figure: Markup


@dataclass(frozen=True)
class Judged:
    """One encoder against the baseline: a word, how much, how sure, and the rest in sentences."""

    encoder: str
    word: str
    colour: int
    size: str
    figures: str
    sure: str
    more: tuple[str, ...]


@dataclass(frozen=True)
class LanguageView:
    """What the page shows of one language pair."""

    name: str
    panel: Panel
    rows: tuple[Row, ...]
    best: tuple[int | None, ...]
    breakdowns: tuple[Breakdown, ...]

    def shown(self, value: float | None) -> str:
        return "" if value is None else amount(value, self.panel.reading).removesuffix("%")

    def signed(self, value: float | None) -> str:
        return "" if value is None else signed(value, self.panel.reading)

    def better(self, change: Result) -> bool:
        return (change.value > 0) != self.panel.reading.lower


@dataclass(frozen=True)
class Curves:
    """Figures over the layers of one language pair or of the mean, and what is gained over the baseline."""

    name: str
    figure: Markup
    gain: Markup | None


@dataclass(frozen=True)
class SetView:
    """What the page shows of one measure, in one language pair or in several."""

    held: Compared
    judged: tuple[Judged, ...]
    lines: tuple[str, ...]
    dumbbells: Markup | None
    rows: tuple[LanguageRow, ...]
    curves: tuple[Curves, ...]
    languages: tuple[LanguageView, ...]


@dataclass(frozen=True)
class RunView:
    """What the page shows of one run."""

    run: Run
    anchor: str
    title: str
    summary: str
    sets: tuple[SetView, ...]
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

    @property
    def headlines(self) -> str:
        """The run in a few words."""
        return "; ".join(view.held.headline for view in self.sets) or self.title


def _run_view(run: Run, anchor: str) -> RunView:
    sets = tuple(map(_set_view, compared(run)))
    metrics, linkers = link_rows(run)
    return RunView(
        run,
        anchor,
        run.about.title if run.about else _title(run),
        run.about.summary if run.about else _summary(run, sets),
        sets,
        words(run.senses),
        links_sentence(run),
        metrics,
        linkers,
        tuple(_grids(run)),
        tuple(spread(run.examples, MOST_EXAMPLES)),
        _encoders(run),
        tuple(_counts(run.counts)),
        tuple(_cost(run.cost)),
        tuple((name, str(value)) for name, value in _flat(run.environment)),
        next((r.signature for r in _headline_first(run) if r.signature), ""),
        _command(run),
        markdown(run) if run.panels or run.link_scores else "",
        run.about.next if run.about else _advice(run),
    )


def _encoders(run: Run) -> tuple[str, ...]:
    """Encoders of the figures in their order, then any that only examples name."""
    figures = [name for panel in run.panels for name in panel.encoders]
    shown = [*run.examples, *(one for sense in run.senses for one in sense.occurrences)]
    examples = sorted({name for example in shown for name in example.retrieved})
    return tuple(dict.fromkeys([*figures, *examples]))


def _title(run: Run) -> str:
    """What was done, in which languages."""
    done = capital(listed(list(dict.fromkeys(panel.activity for panel in run.panels))))
    pairs = list(dict.fromkeys(panel.languages for panel in run.panels))
    if done and len({source for source, _ in pairs}) == 1:
        others = listed([name_of(target) for _, target in pairs])
        return f"{done} from {name_of(pairs[0][0])} to {others}, and back"
    if done:
        return f"{done}: {listed(list(map(pair_name, pairs)))}"
    return f"Links of {pair_name(run.languages)}" if run.grids and run.languages else run.name


def _summary(run: Run, sets: Sequence[SetView]) -> str:
    """What was asked, and who was compared with whom."""
    if len(sets) != 1:
        return ""
    panel, told = sets[0].held.whole, []
    scored = run.counts.get("scored")
    if panel.task == "word-retrieval" and isinstance(scored, int):
        told.append(
            f"{scored:,} linked words, and their translations, each search all words of the other language "
            "for the one they are linked to."
        )
    if panel.baseline:
        others = [name for name in panel.encoders if name != panel.baseline]
        told.append(f"The baseline is {panel.baseline}; compared with it {_be(others)} {listed(others)}.")
    return " ".join(told)


def _be(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _headline_first(run: Run) -> Iterator[Result]:
    """Results in the order in which a signature should be taken from them."""
    for panel in run.panels:
        found = (panel.score(name, panel.layers[-1]) for name in panel.encoders)
        yield from (r for r in found if r is not None)
    yield from run.results


def _set_view(held: Compared) -> SetView:
    return SetView(
        held,
        tuple(_judged(held)),
        () if held.verdicts else tuple(compared_lines(held)),
        _dumbbells(held),
        tuple(language_rows(held)) if held.many else (),
        tuple(_curves(held)),
        tuple(_language_view(held, place) for place in range(len(held.panels))),
    )


def _language_view(held: Compared, place: int) -> LanguageView:
    panel = held.panels[place]
    return LanguageView(
        held.names[place],
        panel,
        tuple(rows(panel)),
        tuple(panel.best_layer(name) for name in panel.encoders),
        tuple(_breakdowns(panel, held.layer)),
    )


def _judged(held: Compared) -> Iterator[Judged]:
    """A card an encoder: the contrast that decides, then the other layer, then the languages."""
    for verdict in held.verdicts:
        contrast, reading = verdict.telling, verdict.panel.reading
        other = verdict.last if contrast is verdict.best else verdict.best
        more = [] if verdict.same else [f"{_where(held, other)} {_short(other, held)}."]
        if held.many:
            more.append(capital(held.tally(verdict.encoder)) + ".")
        yield Judged(
            verdict.encoder,
            verdict.word,
            verdict.panel.encoders.index(verdict.encoder),
            points(contrast.change.value, reading),
            f"{amount(contrast.before.value, reading)} → {amount(contrast.after.value, reading)}",
            _sure(contrast, verdict.tests, held),
            (_where(held, contrast) + ".", *more) if contrast.layer is not None else tuple(more),
        )


def _where(held: Compared, contrast: Contrast) -> str:
    """A layer and why it is looked at."""
    layers = held.whole.layers
    base = contrast.before.encoder
    if len(layers) == 1:
        return f"At layer {contrast.layer}"
    last, best = contrast.layer == layers[-1], contrast.layer == held.layer
    if last and best:
        return f"At the last layer ({contrast.layer}), where {base} is best"
    if last:
        return f"At the last layer ({contrast.layer})"
    on_average = " on average" if held.many else ""
    return f"At layer {contrast.layer}, where {base} is best{on_average}"


def _short(contrast: Contrast, held: Compared) -> str:
    reading = held.whole.reading
    told = f"{contrast.word}, {points(contrast.change.value, reading)}"
    return told + (f" ({p_value(contrast.p)})" if contrast.p is not None else "")


def _sure(contrast: Contrast, tests: int, held: Compared) -> str:
    """Interval and test of a difference."""
    change, reading, told = contrast.change, held.whole.reading, []
    if change.low is not None and change.high is not None:
        told.append(f"95% interval {signed(change.low, reading)} to {signed(change.high, reading)}")
    if contrast.p is not None:
        corrected = f", Holm-corrected over {tests} tests" if tests > 1 else ""
        told.append(f"paired {change.note} test {p_value(contrast.p)}{corrected}".replace("  ", " "))
    return "; ".join(told) or "untested"


# ---------------------------------------------------------------------------------------- the figures


def _mark(result: Result, scale: float) -> Mark:
    low, high = result.low, result.high
    return Mark(
        result.value * scale, None if low is None else low * scale, None if high is None else high * scale
    )


def _curves(held: Compared) -> Iterator[Curves]:
    """The figures over the layers, a picture a language on one axis, the mean of several first."""
    drawn = list(zip(held.names, held.panels, strict=True))
    if held.many:
        drawn.insert(0, (f"Mean of {len(held.panels)} languages", held.whole))
    scores, gains = [_series(panel) for _, panel in drawn], [_gains(panel) for _, panel in drawn]
    for (name, panel), own, gain in zip(drawn, scores, gains, strict=True):
        if len({layer for line in own for layer, _ in line.points}) > 1:
            title = f"{panel.title}: {panel.metric} by layer"
            marked = held.layer if panel.baseline else None
            figure = layer_curve(
                own,
                title=title,
                unit=panel.reading.unit,
                small=held.many,
                marked=marked,
                also=_every(scores),
            )
            yield Curves(name, figure, _gain_curve(panel, gain, _every(gains), marked))


def _gain_curve(
    panel: Panel, gains: Sequence[Series], also: Sequence[Mark], marked: int | None
) -> Markup | None:
    """Differences over the layers, with the baseline as the line at zero."""
    if panel.baseline is None or not any(len(line.points) > 1 for line in gains):
        return None
    zero = Series(panel.baseline, tuple((layer, Mark(0.0)) for layer in panel.layers if layer is not None))
    title = f"{panel.title}: difference to {panel.baseline} by layer"
    return layer_curve([zero, *gains], title=title, unit="", small=True, marked=marked, also=also)


def _series(panel: Panel) -> list[Series]:
    return [_line(name, panel, [panel.score(name, at) for at in panel.layers]) for name in panel.encoders]


def _gains(panel: Panel) -> list[Series]:
    others = [name for name in panel.encoders if name != panel.baseline]
    return [_line(name, panel, [panel.change(name, at) for at in panel.layers]) for name in others]


def _line(name: str, panel: Panel, held: Sequence[Result | None]) -> Series:
    found = [result for result in held if result is not None]
    scale = panel.reading.scale
    return Series(name, tuple((r.layer, _mark(r, scale)) for r in found if r.layer is not None))


def _every(drawn: Sequence[Sequence[Series]]) -> list[Mark]:
    return [mark for lines in drawn for line in lines for _, mark in line.points]


def _dumbbells(held: Compared) -> Markup | None:
    """One picture for all encoders: a row a language, or, of one language, a row a layer and direction."""
    panel, drawn = held.whole, list(_pairs(held) if held.many else _pairs_of_one(held))
    if not drawn:
        return None
    title = f"{panel.title}: {panel.metric} before and after"
    return dumbbells(drawn, panel.encoders, title=title, unit=panel.reading.unit)


def _pairs(held: Compared) -> Iterator[Pair]:
    """The mean, then every language, all at the verdict's layer."""
    listed_rows = language_rows(held)
    for row in [*listed_rows[-1:], *listed_rows[:-1]]:
        label = f"Mean of {len(held.panels)} languages" if row.mean else row.label
        yield from _pair(row.contrasts, label, held)


def _pairs_of_one(held: Compared) -> Iterator[Pair]:
    """The verdict's layer, the last one, then each direction at the verdict's layer."""
    judged = {verdict.encoder: verdict for verdict in held.verdicts}
    found = [judged.get(name) for name in held.whole.encoders]
    yield from _layer_pair([verdict.best if verdict else None for verdict in found], held)
    if any(verdict and not verdict.same for verdict in found):
        yield from _layer_pair([verdict.last if verdict else None for verdict in found], held)
    for direction in held.whole.directions[1:]:
        ways = [contrasted(held.whole, name, held.layer, direction) for name in held.whole.encoders]
        where = "" if len(held.whole.layers) == 1 else f", layer {held.layer}"
        label = _arrow(held.whole.languages, direction) + where
        yield from _pair(ways, label, held, judged=False)


def _layer_pair(contrasts: Sequence[Contrast | None], held: Compared) -> Iterator[Pair]:
    found = next((contrast for contrast in contrasts if contrast is not None), None)
    if found is not None:
        label = "All" if found.layer is None else capital(_where(held, found).removeprefix("At "))
        yield from _pair(contrasts, label, held)


def _pair(
    contrasts: Sequence[Contrast | None], label: str, held: Compared, judged: bool = True
) -> Iterator[Pair]:
    """A row of the picture, where anything was compared."""
    found = [contrast for contrast in contrasts if contrast is not None]
    if found:
        after = tuple(None if c is None else _after(c, held, judged) for c in contrasts[1:])
        yield Pair(label, _mark(found[0].before, held.whole.reading.scale), after)


def _after(contrast: Contrast, held: Compared, judged: bool) -> After:
    reading = held.whole.reading
    change = signed(contrast.change.value, reading)
    told = f"{amount(contrast.before.value, reading)} → {amount(contrast.after.value, reading)}"
    word = f"{change} {SIGNS[contrast.word]} {contrast.word}" if judged else change
    return After(_mark(contrast.after, reading.scale), told, word)


def _arrow(languages: tuple[str, str], direction: str) -> str:
    """A direction as languages.

    >>> _arrow(("en", "ru"), "backward")
    'Russian → English'
    """
    if direction not in ("forward", "backward"):
        return direction
    return " → ".join(map(name_of, languages if direction == "forward" else languages[::-1]))


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


def _grids(run: Run) -> Iterator[tuple[str, Markup]]:
    for place, grid in enumerate(spread(run.grids, MOST_GRIDS), 1):
        languages = grid.languages or run.languages
        title = f"Links of sentence pair {place}" + (f", {pair_name(languages)}" if languages else "")
        figure = links_grid(
            grid.source, grid.target, grid.links, title=title, languages=languages or ("", "")
        )
        yield title, figure


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


def _advice(run: Run) -> tuple[Advice, ...]:
    """How to do the same with a bitext of one's own: link, align, measure, look."""
    encoder = shlex.quote(str(next(iter(run.recipe.get("encoders", ())), "e5-small-q4")))
    source, target = (run.panels[0].languages if run.panels else run.languages) or ("en", "de")
    pair = shlex.join((source, target))
    return (
        Advice(
            "Link the words of your bitext: one sentence pair a line, separated by a tab.",
            f"calque link my.tsv --languages {pair} --test 500 --out runs/links",
        ),
        Advice(
            "Align the encoder on most of it.",
            f"calque align --encoder {encoder} --pairs runs/links/train --out runs/aligned",
        ),
        Advice(
            "Measure on the rest, before and after.",
            f"calque measure words --encoder {encoder} --encoder runs/aligned --pairs runs/links/test"
            " --out runs/words",
        ),
        Advice("Look at what came out.", "calque report runs/words"),
    )
