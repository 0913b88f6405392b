"""What every verb shares: run folders with recipe, environment and cost, and the opening of encoders."""

from __future__ import annotations

import platform
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import calque
from calque.circumstances import circumstances
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.cached import CachedEncoder
from calque.encoders.encoder import EncoderOptions
from calque.encoders.open import open_encoder
from calque.errors import BadInput, BadSetting, CalqueError
from calque.files import file_digest, is_done, read_json, run_folder, text_digest, write_json
from calque.locks import locked
from calque.pipeline.inputs import check_not_read, named_files
from calque.progress import say
from calque.recipe import Device, Dtype, Recipe
from calque.text.lines import refuse_pipe
from calque.training.checkpoint import checkpoints
from calque.training.crew import first_process
from calque.training.loop import HISTORY, TENSORBOARD
from calque.types import Encoder, WordPairs

#: Says in a folder of checkpoints whose they are.
MARKER = "recipe.json"
#: Fewer rounds of a bootstrap or a randomisation make no interval, and no p-value.
FEWEST_ROUNDS = 10
PACKAGES = ("numpy", "scipy", "torch", "transformers", "tokenizers", "sil-thot", "sacremoses")


class EncoderRecipe(Recipe):
    """Settings of a verb that opens encoders."""

    revision: str | None = None
    prefix: str | None = None
    max_length: int = 512
    dtype: Dtype = Dtype.FLOAT32

    def options(self, device: Device | str) -> EncoderOptions:
        return EncoderOptions(
            device=Device.parse(device),
            dtype=self.dtype,
            prefix=self.prefix,
            max_length=self.max_length,
            revision=self.revision,
        )


@dataclass
class Running:
    """A run under way: the folder it writes into, and what its stages cost."""

    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - began, 3)


@contextmanager
def running(recipe: Recipe, out: Path, *, overwrite: bool = False) -> Iterator[Running]:
    """A run folder that appears whole, with its recipe, environment and cost, or not at all."""
    check_not_read(out, named_files(recipe))
    with (
        circumstances() as met,
        run_folder(out, recipe.digest(), recipe.verb, overwrite=overwrite) as folder,
    ):
        run = Running(folder)
        with run.stage("total"):
            yield run
        recipe.save(folder / "recipe.toml")
        write_json(folder / "environment.json", environment() | ({"met": dict(met)} if met else {}))
        write_json(folder / "cost.json", {"seconds": run.seconds, "peak_memory_mb": peak_memory()})


def is_trained(out: Path, recipe: Recipe, *, overwrite: bool) -> bool:
    """Whether this training stands; what a kill just after its end left beside it goes."""
    if not is_done(out, recipe.digest(), overwrite=overwrite):
        check_not_read(out, named_files(recipe))
        return False
    for ending in (".training", ".parts"):
        work = out.parent / f".{out.name}{ending}"
        if first_process() and work.is_dir():
            with suppress(CalqueError), locked(out):
                # Without its marker it was being removed already.
                marker = work / MARKER
                if not marker.exists() or read_json(marker).get("digest") == recipe.digest():
                    shutil.rmtree(work, ignore_errors=True)
    return True


@contextmanager
def training_folder(out: Path, recipe: Recipe, *, resume: bool, overwrite: bool) -> Iterator[Path]:
    """Where the checkpoints of a training lie until it is done; none there, it leaves nothing."""
    with locked(out) if first_process() else nullcontext():
        is_done(out, recipe.digest(), overwrite=overwrite)
        work, done = out.parent / f".{out.name}.training", False
        try:
            _prepare(work, recipe, resume=resume, overwrite=overwrite)
            yield work
            done = True
        except KeyboardInterrupt:
            if checkpoints(work):
                say(f"what was trained is kept in {work}: --resume goes on")
            raise
        finally:
            if first_process() and (done or not checkpoints(work)):
                shutil.rmtree(work, ignore_errors=True)


def _prepare(work: Path, recipe: Recipe, *, resume: bool, overwrite: bool) -> None:
    """See to it that the checkpoints in a folder are of this very recipe, or that there are none."""
    marker = work / MARKER
    # Without its marker it was being removed already.
    if checkpoints(work) and marker.is_file() and not overwrite:
        if read_json(marker).get("digest") != recipe.digest():
            raise BadSetting(
                "an unfinished training of another recipe lies here",
                where=work,
                remedy="--overwrite starts anew, another --out leaves it alone",
            )
        if not resume:
            raise BadSetting(
                "an unfinished training lies here",
                where=work,
                remedy="--resume goes on, --overwrite starts anew",
            )
    elif first_process():
        shutil.rmtree(work, ignore_errors=True)
        write_json(marker, {"digest": recipe.digest()})


def keep_records(work: Path, folder: Path) -> None:
    """What a training told step by step goes into its run, TensorBoard's records too where there are any."""
    artifacts = folder / "artifacts"
    shutil.copyfile(work / HISTORY, artifacts / HISTORY)
    if (work / TENSORBOARD).is_dir():
        # TensorBoard names its files after the machine, and takes them under any name with this beginning.
        (artifacts / TENSORBOARD).mkdir()
        for number, file in enumerate(sorted((work / TENSORBOARD).glob("events.out.tfevents.*"))):
            shutil.copyfile(file, artifacts / TENSORBOARD / f"events.out.tfevents.{number}")


def environment() -> dict[str, Any]:
    """Versions and machine, as far as a result may depend on them."""
    import torch

    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "calque": calque.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
        "cpu": {"kind": cpu_kind(), "instructions": torch.backends.cpu.get_cpu_capability()},
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "blas": blas(),
        "packages": versions,
    }


def cpu_kind() -> str:
    """The processor by name, where the system says it: matrix products are computed differently on others."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def blas() -> str:
    """The library of linear algebra that numpy was built with; torch has its own."""
    built: Any = np.show_config(mode="dicts")
    held = built["Build Dependencies"]["blas"]
    return f"{held.get('name')} {held.get('version')}"


_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_memory() -> int | None:
    """The most memory this process has held, in megabytes; None where the system does not say."""
    if _STATUS.is_file():
        for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(int(line.split()[1]) / 1e3)
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most / (1e6 if sys.platform == "darwin" else 1e3))


def forget_peak() -> None:
    """Let the peak begin anew with what is held now, where the system can: for one run after another."""
    with suppress(OSError):
        _FORGET.write_text("5")


def input_digests(paths: Sequence[str | Path]) -> dict[str, str]:
    """Fingerprints of input files by name; a remote dataset is named, not hashed."""
    found: dict[str, str] = {}
    for number, given in enumerate(paths):
        path = Path(given)
        if str(given).startswith("hf:"):
            found[f"{number}"] = text_digest(str(given))
        elif path.is_file():
            found[f"{number}"] = file_digest(path)
        else:
            refuse_pipe(path)
            raise BadInput("is a folder, not a file" if path.is_dir() else "no such file", where=path)
    return found


def open_for(
    spec: str, options: EncoderOptions, languages: tuple[str, str] | None = None, *, cached: bool = False
) -> Encoder:
    """An encoder by name, with the vector cache under its maps, in a space where both languages meet."""
    encoder = open_encoder(spec, options)
    if isinstance(encoder, AlignedEncoder):
        aligned = replace(encoder, inner=CachedEncoder(encoder.inner)) if cached else encoder
        return aligned if languages is None else aligned.meeting(languages)
    return CachedEncoder(encoder) if cached else encoder


def links_grid(pairs: WordPairs, count: int = 8) -> list[dict[str, object]]:
    """A few short sentences with their links, for the page."""
    lengths = pairs.bitext.source.lengths + pairs.bitext.target.lengths
    middling = np.flatnonzero((lengths >= 8) & (lengths <= 40))
    chosen = (middling if len(middling) else np.arange(len(pairs.bitext)))[:count]
    part = pairs.sentences(chosen)
    return [
        {
            "source": part.bitext.source[i],
            "target": part.bitext.target[i],
            "languages": list(part.languages),
            "links": [
                [int(a), int(b), round(float(score), 4)]
                for a, b, score in zip(part.source[rows], part.target[rows], part.score[rows], strict=True)
            ],
        }
        for i in range(len(chosen))
        for rows in [part.sentence == i]
    ]
