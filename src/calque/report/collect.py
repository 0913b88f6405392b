"""What a run folder holds, read back as one thing: results, settings, examples, links, counts, cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from calque.documents import parse_toml, read_text
from calque.errors import BadInput
from calque.files import FINISHED, finished
from calque.report.parts import About, Example, Grid, Sense, mapping, pair_of, records
from calque.report.pictures import Heatmap, Histogram, Projection, Scatter
from calque.report.tasks import VARIANTS, Metric, Task, metric_of, task_of
from calque.report.transfer import PREFIX, Comparison, Setup, Trained, trained
from calque.report.words import name_of
from calque.store import items_path, load_results
from calque.types import Result

T = TypeVar("T")
LINKS = "links"
#: What tells the folder of a study from that of a run.
STUDY = "study.json"
WAYS = ("forward", "backward")
LINK_METRICS = ("precision", "recall", "f1", "aer")
_SIGNS = ("results.jsonl", FINISHED, "recipe.toml", "artifacts")


@dataclass(frozen=True)
class Panel:
    """Figures that belong into one picture: one task, metric, variant, language pair and seed."""

    run: str
    task: str
    metric: str
    variant: str
    languages: tuple[str, str]
    seed: int
    results: tuple[Result, ...]
    labels: tuple[str, ...] = ()
    items: Path | None = None
    name: str = ""

    @classmethod
    def of(cls, run: Run, results: Sequence[Result], labels: tuple[str, ...]) -> Panel:
        """Results that share all but encoder, layer, direction and group."""
        one = results[0]
        about = (run.name, one.task, one.metric, one.variant, one.languages, one.seed)
        return cls(*about, tuple(results), labels, run.items_of(results))

    @property
    def title(self) -> str:
        """The task, and in brackets what it was done on."""
        seed = f"seed {self.seed}" if self.seed else ""
        variant = VARIANTS.get(self.variant, self.variant)
        about = ", ".join(filter(None, (self.name or self.pair, variant, seed)))
        return f"{self.activity} ({about})"

    @property
    def pair(self) -> str:
        """The languages, and which way where figures are of one way only."""
        return way_name(self.languages, self.directions[0]) if self.one_way else pair_name(self.languages)

    @property
    def one_way(self) -> bool:
        """Whether both ways were measured and not taken together, so that figures are of the first."""
        return len(self.directions) > 1 and self.directions[0] in WAYS

    @property
    def told(self) -> str:
        """The title, led by the figure where the task has several."""
        return f"{self.figure} of {self.title}" if len(self.about.metrics) > 1 else self.title

    @property
    def activity(self) -> str:
        """The task in words."""
        return self.about.name

    @property
    def figure(self) -> str:
        """The metric in words."""
        return self.reading.name or self.metric

    @property
    def about(self) -> Task:
        return task_of(self.task)

    @property
    def reading(self) -> Metric:
        return metric_of(self.metric)

    @cached_property
    def baseline(self) -> str | None:
        """The encoder the others are compared with, where they are."""
        return next((r.baseline for r in self.results if r.baseline is not None), None)

    @cached_property
    def encoders(self) -> tuple[str, ...]:
        """Every encoder that has figures: the baseline first, the others as the recipe names them."""
        names = {r.encoder for r in self.results if r.baseline is None}
        return tuple(sorted(names, key=lambda name: (name != self.baseline, place_of(name, self.labels))))

    @cached_property
    def directions(self) -> tuple[str, ...]:
        """Directions, the one to read first leading: the average of both where there is one."""
        order = {"both": 0, "": 1, "forward": 2, "backward": 3}
        return tuple(sorted({r.direction for r in self.results}, key=lambda d: (order.get(d, 4), d)))

    @cached_property
    def layers(self) -> tuple[int | None, ...]:
        """Layers in order; None for what has no layers. A figure of all layers together is `overall`."""
        found = {r.layer for r in self.results if r.baseline is None and r.group is None}
        return tuple(sorted(layer for layer in found if layer is not None)) or tuple(found)

    @cached_property
    def overall(self) -> bool:
        """Whether there is a figure of all layers together beside those of each."""
        return self.layers != (None,) and any(r.layer is None for r in self.results)

    @cached_property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The bins of every breakdown: by number where they start with one, otherwise the largest first."""
        sizes: dict[str, dict[str, int]] = {}
        for result in self.results:
            if result.group is not None and result.baseline is None:
                bins = sizes.setdefault(result.group[0], {})
                bins[result.group[1]] = max(result.count, bins.get(result.group[1], 0))
        return {name: _ordered(bins) for name, bins in sizes.items()}

    @cached_property
    def _index(self) -> dict[tuple[Any, ...], Result]:
        return {(r.encoder, r.layer, r.direction, r.group, r.baseline is None): r for r in self.results}

    def score(
        self,
        encoder: str,
        layer: int | None,
        direction: str | None = None,
        group: tuple[str, str] | None = None,
    ) -> Result | None:
        """An encoder's figure, in the first direction unless another is asked for."""
        return self._index.get((encoder, layer, self._direction(direction), group, True))

    def change(self, encoder: str, layer: int | None, direction: str | None = None) -> Result | None:
        """An encoder's difference to the baseline."""
        return self._index.get((encoder, layer, self._direction(direction), None, False))

    def changes(self) -> list[Result]:
        """Every difference at every layer, in the first direction."""
        found = (self.change(encoder, layer) for encoder in self.encoders for layer in self.layers)
        return [change for change in found if change is not None]

    def best_layer(self, encoder: str) -> int | None:
        """The layer at which an encoder scores best; the lowest of equals."""
        scores = [(layer, self.score(encoder, layer)) for layer in self.layers]
        sign = 1 if self.reading.lower else -1
        held = [(sign * score.value, place) for place, (_, score) in enumerate(scores) if score is not None]
        return scores[min(held)[1]][0] if held else None

    def _direction(self, asked: str | None) -> str:
        return self.directions[0] if asked is None else asked


def _ordered(bins: Mapping[str, int]) -> tuple[str, ...]:
    starts = {name: _leading_number(name) for name in bins}
    if any(start is not None for start in starts.values()):
        return tuple(sorted(bins, key=lambda name: (starts[name] is None, starts[name], name)))
    return tuple(sorted(bins, key=lambda name: (-bins[name], name)))


def _leading_number(text: str) -> float | None:
    """The number a bin's name starts with.

    >>> _leading_number("10-99"), _leading_number("≥1000"), _leading_number("NOUN")
    (10.0, 1000.0, None)
    """
    digits = ""
    for character in text.lstrip("≥>=<≤ ").replace(",", ""):
        if not (character.isdigit() or character == "."):
            break
        digits += character
    return float(digits) if any(c.isdigit() for c in digits) and digits.count(".") < 2 else None


# ----------------------------------------------------------------------------------------------- run


@dataclass(frozen=True)
class Run:
    """All that a run folder says. Parts that are not there are empty.

    `parts` are the runs inside a folder that is no run itself; its own fields are then empty. `comparison`
    and `setup` are of runs of `calque compare` and `calque transfer`. `beside` are folders of further runs,
    whose results are among these.
    """

    folder: Path
    recipe: Mapping[str, Any] = field(default_factory=dict)
    recipe_text: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, Any] = field(default_factory=dict)
    results: tuple[Result, ...] = ()
    examples: tuple[Example, ...] = ()
    senses: tuple[Sense, ...] = ()
    grids: tuple[Grid, ...] = ()
    heatmaps: tuple[Heatmap, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    projections: tuple[Projection, ...] = ()
    scatters: tuple[Scatter, ...] = ()
    counts: Mapping[str, Any] = field(default_factory=dict)
    about: About | None = None
    finished: Mapping[str, Any] | None = None
    parts: tuple[Run, ...] = ()
    comparison: Comparison | None = None
    setup: Setup | None = None
    beside: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    def items_of(self, results: Sequence[Result]) -> Path:
        """Where the items of these results lie."""
        named = next((r.items for r in results if r.items is not None), None)
        held = [folder / "items" for folder in (self.folder, *self.beside)]
        there = (one for one in held if self.beside and named and items_path(one, named).is_file())
        return next(there, held[0])

    @property
    def verb(self) -> str:
        return str(self.recipe.get("verb") or (self.finished or {}).get("verb") or "")

    @property
    def pictures(self) -> tuple[Heatmap | Histogram | Projection | Scatter, ...]:
        """The data of all pictures that do not come from results."""
        return (*self.heatmaps, *self.histograms, *self.projections, *self.scatters)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs inside, or this one."""
        return self.parts or (self,)

    @cached_property
    def languages(self) -> tuple[str, str] | None:
        """Source and target language, where the run has but one pair of them."""
        measured = {r.languages for r in self.results}
        return (
            measured.pop()
            if len(measured) == 1
            else None
            if measured
            else pair_of(self.recipe.get("languages"))
        )

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """What was measured, one panel a picture; scores of links and of transfer are apart, in `link_scores`
        and `trained`."""
        keyed: dict[tuple[Any, ...], list[Result]] = {}
        for r in self.results:
            if r.task != LINKS and not r.task.startswith(PREFIX):
                keyed.setdefault((r.task, r.metric, r.variant, r.languages, r.seed), []).append(r)
        told = self.recipe.get("labels")
        labels = tuple(map(str, told)) if isinstance(told, list) else ()
        # Differences of which the figures are lost are no picture.
        scored = [key for key in sorted(keyed) if any(r.baseline is None for r in keyed[key])]
        own = tuple(Panel.of(self, keyed[key], labels) for key in scored)
        return own + tuple(panel for part in self.parts for panel in part.panels)

    @cached_property
    def sets(self) -> tuple[tuple[Panel, ...], ...]:
        """Panels that differ in their languages only, together."""
        keyed: dict[tuple[Any, ...], list[Panel]] = {}
        for panel in self.panels:
            keyed.setdefault((panel.run, panel.task, panel.metric, panel.variant, panel.seed), []).append(
                panel
            )
        return tuple(map(tuple, keyed.values()))

    @cached_property
    def trained(self) -> tuple[Trained, ...]:
        """Tasks that were learned; none in a comparison, which tells of them itself."""
        return () if self.comparison else trained(self.results, self.setup)

    @cached_property
    def link_scores(self) -> tuple[Result, ...]:
        own = tuple(r for r in self.results if r.task == LINKS)
        own = tuple(sorted(own, key=lambda r: place_of(r.metric, LINK_METRICS)))
        return own + tuple(r for part in self.parts for r in part.link_scores)


def pair_name(languages: Sequence[str]) -> str:
    """Two languages by name.

    >>> pair_name(("en", "de"))
    'English–German'
    """
    return "–".join(map(name_of, languages))


def way_name(languages: tuple[str, str], direction: str) -> str:
    """A direction as languages.

    >>> way_name(("en", "ru"), "backward")
    'Russian → English'
    """
    if direction not in WAYS:
        return direction
    return " → ".join(map(name_of, languages if direction == WAYS[0] else languages[::-1]))


def place_of(name: str, order: Sequence[str]) -> tuple[int, str]:
    """Sorts known names in their order, others after them."""
    return (order.index(name) if name in order else len(order), name)


def collect(folder: Path) -> Run:
    """Read a run folder, or every run inside a folder of runs."""
    if not folder.is_dir():
        raise BadInput("no such folder", where=folder, remedy="give a folder that calque wrote")
    if (folder / "results.jsonl").is_file():
        return _read(folder)
    inside = [path for path in sorted(folder.iterdir()) if path.is_dir() and _is_run(path)]
    studies = [path for path in sorted(folder.iterdir()) if (path / STUDY).is_file()]
    if studies and not inside:
        raise BadInput(
            "a folder of studies, which have a page each", where=folder, remedy=f"calque report {studies[0]}"
        )
    if inside:
        parts = tuple(map(_read, inside))
        return Run(
            folder,
            parts=tuple(part for part in parts if part.results or part.grids or part.pictures) or parts,
        )
    if not any((folder / sign).exists() for sign in _SIGNS):
        raise BadInput(
            "not a calque run: neither results nor a recipe here",
            where=folder,
            remedy="give the --out folder of `calque measure` or `calque link`, or a folder of such runs",
        )
    return _read(folder)


def _is_run(folder: Path) -> bool:
    """Whether it is a run; a study is many, and has a page of its own."""
    if (folder / STUDY).is_file():
        return False
    return (folder / "results.jsonl").is_file() or (folder / FINISHED).is_file()


def _read(folder: Path) -> Run:
    recipe_text, results = _text(folder / "recipe.toml"), folder / "results.jsonl"
    artifacts = folder / "artifacts"
    run = Run(
        folder=folder,
        recipe=parse_toml(recipe_text, folder / "recipe.toml"),
        recipe_text=recipe_text,
        environment=mapping(folder / "environment.json"),
        cost=mapping(folder / "cost.json"),
        results=results_of(results) if results.is_file() else (),
        examples=records(artifacts / "examples.json", Example.of)
        + records(artifacts / "sentences.json", Example.of_sentence),
        senses=records(artifacts / "senses.json", Sense.of),
        grids=records(artifacts / "links.json", Grid.of),
        heatmaps=records(artifacts / "heatmaps.json", Heatmap.of),
        histograms=records(artifacts / "histograms.json", Histogram.of),
        projections=records(artifacts / "projections.json", Projection.of),
        scatters=records(artifacts / "scatters.json", Scatter.of),
        counts=mapping(artifacts / "counts.json"),
        about=About.read(artifacts / "about.json"),
        finished=finished(folder),
        comparison=Comparison.read(artifacts / "comparison.json"),
        setup=Setup.read(artifacts / "data.json", artifacts / "training.json"),
    )
    examples = (replace(one, languages=one.languages or run.languages) for one in run.examples)
    return replace(run, examples=tuple(examples))


def results_of(path: Path) -> tuple[Result, ...]:
    """Results as they are, provided that they are numbers."""
    held = load_results(path)
    for number, result in enumerate(held, 1):
        figures = (result.value, result.low, result.high, result.p)
        if not all(figure is None or math.isfinite(figure) for figure in figures):
            raise BadInput("a figure that is not a number", where=path, line=number, remedy="measure again")
    return tuple(held)


def _text(path: Path) -> str:
    return read_text(path) if path.is_file() else ""


def spread(values: Sequence[T], most: int) -> list[T]:
    """At most this many of the values, evenly spaced, with the first and the last.

    >>> spread(list(range(13)), 5)
    [0, 3, 6, 9, 12]
    """
    if len(values) <= most:
        return list(values)
    return [values[round(k * (len(values) - 1) / (most - 1))] for k in range(most)]
