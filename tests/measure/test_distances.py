"""Distances against a slow twin, scikit-learn's AUC, and encoders whose separation is planted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from calque.errors import BadInput, BadSetting
from calque.measure.distances import Distance, DistanceOptions, distances
from calque.measure.scoring import Measurement
from calque.text.names import sentence_names
from calque.types import Bitext, Result, Sentences, WordPairs, WordVectors

FAST = DistanceOptions(rounds=50)
ANGLE = DistanceOptions(rounds=50, distance=Distance.COSINE)


class Given:
    """An encoder whose word vectors are given. Shape: vectors[language] (layers, words, d)."""

    languages: frozenset[str] | None = None

    def __init__(self, vectors: dict[str, np.ndarray], hidden: dict[str, Any] | None = None) -> None:
        self.vectors, self.hidden = vectors, hidden or {}
        self.name = self.fingerprint = "given"
        layers, _, self.width = next(iter(vectors.values())).shape
        self.depth = layers - 1

    def word_vectors(
        self, sentences: Sentences, words: Any = None, *, layers: Any, pooling: str
    ) -> WordVectors:
        present = np.ones(len(sentences.ids), bool)
        present[list(self.hidden.get(sentences.language, ()))] = False
        held = self.vectors[sentences.language][np.array(layers)][:, present]
        return WordVectors(tuple(layers), held.astype(np.float32), present, {})


def linked(sentences: int = 30, words: int = 5, languages: tuple[str, str] = ("en", "de")) -> WordPairs:
    """Word k of a sentence is linked to word k of its translation."""
    sides = [[[f"{side}{s}-{w}" for w in range(words)] for s in range(sentences)] for side in "ab"]
    s, w = np.divmod(np.arange(sentences * words), words)
    return WordPairs.of(Bitext.of(languages, *sides), s, w, w, linker="gold")


def encoder(
    seed: int, pairs: WordPairs, noise: float = 0.5, width: int = 12, layers: int = 2, **more: Any
) -> Given:
    """Linked words lie `noise` apart; the languages share a mean, so that random words are alike."""
    rng = np.random.default_rng(seed)
    size = layers, len(pairs.bitext.source.ids), width
    source = rng.normal(size=size) + rng.normal(size=width) * 0.7
    target = source + noise * rng.normal(size=size) * np.linspace(0.2, 2, width)
    return Given({"en": source, "de": target}, **more)


def figure(measured: Measurement, metric: str, name: str = "a", layer: int = 0, **more: Any) -> Result:
    wanted = {"metric": metric, "encoder": name, "layer": layer, "baseline": None, "group": None} | more
    (found,) = [r for r in measured.results if all(getattr(r, k) == v for k, v in wanted.items())]
    return found


def lengths(one: Given, layer: int = 0) -> np.ndarray:
    x, y = (one.vectors[code][layer].astype(np.float32).astype(float) for code in ("en", "de"))
    return np.sqrt(((x - y) ** 2).sum(1))


# ----------------------------------------------------------------------------------------- the figures


def test_linked_words_and_top_dimensions_are_those_of_the_definition() -> None:
    pairs = linked()
    one = encoder(0, pairs)
    measured = distances({"a": one}, pairs, [0, 1], options=FAST)
    assert {r.metric for r in measured.results} == {"auc", "overlap", "d-prime", "top-10 share", "anisotropy"}
    x, y = (one.vectors[code][1].astype(np.float32).astype(float) for code in ("en", "de"))
    by_dimension = np.sort(((x - y) ** 2).mean(0))[::-1]
    share = figure(measured, "top-10 share", layer=1)
    assert share.value == pytest.approx(by_dimension[:10].sum() / by_dimension.sum())
    assert share.low is not None and share.high is not None and share.low < share.value < share.high
    assert (share.task, share.variant, share.count, share.languages) == ("distances", "l2", 150, ("en", "de"))
    wide = encoder(0, pairs, width=130)
    found = {r.metric for r in distances({"a": wide}, pairs, [0], options=FAST).results}
    assert "top-100 share" in found, "where there are more dimensions than that"


def spied(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The distances that the separation figures were made of."""
    import calque.measure.distances as room

    seen, real = {}, room.auc

    def spy(near: np.ndarray, far: np.ndarray) -> np.ndarray:
        seen[f"{len(seen)}"] = near, far
        return real(near, far)

    monkeypatch.setattr(room, "auc", spy)
    return seen


def test_auc_is_that_of_scikit_learn_on_distances_of_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = linked()
    one = encoder(1, pairs, noise=1.2)
    seen = spied(monkeypatch)
    measured = distances({"a": one}, pairs, [0], options=FAST)
    ((near, far),) = seen.values()
    assert np.allclose(near, lengths(one), rtol=1e-6)
    truth = roc_auc_score(np.repeat([0, 1], len(near)), np.concatenate([near, far]))
    assert figure(measured, "auc").value == pytest.approx(truth)
    x, y = (one.vectors[code][0].astype(np.float32).astype(float) for code in ("en", "de"))
    every = np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1))
    sentence = pairs.sentence
    for i, distance in enumerate(far):
        (places,) = np.nonzero(np.isclose(every[i], distance, rtol=1e-6))
        assert (sentence[places] != sentence[i]).any(), "a word of another sentence"


def test_cosines_are_nearer_when_greater(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = linked()
    one = encoder(2, pairs)
    for code in one.vectors:
        one.vectors[code] *= np.random.default_rng(3).uniform(0.1, 9, (1, 150, 1))
    seen = spied(monkeypatch)
    measured = distances({"a": one}, pairs, [0], options=ANGLE)
    ((near, _),) = seen.values()
    x, y = (one.vectors[code][0] for code in ("en", "de"))
    cosine = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    assert np.allclose(-near, cosine, atol=1e-6)
    assert figure(measured, "auc").value > 0.9 and figure(measured, "auc").variant == "cosine"
    (histogram,) = measured.artifacts["histograms"]
    assert histogram["axis"] == "cosine" and -1 <= histogram["edges"][0] < histogram["edges"][-1] <= 1.0001


def test_a_planted_separation_is_found_and_nothing_where_there_is_none() -> None:
    pairs = linked(60)
    near, far = encoder(4, pairs, noise=0.1), encoder(4, pairs)
    rng = np.random.default_rng(5)
    far.vectors["de"] = rng.normal(size=far.vectors["de"].shape)
    measured = distances({"far": far, "near": near}, pairs, [0], options=FAST)
    assert figure(measured, "auc", "near").value > 0.99 > 0.6 > figure(measured, "auc", "far").value > 0.4
    assert figure(measured, "overlap", "near").value < 0.03 < 0.8 < figure(measured, "overlap", "far").value
    assert figure(measured, "d-prime", "near").value > 4
    assert abs(figure(measured, "d-prime", "far").value) < 0.3
    change = figure(measured, "auc", "near", baseline="far")
    assert change.value == pytest.approx(
        figure(measured, "auc", "near").value - figure(measured, "auc", "far").value
    )
    assert change.p is not None and change.p < 0.001 and change.low is not None and change.low > 0.3


def test_anisotropy_is_the_mean_cosine_of_random_words_by_language() -> None:
    pairs = linked(400, 4)
    one = encoder(6, pairs, noise=0.0)
    one.vectors["de"] = np.random.default_rng(7).normal(size=one.vectors["de"].shape)
    measured = distances({"a": one}, pairs, [0], options=FAST)

    def brute(code: str) -> float:
        unit = one.vectors[code][0] / np.linalg.norm(one.vectors[code][0], axis=1, keepdims=True)
        cosines = unit @ unit.T
        other = pairs.sentence[:, None] != pairs.sentence[None]
        return float(cosines[other].mean())

    both = figure(measured, "anisotropy")
    en, de = (figure(measured, "anisotropy", group=("language", code)) for code in ("en", "de"))
    assert en.value == pytest.approx(brute("en"), abs=0.03) and de.value == pytest.approx(
        brute("de"), abs=0.03
    )
    assert both.value == pytest.approx((en.value + de.value) / 2) and both.count == 2 * en.count == 3200
    assert en.value > 0.2 > 0.05 > abs(de.value)


def test_items_carry_the_figures_and_name_their_links() -> None:
    pairs = linked()
    measured = distances({"a": encoder(8, pairs)}, pairs, [1], options=FAST)
    for metric in ("auc", "overlap", "d-prime", "top-10 share"):
        found = figure(measured, metric, layer=1)
        assert found.items is not None
        items = measured.items[found.items]
        assert items.values[""].mean() == pytest.approx(found.value)
        assert items.keys["sentence"].tolist() == pairs.sentence.tolist()
        assert items.cluster.tolist() == sentence_names(pairs.bitext.source)[pairs.sentence].tolist()
    assert len({r.items for r in measured.results if r.items}) == 5


# -------------------------------------------------------------------------------------- the same pairs


def test_all_encoders_see_the_same_links_and_the_same_random_words(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = linked()
    one, two = encoder(9, pairs), encoder(9, pairs, hidden={"en": [3, 4], "de": [60]})
    seen = spied(monkeypatch)
    measured = distances({"one": one, "two": two}, pairs, [0], options=FAST)
    assert measured.counts == {"links": 150, "scored": 147, "no vector": 3}
    (near, far), (also_near, also_far) = seen.values()
    assert np.array_equal(near, also_near) and np.array_equal(far, also_far)
    assert np.allclose(near, np.delete(lengths(one), [3, 4, 60]), rtol=1e-6)


def test_a_seed_draws_the_same_words_and_another_draws_others() -> None:
    pairs = linked()
    first, again, other = (
        distances({"a": encoder(10, pairs)}, pairs, [0], options=DistanceOptions(rounds=50, seed=seed))
        for seed in (1, 1, 2)
    )
    assert first.results == again.results and first.artifacts == again.artifacts
    assert figure(first, "auc").value != figure(other, "auc").value
    assert figure(first, "top-10 share").value == figure(other, "top-10 share").value


def test_encoders_of_other_depth_are_compared_where_both_have_the_layer() -> None:
    pairs = linked()
    encoders = {"deep": encoder(11, pairs, layers=3), "flat": encoder(12, pairs, layers=1)}
    measured = distances(encoders, pairs, {"deep": [0, 2], "flat": [0]}, options=FAST)
    assert {(r.encoder, r.layer) for r in measured.results if r.baseline} == {("flat", 0)}
    shown = {h["layer"]: [s["encoder"] for s in h["series"]] for h in measured.artifacts["histograms"]}
    assert shown == {0: ["deep", "deep", "flat", "flat"], 2: ["deep", "deep"]}


# ------------------------------------------------------------------------------------------ histograms


def test_histograms_share_their_axis_and_count_every_pair() -> None:
    pairs = linked()
    small = encoder(13, pairs)
    large = Given({code: 20 * rows for code, rows in small.vectors.items()})
    measured = distances({"small": small, "large": large}, pairs, [0, 1], options=FAST)
    first, second = measured.artifacts["histograms"]
    assert (first["layer"], second["layer"], first["languages"]) == (0, 1, ["en", "de"])
    assert [(s["encoder"], s["kind"]) for s in first["series"]] == [
        ("small", "linked"), ("small", "unrelated"), ("large", "linked"), ("large", "unrelated"),
    ]  # fmt: skip
    for one in first["series"]:
        assert len(one["counts"]) == len(first["edges"]) - 1 and sum(one["counts"]) == 150
    expected, _ = np.histogram(lengths(large), first["edges"])
    assert np.abs(np.array(first["series"][2]["counts"]) - expected).sum() <= 2
    scaled = distances(
        {"small": small, "large": large}, pairs, [0], options=DistanceOptions(rounds=50, scaled=True)
    )
    one = scaled.artifacts["histograms"][0]
    assert one["series"][0]["counts"] == one["series"][2]["counts"] and "divided" in one["title"]
    assert [r.value for r in scaled.results if r.layer == 0] == [
        r.value for r in measured.results if r.layer == 0
    ]


# ------------------------------------------------------------------------------------------- bad input


def test_what_cannot_be_measured_is_told() -> None:
    pairs = linked(3)
    one = encoder(14, pairs)
    with pytest.raises(BadInput, match="one sentence only"):
        distances({"a": one}, pairs.keep(pairs.sentence == 0), [0], options=FAST)
    with pytest.raises(BadInput, match="no links left to score of 15"):
        distances({"a": encoder(14, pairs, hidden={"en": range(15)})}, pairs, [0], options=FAST)
    with pytest.raises(BadInput, match="'a' at layer 0, en: all vectors are the same"):
        distances({"a": Given({c: np.ones((1, 15, 3)) for c in ("en", "de")})}, pairs, [0], options=FAST)
    with pytest.raises(BadInput, match="not numbers"):
        distances({"a": Given({c: np.full((1, 15, 3), np.nan) for c in ("en", "de")})}, pairs, [0])
    with pytest.raises(BadSetting, match="no layer 5"):
        distances({"a": one}, pairs, [5], options=FAST)
    none = pairs.keep(np.zeros(15, bool))
    with pytest.raises(BadInput, match="no links left to score of 0"):
        distances({"a": one}, none, [0], options=FAST)


def test_words_that_are_the_same_vector_have_no_top_dimensions_but_everything_else() -> None:
    pairs = linked()
    one = encoder(15, pairs, noise=0.0)
    measured = distances({"a": one}, pairs, [0], options=FAST)
    assert "top-10 share" not in {r.metric for r in measured.results}
    assert figure(measured, "auc").value == 1 and figure(measured, "overlap").value == 0
    assert all(np.isfinite([r.value, r.low, r.high]).all() for r in measured.results)


def test_zero_vectors_have_no_direction_and_give_no_nan() -> None:
    pairs = linked()
    one = encoder(16, pairs)
    one.vectors["de"][:, ::7] = 0
    measured = distances({"a": one}, pairs, [0], options=ANGLE)
    assert all(np.isfinite([r.value, r.low, r.high]).all() for r in measured.results)


@pytest.mark.parametrize(
    "wrong", [{"rounds": 0}, {"pooling": "best"}, {"scaled": True, "distance": Distance.COSINE}]
)
def test_options_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        DistanceOptions(**wrong)
