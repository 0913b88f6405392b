"""Everything a training needs to go on as if it had never stopped, in safetensors and JSON only."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from calque.errors import BadInput
from calque.files import atomic_directory, damage, read_json, seal, write_json
from calque.progress import say

BEST, POSITION = "best", "position.json"
_KEPT = 2


@dataclass(frozen=True)
class Position:
    """Where a training stands: steps done, and the next batch of which epoch.

    `best` is the best score, `best_at` the step that had it.
    """

    step: int = 0
    epoch: int = 0
    place: int = 0
    best: float | None = None
    best_at: int | None = None


def trained_parameters(modules: Mapping[str, torch.nn.Module]) -> dict[str, torch.nn.Parameter]:
    """What is trained, by module and name; a parameter shared by two modules is named once."""
    found: dict[str, torch.nn.Parameter] = {}
    seen: set[int] = set()
    for prefix, module in modules.items():
        for name, parameter in module.named_parameters():
            if parameter.requires_grad and id(parameter) not in seen:
                seen.add(id(parameter))
                found[f"{prefix}.{name}"] = parameter
    return found


def save_checkpoint(
    folder: Path,
    position: Position,
    parameters: Mapping[str, torch.nn.Parameter],
    optimiser: torch.optim.Optimizer,
    others: Mapping[str, Mapping[str, torch.Tensor]],
) -> Path:
    """Write `step-N` whole, and let go of all but the last two. `others` are more tensors by file name."""
    path = folder / f"step-{position.step:08d}"
    with atomic_directory(path) as partial:
        _save(partial / "weights.safetensors", parameters)
        _save(partial / "optimiser.safetensors", _optimiser_state(parameters, optimiser))
        for name, tensors in others.items():
            _save(partial / f"{name}.safetensors", tensors)
        write_json(partial / POSITION, asdict(position))
        seal(partial)
    for old in checkpoints(folder)[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return path


def save_best(folder: Path, parameters: Mapping[str, torch.nn.Parameter], score: float, step: int) -> None:
    """Keep these weights as the best so far."""
    with atomic_directory(folder / BEST) as partial:
        _save(partial / "weights.safetensors", parameters)
        write_json(partial / "score.json", {"score": score, "step": step})
        seal(partial)


def checkpoints(folder: Path) -> list[Path]:
    """Whole checkpoints, oldest first."""
    return sorted(path for path in folder.glob("step-*") if (path / POSITION).is_file())


def newest(folder: Path) -> Path | None:
    """The last checkpoint that is as it was written, or None where there are none; tells of damaged ones."""
    found = checkpoints(folder)
    for path in reversed(found):
        file = damage(path)
        if file is None:
            return path
        say(f"{path / file} is damaged: going on from the checkpoint before")
    if found:
        raise BadInput("every checkpoint is damaged", where=folder, remedy="remove it to start anew")
    return None


def check_best(folder: Path) -> None:
    """Refuse best weights that are not as they were written: they cannot be had again."""
    file = damage(folder / BEST)
    if file is not None:
        raise BadInput("is damaged", where=folder / BEST / file, remedy=f"remove {folder} to start anew")


def load_position(path: Path) -> Position:
    """Where a checkpoint stands."""
    try:
        return Position(**read_json(path / POSITION))
    except TypeError:
        raise BadInput("not a checkpoint of calque", where=path, remedy="remove it to start anew") from None


def load_weights(path: Path, parameters: Mapping[str, torch.nn.Parameter]) -> None:
    """Put a checkpoint's weights into the parameters."""
    held = load_tensors(path / "weights.safetensors")
    if {name: value.shape for name, value in held.items()} != {n: p.shape for n, p in parameters.items()}:
        raise BadInput("holds other weights than are trained here", where=path, remedy="start anew")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(held[name])


def load_optimiser(
    path: Path, parameters: Mapping[str, torch.nn.Parameter], optimiser: torch.optim.Optimizer
) -> None:
    """Put a checkpoint's moments into an optimiser of the same parameters."""
    held = load_tensors(path / "optimiser.safetensors")
    for name, parameter in parameters.items():
        begin = f"{name}//"
        mine = {key.removeprefix(begin): value for key, value in held.items() if key.startswith(begin)}
        # Fused optimisers want the count of steps on the device, too.
        optimiser.state[parameter] = {key: value.to(parameter.device) for key, value in mine.items()}


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Tensors of one file; {} when there is none."""
    if not path.is_file():
        return {}
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise BadInput(f"cannot be read: {error}", where=path, remedy="remove it to start anew") from None


def _optimiser_state(
    parameters: Mapping[str, torch.nn.Parameter], optimiser: torch.optim.Optimizer
) -> dict[str, torch.Tensor]:
    return {
        f"{name}//{key}": torch.as_tensor(value)
        for name, parameter in parameters.items()
        for key, value in optimiser.state.get(parameter, {}).items()
    }


def _save(path: Path, tensors: Mapping[str, Any]) -> None:
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path)
