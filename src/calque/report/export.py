"""Tables of a run, of a folder of runs or of a study, for a paper, an issue or another program.

As Markdown and LaTeX there is a table for everything that was measured (a row a layer, a column an encoder),
for every task that was learned or compared (mean ± standard deviation, marks, difference, corrected p), and
one for links. As CSV all of them are one: a line a figure, one header, scores from 0 to 1 at full precision.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from calque.errors import BadInput, BadSetting
from calque.recipe import Choice, suggestion
from calque.report.collect import Panel, Run, collect
from calque.report.latex import latex
from calque.report.study.over_seeds import measure_table, seed_measures
from calque.report.study.reading import MEASURE, StudyFolder, is_study, read_study
from calque.report.study.told import finding_lines
from calque.report.tables import links_block, panel_block, rows, verdict_line
from calque.report.transfer import MEAN, PREFIX, Comparison, Contrasted, Trained, comparison_lines
from calque.report.transfer_shown import comparison_blocks, trained_block
from calque.report.written import Block, markdown_lines
from calque.types import Result

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
Record: TypeAlias = dict[str, object]
#: The columns of CSV. `encoder` is the method where methods are compared; a difference is to `baseline`.
COLUMNS = (
    "table", "run", "task", "metric", "variant", "source", "target", "direction", "layer", "group", "bin",
    "encoder", "seed", "seeds", "items", "value", "std", "low", "high",
    "baseline", "baseline_seeds", "baseline_value", "baseline_std",
    "difference", "difference_low", "difference_high", "p", "p_corrected", "mark", "finding", "note",
)  # fmt: skip


#: What a mark at a measure over seeds means.
SURE = "* a difference after Holm’s correction, by the least sure of the seeds’ tests"


class Form(Choice):
    """How tables are written: md (Markdown), tex (LaTeX with booktabs), csv (one table of all figures)."""

    MD = "md"
    TEX = "tex"
    CSV = "csv"


@dataclass(frozen=True)
class Sheet:
    """A table as it is written, and every figure in it at full precision."""

    block: Block
    records: tuple[Record, ...]

    @property
    def name(self) -> str:
        return self.block.name


def tables_of(folder: Path) -> Run | StudyFolder:
    """What tables can be made of: a run, a folder of runs, or a study."""
    return read_study(folder) if is_study(folder) else collect(folder)


def exported(held: Run | StudyFolder, form: str, only: Sequence[str] = ()) -> str:
    """All tables, or `only` those of these names, as text of one form. Nothing to write is an error."""
    how, found = Form.parse(form), sheets(held)
    if not found:
        raise BadInput(
            "no tables here: nothing was measured, learned or compared",
            where=held.folder,
            remedy="give a run of `calque measure`, `transfer` or `compare`, or of `link` with --gold",
        )
    chosen = _chosen(found, only)
    above = [] if only or how is not Form.MD else [_verdict(held)]
    return _WRITERS[how](chosen, above)


def table_names(held: Run | StudyFolder) -> list[str]:
    """The tables there are, by the names that they can be asked for."""
    return [sheet.name for sheet in sheets(held)]


def _chosen(found: Sequence[Sheet], only: Sequence[str]) -> list[Sheet]:
    known = {sheet.name: sheet for sheet in found}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise BadSetting(f"no table {unknown[0]!r}", remedy=suggestion(unknown[0], known))
    return [known[name] for name in dict.fromkeys(only)] if only else list(found)


def _verdict(held: Run | StudyFolder) -> str:
    if isinstance(held, Run):
        return verdict_line(held)
    lines = [line for one in held.comparisons for line in comparison_lines(one.held)]
    return "\n".join([*lines, *finding_lines(held)]) or "Nothing was compared in this study yet."


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


def sheets(held: Run | StudyFolder) -> list[Sheet]:
    """Every table under a name of its own, in the order of the page."""
    found = _of_study(held) if isinstance(held, StudyFolder) else _of_run(held)
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


def _of_run(run: Run) -> Iterator[tuple[str, Sheet]]:
    for part in run.runs:
        name = part.name if run.parts else ""
        for panel in part.panels:
            yield name, _panel(panel)
        if part.comparison:
            yield from ((name, sheet) for sheet in _comparison(part.comparison, part.name))
        yield from ((name, _trained(one, part.name)) for one in part.trained)
        if part.link_scores:
            yield name, _links(part)


def _of_study(study: StudyFolder) -> Iterator[tuple[str, Sheet]]:
    many = len(study.groups) > 1
    for one in study.comparisons:
        name = one.group.encoder if many else ""
        yield from ((name, sheet) for sheet in _comparison(one.held, study.name))
    told = {
        (row.task, label)
        for one in study.comparisons
        for row in one.held.rows
        for label in (one.held.baseline, row.method)
    }
    yield from (("", _trained(held, study.name)) for key, held in study.trained.items() if key not in told)
    if len(study.seeds) > 1:
        yield from (("", sheet) for sheet in _over_seeds(study))
    for cell, folder in study.done(MEASURE):
        run = replace(collect(folder), recipe={"labels": list(study.labels)})
        name = cell.axes.get("measure") or (cell.axes.get("encoder", "") if many else "")
        yield from ((name, _panel(panel)) for panel in run.panels)


def _over_seeds(study: StudyFolder) -> Iterator[Sheet]:
    """Measures as the page has them, over all seeds."""
    for table in measure_table(study, seed_measures(study)).cut():
        columns = [(head, column) for head in table.heads for column in head.columns]
        records: list[Record] = [
            {
                "run": study.name, "task": head.key, "metric": head.figure, "source": study.source,
                "target": column.language, "encoder": row.label, "seeds": cell.spread.seeds,
                "value": cell.spread.mean, "std": cell.spread.std,
            }
            for block in table.blocks
            for row in block.rows
            for (head, column), cell in zip(columns, row.cells, strict=True)
            if cell is not None
        ]  # fmt: skip
        yield Sheet(replace(table.written(), name="measures", legend=SURE), tuple(records))


# -------------------------------------------------------------------------------------------- measures


def _panel(panel: Panel) -> Sheet:
    corrected = {
        (name, row.layer): cell.p
        for row in rows(panel)
        for name, cell in zip(panel.encoders, row.cells, strict=True)
        if cell is not None
    }
    scores = [r for r in panel.results if r.baseline is None]
    changes = {_place(r): r for r in panel.results if r.baseline is not None}
    records = []
    for r in sorted(scores, key=lambda r: _order(panel, r)):
        record = {"run": panel.run, **_about(r), "low": r.low, "high": r.high}
        change = changes.get(_place(r))
        # Only what the table shows was corrected: neither single directions beside both, nor breakdowns.
        leading = r.group is None and r.direction == panel.directions[0]
        p = corrected.get((r.encoder, r.layer)) if leading else None
        records.append(record if change is None else {**record, **_changed(panel, change), "p_corrected": p})
    return Sheet(panel_block(panel), tuple(records))


def _order(panel: Panel, r: Result) -> tuple[object, ...]:
    """As the table has it, what it does not have after it."""
    layer = (r.layer is None, r.layer or 0)
    return r.group or ("", ""), panel.directions.index(r.direction), layer, panel.encoders.index(r.encoder)


def _place(r: Result) -> tuple[object, ...]:
    return r.encoder, r.layer, r.direction, r.group


def _changed(panel: Panel, change: Result) -> Record:
    """A difference, and what it is a difference to."""
    before = panel.score(change.baseline or "", change.layer, change.direction, change.group)
    return {
        "baseline": change.baseline,
        "baseline_value": None if before is None else before.value,
        "difference": change.value,
        "difference_low": change.low,
        "difference_high": change.high,
        "p": change.p,
    }


def _about(r: Result) -> Record:
    group, name = r.group or ("", "")
    source, target = r.languages
    return {
        "task": r.task, "metric": r.metric, "variant": r.variant, "source": source, "target": target,
        "direction": r.direction, "layer": r.layer, "group": group, "bin": name, "encoder": r.encoder,
        "seed": r.seed, "items": r.count, "value": r.value, "note": r.note,
    }  # fmt: skip


def _links(run: Run) -> Sheet:
    records = [{"run": run.name, **_about(r), "low": r.low, "high": r.high} for r in run.link_scores]
    return Sheet(links_block(run), tuple(records))


# -------------------------------------------------------------------------------------------- transfer


def _trained(held: Trained, run: str) -> Sheet:
    """Mean and standard deviation over seeds of every language and metric, and the mean of languages."""
    one = held.results[0]
    mean = (MEAN,) if len(held.foreign) > 1 else ()
    about = {
        "run": run, "task": held.task, "variant": one.variant, "source": one.languages[0],
        "encoder": held.encoder, "note": "; ".join(held.notes),
    }  # fmt: skip
    records: list[Record] = []
    for language in (*held.languages, *mean):
        items = sum(map(held.items, held.foreign)) if language == MEAN else held.items(language)
        for metric in held.metrics:
            spread = held.spread(language, metric)
            if spread is not None:
                own = {"seeds": spread.seeds, "value": spread.mean, "std": spread.std}
                records.append({**about, "metric": metric, "target": language, "items": items, **own})
    return Sheet(trained_block(held), tuple(records))


def _comparison(held: Comparison, run: str) -> Iterator[Sheet]:
    source = "+".join(held.trained)
    for task, block in zip(held.names, comparison_blocks(held), strict=True):
        records = [{"run": run, "source": source, **_contrast(row, held)} for row in held.of_task(task)]
        yield Sheet(block, tuple(records))


def _contrast(row: Contrasted, held: Comparison) -> Record:
    return {
        "task": PREFIX + (row.kind or row.task), "metric": row.metric, "target": row.language,
        "encoder": row.method, "seeds": row.after.seeds, "items": row.items,
        "value": row.after.mean, "std": row.after.std,
        "baseline": held.baseline, "baseline_seeds": row.before.seeds,
        "baseline_value": row.before.mean, "baseline_std": row.before.std,
        "difference": row.difference, "difference_low": row.low, "difference_high": row.high,
        "p": row.p, "p_corrected": row.holm, "mark": row.mark, "finding": row.finding, "note": row.given,
    }  # fmt: skip
