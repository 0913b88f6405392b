"""Encoders by language as one: every sentence is read by the encoder of its language.

They may be strangers, trained apart, or share weights: then what is separate belongs to one language, and the
rest is one tensor in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import torch

from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.encoders.tying import is_under, shared, tie
from calque.errors import BadInput, BadSetting, CalqueError
from calque.files import atomic_directory, read_json, text_digest, write_json
from calque.text.languages import check_language
from calque.types import (
    Floats,
    Pooling,
    SentencePooling,
    Sentences,
    States,
    TextBatch,
    WordIndex,
    WordVectors,
)

#: The file that says which languages there are, and the folder in which each has a checkpoint.
LANGUAGES, PARTS = "languages.json", "languages"
_FORMAT = 1


class LanguageEncoders:
    """One encoder a language, as an `Encoder`; all of one width and depth.

    `separate` are the parts of the base model that each language has for itself, by the names of modules
    (`embeddings`, `encoder.layer.0`): all other weights are checked to be equal, and become those of the
    first language. None shares nothing: the encoders are strangers.
    """

    def __init__(
        self,
        parts: Mapping[str, HuggingFaceEncoder],
        *,
        separate: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        if not parts:
            raise BadSetting("no encoders", remedy="one for each language, such as en=A,de=B")
        self.parts = dict(parts)
        self.name = name or ",".join(f"{code}={part.name}" for code, part in parts.items())
        self.separate = None if separate is None else tuple(separate)
        for what in ("width", "depth"):
            _check_alike(self.parts, what)
        if self.separate is not None:
            share(self.parts, self.separate)

    # ---------------------------------------------------------------------------------- what it is

    @property
    def languages(self) -> frozenset[str]:
        return frozenset(self.parts)

    @property
    def width(self) -> int:
        return self._first.width

    @property
    def depth(self) -> int:
        return self._first.depth

    @property
    def device(self) -> torch.device:
        return self._first.device

    @property
    def options(self) -> EncoderOptions:
        """How they are run."""
        return self._first.options

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all encoders, and of what they share."""
        parts = [f"{code} {part.fingerprint}" for code, part in sorted(self.parts.items())]
        told = "apart" if self.separate is None else " ".join(sorted(self.separate))
        return text_digest("by language", told, *parts)

    @cached_property
    def model(self) -> torch.nn.ModuleDict:
        """The models of all languages; a weight that they share is among its parameters once."""
        # A module's name must not be that of one of torch's own methods, and `to` is a language.
        held = torch.nn.ModuleDict({f"in-{code}": part.model for code, part in self.parts.items()})
        return held.train(self._first.model.training)

    @property
    def _first(self) -> HuggingFaceEncoder:
        return next(iter(self.parts.values()))

    def speaking(self, language: str) -> HuggingFaceEncoder:
        """The encoder of one language."""
        if language not in self.parts:
            raise BadSetting(
                f"{self.name} has no encoder for language {language!r}",
                remedy=f"it has {', '.join(self.parts)}, and a row is read by one of them",
            )
        return self.parts[language]

    # ------------------------------------------------------------------------------------ training

    def shared(self) -> list[torch.nn.Parameter]:
        """The weights that all languages have."""
        return shared([part.model for part in self.parts.values()]) if self.separate is not None else []

    def hold_separate(self) -> None:
        """Only what all languages share is trained from now on."""
        kept = {id(parameter) for parameter in self.shared()}
        for parameter in self.model.parameters():
            if id(parameter) not in kept:
                parameter.requires_grad_(False)

    # ------------------------------------------------------------------------------------- vectors

    def batch(self, sentences: Sentences) -> TextBatch:
        """These sentences as one batch of pieces of their language's encoder, with word spans."""
        return self.speaking(sentences.language).batch(sentences)

    def states(self, batch: TextBatch, layers: Sequence[int]) -> States:
        """Differentiable hidden states at these layers, by the encoder of the batch's language."""
        return self.speaking(batch.language).states(batch, layers)

    def word_vectors(
        self,
        sentences: Sentences,
        words: WordIndex | None = None,
        *,
        layers: Sequence[int],
        pooling: Pooling = "mean",
    ) -> WordVectors:
        """Vectors of these words (all of them by default), without gradient."""
        reader = self.speaking(sentences.language)
        return reader.word_vectors(sentences, words, layers=layers, pooling=pooling)

    def sentence_vectors(
        self, sentences: Sentences, *, layers: Sequence[int], pooling: SentencePooling = "mean"
    ) -> Floats:
        """One vector a sentence. Shape: (layers, sentences, d)."""
        reader = self.speaking(sentences.language)
        return reader.sentence_vectors(sentences, layers=layers, pooling=pooling)

    # ------------------------------------------------------------------------------------- on disk

    def save(
        self,
        folder: Path,
        write: Callable[[HuggingFaceEncoder, Path], None] = lambda part, place: part.save(place),
    ) -> None:
        """A checkpoint a language, and last what they are, so that half a folder is not taken for one.

        `write` puts one encoder into a folder.
        """
        with atomic_directory(folder / PARTS) as partial:
            for code, part in self.parts.items():
                (partial / code).mkdir()
                write(part, partial / code)
        LanguagesFile(tuple(self.parts), self.separate).write(folder)


#: What reads rows of pieces: one encoder for all languages, or one for each.
PieceReader: TypeAlias = HuggingFaceEncoder | LanguageEncoders


@dataclass(frozen=True)
class LanguagesFile:
    """What `languages.json` says: the languages, and which parts are separate (None: nothing is shared)."""

    languages: tuple[str, ...]
    separate: tuple[str, ...] | None

    def write(self, folder: Path) -> None:
        """Put it beside the checkpoints."""
        write_json(folder / LANGUAGES, {"format": _FORMAT, **asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> LanguagesFile:
        """As it lies in a folder, checked, with a folder for every language."""
        path = folder / LANGUAGES
        about = read_json(path)
        if not isinstance(about, dict) or about.get("format") != _FORMAT:
            raise BadInput(f"not encoders by language of format {_FORMAT}", where=path)
        held, separate = about.get("languages"), about.get("separate")
        if not _names(held) or not held:
            raise BadInput("'languages' is not a list of codes", where=path, remedy='such as ["en", "de"]')
        if separate is not None and not _names(separate):
            raise BadInput("'separate' is not a list of parts", where=path, remedy="null shares nothing")
        for code in held:
            _check_part(folder, code)
        if len(set(held)) < len(held):
            raise BadInput("a language is there twice", where=path)
        return cls(tuple(held), None if separate is None else tuple(separate))


def _names(held: Any) -> bool:
    return isinstance(held, list) and all(isinstance(one, str) and one for one in held)


def _check_part(folder: Path, code: str) -> None:
    try:
        check_language(code)
    except CalqueError as error:
        raise BadInput(error.what, where=folder / LANGUAGES, remedy=error.remedy) from None
    if not (folder / PARTS / code).is_dir():
        raise BadInput(f"named in {LANGUAGES}, but not here", where=folder / PARTS / code)


# ------------------------------------------------------------------------------------------ sharing


def share(parts: Mapping[str, HuggingFaceEncoder], separate: Sequence[str]) -> None:
    """Make one tensor of the weights that are equal in all encoders; those of `separate` parts stay.

    Weights must be equal but for a pooler's, which vectors do not need and checkpoints may lack.
    """
    (first, model), *others = parts.items()
    held = dict(model.model.named_parameters(remove_duplicate=False))
    _check_separate(list(held), separate)
    for code, other in others:
        _check_equal(held, other, separate, f"{code} and {first}")
    whole = [part.directory is not None for part in parts.values()]
    tie([part.model for part in parts.values()], separate)
    for part, was in zip(parts.values(), whole, strict=True):
        if was:
            part.still_as_read()


def _check_separate(names: Sequence[str], separate: Sequence[str]) -> None:
    for part in separate:
        if not any(is_under(name, [part]) for name in names):
            known = sorted({".".join(name.split(".")[:3]) for name in names})
            raise BadInput(f"no part {part!r} in these models", remedy=f"such as {', '.join(known[:8])}")


def _check_equal(
    held: Mapping[str, torch.nn.Parameter], other: HuggingFaceEncoder, separate: Sequence[str], told: str
) -> None:
    mine = dict(other.model.named_parameters(remove_duplicate=False))
    remedy = "languages that share weights hold the same; else name the part in 'separate', or null"
    for name in sorted(name for name in held.keys() | mine.keys() if not is_under(name, separate)):
        if name not in held or name not in mine or held[name].shape != mine[name].shape:
            raise BadInput(f"{told} cannot share {name}: it has not the same shape in both", remedy=remedy)
        equal = held[name] is mine[name] or torch.equal(held[name], mine[name])
        if not equal and "pooler" not in name:
            raise BadInput(f"{told} do not share {name}: its values differ", remedy=remedy)


def _check_alike(parts: Mapping[str, HuggingFaceEncoder], what: str) -> None:
    found = {code: getattr(part, what) for code, part in parts.items()}
    if len(set(found.values())) > 1:
        told = ", ".join(f"{code} {size}" for code, size in found.items())
        raise BadSetting(
            f"encoders by language have one {what}, not {told}",
            remedy="encoders of the same size for all languages",
        )
