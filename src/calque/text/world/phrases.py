"""Phrases that constructions are made of: things, events, times, places."""

from __future__ import annotations

from collections.abc import Callable

from calque.text.world.lexicon import Entry
from calque.text.world.meaning import ME, SHE, THEY, WE, YOU, Draw, Node

_PRONOUNS = {"I": ME, "you": YOU, "he": SHE, "she": SHE, "it": SHE, "we": WE, "they": THEY}
_WHOSE = {ME: "my", YOU: "your", SHE: "their", WE: "our", THEY: "their"}
_FEMALE = {
    "woman", "girl", "mother", "sister", "daughter", "wife", "aunt", "grandmother", "niece", "queen",
    "princess", "midwife", "widow",
}  # fmt: skip
_MALE = {
    "man", "boy", "father", "brother", "son", "husband", "uncle", "grandfather", "nephew", "king", "prince",
    "fisherman", "headmaster", "monk",
}  # fmt: skip


# -------------------------------------------------------------------------------------------- things


def thing(
    d: Draw, classes: str, rel: str, *, det: str = "", rich: float = 0.3, owner: Node | None = None
) -> Node:
    """Something of these classes, with a determiner and perhaps (`rich`) an adjective, or else a name.

    `det` is "" for any, "common" for any but no name, "named" for a name where there can be one, or one of
    the determiners that `determine` knows. What people and animals have by nature is that of `owner`.
    """
    entry = d.entry("noun", classes)
    if det in ("", "named") and (name := _naming(d, entry)) and (det or d.chance(0.35)):
        return name(d, rel)
    node = d.node(entry.lemma, rel, entry)
    determine(d, node, entry, "" if det in ("named", "common") else det, owner)
    return node.add(quality(d, entry.kind)) if d.chance(rich) else node


def _naming(d: Draw, entry: Entry) -> Callable[[Draw, str], Node] | None:
    """How something of this kind could be named."""
    if entry.kind == "institution":
        return organisation
    return person if entry.kind in d.lexicon.kinds("person") and "owned" not in entry.settings else None


def determine(d: Draw, node: Node, entry: Entry, det: str, owner: Node | None = None) -> None:
    """Give a noun its number and determiner: an article, a numeral, a quantifier, an owner or nothing.

    `det` is the word itself, "plural" (the … s), "bare", "numeral" or "owned"; "" draws one that fits.
    """
    det = _fitting(d, entry, det, owner)
    if det in _PLURAL and "mass" not in entry.settings:
        node.plural, node.agreement = True, THEY
    if det == "numeral":
        node.add(d.node(d.entry("word", "NUM").lemma, "nummod"))
    elif det == "owned":
        owners = entry.settings.get("owned", "his|her|their|my|our|your").replace("|", " ")
        node.add(d.word(d.among(owners) if owner is None else _whose(d, owner), "DET", "det"))
    elif det != "bare":
        node.add(d.word("the" if det == "plural" else det, "DET", "det"))


_PLURAL = frozenset({"plural", "numeral", "bare", "these", "those", "several", "many", "few", "all", "both"})


def _fitting(d: Draw, entry: Entry, det: str, owner: Node | None) -> str:
    """A determiner that a noun can have: one moon, some bread, my mother, its wings."""
    settings = entry.settings
    if "single" in settings or (settings.get("owned") == "its" and owner is None):
        return det if det == "bare" else "the"
    if "owned" in settings and det in ("", "the", "plural") and d.chance(0.85):
        return "owned"
    if "mass" in settings:
        if settings["mass"] == "bare":
            return "bare"
        return det if det in ("the", "bare", "this", "owned") else _mass(d)
    return det or _count(d, "the" if entry.kind in d.lexicon.kinds("human") else "owned")


def _mass(d: Draw) -> str:
    return "the" if d.chance(0.6) else "some" if d.chance(0.5) else "bare"


def _count(d: Draw, owned: str) -> str:
    if d.chance(0.65):
        return "the" if d.chance(0.6) else "a"
    if d.chance(0.45):
        return "plural"
    return d.among(
        f"{owned} {owned} bare numeral this that.far these every several many those few all both each"
    )


def quality(d: Draw, kind: str) -> Node | None:
    """An adjective that fits a kind of thing, where there is one."""
    return d.node(d.entry("adj", kind).lemma, "amod") if d.lexicon.has("adj", kind) else None


def kind_of(node: Node) -> str:
    """The class of a noun; pronouns are taken for people, and names for what they name."""
    kind = node.entry.kind if node.entry is not None else "given"
    return {"given": "folk", "brand": "institution"}.get(kind, kind)


# --------------------------------------------------------------------------------------------- names


def person(d: Draw, rel: str, *, full: float = 0.3) -> Node:
    """A person by name."""
    entry = d.entry("name", "given")
    node = d.node(entry.lemma, rel, entry)
    if d.chance(full):
        node.add(d.node(d.entry("name", "surname").lemma, "flat"))
    return mark_entity(node, "PER")


def location(d: Draw, rel: str, classes: str = "city") -> Node:
    """A place by name."""
    return mark_entity(d.node(d.entry("name", classes).lemma, rel), "LOC")


def organisation(d: Draw, rel: str) -> Node:
    """A company by name."""
    entry = d.entry("name", "brand")
    node = d.node(entry.lemma, rel, entry)
    if d.chance(0.7):
        node.add(d.node(d.entry("name", "trademark").lemma, "flat"))
    return mark_entity(node, "ORG")


def mark_entity(node: Node, label: str) -> Node:
    """Make a name (its head and the parts that only belong to it) an entity."""
    for part in (node, *node.kids):
        part.entity, part.span = label, node.key
    return node


def mark_slot(node: Node, label: str) -> Node:
    """Make a phrase, without its determiner and adposition, a slot of a request."""
    node.slot, node.span = label, node.key
    for kid in node.kids:
        if kid.rel in ("amod", "nummod", "flat", "compound"):
            kid.slot, kid.span = label, node.key
    return node


# ------------------------------------------------------------------------------------- small phrases


def pronoun(d: Draw, name: str, rel: str) -> Node:
    """A pronoun with its person and number."""
    node = d.word(name, "PRON", rel)
    node.agreement = _PRONOUNS.get(name, SHE)
    return node


def pronoun_for(d: Draw, subject: Node) -> Node:
    """The pronoun that would take up a person."""
    if subject.agreement == THEY:
        return pronoun(d, "they", "nsubj")
    gender = subject.entry.settings.get("gender", "") if subject.entry is not None else ""
    if gender == "f" or subject.lemma.text in _FEMALE:
        return pronoun(d, "she", "nsubj")
    male = gender == "m" or subject.lemma.text in _MALE or d.chance(0.5)
    return pronoun(d, "he" if male else "she", "nsubj")


def _whose(d: Draw, owner: Node) -> str:
    if owner.agreement != SHE or owner.lemma.upos == "PRON":
        return _WHOSE[owner.agreement]
    if kind_of(owner) in d.lexicon.kinds("human"):
        return {"she": "her", "he": "his"}.get(pronoun_for(d, owner).lemma.text, "their")
    return "its"


def with_case(d: Draw, name: str, noun: Node) -> Node:
    """A noun with an adposition."""
    return noun.add(d.word(name, "ADP", "case"))


def inside(d: Draw, classes: str, rel: str, *, det: str = "the", rich: float = 0.25) -> Node:
    """A place of these classes with the adposition that goes with it: in the kitchen, on the beach."""
    noun = thing(d, classes, rel, det=det, rich=rich)
    return with_case(d, noun.entry.settings.get("prep", "in") if noun.entry is not None else "in", noun)


def joined(d: Draw, first: Node, second: Node, conjunction: str = "and") -> Node:
    """Two phrases joined by a conjunction; returns the first."""
    second.rel = "conj"
    return first.add(second.add(d.word(conjunction, "CCONJ", "cc")))


def comma(d: Draw, place: str = "closing") -> Node:
    """A comma at one end of a phrase."""
    return d.word(",", "PUNCT", "punct", place)


def amount(d: Draw, unit: str, rel: str) -> Node:
    """A number of units, in figures."""
    node = d.word(unit, "NOUN", rel)
    node.plural = True
    return node.add(d.node(d.entry("number", "digits").lemma, "nummod"))


# -------------------------------------------------------------------------------------------- events

ACTIONS = "transitive|intransitive|motion|giving|placing|prepositional"
_LIVELY = frozenset({"imp", "inf", "perf", "prog", "pastprog"})
_FRAMES = f"transitive transitive transitive transitive {ACTIONS.replace('|', ' ')} prepositional"


def event(
    d: Draw, tense: str, *, frame: str = "", subject: Node | None = None, rel: str = "root", full: float = 0.5
) -> Node:
    """A clause in which somebody does something; `full` is how likely each adjunct is.

    What is asked for, going on or done already is no state such as liking.
    """
    without = "state" if tense in _LIVELY else ""
    if subject is None:
        entry = d.entry("verb", frame or d.among(_FRAMES), without=without)
        subject = thing(d, entry.settings["subj"], "nsubj")
    else:
        entry = d.pick(d.lexicon.verbs(frame or ACTIONS, "subj", kind_of(subject), without=without))
    verb = doing(d, entry, subject, tense)
    verb.rel = rel
    FRAMES[entry.kind](d, verb, entry)
    return adjuncts(d, verb, full)


def doing(d: Draw, entry: Entry, subject: Node, tense: str) -> Node:
    """A verb with its subject, and nothing else yet."""
    verb = d.node(entry.lemma, "root", entry)
    verb.tense = tense
    return with_subject(verb, subject)


def with_subject(verb: Node, subject: Node) -> Node:
    """Give a predicate its subject, and let it agree."""
    verb.agreement = THEY if subject.has("conj") else subject.agreement
    return verb.add(subject)


def _transitive(d: Draw, verb: Node, entry: Entry) -> None:
    subject = next((kid for kid in verb.kids if kid.rel == "nsubj"), None)
    verb.add(thing(d, entry.settings["obj"], "obj", owner=subject))


def _intransitive(d: Draw, verb: Node, entry: Entry) -> None:
    """Nothing more is needed."""


def _motion(d: Draw, verb: Node, entry: Entry) -> None:
    if "town" in entry.settings["to"] and d.chance(0.4):
        goal = location(d, "obl")
    else:
        goal = thing(d, entry.settings["to"], "obl", det="the")
    verb.add(with_case(d, entry.settings["prep"], goal))


def _giving(d: Draw, verb: Node, entry: Entry) -> None:
    receiver = thing(d, entry.settings["to"], "iobj", det="" if d.chance(0.7) else "named")
    if d.chance(0.6):
        receiver.rel = "obl"
        with_case(d, "to", receiver)
    verb.add(thing(d, entry.settings["obj"], "obj", det="common"), receiver)


def _placing(d: Draw, verb: Node, entry: Entry) -> None:
    verb.add(thing(d, entry.settings["obj"], "obj"))
    verb.add(with_case(d, entry.settings["prep"], thing(d, entry.settings["to"], "obl", det="the")))


def _prepositional(d: Draw, verb: Node, entry: Entry) -> None:
    verb.add(with_case(d, entry.settings["prep"], thing(d, entry.settings["obj"], "obl")))


FRAMES: dict[str, Callable[[Draw, Node, Entry], None]] = {
    "transitive": _transitive,
    "intransitive": _intransitive,
    "motion": _motion,
    "giving": _giving,
    "placing": _placing,
    "prepositional": _prepositional,
}


# ------------------------------------------------------------------------------------------ adjuncts


def adjuncts(d: Draw, verb: Node, full: float) -> Node:
    """Perhaps how, where and when; never with a state such as liking."""
    entry = verb.entry
    if entry is None or "state" in entry.settings:
        return verb
    if d.chance(full * 0.35):
        verb.add(manner(d, entry))
    if "at" in entry.settings and d.chance(full):
        verb.add(where(d, entry.settings["at"]))
    return verb.add(when(d, verb.tense, "year" in entry.settings)) if d.chance(full) else verb


def manner(d: Draw, entry: Entry) -> Node:
    """How something is done, by people or by things."""
    human = d.lexicon.kinds("human")
    willing = any(kind in human for kind in d.lexicon.kinds(entry.settings["subj"]))
    node = d.node(d.entry("adverb", "manner" if willing else "process").lemma, "advmod")
    node.place = "manner"
    return node


def where(d: Draw, classes: str) -> Node:
    """Where something happens."""
    if "town" in classes and d.chance(0.4):
        return with_case(d, "in", location(d, "obl"))
    return inside(d, classes, "obl", det="the" if d.chance(0.8) else "a")


def when(d: Draw, tense: str, historic: bool = False) -> Node | None:
    """A time that goes with a tense; years only where they would be told."""
    if tense == "past" and historic and d.chance(0.5):
        return _year(d)
    options = _TIMES.get(tense)
    return _SAYING[d.among(options)](d) if options else None


def _adverb(kind: str) -> Callable[[Draw], Node]:
    def say(d: Draw) -> Node:
        node = d.node(d.entry("adverb", kind).lemma, "advmod")
        node.place = "frequency" if kind == "frequency" else "time"
        return node

    return say


def _span(word: str, upos: str, units: str) -> Callable[[Draw], Node]:
    def say(d: Draw) -> Node:
        node = d.word(d.among(units), "NOUN", "obl:tmod")
        return node.add(d.word(word, upos, "amod" if upos == "ADJ" else "det"))

    return say


def _at(d: Draw, prep: str, node: Node) -> Node:
    node.place = "time"
    return with_case(d, prep, node)


def _weekday(d: Draw) -> Node:
    return _at(d, "on", d.node(d.entry("name", "weekday").lemma, "obl"))


def _month(d: Draw) -> Node:
    return _at(d, "in", d.node(d.entry("name", "month").lemma, "obl"))


def _year(d: Draw) -> Node:
    return _at(d, "in", d.node(d.entry("number", "year").lemma, "obl"))


def _season(d: Draw) -> Node:
    node = _at(d, "in", d.node(d.entry("noun", "season").lemma, "obl"))
    return node.add(d.word("the", "DET", "det")) if d.chance(0.4) else node


def _part(d: Draw) -> Node:
    node = _at(d, "in", d.word(d.among("morning afternoon evening"), "NOUN", "obl"))
    return node.add(d.word("the", "DET", "det"))


def _ago(d: Draw) -> Node:
    unit = d.word(d.among("day week month year hour"), "NOUN", "obl:tmod", "amod")
    unit.plural = True
    unit.add(d.node(d.entry("word", "NUM").lemma, "nummod"))
    return d.word("ago", "ADV", "advmod", "time").add(unit)


_SAYING: dict[str, Callable[[Draw], Node]] = {
    "past": _adverb("past"),
    "present": _adverb("present"),
    "future": _adverb("future"),
    "often": _adverb("frequency"),
    "last": _span("last", "ADJ", "week month year night"),
    "next": _span("next", "ADJ", "week month year"),
    "every": _span("every", "DET", "day week month year morning evening night"),
    "weekday": _weekday,
    "month": _month,
    "season": _season,
    "part": _part,
    "ago": _ago,
}
_TIMES = {
    "past": "past last weekday part ago weekday season month",
    "fut": "future next weekday part month",
    "pres": "every often often",
    "prog": "present",
}
