"""What the world promises: size, variety, English, trees, tags, links, and how hard it is."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from calque.errors import BadSetting
from calque.text.world import CONSTRUCTIONS, LANGUAGES, WorldSentence, WorldSide, generate, world_pairs
from calque.text.world import near as near_language
from calque.text.world.lexicon import lexicon
from calque.types import UPOS, WordPairs

#: The 37 relations of Universal Dependencies.
RELATIONS = {
    "acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj", "cop",
    "csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj", "list",
    "mark", "nmod", "nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum", "root",
    "vocative", "xcomp",
}  # fmt: skip


@pytest.fixture(scope="module")
def crowd() -> list[WorldSentence]:
    """Many English sentences."""
    return list(generate(20_000, seed=1, languages=("en",)))


@pytest.fixture(scope="module")
def drawn() -> list[WorldSentence]:
    """Sentences in all three languages."""
    return list(generate(5_000, seed=2))


def english(sentences: list[WorldSentence]) -> list[WorldSide]:
    return [sentence.sides["en"] for sentence in sentences]


# ----------------------------------------------------------------------------------- size and variety


def test_at_least_800_lemmas_of_which_nearly_all_occur(crowd: list[WorldSentence]) -> None:
    content = {
        lemma.text for lemma in lexicon().lemmas.values() if lemma.upos in ("NOUN", "VERB", "ADJ", "ADV")
    }
    assert len(content) >= 800
    seen = {word.casefold() for side in english(crowd) for word in side.words}
    assert len(content & seen) > 0.9 * len(content)


def test_at_least_40_constructions_all_used(crowd: list[WorldSentence]) -> None:
    counts = Counter(sentence.construction for sentence in crowd)
    assert len(CONSTRUCTIONS) >= 40
    assert set(counts) == set(CONSTRUCTIONS)
    assert min(counts.values()) >= 50


def test_intents_go_with_slots(crowd: list[WorldSentence]) -> None:
    assert len({sentence.intent for sentence in crowd} - {""}) >= 10
    for sentence in crowd:
        assert bool(sentence.intent) == any(tag != "O" for tag in sentence.sides["en"].slots)


def test_length_and_repeats(crowd: list[WorldSentence]) -> None:
    texts = [" ".join(side.words) for side in english(crowd)]
    assert np.mean([text.count(" ") + 1 for text in texts]) >= 9
    assert 1 - len(set(texts)) / len(texts) < 0.02


def test_frequencies_follow_zipf(crowd: list[WorldSentence]) -> None:
    counts = Counter(word for side in english(crowd) for word in side.words)
    top = np.array([count for _, count in counts.most_common(1000)])
    slope = np.polyfit(np.log(np.arange(1, 1001)), np.log(top), 1)[0]
    assert -1.4 < slope < -0.7


def test_a_word_is_drawn_by_its_rank_in_its_class(crowd: list[WorldSentence]) -> None:
    counts = Counter(word for side in english(crowd) for word in side.words)
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    shares = np.array([counts[day] * rank for rank, day in enumerate(days, 1)])
    assert (np.abs(shares / shares.mean() - 1) < 0.2).all()


# -------------------------------------------------------------------------------------------- English


def test_an_stands_before_vowels_and_only_there(crowd: list[WorldSentence]) -> None:
    vowel = re.compile(r"(?!uni|use|eu)[aeiou]|hour|honest")
    for side in english(crowd):
        for first, second in pairwise(side.words):
            if first in ("a", "A", "an", "An"):
                assert (first.lower() == "an") == bool(vowel.match(second)), f"{first} {second}"


ONE = {"a", "an", "this", "that", "every", "each"}
MANY = {"these", "those", "several", "many", "few", "both", "all", "two", "three", "four", "five"}
IS, ARE = {"is", "was", "has", "does"}, {"are", "were", "have", "do"}


def counted_nouns(sides: list[WorldSide]) -> Iterator[tuple[WorldSide, int, bool]]:
    """Common nouns whose determiner tells their number, and whether they are many."""
    for side in sides:
        for at, word in enumerate(side.words):
            noun, told = side.heads[at] - 1, word.lower() in ONE | MANY
            if told and side.labels[at] in ("det", "nummod") and side.upos[noun] == "NOUN":
                yield side, noun, word.lower() in MANY


def test_english_nouns_agree_with_their_determiners(crowd: list[WorldSentence]) -> None:
    singular = {lemma.text for lemma in lexicon().lemmas.values() if lemma.upos == "NOUN"}
    same = {"sheep", "deer", "crossroads"}
    for side, noun, many in counted_nouns(english(crowd)):
        word = side.words[noun].lower()
        assert word in same or (word not in singular) == many, " ".join(side.words)


def test_english_verbs_agree_with_their_subjects(crowd: list[WorldSentence]) -> None:
    checked = 0
    for side, noun, many in counted_nouns(english(crowd)):
        alone = not any(
            h == noun + 1 and rel == "conj" for h, rel in zip(side.heads, side.labels, strict=True)
        )
        if side.labels[noun].startswith("nsubj") and alone:
            head = side.heads[noun]
            helpers = [
                word.lower()
                for word, h, rel in zip(side.words, side.heads, side.labels, strict=True)
                if h == head and rel in ("aux", "aux:pass", "cop")
            ]
            if helpers and helpers[0] in IS | ARE:
                checked += 1
                assert (helpers[0] in ARE) == many, " ".join(side.words)
    assert checked > 500


# ------------------------------------------------------------------------------------------ annotation


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_side_is_a_tree(drawn: list[WorldSentence], language: str) -> None:
    for sentence in drawn:
        side = sentence.sides[language]
        size = len(side.words)
        assert {len(field) for field in vars(side).values()} == {size}
        assert side.heads.count(0) == 1
        assert all(
            (head == 0) == (label == "root") for head, label in zip(side.heads, side.labels, strict=True)
        )
        assert all(reaches_root(side.heads, at) for at in range(1, size + 1))
        assert {label.split(":")[0] for label in side.labels} <= RELATIONS
        assert set(side.upos) <= set(UPOS[1:])


def reaches_root(heads: tuple[int, ...], at: int) -> bool:
    for _ in heads:
        at = heads[at - 1]
        if at == 0:
            return True
    return False


def spans(tags: tuple[str, ...]) -> list[str]:
    """Labels of BIO spans; an I- without its B- is an error."""
    found = []
    for before, tag in pairwise(("O", *tags)):
        assert tag == "O" or tag[:2] in ("B-", "I-")
        assert not tag.startswith("I-") or before[2:] == tag[2:]
        if tag.startswith("B-"):
            found.append(tag[2:])
    return sorted(found)


def test_entities_and_slots_are_the_same_in_every_language(drawn: list[WorldSentence]) -> None:
    met: Counter[str] = Counter()
    for sentence in drawn:
        for field in ("entities", "slots"):
            told = [spans(getattr(side, field)) for side in sentence.sides.values()]
            assert told[0] == told[1] == told[2]
        met.update(spans(sentence.sides["en"].entities))
    assert set(met) == {"PER", "LOC", "ORG"}
    assert min(met.values()) > 250


def test_links_are_sorted_and_inside_the_sentence(drawn: list[WorldSentence]) -> None:
    for sentence in drawn:
        for (a, b), links in sentence.links.items():
            assert list(links) == sorted(set(links))
            assert all(0 <= i < len(sentence.sides[a].words) for i, _ in links)
            assert all(0 <= j < len(sentence.sides[b].words) for _, j in links)


def test_content_words_are_linked_and_articles_are_not(drawn: list[WorldSentence]) -> None:
    for sentence in drawn:
        side = sentence.sides["en"]
        for other in ("near", "far"):
            linked = {i for i, _ in sentence.links["en", other]}
            for at, (word, upos) in enumerate(zip(side.words, side.upos, strict=True)):
                if upos in ("NOUN", "VERB", "ADJ", "PROPN", "NUM", "PUNCT"):
                    assert at in linked, (other, word, side.words)
                if upos == "DET" and word.lower() in ("the", "a", "an"):
                    assert (at in linked) == (other == "near")


def test_near_far_links_are_found_by_way_of_english(drawn: list[WorldSentence]) -> None:
    for sentence in drawn:
        near, far = defaultdict(set), defaultdict(set)
        for i, j in sentence.links["en", "near"]:
            near[i].add(j)
        for i, j in sentence.links["en", "far"]:
            far[i].add(j)
        composed = {(j, k) for i in near for j in near[i] for k in far[i]}
        assert set(sentence.links["near", "far"]) <= composed


# ------------------------------------------------------------------------------------------- languages


def test_far_shares_nothing_with_english(drawn: list[WorldSentence]) -> None:
    en = {letter for sentence in drawn for word in sentence.sides["en"].words for letter in word.casefold()}
    far = {letter for sentence in drawn for word in sentence.sides["far"].words for letter in word.casefold()}
    assert not en & far


def test_far_puts_its_verb_last(drawn: list[WorldSentence]) -> None:
    plain = [sentence.sides["far"] for sentence in drawn if sentence.construction in ("transitive", "giving")]
    assert len(plain) > 100
    assert all(side.upos[-2:] == ("VERB", "PUNCT") for side in plain)


def test_near_has_the_order_of_english(drawn: list[WorldSentence]) -> None:
    crossed = total = 0
    for sentence in drawn:
        for (_, j), (_, k) in pairwise(sentence.links["en", "near"]):
            total, crossed = total + 1, crossed + (k < j)
    assert crossed / total < 0.02


def test_near_shares_many_strings_with_english(drawn: list[WorldSentence]) -> None:
    shared = total = 0
    for sentence in drawn:
        en = {word.casefold() for word in sentence.sides["en"].words}
        words = sentence.sides["near"].words
        total, shared = total + len(words), shared + sum(word.casefold() in en for word in words)
    assert 0.2 < shared / total < 0.4
    lemmas = [x for x in lexicon().lemmas.values() if x.upos in ("NOUN", "VERB", "ADJ", "ADV")]
    stems = near_language.stems()
    cognates = sum(stems[x] in (x.text, near_language.respell(x.text)) for x in lemmas)
    assert 0.25 < cognates / len(lemmas) < 0.35


# -------------------------------------------------------------------------------------------- meaning


def sensed(sentences: list[WorldSentence]) -> Iterator[tuple[str, str, list[str]]]:
    """Word, sense and the other words of its sentence, for every word of two senses."""
    for sentence in sentences:
        side = sentence.sides["en"]
        for sense in filter(None, side.senses):
            word = sense.split(".")[0]
            yield (
                word,
                sense,
                [w.casefold() for w, s in zip(side.words, side.senses, strict=True) if s != sense],
            )


def test_two_senses_translate_differently(drawn: list[WorldSentence]) -> None:
    senses = defaultdict(set)
    for word, sense, _ in sensed(drawn):
        senses[word].add(sense)
    double = {word for word, told in senses.items() if len(told) > 1}
    assert len(double) >= 20
    for language in ("near", "far"):
        forms = defaultdict(set)
        for sentence in drawn:
            side = sentence.sides[language]
            for word, sense in zip(side.words, side.senses, strict=True):
                forms[sense].add(word.casefold())
        for word in double:
            first, *others = (forms[sense] for sense in sorted(senses[word]))
            assert not any(first & other for other in others), word


def test_context_tells_the_sense(crowd: list[WorldSentence]) -> None:
    """A naive Bayes classifier over the other words beats the commonest sense by far."""
    prior: defaultdict[str, Counter[str]] = defaultdict(Counter)
    context: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, sense, others in sensed(crowd[:15_000]):
        prior[word][sense] += 1
        context[sense].update(others)
    right = common = total = 0
    for word, sense, others in sensed(crowd[15_000:]):
        if len(prior[word]) > 1:
            total += 1
            right += sense == max(prior[word], key=lambda s: likelihood(prior[word][s], context[s], others))
            common += sense == prior[word].most_common(1)[0][0]
    assert right / total > 0.87
    assert right / total > common / total + 0.05


def likelihood(prior: int, counts: Counter[str], words: list[str]) -> float:
    whole = sum(counts.values()) + 250.0
    return math.log(prior) + sum(math.log((counts[word] + 0.1) / whole) for word in words)


def test_count_vectors_find_words_of_the_same_class(crowd: list[WorldSentence]) -> None:
    """Positive pointwise mutual information with the words around: neighbours belong together."""
    classes = {"medic": 4, "drink": 4, "vehicle": 5, "tune": 3, "weekday": 5, "criminal": 3, "text": 4}
    words = {w: c for c, n in classes.items() for w in members(c)[:n]}
    texts = [[w.casefold() for w in side.words] for side in english(crowd[:12_000])]
    known = {word: at for at, (word, _) in enumerate(Counter(w for t in texts for w in t).most_common(1500))}
    rows, columns = zip(*cooccurring(texts, known), strict=True)
    counts = sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), (1500, 1500)).toarray()
    vectors = ppmi(counts)[[known[w] for w in words]]
    near = vectors @ vectors.T - 9 * np.eye(len(words))
    names = np.array(list(words.values()))
    assert (names[near.argmax(1)] == names).mean() > 0.8


def members(kind: str) -> list[str]:
    part = "name" if kind == "weekday" else "noun"
    return [
        entry.lemma.text.casefold() for entry in lexicon().pool(part, kind).entries if not entry.lemma.sense
    ]


def cooccurring(texts: list[list[str]], known: dict[str, int]) -> Iterator[tuple[int, int]]:
    for text in texts:
        ids = [known[word] for word in text if word in known]
        for at, i in enumerate(ids):
            for j in ids[max(0, at - 4) : at]:
                yield i, j
                yield j, i


def ppmi(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum() + 1e-9
    weights = np.log(np.maximum(counts / expected, 1.0))
    return np.asarray(weights / np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-9))


# ------------------------------------------------------------------------------------------- hardness


def dice_links(pairs: WordPairs) -> set[tuple[int, int, int]]:
    """Mutual best Dice over co-occurrence in sentences."""
    sides, count = (pairs.bitext.source, pairs.bitext.target), len(pairs.bitext)
    shape = (count, len(pairs.bitext.source.vocabulary))
    a, b = (
        sparse.csr_matrix(
            (np.ones(len(s.ids)), (np.repeat(np.arange(count), s.lengths), s.ids)), shape
        ).minimum(1)
        for s in sides
    )
    together, often = (a.T @ b).toarray(), [np.asarray(x.sum(0)).ravel() for x in (a, b)]
    found = set()
    for k in range(count):
        i, j = (s.ids[s.offsets[k] : s.offsets[k + 1]] for s in sides)
        dice = together[np.ix_(i, j)] / (often[0][i][:, None] + often[1][j])
        forth, back = dice.argmax(1), dice.argmax(0)
        found |= {(k, at, int(to)) for at, to in enumerate(forth) if back[to] == at}
    return found


def test_cooccurrence_alone_does_not_link_far_well() -> None:
    pairs = world_pairs(5_000, ("en", "far"), seed=4)
    gold = set(zip(pairs.sentence.tolist(), pairs.source.tolist(), pairs.target.tolist(), strict=True))
    found = dice_links(pairs)
    f1 = 2 * len(found & gold) / (len(found) + len(gold))
    assert 0.6 < f1 < 0.9


# ----------------------------------------------------------------------------------------------- draws


def test_the_same_seed_gives_the_same_world() -> None:
    assert list(generate(200, seed=5)) == list(generate(200, seed=5))
    assert list(generate(200, seed=5)) != list(generate(200, seed=6))


def test_a_short_draw_is_the_beginning_of_a_long_one() -> None:
    assert list(generate(60, seed=7)) == list(generate(300, seed=7))[:60]


def test_languages_do_not_change_what_is_said() -> None:
    whole = [sentence.sides["far"] for sentence in generate(100, seed=8)]
    assert [sentence.sides["far"] for sentence in generate(100, seed=8, languages=("far",))] == whole


def test_generate_streams() -> None:
    assert next(generate(10**12)).sides["en"].words


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"count": -1}, "count is -1"),
        ({"count": 1, "seed": -3}, "seed is -3"),
        ({"count": 1, "languages": ("en", "fra")}, "did you mean far?"),
        ({"count": 1, "languages": ("en", "en")}, "name each language once"),
        ({"count": 1, "languages": ()}, "languages are none"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], told: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(told)):
        generate(**settings)  # type: ignore[arg-type]


@pytest.mark.slow
def test_it_is_fast() -> None:
    import time

    list(generate(100))
    start = time.process_time()
    count = sum(1 for _ in generate(10_000))
    assert count / (time.process_time() - start) > 2_000
