"""Links by an encoder's own vectors: words that are nearest to each other within a sentence pair.

No training and no corpus, but only as good as the encoder is aligned already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calque.errors import BadSetting
from calque.progress import bar
from calque.recipe import Choice
from calque.types import Bitext, Encoder, Flags, Floats, Pooling, Sentences, WordIndex, WordPairs

CHUNK = 128
_NEVER = np.float32(-np.inf)


class SimilarityMethod(Choice):
    """How similarities become links.

    mutual: two words that are each other's nearest. iterative: then again among pairs with a word still free
    (simalign's itermax). softmax: pairs probable in both directions (awesome-align).
    """

    MUTUAL = "mutual"
    ITERATIVE = "iterative"
    SOFTMAX = "softmax"


@dataclass(frozen=True)
class SimilarityLinker:
    """Links words by their vectors at one layer; words that the encoder cannot see get no link.

    `rounds` is for iterative. `threshold` is for softmax, over dot products as the encoder gives them.
    Scores are cosines, below 0 counting 0; for softmax the geometric mean of the two probabilities.
    """

    encoder: Encoder
    layer: int
    method: SimilarityMethod = SimilarityMethod.MUTUAL
    pooling: Pooling = "mean"
    threshold: float = 0.001
    rounds: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.layer <= self.encoder.depth:
            raise BadSetting(f"no layer {self.layer}", remedy=f"0 (embeddings) to {self.encoder.depth}")
        if not 0 <= self.threshold < 1:
            raise BadSetting(f"threshold is {self.threshold}", remedy="a probability from 0 to under 1")
        if self.rounds < 1:
            raise BadSetting(f"rounds is {self.rounds}", remedy="at least 1")

    @property
    def name(self) -> str:
        return f"{self.method}/{self.encoder.name}/layer {self.layer}"

    def link(self, bitext: Bitext) -> WordPairs:
        """Links of this text, sentences of like length together."""
        order = np.lexsort((bitext.target.lengths, bitext.source.lengths))
        found = [np.zeros((3, 0), np.int64)]
        scores = [np.zeros(0, np.float32)]
        with bar(f"Linking by {self.encoder.name}", len(bitext), "sentences") as advance:
            for first in range(0, len(order), CHUNK):
                rows = order[first : first + CHUNK]
                (k, i, j), score = self._link(bitext.select(rows))
                found.append(np.stack([rows[k], i, j]))
                scores.append(score)
                advance(len(rows))
        sentence, source, target = np.concatenate(found, 1)
        return WordPairs.of(bitext, sentence, source, target, np.concatenate(scores), self.name)

    def _link(self, bitext: Bitext) -> tuple[tuple[NDArray[np.int64], ...], Floats]:
        unit = self.method is not SimilarityMethod.SOFTMAX
        (a, has_a), (b, has_b) = (self._padded(side, unit) for side in (bitext.source, bitext.target))
        real = has_a[:, :, None] & has_b[:, None, :]
        product = a @ b.transpose(0, 2, 1)
        # A word that stands twice in a sentence must tie with itself, however the product was added up.
        similarity = np.where(real, product.round(5) if unit else product, _NEVER)
        links, score = _METHODS[self.method](similarity, real, self)
        return np.nonzero(links), score[links].clip(0, 1)

    def _padded(self, side: Sentences, unit: bool) -> tuple[Floats, Flags]:
        """Shape: (sentences, longest, d) and (sentences, longest): which places hold a word."""
        words = WordIndex.every(side)
        seen = self.encoder.word_vectors(side, words, layers=[self.layer], pooling=self.pooling)
        vectors = seen.layer(self.layer)
        if unit:
            vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
        place = words.sentence[seen.present], words.word[seen.present]
        shape = len(side), int(side.lengths.max())
        padded = np.zeros((*shape, vectors.shape[1]), np.float32)
        padded[place] = vectors
        held = np.zeros(shape, bool)
        held[place] = True
        return padded, held


# ------------------------------------------------------------------------------------------- methods


def mutual(similarity: Floats, real: Flags) -> Flags:
    """Pairs that are the largest of their row and of their column. Shape: all (sentences, n, m)."""
    rows = np.arange(similarity.shape[1])[:, None] == similarity.argmax(1)[:, None, :]
    columns = np.arange(similarity.shape[2]) == similarity.argmax(2)[:, :, None]
    return np.asarray(rows & columns & real)


def iterative(similarity: Floats, real: Flags, rounds: int) -> Flags:
    """Mutual argmax, again among pairs with a free word while both sides have one.

    As in simalign, sentences with a side of one or two words stop after the first round.
    Shape: all (sentences, n, m).
    """
    links = mutual(similarity, real)
    has_a, has_b = real.any(2), real.any(1)
    long = np.minimum(has_a.sum(1), has_b.sum(1)) > 2
    for _ in range(rounds - 1):
        free_a, free_b = has_a > links.any(2), has_b > links.any(1)
        going = np.asarray(long & free_a.any(1) & free_b.any(1))
        allowed = real & going[:, None, None] & (free_a[:, :, None] | free_b[:, None, :])
        links |= mutual(np.where(allowed, similarity, _NEVER), allowed)
    return links


def probabilities(similarity: Floats, real: Flags) -> tuple[Floats, Floats]:
    """Of each target word given the source word, and the reverse. Shape: all (sentences, n, m)."""
    return _softmax(similarity, real, 2), _softmax(similarity, real, 1)


def _softmax(similarity: Floats, real: Flags, axis: int) -> Floats:
    top = similarity.max(axis, keepdims=True, initial=-1e30)
    weight = np.exp(np.where(real, similarity - top, _NEVER))
    return np.asarray(weight / weight.sum(axis, keepdims=True).clip(1e-30), np.float32)


def _by_softmax(similarity: Floats, real: Flags, settings: SimilarityLinker) -> tuple[Flags, Floats]:
    there, back = probabilities(similarity, real)
    return real & (np.minimum(there, back) > settings.threshold), np.sqrt(there * back)


_Method: TypeAlias = Callable[[Floats, Flags, SimilarityLinker], tuple[Flags, Floats]]
_METHODS: dict[SimilarityMethod, _Method] = {
    SimilarityMethod.MUTUAL: lambda similarity, real, settings: (mutual(similarity, real), similarity),
    SimilarityMethod.ITERATIVE: lambda similarity, real, settings: (
        iterative(similarity, real, settings.rounds),
        similarity,
    ),
    SimilarityMethod.SOFTMAX: _by_softmax,
}
