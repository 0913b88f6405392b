"""Histograms of linked and unrelated words, a strip an encoder, all on one axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from calque.report import svg
from calque.report.pictures import KINDS, LINKED, UNRELATED, Counts, Histogram
from calque.report.svg import Axis

_HEAD, _STRIP, _GAP, _FOOT = 24.0, 92.0, 16.0, 42.0
_FROM, _TO = 1.0, 99.0


def histogram(held: Histogram, *, colours: Mapping[str, int], notes: Mapping[str, str]) -> Markup:
    """Shares of the pairs between shared edges: linked ones filled, unrelated ones as an outline.

    `colours` are the encoders' places, `notes` what is to be said beside each.
    """
    axis = _axis(held.edges)
    most = max((share for one in held.series for share in one.shares), default=0.0) or 1.0
    tall = _HEAD + _STRIP + _GAP
    height = len(held.encoders) * tall + _FOOT - _GAP
    bottom = height - _FOOT
    body = [_grid(tick, axis, bottom) for tick in axis.ticks]
    for place, encoder in enumerate(held.encoders):
        top = place * tall
        body.append(svg.text("0", top + 15, svg.clipped(encoder, 34), "label"))
        body.append(svg.text("100%", top + 15, notes.get(encoder, ""), "figure-value", "end"))
        floor = top + _HEAD + _STRIP
        shapes = _shapes(held, encoder, axis, most, floor, svg.colour(colours.get(encoder, place)))
        body += [svg.stretched(list(shapes), height), svg.line("0", floor, "100%", floor, "axis")]
        body += _columns(held, encoder, axis, top + _HEAD)
    body.append(svg.text("50%", height - 6, held.axis, "name", "middle"))
    return svg.picture(body, held.title, _words(held), height)


def _axis(edges: Sequence[float]) -> Axis:
    """From the first edge to the last, with round ticks between them."""
    whole = Axis.over(edges)
    slack = 1e-9 * (edges[-1] - edges[0])
    inside = tuple(tick for tick in whole.ticks if edges[0] - slack <= tick <= edges[-1] + slack)
    return Axis(edges[0], edges[-1], inside)


def _x(value: float, axis: Axis) -> float:
    return axis.at(value, _FROM, _TO)


def _grid(tick: float, axis: Axis, bottom: float) -> Markup:
    x = svg.across(_x(tick, axis))
    return svg.line(x, _HEAD, x, bottom, "grid") + svg.text(x, bottom + 17, svg.tick(tick), "tick", "middle")


def _shapes(
    held: Histogram, encoder: str, axis: Axis, most: float, floor: float, colour: str
) -> Iterator[Markup]:
    for kind in KINDS:
        one = held.of_kind(encoder, kind)
        if one is not None:
            path = _steps(one, held.edges, axis, most, floor)
            yield Markup('<path d="{}" class="{} {}" vector-effect="non-scaling-stroke"/>').format(
                path, kind, colour
            )


def _steps(one: Counts, edges: Sequence[float], axis: Axis, most: float, floor: float) -> str:
    """The outline of the columns, from the floor and back to it."""
    moves = [f"M{svg.n(_x(edges[0], axis))} {svg.n(floor)}"]
    for right, share in zip(edges[1:], one.shares, strict=True):
        moves.append(f"V{svg.n(floor - share / most * _STRIP)}H{svg.n(_x(right, axis))}")
    return "".join([*moves, f"V{svg.n(floor)}"])


def _columns(held: Histogram, encoder: str, axis: Axis, top: float) -> Iterator[Markup]:
    """What each column says when pointed at; columns without a pair say nothing."""
    linked, unrelated = (held.of_kind(encoder, kind) for kind in KINDS)
    for place in range(len(held.edges) - 1):
        told = [
            f"{one.shares[place]:.1%} of {one.kind}"
            for one in (linked, unrelated)
            if one is not None and one.counts[place]
        ]
        if told:
            low, high = held.edges[place], held.edges[place + 1]
            left, right = _x(low, axis), _x(high, axis)
            across = f'x="{svg.across(left)}" width="{svg.across(right - left)}"'
            yield svg.titled(
                "rect",
                f'{across} y="{svg.n(top)}" height="{svg.n(_STRIP)}" class="column"',
                f"{encoder}, {held.axis} {low:.4g} to {high:.4g}: {', '.join(told)} pairs",
            )


def _words(held: Histogram) -> str:
    """Where most pairs lie, encoder by encoder."""
    told = []
    for encoder in held.encoders:
        places = {kind: _middle(held, encoder, kind) for kind in KINDS}
        told.append(
            f"{encoder}: half of the linked pairs lie below {places[LINKED]}, half of the unrelated below "
            f"{places[UNRELATED]}."
        )
    return " ".join(told)


def _middle(held: Histogram, encoder: str, kind: str) -> str:
    """The edge below which half of the pairs lie."""
    one = held.of_kind(encoder, kind)
    reached = 0.0
    for edge, share in zip(held.edges[1:], one.shares if one else (), strict=False):
        reached += share
        if reached >= 0.5:
            return f"{edge:.3g}"
    return "–"
