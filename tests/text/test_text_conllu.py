"""Treebanks: what is read, what is passed over, what is refused, and the way back."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.text.conllu import Tree, read_conllu, write_conllu

SAMPLE = """\
# newdoc
# sent_id = s1
# text = Vámonos al mar.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\tMood=Imp\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\tSpaceAfter=No
5.1\tes\tser\tVERB\t_\t_\t_\t_\t0:root\t_
6\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_

1\t5 000\t_\tNUM\t_\t_\t_\t_\t_\t_
"""


def put(folder: Path, text: str) -> Path:
    path = folder / "t.conllu"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_words_and_only_words(tmp_path: Path) -> None:
    first, second = read_conllu(put(tmp_path, SAMPLE))
    assert first.words == ("Vamos", "nos", "a", "el", "mar", ".")
    assert first.lemmas == ("ir", "nosotros", "a", "el", "mar", ".")
    assert first.upos == ("VERB", "PRON", "ADP", "DET", "NOUN", "PUNCT")
    assert first.heads == (0, 1, 5, 5, 1, 1)
    assert first.labels == ("root", "obj", "case", "det", "obl", "punct")
    assert (first.id, first.text, len(first)) == ("s1", "Vámonos al mar.", 6)
    assert second == Tree(("5 000",), ("NUM",), (-1,), ("_",), ("_",))


def test_line_ends_do_not_matter(tmp_path: Path) -> None:
    plain = read_conllu(put(tmp_path, SAMPLE))
    assert read_conllu(put(tmp_path, SAMPLE.replace("\n", "\r\n") + "\r\n\r\n\r\n")) == plain


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("2\tnos\tnosotros", "2\tnos", 6, "9 columns where CoNLL-U has 10"),
        ("2\tnos\tnosotros", "2 nos nosotros", 6, "8 columns"),
        ("4\tel", "5\tel", 9, "word id '5', expected 4"),
        ("4\tel", "four\tel", 9, "word id 'four'"),
        ("5.1\tes", "5.x\tes", 11, "word id '5.x'"),
        ("2\tnos\t", "2\t\t", 6, "word 2 is empty"),
        ("\t5\tcase", "\t7\tcase", 8, "word 3 of 6 has head '7'"),
        ("\t5\tcase", "\t3\tcase", 8, "word 3 of 6 has head '3'"),
        ("\t5\tcase", "\t-1\tcase", 8, "has head '-1'"),
        ("\t5\tcase", "\tfive\tcase", 8, "has head 'five'"),
        ("\t5\tcase", "\t²\tcase", 8, "has head '²'"),
    ],
)
def test_mistakes_are_placed(tmp_path: Path, old: str, new: str, line: int, what: str) -> None:
    assert SAMPLE.count(old) == 1
    with pytest.raises(BadInput) as caught:
        read_conllu(put(tmp_path, SAMPLE.replace(old, new)))
    assert caught.value.line == line
    assert what in str(caught.value)


def test_comments_alone_are_no_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r":1: a sentence without words"):
        read_conllu(put(tmp_path, "# newdoc\n\n" + SAMPLE))


cell = st.text(st.characters(categories=["L", "N", "P", "S", "M"]), min_size=1, max_size=6)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    size = draw(st.integers(1, 6))
    column = st.lists(cell, min_size=size, max_size=size).map(tuple)
    heads = tuple(
        draw(st.integers(-1, size).filter(lambda head, place=place: head != place))
        for place in range(1, size + 1)
    )
    words, upos, labels, lemmas = (draw(column) for _ in range(4))
    return Tree(words, upos, heads, labels, lemmas, draw(cell | st.just("")), draw(cell | st.just("")))


@settings(deadline=None)
@given(st.lists(trees(), max_size=4))
def test_written_trees_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, given_trees: list[Tree]
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.conllu"
    write_conllu(path, given_trees)
    assert read_conllu(path) == given_trees


def test_a_whole_treebank(shared_data: Path, tmp_path: Path) -> None:
    """The counts are the treebank's own (stats.xml of UD English-PUD 2.x: 1000 sentences, 21180 words)."""
    found = read_conllu(shared_data / "ud" / "en_pud-ud-test.conllu")
    assert (len(found), sum(map(len, found))) == (1000, 21180)
    assert all(tree.heads.count(0) == 1 for tree in found)
    write_conllu(tmp_path / "again.conllu", found)
    assert read_conllu(tmp_path / "again.conllu") == found


@pytest.mark.parametrize("head", ["9" * 5000, "²", "-1", "1e0"])
def test_heads_that_are_no_numbers(tmp_path: Path, head: str) -> None:
    (tmp_path / "a.conllu").write_text(f"1\ta\t_\tX\t_\t_\t{head}\troot\t_\t_\n\n")
    with pytest.raises(BadInput, match=r"a.conllu:1: word 1 of 1 has head"):
        read_conllu(tmp_path / "a.conllu")
