"""What crosses the doors between rooms: text, links, vectors, maps, results.

Everything here is a frozen dataclass over plain arrays. Torch appears in annotations only, so that text,
statistics and reports never load it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calque.errors import BadInput

if TYPE_CHECKING:
    import torch

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Doubles: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

#: Universal POS tags; a word's tag is an index into this tuple. Index 0 means that it is not known.
UPOS = ("_", "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
        "PUNCT", "SCONJ", "SYM", "VERB", "X")  # fmt: skip

#: Word indexes that ask for a special token in place of a word.
FIRST_SPECIAL, LAST_SPECIAL = -1, -2


# ---------------------------------------------------------------------------------------------- text


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Distinct words as one UTF-8 blob, so that millions of them can be memory-mapped.

    Shape: blob (bytes,), offsets (types + 1,).

    >>> words = Vocabulary.of(["the", "cat"])
    >>> len(words), words[1]
    (2, 'cat')
    """

    blob: Bytes
    offsets: Longs

    @classmethod
    def of(cls, words: Iterable[str]) -> Vocabulary:
        try:
            encoded = [word.encode("utf-8") for word in words]
        except UnicodeEncodeError as error:
            raise BadInput(f"half a character in the word {error.object!r}") from None
        lengths = np.fromiter((len(word) for word in encoded), np.int64, len(encoded))
        return cls(np.frombuffer(b"".join(encoded), np.uint8), _offsets(lengths))

    def checked(self) -> Vocabulary:
        """Itself, provided that it is sound, as what was read from a file may not be."""
        check_offsets(self.offsets, len(self.blob), "letters")
        self.blob.tobytes().decode("utf-8")
        begins = self.blob[self.offsets[:-1][np.diff(self.offsets) > 0]]
        if ((begins & 0xC0) == 0x80).any():
            raise BadInput("a word begins inside a character")
        return self

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> str:
        return self.blob[self.offsets[index] : self.offsets[index + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        return iter(self.strings)

    @cached_property
    def strings(self) -> list[str]:
        """Every word decoded; made once, on demand."""
        whole, cuts = self.blob.tobytes(), self.offsets.tolist()
        return [whole[a:b].decode("utf-8") for a, b in pairwise(cuts)]


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences of one language, as word ids in one flat array.

    Shape: ids (words,), offsets (sentences + 1,), tags (words,) or None.
    `unit` is "piece" when the words are an encoder's own subword pieces, to be fed to it as they are.

    >>> text = Sentences.of("en", [["a", "cat"], ["cat"]])
    >>> len(text), text[0], text.lengths.tolist()
    (2, ['a', 'cat'], [2, 1])
    """

    language: str
    ids: Ints
    offsets: Longs
    vocabulary: Vocabulary
    tags: Bytes | None = None
    unit: Literal["word", "piece"] = "word"

    @classmethod
    def of(cls, language: str, sentences: Iterable[Sequence[str]], tags: Bytes | None = None) -> Sentences:
        known: dict[str, int] = {}
        ids, offsets = index_words(sentences, known)
        return cls(language, ids, offsets, Vocabulary.of(known), tags)

    def checked(self) -> Sentences:
        """Itself, provided that it is sound, as what was read from a file may not be."""
        check_offsets(self.offsets, len(self.ids), "words")
        check_places(self.ids, len(self.vocabulary), "words")
        if self.tags is not None:
            check_places(self.tags, len(UPOS), "tags")
            if len(self.tags) != len(self.ids):
                raise BadInput(f"{len(self.tags)} tags of {len(self.ids)} words")
        return self

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> list[str]:
        strings = self.vocabulary.strings
        return [strings[i] for i in self.ids[self.offsets[index] : self.offsets[index + 1]]]

    def __iter__(self) -> Iterator[list[str]]:
        return (self[i] for i in range(len(self)))

    @property
    def lengths(self) -> Longs:
        """Words in each sentence. Shape: (sentences,)."""
        return np.diff(self.offsets)

    def word(self, sentence: int, index: int) -> str:
        """One word, without decoding the rest of the vocabulary."""
        return self.vocabulary[int(self.ids[self.offsets[sentence] + index])]

    def at(self, words: WordIndex) -> Ints:
        """Vocabulary ids of these words. Shape: (n,)."""
        return np.asarray(self.ids[self.offsets[words.sentence] + words.word], np.int32)

    def select(self, chosen: Longs | Sequence[int]) -> Sentences:
        """These sentences in this order; the vocabulary stays as it is."""
        rows = np.asarray(chosen, np.int64)
        lengths = self.lengths[rows]
        offsets = _offsets(lengths)
        flat = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        tags = None if self.tags is None else self.tags[flat]
        return replace(self, ids=self.ids[flat], offsets=offsets, tags=tags)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of language and text, the same whatever vocabulary the ids point into."""
        used, inverse = np.unique(self.ids, return_inverse=True)
        digests = b"".join(
            hashlib.blake2b(self.vocabulary[int(i)].encode("utf-8"), digest_size=8).digest() for i in used
        )
        words = np.frombuffer(digests, np.uint64)[inverse] if len(used) else np.zeros(0, np.uint64)
        digest = hashlib.sha256(f"{self.language}\0{self.unit}\0".encode())
        digest.update(np.asarray(self.offsets, np.int64).tobytes())
        digest.update(words.tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Bitext:
    """Two line-aligned sides over one vocabulary, where they came from, and what was dropped on the way.

    One vocabulary for both sides, so that "the same string" is "the same id".
    `line` is each pair's 1-based line (or record) in `origin`. Shape: (sentences,).
    """

    source: Sentences
    target: Sentences
    line: Longs
    origin: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        languages: tuple[str, str],
        source: Iterable[Sequence[str]],
        target: Iterable[Sequence[str]],
        *,
        line: Sequence[int] | Longs | None = None,
        tags: tuple[Bytes | None, Bytes | None] = (None, None),
        origin: str = "",
        dropped: Mapping[str, int] | None = None,
    ) -> Bitext:
        known: dict[str, int] = {}
        sides = [index_words(sentences, known) for sentences in (source, target)]
        vocabulary = Vocabulary.of(known)
        a, b = (
            Sentences(language, ids, offsets, vocabulary, tag)
            for language, (ids, offsets), tag in zip(languages, sides, tags, strict=True)
        )
        lines = np.arange(1, len(a) + 1) if line is None else np.asarray(line, np.int64)
        return cls(a, b, lines, origin, dict(dropped or {}))

    def __len__(self) -> int:
        return len(self.source)

    @property
    def languages(self) -> tuple[str, str]:
        return self.source.language, self.target.language

    def select(self, chosen: Longs | Sequence[int]) -> Bitext:
        rows = np.asarray(chosen, np.int64)
        return replace(
            self, source=self.source.select(rows), target=self.target.select(rows), line=self.line[rows]
        )

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"{self.source.fingerprint}{self.target.fingerprint}".encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class WordPairs:
    """Linked words of a bitext: one row a link, ordered by sentence, source word, target word.

    Shape: sentence, source, target, score (links,). `source` and `target` are 0-based word indexes.
    """

    bitext: Bitext
    sentence: Ints
    source: Ints
    target: Ints
    score: Floats
    linker: str = ""

    @classmethod
    def of(
        cls,
        bitext: Bitext,
        sentence: NDArray[Any] | Sequence[int],
        source: NDArray[Any] | Sequence[int],
        target: NDArray[Any] | Sequence[int],
        score: NDArray[Any] | Sequence[float] | None = None,
        linker: str = "",
    ) -> WordPairs:
        """Rows in any order; they are sorted here."""
        s, i, j = (np.asarray(column, np.int32) for column in (sentence, source, target))
        order = np.lexsort((j, i, s))
        weight = np.ones(len(s), np.float32) if score is None else np.asarray(score, np.float32)
        return cls(bitext, s[order], i[order], j[order], weight[order], linker)

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def languages(self) -> tuple[str, str]:
        return self.bitext.languages

    @property
    def source_ids(self) -> Ints:
        """Vocabulary id of each link's source word. Shape: (links,)."""
        return self.bitext.source.at(WordIndex(self.sentence, self.source))

    @property
    def target_ids(self) -> Ints:
        """Vocabulary id of each link's target word. Shape: (links,)."""
        return self.bitext.target.at(WordIndex(self.sentence, self.target))

    def keep(self, rows: Flags | Longs) -> WordPairs:
        """The links at these rows (a mask, or increasing row numbers)."""
        return replace(
            self,
            sentence=self.sentence[rows],
            source=self.source[rows],
            target=self.target[rows],
            score=self.score[rows],
        )

    def sentences(self, chosen: Longs | Sequence[int]) -> WordPairs:
        """Only these sentences (increasing numbers), with their links renumbered."""
        rows = np.asarray(chosen, np.int64)
        place = np.full(len(self.bitext), -1, np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        kept = self.keep(place[self.sentence] >= 0)
        return replace(kept, bitext=self.bitext.select(rows), sentence=place[kept.sentence])

    def types(self) -> set[tuple[str, str]]:
        """The word-type pairs that occur among the links."""
        strings = self.bitext.source.vocabulary.strings
        pairs = np.unique(np.stack([self.source_ids, self.target_ids], 1), axis=0)
        return {(strings[a], strings[b]) for a, b in pairs.tolist()}

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.bitext.fingerprint.encode())
        for column in (self.sentence, self.source, self.target, self.score):
            digest.update(column.tobytes())
        return digest.hexdigest()


# ------------------------------------------------------------------------------------------- vectors


class WordIndex(NamedTuple):
    """Which words are asked for. Shape: both (n,), ordered by sentence.

    A word index of FIRST_SPECIAL or LAST_SPECIAL asks for that special token of the sentence.
    """

    sentence: Ints
    word: Ints

    @classmethod
    def every(cls, sentences: Sentences) -> WordIndex:
        """All words of all sentences, in order."""
        rows = np.repeat(np.arange(len(sentences)), sentences.lengths).astype(np.int32)
        words = np.arange(len(sentences.ids)) - np.asarray(sentences.offsets)[rows]
        return cls(rows, words.astype(np.int32))


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors of the words that an encoder could see, among those asked for.

    Shape: vectors (layers, present words, d), present (words asked for,).
    A word cut off by truncation, or tokenised to nothing, is not present: row k of `vectors[l]` belongs to
    the k-th True of `present`. `dropped` counts why.
    """

    layers: tuple[int, ...]
    vectors: NDArray[np.floating[Any]]
    present: Flags
    dropped: Mapping[str, int] = field(default_factory=dict)

    def layer(self, layer: int) -> Floats:
        """One layer in single precision. Shape: (present words, d)."""
        return np.asarray(self.vectors[self.layers.index(layer)], np.float32)


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Sentences as an encoder reads them.

    Shape: pieces, mask, segments (batch, pieces); row, word, start, end (words present,).
    Word k of sentence `row` covers pieces start..end (end excluded). Words cut by truncation or tokenised to
    nothing have no entry. `specials` (batch, 2) holds the place of the first and last special token, -1
    where there is none. `characters` (batch, pieces, 2) are offsets into the text as given, where known.
    """

    language: str
    pieces: torch.Tensor
    mask: torch.Tensor
    row: Longs
    word: Longs
    start: Longs
    end: Longs
    specials: Longs
    segments: torch.Tensor | None = None
    characters: Longs | None = None


@dataclass(frozen=True, eq=False)
class States:
    """Hidden states of one batch at the layers asked for; 0 is the embeddings.

    Shape: each of hidden (batch, pieces, d).
    """

    layers: tuple[int, ...]
    hidden: tuple[torch.Tensor, ...]


Pooling: TypeAlias = Literal["first", "last", "mean"]
SentencePooling: TypeAlias = Literal["mean", "first"]


class Encoder(Protocol):
    """Anything that gives words vectors. Layers are 0 (embeddings) to `depth`.

    `languages` is None for an encoder that takes any language.
    """

    @property
    def name(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def languages(self) -> frozenset[str] | None: ...
    @property
    def fingerprint(self) -> str: ...

    def batch(self, sentences: Sentences) -> TextBatch:
        """These sentences as one batch of pieces, with word spans."""
        ...

    def states(self, batch: TextBatch, layers: Sequence[int]) -> States:
        """Differentiable hidden states at these layers."""
        ...

    def word_vectors(
        self,
        sentences: Sentences,
        words: WordIndex | None = None,
        *,
        layers: Sequence[int],
        pooling: Pooling = "mean",
    ) -> WordVectors:
        """Vectors of these words (all of them by default), without gradient."""
        ...

    def sentence_vectors(
        self, sentences: Sentences, *, layers: Sequence[int], pooling: SentencePooling = "mean"
    ) -> Floats:
        """One vector a sentence, by default the mean of its pieces. Shape: (layers, sentences, d)."""
        ...


# --------------------------------------------------------------------------------------------- pairs


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Some paired vectors, and which pairs belong together (those of one sentence) by number.

    Shape: source, target (layers, n, d), group (n,).
    """

    languages: tuple[str, str]
    source: Floats
    target: Floats
    group: NDArray[np.integer[Any]]


class PairSource(Protocol):
    """Anything a linear aligner can learn from: a stream of paired vectors, never one array of all."""

    @property
    def languages(self) -> tuple[str, str]: ...

    @property
    def fingerprint(self) -> str: ...

    def blocks(self, encoder: Encoder, layers: Sequence[int], pooling: Pooling) -> Iterator[PairBlock]: ...

    def coverage(self) -> Mapping[str, int]:
        """What the last pass used and what it had to leave out, by reason."""
        ...

    def types(self) -> set[tuple[str, str]]:
        """The word-type pairs that an aligner trained on this source has seen."""
        ...


# ---------------------------------------------------------------------------------------------- maps


@dataclass(frozen=True, eq=False)
class Unit:
    """Every vector to length one."""

    def apply(self, x: Any) -> Any:
        return x / ((x * x).sum(-1, keepdims=True) ** 0.5).clip(min=1e-12)


@dataclass(frozen=True, eq=False)
class Shift:
    """Add one vector. Shape: vector (d,)."""

    vector: Any

    def apply(self, x: Any) -> Any:
        return x + self.vector


@dataclass(frozen=True, eq=False)
class Scale:
    """Multiply each dimension. Shape: vector (d,)."""

    vector: Any

    def apply(self, x: Any) -> Any:
        return x * self.vector


@dataclass(frozen=True, eq=False)
class Matrix:
    """W·x for column vectors, that is `x @ W.T` for rows. Shape: matrix (d, d)."""

    matrix: Any

    def apply(self, x: Any) -> Any:
        return x @ self.matrix.T


Step: TypeAlias = Unit | Shift | Scale | Matrix


@dataclass(frozen=True, eq=False)
class SpaceMap:
    """Steps that carry vectors of one language into a space; no steps is the identity.

    The steps take NumPy arrays and, when their own arrays are tensors, torch tensors.

    >>> SpaceMap((Shift(np.array([1.0, 0.0])), Unit())).apply(np.array([[2.0, 4.0]])).round(1).tolist()
    [[0.6, 0.8]]
    """

    steps: tuple[Step, ...] = ()

    def apply(self, x: Any) -> Any:
        """Shape: (..., d) to (..., d)."""
        for step in self.steps:
            x = step.apply(x)
        return x


class MapKey(NamedTuple):
    """Which vectors a map is for, and where it takes them."""

    language: str
    space: str
    layer: int


# ------------------------------------------------------------------------------------------- results


@dataclass(frozen=True)
class Result:
    """One figure, with everything needed to know what it is a figure of.

    `group` is a breakdown and its bin, such as ("pos", "NOUN"). With `baseline` set, `value` is the
    difference to that encoder on the same items, and `p` tests it.
    """

    task: str
    metric: str
    value: float
    languages: tuple[str, str]
    encoder: str
    layer: int | None = None
    variant: str = ""
    direction: str = ""
    group: tuple[str, str] | None = None
    count: int = 0
    low: float | None = None
    high: float | None = None
    baseline: str | None = None
    p: float | None = None
    seed: int = 0
    signature: str = ""
    items: str | None = None
    note: str = ""


#: The key of an item that names its sentence by the other language's, where `cluster` names the first's.
BESIDE = "translation"


@dataclass(frozen=True, eq=False)
class Items:
    """Per-item statistics behind a figure. Shape: every column (items,).

    `keys` identify an item, so that two encoders' items can be matched; `cluster` is the unit that is
    resampled (the sentence); `values` are what a metric averages.
    """

    keys: Mapping[str, Longs]
    cluster: Longs
    values: Mapping[str, Doubles]


def index_words(sentences: Iterable[Sequence[str]], known: dict[str, int]) -> tuple[Ints, Longs]:
    """Word ids and offsets of sentences, adding new words to `known`."""
    held = sentences if isinstance(sentences, list | tuple) else list(sentences)
    lengths = np.fromiter((len(words) for words in held), np.int64, len(held))
    ids = (known.setdefault(word, len(known)) for word in chain.from_iterable(held))
    return np.fromiter(ids, np.int32, int(lengths.sum())), _offsets(lengths)


def check_offsets(offsets: NDArray[Any], count: int, of: str) -> None:
    """Refuse offsets that do not part `count` things. Shape: (parts + 1,)."""
    check_places(offsets, count + 1, f"offsets of {of}")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != count or (np.diff(offsets) < 0).any():
        raise BadInput(f"offsets that do not part {count} {of}")


def check_places(places: NDArray[Any], count: int, of: str) -> None:
    """Refuse what is no list of whole numbers from 0 below `count`. Shape: (n,)."""
    if places.ndim != 1 or not np.issubdtype(places.dtype, np.integer):
        raise BadInput(f"{of} of shape {places.shape} and type {places.dtype}")
    if len(places) and not 0 <= places.min() <= places.max() < count:
        raise BadInput(f"{of} from {places.min()} to {places.max()}, where there are {count}")


def _offsets(lengths: NDArray[Any]) -> Longs:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
