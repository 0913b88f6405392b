"""Studies run in fresh processes under other circumstances, and what of their folders must be the same."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from calque.files import SUMS, damage
from calque.report.page import write_page

#: Of every kind of cell one, on a model of one layer.
QUICK = """
seeds = [0]

[world]
count = 60
tasks = 12

[encoders]
mlm = { languages = ["en", "near"], sentences = 60, vocabulary = 300, layers = 1, width = 16, heads = 2, inner = 16, steps = 2 }

[links]
tokenised = true
linker = "ibm1"
test = 20
text.near = "world:text/en-near.tsv"

[align]
methods = ["rotation", "weak"]
weak.steps = 2
weak.batch = 4

[measure.words]
include_seen = true
rounds = 10

[transfer]
epochs = 1

[transfer.pos]
regime = "features"
train.en = "world:tasks/pos/en.train.tsv"
test.near = "world:tasks/pos/near.test.tsv"

[compare]
rounds = 10
"""  # noqa: E501

#: All methods' kinds and all measures, several tasks, two languages and two seeds.
WHOLE = """
about = "Everything that a study can do, in small"
seeds = [0, 1]

[world]
count = 90
tasks = 24

[encoders]
mlm = { languages = ["en", "near", "far"], sentences = 100, vocabulary = 400, layers = 2, width = 16, heads = 2, inner = 32, steps = 3, seed = 0 }

[links]
tokenised = true
linker = "fast-align"
test = 30
text.near = "world:text/en-near.tsv"
text.far = "world:text/en-far.tsv"

[align]
methods = ["rotation", "gradient", "weak", "l2"]
gradient.method = "orthogonal-gradient"
gradient.steps = 5
weak.steps = 2
weak.batch = 4
l2.steps = 2
l2.batch = 4

[measure.words]
include_seen = true
rounds = 10

[measure.sentences]
rounds = 10

[measure.lexicon]
rounds = 10
text.en = "world:text/en.conllu"
text.near = "world:text/near.conllu"
text.far = "world:text/far.conllu"
dictionary.near = "world:text/en-near.train.txt"
dictionary.far = "world:text/en-far.train.txt"

[measure.cka]
rounds = 10

[measure.distances]
rounds = 10

[measure.projection]
rounds = 10

[transfer]
epochs = 1

[transfer.ner]
train.en = "world:tasks/ner/en.train.tsv"
test.near = "world:tasks/ner/near.test.tsv"

[transfer.pos]
regime = "features"
train.en = "world:tasks/pos/en.train.tsv"
test.near = "world:tasks/pos/near.test.tsv"

[compare]
rounds = 20
"""  # noqa: E501

#: What a computation took, which is another figure every time.
TIMES = re.compile(rb'("(?:seconds|total|peak_memory_mb|pieces a second)": )[\d.]+')
TEXT = {".json", ".jsonl", ".toml", ".md"}


def run_study(recipe: Path, out: Path, *more: str, umask: int = 0o022, **environment: str) -> None:
    """`calque study` in a process of its own that begins in the folder of the recipe."""
    done = subprocess.run(
        [sys.executable, "-m", "calque", "study", str(recipe), "--out", str(out), "--threads", "1", *more],
        cwd=recipe.parent, env={**os.environ, "OMP_NUM_THREADS": "1", **environment}, umask=umask,
        capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]


def contents(folder: Path, copy: Path) -> dict[str, bytes]:
    """What a study wrote, file by file: its place by another name, times alike, and the page made of that."""
    assert (folder / "report.html").stat().st_size > 10_000
    plain(folder, copy)
    write_page(copy)
    return files(copy)


def plain(folder: Path, copy: Path) -> dict[str, bytes]:
    """A copy of what was written, with its place by another name and times alike.

    Checksums are of files as they lay, place and all, so they are checked and left out.
    """
    for sums in folder.rglob(SUMS):
        assert damage(sums.parent) is None
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(SUMS))
    for path in copy.rglob("*"):
        if path.suffix in TEXT:
            held = path.read_bytes().replace(str(folder).encode(), b"PLACE")
            path.write_bytes(TIMES.sub(rb"\g<1>1", held))
        if path.name == "cost.json":
            path.write_text(json.dumps(alike(json.loads(path.read_bytes()))))
    return files(copy)


def files(copy: Path) -> dict[str, bytes]:
    return {str(path.relative_to(copy)): path.read_bytes() for path in copy.rglob("*") if path.is_file()}


def alike(held: Any) -> Any:
    """The same with every number 1."""
    if isinstance(held, dict):
        return {name: alike(one) for name, one in held.items()}
    return None if held is None else 1


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def exported(folder: Path, out: Path, **environment: str) -> bytes:
    """The tables of a study as `calque report` writes them."""
    subprocess.run(
        [sys.executable, "-m", "calque", "report", str(folder), "--tables", "csv", "--out", str(out)],
        env={**os.environ, **environment}, check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    return out.read_bytes()
