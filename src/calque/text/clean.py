"""Which sentence pairs to drop, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from calque.errors import BadSetting


@dataclass(frozen=True)
class Cleaning:
    """What a sentence pair must be to stay.

    max_words: words of either side, at most. max_ratio: words of the longer side a word of the shorter, at
    most; 0 is off. duplicates: drop a pair that has been seen before.
    """

    max_words: int = 100
    max_ratio: float = 9.0
    duplicates: bool = True

    def __post_init__(self) -> None:
        if self.max_words < 1:
            raise BadSetting(f"max_words {self.max_words}", remedy="at least 1")
        if self.max_ratio != 0 and not self.max_ratio >= 1:
            raise BadSetting(f"max_ratio {self.max_ratio}", remedy="at least 1, or 0 to keep every ratio")


#: What is dropped when nothing else is asked for.
STANDARD = Cleaning()


def reasons(pairs: Iterable[tuple[Sequence[str], Sequence[str]]], cleaning: Cleaning) -> Iterator[str | None]:
    """Why each pair of word lists is dropped (the first reason that applies), or None for one that stays.

    >>> pairs = [(["a"], ["b"]), (["a"], []), (["a"], ["b"]), (["a"], ["b"] * 10), (["a"] * 101, ["b"] * 99)]
    >>> list(reasons(pairs, Cleaning()))
    [None, 'empty', 'duplicate', 'ratio', 'length']
    """
    seen: set[bytes] = set()
    for source, target in pairs:
        reason = _misshapen(len(source), len(target), cleaning)
        if reason is None and cleaning.duplicates:
            key = _key(source, target)
            reason = "duplicate" if key in seen else None
            seen.add(key)
        yield reason


def _misshapen(source: int, target: int, cleaning: Cleaning) -> str | None:
    shorter, longer = sorted((source, target))
    if shorter == 0:
        return "empty"
    if longer > cleaning.max_words:
        return "length"
    if cleaning.max_ratio and longer > cleaning.max_ratio * shorter:
        return "ratio"
    return None


def _key(source: Sequence[str], target: Sequence[str]) -> bytes:
    """A pair's digest: a million of them take less memory than a million pairs of sentences."""
    text = "\0".join(source) + "\0\0" + "\0".join(target)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).digest()
