"""Verbs that make language models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calque.cli.common import WRITING, DeviceName, EncoderName, Family, Job, Out, app, verb
from calque.cli.help import RUNNING, choice
from calque.errors import BadSetting

if TYPE_CHECKING:
    from calque.types import Result

SHARED = "What languages share"


def running(told: str, *flags: str) -> Any:
    """An option that says how to run, not what to make."""
    return typer.Option(*flags, help=f"{told}.", rich_help_panel=RUNNING)


#: What every verb that trains a masked language model has.
LEARNING: Family = {
    "limit": (Annotated[int | None, typer.Option(help="First lines of each file only.")], None),
    "rows": (Annotated[str, choice("rows", "What stands in a row")], "sentences"),
    "max_length": (Annotated[int, typer.Option(help="Longest input, in pieces.")], 128),
    "alpha": (Annotated[float, typer.Option(help="Languages are drawn by size to this power.")], 0.7),
    "minutes": (Annotated[float | None, typer.Option(help="As many steps as fit into them.")], None),
    "evaluate_every": (
        Annotated[
            int | None,
            typer.Option(
                help="Steps between scores of the first language; the best weights stay, not the last."
            ),
        ],
        None,
    ),
    "warmup": (
        Annotated[float, typer.Option(help="Share of the steps to the highest rate, or their number.")],
        0.1,
    ),
    "schedule": (Annotated[str, choice("schedule", "What follows")], "linear"),
    "weight_decay": (Annotated[float, typer.Option(help="Of AdamW.")], 0.01),
    "precision": (Annotated[str, choice("precision", "Of the forward pass, on a GPU")], "float32"),
    "resume": (Annotated[bool, running("Go on with a training that was stopped", "--resume")], False),
    "processes": (Annotated[int | None, running("How many torchrun started; refused when not so")], None),
    "save_every": (Annotated[int, running("Steps between checkpoints")], 500),
    "tensorboard": (Annotated[bool, running("Write TensorBoard records", "--tensorboard")], False),
    "device": (DeviceName, "auto"),
}


@verb(app, "pretrain", LEARNING, WRITING)
def pretrain_command(
    job: Job,
    out: Out,
    world: Annotated[bool, typer.Option("--world", help="On text of the invented universe.")] = False,
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<code>=<file>",
            help="Text, a sentence a line, or hf:NAME; en,de=FILE for both sides of a bitext. Give it again.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(metavar="<name>", help="Settings by name (conneau2020 …) or a TOML file; others win."),
    ] = None,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            "--language", metavar="<code>", help="Of the world: en, near or far, again for each; en and far."
        ),
    ] = None,
    sentences: Annotated[
        int, typer.Option(help="Of the world, for each language; no translations.")
    ] = 40_000,
    domains: Annotated[
        bool, typer.Option("--domains", help="Languages of the world speak of different things.")
    ] = False,
    share: Annotated[str, choice("share", "What languages share", panel=SHARED)] = "all",
    dictionary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<file>",
            help="Translations for extra-anchors, named as en-de.txt.",
            rich_help_panel=SHARED,
        ),
    ] = None,
    paired: Annotated[
        float,
        typer.Option(
            help="Part of the rows that hold a sentence and its translation.", rich_help_panel=SHARED
        ),
    ] = 0.0,
    bitext: Annotated[
        list[str] | None,
        typer.Option(metavar="<code>,<code>=<file>", help="Where these are from.", rich_help_panel=SHARED),
    ] = None,
    cutting: Annotated[str, choice("cutting", "How words are cut into pieces")] = "unigram",
    vocabulary: Annotated[int, typer.Option(help="Pieces of all languages together.")] = 4500,
    layers: Annotated[int, typer.Option(help="Layers of the model.")] = 4,
    width: Annotated[int, typer.Option(help="Of its vectors.")] = 96,
    heads: Annotated[int, typer.Option(help="Of attention.")] = 4,
    inner: Annotated[int, typer.Option(help="Width inside a layer.")] = 192,
    masked: Annotated[float, typer.Option(help="Share of pieces to guess.")] = 0.2,
    steps: Annotated[int, typer.Option(help="Steps of training.")] = 6000,
    batch_tokens: Annotated[int, typer.Option(help="Pieces at a time.")] = 1024,
    learning_rate: Annotated[float, typer.Option(help="The highest learning rate.")] = 3e-3,
    dropout: Annotated[float, typer.Option(help="Share of numbers dropped in training.")] = 0.0,
) -> None:
    """Train a masked language model of one language or several from scratch."""
    from calque.pipeline import pretrain

    if world == bool(text):
        told = "text of the world or of files, not both" if world else "no text to train on"
        raise BadSetting(told, remedy=_where_text_is(preset))
    with job.showing():
        run = pretrain(**job.how, **job.typed("world"))
    job.tell(*_guessed(out, run.results))


def _where_text_is(preset: str | None) -> str:
    from calque.presets import load_preset

    if preset is not None and "sentences" in load_preset(preset, "pretrain").settings:
        return f"--world, of which the preset {preset} is"
    return "--text en=FILE, again for each language, or --world"


def _guessed(out: Path, results: Sequence[Result]) -> tuple[dict[str, Any], str]:
    """How well a language model guesses, for programs and for people."""
    scores = [{"language": one.languages, one.metric: one.value} for one in results]
    commonest = {one.languages: one.value for one in results if one.metric == "commonest"}
    told = [
        f"{one.languages[0]}: {one.value:.1%} of {one.count:,} hidden pieces guessed"
        f" (always the commonest: {commonest[one.languages]:.1%})"
        for one in results
        if one.metric == "accuracy"
    ]
    return {"folder": out, "scores": scores}, "\n".join(told)


@verb(app, "extend", LEARNING, WRITING)
def extend_command(
    job: Job,
    encoder: EncoderName,
    out: Out,
    text: Annotated[
        list[str],
        typer.Option(metavar="<code>=<file>", help="Text, a sentence a line, or hf:NAME. Give it again."),
    ],
    pieces: Annotated[int, typer.Option(help="Most pieces to add to the vocabulary; 0 adds none.")] = 5000,
    new_languages: Annotated[
        list[str] | None,
        typer.Option(
            "--language", metavar="<code>", help="Take pieces from this language's text only; again for more."
        ),
    ] = None,
    initial: Annotated[str, choice("initial", "What a new piece's vector begins as")] = "mean",
    trained: Annotated[str, choice("trained", "What is trained")] = "all",
    masked: Annotated[float, typer.Option(help="Share of pieces to guess.")] = 0.15,
    steps: Annotated[int, typer.Option(help="Steps of training.")] = 1000,
    batch_tokens: Annotated[int, typer.Option(help="Pieces at a time.")] = 2048,
    learning_rate: Annotated[float, typer.Option(help="The highest learning rate.")] = 5e-5,
    revision: Annotated[str | None, typer.Option(metavar="<name>", help="Revision of a hub model.")] = None,
) -> None:
    """Teach an encoder a language from plain text: more pieces for its words, and guessing hidden ones."""
    from calque.pipeline import extend
    from calque.pipeline.extending import AFTER, BEFORE

    with job.showing():
        run = extend(**job.how, **job.typed())
    cut = {(one.languages[0], one.metric): one.value for one in run.results}
    told = [
        f"{code}: {cut[code, BEFORE]:.2f} pieces a word before, {value:.2f} now"
        for (code, metric), value in cut.items()
        if metric == AFTER
    ]
    record, guessed = _guessed(out, run.results)
    job.tell(record, guessed, *told)
