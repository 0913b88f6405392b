"""What the verbs have in common: the groups they belong to, options, printing."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

import calque
from calque.cli.help import ENCODER, READING, RUNNING, Verb, Verbs, choice, screen
from calque.files import FINISHED
from calque.progress import shown

#: Options that say how to run and print, not what to compute.
OUTWARD = frozenset({"out", "overwrite", "quiet", "as_json", "device", "show"})
HOW = ("out", "overwrite", "device")
_USUAL = ("DEFAULT", "DEFAULT_MAP")
KEYWORD = inspect.Parameter.KEYWORD_ONLY

app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=(calque.__doc__ or "").split("\n")[0],
)
measure_app = typer.Typer(
    cls=Verbs, no_args_is_help=True, help="Measure how well languages meet in encoders."
)
cache_app = typer.Typer(
    cls=Verbs, no_args_is_help=True, help="The cache of vectors: what is in it, and making room."
)
app.add_typer(measure_app, name="measure")
app.add_typer(cache_app, name="cache")

Out = Annotated[
    Path, typer.Option(metavar="<folder>", help="Folder to write; it appears whole or not at all.")
]
Layers = Annotated[
    str,
    typer.Option(
        metavar="<layers>", help="all, last, last4, 8, 0,4,8 or 8-12; 0 is the embeddings, -1 the last."
    ),
]
Tokenised = Annotated[
    bool,
    typer.Option("--tokenised", help="Words are separated by spaces already.", rich_help_panel=READING),
]
EncoderName = Annotated[
    str,
    typer.Option(
        "--encoder",
        metavar="<name>",
        help="Hub name, directory, e5-small-q4, en=a.vec,de=b.vec, or encoders by language: en=A,de=B.",
    ),
]
Encoders = Annotated[
    list[str],
    typer.Option("--encoder", metavar="<name>", help="Encoders to compare; the first is the baseline."),
]
Pairs = Annotated[
    list[str], typer.Option(metavar="<folder>", help="Folder of links to score; may be given again.")
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", metavar="<name>", help="A name for each encoder.")
]
Rounds = Annotated[int, typer.Option(help="Of the bootstrap.")]
Limit = Annotated[int | None, typer.Option(help="Score the first sentences only, this many.")]
SimilarityName = Annotated[str, choice("similarity", "How near two vectors are", "--similarity")]
PoolingName = Annotated[
    str | None,
    choice("pooling", "Subwords of a word, by default as trained or mean", "--pooling", panel=ENCODER),
]
Revision = Annotated[
    str | None, typer.Option(metavar="<name>", help="Revision of a hub model.", rich_help_panel=ENCODER)
]
Prefix = Annotated[
    str | None,
    typer.Option(
        metavar="<text>", help="Text before every input, such as 'query: ' for E5.", rich_help_panel=ENCODER
    ),
]
MaxLength = Annotated[int, typer.Option(help="Longest input, in pieces.", rich_help_panel=ENCODER)]
DeviceName = Annotated[str, choice("device", "Where encoders run", "--device", panel=ENCODER)]
DtypeName = Annotated[str, choice("dtype", "Precision on a GPU", "--dtype", panel=ENCODER)]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace a run of another recipe.", rich_help_panel=RUNNING),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=RUNNING)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.", rich_help_panel=RUNNING)]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", rich_help_panel=RUNNING)]

#: Options by name: how each is declared, and its usual value.
Family: TypeAlias = Mapping[str, tuple[Any, Any]]
Command: TypeAlias = Callable[..., None]
#: What every verb that reads text with an encoder has.
ENCODING: Family = {
    "revision": (Revision, None),
    "prefix": (Prefix, None),
    "max_length": (MaxLength, 512),
    "device": (DeviceName, "auto"),
    "dtype": (DtypeName, "float32"),
}
#: What every verb that writes a folder has.
WRITING: Family = {
    "overwrite": (Overwrite, False),
    "quiet": (Quiet, False),
    "as_json": (AsJson, False),
    "seed": (Seed, 0),
}


def complain(message: str) -> None:
    """Tell what went wrong, on the error stream, in a way that takes no memory to speak of."""
    print(f"calque: {message}", file=sys.stderr)


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


class Standing:
    """Whether a run stood finished in a folder before a verb was called."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.before = self._when()

    def _when(self) -> int | None:
        marker = self.out / FINISHED
        return marker.stat().st_mtime_ns if marker.is_file() else None

    def __str__(self) -> str:
        return f"{'already there' if self.before == self._when() else 'written'}: {self.out}"


class Job:
    """One call of a verb: its settings, how it is to run, and how it prints."""

    def __init__(self, context: typer.Context) -> None:
        self.context, self.standing = context, Standing(context.params["out"])
        self.quiet, self.as_json = (bool(context.params[name]) for name in ("quiet", "as_json"))

    @property
    def how(self) -> dict[str, Any]:
        """Where to write, and how to run."""
        return {name: self.context.params[name] for name in HOW if name in self.context.params}

    def settings(self, *not_settings: str) -> dict[str, Any]:
        """The options that belong to a recipe; their names are the recipe's."""
        left_out = OUTWARD | set(not_settings)
        held = {name: value for name, value in self.context.params.items() if name not in left_out}
        return {name: value for name, value in held.items() if value not in (None, [], ())}

    def typed(self, *not_settings: str) -> dict[str, Any]:
        """Those that were typed: others are left to a preset, or to what is usual."""
        sources = {name: self.context.get_parameter_source(name) for name in self.context.params}
        usual = {name for name, source in sources.items() if getattr(source, "name", "") in _USUAL}
        held = self.settings(*not_settings)
        return {name: value for name, value in held.items() if name not in usual}

    def showing(self) -> AbstractContextManager[None]:
        """Progress is shown, unless nobody or a program reads."""
        return shown(not self.quiet and not self.as_json)

    def tell(self, record: dict[str, Any], *parts: Any) -> None:
        """Print a record for programs, or for a person its parts and where the run stands."""
        tell(self.quiet, self.as_json, record, *parts, str(self.standing))


def verb(group: typer.Typer, name: str, *families: Family) -> Callable[[Callable[..., None]], Command]:
    """A command of a group that has the options of these families too, which it finds in its `Job`.

    Typer reads options off a signature: the families' are added to it, and the job is made of its context.
    """

    def made(function: Callable[..., None]) -> Command:
        own = dict(inspect.signature(function, eval_str=True).parameters)
        del own["job"]
        more = {key: one for family in families for key, one in family.items()}
        context = inspect.Parameter("context", KEYWORD, annotation=typer.Context)
        added = [
            inspect.Parameter(key, KEYWORD, default=one[1], annotation=one[0]) for key, one in more.items()
        ]

        def command(context: typer.Context, **given: Any) -> None:
            function(Job(context), **{key: given[key] for key in own})

        command.__doc__ = function.__doc__
        asked = [context, *(one.replace(kind=KEYWORD) for one in own.values()), *added]
        command.__signature__ = inspect.Signature(asked)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in asked}
        return group.command(name, cls=Verb)(command)

    return made


def tell(quiet: bool, as_json: bool, record: dict[str, Any], *parts: Any) -> None:
    """Print a record for programs, or its parts for a person."""
    if as_json:
        narrow = "utf" not in (getattr(sys.stdout, "encoding", None) or "").lower()
        print(json.dumps(record, ensure_ascii=narrow, indent=2, default=str))
    elif not quiet:
        for part in parts:
            if isinstance(part, str):
                screen.print(part, markup=False, highlight=False, soft_wrap=True)
            else:
                screen.print(part)
