"""What a sentence means before it is said: a tree of lemmas, and the seeded draws that fill it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from calque.text.world.lexicon import Entry, Lemma, Lexicon, Pool

#: A key names one piece of meaning; words of two languages that share a key are linked. The last two bits
#: tell a node's own word from those that only some languages spell out.
TENSE, PASSIVE, SATELLITE = 1, 2, 3

#: Person and number of a subject.
ME, YOU, SHE, WE, THEY = range(5)


@dataclass(slots=True, eq=False)
class Node:
    """One lemma in its place: a dependency tree over meaning, with Universal Dependencies relations.

    `place` overrides `rel` where a language looks up the order of words. `text` is set only on words that
    one language adds of its own, `also` on those that say a second piece of meaning.
    """

    lemma: Lemma
    rel: str
    key: int = 0
    kids: list[Node] = field(default_factory=list)
    entry: Entry | None = None
    plural: bool = False
    agreement: int = SHE
    tense: str = ""
    passive: bool = False
    inverted: bool = False
    question: bool = False
    negation: Node | None = None
    modal: Node | None = None
    copula: Node | None = None
    degree: str = ""
    place: str = ""
    entity: str = ""
    slot: str = ""
    span: int = 0
    text: str = ""
    also: tuple[int, ...] = ()

    def add(self, *kids: Node | None) -> Node:
        """Hang these under this node; returns the node."""
        self.kids.extend(kid for kid in kids if kid is not None)
        return self

    def has(self, rel: str) -> bool:
        return any(kid.rel == rel for kid in self.kids)


class Draw:
    """Chances and choices of one stream of sentences, all from one seed."""

    def __init__(self, lexicon: Lexicon, seed: int) -> None:
        self.lexicon = lexicon
        self._next = _uniform(seed).__next__
        self._key = 0

    def begin(self) -> None:
        """Start a new sentence: keys count from the beginning again."""
        self._key = 0

    def share(self) -> float:
        """A number from 0 to 1."""
        return self._next()

    def chance(self, share: float) -> bool:
        return self._next() < share

    def among(self, options: str) -> str:
        """One of some words, each as likely."""
        held = _words(options)
        return held[int(self._next() * len(held))]

    def pick(self, pool: Pool) -> Entry:
        return pool.at(self._next())

    def entry(self, part: str, classes: str, *, without: str = "") -> Entry:
        return self.pick(self.lexicon.pool(part, classes, without=without))

    def node(self, lemma: Lemma, rel: str, entry: Entry | None = None) -> Node:
        self._key += 4
        return Node(lemma, rel, self._key, entry=entry)

    def word(self, name: str, upos: str, rel: str, place: str = "") -> Node:
        """A node for a word of the closed classes."""
        node = self.node(self.lexicon.word(name, upos), rel)
        node.place = place
        return node


@cache
def _words(options: str) -> list[str]:
    return options.split()


def _uniform(seed: int, block: int = 4096) -> Iterator[float]:
    """Uniform numbers in blocks: asking NumPy for one at a time is ten times slower."""
    rng = np.random.default_rng(seed)
    while True:
        yield from rng.random(block).tolist()
