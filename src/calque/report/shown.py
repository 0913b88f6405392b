"""What the page shows of pictures' data: heat maps, histograms, words on a plane, two figures at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from calque.report.clouds import Cloud, Plane, cloud, draw_cloud, draw_scatter, plane
from calque.report.collect import Run, pair_name, spread
from calque.report.histograms import histogram
from calque.report.pictures import Correlation, Heatmap, Histogram, side_by_side
from calque.report.tasks import metric_of
from calque.report.words import amount, p_value

#: Colours of a heat map, and columns above which figures in it are too small to read on a telephone.
SHADES, FINE = 20, 15
#: Points of all planes of a page together.
EVERY_POINT = 2400
_METHODS = {
    "tsne": (
        "t-SNE",
        "t-SNE keeps neighbours together: which words lie side by side means something, how far groups lie "
        "apart does not.",
    ),
    "pca": ("PCA", "PCA shows the two directions in which these words differ most."),
}


@dataclass(frozen=True)
class Limits:
    """How much of each kind a run shows at most, so that a page stays small enough to send."""

    examples: int = 24
    senses: int = 48
    grids: int = 8
    heatmaps: int = 24
    histograms: int = 10
    projections: int = 8
    points: int = 400
    contrasts: int = 3000

    def shared(self, runs: Sequence[Run]) -> Limits:
        """What each run may show of a kind that several of them have; fewer points where planes are many."""
        many = {name: sum(bool(getattr(run, name, ())) for run in runs) for name in vars(self)}
        each = Limits(**{name: max(2, most // max(many[name], 1)) for name, most in vars(self).items()})
        planes = sum(min(len(side_by_side(run.projections)), each.projections) for run in runs)
        return replace(each, points=min(self.points, EVERY_POINT // max(planes, 1)))

    def halved(self) -> Limits:
        return Limits(**{name: max(2, most // 2) for name, most in vars(self).items()})


# ------------------------------------------------------------------------------------------ heat maps


@dataclass(frozen=True)
class HeatCell:
    """A figure of a heat map: its colour, how it is written in the cell, and in full."""

    shade: int
    short: str
    full: str
    same: bool


@dataclass(frozen=True)
class HeatView:
    """A heat map as a table."""

    held: Heatmap
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]

    @property
    def fine(self) -> bool:
        return len(self.held.columns.ticks) > FINE


def telling_maps(held: Sequence[Heatmap], most: int) -> list[Heatmap]:
    """At most so many heat maps, evenly spaced: of two languages first, then of encoders in one."""
    two = [one for one in held if one.languages[0] != one.languages[1]]
    one_language = [one for one in held if one.languages[0] == one.languages[1]]
    first = spread(two, most)
    return first + (spread(one_language, most - len(first)) if most - len(first) > 1 else [])


def heat_view(held: Heatmap) -> HeatView:
    """Every cell with its colour and its figure; those of the diagonal are marked."""
    rows = tuple(
        (tick, tuple(_cell(held, value, held.square and i == j) for j, value in enumerate(row)))
        for i, (tick, row) in enumerate(zip(held.rows.ticks, held.values, strict=True))
    )
    return HeatView(held, rows)


def _cell(held: Heatmap, value: float, same: bool) -> HeatCell:
    full = f"{value:.4g}".replace("-", "−")
    return HeatCell(round(held.share(value) * SHADES), short(value), full, same)


def short(value: float) -> str:
    """A figure in a small cell: two digits, without the zero before the point.

    >>> short(0.874), short(-0.001), short(1.0), short(-0.2), short(12.3)
    ('.87', '0', '1.0', '−.20', '12')
    """
    text = f"{value:.2f}" if abs(value) < 0.995 else f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"
    sign, digits = ("−", text[1:]) if text.startswith("-") else ("", text)
    return "0" if digits == "0.00" else sign + digits.removeprefix("0")


# ----------------------------------------------------------------------------------------- histograms


@dataclass(frozen=True)
class HistogramView:
    """A histogram and whose it is; the first ones need not be unfolded."""

    title: str
    figure: Markup
    first: bool


def histogram_views(
    run: Run, encoders: Sequence[str], layer: int | None, most: int
) -> Iterator[HistogramView]:
    """At most so many histograms in the encoders' colours: those at this layer and at the last one first."""
    last = max((one.layer or 0 for one in run.histograms), default=0)
    colours = {encoder: place for place, encoder in enumerate(encoders)}
    for first in (True, False):
        held = [one for one in run.histograms if (one.layer in (layer, last, None)) is first]
        for one in held[:most] if first else spread(held, most):
            notes = {encoder: _summed(one, run, encoder) for encoder in one.encoders}
            where = "" if one.layer is None else f", layer {one.layer}"
            figure = histogram(one, colours=colours, notes=notes)
            yield HistogramView(f"{pair_name(one.languages)}{where}", figure, first)


def _summed(held: Histogram, run: Run, encoder: str) -> str:
    """AUC and overlap of one encoder, where the run has them."""
    variant = "cosine" if "cos" in held.axis.lower() else "l2"
    asked = ("distances", variant, held.languages, held.layer, encoder, None, None)
    found = {
        r.metric: r.value
        for r in run.results
        if (r.task, r.variant, r.languages, r.layer, r.encoder, r.group, r.baseline) == asked
    }
    named = [(name, metric_of(name)) for name in ("auc", "overlap") if name in found]
    return ", ".join(f"{how.name or name} {amount(found[name], how)}" for name, how in named)


# --------------------------------------------------------------------------------- words on a plane


@dataclass(frozen=True)
class CloudView:
    """The same words as points in every encoder, under one name by which the table of words is found."""

    cloud: Cloud
    anchor: str
    title: str
    about: str
    figures: tuple[tuple[str, Markup], ...]


def cloud_views(run: Run, anchor: str, limits: Limits) -> Iterator[CloudView]:
    """Projections side by side, a view for each language pair, layer and method."""
    for number, held in enumerate(spread(side_by_side(run.projections), limits.projections)):
        whole, own = cloud(held, limits.points), f"{anchor}-words{number}"
        method, about = _METHODS.get(held[0].method, (held[0].method, ""))
        layer = "" if held[0].layer is None else f", layer {held[0].layer}"
        figures = tuple((one.encoder, draw_cloud(whole, one, own)) for one in held)
        yield CloudView(whole, own, f"{pair_name(whole.languages)}{layer}, {method}", about, figures)


# ---------------------------------------------------------------------------------------- two figures


@dataclass(frozen=True)
class ScatterView:
    """Two figures of the same things, and how they go together."""

    plane: Plane
    anchor: str
    figure: Markup
    told: tuple[str, ...]


def scatter_views(run: Run, anchor: str) -> Iterator[ScatterView]:
    """Every scatter of a run."""
    for number, held in enumerate(run.scatters):
        whole, own = plane(held), f"{anchor}-scatter{number}"
        yield ScatterView(whole, own, draw_scatter(whole, own), tuple(map(correlated, held.figures)))


def correlated(found: Correlation) -> str:
    """A correlation in words.

    >>> correlated(Correlation("pearson", 0.91, 0.7, 0.97, 0.002, 12))
    'Pearson’s r 0.910 (95% interval 0.700 to 0.970), permutation test p = 0.002, over 12 points'
    """
    reading, told = metric_of(found.name), []
    ends = (found.low, found.high)
    inside = [amount(end, reading).replace("-", "−") for end in ends if end is not None]
    told.append(f"{reading.name or found.name} {amount(found.value, reading)}".replace("-", "−"))
    if len(inside) == len(ends):
        told[0] += f" (95% interval {' to '.join(inside)})"
    if found.p is not None:
        told.append(f"permutation test {p_value(found.p)}")
    if found.count:
        told.append(f"over {found.count:,} points")
    return ", ".join(told)
