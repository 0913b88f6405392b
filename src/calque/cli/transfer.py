"""`calque transfer`, `compare` and `predict`: learn a task, test it elsewhere, say whether it helped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from calque.cli.common import (
    ENCODING,
    WRITING,
    AsJson,
    DeviceName,
    Job,
    Out,
    Overwrite,
    Quiet,
    Standing,
    Tokenised,
    app,
    tell,
    verb,
)
from calque.cli.help import ENCODER, READING, RUNNING, Verb, choice
from calque.progress import shown

if TYPE_CHECKING:
    from calque.pipeline.comparing import Comparison, Row
    from calque.pipeline.transferring import TransferRun
    from calque.types import Result

HEAD, LEARNING, CONTINUAL = "Head", "Training", "Alignment that goes on during training (--regime finetune)"

TaskName = Annotated[
    str, typer.Argument(metavar="<task>", help="nli, ner, slots, pos, parsing or qa.", show_default=False)
]
FILES = "<code>=<file>"


def _option(told: str, panel: str, *flags: str) -> Any:
    return typer.Option(*flags, help=f"{told}.", rich_help_panel=panel)


@verb(app, "transfer", ENCODING, WRITING)
def transfer_command(
    job: Job,
    task: TaskName,
    out: Out,
    test: Annotated[
        list[str] | None,
        typer.Option(metavar=FILES, help="Labelled text of a language to test in; one for each language."),
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(metavar=FILES, help="Labelled text to learn from; several languages: give it again."),
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(metavar=FILES, help="Labelled text to choose among epochs by."),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(metavar="<name>", help="Hub name, directory, or e5-small-q4.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="<folder>", help="A task model to test, or to train on, in place of --encoder."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(metavar="<name>", help="A paper's settings by name (wu2020-finetune …) or a TOML file."),
    ] = None,
    regime: Annotated[
        str, choice("regime", "Train encoder and head, or a head over kept vectors")
    ] = "finetune",
    seeds: Annotated[
        int | None,
        typer.Option(
            help="How many trainings, with seeds from 0 on: 5; 1 of a model that is only tested.",
            show_default=False,
        ),
    ] = None,
    seed_list: Annotated[
        str | None, typer.Option("--seed-list", metavar="<seeds>", help="Which seeds, such as 3,7,11.")
    ] = None,
    mixed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<code>=<file>,<code>=<file>",
            help="Two parallel tests of which one in mixed languages is made (nli, qa).",
        ),
    ] = None,
    select: Annotated[str, choice("select", "Which dev data choose; all is not zero-shot")] = "source",
    label: Annotated[
        str | None,
        typer.Option(metavar="<name>", help="What to call this run; the encoder's name unless told."),
    ] = None,
    keep_models: Annotated[str, choice("keep_models", "Which seeds' models stay in the folder")] = "best",
    format: Annotated[
        str | None,
        typer.Option(
            metavar="<name>", help="Layout of the files, by default guessed.", rich_help_panel=READING
        ),
    ] = None,
    skip_bad: Annotated[bool, _option("Drop and count bad items", READING, "--skip-bad")] = False,
    limit_train: Annotated[int | None, _option("First items of each training file only", READING)] = None,
    limit_dev: Annotated[int | None, _option("First items of each dev file only", READING)] = None,
    limit_test: Annotated[int | None, _option("First items of each test file only", READING)] = None,
    subtypes: Annotated[
        bool, _option("Relations with their subtypes (nsubj:pass)", READING, "--subtypes")
    ] = False,
    window: Annotated[int | None, _option("Pieces in a row: 128, or 384 for qa", READING)] = None,
    overlap: Annotated[int | None, _option("Pieces that windows share: 32, or 128 for qa", READING)] = None,
    words: Annotated[int, _option("Words of a sentence that are parsed", READING)] = 128,
    longest_answer: Annotated[int, _option("Pieces of an answer", READING)] = 30,
    repair: Annotated[
        str, choice("repair", "Predicted tags that do not fit together", panel=READING)
    ] = "new-span",
    answers: Annotated[str, choice("answers", "How answers are compared", panel=READING)] = "mlqa",
    head: Annotated[
        str | None, choice("head", "What predicts; by task and regime unless given", panel=HEAD)
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(metavar="<layers>", help="The head's: last, or all of features.", rich_help_panel=HEAD),
    ] = None,
    mix: Annotated[str, choice("mix", "How several layers become one", panel=HEAD)] = "weighted",
    body: Annotated[
        str | None, choice("body", "Layers below the head; transformer over features", panel=HEAD)
    ] = None,
    body_width: Annotated[int | None, _option("Their width", HEAD)] = None,
    body_layers: Annotated[int | None, _option("Their number", HEAD)] = None,
    head_dropout: Annotated[float | None, _option("Dropout before the head", HEAD)] = None,
    root_loss: Annotated[bool, _option("Learn which word is the root", HEAD)] = True,
    pooling: Annotated[str, choice("pooling", "Subwords of a word", panel=ENCODER)] = "first",
    epochs: Annotated[
        int | None, _option("Passes over the training data; 0 only tests --model", LEARNING)
    ] = None,
    steps: Annotated[int | None, _option("Steps, in place of passes", LEARNING)] = None,
    batch: Annotated[int | None, _option("Items at a time", LEARNING)] = None,
    learning_rate: Annotated[float | None, _option("The highest learning rate", LEARNING)] = None,
    warmup: Annotated[float, _option("Share of the steps to get there, or their number", LEARNING)] = 0.1,
    schedule: Annotated[str, choice("schedule", "What follows", panel=LEARNING)] = "linear",
    clip: Annotated[float, _option("Most length of a gradient", LEARNING)] = 1.0,
    accumulate: Annotated[int, _option("Batches a step", LEARNING)] = 1,
    betas: Annotated[tuple[float, float], _option("Of AdamW", LEARNING)] = (0.9, 0.999),
    epsilon: Annotated[float, _option("Of AdamW", LEARNING)] = 1e-8,
    weight_decay: Annotated[float, _option("Of AdamW", LEARNING)] = 0.0,
    dropout: Annotated[bool, _option("Drop out while training", LEARNING)] = True,
    precision: Annotated[
        str, choice("precision", "Of the forward pass, on a GPU", panel=LEARNING)
    ] = "float32",
    evaluate_every: Annotated[int | None, _option("Steps between dev scores; an epoch", LEARNING)] = None,
    freeze_embeddings: Annotated[
        bool, _option("Hold the embeddings", LEARNING, "--freeze-embeddings")
    ] = False,
    freeze_layers: Annotated[int, _option("Hold so many lower layers", LEARNING)] = 0,
    lora: Annotated[
        int, _option("Rank of adapters to train in place of the weights; 0 for none", LEARNING)
    ] = 0,
    lora_alpha: Annotated[float, _option("Scale of adapters", LEARNING)] = 16,
    continual: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<folder>", help="Folder of links; may be given again.", rich_help_panel=CONTINUAL
        ),
    ] = None,
    alpha: Annotated[float, _option("Weight of the alignment", CONTINUAL)] = 0.01,
    continual_batch: Annotated[int, _option("Links beside a batch of the task", CONTINUAL)] = 16,
    continual_unit: Annotated[
        str, choice("continual_unit", "What is counted: single links, or sentence pairs", panel=CONTINUAL)
    ] = "words",
    continual_form: Annotated[
        str, choice("continual_form", "The paper's; the program's weights no regulariser", panel=CONTINUAL)
    ] = "paper",
    continual_preset: Annotated[
        str,
        typer.Option(
            metavar="<name>", help="Which alignment, as in `calque align`.", rich_help_panel=CONTINUAL
        ),
    ] = "efimov2022",
    original: Annotated[
        str | None,
        typer.Option(
            metavar="<name>",
            help="The encoder before it was aligned, which the regulariser keeps near.",
            rich_help_panel=CONTINUAL,
        ),
    ] = None,
    save_every: Annotated[int, _option("Steps between checkpoints", RUNNING)] = 500,
    tensorboard: Annotated[bool, _option("Write TensorBoard records", RUNNING, "--tensorboard")] = False,
) -> None:
    """Learn a task in one language and test it in others, over several seeds. Started again, it goes on."""
    from calque.pipeline import transfer

    outward = {"task", "encoder", "train", "dev", "test", "seeds", "seed_list", "save_every", "tensorboard"}
    with job.showing():
        run = transfer(
            task,
            encoder,
            train=train or (),
            test=test or (),
            dev=dev or (),
            seeds=seeds if seed_list is None else _numbers(seed_list),
            save_every=save_every,
            tensorboard=tensorboard,
            **job.how,
            **job.typed(*outward),
        )
    record = {"folder": run.folder, "results": [_plain(one) for one in run.results], "data": run.data}
    job.tell(record, *_run_lines(run))


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r}: whole numbers with commas, such as 3,7,11") from None


def _plain(result: Result) -> dict[str, Any]:
    kept = ("metric", "value", "languages", "seed", "count", "note")
    return {name: getattr(result, name) for name in kept}


def _run_lines(run: TransferRun) -> Iterator[Any]:
    data = run.data
    for kind in ("train", "dev", "test"):
        for one in data[kind]:
            lost = ", ".join(f"{count:,} {reason}" for reason, count in one["dropped"].items())
            yield f"{kind} {one['language']}: {one['items']:,} items" + (f"; dropped: {lost}" if lost else "")
    yield _scores(run.results, [one["language"] for one in data["test"]])
    yield from sorted({one.note for one in run.results if one.note})
    count = len(data["seeds"])
    yield f"{count} seeds, which vary {data['a seed varies']}" if count > 1 else "one seed"


def _scores(results: Sequence[Result], languages: Sequence[str]) -> Table:
    """Mean ± standard deviation over seeds, a row a language."""
    import numpy as np

    from calque.stats.tasks import metrics_of

    task = results[0].task.removeprefix("transfer-")
    metrics = [metric.name for metric in metrics_of(task)]
    table = Table("", *metrics, box=None)
    for language in languages:
        cells = []
        for metric in metrics:
            held = [100 * r.value for r in results if (r.metric, r.languages[1]) == (metric, language)]
            spread = f" ± {np.std(held, ddof=1):.1f}" if len(held) > 1 else ""
            cells.append(f"{np.mean(held):.1f}{spread}")
        table.add_row(language, *cells)
    return table


# -------------------------------------------------------------------------------------------- compare


@app.command("compare", cls=Verb)
def compare_command(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="<folder>...", help="Runs of `calque transfer`; the first is the baseline."),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="<folder>", help="Folder to write, for `calque report`.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="<label>", help="The baseline by its label, in place of the first run's."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="<name>", help="In place of the task's first: token-f1, uas, em …")
    ] = None,
    test: Annotated[str, choice("test", "The test that the verdict rests on")] = "seeds-and-items",
    paired_seeds: Annotated[
        bool, typer.Option("--paired-seeds", help="Runs of one seed share their luck, and are paired.")
    ] = False,
    pool: Annotated[
        bool,
        typer.Option("--pool", help="Runs of one label and task are parts of one: its seeds, or languages."),
    ] = False,
    varies: Annotated[
        str | None, typer.Option(metavar="<text>", help="What differs between seeds, for the page.")
    ] = None,
    level: Annotated[float, typer.Option(help="Below which a corrected p counts.")] = 0.05,
    rounds: Annotated[int, typer.Option(help="Of randomisation.")] = 1000,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    seed: Annotated[int, typer.Option(help="Of randomisation.", rich_help_panel=RUNNING)] = 0,
) -> None:
    """Say whether a method helped a task: mean ± std, tests over seeds and items, a verdict in words."""
    from calque.pipeline import compare

    standing = None if out is None else Standing(out)
    given = {"baseline": baseline, "metric": metric, "test": test, "varies": varies}
    found = compare(
        runs,
        out=out,
        overwrite=overwrite,
        level=level,
        rounds=rounds,
        seed=seed,
        paired_seeds=paired_seeds,
        pool=pool,
        **{name: value for name, value in given.items() if value is not None},
    )
    ending = [] if standing is None else [str(standing)]
    tell(quiet, as_json, found.record(), *_comparison_lines(found), *ending)


def _comparison_lines(found: Comparison) -> Iterator[Any]:
    yield _comparison_table(found)
    for row in found.tasks:
        yield row.verdict.line()
    yield found.overall
    conditional = {row.comparison.given for row in found.tasks if row.comparison.conditional}
    yield f"test: {found.test.value}" + "".join(f"; conditional on {given}" for given in sorted(conditional))
    yield from found.notes


def _comparison_table(found: Comparison) -> Table:
    columns = (
        "task",
        "language",
        "metric",
        found.baseline,
        "method",
        "score",
        "gain",
        "95 %",
        "p",
        "Holm",
        "",
    )
    table = Table(*columns, box=None)
    for row in (*found.rows, *found.tasks):
        told = row.comparison
        table.add_row(
            row.task,
            row.language,
            told.metric,
            _spread(told.baseline.mean, told.baseline.std),
            row.method,
            _spread(told.method.mean, told.method.std),
            f"{100 * told.difference:+.1f}",
            ""
            if told.low is None or told.high is None
            else f"{100 * told.low:+.1f} to {100 * told.high:+.1f}",
            f"{told.p:.3f}",
            f"{row.verdict.corrected:.3f}",
            _marks(row),
        )
    return table


def _spread(mean: float, std: float | None) -> str:
    return f"{100 * mean:.1f}" + ("" if std is None else f" ± {100 * std:.1f}")


def _marks(row: Row) -> str:
    """W's mark of a mean beyond one standard deviation, and a star for a corrected p below the level."""
    arrow = {"better": "↑", "worse": "↓", "": ""}[row.comparison.mark]
    return arrow + ("*" if row.verdict.finding in ("helped", "hurt") else "")


# -------------------------------------------------------------------------------------------- predict


@app.command("predict", cls=Verb)
def predict_command(
    text: Annotated[
        Path,
        typer.Argument(metavar="<file>", help="Sentences a line; for nli and qa two columns with a tab."),
    ],
    model: Annotated[
        str, typer.Option(metavar="<folder>", help="A task model, a run of `calque transfer`, or a hub name.")
    ],
    language: Annotated[str, typer.Option(metavar="<code>", help="Of the text.")],
    out: Annotated[Path, typer.Option(metavar="<file>", help="File to write, in the task's own format.")],
    task: Annotated[
        str | None, typer.Option(metavar="<task>", help="What a model that calque did not train is for.")
    ] = None,
    context_language: Annotated[
        str | None,
        typer.Option(metavar="<code>", help="Of paragraphs, where it is not that of the questions."),
    ] = None,
    limit: Annotated[int | None, _option("First items only", READING)] = None,
    skip_bad: Annotated[bool, _option("Drop and count bad items", READING, "--skip-bad")] = False,
    tokenised: Tokenised = False,
    show: Annotated[int, typer.Option(help="Print so many.", rich_help_panel=RUNNING)] = 3,
    device: DeviceName = "auto",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file.", rich_help_panel=RUNNING)
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Label one's own text with a trained task model."""
    from calque.pipeline import predict

    with shown(not quiet and not as_json):
        found = predict(
            model,
            text,
            language,
            out=out,
            task=task,
            context_language=context_language,
            limit=limit,
            skip_bad=skip_bad,
            tokenised=tokenised,
            overwrite=overwrite,
            device=device,
        )
    lost = [f"dropped: {count:,} {reason}" for reason, count in found.data.dropped.items()]
    record: Mapping[str, Any] = {"file": found.path, "items": len(found.data), "dropped": found.data.dropped}
    shown_lines = [_said(item, said) for item, said in zip(found.data.items, found.predictions, strict=True)]
    told = f"{len(found.data):,} items labelled, written: {found.path}"
    tell(quiet, as_json, dict(record), *shown_lines[:show], *lost, told)


def _said(item: Any, said: Any) -> str:
    """One item with what the model says of it."""
    if hasattr(said, "heads"):
        rows = zip(item.words, said.heads, said.labels, strict=False)
        return " ".join(f"{word}/{label}←{head}" for word, head, label in rows)
    if hasattr(item, "words"):
        return " ".join(f"{word}/{tag}" for word, tag in zip(item.words, said, strict=True))
    asked = item.question if hasattr(item, "question") else f"{item.first} | {item.second}"
    return f"{asked} → {said}"
