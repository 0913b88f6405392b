"""What two languages of the world must share to meet: the table of Conneau, Wu et al. (2020), small.

Every condition is pretrained by its preset on English and another language, then fine-tuned on English names
and trees and tested on the other language's; sentences look for their translations. What is there already is
not made again, so that a run that was stopped goes on.

    python benchmarks/sharing.py --out runs/sharing [--seeds 0 1 2] [--languages near far] [--table]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from calque.files import write_json
from calque.pipeline import measure_sentences, pretrain, transfer
from calque.presets import preset_names
from calque.store import save_pairs
from calque.text.world import LANGUAGES, world_pairs, write_tasks

PRESET = "conneau2020-world"
ORDER = (
    "", "domain", "no-anchors", "default-anchors", "extra-anchors", "sep-emb", "sep-1-3", "sep-1-6",
    "sep-emb-1-3", "sep-emb-1-6", "tlm",
)  # fmt: skip
METRICS = {"ner": "f1", "parsing": "las"}
HOW: dict[str, Any] = {"learning_rate": 1e-3, "epochs": 3, "limit_train": 2000, "limit_test": 500}


def main() -> None:
    given = arguments()
    if given.table:
        return table(given)
    torch.set_num_threads(given.threads)
    data = given.out / "data"
    if not (data / "ready").exists():
        write_tasks(data / "tasks", 2000, seed=1)
        for code in LANGUAGES[1:]:
            save_pairs(data / f"en-{code}", world_pairs(500, ("en", code), seed=6))
        (data / "ready").touch()
    for seed, code, condition in cells(given):
        folder = given.out / f"{condition or 'default'}-{code}-{seed}"
        if (folder / "cell.json").exists():
            continue
        folder.mkdir(exist_ok=True)
        write_json(folder / "cell.json", cell(folder, data, condition, code, seed))
        print(folder.name, json.loads((folder / "cell.json").read_text()), flush=True)
    table(given)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--languages", nargs="+", default=["near", "far"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print what is there, and make nothing")
    return parser.parse_args()


def cells(given: argparse.Namespace) -> Iterator[tuple[int, str, str]]:
    for seed in given.seeds:
        for code in given.languages:
            for condition in ORDER:
                yield seed, code, condition


def cell(folder: Path, data: Path, condition: str, code: str, seed: int) -> dict[str, float]:
    """Scores in %, and what the pretraining took."""
    name = f"{PRESET}-{condition}" if condition else PRESET
    assert name in preset_names("pretrain")
    began = time.monotonic()
    run = pretrain(folder / "mlm", preset=name, languages=("en", code), seed=seed, resume=True)
    found = {"seconds": time.monotonic() - began}
    found |= {
        f"guessed {one.languages[0]}": 100 * one.value for one in run.results if one.metric == "accuracy"
    }
    encoder = str(folder / "mlm")
    held = measure_sentences(
        encoder, str(data / f"en-{code}"), layers="all", rounds=20, out=folder / "sentences"
    )
    whole = [one for one in held.results if one.metric == "accuracy" and one.group is None]
    found |= {f"sentences {one.layer}": 100 * one.value for one in whole if one.direction == "both"}
    for task, metric in METRICS.items():
        files = {one: next((data / "tasks" / task).glob(f"{one}.test.*")) for one in ("en", code)}
        (train,) = (data / "tasks" / task).glob("en.train.*")
        done = transfer(
            task, encoder, train={"en": train}, test=files, seeds=(seed,), keep_models="none",
            out=folder / task, **HOW,
        )  # fmt: skip
        found |= {
            f"{task} {one.languages[-1]}": 100 * one.value
            for one in done.results
            if one.languages and one.metric == metric
        }
    return {name: round(value, 2) for name, value in found.items()}


def table(given: argparse.Namespace) -> None:
    """Mean and standard deviation over seeds of the cells that are there; sentences by the mean of layers."""
    for code in given.languages:
        columns = ["guessed en", f"guessed {code}", "ner en", f"ner {code}", f"parsing {code}", "sentences"]
        print(f"\n| {code} | seeds | {' | '.join(columns)} | seconds |\n{'|---' * (len(columns) + 3)}|")
        for condition in (one or "default" for one in ORDER):
            paths = [given.out / f"{condition}-{code}-{seed}" / "cell.json" for seed in given.seeds]
            held = [json.loads(path.read_text()) for path in paths if path.exists()]
            told = (spread([value(one, name) for one in held]) for name in columns)
            longest = max((one["seconds"] for one in held), default=0.0)
            print(f"| {condition} | {len(held)} | {' | '.join(told)} | {longest:.0f} |")


def value(cell: dict[str, float], name: str) -> float:
    """What stands under this name, or the mean of those whose names begin with it."""
    return float(np.mean([cell[one] for one in cell if one == name or one.startswith(f"{name} ")]))


def spread(values: list[float]) -> str:
    more = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{more}" if values else ""


if __name__ == "__main__":
    main()
