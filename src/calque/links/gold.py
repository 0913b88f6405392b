"""Links scored against hand-made ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calque.errors import BadInput
from calque.stats.metrics import AlignmentCounts
from calque.types import Bitext, Longs, WordPairs


@dataclass(frozen=True, eq=False)
class GoldLinks:
    """Hand-made links; `possible` holds the sure ones too.

    Shape: sentences (judged,): which sentences of the bitext were annotated, increasing; others say nothing.
    `absent` counts annotated sentences that are not in the bitext.
    """

    sure: WordPairs
    possible: WordPairs
    sentences: Longs
    absent: int = 0

    @property
    def bitext(self) -> Bitext:
        return self.sure.bitext


@dataclass(frozen=True, eq=False)
class LinkScores:
    """Figures over all judged sentences together, and the counts of each sentence behind them.

    Precision |A∩P|/|A|, recall |A∩S|/|S|, AER = 1 − (|A∩S| + |A∩P|)/(|A| + |S|).
    """

    precision: float
    recall: float
    f1: float
    aer: float
    sentences: int
    counts: AlignmentCounts


def score_links(pairs: WordPairs, gold: GoldLinks) -> LinkScores:
    """Score links on the judged sentences that their bitext holds, matched by line number."""
    mine, theirs = _match(pairs.bitext, gold)
    width = 1 + int(
        max(column.max(initial=0) for links in (pairs, gold.possible) for column in _words(links))
    )
    made = _codes(pairs, mine, width)
    sure, possible = _codes(gold.sure, theirs, width), _codes(gold.possible, theirs, width)
    sets = (made, sure, np.intersect1d(made, sure), np.intersect1d(made, possible))
    counts = AlignmentCounts(*(np.bincount(codes // width**2, minlength=len(mine)) for codes in sets))
    figures = counts.scores()
    return LinkScores(figures.precision, figures.recall, figures.f1, figures.aer, len(mine), counts)


def _match(bitext: Bitext, gold: GoldLinks) -> tuple[Longs, Longs]:
    """The judged sentences that both hold, as numbers in either. Shape: both (n,)."""
    lines = gold.bitext.line[gold.sentences]
    _, mine, theirs = np.intersect1d(bitext.line, lines, return_indices=True)
    if not len(mine):
        raise BadInput(
            f"none of the {len(lines)} judged sentences is among the links'",
            where=gold.bitext.origin or None,
            remedy="give gold links of the same file, line by line",
        )
    theirs = gold.sentences[theirs]
    for a, b in ((bitext.source, gold.bitext.source), (bitext.target, gold.bitext.target)):
        other = np.flatnonzero(a.lengths[mine] != b.lengths[theirs])
        if len(other):
            raise BadInput(
                f"gold links are of another text: {b.lengths[theirs[other[0]]]} words where the links have "
                f"{a.lengths[mine[other[0]]]} ({a.language})",
                where=bitext.origin or None,
                line=int(bitext.line[mine[other[0]]]),
                remedy="read both texts with the same tokenisation",
            )
    return mine, theirs


def _words(links: WordPairs) -> tuple[Longs, Longs]:
    return links.source.astype(np.int64), links.target.astype(np.int64)


def _codes(links: WordPairs, sentences: Longs, width: int) -> Longs:
    """One number a link of these sentences, which are counted from 0 in the order given. Shape: (n,)."""
    place = np.full(len(links.bitext), -1, np.int64)
    place[sentences] = np.arange(len(sentences))
    row = place[links.sentence]
    source, target = _words(links)
    codes: Longs = np.unique(((row * width + source) * width + target)[row >= 0])
    return codes
