"""A table as it is written down: words and figures in cells, whatever the form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Figure:
    """A figure of a cell, such as `61.2 ± 0.8`; its mark, and what tells the same where marks are not used.

    >>> str(Figure("+12.0", "*", "(p < 0.001)"))
    '+12.0 (p < 0.001)'
    """

    text: str
    mark: str = ""
    plain: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.plain}".strip()


#: Words, or figures that stand side by side.
Written: TypeAlias = str | tuple[Figure, ...]


@dataclass(frozen=True)
class Block:
    """A table: what it is called, its heading, what it must be read with, its head, its rows.

    `legend` says what marks mean, and stands below.
    """

    name: str
    heading: str
    head: tuple[str, ...]
    body: tuple[tuple[Written, ...], ...]
    notes: tuple[str, ...] = ()
    legend: str = ""

    @property
    def markdown(self) -> str:
        """Heading, notes and rows between bars."""
        lines = [[markdown_cell(cell) for cell in row] for row in (self.head, *self.body)]
        lines.insert(1, ["---:"] * len(self.head))
        above = "\n".join(map(markdown_text, (self.heading, *self.notes)))
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join(filter(None, (above, table, markdown_text(self.legend))))


def markdown_cell(cell: Written) -> str:
    """A cell in which no bar ends it and no line breaks it.

    >>> markdown_cell("a|b"), markdown_cell((Figure("46.0"), Figure("+1.0")))
    ('a\\\\|b', '46.0 +1.0')
    """
    return markdown_text(cell) if isinstance(cell, str) else " ".join(map(str, cell))


#: A number between brackets, or smaller than another, is no markup.
_MARKUP = re.compile(r"[\\`|]|<(?=[A-Za-z/!?])|(?<=\])\(|\[(?=[^\]\d]*\])|&(?=[#\w]+;)")


def markdown_text(text: str) -> str:
    """Words on one line, in which data make no markup, link, picture or HTML.

    >>> markdown_text("![a](http://b) <img src=x>"), markdown_text("p < 0.001, [0.1, 0.2], en_de")
    ('!\\\\[a]\\\\(http://b) \\\\<img src=x>', 'p < 0.001, [0.1, 0.2], en_de')
    """
    return _MARKUP.sub(lambda found: "\\" + found[0], one_line(text))


def markdown_lines(text: str) -> str:
    """Lines of words as `markdown_text` has them."""
    return "\n".join(map(markdown_text, text.split("\n")))


def one_line(text: str) -> str:
    """A text without breaks of lines."""
    return " ".join(text.split()) if len(text.splitlines()) > 1 else text
