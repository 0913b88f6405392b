"""How a page is written: templates with their filters, the page's own style and script."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from calque import __version__
from calque.report.collect import pair_name
from calque.report.measures import coloured
from calque.report.sentences import sentence
from calque.report.svg import colour
from calque.report.transfer import spoken_name
from calque.report.verdict import ALPHA
from calque.report.words import amount, capital, name_of, signed

#: Words with several translations that are not folded.
OPEN_WORDS = 8


@cache
def environment() -> Environment:
    """Templates, and the filters that they are written with."""
    made = Environment(
        loader=PackageLoader("calque.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["sentence"] = sentence
    made.filters["language"] = name_of
    made.filters["spoken"] = spoken_name
    made.filters["pair"] = pair_name
    made.filters["opening"] = opening
    made.filters["unbroken"] = unbroken
    made.filters["colour"] = colour
    made.filters["coloured"] = coloured
    made.filters["digest"] = digest
    made.filters["shown"] = lambda value, reading: amount(value, reading).removesuffix("%")
    made.filters["signed"] = signed
    made.filters["p"] = lambda p: "" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"
    return made


def html_page(template: str, *, title: str, **shown: Any) -> str:
    """A whole page from a template: what it shows, and what every page has."""
    text = (
        environment()
        .get_template(template)
        .render(
            title=title,
            version=__version__,
            alpha=ALPHA,
            most_words=OPEN_WORDS,
            script=_asset("page.js"),
            style=_asset("style.css"),
            **shown,
        )
    )
    return text.translate(_OVERRIDES)


#: Signs that turn the text after them around, so that it reads as what it is not, are shown as unknown ones.
_OVERRIDES = dict.fromkeys((0x202D, 0x202E), "\N{REPLACEMENT CHARACTER}")


@cache
def _asset(name: str) -> Markup:
    """The page's own script or style, which stands in it as it is."""
    return Markup(files("calque.report").joinpath("templates", name).read_text(encoding="utf-8"))


def digest(text: str) -> str:
    """A script or style as a content policy names it: nothing but this very text may run.

    >>> digest("alert(1)")
    'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='
    """
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def opening(text: str) -> str:
    """A headline with a large first letter, unless it starts with what looks like a file or model name.

    >>> opening("centring helped"), opening("e5-small-q4 hurt")
    ('Centring helped', 'e5-small-q4 hurt')
    """
    return capital(text) if text.split(" ")[0].isalpha() else text


def unbroken(text: str) -> str:
    """A sentence in which no line ends between a sign and its number.

    >>> unbroken("p = 0.012") == "p\\N{NO-BREAK SPACE}=\\N{NO-BREAK SPACE}0.012"
    True
    """
    return re.sub(r"\bp ([=<≤]) ", "p\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", text)
