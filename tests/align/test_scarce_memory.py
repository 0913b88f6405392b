"""A training that is short of memory: read in parts, with the losses and gradients of the whole batch."""

from pathlib import Path
from typing import Any

import pytest
import torch
from linked_text import linked_text
from scarce import scarce
from tiny_encoders import build

from calque.align.finetune import FinetuneAligner, FinetuneOptions, Loss
from calque.circumstances import circumstances
from calque.encoders.encoder import HuggingFaceEncoder
from calque.errors import LackOfMemory
from calque.training.loop import TrainLog, TrainOptions, train

#: Adam moves a weight by its gradient's sign: with the usual epsilon, rounding can turn one that is nearly 0.
HOW: dict[str, Any] = {"learning_rate": 1e-3, "epsilon": 1e-4, "dropout": False, "save_every": 2}


def aligned(
    folder: Path, loss: str, patch: pytest.MonkeyPatch, most: int | None = None, **how: Any
) -> tuple[HuggingFaceEncoder, TrainLog]:
    """An encoder after some steps, in each of which only so many pieces with gradients fit into memory."""
    encoder = build("bert")
    options = FinetuneOptions(layers=(1, 3), batch=8, loss=Loss(loss), queue=0 if loss == "l2" else 12)
    task = FinetuneAligner(options).task(encoder, (linked_text(),))
    if most is not None:
        scarce(encoder.body, most, patch, grad=True)
    return encoder, train(task, TrainOptions(**HOW | {"steps": 3} | how), folder, resume=True)


def apart(one: torch.nn.Module, other: torch.nn.Module) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


@pytest.mark.parametrize("loss", ["l2", "weak", "strong"])
def test_losses_are_of_the_whole_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str) -> None:
    whole, log = aligned(tmp_path / "whole", loss, monkeypatch)
    with circumstances() as met:
        tight, short = aligned(tmp_path / "tight", loss, monkeypatch, most=60)
    parts = short.history[-1]["portions"]
    assert parts > 1 and met == {"portions": str(parts)} and "portions" not in log.history[0]
    for a, b in zip(log.history, short.history, strict=True):
        assert b["losses"] == pytest.approx(a["losses"], rel=1e-4, abs=1e-6)
    assert apart(tight.body, whole.body) < 2e-4 < apart(tight.body, build("bert").body)


def test_it_goes_on_in_parts_when_it_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = {"dropout": True, "steps": 4}
    _, cut = aligned(tmp_path, "weak", monkeypatch, most=60, **dropped | {"steps": 3})
    parts = cut.history[1]["portions"]
    # From the checkpoint of step 2, with memory enough by now.
    _, resumed = aligned(tmp_path, "weak", monkeypatch, **dropped)
    assert parts > 1
    assert [one["portions"] for one in resumed.history] == [cut.history[0]["portions"], *[parts] * 3]


def test_a_row_that_does_not_fit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        LackOfMemory, match=r"not enough memory for step 1, read in \d+ parts \(a smaller --batch"
    ):
        aligned(tmp_path, "l2", monkeypatch, most=3)
