"""Treebanks for parsing: what is a tree, which relations are kept, what is refused."""

from collections.abc import Sequence
from pathlib import Path

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.text.conllu import Tree
from calque.text.labelled.trees import check_tree, find_cycle, read_parsing


def tree(*heads: int, labels: Sequence[str] | None = None, line: int = 0) -> Tree:
    words = tuple("abcdefgh"[: len(heads)])
    return Tree(
        words, ("X",) * len(heads), heads, tuple(labels or ("dep",) * len(heads)), words, "s1", "", line
    )


def sentence(*heads: int | str, label: str = "nsubj:pass") -> str:
    rows = [f"{at}\tw\t_\tX\t_\t_\t{head}\t{label}\t_\t_\n" for at, head in enumerate(heads, 1)]
    return "# sent_id = s\n" + "".join(rows) + "\n"


def put(folder: Path, text: str) -> Path:
    path = folder / "a.conllu"
    path.write_text(text, encoding="utf-8")
    return path


def test_relations_with_and_without_subtypes(tmp_path: Path) -> None:
    path = put(tmp_path, sentence(0, 1) + sentence(0))
    found = read_parsing(path, "en")
    assert [item.labels for item in found.items] == [("nsubj", "nsubj"), ("nsubj",)]
    assert [item.line for item in found.items] == [2, 6]
    assert read_parsing(path, "en", subtypes=True).items[1].labels == ("nsubj:pass",)
    assert len(read_parsing(path, "en", limit=1)) == 1


@pytest.mark.parametrize(
    ("text", "line", "what", "reason"),
    [
        (sentence(2, 3, 1), 8, "no root in the sentence s", "no root"),
        (sentence(0, 0, 1), 8, "2 roots, words 1, 2", "several roots"),
        (sentence(0, 3, 4, 2), 8, "a cycle of words 2 → 3 → 4 → 2", "cycle"),
        (sentence(0, "_"), 8, "word 2, 'w', has no head", "no head"),
        (sentence(0, 1, label="_"), 8, "word 1, 'w', has no relation", "no relation"),
        (sentence(0, 5), 9, "word 2 of 2 has head '5'", "not CoNLL-U"),
        (sentence(0, 2), 9, "word 2 of 2 has head '2'", "not CoNLL-U"),
        ("# alone\n\n", 7, "a sentence without words", "not CoNLL-U"),
    ],
)
def test_mistakes_are_placed_or_counted(tmp_path: Path, text: str, line: int, what: str, reason: str) -> None:
    """Two good sentences, on lines 2 and 5, come before."""
    path = put(tmp_path, sentence(0) + sentence(0) + text + sentence(0))
    with pytest.raises(BadInput) as caught:
        read_parsing(path, "en")
    assert caught.value.line == line
    assert what in str(caught.value)
    found = read_parsing(path, "en", skip_bad=True)
    assert (len(found), found.dropped) == (3, {reason: 1})


@given(st.lists(st.integers(-1, 6), min_size=1, max_size=6))
def test_trees_are_what_networkx_takes_for_trees(heads: list[int]) -> None:
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(heads) + 1))
    graph.add_edges_from((head, place) for place, head in enumerate(heads, 1))
    right = len(graph) == len(heads) + 1 and networkx.is_arborescence(graph) and heads.count(0) == 1
    if right:
        assert check_tree(tree(*heads), "x") == tree(*heads)
    else:
        with pytest.raises(BadInput, match="in the sentence s1"):
            check_tree(tree(*heads), "x")


@given(st.lists(st.integers(0, 6), min_size=6, max_size=6))
def test_cycles_are_what_networkx_finds(heads: list[int]) -> None:
    graph = networkx.DiGraph((place, head) for place, head in enumerate(heads, 1))
    known = [set(cycle) for cycle in networkx.simple_cycles(graph)]
    found = find_cycle(tuple(heads))
    assert set(found) in known if known else found == []
    assert all(heads[a - 1] == b for a, b in zip(found, found[1:] + found[:1], strict=True))


def test_files_for_other_tasks(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"columns between tabs: not a file for parsing .*--format takes conllu"
    ):
        read_parsing(put(tmp_path, "Oslo\tB-LOC\n"), "en")
    with pytest.raises(BadInput, match="an empty file"):
        read_parsing(put(tmp_path, "\n"), "en")
    with pytest.raises(BadInput, match="no such file"):
        read_parsing(tmp_path / "no.conllu", "en")
