"""Attachment scores against the CoNLL 2018 evaluation written anew, and sentences counted by hand."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.stats.attachment import Attachment, attachment, conll18
from calque.text.conllu import Tree

UPOS = ["NOUN", "VERB", "PUNCT", "SYM", "ADP"]
LABELS = ["nsubj", "nsubj:pass", "obl", "obl:tmod", "obl:tmod:x", "punct", "root"]


def tree(upos: str, heads: str, labels: str) -> Tree:
    tags = tuple(upos.split())
    words = tuple(f"w{place}" for place in range(len(tags)))
    return Tree(words, tags, tuple(map(int, heads.split())), tuple(labels.split()), words, "s1")


@dataclass
class Node:
    """A word as the shared task's program holds it: relation without subtype, parent as another word."""

    relation: str
    parent: "Node | None" = None


def nodes(heads: list[int], labels: list[str]) -> list[Node]:
    made = [Node(label.split(":")[0]) for label in labels]
    for node, head in zip(made, heads, strict=True):
        node.parent = made[head - 1] if head else None
    return made


def shared_task(gold: list[Node], system: list[Node]) -> tuple[float, float]:
    """F1 of heads, and of heads with relations, over words that are aligned one to one."""
    partner = {id(ours): theirs for ours, theirs in zip(gold, system, strict=True)}
    unlabelled = labelled = 0
    for word in gold:
        theirs = partner[id(word)]
        expected = None if word.parent is None else partner[id(word.parent)]
        if theirs.parent is expected:
            unlabelled += 1
            labelled += theirs.relation == word.relation
    both = len(gold) + len(system)
    return 2 * unlabelled / both, 2 * labelled / both


@st.composite
def parsed(draw: st.DrawFn) -> tuple[Tree, list[int], list[str]]:
    n = draw(st.integers(1, 8))
    gold, said = ([draw(st.sampled_from([h for h in range(n + 1) if h != w])) for w in range(1, n + 1)]
                  for _ in range(2))  # fmt: skip
    true, given_ = (draw(st.lists(st.sampled_from(LABELS), min_size=n, max_size=n)) for _ in range(2))
    upos = draw(st.lists(st.sampled_from(UPOS), min_size=n, max_size=n))
    words = ("w",) * n
    return Tree(words, tuple(upos), tuple(gold), tuple(true), words), said, given_


@given(parsed())
def test_conll18_is_the_shared_task(case: tuple[Tree, list[int], list[str]]) -> None:
    gold, heads, labels = case
    found = conll18(gold, heads, labels)
    expected = shared_task(nodes(list(gold.heads), list(gold.labels)), nodes(heads, labels))
    assert found.words == len(gold)
    assert (found.heads / found.words, found.labelled / found.words) == pytest.approx(expected)


@given(parsed(), st.booleans())
def test_unscored_words_are_as_if_they_were_not_there(
    case: tuple[Tree, list[int], list[str]], universal: bool
) -> None:
    """Every word by itself: the counts of a sentence are the sum over its words that are scored."""
    gold, heads, labels = case
    expected = np.zeros(3, int)
    for word in range(len(gold)):
        if gold.upos[word] in ("PUNCT", "SYM"):
            continue
        hung = gold.heads[word] == heads[word]
        true, said = gold.labels[word], labels[word]
        if universal:
            true, said = true.split(":")[0], said.split(":")[0]
        expected += [hung, hung and true == said, 1]
    assert attachment(gold, heads, labels, universal=universal) == tuple(expected)


def test_by_hand() -> None:
    """`He was seen in 2020 % .`: two heads wrong (in, .), relations of `He` and `2020` differ in subtype."""
    gold = tree(
        "PRON AUX VERB ADP NUM SYM PUNCT", "3 3 0 5 3 5 3", "nsubj:pass aux root case obl:tmod compound punct"
    )
    heads, labels = [3, 3, 0, 3, 3, 5, 5], ["nsubj", "aux", "root", "case", "obl:unmarked", "nmod", "punct"]
    assert attachment(gold, heads, labels) == Attachment(heads=4, labelled=2, words=5)
    assert attachment(gold, heads, labels, universal=True) == Attachment(4, 4, 5)
    assert conll18(gold, heads, labels) == Attachment(5, 4, 7)
    assert attachment(gold, heads, labels, unscored=()) == Attachment(5, 2, 7)


def test_the_gold_part_of_speech_decides_what_is_scored() -> None:
    gold = tree("NOUN PUNCT", "0 1", "root punct")
    assert attachment(gold, [0, 0], ["root", "root"]) == Attachment(1, 1, 1)
    assert attachment(tree("PUNCT", "0", "root"), [0], ["root"]) == Attachment(0, 0, 0)


def test_a_right_relation_on_a_wrong_head_is_wrong() -> None:
    gold = tree("NOUN NOUN NOUN", "0 1 2", "root nmod nmod")
    assert attachment(gold, [0, 1, 1], ["root", "nmod", "nmod"]) == Attachment(2, 2, 3)


def test_heads_may_be_an_array_and_beyond_a_cut() -> None:
    gold = tree("NOUN NOUN NOUN", "0 3 1", "root nmod nmod")
    cut = replace(gold, words=gold.words[:2], upos=gold.upos[:2], heads=(0, 3), labels=gold.labels[:2])
    assert attachment(cut, np.array([0, 1]), ["root", "nmod"]) == Attachment(1, 1, 2)


def test_lengths_must_agree() -> None:
    gold = tree("NOUN NOUN", "0 1", "root nmod")
    for heads, labels in (([0], ["root"]), ([0, 1], ["root"]), ([0, 1, 1], ["root", "nmod", "nmod"])):
        with pytest.raises(BadInput, match="for 2 words"):
            attachment(gold, heads, labels)


def test_a_gold_word_without_head_is_named() -> None:
    gold = tree("NOUN NOUN", "0 -1", "root _")
    with pytest.raises(BadInput, match="sentence s1: word 2 of 2 has no head"):
        attachment(gold, [0, 1], ["root", "nmod"])
