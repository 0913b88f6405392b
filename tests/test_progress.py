"""Progress: silent in a library call, a bar on a terminal, lines in a log."""

import pytest

from calque import progress


def test_a_library_call_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    progress.say("unheard")
    assert list(progress.track(range(3), "counting")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_lines_tell_where_it_stands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.0)
    with progress.shown(), progress.bar("training", 40, "steps", done=20) as advance:
        advance(10, note="l2 0.5")
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("training: 30 of 40 steps, l2 0.5, 0 min")


def test_lines_are_not_written_all_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.shown():
        list(progress.track(range(1000), "counting"))
    assert capsys.readouterr().err == ""
