"""Words: the same as sacremoses where that is right, and segmenters that lose no character."""

import builtins
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesTokenizer

from calque.errors import MissingExtra
from calque.text import words
from calque.text.words import tokenise_all, tokeniser

MOSES = ("en", "de", "fr", "ru", "hi", "qaa")
plain = st.lists(
    st.sampled_from(
        [*"aZzé5 .,'\"`-/&<>|[]@#%$:…“”?!।", "Mr.", "No.", "e.g.", "...", "'s", "1,000", " ", " "]
    ),
    max_size=25,
).map("".join)


@pytest.mark.parametrize("language", MOSES)
@settings(deadline=None)
@given(text=plain)
def test_the_rules_of_moses(language: str, text: str) -> None:
    assert tokeniser(language)(text) == MosesTokenizer(language).tokenize(text, escape=False)


@pytest.mark.parametrize("language", ["en", "de", "es", "ru", "vi"])
def test_moses_on_real_text(shared_data: Path, language: str) -> None:
    path = shared_data / "bitext" / f"tatoeba.en-{'de' if language == 'en' else language}.tsv"
    lines = path.read_text(encoding="utf-8").split("\n")[:1500]
    texts = [line.split("\t")[0 if language == "en" else 1] for line in lines if line]
    reference = MosesTokenizer(language)
    expected = [reference.tokenize(text, escape=False) for text in texts]
    found = list(tokenise_all(language, texts))
    assert (
        sum(a != b for a, b in zip(found, expected, strict=True)) <= 2
    )  # accents of their own, soft hyphens


def test_regions_follow_their_language() -> None:
    assert tokeniser("en-GB")("it's") == ["it", "'s"]
    assert tokeniser("fr-CA")("l'eau") == ["l'", "eau"]
    assert tokeniser("de")("it's") == ["it", "'", "s"]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("vi", "cha\u0300o ba\u0323n", ["cha\u0300o", "ba\u0323n"]),
        ("ru", "дыши\u0301те.", ["дыши\u0301те", "."]),
        ("fa", "می\u200cخواهم", ["می\u200cخواهم"]),
        ("de", "Weiß\u00adwein\u200b \ufeffda\u2060\0!", ["Weißwein", "da", "!"]),
        ("en", "a\u200bb\u3000c\u00a0d", ["a", "b", "c", "d"]),
        ("en", " \t\u200b ", []),
    ],
)
def test_nothing_unseen_is_a_word(language: str, text: str, expected: list[str]) -> None:
    assert tokeniser(language)(text) == expected


def test_tokenised_text_is_left_alone() -> None:
    text = "Mr. Smith 's\u00a0e-mail  ,\tdon't"
    assert tokeniser("en", tokenised=True)(text) == ["Mr.", "Smith", "'s", "e-mail", ",", "don't"]
    assert tokeniser("zh", tokenised=True)("我 喜欢 猫。") == ["我", "喜欢", "猫。"]


def test_chinese() -> None:
    pytest.importorskip("icu")
    split = tokeniser("zh-Hans")
    assert split("他说：“我喜欢猫……”《书》，好吗？") == [
        *("他", "说", "：", "“", "我", "喜欢", "猫", "…", "…", "”", "《", "书", "》", "，", "好", "吗", "？")
    ]
    assert split("我 有 3.14 个　iPhone。") == ["我", "有", "3.14", "个", "iPhone", "。"]
    assert split("😀我喜欢😀猫") == ["😀", "我", "喜欢", "😀", "猫"]


def test_thai() -> None:
    pytest.importorskip("icu")
    assert tokeniser("th")("ผมชื่อทอม ครับ\u200bดี") == ["ผม", "ชื่อ", "ทอม", "ครับ", "ดี"]


def test_japanese() -> None:
    pytest.importorskip("fugashi")
    split = tokeniser("ja")
    assert split("私は東京に　住んでいます。\0「はい」") == [
        *("私", "は", "東京", "に", "住ん", "で", "い", "ます", "。", "「", "はい", "」")
    ]
    assert split("") == []


@pytest.mark.parametrize("language", ["zh", "th", "ja", "my"])
@settings(deadline=None)
@given(text=st.text(st.sampled_from("我喜欢猫。，“”私は東京กขคสวัสดีမြန်မာab 1.5　\u200b😀𠀀\n"), max_size=30))
def test_segmenters_lose_nothing_but_spaces(language: str, text: str) -> None:
    pytest.importorskip("fugashi" if language == "ja" else "icu")
    found = tokeniser(language)(text)
    assert all(word and not any(map(str.isspace, word)) for word in found)
    assert "".join(found) == "".join(text.replace("\u200b", " ").split())


@pytest.mark.parametrize(
    ("language", "package", "extra"),
    [("zh", "icu", "zh"), ("th", "icu", "th"), ("km", "icu", "th"), ("ja", "fugashi", "ja")],
)
def test_missing_segmenters(monkeypatch: pytest.MonkeyPatch, language: str, package: str, extra: str) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == package:
            raise ImportError(name)
        return real(name, *rest, **named)

    words._icu.cache_clear()
    words._mecab.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=rf"calque\[{extra}\]"):
        tokeniser(language)
    assert tokeniser(language, tokenised=True)("a b") == ["a", "b"]


def test_an_emoji_is_one_word_however_many_characters_it_has() -> None:
    assert tokeniser("en")("I ❤️ it 👍🏽! 👩‍👩‍👧😀") == ["I", "❤️", "it", "👍🏽", "!", "👩‍👩‍👧", "😀"]


def test_a_long_japanese_line_takes_no_square_of_its_length() -> None:
    import time

    pytest.importorskip("fugashi")
    start = time.process_time()
    assert "".join(tokeniser("ja")("x" * 200_000)) == "x" * 200_000
    assert time.process_time() - start < 5
