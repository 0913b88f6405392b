"""English: its order of words, its auxiliaries, its spelling."""

from __future__ import annotations

import re
from functools import cache

from calque.text.world.lexicon import Lemma, lexicon
from calque.text.world.meaning import PASSIVE, SATELLITE, SHE, TENSE, Node
from calque.text.world.surface import Dressed, Language

#: Where words stand around their head (at 0): a clause's words outside, a noun phrase's words inside.
ORDER = {
    "cc": -900, "mark": -880, "vocative": -870, "comment": -860, "front": -850, "wh": -800, "relative": -800, "inversion": -700,
    "expl": -650, "nsubj": -600, "nsubj:pass": -600, "aux": -500, "negation": -490, "second": -480,
    "third": -470, "frequency": -460, "case": -90, "det": -80, "nmod:poss": -78, "nummod": -70, "degree": -65,
    "amod": -60, "compound": -50, "particle": 5, "flat": 5, "genitive": 90, "iobj": 10, "obj": 20,
    "compound:prt": 25, "amod:last": 28, "xcomp": 30, "nmod": 35, "obl:agent": 38, "obl": 40, "advmod": 45,
    "obl:tmod": 60, "time": 60, "appos": 62, "acl:relcl": 65, "csubj": 70, "ccomp": 72, "advcl": 75,
    "conj": 80, "opening": -1000, "closing": 900, "punct": 1000, "discourse": 800,
}  # fmt: skip

_BE = {"pres": ("am", "are", "is", "are", "are"), "past": ("was", "were", "was", "were", "were")}
_MODALS = frozenset({"can", "must", "should", "may", "would", "could"})
_AN = re.compile(r"(?!uni|use|usu|eu|one\b|once|ut)[aeiou]|hour|honest|8|18\b", re.IGNORECASE)


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
        return {"have": "has", "do": "does", "go": "goes", "veto": "vetoes", "echo": "echoes"}.get(
            word
        ) or _with_s(word)
    if form == "ing":
        return _ing(word, lemma)
    past = lemma.forms.get("past") or _past(word)
    return past if form == "past" else lemma.forms.get("done", past)


def _past(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")


def _ing(word: str, lemma: Lemma) -> str:
    doubled = re.fullmatch(r"[^aeiou]*(?:qu)?[aeiou][bdgklmnprtv]", word)
    past = lemma.forms.get("past", "")
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


def _noun(node: Node) -> Dressed:
    text = plural(node.lemma) if node.plural else node.lemma.text
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


def _predicate(node: Node) -> Dressed:
    """A predicate with its auxiliaries: the first is finite, each decides the form of the next."""
    chain, form = _auxiliaries(node)
    kids = list(node.kids)
    if node.copula is not None:
        chain.append((_be(form, node), "be", node.copula.key, "cop"))
        text, keys = _plain(node, kids)
    else:
        if not chain and form in ("pres", "past", "imp") and (node.negation or node.inverted):
            if node.lemma.text != "be":
                chain.append((_finite("do", form, node), "do", 0, "aux"))
                form = "base"
        text, keys = _main(node, form), ()
        if node.lemma.particle:
            kids.append(_added(node.lemma.particle, node.lemma.particle, "ADP", "particle",
                               node.key + SATELLITE, "compound:prt"))  # fmt: skip
    kids += _placed(node, chain)
    return Dressed(text, kids, keys)


def _plain(node: Node, kids: list[Node]) -> tuple[str, tuple[int, ...]]:
    """A noun or adjective as predicate."""
    if node.degree:
        text, more, keys = _compared(node)
        kids += more[len(node.kids) :]
        return str(text), keys
    return plural(node.lemma) if node.plural else node.lemma.text, ()


def _auxiliaries(node: Node) -> tuple[list[tuple[str, str, int, str]], str]:
    """Auxiliaries as (word, lemma, key, relation), and the form of what comes after them."""
    tense, key, modal = node.tense, node.key + TENSE, node.modal
    chain: list[tuple[str, str, int, str]] = []
    form = {"inf": "base", "fut": "base", "perf": "done", "prog": "ing", "pastprog": "ing"}.get(tense, tense)
    if modal is not None:
        chain.append((modal.lemma.text, modal.lemma.text, modal.key, "aux"))
        form = "base"
    elif tense == "inf":
        chain.append(("to", "to.infinitive", 0, "mark"))
    elif tense == "fut":
        chain.append(("will", "will", key, "aux"))
    elif tense == "perf":
        chain.append((_finite("have", "pres", node), "have", key, "aux"))
    elif tense in ("prog", "pastprog"):
        chain.append((_be("past" if tense == "pastprog" else "pres", node), "be", key, "aux"))
    if node.passive:
        chain.append((_be(form, node), "be", node.key + PASSIVE, "aux:pass"))
        form = "done"
    return chain, form


def _placed(node: Node, chain: list[tuple[str, str, int, str]]) -> list[Node]:
    places = ["inversion" if node.inverted else "aux", "second", "third"]
    words = []
    for place, (text, name, key, rel) in zip(places, chain, strict=False):
        upos = "PART" if name == "to.infinitive" else "AUX"
        words.append(_added(text, name, upos, place, key, rel))
    negation = node.negation
    if negation is None:
        return words
    place = "aux" if node.tense == "inf" else "negation"
    said = _added("not", "not", "PART", place, negation.key, "advmod")
    return [said, *words]


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
