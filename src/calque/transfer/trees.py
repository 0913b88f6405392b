"""Dependency trees: the best one under scores of arcs, and what is wrong with one that is none.

Heads are given one a word: 0 is the root, k the k-th word.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calque.errors import BadInput
from calque.types import Doubles, Longs


def single_root_tree(scores: ArrayLike) -> Longs:
    """Heads of the tree with the highest sum of scores in which one word alone hangs from the root.

    Shape: (n + 1, n + 1), scores[dependent, head], to (n,). Row 0 and the diagonal are not read. An arc of
    score −∞ is taken only where no tree does without; then there are as few of them as can be.

    >>> single_root_tree([[0, 0, 0], [5, 0, 1], [4, 2, 0]])  # both words would hang from the root
    array([0, 1])
    """
    arcs = _arcs(scores)
    greedy = arcs.argmax(1)
    return greedy if is_tree(greedy) is None else _contracted(arcs)


def is_tree(heads: Iterable[int]) -> str | None:
    """What keeps these heads from being a tree with one root, in words; None when they are one.

    >>> is_tree([2, 0, 2]), is_tree([2, 1, 0]), is_tree([0, 0])
    (None, 'word 1 hangs from itself, by way of 2', '2 words hang from the root: 1, 2')
    """
    above = [0, *map(int, heads)]
    words = range(1, len(above))
    if astray := [k for k in words if not 0 <= above[k] < len(above)]:
        return f"word {astray[0]} hangs from {above[astray[0]]}, and there are {len(words)} words"
    roots = [k for k in words if above[k] == 0]
    if not roots:
        return "no word hangs from the root"
    if len(roots) > 1:
        return f"{len(roots)} words hang from the root: {', '.join(map(str, roots))}"
    return _cycle(above)


def _cycle(above: list[int]) -> str | None:
    """The first cycle met, in words. `above[k]` is the head of word k."""
    seen = [0] * len(above)  # from which word it was reached first
    for start in range(1, len(above)):
        at = start
        while at and not seen[at]:
            seen[at] = start
            at = above[at]
        if at and seen[at] == start:
            way = [at]
            while above[way[-1]] != at:
                way.append(above[way[-1]])
            through = f", by way of {', '.join(map(str, way[1:]))}" if way[1:] else ""
            return f"word {at} hangs from itself{through}"
    return None


def _arcs(scores: ArrayLike) -> Doubles:
    """Scores of words' arcs, checked; no word hangs from itself. Shape: (n + 1, n + 1) to (n, n + 1)."""
    given = np.asarray(scores, np.float64)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or len(given) < 2:
        raise BadInput(f"scores of arcs have shape {given.shape}", remedy="(n + 1, n + 1), with n at least 1")
    arcs = given[1:].copy()
    np.fill_diagonal(arcs[:, 1:], -np.inf)
    if not (arcs < np.inf).all():
        raise BadInput("a score of an arc is not a number, or infinite")
    return arcs


def _contracted(arcs: Doubles) -> Longs:
    """The best tree by contracting cycles (Chu & Liu; Edmonds). Shape: (n, n + 1) to (n,).

    Every word takes its best head among the *words*. That must close a cycle, which becomes one word whose
    arcs weigh what entering there gains or loses, and so on until one word is left. It holds all others, and
    its best arc from the root is the only one. Then cycles are opened, each where that arc or another enters.
    """
    n = len(arcs)
    weight, arc = _weights(arcs), np.arange(arcs.size).reshape(arcs.shape)
    node = list(range(n))  # which node stands in which row: a word, or a cycle, numbered as they are made
    inside: list[list[int]] = [[] for _ in range(n)]
    taken, gain = [0] * n, np.zeros(n, np.complex128)
    path, left = [0], n
    while left > 1:
        row = path[-1]
        head = int(weight[row, 1:].argmax())
        taken[node[row]], gain[row] = int(arc[row, head + 1]), weight[row, head + 1]
        if head not in path:
            path.append(head)
            continue
        cycle = path[path.index(head) :]
        _merge(cycle, weight, arc, gain)
        inside.append([node[k] for k in cycle])
        node[head] = len(taken)
        taken.append(0)
        path[-len(cycle) :] = [head]
        left -= len(cycle) - 1
    taken[-1] = int(arc[path[0], 0])
    return _opened(taken, inside, n)


def _opened(taken: list[int], inside: list[list[int]], n: int) -> Longs:
    """Heads of words once every cycle gave way where an arc entered it. Shape: (n,).

    An arc is a number: n + 1 times the dependent, plus the head.
    """
    words: list[set[int]] = [{k} for k in range(n)]
    for cycle in inside[n:]:
        words.append(set().union(*(words[k] for k in cycle)))
    for outer in range(len(taken) - 1, n - 1, -1):
        entered = taken[outer] // (n + 1)
        for inner in inside[outer]:
            if entered in words[inner]:
                taken[inner] = taken[outer]
    return np.array([arc % (n + 1) for arc in taken[:n]], np.int64)


def _weights(arcs: Doubles) -> NDArray[np.complex128]:
    """Pairs (− forbidden arcs, score) as complex numbers, which numpy orders by their first part first.

    So a forbidden arc outweighs any score without a large number that would swallow small differences. Scores
    are divided by a power of two, which leaves their digits, so that no sum of them is infinite.
    """
    forbidden = np.isneginf(arcs)
    scores = np.where(forbidden, 0, arcs)
    weight = np.zeros(arcs.shape, np.complex128)
    weight.real = np.where(forbidden, -1, 0)
    weight.imag = np.ldexp(scores, -np.frexp(scores)[1].max(initial=0))
    np.fill_diagonal(weight[:, 1:], -np.inf)
    return weight


def _merge(
    cycle: list[int], weight: NDArray[np.complex128], arc: Longs, gain: NDArray[np.complex128]
) -> None:
    """Rows and columns of a cycle become those of its first member, in place; the others' columns close."""
    first, columns = cycle[0], np.array(cycle) + 1
    entering = weight[cycle] - gain[cycle, None]
    best, each = entering.argmax(0), np.arange(weight.shape[1])
    weight[first], arc[first] = entering[best, each], arc[cycle][best, each]
    leaving = weight[:, columns]
    best, each = leaving.argmax(1), np.arange(len(weight))
    weight[:, first + 1], arc[:, first + 1] = leaving[each, best], arc[:, columns][each, best]
    weight[:, columns[1:]] = -np.inf
    weight[first, first + 1] = -np.inf
