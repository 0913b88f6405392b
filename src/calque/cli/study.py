"""`calque study` and `calque check`: a whole matrix from one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from calque.cli.common import AsJson, DeviceName, Quiet, app, tell
from calque.cli.help import RUNNING, Verb

if TYPE_CHECKING:
    from calque.study import StudyRun
    from calque.study.running import Planned

RecipeFile = Annotated[
    str, typer.Argument(metavar="<recipe>", help="A TOML file, or a study of calque's own by name.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="<key>=<value>", help="Change a setting: align.methods=centring,weak"),
]
Smoke = Annotated[
    bool,
    typer.Option(
        "--smoke", help="Try it out in small: files of the invented universe, tiny encoders, a few steps."
    ),
]


@app.command("study", cls=Verb)
def study_command(
    recipe: RecipeFile,
    out: Annotated[
        Path | None, typer.Option(metavar="<folder>", help="Folder of the study; runs/NAME by default.")
    ] = None,
    changes: Changes = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the cells, what stands, and about how long it takes.")
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Compute nothing: remove cells that no setting names any more; --dry-run lists them.",
        ),
    ] = False,
    smoke: Smoke = False,
    workers: Annotated[
        str,
        typer.Option(
            metavar="<n>|ray", help="Cells at once: serial, a number, or ray.", rich_help_panel=RUNNING
        ),
    ] = "serial",
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of each cell.", rich_help_panel=RUNNING)
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="<host:port>", help="Of a Ray cluster.", rich_help_panel=RUNNING),
    ] = None,
    gpus: Annotated[
        float, typer.Option(min=0, help="GPUs of each cell on Ray.", rich_help_panel=RUNNING)
    ] = 0,
    device: DeviceName = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a study: align every encoder by every method, measure, transfer, compare, and write one page.

    Nothing is computed twice: run it again to go on, or after a change to compute what depends on it.
    """
    from calque.study import study
    from calque.study.workers import check_workers

    check_workers(workers, address, gpus)
    asked: dict[str, Any] = {"given": recipe, "out": out, "changes": changes or (), "smoke": smoke}
    if prune:
        tell(quiet, as_json, *_pruned(asked, dry_run))
        return
    if dry_run:
        tell(quiet, as_json, *_planned(asked, workers))
        return
    how: dict[str, Any] = {"workers": workers, "threads": threads, "address": address, "gpus": gpus}
    run = study(**asked, **how, device=device, show=not quiet and not as_json)
    tell(quiet, as_json, _record(run), *_lines(run))
    if run.failed:
        if quiet:
            typer.echo("\n".join(_failures(run)), err=True)
        raise typer.Exit(1)


def _pruned(asked: Mapping[str, Any], dry_run: bool) -> Iterator[Any]:
    """Remove cells that no setting names any more, or list them: a record, then lines."""
    from calque.study import prune_study

    left = prune_study(**asked, dry_run=dry_run)
    size = sum(one.size for one in left)
    yield {"removed": not dry_run, "bytes": size, "cells": [asdict(one) for one in left]}
    yield from (f"{one.key}  {one.size / 1e6:,.1f} MB" for one in left)
    told = "would be removed" if dry_run else "removed"
    yield f"{len(left)} cells of earlier settings {told}, {size / 1e6:,.1f} MB"


@app.command("check", cls=Verb)
def check_command(
    recipe: RecipeFile,
    changes: Changes = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print the recipe, to copy and change, in place of a summary.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say every mistake in a study's recipe, before any model is opened."""
    from calque.study import check_study, recipe_text
    from calque.study.recipe import Mistakes

    try:
        plan = check_study(recipe, changes or ())
    except Mistakes as error:
        tell(quiet, as_json, {"mistakes": error.found})
        raise
    if show:
        print(recipe_text(recipe, changes or ()), end="")
        return
    counts = Counter(cell.verb for cell in plan.cells.values())
    told = ", ".join(f"{count} {verb}" for verb, count in counts.items())
    lines = [f"no mistakes; {len(plan.cells)} cells: {told}"]
    if plan.missing:
        lines.append(f"{len(plan.missing)} files of its data folder are not there yet:")
        lines += [f"  {name}" for name in plan.missing]
    tell(quiet, as_json, {"cells": dict(counts), "missing": list(plan.missing)}, *lines)


def _planned(asked: Mapping[str, Any], workers: str) -> Iterator[Any]:
    """What would be computed, and about how long it takes: a record, then a table and a line."""
    from calque.study import plan_study

    planned = plan_study(**asked)
    left = _left(planned, workers)
    yield {"cells": [_planned_cell(key, planned) for key in planned.plan.cells], "left": left}
    yield _plan_table(planned)
    told = f"{len(planned.plan.cells)} cells, {len(planned.standing)} of them there already"
    yield told + (f"; {left['cells']} to compute: {_estimate(left)}" if left["cells"] else "")


def _planned_cell(key: str, planned: Planned) -> dict[str, Any]:
    cell = planned.plan.cells[key]
    return {
        "key": key,
        "verb": cell.verb,
        "title": cell.title,
        "axes": dict(cell.axes),
        "standing": key in planned.standing,
        "seconds": planned.seconds[key],
    }


def _plan_table(planned: Planned) -> Table:
    from calque.progress import duration

    table = Table("verb", "cell", "", "about", box=None)
    for key, cell in planned.plan.cells.items():
        seconds = planned.seconds[key]
        about = "" if seconds is None else duration(seconds)
        stands = "stands" if key in planned.standing else ""
        table.add_row(cell.verb, Text(cell.title), stands, about)
    return table


def _left(planned: Planned, workers: str) -> dict[str, Any]:
    """What is to compute: seconds of cells one after the other, and by the workers, where it is known."""
    from calque.study.board import elapsed
    from calque.study.workers import worker_count

    left = [key for key in planned.plan.cells if key not in planned.standing]
    known = {key: seconds for key in left if (seconds := planned.seconds[key]) is not None}
    found: dict[str, Any] = {"cells": len(left), "unknown": len(left) - len(known)}
    found["seconds"] = sum(known.values()) if known else None
    if known and (count := worker_count(workers)) > 1:
        found |= {"workers": count, "elapsed": elapsed(planned.plan.cells, known, count)}
    return found


def _estimate(left: Mapping[str, Any]) -> str:
    from calque.progress import duration

    if left["seconds"] is None:
        return "no cell like them has been run"
    told = f"about {duration(left['seconds'])} one after the other"
    if "workers" in left:
        told += f", {duration(left['elapsed'])} with {left['workers']} workers"
    return told + (f", and {left['unknown']} of a kind not run yet" if left["unknown"] else "")


def _record(run: StudyRun) -> dict[str, Any]:
    return {
        "folder": str(run.folder),
        "done": len(run.done),
        "computed": list(run.computed),
        "failed": dict(run.failed),
        "left out": list(run.left_out),
        "page": str(run.page) if run.page else None,
    }


def _failures(run: StudyRun) -> Iterator[str]:
    from calque.report.study.reading import read_study

    for cell in read_study(run.folder).cells:
        if cell.key in run.failed:
            yield f"failed: {cell.verb} {cell.title} ({cell.key}): {run.failed[cell.key]}"


def _lines(run: StudyRun) -> Iterator[str]:
    from calque.report.study.reading import read_study
    from calque.report.study.told import finding_lines
    from calque.study.workers import FAILURES

    study = read_study(run.folder)
    lost = {"failed": len(run.failed), "left out": len(run.left_out)}
    parts = [f"{count} {word}" for word, count in lost.items() if count]
    done = f"{len(study.cells)} cells: {len(run.done)} done, {len(run.computed)} of them now"
    yield ", ".join([done, *parts])
    yield from finding_lines(study) if run.page else ()
    yield from _failures(run)
    if run.failed:
        left = f"; {len(run.left_out)} cells rest on them" if run.left_out else ""
        yield f"more in {run.folder / FAILURES}{left}; run it again to try these once more"
    if run.page:
        yield f"page: {run.page}"
