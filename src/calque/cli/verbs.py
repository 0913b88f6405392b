"""The verbs, but for the measures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from calque.cli.common import (
    ENCODING,
    WRITING,
    AsJson,
    DeviceName,
    EncoderName,
    Job,
    Layers,
    Out,
    PoolingName,
    Quiet,
    Seed,
    Tokenised,
    app,
    cache_app,
    tell,
    verb,
)
from calque.cli.help import ENCODER, METHODS, READING, RUNNING, TRAINING, Verb, choice, training
from calque.errors import BadSetting
from calque.files import Cache, bytes_of
from calque.progress import shown

if TYPE_CHECKING:
    from calque.pipeline import Checkup, LinkRun


# ----------------------------------------------------------------------------------------------- link


@verb(app, "link", ENCODING, WRITING)
def link_command(
    job: Job,
    paths: Annotated[list[str], typer.Argument(help="One bitext, or two line-aligned files; hf:NAME.")],
    languages: Annotated[
        tuple[str, str], typer.Option(metavar="<source> <target>", help="For example: en de")
    ],
    out: Out,
    linker: Annotated[
        str, choice("linker", "Statistical models, or ways to link by the similarities of --encoder")
    ] = "eflomal",
    symmetrise: Annotated[
        str, choice("symmetrise", "How links of both directions are joined")
    ] = "intersection",
    iterations: Annotated[
        int | None, typer.Option(help="Training iterations of a statistical linker.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="Of softmax links.")] = 0.001,
    subwords: Annotated[bool, typer.Option("--subwords", help="Link the encoder's own pieces.")] = False,
    links: Annotated[
        str | None, typer.Option(metavar="<file>", help="Links made elsewhere, in Pharaoh format.")
    ] = None,
    one_based: Annotated[bool, typer.Option("--one-based", help="Pharaoh files count from 1.")] = False,
    trained: Annotated[
        str | None, typer.Option(metavar="<folder>", help="Folder of a kept linker to apply.")
    ] = None,
    keep_linker: Annotated[bool, typer.Option("--keep-linker", help="Keep the trained linker.")] = False,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="<filter>",
            help="one-to-one, different, score>=X, sample=N, sentences=N; applied in the order given.",
        ),
    ] = None,
    dev: Annotated[int, typer.Option(help="Pairs before the test pairs, held out.")] = 0,
    test: Annotated[int, typer.Option(help="Last pairs, held out.")] = 0,
    gold: Annotated[str | None, typer.Option(metavar="<file>", help="Gold links to score against.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Also write text and links as plain files.")] = False,
    format: Annotated[
        str | None, choice("format", "Layout, by default guessed (triple has |||)", panel=READING)
    ] = None,
    tokenised: Tokenised = False,
    max_words: Annotated[
        int, typer.Option(help="Drop pairs with a longer side.", rich_help_panel=READING)
    ] = 100,
    max_ratio: Annotated[
        float, typer.Option(help="Drop pairs with sides this unequal; 0 keeps all.", rich_help_panel=READING)
    ] = 9.0,
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Keep repeated pairs.", rich_help_panel=READING)
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="Read this many pairs at most.", rich_help_panel=READING)
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="<name>", help="Encoder for similarity links and --subwords.", rich_help_panel=ENCODER
        ),
    ] = None,
    layer: Annotated[
        str,
        typer.Option(metavar="<layer>", help="Its layer for similarity links.", rich_help_panel=ENCODER),
    ] = "-5",
    show: Annotated[
        int, typer.Option(help="Draw the links of this many sentences.", rich_help_panel=RUNNING)
    ] = 0,
) -> None:
    """Link the words of a bitext; writes train/ dev/ test/."""
    from calque.pipeline import link

    with job.showing():
        run = link(
            paths,
            languages,
            **job.how,
            **job.settings("paths", "languages"),
        )
    job.tell(_link_record(run), *_link_tables(run, show))


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


def _shrink(given: str) -> str:
    """A number from 0 to 1, or `auto`; an option cannot be declared as either."""
    try:
        fits = given == "auto" or 0 <= float(given) <= 1
    except ValueError:
        fits = False
    if not fits:
        raise BadSetting(f"--shrink {given}", remedy="a number between 0 and 1, or auto")
    return given


@verb(app, "align", ENCODING, WRITING)
def align_command(
    job: Job,
    encoder: EncoderName,
    out: Out,
    pairs: Annotated[
        list[str] | None,
        typer.Option(metavar="<folder>", help="Folder of links; several languages: give it again."),
    ] = None,
    method: Annotated[str, choice("method", "How languages are brought together")] = "centred-rotation",
    layers: Layers = "last",
    supervision: Annotated[str, choice("supervision", "What is paired")] = "words",
    dictionary: Annotated[
        list[str] | None,
        typer.Option(metavar="<file>", help="Dictionary in MUSE format, one for each --pairs."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<code>=<file>",
            help="Text of a language to take means of words over, in place of that of --pairs.",
        ),
    ] = None,
    refine: Annotated[
        int, typer.Option(help="Learn again so often, from words that find each other; linear methods.")
    ] = 0,
    refine_words: Annotated[
        int, typer.Option(help="Most frequent words to refine by.", rich_help_panel=METHODS)
    ] = 20_000,
    moves: Annotated[str, choice("moves", "Which side moves into the other's space")] = "target",
    shrink: Annotated[
        str,
        typer.Option(
            metavar="<number>|auto",
            callback=_shrink,
            help="Towards the identity: 0 not at all, 1 wholly, auto as cross-validation finds best.",
        ),
    ] = "0",
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="<name>", help="A paper's settings by name (cao2020, wu2020-weak …) or a TOML file."
        ),
    ] = None,
    components: Annotated[int, typer.Option(help="Of top-components.", rich_help_panel=METHODS)] = 3,
    rounds: Annotated[int, typer.Option(help="Of iterative-normalisation.", rich_help_panel=METHODS)] = 5,
    beta: Annotated[float, typer.Option(help="Of orthogonal-gradient.", rich_help_panel=METHODS)] = 0.01,
    epochs: Annotated[int, training("Passes over the links")] = 1,
    steps: Annotated[int | None, training("Steps, in place of passes")] = None,
    batch: Annotated[int | None, training("Sentence pairs of each language at a time")] = None,
    batch_of: Annotated[str, choice("batch_of", "Whose pairs those are", panel=TRAINING)] = "language",
    batch_tokens: Annotated[int | None, training("Pieces at a time, in place of pairs")] = None,
    max_pairs: Annotated[int | None, training("Sentence pairs of each language to draw")] = None,
    learning_rate: Annotated[float | None, training("The highest learning rate")] = None,
    warmup: Annotated[float, training("Share of the steps to get there, or their number")] = 0.1,
    schedule: Annotated[str, choice("schedule", "What follows", panel=TRAINING)] = "linear",
    clip: Annotated[float, training("Most length of a gradient")] = 1.0,
    accumulate: Annotated[int, training("Batches a step")] = 1,
    betas: Annotated[tuple[float, float], training("Of AdamW")] = (0.9, 0.999),
    epsilon: Annotated[float, training("Of AdamW")] = 1e-8,
    weight_decay: Annotated[float, training("Of AdamW")] = 0.0,
    dropout: Annotated[bool, training("Drop out as the encoder was trained")] = True,
    precision: Annotated[
        str, choice("precision", "Of the forward pass, on a GPU", panel=TRAINING)
    ] = "float32",
    regulariser: Annotated[
        str | None,
        choice("regulariser", "What stays near the original; by loss unless given", panel=TRAINING),
    ] = None,
    hidden_weight: Annotated[float, training("Weight of that for hidden states")] = 1.0,
    hidden_words: Annotated[str, choice("hidden_words", "Whose hidden states", panel=TRAINING)] = "all",
    parameter_weight: Annotated[float, training("Weight of that for parameters")] = 1.0,
    parameter_form: Annotated[str, choice("parameter_form", "Its form", panel=TRAINING)] = "squared",
    pulled_to: Annotated[
        str, choice("pulled_to", "What the moving side is pulled to", panel=TRAINING)
    ] = "trained",
    power: Annotated[int, training("Of l2: 2 for squared distances, 1 for distances")] = 2,
    reduction: Annotated[str, choice("reduction", "Of l2, over links", panel=TRAINING)] = "mean",
    temperature: Annotated[float, training("Of weak and strong")] = 0.1,
    head: Annotated[int, training("Width of the head of weak and strong, dropped after; 0 for none")] = 128,
    queue: Annotated[int, training("Past links that serve weak and strong as negatives")] = 0,
    mask_same: Annotated[bool, training("The same word elsewhere is no negative")] = True,
    freeze_embeddings: Annotated[bool, training("Hold the embeddings", "--freeze-embeddings")] = False,
    freeze_layers: Annotated[int, training("Hold so many lower layers")] = 0,
    lora: Annotated[int, training("Rank of adapters to train in place of the weights; 0 for none")] = 0,
    lora_alpha: Annotated[float, training("Scale of adapters")] = 16,
    trim_vocabulary: Annotated[
        bool | None,
        training(
            "Train only pieces in use; by default where only time changes by it",
            "--trim-vocabulary/--whole-vocabulary",
        ),
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<folder>",
            help="Folder of links to choose the best weights by; may be given again.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    evaluate_every: Annotated[int, training("Steps between such scores")] = 100,
    max_unrelated: Annotated[float, training("Stop when unrelated words are this alike")] = 0.97,
    resume: Annotated[bool, training("Go on with a training that was stopped", "--resume")] = False,
    processes: Annotated[int | None, training("How many torchrun started; refused when not so")] = None,
    save_every: Annotated[int, training("Steps between checkpoints")] = 200,
    tensorboard: Annotated[bool, training("Write TensorBoard records", "--tensorboard")] = False,
    languages: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="<source> <target>",
            help="Of a dictionary whose name does not tell them, or of identical words.",
            rich_help_panel=READING,
        ),
    ] = None,
    tokenised: Tokenised = False,
    max_vocab: Annotated[
        int | None, typer.Option(help="First words of static vectors, this many.", rich_help_panel=READING)
    ] = None,
    pooling: PoolingName = None,
) -> None:
    """Align an encoder by linked words: by linear maps, or by training it (l2, weak, strong)."""
    from calque.pipeline import align

    with job.showing():
        aligned = align(encoder, pairs or (), **job.how, **job.typed("encoder", "pairs"))
    about = aligned.about
    told = [
        f"{languages}: " + ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
        for languages, counts in about["coverage"].items()
    ]
    told += [_refined(code, held) for code, layers in about.get("refined", {}).items() for held in layers]
    names = [name for name in ("method", "layers", "coverage", "refined") if name in about]
    record = {"folder": out} | {name: about[name] for name in names}
    headline = f"{about['method']} at layers {', '.join(map(str, about['layers']))}"
    job.tell(record, headline, *told)


def _refined(language: str, held: dict[str, Any]) -> str:
    """How the refinement of one language's map at one layer went."""
    pairs, cosine = held["pairs"], held["cosine"]
    return (
        f"{language}, layer {held['layer']}, refined {len(pairs) - 1} times: "
        f"{pairs[0]:,} to {pairs[-1]:,} words find each other, "
        f"mean cosine with what they find {cosine[0]:.3f} to {max(cosine):.3f}"
    )


# --------------------------------------------------------------------------------------------- report


@app.command("report", cls=Verb)
def report_command(
    folder: Annotated[Path, typer.Argument(help="A run, or a folder of runs.")],
    tables: Annotated[
        str | None, choice("tables", "In place of the page, every table as Markdown, LaTeX or CSV")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="<name>", help="Of these only that of this name; may be given again."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="<file>", help="Write the tables to a file; they are printed else.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write one self-contained HTML page for a run or for all runs in a folder, and print its path."""
    from calque.pipeline.reporting import report, report_tables

    if tables is None:
        if table or out is not None:
            raise BadSetting("--table and --out are for tables", remedy="add --tables md, tex or csv")
        page = report(folder)
        tell(quiet, as_json, {"page": page}, str(page))
        return
    text = report_tables(folder, tables, only=table or (), out=out)
    if out is None and not quiet and not as_json:
        print(text, end="")
    else:
        tell(quiet, as_json, {"form": tables, "file": out, "text": text}, f"written: {out}")


# --------------------------------------------------------------------------------------------- encode


@verb(app, "encode", ENCODING, WRITING)
def encode_command(
    job: Job,
    text: Annotated[Path, typer.Argument(help="A text, one sentence a line.")],
    encoder: EncoderName,
    language: Annotated[str, typer.Option(metavar="<code>", help="Language of the text.")],
    out: Out,
    unit: Annotated[str, choice("unit", "A vector for each of")] = "words",
    layers: Layers = "last",
    tokenised: Tokenised = False,
    limit: Annotated[
        int | None, typer.Option(help="Read this many lines at most.", rich_help_panel=READING)
    ] = None,
    pooling: PoolingName = None,
) -> None:
    """Vectors of the words or sentences of a text, as .npy files."""
    from calque.pipeline import encode

    with job.showing():
        vectors = encode(
            encoder,
            text,
            language,
            **job.how,
            **job.settings("encoder", "text", "language"),
        )
    shapes = {f"layer-{layer}.npy": vectors.layer(layer).shape for layer in vectors.layers}
    told = [f"{name}: {rows:,} × {width}" for name, (rows, width) in shapes.items()]
    lost = ", ".join(f"{reason} {count:,}" for reason, count in vectors.dropped.items() if count)
    record = {"folder": out, "shapes": shapes, "dropped": vectors.dropped}
    job.tell(record, *told, *([f"no vector: {lost}"] if lost else []))


# --------------------------------------------------------------------------------------- world, demo


@verb(app, "world", WRITING)
def world_command(
    job: Job,
    out: Out,
    count: Annotated[int, typer.Option(help="Sentences of the bitext.")] = 5000,
    width: Annotated[int, typer.Option(help="Of the count vectors.")] = 100,
    tasks: Annotated[
        int | None,
        typer.Option(
            metavar="<items>",
            help="Write files for transfer too: this many items a task to train on, a quarter to test.",
        ),
    ] = None,
) -> None:
    """Write an invented universe: parallel text in three languages, gold links, treebanks, count vectors."""
    from calque.pipeline import world

    with job.showing():
        folder = world(**job.how, **job.settings())
    job.tell({"folder": folder})


@app.command("demo", cls=Verb)
def demo_command(
    out: Annotated[Path, typer.Option(metavar="<folder>", help="Folder to write.")] = Path("runs/demo"),
    world: Annotated[
        bool,
        typer.Option("--world", help="On an invented language and count vectors; needs no optional package."),
    ] = False,
    device: DeviceName = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
    seed: Seed = 0,
) -> None:
    """The whole flow on a few real languages, offline: link, align, measure, page."""
    from calque.pipeline import demo
    from calque.report.collect import collect
    from calque.report.tables import summary_table, verdict_line
    from calque.store import load_results, result_line

    def step(line: str) -> None:
        tell(quiet or as_json, False, {}, f"$ {line}" if line.startswith("calque ") else line)

    with shown(not quiet and not as_json):
        page = demo(out, world=world, seed=seed, device=device, tell=step)
    if quiet:
        return
    held, results = collect(page.parent), load_results(page.parent / "results.jsonl")
    record = {
        "page": page,
        "verdict": verdict_line(held),
        "results": [json.loads(result_line(result)) for result in results],
    }
    tell(quiet, as_json, record, summary_table(held), verdict_line(held), f"page: {page}")


# ---------------------------------------------------------------------------------------------- cache


@cache_app.command("ls", cls=Verb)
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
    tell(False, as_json, record, *([table] if entries else []), end)


@cache_app.command("prune", cls=Verb)
def cache_prune(
    to: Annotated[float, typer.Option(help="Gigabytes to keep at most; 0 empties the cache.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Remove the least recently used entries."""
    removed = Cache().prune(bytes_of(to, "--to"))
    size = sum(entry.size for entry in removed)
    record = {"removed": len(removed), "bytes": size}
    tell(False, as_json, record, f"removed {len(removed)} entries, {size / 1e6:,.1f} MB")


# --------------------------------------------------------------------------------------------- doctor


@app.command("doctor", cls=Verb)
def doctor_command(as_json: AsJson = False) -> None:
    """What is installed, what this machine can do, and what stands in the way."""
    from calque.pipeline import doctor

    found = doctor()
    told = [f"problem: {one.what}\n  remedy: {one.remedy}" for one in found.problems]
    tell(False, as_json, asdict(found), _checkup_table(found), *(told or ["no problems found"]))


def _checkup_table(found: Checkup) -> Table:
    table = Table("", "", box=None, show_header=False)
    machine, cache = found.machine, found.cache
    memory = "" if machine.memory is None else f", {machine.memory / 1e9:,.0f} GB of memory"
    here = [one.name for one in found.extras if not one.lacking]
    table.add_row(
        "versions", ", ".join(f"{name} {given or 'missing'}" for name, given in found.versions.items())
    )
    table.add_row("extras", ", ".join(here) or "none")
    for one in found.extras:
        if one.install:
            table.add_row("", f"not {one.name}: {escape(one.install)}")
    table.add_row("system", f"{machine.system}{memory}")
    table.add_row(
        "device",
        f"{machine.device} ({machine.device_name}), {machine.threads} of {machine.processors} processors",
    )
    for trial in found.precisions:
        table.add_row(trial.dtype, f"not safe: {trial.fault}" if trial.fault else "safe")
    limit = "" if cache.limit is None else f", vectors up to {cache.limit / 1e9:,.1f} GB"
    table.add_row(
        "cache", f"{cache.folder}: {cache.size / 1e9:,.1f} GB{limit}; {cache.free / 1e9:,.0f} GB free"
    )
    for name, there in cache.unpacked.items():
        table.add_row(name, "unpacked" if there else "not unpacked yet: done on first use")
    return table
