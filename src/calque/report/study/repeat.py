"""How a study is run again: the command, and what it must be read with."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from calque.report.study.reading import StudyFolder
from calque.report.words import listed


@dataclass(frozen=True)
class Repeating:
    """A command to be typed in the folder that holds the study's."""

    command: str
    notes: tuple[str, ...]


def repeating(study: StudyFolder) -> Repeating:
    """The command that goes on with a study, or makes it again where its cells are gone."""
    # A name that begins like an option would be taken for one.
    name = f"./{study.name}" if study.name.startswith("-") else study.name
    parts = [f"calque study {shlex.quote(f'{name}/recipe.toml')}", f"--out {shlex.quote(name)}"]
    threads = threads_of(study)
    if len(threads) == 1:
        parts.append(f"--threads {threads[0]}")
    notes = [
        "To be typed in the folder that holds this one. Cells that are there are not computed again; with "
        "another --out all of them are."
    ]
    if study.base is not None:
        where = "this folder" if study.base == "." else f"{study.base}, seen from this folder"
        notes.append(f"Relative paths of the recipe begin at {where}.")
    if len(threads) > 1:
        many = listed([str(one) for one in threads])
        notes.append(
            f"Its cells were computed with {many} threads: it was continued with another number of them, and "
            "what is computed with one may differ in its last digits from what is computed with another."
        )
    return Repeating(" ".join(parts), tuple(notes))


def threads_of(study: StudyFolder) -> list[int]:
    """The numbers of threads that cells were computed with, where that is told."""
    told = study.environment.get("threads")
    listed_ones = told if isinstance(told, list) else [told]
    return [one for one in listed_ones if isinstance(one, int) and not isinstance(one, bool) and one > 0]
