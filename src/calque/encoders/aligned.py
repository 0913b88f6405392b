"""An aligned encoder: itself an encoder, whose languages meet in one space.

A linear alignment cannot be folded into a plain checkpoint (the last operation of BERT is a LayerNorm, and
maps differ by language), so the maps lie beside the weights and are applied after each layer. An encoder that
was aligned by training has no maps: its weights are the alignment.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from calque.documents import shaped
from calque.encoders.bylanguage import LanguageEncoders
from calque.encoders.cached import LayerStack
from calque.encoders.wrapped import Wrapped
from calque.errors import BadInput, BadSetting
from calque.files import atomic_file, check_sealed, read_json, seal, text_digest, write_json
from calque.progress import say
from calque.text.lines import read_lines
from calque.types import (
    Encoder,
    Floats,
    Longs,
    MapKey,
    Matrix,
    Pooling,
    Scale,
    SentencePooling,
    Sentences,
    Shift,
    SpaceMap,
    States,
    Step,
    TextBatch,
    Unit,
    WordIndex,
    WordVectors,
)

ALIGNMENT, MAPS, SEEN = "alignment.json", "maps.safetensors", "seen.tsv.gz"
READ = "seen.sentences.npy"
_WITH_MAPS = "linear maps beside an ordinary checkpoint: AutoModel loads the weights without them"
_BY_LANGUAGE = "linear maps beside a checkpoint a language: AutoModel loads each of languages/ without them"
_WITHOUT_MAPS = "the weights themselves are aligned: AutoModel needs nothing but them"
_KINDS: dict[str, type[Step]] = {"unit": Unit, "shift": Shift, "scale": Scale, "matrix": Matrix}

LanguagePair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class AlignedEncoder(Wrapped):
    """`inner` with maps into `space`; a layer without a map stays as it is, a language without is refused.

    Without any maps it is `inner`, for any language. `seen` holds the word-type pairs that the alignment was
    learned from, by language pair; `about` says how. `read` holds the names of the sentence pairs that it was
    learned from, as `pair_names` gives them, in rising order. Shape: read (sentence pairs,).
    """

    inner: Encoder
    maps: Mapping[MapKey, SpaceMap]
    space: str
    pooling: Pooling = "mean"
    seen: Mapping[LanguagePair, frozenset[tuple[str, str]]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    read: Longs = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def name(self) -> str:
        return f"{self.inner.name}+{self.method}"

    @property
    def method(self) -> str:
        """How it was aligned."""
        return str(self.about.get("method", "maps"))

    @property
    def languages(self) -> frozenset[str] | None:
        """The languages that reach the present space."""
        return frozenset(self.reach(self.space)) if self.maps else self.inner.languages

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers that have maps."""
        return tuple(sorted({key.layer for key in self.maps}))

    @property
    def fingerprint(self) -> str:
        # That of what is inside can change: where memory lacked, it reads in smaller batches from then on.
        inner = self.inner.fingerprint
        if inner not in self._fingerprints:
            arrays = _arrays(self.maps)
            parts = [f"{name}{arrays[name].tobytes().hex()}" for name in sorted(arrays)]
            kinds = [str(item) for item in _describe_maps(self.maps)]
            self._fingerprints[inner] = text_digest(inner, self.space, *kinds, *parts)
        return self._fingerprints[inner]

    @cached_property
    def _fingerprints(self) -> dict[str, str]:
        """Its own, by that of what is inside."""
        return {}

    def meeting(self, languages: LanguagePair) -> AlignedEncoder:
        """The same maps, in a space that both languages reach."""
        if not self.maps:
            return self
        spaces = {space: self.reach(space) for space in sorted({key.space for key in self.maps})}
        for space in sorted(spaces, key=lambda name: (name != self.space, name)):
            if set(languages) <= spaces[space]:
                return replace(self, space=space)
        known = "; ".join(
            f"{' '.join(sorted(held))} in the space of {space}" for space, held in spaces.items()
        )
        raise BadSetting(
            f"{self.name} has no maps under which {languages[0]} and {languages[1]} meet",
            remedy=f"it has {known}; align it on pairs of these languages first",
        )

    def reach(self, space: str) -> set[str]:
        """The languages that have a map into a space."""
        return {key.language for key in self.maps if key.space == space}

    def seen_by(self, languages: LanguagePair) -> set[tuple[str, str]]:
        """Word-type pairs seen in training, in the order of these languages."""
        swapped = self.seen.get((languages[1], languages[0]), frozenset())
        return set(self.seen.get(languages, frozenset())) | {(b, a) for a, b in swapped}

    def map_for(self, language: str, layer: int) -> SpaceMap:
        """The map of one language and layer (the identity where the layer has none)."""
        mapped = self.reach(self.space)
        if self.maps and language not in mapped:
            raise BadSetting(
                f"{self.name} has no map for language {language!r}",
                remedy=f"it has maps for {', '.join(sorted(mapped))}",
            )
        return self.maps.get(MapKey(language, self.space, layer), SpaceMap())

    def maps_for(self, language: str, layers: Sequence[int]) -> list[SpaceMap]:
        """The maps of one language; it is said once where layers have none."""
        without = tuple(sorted(set(layers) - {key.layer for key in self.maps if key.space == self.space}))
        if self.maps and without:
            _tell_unmapped(self.name, without)
        return [self.map_for(language, layer) for layer in layers]

    def states(self, batch: TextBatch, layers: Sequence[int]) -> States:
        states = self.inner.states(batch, layers)
        maps = self.maps_for(batch.language, states.layers)
        moved = tuple(
            as_torch(one, hidden).apply(hidden) for one, hidden in zip(maps, states.hidden, strict=True)
        )
        return replace(states, hidden=moved)

    def word_vectors(
        self,
        sentences: Sentences,
        words: WordIndex | None = None,
        *,
        layers: Sequence[int],
        pooling: Pooling = "mean",
    ) -> WordVectors:
        maps = self.maps_for(sentences.language, layers)
        found = self.inner.word_vectors(sentences, words, layers=layers, pooling=pooling)
        # Layers on disk are mapped when they are taken: in memory they would be all of them at once.
        held: Any = found.vectors
        moved: Any = MappedLayers(maps, held) if isinstance(held, LayerStack) else _apply(maps, held)
        return replace(found, vectors=moved)

    def sentence_vectors(
        self, sentences: Sentences, *, layers: Sequence[int], pooling: SentencePooling = "mean"
    ) -> Floats:
        maps = self.maps_for(sentences.language, layers)
        return _apply(maps, self.inner.sentence_vectors(sentences, layers=layers, pooling=pooling))


@cache
def _tell_unmapped(name: str, layers: tuple[int, ...]) -> None:
    told = ", ".join(f"{a}-{b}" if a < b else str(a) for a, b in stretches(layers))
    say(f"{name} has no map at layer{'s' * (len(layers) > 1)} {told}: it was not aligned there")


def stretches(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Rising numbers as stretches, ends included.

    >>> stretches([0, 1, 2, 5])
    [(0, 2), (5, 5)]
    """
    cuts = [0, *(i for i in range(1, len(numbers)) if numbers[i] > numbers[i - 1] + 1), len(numbers)]
    return [(numbers[a], numbers[b - 1]) for a, b in pairwise(cuts) if a < b]


class MappedLayers(LayerStack):
    """Layers on disk under maps, each of them mapped when it is taken."""

    def __init__(self, maps: Sequence[SpaceMap], inner: LayerStack) -> None:
        self._maps, self._inner = list(maps), inner

    @property
    def shape(self) -> tuple[int, ...]:
        return self._inner.shape

    def __len__(self) -> int:
        return len(self._maps)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        one = isinstance(key, int | np.integer)
        return _moved(self._maps[key], self._inner[key]) if one else np.asarray(self)[key]


def _apply(maps: Sequence[SpaceMap], vectors: Any) -> Floats:
    return np.stack([_moved(one, layer) for one, layer in zip(maps, vectors, strict=True)])


def _moved(one: SpaceMap, layer: Any) -> Floats:
    return np.asarray(one.apply(np.asarray(layer, np.float32)), np.float32)


def as_torch(space_map: SpaceMap, like: Any) -> SpaceMap:
    """The same map for tensors such as `like`."""
    import torch

    def convert(step: Step) -> Step:
        held = {name: torch.as_tensor(value).to(like) for name, value in vars(step).items()}
        return type(step)(**held)

    return SpaceMap(tuple(convert(step) for step in space_map.steps))


# ------------------------------------------------------------------------------------------- on disk


def save_maps(folder: Path, aligned: AlignedEncoder) -> None:
    """Write the maps, what they are and what they have seen, beside an encoder's own files."""
    if aligned.maps:
        save_file(_arrays(aligned.maps), folder / MAPS)
    about = {
        **aligned.about,
        "note": _note(aligned),
        "space": aligned.space,
        "pooling": aligned.pooling,
        "maps": _describe_maps(aligned.maps),
    }
    write_json(folder / ALIGNMENT, about)
    with atomic_file(folder / SEEN) as partial:
        # mtime 0, so that equal runs write equal bytes
        with partial.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as handle:
            for (a, b), pairs in sorted(aligned.seen.items()):
                handle.writelines(f"{a}\t{b}\t{x}\t{y}\n".encode() for x, y in sorted(pairs))
    (folder / READ).unlink(missing_ok=True)
    if len(aligned.read):
        with atomic_file(folder / READ) as partial, partial.open("wb") as handle:
            np.save(handle, aligned.read, allow_pickle=False)
    seal(folder, MAPS, ALIGNMENT, SEEN, READ)


def _note(aligned: AlignedEncoder) -> str:
    """What other programs find in the folder."""
    if not aligned.maps:
        return _WITHOUT_MAPS
    return _BY_LANGUAGE if isinstance(aligned.inner, LanguageEncoders) else _WITH_MAPS


@dataclass(frozen=True)
class Beginning:
    """The encoder of an alignment: its name and how it was read, None where that is not told."""

    name: str | None = None
    prefix: str = ""
    max_length: int | None = None

    @classmethod
    def read(cls, folder: Path) -> Beginning | None:
        """What an aligned encoder's folder tells; None of other folders."""
        path = folder / ALIGNMENT
        if not path.is_file():
            return None
        with shaped(path, "align again"):
            held = dict(read_json(path).get("encoder", {}))
            found = cls(**{one.name: held[one.name] for one in fields(cls) if one.name in held})
            kinds = (str | None, str, int | None)
            if not all(isinstance(one, kind) for one, kind in zip(vars(found).values(), kinds, strict=True)):
                raise BadInput(f"an encoder {held}")
        return found


def load_maps(folder: Path, inner: Encoder) -> AlignedEncoder:
    """Read what `save_maps` wrote, over the encoder that lies in the same folder."""
    check_sealed(folder, "align again")
    about = read_json(folder / ALIGNMENT)
    with shaped(folder, "align again", what="its maps cannot be read"):
        try:
            arrays = load_file(folder / MAPS) if about["maps"] else {}
        except (SafetensorError, OSError) as error:
            raise BadInput(str(error)) from None
        maps = {
            MapKey(str(item["language"]), str(item["space"]), int(item["layer"])): SpaceMap(
                tuple(_step(kind, arrays, f"{item['name']}.{i}") for i, kind in enumerate(item["steps"]))
            )
            for item in about.pop("maps")
        }
        space, pooling = about.pop("space"), about.pop("pooling")
        if pooling not in get_args(Pooling) or not isinstance(space, str):
            raise BadInput(f"a space {space!r} and pooling {pooling!r}")
    for found in maps.values():
        _check_width(found, inner.width, folder)
    return AlignedEncoder(
        inner, maps, space, pooling, _load_seen(folder / SEEN), about, _load_read(folder / READ)
    )


def _step(kind: str, arrays: Mapping[str, Floats], name: str) -> Step:
    step = _KINDS[kind]
    return step(**{field: arrays[name] for field in step.__dataclass_fields__})


def _check_width(space_map: SpaceMap, width: int, folder: Path) -> None:
    """Refuse maps of another size than the vectors, or with what is no number."""
    for step in space_map.steps:
        for array in vars(step).values():
            shape = (width, width) if isinstance(step, Matrix) else (width,)
            if array.shape != shape:
                raise BadInput(f"maps of shape {array.shape} over an encoder of width {width}", where=folder)
            if array.dtype != np.float32 or not np.isfinite(array).all():
                raise BadInput("maps that are not finite numbers of single precision", where=folder)


def _load_seen(path: Path) -> dict[LanguagePair, frozenset[tuple[str, str]]]:
    seen: dict[LanguagePair, set[tuple[str, str]]] = {}
    for number, line in enumerate(read_lines(path), 1):
        with shaped(path, "align again", what="not two words of two languages", line=number):
            a, b, x, y = line.split("\t")
            seen.setdefault((a, b), set()).add((x, y))
    return {key: frozenset(pairs) for key, pairs in seen.items()}


def _load_read(path: Path) -> Longs:
    """The names of sentence pairs; older alignments kept none."""
    if not path.is_file():
        return np.zeros(0, np.int64)
    with shaped(path, "align again", what="not the names of sentence pairs"):
        try:
            names = np.load(path, allow_pickle=False)
        except (EOFError, OSError) as error:
            raise BadInput(str(error)) from None
        if not isinstance(names, np.ndarray) or names.ndim != 1 or names.dtype != np.int64:
            raise BadInput("no list of whole numbers")
    return np.asarray(names, np.int64)


def _map_name(key: MapKey) -> str:
    return f"{key.language}/{key.space}/{key.layer}"


def _describe_maps(maps: Mapping[MapKey, SpaceMap]) -> list[dict[str, Any]]:
    kinds = {kind: name for name, kind in _KINDS.items()}
    return [
        {**key._asdict(), "name": _map_name(key), "steps": [kinds[type(step)] for step in maps[key].steps]}
        for key in sorted(maps)
    ]


def _arrays(maps: Mapping[MapKey, SpaceMap]) -> dict[str, Floats]:
    return {
        f"{_map_name(key)}.{i}": np.ascontiguousarray(value, np.float32)
        for key, space_map in maps.items()
        for i, step in enumerate(space_map.steps)
        for value in vars(step).values()
    }
