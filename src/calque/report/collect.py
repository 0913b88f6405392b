"""What a run folder holds, read back as one thing: results, settings, examples, links, counts, cost."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from calque.errors import BadInput
from calque.files import FINISHED, finished, read_json
from calque.store import load_results
from calque.text.languages import language_name
from calque.types import Result

T = TypeVar("T")
LINKS = "links"
_USUAL = "contextual"
LINK_METRICS = ("precision", "recall", "f1", "aer")
_SIGNS = ("results.jsonl", FINISHED, "recipe.toml", "artifacts")


# ------------------------------------------------------------------------------------------- metrics


@dataclass(frozen=True)
class Metric:
    """How a metric is read: as a percentage or as it is, and whether less is better."""

    percent: bool = True
    lower: bool = False

    @property
    def scale(self) -> float:
        return 100.0 if self.percent else 1.0

    @property
    def unit(self) -> str:
        return "%" if self.percent else ""


#: Metrics that are not a share of which more is better.
METRICS = {
    "aer": Metric(lower=True),
    "cka": Metric(percent=False),
    "correlation": Metric(percent=False),
    "distance": Metric(percent=False, lower=True),
}


# --------------------------------------------------------------------------------------------- parts


@dataclass(frozen=True)
class Place:
    """A word in its sentence. `index` is None when the sentence is not known."""

    word: str
    sentence: tuple[str, ...] = ()
    index: int | None = None


@dataclass(frozen=True)
class Found:
    """What one encoder retrieved, and whether it was the right word."""

    place: Place
    hit: bool


@dataclass(frozen=True)
class Example:
    """One retrieval for a person to read: the query, the word linked to it, what each encoder found."""

    direction: str
    query: Place
    gold: Place
    retrieved: Mapping[str, Found]
    languages: tuple[str, str] | None = None

    @property
    def way(self) -> tuple[str, str]:
        """The language that is asked in, and the one that is searched; empty where not known."""
        source, target = self.languages or ("", "")
        return (target, source) if self.direction == "backward" else (source, target)


@dataclass(frozen=True)
class Sense:
    """A word type with several translations, and some of its occurrences as retrievals at one layer."""

    word: str
    languages: tuple[str, str]
    layer: int | None
    occurrences: tuple[Example, ...]


@dataclass(frozen=True)
class Grid:
    """Links of one sentence pair: 0-based source word, target word, score."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, int, float], ...]
    languages: tuple[str, str] | None = None


@dataclass(frozen=True)
class Advice:
    """Something to do next, and the command that does it."""

    text: str
    command: str


@dataclass(frozen=True)
class About:
    """What a run is for, told by whoever made it."""

    title: str
    summary: str
    next: tuple[Advice, ...]


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
        return cls(*about, tuple(results), labels, run.folder / "items")

    @property
    def title(self) -> str:
        """The task, and in brackets what it was done on."""
        seed = f"seed {self.seed}" if self.seed else ""
        variant = "" if self.variant == _USUAL else self.variant
        about = ", ".join(filter(None, (self.name or pair_name(self.languages), variant, seed)))
        return f"{self.activity} ({about})"

    @property
    def activity(self) -> str:
        """The task in words."""
        return self.task.replace("-", " ")

    @property
    def reading(self) -> Metric:
        return METRICS.get(self.metric, Metric())

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
        found = {r.layer for r in self.results if r.baseline is None and r.group is None}
        return tuple(sorted(found, key=lambda layer: -1 if layer is None else layer))

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

    `parts` are the runs inside a folder that is no run itself; its own fields are then empty.
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
    counts: Mapping[str, Any] = field(default_factory=dict)
    about: About | None = None
    finished: Mapping[str, Any] | None = None
    parts: tuple[Run, ...] = ()

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def verb(self) -> str:
        return str(self.recipe.get("verb") or (self.finished or {}).get("verb") or "")

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs inside, or this one."""
        return self.parts or (self,)

    @cached_property
    def languages(self) -> tuple[str, str] | None:
        """Source and target language, where the run has but one pair of them."""
        measured = {r.languages for r in self.results}
        return (
            measured.pop() if len(measured) == 1 else None if measured else _two(self.recipe.get("languages"))
        )

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """What was measured, one panel a picture; scores of links are apart, in `link_scores`."""
        keyed: dict[tuple[Any, ...], list[Result]] = {}
        for r in self.results:
            if r.task != LINKS:
                keyed.setdefault((r.task, r.metric, r.variant, r.languages, r.seed), []).append(r)
        labels = tuple(map(str, self.recipe.get("labels", ())))
        own = tuple(Panel.of(self, keyed[key], labels) for key in sorted(keyed))
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
    def link_scores(self) -> tuple[Result, ...]:
        own = tuple(r for r in self.results if r.task == LINKS)
        own = tuple(sorted(own, key=lambda r: place_of(r.metric, LINK_METRICS)))
        return own + tuple(r for part in self.parts for r in part.link_scores)


def _two(told: Any) -> tuple[str, str] | None:
    """A pair of languages, if that is what this is."""
    return (str(told[0]), str(told[1])) if isinstance(told, list) and len(told) == 2 else None


def name_of(code: str) -> str:
    """A language's English name; what is no language code stands for itself."""
    try:
        return language_name(code)
    except ValueError:
        return code


def pair_name(languages: Sequence[str]) -> str:
    """Two languages by name.

    >>> pair_name(("en", "de"))
    'English–German'
    """
    return "–".join(map(name_of, languages))


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
    if inside:
        parts = tuple(map(_read, inside))
        return Run(folder, parts=tuple(part for part in parts if part.results or part.grids) or parts)
    if not any((folder / sign).exists() for sign in _SIGNS):
        raise BadInput(
            "not a calque run: neither results nor a recipe here",
            where=folder,
            remedy="give the --out folder of `calque measure` or `calque link`, or a folder of such runs",
        )
    return _read(folder)


def _is_run(folder: Path) -> bool:
    return (folder / "results.jsonl").is_file() or (folder / FINISHED).is_file()


def _read(folder: Path) -> Run:
    recipe_text, results = _text(folder / "recipe.toml"), folder / "results.jsonl"
    artifacts = folder / "artifacts"
    run = Run(
        folder,
        _toml(recipe_text, folder / "recipe.toml"),
        recipe_text,
        _mapping(folder / "environment.json"),
        _mapping(folder / "cost.json"),
        _results(results) if results.is_file() else (),
        _parsed(artifacts / "examples.json", _example),
        _parsed(artifacts / "senses.json", _sense),
        _parsed(artifacts / "links.json", _grid),
        _mapping(artifacts / "counts.json"),
        _about(artifacts / "about.json"),
        finished(folder),
    )
    examples = (replace(one, languages=one.languages or run.languages) for one in run.examples)
    return replace(run, examples=tuple(examples))


def _results(path: Path) -> tuple[Result, ...]:
    """Results as they are, provided that they are numbers."""
    held = load_results(path)
    for number, result in enumerate(held, 1):
        figures = (result.value, result.low, result.high, result.p)
        if not all(figure is None or math.isfinite(figure) for figure in figures):
            raise BadInput("a figure that is not a number", where=path, line=number, remedy="measure again")
    return tuple(held)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"not TOML: {error}", where=path) from None


def _mapping(path: Path) -> dict[str, Any]:
    held = read_json(path) if path.is_file() else {}
    if not isinstance(held, dict):
        raise BadInput("should hold names and values", where=path, remedy="make the run again")
    return held


def _parsed(path: Path, parse: Any) -> tuple[Any, ...]:
    """Every record of a JSON list, or the number of the one that does not fit."""
    held = read_json(path) if path.is_file() else []
    if not isinstance(held, list):
        raise BadInput("should hold a list", where=path, remedy="make the run again")
    found = []
    for number, record in enumerate(held, 1):
        try:
            found.append(parse(record))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise BadInput(
                f"record {number} does not fit: {error!r}", where=path, remedy="make the run again"
            ) from None
    return tuple(found)


def _about(path: Path) -> About | None:
    if not path.is_file():
        return None
    held = _mapping(path)
    try:
        advice = tuple(Advice(str(one["text"]), str(one["command"])) for one in held.get("next", ()))
        return About(str(held["title"]), str(held["summary"]), advice)
    except (KeyError, TypeError) as error:
        raise BadInput(
            f"does not fit: {error!r}", where=path, remedy="title, summary, next: [{text, command}]"
        ) from None


def _sense(record: Mapping[str, Any]) -> Sense:
    languages, layer = _two(record["languages"]), record.get("layer")
    if languages is None:
        raise ValueError("languages are two codes")
    held = tuple(
        _example({"languages": list(languages), "direction": "forward", **one})
        for one in record["occurrences"]
    )
    return Sense(str(record["word"]), languages, layer, held)


def _example(record: Mapping[str, Any]) -> Example:
    query = {"word": record["query"], "sentence": record.get("sentence"), "index": record.get("index")}
    found = {
        str(label): Found(_place(held), bool(held.get("hit"))) for label, held in record["retrieved"].items()
    }
    languages = _two(record.get("languages"))
    return Example(str(record.get("direction", "")), _place(query), _place(record["gold"]), found, languages)


def _place(record: Mapping[str, Any]) -> Place:
    held, index = record.get("sentence"), record.get("index")
    sentence = _words(held) if isinstance(held, list) else ()
    known = isinstance(index, int) and 0 <= index < len(sentence)
    return Place(str(record["word"]), sentence, index if known else None)


def _grid(record: Mapping[str, Any]) -> Grid:
    source, target = _words(record["source"]), _words(record["target"])
    links = tuple(
        (int(link[0]), int(link[1]), float(link[2]) if len(link) > 2 else 1.0) for link in record["links"]
    )
    for i, j, _ in links:
        if not (0 <= i < len(source) and 0 <= j < len(target)):
            raise ValueError(f"link {i}-{j} in a pair of {len(source)} and {len(target)} words")
    return Grid(source, target, links, _two(record.get("languages")))


def _words(held: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(str, held))


def spread(values: Sequence[T], most: int) -> list[T]:
    """At most this many of the values, evenly spaced, with the first and the last.

    >>> spread(list(range(13)), 5)
    [0, 3, 6, 9, 12]
    """
    if len(values) <= most:
        return list(values)
    return [values[round(k * (len(values) - 1) / (most - 1))] for k in range(most)]
