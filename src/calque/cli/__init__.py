"""The command line: parsing and printing, nothing else. Every verb is a function of `calque.pipeline`."""

from __future__ import annotations

import sys

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
from calque.errors import CalqueError

__all__ = ["CHOICES", "app", "main"]


def main() -> None:
    """Run the command line; a person's mistake ends with a message and exit code 2."""
    try:
        app(prog_name="calque")
    except CalqueError as error:
        complain(str(error))
        sys.exit(2)
    except OSError as error:
        complain(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
        sys.exit(2)
