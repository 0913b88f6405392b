"""Run folders made by hand, as a real run leaves them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calque.files import write_json, write_text
from calque.stats.intervals import bootstrap_mean
from calque.stats.significance import paired
from calque.store import save_items, save_results
from calque.types import Items, Result

BINS = {
    "pos": {"NOUN": 812, "VERB": 430, "ADP": 377, "PRON": 288, "ADJ": 251, "PROPN": 97, "NUM": 41},
    "pos-group": {"open": 1622, "closed": 911, "lexical": 138},
    "rank-gap": {"0-9": 301, "10-99": 720, "100-999": 1012, "1000-9999": 513, "unranked": 40},
    "script": {"Cyrillic": 2511, "Latin": 75},
    "seen": {"unseen": 2031, "seen": 555},
}


def words(text: str) -> list[str]:
    return text.split(" ")


EXAMPLES = [
    {
        "direction": "forward",
        "query": "bank",
        "sentence": words("We sat on the bank of the river and watched the boats ."),
        "index": 4,
        "gold": {
            "word": "берегу",
            "sentence": words("Мы сидели на берегу реки и смотрели на лодки ."),
            "index": 3,
        },
        "retrieved": {
            "base": {
                "word": "банк",
                "sentence": words("Утром она пошла в банк за деньгами ."),
                "index": 4,
                "hit": False,
            },
            "rotated": {
                "word": "берегу",
                "sentence": words("Мы сидели на берегу реки и смотрели на лодки ."),
                "index": 3,
                "hit": True,
            },
        },
    },
    {
        "direction": "backward",
        "query": "замок",
        "sentence": words("Старый замок на двери давно заржавел ."),
        "index": 1,
        "gold": {
            "word": "lock",
            "sentence": words("The old lock on the door rusted long ago ."),
            "index": 2,
        },
        "retrieved": {
            "base": {
                "word": "castle",
                "sentence": words("The castle stands on a hill above the town ."),
                "index": 1,
                "hit": False,
            },
            "rotated": {
                "word": "door",
                "sentence": words("The old lock on the door rusted long ago ."),
                "index": 5,
                "hit": False,
            },
        },
    },
]


def scores(
    encoders: Sequence[str] = ("base", "rotated"),
    layers: Sequence[int | None] = tuple(range(13)),
    *,
    gain: float = 0.12,
    p: float | None = 0.0001,
    bins: bool = True,
    languages: tuple[str, str] = ("en", "ru"),
) -> list[Result]:
    """Retrieval results: every further encoder gains more, with tests against the first."""
    made = []
    for rank, encoder in enumerate(encoders):
        for layer in layers:
            depth = 0.0 if layer is None else layer / 12
            for direction, lean in (("both", 0.0), ("forward", 0.021), ("backward", -0.021)):
                value = 0.18 + 1.3 * depth - 1.02 * depth**2 + lean + rank * gain * (0.3 + depth) / 1.3
                made += _one(encoder, layer, direction, value, languages, bins)
                if rank:
                    change = rank * gain * (0.3 + depth) / 1.3
                    made.append(
                        replace(
                            made[-1],
                            group=None,
                            value=change,
                            low=change - 0.02,
                            high=change + 0.021,
                            p=p,
                            baseline=encoders[0],
                            note="permutation",
                        )
                    )
    return made


def _one(
    encoder: str, layer: int | None, direction: str, value: float, languages: tuple[str, str], bins: bool
) -> list[Result]:
    about = Result(
        "word-retrieval",
        "accuracy",
        value,
        languages,
        encoder,
        layer=layer,
        variant="contextual",
        direction=direction,
        count=2586,
        low=value - 0.018,
        high=value + 0.019,
        signature=f"task:word-retrieval|encoder:{encoder}|sim:csls10|v:0.1.0",
    )
    if not bins:
        return [about]
    rng = np.random.default_rng(len(encoder) + (layer or 0))
    found = [about]
    for name, sizes in BINS.items():
        for label, count in sizes.items():
            own = float(np.clip(value + rng.normal(0, 0.12), 0.03, 0.95))
            half = min(1.0 / count**0.5, own, 1 - own)
            found.append(
                replace(about, group=(name, label), value=own, count=count, low=own - half, high=own + half)
            )
    return found


def make_run(
    folder: Path,
    results: Sequence[Result] | None,
    *,
    examples: Any = EXAMPLES,
    links: Any = None,
    verb: str = "measure",
) -> Path:
    """Write a run folder with these results; None leaves results.jsonl out."""
    folder.mkdir(parents=True, exist_ok=True)
    if results is not None:
        save_results(folder / "results.jsonl", results)
    write_text(folder / "recipe.toml", f'verb = "{verb}"\nlanguages = ["en", "ru"]\nseed = 0\n')
    write_json(
        folder / "environment.json", {"python": "3.11.9", "packages": {"numpy": "2.4.0"}, "threads": 2}
    )
    write_json(folder / "cost.json", {"seconds": 192.4, "peak_memory_mb": 2150.0, "words": 48211})
    write_json(folder / "finished.json", {"recipe": "0" * 64, "verb": verb})
    counts = {"links": 3120, "scored": 2586, "identical": 301, "seen in training": 233, "no vector": 0}
    write_json(folder / "artifacts" / "counts.json", counts)
    for name, held in (("examples", examples), ("links", links)):
        if held is not None:
            write_json(folder / "artifacts" / f"{name}.json", held)
    return folder


def planted_results(
    folder: Path,
    shares: dict[str, Sequence[float]],
    *,
    layers: Sequence[int] = (0, 1, 2),
    labels: Sequence[str] = ("base", "centring", "centred rotation"),
) -> list[Result]:
    """Results and items of hits that are drawn: of each language, the share that each encoder gets right.

    At layer 1 every encoder is best; at others it loses a tenth. Languages have different numbers of items.
    """
    made, rng = [], np.random.default_rng(1)
    for size, (language, own) in enumerate(shares.items(), 1):
        sentence = np.repeat(np.arange(120), 4 + size).astype(np.int64)
        luck = rng.random(len(sentence))
        for layer in layers:
            hits = [(luck < share - 0.1 * (layer != 1)).astype(float) for share in own]
            for label, hit in zip(labels, hits, strict=False):
                digest = save_items(
                    folder / "items",
                    Items({"item": np.arange(len(hit))}, sentence, {"both": hit, "forward": hit}),
                )
                ends = bootstrap_mean(hit, sentence, rounds=200)
                made.append(
                    Result(
                        "word-retrieval", "accuracy", float(hit.mean()), ("en", language), label, layer,
                        "contextual", "both", count=len(hit), low=ends.low, high=ends.high, items=digest,
                    )
                )  # fmt: skip
                if label != labels[0]:
                    found = paired(hits[0], hit, sentence, rounds=1000)
                    made.append(
                        replace(
                            made[-1], value=found.difference, low=found.low, high=found.high, p=found.p,
                            note="permutation", baseline=labels[0], items=None,
                        )
                    )  # fmt: skip
    return made


FIVE = {
    "de": (0.8, 0.85, 0.7),
    "es": (0.8, 0.86, 0.7),
    "hi": (0.5, 0.56, 0.4),
    "ru": (0.7, 0.75, 0.6),
    "zh": (0.6, 0.6, 0.5),
}


def sense(word: str, language: str, held: Sequence[tuple[str, str, str, dict[str, str]]]) -> dict[str, Any]:
    """An ambiguous word: sentence, right word, its sentence, what each encoder found, of one language."""
    occurrences = []
    for said, right, target, found in held:
        place = {"word": right, "sentence": words(target), "index": words(target).index(right)}
        occurrences.append(
            {
                "query": word,
                "sentence": words(said),
                "index": words(said).index(word),
                "gold": place,
                "retrieved": {
                    label: {**place, "hit": True} if got == right else {"word": got, "hit": False}
                    for label, got in found.items()
                },
            }
        )
    return {"word": word, "languages": ["en", language], "layer": 1, "occurrences": occurrences}


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """A run in five languages: centring helps in four of them, centred rotation hurts in all."""
    folder = tmp_path / "five"
    folder.mkdir()
    recipe = 'verb = "measure words"\nlabels = ["base", "centring", "centred rotation"]\n'
    make_run(folder, planted_results(folder, FIVE), examples=None)
    write_text(folder / "recipe.toml", recipe)
    return folder


@pytest.fixture
def sensed() -> Callable[..., dict[str, Any]]:
    return sense


@pytest.fixture
def drawn() -> Callable[..., list[Result]]:
    return planted_results


@pytest.fixture
def scored() -> Callable[..., list[Result]]:
    return scores


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    return lambda name, *args, **kwargs: make_run(tmp_path / name, *args, **kwargs)
