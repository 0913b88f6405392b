"""Lexicon induction against a slow twin written from the definition, and against answers planted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.static import StaticEncoder, WordTable
from calque.encoders.wordtypes import Types
from calque.errors import BadInput, BadSetting
from calque.files import Cache
from calque.geometry.neighbours import Similarity
from calque.measure.lexicon import AT, LexiconOptions, Oov, TypeVector, lexicon_induction
from calque.measure.scoring import Measurement
from calque.store import load_items, load_results, save_results
from calque.text.dictionaries import Dictionary
from calque.types import MapKey, Matrix, Result, Sentences, Shift, SpaceMap, Unit
from planted import PlantedEncoder, orthogonal

FAST = {"rounds": 30}


def table_encoder(
    seed: int, sizes: tuple[int, int] = (60, 80), width: int = 6, noise: float = 0.6
) -> StaticEncoder:
    """Two languages in one space: `ek` and `dk` mean the same, as far as there is one of both."""
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(max(sizes), width)) + 0.5
    sides = [meaning[:size] + noise * rng.normal(size=(size, width)) for size in sizes]
    tables = {
        code: WordTable.of([f"{code[0]}{k}" for k in range(len(side))], side)
        for code, side in zip(("en", "de"), sides, strict=True)
    }
    return StaticEncoder(tables)


def table_types(encoder: StaticEncoder) -> tuple[Types, Types]:
    en, de = (Types.of_words(code, encoder.tables[code].words) for code in ("en", "de"))
    return en, de


def random_dictionary(seed: int, words: int = 90, first: str = "e", second: str = "d") -> Dictionary:
    """One to three translations a word, some of them right, some words and translations of no vocabulary."""
    rng = np.random.default_rng(seed)
    pairs = []
    for k in rng.permutation(words)[:50].tolist():
        others = {k, *rng.integers(0, words, int(rng.integers(0, 3))).tolist()}
        pairs += [(f"{first}{k}", f"{second}{j}") for j in sorted(others)]
    return Dictionary(tuple(pairs))


def figure(measured: Measurement, k: int = 1, encoder: str = "a", layer: int = 0, **more: Any) -> Result:
    wanted = {"metric": f"p@{k}", "encoder": encoder, "layer": layer, "direction": "forward"}
    wanted |= {"group": None, "baseline": None} | more
    found = [r for r in measured.results if all(getattr(r, name) == value for name, value in wanted.items())]
    assert len(found) == 1
    return found[0]


# ---------------------------------------------------------------------------------- the slow twin


def similarities(x: np.ndarray, y: np.ndarray, csls: bool, k: int = 10) -> np.ndarray:
    cos = np.array([[a @ b / np.sqrt(a @ a) / np.sqrt(b @ b) for b in y] for a in x])
    if not csls:
        return cos
    near = [[np.mean(sorted(row)[-k:]) for row in rows] for rows in (cos, cos.T)]
    return np.array([[2 * cos[i, j] - near[0][i] - near[1][j] for j in range(len(y))] for i in range(len(x))])


def slow_hits(
    encoder: StaticEncoder, dictionary: Dictionary, codes: tuple[str, str], csls: bool, oov: Oov, k: int
) -> list[bool]:
    source, target = (
        {w: v for w, v in zip(t.words, t.vectors, strict=True)} for t in map(encoder.tables.get, codes)
    )
    scores = similarities(np.array([*source.values()]), np.array([*target.values()]), csls)
    hits = []
    for word, translations in dictionary.translations.items():
        right = [t for t in translations if t in target]
        if word not in source or not right:
            hits += [False] if oov is Oov.WRONG else []
            continue
        row = scores[list(source).index(word)]
        best = sorted(range(len(row)), key=lambda j: (-row[j], j))[:k]
        hits.append(any(list(target)[j] in right for j in best))
    return hits


@pytest.mark.parametrize("oov", list(Oov))
@pytest.mark.parametrize("similarity", [Similarity.CSLS, Similarity.COSINE])
def test_precision_at_k_is_brute_force(similarity: Similarity, oov: Oov) -> None:
    for seed in range(3):
        encoder, dictionary = table_encoder(seed), random_dictionary(seed)
        options = LexiconOptions(similarity=similarity, oov=oov, **FAST)
        back = random_dictionary(seed + 9, first="d", second="e")
        measured = lexicon_induction(
            {"a": encoder},
            table_types(encoder),
            {"forward": dictionary, "backward": back},
            [0],
            options=options,
        )
        pooled = {k: [] for k in AT}
        for direction, given, codes in (
            ("forward", dictionary, ("en", "de")),
            ("backward", back, ("de", "en")),
        ):
            for k in AT:
                hits = slow_hits(encoder, given, codes, similarity is Similarity.CSLS, oov, k)
                found = figure(measured, k, direction=direction)
                assert found.value == pytest.approx(np.mean(hits)) and found.count == len(hits)
                pooled[k] += hits
        for k in AT:
            assert figure(measured, k, direction="both").value == pytest.approx(np.mean(pooled[k]))


# ------------------------------------------------------------------------------ what counts as right


def tiny(vectors: dict[str, dict[str, list[float]]]) -> StaticEncoder:
    return StaticEncoder({c: WordTable.of(held, np.array([*held.values()])) for c, held in vectors.items()})


AXES = tiny(
    {
        "en": {"bank": [1, 0, 0], "dog": [0, 1, 0], "cat": [0, 0, 1]},
        "de": {"Bank": [0.9, 0.1, 0], "Ufer": [0.8, 0, 0.1], "Hund": [0, 1, 0.1], "Katze": [0.1, 0, 1]},
    }
)
COSINE = LexiconOptions(similarity=Similarity.COSINE, **FAST)


def measure_axes(*pairs: tuple[str, str], **options: Any) -> Measurement:
    settings = {**vars(COSINE), **options}
    seen = settings.pop("seen_pairs", frozenset())
    return lexicon_induction(
        {"a": AXES},
        table_types(AXES),
        {"forward": Dictionary(pairs)},
        [0],
        seen=seen,
        options=LexiconOptions(**settings),
    )


def test_any_translation_counts_and_a_word_is_asked_once() -> None:
    both = measure_axes(("bank", "Ufer"), ("bank", "Bank"), ("dog", "Katze"))
    assert figure(both).value == 0.5 and figure(both).count == 2
    only = measure_axes(("bank", "Ufer"), ("dog", "Katze"))
    assert figure(only).value == 0 and figure(only, 5).value == 1


def test_words_that_are_not_there_are_left_out_or_wrong() -> None:
    pairs = ("dog", "Hund"), ("mouse", "Maus"), ("cat", "Kater"), ("cat", "Mieze")
    skipped = measure_axes(*pairs)
    assert figure(skipped).value == 1 and figure(skipped).count == 1
    assert skipped.counts == {
        "words": 3, "covered": 1, "scored": 1, "identical": 0, "seen in training": 0,
        "not in the vocabulary": 1, "no translation in the vocabulary": 1,
        "source candidates": 3, "target candidates": 4,
    }  # fmt: skip
    wrong = measure_axes(*pairs, oov=Oov.WRONG)
    assert figure(wrong).value == pytest.approx(1 / 3) and figure(wrong).count == 3
    assert wrong.counts["scored"] == 3 and wrong.counts["covered"] == 1


def test_pairs_seen_in_training_are_left_out_whatever_their_case() -> None:
    pairs = ("dog", "Hund"), ("cat", "Katze"), ("bank", "Ufer"), ("bank", "Bank")
    seen = frozenset({("Dog", "HUND"), ("bank", "Ufer"), ("cat", "Hund")})
    left = measure_axes(*pairs, seen_pairs=seen)
    assert figure(left).count == 1 and left.counts["seen in training"] == 2
    kept = measure_axes(*pairs, seen_pairs=seen, include_seen=True)
    assert figure(kept).count == 3
    assert figure(kept, group=("seen", "seen")).count == 2
    with pytest.raises(BadInput, match="seen in training 1"):
        measure_axes(("dog", "Hund"), seen_pairs=frozenset({("dog", "Hund")}))


def test_pairs_seen_are_turned_round_for_the_way_back() -> None:
    measured = lexicon_induction(
        {"a": AXES}, table_types(AXES), {"backward": Dictionary((("Hund", "dog"), ("Katze", "cat")))}, [0],
        seen={("dog", "Hund")}, options=COSINE,
    )  # fmt: skip
    assert figure(measured, direction="backward").count == 1
    assert measured.counts["seen in training"] == 1


def test_case_is_folded_unless_it_is_kept() -> None:
    pairs = (("DOG", "hund"), ("Cat", "KATZE"))
    assert figure(measure_axes(*pairs)).value == 1
    types = tuple(Types.of_words(c, AXES.tables[c].words, fold=False) for c in ("en", "de"))
    with pytest.raises(BadInput, match="none of the 2 words"):
        lexicon_induction({"a": AXES}, types, {"forward": Dictionary(pairs)}, [0], options=COSINE)


def test_words_that_are_their_own_translation_can_be_left_out() -> None:
    pairs = ("bank", "Bank"), ("dog", "Hund")
    assert figure(measure_axes(*pairs)).count == 2
    left = measure_axes(*pairs, drop_identical=True)
    assert figure(left).count == 1 and left.counts["identical"] == 1


def test_equal_candidates_go_to_the_most_frequent() -> None:
    same = tiny(
        {"en": {"a": [1, 0], "b": [0, 1]}, "de": {"x": [1, 1], "y": [2, 2], "z": [3, 3], "w": [1, -1]}}
    )
    for word, value in (("x", 1), ("y", 0)):
        measured = lexicon_induction(
            {"a": same}, table_types(same), {"forward": Dictionary((("a", word),))}, [0], options=COSINE
        )
        assert figure(measured).value == value
        assert figure(measured, 5).value == 1


def test_vectors_that_tell_nothing_are_refused() -> None:
    apart = {"a": [1.0, 2.0], "b": [2.0, 1.0]}
    for vector, told in (([1.0, 2.0], "all vectors are the same"), ([0.0, 0.0], "all vectors are zero")):
        flat = tiny({"en": apart, "de": dict.fromkeys("xyz", vector)})
        with pytest.raises(BadInput, match=f"encoder 'a' at layer 0, de: {told}"):
            lexicon_induction(
                {"a": flat}, table_types(flat), {"forward": Dictionary((("a", "z"), ("b", "x")))}, [0]
            )


# ----------------------------------------------------------------------------------- several encoders


def contextual(
    seed: int = 0, missing: frozenset[str] = frozenset()
) -> tuple[PlantedEncoder, dict[str, Sentences]]:
    """Vectors that differ from one occurrence to the next, of words that repeat."""
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(40, 8))
    turn = orthogonal(8, 3)
    tables = {
        "en": {f"e{k}": meaning[k] for k in range(40)},
        "de": {f"D{k}": turn @ meaning[k] + 1 for k in range(40)}
        | {f"d{k}": turn @ meaning[k] + 1 for k in range(40)},
    }
    texts = {
        code: Sentences.of(code, [rng.choice(list(table), 7).tolist() for _ in range(60)])
        for code, table in tables.items()
    }
    return PlantedEncoder(tables, noise=0.5, missing=missing), texts


def turned_back(encoder: PlantedEncoder, *before: Any, name: str = "aligned") -> AlignedEncoder:
    turn = orthogonal(8, 3).astype(np.float32)
    maps = {
        MapKey("de", "en", layer): SpaceMap(
            (*before, Shift(np.full(8, -1.0 - layer, np.float32)), Matrix(turn.T))
        )
        for layer in range(3)
    }
    return AlignedEncoder(
        encoder,
        maps | {MapKey("en", "en", layer): SpaceMap() for layer in range(3)},
        "en",
        about={"method": name},
    )


TRUE = Dictionary(tuple((f"e{k}", f"d{k}") for k in range(40)))


def slow_means(encoder: Any, text: Sentences, layer: int) -> dict[str, np.ndarray]:
    found = encoder.word_vectors(text, layers=(0, 2))
    rows: dict[str, list[np.ndarray]] = {}
    strings = [text.vocabulary[i].lower() for i in text.ids[found.present]]
    for word, vector in zip(strings, found.layer(layer).astype(np.float64), strict=True):
        rows.setdefault(word, []).append(vector)
    return {word: np.mean(held, 0) for word, held in rows.items()}


@pytest.mark.parametrize("before", [(), (Unit(),)], ids=["linear", "unit lengths"])
def test_anchors_under_maps_are_means_of_mapped_vectors(before: tuple[Any, ...]) -> None:
    """Where a map bends lengths, the mean of what it makes is not what it makes of the mean."""
    encoder, texts = contextual()
    aligned = turned_back(encoder, *before)
    types = Types.of_text(texts["en"]), Types.of_text(texts["de"])
    measured = lexicon_induction(
        {"a": encoder, "b": aligned}, types, {"forward": TRUE}, [0, 2],
        options=LexiconOptions(similarity=Similarity.COSINE, **FAST),
    )  # fmt: skip
    for layer in (0, 2):
        source, target = (slow_means(aligned, texts[code], layer) for code in ("en", "de"))
        cos = similarities(np.array([*source.values()]), np.array([*target.values()]), csls=False)
        hits = [
            list(target)[cos[list(source).index(w)].argmax()] == t
            for w, t in TRUE.pairs
            if w in source and t in target
        ]
        found = figure(measured, encoder="b", layer=layer)
        assert found.value == pytest.approx(np.mean(hits)) and found.count == len(hits)
    assert figure(measured, encoder="b").value > figure(measured, encoder="a").value


def test_maps_are_applied_and_the_text_is_read_once_for_all_alignments() -> None:
    encoder, texts = contextual()
    types = Types.of_text(texts["en"]), Types.of_text(texts["de"])
    cache = Cache()
    encoders = {"a": encoder, "b": turned_back(encoder), "c": turned_back(encoder, name="other")}
    measured = lexicon_induction(
        encoders, types, {"forward": TRUE}, [0, 1], options=LexiconOptions(**FAST), cache=cache
    )
    assert encoder.calls == ["en", "de"]
    assert figure(measured, encoder="b", layer=1).value > 0.9 > figure(measured, encoder="a", layer=1).value
    change = figure(measured, encoder="b", layer=1, baseline="a")
    assert change.value > 0.5 and change.p < 0.01 and change.low <= change.value <= change.high
    again = lexicon_induction(
        encoders, types, {"forward": TRUE}, [0, 1], options=LexiconOptions(**FAST), cache=cache
    )
    assert again.results == measured.results and encoder.calls == ["en", "de"]


def test_a_word_that_one_encoder_lacks_is_there_for_none() -> None:
    encoder, texts = contextual()
    lame, _ = contextual(missing=frozenset({"e3", "d5", "D5"}))
    types = Types.of_text(texts["en"]), Types.of_text(texts["de"])
    measured = lexicon_induction(
        {"a": encoder, "b": lame}, types, {"forward": TRUE}, [0], options=LexiconOptions(**FAST)
    )
    assert measured.counts["source candidates"] == len(types[0]) - 1
    assert measured.counts["target candidates"] == len(types[1]) - 1
    assert figure(measured).count == figure(measured, encoder="b").count
    assert measured.counts["not in the vocabulary"] == 1


def test_items_and_results_are_saved_and_read_back(tmp_path: Path) -> None:
    encoder = table_encoder(1)
    measured = lexicon_induction(
        {"a": encoder, "b": table_encoder(2)}, table_types(encoder),
        {"forward": random_dictionary(1), "backward": random_dictionary(2, first="d", second="e")}, [0],
        options=LexiconOptions(**FAST),
    )  # fmt: skip
    results = measured.save(tmp_path / "items")
    save_results(tmp_path / "results.jsonl", results)
    read = load_results(tmp_path / "results.jsonl")
    assert {r.direction for r in read} == {"forward", "backward", "both"}
    assert {r.metric for r in read} == {"p@1", "p@5", "p@10"} and {r.task for r in read} == {"lexicon"}
    for result in (r for r in read if r.group is None and r.baseline is None):
        items = load_items(tmp_path / "items", result.items)
        assert items.values[result.direction].mean() == pytest.approx(result.value)
        assert len(set(items.cluster)) == result.count, "every word is a cluster of its own"


def test_examples_show_where_encoders_differ() -> None:
    encoder, texts = contextual()
    types = Types.of_text(texts["en"]), Types.of_text(texts["de"])
    encoders = {"a": encoder, "b": turned_back(encoder)}
    measured = lexicon_induction(encoders, types, {"forward": TRUE}, [0, 1], options=LexiconOptions(**FAST))
    first = measured.artifacts["examples"][0]
    assert first["query"][0] == "e" and first["gold"]["word"] == f"d{first['query'][1:]}"
    assert {held["layer"] for held in first["retrieved"].values()} == {1}
    assert {held["hit"] for held in first["retrieved"].values()} == {True, False}
    right = first["retrieved"]["b"]
    assert right["hit"] == (right["word"] == first["gold"]["word"])


def test_same_input_same_output_and_other_settings_other_signatures() -> None:
    encoder, dictionary = table_encoder(4), random_dictionary(4)
    run = lambda **more: lexicon_induction(  # noqa: E731
        {"a": encoder},
        table_types(encoder),
        {"forward": dictionary},
        [0],
        options=LexiconOptions(**{**FAST, **more}),
    )
    assert run().results == run().results
    signatures = {
        figure(run(**more)).signature
        for more in (
            {},
            {"similarity": Similarity.COSINE},
            {"oov": Oov.WRONG},
            {"radius_k": 5},
            {"vectors": TypeVector.STATIC},
        )
    }
    assert len(signatures) == 5
    assert figure(run(vectors=TypeVector.STATIC)).variant == "static"


# -------------------------------------------------------------------------------------- bad input


def test_mistakes_are_named() -> None:
    types = table_types(AXES)
    good = {"forward": Dictionary((("dog", "Hund"),))}
    with pytest.raises(
        BadInput, match="none of the 2 words of the dictionary is left: not in the vocabulary 2"
    ):
        measure_axes(("q", "Hund"), ("r", "Katze"))
    with pytest.raises(BadInput, match="no translation in the vocabulary 1"):
        measure_axes(("dog", "q"), oov=Oov.WRONG)
    with pytest.raises(BadSetting, match="no dictionary"):
        lexicon_induction({"a": AXES}, types, {}, [0])
    with pytest.raises(BadSetting, match="no direction 'sideways'"):
        lexicon_induction({"a": AXES}, types, {"sideways": good["forward"]}, [0])
    with pytest.raises(BadSetting, match="no encoder"):
        lexicon_induction({}, types, good, [0])
    with pytest.raises(BadSetting, match="has no layer 3"):
        lexicon_induction({"a": AXES}, types, good, [3])
    with pytest.raises(BadSetting, match="was not made for de"):
        lexicon_induction({"a": StaticEncoder({"en": AXES.tables["en"]})}, types, good, [0])
    stranger = tiny({"en": {"q": [1, 0, 0]}, "de": {"r": [1, 0, 0]}})
    with pytest.raises(BadInput, match="none of the 3 en words has a vector"):
        lexicon_induction({"a": stranger}, types, good, [0])
    for wrong in ({"rounds": 0}, {"radius_k": 0}, {"pooling": "sum"}):
        with pytest.raises(BadSetting):
            LexiconOptions(**wrong)
