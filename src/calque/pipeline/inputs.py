"""The files that settings name, which nothing may be written over."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from calque.errors import BadSetting
from calque.recipe import Recipe

#: Settings that name what may also be on a hub.
ON_HUB = ("encoder", "model", "original")


def split_files(text: str) -> Iterator[tuple[str, str | None]]:
    """The files of languages in a setting, each with what stands before it; a code alone has no file.

    >>> list(split_files("en=a,far=b")), list(split_files("en,far=a"))
    ([('en=', 'a'), ('far=', 'b')], [('en', None), ('far=', 'a')])
    """
    parts = text.split(",")
    for place, part in enumerate(parts):
        codes, told, path = part.rpartition("=")
        is_code = not told and any("=" in later for later in parts[place:])
        yield (part, None) if is_code else (f"{codes}{told}", path)


def is_there(path: Path) -> bool:
    """Whether there is such a file; a name that none can have is none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def named_files(recipe: Recipe) -> Iterator[str]:
    """What the settings of a recipe name that may be a file or folder, as it is named there."""
    for name in sorted(recipe.places.union(ON_HUB)):
        for text in _texts(getattr(recipe, name, None)):
            # A path may have commas and equals signs of its own.
            found = [text, text.partition("=")[2], *(path or "" for _, path in split_files(text))]
            yield from dict.fromkeys(one.strip() for one in found if one.strip())


def check_not_read(out: Path, read: Iterable[str]) -> None:
    """Refuse to replace what is read, or a folder that holds it."""
    for name in read:
        path = Path(os.path.expanduser(name))
        if is_there(path) and _holds(out, path):
            raise BadSetting(f"holds what is read: {name}", where=out, remedy="choose another --out")


def check_not_part(out: Path, read: str) -> None:
    """Refuse to replace a file of a folder that is read."""
    folder = Path(os.path.expanduser(read))
    if is_there(folder) and is_there(out) and _holds(folder, out):
        raise BadSetting(f"is a part of what is read: {read}", where=out, remedy="choose another --out")


def _holds(out: Path, path: Path) -> bool:
    """Whether a path is this one or inside it, by its name or by what its links lead to."""
    return any(Path(real(path)).is_relative_to(real(out)) for real in (os.path.abspath, os.path.realpath))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
