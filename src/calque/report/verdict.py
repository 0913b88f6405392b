"""Whether it helped, in words: at the layer where the baseline is best, and at the last layer.

Both layers are chosen without looking at the encoder that is judged, so choosing them cannot flatter it.
Of several languages the verdict is about their mean, and then about each at the same layer.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from calque.report.collect import Panel, Run, pair_name, place_of
from calque.report.mean import mean_panel, verdict_layer
from calque.report.tasks import Metric
from calque.report.transfer import comparison_lines, trained_line
from calque.report.words import amount, capital, listed, name_of, p_value, points, quoted_name, signed, some
from calque.stats.significance import holm
from calque.types import Result

ALPHA = 0.05
WORDS = ("helped", "hurt", "raised", "lowered", "mixed", "no evidence", "untested")
HELPED, HURT, RAISED, LOWERED, MIXED, NONE, UNTESTED = WORDS
#: Each word as one sign, so that nothing depends on colour alone.
SIGNS = dict(zip(WORDS, "▲▼△▽◆●○", strict=True))


@dataclass(frozen=True)
class Contrast:
    """An encoder before and after at one layer. In a verdict `p` is Holm-corrected; None when untested.

    Of several `seeds` it is what all of them agree on.
    """

    before: Result
    after: Result
    change: Result
    p: float | None
    reading: Metric
    seeds: int = 1

    @property
    def layer(self) -> int | None:
        return self.change.layer

    @property
    def sure(self) -> bool | None:
        """Whether there is a difference: by its test, or by its interval where it has no test; None where it
        has neither."""
        low, high = self.change.low, self.change.high
        if self.p is not None:
            return self.p < ALPHA
        return None if low is None or high is None else low > 0 or high < 0

    @property
    def word(self) -> str:
        """helped or hurt; raised or lowered, where more is neither better nor worse; or no evidence."""
        if self.sure is None:
            return UNTESTED
        if not self.sure or self.change.value == 0:
            return NONE
        more = self.change.value > 0
        if self.reading.neutral:
            return RAISED if more else LOWERED
        return HELPED if more != self.reading.lower else HURT


@dataclass(frozen=True)
class Verdict:
    """What can be said about one encoder against the baseline."""

    panel: Panel
    encoder: str
    last: Contrast
    best: Contrast
    tests: int

    @property
    def same(self) -> bool:
        """Whether the last layer is also the one where the baseline is best."""
        return self.last.layer == self.best.layer

    @property
    def word(self) -> str:
        words = {self.last.word, self.best.word}
        if len(words) > 1 and NONE in words:
            words.discard(NONE)
        return MIXED if len(words) > 1 else words.pop()

    @property
    def telling(self) -> Contrast:
        """The contrast that decides the word: where the baseline is best, unless only the last one does."""
        return self.last if self.best.word == NONE and self.last.word == self.word else self.best

    @property
    def size(self) -> str:
        """How much of a difference, where there is evidence of one."""
        reading = self.panel.reading
        if self.word in (MIXED, NONE, UNTESTED):
            return ""
        bare = reading.percent or reading.neutral
        return ("" if bare else f"{self.panel.figure} ") + points(self.telling.change.value, reading)

    @property
    def headline(self) -> str:
        """A few words: who helped, or did not, by how much, and where when it was not everywhere."""
        name, base, peak = self.encoder, self.last.before.encoder, self.panel.reading.peak
        if self.word == MIXED:
            return (
                f"{name} {did(self.last.word, self.panel)} at the last layer and "
                f"{did(self.best.word, self.panel)} at the {peak} layer of {base}"
            )
        if self.word == UNTESTED:
            return f"{name} was not tested against {base}"
        if self.word == NONE:
            ways = "raised or lowered" if self.panel.reading.neutral else "helped or hurt"
            return f"No evidence that {name} {did(ways, self.panel)}"
        if self.last.word == self.best.word:
            return f"{name} {did(self.word, self.panel)}: {self.size}"
        where = "at the last layer" if self.telling is self.last else f"at the {peak} layer of {base}"
        return f"{name} {did(self.word, self.panel)}, but only {where}: {self.size}"

    @property
    def named(self) -> str:
        """The encoder, with the size of its difference and where, when that is not everywhere."""
        only = f" at layer {self.telling.layer} only" if self.last.word != self.best.word else ""
        return f"{quoted_name(self.encoder)} ({self.size}{only})" if self.size else self.encoder

    @property
    def figures(self) -> tuple[str, str]:
        """What happened where the baseline is best, and at the last layer."""
        panel, moved = self.panel, _moved(self.best, self.panel.reading, self.tests)
        if self.best.layer is None:
            return capital(f"{panel.told} {moved}."), f"It was measured on {self.items}."
        where = f"At layer {self.best.layer}"
        if len(panel.layers) == 1:
            return f"{where} {panel.told} {moved}.", f"It was measured on {self.items}."
        first = f"{where}, where {self.best.before.encoder} is {panel.reading.peak}, {panel.told} {moved}."
        whose = "" if self.last.layer == panel.layers[-1] else " of both"
        if self.same:
            return first, f"That is also the last layer{whose}."
        return first, f"At the last layer{whose} ({self.last.layer}) it {_moved(self.last, panel.reading)}."

    @property
    def items(self) -> str:
        return f"{self.best.change.count:,} items"


def did(words: str, panel: Panel) -> str:
    """What an encoder did; to which figure, where more of it is neither better nor worse."""
    return f"{words} {panel.figure}" if panel.reading.neutral else words


def together(found: Sequence[Verdict]) -> str:
    """Several verdicts in one headline: who helped, who hurt, and of whom nothing can be said."""
    if len(found) == 1:
        return found[0].headline
    told = []
    for word in WORDS:
        names = [v.named for v in found if v.word == word]
        if names:
            every = "any of" if word == NONE else "all"
            told.append(
                _HEADLINES[word].format(
                    some(names, len(found), every=every, what="encoders"), did(word, found[0].panel)
                )
            )
    line = "; ".join(told)
    return line if line.startswith(tuple(v.encoder for v in found)) else capital(line)


_HEADLINES = {
    **dict.fromkeys((HELPED, HURT, RAISED, LOWERED), "{} {}"),
    MIXED: "{} went one way at one layer and the other way at another",
    NONE: "no evidence for or against {}",
    UNTESTED: "{} not tested",
}


def verdicts(panel: Panel, others: Sequence[Panel] = ()) -> list[Verdict]:
    """One verdict an encoder that was compared, with the tests of this panel's verdicts Holm-corrected.

    `others` are the same with other seeds, which are asked at the layers of this one: its baseline may be
    best elsewhere with another seed, and all figures of a verdict are of one layer.
    """
    found: list[Verdict] = []
    for encoder in panel.encoders:
        own = [c for layer in panel.layers if (c := contrasted(panel, encoder, layer)) is not None]
        if own:
            sign = 1 if panel.reading.lower else -1
            best = min(own, key=lambda c: sign * c.before.value)
            last, best = (
                agreed(c, [contrasted(other, encoder, c.layer) for other in others]) for c in (own[-1], best)
            )
            found.append(Verdict(panel, encoder, last, best, 0))
    return _corrected(found)


def contrasted(
    panel: Panel, encoder: str, layer: int | None, direction: str | None = None
) -> Contrast | None:
    """An encoder against the baseline at one layer, where both were measured and compared."""
    change = panel.change(encoder, layer, direction)
    if change is None or change.baseline is None:
        return None
    before, after = (panel.score(name, layer, direction) for name in (change.baseline, encoder))
    if before is None or after is None:
        return None
    return Contrast(before, after, change, change.p, panel.reading)


def agreed(first: Contrast, others: Sequence[Contrast | None]) -> Contrast:
    """One difference with several seeds: the mean of the figures, and the least sure of the tests.

    The interval holds those of all seeds. Seeds that do not go the same way are no evidence.
    """
    held = [first, *(one for one in others if one is not None)]
    if len(held) == 1:
        return first
    changes, tests = [one.change for one in held], [one.p for one in held if one.p is not None]
    lows, highs = ([getattr(one, end) for one in changes] for end in ("low", "high"))
    same = len({one.value > 0 for one in changes}) == 1
    return replace(
        first,
        before=replace(first.before, value=fmean(one.before.value for one in held)),
        after=replace(first.after, value=fmean(one.after.value for one in held)),
        change=replace(
            first.change,
            value=fmean(one.value for one in changes),
            low=None if None in lows else min(lows),
            high=None if None in highs else max(highs),
        ),
        p=None if len(tests) < len(held) else max(tests) if same else 1.0,
        seeds=len(held),
    )


def _corrected(found: Sequence[Verdict]) -> list[Verdict]:
    """Holm over the comparisons the verdicts speak of: two an encoder, or one where they coincide."""
    tested = {(v.encoder, c.layer): c.p for v in found for c in (v.last, v.best) if c.p is not None}
    fixed = dict(zip(tested, holm([p for p in tested.values() if p is not None]), strict=True))
    return [
        replace(
            v,
            last=replace(v.last, p=fixed.get((v.encoder, v.last.layer))),
            best=replace(v.best, p=fixed.get((v.encoder, v.best.layer))),
            tests=len(fixed),
        )
        for v in found
    ]


# ------------------------------------------------------------------------------------------ languages


@dataclass(frozen=True, eq=False)
class Compared:
    """One thing measured in one language pair or in several. What is not `judged` is not tested over all.

    `others` are the same with other seeds, which verdicts ask as well, over all only where they have the same
    languages; these are asked about the layers of its verdict `only`.
    """

    panels: tuple[Panel, ...]
    judged: bool = True
    others: tuple[Compared, ...] = ()
    only: frozenset[int | None] | None = None

    def with_seeds(self, others: Sequence[Compared]) -> Compared:
        """This, judged together with the same of other seeds."""
        layers = {c.layer for verdict in verdicts(self.whole) for c in (verdict.best, verdict.last)}
        made = replace(self, others=tuple(replace(one, only=frozenset(layers)) for one in others))
        vars(made)["whole"] = self.whole  # the same, and dear
        return made

    @property
    def many(self) -> bool:
        return len(self.panels) > 1

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The language pairs that it was measured in."""
        return frozenset(panel.languages for panel in self.panels)

    @cached_property
    def whole(self) -> Panel:
        """The one language pair, or the mean of all."""
        if not self.many:
            return self.panels[0]
        return mean_panel(self.panels, judged=self.judged, only=self.only)

    @cached_property
    def layer(self) -> int | None:
        """The layer that the verdict is about."""
        return verdict_layer(self.panels)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """On each encoder, over all languages."""
        alike = [other for other in self.others if other.pairs == self.pairs]
        return tuple(verdicts(self.whole, [other.whole for other in alike]))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What tells the language pairs apart, by name: one language of each where they share the other."""
        sides = [{panel.languages[side] for panel in self.panels} for side in (0, 1)]
        for shared, told in ((0, 1), (1, 0)):
            if len(sides[shared]) == 1 and len(sides[told]) == len(self.panels):
                return tuple(name_of(panel.languages[told]) for panel in self.panels)
        return tuple(pair_name(panel.languages) for panel in self.panels)

    @cached_property
    def contrasts(self) -> dict[tuple[str, str], Contrast]:
        """Every encoder in every language, by both names, at the verdict's layer; Holm over all of them."""
        found = {
            (encoder, name): agreed(contrast, self._elsewhere(panel, encoder))
            for encoder in self.panels[0].encoders
            for name, panel in zip(self.names, self.panels, strict=True)
            if (contrast := contrasted(panel, encoder, self.layer)) is not None
        }
        tested = {key: contrast.p for key, contrast in found.items() if contrast.p is not None}
        fixed = dict(zip(tested, holm(list(tested.values())), strict=True))
        return {key: replace(contrast, p=fixed.get(key)) for key, contrast in found.items()}

    def _elsewhere(self, panel: Panel, encoder: str) -> list[Contrast | None]:
        """The same contrast with other seeds."""
        alike = [one for held in self.others for one in held.panels if one.languages == panel.languages]
        return [contrasted(one, encoder, self.layer) for one in alike]

    @property
    def headline(self) -> str:
        """All in a few words. Where languages cannot be tested together, how many went which way."""
        if not self.verdicts:
            return alone(self)
        if self.many and all(v.word == UNTESTED for v in self.verdicts):
            return "; ".join(f"{v.encoder}{self._tallied(v.encoder)}" for v in self.verdicts)
        return together(self.verdicts)

    def _tallied(self, encoder: str) -> str:
        tally = self.tally(encoder)
        return f" {tally}" if tally.startswith((HELPED, HURT, RAISED, LOWERED)) else f": {tally}"

    def tally(self, encoder: str) -> str:
        """Which languages went which way: helped in German; no evidence in Hindi."""
        told = []
        for word in WORDS:
            names = [n for n in self.names if (c := self.contrasts.get((encoder, n))) and c.word == word]
            if names:
                every = len(names) == len(self.names) > 2
                told.append(f"{word} in {f'all {len(names)} languages' if every else listed(names)}")
        return "; ".join(told)


def alone(held: Compared) -> str:
    """The outcome where nothing was compared: each encoder where it is best."""
    panel, names = held.whole, held.whole.encoders
    over = f", on average over {len(held.panels)} languages" if held.many else ""
    over = f", {panel.pair}" if panel.one_way and not held.many else over
    told = [(name, best, panel.score(name, best)) for name in names for best in [panel.best_layer(name)]]
    found = [(name, best, amount(r.value, panel.reading)) for name, best, r in told if r is not None]
    if len(found) == 1 and panel.about.alone:
        ((_, best, value),) = found
        where = "" if best is None else f", layer {best}" if panel.reading.neutral else f" at layer {best}"
        return panel.about.alone.format(value=value, figure=panel.figure) + where + over
    each = [f"{name} {value}" + ("" if best is None else f" (layer {best})") for name, best, value in found]
    where = f" at its {panel.reading.peak}" if any(best is not None for _, best, _ in found) else ""
    return capital(f"{panel.figure}{where}: {', '.join(each)}" if each else panel.told) + over


def compared(run: Run) -> tuple[Compared, ...]:
    """What a run measured, language pairs of one measure together."""
    return tuple(map(Compared, run.sets))


@dataclass(frozen=True, eq=False)
class Measured:
    """One measure: the figure that decides, and the figures that stand beside it."""

    leading: Compared
    beside: tuple[Compared, ...] = ()

    @property
    def sets(self) -> tuple[Compared, ...]:
        return (self.leading, *self.beside)


def measured(run: Run) -> tuple[Measured, ...]:
    """What a run measured, figures of one task together, as the task orders them."""
    keyed: dict[tuple[object, ...], list[Compared]] = {}
    for held in compared(run):
        panel = held.panels[0]
        apart = "" if panel.variant in panel.about.variants else panel.variant
        keyed.setdefault((panel.run, panel.task, apart, panel.seed), []).append(held)
    ordered = (sorted(found, key=_rank) for found in keyed.values())
    return tuple(
        Measured(first, tuple(replace(held, judged=False) for held in others)) for first, *others in ordered
    )


def _rank(held: Compared) -> tuple[object, ...]:
    panel = held.panels[0]
    return place_of(panel.variant, panel.about.variants), place_of(panel.metric, panel.about.metrics)


def verdict_line(run: Run, found: Sequence[Measured] | None = None) -> str:
    """The verdict on a run in words, one line for each thing that was measured; of several languages a
    paragraph for each encoder that fits 80 columns. `found` is what was measured, where that is known."""
    lines = [line for part in run.runs for line in _lines(part, measured(part) if found is None else found)]
    return "\n".join(lines) or "Nothing was measured in this run."


def _lines(run: Run, found: Sequence[Measured]) -> list[str]:
    lines = [line for one in found for line in (*compared_lines(one.leading), *_beside(one))]
    lines += comparison_lines(run.comparison) if run.comparison else map(trained_line, run.trained)
    return lines + list(filter(None, [links_sentence(run)]))


def compared_lines(held: Compared) -> list[str]:
    """The verdicts on one measure, or what stands there when nothing was compared."""
    if not held.verdicts:
        return [
            f"{panel.title}: {_alone(panel, name)}. Nothing was compared."
            for panel in held.panels
            for name in panel.encoders
        ]
    if not held.many:
        return [f"{v.headline}. {v.figures[0]} {v.figures[1]}" for v in held.verdicts]
    return [line for v in held.verdicts for line in _paragraph(held, v)]


def _beside(one: Measured) -> list[str]:
    """The other figures of a measure at the verdict's layer, before and after."""
    layer, told = one.leading.layer, []
    base, *others = one.leading.panels[0].encoders
    judged = {verdict.encoder for verdict in one.leading.verdicts}
    for name in others or [base]:
        # A floor is no encoder that came after.
        whose, moved = ((name,) if judged and name not in judged else (base, name)), []
        for held in one.beside:
            panel = held.whole
            if panel.score(name, layer) is None:  # another's figure is none of its own
                continue
            held_figures = [panel.score(who, layer) for who in dict.fromkeys(whose)]
            figures = [amount(r.value, panel.reading) for r in held_figures if r is not None]
            if figures:
                variant = "" if panel.variant == one.leading.whole.variant else f" ({panel.variant})"
                moved.append(f"{panel.figure}{variant} {' → '.join(figures)}")
        if moved:
            where = "" if layer is None else f" at layer {layer}"
            told += textwrap.wrap(f"Beside it{where}, {name}: {', '.join(moved)}.", 100)
    return told


def _paragraph(held: Compared, verdict: Verdict) -> list[str]:
    body = f"{' '.join(verdict.figures)} {capital(held.tally(verdict.encoder))}."
    wrapped = textwrap.wrap(body, 78, initial_indent="  ", subsequent_indent="  ")
    return [*textwrap.wrap(f"{verdict.headline}.", 80), *wrapped]


def _alone(panel: Panel, encoder: str) -> str:
    best = panel.best_layer(encoder)
    there = [layer for layer in panel.layers if panel.score(encoder, layer)]
    last = there[-1] if there else None
    held = {layer: panel.score(encoder, layer) for layer in (last, best)}
    the_last = "the last " if len(panel.layers) > 1 else ""
    told = [
        f"{amount(score.value, panel.reading)}{_within(score, panel.reading)}"
        + ("" if layer is None else f" at {the_last if layer == last else ''}layer {layer}")
        for layer, score in held.items()
        if score is not None
    ]
    return f"{encoder} has {panel.figure} " + (", and its best, ".join(told) or "of parts only")


def links_sentence(run: Run) -> str:
    """How good the links are; nothing for a run that is about something else."""
    told: dict[str, list[str]] = {}
    for r in run.link_scores:
        if r.group is None:
            name = r.metric.upper() if len(r.metric) < 4 else r.metric
            told.setdefault(r.encoder, []).append(f"{name} {amount(r.value, Metric())}")
    if told:
        scores = "; ".join(f"{linker} has {', '.join(figures)}" for linker, figures in told.items())
        return f"Against the gold standard {scores}."
    if run.panels or not run.grids:
        return ""
    links, pairs = (run.counts.get(name) for name in ("links", "kept"))
    size = f" by {links:,} links" if isinstance(links, int) else ""
    where = f" in {pairs:,} sentence pairs" if isinstance(pairs, int) else ""
    return f"Words were linked{size}{where}; there is no gold standard to score them against."


# -------------------------------------------------------------------------------------------- figures


def _within(score: Result, reading: Metric) -> str:
    if score.low is None or score.high is None:
        return ""
    return f" ({amount(score.low, reading)} to {amount(score.high, reading)})"


def certainty(contrast: Contrast, reading: Metric, tests: int, *, untested: str) -> list[str]:
    """Interval and test of a difference; of several seeds the widest and the least sure."""
    change, many, told = contrast.change, contrast.seeds > 1, []
    if change.low is not None and change.high is not None:
        interval = f"95% intervals of {contrast.seeds} seeds within" if many else "95% interval"
        told.append(f"{interval} {signed(change.low, reading)} to {signed(change.high, reading)}")
    if contrast.p is not None:
        corrected = f", Holm-corrected over {tests} tests" if tests > 1 else ""
        test = " ".join(filter(None, ("paired", change.note, "test", "with each seed" if many else "")))
        told.append(f"{test} {p_value(contrast.p).replace('=', '≤' if many else '=')}{corrected}")
    elif told:
        told.append(untested)
    return told


def _moved(contrast: Contrast, reading: Metric, tests: int = 0) -> str:
    """went from … to …, with the difference, its interval and its test."""
    change = contrast.change
    sure = certainty(contrast, reading, tests, untested="no test")
    return (
        f"went from {amount(contrast.before.value, reading)} to {amount(contrast.after.value, reading)}, "
        + points(change.value, reading)
        + (f" ({'; '.join(sure)})" if sure else ", untested")
    )
