"""Scores against sets counted by hand and by brute force."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.links.gold import GoldLinks, score_links
from calque.links.pharaoh import read_gold
from calque.text.bitext import read_bitext
from calque.types import Bitext, WordPairs

TEXT = Bitext.of(("aa", "bb"), [list("abcd")] * 3, [list("wxyz")] * 3)
CELLS = st.sets(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)))


def pairs_of(rows: set[tuple[int, int, int]], text: Bitext = TEXT) -> WordPairs:
    return WordPairs.of(text, *np.asarray(sorted(rows), int).reshape(-1, 3).T)


def test_counted_by_hand() -> None:
    """Och and Ney's measure: A = 3 links, S = 2, P = S and one more."""
    gold = GoldLinks(
        pairs_of({(0, 0, 0), (0, 1, 1)}), pairs_of({(0, 0, 0), (0, 1, 1), (0, 1, 2)}), np.array([0])
    )
    scores = score_links(pairs_of({(0, 0, 0), (0, 1, 2), (0, 2, 1), (1, 0, 0)}), gold)
    assert (scores.precision, scores.recall, scores.aer) == pytest.approx((2 / 3, 1 / 2, 1 - 3 / 5))
    assert scores.f1 == pytest.approx(4 / 7)
    assert scores.sentences == 1


@given(made=CELLS, sure=CELLS, more=CELLS)
def test_brute_force(
    made: set[tuple[int, int, int]], sure: set[tuple[int, int, int]], more: set[tuple[int, int, int]]
) -> None:
    gold = GoldLinks(pairs_of(sure), pairs_of(sure | more), np.array([0, 2]))
    scores = score_links(pairs_of(made), gold)
    a, s, p = ({row for row in rows if row[0] != 1} for rows in (made, sure, sure | more))
    assert scores.precision == pytest.approx(len(a & p) / len(a) if a else 0)
    assert scores.recall == pytest.approx(len(a & s) / len(s) if s else 0)
    assert scores.aer == pytest.approx(1 - (len(a & s) + len(a & p)) / (len(a) + len(s)) if a or s else 1)
    assert [scores.counts.links.tolist(), scores.counts.links_sure.tolist()] == [
        [sum(row[0] == k for row in rows) for k in (0, 2)] for rows in (a, a & s)
    ]


def test_sentences_are_matched_by_line() -> None:
    gold = GoldLinks(pairs_of({(0, 0, 0), (2, 1, 1)}), pairs_of({(0, 0, 0), (2, 1, 1)}), np.array([0, 2]))
    last = pairs_of({(2, 1, 1)}).sentences([1, 2])
    scores = score_links(last, gold)
    assert (scores.sentences, scores.f1, scores.aer) == (1, 1.0, 0.0)


def test_another_text_is_refused() -> None:
    rows = pairs_of({(0, 0, 0)})
    gold = GoldLinks(rows, rows, np.array([0]))
    other = Bitext.of(("aa", "bb"), [list("abc")] * 3, [list("wxyz")] * 3, origin="other.tsv")
    with pytest.raises(BadInput, match=r"other.tsv:1: gold links are of another text: 4 words .* 3 \(aa\)"):
        score_links(pairs_of({(0, 0, 0)}, other), gold)
    apart = Bitext.of(("aa", "bb"), [list("abcd")], [list("wxyz")], line=[9])
    with pytest.raises(BadInput, match="none of the 1 judged sentences"):
        score_links(pairs_of({(0, 0, 0)}, apart), gold)


def test_gold_scores_perfectly_against_itself(shared_data: Path) -> None:
    path = shared_data / "gold_alignments/xl-wa/ru/test.tsv"
    text = read_bitext([str(path)], ("en", "ru"), tokenised=True, cleaning=None)
    gold = read_gold(path, text)
    scores = score_links(gold.possible, gold)
    assert (scores.sentences, scores.f1, scores.aer) == (210, 1.0, 0.0)
