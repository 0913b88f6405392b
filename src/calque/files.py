"""Files written whole or not at all, run folders, and the cache of vectors."""

from __future__ import annotations

import atexit
import errno
import hashlib
import json
import math
import os
import re
import shutil
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calque.documents import parse_json, read_text
from calque.errors import ELSEWHERE, BadInput, BadSetting, creating
from calque.locks import OLD, beside, locked, scratch, sweep_all, sweep_lock
from calque.progress import say

FINISHED, RESULTS = "finished.json", "results.jsonl"


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def text_digest(*parts: str) -> str:
    """SHA-256 of some strings, told apart from each other."""
    return hashlib.sha256("\0".join(parts).encode("utf-8")).hexdigest()


@contextmanager
def atomic_file(path: Path, remedy: str = ELSEWHERE) -> Iterator[Path]:
    """A temporary path that becomes `path` when the block ends well, and vanishes otherwise."""
    with beside(path, folder=False, remedy=remedy) as partial:
        yield partial
        partial.chmod(0o644)
        with creating(path, remedy):
            partial.replace(path)


@contextmanager
def atomic_directory(path: Path, remedy: str = ELSEWHERE) -> Iterator[Path]:
    """A temporary directory that becomes `path` when the block ends well, replacing what was there."""
    with beside(path, folder=True, remedy=remedy) as partial:
        yield partial
        _readable(partial)
        _put(partial, path)


def _put(partial: Path, path: Path) -> None:
    """Rename, with what was there out of the way; another process may be putting the same there now."""
    for _ in range(100):
        try:
            partial.rename(path)
            return
        except OSError:
            if not path.exists():
                raise
        with beside(path, OLD, folder=True) as old, suppress(FileNotFoundError):
            try:
                path.rename(old / "was")
                with suppress(OSError):
                    partial.rename(path)
                    return
            finally:
                if not path.exists():
                    (old / "was").rename(path)
    raise BadSetting("cannot be replaced: others keep writing it", where=path)


def _readable(folder: Path) -> None:
    """Let others read what was written; files that are also elsewhere (hard links) keep their mode."""
    folder.chmod(0o755)
    for file in folder.rglob("*"):
        if file.is_file() and file.stat().st_nlink == 1:
            file.chmod(0o644)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all; half a character, as names of files can have, as `\\udcfc`."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Write sorted, readable JSON whole or not at all; of half a character its number, which can be read."""
    text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    write_text(path, _HALF.sub(lambda half: f"\\\\u{ord(half[0]):04x}", text))


_HALF = re.compile("[\ud800-\udfff]")


def read_json(path: Path) -> Any:
    """Read JSON, or say which file is broken and where."""
    return parse_json(read_text(path), path)


# ---------------------------------------------------------------------------------------- checksums

SUMS = "sums.json"
_CHUNK = 1 << 22


def checksum(path: Path) -> int:
    """CRC-32 of a file's bytes: finds damage, not malice. Other things than files have none."""
    about = path.stat()  # is_file() says False of what cannot be read, from Python 3.14 on
    if not stat.S_ISREG(about.st_mode):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    found, buffer = 0, bytearray(min(_CHUNK, max(1, about.st_size)))
    view = memoryview(buffer)
    with path.open("rb", buffering=0) as handle:
        while size := handle.readinto(buffer):
            found = zlib.crc32(view[:size], found)
    return found


def seal(folder: Path, *names: str) -> None:
    """Note the checksums of files in a folder, all unless named, for `damage` to compare."""
    files = [folder / name for name in names] or list(folder.iterdir())
    told = {path.name: checksum(path) for path in files if path.is_file() and path.name != SUMS}
    write_json(folder / SUMS, told)


def damage(folder: Path) -> str | None:
    """Which file of a sealed folder is not as it was written, or None."""
    try:
        for name, told in read_json(folder / SUMS).items():
            if name != Path(name).name or checksum(folder / name) != told:
                return str(name)
    except (BadInput, OSError, AttributeError, ValueError, TypeError):
        return SUMS
    return None


def check_sealed(folder: Path, remedy: str) -> None:
    """Refuse a folder whose files are not as they were written, where it is known how they were."""
    if (folder / SUMS).is_file() and (file := damage(folder)) is not None:
        raise BadInput("is damaged: not the bytes that were written", where=folder / file, remedy=remedy)


# --------------------------------------------------------------------------------------- run folders


def finished(folder: Path) -> dict[str, Any] | None:
    """The finished-marker of a run folder, or None when there is no finished run there."""
    marker = folder / FINISHED
    if not marker.is_file():
        return None
    held = read_json(marker)
    if not isinstance(held, dict):
        raise BadInput("not a finished-marker", where=marker, remedy="make the run again")
    return held


def finish(folder: Path, digest: str, verb: str) -> None:
    """Write the finished-marker of a run: its recipe, its verb, and the checksum of its results."""
    results = folder / RESULTS
    told = {"results": checksum(results)} if results.is_file() else {}
    write_json(folder / FINISHED, {"recipe": digest, "verb": verb, **told})


def check_results(path: Path) -> None:
    """Refuse results that are not as their run wrote them, where it is known how it did."""
    told = (finished(path.parent) or {}).get("results") if path.name == RESULTS else None
    if told is not None and checksum(path) != told:
        raise BadInput(
            "is damaged: not the results that were written",
            where=path,
            remedy="remove its folder and run the same again, with its study if it is a cell of one",
        )


def is_done(folder: Path, digest: str, *, overwrite: bool = False) -> bool:
    """Whether this very run stands finished in `folder`; refuses a folder that holds something else."""
    marker = None if overwrite else finished(folder)
    if marker is not None and marker.get("recipe") == digest:
        sweep_lock(folder)
        return True
    check_replaceable(folder)
    if overwrite or not folder.exists():
        return False
    if marker is not None:
        raise BadSetting(
            f"holds a finished run of another recipe ({str(marker.get('recipe'))[:12]}, not {digest[:12]})",
            where=folder,
            remedy="choose another --out, or --overwrite to replace it",
        )
    if any(folder.iterdir()):
        raise BadSetting("exists and is not a calque run", where=folder, remedy="choose another --out")
    return False


def check_replaceable(folder: Path) -> None:
    """Refuse what no folder can be renamed to, before anything is computed for it."""
    if folder.is_symlink():
        remedy = f"give the folder itself: {os.path.realpath(folder)}"
        raise BadSetting("is a link", where=folder, remedy=remedy)
    if folder.exists() and not folder.is_dir():
        raise BadSetting("is a file", where=folder, remedy="choose another --out")
    mounted = os.path.ismount(folder)
    if mounted or Path.cwd().is_relative_to(os.path.realpath(folder)):
        what = "a disk is mounted there" if mounted else "the folder you are in"
        raise BadSetting(f"cannot be replaced: {what}", where=folder, remedy="name a folder inside it")


@contextmanager
def run_folder(folder: Path, digest: str, verb: str, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write a run into; it appears under its own name with its finished-marker, or not at all.

    While it is written, no other process may write it.
    """
    with locked(folder):
        # Another process may have finished a run here since this one looked.
        is_done(folder, digest, overwrite=overwrite)
        if folder.is_dir() and finished(folder) is None and any(folder.iterdir()):
            raise BadSetting("exists and is not a calque run", where=folder, remedy="choose another --out")
        with atomic_directory(folder) as partial:
            yield partial
            finish(partial, digest, verb)


# --------------------------------------------------------------------------------------------- cache


def cache_root() -> Path:
    """Where calque keeps what can be made again: CALQUE_CACHE, or the user's cache directory."""
    if own := os.environ.get("CALQUE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calque"


def cache_limit() -> int:
    """How many bytes of vectors may lie in the cache: CALQUE_CACHE_GB, 20 by default."""
    text = os.environ.get("CALQUE_CACHE_GB", "20")
    return bytes_of(text, "CALQUE_CACHE_GB")


def bytes_of(gigabytes: str | float, name: str) -> int:
    """Gigabytes in bytes, provided that they are a number of them."""
    try:
        size = float(gigabytes) * 1e9
    except ValueError:
        size = math.nan
    if not 0 <= size < math.inf:
        raise BadSetting(f"{name} is {gigabytes!r}", remedy="a number of gigabytes, for example 20")
    return int(size)


@dataclass(frozen=True)
class CacheEntry:
    """One thing in the cache: its key, what it holds, its size in bytes and when it was last used."""

    key: str
    label: str
    size: int
    used: float


#: Sealed folders that were whole when this process looked, by what their seal is on disk.
_WHOLE: set[tuple[int, int, int]] = set()
_ROOM = "`calque cache prune`, or set CALQUE_CACHE to a larger disk"
_OWN = "set CALQUE_CACHE to a folder of your own"
#: Names of entries, which are digests: whatever else lies in the folder is not ours.
_KEY = "[0-9a-f]" * 64
_SHUT = {errno.EACCES, errno.EPERM, errno.EROFS}


class Cache:
    """Directories named by the digest of what they hold, least recently used evicted over a size cap.

    An entry is made by a function that writes into a directory, and appears whole or not at all. A process
    compares its files with their checksums when it first finds it. Where the cache cannot be written, what
    is added lies elsewhere until the process ends.
    """

    def __init__(self, root: Path | None = None, limit: int | None = None) -> None:
        self.root = (root or cache_root()) / "vectors"
        self.limit = cache_limit() if limit is None else limit

    def find(self, key: str) -> Path | None:
        """The entry's directory, marked as used now, or None when it is not there or not whole."""
        other = _STAND_INS.get(self.root)
        if other is not None and (there := other.find(key)) is not None:
            return there
        folder = self.root / key
        with creating(self.root, _OWN):
            try:
                _touch(folder / FINISHED)
                told = (folder / SUMS).stat()
            except (FileNotFoundError, PermissionError):
                return None
        seal = (told.st_dev, told.st_ino, told.st_mtime_ns)
        if seal not in _WHOLE:
            if (file := damage(folder)) is not None:
                say(f"{folder / file} is damaged: what it held is computed again")
                return None
            _WHOLE.add(seal)
        return folder

    @contextmanager
    def add(self, key: str, label: str) -> Iterator[Path]:
        """A directory to fill; it becomes the entry when the block ends well. Old entries make room after."""
        cache = _stand_in(self) if _is_shut(self.root) else self
        with atomic_directory(cache.root / key, _ROOM) as partial:
            yield partial
            seal(partial)
            write_json(partial / FINISHED, {"label": label})
        cache.prune(keep=key)

    def entries(self) -> list[CacheEntry]:
        """What is there, most recently used first."""
        found, now = [], time.time()
        for marker in self.root.glob(f"{_KEY}/{FINISHED}"):
            with suppress(OSError):  # another process may be replacing or removing it
                if (used := marker.stat().st_mtime) > now:  # the clock was set back: it ages from now on
                    os.utime(marker)
                    used = now
                size = sum(file.stat().st_size for file in marker.parent.iterdir())
                found.append(CacheEntry(marker.parent.name, _label(marker), size, used))
        return sorted(found, key=lambda entry: -entry.used)

    def prune(self, limit: int | None = None, keep: str | None = None) -> list[CacheEntry]:
        """Remove the least recently used until the rest fits; returns what was removed."""
        with creating(self.root, _OWN):
            sweep_all(self.root)
        for half in self.root.glob(_KEY):  # a process was killed while it removed it
            if not (half / FINISHED).exists():
                shutil.rmtree(half, ignore_errors=True)
        bound, total, removed = self.limit if limit is None else limit, 0, []
        for entry in self.entries():
            total += entry.size
            if total > bound and entry.key != keep:
                shutil.rmtree(self.root / entry.key, ignore_errors=True)
                if not (self.root / entry.key).exists():
                    removed.append(entry)
        return removed


def _touch(marker: Path) -> None:
    """Note that an entry is used now, where that can be written."""
    try:
        os.utime(marker)
    except OSError as error:
        if error.errno not in _SHUT:
            raise


def _is_shut(root: Path) -> bool:
    """Whether the system lets nothing be written into a folder, or does not let it be made."""
    with creating(root, _OWN):
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if error.errno in _SHUT:
                return True
            raise
    return not os.access(root, os.W_OK | os.X_OK)


#: By the folder of a cache that cannot be written: what takes its place in this process.
_STAND_INS: dict[Path, Cache] = {}


def _stand_in(cache: Cache) -> Cache:
    """A cache that goes with this process, in place of one that cannot be written."""
    if cache.root not in _STAND_INS:
        say(f"{cache.root} cannot be written: vectors are kept until this process ends ({_OWN})")
        held = ExitStack()
        atexit.register(held.close)
        _STAND_INS[cache.root] = Cache(held.enter_context(scratch()), cache.limit)
    return _STAND_INS[cache.root]


def _label(marker: Path) -> str:
    """What an entry holds, in words."""
    try:
        return str(read_json(marker)["label"])
    except (BadInput, KeyError, TypeError):
        return "damaged"
