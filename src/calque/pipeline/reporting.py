"""`calque report`: one self-contained page for a run, or for all runs in a folder; or its tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calque.errors import BadSetting
from calque.files import write_text
from calque.report.export import Form, exported, tables_of
from calque.report.page import write_page


def report(folder: str | Path) -> Path:
    """Write the page of a run, or of all runs in a folder, and return its path."""
    return write_page(Path(folder))


def report_tables(
    folder: str | Path, form: str, *, only: Sequence[str] = (), out: str | Path | None = None
) -> str:
    """The tables of a run, of all runs in a folder or of a study as `md`, `tex` or `csv`.

    `only` are the names of the tables to take. A file `out` is written whole or not at all.
    """
    Form.parse(form)
    text = exported(tables_of(Path(folder)), form, only)
    if out is not None:
        if Path(out).is_dir():
            raise BadSetting("is a folder", where=out, remedy="give the name of a file to write")
        write_text(Path(out), text)
    return text
