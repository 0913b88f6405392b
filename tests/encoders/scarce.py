"""A model that runs out of memory when it is given too many pieces at once."""

import inspect
from typing import Any

import pytest
import torch

TOLD = (
    "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to allocate"
)


def scarce(
    body: Any,
    most: int,
    patch: pytest.MonkeyPatch,
    error: BaseException | None = None,
    grad: bool | None = None,
) -> list[int]:
    """Let a model fail above `most` pieces (with or without gradients only); notes what it reads."""
    forward, read = body.forward, list[int]()

    def failing(input_ids: torch.Tensor, **more: Any) -> Any:
        if input_ids.numel() > most and grad in (None, torch.is_grad_enabled()):
            raise error or RuntimeError(TOLD)
        read.append(input_ids.numel())
        return forward(input_ids=input_ids, **more)

    failing.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    patch.setattr(body, "forward", failing)
    return read
