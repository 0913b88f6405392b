"""Sentence retrieval against brute force, planted encoders, copies, and vectors that say nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calque.encoders.cached import CachedEncoder
from calque.errors import BadInput, BadSetting
from calque.geometry.neighbours import Similarity
from calque.measure.scoring import telling
from calque.measure.sentence_retrieval import SentenceOptions, sentence_retrieval
from calque.stats.intervals import bootstrap_mean
from calque.store import load_items
from calque.text.names import pair_names
from calque.types import Bitext, Result, Sentences
from planted import PlantedEncoder, planted


class GivenEncoder:
    """Gives every sentence the vectors it was given. Shape: each of held (layers, d)."""

    name, languages = "given", None

    def __init__(self, held: dict[str, np.ndarray], name: str = "given") -> None:
        self.held, self.fingerprint, self.calls = held, name, 0
        self.depth, self.width = np.array(next(iter(held.values())).shape) - [1, 0]

    def sentence_vectors(
        self, sentences: Sentences, *, layers: Sequence[int], pooling: str = "mean"
    ) -> np.ndarray:
        self.calls += 1
        vectors = np.stack([self.held[" ".join(words)] for words in sentences], 1)
        return vectors[list(layers)].astype(np.float32)


def bitext_of(pairs: Sequence[tuple[str, str]]) -> Bitext:
    return Bitext.of(("en", "de"), [a.split() for a, _ in pairs], [b.split() for _, b in pairs])


def noisy(count: int, noise: float, width: int = 12, seed: int = 0) -> tuple[GivenEncoder, Bitext]:
    """Sentence `e k` is translated by `d k`, whose vector is near; a common direction makes hubs."""
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(count, 2, width)) * rng.lognormal(0, 0.7, (count, 1, 1)) + 0.5
    held = {f"e {k}": meaning[k] for k in range(count)}
    held |= {f"d {k}": meaning[k] + noise * rng.normal(size=(2, width)) for k in range(count)}
    return GivenEncoder(held), bitext_of([(f"e {k}", f"d {k}") for k in range(count)])


def whole(results: Sequence[Result]) -> dict[tuple[str, int | None, str], Result]:
    return {(r.encoder, r.layer, r.direction): r for r in results if r.baseline is None and r.group is None}


# ------------------------------------------------------------------------------------------ brute force


def brute(encoder: GivenEncoder, bitext: Bitext, layer: int, similarity: Similarity, k: int) -> list[float]:
    """Both directions from the formulas, on whole arrays; a copy of the right sentence is right."""
    sides = [sorted({" ".join(words) for words in side}) for side in (bitext.source, bitext.target)]
    x, y = (np.stack([encoder.held[text][layer] for text in side]) for side in sides)
    cosine = (x / np.linalg.norm(x, axis=1)[:, None]) @ (y / np.linalg.norm(y, axis=1)[:, None]).T
    r_x = np.sort(cosine, 1)[:, -k:].mean(1)[:, None]
    r_y = np.sort(cosine, 0)[-k:].mean(0)
    score = {
        Similarity.COSINE: cosine,
        Similarity.CSLS: 2 * cosine - r_x - r_y,
        Similarity.MARGIN: cosine / ((np.maximum(r_x, 0.01) + np.maximum(r_y, 0.01)) / 2),
    }[similarity]
    pairs = [(" ".join(a), " ".join(b)) for a, b in zip(bitext.source, bitext.target, strict=True)]
    forward = [(a, sides[1][score[sides[0].index(a)].argmax()]) in pairs for a, _ in pairs]
    backward = [(sides[0][score[:, sides[1].index(b)].argmax()], b) in pairs for _, b in pairs]
    return [float(np.mean(forward)), float(np.mean(backward))]


@pytest.mark.parametrize("similarity", list(Similarity))
def test_equals_brute_force_with_repeated_sentences(similarity: Similarity) -> None:
    encoder, bitext = noisy(120, 1.6)
    rows = [*range(120), 5, 5, 7, 30]
    bitext = bitext.select(rows)
    options = SentenceOptions(similarity=similarity, radius_k=4, rounds=20)
    measured = sentence_retrieval({"one": encoder}, bitext, [0, 1], options=options)
    found = whole(measured.results)
    for layer in (0, 1):
        forward, backward = brute(encoder, bitext, layer, similarity, 4)
        assert 0.1 < forward < 0.95
        assert found["one", layer, "forward"].value == pytest.approx(forward)
        assert found["one", layer, "backward"].value == pytest.approx(backward)
        assert found["one", layer, "both"].value == pytest.approx((forward + backward) / 2)
        assert found["one", layer, "both"].count == 2 * len(rows)
    assert measured.counts == {
        "sentences": 124, "repeated": 7, "source candidates": 120, "target candidates": 120,
    }  # fmt: skip
    told = found["one", 1, "both"]
    expected = {"cosine": "mean", "csls": "mean-csls", "margin": "mean-margin"}[similarity.value]
    assert (told.task, told.metric, told.variant) == ("sentence-retrieval", "accuracy", expected)
    assert f"sim:{similarity.value}" in told.signature and told.low <= told.value <= told.high


def test_any_translation_in_the_text_is_right() -> None:
    """Two translations of one sentence: both of its lines may find either."""
    given = {
        "hello": [1, 0, 0.2], "bye": [0, 1, 0], "hallo": [1, 0, 0.1], "guten tag": [1, 0, 0.3],
        "ade": [0, 1, 0],
    }  # fmt: skip
    held = {text: np.array([vector], float) for text, vector in given.items()}
    pairs = bitext_of([("hello", "hallo"), ("hello", "guten tag"), ("bye", "ade")])
    measured = sentence_retrieval({"one": GivenEncoder(held)}, pairs, [0])
    assert {r.value for r in measured.results} == {1.0}
    assert measured.counts["repeated"] == 2


# -------------------------------------------------------------------------------------- planted encoders


def test_a_planted_space_is_found_and_compared_with_a_strange_one(tmp_path: Path) -> None:
    strange, pairs, _ = planted(sentences=80)
    bitext = pairs["xx"].bitext
    table = strange.tables["en"]
    meeting = PlantedEncoder(
        {"en": table, "xx": {f"xx{k}": table[f"en{k}"] for k in range(200)}}, name="meeting"
    )
    encoders: Any = {"strange": strange, "meeting": meeting}
    measured = sentence_retrieval(encoders, bitext, [1, 2], options=SentenceOptions(rounds=50))
    found = whole(measured.results)
    assert found["meeting", 1, "both"].value == 1.0 > 0.3 > found["strange", 1, "both"].value
    (change,) = [r for r in measured.results if r.baseline and r.direction == "both" and r.layer == 2]
    bins = [
        r for r in measured.results if r.group and (r.encoder, r.layer, r.direction) == ("strange", 1, "both")
    ]
    assert {r.group[0] for r in bins if r.group} == {"length"}, "by the length of the sentence that searches"
    asked = found["strange", 1, "both"]
    assert sum(r.count * r.value for r in bins) == pytest.approx(asked.count * asked.value)
    assert change.baseline == "strange" and change.p is not None and change.p < 0.001
    results = measured.save(tmp_path)
    saved = whole(results)["meeting", 2, "both"]
    items = load_items(tmp_path, saved.items or "")
    assert items.keys["line"].tolist() == list(range(1, 81)) and items.values["both"].mean() == 1.0
    first = measured.artifacts["sentences"][0]
    assert not first["retrieved"]["strange"]["hit"] and first["retrieved"]["meeting"]["hit"]
    assert first["retrieved"]["meeting"]["sentence"] == first["gold"] and first["line"] >= 1


def test_a_sentence_is_the_same_cluster_in_every_text() -> None:
    """Its number in the text differs where a line is missing before it; equal sentences are one cluster."""
    encoder, bitext = noisy(20, 1.0)
    part = bitext.select(np.array([0, *range(2, 20), 5]))
    held, other = (sentence_retrieval({"a": encoder}, one, [0]) for one in (bitext, part))
    (whole_items,), (part_items,) = held.items.values(), other.items.values()
    assert part_items.cluster.tolist() == whole_items.cluster[[0, *range(2, 20), 5]].tolist()
    assert len(set(whole_items.cluster.tolist())) == 20 and len(set(part_items.cluster.tolist())) == 19
    numbered = bootstrap_mean(whole_items.values["forward"], np.arange(20))
    told = whole(held.results)["a", 0, "forward"]
    assert (told.low, told.high) == (numbered.low, numbered.high), "no interval depends on a name"


def test_sentences_seen_in_training_ask_nothing_and_can_be_found() -> None:
    encoder, bitext = noisy(20, 1.0)
    seen = pair_names(bitext.select(np.array([1, 4, 7])))
    rows = np.setdiff1d(np.arange(20), [1, 4, 7])
    plain, without = (sentence_retrieval({"a": encoder}, bitext, [0], seen=names) for names in ([], seen))
    (every,), (left,) = plain.items.values(), without.items.values()
    assert left.values["forward"].tolist() == every.values["forward"][rows].tolist()
    assert left.keys["line"].tolist() == (rows + 1).tolist()
    assert without.counts["sentences seen in training"] == 3 and without.counts["target candidates"] == 20
    assert not {one["query"] for one in without.artifacts["sentences"]} & {"e 1", "d 1", "e 7"}
    options = SentenceOptions(include_seen=True)
    kept = sentence_retrieval({"a": encoder}, bitext, [0], seen=seen, options=options)
    assert whole(kept.results)["a", 0, "both"].value == whole(plain.results)["a", 0, "both"].value
    assert {r.group for r in kept.results} >= {("seen", "seen"), ("seen", "unseen")}
    turned = Bitext(bitext.target, bitext.source, bitext.line)
    assert pair_names(turned).tolist() == pair_names(bitext).tolist()
    with pytest.raises(BadInput, match="20 of 20 sentence pairs were seen in training"):
        sentence_retrieval({"a": encoder}, bitext, [0], seen=pair_names(bitext))


def test_vectors_are_made_once_whatever_the_layers() -> None:
    encoder, bitext = noisy(30, 0.1)
    for similarity in Similarity:
        options = SentenceOptions(similarity=similarity, rounds=5)
        sentence_retrieval({"one": CachedEncoder(encoder)}, bitext, [0, 1], options=options)
    assert encoder.calls == 2, "once a side"


def test_what_tells_most_comes_first() -> None:
    hits = np.array([[[1, 1, 0, 0]], [[1, 0, 0, 1]]], bool)
    assert [query for _, query in telling(hits, 2, 0)] in ([1, 3], [3, 1])
    assert [query for _, query in telling(hits, 9, 0)][2:] == [2, 0]


# ------------------------------------------------------------------------------------- nothing to go by


def test_a_sentence_without_vector_asks_in_vain() -> None:
    encoder, bitext = noisy(20, 0.01)
    encoder.held["e 0"] = np.zeros((2, 12))
    measured = sentence_retrieval({"one": encoder}, bitext, [0])
    assert measured.counts["no vector (one)"] == 1
    assert whole(measured.results)["one", 0, "forward"].value == pytest.approx(19 / 20)


def test_vectors_that_differ_by_length_and_rounding_only_are_refused() -> None:
    encoder, bitext = noisy(20, 0.0)
    rng = np.random.default_rng(0)
    same = {text: np.ones((2, 12)) * length for text, length in zip(encoder.held, range(1, 99), strict=False)}
    noise = {text: rows * (1 + 1e-8 * rng.normal(size=12)) for text, rows in same.items()}
    for held in (same, noise):
        with pytest.raises(BadInput, match="encoder 'one' at layer 0, en: all vectors are the same"):
            sentence_retrieval({"one": GivenEncoder(held)}, bitext, [0])


def test_bad_input_is_told() -> None:
    encoder, bitext = noisy(20, 0.1)
    with pytest.raises(BadInput, match="1 and 1 different sentences"):
        sentence_retrieval({"one": encoder}, bitext.select([3, 3]), [0])
    nothing = GivenEncoder({**encoder.held, **{f"d {k}": np.zeros((2, 12)) for k in range(20)}})
    with pytest.raises(BadInput, match="encoder 'one' at layer 0, de: all vectors are zero"):
        sentence_retrieval({"one": nothing}, bitext, [0])
    broken = GivenEncoder({**encoder.held, "d 3": np.full((2, 12), np.nan)})
    with pytest.raises(BadInput, match="not numbers"):
        sentence_retrieval({"one": broken}, bitext, [0])
    with pytest.raises(BadSetting, match="no layer 7"):
        sentence_retrieval({"one": encoder}, bitext, [7])
    with pytest.raises(BadSetting, match="pooling"):
        SentenceOptions(pooling="last")  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="radius_k"):
        SentenceOptions(radius_k=0)
