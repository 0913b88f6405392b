"""Bitext files of every format, and what is said about broken ones."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import BadInput, BadSetting
from calque.text.readers import BitextFormat, RawPair, guess_format, read_pairs

PAIR = ("en", "de")
EXPECTED = [RawPair(1, "a cat", "eine Katze"), RawPair(2, "a dog", "ein Hund")]


def put(folder: Path, name: str, text: str) -> str:
    path = folder / name
    data = text.encode("utf-8")
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(path)


def read(*paths: str, languages: tuple[str, str] = PAIR, format: BitextFormat | None = None) -> list[RawPair]:
    return list(read_pairs(paths, languages, format=format))


# --------------------------------------------------------------------------------------------- guesses


def test_guesses(tmp_path: Path) -> None:
    cases = {
        ("x.tsv",): BitextFormat.TSV,
        ("x.tab.xz",): BitextFormat.TSV,
        ("x.TMX.gz",): BitextFormat.TMX,
        ("hf:opus100:de-en:train",): BitextFormat.DATASET,
        ("x.en", "x.de"): BitextFormat.LINES,
        ("x.conllu", "y.conllu.gz"): BitextFormat.CONLLU,
        (put(tmp_path, "p.txt", "\na ||| b\n"),): BitextFormat.TRIPLE,
        (put(tmp_path, "t.txt.gz", "a\tb\n"),): BitextFormat.TSV,
    }
    assert {paths: guess_format(paths) for paths in cases} == cases


def test_guesses_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a bitext by itself"):
        guess_format([put(tmp_path, "a.txt", "just a sentence\n")])
    for paths in ([], ["a", "b", "c"]):
        with pytest.raises(BadSetting, match=f"{len(paths)} files"):
            guess_format(paths)


def test_settings_are_checked_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="2 files for format tsv"):
        read_pairs(["a", "b"], PAIR, format=BitextFormat.TSV)
    with pytest.raises(BadSetting, match="1 files for format lines"):
        read_pairs(["a"], PAIR, format=BitextFormat.LINES)
    with pytest.raises(BadSetting, match="limit 0"):
        read_pairs(["a.tsv"], PAIR, limit=0)
    with pytest.raises(BadSetting, match="did you mean triple"):
        BitextFormat.parse("tripel")


# ----------------------------------------------------------------------------------------- one format each


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_two_columns(tmp_path: Path, suffix: str) -> None:
    assert read(put(tmp_path, f"a.tsv{suffix}", "a cat\teine Katze\r\na dog\tein Hund")) == EXPECTED


def test_three_columns_with_an_id(tmp_path: Path) -> None:
    assert read(put(tmp_path, "a.tsv", "Gen.1.1\ta cat\teine Katze\n1-1\ta dog\tein Hund\n")) == EXPECTED


def test_three_columns_with_links(tmp_path: Path) -> None:
    assert read(put(tmp_path, "a.tsv", "a cat\teine Katze\t\na dog\tein Hund\t0-0 1-1\n")) == EXPECTED


def test_one_sentence_that_looks_like_links_does_not_decide(tmp_path: Path) -> None:
    found = read(put(tmp_path, "a.tsv", "1\tTwo to one.\t2-1\n2\ta dog\tein Hund\n"))
    assert found == [RawPair(1, "Two to one.", "2-1"), EXPECTED[1]]


@pytest.mark.parametrize("id", ["17", "Gen.1.1", "train-3a", "1 Kings 2:3", "第1章"])
def test_ids(tmp_path: Path, id: str) -> None:
    assert read(put(tmp_path, "a.tsv", f"{id}\ta cat\teine Katze\n\ta dog\tein Hund\n")) == EXPECTED


@pytest.mark.parametrize(
    "text",
    [
        "Go.\tGeh.\tCC-BY 2.0 (France) Attribution: tatoeba.org #1 (a)\n",
        "cat\tKatze\t0.900\n",
        "12 is a number.\tZwölf ist eine Zahl.\t0.9\n",
        "我喜欢猫。\tI like cats.\t0.5\n",
    ],
)
def test_three_columns_without_an_id(tmp_path: Path, text: str) -> None:
    for before in ("", "1\ta\tb\n"):
        with pytest.raises(BadInput, match=r"the first is no id.*cut -f1,2") as caught:
            read(put(tmp_path, "a.tsv", before + text))
        assert caught.value.line == 1 + bool(before)


def test_a_header_over_ids_is_told(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", "id\ten\tde\n1\ta\tb\n2\tc\td\n")
    with pytest.raises(BadInput, match=r"'id', perhaps a header \(remove the header: tail") as caught:
        read(path)
    assert caught.value.line == 1


def test_a_row_too_short_is_not_said_to_lack_an_id(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="2 columns, where the file began with 3"):
        read(put(tmp_path, "a.tsv", "1\ta\tb\nc\td\n"))


def test_empty_lines_are_empty_pairs(tmp_path: Path) -> None:
    assert read(put(tmp_path, "a.tsv", "\na\tb\n")) == [RawPair(1, "", ""), RawPair(2, "a", "b")]
    assert read(put(tmp_path, "a.txt", "a ||| b\n\n")) == [RawPair(1, "a", "b"), RawPair(2, "", "")]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a\tb\na\tb\tc\n", 2, "3 columns, where the file began with 2"),
        ("1\ta\tb\n" * 30 + "a\tb\n", 31, "2 columns, where the file began with 3"),
        ("a\tb\nalone\n", 2, "1 columns"),
        ("alone\n", 1, "1 columns"),
        ("a\tb\tc\td\n", 1, "4 columns"),
    ],
)
def test_wrong_columns_are_placed(tmp_path: Path, text: str, line: int, what: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(put(tmp_path, "a.tsv", text))
    assert caught.value.line == line
    assert what in str(caught.value)


def test_triples(tmp_path: Path) -> None:
    assert read(put(tmp_path, "a.txt", "a cat ||| eine Katze\na dog ||| ein Hund\n")) == EXPECTED
    assert read(put(tmp_path, "a.txt", "a|||b ||| c\n")) == [RawPair(1, "a|||b", "c")]


@pytest.mark.parametrize(("line", "count"), [("a ||| b ||| c", 2), ("a|||b", 0)])
def test_separators_inside_text(tmp_path: Path, line: str, count: int) -> None:
    with pytest.raises(BadInput, match=rf"a\.txt:2: {count} separators"):
        read(put(tmp_path, "a.txt", f"x ||| y\n{line}\n"))


def test_two_files(tmp_path: Path) -> None:
    source, target = put(tmp_path, "a.en", "a cat\na dog\n"), put(tmp_path, "a.de.gz", "eine Katze\nein Hund")
    assert read(source, target) == EXPECTED
    assert list(read_pairs([source, target], PAIR, limit=1)) == EXPECTED[:1]


@settings(deadline=None)
@given(
    st.lists(st.tuples(*[st.text(st.characters(exclude_characters="\r\n\t", exclude_categories=["Cs"]))] * 2))
)
def test_two_files_and_two_columns_agree(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    pairs = [("x" + a, "y" + b) for a, b in pairs]  # so that nothing starts with a byte order mark
    folder = tmp_path_factory.getbasetemp()
    columns = put(folder, "h.tsv", "".join(f"{a}\t{b}\n" for a, b in pairs))
    sides = [put(folder, f"h.{i}", "".join(pair[i] + "\n" for pair in pairs)) for i in range(2)]
    expected = [RawPair(number, a, b) for number, (a, b) in enumerate(pairs, 1)]
    assert read(columns) == read(*sides) == expected


@pytest.mark.parametrize(("left", "right"), [(3, 5), (5, 3), (0, 1)])
def test_unequal_lengths_name_both(tmp_path: Path, left: int, right: int) -> None:
    source, target = put(tmp_path, "a.en", "a\n" * left), put(tmp_path, "a.de", "b\n" * right)
    with pytest.raises(BadInput, match=rf"a\.en: {left} lines, but .*a\.de has {right}"):
        read(source, target)


def test_missing_files(tmp_path: Path) -> None:
    for paths in (["no.tsv"], ["no.tmx"], ["no.en", "no.de"], ["no.conllu", "no.conllu"], ["no.txt"]):
        with pytest.raises(BadInput, match="no such file"):
            read(*[str(tmp_path / path) for path in paths])


# ---------------------------------------------------------------------------------------------- treebanks


def treebank(folder: Path, name: str, *sentences: tuple[str, str, str]) -> str:
    text = ""
    for identity, raw, words in sentences:
        text += f"# sent_id = {identity}\n" + (f"# text = {raw}\n" if raw else "")
        for number, word in enumerate(words.split(), 1):
            text += f"{number}\t{word}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
        text += "\n"
    return put(folder, name, text)


def test_treebanks(tmp_path: Path) -> None:
    source = treebank(tmp_path, "a.conllu", ("1", "a cat", "a cat"), ("2", "", "a dog"))
    target = treebank(tmp_path, "b.conllu", ("1", "eine Katze", "ein e Katze"), ("2", "ein Hund", "ein Hund"))
    assert read(source, target) == EXPECTED


def test_treebanks_in_another_order(tmp_path: Path) -> None:
    source = treebank(tmp_path, "a.conllu", ("1", "", "a"), ("2", "", "b"))
    target = treebank(tmp_path, "b.conllu", ("2", "", "b"), ("1", "", "a"))
    with pytest.raises(BadInput, match=r"sentence 1 is 1, but 2 in .*same order"):
        read(source, target)
    with pytest.raises(BadInput, match=r"2 sentences, but .* has 1"):
        read(source, treebank(tmp_path, "c.conllu", ("1", "", "a")))


# ---------------------------------------------------------------------------------------------------- tmx

TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"><prop>kept out</prop></header><body>
<tu><note>no</note><tuv xml:lang="EN-us"><seg>a <hi>cat</hi></seg></tuv>
  <tuv xml:lang="de"><seg>eine
    Katze</seg></tuv></tu>
<tu><tuv lang="fr"><seg>un chien</seg></tuv>
  <tuv lang="de_AT"><seg>ein <bpt i="1">&lt;b&gt;</bpt>Hund</seg></tuv>
  <tuv lang="en"><prop>x</prop><seg>a<ph>{{1}}<sub>x</sub></ph> dog</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>lonely &amp; &#233;</seg></tuv></tu>
</body></tmx>
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_tmx(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.tmx"
    path.write_bytes(TMX.format(encoding=encoding).encode(encoding))
    assert read(str(path)) == [*EXPECTED, RawPair(3, "lonely & é", "")]


def test_tmx_prefers_the_very_code(tmp_path: Path) -> None:
    unit = "".join(f'<tuv xml:lang="{code}"><seg>{code}</seg></tuv>' for code in ("en-US", "en-GB", "pt"))
    path = put(tmp_path, "a.tmx", f"<tmx><body><tu>{unit}</tu></body></tmx>")
    assert read(path, languages=("en-GB", "pt-BR")) == [RawPair(1, "en-GB", "pt")]
    assert read(path, languages=("en", "en-GB")) == [RawPair(1, "en-US", "en-GB")]


def test_tmx_without_a_language(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tmx", TMX.format(encoding="utf-8"))
    with pytest.raises(BadInput, match=r"nothing in 'ru' here \(it holds EN-us, de, fr, de_AT, en\)"):
        read(path, languages=("en", "ru"))


def test_tmx_refuses_entities(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>\n<tmx><body/></tmx>'
    with pytest.raises(BadInput, match=r"a\.tmx:1: declares XML entities"):
        read(put(tmp_path, "a.tmx", bomb))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<tmx>\n<body>\n<tu></body></tmx>", r":3: not well-formed XML: mismatched tag"),
        ("<tmx>\n<body>", r":2: not well-formed XML: no element found"),
        ("a\tb\n", r":1: not well-formed XML"),
        ('<?xml version="1.0" encoding="gbk"?><tmx/>', "unknown encoding"),
        ('<?xml version="1.0" encoding="nonsense"?><tmx/>', "encoding"),
    ],
)
def test_broken_tmx(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        read(put(tmp_path, "a.tmx", text))


def test_tmx_is_streamed(tmp_path: Path) -> None:
    """The first units come before the end is seen: here the end is missing."""
    unit = '<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv></tu>\n'
    path = put(tmp_path, "a.tmx", "<tmx><body>" + unit * 5000)
    assert len(list(read_pairs([path], PAIR, limit=100))) == 100
    with pytest.raises(BadInput, match="no element found"):
        read(path)


# ----------------------------------------------------------------------------------------------- datasets


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    return tmp_path


def test_dataset_with_translations(hub: Path) -> None:
    (hub / "d").mkdir()
    rows = [{"translation": {"en": pair.source, "de": pair.target}} for pair in EXPECTED]
    put(hub / "d", "train.jsonl", "\n".join(map(json.dumps, rows)))
    put(hub / "d", "test.jsonl", json.dumps(rows[1]))
    assert read(f"hf:{hub}/d") == EXPECTED
    assert read(f"hf:{hub}/d:test") == read(f"hf:{hub}/d::test") == [RawPair(1, "a dog", "ein Hund")]
    with pytest.raises(BadInput, match="nothing in 'ru' here"):
        read(f"hf:{hub}/d", languages=("en", "ru"))
    with pytest.raises(BadInput, match="cannot be loaded"):
        read(f"hf:{hub}/d::nonsense")


def test_dataset_with_columns_saved_to_disk(hub: Path) -> None:
    import datasets

    table = datasets.Dataset.from_dict({"en": ["a cat", None], "de": ["eine Katze", "ein Hund"]})
    expected = [EXPECTED[0], RawPair(2, "", "ein Hund")]
    table.save_to_disk(str(hub / "one"))
    datasets.DatasetDict({"train": table}).save_to_disk(str(hub / "several"))
    assert read(f"hf:{hub}/one") == read(f"hf:{hub}/several") == expected


def test_datasets_that_are_not_there(hub: Path) -> None:
    with pytest.raises(BadInput, match="cannot be loaded"):
        read(f"hf:{hub}/nothing")
    for name in ("hf:", "hf:a:b:c:d"):
        with pytest.raises(BadSetting, match="not understood"):
            read(name)


# ---------------------------------------------------------------------------------------------- real files


@pytest.mark.parametrize(
    ("name", "columns", "place"),
    [
        ("bitext/bible.en-zh.tsv", 3, 1),
        ("bitext/news.en-es.tsv", 2, 0),
        ("gold_alignments/xl-wa/ru/dev.tsv", 3, 0),
    ],
)
def test_real_files(shared_data: Path, name: str, columns: int, place: int) -> None:
    path = shared_data / name
    rows = [line.split("\t") for line in path.read_bytes().decode().removesuffix("\n").split("\n")]
    assert len(rows[0]) == columns
    found = read(str(path))
    assert [(pair.source, pair.target) for pair in found] == [tuple(row[place : place + 2]) for row in rows]
    assert [pair.line for pair in found] == list(range(1, len(rows) + 1))
