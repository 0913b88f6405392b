"""Names in a study that no part of it knows, and those that two things share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from calque.errors import CalqueError
from calque.recipe import suggestion
from calque.study.cells import each_text, is_reference
from calque.study.recipe import MEASURES, LinksPart, StudyRecipe
from calque.study.variants import SETTINGS, Variant
from calque.text.languages import check_language


def mistakes_in_names(
    recipe: StudyRecipe, variants: Sequence[Variant], labels: Sequence[str]
) -> Iterator[str]:
    """Every mistake, a line each; `labels` are what encoders and aligned encoders are called."""
    yield from _in_align(recipe)
    yield from _in_axes(recipe)
    yield from _in_variants(recipe, variants)
    yield from _in_languages(recipe)
    for name, held in recipe.measure.items():
        kind = str(held.get("measure", name))
        if kind not in MEASURES:
            yield _unknown(f"measure.{name}", kind, MEASURES, "unknown measure")
    for seed in _twice(recipe.seeds):
        yield f"seeds: {seed} stands twice among {list(recipe.seeds)}"
    for label in _twice(labels):
        yield f"two encoders would be called {label!r} (give methods and encoders different names)"


def _in_align(recipe: StudyRecipe) -> Iterator[str]:
    align = recipe.align
    for name in align.shared:
        if name not in SETTINGS:
            yield _unknown(f"align.{name}", name, [*SETTINGS, *type(align).model_fields])
    for name in align.idle:
        # Methods may be left out for now, but hardly under a name so like one that is there.
        if get_close_matches(name, align.methods, 1, 0.8):
            yield _unknown(f"align.{name}", name, align.methods, "a table of no method")
    if "method" in align.shared:
        yield "align.method: is for a method's own table; did you mean methods?"
    for name in align.encoders:
        if name not in recipe.encoders:
            yield _unknown("align.encoders", name, recipe.encoders, f"unknown encoder {name}")
    if align.methods and not recipe.links.languages:
        yield "links: nothing to align by (give links.text.de = FILE, or links.pairs)"


def _in_axes(recipe: StudyRecipe) -> Iterator[str]:
    vary = recipe.align.vary
    for axis, values in vary.items():
        if axis not in SETTINGS:
            yield _unknown(f"align.vary.{axis}", axis, SETTINGS)
        if not values:
            yield f"align.vary.{axis}: no values (give one or more, or leave it out)"
    if vary and not recipe.align.methods:
        yield "align.vary: nothing to vary (give align.methods)"


def _in_variants(recipe: StudyRecipe, variants: Sequence[Variant]) -> Iterator[str]:
    names = dict.fromkeys(one.name for one in variants)
    for one in variants:
        for code in set(one.to or ()) - set(recipe.links.languages):
            yield _unknown(f"{one.where}.to", code, recipe.links.languages, f"no links of {code}")
        if one.against is None:
            continue
        if one.against not in names or one.against == one.name:
            others = [name for name in names if name != one.name]
            yield _unknown(f"{one.where}.against", one.against, others, f"no other method {one.against}")
        elif (count := sum(other.name == one.against and one.beside(other) for other in variants)) != 1:
            yield f"{one.where}.against: {one.label} stands beside {count} of {one.against} (vary both alike)"


def _in_languages(recipe: StudyRecipe) -> Iterator[str]:
    scored = recipe.scored or LinksPart()
    named = {"links.text": recipe.links.languages, "scored.text": scored.languages, "source": [recipe.source]}
    for where, codes in named.items():
        for code in codes:
            try:
                check_language(code)
            except CalqueError as error:
                yield f"{where}: {error}"


def reserved_names(recipe: StudyRecipe) -> Iterator[str]:
    """Names that mean what only calque may say: nothing is planned with such."""
    found: list[str] = []

    def look(text: str) -> str:
        if is_reference(text):
            found.append(text)
        return text

    for where, held in recipe.model_dump().items():
        found.clear()
        each_text(held, look)
        yield from (
            f"{where}: {text}: cell:// and file:// are not for recipes; give a path" for text in found
        )


def _unknown(where: str, name: str, known: Iterable[Any], what: str = "unknown setting") -> str:
    return f"{where}: {what}; {suggestion(name, sorted(map(str, known)))}"


def _twice(names: Sequence[Any]) -> list[Any]:
    return [name for name, count in Counter(names).items() if count > 1]
