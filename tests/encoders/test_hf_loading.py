"""Loading: round trips, fingerprints, and every mistake told without a traceback."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from tiny_encoders import FAMILIES, TEXT, bert, build, marian, unigram

from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.encoders.hub import model_directory, weight_files
from calque.encoders.tokens import Reader, language_code
from calque.errors import BadInput, BadSetting
from calque.recipe import Device, Dtype
from calque.types import Sentences

SENTENCES = Sentences.of("en", [line.split() for line in TEXT[:3]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build("bert").save(tmp_path / "bert")
    return tmp_path / "bert"


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_and_loaded_encoders_agree(family: str, tmp_path: Path) -> None:
    encoder = build(family)
    encoder.save(tmp_path / "it")
    loaded = HuggingFaceEncoder.load(str(tmp_path / "it"), EncoderOptions())
    assert loaded.directory == tmp_path / "it" and encoder.directory is None
    ours, theirs = (one.word_vectors(SENTENCES, layers=[0, 3]) for one in (encoder, loaded))
    np.testing.assert_allclose(ours.vectors, theirs.vectors, atol=1e-6)


def test_a_slow_tokenizer_is_loaded(tmp_path: Path) -> None:
    encoder = HuggingFaceEncoder.from_model(*marian(tmp_path), "marian")
    encoder.save(tmp_path / "it")
    loaded = HuggingFaceEncoder.load(str(tmp_path / "it"))
    np.testing.assert_allclose(
        loaded.word_vectors(SENTENCES, layers=[3]).vectors,
        encoder.word_vectors(SENTENCES, layers=[3]).vectors,
        atol=1e-6,
    )


def test_a_checkpoint_with_a_head_is_loaded_without_it(tmp_path: Path) -> None:
    model, tokenizer = bert()
    whole = transformers.BertForMaskedLM(model.config)
    whole.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = HuggingFaceEncoder.load(str(tmp_path))
    taken = HuggingFaceEncoder.from_model(whole, tokenizer, "mlm")
    assert not hasattr(loaded.model, "cls")
    for one in (loaded, taken):
        vectors = one.word_vectors(SENTENCES, layers=[3]).vectors
        np.testing.assert_allclose(vectors, loaded.word_vectors(SENTENCES, layers=[3]).vectors, atol=1e-6)


def test_fingerprints_tell_what_changes_vectors(folder: Path) -> None:
    def load(**options: object) -> HuggingFaceEncoder:
        return HuggingFaceEncoder.load(str(folder), EncoderOptions(**options))  # type: ignore[arg-type]

    plain = load()
    named = HuggingFaceEncoder.load(str(folder), name="other")
    assert plain.fingerprint == named.fingerprint != load(batch_tokens=7).fingerprint  # last bits differ
    assert len({one.fingerprint for one in (plain, load(prefix="query: "), load(max_length=9))}) == 3
    before = plain.fingerprint
    optimiser = torch.optim.AdamW(plain.model.parameters(), lr=1e-3)
    batch = plain.batch(SENTENCES)
    plain.states(batch, [3]).hidden[0].sum().backward()
    optimiser.step()
    assert plain.fingerprint != before and plain.directory is None


def test_fingerprints_of_models_in_memory() -> None:
    one, same, other = build("bert"), build("bert"), build("bert")
    with torch.no_grad():
        next(other.model.parameters()).view(-1)[0] += 1
    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_input_is_bounded_by_the_model() -> None:
    encoder = build("xlm-roberta", max_length=1000)  # a table of 202 positions, two of them never used
    long = Sentences.of("en", [["a"] * 300])
    found = encoder.word_vectors(long, layers=[3])
    assert encoder.batch(long).pieces.shape == (1, 200)
    assert found.dropped["truncated"] == 300 - found.present.sum() > 0


def test_weights_beside_the_model_are_not_its_own(folder: Path) -> None:
    from safetensors.torch import save_file

    before = HuggingFaceEncoder.load(str(folder)).fingerprint
    save_file({"x": torch.ones(2)}, folder / "maps.safetensors")
    assert weight_files(folder) == [folder / "model.safetensors"]
    assert HuggingFaceEncoder.load(str(folder)).fingerprint == before


def test_sharded_weights(tmp_path: Path) -> None:
    encoder = build("bert")
    encoder.model.save_pretrained(tmp_path, max_shard_size="20KB")
    encoder.tokenizer.save_pretrained(tmp_path)
    assert len(weight_files(tmp_path)) > 1
    loaded = HuggingFaceEncoder.load(str(tmp_path))
    assert len(loaded.fingerprint) == 64
    weight_files(tmp_path)[0].unlink()
    with pytest.raises(BadInput, match="but not here"):
        HuggingFaceEncoder.load(str(tmp_path))


@pytest.mark.parametrize(
    "name", ["./nowhere", "/nowhere/at/all", "~/no-such-encoder", "nowhere/", "a name", "a/b/c"]
)
def test_a_missing_directory(name: str) -> None:
    with pytest.raises(BadInput, match="no such directory"):
        model_directory(name)


@pytest.mark.parametrize("name", ["bert-base-nope", "some/encoder"])
def test_a_hub_name_that_cannot_be_had(name: str) -> None:
    with pytest.raises(BadInput, match=r"the hub did not give it.*check the spelling"):
        HuggingFaceEncoder.load(name, EncoderOptions())


def test_pickled_weights_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(BadInput, match=r"safetensors, and there are only pytorch_model.bin"):
        HuggingFaceEncoder.load(str(folder))


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (["config.json"], "not a model"),
        (["model.safetensors"], "there are none"),
        (["tokenizer.json", "tokenizer_config.json"], "no tokenizer"),
    ],
)
def test_what_is_missing_is_named(folder: Path, gone: list[str], said: str) -> None:
    for name in gone:
        (folder / name).unlink()
    with pytest.raises(BadInput, match=said):
        HuggingFaceEncoder.load(str(folder))


def test_broken_weights(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match="cannot be loaded"):
        HuggingFaceEncoder.load(str(folder))


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("config.json", {"hidden_size": "wide"}, "cannot be loaded as an encoder"),
        ("config.json", {"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000, at most 1000"),
        ("tokenizer_config.json", {"model_max_length": {}}, "cannot be loaded as an encoder"),
        ("tokenizer_config.json", {"tokenizer_class": {"a": 1}}, "cannot be loaded as an encoder"),
        ("tokenizer.json", {"pre_tokenizer": {"type": "None"}}, "cannot be loaded.*PreTokenizer"),
        ("tokenizer.json", {"model": {"type": "WordPiece", "vocab": {"a": 0}}}, "cannot be loaded as an enc"),
    ],
)
def test_files_of_another_shape(folder: Path, file: str, change: dict[str, object], told: str) -> None:
    """Whatever class of error transformers and tokenizers make of them."""
    held = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(held | change))
    with pytest.raises(BadInput, match=told):
        HuggingFaceEncoder.load(str(folder))


def test_weights_of_another_shape_or_another_model(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 4}))
    with pytest.raises(BadInput, match=r"weights are missing, such as encoder.layer.3"):
        HuggingFaceEncoder.load(str(folder))
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "no-such-model"}))
    with pytest.raises(BadInput, match="no-such-model"):
        HuggingFaceEncoder.load(str(folder))


def test_code_in_a_model_directory_is_not_run(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    own = {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config | own))
    (folder / "own.py").write_text("raise SystemExit('run')")
    with pytest.raises(BadInput):
        HuggingFaceEncoder.load(str(folder))


def test_a_tokenizer_of_another_model() -> None:
    model, _ = bert()
    model.resize_token_embeddings(20)
    with pytest.raises(BadInput, match="20 embeddings"):
        HuggingFaceEncoder.from_model(model, unigram(), "mixed")


def test_half_precision_falls_back_on_a_cpu() -> None:
    with pytest.warns(UserWarning, match="float32 on this CPU"):
        encoder = build("bert", device=Device.CPU, dtype=Dtype.BFLOAT16)
    assert encoder.word_vectors(SENTENCES, layers=[3]).vectors.dtype == np.float32
    assert encoder.fingerprint == build("bert", device=Device.CPU).fingerprint


def test_a_device_that_is_not_there() -> None:
    missing = Device.MPS if torch.cuda.is_available() else Device.CUDA
    with pytest.raises(BadSetting, match="is not available here"):
        build("bert", device=missing)


@pytest.mark.parametrize("wrong", [{"max_length": 0}, {"batch_tokens": -5}])
def test_options_out_of_bounds(wrong: dict[str, int]) -> None:
    with pytest.raises(BadSetting, match="at least 1"):
        EncoderOptions(**wrong)  # type: ignore[arg-type]


def test_translation_models_are_told_the_language() -> None:
    """mBART puts a language code beside every sentence; it follows the language of the text."""
    pieces = [*((piece, -1.0) for piece in ("<s>", "<pad>", "</s>", "<unk>")), ("▁", -2.0)]
    pieces += [(letter, -3.0) for letter in "abc"]
    tokenizer = transformers.MBart50Tokenizer(vocab=pieces)
    assert [language_code(tokenizer, name) for name in ("de", "en", "xx", "")] == [
        "de_DE",
        "en_XX",
        None,
        None,
    ]
    reader = Reader(tokenizer)
    german = reader.frame("de")
    assert tokenizer.convert_ids_to_tokens(german.head.tolist()) == ["de_DE"]
    assert reader.frame("ru").head.tolist() != german.head.tolist() == reader.frame("de").head.tolist()
    unknown, default = (Reader(tokenizer).frame("xx").head.tolist() for _ in range(2))
    assert reader.frame("xx").head.tolist() == unknown == default == reader.frame("").head.tolist()
    assert reader.digest == Reader(tokenizer).digest, "whatever was read before"


def test_a_language_is_found_by_one_that_is_part_of_it() -> None:
    """NLLB has Standard Arabic and Western Persian, which texts are seldom called."""
    tokenizer = transformers.NllbTokenizer()
    found = {code: language_code(tokenizer, code) for code in ("ar", "sw", "fa", "de", "en", "eng", "xx")}
    assert found == {"ar": "arb_Arab", "sw": "swh_Latn", "fa": "pes_Arab", "de": "deu_Latn", "en": "eng_Latn",
                     "eng": "eng_Latn", "xx": None}  # fmt: skip


def test_weights_that_a_file_lacks_are_the_same_every_time(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=200, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    build("bert").tokenizer.save_pretrained(tmp_path)
    before = torch.get_rng_state()
    first, again = (HuggingFaceEncoder.load(str(tmp_path)).model.pooler.dense.weight for _ in range(2))
    assert torch.equal(first, again) and torch.equal(before, torch.get_rng_state())
