"""Training less than everything: frozen parts, and low-rank adapters (LoRA) in place of whole matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from calque.encoders.encoder import HuggingFaceEncoder
from calque.errors import BadSetting, MissingExtra
from calque.types import Sentences

#: What families call the products that make queries and values; ModernBERT makes them in one.
QUERY_VALUE = frozenset(["query", "value", "query_proj", "value_proj", "q_lin", "v_lin", "q_proj", "v_proj",
                         "q", "v", "Wqkv"])  # fmt: skip
_ADAPTERS = "adapters in it"


class ParameterCount(NamedTuple):
    """How many numbers are trained, and how many there are."""

    trained: int
    all: int


def parameter_count(module: torch.nn.Module) -> ParameterCount:
    """Count parameters; one that is used in two places counts once.

    >>> parameter_count(torch.nn.Linear(3, 2).requires_grad_(False))
    ParameterCount(trained=0, all=8)
    """
    sizes = [(p.numel(), p.requires_grad) for p in module.parameters()]
    return ParameterCount(sum(size for size, trained in sizes if trained), sum(size for size, _ in sizes))


# ------------------------------------------------------------------------------------------ freezing


def freeze(encoder: HuggingFaceEncoder, *, embeddings: bool = False, layers: int = 0) -> None:
    """Hold the embeddings, the lower `layers` layers, or both as they are.

    Embeddings are all that layer 0 is computed from: pieces, positions, segments, their norm. The lower n
    layers are what else layer n is computed from, with tables of relative positions that upper layers share;
    so with both frozen, vectors up to layer n stay. With LoRA, freeze after `add_lora`.
    """
    _check_layers(encoder, layers)
    bottom, top = (behind(hidden) for hidden in _empty_sentence(encoder, (0, layers)))
    for parameter in top - bottom:
        parameter.requires_grad_(False)
    if embeddings:
        for parameter in bottom:
            parameter.requires_grad_(False)


def _check_layers(encoder: HuggingFaceEncoder, layers: int) -> None:
    if not 0 <= layers <= encoder.depth:
        raise BadSetting(
            f"{layers} lower layers to freeze", remedy=f"0 to {encoder.depth}, as {encoder.name} has"
        )
    if layers and encoder.blocks is None:
        raise BadSetting(
            f"{encoder.name} has no stack of separate layers, so its lower {layers} cannot be frozen",
            remedy="freeze the embeddings only, or train adapters",
        )


def check_trained(encoder: HuggingFaceEncoder, layers: Sequence[int]) -> None:
    """Refuse a training of these layers that would leave them as they are."""
    if not any(behind(hidden) for hidden in _empty_sentence(encoder, layers)):
        raise BadSetting(
            f"nothing that layers {', '.join(map(str, layers))} are computed from is trained",
            remedy="freeze less, or align higher layers",
        )


def _empty_sentence(encoder: HuggingFaceEncoder, layers: Sequence[int]) -> Sequence[torch.Tensor]:
    """Hidden states of a sentence without words, with the way they were computed."""
    with torch.enable_grad():
        return encoder.states(encoder.batch(Sentences.of("", [[]])), layers).hidden


def behind(tensor: torch.Tensor) -> set[torch.Tensor]:
    """Every trained parameter that a tensor was computed from.

    >>> a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    >>> behind(a * 2 + b.detach()) == {a}
    True
    """
    seen: set[Any] = set()
    found: set[torch.Tensor] = set()
    waiting = [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.add(node.variable)
        waiting.extend(earlier for earlier, _ in node.next_functions)
    return found


# ---------------------------------------------------------------------------------------------- LoRA


@dataclass(frozen=True, eq=False)
class Lora:
    """Low-rank adapters in an encoder; `merge` makes it an ordinary one again."""

    encoder: HuggingFaceEncoder
    tuner: Any
    held: Sequence[torch.nn.Parameter]

    def merge(self) -> None:
        """Add what the adapters learned to the encoder's own weights, and take them out."""
        from peft.tuners.lora import LoraLayer

        if self.encoder.unfinished.pop(_ADAPTERS, None) is None:
            return
        # peft's own merge changes weights behind the version counters by which encoders notice training.
        with torch.no_grad():
            for layer in self.tuner.modules():
                if isinstance(layer, LoraLayer):
                    layer.get_base_layer().weight.add_(layer.get_delta_weight(layer.active_adapters[0]))
        self.tuner.unload()
        for parameter in self.held:
            parameter.requires_grad_(True)


def add_lora(
    encoder: HuggingFaceEncoder,
    *,
    rank: int = 8,
    alpha: float = 16,
    targets: Sequence[str] | None = None,
    seed: int = 0,
) -> Lora:
    """Put adapters beside linear layers and hold all else: W x becomes W x + alpha / rank · B A x.

    B begins at zero, so vectors begin as they were; A is drawn from `seed`, alike in every process.
    `targets` are last names of linear layers; by default those that make queries and values.
    """
    try:
        from peft import LoraConfig
        from peft.tuners.lora import LoraModel
    except ImportError:
        raise MissingExtra("LoRA", "lora") from None
    for name, value in (("rank", rank), ("alpha", alpha)):
        if value <= 0:
            raise BadSetting(f"{name} of LoRA is {value}", remedy="above 0")
    if _ADAPTERS in encoder.unfinished:
        raise BadSetting(f"{encoder.name} already has adapters", remedy="merge them first")
    names = linear_layers(encoder, targets)
    held = [parameter for parameter in encoder.model.parameters() if parameter.requires_grad]
    encoder.model.requires_grad_(False)
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=names, lora_dropout=0.0, bias="none")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        tuner = LoraModel(encoder.body, config, "default")
    encoder.unfinished[_ADAPTERS] = "merge() them first"
    return Lora(encoder, tuner, held)


def linear_layers(encoder: HuggingFaceEncoder, targets: Sequence[str] | None) -> list[str]:
    """Full names of the linear layers with these last names; None is those of queries and values."""
    linear = [name for name, m in encoder.body.named_modules() if isinstance(m, torch.nn.Linear)]
    there = {name.rpartition(".")[2] for name in linear}
    wanted = there & QUERY_VALUE if targets is None else set(targets)
    if not wanted or wanted - there:
        missing = ", ".join(sorted(wanted - there)) or "queries and values"
        raise BadSetting(
            f"{encoder.name} has no linear layers for {missing}",
            remedy=f"targets can be {', '.join(sorted(there))}",
        )
    return [name for name in linear if name.rpartition(".")[2] in wanted]
