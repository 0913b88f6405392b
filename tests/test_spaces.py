"""CKA, distances and correlation as verbs: what they write, and what they say of mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from calque.cli import main
from calque.encoders.open import open_encoder
from calque.encoders.untrained import untrained
from calque.errors import BadInput, BadSetting
from calque.files import read_json
from calque.geometry.cka import debiased_cka, linear_cka
from calque.pipeline import align, measure_cka, measure_correlation, measure_distances, report
from calque.store import load_pairs, load_results, save_results
from calque.types import Result

Told = Callable[..., str]
FAST: dict[str, Any] = {"rounds": 50}


@pytest.fixture(scope="module")
def rotated(corpus: Path, bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small BERT, its languages rotated onto each other at the last layer."""
    folder = tmp_path_factory.mktemp("rotated") / "rotated"
    align(str(bert), corpus / "links" / "train", out=folder, method="rotation", shrink=0.3, layers="3")
    return folder


@pytest.fixture
def calque(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """Type a command; it must end with this exit code. Returns all it printed."""

    def run(*words: object, code: int = 0) -> str:
        monkeypatch.setattr("sys.argv", ["calque", "measure", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        assert (stop.value.code or 0) == code, told.out + told.err
        return told.out + told.err

    return run


def one(results: Any, **wanted: Any) -> Result:
    asked = {"baseline": None} | wanted
    (found,) = [r for r in results if all(getattr(r, k) == v for k, v in asked.items())]
    return found


# ------------------------------------------------------------------------------------------------ cka


def test_cka_of_encoders_on_disk(corpus: Path, bert: Path, rotated: Path, tmp_path: Path) -> None:
    run = measure_cka([bert, rotated], corpus / "links" / "test", out=tmp_path / "cka", **FAST)
    bitext = load_pairs(corpus / "links" / "test").bitext
    encoder = open_encoder(str(bert))
    en, de = (
        encoder.sentence_vectors(side, layers=[0, 1, 2, 3]).astype(np.float16).astype(float)
        for side in (bitext.source, bitext.target)
    )
    for layer in range(4):
        for variant, truth in (("linear", linear_cka), ("debiased", debiased_cka)):
            found = one(run.results, encoder=bert.name, layer=layer, variant=variant)
            assert found.value == pytest.approx(truth(en[layer], de[layer]), abs=1e-6)
            assert found.count == 20 == run.counts["scored"]
    turned = one(run.results, encoder="rotated", layer=3, variant="debiased", baseline=bert.name)
    assert turned.value == pytest.approx(0, abs=1e-4), "a rotation changes no CKA"
    names = {r.encoder for r in run.results}
    assert names == {bert.name, "rotated", f"{bert.name} floor", f"{bert.name} × rotated"}
    twin = untrained(encoder, seed=0)
    assert twin is not None
    random = twin.sentence_vectors(bitext.target, layers=[2])[0].astype(np.float16).astype(float)
    floor = one(run.results, encoder=f"{bert.name} floor", layer=2, variant="linear")
    assert floor.value == pytest.approx(linear_cka(en[2], random), abs=1e-6)
    maps = read_json(tmp_path / "cka" / "artifacts" / "heatmaps.json")
    assert {(m["title"], m["variant"], len(m["values"])) for m in maps} >= {
        (f"{bert.name}, English–German", "linear", 4), (f"{bert.name} × rotated, German", "debiased", 4),
    }  # fmt: skip
    held = {f"{r.items}.safetensors" for r in run.results if r.items}
    assert held == {file.name for file in (tmp_path / "cka" / "items").iterdir()}
    again = measure_cka([bert, rotated], corpus / "links" / "test", out=tmp_path / "cka", **FAST)
    assert again.results == run.results
    assert report(tmp_path / "cka").is_file()


def test_cka_of_texts_without_floor_and_with_first_tokens(corpus: Path, bert: Path, tmp_path: Path) -> None:
    text = f"en,de={corpus / 'text.tsv'}"
    settings = {"floor": False, "same_layer": True, "pooling": "first", "layers": "2-3", **FAST}
    run = measure_cka(bert, text=text, out=tmp_path / "cka", limit=30, **settings)
    assert {(r.encoder, r.layer) for r in run.results} == {(bert.name, layer) for layer in (None, 2, 3)}
    assert run.counts["scored"] == 30 and not (tmp_path / "cka" / "artifacts" / "heatmaps.json").exists()
    with pytest.raises(BadInput, match="at layer 0, en: all vectors are the same"):
        measure_cka(bert, text=text, out=tmp_path / "x", pooling="first", layers="0,1", **FAST)
    assert not (tmp_path / "x").exists()


def test_cka_compares_encoders_once_in_a_language_that_several_pairs_have(
    corpus: Path, bert: Path, rotated: Path, tmp_path: Path
) -> None:
    twice = [corpus / "links" / "test", corpus / "links" / "train"]
    run = measure_cka(
        [bert, rotated], twice, out=tmp_path / "cka", layers="3", floor=False, same_layer=True, **FAST
    )
    between = [r for r in run.results if r.task == "cka-between-encoders" and r.variant == "linear"]
    assert sorted((r.languages, r.count) for r in between) == [(("de", "de"), 20), (("en", "en"), 20)]


def test_cka_and_bad_input(calque: Told, corpus: Path, bert: Path, tmp_path: Path) -> None:
    one_line, empty = tmp_path / "one.tsv", tmp_path / "empty.tsv"
    one_line.write_text("the cat\tdie Katze\n", encoding="utf-8")
    empty.write_text("", encoding="utf-8")
    start = ("cka", "--encoder", bert, "--out", tmp_path / "out")
    assert "1 sentence pairs: CKA needs 5" in calque(*start, "--text", f"en,de={one_line}", code=2)
    assert "no sentence pairs" in calque(*start, "--text", f"en,de={empty}", code=2)
    assert "give --pairs or --text" in calque(*start, code=2)
    assert "no such file" in calque(*start, "--text", "en,de=nowhere.tsv", code=2)
    pairs = ("--pairs", corpus / "links" / "test")
    assert "pooling" in calque(*start, *pairs, "--pooling", "last", code=2)
    assert "no layer" in calque(*start, *pairs, "--layers", 9, code=2)
    assert "rounds" in calque(*start, *pairs, "--rounds", 0, code=2)
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------------------------------ distances


def test_distances_of_encoders_on_disk(corpus: Path, bert: Path, rotated: Path, tmp_path: Path) -> None:
    run = measure_distances(
        [bert, rotated], corpus / "links" / "test", out=tmp_path / "d", layers="0,3", **FAST
    )
    for metric in ("auc", "overlap", "d-prime", "top-10 share", "anisotropy"):
        found = one(run.results, encoder=bert.name, layer=3, metric=metric, group=None)
        assert found.low is not None and found.high is not None and found.low <= found.value <= found.high
    change = one(run.results, encoder="rotated", layer=3, metric="auc", baseline=bert.name)
    assert change.p is not None and change.value != 0
    still = one(run.results, encoder="rotated", layer=0, metric="auc", baseline=bert.name)
    assert still.value == 0 and still.p == 1
    first, last = read_json(tmp_path / "d" / "artifacts" / "histograms.json")
    assert (first["layer"], last["layer"], len(last["series"])) == (0, 3, 4)
    assert run.counts["scored"] == len(load_pairs(corpus / "links" / "test"))
    assert report(tmp_path / "d").is_file()
    angle = measure_distances(bert, corpus / "links" / "test", out=tmp_path / "c", distance="cosine", **FAST)
    assert {r.variant for r in angle.results} == {"cosine"}


def test_distances_and_bad_input(calque: Told, corpus: Path, bert: Path, tmp_path: Path) -> None:
    start = ("distances", "--encoder", bert, "--out", tmp_path / "out", "--pairs", corpus / "links" / "test")
    assert "one sentence only" in calque(*start, "--limit", 1, code=2)
    assert "leave scaled out" in calque(*start, "--scaled", "--distance", "cosine", code=2)
    assert "distance" in calque(*start, "--distance", "l3", code=2)
    assert not (tmp_path / "out").exists()
    assert "links scored" in calque(*start, "--layers", 2, "--rounds", 20, "--scaled")


# ---------------------------------------------------------------------------------------- correlation


def written(folder: Path, results: list[Result]) -> Path:
    folder.mkdir(parents=True)
    save_results(folder / "results.jsonl", results)
    return folder


def curve(task: str, metric: str, values: Any, **more: Any) -> list[Result]:
    about = {"languages": ("en", "de"), "encoder": "a"} | more
    return [Result(task, metric, float(value), layer=layer, **about) for layer, value in enumerate(values)]


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """CKA of two encoders in both variants, and sentence retrieval of both and of a third."""
    rng = np.random.default_rng(0)
    up = np.linspace(0.1, 0.9, 13)
    alike, found = [], []
    for encoder in ("a", "b"):
        for variant in ("linear", "debiased"):
            noisy = up + rng.normal(size=13) * 0.1
            alike += curve("cka", "cka", noisy, encoder=encoder, variant=variant)
            alike.append(replace(alike[-1], layer=None, value=0.5))
        alike += curve("cka", "cka", up[::-1], encoder=f"{encoder} floor", variant="linear")
    for encoder in ("a", "b", "c"):
        found += curve(
            "sentence-retrieval", "accuracy", up**2, encoder=encoder, variant="mean", direction="both"
        )
        found += curve(
            "sentence-retrieval", "accuracy", up * 0, encoder=encoder, variant="mean", direction="forward"
        )
    return written(tmp_path / "alike", alike), written(tmp_path / "found", found)


def test_correlation_over_layers(runs: tuple[Path, Path], tmp_path: Path) -> None:
    run = measure_correlation(*runs, x="cka", y="sentence-retrieval/accuracy", out=tmp_path / "r", rounds=500)
    assert {(r.encoder, r.metric, r.count) for r in run.results} == {
        (name, metric, count) for metric in ("pearson", "spearman")
        for name, count in (("a", 13), ("b", 13), ("all encoders", 26))
    }  # fmt: skip
    values = [r for r in load_results(runs[0] / "results.jsonl") if r.layer is not None]
    x = {name: [r.value for r in sorted(values, key=lambda r: r.layer or 0)
                if (r.encoder, r.variant) == (name, "linear")] for name in "ab"}  # fmt: skip
    y = np.linspace(0.1, 0.9, 13) ** 2
    found = one(run.results, encoder="a", metric="pearson")
    assert found.value == pytest.approx(scipy.stats.pearsonr(x["a"], y).statistic)
    assert found.low is not None and found.high is not None and found.low <= found.value <= found.high
    assert found.p is not None and found.p < 0.01
    assert found.variant == "cka/linear ~ sentence-retrieval/accuracy/mean, over layers"
    pooled = one(run.results, encoder="all encoders", metric="spearman")
    assert pooled.value == pytest.approx(scipy.stats.spearmanr([*x["a"], *x["b"]], [*y, *y]).statistic)
    (scatter,) = read_json(tmp_path / "r" / "artifacts" / "scatters.json")
    assert len(scatter["points"]) == 26 and scatter["points"][3]["label"] == "layer 3"
    assert {point["group"] for point in scatter["points"]} == {"a", "b"}
    assert [figure["name"] for figure in scatter["figures"]] == ["pearson", "spearman"]
    assert scatter["figures"][0]["count"] == 26 and scatter["title"].endswith("over layers, English–German")
    assert all("descriptive only: layers are not independent" in r.note for r in run.results)
    assert report(tmp_path / "r").is_file()
    again = measure_correlation(*runs, x="cka", y="accuracy", out=tmp_path / "r", rounds=500)
    assert again.results == run.results, "a figure may be called by any name that tells it apart"


def test_correlation_within_one_run(runs: tuple[Path, Path], tmp_path: Path) -> None:
    run = measure_correlation(runs[0], x="linear", y="debiased", out=tmp_path / "r", rounds=100)
    assert one(run.results, encoder="a", metric="pearson").variant.startswith("cka/linear ~ cka/debiased")


def test_correlation_over_languages(tmp_path: Path) -> None:
    codes = ["de", "es", "fr", "ru", "zh"]
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 2, 5))
    words, transfer = [], []
    for row, encoder in enumerate("ab"):
        for place, code in enumerate(codes):
            about = {"languages": ("en", code), "encoder": encoder}
            words += curve(
                "word-retrieval", "accuracy", [0.1, 0.2, x[row, place]], variant="contextual", **about
            )
            for seed in (0, 1):
                value = float(y[row, place] + (0.1 if seed else -0.1))
                transfer.append(Result("nli", "accuracy", value, seed=seed, **about))
    folders = written(tmp_path / "words", words), written(tmp_path / "transfer", transfer)
    run = measure_correlation(*folders, over="languages", out=tmp_path / "r", rounds=100)
    found = one(run.results, encoder="b", metric="pearson")
    assert found.value == pytest.approx(scipy.stats.pearsonr(x[1], y[1]).statistic), "the mean of the seeds"
    assert found.languages == ("en", "mul") and found.count == 5 and "only 5 points" in found.note
    assert "descriptive" not in found.note, "languages are points of their own"
    pooled = one(run.results, encoder="all encoders", metric="pearson")
    assert "descriptive only: points of several encoders are not independent" in pooled.note
    (scatter,) = read_json(tmp_path / "r" / "artifacts" / "scatters.json")
    assert [point["label"] for point in scatter["points"][:5]] == codes
    assert scatter["title"].endswith(" over languages"), "no code for several languages"
    with pytest.raises(BadInput, match="the same value"):
        measure_correlation(*folders, over="languages", layer="1", out=tmp_path / "l", rounds=100)
    with pytest.raises(BadSetting, match="one of 0, 1, 2"):
        measure_correlation(*folders, over="languages", layer="0,1", out=tmp_path / "l", rounds=100)


def test_an_encoder_with_too_few_points_is_left_out_where_another_has_enough(tmp_path: Path) -> None:
    x = curve("cka", "cka", [0.1, 0.2, 0.5, 0.4]) + curve("cka", "cka", [0.3, 0.2], encoder="flat")
    y = curve("words", "accuracy", [0.1, 0.3, 0.4, 0.4]) + curve(
        "words", "accuracy", [0.3, 0.2], encoder="flat"
    )
    folders = written(tmp_path / "x", x), written(tmp_path / "y", y)
    run = measure_correlation(*folders, out=tmp_path / "r", rounds=100)
    assert {r.encoder for r in run.results} == {"a", "all encoders"}
    assert run.counts == {"points": 6, "left out (flat)": 2}


def test_correlation_and_bad_input(calque: Told, runs: tuple[Path, Path], tmp_path: Path) -> None:
    alike, found = runs
    out = ("--out", tmp_path / "out")
    assert "against itself" in calque("correlation", alike, *out, "--x", "linear", "--y", "linear", code=2)
    assert "no figure called 'ckaa'" in calque("correlation", alike, found, *out, "--x", "ckaa", code=2)
    assert "no such folder" in calque("correlation", tmp_path / "no", found, *out, code=2)
    assert "over" in calque("correlation", alike, found, *out, "--over", "seeds", code=2)
    two = written(tmp_path / "two", curve("words", "accuracy", [0.1, 0.2]))
    assert "3 points at least, and there are 2" in calque("correlation", alike, two, *out, code=2)
    flat = written(tmp_path / "flat", curve("words", "accuracy", [0.5] * 13))
    assert "the same value 0.5" in calque("correlation", alike, flat, *out, code=2)
    other = written(tmp_path / "other", curve("words", "accuracy", [0.1, 0.3, 0.2], encoder="z"))
    assert "no encoder in common: cka/linear has a," in calque("correlation", alike, other, *out, code=2)
    far = written(tmp_path / "far", curve("words", "accuracy", [0.1, 0.3, 0.2], languages=("en", "fi")))
    assert "no language pair in common" in calque("correlation", alike, far, *out, code=2)
    empty = written(tmp_path / "empty", [])
    assert "nothing was measured in this run" in calque("correlation", empty, found, *out, code=2)
    several = written(tmp_path / "several", curve("a", "m", [1, 2, 3]) + curve("b", "m", [1, 3, 2]))
    assert "several figures in this run (name one of a/m, b/m)" in calque(
        "correlation", several, *out, code=2
    )
    assert not (tmp_path / "out").exists()


def test_correlation_is_printed_for_people_and_programs(
    calque: Told, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    told = calque("correlation", *runs, "--rounds", 100, "--out", tmp_path / "r")
    assert "all encoders" in told and "Spearman" in told and "written" in told
    assert "descriptive only" in told
    record = json.loads(calque("correlation", *runs, "--rounds", 100, "--out", tmp_path / "r", "--json"))
    assert len(record["results"]) == 6 and record["counts"] == {"points": 26}
    assert calque("correlation", *runs, "--rounds", 100, "--out", tmp_path / "r", "--quiet") == ""
