"""`calque measure projection`, `examples` and `all`: what a person looks at, and everything at once."""

from __future__ import annotations

from typing import Annotated

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
    tell,
    verb,
)
from calque.cli.help import choice
from calque.cli.measures import tell_run


@verb(measure_app, "projection", ENCODING, WRITING)
def measure_projection_command(
    job: Job,
    encoders: Encoders,
    pairs: Pairs,
    out: Out,
    labels: Labels = None,
    layers: Layers = "last",
    words: Annotated[
        list[str] | None,
        typer.Option(
            "--word", metavar="<word>", help="A word to draw, of either language; may be given again."
        ),
    ] = None,
    types: Annotated[int, typer.Option(help="Without --word: so many, the most frequent.")] = 12,
    occurrences: Annotated[int, typer.Option(help="Links to draw of each word.")] = 15,
    projection: Annotated[str, choice("projection", "How vectors come onto a plane", "--method")] = "tsne",
    perplexity: Annotated[
        float | None, typer.Option(help="Of t-SNE, by default 30 or a third of the points.")
    ] = None,
    rounds: Rounds = 1000,
    limit: Limit = None,
    pooling: PoolingName = None,
) -> None:
    """The same words of two languages on a plane in every encoder, and what the picture is worth."""
    from calque.pipeline import measure_projection

    with job.showing():
        run = measure_projection(
            encoders,
            pairs,
            **job.how,
            **job.settings("encoders", "pairs"),
        )
    told = (
        f"{run.counts['points']:,} points of {run.counts['words']:,} words; `calque report {out}` draws them"
    )
    tell_run(job, run, told)


@verb(measure_app, "examples", ENCODING, WRITING)
def measure_examples_command(
    job: Job,
    encoders: Encoders,
    pairs: Pairs,
    out: Out,
    labels: Labels = None,
    layers: Layers = "last",
    types: Annotated[int, typer.Option(help="Words to choose in each language.")] = 20,
    occurrences: Annotated[int, typer.Option(help="Sentences to show of each word.")] = 4,
    sentences: Annotated[int, typer.Option(help="Sentences to search among.")] = 300,
    similarity: SimilarityName = "csls",
    radius_k: Annotated[int, typer.Option(help="Neighbours of CSLS.")] = 10,
    rounds: Rounds = 1000,
    limit: Limit = None,
    pooling: PoolingName = None,
) -> None:
    """What ambiguous words find in the other language, right and wrong, for a person to read."""
    from calque.pipeline import measure_examples

    with job.showing():
        run = measure_examples(
            encoders,
            pairs,
            **job.how,
            **job.settings("encoders", "pairs"),
        )
    told = f"{run.counts['types']:,} ambiguous words, chosen by the entropy of their translations"
    tell_run(job, run, told)


@verb(measure_app, "all", ENCODING, WRITING)
def measure_all_command(
    job: Job,
    encoders: Encoders,
    pairs: Pairs,
    out: Out,
    dictionary: Annotated[
        list[str] | None,
        typer.Option(metavar="<file>", help="Dictionary for lexicon induction; may be given again."),
    ] = None,
    labels: Labels = None,
    layers: Layers = "all",
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Keep word pairs seen in training, as a breakdown.")
    ] = False,
    rounds: Rounds = 1000,
    limit: Limit = None,
    pooling: PoolingName = None,
) -> None:
    """Words, lexicon, sentences, CKA, distances and projection, one after the other, for one page."""
    from calque.pipeline import measure_all

    def say(line: str) -> None:
        tell(job.quiet or job.as_json, False, {}, line)

    with job.showing():
        run = measure_all(
            encoders,
            pairs,
            dictionary=dictionary or (),
            tell=say,
            **job.how,
            **job.settings("encoders", "pairs", "dictionary"),
        )
    if not job.quiet:
        from calque.report.collect import collect
        from calque.report.tables import verdict_line

        verdicts = {name: verdict_line(collect(one.folder)) for name, one in run.runs.items()}
        record = {"folder": run.folder, "verdicts": verdicts, "failed": run.failed}
        told = f"`calque report {out}` shows all on one page"
        tell(False, job.as_json, record, "", *verdicts.values(), told)
    if run.failed:
        if job.quiet:
            typer.echo("\n".join(f"{name} not done: {why}" for name, why in run.failed.items()), err=True)
        raise typer.Exit(1)
