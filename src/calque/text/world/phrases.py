"""Phrases that constructions are made of: things, events, times, places."""

from __future__ import annotations

from collections.abc import Callable

from calque.text.world.lexicon import Entry
from calque.text.world.meaning import SHE, THEY, WE, YOU, Draw, I, Node

_PRONOUNS = {"I": I, "you": YOU, "he": SHE, "she": SHE, "it": SHE, "we": WE, "they": THEY}
_POSSESSIVES = "his her his her their my our your"
_INDOORS = "room eatery shop campus"


# -------------------------------------------------------------------------------------------- things


def thing(d: Draw, classes: str, rel: str, *, det: str = "", rich: float = 0.3) -> Node:
    """Something of these classes, with a determiner and perhaps an adjective; people may have names.

    `det` is "" for any, or "the", "a", "bare", "named" or "plain" (neither a name nor a quantifier).
    """
    entry = d.entry("noun", classes)
    named = entry.kind in d.lexicon.groups["person"] and not entry.settings.get("owned")
    if named and (det == "named" or (not det and d.chance(0.35))):
        return person(d, rel)
    node = d.node(entry.lemma, rel, entry)
    determine(d, node, "" if det == "named" else det)
    if d.chance(rich):
        node.add(quality(d, entry))
    return node


def determine(d: Draw, node: Node, det: str) -> None:
    """Give a noun its number and determiner."""
    entry = node.entry
    mass = entry is not None and "mass" in entry.settings
    if det in ("", "plain") and entry is not None and "owned" in entry.settings and d.chance(0.85):
        det = "owned"
    if det in ("", "plain"):
        det = _MASS(d) if mass else _COUNT(d)
    if det == "a" and mass:
        det = "bare"
    if det in ("plural", "numeral", "bare", "these", "those", "several", "many") and not mass:
        node.plural = True
    if det == "numeral":
        node.add(d.node(d.entry("word", "NUM").lemma, "nummod"))
    elif det == "owned":
        node.add(d.word(d.among(_POSSESSIVES), "DET", "det"))
    elif det == "plural":
        node.add(d.word("the", "DET", "det"))
    elif det != "bare":
        node.add(d.word(det, "DET", "det"))
    node.agreement = THEY if node.plural else SHE


def _MASS(d: Draw) -> str:
    return "the" if d.chance(0.6) else "some" if d.chance(0.4) else "bare" if d.chance(0.7) else "owned"


def _COUNT(d: Draw) -> str:
    if d.chance(0.62):
        return "the" if d.chance(0.6) else "a"
    if d.chance(0.4):
        return "plural"
    return d.among("owned owned bare numeral this that.far these every several many those")


def quality(d: Draw, entry: Entry | None) -> Node | None:
    """An adjective that fits a thing."""
    pool = d.lexicon.pool("adj", entry.kind) if entry is not None else None
    return d.node(d.pick(pool).lemma, "amod") if pool is not None and pool.entries else None


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
    node = d.node(d.entry("name", "brand").lemma, rel)
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
    for part in _inside(node):
        part.slot, part.span = label, node.key
    return node


def _inside(node: Node) -> list[Node]:
    kids = [kid for kid in node.kids if kid.rel not in ("det", "case", "punct")]
    return [node, *(part for kid in kids for part in _inside(kid))]


def pronoun(d: Draw, name: str, rel: str) -> Node:
    """A pronoun with its person and number."""
    node = d.word(name, "PRON", rel)
    node.agreement = _PRONOUNS.get(name, SHE)
    return node


def pronoun_for(d: Draw, subject: Node, rel: str = "nsubj") -> Node:
    """The pronoun that would take up a subject."""
    if subject.agreement != SHE:
        return pronoun(d, {I: "I", YOU: "you", WE: "we"}.get(subject.agreement, "they"), rel)
    gender = subject.entry.settings.get("gender") if subject.entry else None
    name = {"f": "she", "m": "he"}.get(gender or "") or _gender_of(subject)
    return pronoun(d, name or d.among("he she"), rel)


_FEMALE = frozenset(
    "woman girl mother sister daughter wife aunt grandmother niece queen princess midwife widow".split()
)
_MALE = frozenset(
    "man boy father brother son husband uncle grandfather nephew king prince fisherman headmaster".split()
)


def _gender_of(subject: Node) -> str:
    text = subject.lemma.text
    return "she" if text in _FEMALE else "he" if text in _MALE else ""


def with_case(d: Draw, name: str, noun: Node) -> Node:
    """A noun with an adposition."""
    return noun.add(d.word(name, "ADP", "case"))


def joined(d: Draw, first: Node, second: Node, conjunction: str = "and") -> Node:
    """Two phrases joined by a conjunction."""
    second.rel = "conj"
    second.add(d.word(conjunction, "CCONJ", "cc"))
    first.add(second)
    if conjunction == "and":
        first.agreement = THEY
    return first


def comma(d: Draw, place: str = "closing") -> Node:
    """A comma at one end of a phrase."""
    return d.word(",", "PUNCT", "punct", place)


# -------------------------------------------------------------------------------------------- events

_FRAMES = "transitive transitive transitive transitive transitive intransitive motion giving placing prepositional prepositional"


def event(
    d: Draw, tense: str, *, frame: str = "", subject: Node | None = None, rel: str = "root", full: float = 0.5
) -> Node:
    """A clause in which somebody does something; `full` is how likely each adjunct is."""
    entry = d.entry("verb", frame or d.among(_FRAMES))
    if subject is not None and not fits(d, subject, entry):
        entry = next(
            e for e in iter(lambda: d.entry("verb", "transitive|intransitive"), None) if fits(d, subject, e)
        )
    verb = d.node(entry.lemma, rel, entry)
    verb.tense = tense
    set_subject(verb, subject or thing(d, entry.settings["subj"], "nsubj"))
    _PARTS[entry.kind](d, verb, entry)
    return adjuncts(d, verb, full)


def fits(d: Draw, subject: Node, entry: Entry) -> bool:
    """Whether a subject can do what a verb says; names and pronouns are people."""
    classes = entry.settings["subj"].split("|")
    kinds = {kind for c in classes for kind in d.lexicon.groups.get(c, (c,))}
    kind = subject.entry.kind if subject.entry is not None and subject.lemma.upos == "NOUN" else "folk"
    return kind in kinds


def set_subject(verb: Node, subject: Node) -> None:
    """Make this the subject, and let the verb agree with it."""
    verb.add(subject)
    verb.agreement = subject.agreement


def _transitive(d: Draw, verb: Node, entry: Entry) -> None:
    verb.add(thing(d, entry.settings["obj"], "obj"))


def _intransitive(d: Draw, verb: Node, entry: Entry) -> None:
    return None


def _motion(d: Draw, verb: Node, entry: Entry) -> None:
    prep = entry.settings["prep"]
    if "town" in entry.settings["to"] and d.chance(0.35):
        verb.add(with_case(d, "in" if prep == "at" else prep, location(d, "obl")))
    else:
        verb.add(with_case(d, prep, thing(d, entry.settings["to"], "obl", det="the")))


def _giving(d: Draw, verb: Node, entry: Entry) -> None:
    given = thing(d, entry.settings["obj"], "obj", det="plain")
    receiver = thing(d, entry.settings["to"], "obl", det="" if d.chance(0.7) else "named")
    if d.chance(0.4):
        receiver.rel = "iobj"
    else:
        with_case(d, "to", receiver)
    verb.add(given, receiver)


def _placing(d: Draw, verb: Node, entry: Entry) -> None:
    verb.add(thing(d, entry.settings["obj"], "obj"))
    verb.add(with_case(d, entry.settings["prep"], thing(d, entry.settings["to"], "obl", det="the")))


def _prepositional(d: Draw, verb: Node, entry: Entry) -> None:
    verb.add(with_case(d, entry.settings["prep"], thing(d, entry.settings["obj"], "obl")))


_PARTS: dict[str, Callable[[Draw, Node, Entry], None]] = {
    "transitive": _transitive,
    "intransitive": _intransitive,
    "motion": _motion,
    "giving": _giving,
    "placing": _placing,
    "prepositional": _prepositional,
}


# ------------------------------------------------------------------------------------------ adjuncts


def adjuncts(d: Draw, verb: Node, full: float) -> Node:
    """Perhaps how, where and when."""
    settings = verb.entry.settings if verb.entry is not None else {}
    if "state" not in settings and d.chance(full * 0.35):
        verb.add(d.node(d.entry("adverb", "manner").lemma, "advmod"))
    if "at" in settings and d.chance(full):
        verb.add(place(d, settings["at"]))
    if d.chance(full):
        verb.add(when(d, verb.tense))
    return verb


def place(d: Draw, classes: str) -> Node:
    """Where something happens."""
    if "town" in classes and d.chance(0.4):
        return with_case(d, "in", location(d, "obl"))
    noun = thing(d, classes, "obl", det="the" if d.chance(0.75) else "a", rich=0.25)
    return with_case(d, noun.entry.settings.get("prep", "in") if noun.entry else "in", noun)


def when(d: Draw, tense: str) -> Node | None:
    """A time that goes with a tense."""
    if tense in ("past", "pastprog"):
        return _TIMES[d.among("adverb last weekday year part ago weekday season")](d, "past", "last")
    if tense == "fut":
        return _TIMES[d.among("adverb last weekday part")](d, "future", "next")
    if tense == "pres":
        return _TIMES[d.among("every frequency frequency")](d, "present", "")
    return d.node(d.entry("adverb", "present").lemma, "advmod").add() if tense == "prog" else None


def _adverb(d: Draw, kind: str, last: str) -> Node:
    node = d.node(d.entry("adverb", kind).lemma, "advmod")
    node.place = "time"
    return node


def _frequency(d: Draw, kind: str, last: str) -> Node:
    node = d.node(d.entry("adverb", "frequency").lemma, "advmod")
    node.place = "frequency"
    return node


def _last(d: Draw, kind: str, last: str) -> Node:
    node = d.word(d.among("week month year"), "NOUN", "obl:tmod")
    return node.add(d.word(last, "ADJ", "amod"))


def _every(d: Draw, kind: str, last: str) -> Node:
    node = d.word(d.among("day week month year morning evening night"), "NOUN", "obl:tmod")
    return node.add(d.word("every", "DET", "det"))


def _weekday(d: Draw, kind: str, last: str) -> Node:
    node = with_case(d, "on", d.node(d.entry("name", "weekday").lemma, "obl"))
    node.place = "time"
    return node


def _year(d: Draw, kind: str, last: str) -> Node:
    node = with_case(d, "in", d.node(d.entry("number", "year").lemma, "obl"))
    node.place = "time"
    return node


def _season(d: Draw, kind: str, last: str) -> Node:
    node = with_case(d, "in", d.node(d.entry("noun", "season").lemma, "obl"))
    node.place = "time"
    return node.add(d.word("the", "DET", "det")) if d.chance(0.4) else node


def _part(d: Draw, kind: str, last: str) -> Node:
    node = with_case(d, "in", d.word(d.among("morning afternoon evening"), "NOUN", "obl", "time"))
    return node.add(d.word("the", "DET", "det"))


def _ago(d: Draw, kind: str, last: str) -> Node:
    node = d.word("ago", "ADV", "advmod", "time")
    unit = d.word(d.among("day week month year hour"), "NOUN", "obl:tmod")
    unit.plural, unit.place = True, "amod"
    return node.add(unit.add(d.node(d.entry("word", "NUM").lemma, "nummod")))


_TIMES: dict[str, Callable[[Draw, str, str], Node]] = {
    "adverb": _adverb,
    "frequency": _frequency,
    "last": _last,
    "every": _every,
    "weekday": _weekday,
    "year": _year,
    "season": _season,
    "part": _part,
    "ago": _ago,
}
