"""The ways in which a study aligns: every method of the recipe at every point of its axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from calque.align.finetune import Loss
from calque.errors import CalqueError
from calque.geometry.solvers import Method
from calque.pipeline.aligning import AlignRecipe
from calque.pipeline.finetuning import FinetuneRecipe
from calque.pipeline.transfersettings import TransferRecipe
from calque.presets import load_preset
from calque.study.cells import with_paths
from calque.study.inputs import Inputs
from calque.study.recipe import AlignPart

#: Linear methods that depend on a seed.
DRAWN = (Method.ORTHOGONAL_GRADIENT.value,)
LOSSES = tuple(map(str, Loss))
METHODS = (*map(str, Method), *LOSSES)
#: All settings of an alignment, linear or trained, and that of a sample.
SETTINGS = frozenset({*AlignRecipe.model_fields, *FinetuneRecipe.model_fields, "size"})


@dataclass(frozen=True)
class Variant:
    """A way to align: a method of the recipe at one point of its axes.

    Without a `method` only a task changes, by the settings `task`. `to` are languages, if not all; `against`
    is a method that it is compared with beside the baseline.
    """

    name: str
    method: str | None
    settings: Mapping[str, Any]
    axes: Mapping[str, Any]
    where: str
    size: int | None = None
    task: Mapping[str, Any] = field(default_factory=dict)
    to: tuple[str, ...] | None = None
    against: str | None = None

    @property
    def label(self) -> str:
        return ", ".join([self.name, *(f"{axis} {value}" for axis, value in self.axes.items())])

    @property
    def trained(self) -> bool:
        """Whether the encoder itself changes, so that any language can be read."""
        return self.method is None or self.method in LOSSES

    @property
    def drawn(self) -> bool:
        """Whether a seed makes a difference."""
        return self.method is not None and (self.trained or self.method in DRAWN or self.size is not None)

    @property
    def varies(self) -> bool:
        """Whether it is another one with each seed of the study."""
        return self.drawn and "seed" not in self.settings

    def beside(self, other: Variant) -> bool:
        """Whether both stand at one point of the axes that they share."""
        return all(other.axes.get(axis, value) == value for axis, value in self.axes.items())


def variants_of(align: AlignPart, inputs: Inputs) -> list[Variant]:
    """All of them, with the files that their settings name looked up."""
    return [one for name in align.methods for one in _of_method(name, align, inputs)]


def _of_method(name: str, align: AlignPart, inputs: Inputs) -> Iterator[Variant]:
    where, own = f"align.{name}", align.own(name)
    tasks = "transfer" in own
    task, vary = own.pop("transfer", {}), _axes(own.pop("vary", align.vary))
    to, against = own.pop("to", None), own.pop("against", None)
    if "preset" in own:
        own["preset"] = inputs.preset(str(own["preset"]), f"{where}.preset")
    method = _method(name, own, tasks, inputs)
    known = FinetuneRecipe if method in LOSSES else AlignRecipe
    shared = {key: value for key, value in align.shared.items() if key in {*known.model_fields, "size"}}
    for values in product(*vary.values()):
        axes = dict(zip(vary, values, strict=True))
        settings = inputs.located(known, {**shared, **own, **axes}, where)
        size = settings.pop("size", None)
        if method is not None:
            settings["method"] = method
        if size is not None and known is FinetuneRecipe:
            settings.setdefault("max_pairs", size)
        yield Variant(
            name, method, settings, axes, where, size,
            task=inputs.located(TransferRecipe, task, f"{where}.transfer"),
            to=None if to is None else tuple(to),
            against=against,
        )  # fmt: skip


def _axes(vary: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """The axes of the matrix; what is none is a mistake that is told elsewhere."""
    return {axis: values for axis, values in vary.items() if axis in SETTINGS - {"method", "preset"}}


def _method(name: str, own: Mapping[str, Any], tasks: bool, inputs: Inputs) -> str | None:
    """The method that a name stands for: its own, that of its preset, or itself; None trains none."""
    if "method" in own:
        return str(own["method"])
    if "preset" in own:
        try:
            return str(load_preset(with_paths(own["preset"])).align.get("method", name))
        except CalqueError as error:
            inputs.mistakes.append(f"align.{name}: {error}")
    if tasks:
        return name if name in METHODS else None
    return name
