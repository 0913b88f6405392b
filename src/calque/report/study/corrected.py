"""What p-values of a study are corrected for, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calque.report.study.over_seeds import SeedMeasure
from calque.report.study.reading import StudyFolder
from calque.report.study.told import worded
from calque.report.verdict import UNTESTED
from calque.report.words import listed


def corrections(study: StudyFolder, measures: Sequence[SeedMeasure]) -> str:
    """What p-values are corrected for; nothing where nothing was tested."""
    return worded(" ".join(_corrections(study, measures)), study)


def _corrections(study: StudyFolder, measures: Sequence[SeedMeasure]) -> Iterator[str]:
    held = study.comparisons
    tested = [one for one in measures if any(v.word != UNTESTED for v in one.held.verdicts)]
    if held:
        counts = (
            f"{one.group.encoder}: {counted(len(one.held.tasks), 'mean')} and "
            f"{counted(len(one.held.rows), 'single language')}"
            for one in held
        )
        levels = listed([f"{level:g}" for level in sorted({one.level for one in held})])
        yield (
            "On tasks p is corrected by Holm’s method within the comparison of one encoder: means over "
            "languages for all of its tasks and methods, single languages likewise for all of its tasks, "
            f"methods and languages ({'; '.join(counts)}). Below {levels} it counts."
        )
        if len({one.group for one in held}) < len(held):
            yield "Of two tables of one task the second is in a comparison of its own."
    if study.contrasts:
        yield "Methods beside another method are corrected apart from those beside the baseline."
    if tested:
        begin = "Measures are corrected apart" if held else "p is corrected by Holm’s method"
        yield (
            f"{begin}: each measure of one encoder by itself, for all of its methods at the one or two "
            "layers that a verdict speaks of, and its single languages for all of its methods and languages."
        )
    across = [*(["encoders"] if len(study.groups) > 1 else []), *(["measures"] if len(tested) > 1 else [])]
    if across and (held or tested):
        yield f"Nothing is corrected across {' or '.join(across)}."


def counted(many: int, what: str) -> str:
    """
    >>> counted(1, "mean"), counted(1200, "mean")
    ('1 mean', '1,200 means')
    """
    return f"{many:,} {what}{'' if many == 1 else 's'}"
