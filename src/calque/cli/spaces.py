"""`calque measure cka`, `distances` and `correlation`: what a space looks like, and what goes with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

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
    measure_app,
    verb,
)
from calque.cli.help import choice
from calque.cli.measures import _left_out, tell_run
from calque.cli.mining import SentencePoolingName, Words

if TYPE_CHECKING:
    from calque.types import Result

SentencePairs = Annotated[
    list[str] | None,
    typer.Option(metavar="<folder>", help="Folder of links, whose sentences are taken; may be given again."),
]
ParallelTexts = Annotated[
    list[str] | None,
    typer.Option(
        metavar="<text>",
        help="Parallel text, de=FILE,en=FILE or de,en=FILE that holds both; may be given again.",
    ),
]


@verb(measure_app, "cka", ENCODING, WRITING)
def measure_cka_command(
    job: Job,
    encoders: Encoders,
    out: Out,
    pairs: SentencePairs = None,
    text: ParallelTexts = None,
    labels: Labels = None,
    layers: Layers = "all",
    same_layer: Annotated[
        bool, typer.Option("--same-layer", help="Equal layers only: no heat maps, far less to compute.")
    ] = False,
    floor: Annotated[
        bool, typer.Option("--floor/--no-floor", help="Read the target side with random weights too.")
    ] = True,
    rounds: Rounds = 1000,
    limit: Limit = None,
    words: Words = False,
    pooling: SentencePoolingName = "mean",
) -> None:
    """How alike the two languages are in an encoder, and encoders to each other: CKA, layer by layer."""
    from calque.pipeline import measure_cka

    with job.showing():
        run = measure_cka(
            encoders,
            pairs or (),
            text=text or (),
            **job.how,
            **job.settings("encoders", "pairs", "text"),
        )
    told = f"{run.counts['scored']:,} of {run.counts['sentences']:,} sentence pairs compared"
    tell_run(job, run, told)


@verb(measure_app, "distances", ENCODING, WRITING)
def measure_distances_command(
    job: Job,
    encoders: Encoders,
    pairs: Pairs,
    out: Out,
    labels: Labels = None,
    layers: Layers = "all",
    distance: Annotated[str, choice("distance", "How far two words are from each other")] = "l2",
    scaled: Annotated[
        bool, typer.Option("--scaled", help="Histograms in units of the mean unrelated distance.")
    ] = False,
    rounds: Rounds = 1000,
    limit: Limit = None,
    pooling: PoolingName = None,
) -> None:
    """How far linked words are from each other, beside words that have nothing to do with each other."""
    from calque.pipeline import measure_distances

    with job.showing():
        run = measure_distances(
            encoders,
            pairs,
            **job.how,
            **job.settings("encoders", "pairs"),
        )
    tell_run(job, run, _left_out(run.counts))


@verb(measure_app, "correlation", WRITING)
def measure_correlation_command(
    job: Job,
    run_x: Annotated[Path, typer.Argument(help="A run of calque measure.")],
    out: Out,
    run_y: Annotated[Path | None, typer.Argument(help="Another run; without it, the same.")] = None,
    x: Annotated[
        str | None, typer.Option("--x", metavar="<figure>", help="Its task, metric, variant: cka/linear.")
    ] = None,
    y: Annotated[
        str | None, typer.Option("--y", metavar="<figure>", help="The other: sentence-retrieval/accuracy.")
    ] = None,
    over: Annotated[str, choice("over", "What a point is")] = "layers",
    layer: Annotated[
        str, typer.Option(metavar="<layer>", help="Over languages: the layer of both figures.")
    ] = "last",
    rounds: Annotated[int, typer.Option(help="Of bootstrap and permutation.")] = 10_000,
) -> None:
    """Whether two measures go together, from layer to layer or from language to language."""
    from calque.pipeline import measure_correlation

    with job.showing():
        run = measure_correlation(run_x, run_y, **job.how, **job.settings("run_x", "run_y"))
    record = {"folder": run.folder, "counts": run.counts, "results": list(map(asdict, run.results))}
    notes = dict.fromkeys(f"{one.encoder}: {one.note}." for one in run.results if "only" in one.note)
    job.tell(record, *_correlations(run.results), *notes)


def _correlations(results: Sequence[Result]) -> Iterator[Table]:
    """A table for each set of points: both coefficients of every encoder, with interval and p-value."""
    held: dict[tuple[str, tuple[str, str]], dict[str, dict[str, Result]]] = {}
    for one in results:
        held.setdefault((one.variant, one.languages), {}).setdefault(one.encoder, {})[one.metric] = one
    for (what, languages), encoders in held.items():
        table = Table(
            "encoder", "points", title=f"{what} ({'–'.join(languages)})", show_edge=False, pad_edge=False
        )
        for metric in ("Pearson", "Spearman"):
            table.add_column(metric, justify="right")
            table.add_column("p", justify="right")
        for encoder, found in encoders.items():
            cells = [cell for one in (found["pearson"], found["spearman"]) for cell in _coefficient(one)]
            table.add_row(Text(encoder), str(found["pearson"].count), *cells)
        yield table


def _coefficient(one: Result) -> tuple[str, str]:
    return f"{one.value:.2f} ({one.low:.2f}, {one.high:.2f})", f"{one.p:.3f}"
