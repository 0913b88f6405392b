"""Links of one sentence pair for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len

from calque.errors import BadSetting
from calque.types import WordPairs

_GAP = 2


def draw(pairs: WordPairs, sentence: int, width: int = 100) -> str:
    """Source words, the target words linked to each beneath it; target words without a link come last.

    Wide characters count two columns.

    >>> from calque.types import Bitext
    >>> text = Bitext.of(("en", "de"), [["the", "red", "house", "there"]], [["das", "rote", "Haus", "!"]])
    >>> print(draw(WordPairs.of(text, [0, 0, 0], [0, 1, 2], [0, 1, 2]), 0))
    en  the  red   house  there  ·
    de  das  rote  Haus   ·      !
    """
    if not 0 <= sentence < len(pairs.bitext):
        raise BadSetting(f"no sentence {sentence}", remedy=f"0 to {len(pairs.bitext) - 1}")
    columns = _columns(pairs, sentence)
    label = max(map(cell_len, pairs.languages)) + _GAP
    lines = []
    for block in _wrapped(columns, width - label):
        sizes = [max(map(cell_len, column)) + _GAP for column in block]
        for side, language in enumerate(pairs.languages):
            words = [_padded(column[side], size) for column, size in zip(block, sizes, strict=True)]
            lines.append((_padded(language, label) + "".join(words)).rstrip())
    return "\n".join(lines)


def _columns(pairs: WordPairs, sentence: int) -> list[tuple[str, str]]:
    source, target = pairs.bitext.source[sentence], pairs.bitext.target[sentence]
    rows = pairs.sentence == sentence
    beneath: list[list[str]] = [[] for _ in source]
    alone = dict(enumerate(target))
    for i, j in zip(pairs.source[rows].tolist(), pairs.target[rows].tolist(), strict=True):
        beneath[i].append(target[j])
        alone.pop(j, None)
    columns = [(word, " ".join(found) or "·") for word, found in zip(source, beneath, strict=True)]
    return columns + [("·", word) for word in alone.values()]


def _wrapped(columns: list[tuple[str, str]], width: int) -> Iterator[list[tuple[str, str]]]:
    block: list[tuple[str, str]] = []
    used = 0
    for column in columns:
        size = max(map(cell_len, column)) + _GAP
        if block and used + size - _GAP > width:
            yield block
            block, used = [], 0
        block.append(column)
        used += size
    if block:
        yield block


def _padded(text: str, size: int) -> str:
    return text + " " * (size - cell_len(text))
