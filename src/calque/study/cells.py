"""One cell of a study: a verb with its settings, named by what goes into it.

In settings `cell://KEY/path` stands for what another cell writes and `file://path`, with its odd characters
escaped, for a file of one's own. A key is made of the former and of the latter's content, so that a changed
input is another cell, and so is everything that depends on it; a moved file is not, nor is another title.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import calque
from calque.errors import BadInput
from calque.files import file_digest, text_digest

#: Where cells lie in the folder of a study.
CELLS = "cells"
_KEY = re.compile(r"[a-z]+(-[a-z]+)*-[0-9a-f]{12}")
_FILE, _CELL = re.compile(r"file://([^,]*)"), re.compile(r"cell://([^/,]+)")


def file_reference(path: Path) -> str:
    """What stands for a file or folder in settings."""
    return f"file://{quote(str(path), errors='surrogateescape')}"


def cell_reference(key: str) -> str:
    """What stands for the folder that a cell writes."""
    return f"cell://{key}"


def is_reference(text: str) -> bool:
    """Whether a text stands for something else, or has in it what does."""
    return "file://" in text or "cell://" in text


def needed(text: str) -> list[str]:
    """The keys of the cells that a text refers to.

    >>> needed("en=cell://pretrain-1/x,de=cell://pretrain-2")
    ['pretrain-1', 'pretrain-2']
    """
    return _CELL.findall(text)


def with_paths(text: str) -> str:
    """A text with the paths of files in place of what stands for them."""
    return _FILE.sub(lambda found: unquote(found[1], errors="surrogateescape"), text)


def is_key(name: str) -> bool:
    """Whether a name is shaped like that of a cell.

    >>> is_key("measure-words-0123456789ab"), is_key("thesis")
    (True, False)
    """
    return _KEY.fullmatch(name) is not None


@dataclass(frozen=True)
class Cell:
    """What is computed: `settings` of a verb's function; `axes` say where in the matrix it stands.

    `where` is the part of the recipe that asked for it. `needs` are the keys of cells that it reads, `inputs`
    the files, with what they held when the key was made of them.
    """

    key: str
    verb: str
    title: str
    settings: Mapping[str, Any]
    axes: Mapping[str, str]
    where: str
    needs: tuple[str, ...]
    inputs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, verb: str, title: str, settings: Mapping[str, Any], axes: Mapping[str, str], where: str
    ) -> Cell:
        """The cell of these settings, with its name and what it needs."""
        needs: dict[str, None] = {}
        inputs: dict[str, str] = {}

        def content(text: str) -> str:
            needs.update(dict.fromkeys(needed(text)))
            return _FILE.sub(lambda found: f"content:{known(with_paths(found[0]))}", text)

        def known(path: str) -> str:
            inputs[path] = content_digest(Path(path))
            return inputs[path]

        told = json.dumps(each_text(settings, content), ensure_ascii=False, sort_keys=True)
        key = f"{verb.replace(' ', '-')}-{text_digest(calque.__version__, verb, told)[:12]}"
        return cls(key, verb, title, settings, dict(axes), where, tuple(needs), inputs)

    def resolved(self, root: Path) -> dict[str, Any]:
        """The settings with paths in place of what stands for them; cells lie in the folder of the study."""

        def path(text: str) -> str:
            return _CELL.sub(lambda found: str(root / CELLS / found[1]), with_paths(text))

        found = each_text(self.settings, path)
        assert isinstance(found, dict)
        return found

    def check_inputs(self) -> None:
        """Refuse files that do not hold what they held when the study began: this cell is named by that."""
        for path, digest in self.inputs.items():
            if content_digest(Path(path)) != digest:
                raise BadInput(
                    "changed while the study ran", where=path, remedy="the same command computes it anew"
                )


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Nested lists and tables with every string changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: each_text(one, change) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [each_text(one, change) for one in value]
    return value


_KNOWN: dict[tuple[str, int, int], str] = {}


def content_digest(path: Path) -> str:
    """Fingerprint of a file, or of all files in a folder; files are not read again while they stay as are."""
    if path.is_dir():
        inside = sorted(file for file in path.rglob("*") if file.is_file())
        return text_digest(*(f"{file.relative_to(path)}\0{content_digest(file)}" for file in inside))
    about = path.stat()
    known = (str(path.resolve()), about.st_size, about.st_mtime_ns)
    if known not in _KNOWN:
        _KNOWN[known] = file_digest(path)
    return _KNOWN[known]
