"""Small bitexts with known links, in words that the tiny encoders' tokenizers know."""

import numpy as np

from calque.types import Bitext, WordPairs

WORDS = {
    "en": ["cat", "sat", "mat", "dog", "life", "it", "and", "children", "loud", "carpet"],
    "de": ["Katze", "saß", "Matte", "Hund", "Leben", "es", "und", "Kinder", "laut", "Teppich"],
    "ru": ["Кошка", "сидела", "ковре", "собака", "жизнь", "это", "а", "дети", "громко", "ковёр"],
}


def linked_text(
    other: str = "de", *, sentences: int = 24, seed: int = 0, longest: int = 7, share: float = 0.8
) -> WordPairs:
    """English sentences of random words, their words translated in another order, most of them linked."""
    random = np.random.default_rng(seed)
    source, target, rows = [], [], []
    for number in range(sentences):
        words = random.integers(0, len(WORDS["en"]), random.integers(2, longest))
        order = random.permutation(len(words))
        source.append([WORDS["en"][k] for k in words])
        target.append([WORDS[other][words[i]] for i in order])
        rows += [(number, i, j) for j, i in enumerate(order.tolist()) if j == 0 or random.random() < share]
    s, i, j = np.array(rows).T
    return WordPairs.of(Bitext.of(("en", other), source, target), s, i, j)
