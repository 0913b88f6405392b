"""The six tasks: one declaration each."""

from __future__ import annotations

from collections.abc import Mapping

from calque.errors import BadSetting
from calque.recipe import suggestion
from calque.transfer.task import Task
from calque.transfer.tasks.pairs import PairTask
from calque.transfer.tasks.parsing import ParsingTask
from calque.transfer.tasks.questions import QuestionTask
from calque.transfer.tasks.tagging import TaggingTask

TASKS: Mapping[str, Task] = {
    "nli": PairTask(),
    "ner": TaggingTask("ner"),
    "slots": TaggingTask("slots"),
    "pos": TaggingTask("pos", bio=False),
    "parsing": ParsingTask(),
    "qa": QuestionTask(),
}


def task_named(name: str) -> Task:
    """A task by name, or an error that lists them."""
    if name not in TASKS:
        raise BadSetting(f"unknown task {name!r}", remedy=suggestion(name, TASKS))
    return TASKS[name]
