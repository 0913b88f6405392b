"""Zero-shot transfer on the invented universe, with the masked language model that was trained there.

That words without reading stay 20 points below the ceiling is tested in tests/text/test_world_tasks.py.
"""

from pathlib import Path
from typing import Any

import pytest

from calque.pipeline import pretrain, transfer
from calque.text.world import LANGUAGES, write_tasks

pytestmark = pytest.mark.slow

#: Every task of the world can be done without a mistake; the encoder has to come this near to it.
CEILING, NEAR_IT = 1.0, 0.05
#: Tags are learned from the first 4000 items, what needs two texts compared from all.
WORDS: dict[str, Any] = {"limit_train": 4000, "epochs": 5}
SETTINGS: dict[str, dict[str, Any]] = {
    "ner": WORDS,
    "slots": WORDS,
    "pos": WORDS,
    "parsing": WORDS,
    "nli": {"epochs": 5},
    "qa": {"epochs": 7, "learning_rate": 2e-3},
}


@pytest.fixture(scope="module")
def mlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("world") / "mlm"
    return pretrain(out, languages=LANGUAGES, vocabulary=6000, steps=5000).folder


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "tasks"
    # Settings were chosen on the draws of seed 0.
    write_tasks(folder, 12_000, seed=1)
    return folder


@pytest.mark.parametrize("task", SETTINGS)
def test_english_is_learned_and_the_near_language_gains_more(
    task: str, mlm: Path, tasks: Path, tmp_path: Path
) -> None:
    (train,) = (tasks / task).glob("en.train.*")
    test = {language: next((tasks / task).glob(f"{language}.test.*")) for language in LANGUAGES}
    how = {"learning_rate": 1e-3, "limit_test": 1000, "window": 128, "overlap": 32} | SETTINGS[task]
    run = transfer(
        task,
        str(mlm),
        train={"en": train},
        test=test,
        seeds=1,
        keep_models="none",
        out=tmp_path / task,
        **how,
    )
    metric = {"pos": "accuracy", "nli": "accuracy", "parsing": "las"}.get(task, "f1")
    scores = {one.languages[-1]: one.value for one in run.results if one.languages and one.metric == metric}
    assert scores["en"] >= CEILING - NEAR_IT
    assert scores["near"] > scores["far"]
