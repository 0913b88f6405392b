"""`calque report`: one self-contained page for a run, or for all runs in a folder."""

from __future__ import annotations

from pathlib import Path

from calque.report.page import write_page


def report(folder: str | Path) -> Path:
    """Write the page of a run, or of all runs in a folder, and return its path."""
    return write_page(Path(folder))
