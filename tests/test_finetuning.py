"""`calque align --method l2|weak|strong` on small encoders: as verb and as command, killed and resumed."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import MISSING, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny_encoders
import torch
from safetensors.torch import load_file

from calque.align.finetune import FinetuneOptions
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.open import open_encoder
from calque.errors import BadSetting, TrainingStopped
from calque.pipeline import FinetuneRecipe, LinkRecipe, align
from calque.presets import load_preset, preset_names
from calque.store import load_pairs
from calque.training.loop import TrainOptions

SMALL: dict[str, Any] = {"steps": 12, "batch": 8, "learning_rate": 1e-3, "save_every": 4}


@pytest.fixture(scope="module")
def links(corpus: Path) -> Path:
    return corpus / "links"


@pytest.fixture(scope="module", params=["bert", "xlm-roberta"])
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    tiny_encoders.build(request.param).save(folder)
    return folder


def apart(encoder: Any, links: Path) -> float:
    """How far linked words are, beside how far words are from each other at all."""
    pairs = load_pairs(links)
    a, b = (
        encoder.word_vectors(text, layers=[encoder.depth]).vectors[0]
        for text in (pairs.bitext.source, pairs.bitext.target)
    )
    return float(np.linalg.norm(a - b, axis=1).mean() / np.linalg.norm(a - a.mean(0), axis=1).mean())


def test_a_training_that_reaches_no_weight_is_refused(encoder: Path, links: Path, tmp_path: Path) -> None:
    held = {"freeze_embeddings": True, "freeze_layers": 2, "layers": "2"}
    with pytest.raises(BadSetting, match=r"nothing that layers 2 are computed from is trained \(freeze less"):
        align(str(encoder), str(links / "train"), method="weak", out=tmp_path / "out", **held, **SMALL)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["l2", "weak", "strong"])
def test_linked_words_come_nearer_and_transformers_alone_gives_the_same(
    method: str, encoder: Path, links: Path, tmp_path: Path
) -> None:
    from transformers import AutoModel

    out = tmp_path / "out"
    aligned = align(str(encoder), links / "train", out=out, method=method, **SMALL)
    assert apart(aligned, links / "test") < apart(open_encoder(str(encoder)), links / "test")
    assert aligned.languages is None and aligned.seen_by(("en", "de")) >= {("cat", "Katze")}
    batch = aligned.batch(load_pairs(links / "test").bitext.target.select([0]))
    with torch.no_grad():
        theirs = AutoModel.from_pretrained(out)(batch.pieces.long(), batch.mask.long()).last_hidden_state
        ours = aligned.states(batch, [aligned.depth]).hidden[0]
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "part",
    [
        {"freeze_embeddings": True, "freeze_layers": 1},
        {"trim_vocabulary": True},
        {"lora": 4, "lora_alpha": 64, "method": "l2", "learning_rate": 1e-2, "steps": 40},
        {"queue": 16, "mask_same": False},
        {"regulariser": "both", "hidden_words": "linked"},
        {"pulled_to": "frozen", "supervision": "all", "layers": "last2"},
        {"batch_tokens": 200, "accumulate": 2, "schedule": "inverse-sqrt", "dropout": False},
    ],
    ids=lambda part: next(iter(part)),
)
def test_every_choice_gives_an_ordinary_encoder(
    part: dict[str, Any], bert: Path, links: Path, tmp_path: Path
) -> None:
    if "lora" in part:
        pytest.importorskip("peft")
    aligned = align(str(bert), links / "train", out=tmp_path / "out", **SMALL | {"method": "weak"} | part)
    assert apart(aligned, links / "test") < apart(open_encoder(str(bert)), links / "test")
    names = [set(load_file(folder / "model.safetensors")) for folder in (bert, tmp_path / "out")]
    assert names[0] == names[1]
    if "freeze_embeddings" in part:
        before, after = (load_file(folder / "model.safetensors") for folder in (bert, tmp_path / "out"))
        same = {name for name in before if before[name].equal(after[name])}
        assert {name for name in before if "embeddings" in name or "layer.0." in name} <= same
        assert not {name for name in before if "layer.2." in name} & same


def test_rows_without_text_are_left_out_where_only_time_changes_by_it(
    bert: Path, links: Path, tmp_path: Path
) -> None:
    trained, weights = {}, {}
    for name, how in {
        "usual": {},
        "whole": {"trim_vocabulary": False},
        "decaying": {"weight_decay": 0.1},
        "frozen": {"freeze_embeddings": True},
    }.items():
        align(str(bert), links / "train", out=tmp_path / name, method="l2", **SMALL | how)
        told = json.loads((tmp_path / name / "artifacts" / "training.json").read_text())
        trained[name] = told["parameters"]["trained"]
        weights[name] = load_file(tmp_path / name / "model.safetensors")
    assert trained["frozen"] < trained["usual"] < trained["whole"] == trained["decaying"]
    for name, whole in weights["whole"].items():
        torch.testing.assert_close(weights["usual"][name], whole, atol=1e-5, rtol=0)


def test_dev_links_choose_the_weights(bert: Path, links: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    align(
        str(bert), links / "train", out=out, method="l2", dev=[str(links / "test")], evaluate_every=3, **SMALL
    )
    about = json.loads((out / "artifacts" / "training.json").read_text())
    assert 0 < about["best dev score"] <= 1 and about["steps"] == 12
    assert len((out / "artifacts" / "steps.jsonl").read_text().splitlines()) == 12


def test_records_for_tensorboard_stay_with_the_encoder(
    bert: Path, links: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            self.file = Path(folder) / "events.out.tfevents.1700000000.my-machine.17.0"
            self.file.parent.mkdir()

        def add_scalar(self, name: str, value: float, step: int) -> None:
            with self.file.open("a") as handle:
                handle.write(f"{step} {name}\n")

        def close(self) -> None: ...

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=SummaryWriter))
    align(str(bert), links / "train", out=tmp_path / "out", method="weak", tensorboard=True, **SMALL)
    (file,) = (tmp_path / "out" / "artifacts" / "tensorboard").iterdir()
    assert file.name == "events.out.tfevents.0", "without the machine's name"
    told = file.read_text().splitlines()
    assert "12 weak" in told and "1 unrelated cosine" in told


def test_seeds_and_repeats(bert: Path, links: Path, tmp_path: Path) -> None:
    weights = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        align(str(bert), links / "train", out=tmp_path / name, method="strong", seed=seed, **SMALL)
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


def command(bert: Path, links: Path, out: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "calque", "align", "--encoder", str(bert), "--pairs", str(links / "train"),
        "--method", "weak", "--steps", "100", "--batch", "8", "--save-every", "10", "--out", str(out), *more,
    ]  # fmt: skip


def test_killed_and_resumed_it_ends_with_the_same_bits(bert: Path, links: Path, tmp_path: Path) -> None:
    quiet = {"env": os.environ | {"OMP_NUM_THREADS": "1"}, "capture_output": True, "text": True}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run(command(bert, links, whole), check=True, **quiet)
    running = subprocess.Popen(command(bert, links, cut), env=quiet["env"])
    work = tmp_path / ".cut.training"
    deadline = time.monotonic() + 120
    while len(list(work.glob("step-*/position.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not cut.exists() and work.is_dir()
    refused = subprocess.run(command(bert, links, cut), **quiet)
    assert refused.returncode == 2 and "--resume goes on" in refused.stderr
    other = subprocess.run(command(bert, links, cut, "--seed", "5", "--resume"), **quiet)
    assert other.returncode == 2 and "another recipe" in other.stderr
    done = subprocess.run(command(bert, links, cut, "--resume"), **quiet)
    assert done.returncode == 0, done.stderr
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert not work.exists()


def test_collapse_stops_with_the_last_good_encoder(bert: Path, links: Path, tmp_path: Path) -> None:
    settings = SMALL | {"steps": 300, "regulariser": "none", "max_unrelated": 0.99}
    with pytest.raises(TrainingStopped, match=r"unrelated cosine .* collapsed.*last-good"):
        align(str(bert), links / "train", out=tmp_path / "out", method="l2", **settings)
    assert not (tmp_path / "out").exists()
    kept = open_encoder(str(tmp_path / "out.last-good"))
    card = (tmp_path / "out.last-good" / "README.md").read_text(encoding="utf-8")
    assert "**The last good weights of a training that stopped:**" in card
    assert isinstance(kept, AlignedEncoder) and np.isfinite(apart(kept, links / "test"))


def test_what_somebody_keeps_under_the_name_of_the_last_good_one_stays(
    bert: Path, links: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "out.last-good" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("years of work")
    settings = SMALL | {"steps": 300, "regulariser": "none", "max_unrelated": 0.99}
    with pytest.raises(TrainingStopped, match="collapsed"):
        align(str(bert), links / "train", out=tmp_path / "out", method="l2", **settings)
    assert [path.name for path in mine.parent.iterdir()] == [mine.name]


def test_an_encoder_that_has_all_words_in_one_place_is_not_taken_for_collapsed(
    links: Path, tmp_path: Path
) -> None:
    made = tiny_encoders.build("bert")
    last = made.model.encoder.layer[-1].output.LayerNorm
    with torch.no_grad():
        last.weight.mul_(0.01)
        last.bias.fill_(1.0)
    made.save(tmp_path / "narrow")
    settings = SMALL | {"steps": 30, "learning_rate": 1e-4}
    align(str(tmp_path / "narrow"), links / "train", out=tmp_path / "out", method="weak", **settings)
    steps = [json.loads(line) for line in (tmp_path / "out" / "artifacts" / "steps.jsonl").open()]
    assert steps[0]["watched"]["unrelated cosine"] > 0.97


@pytest.mark.parametrize("name", preset_names())
def test_presets_are_recipes(name: str) -> None:
    preset = load_preset(name)
    recipe = FinetuneRecipe.build(encoder="e", pairs=["p"], preset=name, **preset.align)
    assert recipe.finetuning(12).loss == recipe.method and recipe.training().learning_rate > 0
    LinkRecipe.build(paths=["a"], languages=("en", "de"), **preset.link)


def test_a_preset_runs_and_settings_that_are_given_win(bert: Path, links: Path, tmp_path: Path) -> None:
    aligned = align(str(bert), links / "train", out=tmp_path / "out", preset="cao2020", steps=3)
    recipe = FinetuneRecipe.load(tmp_path / "out" / "recipe.toml")
    assert (recipe.preset, recipe.steps, recipe.reduction, recipe.batch) == ("cao2020", 3, "sum", 2)
    assert aligned.about["method"] == "l2"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"method": "wek"}, "did you mean weak"),
        ({"preset": "cao2021"}, "did you mean cao2020"),
        ({"method": "weak", "shrink": 0.1}, "shrink"),
        ({"method": "rotation", "temperature": 0.1}, "temperature"),
        ({"method": "weak", "temperature": 0}, "above 0"),
        ({"method": "l2", "queue": 5}, "contrastive"),
        ({"method": "l2", "steps": 0}, "at least 1"),
        ({"method": "l2", "layers": "9"}, "no layer"),
        ({"method": "l2", "freeze_layers": 99}, "lower layers"),
        ({"method": "l2", "processes": 3}, "torchrun"),
    ],
)
def test_mistakes_are_told_and_leave_nothing(
    settings: dict[str, Any], told: str, bert: Path, links: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadSetting, match=told):
        align(str(bert), links / "train", out=tmp_path / "out", **settings)
    assert not [path for path in tmp_path.iterdir() if path.name == "out"]


def test_two_processes_write_one_encoder_near_that_of_one(bert: Path, links: Path, tmp_path: Path) -> None:
    quiet = {"env": os.environ | {"OMP_NUM_THREADS": "1"}, "capture_output": True, "text": True}
    settings = ["--no-dropout", "--steps", "10"]
    alone = command(bert, links, tmp_path / "one", *settings)
    subprocess.run(alone, check=True, **quiet)
    together = command(bert, links, tmp_path / "two", *settings, "--processes", "2")[3:]
    start = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "calque",
    ]
    found = subprocess.run([*start, *together], timeout=300, **quiet)
    assert found.returncode == 0, found.stderr[-3000:]
    losses = [
        [json.loads(line)["loss"] for line in (tmp_path / name / "artifacts" / "steps.jsonl").open()]
        for name in ("one", "two")
    ]
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)


@pytest.mark.parametrize("options", [FinetuneOptions, TrainOptions])
def test_settings_that_go_by_the_same_name_have_the_same_usual_value(options: type) -> None:
    ours = {name: one.default for name, one in FinetuneRecipe.model_fields.items()}
    theirs = {one.name: one.default for one in fields(options) if one.default is not MISSING}
    # The recipe leaves the regulariser to the loss, and scores where there is something to score on.
    shared = (ours.keys() & theirs.keys()) - {"regulariser", "evaluate_every"}
    assert len(shared) > 8
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}
