"""Study folders made by hand, as `calque study` leaves them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from calque.files import write_json, write_text
from calque.stats.significance import holm
from calque.store import load_results, save_items, save_results
from calque.types import Items, Result
from run_folders import EXAMPLES, contrast, heatmap, histogram, make_run, portion, projection, sense

FAR = {"de": 0.1, "fr": 0.15, "ru": 0.4, "hi": 0.7, "zh": 0.8, "ar": 0.75, "th": 0.7, "ja": 1.0}
METRICS = {"ner": "f1", "nli": "accuracy", "pos": "accuracy", "parsing": "las", "slots": "f1", "qa": "f1"}
#: Measures by the results they leave.
TOLD = {
    "words": ("word-retrieval", "accuracy", "contextual"),
    "sentences": ("sentence-retrieval", "accuracy", "mean"),
    "cka": ("cka", "cka", "linear"),
    "distances": ("distances", "auc", "l2"),
}
VARIES = "the alignment where it is trained, the head's first weights, the order of batches, dropout"
ERROR, LONG = "RuntimeError: out of memory", "cells/" + "a-name-that-is-long-" * 12
RECIPE = 'about = "Does it help?"\nseeds = [0, 1]\n\n[encoders]\ne5 = "e5-small-q4"\n'


@dataclass
class StudyMaker:
    """A study with a planted gain for every method, which grows with the distance of a language.

    `gains` are of transfer, in points; word retrieval gains four times as much. `broken` are cells that
    failed, by verb and label; what rests on them is left out. `kinds` are what tasks of other names are.
    Unless languages are measured `together`, each has cells of its own. `able` are the languages that labels
    were tested in on tasks, where these are not all; `learned` those of a task's labels, where not English.
    """

    folder: Path
    encoders: Sequence[str] = ("e5",)
    gains: Mapping[str, float] = field(default_factory=lambda: {"centring": 0.0, "weak": 3.0})
    tasks: Mapping[str, bool | None] = field(default_factory=lambda: {"ner": False, "nli": True})
    languages: Sequence[str] = ("de", "ru", "hi", "zh")
    seeds: Sequence[int] = (0, 1, 2)
    measures: Sequence[str] = ("words", "sentences")
    broken: Sequence[tuple[str, str]] = ()
    layers: Sequence[int] = tuple(range(0, 13, 2))
    finished: bool = True
    about: str = "Does alignment help where labels are in English?"
    paper: str | None = None
    drawn: bool = True
    together: bool = True
    kinds: Mapping[str, str] = field(default_factory=dict)
    able: Mapping[str, Sequence[str]] = field(default_factory=dict)
    learned: Mapping[str, str] = field(default_factory=dict)
    cells: list[dict[str, Any]] = field(default_factory=list)

    def label(self, encoder: str, method: str) -> str:
        return method if len(self.encoders) == 1 else f"{encoder} {method}"

    def labels(self, encoder: str) -> list[str]:
        return [encoder, *(self.label(encoder, method) for method in self.gains)]

    @property
    def groups(self) -> list[dict[str, Any]]:
        if not self.gains:
            first, *others = self.encoders
            return [{"encoder": first, "baseline": first, "methods": others}]
        return [
            {"encoder": name, "baseline": name, "methods": self.labels(name)[1:]} for name in self.encoders
        ]

    def build(self) -> Path:
        """Write all of it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._cell("link", "links", {"language": self.languages[0]}, "", seconds=40.0)
        for group in self.groups:
            for label in group["methods"] if self.gains else ():
                for seed in self.seeds:
                    axes = {"encoder": group["encoder"], "method": label, "seed": str(seed)}
                    cost = {"seconds": 30.0 + 20 * len(label) + seed, "peak_memory_mb": 900 + 10 * seed}
                    self._cell("align", f"{label}, seed {seed}", axes, label, **cost)
            for measure in self.measures:
                for seed in self.seeds:
                    for codes in [self.languages] if self.together else [[code] for code in self.languages]:
                        self._measure(group, measure, seed, codes)
            self._transfers(group)
        self._write()
        return self.folder

    # ------------------------------------------------------------------------------------ cells

    def _cell(self, verb: str, title: str, axes: dict[str, str], label: str, **more: Any) -> Path | None:
        """The folder of a cell, which is written; None where it failed or rests on what failed."""
        key = f"{verb.replace(' ', '-')}-{len(self.cells):03}"
        known = {"key": key, "verb": verb, "title": title, "axes": axes, "needs": more.pop("needs", [])}
        if (verb, label) in self.broken:
            self.cells.append({**known, "status": "failed", "error": f"{ERROR} ({self.folder}/{LONG})"})
            return None
        if verb == "transfer" and ("align", label) in self.broken:
            self.cells.append({**known, "status": "left out", "error": f"needs {label}, which failed"})
            return None
        self.cells.append({**known, "status": "done", "seconds": 12.0, "peak_memory_mb": 700, **more})
        return self.folder / "cells" / key

    def alive(self, label: str, verb: str) -> bool:
        return ("align", label) not in self.broken and (verb, label) not in self.broken

    def gain(self, label: str, language: str, task: str) -> float:
        """The planted gain of a label in a language, as a share; encoders without methods gain by place."""
        far = FAR.get(language, 0.5)
        if not self.gains:
            return 0.02 * list(self.encoders).index(label) * far
        own = next((gain for method, gain in self.gains.items() if label.endswith(method)), 0.0)
        return own / 100 * (0.5 + far) * (0.3 if self.tasks.get(task) else 1.0)

    # ------------------------------------------------------------------------------------ transfer

    def _transfers(self, group: Mapping[str, Any]) -> None:
        runs: dict[tuple[str, str], list[str]] = {}
        scores: dict[tuple[str, str, str], list[float]] = {}
        for task in self.tasks:
            for label in (group["baseline"], *group["methods"]):
                for seed in self.seeds:
                    axes = {"encoder": group["encoder"], "method": label, "task": task, "seed": str(seed)}
                    title = f"{task}: {label}, seed {seed}"
                    cost = {"seconds": 100.0 + 7 * len(task) + seed, "peak_memory_mb": 1500}
                    folder = self._cell("transfer", title, axes, label, **cost)
                    if folder is not None:
                        runs.setdefault((task, label), []).append(folder.name)
                        for language, value in self._transfer(folder, task, label, seed).items():
                            scores.setdefault((task, label, language), []).append(value)
        if len({label for _, label in runs}) > 1:
            told = [name for name in self.tasks if name not in self.kinds]
            for names in (told, [name for name in self.tasks if name in self.kinds]):
                needs = [key for (task, _), own in runs.items() if task in names for key in own]
                if needs:
                    self._compare(group, names, scores, needs)

    def score(self, task: str, label: str, language: str, seed: int) -> float:
        """A planted score: languages lie apart, seeds jitter."""
        place = [*METRICS].index(task) if task in METRICS else 7
        base = 0.72 - 0.25 * FAR.get(language, 0.0) - 0.02 * place
        luck = np.random.default_rng([place, len(label), seed, len(language) + ord(language[0])])
        return round(base + self.gain(label, language, task) + 0.004 * luck.standard_normal(), 6)

    def _transfer(self, folder: Path, task: str, label: str, seed: int) -> dict[str, float]:
        tested = ("en", *self.able.get(label, self.languages))
        told = {code: self.score(task, label, code, seed) for code in tested}
        kind, source = self.kinds.get(task, task), self.learned.get(task, "en")
        metric = METRICS.get(kind, "accuracy")
        made = [
            Result(
                f"transfer-{kind}", metric, value, (source, code), label, variant="finetune", count=1000,
                seed=seed, signature=f"task:transfer-{kind}|seed:{seed}",
            )
            for code, value in told.items()
        ]  # fmt: skip
        make_run(folder, made, examples=None, verb="transfer")
        (folder / "artifacts" / "counts.json").unlink()
        about = {
            "task": kind, "label": label, "regime": "finetune", "a seed varies": VARIES,
            "selected on": "dev data in the training language", "train": [portion(source, 20000)],
            "dev": [portion(source)], "test": [portion(code) for code in told],
        }  # fmt: skip
        write_json(folder / "artifacts" / "data.json", about)
        return told

    def _compare(
        self,
        group: Mapping[str, Any],
        names: Sequence[str],
        scores: Mapping[Any, list[float]],
        needs: list[str],
    ) -> None:
        axes = {"encoder": group["encoder"]}
        folder = self._cell("compare", group["encoder"], axes, group["encoder"], needs=needs)
        if folder is None:
            return
        rows, means = [], []
        for task in names:
            kind = self.kinds.get(task, task)
            told = {label: self.able.get(label, self.languages) for label in group["methods"]}
            wanted = [code for code in ("en", *self.languages) if code != self.learned.get(task, "en")]
            shared = [code for code in wanted if all(code in ("en", *own) for own in told.values())]
            for label in group["methods"]:
                codes = [code for code in ("en", *self.languages) if (task, label, code) in scores]
                pairs = {
                    code: (scores[task, group["baseline"], code], scores[task, label, code]) for code in codes
                }
                rows += [_record(kind, code, label, *pair) for code, pair in pairs.items()]
                over = [code for code in pairs if code in shared]
                foreign = [pairs[code] for code in over]
                if foreign:
                    arms = [list(zip(*arm, strict=True)) for arm in zip(*foreign, strict=True)]
                    both = [[fmean(seed) for seed in arm] for arm in arms]
                    mean = _record(kind, "mean", label, *both, languages=len(foreign))
                    means.append({**mean, "languages": over})
        held = {
            "baseline": group["baseline"], "test": "seeds-and-items", "a seed varies": VARIES,
            "rows": _judged(rows), "tasks": _judged(means), "overall": "told", "notes": [],
            "trained": {self.kinds.get(task, task): [self.learned.get(task, "en")] for task in names},
        }  # fmt: skip
        make_run(folder, [], examples=None, verb="compare")
        write_text(folder / "recipe.toml", 'verb = "compare"\nlevel = 0.05\n')
        write_json(folder / "artifacts" / "comparison.json", held)

    # ------------------------------------------------------------------------------------ measures

    def _measure(self, group: Mapping[str, Any], measure: str, seed: int, codes: Sequence[str]) -> None:
        axes = {"encoder": group["encoder"], "measure": measure, "seed": str(seed)}
        title = f"{measure} {' '.join(codes)}, {group['encoder']}, seed {seed}"
        folder = self._cell(f"measure {measure}", title, axes, measure)
        if folder is None:
            return
        labels = [name for name in (group["baseline"], *group["methods"]) if self.alive(name, "align")]
        results = self._measured(folder, measure, labels, seed, codes)
        make_run(folder, results, examples=None, verb=f"measure {measure}")
        quoted = ", ".join(f'"{label}"' for label in labels)
        write_text(folder / "recipe.toml", f'verb = "measure {measure}"\nlabels = [{quoted}]\n')
        if self.drawn:
            self._pictures(folder, measure, labels)

    def retrieval(self, measure: str, label: str, language: str, layer: int, seed: int) -> float:
        """A planted accuracy: best at layer 8, gains four times those of transfer."""
        depth = layer / 12
        base = 0.2 + 1.3 * depth - 0.98 * depth**2 - 0.15 * FAR.get(language, 0.5)
        gain = 4 * self.gain(label, language, "words") * (1.0 if measure == "words" else 0.5)
        return round(base + gain * depth + 0.001 * (seed + 1) * (len(label) % 3), 6)

    def _measured(
        self, folder: Path, measure: str, labels: Sequence[str], seed: int, codes: Sequence[str]
    ) -> list[Result]:
        made: list[Result] = []
        if measure not in TOLD:
            return made
        task, metric, variant = TOLD[measure]
        for code in codes:
            for label in labels:
                for layer in self.layers:
                    value = self.retrieval(measure, label, code, layer, seed)
                    items = measure == "words"
                    one = Result(
                        task, metric, value, ("en", code), label, layer, variant, "both", count=2000,
                        low=value - 0.02, high=value + 0.02, seed=seed,
                        items=self._items(folder, value) if items else None,
                    )  # fmt: skip
                    made.append(one)
                    if label != labels[0]:
                        change = value - self.retrieval(measure, labels[0], code, layer, seed)
                        ends = {"low": change - 0.02, "high": change + 0.02, "items": None}
                        p = 0.0002 if abs(change) > 0.02 else 0.4
                        made.append(
                            replace(one, value=change, p=p, baseline=labels[0], note="permutation", **ends)
                        )
        return made

    def _items(self, folder: Path, value: float) -> str:
        """Items whose mean is the value, as near as 500 hits and misses allow, and exactly by one of them."""
        hits = np.zeros(500)
        hits[: int(value * 500)] = 1.0
        hits[-1] += value * 500 - hits.sum()
        return save_items(
            folder / "items", Items({"item": np.arange(500)}, np.arange(500) // 4, {"both": hits})
        )

    def _pictures(self, folder: Path, measure: str, labels: Sequence[str]) -> None:
        artifacts = folder / "artifacts"
        if measure == "words":
            retrieved = {label: EXAMPLES[0]["retrieved"]["base"] for label in labels}
            held = [{**one, "languages": ["en", "ru"], "retrieved": retrieved} for one in EXAMPLES]
            write_json(artifacts / "examples.json", held)
            found = [
                ("We sat on the bank .", "Ufer", "Wir saßen am Ufer .", dict.fromkeys(labels, "Ufer")),
                ("The bank is closed .", "Bank", "Die Bank ist zu .", dict.fromkeys(labels, "Ufer")),
            ]
            write_json(artifacts / "senses.json", [sense("bank", "de", found)])
        if measure == "distances":
            one = histogram()
            series = [
                {**own, "encoder": label}
                for label, own in zip([name for name in labels[:2] for _ in "ab"], one["series"], strict=True)
            ]
            write_json(artifacts / "histograms.json", [{**one, "series": series}])
        if measure == "projection":
            held = [projection(label, apart=9.0 / (place + 1)) for place, label in enumerate(labels)]
            write_json(artifacts / "projections.json", held)
        if measure == "cka":
            write_json(artifacts / "heatmaps.json", [heatmap(("en", code)) for code in self.languages])

    # ------------------------------------------------------------------------------------ the study

    def _write(self) -> None:
        done = [one for one in self.cells if one["status"] == "done"]
        folders = [self.folder / "cells" / one["key"] / "results.jsonl" for one in done]
        results = [r for path in folders if path.is_file() for r in load_results(path)]
        save_results(self.folder / "results.jsonl", results)
        told = {
            self.label(encoder, method): {"encoder": encoder, "method": method, "axes": {}}
            for encoder in self.encoders
            for method in self.gains
        }
        write_json(
            self.folder / "study.json",
            {
                "about": self.about,
                "paper": self.paper,
                "source": "en",
                "seeds": list(self.seeds),
                "groups": self.groups,
                "methods": told,
                "tasks": {name: {"translated": known} for name, known in self.tasks.items()},
                "cells": self.cells,
            },
        )
        write_text(self.folder / "recipe.toml", RECIPE)
        versions = {"calque": "0.1.0", "python": "3.11.9", "packages": {"numpy": "2.4.0", "torch": "2.9.0"}}
        write_json(self.folder / "environment.json", versions)
        costs = {one["key"]: {"seconds": one.get("seconds", 0.0)} for one in done}
        total = sum(one["seconds"] for one in costs.values())
        write_json(self.folder / "cost.json", {"seconds": {"total": total}, "cells": costs})
        if self.finished:
            write_json(self.folder / "finished.json", {"recipe": "0" * 64, "verb": "study"})


def study(folder: Path, **changed: Any) -> Path:
    """A study folder with these settings of `StudyMaker`."""
    return StudyMaker(folder, **changed).build()


def _record(
    task: str, code: str, label: str, before: Sequence[float], after: Sequence[float], languages: int = 1
) -> dict[str, Any]:
    """A record of a comparison, with the spread of these seeds."""
    spreads = [stdev(arm) if len(arm) > 1 else None for arm in (before, after)]
    gain, error = fmean(after) - fmean(before), 0.006 / languages**0.5
    mark = ""
    if spreads[0] is not None and abs(gain) > spreads[0]:
        mark = "better" if gain > 0 else "worse"
    about = {"task": task, "metric": METRICS.get(task, "accuracy"), "before": fmean(before)}
    known = {"baseline std": spreads[0], "method std": spreads[1], "mark": mark}
    single = len(before) < 2 or len(after) < 2
    lost = {"low": None, "high": None, "p": 1.0, "detectable": None, "given": "this seed"} if single else {}
    counts = {"seeds": [len(before), len(after)], "items": 1000 * languages}
    return contrast(code, label, gain, error=error, **about, **known, **counts, **lost)


def _judged(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    made = []
    for one, p in zip(records, holm([one["p"] for one in records]), strict=True):
        word = ("helped" if one["difference"] > 0 else "hurt") if p < 0.05 else "no evidence either way"
        made.append({**one, "holm": p, "finding": "cannot tell" if 1 in one["seeds"] else word})
    return made
