"""Fuzz one target or all: `python tests/fuzz/run.py NAME [--count N | --atheris SECONDS]`.

Without atheris, `N` inputs are drawn or made of valid ones; the same number and seed give the same input.
With it (`pip install atheris`), libFuzzer looks for inputs that reach code which no other reached. What is
found is printed, once for each place in the code, with the input.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / room) for room in ("", "encoders"))]

#: Memory that reading may take beyond what the program takes before it reads.
ROOM = 4 << 30
#: Rooms whose code is to be reached.
READERS = (
    "documents",
    "text",
    "links",
    "encoders",
    "recipe",
    "presets",
    "store",
    "study.recipe",
    "study.plan",
    "stats",
    "transfer",
)


def place_of(error: BaseException) -> str:
    """Where an error came from: its kind, and the last lines of calque or its tests that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = ("calque", str(HERE), str(HERE.parent / "encoders"))
    own = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if any(one in f.filename for one in ours)]
    return f"{type(error).__name__} {' '.join(own[-2:])}"


def made(name: str, seed: int, number: int) -> bytes:
    """The input of this name."""
    from targets import targets

    return targets()[name].input(random.Random(f"{name} {seed} {number}"))


def limit_memory() -> None:
    """Refuse more memory than `ROOM`, so that a file which asks for all of it is found."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))


def fuzz(
    name: str, count: int, seed: int = 0, found: dict[str, tuple[str, bytes]] | None = None
) -> tuple[int, float]:
    """Run so many inputs; how many were refused, and seconds of the processor."""
    from frame import check
    from targets import targets

    target, refused, start = targets()[name], 0, time.process_time()
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as place:
        folder = Path(place)
        if all([check(target, data, folder) for _, data in target.seeds]):
            raise AssertionError(f"{name}: every valid input was refused")
        for number in range(count):
            data = made(name, seed, number)
            try:
                refused += check(target, data, folder)
            except Exception as error:
                if found is None:
                    raise AssertionError(f"{name}, seed {seed}, input {number}: {data[:300]!r}") from error
                told = "".join(traceback.format_exception_only(error))[:300]
                key = place_of(error)
                if key not in found or len(data) < len(found[key][1]):
                    found[key] = (f"input {number}: {told}", data)
    return refused, time.process_time() - start


def main() -> None:
    from frame import check
    from targets import targets

    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("names", nargs="*")
    asked.add_argument("--count", type=int, default=1000)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--atheris", type=int, metavar="SECONDS")
    asked.add_argument("--input", type=int, help="print this input of the first target, and run it")
    options = asked.parse_args()
    names = options.names or list(targets())
    if options.input is not None:
        data = made(names[0], options.seed, options.input)
        print(data[:3000])
        with tempfile.TemporaryDirectory() as place:
            print("refused" if check(targets()[names[0]], data, Path(place)) else "read")
        return
    limit_memory()
    if options.atheris:
        cover(names[0], options.atheris)
        return
    for name in names:
        found: dict[str, tuple[str, bytes]] = {}
        refused, seconds = fuzz(name, options.count, options.seed, found)
        print(
            f"{name:17} {options.count} inputs, {refused} refused, {len(found)} found, {seconds:.0f} s",
            flush=True,
        )
        for place, (told, data) in found.items():
            print(f"   {place}: {told.strip()}\n      {data[:160]!r}", flush=True)


def cover(name: str, seconds: int) -> None:
    """Guided by coverage: atheris changes bytes, and our own inputs join in."""
    import atheris

    found: Counter[str] = Counter()
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))

    def one(data: bytes) -> None:
        try:
            check(target, data, folder)
        except Exception as error:
            place = place_of(error)
            if not found[place]:
                told = "".join(traceback.format_exception_only(error))[:300]
                print(f"FOUND {place}: {told.strip()}\n      {data[:300]!r}", flush=True)
            found[place] += 1

    def own(data: bytes, size: int, seed: int) -> bytes:
        if seed % 2:
            return bytes(atheris.Mutate(data, size))
        return target.input(random.Random(seed), ("text", data))[:size]

    for module in [
        name for name in sys.modules if name.startswith("calque") or (HERE / f"{name}.py").exists()
    ]:
        del sys.modules[module]
    with atheris.instrument_imports(include=[f"calque.{room}" for room in READERS]):
        from frame import check
        from targets import targets
    target = targets()[name]
    corpus = Path(tempfile.mkdtemp())
    for number, (_, data) in enumerate(target.seeds):
        (corpus / str(number)).write_bytes(data)
    arguments = [
        sys.argv[0],
        str(corpus),
        f"-max_total_time={seconds}",
        "-max_len=4096",
        "-rss_limit_mb=0",
        "-print_final_stats=1",
    ]
    atheris.Setup(arguments, one, custom_mutator=own)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
