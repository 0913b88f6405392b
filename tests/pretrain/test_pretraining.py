"""The verb: an ordinary checkpoint, made once, the same after a kill."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from calque.encoders.open import open_encoder
from calque.errors import BadInput, BadSetting
from calque.files import read_json
from calque.pipeline import modelling
from calque.pipeline.pretraining import pretrain
from calque.pipeline.pretraintext import world_texts
from calque.pretrain.masked import MaskedLanguageModel
from calque.training.loop import HISTORY

SMALL: dict[str, Any] = {
    "sentences": 60,
    "vocabulary": 400,
    "layers": 1,
    "width": 16,
    "heads": 2,
    "inner": 16,
    "steps": 12,
    "batch_tokens": 256,
    "max_length": 40,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretrain(tmp_path_factory.mktemp("pretrain") / "model", **SMALL).folder


def test_it_is_an_ordinary_checkpoint(folder: Path) -> None:
    text = world_texts(("en", "far"), 3, 0)[1]
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    read = tokenizer(text[0], is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        plain = model(**read, output_hidden_states=True).hidden_states
    encoder = open_encoder(str(folder))
    found = encoder.word_vectors(text.select([0]), layers=[0, 1], pooling="last")
    lasts = [max(at for at, word in enumerate(read.word_ids()) if word == i) for i in range(len(text[0]))]
    for layer in (0, 1):
        np.testing.assert_allclose(found.layer(layer), plain[layer][0, lasts], atol=1e-5)


def test_it_tells_how_well_hidden_pieces_are_guessed(folder: Path) -> None:
    run = pretrain(folder, **SMALL)
    told = {(result.languages[0], result.metric) for result in run.results}
    assert told == {(lang, metric) for lang in ("en", "far") for metric in ("accuracy", "loss", "commonest")}
    assert read_json(folder / "artifacts" / "training.json")["steps"] == 12
    assert not folder.with_name(".model.training").exists()


def test_what_stands_is_not_made_again_and_not_replaced(folder: Path) -> None:
    before = (folder / "model.safetensors").stat().st_mtime_ns
    pretrain(folder, **SMALL)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(BadSetting, match="another recipe"):
        pretrain(folder, **SMALL | {"seed": 1})


def test_killed_and_resumed_it_ends_with_the_same_bits(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, done = MaskedLanguageModel.step, 0

    def killed(*args: Any) -> Any:
        nonlocal done
        done += 1
        if done > 8:
            raise KeyboardInterrupt
        return step(*args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(MaskedLanguageModel, "step", killed)
        pretrain(tmp_path / "again", save_every=5, **SMALL)
    assert not (tmp_path / "again").exists()
    with pytest.raises(BadSetting, match="another recipe"):
        pretrain(tmp_path / "again", resume=True, **SMALL | {"steps": 13})
    with pytest.raises(BadSetting, match="--resume goes on"):
        pretrain(tmp_path / "again", **SMALL)
    pretrain(tmp_path / "again", resume=True, **SMALL)
    weights = [(place / "model.safetensors").read_bytes() for place in (folder, tmp_path / "again")]
    assert weights[0] == weights[1]
    assert (folder / "tokenizer.json").read_bytes() == (tmp_path / "again" / "tokenizer.json").read_bytes()


def test_minutes_become_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[float] = []

    def seconds(*given: Any) -> float:
        timed.append(real(*given))
        return 0.035  # whatever a busy machine took

    real = modelling._seconds
    monkeypatch.setattr(modelling, "_seconds", seconds)
    run = pretrain(tmp_path / "timed", minutes=0.01, **{k: SMALL[k] for k in SMALL if k != "steps"})
    told = read_json(run.folder / "artifacts" / "training.json")
    assert timed[0] > 0 and told["steps"] == 17


def test_the_weights_that_guess_the_first_language_best_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SMALL | {"schedule": "constant", "learning_rate": 1e-2}
    scored: list[float] = []

    def score(held: Any, **given: Any) -> Any:
        """The real score, but the third of four dev texts is said to be guessed best."""
        found = real(held, **given)
        scored.append(found.loss)
        return replace(found, loss=0.5) if len(scored) == 3 else found

    real = modelling.masked_score
    with monkeypatch.context() as patch:
        patch.setattr(modelling, "masked_score", score)
        run = pretrain(tmp_path / "chosen", evaluate_every=3, **settings)
    told = read_json(run.folder / "artifacts" / "training.json")
    assert (told["steps"], told["kept step"], told["its dev loss"]) == (12, 9, 0.5)
    shorter = pretrain(tmp_path / "shorter", **settings | {"steps": 9})
    weights = [(one.folder / "model.safetensors").read_bytes() for one in (run, shorter)]
    assert weights[0] == weights[1]
    english = {one.metric: one.value for one in run.results if one.languages == ("en", "en")}
    assert english["loss"] not in scored[:4], "text to choose by is not the text of the final score"


@pytest.mark.slow
@pytest.mark.parametrize("share", ["all", "no-embeddings"])
def test_two_processes_take_the_steps_of_one(share: str, tmp_path: Path) -> None:
    settings, one = {**SMALL, "share": share}, tmp_path / "one"
    pretrain(one, **settings)
    script = Path(__file__).with_name("two_pretrainers.py")
    subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            str(script), str(tmp_path / "two"), json.dumps(settings),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
        timeout=200,
    )  # fmt: skip
    alone, both = (
        [json.loads(line)["loss"] for line in (place / "artifacts" / HISTORY).read_text().splitlines()]
        for place in (one, tmp_path / "two")
    )
    assert len(both) == 12 and both == pytest.approx(alone, abs=1e-5)


def test_there_is_no_parallel_signal() -> None:
    texts = world_texts(("en", "near"), 200, 2)
    same = world_texts(("near", "en"), 200, 2)[1]
    assert len(texts[0]) == len(same) and texts[0].fingerprint != same.fingerprint
    assert world_texts(("en", "near"), 200, 2)[1].fingerprint == texts[1].fingerprint


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="width of 16"):
        pretrain(tmp_path / "none", **SMALL | {"heads": 3})
    with pytest.raises(BadSetting, match="nobody speaks"):
        pretrain(tmp_path / "none", **SMALL | {"languages": ("en", "latin")})


def test_a_preset_stands_on_another(tmp_path: Path) -> None:
    from calque.presets import load_preset

    base, own = (load_preset(f"conneau2020-world{end}", "pretrain").settings for end in ("", "-sep-1-3"))
    assert own == {**base, "share": "no-lower-3"}
    mine = tmp_path / "mine.toml"
    for wrong in ('"conneau2020-wrld"', f'"{mine}"', "3"):
        mine.write_text(f"base = {wrong}\n[pretrain]\n")
        with pytest.raises(BadInput, match=r"mine\.toml: unknown base"):
            load_preset(mine, "pretrain")
    mine.write_text('base = "conneau2020-world"\n[pretrain]\nlayers = 2\n')
    assert load_preset(mine, "pretrain").settings == {**base, "layers": 2}


def test_presets_are_recipes_and_what_is_typed_wins(tmp_path: Path) -> None:
    from calque.pipeline.pretraining import PretrainRecipe
    from calque.presets import load_preset, preset_names

    for name in preset_names("pretrain"):
        PretrainRecipe.build(preset=name, **load_preset(name, "pretrain").settings)
    small = {**SMALL, "heads": 2, "dropout": 0.0, "warmup": 0.1}
    run = pretrain(tmp_path / "model", preset="conneau2020", **small)
    told = (run.folder / "recipe.toml").read_text()
    assert 'preset = "conneau2020"' in told and 'rows = "streams"' in told and "width = 16" in told
    with pytest.raises(BadSetting, match="did you mean conneau2020"):
        pretrain(tmp_path / "none", preset="conneau2000")
