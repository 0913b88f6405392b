"""Freezing and LoRA: what moves, what does not, and that a merged encoder is an ordinary one."""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from more_encoders import BUILT, TEXTS, build, train

from calque.encoders.encoder import HuggingFaceEncoder
from calque.errors import BadSetting, MissingExtra
from calque.training.partial import add_lora, freeze, parameter_count
from calque.training.trim import trim_vocabulary, used_pieces

STACKED = set(BUILT) - {"albert", "t5-encoder"} | {"marian"}
QUERIES_AND_VALUES = {
    "bert": {"query", "value"},
    "xlm-roberta": {"query", "value"},
    "distilbert": {"q_lin", "v_lin"},
    "mpnet": {"q", "v"},
    "deberta-v2": {"query_proj", "value_proj"},
    "modernbert": {"Wqkv"},
    "t5": {"q", "v"},
    "marian": {"q_proj", "v_proj"},
    "llama": {"q_proj", "v_proj"},
    "albert": {"query", "value"},
}


def weights(encoder: HuggingFaceEncoder) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in encoder.body.named_parameters()}


def moved(encoder: HuggingFaceEncoder, before: dict[str, torch.Tensor]) -> set[str]:
    return {name for name, now in weights(encoder).items() if not torch.equal(now, before[name])}


def vectors(encoder: HuggingFaceEncoder) -> np.ndarray:
    layers = range(encoder.depth + 1)
    return np.concatenate([encoder.word_vectors(text, layers=layers).vectors for text in TEXTS], axis=1)


# ------------------------------------------------------------------------------------------ freezing


@pytest.mark.parametrize("family", sorted(STACKED))
@pytest.mark.parametrize("layers", [0, 2])
def test_vectors_up_to_the_frozen_layer_stay_and_those_above_move(
    family: str, layers: int, tmp_path: Path
) -> None:
    encoder = build(family, tmp_path)
    before = vectors(encoder)
    freeze(encoder, embeddings=True, layers=layers)
    train(encoder)
    same = [np.array_equal(a, b) for a, b in zip(before, vectors(encoder), strict=True)]
    assert same == [layer <= layers for layer in range(4)]


@pytest.mark.parametrize("family", sorted(STACKED))
def test_only_what_was_named_is_frozen(family: str, tmp_path: Path) -> None:
    whole, low, bottom = (build(family, tmp_path) for _ in range(3))
    freeze(low, layers=1)
    freeze(bottom, embeddings=True)
    table = bottom.body.get_input_embeddings().weight
    assert not table.requires_grad and low.body.get_input_embeddings().weight.requires_grad
    for frozen, block in ((low, {0}), (bottom, set())):
        assert frozen.blocks is not None
        held = [all(not p.requires_grad for p in block.parameters()) for block in frozen.blocks]
        free = [all(p.requires_grad for p in block.parameters()) for block in frozen.blocks]
        assert held == [i in block for i in range(3)] and free == [i not in block for i in range(3)]
    assert parameter_count(whole.body).trained > parameter_count(low.body).trained


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "distilbert", "mpnet", "deberta-v2"])
def test_embeddings_are_all_and_only_those_that_the_family_calls_so(family: str, tmp_path: Path) -> None:
    encoder = build(family, tmp_path)
    freeze(encoder, embeddings=True)
    for name, parameter in encoder.body.named_parameters():
        assert parameter.requires_grad == (not name.startswith("embeddings.")), name


def test_layers_that_are_not_there_or_not_separate_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="0 to 3"):
        freeze(build("bert", tmp_path), layers=4)
    with pytest.raises(BadSetting, match="no stack of separate layers"):
        freeze(build("albert", tmp_path), layers=1)
    freeze(shared := build("albert", tmp_path), embeddings=True)
    assert 0 < parameter_count(shared.body).trained < parameter_count(shared.body).all


# ---------------------------------------------------------------------------------------------- LoRA


@pytest.mark.parametrize("family", sorted(QUERIES_AND_VALUES))
def test_adapters_alone_are_trained_and_merging_keeps_the_vectors(family: str, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    encoder = build(family, tmp_path)
    plain, before, count = vectors(encoder), weights(encoder), parameter_count(encoder.model)
    lora = add_lora(encoder, rank=2, alpha=4)
    assert np.array_equal(vectors(encoder), plain)
    trained = {name for name, p in encoder.model.named_parameters() if p.requires_grad}
    assert {name.split(".lora_")[0].rpartition(".")[2] for name in trained} == QUERIES_AND_VALUES[family]
    assert parameter_count(encoder.model).trained == parameter_count(encoder.model).all - count.all

    train(encoder, lr=0.05)
    held = {name.replace(".base_layer", ""): value for name, value in weights(encoder).items()}
    assert all(torch.equal(held[name], value) for name, value in before.items())
    adapted = vectors(encoder)
    assert not np.allclose(adapted, plain, atol=1e-3)

    lora.merge()
    assert weights(encoder).keys() == before.keys()
    assert parameter_count(encoder.model) == count
    np.testing.assert_allclose(vectors(encoder), adapted, atol=1e-5)
    lora.merge()
    np.testing.assert_allclose(vectors(encoder), adapted, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_the_saved_encoder_needs_no_peft_and_is_not_taken_for_the_one_it_was_read_from(
    family: str, tmp_path: Path
) -> None:
    pytest.importorskip("peft")
    build(family, tmp_path).save(tmp_path / "before")
    encoder = HuggingFaceEncoder.load(str(tmp_path / "before"))
    first = encoder.fingerprint
    lora = add_lora(encoder)
    with pytest.raises(BadSetting, match="merge"):
        encoder.save(tmp_path / "after")
    train(encoder, lr=0.05)
    lora.merge()
    assert encoder.directory is None and encoder.fingerprint != first
    encoder.save(tmp_path / "after")
    assert {file.name for file in (tmp_path / "after").iterdir()} == {
        file.name for file in (tmp_path / "before").iterdir()
    }
    again = transformers.AutoModel.from_pretrained(tmp_path / "after")
    assert {name for name, _ in again.named_parameters()} == weights(encoder).keys()
    assert np.array_equal(vectors(HuggingFaceEncoder.load(str(tmp_path / "after"))), vectors(encoder))


def test_adapters_are_the_low_rank_product_of_the_paper(tmp_path: Path) -> None:
    """Hu et al. 2021: W + alpha / rank · B A."""
    pytest.importorskip("peft")
    encoder = build("bert", tmp_path)
    before = weights(encoder)
    lora = add_lora(encoder, rank=2, alpha=6)
    train(encoder, lr=0.05)
    now, name = weights(encoder), "encoder.layer.1.attention.self.query"
    a, b = (now[f"{name}.lora_{side}.default.weight"] for side in "AB")
    lora.merge()
    wanted = before[f"{name}.weight"] + 6 / 2 * b @ a
    torch.testing.assert_close(weights(encoder)[f"{name}.weight"], wanted, atol=1e-6, rtol=0)


def test_the_seed_decides_the_adapters_and_leaves_other_randomness_alone(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    drawn = []
    for state, seed in ((1, 0), (2, 0), (1, 5)):
        encoder = build("bert", tmp_path)
        torch.manual_seed(state)
        expected = torch.get_rng_state()
        add_lora(encoder, seed=seed)
        assert torch.equal(torch.get_rng_state(), expected)
        drawn.append(torch.cat([p.flatten() for p in encoder.body.parameters() if p.requires_grad]))
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_frozen_layers_and_a_trimmed_vocabulary_go_together_with_adapters(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    encoder = build("xlm-roberta", tmp_path)
    before = vectors(encoder)
    whole = weights(encoder)
    trimmed = trim_vocabulary(encoder, used_pieces(encoder, TEXTS))
    lora = add_lora(encoder)
    freeze(encoder, layers=2)
    train(encoder, lr=0.05)
    lora.merge()
    trimmed.restore()
    after = vectors(encoder)
    assert [np.array_equal(a, b) for a, b in zip(before, after, strict=True)] == [True, True, True, False]
    assert moved(encoder, whole) == {
        f"encoder.layer.2.attention.self.{which}.weight" for which in ("query", "value")
    }


def test_targets_by_name_and_mistakes(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    encoder = build("bert", tmp_path)
    for wrong in (dict(rank=0), dict(alpha=0), dict(targets=["query", "qkv"]), dict(targets=[])):
        with pytest.raises(BadSetting):
            add_lora(encoder, **wrong)
    assert parameter_count(encoder.model).trained == parameter_count(encoder.model).all
    add_lora(encoder, rank=3, targets=["dense"])
    # Each layer has three of them: 24 to 24, 24 to 48 and back; the pooler has one more.
    assert parameter_count(encoder.body).trained == 3 * (3 * (48 + 72 + 72) + 48)
    with pytest.raises(BadSetting, match="already"):
        add_lora(encoder)


def test_without_peft_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtra, match=r"calque\[lora\]"):
        add_lora(build("bert", tmp_path))


def test_a_parameter_in_two_places_counts_once() -> None:
    one = torch.nn.Linear(3, 2)
    both = torch.nn.ModuleList([one, copy.deepcopy(one)])
    both[1].weight = one.weight
    one.bias.requires_grad_(False)
    assert parameter_count(both) == (8, 10)
