"""What the page shows of a measure: verdict, figures by layer and language, breakdowns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup

from calque.report.collect import Panel, pair_name, place_of, way_name
from calque.report.figures import After, Bars, Pair, Series, breakdown_bars, dumbbells, layer_curve
from calque.report.svg import Mark
from calque.report.tables import Cell, LanguageRow, Row, language_rows, rows
from calque.report.tasks import VARIANTS, Metric
from calque.report.verdict import (
    SIGNS,
    Compared,
    Contrast,
    Measured,
    certainty,
    compared_lines,
    contrasted,
)
from calque.report.words import amount, capital, listed, name_of, p_value, points
from calque.types import Result

#: What is said where there is an interval and no test.
BY_INTERVAL = "no test, so the interval decides"

_BREAKDOWNS = {
    "pos": ("Part of speech", "Universal part of speech of the word that searches."),
    "pos-group": ("Groups of parts of speech", "Each group is the plain mean of its parts of speech."),
    "rank-gap": (
        "Gap between frequency ranks",
        "How far apart the two words stand in their frequency lists.",
    ),
    "rank": ("Frequency", "Place of the searching word in the frequency list of its language."),
    "script": ("Script", "Writing system of the word in the target language."),
    "pieces": ("Pieces", "How many pieces the encoder cuts the searching word into."),
    "length": ("Length", "Words of the sentence that searches."),
    "sense": ("Sense", "What the word means, as the invented languages of calque’s world tell it."),
    "sense-group": ("Ambiguous or not", "Ambiguous is the plain mean of all senses of such words."),
    "seen": (
        "Seen in training",
        "Whether the two words were linked in the text that an encoder was aligned on.",
    ),
}


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


@dataclass(frozen=True)
class Beside:
    """A figure beside the one that decides, at the layer of the verdict: a cell an encoder."""

    panel: Panel
    name: str
    about: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Curves:
    """Figures over the layers of one language pair or of the mean, and what is gained over the baseline."""

    name: str
    figure: Markup
    gain: Markup | None


@dataclass(frozen=True)
class SetView:
    """What the page shows of one figure, in one language pair or in several."""

    held: Compared
    name: str
    judged: tuple[Judged, ...]
    lines: tuple[str, ...]
    dumbbells: Markup | None
    rows: tuple[LanguageRow, ...]
    curves: tuple[Curves, ...]
    languages: tuple[LanguageView, ...]


@dataclass(frozen=True)
class MeasureView:
    """What the page shows of one measure: the figure that decides, and those beside it."""

    title: str
    asked: str
    leading: SetView
    beside: tuple[Beside, ...]
    others: tuple[SetView, ...]

    @property
    def sets(self) -> tuple[SetView, ...]:
        return (self.leading, *self.others)


def measure_view(one: Measured, *, lean: bool = False) -> MeasureView:
    """All that the page shows of a measure; where it is to be lean, single languages' layers are left out."""
    leading, drawn = _set_view(one.leading, lean), one.leading.whole.about.drawn
    others = tuple(_other_view(held, one.leading, lean) for held in one.beside)
    beside = () if drawn else tuple(_beside(one))
    return MeasureView(measure_title(one.leading), one.leading.whole.about.asked, leading, beside, others)


def measure_title(held: Compared) -> str:
    """What was done, in which languages."""
    task, languages = held.panels[0].about, [panel.languages for panel in held.panels]
    done = capital(task.title or task.name)
    if task.mutual or len({source for source, _ in languages}) > 1:
        return f"{done}: {pairs_name(languages)}"
    others = listed([name_of(target) for _, target in languages])
    named = f"{done} from {name_of(languages[0][0])} to {others}"
    return named if all(panel.directions == ("forward",) for panel in held.panels) else f"{named}, and back"


def pairs_name(languages: Sequence[tuple[str, str]]) -> str:
    """Pairs of languages: one with others where they share it, alone where it is compared with itself."""
    pairs = list(dict.fromkeys(languages))
    if all(source == target for source, target in pairs):
        return listed([name_of(source) for source, _ in pairs])
    if len({source for source, _ in pairs}) > 1:
        return listed(list(map(pair_name, pairs)))
    return f"{name_of(pairs[0][0])} with {listed([name_of(target) for _, target in pairs])}"


def _set_view(held: Compared, lean: bool) -> SetView:
    curves = _curves(held, small=held.many, layer=held.layer)
    return SetView(
        held,
        figure_name(held.whole),
        tuple(cards(held)),
        () if held.verdicts or held.many or held.whole.about.drawn else tuple(compared_lines(held)),
        _dumbbells(held),
        tuple(language_rows(held)) if held.many and held.whole.encoders else (),
        tuple(islice(curves, 1 if lean else None)),
        () if lean else tuple(_language_view(held, place) for place in range(len(held.panels))),
    )


def _other_view(held: Compared, leading: Compared, lean: bool) -> SetView:
    """A figure that stands beside another: its curve and its tables, no verdict."""
    places = () if lean else range(len(held.panels))
    languages = tuple(_language_view(held, place, whole=False) for place in places)
    curves = tuple(islice(_curves(held, small=True, layer=leading.layer), 1))
    return SetView(held, figure_name(held.whole, leading.whole), (), (), None, (), curves, languages)


def coloured(change: Result, reading: Metric, sure: bool) -> str:
    """The class of a difference: better, worse, or neither."""
    if not sure or reading.neutral:
        return "flat"
    return "up" if (change.value > 0) != reading.lower else "down"


def figure_name(panel: Panel, leading: Panel | None = None) -> str:
    """A figure, and its variant where that is neither the usual one nor that of the leading figure."""
    variant = VARIANTS.get(panel.variant, panel.variant)
    same = leading is not None and leading.variant == panel.variant
    return f"{panel.figure} ({variant})" if variant and not same else panel.figure


def _beside(one: Measured) -> Iterator[Beside]:
    """The other figures at the layer of the verdict; what each is, where it comes first."""
    layer, told = one.leading.layer, {one.leading.whole.metric}
    for held in one.beside:
        panel, names = held.whole, one.leading.whole.encoders
        scores = [panel.score(name, layer) for name in names]
        changes = [panel.change(name, layer) for name in names]
        cells = tuple(None if s is None else Cell(s, c) for s, c in zip(scores, changes, strict=True))
        if any(cells):
            about = "" if panel.metric in told else panel.reading.about
            told.add(panel.metric)
            yield Beside(panel, figure_name(panel, one.leading.whole), about, cells)


def _language_view(held: Compared, place: int, *, whole: bool = True) -> LanguageView:
    panel = held.panels[place]
    return LanguageView(
        held.names[place],
        panel,
        tuple(rows(panel)),
        tuple(panel.best_layer(name) for name in panel.encoders),
        tuple(_breakdowns(panel, held.layer)) if whole else (),
    )


def cards(held: Compared) -> Iterator[Judged]:
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
            "; ".join(certainty(contrast, reading, verdict.tests, untested=BY_INTERVAL)) or "untested",
            (_where(held, contrast) + ".", *more) if contrast.layer is not None else tuple(more),
        )


def _where(held: Compared, contrast: Contrast) -> str:
    """A layer and why it is looked at."""
    layers = held.whole.layers
    base = contrast.before.encoder
    if len(layers) == 1:
        return f"At layer {contrast.layer}"
    last, best = contrast.layer == layers[-1], contrast.layer == held.layer
    peak = held.whole.reading.peak
    if last and best:
        return f"At the last layer ({contrast.layer}), where {base} is {peak}"
    if last:
        return f"At the last layer ({contrast.layer})"
    on_average = " on average" if held.many else ""
    return f"At layer {contrast.layer}, where {base} is {peak}{on_average}"


def _short(contrast: Contrast, held: Compared) -> str:
    reading = held.whole.reading
    told = f"{contrast.word}, {points(contrast.change.value, reading)}"
    return told + (f" ({p_value(contrast.p)})" if contrast.p is not None else "")


# ---------------------------------------------------------------------------------------- the figures


def _mark(result: Result, scale: float) -> Mark:
    low, high = result.low, result.high
    return Mark(
        result.value * scale, None if low is None else low * scale, None if high is None else high * scale
    )


def _curves(held: Compared, *, small: bool, layer: int | None) -> Iterator[Curves]:
    """The figures over the layers, a picture a language on one axis, the mean of several first."""
    drawn = list(zip(held.names, held.panels, strict=True))
    if held.many:
        drawn.insert(0, (f"Mean of {len(held.panels)} languages", held.whole))
    scores, gains = [_series(panel) for _, panel in drawn], [_gains(panel) for _, panel in drawn]
    for (name, panel), own, gain in zip(drawn, scores, gains, strict=True):
        if len({layer for line in own for layer, _ in line.points}) > 1:
            title = f"{panel.title}: {panel.figure} by layer"
            marked = layer if panel.baseline else None
            figure = layer_curve(
                own,
                title=title,
                unit=panel.reading.unit,
                small=small,
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
    title = f"{panel.title}: {panel.figure} before and after"
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
        label = way_name(held.whole.languages, direction) + where
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
    change = points(contrast.change.value, reading).removesuffix(" points")
    told = f"{amount(contrast.before.value, reading)} → {amount(contrast.after.value, reading)}"
    word = f"{change} {SIGNS[contrast.word]} {contrast.word}" if judged else change
    return After(_mark(contrast.after, reading.scale), told, word)


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
            told = f"{panel.title}: {panel.figure} by {title.lower()}{where}"
            figure = breakdown_bars(groups, panel.encoders, title=told, unit=panel.reading.unit, also=marks)
            yield Breakdown(title, about, figure)


def _bars(panel: Panel, layer: int | None, group: tuple[str, str]) -> Bars | None:
    found = [panel.score(name, layer, group=group) for name in panel.encoders]
    if not any(found):
        return None
    marks = tuple(None if r is None else _mark(r, panel.reading.scale) for r in found)
    return Bars(group[1], max(r.count for r in found if r is not None), marks)
