"""The more two languages of the world share in pretraining, the better they meet: three rows of the table.

The whole table, over seeds, is made by benchmarks/sharing.py and stands in docs/sharing.md.
"""

from pathlib import Path

import pytest

from calque.pipeline import measure_sentences, pretrain, transfer
from calque.store import save_pairs
from calque.text.world import world_pairs, write_tasks

pytestmark = pytest.mark.slow

PRESETS = ("conneau2020-world-sep-emb-1-6", "conneau2020-world", "conneau2020-world-extra-anchors")


def test_languages_that_share_more_meet_more(tmp_path: Path) -> None:
    # The table's seeds are 0 to 2.
    seed, both = 3, ("en", "near")
    write_tasks(tmp_path / "tasks", 2000, seed=1)
    save_pairs(tmp_path / "pairs", world_pairs(500, both, seed=6))
    ((train,), (test,)) = ((tmp_path / "tasks" / "ner").glob(f"{one}.*") for one in ("en.train", "near.test"))
    names, found = [], []
    for preset in PRESETS:
        encoder = str(pretrain(tmp_path / preset, preset=preset, languages=both, seed=seed).folder)
        ner = transfer(
            "ner", encoder, train={"en": train}, test={"near": test}, seeds=(seed,), keep_models="none",
            out=tmp_path / f"{preset}.ner", learning_rate=1e-3, epochs=3, limit_train=2000, limit_test=500,
        )  # fmt: skip
        names += [one.value for one in ner.results if one.metric == "f1"]
        sentences = measure_sentences(
            encoder, str(tmp_path / "pairs"), layers="2", rounds=20, out=tmp_path / f"{preset}.sentences"
        )
        found += [one.value for one in sentences.results if one.direction == "both" and one.group is None]
    assert names[0] + 0.1 < names[1] < names[2] - 0.1
    assert found[0] < 0.02 < 0.05 < found[1] < found[2] - 0.05
