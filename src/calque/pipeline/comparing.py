"""`calque compare`: whether a method helped a task, over seeds and items, with a verdict in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from pydantic import Field

from calque.errors import BadSetting
from calque.files import finished, is_done, write_json
from calque.pipeline.comparable import (
    Gap,
    Match,
    Pairs,
    Selected,
    averages,
    gap_notes,
    matchable,
    matched,
    selected,
)
from calque.pipeline.measuring.common import Many, each
from calque.pipeline.runs import FEWEST_ROUNDS, running
from calque.pipeline.transferred import TransferFolder, pooled, told_apart
from calque.pipeline.transferring import NOTHING_VARIES, VARIES
from calque.recipe import Recipe, suggestion
from calque.stats.ratios import Ratio
from calque.stats.seed_verdicts import SeedVerdict, overall, verdicts
from calque.stats.seeds import Runs, SeedComparison, SeedTest, compare_means
from calque.stats.signature import signature
from calque.stats.tasks import metric_of, metrics_of
from calque.stats.translations import shared_clusters
from calque.store import save_results
from calque.types import Result

COMPARISON = "comparison.json"
#: What a row over all languages but those of the training data is told by.
MEAN = "mean"


class CompareRecipe(Recipe):
    """Settings of `calque compare`.

    `baseline` is the label of the runs that others are compared with, by default the first run's. A task's
    first metric is compared unless another is named. `test` is explained by `SeedTest`; `paired_seeds` says
    that runs of one seed share their luck. With `pool`, runs of one label and task are parts of one: its
    seeds, or its languages; where some are not here, what can be compared is, and notes tell what was left
    out. `varies` is what differs between seeds, in words.
    """

    verb: ClassVar[str] = "compare"
    places: ClassVar[frozenset[str]] = frozenset({"runs"})

    runs: list[str]
    baseline: str | None = None
    metric: str | None = None
    test: SeedTest = SeedTest.BOTH
    paired_seeds: bool = False
    pool: bool = False
    varies: str = VARIES
    level: float = Field(0.05, gt=0, lt=1)
    rounds: int = Field(1000, ge=FEWEST_ROUNDS)


@dataclass(frozen=True)
class Row:
    """One comparison: a method with the baseline in one language, or over all that were not trained on.

    `languages` are those that it is over.
    """

    task: str
    language: str
    method: str
    languages: tuple[str, ...]
    verdict: SeedVerdict

    @property
    def comparison(self) -> SeedComparison:
        return self.verdict.comparison

    def record(self) -> dict[str, Any]:
        """Everything about it, for programs and pages; scores from 0 to 1."""
        told = self.comparison
        return {
            "task": self.task,
            "language": self.language,
            "method": self.method,
            "languages": list(self.languages),
            "metric": told.metric,
            "baseline mean": told.baseline.mean,
            "baseline std": told.baseline.std,
            "method mean": told.method.mean,
            "method std": told.method.std,
            "seeds": [told.baseline.seeds, told.method.seeds],
            "items": told.items,
            "difference": told.difference,
            "low": told.low,
            "high": told.high,
            "p": told.p,
            "holm": self.verdict.corrected,
            "mark": told.mark,
            "detectable": told.detectable,
            "finding": self.verdict.finding,
            "given": told.given,
            "line": self.verdict.line(),
        }


@dataclass(frozen=True)
class Comparison:
    """Everything that `compare` found: single languages, tasks, and one sentence for all.

    p-values of all `rows` are corrected for each other, those of all `tasks` likewise. `trained` are the
    languages of each task's training data, `by_run` those of each label where they differ.
    """

    baseline: str
    test: SeedTest
    rows: Sequence[Row]
    tasks: Sequence[Row]
    notes: Sequence[str]
    trained: Mapping[str, Sequence[str]] = field(default_factory=dict)
    varies: str = VARIES
    folder: Path | None = None
    by_run: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def overall(self) -> str:
        """The verdict on all tasks, a clause a method."""
        methods = list(dict.fromkeys(row.method for row in self.tasks))
        told = [
            (
                method,
                overall([replace(row.verdict, name=row.task) for row in self.tasks if row.method == method]),
            )
            for method in methods
        ]
        if not told:
            return "no mean over languages could be compared"
        return "; ".join(f"{method}: {line.removeprefix('overall: ')}" for method, line in told)

    def record(self) -> dict[str, Any]:
        """For programs and pages."""
        return {
            "baseline": self.baseline,
            "test": self.test.value,
            "a seed varies": self.varies,
            "rows": [row.record() for row in self.rows],
            "tasks": [row.record() for row in self.tasks],
            "overall": self.overall,
            "trained": {task: list(codes) for task, codes in self.trained.items()},
            "trained by run": {label: list(codes) for label, codes in self.by_run.items()},
            "notes": list(self.notes),
        }


def compare(
    runs: Many, *, out: str | Path | None = None, overwrite: bool = False, **settings: Any
) -> Comparison:
    """Compare runs of `calque transfer` with the baseline's of the same task; settings as in `CompareRecipe`.

    With `out` a folder is written for `calque report`.
    """
    recipe = CompareRecipe.build(runs=each(runs), **settings)
    read = [TransferFolder.read(Path(path)) for path in recipe.runs]
    held = pooled(read) if recipe.pool else told_apart(read)
    found = compared(recipe, held)
    if out is None:
        return found
    folder = Path(out)
    parts = [part for one in held for part in one.parts or (one,)]
    inputs = {f"run {i} {one.label}": str(finished(one.folder)) for i, one in enumerate(parts)}
    recipe = recipe.model_copy(update={"inputs": inputs})
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        with running(recipe, folder, overwrite=overwrite) as run:
            write_json(run.folder / "artifacts" / COMPARISON, found.record())
            save_results(run.folder / "results.jsonl", list(results(found)))
    return replace(found, folder=folder)


def compared(recipe: CompareRecipe, held: Sequence[TransferFolder]) -> Comparison:
    """Every run with the baseline of its task."""
    labels = list(dict.fromkeys(one.label for one in held))
    baseline = recipe.baseline or (labels[0] if labels else "")
    if baseline not in labels:
        raise BadSetting(f"no run is called {baseline!r}", remedy=suggestion(baseline, labels))
    found = _compared(recipe, held, baseline)
    # Where nothing at all can be compared, the way that leaves nothing out says why.
    return found if found.rows else _compared(recipe.model_copy(update={"pool": False}), held, baseline)


def _compared(recipe: CompareRecipe, held: Sequence[TransferFolder], baseline: str) -> Comparison:
    found = (matchable if recipe.pool else matched)(held, baseline)
    over = averages(found.held)
    single: dict[Key, Tested] = {}
    means: dict[Key, Tested] = {}
    apart: set[str] = set()
    for match in found.held:
        pairs, key = match.pairs(), (match.task, match.method)
        for code, pair in pairs.items():
            single[match.task, code, match.method] = tested(recipe, match, {code: pair}, mean=False)
        if key in over.languages:
            chosen = {code: pairs[code] for code in over.languages[key]}
            means[match.task, MEAN, match.method] = tested(recipe, match, chosen, mean=True)
            apart.update(independent(recipe, match, chosen))
    several = len({match.method for match in found.held}) > 1
    notes = {note for one in held for note in one.notes}
    every = [*single.items(), *means.items()]
    gaps = gap_notes(gap for _, one in every for gap in one.gaps)
    return Comparison(
        baseline,
        recipe.test,
        rows_of(single, recipe.level, several=several),
        rows_of(means, recipe.level, several=several),
        sorted(notes.union(found.notes, over.notes, apart, gaps, unlearned(every))),
        learned_in(found.held),
        _varying(recipe, held),
        by_run=learned_by(found.held),
    )


def _varying(recipe: CompareRecipe, held: Sequence[TransferFolder]) -> str:
    """What differs between seeds: as told, but nothing where single models were only tested."""
    alone = (one.data.get("a seed varies") == NOTHING_VARIES and not one.parts for one in held)
    return NOTHING_VARIES if recipe.varies == VARIES and all(alone) else recipe.varies


def unlearned(held: Iterable[tuple[Key, Tested]]) -> Iterator[str]:
    """Tasks in which every run scores nothing: no difference can be seen there."""
    scores: dict[str, set[float]] = {}
    metrics: dict[str, str] = {}
    for (task, *_), one in held:
        if (told := one.comparison) is not None:
            scores.setdefault(task, set()).update((told.baseline.mean, told.method.mean))
            metrics[task] = told.metric
    for task, found in scores.items():
        if found == {0.0}:
            what = f"{metrics[task]} is 0 in every run"
            yield f"{task}: {what}: nothing was learned, so nothing can be compared"


#: A task, a language or `MEAN`, and a method.
Key: TypeAlias = tuple[str, str, str]


def learned_in(found: Sequence[Match]) -> dict[str, list[str]]:
    """The languages of the training data of every task that was compared."""
    learned: dict[str, set[str]] = {}
    for one in found:
        learned.setdefault(one.task, set()).update(one.trained)
    return {task: sorted(codes) for task, codes in learned.items()}


def learned_by(found: Sequence[Match]) -> dict[str, list[str]]:
    """The same of every run by its label, where they are not the same; else nothing."""
    if all(one.base.trained == one.other.trained for one in found):
        return {}
    learned: dict[str, set[str]] = {}
    for one in found:
        learned.setdefault(one.base.label, set()).update(one.base.trained)
        learned.setdefault(one.method, set()).update(one.other.trained)
    return {label: sorted(codes) for label, codes in learned.items()}


@dataclass(frozen=True)
class Tested:
    """What a comparison over these languages found, None where no seed was left; and what was left out."""

    comparison: SeedComparison | None
    languages: tuple[str, ...]
    gaps: Sequence[Gap] = ()


def tested(recipe: CompareRecipe, match: Match, pairs: Pairs, *, mean: bool) -> Tested:
    """A method with the baseline over these languages; with `pool`, without seeds that do not fit."""
    chosen = Selected(pairs, ())
    if recipe.pool:
        chosen = selected(match, pairs, test=recipe.test, paired_seeds=recipe.paired_seeds, mean=mean)
    if not chosen.pairs:
        return Tested(None, tuple(pairs), chosen.gaps)
    task, name = match.task, recipe.metric
    metric = metrics_of(task)[0] if name is None else metric_of(task, name)
    options: dict[str, Any] = {
        "test": recipe.test,
        "paired_seeds": recipe.paired_seeds,
        "rounds": recipe.rounds,
        "seed": recipe.seed,
    }
    return Tested(mean_of(list(chosen.pairs.values()), metric, options), tuple(pairs), chosen.gaps)


def mean_of(pairs: Sequence[tuple[Runs, Runs]], metric: Ratio, options: Mapping[str, Any]) -> SeedComparison:
    """The comparison over languages; test sets whose items belong together the same way are translations."""
    shared = shared_clusters([one.cluster for one, _ in pairs]) if len(pairs) > 1 else None
    if shared is None or not all(np.array_equal(a.cluster, b.cluster) for a, b in pairs):
        return compare_means(pairs, metric, **options)
    joined = [(replace(a, cluster=shared), replace(b, cluster=shared)) for a, b in pairs]
    return compare_means(joined, metric, parallel=True, **options)


#: Tasks whose tests are mostly translations of one; other tests of different items are just other texts.
TRANSLATED = ("nli", "qa")


def independent(recipe: CompareRecipe, match: Match, pairs: Pairs) -> Iterator[str]:
    """That tests which may be translations are not taken for them, where items matter by clusters."""
    if match.task not in TRANSLATED or recipe.test != SeedTest.BOTH or len(pairs) < 2:
        return
    if shared_clusters([one.cluster for one, _ in pairs.values()]) is None:
        yield (
            f"{match.task}: the tests of {', '.join(pairs)} do not match item by item, and are taken as "
            "independent; if they are translations of each other, p of their mean is too small"
        )


def rows_of(given: Mapping[Key, Tested], level: float, *, several: bool) -> list[Row]:
    """Comparisons corrected for each other: all that there are, whatever their task, language and method.

    With `several` methods each is named.
    """
    held = {key: one.comparison for key, one in given.items() if one.comparison is not None}
    named = {
        key: f"{key[0]}{'' if key[1] == MEAN else ' ' + key[1]}{' by ' + key[2] if several else ''}"
        for key in held
    }
    found = verdicts({named[key]: told for key, told in held.items()}, level=level)
    return [Row(*key, given[key].languages, verdict) for key, verdict in zip(held, found, strict=True)]


def results(found: Comparison) -> Iterator[Result]:
    """The comparison as results: means over seeds, and differences with their p-values."""
    for row in found.rows:
        told, name = row.comparison, f"transfer-{row.task}"
        shared = {
            "task": name,
            "metric": told.metric,
            "languages": ("", row.language),
            "count": told.items,
            "signature": signature(task=name, test=told.test.value, seeds=told.baseline.seeds),
        }
        for label, spread in ((found.baseline, told.baseline), (row.method, told.method)):
            yield Result(value=spread.mean, encoder=label, **shared)  # type: ignore[arg-type]
        yield Result(
            value=told.difference,
            encoder=row.method,
            baseline=found.baseline,
            low=told.low,
            high=told.high,
            p=told.p,
            **shared,  # type: ignore[arg-type]
        )
