"""More pieces: old ones keep numbers and vectors, new ones are used and begin as was asked."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)
from typer.testing import CliRunner

from calque.cli import app
from calque.encoders.open import open_encoder
from calque.errors import BadInput, BadSetting
from calque.pipeline.extending import extend
from calque.pretrain.extending import Extended, Initial, extend_model, extend_tokenizer, pieces_per_word
from calque.pretrain.masked import head_of
from calque.pretrain.vocabulary import Cutting, train_tokenizer
from calque.text.world import world_sentences
from calque.types import Sentences

ENGLISH, NEAR, FAR = (world_sentences(400, code, seed=1) for code in ("en", "near", "far"))
CUTTINGS = [Cutting.WORDPIECE, Cutting.UNIGRAM]


def bert(tokenizer: Any) -> BertForMaskedLM:
    torch.manual_seed(0)
    return BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=16, max_position_embeddings=64,
        )
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("extend")
    tokenizer = train_tokenizer([ENGLISH], 500, Cutting.UNIGRAM)
    bert(tokenizer).save_pretrained(made / "english")
    tokenizer.save_pretrained(made / "english")
    for code, text in (("en", ENGLISH), ("de", NEAR)):
        (made / f"text.{code}").write_text("".join(" ".join(words) + "\n" for words in text))
    return made


@pytest.mark.parametrize("cutting", CUTTINGS)
@pytest.mark.parametrize("text", [NEAR, FAR], ids=["near", "far"])
def test_old_pieces_stay_and_new_ones_are_used(cutting: Cutting, text: Sentences) -> None:
    old = train_tokenizer([ENGLISH], 500, cutting)
    made = extend_tokenizer(old, [text], 200)
    assert len(made.pieces) == 200 and len(set(made.pieces)) == 200
    known = made.tokenizer.get_vocab()
    assert {piece: known[piece] for piece in old.get_vocab()} == old.get_vocab()
    assert [known[piece] for piece in made.pieces] == list(range(len(old), len(old) + 200))
    before, after = (pieces_per_word(tokenizer, text) for tokenizer in (old, made.tokenizer))
    unknown = old.unk_token_id in old(" ".join(text.vocabulary.strings))["input_ids"]
    assert unknown or after < 0.8 * before
    assert made.tokenizer.unk_token_id not in made.tokenizer(" ".join(text.vocabulary.strings))["input_ids"]
    assert made.tokenizer.mask_token == old.mask_token and made.tokenizer("a b")["input_ids"][0] == 2


@pytest.mark.parametrize("spare", [0, 35, 300])
@pytest.mark.parametrize("cutting", CUTTINGS)
def test_vectors_begin_as_the_mean_of_the_pieces_before(cutting: Cutting, spare: int) -> None:
    old = train_tokenizer([ENGLISH], 500, cutting)
    made, model = extend_tokenizer(old, [NEAR], 100), bert(old)
    if spare:  # as e5's model has more vectors than its tokenizer has pieces
        model.resize_token_embeddings(len(old) + spare, mean_resizing=False)
    before = model.get_input_embeddings().weight.detach().clone()[: len(old)]
    extend_model(model, made, initial=Initial.MEAN)
    table = model.get_input_embeddings().weight
    assert torch.equal(table[: len(old)], before) and len(table) == len(old) + max(100, spare)
    assert made.tokenizer.get_vocab()[made.pieces[0]] == made.first == len(old)
    assert model.get_output_embeddings().weight is table
    whole = [(piece, ids) for piece, ids in zip(made.pieces, made.made_of, strict=True) if ids]
    assert len(whole) > 80
    for place, (piece, ids) in enumerate(zip(made.pieces, made.made_of, strict=True)):
        if ids:
            torch.testing.assert_close(table[len(old) + place], before[list(ids)].mean(0))
            bare = "".join(old.convert_ids_to_tokens(list(ids))).replace("##", "").replace("▁", "")
            assert bare == piece.replace("##", "").replace("▁", ""), "it is made of its own letters"
    scores = head_of(model)(torch.zeros(1, 16))
    assert scores.shape == (1, len(table)) and torch.isfinite(scores).all()


@pytest.mark.parametrize("cutting", CUTTINGS)
def test_tokens_behind_the_pieces_keep_their_numbers(cutting: Cutting) -> None:
    old = train_tokenizer([ENGLISH], 500, cutting)
    old.add_tokens(["<extra1>", "<extra2>"])
    with pytest.raises(BadSetting, match=r"2 tokens behind its own pieces.*--pieces 0"):
        extend_tokenizer(old, [NEAR], 100)


def test_random_beginnings_are_spread_like_the_old_vectors_and_follow_the_seed() -> None:
    old = train_tokenizer([ENGLISH], 500, Cutting.UNIGRAM)
    drawn = []
    for seed in (0, 0, 1):
        model = bert(old)
        extended = Extended(old, [""] * 300, [()] * 300, len(old))
        extend_model(model, extended, initial=Initial.RANDOM, seed=seed)
        drawn.append(model.get_input_embeddings().weight[len(old) :].detach())
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    assert float(drawn[0].std()) == pytest.approx(
        float(bert(old).get_input_embeddings().weight.detach().std()), rel=0.1
    )


def test_through_the_command_line_it_is_an_ordinary_checkpoint(folder: Path, tmp_path: Path) -> None:
    command = ["extend", "--encoder", str(folder / "english"), "--text", f"de={folder / 'text.de'}",
               "--text", f"en={folder / 'text.en'}", "--language", "de", "--pieces", "150", "--steps", "5",
               "--batch-tokens", "400", "--out", str(tmp_path / "more")]  # fmt: skip
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    before, after = map(
        float, re.findall(r"^de: ([\d.]+) pieces a word before, ([\d.]+) now", told.output, re.M)[0]
    )
    assert after < 0.9 * before
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "more")
    assert model.config.vocab_size == 650 == len(AutoTokenizer.from_pretrained(tmp_path / "more"))
    vectors = open_encoder(str(tmp_path / "more")).word_vectors(NEAR.select([0, 1]), layers=[1])
    assert np.isfinite(vectors.vectors).all()


def test_only_embeddings_are_trained_where_asked(folder: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"pieces": 0, "steps": 3, "learning_rate": 1e-2, "trained": "embeddings"}
    extend(str(folder / "english"), f"de={folder / 'text.de'}", out=tmp_path / "model", **how)
    old, new = (
        dict(AutoModelForMaskedLM.from_pretrained(place).named_parameters())
        for place in (folder / "english", tmp_path / "model")
    )
    changed = {name for name in old if not torch.equal(old[name], new[name])}
    assert changed == {"bert.embeddings.word_embeddings.weight"}


def test_a_model_like_xlm_r_without_a_head_is_extended_too(folder: Path, tmp_path: Path) -> None:
    tokenizer = train_tokenizer([ENGLISH], 500, Cutting.UNIGRAM)
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=66, pad_token_id=0, type_vocab_size=1,
    )  # fmt: skip
    XLMRobertaForMaskedLM(config).roberta.save_pretrained(tmp_path / "body")
    tokenizer.save_pretrained(tmp_path / "body")
    run = extend(
        str(tmp_path / "body"), [f"de={folder / 'text.de'}"], out=tmp_path / "more", pieces=50, steps=3
    )
    assert all(np.isfinite(one.value) for one in run.results)
    assert AutoModelForMaskedLM.from_pretrained(tmp_path / "more").config.vocab_size == 550


def test_mistakes_are_told(folder: Path, tmp_path: Path) -> None:
    english, text = str(folder / "english"), f"de={folder / 'text.de'}"
    with pytest.raises(BadSetting, match="no text of ru"):
        extend(english, text, out=tmp_path / "x", new_languages=("ru",))
    with pytest.raises(BadSetting, match="no text to learn from"):
        extend(english, [], out=tmp_path / "x")
    with pytest.raises(BadInput, match="no such file"):
        extend(english, "de=nowhere", out=tmp_path / "x")
    merges = Tokenizer(models.BPE({"a": 0, "[MASK]": 1, "[UNK]": 2}, [], unk_token="[UNK]"))
    merges.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    with pytest.raises(BadSetting, match="of kind BPE"):
        extend_tokenizer(PreTrainedTokenizerFast(tokenizer_object=merges, mask_token="[MASK]"), [NEAR], 5)
    assert not (tmp_path / "x").exists()
