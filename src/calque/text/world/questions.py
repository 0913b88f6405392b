"""Questions on the world: who, what, how many, where or when, to a paragraph that tells of several events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from calque.text.world import facts
from calque.text.world.facts import MORE, Fact
from calque.text.world.meaning import Draw

#: Tense and negation: no two sentences of a paragraph have both in common.
_WAYS = (("past", False), ("past", True), ("fut", False), ("fut", True))


@dataclass(frozen=True)
class Asking:
    """What is told, which of it a question is about, what the question says of that, what it asks for."""

    told: tuple[Fact, ...]
    about: Fact
    known: Fact
    asked: str


def askings(d: Draw) -> Iterator[Asking]:
    """Draw paragraphs with a question, without end.

    Any sentence could answer the question word; the other words of the question say which one does.
    """
    while True:
        d.begin()
        more = d.among("number place time")
        told = _told(d, more)
        about, asked = told[int(d.share() * len(told))], d.among(f"subject object {more}")
        kept: dict[str, Any] = {more: None} if d.chance(0.5) else {}
        yield Asking(told, about, replace(about, **kept), asked)


def _told(d: Draw, more: str) -> tuple[Fact, ...]:
    """Two or three facts that have no word in common."""
    told: list[Fact] = []
    ways = sorted(_WAYS, key=lambda _: d.share())[: int(d.among("2 3"))]
    while len(told) < len(ways):
        fact = _fact(d, *ways[len(told)], more)
        if not any(_alike(fact, held, more) for held in told):
            told.append(fact)
    return tuple(told)


def _fact(d: Draw, tense: str, negated: bool, more: str) -> Fact:
    done = facts.act(d)
    told: dict[str, Any] = {more: MORE[more](d)}
    return Fact(facts.name(d), done.verb, d.pick(done.objects), tense, negated, **told)


def _alike(a: Fact, b: Fact, more: str) -> bool:
    return any(
        getattr(a, name).lemma.text == getattr(b, name).lemma.text
        for name in ("subject", "verb", "object", more)
    )
