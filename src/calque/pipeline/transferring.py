"""`calque transfer`: learn a task in one language with an encoder, test it in others, seed after seed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

from calque.align.continual import ContinualAlignment
from calque.circumstances import circumstances
from calque.encoders.aligned import MAPS, AlignedEncoder
from calque.encoders.bylanguage import LanguageEncoders, PieceReader
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.open import open_encoder
from calque.encoders.specs import short_name
from calque.encoders.wordtypes import innermost
from calque.errors import BadSetting
from calque.files import FINISHED, atomic_directory, finish, finished, read_json, write_json
from calque.locks import locked
from calque.pipeline.continual import continual
from calque.pipeline.inputs import is_there
from calque.pipeline.runs import Running, is_trained, open_for, running
from calque.pipeline.taskdata import TaskData, read_data
from calque.pipeline.taskmodels import (
    best_model,
    known_languages,
    known_settings,
    opened_model,
    read_by,
    save_task_model,
)
from calque.pipeline.transfersettings import TransferRecipe, check, made_by
from calque.presets import load_preset
from calque.progress import duration, say
from calque.recipe import Device, parse_layers
from calque.stats.signature import signature
from calque.store import load_items, load_results, save_items, save_results
from calque.text.labelled.items import Labelled
from calque.training.checkpoint import POSITION
from calque.training.crew import first_process, wait_for_all
from calque.training.loop import HISTORY, TrainLog
from calque.training.partial import add_lora, freeze
from calque.transfer.heads import TaskModel
from calque.transfer.learner import Learner, Regime
from calque.transfer.task import Labels, Task, known_labels
from calque.transfer.tasks import task_named
from calque.transfer.vectors import Space
from calque.types import Encoder, Result

DATA = "data.json"
#: Labelled data by language: `code=file`, several of them, or files by code.
Files: TypeAlias = str | Path | Sequence[str] | Mapping[str, str | Path]
#: Trainings that nobody has time for.
MOST_SEEDS = 10_000
#: How many seeds there are unless told.
SEEDS = 5
#: What differs between seeds. The text and the alignment are the same for all of them.
VARIES = "the head's first weights, the order of batches, dropout"
#: The same of a model that is tested as it is.
NOTHING_VARIES = "nothing, for a model that is only tested"


@dataclass(frozen=True)
class TransferRun:
    """What `transfer` wrote."""

    folder: Path
    results: Sequence[Result]
    data: Mapping[str, Any]


def transfer(
    task: str,
    encoder: str | None = None,
    *,
    train: Files = (),
    test: Files = (),
    dev: Files = (),
    out: str | Path,
    seeds: int | Sequence[int] | None = None,
    preset: str | None = None,
    overwrite: bool = False,
    device: str = "auto",
    save_every: int = 500,
    tensorboard: bool = False,
    **settings: Any,
) -> TransferRun:
    """Learn a task and test it in other languages; settings as in `TransferRecipe`.

    A preset is the settings of a paper, by name or as a TOML file; settings that are given win over it. Data
    are `code=file`, or files by language code. `seeds` are how many, from 0 on, or which: 5 unless told, one
    of a model that is only tested. A run that was stopped goes on where it stood when it is started again.
    """
    data = {"train": train, "test": test, "dev": dev}
    recipe = transfer_recipe(task, encoder, **data, seeds=seeds, preset=preset, **settings)
    job = _Job.of(recipe, device, dict(save_every=save_every, tensorboard=tensorboard))
    run = Path(out)
    if not is_trained(run, job.recipe, overwrite=overwrite):
        with circumstances():
            job.run(run, overwrite)
    return TransferRun(run, load_results(run / "results.jsonl"), read_json(run / "artifacts" / DATA))


def transfer_recipe(
    task: str,
    encoder: str | None = None,
    *,
    train: Files = (),
    test: Files = (),
    dev: Files = (),
    seeds: int | Sequence[int] | None = None,
    preset: str | None = None,
    **settings: Any,
) -> TransferRecipe:
    """What these settings ask for; no data is read yet."""
    if isinstance(seeds, int) and seeds > MOST_SEEDS:
        raise BadSetting(f"{seeds} seeds", remedy=f"at most {MOST_SEEDS:,}")
    many = SEEDS if seeds is None else seeds
    chosen = tuple(range(many)) if isinstance(many, int) else tuple(many)
    if settings.get("model") is not None:
        folder = best_model(str(settings["model"]))
        settings = {**known_settings(folder, task), **settings, "model": folder}
    if preset is not None:
        settings = {**load_preset(preset, "transfer").settings, "preset": Path(preset).stem, **settings}
    recipe = TransferRecipe.build(
        task=task,
        encoder=None if encoder is None else str(encoder),
        train=_specs(train),
        test=_specs(test),
        dev=_specs(dev),
        seeds=chosen,
        **settings,
    )
    if recipe.only_tests and seeds is None:
        recipe = recipe.model_copy(update={"seeds": (0,)})
    check(recipe)
    return recipe


def _specs(given: Files) -> list[str]:
    if isinstance(given, Mapping):
        return [f"{code}={path}" for code, path in given.items()]
    return [str(given)] if isinstance(given, str | Path) else [str(one) for one in given]


def _worth_keeping(parts: Path) -> bool:
    """Whether a run has got anywhere: a part is done, or a training has a checkpoint."""
    return any(any(parts.rglob(name)) for name in (FINISHED, POSITION))


@dataclass(frozen=True, eq=False)
class _Job:
    """One call: settings, task, data, and the encoder as it lies on disk."""

    recipe: TransferRecipe
    task: Task
    data: TaskData
    labels: Labels
    device: str
    how: Mapping[str, Any]

    @classmethod
    def of(cls, recipe: TransferRecipe, device: str, how: Mapping[str, Any]) -> _Job:
        recipe = recipe.settled()
        task = task_named(recipe.task)
        held = None if recipe.model is None else opened_model(recipe.model, recipe.options(device), task)
        data = read_data(recipe.reads(), recipe)
        labels = held.labels if held is not None else task.labels(data.train)
        data = data.each(lambda one: known_labels(one, task, labels, skip_bad=recipe.skip_bad))
        _check_selection(recipe, data)
        _check_apart(data)
        encoder = held.encoder if held is not None else open_for(str(recipe.encoder), recipe.options(device))
        _check_by_language(recipe, encoder, data)
        inputs = data.fingerprints() | {"encoder": encoder.fingerprint}
        if held is not None:
            inputs["model"] = held.fingerprint
        recipe = recipe.knowing_links().model_copy(update={"label": recipe.label or _short(recipe)})
        recipe = recipe.model_copy(update={"inputs": inputs | recipe.inputs})
        return cls(recipe, task, data, labels, device, how)

    # ------------------------------------------------------------------------------------- the whole run

    def run(self, out: Path, overwrite: bool) -> None:
        """Seed after seed. Started by torchrun, every process trains, and the first one tests and writes."""
        with locked(out) if first_process() else nullcontext():
            parts, done = out.parent / f".{out.name}.parts", False
            try:
                self._prepare(parts, overwrite)
                self._whole(parts, out, overwrite)
                done = True
            except KeyboardInterrupt:
                if _worth_keeping(parts):
                    say(f"what was done is kept in {parts}: start the same again to go on")
                raise
            finally:
                if first_process() and (done or not _worth_keeping(parts)):
                    shutil.rmtree(parts, ignore_errors=True)
        wait_for_all()

    def _whole(self, parts: Path, out: Path, overwrite: bool) -> None:
        with running(self.recipe, out, overwrite=overwrite) if first_process() else nullcontext() as run:
            self._seeds(parts)
            if run is not None:
                self._assemble(run, parts)

    def _seeds(self, parts: Path) -> None:
        encoder, began = self._opened(), time.monotonic()
        groups = self._groups(encoder)
        say(self._announced(groups))
        for note in self._notes():
            say(note)
        if self.recipe.regime is Regime.FINETUNE and self.data.train:
            _tell_held(encoder)
        del encoder
        for done, seed in enumerate(self.recipe.seeds, 1):
            for group in groups:
                self._seed(parts, seed, group)
            left = (time.monotonic() - began) / done * (len(self.recipe.seeds) - done)
            if left > 1:
                say(f"seed {seed} done; about {duration(left)} for the others")

    def _notes(self) -> Iterator[str]:
        """What is in doubt: data in common, and maps of vectors that training moves away from."""
        yield from data_notes(self.data)
        recipe = self.recipe
        began = Path(str(recipe.model or recipe.encoder)).expanduser()
        trains = recipe.train and recipe.epochs != 0 and recipe.regime is Regime.FINETUNE
        if trains and is_there(began / MAPS):
            yield (
                "linear maps were learned before the encoder is trained here, and may not fit it afterwards: "
                "--regime features leaves it as it is"
            )

    def _announced(self, groups: Sequence[_Group]) -> str:
        """What is about to be done, before it is."""
        recipe, items = self.recipe, sum(map(len, self.data.train))
        epochs = recipe.epochs or 0
        steps = recipe.steps or epochs * -(-items // ((recipe.batch or 32) * recipe.accumulate))
        tests = sum(len(data) for group in groups for data in group.tests)
        trainings = len(recipe.seeds) * len(groups)
        return (
            f"{recipe.label}: {trainings} training{'s' * (trainings != 1)} of {items:,} items, "
            f"about {steps:,} steps each; {tests:,} items to test"
        )

    def _prepare(self, parts: Path, overwrite: bool) -> None:
        """See to it that the finished parts that lie here until all are done are of this very recipe."""
        marker = parts / "recipe.json"
        held = read_json(marker).get("digest") if marker.is_file() else None
        if held != self.recipe.digest():
            # Parts without their marker were being removed already, whoever's they are.
            if held is not None and not overwrite:
                raise BadSetting(
                    "an unfinished run of another recipe lies here",
                    where=parts,
                    remedy="--overwrite starts anew, another --out leaves it alone",
                )
            if first_process():
                shutil.rmtree(parts, ignore_errors=True)
        if first_process():
            write_json(marker, {"digest": self.recipe.digest()})

    def _groups(self, encoder: Any) -> list[_Group]:
        """Tests that share a trained model: those whose languages meet the training's in one space."""
        found: dict[str, list[Labelled[Any]]] = {}
        for data in self.data.test:
            found.setdefault(self._space(encoder, data).name, []).append(data)
        return [_Group(space, tests) for space, tests in found.items()]

    def _space(self, encoder: Any, data: Labelled[Any]) -> Space:
        """Where a test's languages meet those of the training data."""
        layers = parse_layers(str(self.recipe.layers), encoder.depth)
        if not isinstance(encoder, AlignedEncoder):
            return Space(None, layers)
        met = encoder
        for language in spoken(data):
            for source in self.data.spoken_in_training:
                met = met.meeting((source, language)) if source != language else met
        return Space(met, layers)

    def _opened(self) -> Any:
        """The encoder, own where it will be trained."""
        own = self.recipe.regime is Regime.FINETUNE
        if self.recipe.model is not None:
            return opened_model(self.recipe.model, self.recipe.options(self.device), self.task).encoder
        return open_encoder(str(self.recipe.encoder), self.recipe.options(self.device), own=own)

    # ---------------------------------------------------------------------------------------- one seed

    def _seed(self, parts: Path, seed: int, group: _Group) -> None:
        """Train with one seed and test in every language; what is done already is passed over."""
        here = parts / f"seed-{seed}{group.suffix}"
        missing = [data for data in group.tests if finished(here / data.language) is None]
        if not missing and finished(here / "model") is not None:
            return
        learner, model, log = self._trained(here, seed, group)
        if first_process():
            for data in missing:
                self._test(learner, model, data, here / data.language, seed)
            self._keep(learner, model, log, here, seed)
        wait_for_all()

    def _keep(self, learner: Learner, model: TaskModel, log: TrainLog | None, here: Path, seed: int) -> None:
        """The trained model and what its training told, until the run is put together."""
        with atomic_directory(here / "model") as folder:
            if self.recipe.keep_models != "none":
                save_task_model(folder, learner, model, self.recipe, self._learned())
            write_json(folder / "training.json", {"seed": seed, **self._training(log)})
            if log is not None:
                shutil.copyfile(here / "training" / HISTORY, folder / HISTORY)
            finish(folder, self.recipe.digest(), "transfer")
        shutil.rmtree(here / "training", ignore_errors=True)

    def _learned(self) -> list[str]:
        """The languages that the trained model learned in, here or before."""
        before = known_languages(self.recipe.model) if self.recipe.model else []
        return sorted({*before, *(one.language for one in self.data.train)})

    def _training(self, log: TrainLog | None) -> dict[str, Any]:
        """Steps taken, and by which score the weights of which epoch stay."""
        if log is None:
            return {"best": None, "steps": 0}
        told = {"best": log.best, "steps": log.steps}
        if log.best_at is None or not self.recipe.epochs:
            return told
        return {**told, "epoch": round(self.recipe.epochs * log.best_at / log.steps)}

    def _trained(self, here: Path, seed: int, group: _Group) -> tuple[Learner, TaskModel, TrainLog | None]:
        recipe = self.recipe
        encoder = self._opened()
        space = self._space(encoder, group.tests[0])
        inner = read_by(encoder)
        learner = Learner(
            self.task,
            inner,
            recipe.regime,
            self.labels,
            recipe.reading(),
            recipe.head_options(),
            space,
            recipe.pooling,
        )
        model = learner.model(seed)
        if recipe.model is not None:
            opened_model(recipe.model, recipe.options(self.device), self.task).into(model)
        if not self.data.train or recipe.epochs == 0:
            return learner, model, None
        say(f"{recipe.label}: seed {seed}{f', space of {group.space}' if group.space else ''}")
        options = recipe.training(seed, cpu=Device.parse(self.device) is Device.CPU, **self.how)
        with ExitStack() as undo:
            if recipe.regime is Regime.FINETUNE:
                self._hold(inner, seed, undo)
            log = learner.learn(
                model,
                self.data.train,
                self.data.dev,
                options,
                here / "training",
                batch=recipe.batch or 32,
                auxiliary=self._continual(inner, seed),
            )
        return learner, model, log

    def _continual(self, encoder: PieceReader, seed: int) -> ContinualAlignment | None:
        """The loss that goes on beside the task's, where one is asked for."""
        if not self.recipe.continual or not isinstance(encoder, HuggingFaceEncoder):
            return None
        return continual(self.recipe, encoder, seed, self.device)

    def _hold(self, encoder: PieceReader, seed: int, undo: ExitStack) -> None:
        """Adapters and frozen parts; `undo` makes the encoder an ordinary one again."""
        if isinstance(encoder, LanguageEncoders):
            encoder.hold_separate()
        elif self.recipe.lora:
            lora = add_lora(encoder, rank=self.recipe.lora, alpha=self.recipe.lora_alpha, seed=seed)
            undo.callback(lora.merge)
        for part in encoder.parts.values() if isinstance(encoder, LanguageEncoders) else [encoder]:
            freeze(part, embeddings=self.recipe.freeze_embeddings, layers=self.recipe.freeze_layers)

    def _test(self, learner: Learner, model: TaskModel, data: Labelled[Any], folder: Path, seed: int) -> None:
        tested = learner.test(model, data)
        with atomic_directory(folder) as partial:
            items = save_items(partial / "items", learner.items(data, tested.values))
            about = self._about(data, seed)
            results = [
                replace(about, metric=metric.name, value=float(metric.score(tested.values)), items=items)
                for metric in self.task.metrics
            ]
            save_results(partial / "results.jsonl", results)
            self.task.write(partial / f"predictions{self.task.suffix}", data, tested.predictions)
            finish(partial, self.recipe.digest(), "transfer")

    def _about(self, data: Labelled[Any], seed: int) -> Result:
        recipe, source = self.recipe, "+".join(dict.fromkeys(one.language for one in self.data.train)) or "-"
        name = f"transfer-{recipe.task}"
        other = [one.language for one in self.data.dev if one.language not in self.data.trained]
        return Result(
            task=name,
            metric="",
            value=0.0,
            languages=(source, data.language),
            encoder=recipe.label,
            variant=recipe.regime.value,
            count=len(data),
            seed=seed,
            signature=signature(
                task=name,
                regime=recipe.regime.value,
                head=recipe.head,
                layers=recipe.layers,
                select=recipe.select if self.data.dev else "last",
                seed=seed,
                continual=recipe.alpha if recipe.continual else None,
            ),
            note=f"chosen on dev data of {', '.join(other)}: not zero-shot" if other else "",
        )

    # ---------------------------------------------------------------------------------------- the folder

    def _assemble(self, run: Running, parts: Path) -> None:
        """Results, items, predictions and models of all parts as one run's."""
        results: list[Result] = []
        for folder in sorted(path for path in parts.glob("seed-*/*") if (path / "results.jsonl").is_file()):
            seed = folder.parent.name
            results += load_results(folder / "results.jsonl")
            for digest in {one.items for one in load_results(folder / "results.jsonl") if one.items}:
                save_items(run.folder / "items", load_items(folder / "items", digest))
            for file in folder.glob("predictions.*"):
                target = run.folder / "predictions" / f"{folder.name}.{seed}{file.suffix}"
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(file, target)
        save_results(run.folder / "results.jsonl", results)
        self._keep_models(run, parts)
        artifacts = run.folder / "artifacts"
        write_json(artifacts / DATA, self._data())

    def _keep_models(self, run: Running, parts: Path) -> None:
        held = sorted(parts.glob("seed-*/model"))
        told = {folder.parent.name: read_json(folder / "training.json") for folder in held}
        write_json(run.folder / "artifacts" / "training.json", told)
        for folder in held:
            if (folder / HISTORY).is_file():
                shutil.copyfile(
                    folder / HISTORY, run.folder / "artifacts" / f"{folder.parent.name}.{HISTORY}"
                )
        if self.recipe.keep_models == "none":
            return
        best = max(held, key=lambda folder: read_json(folder / "training.json")["best"] or 0.0)
        for folder in held if self.recipe.keep_models == "all" else [best]:
            shutil.copytree(folder, run.folder / "models" / folder.parent.name)

    def _data(self) -> dict[str, Any]:
        """What was learned from and tested on, for those who read the run."""
        return {
            "task": self.recipe.task,
            "label": self.recipe.label,
            "regime": self.recipe.regime.value,
            "seeds": list(self.recipe.seeds),
            "a seed varies": NOTHING_VARIES if self.recipe.only_tests else VARIES,
            "selected on": "all dev data"
            if self.recipe.select == "all"
            else "dev data in the training language",
            "labels": list(self.labels.names),
            "encoder": made_by(self.recipe.encoder) if self.recipe.encoder else {},
            "notes": list(self._notes()),
            "learned": self._learned(),
            **{name: list(map(described, getattr(self.data, name))) for name in ("train", "dev", "test")},
        }


@dataclass(frozen=True, eq=False)
class _Group:
    """Tests in languages that meet the training's in one space."""

    space: str
    tests: Sequence[Labelled[Any]]

    @property
    def suffix(self) -> str:
        return f"@{self.space}" if self.space else ""


def described(data: Labelled[Any]) -> dict[str, Any]:
    """A set of items in a few words."""
    return {
        "language": data.language,
        "file": Path(data.origin).name,
        "items": len(data),
        "dropped": dict(data.dropped),
        "fingerprint": data.fingerprint,
    }


def spoken(data: Labelled[Any]) -> Iterator[str]:
    """The languages of a set of items."""
    own = {code for item in data.items for code in getattr(item, "languages", (data.language,))}
    return iter(sorted(own))


def _short(recipe: TransferRecipe) -> str:
    return short_name(recipe.model or recipe.encoder or "")


def _check_by_language(recipe: TransferRecipe, encoder: Encoder, data: TaskData) -> None:
    """Refuse what encoders by language cannot do: rows in two languages, and training what is not shared."""
    inner = innermost(encoder)
    if not isinstance(inner, LanguageEncoders):
        return
    for one in (*data.train, *data.dev, *data.test):
        codes = list(spoken(one))
        if len(codes) > 1:
            raise BadSetting(
                f"items in {' and '.join(codes)} at once, which encoders by language cannot read in one row",
                where=one.origin or None,
                remedy="items of one language each, or one encoder for all languages",
            )
        inner.speaking(codes[0])
    if recipe.regime is Regime.FEATURES or not data.train:
        return
    if not inner.shared():
        raise BadSetting(
            f"{inner.name} has nothing that its languages share: what one learns, the others would not know",
            remedy="--regime features, over maps that calque align learned",
        )
    if recipe.lora or recipe.continual:
        raise BadSetting(
            f"{'--lora' if recipe.lora else '--continual'} is not for encoders by language",
            remedy="leave it out; what belongs to one language is frozen anyway",
        )


def _tell_held(encoder: Encoder) -> None:
    """Say how much of encoders by language is trained."""
    inner = innermost(encoder)
    if isinstance(inner, LanguageEncoders):
        count = sum(parameter.numel() for parameter in inner.shared())
        say(
            f"{count:,} weights that {', '.join(inner.parts)} share are trained; "
            f"what belongs to one language is frozen ({', '.join(inner.separate or ()) or 'nothing'})"
        )


def _check_selection(recipe: TransferRecipe, data: TaskData) -> None:
    """Choosing by data in a language that is tested is not zero-shot, and has to be asked for."""
    other = [one.language for one in data.dev if one.language not in data.trained]
    if other and recipe.select == "source":
        raise BadSetting(
            f"dev data of {other[0]}, which is not a language of the training data",
            remedy="leave it out, or --select all to choose by it; every figure will say so",
        )


def _check_apart(data: TaskData) -> None:
    """What was learned from cannot tell what was learned."""
    for one, other, common in shared_items(data.train, data.test):
        if common == len(other):
            raise BadSetting(
                f"all {common:,} items of the test of {other.language} are among the training data "
                f"({other.origin or 'no file'} and {one.origin or 'no file'})",
                remedy=f"another --test file of {other.language}",
            )


def data_notes(data: TaskData) -> Iterator[str]:
    """What is in two of the three: training data, what chooses among epochs, and what is tested."""
    kinds = {"training data": data.train, "dev data": data.dev, "test": data.test}
    for (name, some), (other, others) in combinations(kinds.items(), 2):
        for _, two, common in shared_items(some, others):
            yield (
                f"{common:,} of {len(two):,} items of the {other} of {two.language} are among the {name}, too"
            )


def shared_items(
    some: Sequence[Labelled[Any]], others: Sequence[Labelled[Any]]
) -> Iterator[tuple[Labelled[Any], Labelled[Any], int]]:
    """Data in one language that have items in common, and how many of the second's are in the first."""
    for one in some:
        known = set(map(_said, one.items))
        for two in (data for data in others if data.language == one.language):
            if common := sum(map(known.__contains__, map(_said, two.items))):
                yield one, two, common


def _said(item: Any) -> int:
    """A number for what an item says and how it is labelled, wherever it stands in its file."""
    return hash(tuple(value for name, value in vars(item).items() if name not in ("id", "line")))
