"""Did it help, over seeds? Baseline and method, each trained with several seeds, on the same test items."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean, stdev
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from calque.errors import BadInput, BadSetting
from calque.recipe import Choice
from calque.stats.ratios import Ratio
from calque.stats.seed_tests import ROUNDING, Columns, Given, Pair, randomised, strata, student, uncertainty
from calque.types import Doubles, Longs

Mark: TypeAlias = Literal["better", "worse", ""]


class SeedTest(Choice):
    """How two sets of runs are compared.

    seeds-and-items  both are samples: Student's test with the variance of seeds and of items (the default)
    seed-t           Welch's test on the seeds' scores; conditional on these items
    item-t           paired t-test on the items' scores, averaged over seeds; conditional on these seeds
    randomisation    the arms exchanged at random, each prediction by itself; conditional on these seeds
    """

    BOTH = "seeds-and-items"
    SEED_T = "seed-t"
    ITEM_T = "item-t"
    RANDOMISATION = "randomisation"


@dataclass(frozen=True, eq=False)
class Runs:
    """One method's runs on one language's items, a row a seed.

    Shape: each of values (seeds, items), cluster (items,). Items of one cluster (a premise's hypotheses, a
    paragraph's questions) stay together.
    """

    values: Mapping[str, Doubles]
    cluster: Longs
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        shape = (len(self.seeds), len(self.cluster))
        if not all(shape):
            raise BadInput(f"{shape[0]} seeds and {shape[1]} items: there must be some of both")
        if len(set(self.seeds)) < len(self.seeds):
            raise BadInput(f"a seed occurs twice among {self.seeds}", remedy="one run a seed")
        for name, column in self.values.items():
            if np.shape(column) != shape:
                raise BadInput(f"{name} is of shape {np.shape(column)}, seeds and items of shape {shape}")
            if not np.isfinite(column).all():
                raise BadInput(f"{name} holds NaN or infinity")

    def of(self, seeds: Collection[int]) -> Runs:
        """The runs of these seeds alone, at least one of which must be here."""
        rows = [row for row, seed in enumerate(self.seeds) if seed in seeds]
        if len(rows) == len(self.seeds):
            return self
        columns = {name: column[rows] for name, column in self.values.items()}
        return Runs(columns, self.cluster, tuple(self.seeds[row] for row in rows))


class Arms(NamedTuple):
    """Seeds of the baseline's runs and of the method's, in order."""

    baseline: tuple[int, ...]
    method: tuple[int, ...]


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation (n − 1) of the seeds' scores; of one seed there is no deviation."""

    mean: float
    std: float | None
    seeds: int


@dataclass(frozen=True)
class SeedComparison:
    """What the method has more than the baseline, an interval of it, and the chance of so much by luck.

    `detectable` is the smallest true difference that so many seeds and items would show (p < .05) four times
    in five. Both it and the interval are None where there is nothing to estimate them from.
    """

    metric: str
    baseline: Spread
    method: Spread
    difference: float
    low: float | None
    high: float | None
    p: float
    detectable: float | None
    test: SeedTest
    given: Given
    items: int
    clusters: int
    languages: int = 1

    @property
    def conditional(self) -> bool:
        """Whether the answer is about these seeds or these items only."""
        return bool(self.given)

    @property
    def single(self) -> Literal["seed", "cluster", ""]:
        """What there is only one of, so that nobody can tell how much it matters."""
        if min(self.baseline.seeds, self.method.seeds) < 2:
            return "seed"
        return "cluster" if "items" in self.given and self.test != SeedTest.SEED_T else ""

    @property
    def mark(self) -> Mark:
        """Whether the mean leaves the baseline's by more than one of the baseline's standard deviations.

        This is a rule of thumb, not a test.
        """
        std = self.baseline.std
        if std is None or abs(self.difference) <= std + ROUNDING:
            return ""
        return "better" if self.difference > 0 else "worse"


def compare_means(
    languages: Sequence[tuple[Runs, Runs]],
    metric: Ratio,
    *,
    test: SeedTest = SeedTest.BOTH,
    paired_seeds: bool = False,
    parallel: bool = False,
    rounds: int = 1000,
    seed: int = 0,
) -> SeedComparison:
    """Compare means over languages of (baseline, method), the same trained models tested on each; or one.

    `paired_seeds`: runs of the same seed share their luck (data, order, head), and are compared one by one.
    `parallel`: the test sets are translations of each other, and a cluster has one number in all of them. The
    tests by item take every item of every language by itself. `rounds` and `seed` are for randomisation.
    """
    test = SeedTest.parse(test)
    _check(languages, metric, test, paired_seeds, rounds)
    columns = [_columns(*pair, metric) for pair in languages]
    by_item = test in (SeedTest.ITEM_T, SeedTest.RANDOMISATION)
    samples = strata(columns, by_item=by_item, parallel=parallel and not by_item)
    scores = _means([one.scores() for one in columns])
    baseline, method = (spread_of(arm.tolist()) for arm in scores)
    gain = method.mean - baseline.mean
    difference = gain if abs(gain) > ROUNDING else 0.0
    clusters = sum(pair[0].shape[1] for pair in samples)
    part, given = uncertainty(
        scores, samples, seeds=not by_item, items=test != SeedTest.SEED_T, paired=paired_seeds
    )
    least = _least(given, clusters, baseline.seeds, method.seeds, paired=paired_seeds)
    answer = None if part is None else student(difference, part, least)
    p = 1.0 if answer is None else answer.p
    return SeedComparison(
        metric=metric.name,
        baseline=baseline,
        method=method,
        difference=difference,
        low=answer and answer.low,
        high=answer and answer.high,
        p=randomised(columns, rounds, seed) if test == SeedTest.RANDOMISATION else p,
        detectable=answer and answer.detectable,
        test=test,
        given=given,
        items=sum(len(one.cluster) for one in columns),
        clusters=clusters,
        languages=len(columns),
    )


def _least(given: Given, clusters: int, baseline: int, method: int, *, paired: bool) -> float:
    """The chance that all move one way, either one: clusters of items; where these are given, seeds, each
    beside its own or all of one arm above all of the other."""
    if given != "these items":
        return 2 * 0.5**clusters
    return 2 * 0.5**baseline if paired else 2 / comb(baseline + method, method)


def comparable_seeds(
    languages: Sequence[tuple[Runs, Runs]], *, test: SeedTest = SeedTest.BOTH, paired_seeds: bool = False
) -> Arms:
    """The seeds that `compare_means` can take of (baseline, method): those that an arm has in all languages.

    Where runs are compared one by one, only those that both arms have: with `paired_seeds`, and in a
    randomisation of more runs against fewer. An arm may be left with one seed, or with none.
    """
    a, b = (frozenset.intersection(*(frozenset(pair[arm].seeds) for pair in languages)) for arm in (0, 1))
    if paired_seeds or (test == SeedTest.RANDOMISATION and len(a) != len(b)):
        a = b = a & b
    return Arms(tuple(sorted(a)), tuple(sorted(b)))


def _columns(baseline: Runs, method: Runs, metric: Ratio) -> Columns:
    """Rows in the order of their seeds, so that the order in which runs were given does not matter."""
    (a, c), (b, d) = (
        [side[np.argsort(runs.seeds)] for side in metric.parts(runs.values)] for runs in (baseline, method)
    )
    return Columns((a, b), (c, d), np.asarray(baseline.cluster, np.int64))


def _means(scores: Sequence[Pair]) -> Pair:
    """Each seed's mean over languages. Shape: (seeds,) twice."""
    a, b = (np.mean([pair[arm] for pair in scores], axis=0) for arm in (0, 1))
    return a, b


def spread_of(values: Sequence[float]) -> Spread:
    """Mean and standard deviation (n − 1); of one value there is no deviation.

    >>> spread_of([0.5, 0.75]).mean, spread_of([0.5]).std
    (0.625, None)
    """
    return Spread(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


# --------------------------------------------------------------------------------------------- checks


def _check(
    languages: Sequence[tuple[Runs, Runs]], metric: Ratio, test: SeedTest, paired_seeds: bool, rounds: int
) -> None:
    if not languages:
        raise BadInput("no language to compare on")
    if rounds < 1:
        raise BadSetting(f"rounds is {rounds}", remedy="1 or more")
    for baseline, method in languages:
        _check_items(baseline, method, metric)
    for arm in (0, 1):
        if len({tuple(sorted(pair[arm].seeds)) for pair in languages}) > 1:
            raise BadInput("languages have runs of different seeds", remedy="test the same models on all")
    baseline, method = languages[0]
    if paired_seeds and set(baseline.seeds) != set(method.seeds):
        raise BadInput(f"seeds {baseline.seeds} cannot be paired with {method.seeds}")
    if test == SeedTest.RANDOMISATION and len(baseline.seeds) != len(method.seeds):
        raise BadInput(
            f"randomisation exchanges runs one by one: {len(baseline.seeds)} seeds against "
            f"{len(method.seeds)}",
            remedy=f"as many seeds of both, or {SeedTest.BOTH}",
        )


def _check_items(baseline: Runs, method: Runs, metric: Ratio) -> None:
    if not np.array_equal(baseline.cluster, method.cluster):
        raise BadInput(
            f"{len(baseline.cluster)} items of the baseline and {len(method.cluster)} of the method are not "
            "the same",
            remedy="test both on the same items, in one order",
        )
    for name in sorted(baseline.values.keys() & method.values.keys()):
        if is_gold(name):
            _check_gold(name, baseline.values[name], method.values[name])
    for runs in (baseline, method):
        if missing := [name for name in metric.columns if name not in runs.values]:
            raise BadInput(f"{metric.name} needs {', '.join(missing)}, which these runs do not have")


def is_gold(name: str) -> bool:
    """Whether a column counts what is there, whatever was predicted.

    >>> [is_gold(name) for name in ("scored_words", "span_gold", "span_predicted", "right")]
    [True, True, False, False]
    """
    return name in ("count", "words", "scored_words") or name.endswith("_gold")


def _check_gold(name: str, baseline: Doubles, method: Doubles) -> None:
    """Every run of both arms counts the same in an item. Shape: (seeds, items) each."""
    told = baseline[0]
    odd = (baseline != told).any(0) | (method != told).any(0)
    if odd.any():
        place = int(odd.argmax())
        found = sorted({*baseline[:, place].tolist(), *method[:, place].tolist()})
        raise BadInput(
            f"{name} of item {place} is {' and '.join(f'{value:g}' for value in found)} in different runs, "
            f"and differs in {int(odd.sum())} of {len(told)} items: these were read or scored otherwise",
            remedy="test all runs on the same items with the same settings",
        )
