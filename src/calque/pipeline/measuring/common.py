"""What every measure shares: its settings, its encoders, its pairs, and the folder it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from pydantic import Field

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.open import trained_prefix
from calque.encoders.specs import short_name
from calque.errors import BadSetting
from calque.files import is_done, read_json, write_json
from calque.links.pharaoh import is_pud, read_pud
from calque.measure.scoring import Measurement
from calque.pipeline.runs import FEWEST_ROUNDS, EncoderRecipe, Running, open_for, running
from calque.recipe import Recipe, parse_layers
from calque.store import load_pairs, load_results, save_results
from calque.types import Encoder, Pooling, Result, WordPairs

COUNTS = "counts.json"


class MeasureRecipe(EncoderRecipe):
    """Settings of every measure. The first encoder is the baseline of every comparison.

    `rounds` are those of the bootstrap behind intervals; of each set of pairs the first `limit` sentences are
    taken.
    """

    places: ClassVar[frozenset[str]] = frozenset({"pairs", "encoders"})

    encoders: list[str]
    labels: tuple[str, ...] = ()
    pairs: list[str] = Field(default_factory=list)
    layers: str = "all"
    pooling: Pooling | None = None
    rounds: int = Field(1000, ge=FEWEST_ROUNDS)
    limit: int | None = Field(None, ge=1)

    @classmethod
    def of(cls, encoders: Many, pairs: Many = (), **settings: object) -> Self:
        """A recipe for one encoder or several, one set of pairs or several, labels and prefix settled."""
        recipe = cls.build(encoders=each(encoders), pairs=each(pairs), **settings)
        labels = recipe.labels or tuple(default_labels(recipe.encoders))
        if len(labels) != len(recipe.encoders) or len(set(labels)) != len(labels):
            raise BadSetting(
                f"labels {labels} for {len(recipe.encoders)} encoders", remedy="one different label each"
            )
        return recipe.model_copy(update={"labels": labels, "prefix": _prefix(recipe)})

    def opened(self, device: str) -> dict[str, Encoder]:
        """The encoders by label, each with the vector cache under it."""
        made = (open_for(spec, self.options(device), cached=True) for spec in self.encoders)
        return dict(zip(self.labels, made, strict=True))

    def chosen_layers(self, encoders: Mapping[str, Encoder]) -> dict[str, tuple[int, ...]]:
        """The layers of each encoder that are asked for."""
        return {label: parse_layers(self.layers, one.depth) for label, one in encoders.items()}

    def knowing(self, inputs: Mapping[str, str], encoders: Mapping[str, Encoder]) -> Self:
        """The recipe with the fingerprints of all that goes into it, so that its digest tells them apart."""
        known = {f"encoder {label}": one.fingerprint for label, one in encoders.items()}
        return self.model_copy(update={"inputs": {**inputs, **known}})


@dataclass(frozen=True)
class MeasureRun:
    """What a measure wrote."""

    folder: Path
    results: Sequence[Result]
    counts: Mapping[str, int]


R = TypeVar("R", bound=MeasureRecipe)

#: One thing by name, or several.
Many: TypeAlias = str | Path | Sequence[str | Path]


def each(many: Many) -> list[str]:
    """One or several names as a list."""
    return [str(one) for one in ([many] if isinstance(many, str | Path) else many)]


def load_any_pairs(folder: Path, limit: int | None = None) -> WordPairs:
    """Pairs written by `calque link`, or a folder of hand-made links in the PUD layout; the first `limit`."""
    pairs = read_pud(folder) if is_pud(folder) else load_pairs(folder)
    return pairs if limit is None else pairs.sentences(np.arange(min(limit, len(pairs.bitext))))


def default_labels(specs: Sequence[str]) -> list[str]:
    """Short names for encoders: the last part of a path, the whole where that is not enough.

    >>> default_labels(["runs/aligned", "en=vectors/en.vec,de=vectors/de.vec"])
    ['aligned', 'en.vec+de.vec']
    """
    short = [short_name(spec) for spec in specs]
    return [spec if short.count(name) > 1 else name for spec, name in zip(specs, short, strict=True)]


def meeting(opened: Mapping[str, Encoder], languages: tuple[str, str]) -> dict[str, Encoder]:
    """The encoders in a space where these languages meet."""
    return {
        label: one.meeting(languages) if isinstance(one, AlignedEncoder) else one
        for label, one in opened.items()
    }


def common_pooling(asked: Pooling | None, encoders: Mapping[str, Encoder]) -> Pooling:
    """As asked, or as the aligned encoders were trained."""
    if asked is not None:
        return asked
    trained = {one.pooling for one in encoders.values() if isinstance(one, AlignedEncoder)}
    if len(trained) > 1:
        raise BadSetting(
            f"aligned encoders were trained with different pooling: {', '.join(sorted(trained))}",
            remedy="choose one with --pooling",
        )
    return trained.pop() if trained else "mean"


def torch_device(encoders: Mapping[str, Encoder]) -> str:
    """Where the encoders compute, if all in one place."""
    devices = {str(getattr(getattr(one, "inner", one), "device", "cpu")) for one in encoders.values()}
    return devices.pop() if len(devices) == 1 else "cpu"


def measured(
    recipe: Recipe,
    out: str | Path,
    write: Callable[[Running], None],
    *,
    overwrite: bool = False,
) -> MeasureRun:
    """The run of this recipe: read where it stands already, otherwise made by `write`."""
    folder = Path(out)
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        with running(recipe, folder, overwrite=overwrite) as run:
            write(run)
    return MeasureRun(
        folder, load_results(folder / "results.jsonl"), read_json(folder / "artifacts" / COUNTS)
    )


def measured_on_pairs(
    recipe: R,
    out: str | Path,
    measure: Callable[[R, Mapping[str, Encoder], WordPairs], Measurement],
    *,
    device: str,
    overwrite: bool = False,
) -> MeasureRun:
    """The run of a measure that takes the encoders and one set of pairs after the other."""
    loaded = [load_any_pairs(Path(path), recipe.limit) for path in recipe.pairs]
    opened = recipe.opened(device)
    known = recipe.knowing({f"pairs {i}": one.fingerprint for i, one in enumerate(loaded)}, opened)

    def write(run: Running) -> None:
        parts = []
        for one in loaded:
            with run.stage("-".join(one.languages)):
                parts.append(measure(known, opened, one))
        save_measurements(run.folder, parts)

    return measured(known, out, write, overwrite=overwrite)


def save_measurements(folder: Path, parts: Sequence[Measurement]) -> list[Result]:
    """Write results, items, counts and artifacts of several measurements as one run's."""
    results = [result for one in parts for result in one.save(folder / "items")]
    save_results(folder / "results.jsonl", results)
    counts: Counter[str] = Counter()
    artifacts: dict[str, list[dict[str, Any]]] = {}
    for one in parts:
        counts.update(one.counts)
        for name, rows in one.artifacts.items():
            artifacts.setdefault(name, []).extend(rows)
    for name, rows in artifacts.items():
        write_json(folder / "artifacts" / f"{name}.json", rows)
    write_json(folder / "artifacts" / COUNTS, dict(counts))
    return results


def _prefix(recipe: MeasureRecipe) -> str:
    """As asked, or as the aligned encoders were trained: the same for all, so that the comparison is fair."""
    if recipe.prefix is not None:
        return recipe.prefix
    trained = {prefix for spec in recipe.encoders if (prefix := trained_prefix(spec)) is not None}
    if len(trained) > 1:
        raise BadSetting(
            f"aligned encoders were trained with different prefixes: {sorted(trained)}",
            remedy="choose one with --prefix",
        )
    return trained.pop() if trained else ""
