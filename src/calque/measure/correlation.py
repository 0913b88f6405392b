"""Do two measures go together? Their figures as points, one a layer or one a language, for each encoder.

Points of one encoder tell whether the two rise together from layer to layer or from language to language;
points of all encoders together also hold what the encoders differ in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from calque.errors import BadInput
from calque.measure.scoring import Measurement, by_name
from calque.stats.correlation import FEW, KINDS, Correlation
from calque.stats.signature import signature
from calque.types import Result

TASK = "correlation"
#: What the points of all encoders together are called.
POOLED = "all encoders"


@dataclass(frozen=True)
class Point:
    """Two figures of the same thing: of one encoder's layer, or of one encoder in one language."""

    x: float
    y: float
    label: str
    encoder: str


@dataclass(frozen=True)
class Pairing:
    """What is set against what: names of both figures, what a point is, and the languages it is about."""

    x: str
    y: str
    over: str
    languages: tuple[str, str]

    @property
    def variant(self) -> str:
        return f"{self.x} ~ {self.y}, over {self.over}"


def correlation(
    points: Sequence[Point], about: Pairing, *, rounds: int = 10_000, seed: int = 0, recipe: str = ""
) -> Measurement:
    """Pearson and Spearman of every encoder's points, and of all encoders' together.

    Encoders with too few points, or whose figures are all the same, have no correlation and are counted; when
    nothing is left, that is an error. Intervals resample points, p-values exchange them.
    """
    found: dict[str, dict[str, Correlation]] = {}
    counts, reason = {"points": len(points)}, "no points that both have"
    for name, held in _groups(points):
        x, y = [point.x for point in held], [point.y for point in held]
        try:
            found[name] = {kind: make(x, y, rounds=rounds, seed=seed) for kind, make in KINDS.items()}
        except BadInput as error:
            reason = f"{name}: {error.what}"
            counts[f"left out ({name})"] = len(held)
    if not found:
        raise BadInput(f"no correlation of {about.variant}: {reason}", remedy="measure more of them")
    made = {"about": about.variant, "recipe": recipe[:12] or None, "rounds": rounds, "seed": seed}
    results = [
        _result(about, kind, name, one, seed, signature(task=TASK, metric=kind, encoder=name, **made))
        for name, kinds in found.items()
        for kind, one in kinds.items()
    ]
    return Measurement(results, {}, counts, {"scatters": [_scatter(points, about, found)]})


def _groups(points: Sequence[Point]) -> Iterator[tuple[str, list[Point]]]:
    encoders = list(dict.fromkeys(point.encoder for point in points))
    for encoder in encoders:
        yield encoder, [point for point in points if point.encoder == encoder]
    if len(encoders) > 1:
        yield POOLED, list(points)


def _dependent(about: Pairing, name: str) -> str:
    """What is to be known of points that are not drawn independently of each other, however many."""
    several = "points of several encoders" if name == POOLED else ""
    points = "layers" if about.over == "layers" else several
    return f"p and interval are descriptive only: {points} are not independent" if points else ""


def _result(about: Pairing, kind: str, name: str, one: Correlation, seed: int, signed: str) -> Result:
    few = f"only {one.count} points: the interval is a hint at most" if one.count < FEW else ""
    test = "exact permutation" if one.exact else "permutation"
    return Result(
        TASK,
        kind,
        one.value,
        about.languages,
        name,
        variant=about.variant,
        count=one.count,
        low=one.low,
        high=one.high,
        p=one.p,
        seed=seed,
        signature=signed,
        note="; ".join(filter(None, (test, _dependent(about, name), few))),
    )


def _scatter(
    points: Sequence[Point], about: Pairing, found: dict[str, dict[str, Correlation]]
) -> dict[str, Any]:
    whole = found.get(POOLED) or next(iter(found.values()))
    fields = ("value", "low", "high", "p", "count")
    # Over languages the points themselves say which.
    which = "" if about.over == "languages" else f", {by_name(about.languages)}"
    return {
        "title": f"{about.x} and {about.y} over {about.over}{which}",
        "x": {"name": about.x},
        "y": {"name": about.y},
        "points": [
            {"x": _short(one.x), "y": _short(one.y), "label": one.label, "group": one.encoder}
            for one in points
        ],
        "figures": [
            {"name": kind, **{name: _short(asdict(one)[name]) for name in fields}}
            for kind, one in whole.items()
        ],
    }


def _short(number: float) -> float:
    """Five digits; a count stays whole."""
    return number if isinstance(number, int) else float(f"{number:.5g}")
