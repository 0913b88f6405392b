"""What measures of sentences share: parallel text, from linked words or from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

from calque.encoders.static import StaticEncoder
from calque.encoders.wrapped import Wrapped
from calque.errors import BadSetting
from calque.pipeline.measuring.common import MeasureRecipe, load_any_pairs
from calque.pipeline.runs import input_digests
from calque.text.bitext import read_bitext
from calque.text.clean import Cleaning
from calque.types import Bitext, Encoder, SentencePooling

#: Nothing is dropped but pairs with an empty side.
WHOLE = Cleaning(max_words=10**9, max_ratio=0, duplicates=False)


class ParallelRecipe(MeasureRecipe):
    """Settings of measures of sentences.

    These come from `pairs`, as words, or from `text`: parallel files by language, as `ParallelText` reads
    them. Text is given to encoders as it is written, unless `words` or static vectors ask for words.
    """

    places: ClassVar[frozenset[str]] = MeasureRecipe.places | {"text"}

    text: tuple[str, ...] = ()
    words: bool = False
    pooling: SentencePooling = "mean"

    def chosen_layers(self, encoders: Mapping[str, Encoder]) -> dict[str, tuple[int, ...]]:
        """The layers of each encoder that are asked for; at layer 0 first tokens do not differ."""
        chosen = super().chosen_layers(encoders)
        if self.pooling == "first" and self.layers == "all":
            return {label: layers[1:] or layers for label, layers in chosen.items()}
        return chosen


Asked = TypeVar("Asked", bound=ParallelRecipe)


@dataclass(frozen=True, eq=False)
class Parallel(Generic[Asked]):
    """Encoders and parallel texts, and the recipe that knows them all."""

    recipe: Asked
    encoders: Mapping[str, Encoder]
    bitexts: Sequence[Bitext]

    @classmethod
    def load(cls, recipe: Asked, device: str) -> Self:
        """Open and read what a recipe names; files that are not there are told first."""
        texts = [ParallelText.parse(spec) for spec in recipe.text]
        if not (recipe.pairs or texts):
            raise BadSetting("no sentences to measure on", remedy="give --pairs or --text")
        for one in texts:
            input_digests(one.paths)
        opened = recipe.opened(device)
        asked = recipe.model_copy(update={"words": recipe.words or needs_words(opened)})
        bitexts = [_sentences(Path(path), asked.limit) for path in asked.pairs]
        bitexts += [one.read(words=asked.words, limit=asked.limit) for one in texts]
        inputs = {f"text {i}": one.fingerprint for i, one in enumerate(bitexts)}
        return cls(asked.knowing(inputs, opened), opened, bitexts)


def _sentences(folder: Path, limit: int | None) -> Bitext:
    """The sentences of some pairs; what was dropped when these were made is no news here."""
    return replace(load_any_pairs(folder, limit).bitext, dropped={})


@dataclass(frozen=True)
class ParallelText:
    """A bitext in one file, or in one a language, by a short name."""

    paths: tuple[str, ...]
    languages: tuple[str, str]

    @classmethod
    def parse(cls, spec: str) -> Self:
        """Files by language; languages without a file of their own share the one that follows.

        >>> ParallelText.parse("de=news.de,en=news.en")
        ParallelText(paths=('news.de', 'news.en'), languages=('de', 'en'))
        >>> ParallelText.parse("de,en=news.tsv")
        ParallelText(paths=('news.tsv',), languages=('de', 'en'))
        """
        parts = [tuple(field.strip() for field in part.partition("=")) for part in spec.split(",")]
        languages, paths = [part[0] for part in parts], [part[2] for part in parts if part[1]]
        if len(parts) != 2 or not all(languages) or not parts[1][1] or not all(paths):
            raise BadSetting(
                f"text {spec!r} not understood",
                remedy="de=news.de,en=news.en for two files, de,en=news.tsv for one that holds both",
            )
        return cls(tuple(paths), (languages[0], languages[1]))

    def read(self, *, words: bool, limit: int | None = None) -> Bitext:
        """The sentence pairs that have two sides, as words or as they are written."""
        return read_bitext(list(self.paths), self.languages, tokenised=not words, cleaning=WHOLE, limit=limit)


def needs_words(encoders: Mapping[str, Encoder]) -> bool:
    """Whether one of these encoders looks words up, and so cannot read text as it is written."""

    def static(encoder: object) -> bool:
        return static(encoder.inner) if isinstance(encoder, Wrapped) else isinstance(encoder, StaticEncoder)

    return any(map(static, encoders.values()))
