"""Tables of word vectors: fastText or GloVe text and word2vec binaries, read as they stream by."""

from __future__ import annotations

import gzip
import hashlib
import mmap
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from calque.errors import BadInput, BadSetting
from calque.text.lines import Bounded, bounded, open_binary
from calque.types import Floats, Longs, Vocabulary

_FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")


@dataclass(frozen=True, eq=False)
class WordTable:
    """Word forms and their vectors. Shape: vectors (types, d).

    >>> table = WordTable.of(["the", "Cat"], np.eye(2))
    >>> table.rows(["Cat", "The", "dog"], lowercase=True).tolist()
    [1, 0, -1]
    """

    words: Vocabulary
    vectors: Floats

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.words) != len(self.vectors):
            shape = self.vectors.shape
            raise BadInput(f"{len(self.words)} words do not fit vectors of shape {shape}")

    @classmethod
    def of(cls, words: Iterable[str], vectors: NDArray[Any]) -> WordTable:
        return cls(Vocabulary.of(words), np.asarray(vectors, np.float32))

    def __len__(self) -> int:
        return len(self.words)

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def place(self) -> dict[str, int]:
        """The row of each word; of equal words the first."""
        strings = self.words.strings
        return dict(zip(reversed(strings), range(len(strings) - 1, -1, -1), strict=True))

    def rows(self, words: Iterable[str], *, lowercase: bool) -> Longs:
        """The row of each word as it is written, else in lower case, else -1. Shape: (words,)."""
        place = self.place
        if lowercase:
            found = (place.get(word, place.get(word.lower(), -1)) for word in words)
        else:
            found = (place.get(word, -1) for word in words)
        return np.fromiter(found, np.int64)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"{self.vectors.shape}".encode())
        for part in (self.words.blob, self.words.offsets, self.vectors):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()


class _Rows:
    """Words and vectors as they are read: doubles skipped, mistakes named by their line."""

    def __init__(self, path: Path, width: int, limit: int | None) -> None:
        if width < 1:
            raise BadInput("its first line holds no vector", where=path, line=1)
        self.path, self.width, self.limit = path, width, limit
        self.seen: dict[str, None] = {}
        self.read = 0
        self.numbers = bytearray()

    def add(self, word: bytes, values: Floats | None, line: int) -> bool:
        """Take one row; False when there are enough."""
        if values is None or len(values) != self.width:
            found = "something that is no number" if values is None else f"{len(values)} values"
            raise BadInput(f"{found}, where {self.width} values should be", where=self.path, line=line)
        if not np.isfinite(values).all():
            raise BadInput("a value that is not finite", where=self.path, line=line)
        self.read += 1
        form = word.decode("utf-8", "replace")
        if form not in self.seen:
            self.seen[form] = None
            self.numbers += values.tobytes()
        return self.limit is None or len(self.seen) < self.limit

    def table(self) -> WordTable:
        if not self.seen:
            raise BadInput("no words here", where=self.path)
        vectors = np.frombuffer(self.numbers, np.float32).reshape(-1, self.width)
        return WordTable(Vocabulary.of(self.seen), vectors)


def read_vec(path: Path | str, *, limit: int | None = None) -> WordTable:
    """Read word vectors: fastText or GloVe text, or a word2vec binary when the name ends in `.bin`.

    Either may be gzipped. `limit` takes the first so many words, which are the most frequent in the usual
    files. Of equal words the first is kept.
    """
    path = Path(path)
    if limit is not None and limit < 1:
        raise BadSetting(f"limit is {limit}", remedy="at least 1 word")
    if not path.is_file():
        raise BadInput("no such file", where=path)
    read = _read_binary if path.name.removesuffix(".gz").endswith(".bin") else _read_text
    try:
        with np.errstate(over="ignore"):
            return read(path, limit)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"broken gzip: {error}", where=path) from None


def _open(path: Path) -> AbstractContextManager[IO[bytes]]:
    with path.open("rb") as handle:
        zipped = handle.read(2) == b"\x1f\x8b"
    return bounded(gzip.GzipFile(path), path) if zipped else open_binary(path)


def _read_text(path: Path, limit: int | None) -> WordTable:
    with _open(path) as handle:
        first = handle.readline()
        promised = _header(first)
        width = promised[1] if promised else len(first.split()) - 1
        rows = _Rows(path, width, limit)
        # Lines end at line feeds only: a word may hold any of the other characters that end lines.
        lines = enumerate(chain([] if promised else [first], handle), 2 if promised else 1)
        more = all(rows.add(*_split(line, width), number) for number, line in lines if line.strip())
    if promised and more and rows.read < promised[0]:
        raise BadInput(f"ends after {rows.read} words of {promised[0]}", where=path)
    return rows.table()


def _header(line: bytes) -> tuple[int, int] | None:
    """Number of words and of dimensions, when a file begins with these."""
    fields = line.split()
    numbers = len(fields) == 2 and all(field.isdigit() and len(field) < 19 for field in fields)
    return (int(fields[0]), int(fields[1])) if numbers else None


def _split(line: bytes, width: int) -> tuple[bytes, Floats | None]:
    """A line's word and values.

    A word may hold spaces: when not all that follows its first space are numbers, values count from the end.
    """
    text = line.rstrip(b" \r\n")
    word, _, rest = text.partition(b" ")
    values = _numbers(rest)
    if values is not None:
        return word, values
    fields = text.rsplit(b" ", width)
    return fields[0], _numbers(b" ".join(fields[1:]))


def _numbers(text: bytes) -> Floats | None:
    """Numbers parted by spaces, or None. A JSON parser is four times as fast as NumPy's own."""
    from pydantic_core import from_json

    if not text.translate(None, b"0123456789+-.eE "):  # JSON could hold more than numbers
        with suppress(ValueError, OverflowError):
            return np.array(from_json(b"[" + text.replace(b" ", b",") + b"]"), np.float32)
    try:
        return np.array(text.split(), np.float32)
    except ValueError:
        return None


@contextmanager
def _mapped(path: Path) -> Iterator[bytes | mmap.mmap]:
    """A file's bytes, read as they are needed unless it is gzipped."""
    with _open(path) as handle:
        if isinstance(handle.raw, Bounded) or path.stat().st_size == 0:  # type: ignore[attr-defined]
            yield handle.read()
        else:
            with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield data


def _read_binary(path: Path, limit: int | None) -> WordTable:
    with _mapped(path) as data:
        if data[:4] == _FASTTEXT_MAGIC:
            raise BadInput("a fastText model, not vectors", where=path, remedy="give its .vec file")
        end = data.find(b"\n")
        promised = _header(data[: max(end, 0)])
        if promised is None:
            raise BadInput("no word2vec header", where=path, remedy="text files should not be named .bin")
        rows, at = _Rows(path, promised[1], limit), end + 1
        ended = _line_ended(data, at, promised[1])
        for number in range(1, promised[0] + 1):
            start = _vector_start(data, at, promised[1], ended)
            stop = start + 4 * promised[1]
            if not start or stop > len(data):
                raise BadInput(f"ends after {number - 1} words of {promised[0]}", where=path)
            values = np.frombuffer(data[start:stop], "<f4").astype(np.float32)
            if not rows.add(data[at : start - 1].lstrip(b"\n"), values, number):
                break
            at = stop
    return rows.table()


def _line_ended(data: bytes | mmap.mmap, at: int, width: int) -> bool:
    """Whether each vector is followed by a line feed, as the original program writes."""
    stop = data.find(b" ", at) + 1 + 4 * width
    return data[stop : stop + 1] == b"\n"


def _vector_start(data: bytes | mmap.mmap, at: int, width: int, ended: bool) -> int:
    """Where a word's vector begins: after the first space, or after a later one when the word holds spaces.

    Only line feeds after vectors can tell the two apart.
    """
    first = start = data.find(b" ", at) + 1
    while ended and start and data[start + 4 * width : start + 4 * width + 1] not in (b"\n", b""):
        start = data.find(b" ", start, at + 1000) + 1
    return start or first
