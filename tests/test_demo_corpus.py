"""The demo corpus keeps what its README promises, whoever extends it."""

import unicodedata
from collections import Counter

import pytest

from calque.demo.corpus import (
    HERE,
    PIVOT,
    ambiguous,
    entities,
    hand_links,
    languages,
    sentences,
    write_corpus,
)
from calque.errors import BadInput
from calque.links.pharaoh import read_links
from calque.text.bitext import read_bitext

ALL = (PIVOT, *languages())
SCRIPTS = {"ru": "CYRILLIC", "hi": "DEVANAGARI", "zh": "CJK"}
#: Words that two senses share in a language, because it names both things alike.
ALIKE: dict[str, set[str]] = {"es": {"capital", "note"}, "ru": {"star"}}


def test_five_languages_and_enough_of_each() -> None:
    assert set(languages()) >= {"de", "es", "ru", "hi", "zh"}
    assert len({len(sentences(language)) for language in ALL}) == 1
    assert len(sentences(PIVOT)) >= 400
    assert all(len(hand_links(language)) >= 100 for language in languages())


@pytest.mark.parametrize(
    "file", sorted(HERE.rglob("*.txt")), ids=lambda file: f"{file.parent.name}/{file.name}"
)
def test_files_are_plain_composed_utf8(file) -> None:  # type: ignore[no-untyped-def]
    text = file.read_bytes().decode("utf-8")
    assert text == unicodedata.normalize("NFC", text)
    assert text.endswith("\n") and "\r" not in text and "\ufeff" not in text
    assert all(line == " ".join(line.split()) for line in text.split("\n"))
    assert not [
        c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Co", "Cn") and c not in "\n\u200c\u200d"
    ]


@pytest.mark.parametrize("language", ALL)
def test_no_sentence_is_empty_or_twice(language: str) -> None:
    texts = [" ".join(words) for words in sentences(language)]
    assert all(texts) and not [text for text, count in Counter(texts).items() if count > 1]


@pytest.mark.parametrize("language", ALL)
def test_punctuation_stands_apart(language: str) -> None:
    marks = set(".,;:!?¿¡।。，？！；：、")
    glued = {word for words in sentences(language) for word in words if len(word) > 1 and word[-1] in marks}
    assert glued <= {"Dr."}


@pytest.mark.parametrize("language", sorted(SCRIPTS))
def test_translations_are_written_in_their_script(language: str) -> None:
    for words in sentences(language):
        letters = [c for word in words for c in word if c.isalpha()]
        assert all(unicodedata.name(c).startswith(SCRIPTS[language]) for c in letters), words


@pytest.mark.parametrize("language", languages())
def test_lengths_of_translations_go_together(language: str) -> None:
    """A line that slipped by one would show."""
    pairs = list(zip(sentences(PIVOT), sentences(language), strict=True))
    assert all(1 / 3 <= len(a) / len(b) <= 3 for a, b in pairs if len(a) > 5)
    ends = [(a[-1], b[-1]) for a, b in pairs]
    questions = sum((a == "?") != (b in "?？") for a, b in ends)
    assert questions == 0


@pytest.mark.parametrize("language", languages())
def test_links_lie_within_their_sentences_once(language: str) -> None:
    marks = set(".,;:!?¿¡।。，？！；：、")
    for links, source, target in zip(
        hand_links(language), sentences(PIVOT), sentences(language), strict=False
    ):
        assert len(set(links)) == len(links) >= 3
        assert all(i < len(source) and j < len(target) for i, j in links)
        assert not [(i, j) for i, j in links if source[i] in marks or target[j] in marks]


@pytest.mark.parametrize("language", languages())
def test_senses_of_ambiguous_words_are_linked_to_different_words(language: str) -> None:
    links, source, target = hand_links(language), sentences(PIVOT), sentences(language)
    alike = set()
    for k, word in enumerate(ambiguous()):
        found = []
        for sentence in (2 * k, 2 * k + 1):
            places = [i for i, held in enumerate(source[sentence]) if held.lower() == word]
            assert places, f"sentence {sentence + 1} has no {word}"
            found.append({target[sentence][j].lower() for i, j in links[sentence] if i in places})
        assert all(found), f"{word} is not linked in both senses"
        if found[0] == found[1]:
            alike.add(word)
    assert alike == ALIKE.get(language, set())


def test_learning_sentences_hold_no_ambiguous_word() -> None:
    """So that no link of such a word that is scored was seen in learning."""
    scored = len(hand_links("de"))
    words = {word.lower() for sentence in sentences(PIVOT)[scored:] for word in sentence}
    assert not words & set(ambiguous())


@pytest.mark.parametrize("language", ["en", "de"])
def test_entities_are_valid_bio(language: str) -> None:
    tags = entities(language)
    assert [len(one) for one in tags] == [len(words) for words in sentences(language)]
    for one in tags:
        for before, tag in zip(["O", *one], one, strict=False):
            assert tag == "O" or tag[2:] in ("PER", "LOC", "ORG")
            assert not tag.startswith("I-") or before[2:] == tag[2:]
    counts = Counter(tag for one in tags for tag in one if tag.startswith("B-"))
    assert counts["B-PER"] >= 20 and counts["B-LOC"] >= 40


def test_the_same_entities_are_named_in_both_languages() -> None:
    for number, (one, other) in enumerate(zip(entities("en"), entities("de"), strict=True), 1):
        kinds = [sorted(tag for tag in tags if tag.startswith("B-")) for tags in (one, other)]
        assert kinds[0] == kinds[1], f"sentence {number}"


def test_what_is_written_is_read_back(tmp_path) -> None:  # type: ignore[no-untyped-def]
    write_corpus(tmp_path)
    bitext = read_bitext([str(tmp_path / "en-de.test.tsv")], ("en", "de"), tokenised=True)
    pairs = read_links(tmp_path / "en-de.test.links", bitext)
    links = hand_links("de")
    assert len(bitext) == len(links) and len(pairs) == sum(map(len, links))
    rows = pairs.sentence == 4
    assert list(zip(pairs.source[rows], pairs.target[rows], strict=True)) == sorted(links[4])
    train = read_bitext([str(tmp_path / "en-zh.train.tsv")], ("en", "zh"), tokenised=True)
    assert len(train) == len(sentences(PIVOT)) - len(hand_links("zh")) and not train.dropped


def test_mistakes_of_contributors_are_named(monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    for part in ("text", "links", "entities"):
        (tmp_path / part).mkdir()
    (tmp_path / "text" / "en.txt").write_text("a b a .\n")
    (tmp_path / "text" / "xx.txt").write_text("c d .\n")
    monkeypatch.setattr("calque.demo.corpus.HERE", tmp_path)
    for line in ("a=c", "a#3=c", "z=c", "a#x=c", "b"):
        (tmp_path / "links" / "xx.txt").write_text(line + "\n")
        with pytest.raises(BadInput, match=r"xx.txt.*1"):
            hand_links("xx")
    (tmp_path / "links" / "xx.txt").write_text("a#2=c b=d\n")
    assert hand_links("xx") == [[(2, 0), (1, 1)]]
    for line in ("PER e", "PLACE c", "PER"):
        (tmp_path / "entities" / "xx.txt").write_text(line + "\n")
        with pytest.raises(BadInput, match=r"xx.txt.*1"):
            entities("xx")
