"""Text, JSON and TOML out of files: the one place that decodes and parses them, and says what is wrong."""

from __future__ import annotations

import json
import struct
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calque.errors import BadInput

#: What reading breaks with when a file has another shape than its reader takes for granted.
_MISFITS = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error,
)  # fmt: skip
#: More tables in tables than any recipe has.
_DEEPEST = 100


def decoded(data: bytes, where: str | Path, *, line: int | None = None, offset: int = 0) -> str:
    """These bytes as text without a byte order mark; `offset` is their place in the file."""
    mark = 0 if offset or not data.startswith(b"\xef\xbb\xbf") else 3
    try:
        return data[mark:].decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + mark
        raise BadInput(
            f"byte 0x{data[at]:02x} at offset {offset + at} is not UTF-8",
            where=where,
            line=data.count(b"\n", 0, at) + 1 if line is None else line,
            remedy="convert the file to UTF-8",
        ) from None


def read_text(path: Path) -> str:
    """A whole text file, its line ends as they are."""
    try:
        return decoded(path.read_bytes(), path)
    except FileNotFoundError:
        raise BadInput("no such file", where=path) from None
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot be read: {getattr(error, 'strerror', '') or error}", where=path) from None


def parse_json(
    text: str,
    where: str | Path,
    *,
    line: int | None = None,
    halves: bool = False,
    remedy: str | None = None,
) -> Any:
    """What JSON says. Halves of characters, which no file can hold, are refused unless `halves`."""
    try:
        held = json.loads(text)
        if not halves and "\\u" in text:
            json.dumps(held, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput("half a character", where=where, line=line, remedy="mend its \\u escapes") from None
    except RecursionError:
        raise _too_deep("JSON", where, line) from None
    except ValueError as error:
        place = line if line is not None else getattr(error, "lineno", None)
        told = f"not JSON: {getattr(error, 'msg', error)}"
        raise BadInput(told, where=where, line=place, remedy=remedy) from None
    return held


def parse_toml(text: str, where: str | Path) -> dict[str, Any]:
    """What TOML says."""
    try:
        held = tomllib.loads(text)
    except RecursionError:
        raise _too_deep("TOML", where) from None
    except ValueError as error:
        raise BadInput(f"not TOML: {error}", where=where) from None
    if _depth(held) > _DEEPEST:  # a name of many parts is as many tables, one in the other
        raise _too_deep("TOML", where)
    return held


def _too_deep(kind: str, where: str | Path, line: int | None = None) -> BadInput:
    return BadInput(f"not {kind} that can be read: nested too deep", where=where, line=line)


def _depth(value: Any) -> int:
    """How deep lists and tables are nested."""
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, dict | list)]:
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
        depth += 1
    return depth


@contextmanager
def shaped(
    where: str | Path, remedy: str, *, what: str = "broken", line: int | None = None
) -> Iterator[None]:
    """Whatever a block stumbles over in a file of another shape is told as such.

    For files that programs write, where a check of every value would say no more to a person.
    """
    try:
        yield
    except BadInput as error:
        if error.where is not None:
            raise
        raise BadInput(f"{what}: {error}", where=where, line=line, remedy=remedy) from None
    except _MISFITS as error:
        name = "nested too deep" if isinstance(error, RecursionError) else f"{type(error).__name__}: {error}"
        raise BadInput(f"{what}: {name}", where=where, line=line, remedy=remedy) from None
