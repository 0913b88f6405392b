"""Breakdowns: bins by hand, bins that add up to the whole, groups as plain means of their tags."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny_encoders
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.encoders.static import StaticEncoder, WordTable
from calque.errors import BadSetting
from calque.measure.breakdown import (
    BREAKDOWNS,
    DIRECTIONS,
    LENGTHS,
    POS_GROUPS,
    Bins,
    Linked,
    bin_links,
    bin_scores,
    has_pieces,
    piece_counts,
    sentence_bins,
    stepped,
)
from calque.text.frequency import frequencies
from calque.text.world import LANGUAGES, generate, world_pairs
from calque.types import UPOS, Bitext, Vocabulary, WordPairs

EN = [["Anna", "sees", "the", "cat"], ["the", "cat", "sleeps"]]
RU = [["Анна", "видит", "кошку", "BMW"], ["кошка", "спит", "!"]]
EN_TAGS = ["PROPN", "VERB", "DET", "NOUN", "DET", "NOUN", "VERB"]
RU_TAGS = ["PROPN", "VERB", "NOUN", "X", "NOUN", "NOUN", "PUNCT"]
GAPS = {
    0: "0-9",
    9: "0-9",
    10: "10-99",
    99: "10-99",
    100: "100-999",
    999: "100-999",
    1000: "1000-9999",
    10000: "10000+",
}


def tags(names: list[str]) -> np.ndarray:
    return np.array([UPOS.index(name) for name in names], np.uint8)


@pytest.fixture
def pairs() -> WordPairs:
    """Anna-Анна, sees-видит, cat-кошку, cat-BMW; cat-кошка, sleeps-спит."""
    bitext = Bitext.of(("en", "ru"), EN, RU, tags=(tags(EN_TAGS), tags(RU_TAGS)))
    return WordPairs.of(bitext, [0, 0, 0, 0, 1, 1], [0, 1, 3, 3, 1, 2], [0, 1, 2, 3, 0, 1])


@pytest.fixture
def linked(pairs: WordPairs) -> Linked:
    return Linked(pairs, np.array([1, 0, 0, 0, 1, 0], bool))


def labels(bins: Bins) -> list[list[str]]:
    return [[bins.names[i] for i in row] for row in bins.code]


def test_pos_is_that_of_the_query(linked: Linked) -> None:
    forward, backward = labels(BREAKDOWNS["pos"](linked))
    assert forward == ["PROPN", "VERB", "NOUN", "NOUN", "NOUN", "VERB"]
    assert backward == ["PROPN", "VERB", "NOUN", "X", "NOUN", "NOUN"]


def test_script_is_that_of_the_target_word(linked: Linked) -> None:
    expected = ["Cyrillic", "Cyrillic", "Cyrillic", "Latin", "Cyrillic", "Cyrillic"]
    assert labels(BREAKDOWNS["script"](linked)) == [expected, expected]


def test_seen_is_as_told(linked: Linked) -> None:
    expected = ["seen", "unseen", "unseen", "unseen", "seen", "unseen"]
    assert labels(BREAKDOWNS["seen"](linked)) == [expected, expected]


def test_rank_gap_is_in_powers_of_ten() -> None:
    # All words occur once, so ranks follow the order of first appearance.
    words, others = ([f"{letter}{i}" for i in range(20001)] for letter in "ab")
    pairs = WordPairs.of(Bitext.of(("en", "de"), [words], [others]), [0] * 8, [0] * 8, list(GAPS))
    assert labels(BREAKDOWNS["rank-gap"](Linked(pairs, np.zeros(8, bool))))[0] == list(GAPS.values())


def test_ranks_may_come_from_a_larger_corpus(pairs: WordPairs) -> None:
    bitext = pairs.bitext
    elsewhere = frequencies(bitext.source.select([0])), frequencies(bitext.target)
    found = labels(BREAKDOWNS["rank-gap"](Linked(pairs, np.zeros(6, bool), elsewhere)))[0]
    assert found == ["0-9", "0-9", "0-9", "0-9", "0-9", "unranked"], "sleeps does not occur there"


def test_groups_are_plain_means_of_their_tags(linked: Linked, pairs: WordPairs) -> None:
    hits = np.array([[1, 1, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0]], bool)
    scores = bin_scores("pos", BREAKDOWNS["pos"](linked), [0], hits, pairs.sentence.astype(int))
    told = {score.group: (score.value, score.count) for score in scores}
    assert told["pos", "NOUN"] == (pytest.approx(1 / 3), 3) and told["pos", "VERB"] == (0.5, 2)
    assert told["pos-group", "open"] == (pytest.approx((1 / 3 + 1 / 2) / 2), 5)
    assert told["pos-group", "lexical"] == (1.0, 1)
    assert ("pos-group", "closed") not in told, "no query of these tags"


def test_two_conjunctions_are_one_member() -> None:
    code = np.array([[UPOS.index(name) for name in ("CCONJ", "SCONJ", "SCONJ", "DET")]] * 2)
    hits = np.array([[1, 1, 0, 0]] * 2, bool)
    scores = bin_scores("pos", Bins(UPOS, code, POS_GROUPS), [0, 1], hits, np.arange(4))
    closed = [score for score in scores if score.group == ("pos-group", "closed")]
    assert closed[0].value == pytest.approx((2 / 3 + 0) / 2) and closed[0].count == 8


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_bins_add_up_to_the_whole(data: st.DataObject) -> None:
    links = data.draw(st.integers(1, 60))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    names = tuple("abcde")
    bins = Bins(names, rng.integers(0, 5, (2, links)), {"vowels": ("a", "e"), "rest": ("b c", "d")})
    hits, cluster = rng.random((2, links)) < 0.4, np.sort(rng.integers(0, 9, links))
    for direction, rows in (("forward", [0]), ("backward", [1]), ("both", [0, 1])):
        scores = {s.group: s for s in bin_scores("x", bins, DIRECTIONS[direction], hits, cluster, rounds=20)}
        own = [s for (kind, _), s in scores.items() if kind == "x"]
        assert sum(s.count for s in own) == len(rows) * links
        assert sum(s.count * s.value for s in own) == pytest.approx(hits[rows].sum())
        assert all(0 <= s.low <= s.high <= 1 for s in scores.values())
        for (_, name), s in scores.items():
            if name in names:
                assert s.value == pytest.approx(hits[rows][bins.code[rows] == names.index(name)].mean())
        means = [scores["x", name].value for name in "ae" if ("x", name) in scores]
        if means:
            assert scores["x-group", "vowels"].value == pytest.approx(np.mean(means))


def test_interval_resamples_sentences() -> None:
    """Equal hits within a sentence: the spread is that of the sentences' own values, not of the words."""
    rng = np.random.default_rng(0)
    cluster = np.sort(rng.integers(0, 30, 200))
    hits = np.tile((rng.random(30) < 0.5)[cluster], (2, 1))
    code = np.stack([rng.integers(0, 2, 200), rng.integers(0, 2, 200)])
    for direction, rows in (("forward", [0]), ("both", [0, 1])):
        told = bin_scores("x", Bins(("a", "b"), code), DIRECTIONS[direction], hits, cluster, rounds=4000)
        for which, score in enumerate(told):
            means = []
            for _ in range(2000):
                drawn = np.bincount(rng.integers(0, 30, 30), minlength=30)[cluster] * (code[rows] == which)
                means.append((drawn * hits[rows]).sum() / drawn.sum())
            assert (score.low, score.high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.03)
            assert score.high - score.low > 0.25


def test_keeping_links_keeps_their_bins(linked: Linked) -> None:
    bins = BREAKDOWNS["pos"](linked)
    assert labels(bins.keep(np.array([0, 3]))) == [["PROPN", "NOUN"], ["PROPN", "X"]]


def test_mistakes_are_explained(pairs: WordPairs) -> None:
    bare = WordPairs.of(Bitext.of(("en", "ru"), EN, RU), pairs.sentence, pairs.source, pairs.target)
    with pytest.raises(BadSetting, match=r"the en side of these pairs carries no tags .*CoNLL-U"):
        bin_links(["pos"], Linked(bare, np.zeros(6, bool)))
    with pytest.raises(BadSetting, match=r"unknown breakdown 'scripts' .*did you mean script"):
        bin_links(["scripts"], Linked(bare, np.zeros(6, bool)))
    with pytest.raises(
        BadSetting, match=r"no breakdown by pieces: the first encoder has vectors of whole words"
    ):
        bin_links(["pieces"], Linked(bare, np.zeros(6, bool)))
    with pytest.raises(BadSetting, match=r"en and ru do not tell which sense is meant .*far or near"):
        bin_links(["sense"], Linked(bare, np.zeros(6, bool)))
    nothing = Linked(pairs.keep(np.zeros(6, bool)), np.zeros(0, bool), pieces=np.ones(99, np.int64))
    possible = [name for name in BREAKDOWNS if name != "sense"]
    assert all(bins.code.shape == (2, 0) for bins in bin_links(possible, nothing).values())


# ------------------------------------------------------------------------------------- pieces and senses


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert"])
def test_pieces_are_those_of_the_tokenizer(family: str) -> None:
    encoder = tiny_encoders.build(family)
    source, target = ["The cat lachten kitten", "a"], ["Die Katze lachten", "Straßenkehrer isn't"]
    bitext = Bitext.of(("en", "de"), [x.split() for x in source], [x.split() for x in target])
    counts = piece_counts(encoder, bitext, chunk=3)
    for word, count in zip(bitext.source.vocabulary, counts, strict=True):
        space = " " if family == "modernbert" else ""
        pieces = encoder.tokenizer.tokenize(space + word)
        assert count == len(pieces) - (pieces[0] in "▁Ġ"), word
    pairs = WordPairs.of(bitext, [0, 0, 0, 1], [0, 1, 2, 0], [0, 1, 2, 0])
    bins = BREAKDOWNS["pieces"](Linked(pairs, np.zeros(4, bool), pieces=counts))
    assert bins.names == ("1", "2", "3", "4+")
    for row, ids in zip(bins.code, (pairs.source_ids, pairs.target_ids), strict=True):
        assert row.tolist() == [min(counts[i], 4) - 1 for i in ids], "each direction by its own word"


def test_static_vectors_have_no_pieces() -> None:
    table = WordTable(Vocabulary.of(["cat"]), np.ones((1, 4), np.float32))
    encoder = StaticEncoder({"en": table, "ru": table})
    bitext = Bitext.of(("en", "ru"), EN, RU)
    assert not has_pieces(encoder, bitext.source) and piece_counts(encoder, bitext) is None


@pytest.mark.parametrize("languages", [("en", "far"), ("near", "en"), ("near", "far")])
def test_senses_are_those_that_the_world_meant(languages: tuple[str, str]) -> None:
    """The world says which sense it meant; the breakdown sees only the words."""
    order = tuple(sorted(languages, key=LANGUAGES.index))
    drawn = list(generate(300, seed=3, languages=order))
    pairs = world_pairs(300, order, seed=3)
    if order != languages:
        turned = replace(pairs.bitext, source=pairs.bitext.target, target=pairs.bitext.source)
        pairs = WordPairs.of(turned, pairs.sentence, pairs.target, pairs.source)
    bins = BREAKDOWNS["sense"](Linked(pairs, np.zeros(len(pairs), bool)))
    told = languages[1] if languages[1] in ("near", "far") else languages[0]
    place = pairs.target if told == languages[1] else pairs.source
    meant = [
        drawn[s].sides[told].senses[w] or "unambiguous"
        for s, w in zip(pairs.sentence.tolist(), place.tolist(), strict=True)
    ]
    assert labels(bins) == [meant, meant] and len(set(meant)) > 20
    scores = bin_scores("sense", bins, [0], np.ones((2, len(pairs)), bool), pairs.sentence.astype(int))
    counts = {score.group: score.count for score in scores}
    assert counts["sense-group", "ambiguous"] == sum(name != "unambiguous" for name in meant)
    assert counts["sense-group", "unambiguous"] == counts["sense", "unambiguous"]


@given(st.lists(st.integers(1, 60), min_size=1))
def test_steps_are_what_their_names_say(values: list[int]) -> None:
    code = stepped(np.array(values), LENGTHS)
    for value, name in zip(values, np.array(list(LENGTHS))[code], strict=True):
        low, _, high = name.rstrip("+").partition("-")
        assert int(low) <= value <= int(high or 10**9)


def test_sentences_are_binned_by_the_length_of_the_query() -> None:
    bitext = Bitext.of(("en", "de"), [["a"] * 5, ["a"] * 6], [["b"] * 50, ["b"]])
    assert labels(sentence_bins(bitext)["length"]) == [["1-5", "6-10"], ["41+", "1-5"]]
