"""Best trees against all trees one by one, and against networkx; what is wrong with those that are none."""

import itertools
from collections.abc import Sequence

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.transfer.trees import is_tree, single_root_tree
from calque.types import Doubles


def worth(scores: Doubles, heads: Sequence[int]) -> tuple[int, float]:
    """Fewer forbidden arcs first, then the sum of the others."""
    arcs = [float(scores[k, head]) for k, head in enumerate(heads, 1)]
    return -arcs.count(-np.inf), sum(arc for arc in arcs if arc != -np.inf)


def reaches_root(heads: Sequence[int]) -> bool:
    """One word hangs from the root, and every word comes to it in at most n steps."""
    above = [0, *heads]
    at = list(range(len(above)))
    for _ in heads:
        at = [above[k] for k in at]
    return list(heads).count(0) == 1 and not any(at)


ALL = {
    n: [heads for heads in itertools.product(range(n + 1), repeat=n) if reaches_root(heads)]
    for n in range(1, 6)
}


def test_trees_are_as_many_as_cayley_says() -> None:
    """n^(n−1) rooted labelled trees, and nothing else passes."""
    assert [len(ALL[n]) for n in ALL] == [1, 2, 9, 64, 625]
    for n in range(1, 5):
        assert [h for h in itertools.product(range(n + 1), repeat=n) if is_tree(h) is None] == ALL[n]


@given(
    st.integers(1, 5), st.integers(0, 10_000), st.sampled_from(["reals", "ties", "large"]), st.floats(0, 1)
)
def test_no_tree_is_better(n: int, seed: int, kind: str, forbidden: float) -> None:
    draw = np.random.default_rng(seed)
    scores = {
        "reals": draw.normal(size=(n + 1, n + 1)),
        "ties": draw.integers(0, 3, (n + 1, n + 1)).astype(float),
        # Whole numbers whose sums are exact, with differences that a penalty of their size would swallow.
        "large": 2.0**45 + draw.integers(0, 4, (n + 1, n + 1)),
    }[kind]
    if seed % 2:
        scores[draw.random(scores.shape) < forbidden] = -np.inf
    found = single_root_tree(scores).tolist()
    best = max(worth(scores, heads) for heads in ALL[n])
    assert reaches_root(found)
    assert worth(scores, found) == (pytest.approx(best) if kind == "reals" else best)


def by_networkx(scores: Doubles) -> float:
    """The best spanning arborescence for each word as the only one below the root."""
    n, best = len(scores) - 1, -np.inf
    for root in range(1, n + 1):
        graph = networkx.DiGraph()
        graph.add_edge(0, root, weight=scores[root, 0])
        for head, word in itertools.permutations(range(1, n + 1), 2):
            if word != root:
                graph.add_edge(head, word, weight=scores[word, head])
        tree = networkx.maximum_spanning_arborescence(graph)
        best = max(best, sum(data["weight"] for *_, data in tree.edges(data=True)))
    return best


@pytest.mark.parametrize("n", [2, 6, 9, 13])
@pytest.mark.parametrize("seed", range(3))
def test_networkx_finds_no_better(n: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    scores = 5 + draw.normal(size=(n + 1, n + 1))
    scores[:, 0] += 2 * (seed == 1)  # many words would hang from the root
    found = single_root_tree(scores).tolist()
    assert reaches_root(found)
    assert worth(scores, found)[1] == pytest.approx(by_networkx(scores))


@pytest.mark.parametrize("n", [30, 128])
def test_a_planted_tree_is_found(n: int) -> None:
    draw = np.random.default_rng(n)
    order = draw.permutation(n) + 1
    heads = np.zeros(n, np.int64)
    for place, word in enumerate(order[1:], 1):
        heads[word - 1] = order[draw.integers(place)]
    # Greedy choices err: cycles and second roots are the better single arcs of a tenth of the words.
    scores = draw.random((n + 1, n + 1))
    scores[np.arange(1, n + 1), heads] += 1
    noisy = draw.choice(n, n // 10, replace=False) + 1
    scores[noisy, noisy[::-1]] = scores[noisy, heads[noisy - 1]] + 1e-6
    found = single_root_tree(scores)
    assert reaches_root(found.tolist())
    assert worth(scores, found.tolist()) >= worth(scores, heads.tolist())
    assert (found == heads).mean() > 0.7


def test_two_roots_are_not_mended_by_the_best_root_alone() -> None:
    """Word 1 has the best arc from the root, but only word 2 leaves the others a good head."""
    scores = np.array([[0, 0, 0, 0], [10, 0, 9, 0], [9, 0, 0, 0], [8, 0, 7, 0]], float)
    assert scores.argmax(1)[1:].tolist() == [0, 0, 0]
    assert single_root_tree(scores).tolist() == [2, 0, 2]


def test_the_diagonal_and_row_0_are_not_read() -> None:
    scores = np.random.default_rng(0).normal(size=(6, 6))
    changed = scores.copy()
    np.fill_diagonal(changed, 1e9)
    changed[0] = np.nan
    assert single_root_tree(changed).tolist() == single_root_tree(scores).tolist()
    assert single_root_tree(np.zeros((2, 2), np.float16)).tolist() == [0]


@pytest.mark.parametrize("n", [3, 8])
def test_scores_near_the_end_of_numbers_have_the_tree_of_small_ones(n: int) -> None:
    """Sums of three of them are infinite; random scores of 8 words make cycles within cycles."""
    for seed in range(100):
        scores = np.random.default_rng(seed).uniform(-1, 1, (n + 1, n + 1))
        assert single_root_tree(scores * 1.7e308).tolist() == single_root_tree(scores).tolist()


@pytest.mark.parametrize(
    ("heads", "problem"),
    [
        ([2, 0, 2], None),
        ([0], None),
        ([1, 0], "word 1 hangs from itself"),
        ([0, 3, 4, 2], "word 2 hangs from itself, by way of 3, 4"),
        ([3, 0, 4, 3], "word 3 hangs from itself, by way of 4"),
        ([0, 1, 0], "2 words hang from the root: 1, 3"),
        ([2, 3, 1], "no word hangs from the root"),
        ([], "no word hangs from the root"),
        ([0, 4], "word 2 hangs from 4, and there are 2 words"),
        ([0, -1], "word 2 hangs from -1, and there are 2 words"),
    ],
)
def test_what_is_wrong_is_said(heads: list[int], problem: str | None) -> None:
    assert is_tree(heads) == problem


@pytest.mark.parametrize(
    "scores",
    [np.zeros((3, 4)), np.zeros(4), np.zeros((1, 1)), np.full((3, 3), np.nan), np.full((3, 3), np.inf)],
)
def test_scores_that_are_none_are_refused(scores: Doubles) -> None:
    with pytest.raises(BadInput):
        single_root_tree(scores)
