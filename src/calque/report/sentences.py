"""Tokenised sentences as people write them, cut around one word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calque.report.parts import Place
from calque.text.languages import primary_subtag

#: Words on either side of one, and words of a sentence that is shown as a whole.
CONTEXT, LONGEST = 14, 60
#: Languages that put no spaces between words.
UNSPACED = frozenset({"zh", "yue", "ja", "th", "lo", "km", "my", "bo", "dz"})
_CLOSING = frozenset(".,;:!?%)]}»›”’…।॥、。，；：！？）】》」』،؛؟") | {"...", "''", "?!", "!!"}
_OPENING = frozenset("([{¿¡«‹„‚（【《「『") | {"``", "#", "$", "£"}
_TAILS = frozenset({"n't", "n’t"})
_APOSTROPHES = "'’"


@dataclass(frozen=True)
class Spoken:
    """A sentence cut around one word, for the page."""

    before: str
    word: str
    after: str
    language: str


def sentence(place: Place, language: str) -> Spoken:
    """The words around one, joined as its language joins them; far ones give way to an ellipsis.

    >>> sentence(Place("cat", ("the", "cat", "sat", "."), 1), "en")
    Spoken(before='the ', word='cat', after=' sat.', language='en')
    """
    if place.index is None:
        return Spoken(_joined(place.sentence, language), place.word, "", language)
    start, end = max(place.index - CONTEXT, 0), place.index + 1 + CONTEXT
    before = [*(["…"] if start else []), *place.sentence[start : place.index]]
    after = [*place.sentence[place.index + 1 : end], *(["…"] if end < len(place.sentence) else [])]
    words, here = [*before, place.word, *after], len(before)
    spaces = list(spacing(words, language))
    joined = [space + word for space, word in zip(spaces, words, strict=True)]
    return Spoken("".join(joined[:here]) + spaces[here], place.word, "".join(joined[here + 1 :]), language)


def _joined(words: Sequence[str], language: str) -> str:
    """A whole sentence, its end left out where it is very long."""
    shown = [*words[:LONGEST], *(["…"] if len(words) > LONGEST else [])]
    return "".join(space + word for space, word in zip(spacing(shown, language), shown, strict=True))


def spacing(words: Sequence[str], language: str) -> Iterator[str]:
    """What stands before each word: a space or nothing.

    >>> "".join(a + b for a, b in zip(spacing(["¿", "Qué", "?"], "es"), ["¿", "Qué", "?"]))
    '¿Qué?'
    """
    dense, quotes = primary_subtag(language) in UNSPACED, _Quotes()
    previous, tight = "", True
    for word in words:
        opens, closes = quotes.read(word)
        glued = tight or closes or word in _CLOSING or _is_tail(word)
        if dense and not (previous[-1:].isascii() and word[:1].isascii() and word[:1].isalnum()):
            glued = True
        yield "" if glued else " "
        tight = opens or word in _OPENING or _elided(word, language)
        previous = word


class _Quotes:
    """Whether a quotation mark opens or closes: straight ones by turns, “ by whether „ stands open."""

    def __init__(self) -> None:
        self.straight = False
        self.low = False

    def read(self, word: str) -> tuple[bool, bool]:
        if word == '"':
            self.straight = not self.straight
            return self.straight, not self.straight
        if word == "„":
            self.low = True
        elif word == "“":
            closes, self.low = self.low, False
            return not closes, closes
        elif word == "‘":
            return True, False
        return False, False


def _is_tail(word: str) -> bool:
    """Whether a word leans on the one before: n't, 's, 're."""
    return word in _TAILS or (len(word) > 1 and word[0] in _APOSTROPHES and word[1:].isalpha())


def _elided(word: str, language: str) -> bool:
    """Whether a word leans on the next: l', qu', dell'."""
    romance = primary_subtag(language) in {"fr", "it", "ca", "oc"}
    return romance and len(word) > 1 and word[-1] in _APOSTROPHES
