"""Names in a study that no part of it knows, and those that two things share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from calque.encoders.specs import is_by_language
from calque.errors import BadSetting, CalqueError
from calque.recipe import suggestion
from calque.report.published import check_paper
from calque.study.cells import each_text, is_reference
from calque.study.matrix import languages_of
from calque.study.recipe import MEASURES, StudyRecipe
from calque.study.variants import METHODS, SETTINGS, Variant
from calque.text.languages import check_language

#: Settings of verbs that a study sets itself, and what to give in their place.
_SEEDS, _ENCODERS = "give seeds at the top", "give [encoders]"
_NAMES = "give names in [encoders] and align.methods"
BY_THE_STUDY: Mapping[str, Mapping[str, str]] = {
    "link": {"paths": "give text.CODE", "languages": "give source, and text.CODE"},
    "align": {"encoder": "give [encoders], and align.encoders for some of them", "pairs": "give [links]"},
    "measure": {"encoders": _ENCODERS, "labels": _NAMES, "pairs": "give [scored]", "seed": _SEEDS},
    "transfer": {"encoder": _ENCODERS, "model": _ENCODERS, "label": _NAMES, "seed": _SEEDS, "seeds": _SEEDS},
    "compare": {
        "runs": "give [transfer]",
        "baseline": "give against in the table of a method",
        "pool": "leave it out: seeds are always pooled",
        "varies": "leave it out",
    },
}


#: Settings of alignments that a person can give.
OWN_SETTINGS = SETTINGS - BY_THE_STUDY["align"].keys() - {"method", "inputs"}


def mistakes_in_names(
    recipe: StudyRecipe, variants: Sequence[Variant], labels: Sequence[str]
) -> Iterator[str]:
    """Every mistake, a line each; `labels` are what encoders and aligned encoders are called."""
    yield from _set_by_the_study(recipe)
    yield from _in_links(recipe)
    yield from _in_align(recipe)
    yield from _in_axes(recipe)
    yield from _in_variants(recipe, variants)
    yield from _in_tasks(recipe)
    if recipe.paper is not None:
        yield from _refused("paper", recipe.paper, check_paper)
    for where, code in _languages(recipe):
        yield from _refused(where, code, _as_written)
    for name, spec in recipe.encoders.items():
        yield from _no_encoder(f"encoders.{name}", spec)
    for name, held in recipe.measure.items():
        kind = str(held.get("measure", name))
        if kind not in MEASURES:
            yield _unknown(f"measure.{name}", kind, MEASURES, "unknown measure")
    for seed in _twice(recipe.seeds):
        yield f"seeds: {seed} stands twice among {list(recipe.seeds)}"
    for label in _twice(labels):
        yield f"two encoders would be called {label!r} (give methods and encoders different names)"


def _in_links(recipe: StudyRecipe) -> Iterator[str]:
    for where, part in recipe.linked.items():
        for code in part.links:
            if code not in part.text:
                what = f"no {where}.text.{code} that it links"
                yield _unknown(f"{where}.links.{code}", code, part.text, what)


def _in_align(recipe: StudyRecipe) -> Iterator[str]:
    align = recipe.align
    for code in align.dictionary:
        if code not in recipe.links.languages:
            yield _unknown(f"align.dictionary.{code}", code, recipe.links.languages, f"no links of {code}")
    for name in align.shared:
        if name not in SETTINGS:
            yield _unknown(f"align.{name}", name, [*OWN_SETTINGS, *type(align).model_fields])
    for name in align.idle:
        # Methods may be left out for now, but hardly under a name that is so like one that is there.
        if not _may_be_method(name, align.own(name)) or get_close_matches(name, align.methods, 1, 0.8):
            yield _unknown(f"align.{name}", name, align.methods, "a table of no method")
    if "" in align.methods:
        yield f"align.methods: one has no name among {list(align.methods)}"
    if "method" in align.shared:
        yield "align.method: is for a method's own table; did you mean methods?"
    for name in align.encoders:
        if name not in recipe.encoders:
            yield _unknown("align.encoders", name, recipe.encoders, f"unknown encoder {name}")
    if align.methods and not recipe.links.languages:
        yield "links: nothing to align by (give links.text.de = FILE, or links.pairs)"


def _may_be_method(name: str, held: Mapping[str, Any]) -> bool:
    return name in METHODS or not {"method", "preset", "transfer"}.isdisjoint(held)


def _in_axes(recipe: StudyRecipe) -> Iterator[str]:
    align = recipe.align
    tables = {"align.vary": align.vary}
    tables |= {f"align.{name}.vary": align.own(name).get("vary", {}) for name in align.methods}
    for where, axes in tables.items():
        for axis, values in axes.items():
            if axis in ("method", "preset"):
                yield f"{where}.{axis}: is no axis (give each a name in align.methods)"
            elif axis not in SETTINGS:
                yield _unknown(f"{where}.{axis}", axis, OWN_SETTINGS)
            if not values:
                yield f"{where}.{axis}: no values (give one or more, or leave it out)"
    if align.vary and not align.methods:
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


def _in_tasks(recipe: StudyRecipe) -> Iterator[str]:
    tasks = recipe.transfer.tasks
    for name in () if tasks else recipe.transfer.shared:
        yield f"transfer.{name}: a setting of no task (give one a table, such as [transfer.ner])"
    for name, held in tasks.items():
        if not (held.get("test") or held.get("mixed")):
            yield f"transfer.{name}: nothing to test on (give transfer.{name}.test.de = FILE)"


def _languages(recipe: StudyRecipe) -> Iterator[tuple[str, str]]:
    """Where languages are named, and which."""
    yield "source", recipe.source
    tables: dict[str, Iterable[str]] = {"align.dictionary": recipe.align.dictionary}
    tables |= {f"encoders.{name}": _by_language(spec) for name, spec in recipe.encoders.items()}
    for where, part in recipe.linked.items():
        tables |= {f"{where}.text": part.text, f"{where}.links": part.links, f"{where}.pairs": part.pairs}
    for name, held in recipe.measure.items():
        tables |= {f"measure.{name}.{part}": held.get(part) or {} for part in ("text", "dictionary")}
    for name, held in recipe.transfer.tasks.items():
        tables |= {f"transfer.{name}.{part}": held.get(part, {}) for part in ("train", "dev", "test")}
        for spec in held.get("mixed", ()):
            yield from ((f"transfer.{name}.mixed", code) for code in sorted(languages_of(spec)))
    for where, codes in tables.items():
        yield from ((f"{where}.{named}", code) for named in codes for code in sorted(languages_of(named)))


def _as_written(code: str) -> str:
    """A language by its usual code: one by another would not be taken for the same."""
    usual = check_language(code)
    if usual != code:
        raise BadSetting(f"language {code!r}", remedy=f"write {usual}")
    return usual


def _no_encoder(where: str, spec: object) -> Iterator[str]:
    if spec in ("", {}):
        yield f"{where}: is empty (give a name, a folder, or settings of calque pretrain)"


def _by_language(spec: str | Mapping[str, Any]) -> list[str]:
    """The languages that have an encoder of their own."""
    if isinstance(spec, str):
        return sorted(languages_of(spec)) if is_by_language(spec) else []
    return [code for code, one in spec.items() if isinstance(one, Mapping)]


def _refused(where: str, name: str, check: Callable[[str], str]) -> Iterator[str]:
    """What a check says of a name, if it refuses it."""
    try:
        check(name)
    except CalqueError as error:
        yield f"{where}: {error}"


def _set_by_the_study(recipe: StudyRecipe) -> Iterator[str]:
    """Settings of verbs that would be taken and do nothing."""
    for where, verb, held in _of_verbs(recipe):
        made = {**BY_THE_STUDY[verb], "inputs": "leave it out: files are known by what they hold"}
        for name in filter(made.__contains__, held):
            yield f"{where}.{name}: the study sets this itself ({made[name]})"


def _of_verbs(recipe: StudyRecipe) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Every table with settings of a verb: where it stands, whose they are, and what it holds."""
    align, transfer = recipe.align, recipe.transfer
    yield from ((where, "link", part.settings) for where, part in recipe.linked.items())
    yield "align", "align", {name: one for name, one in align.settings.items() if name not in align.methods}
    yield "align.vary", "align", align.vary
    for name in align.methods:
        own = align.own(name)
        yield f"align.{name}", "align", own
        yield f"align.{name}.vary", "align", own.get("vary", {})
        yield f"align.{name}.transfer", "transfer", own.get("transfer", {})
    yield from ((f"measure.{name}", "measure", held) for name, held in recipe.measure.items())
    yield "transfer", "transfer", transfer.shared
    yield from ((f"transfer.{name}", "transfer", held) for name, held in transfer.tasks.items())
    yield "compare", "compare", recipe.compare


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
    names = sorted(map(str, known))
    return f"{where}: {what}" + (f"; {suggestion(name, names)}" if names else "")


def _twice(names: Sequence[Any]) -> list[Any]:
    return [name for name, count in Counter(names).items() if count > 1]
