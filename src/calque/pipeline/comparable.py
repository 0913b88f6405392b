"""Which runs can be compared, and what is said of the rest: tasks, languages and seeds that one side lacks.

`matched` takes all or nothing, for runs that somebody named one by one. `matchable` leaves out what cannot be
compared, for all runs of a study, where one that failed must not take the others with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from calque.errors import BadInput, BadSetting
from calque.pipeline.transferred import TransferFolder, differing
from calque.stats.seeds import Arms, Runs, SeedTest, comparable_seeds

#: The languages that a model of another's learned in.
UNTOLD = "what its model does not tell"
#: Runs of the baseline and of the method, by language.
Pairs: TypeAlias = Mapping[str, tuple[Runs, Runs]]


@dataclass(frozen=True)
class Match:
    """A method and the baseline on one task, in the languages that both were tested in, on the same items."""

    base: TransferFolder
    other: TransferFolder
    languages: tuple[str, ...]

    @property
    def task(self) -> str:
        return self.base.task

    @property
    def method(self) -> str:
        return self.other.label

    @property
    def trained(self) -> frozenset[str]:
        """The languages that either learned in."""
        return self.base.trained | self.other.trained

    @property
    def tests(self) -> tuple[str, ...]:
        """The languages that either was tested in."""
        return tuple(dict.fromkeys((*self.base.tests, *self.other.tests)))

    def pairs(self) -> Pairs:
        """Item statistics of both in every language."""
        return {code: (self.base.runs(code), self.other.runs(code)) for code in self.languages}


@dataclass(frozen=True)
class Matches:
    """What is compared with what, and what is said of the rest."""

    held: Sequence[Match]
    notes: Sequence[str] = ()


# ------------------------------------------------------------------------------- tasks and languages


def matched(held: Sequence[TransferFolder], baseline: str) -> Matches:
    """Every run that is not the baseline, with the baseline of its task; an error where one lacks it."""
    bases, others = _sides(held, baseline)
    if not others:
        raise BadSetting(
            f"only the baseline {baseline} is here", remedy="give the runs to compare with it as well"
        )
    found = [_match(bases, other, baseline) for other in others]
    return Matches(found, list(_otherwise(found)))


def matchable(held: Sequence[TransferFolder], baseline: str) -> Matches:
    """Every run that can be compared with the baseline of its task, where it can be."""
    bases, others = _sides(held, baseline)
    pairs = [(bases[other.task], other) for other in others if other.task in bases]
    found = [Match(base, other, tuple(common(base, other))) for base, other in pairs]
    notes = [*_baseless(bases, others, baseline), *_methodless(bases, others), *_untested(found)]
    notes += _otherwise(found)
    return Matches(found, notes)


def _sides(
    held: Sequence[TransferFolder], baseline: str
) -> tuple[dict[str, TransferFolder], list[TransferFolder]]:
    """The baseline's runs by task, and all others."""
    bases = {one.task: one for one in held if one.label == baseline}
    return bases, [one for one in held if one.label != baseline]


def _match(bases: Mapping[str, TransferFolder], other: TransferFolder, baseline: str) -> Match:
    if other.task not in bases:
        raise BadSetting(
            f"{other.task} was run with {other.label}, but not with the baseline {baseline}",
            where=other.folder,
            remedy="run the baseline on the same data first: a gain is a gain over something",
        )
    base = bases[other.task]
    shared, missing = common(base, other), beyond(other, base)
    if missing or not shared:
        raise BadInput(
            f"the baseline was not tested in {', '.join(missing) or 'any of its languages'}",
            where=base.folder,
        )
    return Match(base, other, tuple(shared))


def common(base: TransferFolder, other: TransferFolder) -> list[str]:
    """The languages that both were tested in, on the same items, which both read and scored alike."""
    if differ := differing(other.reading, base.reading):
        raise BadSetting(
            f"tests were read or scored otherwise than in {base.folder}: {differ}",
            where=other.folder,
            remedy="test both with the same settings",
        )
    shared = [language for language in base.tests if language in other.tests]
    for language in shared:
        if base.tests[language] != other.tests[language]:
            raise BadInput(
                f"tested on other items in {language} than {base.folder}",
                where=other.folder,
                remedy="test both on the same file with the same limits",
            )
    return shared


def beyond(one: TransferFolder, other: TransferFolder) -> tuple[str, ...]:
    """The languages that only the first was tested in."""
    return tuple(language for language in one.tests if language not in other.tests)


def _baseless(
    bases: Mapping[str, TransferFolder], others: Sequence[TransferFolder], baseline: str
) -> Iterator[str]:
    """Tasks that the baseline was not run on."""
    for task in dict.fromkeys(one.task for one in others if one.task not in bases):
        names = ", ".join(one.label for one in others if one.task == task)
        yield f"{task}: not compared, as no run of the baseline {baseline} is here, only of {names}"


def _methodless(bases: Mapping[str, TransferFolder], others: Sequence[TransferFolder]) -> Iterator[str]:
    """Tasks that a method was not run on."""
    done = {(one.task, one.label) for one in others}
    for label in dict.fromkeys(one.label for one in others):
        for task in bases:
            if (task, label) not in done:
                yield f"{label}: {task}: not compared, as no run of it is here"


def _untested(found: Sequence[Match]) -> Iterator[str]:
    """Languages that one side was tested in and the other was not."""
    alone: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for one in found:
        if codes := beyond(one.other, one.base):
            alone.setdefault((one.task, one.base.label, codes), []).append(one.method)
        if codes := beyond(one.base, one.other):
            told = f"not compared in {', '.join(codes)}, as it was not tested there"
            yield f"{one.method}: {one.task}: {told}"
    for (task, label, codes), methods in alone.items():
        told = f"not compared in {', '.join(codes)}, as the baseline {label} was not tested there"
        yield f"{task}: {', '.join(methods)} {told}"


def _otherwise(found: Sequence[Match]) -> Iterator[str]:
    """What was trained otherwise than the baseline: that may be what is compared, and must be known."""
    for one in found:
        base, other = one.base, one.other
        own, theirs = (", ".join(sorted(run.trained)) or UNTOLD for run in (other, base))
        if base.trained != other.trained or not base.trained:
            yield f"{one.method}: {one.task}: learned in {own}, the baseline {base.label} in {theirs}"
        differ = "" if base.only_tests or other.only_tests else differing(*_ways(other, base))
        if differ:
            yield f"{one.method}: {one.task}: trained otherwise than {base.label}: {differ}"


def _ways(*runs: TransferFolder) -> Iterator[dict[str, Any]]:
    """How each was trained; what chose among epochs only where all were chosen by one thing."""
    alone = not any(run.parts for run in runs)
    return (run.training | (run.chosen_by if alone else {}) for run in runs)


# --------------------------------------------------------------------------------------------- means


@dataclass(frozen=True)
class Averages:
    """The languages that each method's mean on each task is over, and what is said of others."""

    languages: Mapping[tuple[str, str], tuple[str, ...]]
    notes: Sequence[str]


def averages(found: Sequence[Match]) -> Averages:
    """Means of one task are over the same languages for all its methods, where they have any in common."""
    tasks = [[one for one in found if one.task == task] for task in dict.fromkeys(m.task for m in found)]
    parts = [_averages(own) for own in tasks]
    return Averages(
        {key: codes for part in parts for key, codes in part.languages.items()},
        [note for part in parts for note in part.notes],
    )


def _averages(own: Sequence[Match]) -> Averages:
    """Of one task: over languages that no run learned in; else the baseline did not; else over all."""
    task, base = own[0].task, own[0].base.trained
    tests = list(dict.fromkeys(code for one in own for code in one.tests))
    every = base.union(*(one.trained for one in own))
    unlearned = ([code for code in tests if code not in known] for known in (every, base))
    wanted = next(filter(None, unlearned), tests)
    held = {one.method: tuple(code for code in one.languages if code in wanted) for one in own}
    able = {method: codes for method, codes in held.items() if codes}
    notes = [
        f"{method}: {task}: no mean, as it and the baseline share no language but those of the training data"
        for method in held
        if method not in able
    ]
    if knowing := [one.method for one in own if one.other.trained - base & set(wanted)]:
        told = "learned in a language that the mean is over: that is not transfer"
        notes.append(f"{task}: {', '.join(knowing)} {told}")
    shared = tuple(code for code in wanted if all(code in codes for codes in able.values()))
    if able and not shared:
        told = "; ".join(f"{', '.join(codes)} of {method}" for method, codes in able.items())
        notes.append(f"{task}: no language was tested with all methods: the mean is over {told}")
    elif lost := sorted(set(wanted) - set(shared)):
        which = "it" if len(lost) == 1 else "them"
        notes.append(f"{task}: {', '.join(lost)} not in the mean, as not all runs were tested in {which}")
    return Averages({(task, method): shared or codes for method, codes in able.items()}, notes)


# --------------------------------------------------------------------------------------------- seeds


@dataclass(frozen=True)
class Gap:
    """Seeds that `label` lacks in some languages, so that they are left out of the comparison of `arms`.

    Without seeds nothing is left to compare: `label` has none in all the languages, or none that `arms` has.
    `mean`: out of the mean over languages, not out of the languages themselves.
    """

    task: str
    label: str
    seeds: tuple[int, ...]
    languages: tuple[str, ...]
    arms: tuple[str, ...]
    mean: bool

    def __str__(self) -> str:
        where, names = ", ".join(self.languages), " and ".join(self.arms)
        told = self._lacking(where, names) if self.seeds else self._none(where, names)
        return f"{self.label}: {self.task}: {told}"

    def _lacking(self, where: str, names: str) -> str:
        seeds, place = ", ".join(map(str, self.seeds)), "in the mean" if self.mean else "there"
        if len(self.seeds) == 1:
            return f"seed {seeds} is missing in {where}; {place} it is left out of {names}"
        return f"seeds {seeds} are missing in {where}; {place} they are left out of {names}"

    def _none(self, where: str, names: str) -> str:
        place = "no mean" if self.mean else f"not compared in {where}"
        if self.arms == (self.label,):
            return f"{place}, as no seed is there in all of {where}"
        return f"{place}, as it has no seed in common with {names}"


@dataclass(frozen=True)
class Selected:
    """The runs that are compared in some languages, none where nothing is left; and the seeds left out."""

    pairs: Pairs
    gaps: Sequence[Gap]


def selected(match: Match, pairs: Pairs, *, test: SeedTest, paired_seeds: bool, mean: bool) -> Selected:
    """The runs of those seeds that the test can take."""
    seeds = comparable_seeds(list(pairs.values()), test=test, paired_seeds=paired_seeds)
    if not all(seeds):
        return Selected({}, list(_nothing(match, pairs, mean)))
    kept = {code: (a.of(seeds.baseline), b.of(seeds.method)) for code, (a, b) in pairs.items()}
    return Selected(kept, list(_gaps(match, pairs, seeds, mean)))


def _nothing(match: Match, pairs: Pairs, mean: bool) -> Iterator[Gap]:
    """Why no seed is left: an arm has none in all languages, or the two have none in common."""
    labels, where = (match.base.label, match.method), tuple(pairs)
    empty = [label for arm, label in enumerate(labels) if not _everywhere(pairs, arm)]
    for label in empty:
        yield Gap(match.task, label, (), where, (label,), mean)
    if not empty:
        yield Gap(match.task, match.method, (), where, (match.base.label,), mean)


def _gaps(match: Match, pairs: Pairs, kept: Arms, mean: bool) -> Iterator[Gap]:
    """Seeds left out, each by itself: it is missing in a language, or what it is paired with is."""
    labels = (match.base.label, match.method)
    for arm in (0, 1):
        there = {seed for pair in pairs.values() for seed in pair[arm].seeds}
        for seed in sorted(there - set(kept[arm])):
            own, theirs = (_lacking(pairs, side, seed) for side in (arm, 1 - arm))
            label = labels[arm] if own else labels[1 - arm]
            yield Gap(match.task, label, (seed,), own or theirs, (labels[arm],), mean)


def _everywhere(pairs: Pairs, arm: int) -> frozenset[int]:
    return frozenset.intersection(*(frozenset(pair[arm].seeds) for pair in pairs.values()))


def _lacking(pairs: Pairs, arm: int, seed: int) -> tuple[str, ...]:
    return tuple(code for code, pair in pairs.items() if seed not in pair[arm].seeds)


def gap_notes(gaps: Iterable[Gap]) -> list[str]:
    """Gaps in words, those that differ in one thing only as one."""
    found = list(gaps)
    for name in ("arms", "languages", "seeds"):
        found = _merged(found, name)
    return [str(gap) for gap in found]


def _merged(gaps: Sequence[Gap], name: str) -> list[Gap]:
    """Gaps that are alike but for one field as one, with the values of all."""
    found: dict[Gap, dict[Any, None]] = {}
    for gap in gaps:
        without: Any = {name: ()}
        found.setdefault(replace(gap, **without), {}).update(dict.fromkeys(getattr(gap, name)))
    made: list[tuple[Gap, Any]] = [(gap, {name: tuple(values)}) for gap, values in found.items()]
    return [replace(gap, **values) for gap, values in made]
