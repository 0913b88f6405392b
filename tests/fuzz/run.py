"""Fuzz one target or all: `python tests/fuzz/run.py NAME [--count N | --atheris SECONDS]`.

Without atheris, `N` inputs are made of valid ones; the same number and seed give the same input. With it
(`pip install atheris`), libFuzzer looks for inputs that reach code which no other reached. What is found is
printed, once for each place in the code, with the input.
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

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "encoders")]

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
)


def place_of(error: BaseException) -> str:
    """Where an error came from: its kind, and the last lines of calque that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "calque" in f.filename]
    return f"{type(error).__name__} {' '.join(own[-2:])}"


def limit_memory() -> None:
    """Refuse more memory than `ROOM`, so that a file which asks for all of it is found."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))


def fuzz(
    name: str, count: int, seed: int = 0, found: dict[str, tuple[str, bytes]] | None = None
) -> tuple[int, float]:
    """Run so many inputs; how many were refused, and seconds of the processor."""
    from mutation import mutate
    from targets import check, targets

    target, refused, start = targets()[name], 0, time.process_time()
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as place:
        folder = Path(place)
        if all([check(target, data, folder) for _, data in target.seeds]):
            raise AssertionError(f"{name}: every valid input was refused")
        for number in range(count):
            data = mutate(random.Random(f"{name} {seed} {number}"), list(target.seeds))
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
    import targets as held

    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("names", nargs="*")
    asked.add_argument("--count", type=int, default=1000)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--atheris", type=int, metavar="SECONDS")
    asked.add_argument("--input", type=int, help="print this input of the first target, and run it")
    options = asked.parse_args()
    names = options.names or list(held.targets())
    if options.input is not None:
        from mutation import mutate

        data = mutate(
            random.Random(f"{names[0]} {options.seed} {options.input}"), list(held.targets()[names[0]].seeds)
        )
        print(data[:3000])
        with tempfile.TemporaryDirectory() as place:
            print("refused" if held.check(held.targets()[names[0]], data, Path(place)) else "read")
        return
    limit_memory()
    if options.atheris:
        cover(names[0], options.atheris)
        return
    for name in names:
        found: dict[str, tuple[str, bytes]] = {}
        refused, seconds = fuzz(name, options.count, options.seed, found)
        print(
            f"{name:12} {options.count} inputs, {refused} refused, {len(found)} found, {seconds:.0f} s",
            flush=True,
        )
        for place, (told, data) in found.items():
            print(f"   {place}: {told.strip()}\n      {data[:160]!r}", flush=True)


def cover(name: str, seconds: int) -> None:
    """Guided by coverage: atheris mutates, and our own mutations join in."""
    import atheris
    from mutation import mutate

    target = None
    found: Counter[str] = Counter()
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))

    def one(data: bytes) -> None:
        try:
            import targets as held

            held.check(target, data, folder)
        except Exception as error:
            place = place_of(error)
            if not found[place]:
                told = "".join(traceback.format_exception_only(error))[:300]
                print(f"FOUND {place}: {told.strip()}\n      {data[:300]!r}", flush=True)
            found[place] += 1

    def own(data: bytes, size: int, seed: int) -> bytes:
        if seed % 2:
            return bytes(atheris.Mutate(data, size))
        return mutate(random.Random(seed), [*target.seeds, ("text", data)])[:size]

    for module in [name for name in sys.modules if name.startswith("calque")]:
        del sys.modules[module]
    sys.modules.pop("targets")
    with atheris.instrument_imports(include=[f"calque.{room}" for room in READERS]):
        import targets as held
    target = held.targets()[name]
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
