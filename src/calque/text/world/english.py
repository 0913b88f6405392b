"""English: its order of words, its auxiliaries, its spelling."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from calque.text.world.lexicon import Lemma, lexicon
from calque.text.world.meaning import PASSIVE, SATELLITE, SHE, TENSE, Node
from calque.text.world.surface import Dressed, Language

#: Where words stand around their head (at 0): a clause's words outside, a noun phrase's words inside.
ORDER = {
    "opening": -1000, "cc": -900, "mark": -880, "vocative": -870, "comment": -860, "front": -850, "wh": -800,
    "relative": -800, "inversion": -700, "expl": -650, "nsubj": -600, "nsubj:pass": -600, "aux": -500,
    "negation": -490, "second": -480, "third": -470, "frequency": -460,
    "case": -90, "cc:preconj": -85, "det": -80, "nmod:poss": -78, "nummod": -70, "degree": -65, "amod": -60,
    "flat": 5, "particle": 5, "iobj": 10, "obj": 20, "manner": 25, "xcomp": 30, "nmod": 35, "obl:agent": 38,
    "obl": 40, "advmod": 45, "obl:tmod": 60, "time": 60, "appos": 62, "acl:relcl": 65, "csubj": 70,
    "ccomp": 72, "advcl": 75, "conj": 80, "genitive": 90, "closing": 900, "punct": 1000,
}  # fmt: skip

_AFTER = {"inf": "base", "fut": "base", "perf": "done", "prog": "ing", "pastprog": "ing"}
_BE = {"pres": ("am", "are", "is", "are", "are"), "past": ("was", "were", "was", "were", "were")}
_AN = re.compile(r"(?!uni|use|usu|eu|one)[aeiou]|hour|honest", re.IGNORECASE)


@cache
def plural(lemma: Lemma) -> str:
    """The plural of a noun.

    >>> plural(lexicon().word("city", "NOUN")), plural(lexicon().word("child", "NOUN"))
    ('cities', 'children')
    """
    return lemma.forms.get("plural") or _with_s(lemma.text)


def _with_s(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search(r"(s|x|z|ch|sh)$", word) else "s")


@cache
def verb_form(lemma: Lemma, form: str) -> str:
    """A verb's base, s, past, done (past participle) or ing form.

    >>> plan = lexicon().word("plan", "VERB")
    >>> [verb_form(plan, form) for form in ("base", "s", "past", "done", "ing")]
    ['plan', 'plans', 'planned', 'planned', 'planning']
    """
    word = lemma.text
    if form == "base":
        return word
    if form == "s":
        return word + "es" if word in ("go", "veto") else _with_s(word)
    if form == "ing":
        return lemma.forms.get("ing") or _ing(word, lemma.forms.get("past", ""))
    past = lemma.forms.get("past") or _past(word)
    return past if form == "past" else lemma.forms.get("done", past)


def _past(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")


def _ing(word: str, past: str) -> str:
    doubled = re.fullmatch(r"[^aeiou]*(?:qu)?[aeiou][bdgklmnprtv]", word)
    if doubled or past in (word + word[-1] + "ed", word + word[-1]):
        return word + word[-1] + "ing"
    if word.endswith("ie"):
        return word[:-2] + "ying"
    return (word[:-1] if re.search(r"[^eo]e$", word) else word) + "ing"


@cache
def compared(lemma: Lemma, degree: str) -> tuple[str, ...]:
    """An adjective in the comparative or superlative: one word, or two.

    >>> big = lexicon().word("big", "ADJ")
    >>> compared(big, "more"), compared(lexicon().word("famous", "ADJ"), "most")
    (('bigger',), ('most', 'famous'))
    """
    word, ending = lemma.text, "er" if degree == "more" else "est"
    if len(re.findall(r"[aeiouy]+", word.removesuffix("e"))) > 1 and not re.search(r"[^aeiou]y$", word):
        return degree, word
    if word.endswith("y"):
        return (word[:-1] + "i" + ending,)
    if re.fullmatch(r"[^aeiou]+[aeiou][bdgmnt]", word):
        return (word + word[-1] + ending,)
    return (word.removesuffix("e") + ending,)


def _added(text: str, name: str, upos: str, place: str, key: int = 0, rel: str = "aux") -> Node:
    """A word that English adds of its own."""
    return Node(lexicon().word(name, upos), rel, key, place=place, text=text)


def dress(node: Node, parent: Node | None) -> Dressed:
    """How English says a node."""
    if node.text:
        return Dressed(node.text, (), node.also)
    if node.tense:
        return _predicate(node)
    lemma, upos = node.lemma, node.lemma.upos
    if upos == "NOUN" or upos == "PROPN":
        return _noun(node)
    if upos == "PRON":
        is_object = node.rel in ("obj", "iobj", "obl", "nmod", "obl:agent", "conj")
        return Dressed(lemma.forms.get("object", lemma.text) if is_object else lemma.text, node.kids)
    if node.degree:
        return _compared(node)
    return Dressed(lemma.text, node.kids)


def _numbered(node: Node) -> str:
    return plural(node.lemma) if node.plural else node.lemma.text


def _noun(node: Node) -> Dressed:
    text = _numbered(node)
    if node.rel != "nmod:poss":
        return Dressed(text, node.kids)
    mark = "'" if node.plural and text.endswith("s") else "'s"
    return Dressed(text, [*node.kids, _added(mark, "'s", "PART", "genitive", node.key + TENSE, "case")])


def _compared(node: Node) -> Dressed:
    *more, text = compared(node.lemma, node.degree)
    if not more:
        return Dressed(text, node.kids, (node.key + SATELLITE,))
    added = _added(more[0], more[0], "ADV", "degree", node.key + SATELLITE, "advmod")
    return Dressed(text, [*node.kids, added])


# --------------------------------------------------------------------------------------- predicates


class _Aux(NamedTuple):
    """An auxiliary in the form it has, with the key it says and its relation."""

    text: str
    name: str
    key: int
    rel: str = "aux"


def _predicate(node: Node) -> Dressed:
    """A predicate with its auxiliaries: the first is finite, each decides the form of the next."""
    chain, form = _auxiliaries(node)
    if node.copula is not None:
        chain.append(_Aux(_be(form, node), "be", node.copula.key, "cop"))
        said = _compared(node) if node.degree else Dressed(_numbered(node), node.kids)
        return Dressed(said.text, [*said.kids, *_placed(node, chain)], said.keys)
    if _needs_do(node, chain):
        chain.append(_Aux(_finite("do", form, node), "do", 0))
        form = "base"
    kids = [*node.kids, *_placed(node, chain)]
    particle = node.lemma.particle
    if particle:
        kids.append(_added(particle, particle, "ADP", "particle", node.key + SATELLITE, "compound:prt"))
    return Dressed(_main(node, form), kids)


def _needs_do(node: Node, chain: list[_Aux]) -> bool:
    turned = node.negation is not None or node.inverted
    return turned and not chain and node.lemma.text != "be"


def _auxiliaries(node: Node) -> tuple[list[_Aux], str]:
    """Auxiliaries, and the form of what comes after them."""
    tense, key, modal = node.tense, node.key + TENSE, node.modal
    chain, form = [], _AFTER.get(tense, tense)
    if modal is not None:
        chain.append(_Aux(modal.lemma.text, modal.lemma.text, modal.key))
        form = "base"
    elif tense == "inf":
        chain.append(_Aux("to", "to.infinitive", 0, "mark"))
    elif tense == "fut":
        chain.append(_Aux("will", "will", key))
    elif tense == "perf":
        chain.append(_Aux(_finite("have", "pres", node), "have", key))
    elif tense in ("prog", "pastprog"):
        chain.append(_Aux(_be("past" if tense == "pastprog" else "pres", node), "be", key))
    if node.passive:
        chain.append(_Aux(_be(form, node), "be", node.key + PASSIVE, "aux:pass"))
        form = "done"
    return chain, form


def _placed(node: Node, chain: list[_Aux]) -> list[Node]:
    """Auxiliaries and negation as words in their places; `can not` is one word."""
    places, words = ("inversion" if node.inverted else "aux", "second", "third"), []
    for place, (text, name, key, rel) in zip(places, chain, strict=False):
        words.append(_added(text, name, "PART" if rel == "mark" else "AUX", place, key, rel))
    negation = node.negation
    if negation is None:
        return words
    if words[0].text == "can" and not node.inverted:
        words[0].text, words[0].also = "cannot", (negation.key,)
        return words
    place = "aux" if node.tense == "inf" else "negation"
    return [_added("not", "not", "PART", place, negation.key, "advmod"), *words]


def _be(form: str, node: Node) -> str:
    if form in _BE:
        return _BE[form][node.agreement]
    return {"done": "been", "ing": "being"}.get(form, "be")


def _finite(name: str, form: str, node: Node) -> str:
    if form == "past":
        return {"have": "had", "do": "did"}[name]
    return {"have": "has", "do": "does"}[name] if node.agreement == SHE and form == "pres" else name


def _main(node: Node, form: str) -> str:
    if node.lemma.text == "be":
        return _be(form, node)
    if form == "pres":
        form = "s" if node.agreement == SHE else "base"
    return verb_form(node.lemma, "base" if form == "imp" else form)


def finish(words: list[str]) -> list[str]:
    """A capital at the beginning, and `an` before a vowel."""
    for at, word in enumerate(words[:-1]):
        if word == "a" and _AN.match(words[at + 1]):
            words[at] = "an"
    words[0] = words[0][0].upper() + words[0][1:]
    return words


ENGLISH = Language(ORDER, dress, finish)
