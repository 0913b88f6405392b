"""`calque report`: one self-contained page for a run, or for all runs in a folder; or its tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calque.errors import BadSetting
from calque.files import FINISHED, write_text
from calque.report.collect import STUDY
from calque.report.export import Form, exported, tables_of
from calque.report.page import write_page

_TABLES = frozenset(f".{form.value}" for form in Form)


def report(folder: str | Path) -> Path:
    """Write the page of a run, or of all runs in a folder, and return its path."""
    return write_page(Path(folder))


def report_tables(
    folder: str | Path, form: str, *, only: Sequence[str] = (), out: str | Path | None = None
) -> str:
    """The tables of a run, of all runs in a folder or of a study as `md`, `tex` or `csv`.

    `only` are the names of the tables to take. A file `out` is written whole or not at all, and in place of
    earlier tables, but of no other file of a run.
    """
    Form.parse(form)
    text = exported(tables_of(Path(folder)), form, only)
    if out is not None:
        if Path(out).is_dir():
            raise BadSetting("is a folder", where=out, remedy="give the name of a file to write")
        _check_not_of_run(Path(out))
        write_text(Path(out), text)
    return text


def _check_not_of_run(out: Path) -> None:
    """Refuse to replace a file of a run, unless its name says that it is tables."""
    if not out.exists() or (out.suffix in _TABLES and out.name != "README.md"):
        return
    for folder in out.resolve().parents:
        if (folder / FINISHED).is_file() or (folder / STUDY).is_file():
            raise BadSetting(
                "is there already, in a run", where=out, remedy="another --out, such as tables.md"
            )
