"""Language codes, language names, and the script of a word."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import cache

import langcodes

from calque.errors import BadSetting

#: Languages of calque's own small world, which have no registered code.
WORLD = frozenset({"near", "far"})

_CODE, _EXAMPLE = re.compile(r"[A-Za-z0-9_-]{1,100}"), "give a code such as en, de or zh"


def check_language(code: str) -> str:
    """The canonical form of a language code; an unknown one is an error that suggests another.

    Private-use codes (`x-mine`, `qaa` to `qtz`) and calque's own languages `near` and `far` are taken as
    they are.

    >>> check_language("EN"), check_language("deu"), check_language("pt_br"), check_language("near")
    ('en', 'de', 'pt-BR', 'near')
    """
    if code in WORLD:
        return code
    if not (_CODE.fullmatch(code) and langcodes.tag_is_valid(code)):
        raise BadSetting(f"unknown language {code!r}", remedy=_nearest(code))
    return langcodes.standardize_tag(code)


def _nearest(code: str) -> str:
    """People give a language's name, or a country's code, for the code of its language."""
    # Unassigned countries count as valid, and English is what langcodes makes of them.
    if not code.isprintable():
        return _EXAMPLE
    tag = f"und-{code}"
    spoken = langcodes.Language.get(tag).maximize().language if langcodes.tag_is_valid(tag) else None
    if spoken and spoken != "en":
        return f"did you mean {spoken} ({language_name(spoken)})?"
    with suppress(LookupError, ValueError):
        found = langcodes.find(code)
        return f"did you mean {found} ({found.display_name()})?"
    return _EXAMPLE


def primary_subtag(code: str) -> str:
    """The language of a code without script and region.

    >>> primary_subtag("EN_US"), primary_subtag("x-mine")
    ('en', 'x-mine')
    """
    first, *rest = code.lower().replace("_", "-").split("-")
    return first if len(first) > 1 or not rest else "-".join([first, *rest])


def language_name(code: str) -> str:
    """A language's English name; a code without one stands for itself.

    >>> language_name("de"), language_name("zh-Hant"), language_name("far")
    ('German', 'Chinese (Traditional)', 'far')
    """
    if code in WORLD:
        return code
    name = langcodes.Language.get(code).display_name()
    return code if name.startswith("Unknown language") else name


# ------------------------------------------------------------------------------------------- scripts

# unicodedata has no script property, but letters' names begin with their script ("THAI CHARACTER KO KAI"),
# except those below. Exact for every script in use today; dead ones go by the first word of their names.
_NAMED_OTHERWISE = {
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "HENTAIGANA": "Hiragana",
    "CANADIAN": "Canadian_Aboriginal",
    "KATAKANA-HIRAGANA": "Common",
    "KAYAH": "Kayah_Li",
    "MEETEI": "Meetei_Mayek",
    "MODIFIER": "Common",
    "NEW": "New_Tai_Lue",
    "OL": "Ol_Chiki",
    "SYLOTI": "Syloti_Nagri",
    "TAI LE": "Tai_Le",
    "TAI THAM": "Tai_Tham",
    "TAI VIET": "Tai_Viet",
}


def script_of(word: str) -> str:
    """The script of most letters of a word, the first of several; "Common" for a word without letters.

    >>> [script_of(word) for word in ("naïve", "мир", "世界", "नमस्ते", "2026")]
    ['Latin', 'Cyrillic', 'Han', 'Devanagari', 'Common']
    """
    if word.isascii():
        return "Latin" if any(map(str.isalpha, word)) else "Common"
    scripts = Counter(script for script in map(_letter_script, word) if script != "Common")
    return max(scripts, key=scripts.__getitem__, default="Common")


def scripts_of(words: Iterable[str]) -> list[str]:
    """The script of each word, for instance of a whole vocabulary."""
    return [script_of(word) for word in words]


@cache
def _letter_script(character: str) -> str:
    # The plain letter that a fullwidth, bold or superscript one stands for says its script.
    plain = next(filter(str.isalpha, unicodedata.normalize("NFKC", character)), "")
    name = unicodedata.name(plain, "").split(" ") if plain else [""]
    if not name[0]:
        return "Common"
    return _NAMED_OTHERWISE.get(" ".join(name[:2])) or _NAMED_OTHERWISE.get(name[0], name[0].capitalize())
