"""Models that share some of their weights: one tensor in several models."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def is_under(name: str, parts: Sequence[str]) -> bool:
    """Whether a parameter belongs to one of these parts of a model.

    >>> [is_under(name, ["layer.1"]) for name in ("layer.1.output", "layer.1", "layer.10")]
    [True, True, False]
    """
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def tie(models: Sequence[torch.nn.Module], separate: Sequence[str] = ()) -> None:
    """Give all models the weights of the first, but those under `separate`, which each keeps.

    A weight that is tied inside a model to one of its own (the softmax of a language model to its embeddings)
    stays tied: separate both, or neither.
    """
    first = dict(models[0].named_parameters(remove_duplicate=False))
    for model in models[1:]:
        for name, parameter in list(model.named_parameters(remove_duplicate=False)):
            if not is_under(name, separate) and parameter is not first[name]:
                owner, _, last = name.rpartition(".")
                setattr(model.get_submodule(owner), last, first[name])


def shared(models: Sequence[torch.nn.Module]) -> list[torch.nn.Parameter]:
    """The parameters that every one of these models has."""
    held = [{id(parameter) for parameter in model.parameters()} for model in models[1:]]
    return [parameter for parameter in models[0].parameters() if all(id(parameter) in own for own in held)]
