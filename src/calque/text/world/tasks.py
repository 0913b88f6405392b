"""Tasks on the world: sentences, pairs and questions with labels, the same meanings in every language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from calque.errors import BadSetting
from calque.recipe import suggestion
from calque.text.conllu import Tree
from calque.text.labelled.items import Answer, Labelled, Question, Tagged, TextPair
from calque.text.world.constructions import CONSTRUCTIONS
from calque.text.world.draws import check, meanings, said
from calque.text.world.facts import clause
from calque.text.world.lexicon import Lexicon, Pool, lexicon
from calque.text.world.meaning import Draw, Node
from calque.text.world.nli import inferences
from calque.text.world.phrases import mark_slot
from calque.text.world.questions import askings
from calque.text.world.surface import WorldSide

#: Names that entities and slots have alike, whether they are people, places or companies.
_NAMES = "given|surname|city|country|brand|dining"


def world_task(task: str, count: int, language: str, *, seed: int = 0) -> Labelled[Any]:
    """Items of a task: ner, slots, pos, parsing, nli or qa.

    One seed draws the same items in every language, in the same order and under the same ids; the first n of
    a longer draw are a draw of n. For pos, odd seeds speak with other content words than even ones.

    >>> world_task("slots", 2, "far").items[1].id
    'slots-0-2'
    """
    if task not in TASKS:
        raise BadSetting(f"the world has no task {task!r}", remedy=suggestion(task, TASKS))
    check(count, seed, (language,))
    drawn = islice(TASKS[task](seed, language), count)
    items = tuple([replace(item, id=f"{task}-{seed}-{number}") for number, item in enumerate(drawn, 1)])
    return Labelled(language, items, f"world, {task}, {count} items, seed {seed}")


def _draw(task: str, seed: int, words: Lexicon | None = None) -> Draw:
    """Chances of a task's own: two tasks with one seed are not about the same sentences."""
    stream = np.random.SeedSequence([seed, *task.encode()]).generate_state(1, np.uint64)
    return Draw(words or lexicon(), int(stream[0]))


# ------------------------------------------------------------------------------------- words with tags


def _slots(seed: int, language: str) -> Iterator[Tagged]:
    """Requests, in which names go by people, places and companies alike."""
    d = _draw("slots", seed)
    for _, root in meanings(d, [kind for kind in CONSTRUCTIONS.values() if kind.intent]):
        _rename_all(d, root)
        side = said(root, language)
        yield Tagged(side.words, side.slots)


def _parsing(seed: int, language: str) -> Iterator[Tree]:
    for _, root in meanings(_draw("parsing", seed), list(CONSTRUCTIONS.values())):
        side = said(root, language)
        yield Tree(side.words, side.upos, side.heads, side.labels, ("_",) * len(side.words))


def _ner(seed: int, language: str) -> Iterator[Tagged]:
    """Sentences with names, which go by people, places and companies alike."""
    d = _draw("ner", seed)
    for _, root in meanings(d, list(CONSTRUCTIONS.values())):
        if _rename_all(d, root):
            side = said(root, language)
            yield Tagged(side.words, side.entities)


def _rename_all(d: Draw, root: Node) -> bool:
    """Give names that tell nothing of what they name; whether there is any."""
    named = [node for node in _nodes(root) if node.entity and node.rel != "flat"]
    for node in named:
        _rename(d, node)
    return bool(named)


def _nodes(root: Node) -> Iterator[Node]:
    yield root
    for kid in root.kids:
        yield from _nodes(kid)


def _rename(d: Draw, node: Node) -> None:
    """Rivers keep their names, companies say their trade."""
    if node.has("det"):
        return
    node.lemma = d.entry("name", _NAMES).lemma
    if node.entry is not None and node.entry.kind == "brand" and not node.has("flat"):
        trade = d.node(d.entry("name", "trademark").lemma, "flat")
        trade.entity, trade.span = node.entity, node.span
        node.add(trade)


def _pos(seed: int, language: str) -> Iterator[Tagged]:
    """Sentences of which odd and even seeds know different content words."""
    d = _draw("pos", seed, _Half(lexicon(), seed % 2))
    for _, root in meanings(d, list(CONSTRUCTIONS.values())):
        side = said(root, language)
        yield Tagged(side.words, side.upos)


class _Half(Lexicon):
    """A lexicon with about every other content word: which ones, their letters say."""

    def __init__(self, whole: Lexicon, which: int) -> None:
        self.__dict__.update(vars(whole))
        self._whole, self._which = whole, which
        self._halves: dict[Pool, Pool] = {}

    def pool(self, part: str, classes: str, *, without: str = "") -> Pool:
        pool = self._whole.pool(part, classes, without=without)
        return pool if part == "word" else self._half(pool)

    def verbs(self, frames: str, role: str, kind: str, *, without: str = "") -> Pool:
        return self._half(self._whole.verbs(frames, role, kind, without=without))

    def _half(self, pool: Pool) -> Pool:
        """Half of a pool, or the whole where half would leave no choice."""
        if pool not in self._halves:
            half = [entry for entry in pool.entries if sum(entry.lemma.text.encode()) % 2 == self._which]
            choice = len({entry.lemma for entry in half}) > 1
            self._halves[pool] = Pool.of(half) if choice else pool
        return self._halves[pool]


# ------------------------------------------------------------------------------------- pairs, questions


def _nli(seed: int, language: str) -> Iterator[TextPair]:
    d = _draw("nli", seed)
    for drawn in inferences(d):
        first, second = (_text(clause(d, fact), language) for fact in (drawn.premise, drawn.hypothesis))
        yield TextPair(first, second, drawn.label, (language, language))


def _text(root: Node, language: str) -> str:
    return " ".join(said(root, language).words)


def _qa(seed: int, language: str) -> Iterator[Question]:
    d = _draw("qa", seed)
    for drawn in askings(d):
        words: list[str] = []
        for fact in drawn.told:
            root = clause(d, fact)
            if fact is drawn.about:
                sought = getattr(fact, drawn.asked).lemma
                mark_slot(next(node for node in _nodes(root) if node.lemma is sought), "answer")
                answer = _answer(said(root, language), words)
            words += said(root, language).words
        question = _text(clause(d, drawn.known, asked=drawn.asked), language)
        yield Question(question, " ".join(words), (answer,), (language, language))


def _answer(side: WorldSide, before: list[str]) -> Answer:
    """The words of a sentence that have a slot, and where they begin behind other words."""
    places = [at for at, slot in enumerate(side.slots) if slot != "O"]
    text = " ".join(side.words[places[0] : places[-1] + 1])
    return Answer(text, len(" ".join([*before, *side.words[: places[0]], ""])))


TASKS: dict[str, Callable[[int, str], Iterator[Any]]] = {
    "ner": _ner,
    "slots": _slots,
    "pos": _pos,
    "parsing": _parsing,
    "nli": _nli,
    "qa": _qa,
}
