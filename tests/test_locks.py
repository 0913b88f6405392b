"""One writer at a time; what a dead process left is swept up, what a living one writes is not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from calque import locks
from calque.errors import BadSetting, CannotWrite
from calque.files import atomic_directory, atomic_file, is_done, run_folder, write_text
from calque.locks import locked, scratch, sweep_all

#: Begins to write a run, a file and an entry, says so, and waits.
WRITER = """
import sys, time
from pathlib import Path
from calque.files import atomic_directory, atomic_file, run_folder
root = Path(sys.argv[1])
with run_folder(root / "run", "one", "link") as run, atomic_file(root / "file") as file:
    (run / "half").write_text("half")
    file.write_text("half")
    print("writing", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def writer(tmp_path: Path) -> subprocess.Popen[str]:
    """Another process in the midst of its work."""
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "writing\n"
    return process


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_dead_writer_is_swept_up_and_a_living_one_is_not(
    tmp_path: Path, writer: subprocess.Popen[str]
) -> None:
    before = names(tmp_path)
    assert sorted(name.split(".")[-1] for name in before) == ["lock", "partial", "partial"], before
    with pytest.raises(BadSetting, match=r"run: another process is computing this run.*another --out"):
        with run_folder(tmp_path / "run", "one", "link"):
            pass
    write_text(tmp_path / "file", "mine")
    sweep_all(tmp_path)
    assert names(tmp_path) == sorted([*before, "file"])
    writer.kill()
    writer.wait()
    write_text(tmp_path / "file", "mine again")
    with run_folder(tmp_path / "run", "one", "link") as run:
        assert len(names(tmp_path)) == 3, "what the dead one left is gone before anything is written"
        (run / "x").write_text("x")
    assert names(tmp_path) == ["file", "run"] and names(tmp_path / "run") == ["finished.json", "x"]


def test_files_of_alike_names_are_left_alone(tmp_path: Path) -> None:
    kept = [".run.html.abcd1234.partial", ".run.abcd.partial", ".running.abcd1234.partial", ".run.profile"]
    for name in [*kept, ".run.abcd1234.partial", ".run.abcd12_4.old"]:
        (tmp_path / name).write_text("x")
    with atomic_directory(tmp_path / "run"):
        pass
    assert names(tmp_path) == sorted([*kept, "run"])


def test_what_was_moved_away_by_a_dead_process_comes_back(tmp_path: Path) -> None:
    was = tmp_path / ".run.abcd1234.old" / "was"
    was.mkdir(parents=True)
    (was / "x").write_text("computed for a week")
    with pytest.raises(ZeroDivisionError), atomic_directory(tmp_path / "run"):
        _ = 1 / 0
    assert names(tmp_path) == ["run"] and (tmp_path / "run" / "x").read_text() == "computed for a week"


def test_what_stood_before_stands_when_replacing_it_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "run" / "x", "before")
    rename, calls = Path.rename, list[Path]()

    def cut(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == 3:  # the first try, moving the old one away, and the second try
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", cut)
    with pytest.raises(KeyboardInterrupt), atomic_directory(tmp_path / "run") as partial:
        (partial / "x").write_text("after")
    assert names(tmp_path) == ["run"] and (tmp_path / "run" / "x").read_text() == "before"


def test_a_signal_amid_removing_does_not_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink, pressed = os.unlink, []

    def pressing(*given: object, **named: object) -> None:
        if not pressed:
            pressed.append(True)
            raise KeyboardInterrupt
        unlink(*given, **named)  # type: ignore[arg-type]

    with pytest.raises(KeyboardInterrupt):
        with locks.beside(tmp_path / "run", folder=True) as made:
            for name in "abc":
                (made / name).touch()
            monkeypatch.setattr(os, "unlink", pressing)
    assert pressed and not list(tmp_path.iterdir())


def test_a_run_whose_replacing_was_cut_off_is_not_lost_to_a_third(tmp_path: Path) -> None:
    old = tmp_path / ".run.12345678.old"
    with run_folder(tmp_path / "run", "first", "link"):
        pass
    old.mkdir()
    (tmp_path / "run").rename(old / "was")  # here the one that replaced it was killed
    with pytest.raises(BadSetting, match="a finished run of another recipe"):
        with run_folder(tmp_path / "run", "third", "link"):
            pass
    assert (tmp_path / "run" / "finished.json").exists() and not old.exists()


def test_the_lock_of_a_dead_process_goes_when_its_run_is_found(tmp_path: Path) -> None:
    with run_folder(tmp_path / "run", "first", "link"):
        assert is_done(tmp_path / "run", "first") is False and (tmp_path / ".run.lock").exists()
    (tmp_path / ".run.lock").touch()  # here its process was killed
    assert is_done(tmp_path / "run", "first") and not (tmp_path / ".run.lock").exists()
    with locked(tmp_path / "run"):
        assert is_done(tmp_path / "run", "first") and (tmp_path / ".run.lock").exists()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_amid_code_from_text_ends_as_any_other(tmp_path: Path, name: str) -> None:
    """Dataclasses make such code while modules are imported."""
    (tmp_path / "once.py").write_text(
        "import signal\n"
        "from calque.stopping import stoppable\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"with stoppable():\n    exec('import time; signal.raise_signal(signal.{name}); time.sleep(9)')\n"
    )
    done = subprocess.run([sys.executable, "-m", "once"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 128 + signal.Signals[name]


def test_a_lock_is_entered_again_by_its_holder_only(tmp_path: Path) -> None:
    def other() -> None:
        with locked(tmp_path / "run"):
            pass

    with locked(tmp_path / "run"), locked(tmp_path / "." / "run"), ThreadPoolExecutor(1) as pool:
        with pytest.raises(BadSetting, match="another process"):
            pool.submit(other).result()
    other()
    assert names(tmp_path) == []


def test_without_locks_nobody_is_refused_and_nothing_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: subprocess.Popen[str]
) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    with run_folder(tmp_path / "run", "one", "link"):
        pass
    assert len([name for name in names(tmp_path) if name.endswith(".partial")]) == 2
    writer.kill()
    writer.wait()


def test_many_at_once_end_with_one_whole_folder(tmp_path: Path) -> None:
    """Locks that come and go: each run has it alone."""
    inside, most = [0], [0]

    def enter(number: int) -> bool:
        try:
            with locked(tmp_path / "run"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.0005)
                inside[0] -= 1
                return True
        except BadSetting:
            return False

    with ThreadPoolExecutor(8) as pool:
        got = sum(pool.map(enter, range(400)))
    assert got and most[0] == 1 and names(tmp_path) == []


@pytest.mark.parametrize("place", ["file", "folder/below", "scratch"])
def test_what_cannot_be_written_is_named(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("a letter")
    out = tmp_path / "taken" / "run"
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "taken"))
    opened = {"file": lambda: atomic_file(out), "folder/below": lambda: atomic_directory(out / "x")}
    with pytest.raises(CannotWrite, match=r"taken.*is a file or lies below one") as told:
        with opened.get(place, scratch)():
            pass
    assert ("TMPDIR" in str(told.value)) == (place == "scratch")
    assert (tmp_path / "taken").read_text() == "a letter"


def test_a_read_only_place_is_named_before_anything_is_computed(
    tmp_path: Path, shut: Callable[[Path], None]
) -> None:
    read_only = tmp_path / "shut"
    write_text(read_only / "run" / "x", "before")
    shut(read_only)
    said = "Read-only file system" if os.geteuid() == 0 else "Permission denied"
    for name in ("run", "new", "new/below"):
        with pytest.raises(CannotWrite, match=rf"{name}: cannot be written: {said} \(another --out\)"):
            with run_folder(read_only / name, "one", "link", overwrite=True):
                pytest.fail("began to compute")
    with pytest.raises(CannotWrite, match=said):
        write_text(read_only / "run" / "x", "after")
    assert (read_only / "run" / "x").read_text() == "before" and names(read_only) == ["run"]


def test_a_lock_that_was_taken_anew_is_no_dead_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sweeps has opened the lock of one writer, when that one ends and another begins."""
    run, real = tmp_path / "run", locks.take
    lock = tmp_path / f".run{locks.LOCK}"
    lock.touch()

    def take(descriptor: int, **how: Any) -> bool | None:
        monkeypatch.setattr(locks, "take", real)
        lock.unlink()
        lock.touch()
        return real(descriptor, **how)

    monkeypatch.setattr(locks, "take", take)
    locks.sweep_lock(run)
    assert lock.exists()
    locks.sweep_lock(run)
    assert not lock.exists(), "a dead one's goes"


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
@pytest.mark.parametrize("presses", [1, 2])
def test_a_signal_puts_everything_away(tmp_path: Path, number: str, code: int, presses: int) -> None:
    inside = "\n".join(f"    {line}" for line in WRITER.splitlines())
    # What runs the tests may ignore Ctrl-C, as a script does for what it puts into the background, or SIGHUP.
    heard = (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)"
    )
    text = f"{heard}\nfrom calque.stopping import stoppable\nwith stoppable():\n{inside}\n"
    process = subprocess.Popen(
        [sys.executable, "-c", text, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    for _ in range(presses):
        os.kill(process.pid, getattr(signal, number))
    _, told = process.communicate(timeout=60)
    assert process.returncode == code and names(tmp_path) == []
    assert told.startswith("calque: ") and told.endswith("nothing half-written\n") and told.count("\n") == 1
