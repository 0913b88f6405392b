"""The live table: what it counts, how it tells the time left, what it prints where there is no terminal."""

import io
import sys
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from rich.console import Console

from calque.study import board as boards
from calque.study.board import Board, elapsed
from calque.study.cells import Cell
from calque.study.plan import Plan
from calque.study.workers import Outcome


def cell(key: str, *needs: str, verb: str = "align", **axes: str) -> Cell:
    return Cell(key, verb, f"title of {key}", {}, axes, "", needs)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets time pass."""
    now = [100.0]
    monkeypatch.setattr(boards.time, "monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def board(*cells: Cell, done: tuple[str, ...] = (), guess: Any = 10.0, terminal: bool = False) -> Board:
    made = Board(show=True)
    made.screen = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    plan = Plan({one.key: one for one in cells}, (), {}, {}, ())
    made.plan(plan, done, {}, guess if callable(guess) else lambda cell: guess)
    return made


def printed(made: Board) -> list[str]:
    assert isinstance(made.screen.file, io.StringIO)
    return made.screen.file.getvalue().splitlines()


def drawn(made: Board) -> list[list[str]]:
    """The rows of the table, word by word."""
    screen = Console(file=io.StringIO(), width=100)
    screen.print(made.table())
    assert isinstance(screen.file, io.StringIO)
    return [line.split() for line in screen.file.getvalue().splitlines()]


def test_cells_are_counted_by_verb_and_state(clock: Callable[[float], None]) -> None:
    cells = [cell(f"a{number}") for number in range(5)] + [cell("m", "a1", verb="measure words")]
    made = board(*cells, done=("a0",))
    made.started(cells[1])
    made.started(cells[2])
    made.started(cells[3])
    clock(3)
    made.ended(cells[2], Outcome("a2", 3.0))
    made.ended(cells[3], Outcome("a3", 3.0, "no room left"))
    counted = boards.Counter(made.state.values())
    assert counted == {"waiting": 2, "running": 1, "done": 2, "failed": 1}
    header, align, measure, running, *_ = drawn(made)
    assert header == ["cells", "waiting", "running", "done", "failed"]
    assert align == ["align", "1", "1", "2", "1"]
    assert measure == ["measure", "words", "1"]
    assert running == ["title", "of", "a1", "3", "s"]


def test_names_are_shown_as_they_are(clock: Callable[[float], None]) -> None:
    odd = Cell("a", "align", "size [500] of [red]", {}, {}, "", ())
    made = board(odd)
    made.started(odd)
    assert ["size", "[500]", "of", "[red]", "0", "s"] in drawn(made)


def test_many_running_cells_are_not_all_named(clock: Callable[[float], None]) -> None:
    cells = [cell(f"a{number}") for number in range(boards.MOST + 4)]
    made = board(*cells)
    for one in cells:
        made.started(one)
    named = [row for row in drawn(made) if row[:1] == ["title"]]
    assert len(named) == boards.MOST


# --------------------------------------------------------------------------------------- time left


def test_the_time_left_is_that_of_cells_after_each_other(clock: Callable[[float], None]) -> None:
    cells = [cell("a"), cell("b"), cell("c")]
    made = board(*cells)
    assert made.left() == 30
    made.started(cells[0])
    clock(4)
    assert made.left() == 26
    clock(100)
    assert made.left() == 20, "one that takes longer than its kind is about to end"
    made.ended(cells[0], Outcome("a", 104.0))
    assert made.left() == 208, "what is seen now wins over what was guessed"


def test_cells_at_once_share_the_time_also_when_one_has_just_ended(clock: Callable[[float], None]) -> None:
    cells = [cell(f"a{number}") for number in range(6)]
    made = board(*cells)
    made.started(cells[0])
    made.started(cells[1])
    assert made.left() == 30
    clock(10)
    made.ended(cells[0], Outcome("a0", 10.0))
    assert made.left() == 20, "of five cells one is nearly done, two are computed at once"
    assert printed(made)[-1].endswith("10 s; about 20 s left")


def test_a_chain_takes_its_time_however_many_are_at_once(clock: Callable[[float], None]) -> None:
    cells = [cell("a"), cell("b", "a"), cell("c", "b"), cell("x")]
    made = board(*cells)
    made.started(cells[0])
    made.started(cells[3])
    assert made.left() == 30
    assert elapsed(made.cells, {"b": 1.0, "c": 2.0}, 5) == 3, "cells that stand take no time"
    assert elapsed(made.cells, dict.fromkeys("abcx", 1.0), 1) == 4
    assert elapsed({}, {}, 2) == 0


def test_methods_are_not_taken_for_one_another(clock: Callable[[float], None]) -> None:
    quick, slow, new = (cell(name, method=name) for name in ("rotation", "l2", "weak"))
    made = board(quick, slow, new, guess=lambda one: 900.0 if one is slow else None)
    assert made.left() is None and made.left_text() == "", "nothing is known of one kind"
    made.started(quick)
    made.ended(quick, Outcome("rotation", 2.0))
    assert made.about(slow) == 900
    assert made.about(new) == 2, "another kind of the verb is better than nothing"


def test_what_rests_on_a_failed_cell_takes_no_time(clock: Callable[[float], None]) -> None:
    cells = [cell("a"), cell("b", "a"), cell("c", "b"), cell("x")]
    made = board(*cells)
    made.started(cells[0])
    made.ended(cells[0], Outcome("a", 1.0, "broken"))
    assert made.left() == 10


def test_nothing_left_is_not_told(clock: Callable[[float], None]) -> None:
    made = board(cell("a"), done=("a",))
    assert made.left() == 0 and made.left_text() == ""


# ------------------------------------------------------------------------------------------- lines


def test_elsewhere_than_on_a_terminal_each_cell_has_a_line(clock: Callable[[float], None]) -> None:
    cells = [cell("a"), cell("b"), Cell("c", "align", "size [5]", {}, {}, "", ())]
    made = board(*cells, done=("a",))
    for one, error in ((cells[1], None), (cells[2], "no [such] file")):
        made.started(one)
        made.ended(one, Outcome(one.key, 3.0, error))
    assert printed(made) == [
        "3 cells, 1 of them there already",
        "2 of 3: align title of b: 3 s; about 3 s left",
        "3 of 3: align size [5]: failed: no [such] file",
    ]


def test_on_a_terminal_only_failures_have_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(boards, "Console", lambda **_: screen)
    cells = [cell("a"), cell("b")]
    with Board(show=True) as made:
        made.plan(Plan({one.key: one for one in cells}, (), {}, {}, ()), (), {}, lambda _: None)
        for one, error in ((cells[0], None), (cells[1], "broken")):
            made.started(one)
            made.ended(one, Outcome(one.key, 3.0, error))
    assert made.live is not None
    told = printed(made)
    assert "2 of 2: align title of b: failed: broken" in "\n".join(told)
    assert not any("align title of a" in line for line in told)


def test_a_silent_board_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with Board(show=False) as made:
        made.plan(Plan({"a": cell("a")}, (), {}, {}, ()), (), {}, lambda _: None)
        made.started(cell("a"))
        made.ended(cell("a"), Outcome("a", 1.0, "broken"))
    assert capfd.readouterr() == ("", "")


def test_the_screen_is_drawn_by_another_thread_while_cells_end() -> None:
    cells = [cell(f"a{number}") for number in range(60)]
    made, wrong, going = board(*cells), list[Exception](), [True]
    made.show = False

    def draw() -> None:
        while going:
            try:
                made.table()
            except Exception as error:
                wrong.append(error)
                return

    between, thread = sys.getswitchinterval(), Thread(target=draw)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for number in range(20):
            # Planned anew, other cells are there than before.
            some = cells[: 30 + number]
            made.plan(Plan({one.key: one for one in some}, (), {}, {}, ()), (), {}, lambda _: 1.0)
            for one in some:
                made.started(one)
            for one in some:
                made.ended(one, Outcome(one.key, 1.0))
    finally:
        going.clear()
        thread.join()
        sys.setswitchinterval(between)
    assert wrong == []
