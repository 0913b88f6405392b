"""Several processes give what one gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from calque.training.crew import Crew

HERE = Path(__file__).parent


def torchrun(folder: Path, processes: int) -> list[dict[str, list[float]]]:
    folder.mkdir()
    paths = [str(HERE), str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes),
            str(HERE / "two_processes.py"), str(folder), str(processes),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
        check=True,
        capture_output=True,
        timeout=200,
    )  # fmt: skip
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(processes)]


def test_two_processes_give_the_losses_and_weights_of_one(tmp_path: Path) -> None:
    (one,) = torchrun(tmp_path / "one", 1)
    two = torchrun(tmp_path / "two", 2)
    assert [found["size"] for found in two] == [2, 2]
    assert [found["share"] for found in two] == [[0, 2, 4], [1, 3]]
    assert [found["total"] for found in two] == [3, 3]
    assert two[0]["gathered"] == two[1]["gathered"] == [0, 1, 10, 11, 12]
    assert [found["offset"] for found in two] == [0, 2]
    assert two[0]["slope"] == [0, 3] and two[1]["slope"] == [6, 9, 12]
    assert [found["summed"] for found in two] == 2 * [[[2, 2], [1, 1], None]], "nobody's has none"
    assert all(found["patience"] > 24 * 3600 for found in two), "the first may test for hours"
    assert two[0]["losses"] == pytest.approx(one["losses"], abs=1e-5)
    assert two[0]["weights"] == two[1]["weights"] == pytest.approx(one["weights"], abs=1e-5)


def test_a_crew_of_one_changes_nothing() -> None:
    crew, rows = Crew.alone(), torch.ones(3, 2, requires_grad=True)
    assert crew.gather(rows) is rows and crew.offset(3) == 0
    assert crew.share([1, 2, 3]) == [1, 2, 3] and float(crew.total(2.5)) == 2.5
