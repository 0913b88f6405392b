"""All that a study says, each part computed once: what its page shows, and what its tables hold."""

from __future__ import annotations

from functools import cached_property

from calque.report.study.contrasts import ContrastView, contrast_views
from calque.report.study.corrected import corrections
from calque.report.study.cost import CostTable, cost_table
from calque.report.study.gains import GainTable, Split, gain_tables, split
from calque.report.study.over_seeds import SeedMeasure, measure_table, seed_measures
from calque.report.study.reading import StudyFolder
from calque.report.study.retrieval import Beside, beside
from calque.report.study.table import BigTable, RowBlock, Scores, published_blocks, task_table
from calque.report.study.told import Finding, findings, told_lines


class Content:
    """The parts of a study; each is made when it is first asked for."""

    def __init__(self, study: StudyFolder) -> None:
        self.study, self.scores = study, Scores(study)

    @cached_property
    def measures(self) -> tuple[SeedMeasure, ...]:
        return seed_measures(self.study)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return findings(self.scores, self.measures)

    @property
    def lines(self) -> list[str]:
        """What the study found, a line a task or measure; then what methods have over each other."""
        return told_lines(self.study, self.findings)

    @cached_property
    def corrections(self) -> str:
        return corrections(self.study, self.measures)

    @cached_property
    def tasks(self) -> BigTable:
        """Every method, task and language."""
        return task_table(self.scores)

    @cached_property
    def published(self) -> tuple[RowBlock, ...]:
        return published_blocks(self.scores, self.tasks.heads)

    @cached_property
    def contrasts(self) -> tuple[ContrastView, ...]:
        return tuple(contrast_views(self.study))

    @cached_property
    def gains(self) -> tuple[GainTable, ...]:
        retrieval = [one for one in self.measures if one.retrieval]
        return tuple(gain_tables(self.scores, retrieval))

    @cached_property
    def split(self) -> Split | None:
        return split(self.scores)

    @cached_property
    def beside(self) -> Beside | None:
        return beside(self.scores, self.measures)

    @cached_property
    def measured(self) -> BigTable:
        """Every measure over its seeds."""
        return measure_table(self.study, self.measures)

    @cached_property
    def cost(self) -> CostTable:
        return cost_table(self.study)
