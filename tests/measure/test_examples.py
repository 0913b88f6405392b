import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from calque.links.filters import one_to_one
from calque.measure.examples import (
    BY_HAND,
    BY_MACHINE,
    OCCURRENCES,
    Finds,
    ambiguous,
    commonest,
    entropy,
    same_word,
    senses,
    turned,
)
from calque.text.world import far, world_pairs
from calque.types import Bitext, WordPairs

SENTENCES = [
    ("The bank lends money", "Die Bank leiht Geld"),
    ("the river bank is green", "das Ufer ist grün"),
    ("the banks lend money", "die Banken leihen Geld"),
    ("a green house", "ein grünes Haus"),
    ("the house is new", "das Haus ist neu"),
    ("the order is new", "der Befehl ist neu"),
    ("an Order of money", "eine Bestellung von Geld"),
]
SENTENCES = [(f"{a} , , , , ,", b) for a, b in SENTENCES]  # the commonest word is none of the others
LINKS = "1-1 2-2 3-3|2-1 4-3|2-2 3-3|1-1 2-2|1-1 3-3|1-1 3-3|1-1 3-3"


def linked(sentences=SENTENCES, links: str = LINKS, languages=("en", "de")) -> WordPairs:
    source, target = ([side.split() for side in sides] for sides in zip(*sentences, strict=True))
    rows = [
        (k, *map(int, link.split("-"))) for k, line in enumerate(links.split("|")) for link in line.split()
    ]
    return WordPairs.of(Bitext.of(languages, source, target), *np.array(rows).T)


def finds(pairs: WordPairs, **wrong: int) -> Finds:
    """Every encoder finds the right word, but for one link each, where it finds the corpus' first word."""
    right = Finds(pairs, {}).right
    found = {}
    for label, link in {"base": -1, **wrong}.items():
        rows = right.copy()
        if link >= 0:
            rows[link] = 0
        found[label, 3] = rows
    return Finds(pairs, found)


def test_words_with_several_translations_are_found_and_inflections_are_not() -> None:
    held = {one.word: one for one in ambiguous(linked())}
    assert set(held) == {"bank", "order"}, "green has grün and grünes, money only Geld"
    assert held["bank"].counts == held["order"].counts == (1, 1)


def test_the_types_are_those_of_brute_force() -> None:
    """A random text with a planted dictionary, entropies counted by hand."""
    rng = np.random.default_rng(0)
    letters = "bcdfghklmnprstvwz"
    senses_of = {f"w{k}": [letters[k] * 5, letters[-k - 1] * 5 + "ung"][: 1 + k % 2] for k in range(8)}
    drawn = [(w, senses_of[w][rng.integers(len(senses_of[w]))]) for w in rng.choice(list(senses_of), 60)]
    filler = " ".join(["the"] * 3)
    pairs = linked([(f"{filler} {a}", f"x y z {b}") for a, b in drawn], "|".join(["3-3"] * 60))
    counts = {w: Counter(b for a, b in drawn if a == w) for w in senses_of}
    expected = {}
    for word, held in counts.items():
        if len(held) > 1:
            shares = np.array(list(held.values())) / held.total()
            expected[word] = -(shares * np.log2(shares)).sum()
    found = {one.word: one for one in ambiguous(pairs)}
    assert {w: entropy(one.counts) for w, one in found.items()} == pytest.approx(expected)
    for word, one in found.items():
        assert sorted(map(len, one.links)) == sorted(counts[word].values())


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("haus", "häuser", True), ("берегу", "берег", True), ("sehen", "gesehen", True),
        ("casa", "casas", True), ("घर", "घरों", True), ("银行", "银行家", True),
        ("冷", "寒冷", True), ("кухне", "кухонном", True), ("spielte", "gespielt", True),
        ("stern", "star", False),
        ("bank", "ufer", False), ("банк", "берег", False), ("银行", "河岸", False),
        ("muelle", "primavera", False),
    ],
)  # fmt: skip
def test_forms_of_one_word_are_one_translation(a: str, b: str, same: bool) -> None:
    assert same_word(a, b) is same_word(b, a) is same


def edits(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(edits(a[1:], b) + 1, edits(a, b[1:]) + 1, edits(a[1:], b[1:]) + (a[0] != b[0]))


@given(st.text("abc", min_size=1, max_size=6), st.text("abc", min_size=1, max_size=6))
@settings(deadline=None)
def test_the_rule_is_what_it_says(a: str, b: str) -> None:
    longer, shorter = max(len(a), len(b)), min(len(a), len(b))
    shared = next((k for k in range(longer) if a[k : k + 1] != b[k : k + 1]), longer)
    begins = shared >= 3 and shared >= shorter / 2
    runs = {a[i:j] for i in range(len(a)) for j in range(i + 4, len(a) + 1)}
    run = max((len(one) for one in runs if one in b), default=0) >= max(4, 3 * shorter / 4)
    assert same_word(a, b) == (a in b or b in a or begins or run or edits(a, b) <= longer / 3)


def test_the_commonest_words_are_left_aside() -> None:
    counts = np.array([2, 50, 20, *[1] * 28])
    assert np.flatnonzero(commonest(counts, 0.45)).tolist() == [1]
    assert np.flatnonzero(commonest(counts, 0.6)).tolist() == [1, 2]
    several = [("the the bank", "der x"), ("the the bank", "die x"), ("the the bank", "das x")]
    assert not ambiguous(linked(several, "0-0|0-0|0-0"))


def test_translations_that_another_word_has_too_are_one_sense() -> None:
    """`attack` and `assault` are both Angriff and Anschlag; only `flat` is both eben and Wohnung."""
    text = [("attack", "Angriff"), ("attack", "Anschlag"), ("assault", "Angriff")]
    text += [
        ("assaults", "Anschlag"),
        ("flat", "eben"),
        ("flat", "Wohnung"),
        ("home", "Wohnung"),
        ("even", "eben"),
    ]
    text = [(f"x x x {a}", f"y {b}") for a, b in text]
    assert [one.word for one in ambiguous(linked(text, "|".join(["3-1"] * len(text))))] == ["flat"]


def machine_linked(drawn: list[tuple[str, str]]) -> WordPairs:
    """Each pair linked in a sentence of its own, in a text that holds other words as well."""
    rng = np.random.default_rng(1)
    others = [f"w{k}" for k in rng.integers(0, 300, 1500)]
    text = [(f"the the {a}", f"x {b}") for a, b in [*drawn, *((w, f"v{w}") for w in others)]]
    pairs = linked(text, "|".join(["2-1"] * len(text)))
    return replace(pairs, linker="eflomal/intersection/training")


def test_a_machine_must_link_twice_and_beyond_chance() -> None:
    common = [(f"w{k}", "stuff") for k in range(200)]
    drawn = [("bank", "Ufer")] * 3 + [("bank", "Sparkasse")] * 2
    drawn += [("order", "Befehl")] * 4 + [("order", "Irrtum")]
    drawn += [("light", "hell")] * 4 + [("light", "stuff")] * 2
    found = ambiguous(machine_linked([*drawn, *common]))
    assert [one.word for one in found] == ["bank"], "Irrtum comes once, stuff goes with everything"
    assert sorted(map(len, found[0].links)) == [2, 3]
    by_hand = ambiguous(machine_linked([*drawn, *common]), BY_HAND)
    assert {"bank", "order", "light"} <= {one.word for one in by_hand}


def test_the_rule_for_machines_is_that_of_brute_force() -> None:
    rng = np.random.default_rng(3)
    source, target = rng.integers(0, 12, 900), rng.integers(0, 20, 900)
    target = np.where(rng.random(900) < 0.7, source * 2 % 20, target)
    letters = "abcdefghijklmnopqrst"
    drawn = [(letters[a] * 3 + "q", letters[b] * 6) for a, b in zip(source, target, strict=True)]
    pairs = machine_linked(drawn)
    counts, total = Counter(drawn), len(pairs)
    for one in ambiguous(pairs, replace(BY_MACHINE, common=0.0)):
        told = {pairs.bitext.target.word(int(pairs.sentence[k]), 1) for part in one.links for k in part}
        if not one.word.endswith("q"):
            continue
        for word in {b for _, b in drawn}:
            k = counts[one.word, word]
            a = sum(n for (first, _), n in counts.items() if first == one.word)
            b = sum(n for (_, second), n in counts.items() if second == word)
            table = [[k, a - k], [b - k, total - a - b + k]]
            strong = k > a * b / total and chi2_contingency(table, False, "log-likelihood").statistic > 10.83
            assert (word in told) == (k >= 2 and k >= 0.1 * max(a, b) and strong)


def test_translations_that_keep_the_same_company_are_one_sense() -> None:
    """Details and Einzelheiten stand among the same words, Feder and Frühling do not."""
    rng = np.random.default_rng(0)
    around = {"Details": 0, "Einzelheiten": 0, "Feder": 1, "Frühling": 2}
    means = {"Details": "detail", "Einzelheiten": "detail", "Feder": "spring", "Frühling": "spring"}
    text = []
    for turn in range(40):
        for word, topic in {**around, **{f"other{k}": k for k in range(3, 30)}}.items():
            names = [f"{'abcdefghijklmnopqrstuvwxyzäöüß'[topic]}{k}" for k in rng.integers(0, 12, 4)]
            english = f"the the the the {means.get(word, f'x{topic}y{turn}')}"
            text.append((english, " ".join([*names[:2], word, *names[2:]])))
    pairs = replace(linked(text, "|".join(["4-2"] * len(text))), linker="eflomal/intersection")
    assert [one.word for one in ambiguous(pairs)] == ["spring"]
    both = ambiguous(pairs, replace(BY_MACHINE, company=1.0))
    assert sorted(one.word for one in both) == ["detail", "spring"]


def test_senses_of_the_world_are_lemmas_of_the_world() -> None:
    """Its text tells word forms only; what is found must be different lemmas, and one lemma a sense."""
    pairs = replace(one_to_one(world_pairs(3000, ("en", "far"))), linker="eflomal/intersection")
    stems = {stem: lemma for lemma, stem in far.stems().items()}

    def lemma(link: int) -> object:
        word = pairs.bitext.target.word(int(pairs.sentence[link]), int(pairs.target[link]))
        return next((stems[word[:n]] for n in range(len(word), 0, -1) if word[:n] in stems), word)

    found = ambiguous(pairs)
    assert len(found) > 15 and {"light", "match", "ran", "note"} <= {one.word for one in found}
    for one in found:
        lemmas = [{lemma(link) for link in sense} for sense in one.links]
        assert all(len(sense) == 1 for sense in lemmas), one.word
        assert len(set.union(*lemmas)) == len(lemmas), one.word


def test_links_turned_twice_are_the_links() -> None:
    pairs = linked()
    there = turned(pairs)
    back = turned(there.pairs)
    assert there.pairs.languages == ("de", "en") and there.pairs.types() == {(b, a) for a, b in pairs.types()}
    for name in ("sentence", "source", "target"):
        assert getattr(back.pairs, name).tolist() == getattr(pairs, name).tolist()
    assert pairs.target[there.row].tolist() == there.pairs.source.tolist()


def test_types_on_which_encoders_differ_come_first_then_those_all_get_right() -> None:
    pairs = linked()
    words = [w.lower() for w in map(pairs.bitext.source.word, pairs.sentence, pairs.source)]
    bank, order = words.index("bank"), words.index("order")

    def ranked(**wrong: int) -> list[str]:
        return [one["word"] for one in senses([finds(pairs, **wrong)], 3)]

    assert ranked(after=order) == ["order", "bank"]
    assert ranked(after=bank) == ["bank", "order"]
    assert ranked() == ["bank", "order"], "by the alphabet when nothing else tells them apart"
    assert ranked(base=bank, after=bank) == ["order", "bank"], "both wrong comes last"


def test_records_say_what_was_found_where() -> None:
    pairs = linked()
    link = next(k for k in range(len(pairs)) if pairs.sentence[k] == 1 and pairs.source[k] == 2)
    (bank, _) = senses([finds(pairs, after=link)], 3)
    assert (bank["languages"], bank["layer"], bank["count"]) == (["en", "de"], 3, 2)
    first, second = bank["occurrences"]
    assert {first["gold"]["word"], second["gold"]["word"]} == {"Bank", "Ufer"}
    river = next(one for one in bank["occurrences"] if one["gold"]["word"] == "Ufer")
    assert river["sentence"] == SENTENCES[1][0].split() and river["sentence"][river["index"]] == "bank"
    assert river["retrieved"]["base"]["hit"] and river["retrieved"]["base"]["word"] == "Ufer"
    wrong = river["retrieved"]["after"]
    assert (wrong["hit"], wrong["word"], wrong["index"]) == (False, "Die", 0)
    assert wrong["sentence"] == SENTENCES[0][1].split()


def test_a_word_that_is_ambiguous_in_more_languages_comes_first() -> None:
    other = linked([(a, b.replace("Bank", "Ufer")) for a, b in SENTENCES], languages=("en", "nl"))
    told = senses([finds(linked()), finds(other)], 3)
    assert [(one["word"], one["languages"][1]) for one in told] == [
        ("order", "de"),
        ("order", "nl"),
        ("bank", "de"),
    ]


def test_number_and_size_are_bounded() -> None:
    long = " ".join(["pad"] * 300)
    names = [f"{x}{y}{y}{x}{y}{x}" for x in "abcdefgh" for y in "stuvw"]
    kinds = [(f"w{k}", other) for k, name in enumerate(names) for other in (name, name[::-1] + "ung") * 5]
    held = [(f"{long} {a} {long}", f"{long} {b} {long}") for a, b in kinds]
    told = senses([finds(linked(held, "|".join(["300-300"] * len(held))))], 3)
    assert len(told) == 24
    for one in told:
        assert len(one["occurrences"]) == OCCURRENCES
        assert len({o["gold"]["word"] for o in one["occurrences"]}) == 2
        for o in one["occurrences"]:
            assert o["sentence"][o["index"]] == one["word"] and len(o["sentence"]) <= 43
    assert len(json.dumps(told)) < 200_000


def test_the_same_twice() -> None:
    assert senses([finds(linked(), after=2)], 3) == senses([finds(linked(), after=2)], 3)


def test_every_source_language_has_its_own_words() -> None:
    turned = linked(languages=("fr", "de"))
    told = senses([finds(linked()), finds(turned)], 3, types=1)
    assert [one["languages"][0] for one in told] == ["en", "fr"]
