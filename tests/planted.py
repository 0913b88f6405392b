"""An encoder whose answer is known: two languages in one space but for a planted map."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from calque.types import Bitext, Sentences, WordIndex, WordPairs, WordVectors


@dataclass
class PlantedEncoder:
    """Gives every word type a fixed vector (by language), plus a little noise by context if wished."""

    tables: dict[str, dict[str, np.ndarray]]
    depth: int = 2
    noise: float = 0.0
    missing: frozenset[str] = frozenset()
    name: str = "planted"
    calls: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        return len(next(iter(next(iter(self.tables.values())).values())))

    @property
    def languages(self) -> frozenset[str]:
        return frozenset(self.tables)

    @property
    def fingerprint(self) -> str:
        return self.name

    def word_vectors(
        self,
        sentences: Sentences,
        words: WordIndex | None = None,
        *,
        layers: Sequence[int],
        pooling: str = "mean",
    ) -> WordVectors:
        self.calls.append(sentences.language)
        asked = words or WordIndex.every(sentences)
        strings = [
            sentences.word(s, w) for s, w in zip(asked.sentence.tolist(), asked.word.tolist(), strict=True)
        ]
        present = np.array([word not in self.missing for word in strings], bool)
        table = self.tables[sentences.language]
        plain = np.array([table[word] for word in strings if word not in self.missing]).reshape(
            -1, self.width
        )
        rng = np.random.default_rng(len(strings))
        rows = [plain * (1 + layer) + self.noise * rng.normal(size=plain.shape) for layer in layers]
        return WordVectors(
            tuple(layers), np.stack(rows).astype(np.float32), present, {"unknown": int((~present).sum())}
        )

    def sentence_vectors(
        self, sentences: Sentences, *, layers: Sequence[int], pooling: str = "mean"
    ) -> np.ndarray:
        table = self.tables[sentences.language]
        means = np.array([np.mean([table[word] for word in words], 0) for words in sentences])
        return np.stack([means * (1 + layer) for layer in layers]).astype(np.float32)

    def batch(self, sentences: Sentences) -> object:
        raise AssertionError("not used")

    def states(self, batch: object, layers: Sequence[int]) -> object:
        raise AssertionError("not used")


def orthogonal(width: int, seed: int) -> np.ndarray:
    """A random orthogonal matrix."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width)))[0]


def planted(
    languages: Sequence[str] = ("en", "xx"), *, types: int = 200, width: int = 16, sentences: int = 150
) -> tuple[PlantedEncoder, dict[str, WordPairs], dict[str, np.ndarray]]:
    """An encoder, gold pairs of the first language with each other, and the rotations that were planted.

    Word k of language xx is `xxk`; its vector is Q·v(k) + shift, with a shift of its own for each language.
    """
    rng = np.random.default_rng(0)
    base = rng.normal(size=(types, width))
    turns = {language: orthogonal(width, 10 + place) for place, language in enumerate(languages)}
    turns[languages[0]] = np.eye(width)
    shifts = {language: rng.normal(size=width) * 2 for language in languages}
    tables = {
        language: {f"{language}{k}": turns[language] @ base[k] + shifts[language] for k in range(types)}
        for language in languages
    }
    pairs = {}
    for language in languages[1:]:
        drawn = [rng.integers(0, types, rng.integers(4, 9)).tolist() for _ in range(sentences)]
        order = [rng.permutation(len(words)).tolist() for words in drawn]
        source = [[f"{languages[0]}{k}" for k in words] for words in drawn]
        target = [
            [f"{language}{words[i]}" for i in places] for words, places in zip(drawn, order, strict=True)
        ]
        bitext = Bitext.of((languages[0], language), source, target)
        rows = [(s, i, j) for s, places in enumerate(order) for j, i in enumerate(places)]
        s, i, j = np.array(rows).T
        pairs[language] = WordPairs.of(bitext, s, i, j, linker="gold")
    return PlantedEncoder(tables), pairs, turns
