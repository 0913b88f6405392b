"""Items whose two texts are in two languages, made from files that say the same in each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from calque.errors import BadInput
from calque.text.labelled.items import Labelled, Question, TextPair


def mixed_pairs(other: Labelled[TextPair], english: Labelled[TextPair], *, seed: int) -> Labelled[TextPair]:
    """Pairs of `other` with the premise or the hypothesis, by chance, replaced by the English one.

    Pairs belong together by their ids where both sides have them, and by their order otherwise. Each knows
    the languages of its two texts.
    """
    partners = _partners(other, english)
    english_first = np.random.default_rng(seed).random(len(other)) < 0.5
    items = tuple(
        _mix(pair, partner, bool(first))
        for pair, partner, first in zip(other.items, partners, english_first, strict=True)
    )
    name, origin = f"{other.language}+{english.language}", f"{other.origin} + {english.origin}"
    return Labelled(name, items, origin, dict(other.dropped), dict(other.changed))


def _mix(pair: TextPair, partner: TextPair, english_first: bool) -> TextPair:
    if english_first:
        return replace(pair, first=partner.first, languages=(partner.languages[0], pair.languages[1]))
    return replace(pair, second=partner.second, languages=(pair.languages[0], partner.languages[1]))


def _partners(other: Labelled[TextPair], english: Labelled[TextPair]) -> list[TextPair]:
    """For every pair the one that says the same."""
    if len(other) != len(english):
        raise BadInput(
            f"{len(other)} pairs, but {english.origin} has {len(english)}",
            where=other.origin,
            remedy="give files of the same pairs",
        )
    partners = list(english.items)
    if _has_ids(other) and _has_ids(english):
        known = {pair.id: pair for pair in english.items}
        missing = next((pair.id for pair in other.items if pair.id not in known), None)
        if missing is not None:
            raise BadInput(f"pair {missing} is not in {english.origin}", where=other.origin)
        partners = [known[pair.id] for pair in other.items]
    for number, (pair, partner) in enumerate(zip(other.items, partners, strict=True), 1):
        if pair.label != partner.label:
            raise BadInput(
                f"pair {pair.id or number} is {pair.label}, but {partner.label} in {english.origin}",
                where=other.origin,
                line=pair.line or None,
                remedy="give files of the same pairs in the same order",
            )
    return partners


def _has_ids(pairs: Labelled[TextPair]) -> bool:
    ids = {pair.id for pair in pairs.items}
    return "" not in ids and len(ids) == len(pairs)


def mixed_questions(
    context_side: Labelled[Question], question_side: Labelled[Question]
) -> Labelled[Question]:
    """Paragraphs and answers of one language with the questions of another, by the questions' ids.

    For the other direction, exchange the two. Questions without a partner are dropped, counted. The name is
    the language of the questions, then that of the paragraphs: `de+en` asks in German about English text.
    """
    known = {item.id: item for item in question_side.items}
    if len(known) != len(question_side):
        raise BadInput("question ids are repeated", where=question_side.origin)
    items = tuple(_ask(item, known[item.id]) for item in context_side.items if item.id in known)
    if not items:
        raise BadInput(
            f"no question of {question_side.origin} has its id here",
            where=context_side.origin,
            remedy="give files of the same questions",
        )
    languages = items[0].languages
    dropped = Counter(context_side.dropped) + Counter({"no partner": len(context_side) - len(items)})
    origin = f"{context_side.origin} + {question_side.origin}"
    return Labelled("+".join(languages), items, origin, dict(dropped), dict(context_side.changed))


def _ask(item: Question, partner: Question) -> Question:
    languages = partner.languages[0], item.languages[1]
    return replace(item, question=partner.question, languages=languages)
