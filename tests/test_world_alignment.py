"""Alignment on the invented universe, of the masked language model that was trained there without links."""

import json
from pathlib import Path
from typing import Any

import pytest

from calque.errors import TrainingStopped
from calque.pipeline import align, measure_words, pretrain
from calque.store import save_pairs
from calque.text.world import world_pairs

pytestmark = pytest.mark.slow

SEEDS = range(5)
TRAINED: dict[str, Any] = {"steps": 300, "batch": 32, "learning_rate": 1e-3, "save_every": 50}


@pytest.fixture(scope="module")
def mlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretrain(tmp_path_factory.mktemp("world") / "mlm").folder


def links(folder: Path, seed: int) -> tuple[Path, Path]:
    """Gold links of the world to learn from and to be asked, other ones for every seed."""
    parts = folder / "train", folder / "test"
    for number, (path, sentences) in enumerate(zip(parts, (2000, 500), strict=True)):
        save_pairs(path, world_pairs(sentences, ("en", "far"), seed=10 * seed + 5 + number))
    return parts


@pytest.mark.parametrize("seed", SEEDS)
def test_rotation_helps_on_unseen_pairs_and_training_more(mlm: Path, seed: int, tmp_path: Path) -> None:
    train, test = links(tmp_path, seed)
    made = {
        "rotation": {"method": "rotation"},
        "l2": TRAINED | {"method": "l2"},
        "weak": TRAINED | {"method": "weak", "regulariser": "none"},
    }
    for name, how in made.items():
        align(str(mlm), train, out=tmp_path / name, seed=seed, **how)
    run = measure_words(
        [mlm, *(tmp_path / name for name in made)],
        test,
        labels=["base", *made],
        layers="last",
        out=tmp_path / "words",
    )
    whole = [one for one in run.results if one.direction == "both" and one.group is None]
    scores = {one.encoder: one.value for one in whole if one.baseline is None}
    gains = {one.encoder: one for one in whole if one.baseline is not None}
    assert scores["base"] < scores["rotation"] < scores["l2"] < scores["weak"]
    assert all(gain.p is not None and gain.p < 0.05 for gain in gains.values())


def test_l2_without_a_regulariser_collapses(mlm: Path, tmp_path: Path) -> None:
    train, _ = links(tmp_path, 0)
    with pytest.raises(TrainingStopped, match="collapsed"):
        align(str(mlm), train, out=tmp_path / "none", method="l2", regulariser="none", **TRAINED)
    align(str(mlm), train, out=tmp_path / "kept", method="l2", **TRAINED)
    steps = [json.loads(line) for line in (tmp_path / "kept" / "artifacts" / "steps.jsonl").open()]
    assert all(step["watched"]["unrelated cosine"] < 0.9 for step in steps)
