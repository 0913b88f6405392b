"""The kinds of sentence, one small function each, told by an example.

A new one is a function with `@construction` above it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calque.text.world.lexicon import Entry
from calque.text.world.meaning import Draw, Node
from calque.text.world.phrases import (
    ACTIONS,
    FRAMES,
    adjuncts,
    amount,
    comma,
    doing,
    event,
    inside,
    joined,
    kind_of,
    location,
    organisation,
    person,
    pronoun,
    pronoun_for,
    thing,
    when,
    where,
    with_case,
    with_subject,
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


# ------------------------------------------------------------------------------------- common turns


def _tense(d: Draw) -> str:
    return "past" if d.chance(0.65) else "pres" if d.chance(0.6) else "fut"


def _now_or_then(d: Draw) -> str:
    return "past" if d.chance(0.45) else "pres"


def _negate(d: Draw, verb: Node) -> Node:
    verb.negation = d.word("not", "PART", "advmod")
    return verb


def _be(d: Draw, predicate: Node, subject: Node) -> Node:
    """A clause with a noun or an adjective as predicate."""
    predicate.rel, predicate.tense, predicate.copula = "root", _now_or_then(d), d.word("be", "AUX", "cop")
    return with_subject(predicate, subject)


def _degree(d: Draw, adjective: Node) -> Node:
    adverb = d.node(d.entry("adverb", "degree").lemma, "advmod")
    adverb.place = "degree"
    return adjective.add(adverb)


def _under(d: Draw, verb: Node, clause: Node, name: str, *, rel: str = "advcl", front: bool = False) -> Node:
    """A subordinate clause behind its verb, or before it with a comma."""
    clause.rel = rel
    clause.add(d.word(name, "SCONJ", "mark"))
    if front:
        clause.place = "front"
        clause.add(comma(d))
    return verb.add(clause)


def _part(verb: Node, rel: str) -> Node:
    return next(kid for kid in verb.kids if kid.rel == rel)


def _without(verb: Node, kid: Node) -> Node:
    verb.kids.remove(kid)
    return verb


def _place_of(d: Draw, verb: Node) -> Node | None:
    classes = verb.entry.settings.get("at") if verb.entry is not None else None
    return where(d, classes) if classes else None


def _with_object(d: Draw, noun: Node, tense: str = "past", *, without: str = "") -> Node:
    """A clause whose verb fits an object that is there already."""
    entry = d.pick(d.lexicon.verbs("transitive", "obj", kind_of(noun), without=without))
    return doing(d, entry, thing(d, entry.settings["subj"], "nsubj"), tense).add(noun)


# ------------------------------------------------------------------------------------- plain clauses


@construction(4)
def transitive(d: Draw) -> Node:
    """The nurse washed the cups in the kitchen yesterday."""
    return event(d, _tense(d), frame="transitive", full=0.6)


@construction(1.5)
def intransitive(d: Draw) -> Node:
    """The children laughed quietly in the garden on Sunday."""
    return event(d, _tense(d), frame="intransitive", full=0.9)


@construction(1.5)
def giving(d: Draw) -> Node:
    """Anna gave her brother an old book."""
    return event(d, _tense(d), frame="giving", full=0.6)


@construction(1.5)
def motion(d: Draw) -> Node:
    """The tourists walked slowly to the station last week."""
    return event(d, _tense(d), frame="motion", full=0.9)


@construction(1.2)
def placing(d: Draw) -> Node:
    """The clerk put the letters in a drawer."""
    return event(d, _tense(d), frame="placing", full=0.6)


@construction(1.5)
def prepositional(d: Draw) -> Node:
    """The neighbours talked about the accident two days ago."""
    return event(d, _tense(d), frame="prepositional", full=0.9)


@construction()
def comment(d: Draw) -> Node:
    """Unfortunately, the waiter dropped the plate."""
    said = d.node(d.entry("adverb", "comment").lemma, "advmod")
    said.place = "comment"
    return event(d, "past").add(said.add(comma(d)))


@construction()
def future(d: Draw) -> Node:
    """The students will visit the museum next month."""
    return event(d, "fut", full=0.7)


@construction()
def perfect(d: Draw) -> Node:
    """The baker has already cleaned the window in the hall."""
    verb = event(d, "perf", full=0.7)
    return verb.add(d.word("already", "ADV", "advmod", "frequency")) if d.chance(0.4) else verb


@construction()
def progressive(d: Draw) -> Node:
    """The girls were playing chess at the stadium."""
    return event(d, "pastprog" if d.chance(0.5) else "prog", full=0.8)


@construction(1.5)
def modal(d: Draw) -> Node:
    """The judge may sentence the thief tomorrow."""
    verb = event(d, "pres", full=0)
    verb.modal = d.word(d.among("can must should may could"), "AUX", "aux")
    return verb.add(_place_of(d, verb), when(d, "fut"))


@construction(0.7)
def pronoun_subject(d: Draw) -> Node:
    """They watched a long film at the cinema."""
    return event(d, _tense(d), subject=pronoun(d, d.among("I you he she we they"), "nsubj"), full=0.8)


@construction(1.5)
def company_news(d: Draw) -> Node:
    """Orion Airlines hired three engineers in Lisbon in 2012."""
    entry = d.pick(d.lexicon.verbs("transitive", "subj", "institution"))
    verb = doing(d, entry, organisation(d, "nsubj"), "past" if d.chance(0.7) else "fut")
    verb.add(thing(d, entry.settings["obj"], "obj", det="common"))
    return verb.add(with_case(d, "in", location(d, "obl")), when(d, verb.tense, historic=True))


@construction(1.2)
def employee(d: Draw) -> Node:
    """Nina Keller works as an engineer for Orion Energy in Oslo."""
    verb = with_subject(d.word("work", "VERB", "root"), person(d, "nsubj", full=0.6))
    verb.tense = _tense(d)
    role = with_case(d, "as.like", _calling(d, "obl"))
    return verb.add(role, with_case(d, "for", organisation(d, "obl")), with_case(d, "in", location(d, "obl")))


@construction(0.8)
def accompanied(d: Draw) -> Node:
    """The tourist travelled to Prague without his wife."""
    verb = event(
        d, _tense(d), frame=d.among("motion intransitive"), subject=thing(d, "person", "nsubj"), full=0.4
    )
    other = thing(d, "kin|folk|pet", "obl", owner=_part(verb, "nsubj"))
    return verb.add(with_case(d, d.among("with with without"), other))


@construction(0.8)
def lasting(d: Draw) -> Node:
    """The officers waited at the station until 9:00."""
    verb = event(d, "past", frame="intransitive", subject=thing(d, "folk", "nsubj"), full=0)
    end = d.node(d.entry("number", "clock").lemma, "obl")
    if d.chance(0.6):
        verb.tense, end = "perf", d.node(d.entry("number", "year").lemma, "obl")
    end.place = "time"
    return verb.add(_place_of(d, verb), with_case(d, "since" if verb.tense == "perf" else "until", end))


@construction(0.7)
def flowing(d: Draw) -> Node:
    """The Danube flows slowly through Norway."""
    river = location(d, "nsubj", "river").add(d.word("the", "DET", "det"))
    verb = with_subject(d.word("flow", "VERB", "root"), river)
    verb.tense = "pres"
    speed = d.node(d.entry("adverb", "process").lemma, "advmod")
    speed.place = "manner"
    goal = with_case(d, d.among("through to towards"), location(d, "obl", d.among("country city")))
    return verb.add(speed if d.chance(0.7) else None, goal, when(d, "pres") if d.chance(0.4) else None)


@construction(0.7)
def interjection(d: Draw) -> Node:
    """Sorry, I lost the key at the station."""
    said = d.word(d.among("sorry hello thanks"), "INTJ", "discourse", "comment")
    verb = event(d, "past", subject=pronoun(d, d.among("I we"), "nsubj"), full=0.6)
    return verb.add(said.add(comma(d)))


# ------------------------------------------------------------------------------------------ negation


@construction(1.5)
def negated(d: Draw) -> Node:
    """The tailor did not sell the coats."""
    verb = event(d, _now_or_then(d), full=0)
    return _negate(d, verb.add(_place_of(d, verb), when(d, "past") if verb.tense == "past" else None))


@construction(0.8)
def negated_modal(d: Draw) -> Node:
    """The patient cannot take the pills tomorrow."""
    return _negate(d, modal(d))


@construction(0.7)
def negated_future(d: Draw) -> Node:
    """The mayor will not sign the treaty on Monday."""
    return _negate(d, event(d, "fut", full=0.7))


@construction(0.8)
def never(d: Draw) -> Node:
    """My aunt has never eaten figs in a restaurant."""
    verb = event(d, "perf" if d.chance(0.6) else "past", full=0)
    return verb.add(d.word("never", "ADV", "advmod", "frequency"), _place_of(d, verb))


@construction(0.6)
def nobody(d: Draw) -> Node:
    """Nobody opened the window in the cellar."""
    subject = pronoun(d, d.among("nobody nobody everyone someone"), "nsubj")
    return event(d, "past", subject=subject, full=0.8)


@construction(0.8)
def negated_copula(d: Draw) -> Node:
    """The shops in the village are not expensive."""
    subject, adjective = _described(d)
    return _negate(d, _be(d, adjective, subject))


# ------------------------------------------------------------------------------------------- passives


def _passive(d: Draw, tense: str) -> tuple[Node, Entry]:
    entry = d.entry("verb", "transitive", without="state")
    subject = thing(d, entry.settings["obj"], "nsubj:pass", det="common")
    verb = doing(d, entry, subject, tense)
    verb.passive = True
    return verb, entry


def _by(d: Draw, entry: Entry) -> Node:
    return with_case(d, "by", thing(d, entry.settings["subj"], "obl:agent"))


@construction(1.5)
def passive_agent(d: Draw) -> Node:
    """The castle was destroyed by a fire in 1848."""
    verb, entry = _passive(d, "past" if d.chance(0.8) else "fut")
    verb.add(_by(d, entry))
    return verb.add(when(d, verb.tense, "year" in entry.settings)) if d.chance(0.6) else verb


@construction(1.2)
def passive(d: Draw) -> Node:
    """The soup was cooked slowly in the kitchen."""
    verb, _ = _passive(d, _tense(d))
    return adjuncts(d, verb, 0.8)


@construction(0.6)
def passive_negated(d: Draw) -> Node:
    """The contract was not signed on Friday."""
    verb, _ = _passive(d, "past")
    return _negate(d, adjuncts(d, verb, 0.7))


@construction(0.6)
def passive_perfect(d: Draw) -> Node:
    """The song has been recorded by a famous singer."""
    verb, entry = _passive(d, "perf")
    return verb.add(_by(d, entry))


# ------------------------------------------------------------------------------------- being, becoming

_MOVABLE = "clothes|furniture|furnishing|device|vehicle|text|tool|container|snack|meal|toy|vessel"
_FIXED = "building|town|water|land|road|station|campus|stage"
_HUMAN = "folk|trade|artist|athlete|learner|teacher|scholar"
_ABSTRACT = "topic|sum|law|event|show|illness|material|contest"
_CALLING = "trade|artist|scholar|medic|teacher|athlete|manager"


def _described(d: Draw) -> tuple[Node, Node]:
    """A thing, perhaps with where it is or comes from, and a quality it may have more or less of."""
    classes = d.among(f"{_MOVABLE} {_FIXED} {_HUMAN} {_ABSTRACT}")
    subject = thing(d, classes, "nsubj", det=d.among("the the the plural plural this those owned"), rich=0)
    if d.chance(0.6):
        subject.add(_setting(d, classes))
    return subject, _gradable(d, kind_of(subject))


def _setting(d: Draw, classes: str) -> Node | None:
    if classes == _HUMAN:
        return with_case(d, "from", location(d, "nmod"))
    if classes == _FIXED:
        return with_case(d, d.among("in near"), location(d, "nmod"))
    return inside(d, "room|shop|eatery", "nmod") if classes == _MOVABLE else None


def _gradable(d: Draw, kind: str, rel: str = "root") -> Node:
    return d.node(d.entry("adj", kind, without="grade").lemma, rel)


def _calling(d: Draw, rel: str) -> Node:
    role = thing(d, _CALLING, rel, det="a", rich=0)
    return role.add(d.node(d.entry("adj", "calling").lemma, "amod")) if d.chance(0.6) else role


@construction(1.5)
def copula_adjective(d: Draw) -> Node:
    """The houses near Oslo are quite old."""
    subject, adjective = _described(d)
    return _be(d, _degree(d, adjective) if d.chance(0.6) else adjective, subject)


@construction(1.2)
def copula_noun(d: Draw) -> Node:
    """Omar Silva is a patient teacher from Cairo."""
    role = _calling(d, "root")
    origin = with_case(d, "from", location(d, "nmod")) if d.chance(0.6) else inside(d, "town", "nmod")
    return _be(d, role.add(origin), person(d, "nsubj"))


@construction()
def copula_place(d: Draw) -> Node:
    """The scissors are in the large drawer."""
    at = inside(d, "room|container|eatery|town|station|nature", "root", rich=0.4)
    return _be(d, at, thing(d, "folk|kin|pet|text|clothes|toy|tool|stationery", "nsubj"))


@construction()
def hidden(d: Draw) -> Node:
    """The kitten is behind the large sofa."""
    at = with_case(
        d, d.among("under behind near"), thing(d, "furniture|furnishing|vehicle", "root", det="the")
    )
    return _be(d, at, thing(d, "pet|toy|clothes|container|tool|stationery", "nsubj", det="common"))


@construction(1.2)
def existential(d: Draw) -> Node:
    """There were several cats in the garden."""
    verb = d.word("be", "VERB", "root")
    classes = "folk|pet|wild|plant|furniture|vehicle|snack|vessel|insect|flyer"
    found = thing(d, classes, "nsubj", det=d.among("a a numeral several many"), rich=0.5)
    found.place = "obj"
    verb.tense, verb.agreement = _now_or_then(d), found.agreement
    return verb.add(
        d.word("there", "PRON", "expl"), found, inside(d, "room|nature|town|farmland|land", "obl")
    )


@construction()
def becoming(d: Draw) -> Node:
    """The student became a famous painter in 1998."""
    subject = thing(d, "kin|folk|learner", "nsubj", det="named" if d.chance(0.6) else "the")
    verb = doing(d, d.entry("verb", "becoming"), subject, "past" if d.chance(0.7) else "fut")
    return verb.add(_calling(d, "xcomp"), when(d, verb.tense, historic=True))


@construction(0.8)
def naming(d: Draw) -> Node:
    """The council appointed Omar Silva as governor in 2016."""
    entry = d.entry("verb", "naming")
    verb = doing(d, entry, thing(d, entry.settings["subj"], "nsubj", det="the"), "past")
    role = with_case(d, "as.like", thing(d, f"office|manager|{_CALLING}", "obl", det="bare", rich=0))
    role.plural = False
    return verb.add(person(d, "obj", full=0.7), role, when(d, "past", historic=True))


@construction()
def seeming(d: Draw) -> Node:
    """The pupils looked very nervous before the exam."""
    subject = thing(d, "folk|kin|trade|artist|learner", "nsubj", rich=0)
    verb = doing(d, d.entry("verb", "seeming"), subject, "past")
    feeling = d.node(d.entry("adj", "mood").lemma, "xcomp")
    noun = thing(d, "event|show|contest", "obl", det="the")
    around = with_case(d, d.among("after.time before.time during"), noun)
    return verb.add(_degree(d, feeling) if d.chance(0.5) else feeling, around)


# ----------------------------------------------------------------------------------------- comparison


@construction()
def comparative(d: Draw) -> Node:
    """The lake near Riga is deeper than the river."""
    subject, adjective = _described(d)
    adjective.degree = "more"
    than = with_case(d, "than", thing(d, kind_of(subject), "obl", det="common"))
    return _be(d, adjective.add(than), subject)


@construction(0.8)
def superlative(d: Draw) -> Node:
    """Clara Rossi was the youngest champion in Spain."""
    best = thing(d, _CALLING, "root", det="the", rich=0)
    adjective = _gradable(d, "calling", "amod")
    adjective.degree = "most"
    region = with_case(d, "in", location(d, "nmod", "city" if d.chance(0.5) else "country"))
    return _be(d, best.add(adjective, region), person(d, "nsubj"))


@construction(0.7)
def equative(d: Draw) -> Node:
    """The novel was as interesting as the film."""
    subject, adjective = _described(d)
    adjective.add(d.word("as", "ADV", "advmod", "degree"))
    other = with_case(d, "as.like", thing(d, kind_of(subject), "obl", det="common"))
    return _be(d, adjective.add(other), subject)


_MEASURED = {"long": "road", "deep": "water", "high": "building", "wide": "road"}


@construction(0.7)
def measured(d: Draw) -> Node:
    """The tunnel near Bergen is 300 metres long."""
    name = d.among("long deep high wide")
    size = amount(d, d.among("kilometre mile metre") if name == "long" else "metre", "obl")
    size.place = "degree"
    subject = thing(d, _MEASURED[name], "nsubj", det="the")
    subject.add(with_case(d, "near", location(d, "nmod")))
    return _be(d, d.word(name, "ADJ", "root").add(size), subject)


# ------------------------------------------------------------------------------------------ questions


def asked(verb: Node) -> Node:
    """Make a clause a question to be answered with yes or no."""
    verb.inverted = verb.question = True
    return verb


@construction(1.2, end="?")
def question(d: Draw) -> Node:
    """Did the farmer feed the horses in the stable?"""
    return asked(event(d, _tense(d), full=0.6))


@construction(0.6, end="?")
def question_copula(d: Draw) -> Node:
    """Is the restaurant in the village expensive?"""
    subject, adjective = _described(d)
    return asked(_be(d, adjective, subject))


@construction(0.8, end="?")
def question_who(d: Draw) -> Node:
    """Who stole the necklace last night?"""
    return event(d, "past", subject=pronoun(d, "who", "nsubj"), full=0.9)


@construction(0.8, end="?")
def question_what(d: Draw) -> Node:
    """What did the carpenter buy in the shop on Monday?"""
    verb = event(d, "past", frame="transitive", full=0.8)
    verb.inverted = True
    return _without(verb, _part(verb, "obj")).add(d.word("what", "PRON", "obj", "wh"))


@construction(end="?")
def question_why(d: Draw) -> Node:
    """Why did the minister reject the reform yesterday?"""
    verb = event(d, "past", full=0)
    verb.inverted = True
    name = d.among("when.question why how why")
    tail = _place_of(d, verb) if name == "when.question" else when(d, "past")
    return verb.add(d.word(name, "ADV", "advmod", "wh"), tail)


@construction(0.6, end="?")
def question_where(d: Draw) -> Node:
    """Where did Nina meet the journalist on Sunday?"""
    verb = event(d, "past", frame="transitive", full=0)
    verb.inverted = True
    return verb.add(d.word("where", "ADV", "advmod", "wh"), when(d, "past"))


def _fronted(d: Draw, noun: Node, asking: Node) -> Node:
    noun.place = "wh"
    verb = _with_object(d, noun.add(asking))
    verb.inverted = True
    return adjuncts(d, verb, 0.8)


_COUNTED = "snack|text|clothes|vehicle|tool|plant|folk|furniture|document|artwork"


@construction(0.7, end="?")
def question_which(d: Draw) -> Node:
    """Which painting did the queen admire?"""
    noun = thing(d, _COUNTED, "obj", det="bare")
    noun.plural = d.chance(0.4)
    return _fronted(d, noun, d.word("which", "DET", "det"))


@construction(0.6, end="?")
def question_how_many(d: Draw) -> Node:
    """How many pears did your uncle buy?"""
    many = d.word("many", "DET", "det").add(d.word("how", "ADV", "advmod", "degree"))
    return _fronted(d, thing(d, _COUNTED, "obj", det="bare"), many)


# ----------------------------------------------------------------------------------------- imperatives


def _command(d: Draw) -> Node:
    you = pronoun(d, "you", "nsubj")
    verb = event(d, "imp", frame=d.among("transitive placing giving"), subject=you, full=0)
    return _without(verb, you)


@construction()
def imperative(d: Draw) -> Node:
    """Please wash the cups in the kitchen."""
    verb = _command(d)
    if not verb.has("obl") and not verb.has("iobj"):
        verb.add(_place_of(d, verb))
    return verb.add(d.word("please", "ADV", "advmod", "comment") if d.chance(0.5) else when(d, "fut"))


@construction(0.7)
def prohibition(d: Draw) -> Node:
    """Do not hide the letters in the wardrobe."""
    verb = _command(d)
    return _negate(d, verb.add(when(d, "fut") if verb.has("obl") else _place_of(d, verb)))


@construction(0.7)
def vocative(d: Draw) -> Node:
    """Martin, bring the ladder to the gardener tomorrow."""
    return _command(d).add(person(d, "vocative", full=0).add(comma(d)), when(d, "fut"))


# ----------------------------------------------------------------------------------- complement clauses


def _teller(d: Draw, frame: str) -> Node:
    entry = d.entry("verb", frame)
    subject = thing(d, entry.settings["subj"], "nsubj", rich=0.2)
    return doing(d, entry, subject, "past" if d.chance(0.7) else "pres")


@construction(1.6)
def complement(d: Draw) -> Node:
    """The reporter claimed that the president had corrupt friends."""
    verb = _teller(d, "saying" if d.chance(0.5) else "thinking")
    inner = event(d, "past" if verb.tense == "past" else _tense(d), full=0.3)
    return _under(d, verb, inner, "that.clause", rel="ccomp")


@construction(0.8)
def whether(d: Draw) -> Node:
    """The teacher wondered whether the girl understood the poem."""
    return _under(d, _teller(d, "wondering"), event(d, "past", full=0.3), "whether", rel="ccomp")


@construction(1.4)
def wanting(d: Draw) -> Node:
    """The widow wants to sell the house."""
    verb = _teller(d, "wanting")
    return verb.add(_infinitive(d, _part(verb, "nsubj")))


def _infinitive(d: Draw, subject: Node, rel: str = "xcomp") -> Node:
    """What a subject could do, without saying the subject again."""
    inner = event(d, "inf", subject=subject, rel=rel, full=0.4)
    _without(inner, subject)
    return inner.add(when(d, "fut")) if d.chance(0.25) else inner


@construction()
def urging(d: Draw) -> Node:
    """The coach told the players not to smoke."""
    entry = d.entry("verb", "urging")
    subject, urged = thing(d, entry.settings["subj"], "nsubj", rich=0.2), thing(d, "person", "obj", rich=0.2)
    inner = _infinitive(d, urged)
    if d.chance(0.25) and entry.lemma.text in ("ask", "tell", "advise", "persuade", "order", "beg"):
        _negate(d, inner)
    return doing(d, entry, subject, "past" if d.chance(0.8) else "fut").add(urged, inner)


@construction(0.8)
def extraposed(d: Draw) -> Node:
    """It is dangerous to swim in the canal."""
    easy = "important difficult dangerous strange simple boring exciting useful"
    adjective = d.word(d.among(easy), "ADJ", "root")
    adjective.tense, adjective.copula = _now_or_then(d), d.word("be", "AUX", "cop")
    inner = _infinitive(d, pronoun(d, "someone", "nsubj"), "csubj")
    return adjective.add(d.word("it", "PRON", "expl"), inner)


# ------------------------------------------------------------------------------------- relative clauses


@construction(1.3)
def relative_subject(d: Draw) -> Node:
    """The detective who followed the spy arrested a smuggler."""
    entry = d.entry("verb", "transitive|intransitive|motion|prepositional")
    head = thing(d, entry.settings["subj"], "nsubj", det="common", rich=0.2)
    verb = doing(d, entry, head.add(_relative(d, head)), "past" if d.chance(0.7) else "fut")
    FRAMES[entry.kind](d, verb, entry)
    return adjuncts(d, verb, 0.3)


def _relative(d: Draw, head: Node) -> Node:
    """A clause about a noun that is its subject."""
    human = kind_of(head) in d.lexicon.kinds("human")
    subject = d.word("who" if human else "that.relative", "PRON", "nsubj", "relative")
    subject.agreement, subject.entry = head.agreement, head.entry
    return event(d, "past", subject=subject, rel="acl:relcl", full=0.25)


@construction(1.2)
def relative_object(d: Draw) -> Node:
    """The story that my grandfather told was sad."""
    head = thing(d, f"{_MOVABLE}|building|law|topic|plant|tune|artwork", "obj", det="common", rich=0)
    inner = _without(_with_object(d, head), head)
    inner.rel = "acl:relcl"
    inner.add(d.word("that.relative", "PRON", "obj", "relative"))
    head.rel = "nsubj"
    return _be(d, _gradable(d, kind_of(head)), head.add(adjuncts(d, inner, 0.3)))


# --------------------------------------------------------------------------------------- noun phrases


@construction(1.2)
def possessive(d: Draw) -> Node:
    """The thief stole Maria's expensive watch at the station."""
    classes = "clothes|jewel|device|vehicle|text|toy|furniture|artwork|document|pet"
    owned = thing(d, classes, "obj", det="bare")
    owned.plural = d.chance(0.3)
    owner = thing(d, "person", "nmod:poss", det="named" if d.chance(0.5) else "the", rich=0)
    return adjuncts(d, _with_object(d, owned.add(owner), _tense(d), without="year"), 0.5)


_WHOLES = {
    "housepart": "building",
    "opening": "building",
    "treepart": "plant",
    "riverpart": "water",
    "writing": "text|document",
    "feature": "wild|farm|pet",
    "wingpart": "flyer",
    "fin": "swimmer",
    "quality": "clothes|furniture|vehicle|device",
}


@construction(1.2)
def part_of(d: Draw) -> Node:
    """The artist drew the roof of the old church."""
    name = d.among(" ".join(_WHOLES))
    part = d.node((entry := d.entry("noun", name)).lemma, "obj", entry).add(d.word("the", "DET", "det"))
    part.add(with_case(d, "of", thing(d, _WHOLES[name], "nmod", det="the")))
    seen = d.word(d.among("see describe remember examine notice mention"), "VERB", "root")
    seen.tense = "past"
    with_subject(seen, thing(d, "folk|artist|learner|kin|scholar", "nsubj"))
    return seen.add(part, when(d, "past") if d.chance(0.7) else None)


@construction(1.2)
def prices(d: Draw) -> Node:
    """My sister bought three scarves for 40 euros at the market."""
    verb = d.word(d.among("buy sell"), "VERB", "root")
    verb.tense = "past"
    with_subject(verb, thing(d, "folk|kin|servant|artist", "nsubj"))
    goods = thing(d, "snack|clothes|text|tool|furniture|toy|vessel", "obj", det="numeral")
    price = with_case(d, "for", amount(d, d.among("euro pound dollar"), "obl"))
    return verb.add(goods, price, where(d, "shop"))


@construction()
def apposition(d: Draw) -> Node:
    """Hugo Keller, a young doctor from Vienna, visited the clinic."""
    subject = person(d, "nsubj", full=0.6)
    role = _calling(d, "appos")
    role.add(with_case(d, "from", location(d, "nmod")), comma(d, "opening"), comma(d))
    verb = event(d, "past", subject=subject, full=0.4)
    subject.add(role)
    return verb


@construction(0.8)
def both_places(d: Draw) -> Node:
    """The ferry travels between Tunis and Athens every week."""
    subject = thing(d, "vehicle", "nsubj", det="the")
    verb = d.word(d.among("travel run.move"), "VERB", "root")
    verb.tense = _tense(d)
    ends = joined(d, location(d, "obl"), location(d, "conj"))
    return with_subject(verb, subject).add(with_case(d, "between", ends), when(d, verb.tense))


# -------------------------------------------------------------------------------------- coordination


def _other(d: Draw, classes: str, first: Node) -> Node:
    """Something else of the same classes, or the same for want of another."""
    for _ in range(5):
        second = thing(d, classes, "conj")
        if second.lemma is not first.lemma:
            break
    return second


@construction(1.2)
def joined_subjects(d: Draw) -> Node:
    """The poet and the dancer travelled to Prague."""
    entry = d.entry("verb", ACTIONS)
    first = thing(d, entry.settings["subj"], "nsubj")
    verb = doing(d, entry, joined(d, first, _other(d, entry.settings["subj"], first)), _tense(d))
    FRAMES[entry.kind](d, verb, entry)
    return adjuncts(d, verb, 0.5)


@construction(1.2)
def joined_objects(d: Draw) -> Node:
    """Vera bought a blue skirt and two hats."""
    verb = event(d, _tense(d), frame="transitive", full=0.4)
    first, classes = _part(verb, "obj"), verb.entry.settings["obj"] if verb.entry is not None else "food"
    joined(d, first, _other(d, classes, first), d.among("and and or"))
    return verb


@construction(0.8)
def either_or(d: Draw) -> Node:
    """My niece will buy either a doll or a balloon tomorrow."""
    verb = event(d, d.among("past fut"), frame="transitive", full=0.4)
    first, classes = _part(verb, "obj"), verb.entry.settings["obj"] if verb.entry is not None else "food"
    pair = d.among("either both.and")
    first.add(d.word(pair, "CCONJ", "cc:preconj"))
    joined(d, first, _other(d, classes, first), "or" if pair == "either" else "and")
    return verb


@construction(1.2)
def joined_verbs(d: Draw) -> Node:
    """The cook chopped the onions and fried the sausages."""
    verb = event(d, "past" if d.chance(0.7) else "fut", full=0.2)
    subject = _part(verb, "nsubj")
    second = _without(event(d, verb.tense, subject=subject, full=0.4), subject)
    return joined(d, verb, second, d.among("and and but"))


@construction(1.4)
def joined_clauses(d: Draw) -> Node:
    """The pilot waited for the passengers, but the bus did not arrive."""
    verb, second = event(d, "past", full=0.3), event(d, "past", full=0.3)
    conjunction = d.among("and but")
    if conjunction == "but" and d.chance(0.5):
        _negate(d, second)
    return joined(d, verb, second.add(comma(d, "opening")), conjunction)


@construction(0.8)
def joined_adjectives(d: Draw) -> Node:
    """The streets in Dublin were narrow and crowded."""
    subject, adjective = _described(d)
    second = _gradable(d, kind_of(subject))
    while second.lemma is adjective.lemma:
        second = _gradable(d, kind_of(subject))
    return _be(d, joined(d, adjective, second), subject)


# ----------------------------------------------------------------------------------- adverbial clauses


def _subordinate(d: Draw, name: str, tenses: tuple[str, str], front: float) -> Node:
    """Two events under a conjunction; a person may come back as a pronoun."""
    verb = event(d, tenses[0], full=0.2)
    subject = _part(verb, "nsubj")
    known = kind_of(subject) in d.lexicon.kinds("human") and d.chance(0.4)
    inner = event(d, tenses[1], subject=pronoun_for(d, subject) if known else None, full=0.2)
    return _under(d, verb, inner, name, front=not known and d.chance(front))


@construction(1.2)
def because(d: Draw) -> Node:
    """The guests left because they missed their children."""
    return _subordinate(d, "because", ("past", "past"), 0.2)


@construction(1.1)
def when_clause(d: Draw) -> Node:
    """When the bell rang, the pupils closed the books."""
    return _subordinate(d, "when", ("past", "past"), 0.6)


@construction()
def conditional(d: Draw) -> Node:
    """If the wind stops, the sailors will cross the lake."""
    return _subordinate(d, d.among("if if unless"), ("fut", "pres"), 0.6)


@construction(0.9)
def although(d: Draw) -> Node:
    """Although the soup was cold, the guests ate it."""
    return _subordinate(d, "although", ("past", "past"), 0.6)


@construction()
def before_after(d: Draw) -> Node:
    """The actor read the script before he met the director."""
    return _subordinate(d, d.among("before after"), ("past", "past"), 0.5)


@construction(0.8)
def while_clause(d: Draw) -> Node:
    """The dog slept while the children were singing a song."""
    return _under(d, event(d, "past", full=0.2), event(d, "pastprog", full=0.2), "while", front=d.chance(0.4))


@construction()
def purpose(d: Draw) -> Node:
    """Teresa went to the library to read a newspaper."""
    verb = event(d, "past", frame=d.among("motion motion giving"), full=0.1)
    return verb.add(_infinitive(d, _part(verb, "nsubj"), "advcl"))


@construction(0.7)
def weather(d: Draw) -> Node:
    """It snowed in Bergen when the train arrived at the station."""
    verb = d.node(d.entry("verb", "raining").lemma, "root")
    verb.tense = d.among("past past fut")
    verb.add(d.word("it", "PRON", "expl"), with_case(d, "in", location(d, "obl")))
    if verb.tense == "past" and d.chance(0.6):
        return _under(d, verb, event(d, "past", full=0.2), d.among("before after when while"))
    return verb.add(when(d, verb.tense))
