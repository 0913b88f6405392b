"""Pictures as inline SVG, without a library.

Positions across are percentages, so that a picture is as wide as its place while its letters keep their
size; only curves are drawn inside a stretched box. Colours are the classes `s0`, `s1`, … of the page's style.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from calque.report import svg
from calque.report.svg import Axis, Mark


@dataclass(frozen=True)
class Series:
    """One encoder over the layers. `points` are layer and mark, in order."""

    label: str
    points: tuple[tuple[int, Mark], ...]


@dataclass(frozen=True)
class Bars:
    """One bin of a breakdown: a bar an encoder, None where it has none."""

    label: str
    count: int
    marks: tuple[Mark | None, ...]


@dataclass(frozen=True)
class After:
    """What one encoder makes of a thing, and how that is to be read in a few words."""

    mark: Mark
    figures: str = ""
    word: str = ""


@dataclass(frozen=True)
class Pair:
    """Before and after of one thing: after each encoder, None where there is nothing."""

    label: str
    before: Mark
    after: tuple[After | None, ...]


# --------------------------------------------------------------------------------------- layer curve

_RIGHT = 98.0
_TOP, _FOOT = 12.0, 44.0


@dataclass(frozen=True)
class _Field:
    """Where a curve is drawn: layers along, figures up, `left` a percentage and `bottom` in pixels."""

    along: Axis
    up: Axis
    left: float
    bottom: float

    def x(self, layer: float) -> float:
        return self.along.at(layer, self.left, _RIGHT)

    def y(self, value: float) -> float:
        return self.up.at(value, self.bottom, _TOP)


def layer_curve(
    series: Sequence[Series],
    *,
    title: str,
    unit: str = "%",
    small: bool = False,
    marked: int | None = None,
    also: Sequence[Mark] = (),
) -> Markup:
    """A curve an encoder over the layers, with its interval as a band; a line at the `marked` layer.

    The axis also holds the marks of `also`, so that pictures side by side share it.
    """
    height = 230.0 if small else 320.0
    layers = sorted({layer for line in series for layer, _ in line.points})
    field = _Field(
        Axis(layers[0] - 0.5, layers[-1] + 0.5, tuple(layers)),
        svg.shared_axis([*also, *(mark for line in series for _, mark in line.points)], unit),
        13.0 if small else 9.0,
        height - _FOOT,
    )
    body = [*_levels(field, unit), *_steps(field, small)]
    if marked is not None:
        x = svg.across(field.x(marked))
        body.append(svg.line(x, _TOP, x, field.bottom, "marked"))
    shapes = [
        shape
        for place, line in enumerate(series)
        for shape in (_band(line, field, place), _curve(line, field, place))
    ]
    body.append(svg.stretched(shapes, height))
    size = 2.25 if small else 3.5
    body += [dot for place, line in enumerate(series) for dot in _dots(line, field, place, unit, size)]
    return svg.picture(body, title, _curve_words(series, unit), height)


def _levels(field: _Field, unit: str) -> list[Markup]:
    left, right = svg.across(field.left), svg.across(_RIGHT)
    lines = [svg.line(left, field.y(t), right, field.y(t), "grid") for t in field.up.ticks]
    return lines + [
        svg.text(svg.across(field.left - 1), field.y(t) + 4, f"{svg.tick(t)}{unit}", "tick", "end")
        for t in field.up.ticks
    ]


def _steps(field: _Field, small: bool) -> list[Markup]:
    """Layer numbers; where there are many, every other one is left to wide screens, or to none."""
    ticks, every = field.along.ticks, 1
    if small:
        every = -(-len(ticks) // 7)
    shown = [tick for place, tick in enumerate(ticks) if (len(ticks) - 1 - place) % every == 0]
    crowded = len(shown) > 10
    marks = [
        svg.text(
            svg.across(field.x(layer)),
            field.bottom + 18,
            f"{layer:g}",
            "tick odd" if crowded and (len(shown) - 1 - place) % 2 else "tick",
            "middle",
        )
        for place, layer in enumerate(shown)
    ]
    middle = svg.across((field.left + _RIGHT) / 2)
    return [*marks, svg.text(middle, field.bottom + 37, "layer", "name", "middle")]


def _band(line: Series, field: _Field, place: int) -> Markup:
    """The interval as one closed shape; nothing where no point has one."""
    held = [(layer, *mark.reach) for layer, mark in line.points]
    if all(low == high for _, low, high in held) or len(held) < 2:
        return Markup("")
    corners = [(layer, high) for layer, _, high in held] + [(layer, low) for layer, low, _ in reversed(held)]
    points = " ".join(f"{svg.n(field.x(layer))},{svg.n(field.y(value))}" for layer, value in corners)
    return Markup('<polygon points="{}" class="band {}"/>').format(points, svg.colour(place))


def _curve(line: Series, field: _Field, place: int) -> Markup:
    points = " ".join(f"{svg.n(field.x(layer))},{svg.n(field.y(mark.value))}" for layer, mark in line.points)
    return Markup('<polyline points="{}" class="curve {}" vector-effect="non-scaling-stroke"/>').format(
        points, svg.colour(place)
    )


def _dots(line: Series, field: _Field, place: int, unit: str, size: float) -> list[Markup]:
    kind = f'r="{svg.n(size)}" class="dot {svg.colour(place)}"'
    return [
        svg.titled(
            "circle",
            f'cx="{svg.across(field.x(layer))}" cy="{svg.n(field.y(mark.value))}" {kind}',
            f"{line.label}, layer {layer}: {mark.told(unit)}",
        )
        for layer, mark in line.points
    ]


def _curve_words(series: Sequence[Series], unit: str) -> str:
    told = []
    for line in (line for line in series if line.points):
        (first, start), (last, end) = line.points[0], line.points[-1]
        told.append(f"{line.label}: {start.told(unit)} at layer {first}, {end.told(unit)} at layer {last}.")
    return " ".join(told)


# ------------------------------------------------------------------------------------ breakdown bars

_BAR, _BETWEEN = 13.0, 14.0
_BARS_FROM, _BARS_TO = 27.0, 86.0


def breakdown_bars(
    groups: Sequence[Bars], labels: Sequence[str], *, title: str, unit: str = "%", also: Sequence[Mark] = ()
) -> Markup:
    """A group of bars a bin, a bar an encoder, with counts, intervals and figures.

    The axis also holds the marks of `also`, so that pictures side by side share it.
    """
    marks = [*also, *(mark for group in groups for mark in group.marks if mark)]
    axis = svg.shared_axis(marks, unit, zero=True)
    tall = max(len(labels) * _BAR, 30.0) + _BETWEEN
    height = len(groups) * tall + 24
    body = []
    for tick in axis.ticks:
        x = svg.across(axis.at(tick, _BARS_FROM, _BARS_TO))
        body += [svg.line(x, 0, x, height - 22, "grid")]
        body += [svg.text(x, height - 6, f"{svg.tick(tick)}{unit}", "tick", "middle")]
    for row, group in enumerate(groups):
        body += _bar_group(group, labels, axis, row * tall + _BETWEEN / 2, unit)
    return svg.picture(body, title, _bar_words(groups, labels, unit), height)


def _bar_group(group: Bars, labels: Sequence[str], axis: Axis, top: float, unit: str) -> list[Markup]:
    body = [
        Markup("<g><title>{}</title>{}{}</g>").format(
            group.label,
            svg.text("0", top + 12, svg.clipped(group.label, 13), "label"),
            svg.text("0", top + 27, f"n = {group.count:,}", "tick"),
        )
    ]
    for place, (name, mark) in enumerate(zip(labels, group.marks, strict=True)):
        if mark is not None:
            body += _bar(mark, axis, top + place * _BAR, place, f"{group.label}, {name}: {mark.told(unit)}")
    return body


def _bar(mark: Mark, axis: Axis, top: float, place: int, told: str) -> list[Markup]:
    start, end = (axis.at(value, _BARS_FROM, _BARS_TO) for value in (min(mark.value, 0), max(mark.value, 0)))
    middle = top + (_BAR - 2) / 2
    low, high = (axis.at(value, _BARS_FROM, _BARS_TO) for value in mark.reach)
    bar = Markup(
        '<rect x="{}%" y="{}" width="{}%" height="{}" rx="1.5" class="bar {}"><title>{}</title></rect>'
    ).format(svg.n(start), svg.n(top), svg.n(end - start), svg.n(_BAR - 2), svg.colour(place), told)
    whisker = [svg.line(svg.across(low), middle, svg.across(high), middle, "whisker")] if high > low else []
    return [bar, *whisker, svg.text("100%", middle + 4, svg.rounded(mark.value), "figure-value", "end")]


def _bar_words(groups: Sequence[Bars], labels: Sequence[str], unit: str) -> str:
    return " ".join(
        f"{group.label} ({group.count}): "
        + ", ".join(
            f"{name} {mark.told(unit)}" for name, mark in zip(labels, group.marks, strict=True) if mark
        )
        + "."
        for group in groups
    )


# ------------------------------------------------------------------------------------------ row bars

_ROW, _ROW_BAR = 20.0, 11.0
_ROWS_FROM, _ROWS_TO = 31.0, 83.0


@dataclass(frozen=True)
class RowBar:
    """A figure with its interval, how it is told at the end of its row, and in full; `sure` is solid."""

    label: str
    mark: Mark
    figure: str
    told: str
    sure: bool = True
    mean: bool = False


def row_bars(
    rows: Sequence[RowBar], *, title: str, unit: str = "", place: int = 1, also: Sequence[Mark] = ()
) -> Markup:
    """One bar a row from zero, with its interval, in the colour of a `place`: many rows in little room.

    The axis also holds the marks of `also`, so that pictures side by side share it.
    """
    axis = svg.shared_axis([Mark(0.0), *also, *(row.mark for row in rows)], unit, zero=True)
    height = len(rows) * _ROW + 24
    body = []
    for tick in axis.ticks:
        x = svg.across(axis.at(tick, _ROWS_FROM, _ROWS_TO))
        body += [svg.line(x, 0, x, height - 22, "axis" if abs(tick) < 1e-9 else "grid")]
        body += [svg.text(x, height - 6, f"{svg.tick(tick)}{unit}", "tick", "middle")]
    for number, row in enumerate(rows):
        body.append(_row_bar(row, axis, number * _ROW, place))
    return svg.picture(body, title, " ".join(f"{row.told}." for row in rows), height)


def _row_bar(row: RowBar, axis: Axis, top: float, place: int) -> Markup:
    middle = top + _ROW / 2
    ends = (min(row.mark.value, 0.0), max(row.mark.value, 0.0))
    start, end = (axis.at(value, _ROWS_FROM, _ROWS_TO) for value in ends)
    low, high = (axis.at(value, _ROWS_FROM, _ROWS_TO) for value in row.mark.reach)
    kind = f"bar {svg.colour(place)}" + ("" if row.sure else " pale")
    shape = Markup(
        f'<rect x="{svg.n(start)}%" y="{svg.n(middle - _ROW_BAR / 2)}" width="{svg.n(end - start)}%" '
        f'height="{svg.n(_ROW_BAR)}" class="{kind}"/>'
    )
    whisker = svg.line(svg.across(low), middle, svg.across(high), middle, "whisker") if high > low else ""
    weight = "label row" if row.mean else "row"
    return Markup("<g><title>{}</title>{}{}{}{}</g>").format(
        row.told,
        svg.text("0", middle + 4, svg.clipped(row.label, 15), weight),
        shape,
        whisker,
        svg.text("100%", middle + 4, row.figure, "figure-value", "end"),
    )


# ------------------------------------------------------------------------------------------ dumbbell

_HEAD, _STRIP, _GAP = 22.0, 22.0, 10.0
_FROM, _TO = 2.0, 62.0


def dumbbells(pairs: Sequence[Pair], labels: Sequence[str], *, title: str, unit: str = "%") -> Markup:
    """A row a thing, in it a strip an encoder: a hollow dot before, a full dot after, their intervals and a
    line between them. `labels` are the baseline and the encoders after it."""
    afters = [after for pair in pairs for after in pair.after if after is not None]
    axis = svg.shared_axis([pair.before for pair in pairs] + [after.mark for after in afters], unit)
    tall = _HEAD + _STRIP * (len(labels) - 1) + _GAP
    height = len(pairs) * tall + 24
    body = []
    for tick in axis.ticks:
        x = svg.across(axis.at(tick, _FROM, _TO))
        body += [svg.line(x, _HEAD, x, height - 24, "grid")]
        body += [svg.text(x, height - 7, f"{svg.tick(tick)}{unit}", "tick", "middle")]
    for row, pair in enumerate(pairs):
        body.append(svg.text("0", row * tall + 15, pair.label, "label"))
        for place, after in enumerate(pair.after):
            if after is not None:
                y = row * tall + _HEAD + (place + 0.5) * _STRIP
                body += _strip(pair, after, labels[place + 1], axis, y, place + 1, unit)
    return svg.picture(body, title, _dumbbell_words(pairs, labels, unit), height)


def _strip(pair: Pair, after: After, name: str, axis: Axis, y: float, colour: int, unit: str) -> list[Markup]:
    ends = [axis.at(mark.value, _FROM, _TO) for mark in (pair.before, after.mark)]
    body = [svg.line(svg.across(ends[0]), y, svg.across(ends[1]), y, f"bond {svg.colour(colour)}")]
    for mark, place in ((pair.before, 0), (after.mark, colour)):
        low, high = (axis.at(end, _FROM, _TO) for end in mark.reach)
        if high > low:
            body.append(svg.line(svg.across(low), y, svg.across(high), y, f"reach {svg.colour(place)}"))
    kinds = ("hollow s0", f"full {svg.colour(colour)}")
    told = (pair.before.told(unit), f"{name}: {after.mark.told(unit)}")
    for x, kind, words in zip(ends, kinds, told, strict=True):
        body.append(
            Markup('<circle cx="{}%" cy="{}" r="5.5" class="{}"><title>{}</title></circle>').format(
                svg.n(x), svg.n(y), kind, f"{pair.label}, {words}"
            )
        )
    note = Markup(
        '<text x="100%" y="{}" class="figure-value" text-anchor="end"><tspan class="odd">{}  </tspan>'
        "<tspan>{}</tspan></text>"
    ).format(svg.n(y + 4), after.figures, after.word)
    return [*body, note]


def _dumbbell_words(pairs: Sequence[Pair], labels: Sequence[str], unit: str) -> str:
    told = []
    for pair in pairs:
        held = zip(labels[1:], pair.after, strict=True)
        after = ", ".join(f"{name} {one.mark.told(unit)}, {one.word}" for name, one in held if one)
        told.append(f"{pair.label}: {labels[0]} {pair.before.told(unit)}; {after}.")
    return " ".join(told)


# ---------------------------------------------------------------------------------------- links grid

_CELL = 24.0


def links_grid(
    source: Sequence[str],
    target: Sequence[str],
    links: Sequence[tuple[int, int, float]],
    *,
    title: str,
    languages: tuple[str, str] = ("", ""),
) -> Markup:
    """Source words down, target words across, a filled cell a link; the surer, the stronger its colour."""
    left = max(map(svg.wide, source), default=0) + 10
    top = max(map(svg.wide, target), default=0) * 0.86 + 14
    wide, high = len(target) * _CELL, len(source) * _CELL
    body = [*_rulings(len(source), len(target), left, top)]
    for i, word in enumerate(source):
        y = top + (i + 0.5) * _CELL + 4
        body.append(_word(word, languages[0], f'x="{svg.n(left - 8)}" y="{svg.n(y)}" text-anchor="end"'))
    for j, word in enumerate(target):
        x, y = left + (j + 0.5) * _CELL + 4, top - 6
        place = f'transform="translate({svg.n(x)} {svg.n(y)}) rotate(-60)"'
        body.append(_word(word, languages[1], place))
    body += [_cell(source[i], target[j], (i, j, score), left, top) for i, j, score in links]
    slant = max(map(svg.wide, target), default=0) * 0.5
    told = "; ".join(f"{source[i]} – {target[j]}" for i, j, _ in links) or "no links"
    return svg.picture(body, title, told, top + high + 2, svg.n(left + wide + slant + 6))


def _rulings(rows: int, columns: int, left: float, top: float) -> list[Markup]:
    right, bottom = left + columns * _CELL, top + rows * _CELL
    across = [
        svg.line(svg.n(left), y, svg.n(right), y, "grid") for y in (top + k * _CELL for k in range(rows + 1))
    ]
    down = [
        svg.line(svg.n(x), top, svg.n(x), bottom, "grid")
        for x in (left + k * _CELL for k in range(columns + 1))
    ]
    return across + down


def _word(word: str, language: str, place: str) -> Markup:
    """A word as it is written; the picture's own direction stays left to right."""
    told = Markup(' lang="{}"').format(language) if language else Markup("")
    return Markup('<text class="word" {}{}>{}</text>').format(Markup(place), told, word)


def _cell(source: str, target: str, link: tuple[int, int, float], left: float, top: float) -> Markup:
    i, j, score = link
    shade = 0.25 + 0.75 * min(max(score, 0.0), 1.0)
    return Markup(
        '<rect x="{}" y="{}" width="{}" height="{}" rx="3" class="link" fill-opacity="{}">'
        "<title>{}</title></rect>"
    ).format(
        svg.n(left + j * _CELL + 2),
        svg.n(top + i * _CELL + 2),
        svg.n(_CELL - 4),
        svg.n(_CELL - 4),
        svg.n(shade),
        f"{source} – {target}: {score:.2f}",
    )
