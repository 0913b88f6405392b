"""The data of pictures, as measures leave them: heat maps, histograms, projections and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from calque.report.parts import Place, Record, number, strings, two_of

LINKED, UNRELATED = KINDS = ("linked", "unrelated")


@dataclass(frozen=True)
class Scale:
    """One side of a heat map: what it is, and its rows or columns by name."""

    name: str
    ticks: tuple[str, ...]

    @classmethod
    def of(cls, record: Record) -> Scale:
        return cls(str(record["name"]), strings(record["ticks"]))


@dataclass(frozen=True)
class Heatmap:
    """Figures by row and column. `values` holds a tuple a row; colours run from `low` to `high`."""

    title: str
    variant: str
    languages: tuple[str, str]
    rows: Scale
    columns: Scale
    values: tuple[tuple[float, ...], ...]
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, record: Record) -> Heatmap:
        rows, columns = Scale.of(record["rows"]), Scale.of(record["columns"])
        values = tuple(tuple(map(number, row)) for row in record["values"])
        if {len(row) for row in values} != {len(columns.ticks)} or len(values) != len(rows.ticks):
            raise ValueError(f"values are not {len(rows.ticks)} rows of {len(columns.ticks)}")
        low, high = number(record.get("low", 0.0)), number(record.get("high", 1.0))
        if low >= high:
            raise ValueError(f"low is {low:g}, high is {high:g}")
        variant, languages = str(record.get("variant", "")), two_of(record["languages"])
        return cls(str(record["title"]), variant, languages, rows, columns, values, low, high)

    @property
    def square(self) -> bool:
        """Whether rows and columns are the same, so that there is a diagonal."""
        return self.rows.ticks == self.columns.ticks

    def share(self, value: float) -> float:
        """Where a value lies between the lowest and the highest colour, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass(frozen=True)
class Counts:
    """How many pairs of one kind fall between two edges, in one encoder."""

    encoder: str
    kind: str
    counts: tuple[int, ...]

    @classmethod
    def of(cls, record: Record) -> Counts:
        kind, counts = record["kind"], tuple(map(_count, record["counts"]))
        if kind not in KINDS:
            raise ValueError(f"kind {kind!r} is not one of {', '.join(KINDS)}")
        return cls(str(record["encoder"]), kind, counts)

    @property
    def shares(self) -> tuple[float, ...]:
        """The counts as shares of all, so that kinds of different size can be compared."""
        total = sum(self.counts)
        return tuple(count / total if total else 0.0 for count in self.counts)


@dataclass(frozen=True)
class Histogram:
    """Distances of linked and of unrelated words in every encoder, between shared edges."""

    title: str
    languages: tuple[str, str]
    layer: int | None
    axis: str
    edges: tuple[float, ...]
    series: tuple[Counts, ...]

    @classmethod
    def of(cls, record: Record) -> Histogram:
        edges = tuple(map(number, record["edges"]))
        series = tuple(map(Counts.of, record["series"]))
        if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
            raise ValueError("edges do not rise")
        if not series or any(len(one.counts) != len(edges) - 1 for one in series):
            raise ValueError(f"a series does not have {len(edges) - 1} counts")
        languages, layer = two_of(record["languages"]), _layer(record.get("layer"))
        return cls(str(record["title"]), languages, layer, str(record["axis"]), edges, series)

    @property
    def encoders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.encoder for one in self.series))

    def of_kind(self, encoder: str, kind: str) -> Counts | None:
        return next((one for one in self.series if (one.encoder, one.kind) == (encoder, kind)), None)


@dataclass(frozen=True)
class Point:
    """A word of a sentence on the plane. `group` is what it belongs to, such as the type of word."""

    x: float
    y: float
    place: Place
    language: str
    group: str

    @classmethod
    def of(cls, record: Record) -> Point:
        x, y = number(record["x"]), number(record["y"])
        return cls(x, y, Place.of(record), str(record["language"]), str(record.get("group", "")))

    @property
    def key(self) -> tuple[Any, ...]:
        """The same word of the same sentence, whatever the encoder."""
        return self.language, self.place, self.group


@dataclass(frozen=True)
class Projection:
    """Words of two languages on a plane, as one encoder has them."""

    title: str
    languages: tuple[str, str]
    layer: int | None
    method: str
    encoder: str
    points: tuple[Point, ...]

    @classmethod
    def of(cls, record: Record) -> Projection:
        points = tuple(map(Point.of, record["points"]))
        if not points:
            raise ValueError("no points")
        languages, layer = two_of(record["languages"]), _layer(record.get("layer"))
        told = str(record["title"]), languages, layer, str(record["method"]), str(record["encoder"])
        return cls(*told, points)

    @cached_property
    def links(self) -> tuple[tuple[Point, Point], ...]:
        """Words and their translations, as far as the order of the points tells.

        All words of one language and then, in the same order, those of the other; otherwise, words that are
        alone with one of the other language in their group.
        """
        half = len(self.points) // 2
        source, target = self.points[:half], self.points[half:]
        sides = {point.language for point in source}, {point.language for point in target}
        if len(source) == len(target) and len(sides[0]) == len(sides[1]) == 1 and sides[0] != sides[1]:
            pairs = tuple(zip(source, target, strict=True))
            if all(a.group == b.group for a, b in pairs):
                return pairs
        groups: dict[str, list[Point]] = {}
        for point in self.points:
            groups.setdefault(point.group, []).append(point)
        twos = [(held[0], held[1]) for name, held in groups.items() if name and len(held) == 2]
        return tuple((a, b) for a, b in twos if a.language != b.language)

    @property
    def beside(self) -> tuple[Any, ...]:
        """Projections of which this is the same are drawn side by side."""
        return self.languages, -1 if self.layer is None else self.layer, self.method


def side_by_side(held: Sequence[Projection]) -> list[tuple[Projection, ...]]:
    """Projections of the same languages, layer and method together, as they come."""
    keyed: dict[tuple[Any, ...], list[Projection]] = {}
    for one in held:
        keyed.setdefault(one.beside, []).append(one)
    return [tuple(found) for found in keyed.values()]


@dataclass(frozen=True)
class Dot:
    """Two figures of one thing; `short` is what is written beside it, where that is not its label."""

    x: float
    y: float
    label: str
    group: str
    short: str = ""

    @classmethod
    def of(cls, record: Record) -> Dot:
        x, y = number(record["x"]), number(record["y"])
        return cls(x, y, str(record.get("label", "")), str(record.get("group", "")))


@dataclass(frozen=True)
class Correlation:
    """How two figures go together, with interval and test."""

    name: str
    value: float
    low: float | None
    high: float | None
    p: float | None
    count: int

    @classmethod
    def of(cls, record: Record) -> Correlation:
        low, high, p = (_number(record.get(name)) for name in ("low", "high", "p"))
        count = _count(record.get("count", 0))
        return cls(str(record["name"]), number(record["value"]), low, high, p, count)


@dataclass(frozen=True)
class Scatter:
    """Two measures of the same things against each other."""

    title: str
    x: str
    y: str
    points: tuple[Dot, ...]
    figures: tuple[Correlation, ...]

    @classmethod
    def of(cls, record: Record) -> Scatter:
        points, figures = tuple(map(Dot.of, record["points"])), record.get("figures", ())
        if not points:
            raise ValueError("no points")
        names = str(record["x"]["name"]), str(record["y"]["name"])
        return cls(str(record["title"]), *names, points, tuple(map(Correlation.of, figures)))


def _number(told: Any) -> float | None:
    return None if told is None else number(told)


def _count(told: Any) -> int:
    if isinstance(told, bool) or not isinstance(told, int) or told < 0:
        raise ValueError(f"{told!r} is not a count")
    return told


def _layer(told: Any) -> int | None:
    return None if told is None else _count(told)
