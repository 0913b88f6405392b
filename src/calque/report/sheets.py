"""Tables as they are written, with every figure in them at full precision: those of a single run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from calque.report.collect import Panel, Run
from calque.report.tables import links_block, panel_block, rows
from calque.report.transfer import MEAN, PREFIX, Comparison, Contrasted, Trained
from calque.report.transfer_shown import comparison_blocks, trained_block
from calque.report.written import Block
from calque.types import Result

#: A figure, by the columns that say what it is.
Record: TypeAlias = dict[str, object]
#: The columns of CSV. `task` and `metric` are as in results, `name` is what a study calls its task or
#: measure. `encoder` is the method where methods are compared; a difference is to `baseline`. Of two figures
#: that belong together `beside` is the other one; `distance` is of the target from the source, and a mean is
#: `over` these languages.
COLUMNS = (
    "table", "run", "task", "name", "metric", "variant", "source", "target", "direction", "layer", "group",
    "bin", "encoder", "seed", "seeds", "items", "value", "std", "low", "high",
    "baseline", "baseline_seeds", "baseline_value", "baseline_std",
    "difference", "difference_low", "difference_high", "p", "p_corrected", "mark", "finding", "distance",
    "beside", "over", "note",
)  # fmt: skip


@dataclass(frozen=True)
class Sheet:
    """A table as it is written, and every figure in it at full precision."""

    block: Block
    records: tuple[Record, ...]

    @property
    def name(self) -> str:
        return self.block.name


def run_sheets(run: Run) -> Iterator[tuple[str, Sheet]]:
    """Every table of a run or of a folder of runs; before each the run's name, where there are several."""
    for part in run.runs:
        name = part.name if run.parts else ""
        for panel in part.panels:
            yield name, panel_sheet(panel)
        if part.comparison:
            yield from ((name, sheet) for sheet in comparison_sheets(part.comparison, part.name))
        yield from ((name, trained_sheet(one, part.name)) for one in part.trained)
        if part.link_scores:
            yield name, links_sheet(part)


# -------------------------------------------------------------------------------------------- measures


def panel_sheet(panel: Panel) -> Sheet:
    """A row a layer, a column an encoder; as figures breakdowns and single directions too."""
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


def links_sheet(run: Run) -> Sheet:
    """How links stand to gold ones."""
    records = [{"run": run.name, **_about(r), "low": r.low, "high": r.high} for r in run.link_scores]
    return Sheet(links_block(run), tuple(records))


# -------------------------------------------------------------------------------------------- transfer


def trained_sheet(held: Trained, run: str) -> Sheet:
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


def comparison_sheets(held: Comparison, run: str) -> Iterator[Sheet]:
    """A table a task that methods were compared on."""
    for task, block in zip(held.names, comparison_blocks(held), strict=True):
        about = {"run": run, "source": "+".join(held.learned_in(task))}
        records = [{**about, **contrast_record(row, held)} for row in held.of_task(task)]
        yield Sheet(block, tuple(records))


def contrast_record(row: Contrasted, held: Comparison) -> Record:
    """A method in a language, its baseline, and the difference."""
    return {
        "task": PREFIX + (row.kind or row.task), "name": row.task if row.kind else "", "metric": row.metric,
        "target": row.language,
        "over": "+".join(row.languages) if row.language == MEAN else "",
        "encoder": row.method, "seeds": row.after.seeds, "items": row.items,
        "value": row.after.mean, "std": row.after.std,
        "baseline": held.baseline, "baseline_seeds": row.before.seeds,
        "baseline_value": row.before.mean, "baseline_std": row.before.std,
        "difference": row.difference, "difference_low": row.low, "difference_high": row.high,
        "p": row.p, "p_corrected": row.holm, "mark": row.mark, "finding": row.finding, "note": row.given,
    }  # fmt: skip
