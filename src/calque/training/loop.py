"""The one training loop: alignment, tasks and pretraining are given to it as a `Task`.

One process or many, started by `torchrun` or `accelerate launch`, run the same code: every process computes
its share of a global batch's loss, and gradients are summed before the step. Killed at any moment, it goes on
from its last checkpoint and ends, on a CPU, with the same bits.
"""

from __future__ import annotations

import atexit
import json
import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch

from calque.circumstances import note
from calque.encoders.memory import PORTIONS, free
from calque.errors import BadInput, BadSetting, LackOfMemory, MissingExtra, TrainingStopped, out_of_memory
from calque.files import write_text
from calque.progress import bar, say
from calque.training.checkpoint import (
    BEST,
    Position,
    check_best,
    checkpoints,
    load_optimiser,
    load_position,
    load_tensors,
    load_weights,
    newest,
    save_best,
    save_checkpoint,
    trained_parameters,
)
from calque.training.crew import Crew, leave
from calque.training.schedule import Schedule, rate, warmup_steps

if TYPE_CHECKING:
    from accelerate import Accelerator

Precision = Literal["float32", "float16", "bfloat16"]
_ACCELERATE: dict[Precision, str] = {"float32": "no", "float16": "fp16", "bfloat16": "bf16"}
#: Steps over which a watched figure is averaged before it is held against its bound.
PATIENCE = 20
#: How long a process waits for another.
PATIENT = timedelta(days=7)
HISTORY = "steps.jsonl"
TENSORBOARD = "tensorboard"


@dataclass(frozen=True)
class TrainOptions:
    """How to train.

    `steps` wins over `epochs`. `warmup` is a share of the steps below 1, otherwise a count. `processes` is
    how many are expected. `bounds` are the most that watched figures may reach on average over some steps.
    """

    learning_rate: float = 5e-5
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    epochs: int = 1
    steps: int | None = None
    warmup: float = 0.1
    schedule: Schedule = Schedule.LINEAR
    clip: float | None = 1.0
    accumulate: int = 1
    dropout: bool = True
    precision: Precision = "float32"
    cpu: bool = False
    seed: int = 0
    processes: int | None = None
    save_every: int = 200
    evaluate_every: int | None = None
    bounds: Mapping[str, float] = field(default_factory=dict)
    tensorboard: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "steps", "accumulate", "save_every", "evaluate_every", "processes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadSetting(f"{name} is {value}", remedy="at least 1")
        for name in ("epsilon", "weight_decay", "warmup"):
            if not getattr(self, name) >= 0:
                raise BadSetting(f"{name} is {getattr(self, name)}", remedy="at least 0")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise BadSetting(f"betas are {self.betas}", remedy="two numbers from 0 to below 1")
        if self.clip is not None and not self.clip > 0:
            raise BadSetting(f"clip is {self.clip}", remedy="above 0, or none to leave gradients as they are")
        if not self.learning_rate > 0:
            raise BadSetting(f"learning_rate is {self.learning_rate}", remedy="above 0, such as 5e-5")
        if self.precision not in _ACCELERATE:
            raise BadSetting(f"unknown precision {self.precision!r}", remedy=", ".join(_ACCELERATE))


@dataclass(frozen=True, eq=False)
class Taken:
    """What one step gave.

    `losses` are named scalars, weighted, whose sum is minimised: this process's share, so that the shares of
    all processes add up to the loss. `watched` are figures to show and to hold against bounds.
    """

    losses: Mapping[str, torch.Tensor]
    units: int
    watched: Mapping[str, float] = field(default_factory=dict)


class GradientTerm(Protocol):
    """A loss whose gradient is known without a graph."""

    name: str

    def add(self) -> float:
        """Add its gradient in place, and return its value."""
        ...


class Task(Protocol):
    """What is trained: parameters of `modules` that require gradients."""

    unit: str

    @property
    def modules(self) -> Mapping[str, torch.nn.Module]: ...

    @property
    def terms(self) -> Sequence[GradientTerm]: ...

    def batches(self, epoch: int) -> Sequence[Any]:
        """The global batches of an epoch: the same on every process, and whenever it is asked."""
        ...

    def step(self, batch: Any, crew: Crew) -> Taken:
        """Losses of this process's share of a batch."""
        ...

    def state(self) -> dict[str, torch.Tensor]:
        """What else must survive, such as a queue."""
        ...

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None: ...

    def read_in(self, parts: int) -> bool:
        """Read batches in so many parts, with the same losses; False where the last one had fewer rows."""
        ...


@dataclass(frozen=True)
class TrainLog:
    """What a training did: a record a step, the best score and its step where scores were taken."""

    steps: int
    history: Sequence[Mapping[str, Any]]
    best: float | None = None
    best_at: int | None = None


def train(
    task: Task,
    options: TrainOptions,
    folder: Path,
    *,
    evaluate: Callable[[], float] | None = None,
    resume: bool = False,
) -> TrainLog:
    """Train, with checkpoints in `folder`; with `resume`, from the last of them.

    With `evaluate`, the weights that score best are the ones that stay.
    """
    return _Trainer(task, options, folder, evaluate).run(resume)


def start(options: TrainOptions) -> tuple[Accelerator, Crew]:
    """The processes as accelerate finds them; refused when they are not as many as asked for."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import InitProcessGroupKwargs

    precision = _ACCELERATE[options.precision]
    if precision != "no" and not torch.cuda.is_available():
        warnings.warn(f"{options.precision} is for GPUs: training in float32", stacklevel=3)
        precision = "no"
    if AcceleratorState._shared_state and AcceleratorState().mixed_precision != precision:
        AcceleratorState._reset_state()  # an earlier training of this process chose otherwise
    # Without being told, accelerate starts no crew of CPUs.
    cpu = options.cpu or not (torch.cuda.is_available() or torch.backends.mps.is_available())
    # Others wait while the first process tests and writes, however long; torchrun ends them where one fails.
    patient = InitProcessGroupKwargs(timeout=PATIENT)
    accelerator = Accelerator(mixed_precision=precision, cpu=cpu, kwargs_handlers=[patient])
    atexit.register(leave)
    crew = Crew(accelerator.process_index, accelerator.num_processes, accelerator.device)
    if options.processes is not None and options.processes != crew.size:
        raise BadSetting(
            f"{crew.size} processes run here, not {options.processes}",
            remedy=f"start them with torchrun --nproc-per-node {options.processes} -m calque …",
        )
    return accelerator, crew


class _Trainer:
    """One training under way."""

    def __init__(
        self, task: Task, options: TrainOptions, folder: Path, evaluate: Callable[[], float] | None
    ) -> None:
        self.task, self.options, self.folder, self.evaluate = task, options, folder, evaluate
        self.accelerator, self.crew = start(options)
        if self.crew.rank == 0:
            told = f"{self.crew.size} processes, each" if self.crew.size > 1 else "one process"
            say(f"training by {told} on {self.crew.device}")
        for module in task.modules.values():
            module.to(self.crew.device).train(options.dropout)
        self.parameters = trained_parameters(task.modules)
        if not self.parameters:
            raise BadSetting("nothing is trained", remedy="freeze less")
        # One pass over memory instead of ten, which is most of a step's time for a large vocabulary.
        adam = torch.optim.AdamW(
            self.parameters.values(),
            lr=options.learning_rate,
            betas=options.betas,
            eps=options.epsilon,
            weight_decay=options.weight_decay,
            fused=True,
        )
        self.optimiser = adam
        self.scaler = torch.amp.GradScaler(enabled=self.accelerator.mixed_precision == "fp16")
        self.position = Position()
        self.portions = 1
        self.recent: dict[str, deque[float]] = {}
        self.began = time.monotonic()

    # ------------------------------------------------------------------------------------ the course

    def run(self, resume: bool) -> TrainLog:
        self.folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(self.options.seed + self.crew.rank)
        if resume:
            self._resume()
        total = self._total()
        history = self._history()
        for record in history[-PATIENCE:]:
            self._watch(record["watched"])
        if history and history[-1].get(PORTIONS, 1) > 1:
            self._read_in(history[-1][PORTIONS])
        writer = self._tensorboard()
        with bar("training", total, "steps", done=self.position.step) as advance:
            for group in self._groups(total):
                record = self._step(group, total)
                history.append(record)
                self._write(record, writer)
                advance(1, note=told(record, self.task.unit))
                self._after(total)
        self._settle()
        if writer is not None:
            writer.close()
        return TrainLog(self.position.step, history, self.position.best, self.position.best_at)

    def _total(self) -> int:
        if self.options.steps is not None:
            return self.options.steps
        batches = sum(len(self.task.batches(epoch)) for epoch in range(self.options.epochs))
        return math.ceil(batches / self.options.accumulate)

    def _groups(self, total: int) -> Iterator[list[Any]]:
        """The batches of each step from where the training stands, epoch after epoch."""
        group: list[Any] = []
        epoch, place = self.position.epoch, self.position.place
        while self.position.step < total:
            batches = self.task.batches(epoch)
            if not len(batches):
                raise BadInput("no batches to train on", remedy="check the links and their filters")
            last = self.options.steps is None and epoch == self.options.epochs - 1
            for number in range(place, len(batches)):
                group.append(batches[number])
                if len(group) == self.options.accumulate or (last and number == len(batches) - 1):
                    self.position = replace(self.position, epoch=epoch, place=number + 1)
                    yield group
                    group = []
                    if self.position.step == total:
                        return
            epoch, place = epoch + 1, 0

    def _step(self, group: Sequence[Any], total: int) -> dict[str, Any]:
        """One step of the optimiser, over one batch or several."""
        began, step = time.monotonic(), self.position.step
        warm = warmup_steps(self.options.warmup, total)
        factor = rate(self.options.schedule, step, warmup=warm, total=total)
        for some in self.optimiser.param_groups:
            some["lr"] = self.options.learning_rate * factor
        losses, watched, units = self._fitting(group)
        self._check_finite(losses)
        self.crew.sum_gradients(list(self.parameters.values()))
        self.scaler.unscale_(self.optimiser)
        losses |= {term.name: term.add() for term in self.task.terms}
        self._clip()
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.optimiser.zero_grad()
        self.position = replace(self.position, step=step + 1)
        self._check_bounds(watched)
        return {
            "step": step + 1,
            "loss": sum(losses.values()),
            "losses": losses,
            "watched": watched,
            "rate": self.options.learning_rate * factor,
            "units": units,
            "seconds": round(time.monotonic() - began, 4),
        } | ({PORTIONS: self.portions} if self.portions > 1 else {})

    def _fitting(self, group: Sequence[Any]) -> tuple[dict[str, float], dict[str, float], int]:
        """As `_backward`, begun anew with smaller parts of a batch until memory suffices."""
        random, state = self._random(), dict(self.task.state())
        while True:
            try:
                return self._backward(group)
            except Exception as error:
                if not out_of_memory(error):
                    raise
            self.optimiser.zero_grad()
            free()
            self._halve()
            self._set_random(*random)
            self.task.load_state(state)

    def _halve(self) -> None:
        """Read batches in twice as many parts from here on."""
        # Others wait for this process in the midst of a step: it cannot begin anew.
        before = self.portions
        if self.crew.size > 1 or not self._read_in(2 * before):
            raise LackOfMemory(
                f"not enough memory for step {self.position.step + 1}, read in {before} parts",
                where=self.folder,
                remedy="a smaller --batch with as much more --accumulate, a smaller --max-length, or --lora",
            )
        say(f"not enough memory: batches are read in {self.portions} parts from here on")

    def _read_in(self, parts: int) -> bool:
        """Whether that makes parts smaller than they were."""
        smaller, self.portions = self.task.read_in(parts), parts
        note(PORTIONS, str(parts))
        return smaller

    def _random(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Where the random numbers of this process stand."""
        cuda = self.crew.device.type == "cuda"
        return torch.get_rng_state(), torch.cuda.get_rng_state(self.crew.device) if cuda else None

    def _set_random(self, cpu: torch.Tensor, cuda: torch.Tensor | None) -> None:
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state(cuda, self.crew.device)

    def _backward(self, group: Sequence[Any]) -> tuple[dict[str, float], dict[str, float], int]:
        """Gradients of a group of batches, and what they say, over all processes."""
        losses: dict[str, float] = {}
        watched: dict[str, float] = {}
        units = 0.0
        for batch in group:
            with self.accelerator.autocast():
                taken = self.task.step(batch, self.crew)
            whole = torch.stack([value.float() for value in taken.losses.values()]).sum() / len(group)
            if whole.requires_grad:
                self.scaler.scale(whole).backward()  # type: ignore[no-untyped-call]
            shares = torch.stack([value.detach().cpu().double() for value in taken.losses.values()])
            for name, value in zip(taken.losses, self.crew.total(shares).tolist(), strict=True):
                losses[name] = losses.get(name, 0.0) + value / len(group)
            for name, value in taken.watched.items():
                watched[name] = watched.get(name, 0.0) + value / len(group)
            units += float(self.crew.total(float(taken.units)))
        return losses, watched, int(units)

    def _clip(self) -> None:
        """Bound the length of the gradient; half precision's scaler sees to gradients that overflow."""
        bound = math.inf if self.options.clip is None else self.options.clip
        length = torch.nn.utils.clip_grad_norm_(self.parameters.values(), bound)
        if not self.scaler.is_enabled() and not math.isfinite(length):
            self._stop("the gradient is not finite", "a lower learning rate, or a longer warm-up")

    # -------------------------------------------------------------------------------------- watching

    def _check_finite(self, losses: Mapping[str, float]) -> None:
        wrong = [name for name, value in losses.items() if not math.isfinite(value)]
        if wrong:
            self._stop(f"the loss {wrong[0]} is not finite", "a lower learning rate, or a longer warm-up")

    def _watch(self, watched: Mapping[str, float]) -> None:
        """Note the figures of a step that have a bound."""
        for name in self.options.bounds.keys() & watched:
            self.recent.setdefault(name, deque(maxlen=PATIENCE)).append(watched[name])

    def _check_bounds(self, watched: Mapping[str, float]) -> None:
        self._watch(watched)
        for name, recent in self.recent.items():
            bound = self.options.bounds[name]
            mean = sum(recent) / len(recent)
            if len(recent) == PATIENCE and mean > bound:
                self._stop(
                    f"{name} is {mean:.3f}, above {bound:g}: the space has collapsed",
                    "a regulariser, a lower learning rate, or fewer steps",
                )

    def _stop(self, why: str, remedy: str) -> None:
        kept = checkpoints(self.folder)
        where = f"the last good checkpoint is {kept[-1].name}" if kept else "before the first checkpoint"
        raise TrainingStopped(
            f"training stopped at step {self.position.step + 1}: {why}; {where}",
            where=self.folder,
            remedy=f"try {remedy}",
        )

    def _after(self, total: int) -> None:
        """What a step may be followed by: a score, a checkpoint."""
        step, every = self.position.step, self.options.evaluate_every
        if self.evaluate is not None and every is not None and (step % every == 0 or step == total):
            self._score()
        if step % self.options.save_every == 0 and step < total:
            self._save()

    def _score(self) -> None:
        assert self.evaluate is not None
        mine = self.evaluate() if self.crew.rank == 0 else 0.0
        score = float(self.crew.total(mine))
        best = self.position.best
        if best is None or score > best:
            self.position = replace(self.position, best=score, best_at=self.position.step)
            if self.crew.rank == 0:
                save_best(self.folder, self.parameters, score, self.position.step)

    # ------------------------------------------------------------------------------------ what is kept

    def _save(self) -> None:
        states = self.crew.every(torch.get_rng_state())
        random = {f"cpu {rank}": state for rank, state in enumerate(states)}
        if self.crew.device.type == "cuda":
            states = self.crew.every(torch.cuda.get_rng_state(self.crew.device).to(self.crew.device))
            random |= {f"cuda {rank}": state for rank, state in enumerate(states)}
        if self.crew.rank == 0:
            others = {"random": random, "task": self.task.state(), "scaler": self._scaler_state()}
            save_checkpoint(self.folder, self.position, self.parameters, self.optimiser, others)
        self.crew.wait()

    def _scaler_state(self) -> dict[str, torch.Tensor]:
        return {name: torch.tensor(value) for name, value in self.scaler.state_dict().items()}

    def _resume(self) -> None:
        path = newest(self.folder)
        if path is None:
            return
        self.position = load_position(path)
        if self.position.best is not None:
            check_best(self.folder)
        load_weights(path, self.parameters)
        load_optimiser(path, self.parameters, self.optimiser)
        self.task.load_state(load_tensors(path / "task.safetensors"))
        scaler = load_tensors(path / "scaler.safetensors")
        if scaler:
            self.scaler.load_state_dict({name: value.item() for name, value in scaler.items()})
        random = load_tensors(path / "random.safetensors")
        if f"cpu {self.crew.rank}" not in random:
            raise BadSetting(
                "was written by fewer processes than run here", where=path, remedy="start as many as before"
            )
        torch.set_rng_state(random[f"cpu {self.crew.rank}"])
        if f"cuda {self.crew.rank}" in random:
            torch.cuda.set_rng_state(random[f"cuda {self.crew.rank}"], self.crew.device)

    def _settle(self) -> None:
        """The best weights, where there are scores; and a mark that weights have changed.

        Fused steps do not move the version counters by which encoders notice training.
        """
        self.crew.wait()
        if self.position.best is not None:
            check_best(self.folder)
            load_weights(self.folder / BEST, self.parameters)
        for module in self.task.modules.values():
            module.eval()
        with torch.no_grad():
            for parameter in self.parameters.values():
                parameter.mul_(1)

    # ---------------------------------------------------------------------------------------- telling

    def _history(self) -> list[dict[str, Any]]:
        """Records of the steps done before, as they were written; later ones are struck out."""
        path = self.folder / HISTORY
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
            kept = lines[: self.position.step]
            records = [json.loads(line) for line in kept]
        except ValueError as error:
            told, remedy = f"is damaged: {error}", f"remove {self.folder} to start anew"
            raise BadInput(told, where=path, remedy=remedy) from None
        if self.crew.rank == 0:
            write_text(path, "".join(f"{line}\n" for line in kept))
        return records

    def _write(self, record: Mapping[str, Any], writer: Any) -> None:
        if self.crew.rank != 0:
            return
        with (self.folder / HISTORY).open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(record) + "\n")
        if writer is not None:
            for name, value in {**record["losses"], **record["watched"], "rate": record["rate"]}.items():
                writer.add_scalar(name, value, record["step"])

    def _tensorboard(self) -> Any:
        if not self.options.tensorboard or self.crew.rank != 0:
            return None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtra("--tensorboard", "tensorboard") from None
        return SummaryWriter(str(self.folder / TENSORBOARD))


def told(record: Mapping[str, Any], unit: str) -> str:
    """A step in a few words: loss terms, watched figures, units a second.

    >>> told({"losses": {"l2": 0.25}, "watched": {"cosine": 0.5}, "units": 100, "seconds": 0.5}, "words")
    'l2 0.2500  cosine 0.500  200 words/s'
    """
    parts = [f"{name} {value:.4f}" for name, value in record["losses"].items()]
    parts += [f"{name} {value:.3f}" for name, value in record["watched"].items()]
    return "  ".join([*parts, f"{record['units'] / max(record['seconds'], 1e-9):,.0f} {unit}/s"])
