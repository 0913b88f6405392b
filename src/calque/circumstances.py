"""What a run met that its last bits depend on and no recipe tells: batches halved by lack of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_VERSION = "|v:"
_met: ContextVar[dict[str, str] | None] = ContextVar("calque_circumstances", default=None)


@contextmanager
def circumstances() -> Iterator[Mapping[str, str]]:
    """Gathers what is noted inside, for those outside as well; begins with what they have met so far."""
    outer = _met.get()
    found = dict(outer or {})
    token = _met.set(found)
    try:
        yield found
    finally:
        _met.reset(token)
        if outer is not None:
            outer.update(found)


def note(name: str, value: str) -> None:
    """Remember a circumstance of the run that is under way; the last word on it counts."""
    found = _met.get()
    if found is not None:
        found[name] = value


def with_circumstances(signature: str) -> str:
    """A signature with what the run has met, before its version; what it tells already stays.

    >>> with circumstances():
    ...     note("batch", "512")
    ...     with_circumstances("task:words|v:0.1.0")
    'task:words|batch:512|v:0.1.0'
    """
    head, version, number = signature.rpartition(_VERSION)
    parts = [*filter(None, (head if version else number).split("|"))]
    known = {part.partition(":")[0] for part in parts}
    parts += [f"{name}:{value}" for name, value in sorted((_met.get() or {}).items()) if name not in known]
    return "|".join(parts) + (version + number if version else "")
