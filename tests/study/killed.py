"""Runs a study in children that are killed at random moments, then to the end: `killed.py RECIPE OUT KILLS`.

Everything is imported before the children are made, so that they die in the midst of their work. Where the
study is done before it was killed often enough, its measures are removed, and it goes on.
"""

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from calque.study import study
from calque.study import verbs as _loaded  # noqa: F401


def main() -> None:
    recipe, out, kills = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    luck, killed = random.Random(0), 0
    while killed < kills:
        child = os.fork()
        if child == 0:
            study(recipe, out=out, threads=1)
            os._exit(0)
        await_work(out, child)
        time.sleep(luck.choice((luck.uniform(0, 0.02), luck.uniform(0, 0.4))))
        os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        if killed < kills and (out / "finished.json").exists():
            for folder in (out / "cells").glob("measure-*"):
                shutil.rmtree(folder)
            (out / "finished.json").unlink()
    run = study(recipe, out=out, threads=1)
    print(f"{killed} kills, {len(run.computed)} cells computed after the last, {len(run.failed)} failed")


def await_work(out: Path, child: int) -> None:
    """Wait until a cell is being written, or the child has ended."""
    before = set(out.glob("cells/.*.partial"))
    while set(out.glob("cells/.*.partial")) <= before:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.002)


if __name__ == "__main__":
    main()
