"""Words as points on a plane, the encoders side by side, and two figures against each other.

Every point has a number, under which a row of a table tells what it is; the page's script shows that row when
the point is pointed at. The pictures are drawn in a box of their own units, so that letters can be kept from
covering each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from markupsafe import Markup

from calque.report import svg
from calque.report.pictures import Dot, Point, Projection, Scatter
from calque.report.svg import COLOURS, Axis
from calque.report.words import name_of
from calque.types import Doubles

_SIDE, _EDGE = 440.0, 22.0
_WIDE, _TALL, _LEFT, _BOTTOM = 560.0, 400.0, 52.0, 350.0
_SIZE = 4.5
#: Letters of a name beside a point, and how tall they are.
_LETTERS, _LINE = 14, 13.0
#: Lines above which they are drawn fainter.
_MANY = 60


# ------------------------------------------------------------------------------------ words on a plane


@dataclass(frozen=True)
class Cloud:
    """The same words in several encoders.

    `points` are numbered by their place; `left_out` is how many more there were. Where groups are few,
    colours tell them apart; otherwise colours tell the languages apart, as shapes always do.
    """

    held: tuple[Projection, ...]
    points: tuple[Point, ...]
    left_out: int

    @property
    def languages(self) -> tuple[str, str]:
        return self.held[0].languages

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(point.group for point in self.points if point.group))

    @property
    def grouped(self) -> bool:
        return 1 < len(self.groups) < COLOURS

    def colour(self, point: Point) -> str:
        """The class of a point's colour; the first colour is that of baselines and stays unused."""
        named = self.groups if self.grouped else self.languages
        own = point.group if self.grouped else point.language
        return svg.colour(1 + named.index(own)) if own in named else svg.colour(0)

    def shape(self, point: Point) -> str:
        return "round" if point.language == self.languages[0] else "cornered"


def cloud(held: Sequence[Projection], most: int) -> Cloud:
    """Projections side by side, of which at most so many words are shown; groups stay whole."""
    every = {point.key: point for one in held for point in one.points}
    groups: dict[str, list[Point]] = {}
    for point in every.values():
        groups.setdefault(point.group, []).append(point)
    shown: list[Point] = []
    for own in groups.values():
        if len(shown) + len(own) <= most:
            shown += own
    if not shown:
        shown = list(every.values())[:most]
    return Cloud(tuple(held), tuple(shown), len(every) - len(shown))


def draw_cloud(whole: Cloud, one: Projection, anchor: str) -> Markup:
    """The words as one encoder has them; a line joins each with its translation."""
    numbers = {point.key: number for number, point in enumerate(whole.points)}
    groups = {group: number for number, group in enumerate(whole.groups)}
    links = {id(point): number for number, pair in enumerate(one.links) for point in pair}
    own = [point for point in one.points if point.key in numbers]
    place = _Placing.of(own)
    spots = [
        _Spot(
            *place(point),
            point.place.word,
            numbers[point.key],
            groups.get(point.group),
            links.get(id(point)),
        )
        for point in own
    ]
    body = [_bonds(spots)]
    body += _names(spots, (_SIDE, _SIDE), [whole.colour(point) for point in own])
    for point, spot in zip(own, spots, strict=True):
        kind = f"{whole.shape(point)} {whole.colour(point)}"
        told = f"{point.place.word} ({name_of(point.language)})"
        body.append(_point(spot, kind, told))
    return _box(body, f"{one.title}: {one.encoder}", anchor, (_SIDE, _SIDE))


@dataclass(frozen=True)
class _Placing:
    """The plane in the box: its middle in the middle, both axes by the same factor, up is up."""

    x: float
    y: float
    factor: float

    @classmethod
    def of(cls, points: Sequence[Point]) -> _Placing:
        xs, ys = [point.x for point in points], [point.y for point in points]
        span = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
        return cls((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2, (_SIDE - 2 * _EDGE) / span)

    def __call__(self, point: Point) -> tuple[float, float]:
        return _SIDE / 2 + (point.x - self.x) * self.factor, _SIDE / 2 - (point.y - self.y) * self.factor


@dataclass(frozen=True)
class _Spot:
    """Where a point lies in the box, what is written beside it, its number, its group's and its link's."""

    x: float
    y: float
    name: str
    number: int
    group: int | None = None
    link: int | None = None

    @property
    def belongs(self) -> str:
        """Its group and its link as attributes."""
        held = (("g", self.group), ("l", self.link))
        return "".join(f' data-{name}="{number}"' for name, number in held if number is not None)


def _bonds(spots: Sequence[_Spot]) -> Markup:
    """Lines between words and their translations."""
    held: dict[int, list[_Spot]] = {}
    for spot in spots:
        if spot.link is not None:
            held.setdefault(spot.link, []).append(spot)
    lines = [
        f'<path d="M{svg.n(a.x)} {svg.n(a.y)}L{svg.n(b.x)} {svg.n(b.y)}"{a.belongs}/>'
        for a, b in (pair for pair in held.values() if len(pair) == 2)
    ]
    many = " many" if len(lines) > _MANY else ""
    return Markup(f'<g class="bonds{many}">{"".join(lines)}</g>')


def _point(spot: _Spot, kind: str, told: str) -> Markup:
    """A circle, or a square on its corner, under its number."""
    x, y, own = svg.n(spot.x), svg.n(spot.y), f'class="point {kind}" data-k="{spot.number}"{spot.belongs}'
    if kind.startswith("round"):
        return svg.titled("circle", f'cx="{x}" cy="{y}" r="{svg.n(_SIZE)}" {own}', told)
    s = svg.n(_SIZE * 1.25)
    return svg.titled("path", f'd="M{x} {y}m0-{s}l{s} {s}-{s} {s}-{s}-{s}z" {own}', told)


def _names(spots: Sequence[_Spot], size: tuple[float, float], colours: Sequence[str]) -> Iterator[Markup]:
    """The names of points that have room for one, as they come."""
    taken = np.empty((2 * len(spots), 4))
    taken[: len(spots)] = [(s.x - _SIZE, s.y - _SIZE, s.x + _SIZE, s.y + _SIZE) for s in spots]
    count = len(spots)
    for spot, colour in zip(spots, colours, strict=True):
        name = svg.clipped(spot.name, _LETTERS)
        wide, away = svg.wide(name) * 0.95, _SIZE + 3
        for anchor, left in (("start", spot.x + away), ("end", spot.x - away - wide)):
            box = (left, spot.y - _LINE / 2, left + wide, spot.y + _LINE / 2)
            if left >= 4 and left + wide <= size[0] - 4 and not _covers(box, taken[:count]):
                taken[count] = box
                count += 1
                x = left if anchor == "start" else left + wide
                yield svg.text(svg.n(x), spot.y + 4, name, f"beside {colour}", anchor, spot.belongs)
                break


def _covers(box: tuple[float, float, float, float], taken: Doubles) -> bool:
    """Whether a box lies over any other. Shape: taken (boxes, 4), each left, top, right, bottom."""
    left, top, right, bottom = box
    return bool(
        ((taken[:, 0] < right) & (left < taken[:, 2]) & (taken[:, 1] < bottom) & (top < taken[:, 3])).any()
    )


def _box(body: Sequence[Markup], title: str, anchor: str, size: tuple[float, float]) -> Markup:
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="cloud" viewBox="0 0 {} {}" role="group" '
        'aria-label="{}" data-rows="{}">{}</svg>'
    ).format(svg.n(size[0]), svg.n(size[1]), title, anchor, Markup("").join(body))


# ------------------------------------------------------------------------------------------ two figures


@dataclass(frozen=True)
class Plane:
    """A scatter with the names of its groups, each of a colour."""

    held: Scatter
    groups: tuple[str, ...]

    @property
    def grouped(self) -> bool:
        return 1 < len(self.groups) < COLOURS

    def colour(self, dot: Dot) -> str:
        return svg.colour(1 + self.groups.index(dot.group)) if self.grouped and dot.group else "s1"

    def shape(self, dot: Dot) -> str:
        """By turns, so that groups are told apart without colour."""
        return "cornered" if self.grouped and dot.group and self.groups.index(dot.group) % 2 else "round"


def plane(held: Scatter) -> Plane:
    """A scatter and its groups."""
    return Plane(held, tuple(dict.fromkeys(dot.group for dot in held.points if dot.group)))


def draw_scatter(whole: Plane, anchor: str) -> Markup:
    """One point a thing, with axes and as many names as have room."""
    held = whole.held
    along, up = (Axis.over([getattr(dot, way) for dot in held.points]) for way in "xy")
    body = [*_axes(along, up, held)]
    spots = [
        _Spot(along.at(dot.x, _LEFT, _WIDE - 14), up.at(dot.y, _BOTTOM, 14), dot.short or dot.label, number)
        for number, dot in enumerate(held.points)
    ]
    body += _names(spots, (_WIDE, _TALL), [whole.colour(dot) for dot in held.points])
    for dot, spot in zip(held.points, spots, strict=True):
        told = f"{dot.label}: {dot.x:.4g}, {dot.y:.4g}"
        body.append(_point(spot, f"{whole.shape(dot)} {whole.colour(dot)}", told))
    return _box(body, held.title, anchor, (_WIDE, _TALL))


def _axes(along: Axis, up: Axis, held: Scatter) -> Iterator[Markup]:
    left, right = svg.n(_LEFT), svg.n(_WIDE - 14)
    for tick in up.ticks:
        y = up.at(tick, _BOTTOM, 14)
        yield svg.line(left, y, right, y, _ruling(tick, up))
        yield svg.text(svg.n(_LEFT - 7), y + 4, svg.tick(round(tick, 6)), "tick", "end")
    for tick in along.ticks:
        x = svg.n(along.at(tick, _LEFT, _WIDE - 14))
        yield svg.line(x, 14, x, _BOTTOM, _ruling(tick, along))
        yield svg.text(x, _BOTTOM + 17, svg.tick(round(tick, 6)), "tick", "middle")
    yield svg.text(svg.n((_LEFT + _WIDE) / 2), _TALL - 8, svg.clipped(held.x, 70), "name", "middle")
    yield Markup(
        '<text transform="translate(12 {}) rotate(-90)" class="name" text-anchor="middle">{}</text>'
    ).format(svg.n(_BOTTOM / 2), svg.clipped(held.y, 50))


def _ruling(tick: float, axis: Axis) -> str:
    """The line at zero stands out where figures lie on both sides of it."""
    return "axis" if abs(tick) < 1e-9 and axis.low < 0 < axis.high else "grid"
