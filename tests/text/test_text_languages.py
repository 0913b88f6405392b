"""Codes, names and scripts."""

import sys
import unicodedata

import pytest

from calque.errors import BadSetting
from calque.text.languages import check_language, language_name, primary_subtag, script_of, scripts_of

#: Scripts that Unicode recommends for identifiers (UAX 31, table 5), and some of limited use today (table 7).
IN_USE = """
    Arabic Armenian Bengali Bopomofo Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi
    Hangul Han Hebrew Hiragana Kannada Katakana Khmer Lao Latin Malayalam Myanmar Oriya Sinhala
    Tamil Telugu Thaana Thai Tibetan Balinese Canadian_Aboriginal Cherokee Javanese Kayah_Li Lepcha
    Limbu Lisu Meetei_Mayek New_Tai_Lue Nko Ol_Chiki Sundanese Syloti_Nagri Syriac Tai_Le Tai_Tham
    Tai_Viet Tifinagh Vai Yi
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [("EN", "en"), ("eng", "en"), ("zh_hans", "zh-Hans"), ("iw", "he"), ("pt-br", "pt-BR")]
    + [(code, code) for code in ("near", "far", "x-mine", "qaa", "qtz", "en-x-pirate")],
)
def test_canonical_codes(given: str, expected: str) -> None:
    assert check_language(given) == expected


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ("german", "did you mean de"),
        ("gr", "did you mean el"),
        ("jp", "did you mean ja"),
        ("xx", "such as en"),
        ("", "such as en"),
        ("ab-cd-ef", "such as en"),
        ("e n", "such as en"),
    ],
)
def test_unknown_codes(given: str, remedy: str) -> None:
    with pytest.raises(BadSetting, match=remedy):
        check_language(given)


def test_names() -> None:
    named = [language_name(code) for code in ("vi", "sr-Latn", "near", "x-mine", "qaa")]
    assert named == ["Vietnamese", "Serbian (Latin)", "near", "x-mine", "qaa"]


def test_primary_subtags() -> None:
    assert [primary_subtag(code) for code in ("en", "EN-GB", "zh_Hant_TW", "x-mine")] == [
        "en",
        "en",
        "zh",
        "x-mine",
    ]


@pytest.mark.parametrize(
    ("word", "script"),
    [
        ("don't", "Latin"),
        ("Ｆｕｌｌ", "Latin"),
        ("𝐛𝐨𝐥𝐝", "Latin"),
        ("COVID-19", "Latin"),
        ("Tomよ", "Latin"),
        ("食べる", "Hiragana"),
        ("ラーメン", "Katakana"),
        ("ｶﾅ", "Katakana"),
        ("한국어", "Hangul"),
        ("يوم", "Arabic"),
        ("น้ำ", "Thai"),
        ("aб", "Latin"),
        ("бa", "Cyrillic"),
        ("…", "Common"),
        ("٣٤", "Common"),
        ("😀", "Common"),
        ("", "Common"),
    ],
)
def test_scripts_of_words(word: str, script: str) -> None:
    assert script_of(word) == script
    assert scripts_of([word, "a"]) == [script, "Latin"]


def test_scripts_agree_with_icu() -> None:
    """Every letter of a script in use, among those that both sides know."""
    icu = pytest.importorskip("icu")
    used = set(IN_USE.split())
    wrong, seen = [], 0
    for character in map(chr, range(128, sys.maxunicode + 1)):
        if unicodedata.category(character)[0] != "L":
            continue
        expected = icu.Script.getScript(character).getName()
        if expected in used:
            seen += 1
            if script_of(character) != expected:
                wrong.append((character, expected, script_of(character)))
    assert seen > 110_000
    # Spacing forms of Arabic vowel signs, and letter-like symbols that no word is made of.
    assert len([entry for entry in wrong if entry[1] != "Arabic"]) <= 15, wrong
    assert len(wrong) <= 30


@pytest.mark.parametrize("code", ["\0\0\t\0\0", "\ud800", "", "x" * 5000, "e\u0301n", "en\n"])
def test_codes_of_any_characters_are_refused(code: str) -> None:
    with pytest.raises(BadSetting, match="unknown language"):
        check_language(code)
