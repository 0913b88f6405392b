"""CKA of encoders against Gram matrices, with planted relations between languages and encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from calque.errors import BadInput, BadSetting
from calque.geometry.cka import debiased_cka, linear_cka
from calque.measure import cka as room
from calque.measure.cka import CkaOptions, cka
from calque.measure.scoring import Measurement
from calque.types import Bitext, Result, Sentences
from planted import orthogonal

FAST = CkaOptions(rounds=50)


class Given:
    """An encoder whose sentence vectors are given. Shape: vectors[language] (layers, sentences, d)."""

    languages: frozenset[str] | None = None

    def __init__(self, name: str, **vectors: np.ndarray) -> None:
        self.name = self.fingerprint = name
        self.vectors, self.asked = vectors, 0
        layers, _, self.width = next(iter(vectors.values())).shape
        self.depth = layers - 1

    def sentence_vectors(self, sentences: Sentences, *, layers: Sequence[int], pooling: str) -> np.ndarray:
        self.asked += 1
        rows = [int(words[0][1:]) for words in sentences]
        return self.vectors[sentences.language][np.array(layers)][:, rows].astype(np.float32)


def text(count: int, languages: tuple[str, str] = ("en", "de")) -> Bitext:
    """Sentence k is the one word sk, so that an encoder can tell them apart."""
    words = [[f"s{k}"] for k in range(count)]
    return Bitext.of(languages, words, words)


def planted(
    name: str, seed: int, count: int = 60, layers: int = 3, width: int = 8, noise: float = 1.0
) -> Given:
    """The two languages share a part of what they say, turned; the higher the layer, the more."""
    rng = np.random.default_rng(seed)
    en = rng.normal(size=(layers, count, width)) + 4
    de = np.stack([en[i] @ orthogonal(width, seed + i) for i in range(layers)])
    de += noise * rng.normal(size=de.shape) * np.array([3.0, 1.0, 0.3, 0.1])[:layers, None, None] - 9
    return Given(name, en=en, de=de)


def figure(measured: Measurement, encoder: str, layer: int | None, variant: str, **more: Any) -> Result:
    wanted = {"encoder": encoder, "layer": layer, "variant": variant, "baseline": None} | more
    (found,) = [r for r in measured.results if all(getattr(r, k) == v for k, v in wanted.items())]
    return found


def as_single(encoder: Given, language: str, layer: int) -> np.ndarray:
    return encoder.vectors[language][layer].astype(np.float32).astype(np.float64)


# ----------------------------------------------------------------------------------------- the figures


def test_between_languages_by_layer_and_layer_by_layer() -> None:
    encoder = planted("a", 0)
    measured = cka({"a": encoder}, text(60), [0, 1, 2], options=FAST)
    for layer in range(3):
        x, y = as_single(encoder, "en", layer), as_single(encoder, "de", layer)
        for variant, truth in (("linear", linear_cka(x, y)), ("debiased", debiased_cka(x, y))):
            found = figure(measured, "a", layer, variant)
            assert found.value == pytest.approx(truth) and found.count == 60
            assert found.low is not None and found.high is not None
            assert found.low <= found.value <= found.high <= 1
            assert (found.task, found.metric, found.languages) == ("cka", "cka", ("en", "de"))
    maps = {one["variant"]: one for one in measured.artifacts["heatmaps"]}
    assert list(maps) == ["linear", "debiased"]
    whole = [[linear_cka(as_single(encoder, "en", a), as_single(encoder, "de", b)) for b in range(3)]
             for a in range(3)]  # fmt: skip
    assert np.allclose(maps["linear"]["values"], whole, atol=1e-4)
    assert maps["linear"]["rows"] == {"name": "layer of en", "ticks": ["0", "1", "2"]}
    assert maps["linear"]["columns"]["name"] == "layer of de"


def test_the_row_of_layer_means() -> None:
    encoder = planted("a", 1)
    measured = cka({"a": encoder}, text(60), [0, 1, 2], options=FAST)
    mean = figure(measured, "a", None, "linear")
    assert mean.value == pytest.approx(np.mean([figure(measured, "a", i, "linear").value for i in range(3)]))
    assert mean.low is not None and mean.high is not None and mean.low < mean.value < mean.high
    one = cka({"a": encoder}, text(60), [2], options=FAST)
    assert {r.layer for r in one.results} == {2}, "one layer has no mean beside it"


def test_encoders_are_compared_on_the_same_sentences() -> None:
    noisy, clear = planted("noisy", 2, noise=1.0), planted("clear", 2, noise=0.2)
    measured = cka({"noisy": noisy, "clear": clear}, text(60), [0, 1], options=FAST)
    change = figure(measured, "clear", 1, "debiased", baseline="noisy")
    before, after = (figure(measured, name, 1, "debiased") for name in ("noisy", "clear"))
    assert change.value == pytest.approx(after.value - before.value) and change.value > 0.2
    assert change.p is not None and change.p < 0.01 and change.low is not None and change.low > 0
    assert after.items is not None
    items = measured.items[after.items]
    assert items.values[""].mean() == pytest.approx(after.value) and len(items.cluster) == 60


def test_between_encoders_in_each_language() -> None:
    one = planted("one", 3)
    turned = {code: rows @ orthogonal(8, 99) * 3 + 1 for code, rows in one.vectors.items()}
    wide = {code: np.concatenate([rows[:2], rows[:2]], -1) for code, rows in one.vectors.items()}
    encoders = {"one": one, "turned": Given("turned", **turned), "wide": Given("wide", **wide)}
    layers = {"one": [0, 1, 2], "turned": [0, 1, 2], "wide": [0, 1]}
    measured = cka(encoders, text(60), layers, options=FAST)
    for code in ("en", "de"):
        same = figure(measured, "one × turned", 2, "linear", languages=(code, code))
        assert same.value == pytest.approx(1) and same.low == pytest.approx(1)
        assert same.task == "cka-between-encoders" != figure(measured, "one", 2, "linear").task
        assert figure(measured, "one × wide", 1, "debiased", languages=(code, code)).value == pytest.approx(1)
    titles = [
        (one["title"], len(one["values"]), len(one["values"][0])) for one in measured.artifacts["heatmaps"]
    ]
    assert ("one × wide, German", 3, 2) in titles and ("turned, English–German", 3, 3) in titles
    only = cka(encoders, text(60), [0], options=FAST, between=["de"])
    assert {r.languages for r in only.results} == {("en", "de"), ("de", "de")}


def test_a_random_encoder_is_the_floor() -> None:
    rng = np.random.default_rng(0)
    encoder = planted("a", 4, width=20)
    noise = Given("random", de=rng.normal(size=(3, 60, 20)))
    measured = cka({"a": encoder}, text(60), [1, 2], floors={"a": noise}, options=FAST)
    floor, own = (figure(measured, name, 2, "debiased") for name in ("a floor", "a"))
    assert abs(floor.value) < 0.1 < 0.5 < own.value
    expected = linear_cka(as_single(encoder, "en", 2), as_single(noise, "de", 2))
    assert figure(measured, "a floor", 2, "linear").value == pytest.approx(expected)
    assert {one["title"] for one in measured.artifacts["heatmaps"]} == {"a, English–German"}, (
        "no map of noise"
    )
    assert not [r for r in measured.results if r.baseline], "a floor is compared with nobody"


def test_same_layer_only() -> None:
    options = CkaOptions(rounds=50, same_layer=True)
    whole, few = (cka({"a": planted("a", 5)}, text(60), [0, 2], options=o) for o in (FAST, options))
    assert few.results == whole.results and not few.artifacts


def test_intervals_hold_the_truth_of_the_population() -> None:
    """Of y = x + noise in three dimensions CKA is one half."""
    rng, hits = np.random.default_rng(6), 0
    for _ in range(40):
        x = rng.normal(size=(1, 100, 3))
        given = Given("a", en=x, de=x + rng.normal(size=x.shape))
        found = figure(cka({"a": given}, text(100), [0], options=CkaOptions(rounds=200)), "a", 0, "debiased")
        hits += found.low < 0.5 < found.high
    assert hits >= 33


# ------------------------------------------------------------------------------- blocks, passes, pieces


def test_small_blocks_several_passes_and_pieces_give_the_same_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoders = {"a": planted("a", 7), "b": planted("b", 8)}
    whole = cka(encoders, text(60), [0, 1, 2], options=FAST)
    assert encoders["a"].asked == 2, "small texts are encoded once a side"
    monkeypatch.setattr(room, "BLOCK_NUMBERS", 7 * 24)
    monkeypatch.setattr(room, "HELD_NUMBERS", 5 * 64)
    monkeypatch.setattr(room, "KEPT_NUMBERS", 0)
    parts = cka(encoders, text(60), [0, 1, 2], options=FAST)
    for ours, theirs in zip(parts.results, whole.results, strict=True):
        assert ours.value == pytest.approx(theirs.value, abs=1e-9) and ours.low == pytest.approx(
            theirs.low, abs=1e-6
        )
    assert parts.artifacts == whole.artifacts
    monkeypatch.setattr(room, "MOST_PIECES", 20)
    pieces = cka(encoders, text(60), [0, 1, 2], options=FAST)
    for ours, theirs in zip(pieces.results, whole.results, strict=True):
        assert ours.value == pytest.approx(theirs.value, abs=1e-9) and ours.count == theirs.count == 60
    assert {len(items.cluster) for items in pieces.items.values()} == {20}


def test_a_sentence_that_one_encoder_knows_nothing_of_takes_part_for_none() -> None:
    blind = planted("blind", 9)
    blind.vectors["de"][:, [3, 40]] = 0
    seeing = planted("seeing", 10)
    measured = cka({"seeing": seeing, "blind": blind}, text(60), [1], options=FAST)
    assert measured.counts == {"sentences": 60, "scored": 58, "no vector": 2}
    rows = np.delete(np.arange(60), [3, 40])
    truth = linear_cka(as_single(seeing, "en", 1)[rows], as_single(seeing, "de", 1)[rows])
    found = figure(measured, "seeing", 1, "linear")
    assert found.value == pytest.approx(truth) and found.count == 58


def test_the_same_input_gives_the_same_output() -> None:
    first, second = (cka({"a": planted("a", 11)}, text(60), [0, 1], options=FAST) for _ in range(2))
    assert first.results == second.results and first.artifacts == second.artifacts


# ------------------------------------------------------------------------------------------ bad input


def flat(count: int = 60, **changed: np.ndarray) -> Given:
    encoder = planted("flat", 12, count)
    encoder.vectors.update(changed)
    return encoder


def test_what_has_no_cka_is_told() -> None:
    with pytest.raises(BadInput, match="1 sentence pairs: CKA needs 5"):
        cka({"a": planted("a", 0)}, text(1), [0])
    with pytest.raises(BadInput, match="'a' at layer 0, de: all vectors are the same"):
        cka({"a": flat(de=np.full((3, 60, 8), 0.3))}, text(60), [0])
    with pytest.raises(BadInput, match="4 sentences that every encoder"):
        seen = planted("a", 0)
        seen.vectors["en"][:, 4:] = 0
        cka({"a": seen}, text(60), [0])
    with pytest.raises(BadInput, match="0 sentences that every encoder"):
        cka({"a": flat(en=np.zeros((3, 60, 8)))}, text(60), [0])
    with pytest.raises(BadInput, match="NaN"):
        cka({"a": flat(en=np.full((3, 60, 8), np.nan))}, text(60), [0])
    with pytest.raises(BadInput, match="equally far"):
        cka({"a": Given("a", en=np.eye(9)[None], de=np.eye(9)[None])}, text(9), [0])
    with pytest.raises(BadSetting, match="has no layer 7"):
        cka({"a": planted("a", 0)}, text(60), [7])
    with pytest.raises(BadSetting, match="no encoder"):
        cka({}, text(60), [0])


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"pooling": "last"}])
def test_options_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        CkaOptions(**wrong)
