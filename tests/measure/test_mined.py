"""Mined pairs against gold: figures counted by hand, the best threshold by trying every one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.geometry.mining import Mined
from calque.measure.mined import score_mined
from calque.stats.metrics import best_threshold, precision_recall_f1
from calque.types import Result

ITEMS = st.lists(
    st.tuples(st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.9]), st.booleans()), min_size=1, max_size=12
)


@given(ITEMS, st.integers(0, 5))
def test_no_threshold_does_better(items: list[tuple[float, bool]], missed: int) -> None:
    items = sorted(items, key=lambda item: -item[0])
    scores, right = [score for score, _ in items], [hit for _, hit in items]
    gold = max(1, sum(right) + missed)
    tried = []
    for threshold in set(scores):
        kept = [hit for score, hit in items if score >= threshold]
        tried.append(precision_recall_f1(sum(kept), len(kept), gold).f1)
    best = best_threshold(scores, right, gold)
    kept = [hit for score, hit in items if score >= best.threshold]
    assert best.scores.f1 == pytest.approx(max(tried)) and best.kept == len(kept)
    assert best.scores == precision_recall_f1(sum(kept), len(kept), gold)


def test_nothing_cannot_be_cut() -> None:
    with pytest.raises(BadInput, match="no items"):
        best_threshold([], [], 3)


def test_figures_of_what_was_kept_and_at_the_best_threshold() -> None:
    found = Mined(np.array([4, 0, 2, 1]), np.array([4, 1, 2, 0]), np.array([1.2, 1.1, 1.0, 0.8]))
    gold = np.array([[0, 1], [2, 2], [4, 4], [7, 7]])
    scored = score_mined(found, 2, gold, Result("mining", "", 0.0, ("en", "de"), "one"))
    told = {(r.metric, r.group is None): r for r in scored.results}
    assert [told[metric, True].value for metric in ("precision", "recall")] == [1.0, 0.5]
    assert told["f1", True].value == pytest.approx(2 / 3) and told["f1", True].count == 6
    assert told["recall", False].value == 0.75 and told["recall", False].group == ("threshold", "best")
    assert scored.best.kept == 3 and scored.best.threshold == pytest.approx(0.9)
    assert all(
        r.low is not None and r.high is not None and r.low <= r.value <= r.high for r in scored.results
    )
