"""Sentences by a number that is the same wherever they stand, and pieces as parts of words."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from unicodedata import combining, normalize

import numpy as np

from calque.types import Bitext, Longs, Sentences

#: What the first piece of a word begins with, in vocabularies of SentencePiece and of bytes.
SPACE_MARKS = "▁Ġ"


def sentence_names(sentences: Sentences) -> Longs:
    """A number for each sentence that is the same wherever it stands, however it is cut. Shape: (sentences,).

    Spaces, case and accents do not count: tokenisers take them away.

    >>> a, b = (Sentences.of("en", [words]) for words in (["It", "is", "."], ["It", "is."]))
    >>> sentence_names(a).tolist() == sentence_names(b).tolist()
    True
    """
    names = (_named(_letters(sentences[i], sentences.unit)) for i in range(len(sentences)))
    return np.fromiter(names, np.int64, len(sentences))


def _named(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _letters(words: Sequence[str], unit: str) -> str:
    if unit == "piece":
        words = [bare_piece(piece) for piece in words]
    text = "".join("".join(words).split()).casefold()
    return text if text.isascii() else "".join(c for c in normalize("NFKD", text) if not combining(c))


def bare_piece(piece: str) -> str:
    """A piece without the mark of where a word begins or goes on.

    >>> [bare_piece(piece) for piece in ("▁Kat", "##ze", "Ġcat", "▁")]
    ['Kat', 'ze', 'cat', '']
    """
    return piece.removeprefix("##").lstrip(SPACE_MARKS)


def pair_names(bitext: Bitext) -> Longs:
    """A number for each sentence pair, the same in either order of its languages. Shape: (sentences,)."""
    # The sum may overflow, which does no harm.
    return sentence_names(bitext.source) + sentence_names(bitext.target)
