"""What is dropped, for which reason, in which order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import BadSetting
from calque.text.clean import Cleaning, reasons

words = st.lists(st.sampled_from("ab"), max_size=8)


@settings(deadline=None)
@given(
    st.lists(st.tuples(words, words), max_size=30),
    st.integers(1, 8),
    st.sampled_from([0, 1, 1.5, 3]),
    st.booleans(),
)
def test_against_the_definition(
    pairs: list[tuple[list[str], list[str]]], max_words: int, max_ratio: float, duplicates: bool
) -> None:
    cleaning = Cleaning(max_words, max_ratio, duplicates)
    found = list(reasons(pairs, cleaning))
    assert len(found) == len(pairs)
    for place, (a, b) in enumerate(pairs):
        tests = {
            "empty": not a or not b,
            "length": max(len(a), len(b)) > max_words,
            "ratio": bool(a and b) and bool(max_ratio) and max(len(a) / len(b), len(b) / len(a)) > max_ratio,
            "duplicate": duplicates and (a, b) in pairs[:place],
        }
        assert found[place] == next((reason for reason, applies in tests.items() if applies), None)


def test_pairs_that_only_look_alike_stay() -> None:
    pairs = [(["a", "b"], ["c"]), (["a"], ["b", "c"]), (["a b"], ["c"]), (["ab"], ["c"]), (["c"], ["a", "b"])]
    assert list(reasons(pairs, Cleaning())) == [None] * 5


@pytest.mark.parametrize(
    "settings", [{"max_words": 0}, {"max_ratio": 0.5}, {"max_ratio": -1}, {"max_ratio": float("nan")}]
)
def test_bounds(settings: dict[str, float]) -> None:
    with pytest.raises(BadSetting, match="at least 1"):
        Cleaning(**settings)  # type: ignore[arg-type]
