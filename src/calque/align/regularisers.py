"""What keeps an encoder near the one it was: its hidden states, or its parameters.

Without either, translations meet soonest where every word has the same vector.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

import numpy as np
import torch

from calque.encoders.cached import CachedEncoder
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.pooling import bags, pool
from calque.encoders.spans import ragged
from calque.files import Cache
from calque.recipe import Choice
from calque.types import FIRST_SPECIAL, LAST_SPECIAL, Longs, Pooling, Sentences, TextBatch, WordIndex


class Regulariser(Choice):
    """What is kept near the original.

    hidden: vectors of the held side. parameters: the weights. both: these two. none: nothing.
    """

    NONE = "none"
    HIDDEN = "hidden"
    PARAMETERS = "parameters"
    BOTH = "both"


#: How many parameters are compared at a time.
BLOCK = 1 << 18
#: ‖θ − θ0‖², or its root.
Form = Literal["squared", "root"]


class NearParameters:
    """λ‖θ − θ0‖², or λ‖θ − θ0‖ in its root form, with its gradient written down: no graph is built.

    θ0 is what the parameters are now, or those of another model of the same make.
    """

    name = "parameters"

    def __init__(
        self,
        parameters: Iterable[torch.nn.Parameter],
        weight: float = 1.0,
        form: Form = "squared",
        *,
        toward: Iterable[torch.nn.Parameter] | None = None,
    ) -> None:
        self.weight, self.form = weight, form
        held = list(parameters)
        both = zip(held, held if toward is None else toward, strict=True)
        self._pairs = [(one, first.detach().clone()) for one, first in both if one.requires_grad]

    @torch.no_grad()
    def add(self) -> float:
        """Add the gradient in place and return the value."""
        if self.form == "squared":
            return self.weight * self._pull(2 * self.weight)
        length = math.sqrt(self._pull(0.0))
        if length:
            self._pull(self.weight / length)
        return self.weight * length

    def _pull(self, slope: float) -> float:
        """Add slope·(θ − θ0) to the gradients, and return ‖θ − θ0‖²."""
        squares = []
        for one, first in self._pairs:
            if one.grad is None:  # no loss reaches it, so it does not move
                continue
            # Blocks that stay in the processor's caches: a copy of all weights would cost more than the rest.
            whole = [tensor if tensor.ndim else tensor[None] for tensor in (one, first.to(one), one.grad)]
            parts = (torch.split(tensor, max(1, BLOCK * len(tensor) // tensor.numel())) for tensor in whole)
            for now, then, gradient in zip(*parts, strict=True):
                apart = now - then
                squares.append(apart.square().sum())
                if slope:
                    gradient.add_(apart, alpha=slope)
        return float(torch.stack(squares).double().sum()) if squares else 0.0


class Originals(Protocol):
    """The vectors that the original encoder gives to held words."""

    #: Where they come from, in words.
    about: str

    def of(self, held: TextBatch, rows: Sequence[Longs]) -> list[torch.Tensor]:
        """One tensor a layer, a row for every word of `held`, which are `rows` of each held text."""
        ...


class KeptOriginals:
    """Vectors of whole texts, computed once and kept; with a cache also on disk, for the next seed."""

    def __init__(
        self,
        encoder: HuggingFaceEncoder,
        texts: Sequence[Sentences],
        *,
        layers: Sequence[int],
        pooling: Pooling,
        specials: bool = False,
        cache: Cache | None = None,
    ) -> None:
        original = encoder if cache is None else CachedEncoder(encoder, cache)
        self._first: list[Longs] = []
        self._vectors: list[torch.Tensor] = []
        for text in texts:
            asked = every_word(text, specials=specials)
            found = original.word_vectors(text, asked, layers=layers, pooling=pooling)
            count = np.bincount(asked.sentence[found.present], minlength=len(text))
            self._first.append(np.concatenate([[0], np.cumsum(count)]))
            self._vectors.append(torch.from_numpy(np.asarray(found.vectors, np.float32)))
        size = sum(one.numel() for one in self._vectors) * 4
        self._device = encoder.device
        self.about = f"vectors of the original encoder were computed once and kept ({size / 1e6:,.0f} MB)"

    def of(self, held: TextBatch, rows: Sequence[Longs]) -> list[torch.Tensor]:
        parts = []
        for first, vectors, chosen in zip(self._first, self._vectors, rows, strict=True):
            place = ragged(first[chosen], first[chosen + 1] - first[chosen])[1]
            parts.append(vectors[:, torch.from_numpy(place)])
        return list(torch.cat(parts, 1).to(self._device))


class FrozenCopy:
    """A copy of the original encoder, which computes the vectors of every batch anew."""

    about = "a frozen copy of the original encoder computes its vectors for every batch"

    def __init__(self, encoder: HuggingFaceEncoder, *, layers: Sequence[int], pooling: Pooling) -> None:
        shared = (encoder.tokenizer, encoder.reader)
        self._encoder = copy.deepcopy(encoder, {id(one): one for one in shared})
        self._encoder.model.requires_grad_(False).eval()
        self._layers, self._pooling = layers, pooling

    @torch.no_grad()
    def of(self, held: TextBatch, rows: Sequence[Longs]) -> list[torch.Tensor]:
        states = self._encoder.states(held, self._layers)
        taken = bags(held.row, held.start, held.end, width=held.pieces.shape[1], pooling=self._pooling)
        return [pool(hidden, taken) for hidden in states.hidden]


def originals(
    encoder: HuggingFaceEncoder,
    texts: Sequence[Sentences],
    *,
    layers: Sequence[int],
    pooling: Pooling,
    specials: bool = False,
    most: float = 2e9,
    whole: bool = True,
    cache: Cache | None = None,
) -> Originals:
    """The original's vectors of these texts.

    Kept where `whole` texts will be read and their vectors take at most so many bytes, else by a copy.
    """
    words = sum(len(text.ids) + 2 * specials * len(text) for text in texts)
    if whole and words * encoder.width * len(layers) * 4 <= most:
        return KeptOriginals(encoder, texts, layers=layers, pooling=pooling, specials=specials, cache=cache)
    return FrozenCopy(encoder, layers=layers, pooling=pooling)


def every_word(text: Sentences, *, specials: bool) -> WordIndex:
    """All words of a text, with or without the special tokens before those of each sentence."""
    words = WordIndex.every(text)
    if not specials:
        return words
    rows = np.arange(len(text), dtype=np.int32)
    sentence = np.concatenate([rows, rows, words.sentence])
    marks = np.repeat(np.array([LAST_SPECIAL, FIRST_SPECIAL], np.int32), len(text))
    word = np.concatenate([marks, words.word])
    order = np.lexsort((word, sentence))
    return WordIndex(sentence[order], word[order])
