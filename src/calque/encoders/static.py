"""Static vectors as an encoder: one vector a word form, one table a language, layer 0 only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from calque.documents import shaped
from calque.encoders.specs import by_language, is_by_language, names_vectors
from calque.encoders.tables import WordTable as WordTable
from calque.encoders.tables import read_vec as read_vec
from calque.encoders.wrapped import Wrapped
from calque.errors import BadInput, BadSetting
from calque.files import atomic_file, read_json, text_digest, write_json
from calque.types import (
    Encoder,
    Flags,
    Floats,
    Longs,
    Pooling,
    SentencePooling,
    Sentences,
    States,
    TextBatch,
    Vocabulary,
    WordIndex,
    WordVectors,
)

ABOUT, TABLES = "static.json", "tables.safetensors"
_KIND = "static vectors"
_AGAIN = "make the folder again"


# ------------------------------------------------------------------------------------------- encoders


class StaticEncoder:
    """Word vectors that do not look at the sentence. A word without a row is not present.

    A word is looked up as it is written and, with `lowercase`, in lower case when that fails. With
    `sentence_augmented`, its vector is joined by the mean, maximum and minimum over its sentence, so that
    the width is four times as large.
    """

    depth = 0

    def __init__(
        self,
        tables: Mapping[str, WordTable],
        *,
        name: str = "static",
        lowercase: bool = True,
        sentence_augmented: bool = False,
    ) -> None:
        widths = {language: table.width for language, table in tables.items()}
        if len(set(widths.values())) != 1:
            told = ", ".join(f"{language} {width}" for language, width in widths.items()) or "none given"
            raise BadSetting(f"static vectors need tables of one width, not {told}")
        self.tables, self.name, self.lowercase = dict(tables), name, lowercase
        self.sentence_augmented = sentence_augmented

    @property
    def width(self) -> int:
        plain = next(iter(self.tables.values())).width
        return 4 * plain if self.sentence_augmented else plain

    @property
    def languages(self) -> frozenset[str]:
        return frozenset(self.tables)

    @cached_property
    def fingerprint(self) -> str:
        tables = (f"{language} {table.fingerprint}" for language, table in sorted(self.tables.items()))
        return text_digest(_KIND, str(self.lowercase), str(self.sentence_augmented), *tables)

    def batch(self, sentences: Sentences) -> TextBatch:
        """Refused: there is nothing to differentiate."""
        _no_states(self.name)

    def states(self, batch: TextBatch, layers: Sequence[int]) -> States:
        """Refused: there is nothing to differentiate."""
        _no_states(self.name)

    def word_vectors(
        self,
        sentences: Sentences,
        words: WordIndex | None = None,
        *,
        layers: Sequence[int],
        pooling: Pooling = "mean",
    ) -> WordVectors:
        """Vectors of these words; every way of pooling is the same. Shape: (layers, present words, d)."""
        self._check_layers(layers)
        if self.sentence_augmented:
            return SentenceAugmented(self._plain()).word_vectors(sentences, words, layers=layers)
        asked = WordIndex.every(sentences) if words is None else words
        rows = self._rows(sentences, asked)
        vectors = self.tables[sentences.language].vectors[rows[rows >= 0]]
        return WordVectors(tuple(layers), _stack(vectors, layers), rows >= 0, _dropped(rows < 0, asked))

    def sentence_vectors(
        self, sentences: Sentences, *, layers: Sequence[int], pooling: SentencePooling = "mean"
    ) -> Floats:
        """The mean of a sentence's known words, zero without any. Shape: (layers, sentences, d)."""
        self._check_layers(layers)
        if self.sentence_augmented:
            inner = SentenceAugmented(self._plain())
            return inner.sentence_vectors(sentences, layers=layers, pooling=pooling)
        _no_special(pooling)
        from scipy.sparse import csr_array

        rows = self._rows(sentences, WordIndex.every(sentences))
        ends = np.concatenate([[0], np.cumsum(rows >= 0)])[sentences.offsets]
        counts = np.diff(ends)
        weights = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
        table = self.tables[sentences.language]
        mean = csr_array((weights, rows[rows >= 0], ends), shape=(len(sentences), len(table)))
        return _stack(np.asarray(mean @ table.vectors, np.float32), layers)

    def _plain(self) -> StaticEncoder:
        return StaticEncoder(self.tables, name=self.name, lowercase=self.lowercase)

    def _check_layers(self, layers: Sequence[int]) -> None:
        wrong = [layer for layer in layers if layer != 0]
        if wrong:
            raise BadSetting(f"static vectors have no layer {wrong[0]}", remedy="layer 0 is the only one")

    def _rows(self, sentences: Sentences, words: WordIndex) -> Longs:
        """The table row of each word, -1 where there is none. Shape: (words,)."""
        if sentences.unit == "piece":
            raise BadSetting(
                f"{self.name} has static vectors of words: it has no pieces", remedy="give words"
            )
        if sentences.language not in self.tables:
            known = ", ".join(sorted(self.tables))
            raise BadSetting(
                f"{self.name} has no vectors for {sentences.language!r}", remedy=f"known: {known}"
            )
        rows = np.full(len(words.word), -1, np.int64)
        real = words.word >= 0
        types, inverse = np.unique(
            sentences.at(WordIndex(words.sentence[real], words.word[real])), return_inverse=True
        )
        strings = sentences.vocabulary.strings
        found = self.tables[sentences.language].rows(
            [strings[i] for i in types.tolist()], lowercase=self.lowercase
        )
        rows[real] = found[inverse]
        return rows


class SentenceAugmented(Wrapped):
    """Any encoder's word vectors, each joined by the mean, maximum and minimum over its sentence.

    The parts are joined after whatever maps the inner encoder applies. Special tokens have no such vector.
    """

    def __init__(self, inner: Encoder) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return f"{self.inner.name}+sentence"

    @property
    def width(self) -> int:
        return 4 * self.inner.width

    @property
    def fingerprint(self) -> str:
        return text_digest("sentence augmented", self.inner.fingerprint)

    def batch(self, sentences: Sentences) -> TextBatch:
        """Refused: there is nothing to differentiate."""
        _no_states(self.name)

    def states(self, batch: TextBatch, layers: Sequence[int]) -> States:
        """Refused: there is nothing to differentiate."""
        _no_states(self.name)

    def word_vectors(
        self,
        sentences: Sentences,
        words: WordIndex | None = None,
        *,
        layers: Sequence[int],
        pooling: Pooling = "mean",
    ) -> WordVectors:
        """Vectors of these words. Shape: (layers, present words, 4 d)."""
        asked = WordIndex.every(sentences) if words is None else words
        whole = np.unique(asked.sentence).astype(np.int64)
        chosen = sentences.select(whole)
        sentence, held = self._every(chosen, layers, pooling)
        row = np.where(held.present, np.cumsum(held.present) - 1, -1)
        local = np.searchsorted(whole, asked.sentence)
        real = asked.word >= 0
        rows = np.full(len(asked.word), -1, np.int64)
        rows[real] = row[chosen.offsets[local[real]] + asked.word[real]]
        kept = rows[rows >= 0]
        parts, place = sentence_parts(held.vectors, sentence)
        vectors = np.concatenate([held.vectors[:, kept], parts[:, place[kept]]], -1)
        return WordVectors(tuple(layers), vectors, rows >= 0, _dropped(rows < 0, asked))

    def sentence_vectors(
        self, sentences: Sentences, *, layers: Sequence[int], pooling: SentencePooling = "mean"
    ) -> Floats:
        """The mean over a sentence's words, zero without any. Shape: (layers, sentences, 4 d)."""
        _no_special(pooling)
        sentence, held = self._every(sentences, layers, "mean")
        parts, _ = sentence_parts(held.vectors, sentence)
        vectors = np.zeros((len(layers), len(sentences), self.width), np.float32)
        vectors[:, np.unique(sentence)] = np.concatenate([parts[..., : self.inner.width], parts], -1)
        return vectors

    def _every(
        self, sentences: Sentences, layers: Sequence[int], pooling: Pooling
    ) -> tuple[Longs, WordVectors]:
        """Every word's vector, and the sentence of those that are present."""
        every = WordIndex.every(sentences)
        held = self.inner.word_vectors(sentences, every, layers=layers, pooling=pooling)
        return every.sentence[held.present].astype(np.int64), held


def augment(vectors: NDArray[Any], sentence_of_word: NDArray[Any]) -> NDArray[Any]:
    """Each word beside the mean, maximum and minimum over its sentence's words.

    Shape: vectors (..., words, d), sentence_of_word (words,) in rising order, to (..., words, 4 d).

    >>> augment(np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 7])).tolist()
    [[1.0, 2.0, 3.0, 1.0], [3.0, 2.0, 3.0, 1.0], [5.0, 5.0, 5.0, 5.0]]
    """
    parts, place = sentence_parts(vectors, sentence_of_word)
    return np.concatenate([vectors, parts[..., place, :]], -1)


def sentence_parts(vectors: NDArray[Any], sentence_of_word: NDArray[Any]) -> tuple[NDArray[Any], Longs]:
    """Mean, maximum and minimum of each sentence that has words, and which of these is each word's own.

    Shape: vectors (..., words, d), sentence_of_word (words,) in rising order, to (..., sentences, 3 d) and
    (words,).
    """
    new = np.diff(sentence_of_word, prepend=-1) != 0
    starts, place = np.flatnonzero(new), np.cumsum(new) - 1
    if not len(starts):
        return np.zeros((*vectors.shape[:-2], 0, 3 * vectors.shape[-1]), vectors.dtype), place
    counts = np.diff(starts, append=len(new))
    mean = np.add.reduceat(vectors, starts, -2) / counts[:, None].astype(vectors.dtype)
    most, least = (way.reduceat(vectors, starts, -2) for way in (np.maximum, np.minimum))
    return np.concatenate([mean, most, least], -1), place


def _stack(vectors: Floats, layers: Sequence[int]) -> Floats:
    return vectors[None] if len(layers) == 1 else np.stack([vectors] * len(layers))


def _dropped(missing: Flags, asked: WordIndex) -> dict[str, int]:
    special = int((asked.word < 0).sum())
    unknown = {"unknown": int(missing.sum()) - special}
    return {**unknown, "special": special} if special else unknown


def _no_states(name: str) -> NoReturn:
    raise BadSetting(
        f"{name} has fixed vectors, no hidden states that could be trained",
        remedy="use a linear aligner, or an encoder with layers",
    )


def _no_special(pooling: SentencePooling) -> None:
    if pooling != "mean":
        raise BadSetting(f"static vectors have no special token to pool by {pooling!r}", remedy="mean")


# ---------------------------------------------------------------------------------------------- files


def save_static(folder: Path, encoder: StaticEncoder) -> None:
    """Write an encoder into a folder, beside whatever is there; `static.json` comes last."""
    from safetensors.numpy import save_file

    tensors: dict[str, NDArray[Any]] = {}
    for language, table in encoder.tables.items():
        tensors[f"{language}.vectors"] = np.ascontiguousarray(table.vectors, np.float32)
        tensors[f"{language}.blob"] = np.ascontiguousarray(table.words.blob)
        tensors[f"{language}.offsets"] = np.ascontiguousarray(table.words.offsets)
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(folder / TABLES) as partial:
        save_file(tensors, partial)
    about = {
        "kind": _KIND,
        "version": 1,
        "name": encoder.name,
        "languages": sorted(encoder.tables),
        "width": encoder.width,
        "lowercase": encoder.lowercase,
        "sentence_augmented": encoder.sentence_augmented,
        "fingerprint": encoder.fingerprint,
    }
    write_json(folder / ABOUT, about)


def load_static(folder: Path) -> StaticEncoder:
    """Read what `save_static` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    about = read_json(folder / ABOUT)
    known = isinstance(about, dict) and about.get("kind") == _KIND and about.get("version") == 1
    if not known:
        raise BadInput("not static vectors that this version reads", where=folder / ABOUT)
    with shaped(folder / ABOUT, _AGAIN):
        languages, name = list(map(str, about["languages"])), str(about["name"])
        flags = {flag: bool(about[flag]) for flag in ("lowercase", "sentence_augmented")}
    with shaped(folder / TABLES, _AGAIN):
        try:
            held = load_file(folder / TABLES)
        except FileNotFoundError:
            raise BadInput("no such file", where=folder / TABLES) from None
        except (SafetensorError, OSError) as error:
            raise BadInput(str(error)) from None
        tables = {language: _table(held, language) for language in languages}
    return StaticEncoder(tables, name=name, **flags)


def _table(held: Mapping[str, NDArray[Any]], language: str) -> WordTable:
    words = Vocabulary(held[f"{language}.blob"], held[f"{language}.offsets"]).checked()
    vectors = held[f"{language}.vectors"]
    if vectors.dtype != np.float32 or not np.isfinite(vectors).all():
        raise BadInput(f"vectors of {language} that are not finite numbers of single precision")
    return WordTable(words, vectors)


# --------------------------------------------------------------------------------------- by name


def is_static_spec(spec: str) -> bool:
    """Whether an encoder's name means files of vectors, one a language.

    >>> is_static_spec("en=wiki.en.vec,de=wiki.de.vec"), is_static_spec("en=models/en,de=models/de")
    (True, False)
    """
    return is_by_language(spec) and names_vectors(spec)


def parse_static_spec(spec: str) -> dict[str, Path]:
    """Files by language.

    >>> {language: path.name for language, path in parse_static_spec("en=a/wiki.en.vec, de=b.vec").items()}
    {'en': 'wiki.en.vec', 'de': 'b.vec'}
    """
    return {language: Path(path).expanduser() for language, path in by_language(spec).items()}


def open_static_spec(spec: str, *, limit: int | None = None) -> StaticEncoder:
    """An encoder from files of vectors, as `en=wiki.en.vec,de=wiki.de.vec`."""
    files = parse_static_spec(spec)
    tables = {language: read_vec(path, limit=limit) for language, path in files.items()}
    return StaticEncoder(tables, name="+".join(path.name for path in files.values()))
