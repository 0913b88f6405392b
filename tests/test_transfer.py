"""`calque transfer`, `compare` and `predict` with small encoders: as functions and as commands."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seqeval.metrics import f1_score

import small_corpus
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.encoder import EncoderOptions
from calque.errors import BadInput, BadSetting
from calque.files import read_json
from calque.pipeline import TransferRecipe, align, compare, predict, transfer, transferring
from calque.pipeline.taskmodels import known_languages, opened_model
from calque.pipeline.transferred import TransferFolder
from calque.presets import load_preset, preset_names
from calque.progress import shown
from calque.stats.seeds import SeedTest
from calque.store import load_results
from calque.transfer.tasks import task_named
from calque.types import Sentences

#: What words are, in either language: learnable from the word alone.
KINDS = {"cat": "ANIMAL", "dog": "ANIMAL", "mat": "THING", "street": "THING", "child": "PERSON"}
QUICK: dict[str, Any] = {"seeds": 2, "epochs": 8, "batch": 8, "learning_rate": 3e-3, "body": "none"}
FROZEN: dict[str, Any] = {**QUICK, "learning_rate": 5e-2, "regime": "features", "head": "tag"}


def sentences(language: str, count: int, seed: int) -> list[list[tuple[str, str]]]:
    """Words and their tags; the same sentences in both languages."""
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(list(small_corpus.INTO), rng.integers(3, 8)).tolist() for _ in range(count)]
    tag = {word: f"B-{KINDS[word]}" if word in KINDS else "O" for word in small_corpus.INTO}
    return [
        [(word if language == "en" else small_corpus.INTO[word], tag[word]) for word in words]
        for words in drawn
    ]


def write(path: Path, held: list[list[tuple[str, str]]]) -> str:
    path.write_text(
        "".join("".join(f"{word}\t{tag}\n" for word, tag in one) + "\n" for one in held), encoding="utf-8"
    )
    return str(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tagged")
    return {
        "train": {"en": write(folder / "train.en.tsv", sentences("en", 60, 0))},
        "test": {
            "en": write(folder / "test.en.tsv", sentences("en", 30, 1)),
            "de": write(folder / "test.de.tsv", sentences("de", 30, 1)),
        },
    }


@pytest.fixture(scope="module")
def features(data: dict[str, Any], bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "features"
    transfer("ner", str(bert), **data, out=out, layers="all", keep_models="all", **FROZEN)
    return out


@pytest.fixture(scope="module")
def tuned(data: dict[str, Any], bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "tuned"
    transfer("ner", str(bert), **data, out=out, keep_models="all", label="tuned", **QUICK)
    return out


def scores(folder: Path, metric: str = "f1") -> dict[tuple[str, int], float]:
    return {
        (one.languages[1], one.seed): one.value
        for one in load_results(folder / "results.jsonl")
        if one.metric == metric
    }


def columns(path: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Gold and predicted tags of a file that anyone can score."""
    blocks = [block.splitlines() for block in path.read_text(encoding="utf-8").strip().split("\n\n")]
    rows = [[line.split("\t") for line in block] for block in blocks]
    return [[r[1] for r in one] for one in rows], [[r[2] for r in one] for one in rows]


@pytest.mark.parametrize("name", ["features", "tuned"])
def test_predictions_score_the_same_for_another_program(name: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(name)
    found = scores(folder)
    assert set(found) == {(language, seed) for language in ("en", "de") for seed in (0, 1)}
    for (language, seed), value in found.items():
        assert value == pytest.approx(
            f1_score(*columns(folder / "predictions" / f"{language}.seed-{seed}.tsv"))
        )
    assert min(found["en", 0], found["en", 1]) > 0.9, "the words themselves tell"


def test_a_run_that_was_stopped_goes_on_and_ends_the_same(
    data: dict[str, Any], bert: Path, features: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "features"
    given = {"layers": "all", "keep_models": "all", **FROZEN}
    whole, learned = transferring.Learner.test, []

    def failing(self: Any, model: Any, items: Any) -> Any:
        if len(learned) == 2 and items.language == "de":
            raise KeyboardInterrupt
        return whole(self, model, items)

    learn = transferring.Learner.learn

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        learned.append(args)
        return learn(self, *args, **kwargs)

    monkeypatch.setattr(transferring.Learner, "test", failing)
    monkeypatch.setattr(transferring.Learner, "learn", counted)
    with pytest.raises(KeyboardInterrupt):
        transfer("ner", str(bert), **data, out=out, **given)
    assert not out.exists() and len(learned) == 2
    monkeypatch.setattr(transferring.Learner, "test", whole)
    transfer("ner", str(bert), **data, out=out, **given)
    assert len(learned) == 3, "the first seed stood"
    assert (out / "results.jsonl").read_bytes() == (features / "results.jsonl").read_bytes()
    assert not [path for path in tmp_path.iterdir() if path != out], "nothing is left beside it"
    transfer("ner", str(bert), **data, out=out, **given)
    assert len(learned) == 3, "a finished run is not made again"


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "half removed"])
def test_an_unfinished_run_of_another_recipe_is_not_mixed_in(
    data: dict[str, Any], bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marked: bool
) -> None:
    out = tmp_path / "run"

    whole, asked = transferring.Learner.test, list[Any]()

    def stop(*given: Any) -> Any:
        asked.append(given)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return whole(*given)

    given = {"layers": "last", **FROZEN}
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(transferring.Learner, "test", stop)
        transfer("ner", str(bert), **data, out=out, **given)
    other = {**data, **given, "epochs": 1}
    if marked:
        with pytest.raises(BadSetting, match="unfinished run of another recipe"):
            transfer("ner", str(bert), **other, out=out)
    else:  # its removal was cut off
        (tmp_path / ".run.parts" / "recipe.json").unlink()
    found = transfer("ner", str(bert), **other, out=out, overwrite=marked)
    assert found.results == transfer("ner", str(bert), **other, out=tmp_path / "alone").results


def test_predictions_replace_nothing_of_the_model(tuned: Path, data: dict[str, Any], tmp_path: Path) -> None:
    text, weights = data["test"]["de"], tuned / "models" / "seed-1" / "model.safetensors"
    before = weights.read_bytes()
    for model, out in ((tuned, weights), (tuned, tuned / "finished.json"), (weights.parent, weights)):
        with pytest.raises(BadSetting, match="is a part of what is read"):
            predict(model, text, "de", out=out, overwrite=True)
    with pytest.raises(BadSetting, match="is a folder"):
        predict(tuned, text, "de", out=tmp_path, overwrite=True)
    assert weights.read_bytes() == before


def test_a_model_that_was_aligned_is_used_with_its_maps(tuned: Path, corpus: Path, tmp_path: Path) -> None:
    model, text = str(tuned / "models" / "seed-1"), tmp_path / "letters.txt"
    text.write_text("die Katze saß\n")
    align(model, str(corpus / "links" / "train"), method="rotation", layers="last", out=tmp_path / "aligned")
    opened = opened_model(str(tmp_path / "aligned"), EncoderOptions())
    assert isinstance(opened.encoder, AlignedEncoder) and opened.encoder.maps
    assert opened.fingerprint != opened_model(model, EncoderOptions()).fingerprint
    words = Sentences.of("de", [["Katze", "Hund"]])
    mapped, plain = (
        one.word_vectors(words, layers=[one.depth]).layer(one.depth)
        for one in (opened.encoder, opened_model(model, EncoderOptions()).encoder)
    )
    assert not np.allclose(mapped, plain, atol=1e-3)
    with pytest.raises(BadSetting, match="no map for language 'ru'"):
        predict(tmp_path / "aligned", text, "ru", out=tmp_path / "ru.tsv")
    assert predict(tmp_path / "aligned", text, "de", out=tmp_path / "de.tsv").path.is_file()


def test_training_under_maps_is_told(
    bert: Path, data: dict[str, Any], corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    align(str(bert), str(corpus / "links" / "train"), layers="last", out=tmp_path / "aligned")
    with shown():
        run = transfer("ner", str(tmp_path / "aligned"), **data, out=tmp_path / "run", **QUICK)
    (note,) = (one for one in run.data["notes"] if one.startswith("linear maps"))
    assert "--regime features" in note and note in capsys.readouterr().err


def test_a_model_tells_what_it_learned_in(tuned: Path, data: dict[str, Any], tmp_path: Path) -> None:
    model = tuned / "models" / "seed-1"
    assert known_languages(str(model)) == ["en"]
    run = transfer("ner", model=str(model), test=data["test"], out=tmp_path / "tested")
    assert TransferFolder.read(run.folder).trained == {"en"} and TransferFolder.read(run.folder).only_tests


def test_a_linear_head_is_an_ordinary_model_that_predicts_the_same(
    tuned: Path, data: dict[str, Any], tmp_path: Path
) -> None:
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    folder = tuned / "models" / "seed-1"
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    _, predicted = columns(tuned / "predictions" / "de.seed-1.tsv")
    for words, tags in zip(sentences("de", 30, 1)[:10], predicted[:10], strict=True):
        batch = tokenizer([word for word, _ in words], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            said = model(**batch).logits.argmax(-1)[0].tolist()
        first: dict[int, str] = {}
        for piece, word in enumerate(batch.word_ids()):
            if word is not None:
                first.setdefault(word, model.config.id2label[said[piece]])
        assert [first[k] for k in range(len(words))] == tags
    raw = tmp_path / "de.txt"
    raw.write_text(
        "".join(" ".join(word for word, _ in one) + "\n" for one in sentences("de", 30, 1)), encoding="utf-8"
    )
    found = predict(folder, raw, "de", tokenised=True, out=tmp_path / "said.tsv")
    assert [list(tags) for tags in found.predictions] == predicted
    with pytest.raises(BadSetting, match="there already"):
        predict(folder, raw, "de", tokenised=True, out=tmp_path / "said.tsv")


def test_a_head_over_kept_vectors_is_opened_with_its_encoder(features: Path, tmp_path: Path) -> None:
    raw = tmp_path / "de.txt"
    raw.write_text(
        "".join(" ".join(word for word, _ in one) + "\n" for one in sentences("de", 30, 1)), encoding="utf-8"
    )
    found = predict(features / "models" / "seed-0", raw, "de", tokenised=True, out=tmp_path / "said.tsv")
    _, predicted = columns(features / "predictions" / "de.seed-0.tsv")
    assert [list(tags) for tags in found.predictions] == predicted
    with pytest.raises(BadSetting, match="2 models in this run"):
        predict(features, raw, "de", tokenised=True, out=tmp_path / "other.tsv")


def test_a_task_model_is_tested_and_trained_on(tuned: Path, data: dict[str, Any], tmp_path: Path) -> None:
    folder, before = tuned / "models" / "seed-0", scores(tuned)
    given = {"model": str(folder), "test": data["test"], "seeds": 1, "batch": 8}
    transfer("ner", **given, out=tmp_path / "tested")
    assert scores(tmp_path / "tested") == {key: value for key, value in before.items() if key[1] == 0}
    more = {"train": data["train"], "epochs": 2, "learning_rate": 1e-4}
    transfer("ner", **given, **more, out=tmp_path / "more")
    assert scores(tmp_path / "more")["en", 0] >= before["en", 0] - 0.1
    with pytest.raises(BadInput, match="not for nli"):
        transfer("nli", **given, out=tmp_path / "wrong")


def test_a_model_that_is_only_tested_has_one_seed(
    tuned: Path, data: dict[str, Any], typed: Callable[..., str], tmp_path: Path
) -> None:
    given = {"model": str(tuned / "models" / "seed-0"), **data, "epochs": 0}
    runs = [transfer("ner", **given, label=name, out=tmp_path / name) for name in ("one", "other")]
    assert [run.data["seeds"] for run in runs] == [[0], [0]]
    assert runs[0].data["a seed varies"].startswith("nothing")
    found = compare([run.folder for run in runs])
    assert found.varies.startswith("nothing") and "helped" not in found.overall
    for asked in (3, [0, 1]):
        with pytest.raises(BadSetting, match=r"nothing varies between them \(--seeds 1\)"):
            transfer("ner", **given, seeds=asked, out=tmp_path / "several")
    untrained = {**given, "train": (), "epochs": None}
    assert transferring.transfer_recipe("ner", **untrained, seeds=[7]).seeds == (7,)
    told = typed("transfer", "ner", "--model", given["model"], "--test", f"de={data['test']['de']}",
                 "--out", str(tmp_path / "typed"))  # fmt: skip
    assert "one seed" in told and "which vary" not in told


def test_what_is_read_is_not_replaced(tuned: Path, data: dict[str, Any], tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tuned, run)
    other = _other(tmp_path)
    with pytest.raises(BadSetting, match=rf"holds what is read: {run}"):
        compare([run, other], out=run, overwrite=True)
    model = next((run / "models").iterdir())
    with pytest.raises(BadSetting, match="holds what is read"):
        transfer("ner", model=str(model), test=data["test"], out=run, overwrite=True)
    assert model.is_dir() and not (tmp_path / ".run.parts").exists()
    text = tmp_path / "text.en"
    text.write_text("the cat\n", encoding="utf-8")
    with pytest.raises(BadSetting, match="holds what is read"):
        predict(model, text, "en", out=text, overwrite=True)
    assert text.read_text(encoding="utf-8") == "the cat\n"


def test_a_mistyped_model_is_looked_for_before_its_task_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tn").mkdir()
    with pytest.raises(BadInput, match=r"no such directory \(did you mean tn\?\)"):
        predict("./tnn", "text", "en", out=tmp_path / "said.tsv")
    with pytest.raises(BadInput, match=r"no such directory \(did you mean tn\?\)"):
        transfer("ner", model="./tnn", test={"en": "text"}, out=tmp_path / "run")


def test_choosing_by_other_languages_has_to_be_asked_for_and_is_told(
    data: dict[str, Any], bert: Path, tmp_path: Path
) -> None:
    given = {"layers": "last", "dev": {"de": data["test"]["de"]}, **FROZEN}
    with pytest.raises(BadSetting, match="select all"):
        transfer("ner", str(bert), **data, out=tmp_path / "run", **given)
    run = transfer("ner", str(bert), **data, out=tmp_path / "run", select="all", **given)
    assert all("not zero-shot" in one.note for one in run.results)
    kept = read_json(tmp_path / "run" / "artifacts" / "training.json")
    assert all(1 <= one["epoch"] <= FROZEN["epochs"] for one in kept.values())
    told = compare([tmp_path / "run", _other(tmp_path)], out=None)
    assert any("not zero-shot" in note for note in told.notes)


def _other(tmp_path: Path) -> Path:
    """The same run under another name."""
    shutil.copytree(tmp_path / "run", tmp_path / "again")
    return tmp_path / "again"


def test_training_data_are_not_tested_and_dev_data_that_are_are_told(
    data: dict[str, Any], bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {**FROZEN, "layers": "last", "seeds": 1, "epochs": 1}
    train = data["train"]
    with pytest.raises(
        BadSetting, match=r"all 60 items of the test of en are among the training data .*train\.en"
    ):
        transfer("ner", str(bert), train=train, test=train, out=tmp_path / "leak", **given)
    test = data["test"]
    with shown():
        run = transfer("ner", str(bert), **data, dev={"en": test["en"]}, out=tmp_path / "run", **given)
    many = len(sentences("en", 30, 1))
    told = f"{many} of {many} items of the test of en are among the dev data, too"
    assert told in run.data["notes"] and told in capsys.readouterr().err
    assert run.data["encoder"] == {"encoder": bert.name.rstrip("0123456789")}
    run = transfer("ner", str(bert), **data, dev=train, out=tmp_path / "chosen", **given)
    assert "60 of 60 items of the dev data of en are among the training data, too" in run.data["notes"]
    given = {**given, "limit_train": 50, "limit_test": 20}
    with pytest.raises(BadSetting, match="all 20 items of the test of en are among the training data"):
        transfer("ner", str(bert), train=train, test=train, out=tmp_path / "limited", **given)


def test_maps_take_either_side_into_the_space_of_the_other(
    data: dict[str, Any], bert: Path, corpus: Path, tmp_path: Path
) -> None:
    links = corpus / "links" / "train"
    given = {"test": {"de": data["test"]["de"]}, "train": data["train"], **FROZEN, "pooling": "mean"}
    found = {}
    for moves in ("target", "source"):
        aligned = tmp_path / moves
        align(str(bert), links, method="rotation", layers="0", moves=moves, out=aligned)
        transfer("ner", str(aligned), **given, layers="0", out=tmp_path / f"run-{moves}")
        found[moves] = scores(tmp_path / f"run-{moves}")["de", 0]
        assert (tmp_path / f"run-{moves}" / "models").is_dir()
    transfer("ner", str(bert), **given, layers="0", out=tmp_path / "plain")
    plain = scores(tmp_path / "plain")["de", 0]
    assert min(found.values()) > plain + 0.15, (found, plain)
    with pytest.raises(BadSetting, match="no maps"):
        transfer(
            "ner",
            str(tmp_path / "target"),
            train=data["train"],
            test={"ru": data["test"]["de"]},
            layers="0",
            out=tmp_path / "ru",
            **FROZEN,
        )


def test_adapters_are_kept_near_their_own_beginning(
    data: dict[str, Any], bert: Path, corpus: Path, tmp_path: Path
) -> None:
    """What an aligned encoder was made from has none."""
    links = str(corpus / "links" / "train")
    align(str(bert), links, method="l2", steps=2, batch=8, out=tmp_path / "aligned")
    given = {**QUICK, "seeds": 1, "epochs": 1, "continual_batch": 8, "lora": 4, "continual": [links]}
    out = tmp_path / "run"
    transfer("ner", str(tmp_path / "aligned"), **data, continual_preset="wu2020-weak", out=out, **given)
    records = [json.loads(line) for line in (out / "artifacts" / "seed-0.steps.jsonl").open()]
    assert records[0]["losses"]["parameters"] >= 0 and len(records) > 1


def test_alignment_goes_on_while_a_task_is_learned(
    data: dict[str, Any], bert: Path, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    given = {**QUICK, "seeds": 1, "epochs": 4, "continual_batch": 8, "alpha": 1.0}
    transfer("ner", str(bert), **data, continual=[str(corpus / "links" / "train")], out=out, **given)
    records = [json.loads(line) for line in (out / "artifacts" / "seed-0.steps.jsonl").open()]
    assert {"task", "l2", "hidden"} == set(records[0]["losses"])
    watched = [record["watched"] for record in records]
    assert all(
        one["separation"] == pytest.approx(one["related cosine"] - one["unrelated cosine"]) for one in watched
    )
    distances = [record["losses"]["l2"] for record in records]
    assert np.mean(distances[-8:]) < np.mean(distances[:8]), "linked words come nearer to each other"
    with pytest.raises(BadSetting, match="finetune"):
        transfer(
            "ner", str(bert), **data, regime="features", continual=[str(corpus / "links" / "train")], out=out
        )


# ------------------------------------------------------------------------------------------- comparing


def test_equal_runs_give_no_evidence_and_differing_ones_do(features: Path, tmp_path: Path) -> None:
    same = tmp_path / "same"
    shutil.copytree(features, same)
    found = compare([features, same])
    assert {row.comparison.p for row in (*found.rows, *found.tasks)} == {1.0}
    assert {row.verdict.finding for row in found.tasks} == {"no evidence either way"}
    assert [row.language for row in found.tasks] == ["mean"]
    assert found.tasks[0].comparison.languages == 1, "English was learned from and is no transfer"


def test_a_comparison_is_written_for_the_page(features: Path, tuned: Path, tmp_path: Path) -> None:
    found = compare([features, tuned], out=tmp_path / "compared", test="item-t")
    held = json.loads((tmp_path / "compared" / "artifacts" / "comparison.json").read_text())
    assert held["tasks"][0]["given"] == "these seeds" and found.test is SeedTest.ITEM_T
    results = load_results(tmp_path / "compared" / "results.jsonl")
    gains = {one.languages[1]: one for one in results if one.baseline}
    before, after = scores(features), scores(tuned)
    expected = np.mean([after["de", s] for s in (0, 1)]) - np.mean([before["de", s] for s in (0, 1)])
    assert gains["de"].value == pytest.approx(expected)


def test_what_cannot_be_compared_is_said(
    features: Path, data: dict[str, Any], bert: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadSetting, match="only the baseline"):
        compare([features])
    with pytest.raises(BadSetting, match="no run is called 'bas'"):
        compare([features], baseline="bas")
    with pytest.raises(BadInput, match="not a finished run"):
        compare([features, tmp_path])
    given = {**FROZEN, "seeds": 1, "layers": "last"}
    transfer("ner", str(bert), **data, limit_test=20, out=tmp_path / "fewer", label="fewer", **given)
    with pytest.raises(BadInput, match="other items in"):
        compare([features, tmp_path / "fewer"])
    transfer("slots", str(bert), **data, out=tmp_path / "slots", label="tags", **given)
    with pytest.raises(BadSetting, match="but not with the baseline"):
        compare([features, tmp_path / "slots"])


# ---------------------------------------------------------------------------------------- other tasks


def test_two_texts_in_mixed_languages(bert: Path, tmp_path: Path) -> None:
    """The label is whether the second text is in the first; German words stand for English ones."""
    rng, into = np.random.default_rng(3), small_corpus.INTO
    rows = []
    for _ in range(40):
        words = rng.choice(list(into), 3, replace=False).tolist()
        rows.append((words[:2], words[int(rng.integers(1, 3))]))

    def said(words: list[str], language: str) -> str:
        return " ".join(words if language == "en" else [into[word] for word in words])

    for language in ("en", "de"):
        lines = [
            f"{said(a, language)}\t{said([b], language)}\t{'entailment' if b in a else 'neutral'}"
            for a, b in rows
        ]
        (tmp_path / f"{language}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = transfer(
        "nli",
        str(bert),
        train={"en": tmp_path / "en.tsv"},
        test={"de": tmp_path / "de.tsv"},
        mixed=[f"de={tmp_path}/de.tsv,en={tmp_path}/en.tsv"],
        out=tmp_path / "run",
        **{**QUICK, "epochs": 1},
    )
    assert {one.languages[1] for one in run.results} == {"de", "de+en"}
    told = (tmp_path / "run" / "predictions" / "de+en.seed-0.tsv").read_text(encoding="utf-8")
    assert "\tpredicted" in told.splitlines()[0] and len(told.splitlines()) == 41


# ---------------------------------------------------------------------------------------- command line


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*command: str, code: int = 0) -> str:
        from calque.cli import main

        monkeypatch.setattr("sys.argv", ["calque", *command])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        assert (stop.value.code or 0) == code, told.out + told.err
        return " ".join((told.out + told.err).split())

    return run


def test_commands_say_what_they_did(
    typed: Callable[..., str], data: dict[str, Any], bert: Path, features: Path, tmp_path: Path
) -> None:
    en, de = data["train"]["en"], data["test"]["de"]
    out = str(tmp_path / "run")
    how = ["--regime", "features", "--layers", "last", "--body", "none", "--epochs", "2", "--seeds", "2"]
    told = typed("transfer", "ner", "--encoder", str(bert), "--train", f"en={en}", "--test", f"de={de}",
                 *how, "--out", out)  # fmt: skip
    assert "train en: 60 items" in told and "f1" in told and "written" in told
    again = typed("transfer", "ner", "--encoder", str(bert), "--train", f"en={en}", "--test", f"de={de}",
                  *how, "--out", out)  # fmt: skip
    assert "already there" in again
    told = typed("compare", out, str(features), code=2)
    assert "was not tested in en" in told
    shutil.copytree(features, tmp_path / "same")
    told = typed("compare", str(features), str(tmp_path / "same"), "--json")
    assert json.loads(told)["tasks"][0]["p"] == 1.0


@pytest.mark.parametrize(
    "line, message",
    [
        ("die B-NOBODY", "label 'B-NOBODY' was never seen in training"),
        ("die ANIMAL", "ANIMAL"),
        ("", "empty"),
    ],
)
def test_bad_files_are_named_with_their_line_and_nothing_is_written(
    line: str, message: str, typed: Callable[..., str], data: dict[str, Any], bert: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text("Katze\tB-ANIMAL\n\n" + line.replace(" ", "\t") + "\n" if line else "", encoding="utf-8")
    given = ["transfer", "ner", "--encoder", str(bert), "--train", f"en={data['train']['en']}",
             "--test", f"de={bad}", "--regime", "features", "--layers", "last", "--epochs", "1",
             "--seeds", "1", "--out", str(tmp_path / "run")]  # fmt: skip
    told = typed(*given, code=2)
    assert message in told and "bad.tsv" in told
    assert not line or "bad.tsv:3" in told
    assert [path.name for path in tmp_path.iterdir()] == ["bad.tsv"]
    if line:
        assert "dropped: 1" in typed(*given, "--skip-bad")


@pytest.mark.parametrize(
    "given, message",
    [
        (["transfer", "nre"], "did you mean ner?"),
        (["transfer", "ner", "--encoder", "x", "--train", "en", "--test", "de"], "a language and a file"),
        (["transfer", "ner", "--encoder", "x", "--test", "de=a"], "nothing to learn from"),
        (["transfer", "ner", "--encoder", "x", "--train", "en=a"], "nothing to test on"),
        (["transfer", "ner", "--encoder", "x", "--model", "y"], "an encoder or a task model"),
        (["transfer", "ner", "--train", "en=a", "--test", "de=b", "--head", "parse", "--encoder", "x"],
         "has no head parse"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_answered(
    given: list[str], message: str, typed: Callable[..., str], tmp_path: Path
) -> None:
    assert message in typed(*given, "--out", str(tmp_path / "run"), code=2)


@pytest.mark.parametrize("name", preset_names("transfer"))
def test_every_preset_is_a_recipe_and_is_settled(name: str) -> None:
    preset = load_preset(name, "transfer")
    task = "nli" if "xnli" in name else "ner"
    recipe = TransferRecipe.build(task=task, encoder="x", **preset.settings).settled()
    assert preset.about and recipe.training(0).learning_rate == recipe.learning_rate
    assert recipe.head_options().head in task_named(task).heads()


def test_a_preset_gives_way_to_what_is_typed(
    typed: Callable[..., str], data: dict[str, Any], bert: Path, tmp_path: Path
) -> None:
    typed("transfer", "ner", "--encoder", str(bert), "--train", f"en={data['train']['en']}",
          "--test", f"de={data['test']['de']}", "--preset", "kulshreshtha2020", "--layers", "last",
          "--epochs", "1", "--seeds", "1", "--out", str(tmp_path / "run"))  # fmt: skip
    recipe = TransferRecipe.load(tmp_path / "run" / "recipe.toml")
    assert (recipe.body, recipe.layers, recipe.head, recipe.mix) == ("bilstm", "last", "crf", "sum")


def test_means_are_over_languages_that_all_runs_were_tested_in(
    features: Path, data: dict[str, Any], bert: Path, tmp_path: Path
) -> None:
    given = {**FROZEN, "layers": "last", "train": data["train"]}
    both = {**data["test"], "ru": data["test"]["de"]}
    for name, test in (("base", both), ("more", both), ("fewer", data["test"])):
        transfer("ner", str(bert), test=test, out=tmp_path / name, label=name, **given)
    found = compare([tmp_path / name for name in ("base", "more", "fewer")])
    assert {row.comparison.languages for row in found.tasks} == {1}
    assert {row.language for row in found.rows if row.method == "more"} == {"en", "de", "ru"}
    assert found.notes == ["ner: ru not in the mean, as not all runs were tested in it"]
