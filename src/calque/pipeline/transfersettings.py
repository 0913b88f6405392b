"""Settings of `calque transfer`: what the recipe holds, and what is usual for a task and regime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field
from pydantic.fields import FieldInfo

from calque.documents import parse_toml, read_text
from calque.encoders.specs import by_language, is_by_language, short_name
from calque.errors import BadInput, BadSetting
from calque.pipeline.continual import ContinualRecipe
from calque.pipeline.taskdata import Reads
from calque.stats.answers import AnswerStyle
from calque.stats.spans import Repair
from calque.training.loop import Precision, TrainOptions
from calque.training.schedule import Schedule
from calque.transfer.bodies import BodyKind, Mixing
from calque.transfer.heads import HeadKind
from calque.transfer.learner import HeadOptions, Regime
from calque.transfer.task import Reading, Task
from calque.transfer.tasks import task_named
from calque.types import Pooling

#: Settings of how items are read and scored.
READING = ("window", "overlap", "words", "longest_answer", "repair", "answers", "subtypes")
#: Settings that do not say how a model was trained: names, what fingerprints of data tell, what is kept.
ASIDE = (
    *("inputs", "seed", "seeds", "task", "label", "preset", "original"),
    *("format", "skip_bad", "limit_train", "limit_dev", "limit_test", "keep_models"),
)
#: Those of alignment that goes on beside a task.
BESIDE = ("alpha", "continual_batch", "continual_unit", "continual_form", "continual_preset")


class TransferRecipe(ContinualRecipe):
    """Settings of `calque transfer`. What is None is settled by task and regime, as the papers have it.

    `train`, `dev` and `test` are `code=file`; `mixed` are two parallel files `de=a,en=b`, of which tests in
    mixed languages are made. `model` is a task model to test, or to go on training; else a new head is put on
    `encoder`. Rows are of `window` pieces at most, and windows of one text share `overlap`. With `select`
    source only dev data in a language of the training data choose among epochs; with all, the others do too,
    and every figure says so. `preset` names the paper whose settings these are, but for those that were
    given. `keep_models` are the models that stay in the run.
    """

    verb: ClassVar[str] = "transfer"
    places: ClassVar[frozenset[str]] = frozenset(
        {"train", "dev", "test", "mixed", "encoder", "model", "continual"}
    )

    task: str
    preset: str | None = None
    encoder: str | None = None
    model: str | None = None
    label: str = ""
    train: list[str] = Field(default_factory=list)
    dev: list[str] = Field(default_factory=list)
    test: list[str] = Field(default_factory=list)
    mixed: list[str] = Field(default_factory=list)
    format: str | None = None
    skip_bad: bool = False
    limit_train: int | None = Field(None, ge=1)
    limit_dev: int | None = Field(None, ge=1)
    limit_test: int | None = Field(None, ge=1)
    subtypes: bool = False

    regime: Regime = Regime.FINETUNE
    head: HeadKind | None = None
    layers: str | None = None
    mix: Mixing = Mixing.WEIGHTED
    body: BodyKind | None = None
    body_width: int | None = Field(None, ge=1)
    body_layers: int | None = Field(None, ge=1)
    head_dropout: float | None = Field(None, ge=0, lt=1)
    root_loss: bool = True
    pooling: Pooling = "first"
    window: int | None = Field(None, ge=8)
    overlap: int | None = Field(None, ge=0)
    words: int | None = Field(128, ge=1)
    longest_answer: int = Field(30, ge=1)
    repair: Repair = Repair.NEW_SPAN
    answers: AnswerStyle = AnswerStyle.MLQA

    seeds: tuple[Annotated[int, Field(ge=0, lt=2**31)], ...] = (0, 1, 2, 3, 4)
    select: Literal["source", "all"] = "source"
    keep_models: Literal["best", "all", "none"] = "best"

    learning_rate: float | None = None
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    epochs: int | None = Field(None, ge=0)
    steps: int | None = Field(None, ge=1)
    batch: int | None = Field(None, ge=1)
    warmup: float = 0.1
    schedule: Schedule = Schedule.LINEAR
    clip: float | None = 1.0
    accumulate: int = Field(1, ge=1)
    dropout: bool = True
    precision: Precision = "float32"
    evaluate_every: int | None = Field(None, ge=1)

    freeze_embeddings: bool = False
    freeze_layers: int = Field(0, ge=0)
    lora: int = Field(0, ge=0)
    lora_alpha: float = 16

    @property
    def only_tests(self) -> bool:
        """Whether a model is tested as it is: every seed would give the same."""
        return self.model is not None and (not self.train or self.epochs == 0)

    def settled(self) -> TransferRecipe:
        """The same with every setting that was left open."""
        usual = usual_settings(task_named(self.task), self.regime)
        return self.model_copy(
            update={name: value for name, value in usual.items() if getattr(self, name) is None}
        )

    def training(self, seed: int, **how: Any) -> TrainOptions:
        """How it is trained."""
        names = ("betas", "epsilon", "weight_decay", "steps", "warmup", "schedule", "clip", "accumulate")
        more = {name: getattr(self, name) for name in (*names, "dropout", "precision", "evaluate_every")}
        assert self.learning_rate is not None and self.epochs is not None
        return TrainOptions(
            learning_rate=self.learning_rate, epochs=max(1, self.epochs), seed=seed, **more, **how
        )

    def reading(self) -> Reading:
        """How items become rows, and how predictions are scored."""
        assert self.window is not None and self.overlap is not None
        return Reading(
            longest=self.window,
            overlap=self.overlap,
            every_piece=self.body is not BodyKind.NONE,
            words=self.words,
            longest_answer=self.longest_answer,
            repair=self.repair,
            answers=self.answers,
        )

    def head_options(self) -> HeadOptions:
        """What stands on the encoder."""
        assert self.head is not None and self.body is not None
        return HeadOptions(
            head=self.head,
            mix=self.mix,
            body=self.body,
            body_width=self.body_width,
            body_layers=self.body_layers,
            dropout=self.head_dropout,
            root_loss=self.root_loss,
        )

    def reads(self) -> Reads:
        """How labelled files are read."""
        return Reads(self.task, self.format, self.skip_bad, self.subtypes)


def usual_settings(task: Task, regime: Regime) -> dict[str, Any]:
    """What W does (QA: common scripts), for settings that were left open."""
    qa, name = task.name == "qa", task.name
    shared = {"window": 384 if qa else 128, "overlap": 128 if qa else 32}
    if regime is Regime.FINETUNE:
        return shared | {
            "head": task.heads()[0],
            "layers": "last",
            "body": BodyKind.NONE,
            "learning_rate": 3e-5 if qa else 2e-5,
            "epochs": {"nli": 3, "qa": 2}.get(name, 5),
            "batch": 32,
        }
    crf = HeadKind.CRF in task.heads() and name != "pos"
    plain = HeadKind.CLASSIFY if name == "nli" else task.heads()[0]
    return shared | {
        "head": HeadKind.CRF if crf else plain,
        "layers": "all",
        "body": BodyKind.TRANSFORMER,
        "learning_rate": 1e-4 if name in ("ner", "nli", "qa") else 1e-3,
        "epochs": 20,
        "batch": 128,
    }


def settings_told(held: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a recipe as its file tells them; one that is not there is None, or what is usual."""
    told = {name: held.get(name, _unsaid(field)) for name, field in TransferRecipe.model_fields.items()}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}


def _unsaid(field: FieldInfo) -> Any:
    """What a setting is that a file does not hold: None is never written."""
    return None if type(None) in get_args(field.annotation) else field.get_default(call_default_factory=True)


def reading_of(held: Mapping[str, Any]) -> dict[str, Any]:
    """Of a recipe's settings, those of how items are read and scored."""
    told = settings_told(held)
    return {name: told[name] for name in READING}


def training_of(held: Mapping[str, Any]) -> dict[str, Any]:
    """Of a recipe's settings, those of how a model is trained, whatever its data and encoder."""
    told = settings_told(held)
    without = {*READING, *ASIDE, *TransferRecipe.places, *(() if told["continual"] else BESIDE)}
    kept = {name: value for name, value in told.items() if name not in without}
    return {**kept, "continual": bool(told["continual"]), "prefix": told["prefix"] or None}


#: Settings of an alignment or pretraining that are other ones with every seed and language.
_DRAWN = ("inputs", "seed", "encoder")


def made_by(spec: str, deep: int = 3) -> dict[str, Any]:
    """How an encoder was made, as far as its folder tells: settings without seeds and paths, else its name.

    A number that ends a name is left out, as it may be a seed. Of encoders by language that of each is told,
    but no names, which are those of languages. `deep`: how many encoders it may rest on.

    >>> made_by("models/mbert-seed-3"), made_by("en=models/bert,de=models/gbert")
    ({'encoder': 'mbert-seed-'}, {'encoder': 'one for each language'})
    """
    if is_by_language(spec):
        parts = [made_by(one, deep) if _recipe_of(one) else {} for one in by_language(spec).values()]
        told = {f"part {n}'s {name}": value for n, one in enumerate(parts, 1) for name, value in one.items()}
        return {"encoder": "one for each language"} | told
    held = _recipe_of(spec) if deep else {}
    if not held:
        return {"encoder": short_name(spec).rstrip("0123456789")}
    kept = {name: value for name, value in held.items() if name not in _DRAWN and _is_setting(value)}
    base = held.get("encoder")
    more = made_by(base, deep - 1) if isinstance(base, str) else {}
    return kept | {f"base {name}": value for name, value in more.items()}


def _recipe_of(spec: str) -> dict[str, Any]:
    """What a run's folder says of itself; other folders, and names, say nothing."""
    path = Path(spec) / "recipe.toml"
    try:
        return parse_toml(read_text(path), path) if spec and path.is_file() else {}
    except (BadInput, OSError):
        return {}


def _is_setting(value: Any) -> bool:
    """Whether this is not a path, nor a list of them."""
    return isinstance(value, bool | int | float) or (isinstance(value, str) and not set(value) & {"/", "="})


def check(recipe: TransferRecipe) -> None:
    """Refuse settings that cannot be together, before anything is read."""
    task_named(recipe.task)
    if (recipe.encoder is None) == (recipe.model is None):
        raise BadSetting("an encoder or a task model", remedy="give --encoder, or --model to go on with one")
    if not recipe.train and recipe.model is None:
        raise BadSetting("nothing to learn from", remedy="--train en=FILE, or --model with a trained one")
    if not recipe.test and not recipe.mixed:
        raise BadSetting("nothing to test on", remedy="--test de=FILE")
    if not recipe.seeds or len(set(recipe.seeds)) < len(recipe.seeds):
        raise BadSetting(f"seeds {recipe.seeds}", remedy="one or more different ones")
    if recipe.only_tests and len(recipe.seeds) > 1:
        told = f"{len(recipe.seeds)} seeds of a model that is only tested: nothing varies between them"
        raise BadSetting(told, where=recipe.model, remedy="--seeds 1")
    if recipe.continual and recipe.regime is not Regime.FINETUNE:
        raise BadSetting("continual alignment trains the encoder", remedy="--regime finetune")
    partial = recipe.lora or recipe.freeze_layers or recipe.freeze_embeddings
    if partial and recipe.regime is not Regime.FINETUNE:
        raise BadSetting("in the features regime the whole encoder is frozen", remedy="--regime finetune")
    task, head = task_named(recipe.task), recipe.settled().head
    if head not in task.heads():
        raise BadSetting(
            f"{recipe.task} has no head {head}", remedy=", ".join(one.value for one in task.heads())
        )
