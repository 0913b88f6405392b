"""Signatures: what a figure was made with, in one short line to print beside it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from calque import __version__

_SEPARATORS = frozenset("%|:,")


def signature(**parts: Any) -> str:
    """`name:value` parts in the manner of sacrebleu: the task first, the version last, the rest by name.

    Parts that are None are left out; lists are joined by commas; separators inside values are escaped as in
    addresses, so that different parts never give the same signature.

    >>> signature(task="words", sim="csls10", layers=[0, 8], unseen=True, linker=None)
    'task:words|layers:0,8|sim:csls10|unseen:yes|v:0.1.0'
    """
    held = {name: value for name, value in parts.items() if value is not None}
    names = sorted(held, key=lambda name: (name != "task", name))
    return "|".join([f"{name}:{_text(held[name])}" for name in names] + [f"v:{__version__}"])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return "".join(
        c if c.isprintable() and c not in _SEPARATORS else quote(c, errors="backslashreplace")
        for c in str(value)
    )
