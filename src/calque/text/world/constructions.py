"""The kinds of sentence, one small function each. A new one is a function with `@construction` above it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from calque.text.world.lexicon import Entry
from calque.text.world.meaning import Draw, I, Node
from calque.text.world.phrases import (
    adjuncts,
    comma,
    event,
    fits,
    joined,
    location,
    mark_slot,
    organisation,
    person,
    place,
    pronoun,
    pronoun_for,
    quality,
    set_subject,
    thing,
    when,
    with_case,
)

Builder = Callable[[Draw], Node]


@dataclass(frozen=True)
class Construction:
    """A kind of sentence: how often it is drawn, how it ends, and the intent that it expresses, if any."""

    name: str
    build: Builder
    weight: float
    end: str
    intent: str


CONSTRUCTIONS: dict[str, Construction] = {}


def construction(weight: float = 1.0, *, end: str = ".", intent: str = "") -> Callable[[Builder], Builder]:
    """Enter a builder into the register under its own name."""

    def enter(build: Builder) -> Builder:
        name = build.__name__
        CONSTRUCTIONS[name] = Construction(name, build, weight, end, intent)
        return build

    return enter


def cumulative() -> tuple[list[Construction], list[float]]:
    """All constructions and the running sum of their weights."""
    held = list(CONSTRUCTIONS.values())
    return held, list(accumulate(entry.weight for entry in held))


def _tense(d: Draw) -> str:
    return "past" if d.chance(0.65) else "pres" if d.chance(0.6) else "fut"


def _negate(d: Draw, verb: Node) -> Node:
    verb.negation = d.word("not", "PART", "advmod")
    return verb


def _be(d: Draw, predicate: Node, subject: Node, tense: str) -> Node:
    """A clause with a noun or an adjective as predicate."""
    predicate.tense, predicate.copula = tense, d.word("be", "AUX", "cop")
    set_subject(predicate, subject)
    return predicate


def _after(d: Draw, verb: Node, clause: Node, name: str, rel: str = "advcl", front: bool = False) -> Node:
    """A subordinate clause behind (or before) its verb."""
    clause.rel = rel
    clause.add(d.word(name, "SCONJ", "mark"))
    if front:
        clause.place = "front"
        clause.add(comma(d))
    return verb.add(clause)


def _subject(verb: Node) -> Node:
    return next(kid for kid in verb.kids if kid.rel.startswith("nsubj"))


# ------------------------------------------------------------------------------------- plain clauses


@construction(4)
def transitive(d: Draw) -> Node:
    return event(d, _tense(d), frame="transitive", full=0.6)


@construction(1.5)
def intransitive(d: Draw) -> Node:
    return event(d, _tense(d), frame="intransitive", full=0.9)


@construction(1.5)
def giving(d: Draw) -> Node:
    return event(d, _tense(d), frame="giving")


@construction(1.5)
def motion(d: Draw) -> Node:
    return event(d, _tense(d), frame="motion", full=0.8)


@construction(1.2)
def placing(d: Draw) -> Node:
    return event(d, _tense(d), frame="placing")


@construction(1.5)
def prepositional(d: Draw) -> Node:
    return event(d, _tense(d), frame="prepositional", full=0.7)


@construction(1)
def comment(d: Draw) -> Node:
    verb = event(d, "past")
    said = d.node(d.entry("adverb", "comment").lemma, "advmod")
    said.place = "comment"
    return verb.add(said.add(comma(d)))


@construction(1)
def future(d: Draw) -> Node:
    return event(d, "fut", full=0.7)


@construction(1)
def perfect(d: Draw) -> Node:
    verb = event(d, "perf", full=0.6)
    return verb.add(d.word("already", "ADV", "advmod", "frequency")) if d.chance(0.4) else verb


@construction(1)
def progressive(d: Draw) -> Node:
    verb = _active(d, "pastprog" if d.chance(0.5) else "prog")
    return verb


def _active(d: Draw, tense: str) -> Node:
    """An event that takes time, so that it can be going on."""
    while True:
        verb = event(d, tense, full=0.6)
        if verb.entry is not None and "state" not in verb.entry.settings:
            return verb


@construction(1.5)
def modal(d: Draw) -> Node:
    verb = event(d, "pres", full=0)
    verb.modal = d.word(d.among("can must should may could"), "AUX", "aux")
    return adjuncts(d, verb, 0) if d.chance(0.4) else verb.add(when(d, "fut"))


@construction(0.7)
def pronoun_subject(d: Draw) -> Node:
    return event(d, _tense(d), subject=pronoun(d, d.among("I you he she we they"), "nsubj"), full=0.8)


@construction(0.8)
def company_news(d: Draw) -> Node:
    entry = _institutional(d)
    verb = d.node(entry.lemma, "root", entry)
    verb.tense = "past" if d.chance(0.7) else "fut"
    set_subject(verb, organisation(d, "nsubj"))
    verb.add(thing(d, entry.settings["obj"], "obj", det="plain"))
    verb.add(with_case(d, "in", location(d, "obl")))
    return verb.add(when(d, verb.tense))


def _institutional(d: Draw) -> Entry:
    while True:
        entry = d.entry("verb", "transitive")
        if "institution" in entry.settings["subj"]:
            return entry


# ------------------------------------------------------------------------------------------ negation


@construction(1.5)
def negated(d: Draw) -> Node:
    return _negate(d, event(d, "past" if d.chance(0.6) else "pres", full=0.4))


@construction(0.8)
def negated_modal(d: Draw) -> Node:
    verb = event(d, "pres", full=0)
    verb.modal = d.word(d.among("can should must may could"), "AUX", "aux")
    return _negate(d, verb.add(when(d, "fut")))


@construction(0.7)
def negated_future(d: Draw) -> Node:
    return _negate(d, event(d, "fut", full=0.6))


@construction(0.8)
def never(d: Draw) -> Node:
    verb = event(d, "perf" if d.chance(0.6) else "past", full=0)
    return verb.add(d.word("never", "ADV", "advmod", "frequency"), _place_of(d, verb))


def _place_of(d: Draw, verb: Node) -> Node | None:
    classes = verb.entry.settings.get("at") if verb.entry is not None else None
    return place(d, classes) if classes else None


@construction(0.6)
def nobody(d: Draw) -> Node:
    return event(d, "past", subject=pronoun(d, d.among("nobody everyone someone"), "nsubj"), full=0.7)


@construction(0.8)
def negated_copula(d: Draw) -> Node:
    return _negate(d, copula_adjective(d))


# ------------------------------------------------------------------------------------------- passives


def _passive(d: Draw, tense: str) -> tuple[Node, Entry]:
    entry = d.entry("verb", "transitive")
    while "state" in entry.settings:
        entry = d.entry("verb", "transitive")
    verb = d.node(entry.lemma, "root", entry)
    verb.tense, verb.passive = tense, True
    set_subject(verb, thing(d, entry.settings["obj"], "nsubj:pass", det="plain"))
    return verb, entry


@construction(1.5)
def passive_agent(d: Draw) -> Node:
    verb, entry = _passive(d, "past" if d.chance(0.8) else "fut")
    verb.add(with_case(d, "by", thing(d, entry.settings["subj"], "obl:agent")))
    return verb.add(when(d, verb.tense)) if d.chance(0.6) else verb


@construction(1.2)
def passive(d: Draw) -> Node:
    verb, _ = _passive(d, _tense(d))
    return adjuncts(d, verb, 0.8)


@construction(0.6)
def passive_negated(d: Draw) -> Node:
    verb, _ = _passive(d, "past")
    return _negate(d, adjuncts(d, verb, 0.7))


@construction(0.6)
def passive_perfect(d: Draw) -> Node:
    verb, entry = _passive(d, "perf")
    return verb.add(with_case(d, "by", thing(d, entry.settings["subj"], "obl:agent")))


# --------------------------------------------------------------------------------------------- to be

_DESCRIBED = (
    "folk|trade|artist|athlete|pet|wild|meal|snack|clothes|furniture|device|vehicle|text|document|topic|sum|"
    "material|illness|plant|water|land|building|town|room|container|tool|law|jewel|event|show|housepart|road"
)


@construction(1.5)
def copula_adjective(d: Draw) -> Node:
    subject, adjective = _described(d)
    if d.chance(0.5):
        adjective.add(d.node(d.entry("adverb", "degree").lemma, "advmod").add())
        adjective.kids[-1].place = "degree"
    return _be(d, adjective, subject, "past" if d.chance(0.4) else "pres")


def _described(d: Draw) -> tuple[Node, Node]:
    """A thing, with where it is or whose it is, and a quality it may have."""
    subject = thing(d, _DESCRIBED, "nsubj", det="plain", rich=0)
    while (adjective := quality(d, subject.entry)) is None:
        subject = thing(d, _DESCRIBED, "nsubj", det="plain", rich=0)
    if d.chance(0.6):
        subject.add(_origin(d))
    adjective.rel = "root"
    return subject, adjective


def _origin(d: Draw) -> Node:
    if d.chance(0.4):
        return with_case(d, d.among("from in near"), location(d, "nmod"))
    noun = thing(d, "room|shop|eatery|town", "nmod", det="the", rich=0.3)
    return with_case(d, noun.entry.settings["prep"] if noun.entry else "in", noun)


@construction(1.2)
def copula_noun(d: Draw) -> Node:
    predicate = thing(
        d, "trade|artist|scholar|medic|teacher|athlete|learner|manager", "root", det="a", rich=0.6
    )
    predicate.add(_origin(d))
    return _be(d, predicate, person(d, "nsubj"), "past" if d.chance(0.4) else "pres")


@construction(1)
def copula_place(d: Draw) -> Node:
    place_of = thing(d, "room|container|eatery|town|station|nature", "root", det="the", rich=0.4)
    with_case(d, place_of.entry.settings["prep"] if place_of.entry else "in", place_of)
    subject = thing(d, "folk|kin|pet|text|clothes|toy|tool", "nsubj")
    return _be(d, place_of, subject, "past" if d.chance(0.5) else "pres")


@construction(1.2)
def existential(d: Draw) -> Node:
    verb = d.node(d.lexicon.word("be", "VERB"), "root")
    verb.tense = "past" if d.chance(0.5) else "pres"
    found = thing(d, "folk|pet|wild|plant|furniture|vehicle|tool|snack|vessel|insect|flyer", "nsubj",
                  det=d.among("a a numeral several many"), rich=0.5)  # fmt: skip
    found.place = "obj"
    verb.agreement = found.agreement
    verb.add(d.word("there", "PRON", "expl"), found)
    noun = thing(d, "room|nature|town|farmland|land", "obl", det="the", rich=0.3)
    return verb.add(with_case(d, noun.entry.settings["prep"] if noun.entry else "in", noun))


@construction(1)
def becoming(d: Draw) -> Node:
    entry = d.entry("verb", "becoming")
    verb = d.node(entry.lemma, "root", entry)
    verb.tense = "past" if d.chance(0.7) else "fut"
    set_subject(verb, thing(d, "folk|kin|learner", "nsubj"))
    role = thing(d, "trade|artist|scholar|medic|teacher|office|athlete", "xcomp", det="a", rich=0.5)
    return verb.add(role, when(d, verb.tense))


@construction(1)
def seeming(d: Draw) -> Node:
    entry = d.entry("verb", "seeming")
    verb = d.node(entry.lemma, "root", entry)
    verb.tense = "past" if d.chance(0.7) else "pres"
    subject = thing(d, "folk|kin|trade|artist|learner", "nsubj", rich=0)
    set_subject(verb, subject)
    feeling = d.node(d.entry("adj", "folk").lemma, "xcomp")
    if d.chance(0.5):
        feeling.add(d.node(d.entry("adverb", "degree").lemma, "advmod"))
        feeling.kids[-1].place = "degree"
    noun = thing(d, "event|show|contest", "obl", det="the")
    return verb.add(feeling, with_case(d, d.among("after.time before.time during"), noun))


# ----------------------------------------------------------------------------------------- comparison


@construction(1)
def comparative(d: Draw) -> Node:
    subject, adjective = _described(d)
    kind = subject.entry.kind if subject.entry is not None else "folk"
    adjective.degree = "more"
    than = with_case(d, "than", thing(d, kind, "obl", det="plain", rich=0.5))
    return _be(d, adjective.add(than), subject, "past" if d.chance(0.4) else "pres")


@construction(0.8)
def superlative(d: Draw) -> Node:
    best = thing(d, "folk|athlete|artist|building|trade|learner|scholar", "root", det="the", rich=0)
    adjective = quality(d, best.entry)
    if adjective is not None:
        adjective.degree = "most"
    best.add(adjective, with_case(d, "in", location(d, "nmod")))
    subject = person(d, "nsubj")
    if best.entry is not None and best.entry.kind == "building":
        subject = thing(d, "building", "nsubj", det="this", rich=0)
    return _be(d, best, subject, "past" if d.chance(0.4) else "pres")


@construction(0.7)
def equative(d: Draw) -> Node:
    subject, adjective = _described(d)
    kind = subject.entry.kind if subject.entry is not None else "folk"
    adjective.add(d.word("as", "ADV", "advmod", "degree"))
    other = with_case(d, "as.like", thing(d, kind, "obl", det="plain", rich=0.4))
    return _be(d, adjective.add(other), subject, "past" if d.chance(0.4) else "pres")


@construction(0.7)
def measured(d: Draw) -> Node:
    kinds = {"long": "road", "deep": "water", "high": "building", "wide": "riverpart"}
    name = d.among("long deep high wide")
    adjective = d.word(name, "ADJ", "root")
    length = d.word("metre" if name != "long" else d.among("metre kilometre mile"), "NOUN", "obl", "degree")
    length.plural = True
    length.add(d.node(d.entry("number", "digits").lemma, "nummod"))
    subject = thing(d, kinds[name], "nsubj", det="the", rich=0.4).add(
        with_case(d, "near", location(d, "nmod"))
    )
    return _be(d, adjective.add(length), subject, "past" if d.chance(0.3) else "pres")


# ------------------------------------------------------------------------------------------ questions


def _asked(verb: Node) -> Node:
    verb.inverted = verb.question = True
    return verb


@construction(1.2, end="?")
def question(d: Draw) -> Node:
    return _asked(event(d, _tense(d), full=0.5))


@construction(0.6, end="?")
def question_copula(d: Draw) -> Node:
    return _asked(copula_adjective(d))


@construction(0.8, end="?")
def question_who(d: Draw) -> Node:
    return event(d, "past", subject=pronoun(d, "who", "nsubj"), full=0.9)


@construction(0.8, end="?")
def question_what(d: Draw) -> Node:
    verb = event(d, "past", frame="transitive", full=0.7)
    verb.kids = [kid for kid in verb.kids if kid.rel != "obj"]
    verb.inverted = True
    return verb.add(d.word("what", "PRON", "obj", "wh"))


@construction(1, end="?")
def question_where(d: Draw) -> Node:
    verb = event(d, "past", frame=d.among("transitive transitive placing"), full=0)
    verb.kids = [kid for kid in verb.kids if kid.rel != "obl"]
    verb.inverted = True
    name, tail = d.among("where when.question why how"), when(d, "past")
    if name == "when.question":
        tail = _place_of(d, verb)
    return verb.add(d.word(name, "ADV", "advmod", "wh"), tail)


@construction(0.7, end="?")
def question_which(d: Draw) -> Node:
    verb = event(d, "past", frame="transitive", full=0.8)
    chosen = next(kid for kid in verb.kids if kid.rel == "obj")
    if chosen.lemma.upos != "NOUN":
        chosen = thing(d, "folk", "obj", det="bare")
        verb.kids = [kid for kid in verb.kids if kid.rel != "obj"] + [chosen]
    chosen.kids = [kid for kid in chosen.kids if kid.rel not in ("det", "nummod")]
    chosen.add(d.word("which", "DET", "det"))
    chosen.place = "wh"
    verb.inverted = True
    return verb


@construction(0.6, end="?")
def question_how_many(d: Draw) -> Node:
    verb = event(d, "past", frame="transitive", full=0.6)
    counted = thing(d, "snack|text|clothes|vehicle|tool|plant|folk", "obj", det="bare", rich=0.3)
    entry = d.entry("verb", "transitive")
    while not _takes(d, entry, counted):
        entry = d.entry("verb", "transitive")
    verb = d.node(entry.lemma, "root", entry)
    verb.tense, verb.inverted, counted.place = "past", True, "wh"
    many = d.word("many", "DET", "det").add(d.word("how", "ADV", "advmod", "degree"))
    set_subject(verb, thing(d, entry.settings["subj"], "nsubj"))
    return adjuncts(d, verb.add(counted.add(many)), 0.6)


def _takes(d: Draw, entry: Entry, noun: Node) -> bool:
    """Whether a verb can have this object."""
    classes = entry.settings["obj"].split("|")
    kinds = {kind for c in classes for kind in d.lexicon.groups.get(c, (c,))}
    return noun.entry is not None and noun.entry.kind in kinds


# ----------------------------------------------------------------------------------------- imperatives


def _command(d: Draw) -> Node:
    verb = event(
        d, "imp", frame=d.among("transitive placing giving"), subject=pronoun(d, "you", "nsubj"), full=0.3
    )
    verb.kids = [kid for kid in verb.kids if kid.rel != "nsubj"]
    return verb


@construction(1)
def imperative(d: Draw) -> Node:
    verb = _command(d)
    return (
        verb.add(d.word("please", "ADV", "advmod", "comment")) if d.chance(0.5) else verb.add(when(d, "fut"))
    )


@construction(0.7)
def prohibition(d: Draw) -> Node:
    verb = _command(d)
    return _negate(d, verb.add(_place_of(d, verb) if not verb.has("obl") else when(d, "fut")))


@construction(0.7)
def vocative(d: Draw) -> Node:
    called = person(d, "vocative", full=0)
    return _command(d).add(called.add(comma(d)))


# ----------------------------------------------------------------------------------- complement clauses


def _told(d: Draw, frame: str) -> Node:
    entry = d.entry("verb", frame)
    verb = d.node(entry.lemma, "root", entry)
    verb.tense = "past" if d.chance(0.7) else "pres"
    set_subject(verb, thing(d, entry.settings["subj"], "nsubj", rich=0.2))
    return verb


@construction(1.6)
def complement(d: Draw) -> Node:
    verb = _told(d, "saying" if d.chance(0.5) else "thinking")
    inner = event(d, "past" if verb.tense == "past" else _tense(d), full=0.3)
    return _after(d, verb, inner, "that.clause", "ccomp")


@construction(0.8)
def whether(d: Draw) -> Node:
    verb = _told(d, "wondering")
    return _after(d, verb, event(d, "past", full=0.3), "whether", "ccomp")


@construction(1.4)
def wanting(d: Draw) -> Node:
    entry = d.entry("verb", "wanting")
    verb = d.node(entry.lemma, "root", entry)
    verb.tense = "past" if d.chance(0.6) else "pres"
    subject = thing(d, entry.settings["subj"], "nsubj")
    set_subject(verb, subject)
    inner = _infinitive(d, subject)
    return verb.add(inner)


def _infinitive(d: Draw, subject: Node) -> Node:
    """What a subject could do, without saying the subject again."""
    inner = event(d, "inf", subject=subject, rel="xcomp", full=0.4)
    inner.kids = [kid for kid in inner.kids if kid is not subject]
    return inner.add(when(d, "fut")) if d.chance(0.3) else inner


@construction(1)
def urging(d: Draw) -> Node:
    entry = d.entry("verb", "urging")
    verb = d.node(entry.lemma, "root", entry)
    verb.tense = "past" if d.chance(0.8) else "fut"
    set_subject(verb, thing(d, entry.settings["subj"], "nsubj", rich=0.2))
    urged = thing(d, "person", "obj", rich=0.2)
    inner = _infinitive(d, urged)
    if d.chance(0.25) and entry.lemma.text not in ("help", "teach", "allow"):
        _negate(d, inner)
    return verb.add(urged, inner)


@construction(0.8)
def extraposed(d: Draw) -> Node:
    adjective = d.word(
        d.among("important difficult dangerous interesting strange simple wonderful"), "ADJ", "root"
    )
    inner = _infinitive(d, thing(d, "folk", "nsubj", det="the"))
    inner.rel = "csubj"
    subject = d.word("it", "PRON", "expl")
    adjective.tense, adjective.copula = "past" if d.chance(0.4) else "pres", d.word("be", "AUX", "cop")
    return adjective.add(subject, inner)


# ------------------------------------------------------------------------------------- relative clauses


@construction(1.3)
def relative_subject(d: Draw) -> Node:
    verb = event(d, _tense(d), full=0.3)
    head = _subject(verb)
    if head.lemma.upos != "NOUN":
        head = thing(d, "folk", "nsubj", det="the")
        verb.kids = [kid for kid in verb.kids if kid.rel != "nsubj"]
        while not fits(d, head, verb.entry) if verb.entry else False:
            verb = event(d, "past", full=0.3)
            verb.kids = [kid for kid in verb.kids if kid.rel != "nsubj"]
        set_subject(verb, head)
    head.add(_relative(d, head))
    return verb


def _relative(d: Draw, head: Node) -> Node:
    """A clause about a noun that is its subject."""
    kind = head.entry.kind if head.entry is not None else "folk"
    human = kind in d.lexicon.groups["person"] or kind in (
        "police",
        "lawyer",
        "criminal",
        "press",
        "sick",
        "audience",
    )
    pronoun_ = d.word("who" if human else "that.relative", "PRON", "nsubj", "relative")
    pronoun_.agreement, pronoun_.entry = head.agreement, head.entry
    clause = event(d, "past", subject=_like(pronoun_, head), rel="acl:relcl", full=0.25)
    return clause


def _like(pronoun_: Node, head: Node) -> Node:
    pronoun_.entry = head.entry
    return pronoun_


@construction(1.2)
def relative_object(d: Draw) -> Node:
    inner = event(d, "past", frame="transitive", rel="acl:relcl", full=0.25)
    head = next(kid for kid in inner.kids if kid.rel == "obj")
    if head.lemma.upos != "NOUN":
        return relative_object(d)
    inner.kids = [kid for kid in inner.kids if kid is not head]
    inner.add(d.word("that.relative", "PRON", "obj", "relative"))
    adjective = quality(d, head.entry)
    if adjective is None:
        return relative_object(d)
    head.rel, head.kids = "nsubj", [kid for kid in head.kids if kid.rel != "amod"]
    adjective.rel = "root"
    return _be(d, adjective, head.add(inner), "past" if d.chance(0.5) else "pres")


# --------------------------------------------------------------------------------------- noun phrases


@construction(1.2)
def possessive(d: Draw) -> Node:
    verb = event(d, _tense(d), frame="transitive", full=0.4)
    owned = next(kid for kid in verb.kids if kid.rel == "obj")
    if owned.lemma.upos != "NOUN":
        return possessive(d)
    owned.kids = [kid for kid in owned.kids if kid.rel not in ("det", "nummod")]
    return _with_object(
        verb, owned.add(thing(d, "person", "nmod:poss", rich=0, det="named" if d.chance(0.5) else "the"))
    )


def _with_object(verb: Node, noun: Node) -> Node:
    return verb


_PARTS = {
    "housepart": "building", "treepart": "plant", "riverpart": "water", "writing": "text", "feature": "wild|farm|flyer",
    "quality": "clothes|furniture|vehicle",
}  # fmt: skip


@construction(1.2)
def part_of(d: Draw) -> Node:
    name = d.among(" ".join(_PARTS))
    part = thing(d, name, "obj", det="the", rich=0.3)
    whole = thing(d, _PARTS[name], "nmod", det="the", rich=0.3)
    entry = d.lexicon.pool("verb", "prepositional")
    seen = d.word(d.among("see observe remember describe"), "VERB", "root") if entry is None else _looking(d)
    set_subject(seen, thing(d, "folk|artist|learner|kin", "nsubj"))
    return adjuncts(d, seen.add(part.add(with_case(d, "of", whole))), 0.7)


def _looking(d: Draw) -> Node:
    verb = d.word(
        d.among("see photograph draw.picture touch remember examine admire paint inspect"), "VERB", "root"
    )
    verb.tense = "past"
    return verb


@construction(1.2)
def numerals(d: Draw) -> Node:
    entry = d.entry("verb", "transitive")
    while "goods" not in entry.settings["obj"]:
        entry = d.entry("verb", "transitive")
    verb = d.word(d.among("buy sell"), "VERB", "root")
    verb.tense = "past"
    set_subject(verb, thing(d, "people|trade", "nsubj"))
    bought = thing(d, "snack|clothes|text|tool|furniture|toy|vessel", "obj", det="numeral")
    price = d.word(d.among("euro pound dollar"), "NOUN", "obl")
    price.plural = True
    price.add(d.node(d.entry("number", "digits").lemma, "nummod"))
    return verb.add(bought, with_case(d, "for", price), place(d, "shop"))


@construction(1)
def apposition(d: Draw) -> Node:
    subject = person(d, "nsubj", full=0.6)
    role = thing(d, "trade|artist|scholar|medic|teacher|athlete|manager", "appos", det="a", rich=0.5)
    role.add(with_case(d, "from", location(d, "nmod")), comma(d, "opening"), comma(d))
    verb = event(d, "past", subject=subject, full=0.4)
    subject.add(role)
    return verb


# -------------------------------------------------------------------------------------- coordination


@construction(1.2)
def joined_subjects(d: Draw) -> Node:
    entry = d.entry("verb", "transitive|intransitive|motion|prepositional")
    classes = entry.settings["subj"]
    subject = joined(d, thing(d, classes, "nsubj"), thing(d, classes, "nsubj"))
    return event(d, _tense(d), subject=subject, full=0.6)


@construction(1.2)
def joined_objects(d: Draw) -> Node:
    verb = event(d, _tense(d), frame="transitive", full=0.4)
    noun = next(kid for kid in verb.kids if kid.rel == "obj")
    classes = verb.entry.settings["obj"] if verb.entry is not None else "food"
    joined(d, noun, thing(d, classes, "conj"), d.among("and and or"))
    return verb


@construction(1.2)
def joined_verbs(d: Draw) -> Node:
    verb = event(d, "past" if d.chance(0.7) else "fut", full=0.2)
    subject = _subject(verb)
    second = event(d, verb.tense, subject=subject, full=0.4)
    second.kids = [kid for kid in second.kids if kid is not subject]
    return joined(d, verb, second, d.among("and and but")) and verb


@construction(1.4)
def joined_clauses(d: Draw) -> Node:
    verb, second = event(d, _tense(d), full=0.3), event(d, "past", full=0.3)
    if d.chance(0.3):
        _negate(d, second)
    agreement = verb.agreement
    joined(d, verb, second.add(comma(d, "opening")), d.among("and but and but or"))
    verb.agreement = agreement
    return verb


@construction(0.8)
def joined_adjectives(d: Draw) -> Node:
    subject, adjective = _described(d)
    second = quality(d, subject.entry)
    while second is None or second.lemma is adjective.lemma:
        second = quality(d, subject.entry)
    joined(d, adjective, second, d.among("and but"))
    return _be(d, adjective, subject, "past" if d.chance(0.4) else "pres")


# ----------------------------------------------------------------------------------- adverbial clauses


def _subordinate(d: Draw, name: str, tenses: tuple[str, str], front: float = 0.5) -> Node:
    verb = event(d, tenses[0], full=0.2)
    first = _subject(verb)
    again = pronoun_for(d, first) if d.chance(0.4) and not d.chance(front) and _is_person(d, first) else None
    inner = event(d, tenses[1], subject=again, full=0.2)
    return _after(d, verb, inner, name, front=again is None and d.chance(front))


def _is_person(d: Draw, node: Node) -> bool:
    return node.lemma.upos == "PROPN" or (
        node.entry is not None and node.entry.kind in d.lexicon.groups["person"]
    )


@construction(1.2)
def because(d: Draw) -> Node:
    return _subordinate(d, "because", ("past", "past"), 0.2)


@construction(1.1)
def when_clause(d: Draw) -> Node:
    return _subordinate(d, "when", ("past", "past"), 0.6)


@construction(1)
def conditional(d: Draw) -> Node:
    return _subordinate(d, d.among("if if unless"), ("fut", "pres"), 0.6)


@construction(0.9)
def although(d: Draw) -> Node:
    return _subordinate(d, "although", ("past", "past"), 0.6)


@construction(1)
def before_after(d: Draw) -> Node:
    return _subordinate(d, d.among("before after"), ("past", "past"), 0.5)


@construction(0.8)
def while_clause(d: Draw) -> Node:
    verb = event(d, "past", full=0.2)
    return _after(d, verb, _active(d, "pastprog"), "while", front=d.chance(0.4))


@construction(1)
def purpose(d: Draw) -> Node:
    verb = event(d, "past", frame=d.among("motion transitive giving"), full=0.1)
    subject = _subject(verb)
    inner = event(d, "inf", subject=subject, rel="advcl", full=0.3)
    inner.kids = [kid for kid in inner.kids if kid is not subject]
    return verb.add(inner)


@construction(0.7)
def weather(d: Draw) -> Node:
    entry = d.entry("verb", "raining")
    verb = d.node(entry.lemma, "root", entry)
    verb.tense = d.among("past past fut")
    verb.add(d.word("it", "PRON", "expl"), with_case(d, "in", location(d, "obl")), when(d, verb.tense))
    if verb.tense == "past" and d.chance(0.5):
        return _after(d, verb, event(d, "past", full=0.2), d.among("before after when while"))
    return verb


# -------------------------------------------------------------------------------------------- requests


def _request(d: Draw, name: str) -> Node:
    """A verb in one of the ways a wish is put: an order, a wish, a polite question."""
    inner = d.word(name, "VERB", "root")
    way = d.among("order order wish question please")
    if way in ("order", "please"):
        inner.tense = "imp"
        return inner.add(d.word("please", "ADV", "advmod", "comment")) if way == "please" else inner
    if way == "question":
        inner.tense, inner.inverted, inner.question = "pres", True, True
        inner.modal = d.word(d.among("can could would"), "AUX", "aux")
        set_subject(inner, pronoun(d, "you", "nsubj"))
        return inner
    inner.tense, inner.agreement = "inf", I
    return inner


def _put(d: Draw, inner: Node) -> Node:
    """The whole request around its verb, once its slots are filled."""
    if inner.tense != "inf":
        return inner
    inner.rel = "xcomp"
    wish = d.word(d.among("want need"), "VERB", "root")
    wish.tense = "pres"
    set_subject(wish, pronoun(d, "I", "nsubj"))
    return wish.add(inner)


def _slot(d: Draw, name: str, noun: Node, prep: str = "") -> Node:
    mark_slot(noun, name)
    return with_case(d, prep, noun) if prep else noun


def _date(d: Draw) -> Node:
    if d.chance(0.5):
        return _slot(d, "date", d.node(d.entry("name", "weekday").lemma, "obl"), "on")
    node = d.word(d.among("tomorrow tonight today"), "ADV", "advmod", "time")
    return mark_slot(node, "date")


def _clock(d: Draw) -> Node:
    return _slot(d, "time", d.node(d.entry("number", "clock").lemma, "obl"), "at")


def _party(d: Draw) -> Node:
    count = d.node(d.entry("word", "NUM").lemma, "obl")
    return _slot(d, "count", count, "for")


@construction(1.2, intent="book_flight")
def book_flight(d: Draw) -> Node:
    verb = _request(d, d.among("book reserve"))
    flight = d.word("flight", "NOUN", "obj").add(d.word("a", "DET", "det"))
    verb.add(flight)
    if d.chance(0.7):
        flight.add(_slot(d, "from_city", location(d, "nmod"), "from"))
    flight.add(_slot(d, "to_city", location(d, "nmod"), "to"))
    return _put(d, verb.add(_date(d)))


@construction(1, intent="book_table")
def book_table(d: Draw) -> Node:
    verb = _request(d, d.among("book reserve"))
    table = d.word("table.furniture", "NOUN", "obj").add(d.word("a", "DET", "det"))
    where = _slot(d, "restaurant", d.node(d.entry("name", "dining").lemma, "obl"), "at")
    verb.add(table, _party(d), where)
    return _put(d, verb.add(_date(d), _clock(d) if d.chance(0.6) else None))


@construction(1, intent="order_food")
def order_food(d: Draw) -> Node:
    verb = _request(d, "order.food")
    food = thing(d, "snack", "obj", det="numeral", rich=0.4)
    verb.add(mark_slot(food, "dish"))
    if d.chance(0.5):
        joined(d, food, mark_slot(thing(d, "drink|meal", "conj", det="bare", rich=0.3), "dish"))
    return _put(d, verb.add(_slot(d, "restaurant", d.node(d.entry("name", "dining").lemma, "obl"), "from")))


@construction(1, end="?", intent="get_weather")
def get_weather(d: Draw) -> Node:
    verb = d.node(d.entry("verb", "raining").lemma, "root")
    verb.tense, verb.inverted, verb.question = "fut", True, True
    verb.add(
        d.word("it", "PRON", "expl", "nsubj"),
        _slot(d, "city", location(d, "obl", d.among("city city country")), "in"),
    )
    return verb.add(_date(d), with_case(d, "in", d.word(d.among("morning afternoon evening"), "NOUN", "obl", "time")
                                        .add(d.word("the", "DET", "det"))) if d.chance(0.6) else None)  # fmt: skip


@construction(1, intent="set_alarm")
def set_alarm(d: Draw) -> Node:
    verb = _request(d, "set.alarm")
    verb.add(d.word("alarm", "NOUN", "obj").add(d.word("a", "DET", "det")))
    return _put(
        d, verb.add(_slot(d, "time", d.node(d.entry("number", "clock").lemma, "obl"), "for"), _date(d))
    )


@construction(1, intent="play_music")
def play_music(d: Draw) -> Node:
    verb = _request(d, "play.music")
    song = thing(d, "tune", "obj", det="a", rich=0.6)
    verb.add(mark_slot(song, "music_item"))
    song.add(_slot(d, "artist", person(d, "nmod", full=1), "by"))
    noun = thing(d, "room", "obl", det="the", rich=0)
    return _put(d, verb.add(_slot(d, "room", noun, "in") if d.chance(0.6) else None))


@construction(1, intent="send_message")
def send_message(d: Draw) -> Node:
    verb = _request(d, "send")
    sent = d.word(d.among("message letter.mail note.message"), "NOUN", "obj").add(d.word("a", "DET", "det"))
    verb.add(sent, _slot(d, "contact", person(d, "obl", full=0.5), "to"))
    return _put(
        d, verb.add(with_case(d, "about", mark_slot(thing(d, "event|topic", "obl", det="the"), "topic")))
    )


@construction(1, intent="buy_ticket")
def buy_ticket(d: Draw) -> Node:
    verb = _request(d, "buy")
    tickets = d.word("ticket", "NOUN", "obj")
    tickets.plural = True
    number = mark_slot(d.node(d.entry("word", "NUM").lemma, "nummod"), "count")
    verb.add(tickets.add(number))
    tickets.add(with_case(d, "for", mark_slot(thing(d, "show|contest", "nmod", det="the"), "event")))
    return _put(d, verb.add(_slot(d, "city", location(d, "obl"), "in"), _date(d) if d.chance(0.7) else None))


@construction(1, intent="switch_device")
def switch_device(d: Draw) -> Node:
    verb = _request(d, d.among("turn_on turn_off switch_on").replace("_", " "))
    verb.add(mark_slot(thing(d, "device|lighting", "obj", det="the"), "device"))
    return _put(d, verb.add(_slot(d, "room", thing(d, "room", "obl", det="the", rich=0.3), "in"), _clock(d)))


@construction(1, intent="transfer_money")
def transfer_money(d: Draw) -> Node:
    verb = _request(d, d.among("transfer send pay"))
    amount = d.word(d.among("euro pound dollar"), "NOUN", "obj")
    amount.plural = True
    amount.add(d.node(d.entry("number", "digits").lemma, "nummod"))
    verb.add(mark_slot(amount, "amount"), _slot(d, "recipient", person(d, "obl", full=0.6), "to"))
    return _put(d, verb.add(_date(d)))


@construction(1, intent="set_reminder")
def set_reminder(d: Draw) -> Node:
    verb = _request(d, "remind")
    verb.add(pronoun(d, "I", "obj"))
    verb.add(with_case(d, "about", mark_slot(thing(d, "event", "obl", det="the", rich=0.5), "event")))
    return _put(d, verb.add(_date(d), _clock(d)))


@construction(0.8, end="?", intent="find_place")
def find_place(d: Draw) -> Node:
    verb = d.word("find", "VERB", "root")
    verb.tense, verb.inverted, verb.question = "pres", True, False
    verb.modal = d.word(d.among("can could"), "AUX", "aux")
    set_subject(verb, pronoun(d, "I", "nsubj"))
    sought = mark_slot(thing(d, "eatery|shop|clinic|stage", "obj", det="a", rich=0.6), "place_type")
    verb.add(d.word("where", "ADV", "advmod", "wh"), sought)
    return verb.add(_slot(d, "city", location(d, "obl"), "in"), _date(d) if d.chance(0.5) else None)
