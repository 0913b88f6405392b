"""Vectors from counts: brute-force twins, and two languages of one planted world brought together."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.encoders.counts import cooccurrences, count_encoder, learn_counts, ppmi
from calque.errors import BadInput, BadSetting
from calque.types import Sentences

WORDS = 200
texts = st.lists(st.lists(st.sampled_from("abcdef"), max_size=7), min_size=1, max_size=6)


def planted(language: str, seed: int, sentences: int = 8000) -> Sentences:
    """Text of one world in words of one language: what follows what is the same in all of them."""
    follow = np.random.default_rng(0).dirichlet(np.full(WORDS, 0.02), WORDS).cumsum(1)
    rng = np.random.default_rng(seed)
    words = np.zeros((sentences, 10), int)
    words[:, 0] = rng.integers(WORDS, size=sentences)
    for place in range(1, 10):
        chance = rng.random(sentences)[:, None]
        words[:, place] = np.minimum((follow[words[:, place - 1]] < chance).sum(1), WORDS - 1)
    return Sentences.of(language, [[f"{language}{word}" for word in row] for row in words.tolist()])


def slow_counts(sentences: list[list[str]], window: int) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for sentence in sentences:
        for i, word in enumerate(sentence):
            for j, other in enumerate(sentence):
                if 0 < abs(i - j) <= window:
                    counts[word, other] += 1 - (abs(i - j) - 1) / window
    return counts


@given(texts, st.integers(1, 5))
def test_cooccurrences_pair_by_pair(sentences, window):
    text = Sentences.of("en", sentences)
    words = np.arange(len(text.vocabulary))
    held = cooccurrences(text, words, window).toarray()
    slow, strings = slow_counts(sentences, window), text.vocabulary.strings
    assert np.allclose(held, np.reshape([slow[a, b] for a in strings for b in strings], held.shape))
    chosen = words[::2]
    assert np.allclose(cooccurrences(text, chosen, window).toarray(), held[np.ix_(chosen, chosen)])


@given(texts)
def test_ppmi_cell_by_cell(sentences):
    text = Sentences.of("en", sentences)
    held = ppmi(cooccurrences(text, np.arange(len(text.vocabulary)), 2)).toarray()
    slow, strings = slow_counts(sentences, 2), text.vocabulary.strings
    total = sum(slow.values())
    mass = {a: sum(slow[a, b] for b in strings) for a in strings}
    smooth = sum(count**0.75 for count in mass.values())
    for a, word in enumerate(strings):
        for b, other in enumerate(strings):
            together, chance = slow[word, other] / total if total else 0, 0.0
            if together:
                chance = mass[word] / total * mass[other] ** 0.75 / smooth
            assert math.isclose(
                held[a, b], max(0, math.log(together / chance)) if together else 0, abs_tol=1e-9
            )


@pytest.mark.parametrize("seed", range(3))
def test_against_a_dense_svd(seed):
    rng = np.random.default_rng(seed)
    text = Sentences.of("en", [[f"w{i}" for i in row] for row in rng.zipf(1.5, (300, 8)) % 40])
    table = learn_counts(text, width=6, window=2, min_count=1, seed=seed)
    order = [text.vocabulary.strings.index(word) for word in table.words]
    u, sigma, _ = np.linalg.svd(ppmi(cooccurrences(text, np.array(order), 2)).toarray())
    best = (u[:, :6] * sigma[:6]) @ u[:, :6].T
    assert np.allclose(table.vectors @ table.vectors.T, best, atol=1e-3)
    sizes = np.linalg.norm(table.vectors, axis=0)
    assert (np.diff(sizes) < 1e-5).all()
    assert (table.vectors[np.abs(table.vectors).argmax(0), np.arange(6)] > 0).all()


def test_two_languages_differ_by_a_rotation():
    """Unrelated as they come; a rotation learned on half of the words carries the other half over."""
    encoder = count_encoder([planted("en", 1), planted("xx", 2)], width=30)
    sides = []
    for language in ("en", "xx"):
        words = Sentences.of(language, [[f"{language}{i}" for i in range(WORDS)]])
        held = encoder.word_vectors(words, layers=(0,))
        assert held.present.all()
        sides.append(held.layer(0) / np.linalg.norm(held.layer(0), axis=1, keepdims=True))
    source, target = sides
    half = WORDS // 2
    u, _, vt = np.linalg.svd(target[:half].T @ source[:half])

    def right(vectors: np.ndarray) -> float:
        return float(((vectors[half:] @ target.T).argmax(1) == np.arange(half, WORDS)).mean())

    assert right(source) < 0.2
    assert right(source @ (u @ vt).T) > 0.9


def test_words_of_like_company_are_near():
    rng = np.random.default_rng(3)
    groups = [[f"{kind}{i}" for i in range(10)] for kind in "abcd"]
    sentences = [rng.choice(groups[rng.integers(4)], 6).tolist() for _ in range(800)]
    table = learn_counts(Sentences.of("en", sentences), width=4)
    unit = table.vectors / np.linalg.norm(table.vectors, axis=1, keepdims=True)
    kinds = np.array([word[0] for word in table.words])
    nearest = (unit @ unit.T - 2 * np.eye(len(unit))).argmax(1)
    assert (kinds[nearest] == kinds).all()


def test_repeatable_and_frequent_first():
    text = planted("en", 4, 1000)
    table, again = (learn_counts(text, width=10, min_count=5, seed=0) for _ in range(2))
    assert np.array_equal(table.vectors, again.vectors) and table.fingerprint == again.fingerprint
    counts = Counter(word for sentence in text for word in sentence)
    held = [counts[word] for word in table.words]
    assert held == sorted(held, reverse=True) and min(held) >= 5
    other = learn_counts(text, width=10, min_count=5, seed=1)
    assert np.allclose(np.abs(other.vectors), np.abs(table.vectors), atol=1e-3)


def test_fewer_directions_than_asked_for():
    """Two closed groups of like words span two directions; the third comes out as nothing."""
    groups = ["abc", "def"]
    text = Sentences.of("en", [[one, other] for group in groups for one in group for other in group])
    table = learn_counts(text, width=3)
    assert np.isfinite(table.vectors).all()
    assert np.abs(table.vectors[:, 2]).max() < 1e-3 < 0.1 < np.linalg.norm(table.vectors[:, :2], axis=1).min()


@pytest.mark.parametrize(
    ("sentences", "told"),
    [([], "0 words"), ([["a"], ["b"], ["a"]], "0 words"), ([["a", "b"]] * 3, "2 words of 'en'.*width 100")],
)
def test_too_little_text(sentences, told):
    with pytest.raises(BadInput, match=told):
        learn_counts(Sentences.of("en", sentences))


def test_bad_settings():
    text = Sentences.of("en", [["a", "b"]])
    for option in ("width", "window", "min_count"):
        with pytest.raises(BadSetting, match=f"{option} is 0"):
            learn_counts(text, **{option: 0})
    with pytest.raises(BadSetting, match="two texts in 'xx'"):
        count_encoder([planted("xx", 5, 1000), planted("xx", 6, 1000)], width=10)
