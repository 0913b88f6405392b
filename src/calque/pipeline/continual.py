"""Alignment during a task's training: settings, and the loss that `align` makes for `transfer`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from calque.align.continual import ContinualAlignment, ContinualForm, one_link_each
from calque.align.finetune import FinetuneAligner
from calque.encoders.aligned import Beginning
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.open import open_encoder
from calque.errors import BadSetting
from calque.pipeline.finetuning import FinetuneRecipe
from calque.pipeline.runs import EncoderRecipe
from calque.presets import load_preset
from calque.store import load_pairs


class ContinualRecipe(EncoderRecipe):
    """Settings of alignment that goes on while a task is learned.

    `continual` are folders of links. Beside every batch of the task, `continual_batch` of them (words), or of
    their sentence pairs with all links (sentences), give a loss that counts `alpha`: what it is, a preset of
    `calque align` says. In the program's form α multiplies the alignment but not its regulariser. `original`
    is the encoder that the regulariser keeps near; by default the one from which `encoder` was aligned.
    """

    continual: list[str] = Field(default_factory=list)
    alpha: float = Field(0.01, ge=0)
    continual_batch: int = Field(16, ge=1)
    continual_unit: Literal["words", "sentences"] = "words"
    continual_form: ContinualForm = "paper"
    continual_preset: str = "efimov2022"
    original: str | None = None

    def knowing_links(self) -> Self:
        """The recipe with the fingerprints of its links."""
        held = {f"links {i}": load_pairs(Path(path)).fingerprint for i, path in enumerate(self.continual)}
        return self.model_copy(update={"inputs": {**self.inputs, **held}})


def continual(
    recipe: ContinualRecipe, encoder: HuggingFaceEncoder, seed: int, device: str
) -> ContinualAlignment:
    """The loss that goes on beside a task's."""
    pairs = [load_pairs(Path(path)) for path in recipe.continual]
    if recipe.continual_unit == "words":
        pairs = [one_link_each(one) for one in pairs]
    told = dict(load_preset(recipe.continual_preset).align)
    for name in ("max_pairs", "max_length"):
        told.pop(name, None)
    how = FinetuneRecipe.build(**told, encoder=encoder.name, pairs=[]).finetuning(encoder.depth)
    weight = how.parameter_weight * (recipe.alpha if recipe.continual_form == "paper" else 1.0)
    how = replace(
        how, batch=recipe.continual_batch, batch_of="all", batch_tokens=None, parameter_weight=weight
    )
    original = _original(recipe, encoder, device)
    # One batch at a time: links are many, and the original's vectors of all of them would not be read.
    task = FinetuneAligner(how).task(encoder, pairs, seed=seed, batches=1, original=original)
    return ContinualAlignment(task, recipe.alpha, recipe.continual_form)


def _original(recipe: ContinualRecipe, encoder: HuggingFaceEncoder, device: str) -> HuggingFaceEncoder | None:
    """The encoder before it was aligned; None where it is the one that is trained here."""
    spec = recipe.original or _aligned_from(getattr(recipe, "encoder", None))
    if spec is None:
        return None
    opened = open_encoder(spec, recipe.options(device))
    if not isinstance(opened, HuggingFaceEncoder) or opened.width != encoder.width:
        raise BadSetting(f"{spec} is not what {encoder.name} was made from", remedy="another --original")
    return opened


def _aligned_from(spec: str | None) -> str | None:
    """The name of the encoder that an aligned one began as."""
    began = None if spec is None else Beginning.read(Path(spec).expanduser())
    return None if began is None else began.name or None
