"""Facts that inferences and questions are about: who does what, to how many things, where and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from calque.text.world.lexicon import Entry, Lexicon, Pool, lexicon
from calque.text.world.meaning import THEY, Draw, Node
from calque.text.world.phrases import doing, pronoun, with_case

#: Kinds of people that a sentence may speak of without a name.
_TRADES = "trade|medic|office|artist|athlete|learner|teacher|scholar|manager|press|police|lawyer|criminal"
_UNCOUNTED = frozenset({"mass", "owned", "single"})


@dataclass(frozen=True)
class Fact:
    """Somebody does something to things of one kind; what is None is not said."""

    subject: Entry
    verb: Entry
    object: Entry
    tense: str
    negated: bool = False
    number: Entry | None = None
    time: Entry | None = None
    place: Entry | None = None


# ------------------------------------------------------------------------------------------- drawing


@dataclass(frozen=True)
class Act:
    """A verb, the people who may do it without being named (None: nobody), and what it may be done to."""

    verb: Entry
    doers: Pool | None
    objects: Pool


def act(d: Draw) -> Act:
    """Something that people do."""
    acts, pool = _acts()
    return acts[d.pick(pool)]


def subject(d: Draw, done: Act) -> Entry:
    """Somebody who may do this: a name, or a trade."""
    if done.doers is None or d.chance(0.5):
        return name(d)
    return d.pick(done.doers)


def name(d: Draw) -> Entry:
    """Somebody by name."""
    return d.entry("name", "given")


def number(d: Draw) -> Entry:
    """How many."""
    return d.entry("word", "NUM")


def place(d: Draw) -> Entry:
    """Where: a city, since no city lies in another."""
    return d.entry("name", "city")


def weekday(d: Draw) -> Entry:
    """When."""
    return d.entry("name", "weekday")


#: What may be told of an event besides who does what.
MORE: dict[str, Callable[[Draw], Entry]] = {"number": number, "place": place, "time": weekday}


@cache
def _acts() -> tuple[dict[Entry, Act], Pool]:
    """What people do, at some place, to things that can be counted."""
    words = lexicon()
    verbs = [v for v in words.pool("verb", "transitive", without="state").entries if "at" in v.settings]
    acts = {verb: done for verb in verbs if (done := _act(words, verb)) is not None}
    return acts, Pool.of(acts)


def _act(words: Lexicon, verb: Entry) -> Act | None:
    human = words.kinds("human")
    people = [kind for kind in words.kinds(verb.settings["subj"]) if kind in human]
    objects = [entry for entry in words.pool("noun", verb.settings["obj"]).entries if entry.kind not in human]
    objects = [entry for entry in objects if not _UNCOUNTED.intersection(entry.settings)]
    if not people or len({entry.lemma for entry in objects}) < 3:
        return None
    trades = [kind for kind in people if kind in words.kinds(_TRADES)]
    return Act(verb, words.pool("noun", "|".join(trades)) if trades else None, Pool.of(objects))


# -------------------------------------------------------------------------------------------- saying


def clause(d: Draw, fact: Fact, *, asked: str = "") -> Node:
    """A fact as the meaning of a sentence.

    With `asked`, a question for what the fact tells there: who, what, how many, where or when.
    """
    verb = doing(d, fact.verb, _who(d, fact, asked), fact.tense)
    verb.inverted = asked not in ("", "subject")
    verb.negation = d.word("not", "PART", "advmod") if fact.negated else None
    verb.add(_what(d, fact, asked), _where(d, fact, asked), _when(d, fact, asked))
    return verb.add(d.word("?" if asked else ".", "PUNCT", "punct"))


def _who(d: Draw, fact: Fact, asked: str) -> Node:
    if asked == "subject":
        return pronoun(d, "who", "nsubj")
    node = d.node(fact.subject.lemma, "nsubj", fact.subject)
    return node if fact.subject.kind == "given" else node.add(d.word("the", "DET", "det"))


def _what(d: Draw, fact: Fact, asked: str) -> Node:
    if asked == "object":
        return d.word("what", "PRON", "obj", "wh")
    node = d.node(fact.object.lemma, "obj", fact.object)
    node.plural, node.agreement = True, THEY
    if asked == "number":
        node.place = "wh"
        return node.add(d.word("many", "DET", "det").add(d.word("how", "ADV", "advmod", "degree")))
    return node.add(d.node(fact.number.lemma, "nummod")) if fact.number else node


def _where(d: Draw, fact: Fact, asked: str) -> Node | None:
    if asked == "place":
        return d.word("where", "ADV", "advmod", "wh")
    return with_case(d, "in", d.node(fact.place.lemma, "obl")) if fact.place else None


def _when(d: Draw, fact: Fact, asked: str) -> Node | None:
    if asked == "time":
        return d.word("when.question", "ADV", "advmod", "wh")
    if fact.time is None:
        return None
    node = d.node(fact.time.lemma, "obl")
    node.place = "time"
    return with_case(d, "on", node)
