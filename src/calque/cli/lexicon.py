"""`calque measure lexicon`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from calque.cli.common import (
    ENCODING,
    WRITING,
    Encoders,
    Job,
    Labels,
    Layers,
    Out,
    PoolingName,
    Rounds,
    SimilarityName,
    Tokenised,
    measure_app,
    verb,
)
from calque.cli.help import READING, choice
from calque.cli.measures import tell_run

Dictionaries = Annotated[
    list[str],
    typer.Option(
        "--dictionary",
        metavar="<file>",
        help="Dictionary in MUSE format (en-de.5000-6500.txt); again for more languages, or the other way.",
    ),
]
LanguageNames = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="<source> <target>",
        help="Of a dictionary whose name does not tell them: en de",
        rich_help_panel=READING,
    ),
]
TextPairs = Annotated[
    list[str] | None,
    typer.Option(metavar="<folder>", help="Folder of links, whose text is taken; again for more languages."),
]
Texts = Annotated[
    list[str] | None,
    typer.Option(
        "--text", metavar="<code>=<file>", help="Text of a language, en=FILE; again for the others."
    ),
]


@verb(measure_app, "lexicon", ENCODING, WRITING)
def measure_lexicon_command(
    job: Job,
    encoders: Encoders,
    dictionary: Dictionaries,
    out: Out,
    text: Texts = None,
    pairs: TextPairs = None,
    labels: Labels = None,
    layers: Layers = "all",
    vectors: Annotated[
        str | None,
        choice(
            "vectors", "Means over a text, layer 0 of single pieces, or a table; by default what there is"
        ),
    ] = None,
    similarity: SimilarityName = "csls",
    radius_k: Annotated[int, typer.Option(help="Neighbours of CSLS and margin.")] = 10,
    oov: Annotated[str, choice("oov", "Words, or all of their translations, without a vector")] = "skip",
    backward: Annotated[
        bool,
        typer.Option("--backward", help="Also from target to source, by the same dictionary turned round."),
    ] = False,
    drop_identical: Annotated[
        bool, typer.Option("--drop-identical", help="Leave out words that are their own translation.")
    ] = False,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Keep words seen in training with a translation.")
    ] = False,
    keep_case: Annotated[bool, typer.Option("--keep-case", help="Tell Bank from bank.")] = False,
    min_count: Annotated[int, typer.Option(help="Words of a text that occur this often.")] = 1,
    max_vocab: Annotated[int, typer.Option(help="The most frequent words only, this many.")] = 200_000,
    rounds: Rounds = 1000,
    languages: LanguageNames = None,
    tokenised: Tokenised = False,
    limit: Annotated[
        int | None, typer.Option(help="Read the first sentences only, this many.", rich_help_panel=READING)
    ] = None,
    pooling: PoolingName = None,
) -> None:
    """How often a word of a dictionary finds a translation among all words of the other language."""
    from calque.pipeline import measure_lexicon

    with job.showing():
        run = measure_lexicon(
            encoders,
            dictionary,
            pairs=pairs or (),
            **job.how,
            **job.settings("encoders", "dictionary", "pairs"),
        )
    tell_run(job, run, _coverage(run.counts))


def _coverage(counts: Mapping[str, int]) -> str:
    """How many words of the dictionaries could be asked for, why not the others, and among how many."""
    reasons = ("not in the vocabulary", "no translation in the vocabulary", "seen in training", "identical")
    told = ", ".join(f"{reason} {counts[reason]:,}" for reason in reasons if counts.get(reason))
    share = counts["covered"] / counts["words"]
    wrong = counts["scored"] - counts["covered"]
    return (
        f"{counts['covered']:,} of {counts['words']:,} words covered ({share:.1%})"
        + (f"; {told}" if told else "")
        + (f"; {wrong:,} of these count as wrong" if wrong else "")
        + f"; candidates: source {counts['source candidates']:,}, target {counts['target candidates']:,}"
    )
