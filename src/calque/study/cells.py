"""One cell of a study: a verb with its settings, named by what goes into it.

In settings `cell://KEY/path` stands for what another cell writes and `file://path` for a file of one's own.
A key is made of the former and of the latter's content, so that a changed input is another cell, and so is
everything that depends on it; a moved file is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import calque
from calque.files import file_digest, text_digest

#: Where cells lie in the folder of a study.
CELLS = "cells"
_FILE, _CELL = re.compile(r"file://([^,]*)"), re.compile(r"cell://([^/,]+)")


@dataclass(frozen=True)
class Cell:
    """What is computed: `settings` of a verb's function; `axes` say where in the matrix it stands.

    `where` is the part of the recipe that asked for it. `needs` are the keys of cells that it reads.
    """

    key: str
    verb: str
    title: str
    settings: Mapping[str, Any]
    axes: Mapping[str, str]
    where: str
    needs: tuple[str, ...]

    @classmethod
    def of(
        cls, verb: str, title: str, settings: Mapping[str, Any], axes: Mapping[str, str], where: str
    ) -> Cell:
        """The cell of these settings, with its name and what it needs."""
        found: dict[str, None] = {}
        each_text(settings, lambda text: found.update(dict.fromkeys(_CELL.findall(text))) or text)
        needs = tuple(found)
        content = json.dumps(each_text(settings, _by_content), ensure_ascii=False, sort_keys=True)
        name = re.sub(r"[^a-z0-9]+", "-", f"{verb} {title}".lower())[:40].strip("-")
        key = f"{name}-{text_digest(calque.__version__, verb, content)[:12]}"
        return cls(key, verb, title, settings, dict(axes), where, needs)

    def resolved(self, root: Path) -> dict[str, Any]:
        """The settings with paths in place of what stands for them; cells lie in the folder of the study."""

        def path(text: str) -> str:
            return _CELL.sub(lambda found: str(root / CELLS / found[1]), _FILE.sub(r"\1", text))

        found = each_text(self.settings, path)
        assert isinstance(found, dict)
        return found


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Nested lists and tables with every string changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: each_text(one, change) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [each_text(one, change) for one in value]
    return value


def _by_content(text: str) -> str:
    return _FILE.sub(lambda found: f"content:{content_digest(Path(found[1]))}", text)


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
