"""Encoders by language: routed, shared, saved, opened by name or folder."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_encoders
import torch
import transformers

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.bylanguage import LANGUAGES, PARTS, LanguageEncoders, LanguagesFile
from calque.encoders.cached import CachedEncoder
from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.encoders.open import open_encoder, save_aligned
from calque.encoders.static import StaticEncoder
from calque.encoders.untrained import untrained
from calque.encoders.wordtypes import in_one_piece
from calque.errors import BadInput, BadSetting
from calque.measure.breakdown import piece_counts
from calque.types import Bitext, MapKey, Sentences, Shift, SpaceMap

ENGLISH = Sentences.of("en", [["The", "cat", "sat"], ["a", "dog"]])
FAR = Sentences.of("far", [["Katze", "saß"], ["die", "Kinder", "lachten"]])
SEPARATE = ["embeddings", "encoder.layer.0"]


def part(seed: int, family: str = "bert", **options: Any) -> HuggingFaceEncoder:
    torch.manual_seed(seed)
    model, tokenizer = tiny_encoders.FAMILIES[family]()
    return HuggingFaceEncoder.from_model(model, tokenizer, f"{family} {seed}", EncoderOptions(**options))


def strangers() -> LanguageEncoders:
    return LanguageEncoders({"en": part(1), "far": part(2, "xlm-roberta")})


def relatives(separate: list[str] = SEPARATE) -> LanguageEncoders:
    """Two BERTs with equal weights but for the separate parts."""
    first, second = part(1), part(2)
    own = {name for name in second.model.state_dict() if any(name.startswith(f"{one}.") for one in separate)}
    copied = {name: value for name, value in first.model.state_dict().items() if name not in own}
    second.model.load_state_dict(copied, strict=False)
    return LanguageEncoders({"en": first, "far": second}, separate=separate, name="both")


def weights(encoder: HuggingFaceEncoder) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in encoder.model.named_parameters()}


# ---------------------------------------------------------------------------------------------- routing


@pytest.mark.parametrize("text", [ENGLISH, FAR], ids=["en", "far"])
def test_a_sentence_is_read_by_the_encoder_of_its_language(text: Sentences) -> None:
    both = strangers()
    alone = both.speaking(text.language)
    assert alone is both.parts[text.language] and alone.speaking("anything") is alone
    mine, theirs = (one.word_vectors(text, layers=[0, 3]) for one in (both, alone))
    assert np.array_equal(mine.vectors, theirs.vectors) and mine.vectors.shape[1] == len(text.ids)
    for pooling in ("mean", "first"):
        vectors = both.sentence_vectors(text, layers=[2], pooling=pooling)
        assert np.array_equal(vectors, alone.sentence_vectors(text, layers=[2], pooling=pooling))
    batch = both.batch(text)
    assert torch.equal(batch.pieces, alone.batch(text).pieces)
    assert torch.equal(both.states(batch, [3]).hidden[0], alone.states(batch, [3]).hidden[0])
    cached = CachedEncoder(both).word_vectors(text, layers=[3])
    assert np.allclose(cached.layer(3), theirs.layer(3), atol=2e-3)


def test_it_is_one_encoder_of_all_languages() -> None:
    both = strangers()
    assert both.languages == {"en", "far"} and (both.width, both.depth) == (24, 3)
    assert both.device.type == "cpu" and not both.model.training and both.shared() == []
    count = sum(p.numel() for one in both.parts.values() for p in one.model.parameters())
    assert sum(p.numel() for p in both.model.parameters()) == count
    both.model.train()
    assert all(one.model.training for one in both.parts.values())
    for language in ("de", ""):
        with pytest.raises(BadSetting, match=f"no encoder for language '{language}' .it has en, far"):
            both.word_vectors(Sentences.of(language, [["x"]]), layers=[0])


def test_languages_that_torch_has_names_for() -> None:
    both = LanguageEncoders({"to": part(1), "pop": part(2)})
    assert len(list(both.model.parameters())) == 2 * len(list(part(1).model.parameters()))


def test_the_fingerprint_tells_languages_weights_and_sharing_apart() -> None:
    one, other = part(1), part(2)
    made = [
        LanguageEncoders({"en": one, "far": other}),
        LanguageEncoders({"en": other, "far": one}),
        LanguageEncoders({"en": one, "de": other}),
        LanguageEncoders({"en": one, "far": one}),
        LanguageEncoders({"en": one, "far": one}, separate=[]),
    ]
    assert len({encoder.fingerprint for encoder in made}) == len(made)
    turned = LanguageEncoders({"far": other, "en": one}, name="another")
    assert turned.fingerprint == made[0].fingerprint


def test_encoders_of_other_sizes_do_not_go_together() -> None:
    small = transformers.BertConfig(vocab_size=200, **{**tiny_encoders.SIZES, "num_hidden_layers": 2})
    lower = HuggingFaceEncoder.from_model(transformers.BertModel(small), tiny_encoders.wordpiece(), "lower")
    with pytest.raises(BadSetting, match="one depth, not en 3, de 2"):
        LanguageEncoders({"en": part(1), "de": lower})
    with pytest.raises(BadSetting, match="no encoders"):
        LanguageEncoders({})


def test_pieces_are_those_of_each_language() -> None:
    both = strangers()
    bitext = Bitext.of(("en", "far"), list(ENGLISH), list(FAR))
    counts = piece_counts(both, bitext)
    assert counts is not None
    for side in (bitext.source, bitext.target):
        alone = piece_counts(both.speaking(side.language), bitext)
        assert alone is not None and np.array_equal(counts[side.ids], alone[side.ids])
    words = ["cat", "Katze", "a", "lachten"]
    for code in ("en", "far"):
        mine, theirs = (in_one_piece(one, code, words) for one in (both, both.parts[code]))
        assert np.array_equal(mine, theirs)


def test_a_random_floor_has_a_draw_for_each_language() -> None:
    for both in (strangers(), relatives()):
        twin = untrained(CachedEncoder(both), seed=4)
        assert isinstance(twin, LanguageEncoders) and twin.separate == both.separate
        assert len(twin.shared()) == len(both.shared())
        for text in (ENGLISH, FAR):
            a, b = (one.sentence_vectors(text, layers=[3]) for one in (both, twin))
            assert not np.allclose(a, b, atol=1e-2)
        again = untrained(both, seed=4)
        assert again is not None and again.fingerprint == twin.fingerprint
    first, second = (dict(one.model.named_parameters()) for one in twin.parts.values())
    name = "embeddings.word_embeddings.weight"
    assert not torch.equal(first[name], second[name])


# ---------------------------------------------------------------------------------------------- sharing


def test_a_step_in_one_language_moves_what_the_other_shares_and_nothing_else() -> None:
    both = relatives()
    first, second = both.parts.values()
    kept = len(both.shared())
    every = len(list(first.model.parameters()))
    own = sum(name.startswith(tuple(f"{one}." for one in SEPARATE)) for name in weights(first))
    assert kept == every - own and len(list(both.model.parameters())) == every + own
    both.hold_separate()
    before = weights(second)
    fingerprint = second.fingerprint
    optimiser = torch.optim.SGD([p for p in both.model.parameters() if p.requires_grad], lr=0.1)
    # The sum of a layer's last states is constant under its norm: squares with weights are not.
    hidden = both.states(both.batch(ENGLISH), [3]).hidden[0]
    (hidden.pow(2) * torch.arange(24)).sum().backward()
    optimiser.step()
    moved = {name for name, value in weights(second).items() if not torch.equal(value, before[name])}
    assert moved and all(name.startswith(("encoder.layer.1.", "encoder.layer.2.")) for name in moved)
    assert second.fingerprint != fingerprint


@pytest.mark.parametrize(
    ("name", "separate", "told"),
    [
        ("encoder.layer.1.output.dense.weight", SEPARATE, r"far and en do not share encoder\.layer\.1\.out"),
        ("embeddings.LayerNorm.bias", ["encoder.layer.0"], "do not share embeddings.LayerNorm.bias"),
        ("encoder.layer.1.output.dense.weight", ["encoder.layer.9"], r"no part 'encoder\.layer\.9'"),
    ],
)
def test_weights_that_are_said_to_be_shared_must_be_equal(name: str, separate: list[str], told: str) -> None:
    both = relatives(["encoder.layer.0"])
    first, second = both.parts.values()
    apart = HuggingFaceEncoder.from_model(transformers.BertModel(first.model.config), first.tokenizer, "b")
    apart.model.load_state_dict(second.model.state_dict())
    with torch.no_grad():
        dict(apart.model.named_parameters())[name].add_(1)
    with pytest.raises(BadInput, match=told):
        LanguageEncoders({"en": first, "far": apart}, separate=separate)


def test_weights_of_another_make_cannot_be_shared() -> None:
    with pytest.raises(BadInput, match="not the same shape"):
        LanguageEncoders({"en": part(1), "far": part(1, "xlm-roberta")}, separate=["encoder.layer.0"])


# ---------------------------------------------------------------------------------------------- on disk


@pytest.mark.parametrize("made", [strangers, relatives], ids=["strangers", "relatives"])
def test_what_was_saved_is_opened_as_it_was(made: Any, tmp_path: Path) -> None:
    both = made()
    both.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [PARTS, LANGUAGES]
    about = json.loads((tmp_path / LANGUAGES).read_text())
    assert about == {"format": 1, "languages": ["en", "far"], "separate": both.separate and SEPARATE}
    opened = open_encoder(str(tmp_path))
    assert isinstance(opened, LanguageEncoders) and opened.separate == both.separate
    for text in (ENGLISH, FAR):
        vectors = [one.sentence_vectors(text, layers=[0, 3]) for one in (both, opened)]
        assert np.array_equal(*vectors)
    first, second = (dict(one.model.named_parameters()) for one in opened.parts.values())
    tied = {name for name in first.keys() & second.keys() if first[name] is second[name]}
    assert len(tied) == len(both.shared()) == len(opened.shared())
    again = open_encoder(str(tmp_path), own=True)
    assert again.fingerprint == opened.fingerprint
    assert all(one.directory is not None for one in opened.parts.values()), "weights are not hashed in memory"
    with torch.no_grad():
        next(iter(opened.model.parameters())).add_(1)
    assert again.fingerprint != opened.fingerprint
    # Each is an ordinary checkpoint.
    assert transformers.AutoModel.from_pretrained(tmp_path / PARTS / "far").config.hidden_size == 24


def test_checkpoints_of_language_models_share_too_though_each_draws_its_own_pooler(tmp_path: Path) -> None:
    both = relatives()
    for code, one in both.parts.items():
        model = transformers.BertForMaskedLM(one.model.config)
        model.bert.load_state_dict(one.model.state_dict(), strict=False)
        model.save_pretrained(tmp_path / PARTS / code)
        one.tokenizer.save_pretrained(tmp_path / PARTS / code)
    LanguagesFile(("en", "far"), tuple(SEPARATE)).write(tmp_path)
    opened, again = (open_encoder(str(tmp_path), own=True) for _ in range(2))
    assert isinstance(opened, LanguageEncoders) and opened.fingerprint == again.fingerprint
    assert np.allclose(opened.sentence_vectors(FAR, layers=[3]), both.sentence_vectors(FAR, layers=[3]))


def test_maps_lie_beside_linked_checkpoints_and_are_opened_over_them(tmp_path: Path) -> None:
    relatives().save(tmp_path / "both")
    both = open_encoder(str(tmp_path / "both"))
    shift = SpaceMap((Shift(np.ones(24, np.float32)),))
    maps = {MapKey("far", "en", 3): shift, MapKey("en", "en", 3): SpaceMap()}
    (tmp_path / "aligned").mkdir()
    save_aligned(tmp_path / "aligned", AlignedEncoder(both, maps, "en"))
    held = Path(PARTS) / "far" / "model.safetensors"
    assert (tmp_path / "aligned" / held).samefile(tmp_path / "both" / held)
    aligned = open_encoder(str(tmp_path / "aligned"))
    assert isinstance(aligned, AlignedEncoder) and isinstance(aligned.inner, LanguageEncoders)
    assert isinstance(both, LanguageEncoders) and aligned.inner.separate == both.separate
    assert aligned.inner.parts["far"] is both.parts["far"], "weights in use are not read again"
    for text, moved in ((ENGLISH, 0), (FAR, 1)):
        vectors = both.sentence_vectors(text, layers=[3])
        assert np.allclose(aligned.sentence_vectors(text, layers=[3]), vectors + moved, atol=1e-6)


def spoiled(folder: Path, **change: Any) -> Path:
    strangers().save(folder)
    about = json.loads((folder / LANGUAGES).read_text())
    (folder / LANGUAGES).write_text(json.dumps({**about, **change}))
    return folder


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 2}, "not encoders by language of format 1"),
        ({"languages": "en"}, "not a list of codes"),
        ({"languages": []}, "not a list of codes"),
        ({"languages": ["en", "en"]}, "twice"),
        ({"languages": ["../en"]}, "unknown language"),
        ({"languages": ["en", "de"]}, r"languages/de: named in languages\.json, but not here"),
        ({"separate": "embeddings"}, "not a list of parts"),
        ({"separate": ["embeddings"]}, "far and en do not share"),
        ({"separate": ["nothing"]}, "no part 'nothing'"),
    ],
)
def test_folders_that_do_not_hold_together(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    folder = spoiled(tmp_path / "both", **change)
    with pytest.raises(BadInput, match=told) as found:
        open_encoder(str(folder))
    assert str(folder) in str(found.value)


# ---------------------------------------------------------------------------------------------- by name


@pytest.fixture
def two(tmp_path: Path) -> Path:
    for code, seed in (("en", 1), ("far", 2)):
        part(seed).save(tmp_path / code)
    return tmp_path


def test_directories_by_language_are_strangers(two: Path) -> None:
    spec = f"en={two / 'en'}, far={two / 'far'}"
    both = open_encoder(spec)
    assert isinstance(both, LanguageEncoders) and both.separate is None and both.name == spec
    assert [*both.parts] == ["en", "far"]
    alone = open_encoder(str(two / "far"))
    assert np.array_equal(*(one.sentence_vectors(FAR, layers=[3]) for one in (both, alone)))
    own = open_encoder(spec, own=True)
    assert isinstance(own, LanguageEncoders) and own.parts["en"] is not both.parts["en"]


def test_vectors_by_language_are_static(tmp_path: Path) -> None:
    for code in ("en", "de"):
        (tmp_path / f"{code}.vec").write_text("1 2\nthe 1 2\n")
    assert isinstance(open_encoder(f"en={tmp_path}/en.vec,de={tmp_path}/de.vec"), StaticEncoder)


MISTAKES = {
    "a mix": ("en={two}/en,far={two}/words.vec", "vectors for far and an encoder for en .*for all"),
    "twice": ("en={two}/en,en={two}/far", "two files for 'en'"),
    "the same": ("en={two}/en,eng={two}/far", "two encoders for en"),
    "no language": ("en={two}/en,englisch={two}/far", "unknown language 'englisch'"),
    "nothing": ("en={two}/en,far=", "is not LANGUAGE=FILE"),
    "no directory": ("en={two}/en,far={two}/nowhere", "nowhere: no such directory"),
    "no file": ("en={two}/en.vec,far={two}/far.vec", "en.vec: no such file"),
    "no model": ("en={two}/en,far={two}", "not a model"),
    "by language": ("en={two}/en,far={two}/both", "not one encoder for one language"),
    "aligned": ("en={two}/en,far={two}/aligned", "aligned by maps already"),
}


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_mistakes_in_names_are_answered(mistake: str, two: Path) -> None:
    (two / "words.vec").write_text("1 2\nthe 1 2\n")
    strangers().save(two / "both")
    shutil.copytree(two / "en", two / "aligned")
    (two / "aligned" / "maps.safetensors").write_bytes(b"")
    spec, told = MISTAKES[mistake]
    with pytest.raises((BadInput, BadSetting), match=told):
        open_encoder(spec.format(two=two))
