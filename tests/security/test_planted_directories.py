"""Directories from a stranger: nothing in them runs, whatever door they are opened by."""

import pickle
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tiny_encoders import bert, build
from traps import CODE, Traps, change

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.encoder import EncoderOptions
from calque.encoders.hub import _settings, model_directory, read_masked
from calque.encoders.open import open_encoder, save_aligned
from calque.errors import BadInput, CalqueError
from calque.pipeline.taskmodels import opened_model
from calque.store import load_array, load_items, load_pairs, save_pairs
from calque.training.checkpoint import load_tensors
from calque.types import Bitext, Sentences, WordPairs

SENTENCES = Sentences.of("en", [["the", "cat", "sat"], ["a", "dog"]])


@pytest.fixture
def traps(tmp_path: Path) -> Traps:
    return Traps(tmp_path / "marks")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    build("bert").save(tmp_path / "model")
    return tmp_path / "model"


def test_the_traps_are_live(tmp_path: Path, traps: Traps) -> None:
    """Otherwise the tests below could not fail."""
    pickle.loads(traps.pickle(tmp_path / "pickle").read_bytes())
    torch.load(traps.archive(tmp_path / "archive"), weights_only=False)
    np.load(traps.array(tmp_path / "array.npy"), allow_pickle=True)
    np.load(traps.arrays(tmp_path / "arrays.npz"), allow_pickle=True)["arr_0"]
    exec(traps.code(tmp_path / "code.py").read_text(encoding="utf-8"), {})
    assert traps.sprung == ["archive", "array.npy", "arrays.npz", "code.py", "pickle"]


def test_what_lies_beside_the_weights_is_left_alone(model: Path, traps: Traps) -> None:
    """Pickles of every usual name, code that the settings name, modules of sentence-transformers."""
    before = open_encoder(str(model)).word_vectors(SENTENCES, layers=[0, 3]).vectors
    traps.surround(model)
    opened = open_encoder(str(model), own=True)
    np.testing.assert_array_equal(opened.word_vectors(SENTENCES, layers=[0, 3]).vectors, before)
    assert traps.sprung == []


def test_nor_for_a_language_model_a_task_model_or_an_aligned_one(tmp_path: Path, traps: Traps) -> None:
    whole, tokenizer = deepcopy(bert())  # tests share them
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    whole.config.vocab_size = len(tokenizer)
    for kind in ("MaskedLM", "SequenceClassification"):
        folder = tmp_path / kind
        getattr(transformers, f"BertFor{kind}")(whole.config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        traps.surround(folder)
    read_masked(tmp_path / "MaskedLM")
    opened_model(str(tmp_path / "SequenceClassification"), EncoderOptions())
    inner = open_encoder(str(tmp_path / "MaskedLM"))
    aligned = AlignedEncoder(inner, {}, "en", "mean", {}, {"method": "none"})
    save_aligned(tmp_path / "aligned", aligned)
    copied = {path.name for path in (tmp_path / "aligned").iterdir()}
    assert not copied & set(CODE) and not [name for name in copied if name.endswith((".bin", ".pt", ".pkl"))]
    traps.surround(tmp_path / "aligned")
    open_encoder(str(tmp_path / "aligned"), own=True)
    assert traps.sprung == []


def only_pickled(model: Path, traps: Traps) -> None:
    (model / "model.safetensors").unlink()
    traps.archive(model / "pytorch_model.bin")


def pickled_under_another_name(model: Path, traps: Traps) -> None:
    traps.pickle(model / "model.safetensors")


def archived_under_another_name(model: Path, traps: Traps) -> None:
    traps.archive(model / "model.safetensors")


def an_index_of_pickles(model: Path, traps: Traps) -> None:
    (model / "model.safetensors").unlink()
    traps.archive(model / "pytorch_model.bin")
    change(model / "model.safetensors.index.json", weight_map={"embeddings.weight": "pytorch_model.bin"})


def an_index_that_leads_elsewhere(model: Path, traps: Traps) -> None:
    shutil.move(model / "model.safetensors", model.parent / "else.safetensors")
    change(model / "model.safetensors.index.json", weight_map={"embeddings.weight": "../else.safetensors"})


def an_architecture_in_code(model: Path, traps: Traps) -> None:
    traps.surround(model)
    change(model / "config.json", model_type="evil", architectures=["EvilModel"])


def settings_that_name_weights(model: Path, traps: Traps) -> None:
    traps.archive(model / "adapter_model.bin")
    change(model / "config.json", transformers_weights="adapter_model.bin")


def an_adapter_beside_the_weights(model: Path, traps: Traps) -> None:
    traps.archive(model / "adapter_model.bin")
    change(model / "adapter_config.json", peft_type="LORA", r=2, target_modules=["query"])


def kernels_from_a_hub(model: Path, traps: Traps) -> None:
    change(model / "config.json", attn_implementation="somebody/evil-kernels")


def kernels_by_an_inner_name(model: Path, traps: Traps) -> None:
    change(model / "config.json", _attn_implementation_internal="somebody/evil-kernels")


def an_inner_model_in_code(model: Path, traps: Traps) -> None:
    """transformers 5.1 ran it, whatever it was told of trust."""
    evil = model.parent / "evil"
    traps.code(evil / "configuration_evil.py")
    change(evil / "config.json", model_type="evil", auto_map={"AutoConfig": "configuration_evil.EvilConfig"})
    inner = {"model_type": "evil", "_name_or_path": str(evil)}
    asked = {"trust_remote_code": True, "keypoint_detector_config": inner}
    change(model / "config.json", model_type="lightglue", **asked)


def a_tokenizer_that_asks_for_trust(model: Path, traps: Traps) -> None:
    change(model / "tokenizer_config.json", trust_remote_code=True)


def a_template_that_is_saved_elsewhere(model: Path, traps: Traps) -> None:
    change(model / "tokenizer_config.json", chat_template=[{"name": "../../evil", "template": ""}])


def templates_by_name(model: Path, traps: Traps) -> None:
    change(model / "tokenizer_config.json", chat_template={"../../evil": "x"})


def a_template_that_is_no_text(model: Path, traps: Traps) -> None:
    change(model / "tokenizer_config.json", chat_template={"default": 5})


DECEITS = [
    only_pickled,
    pickled_under_another_name,
    archived_under_another_name,
    an_index_of_pickles,
    an_index_that_leads_elsewhere,
    an_architecture_in_code,
    settings_that_name_weights,
    an_adapter_beside_the_weights,
    kernels_from_a_hub,
    kernels_by_an_inner_name,
    an_inner_model_in_code,
    a_tokenizer_that_asks_for_trust,
    a_template_that_is_saved_elsewhere,
    templates_by_name,
    a_template_that_is_no_text,
]


@pytest.mark.parametrize(
    "settings",
    [
        {"chat_template": "{{ messages }}"},
        {"chat_template": [{"name": "default", "template": "{{ messages }}"}]},
        {"chat_template": {"default": "{{ messages }}", "tool_use": ""}},
    ],
)
def test_ordinary_templates_are_taken(model: Path, settings: dict[str, Any]) -> None:
    change(model / "tokenizer_config.json", **settings)
    assert open_encoder(str(model)).depth


def test_names_of_labels_are_no_settings(model: Path) -> None:
    labels = {f"no {k}": k for k in range(2)} | {"the number of layers": 1500}
    change(model / "config.json", label2id=labels, id2label={str(k): name for name, k in labels.items()})
    assert open_encoder(str(model)).depth


def test_settings_however_deep_are_looked_through() -> None:
    deep: dict[str, Any] = {"trust_remote_code": True}
    for _ in range(50_000):
        deep = {"text": [deep]}
    assert ("trust_remote_code", True) in list(_settings(deep))


@pytest.mark.parametrize("deceit", DECEITS)
def test_a_directory_that_needs_trust_is_refused(
    deceit: Callable[[Path, Traps], None], model: Path, traps: Traps
) -> None:
    deceit(model, traps)
    for door in (open_encoder, lambda name: opened_model(name, EncoderOptions())):
        with pytest.raises(BadInput):
            door(str(model))  # type: ignore[operator]
    with pytest.raises(BadInput):
        read_masked(model_directory(str(model)))
    assert traps.sprung == []


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("config.json", {"num_labels": 10**9}),
        ("config.json", {"model_type": "albert", "inner_group_num": 10**8}),
        ("config.json", {"model_type": "mixtral", "num_local_experts": 10**9}),
        ("tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": 10**9}),
    ],
)
def test_numbers_that_fill_the_memory_are_refused(model: Path, file: str, settings: dict[str, int]) -> None:
    change(model / file, **settings)
    with pytest.raises(BadInput, match=rf"{file}: \w+ is 1\d+, at most"):
        open_encoder(str(model))


def test_a_model_without_layers_is_told(model: Path) -> None:
    change(model / "config.json", num_hidden_layers=0)
    with pytest.raises(BadInput, match="without layers"):
        open_encoder(str(model)).depth  # noqa: B018


def test_no_other_file_comes_along_as_a_vocabulary(model: Path) -> None:
    """transformers 5.1 read any file that the settings named, and saved its lines with the tokenizer."""
    pieces = "[UNK]\n[PAD]\n[CLS]\n[SEP]\ncat\n"
    (model / "vocab.txt").write_text(pieces, encoding="utf-8")
    (model.parent / "secret").write_text(f"{pieces}planted-password\n", encoding="utf-8")
    (model / "tokenizer.json").unlink()
    elsewhere = {"vocab_file": str(model.parent / "secret"), "tokenizer_class": "BertTokenizer"}
    change(model / "tokenizer_config.json", **elsewhere)
    open_encoder(str(model), own=True).save(model.parent / "saved")
    files = [path.read_bytes() for path in (model.parent / "saved").rglob("*") if path.is_file()]
    assert any(b"cat" in held for held in files)
    assert not any(b"planted-password" in held for held in files)


# ---------------------------------------------------------------------------------- calque's own folders


def test_arrays_of_objects_are_refused(tmp_path: Path, traps: Traps) -> None:
    with pytest.raises(BadInput, match="not a readable array"):
        load_array(traps.array(tmp_path / "x.npy"))
    with pytest.raises(BadInput, match="not a readable array"):
        load_array(traps.pickle(tmp_path / "y.npy"))
    assert traps.sprung == []


def test_a_folder_of_pairs_with_an_array_of_objects(tmp_path: Path, traps: Traps) -> None:
    sides = [Sentences.of(code, [["a", "b"]]) for code in ("en", "de")]
    where = np.zeros(1, np.int32)
    pairs = WordPairs(
        Bitext(sides[0], sides[1], np.ones(1, np.int64), "here", {}),
        where, where, where, np.ones(1, np.float32), "by hand",
    )  # fmt: skip
    for name in ("links", "score", "line", "source.ids", "vocabulary.bytes", "vocabulary.offsets"):
        save_pairs(tmp_path / "pairs", pairs)
        traps.array(tmp_path / "pairs" / f"{name}.npy")
        with pytest.raises(BadInput):
            load_pairs(tmp_path / "pairs")
    assert traps.sprung == []


def test_a_checkpoint_and_items_that_are_pickles(tmp_path: Path, traps: Traps) -> None:
    for name in ("weights.safetensors", "optimiser.safetensors"):
        with pytest.raises(BadInput):
            load_tensors(traps.archive(tmp_path / name))
    traps.pickle(tmp_path / "0123456789abcdef.safetensors")
    with pytest.raises(CalqueError):
        load_items(tmp_path, "0123456789abcdef")
    assert traps.sprung == []


@pytest.mark.parametrize("digest", ["../secret", "/etc/passwd", "a/b", "", "..", "x" * 16])
def test_items_are_named_by_digests_alone(tmp_path: Path, digest: str) -> None:
    with pytest.raises(BadInput, match="not the name of an items file"):
        load_items(tmp_path, digest)
