"""Every reader on real files, against counts taken without them."""

import re
from collections import Counter
from pathlib import Path

import pytest

from calque.text.labelled.mixed import mixed_pairs, mixed_questions
from calque.text.labelled.open import read_labelled


def sentences(path: Path) -> list[list[str]]:
    """The lines of each sentence that are no comments."""
    found = re.split(r"\n\n+", path.read_text(encoding="utf-8").strip("\n"))
    return [[line for line in block.split("\n") if not re.match(r"# \w", line)] for block in found]


@pytest.mark.parametrize("name", ["panx.de.dev", "panx.zh.dev"])
def test_wikiann(shared_data: Path, name: str) -> None:
    path = shared_data / "ner" / f"{name}.tsv"
    found = read_labelled("ner", path, name.split(".")[1])
    assert [[f"{w}\t{t}" for w, t in zip(i.words, i.tags, strict=True)] for i in found.items] == sentences(
        path
    )
    assert len(found) == 10000


@pytest.mark.parametrize(
    "name", ["fb/es/eval-es.conllu", "fb/th/test-th.conllu", "xsid/en.valid.conll", "xsid/tr.test.conll"]
)
def test_slots_in_columns(shared_data: Path, name: str) -> None:
    path = shared_data / "slots" / name
    found = read_labelled("slots", path, re.split(r"[/.]", name)[1])
    rows = [[line.split("\t") for line in lines] for lines in sentences(path)]
    assert [list(item.words) for item in found.items] == [[row[1] for row in lines] for lines in rows]
    tags = Counter(row[3].replace("NoLabel", "O") for lines in rows for row in lines)
    assert Counter(tag for item in found.items for tag in item.tags) == tags


@pytest.mark.parametrize(("name", "count"), [("atis_en/test", 893), ("snips_en/valid", 700)])
def test_slots_in_folders(shared_data: Path, name: str, count: int) -> None:
    assert len(read_labelled("slots", shared_data / "slots" / name, "en")) == count


def test_inference_in_two_languages(shared_data: Path) -> None:
    german, english = (
        read_labelled("nli", shared_data / "nli" / f"xnli.{code}.test.tsv", code) for code in ("de", "en")
    )
    assert Counter(pair.label for pair in german.items) == dict.fromkeys(
        ["entailment", "neutral", "contradiction"], 1670
    )
    mixed = mixed_pairs(german, english, seed=0)
    assert {pair.languages for pair in mixed.items} == {("de", "en"), ("en", "de")}


@pytest.mark.parametrize("name", ["en_ewt-ud-test", "de_gsd-ud-test", "zh_pud-ud-test", "vi_vtb-ud-test"])
def test_treebanks(shared_data: Path, name: str) -> None:
    path = shared_data / "ud" / f"{name}.conllu"
    parsed, tagged = (read_labelled(task, path, name[:2]) for task in ("parsing", "pos"))
    rows = [line.split("\t") for lines in sentences(path) for line in lines]
    rows = [row for row in rows if row[0].isdigit()]
    assert [label for item in parsed.items for label in item.labels] == [row[7].split(":")[0] for row in rows]
    assert [tag for item in tagged.items for tag in item.tags] == [row[3] for row in rows]


def test_questions(shared_data: Path) -> None:
    for code in ("en", "hi", "ru"):
        found = read_labelled("qa", shared_data / "qa" / "xquad" / f"xquad.{code}.json", code)
        assert (len(found), found.changed) == (1190, {})
    tydi = read_labelled("qa", shared_data / "qa" / "tydi" / "tydiqa.goldp.en.train.json", "en")
    assert len({item.id for item in tydi.items}) == len(tydi) == 3696


def test_mixing_questions_is_what_mlqa_does(shared_data: Path) -> None:
    """MLQA's own mixed files hold the same questions to the same paragraphs."""
    folder = shared_data / "qa" / "mlqa_dev"

    def read(context: str, question: str) -> dict[str, tuple[str, str]]:
        path = folder / f"dev-context-{context}-question-{question}.json"
        found = read_labelled("qa", path, question, context_language=context)
        return {item.id: (item.question, item.context) for item in found.items}

    german, english = (
        read_labelled("qa", folder / f"dev-context-{code}-question-{code}.json", code)
        for code in ("de", "en")
    )
    mixed = mixed_questions(german, english)
    assert {item.id: (item.question, item.context) for item in mixed.items} == read("de", "en")
    assert (mixed.language, mixed.dropped) == ("en+de", {})
    back = mixed_questions(english, german)
    assert {item.id: (item.question, item.context) for item in back.items} == read("en", "de")
    assert back.dropped == {"no partner": 1148 - 512}
