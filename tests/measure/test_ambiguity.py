"""Ambiguous words in context: an encoder that reads the context, and one that does not."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from calque.errors import BadInput, BadSetting
from calque.geometry.neighbours import Similarity
from calque.measure.ambiguity import AmbiguityOptions, ambiguous_words, choose_words
from calque.measure.word_retrieval import RetrievalOptions
from calque.types import Bitext, Sentences, WordIndex, WordPairs, WordVectors

#: Two words with two senses on either side: English bank and order, German Schloss and Bank.
MEANS = {
    "bank": ("Ufer", "Kasse"), "order": ("Befehl", "Auftrag"), "Schloss": ("castle", "lock"),
    "Decke": ("blanket", "ceiling"),
}  # fmt: skip
SEARCH = RetrievalOptions(similarity=Similarity.COSINE, rounds=50)


def text(repeats: int = 6, linker: str = "eflomal/intersection") -> WordPairs:
    """Sentences of an ambiguous word, a word that tells its sense, and one of the sentence's own."""
    rows: list[tuple[list[str], list[str]]] = []
    for k in range(repeats):
        for word, senses in MEANS.items():
            for sense in senses:
                own = f"{word}{sense}{k}"
                here, there = [f"x{own}", f"tells{sense}", word], [f"y{own}", f"sagt{sense}", sense]
                rows.append((here, there) if word.islower() else (there, here))
    source = [["the"] * 8 + a for a, _ in rows]
    target = [["der"] * 8 + b for _, b in rows]
    bitext = Bitext.of(("en", "de"), source, target)
    sentence = np.repeat(np.arange(len(rows)), 3)
    return WordPairs.of(bitext, sentence, *np.tile([8, 9, 10], (2, len(rows))), linker=linker)


def direction(name: str, width: int = 64) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest())
    return np.random.default_rng(seed).normal(size=width)


@dataclass
class Reader:
    """Words with the vector of what they mean and where; without `sight`, an ambiguous word means the first
    of its senses in every sentence."""

    sight: bool = True
    depth: int = 1
    name: str = "reader"
    width: int = 64
    languages: frozenset[str] | None = None
    asked: int = 0

    @property
    def fingerprint(self) -> str:
        return f"{self.name}{self.sight}"

    def word_vectors(
        self,
        sentences: Sentences,
        words: WordIndex | None = None,
        *,
        layers: Sequence[int],
        pooling: str = "",
    ) -> WordVectors:
        every = words or WordIndex.every(sentences)
        self.asked += len(sentences)
        rows = [self._vector(sentences[s], w) for s, w in zip(*map(np.ndarray.tolist, every), strict=True)]
        vectors = np.stack([rows] * len(layers)).astype(np.float32)
        return WordVectors(tuple(layers), vectors, np.ones(len(rows), bool))

    def _vector(self, sentence: list[str], place: int) -> np.ndarray:
        word, own, tells = sentence[place], sentence[8][1:], sentence[9]
        meant = MEANS.get(word, (word,))
        sense = next((one for one in meant if tells.endswith(one)), word) if self.sight else meant[0]
        meaning = sense.replace("sagt", "tells").replace("y", "x", word.startswith("y")).replace("der", "the")
        return direction(meaning) + 0.3 * direction(own)


def test_one_that_reads_the_context_finds_every_sense() -> None:
    measured = ambiguous_words(
        {"blind": Reader(sight=False), "sighted": Reader()},
        text(),
        {"blind": 1, "sighted": 1},
        retrieval=SEARCH,
    )
    figures = {(r.encoder, r.direction): r for r in measured.results if r.baseline is None}
    assert all(figures["sighted", way].value == 1.0 for way in ("forward", "backward"))
    assert all(figures["blind", way].value == 0.5 for way in ("forward", "backward")), (
        "the first of two senses"
    )
    assert all(r.task == "ambiguous-words" and r.count == 8 and r.layer == 1 for r in figures.values())
    gains = [r for r in measured.results if r.baseline == "blind"]
    assert [r.value for r in gains] == [0.5, 0.5] and all(r.low > 0 for r in gains)
    assert set(measured.items) == {r.items for r in figures.values()}


def test_the_words_are_those_planted_in_both_languages() -> None:
    told = ambiguous_words({"it": Reader()}, text(), {"it": 1}, retrieval=SEARCH).artifacts["senses"]
    assert {(one["languages"][0], one["word"]) for one in told} == {
        ("en", "bank"), ("en", "order"), ("de", "schloss"), ("de", "decke"),
    }  # fmt: skip
    for one in told:
        assert (one["count"], one["entropy"], one["layer"]) == (12, 1.0, 1), "of the whole text"
        golds = [shown["gold"]["word"] for shown in one["occurrences"]]
        assert sorted(golds[:2]) == sorted(golds[2:]) and len(set(golds)) == 2, "every sense in turn"
        for shown in one["occurrences"]:
            assert shown["query"].casefold() == one["word"] == shown["sentence"][shown["index"]].casefold()
            assert (
                shown["retrieved"]["it"]["hit"] and shown["retrieved"]["it"]["word"] == shown["gold"]["word"]
            )


def test_only_some_sentences_are_read() -> None:
    pairs, encoder = text(repeats=20), Reader()
    options = AmbiguityOptions(types=1, occurrences=2, sentences=10)
    measured = ambiguous_words({"it": encoder}, pairs, {"it": 1}, options=options, retrieval=SEARCH)
    assert measured.counts["sentences"] == 10 and encoder.asked == 20
    assert {len(one["occurrences"]) for one in measured.artifacts["senses"]} == {2}
    fewer = ambiguous_words(
        {"it": encoder}, pairs, {"it": 1}, options=replace(options, sentences=1), retrieval=SEARCH
    )
    assert fewer.counts["sentences"] == 4, "those that are shown"


def test_a_word_of_several_texts_is_chosen_in_all_of_them() -> None:
    one, other = text(), text()
    plain = other.keep(np.flatnonzero(other.sentence % 8 < 4))
    first, second = choose_words([one, plain], AmbiguityOptions(types=1))
    assert [[word.word for word in held.source] for held in (first, second)] == [["bank"], ["bank"]]
    assert {word.word for word in first.target} == {"decke"} and not second.target


def test_words_that_an_encoder_cannot_see_are_left_out() -> None:
    class Blind(Reader):
        def word_vectors(self, sentences: Sentences, *args: object, **options: object) -> WordVectors:
            found = super().word_vectors(sentences, *args, **options)  # type: ignore[arg-type]
            strings = [word for sentence in sentences for word in sentence]
            present = np.array([word != "bank" for word in strings])
            return replace(found, vectors=found.vectors[:, present], present=present)

    told = ambiguous_words({"it": Blind()}, text(), {"it": 1}, retrieval=SEARCH).artifacts["senses"]
    assert {one["word"] for one in told} == {"order", "schloss", "decke"}


def test_mistakes_are_explained() -> None:
    with pytest.raises(BadInput, match=r"no word has two senses in these links .*more linked sentences"):
        choose_words([text().keep(np.flatnonzero(text().source == 8))], AmbiguityOptions())
    for wrong in ({"types": 0}, {"occurrences": 1}, {"sentences": 0}):
        with pytest.raises(BadSetting, match="or more"):
            AmbiguityOptions(**wrong)


def test_the_same_twice() -> None:
    first, second = (
        ambiguous_words({"it": Reader(sight=False)}, text(), {"it": 0}, retrieval=SEARCH) for _ in range(2)
    )
    assert first.results == second.results and first.artifacts == second.artifacts
