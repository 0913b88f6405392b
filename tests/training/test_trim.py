"""Trimming a vocabulary changes nothing but the size of what is trained."""

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from more_encoders import BUILT, TEXTS, build, train
from tiny_encoders import wordpiece

from calque.encoders.encoder import HuggingFaceEncoder
from calque.errors import BadInput, BadSetting
from calque.training.partial import freeze, parameter_count
from calque.training.trim import Trimmed, trim_vocabulary, used_pieces
from calque.types import Sentences

FAMILIES = sorted({*BUILT, "marian"})
PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


def vectors(encoder: HuggingFaceEncoder) -> np.ndarray:
    layers = range(encoder.depth + 1)
    return np.concatenate([encoder.word_vectors(text, layers=layers).vectors for text in TEXTS], axis=1)


def table(encoder: HuggingFaceEncoder) -> Any:
    return encoder.body.get_input_embeddings()


def trim(encoder: HuggingFaceEncoder) -> Trimmed:
    return trim_vocabulary(encoder, used_pieces(encoder, TEXTS))


@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_are_the_same_to_the_bit_and_so_is_what_comes_back(family: str, tmp_path: Path) -> None:
    encoder = build(family, tmp_path)
    before, weights = vectors(encoder), copy.deepcopy(encoder.model.state_dict())
    matrix, rows, every = table(encoder).weight, *table(encoder).weight.shape
    padding = table(encoder).padding_idx
    trimmed = trim(encoder)
    small = len(trimmed.kept)
    assert small < rows and table(encoder).weight.shape == (small, every)
    assert np.array_equal(vectors(encoder), before)
    states = [encoder.states(encoder.batch(text), [encoder.depth]).hidden[0] for text in TEXTS]
    trimmed.restore()
    for text, hidden in zip(TEXTS, states, strict=True):
        assert torch.equal(encoder.states(encoder.batch(text), [encoder.depth]).hidden[0], hidden)
    assert table(encoder).weight is matrix and matrix.requires_grad
    assert table(encoder).padding_idx == padding
    after = encoder.model.state_dict()
    assert after.keys() == weights.keys()
    assert all(torch.equal(after[name], value) for name, value in weights.items())
    assert np.array_equal(vectors(encoder), before)


@pytest.mark.parametrize("family", FAMILIES)
def test_training_gives_the_weights_that_training_the_whole_gives(family: str, tmp_path: Path) -> None:
    whole, part = build(family, tmp_path), build(family, tmp_path)
    first = table(whole).weight.detach().clone()
    trimmed = trim(part)
    for encoder in (whole, part):
        train(encoder, steps=4)
    trimmed.restore()
    expected, got = whole.model.state_dict(), part.model.state_dict()
    for name, value in expected.items():
        torch.testing.assert_close(got[name], value, atol=1e-6, rtol=0, msg=name)
    assert_only_used_rows_moved(first, table(part).weight, trimmed)


@pytest.mark.parametrize(
    ("optimiser", "options"),
    [(torch.optim.SGD, {}), (torch.optim.SGD, {"momentum": 0.9}), (torch.optim.AdamW, {"fused": True})],
)
def test_other_optimisers_too(optimiser: Any, options: dict[str, Any], tmp_path: Path) -> None:
    whole, part = build("xlm-roberta", tmp_path), build("xlm-roberta", tmp_path)
    first = table(whole).weight.detach().clone()
    trimmed = trim(part)
    for encoder in (whole, part):
        train(encoder, steps=5, optimiser=optimiser, **options)
    trimmed.restore()
    torch.testing.assert_close(table(part).weight, table(whole).weight, atol=1e-6, rtol=0)
    assert_only_used_rows_moved(first, table(part).weight, trimmed)


def assert_only_used_rows_moved(before: torch.Tensor, after: torch.Tensor, trimmed: Trimmed) -> None:
    others = np.setdiff1d(np.arange(len(before)), trimmed.kept)
    assert len(others) and torch.equal(before[others], after[others])
    moved = (before != after).any(1).nonzero().flatten()
    assert len(moved) > 3 and set(moved.tolist()) <= set(used_pieces(trimmed.encoder, TEXTS).tolist())


def test_the_state_of_the_optimiser_shrinks_with_the_matrix(tmp_path: Path) -> None:
    encoder = build("bert", tmp_path)
    trimmed = trim(encoder)
    adam = torch.optim.AdamW(p for p in encoder.model.parameters() if p.requires_grad)
    encoder.states(encoder.batch(TEXTS[0]), [3]).hidden[0].sum().backward()
    adam.step()
    assert adam.state[table(encoder).weight]["exp_avg"].shape == (len(trimmed.kept), 24)
    assert trimmed.full.grad is None and not trimmed.full.requires_grad


def test_used_pieces_are_what_the_rows_hold(tmp_path: Path) -> None:
    encoder = build("xlm-roberta", tmp_path, prefix="query: ")
    used = used_pieces(encoder, TEXTS)
    rows = [row for text in TEXTS for row in encoder.batch(text).pieces.flatten().tolist()]
    assert set(used.tolist()) == set(rows) - {encoder.reader.pad}
    assert {0, 1, 2, 3} <= set(trim(encoder).kept.tolist())


def test_pieces_of_linked_subwords_are_read_as_well(tmp_path: Path) -> None:
    encoder = build("bert", tmp_path)
    pieces = [encoder.pieces(text) for text in TEXTS]
    assert np.array_equal(used_pieces(encoder, pieces), used_pieces(encoder, TEXTS))


def test_a_piece_outside_is_refused_and_never_another_row(tmp_path: Path) -> None:
    encoder = build("bert", tmp_path)
    trimmed = trim(encoder)
    for words in (["Кошка"], ["The", "cat", "9"]):
        with pytest.raises(BadInput, match="outside the trimmed vocabulary"):
            encoder.word_vectors(Sentences.of("ru", [words]), layers=[0])
        with pytest.raises(BadInput, match="outside the trimmed vocabulary"):
            encoder.states(encoder.batch(Sentences.of("ru", [words])), [3])
    trimmed.restore()
    assert encoder.word_vectors(Sentences.of("ru", [["Кошка"]]), layers=[0]).present.all()


@pytest.mark.parametrize("wrong", [-1, 10**6])
def test_ids_that_are_none_are_refused(wrong: int, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=str(wrong)):
        trim_vocabulary(build("bert", tmp_path), np.array([5, wrong]))


def test_trimming_nothing_keeps_the_special_tokens_and_trimming_twice_is_refused(tmp_path: Path) -> None:
    encoder = build("xlm-roberta", tmp_path)
    trimmed = trim_vocabulary(encoder, np.array([], np.int64))
    assert trimmed.kept.tolist() == sorted(encoder.tokenizer.all_special_ids) == [0, 1, 2, 3]
    with pytest.raises(BadSetting, match="already"):
        trim(encoder)
    trimmed.restore()
    trimmed.restore()
    trim(encoder)


def test_an_encoder_made_anew_from_a_trimmed_model_and_a_copy_of_it_still_read(tmp_path: Path) -> None:
    encoder = build("xlm-roberta", tmp_path)
    before = vectors(encoder)
    trim(encoder)
    frozen = HuggingFaceEncoder.from_model(copy.deepcopy(encoder.model), encoder.tokenizer, "copy")
    train(encoder)
    assert np.array_equal(vectors(frozen), before) and not np.array_equal(vectors(encoder), before)


def test_saving_waits_for_restoring_and_the_checkpoint_is_an_ordinary_one(tmp_path: Path) -> None:
    build("bert", tmp_path).save(tmp_path / "before")
    encoder = HuggingFaceEncoder.load(str(tmp_path / "before"))
    first = encoder.fingerprint
    trimmed = trim(encoder)
    # Fused optimisers move no version counter, and the files must not be taken for what was trained.
    assert encoder.directory is None
    train(encoder, fused=True)
    with pytest.raises(BadSetting, match="restore"):
        encoder.save(tmp_path / "after")
    trained = vectors(encoder)
    trimmed.restore()
    assert encoder.directory is None and encoder.fingerprint != first
    encoder.save(tmp_path / "after")
    again = transformers.AutoModel.from_pretrained(tmp_path / "after")
    assert again.get_input_embeddings().weight.shape == (len(encoder.tokenizer), 24)
    loaded = HuggingFaceEncoder.load(str(tmp_path / "after"))
    assert np.array_equal(vectors(loaded), trained)


def test_training_nothing_but_the_rows_is_noticed(tmp_path: Path) -> None:
    build("bert", tmp_path).save(tmp_path / "before")
    encoder = HuggingFaceEncoder.load(str(tmp_path / "before"))
    freeze(encoder, layers=3)
    seen = {encoder.fingerprint}
    trimmed = trim(encoder)
    for _ in range(3):
        train(encoder, steps=1)
        seen.add(encoder.fingerprint)
    trimmed.restore()
    assert encoder.directory is None and len(seen | {encoder.fingerprint}) == 5


def test_embeddings_frozen_before_or_after_stay_frozen(tmp_path: Path) -> None:
    for first in (True, False):
        encoder = build("bert", tmp_path)
        before = table(encoder).weight.detach().clone()
        if first:
            freeze(encoder, embeddings=True)
        trimmed = trim(encoder)
        freeze(encoder, embeddings=True)
        train(encoder)
        trimmed.restore()
        assert torch.equal(table(encoder).weight, before) and not table(encoder).weight.requires_grad


# --------------------------------------------------------------------------------------------- ties


def test_a_head_tied_to_the_vocabulary_stays_tied_and_gets_the_trained_rows() -> None:
    torch.manual_seed(3)
    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
    config = transformers.BertConfig(vocab_size=len(wordpiece()), **sizes)
    model = transformers.BertForMaskedLM(config).eval()
    encoder = HuggingFaceEncoder.from_model(model, wordpiece(), "masked")
    before = model.get_output_embeddings().weight.detach().clone()
    trimmed = trim(encoder)
    train(encoder)
    trimmed.restore()
    head = model.get_output_embeddings().weight
    assert head is table(encoder).weight and head.requires_grad
    assert_only_used_rows_moved(before, head, trimmed)


def test_the_decoder_of_t5_stays_tied(tmp_path: Path) -> None:
    encoder = build("t5", tmp_path)
    trimmed = trim(encoder)
    train(encoder)
    trimmed.restore()
    for part in (
        encoder.model.shared,
        encoder.model.encoder.embed_tokens,
        encoder.model.decoder.embed_tokens,
    ):
        assert part.weight is trimmed.full


def test_a_head_inside_the_encoder_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    encoder = build("bert", tmp_path)
    encoder.body.head = torch.nn.Linear(24, len(encoder.tokenizer), bias=False)
    encoder.body.head.weight = table(encoder).weight
    with pytest.raises(BadSetting, match="tied to a Linear"):
        trim(encoder)
    assert encoder.body.head.weight is table(encoder).weight and not encoder.unfinished


# -------------------------------------------------------------------------------------------- sizes


def test_a_trimmed_encoder_is_as_large_as_one_made_with_that_vocabulary(tmp_path: Path) -> None:
    encoder = build("xlm-roberta", tmp_path)
    trimmed = trim(encoder)
    config = copy.deepcopy(encoder.model.config)
    config.vocab_size = len(trimmed.kept)
    small = parameter_count(transformers.XLMRobertaModel(config))
    assert parameter_count(encoder.model) == small


def test_the_sizes_on_the_page_are_those_of_the_shapes() -> None:
    """XLM-R base without weights, and what each way of training leaves of it."""
    shape = {"max_position_embeddings": 514, "type_vocab_size": 1}
    with torch.device("meta"):
        whole, small = (
            transformers.XLMRobertaModel(transformers.XLMRobertaConfig(vocab_size=rows, **shape))
            for rows in (250_002, 26_344)
        )
    every, bottom = (parameter_count(part).all for part in (whole, whole.embeddings))
    six = sum(parameter_count(layer).all for layer in whole.encoder.layer[:6])
    adapters = 12 * 2 * 8 * (768 + 768)
    assert sizes_on(PAGE.read_text(encoding="utf-8")) == {
        "everything": (every, every),
        "vocabulary trimmed to 26,344 pieces": (parameter_count(small).all,) * 2,
        "embeddings frozen": (every - bottom, every),
        "embeddings and 6 layers frozen": (every - bottom - six, every),
        "LoRA, rank 8, queries and values": (adapters, every + adapters),
    }


def sizes_on(page: str) -> dict[str, tuple[int, int]]:
    page = page.partition("### What it saves")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| ([\d,]+) \|", page, re.M)
    return {name: (int(a.replace(",", "")), int(b.replace(",", ""))) for name, a, b in rows}
