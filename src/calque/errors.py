"""What calque says when something a person gave it cannot be used."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: What to do where a place cannot be written.
ELSEWHERE = "another --out"
#: Characters that no terminal should be sent, and halves of characters, which it cannot be.
_UNPRINTABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LONGEST = 2000


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
        super().__init__(_readable(f"{place}{what}" + (f" ({remedy})" if remedy else "")))


def _readable(message: str) -> str:
    """A message that can be printed, whatever a file held that it quotes.

    >>> _readable("tag \x1b[31m and " + "x" * 5000)[:20]
    'tag \\\\x1b[31m and xxx'
    """
    lines = printable(message).split("\n")
    return "\n".join(line if len(line) <= _LONGEST else f"{line[:1500]} … {line[-400:]}" for line in lines)


def printable(text: str) -> str:
    """Text whose characters a terminal can be sent: others would rule it, or turn what follows around.

    >>> printable("red \x1b[31m")
    'red \\\\x1b[31m'
    """
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


class BadInput(CalqueError):
    """A file, a line or a link that is not what it should be."""


class BadSetting(CalqueError):
    """An option out of its bounds, unknown, or at odds with another."""


class CannotWrite(CalqueError):
    """A place that cannot be written, or has no room left."""


class TrainingStopped(CalqueError):
    """A training that cannot go on; says at which step, why, and what was kept."""


class LackOfMemory(CalqueError):
    """Too little memory for even the smallest part of the work; says which, and what would need less."""


class MissingExtra(CalqueError):
    """A feature whose optional package is not installed; says the pip line that installs it."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional package", remedy=f"pip install 'calque[{extra}]'")


# ------------------------------------------------------------------------------------ too little memory

#: What torch says on a CPU, a GPU and Apple's, where the error has no class of its own.
_SHORT_TOLD = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "cannot allocate memory",
    "bad_alloc",
    "could not create a memory",
)


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory did not suffice for work that can be divided.

    >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("shapes differ"))
    (True, False)
    """
    told = str(error).lower()
    spoken = isinstance(error, RuntimeError) and any(part in told for part in _SHORT_TOLD)
    return spoken or isinstance(error, MemoryError)


def lacks_memory(error: BaseException) -> bool:
    """Whether memory is what a program lacks: for its work, for a file's place in it, for its own code.

    >>> lacks_memory(OSError(errno.ENOMEM, "")), lacks_memory(ImportError("no module named a"))
    (True, False)
    """
    code = isinstance(error, ImportError) and "failed to map segment" in str(error)
    return out_of_memory(error) or code or getattr(error, "errno", None) == errno.ENOMEM


# ------------------------------------------------------------------------------- what cannot be written

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
#: How numpy, safetensors and tokenizers say it, whose errors carry no number or are no OSError at all.
_FULL_TOLD = re.compile(r"os error (28|122|27)\b|No space left on device|\d+ requested and \d+ written")


@contextmanager
def creating(path: Path, remedy: str = ELSEWHERE) -> Iterator[None]:
    """What the system does not allow inside is said of `path`."""
    try:
        yield
    except OSError as error:
        raise _cannot_write(error, path, remedy) from None


@contextmanager
def filling(path: Path, remedy: str = ELSEWHERE) -> Iterator[None]:
    """A full disk is said of `path`, whoever met it and however they say it; other errors pass."""
    try:
        yield
    except CalqueError:
        raise
    except Exception as error:
        if not is_full(error):
            raise
        raise _cannot_write(error, path, remedy) from None


def is_full(error: BaseException | None) -> bool:
    """Whether a full disk is behind an error."""
    while error is not None:
        if getattr(error, "errno", None) in _FULL or _FULL_TOLD.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _cannot_write(error: Exception, path: Path, remedy: str) -> CannotWrite:
    if is_full(error):
        return CannotWrite("no room left on its disk", where=path, remedy=f"make some, or {remedy}")
    told = getattr(error, "strerror", None) or str(error)
    if isinstance(error, FileExistsError | NotADirectoryError):
        told = f"{error.filename or path} is a file or lies below one"
    return CannotWrite(f"cannot be written: {told}", where=path, remedy=remedy)
