"""What calque says when something a person gave it cannot be used."""

from __future__ import annotations

from pathlib import Path


class CalqueError(Exception):
    """A mistake a person can correct: what was wrong, where, and what would be right.

    The command line prints it without a traceback and exits with code 2.

    >>> print(BadInput("line counts differ: 3 and 4", where="a.en", remedy="give two files of equal length"))
    a.en: line counts differ: 3 and 4 (give two files of equal length)
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | Path | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        self.what, self.where, self.line, self.remedy = what, where, line, remedy
        place = "" if where is None else f"{where}:{line}: " if line is not None else f"{where}: "
        super().__init__(f"{place}{what}" + (f" ({remedy})" if remedy else ""))


class BadInput(CalqueError):
    """A file, a line or a link that is not what it should be."""


class BadSetting(CalqueError):
    """An option out of its bounds, unknown, or at odds with another."""


class TrainingStopped(CalqueError):
    """A training that cannot go on; says at which step, why, and what was kept."""


class MissingExtra(CalqueError):
    """A feature whose optional package is not installed; says the pip line that installs it."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional package", remedy=f"pip install 'calque[{extra}]'")
