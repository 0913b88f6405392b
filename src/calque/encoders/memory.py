"""Work that is done in halves where memory does not suffice for the whole."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeVar

import torch

from calque.circumstances import note
from calque.errors import LackOfMemory, out_of_memory
from calque.progress import say

T = TypeVar("T")
PORTIONS = "portions"


def free() -> None:
    """Give back what a failed attempt left behind."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def halving(work: Callable[[slice], T], rows: int) -> list[T]:
    """Work on all of these rows at once, or part by part where memory does not suffice.

    Nothing may be left of a part that failed: no gradients are taken, nothing random is drawn. Returns what
    came of every part, in order.
    """
    parts = 1
    while True:
        try:
            return [work(part) for part in portions(rows, parts)]
        except Exception as error:
            if not out_of_memory(error):
                raise
        free()
        if parts >= rows:
            raise LackOfMemory("not enough memory for a single row", remedy="cut longer ones")
        parts *= 2
        say(f"not enough memory for {rows} rows at once: read in {parts} parts")
        note(PORTIONS, str(parts))


def portions(rows: int, count: int) -> list[slice]:
    """Rows in so many parts of nearly one size, none of them empty.

    >>> [(part.start, part.stop) for part in portions(5, 2)], len(portions(3, 8))
    ([(0, 3), (3, 5)], 3)
    """
    size = -(-rows // max(1, min(count, rows))) if rows else 1
    return [slice(first, min(first + size, rows)) for first in range(0, rows, size)] or [slice(0, 0)]
