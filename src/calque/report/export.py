"""Tables of a run, of a folder of runs or of a study, for a paper, an issue or another program.

As Markdown and LaTeX there is a table for everything that was measured (a row a layer, a column an encoder),
for every task that was learned or compared (mean ± standard deviation, marks, difference, corrected p), and
one for links; of a study every table of its page as well. As CSV all of them are one: a line a figure, one
header, at full precision: shares from 0 to 1, other figures as they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from calque.errors import BadInput, BadSetting
from calque.recipe import Choice, suggestion
from calque.report.collect import Run, collect
from calque.report.latex import latex
from calque.report.sheets import COLUMNS, Sheet, run_sheets
from calque.report.study.content import Content
from calque.report.study.reading import StudyFolder, is_study, read_study
from calque.report.study.sheets import study_sheets
from calque.report.tables import verdict_line
from calque.report.transfer import comparison_lines
from calque.report.written import markdown_lines

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


class Form(Choice):
    """How tables are written: md (Markdown), tex (LaTeX with booktabs), csv (one table of all figures)."""

    MD = "md"
    TEX = "tex"
    CSV = "csv"


def tables_of(folder: Path) -> Run | StudyFolder:
    """What tables can be made of: a run, a folder of runs, or a study."""
    return read_study(folder) if is_study(folder) else collect(folder)


def exported(held: Run | StudyFolder, form: str, only: Sequence[str] = ()) -> str:
    """All tables, or `only` those of these names, as text of one form. Nothing to write is an error."""
    how, content = Form.parse(form), _content(held)
    found = sheets(content)
    if not found:
        raise BadInput(
            "no tables here: nothing was measured, learned or compared",
            where=held.folder,
            remedy="give a run of `calque measure`, `transfer` or `compare`, or of `link` with --gold",
        )
    chosen = _chosen(found, only)
    above = [] if only or how is not Form.MD else [_verdict(content)]
    return _WRITERS[how](chosen, above)


def table_names(held: Run | StudyFolder) -> list[str]:
    """The tables there are, by the names that they can be asked for."""
    return [sheet.name for sheet in sheets(_content(held))]


def _content(held: Run | StudyFolder) -> Run | Content:
    """What verdict and tables are made from; of a study what both need is computed once."""
    return held if isinstance(held, Run) else Content(held)


def _chosen(found: Sequence[Sheet], only: Sequence[str]) -> list[Sheet]:
    known = {sheet.name: sheet for sheet in found}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise BadSetting(f"no table {unknown[0]!r}", remedy=suggestion(unknown[0], known))
    return [known[name] for name in dict.fromkeys(only)] if only else list(found)


def _verdict(held: Run | Content) -> str:
    if isinstance(held, Run):
        return verdict_line(held)
    lines = [line for one in held.study.comparisons for line in comparison_lines(one.held)]
    return "\n".join([*lines, *held.lines]) or "Nothing was compared in this study yet."


# -------------------------------------------------------------------------------------------- writing


def _markdown(found: Sequence[Sheet], above: Sequence[str]) -> str:
    return "\n\n".join([*map(markdown_lines, above), *(sheet.block.markdown for sheet in found)]) + "\n"


def _latex(found: Sequence[Sheet], _: Sequence[str]) -> str:
    return latex([sheet.block for sheet in found])


def _csv(found: Sequence[Sheet], _: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for sheet in found:
        for record in sheet.records:
            writer.writerow({"table": sheet.name, **{name: _plain(value) for name, value in record.items()}})
    return text.getvalue()


def _plain(value: object) -> object:
    """A label that a spreadsheet would compute has an apostrophe before it; numbers stay numbers.

    >>> _plain("=1+1"), _plain("-strong"), _plain("-2"), _plain(-0.5), _plain("weak")
    ("'=1+1", "'-strong", '-2', -0.5, 'weak')
    """
    if not isinstance(value, str) or not value.lstrip().startswith(
        ("=", "+", "-", "@", "＝", "＋", "－", "＠")
    ):
        return value
    return value if _NUMBER.fullmatch(value) else f"'{value}"


_WRITERS: Mapping[Form, Callable[[Sequence[Sheet], Sequence[str]], str]] = {
    Form.MD: _markdown,
    Form.TEX: _latex,
    Form.CSV: _csv,
}


# ---------------------------------------------------------------------------------------- what there is


def sheets(held: Run | Content) -> list[Sheet]:
    """Every table under a name of its own, in the order of the page."""
    found = run_sheets(held) if isinstance(held, Run) else study_sheets(held)
    return list(_named(found))


def _named(found: Iterator[tuple[str, Sheet]]) -> Iterator[Sheet]:
    """Names that a shell and LaTeX take as they are: letters, digits, hyphens; each but once."""
    taken: dict[str, int] = {}
    for run, sheet in found:
        name = _slug(f"{run} {sheet.name}")
        taken[name] = taken.get(name, 0) + 1
        told = name if taken[name] == 1 else f"{name}-{taken[name]}"
        heading = f"{run}: {sheet.block.heading}" if run else sheet.block.heading
        yield replace(sheet, block=replace(sheet.block, name=told, heading=heading))


def _slug(text: str) -> str:
    """
    >>> _slug("words: P@1 (en–de)"), _slug("你好")
    ('words-p-1-en-de', 'table')
    """
    return "-".join(re.findall(r"[a-z0-9]+", text.lower())) or "table"
