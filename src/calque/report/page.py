"""One self-contained HTML page about a run: the verdict first, then everything that supports it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calque.files import write_text
from calque.report.collect import Run, collect, place_of
from calque.report.measures import measure_view
from calque.report.rendering import html_page
from calque.report.run_shown import RunView, run_view
from calque.report.shown import Limits
from calque.report.study.page import render_study
from calque.report.study.reading import is_study, read_study
from calque.report.tasks import TASKS
from calque.report.transfer import PREFIX
from calque.report.verdict import measured

PAGE = "report.html"
#: A page that can be sent by mail.
MOST_BYTES = 2_000_000


def write_page(folder: Path) -> Path:
    """Write the page into a run folder, a folder of runs or that of a study, from what lies there."""
    path = folder / PAGE
    write_text(path, render_study(read_study(folder)) if is_study(folder) else render(collect(folder)))
    return path


def render(run: Run) -> str:
    """The page as text. Where it would be too large, fewer examples and points are shown."""
    runs = sorted(run.runs, key=_rank)
    held = [(part, measured(part)) for part in runs]
    measures = [tuple(map(measure_view, found)) for _, found in held]
    limits = Limits().shared(runs)
    while True:
        views = [
            run_view(part, f"run{place}", limits, found, own)
            for place, ((part, found), own) in enumerate(zip(held, measures, strict=True))
        ]
        text = _rendered(run, views)
        if len(text.encode()) < MOST_BYTES or limits == limits.halved():
            return text
        limits = limits.halved()


def _rendered(run: Run, views: Sequence[RunView]) -> str:
    title = f"{len(views)} runs in {run.name}" if run.parts else views[0].title
    return html_page("page.html.j2", title=title, views=views, many=bool(run.parts), made_from="run")


def _rank(run: Run) -> tuple[object, ...]:
    """Runs by what they measured, as the measures are listed; then those that left pictures, then others."""
    tasks = [*(panel.task for panel in run.panels), *(one.task for one in run.trained)]
    tasks += [PREFIX + name for name in run.comparison.names] if run.comparison else []
    return (
        place_of(tasks[0] if tasks else "", list(TASKS)),
        run.comparison is None,
        not run.pictures,
        run.name,
    )
