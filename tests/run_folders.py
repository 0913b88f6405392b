"""Run folders made by hand, as real runs leave them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import erfc, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from calque.files import write_json, write_text
from calque.stats.intervals import bootstrap_mean
from calque.stats.significance import holm, paired
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


# ------------------------------------------------------------------------------- every measure there is

LABELS = ("e5-small-q4", "centred rotation")
LAYERS = tuple(range(13))
PAIRS = (("en", "de"), ("en", "ru"))
TEXT = {
    "en": "We sat on the bank of the river and watched the boats until the sun went down .",
    "de": "Wir saßen am Ufer des Flusses und sahen den Booten zu , bis die Sonne unterging .",
    "ru": "Мы сидели на берегу реки и смотрели на лодки , пока не зашло солнце .",
}
SENTENCES = {
    "languages": ["en", "de"],
    "direction": "backward",
    "line": 7,
    "query": "Die Bank ist heute zu .",
    "gold": "The bank is closed today .",
    "retrieved": {
        LABELS[0]: {"sentence": "The bench is free today .", "hit": False, "layer": 12},
        LABELS[1]: {"sentence": "The bank is closed today .", "hit": True, "layer": 12},
    },
}


def measured(
    task: str,
    metric: str,
    variant: str,
    at: Callable[[float, int], float],
    *,
    half: float = 0.02,
    compared: bool = True,
    directions: Sequence[str] = ("",),
    p: float | None = 0.001,
) -> list[Result]:
    """Results of both encoders at every layer: `at` gives the figure at a depth from 0 to 1."""
    made = []
    for languages in PAIRS:
        for rank, encoder in enumerate(LABELS):
            for layer in LAYERS:
                value, before = at(layer / 12, rank), at(layer / 12, 0)
                for direction in directions:
                    about = Result(
                        task, metric, value, languages, encoder, layer, variant, direction, count=1000,
                        low=value - half, high=value + half, signature=f"task:{task}|v:0.1.0",
                    )  # fmt: skip
                    made.append(about)
                    if rank and compared:
                        change = value - before
                        ends = {"low": change - half, "high": change + half}
                        made.append(
                            replace(about, value=change, **ends, p=p, baseline=LABELS[0], note="permutation")
                        )
    return made


def heatmap(languages: Sequence[str] = ("en", "de"), layers: int = 13, **changed: Any) -> dict[str, Any]:
    depth = np.arange(layers) / max(layers - 1, 1)
    values = np.exp(-3.0 * np.abs(depth[:, None] - depth)) * (0.35 + 0.6 * depth)
    return {
        "title": f"CKA of {languages[0]} and {languages[1]}, linear",
        "task": "cka",
        "variant": "linear",
        "languages": list(languages),
        "rows": {"name": f"{languages[0]} layer", "ticks": [str(k) for k in range(layers)]},
        "columns": {"name": f"{languages[1]} layer", "ticks": [str(k) for k in range(layers)]},
        "values": values.round(4).tolist(),
        **changed,
    }


def histogram(languages: Sequence[str] = ("en", "de"), layer: int = 8, **changed: Any) -> dict[str, Any]:
    rng = np.random.default_rng(layer)
    edges = np.linspace(0.0, 2.0, 41)
    series = [
        {
            "encoder": encoder,
            "kind": kind,
            "counts": np.histogram(rng.normal(middle, 0.18, 4000), edges)[0].tolist(),
        }
        for encoder, near in zip(LABELS, (0.85, 0.55), strict=True)
        for kind, middle in (("linked", near), ("unrelated", 1.3))
    ]
    return {
        "title": f"L2 distance, layer {layer}",
        "languages": list(languages),
        "layer": layer,
        "axis": "L2 distance",
        "edges": edges.round(5).tolist(),
        "series": series,
        **changed,
    }


def projection(
    encoder: str = LABELS[0],
    languages: Sequence[str] = ("en", "de"),
    pairs: int = 40,
    apart: float = 6.0,
    **changed: Any,
) -> dict[str, Any]:
    """Words of a sentence and their translations, which lie `apart` from each other."""
    rng = np.random.default_rng(3)
    words_of = [TEXT[language].split(" ") for language in languages]
    points = []
    for k, (x, y) in enumerate(rng.normal(0, 3, (pairs, 2))):
        for side, language in enumerate(languages):
            index = k % len(words_of[side])
            points.append(
                {
                    "x": round(x + side * apart + rng.normal(0, 0.1), 4),
                    "y": round(y + side * apart / 2 + rng.normal(0, 0.1), 4),
                    "word": words_of[side][index],
                    "language": language,
                    "sentence": [*words_of[side], str(k)],
                    "index": index,
                    "group": f"{words_of[0][k % len(words_of[0])]} {k}",
                }
            )
    return {
        "title": "Words on a plane",
        "languages": list(languages),
        "layer": 8,
        "method": "tsne",
        "encoder": encoder,
        "points": points,
        **changed,
    }


def scatter(**changed: Any) -> dict[str, Any]:
    points = [
        {
            "x": round(0.2 + 0.05 * k, 4),
            "y": round(0.3 + 0.04 * k + 0.05 * (k % 3), 4),
            "label": f"layer {k}",
            "group": LABELS[k % 2],
        }
        for k in LAYERS
    ]
    figures = [
        {"name": "pearson", "value": 0.93, "low": 0.81, "high": 0.98, "p": 0.0004, "count": 13},
        {"name": "spearman", "value": 0.9, "low": 0.7, "high": 0.97, "p": 0.001, "count": 13},
    ]
    return {
        "title": "CKA and sentence retrieval over the layers",
        "x": {"name": "CKA"},
        "y": {"name": "accuracy of sentence retrieval"},
        "points": points,
        "figures": figures,
        **changed,
    }


def write_run(folder: Path, verb: str, results: Sequence[Result], **artifacts: Any) -> Path:
    """A run of a measure with these results and artifacts."""
    make_run(folder, results, examples=None, verb=verb)
    labels = ", ".join(f'"{label}"' for label in LABELS)
    write_text(folder / "recipe.toml", f'verb = "{verb}"\nencoders = [{labels}]\nlabels = [{labels}]\n')
    for name, held in artifacts.items():
        write_json(folder / "artifacts" / f"{name}.json", held)
    return folder


def every_measure(root: Path) -> Path:
    """A folder of runs, one a measure, with every kind of artifact."""
    both = ("both", "forward", "backward")
    hill = [(0.25, 0.9), (0.33, 0.93)]
    rise = lambda depth, rank: hill[rank][0] + hill[rank][1] * depth * (1.35 - depth)  # noqa: E731
    words_ = measured("word-retrieval", "accuracy", "contextual", rise, directions=both)
    write_run(root / "words", "measure words", words_)
    lexicon = [
        r
        for k, more in ((1, 0.0), (5, 0.15), (10, 0.2))
        for r in measured(
            "lexicon", f"p@{k}", "anchors", lambda d, i, m=more: rise(d, i) * 0.8 + m, directions=both
        )
    ]
    write_run(root / "lexicon", "measure lexicon", lexicon)
    sentences = measured(
        "sentence-retrieval",
        "accuracy",
        "mean",
        lambda d, i: 0.5 + 0.45 * d + 0.005 * i,
        directions=both,
        p=0.4,
    )
    write_run(root / "sentences", "measure sentences", sentences, sentences=[SENTENCES])
    cka = [
        r
        for variant, less in (("linear", 0.0), ("debiased", 0.04))
        for r in measured("cka", "cka", variant, lambda d, i, m=less: 0.4 + 0.5 * d - m, compared=False)
    ]
    heatmaps = [
        heatmap(pair, variant=variant, title=f"{label}: {pair[0]} and {pair[1]}, {variant}")
        for pair in PAIRS
        for label in LABELS
        for variant in ("linear", "debiased")
    ]
    write_run(root / "cka", "measure cka", cka, heatmaps=heatmaps)
    shapes = {
        "auc": lambda d, i: 0.8 + 0.1 * d + 0.05 * i,
        "overlap": lambda d, i: 0.5 - 0.2 * d - 0.1 * i,
        "d-prime": lambda d, i: 1.2 + d + 0.5 * i,
        "top-10 share": lambda d, i: 0.3 - 0.1 * i,
        "top-100 share": lambda d, i: 0.6 - 0.1 * i,
    }
    distances = [
        r
        for variant in ("l2", "cosine")
        for name, at in shapes.items()
        for r in measured("distances", name, variant, at)
    ]
    distances += measured("distances", "anisotropy", "cosine", lambda d, i: 0.3 + 0.4 * d - 0.2 * i)
    histograms = [histogram(pair, layer) for pair in PAIRS for layer in (8, 12)]
    write_run(root / "distances", "measure distances", distances, histograms=histograms)
    projections = [
        projection(label, pair, apart=apart)
        for pair in PAIRS
        for label, apart in zip(LABELS, (9.0, 0.4), strict=True)
    ]
    write_run(root / "projection", "measure projection", [], projections=projections)
    correlation = [
        Result(
            "correlation",
            name,
            value,
            ("en", "de"),
            LABELS[0],
            count=13,
            low=value - 0.1,
            high=value + 0.05,
            p=0.001,
        )
        for name, value in (("pearson", 0.93), ("spearman", 0.9))
    ]
    write_run(root / "correlation", "measure correlation", correlation, scatters=[scatter()])
    return root


# ------------------------------------------------------------------------------------------- transfer

VARIES = "the head's first weights, the order of batches, dropout"
CODES = "afarbgbndeeleseteufafifrhehihuiditjajvkakkkomlmrmsmynlptruswtatethtltrurviyozhzu"
FORTY = tuple(CODES[place : place + 2] for place in range(0, len(CODES), 2))


def portion(language: str, items: int = 1000, **dropped: int) -> dict[str, Any]:
    """A labelled file as a run of transfer describes it."""
    told = {"language": language, "file": f"panx.{language}.tsv", "items": items, "fingerprint": "0" * 64}
    return {**told, "dropped": {why.replace("_", " "): many for why, many in dropped.items()}}


def transfer_run(
    folder: Path,
    scores_: Mapping[str, Sequence[float]],
    *,
    task: str = "ner",
    metrics: Sequence[str] = ("f1", "token-f1", "accuracy"),
    label: str = "mBERT",
    note: str = "",
    dev: Sequence[str] = ("en",),
    **data: Any,
) -> Path:
    """A run of `calque transfer`: the first metric of every language, seed by seed; others are higher."""
    made = [
        Result(
            f"transfer-{task}", metric, min(value + 0.02 * higher, 1.0), ("en", language), label,
            variant="finetune", count=1000, seed=seed, note=note,
            signature=f"task:transfer-{task}|seed:{seed}",
        )
        for language, values in scores_.items()
        for seed, value in enumerate(values)
        for higher, metric in enumerate(metrics)
    ]  # fmt: skip
    make_run(folder, made, examples=None, verb="transfer")
    seeds = range(max(map(len, scores_.values()), default=0))
    write_text(folder / "recipe.toml", f'verb = "transfer"\ntask = "{task}"\nseeds = {list(seeds)}\n')
    (folder / "artifacts" / "counts.json").unlink()
    about = {
        "task": task,
        "label": label,
        "regime": "finetune",
        "seeds": list(seeds),
        "a seed varies": VARIES,
        "selected on": "dev data in the training language",
        "labels": ["B-PER", "I-PER", "O"],
        "train": [portion("en", 20000, no_label=12)],
        "dev": [portion(code) for code in dev],
        "test": [portion(code) for code in scores_],
    }
    write_json(folder / "artifacts" / "data.json", about | data)
    best = {f"seed-{seed}": {"seed": seed, "best": 0.8 + 0.01 * seed, "steps": 3130} for seed in seeds}
    write_json(folder / "artifacts" / "training.json", best)
    return folder


def contrast(
    language: str,
    method: str,
    gain: float,
    *,
    task: str = "ner",
    metric: str = "f1",
    before: float = 0.6,
    error: float = 0.005,
    std: float = 0.008,
    **changed: Any,
) -> dict[str, Any]:
    """A record of a comparison: a gain whose standard error is known."""
    return {
        "task": task,
        "language": language,
        "method": method,
        "metric": metric,
        "baseline mean": before,
        "baseline std": std,
        "method mean": before + gain,
        "method std": std,
        "seeds": [5, 5],
        "items": 1000,
        "difference": gain,
        "low": gain - 1.96 * error,
        "high": gain + 1.96 * error,
        "p": erfc(abs(gain) / error / sqrt(2)),
        "mark": "better" if gain > std else "worse" if gain < -std else "",
        "detectable": 2.8 * error,
        "given": "",
        "line": f"{task}: {100 * gain:+.1f} points",
        **changed,
    }


def judged(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records with p corrected for all of them, and what was found; those with one seed find nothing."""
    made = []
    for one, p in zip(records, holm([one["p"] for one in records]), strict=True):
        word = "helped" if one["difference"] > 0 else "hurt"
        word = word if p < 0.05 else "no evidence either way"
        made.append({"holm": p, "finding": "cannot tell" if 1 in one["seeds"] else word} | one)
    return made


def comparison(
    gains: Mapping[str, Mapping[str, Mapping[str, float]]], *, baseline: str = "mBERT", **changed: Any
) -> dict[str, Any]:
    """A comparison: the gain of every task, method and language. Means are less uncertain than languages."""
    metrics = {"parsing": "las", "nli": "accuracy", "pos": "accuracy"}
    single, means = [], []
    for task, methods in gains.items():
        about: dict[str, Any] = {"task": task, "metric": metrics.get(task, "f1")}
        for method, held in methods.items():
            places = {code: 0.45 + 0.04 * (place % 9) for place, code in enumerate(held)}
            single += [
                contrast(code, method, gain, before=places[code], **about) for code, gain in held.items()
            ]
            whole = {"before": sum(places.values()) / len(held), "error": 0.004, "items": 1000 * len(held)}
            means.append(contrast("mean", method, sum(held.values()) / len(held), **whole, **about))
    return {
        "baseline": baseline,
        "test": "seeds-and-items",
        "a seed varies": VARIES,
        "rows": judged(single),
        "tasks": judged(means),
        "overall": "; ".join(dict.fromkeys(f"{one['method']}: told" for one in means)),
        "notes": [],
        **changed,
    }


def comparison_run(folder: Path, held: Mapping[str, Any]) -> Path:
    """A run of `calque compare`, with its results beside the comparison as it writes them."""
    made = []
    for row in held["rows"]:
        about = Result(f"transfer-{row['task']}", row["metric"], 0.0, ("", row["language"]), held["baseline"])
        made += [
            replace(about, value=row["baseline mean"]),
            replace(about, value=row["method mean"], encoder=row["method"]),
            replace(
                about, value=row["difference"], encoder=row["method"], baseline=held["baseline"], p=row["p"]
            ),
        ]
    make_run(folder, list(dict.fromkeys(made)), examples=None, verb="compare")
    write_text(folder / "recipe.toml", 'verb = "compare"\nruns = ["base", "aligned"]\nlevel = 0.05\n')
    (folder / "artifacts" / "counts.json").unlink()
    write_json(folder / "artifacts" / "comparison.json", held)
    return folder


def many_gains(
    languages: Sequence[str],
    methods: Mapping[str, float],
    tasks: Sequence[str] = ("ner",),
    spread: float = 0.015,
) -> dict[str, dict[str, dict[str, float]]]:
    """Gains drawn around one a method, for `comparison`."""
    rng = np.random.default_rng(7)
    return {
        task: {
            method: {code: round(float(rng.normal(gain, spread)), 4) for code in languages}
            for method, gain in methods.items()
        }
        for task in tasks
    }
