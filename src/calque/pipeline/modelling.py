"""What all masked language modelling shares: settings, steps that fit a time, scores, and a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from calque.errors import BadSetting
from calque.files import read_json, write_json
from calque.locks import scratch
from calque.pipeline.runs import is_trained, keep_records, running, training_folder
from calque.pretrain.masked import Learned, MaskedLanguageModel, MaskedOptions, masked_score
from calque.pretrain.texts import Rows
from calque.progress import say, shown
from calque.recipe import Device, Recipe
from calque.stats.signature import signature
from calque.store import load_results, save_results
from calque.training.crew import first_process, wait_for_all
from calque.training.loop import Precision, TrainLog, TrainOptions, start, train
from calque.training.schedule import Schedule
from calque.types import Result

#: Steps that are timed to find out how many fit into the minutes given.
TIMED = 20


class MaskedRecipe(Recipe):
    """Settings of every training of a masked language model.

    `text` are files by language. `masked` is the share of pieces to guess; languages are drawn in proportion
    to their size^alpha. With `evaluate_every`, so often the first language is scored on text kept for that,
    and the weights of the lowest perplexity stay; otherwise the last ones do. With `minutes`, some steps are
    timed first and as many are taken as fit; two such runs may differ.
    """

    places: ClassVar[frozenset[str]] = frozenset({"text", "bitext", "dictionary", "encoder"})

    text: list[str] = Field(default_factory=list)
    limit: int | None = Field(None, ge=1)
    rows: Rows = Rows.SENTENCES
    max_length: int = Field(128, ge=8)
    masked: float = Field(0.2, gt=0, le=1)
    alpha: float = Field(0.7, ge=0, le=1)
    batch_tokens: int = Field(1024, ge=1)
    steps: int = Field(6000, ge=1)
    minutes: float | None = Field(None, gt=0)
    evaluate_every: int | None = Field(None, ge=1)
    learning_rate: float = Field(3e-3, gt=0)
    weight_decay: float = 0.01
    warmup: float = 0.1
    schedule: Schedule = Schedule.LINEAR
    precision: Precision = "float32"

    def training(self, **how: Any) -> TrainOptions:
        """How it is trained."""
        return TrainOptions(
            learning_rate=self.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=self.weight_decay,
            steps=self.steps,
            warmup=self.warmup,
            schedule=self.schedule,
            precision=self.precision,
            evaluate_every=self.evaluate_every,
            seed=self.seed,
            **how,
        )

    def reading(self, paired: float = 0.0) -> MaskedOptions:
        """How text becomes batches."""
        return MaskedOptions(self.batch_tokens, self.alpha, paired, self.seed)


def check_length(settings: Mapping[str, object]) -> None:
    """One says how long to train in one way only."""
    if settings.get("minutes") is not None and settings.get("steps") is not None:
        raise BadSetting("both steps and minutes to train for", remedy="--steps or --minutes")


class Making(NamedTuple):
    """What is trained; held-out text by language with the model that is scored on it; how to write it.

    `figures` are more results than how well pieces are guessed, by language and metric. `dev` is the text
    that weights are chosen by, if they are.
    """

    task: MaskedLanguageModel
    scored: Mapping[str, Learned]
    save: Callable[[Path], None]
    figures: Mapping[tuple[str, str], float] = {}
    dev: Learned | None = None

    def evaluate(self, seed: int) -> Callable[[], float] | None:
        """The score by which weights are chosen: the lower the perplexity, the higher."""
        dev = self.dev
        return None if dev is None else lambda: -masked_score(dev, seed=seed).loss


@dataclass(frozen=True)
class PretrainRun:
    """What was written: an encoder, and how well it guesses hidden pieces of text it has not read."""

    folder: Path
    results: Sequence[Result]


def modelled(
    recipe: MaskedRecipe,
    out: str | Path,
    make: Callable[[], Making],
    *,
    overwrite: bool = False,
    resume: bool = False,
    device: str = "auto",
    **how: Any,
) -> PretrainRun:
    """The run of this recipe: read where it stands already, otherwise trained and written."""
    folder = Path(out)
    if not is_trained(folder, recipe, overwrite=overwrite):
        options = recipe.training(cpu=Device.parse(device) is Device.CPU, **how)
        with training_folder(folder, recipe, resume=resume, overwrite=overwrite) as work:
            _train(recipe, options, folder, work, make)
    return PretrainRun(folder, load_results(folder / "results.jsonl"))


def _train(
    recipe: MaskedRecipe, options: TrainOptions, folder: Path, work: Path, make: Callable[[], Making]
) -> None:
    with running(recipe, folder, overwrite=True) if first_process() else nullcontext() as run:
        making = make()
        bounded = _bounded(recipe, options, making.task, work)
        log = train(making.task, bounded, work, evaluate=making.evaluate(recipe.seed), resume=True)
        if run is not None:
            if log.best_at is not None:
                say(f"the weights of step {log.best_at:,} stay, which guessed dev text best")
            making.save(run.folder)
            save_results(run.folder / "results.jsonl", _results(recipe, making))
            write_json(run.folder / "artifacts" / "training.json", _told(log))
            keep_records(work, run.folder)
    # The others read what the first has written.
    wait_for_all()


def _bounded(
    recipe: MaskedRecipe, options: TrainOptions, task: MaskedLanguageModel, work: Path
) -> TrainOptions:
    """The options with the steps that fit into the minutes given, which stay the same when resumed."""
    if recipe.minutes is None:
        return options
    plan, crew = work / "plan.json", start(options)[1]
    if not plan.is_file():
        own = 60 * recipe.minutes / _seconds(task, options)
        steps = max(1, int(crew.total(own) / crew.size))
        if crew.rank == 0:
            say(f"{steps:,} steps fit into {recipe.minutes:g} minutes")
            write_json(plan, {"steps": steps})
        crew.wait()
    return replace(options, steps=read_json(plan)["steps"])


def _seconds(task: MaskedLanguageModel, options: TrainOptions) -> float:
    """How long a step takes, by some steps of copies of the models."""
    models = deepcopy({id(one.model): one.model for one in task.texts})
    copy = MaskedLanguageModel(
        [replace(one, model=models[id(one.model)]) for one in task.texts], task.options
    )
    say(f"timing {2 * TIMED} steps")
    with scratch() as folder, shown(False):
        log = train(copy, replace(options, steps=2 * TIMED, tensorboard=False), folder)
    return float(np.mean([record["seconds"] for record in log.history[TIMED:]]))


def _results(recipe: MaskedRecipe, making: Making) -> Iterator[Result]:
    """How well hidden pieces of each language are guessed, and what else there is to say."""
    config = next(iter(making.scored.values())).model.config
    shared: dict[str, Any] = {
        "task": "masked",
        "encoder": f"{config.num_hidden_layers}x{config.hidden_size}",
        "seed": recipe.seed,
        "signature": signature(task="masked", share=recipe.masked, recipe=recipe.digest()[:12]),
    }
    for language, held in making.scored.items():
        score = masked_score(held, seed=recipe.seed)
        for metric in ("accuracy", "loss", "commonest"):
            value, pair = getattr(score, metric), (language, language)
            yield Result(metric=metric, value=value, languages=pair, count=score.count, **shared)
    for (language, metric), value in making.figures.items():
        yield Result(metric=metric, value=value, languages=(language, language), **shared)


def _told(log: TrainLog) -> dict[str, Any]:
    """What the training took."""
    seconds, pieces = (sum(record[name] for record in log.history) for name in ("seconds", "units"))
    return {
        "steps": log.steps,
        "pieces": pieces,
        "seconds": round(seconds, 1),
        "pieces a second": round(pieces / seconds),
        **({} if log.best_at is None else {"kept step": log.best_at, "its dev loss": -(log.best or 0.0)}),
    }
