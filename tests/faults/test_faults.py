"""Verbs that are cut off, two at once, and a full disk: a few rounds of each, and many that are slow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
QUICK = ["world", "align linear", "pretrain"]


def rounds(script: str, *arguments: object) -> str:
    """Run a harness; what it found is its last words."""
    command = [sys.executable, HERE / script, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def test_verbs_that_are_cut_off_end_the_same(tmp_path: Path) -> None:
    told = rounds("cut_off.py", tmp_path, "KILL:1,TERM:1,INT:1", *QUICK)
    assert [line.split(":")[0] for line in told.splitlines()] == QUICK


def test_a_full_disk_is_told_of(tmp_path: Path) -> None:
    assert rounds("full_disk.py", tmp_path, 2, "world", "link").count("had no room") == 2


@pytest.mark.slow
def test_every_verb_that_is_cut_off_ends_the_same(tmp_path: Path) -> None:
    rounds("cut_off.py", tmp_path, "KILL:8,TERM:4,INT:4")


@pytest.mark.slow
def test_every_verb_tells_of_a_full_disk(tmp_path: Path) -> None:
    rounds("full_disk.py", tmp_path, 6)
