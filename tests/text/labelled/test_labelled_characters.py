"""Tags of characters on words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from calque.errors import BadInput
from calque.text.labelled.characters import segmented
from calque.text.labelled.items import Labelled, Tagged


def labelled(*sentences: Tagged) -> Labelled[Tagged]:
    return Labelled("zh", sentences, "a.tsv", {"columns": 1})


def characters(text: str, tags: str) -> Tagged:
    return Tagged(tuple(text), tuple(tags.split()))


def test_words_within_entities() -> None:
    sentence = characters("我在台北市政府", "O O B-LOC I-LOC I-LOC B-ORG I-ORG")
    found = segmented(labelled(sentence), lambda text: ["我", "在", "台北", "市", "政府"])
    assert found.items[0].words == ("我", "在", "台北", "市", "政府")
    assert found.items[0].tags == ("O", "O", "B-LOC", "I-LOC", "B-ORG")
    assert (found.dropped, found.changed) == ({"columns": 1}, {})


def test_words_across_entities_are_counted() -> None:
    """在|台: a tie, the first counts; 北市政: two of three in LOC; 府: what is left of ORG begins it."""
    sentence = characters("我在台北市政府", "O O B-LOC I-LOC I-LOC B-ORG I-ORG")
    found = segmented(labelled(sentence), lambda text: ["我", "在台", "北市政", "府"])
    assert found.items[0].tags == ("O", "O", "B-LOC", "B-ORG")
    assert found.changed == {"word across entities": 2}


def test_two_entities_of_one_type_stay_two() -> None:
    sentence = characters("甲乙丙丁", "B-PER I-PER B-PER I-PER")
    assert segmented(labelled(sentence), lambda text: ["甲乙", "丙丁"]).items[0].tags == ("B-PER", "B-PER")
    assert segmented(labelled(sentence), list).items[0].tags == sentence.tags


def test_words_of_letters_stay_apart_and_unseen_characters_do_not_matter() -> None:
    sentence = Tagged(("去", "New", "York", "\u200b", "吧"), ("O", "B-LOC", "I-LOC", "O", "O"))
    found = segmented(
        labelled(sentence), lambda text: text.replace("\u200b", "").replace("New York", " New York ").split()
    )
    assert found.items[0].words == ("去", "New", "York", "吧")
    assert found.items[0].tags == ("O", "B-LOC", "I-LOC", "O")


def test_segmenters_that_change_the_text() -> None:
    good, bad = characters("甲乙", "O O"), characters("丙丁", "O O")
    found = segmented(labelled(good, bad), lambda text: ["丙"] if "丙" in text else [text])
    assert [item.words for item in found.items] == [("甲乙",)]
    assert found.dropped == {"columns": 1, "segmented otherwise": 1}
    with pytest.raises(BadInput, match="no sentence has the same characters"):
        segmented(labelled(bad), lambda text: [])


@given(
    st.lists(
        st.tuples(st.sampled_from(["O", "X", "Y"]), st.integers(1, 4), st.booleans()), min_size=1, max_size=6
    )
)
def test_entities_of_whole_words_are_the_same_characters(chunks: list[tuple[str, int, bool]]) -> None:
    """Where no word crosses the edge of an entity, seqeval finds the same entities."""
    tags, words, at = [], [], 0
    for kind, length, whole in chunks:
        tags += ["O"] * length if kind == "O" else [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]
        held = "".join(map(chr, range(0x4E00 + at, 0x4E00 + at + length)))
        words += [held] if whole else list(held)
        at += length
    sentence = Tagged(tuple("".join(words)), tuple(tags))
    found = segmented(labelled(sentence), lambda text: words)
    item = found.items[0]
    expected = {(kind, "".join(sentence.words[a : b + 1])) for kind, a, b in get_entities(list(tags))}
    assert {
        (kind, "".join(item.words[a : b + 1])) for kind, a, b in get_entities(list(item.tags))
    } == expected
    assert found.changed == {}


def test_real_chinese(shared_data) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("icu")
    from calque.text.labelled.tags import read_ner
    from calque.text.words import tokeniser

    found = read_ner(shared_data / "ner" / "panx.zh.dev.tsv", "zh", limit=500)
    words = segmented(found, tokeniser("zh"))
    assert len(words) >= 495
    assert sum(map(len, words.items)) < sum(map(len, found.items))
    assert 0 < words.changed["word across entities"] < sum(map(len, words.items)) / 10
