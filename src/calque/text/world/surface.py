"""From meaning to words: one walk for every language, which brings its own order and its own word forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from calque.text.world.meaning import Node


@dataclass(frozen=True)
class WorldSide:
    """A sentence in one language. Every field has one item a word.

    `heads` are 1-based, 0 for the root; `labels` are Universal Dependencies relations; `entities` and `slots`
    are BIO tags; `senses` is "" for a word of one sense.
    """

    words: tuple[str, ...]
    upos: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]
    entities: tuple[str, ...]
    slots: tuple[str, ...]
    senses: tuple[str, ...]


class Dressed(NamedTuple):
    """How one language says a node: its word (None for none), what hangs under it, keys it says as well."""

    text: str | None
    kids: Sequence[Node]
    keys: tuple[int, ...] = ()


Dress: TypeAlias = Callable[[Node, Node | None], Dressed]


@dataclass(frozen=True)
class Language:
    """All that tells one language from another.

    `order` ranks relations (or a node's `place`) around their head, which stands at 0; `dress` gives a node
    and its parent their words; `finish` spells the whole sentence.
    """

    order: Mapping[str, int]
    dress: Dress
    finish: Callable[[list[str]], list[str]]


class Layout:
    """Words in order, each with its node, the place of its head (-1 for none) and the keys it says."""

    __slots__ = ("heads", "keys", "nodes", "words")

    def __init__(self, root: Node, language: Language) -> None:
        self.words: list[str] = []
        self.nodes: list[Node] = []
        self.heads: list[int] = []
        self.keys: list[tuple[int, ...]] = []
        self._lay(root, None, language.order, language.dress)

    def _lay(self, node: Node, parent: Node | None, order: Mapping[str, int], dress: Dress) -> int:
        """Lay down a node and all under it; returns the place of its word, or -1 when it has none."""
        text, kids, keys = dress(node, parent)
        if text is None:
            return -1
        if not kids:
            return self._put(text, node, keys)
        ranked = sorted([(order[kid.place or kid.rel], at) for at, kid in enumerate(kids)])
        before = [self._lay(kids[at], node, order, dress) for rank, at in ranked if rank < 0]
        own = self._put(text, node, keys)
        after = [self._lay(kids[at], node, order, dress) for rank, at in ranked if rank > 0]
        heads = self.heads
        for place in before + after:
            if place >= 0:
                heads[place] = own
        return own

    def _put(self, text: str, node: Node, keys: tuple[int, ...]) -> int:
        place = len(self.words)
        self.words.append(text)
        self.nodes.append(node)
        self.heads.append(-1)
        self.keys.append((node.key, *keys) if keys else (node.key,))
        return place


def side(laid: Layout, language: Language) -> WorldSide:
    """A sentence with all its annotation."""
    nodes = laid.nodes
    return WorldSide(
        tuple(language.finish(laid.words)),
        tuple([node.lemma.upos for node in nodes]),
        tuple([head + 1 for head in laid.heads]),
        tuple([node.rel for node in nodes]),
        _bio([(node.entity, node.span) for node in nodes]),
        _bio([(node.slot, node.span) for node in nodes]),
        tuple([node.lemma.sense for node in nodes]),
    )


def _bio(spans: list[tuple[str, int]]) -> tuple[str, ...]:
    """BIO tags: neighbours of one label and one span belong together."""
    tags, before = [], ("", 0)
    for span in spans:
        label = span[0]
        tags.append("O" if not label else f"I-{label}" if span == before else f"B-{label}")
        before = span
    return tuple(tags)


def link(a: Layout, b: Layout) -> tuple[tuple[int, int], ...]:
    """0-based pairs of words that say a common piece of meaning. Key 0 is no meaning at all."""
    says: dict[int, list[int]] = {}
    for j, keys in enumerate(b.keys):
        for key in keys:
            says.setdefault(key, []).append(j)
    says.pop(0, None)
    return tuple(sorted({(i, j) for i, keys in enumerate(a.keys) for key in keys for j in says.get(key, ())}))
