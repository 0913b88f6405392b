"""Vectors kept on disk, one entry a layer, so that nothing is encoded twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from calque.errors import BadInput
from calque.files import Cache, read_json, text_digest, write_json
from calque.store import load_array, save_array
from calque.types import (
    Encoder,
    Flags,
    Floats,
    Pooling,
    SentencePooling,
    Sentences,
    States,
    TextBatch,
    WordIndex,
    WordVectors,
)

_VERSION = "1"
_HALF_MAX = float(np.finfo(np.float16).max)


class CachedEncoder:
    """Another encoder, with its vectors rounded to half precision and kept.

    Vectors are rounded before they are first used, so a run that finds them in the cache and one that does
    not give the same results. A layer with values beyond half precision's 65504 is kept in single precision.
    """

    def __init__(self, inner: Encoder, cache: Cache | None = None) -> None:
        self.inner, self.cache = inner, cache or Cache()

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def depth(self) -> int:
        return self.inner.depth

    @property
    def languages(self) -> frozenset[str] | None:
        return self.inner.languages

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    def batch(self, sentences: Sentences) -> TextBatch:
        return self.inner.batch(sentences)

    def states(self, batch: TextBatch, layers: Sequence[int]) -> States:
        return self.inner.states(batch, layers)

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

        def compute(missing: Sequence[int]) -> Iterator[_Entry]:
            made = self.inner.word_vectors(sentences, asked, layers=missing, pooling=pooling)
            return (_Entry(rounded(made.layer(x)), made.present, dict(made.dropped)) for x in missing)

        found = self._through(sentences, f"words {pooling}", words_digest(asked), layers, compute)
        first = found[0]
        stack = cast(Any, LayerStack([entry.vectors for entry in found]))
        return WordVectors(tuple(layers), stack, first.present, first.dropped)

    def sentence_vectors(
        self, sentences: Sentences, *, layers: Sequence[int], pooling: SentencePooling = "mean"
    ) -> Floats:
        """As the inner encoder's, rounded to half precision."""
        present = np.ones(len(sentences), np.bool_)

        def compute(missing: Sequence[int]) -> Iterator[_Entry]:
            made = self.inner.sentence_vectors(sentences, layers=missing, pooling=pooling)
            return (_Entry(rounded(vectors), present, {}) for vectors in made)

        found = self._through(sentences, f"sentences {pooling}", "", layers, compute)
        return np.stack([np.asarray(entry.vectors, np.float32) for entry in found])

    def _through(
        self, sentences: Sentences, what: str, digest: str, layers: Sequence[int], compute: _Compute
    ) -> list[_Entry]:
        """The entries of these layers, from the cache where they are there."""
        parts = (_VERSION, self.fingerprint, sentences.fingerprint, what, digest)
        keys = {layer: text_digest(*parts, str(layer)) for layer in layers}
        found = {layer: entry for layer in keys if (entry := self._read(keys[layer])) is not None}
        missing = [layer for layer in keys if layer not in found]
        if missing:
            label = f"{self.name}, {len(sentences)} {sentences.language} sentences, {what}"
            for layer, entry in zip(missing, compute(missing), strict=True):
                found[layer] = self._write(keys[layer], f"{label}, layer {layer}", entry)
        return [found[layer] for layer in layers]

    def _read(self, key: str) -> _Entry | None:
        """An entry, or None when it is not there or not whole."""
        folder = self.cache.find(key)
        try:
            return None if folder is None else _Entry.load(folder)
        except (BadInput, OSError, KeyError, TypeError):
            return None

    def _write(self, key: str, label: str, entry: _Entry) -> _Entry:
        with self.cache.add(key, label) as folder:
            entry.save(folder)
        return self._read(key) or entry


class _Entry:
    """One layer's vectors as they lie in the cache."""

    def __init__(self, vectors: NDArray[Any], present: Flags, dropped: dict[str, int]) -> None:
        self.vectors, self.present, self.dropped = vectors, present, dropped

    def save(self, folder: Path) -> None:
        save_array(folder / "vectors.npy", self.vectors)
        save_array(folder / "present.npy", self.present)
        write_json(folder / "about.json", {"dropped": self.dropped, "shape": list(self.vectors.shape)})

    @classmethod
    def load(cls, folder: Path) -> _Entry:
        about = read_json(folder / "about.json")
        entry = cls(
            load_array(folder / "vectors.npy"),
            np.asarray(load_array(folder / "present.npy")),
            dict(about["dropped"]),
        )
        if list(entry.vectors.shape) != about["shape"] or entry.present.sum() != len(entry.vectors):
            raise BadInput("its arrays do not fit together", where=folder)
        return entry


_Compute = Callable[[Sequence[int]], Iterator[_Entry]]


class LayerStack:
    """Memory-mapped layers that stand for one array (layers, n, d) and are read one at a time.

    Anything but taking a layer reads them all.
    """

    def __init__(self, layers: Sequence[NDArray[Any]]) -> None:
        self._layers = list(layers)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self._layers), *self._layers[0].shape)

    @property
    def ndim(self) -> int:
        return 3

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(self._layers)

    def __getitem__(self, key: Any) -> Any:
        return self._layers[key] if isinstance(key, int | np.integer) else np.asarray(self)[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.stack(self._layers).astype(dtype or self.dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


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
