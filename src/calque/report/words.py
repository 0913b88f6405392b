"""How sentences are made: names in a row, figures with their units, differences with their signs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from calque.report.tasks import Metric
from calque.text.languages import language_name

#: Names in a sentence above which it says how many there are.
MOST_NAMES = 6
#: A difference that is no more than rounding errors.
_NOTHING = 1e-6


def name_of(code: str) -> str:
    """A language's English name; what is no language code stands for itself.

    >>> name_of("de"), name_of("my dialect")
    ('German', 'my dialect')
    """
    try:
        return language_name(code)
    except ValueError:
        return code


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def some(
    names: Sequence[str], among: int, *, every: str = "all", last: str = "and", what: str = "methods"
) -> str:
    """Names in a sentence, or how many of all where they are many; one with a comma is in quotation marks.

    >>> some(["l2", "weak"], 2), some(["rotation, words", "weak"], 2, last="or"), some(list("abcdefgh"), 9)
    ('l2 and weak', '“rotation, words” or weak', '8 of 9 methods')
    """
    if len(names) > MOST_NAMES:
        return f"{every if len(names) == among else f'{len(names)} of'} {among} {what}"
    quoted = [quoted_name(name) for name in names]
    return f" {last} ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))


def quoted_name(name: str) -> str:
    """A name in quotation marks where it has a comma, unless it has them already.

    >>> quoted_name("weak"), quoted_name(quoted_name("weak, size 5")), quoted_name("“weak, size 5” (+1.0)")
    ('weak', '“weak, size 5”', '“weak, size 5” (+1.0)')
    """
    return f"“{name}”" if "," in name and not name.startswith("“") else name


def capital(text: str) -> str:
    """A sentence's first letter large, the rest as it is."""
    return text[:1].upper() + text[1:]


def amount(value: float, reading: Metric) -> str:
    """A figure with its unit.

    >>> amount(0.4123, Metric()), amount(-0.4123, Metric(percent=False))
    ('41.2%', '−0.412')
    """
    return (f"{value * 100:.1f}%" if reading.percent else f"{value:.3f}").replace("-", "−")


def signed(value: float, reading: Metric) -> str:
    """A difference with its sign: in points of a percentage, or as it is.

    >>> signed(-0.0123, Metric()), signed(0.0, Metric())
    ('−1.2', '0.0')
    """
    text = f"{value * 100:+.1f}" if reading.percent else f"{value:+.3f}"
    return (text[1:] if not text.strip("+-0.") else text).replace("-", "−")


def points(value: float, reading: Metric) -> str:
    """A difference with its sign and unit. One that would be rounded to nothing has its first digit.

    >>> points(0.015, Metric()), points(0.015, Metric(percent=False)), points(-0.00042, Metric(percent=False))
    ('+1.5 points', '+0.015', '−0.0004')
    """
    told, scale = signed(value, reading), 100 if reading.percent else 1
    if not told.strip("0.") and abs(value) > _NOTHING:
        told = f"{value * scale:+.{math.ceil(-math.log10(abs(value) * scale))}f}".replace("-", "−")
    return told + (" points" if reading.percent else "")


def p_value(p: float) -> str:
    """A p-value that never claims to be nothing.

    >>> p_value(0.0421), p_value(0.00004)
    ('p = 0.042', 'p < 0.001')
    """
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"
