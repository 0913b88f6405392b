"""Breakdowns: the same retrieval scored by kind of word, with the size and the interval of every bin.

A breakdown is a function from links to bins; a new one is one more entry in `BREAKDOWNS`. What is asked of
something else than links has the parts: `stepped` makes bins of numbers, `scripts` of words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from calque.errors import BadSetting
from calque.recipe import suggestion
from calque.stats.intervals import bootstrap_ratios
from calque.text.frequency import Frequencies, frequencies
from calque.text.languages import WORLD, scripts_of
from calque.text.world import word_senses
from calque.types import UPOS, Bitext, Doubles, Encoder, Flags, Ints, Longs, Sentences, WordPairs

#: Groups of universal POS tags; each is the plain mean of its members, two tags of one member are pooled.
POS_GROUPS = {
    "lexical": ("NUM", "PUNCT", "PROPN"),
    "closed": ("DET", "ADP", "CCONJ SCONJ", "PRON", "AUX"),
    "open": ("NOUN", "ADV", "ADJ", "VERB"),
}
#: The lowest difference of ranks in each bin.
RANK_GAPS = {"0-9": 0, "10-99": 10, "100-999": 100, "1000-9999": 1000, "10000+": 10000}
#: The fewest pieces of a word, and the fewest words of a sentence, in each bin.
PIECES = {"1": 1, "2": 2, "3": 3, "4+": 4}
LENGTHS = {"1-5": 1, "6-10": 6, "11-20": 11, "21-40": 21, "41+": 41}
#: The bin of words of one sense, and the plain mean of all others.
ONE_SENSE, SEVERAL = "unambiguous", "ambiguous"
#: A direction is one row of a (2, links) array of queries, or both rows.
DIRECTIONS = {"forward": [0], "backward": [1], "both": [0, 1]}


@dataclass(frozen=True, eq=False)
class Linked:
    """Links, and what a breakdown may ask about them besides their words.

    Shape: seen (links,), pieces (types,). `frequencies` are of the two languages, over the vocabulary of the
    links; where None, they are counted in the text of the links. `pieces` are those of each word of the
    vocabulary, None where words are not cut.
    """

    pairs: WordPairs
    seen: Flags
    frequencies: tuple[Frequencies, Frequencies] | None = None
    pieces: Longs | None = None


@dataclass(frozen=True, eq=False)
class Bins:
    """The bin of every query. Shape: code (ways, queries): of links, as forward and as backward queries.

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
    code = stepped(np.abs(ranks[0] - ranks[1]), RANK_GAPS)
    code[(ranks[0] == 0) | (ranks[1] == 0)] = len(RANK_GAPS)
    return _same_both_ways((*RANK_GAPS, "unranked"), code)


def by_script(linked: Linked) -> Bins:
    """The script of the word in the target language, in both directions."""
    types, inverse = np.unique(linked.pairs.target_ids, return_inverse=True)
    names, script = scripts([linked.pairs.bitext.target.vocabulary[i] for i in types.tolist()])
    return _same_both_ways(names, script[inverse])


def by_seen(linked: Linked) -> Bins:
    """Whether the pair of word types was among those that an encoder was trained on."""
    return _same_both_ways(("unseen", "seen"), linked.seen.astype(np.int64))


def by_pieces(linked: Linked) -> Bins:
    """How many pieces the query word is cut into."""
    if linked.pieces is None:
        raise BadSetting(
            "no breakdown by pieces: the first encoder has vectors of whole words",
            remedy="name an encoder first that cuts words into pieces",
        )
    pieces = linked.pieces[np.stack([linked.pairs.source_ids, linked.pairs.target_ids])]
    return Bins(tuple(PIECES), stepped(np.maximum(pieces, 1), PIECES))


def by_sense(linked: Linked) -> Bins:
    """The sense meant, as the invented language of calque's world tells it."""
    pairs = linked.pairs
    told = [language in WORLD for language in pairs.languages]
    if not any(told):
        raise BadSetting(
            f"no breakdown by sense: {' and '.join(pairs.languages)} do not tell which sense is meant",
            remedy=f"pairs with {' or '.join(sorted(WORLD))} do, from `calque world`",
        )
    side, ids = (
        (pairs.bitext.target, pairs.target_ids) if told[1] else (pairs.bitext.source, pairs.source_ids)
    )
    types, inverse = np.unique(ids, return_inverse=True)
    senses = word_senses([side.vocabulary[i] for i in types.tolist()], side.language)
    names, code = _named([sense or ONE_SENSE for sense in senses])
    one, several = (tuple(n for n in names if (n == ONE_SENSE) is alone) for alone in (True, False))
    return Bins(names, np.stack([code[inverse]] * 2), {SEVERAL: several, ONE_SENSE: one})


BREAKDOWNS: dict[str, Callable[[Linked], Bins]] = {
    "pos": by_pos,
    "rank-gap": by_rank_gap,
    "script": by_script,
    "pieces": by_pieces,
    "sense": by_sense,
    "seen": by_seen,
}


def bin_links(names: Sequence[str], linked: Linked) -> dict[str, Bins]:
    """The bins of these breakdowns, by name."""
    for name in names:
        if name not in BREAKDOWNS:
            raise BadSetting(f"unknown breakdown {name!r}", remedy=suggestion(name, BREAKDOWNS))
    return {name: BREAKDOWNS[name](linked) for name in names}


def sentence_bins(bitext: Bitext) -> dict[str, Bins]:
    """Sentences asked in both directions, by the query's number of words."""
    lengths = np.stack([bitext.source.lengths, bitext.target.lengths])
    return {"length": Bins(tuple(LENGTHS), stepped(np.maximum(lengths, 1), LENGTHS))}


def stepped(values: Longs, bins: Mapping[str, int]) -> Longs:
    """The bin of each number, given each bin's lowest. Shape: any, the same back.

    >>> stepped(np.array([1, 3, 9]), {"1-2": 1, "3-8": 3, "9+": 9}).tolist()
    [0, 1, 2]
    """
    return np.searchsorted(list(bins.values()), values, "right") - 1


def scripts(words: Sequence[str]) -> tuple[tuple[str, ...], Longs]:
    """Names of the scripts that occur, and which of them each word is in. Shape: (words,)."""
    return _named(scripts_of(words))


def has_pieces(encoder: Encoder, text: Sentences) -> bool:
    """Whether an encoder cuts words into pieces; static vectors do not."""
    try:
        encoder.batch(text.select([0] if len(text) else []))
    except BadSetting:
        return False
    return True


def piece_counts(encoder: Encoder, bitext: Bitext, chunk: int = 4096) -> Longs | None:
    """How many pieces an encoder cuts each word that occurs into; None when it has no pieces.

    A word of both languages is cut as one of the second. Shape: (types,), over the vocabulary of the bitext.
    """
    if not has_pieces(encoder, bitext.source):
        return None
    counts = np.zeros(len(bitext.source.vocabulary), np.int64)
    target = np.unique(bitext.target.ids)
    for side, used in ((bitext.source, np.setdiff1d(bitext.source.ids, target)), (bitext.target, target)):
        for start in range(0, len(used), chunk):
            words = used[start : start + chunk]
            cut = encoder.batch(replace(side, ids=words, offsets=np.arange(len(words) + 1), tags=None))
            counts[words[cut.row]] = cut.end - cut.start
    return counts


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


def _named(labels: Sequence[str]) -> tuple[tuple[str, ...], Longs]:
    names, code = np.unique(np.asarray(labels, str), return_inverse=True)
    return tuple(names.tolist()), code


def _same_both_ways(names: tuple[str, ...], code: Longs) -> Bins:
    return Bins(names, np.stack([code, code]))


def _tags(side: Sentences, sentence: Ints, word: Ints) -> Longs:
    if side.tags is None:
        raise BadSetting(
            f"no POS breakdown: the {side.language} side of these pairs carries no tags",
            remedy="link two sentence-aligned CoNLL-U files, whose tags are kept",
        )
    return np.asarray(side.tags[side.offsets[sentence] + word], np.int64)
