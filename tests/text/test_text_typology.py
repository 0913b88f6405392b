"""How far apart languages are, and how they are described."""

from itertools import product

import pytest

from calque.text.languages import script_of
from calque.text.typology import described, differences, distance, known_languages, typology
from calque.text.world import generate

#: Languages of the papers' tables, of the demo corpus and of common test sets.
NEEDED = "ar bg de el en es fr hi hy it nl ru th tr ur vi zh ja ko pt pl id sw ta fi hu eu he fa uk near far"
#: A word in each language's usual script, to be told by other means than the table's.
WORDS = {"ar": "سلام", "bg": "мир", "de": "Friede", "el": "ειρήνη", "hi": "शांति", "hy": "խաղաղություն",
         "th": "สันติภาพ", "tr": "barış", "ur": "امن", "vi": "hòa", "zh": "和平", "ko": "평화",
         "ka": "მშვიდობა", "ta": "அமைதி", "am": "ሰላም", "he": "שלום"}  # fmt: skip


def test_languages_that_are_needed_are_known() -> None:
    assert set(NEEDED.split()) <= known_languages()
    assert len(known_languages()) > 60


def test_distance_is_one() -> None:
    """Symmetric, zero to itself, within bounds; and no detour is shorter."""
    codes = NEEDED.split()
    for a, b in product(codes, repeat=2):
        apart = distance(a, b)
        assert apart is not None and 0 <= apart <= 1 and apart == distance(b, a)
        assert a != b or apart == 0
    for a, b, c in product(codes[:16], repeat=3):
        assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-12


@pytest.mark.parametrize(
    ("a", "b", "family", "script", "order"),
    [
        ("en", "sv", 0, 0, 0), ("en", "de", 0, 0, 0.5), ("de", "nl", 0, 0, 0), ("en", "fr", 0.5, 0, 0),
        ("en", "ru", 0.5, 1, 0), ("hi", "ur", 0, 1, 0), ("en", "hi", 0.5, 1, 1), ("en", "vi", 1, 0, 0),
        ("en", "tr", 1, 0, 1), ("ar", "he", 0, 1, 1), ("en", "near", 0.5, 0, 0), ("en", "far", 1, 1, 1),
        ("sr", "sr-Latn", 0, 1, 0), ("zh-Hans", "zh-Hant", 0, 0, 0),
    ],
)  # fmt: skip
def test_differences(a: str, b: str, family: float, script: float, order: float) -> None:
    assert differences(a, b) == {"family": family, "script": script, "order": order}
    assert distance(a, b) == pytest.approx((family + script + order) / 3)


def test_scripts_are_those_that_words_are_written_in() -> None:
    for code, word in WORDS.items():
        assert typology(code).script == script_of(word), code


def test_the_world_is_as_it_is_spoken() -> None:
    """Its letters, and whether objects come before or after their verb."""
    for code, order in (("near", "SVO"), ("far", "SOV")):
        found = typology(code)
        before = after = 0
        for sentence in generate(300, seed=5):
            side = sentence.sides[code]
            assert all(script_of(word) in (found.script, "Common") for word in side.words)
            for place, (relation, head) in enumerate(zip(side.labels, side.heads, strict=True), 1):
                before += relation == "obj" and place < head
                after += relation == "obj" and place > head
        assert (found.order, order) == (order, "SOV" if before > after else "SVO")


@pytest.mark.parametrize(
    "code", ["", "tlh", "x-mine", "qaa", "avg", "mean", "de+en", "???", "a" * 60, "my dialect", "-"]
)
def test_what_is_not_in_the_table_is_unknown(code: str) -> None:
    assert typology(code) is None and described(code) == "unknown"
    assert distance("en", code) is None and distance(code, "en") is None and distance(code, code) is None


def test_other_ways_to_write_a_code() -> None:
    assert described("deu") == described("DE_at") == described("de")
    assert typology("iw") == typology("he")
