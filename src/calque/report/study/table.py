"""The big table of a study: methods down, tasks and their languages across, published figures below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from calque.report.published import PAPERS, Published, matching
from calque.report.study.reading import Group, StudyFolder
from calque.report.tasks import Metric, Task, metric_of
from calque.report.transfer import MEAN, PREFIX, Contrasted, named_task, shown_spread, spoken_name
from calque.report.transfer_shown import MARKS
from calque.report.words import capital, listed
from calque.report.written import Block, Figure, Written
from calque.stats.seeds import Spread

T = TypeVar("T")
#: What a figure must be read with that another seed would change.
ONE_SEED = "one seed of the alignment"
#: Published rows up to which they stand in the table itself, columns that paper has room for, and rows above
#: which a table scrolls by itself.
MOST_PUBLISHED, MOST_COLUMNS, MOST_ROWS = 12, 21, 40


@dataclass(frozen=True)
class Column:
    """A language, or the mean of several, which it is `over`; and a remark on it."""

    language: str
    about: str = ""
    over: frozenset[str] = frozenset()

    @property
    def mean(self) -> bool:
        return self.language == MEAN

    @property
    def name(self) -> str:
        return spoken_name(self.language)


@dataclass(frozen=True)
class Head:
    """A task or a measure over the columns of its languages.

    `key` is the study's own name for it, `task` and `metric` are as in results.
    """

    key: str
    title: str
    figure: str
    reading: Metric
    columns: tuple[Column, ...]
    about: str = ""
    task: str = ""
    metric: str = ""


@dataclass(frozen=True)
class SeedScore:
    """A score over seeds, and how it stands to the baseline's.

    `mark` is better or worse by more than a standard deviation, `sure` a difference that stays after
    correction, up or down; `printed` is a paper's own mark.
    """

    spread: Spread
    mark: str = ""
    sure: bool = False
    up: bool = False
    printed: str = ""


@dataclass(frozen=True)
class StudyRow:
    """An encoder or a method: a figure a column, None where there is none. `place` gives its colour.

    `name` is the whole label, where the encoder's name stands above.
    """

    label: str
    place: int | None
    cells: tuple[SeedScore | None, ...]
    about: str = ""
    name: str = ""


@dataclass(frozen=True)
class RowBlock:
    """Rows that belong together: one encoder with its methods, or one table of a paper."""

    title: str
    rows: tuple[StudyRow, ...]
    published: bool = False
    about: str = ""


@dataclass(frozen=True)
class BigTable:
    """Blocks of rows under heads of columns."""

    heads: tuple[Head, ...]
    blocks: tuple[RowBlock, ...]

    @property
    def columns(self) -> int:
        return sum(len(head.columns) for head in self.heads)

    @property
    def tall(self) -> bool:
        """Whether it is so long that its head must stay in sight."""
        return sum(len(block.rows) for block in self.blocks) > MOST_ROWS

    @property
    def names(self) -> str:
        return listed([head.title for head in self.heads])

    def cut(self, more: Sequence[RowBlock] = ()) -> tuple[BigTable, ...]:
        """As tables that are narrow enough for paper, each with these further blocks; none without rows."""
        places: list[tuple[Head, list[int]]] = []
        at = 0
        for head in self.heads:
            here = list(range(at, at + len(head.columns)))
            at += len(head.columns)
            for start in range(0, len(here), MOST_COLUMNS):
                own = here[start : start + MOST_COLUMNS]
                columns = tuple(head.columns[place - here[0]] for place in own)
                places.append((replace(head, columns=columns), own))
        parts = evenly(places, [len(own) for _, own in places], MOST_COLUMNS)
        made = (
            BigTable(
                tuple(head for head, _ in part),
                _some((*self.blocks, *more), [place for _, own in part for place in own]),
            )
            for part in parts
        )
        return tuple(one for one in made if one.blocks)

    def written(self) -> Block:
        """For a text file: a row a method, after its block where there are several; a column a language."""
        columns = [
            (head.key, f"{one.name} {one.about}" if one.mean else one.name)
            for head in self.heads
            for one in head.columns
        ]
        many = len(self.blocks) > 1
        body = tuple(
            (*([block.title] if many else []), row.label, *map(_written, row.cells))
            for block in self.blocks
            for row in block.rows
        )
        heading = f"{self.names}: mean ± standard deviation over seeds"
        head = (*([""] if many else []), "", *(f"{key}, {name}" for key, name in columns))
        notes = (f"{row.name or row.label}: {row.about}" for block in self.blocks for row in block.rows)
        told = tuple(note for note in notes if note.endswith(ONE_SEED))
        return Block("study", heading, head, body, told)


def evenly(held: Sequence[T], sizes: Sequence[int], most: int) -> list[list[T]]:
    """Things in their order, in as few parts as their sizes ask for, none much larger than another.

    >>> evenly("abcde", [3, 3, 3, 3, 3], 12)
    [['a', 'b', 'c'], ['d', 'e']]
    """
    each = -(-sum(sizes) // max(-(-sum(sizes) // most), 1))
    parts: list[list[T]] = []
    wide = each
    for one, size in zip(held, sizes, strict=True):
        if wide >= each or wide + size > most:
            parts.append([])
            wide = 0
        parts[-1].append(one)
        wide += size
    return parts


def _some(blocks: Sequence[RowBlock], places: Sequence[int]) -> tuple[RowBlock, ...]:
    """Blocks with only these of their columns; rows that have nothing there are left out."""
    found = []
    for block in blocks:
        cut = (replace(row, cells=tuple(row.cells[place] for place in places)) for row in block.rows)
        rows = tuple(row for row in cut if any(row.cells))
        found += [replace(block, rows=rows)] if rows else []
    return tuple(found)


def _written(cell: SeedScore | None) -> Written:
    if cell is None:
        return "–"
    mark = MARKS.get(cell.mark, "") + ("*" if cell.sure else "") + cell.printed
    return (Figure(shown_spread(cell.spread).replace("%", ""), mark, mark),)


# ----------------------------------------------------------------------------------------------- tasks


class Scores:
    """Every task's figures by label and language, as the comparison has them or the runs themselves."""

    def __init__(self, study: StudyFolder) -> None:
        self.study = study
        self.contrasts: dict[tuple[str, str, str], Contrasted] = {
            (row.task, row.method, row.language): row
            for one in study.comparisons
            for row in (*one.held.rows, *one.held.tasks)
        }
        self._before: dict[tuple[str, str, str, frozenset[str]], Spread] = {}
        for one in study.comparisons:
            for row in (*one.held.rows, *one.held.tasks):
                key = (row.task, one.held.baseline, row.language, self.over(row))
                # Where runs are missing, the baseline may have fewer seeds beside one method than another.
                known = self._before.setdefault(key, row.before)
                self._before[key] = max(known, row.before, key=lambda spread: spread.seeds)

    @cached_property
    def metrics(self) -> Mapping[str, str]:
        """The figure that each task is judged by."""
        first = {name: one.metrics[0] for (name, _), one in self.study.trained.items()}
        return first | {task: row.metric for (task, _, _), row in self.contrasts.items()}

    def about(self, name: str) -> Task:
        return named_task(name, self.study.kinds.get(name, name))

    def learned_in(self, name: str) -> frozenset[str]:
        """The languages of a task's training data."""
        runs = [one.trained for (task, _), one in self.study.trained.items() if task == name]
        told = runs or [one.held.learned_in(name) for one in self.study.comparisons]
        return frozenset(code for held in told for code in held)

    def foreign(self, name: str) -> list[str]:
        """The languages that a task was not learned in; all where it was learned in all."""
        learned, codes = self.learned_in(name), self.languages(name)
        return [code for code in codes if code not in learned] or codes

    def over(self, row: Contrasted) -> frozenset[str]:
        """The languages that a mean is over, all foreign ones where it does not tell; none of a language."""
        return frozenset() if row.language != MEAN else frozenset(row.languages or self.foreign(row.task))

    def means(self, name: str) -> list[frozenset[str]]:
        """What the means of a task are over, the most languages first: the same in all that was compared, or
        not, where runs are missing or an encoder is aligned to few languages."""
        rows = (row for (task, _, code), row in self.contrasts.items() if (task, code) == (name, MEAN))
        found = dict.fromkeys(self.over(row) for row in rows) or [frozenset(self.foreign(name))]
        return sorted((one for one in found if len(one) > 1), key=lambda one: (-len(one), sorted(one)))

    def languages(self, name: str) -> list[str]:
        """Every language that a task was tested in, the nearest to the source first."""
        runs = [one for (task, _), one in self.study.trained.items() if task == name]
        told = [code for task, _, code in self.contrasts if task == name and code != MEAN]
        return self.study.by_distance([*told, *(code for run in runs for code in run.languages)])

    def figure(
        self, name: str, label: str, language: str, over: frozenset[str] = frozenset()
    ) -> SeedScore | None:
        """The score of a label on a task in a language, or its mean, where that is over these languages."""
        row = self.contrasts.get((name, label, language))
        if row is not None and self.over(row) == over:
            return SeedScore(row.after, row.mark, row.sure, row.difference > 0)
        told = self._before.get((name, label, language, over))
        spread = told or self._of_run(name, label, language, over)
        return None if spread is None else SeedScore(spread)

    def _of_run(self, name: str, label: str, language: str, over: frozenset[str]) -> Spread | None:
        """From the runs themselves."""
        run = self.study.trained.get((name, label))
        if run is None or (language == MEAN and set(run.foreign) != over):
            return None
        return run.spread(language, self.metrics[name])


def task_table(scores: Scores) -> BigTable:
    """Every task that was learned, with the study's own figures."""
    heads = tuple(_head(scores, name) for name in scores.study.kinds)
    blocks = tuple(_block(scores, group, heads) for group in scores.study.groups)
    return BigTable(heads, tuple(block for block in blocks if block.rows))


def _head(scores: Scores, name: str) -> Head:
    about, reading = scores.about(name), metric_of(scores.metrics[name])
    learned, codes = scores.learned_in(name), scores.languages(name)
    columns = [Column(code, "trained on" if code in learned else "") for code in codes]
    columns += [Column(MEAN, f"of {len(over)}", over) for over in scores.means(name)]
    figure = reading.name or scores.metrics[name]
    title = about.title or capital(about.name)
    task, metric = PREFIX + scores.study.kinds[name], scores.metrics[name]
    return Head(name, title, figure, reading, tuple(columns), task=task, metric=metric)


def _block(scores: Scores, group: Group, heads: Sequence[Head]) -> RowBlock:
    rows = []
    for place, label in enumerate(group.labels):
        cells = tuple(
            scores.figure(head.key, label, column.language, column.over)
            for head in heads
            for column in head.columns
        )
        if any(cells):
            rows.append(StudyRow(short(label, group), place, cells, "" if place else "baseline", label))
    return RowBlock(group.encoder, tuple(rows))


def short(label: str, group: Group) -> str:
    """A label without the encoder's name, where that stands above it."""
    return label.removeprefix(f"{group.encoder} ")


# ------------------------------------------------------------------------------------------- published

#: Where a printed cell stands here: a task and a language.
Spot = tuple[str, str]


def published_blocks(scores: Scores, heads: Sequence[Head]) -> tuple[RowBlock, ...]:
    """What papers printed of the same tasks and languages, a block a table; of one paper where one is set."""
    tables: dict[tuple[str, str, str], list[tuple[Spot, Published]]] = {}
    for spot, cell in _matches(scores, heads):
        tables.setdefault((cell.paper, cell.table, cell.group), []).append((spot, cell))
    foreign = {(head.key, one.language) for head in heads for one in head.columns if not one.about}
    # Figures in the language of the labels alone say nothing of transfer.
    told = [held for held in tables.values() if any(spot in foreign for spot, _ in held)]
    return tuple(_printed(held, heads) for held in told)


def _matches(scores: Scores, heads: Sequence[Head]) -> Iterator[tuple[Spot, Published]]:
    paper = scores.study.paper if scores.study.paper in PAPERS else None
    for head in heads:
        kind, metric = scores.study.kinds.get(head.key, head.key), scores.metrics[head.key]
        for column in head.columns:
            for cell in matching(paper, task=kind, language=column.language, metric=metric):
                yield (head.key, column.language), cell


def _printed(held: Sequence[tuple[Spot, Published]], heads: Sequence[Head]) -> RowBlock:
    """One table of a paper. Where it has a task on several data, these are rows of their own."""
    data: dict[str, list[str]] = {}
    for (task, _), cell in held:
        known = data.setdefault(task, [])
        known += [cell.task] if cell.task not in known else []
    rows: dict[tuple[str, str, int], dict[Spot, Published]] = {}
    for spot, cell in held:
        rows.setdefault((cell.model, cell.method, data[spot[0]].index(cell.task)), {})[spot] = cell
    first, several = held[0][1], any(len(names) > 1 for names in data.values())
    title = f"{first.source}, {first.group.replace('-', ' ')}"
    return RowBlock(
        title, tuple(_printed_row(own, heads, several) for own in rows.values()), True, _tested_on(held)
    )


def _printed_row(cells: Mapping[Spot, Published], heads: Sequence[Head], several: bool) -> StudyRow:
    first = next(iter(cells.values()))
    held = [cells.get((head.key, column.language)) for head in heads for column in head.columns]
    found = [
        None if one is None else SeedScore(Spread(one.score, one.deviation, 0), printed=one.mark)
        for one in held
    ]
    name = first.encoder if first.baseline else f"{first.encoder}, {first.method.replace('-', ' ')}"
    data = _shared(list(dict.fromkeys(one.dataset for one in cells.values())))
    return StudyRow(name, None, tuple(found), data if several else "")


def _tested_on(held: Sequence[tuple[Spot, Published]]) -> str:
    """The data behind a table; of several parts of one collection what their names share."""
    by_task: dict[str, list[str]] = {}
    for _, cell in held:
        by_task.setdefault(cell.task, []).append(cell.dataset)
    named = [_shared(list(dict.fromkeys(names))) for names in by_task.values()]
    return listed(list(dict.fromkeys(named)))


def _shared(names: Sequence[str]) -> str:
    """The words that names begin with, or all of them where they share none.

    >>> _shared(["Universal Dependencies 2.6 GSD", "Universal Dependencies 2.6 PADT"])
    'Universal Dependencies 2.6'
    """
    rows = [name.split(" ") for name in names]
    alike = [words[0] for words in zip(*rows, strict=False) if len(set(words)) == 1]
    first = rows[0][: len(alike)]
    return " ".join(first) if first and first == alike else ", ".join(names)
