"""Drawings: columns stay under each other, whatever the script."""

import pytest
from rich.cells import cell_len

from calque.errors import BadSetting
from calque.links.draw import draw
from calque.types import Bitext, WordPairs


def shown(source: str, target: str, links: list[tuple[int, int]], width: int = 100) -> list[str]:
    text = Bitext.of(("en", "zh"), [source.split()], [target.split()])
    pairs = WordPairs.of(text, [0] * len(links), *zip(*links, strict=True))
    return draw(pairs, 0, width).split("\n")


def test_wide_characters_line_up() -> None:
    top, bottom = shown("my teacher sleeps", "我的 老师 睡觉 了", [(0, 0), (1, 1), (2, 2), (2, 3)])
    assert top == "en  my    teacher  sleeps"
    assert bottom == "zh  我的  老师     睡觉 了"
    assert cell_len(top[: top.index("sleeps")]) == cell_len(bottom[: bottom.index("睡觉")])


def test_markup_is_text() -> None:
    top, _ = shown("[bold] [/x]", "a b", [(0, 0), (1, 1)])
    assert top == "en  [bold]  [/x]"


def test_lines_wrap() -> None:
    lines = shown("aaaa bbbb cccc dddd", "w x y z", [(0, 0), (1, 1), (2, 2), (3, 3)], width=16)
    assert lines == ["en  aaaa  bbbb", "zh  w     x", "en  cccc  dddd", "zh  y     z"]


def test_nothing_linked_and_no_such_sentence() -> None:
    text = Bitext.of(("en", "zh"), [["a"]], [["b"]])
    nothing = WordPairs.of(text, [], [], [])
    assert draw(nothing, 0) == "en  a  ·\nzh  ·  b"
    with pytest.raises(BadSetting, match="no sentence 1"):
        draw(nothing, 1)
