"""Whether it helped, in words: at the last layer, and at the layer where the baseline is best.

Both layers are chosen without looking at the encoder that is judged, so choosing them cannot flatter it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from calque.report.collect import Metric, Panel, Run
from calque.stats.significance import holm
from calque.types import Result

ALPHA = 0.05
WORDS = ("helped", "hurt", "mixed", "no evidence", "untested")
HELPED, HURT, MIXED, NONE, UNTESTED = WORDS


@dataclass(frozen=True)
class Contrast:
    """An encoder before and after at one layer. In a verdict `p` is Holm-corrected; None when untested."""

    before: Result
    after: Result
    change: Result
    p: float | None
    lower: bool = False

    @property
    def layer(self) -> int | None:
        return self.change.layer

    @property
    def word(self) -> str:
        """helped, hurt or no evidence."""
        if self.p is None:
            return UNTESTED
        if self.p >= ALPHA or self.change.value == 0:
            return NONE
        return HELPED if (self.change.value > 0) != self.lower else HURT


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
    def place(self) -> str:
        """The last layer, or the last that both have when one of the two goes on; nothing without layers."""
        if self.last.layer is None:
            return ""
        if len(self.panel.layers) == 1:
            return f"at layer {self.last.layer} "
        whose = "" if self.last.layer == self.panel.layers[-1] else " of both"
        return f"at the last layer{whose} ({self.last.layer}) "

    @property
    def word(self) -> str:
        words = {self.last.word, self.best.word}
        if len(words) > 1 and NONE in words:
            words.discard(NONE)
        return MIXED if len(words) > 1 else words.pop()

    @property
    def headline(self) -> str:
        """A few words: who helped, or did not, and where when it was not everywhere."""
        name, base = self.encoder, self.last.before.encoder
        if self.word == MIXED:
            return (
                f"{name} {self.last.word} at the last layer and {self.best.word} at the best layer of {base}"
            )
        if self.word == UNTESTED:
            return f"{name} was not tested against {base}"
        if self.word == NONE:
            return f"No evidence that {name} helped or hurt"
        if self.last.word == self.best.word:
            return f"{name} {self.word}"
        where = "at the last layer" if self.last.word == self.word else f"at the best layer of {base}"
        return f"{name} {self.word}, but only {where}"

    @property
    def figures(self) -> tuple[str, str]:
        """What happened at the last layer, and where the baseline is best."""
        reading, base = self.panel.reading, self.last.before.encoder
        first = f"{self.place}{self.panel.title} {_moved(self.last, reading, self.tests)}."
        if len(self.panel.layers) == 1:
            return first, f"It was measured on {self.last.change.count:,} items."
        if self.same:
            return first, f"That is also where {base} is best."
        return first, f"At layer {self.best.layer}, where {base} is best, it {_moved(self.best, reading)}."


def together(found: Sequence[Verdict]) -> str:
    """Several verdicts in one headline: who helped, who hurt, and of whom nothing can be said."""
    if len(found) == 1:
        return found[0].headline
    told = []
    for word in WORDS:
        names = _listed([verdict.encoder for verdict in found if verdict.word == word])
        if names:
            told.append(_HEADLINES[word].format(names))
    line = "; ".join(told)
    return line if line.startswith(tuple(v.encoder for v in found)) else line[:1].upper() + line[1:]


_HEADLINES = {
    HELPED: "{} helped",
    HURT: "{} hurt",
    MIXED: "{} helped at one layer and hurt at another",
    NONE: "no evidence for or against {}",
    UNTESTED: "{} not tested",
}


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def verdicts(panel: Panel) -> list[Verdict]:
    """One verdict an encoder that was compared, with the tests of this panel's verdicts Holm-corrected."""
    found: list[Verdict] = []
    for encoder in panel.encoders:
        contrasts = [c for layer in panel.layers if (c := contrasted(panel, encoder, layer)) is not None]
        if contrasts:
            sign = 1 if panel.reading.lower else -1
            best = min(contrasts, key=lambda c: sign * c.before.value)
            found.append(Verdict(panel, encoder, contrasts[-1], best, 0))
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
    return Contrast(before, after, change, change.p, panel.reading.lower)


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


def verdict_line(run: Run) -> str:
    """The verdict on a run in words, one line for each thing that was measured."""
    lines = [line for part in run.runs for line in _lines(part)]
    return "\n".join(lines) or "Nothing was measured in this run."


def _lines(run: Run) -> list[str]:
    lines = [line for panel in run.panels for line in panel_lines(panel)]
    return lines + list(filter(None, [links_sentence(run)]))


def panel_lines(panel: Panel) -> list[str]:
    """The verdicts of one panel, or what stands there when nothing was compared."""
    judged = verdicts(panel)
    if judged:
        return [f"{v.headline}: {v.figures[0]} {v.figures[1]}" for v in judged]
    return [f"{panel.title}: {_alone(panel, name)}. Nothing was compared." for name in panel.encoders]


def _alone(panel: Panel, encoder: str) -> str:
    best = panel.best_layer(encoder)
    last = max((layer for layer in panel.layers if panel.score(encoder, layer)), key=lambda x: x or 0)
    held = {layer: panel.score(encoder, layer) for layer in (last, best)}
    told = [
        f"{amount(score.value, panel.reading)}{_within(score, panel.reading)}"
        + ("" if layer is None else f" at {'the last ' if layer == last else ''}layer {layer}")
        for layer, score in held.items()
        if score is not None
    ]
    return f"{encoder} has {panel.metric} " + ", and its best, ".join(told)


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


def amount(value: float, reading: Metric) -> str:
    """A figure with its unit.

    >>> amount(0.4123, Metric()), amount(0.4123, Metric(percent=False))
    ('41.2%', '0.412')
    """
    return f"{value * 100:.1f}%" if reading.percent else f"{value:.3f}"


def signed(value: float, reading: Metric) -> str:
    """A difference with its sign: in points of a percentage, or as it is.

    >>> signed(-0.0123, Metric()), signed(0.0, Metric())
    ('−1.2', '0.0')
    """
    text = f"{value * 100:+.1f}" if reading.percent else f"{value:+.3f}"
    return (text[1:] if not text.strip("+-0.") else text).replace("-", "−")


def p_value(p: float) -> str:
    """A p-value that never claims to be nothing.

    >>> p_value(0.0421), p_value(0.00004)
    ('p = 0.042', 'p < 0.001')
    """
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _within(score: Result, reading: Metric) -> str:
    if score.low is None or score.high is None:
        return ""
    return f" ({amount(score.low, reading)} to {amount(score.high, reading)})"


def _moved(contrast: Contrast, reading: Metric, tests: int = 0) -> str:
    """went from … to …, with the difference, its interval and its test."""
    change = contrast.change
    points = " points" if reading.percent else ""
    sure = []
    if change.low is not None and change.high is not None:
        sure.append(f"95% interval {signed(change.low, reading)} to {signed(change.high, reading)}")
    if contrast.p is not None:
        corrected = f", Holm-corrected over {tests} tests" if tests > 1 else ""
        test = " ".join(filter(None, ("paired", change.note, "test")))
        sure.append(f"{test} {p_value(contrast.p)}{corrected}")
    return (
        f"went from {amount(contrast.before.value, reading)} to {amount(contrast.after.value, reading)}, "
        f"{signed(change.value, reading)}{points}" + (f" ({'; '.join(sure)})" if sure else ", untested")
    )
