"""`calque measure …`: one command a measure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calque.cli.common import (
    ENCODING,
    WRITING,
    Encoders,
    Job,
    Labels,
    Layers,
    Limit,
    Out,
    Pairs,
    PoolingName,
    Rounds,
    SimilarityName,
    measure_app,
    verb,
)
from calque.cli.help import RUNNING, choice
from calque.cli.mining import SentencePoolingName, Words
from calque.files import read_json

if TYPE_CHECKING:
    from calque.pipeline import MeasureRun


@verb(measure_app, "words", ENCODING, WRITING)
def measure_words_command(
    job: Job,
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
) -> None:
    """How often a word finds its translation among all words of the other language, layer by layer."""
    from calque.pipeline import measure_words

    with job.showing():
        run = measure_words(
            encoders,
            pairs,
            **job.how,
            **job.settings("encoders", "pairs"),
        )
    tell_run(job, run, _left_out(run.counts))


@verb(measure_app, "sentences", ENCODING, WRITING)
def measure_sentences_command(
    job: Job,
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
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Keep sentence pairs seen in training, as a breakdown.")
    ] = False,
    rounds: Rounds = 1000,
    limit: Limit = None,
    words: Words = False,
    pooling: SentencePoolingName = "mean",
    show: Annotated[
        int, typer.Option(help="Print so many retrieved sentences.", rich_help_panel=RUNNING)
    ] = 0,
) -> None:
    """How often a sentence finds its translation among all sentences of the other language."""
    from calque.pipeline import measure_sentences

    with job.showing():
        run = measure_sentences(
            encoders,
            pairs or (),
            text=text or (),
            **job.how,
            **job.settings("encoders", "pairs", "text"),
        )
    shown = "\n\n".join(map(_retrieved, read_json(run.folder / "artifacts" / "sentences.json")[:show]))
    tell_run(job, run, *([f"{shown}\n"] if shown else []), _sentences_told(run.counts))


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


def tell_run(job: Job, run: MeasureRun, *more: str) -> None:
    """What a measure found: its table, its verdict, and what else there is to say."""
    if job.quiet:
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
    job.tell(record, summary_table(held), verdict_line(held), *more)


def _left_out(counts: Mapping[str, int]) -> str:
    """How many links were scored, and why the others were not."""
    reasons = ("several links", "identical", "seen in training", "no vector", "later occurrence")
    told = ", ".join(f"{reason} {counts[reason]:,}" for reason in reasons if counts.get(reason))
    return f"{counts['scored']:,} of {counts['links']:,} links scored" + (
        f"; left out: {told}" if told else ""
    )
