"""Answer scores against both evaluation programs written anew, and answers worked by hand."""

import re
import string
import sys
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput, BadSetting
from calque.stats.answers import AnswerStyle, answer_scores, answer_words

MLQA, SQUAD = AnswerStyle.MLQA, AnswerStyle.SQUAD
LANGUAGES = ["ar", "de", "en", "es", "hi", "vi", "zh"]
PIECES = {
    "ar": ["ال", "القاهرة", "عال", "في", "،"],
    "de": ["der", "des", "Einer", "eines", "Rhein", "derart", "»", "„", "ß", "-"],
    "en": ["a", "The", "an", "cat", "theatre", "co-op", "“", "’", "'s", "$5", "U.S."],
    "es": ["el", "La", "unas", "casa", "¿", "ñ", "las"],
    "hi": ["का", "दिल्ली", "।", "है"],
    "vi": ["của", "Những", "là", "cái", "Hà", "Nội"],
    "zh": ["北京", "在1791年", "the", "龥", "龦", "，", "《", "AB c"],
}
SEPARATOR = st.sampled_from(["", " ", "  ", "-", ", ", "\t", "\u00a0", "_"])


@st.composite
def answers(draw: st.DrawFn, language: str) -> str:
    pieces = draw(st.lists(st.sampled_from(PIECES[language]) | st.text(max_size=2), max_size=5))
    return "".join(piece + draw(SEPARATOR) for piece in pieces)


# --------------------------------------------------------------------------------- the programs, anew

UNICODE_PUNCTUATION = {
    chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code)).startswith("P")
} | set(string.punctuation)
MLQA_ARTICLES = {
    "ar": r"\sال^|ال",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
}


def squad_normal(text: str, _: str) -> str:
    kept = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def mlqa_normal(text: str, language: str) -> str:
    kept = "".join(letter for letter in text.lower() if letter not in UNICODE_PUNCTUATION)
    if language in MLQA_ARTICLES:
        kept = re.sub(MLQA_ARTICLES[language], " ", kept)
    return " ".join(by_character(kept) if language == "zh" else kept.split())


def by_character(text: str) -> list[str]:
    parts, run = [], ""
    for letter in text:
        if "\u4e00" <= letter <= "\u9fa5":
            parts += [*run.split(), letter]
            run = ""
        else:
            run += letter
    return parts + run.split()


Normal = Callable[[str, str], str]


def program(predicted: str, right: list[str], language: str, normal: Normal) -> tuple[float, float]:
    """Both scores, each the highest over the right answers."""
    f1s, exact = [], []
    for answer in right:
        said, true = normal(predicted, language), normal(answer, language)
        exact.append(float(said == true))
        left, common = true.split(), 0
        for word in said.split():
            if word in left:
                left.remove(word)
                common += 1
        if common == 0:
            f1s.append(0.0)
            continue
        precision, recall = common / len(said.split()), common / len(true.split())
        f1s.append(2 * precision * recall / (precision + recall))
    return max(f1s), max(exact)


# ---------------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("language", LANGUAGES)
@given(data=st.data())
def test_both_programs_agree(language: str, data: st.DataObject) -> None:
    predicted = data.draw(answers(language))
    right = data.draw(st.lists(answers(language), min_size=1, max_size=3))
    for style, normal in ((MLQA, mlqa_normal), (SQUAD, squad_normal)):
        expected = program(predicted, right, language, normal)
        assert answer_scores(predicted, right, language, style=style) == pytest.approx(expected, abs=1e-12)
        assert " ".join(answer_words(predicted, language, style=style)) == normal(predicted, language)


@given(answers("en"))
def test_in_english_the_styles_differ_only_in_punctuation(text: str) -> None:
    plain = "".join(c for c in text if c.isascii() or unicodedata.category(c)[0] != "P")
    assert answer_words(plain, "en", style=SQUAD) == answer_words(plain, "en", style=MLQA)
    assert answer_words(plain, "en", style=MLQA) == answer_words(text, "en", style=MLQA)


def test_in_english_curly_quotes_tell_the_styles_apart() -> None:
    assert answer_scores("“Hamlet”", ["Hamlet"], "en") == (1, 1)
    assert answer_scores("“Hamlet”", ["Hamlet"], "en", style=SQUAD) == (0, 0)


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("The U.S. Theatre's  a-b!", "en", ["us", "theatres", "ab"]),
        ("Die Brücke, der dem Rhein", "de", ["brücke", "rhein"]),
        ("¿El río de las Palmas?", "es", ["río", "de", "palmas"]),
        ("chiếc cầu của Hà Nội", "vi", ["cầu", "hà", "nội"]),
        ("नई दिल्ली।", "hi", ["नई", "दिल्ली"]),
        ("جامعة القاهرة", "ar", ["جامعة", "قاهرة"]),
        ("عالم", "ar", ["ع", "م"]),
        ("《红楼梦》by Cao Xueqin", "zh", ["红", "楼", "梦", "by", "cao", "xueqin"]),
        ("臺北", "zh-Hant-TW", ["臺", "北"]),
        ("ปี 2563", "th", ["ป", "ี", "2563"]),
        ("東京タワー Tokyo", "ja", ["東", "京", "タ", "ワ", "ー", "tokyo"]),
        ("В Москве — the", "ru", ["в", "москве", "the"]),
        ("the mat", "far", ["the", "mat"]),
    ],
)
def test_words_by_hand(text: str, language: str, words: list[str]) -> None:
    assert answer_words(text, language) == words


def test_scores_by_hand() -> None:
    """Said: big red dog; best of the answers: `red dog` shares 2 of 3 and 2 words, F1 = 4/5."""
    assert answer_scores("The big red dog", ["a cat", "red dog"], "en") == (0.8, 0.0)
    assert answer_scores("dog dog", ["dog"], "en") == (pytest.approx(2 / 3), 0.0)
    assert answer_scores("red dog", ["dog red", "Red, dog."], "en") == (1.0, 1.0)
    assert answer_scores("dog red", ["red dog"], "en") == (1.0, 0.0)


def test_an_empty_answer() -> None:
    assert answer_scores("", ["dog"], "en") == (0, 0)
    assert answer_scores("the", ["dog", "!"], "en") == (0, 1)


def test_the_language_decides() -> None:
    assert answer_scores("die Brücke", ["Brücke"], "de") == (1, 1)
    assert answer_scores("die Brücke", ["Brücke"], "de", style=SQUAD) == (pytest.approx(2 / 3), 0)
    assert answer_scores("北京大学", ["北京"], "zh") == (pytest.approx(2 / 3), 0)
    assert answer_scores("北京大学", ["北京"], "zh", style=SQUAD) == (0, 0)


def test_no_right_answer_is_an_error() -> None:
    with pytest.raises(BadInput, match="without any right answer"):
        answer_scores("dog", [], "en")


def test_styles_are_known_by_name() -> None:
    assert answer_words("“a”", "en", style="squad") == ["“", "”"]  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="did you mean squad"):
        answer_words("a", "en", style="squat")  # type: ignore[arg-type]
