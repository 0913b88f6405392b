"""Settings: everything needed to repeat a run, checked before anything is loaded, named by a digest."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from calque.documents import parse_toml, read_text
from calque.errors import BadInput, BadSetting
from calque.files import text_digest, write_text


class Choice(StrEnum):
    """An option with named members, each explained by the enum's docstring."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The member of this name, or an error that lists the members and the nearest one."""
        try:
            return cls(text)
        except ValueError:
            raise BadSetting(
                f"unknown {cls.__name__.lower()} {text!r}", remedy=suggestion(text, [m.value for m in cls])
            ) from None


class Device(Choice):
    """Where encoders run: auto (a GPU when there is one), cpu, cuda, mps."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


class Dtype(Choice):
    """Precision of encoders: float32 everywhere, float16 and bfloat16 on a GPU."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"


#: Names that are all told beside the likely one.
FEW = 20


def suggestion(word: str, known: Iterable[str]) -> str:
    """A remedy for a mistyped name; where there are many, those that are like it.

    >>> suggestion("eflomel", ["eflomal", "hmm"])
    'did you mean eflomal? known: eflomal, hmm'
    """
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(word, names, 3)
    if near and len(names) > FEW:
        return f"did you mean {' or '.join(near)}?"
    return (f"did you mean {near[0]}? " if near else "") + "known: " + ", ".join(names)


class Recipe(BaseModel):
    """Settings of one run. Two runs with the same digest give the same results.

    `inputs` holds the fingerprint of everything read, so that a changed file is another recipe; `places` are
    the settings that only say where those inputs lie, so that a moved file is not.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    verb: ClassVar[str] = ""
    places: ClassVar[frozenset[str]] = frozenset()

    inputs: dict[str, str] = {}
    seed: int = Field(0, ge=0, lt=2**31)

    def digest(self) -> str:
        """SHA-256 of the settings and of the fingerprints of the inputs."""
        held = self.model_dump(mode="json", exclude_none=True, exclude=set(self.places))
        return text_digest(self.verb, json.dumps(held, sort_keys=True))

    def to_toml(self) -> str:
        return tomli_w.dumps({"verb": self.verb, **self.model_dump(mode="json", exclude_none=True)})

    def save(self, path: Path) -> None:
        write_text(path, self.to_toml())

    @classmethod
    def build(cls, **settings: Any) -> Self:
        """Settings from keywords, or every mistake in them."""
        if odd := list(odd_values(settings)):
            raise BadSetting("; ".join(odd))
        try:
            return cls(**settings)
        except ValidationError as error:
            raise BadSetting("; ".join(mistakes(error, cls))) from None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote, or say every mistake in it."""
        held = parse_toml(read_text(path), path)
        if held.pop("verb", cls.verb) != cls.verb:
            raise BadInput(f"not a recipe of `calque {cls.verb}`", where=path)
        try:
            return cls.build(**held)
        except BadSetting as error:
            raise BadInput(error.what, where=path) from None


#: What Python has in place of bytes of a file's name that are not UTF-8.
_HALF = re.compile("[\ud800-\udfff]")
#: Settings that may be infinite: gradients that are never clipped.
ENDLESS = "clip"


def odd_values(value: Any, name: str = "") -> Iterator[str]:
    """What no setting can be: numbers that are not finite or exceed 64 bits, text that UTF-8 cannot hold."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from odd_values(one, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from odd_values(one, name)
    elif isinstance(value, float) and not isfinite(value) and not (value > 0 and name.endswith(ENDLESS)):
        yield f"{name}: should be a finite number (given: {value})"
    elif isinstance(value, int) and value.bit_length() > 63:
        yield f"{name}: a number of {value.bit_length()} bits, too large for any setting"
    elif isinstance(value, str | Path) and _HALF.search(str(value)):
        yield f"{name}: {value} is not UTF-8; rename it, as `convmv` does for many files"


def mistakes(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Every mistake that was found, each with what would be right."""
    told = error.errors()
    # A list of which an item is refused is then too short.
    wrong = {one["loc"][:-1] for one in told}
    own = [one for one in told if not (one["type"] == "too_short" and one["loc"] in wrong)]
    return [_mistake(dict(one), _known(model, one["loc"])) for one in own]


def _known(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """The names that could have stood at a place: those of the model, or of the one inside it."""
    for name in place[:-1]:
        field = model.model_fields.get(str(name))
        inner = [one for one in _kinds(field.annotation if field else None) if isinstance(one, type)]
        model = next((one for one in inner if issubclass(one, BaseModel)), model)
    return list(model.model_fields)


def _kinds(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) or (annotation,)


#: What pydantic says of Python's types, as a person who writes TOML would say it.
_TOLD = {
    "extra_forbidden": "unknown setting",
    "missing": "is missing",
    "tuple_type": "should be a list, such as [1, 2]",
    "list_type": "should be a list, such as [1, 2]",
    "string_type": 'should be text, such as "last"',
    "dict_type": "should be a table",
    "model_type": "should be a table",
    "int_type": "should be a whole number",
    "int_from_float": "should be a whole number",
    "int_parsing": "should be a whole number",
    "float_type": "should be a number",
    "float_parsing": "should be a number",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "greater_than_equal": "should be at least {ge}",
    "greater_than": "should be above {gt}",
    "less_than_equal": "should be at most {le}",
    "less_than": "should be below {lt}",
    "too_short": "should have at least {min_length}",
    "too_long": "should have at most {max_length}",
    "literal_error": "should be {expected}",
    "enum": "should be {expected}",
}


def _mistake(mistake: dict[str, Any], known: list[str]) -> str:
    plain = str(mistake["msg"]).removeprefix("Value error, ")
    told = _TOLD.get(mistake["type"], plain).format(**mistake.get("ctx", {}))
    name = ".".join(str(one) for one in mistake["loc"] if "[" not in str(one))
    if not name:  # settings that do not go together: what each of them is would hide what is wrong
        return told
    if mistake["type"] == "extra_forbidden":
        return f"{name}: {told}; {suggestion(name.rpartition('.')[2], known)}"
    return f"{name}: {told}" + ("" if mistake["type"] == "missing" else f" (given: {mistake['input']!r})")


def parse_layers(text: str, depth: int) -> tuple[int, ...]:
    """Layers by name: `all`, `last`, `last4`, `0`, `-1`, `3,7`, `8-12`. Layer 0 is the embeddings.

    >>> parse_layers("last4", 12), parse_layers("0,3-5,-1", 12)
    ((9, 10, 11, 12), (0, 3, 4, 5, 12))
    """
    chosen: set[int] = set()
    for part in text.replace(" ", "").split(","):
        chosen.update(_layer_part(part, depth))
    return tuple(sorted(chosen))


def _layer_part(part: str, depth: int) -> Iterable[int]:
    if part == "all":
        return range(depth + 1)
    if part.startswith("last") and re.fullmatch("[0-9]{0,9}", part[4:]):
        count = int(part[4:] or 1)
        if not 1 <= count <= depth + 1:
            raise BadSetting(f"layers {part!r}: this encoder has {depth + 1} layers, 0 to {depth}")
        return range(depth + 1 - count, depth + 1)
    first, last = part.rsplit("-", 1) if "-" in part[1:] else (part, part)
    if not all(re.fullmatch("-?[0-9]{1,9}", one) for one in (first, last)):
        raise BadSetting(
            f"layers {part!r} not understood", remedy="all, last, last4, a number, 8-12, or a list 0,4,8"
        )
    low, high = int(first), int(last)
    low, high = (x + depth + 1 if x < 0 else x for x in (low, high))
    if not 0 <= low <= high <= depth:
        raise BadSetting(
            f"no layer {part!r}",
            remedy=f"this encoder has layers 0 (embeddings) to {depth}, or -1 to -{depth + 1}",
        )
    return range(low, high + 1)
