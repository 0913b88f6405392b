"""Papers by name: every hyper-parameter of an alignment by training, in a TOML file that a person can edit.

A name alone is the paper's form; `-program` is what its published program does where that differs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from calque.errors import BadInput, BadSetting
from calque.recipe import suggestion

_PARTS = ("about", "align", "link")


@dataclass(frozen=True)
class Preset:
    """Settings of `calque align`, and those of `calque link` that its links were made with."""

    name: str
    about: str
    align: Mapping[str, Any]
    link: Mapping[str, Any]


def preset_names() -> list[str]:
    """The presets there are."""
    return sorted(
        file.name.removesuffix(".toml") for file in _folder().iterdir() if file.name.endswith(".toml")
    )


def load_preset(name: str | Path) -> Preset:
    """A preset by name, or by the path of a TOML file of the same form."""
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise BadInput("no such file", where=path)
        return _read(path.stem, path, path)
    if str(name) not in preset_names():
        raise BadSetting(f"unknown preset {str(name)!r}", remedy=suggestion(str(name), preset_names()))
    return _read(str(name), _folder() / f"{name}.toml", str(name))


def _folder() -> Traversable:
    return resources.files("calque") / "recipes" / "align"


def _read(name: str, file: Traversable | Path, where: str | Path) -> Preset:
    try:
        held = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"not TOML: {error}", where=where) from None
    unknown = [key for key in held if key not in _PARTS]
    if unknown or "align" not in held:
        what = f"unknown part {unknown[0]!r}" if unknown else "no [align]"
        raise BadInput(what, where=where, remedy="a preset has about, [align] and [link]")
    return Preset(name, str(held.get("about", "")), held["align"], held.get("link", {}))
