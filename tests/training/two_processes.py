"""Run by torchrun in test_crew.py: what a process of a crew sees. Writes its findings as JSON."""

import json
import sys
from pathlib import Path

import torch
from test_loop import Line

from calque.training.loop import TrainOptions, start, train


def patience() -> float:
    """Seconds that a process waits for another."""
    import torch.distributed as dist

    if not dist.is_initialized():
        return 0.0
    return (
        dist.distributed_c10d._get_default_group()
        ._get_backend(torch.device("cpu"))
        .options._timeout.total_seconds()
    )


def main() -> None:
    folder = Path(sys.argv[1])
    _, crew = start(TrainOptions(processes=int(sys.argv[2])))

    rows = torch.arange(2.0 + crew.rank).reshape(-1, 1).add(10 * crew.rank).requires_grad_()
    gathered = crew.gather(rows)
    # Each process weighs all rows by its own factor: an owner's gradient is the sum over processes.
    (gathered.flatten() * torch.arange(len(gathered)) * (crew.rank + 1)).sum().backward()

    one, mine, nobodys = (torch.nn.Parameter(torch.zeros(2)) for _ in range(3))
    one.grad = torch.ones(2)
    mine.grad = torch.ones(2) if crew.rank == 0 else None
    crew.sum_gradients([one, mine, nobodys])
    summed = [None if held.grad is None else held.grad.tolist() for held in (one, mine, nobodys)]

    task = Line()
    log = train(
        task,
        TrainOptions(learning_rate=0.02, steps=10, dropout=False, save_every=100, processes=crew.size),
        folder / "run",
    )
    found = {
        "size": crew.size,
        "share": list(crew.share(range(5))),
        "total": float(crew.total(crew.rank + 1.0)),
        "gathered": gathered.flatten().tolist(),
        "offset": crew.offset(len(rows)),
        "slope": rows.grad.flatten().tolist(),
        "summed": summed,
        "patience": patience(),
        "losses": [one["loss"] for one in log.history],
        "weights": task.weights().tolist(),
    }
    (folder / f"{crew.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
