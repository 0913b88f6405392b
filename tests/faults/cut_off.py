"""Cuts verbs off at random moments and runs them again: `cut_off.py FOLDER KILL:3,TERM:2,INT:2 [VERB …]`.

Everything is imported before the children are made, so that they are hit in the midst of their work. After
each cut what the verb writes must be absent or whole; a second run must succeed, give the same as a run that
was left alone, and leave nothing hidden. A stop that is asked for (TERM, INT) must leave nothing hidden by
itself, but for what a training goes on from, show no traceback, and end with 128 and the signal's number.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors import safe_open
from small_verbs import PARTS, VERBS, Written, argv, read_by, write_study

from calque.__main__ import main as calque
from calque.cli import main as _loaded  # noqa: F401
from calque.files import Cache
from calque.study import verbs as _all_verbs  # noqa: F401

#: What tells of times, or is made of what does.
NOT_THE_SAME = {
    "cost.json",
    "environment.json",
    "training.json",
    "study.json",
    "report.html",
}
#: What a training or a task goes on from.
KEPT = (".training", ".parts")


def begin(verb: Written, said: Path, *, again: bool = False) -> int:
    """A child that runs the verb; what it says goes into a file."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        code = typed(argv(verb, again=again), said)
    except BaseException as error:
        late = error.__context__  # the signal came when all was done
        code = int(late.code or 0) if isinstance(late, SystemExit) else 99
        if code == 99 and type(error) is not KeyboardInterrupt:  # the verb did not listen yet
            os.write(2, f"Traceback: {error!r}".encode())
    finally:
        os._exit(code)


def typed(words: list[str], said: Path) -> int:
    """The exit code of a command; what it says goes into a file."""
    with said.open("wb") as handle:
        os.dup2(handle.fileno(), 1)
        os.dup2(handle.fileno(), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever runs this ignores
    sys.argv = words
    try:
        calque()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def ended(child: int) -> int:
    """How a child ended: its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def state(out: Path) -> dict[str, str]:
    """What lies in a folder, but for what tells of times."""
    files = [out] if out.is_file() else sorted(path for path in out.rglob("*") if path.is_file())
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path == out or (path.name not in NOT_THE_SAME and not path.name.endswith("steps.jsonl"))
    }


def check_whole(out: Path, verb: str) -> None:
    """Absent, or finished and readable."""
    if not out.exists() or out.is_file():
        return
    runs = list(out.glob(PARTS[verb])) if verb in PARTS else [out]
    for run in runs:
        assert (run / "finished.json").is_file() or verb in ("demo", "cache prune"), f"{run} is not finished"
    for path in out.rglob("*"):
        if any(part.startswith(".") for part in path.relative_to(out).parts):
            continue
        if path.suffix == ".json":
            json.loads(path.read_text("utf-8"))
        elif path.suffix == ".npy":
            np.load(path, mmap_mode="r")
        elif path.suffix == ".safetensors":
            safe_open(path, "numpy")


def hidden(root: Path) -> list[str]:
    """Hidden files and folders anywhere below, and in the system's place for temporary ones."""
    found = [path for path in root.rglob(".*") if not path.name.endswith(KEPT)]
    return sorted(str(path.relative_to(root)) for path in found if not set(path.parent.parts) & set(KEPT))


class Rounds:
    """One verb, cut off again and again."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name, self.verb = root, name, VERBS[name]
        self.out, self.said = Path(self.verb.out), Path("said.txt")
        self.luck, self.number = random.Random(name), signal.SIGKILL
        self.stopped = self.stood = 0

    def run(self, rounds: dict[signal.Signals, int]) -> str:
        whole, seconds = self.undisturbed()
        told = []
        for self.number, count in rounds.items():
            self.stopped = self.stood = 0
            self.cut_off(count, whole, seconds)
            told.append(f"{self.stopped} {self.number.name[3:]} ({self.stood} with the folder there)")
        return f"{self.name}: {', '.join(told)}; {seconds:.1f} s undisturbed"

    def cut_off(self, rounds: int, whole: dict[str, str], seconds: float) -> None:
        for _ in range(20 + 20 * rounds):
            if self.stopped >= rounds:
                return
            self.remove()
            self.cut(seconds)
            if self.luck.random() < 0.3:  # twice in a row
                self.cut(seconds)
            self.finish()
            assert state(self.out) == whole, f"{self.name}: not the same after a cut"
            assert not hidden(self.root), f"{self.name}: left {hidden(self.root)}"
            assert not list(self.root.glob(".*")), f"{self.name}: {list(self.root.glob('.*'))} stayed"
        assert self.stopped >= rounds, f"{self.name}: stopped {self.stopped} times by {self.number.name}"

    def undisturbed(self) -> tuple[dict[str, str], float]:
        self.remove()
        began = time.monotonic()
        code = ended(begin(self.verb, self.said))
        assert code == 0, f"{self.name}: {self.said.read_text()}"
        return state(self.out), time.monotonic() - began

    def remove(self) -> None:
        for path in (self.out, Path("cache/vectors")):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if self.name == "cache prune":
            fill_cache()

    def cut(self, seconds: float) -> None:
        if (
            self.out.is_file() and self.name == "predict"
        ):  # an earlier cut came after it, and it is not replaced
            return
        self.said.unlink(missing_ok=True)
        child = begin(self.verb, self.said, again=self.resumes())
        self.wait(child, seconds)
        os.kill(child, self.number)
        twice = self.number != signal.SIGKILL and self.luck.random() < 0.3
        if twice:
            time.sleep(self.luck.uniform(0, 0.02))
            os.kill(child, self.number)
        code = ended(child)
        check_whole(self.out, self.name)
        told = self.said.read_text() if self.said.exists() else ""
        early = not told and code in (99, -self.number) and self.number != signal.SIGKILL
        if code == 0 or early:  # it came too late, or before the verb began to listen
            return
        if self.number == signal.SIGKILL:
            assert code == -signal.SIGKILL, told
        else:
            assert code == 128 + self.number, f"{self.name}: code {code}: {told}"
            assert "Traceback" not in told, f"{self.name}: {told}"
            assert not hidden(self.root), f"{self.name}: a stop left {hidden(self.root)}"
        self.stopped += 1
        self.stood += self.out.exists()

    def wait(self, child: int, seconds: float) -> None:
        """Any moment; or a short one after something hidden has appeared."""
        if self.luck.random() < 0.5:
            time.sleep(self.luck.uniform(0, seconds))
            return
        before, limit = self.begun(), time.monotonic() + seconds
        while self.begun() <= before and time.monotonic() < limit:
            time.sleep(0.005)
        time.sleep(self.luck.choice((self.luck.uniform(0, 0.02), self.luck.uniform(0, seconds / 2))))

    def begun(self) -> set[Path]:
        """What is being written: runs, cells of a study, vectors."""
        return {path for place in (".", "study/cells", "cache/vectors") for path in Path(place).glob(".*")}

    def resumes(self) -> bool:
        return any(self.root.glob(".*.training/step-*/position.json"))

    def finish(self) -> None:
        if self.out.is_file():  # cut off after it was written, and no verb replaces a file unasked
            return
        code = ended(begin(self.verb, self.said, again=self.resumes()))
        assert code == 0, f"{self.name}: the second run ended with {code}: {self.said.read_text()}"


def fill_cache() -> None:
    """Entries of several files, for a while of removing."""
    cache = Cache()
    for key in range(300):
        with cache.add(f"{key:064x}", "nothing") as folder:
            for number in range(5):
                (folder / f"{number}").touch()


def main() -> None:
    root, wanted = Path(sys.argv[1]), sys.argv[3:] or list(VERBS)
    pairs = (one.split(":") for one in sys.argv[2].split(","))
    rounds = {signal.Signals[f"SIG{name}"]: int(count) for name, count in pairs}
    root.mkdir(parents=True, exist_ok=True)
    os.chdir(root)
    os.environ["CALQUE_CACHE"] = str(root / "cache")
    os.environ["TMPDIR"] = str(root / "temporary")
    Path("temporary").mkdir(exist_ok=True)
    tempfile.tempdir = None
    write_study(root)
    prepare(wanted)
    failed = 0
    for name in wanted:
        try:
            print(Rounds(root, name).run(rounds), flush=True)
        except AssertionError as error:
            failed += 1
            print(f"FAILED {error}", flush=True)
            clear(root)
    sys.exit(failed)


def clear(root: Path) -> None:
    """Remove what a verb left, which is no fault of the next ones."""
    for left in hidden(root):
        path = root / left
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def prepare(wanted: Sequence[str]) -> None:
    """Make what the verbs read that is not there yet."""
    for verb in read_by(wanted):
        if not Path(verb.out).exists():
            assert ended(begin(verb, Path("said.txt"))) == 0, Path("said.txt").read_text()


if __name__ == "__main__":
    main()
