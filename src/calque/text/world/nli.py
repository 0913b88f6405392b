"""Inference on the world: does one sentence follow from another, clash with it, or neither?

Both sentences are about one event, which happens once: who does what is the same in both. They differ in what
else they tell of it: how many, where, and on which day. Where both tell the day, it may be another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from calque.text.world import facts
from calque.text.world.facts import MORE, Fact
from calque.text.world.meaning import Draw

LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Inference:
    """A premise, a hypothesis and how they stand to each other."""

    premise: Fact
    hypothesis: Fact
    label: str


def inferences(d: Draw) -> Iterator[Inference]:
    """Draw pairs of sentences without end; of every three, each label has one.

    The hypothesis is drawn before its label is known, so that it tells nothing about the label.
    """
    waiting: list[str] = []
    while True:
        d.begin()
        hypothesis = _hypothesis(d)
        waiting = waiting or [label for _, label in sorted((d.share(), label) for label in LABELS)]
        label = waiting.pop()
        yield Inference(_premise(d, hypothesis, label), hypothesis, label)


def _hypothesis(d: Draw) -> Fact:
    """A sentence that tells the day of an event, and perhaps how many and where."""
    done = facts.act(d)
    fact = Fact(facts.subject(d, done), done.verb, d.pick(done.objects), d.among("past fut"))
    return replace(fact, **{**_more(d), "time": facts.weekday(d)})


def _more(d: Draw) -> dict[str, Any]:
    return {name: draw(d) for name, draw in MORE.items() if d.chance(0.5)}


def _premise(d: Draw, hypothesis: Fact, label: str) -> Fact:
    """Another sentence about the event, drawn until the hypothesis stands to it as asked."""
    told = {name: getattr(hypothesis, name) for name in _told(hypothesis)}
    while True:
        more = _more(d)
        same = {name: told[name] for name in more if name in told and (name != "time" or d.chance(0.5))}
        premise = replace(hypothesis, **{**dict.fromkeys(MORE), **more, **same})
        if relation(premise, hypothesis) == label:
            return premise


def relation(premise: Fact, hypothesis: Fact) -> str:
    """How a hypothesis stands to a premise about the same event."""
    asked = [(getattr(premise, name), getattr(hypothesis, name)) for name in _told(hypothesis)]
    if any(said is not None and said is not wanted for said, wanted in asked):
        return "contradiction"
    return "neutral" if any(said is None for said, _ in asked) else "entailment"


def _told(fact: Fact) -> list[str]:
    return [name for name in MORE if getattr(fact, name) is not None]
