"""The verdict on a study in words: one sentence for all of it, one a task, one a retrieval measure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from calque.report.measures import Judged, cards
from calque.report.study.over_seeds import SeedMeasure, one_seed, seed_measures
from calque.report.study.reading import DONE, FAILED, LEFT_OUT, Cell, GroupComparison, StudyFolder
from calque.report.study.table import ONE_SEED, Scores
from calque.report.tasks import Metric, metric_of
from calque.report.transfer import (
    HELPED,
    HURT,
    MEAN,
    NONE,
    UNKNOWN,
    Comparison,
    Contrasted,
    shown_spread,
    spoken_name,
)
from calque.report.transfer_shown import KINDS, found_of, headline
from calque.report.verdict import UNTESTED, Verdict
from calque.report.verdict import together as all_told
from calque.report.words import capital, listed, p_value, points, quoted_name, signed, some
from calque.stats.seeds import Spread

#: Methods up to which a sentence has room for intervals and languages, and lines that are not folded.
MOST_IN_FULL, MOST_LINES = 2, 4
#: Languages by name, others by number; letters of why a cell failed.
MOST_LANGUAGES, LONGEST_REASON = 5, 200


@dataclass(frozen=True)
class Line:
    """What was found of one method: the class of its sign, a word, how much, and how sure."""

    label: str
    place: int
    kind: str
    word: str
    size: str
    sure: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """A task or a measure: one sentence, and a line a method."""

    title: str
    figure: str
    kind: str
    sentence: str
    lines: tuple[Line, ...]

    @property
    def folded(self) -> bool:
        return len(self.lines) > MOST_LINES

    def worded(self, study: StudyFolder) -> Finding:
        """The same in the words that fit what is compared."""
        lines = tuple(
            replace(line, word=worded(line.word, study), sure=tuple(begun(one, study) for one in line.sure))
            for line in self.lines
        )
        return replace(self, sentence=begun(self.sentence, study), lines=lines)


def merged(study: StudyFolder) -> Comparison | None:
    """The comparisons of all groups as one; labels tell their methods apart."""
    held = [one.held for one in study.comparisons]
    if not held:
        return None
    rows, tasks, notes = (
        tuple(dict.fromkeys(one for comparison in held for one in getattr(comparison, name)))
        for name in ("rows", "tasks", "notes")
    )
    learned = {task: codes for comparison in held for task, codes in comparison.trained.items()}
    return replace(held[0], rows=rows, tasks=tasks, notes=notes, trained=learned)


def overall(study: StudyFolder, measures: Sequence[SeedMeasure]) -> str:
    """All in one sentence: by tasks where there are any, otherwise by the first measure.

    It says what it is about where other things were found too.
    """
    whole = merged(study)
    if whole is not None and whole.tasks:
        about = whole.tasks[0].about
        alone = len(whole.names) > 1 or not any(one.retrieval for one in measures)
        return headline(whole) if alone else f"{about.title or capital(about.name)}: {headline(whole)}"
    if study.trained:
        return "Tasks were learned, and nothing was compared"
    if not measures:
        return "Nothing was measured yet" if study.waiting or not study.of_status(DONE) else "No figures"
    first = [one for one in measures if one.task == measures[0].task]
    told = "; ".join(dict.fromkeys(one.headline for one in first))
    return told if len(first) == len(measures) else f"{measures[0].title}: {told}"


def begun(text: str, study: StudyFolder) -> str:
    """A sentence that starts large, unless it starts with a name."""
    text = worded(text, study)
    return text if text.startswith(study.labels) else capital(text)


def worded(text: str, study: StudyFolder) -> str:
    """Methods helped or hurt; of encoders beside each other one did better or worse."""
    return better(text, "encoders") if study.noun == "encoder" else text


def better(text: str, what: str = "methods") -> str:
    """What is beside another of its kind did better or worse.

    >>> better("weak helped in German; hurt in Hindi")
    'weak did better in German; did worse in Hindi'
    """
    return _HELPED.sub(lambda found: {**_BETTER, "methods": what}[found[0]], text)


_BETTER = {"helped": "did better", "hurt": "did worse"}
_HELPED = re.compile(rf"\b({'|'.join(_BETTER)}|methods)\b")


# ----------------------------------------------------------------------------------------------- tasks


def task_findings(scores: Scores) -> Iterator[Finding]:
    """One a task."""
    whole = merged(scores.study)
    for name in scores.study.kinds:
        about = scores.about(name)
        title = about.title or capital(about.name)
        rows = [row for row in whole.tasks if row.task == name] if whole else []
        if rows:
            every = (row for (task, *_), row in scores.contrasts.items() if task == name)
            yield _compared(scores.study, title, rows, every, scores.learned_in(name))
            continue
        yield Finding(title, _figure(scores, name), "untested", _reached(scores, name), ())


def _figure(scores: Scores, name: str) -> str:
    return metric_of(scores.metrics[name]).name or scores.metrics[name]


def _reached(scores: Scores, name: str) -> str:
    """What each reaches, where nothing was compared."""
    foreign = scores.foreign(name)
    place = (MEAN, frozenset(foreign)) if len(foreign) > 1 else (foreign[0], frozenset[str]())
    held = [(label, scores.figure(name, label, *place)) for label in scores.study.labels]
    told = [f"{label} {shown_spread(figure.spread)}" for label, figure in held if figure is not None]
    return (
        f"{capital(_figure(scores, name))}{_on(foreign)}: {', '.join(told) or 'none'}. Nothing was compared."
    )


def _compared(
    study: StudyFolder,
    title: str,
    rows: Sequence[Contrasted],
    every: Iterable[Contrasted],
    learned: Collection[str],
) -> Finding:
    """What was found on average, and in single languages that are not those of the training data."""
    single: dict[str, list[Contrasted]] = {row.method: [] for row in rows}
    for one in every:
        if one.method in single and one.language != MEAN and one.language not in learned:
            single[one.method].append(one)
    lines = tuple(_line(study, row, single[row.method]) for row in rows)
    figure = rows[0].reading.name or rows[0].metric
    return Finding(title, figure, kind_of([line.kind for line in lines]), task_sentence(rows, single), lines)


def contrast_findings(one: GroupComparison, study: StudyFolder) -> Iterator[Finding]:
    """What methods have over another method: one a task."""
    for name in one.held.names:
        rows = [row for row in one.held.tasks if row.task == name]
        if rows:
            title = f"{rows[0].about.title or capital(rows[0].about.name)}, against {one.held.baseline}"
            every = [row for row in one.held.rows if row.task == name]
            found = _compared(study, title, rows, every, one.held.learned_in(name))
            lines = tuple(
                replace(line, word=better(line.word), sure=tuple(map(better, line.sure)))
                for line in found.lines
            )
            sentence = better(found.sentence)
            told = sentence if sentence.startswith(study.labels) else capital(sentence)
            yield replace(found, sentence=told, lines=lines)


def kind_of(kinds: Sequence[str]) -> str:
    """The sign of several findings: what all did that did anything."""
    did = set(kinds) & {"helped", "hurt", "raised", "lowered", "mixed"}
    if len(did) > 1:
        return "mixed"
    return did.pop() if did else "untested" if set(kinds) == {"untested"} else "no-evidence"


def task_sentence(rows: Sequence[Contrasted], single: dict[str, list[Contrasted]]) -> str:
    """Who helped or hurt by how much, how sure, and in which languages; then of whom nothing can be said."""
    told = []
    sure = [row for row in rows if row.sure]
    full = len(sure) <= MOST_IN_FULL
    for word in (HELPED, HURT):
        own = [row for row in sure if row.finding == word]
        if own and full:
            told += [f"{some([row.method], 1)} {word}: {_in_full(row, single[row.method])}" for row in own]
        elif own:
            sized = some([f"{quoted_name(row.method)} ({_size(row)})" for row in own], len(rows))
            told.append(f"{sized} {word}{_average(own, single)}")
    for word, words in ((NONE, "no evidence either way for {}"), (UNKNOWN, "cannot tell about {}")):
        names = [row.method for row in rows if row.finding == word]
        told += [words.format(some(names, len(rows), every="any of"))] if names else []
    unknown = [row for row in rows if row.finding == UNKNOWN]
    ending = (
        " from one seed" if unknown and all(min(r.before.seeds, r.after.seeds) < 2 for r in unknown) else ""
    )
    return f"{'; '.join(told)}{ending}."


def _size(row: Contrasted) -> str:
    return points(row.difference, row.reading)


def _average(rows: Sequence[Contrasted], single: dict[str, list[Contrasted]]) -> str:
    """Over what the figures are, and how sure the least sure of them is."""
    over = {frozenset(_over(row, single[row.method])) for row in rows}
    return f"{_on(over.pop()) if len(over) == 1 else ''} ({_surest(rows)} after Holm)"


def _surest(rows: Sequence[Contrasted]) -> str:
    told = p_value(max(row.holm for row in rows))
    return told.replace("=", "≤") if len(rows) > 1 else told


def _in_full(row: Contrasted, single: Sequence[Contrasted]) -> str:
    ends = ""
    if row.low is not None and row.high is not None:
        ends = f"95% interval {signed(row.low, row.reading)} to {signed(row.high, row.reading)}, "
    given = f", given {row.given}" if row.given else ""
    named = f"; {_languages(row, single)}" if len(single) > 1 else ""
    return f"{_size(row)}{_on(_over(row, single))} ({ends}{p_value(row.holm)} after Holm{given}{named})"


def _over(mean: Contrasted, single: Sequence[Contrasted]) -> tuple[str, ...]:
    """The languages that a mean is over."""
    return mean.languages or tuple(row.language for row in single)


def _on(codes: Collection[str]) -> str:
    """Over what a figure is.

    >>> _on(["de", "hi"]), _on(["de"]), _on([])
    (' on average over 2 languages', ' in German', '')
    """
    if len(codes) > 1:
        return f" on average over {len(codes)} languages"
    return f" in {spoken_name(*codes)}" if codes else ""


def _languages(mean: Contrasted, single: Sequence[Contrasted]) -> str:
    """In which languages it is sure by itself, and by how much."""
    told, same = [], set(_over(mean, single)) == {row.language for row in single}
    for word in (HELPED, HURT):
        own = [row for row in single if row.finding == word]
        if len(own) == len(single) and same:
            return f"{word} in each of them"
        if own:
            told.append(f"{word} in {_named(own)}")
    return f"taken singly, {' and '.join(told)}" if told else "sure in no single language"


def _named(rows: Sequence[Contrasted]) -> str:
    if len(rows) > MOST_LANGUAGES:
        return f"{len(rows)} languages"
    return listed([f"{spoken_name(row.language)} ({signed(row.difference, row.reading)})" for row in rows])


def _line(study: StudyFolder, row: Contrasted, single: Sequence[Contrasted]) -> Line:
    found, place = found_of(row), place_in(study, row.method)
    told = [f"{found.figures}; {found.sure[0]}" if found.sure else found.figures]
    if len(single) > 1:
        told.append(capital(_languages(row, single)))
    if found.seen and row.finding == NONE:
        told.append(found.seen)
    return Line(row.method, place, KINDS[row.finding], found.word, found.size, tuple(told))


def place_in(study: StudyFolder, label: str) -> int:
    """A label's place in its group, which gives its colour."""
    return next((group.labels.index(label) for group in study.groups if label in group.labels), 0)


# -------------------------------------------------------------------------------------------- measures


def findings(scores: Scores, measures: Sequence[SeedMeasure]) -> tuple[Finding, ...]:
    """Tasks, then retrieval; other measures only where there is neither."""
    retrieval = [one for one in measures if one.retrieval]
    chosen = retrieval or ([] if scores.study.kinds else measures)
    found = (*task_findings(scores), *measure_findings(chosen))
    return tuple(one.worded(scores.study) for one in found)


def finding_lines(study: StudyFolder) -> list[str]:
    """What a study found, a line a task or measure; then what methods have over each other."""
    return told_lines(study, findings(Scores(study), seed_measures(study)))


def told_lines(study: StudyFolder, found: Sequence[Finding]) -> list[str]:
    """Findings as lines, with those on methods beside each other."""
    beside = [finding for one in study.contrasts for finding in contrast_findings(one, study)]
    return [f"{one.title}: {one.sentence}" for one in (*found, *beside)]


def measure_findings(measures: Sequence[SeedMeasure]) -> Iterator[Finding]:
    """One a measure, all groups together."""
    keyed: dict[tuple[str, ...], list[SeedMeasure]] = {}
    for one in measures:
        keyed.setdefault((one.task, one.held.panels[0].variant, one.measure.name), []).append(one)
    return map(_measured, keyed.values())


def _measured(held: Sequence[SeedMeasure]) -> Finding:
    panel = held[0].held.whole
    found = [verdict for one in held for verdict in one.held.verdicts]
    lines = tuple(_measure_line(one, card) for one in held for card in cards(one.held))
    kind = kind_of([line.kind for line in lines]) if lines else ""
    return Finding(held[0].title, panel.figure, kind, _sentence(held, found), lines)


def _sentence(held: Sequence[SeedMeasure], found: Sequence[Verdict]) -> str:
    if not found or all(verdict.word == UNTESTED for verdict in found):
        return "; ".join(dict.fromkeys(one.held.headline for one in held)) + "."
    sure = [verdict.telling.p for verdict in found if verdict.telling.p is not None and verdict.telling.sure]
    how = f" ({p_value(max(sure)).replace('=', '≤' if len(sure) > 1 else '=')} after Holm)" if sure else ""
    return f"{all_told(found)}{_where(held)}{how}{one_seed(held)}."


def _where(held: Sequence[SeedMeasure]) -> str:
    """Over which languages and at which layer, where that is the same of all."""
    many, layers = {len(one.held.panels) for one in held}, {one.held.layer for one in held}
    told = f", on average over {many.pop()} languages" if len(many) == 1 and max(many) > 1 else ""
    layer = layers.pop() if len(layers) == 1 else None
    return told + ("" if layer is None else f", at layer {layer}")


def _measure_line(one: SeedMeasure, card: Judged) -> Line:
    change, told = one.change(card.encoder), [f"{card.figures}; {card.sure}".rstrip(".")]
    if change is not None and change.seeds > 1:
        told.append(f"Over {change.seeds} seeds {spread_points(change, one.held.whole.reading)}")
    told += [line.rstrip(".") for line in card.more]
    colour = one.measure.group.labels.index(card.encoder)
    word = f"{card.word}, with {ONE_SEED}" if one.lone(card.encoder) and card.word != UNTESTED else card.word
    return Line(card.encoder, colour, card.word.replace(" ", "-"), word, card.size, tuple(told))


def spread_points(held: Spread, reading: Metric) -> str:
    """A difference over seeds.

    >>> spread_points(Spread(0.021, 0.004, 3), Metric())
    '+2.1 ± 0.4 points'
    """
    std = "" if held.std is None else f" ± {signed(held.std, reading).removeprefix('+')}"
    return signed(held.mean, reading) + std + (" points" if reading.percent else "")


# ------------------------------------------------------------------------------------- what is missing


@dataclass(frozen=True)
class Lost:
    """Cells that are not there for one reason; names of those that differ in their seed only are one."""

    status: str
    error: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Missing:
    """What a study does not have: cells that failed, those that rest on them, those that wait."""

    told: str
    cells: tuple[Lost, ...]


def missing(study: StudyFolder) -> Missing | None:
    """Which cells are not there and why; None where all are."""
    failed, left, waiting = study.of_status(FAILED), study.of_status(LEFT_OUT), study.waiting
    if not failed and not left and not waiting:
        return None
    counted = [(failed, "failed"), (left, "left out"), (waiting, "not run yet")]
    told = listed([f"{len(held)} {word}" for held, word in counted if held])
    cells = tuple(_lost(study, (*failed, *left, *waiting)))
    return Missing(f"Of {len(study.cells):,} cells {told}: the figures below do without.", cells)


def _lost(study: StudyFolder, cells: Sequence[Cell]) -> Iterator[Lost]:
    """Cells by reason and name, those of several seeds together."""
    keyed: dict[tuple[str, str], dict[str, list[int]]] = {}
    for cell in cells:
        ending = f", seed {cell.seed}"
        names = keyed.setdefault((cell.status, reason(study, cell).replace(ending, "")), {})
        seeds = names.setdefault(f"{cell.verb} {cell.title.removesuffix(ending)}", [])
        seeds += [cell.seed] if cell.title.endswith(ending) and cell.seed is not None else []
    for (status, error), held in keyed.items():
        yield Lost(status, error, tuple(_with_seeds(name, seeds) for name, seeds in held.items()))


def _with_seeds(name: str, seeds: Sequence[int]) -> str:
    several = "seeds" if len(seeds) > 1 else "seed"
    return f"{name} ({several} {listed(list(map(str, seeds)))})" if seeds else name


def reason(study: StudyFolder, cell: Cell) -> str:
    """Why a cell is not there, its end left out where it is long; paths are told from the study's folder."""
    text = cell.error.replace(f"{study.folder.resolve()}/", "").replace(f"{study.folder}/", "")
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON].rsplit(' ', 1)[0]} …"
