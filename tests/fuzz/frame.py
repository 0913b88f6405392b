"""How an input is run.

A target reads bytes. It passes when it returns, or says in calque's own errors what is wrong; a message must
be one that can be printed.
"""

import random
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mutation import mutate

from calque.errors import CalqueError
from calque.files import SUMS

#: Seconds of the processor that one input may take: a busy machine is not a failure.
PATIENCE = 10
#: Characters that a message may have.
READABLE = 20_000


@dataclass(frozen=True)
class Target:
    """What is done with an input in an empty folder, and where inputs come from.

    Either valid ones are changed, each the kind of its shape and its bytes, or `make` draws them.
    """

    run: Callable[[bytes, Path], object]
    seeds: Sequence[tuple[str, bytes]]
    make: Callable[[random.Random], bytes] | None = None

    def input(self, draw: random.Random, *more: tuple[str, bytes]) -> bytes:
        """One input; `more` are changed too."""
        return self.make(draw) if self.make else mutate(draw, [*self.seeds, *more])


def drawn(run: Callable[[bytes, Path], object], make: Callable[[random.Random], bytes]) -> Target:
    """A target whose inputs are drawn; coverage begins from some of them."""
    seeds = [("binary", make(random.Random(number))) for number in range(20)]
    return Target(run, seeds, make)


class Found(AssertionError):
    """An input that came out as something else than a value or one of calque's own errors."""


def check(target: Target, data: bytes, folder: Path) -> bool:
    """Run one input; whether it was refused. Anything but a value and a readable refusal is raised."""
    with _patience():
        try:
            target.run(data, folder)
        except CalqueError as error:
            told = str(error)
            if len(told) > READABLE or (not told.isprintable() and any(c in told for c in "\0\x1b\r")):
                raise Found(f"not a message to read: {told[:200]!r}") from error
            told.encode("utf-8")
            return True
    return False


@contextmanager
def _patience() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"not done after {PATIENCE} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def put(folder: Path, name: str, data: bytes) -> Path:
    """A file, written anew."""
    path = folder / name
    with open(path, "wb", buffering=0) as handle:
        handle.write(data)
    return path


def tried(*readers: Callable[[], object]) -> None:
    """All of these, none of which may do more than refuse."""
    for read in readers:
        with suppress(CalqueError):
            read()


def every(*readers: Callable[[], object]) -> None:
    """All of these; the first refusal is told after the last."""
    refused = None
    for read in readers:
        try:
            found = read()
            if isinstance(found, Iterator):
                for _ in found:
                    pass
        except CalqueError as error:
            refused = refused or error
    if refused:
        raise refused


def texts(*held: str) -> list[tuple[str, bytes]]:
    return [("text", text.encode()) for text in held]


def text(data: bytes) -> str:
    """Any string: halves of characters too."""
    with suppress(UnicodeDecodeError):
        return data.decode("utf-8", "surrogatepass" if len(data) % 2 else "surrogateescape")
    return data.decode("utf-8", "surrogateescape")


# --------------------------------------------------------------------------------------------- folders


def in_folder(
    make: Callable[[Path], object],
    read: Callable[[Path], object],
    kinds: Mapping[str, str],
    only: str = "*",
) -> Target:
    """A folder that `make` writes: the first line of an input names one of its files, the rest is in it.

    `only` is a pattern for the names of files that are changed.
    """
    made: dict[Path, dict[str, bytes]] = {}

    def files(folder: Path) -> dict[str, bytes]:
        if folder not in made:
            inside = folder / "made"
            make(inside)
            (inside / SUMS).unlink(missing_ok=True)  # or whatever is changed would be damage
            held = {
                str(p.relative_to(inside)): p.read_bytes() for p in sorted(inside.rglob(only)) if p.is_file()
            }
            made[folder] = held
        return made[folder]

    def run(data: bytes, folder: Path) -> None:
        held = files(folder)
        name, _, rest = data.partition(b"\n")
        chosen = name.decode("latin-1") if name.decode("latin-1") in held else next(iter(held))
        put(folder / "made", chosen, rest)
        try:
            read(folder / "made")
        finally:
            put(folder / "made", chosen, held[chosen])

    return Target(run, _seeds_of(make, kinds, only))


def _seeds_of(make: Callable[[Path], object], kinds: Mapping[str, str], only: str) -> list[tuple[str, bytes]]:
    with tempfile.TemporaryDirectory() as place:
        inside = Path(place, "made")
        make(inside)
        (inside / SUMS).unlink(missing_ok=True)
        return [
            (
                f"named {kinds.get(path.suffix, 'binary')}",
                f"{path.relative_to(inside)}\n".encode() + path.read_bytes(),
            )
            for path in sorted(inside.rglob(only))
            if path.is_file()
        ]


KINDS = {".json": "json", ".npy": "array", ".jsonl": "jsonl", ".safetensors": "safetensors", ".toml": "toml"}
