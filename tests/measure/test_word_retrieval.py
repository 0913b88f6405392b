"""Word retrieval against a slow twin written from the definition, and against answers planted by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calque.errors import BadInput, BadSetting
from calque.geometry.neighbours import Similarity
from calque.measure.word_retrieval import RetrievalOptions, Variant, WordMeasurement, word_retrieval
from calque.store import load_items, load_pairs, load_results, save_pairs, save_results
from calque.types import Bitext, Result, Sentences, WordPairs, WordVectors

FAST = {"rounds": 50}


class Planted:
    """An encoder whose vectors are given. Shape: vectors[language] (layers, words, d)."""

    languages: frozenset[str] | None = None

    def __init__(
        self, vectors: dict[str, np.ndarray], hidden: dict[str, Sequence[int]] | None = None
    ) -> None:
        self.vectors, self.hidden = vectors, hidden or {}
        self.asked = 0
        self.name = self.fingerprint = "planted"
        self.depth, _, self.width = next(iter(vectors.values())).shape
        self.depth -= 1

    def word_vectors(
        self, sentences: Sentences, words: Any = None, *, layers: Any, pooling: str
    ) -> WordVectors:
        self.asked += 1
        present = np.ones(len(sentences.ids), bool)
        present[list(self.hidden.get(sentences.language, ()))] = False
        held = self.vectors[sentences.language][list(layers)][:, present]
        return WordVectors(tuple(layers), held, present, {"truncated": int((~present).sum())})


def random_pairs(seed: int, sentences: int = 14, types: int = 40) -> WordPairs:
    """Many-to-many links over words that repeat within and across the sides."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, (2, sentences))
    sides = [[[f"w{i}" for i in rng.integers(0, types, n)] for n in row] for row in lengths]
    links = [
        (s, i, j)
        for s in range(sentences)
        for i in range(lengths[0, s])
        for j in range(lengths[1, s])
        if rng.random() < 0.3
    ]
    return WordPairs.of(Bitext.of(("en", "de"), *sides), *zip(*links, strict=True), linker="random")


def random_encoder(
    pairs: WordPairs, seed: int, layers: int = 2, noise: float = 1.0, **hidden: Any
) -> Planted:
    """Words of the same type and linked words lie near each other, of unequal lengths."""
    rng = np.random.default_rng(seed)
    bitext = pairs.bitext
    source = rng.normal(size=(layers, len(bitext.source.ids), 8))
    target = rng.normal(size=(layers, len(bitext.target.ids), 8)) * noise
    at = (
        bitext.source.offsets[pairs.sentence] + pairs.source,
        bitext.target.offsets[pairs.sentence] + pairs.target,
    )
    target[:, at[1]] += source[:, at[0]]
    source *= rng.uniform(0.3, 3, (1, source.shape[1], 1))
    return Planted({"en": source.astype(np.float32), "de": target.astype(np.float32)}, **hidden)


def figure(
    measured: WordMeasurement, encoder: str, layer: int, direction: str = "both", **more: Any
) -> Result:
    wanted = {
        "encoder": encoder,
        "layer": layer,
        "direction": direction,
        "group": None,
        "baseline": None,
    } | more
    found = [r for r in measured.results if all(getattr(r, name) == value for name, value in wanted.items())]
    assert len(found) == 1
    return found[0]


# ---------------------------------------------------------------------------------- the slow twin


def cosines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([[a @ b / np.sqrt(a @ a) / np.sqrt(b @ b) for b in y] for a in x])


def best(scores: np.ndarray) -> int:
    return max(range(len(scores)), key=lambda j: (scores[j], -j))


def csls(x: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    cos = cosines(x, y)
    r_x = [np.mean(sorted(row)[-k:]) for row in cos]
    r_y = [np.mean(sorted(row)[-k:]) for row in cos.T]
    return np.array([[2 * cos[i, j] - r_x[i] - r_y[j] for j in range(len(y))] for i in range(len(x))])


def program_scores(x: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """The published program, step by step, with its division by the norm of whatever array it is given."""

    def normalise(array: np.ndarray) -> np.ndarray:
        return array / np.sqrt((array**2).sum())

    hubs = np.sort((normalise(x) @ normalise(y).T).T, 1)[:, -k:].mean(1)
    return np.array([2 * normalise(y) @ normalise(one) - hubs for one in x])


def twin(
    pairs: WordPairs,
    encoder: Planted,
    layer: int,
    options: RetrievalOptions,
    seen: set[tuple[str, str]],
    hidden: set[tuple[str, int]],
) -> dict[tuple[str, tuple[int, int, int]], bool]:
    """Hits by direction and link, with sets of words as (sentence, index)."""
    texts = {"en": list(pairs.bitext.source), "de": list(pairs.bitext.target)}
    flat = {
        lang: [(s, i) for s, words in enumerate(text) for i in range(len(words))]
        for lang, text in texts.items()
    }
    rows = {lang: {at: n for n, at in enumerate(places)} for lang, places in flat.items()}
    candidates: dict[str, list[tuple[int, int]]] = {}
    for lang, places in flat.items():
        met: set[str] = set()
        candidates[lang] = []
        for at in places:
            word = texts[lang][at[0]][at[1]]
            if (lang, rows[lang][at]) in hidden or (
                options.variant is Variant.FIRST_OCCURRENCE and word in met
            ):
                continue
            met.add(word)
            candidates[lang].append(at)
    scored = []
    for s, i, j in zip(pairs.sentence.tolist(), pairs.source.tolist(), pairs.target.tolist(), strict=True):
        a, b = texts["en"][s][i], texts["de"][s][j]
        if (options.drop_identical and a == b) or (not options.include_seen and (a, b) in seen):
            continue
        if (s, i) in candidates["en"] and (s, j) in candidates["de"]:
            scored.append((s, i, j))
    if options.variant is Variant.PROGRAM:
        candidates["en"] = sorted({(s, i) for s, i, _ in scored})
        candidates["de"] = sorted({(s, j) for s, _, j in scored})
    x, y = (
        encoder.vectors[lang][layer].astype(np.float64)[[rows[lang][at] for at in candidates[lang]]]
        for lang in ("en", "de")
    )
    if options.variant is Variant.PROGRAM:
        forward, backward = program_scores(x, y, options.radius_k), program_scores(y, x, options.radius_k)
    elif options.similarity is Similarity.CSLS:
        forward = csls(x, y, options.radius_k)
        backward = forward.T
    else:
        forward = cosines(x, y)
        backward = forward.T
    hits = {}
    for s, i, j in scored:
        a, b = candidates["en"].index((s, i)), candidates["de"].index((s, j))
        hits["forward", (s, i, j)] = best(forward[a]) == b
        hits["backward", (s, i, j)] = best(backward[b]) == a
    return hits


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("drop_identical", [True, False])
@pytest.mark.parametrize(
    ("variant", "similarity"),
    [
        (Variant.CONTEXTUAL, Similarity.CSLS),
        (Variant.CONTEXTUAL, Similarity.COSINE),
        (Variant.FIRST_OCCURRENCE, Similarity.CSLS),
        (Variant.PROGRAM, Similarity.CSLS),
    ],
)
def test_equals_a_slow_twin(
    variant: Variant, similarity: Similarity, drop_identical: bool, seed: int
) -> None:
    pairs = random_pairs(seed)
    seen = set(sorted(pairs.types())[::5])
    before = random_encoder(pairs, seed + 1, hidden={"en": [0, 3]})
    after = random_encoder(pairs, seed + 2, noise=0.5, hidden={"de": [5]})
    options = RetrievalOptions(variant, similarity, 3, drop_identical=drop_identical, **FAST)
    measured = word_retrieval({"before": before, "after": after}, pairs, [0, 1], seen=seen, options=options)
    for label, encoder in (("before", before), ("after", after)):
        for layer in (0, 1):
            hits = twin(pairs, encoder, layer, options, seen, {("en", 0), ("en", 3), ("de", 5)})
            items = measured.items[figure(measured, label, layer).items]
            links = list(
                zip(*(items.keys[name].tolist() for name in ("sentence", "source", "target")), strict=True)
            )
            for direction in ("forward", "backward"):
                ours = dict(zip(links, items.values[direction].astype(bool).tolist(), strict=True))
                assert ours == {link: hit for (way, link), hit in hits.items() if way == direction}
                assert figure(measured, label, layer, direction).value == np.mean(list(ours.values()))
            assert figure(measured, label, layer).value == pytest.approx(np.mean(list(hits.values())))
            assert figure(measured, label, layer).count == len(hits)
    assert 0 < figure(measured, "after", 1).value < 1, "the case must tell right from wrong"
    assert before.asked == after.asked == 2, "each side is encoded once for all layers"


# ------------------------------------------------------------------------------------ planted answers


def one_to_one(sentences: int = 30, length: int = 5) -> tuple[WordPairs, np.ndarray]:
    """Word i of each sentence is linked to word length-1-i; the row permutation that this makes."""
    source = [[f"a{s}.{i}" for i in range(length)] for s in range(sentences)]
    target = [[f"b{s}.{i}" for i in range(length)] for s in range(sentences)]
    s, i = (x.ravel() for x in np.meshgrid(np.arange(sentences), np.arange(length), indexing="ij"))
    pairs = WordPairs.of(Bitext.of(("en", "de"), source, target), s, i, length - 1 - i)
    return pairs, (s * length + length - 1 - i)


@pytest.mark.parametrize("variant", list(Variant))
def test_perfect_translations_score_one(variant: Variant) -> None:
    pairs, partner = one_to_one()
    source = np.random.default_rng(0).normal(size=(1, 150, 16)).astype(np.float32)
    source /= np.linalg.norm(source, axis=2, keepdims=True)
    encoder = Planted({"en": source, "de": source[:, partner]})
    measured = word_retrieval({"it": encoder}, pairs, [0], options=RetrievalOptions(variant, **FAST))
    for direction in ("forward", "backward", "both"):
        found = figure(measured, "it", 0, direction)
        assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)
    assert figure(measured, "it", 0).count == 300


def test_program_ignores_the_lengths_that_its_paper_normalises() -> None:
    pairs, partner = one_to_one()
    source = np.random.default_rng(0).normal(size=(1, 150, 16)).astype(np.float32)
    target = source[:, partner].copy()
    target[0, 7] *= 1000
    encoder = {"it": Planted({"en": source, "de": target})}
    paper = word_retrieval(encoder, pairs, [0], options=RetrievalOptions(**FAST))
    program = word_retrieval(encoder, pairs, [0], options=RetrievalOptions(Variant.PROGRAM, **FAST))
    assert figure(paper, "it", 0, "forward").value == 1.0
    assert figure(program, "it", 0, "forward").value < 0.7, "half of the queries fall for the long vector"


def test_first_occurrence_by_hand() -> None:
    bitext = Bitext.of(("en", "de"), [["a", "b"], ["a", "c"], ["d"]], [["x", "y"], ["z", "x"], ["w"]])
    # a-x, b-y, d-w: both first. Second a-z: a is a later one. c-x: x is a later one.
    pairs = WordPairs.of(bitext, [0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [0, 1, 0, 1, 0])
    unit = np.eye(5, dtype=np.float32)[None]
    options = RetrievalOptions(Variant.FIRST_OCCURRENCE, **FAST)
    measured = word_retrieval({"it": Planted({"en": unit, "de": unit})}, pairs, [0], options=options)
    assert measured.counts["scored"] == 3 and measured.counts["later occurrence"] == 2
    assert (measured.counts["source candidates"], measured.counts["target candidates"]) == (4, 4)
    assert measured.items[figure(measured, "it", 0).items].keys["source"].tolist() == [0, 1, 0]
    assert figure(measured, "it", 0).value == 1.0


def test_a_hidden_first_occurrence_gives_way_to_the_next() -> None:
    bitext = Bitext.of(("en", "de"), [["a"], ["a"], ["b"]], [["x"], ["y"], ["z"]])
    pairs = WordPairs.of(bitext, [1, 2], [0, 0], [0, 0])
    unit = np.eye(3, dtype=np.float32)[None]
    encoder = Planted({"en": unit, "de": unit}, {"en": [0]})
    options = RetrievalOptions(Variant.FIRST_OCCURRENCE, **FAST)
    assert word_retrieval({"it": encoder}, pairs, [0], options=options).counts["scored"] == 2


def test_links_are_left_out_by_reason() -> None:
    bitext = Bitext.of(("en", "de"), [["Rom", "a", "b", "c"]] * 2, [["Rom", "x", "y", "z"]] * 2)
    pairs = WordPairs.of(bitext, [0] * 4 + [1] * 4, [0, 1, 2, 3] * 2, [0, 1, 2, 3] * 2)
    rng = np.random.default_rng(1)
    encoders = {
        name: Planted({"en": rng.normal(size=(1, 8, 4)), "de": rng.normal(size=(1, 8, 4))}, hidden)
        for name, hidden in (("before", {"en": [2]}), ("after", {"de": [7]}))
    }
    kept = {"drop_identical": False, "include_seen": True}
    for settings, identical, seen, scored in (({}, 2, 2, 2), (kept, 0, 0, 6)):
        options = RetrievalOptions(**FAST, **settings)
        measured = word_retrieval(encoders, pairs, [0], seen={("a", "x"), ("Rom", "Rom")}, options=options)
        counts = measured.counts
        assert (counts["identical"], counts["seen in training"], counts["no vector"]) == (identical, seen, 2)
        assert counts["links"] == 8 and counts["scored"] == scored
        assert (counts["source candidates"], counts["target candidates"]) == (7, 7), (
            "identical words can be found"
        )
        assert counts["words truncated (before)"] == counts["words truncated (after)"] == 1
        keys = [[items.keys[name].tolist() for name in items.keys] for items in measured.items.values()]
        assert keys[0] == keys[1], "encoders answer the same queries"


# ---------------------------------------------------------------------------------------- comparisons


def test_comparison_agrees_with_the_items() -> None:
    pairs = random_pairs(3, sentences=40, types=400)
    encoders = {"before": random_encoder(pairs, 1), "after": random_encoder(pairs, 1, noise=0.9)}
    measured = word_retrieval(encoders, pairs, [0], options=RetrievalOptions(**FAST))
    for direction in ("forward", "backward", "both"):
        before, after = (
            measured.items[figure(measured, name, 0).items].values[direction] for name in encoders
        )
        whole = [figure(measured, name, 0, direction) for name in encoders]
        assert [r.value for r in whole] == pytest.approx([before.mean(), after.mean()])
        told = figure(measured, "after", 0, direction, baseline="before")
        assert told.value == pytest.approx(after.mean() - before.mean()) and told.value > 0
        assert told.low < told.value < told.high and 0.01 < told.p < 0.9
        assert told.p == pytest.approx(_sign_flips(after - before, pairs, measured), abs=0.03)
        assert all(r.low <= r.value <= r.high for r in whole)


def test_a_sentence_is_the_same_cluster_in_every_bitext() -> None:
    pairs = random_pairs(3, sentences=40, types=400)
    rows = np.delete(np.arange(40), 3)
    clusters = [
        dict(zip(items.keys["sentence"].tolist(), items.cluster.tolist(), strict=True))
        for one in (pairs, pairs.sentences(rows))
        for items in word_retrieval({"a": random_encoder(one, 1)}, one, [0]).items.values()
    ]
    assert all(clusters[0][int(rows[number])] == name for number, name in clusters[1].items())
    assert len(set(clusters[1].values())) == len(clusters[1]) > 20


def _sign_flips(gain: np.ndarray, pairs: WordPairs, measured: WordMeasurement) -> float:
    cluster = measured.items[figure(measured, "before", 0).items].cluster
    sums = [gain[cluster == c].sum() for c in np.unique(cluster)]
    rng = np.random.default_rng(9)
    drawn = [abs(sum(rng.choice([-1, 1]) * x for x in sums)) for _ in range(1000)]
    return float(np.mean([x >= abs(sum(sums)) - 1e-9 for x in drawn]))


def test_encoders_of_unequal_depth_meet_where_both_have_the_layer() -> None:
    pairs = random_pairs(5)
    encoders = {"deep": random_encoder(pairs, 1, layers=4), "flat": random_encoder(pairs, 2, layers=2)}
    chosen = {"deep": [3, 1], "flat": [0, 1, 1]}
    measured = word_retrieval(encoders, pairs, chosen, options=RetrievalOptions(**FAST))
    held = {(r.encoder, r.layer): measured.items[r.items] for r in measured.results if r.items}
    assert sorted(held) == [("deep", 1), ("deep", 3), ("flat", 0), ("flat", 1)]
    assert {(r.encoder, r.layer) for r in measured.results if r.baseline} == {("flat", 1)}
    assert {e["layer"] for x in measured.artifacts["examples"] for e in x["retrieved"].values()} == {3, 1}


def test_examples_favour_disagreement_and_read_true() -> None:
    pairs, partner = one_to_one()
    source = np.random.default_rng(0).normal(size=(1, 150, 16)).astype(np.float32)
    wrong = source[:, partner].copy()
    wrong[0, :3] = wrong[0, [1, 2, 0]]
    encoders = {
        "a": Planted({"en": source, "de": source[:, partner]}),
        "b": Planted({"en": source, "de": wrong}),
    }
    examples = word_retrieval(encoders, pairs, [0], options=RetrievalOptions(**FAST)).artifacts["examples"]
    split = [{e["hit"] for e in x["retrieved"].values()} == {True, False} for x in examples]
    assert split == sorted(split, reverse=True) and sum(split) == 6 and len(split) == 24
    for x in examples:
        assert x["sentence"][x["index"]] == x["query"]
        assert x["gold"]["sentence"][x["gold"]["index"]] == x["gold"]["word"]
        sentence, word = x["query"][1:].split(".")
        assert x["gold"]["word"][1:] == f"{sentence}.{4 - int(word)}"
        assert x["retrieved"]["a"]["word"] == x["gold"]["word"]
        assert x["retrieved"]["b"]["hit"] == (x["retrieved"]["b"]["word"] == x["gold"]["word"])


def test_results_and_items_survive_the_disk(tmp_path: Path) -> None:
    pairs = random_pairs(6)
    encoders = {"before": random_encoder(pairs, 1), "after": random_encoder(pairs, 2)}
    measured = word_retrieval(encoders, pairs, [0, 1], options=RetrievalOptions(**FAST), recipe="abc")
    results = measured.save(tmp_path / "items")
    save_results(tmp_path / "results.jsonl", results)
    loaded = load_results(tmp_path / "results.jsonl")
    assert sorted(map(str, loaded)) == sorted(map(str, results))
    whole = [r for r in loaded if r.items]
    assert len(whole) == 12
    for r in whole:
        assert load_items(tmp_path / "items", r.items or "").values[r.direction].mean() == pytest.approx(
            r.value
        )
    assert all("recipe:abc" in r.signature and r.languages == ("en", "de") for r in loaded)


def test_links_read_from_disk_give_the_same_figures(tmp_path: Path) -> None:
    pairs = random_pairs(6)
    encoders = {"before": random_encoder(pairs, 1), "after": random_encoder(pairs, 2)}
    save_pairs(tmp_path / "pairs", pairs)
    for variant in Variant:
        options = RetrievalOptions(variant, **FAST)
        ours, read = (
            word_retrieval(encoders, held, [1], options=options, breakdowns=["rank-gap", "script"])
            for held in (pairs, load_pairs(tmp_path / "pairs"))
        )
        assert ours.results == read.results and ours.artifacts["examples"] == read.artifacts["examples"]


def test_the_same_call_gives_the_same_figures() -> None:
    pairs = random_pairs(7)
    encoders = {"before": random_encoder(pairs, 1), "after": random_encoder(pairs, 2)}
    options = RetrievalOptions(**FAST, seed=4)
    first, second = (word_retrieval(encoders, pairs, [1], options=options) for _ in range(2))
    assert first.results == second.results and first.artifacts["examples"] == second.artifacts["examples"]
    assert first.results[0].seed == 4


# ------------------------------------------------------------------------------------------ mistakes


def test_no_links_left_says_why() -> None:
    bitext = Bitext.of(("en", "de"), [["Rom", "a"]], [["Rom", "x"]])
    pairs = WordPairs.of(bitext, [0, 0], [0, 1], [0, 1])
    encoder = {"it": Planted({"en": np.eye(2)[None], "de": np.eye(2)[None]})}
    with pytest.raises(BadInput, match="no links left to score of 2: identical 1; seen in training 1"):
        word_retrieval(encoder, pairs, [0], seen={("a", "x")})
    with pytest.raises(BadInput, match="no links left to score of 0"):
        word_retrieval(encoder, pairs.keep(np.zeros(2, bool)), [0])


def test_vectors_that_tell_nothing_are_named() -> None:
    pairs = random_pairs(8)
    encoder = random_encoder(pairs, 1)
    encoder.vectors["de"][1, 0] = np.nan
    with pytest.raises(BadInput, match="'it' at layer 1, de: vectors that are not numbers"):
        word_retrieval({"it": encoder}, pairs, [0, 1])
    encoder.vectors["de"][1] = 2.5
    with pytest.raises(BadInput, match=r"'it' at layer 1, de: all vectors are the same"):
        word_retrieval({"it": encoder}, pairs, [0, 1])


def test_links_in_one_sentence_give_no_figure() -> None:
    pairs = random_pairs(8)
    one = pairs.keep(pairs.sentence == pairs.sentence[0])
    with pytest.raises(BadInput, match="in one sentence only"):
        word_retrieval({"it": random_encoder(pairs, 1)}, one, [0])


def test_mistaken_settings_are_refused_before_encoding() -> None:
    pairs = random_pairs(9)
    encoder = random_encoder(pairs, 1)
    with pytest.raises(BadSetting, match=r"'it' has no layer 2 .*0 to 1"):
        word_retrieval({"it": encoder}, pairs, [0, 2])
    with pytest.raises(BadSetting, match="'it' was given no layer"):
        word_retrieval({"it": encoder}, pairs, {"other": [0]})
    with pytest.raises(BadSetting, match="no encoder"):
        word_retrieval({}, pairs, [0])
    with pytest.raises(BadSetting, match="did you mean pos"):
        word_retrieval({"it": encoder}, pairs, [0], breakdowns=["poss"])
    with pytest.raises(BadSetting, match=r"en side of these pairs carries no tags .*CoNLL-U"):
        word_retrieval({"it": encoder}, pairs, [0], breakdowns=["pos"])
    with pytest.raises(BadSetting, match="set include_seen"):
        word_retrieval({"it": encoder}, pairs, [0], breakdowns=["seen"])
    encoder.languages = frozenset({"en", "ru"})
    with pytest.raises(BadSetting, match=r"not made for de .*en, ru"):
        word_retrieval({"it": encoder}, pairs, [0])
    assert encoder.asked == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"radius_k": 0},
        {"rounds": 0},
        {"pooling": "max"},
        {"variant": Variant.PROGRAM, "similarity": Similarity.COSINE},
    ],
)
def test_options_have_bounds(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        RetrievalOptions(**wrong)
    assert dataclasses.replace(RetrievalOptions(), rounds=1).rounds == 1
