"""Projection of planted words: the right words drawn, the same in every encoder, figures by brute force."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.manifold import trustworthiness as published

import planted
from calque.errors import BadInput, BadSetting
from calque.geometry.projection import Method
from calque.measure.projection import LINK, OTHER, TRUST, ProjectionOptions, choose_links, projection
from calque.measure.scoring import Measurement
from calque.types import Bitext, Sentences, WordIndex, WordPairs

PLAIN = ProjectionOptions(method=Method.PCA, types=6, occurrences=5, rounds=20)


def spaces(noise: float = 0.3, **settings: int) -> tuple[dict[str, planted.PlantedEncoder], WordPairs]:
    """An encoder whose languages lie apart, and one whose words lie on their translations."""
    apart, pairs, _ = planted.planted(types=30, **settings)
    meeting = replace(
        apart, tables={"en": apart.tables["en"], "xx": dict(apart.tables["xx"])}, name="meeting"
    )
    for k in range(30):
        meeting.tables["xx"][f"xx{k}"] = meeting.tables["en"][f"en{k}"]
    return {"apart": replace(apart, noise=noise), "meeting": replace(meeting, noise=noise)}, pairs["xx"]


def figures(measured: Measurement, metric: str, direction: str = "both") -> dict[str, float]:
    return {
        r.encoder: r.value
        for r in measured.results
        if (r.metric, r.direction) == (metric, direction) and r.baseline is None
    }


def test_points_are_the_words_of_the_chosen_links() -> None:
    encoders, pairs = spaces()
    measured = projection(encoders, pairs, [1, 2], options=PLAIN)
    pictures = measured.artifacts["projections"]
    assert [(p["encoder"], p["layer"]) for p in pictures] == [
        ("apart", 1), ("apart", 2), ("meeting", 1), ("meeting", 2),
    ]  # fmt: skip
    assert measured.counts == {"points": 60, "words": 6, "no vector": 0}
    for picture in pictures:
        assert picture["method"] == "pca" and picture["languages"] == ["en", "xx"]
        points = picture["points"]
        told = [
            {name: p[name] for name in ("word", "language", "sentence", "index", "group")} for p in points
        ]
        assert told == [
            {name: p[name] for name in ("word", "language", "sentence", "index", "group")}
            for p in pictures[0]["points"]
        ], "the same words in every encoder"
        assert all(p["sentence"][p["index"]] == p["word"] for p in points)
        for source, target in zip(points[:30], points[30:], strict=True):
            assert source["language"] == "en" and target["language"] == "xx"
            assert source["word"] == source["group"] == target["group"] == target["word"].replace("xx", "en")
        groups = [p["group"] for p in points]
        assert {groups.count(group) for group in groups} == {10}
    assert json.loads(json.dumps(pictures)) == pictures


def test_figures_are_those_of_brute_force() -> None:
    encoders, pairs = spaces(noise=0.8)
    measured = projection(encoders, pairs, [2], options=PLAIN)
    drawn = choose_links(pairs, PLAIN).pairs
    for picture in measured.artifacts["projections"]:
        encoder = encoders[picture["encoder"]]
        sides = [
            encoder.word_vectors(side, WordIndex(drawn.sentence, word), layers=[2]).layer(2)
            for side, word in _sides(drawn)
        ]
        space = np.concatenate(sides).astype(float)
        space /= np.linalg.norm(space, axis=1, keepdims=True)
        similar = space @ space.T
        np.fill_diagonal(similar, -2)
        near, half = similar.argmax(1), len(space) // 2
        own = np.arange(len(space))
        other, link = (near < half) != (own < half), near == (own + half) % len(space)
        label = picture["encoder"]
        for direction, rows in (("forward", own < half), ("backward", own >= half), ("both", own >= 0)):
            assert figures(measured, OTHER, direction)[label] == pytest.approx(other[rows].mean())
            assert figures(measured, LINK, direction)[label] == pytest.approx(link[rows].mean())
        plane = np.array([[p["x"], p["y"]] for p in picture["points"]])
        assert figures(measured, TRUST)[label] == pytest.approx(
            published(space, plane, n_neighbors=10), abs=1e-3
        )
    assert figures(measured, OTHER)["meeting"] > figures(measured, OTHER)["apart"]


def _sides(pairs: WordPairs) -> list[tuple[Sentences, np.ndarray]]:
    return [(pairs.bitext.source, pairs.source), (pairs.bitext.target, pairs.target)]


def test_tsne_keeps_planted_clusters() -> None:
    encoders, pairs = spaces(noise=0.1)
    options = replace(PLAIN, method=Method.TSNE, occurrences=8)
    first, second = (projection(encoders, pairs, [1], options=options) for _ in range(2))
    assert first.artifacts == second.artifacts and first.results == second.results
    meeting = next(p for p in first.artifacts["projections"] if p["encoder"] == "meeting")
    plane = np.array([[p["x"], p["y"]] for p in meeting["points"]])
    distances = np.linalg.norm(plane[:, None] - plane[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    groups = np.array([p["group"] for p in meeting["points"]])
    near = groups[np.argsort(distances, 1)[:, :7]]
    assert (near == groups[:, None]).mean() > 0.95, "a word lies among its own occurrences and translations"
    assert figures(first, TRUST)["meeting"] > 0.9


def test_comparisons_and_items_come_with_the_figures() -> None:
    encoders, pairs = spaces()
    measured = projection(encoders, pairs, [1], options=PLAIN)
    compared = [r for r in measured.results if r.baseline == "apart"]
    assert {(r.metric, r.direction) for r in compared} == {
        (TRUST, "both"), *((m, d) for m in (OTHER, LINK) for d in ("forward", "backward", "both")),
    }  # fmt: skip
    for r in measured.results:
        assert r.task == "projection" and r.variant == "pca" and r.low <= r.value <= r.high
        if r.items:
            assert measured.items[r.items].values[r.direction].mean() == pytest.approx(r.value)


# ---------------------------------------------------------------------------------------- which words


def linked(rows: list[tuple[str, str]]) -> WordPairs:
    bitext = Bitext.of(("en", "de"), [["the"] * 5 + [a] for a, _ in rows], [[b] for _, b in rows])
    return WordPairs.of(bitext, np.arange(len(rows)), [5] * len(rows), [0] * len(rows))


def test_the_most_frequent_words_are_drawn_but_no_punctuation_and_no_equal_strings() -> None:
    rows = [("Cat", "Katze")] * 4 + [("cat", "Kater")] * 3 + [("dog", "Hund")] * 5 + [("bird", "Vogel")]
    rows += [(",", ",")] * 9 + [("7", "sieben")] * 9 + [("taxi", "taxi")] * 9
    drawn = choose_links(linked(rows), replace(PLAIN, types=2, occurrences=4))
    assert sorted(drawn.group.tolist()) == ["cat"] * 4 + ["dog"] * 4
    words = [drawn.pairs.bitext.target.word(int(s), 0) for s in drawn.pairs.sentence]
    assert {"Katze", "Kater"} <= set(words), "occurrences from all over the text"
    assert len(drawn.pairs.bitext) == 8, "no other sentence is encoded"


def test_words_are_named_in_either_language() -> None:
    rows = [("bank", "Ufer"), ("Bank", "Kasse"), ("shore", "Ufer"), ("dog", "Hund")]
    drawn = choose_links(linked(rows), replace(PLAIN, words=("Bank", "ufer")))
    assert drawn.group.tolist() == ["ufer", "bank", "ufer"], "a link of two chosen words belongs to the last"
    with pytest.raises(BadInput, match=r"no link of 'bnak' in these pairs \(did you mean bank\?"):
        choose_links(linked(rows), replace(PLAIN, words=("bnak",)))
    with pytest.raises(BadInput, match="no links to draw"):
        choose_links(linked([(",", "."), ("taxi", "taxi")]), PLAIN)


def test_words_that_one_encoder_cannot_see_are_drawn_in_none() -> None:
    encoders, pairs = spaces()
    encoders["apart"] = replace(encoders["apart"], missing=frozenset({"en0", "xx1"}))
    words = tuple(f"en{k}" for k in range(6))
    measured = projection(encoders, pairs, [1], options=replace(PLAIN, words=words))
    assert measured.counts["no vector"] == 10 and measured.counts["words"] == 4
    assert all(len(p["points"]) == measured.counts["points"] for p in measured.artifacts["projections"])
    encoders["apart"] = replace(encoders["apart"], missing=frozenset(words))
    with pytest.raises(BadInput, match="sees none of the chosen words"):
        projection(encoders, pairs, [1], options=replace(PLAIN, words=words))


def test_mistakes_are_explained() -> None:
    encoders, pairs = spaces()
    with pytest.raises(BadSetting, match=r"perplexity 50 with 60 points \(1 to 20"):
        projection(encoders, pairs, [1], options=replace(PLAIN, method=Method.TSNE, perplexity=50))
    with pytest.raises(BadSetting, match="'apart' has no layer 3"):
        projection(encoders, pairs, [3], options=PLAIN)
    constant = replace(encoders["apart"], tables={
        language: dict.fromkeys(table, np.ones(16)) for language, table in encoders["apart"].tables.items()
    }, noise=0.0)  # fmt: skip
    with pytest.raises(BadInput, match="all vectors are equal"):
        projection({"it": constant}, pairs, [1], options=PLAIN)
    one = pairs.keep(np.arange(len(pairs)) < 1)
    with pytest.raises(BadInput, match="2 points are too little to draw"):
        projection(encoders, one, [1], options=replace(PLAIN, words=(one.types().pop()[0],)))
    for wrong in ({"types": 0}, {"occurrences": 0}, {"pooling": "max"}):
        with pytest.raises(BadSetting):
            ProjectionOptions(**wrong)
