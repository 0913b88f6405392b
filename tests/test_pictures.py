"""`calque measure projection`, `examples` and `all` on a small corpus: folders, runs again, mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import small_corpus
from calque.cli import main
from calque.errors import BadInput, BadSetting
from calque.pipeline import align, measure_all, measure_examples, measure_projection, report
from calque.report.collect import collect
from calque.store import save_pairs
from calque.types import Bitext, WordPairs

FAST = {"rounds": 20, "device": "cpu"}


@pytest.fixture(scope="module")
def aligned(corpus: Path, bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aligned") / "after"
    align(str(bert), corpus / "links" / "train", out=folder, layers="all", method="centring")
    return folder


def read(folder: Path, name: str) -> list[dict[str, object]]:
    return json.loads((folder / "artifacts" / f"{name}.json").read_text(encoding="utf-8"))


def test_the_same_words_before_and_after(corpus: Path, bert: Path, aligned: Path, tmp_path: Path) -> None:
    given = {"labels": ("before", "after"), "types": 4, "occurrences": 6, "perplexity": 6.0, **FAST}
    pairs = corpus / "links" / "test"
    run = measure_projection([bert, aligned], pairs, out=tmp_path / "p", layers="0,last", **given)
    pictures = read(run.folder, "projections")
    assert [(one["encoder"], one["layer"]) for one in pictures] == [
        ("before", 0), ("before", 3), ("after", 0), ("after", 3),
    ]  # fmt: skip
    points = [one["points"] for one in pictures]
    assert {len(one) for one in points} == {run.counts["points"]}
    assert all(np.isfinite([p["x"], p["y"]]).all() for one in points for p in one)
    assert {(p["word"], p["language"]) for p in points[0]} <= {
        *((word, "en") for word in small_corpus.INTO), *((word, "de") for word in small_corpus.INTO.values()),
    }  # fmt: skip
    alone = {**given, "labels": ("before",)}
    again = measure_projection(bert, pairs, out=tmp_path / "q", layers="0", **alone)
    assert read(again.folder, "projections") == pictures[:1], "the same for a seed"
    words = {"words": ("cat", "Hund"), "projection": "pca"}
    named = measure_projection(bert, pairs, out=tmp_path / "r", **words, **FAST)
    assert {p["group"] for p in read(named.folder, "projections")[0]["points"]} == {"cat", "hund"}
    with pytest.raises(BadInput, match=r"no link of 'catt' .*did you mean cat"):
        measure_projection(bert, pairs, out=tmp_path / "s", words=("catt",), **FAST)
    with pytest.raises(BadSetting, match=r"perplexity 500 with .* points"):
        measure_projection(bert, pairs, out=tmp_path / "s", perplexity=500, **FAST)
    assert not (tmp_path / "s").exists()


@pytest.fixture(scope="module")
def ambiguous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small corpus, but for `mat`, which is Matte or Deckel."""
    from calque.pipeline import link

    folder = tmp_path_factory.mktemp("ambiguous")
    rng = np.random.default_rng(1)
    lines, links = [], []
    for k in range(80):
        words = ["the"] * 4 + rng.choice([*small_corpus.INTO], 3).tolist() + ["mat", f"x{k}"]
        into = {**small_corpus.INTO, "mat": ("Matte", "Deckel")[k % 2], f"x{k}": f"y{k}"}
        lines.append(f"{' '.join(words)}\t{' '.join(into[word] for word in words)}\n")
        links.append(" ".join(f"{i}-{i}" for i in range(len(words))) + "\n")
    (folder / "text.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "gold.links").write_text("".join(links))
    given = {"tokenised": True, "links": str(folder / "gold.links"), "keep_duplicates": True}
    link(folder / "text.tsv", ("en", "de"), out=folder / "links", **given)
    return folder / "links" / "train"


def test_ambiguous_words_in_a_run_of_their_own(ambiguous: Path, bert: Path, tmp_path: Path) -> None:
    given = {"occurrences": 6, "sentences": 40, **FAST}
    run = measure_examples(bert, ambiguous, out=tmp_path / "e", **given)
    told = {(one["languages"][0], one["word"]): one for one in read(run.folder, "senses")}
    assert ("en", "mat") in told and len(told["en", "mat"]["occurrences"]) == 6
    assert run.counts["sentences"] == 40 and {r.task for r in run.results} == {"ambiguous-words"}
    assert collect(run.folder).senses
    with pytest.raises(BadSetting, match="one layer"):
        measure_examples(bert, ambiguous, out=tmp_path / "f", layers="all", **given)


def test_ambiguous_words_are_missed_politely(corpus: Path, bert: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no word has two senses"):
        measure_examples(bert, corpus / "links" / "test", out=tmp_path / "e", **FAST)
    assert not (tmp_path / "e").exists()


# ------------------------------------------------------------------------------------------ everything


def test_all_measures_in_folders_of_their_own(
    corpus: Path, bert: Path, aligned: Path, tmp_path: Path
) -> None:
    dictionary = tmp_path / "en-de.txt"
    dictionary.write_text((corpus / "words.txt").read_text(encoding="utf-8"), encoding="utf-8")
    lines: list[str] = []
    given = {"dictionary": dictionary, "include_seen": True, "limit": 15, "tell": lines.append, **FAST}
    run = measure_all([bert, aligned], corpus / "links" / "test", out=tmp_path / "all", **given)
    names = ["words", "lexicon", "sentences", "cka", "distances", "projection"]
    assert list(run.runs) == names and not run.failed
    assert [line.split()[3] for line in lines] == names and all("done in" in line for line in lines)
    assert {part.folder.name for part in collect(tmp_path / "all").parts} == set(names)
    page = report(tmp_path / "all").read_text(encoding="utf-8")
    assert all(name in page for name in names)

    lines.clear()
    written = [file.stat().st_mtime_ns for file in sorted((tmp_path / "all").rglob("finished.json"))]
    again = measure_all([bert, aligned], corpus / "links" / "test", out=tmp_path / "all", **given)
    assert all("already there" in line for line in lines) and list(again.runs) == names
    assert written == [file.stat().st_mtime_ns for file in sorted((tmp_path / "all").rglob("finished.json"))]
    assert again.runs["words"].results == run.runs["words"].results


def test_a_measure_that_cannot_be_done_does_not_stop_the_others(
    corpus: Path, bert: Path, tmp_path: Path
) -> None:
    dictionary, lines = tmp_path / "en-de.txt", []
    dictionary.write_text("nobody niemand\n", encoding="utf-8")
    given = {"dictionary": dictionary, "limit": 15, "tell": lines.append, **FAST}
    run = measure_all(bert, corpus / "links" / "test", out=tmp_path / "all", **given)
    assert "lexicon" in run.failed and "lexicon" not in run.runs and len(run.runs) == 5
    assert any(line.startswith("2 of 6: lexicon not done: ") for line in lines)
    assert not (tmp_path / "all" / "lexicon").exists()


@pytest.mark.parametrize("quiet", [True, False])
def test_a_measure_that_was_not_done_is_in_the_exit_code(
    quiet: bool, bert: Path, corpus: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "en-de.txt").write_text("nobody niemand\n", encoding="utf-8")
    words = [
        "measure",
        "all",
        "--encoder",
        bert,
        "--pairs",
        corpus / "links" / "test",
        "--out",
        tmp_path / "o",
    ]
    how = ["--dictionary", tmp_path / "en-de.txt", "--limit", 15, "--rounds", 10, *(["--quiet"] * quiet)]
    monkeypatch.setattr("sys.argv", ["calque", *map(str, [*words, *how])])
    with pytest.raises(SystemExit) as stop:
        main()
    told = capsys.readouterr()
    assert stop.value.code == 1 and "lexicon not done: " in (told.err if quiet else told.out)
    assert not quiet or not told.out


def test_mistakes_that_concern_all_are_told_at_once(corpus: Path, bert: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    pairs = corpus / "links" / "test"
    with pytest.raises(BadInput, match="no word pairs here"):
        measure_all(bert, tmp_path / "nowhere", out=tmp_path / "all", tell=lines.append)
    with pytest.raises(BadInput, match=r"nosuch\.txt: no such file"):
        measure_all(bert, pairs, dictionary="nosuch.txt", out=tmp_path / "all", tell=lines.append)
    with pytest.raises(BadSetting, match="one different label each"):
        measure_all(bert, pairs, out=tmp_path / "all", labels=("a", "b"), tell=lines.append)
    with pytest.raises(BadSetting, match="holds a run of its own"):
        measure_all(bert, pairs, out=corpus / "links", tell=lines.append)
    with pytest.raises(BadSetting, match="no layer '9'"):
        measure_all(bert, pairs, out=tmp_path / "all", layers="9", tell=lines.append)
    assert not lines and not (tmp_path / "all").exists()


def test_where_nothing_can_be_done_all_reasons_are_told(bert: Path, tmp_path: Path) -> None:
    bitext = Bitext.of(("en", "de"), [["cat", "sat"]], [["cat", "sat"]])
    save_pairs(tmp_path / "pairs", WordPairs.of(bitext, [0, 0], [0, 1], [0, 1]))
    with pytest.raises(BadInput, match=r"words: .*; sentences: .*; cka: .*; distances: .*; projection: "):
        measure_all(bert, tmp_path / "pairs", out=tmp_path / "all", **FAST)
    assert not (tmp_path / "all").exists()
