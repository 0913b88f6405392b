"""Near: English order, Latin letters and many shared words, but its own grammar words and endings."""

from __future__ import annotations

import hashlib
import re
from functools import cache

from calque.text.world.coin import Phonology, coin_words
from calque.text.world.english import ORDER
from calque.text.world.lexicon import Lemma, lexicon
from calque.text.world.meaning import PASSIVE, SATELLITE, TENSE, Node
from calque.text.world.surface import Dressed, Language

SOUNDS = Phonology(
    "near",
    ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "pl", "tr", "gl", "st"),
    ("a", "e", "i", "o", "u", "a", "e", "o"),
    ("l", "n", "r", "s", "t", "m", "k", "d"),
)
#: Of a hundred content words, this many are proposed as cognates of the English word.
COGNATES = 40
_PRESENT = ("o", "as", "a", "am", "an")
_RESPELL = (
    ("tion$", "zion"), ("ph", "f"), ("ck", "k"), ("c(?=[eiy])", "s"), ("ch", "sh"), ("c", "k"), ("qu", "kv"),
    ("x", "ks"), ("w", "v"), ("y$", "i"), ("y", "i"), ("th", "t"), ("ee|ea", "i"), ("oo|ou", "u"),
    ("([a-z])\\1", "\\1"), ("(?<=[a-z]{3}[^aeiou])e$", ""),
)  # fmt: skip


def respell(word: str) -> str:
    """An English word as near would write it.

    >>> respell("pharmacist"), respell("lamp")
    ('farmasist', 'lamp')
    """
    for pattern, instead in _RESPELL:
        word = re.sub(pattern, instead, word)
    return word


def _adopt(lemma: Lemma) -> str | None:
    """Names and figures as they are; some content words as cognates, the others not."""
    if lemma.upos in ("PROPN", "PUNCT") or lemma.text[0].isdigit():
        return lemma.text
    if lemma.upos not in ("NOUN", "VERB", "ADJ", "ADV") or lemma.particle:
        return None
    chance = hashlib.blake2b(f"cognate\0{lemma.key}".encode(), digest_size=2).digest()
    return respell(lemma.text) if int.from_bytes(chance) % 100 < COGNATES else None


@cache
def stems() -> dict[Lemma, str]:
    """The stem of every lemma."""
    lemmas = lexicon().lemmas.values()
    return coin_words(lemmas, SOUNDS, _adopt, avoid={lemma.text for lemma in lemmas})


@cache
def _stem(name: str, upos: str) -> str:
    return stems()[lexicon().word(name, upos)]


def _added(name: str, upos: str, place: str, key: int, rel: str, ending: str = "") -> Node:
    return Node(lexicon().word(name, upos), rel, key, place=place, text=_stem(name, upos) + ending)


def dress(node: Node, parent: Node | None) -> Dressed:
    """How near says a node."""
    if node.text:
        return Dressed(node.text, (), node.also)
    if node.tense:
        return _predicate(node)
    stem, upos = stems()[node.lemma], node.lemma.upos
    if upos == "NOUN" or upos == "PROPN":
        return _noun(node, stem)
    if node.rel == "amod" and upos == "ADJ":
        stem = _agreeing(stem, parent is not None and parent.plural)
    if node.degree:
        more = _added(node.degree, "ADV", "degree", node.key + SATELLITE, "advmod")
        return Dressed(stem, [*node.kids, more])
    return Dressed(stem, node.kids)


def _many(stem: str) -> str:
    return stem + ("s" if stem[-1] in "aeiou" else "os")


def _agreeing(stem: str, plural: bool) -> str:
    return stem + "i" if plural else stem


def _noun(node: Node, stem: str) -> Dressed:
    text = _many(stem) if node.plural else stem
    if node.rel != "nmod:poss":
        return Dressed(text, node.kids)
    return Dressed(text, [*node.kids, _added("'s", "PART", "genitive", node.key + TENSE, "case")])


# --------------------------------------------------------------------------------------- predicates


def _predicate(node: Node) -> Dressed:
    """Negation, then auxiliaries, then the predicate; no `do`, no progressive, no word for `to`."""
    words, form = _auxiliaries(node)
    kids, stem = [*node.kids, *words], stems()[node.lemma]
    if node.negation is not None:
        kids.append(_added("not", "PART", "aux", node.negation.key, "advmod"))
    if node.question:
        kids.append(_added("whether.question", "PART", "inversion", 0, "discourse"))
    if node.copula is not None:
        kids.append(_added("be", "AUX", "second", node.copula.key, "cop", _ending(form, node)))
        if node.degree:
            kids.append(_added(node.degree, "ADV", "degree", node.key + SATELLITE, "advmod"))
        return Dressed(_many(stem) if node.plural else stem, kids)
    keys = (node.key + SATELLITE,) if node.lemma.particle else ()
    return Dressed(stem + _ending(form, node), kids, keys)


def _auxiliaries(node: Node) -> tuple[list[Node], str]:
    words, form = [], {"prog": "pres", "pastprog": "past"}.get(node.tense, node.tense)
    if node.modal is not None:
        ending = _ending("pres", node)
        words.append(_added(node.modal.lemma.text, "AUX", "second", node.modal.key, "aux", ending))
        form = "inf"
    elif form == "fut":
        words.append(_added("will", "AUX", "second", node.key + TENSE, "aux"))
        form = "inf"
    elif form == "perf":
        words.append(_added("have", "AUX", "second", node.key + TENSE, "aux", _ending("pres", node)))
        form = "done"
    if node.passive:
        words.append(_added("be", "AUX", "second", node.key + PASSIVE, "aux:pass", _ending(form, node)))
        form = "done"
    return words, form


def _ending(form: str, node: Node) -> str:
    if form == "past":
        return "iv" + _PRESENT[node.agreement]
    return {"inf": "ar", "done": "ado", "imp": "e"}.get(form) or _PRESENT[node.agreement]


def finish(words: list[str]) -> list[str]:
    """A capital at the beginning."""
    words[0] = words[0][0].upper() + words[0][1:]
    return words


NEAR = Language(ORDER, dress, finish)
