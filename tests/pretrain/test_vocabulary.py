"""Tokenizers: the same text gives the same one, no word is lost, and Hugging Face reads it as it was."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer, BertConfig

from calque.encoders.tokens import Reader
from calque.errors import BadInput, BadSetting
from calque.pretrain.vocabulary import SPECIALS, Cutting, train_tokenizer
from calque.text.world import world_sentences
from calque.types import Sentences

SIZE = 700
TEXTS = [world_sentences(300, language, seed=place) for place, language in enumerate(("en", "far"))]
WORDS = sorted({word for text in TEXTS for word in text.vocabulary})


@pytest.fixture(params=list(Cutting), ids=str)
def cutting(request: pytest.FixtureRequest) -> Cutting:
    return Cutting(request.param)


def trained(cutting: Cutting) -> Any:
    return train_tokenizer(TEXTS, SIZE, cutting, max_length=40)


def test_same_text_gives_the_same_tokenizer(cutting: Cutting) -> None:
    first, second = (trained(cutting).backend_tokenizer.to_str() for _ in range(2))
    assert first == second


def test_every_word_can_be_put_together_again(cutting: Cutting) -> None:
    tokenizer = trained(cutting)
    for word in WORDS:
        pieces = tokenizer.tokenize(word)
        assert "".join(pieces).replace("##", "").replace("▁", "") == word
    assert len({tuple(tokenizer.tokenize(word)) for word in ("The", "the", "THE")}) == 3


def test_size_is_kept_and_specials_come_first(cutting: Cutting) -> None:
    tokenizer = trained(cutting)
    assert 0.9 * SIZE < len(tokenizer) <= SIZE
    assert tokenizer.convert_ids_to_tokens(list(range(5))) == SPECIALS
    assert sorted(tokenizer.all_special_ids) == [0, 1, 2, 3, 4]
    assert set(tokenizer.get_vocab().values()) == set(range(len(tokenizer)))


def test_auto_tokenizer_reads_it_as_it_was(cutting: Cutting, tmp_path: Path) -> None:
    made = trained(cutting)
    made.save_pretrained(tmp_path)
    BertConfig(vocab_size=len(made)).save_pretrained(tmp_path)
    read = AutoTokenizer.from_pretrained(tmp_path)
    assert read.backend_tokenizer.to_str() == made.backend_tokenizer.to_str()
    assert (read.mask_token_id, read.pad_token_id, read.model_max_length) == (4, 0, 40)
    words = ["The", "q#2", "cat"]
    assert (
        read(words, is_split_into_words=True)["input_ids"]
        == (made(words, is_split_into_words=True)["input_ids"])
    )


def test_calque_cuts_a_sentence_as_hugging_face_does(cutting: Cutting) -> None:
    tokenizer = trained(cutting)
    for text in TEXTS:
        rows, mask = Reader(tokenizer).layout(text).rows([0, 1, 2], tokenizer.pad_token_id)  # type: ignore[arg-type]
        plain = [tokenizer(text[i], is_split_into_words=True)["input_ids"] for i in range(3)]
        assert [row[there].tolist() for row, there in zip(rows, mask, strict=True)] == plain


def test_an_unknown_character_is_unknown(cutting: Cutting) -> None:
    tokenizer = trained(cutting)
    assert tokenizer.unk_token_id in tokenizer("猫", add_special_tokens=False)["input_ids"]


def test_a_vocabulary_without_room_for_its_characters_is_refused(cutting: Cutting) -> None:
    with pytest.raises(BadSetting, match="at least"):
        train_tokenizer(TEXTS, 60, cutting)
    with pytest.raises(BadInput, match="no words"):
        train_tokenizer([Sentences.of("en", [[]])], 100, cutting)


def test_rare_characters_are_left_out_where_there_are_too_many(cutting: Cutting) -> None:
    rng = np.random.default_rng(0)
    often, rare = [chr(0x4E00 + i) for i in range(30)], [chr(0x5E00 + i) for i in range(200)]
    sentences = [["".join(rng.choice(often, 4)) for _ in range(20)] for _ in range(600)]
    for place, letter in enumerate(rare):
        sentences[place].append(letter)
    text = Sentences.of("zh", sentences)
    tokenizer = train_tokenizer([text], 200, cutting)
    assert tokenizer.unk_token_id not in tokenizer(sentences[300], is_split_into_words=True)["input_ids"]
    pieces = [tokenizer(letter, add_special_tokens=False)["input_ids"] for letter in rare]
    unknown = sum(tokenizer.unk_token_id in one for one in pieces)
    kept = (200 - 5) // (4 if cutting is Cutting.WORDPIECE else 2)
    assert unknown >= 230 - kept
    assert len(tokenizer) <= 200
    with pytest.raises(BadSetting, match=r"40 pieces for 230 characters \(at least"):
        train_tokenizer([text], 40, cutting)
