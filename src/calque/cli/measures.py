"""`calque measure …`: one command a measure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calque.cli.common import (
    AsJson,
    DeviceName,
    DtypeName,
    Encoders,
    Labels,
    Layers,
    Limit,
    MaxLength,
    Out,
    Overwrite,
    Pairs,
    PoolingName,
    Prefix,
    Quiet,
    Revision,
    Rounds,
    Seed,
    SimilarityName,
    Standing,
    measure_app,
    settings,
    showing,
    tell,
)
from calque.cli.help import RUNNING, Verb, choice
from calque.cli.mining import SentencePoolingName, Words
from calque.files import read_json

if TYPE_CHECKING:
    from calque.pipeline import MeasureRun


@measure_app.command("words", cls=Verb)
def measure_words_command(
    context: typer.Context,
    encoders: Encoders,
    pairs: Pairs,
    out: Out,
    labels: Labels = None,
    layers: Layers = "all",
    variant: Annotated[str, choice("variant", "Which occurrences are searched and scored")] = "contextual",
    similarity: SimilarityName = "csls",
    radius_k: Annotated[int, typer.Option(help="Neighbours of CSLS.")] = 10,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Keep word pairs seen in training, as a breakdown.")
    ] = False,
    keep_identical: Annotated[
        bool, typer.Option("--keep-identical", help="Keep links between equal strings.")
    ] = False,
    keep_many: Annotated[
        bool, typer.Option("--keep-many", help="Keep words that have several links.")
    ] = False,
    sentence_augmented: Annotated[
        bool,
        typer.Option("--sentence-augmented", help="Add mean, max and min over the sentence to each word."),
    ] = False,
    breakdowns: Annotated[
        list[str] | None, choice("breakdowns", "Scores of parts, by default all possible", "--by")
    ] = None,
    rounds: Rounds = 1000,
    limit: Limit = None,
    pooling: PoolingName = None,
    revision: Revision = None,
    prefix: Prefix = None,
    max_length: MaxLength = 512,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    device: DeviceName = "auto",
    dtype: DtypeName = "float32",
    seed: Seed = 0,
) -> None:
    """How often a word finds its translation among all words of the other language, layer by layer."""
    from calque.pipeline import measure_words

    standing = Standing(out)
    with showing(quiet, as_json):
        run = measure_words(
            encoders,
            pairs,
            out=out,
            overwrite=overwrite,
            device=device,
            **settings(context, "encoders", "pairs"),
        )
    _tell_run(run, _left_out(run.counts), str(standing), quiet=quiet, as_json=as_json)


@measure_app.command("sentences", cls=Verb)
def measure_sentences_command(
    context: typer.Context,
    encoders: Encoders,
    out: Out,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<folder>", help="Folder of links, whose sentences are taken; may be given again."
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<text>",
            help="Parallel text, de=FILE,en=FILE or de,en=FILE that holds both; may be given again.",
        ),
    ] = None,
    labels: Labels = None,
    layers: Layers = "all",
    similarity: SimilarityName = "cosine",
    radius_k: Annotated[int, typer.Option(help="Neighbours of CSLS and margin.")] = 10,
    rounds: Rounds = 1000,
    limit: Limit = None,
    words: Words = False,
    pooling: SentencePoolingName = "mean",
    show: Annotated[
        int, typer.Option(help="Print so many retrieved sentences.", rich_help_panel=RUNNING)
    ] = 0,
    revision: Revision = None,
    prefix: Prefix = None,
    max_length: MaxLength = 512,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    device: DeviceName = "auto",
    dtype: DtypeName = "float32",
    seed: Seed = 0,
) -> None:
    """How often a sentence finds its translation among all sentences of the other language."""
    from calque.pipeline import measure_sentences

    standing = Standing(out)
    with showing(quiet, as_json):
        run = measure_sentences(
            encoders,
            pairs or (),
            text=text or (),
            out=out,
            overwrite=overwrite,
            device=device,
            **settings(context, "encoders", "pairs", "text"),
        )
    shown = "\n\n".join(map(_retrieved, read_json(run.folder / "artifacts" / "sentences.json")[:show]))
    told = [*([f"{shown}\n"] if shown else []), _sentences_told(run.counts), str(standing)]
    _tell_run(run, *told, quiet=quiet, as_json=as_json)


def _retrieved(example: Mapping[str, Any]) -> str:
    """A query and what each encoder found, for a person to read."""
    found = (
        f"  {'right' if one['hit'] else 'wrong'}  {one['sentence']}  ({label}, layer {one['layer']})"
        for label, one in example["retrieved"].items()
    )
    return "\n".join([f"{example['query']}  →  {example['gold']}", *found])


def _sentences_told(counts: Mapping[str, int]) -> str:
    """How many sentences there were, and what is to be known about them."""
    known = ("sentences", "source candidates", "target candidates")
    told = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count and name not in known)
    return f"{counts['sentences']:,} sentence pairs" + (f"; {told}" if told else "")


def _tell_run(run: MeasureRun, *more: str, quiet: bool, as_json: bool) -> None:
    """What a measure found: its table, its verdict, and what else there is to say."""
    if quiet:
        return
    from calque.report.collect import collect
    from calque.report.tables import summary_table, verdict_line
    from calque.store import result_line

    held = collect(run.folder)
    record = {
        "folder": run.folder,
        "verdict": verdict_line(held),
        "counts": run.counts,
        "results": [json.loads(result_line(result)) for result in run.results],
    }
    tell(quiet, as_json, record, summary_table(held), verdict_line(held), *more)


def _left_out(counts: Mapping[str, int]) -> str:
    """How many links were scored, and why the others were not."""
    reasons = ("several links", "identical", "seen in training", "no vector", "later occurrence")
    told = ", ".join(f"{reason} {counts[reason]:,}" for reason in reasons if counts.get(reason))
    return f"{counts['scored']:,} of {counts['links']:,} links scored" + (
        f"; left out: {told}" if told else ""
    )
