"""Files of links: what is written is read, and every mistake is named with its line."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.links.pharaoh import is_pud, parse_links, read_gold, read_links, read_pud, write_links
from calque.types import UPOS, Bitext, WordPairs


def text_of(sizes: list[tuple[int, int]], line: list[int] | None = None) -> Bitext:
    return Bitext.of(("aa", "bb"), [["x"] * n for n, _ in sizes], [["y"] * m for _, m in sizes], line=line)


def rows(pairs: WordPairs) -> list[tuple[int, int, int]]:
    return list(zip(pairs.sentence.tolist(), pairs.source.tolist(), pairs.target.tolist(), strict=True))


@st.composite
def linked(draw: st.DrawFn) -> WordPairs:
    sizes = draw(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=6))
    cells = st.tuples(st.integers(0, len(sizes) - 1), st.integers(0, 11), st.integers(0, 11))
    chosen = [(k, i, j) for k, i, j in sorted(draw(st.sets(cells))) if i < sizes[k][0] and j < sizes[k][1]]
    gaps = draw(st.lists(st.integers(1, 3), min_size=len(sizes), max_size=len(sizes)))
    scores = draw(st.lists(st.floats(0, 1, width=32), min_size=len(chosen), max_size=len(chosen)))
    columns = np.asarray(chosen, int).reshape(-1, 3).T
    return WordPairs.of(text_of(sizes, np.cumsum(gaps).tolist()), *columns, scores)


@given(pairs=linked(), one_based=st.booleans(), scored=st.booleans())
def test_round_trip(
    pairs: WordPairs, one_based: bool, scored: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.links"
    write_links(path, pairs, one_based=one_based, scored=scored)
    again = read_links(path, pairs.bitext, one_based=one_based)
    assert rows(again) == rows(pairs)
    np.testing.assert_allclose(again.score, pairs.score if scored else 1, rtol=1e-3)


def test_what_is_written(tmp_path: Path) -> None:
    pairs = WordPairs.of(
        text_of([(2, 2), (1, 1), (3, 3)]), [0, 0, 2], [0, 1, 2], [1, 0, 2], [0.8734, 1, 1e-7]
    )
    write_links(tmp_path / "links", pairs, scored=True)
    assert (tmp_path / "links").read_text() == "0-1:0.8734 1-0:1\n\n2-2:1e-07\n"
    assert read_links(tmp_path / "links", pairs.bitext).score[2] == pytest.approx(1e-7)


def test_cleaning_shifts_nothing(tmp_path: Path) -> None:
    """The file has a line for each line of the original; lines 2 and 4 were dropped."""
    (tmp_path / "links").write_text("0-0\n9-9\n0-1\n8-8\n1-1\n")
    found = read_links(tmp_path / "links", text_of([(2, 2)] * 3, line=[1, 3, 5]))
    assert rows(found) == [(0, 0, 0), (1, 0, 1), (2, 1, 1)]
    assert found.linker == "file:links"


def test_a_line_a_sentence_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "links").write_text("0-0\n0-1\n1-1\n")
    assert rows(read_links(tmp_path / "links", text_of([(2, 2)] * 3, line=[1, 3, 5]))) == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 1, 1),
    ]


def test_compressed_and_repeated_links(tmp_path: Path) -> None:
    (tmp_path / "links.gz").write_bytes(gzip.compress(b"0-0 0-0 1-0\r\n"))
    assert rows(read_links(tmp_path / "links.gz", text_of([(2, 1)]))) == [(0, 0, 0), (0, 1, 0)]


@pytest.mark.parametrize(
    ("content", "one_based", "said"),
    [
        ("0-0\n0-1 5-0\n", False, r"links:2: link to word 5 of a sentence of 2 words \(aa\) .*0 to 1"),
        ("0-0\n0-1 0-7\n", False, r"links:2: link to word 7 of a sentence of 3 words \(bb\) .*0 to 2"),
        ("1-1\n0-1\n", True, r"links:2: link to word 0 of a sentence of 2 words \(aa\) .*1 to 2"),
        ("0-0\n0-0 0:1\n", False, r"links:2: not a link: '0:1'"),
        ("0-0\n-1-0\n", False, r"links:2: not a link: '-1-0'"),
        ("0-0\n0-0-0\n", False, r"links:2: not a link: '0-0-0'"),
        ("0-0\n0-0:x\n", False, r"links:2: not a link: '0-0:x'"),
        ("0-0\n99999999999-0\n", False, r"links:2: not a link"),
        ("0-0\n", False, r"links: 1 lines of links for 2 sentence pairs"),
    ],
)
def test_mistakes_are_named(content: str, one_based: bool, said: str, tmp_path: Path) -> None:
    (tmp_path / "links").write_text(content)
    with pytest.raises(BadInput, match=said):
        read_links(tmp_path / "links", text_of([(2, 3)] * 2), one_based=one_based)


def test_no_such_file() -> None:
    with pytest.raises(BadInput, match="no such file"):
        read_links("nowhere.links", text_of([(1, 1)]))


def test_parse_links_says_what_is_possible() -> None:
    assert [tuple(link) for link in parse_links("0-1 1p2  2?0 3-3:.5e0".replace(".5", "0.5"))] == [
        (0, 1, True, 1.0),
        (1, 2, False, 1.0),
        (2, 0, False, 1.0),
        (3, 3, True, 0.5),
    ]
    assert parse_links("") == []


@pytest.mark.parametrize(
    ("content", "one_based"),
    [
        ("0-0 1p1 0?1\n\n1-1\n", False),
        ("1-1 2p2 1?2\n\n2-2\n", True),
        ("1 1 1 S\n1 2 2 P\n1 1 2 P 0.7\n3 2 2\n", False),
        ("x x\ty y\t0-0 1p1 0p1\nx x\ty y\t\nx x\ty y\t1-1\n", False),
    ],
)
def test_gold_in_every_form(content: str, one_based: bool, tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(content)
    gold = read_gold(tmp_path / "gold", text_of([(2, 2)] * 4), one_based=one_based)
    assert rows(gold.sure) == [(0, 0, 0), (2, 1, 1)]
    assert rows(gold.possible) == [(0, 0, 0), (0, 0, 1), (0, 1, 1), (2, 1, 1)]
    assert gold.sentences.tolist() == [0, 2]


def test_gold_of_dropped_lines_is_counted(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-0\n5-5 6-6\n1-1\n")
    gold = read_gold(tmp_path / "gold", text_of([(2, 2)] * 2, line=[1, 3]))
    assert (gold.absent, gold.sentences.tolist()) == (1, [0, 1])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1 1 1 S\n1 one 1\n", r"gold:2: not a link: '1 one 1'"),
        ("1 3 1 S\n", r"gold:1: link to word 3 of a sentence of 2 words"),
        ("x\ty\t0-0\nx\ty\n", r"gold:2: 2 columns where the first line has 3"),
        ("\n\n", r"gold: no gold links"),
    ],
)
def test_mistakes_in_gold_are_named(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(content)
    with pytest.raises(BadInput, match=said):
        read_gold(tmp_path / "gold", text_of([(2, 2)]))


# ----------------------------------------------------------------------------------------------- PUD

ROW = "{}\t{}\t_\t{}\t_\t_\t0\troot\t_\t_\n"


def treebank(*sentences: list[tuple[str, str]]) -> str:
    return "".join(
        "".join(ROW.format(k, word, tag) for k, (word, tag) in enumerate(words, 1)) + "\n"
        for words in sentences
    )


def pud(folder: Path, links: object) -> Path:
    folder.mkdir()
    (folder / "alignment.json").write_text(json.dumps(links))
    (folder / "en.conllu").write_text(treebank([("a", "DET"), ("cat", "NOUN")], [("no", "INTJ")]))
    (folder / "target.conllu").write_text(treebank([("кот", "NOUN")], [("нет", "ODD")]))
    return folder


def test_pud(tmp_path: Path) -> None:
    folder = pud(tmp_path / "en-ru", [{"2": ["1"], "1": ["X"], "X": ["1"]}, {"1": ["1"]}])
    pairs = read_pud(folder)
    assert is_pud(folder)
    assert pairs.languages == ("en", "ru")
    assert rows(pairs) == [(0, 1, 0), (1, 0, 0)]
    assert pairs.bitext.source.tags is not None
    assert [UPOS[tag] for tag in pairs.bitext.source.tags] == ["DET", "NOUN", "INTJ"]
    assert [UPOS[tag] for tag in pairs.bitext.target.tags] == ["NOUN", "_"]


def test_pud_mistakes(tmp_path: Path) -> None:
    assert not is_pud(tmp_path)
    with pytest.raises(BadInput, match="no links in the PUD layout"):
        read_pud(tmp_path)
    with pytest.raises(BadInput, match="1, 2 and 2 sentences"):
        read_pud(pud(tmp_path / "en-ru", [{}]))
    with pytest.raises(BadInput, match="does not say its languages"):
        read_pud(pud(tmp_path / "gold", [{}, {}]))
    with pytest.raises(BadInput, match=r"says 'ru' first, but its first treebank is English"):
        read_pud(pud(tmp_path / "ru-en", [{}, {}]))
    with pytest.raises(BadInput, match=r"alignment.json:2: link to word 3 of a sentence of 1 words \(en\)"):
        read_pud(pud(tmp_path / "en-de", [{}, {"3": ["1"]}]))
    with pytest.raises(BadInput, match=r"not a word id: '1.1'"):
        read_pud(pud(tmp_path / "en-es", [{"1.1": ["1"]}, {}]))


def test_real_pud(shared_data: Path) -> None:
    """Counts taken from the JSON by hand: links that are not `X` on either side."""
    pairs = read_pud(shared_data / "gold_alignments/pud/en-zh")
    assert len(pairs.bitext) == 999
    held = json.loads((shared_data / "gold_alignments/pud/en-zh/alignment.json").read_text())
    assert len(pairs) == sum(
        len({j for j in others if j != "X"}) for links in held for i, others in links.items() if i != "X"
    )
    assert pairs.bitext.target.tags is not None


def test_a_line_of_digits_takes_no_square_of_its_length() -> None:
    import time

    start = time.process_time()
    for line in ("0-0:" + "9" * 200_000, " " * 200_000 + "x", "1 " + " " * 200_000 + "2"):
        with pytest.raises(BadInput, match="not a link"):
            parse_links(line)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("score", ["1e39", "9" * 40 + "e9", "1e999999999"])
def test_a_score_beyond_single_precision_is_refused(score: str) -> None:
    with pytest.raises(BadInput, match="too large"):
        parse_links(f"0-0 1-2:{score}")


@pytest.mark.parametrize(
    "held",
    ["{}", "5", "[1]", '[{"1": 2}]', '[{"1": [2]}]', '[{"1": {"a": 1}}]', '[{"' + "9" * 5000 + '": ["1"]}]'],
)
def test_hand_made_links_of_another_shape(tmp_path: Path, held: str) -> None:
    folder = tmp_path / "en-ru"
    folder.mkdir()
    for name in ("en.conllu", "target.conllu"):
        (folder / name).write_text("1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n")
    (folder / "alignment.json").write_text(held)
    with pytest.raises(BadInput, match=r"alignment\.json"):
        read_pud(folder)
