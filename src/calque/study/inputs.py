"""The files and folders that a study names, as they stand in the settings of cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from calque.encoders.bundled import BUNDLED
from calque.encoders.hub import may_be_on_hub
from calque.encoders.specs import VECTORS, is_by_language
from calque.errors import CalqueError
from calque.pipeline.inputs import ON_HUB, is_there, split_files
from calque.presets import Verb, load_preset
from calque.recipe import Recipe, suggestion
from calque.study.cells import each_text, file_reference, is_reference, with_paths
from calque.study.recipe import LoadedStudy

#: Verbs that have presets.
_WITH_PRESETS: Mapping[str, Verb] = {"align": "align", "transfer": "transfer", "pretrain": "pretrain"}
#: Settings that name a preset.
PRESETS = ("preset", "continual_preset")


@dataclass
class Inputs:
    """Looks up what is named; `world` gives the folder that `world:…` lies in, for the part that asked.

    What is not there is one of the `mistakes`, or, in the data folder, `missing`: it may come later.
    """

    study: LoadedStudy
    world: Callable[[str], str]
    mistakes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def file(self, given: object, where: str) -> str:
        """A path of the recipe as it stands in settings."""
        name = str(given)
        if name.startswith("hf:") or is_reference(name) or self._escapes(name, where):
            return name
        if name.startswith("world:"):
            return f"{self.world(where)}/{name.removeprefix('world:')}"
        path = self._path(name)
        if self.has(name):
            return file_reference(path.resolve())
        if name.startswith("data:"):
            self.missing.append(name.removeprefix("data:"))
        else:
            self.mistakes.append(f"{where}: no such file: {name}")
        return name

    def has(self, name: str) -> bool:
        """Whether there is a file or folder of this name."""
        return bool(name) and is_there(self._path(name))

    def place(self, name: str, where: str) -> str:
        """A folder or file where there is one of this name, for each language or for all; otherwise what may
        be on a hub."""
        if name.startswith(("world:", "data:")) or is_reference(name) or self.has(name):
            return self.file(name, where)
        if is_by_language(name):
            return ",".join(self._of_language(part, where) for part in name.split(","))
        if name not in BUNDLED and get_close_matches(name, BUNDLED, 1, 0.9):
            self.mistakes.append(f"{where}: unknown encoder {name}; {suggestion(name, BUNDLED)}")
        elif not self._may_be_on_hub(name):
            told = "no such folder (names on a hub are MODEL or OWNER/MODEL)"
            self.mistakes.append(f"{where}: {name}: {told}")
        return name

    def _of_language(self, part: str, where: str) -> str:
        """Vectors or an encoder of one language: `en=wiki.en.vec`."""
        code, told, name = part.partition("=")
        look = self.file if Path(name).suffix in VECTORS else self.place
        return f"{code}={look(name.strip(), where)}" if told else self.place(part.strip(), where)

    def _may_be_on_hub(self, name: str) -> bool:
        """Whether this can be no path: OWNER is no folder here, and none beside the recipe."""
        owner = name.rpartition("/")[0]
        try:
            return may_be_on_hub(name) and not (owner and self.has(owner))
        except OSError:  # longer than any name
            return False

    def preset(self, name: str, where: str) -> str:
        """A preset's file; one that comes with calque has a name only."""
        return self.file(name, where) if name.endswith(".toml") else name

    def spec(self, text: str, where: str) -> str:
        """A file; or files of languages: `en=FILE`, `en,de=FILE`, `en=FILE,de=FILE`."""
        if is_reference(text) or self.has(text):
            return self.file(text, where)
        parts = split_files(text)
        return ",".join(before + ("" if path is None else self.file(path, where)) for before, path in parts)

    def located(self, kind: type[Recipe], settings: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Settings of a verb with all files in them looked up: its recipe says which settings are files."""
        looks: dict[str, Callable[..., str]] = dict.fromkeys(kind.places, self.spec)
        looks |= dict.fromkeys(ON_HUB, self.place) | dict.fromkeys(PRESETS, self.preset)
        given = self._of_preset(kind, settings, where)
        settings = {name: value for name, value in given.items() if name in looks} | dict(settings)
        return {
            name: each_text(value, partial(looks[name], where=f"{where}.{name}")) if name in looks else value
            for name, value in settings.items()
        }

    def _of_preset(self, kind: type[Recipe], settings: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """The settings of a preset of one's own: files that it names are inputs like any other."""
        if kind.verb not in _WITH_PRESETS:
            return {}
        path = Path(with_paths(self.preset(str(settings.get("preset", "")), f"{where}.preset")))
        if path.suffix != ".toml" or not is_there(path):
            return {}
        try:
            return load_preset(path, _WITH_PRESETS[kind.verb]).settings
        except CalqueError:
            return {}  # the verb says what is wrong with it

    def _path(self, name: str) -> Path:
        """Where a file lies: beside the recipe, or in the data folder."""
        folder = self.study.recipe.data if name.startswith("data:") else "."
        return self.study.base / Path(folder, name.removeprefix("data:")).expanduser()

    def _escapes(self, name: str, where: str) -> bool:
        """Whether a name leads out of the folder that it names."""
        begin, told, path = name.partition(":")
        inside = begin in ("data", "world") and bool(told)
        out = inside and (Path(path).is_absolute() or ".." in Path(path).parts or path.startswith("~"))
        if out:
            self.mistakes.append(f"{where}: {name} leads out of its folder; give the file's own path")
        return out
