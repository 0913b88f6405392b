"""`calque align --method l2|weak|strong`: an encoder trained until translations meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from calque.align.corpora import Moves, Supervision
from calque.align.finetune import UNRELATED, FinetuneAligner, FinetuneOptions, FinetuneTask, Loss
from calque.align.regularisers import Form, Regulariser
from calque.encoders.aligned import ALIGNMENT
from calque.encoders.bylanguage import LanguageEncoders
from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.encoders.open import open_encoder, save_aligned
from calque.errors import BadSetting, TrainingStopped
from calque.files import Cache, atomic_directory, write_json
from calque.geometry.losses import Power
from calque.measure.word_retrieval import RetrievalOptions, retrieve
from calque.pipeline.card import write_card
from calque.pipeline.runs import EncoderRecipe, Running, is_trained, keep_records, running, training_folder
from calque.recipe import Device, parse_layers
from calque.store import load_pairs
from calque.training.checkpoint import checkpoints, load_weights, trained_parameters
from calque.training.crew import first_process, wait_for_all
from calque.training.loop import Precision, TrainLog, TrainOptions, train
from calque.training.partial import (
    ParameterCount,
    add_lora,
    check_trained,
    freeze,
    parameter_count,
)
from calque.training.schedule import Schedule
from calque.training.trim import harmless, trim_vocabulary, used_pieces
from calque.types import Pooling, WordIndex, WordPairs

#: What keeps the encoder near itself unless another regulariser is asked for. Contrastive losses do not
#: collapse without one, and their paper's, which its presets set, held a small encoder where it was.
USUAL = {Loss.L2: Regulariser.HIDDEN, Loss.WEAK: Regulariser.NONE, Loss.STRONG: Regulariser.NONE}


class FinetuneRecipe(EncoderRecipe):
    """Settings of `calque align` by training.

    `preset` names the paper whose settings these are, but for those that were given. Settings of the loss and
    its regulariser are explained by `FinetuneOptions`, those of the training by `TrainOptions`. `dev` are
    links on which retrieval is scored every `evaluate_every` steps: the best weights stay. `lora` is the rank
    of the adapters that are trained in place of the weights, 0 for none. With `trim_vocabulary`, only vectors
    of pieces in the text are trained; left open, that is done where it changes nothing but time and memory.
    Training stops when the mean cosine of unrelated words passes `max_unrelated`, or, where the original has
    it higher, half of the way to 1.
    """

    verb: ClassVar[str] = "align"
    places: ClassVar[frozenset[str]] = frozenset({"encoder", "pairs", "dev"})

    encoder: str
    pairs: list[str]
    dev: tuple[str, ...] = ()
    method: Loss
    preset: str | None = None
    layers: str = "last"
    pooling: Pooling = "mean"
    supervision: Supervision = "words"
    moves: Moves = "target"
    pulled_to: Literal["trained", "detached", "frozen"] = "trained"
    power: Power = 2
    reduction: Literal["mean", "sum"] = "mean"
    temperature: float = 0.1
    head: int = 128
    queue: int = 0
    mask_same: bool = True
    regulariser: Regulariser | None = None
    hidden_weight: float = 1.0
    hidden_words: Literal["all", "linked"] = "all"
    parameter_weight: float = 1.0
    parameter_form: Form = "squared"
    batch: int = 16
    batch_of: Literal["language", "all"] = "language"
    batch_tokens: int | None = None
    max_pairs: int | None = None

    learning_rate: float = 5e-5
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    epochs: int = 1
    steps: int | None = None
    warmup: float = 0.1
    schedule: Schedule = Schedule.LINEAR
    clip: float | None = 1.0
    accumulate: int = 1
    dropout: bool = True
    precision: Precision = "float32"

    freeze_embeddings: bool = False
    freeze_layers: int = 0
    lora: int = Field(0, ge=0)
    lora_alpha: float = 16
    trim_vocabulary: bool | None = None
    evaluate_every: int = Field(100, ge=1)
    max_unrelated: float = 0.97

    def finetuning(self, depth: int) -> FinetuneOptions:
        """What is learned."""
        chosen = {
            "loss": self.method,
            "layers": parse_layers(self.layers, depth),
            "regulariser": USUAL[self.method] if self.regulariser is None else self.regulariser,
        }
        return FinetuneOptions(**self._named_as(FinetuneOptions) | chosen)

    @property
    def batches(self) -> int | None:
        """How many batches are read; None for whole passes."""
        return None if self.steps is None else self.steps * self.accumulate

    def training(self, **how: Any) -> TrainOptions:
        """How it is trained."""
        return TrainOptions(**self._named_as(TrainOptions) | {"evaluate_every": self.evaluate_every} | how)

    def _named_as(self, options: type) -> dict[str, Any]:
        """The settings that have the names of these options."""
        return {
            one.name: getattr(self, one.name)
            for one in fields(options)
            if one.name in type(self).model_fields
        }


def finetune(
    recipe: FinetuneRecipe,
    out: Path,
    *,
    overwrite: bool = False,
    resume: bool = False,
    device: str = "auto",
    processes: int | None = None,
    save_every: int = 200,
    tensorboard: bool = False,
) -> None:
    """Train an encoder on linked words and write it as an ordinary checkpoint.

    Until it is written, checkpoints lie in a hidden folder beside `out`, from which `resume` goes on. Started
    by torchrun, every process runs this, and the first one writes.
    """
    loaded, dev = ([load_pairs(Path(path)) for path in paths] for paths in (recipe.pairs, recipe.dev))
    encoder = own_encoder(recipe.encoder, recipe.options(device))
    inputs = {str(i): one.fingerprint for i, one in enumerate(loaded)} | {"encoder": encoder.fingerprint}
    inputs |= {f"dev {i}": one.fingerprint for i, one in enumerate(dev)}
    recipe = recipe.model_copy(update={"inputs": inputs})
    if is_trained(out, recipe, overwrite=overwrite):
        return
    options = recipe.training(
        processes=processes,
        save_every=save_every,
        tensorboard=tensorboard,
        cpu=Device.parse(device) is Device.CPU,
    )
    with training_folder(out, recipe, resume=resume, overwrite=overwrite) as work:
        _train(recipe, encoder, loaded, dev, options, out, work, resume=resume)
        wait_for_all()


def _train(
    recipe: FinetuneRecipe,
    encoder: HuggingFaceEncoder,
    loaded: Sequence[WordPairs],
    dev: Sequence[WordPairs],
    options: TrainOptions,
    out: Path,
    work: Path,
    *,
    resume: bool,
) -> None:
    with (
        running(recipe, out, overwrite=True) if first_process() else nullcontext() as run,
        ExitStack() as undo,
    ):
        _prepare(recipe, encoder, [*loaded, *dev], undo)
        counts = parameter_count(encoder.model)
        how = recipe.finetuning(encoder.depth)
        check_trained(encoder, how.layers)
        task = FinetuneAligner(how).task(
            encoder, loaded, seed=recipe.seed, batches=recipe.batches, cache=Cache()
        )
        score = _scorer(encoder, task, dev) if dev else None
        # Some encoders have all words that near each other from the start: they collapse later.
        collapse = max(recipe.max_unrelated, (1 + task.unrelated()) / 2)
        options = replace(options, bounds={UNRELATED: collapse})
        try:
            log = train(task, options, work, evaluate=score, resume=resume)
        except TrainingStopped as stopped:
            raise _with_last_good(stopped, task, recipe, undo, work, out) from None
        undo.close()
        if run is not None:
            _write(run, task, recipe, log, counts)
            keep_records(work, run.folder)


def own_encoder(spec: str, options: EncoderOptions) -> HuggingFaceEncoder:
    """An encoder that nobody else uses, because it will be changed."""
    encoder = open_encoder(spec, options, own=True)
    if isinstance(encoder, LanguageEncoders):
        raise BadSetting(
            f"{spec} is an encoder for each language, and this method trains one that reads both",
            remedy="--method rotation or another linear one",
        )
    if not isinstance(encoder, HuggingFaceEncoder):
        raise BadSetting(
            f"{spec} cannot be trained", remedy="give a Hugging Face encoder that is not aligned by maps"
        )
    return encoder


def _prepare(
    recipe: FinetuneRecipe, encoder: HuggingFaceEncoder, pairs: Sequence[WordPairs], undo: ExitStack
) -> None:
    """Adapters, frozen parts, a trimmed vocabulary; `undo` makes the encoder an ordinary one again."""
    if recipe.lora:
        undo.callback(add_lora(encoder, rank=recipe.lora, alpha=recipe.lora_alpha, seed=recipe.seed).merge)
    freeze(encoder, embeddings=recipe.freeze_embeddings, layers=recipe.freeze_layers)
    trim = recipe.trim_vocabulary
    if harmless(encoder, weight_decay=recipe.weight_decay) if trim is None else trim:
        texts = [side for one in pairs for side in (one.bitext.source, one.bitext.target)]
        undo.callback(trim_vocabulary(encoder, used_pieces(encoder, texts)).restore)


def _scorer(encoder: HuggingFaceEncoder, task: FinetuneTask, dev: Sequence[WordPairs]) -> Callable[[], float]:
    """Retrieval accuracy on these links, the mean of both directions, of languages and of trained layers."""
    layers, pooling = task.options.layers, task.options.pooling

    def score() -> float:
        found = []
        for pairs in dev:
            a, b = (
                encoder.word_vectors(text, WordIndex(pairs.sentence, words), layers=layers, pooling=pooling)
                for text, words in (
                    (pairs.bitext.source, pairs.source),
                    (pairs.bitext.target, pairs.target),
                )
            )
            both = a.present & b.present
            rows = np.arange(int(both.sum()))
            for source, target in zip(a.vectors, b.vectors, strict=True):
                sides = source[both[a.present]], target[both[b.present]]
                nearest = retrieve(
                    *sides, np.stack([rows, rows]), RetrievalOptions(device=str(encoder.device))
                )
                found.append(float((nearest == rows).mean()))
        return float(np.mean(found))

    return score


def _with_last_good(
    stopped: TrainingStopped,
    task: FinetuneTask,
    recipe: FinetuneRecipe,
    undo: ExitStack,
    work: Path,
    out: Path,
) -> TrainingStopped:
    """What was kept of a training that stopped: its last checkpoint, as an encoder beside `out`."""
    kept = checkpoints(work)
    if not kept or not first_process():
        return stopped
    load_weights(kept[-1], trained_parameters(task.modules))
    undo.close()
    folder, made = out.parent / f"{out.name}.last-good", task.aligned()
    if folder.exists() and not (folder / ALIGNMENT).is_file():
        return stopped
    told = f"**The last good weights of a training that stopped:** {stopped.what}."
    with atomic_directory(folder) as partial:
        save_aligned(partial, made)
        write_card(partial, made, recipe, told)
    return TrainingStopped(f"{stopped.what}, written to {folder}", where=stopped.where, remedy=stopped.remedy)


def _write(
    run: Running, task: FinetuneTask, recipe: FinetuneRecipe, log: TrainLog, counts: ParameterCount
) -> None:
    about = {
        "steps": log.steps,
        "best dev score": log.best,
        "parameters": counts._asdict(),
        "last step": log.history[-1],
    }
    made = task.aligned()
    save_aligned(run.folder, made)
    write_card(run.folder, made, recipe)
    write_json(run.folder / "artifacts" / "training.json", about)
