"""What a study is made of, as a TOML file that a person can edit.

about = "Does alignment help e5 in German?"
seeds = [0, 1, 2]

[encoders]
e5 = "e5-small-q4"

[links]
test = 500
text.de = "news.en-de.tsv"

[align]
methods = ["centring", "weak"]
weak.steps = 200

[measure.words]
layers = "last"

[transfer.ner]
train.en = "panx.en.train.tsv"
test.de = "panx.de.dev.tsv"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from calque.errors import BadInput, BadSetting
from calque.recipe import mistakes, suggestion

#: What can be measured: the verbs `calque measure …`.
Measure = Literal["words", "sentences", "lexicon", "cka", "distances", "projection", "examples"]
MEASURES: tuple[str, ...] = get_args(Measure)

#: A file, or two that belong together line by line.
Paths = str | tuple[str, str]


class _Part(BaseModel):
    """A table of the file; what it does not name are settings of a verb, which are checked there."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the verb."""
        return dict(self.model_extra or {})


class LinksPart(_Part):
    """Word pairs by language: linked here, from `text` (and `links` made by hand), or folders of `pairs`."""

    text: dict[str, Paths] = {}
    links: dict[str, str] = {}
    pairs: dict[str, str] = {}

    @property
    def languages(self) -> list[str]:
        return list(dict.fromkeys([*self.text, *self.pairs]))


class AlignPart(_Part):
    """How encoders are aligned: a table of its own for each of `methods` that has settings of its own.

    `together` aligns one encoder to all languages at once; otherwise there is one for each. Every list of
    `vary` is an axis of the matrix; `size` are sentence pairs to learn from. `dictionary` are files by
    language, for the supervision of that name. Only `encoders` are aligned, where they are named; the others
    stand beside them. In a method's own table, `to` are the languages that it aligns to, if not all, `vary`
    its own axes, and `transfer` settings of tasks that belong to it.
    """

    methods: tuple[str, ...] = ()
    encoders: tuple[str, ...] = ()
    together: bool = True
    vary: dict[str, list[Any]] = {}
    dictionary: dict[str, str] = {}

    def own(self, method: str) -> dict[str, Any]:
        """The settings of one method alone."""
        return dict(self.settings.get(method) or {})

    @property
    def shared(self) -> dict[str, Any]:
        """The settings of all methods that know them."""
        return {name: value for name, value in self.settings.items() if not isinstance(value, dict)}

    @property
    def idle(self) -> list[str]:
        """Tables of methods that are not run."""
        own = [name for name, value in self.settings.items() if isinstance(value, dict)]
        return [name for name in own if name not in self.methods]


class TransferPart(_Part):
    """Tasks, each a table with its data; what stands beside them are settings of all."""

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        return {name: value for name, value in self.settings.items() if isinstance(value, dict)}

    @property
    def shared(self) -> dict[str, Any]:
        return {name: value for name, value in self.settings.items() if not isinstance(value, dict)}


class StudyRecipe(BaseModel):
    """A whole study.

    `encoders` are names and specs, or a table with the settings of `calque pretrain`, or of `calque extend`
    where it names an encoder; a table of such tables is an encoder for each language. `scored` are pairs that
    words are looked for in; without it, those of `links` that were kept for testing. With `world`, files may
    be named `world:…`: those that `calque world` with these settings writes; `data:…` are files of the folder
    `data`, which may come later. `paper` names whose published
    figures are shown beside one's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: str = ""
    paper: str | None = None
    source: str = "en"
    data: str = "data"
    seeds: tuple[int, ...] = Field((0,), min_length=1)
    world: dict[str, Any] | None = None
    encoders: dict[str, str | dict[str, Any]] = Field(min_length=1)
    links: LinksPart = LinksPart()
    scored: LinksPart | None = None
    align: AlignPart = AlignPart()
    measure: dict[str, dict[str, Any]] = {}
    transfer: TransferPart = TransferPart()
    compare: dict[str, Any] = {}

    def to_toml(self) -> str:
        return tomli_w.dumps(self.model_dump(mode="json", exclude_defaults=True))


# ------------------------------------------------------------------------------------------- files


def study_names() -> list[str]:
    """The studies that come with calque."""
    return sorted(file.name.removesuffix(".toml") for file in _presets() if file.name.endswith(".toml"))


def _presets() -> list[Any]:
    folder = resources.files("calque") / "recipes" / "study"
    return list(folder.iterdir()) if folder.is_dir() else []


class LoadedStudy(BaseModel):
    """A study, where it was read from, and the folder that its relative paths begin at."""

    model_config = ConfigDict(frozen=True)

    recipe: StudyRecipe
    name: str
    origin: str
    base: Path


def load_study(given: str | Path, changes: Sequence[str] = ()) -> LoadedStudy:
    """A study by the path of its file, or one of calque's by name, with `key=value` changes."""
    name, origin, base, text = _text(given)
    try:
        held = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"not TOML: {error}", where=origin) from None
    for change in changes:
        _apply(held, change)
    return LoadedStudy(recipe=built(held, origin), name=name, origin=origin, base=base)


def recipe_text(given: str | Path, changes: Sequence[str] = ()) -> str:
    """The recipe as it is written, comments and all; with changes, as it is read."""
    return load_study(given, changes).recipe.to_toml() if changes else _text(given)[3]


def _text(given: str | Path) -> tuple[str, str, Path, str]:
    path = Path(given)
    if path.is_file():
        try:
            return path.stem, str(path), path.resolve().parent, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise BadInput("not UTF-8", where=path) from None
    if str(given) in study_names():
        file = resources.files("calque") / "recipes" / "study" / f"{given}.toml"
        return str(given), str(given), Path.cwd(), file.read_text(encoding="utf-8")
    if path.suffix == ".toml" or len(path.parts) > 1:
        raise BadInput("is a folder, not a file" if path.is_dir() else "no such file", where=path)
    raise BadSetting(f"unknown study {str(given)!r}", remedy=suggestion(str(given), study_names()))


class Mistakes(BadInput):
    """Everything that is wrong with a study, `found` a line each."""

    def __init__(self, found: Sequence[str], where: str) -> None:
        self.found = list(found)
        told = found[0] if len(found) == 1 else "\n  ".join([f"{len(found)} mistakes", *found])
        super().__init__(told, where=where)


def built(held: Mapping[str, Any], origin: str) -> StudyRecipe:
    """The study of a TOML file, or every mistake in its shape, a line each."""
    try:
        return StudyRecipe(**held)
    except ValidationError as error:
        raise Mistakes(mistakes(error, StudyRecipe), origin) from None


def _apply(held: dict[str, Any], change: str) -> None:
    """Set one value: `align.methods=centring,weak`, `seeds=[0, 1]`, `about=text`."""
    name, told, text = change.partition("=")
    if not told or not name.strip():
        raise BadSetting(f"--set {change}", remedy="a key and a value, such as --set align.steps=200")
    *tables, last = name.strip().split(".")
    for table in tables:
        held = held.setdefault(table, {})
        if not isinstance(held, dict):
            raise BadSetting(f"--set {change}: {table} is no table")
    held[last] = _value(text.strip(), held.get(last))


def _value(text: str, before: Any) -> Any:
    """What was typed, as TOML where it is; otherwise a word, or a list where there are commas or was one."""
    try:
        found = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        listed = isinstance(before, list) or "," in text
        found = [_value(part.strip(), None) for part in text.split(",")] if listed else text
    return [found] if isinstance(before, list) and not isinstance(found, list) else found
