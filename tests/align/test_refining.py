"""Alignment from a handful of words, or from none that were given: planted maps come out of refinement."""

import numpy as np
import pytest

from calque.align.linear import LinearAligner
from calque.align.refining import BARELY, refine_maps
from calque.align.sources import DictionaryAnchors, LinkedWords, identical_words
from calque.encoders.static import StaticEncoder, WordTable
from calque.encoders.wordtypes import Types
from calque.errors import BadInput, BadSetting
from calque.geometry.neighbours import two_way
from calque.geometry.solvers import Method, SolverOptions
from calque.text.dictionaries import Dictionary
from calque.types import Encoder, MapKey, Matrix
from planted import PlantedEncoder, orthogonal, planted

WORDS, WIDTH = 600, 24
FEW = SolverOptions(shrink=BARELY)


def tables(languages: tuple[str, ...] = ("en", "de"), shared: int = 0) -> StaticEncoder:
    """Word k of each language means the same; the first `shared` are written the same."""
    rng = np.random.default_rng(0)
    fading = np.arange(1, WIDTH + 1) ** -0.4
    meaning = rng.normal(size=(WORDS, WIDTH)) * fading
    held = {}
    for place, code in enumerate(languages):
        turn = orthogonal(WIDTH, 5 + place) if place else np.eye(WIDTH)
        noise = 0.15 * rng.normal(size=meaning.shape) * fading
        names = [f"name{k}" if k < shared else f"{code}{k}" for k in range(WORDS)]
        held[code] = WordTable.of(names, (meaning + noise) @ turn.T)
    return StaticEncoder(held)


def types(encoder: StaticEncoder, *codes: str) -> tuple[Types, Types]:
    first, second = (Types.of_words(code, encoder.tables[code].words) for code in codes or ("en", "de"))
    return first, second


def right(encoder: Encoder, *codes: str) -> float:
    """P@1 over all words."""
    sides = [
        encoder.word_vectors(one.text, layers=(0,)).layer(0) for one in types(innermost(encoder), *codes)
    ]
    return float((two_way(*sides).forward.index[:, 0] == np.arange(WORDS)).mean())


def innermost(encoder: Encoder) -> StaticEncoder:
    return getattr(encoder, "inner", encoder)


def dictionary(count: int, wrong: int = 0, *codes: str) -> Dictionary:
    first, second = codes or ("en", "de")
    rows = np.random.default_rng(1).permutation(WORDS)[: count + wrong].tolist()
    good = [(f"{first}{k}", f"{second}{k}") for k in rows[:count]]
    return Dictionary((*good, *((f"{first}{k}", f"{second}{k - 7}") for k in rows[count:] if k >= 7)))


@pytest.mark.parametrize("moves", ["target", "source"])
@pytest.mark.parametrize("method", [Method.ROTATION, Method.CENTRED_ROTATION, Method.ITERATIVE_NORMALISATION])
def test_a_small_noisy_dictionary_is_enough_with_refinement(method: Method, moves: str) -> None:
    encoder = tables()
    sides = types(encoder)
    aligner = LinearAligner(method, SolverOptions(shrink=BARELY, rounds=2), moves=moves)
    start = aligner.fit(encoder, [DictionaryAnchors(dictionary(14, 4), sides)], (0,))
    refined = refine_maps(start, aligner, {("en", "de"): sides}, 10)
    assert right(start) < 0.7 and right(refined) > 0.99
    assert refined.space == start.space and refined.maps.keys() == start.maps.keys()
    moving = "de" if moves == "target" else "en"
    (told,) = refined.about["refined"][moving]
    assert told["layer"] == 0 and told["pairs"][-1] > told["pairs"][0] and len(told["pairs"]) <= 11
    assert refined.seen == start.seen, "words that found each other were not given"


def test_words_written_the_same_are_a_seed_without_a_dictionary() -> None:
    encoder = tables(shared=16)
    sides = types(encoder)
    seed = identical_words(sides)
    assert len(seed) == 16 and all(a == b for a, b in seed.pairs)
    aligner = LinearAligner(Method.ROTATION, FEW)
    start = aligner.fit(encoder, [DictionaryAnchors(seed, sides)], (0,))
    refined = refine_maps(start, aligner, {("en", "de"): sides}, 10)
    assert right(encoder) < 0.1 and right(start) < 0.8 and right(refined) > 0.99
    with pytest.raises(BadInput, match="no word is written the same in en and de"):
        identical_words(types(tables()))
    with pytest.raises(BadInput, match="no number"):
        identical_words(sides, numerals=True)
    numbered = tuple(Types.of_words(code, ["1999", "7", "7b", "Paris", code]) for code in ("en", "de"))
    assert identical_words(numbered, numerals=True).pairs == (("1999", "1999"), ("7", "7"))
    assert len(identical_words(numbered)) == 4


def test_several_languages_meet_in_the_space_of_one() -> None:
    codes = ("en", "de", "fr")
    encoder = tables(codes)
    pairs = {("en", code): types(encoder, "en", code) for code in codes[1:]}
    aligner = LinearAligner(Method.ROTATION, FEW)
    sources = [DictionaryAnchors(dictionary(20, 4, *pair), sides) for pair, sides in pairs.items()]
    refined = refine_maps(aligner.fit(encoder, sources, (0,)), aligner, pairs, 10)
    for code in codes[1:]:
        assert right(refined, "en", code) > 0.99
    assert set(refined.about["refined"]) == {"de", "fr"}
    with pytest.raises(BadSetting, match="for one pair of languages, not 2"):
        refine_maps(refined, LinearAligner(Method.ITERATIVE_NORMALISATION, FEW), pairs, 3)


def test_anchors_of_linked_text_refine_each_layer_by_itself() -> None:
    encoder, pairs, turns = planted(types=300, sentences=400)
    noisy = PlantedEncoder(encoder.tables, noise=0.2)
    text = pairs["xx"].bitext
    sides = Types.of_text(text.source), Types.of_text(text.target)
    aligner = LinearAligner(Method.CENTRED_ROTATION, FEW)
    few = pairs["xx"].keep(np.arange(12))
    start = aligner.fit(noisy, [LinkedWords(few)], (0, 2))
    refined = refine_maps(start, aligner, {("en", "xx"): sides}, 10)

    def off(one: object, layer: int) -> float:
        (step,) = (s for s in one.maps[MapKey("xx", "en", layer)].steps if isinstance(s, Matrix))
        return float(np.abs(step.matrix - turns["xx"].T).max())

    for layer in (0, 2):
        assert off(start, layer) > 0.3 and off(refined, layer) < 0.05
    assert [told["layer"] for told in refined.about["refined"]["xx"]] == [0, 2]


def test_the_shrink_that_was_chosen_is_kept() -> None:
    encoder, pairs, _ = planted(types=100, sentences=200)
    text = pairs["xx"].bitext
    sides = Types.of_text(text.source), Types.of_text(text.target)
    aligner = LinearAligner(validate=True)
    aligned = aligner.fit(encoder, [LinkedWords(pairs["xx"])], (1,))
    refined = refine_maps(aligned, aligner, {("en", "xx"): sides}, 2)
    assert refined.about["shrink"] == aligned.about["shrink"]


@pytest.mark.parametrize("method", [Method.CENTRING, Method.STANDARDISE, Method.TOP_COMPONENTS])
def test_what_does_not_depend_on_pairs_is_not_refined(method: Method) -> None:
    encoder = tables()
    aligner = LinearAligner(method)
    aligned = aligner.fit(encoder, [DictionaryAnchors(dictionary(50), types(encoder))], (0,))
    with pytest.raises(BadSetting, match="does not depend on pairs"):
        refine_maps(aligned, aligner, {("en", "de"): types(encoder)}, 3)
