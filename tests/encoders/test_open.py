"""One encoder in memory however often it is opened, as long as it is the same."""

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_encoders import build

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.encoders.open import open_encoder, save_aligned
from calque.errors import BadSetting
from calque.types import MapKey, Shift, SpaceMap


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build("bert").save(tmp_path / "bert")
    return tmp_path / "bert"


def opened(spec: Path, **options: object) -> HuggingFaceEncoder:
    encoder = open_encoder(str(spec), EncoderOptions(**options))  # type: ignore[arg-type]
    assert isinstance(encoder, HuggingFaceEncoder)
    return encoder


def test_an_encoder_in_use_is_not_read_again(folder: Path) -> None:
    first = opened(folder)
    assert opened(folder) is first and opened(folder, prefix="") is first
    assert opened(folder, prefix="query: ") is not first and opened(folder, max_length=9) is not first
    watched = weakref.ref(first)
    del first
    gc.collect()
    assert watched() is None, "an encoder that nobody uses is let go"


def test_aligned_encoders_share_the_weights_they_link_to(folder: Path, tmp_path: Path) -> None:
    plain = opened(folder)
    shift = SpaceMap((Shift(np.ones(plain.width, np.float32)),))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        save_aligned(
            tmp_path / name, AlignedEncoder(plain, {MapKey("de", "en", 3): shift}, "en", "mean", {}, {})
        )
    one, two = (open_encoder(str(tmp_path / name)) for name in ("one", "two"))
    assert isinstance(one, AlignedEncoder) and isinstance(two, AlignedEncoder)
    assert one.inner is two.inner is plain


def test_weights_changed_in_memory_or_on_disk_are_read_anew(folder: Path) -> None:
    first = opened(folder)
    with torch.no_grad():
        next(first.model.parameters()).add_(1)
    second = opened(folder)
    assert second is not first and second.fingerprint != first.fingerprint
    changed = build("bert")
    with torch.no_grad():
        next(changed.model.parameters()).mul_(2)
    changed.save(folder)
    third = opened(folder)
    assert third is not second and third.fingerprint != second.fingerprint


def test_a_name_like_that_of_a_bundled_encoder_is_a_mistake() -> None:
    with pytest.raises(BadSetting, match="did you mean e5-small-q4"):
        open_encoder("e5-small-q5")
