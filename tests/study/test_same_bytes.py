"""The same recipe and seed give the same bytes, whatever the process, its surroundings and its cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import same_bytes

C = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
UTF = {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}


def recipe(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_small_study_twice(tmp_path: Path) -> None:
    """A fresh process each: other hash seeds, locales, folders, umasks; a cache, and none to speak of."""
    first, second = tmp_path / "a", tmp_path / "other place" / "deeper"
    same_bytes.run_study(
        recipe(first, same_bytes.QUICK), first / "out", **UTF, PYTHONHASHSEED="1",
        CALQUE_CACHE=str(tmp_path / "cache"),
    )  # fmt: skip
    same_bytes.run_study(
        recipe(second, same_bytes.QUICK), second / "study-2", umask=0o077, **C, PYTHONHASHSEED="2",
        CALQUE_CACHE=str(tmp_path / "small"), CALQUE_CACHE_GB="0",
    )  # fmt: skip
    one = same_bytes.contents(first / "out", tmp_path / "copies" / "1" / "study")
    other = same_bytes.contents(second / "study-2", tmp_path / "copies" / "2" / "study")
    assert {"results.jsonl", "report.html"} < set(one) and any("/items/" in name for name in one)
    assert same_bytes.differing(one, other) == []


@pytest.mark.slow
def test_a_whole_study_serial_and_parallel_cached_and_not(tmp_path: Path) -> None:
    runs = {
        "empty": {"PYTHONHASHSEED": "1", **UTF},
        "full": {"PYTHONHASHSEED": "2", **C},
        "none": {"PYTHONHASHSEED": "3", "CALQUE_CACHE_GB": "0", "CALQUE_CACHE": str(tmp_path / "none")},
    }
    found, tables = {}, {}
    for name, surroundings in runs.items():
        place = tmp_path / "runs" / name
        workers = ["--workers", "2"] if name == "none" else []
        environment = {"CALQUE_CACHE": str(tmp_path / "cache"), **surroundings}
        same_bytes.run_study(recipe(place, same_bytes.WHOLE), place / name, *workers, **environment)
        copy = tmp_path / "copies" / name / "study"  # tables tell the name of their run
        found[name] = same_bytes.contents(place / name, copy)
        tables[name] = same_bytes.exported(copy, place / "tables.csv", **environment)
    for name, other in found.items():
        assert (name, same_bytes.differing(found["empty"], other)) == (name, [])
        assert tables[name] == tables["empty"]


@pytest.mark.slow
def test_other_verbs_twice(corpus: Path, bert: Path, tmp_path: Path) -> None:
    """Linkers, mining, scores and aligned encoders, with other hash seeds and threads of the linkers' own."""
    script = Path(same_bytes.__file__).with_name("every_verb.py")
    found = []
    for name, threads in (("one", "1"), ("two", "2")):
        out = tmp_path / name / "out"
        out.mkdir(parents=True)
        surroundings = {
            "PYTHONHASHSEED": threads,
            "OMP_NUM_THREADS": threads,
            "CALQUE_CACHE": str(out.parent),
        }
        subprocess.run(
            [sys.executable, str(script), str(corpus), str(bert), str(out)],
            env={**os.environ, **surroundings}, check=True, timeout=600,
        )  # fmt: skip
        found.append(same_bytes.plain(out, tmp_path / "copies" / name))
    assert sum(name.endswith((".npy", ".safetensors")) for name in found[0]) > 30
    different = same_bytes.differing(*found)
    assert [
        name for name in different if not name.endswith("environment.json")
    ] == []  # which tells the threads
