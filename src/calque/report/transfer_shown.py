"""What the page shows of transfer: a comparison with its verdict, or a single run with nothing beside it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from calque.report.figures import RowBar, row_bars
from calque.report.svg import Mark
from calque.report.tasks import Metric, Task, metric_of
from calque.report.transfer import (
    FINDINGS,
    HELPED,
    HURT,
    MEAN,
    NONE,
    PREFIX,
    UNKNOWN,
    Comparison,
    Contrasted,
    Portion,
    Setup,
    Trained,
    Training,
    shown_spread,
    spoken_name,
)
from calque.report.verdict import ALPHA
from calque.report.words import MOST_NAMES, capital, listed, p_value, points, quoted_name, signed, some
from calque.report.written import Block, Figure, Written
from calque.stats.seeds import Spread, spread_of

#: Findings by the classes of the page's style, which have a sign each.
KINDS = dict(zip(FINDINGS, ("helped", "hurt", "no-evidence", "untested"), strict=True))
#: Methods above which a table has one cell a method, and a headline no task by name.
MOST_METHODS, MOST_CLAUSES = 2, 3
#: Rows above which a table scrolls by itself; letters above which a headline is set smaller.
MOST_ROWS, MOST_LETTERS = 20, 100
#: Tests by name: what they take for luck.
TESTS = {
    "seeds-and-items": "Seeds and test items are both taken for samples: Student’s test with the variance of "
    "both.",
    "seed-t": "Welch’s test over the seeds’ scores. It is conditional on these test items, and says nothing "
    "of others.",
    "item-t": "A paired t-test over test items, whose scores are averaged over seeds. It is conditional on "
    "these seeds, and says nothing of others.",
    "randomisation": "A randomisation test that exchanges the predictions of the two by chance. It is "
    "conditional on these seeds, and says nothing of others.",
}
PAIRED = "Runs of one seed are taken to share their luck, and are compared one by one."
REGIMES = {
    "finetune": "fine-tuning: the encoder is trained together with the head",
    "features": "features: the encoder stays as it is, and a head is trained over its vectors",
}


# -------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class SeedRow:
    """A language or a task: the baseline, and a cell a method, None where it was not run."""

    label: str
    about: str
    reading: Metric
    before: Spread
    cells: tuple[Contrasted | None, ...]
    mean: bool


@dataclass(frozen=True)
class SeedTable:
    """Rows under the baseline and methods, each with its place among all, and what they must be read with."""

    first: str
    figure: str
    baseline: str
    methods: tuple[tuple[int, str], ...]
    rows: tuple[SeedRow, ...]
    noted: frozenset[str]
    notes: tuple[str, ...]
    given: tuple[str, ...]

    @property
    def tall(self) -> bool:
        """Whether it is so long that its head must stay in sight."""
        return len(self.rows) > MOST_ROWS

    @property
    def wide(self) -> bool:
        """Whether every method has columns of its own for difference and tests."""
        return len(self.methods) <= MOST_METHODS

    @property
    def name(self) -> str:
        """What tells this table from others."""
        return f"{listed([name for _, name in self.methods])} beside {self.baseline}, {self.figure}"


def _table(
    held: Comparison, rows: Sequence[Contrasted], methods: Sequence[str], *, by_task: bool = False
) -> SeedTable:
    """A row a language, with the mean below, or a row a task."""
    keyed: dict[tuple[str, str], dict[str, Contrasted]] = {}
    for row in rows:
        keyed.setdefault((row.task, row.language), {})[row.method] = row
    made = [
        _row(held, found, methods, by_task) for found in keyed.values() if any(m in found for m in methods)
    ]
    labels = (held.baseline, *methods)
    notes = held.noted(labels)
    names = list(dict.fromkeys(row.reading.name or row.metric for row in rows))
    return SeedTable(
        "task" if by_task else "language",
        names[0] if len(names) == 1 else "score",
        held.baseline,
        tuple((held.methods.index(name) + 1, name) for name in methods),
        tuple(made),
        frozenset(owner for note in notes if (owner := held.owner(note)) in labels),
        notes,
        tuple(dict.fromkeys(row.given for row in rows if row.given and row.method in methods)),
    )


def _row(held: Comparison, found: dict[str, Contrasted], methods: Sequence[str], by_task: bool) -> SeedRow:
    cells = tuple(found.get(name) for name in methods)
    one = next(cell for cell in cells if cell is not None)
    figure = one.reading.name or one.metric
    # Where runs are missing, the baseline may have fewer seeds beside one method than another.
    before = max((cell.before for cell in cells if cell is not None), key=lambda spread: spread.seeds)
    if by_task:
        return SeedRow(capital(one.about.name), figure, one.reading, before, cells, False)
    mean = one.language == MEAN
    learned = "trained on" if one.language in held.learned_in(one.task) else ""
    about = averaged(held, [cell for cell in cells if cell is not None]) if mean else learned
    return SeedRow(one.name, about, one.reading, before, cells, mean)


def averaged(held: Comparison, means: Sequence[Contrasted]) -> str:
    """What the means of a task, one a method, are over."""
    over = {frozenset(mean.languages) for mean in means}
    if len(over) > 1:
        return "of other languages for each method"
    codes, mean = over.pop(), means[0]
    own = [row for row in held.rows if (row.task, row.method) == (mean.task, mean.method)]
    if not codes:
        return _averaged(mean, own)
    if len(codes) == 1:
        return f"of {spoken_name(*codes)}" if len(own) > 1 else ""
    foreign = {row.language for row in own} - set(held.learned_in(mean.task))
    left = " not trained on" if codes == foreign and len(own) > len(codes) else ""
    return f"of {len(codes)} languages{left}"


def _averaged(mean: Contrasted, own: Sequence[Contrasted]) -> str:
    """What an older mean is over: all languages of its task, where their items make up its own."""
    if sum(row.items for row in own) == mean.items:
        return f"of {len(own)} languages" if len(own) > 1 else ""
    return "of languages not trained on"


# -------------------------------------------------------------------------------------------- verdicts


@dataclass(frozen=True)
class Found:
    """What was found of a method on a task: the class of its sign, a word, how much, how sure."""

    task: str
    kind: str
    word: str
    size: str
    figures: str
    sure: tuple[str, ...]
    seen: str


@dataclass(frozen=True)
class Judged:
    """A method against the baseline: a word for all tasks, and what was found on each."""

    method: str
    place: int
    kind: str
    word: str
    found: tuple[Found, ...]


def _judged(held: Comparison, method: str) -> Judged:
    rows = held.of_method(method)
    found = tuple(found_of(row) for row in rows)
    kinds = {one.kind for one in found}
    kind = kinds.pop() if len(kinds) == 1 else "mixed" if {"helped", "hurt"} <= kinds else ""
    return Judged(method, held.methods.index(method) + 1, kind, tally(rows), found)


def found_of(row: Contrasted) -> Found:
    """What was found of a method on a task, in words."""
    reading = row.reading
    figures = f"{reading.name or row.metric} {shown_spread(row.before)} → {shown_spread(row.after)}"
    told = [f"{_interval(row)}{p_value(row.p)}{_corrected(row)}"] if _interval(row) or row.p < 1 else []
    told.append(f"{capital(_seeds(row))}, {row.items:,} test items")
    known = row.detectable is not None and row.finding != UNKNOWN
    seen = f"Smallest true difference that would be seen: {_size(row.detectable or 0.0, reading)}"
    task, kind, size = capital(row.about.name), KINDS[row.finding], points(row.difference, reading)
    return Found(task, kind, finding(row), size, figures, tuple(told), seen if known else "")


def finding(row: Contrasted) -> str:
    """The finding, and what it is conditional on."""
    if row.finding == UNKNOWN:
        return "one seed: cannot tell" if min(row.before.seeds, row.after.seeds) < 2 else UNKNOWN
    return f"{row.finding}, given {row.given}" if row.given else row.finding


def _interval(row: Contrasted) -> str:
    if row.low is None or row.high is None:
        return ""
    return f"95% interval {signed(row.low, row.reading)} to {signed(row.high, row.reading)}; "


def _corrected(row: Contrasted) -> str:
    told = "" if row.holm == row.p else f", after Holm {p_value(row.holm)}"
    return told + (f", given {row.given}" if row.given else "")


def _seeds(*rows: Contrasted) -> str:
    """How many seeds there were."""
    counts = sorted({spread.seeds for row in rows for spread in (row.before, row.after)})
    return "one seed" if counts == [1] else f"{listed(list(map(str, counts)))} seeds"


def _size(value: float, reading: Metric) -> str:
    return points(value, reading).removeprefix("+")


def tally(rows: Sequence[Contrasted]) -> str:
    """What was found on which tasks; of one task, what was found."""
    if len(rows) == 1:
        return finding(rows[0])
    told = []
    for word in FINDINGS:
        names = [row.about.name for row in rows if row.finding == word]
        if names:
            told.append(f"{word} on {f'all {len(rows)} tasks' if len(names) == len(rows) else listed(names)}")
    return "; ".join(told)


def headline(held: Comparison) -> str:
    """Whether it helped, in a few words: by how much on one task, and on which of several."""
    if not held.tasks:
        return "Nothing was compared"
    told = _of_one_task(held) if len(held.names) == 1 else _of_many_tasks(held)
    givens = {row.given for row in held.tasks if row.finding != UNKNOWN}
    given = givens.pop() if len(givens) == 1 else "these seeds or items" if any(givens) else ""
    return told + (f", given {given} only" if given else "")


def _of_one_task(held: Comparison) -> str:
    """By how much each helped or hurt; the task stands in the title."""
    rows, told = held.tasks, []
    if len(rows) == 1 and rows[0].sure:
        return f"{rows[0].method} {rows[0].finding}: {points(rows[0].difference, rows[0].reading)}"
    for word in (HELPED, HURT):
        names = [
            f"{quoted_name(row.method)} ({points(row.difference, row.reading)})"
            for row in rows
            if row.finding == word
        ]
        told += [f"{some(names, len(rows))} {word}"] if names else []
    for word, words in (
        (NONE, "no evidence that {} helped or hurt"),
        (UNKNOWN, "cannot tell whether {} helped"),
    ):
        names = [row.method for row in rows if row.finding == word]
        told += [words.format(some(names, len(rows), every="any of", last="or"))] if names else []
    return _begun("; ".join(told), held)


def _of_many_tasks(held: Comparison) -> str:
    """A clause a method that did something; the others together."""
    clauses, quiet, unknown = [], [], []
    many, short = len(held.names), len(held.methods) > MOST_CLAUSES
    for method in held.methods:
        rows = held.of_method(method)
        did = [_did(rows, word, many, short) for word in (HELPED, HURT)]
        if any(did):
            clauses.append(f"{method} {listed(list(filter(None, did)))}")
        elif all(row.finding == UNKNOWN for row in rows):
            unknown.append(method)
        else:
            quiet.append(method)
    clauses += (
        [f"no evidence either way for {some(quiet, len(held.methods), every='any of')}"] if quiet else []
    )
    clauses += [f"cannot tell about {some(unknown, len(held.methods), every='any of')}"] if unknown else []
    return _begun("; ".join(clauses), held)


def _did(rows: Sequence[Contrasted], word: str, many: int, short: bool) -> str:
    names = [row.about.name for row in rows if row.finding == word]
    if not names:
        return ""
    if len(names) == many:
        return f"{word} on {'both' if many == 2 else f'all {many}'} tasks"
    share = f"{len(names)} of {many} tasks"
    return (
        f"{word} on {share}" if short or len(names) > MOST_CLAUSES else f"{word} on {listed(names)} ({share})"
    )


def _begun(line: str, held: Comparison) -> str:
    """A sentence that starts large, unless it starts with a name."""
    return line if line.startswith(held.methods) else capital(line)


# ---------------------------------------------------------------------------------------- a comparison


@dataclass(frozen=True)
class TaskView:
    """One task of a comparison: pictures of the differences by method, a table of all, one a method."""

    about: Task
    title: str
    figure: str
    reading: Metric
    pictures: tuple[tuple[int, str, Markup], ...]
    table: SeedTable
    singles: tuple[SeedTable, ...]


@dataclass(frozen=True)
class ComparisonView:
    """What the page shows of a comparison."""

    held: Comparison
    title: str
    summary: str
    headline: str
    judged: tuple[Judged, ...]
    test: str
    seeds: str
    level: float
    overview: tuple[SeedTable, ...]
    tasks: tuple[TaskView, ...]
    whole: bool

    @property
    def long(self) -> bool:
        """Whether the headline is to be set smaller."""
        return len(self.headline) > MOST_LETTERS

    @property
    def counts(self) -> tuple[int, int]:
        """How many comparisons the p-values are corrected for: of single languages, and of means."""
        return len(self.held.rows), len(self.held.tasks)


def comparison_view(
    held: Comparison, *, level: float = ALPHA, paired: bool = False, most: int = 3000
) -> ComparisonView:
    """All that the page shows of a comparison. Of more than `most` rows there are only the tables of all.

    `level` is the one below which a corrected p counts; `paired`: runs of one seed were compared one by one.
    """
    several, whole = len(held.names) > 1, len(held.rows) <= most
    return ComparisonView(
        held,
        _title(held),
        _summary(held),
        headline(held),
        tuple(_judged(held, name) for name in held.methods if held.of_method(name)),
        " ".join([TESTS.get(held.test, held.test), *([PAIRED] if paired else [])]),
        _seeds(*held.tasks, *held.rows),
        level,
        tuple(_tables(held, held.tasks, by_task=True)) if several else (),
        tuple(_task_view(held, name, whole) for name in held.names),
        whole,
    )


def _title(held: Comparison) -> str:
    methods = listed(held.methods) if len(held.methods) <= MOST_CLAUSES else f"{len(held.methods)} methods"
    about = [row.about for row in (*held.tasks, *held.rows)][:1]
    one = about[0].title or capital(about[0].name) if about else "Transfer"
    return f"{one if len(held.names) == 1 else 'Transfer'}: {methods} against {held.baseline}"


def _summary(held: Comparison) -> str:
    names = list(dict.fromkeys(row.about.name for row in (*held.tasks, *held.rows)))
    asked = [row.about.asked for row in (*held.tasks, *held.rows)][:1]
    what = "the task" if len(names) == 1 else f"{len(names)} tasks ({listed(names)})"
    where = languages_told(held.languages)
    done = f"Every encoder learned {what}{_learned_in(held)} and was tested on the same items {where}."
    return " ".join(filter(None, [*(asked if len(names) == 1 else []), done]))


def _learned_in(held: Comparison) -> str:
    """The languages of the training data; of each run where they differ."""
    if held.by_run:
        labels = sorted(held.by_run, key=lambda label: label != held.baseline)
        told = [f"{label} in {_spoken(held.by_run[label])}" for label in labels]
        return f" ({'; '.join(told)})"
    return f" in {_spoken(held.learned)}" if held.learned else ""


def _spoken(codes: Sequence[str]) -> str:
    return listed(list(map(spoken_name, codes))) or "what its model does not tell"


def languages_told(codes: Sequence[str]) -> str:
    """Languages by name, or how many of them.

    >>> languages_told(["de", "hi"]), languages_told(list("abcdefgh"))
    ('in German and Hindi', 'in 8 languages')
    """
    few = len(codes) <= MOST_NAMES
    return "in " + (listed(list(map(spoken_name, codes))) if few else f"{len(codes)} languages")


def _tables(held: Comparison, rows: Sequence[Contrasted], *, by_task: bool = False) -> Iterator[SeedTable]:
    """A table of all methods; where they are many, also one for each."""
    there = [name for name in held.methods if any(row.method == name for row in rows)]
    yield _table(held, rows, there, by_task=by_task)
    if len(there) > MOST_METHODS:
        for name in there:
            yield _table(held, [row for row in rows if row.method == name], [name], by_task=by_task)


def _task_view(held: Comparison, task: str, whole: bool) -> TaskView:
    rows = held.of_task(task)
    about, (table, *singles) = rows[0].about, _tables(held, rows)
    return TaskView(
        about,
        about.title or capital(about.name),
        table.figure,
        rows[0].reading,
        tuple(_pictures(held, rows, about)) if whole else (),
        table,
        tuple(singles) if whole else (),
    )


def _pictures(held: Comparison, rows: Sequence[Contrasted], about: Task) -> Iterator[tuple[int, str, Markup]]:
    """The differences of every method, the mean first, all on one axis."""
    every = [_mark(row) for row in rows]
    for place, method in enumerate(held.methods, 1):
        own = [row for row in rows if row.method == method]
        shown = {row.language for row in own} - {MEAN, *held.learned_in(own[0].task)} if own else set()
        bars = [_bar(row, shown) for row in sorted(own, key=lambda row: row.language != MEAN)]
        if bars:
            title = f"{capital(about.name)}: {method} less {held.baseline}, in points"
            yield place, method, row_bars(bars, title=title, place=place, also=[*every, *_LEAST])


#: A picture is a point wide at least, so that noise does not look like more.
_LEAST = (Mark(-0.5), Mark(0.5))


def _mark(row: Contrasted) -> Mark:
    scale = row.reading.scale
    low, high = (None if end is None else end * scale for end in (row.low, row.high))
    return Mark(row.difference * scale, low, high)


def _bar(row: Contrasted, foreign: Collection[str]) -> RowBar:
    """A bar; a mean that is not over all languages beside it says so."""
    label = capital(row.name) if row.language == MEAN else row.name
    if row.languages and row.language == MEAN and set(row.languages) != set(foreign):
        label += (
            f" of {len(row.languages)}" if len(row.languages) > 1 else f" of {spoken_name(*row.languages)}"
        )
    figure = signed(row.difference, row.reading) + ("*" if row.sure else "")
    told = f"{label}: {figure} points, {_interval(row)}{finding(row)}"
    return RowBar(label, _mark(row), figure, told, row.sure, row.language == MEAN)


# ---------------------------------------------------------------------------------------- a single run


@dataclass(frozen=True)
class ScoreRow:
    """A language, or the mean of several: items, and a figure for every metric or seed."""

    label: str
    about: str
    items: int
    cells: tuple[Spread | None, ...]
    mean: bool = False


@dataclass(frozen=True)
class TrainedView:
    """What the page shows of a task that was learned, where nothing was compared."""

    held: Trained
    title: str
    summary: str
    headline: str
    metrics: tuple[tuple[str, Metric], ...]
    rows: tuple[ScoreRow, ...]
    picture: Markup | None
    seeds: tuple[tuple[str, tuple[ScoreRow, ...]], ...]
    facts: tuple[tuple[str, str], ...]
    portions: tuple[Portion, ...]
    trainings: tuple[Training, ...]
    dropped: int
    next: str


def trained_view(held: Trained, setup: Setup | None, name: str) -> TrainedView:
    """All that the page shows of a run; `name` is its folder's."""
    rows = tuple(_score_rows(held))
    title = held.about.title or capital(held.about.name)
    learned = _learned(held)
    return TrainedView(
        held,
        f"{title}{f', learned in {learned}' if learned else ''}: {held.encoder}",
        _asked(held, learned),
        reached(held),
        tuple((metric_of(one).name or one, metric_of(one)) for one in held.metrics),
        rows,
        _scores_picture(held, rows),
        tuple((metric_of(one).name or one, tuple(_seed_rows(held, one))) for one in held.metrics),
        tuple(_facts(held, setup)),
        setup.portions if setup else (),
        setup.trainings if setup else (),
        setup.dropped if setup else 0,
        f"calque compare BASE {shlex.quote(name)} --out compared",
    )


def _learned(held: Trained) -> str:
    return listed([spoken_name(code) for code in held.trained if code not in ("", "-")])


def _asked(held: Trained, learned: str) -> str:
    seeds = "one seed" if len(held.seeds) == 1 else f"{len(held.seeds)} seeds"
    first = f"Learned in {learned}, tested" if learned else "Tested"
    where = languages_told(held.languages)
    return " ".join(filter(None, (held.about.asked, f"{first} {where}, with {seeds}.")))


def reached(held: Trained) -> str:
    """What was reached, in words."""
    found = held.spread(MEAN, held.metrics[0])
    if found is None:
        return "Not every language was tested with every seed"
    left = " that it was not trained on" if len(held.foreign) < len(held.languages) else ""
    over = (
        f"on average over {len(held.foreign)} languages{left}"
        if len(held.foreign) > 1
        else f"in {spoken_name(held.foreign[0])}"
    )
    name, value = metric_of(held.metrics[0]).name or held.metrics[0], shown_spread(found)
    words = held.about.alone.format(value=value) or f"{capital(name)} {value}"
    return f"{words}, {over}"


def _rows_of(held: Trained) -> Iterator[tuple[str, str, str, int]]:
    """Code, name, remark and items of every row, the mean last."""
    for code in held.languages:
        yield code, spoken_name(code), "trained on" if code in held.trained else "", held.items(code)
    if len(held.foreign) > 1:
        left = len(held.foreign) < len(held.languages)
        about = f"of {len(held.foreign)} languages{' not trained on' if left else ''}"
        yield MEAN, "mean", about, sum(map(held.items, held.foreign))


def _score_rows(held: Trained) -> Iterator[ScoreRow]:
    for code, name, about, items in _rows_of(held):
        yield ScoreRow(name, about, items, tuple(held.spread(code, m) for m in held.metrics), code == MEAN)


def _seed_rows(held: Trained, metric: str) -> Iterator[ScoreRow]:
    for code, name, about, items in _rows_of(held):
        values = [held.value(code, metric, seed) for seed in held.seeds]
        cells = tuple(None if value is None else spread_of([value]) for value in values)
        yield ScoreRow(name, about, items, cells, code == MEAN)


def _scores_picture(held: Trained, rows: Sequence[ScoreRow]) -> Markup | None:
    """The leading figure of every language, with one standard deviation to both sides."""
    if len(held.languages) < 2:
        return None
    ordered = sorted(rows, key=lambda row: not row.mean)
    bars = [_score_bar(row, row.cells[0]) for row in ordered if row.cells[0] is not None]
    name = metric_of(held.metrics[0]).name or held.metrics[0]
    return row_bars(bars, title=f"{capital(held.about.name)}: {name} by language", unit="%")


def _score_bar(row: ScoreRow, spread: Spread) -> RowBar:
    value, std = 100 * spread.mean, 100 * (spread.std or 0.0)
    told = f"{row.label}: {shown_spread(spread)}"
    label = capital(row.label) if row.mean else row.label
    mark = Mark(value, max(value - std, 0.0), min(value + std, 100.0))
    return RowBar(label, mark, f"{value:.1f}", told, not row.about or row.mean, row.mean)


def _facts(held: Trained, setup: Setup | None) -> Iterator[tuple[str, str]]:
    """How it was trained, by name."""
    yield "encoder", held.encoder
    if setup is None:
        return
    for part, name in (("train", "learned from"), ("test", "tested on")):
        own = setup.of_part(part)
        if own:
            yield name, f"{sum(one.items for one in own):,} items {languages_told(_codes(own))}"
    yield "regime", REGIMES.get(setup.regime, setup.regime)
    yield "weights kept", _chosen(setup, held)
    seeds = ", ".join(map(str, held.seeds))
    yield "seeds", f"{seeds}; a seed varies {setup.varies}"


def _codes(portions: Sequence[Portion]) -> list[str]:
    return list(dict.fromkeys(one.language for one in portions))


def _chosen(setup: Setup, held: Trained) -> str:
    """Which weights were kept, and how they were chosen."""
    dev = setup.of_part("dev")
    if not dev:
        return "those after the last step: there were no dev data to choose by"
    told = f"those that score best on {setup.selected} ({listed(list(map(spoken_name, _codes(dev))))})"
    scores = [one.best for one in setup.trainings if one.best is not None]
    name = metric_of(held.metrics[0]).name or held.metrics[0]
    return told + (f": {name} {shown_spread(spread_of(scores))}" if scores else "")


# ------------------------------------------------------------------------------------------- markdown


MARKS = {"better": "▲", "worse": "▼"}
LEGEND = (
    "± standard deviation over seeds; ▲ ▼ the mean leaves the baseline’s by more than the standard deviation "
    "of the baseline’s seeds; * a difference after Holm’s correction"
)


def comparison_blocks(held: Comparison) -> Iterator[Block]:
    """A table a task: a row a language and method."""
    head = ("language", "method", held.baseline, "method’s", "difference", "95% interval", "p", "p, Holm")
    for task in held.names:
        rows = held.of_task(task)
        figure = rows[0].reading.name or rows[0].metric
        heading = f"{rows[0].about.name}: {figure} %"
        yield Block(f"compared-{task}", heading, head, tuple(map(_written, rows)), held.notes, LEGEND)


def _written(row: Contrasted) -> tuple[Written, ...]:
    ends = _interval(row).removeprefix("95% interval ").removesuffix("; ")
    mark = MARKS.get(row.mark, "") + ("*" if row.sure else "")
    before, after = (shown_spread(one).replace("%", "") for one in (row.before, row.after))
    tests = [p_value(p).removeprefix("p ").removeprefix("= ") for p in (row.p, row.holm)]
    figures = (Figure(before), Figure(after, mark, mark), Figure(signed(row.difference, row.reading)))
    return row.name, row.method, *((one,) for one in (*figures, *map(Figure, (ends or "–", *tests))))


def trained_block(held: Trained) -> Block:
    """A row a language, a column a figure."""
    names = [metric_of(one).name or one for one in held.metrics]
    heading = f"{held.about.name}: {held.encoder}, % ± standard deviation over {len(held.seeds)} seeds"
    body = tuple((row.label, *map(_scored, row.cells)) for row in _score_rows(held))
    name = f"{held.task.removeprefix(PREFIX)}-{held.encoder}"
    return Block(name, heading, ("language", *names), body, held.notes)


def _scored(held: Spread | None) -> Written:
    return "–" if held is None else (Figure(shown_spread(held).replace("%", "")),)
