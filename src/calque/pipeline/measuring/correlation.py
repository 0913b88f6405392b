"""`calque measure correlation`: whether two measures that were run go together, over layers or languages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from pydantic import Field

from calque.errors import BadInput, BadSetting
from calque.files import file_digest
from calque.measure.correlation import Pairing, Point, correlation
from calque.measure.scoring import Measurement
from calque.pipeline.measuring.common import MeasureRun, measured, save_measurements
from calque.pipeline.runs import FEWEST_ROUNDS, Running
from calque.recipe import Choice, Recipe, parse_layers
from calque.report.collect import Panel, collect

Languages = tuple[str, str]

#: Of several metrics or variants, the one that is meant when none is named.
USUAL = frozenset({"cka", "accuracy", "auc", "p@1", "contextual", "linear", "mean", "l2", "anchors"})
#: The target language of a figure that is about several: ISO 639 has a code for that.
SEVERAL = "mul"


class Over(Choice):
    """What a point is: a layer of an encoder, or a language that it was measured in."""

    LAYERS = "layers"
    LANGUAGES = "languages"


class CorrelationRecipe(Recipe):
    """Settings of `calque measure correlation`.

    `run_x` and `run_y` are folders that calque wrote; without the second, both figures are of the first. `x`
    and `y` name a figure by its task, metric and variant, or by as many of them as tell it apart. Over
    languages, figures are those of one `layer`. `rounds` are those of bootstrap and permutation.
    """

    verb: ClassVar[str] = "measure correlation"
    places: ClassVar[frozenset[str]] = frozenset({"run_x", "run_y"})

    run_x: str
    run_y: str | None = None
    x: str | None = None
    y: str | None = None
    over: Over = Over.LAYERS
    layer: str = "last"
    rounds: int = Field(10_000, ge=FEWEST_ROUNDS)


def measure_correlation(
    run_x: str | Path,
    run_y: str | Path | None = None,
    *,
    out: str | Path,
    overwrite: bool = False,
    **settings: object,
) -> MeasureRun:
    """Correlation of two figures that were measured before; settings as in `CorrelationRecipe`."""
    second = None if run_y is None else str(run_y)
    recipe = CorrelationRecipe.build(run_x=str(run_x), run_y=second, **settings)
    runs = [Path(recipe.run_x), Path(recipe.run_y or recipe.run_x)]
    x, y = (_chosen(run, asked) for run, asked in zip(runs, (recipe.x, recipe.y), strict=True))
    inputs = {f"run {side}": _digest(run) for side, run in zip("xy", runs, strict=True)}
    recipe = recipe.model_copy(update={"inputs": inputs, "x": x.name, "y": y.name})
    if x.name == y.name and runs[0] == runs[1]:
        raise BadSetting(f"{x.name} against itself", remedy="name two figures with --x and --y, or two runs")

    def write(run: Running) -> None:
        save_measurements(run.folder, _measurements(recipe, x, y))

    return measured(recipe, out, write, overwrite=overwrite)


# --------------------------------------------------------------------------------------- the figures


@dataclass(frozen=True, eq=False)
class _Figure:
    """One figure of a run, by languages, encoder and layer; the mean where it has several seeds."""

    name: str
    panels: tuple[Panel, ...]

    @property
    def languages(self) -> list[Languages]:
        return list(dict.fromkeys(panel.languages for panel in self.panels))

    @property
    def encoders(self) -> list[str]:
        return list(dict.fromkeys(name for panel in self.panels for name in panel.encoders))

    def at(self, languages: Languages, encoder: str) -> dict[int | None, float]:
        """By layer."""
        held: dict[int | None, list[float]] = {}
        for panel in (panel for panel in self.panels if panel.languages == languages):
            for layer in panel.layers:
                if (score := panel.score(encoder, layer)) is not None:
                    held.setdefault(layer, []).append(score.value)
        return {layer: fmean(values) for layer, values in held.items()}


def _chosen(run: Path, asked: str | None) -> _Figure:
    """The figure that a name means in a run."""
    keyed: dict[tuple[str, str, str], list[Panel]] = {}
    for panel in collect(run).panels:
        keyed.setdefault((panel.task, panel.metric, panel.variant), []).append(panel)
    if not keyed:
        raise BadInput(
            "nothing was measured in this run", where=run, remedy="give a folder of `calque measure`"
        )
    wanted = set((asked or "").split("/")) - {""}
    found = [key for key in keyed if wanted <= set(key)]
    # A task that is named comes before a metric of that name, and what is usual before what is not.
    for part, better in ((0, wanted), (1, USUAL), (2, USUAL)):
        found = [key for key in found if key[part] in better] or found
    if len(found) != 1:
        what = "several figures" if found else "no figure"
        told = f" called {asked!r}" if asked else ""
        known = ", ".join(map(_name, found or keyed))
        raise BadSetting(f"{what}{told} in this run", where=run, remedy=f"name one of {known}")
    return _Figure(_name(found[0]), tuple(keyed[found[0]]))


def _name(key: tuple[str, str, str]) -> str:
    return "/".join(filter(None, dict.fromkeys(key)))


def _digest(run: Path) -> str:
    """What the results of a run are, or of every run inside."""
    files = sorted([run / "results.jsonl", *run.glob("*/results.jsonl")])
    return " ".join(file_digest(file)[:16] for file in files if file.is_file())


# ---------------------------------------------------------------------------------------- the points


def _measurements(recipe: CorrelationRecipe, x: _Figure, y: _Figure) -> list[Measurement]:
    """One a language pair over layers, one in all over languages.

    What has too few points is passed over, unless everything has.
    """
    pairs = _shared("language pair", x, y, [["-".join(pair) for pair in one.languages] for one in (x, y)])
    encoders = _shared("encoder", x, y, [one.encoders for one in (x, y)])
    languages = [pair for pair in x.languages if "-".join(pair) in pairs]
    points = _over_layers if recipe.over is Over.LAYERS else _over_languages
    settings = {"rounds": recipe.rounds, "seed": recipe.seed}
    made, trouble = [], []
    for about, held in points(recipe, x, y, languages, encoders):
        try:
            made.append(correlation(held, about, recipe=recipe.digest(), **settings))
        except BadInput as error:
            trouble.append(error)
    if not made:
        raise trouble[0]
    return made


def _shared(what: str, x: _Figure, y: _Figure, names: Sequence[Sequence[str]]) -> list[str]:
    """The names that both figures know."""
    shared = [name for name in names[0] if name in names[1]]
    if not shared:
        told = " but ".join(
            f"{one.name} has {', '.join(own)}" for one, own in zip((x, y), names, strict=True)
        )
        raise BadInput(f"no {what} in common: {told}", remedy="measure both alike; --label names encoders")
    return shared


def _over_layers(
    recipe: CorrelationRecipe, x: _Figure, y: _Figure, languages: Sequence[Languages], encoders: Sequence[str]
) -> Iterator[tuple[Pairing, list[Point]]]:
    """The layers of every encoder, language pair by language pair."""
    for pair in languages:
        points = []
        for encoder in encoders:
            ours, theirs = x.at(pair, encoder), y.at(pair, encoder)
            layers = sorted(layer for layer in ours if layer is not None and layer in theirs)
            points += [Point(ours[at], theirs[at], f"layer {at}", encoder) for at in layers]
        yield Pairing(x.name, y.name, "layers", pair), points


def _over_languages(
    recipe: CorrelationRecipe, x: _Figure, y: _Figure, languages: Sequence[Languages], encoders: Sequence[str]
) -> Iterator[tuple[Pairing, list[Point]]]:
    """Every language pair of every encoder, at one layer."""
    sources = {pair[0] for pair in languages}
    points = []
    for encoder in encoders:
        for pair in languages:
            ours, theirs = (_at_layer(one, pair, encoder, recipe.layer) for one in (x, y))
            if ours is not None and theirs is not None:
                label = pair[1] if len(sources) == 1 else "-".join(pair)
                points.append(Point(ours, theirs, label, encoder))
    source = sources.pop() if len(sources) == 1 else SEVERAL
    yield Pairing(x.name, y.name, "languages", (source, SEVERAL)), points


def _at_layer(figure: _Figure, pair: Languages, encoder: str, asked: str) -> float | None:
    """An encoder's figure at the layer asked for, or the one that has no layer; None where there is none."""
    held = figure.at(pair, encoder)
    layers = [layer for layer in held if layer is not None]
    if not layers:
        return held.get(None)
    chosen = parse_layers(asked, max(layers))
    if len(chosen) != 1 or chosen[0] not in held:
        known = ", ".join(map(str, sorted(layers)))
        raise BadSetting(
            f"--layer {asked}: {figure.name} of {encoder} has no such one layer", remedy=f"one of {known}"
        )
    return held[chosen[0]]
