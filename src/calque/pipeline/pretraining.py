"""`calque pretrain`: text of several languages, without any parallel signal, to a masked language model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from transformers import BertConfig, BertForMaskedLM

from calque.encoders.hub import quiet
from calque.encoders.spans import Layout
from calque.encoders.tokens import Reader
from calque.files import is_done, read_json, write_json
from calque.pipeline.runs import keep_records, running, work_folder
from calque.pretrain.masked import MaskedLanguageModel, MaskedOptions, masked_score
from calque.pretrain.masking import Masker
from calque.pretrain.vocabulary import Cutting, train_tokenizer
from calque.recipe import Device, Recipe
from calque.stats.signature import signature
from calque.store import load_results, save_results
from calque.text.world import world_sentences
from calque.training.crew import first_process, wait_for_all
from calque.training.loop import TrainLog, TrainOptions, start, train
from calque.training.schedule import Schedule
from calque.types import Result, Sentences

#: Draws of the world for pretraining begin here, so that bitexts drawn with small seeds are other text.
WORLD_SEED = 1000
#: Languages that a draw has room for, and where its sentences for the final score begin.
PLACES = 100
HELD_OUT = 1000
#: Steps that are timed to find out how many fit into the minutes given.
TIMED = 20


class PretrainRecipe(Recipe):
    """Settings of `calque pretrain`.

    `sentences` are drawn from the world for each language, which has a draw of its own: no sentence has its
    translation in the text, but by chance. `inner` is the width of a layer's inside, 4 times `width` in BERT.
    `masked` is the share of pieces to guess; languages are drawn in proportion to their size^alpha.
    With `minutes`, some steps are timed first and as many are taken as fit; two such runs may differ.
    """

    verb: ClassVar[str] = "pretrain"

    languages: tuple[str, ...] = ("en", "far")
    sentences: int = Field(40_000, ge=1)
    cutting: Cutting = Cutting.UNIGRAM
    vocabulary: int = Field(4500, ge=1)
    layers: int = Field(4, ge=1)
    width: int = Field(96, ge=1)
    heads: int = Field(4, ge=1)
    inner: int = Field(192, ge=1)
    dropout: float = Field(0.0, ge=0, lt=1)
    max_length: int = Field(128, ge=3)
    masked: float = Field(0.2, gt=0, le=1)
    alpha: float = Field(0.7, ge=0, le=1)
    batch_tokens: int = Field(1024, ge=1)
    steps: int = Field(6000, ge=1)
    minutes: float | None = Field(None, gt=0)
    learning_rate: float = Field(3e-3, gt=0)
    weight_decay: float = 0.01
    warmup: float = 0.1
    schedule: Schedule = Schedule.LINEAR

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"a width of {self.width} cannot be shared by {self.heads} heads")
        return self

    def training(self, **how: Any) -> TrainOptions:
        """How it is trained."""
        return TrainOptions(
            learning_rate=self.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=self.weight_decay,
            steps=self.steps,
            warmup=self.warmup,
            schedule=self.schedule,
            seed=self.seed,
            **how,
        )

    def model(self, tokenizer: Any) -> Any:
        """A BERT of this size with random weights, the same for the same seed."""
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=self.inner,
            max_position_embeddings=self.max_length,
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.dropout,
            pad_token_id=tokenizer.pad_token_id,
        )
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            return BertForMaskedLM(config)


@dataclass(frozen=True)
class PretrainRun:
    """What was written: an encoder, and how well it guesses hidden pieces of text it has not read."""

    folder: Path
    results: Sequence[Result]


def pretrain(
    out: str | Path,
    *,
    overwrite: bool = False,
    resume: bool = False,
    device: str = "auto",
    processes: int | None = None,
    save_every: int = 500,
    tensorboard: bool = False,
    **settings: object,
) -> PretrainRun:
    """Train a masked language model of the world and write it; settings as in `PretrainRecipe`.

    Until it is written, checkpoints lie in a hidden folder beside `out`, from which `resume` goes on. Started
    by torchrun, every process runs this, and the first one writes.
    """
    recipe, folder = PretrainRecipe.build(**settings), Path(out)
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        options = recipe.training(
            cpu=Device.parse(device) is Device.CPU,
            processes=processes,
            save_every=save_every,
            tensorboard=tensorboard,
        )
        _pretrain(recipe, options, folder, work_folder(folder, recipe, resume=resume, overwrite=overwrite))
    return PretrainRun(folder, load_results(folder / "results.jsonl"))


def world_texts(recipe: PretrainRecipe, count: int, first: int = 0) -> list[Sentences]:
    """A draw of the world for each language, none the translation of another."""
    begin = WORLD_SEED * (recipe.seed + 1) + first
    return [
        world_sentences(count, language, seed=begin + place)
        for place, language in enumerate(recipe.languages)
    ]


def _pretrain(recipe: PretrainRecipe, options: TrainOptions, folder: Path, work: Path) -> None:
    with running(recipe, folder) if first_process() else nullcontext() as run:
        texts = world_texts(recipe, recipe.sentences)
        tokenizer = train_tokenizer(texts, recipe.vocabulary, recipe.cutting, max_length=recipe.max_length)
        reader = Reader(tokenizer, limit=recipe.max_length)
        task = MaskedLanguageModel(
            recipe.model(tokenizer),
            [reader.layout(text) for text in texts],
            Masker.of(tokenizer, recipe.masked),
            MaskedOptions(recipe.batch_tokens, recipe.alpha, recipe.seed),
        )
        log = train(task, _bounded(recipe, options, task, work), work, resume=True)
        if run is not None:
            with quiet():
                task.model.save_pretrained(run.folder)
                tokenizer.save_pretrained(run.folder)
            held_out = [reader.layout(text) for text in world_texts(recipe, HELD_OUT, PLACES)]
            save_results(run.folder / "results.jsonl", _results(recipe, task, held_out))
            write_json(run.folder / "artifacts" / "training.json", _told(log))
            keep_records(work, run.folder)
    if first_process():
        shutil.rmtree(work)
    # The others read what the first has written.
    wait_for_all()


def _bounded(
    recipe: PretrainRecipe, options: TrainOptions, task: MaskedLanguageModel, work: Path
) -> TrainOptions:
    """The options with the steps that fit into the minutes given, which stay the same when resumed."""
    if recipe.minutes is None:
        return options
    plan, crew = work / "plan.json", start(options)[1]
    if not plan.is_file():
        own = 60 * recipe.minutes / _seconds(task, options)
        steps = max(1, int(crew.total(own) / crew.size))
        if crew.rank == 0:
            write_json(plan, {"steps": steps})
        crew.wait()
    return replace(options, steps=read_json(plan)["steps"])


def _seconds(task: MaskedLanguageModel, options: TrainOptions) -> float:
    """How long a step takes, by some steps of a copy of the model."""
    copy = MaskedLanguageModel(deepcopy(task.model), task.texts, task.masker, task.options)
    with tempfile.TemporaryDirectory() as folder:
        log = train(copy, replace(options, steps=2 * TIMED, tensorboard=False), Path(folder))
    return float(np.mean([record["seconds"] for record in log.history[TIMED:]]))


def _results(
    recipe: PretrainRecipe, task: MaskedLanguageModel, held_out: Sequence[Layout]
) -> Iterator[Result]:
    """How well hidden pieces of each language are guessed."""
    shared: dict[str, Any] = {
        "task": "masked",
        "encoder": f"{recipe.layers}x{recipe.width}",
        "seed": recipe.seed,
        "signature": signature(task="masked", share=recipe.masked, recipe=recipe.digest()[:12]),
    }
    for language, text in zip(recipe.languages, held_out, strict=True):
        score = masked_score(task.model, text, task.masker, seed=recipe.seed)
        for metric in ("accuracy", "loss", "commonest"):
            value, pair = getattr(score, metric), (language, language)
            yield Result(metric=metric, value=value, languages=pair, count=score.count, **shared)


def _told(log: TrainLog) -> dict[str, Any]:
    """What the training took."""
    seconds, pieces = (sum(record[name] for record in log.history) for name in ("seconds", "units"))
    return {
        "steps": log.steps,
        "pieces": pieces,
        "seconds": round(seconds, 1),
        "pieces a second": round(pieces / seconds),
    }
