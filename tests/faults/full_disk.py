"""Runs verbs where there is too little room: `full_disk.py FOLDER ROUNDS [VERB …]`.

As root on a small disk of its own (tmpfs) with some bytes left, otherwise with a bound on the size of files.
Half of the rounds have the cache and the place of temporary files there too. A verb must end with code 2,
name the place and say what to do, leave nothing half-written, and what stood before must still stand.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from cut_off import begin, check_whole, ended, hidden, prepare, state
from small_verbs import PARTS, VERBS, Written, write_study

DISK = Path("disk")
WRITING = [name for name in VERBS if name != "cache prune"]
SIZE = 64 << 20


def mounted() -> bool:
    """A small disk of our own, where we may have one."""
    DISK.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(DISK)]
    return os.geteuid() == 0 and subprocess.run(command, check=False, capture_output=True).returncode == 0


def leave(room: int) -> None:
    """Fill the disk until so many bytes are left."""
    (DISK / "filler").unlink(missing_ok=True)
    free = shutil.disk_usage(DISK).free
    with (DISK / "filler").open("wb") as handle:
        handle.write(bytes(max(0, free - room)))


def attempt(name: str, luck: random.Random, *, tmpfs: bool) -> str | None:
    """One round: what the verb said when there was no room, or None where there was enough."""
    verb = VERBS[name]
    out = DISK / Path(verb.out).name
    again = Written(verb.line.replace(f"--out {verb.out}", f"--out {out}"), str(out))
    cramped = luck.random() < 0.5
    os.environ["CALQUE_CACHE"] = str((DISK if cramped else Path("roomy")).absolute() / "cache")
    os.environ["TMPDIR"] = str((DISK if cramped else Path("roomy")).absolute())
    shutil.rmtree(os.environ["CALQUE_CACHE"], ignore_errors=True)
    files = ("demo", "report", "report study", "predict", "export")
    stood = luck.random() < 0.5 and name not in files and name not in PARTS
    if stood:
        out.mkdir()
        (out / "finished.json").write_text('{"recipe": "another", "verb": "link"}')
        again = Written(f"{again.line} --overwrite", str(out))
    before = state(out)
    needed = (
        sum(path.stat().st_size for path in Path(verb.out).rglob("*")) if Path(verb.out).is_dir() else 9000
    )
    room = int(needed * luck.uniform(0, 1))
    if tmpfs:
        leave(room)
    said, limits = Path("said.txt"), resource.getrlimit(resource.RLIMIT_FSIZE)
    if not tmpfs:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(4096, room // 4), limits[1]))
    code = ended(begin(again, said))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    told = said.read_text()
    (DISK / "filler").unlink(missing_ok=True)
    check_whole(out, name)
    if code:
        assert "Traceback" not in told, f"{name}: {told}"
        assert code == 2 or (name in PARTS and code == 1), f"{name}: code {code}: {told}"
        assert "no room left on its disk (make some, or" in told, f"{name}: {told}"
        steps = name in PARTS or name == "demo"  # those that were done stand
        assert steps or state(out) == before, f"{name}: {out} is not as it was"
        assert not hidden(DISK), f"{name}: left {hidden(DISK)}"
    for path in DISK.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return told if code else None


def main() -> None:
    root, rounds, wanted = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or WRITING
    root.mkdir(parents=True, exist_ok=True)
    os.chdir(root)
    write_study(root)
    Path("roomy").mkdir(exist_ok=True)
    prepare(wanted)
    for name in wanted:
        if not Path(VERBS[name].out).exists():
            assert ended(begin(VERBS[name], Path("said.txt"))) == 0, Path("said.txt").read_text()
    tmpfs, failed = mounted(), 0
    try:
        for name in wanted:
            luck = random.Random(name)
            try:
                said = [attempt(name, luck, tmpfs=tmpfs) for _ in range(rounds)]
            except AssertionError as error:
                failed += 1
                print(f"FAILED {error}", flush=True)
                continue
            refused = [one for one in said if one]
            example = refused[0].strip().splitlines()[-1] if refused else ""
            print(f"{name}: {len(refused)} of {rounds} had no room; {example}", flush=True)
    finally:
        if tmpfs:
            subprocess.run(["umount", str(DISK)], check=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
