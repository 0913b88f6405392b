"""Linear alignment: planted maps are recovered, for one language and several, in either direction."""

from pathlib import Path

import numpy as np
import pytest

from calque.align.linear import LinearAligner, Spool, folds_of
from calque.align.sources import DictionaryAnchors, LinkedWords, SentencePairs, Together, linked
from calque.encoders.wordtypes import Types
from calque.errors import BadInput, BadSetting
from calque.geometry.shrinkage import SHRINKS
from calque.geometry.solvers import Method, SolverOptions
from calque.text.dictionaries import Dictionary
from calque.types import Encoder, MapKey, Matrix, PairBlock, WordPairs
from planted import PlantedEncoder, planted


def gap(encoder: Encoder, pairs: WordPairs, layer: int = 1) -> float:
    """Mean distance of linked words, relative to the spread of the vectors."""
    (block,) = LinkedWords(pairs).blocks(encoder, (layer,), "mean")
    return float(np.linalg.norm(block.source - block.target, axis=-1).mean() / block.source.std())


@pytest.mark.parametrize("moves", ["target", "source"])
def test_centred_rotation_recovers_a_planted_rotation(moves: str) -> None:
    encoder, pairs, turns = planted()
    aligner = LinearAligner(Method.CENTRED_ROTATION, moves=moves)
    aligned = aligner.fit(encoder, [LinkedWords(pairs["xx"])], (0, 2))
    held, moving = ("en", "xx") if moves == "target" else ("xx", "en")
    assert aligned.space == held and aligned.languages == {"en", "xx"}
    assert not aligned.maps[MapKey(held, held, 2)].steps
    (matrix,) = (s.matrix for s in aligned.maps[MapKey(moving, held, 2)].steps if isinstance(s, Matrix))
    truth = turns["xx"].T if moves == "target" else turns["xx"]
    assert np.abs(matrix - truth).max() < 1e-6
    assert gap(encoder, pairs["xx"], 2) > 1
    assert gap(aligned, pairs["xx"], 2) < 1e-5


TRAINING_FREE = {Method.CENTRING, Method.STANDARDISE, Method.TOP_COMPONENTS}


@pytest.mark.parametrize("method", sorted(set(Method) - TRAINING_FREE))
def test_every_method_that_learns_brings_translations_closer(method: Method) -> None:
    encoder, pairs, _ = planted()
    options = SolverOptions(steps=1500, learning_rate=1e-2, batch=64)
    aligned = LinearAligner(method, options).fit(encoder, [LinkedWords(pairs["xx"])], (1,))
    assert gap(aligned, pairs["xx"]) < 0.75 * gap(encoder, pairs["xx"])


@pytest.mark.parametrize("method", sorted(TRAINING_FREE))
def test_methods_without_training_give_both_languages_one_mean(method: Method) -> None:
    encoder, pairs, _ = planted()
    aligned = LinearAligner(method).fit(encoder, [LinkedWords(pairs["xx"])], (1,))
    for one, met in ((encoder, False), (aligned, True)):
        (block,) = LinkedWords(pairs["xx"]).blocks(one, (1,), "mean")
        assert bool(np.abs(block.source.mean(1) - block.target.mean(1)).max() < 1e-4) == met


@pytest.mark.parametrize("method", [Method.CENTRED_ROTATION, Method.ITERATIVE_NORMALISATION, Method.CENTRING])
def test_several_languages_meet_in_the_space_of_one(method: Method) -> None:
    encoder, pairs, _ = planted(("en", "xx", "yy"))
    sources = [LinkedWords(pairs["xx"]), LinkedWords(pairs["yy"])]
    aligned = LinearAligner(method).fit(encoder, sources, (1,))
    assert aligned.languages == {"en", "xx", "yy"}
    if method is Method.CENTRING:
        every = [
            np.concatenate([b.source[0] for source in sources for b in source.blocks(aligned, (1,), "mean")])
        ]
        assert np.abs(np.concatenate(every).mean(0)).max() < 1e-5
        return
    # Unit length bends what a shift has moved, so iterative normalisation cannot undo the planted map.
    share = 1e-5 if method is Method.CENTRED_ROTATION else 0.3
    for language in ("xx", "yy"):
        assert gap(aligned, pairs[language]) < share * gap(encoder, pairs[language])


def test_moving_the_source_gives_it_one_map_a_space() -> None:
    encoder, pairs, _ = planted(("en", "xx", "yy"))
    sources = [LinkedWords(pairs["xx"]), LinkedWords(pairs["yy"])]
    aligned = LinearAligner(Method.CENTRED_ROTATION, moves="source").fit(encoder, sources, (1,))
    for language in ("xx", "yy"):
        meeting = aligned.meeting(("en", language))
        assert meeting.space == language
        assert gap(meeting, pairs[language]) < 1e-5
    with pytest.raises(BadSetting, match="xx and yy meet"):
        aligned.meeting(("xx", "yy"))


def test_two_corpora_of_one_language_add_up() -> None:
    encoder, pairs, _ = planted()
    whole = pairs["xx"]
    half = [whole.sentences(np.arange(75)), whole.sentences(np.arange(75, 150))]
    both = LinearAligner().fit(encoder, [LinkedWords(part) for part in half], (1,))
    once = LinearAligner().fit(encoder, [LinkedWords(whole)], (1,))
    for mine, theirs in zip(both.maps.values(), once.maps.values(), strict=True):
        for a, b in zip(mine.steps, theirs.steps, strict=True):
            assert np.allclose(next(iter(vars(a).values())), next(iter(vars(b).values())), atol=1e-6)
    assert both.seen_by(("en", "xx")) == whole.types() == {(a, b) for b, a in both.seen_by(("xx", "en"))}


def test_held_languages_must_agree() -> None:
    encoder, pairs, _ = planted(("en", "xx", "yy"))
    turned = planted(("yy", "en"))[1]["en"]
    with pytest.raises(BadSetting, match="different languages: en, yy"):
        LinearAligner().fit(encoder, [LinkedWords(pairs["xx"]), LinkedWords(turned)], (1,))


def test_words_without_vectors_drop_their_links_and_nothing_shifts() -> None:
    encoder, pairs, _ = planted()
    lame = PlantedEncoder(encoder.tables, missing=frozenset({"en3", "xx5"}))
    source = LinkedWords(pairs["xx"])
    aligned = LinearAligner().fit(lame, [source], (1,))
    assert gap(aligned, pairs["xx"]) < 1e-5
    counts = source.coverage()
    ids = pairs["xx"].bitext.source.vocabulary.strings
    gone = sum(
        ids[a] == "en3" or ids[b] == "xx5"
        for a, b in zip(pairs["xx"].source_ids, pairs["xx"].target_ids, strict=True)
    )
    assert gone and counts["used"] == len(pairs["xx"]) - gone
    assert counts["unknown"] == gone


def test_a_dictionary_is_learned_from_anchors_with_its_coverage() -> None:
    encoder, pairs, turns = planted()
    entries = [(f"en{k}", f"xx{k}") for k in range(150)] + [("en1", "nowhere"), ("nowhere", "xx1")]
    sides = Types.of_text(pairs["xx"].bitext.source), Types.of_text(pairs["xx"].bitext.target)
    source = DictionaryAnchors(Dictionary(tuple(entries)), sides)
    aligned = LinearAligner().fit(encoder, [source], (1,))
    (matrix,) = (s.matrix for s in aligned.maps[MapKey("xx", "en", 1)].steps if isinstance(s, Matrix))
    assert np.abs(matrix - turns["xx"].T).max() < 1e-4
    assert source.coverage()["source word not in the corpus"] >= 1
    assert source.coverage()["used"] <= 150
    with pytest.raises(BadInput, match="none of the 1 dictionary entries"):
        LinearAligner().fit(encoder, [DictionaryAnchors(Dictionary((("q", "q"),)), sides)], (1,))


def test_sentences_recover_the_rotation_too() -> None:
    encoder, pairs, turns = planted()
    aligned = LinearAligner().fit(encoder, [SentencePairs(pairs["xx"].bitext)], (1,))
    (matrix,) = (s.matrix for s in aligned.maps[MapKey("xx", "en", 1)].steps if isinstance(s, Matrix))
    assert np.abs(matrix - turns["xx"].T).max() < 1e-4


def test_too_few_pairs_are_refused_or_shrunk() -> None:
    encoder, pairs, _ = planted()
    few = pairs["xx"].keep(np.arange(5))
    with pytest.raises(BadSetting, match=r"5 pairs .* 16 dimensions"):
        LinearAligner().fit(encoder, [LinkedWords(few)], (1,))
    aligned = LinearAligner(options=SolverOptions(shrink=0.2)).fit(encoder, [LinkedWords(few)], (1,))
    assert np.isfinite(gap(aligned, pairs["xx"]))


def test_one_pass_over_the_text_for_closed_forms() -> None:
    encoder, pairs, _ = planted()
    LinearAligner(Method.CENTRED_ROTATION).fit(encoder, [LinkedWords(pairs["xx"])], (0, 1, 2))
    assert encoder.calls == ["en", "xx"]
    encoder.calls.clear()
    LinearAligner(Method.ITERATIVE_NORMALISATION).fit(encoder, [LinkedWords(pairs["xx"])], (0, 1, 2))
    assert encoder.calls == ["en", "xx"], "several passes go over the spool, not the encoder"


def test_what_is_too_large_for_half_precision_is_spooled_as_it_is(tmp_path: Path) -> None:
    small, large = (np.full((1, 3, 2), value, np.float32) for value in (0.1, 1e5))
    blocks = [PairBlock(("en", "xx"), one, one, np.arange(3)) for one in (small, large)]
    first, second = Spool(tmp_path / "spool", iter(blocks)).stream(0)()
    assert np.array_equal(first[0], small[0].astype(np.float16))
    assert np.array_equal(second[1], large[0])


def test_linked_tokens_choose_words_specials_or_both() -> None:
    _, pairs, _ = planted()
    assert isinstance(linked(pairs["xx"], "all"), Together)
    assert linked(pairs["xx"], "words").fingerprint != linked(pairs["xx"], "cls").fingerprint


def test_shrink_is_chosen_for_each_language_and_layer_by_sentences() -> None:
    encoder, pairs, _ = planted()
    few = pairs["xx"].sentences(np.arange(40))
    aligned = LinearAligner(validate=True).fit(encoder, [LinkedWords(few)], (0, 1))
    chosen = aligned.about["shrink"]["xx"]
    assert len(chosen) == 2 and set(chosen) <= set(SHRINKS)
    by_hand = LinearAligner(options=SolverOptions(shrink=chosen[1])).fit(encoder, [LinkedWords(few)], (1,))
    steps = zip(
        aligned.maps[MapKey("xx", "en", 1)].steps, by_hand.maps[MapKey("xx", "en", 1)].steps, strict=True
    )
    for ours, theirs in steps:
        np.testing.assert_allclose(ours.apply(np.eye(16)), theirs.apply(np.eye(16)), atol=1e-5)
    with pytest.raises(BadSetting, match="shrink auto is not for centring"):
        LinearAligner(Method.CENTRING, validate=True)


def test_no_sentence_is_in_two_folds() -> None:
    groups = np.sort(np.random.default_rng(0).integers(0, 30, 200))
    folds = folds_of(groups, 4)
    assert set(folds) == {0, 1, 2, 3}
    assert all(len(set(folds[groups == group])) == 1 for group in groups)
