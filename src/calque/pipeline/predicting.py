"""`calque predict`: a trained task model on one's own text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.hub import model_directory
from calque.errors import BadSetting
from calque.pipeline.inputs import check_not_part, check_not_read
from calque.pipeline.taskmodels import (
    TaskModelFolder,
    best_model,
    known_settings,
    known_task,
    opened_model,
    read_by,
)
from calque.pipeline.transfersettings import TransferRecipe
from calque.recipe import parse_layers
from calque.text.labelled.items import Labelled
from calque.text.labelled.plain import read_unlabelled
from calque.transfer.learner import Learner
from calque.transfer.tasks import task_named
from calque.transfer.vectors import Space


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a model says of some items, in their order, and the file it was written to."""

    data: Labelled[Any]
    predictions: Sequence[Any]
    path: Path


def predict(
    model: str | Path,
    text: str | Path,
    language: str,
    *,
    out: str | Path,
    task: str | None = None,
    context_language: str | None = None,
    tokenised: bool = False,
    skip_bad: bool = False,
    limit: int | None = None,
    overwrite: bool = False,
    device: str = "auto",
    **settings: Any,
) -> Predicted:
    """Label text with a model of `calque transfer`, or with any `AutoModelFor…` and the name of its task.

    Sentences, a line each, are split into words unless `tokenised`; pairs and questions with their paragraphs
    are columns between tabs. Written is a file in the task's own format.
    """
    path = Path(out)
    check_not_read(path, [str(text), str(model)])
    check_not_part(path, str(model))
    if path.is_dir():
        raise BadSetting("is a folder", where=path, remedy="give the name of a file to write")
    if path.exists() and not overwrite:
        raise BadSetting("is there already", where=path, remedy="another --out, or --overwrite")
    held, recipe = _opened(best_model(model), task, device, settings)
    learner = _learner(held, recipe, language, context_language)
    data = read_unlabelled(
        recipe.task,
        text,
        language,
        tokenised=tokenised,
        skip_bad=skip_bad,
        limit=limit,
        context_language=context_language,
    )
    head = learner.model(0)
    held.into(head)
    predictions = learner.predict(head, data)
    learner.task.write(path, data, predictions)
    return Predicted(data, predictions, path)


def _opened(
    spec: str, task: str | None, device: str, settings: dict[str, Any]
) -> tuple[TaskModelFolder, TransferRecipe]:
    """The model, and the settings that it was trained with."""
    name = task or known_task(spec)
    if name is None:
        model_directory(spec, settings.get("revision"))
        raise BadSetting("which task is this model for?", where=spec, remedy="--task ner, pos, nli, qa …")
    recipe = TransferRecipe.build(
        **{**known_settings(spec, name), **settings, "task": name, "model": spec}
    ).settled()
    return opened_model(spec, recipe.options(device), task_named(name)), recipe


def _learner(
    held: TaskModelFolder, recipe: TransferRecipe, language: str, context_language: str | None
) -> Learner:
    encoder = held.encoder
    layers = parse_layers(str(recipe.layers), encoder.depth)
    space = Space(None, layers)
    if isinstance(encoder, AlignedEncoder):
        wanted = str(held.settings.get("space", ""))
        met = encoder.meeting((wanted, language)) if wanted and wanted != language else encoder
        space = Space(met, layers)
        if context_language is not None:
            met.map_for(context_language, layers[-1])
    return Learner(
        task_named(recipe.task),
        read_by(encoder),
        recipe.regime,
        held.labels,
        recipe.reading(),
        recipe.head_options(),
        space,
        recipe.pooling,
    )
