"""G² against scipy's likelihood-ratio test of a contingency table."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from calque.stats.association import g_squared


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30), st.integers(1, 500))
def test_it_is_scipys(k: int, only_first: int, only_second: int, neither: int) -> None:
    table = [[k, only_first], [only_second, neither]]
    total = sum(map(sum, table))
    found = float(g_squared([k], [k + only_first], [k + only_second], total)[0])
    assert np.isclose(abs(found), chi2_contingency(table, False, "log-likelihood").statistic, atol=1e-9)
    expected = (k + only_first) * (k + only_second) / total
    assert found * (k - expected) >= -1e-9, "the sign says whether more or less than by chance"


def test_words_that_are_always_together_have_a_finite_figure() -> None:
    assert np.isfinite(g_squared([3, 0, 10], [3, 4, 10], [3, 4, 10], 10)).all()
