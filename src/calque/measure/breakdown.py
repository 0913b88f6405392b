"""Breakdowns: the same retrieval scored by kind of word, with the size and the interval of every bin.

A breakdown is a function from links to bins; a new one is one more entry in `BREAKDOWNS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from calque.errors import BadSetting
from calque.recipe import suggestion
from calque.stats.intervals import bootstrap_ratios
from calque.text.frequency import Frequencies, frequencies
from calque.text.languages import script_of
from calque.types import UPOS, Doubles, Flags, Ints, Longs, Sentences, WordPairs

#: Groups of universal POS tags; each is the plain mean of its members, two tags of one member are pooled.
POS_GROUPS = {
    "lexical": ("NUM", "PUNCT", "PROPN"),
    "closed": ("DET", "ADP", "CCONJ SCONJ", "PRON", "AUX"),
    "open": ("NOUN", "ADV", "ADJ", "VERB"),
}
#: The lowest difference of ranks in each bin.
RANK_GAPS = {"0-9": 0, "10-99": 10, "100-999": 100, "1000-9999": 1000, "10000+": 10000}
#: A direction is one row of a (2, links) array of queries, or both rows.
DIRECTIONS = {"forward": [0], "backward": [1], "both": [0, 1]}


@dataclass(frozen=True, eq=False)
class Linked:
    """Links, and what a breakdown may ask about them besides their words. Shape: seen (links,).

    `frequencies` are of the two languages, over the vocabulary of the links; where None, they are counted in
    the text of the links.
    """

    pairs: WordPairs
    seen: Flags
    frequencies: tuple[Frequencies, Frequencies] | None = None


@dataclass(frozen=True, eq=False)
class Bins:
    """The bin of every query. Shape: code (2, links): each link as a forward and as a backward query.

    `groups` name plain means over some of the bins.
    """

    names: tuple[str, ...]
    code: Longs
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def keep(self, links: Flags | Longs) -> Bins:
        """The bins of some of the links."""
        return replace(self, code=self.code[:, links])


@dataclass(frozen=True)
class BinScore:
    """The mean of one bin, over how many queries, and its interval; fields as in a `Result`."""

    group: tuple[str, str]
    value: float
    count: int
    low: float
    high: float


def by_pos(linked: Linked) -> Bins:
    """The query word's universal POS tag."""
    bitext, at = linked.pairs.bitext, linked.pairs
    tags = [_tags(bitext.source, at.sentence, at.source), _tags(bitext.target, at.sentence, at.target)]
    return Bins(UPOS, np.stack(tags), POS_GROUPS)


def by_rank_gap(linked: Linked) -> Bins:
    """How far apart the two words stand in their languages' frequency lists, in powers of ten."""
    pairs, bitext = linked.pairs, linked.pairs.bitext
    source, target = linked.frequencies or (frequencies(bitext.source), frequencies(bitext.target))
    ranks = source.rank[pairs.source_ids], target.rank[pairs.target_ids]
    code = np.searchsorted(list(RANK_GAPS.values()), np.abs(ranks[0] - ranks[1]), "right") - 1
    code[(ranks[0] == 0) | (ranks[1] == 0)] = len(RANK_GAPS)
    return _same_both_ways((*RANK_GAPS, "unranked"), code)


def by_script(linked: Linked) -> Bins:
    """The script of the word in the target language, in both directions."""
    types, inverse = np.unique(linked.pairs.target_ids, return_inverse=True)
    strings = linked.pairs.bitext.target.vocabulary
    names, script = np.unique([script_of(strings[i]) for i in types.tolist()], return_inverse=True)
    return _same_both_ways(tuple(names.tolist()), script[inverse] if len(types) else inverse)


def by_seen(linked: Linked) -> Bins:
    """Whether the pair of word types was among those that an encoder was trained on."""
    return _same_both_ways(("unseen", "seen"), linked.seen.astype(np.int64))


BREAKDOWNS: dict[str, Callable[[Linked], Bins]] = {
    "pos": by_pos,
    "rank-gap": by_rank_gap,
    "script": by_script,
    "seen": by_seen,
}


def bin_links(names: Sequence[str], linked: Linked) -> dict[str, Bins]:
    """The bins of these breakdowns, by name."""
    for name in names:
        if name not in BREAKDOWNS:
            raise BadSetting(f"unknown breakdown {name!r}", remedy=suggestion(name, BREAKDOWNS))
    return {name: BREAKDOWNS[name](linked) for name in names}


def queries(ways: list[int], fared: Flags | Doubles, cluster: Longs) -> tuple[Doubles, Longs]:
    """Value and cluster of every query of some ways. Shape: fared (ways, links), cluster (links,)."""
    return fared[ways].ravel().astype(np.float64), np.tile(cluster, len(ways))


def bin_scores(
    name: str,
    bins: Bins,
    ways: list[int],
    fared: Flags | Doubles,
    cluster: Longs,
    *,
    rounds: int = 1000,
    seed: int = 0,
) -> list[BinScore]:
    """The mean of every bin that has queries, then of every group.

    Shape: fared (ways, links), cluster (links,).
    """
    values, clusters = queries(ways, fared, cluster)
    names, place = np.unique(clusters, return_inverse=True)
    shape = len(bins.names), len(names)
    cell = np.ravel_multi_index((bins.code[ways].ravel(), place), shape)
    right, asked = (
        np.bincount(cell, weights, shape[0] * shape[1]).reshape(shape) for weights in (values, None)
    )
    sizes = asked.sum(1)
    shares = _shares(name, bins, sizes)
    weights = np.stack(list(shares.values()))
    upper, lower = weights @ right, weights @ asked
    means, counts = upper.sum(1) / lower.sum(1), (weights > 0) @ sizes
    intervals = bootstrap_ratios(upper, lower, rounds=rounds, seed=seed)
    rows = zip(shares, means.tolist(), counts.tolist(), intervals, strict=True)
    return [BinScore(group, mean, int(count), ends.low, ends.high) for group, mean, count, ends in rows]


def _shares(name: str, bins: Bins, sizes: Longs) -> dict[tuple[str, str], Doubles]:
    """What a query of each bin counts for in each figure. Shape: sizes (bins,), each value (bins,).

    In a group every member weighs the same, however many queries it has.
    """
    shares = {(name, bins.names[i]): np.eye(len(sizes))[i] for i in np.flatnonzero(sizes)}
    for group, members in bins.groups.items():
        weight = np.zeros(len(sizes))
        for member in members:
            tags = [bins.names.index(tag) for tag in member.split()]
            weight[tags] = 1 / max(sizes[tags].sum(), 1)
        if sizes @ weight:
            shares[f"{name}-group", group] = weight
    return shares


def _same_both_ways(names: tuple[str, ...], code: Longs) -> Bins:
    return Bins(names, np.stack([code, code]))


def _tags(side: Sentences, sentence: Ints, word: Ints) -> Longs:
    if side.tags is None:
        raise BadSetting(
            f"no POS breakdown: the {side.language} side of these pairs carries no tags",
            remedy="link two sentence-aligned CoNLL-U files, whose tags are kept",
        )
    return np.asarray(side.tags[side.offsets[sentence] + word], np.int64)
