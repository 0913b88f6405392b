"""Bodies: padding changes nothing, torch's packed networks say the same, and formulas by hand."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from calque.errors import BadInput, BadSetting
from calque.transfer.bodies import BiLstm, LayerMix, make_body, make_places

D = 6
OPTIONS: dict[str, dict[str, Any]] = {
    "none": {"kind": "none"},
    "bilstm": {"kind": "bilstm", "width": 5},
    "transformer": {"kind": "transformer", "layers": 2},
    "narrowed": {"kind": "transformer", "layers": 2, "width": 4, "heads": 2, "norm": "pre"},
    "waves": {"kind": "transformer", "layers": 1, "positions": "sinusoidal"},
    "places": {"kind": "transformer", "layers": 1, "positions": "learned", "longest": 16},
}


def rows(lengths: list[int], seed: int = 0, extra: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths) + extra) < torch.tensor(lengths)[:, None]
    return torch.randn(*mask.shape, D, generator=draw), mask


@pytest.mark.parametrize("name", OPTIONS)
@settings(max_examples=15)
@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    extra=st.integers(0, 5),
    seed=st.integers(0, 1000),
    gradients=st.booleans(),
)
def test_padding_changes_nothing(
    name: str, lengths: list[int], extra: int, seed: int, gradients: bool
) -> None:
    torch.manual_seed(seed)
    body = make_body(d=D, **OPTIONS[name]).eval()
    vectors, mask = rows(lengths, seed, extra)
    vectors[~mask] = 1000.0
    with torch.set_grad_enabled(gradients):  # torch takes another way through attention without gradients
        together = body(vectors, mask)
        assert together.shape == (*mask.shape, body.out)
        for k, length in enumerate(lengths):
            alone = body(vectors[k : k + 1, :length], mask[k : k + 1, :length])
            torch.testing.assert_close(together[k, :length], alone[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "none"])
def test_every_unit_sees_the_whole_row(name: str) -> None:
    torch.manual_seed(0)
    body = make_body(d=D, **OPTIONS[name]).eval()
    vectors, mask = rows([5])
    vectors.requires_grad_()
    for unit in range(5):
        (seen,) = torch.autograd.grad(body(vectors, mask)[0, unit].square().sum(), vectors)
        assert bool((seen[0].abs().sum(-1) > 0).all())


def test_the_recurrent_body_is_torchs_packed_one() -> None:
    torch.manual_seed(0)
    body = BiLstm(D, width=4, layers=2).eval()
    packed = torch.nn.LSTM(D, 4, 2, batch_first=True, bidirectional=True)
    names = {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}
    with torch.no_grad():
        for layer, (forth, back) in enumerate(zip(body.forth, body.back, strict=True)):
            for name in names:
                plain = name.replace("l0", f"l{layer}")
                getattr(packed, plain).copy_(getattr(forth, name))
                getattr(packed, f"{plain}_reverse").copy_(getattr(back, name))
    lengths = [3, 7, 1, 6]
    vectors, mask = rows(lengths)
    given_packed = pack_padded_sequence(
        vectors, torch.tensor(lengths), batch_first=True, enforce_sorted=False
    )
    expected, _ = pad_packed_sequence(packed(given_packed)[0], batch_first=True)
    torch.testing.assert_close(body(vectors, mask)[mask], expected[mask])


def test_layers_are_mixed_as_said() -> None:
    stacked = torch.randn(3, 2, 4, D, generator=torch.Generator().manual_seed(0))
    by_hand = stacked[0] + stacked[1] + stacked[2]
    torch.testing.assert_close(LayerMix(3, "sum")(stacked), by_hand)
    torch.testing.assert_close(LayerMix(3, "mean")(stacked), by_hand / 3)
    weighted = LayerMix(3, "weighted")
    torch.testing.assert_close(weighted(stacked), by_hand / 3)
    with torch.no_grad():
        weighted.weights.copy_(torch.tensor([0.0, math.log(2.0), math.log(5.0)]))
        weighted.gamma.fill_(4.0)
    torch.testing.assert_close(weighted(stacked), 4 * (stacked[0] + 2 * stacked[1] + 5 * stacked[2]) / 8)
    weighted(stacked).square().sum().backward()
    assert weighted.weights.grad is not None and bool((weighted.weights.grad != 0).all())


def test_one_layer_stays_as_it_is() -> None:
    mix = LayerMix(1, "weighted")
    stacked = torch.randn(1, 2, 3, D)
    assert torch.equal(mix(stacked), stacked[0]) and not list(mix.parameters())


def test_waves_are_those_of_the_paper() -> None:
    d, units = 5, 7
    added = make_places("sinusoidal", d, 512)(torch.zeros(1, units, d))[0]
    for place in range(units):
        for column in range(d):
            angle = place / 10_000 ** (2 * (column // 2) / d)
            wave = math.sin(angle) if column % 2 == 0 else math.cos(angle)
            assert float(added[place, column]) == pytest.approx(wave, abs=1e-5)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_order_matters_only_with_positions(positions: str) -> None:
    turn = torch.tensor([2, 0, 3, 1])
    vectors, mask = rows([4])
    torch.manual_seed(0)
    without = make_body("transformer", D, layers=1).eval()
    torch.testing.assert_close(without(vectors[:, turn], mask), without(vectors, mask)[:, turn])
    told = make_body("transformer", D, layers=1, positions=positions).eval()
    assert not torch.allclose(told(vectors[:, turn], mask), told(vectors, mask)[:, turn], atol=1e-4)


def test_attention_layers_begin_different() -> None:
    torch.manual_seed(0)
    first, second = make_body("transformer", D, layers=2).layers.layers
    assert not torch.equal(first.linear1.weight, second.linear1.weight)
    assert not torch.equal(first.self_attn.in_proj_weight, second.self_attn.in_proj_weight)


def test_widths_and_parts_by_kind() -> None:
    assert make_body("bilstm", 10).out == 400 and len(make_body("bilstm", 10).forth) == 2
    assert make_body("transformer", 10).out == 10 and len(make_body("transformer", 10).layers.layers) == 4
    assert make_body("transformer", 10, width=24).layers.layers[0].self_attn.num_heads == 12


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "lstm"},
        {"kind": "bilstm", "width": 0},
        {"kind": "bilstm", "layers": 0},
        {"kind": "none", "dropout": 1.0},
        {"kind": "transformer", "heads": 4},
        {"kind": "transformer", "norm": "both"},
        {"kind": "transformer", "positions": "some"},
        {"kind": "transformer", "positions": "learned", "longest": 0},
    ],
)
def test_options_out_of_bounds_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        make_body(d=D, **options)


def test_rows_and_layers_beyond_what_was_announced_are_refused() -> None:
    vectors, mask = rows([9])
    with pytest.raises(BadInput, match="8 learned places"):
        make_body("transformer", D, positions="learned", longest=8)(vectors, mask)
    with pytest.raises(BadInput, match="3 were announced"):
        LayerMix(3)(torch.zeros(2, 1, 1, D))
    with pytest.raises(BadSetting):
        LayerMix(2, "concat")
