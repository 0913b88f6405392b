"""`calque check`: every mistake in a study's recipe, before any model is opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calque.errors import BadInput, CalqueError
from calque.study.plan import Plan, make_plan
from calque.study.recipe import LoadedStudy, Mistakes, StudyRecipe, load_study
from calque.study.verbs import check_settings

#: Where cells would lie: what they make is not there yet.
_SOMEWHERE = Path("study")


def check_study(given: str | Path, changes: Sequence[str] = ()) -> Plan:
    """The plan of a study without mistakes; otherwise all of them, as one error.

    Data that is not there yet is no mistake: the plan names it.
    """
    return _checked(load_study(given, changes))


def ready(study: LoadedStudy) -> Plan:
    """The plan of a study that can be run: without mistakes, and its data is there."""
    plan = _checked(study)
    if plan.missing:
        folder = study.base / study.recipe.data
        told = f"{len(plan.missing)} files of the study are not there: {', '.join(plan.missing)}"
        raise BadInput(
            told, where=folder, remedy="put them there, --set data=FOLDER, or --smoke to try it out"
        )
    return plan


def _checked(study: LoadedStudy) -> Plan:
    plan = make_plan(study)
    found = [*plan.mistakes, *_refused(plan, study.recipe)]
    if found:
        raise Mistakes(list(dict.fromkeys(found)), study.origin)
    return plan


def _refused(plan: Plan, recipe: StudyRecipe) -> list[str]:
    """Settings that a verb would refuse; those of comparisons even where there is nothing to compare."""
    given = [(cell.where, cell.verb, cell.resolved(_SOMEWHERE)) for cell in plan.cells.values()]
    given.append(("compare", "compare", {**recipe.compare, "runs": []}))
    found = []
    for where, verb, settings in given:
        try:
            check_settings(verb, settings)
        except (CalqueError, TypeError) as error:
            found.append(f"{where}: {error}")
    return found
