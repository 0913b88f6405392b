"""The loop: it learns, it goes on after a kill with the same bits, and it knows when to stop."""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from calque.errors import BadInput, BadSetting, TrainingStopped
from calque.progress import shown
from calque.training.checkpoint import Position, checkpoints, load_optimiser, save_checkpoint
from calque.training.crew import Crew
from calque.training.loop import HISTORY, Taken, TrainLog, TrainOptions, train
from calque.training.schedule import Schedule, rate, warmup_steps
from flipped import flipped, places


class Line:
    """Learns y = Xw from rows with dropout, and counts its own batches as a state that must survive."""

    unit = "rows"
    terms: Sequence[Any] = ()

    def __init__(self, rows: int = 64, size: int = 8) -> None:
        made = torch.Generator().manual_seed(0)
        self.x = torch.randn(rows, 5, generator=made)
        self.y = self.x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0])
        self.size = size
        with torch.random.fork_rng():
            torch.manual_seed(1)
            net = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(5, 16), torch.nn.Linear(16, 1))
        self.modules = {"net": net}
        self.count = torch.zeros(1)
        self.fail_at: int | None = None

    def batches(self, epoch: int) -> list[list[int]]:
        order = torch.randperm(len(self.x), generator=torch.Generator().manual_seed(epoch)).tolist()
        return [order[k : k + self.size] for k in range(0, len(order), self.size)]

    def step(self, batch: list[int], crew: Crew) -> Taken:
        rows = list(crew.share(batch))
        self.count += 1
        if self.fail_at is not None and self.count.item() == self.fail_at:
            raise KeyboardInterrupt
        apart = self.modules["net"](self.x[rows]).squeeze(1) - self.y[rows]
        return Taken({"squares": apart.square().sum() / len(batch)}, len(rows), {"count": self.count.item()})

    def state(self) -> dict[str, torch.Tensor]:
        return {"count": self.count}

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        self.count = state["count"].clone()

    def weights(self) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in self.modules["net"].parameters()])


def fit(task: Line, folder: Path, resume: bool = False, **settings: Any) -> TrainLog:
    options: dict[str, Any] = {"learning_rate": 0.02, "epochs": 6, "save_every": 5} | settings
    return train(task, TrainOptions(**options), folder, resume=resume)


def test_it_learns_and_tells_every_step(tmp_path: Path) -> None:
    log = fit(Line(), tmp_path, epochs=40, dropout=False)
    assert log.steps == len(log.history) == 320
    assert log.history[-1]["loss"] < 0.01 * log.history[0]["loss"]
    lines = (tmp_path / HISTORY).read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 321))


@pytest.mark.parametrize("moment", [3, 6, 17, 40])
def test_a_stopped_training_goes_on_to_the_same_bits(tmp_path: Path, moment: int) -> None:
    whole = Line()
    log = fit(whole, tmp_path / "whole")
    cut = Line()
    cut.fail_at = moment
    with pytest.raises(KeyboardInterrupt):
        fit(cut, tmp_path / "cut")
    again = Line()
    resumed = fit(again, tmp_path / "cut", resume=True)
    assert torch.equal(again.weights(), whole.weights())
    assert again.count == whole.count
    without_times = [
        [{key: value for key, value in one.items() if key != "seconds"} for one in held.history]
        for held in (log, resumed)
    ]
    assert without_times[0] == without_times[1]


def test_two_checkpoints_are_kept(tmp_path: Path) -> None:
    fit(Line(), tmp_path, steps=33)
    assert [path.name for path in checkpoints(tmp_path)] == ["step-00000025", "step-00000030"]


def test_accumulated_batches_equal_one_large_one(tmp_path: Path) -> None:
    large, small = Line(size=16), Line(size=4)
    order = large.batches(0)
    small.batches = lambda epoch: [batch[k : k + 4] for batch in order for k in (0, 4, 8, 12)]  # type: ignore[method-assign]
    fit(large, tmp_path / "a", epochs=1, dropout=False)
    fit(small, tmp_path / "b", epochs=1, dropout=False, accumulate=4)
    torch.testing.assert_close(large.weights(), small.weights(), atol=1e-6, rtol=0)


def test_the_best_weights_stay(tmp_path: Path) -> None:
    task = Line()
    scores = iter([1.0, 5.0, 2.0, 3.0])
    seen: list[torch.Tensor] = []

    def evaluate() -> float:
        seen.append(task.weights().clone())
        return next(scores)

    options = TrainOptions(learning_rate=0.02, steps=40, evaluate_every=10)
    log = train(task, options, tmp_path, evaluate=evaluate)
    assert log.best == 5.0 and log.best_at == 20 and torch.equal(task.weights(), seen[1])


def test_a_loss_that_is_not_finite_stops_with_the_last_good_checkpoint(tmp_path: Path) -> None:
    task = Line()
    step = task.step

    def broken(batch: list[int], crew: Crew) -> Taken:
        taken = step(batch, crew)
        return Taken({"squares": taken.losses["squares"] * (math.nan if task.count > 12 else 1)}, 1)

    task.step = broken  # type: ignore[method-assign]
    with pytest.raises(TrainingStopped, match=r"step 13: the loss squares is not finite.*step-00000010"):
        fit(task, tmp_path)
    assert torch.isfinite(task.weights()).all()


def test_a_watched_figure_past_its_bound_stops(tmp_path: Path) -> None:
    with pytest.raises(TrainingStopped, match=r"count is \d+\.\d+, above 14"):
        fit(Line(), tmp_path, bounds={"count": 14.0})


def test_a_stopped_training_remembers_what_it_watched(tmp_path: Path) -> None:
    told = r"stopped at step 25: count is 14\.5"
    with pytest.raises(TrainingStopped, match=told):
        fit(Line(), tmp_path / "whole", bounds={"count": 14.0})
    cut = Line()
    cut.fail_at = 22
    with pytest.raises(KeyboardInterrupt):
        fit(cut, tmp_path / "cut", bounds={"count": 14.0})
    with pytest.raises(TrainingStopped, match=told):
        fit(Line(), tmp_path / "cut", resume=True, bounds={"count": 14.0})


def test_moments_go_where_the_weights_are(tmp_path: Path) -> None:
    """Fused optimisers want the count of steps there, too; here `meta` is the other device."""
    here = torch.nn.Parameter(torch.ones(2))
    optimiser = torch.optim.AdamW([here], fused=True)
    here.sum().backward()
    optimiser.step()
    made = save_checkpoint(tmp_path, Position(step=1), {"w": here}, optimiser, {})
    there = torch.nn.Parameter(torch.ones(2, device="meta"))
    other = torch.optim.AdamW([there])
    load_optimiser(made, {"w": there}, other)
    assert {value.device.type for value in other.state[there].values()} == {"meta"}


def test_a_term_without_a_graph_moves_the_weights(tmp_path: Path) -> None:
    class Pull:
        name = "pull"

        def __init__(self, task: Line) -> None:
            self.parameters = list(task.modules["net"].parameters())
            self.origin = [p.detach().clone() for p in self.parameters]

        def add(self) -> float:
            total = 0.0
            for p, origin in zip(self.parameters, self.origin, strict=True):
                apart = p.detach() - origin
                assert p.grad is not None
                p.grad.add_(apart, alpha=2e3)
                total += 1e3 * float(apart.square().sum())
            return total

    free, held = Line(), Line()
    held.terms = [Pull(held)]
    start = free.weights()
    log = fit(held, tmp_path / "a", clip=None)
    fit(free, tmp_path / "b", clip=None)
    assert (held.weights() - start).norm() < 0.2 * (free.weights() - start).norm()
    assert log.history[5]["losses"]["pull"] > 0


def test_processes_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"1 processes run here, not 2.*torchrun --nproc-per-node 2"):
        fit(Line(), tmp_path, processes=2)


def test_a_frozen_task_is_refused(tmp_path: Path) -> None:
    task = Line()
    task.modules["net"].requires_grad_(False)
    with pytest.raises(BadSetting, match="nothing is trained"):
        fit(task, tmp_path)


def test_schedules_equal_those_of_transformers() -> None:
    import transformers

    def theirs(make: Any) -> list[float]:
        adam = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        scheduler = make(adam)
        found = []
        for _ in range(50):
            adam.step()
            scheduler.step()
            found.append(adam.param_groups[0]["lr"])
        return found

    linear = theirs(lambda adam: transformers.get_linear_schedule_with_warmup(adam, 10, 50))
    constant = theirs(lambda adam: transformers.get_constant_schedule_with_warmup(adam, 10))
    # Theirs begins with a step of rate 0, which changes nothing; ours does not.
    ours = [rate(Schedule.LINEAR, step, warmup=10, total=50) for step in range(50)]
    assert ours[:10] == pytest.approx(linear[:10])
    assert ours[11:] == pytest.approx(linear[10:-1])
    assert [rate(Schedule.CONSTANT, step, warmup=10, total=50) for step in range(50)] == pytest.approx(
        constant
    )
    assert warmup_steps(0.1, 50) == 5 and warmup_steps(7, 50) == 7


def cut_at(moment: int, folder: Path) -> list[Path]:
    """A training that was cut off, and its checkpoints."""
    cut = Line()
    cut.fail_at = moment
    with pytest.raises(KeyboardInterrupt):
        fit(cut, folder)
    return checkpoints(folder)


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = Line()
    fit(whole, tmp_path / "whole")
    cut_at(17, tmp_path / "cut")
    for number, name in enumerate(sorted(path.name for path in checkpoints(tmp_path / "cut")[-1].iterdir())):
        for place in places(3, seed=number):
            here = tmp_path / f"{name} {place}"
            shutil.copytree(tmp_path / "cut", here)
            again = Line()
            with flipped(checkpoints(here)[-1] / name, place), shown():
                fit(again, here, resume=True)
            assert torch.equal(again.weights(), whole.weights()), name
            assert "damaged: going on from the checkpoint before" in capsys.readouterr().err


def test_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    kept = cut_at(17, tmp_path)
    with flipped(kept[0] / "weights.safetensors", 0.9), flipped(kept[1] / "position.json", 0.5):
        with pytest.raises(BadInput, match=r"every checkpoint is damaged.*remove it to start anew"):
            fit(Line(), tmp_path, resume=True)
    with flipped(tmp_path / HISTORY, 0.0), pytest.raises(BadInput, match=r"steps\.jsonl: is damaged"):
        fit(Line(), tmp_path, resume=True)
    fit(Line(), tmp_path, resume=True)


def test_damaged_best_weights_are_refused(tmp_path: Path) -> None:
    task, scores = Line(), iter(range(100))
    task.fail_at = 17
    options = TrainOptions(learning_rate=0.02, epochs=6, save_every=5, evaluate_every=5)
    with pytest.raises(KeyboardInterrupt):
        train(task, options, tmp_path, evaluate=lambda: float(next(scores)))
    with flipped(tmp_path / "best" / "weights.safetensors", 0.9):
        with pytest.raises(BadInput, match=r"weights\.safetensors: is damaged"):
            train(Line(), options, tmp_path, evaluate=lambda: float(next(scores)), resume=True)
