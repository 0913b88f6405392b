"""What every linker is: bitext in, linked words out."""

from __future__ import annotations

from typing import Protocol

from calque.types import Bitext, WordPairs


class Linker(Protocol):
    """Anything that links words of a bitext. `name` says which method, and goes into `WordPairs.linker`."""

    @property
    def name(self) -> str: ...

    def link(self, bitext: Bitext) -> WordPairs: ...
