"""How far apart two languages are: by family, by script and by word order, from a small table.

Families and branches are the usual ones of handbooks. Word order is the dominant order of subject, object and
verb in the sense of the World Atlas of Language Structures (Dryer 2013, feature 81A), which finds none in
German, Dutch, Greek, Hungarian and Eastern Armenian. The usual script is that of CLDR. Three coarse facts,
so that gains can be put in an order that a reader can follow: not a measure of how much two languages share.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import langcodes

from calque.errors import BadSetting
from calque.text.languages import check_language, primary_subtag

#: The order of languages that have several, none of them dominant.
NO_ORDER = "none"
UNKNOWN = "unknown"

# Family, branch and order, then the languages. A family of one branch goes by its own name.
_TABLE = """
Indo-European   Germanic         SVO   da en is nb nn no sv yi
Indo-European   Germanic         none  af de fy lb nl
Indo-European   Romance          SVO   ca es fr gl it oc pt ro
Indo-European   Slavic           SVO   be bg bs cs hr mk pl ru sk sl sr uk
Indo-European   Baltic           SVO   lt lv
Indo-European   Celtic           VSO   cy ga gd
Indo-European   Greek            none  el
Indo-European   Albanian         SVO   sq
Indo-European   Armenian         none  hy
Indo-European   Iranian          SOV   fa ku ps tg
Indo-European   Indo-Aryan       SOV   as bn gu hi mr ne or pa sd si ur
Uralic          Finnic           SVO   et fi
Uralic          Hungarian        none  hu
Turkic          Turkic           SOV   az kk ky tk tr tt ug uz
Mongolic        Mongolic         SOV   mn
Kartvelian      Kartvelian       SOV   ka
Basque          Basque           SOV   eu
Dravidian       Dravidian        SOV   kn ml ta te
Afro-Asiatic    Semitic          VSO   ar
Afro-Asiatic    Semitic          SVO   he mt
Afro-Asiatic    Semitic          SOV   am ti
Afro-Asiatic    Cushitic         SOV   om so
Afro-Asiatic    Chadic           SVO   ha
Sino-Tibetan    Sinitic          SVO   cmn yue zh
Sino-Tibetan    Tibeto-Burman    SOV   bo my
Japonic         Japonic          SOV   ja
Koreanic        Koreanic         SOV   ko
Tai-Kadai       Tai              SVO   lo th
Austroasiatic   Vietic           SVO   vi
Austroasiatic   Khmer            SVO   km
Austronesian    Malayo-Sumbawan  SVO   id ms su
Austronesian    Javanese         SVO   jv
Austronesian    Philippine       VSO   ceb fil tl
Austronesian    Malagasy         VOS   mg
Niger-Congo     Bantu            SVO   ln rw sn sw xh zu
Niger-Congo     Volta-Niger      SVO   ig yo
Niger-Congo     Atlantic         SVO   wo
Quechuan        Quechuan         SOV   qu
"""
#: Calque's own languages: a third of near's content words are cognates of English ones; far shares nothing.
_WORLD = {
    "near": ("Indo-European", "invented, kin to English", "SVO", "Latin"),
    "far": ("invented", "invented", "SOV", "Georgian"),
}
#: Scripts by other names than Unicode's.
_SCRIPTS = {"Hans": "Han", "Hant": "Han", "Hani": "Han", "Kore": "Hangul", "Jpan": "Japanese"}


@dataclass(frozen=True)
class Typology:
    """A language's family and branch, its dominant order of subject, object and verb, its usual script."""

    family: str
    branch: str
    order: str
    script: str

    @property
    def described(self) -> str:
        """In words."""
        order = "no dominant order" if self.order == NO_ORDER else self.order
        return f"{self.branch}, {self.script} script, {order}"


@cache
def _known() -> Mapping[str, tuple[str, str, str]]:
    found = {}
    for line in _TABLE.strip().splitlines():
        family, branch, order, *codes = line.split()
        found.update(dict.fromkeys(codes, (family, branch, order)))
    return found


def known_languages() -> frozenset[str]:
    """The codes in the table, and those of the world."""
    return frozenset({*_known(), *_WORLD})


@cache
def typology(code: str) -> Typology | None:
    """What the table says of a language; None where it is not there. A script that the code names is taken.

    >>> typology("ur").script, typology("zh-Hant").script, typology("sr-Latn").script, typology("tlh")
    ('Arabic', 'Han', 'Latin', None)
    """
    if code in _WORLD:
        return Typology(*_WORLD[code])
    with suppress(BadSetting, ValueError):
        tag = check_language(code)
        found = _known().get(primary_subtag(tag))
        return None if found is None else Typology(*found, _script(tag))
    return None


def _script(tag: str) -> str:
    language = langcodes.Language.get(tag).maximize()
    return _SCRIPTS.get(language.script or "", language.script_name())


def differences(a: str, b: str) -> dict[str, float]:
    """Family, script and word order apart, each from 0 to 1; empty where a language is not in the table.

    Family: 0 for one branch, 0.5 for another branch of the family, 1 for another family. Script: 0 or 1.
    Order: 0 for the same, 0.5 where one of the two has no dominant order, 1 otherwise.
    """
    one, other = typology(a), typology(b)
    if one is None or other is None:
        return {}
    family = 0.0 if one.family == other.family else 1.0
    if family == 0 and one.branch != other.branch:
        family = 0.5
    order = 0.0 if one.order == other.order else 0.5 if NO_ORDER in (one.order, other.order) else 1.0
    return {"family": family, "script": float(one.script != other.script), "order": order}


def distance(a: str, b: str) -> float | None:
    """The mean of the three differences, from 0 to 1; None where a language is not in the table.

    >>> [round(distance("en", code), 2) for code in ("sv", "de", "fr", "ru", "hi", "th", "ja")]
    [0.0, 0.17, 0.17, 0.5, 0.83, 0.67, 1.0]
    """
    apart = differences(a, b)
    return sum(apart.values()) / len(apart) if apart else None


def described(code: str) -> str:
    """A language in a few words.

    >>> described("sv"), described("de"), described("x-mine")
    ('Germanic, Latin script, SVO', 'Germanic, Latin script, no dominant order', 'unknown')
    """
    found = typology(code)
    return UNKNOWN if found is None else found.described
