"""Random twins of encoders."""

import numpy as np
import pytest
import tiny_encoders
import torch

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.cached import CachedEncoder
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.static import StaticEncoder, WordTable
from calque.encoders.untrained import untrained
from calque.types import MapKey, Sentences, Shift, SpaceMap, Vocabulary

TEXT = Sentences.of("en", [["The", "cat", "sat"], ["a", "dog"]])


@pytest.mark.parametrize("family", tiny_encoders.FAMILIES)
def test_it_is_built_alike_and_knows_nothing_of_the_weights(family: str) -> None:
    encoder = tiny_encoders.build(family)
    twin = untrained(encoder, seed=1)
    assert isinstance(twin, HuggingFaceEncoder)
    assert (twin.width, twin.depth, twin.tokenizer) == (encoder.width, encoder.depth, encoder.tokenizer)
    mine, theirs = (one.sentence_vectors(TEXT, layers=[0, 3]) for one in (encoder, twin))
    assert mine.shape == theirs.shape and not np.allclose(mine, theirs, atol=1e-2)
    again, other = untrained(encoder, seed=1), untrained(encoder, seed=2)
    assert again is not None and other is not None
    assert again.fingerprint == twin.fingerprint != other.fingerprint != encoder.fingerprint
    assert not twin.model.training


def test_what_is_around_an_encoder_is_left_behind_and_the_draw_disturbs_nobody() -> None:
    inner = tiny_encoders.build("bert", prefix="the")
    maps = {MapKey("en", "en", 1): SpaceMap((Shift(np.ones(24, np.float32)),))}
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    twin = untrained(AlignedEncoder(CachedEncoder(inner), maps, "en"))
    assert torch.equal(torch.rand(1), expected)
    assert isinstance(twin, HuggingFaceEncoder) and twin.options.prefix == "the"


def test_static_vectors_have_no_architecture() -> None:
    table = WordTable(Vocabulary.of(["cat"]), np.ones((1, 3), np.float32))
    assert untrained(StaticEncoder({"en": table})) is None
