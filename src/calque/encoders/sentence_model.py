"""Sentence vectors of one language as a directory that sentence-transformers loads, without calque.

What calque does to a sentence becomes modules that every version of that library has: the transformer,
weights that leave special tokens and prefix out of the mean (`WordWeights`), pooling, and the steps of a map,
which calque applies to the pooled vector too: a `Dense` for each run of linear ones, a `Normalize` for each
that makes unit length. The files are written here, so that the library need not be installed.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from safetensors.numpy import save_file

from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.hub import quiet
from calque.encoders.open import MODULES, READING, SENTENCES, copy_checkpoint
from calque.encoders.tokens import leading_space, special_tokens
from calque.errors import BadSetting
from calque.files import read_json, write_json
from calque.types import Doubles, Scale, SentencePooling, Sentences, Shift, SpaceMap, Unit

#: Encoder–decoder models of which that library loads the encoder, in every version.
HALVES = frozenset({"t5", "mt5"})
#: What the written directory is tried on.
PROBE = ("a", "the", "1", "a", ".")
ELSEWHERE = "calque encode, or calque.pipeline.MtebEncoder in Python"
_LIBRARY = "sentence_transformers.models"


@dataclass(frozen=True, eq=False)
class SentenceModel:
    """What sentence vectors are: this layer, pooled, moved by a map, of unit length if wished."""

    encoder: HuggingFaceEncoder
    language: str
    layer: int
    pooling: SentencePooling = "mean"
    space_map: SpaceMap = field(default_factory=SpaceMap)
    normalise: bool = False


@dataclass(frozen=True, eq=False)
class Affine:
    """x to matrix·x + offset. Shape: matrix (d, d), offset (d,)."""

    matrix: Doubles
    offset: Doubles


Stage: TypeAlias = Affine | Unit


def stages(space_map: SpaceMap, width: int) -> list[Stage]:
    """The steps of a map, linear ones that follow each other folded into one.

    >>> [type(one).__name__ for one in stages(SpaceMap((Shift(1.0), Scale(2.0), Unit(), Shift(3.0))), 4)]
    ['Affine', 'Unit', 'Affine']
    """
    found: list[Stage] = []
    for step in space_map.steps:
        if isinstance(step, Unit):
            found.append(step)
            continue
        before = (
            found.pop() if found and isinstance(found[-1], Affine) else Affine(np.eye(width), np.zeros(width))
        )
        assert isinstance(before, Affine)
        if isinstance(step, Shift):
            found.append(replace(before, offset=before.offset + np.asarray(step.vector, np.float64)))
        else:
            linear = np.diag(np.broadcast_to(step.vector, width)) if isinstance(step, Scale) else step.matrix
            linear = np.asarray(linear, np.float64)
            found.append(Affine(linear @ before.matrix, linear @ before.offset))
    return found


def write_sentence_model(folder: Path, made: SentenceModel) -> list[str]:
    """Write the directory, try what was written, and name its modules."""
    _check_readable(made)
    frame = _write_checkpoint(folder, made)
    written = _tried(folder, made, frame)
    modules = ["Transformer"]
    if made.pooling == "mean" and len(frame):
        modules.append("WordWeights")
        _write(folder, modules, _weights(written.tokenizer, frame))
    modules.append("Pooling")
    _write(folder, modules, _pooling(made))
    for stage in stages(made.space_map, made.encoder.width):
        modules.append("Dense" if isinstance(stage, Affine) else "Normalize")
        if isinstance(stage, Affine):
            _write(folder, modules, _dense(stage), stage)
    modules += ["Normalize"] if made.normalise else []
    listed = [
        {"idx": at, "name": str(at), "path": _place(at, name), "type": f"{_LIBRARY}.{name}"}
        for at, name in enumerate(modules)
    ]
    write_json(folder / READING, {"max_seq_length": made.encoder.reader.limit, "do_lower_case": False})
    write_json(
        folder / SENTENCES, {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    )
    write_json(folder / MODULES, listed)
    return modules


# ------------------------------------------------------------------------------------------- the modules


def _place(at: int, name: str) -> str:
    return f"{at}_{name}" if at else ""


def _write(folder: Path, modules: Sequence[str], config: dict[str, Any], stage: Affine | None = None) -> None:
    """The folder of the module that comes last."""
    place = folder / _place(len(modules) - 1, modules[-1])
    write_json(place / "config.json", config)
    if stage is not None:
        parts = {"linear.weight": stage.matrix, "linear.bias": stage.offset}
        tensors = {name: np.ascontiguousarray(value, np.float32) for name, value in parts.items()}
        save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})


def _weights(tokenizer: Any, frame: Sequence[int]) -> dict[str, Any]:
    """No weight for the pieces around a text, one for all others."""
    known = {number: piece for piece, number in tokenizer.get_vocab().items()}
    vocabulary = [known.get(number, f"<no piece {number}>") for number in range(max(known) + 1)]
    around = {vocabulary[number] for number in frame}
    # That library takes the weight of `<s>` for `<S>` too.
    others = {piece for piece in vocabulary if piece.lower() in around} - around
    weights = {piece: 0.0 for piece in sorted(around)} | {piece: 1.0 for piece in sorted(others)}
    return {"vocab": vocabulary, "word_weights": weights, "unknown_word_weight": 1.0}


def _pooling(made: SentenceModel) -> dict[str, Any]:
    return {
        "word_embedding_dimension": made.encoder.width,
        "pooling_mode_cls_token": made.pooling == "first",
        "pooling_mode_mean_tokens": made.pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
        "pooling_mode_weightedmean_tokens": False,
        "pooling_mode_lasttoken": False,
        "include_prompt": True,
    }


def _dense(stage: Affine) -> dict[str, Any]:
    width = len(stage.offset)
    return {
        "in_features": width,
        "out_features": width,
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
    }


# ---------------------------------------------------------------------------------------- the checkpoint


def _write_checkpoint(folder: Path, made: SentenceModel) -> list[int]:
    """The transformer and its tokenizer; returns the pieces that surround a text.

    A prefix becomes pieces of its own, with the same embeddings, that the tokenizer puts before every text:
    only so can they be told from the same pieces inside a text.
    """
    encoder, tokenizer = made.encoder, made.encoder.tokenizer
    first, last = special_tokens(tokenizer, made.language)
    prefix = encoder.reader.frame(made.language).head[len(first) :].tolist()
    space = leading_space(tokenizer)
    plain = (
        not prefix and not space and tokenizer.pad_token is not None and _frames_so(tokenizer, first, last)
    )
    if plain and made.layer == encoder.depth and _stored_as_run(encoder):
        copy_checkpoint(encoder, folder)
        return [*first, *last]
    model = shortened(encoder, made.layer)
    if not plain:
        _check_fast(encoder)
        tokenizer, new = reframed(tokenizer, first, len(prefix), last, space)
        if new:
            _add_rows(model, new, prefix)
        first = [*first, *new]
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    if not plain:
        _name_class(folder)
    return [*first, *last]


def _stored_as_run(encoder: HuggingFaceEncoder) -> bool:
    """Whether others would load the encoder's own files in the precision that it runs in."""
    if encoder.directory is None:
        return False
    config = read_json(encoder.directory / "config.json")
    stored = config.get("dtype") or config.get("torch_dtype")
    return stored is None or f"torch.{stored}" == str(encoder.dtype)


def _frames_so(tokenizer: Any, first: Sequence[int], last: Sequence[int]) -> bool:
    """Whether a tokenizer puts these pieces around a text by itself, whatever the language."""
    framed = list(tokenizer(" ".join(PROBE))["input_ids"])
    inside = len(framed) - len(first) - len(last)
    return framed[: len(first)] == [*first] and framed[len(first) + inside :] == [*last]


def shortened(encoder: HuggingFaceEncoder, layer: int) -> Any:
    """A copy of the model without the layers above this one."""
    if layer == encoder.depth:
        return copy.deepcopy(encoder.model)
    config = copy.deepcopy(encoder.model.config)
    for name, value in config.to_dict().items():
        if isinstance(value, list) and len(value) == encoder.depth:
            setattr(config, name, value[:layer])
    config.num_hidden_layers = layer
    model = type(encoder.model)(config)
    model.load_state_dict(encoder.model.state_dict(), strict=False)
    return model.to(encoder.dtype).eval()


def reframed(
    tokenizer: Any, first: Sequence[int], count: int, last: Sequence[int], space: str
) -> tuple[Any, list[int]]:
    """A tokenizer that surrounds texts by these and `count` new pieces, and the numbers of the new ones.

    `space` goes before every text, where a first word would else be cut otherwise than those after it.
    """
    from tokenizers import AddedToken, Tokenizer, normalizers, processors
    from transformers import PreTrainedTokenizerFast

    backend: Any = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_padding()
    backend.no_truncation()
    names = [f"<prefix {number}>" for number in range(count)]
    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    new = [backend.token_to_id(name) for name in names]
    if space:
        before = [] if backend.normalizer is None else [backend.normalizer]
        backend.normalizer = normalizers.Sequence([*before, normalizers.Prepend(space)])
    head, tail = ([backend.id_to_token(number) for number in part] for part in ([*first, *new], last))
    template = processors.TemplateProcessing(
        single=[*head, "$A", *tail],
        pair=[*head, "$A", *tail, "$B:1", *(f"{piece}:1" for piece in tail)],
        special_tokens=[(piece, backend.token_to_id(piece)) for piece in dict.fromkeys([*head, *tail])],
    )
    backend.post_processor = template
    given = {
        name: str(piece) for name, piece in tokenizer.special_tokens_map.items() if isinstance(piece, str)
    }
    padding = given.get("pad_token") or given.get("eos_token") or backend.id_to_token(0)
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_input_names=list(tokenizer.model_input_names),
        padding_side="right",
        **{**given, "pad_token": padding},
    )
    return made, new


def _add_rows(model: Any, new: Sequence[int], like: Sequence[int]) -> None:
    """Embeddings for new pieces, those of pieces that there are already."""
    rows = model.get_input_embeddings().num_embeddings
    model.resize_token_embeddings(max(rows, max(new) + 1), mean_resizing=False)
    with torch.no_grad():
        table = model.get_input_embeddings().weight
        table[list(new)] = table[list(like)]


def _name_class(folder: Path) -> None:
    """A tokenizer is loaded as it was written only by the class that adds nothing of its own."""
    place = folder / "tokenizer_config.json"
    write_json(place, {**read_json(place), "tokenizer_class": "PreTrainedTokenizerFast"})


# ---------------------------------------------------------------------------------------------- checks


def _check_readable(made: SentenceModel) -> None:
    encoder = made.encoder
    kind = getattr(encoder.model.config, "model_type", "")
    if encoder.body is not encoder.model and kind not in HALVES:
        raise BadSetting(
            f"{encoder.name} is an encoder–decoder model ({kind}), of which sentence-transformers would take "
            "the decoder's vectors",
            remedy=ELSEWHERE,
        )
    if made.layer == 0:
        raise BadSetting(
            "layer 0 is the embeddings, and sentence-transformers wants a layer above them",
            remedy=f"--layer 1 or another; for layer 0 {ELSEWHERE}",
        )
    if made.pooling == "first" and not encoder.reader.frame(made.language).first:
        raise BadSetting(f"{encoder.name} puts no special token first", remedy="--pooling mean")


def _check_fast(encoder: HuggingFaceEncoder) -> None:
    if not encoder.tokenizer.is_fast:
        raise BadSetting(
            f"the tokenizer of {encoder.name} is a slow one, which cannot be taught a prefix or a language",
            remedy=ELSEWHERE,
        )


def _tried(folder: Path, made: SentenceModel, frame: Sequence[int]) -> HuggingFaceEncoder:
    """The directory, read anew; it must cut and see a text as the encoder does."""
    encoder = made.encoder
    written = HuggingFaceEncoder.load(str(folder), replace(encoder.options, prefix=None, revision=None))
    text = encoder.batch(Sentences.of(made.language, [list(PROBE)]))
    around = encoder.reader.frame(made.language)
    tail = len(around.tail)
    inside = text.pieces[0, len(around.head) : text.pieces.shape[1] - tail].tolist()
    head = len(frame) - tail
    wanted = [*frame[:head], *inside, *frame[head:]]
    found = list(written.tokenizer(" ".join(PROBE))["input_ids"])
    if found != wanted:
        raise BadSetting(
            f"the tokenizer of {encoder.name} cuts a whole text otherwise than word by word", remedy=ELSEWHERE
        )
    with torch.inference_mode():
        (mine,) = encoder.states(text, [made.layer]).hidden
        again = replace(text, pieces=torch.tensor([found]))
        (theirs,) = written.states(again, [written.depth]).hidden
    if not torch.allclose(mine, theirs, atol=1e-4):
        raise BadSetting(
            f"layer {made.layer} of {encoder.name} is not what a model without the layers above it gives: "
            "another step follows its last layer",
            remedy=f"--layer last; for other layers {ELSEWHERE}",
        )
    return written
