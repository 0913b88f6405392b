"""The assembly: files to word ids, and nothing lost on the way without being counted."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from calque.errors import BadInput, BadSetting
from calque.text.bitext import read_bitext, read_sentences
from calque.text.clean import Cleaning
from calque.text.conllu import read_conllu
from calque.types import UPOS, Bitext, Sentences

PAIR = ("en", "de")
CONLLU = "# sent_id = {id}\n1\t{a}\t_\t{tag}\t_\t_\t0\troot\t_\t_\n2\t.\t_\tPUNCT\t_\t_\t1\tpunct\t_\t_\n\n"


def put(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


def test_words_lines_and_what_was_dropped(tmp_path: Path) -> None:
    lines = [
        "A cat.\tEine Katze.",
        "\tleer",
        "A cat.\tEine Katze.",
        "no\t" + "x " * 10,
        "y " * 101 + "\t" + "z " * 20,
    ]
    path = put(tmp_path, "a.tsv", "\n".join([*lines, "A dog.\tEin Hund."]))
    found = read_bitext([path], ("EN", "deu"))
    assert found.languages == ("en", "de")
    assert list(found.source) == [["A", "cat", "."], ["A", "dog", "."]]
    assert list(found.target) == [["Eine", "Katze", "."], ["Ein", "Hund", "."]]
    assert found.line.tolist() == [1, 6]
    assert found.dropped == {"empty": 1, "duplicate": 1, "ratio": 1, "length": 1}
    assert found.origin == path
    assert found.source.vocabulary is found.target.vocabulary
    assert sorted(found.source.vocabulary) == sorted({"A", "cat", "dog", ".", "Eine", "Katze", "Ein", "Hund"})


def test_the_same_as_building_it_from_lists(tmp_path: Path) -> None:
    source, target = [["a", "b"], ["b"], []], [["x"], ["b", "x"], ["y"]]
    text = "".join(" ".join(a) + "\t" + " ".join(b) + "\n" for a, b in zip(source, target, strict=True))
    found = read_bitext([put(tmp_path, "a.tsv", text)], PAIR, tokenised=True, cleaning=None)
    expected = Bitext.of(PAIR, source, target)
    assert found.fingerprint == expected.fingerprint
    assert found.source.ids.dtype == np.int32
    assert found.source.offsets.dtype == found.line.dtype == np.int64
    assert found.source.tags is None


def test_limit_counts_pairs_read(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", "a\tb\n" * 3 + "c\td\n")
    found = read_bitext([path], PAIR, limit=2)
    assert (len(found), found.dropped) == (1, {"duplicate": 1})


def test_nothing_left(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", "\tb\na\t\n" + "a\t" + "b " * 10)
    with pytest.raises(BadInput, match=r"all 3 dropped \(2 empty, 1 ratio\)"):
        read_bitext([path], PAIR)
    with pytest.raises(BadInput, match="no sentence pairs here"):
        read_bitext([put(tmp_path, "b.tsv", "")], PAIR)


def test_unknown_languages_come_first() -> None:
    with pytest.raises(BadSetting, match="did you mean de"):
        read_bitext(["no.tsv"], ("en", "german"))


def test_treebanks_keep_words_and_tags(tmp_path: Path) -> None:
    source = put(
        tmp_path, "a.conllu", CONLLU.format(id=1, a="5 000", tag="NUM") + CONLLU.format(id=2, a="x", tag="X")
    )
    target = put(tmp_path, "b.conllu", CONLLU.format(id=1, a="don't", tag="_") * 2)
    found = read_bitext([source, target], PAIR)
    assert list(found.source) == [["5 000", "."], ["x", "."]]
    assert list(found.target) == [["don't", "."]] * 2
    assert found.source.tags is not None
    assert found.target.tags is not None
    assert [UPOS[tag] for tag in found.source.tags] == ["NUM", "PUNCT", "X", "PUNCT"]
    assert [UPOS[tag] for tag in found.target.tags] == ["_", "PUNCT"] * 2
    assert len(read_bitext([source, target], PAIR, limit=1)) == 1


def test_tags_of_dropped_sentences_go_too(tmp_path: Path) -> None:
    source = put(
        tmp_path,
        "a.conllu",
        "".join(CONLLU.format(id=i, a="ab"[i // 2], tag=t) for i, t in enumerate(["NUM", "X", "SYM"])),
    )
    found = read_bitext([source, source], ("en", "en"))
    assert found.dropped == {"duplicate": 1}
    assert found.source.tags is not None
    assert [UPOS[tag] for tag in found.source.tags] == ["NUM", "PUNCT", "SYM", "PUNCT"]


def test_unknown_tags(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conllu", CONLLU.format(id=1, a="and", tag="CONJ"))
    with pytest.raises(BadInput, match=r"sentence 1 has the part of speech 'CONJ' .*CCONJ"):
        read_bitext([path, path], PAIR)
    with pytest.raises(BadInput, match="'CONJ'"):
        read_sentences(path, "en")


def test_sentences_of_one_language(tmp_path: Path) -> None:
    found = read_sentences(put(tmp_path, "a.txt", "A cat.\n\nIt's\u2028me.\n"), "en")
    assert list(found) == [["A", "cat", "."], [], ["It", "'s", "me", "."]]
    assert read_sentences(put(tmp_path, "a.txt", "A cat.\nx\n"), "en", tokenised=True, limit=1)[0] == [
        "A",
        "cat.",
    ]
    tagged = read_sentences(put(tmp_path, "a.conllu", CONLLU.format(id=1, a="cat", tag="NOUN")), "en")
    assert tagged.tags is not None
    assert [UPOS[tag] for tag in tagged.tags] == ["NOUN", "PUNCT"]


def test_sentences_that_are_all_empty(tmp_path: Path) -> None:
    found = read_sentences(put(tmp_path, "a.txt", "\n\n"), "en")
    assert (len(found), found.lengths.tolist(), len(found.vocabulary)) == (2, [0, 0], 0)
    with pytest.raises(BadInput, match="no sentences here"):
        read_sentences(put(tmp_path, "a.txt", ""), "en")
    with pytest.raises(BadSetting, match="limit -1"):
        read_sentences("a.txt", "en", limit=-1)


def test_memory_stays_near_the_arrays(tmp_path: Path) -> None:
    """20 times the pairs over the same words: what is added is ids, lines and digests, not strings."""
    words = [f"w{i}" for i in range(500)]
    rng = np.random.default_rng(0)

    def peak(pairs: int) -> tuple[int, Bitext]:
        rows = rng.choice(words, (pairs, 40))
        text = "\n".join(" ".join(row[:20]) + "\t" + " ".join(row[20:]) for row in rows)
        path = put(tmp_path, "a.tsv", text)
        tracemalloc.start()
        try:
            found = read_bitext([path], PAIR, tokenised=True)
            return tracemalloc.get_traced_memory()[1], found
        finally:
            tracemalloc.stop()

    peak(10)
    small, _ = peak(500)
    large, found = peak(10_000)
    assert len(found) == 10_000
    assert (large - small) / 9_500 < 4 * 40 * 1.3 + 200  # a pair of 20 words a side is some 400 bytes of text


def test_real_bitexts(shared_data: Path) -> None:
    for name, languages in (("news.en-zh", ("en", "zh")), ("tatoeba.en-hi", ("en", "hi"))):
        path = shared_data / "bitext" / f"{name}.tsv"
        found = read_bitext([str(path)], languages, limit=2000)
        assert len(found) + sum(found.dropped.values()) == 2000
        assert len(found) > 1900
        assert all(word and not any(map(str.isspace, word)) for word in found.source.vocabulary)


def test_real_treebanks(shared_data: Path) -> None:
    paths = [str(shared_data / "ud" / f"{language}_pud-ud-test.conllu") for language in PAIR]
    found = read_bitext(paths, PAIR)
    trees = [read_conllu(path) for path in paths]
    assert len(found) == 1000
    assert found.line.tolist() == list(range(1, 1001))
    for side, expected in zip((found.source, found.target), trees, strict=True):
        assert side.tags is not None
        assert [UPOS[tag] for tag in side.tags] == [tag for tree in expected for tag in tree.upos]
        assert side.fingerprint == Sentences.of(side.language, [tree.words for tree in expected]).fingerprint


def test_gold_links_fit_tokenised_text(shared_data: Path) -> None:
    path = shared_data / "gold_alignments" / "xl-wa" / "ru" / "test.tsv"
    found = read_bitext([str(path)], ("en", "ru"), tokenised=True, cleaning=None)
    last = [line.split("\t")[2].split() for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]
    for sentence, links in enumerate(last):
        ends = np.array([link.split("-") for link in links], int).reshape(-1, 2).max(0, initial=0)
        assert ends[0] < found.source.lengths[sentence]
        assert ends[1] < found.target.lengths[sentence]


def test_ratio_can_be_off(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", "a\t" + "b " * 50)
    assert len(read_bitext([path], PAIR, cleaning=Cleaning(max_ratio=0))) == 1
