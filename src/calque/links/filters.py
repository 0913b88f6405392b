"""Filters of links, each links in and links out; their order is the caller's, because it changes the result.

Dropping identical words first can make the rest one-to-one; keeping one-to-one links first cannot undo that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calque.errors import BadInput, BadSetting
from calque.recipe import suggestion
from calque.types import Flags, Ints, Sentences, WordPairs


def one_to_one(pairs: WordPairs) -> WordPairs:
    """Only links whose two words have no other link."""
    source = _lonely(pairs.bitext.source, pairs.sentence, pairs.source)
    target = _lonely(pairs.bitext.target, pairs.sentence, pairs.target)
    return pairs.keep(source & target)


def different(pairs: WordPairs) -> WordPairs:
    """Only links between two different strings."""
    return pairs.keep(pairs.source_ids != pairs.target_ids)


def at_least(pairs: WordPairs, score: float) -> WordPairs:
    """Only links of this score or above."""
    return pairs.keep(pairs.score >= np.float32(score))


def sample(pairs: WordPairs, amount: float, seed: int) -> WordPairs:
    """A random sample of links: a number of them, or a fraction when `amount` is below one."""
    return pairs.keep(_draw(len(pairs), amount, seed))


def sample_sentences(pairs: WordPairs, amount: float, seed: int) -> WordPairs:
    """A random sample of sentence pairs with all their links; the other sentences leave the bitext."""
    return pairs.sentences(_draw(len(pairs.bitext), amount, seed))


def _lonely(side: Sentences, sentence: Ints, word: Ints) -> Flags:
    flat = np.asarray(side.offsets)[sentence] + word
    lonely: Flags = np.bincount(flat, minlength=len(side.ids))[flat] == 1
    return lonely


def _draw(count: int, amount: float, seed: int) -> NDArray[Any]:
    """Increasing row numbers, all of them when more are asked for than there are."""
    wanted = round(amount * count) if amount < 1 else int(amount)
    chosen = np.random.default_rng(seed).permutation(count)[: min(wanted, count)]
    return np.sort(chosen)


# ------------------------------------------------------------------------------------------- by name


@dataclass(frozen=True)
class Filter:
    """A filter as it is written in settings: `sign` is empty where it takes no value."""

    apply: Callable[[WordPairs, float, int], WordPairs]
    sign: str = ""
    example: str = ""


FILTERS: dict[str, Filter] = {
    "one-to-one": Filter(lambda pairs, value, seed: one_to_one(pairs), example="one-to-one"),
    "different": Filter(lambda pairs, value, seed: different(pairs), example="different"),
    "score": Filter(lambda pairs, value, seed: at_least(pairs, value), ">=", "score>=0.5"),
    "sample": Filter(sample, "=", "sample=1000 or sample=0.1"),
    "sentences": Filter(sample_sentences, "=", "sentences=1000 or sentences=0.1"),
}


@dataclass(frozen=True)
class FilterStep:
    """What one filter did."""

    name: str
    kept: int
    dropped: int


class Filtered(NamedTuple):
    """The links that are left, and what each filter did."""

    pairs: WordPairs
    steps: tuple[FilterStep, ...]


def apply_filters(pairs: WordPairs, names: Sequence[str], seed: int = 0) -> Filtered:
    """Apply filters in this order: `one-to-one`, `different`, `score>=0.5`, `sample=1000`, `sentences=0.1`.

    All names are checked before the first filter runs. Links that run out are an error that says where.
    """
    todo = [(name, *parse_filter(name)) for name in names]
    steps: list[FilterStep] = []
    for name, chosen, value in todo:
        before, pairs = len(pairs), chosen.apply(pairs, value, seed)
        steps.append(FilterStep(name, len(pairs), before - len(pairs)))
        if not len(pairs):
            raise BadInput(f"no links left after filter {name!r}; it was given {before}", remedy=_told(steps))
    return Filtered(pairs, tuple(steps))


def parse_filter(text: str) -> tuple[Filter, float]:
    """A filter and its value by name.

    >>> parse_filter("score>=0.5")[1]
    0.5
    """
    match = re.fullmatch(r"([a-z-]+?)(?:(>=|=)(.*))?", text.strip())
    name, sign, value = match.groups() if match else (text, None, None)
    if name not in FILTERS:
        raise BadSetting(f"unknown filter {text!r}", remedy=suggestion(name, FILTERS))
    chosen = FILTERS[name]
    if (sign or "") != chosen.sign:
        raise BadSetting(f"filter {text!r} not understood", remedy=f"write {chosen.example}")
    return chosen, _value(text, name, value or "") if chosen.sign else 0.0


def _value(text: str, name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    whole = name == "score" or number < 1 or number == int(number) if np.isfinite(number) else False
    if not whole or number < 0 or (number == 0 and name != "score"):
        raise BadSetting(f"filter {text!r}: {value!r} is no amount", remedy=f"write {FILTERS[name].example}")
    return number


def _told(steps: Sequence[FilterStep]) -> str:
    return "filters, kept and dropped: " + ", ".join(f"{s.name} {s.kept} {s.dropped}" for s in steps)
