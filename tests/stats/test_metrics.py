"""Scores against hand-computed answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.stats.metrics import (
    AlignmentCounts,
    accuracy,
    alignment_counts,
    alignment_scores,
    precision_recall_f1,
)

LINKS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


def test_alignment_error_rate_by_hand() -> None:
    """Och & Ney's formula: A has 4, S has 3, A∩S 2, A∩P 3."""
    links = {(0, 0), (1, 1), (2, 3), (4, 4)}
    scores = alignment_scores(links, {(0, 0), (1, 1), (2, 2)}, {(2, 3), (3, 3)})
    assert scores.precision == pytest.approx(3 / 4)
    assert scores.recall == pytest.approx(2 / 3)
    assert scores.f1 == pytest.approx(2 * 0.75 * (2 / 3) / (0.75 + 2 / 3))
    assert scores.aer == pytest.approx(1 - 5 / 7)


@given(LINKS, LINKS, LINKS)
def test_bounds_and_the_perfect_answer(links: set, sure: set, possible: set) -> None:
    scores = alignment_scores(links, sure, possible)
    assert all(0 <= x <= 1 for x in (scores.precision, scores.recall, scores.f1, scores.aer))
    if sure:
        assert alignment_scores(sure, sure, possible).aer == 0
    assert alignment_scores(links, sure, possible) == alignment_scores(links, sure, possible | sure)


def test_sentences_add_up() -> None:
    """Counts of sentences, summed, give the corpus score, not the mean of sentence scores."""
    gold = [({(0, 0)}, {(0, 0)}, set()), ({(0, 1), (1, 1)}, {(1, 1)}, {(0, 1)}), (set(), {(0, 0)}, set())]
    each = [alignment_counts(*sentence) for sentence in gold]
    together = AlignmentCounts(
        *(
            np.array([getattr(one, name) for one in each])
            for name in ("links", "sure", "links_sure", "links_possible")
        )
    )
    whole = [{(k, *link) for k, sentence in enumerate(gold) for link in sentence[part]} for part in range(3)]
    assert together.scores() == alignment_scores(*whole)


def test_nothing_counted_is_zero() -> None:
    scores = alignment_scores(set(), set(), set())
    assert (scores.precision, scores.recall, scores.f1, scores.aer) == (0, 0, 0, 1)
    assert precision_recall_f1(0, 0, 5).f1 == 0


def test_f1_equals_scikit_learn() -> None:
    from sklearn.metrics import precision_recall_fscore_support

    rng = np.random.default_rng(0)
    gold, said = rng.integers(0, 2, (2, 50, 20))
    theirs = precision_recall_fscore_support(gold.ravel(), said.ravel(), average="binary")[:3]
    ours = precision_recall_f1((gold & said).sum(1), said.sum(1), gold.sum(1))
    assert (ours.precision, ours.recall, ours.f1) == pytest.approx(theirs)


def test_accuracy() -> None:
    assert accuracy([True, False, True, True]) == 0.75
    with pytest.raises(BadInput, match="no items"):
        accuracy([])
