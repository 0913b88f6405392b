"""Sentences by a number that is the same wherever they stand, and pieces as parts of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from unicodedata import category, combining, normalize

import numpy as np

from calque.types import Bitext, Longs, Sentences

# ------------------------------------------------------------------------------------------- sentences


def pair_names(bitext: Bitext) -> Longs:
    """A number for each sentence pair, the same in either order of its languages. Shape: (sentences,)."""
    # The sum may overflow, which does no harm.
    return sentence_names(bitext.source) + sentence_names(bitext.target)


def sentence_names(sentences: Sentences) -> Longs:
    """A number for each sentence that is the same wherever it stands, however it is cut. Shape: (sentences,).

    Spaces, case, accents and characters without looks of their own do not count: tokenisers take them away.

    >>> a, b = (Sentences.of("en", [words]) for words in (["It", "is", "."], ["It", "is."]))
    >>> sentence_names(a).tolist() == sentence_names(b).tolist()
    True
    """
    if sentences.unit != "piece":
        return text_names(map("".join, sentences))
    spelling = Spelling.of(sentences.vocabulary.strings)
    return text_names(map(spelling.text, sentences))


def text_names(texts: Iterable[str]) -> Longs:
    """The same of any texts. Shape: (texts,)."""
    return np.fromiter(map(_named, map(_letters, texts)), np.int64)


def _named(letters: str) -> int:
    digest = blake2b(letters.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _letters(text: str) -> str:
    if not text.isascii():
        # What is compatible comes first: № is No, and ´ an accent after a space.
        kept = (c for c in normalize("NFKD", text) if not combining(c) and category(c) != "Cf")
        text = "".join(kept)
    return "".join(text.split()).casefold()


# ------------------------------------------------------------------------------------------- pieces


@dataclass(frozen=True)
class Spelling:
    """How a vocabulary writes pieces: what the first of a word begins with, or else what the others do.

    >>> Spelling.of(["Kat", "##ze"]).text(["Kat", "##ze"]), Spelling.of(["▁Kat"]).text(["▁Kat", "ze"])
    ('Katze', 'Katze')
    """

    first: str = ""
    later: str = ""

    @classmethod
    def of(cls, pieces: Sequence[str]) -> Spelling:
        """That of these pieces: the commonest mark is it, as every vocabulary has some odd pieces."""
        return max(_SPELLINGS, key=lambda one: sum(piece.startswith(one.mark) for piece in pieces))

    @property
    def mark(self) -> str:
        return self.first or self.later

    def begins(self, piece: str) -> bool:
        """Whether a word begins with this piece."""
        return piece.startswith(self.first) if self.first else not piece.startswith(self.later)

    def text(self, pieces: Iterable[str]) -> str:
        """The letters of pieces: as words have them, of some words one after the other."""
        if self.later:
            return "".join(piece.removeprefix(self.later) for piece in pieces)
        text = "".join(pieces)
        if self != _BYTES:
            return text.replace(self.first, "")
        return b"".join(_bytes_of(text)).decode("utf-8", "replace").replace(" ", "")


def _bytes_of(text: str) -> Iterator[bytes]:
    """The bytes that characters of a vocabulary of bytes stand for; its other characters are themselves."""
    return (_BYTE.get(c) or c.encode("utf-8", "surrogatepass") for c in text)


#: WordPiece is what a vocabulary without any mark is taken for.
_SPELLINGS = _, _, _BYTES = Spelling(later="##"), Spelling("▁"), Spelling("Ġ")
#: GPT-2's characters for bytes: printed ones are themselves, the others follow from 256 on.
_PRINTED = (*range(33, 127), *range(161, 173), *range(174, 256))
_OTHERS = [byte for byte in range(256) if byte not in _PRINTED]
_BYTE = {chr(byte): bytes([byte]) for byte in _PRINTED} | {
    chr(256 + place): bytes([byte]) for place, byte in enumerate(_OTHERS)
}
