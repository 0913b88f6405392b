"""The processes that train together: each computes its share, and gathers what it needs of the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

T = TypeVar("T")


@dataclass(frozen=True)
class Crew:
    """One of `size` processes. Losses are shares that add up to the loss of all; so are gradients."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @classmethod
    def alone(cls, device: torch.device | str = "cpu") -> Crew:
        """One process by itself."""
        return cls(device=torch.device(device))

    def share(self, rows: Sequence[T]) -> Sequence[T]:
        """This process's part of what all work on."""
        return rows[self.rank :: self.size]

    def total(self, value: torch.Tensor | float) -> torch.Tensor:
        """The sum over all processes, in double precision on the CPU, without gradient."""
        # Some devices have no double precision.
        held = value.detach().cpu() if isinstance(value, torch.Tensor) else value
        own = torch.as_tensor(held, dtype=torch.float64).clone()
        if self.size == 1:
            return own
        summed = own.to(self.device, copy=True)
        dist.all_reduce(summed)
        return summed.cpu()

    def every(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """A tensor of the same shape from every process, in the order of ranks, without gradient."""
        if self.size == 1:
            return [tensor]
        held = tensor.detach().contiguous().to(self.device)
        found = [torch.empty_like(held) for _ in range(self.size)]
        dist.all_gather(found, held)
        return found

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """The rows of all processes, in the order of ranks; gradients go back to the rows' owners.

        Shape: (n, ...) to (sum of all n, ...); n may differ between processes.
        """
        if self.size == 1:
            return rows
        gathered: torch.Tensor = _Gather.apply(rows, self, self._counts(len(rows)))  # type: ignore[no-untyped-call]
        return gathered

    def offset(self, count: int) -> int:
        """Where this process's `count` rows begin in what `gather` returns."""
        return 0 if self.size == 1 else sum(self._counts(count)[: self.rank])

    def sum_gradients(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Add up the gradients of all processes; a parameter that one of them did not use counts as zero.

        One that none of them used has no gradient, as with one process: it neither decays nor moves on.
        """
        if self.size == 1:
            return
        used = torch.tensor([float(one.grad is not None) for one in parameters], device=self.device)
        dist.all_reduce(used)
        for parameter, some in zip(parameters, used.tolist(), strict=True):
            if not some:
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def wait(self) -> None:
        """Until every process is here."""
        wait_for_all()

    def _counts(self, count: int) -> list[int]:
        return [int(one) for one in self.every(torch.tensor([count], device=self.device))]


def first_process() -> bool:
    """Whether this is the process that writes; known before any crew has met."""
    return os.environ.get("RANK", "0") == "0"


def wait_for_all() -> None:
    """Until every process is here; at once where there is but one."""
    if dist.is_available() and dist.is_initialized():
        dist.barrier()


def leave() -> None:
    """Part from the others, all together. A process that ends otherwise may be ended by its own threads."""
    if not (dist.is_available() and dist.is_initialized()):
        return
    if dist.get_backend() == "gloo":
        with suppress(RuntimeError):  # another has failed, and says so itself
            dist.monitored_barrier(timeout=timedelta(seconds=10))
    dist.destroy_process_group()


class _Gather(torch.autograd.Function):
    """Rows of all processes; the backward pass sums each row's gradient over them."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, crew: Crew, counts: list[int]) -> torch.Tensor:
        ctx.crew, ctx.counts = crew, counts
        # Processes exchange blocks of one size.
        padded = rows.new_zeros((max(counts), *rows.shape[1:]))
        padded[: len(rows)] = rows
        return torch.cat([block[:n] for block, n in zip(crew.every(padded), counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        summed = slopes[0].contiguous()
        dist.all_reduce(summed)
        first = sum(ctx.counts[: ctx.crew.rank])
        return summed[first : first + ctx.counts[ctx.crew.rank]], None, None
