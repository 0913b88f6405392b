"""Lines of text files as people have them: UTF-8, plain or compressed, told by the suffix."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from calque.documents import decoded
from calque.errors import BadInput, MissingExtra

_CHUNK = 1 << 17
#: A packed file may hold any amount, and is read piece by piece; no line of it may be longer than this, and
#: what has to be read whole no larger than this, or this many times the file.
LONGEST_LINE, LARGEST, RATIO = 1 << 28, 1 << 30, 100
#: Of .zst so little at a time: 4 packed bytes can stand for 128 KiB.
_PACKED = 1 << 12


class Bounded(io.RawIOBase):
    """Unpacked bytes, refused where they would fill the memory: a small file can stand for any number."""

    def __init__(self, packed: Any, path: Path) -> None:
        self._inner, self._path = packed, path
        self._line = self._position = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self._inner.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        size: int = self._inner.readinto(buffer)
        end = bytes(buffer[:size]).rfind(b"\n")
        self._line = size - end - 1 if end >= 0 else self._line + size
        self._position += size
        self._check(self._line, LONGEST_LINE, "a line")
        return size

    def readall(self) -> bytes:
        """All that is left at once."""
        parts, most = [], max(LARGEST, RATIO * self._path.stat().st_size)
        while part := self._inner.read(_CHUNK):
            parts.append(part)
            self._position += len(part)
            self._check(self._position, most, "more")
        return b"".join(parts)

    def _check(self, size: int, most: int, what: str) -> None:
        if size > most:
            raise BadInput(
                f"unpacked it holds {what} of over {most >> 20} MiB",
                where=self._path,
                remedy="unpack it first",
            )


class _ZstdFile(io.RawIOBase):
    """A .zst file, of one frame or several, that notices when it was cut short (the package does not)."""

    def __init__(self, path: Path) -> None:
        try:
            import zstandard
        except ImportError:
            raise MissingExtra("reading .zst files", "zstd") from None
        self._package: Any = zstandard
        self._frame: Any = None
        self._file = path.open("rb")
        self._position, self._packed, self._plain = 0, b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        while not self._plain and self._unpack():
            pass
        size = min(len(buffer), len(self._plain))
        buffer[:size], self._plain = self._plain[:size], self._plain[size:]
        self._position += size
        return size

    def _unpack(self) -> bool:
        """Unpack some more; False at the end."""
        self._packed = self._packed or self._file.read(_PACKED)
        if not self._packed:
            if self._frame is not None:
                raise EOFError("it was cut short")
            return False
        if self._frame is None:
            self._frame = self._package.ZstdDecompressor().decompressobj()
        self._plain, self._packed = memoryview(self._frame.decompress(self._packed)), b""
        if self._frame.eof:
            self._packed, self._frame = self._frame.unused_data, None
        return True


def _broken() -> tuple[type[Exception], ...]:
    """What broken compressed files raise."""
    zstandard = sys.modules.get("zstandard")
    mine = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)
    return mine if zstandard is None else (*mine, zstandard.ZstdError)


_OPENERS: dict[str, Callable[[Path], Any]] = {
    "": lambda path: path.open("rb"),
    ".gz": lambda path: bounded(gzip.GzipFile(path), path),
    ".xz": lambda path: bounded(lzma.LZMAFile(path), path),  # noqa: SIM115
    ".zst": lambda path: bounded(io.BufferedReader(_ZstdFile(path), _CHUNK), path),
}


def bounded(packed: Any, path: Path) -> io.BufferedReader:
    """An open packed file that cannot fill the memory."""
    return io.BufferedReader(Bounded(packed, path), _CHUNK)


def bare_suffix(path: str | Path) -> str:
    """The suffix that tells the format, whatever the compression.

    >>> bare_suffix("news.en-de.TSV.gz")
    '.tsv'
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _OPENERS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@contextmanager
def open_binary(path: str | Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed. What goes wrong, now or while reading, names the file."""
    opener = _OPENERS.get(Path(path).suffix.lower(), _OPENERS[""])
    if "\0" in str(path) or not _is_whole(str(path)):
        raise BadInput("not a name that a file can have", where=path)
    try:
        refuse_pipe(Path(path))
        with opener(Path(path)) as handle:
            yield cast(IO[bytes], handle)
    except FileNotFoundError:
        raise BadInput("no such file", where=path) from None
    except _broken() as error:
        raise BadInput(f"broken compressed file: {error}", where=path, remedy="fetch it again") from None
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror or error}", where=path) from None


def refuse_pipe(path: Path) -> None:
    """Files are opened more than once, and of a pipe the second time begins where the first stopped."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise BadInput(
            "is a pipe or a device, which cannot be read more than once",
            where=path,
            remedy="write it to a file first",
        )


def _is_whole(name: str) -> bool:
    try:
        return bool(os.fsencode(name))
    except UnicodeEncodeError:
        return False


def read_lines(path: str | Path) -> Iterator[str]:
    """Lines of a UTF-8 file without their ends.

    Lines end at "\\n" or "\\r\\n" and nowhere else, so that a U+2028 or U+0085 inside a sentence leaves two
    line-aligned files aligned. A byte order mark is dropped. A file whose lines end at "\\r" is refused.
    """
    with open_binary(path) as handle:
        for number, raw in enumerate(handle, 1):
            try:
                line = str(raw, "utf-8")
            except UnicodeDecodeError:
                line = decoded(raw, path, line=number, offset=handle.tell() - len(raw))
            line = _first(line, path) if number == 1 else line
            yield line.removesuffix("\n").removesuffix("\r")


def _first(line: str, path: str | Path) -> str:
    """The first line without a byte order mark."""
    if not line.endswith("\n") and "\r" in line.removesuffix("\r"):
        raise BadInput(
            "its lines end at carriage returns only, so that all of it is one line",
            where=path,
            remedy=r"convert its line ends: tr '\r' '\n'",
        )
    return line.removeprefix("\ufeff")
