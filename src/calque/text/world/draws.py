"""Sentences of the world, drawn from a seed."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, islice

import calque.text.world.requests  # noqa: F401  (enters its constructions into the register)
from calque.errors import BadSetting
from calque.recipe import suggestion
from calque.text.world.constructions import CONSTRUCTIONS, Construction
from calque.text.world.english import ENGLISH
from calque.text.world.far import FAR
from calque.text.world.lexicon import lexicon
from calque.text.world.meaning import Draw, Node
from calque.text.world.near import NEAR
from calque.text.world.surface import Language, Layout, WorldSide, link, side

SPOKEN: dict[str, Language] = {"en": ENGLISH, "near": NEAR, "far": FAR}
LANGUAGES = tuple(SPOKEN)


@dataclass(frozen=True)
class WorldSentence:
    """One meaning in several languages, with gold links for every pair of them (0-based word pairs)."""

    construction: str
    intent: str
    sides: dict[str, WorldSide]
    links: dict[tuple[str, str], tuple[tuple[int, int], ...]]


def generate(
    count: int,
    *,
    seed: int = 0,
    languages: Sequence[str] = LANGUAGES,
    domain: tuple[int, int] | None = None,
) -> Iterator[WorldSentence]:
    """Draw sentences one by one; the first n of a longer draw are a draw of n.

    `domain` (k, n) draws from the k-th of n parts into which all kinds of sentences are dealt.

    >>> sentence = next(generate(1))
    >>> len(sentence.sides["en"].words) == len(sentence.sides["en"].heads)
    True
    """
    check(count, seed, languages)
    place, parts = domain or (0, 1)
    return _stream(count, seed, tuple(languages), list(CONSTRUCTIONS.values())[place::parts])


def check(count: int, seed: int, languages: Sequence[str]) -> None:
    """Refuse a negative count or seed, and languages that nobody speaks."""
    for name, value in (("count", count), ("seed", seed)):
        if value < 0:
            raise BadSetting(f"{name} is {value}", remedy="give 0 or more")
    for language in languages:
        if language not in SPOKEN:
            raise BadSetting(f"nobody speaks {language!r} in the world", remedy=suggestion(language, SPOKEN))
    if not languages or len(set(languages)) < len(languages):
        raise BadSetting(f"languages are {', '.join(languages) or 'none'}", remedy="name each language once")


def _stream(
    count: int, seed: int, languages: tuple[str, ...], kinds: Sequence[Construction]
) -> Iterator[WorldSentence]:
    drawn = meanings(Draw(lexicon(), seed), kinds)
    return (_say(kind, root, languages) for kind, root in islice(drawn, count))


def meanings(d: Draw, kinds: Sequence[Construction]) -> Iterator[tuple[Construction, Node]]:
    """Sentences of these kinds before they are said, without end."""
    weights = list(accumulate(kind.weight for kind in kinds))
    while True:
        d.begin()
        kind = kinds[bisect(weights, d.share() * weights[-1])]
        yield kind, _closed(d, kind)


def said(root: Node, language: str) -> WorldSide:
    """A meaning in one language."""
    return side(Layout(root, SPOKEN[language]), SPOKEN[language])


def _closed(d: Draw, kind: Construction) -> Node:
    root = kind.build(d)
    end = "?" if root.question else kind.end
    return root.add(d.word(end, "PUNCT", "punct"))


def _say(kind: Construction, root: Node, languages: tuple[str, ...]) -> WorldSentence:
    laid = {name: Layout(root, SPOKEN[name]) for name in languages}
    sides = {name: side(laid[name], SPOKEN[name]) for name in languages}
    links = {(a, b): link(laid[a], laid[b]) for a, b in combinations(languages, 2)}
    return WorldSentence(kind.name, kind.intent, sides, links)
