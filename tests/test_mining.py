"""Sentence retrieval, mining and scoring as verbs, on planted static vectors: one space, two languages."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from calque.cli import main
from calque.errors import BadInput, BadSetting
from calque.pipeline import link, measure_sentences, mine, score_bitext
from calque.text.bitext import read_bitext

TYPES, WIDTH = 150, 24


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors in which word `d5` translates `e5`, and a bitext of 200 sentences in three layouts."""
    folder, rng = tmp_path_factory.mktemp("planted"), np.random.default_rng(0)
    base = rng.normal(size=(TYPES, WIDTH)) + 0.3
    for letter, noise in (("e", 0.0), ("d", 0.5)):
        rows = base + noise * rng.normal(size=base.shape)
        lines = [f"{letter}{k} " + " ".join(f"{x:.4f}" for x in row) for k, row in enumerate(rows)]
        (folder / f"{letter}.vec").write_text(f"{TYPES} {WIDTH}\n" + "\n".join(lines) + "\n")
    drawn = [rng.choice(TYPES, rng.integers(4, 9), replace=False).tolist() for _ in range(200)]
    source, target = ([" ".join(f"{letter}{k}" for k in words) for words in drawn] for letter in "ed")
    (folder / "text.en").write_text("\n".join(source) + "\n")
    (folder / "text.de").write_text("\n".join(target) + "\n")
    (folder / "text.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(source, target, strict=True)))
    return folder


@pytest.fixture(scope="module")
def encoder(world: Path) -> str:
    return f"en={world / 'e.vec'},de={world / 'd.vec'}"


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


# --------------------------------------------------------------------------------------------- measure


def test_text_in_two_files_in_one_and_as_pairs_is_the_same_text(
    world: Path, encoder: str, tmp_path: Path
) -> None:
    two = f"en={world / 'text.en'},de={world / 'text.de'}"
    one = f"en,de={world / 'text.tsv'}"
    given = {"tokenised": True, "test": 60, "links": str(tmp_path / "links.txt"), "keep_duplicates": True}
    (tmp_path / "links.txt").write_text("0-0\n" * 200)
    link(world / "text.tsv", ("en", "de"), out=tmp_path / "links", **given)
    runs = [measure_sentences(encoder, text=text, out=tmp_path / str(i)) for i, text in enumerate((two, one))]
    assert runs[0].results == runs[1].results and runs[0].counts["sentences"] == 200
    scores = {r.direction: r.value for r in runs[0].results}
    assert 0.9 < scores["both"] <= 1.0
    part = measure_sentences([encoder], tmp_path / "links" / "test", out=tmp_path / "pairs")
    assert part.counts["sentences"] == 60 and {r.languages for r in part.results} == {("en", "de")}
    recipe = (tmp_path / "0" / "recipe.toml").read_text()
    assert "words = true" in recipe, "static vectors look words up"


def test_text_reaches_an_encoder_with_pieces_as_it_is_written(bert: Path, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("The cat sat.\tDie Katze saß.\nA dog!\tHund!\n\tnur\nOn it.\tAuf, auf.\n")
    text = f"en,de={tmp_path / 'a.tsv'}"
    plain = measure_sentences(str(bert), text=text, out=tmp_path / "plain", layers="0,3")
    cut = measure_sentences(str(bert), text=text, out=tmp_path / "cut", layers="0,3", words=True)
    assert plain.counts["sentences"] == 3 and plain.counts["empty"] == 1
    assert {r.layer for r in plain.results} == {0, 3}
    data = [
        {part for r in run.results for part in r.signature.split("|") if "data" in part}
        for run in (plain, cut)
    ]
    assert data[0] != data[1]
    first = measure_sentences(str(bert), text=text, out=tmp_path / "cls", layers="3", pooling="first")
    assert {r.variant for r in first.results} == {"first"}


# ---------------------------------------------------------------------------------------------- mining


@pytest.fixture(scope="module")
def apart(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of 150 and 130 sentences, 100 of them translations, shuffled, with empty and repeated lines."""
    folder, rng = tmp_path_factory.mktemp("apart"), np.random.default_rng(1)
    a, b = lines(world / "text.en")[:150], lines(world / "text.de")[50:180]
    order = rng.permutation(len(b))
    source = [*a[:5], "", *a[5:], a[0], "  "]
    target = [b[k] for k in order]
    (folder / "a.en").write_text("\n".join(source) + "\n")
    (folder / "b.de").write_text("\n".join(target) + "\n")
    whole = dict(zip(lines(world / "text.en"), lines(world / "text.de"), strict=True))
    gold = [(i, target.index(whole[text])) for i, text in enumerate(source) if whole.get(text) in target]
    (folder / "gold.txt").write_text("".join(f"{source[i]}\t{target[j]}\n" for i, j in gold))
    (folder / "gold.lines").write_text("".join(f"{i + 1}\t{j + 1}\n" for i, j in gold))
    return folder


def test_planted_translations_are_mined(apart: Path, encoder: str, tmp_path: Path) -> None:
    texts, codes = (apart / "a.en", apart / "b.de"), ("en", "de")
    run = mine(*texts, codes, encoder, out=tmp_path / "m", gold=str(apart / "gold.txt"))
    assert run.counts["source empty lines"] == 2 and run.counts["source repeated lines"] == 1
    assert run.counts["gold pairs"] == 100 and run.counts["gold pairs not in the text"] == 0
    assert run.best is not None and run.best.scores.f1 > 0.97 and run.best.threshold > 1
    kept = {r.metric: r for r in run.results if r.group is None}
    assert kept["recall"].value > 0.97 and kept["precision"].count == run.counts["found"] == len(run.pairs)
    assert all(r.low <= r.value <= r.high for r in run.results)
    scores = [score for score, _, _ in run.pairs]
    assert scores == sorted(scores, reverse=True)
    gold = {tuple(line.split("\t")) for line in lines(apart / "gold.txt")}
    assert {pair[1:] for pair in run.pairs[:90]} <= gold
    source, target = lines(apart / "a.en"), lines(apart / "b.de")
    for pair, told in zip(run.pairs, lines(tmp_path / "m" / "lines.tsv"), strict=True):
        score, i, j = told.split("\t")
        assert (float(score), source[int(i) - 1], target[int(j) - 1]) == pair
    bitext = read_bitext([str(tmp_path / "m" / "pairs.tsv")], codes, tokenised=True)
    assert tuple(" ".join(side[0]) for side in (bitext.source, bitext.target)) == run.pairs[0][1:]

    numbered = mine(*texts, codes, encoder, out=tmp_path / "n", gold=str(apart / "gold.lines"))
    assert [r.value for r in numbered.results] == [r.value for r in run.results]
    again = mine(
        *texts, codes, encoder, out=tmp_path / "t", gold=str(apart / "gold.txt"), threshold=run.best.threshold
    )
    assert len(again.pairs) == run.best.kept
    assert {r.metric: r.value for r in again.results if r.group is None} == vars(run.best.scores)
    few = mine(*texts, codes, encoder, out=tmp_path / "few", keep=7, strategy="intersection")
    assert few.pairs == run.pairs[:7] and few.best is None and not few.results


def test_changing_the_threshold_encodes_nothing(
    apart: Path, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calque.encoders.static import StaticEncoder

    texts, codes, calls = (apart / "a.en", apart / "b.de"), ("en", "de"), []
    real = StaticEncoder.sentence_vectors
    monkeypatch.setattr(StaticEncoder, "sentence_vectors", lambda *a, **k: calls.append(1) or real(*a, **k))
    for place, threshold in enumerate((None, 1.0, 1.1)):
        mine(*texts, codes, encoder, out=tmp_path / str(place), threshold=threshold)
    assert len(calls) == 2


# --------------------------------------------------------------------------------------------- scoring


def test_shuffled_lines_score_low_and_scores_line_up(world: Path, encoder: str, tmp_path: Path) -> None:
    source, target = lines(world / "text.en"), lines(world / "text.de")
    wrong = np.arange(0, 200, 4)
    mixed = np.array(target, object)
    mixed[wrong] = mixed[np.roll(wrong, 1)]
    rows = [f"{a}\t{b}" for a, b in zip(source, mixed, strict=True)]
    rows[7:7] = ["", f"{source[7]}\t", rows[3], "unknown\tunbekannt"]
    (tmp_path / "noisy.tsv").write_text("\n".join(rows) + "\n")
    run = score_bitext(tmp_path / "noisy.tsv", ("en", "de"), encoder, out=tmp_path / "s", keep=120)
    assert len(run.scores) == len(rows) == 204 and run.counts["scored"] == 201
    assert (run.scores[[7, 8, 10]] == -1).all() and run.scores[9] == run.scores[3]
    told = np.delete(run.scores, [7, 8, 9, 10])
    right = np.ones(200, bool)
    right[wrong] = False
    auc = (told[right][:, None] > told[~right]).mean()
    assert auc > 0.995
    kept = lines(tmp_path / "s" / "kept.tsv")
    assert len(kept) == 120 and kept == [row for row in rows if row in set(kept)], "in the order of the file"
    assert not set(kept) & {rows[i + (4 if i >= 7 else 0)] for i in wrong}
    assert list(run.quantiles) == ["5%", "25%", "50%", "75%", "95%"] and len(run.ends) == 40
    assert run.ends[0][0] == told.max() and run.ends[-1][0] == told.min()


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_two_files_and_every_margin(margin: str, world: Path, encoder: str, tmp_path: Path) -> None:
    files = [world / "text.en", world / "text.de"]
    run = score_bitext(files, ("en", "de"), encoder, out=tmp_path / "s", margin=margin, threshold=0.0)
    assert np.isfinite(run.scores).all() and run.counts["kept"] == (run.scores >= 0).sum()


# --------------------------------------------------------------------------------------------- mistakes


@pytest.fixture
def calque(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*words: object, code: int = 0) -> str:
        monkeypatch.setattr("sys.argv", ["calque", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        assert (stop.value.code or 0) == code, told.out + told.err
        assert "Traceback" not in told.err
        return told.out + told.err

    return run


def test_the_command_line(calque: Callable[..., str], apart: Path, world: Path, encoder: str) -> None:
    out = apart / "out"
    shared = ("--languages", "en", "de", "--encoder", encoder)
    told = calque(
        "mine", apart / "a.en", apart / "b.de", *shared, "--gold", apart / "gold.lines", "--show", 2,
        "--out", out / "mined",
    )  # fmt: skip
    assert "best threshold 1." in told and "100 gold pairs" in told and "153 lines; empty lines 2" in told
    record = json.loads(
        calque("score", world / "text.tsv", *shared, "--keep", 50, "--json", "--out", out / "scored")
    )
    assert record["counts"]["kept"] == 50 and record["quantiles"]["50%"] > 1
    told = calque("score", world / "text.tsv", *shared, "--keep", 50, "--show", 1, "--out", out / "scored")
    assert "already there" in told and "200 of 200 lines scored" in told
    text = f"en={world / 'text.en'},de={world / 'text.de'}"
    told = calque(
        "measure", "sentences", "--encoder", encoder, "--text", text, "--show", 1, "--out", out / "measured",
    )  # fmt: skip
    assert "200 sentence pairs" in told and "sentence retrieval" in told


@pytest.mark.parametrize(
    "options, message",
    [
        ("{a} {b} --threshold 99", "the best has 1."),
        ("{a} missing.txt", "missing.txt: no such file"),
        ("{a} {empty}", "no sentences here"),
        ("{a} {blank}", "no de sentence has a vector"),
        ("{a} {strange}", "no de sentence has a vector"),
        ("{a} {b} --layer all,3", "no layer"),
        ("{a} {b} --keep 0", "at least 1"),
        ("{a} {b} --margin rato", "margin"),
        ("{a} {b} --gold {a}", "1 columns"),
        ("{a} {b} --gold {far}", "a.en, which has 153"),
        ("{a} {b} --gold {empty}", "no pairs here"),
        ("{a} {b} --gold {swapped}", "no pair of it is in the two texts"),
    ],
)
def test_mistakes_in_mining(
    options: str, message: str, calque: Callable[..., str], apart: Path, encoder: str, tmp_path: Path
) -> None:
    given = {"a": apart / "a.en", "b": apart / "b.de"}
    swapped = "".join("\t".join(reversed(row.split("\t"))) + "\n" for row in lines(apart / "gold.txt"))
    for name, text in (
        ("empty", ""), ("blank", "\n \n"), ("strange", "ja nein\nvielleicht\n"), ("far", "1\t1\n999\t1\n"),
        ("swapped", swapped),
    ):  # fmt: skip
        given[name] = tmp_path / name
        given[name].write_text(text)
    words = options.format(**given).split()
    told = calque(
        "mine", *words, "--languages", "en", "de", "--encoder", encoder, "--out", tmp_path / "out", code=2
    )
    assert message in told
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*partial"))


def test_mistakes_in_measuring(world: Path, encoder: str, tmp_path: Path) -> None:
    out, text = tmp_path / "out", f"en={world / 'text.en'},de={world / 'text.de'}"
    with pytest.raises(BadSetting, match="no sentences to measure on"):
        measure_sentences(encoder, out=out)
    for wrong in ("en=a.en", "en,de", "en=a,de=b,fr=c", "=a,de=b", "en=,de=b"):
        with pytest.raises(BadSetting, match="not understood"):
            measure_sentences(encoder, text=wrong, out=out)
    with pytest.raises(BadInput, match="no such file"):
        measure_sentences(encoder, text=f"en={world / 'text.en'},de=nowhere", out=out)
    with pytest.raises(BadInput, match="different sentences"):
        measure_sentences(encoder, text=text, limit=1, out=out)
    with pytest.raises(BadSetting, match="not made for fr"):
        measure_sentences(encoder, text=text.replace("de=", "fr=", 1), out=out)
    with pytest.raises(BadSetting, match="no special token"):
        measure_sentences(encoder, text=text, pooling="first", out=out)
    with pytest.raises(BadSetting, match="pooling"):
        measure_sentences(encoder, text=text, pooling="last", out=out)
    with pytest.raises(BadInput, match="no line has two sides"):
        (tmp_path / "halves.tsv").write_text("e1 e2\t\n\td1\n")
        score_bitext(tmp_path / "halves.tsv", ("en", "de"), encoder, out=out)
    assert not out.exists()
