"""Who writes where: locks that end with their process, and what processes that died have left behind.

Locks are the system's advisory ones (flock), which let go however a process ends. On a file system without
them nobody is refused, and nothing is swept up.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from calque.errors import ELSEWHERE, BadSetting, creating, filling
from calque.progress import say

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

PARTIAL, OLD, LOCK = ".partial", ".old", ".lock"
#: What `beside` makes: `.NAME.abcd1234.partial`.
_HIDDEN = re.compile(r"\.(.+)\.[a-z0-9_]{8}(\.partial|\.old)")
_mine = threading.local()


def take(descriptor: int, *, wait: bool = False) -> bool | None:
    """Lock an open file: True when it is ours now, False when another process has it, None without locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    except BlockingIOError:
        return False
    except OSError:
        return None


@contextmanager
def locked(path: Path, what: str = "this run") -> Iterator[None]:
    """Only one process at a time writes `path`: another is refused. Who holds it may enter again."""
    place = Path(os.path.abspath(path))
    held: set[Path] = vars(_mine).setdefault("held", set())
    if place in held:
        yield
        return
    lock = _lock_of(place)
    opened: list[int] = []
    try:
        _lock(lock, path, what, opened)
        held.add(place)
        sweep(place)  # what a dead process was replacing is put back before anybody looks
        yield
    finally:
        held.discard(place)
        for descriptor in opened:
            if take(descriptor) is not False and _same(descriptor, lock):
                lock.unlink(missing_ok=True)
            os.close(descriptor)
        if not opened:
            _remove_dead(lock, lock)


def sweep_lock(path: Path) -> None:
    """Remove the lock of a process that was killed when all it had to do was to let go."""
    lock = _lock_of(Path(os.path.abspath(path)))
    _remove_dead(lock, lock)


def _lock_of(place: Path) -> Path:
    return place.with_name(f".{place.name}{LOCK}")


def _lock(lock: Path, path: Path, what: str, opened: list[int]) -> None:
    """Have the lock; what is opened is noted at once, so that it is let go wherever a signal comes in."""
    while True:
        with creating(path):
            lock.parent.mkdir(parents=True, exist_ok=True)
            opened.append(os.open(lock, os.O_RDWR | os.O_CREAT, 0o644))
        taken = take(opened[-1])
        if taken is None:
            say(f"no locks on this file system: see to it that no other process writes {path}")
        elif not taken:
            raise BadSetting(
                f"another process is computing {what}", where=path, remedy="wait for it, or another --out"
            )
        if _same(opened[-1], lock):
            return
        os.close(opened.pop())  # its last holder has just removed it


def _same(descriptor: int, path: Path) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


# ---------------------------------------------------------------------------- written beside a place


@contextmanager
def beside(path: Path, ending: str = PARTIAL, *, folder: bool, remedy: str = ELSEWHERE) -> Iterator[Path]:
    """A hidden file or folder beside `path` until the block ends; what the dead left there goes first."""
    made = path.with_name(f".{path.name}.{secrets.token_hex(4)}{ending}")
    descriptor = -1
    try:
        with creating(path, remedy):
            path.parent.mkdir(parents=True, exist_ok=True)
            sweep(path)
            descriptor = _made(made, folder)
        with filling(path, remedy):
            yield made
    finally:
        _remove(made)
        if descriptor >= 0:
            os.close(descriptor)


def remove_at_once(folder: Path) -> None:
    """Remove a folder in one step: what a removal that is cut off leaves, the next run sweeps up."""
    with beside(folder, folder=True) as made:
        folder.rename(made / "was")


def scratch() -> AbstractContextManager[Path]:
    """A folder for what need not last, in the system's place for such."""
    return beside(Path(tempfile.gettempdir()) / "calque", folder=True, remedy="set TMPDIR to a larger disk")


def _made(made: Path, folder: bool) -> int:
    """Make a file or folder with a lock on it, by which others see that its process lives."""
    while made.parent.is_dir():
        with suppress(FileNotFoundError):  # swept up before it was opened
            if folder:
                made.mkdir(0o700)
            flags = os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT | os.O_EXCL
            descriptor = os.open(made, flags, 0o600)
            take(descriptor, wait=True)
            if _same(descriptor, made):
                return descriptor
            os.close(descriptor)  # swept up before it was locked
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(made.parent))


def sweep(path: Path) -> None:
    """Remove what dead processes were writing in place of `path`, and put back what they had moved away."""
    if any(part.endswith(PARTIAL) for part in path.parent.parts):
        return  # nothing can have been left in what is itself new
    for left, name in _hidden(path.parent):
        if name == path.name:
            _remove_dead(left, path)


def sweep_all(folder: Path) -> None:
    """As `sweep`, of everything in a folder."""
    for left, name in _hidden(folder):
        _remove_dead(left, folder / name)


def _hidden(folder: Path) -> list[tuple[Path, str]]:
    """What `beside` made in a folder, and in place of what."""
    with suppress(FileNotFoundError), os.scandir(folder) as found:
        names = [(one.path, _HIDDEN.fullmatch(one.name)) for one in found if one.name[0] == "."]
        return [(Path(path), named[1]) for path, named in names if named is not None]
    return []


def _remove_dead(left: Path, path: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(left, os.O_RDONLY)
        try:
            if take(descriptor) and _same(descriptor, left):
                if left.suffix == OLD and not path.exists():
                    with suppress(OSError):
                        (left / "was").rename(path)
                _remove(left)
        finally:
            os.close(descriptor)


def _remove(path: Path) -> None:
    """Remove a file or folder; a signal that comes in meanwhile waits, as the next one does (`stopping`)."""
    try:
        _remove_now(path)
    except KeyboardInterrupt:
        _remove_now(path)
        raise


def _remove_now(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
