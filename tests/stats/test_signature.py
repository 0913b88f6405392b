"""Signatures: stable, and different for different parts."""

from hypothesis import given
from hypothesis import strategies as st

from calque import __version__
from calque.stats.signature import signature

PARTS = st.dictionaries(st.sampled_from(["task", "sim", "k", "encoder"]), st.text(max_size=6))


def test_order_of_writing_does_not_matter() -> None:
    assert signature(sim="csls10", task="words") == signature(task="words", sim="csls10")
    assert signature(sim="csls10", task="words") == f"task:words|sim:csls10|v:{__version__}"


def test_separators_are_escaped() -> None:
    assert signature(path="a|b:c,d%\n") == f"path:a%7Cb%3Ac%2Cd%25%0A|v:{__version__}"


@given(PARTS, PARTS)
def test_different_parts_differ(a: dict[str, str], b: dict[str, str]) -> None:
    assert (signature(**a) == signature(**b)) == (a == b)
    assert len(signature(**a).splitlines()) == 1
