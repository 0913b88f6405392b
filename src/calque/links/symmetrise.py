"""Two directions of links made one.

A statistical model links in one direction: each target word to at most one source word. Run both ways, the
two sets are combined here. Growth takes candidates in sorted order and looks at the links as they then are,
which is what atools and thot do; another order gives other links.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calque.errors import BadInput
from calque.recipe import Choice
from calque.types import Flags, Longs, WordPairs

_NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))


class Symmetrisation(Choice):
    """How two directions become one.

    intersection: links both directions hold; one-to-one, few and sure.
    union: links either holds.
    grow-diag: the intersection, grown by links of the union that touch it and whose row or column is free.
    grow-diag-final: then every link of either direction with a free word.
    grow-diag-final-and: then every link of either direction with two free words.
    """

    INTERSECTION = "intersection"
    UNION = "union"
    GROW_DIAG = "grow-diag"
    GROW_DIAG_FINAL = "grow-diag-final"
    GROW_DIAG_FINAL_AND = "grow-diag-final-and"


def symmetrise(forward: WordPairs, backward: WordPairs, how: Symmetrisation) -> WordPairs:
    """Combine two link sets of one bitext. A score is the mean of the two, an absent link counting 0."""
    if forward.bitext is not backward.bitext and forward.bitext.fingerprint != backward.bitext.fingerprint:
        raise BadInput(
            "the two directions link different text", remedy="link the same bitext both ways, in one order"
        )
    width = int(forward.bitext.target.lengths.max(initial=1))
    here, there = link_codes(forward, width), link_codes(backward, width)
    every = np.union1d(here, there)
    in_forward, in_backward = np.isin(every, here), np.isin(every, there)
    score = np.zeros(len(every), np.float32)
    score[np.searchsorted(every, here)] += forward.score / 2
    score[np.searchsorted(every, there)] += backward.score / 2
    flat, target = np.divmod(every, width)
    starts = np.asarray(forward.bitext.source.offsets)
    sentence = np.searchsorted(starts, flat, side="right") - 1
    union = WordPairs.of(forward.bitext, sentence, flat - starts[sentence], target, score, forward.linker)
    return union.keep(_RULES[how](union, in_forward, in_backward))


def link_codes(pairs: WordPairs, width: int) -> Longs:
    """One number a link, in the order of the links; `width` is over every target index. Shape: (links,)."""
    flat = np.asarray(pairs.bitext.source.offsets)[pairs.sentence] + pairs.source
    return flat * np.int64(width) + pairs.target


def grow(
    forward: set[tuple[int, int]], backward: set[tuple[int, int]], how: Symmetrisation
) -> set[tuple[int, int]]:
    """Grow the links of one sentence.

    >>> sorted(grow({(0, 0), (1, 1)}, {(0, 0), (1, 2)}, Symmetrisation.GROW_DIAG))
    [(0, 0), (1, 1), (1, 2)]
    """
    links = forward & backward
    rest = sorted((forward | backward) - links)
    rows, columns = {i for i, _ in links}, {j for _, j in links}

    def add(link: tuple[int, int]) -> None:
        links.add(link)
        rows.add(link[0])
        columns.add(link[1])

    grown = bool(links)
    while grown:
        grown = False
        for i, j in rest:
            free = i not in rows or j not in columns
            if free and any((i + a, j + b) in links for a, b in _NEIGHBOURS):
                add((i, j))
                grown = True
    if how is Symmetrisation.GROW_DIAG:
        return links
    both = how is Symmetrisation.GROW_DIAG_FINAL_AND
    for direction in (forward, backward):
        for i, j in sorted(direction - links):
            if (i not in rows and j not in columns) or (not both and (i not in rows or j not in columns)):
                add((i, j))
    return links


def _growing(how: Symmetrisation) -> Callable[[WordPairs, Flags, Flags], Flags]:
    def rule(union: WordPairs, in_forward: Flags, in_backward: Flags) -> Flags:
        links = list(zip(union.source.tolist(), union.target.tolist(), strict=True))
        cuts = np.flatnonzero(np.diff(union.sentence)) + 1
        kept = np.zeros(len(links), bool)
        for a, b in zip([0, *cuts.tolist()], [*cuts.tolist(), len(links)], strict=True):
            forward, backward = (
                {link for link, held in zip(links[a:b], flags[a:b].tolist(), strict=True) if held}
                for flags in (in_forward, in_backward)
            )
            grown = grow(forward, backward, how)
            kept[a:b] = [link in grown for link in links[a:b]]
        return kept

    return rule


_RULES: dict[Symmetrisation, Callable[[WordPairs, Flags, Flags], Flags]] = {
    Symmetrisation.INTERSECTION: lambda union, in_forward, in_backward: in_forward & in_backward,
    Symmetrisation.UNION: lambda union, in_forward, in_backward: in_forward | in_backward,
    Symmetrisation.GROW_DIAG: _growing(Symmetrisation.GROW_DIAG),
    Symmetrisation.GROW_DIAG_FINAL: _growing(Symmetrisation.GROW_DIAG_FINAL),
    Symmetrisation.GROW_DIAG_FINAL_AND: _growing(Symmetrisation.GROW_DIAG_FINAL_AND),
}
