"""Task models as ordinary Hugging Face ones: `AutoModelFor…` reads what was trained here, and the other way.

A head is ordinary when it is linear over the last layer (for a label of a whole row: through one more layer
with tanh, as these models have it). Whether a written model says the same is not taken for granted: both are
run on a few pieces and compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import torch

from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.hub import loading, quiet, read_tokenizer
from calque.errors import BadInput
from calque.transfer.heads import HeadKind, TaskModel, make_model
from calque.transfer.task import Labels, Task

#: The end of a class's name, by head.
ORDINARY = {
    HeadKind.POOLED: "ForSequenceClassification",
    HeadKind.TAG: "ForTokenClassification",
    HeadKind.SPAN: "ForQuestionAnswering",
}


class Ordinary(NamedTuple):
    """A Hugging Face model with a head, as read."""

    model: Any
    tokenizer: Any
    labels: Labels
    kind: HeadKind


def save_ordinary(
    folder: Path, encoder: HuggingFaceEncoder, model: TaskModel, kind: HeadKind, labels: Labels
) -> bool:
    """Write encoder and head as an ordinary model; False, and nothing written, where that cannot be."""
    made = as_ordinary(encoder, model, kind, labels)
    if made is None:
        return False
    with quiet():
        made.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
    return True


def as_ordinary(encoder: HuggingFaceEncoder, model: TaskModel, kind: HeadKind, labels: Labels) -> Any | None:
    """The same encoder and head as an ordinary model, or None where there is no such thing."""
    own = len(list(model.body.parameters())) or model.mix.layers > 1
    if kind not in ORDINARY or encoder.body is not encoder.model or own:
        return None
    try:
        made = _empty(encoder, kind, labels)
    except ValueError:  # this architecture has no such head
        return None
    made.base_model.load_state_dict(encoder.model.state_dict(), strict=False)
    theirs, ours = linear_layers(made, kind), head_layers(model)
    if theirs is None or [a.weight.shape for a in theirs] != [b.weight.shape for b in ours]:
        return None
    with torch.no_grad():
        for a, b in zip(theirs, ours, strict=True):
            a.weight.copy_(b.weight)
            a.bias.copy_(b.bias)
    return made if _agree(encoder.model, model, made, kind) else None


def _empty(encoder: HuggingFaceEncoder, kind: HeadKind, labels: Labels) -> Any:
    """A model of the encoder's architecture with a new head."""
    config = deepcopy(encoder.model.config)
    if kind is HeadKind.SPAN:
        config.num_labels = 2  # start and end, whatever the encoder was for before
    else:
        config.id2label = dict(enumerate(labels.names))
        config.label2id = {name: place for place, name in enumerate(labels.names)}
    with quiet():
        made = _auto(kind).from_config(config, trust_remote_code=False)
        return made.to(encoder.device, encoder.dtype).eval()


def _auto(kind: HeadKind) -> Any:
    import transformers

    return getattr(transformers, f"AutoModel{ORDINARY[kind]}")


def linear_layers(model: Any, kind: HeadKind) -> list[torch.nn.Linear] | None:
    """The linear layers of an ordinary model's head, from the encoder up; None where they are others."""
    inside = {id(part) for part in model.base_model.modules()}
    found = [part for part in model.modules() if isinstance(part, torch.nn.Linear) and id(part) not in inside]
    if kind is HeadKind.POOLED and len(found) == 1:
        pooler = getattr(model.base_model, "pooler", None)
        dense = getattr(pooler, "dense", None)
        found = [] if dense is None else [dense, *found]
    usual = len(found) == (2 if kind is HeadKind.POOLED else 1)
    return found if usual and all(part.bias is not None for part in found) else None


def head_layers(model: TaskModel) -> list[torch.nn.Linear]:
    """The linear layers of a head, from the encoder up."""
    return [part for part in model.head.modules() if isinstance(part, torch.nn.Linear)]


def _agree(body: Any, model: TaskModel, made: Any, kind: HeadKind) -> bool:
    """Whether a head over an encoder and an ordinary model say the same of a row of pieces."""
    device = next(body.parameters()).device
    pieces = torch.arange(5, 17, device=device)[None] % body.config.vocab_size
    mask = torch.ones_like(pieces)
    parts = [part for whole in (body, model, made) for part in whole.modules() if part.training]
    for whole in (body, model, made):
        whole.eval()
    with torch.no_grad():
        vectors = body(input_ids=pieces, attention_mask=mask).last_hidden_state
        vectors = model(vectors[None], mask.bool())
        for layer in head_layers(model)[:-1]:
            vectors = layer(vectors).tanh()
        ours = head_layers(model)[-1](vectors)
        out = made(input_ids=pieces, attention_mask=mask)
    for part in parts:
        part.training = True
    theirs = torch.stack([out.start_logits, out.end_logits], -1) if kind is HeadKind.SPAN else out.logits
    ours = ours[:, 0] if kind is HeadKind.POOLED else ours
    near = 1e-4 if theirs.dtype == torch.float32 else 5e-2
    return theirs.shape == ours.shape and torch.allclose(ours.float(), theirs.float(), atol=near)


def read_ordinary(path: Path, dtype: Any, task: Task | None) -> Ordinary:
    """A model with a head, of any architecture that has one; weights are read from safetensors only."""
    from transformers import AutoConfig

    with loading(path, "a task model"):
        config = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
        kind = _kind(config.architectures or (), path)
        model, info = _auto(kind).from_pretrained(
            path,
            use_safetensors=True,
            dtype=dtype,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
        )
        tokenizer = read_tokenizer(path)
        names = () if kind is HeadKind.SPAN else tuple(config.id2label[i] for i in range(config.num_labels))
    if info["missing_keys"]:
        lost = sorted(info["missing_keys"])
        raise BadInput(f"{len(lost)} of its weights are missing, such as {lost[0]}", where=path)
    if task is not None and kind not in task.heads():
        raise BadInput(f"a model {ORDINARY[kind]}, which is not for {task.name}", where=path)
    return Ordinary(model, tokenizer, Labels(names), kind)


def _kind(architectures: Sequence[str], path: Path) -> HeadKind:
    for kind, ending in ORDINARY.items():
        if any(name.endswith(ending) for name in architectures):
            return kind
    raise BadInput(
        f"a model of kind {', '.join(architectures) or 'unknown'}, without a head for a task",
        where=path,
        remedy="one of " + ", ".join(f"…{ending}" for ending in ORDINARY.values()) + "; --encoder for others",
    )


def ordinary_head(held: Ordinary, where: Path) -> dict[str, torch.Tensor]:
    """The weights of an ordinary model's head, as a `TaskModel` of calque names them."""
    theirs = linear_layers(held.model, held.kind)
    model = None if theirs is None else _copied(theirs, held)
    if model is None or not _agree(held.model.base_model, model, held.model, held.kind):
        raise BadInput(
            f"its head is not the usual one of …{ORDINARY[held.kind]}",
            where=where,
            remedy="linear over the last layer; for a label of two texts through one more layer with tanh",
        )
    return model.state_dict()


def _copied(layers: Sequence[torch.nn.Linear], held: Ordinary) -> TaskModel:
    """A head of calque with these linear layers."""
    width = int(layers[0].in_features)
    model = make_model(held.kind, width=width, labels=len(held.labels) or None, mix="mean")
    with torch.no_grad():
        for own, other in zip(head_layers(model), layers, strict=True):
            own.weight.copy_(other.weight)
            own.bias.copy_(other.bias)
    return model
