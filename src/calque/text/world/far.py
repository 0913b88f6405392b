"""Far: Georgian letters, verb last, postpositions and case endings, no articles, no string of English."""

from __future__ import annotations

from functools import cache

from calque.text.world.coin import Phonology, coin_words
from calque.text.world.lexicon import Lemma, lexicon
from calque.text.world.meaning import PASSIVE, SATELLITE, TENSE, Node
from calque.text.world.surface import Dressed, Language

NOT = "ვა"
SOUNDS = Phonology(
    "far",
    ("ბ", "გ", "დ", "ზ", "თ", "კ", "ლ", "მ", "ნ", "პ", "რ", "ს", "ტ", "ქ", "შ", "ჩ", "ც", "ხ", "ჯ", "ღ"),
    ("ა", "ე", "ი", "ო", "უ"),
    ("ბ", "გ", "დ", "ლ", "მ", "ნ", "რ", "ს", "ტ", "კ", "შ", "ხ"),
    (NOT,),
)
#: Latin letters, and what the names of the lexicon sound like here.
_LETTERS = str.maketrans(dict(zip("abcdefghijklmnopqrstuvwxyz", "აბცდეფგჰიჯკლმნოპქრსტუვწხყზ", strict=True)))
PUNCTUATION = {".": "።", ",": "፣", "?": "፧"}

ORDER = {
    "opening": -1000, "vocative": -900, "comment": -890, "front": -880, "advcl": -870, "time": -840,
    "obl:tmod": -840, "expl": -830, "nsubj": -800, "nsubj:pass": -800, "csubj": -790, "ccomp": -780,
    "obl:agent": -750, "obl": -740, "iobj": -730, "relative": -725, "wh": -725, "obj": -720, "xcomp": -710,
    "advmod": -700, "manner": -700, "frequency": -690,
    "cc:preconj": -210, "acl:relcl": -200, "nmod": -190, "nmod:poss": -180, "det": -170, "nummod": -160,
    "degree": -150, "amod": -140, "flat": 5, "case": 10, "second": 20, "aux": 25, "appos": 30, "mark": 40,
    "question": 50, "conj": 60, "cc": 70, "closing": 900, "punct": 1000,
}  # fmt: skip

_FUSED = {
    "in": "ში",
    "to": "ას",
    "from": "დან",
    "with": "ით",
    "of": "ის",
    "by": "ურ",
    "into": "შიდ",
    "on": "ზე",
}
_CASE = {"obj": "უმ", "iobj": "ას", "nmod:poss": "ის"}
_TENSE = {"pres": "ავ", "past": "ოთ", "fut": "ეკ", "perf": "იმ", "prog": "ავ", "pastprog": "ოთ"}
_PERSON = ("ი", "ე", "ა", "ით", "ან")


def _adopt(lemma: Lemma) -> str | None:
    if lemma.upos == "PUNCT":
        return PUNCTUATION[lemma.text]
    return lemma.text.lower().translate(_LETTERS) if lemma.upos == "PROPN" else None


@cache
def stems() -> dict[Lemma, str]:
    """The stem of every lemma."""
    return coin_words(lexicon().lemmas.values(), SOUNDS, _adopt)


def _added(name: str, upos: str, place: str, key: int, rel: str, ending: str = "") -> Node:
    lemma = lexicon().word(name, upos)
    return Node(lemma, rel, key, place=place, text=stems()[lemma] + ending)


def dress(node: Node, parent: Node | None) -> Dressed:
    """How far says a node."""
    if node.text:
        return Dressed(node.text, (), node.also)
    if _is_silent(node):
        return Dressed(None, ())
    return _predicate(node) if node.tense else _plain(node, parent)


def _plain(node: Node, parent: Node | None) -> Dressed:
    stem, upos = stems()[node.lemma], node.lemma.upos
    if upos in ("NOUN", "PROPN", "PRON") or (upos == "NUM" and node.kids):
        return _noun(node, parent, stem)
    if node.degree:
        return Dressed(
            stem + ("ეში" if node.degree == "more" else "ეშად"), node.kids, (node.key + SATELLITE,)
        )
    return Dressed(stem, node.kids)


def _is_silent(node: Node) -> bool:
    """Articles, relative pronouns, `there` and pronoun subjects have no word."""
    name, upos, rel = node.lemma.text, node.lemma.upos, node.rel
    if upos == "DET":
        return name in ("the", "a")
    if upos == "PRON":
        return (
            rel == "expl"
            or node.place == "relative"
            or (rel == "nsubj" and node.lemma.forms.get("kind") == "pronoun")
        )
    return rel == "expl"


def _noun(node: Node, parent: Node | None, stem: str) -> Dressed:
    if node.rel == "flat":
        return Dressed(stem, node.kids)
    role = parent if node.rel == "conj" and parent is not None else node
    marks = [kid for kid in role.kids if kid.rel == "case"]
    counted = any(kid.rel == "nummod" for kid in node.kids)
    text = stem + ("ებ" if node.plural and not counted else "")
    if not marks:
        keys = (node.key + TENSE,) if node.rel == "nmod:poss" else ()
        return Dressed(text + _CASE.get(role.rel, ""), node.kids, keys)
    fused = _FUSED.get(marks[0].lemma.text)
    if fused is None:
        return Dressed(text + "ის", node.kids)
    kids = [kid for kid in node.kids if kid.rel != "case"]
    return Dressed(text + fused, kids, (marks[0].key,))


# --------------------------------------------------------------------------------------- predicates


def _predicate(node: Node) -> Dressed:
    """One word says tense, voice, negation and person; a modal verb follows in a word of its own."""
    asked = [_added("whether.question", "PART", "question", 0, "discourse")] if node.question else []
    if node.copula is not None:
        return _nominal(node, asked)
    kids, stem = [*node.kids, *asked], stems()[node.lemma]
    keys = [node.key + TENSE, node.key + PASSIVE, node.key + SATELLITE]
    if node.negation is not None:
        stem = NOT + stem
        keys.append(node.negation.key)
    if node.passive:
        stem += "უნ"
    if node.modal is not None:
        kids.append(_modal(node, node.modal))
        return Dressed(stem + "ომ", kids, tuple(keys))
    return Dressed(stem + _ending(node.tense, node), kids, tuple(keys))


def _nominal(node: Node, kids: list[Node]) -> Dressed:
    """A noun or adjective as predicate; the copula has a word only outside the plain present."""
    said = _plain(node, None)
    kids = [*said.kids, *kids]
    if node.copula is None or (node.tense == "pres" and node.negation is None and node.modal is None):
        return Dressed(said.text, kids, said.keys)
    be = _added("be", "AUX", "second", node.copula.key, "cop", _ending(node.tense, node))
    if node.negation is not None:
        be.text, be.also = NOT + be.text, (node.negation.key,)
    kids.append(be)
    if node.modal is not None:
        kids.append(_modal(node, node.modal))
    return Dressed(said.text, kids, said.keys)


def _modal(node: Node, modal: Node) -> Node:
    return _added(modal.lemma.text, "AUX", "aux", modal.key, "aux", _ending("pres", node))


def _ending(tense: str, node: Node) -> str:
    if node.rel == "acl:relcl":
        return {"pres": "მავ", "fut": "მეკ"}.get(tense, "მულ")
    if tense in ("inf", "imp"):
        return "ომ" if tense == "inf" else "ე"
    return _TENSE[tense] + _PERSON[node.agreement]


def finish(words: list[str]) -> list[str]:
    """Nothing to change: these letters have no capitals."""
    return words


FAR = Language(ORDER, dress, finish)
