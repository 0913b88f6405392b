"""The cells that measure: every measure of a study in every language, of all that can read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calque.study.matrix import Group, Matrix, Row
from calque.study.recipe import MEASURES

#: Measures on linked words; the others can read parallel text.
ON_LINKS = ("words", "distances", "projection", "examples")


def add_measures(matrix: Matrix, group: Group) -> None:
    """The measures of a group: one cell for all its encoders, so that they answer the same questions."""
    recipe = matrix.recipe
    for name, held in recipe.measure.items():
        settings = dict(held)
        kind = str(settings.pop("measure", name))
        if kind not in MEASURES:
            continue
        done: set[tuple[str, ...]] = set()
        for seed in recipe.seeds:
            for codes, rows in _sets(matrix, group, _measured_in(matrix, kind, settings)):
                found = _opened(matrix, rows, codes, seed)
                if (known := (*codes, *found.values())) in done:
                    continue
                done.add(known)
                where = f"measure.{name}"
                given = {**settings, "encoders": list(found.values()), "labels": list(found), "seed": seed}
                given |= _read(matrix, kind, settings, codes, where)
                title = f"{name} {' '.join(codes)}, {group.encoder}, seed {seed}"
                axes = {"encoder": group.encoder, "measure": name, "seed": seed}
                matrix.add(f"measure {kind}", title, given, where, **axes)


def _measured_in(matrix: Matrix, kind: str, settings: Mapping[str, Any]) -> list[str]:
    """The languages that a measure is taken in."""
    own = settings.get("text") if kind in ("sentences", "cka") else settings.get("dictionary")
    if isinstance(own, Mapping):
        return [code for code in own if code != matrix.recipe.source]
    return (matrix.recipe.scored or matrix.recipe.links).languages


def _sets(matrix: Matrix, group: Group, codes: Sequence[str]) -> Iterator[tuple[list[str], list[Row]]]:
    """Languages with all that can read them: those without a map only what needs none."""
    rows = matrix.rows(group)
    able: dict[tuple[int, ...], list[str]] = {}
    for code in codes:
        readers = tuple(i for i, (_, variant) in enumerate(rows) if matrix.readable(variant, code))
        able.setdefault(readers, []).append(code)
    for readers, some in able.items():
        able_rows = [rows[i] for i in readers]
        for part in matrix.joined([code for code in some if code in matrix.aligned]):
            yield part, able_rows
        if other := [code for code in some if code not in matrix.aligned]:
            yield other, able_rows


def _opened(matrix: Matrix, rows: Sequence[Row], codes: Sequence[str], seed: int) -> dict[str, str]:
    """Encoders by label, without those that only a task changes, the baseline first.

    What rests on something broken is left out. Where the baseline does, all stay, and the cell with them is
    left out as a whole: figures would be told against another, as though it were the baseline.
    """
    together = matrix.recipe.align.together
    joint = matrix.aligned if together else [code for code in codes if code in matrix.aligned]
    found = {
        matrix.label(name, variant): matrix.encoder(name, variant, seed, joint)
        for name, variant in rows
        if variant is None or variant.method is not None
    }
    alive = {label: reference for label, reference in found.items() if not matrix.dead(reference)}
    return alive if next(iter(found)) in alive else found


def _read(
    matrix: Matrix, kind: str, settings: Mapping[str, Any], codes: Sequence[str], where: str
) -> dict[str, Any]:
    """What a measure reads, in these languages."""
    text, links, scored = settings.get("text"), matrix.recipe.links, matrix.recipe.scored
    if kind == "lexicon":
        return _words(matrix, settings, codes, where)
    if isinstance(text, Mapping) and kind not in ON_LINKS:
        return {"text": [_parallel(matrix, text[code], code, where) for code in codes]}
    if scored is not None:
        return {"pairs": [matrix.pairs(scored, "scored", code, "train") for code in codes]}
    if not links.settings.get("test") and links.text:
        matrix.inputs.mistakes.append(f"{where}: nothing to measure on (give links.test = 500, or [scored])")
    return {"pairs": [matrix.pairs(links, "links", code, "test") for code in codes]}


def _words(matrix: Matrix, settings: Mapping[str, Any], codes: Sequence[str], where: str) -> dict[str, Any]:
    """Dictionaries, and text that their words occur in."""
    given, text, file = settings.get("dictionary"), settings.get("text"), matrix.inputs.file
    if not isinstance(given, Mapping):
        matrix.inputs.mistakes.append(f"{where}.dictionary: a file for each language: dictionary.de = FILE")
        return {}
    each = [given[code] for code in codes]
    files = [path for one in each for path in ([one] if isinstance(one, str) else one)]
    found = {"dictionary": [file(path, f"{where}.dictionary") for path in files]}
    if isinstance(text, Mapping):
        own = {code: path for code, path in text.items() if code in (*codes, matrix.recipe.source)}
        found["text"] = [f"{code}={file(path, where)}" for code, path in own.items()]
    return found


def _parallel(matrix: Matrix, given: str | Sequence[str], code: str, where: str) -> str:
    """A bitext, or two files that belong together line by line."""
    source, file = matrix.recipe.source, matrix.inputs.file
    if isinstance(given, str):
        return f"{source},{code}={file(given, where)}"
    first, second = (file(path, where) for path in given)
    return f"{source}={first},{code}={second}"
