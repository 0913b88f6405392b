"""Commands in processes of their own: workers of a study that die, Ctrl-C for all, one folder for two."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cut_off import hidden, state
from small_verbs import write_study

STUDY = ("study", "study.toml", "--threads", "1", "--workers", "2", "--quiet")
#: A cell that others need no more than a few of: it must not be the world.
LATE = re.compile(r"/cells/\.((?:align|measure)-[^/]*)\.[0-9a-f]{8}\.partial")


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Begins a command in a folder and a process group of its own."""
    write_study(tmp_path)
    running: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        # Whatever runs the tests may ignore Ctrl-C.
        code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        code += "from calque.__main__ import main; main()"
        command = [sys.executable, "-c", code, *words]
        running.append(
            subprocess.Popen(
                command,
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        )
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the study comes to when it is left alone, by one process."""
    folder = tmp_path_factory.mktemp("whole")
    write_study(folder)
    command = [sys.executable, "-m", "calque", *STUDY[:4], "--quiet", "--out", "out"]
    subprocess.run(command, cwd=folder, check=True)
    return figures(folder / "out")


def figures(out: Path) -> dict[str, str]:
    """Results, links, items and maps: recipes of cells name files by absolute paths."""
    return {
        name: held for name, held in state(out).items() if name.endswith((".jsonl", ".npy", ".safetensors"))
    }


def children(pid: int) -> list[int]:
    """The workers of a process."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(one) for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
    except OSError:
        return []


def writes(pid: int) -> str | None:
    """The cell that a worker is writing, by the folder that it holds open."""
    for place in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            found = LATE.search(os.readlink(place))
        except OSError:
            continue
        if found:
            return found[1]
    return None


def at_work(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait until a worker writes a cell, and hold it there."""
    limit = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < limit:
        for pid in children(process.pid):
            if writes(pid):
                os.kill(pid, signal.SIGSTOP)
                if cell := writes(pid):
                    return pid, cell
                os.kill(pid, signal.SIGCONT)
        time.sleep(0.001)
    pytest.fail(
        f"no worker was seen at work: {process.communicate()[0] if process.poll() is not None else ''}"
    )


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks into /proc")


@needs_proc
def test_a_worker_that_is_killed_fails_its_cell_alone(
    tmp_path: Path, begun: Callable[..., subprocess.Popen[str]], whole: dict[str, str]
) -> None:
    first = begun(*STUDY, "--out", "out")
    pid, cell = at_work(first)
    os.kill(pid, signal.SIGKILL)
    told, _ = first.communicate(timeout=300)
    assert first.returncode == 1 and "Traceback" not in told, told
    cells = {one["key"]: one for one in json.loads((tmp_path / "out" / "study.json").read_text())["cells"]}
    assert cells[cell]["status"] == "failed" and "ended with code -9" in cells[cell]["error"]
    others = [one["status"] for key, one in cells.items() if key != cell and cell not in one["needs"]]
    assert "done" in others and set(others) <= {"done", "left out"}
    again = begun(*STUDY, "--out", "out")
    told, _ = again.communicate(timeout=300)
    assert again.returncode == 0, told
    # What was planned without the failed cell stays beside what there would have been.
    assert whole.items() <= figures(tmp_path / "out").items() and not hidden(tmp_path)


@needs_proc
def test_ctrl_c_reaches_a_study_and_its_workers(
    tmp_path: Path, begun: Callable[..., subprocess.Popen[str]], whole: dict[str, str]
) -> None:
    first = begun(*STUDY, "--out", "out")
    pid, _ = at_work(first)
    workers = children(first.pid)
    os.killpg(first.pid, signal.SIGINT)
    os.kill(pid, signal.SIGCONT)
    told, _ = first.communicate(timeout=300)
    assert first.returncode == 130 and "Traceback" not in told, told
    assert not hidden(tmp_path) and pid in workers
    assert not [one for one in workers if Path(f"/proc/{one}").exists()], "workers outlive the study"
    again = begun(*STUDY, "--out", "out")
    told, _ = again.communicate(timeout=300)
    assert again.returncode == 0, told
    assert figures(tmp_path / "out") == whole


def test_of_two_that_write_one_folder_the_second_is_refused(
    tmp_path: Path, begun: Callable[..., subprocess.Popen[str]]
) -> None:
    first = begun("world", "--count", "500", "--width", "8", "--out", "out", "--quiet")
    while not list(tmp_path.glob(".out.*.partial")):
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.002)
    os.kill(first.pid, signal.SIGSTOP)
    second = begun("world", "--count", "500", "--width", "8", "--out", "out", "--overwrite")
    told, _ = second.communicate(timeout=300)
    assert second.returncode == 2, told
    assert re.fullmatch(r"calque: out: another process is computing this run \(wait for it.*\)\n", told), told
    os.kill(first.pid, signal.SIGCONT)
    told, _ = first.communicate(timeout=300)
    assert first.returncode == 0 and (tmp_path / "out" / "finished.json").is_file(), told
    assert not hidden(tmp_path)
