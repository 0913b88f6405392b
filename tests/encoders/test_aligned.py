"""Aligned encoders: maps are applied, refused where there are none, and survive the disk."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from calque.align.linear import LinearAligner
from calque.align.sources import LinkedWords
from calque.encoders.aligned import AlignedEncoder, MappedLayers, load_maps, save_maps
from calque.encoders.cached import CachedEncoder
from calque.encoders.open import open_encoder, trained_prefix
from calque.encoders.wrapped import Wrapped
from calque.errors import BadInput, BadSetting
from calque.files import SUMS, Cache
from calque.geometry.solvers import Method
from calque.progress import shown
from calque.text.names import pair_names
from calque.types import MapKey, Matrix, Scale, Sentences, Shift, SpaceMap, States, TextBatch, Unit
from planted import orthogonal, planted


def test_saved_and_loaded_maps_give_the_same_vectors(tmp_path: Path) -> None:
    encoder, pairs, _ = planted()
    text = pairs["xx"].bitext.target
    for method in (Method.CENTRED_ROTATION, Method.ITERATIVE_NORMALISATION, Method.STANDARDISE):
        aligned = LinearAligner(method).fit(encoder, [LinkedWords(pairs["xx"])], (1, 2))
        folder = tmp_path / method.value
        folder.mkdir()
        save_maps(folder, aligned)
        again = load_maps(folder, encoder)
        assert again.fingerprint == aligned.fingerprint
        assert again.seen == aligned.seen and again.about["method"] == method.value
        for layers in ((0, 1, 2), (2,)):
            mine = aligned.word_vectors(text, layers=layers).vectors
            assert np.array_equal(mine, again.word_vectors(text, layers=layers).vectors)


def test_the_sentences_that_were_read_are_kept(tmp_path: Path) -> None:
    encoder, pairs, _ = planted()
    aligned = LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (1,))
    assert set(pair_names(pairs["xx"].bitext).tolist()) >= set(aligned.read.tolist()) != set()
    save_maps(tmp_path, aligned)
    assert load_maps(tmp_path, encoder).read.tolist() == aligned.read.tolist()
    (tmp_path / "seen.sentences.npy").write_bytes(b"other")
    with pytest.raises(BadInput, match="is damaged"):
        load_maps(tmp_path, encoder)
    (tmp_path / SUMS).unlink()
    with pytest.raises(BadInput, match="not the names of sentence pairs"):
        load_maps(tmp_path, encoder)
    (tmp_path / "seen.sentences.npy").unlink()
    assert not len(load_maps(tmp_path, encoder).read), "of older folders nothing is known"


def test_layers_on_disk_are_mapped_one_at_a_time(tmp_path: Path) -> None:
    encoder, pairs, _ = planted()
    aligned = LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (0, 1, 2))
    kept = replace(aligned, inner=CachedEncoder(encoder, Cache(tmp_path)))
    text = pairs["xx"].bitext.target
    found, plain = (one.word_vectors(text, layers=(0, 1, 2)) for one in (kept, aligned))
    assert isinstance(found.vectors, MappedLayers) and found.vectors.shape == plain.vectors.shape
    for layer in (2, 0, 1):
        assert np.allclose(found.layer(layer), plain.layer(layer), atol=2e-2), "as the cache rounds"
        assert np.array_equal(found.layer(layer), found.vectors[layer])
    assert np.array_equal(np.asarray(found.vectors), np.stack(list(found.vectors)))
    assert np.array_equal(found.vectors[:, :2], np.asarray(found.vectors)[:, :2])


def test_its_fingerprint_follows_that_of_what_is_inside() -> None:
    """Which changes where a lack of memory has halved its batches."""
    encoder, pairs, _ = planted()

    class Halved(Wrapped):
        inner, fingerprint = encoder, "before"

    inside = Halved()
    fitted = LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (1,))
    aligned = replace(fitted, inner=inside)
    before = aligned.fingerprint
    inside.fingerprint = "after"
    assert aligned.fingerprint == replace(aligned).fingerprint != before
    inside.fingerprint = "before"
    assert aligned.fingerprint == before != fitted.fingerprint


def test_a_layer_without_a_map_stays_as_it_is() -> None:
    encoder, pairs, _ = planted()
    aligned = LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (2,))
    text = pairs["xx"].bitext.target
    plain, moved = (one.word_vectors(text, layers=(1, 2)) for one in (encoder, aligned))
    assert np.array_equal(plain.layer(1), moved.layer(1))
    assert not np.allclose(plain.layer(2), moved.layer(2))


def test_layers_that_were_not_aligned_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    encoder, pairs, _ = planted()
    aligned = LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (1,))
    aligned = replace(aligned, about={**aligned.about, "method": "told-once"})
    with shown():
        for _ in range(2):
            aligned.word_vectors(pairs["xx"].bitext.target, layers=(0, 1, 2))
            aligned.word_vectors(pairs["xx"].bitext.target, layers=(1,))
    assert capsys.readouterr().err.count("told-once has no map at layers 0, 2: it was not aligned there") == 1


def test_a_language_without_a_map_is_refused() -> None:
    encoder, pairs, _ = planted(("en", "xx", "yy"))
    aligned = LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (1,))
    with pytest.raises(BadSetting, match=r"no map for language 'yy'.*en, xx"):
        aligned.word_vectors(pairs["yy"].bitext.target, layers=(1,))
    with pytest.raises(BadSetting, match="en and yy meet"):
        aligned.meeting(("en", "yy"))


def test_states_are_mapped_as_vectors_are_and_keep_their_gradient() -> None:
    rng = np.random.default_rng(0)
    steps = (
        Unit(),
        Shift(rng.normal(size=4).astype(np.float32)),
        Scale(rng.normal(size=4).astype(np.float32)),
        Matrix(orthogonal(4, 1).astype(np.float32)),
    )
    hidden = torch.tensor(rng.normal(size=(2, 3, 4)), dtype=torch.float32, requires_grad=True)

    class Inner:
        name, width, depth, languages, fingerprint = "inner", 4, 1, None, "inner"

        def states(self, batch: TextBatch, layers: tuple[int, ...]) -> States:
            return States((1,), (hidden,))

    space_map = SpaceMap(steps)
    aligned = AlignedEncoder(Inner(), {MapKey("en", "en", 1): space_map}, "en")
    (moved,) = aligned.states(type("Batch", (), {"language": "en"})(), (1,)).hidden
    assert np.allclose(moved.detach().numpy(), space_map.apply(hidden.detach().numpy()), atol=1e-6)
    moved.sum().backward()
    assert hidden.grad is not None and torch.isfinite(hidden.grad).all()


def test_broken_maps_are_named(tmp_path: Path) -> None:
    encoder, pairs, _ = planted()
    aligned = LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (1,))
    save_maps(tmp_path, aligned)
    (tmp_path / "maps.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(BadInput, match=r"maps\.safetensors: is damaged"):
        load_maps(tmp_path, encoder)
    (tmp_path / SUMS).unlink()
    with pytest.raises(BadInput, match="maps cannot be read"):
        load_maps(tmp_path, encoder)


def test_maps_of_another_width_are_refused(tmp_path: Path) -> None:
    encoder, pairs, _ = planted()
    save_maps(tmp_path, LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (1,)))
    with pytest.raises(BadInput, match="width 8"):
        load_maps(tmp_path, planted(width=8)[0])


def test_empty_text_has_no_vectors() -> None:
    encoder, pairs, _ = planted()
    aligned = LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (1,))
    found = aligned.word_vectors(Sentences.of("xx", []), layers=(1,))
    assert found.layer(1).shape == (0, 16)


@pytest.mark.parametrize(
    ("file", "data", "told"),
    [
        ("alignment.json", b"[]", "its maps cannot be read"),
        ("alignment.json", b'{"maps": 5}', "its maps cannot be read"),
        ("alignment.json", b"[" * 5000, "nested too deep"),
        ("alignment.json", b'{"maps": [], "space": "en", "pooling": "median"}', "pooling 'median'"),
        ("maps.safetensors", b"\xff" * 20, "its maps cannot be read"),
        ("seen.tsv.gz", b"no gzip", "broken compressed file"),
    ],
)
def test_folders_that_are_broken(tmp_path: Path, file: str, data: bytes, told: str) -> None:
    encoder, pairs, _ = planted()
    save_maps(tmp_path, LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (1,)))
    (tmp_path / SUMS).unlink()  # of a folder with its checksums, a changed file is damage
    (tmp_path / file).write_bytes(data)
    with pytest.raises(BadInput, match=told):
        load_maps(tmp_path, encoder)


@pytest.mark.parametrize(
    "held",
    ["[]", '{"encoder": null}', '{"encoder": "e"}', '{"encoder": ["e"]}']
    + [f'{{"encoder": {{"{key}": {value}}}}}' for key, value in (("max_length", '"8"'), ("max_length", "[]"))]
    + [f'{{"encoder": {{"{key}": {value}}}}}' for key, value in (("prefix", "5"), ("name", "[]"))],
)
def test_an_account_of_the_encoder_of_another_shape(tmp_path: Path, held: str) -> None:
    (tmp_path / "alignment.json").write_text(held, encoding="utf-8")
    for door in (open_encoder, trained_prefix):
        with pytest.raises(BadInput, match=r"alignment\.json: .*align again"):
            door(str(tmp_path))


@pytest.mark.parametrize("name", ["/dev/zero", "../../../../../../../../dev/zero", "zero"])
def test_checksums_name_files_of_their_folder(tmp_path: Path, name: str) -> None:
    encoder, pairs, _ = planted()
    save_maps(tmp_path, LinearAligner().fit(encoder, [LinkedWords(pairs["xx"])], (2,)))
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / SUMS).write_text(json.dumps({name: 0}), encoding="utf-8")
    with pytest.raises(BadInput, match="is damaged"):
        load_maps(tmp_path, encoder)
