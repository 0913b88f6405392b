r"""Tables as LaTeX: booktabs, every sign of a label escaped, marks as superscripts.

A label can hold anything: it never ends a cell, a row or the table, and never starts a command. Signs that
pdfLaTeX does not know are written by their commands; letters of other scripts stay as they are, for XeLaTeX
or LuaLaTeX and a font that has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from calque.report.written import Block, Figure, Written, one_line

PREAMBLE = r"% In the preamble: \usepackage{booktabs}"
#: What a figure may be made of, besides its sign.
_FIGURE = re.compile(r"[-+−±<>=., 0-9]+")
#: Brackets and stars after the end of a row would be taken for its options.
_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    # By itself it is a letter's accent to some packages.
    '"': "''",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "–": "--",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "→": r"$\rightarrow$",
    "↔": r"$\leftrightarrow$",
    "▲": r"$\uparrow$",
    "▼": r"$\downarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "′": "$'$",
    "α": r"$\alpha$",
    "λ": r"$\lambda$",
    "ρ": r"$\rho$",
    "\u00a0": "~",
}
_MARKS = {"▲": r"\uparrow", "▼": r"\downarrow"}
_INDENT = "  "


def latex(blocks: Sequence[Block]) -> str:
    """All tables, each a float with its caption and a label by its name."""
    return "\n\n".join((PREAMBLE, *("\n".join(_lines(block)) for block in blocks))) + "\n"


def _lines(block: Block) -> Iterator[str]:
    columns = "".join(_column([row[place] for row in block.body]) for place in range(len(block.head)))
    yield r"\begin{table}"
    yield rf"{_INDENT}\centering"
    yield rf"{_INDENT}\caption{{{escaped(block.heading)}}}"
    yield rf"{_INDENT}\label{{tab:{block.name}}}"
    yield rf"{_INDENT}\begin{{tabular}}{{{columns}}}"
    yield rf"{_INDENT * 2}\toprule"
    yield _row(block.head)
    yield rf"{_INDENT * 2}\midrule"
    yield from map(_row, block.body)
    yield rf"{_INDENT * 2}\bottomrule"
    yield rf"{_INDENT}\end{{tabular}}"
    for note in filter(None, (block.legend, *block.notes)):
        yield rf"{_INDENT}\par\smallskip{{\footnotesize {escaped(note)}\par}}"
    yield r"\end{table}"


def _row(cells: Sequence[Written]) -> str:
    return _INDENT * 2 + " & ".join(map(_cell, cells)) + r" \\"


def _column(cells: Sequence[Written]) -> str:
    """Words begin at the left of their column, figures end at the right."""
    return "l" if any(isinstance(cell, str) and cell != "–" for cell in cells) else "r"


def _cell(cell: Written) -> str:
    return escaped(cell) if isinstance(cell, str) else " ".join(map(figure, cell))


def escaped(text: str) -> str:
    r"""Words as LaTeX prints them.

    >>> escaped(r"a_b & 50% $x$ \cmd")
    'a\\_b \\& 50\\% \\$x\\$ \\textbackslash{}cmd'
    """
    plain = "".join(sign if sign.isprintable() or sign == "\u00a0" else " " for sign in one_line(text))
    # Hyphens side by side would become a dash.
    apart = re.sub("-(?=-)", "-\0", plain)
    return "".join("{}" if sign == "\0" else _SIGNS.get(sign, sign) for sign in apart)


def figure(one: Figure) -> str:
    r"""A figure in mathematics, its mark raised.

    >>> figure(Figure("61.2 ± 0.8", "▲*")), figure(Figure("−1.2 to +3.4"))
    ('$61.2 \\pm 0.8^{\\uparrow *}$', '$-1.2$ to $+3.4$')
    """
    *before, last = one.text.split(" to ")
    return " to ".join([*map(_math, before), _math(last, one.mark)])


def _math(text: str, mark: str = "") -> str:
    raised = f"^{{{' '.join(_MARKS.get(sign, sign) for sign in mark)}}}" if mark else ""
    if not _FIGURE.fullmatch(text):
        return escaped(text) + (f"${{}}{raised}$" if raised else "")
    told = text.replace("−", "-").replace("±", r" \pm ")
    return f"${' '.join(told.split())}{raised}$"
