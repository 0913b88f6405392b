"""Task models on disk, ordinary Hugging Face ones where their head allows it, and opened again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from calque.documents import shaped
from calque.encoders.aligned import AlignedEncoder, Beginning, load_maps
from calque.encoders.bylanguage import LanguageEncoders, PieceReader
from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder, choose_device, choose_dtype
from calque.encoders.hub import fetched_before, model_directory, weights_digest
from calque.encoders.open import as_trained, open_encoder
from calque.errors import BadInput, BadSetting
from calque.files import file_digest, finished, read_json, text_digest, write_json
from calque.training.checkpoint import load_tensors
from calque.transfer.heads import TaskModel
from calque.transfer.learner import Learner, Regime
from calque.transfer.saving import ordinary_head, read_ordinary, save_ordinary
from calque.transfer.task import Labels, Task
from calque.types import Encoder

if TYPE_CHECKING:
    from calque.pipeline.transfersettings import TransferRecipe

TASK, HEAD = "task.json", "head.safetensors"


@dataclass(frozen=True, eq=False)
class TaskModelFolder:
    """A task model as it lies in a folder: its encoder, labels, the head's weights and its settings."""

    encoder: Any
    labels: Labels
    weights: Mapping[str, torch.Tensor]
    settings: Mapping[str, Any]
    fingerprint: str

    def into(self, model: TaskModel) -> None:
        """Put the weights into a new head of the same make."""
        held = {name: tensor.shape for name, tensor in model.state_dict().items()}
        if held != {name: tensor.shape for name, tensor in self.weights.items()}:
            raise BadInput(
                "its head is another than the one asked for", remedy="the settings it was trained with"
            )
        model.load_state_dict(dict(self.weights))


def save_task_model(
    folder: Path, learner: Learner, model: TaskModel, recipe: TransferRecipe, learned: Sequence[str]
) -> None:
    """Write a model that `opened_model` reads, and `AutoModelFor…` where it was trained with a linear head.

    Of a frozen encoder only the name is kept. `learned` are the languages that it learned in.
    """
    from safetensors.torch import save_file

    told = recipe.model_dump(mode="json", exclude_none=True, include=set(_SETTINGS))
    told |= {"labels": list(learner.labels.names), "space": learner.space.name, "ordinary": False}
    told |= {"learned": list(learned)}
    if learner.regime is Regime.FINETUNE:
        told["ordinary"] = _saved_ordinary(folder, learner, model, recipe)
        if not told["ordinary"]:
            learner.encoder.save(folder)
    else:
        told |= {"encoder": recipe.encoder, "fingerprint": recipe.inputs["encoder"]}
    if not told["ordinary"]:
        save_file(
            {name: one.detach().cpu().contiguous() for name, one in model.state_dict().items()}, folder / HEAD
        )
    write_json(folder / TASK, told)


def _saved_ordinary(folder: Path, learner: Learner, model: TaskModel, recipe: TransferRecipe) -> bool:
    """Whether it could be written as one `AutoModelFor…`; nothing is written otherwise."""
    plain = not learner.space.name and recipe.layers in ("last", "-1")
    if not plain or not isinstance(learner.encoder, HuggingFaceEncoder):
        return False
    return save_ordinary(folder, learner.encoder, model, learner.options.head, learner.labels)


#: What a model that others trained is.
_PLAIN = {"regime": Regime.FINETUNE.value, "layers": "last", "body": "none"}
#: What must be the same when a model is used again.
_SETTINGS = ("task", "regime", "head", "layers", "mix", "body", "body_width", "body_layers", "root_loss",
             "pooling", "window", "overlap", "words", "longest_answer", "repair", "answers", "prefix",
             "max_length")  # fmt: skip


def best_model(name: str | Path) -> str:
    """A model as it is named (`./model` is on no hub); of a run of `calque transfer`, the one model in it."""
    folder = Path(name)
    marker = finished(folder) if folder.is_dir() else None
    if marker is None or marker.get("verb") != "transfer" or not (folder / "results.jsonl").is_file():
        return str(name)
    found = sorted((folder / "models").glob("*"))
    if len(found) != 1:
        raise BadSetting(
            f"{len(found)} models in this run",
            where=folder,
            remedy=f"name one: {found[0]}" if found else "run it with --keep-models best",
        )
    return str(found[0])


def known_task(spec: str) -> str | None:
    """What a model of calque is for; of another's it is not known."""
    return known_settings(spec).get("task")


def known_languages(spec: str) -> list[str]:
    """The languages that a model of calque learned in; none where it does not tell."""
    return list(_told(Path(spec).expanduser()).get("learned", []))


def known_settings(spec: str, task: str | None = None) -> dict[str, Any]:
    """The settings that a model of calque was trained with, but for its task where one is named."""
    told = _told(Path(spec).expanduser())
    if task is not None and told.get("task", task) != task:
        raise BadInput(f"a model for {told['task']}, not for {task}", where=spec)
    return {name: told[name] for name in _SETTINGS if name in told and (name != "task" or task is None)}


def _told(folder: Path) -> dict[str, Any]:
    """What `task.json` says, if it is there: the settings that a model was trained with, and its labels."""
    about = folder / TASK
    if not about.is_file():
        return {}
    told = read_json(about)
    with shaped(about, "train it again", what="not a task model of calque"):
        texts = [told[name] for name in ("task", "regime", "encoder", "fingerprint") if name in told]
        needed = 4 if Regime(told["regime"]) is Regime.FEATURES else 2
        if type(told["ordinary"]) is not bool or len(texts) < needed:
            raise BadInput("'ordinary', or 'encoder' and 'fingerprint', are missing")
        lists = [told["labels"], told.get("learned", [])]
        texts += [one for held in lists for one in (held if isinstance(held, list) else [held, None])]
        if not all(isinstance(one, str) for one in texts):
            raise BadInput("task, regime, encoder, labels and languages are not all texts")
    return dict(told)


def opened_model(spec: str, options: EncoderOptions, task: Task | None = None) -> TaskModelFolder:
    """A task model from a folder that calque wrote, or any `AutoModelFor…` directory or hub name."""
    folder = Path(spec).expanduser()
    told = _told(folder)
    if told and not told["ordinary"]:
        return _own(folder, told, options)
    path = model_directory(spec, options.revision)
    device = choose_device(options.device)
    held = read_ordinary(path, choose_dtype(options.dtype, device), task)
    weights = ordinary_head(held, path)
    began, parts = Beginning.read(folder), [weights_digest(path), str(told)]
    inner = HuggingFaceEncoder(held.model, held.tokenizer, spec, as_trained(options, began))
    encoder: Any = inner
    if began is not None:  # aligned after it had been trained
        encoder = load_maps(folder, inner)
        parts.append(encoder.fingerprint)
    settings = told or {"head": held.kind.value, **_PLAIN}
    return TaskModelFolder(encoder, held.labels, weights, settings, text_digest(*parts))


def read_by(encoder: Encoder) -> PieceReader:
    """What reads the pieces, under the maps that an aligned encoder may have."""
    inner = encoder.inner if isinstance(encoder, AlignedEncoder) else encoder
    if not isinstance(inner, HuggingFaceEncoder | LanguageEncoders):
        raise BadSetting(f"{encoder.name} does not read pieces", remedy="give a Hugging Face encoder")
    return inner


def _own(folder: Path, told: Mapping[str, Any], options: EncoderOptions) -> TaskModelFolder:
    if told["regime"] == Regime.FEATURES.value:
        try:
            spec = fetched_before(told["encoder"], options.revision)
        except BadInput:
            raise BadInput(
                f"its encoder, {told['encoder']}, is no folder here and was never fetched",
                where=folder,
                remedy="run from the folder that it was trained in, from where it is named",
            ) from None
        encoder = open_encoder(spec, options)
        if encoder.fingerprint != told["fingerprint"]:
            raise BadInput(
                f"its encoder {told['encoder']} is not the one it was trained over",
                where=folder,
                remedy="restore it",
            )
    else:
        encoder = open_encoder(str(folder), options, own=True)
    weights = load_tensors(folder / HEAD)
    if not weights:
        raise BadInput("its head is missing", where=folder / HEAD)
    return TaskModelFolder(
        encoder,
        Labels(tuple(told["labels"])),
        weights,
        told,
        text_digest(file_digest(folder / HEAD), str(told)),
    )
