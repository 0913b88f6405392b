"""Whether it helped, in words: a line a comparison, corrected for how many there are, and one for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log10
from typing import Literal, TypeAlias

from calque.errors import BadSetting
from calque.stats.seeds import SeedComparison
from calque.stats.significance import holm

#: Points that are none: scores differ by so little where sums are rounded.
_NOTHING = 1e-4

Finding: TypeAlias = Literal["helped", "hurt", "no evidence either way", "cannot tell"]


@dataclass(frozen=True)
class SeedVerdict:
    """What a comparison found; `corrected` is its p after Holm's correction, on which the finding rests."""

    name: str
    comparison: SeedComparison
    corrected: float
    finding: Finding

    def line(self, unit: str = "items") -> str:
        """The finding in a sentence; `unit` says what the items are."""
        told = self.comparison
        gain = f"{points(told.difference)} points" + (
            f" over {told.languages} languages" if told.languages > 1 else ""
        )
        return f"{self.name}: {self._headline()}: {gain} ({self._grounds(unit)}){self._limits()}"

    def _headline(self) -> str:
        told = self.comparison
        if told.single:
            return {"seed": "one seed: cannot tell", "cluster": "one cluster of items: cannot tell"}[
                told.single
            ]
        return f"{self.finding}, given {told.given}" if told.conditional else self.finding

    def _grounds(self, unit: str) -> str:
        told = self.comparison
        both = sorted({told.baseline.seeds, told.method.seeds})
        seeds = " and ".join(map(str, both)) + (" seed" if both == [1] else " seeds")
        raised = "" if self.corrected == told.p else f", after Holm {probability(self.corrected)}"
        return f"{probability(told.p)}{raised}; {seeds}, {told.items:,} {unit}"

    def _limits(self) -> str:
        told = self.comparison
        if told.single:
            other = "seed" if told.single == "seed" else "sample of items"
            return f"; what another {other} would give is not known"
        if self.finding != "no evidence either way" or told.detectable is None:
            return ""
        return f"; a true difference under {_size(told.detectable)} points would often go unseen"


def verdicts(comparisons: Mapping[str, SeedComparison], *, level: float = 0.05) -> list[SeedVerdict]:
    """What each comparison found when all are taken together: Holm's p below `level`.

    Comparisons with one seed find nothing, whatever their p.
    """
    if not 0 < level < 1:
        raise BadSetting(f"level is {level}", remedy="between 0 and 1")
    raised = holm([told.p for told in comparisons.values()])
    return [
        SeedVerdict(name, told, p, _finding(told, p, level))
        for (name, told), p in zip(comparisons.items(), raised, strict=True)
    ]


def _finding(told: SeedComparison, p: float, level: float) -> Finding:
    if told.single:
        return "cannot tell"
    if p >= level or told.difference == 0:
        return "no evidence either way"
    return "helped" if told.difference > 0 else "hurt"


def overall(found: Sequence[SeedVerdict]) -> str:
    """One sentence for all tasks.

    >>> overall([])
    'overall: nothing was compared'
    """
    names: dict[Finding, list[str]] = {}
    for one in found:
        names.setdefault(one.finding, []).append(one.name)
    parts = [f"{finding} on {', '.join(names[finding])}" for finding in _ORDER if finding in names]
    partly = any(one.comparison.conditional and not one.comparison.single for one in found)
    given = " (given these seeds or items only)" if partly else ""
    return f"overall: {'; '.join(parts) or 'nothing was compared'}{given}"


_ORDER: tuple[Finding, ...] = ("helped", "hurt", "no evidence either way", "cannot tell")


def points(difference: float) -> str:
    """A signed difference in points.

    >>> points(0.0182), points(-0.002), points(0.0)
    ('+1.8', '−0.2', '0.0')
    """
    size = _size(abs(difference))
    sign = "" if size == "0.0" else "+" if difference > 0 else "−"
    return sign + size


def _size(share: float) -> str:
    number = 100 * share
    text = f"{number:.1f}"
    if text == "0.0" and number > _NOTHING:
        return f"{number:.{ceil(-log10(number))}f}"
    return text


def probability(p: float) -> str:
    """A p-value as one reads it, which never claims to be nothing.

    >>> probability(0.0123), probability(0.00001), probability(1.0)
    ('p = 0.012', 'p < 0.001', 'p = 1.000')
    """
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"
