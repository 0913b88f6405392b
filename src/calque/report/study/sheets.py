"""Every table of a study's page as it is written, with its figures at full precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from calque.report.collect import collect
from calque.report.made import duration
from calque.report.sheets import Record, Sheet, comparison_sheets, panel_sheet, trained_sheet
from calque.report.study.content import Content
from calque.report.study.contrasts import contrast_blocks
from calque.report.study.cost import CostTable, Spent
from calque.report.study.gains import Gain, GainTable, Split
from calque.report.study.reading import ALIGN, MEASURE, TRANSFER, StudyFolder, of_group
from calque.report.study.retrieval import Points, Spot
from calque.report.study.table import BigTable
from calque.report.tasks import Metric
from calque.report.transfer import PREFIX, Trained, spoken_name
from calque.report.transfer_shown import LEGEND
from calque.report.words import signed
from calque.report.written import Block, Figure, Written

#: What a mark at a measure over seeds means.
SURE = "* a difference after Holm’s correction, by the least sure of the seeds’ tests"
CORRECTED = "* a difference after Holm’s correction"
PRINTED = (
    "as printed: other encoders, other sizes of data to align on, often other test data; ± and marks are the "
    "papers’"
)
#: What is written where nothing is known.
NONE = "–"


def study_sheets(content: Content) -> Iterator[tuple[str, Sheet]]:
    """In the order of the page; before each the encoder's name, where there are several."""
    study, many = content.study, len(content.study.groups) > 1
    yield from (("", _big(one, "tasks", study, LEGEND)) for one in content.tasks.cut())
    for held in study.comparisons:
        name = held.group.encoder if many else ""
        yield from ((name, sheet) for sheet in comparison_sheets(held.held, study.name))
    yield from (("", _named(name, trained_sheet(held, study.name))) for name, held in _uncompared(study))
    printed = BigTable(content.tasks.heads, ()).cut(content.published)
    yield from (("", _big(one, "published", study, PRINTED)) for one in printed)
    yield from _beside_each_other(study, many=many)
    yield from ((one.encoder if many else "", _gains(one, study)) for one in content.gains)
    if content.split:
        yield "", _split(content.split, study)
    if content.beside:
        pictures = (content.beside.gains, content.beside.scores)
        names = ("retrieval-gains", "retrieval-scores")
        yield from (("", _points(name, one, study)) for name, one in zip(names, pictures, strict=True) if one)
    if len(study.seeds) > 1:
        yield from (("", _big(one, "measures", study, SURE)) for one in content.measured.cut())
    yield from _measured(study, many=many)
    if content.cost.rows:
        yield "", _cost(content.cost, study)
        yield "", _time(content.cost, study)


# -------------------------------------------------------------------------------------------- scores


def _big(table: BigTable, name: str, study: StudyFolder, legend: str) -> Sheet:
    """Rows of methods under tasks and languages."""
    columns = [(head, column) for head in table.heads for column in head.columns]
    records: list[Record] = [
        {
            "run": block.title if block.published else study.name,
            "task": head.task, "name": head.key, "metric": head.metric, "source": study.source,
            "target": column.language, "over": "+".join(sorted(column.over)),
            "encoder": row.name or row.label, "seeds": cell.spread.seeds or None,
            "value": cell.spread.mean, "std": cell.spread.std, "mark": cell.mark or cell.printed,
            "finding": "sure" if cell.sure else "", "note": row.about,
        }
        for block in table.blocks
        for row in block.rows
        for (head, column), cell in zip(columns, row.cells, strict=True)
        if cell is not None
    ]  # fmt: skip
    block = replace(table.written(), name=name, legend=legend)
    if name == "published":
        block = replace(block, heading=f"{table.names}: published figures")
    return Sheet(block, tuple(records))


def _named(name: str, sheet: Sheet) -> Sheet:
    """A sheet with what the study calls its task or measure."""
    return replace(sheet, records=tuple({**record, "name": name} for record in sheet.records))


def _uncompared(study: StudyFolder) -> Iterator[tuple[str, Trained]]:
    """Runs of tasks that no comparison tells of, after what the study calls the task."""
    told = {
        (row.task, label)
        for one in study.comparisons
        for row in one.held.rows
        for label in (one.held.baseline, row.method)
    }
    yield from ((key[0], held) for key, held in study.trained.items() if key not in told)


def _beside_each_other(study: StudyFolder, *, many: bool) -> Iterator[tuple[str, Sheet]]:
    """Methods against other methods."""
    for one in study.contrasts:
        found = comparison_sheets(one.held, study.name)
        for sheet, block in zip(found, contrast_blocks(one.held), strict=True):
            yield one.group.encoder if many else "", replace(sheet, block=block)


def _measured(study: StudyFolder, *, many: bool) -> Iterator[tuple[str, Sheet]]:
    """Every measure of every cell, by layer."""
    for cell, folder in study.done(MEASURE):
        group = study.group_of(cell, folder)
        run = of_group(collect(folder), group)
        own = cell.axes.get("measure", "")
        name = " ".join(filter(None, (group.encoder if many else "", own)))
        yield from ((name, _named(own or panel.task, panel_sheet(panel))) for panel in run.panels)


# --------------------------------------------------------------------------------------------- gains


def _gains(table: GainTable, study: StudyFolder) -> Sheet:
    """Languages from near to far."""
    head = ("language", "distance", *(f"{one.key}, {name}" for one, name, _ in table.columns))
    body = [
        (row.name, NONE if row.far is None else (Figure(f"{row.far:.2f}"),), *map(_gain, row.cells))
        for row in table.rows
    ]
    if table.correlated:
        body.append(("rank correlation", "", *map(_correlation, table.follows)))
    heading = f"What is gained over {table.baseline} in points, from near to far from {_source(study)}"
    records: tuple[Record, ...] = tuple(
        {
            "run": study.name, "task": source.task, "name": source.key, "metric": source.metric,
            "source": study.source, "target": row.code, "encoder": method, "baseline": table.baseline,
            "difference": cell.value, "distance": row.far, "finding": "sure" if cell.sure else "",
        }
        for row in table.rows
        for (source, _, method), cell in zip(table.columns, row.cells, strict=True)
        if cell is not None
    )  # fmt: skip
    return Sheet(Block("distance", heading, head, tuple(body), legend=CORRECTED), records)


def _gain(cell: Gain | None) -> Written:
    mark = "*" if cell and cell.sure else ""
    return NONE if cell is None else (Figure(signed(cell.value, cell.reading), mark, mark),)


def _correlation(found: float | None) -> Written:
    return NONE if found is None else (Figure(f"{found:.2f}".replace("-", "−")),)


def _source(study: StudyFolder) -> str:
    return spoken_name(study.source)


def _split(held: Split, study: StudyFolder) -> Sheet:
    """Translated tests and others."""
    head = (study.noun, *(f"{kind} ({', '.join(names)})" for kind, names in held.kinds))
    body = tuple(
        (
            row.label,
            *(NONE if one is None else (Figure(one.told), Figure(f"({one.findings})")) for one in row.cells),
        )
        for row in held.rows
    )
    heading = "Mean gain over tasks and languages in points, by how test data came about"
    records = tuple(
        {
            "run": study.name, "source": study.source, "group": "test data", "bin": kind,
            "encoder": row.label, "items": one.count, "difference": one.mean, "finding": one.findings,
        }
        for row in held.rows
        for (kind, _), one in zip(held.kinds, row.cells, strict=True)
        if one is not None
    )  # fmt: skip
    return Sheet(Block("translated", heading, head, body), records)


def _points(name: str, held: Points, study: StudyFolder) -> Sheet:
    """Points of a scatter: a method and a language on a task."""
    gains = name.endswith("gains")

    def written(value: float, scale: float) -> Written:
        told = signed(value, Metric(percent=scale == 100)) if gains else f"{value * scale:.1f}"
        return (Figure(told),)

    body = tuple(
        (
            one.about,
            spoken_name(one.language),
            one.label,
            *map(written, (one.measured, one.reached), one.scales),
        )
        for one in held.spots
    )
    head = ("task", "language", study.noun, *held.names)
    figure = "difference" if gains else "value"
    records = tuple(_point(one, figure, study) for one in held.spots)
    return Sheet(Block(name, held.title, head, body, held.view.told), records)


def _point(one: Spot, figure: str, study: StudyFolder) -> Record:
    return {
        "run": study.name, "task": PREFIX + study.kinds[one.task], "name": one.task, "source": study.source,
        "target": one.language, "encoder": one.label, figure: one.reached, "beside": one.measured,
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------- cost


def _cost(held: CostTable, study: StudyFolder) -> Sheet:
    """Time and memory of every method, the mean over its seeds."""
    tasks = [name or TRANSFER for name in held.tasks]
    head = (study.noun, *([ALIGN] if held.aligned else []), *tasks)
    called = {name: PREFIX + study.kinds.get(name, name) for name in held.tasks if name}
    body = tuple(
        (row.label, *map(_spent, ([row.aligned] if held.aligned else []) + list(row.tasks)))
        for row in held.rows
    )
    records = tuple(
        {
            "run": study.name, "task": called.get(work, work), "name": work if work in called else "",
            "metric": metric, "encoder": row.label, "items": one.cells, "value": value,
        }
        for row in held.rows
        for work, one in zip([ALIGN, *tasks], [row.aligned, *row.tasks], strict=True)
        if one is not None
        for metric, value in (("seconds", one.seconds), ("megabytes", one.memory))
        if value is not None
    )  # fmt: skip
    return Sheet(Block("cost", "Time and memory of one seed: the mean over seeds", head, body), records)


def _spent(one: Spent | None) -> Written:
    return NONE if one is None else (Figure(one.time), Figure(one.room))


def _time(held: CostTable, study: StudyFolder) -> Sheet:
    """All time by what was done."""
    body: list[tuple[Written, ...]] = [
        (verb, (Figure(str(many)),), (Figure(duration(seconds)),)) for verb, many, seconds in held.verbs
    ]
    whole = sum(seconds for *_, seconds in held.verbs)
    body.append(("all", (Figure(str(sum(many for _, many, _ in held.verbs))),), (Figure(duration(whole)),)))
    records = tuple(
        {"run": study.name, "task": verb, "metric": "seconds", "items": many, "value": seconds}
        for verb, many, seconds in held.verbs
    )
    return Sheet(Block("time", "All time, by what was done", ("verb", "cells", "time"), tuple(body)), records)
