"""Methods beside each other: what one has over another, a section for each that others are held against."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calque.report.study.reading import GroupComparison, StudyFolder
from calque.report.study.told import Finding, better, contrast_findings, place_in
from calque.report.transfer import MEAN, Comparison, Contrasted
from calque.report.transfer_shown import averaged, comparison_blocks, finding
from calque.report.words import capital
from calque.report.written import Block


@dataclass(frozen=True)
class ContrastRow:
    """A language, or the mean of several: the two scores, their difference, and what was found."""

    row: Contrasted
    name: str
    about: str
    found: str

    @property
    def mean(self) -> bool:
        return self.row.language == MEAN


@dataclass(frozen=True)
class ContrastBlock:
    """A method on a task: its languages, and their mean last."""

    title: str
    figure: str
    method: str
    place: int
    rows: tuple[ContrastRow, ...]


@dataclass(frozen=True)
class ContrastView:
    """One method, and all that others have over it."""

    encoder: str
    baseline: str
    place: int
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]
    blocks: tuple[ContrastBlock, ...]

    @property
    def many(self) -> bool:
        """Whether the table is so long that it is folded."""
        return sum(len(block.rows) for block in self.blocks) > MOST_ROWS


#: Rows above which a table is folded.
MOST_ROWS = 24


def contrast_views(study: StudyFolder) -> Iterator[ContrastView]:
    """All contrasts, those with one method together."""
    keyed: dict[str, list[GroupComparison]] = {}
    for one in study.contrasts:
        keyed.setdefault(one.held.baseline, []).append(one)
    for baseline, held in keyed.items():
        yield ContrastView(
            held[0].group.encoder,
            baseline,
            place_in(study, baseline),
            tuple(dict.fromkeys(note for one in held for note in one.held.notes)),
            tuple(found for one in held for found in contrast_findings(one, study)),
            tuple(block for one in held for block in _blocks(one.held, study)),
        )


def _blocks(held: Comparison, study: StudyFolder) -> Iterator[ContrastBlock]:
    for task in held.names:
        rows = held.of_task(task)
        for method in dict.fromkeys(row.method for row in rows):
            own = [row for row in rows if row.method == method]
            about, reading = own[0].about, own[0].reading
            yield ContrastBlock(
                about.title or capital(about.name),
                reading.name or own[0].metric,
                method,
                place_in(study, method),
                tuple(_row(row, held) for row in own),
            )


def _row(row: Contrasted, held: Comparison) -> ContrastRow:
    learned = "trained on" if row.language in held.learned_in(row.task) else ""
    about = averaged(held, [row]) if row.language == MEAN else learned
    return ContrastRow(row, row.name, about, better(finding(row)))


def contrast_blocks(held: Comparison) -> Iterator[Block]:
    """A table a task, as comparisons have it, with what was found in words."""
    for task, block in zip(held.names, comparison_blocks(held), strict=True):
        rows = held.of_task(task)
        body = tuple((*cells, better(finding(row))) for cells, row in zip(block.body, rows, strict=True))
        yield Block(
            f"against-{held.baseline}-{task}",
            f"{block.heading}, against {held.baseline}",
            (*block.head, "found"),
            body,
            block.notes,
            block.legend,
        )
