"""`calque doctor`: what is installed, what this machine can do, and what stands in the way."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch
from packaging.requirements import Requirement

import calque
from calque.encoders.bundled import BUNDLED, MANIFEST
from calque.encoders.encoder import choose_device
from calque.errors import BadSetting
from calque.files import cache_limit, cache_root
from calque.recipe import Device, Dtype

#: Bytes that a bundled encoder and some vectors need.
ROOM = 1_000_000_000

_TRIAL = """
import torch
torch.manual_seed(0)
a, b = torch.randn(64, 384), torch.randn(384, 384)
found = (a.to("{device}", torch.{dtype}) @ b.to("{device}", torch.{dtype})).float().cpu()
raise SystemExit(0 if torch.allclose(found, a @ b, atol=2) else "wrong numbers")
"""


@dataclass(frozen=True)
class Extra:
    """A group of optional packages; `lacking` are those that are not here, `install` the line that helps."""

    name: str
    lacking: Sequence[str]
    install: str | None


@dataclass(frozen=True)
class Machine:
    """Where encoders run: `device` is what `--device auto` means here. Memory is in bytes, where known."""

    system: str
    device: str
    device_name: str
    processors: int
    threads: int
    memory: int | None


@dataclass(frozen=True)
class CacheState:
    """The cache folder, in bytes; `limit` bounds the vectors, `unpacked` tells of bundled encoders."""

    folder: Path
    writable: bool
    size: int
    limit: int | None
    free: int
    unpacked: Mapping[str, bool]


@dataclass(frozen=True)
class Trial:
    """Whether a precision may be used: `fault` says what went wrong in a process that tried it."""

    dtype: str
    fault: str | None


@dataclass(frozen=True)
class Problem:
    """Something that stands in the way, and what would help."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Checkup:
    """All that `doctor` found; a version is None where a package that calque needs is not installed."""

    versions: Mapping[str, str | None]
    extras: Sequence[Extra]
    machine: Machine
    cache: CacheState
    precisions: Sequence[Trial]
    problems: Sequence[Problem]


def doctor() -> Checkup:
    """Look at the installation and the machine. Writes nothing, loads no encoder."""
    needed, machine, cache = _requirements(), _machine(), _cache()
    versions = {"calque": calque.__version__, "python": platform.python_version()}
    return Checkup(
        versions={**versions, **{one.name: _version(one.name) for one in needed}},
        extras=[_extra(name) for name in _extras()],
        machine=machine,
        cache=cache,
        precisions=_trials(machine.device),
        problems=[*_faults_of_packages(needed), *_faults_of_cache(cache)],
    )


# ------------------------------------------------------------------------------------------- packages


def _requirements(extra: str = "") -> list[Requirement]:
    """What calque needs on this system, or what one of its extras adds, as its package states."""
    if _version("calque") is None:
        return []
    stated = [Requirement(text) for text in metadata.requires("calque") or ()]
    always = [one for one in stated if _applies(one, "")]
    return [one for one in stated if _applies(one, extra) and one not in always] if extra else always


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _extras() -> list[str]:
    return metadata.metadata("calque").get_all("Provides-Extra") or [] if _version("calque") else []


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _met(requirement: Requirement) -> bool:
    found = _version(requirement.name)
    return found is not None and requirement.specifier.contains(found, prereleases=True)


def _extra(name: str) -> Extra:
    lacking = [f"{one.name}{one.specifier}" for one in _requirements(name) if not _met(one)]
    return Extra(name, lacking, f"pip install 'calque[{name}]'" if lacking else None)


def _faults_of_packages(needed: Sequence[Requirement]) -> Iterator[Problem]:
    if not needed:
        yield Problem(
            "calque is not installed as a package: what it needs is not known", "pip install calque"
        )
    for one in needed:
        if not _met(one):
            stated = f"{one.name}{one.specifier}"
            found = _version(one.name) or "not installed"
            yield Problem(f"calque needs {stated}; here it is {found}", f"pip install '{stated}'")


# -------------------------------------------------------------------------------------------- machine


def _machine() -> Machine:
    device = choose_device(Device.AUTO)
    cuda = device.type == "cuda"
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        device=device.type,
        device_name=torch.cuda.get_device_name() if cuda else platform.processor() or platform.machine(),
        processors=os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        memory=torch.cuda.get_device_properties(device).total_memory if cuda else _memory(),
    )


def _memory() -> int | None:
    """Memory of the machine, in bytes; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _trials(device: str) -> list[Trial]:
    """Half precisions, each tried in a process of its own: some processors end the one that tries."""
    kinds = [kind.value for kind in Dtype if kind is not Dtype.FLOAT32]
    with ThreadPoolExecutor() as pool:
        faults = pool.map(fault_of, [_TRIAL.format(device=device, dtype=kind) for kind in kinds])
        return [Trial(kind, fault) for kind, fault in zip(kinds, faults, strict=True)]


def fault_of(code: str, seconds: float = 120) -> str | None:
    """Run Python code in a child process; None if it ended well, else what happened to it.

    >>> fault_of("raise SystemExit('no luck')")
    'no luck'
    """
    try:
        child = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {seconds:g} seconds"
    if child.returncode < 0:
        return f"the process is ended by {signal.Signals(-child.returncode).name}"
    last = (child.stderr.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
    return last if child.returncode else None


# ---------------------------------------------------------------------------------------------- cache


def _cache() -> CacheState:
    root = cache_root()
    standing = next(folder for folder in (root.absolute(), *root.absolute().parents) if folder.exists())
    try:
        limit = cache_limit()
    except BadSetting:
        limit = None
    return CacheState(
        folder=root,
        writable=standing.is_dir() and os.access(standing, os.W_OK | os.X_OK),
        size=sum(file.stat().st_size for file in root.rglob("*") if file.is_file()),
        limit=limit,
        free=shutil.disk_usage(standing).free,
        unpacked={name: (root / "encoders" / name / MANIFEST).is_file() for name in BUNDLED},
    )


def _faults_of_cache(cache: CacheState) -> Iterator[Problem]:
    if not cache.writable:
        yield Problem(
            f"the cache folder {cache.folder} cannot be written", "set CALQUE_CACHE to a folder of your own"
        )
    elif cache.free < ROOM:
        yield Problem(
            f"{cache.free / 1e6:,.0f} MB are free at the cache folder {cache.folder}",
            "`calque cache prune`, or set CALQUE_CACHE to a folder with a free gigabyte",
        )
    if cache.limit is None:
        yield Problem(
            f"CALQUE_CACHE_GB is {os.environ.get('CALQUE_CACHE_GB')!r}", "a number of gigabytes, such as 20"
        )
