"""Word vectors from counts: positive pointwise mutual information, then a truncated SVD.

Each language is learned from its own text alone, in seconds. Two languages therefore come out in two
unrelated bases: bringing them together is what aligners are for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import svds
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from calque.encoders.static import StaticEncoder
from calque.encoders.tables import WordTable
from calque.errors import BadInput, BadSetting
from calque.types import Floats, Longs, Sentences, Vocabulary


def count_encoder(
    texts: Sequence[Sentences],
    *,
    width: int = 100,
    window: int = 3,
    min_count: int = 2,
    seed: int = 0,
    name: str = "counts",
) -> StaticEncoder:
    """Static vectors of several languages, each from its own text."""
    tables: dict[str, WordTable] = {}
    for text in texts:
        if text.language in tables:
            raise BadSetting(f"two texts in {text.language!r}", remedy="give one text a language")
        tables[text.language] = learn_counts(text, width=width, window=window, min_count=min_count, seed=seed)
    return StaticEncoder(tables, name=name)


def learn_counts(
    sentences: Sentences, *, width: int = 100, window: int = 3, min_count: int = 2, seed: int = 0
) -> WordTable:
    """Vectors of the words that occur `min_count` times or more, the most frequent first.

    A word that keeps no company more often than chance would has no vector. Shape: (words, width).
    """
    for option, value in (("width", width), ("window", window), ("min_count", min_count)):
        if value < 1:
            raise BadSetting(f"{option} is {value}", remedy="at least 1")
    frequent = _frequent(sentences, min_count)
    association = ppmi(cooccurrences(sentences, frequent, window))
    kept = np.flatnonzero(np.diff(association.indptr))
    if len(kept) <= width:
        raise BadInput(
            f"{len(kept)} words of {sentences.language!r} occur {min_count} times beside others: "
            f"too few for vectors of width {width}",
            remedy="give more text, a smaller width or a smaller min_count",
        )
    strings = sentences.vocabulary.strings
    words = Vocabulary.of(strings[i] for i in frequent[kept].tolist())
    return WordTable(words, _compress(association[kept], width, seed))


def _frequent(sentences: Sentences, min_count: int) -> Longs:
    """Ids of the words that occur often enough, most frequent first. Shape: (types,)."""
    counts = np.bincount(sentences.ids, minlength=len(sentences.vocabulary))
    order = np.argsort(-counts, kind="stable")
    return order[: int((counts >= min_count).sum())]


def cooccurrences(sentences: Sentences, words: Longs, window: int) -> csr_array:
    """How often each of these words stands within `window` words of each other one in a sentence.

    The nearer counts more: a neighbour counts 1, the farthest 1/window. Other words keep their places but
    are not counted. Shape: words (types,) as vocabulary ids, to (types, types), symmetric.

    >>> text = Sentences.of("en", [["a", "b", "c"]])
    >>> cooccurrences(text, np.arange(3), window=2).toarray().tolist()
    [[0.0, 1.0, 0.5], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]]
    """
    place = np.full(len(sentences.vocabulary), -1, np.int64)
    place[words] = np.arange(len(words))
    ids = place[sentences.ids]
    sentence = np.repeat(np.arange(len(sentences)), sentences.lengths)
    total = csr_array((len(words), len(words)), dtype=np.float64)
    for distance in range(1, window + 1):
        left, right = ids[:-distance], ids[distance:]
        together = (sentence[:-distance] == sentence[distance:]) & (left >= 0) & (right >= 0)
        weight = np.full(int(together.sum()), 1 - (distance - 1) / window)
        total = total + coo_array((weight, (left[together], right[together])), shape=total.shape).tocsr()
    return csr_array(total + total.T)


def ppmi(counts: csr_array, smoothing: float = 0.75) -> csr_array:
    """Positive pointwise mutual information; contexts are smoothed so that rare ones weigh less.

    Shape: (types, types) to (types, types), without stored zeros.
    """
    cells = counts.tocoo()
    word, context = counts.sum(1), counts.sum(0) ** smoothing
    with np.errstate(divide="ignore"):
        information = (
            np.log(cells.data)
            - np.log(word)[cells.row]
            - np.log(context / max(context.sum(), 1e-12))[cells.col]
        )
    positive = information > 0
    return csr_array((information[positive], (cells.row[positive], cells.col[positive])), shape=counts.shape)


def _compress(association: csr_array, width: int, seed: int) -> Floats:
    """U·√Σ of a truncated SVD, largest first, each column's largest entry positive. Shape: (types, width)."""
    start = np.random.default_rng(seed).normal(size=min(association.shape))
    # Many small products: a second thread makes them slower, and sums in another order.
    with threadpool_limits(1, user_api="blas"):
        u, sigma, _ = svds(association, k=width, v0=start)
    vectors = u[:, ::-1] * np.sqrt(np.maximum(sigma[::-1], 0))
    largest = vectors[np.abs(vectors).argmax(0), np.arange(width)]
    return np.asarray(vectors * np.where(largest < 0, -1, 1), np.float32)
