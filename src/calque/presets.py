"""Papers by name: every hyper-parameter of a training, in a TOML file that a person can edit.

A name alone is the paper's form; `-program` is what its published program does where that differs. `base`
names a preset of the same verb whose settings stand where a file gives no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from calque.documents import decoded, parse_toml
from calque.errors import BadInput, BadSetting
from calque.recipe import suggestion

Verb = Literal["align", "transfer", "pretrain"]


@dataclass(frozen=True)
class Preset:
    """Settings of a verb, and those of `calque link` that links for it were made with."""

    name: str
    about: str
    settings: Mapping[str, Any]
    link: Mapping[str, Any]

    @property
    def align(self) -> Mapping[str, Any]:
        """The settings of `calque align`."""
        return self.settings


def preset_names(verb: Verb = "align") -> list[str]:
    """The presets there are."""
    return sorted(
        file.name.removesuffix(".toml") for file in _folder(verb).iterdir() if file.name.endswith(".toml")
    )


def load_preset(name: str | Path, verb: Verb = "align") -> Preset:
    """A preset by name, or by the path of a TOML file of the same form."""
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise BadInput("no such file", where=path)
        return _read(path.stem, path, path, verb)
    known = preset_names(verb)
    if str(name) not in known:
        raise BadSetting(f"unknown preset {str(name)!r}", remedy=suggestion(str(name), known))
    return _read(str(name), _folder(verb) / f"{name}.toml", str(name), verb)


def _folder(verb: Verb) -> Traversable:
    return resources.files("calque") / "recipes" / verb


def _read(name: str, file: Traversable | Path, where: str | Path, verb: Verb) -> Preset:
    held = parse_toml(decoded(file.read_bytes(), where), where)
    unknown = [key for key in held if key not in ("about", "base", verb, "link")]
    if unknown or verb not in held:
        what = f"unknown part {unknown[0]!r}" if unknown else f"no [{verb}]"
        raise BadInput(what, where=where, remedy=f"a preset has about, base, [{verb}] and [link]")
    tables = [part for part in (verb, "link") if not isinstance(held.get(part, {}), dict)]
    if tables:
        raise BadInput(f"{tables[0]!r} is not a table", where=where, remedy=f"settings below [{tables[0]}]")
    base = _base(held["base"], where, verb) if "base" in held else Preset("", "", {}, {})
    settings, link = {**base.settings, **held[verb]}, {**base.link, **held.get("link", {})}
    return Preset(name, str(held.get("about", "")), settings, link)


def _base(name: object, where: str | Path, verb: Verb) -> Preset:
    """The preset that another stands on: one that comes with calque, so that none stands on itself."""
    if name not in preset_names(verb):
        known = [one for one in preset_names(verb) if one != Path(where).stem]
        raise BadInput(f"unknown base {name!r}", where=where, remedy=suggestion(str(name), known))
    return load_preset(str(name), verb)
