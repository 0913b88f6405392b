"""Files with one byte changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np


@contextmanager
def flipped(path: Path, at: float) -> Iterator[None]:
    """Change a bit of the byte at this share of a file; the file is as it was afterwards."""
    data = path.read_bytes()
    changed = bytearray(data)
    changed[min(int(at * len(data)), len(data) - 1)] ^= 1 << int(8 * at)
    path.write_bytes(changed)
    try:
        yield
    finally:
        if path.parent.is_dir():
            path.write_bytes(data)


def places(count: int = 5, seed: int = 0) -> list[float]:
    """The first byte, the last, and some between."""
    return [0.0, 0.9999, *np.random.default_rng(seed).random(count - 2).tolist()]
