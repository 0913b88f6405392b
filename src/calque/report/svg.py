"""What all pictures are made of: an axis, a mark with its interval, lines and letters."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

COLOURS = 6


@dataclass(frozen=True)
class Mark:
    """A figure with its interval, on the scale it is shown in."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def reach(self) -> tuple[float, float]:
        low = self.value if self.low is None else self.low
        return low, self.value if self.high is None else self.high

    def told(self, unit: str) -> str:
        """The figure in words, with its interval where it has one."""
        text = f"{rounded(self.value, unit)}{unit}"
        if self.low is None or self.high is None:
            return text
        return f"{text} ({rounded(self.low, unit)} to {rounded(self.high, unit)})"


@dataclass(frozen=True)
class Axis:
    """A stretch of numbers with round ticks, placed between two percentages of the picture."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def over(
        cls, values: Sequence[float], *, zero: bool = False, most: float | None = None, least: float = 0.0
    ) -> Axis:
        """Round bounds around these values; from zero for bars; never beyond `most`, nor below zero for
        values that are all above it; at least so wide that noise does not look like more."""
        low, high = min(values, default=0.0), max(values, default=1.0)
        low = min(low, 0.0) if zero else low
        if high - low < least:
            low = max((low + high - least) / 2, 0.0 if low >= 0 else -math.inf)
            low = low if most is None or high > most else min(low, most - least)
            high = max(high, low + least)
        span = high - low if high - low > 1e-9 * max(abs(low), abs(high)) else 0.0
        step = _step(span or abs(high) or 1.0)
        first, last = math.floor(low / step) * step, math.ceil(high / step) * step
        if first == last:
            first, last = first - step, last + step
        if most is not None and high <= most:
            last = min(last, most)
        if low >= 0:
            first = max(first, 0.0)
        count = int((last - first) / step + 1e-9)
        return cls(first, last, tuple(first + step * k for k in range(count + 1)))

    def at(self, value: float, start: float = 0.0, end: float = 100.0) -> float:
        """Where a value lies between `start` and `end`."""
        share = (value - self.low) / (self.high - self.low)
        return start + min(max(share, 0.0), 1.0) * (end - start)


def shared_axis(marks: Sequence[Mark], unit: str, *, zero: bool = False) -> Axis:
    """An axis that holds these marks and their intervals."""
    ends = [end for mark in marks for end in mark.reach]
    percent = unit == "%"
    return Axis.over(ends, zero=zero, most=100.0 if percent else None, least=1.0 if percent else 0.01)


def _step(span: float) -> float:
    """A round step that cuts a span into three to six.

    >>> _step(48.0), _step(0.7)
    (10.0, 0.2)
    """
    size = 10.0 ** math.floor(math.log10(max(span, 1e-300) / 3))
    return next(size * m for m in (1, 2, 5, 10) if span / (size * m) <= 6)


def rounded(value: float, unit: str = "") -> str:
    """One decimal for percent and points, three for what lies between −1 and 1 by nature."""
    text = f"{value:.1f}" if unit or abs(value) >= 1.5 or value == 0 else f"{value:.3g}"
    return text.replace("-", "−").replace("−0.0", "0.0") if float(text) == 0 else text.replace("-", "−")


def n(value: float) -> str:
    """A coordinate, short."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def across(value: float) -> str:
    """A position across, as a percentage of the picture."""
    return f"{n(value)}%"


def picture(body: Sequence[Markup], title: str, told: str, height: float, width: str = "100%") -> Markup:
    """A whole picture, with what it shows in words for those who do not see it."""
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" class="figure" width="{}" height="{}">'
        "<title>{}</title><desc>{}</desc>{}</svg>"
    ).format(width, n(height), title, told, Markup("").join(body))


def stretched(body: Sequence[Markup], height: float) -> Markup:
    """Shapes in a box as wide as the picture, where positions across run from 0 to 100."""
    size = n(height)
    return Markup(
        '<svg x="0" y="0" width="100%" height="{}" viewBox="0 0 100 {}" preserveAspectRatio="none" '
        'class="stretched">{}</svg>'
    ).format(size, size, Markup("").join(body))


# A formatted Markup escapes all that goes into it, and is slow: in what a page has thousands of, only what
# comes from data is escaped.


def line(x1: str, y1: float, x2: str, y2: float, kind: str) -> Markup:
    """A straight line; positions and `kind`, its class, are the page's own."""
    return Markup(f'<line x1="{x1}" y1="{n(y1)}" x2="{x2}" y2="{n(y2)}" class="{kind}"/>')


def text(x: str, y: float, told: str, kind: str = "", anchor: str = "start", more: str = "") -> Markup:
    """Letters on a line; all but what is `told` is the page's own."""
    return Markup(
        f'<text x="{x}" y="{n(y)}" class="{kind}" text-anchor="{anchor}"{more}>{escape(told)}</text>'
    )


def titled(tag: str, attributes: str, told: str) -> Markup:
    """A shape that says what it is when pointed at; all but what is `told` is the page's own."""
    return Markup(f"<{tag} {attributes}><title>{escape(told)}</title></{tag}>")


def colour(place: int) -> str:
    """The class of the colour of an encoder or a group, by its place."""
    return f"s{place % COLOURS}"


def tick(value: float) -> str:
    """A number beside an axis."""
    return f"{value:g}".replace("-", "−") if abs(value) > 1e-9 else "0"


def clipped(told: str, most: int) -> str:
    """At most so many letters.

    >>> clipped("determiner", 6)
    'deter…'
    """
    return told if len(told) <= most else told[: most - 1] + "…"


def wide(word: str) -> float:
    """About how many pixels a word takes at 13 px; wide scripts take a full square a letter."""
    return sum(
        13.5 if unicodedata.east_asian_width(letter) in "WF" else 7.4 if letter.isascii() else 8.2
        for letter in word
        if not unicodedata.combining(letter)
    )
