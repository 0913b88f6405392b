"""Trees compared word by word: how many words hang on the right head, and by the right relation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from calque.errors import BadInput
from calque.text.conllu import Tree
from calque.types import Longs

#: Parts of speech whose words Wu & Dredze (2020) leave out.
UNSCORED = frozenset({"PUNCT", "SYM"})


class Attachment(NamedTuple):
    """Words on the right head, those of them with the right relation, and how many words are scored."""

    heads: int
    labelled: int
    words: int


def attachment(
    gold: Tree,
    heads: Sequence[int] | Longs,
    labels: Sequence[str],
    *,
    unscored: Collection[str] = UNSCORED,
    universal: bool = False,
) -> Attachment:
    """Counts of one sentence: UAS is heads / words, LAS labelled / words. Shape: (words,) each.

    Words whose *gold* part of speech is `unscored` are left out. `universal` compares relations without what
    follows a colon (nsubj:pass is nsubj); otherwise they are compared as given. The program of Wu & Dredze
    (2020) knows no subtypes at all, which `universal` equals.

    A tree may be cut: a gold head beyond the last word is never right.
    """
    if not len(gold) == len(heads) == len(labels):
        raise BadInput(
            f"{len(heads)} heads and {len(labels)} relations for {len(gold)} words",
            remedy="one of both for every word",
        )
    _check_heads(gold)
    same = _universal if universal else str
    scored = [place for place, upos in enumerate(gold.upos) if upos not in unscored]
    right = [place for place in scored if gold.heads[place] == heads[place]]
    labelled = sum(same(gold.labels[place]) == same(labels[place]) for place in right)
    return Attachment(len(right), labelled, len(scored))


def conll18(gold: Tree, heads: Sequence[int] | Longs, labels: Sequence[str]) -> Attachment:
    """As the evaluation of the CoNLL 2018 shared task counts given words: all of them, without subtypes."""
    return attachment(gold, heads, labels, unscored=(), universal=True)


def _universal(label: str) -> str:
    return label.partition(":")[0]


def _check_heads(gold: Tree) -> None:
    if min(gold.heads, default=0) < 0:
        place = next(place for place, head in enumerate(gold.heads, 1) if head < 0)
        name = f"sentence {gold.id}: " if gold.id else ""
        raise BadInput(
            f"{name}word {place} of {len(gold)} has no head to compare with",
            remedy="give a treebank with a head for every word",
        )
