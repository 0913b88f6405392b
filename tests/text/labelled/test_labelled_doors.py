"""The one door to labelled files, text without labels, and predictions written down."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput, BadSetting
from calque.text.conllu import Tree, read_conllu
from calque.text.labelled.items import Question, Tagged, TextPair
from calque.text.labelled.open import FORMATS, READERS, read_labelled
from calque.text.labelled.plain import read_unlabelled
from calque.text.labelled.writers import write_answers, write_pairs_tsv, write_tagged, write_trees

TREE = "1\tgo\t_\tVERB\t_\t_\t0\troot\t_\t_\n2\t5 000\t_\tNUM\t_\t_\t1\tobj:x\t_\tEntity=B-X|Slot=B-y\n\n"
SQUAD = {"data": [{"paragraphs": [{"context": "a b", "qas": [{"id": "q", "question": "?", "answers": []}]}]}]}
ANSWERED = {"id": "q", "question": "?", "answers": [{"text": "b", "answer_start": 2}]}
FILES = {
    "nli": "a\tb\tneutral\n",
    "ner": "a\tO\nb\tB-X\n",
    "slots": "1\ta\tsome/intent\tB-x\n",
    "pos": "a\tNN\n",
    "parsing": TREE,
    "qa": json.dumps({"data": [{"paragraphs": [{"context": "a b", "qas": [ANSWERED]}]}]}),
}


def put(folder: Path, text: str, name: str = "a") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------------- door


@pytest.mark.parametrize("task", FILES)
def test_every_task_reads_its_own_file(tmp_path: Path, task: str) -> None:
    found = read_labelled(task, put(tmp_path, FILES[task]), "en")
    assert (len(found), found.language, found.origin) == (1, "en", str(tmp_path / "a"))
    assert len(found.fingerprint) == 64
    assert set(READERS) == set(FORMATS) == set(FILES)


#: A file of BIO tags in columns is one for entities or for slots: nothing in it tells which.
ALIKE = {("ner", "slots")}


@pytest.mark.parametrize(
    ("held", "task"), [(a, b) for a in FILES for b in FILES if a != b and (a, b) not in ALIKE]
)
def test_wrong_tasks_are_refused_with_the_formats_known(tmp_path: Path, held: str, task: str) -> None:
    text = FILES[held].replace("Entity=B-X|Slot=B-y", "_") if task in ("ner", "slots") else FILES[held]
    text = "# intent = x\n" + text if held == "slots" else text
    if (held, task) == ("parsing", "pos"):
        assert read_labelled(task, put(tmp_path, text), "en").items[0].tags == ("VERB", "NUM")
        return
    with pytest.raises(BadInput, match=f"for {task} --format takes {', '.join(FORMATS[task])}"):
        read_labelled(task, put(tmp_path, text), "en")


def test_settings(tmp_path: Path) -> None:
    path = put(tmp_path, TREE)
    with pytest.raises(BadSetting, match="did you mean parsing"):
        read_labelled("parse", path, "en")
    with pytest.raises(BadSetting, match=r"subtypes of a file for pos \(it is for parsing\)"):
        read_labelled("pos", path, "en", subtypes=True)
    with pytest.raises(BadSetting, match="context language of a file for nli"):
        read_labelled("nli", path, "en", context_language="de")
    assert read_labelled("parsing", path, "en", subtypes=True).items[0].labels == ("root", "obj:x")
    qa = read_labelled("qa", put(tmp_path, FILES["qa"]), "en", context_language="de")
    assert qa.items[0].languages == ("en", "de")


def test_the_fingerprint_is_of_what_was_said(tmp_path: Path) -> None:
    found = [read_labelled("ner", put(tmp_path, text), "en") for text in ("a\tO\n", "\n\na\tO\n", "a\tB-X\n")]
    assert found[0].fingerprint == found[1].fingerprint != found[2].fingerprint


marks = st.sampled_from(
    ["\n", "\n\n", "\t", " ", "\0", "\u2028", "#", "_", "{", "}", "[", "]", '"', ":", "0", "1", "2"]
)
words = st.sampled_from(
    ["a", "O", "B-x", "I-x", "neutral", '"data"', "-DOCSTART-", "# intent = x", "Entity=B-x"]
)
whole = st.sampled_from(["premise\thypothesis\tlabel\n", *FILES.values()])
piece = marks | words | whole


@given(st.lists(piece, max_size=12).map("".join), st.sampled_from(sorted(FILES)), st.booleans(), st.data())
def test_any_text_is_read_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, text: str, task: str, skip_bad: bool, data: st.DataObject
) -> None:
    path = put(tmp_path_factory.getbasetemp(), text, "any")
    known = [name for name in FORMATS[task] if name not in ("dataset", "folder")]
    format = data.draw(st.sampled_from([None, *known]))
    for read in (
        lambda: read_labelled(task, path, "en", format=format, skip_bad=skip_bad),
        lambda: read_unlabelled(task, path, "en", skip_bad=skip_bad),
    ):
        try:
            assert len(read()) > 0
        except BadInput as error:
            assert error.where == str(path)


# ------------------------------------------------------------------------------------------- no labels


def test_sentences_without_labels(tmp_path: Path) -> None:
    path = put(tmp_path, "Mr. Smith's here, now.\n\n  \nBye .\n")
    found = read_unlabelled("ner", path, "en")
    words = ("Mr.", "Smith", "'s", "here", ",", "now", ".")
    assert found.items == (Tagged(words, (), "1", 1), Tagged(("Bye", "."), (), "4", 4))
    assert found.dropped == {"empty line": 2}
    assert read_unlabelled("pos", path, "en", tokenised=True).items[0].words == (
        "Mr.",
        "Smith's",
        "here,",
        "now.",
    )
    tree = read_unlabelled("parsing", path, "en", limit=1).items[0]
    assert (tree.words, set(tree.heads), set(tree.labels)) == (words, {-1}, {"_"})


def test_a_treebank_keeps_its_words(tmp_path: Path) -> None:
    path = put(tmp_path, TREE)
    tree = read_unlabelled("parsing", path, "en").items[0]
    assert tree == Tree(("go", "5 000"), ("VERB", "NUM"), (-1, -1), ("_", "_"), ("_", "_"))
    assert read_unlabelled("slots", path, "en").items == (Tagged(("go", "5 000"), (), "", 1),)


@pytest.mark.parametrize("task", ["ner", "pos", "parsing"])
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("# id = 1\nViktor\tB-ORG\nspielt\tO\n\nHier\tO\n", "columns between tabs"),
        ("A title\n" + "A cat.\tEine Katze.\n" * 20, "columns between tabs"),
        (FILES["slots"], "columns with word numbers"),
        (FILES["qa"], "JSON"),
    ],
)
def test_labelled_files_are_no_sentences(tmp_path: Path, task: str, text: str, what: str) -> None:
    with pytest.raises(BadInput, match=rf"looks like {what}.*\(a sentence a line, or CoNLL-U\)"):
        read_unlabelled(task, put(tmp_path, text), "en")


def test_a_sentence_with_a_tab_is_a_sentence(tmp_path: Path) -> None:
    assert len(read_unlabelled("ner", put(tmp_path, "A\tcat.\n# A dog.\nA cow.\n"), "en")) == 3


def test_texts_without_labels(tmp_path: Path) -> None:
    expected = (TextPair("a", "b", "", ("en", "en"), "1", 1), TextPair("c", "d", "", ("en", "en"), "2", 2))
    assert read_unlabelled("nli", put(tmp_path, "a\tb\nc\td\n"), "en").items == expected
    assert read_unlabelled("nli", put(tmp_path, "a\tb\tneutral\nc\td\n"), "en").items == expected
    named = read_unlabelled("nli", put(tmp_path, "sentence2\tx\tsentence1\nb\t?\ta\n"), "en")
    assert [(pair.first, pair.second) for pair in named.items] == [("a", "b")]
    tsv = read_unlabelled("qa", put(tmp_path, "?\ta b\n"), "de", context_language="en")
    assert tsv.items == (Question("?", "a b", (), ("de", "en"), "1", 1),)
    assert read_unlabelled("qa", put(tmp_path, json.dumps(SQUAD)), "en").items[0].id == "q"
    assert read_unlabelled("qa", put(tmp_path, FILES["qa"]), "en").items[0].answers == ()


@pytest.mark.parametrize(
    ("task", "text", "what"),
    [
        ("ner", "", "no items here"),
        ("ner", "\n \n", r"no item left: all 2 dropped \(2 empty line\)"),
        ("ner", "a\nb\0c\n", r":2: a text holds a NUL"),
        ("nli", "a\tb\nalone\n", r":2: 1 columns"),
        ("qa", "a\tb\nalone\n", r":2: 1 columns \(question ⇥ paragraph"),
        ("qa", "a\t \n", r":1: an empty paragraph"),
        ("parsing", "1\ta\n" * 0, "no items here"),
    ],
)
def test_mistakes_in_text_without_labels(tmp_path: Path, task: str, text: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        read_unlabelled(task, put(tmp_path, text), "en")
    with pytest.raises(BadSetting, match="unknown task"):
        read_unlabelled("tagging", tmp_path / "a", "en")


# --------------------------------------------------------------------------------------------- writing


def test_tags_in_three_columns(tmp_path: Path) -> None:
    sentences = [Tagged(("New York", "is"), ("B-LOC", "O")), Tagged(("x",), ("O",))]
    write_tagged(tmp_path / "p", sentences, [("B-LOC", "I-LOC"), ("O",)])
    assert (tmp_path / "p").read_text() == "New_York B-LOC B-LOC\nis O I-LOC\n\nx O O\n\n"
    assert [item.tags for item in read_labelled("ner", tmp_path / "p", "en").items] == [
        ("B-LOC", "I-LOC"),
        ("O",),
    ]
    write_tagged(tmp_path / "p", [Tagged(("a", "b"), ())], [("O", "B-X")], separator="\t")
    assert (tmp_path / "p").read_text() == "a\tO\nb\tB-X\n\n"


def test_nothing_is_written_when_lengths_differ(tmp_path: Path) -> None:
    sentences = [Tagged(("a", "b"), ("O", "O"))]
    for predicted in ([("O",)], []):
        with pytest.raises(ValueError, match="zip"):
            write_tagged(tmp_path / "p", sentences, predicted)
    assert list(tmp_path.iterdir()) == []


def test_pairs_are_read_back(tmp_path: Path) -> None:
    pairs = [
        TextPair("a\tb\n c", "d", "neutral", ("en", "en")),
        TextPair("e", "f", "entailment", ("en", "en")),
    ]
    write_pairs_tsv(tmp_path / "p.tsv", pairs, ["entailment", "neutral"])
    found = read_labelled("nli", tmp_path / "p.tsv", "en")
    assert [(i.first, i.second, i.label) for i in found.items] == [
        ("a b c", "d", "neutral"),
        ("e", "f", "entailment"),
    ]
    cells = [line.split("\t") for line in (tmp_path / "p.tsv").read_text().splitlines()]
    assert [row[3] for row in cells] == ["predicted", "entailment", "neutral"]


def test_trees_with_predicted_heads(tmp_path: Path) -> None:
    trees = read_conllu(put(tmp_path, TREE))
    write_trees(tmp_path / "p.conllu", trees, [[2, 0]], [["obj", "root"]])
    (found,) = read_conllu(tmp_path / "p.conllu")
    assert (found.words, found.heads, found.labels) == (("go", "5 000"), (2, 0), ("obj", "root"))


def test_answers_by_id(tmp_path: Path) -> None:
    questions = [Question("?", "a b", (), ("en", "en"), id) for id in ("2", "1")]
    write_answers(tmp_path / "p.json", questions, ["ä", "b"])
    assert json.loads((tmp_path / "p.json").read_text(encoding="utf-8")) == {"1": "b", "2": "ä"}
    with pytest.raises(BadInput, match="ids are missing or repeated"):
        write_answers(tmp_path / "q.json", [questions[0], questions[0]], ["a", "b"])
    assert not (tmp_path / "q.json").exists()
