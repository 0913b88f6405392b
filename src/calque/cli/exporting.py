"""`calque export`: an encoder for other programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from calque.cli.common import ENCODING, WRITING, Job, Out, app, verb
from calque.cli.mining import SentencePoolingName


@verb(app, "export", ENCODING, WRITING)
def export_command(
    job: Job,
    encoder: Annotated[
        str, typer.Argument(help="Hub name, directory, e5-small-q4, or encoders by language: en=A,de=B.")
    ],
    out: Out,
    language: Annotated[
        str | None,
        typer.Option(metavar="<code>", help="Of an encoder with maps or weights for each: whose to export."),
    ] = None,
    layer: Annotated[
        str,
        typer.Option(metavar="<layer>", help="last, 8, or -1 for the last; layers above it are left out."),
    ] = "last",
    normalise: Annotated[bool, typer.Option("--normalise", help="Vectors of length one.")] = False,
    pooling: SentencePoolingName = "mean",
) -> None:
    """A directory that sentence-transformers loads without calque, with the same sentence vectors."""
    from calque.pipeline import export

    with job.showing():
        made = export(encoder, **job.how, **job.settings("encoder"))
    told = [f"{' → '.join(made.modules)}, layer {made.layer}"]
    if made.space is not None:
        told.append(f"for {made.language} only: its map into the space of {made.space} is part of it")
    if made.prefix:
        told.append(f"the tokenizer puts {made.prefix!r} before every text")
    job.tell(asdict(made), *told)
