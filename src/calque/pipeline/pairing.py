"""What mining and scoring share: their settings, and texts as vectors of different sentences.

A sentence that stands in a text again is neither mined twice nor its own neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from pydantic import Field

from calque.errors import BadInput, BadSetting
from calque.geometry.mining import Margin
from calque.pipeline.measuring.parallel import needs_words
from calque.pipeline.runs import EncoderRecipe, open_for
from calque.recipe import parse_layers
from calque.text.distinct import Distinct
from calque.text.languages import check_language
from calque.types import Doubles, Encoder, Flags, Floats, Longs, SentencePooling, Sentences


class PairingRecipe(EncoderRecipe):
    """Settings of `calque mine` and `calque score`.

    `layer` of the encoder gives the vectors; `neighbours` nearest sentences of either side are what a margin
    sets a pair against. Of all pairs those that score at least `threshold` are kept, the best `keep` of them.
    Text is given to the encoder as it is written, unless `words` or static vectors ask for words.
    """

    places: ClassVar[frozenset[str]] = frozenset({"paths", "encoder", "gold"})

    languages: tuple[str, str]
    encoder: str
    layer: str = "last"
    pooling: SentencePooling = "mean"
    margin: Margin = Margin.RATIO
    neighbours: int = Field(4, ge=1)
    threshold: float | None = Field(None, allow_inf_nan=False)
    keep: int | None = Field(None, ge=1)
    words: bool = False
    limit: int | None = Field(None, ge=1)

    def opened(self, device: str) -> Encoder:
        """The encoder, with the vector cache under it, in a space where both languages meet."""
        return open_for(self.encoder, self.options(device), self.languages, cached=True)

    def knowing(self, inputs: Mapping[str, str], encoder: Encoder) -> Self:
        """The recipe with the fingerprints of all that goes into it."""
        known = {**inputs, "encoder": encoder.fingerprint}
        return self.model_copy(update={"inputs": known, "words": self.words or needs_words({"": encoder})})

    def one_layer(self, encoder: Encoder) -> int:
        """The layer by number."""
        return one_layer(self.layer, encoder.depth)


def one_layer(layer: str, depth: int) -> int:
    """A single layer by name."""
    layers = parse_layers(layer, depth)
    if len(layers) != 1:
        raise BadSetting(f"--layer {layer} names {len(layers)} layers", remedy="one, such as last")
    return layers[0]


@dataclass(frozen=True, eq=False)
class Side:
    """The different sentences of a text, and the vectors of those that have one.

    Shape: vectors (rows, d), row (different,) of each sentence or -1, empty (different,).
    """

    held: Distinct
    empty: Flags
    vectors: Floats
    row: Longs

    @classmethod
    def of(cls, encoder: Encoder, text: Sentences, layer: int, pooling: SentencePooling) -> Side:
        held = Distinct.of(text)
        empty = text.lengths[held.first] == 0
        row = np.full(len(held), -1)
        if empty.all():
            return cls(held, empty, np.zeros((0, encoder.width), np.float32), row)
        chosen = text.select(held.first[~empty])
        (vectors,) = encoder.sentence_vectors(chosen, layers=[layer], pooling=pooling)
        known = (vectors != 0).any(1)
        row[np.flatnonzero(~empty)[known]] = np.arange(known.sum())
        return cls(held, empty, vectors if known.all() else vectors[known], row)

    @property
    def sentence(self) -> Longs:
        """The sentence of each row. Shape: (rows,)."""
        return np.flatnonzero(self.row >= 0)

    def counts(self, name: str) -> dict[str, int]:
        """What became of the lines."""
        lines = np.bincount(self.held.which, minlength=len(self.held))
        counts = {
            "lines": int(lines.sum()),
            "empty lines": int(lines[self.empty].sum()),
            "repeated lines": int((lines - 1)[~self.empty].sum()),
            "sentences without vector": int(((self.row < 0) & ~self.empty).sum()),
        }
        return {f"{name} {what}": count for what, count in counts.items()}


def sides_of(
    recipe: PairingRecipe, encoder: Encoder, texts: Sequence[Sentences], where: Sequence[str]
) -> list[Side]:
    """Both texts, each with a vector at least; `where` is what to name in a complaint."""
    layer = recipe.one_layer(encoder)
    sides = [Side.of(encoder, text, layer, recipe.pooling) for text in texts]
    for side, language, path in zip(sides, recipe.languages, where, strict=True):
        if not len(side.vectors):
            raise BadInput(
                f"no {language} sentence has a vector",
                where=path,
                remedy="empty lines have none; static vectors need text with words that they know",
            )
    return sides


def reachable_threshold(recipe: PairingRecipe, score: Doubles) -> float:
    """The threshold, provided that something reaches it."""
    if recipe.threshold is None:
        return -np.inf
    if score.max() < recipe.threshold:
        raise BadSetting(
            f"no pair reaches the threshold {recipe.threshold}", remedy=f"the best has {score.max():.4f}"
        )
    return recipe.threshold


def two_codes(languages: tuple[str, str]) -> tuple[str, str]:
    """Two language codes, checked."""
    return check_language(languages[0]), check_language(languages[1])
