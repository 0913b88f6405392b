"""Whether tests of several languages are translations of each other, as far as their clusters tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calque.types import Doubles, Longs

#: The share of items whose clusters must be the same ones: .999 where two premises of XNLI are one.
ALIKE = 0.95


def shared_clusters(languages: Sequence[Longs]) -> Longs | None:
    """One clustering for all languages, or None where these are not the same items.

    Where nearly all items belong together as they do in the first language, items that are together in any
    language are together in all. Shape: each (items,).

    >>> shared_clusters([np.arange(100) // 2, np.where(np.arange(100) < 4, 0, np.arange(100) // 2)])[:6]
    array([0, 0, 0, 0, 1, 1])
    """
    first, *others = languages
    if all(np.array_equal(first, other) for other in others):
        return first
    if any(alike(first, other) < ALIKE for other in others):
        return None
    return _together(languages)


def alike(a: Longs, b: Longs) -> float:
    """The share of items that are together with the same others in both. Shape: (items,) each.

    >>> alike(np.array([0, 0, 1, 2]), np.array([5, 5, 3, 3])), alike(np.array([0, 1]), np.array([0]))
    (0.5, 0.0)
    """
    if len(a) != len(b):
        return 0.0
    both = _sizes(np.unique(np.stack([a, b]), axis=1, return_inverse=True)[1].reshape(-1))
    return float(np.mean((both == _sizes(a)) & (both == _sizes(b))))


def _sizes(cluster: Longs) -> Doubles:
    """How many items are together with each. Shape: (items,) to the same."""
    _, place, counts = np.unique(cluster, return_inverse=True, return_counts=True)
    return np.asarray(counts[place], np.float64)


def _together(languages: Sequence[Longs]) -> Longs:
    """Components of the graph in which items and the clusters of every language are nodes."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    items, nodes = np.arange(len(languages[0])), len(languages[0])
    ends = []
    for cluster in languages:
        names, place = np.unique(cluster, return_inverse=True)
        ends.append(nodes + place)
        nodes += len(names)
    links = (np.tile(items, len(languages)), np.concatenate(ends))
    graph = coo_matrix((np.ones(len(links[0])), links), shape=(nodes, nodes))
    _, label = connected_components(graph, directed=False)
    return np.asarray(np.unique(label[: len(items)], return_inverse=True)[1], np.int64)
