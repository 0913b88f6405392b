"""`calque compare`: whether a method helped a task, over seeds and items, with a verdict in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from calque.errors import BadInput, BadSetting
from calque.files import finished, is_done, read_json, write_json
from calque.pipeline.measuring.common import Many, each
from calque.pipeline.runs import running
from calque.pipeline.transferring import DATA, VARIES
from calque.recipe import Recipe, suggestion
from calque.stats.ratios import Ratio
from calque.stats.seed_verdicts import SeedVerdict, overall, verdicts
from calque.stats.seeds import Runs, SeedComparison, SeedTest, compare_means, compare_runs
from calque.stats.signature import signature
from calque.stats.tasks import metric_of, metrics_of
from calque.store import load_items, load_results, save_results
from calque.types import Items, Result

COMPARISON = "comparison.json"
#: What a row over all languages but those of the training data is told by.
MEAN = "mean"


class CompareRecipe(Recipe):
    """Settings of `calque compare`.

    `baseline` is the label of the runs that others are compared with, by default the first run's. A task's
    first metric is compared unless another is named. `test` is explained by `SeedTest`; `paired_seeds` says
    that runs of one seed share their luck. With `pool`, runs of one label and task are parts of one: its
    seeds, or its languages. `varies` is what differs between seeds, in words.
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
    rounds: int = Field(1000, ge=1)


@dataclass(frozen=True, eq=False)
class TransferFolder:
    """A finished run of `calque transfer`, read back; or several of one label and task, its `parts`."""

    folder: Path
    label: str
    data: Mapping[str, Any]
    results: Sequence[Result]
    parts: Sequence[TransferFolder] = ()

    @classmethod
    def read(cls, folder: Path) -> TransferFolder:
        marker = finished(folder)
        if marker is None or marker.get("verb") != "transfer":
            raise BadInput(
                "not a finished run of `calque transfer`",
                where=folder,
                remedy="give folders that it wrote; start an unfinished one again to finish it",
            )
        data = read_json(folder / "artifacts" / DATA)
        return cls(folder, str(data["label"]), data, load_results(folder / "results.jsonl"))

    @property
    def task(self) -> str:
        return str(self.data["task"])

    @property
    def tests(self) -> dict[str, str]:
        """Fingerprints of what was tested, by language."""
        return {one["language"]: one["fingerprint"] for one in self.data["test"]}

    @property
    def trained(self) -> frozenset[str]:
        return frozenset(one["language"] for one in self.data["train"])

    @property
    def notes(self) -> list[str]:
        """What figures of this run must be read with."""
        return sorted({f"{self.label}: {one.note}" for one in self.results if one.note})

    @cached_property
    def _items(self) -> dict[tuple[str, int], tuple[Path, str]]:
        """Where item statistics of each language and seed lie."""
        return {
            (one.languages[1], one.seed): (part.folder / "items", one.items)
            for part in self.parts or (self,)
            for one in part.results
            if one.items
        }

    def runs(self, language: str) -> Runs:
        """Item statistics of every seed in one language."""
        seeds = sorted(seed for told, seed in self._items if told == language)
        held: list[Items] = [load_items(*self._items[language, seed]) for seed in seeds]
        columns = {name: np.stack([one.values[name] for one in held]) for name in held[0].values}
        return Runs(columns, held[0].cluster, tuple(seeds))


@dataclass(frozen=True)
class Row:
    """One comparison: a method with the baseline in one language, or over all that were not trained on."""

    task: str
    language: str
    method: str
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

    p-values of languages are corrected for each other, those of tasks likewise.
    """

    baseline: str
    test: SeedTest
    rows: Sequence[Row]
    tasks: Sequence[Row]
    notes: Sequence[str]
    trained: Sequence[str] = ()
    varies: str = VARIES
    folder: Path | None = None

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
            "trained": list(self.trained),
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
    inputs = {f"run {i} {one.label}": str(finished(one.folder)) for i, one in enumerate(held)}
    recipe = recipe.model_copy(update={"inputs": inputs})
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        with running(recipe, folder, overwrite=overwrite) as run:
            write_json(run.folder / "artifacts" / COMPARISON, found.record())
            save_results(run.folder / "results.jsonl", list(results(found)))
    return replace(found, folder=folder)


def told_apart(held: Sequence[TransferFolder]) -> list[TransferFolder]:
    """Runs of one task by different names: their labels, or those of their folders where labels are alike."""
    names = [(one.task, one.label) for one in held]
    return [
        TransferFolder(one.folder, one.folder.resolve().name, one.data, one.results)
        if names.count((one.task, one.label)) > 1
        else one
        for one in held
    ]


def pooled(held: Sequence[TransferFolder]) -> list[TransferFolder]:
    """Runs of one label and task as one, which has the seeds and languages of them all."""
    found: dict[tuple[str, str], list[TransferFolder]] = {}
    for one in held:
        found.setdefault((one.task, one.label), []).append(one)
    return [parts[0] if len(parts) == 1 else _pooled(parts) for parts in found.values()]


def _pooled(parts: Sequence[TransferFolder]) -> TransferFolder:
    first = parts[0]
    tests: dict[str, Any] = {}
    done: dict[tuple[str, int], Path] = {}
    for part in parts:
        if part.trained != first.trained:
            raise BadInput(f"trained on other languages than {first.folder}", where=part.folder)
        for one in part.data["test"]:
            known = tests.setdefault(one["language"], one)
            if known["fingerprint"] != one["fingerprint"]:
                raise BadInput(
                    f"tested on other items in {one['language']} than another run of {first.label}",
                    where=part.folder,
                    remedy="test all seeds on the same file with the same limits",
                )
        for language, seed in part._items:
            if (language, seed) in done:
                raise BadInput(
                    f"seed {seed} in {language} is also in {done[language, seed]}",
                    where=part.folder,
                    remedy="give each seed of a method once",
                )
            done[language, seed] = part.folder
    data = {**first.data, "test": list(tests.values()), "seeds": sorted({seed for _, seed in done})}
    results = [one for part in parts for one in part.results]
    return TransferFolder(first.folder, first.label, data, results, tuple(parts))


def compared(recipe: CompareRecipe, held: Sequence[TransferFolder]) -> Comparison:
    """Every run with the baseline of its task."""
    labels = list(dict.fromkeys(one.label for one in held))
    baseline = recipe.baseline or (labels[0] if labels else "")
    if baseline not in labels:
        raise BadSetting(f"no run is called {baseline!r}", remedy=suggestion(baseline, labels))
    single: dict[tuple[str, str, str], SeedComparison] = {}
    means: dict[tuple[str, str, str], SeedComparison] = {}
    matches = list(matched(held, baseline))
    for base, other in matches:
        metric = metrics_of(base.task)[0] if recipe.metric is None else metric_of(base.task, recipe.metric)
        pairs = {language: (base.runs(language), other.runs(language)) for language in common(base, other)}
        options: dict[str, Any] = {
            "test": recipe.test,
            "paired_seeds": recipe.paired_seeds,
            "rounds": recipe.rounds,
            "seed": recipe.seed,
        }
        for language, pair in pairs.items():
            single[base.task, language, other.label] = compare_runs(*pair, metric, **options)
        shared = everywhere([two for two in matches if two[0] is base])
        foreign = {code: pairs[code] for code in shared if code not in base.trained} or pairs
        means[base.task, MEAN, other.label] = mean_of(list(foreign.values()), metric, options)
    return Comparison(
        baseline,
        recipe.test,
        rows_of(single, recipe.level),
        rows_of(means, recipe.level),
        sorted({note for one in held for note in one.notes} | set(left_out(matches))),
        sorted(frozenset[str]().union(*(one.trained for one in held))),
        recipe.varies,
    )


def matched(held: Sequence[TransferFolder], baseline: str) -> Iterator[tuple[TransferFolder, TransferFolder]]:
    """Every run that is not the baseline, with the baseline of its task."""
    bases = {one.task: one for one in held if one.label == baseline}
    others = [one for one in held if one.label != baseline]
    if not others:
        raise BadSetting(
            f"only the baseline {baseline} is here", remedy="give the runs to compare with it as well"
        )
    for other in others:
        if other.task not in bases:
            raise BadSetting(
                f"{other.task} was run with {other.label}, but not with the baseline {baseline}",
                where=other.folder,
                remedy="run the baseline on the same data first: a gain is a gain over something",
            )
        yield bases[other.task], other


def common(base: TransferFolder, other: TransferFolder) -> list[str]:
    """The languages that both were tested in, on the same items."""
    shared = [language for language in base.tests if language in other.tests]
    for language in shared:
        if base.tests[language] != other.tests[language]:
            raise BadInput(
                f"tested on other items in {language} than {base.folder}",
                where=other.folder,
                remedy="test both on the same file with the same limits",
            )
    missing = [language for language in other.tests if language not in base.tests]
    if missing or not shared:
        raise BadInput(
            f"the baseline was not tested in {', '.join(missing) or 'any of its languages'}",
            where=base.folder,
        )
    return shared


def everywhere(matches: Sequence[tuple[TransferFolder, TransferFolder]]) -> list[str]:
    """The languages that all methods of a task were tested in: means are taken over the same ones."""
    found = [common(base, other) for base, other in matches]
    return [language for language in found[0] if all(language in one for one in found)]


def left_out(matches: Sequence[tuple[TransferFolder, TransferFolder]]) -> Iterator[str]:
    """What is said of languages that a mean is not taken over."""
    for task in dict.fromkeys(base.task for base, _ in matches):
        own = [two for two in matches if two[0].task == task]
        shared = everywhere(own)
        lost = sorted({code for base, other in own for code in common(base, other)} - set(shared))
        if lost:
            yield f"{task}: {', '.join(lost)} not in the mean, as not all runs were tested in it"


def mean_of(pairs: Sequence[tuple[Runs, Runs]], metric: Ratio, options: Mapping[str, Any]) -> SeedComparison:
    """The comparison over languages; test sets whose items belong together the same way are translations."""
    first = pairs[0][0].cluster
    parallel = len(pairs) > 1 and all(np.array_equal(first, one.cluster) for one, _ in pairs)
    return compare_means(pairs, metric, parallel=parallel, **options)


def rows_of(held: Mapping[tuple[str, str, str], SeedComparison], level: float) -> list[Row]:
    """Comparisons corrected for each other."""
    several = len({method for _, _, method in held}) > 1
    named = {
        key: f"{key[0]}{'' if key[1] == MEAN else ' ' + key[1]}{' by ' + key[2] if several else ''}"
        for key in held
    }
    found = verdicts({named[key]: told for key, told in held.items()}, level=level)
    return [Row(*key, verdict) for key, verdict in zip(held, found, strict=True)]


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
