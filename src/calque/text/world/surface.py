"""From meaning to words: one walk for every language, which brings its own order and its own word forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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


@dataclass(frozen=True)
class Language:
    """All that tells one language from another.

    `order` ranks relations (or a node's `place`) around their head, which stands at 0; `dress` gives a node
    and its parent their words; `finish` spells the whole sentence.
    """

    order: Mapping[str, int]
    dress: Callable[[Node, Node | None], Dressed]
    finish: Callable[[list[str]], list[str]]


class Word:
    """A word on its way into a sentence."""

    __slots__ = ("head", "index", "keys", "node", "text")

    def __init__(self, text: str, node: Node, head: Word | None, keys: tuple[int, ...]) -> None:
        self.text, self.node, self.head, self.keys, self.index = text, node, head, keys, 0


def lay_out(root: Node, language: Language) -> list[Word]:
    """The words of a meaning in the order of one language."""
    out: list[Word] = []
    _lay(root, None, None, language, out)
    for index, word in enumerate(out, 1):
        word.index = index
    return out


def _lay(node: Node, parent: Node | None, head: Word | None, language: Language, out: list[Word]) -> None:
    text, kids, keys = language.dress(node, parent)
    if text is None:
        return
    word = Word(text, node, head, (node.key, *keys))
    if not kids:
        out.append(word)
        return
    order = language.order
    ranked = sorted([(order[kid.place or kid.rel], at) for at, kid in enumerate(kids)])
    before = sum(rank < 0 for rank, _ in ranked)
    for _, at in ranked[:before]:
        _lay(kids[at], node, word, language, out)
    out.append(word)
    for _, at in ranked[before:]:
        _lay(kids[at], node, word, language, out)


def side(words: list[Word], language: Language) -> WorldSide:
    """Words with all their annotation."""
    nodes = [word.node for word in words]
    return WorldSide(
        tuple(language.finish([word.text for word in words])),
        tuple([node.lemma.upos for node in nodes]),
        tuple([word.head.index if word.head else 0 for word in words]),
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


def link(a: list[Word], b: list[Word]) -> tuple[tuple[int, int], ...]:
    """0-based pairs of words that say a common piece of meaning."""
    says: dict[int, list[int]] = {}
    for word in b:
        for key in word.keys:
            if key:
                says.setdefault(key, []).append(word.index - 1)
    found = {(word.index - 1, j) for word in a for key in word.keys for j in says.get(key, ())}
    return tuple(sorted(found))
