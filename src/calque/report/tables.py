"""Results as tables: for the terminal, for a text file, and as plain rows for the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from calque.report.collect import Panel, Run, spread
from calque.report.transfer_shown import comparison_blocks, trained_block
from calque.report.verdict import (
    ALPHA,
    Compared,
    Contrast,
    Measured,
    measured,
    verdict_line,
)
from calque.report.words import amount, p_value, signed
from calque.report.written import Block, Figure, Written, markdown_lines
from calque.stats.significance import holm
from calque.types import Result

__all__ = [
    "Cell",
    "Row",
    "blocks",
    "link_rows",
    "links_block",
    "links_table",
    "markdown",
    "panel_block",
    "rows",
    "summary_table",
    "transfer_blocks",
    "verdict_line",
]

MOST_ROWS = 14
_FEW = 6
_NOTE = f"± half of the 95% interval; * p < {ALPHA} after Holm"


@dataclass(frozen=True)
class Cell:
    """An encoder's figure at one layer, and its difference to the baseline with its corrected p-value."""

    score: Result
    change: Result | None = None
    p: float | None = None

    @property
    def sure(self) -> bool:
        return self.p is not None and self.p < ALPHA

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        low, high = self.score.low, self.score.high
        return None if low is None or high is None else (high - low) / 2


@dataclass(frozen=True)
class Row:
    """One layer: a cell an encoder, None where it has no such layer."""

    layer: int | None
    cells: tuple[Cell | None, ...]
    overall: bool = False

    @property
    def label(self) -> str:
        return str(self.layer) if self.layer is not None else "all" if self.overall else "–"


def rows(panel: Panel) -> list[Row]:
    """Every layer of a panel; p-values are Holm-corrected over all of its layers and encoders."""
    tested = [r for r in panel.changes() if r.p is not None]
    raw = [r.p for r in tested if r.p is not None]
    fixed = {(r.encoder, r.layer): p for r, p in zip(tested, holm(raw), strict=True)}
    found = []
    for layer in (*panel.layers, *([None] if panel.overall else [])):
        cells = []
        for name in panel.encoders:
            score = panel.score(name, layer)
            p = fixed.get((name, layer))
            cells.append(None if score is None else Cell(score, panel.change(name, layer), p))
        found.append(Row(layer, tuple(cells), panel.overall and layer is None))
    return found


def _folded(panel: Panel, most: int) -> list[Row]:
    """All rows where they are few; otherwise every encoder's best, the last, and an even few between."""
    every = rows(panel)
    if len(every) <= most:
        return every
    few = spread(panel.layers, _FEW) if most > _FEW else panel.layers[-1:]
    kept = {*few, *(panel.best_layer(name) for name in panel.encoders)}
    return [row for row in every if row.layer in kept or row.overall]


def summary_table(run: Run) -> Table:
    """A row a layer; a row a language where there are several; of several measures, best and last layers."""
    found = measured(run)
    if len(found) == 1 and found[0].leading.many:
        return _languages_table(found[0].leading)
    names, alone = _encoders(run.panels), len(run.panels) == 1
    title = _heading(run.panels[0]) if alone else run.name
    table = _table(title, _NOTE)
    if not alone:
        table.add_column("measure", overflow="fold")
    table.add_column("layer", justify="right", no_wrap=True)
    for name in names:
        table.add_column(Text(name), justify="right", overflow="fold")
    for panel in run.panels:
        for place, row in enumerate(_folded(panel, MOST_ROWS if alone else 1)):
            cells = dict(zip(panel.encoders, row.cells, strict=True))
            label = [] if alone else [Text("" if place else _label(panel, run))]
            table.add_row(*label, row.label, *(_terminal(cells.get(name), panel) for name in names))
        table.add_section()
    return table


def _table(title: str, note: str) -> Table:
    wide = min(max(len(title), len(note)), 76)
    return Table(title=Text(title), caption=Text(note), min_width=wide, show_edge=False, pad_edge=False)


def _languages_table(held: Compared) -> Table:
    """One row a language and one for their mean, one column an encoder, at the verdict's layer."""
    panel, encoders = held.whole, held.whole.encoders
    where = (
        "" if held.layer is None else f" at layer {held.layer}, where {encoders[0]} is {panel.reading.peak}"
    )
    unit = " %" if panel.reading.percent else ""
    table = _table(f"{panel.activity}: {panel.figure}{unit}{where}", _NOTE)
    table.add_column("language", overflow="fold")
    for name in encoders:
        table.add_column(Text(name), justify="right", overflow="fold")
    for row in language_rows(held):
        if row.mean:
            table.add_section()
        table.add_row(Text(row.label), *(_terminal(cell, panel) for cell in row.cells))
    return table


@dataclass(frozen=True)
class LanguageRow:
    """One language, or the mean of all: a cell an encoder at the verdict's layer."""

    label: str
    cells: tuple[Cell | None, ...]
    contrasts: tuple[Contrast | None, ...]
    mean: bool = False


def language_rows(held: Compared) -> list[LanguageRow]:
    """Every language at the verdict's layer, then the mean where there are several."""
    made = []
    for name, panel in zip(held.names, held.panels, strict=True):
        contrasts = tuple(held.contrasts.get((encoder, name)) for encoder in held.whole.encoders)
        made.append(LanguageRow(name, _cells(panel, held, contrasts), contrasts))
    if held.many:
        judged = {verdict.encoder: verdict.best for verdict in held.verdicts}
        contrasts = tuple(judged.get(encoder) for encoder in held.whole.encoders)
        made.append(LanguageRow("mean", _cells(held.whole, held, contrasts), contrasts, mean=True))
    return made


def _cells(panel: Panel, held: Compared, contrasts: Sequence[Contrast | None]) -> tuple[Cell | None, ...]:
    cells = []
    for encoder, contrast in zip(held.whole.encoders, contrasts, strict=True):
        score = panel.score(encoder, held.layer)
        told = (None, None) if contrast is None else (contrast.change, contrast.p)
        cells.append(None if score is None else Cell(score, *told))
    return tuple(cells)


def _label(panel: Panel, run: Run) -> str:
    return f"{panel.run}: {_heading(panel)}" if run.parts else _heading(panel)


def _heading(panel: Panel) -> str:
    return f"{panel.title}: {panel.figure}{' %' if panel.reading.percent else ''}"


def _encoders(panels: Sequence[Panel]) -> list[str]:
    """Every encoder of every panel, in order of first mention."""
    return list(dict.fromkeys(name for panel in panels for name in panel.encoders))


def _terminal(cell: Cell | None, panel: Panel) -> Text:
    if cell is None:
        return Text("–", style="dim")
    text = Text(_figure(cell, panel))
    if cell.change is not None:
        better = (cell.change.value > 0) != panel.reading.lower
        style = ("green" if better else "red") if cell.sure else "dim"
        text.append(" " + _change(cell, panel), style=style)
    return text


def _figure(cell: Cell, panel: Panel) -> str:
    reading, half = panel.reading, cell.half
    value = amount(cell.score.value, reading).removesuffix("%")
    return value if half is None else f"{value} ±{amount(half, reading).removesuffix('%')}"


def _change(cell: Cell, panel: Panel) -> str:
    if cell.change is None:
        return ""
    return signed(cell.change.value, panel.reading) + ("*" if cell.sure else "")


# --------------------------------------------------------------------------------------------- links


@dataclass(frozen=True)
class LinkRow:
    """Scores of one linker by metric."""

    linker: str
    scores: dict[str, Result]


def link_rows(run: Run) -> tuple[list[str], list[LinkRow]]:
    """The metrics there are, and one row a linker."""
    scores = [r for r in run.link_scores if r.group is None]
    metrics = list(dict.fromkeys(r.metric for r in scores))
    held: dict[str, dict[str, Result]] = {}
    for r in scores:
        held.setdefault(" ".join(filter(None, (r.encoder, r.variant, "–".join(r.languages)))), {})[
            r.metric
        ] = r
    return metrics, [LinkRow(name, held[name]) for name in sorted(held)]


def links_table(run: Run) -> Table:
    """Scores of links against a gold standard, one row a linker."""
    metrics, linkers = link_rows(run)
    table = Table(title="links against the gold standard, %", show_edge=False, pad_edge=False)
    table.add_column("links", overflow="fold")
    for metric in metrics:
        table.add_column(Text(metric.upper() if len(metric) < 4 else metric), justify="right")
    for row in linkers:
        table.add_row(Text(row.linker), *(_share(row.scores.get(metric)) for metric in metrics))
    return table


def _share(score: Result | None) -> str:
    return "–" if score is None else f"{score.value * 100:.1f}"


# ------------------------------------------------------------------------------------------ markdown


def markdown(run: Run, found: Sequence[Measured] | None = None) -> str:
    """Everything as Markdown tables with the verdict above, for a paper, an issue or a log."""
    told = markdown_lines(verdict_line(run, found))
    return "\n\n".join([told, *(block.markdown for block in blocks(run))]) + "\n"


def blocks(run: Run) -> Iterator[Block]:
    """Every table of a run or of a folder of runs: of measures, of transfer, of links."""
    yield from map(panel_block, run.panels)
    for part in run.runs:
        yield from transfer_blocks(part)
    if run.link_scores:
        yield links_block(run)


def transfer_blocks(run: Run) -> Iterator[Block]:
    """What was compared; where nothing was, what was learned."""
    yield from comparison_blocks(run.comparison) if run.comparison else map(trained_block, run.trained)


def panel_block(panel: Panel) -> Block:
    """A row a layer, a column an encoder."""
    seed = f"seed{panel.seed}" if panel.seed else ""
    name = "-".join(filter(None, (panel.task, panel.metric, panel.variant, *panel.languages, seed)))
    every = rows(panel)
    body = tuple((row.label, *(_plain(cell, panel) for cell in row.cells)) for row in every)
    legend = _legend([cell for row in every for cell in row.cells])
    return Block(name, _heading(panel), ("layer", *panel.encoders), body, legend=legend)


def _legend(cells: Sequence[Cell | None]) -> str:
    """What ± and p are, where they are there."""
    found = [cell for cell in cells if cell is not None]
    told = ["± half of the 95% interval"] if any(cell.half is not None for cell in found) else []
    tested = any(cell.p is not None for cell in found)
    return "; ".join(
        told + ([f"p after Holm’s correction, or * where it is below {ALPHA}"] if tested else [])
    )


def _plain(cell: Cell | None, panel: Panel) -> Written:
    if cell is None:
        return "–"
    p = f"({p_value(cell.p)})" if cell.p is not None else ""
    change = _change(cell, panel)
    figure = Figure(_figure(cell, panel), plain="" if change else p)
    return (figure, Figure(change.removesuffix("*"), "*" if cell.sure else "", p)) if change else (figure,)


def links_block(run: Run) -> Block:
    """A row a linker, a column a figure."""
    metrics, linkers = link_rows(run)
    body = tuple((row.linker, *(_linked(row.scores.get(m)) for m in metrics)) for row in linkers)
    return Block("links", "links against the gold standard, %", ("links", *metrics), body)


def _linked(score: Result | None) -> Written:
    return "–" if score is None else (Figure(_share(score)),)
