"""What calque says can be printed, whatever a file held and wherever it is printed."""

import io
import json
import sys
from pathlib import Path

import pytest
from rich.table import Table

import run_folders
from calque.cli import main
from calque.cli.common import tell
from calque.cli.help import Screen
from calque.errors import BadInput


def test_a_message_can_be_printed() -> None:
    error = BadInput("tag \x1b[31m \ud800 \u202e \0", where="a\udcff", remedy="x" * 100_000)
    told = str(error)
    assert told.startswith("a\\udcff: tag \\x1b[31m \\ud800 \\u202e \\x00 (xxx")
    assert len(told) < 2000 and told.encode("utf-8") and error.remedy == "x" * 100_000


def test_lines_of_a_message_stay() -> None:
    assert str(BadInput("two mistakes\n  one\n  für 東京")) == "two mistakes\n  one\n  für 東京"


def test_data_does_not_rule_the_terminal() -> None:
    shown = io.StringIO()
    screen, table = Screen(file=shown, force_terminal=True, width=80), Table("a\x1b]0;t")
    table.add_row("\u202eb")
    screen.print("c\x1b[31m", table, markup=False)
    told = shown.getvalue()
    assert "\x1b]0;t" not in told and "\x1b[31m" not in told and "\u202e" not in told
    assert all(plain in told for plain in ("a\\x1b]0;t", "\\u202eb", "c\\x1b"))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "utf-16"])
def test_json_is_json_whatever_the_output_lacks(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held, record = io.BytesIO(), {"folder": "linksé", "word": "猫 \U0001f600"}
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(held, encoding=encoding, errors="backslashreplace"))
    tell(False, True, record)
    sys.stdout.flush()
    assert json.loads(held.getvalue().decode(encoding)) == record


def test_an_output_that_lacks_a_character_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_folders.every_measure(tmp_path) / "words"
    held = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(held, encoding="ascii"))
    monkeypatch.setattr(sys, "argv", ["calque", "report", str(run), "--tables", "md"])
    with pytest.raises(SystemExit) as stop:
        main()
    sys.stdout.flush()
    assert not stop.value.code and b"\\xb1" in held.getvalue()
