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

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from calque.documents import decoded, parse_toml, read_text
from calque.errors import BadInput, BadSetting
from calque.files import read_json
from calque.recipe import mistakes, odd_values, suggestion

#: What a study is, in its folder: groups, cells, and where its recipe came from; and the recipe.
STUDY, RECIPE = "study.json", "recipe.toml"
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
    its own axes, `transfer` settings of tasks that belong to it, and `against` a method that it is compared
    with beside the baseline.
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
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**31)], ...] = Field((0,), min_length=1)
    world: dict[str, Any] | None = None
    encoders: dict[str, str | dict[str, Any]] = Field(min_length=1)
    links: LinksPart = LinksPart()
    scored: LinksPart | None = None
    align: AlignPart = AlignPart()
    measure: dict[str, dict[str, Any]] = {}
    transfer: TransferPart = TransferPart()
    compare: dict[str, Any] = {}

    @property
    def linked(self) -> dict[str, LinksPart]:
        """The parts that name linked text."""
        return {"links": self.links} if self.scored is None else {"links": self.links, "scored": self.scored}

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
    held = parse_toml(text, origin)
    for change in changes:
        _apply(held, change)
    return LoadedStudy(recipe=built(held, origin), name=name, origin=origin, base=base)


def recipe_text(given: str | Path, changes: Sequence[str] = ()) -> str:
    """The recipe as it is written, comments and all; with changes, as it is read."""
    return load_study(given, changes).recipe.to_toml() if changes else _text(given)[3]


def _text(given: str | Path) -> tuple[str, str, Path, str]:
    path = Path(given)
    if path.is_file():
        return path.stem, str(path), _base(path.resolve()), read_text(path)
    if str(given) in study_names():
        file = resources.files("calque") / "recipes" / "study" / f"{given}.toml"
        return str(given), str(given), Path.cwd(), decoded(file.read_bytes(), str(given))
    if path.is_dir():
        own = (path / RECIPE).is_file()
        raise BadInput("is a folder", where=path, remedy=f"give {path / RECIPE}" if own else "give a recipe")
    if path.suffix or len(path.parts) > 1:
        raise BadInput("no such file", where=path)
    raise BadSetting(f"unknown study {str(given)!r}", remedy=suggestion(str(given), study_names()))


def _base(path: Path) -> Path:
    """Where relative paths of a recipe begin: beside it; those of a study's own, where it came from."""
    record = path.with_name(STUDY)
    own = path.name == RECIPE and record.is_file()
    told = read_json(record).get("base") if own else None
    return (path.parent / told).resolve() if isinstance(told, str) else path.parent


#: Mistakes that are told: more are no help.
_MOST = 100


class Mistakes(BadInput):
    """Everything that is wrong with a study, `found` a line each."""

    def __init__(self, found: Sequence[str], where: str) -> None:
        self.found = list(found)
        more = [f"and {len(found) - _MOST} more"] if len(found) > _MOST else []
        told = found[0] if len(found) == 1 else "\n  ".join([f"{len(found)} mistakes", *found[:_MOST], *more])
        super().__init__(told, where=where)


def built(held: Mapping[str, Any], origin: str) -> StudyRecipe:
    """The study of a TOML file, or every mistake in its shape, a line each."""
    if odd := list(odd_values(held)):
        raise Mistakes(odd, origin)
    try:
        recipe = StudyRecipe(**held)
    except ValidationError as error:
        raise Mistakes(mistakes(error, StudyRecipe), origin) from None
    if found := list(_misshapen(recipe)):
        raise Mistakes(found, origin)
    return recipe


class _Method(_Part):
    """What a study itself looks for in a method's own table."""

    method: str | None = None
    preset: str | None = None
    vary: dict[str, list[Any]] = {}
    to: tuple[str, ...] | None = None
    against: str | None = None
    transfer: dict[str, Any] = {}


class _Model(_Part):
    """What a study itself looks for in a model that is trained: text, and where its seed begins."""

    encoder: str | None = None
    seed: int = 0
    text: tuple[str, ...] = ()
    bitext: tuple[str, ...] = ()
    dictionary: tuple[str, ...] = ()


class _Measured(_Part):
    """What a study itself looks for in a measure."""

    measure: str | None = None
    text: dict[str, Paths] | None = None
    dictionary: dict[str, str | tuple[str, ...]] | None = None


class _Task(_Part):
    """What a study itself looks for in a task."""

    task: str | None = None
    translated: bool | None = None
    train: dict[str, str] = {}
    dev: dict[str, str] = {}
    test: dict[str, str] = {}
    mixed: tuple[str, ...] = ()


def _misshapen(recipe: StudyRecipe) -> Iterator[str]:
    """Settings of verbs that a study itself looks into, and that have another shape than it needs."""
    methods = {name: recipe.align.settings.get(name, {}) for name in recipe.align.methods}
    yield from _unlike(_Method, "align", methods)
    for name, spec in recipe.encoders.items():
        parts = spec if isinstance(spec, dict) else {}
        if parts and all(isinstance(one, dict) for one in parts.values()):
            yield from _unlike(_Model, f"encoders.{name}", parts)
        elif not isinstance(spec, str):
            yield from _unlike(_Model, "encoders", {name: spec})
    yield from _unlike(_Measured, "measure", recipe.measure)
    yield from _unlike(_Task, "transfer", recipe.transfer.tasks)


def _unlike(kind: type[_Part], where: str, tables: Mapping[str, Any]) -> Iterator[str]:
    for name, held in tables.items():
        try:
            kind.model_validate(held)
        except ValidationError as error:
            yield from (f"{where}.{name}.{one}" for one in mistakes(error, kind))


def _apply(held: dict[str, Any], change: str) -> None:
    """Set one value: `align.methods=centring,weak`, `seeds=[0, 1]`, `about=text`."""
    name, told, text = change.partition("=")
    if not told or not name.strip():
        raise BadSetting(f"--set {change}", remedy="a key and a value, such as --set align.steps=200")
    *tables, last = name.strip().split(".")
    if len(tables) > _MOST:
        raise BadSetting(f"--set {change}", remedy="a key of a few parts, such as align.steps")
    for table in tables:
        held = held.setdefault(table, {})
        if not isinstance(held, dict):
            raise BadSetting(f"--set {change}: {table} is no table")
    held[last] = _value(text.strip(), held.get(last), many=_may_be_list((*tables, last)))


def _value(text: str, before: Any, *, many: bool) -> Any:
    """What was typed, as TOML where it is; otherwise a word, or, if there may be `many`, a list where there
    are commas or was one."""
    listed = many and isinstance(before, list)
    try:
        found = parse_toml(f"value = {text}", "--set")["value"]
    except BadInput:
        split = listed or (many and "," in text)
        found = [_value(part.strip(), None, many=True) for part in text.split(",")] if split else text
    return [found] if listed and not isinstance(found, list) else found


#: Settings of verbs that name several layers in one text.
_TEXTS = ("layer", "layers")


def _may_be_list(path: Sequence[str]) -> bool:
    """Whether a setting may be a list; of one that only verbs know, all but layers may.

    >>> _may_be_list(["encoders", "v"]), _may_be_list(["measure", "words", "layers"]), _may_be_list(["seeds"])
    (False, False, True)
    >>> _may_be_list(["align", "vary", "layers"]), _may_be_list(["links", "filters"])
    (True, True)
    """
    kinds: list[Any] = [StudyRecipe]
    for name in path:
        kinds = [one for kind in kinds for one in _within(kind, name)]
    text = path[-1] in _TEXTS and "vary" not in path
    return not text and any(kind is Any or get_origin(kind) in (list, tuple) for kind in kinds)


def _within(kind: Any, name: str) -> tuple[Any, ...]:
    """What may stand under a name in a table of this kind: anything where only verbs know it."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(name)
        kind = field.annotation if field else Any
    elif get_origin(kind) is dict:
        kind = get_args(kind)[1]
    elif kind is not Any:
        return ()
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)
