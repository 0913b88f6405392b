"""Vectors for heads: each from its own window, kept or live alike, moved by the map of its own language."""

from typing import Any

import numpy as np
import pytest
import torch
from paired_encoders import paired

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.cached import CachedEncoder
from calque.encoders.encoder import HuggingFaceEncoder
from calque.errors import BadSetting
from calque.text.labelled.items import TextPair
from calque.transfer.inputs import Inputs, pair_inputs, word_inputs
from calque.transfer.vectors import Kept, Live, Space
from calque.types import MapKey, Matrix, Shift, SpaceMap

WORDS = ["cat", "Straßenkehrer", "Кошка", "it's", "mat", "東京", "\u200b", "dog"]
NOWHERE = Space(None, (1, 3))


@pytest.fixture(scope="module")
def encoder() -> HuggingFaceEncoder:
    return paired("bert")


@pytest.fixture(scope="module")
def sentences(encoder: HuggingFaceEncoder) -> Inputs:
    """Sentences of which some lie in several windows."""
    random = np.random.default_rng(0)
    texts = [[WORDS[k] for k in random.integers(0, len(WORDS), size)] for size in (3, 20, 1, 9, 33, 2)]
    return word_inputs(texts, "de", encoder.reader, longest=11, overlap=3)


@pytest.fixture(scope="module")
def pairs(encoder: HuggingFaceEncoder) -> Inputs:
    """Two texts of two languages in a row, in either order."""
    items = [
        TextPair("the cat", "die Katze saß", "x", ("en", "de")),
        TextPair("Кошка", "it's a mat", "x", ("ru", "en")),
        TextPair("Matte", "der Hund", "x", ("de", "de")),
    ]
    return pair_inputs(items, encoder.reader, longest=30, every_piece=True)


def kept(encoder: HuggingFaceEncoder, inputs: Inputs, space: Space, pooling: Any = "first") -> Kept:
    return Kept(CachedEncoder(encoder), inputs, space, pooling, torch.device("cpu"))


def by_hand(
    encoder: HuggingFaceEncoder, inputs: Inputs, sequence: int, layer: int, pooling: str
) -> np.ndarray:
    """The vectors of one sequence, a row through the model at a time. Shape: (units, d)."""
    rows, out = inputs.rows, []
    for unit in inputs.order[inputs.first[sequence] : inputs.first[sequence + 1]].tolist():
        span = slice(*rows.offsets[rows.units.sentence[unit] :][:2].tolist())
        told = {"input_ids": rows.pieces[span], "token_type_ids": rows.kind[span]}
        with torch.no_grad():
            found = encoder.model(
                **{name: torch.from_numpy(one.astype(np.int64))[None] for name, one in told.items()},
                output_hidden_states=True,
            )
        own = found.hidden_states[layer][0, rows.units.start[unit] : rows.units.end[unit]]
        out.append((own[0] if pooling == "first" else own.mean(0)).numpy())
    return np.stack(out)


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("which", ["sentences", "pairs"])
def test_live_vectors_are_those_of_each_window(
    which: str, pooling: Any, encoder: HuggingFaceEncoder, request: pytest.FixtureRequest
) -> None:
    inputs: Inputs = request.getfixturevalue(which)
    chosen = np.arange(len(inputs))[::-1][:5].copy()
    vectors, mask = Live(encoder, inputs, NOWHERE, pooling).of(chosen)
    assert mask.sum(1).tolist() == inputs.lengths[chosen].tolist()
    assert vectors.shape == (2, *mask.shape, encoder.width) and not vectors[:, ~mask].any()
    for level, layer in enumerate((1, 3)):
        for place, sequence in enumerate(chosen.tolist()):
            expected = by_hand(encoder, inputs, sequence, layer, pooling)
            np.testing.assert_allclose(vectors[level, place][mask[place]].detach(), expected, atol=1e-5)


@pytest.mark.parametrize("numbers", [10**9, 4 * 24 * 10])
def test_kept_vectors_are_the_live_ones_rounded(
    encoder: HuggingFaceEncoder, sentences: Inputs, monkeypatch: pytest.MonkeyPatch, numbers: int
) -> None:
    monkeypatch.setattr("calque.encoders.anchors.BLOCK_NUMBERS", numbers)
    held, live = kept(encoder, sentences, NOWHERE), Live(encoder, sentences, NOWHERE, "first")
    for chosen in ([4, 0, 3], [1], [5, 2]):
        a, mask = held.of(np.array(chosen))
        b, other = live.of(np.array(chosen))
        assert (mask == other).all() and a.dtype == torch.float32
        torch.testing.assert_close(a, b.detach(), atol=4e-3, rtol=1e-3)
        assert (a == a.half().float()).all(), "as they lie in the cache"


def test_sizes_are_what_is_read(encoder: HuggingFaceEncoder, sentences: Inputs, pairs: Inputs) -> None:
    rows = sentences.rows
    for inputs in (sentences, pairs):
        expected = []
        for a, b in zip(inputs.first, inputs.first[1:], strict=False):
            own = set(inputs.rows.units.sentence[inputs.order[a:b]].tolist())
            expected.append(sum(int(inputs.rows.lengths[k]) for k in own))
        assert Live(encoder, inputs, NOWHERE, "first").sizes.tolist() == expected
    assert max(Live(encoder, sentences, NOWHERE, "first").sizes) > 3 * rows.lengths.max()
    assert kept(encoder, sentences, NOWHERE).sizes.tolist() == [3, 20, 1, 9, 33, 2]


# -------------------------------------------------------------------------------------------------- maps

SHIFTS = {"en": 10.0, "de": -20.0, "ru": 300.0}


def planted(encoder: HuggingFaceEncoder) -> Space:
    """Every language shifted by another number at layer 3; layer 1 has no maps."""
    maps = {
        MapKey(code, "en", 3): SpaceMap((Shift(np.full(24, by, np.float32)),)) for code, by in SHIFTS.items()
    }
    return Space(AlignedEncoder(encoder, maps, "en"), (1, 3))


@pytest.mark.parametrize("which", ["live", "kept"])
def test_every_unit_is_moved_by_the_map_of_its_language(
    which: str, encoder: HuggingFaceEncoder, pairs: Inputs
) -> None:
    def vectors(space: Space) -> Any:
        made = Live(encoder, pairs, space, "first") if which == "live" else kept(encoder, pairs, space)
        return made.of(np.array([2, 0, 1]))

    (plain, mask), (moved, _) = vectors(NOWHERE), vectors(planted(encoder))
    assert (plain[0] == moved[0]).all(), "a layer without a map stays"
    shift = (moved[1] - plain[1])[mask].detach()
    spoken = np.concatenate([pairs.spoken[pairs.first[k] : pairs.first[k + 1]] for k in (2, 0, 1)])
    expected = torch.tensor([SHIFTS[pairs.languages[code]] for code in spoken])
    assert set(expected.tolist()) == set(SHIFTS.values())
    torch.testing.assert_close(shift, expected[:, None].expand_as(shift), atol=1e-3, rtol=0)
    assert not moved[:, ~mask].any(), "padding is not moved"


def test_gradients_reach_the_encoder_through_a_map(sentences: Inputs) -> None:
    own = paired("bert")
    matrix = np.diag(np.arange(24, dtype=np.float32))
    space = Space(AlignedEncoder(own, {MapKey("de", "en", 3): SpaceMap((Matrix(matrix),))}, "en"), (3,))
    assert space.name == "en" and NOWHERE.name == ""
    plain = Live(own, sentences, Space(None, (3,)), "first").of(np.array([0]))[0]
    moved, _ = Live(own, sentences, space, "first").of(np.array([0]))
    torch.testing.assert_close(moved, plain * torch.arange(24.0))
    moved.square().sum().backward()
    slope = own.model.encoder.layer[0].attention.self.query.weight.grad
    assert slope is not None and slope.abs().sum() > 0


def test_a_language_without_a_map_is_refused(encoder: HuggingFaceEncoder, pairs: Inputs) -> None:
    maps = {MapKey("en", "en", 3): SpaceMap((Shift(np.ones(24, np.float32)),))}
    space = Space(AlignedEncoder(encoder, maps, "en"), (3,))
    with pytest.raises(BadSetting, match="no map for language 'de'"):
        Live(encoder, pairs, space, "first").of(np.array([0]))
    assert Space(AlignedEncoder(encoder, {}, ""), (3,)).aligned is None, (
        "aligned by training: nothing to move"
    )
