"""A measure over seeds: figures of all of them, and verdicts that every seed agrees on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from calque.report.collect import Panel
from calque.report.study.reading import Group, GroupMeasure, StudyFolder
from calque.report.study.table import ONE_SEED, BigTable, Column, Head, RowBlock, SeedScore, StudyRow, short
from calque.report.transfer import MEAN
from calque.report.verdict import HELPED, RAISED, UNTESTED, Compared, Contrast, Measured, measured
from calque.report.words import capital, some
from calque.stats.seeds import Spread, spread_of

RETRIEVAL = ("word-retrieval", "lexicon", "sentence-retrieval")


@dataclass(frozen=True, eq=False)
class SeedMeasure:
    """One measure of a group: `found` is what its seeds agree on, at the layer of the first."""

    measure: GroupMeasure
    found: Measured

    @property
    def held(self) -> Compared:
        return self.found.leading

    @property
    def task(self) -> str:
        return self.held.panels[0].task

    @property
    def title(self) -> str:
        """What it is called, with the study's own name for it where that says more."""
        whole = self.held.panels[0]
        return measure_title(capital(whole.about.title or whole.activity), self.measure)

    @property
    def retrieval(self) -> bool:
        return self.task in RETRIEVAL

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self._values)

    @cached_property
    def _values(self) -> dict[int, dict[tuple[str, tuple[str, str]], float]]:
        """Of every seed the figure of every encoder and language pair, as the verdict reads it."""
        panel, layer = self.held.panels[0], self.held.layer
        asked = (panel.task, panel.metric, panel.variant, layer, panel.directions[0])
        return {
            seed: {
                (r.encoder, r.languages): r.value
                for r in results
                if (r.task, r.metric, r.variant, r.layer, r.direction) == asked
            }
            for seed, results in self.measure.seeds.items()
        }

    def _value(self, seed: int, label: str, languages: tuple[str, str] | None) -> float | None:
        """One figure; without languages the mean of all, where each has one."""
        held, pairs = self._values[seed], [panel.languages for panel in self.held.panels]
        if languages is not None:
            return held.get((label, languages))
        found = [held[label, pair] for pair in pairs if (label, pair) in held]
        return fmean(found) if len(found) == len(pairs) else None

    def score(self, label: str, languages: tuple[str, str] | None = None) -> Spread | None:
        """A figure over the seeds there are."""
        held = [self._value(seed, label, languages) for seed in self.seeds]
        return self._spread(label, [value for value in held if value is not None])

    def _spread(self, label: str, values: Sequence[float]) -> Spread | None:
        """Over seeds; what none of them changes was measured once, however often."""
        if not values:
            return None
        same = len(set(values)) == 1 and not self.measure.drawn.get(label)
        return spread_of(values[:1] if same else values)

    def change(self, label: str, languages: tuple[str, str] | None = None) -> Spread | None:
        """What there is more than in the baseline, seed by seed."""
        pairs = [
            (self._value(seed, label, languages), self._value(seed, self.measure.group.baseline, languages))
            for seed in self.seeds
        ]
        found = [after - before for after, before in pairs if after is not None and before is not None]
        return self._spread(label, found)

    def lone(self, label: str) -> bool:
        """Whether a seed changes this method, and one seed of it is all that was measured."""
        seeds, values = self.measure.drawn.get(label), self._values.values()
        return bool(seeds) and min(len(seeds or ()), sum(any(k[0] == label for k in v) for v in values)) < 2

    @property
    def headline(self) -> str:
        """All in a few words, and what rests on one seed."""
        return self.held.headline + one_seed([self])

    def by_language(self, source: str) -> dict[str, Panel]:
        """Panels by the language that is not the source; those of other pairs are left out."""
        return {
            code_of(panel.languages, source): panel
            for panel in self.held.panels
            if (panel.languages[0] == source) != (panel.languages[1] == source)
        }

    def contrast(self, label: str, languages: tuple[str, str] | None) -> Contrast | None:
        """What the seeds' tests agree on in one language, or over all."""
        if languages is None:
            return next((v.best for v in self.held.verdicts if v.encoder == label), None)
        names = dict(zip([panel.languages for panel in self.held.panels], self.held.names, strict=True))
        if len(names) == 1:
            return self.contrast(label, None)
        return self.held.contrasts.get((label, names[languages]))

    def sure(self, label: str, languages: tuple[str, str] | None) -> bool:
        found = self.contrast(label, languages)
        return found is not None and bool(found.sure)


def one_seed(held: Sequence[SeedMeasure]) -> str:
    """Which of the methods that a sentence is about were tested with one seed of their alignment."""
    judged = [(one, v.encoder) for one in held for v in one.held.verdicts if v.word != UNTESTED]
    names = [label for one, label in judged if one.lone(label)]
    if not names:
        return ""
    if len(names) == len(judged):
        return f", {'each ' if len(names) > 1 else ''}with {ONE_SEED}"
    return f"; {some(names, len(judged))} with {ONE_SEED}"


def measure_title(title: str, one: GroupMeasure) -> str:
    """A title with the study's own name for a measure, where it is not that of the verb."""
    return title if not one.name or one.verb.endswith(f" {one.name}") else f"{title} ({one.name})"


def code_of(languages: tuple[str, str], source: str) -> str:
    """What a language pair is told by: the language that is not the source, or both.

    >>> code_of(("en", "de"), "en"), code_of(("de", "de"), "en"), code_of(("de", "fr"), "en")
    ('de', 'de', 'de–fr')
    """
    told = [code for code in dict.fromkeys(languages) if code != source] or list(languages[:1])
    return "–".join(told)


def seed_measures(study: StudyFolder) -> tuple[SeedMeasure, ...]:
    """Everything that was measured, a group at a time."""
    return tuple(SeedMeasure(one, found) for one in study.measures for found in _agreeing(one))


def _agreeing(one: GroupMeasure) -> tuple[Measured, ...]:
    """What was measured with the first seed, judged together with the same of the other seeds."""
    others = [{_subject(m): m for m in measured(run)} for run in one.others]
    return tuple(
        replace(m, leading=m.leading.with_seeds([o[_subject(m)].leading for o in others if _subject(m) in o]))
        for m in one.measured
    )


def _subject(found: Measured) -> tuple[str, ...]:
    panel = found.leading.panels[0]
    return panel.task, panel.metric, panel.variant


def measure_table(study: StudyFolder, measures: Sequence[SeedMeasure]) -> BigTable:
    """The leading figure of every measure over seeds, in every language and on average."""
    keyed: dict[tuple[str, ...], list[SeedMeasure]] = {}
    for one in measures:
        panel = one.held.panels[0]
        keyed.setdefault((one.task, panel.metric, panel.variant, one.measure.name), []).append(one)
    heads = tuple(_head(study, own) for own in keyed.values())
    blocks = (_block(group, list(keyed.values()), heads, study.source) for group in study.groups)
    return BigTable(heads, tuple(block for block in blocks if block.rows))


def _pairs(measures: Sequence[SeedMeasure]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(panel.languages for one in measures for panel in one.held.panels))


def _head(study: StudyFolder, measures: Sequence[SeedMeasure]) -> Head:
    panel, pairs = measures[0].held.whole, _pairs(measures)
    columns = [Column(code) for code in study.by_distance(code_of(pair, study.source) for pair in pairs)]
    if len(columns) > 1:
        over = frozenset(column.language for column in columns)
        columns.append(Column(MEAN, f"of {len(columns)}", over))
    layers = {one.measure.group.encoder: one.held.layer for one in measures if one.held.layer is not None}
    told = sorted(set(layers.values()))
    where = f"layer {told[0]}" if len(told) == 1 else ""
    if len(told) > 1:
        where = ", ".join(f"{name} at layer {layer}" for name, layer in layers.items())
    return Head(
        measures[0].measure.name or measures[0].task,
        measures[0].title,
        panel.figure,
        panel.reading,
        tuple(columns),
        where,
        task=panel.task,
        metric=panel.metric,
    )


def _block(
    group: Group, keyed: Sequence[Sequence[SeedMeasure]], heads: Sequence[Head], source: str
) -> RowBlock:
    rows = []
    own = [next((one for one in held if one.measure.group == group), None) for held in keyed]
    for place, label in enumerate(group.labels):
        cells = tuple(
            _figure(one, label, column, source)
            for one, head in zip(own, heads, strict=True)
            for column in head.columns
        )
        if any(cells):
            alone = any(one is not None and one.lone(label) for one in own)
            about = "" if place else "baseline"
            rows.append(StudyRow(short(label, group), place, cells, ONE_SEED if alone else about, label))
    return RowBlock(group.encoder, tuple(rows))


def _figure(one: SeedMeasure | None, label: str, column: Column, source: str) -> SeedScore | None:
    if one is None:
        return None
    pairs = {code_of(pair, source): pair for pair in _pairs([one])}
    if not (column.over or {column.language}) <= pairs.keys():
        return None  # nor is there a mean of some of the languages
    languages = None if column.mean else pairs[column.language]
    spread, found = one.score(label, languages), one.contrast(label, languages)
    if spread is None:
        return None
    return SeedScore(
        spread,
        sure=found is not None and bool(found.sure),
        up=found is not None and found.word in (HELPED, RAISED),
    )
