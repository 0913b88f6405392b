"""Lexicon induction and alignment by word types as typed: files of vectors, a small BERT, mistakes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from calque.cli import main
from calque.pipeline import align, measure_lexicon
from calque.store import load_results
from planted import orthogonal

WORDS, WIDTH = 300, 20


@dataclass
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def calque(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command line in this process."""

    def run(*words: object) -> Ran:
        monkeypatch.setattr("sys.argv", ["calque", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
            raise SystemExit(0)
        told = capsys.readouterr()
        return Ran(int(stop.value.code or 0), told.out, told.err)

    return run


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of two languages in unrelated bases, some names the same, dictionaries to learn and to test."""
    folder, rng = tmp_path_factory.mktemp("vectors"), np.random.default_rng(0)
    fading = np.arange(1, WIDTH + 1) ** -0.4
    meaning = rng.normal(size=(WORDS, WIDTH)) * fading
    for code, turn in (("en", np.eye(WIDTH)), ("de", orthogonal(WIDTH, 4))):
        side = (meaning + 0.15 * rng.normal(size=meaning.shape) * fading) @ turn.T
        names = [f"Name{k}" if k % 20 == 0 else f"{code}{k}" for k in range(WORDS)]
        rows = [f"{word} {' '.join(f'{x:.6f}' for x in row)}" for word, row in zip(names, side, strict=True)]
        (folder / f"{code}.vec").write_text(f"{WORDS} {WIDTH}\n" + "\n".join(rows) + "\n")
    entries = [f"en{k} de{k}" for k in range(WORDS) if k % 20]
    (folder / "en-de.train.txt").write_text("\n".join(entries[:12]) + "\n")
    (folder / "en-de.test.txt").write_text("\n".join([*entries[200:], "nowhere nirgends"]) + "\n")
    (folder / "de-en.test.txt").write_text("\n".join(" ".join(e.split()[::-1]) for e in entries[200:]) + "\n")
    return folder


@pytest.fixture
def spec(files: Path) -> str:
    return f"en={files / 'en.vec'},de={files / 'de.vec'}"


def p_at_1(folder: Path, encoder: str, direction: str = "forward") -> float:
    (found,) = (
        r.value
        for r in load_results(folder / "results.jsonl")
        if (r.metric, r.encoder, r.direction, r.group, r.baseline) == ("p@1", encoder, direction, None, None)
    )
    return found


def test_static_vectors_by_dictionary_and_refinement(
    calque: Callable[..., Ran], files: Path, spec: str, tmp_path: Path
) -> None:
    learned = ("--supervision", "dictionary", "--dictionary", files / "en-de.train.txt")
    plain = calque("align", "--encoder", spec, *learned, "--shrink", 0.01, "--out", tmp_path / "plain")
    assert plain.code == 0 and "used 12" in plain.out, plain.err
    refined = calque("align", "--encoder", spec, *learned, "--refine", 8, "--out", tmp_path / "refined")
    assert refined.code == 0 and "words find each other" in refined.out, refined.err
    measured = calque(
        "measure", "lexicon", "--encoder", spec, "--encoder", tmp_path / "plain",
        "--encoder", tmp_path / "refined", "--label", "apart", "--label", "plain", "--label", "refined",
        "--dictionary", files / "en-de.test.txt", "--dictionary", files / "de-en.test.txt",
        "--out", tmp_path / "lexicon",
    )  # fmt: skip
    assert measured.code == 0, measured.err
    assert "170 of 171 words covered (99.4%); not in the vocabulary 1" in measured.out
    for direction in ("forward", "backward", "both"):
        apart, plain, refined = (
            p_at_1(tmp_path / "lexicon", one, direction) for one in ("apart", "plain", "refined")
        )
        assert apart < 0.1 and plain < 0.9 and refined > 0.97
    assert calque("report", tmp_path / "lexicon").code == 0


def test_identical_words_are_enough(
    calque: Callable[..., Ran], files: Path, spec: str, tmp_path: Path
) -> None:
    made = calque(
        "align", "--encoder", spec, "--supervision", "identical", "--refine", 8, "--method", "rotation",
        "--json", "--out", tmp_path / "aligned",
    )  # fmt: skip
    assert made.code == 0, made.err
    told = json.loads(made.out)
    assert told["coverage"]["en-de"]["used"] == 15 and told["refined"]["de"][0]["layer"] == 0
    measure_lexicon(tmp_path / "aligned", files / "en-de.test.txt", out=tmp_path / "lexicon")
    assert p_at_1(tmp_path / "lexicon", "aligned") > 0.97
    none = calque("align", "--encoder", spec, "--supervision", "numerals", "--out", tmp_path / "none")
    assert none.code == 2 and "no number is written the same in en and de" in none.err


def test_pairs_learned_from_are_left_out_unless_kept(files: Path, spec: str, tmp_path: Path) -> None:
    align(
        spec,
        supervision="dictionary",
        dictionary=(str(files / "en-de.train.txt"),),
        shrink=0.1,
        out=tmp_path / "a",
    )
    both = [files / "en-de.train.txt", files / "en-de.test.txt"]
    left = measure_lexicon([spec, tmp_path / "a"], both, out=tmp_path / "left")
    assert left.counts["seen in training"] == 12
    kept = measure_lexicon([spec, tmp_path / "a"], both, include_seen=True, out=tmp_path / "kept")
    assert kept.counts["scored"] == left.counts["scored"] + 12
    assert {r.group for r in kept.results if r.group and r.group[0] == "seen"} == {
        ("seen", "seen"),
        ("seen", "unseen"),
    }


def test_a_contextual_encoder_by_anchors_and_by_embeddings(
    calque: Callable[..., Ran], corpus: Path, bert: Path, tmp_path: Path
) -> None:
    words = ("--dictionary", corpus / "words.txt", "--languages", "en", "de", "--backward", "--include-seen")
    anchored = calque(
        "measure", "lexicon", "--encoder", bert, *words, "--pairs", corpus / "links" / "train",
        "--layers", "0,3", "--out", tmp_path / "anchors",
    )  # fmt: skip
    assert anchored.code == 0, anchored.err
    assert "24 of 24 words covered (100.0%)" in anchored.out
    found = load_results(tmp_path / "anchors" / "results.jsonl")
    assert {r.layer for r in found} == {0, 3} and {r.variant for r in found} == {"anchors"}
    for code, words_of in (("en", "the cat dog and"), ("de", "die Katze Hund und")):
        (tmp_path / f"{code}.txt").write_text(f"{words_of}\n" * 2, encoding="utf-8")
    given = ("--text", f"en={tmp_path / 'en.txt'},de={tmp_path / 'de.txt'}")
    by_text = calque("measure", "lexicon", "--encoder", bert, *words, *given, "--out", tmp_path / "text")
    assert by_text.code == 0 and "8 of 24 words covered" in by_text.out, by_text.err
    single = calque(
        "measure",
        "lexicon",
        "--encoder",
        bert,
        *words,
        "--vectors",
        "embeddings",
        "--out",
        tmp_path / "embeddings",
    )
    assert single.code == 0, single.err
    found = load_results(tmp_path / "embeddings" / "results.jsonl")
    assert {r.layer for r in found} == {0} and {r.variant for r in found} == {"embeddings"}
    wrong = calque(
        "measure", "lexicon", "--encoder", bert, *words, "--vectors", "embeddings", "--oov", "wrong",
        "--out", tmp_path / "wrong",
    )  # fmt: skip
    assert "count as wrong" in wrong.out and wrong.code == 0
    assert all(
        r.count == 12
        for r in load_results(tmp_path / "wrong" / "results.jsonl")
        if r.direction == "forward" and not r.group
    )


def test_embeddings_of_two_kinds_are_cut_to_the_same_words(corpus: Path, bert: Path, tmp_path: Path) -> None:
    """Static vectors beside an encoder's embedding layer: only words that are one piece of the latter."""
    rng = np.random.default_rng(0)
    known = [line.split() for line in (corpus / "words.txt").read_text(encoding="utf-8").splitlines()]
    for side, code in enumerate(("en", "de")):
        rows = [
            f"{pair[side]} {' '.join(f'{x:.4f}' for x in rng.normal(size=5))}"
            for pair in [*known, ("zebra", "Zebra")]
        ]
        (tmp_path / f"{code}.vec").write_text("\n".join(rows) + "\n", encoding="utf-8")
    static = f"en={tmp_path / 'en.vec'},de={tmp_path / 'de.vec'}"
    settings = {"languages": ("en", "de"), "vectors": "embeddings", "labels": ("a", "b"), "rounds": 20}
    both = measure_lexicon([static, bert], corpus / "words.txt", out=tmp_path / "both", **settings)
    alone = measure_lexicon([static, static], corpus / "words.txt", out=tmp_path / "alone", **settings)
    assert both.counts["source candidates"] < alone.counts["source candidates"] == 13
    counts = {
        r.encoder: r.count for r in both.results if r.metric == "p@1" and not r.group and not r.baseline
    }
    assert counts["a"] == counts["b"] == both.counts["scored"]


def test_links_are_refined_and_anchors_need_a_text(corpus: Path, bert: Path, tmp_path: Path) -> None:
    links = corpus / "links" / "train"
    refined = align(bert, links, method="rotation", refine=2, out=tmp_path / "refined")
    assert refined.about["refined"]["de"][0]["layer"] == 3
    by_words = align(
        bert, supervision="dictionary", dictionary=(str(corpus / "words.txt"),), languages=("en", "de"),
        layers="0", shrink=0.5, out=tmp_path / "embedded",
    )  # fmt: skip
    assert 0 < by_words.about["coverage"]["en-de"]["used"] <= 12, "single pieces only, without any text"


MISTAKES = {
    "unknown vectors": (["--vectors", "anchor"], "vectors"),
    "unknown oov": (["--oov", "ignore"], "oov"),
    "no file": (["--dictionary", "{files}/nothing.txt"], "languages of this dictionary"),
    "a missing file": (["--dictionary", "{files}/en-fr.txt"], "no such file"),
    "a text without a language": (["--text", "corpus.txt"], "is not LANGUAGE=FILE"),
    "anchors without a text": (["--vectors", "anchors"], "no en text"),
    "a layer of words by themselves": (["--layers", "3"], "no layer"),
    "nothing to read": (["--min-count", "0"], "min_count"),
    "no words": (["--max-vocab", "0"], "max_vocab"),
}


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_mistakes_are_answered(
    mistake: str, calque: Callable[..., Ran], files: Path, spec: str, tmp_path: Path
) -> None:
    extra, told = MISTAKES[mistake]
    given = [word.format(files=files) for word in extra]
    words = () if "--dictionary" in extra else ("--dictionary", files / "en-de.test.txt")
    ran = calque("measure", "lexicon", "--encoder", spec, *words, *given, "--out", tmp_path / "out")
    assert ran.code == 2 and told in ran.err and "Traceback" not in ran.err, ran.err
    assert not (tmp_path / "out").exists()


def test_files_that_do_not_fit(
    calque: Callable[..., Ran], files: Path, spec: str, bert: Path, tmp_path: Path
) -> None:
    def fails(*words: object) -> str:
        ran = calque(*words, "--out", tmp_path / "out")
        assert ran.code == 2 and not (tmp_path / "out").exists(), ran.out
        return ran.err

    test = files / "en-de.test.txt"
    lexicon = ("measure", "lexicon", "--encoder")
    (tmp_path / "en-de.none.txt").write_text("q r\ns t\n")
    assert "none of the 2 words" in fails(*lexicon, spec, "--dictionary", tmp_path / "en-de.none.txt")
    (tmp_path / "en-de.empty.txt").write_text("\n\n")
    assert "no word pairs here" in fails(*lexicon, spec, "--dictionary", tmp_path / "en-de.empty.txt")
    (tmp_path / "en-de.odd.txt").write_text("a b\na b c d\n")
    assert "en-de.odd.txt:2" in fails(*lexicon, spec, "--dictionary", tmp_path / "en-de.odd.txt")
    assert "no vectors for 'fr'" in fails(*lexicon, spec, "--dictionary", test, "--languages", "fr", "de")
    (tmp_path / "narrow.vec").write_text("de41 1 2 3\nde42 1 2 4\n")
    narrow = f"en={files / 'en.vec'},de={tmp_path / 'narrow.vec'}"
    assert "tables of one width" in fails(*lexicon, narrow, "--dictionary", test)
    (tmp_path / "broken.vec").write_text("de41 1 2 3\nde42 1 x 4\n")
    assert "broken.vec:2" in fails(*lexicon, f"en={tmp_path / 'broken.vec'}", "--dictionary", test)
    assert "has no static vectors" in fails(*lexicon, bert, "--dictionary", test, "--vectors", "static")
    (tmp_path / "empty.txt").write_text("\n")
    empty = ("--text", f"en={tmp_path / 'empty.txt'}", "--text", f"de={tmp_path / 'empty.txt'}")
    assert "no words in the en text" in fails(*lexicon, bert, "--dictionary", test, *empty)

    aligning = ("align", "--encoder", spec)
    assert "no linked words to learn from" in fails(*aligning)
    assert "no linked words to learn from" in fails("align", "--encoder", bert, "--method", "weak")
    assert "no dictionary" in fails(*aligning, "--supervision", "dictionary")
    assert "--text is not used" in fails(*aligning, "--pairs", tmp_path, *empty)
    by_words = ("--supervision", "dictionary", "--dictionary", files / "en-de.train.txt")
    assert "does not depend on pairs" in fails(*aligning, *by_words, "--refine", 2, "--method", "centring")
    assert "20 dimensions" not in fails(*aligning, *by_words, "--refine", -1)
    assert "no en text" in fails("align", "--encoder", bert, *by_words, "--refine", 2)
    assert "which two languages?" in fails("align", "--encoder", bert, "--supervision", "identical")


def test_the_same_again_is_found_and_other_words_are_another_run(
    calque: Callable[..., Ran], files: Path, spec: str, tmp_path: Path
) -> None:
    words = (
        "measure",
        "lexicon",
        "--encoder",
        spec,
        "--dictionary",
        files / "en-de.test.txt",
        "--out",
        tmp_path / "a",
    )
    assert "written" in calque(*words).out
    assert "already there" in calque(*words).out
    other = calque(*words, "--max-vocab", 100)
    assert other.code == 2 and "another recipe" in other.err
    told = json.loads(calque(*words, "--json").out)
    assert told["counts"]["words"] == 86 and told["results"][0]["task"] == "lexicon"


def test_real_dictionaries_are_read(shared_data: Path, tmp_path: Path) -> None:
    """Random vectors of real words: nothing is found, but everything that is covered is counted."""
    test = shared_data / "dictionaries" / "en-de.5000-6500.txt"
    pairs = [line.split() for line in test.read_text(encoding="utf-8").splitlines()]
    rng = np.random.default_rng(0)
    for side, code in enumerate(("en", "de")):
        known = list(dict.fromkeys(pair[side] for pair in pairs))[:: 1 + side]
        rows = [f"{word} {' '.join(f'{x:.4f}' for x in rng.normal(size=8))}" for word in known]
        (tmp_path / f"{code}.vec").write_text("\n".join(rows) + "\n", encoding="utf-8")
    run = measure_lexicon(f"en={tmp_path / 'en.vec'},de={tmp_path / 'de.vec'}", test, out=tmp_path / "out")
    assert run.counts["words"] == 1500 and run.counts["not in the vocabulary"] == 0
    assert 0 < run.counts["no translation in the vocabulary"] < 1500
