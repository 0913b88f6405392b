"""Finished runs of `calque transfer`, read back, and put together where they are parts of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from calque.documents import parse_toml, read_text
from calque.errors import BadInput, BadSetting
from calque.files import finished, read_json
from calque.pipeline.transferring import DATA, NOTHING_VARIES
from calque.pipeline.transfersettings import made_by, reading_of, training_of
from calque.stats.seeds import Runs
from calque.store import load_items, load_results
from calque.types import Items, Result


@dataclass(frozen=True, eq=False)
class TransferFolder:
    """A finished run of `calque transfer`, read back; or several of one label and task, its `parts`."""

    folder: Path
    label: str
    data: Mapping[str, Any]
    results: Sequence[Result]
    parts: Sequence[TransferFolder] = ()

    @classmethod
    def read(cls, folder: Path) -> TransferFolder:
        marker = finished(folder)
        if marker is None or marker.get("verb") != "transfer":
            raise BadInput(
                "not a finished run of `calque transfer`",
                where=folder,
                remedy="give folders that it wrote; start an unfinished one again to finish it",
            )
        data = read_json(folder / "artifacts" / DATA)
        return cls(folder, str(data["label"]), data, load_results(folder / "results.jsonl"))

    @property
    def task(self) -> str:
        return str(self.data["task"])

    @property
    def tests(self) -> dict[str, str]:
        """Fingerprints of what was tested, by language."""
        return {one["language"]: one["fingerprint"] for one in self.data["test"]}

    @property
    def trained(self) -> frozenset[str]:
        """The languages that it learned in, here or before; none of a model that does not tell."""
        return frozenset((*(one["language"] for one in self.data["train"]), *self.data.get("learned", ())))

    @property
    def only_tests(self) -> bool:
        """Whether a model was tested as it is."""
        return self.data.get("a seed varies") == NOTHING_VARIES

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """What its recipe says."""
        path = self.folder / "recipe.toml"
        return parse_toml(read_text(path), path) if path.is_file() else {}

    @property
    def reading(self) -> dict[str, Any]:
        """How it read and scored items."""
        return reading_of(self.settings)

    @property
    def training(self) -> dict[str, Any]:
        """How it was trained, and on what."""
        return training_of(self.settings) | {"training data": self._data("train")}

    @property
    def chosen_by(self) -> dict[str, Any]:
        """What chose among epochs; parts of one may have dev data each."""
        return {} if self.parts else {"dev data": self._data("dev")}

    def _data(self, part: str) -> str:
        """Languages, numbers of items, and the beginnings of their fingerprints."""
        held = [(one["language"], one.get("fingerprint", "")[:8], one["items"]) for one in self.data[part]]
        return " ".join(f"{language}:{digest} ({items:,} items)" for language, digest, items in sorted(held))

    @property
    def encoder(self) -> dict[str, Any]:
        """How its encoder was made; runs of before do not tell, but the encoder may still lie there."""
        told = self.data.get("encoder") or made_by(str(self.settings.get("encoder", "")))
        return {f"encoder's {name}" if name != "encoder" else name: value for name, value in told.items()}

    @property
    def notes(self) -> list[str]:
        """What figures of this run must be read with."""
        told = [one.note for one in self.results]
        told += [note for part in self.parts or (self,) for note in part.data.get("notes", ())]
        return sorted({f"{self.label}: {note}" for note in told if note})

    @cached_property
    def _items(self) -> dict[tuple[str, int], tuple[Path, str]]:
        """Where item statistics of each language and seed lie."""
        return {
            (one.languages[1], one.seed): (part.folder / "items", one.items)
            for part in self.parts or (self,)
            for one in part.results
            if one.items
        }

    def runs(self, language: str) -> Runs:
        """Item statistics of every seed in one language."""
        seeds = sorted(seed for told, seed in self._items if told == language)
        held: list[Items] = [load_items(*self._items[language, seed]) for seed in seeds]
        columns = {name: np.stack([one.values[name] for one in held]) for name in held[0].values}
        return Runs(columns, held[0].cluster, tuple(seeds))


def differing(own: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """The names of what differs, with both values; empty where nothing does.

    >>> differing({"epochs": 3, "head": "crf", "steps": None}, {"epochs": 5, "head": "crf", "steps": 9})
    'epochs 3 against 5, steps none against 9'
    """
    names = [name for name in dict.fromkeys((*own, *theirs)) if own.get(name) != theirs.get(name)]
    return ", ".join(f"{name} {_told(own.get(name))} against {_told(theirs.get(name))}" for name in names)


def _told(value: Any) -> str:
    if value is None or value == "":
        return "none"
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def told_apart(held: Sequence[TransferFolder]) -> list[TransferFolder]:
    """Runs of one task by different names: their labels, or those of their folders where labels are alike."""
    names = [(one.task, one.label) for one in held]
    return [
        TransferFolder(one.folder, one.folder.resolve().name, one.data, one.results)
        if names.count((one.task, one.label)) > 1
        else one
        for one in held
    ]


def pooled(held: Sequence[TransferFolder]) -> list[TransferFolder]:
    """Runs of one label and task as one, which has the seeds and languages of them all."""
    found: dict[tuple[str, str], list[TransferFolder]] = {}
    for one in held:
        found.setdefault((one.task, one.label), []).append(one)
    return [parts[0] if len(parts) == 1 else _pooled(parts) for parts in found.values()]


def _pooled(parts: Sequence[TransferFolder]) -> TransferFolder:
    first = parts[0]
    tests: dict[str, Any] = {}
    done: dict[tuple[str, int], Path] = {}
    for part in parts:
        if part.trained != first.trained:
            raise BadInput(f"trained on other languages than {first.folder}", where=part.folder)
        _check_part(part, first)
        for one in part.data["test"]:
            known = tests.setdefault(one["language"], one)
            if known["fingerprint"] != one["fingerprint"]:
                raise BadInput(
                    f"tested on other items in {one['language']} than another run of {first.label}",
                    where=part.folder,
                    remedy="test all seeds on the same file with the same limits",
                )
        for language, seed in part._items:
            if (language, seed) in done:
                raise BadInput(
                    f"seed {seed} in {language} is also in {done[language, seed]}",
                    where=part.folder,
                    remedy="give each seed of a method once",
                )
            done[language, seed] = part.folder
    data = {**first.data, "test": list(tests.values()), "seeds": sorted({seed for _, seed in done})}
    results = [one for part in parts for one in part.results]
    return TransferFolder(first.folder, first.label, data, results, tuple(parts))


def _check_part(part: TransferFolder, first: TransferFolder) -> None:
    """Refuse to take for one method what was read, trained or aligned otherwise."""
    told = [differing(part.reading | part.training, first.reading | first.training)]
    if _fingerprint(part) != _fingerprint(first):
        told.append(differing(part.encoder, first.encoder))
    if any(told):
        raise BadSetting(
            f"not the same method as {first.folder}, though both are called {first.label}: "
            f"{', '.join(filter(None, told))}",
            where=part.folder,
            remedy="pool runs that differ in seeds and tests alone; give others a --label of their own",
        )


def _fingerprint(one: TransferFolder) -> str:
    return str(one.settings.get("inputs", {}).get("encoder", ""))
