"""Studies: a matrix of encoders, methods, tasks, languages and seeds, and one page about it."""

from calque.study.checking import check_study
from calque.study.recipe import StudyRecipe, load_study, recipe_text
from calque.study.running import StudyRun, plan_study, prune_study, study

__all__ = [
    "StudyRecipe",
    "StudyRun",
    "check_study",
    "load_study",
    "plan_study",
    "prune_study",
    "recipe_text",
    "study",
]
