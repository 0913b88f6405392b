"""`calque mine` and `calque score`: translations found, and lines of a bitext judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from calque.cli.common import (
    ENCODING,
    WRITING,
    EncoderName,
    Job,
    Out,
    app,
    verb,
)
from calque.cli.help import ENCODER, READING, RUNNING, choice

if TYPE_CHECKING:
    from calque.pipeline import MineRun, ScoreRun

TwoLanguages = Annotated[
    tuple[str, str], typer.Option(metavar="<source> <target>", help="For example: en de")
]
Layer = Annotated[
    str, typer.Option(metavar="<layer>", help="Whose vectors are compared.", rich_help_panel=ENCODER)
]
MarginName = Annotated[str, choice("margin", "How a pair is set against its neighbourhood")]
Neighbours = Annotated[int, typer.Option(help="Nearest sentences of either side that make it up.")]
Threshold = Annotated[float | None, typer.Option(help="Keep pairs that score at least this.")]
Keep = Annotated[int | None, typer.Option(help="Keep the best pairs only, this many.")]
Words = Annotated[
    bool,
    typer.Option(
        "--words", help="Cut text into words first; done anyway for static vectors.", rich_help_panel=READING
    ),
]
SentencePoolingName = Annotated[
    str,
    choice(
        "sentence_pooling", "Pieces of a sentence, or its first special token", "--pooling", panel=ENCODER
    ),
]
Show = Annotated[
    int, typer.Option(help="Print so many of the best, and of the last.", rich_help_panel=RUNNING)
]


@verb(app, "mine", ENCODING, WRITING)
def mine_command(
    job: Job,
    paths: Annotated[
        tuple[str, str],
        typer.Argument(metavar="<source> <target>", help="Two texts, one sentence a line, not aligned."),
    ],
    languages: TwoLanguages,
    encoder: EncoderName,
    out: Out,
    margin: MarginName = "ratio",
    neighbours: Neighbours = 4,
    strategy: Annotated[str, choice("strategy", "Which pairs are taken")] = "max",
    threshold: Threshold = None,
    keep: Keep = None,
    gold: Annotated[
        str | None,
        typer.Option(
            metavar="<file>", help="Gold pairs: two sentences or line numbers a line, a tab between."
        ),
    ] = None,
    words: Words = False,
    limit: Annotated[
        int | None, typer.Option(help="Read this many lines of each at most.", rich_help_panel=READING)
    ] = None,
    layer: Layer = "last",
    pooling: SentencePoolingName = "mean",
    show: Show = 0,
) -> None:
    """Find translations in two texts that are not aligned; writes pairs.tsv, best first."""
    from calque.pipeline import mine

    with job.showing():
        run = mine(
            paths[0],
            paths[1],
            languages,
            encoder,
            **job.how,
            **job.settings("paths", "languages", "encoder"),
        )
    best = None if run.best is None else asdict(run.best)
    record = {"folder": run.folder, "counts": run.counts, "scores": _scores(run), "best": best}
    job.tell(record, *_mine_lines(run, show))


def _scores(run: MineRun) -> dict[str, float]:
    """Figures of what was kept."""
    held = {result.metric: result.value for result in run.results if result.group is None}
    return {metric: held[metric] for metric in ("precision", "recall", "f1") if held}


def _mine_lines(run: MineRun, show: int) -> Iterator[Any]:
    yield from _texts(run.counts)
    yield f"{run.counts['kept']:,} of {run.counts['found']:,} pairs kept"
    if run.results:
        lost = run.counts["gold pairs not in the text"]
        yield f"{run.counts['gold pairs']:,} gold pairs" + (
            f"; {lost:,} more not in the text" if lost else ""
        )
        yield "kept: " + "  ".join(f"{name} {value:.3f}" for name, value in _scores(run).items())
    if run.best is not None:
        figures = "  ".join(f"{name} {value:.3f}" for name, value in vars(run.best.scores).items())
        yield f"best threshold {run.best.threshold:.4f} ({run.best.kept:,} pairs): {figures}"
    yield from _shown(run.pairs, show)


@verb(app, "score", ENCODING, WRITING)
def score_command(
    job: Job,
    paths: Annotated[list[str], typer.Argument(help="One bitext, or two line-aligned files; hf:NAME.")],
    languages: TwoLanguages,
    encoder: EncoderName,
    out: Out,
    margin: MarginName = "ratio",
    neighbours: Neighbours = 4,
    threshold: Threshold = None,
    keep: Keep = None,
    format: Annotated[
        str | None, choice("format", "Layout, by default guessed (triple has |||)", panel=READING)
    ] = None,
    words: Words = False,
    limit: Annotated[
        int | None, typer.Option(help="Read this many pairs at most.", rich_help_panel=READING)
    ] = None,
    layer: Layer = "last",
    pooling: SentencePoolingName = "mean",
    show: Show = 0,
) -> None:
    """Score each line of a bitext as a translation, and filter it; writes scores.txt, and kept.tsv."""
    from calque.pipeline import score_bitext

    with job.showing():
        run = score_bitext(
            paths,
            languages,
            encoder,
            **job.how,
            **job.settings("paths", "languages", "encoder"),
        )
    record = {"folder": run.folder, "counts": run.counts, "quantiles": run.quantiles}
    job.tell(record, *_score_lines(run, show))


def _score_lines(run: ScoreRun, show: int) -> Iterator[Any]:
    yield from _texts(run.counts)
    scored, lines = run.counts["scored"], run.counts["lines"]
    yield f"{scored:,} of {lines:,} lines scored" + (", the others -1" if scored < lines else "")
    yield "scores: " + "  ".join(f"{share} {score:.4f}" for share, score in run.quantiles.items())
    if "kept" in run.counts:
        yield f"{run.counts['kept']:,} lines kept"
    yield from _shown(run.ends, show)


def _texts(counts: Mapping[str, int]) -> Iterator[str]:
    """What became of the lines of both sides, where not all of them take part."""
    for side in ("source", "target"):
        own = {name.removeprefix(f"{side} "): n for name, n in counts.items() if name.startswith(f"{side} ")}
        lines = own.pop("lines")
        told = ", ".join(f"{name} {count:,}" for name, count in own.items() if count)
        yield f"{side}: {lines:,} lines" + (f"; {told}" if told else "")


def _shown(pairs: Sequence[tuple[float, str, str]], show: int) -> Iterator[Table]:
    """The best pairs, and the last."""
    if not show:
        return
    table = Table("score", "source", "target", box=None)
    chosen = pairs if len(pairs) <= 2 * show else [*pairs[:show], *pairs[-show:]]
    for score, source, target in chosen:
        table.add_row(f"{score:.4f}", escape(source), escape(target))
    yield table
