"""The one door to labelled files: a task, a file and a language."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from calque.errors import BadSetting
from calque.recipe import suggestion
from calque.text.labelled.items import Labelled
from calque.text.labelled.pairs import NLI, read_nli
from calque.text.labelled.questions import QA, read_qa
from calque.text.labelled.reading import TaskFiles
from calque.text.labelled.tags import NER, POS, SLOTS, read_ner, read_pos, read_slots
from calque.text.labelled.trees import PARSING, read_parsing

#: The reader of each task.
READERS: dict[str, Callable[..., Labelled[Any]]] = {
    "nli": read_nli,
    "ner": read_ner,
    "slots": read_slots,
    "pos": read_pos,
    "parsing": read_parsing,
    "qa": read_qa,
}

_FILES: tuple[TaskFiles[Any], ...] = (NLI, NER, SLOTS, POS, PARSING, QA)
#: The names of each task's formats.
FORMATS: dict[str, tuple[str, ...]] = {files.task: tuple(files.formats) for files in _FILES}


def read_labelled(
    task: str,
    spec: str | Path,
    language: str,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    limit: int | None = None,
    subtypes: bool = False,
    context_language: str | None = None,
) -> Labelled[Any]:
    """Items of a task from a file, a folder or a dataset by name (`hf:NAME[:CONFIG][:SPLIT]`).

    `format` is one of `FORMATS[task]`, told from the content when None. A bad item is an error, or dropped
    and counted with `skip_bad`; `limit` takes the first items only. `subtypes` keeps whole relations
    (parsing); `context_language` is that of the paragraphs where it is not that of the questions (qa).
    """
    if task not in READERS:
        raise BadSetting(f"unknown task {task!r}", remedy=suggestion(task, READERS))
    options: dict[str, Any] = {"subtypes": subtypes} if subtypes else {}
    options |= {"context_language": context_language} if context_language is not None else {}
    for name, owner in (("subtypes", "parsing"), ("context_language", "qa")):
        if name in options and task != owner:
            raise BadSetting(f"{name.replace('_', ' ')} of a file for {task}", remedy=f"it is for {owner}")
    return READERS[task](spec, language, format=format, skip_bad=skip_bad, limit=limit, **options)
