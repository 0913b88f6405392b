"""Vectors kept on disk, one entry a layer, so that nothing is encoded twice."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from calque.encoders.anchors import block_rows, word_chunks
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.rows import Rows
from calque.encoders.spans import check_sentences
from calque.encoders.wrapped import Wrapped
from calque.errors import BadInput, BadSetting
from calque.files import Cache, read_json, text_digest, write_json
from calque.store import load_array, save_array
from calque.types import (
    Encoder,
    Flags,
    Floats,
    Longs,
    Pooling,
    SentencePooling,
    Sentences,
    WordIndex,
    WordVectors,
)

_VERSION = "1"
_HALF_MAX = float(np.finfo(np.float16).max)


class _Text(NamedTuple):
    """What vectors are of: its fingerprint, and its size in words."""

    fingerprint: str
    told: str


@dataclass(frozen=True, eq=False)
class _Part:
    """Some of the vectors asked for. Shape: vectors (layers, present, d), present (asked,)."""

    vectors: NDArray[Any]
    present: Flags
    dropped: dict[str, int]


@dataclass(frozen=True, eq=False)
class _Entry:
    """One layer as it lies in the cache, in parts that were made one after the other."""

    parts: tuple[NDArray[Any], ...]
    present: Flags
    dropped: dict[str, int]

    @classmethod
    def load(cls, folder: Path) -> _Entry:
        about = read_json(folder / "about.json")
        parts = tuple(load_array(folder / f"vectors.{i}.npy") for i in range(len(about["shapes"])))
        present = np.asarray(load_array(folder / "present.npy"))
        if [list(part.shape) for part in parts] != about["shapes"] or present.sum() != sum(map(len, parts)):
            raise BadInput("its arrays do not fit together", where=folder)
        return cls(parts, present, dict(about["dropped"]))

    @property
    def vectors(self) -> NDArray[Any]:
        """Shape: (present, d)."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)


class _Replanned(Exception):
    """Lack of memory has halved the batches while vectors were made."""


class CachedEncoder(Wrapped):
    """Another encoder, with its vectors rounded to half precision and kept.

    Vectors are rounded before they are first used, so a run that finds them in the cache and one that does
    not give the same results. A layer with values beyond half precision's 65504 is kept in single precision.
    """

    def __init__(self, inner: Encoder, cache: Cache | None = None) -> None:
        self.inner, self.cache = inner, cache or Cache()

    def word_vectors(
        self,
        sentences: Sentences,
        words: WordIndex | None = None,
        *,
        layers: Sequence[int],
        pooling: Pooling = "mean",
    ) -> WordVectors:
        """As the inner encoder's, in half precision and memory-mapped; only missing layers are computed."""
        asked = WordIndex.every(sentences) if words is None else words
        check_order(asked, len(sentences))
        if not len(sentences):
            return self.inner.word_vectors(sentences, asked, layers=layers, pooling=pooling)

        def compute(missing: Sequence[int]) -> Iterator[_Part]:
            # Parts do not depend on which layers are missing, or a layer's last bits would.
            for first, last, part in word_chunks(asked, len(sentences), (self.depth + 1) * self.width):
                chunk = sentences.select(range(first, last))
                made = self.inner.word_vectors(chunk, part, layers=missing, pooling=pooling)
                yield _Part(made.vectors, made.present, dict(made.dropped))

        text = _Text(sentences.fingerprint, f"{len(sentences)} {sentences.language} sentences")
        found = self._through(text, f"words {pooling}", words_digest(asked), layers, compute)
        return WordVectors(tuple(layers), cast(Any, LayerStack(found)), found[0].present, found[0].dropped)

    def sentence_vectors(
        self, sentences: Sentences, *, layers: Sequence[int], pooling: SentencePooling = "mean"
    ) -> Floats:
        """As the inner encoder's, rounded to half precision."""
        found = self.sentence_entries(sentences, layers, pooling)
        return np.stack([np.asarray(entry.vectors, np.float32) for entry in found])

    def sentence_entries(
        self, sentences: Sentences, layers: Sequence[int], pooling: SentencePooling
    ) -> list[_Entry]:
        """Sentence vectors as they lie in the cache, the missing ones made."""
        size = block_rows((self.depth + 1) * self.width)

        def compute(missing: Sequence[int]) -> Iterator[_Part]:
            for first in range(0, len(sentences), size):
                chunk = sentences.select(range(first, min(first + size, len(sentences))))
                made = self.inner.sentence_vectors(chunk, layers=missing, pooling=pooling)
                yield _Part(made, np.ones(len(chunk), np.bool_), {})

        text = _Text(sentences.fingerprint, f"{len(sentences)} {sentences.language} sentences")
        return self._through(text, f"sentences {pooling}", "", layers, compute)

    def unit_vectors(self, rows: Rows, *, layers: Sequence[int], pooling: Pooling = "mean") -> LayerStack:
        """Vectors of the units of these rows, in half precision and memory-mapped.

        Stands for (layers, units, d). Only an encoder that reads rows of pieces has any.
        """
        inner = self.inner
        if not isinstance(inner, HuggingFaceEncoder):
            raise BadSetting(f"{self.name} does not read pieces", remedy="give a Hugging Face encoder")

        def compute(missing: Sequence[int]) -> Iterator[_Part]:
            most = block_rows((self.depth + 1) * self.width)
            for first, last in stretches(np.diff(rows.first), most):
                part = rows.part(first, last)
                made = inner.unit_vectors(part, layers=missing, pooling=pooling)
                yield _Part(made, np.ones(len(part.units), np.bool_), {})

        text = _Text(rows.fingerprint, f"{len(rows)} rows")
        return LayerStack(self._through(text, f"units {pooling}", "", layers, compute))

    def _through(
        self, text: _Text, what: str, digest: str, layers: Sequence[int], compute: _Compute
    ) -> list[_Entry]:
        """The entries of these layers, from the cache where they are there."""
        parts = (_VERSION, self.fingerprint, text.fingerprint, what, digest)
        keys = {layer: text_digest(*parts, str(layer)) for layer in layers}
        found = {layer: entry for layer in keys if (entry := self._read(keys[layer])) is not None}
        missing = [layer for layer in keys if layer not in found]
        if missing:
            label = f"{self.name}, {text.told}, {what}, layer"
            names = {keys[layer]: f"{label} {layer}" for layer in missing}
            try:
                found |= dict(zip(missing, self._make(names, self._alike(compute(missing))), strict=True))
            except _Replanned:
                return self._through(text, what, digest, layers, compute)
        return [found[layer] for layer in layers]

    def _alike(self, parts: Iterable[_Part]) -> Iterator[_Part]:
        """Parts as long as all are read in batches of one size: vectors of others have another key."""
        before = self.fingerprint
        for part in parts:
            if self.fingerprint != before:
                raise _Replanned
            yield part

    def _make(self, names: dict[str, str], parts: Iterable[_Part]) -> list[_Entry]:
        """Write one entry a layer, part by part, so that never more than a part is in memory."""
        made: dict[str, _Entry] = {}
        with ExitStack() as stack:
            folders = [stack.enter_context(self._adding(key, names[key], made)) for key in names]
            write_parts(folders, parts)
        return [made[key] for key in names]

    @contextmanager
    def _adding(self, key: str, label: str, made: dict[str, _Entry]) -> Iterator[Path]:
        """An entry to fill, opened before it is in place: others may push it out of the cache at once."""
        with self.cache.add(key, label) as folder:
            yield folder
            made[key] = _Entry.load(folder)

    def _read(self, key: str) -> _Entry | None:
        """An entry, or None when it is not there or not whole."""
        folder = self.cache.find(key)
        try:
            return None if folder is None else _Entry.load(folder)
        except (BadInput, OSError, KeyError, TypeError):
            return None


def sentence_layers(
    encoder: Encoder, sentences: Sentences, *, layers: Sequence[int], pooling: SentencePooling = "mean"
) -> Iterator[Floats]:
    """Sentence vectors a layer at a time. Shape: each (sentences, d).

    With a cache under the encoder's maps all layers are made at once and only one is in memory; without one,
    all are.
    """
    inner: object = encoder
    while isinstance(inner, Wrapped) and not isinstance(inner, CachedEncoder):
        inner = inner.inner
    if not isinstance(inner, CachedEncoder):
        yield from encoder.sentence_vectors(sentences, layers=layers, pooling=pooling)
        return
    inner.sentence_entries(sentences, layers, pooling)
    for layer in layers:
        (vectors,) = encoder.sentence_vectors(sentences, layers=[layer], pooling=pooling)
        yield vectors


def write_parts(folders: Sequence[Path], parts: Iterable[_Part]) -> None:
    """Vectors of each layer into its folder, rounded; what the layers share into every one."""
    present, dropped, shapes = [np.zeros(0, np.bool_)], Counter[str](), []
    for number, part in enumerate(parts):
        for folder, vectors in zip(folders, part.vectors, strict=True):
            save_array(folder / f"vectors.{number}.npy", rounded(vectors))
        present.append(part.present)
        dropped.update(part.dropped)
        shapes.append(list(part.vectors.shape[1:]))
    for folder in folders:
        save_array(folder / "present.npy", np.concatenate(present))
        write_json(folder / "about.json", {"dropped": dropped, "shapes": shapes})


def stretches(sizes: Longs, most: int) -> Iterator[tuple[int, int]]:
    """Rows one after the other in stretches that hold at most `most`, or one row. Shape: sizes (rows,).

    >>> list(stretches(np.array([2, 2, 5, 1]), 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    first, held = 0, 0
    for row, size in enumerate(sizes.tolist()):
        if held and held + size > most:
            yield first, row
            first, held = row, 0
        held += size
    if first < len(sizes):
        yield first, len(sizes)


_Compute = Callable[[Sequence[int]], Iterator[_Part]]


class LayerStack:
    """Layers on disk that stand for one array (layers, n, d) and are read one at a time.

    Anything but taking a layer reads them all.
    """

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self._entries = list(entries)

    @property
    def shape(self) -> tuple[int, ...]:
        parts = self._entries[0].parts
        return (len(self._entries), sum(map(len, parts)), parts[0].shape[1])

    @property
    def parts(self) -> list[tuple[NDArray[Any], ...]]:
        """Every layer as it lies on disk, in parts. Shape: each part (rows, d)."""
        return [entry.parts for entry in self._entries]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (entry.vectors for entry in self._entries)

    def __getitem__(self, key: Any) -> Any:
        one = isinstance(key, int | np.integer)
        return self._entries[key].vectors if one else np.asarray(self)[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = np.stack(list(self))
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


def check_order(words: WordIndex, sentences: int) -> None:
    """Words are cached in parts of the text, so they must come in its order."""
    check_sentences(words, sentences)
    if (np.diff(words.sentence) < 0).any():
        raise BadInput("the words asked for are not ordered by sentence")


def rounded(vectors: NDArray[Any]) -> NDArray[Any]:
    """Half precision where every value fits, single precision otherwise.

    >>> rounded(np.array([1.0, 2.0])).dtype.name, rounded(np.array([1.0, 1e5])).dtype.name
    ('float16', 'float32')
    """
    top = max(abs(float(vectors.max(initial=0))), abs(float(vectors.min(initial=0))))
    return vectors.astype(np.float16 if top <= _HALF_MAX else np.float32)


def words_digest(words: WordIndex) -> str:
    """SHA-256 of which words are asked for."""
    digest = hashlib.sha256()
    for column in words:
        digest.update(np.asarray(column, np.int64).tobytes())
    return digest.hexdigest()
