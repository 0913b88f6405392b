"""Answers compared with right answers, word by word: SQuAD's F1 and exact match, in many languages."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from calque.errors import BadInput
from calque.recipe import Choice
from calque.text.languages import primary_subtag


class AnswerStyle(Choice):
    """What of an answer is compared. Both lower its case and leave out punctuation, articles and spacing.

    mlqa: by language, as the evaluation of MLQA does: punctuation is what Unicode calls so, articles are
    those of the language (`ARTICLES`), and scripts without spaces are compared by character (`CHARACTERS`).
    squad: as the evaluation of SQuAD v1.1 does for English, whatever the language: ASCII punctuation, the
    articles a, an, the, and words between spaces. That of XQuAD is the same program.

    In English the two differ only where an answer holds punctuation beyond ASCII, such as “ or –.
    """

    MLQA = "mlqa"
    SQUAD = "squad"


class AnswerScores(NamedTuple):
    """F1 over words, and whether the whole answer is right (1) or not (0)."""

    f1: float
    em: float


def _words(articles: str) -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(articles.split())})\b")


#: What counts as an article, by language; other languages have none here. The Arabic one goes wherever these
#: two letters stand, also inside a word: MLQA's program means the prefix but does that.
ARTICLES: Mapping[str, re.Pattern[str]] = {
    "ar": re.compile("ال"),
    "de": _words("ein eine einen einem eines einer der die das den dem des"),
    "en": _words("a an the"),
    "es": _words("un una unos unas el la los las"),
    "vi": _words("của là cái chiếc những"),
}

#: Characters that are words of their own, by language; everything else is divided at spaces. Chinese is as
#: in MLQA's program; Japanese and Thai are ours.
CHARACTERS: Mapping[str, re.Pattern[str]] = {
    "ja": re.compile("[\u3005-\u3007\u3041-\u30ff\u4e00-\u9fff]"),
    "th": re.compile("[\u0e01-\u0e3a\u0e40-\u0e4e]"),
    "zh": re.compile("[\u4e00-\u9fa5]"),
}


def answer_words(text: str, language: str, *, style: AnswerStyle = AnswerStyle.MLQA) -> list[str]:
    """What is compared of an answer.

    >>> answer_words("Die »Zauberflöte«", "de"), answer_words("在1791年", "zh")
    (['zauberflöte'], ['在', '1791', '年'])
    >>> answer_words("Die Zauberflöte", "de", style=AnswerStyle.SQUAD)
    ['die', 'zauberflöte']
    """
    if AnswerStyle.parse(style) == AnswerStyle.SQUAD:
        bare = "".join(c for c in text.lower() if c not in string.punctuation)
        return ARTICLES["en"].sub(" ", bare).split()
    code = primary_subtag(language)
    bare = "".join(c for c in text.lower() if not _punctuation(c))
    if code in ARTICLES:
        bare = ARTICLES[code].sub(" ", bare)
    if code in CHARACTERS:
        bare = CHARACTERS[code].sub(r" \g<0> ", bare)
    return bare.split()


@cache
def _punctuation(character: str) -> bool:
    # Unicode calls nine of them symbols, among them $ + < = > | ~.
    return unicodedata.category(character)[0] == "P" or character in string.punctuation


def answer_scores(
    predicted: str, answers: Sequence[str], language: str, *, style: AnswerStyle = AnswerStyle.MLQA
) -> AnswerScores:
    """Each score with the right answer that gives the most; `language` is that of the answers.

    An answer of which nothing is left to compare has F1 0, also against another such; its exact match is 1
    then. That is what both programs do.

    >>> answer_scores("the Magic Flute", ["Magic Flute, The", "Die Zauberflöte"], "en")
    AnswerScores(f1=1.0, em=1.0)
    >>> answer_scores("the flute of Mozart", ["Magic Flute"], "en")
    AnswerScores(f1=0.4, em=0.0)
    """
    if not answers:
        raise BadInput("a question without any right answer cannot be scored")
    said = answer_words(predicted, language, style=style)
    right = [answer_words(answer, language, style=style) for answer in answers]
    return AnswerScores(max(_f1(said, words) for words in right), float(said in right))


def _f1(said: Sequence[str], right: Sequence[str]) -> float:
    hits = (Counter(said) & Counter(right)).total()
    return 2 * hits / (len(said) + len(right)) if hits else 0.0
