"""The command line: parsing and printing, nothing else. Every verb is a function of `calque.pipeline`."""

from __future__ import annotations

import io
import sys
import traceback

from calque.cli import (  # noqa: F401 (they register their commands)
    exporting,
    lexicon,
    measures,
    mining,
    pictures,
    pretraining,
    spaces,
    study,
    transfer,
    verbs,
)
from calque.cli.common import app, complain
from calque.cli.help import CHOICES
from calque.errors import CalqueError, lacks_memory

__all__ = ["CHOICES", "app", "main"]

_LESS = "give it less: fewer sentences, layers or encoders, a smaller batch; or a machine with more memory"


def main() -> None:
    """Run the command line; a person's mistake ends with a message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):  # an output in another encoding than UTF-8 lacks some characters
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="calque")
    except Exception as error:
        if (told := _told(error)) is None:
            raise
        traceback.clear_frames(error.__traceback__)  # what filled the memory goes
        complain(told)
        sys.exit(2)


def _told(error: Exception) -> str | None:
    """What is said of an error; None of a mistake of calque's own, which is shown as it is."""
    if isinstance(error, CalqueError):
        return str(error)
    if lacks_memory(error):
        told = str(error).strip().partition("\n")[0][:200]
        return f"not enough memory{': ' if told else ''}{told} ({_LESS})"
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")
    return None
