"""The command line: parsing and printing, nothing else. Every verb is a function of `calque.pipeline`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import calque
from calque.errors import CalqueError
from calque.files import FINISHED, Cache
from calque.progress import shown

if TYPE_CHECKING:
    from calque.pipeline import LinkRun

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, help=(calque.__doc__ or "").split("\n")[0]
)
measure_app = typer.Typer(no_args_is_help=True, help="Measure how well languages meet in encoders.")
cache_app = typer.Typer(no_args_is_help=True, help="The cache of vectors: what is in it, and making room.")
app.add_typer(measure_app, name="measure")
app.add_typer(cache_app, name="cache")

screen = Console()

#: Options that say how to run and print, not what to compute.
OUTWARD = frozenset({"out", "overwrite", "quiet", "as_json", "device", "show"})

Out = Annotated[Path, typer.Option(help="Folder to write; it appears whole or not at all.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a run of another recipe.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
DeviceName = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
DtypeName = Annotated[str, typer.Option("--dtype", help="float32; float16 or bfloat16 on a GPU.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Revision = Annotated[str | None, typer.Option(help="Revision of a hub model.")]
Prefix = Annotated[str | None, typer.Option(help="Text before every input, such as 'query: ' for E5.")]
MaxLength = Annotated[int, typer.Option(help="Longest input, in pieces.")]
EncoderName = Annotated[
    str,
    typer.Option("--encoder", help="Hub name, directory, e5-small-q4, or en=a.vec,de=b.vec."),
]
PoolingName = Annotated[
    str | None, typer.Option("--pooling", help="Subwords of a word: mean, first or last.")
]


def main() -> None:
    """Run the command line; a person's mistake ends with a message and exit code 2."""
    try:
        app()
    except CalqueError as error:
        _complain(str(error))
        sys.exit(2)
    except OSError as error:
        _complain(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == 130:
            _complain("interrupted; nothing half-written")
        raise


def _complain(message: str) -> None:
    Console(stderr=True, soft_wrap=True).print(f"calque: {message}", markup=False, highlight=False)


def _version(wanted: bool) -> None:
    if wanted:
        screen.print(calque.__version__, highlight=False)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Align multilingual encoders across languages, and find out whether it helped."""


def _settings(context: typer.Context, *not_settings: str) -> dict[str, Any]:
    """The options that belong to a recipe; their names are the recipe's."""
    held = {name: value for name, value in context.params.items() if name not in OUTWARD | set(not_settings)}
    return {name: value for name, value in held.items() if value not in (None, [], ())}


@contextmanager
def _showing(quiet: bool, as_json: bool) -> Iterator[None]:
    with shown(not quiet and not as_json):
        yield


class _Standing:
    """Whether a run stood finished in a folder before a verb was called."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.before = self._when()

    def _when(self) -> int | None:
        marker = self.out / FINISHED
        return marker.stat().st_mtime_ns if marker.is_file() else None

    def __str__(self) -> str:
        return f"{'already there' if self.before == self._when() else 'written'}: {self.out}"


def _tell(quiet: bool, as_json: bool, record: dict[str, Any], *parts: Any) -> None:
    """Print a record for programs, or its parts for a person."""
    if as_json:
        print(json.dumps(record, ensure_ascii=False, indent=2, default=str))
    elif not quiet:
        for part in parts:
            if isinstance(part, str):
                screen.print(part, markup=False, highlight=False, soft_wrap=True)
            else:
                screen.print(part)


# ----------------------------------------------------------------------------------------------- link


@app.command("link")
def link_command(
    context: typer.Context,
    paths: Annotated[list[str], typer.Argument(help="One bitext, or two line-aligned files; hf:NAME.")],
    languages: Annotated[tuple[str, str], typer.Option(help="Source and target, for example: en de")],
    out: Out,
    format: Annotated[
        str | None, typer.Option(help="tsv, lines, triple (|||), tmx, conllu, dataset; guessed by default.")
    ] = None,
    tokenised: Annotated[
        bool, typer.Option("--tokenised", help="Words are separated by spaces already.")
    ] = False,
    max_words: Annotated[int, typer.Option(help="Drop pairs with a longer side.")] = 100,
    max_ratio: Annotated[float, typer.Option(help="Drop pairs with sides this unequal; 0 keeps all.")] = 9.0,
    keep_duplicates: Annotated[bool, typer.Option("--keep-duplicates", help="Keep repeated pairs.")] = False,
    limit: Annotated[int | None, typer.Option(help="Read this many pairs at most.")] = None,
    linker: Annotated[
        str,
        typer.Option(
            help="eflomal, fast-align, hmm, ibm1 … ibm4; or mutual, iterative, softmax (--encoder)."
        ),
    ] = "eflomal",
    symmetrise: Annotated[
        str,
        typer.Option(help="intersection, union, grow-diag, grow-diag-final, grow-diag-final-and."),
    ] = "intersection",
    iterations: Annotated[
        int | None, typer.Option(help="Training iterations of a statistical linker.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="Encoder for similarity links and --subwords.")] = None,
    layer: Annotated[str, typer.Option(help="Its layer for similarity links.")] = "-5",
    threshold: Annotated[float, typer.Option(help="Of softmax links.")] = 0.001,
    subwords: Annotated[bool, typer.Option("--subwords", help="Link the encoder's own pieces.")] = False,
    links: Annotated[str | None, typer.Option(help="Links made elsewhere, in Pharaoh format.")] = None,
    one_based: Annotated[bool, typer.Option("--one-based", help="Pharaoh files count from 1.")] = False,
    trained: Annotated[str | None, typer.Option(help="Folder of a kept linker to apply.")] = None,
    keep_linker: Annotated[bool, typer.Option("--keep-linker", help="Keep the trained linker.")] = False,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter", help="one-to-one, different, score>=X, sample=N, sentences=N; applied in this order."
        ),
    ] = None,
    dev: Annotated[int, typer.Option(help="Pairs before the test pairs, held out.")] = 0,
    test: Annotated[int, typer.Option(help="Last pairs, held out.")] = 0,
    gold: Annotated[str | None, typer.Option(help="Gold links to score against.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Also write text and links as plain files.")] = False,
    show: Annotated[int, typer.Option(min=0, help="Draw the links of this many sentences.")] = 0,
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
    """Link the words of a bitext; writes train/ dev/ test/."""
    from calque.pipeline import link

    standing = _Standing(out)
    with _showing(quiet, as_json):
        run = link(
            paths,
            languages,
            out=out,
            overwrite=overwrite,
            device=device,
            **_settings(context, "paths", "languages"),
        )
    _tell(quiet, as_json, _link_record(run), *_link_tables(run, show), str(standing))


def _link_record(run: LinkRun) -> dict[str, Any]:
    return {
        "folder": run.folder,
        "splits": {
            name: {"sentences": len(pairs.bitext), "links": len(pairs)} for name, pairs in run.splits.items()
        },
        "dropped": dict(run.dropped),
        "filters": [vars(step) for step in run.filters],
        "scores": {result.metric: result.value for result in run.scores},
    }


def _link_tables(run: LinkRun, show: int) -> Iterator[Any]:
    from calque.links.draw import draw

    table = Table("split", "sentences", "links", "links a sentence", box=None)
    for name, pairs in run.splits.items():
        count, links = len(pairs.bitext), len(pairs)
        table.add_row(name, f"{count:,}", f"{links:,}", f"{links / count:.1f}")
    yield table
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in run.dropped.items() if count)
    yield f"dropped: {dropped or 'nothing'}"
    for step in run.filters:
        yield f"filter {step.name}: kept {step.kept:,}, dropped {step.dropped:,}"
    if run.scores:
        figures = "  ".join(f"{result.metric} {result.value:.3f}" for result in run.scores)
        yield f"against gold ({run.scores[0].count:,} sentences): {figures}"
    first = next(iter(run.splits.values()))
    for sentence in range(min(show, len(first.bitext))):
        yield f"\n{draw(first, sentence)}"


# ---------------------------------------------------------------------------------------------- align


@app.command("align")
def align_command(
    context: typer.Context,
    encoder: EncoderName,
    pairs: Annotated[list[str], typer.Option(help="Folder of links; several languages: give it again.")],
    out: Out,
    method: Annotated[
        str,
        typer.Option(
            help="centring, z-norm, top-components, rotation, centred-rotation, iterative-normalisation, "
            "orthogonal-gradient, least-squares."
        ),
    ] = "centred-rotation",
    layers: Annotated[
        str, typer.Option(help="all, last, last4, 8, 0,4,8 or 8-12; 0 is the embeddings.")
    ] = "last",
    supervision: Annotated[
        str, typer.Option(help="words, cls, cls+sep, all, sentences or dictionary.")
    ] = "words",
    dictionary: Annotated[
        list[str] | None, typer.Option(help="Dictionary in MUSE format, one for each --pairs.")
    ] = None,
    pooling: PoolingName = None,
    moves: Annotated[
        str, typer.Option(help="Which side moves into the other's space: target, source.")
    ] = "target",
    shrink: Annotated[float, typer.Option(help="Towards the identity: 0 not at all, 1 wholly.")] = 0.0,
    components: Annotated[int, typer.Option(help="Of top-components.")] = 3,
    rounds: Annotated[int, typer.Option(help="Of iterative-normalisation.")] = 5,
    beta: Annotated[float, typer.Option(help="Of orthogonal-gradient.")] = 0.01,
    steps: Annotated[int, typer.Option(help="Of orthogonal-gradient.")] = 20_000,
    batch: Annotated[int, typer.Option(help="Of orthogonal-gradient.")] = 128,
    learning_rate: Annotated[float, typer.Option(help="Of orthogonal-gradient.")] = 1e-4,
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
    """Learn linear maps from linked words; writes an encoder that applies them."""
    from calque.pipeline import align

    standing = _Standing(out)
    with _showing(quiet, as_json):
        aligned = align(
            encoder,
            pairs,
            out=out,
            overwrite=overwrite,
            device=device,
            **_settings(context, "encoder", "pairs"),
        )
    coverage = aligned.about["coverage"]
    told = [
        f"{languages}: " + ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
        for languages, counts in coverage.items()
    ]
    layer_list = ", ".join(map(str, aligned.layers))
    record = {"folder": out, "method": method, "layers": aligned.layers, "coverage": coverage}
    _tell(quiet, as_json, record, f"{method} at layers {layer_list}", *told, str(standing))


# -------------------------------------------------------------------------------------------- measure


@measure_app.command("words")
def measure_words_command(
    context: typer.Context,
    encoders: Annotated[
        list[str], typer.Option("--encoder", help="Encoders to compare; the first is the baseline.")
    ],
    pairs: Annotated[list[str], typer.Option(help="Folder of links to score; may be given again.")],
    out: Out,
    labels: Annotated[list[str] | None, typer.Option("--label", help="A name for each encoder.")] = None,
    layers: Annotated[
        str, typer.Option(help="all, last, last4, 8, 0,4,8 or 8-12; 0 is the embeddings.")
    ] = "all",
    variant: Annotated[str, typer.Option(help="contextual, first-occurrence or program.")] = "contextual",
    similarity: Annotated[str, typer.Option(help="csls or cosine.")] = "csls",
    radius_k: Annotated[int, typer.Option(help="Neighbours of CSLS.")] = 10,
    pooling: PoolingName = None,
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
        list[str] | None, typer.Option("--by", help="pos, rank-gap, script, seen; all possible by default.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Of the bootstrap.")] = 1000,
    limit: Annotated[int | None, typer.Option(help="Score the first sentences only, this many.")] = None,
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
    from calque.report.collect import collect
    from calque.report.tables import summary_table, verdict_line
    from calque.store import result_line

    standing = _Standing(out)
    with _showing(quiet, as_json):
        run = measure_words(
            encoders,
            pairs,
            out=out,
            overwrite=overwrite,
            device=device,
            **_settings(context, "encoders", "pairs"),
        )
    if quiet:
        return
    held = collect(out)
    record = {
        "folder": out,
        "verdict": verdict_line(held),
        "counts": run.counts,
        "results": [json.loads(result_line(result)) for result in run.results],
    }
    _tell(
        quiet, as_json, record, summary_table(held), _left_out(run.counts), verdict_line(held), str(standing)
    )


def _left_out(counts: Mapping[str, int]) -> str:
    """How many links were scored, and why the others were not."""
    reasons = ("several links", "identical", "seen in training", "no vector", "later occurrence")
    told = ", ".join(f"{reason} {counts[reason]:,}" for reason in reasons if counts.get(reason))
    return f"{counts['scored']:,} of {counts['links']:,} links scored" + (
        f"; left out: {told}" if told else ""
    )


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    quiet: Quiet = False,
    as_json: AsJson = False,
    device: DeviceName = "auto",
    dtype: DtypeName = "float32",
    seed: Seed = 0,
) -> None:
    """Write one self-contained HTML page for a run, and print its path."""
    from calque.pipeline.reporting import report

    page = report(folder)
    _tell(quiet, as_json, {"page": page}, str(page))


# --------------------------------------------------------------------------------------------- encode


@app.command("encode")
def encode_command(
    context: typer.Context,
    text: Annotated[Path, typer.Argument(help="A text, one sentence a line.")],
    encoder: EncoderName,
    language: Annotated[str, typer.Option(help="Language of the text.")],
    out: Out,
    unit: Annotated[str, typer.Option(help="words or sentences.")] = "words",
    layers: Annotated[
        str, typer.Option(help="all, last, last4, 8, 0,4,8 or 8-12; 0 is the embeddings.")
    ] = "last",
    pooling: PoolingName = None,
    tokenised: Annotated[
        bool, typer.Option("--tokenised", help="Words are separated by spaces already.")
    ] = False,
    limit: Annotated[int | None, typer.Option(help="Read this many lines at most.")] = None,
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
    """Vectors of the words or sentences of a text, as .npy files."""
    from calque.pipeline import encode

    standing = _Standing(out)
    with _showing(quiet, as_json):
        vectors = encode(
            encoder,
            text,
            language,
            out=out,
            overwrite=overwrite,
            device=device,
            **_settings(context, "encoder", "text", "language"),
        )
    shapes = {f"layer-{layer}.npy": vectors.layer(layer).shape for layer in vectors.layers}
    told = [f"{name}: {rows:,} × {width}" for name, (rows, width) in shapes.items()]
    lost = ", ".join(f"{reason} {count:,}" for reason, count in vectors.dropped.items() if count)
    record = {"folder": out, "shapes": shapes, "dropped": vectors.dropped}
    _tell(quiet, as_json, record, *told, *([f"no vector: {lost}"] if lost else []), str(standing))


# --------------------------------------------------------------------------------------- world, demo


@app.command("world")
def world_command(
    context: typer.Context,
    out: Out,
    count: Annotated[int, typer.Option(help="Sentences of the bitext.")] = 5000,
    width: Annotated[int, typer.Option(help="Of the count vectors.")] = 100,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    device: DeviceName = "auto",
    dtype: DtypeName = "float32",
    seed: Seed = 0,
) -> None:
    """Write an invented universe: parallel text in three languages, gold links, treebanks, count vectors."""
    from calque.pipeline import world

    standing = _Standing(out)
    with _showing(quiet, as_json):
        folder = world(out, overwrite=overwrite, **_settings(context, "dtype"))
    _tell(quiet, as_json, {"folder": folder}, str(standing))


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("runs/demo"),
    quiet: Quiet = False,
    as_json: AsJson = False,
    device: DeviceName = "auto",
    dtype: DtypeName = "float32",
    seed: Seed = 0,
) -> None:
    """The whole flow on the world, offline, in a minute or two: link, align, measure, page."""
    from calque.pipeline import demo
    from calque.report.collect import collect
    from calque.report.tables import summary_table, verdict_line

    with _showing(quiet, as_json):
        page = demo(
            out, seed=seed, tell=lambda line: _tell(quiet, as_json, {}, f"$ {line}") if not as_json else None
        )
    if quiet or as_json:
        return _tell(quiet, as_json, {"page": page})
    held = collect(page.parent)
    _tell(quiet, as_json, {}, summary_table(held), verdict_line(held), f"page: {page}")


# ---------------------------------------------------------------------------------------------- cache


@cache_app.command("ls")
def cache_list(as_json: AsJson = False) -> None:
    """What is in the cache, most recently used first."""
    cache = Cache()
    entries = cache.entries()
    table = Table("size", "holds", "key", box=None)
    for entry in entries:
        table.add_row(f"{entry.size / 1e6:,.1f} MB", entry.label, entry.key[:12])
    total = sum(entry.size for entry in entries)
    record = {"folder": cache.root, "limit": cache.limit, "entries": [vars(entry) for entry in entries]}
    end = f"{len(entries)} entries, {total / 1e6:,.1f} MB of {cache.limit / 1e6:,.0f} MB in {cache.root}"
    _tell(False, as_json, record, *([table] if entries else []), end)


@cache_app.command("prune")
def cache_prune(
    to: Annotated[float, typer.Option(help="Gigabytes to keep at most; 0 empties the cache.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Remove the least recently used entries."""
    removed = Cache().prune(int(to * 1e9))
    size = sum(entry.size for entry in removed)
    record = {"removed": len(removed), "bytes": size}
    _tell(False, as_json, record, f"removed {len(removed)} entries, {size / 1e6:,.1f} MB")
