"""A study's matrix as cells: which are there, what each reads, and which of them belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calque.study.cells import Cell
from calque.study.matrix import Group, Matrix, words_of
from calque.study.measures import add_measures
from calque.study.names import mistakes_in_names, reserved_names
from calque.study.recipe import LoadedStudy
from calque.study.tasks import add_tasks


@dataclass(frozen=True)
class Plan:
    """All cells in an order in which they can be computed, and how the page tells of them.

    `missing` are files of the data folder that are not there yet.
    """

    cells: Mapping[str, Cell]
    groups: Sequence[Group]
    methods: Mapping[str, Mapping[str, Any]]
    tasks: Mapping[str, Mapping[str, Any]]
    mistakes: Sequence[str]
    missing: Sequence[str] = ()


def make_plan(study: LoadedStudy, broken: frozenset[str] = frozenset()) -> Plan:
    """The matrix of a study. What rests on `broken` cells is left out of measures and comparisons."""
    recipe = study.recipe
    if reserved := list(reserved_names(recipe)):
        return Plan({}, (), {}, {}, reserved)
    matrix = Matrix(study, broken)
    groups = matrix.groups()
    for group in groups:
        _add_encoders(matrix, group)
        add_measures(matrix, group)
        add_tasks(matrix, group)
    matrix.look_for_files()
    methods = {
        matrix.label(name, one): {"encoder": name, "method": one.name, "axes": words_of(one.axes)}
        for name in recipe.encoders
        for one in matrix.aligning(name)
    }
    labels = [label for group in groups for label in (group.baseline, *group.methods)]
    mistakes = [*mistakes_in_names(recipe, matrix.variants, labels), *matrix.inputs.mistakes]
    tasks = {name: {"translated": one.get("translated")} for name, one in recipe.transfer.tasks.items()}
    return Plan(
        matrix.cells,
        groups,
        methods,
        tasks,
        list(dict.fromkeys(mistakes)),
        list(dict.fromkeys(matrix.inputs.missing)),
    )


def _add_encoders(matrix: Matrix, group: Group) -> None:
    for seed in matrix.recipe.seeds:
        for encoder, variant in matrix.rows(group):
            for codes in matrix.joined(matrix.spoken(variant)) or [[]]:
                matrix.encoder(encoder, variant, seed, codes)
