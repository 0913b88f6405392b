"""The cells that measure: every measure of a study in every language, of all that can read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calque.study.matrix import Group, Matrix, Row
from calque.study.recipe import MEASURES

#: Measures on linked words; the others can read parallel text.
ON_LINKS = ("words", "distances", "projection", "examples")
#: What others may read in place of linked words, a file for each language.
OWN = {"sentences": "text", "cka": "text", "lexicon": "dictionary"}


def add_measures(matrix: Matrix, group: Group) -> None:
    """The measures of a group: one cell for all its encoders, so that they answer the same questions."""
    recipe = matrix.recipe
    for name, held in recipe.measure.items():
        settings = dict(held)
        kind = str(settings.pop("measure", name))
        if kind not in MEASURES:
            continue
        done: set[tuple[str, ...]] = set()
        where, spoken = f"measure.{name}", _measured_in(matrix, kind, settings)
        if not spoken:
            matrix.inputs.mistakes.append(f"{where}: {_nothing(kind)}")
        for seed in recipe.seeds:
            for codes, rows in _sets(matrix, group, spoken):
                found = _opened(matrix, rows, codes, seed)
                if (known := (*codes, *found.values())) in done:
                    continue
                done.add(known)
                given = {**settings, "encoders": list(found.values()), "labels": list(found), "seed": seed}
                given |= _read(matrix, kind, settings, codes, where)
                title = f"{name} {' '.join(codes)}, {group.encoder}, seed {seed}"
                axes = {"encoder": group.encoder, "measure": name, "seed": seed}
                matrix.add(f"measure {kind}", title, given, where, **axes)


def _measured_in(matrix: Matrix, kind: str, settings: Mapping[str, Any]) -> list[str]:
    """The languages that a measure is taken in."""
    own = settings.get(OWN.get(kind, ""))
    if isinstance(own, Mapping):
        return [code for code in own if code != matrix.recipe.source]
    return (matrix.recipe.scored or matrix.recipe.links).languages


def _nothing(kind: str) -> str:
    """That there is nothing to measure on, and what to give."""
    if kind == "lexicon":
        return "no dictionary (give a file for each language: dictionary.de = FILE)"
    return "nothing to measure on (give links.test = 500, or [scored])"


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
    text = settings.get("text")
    if kind == "lexicon":
        return _words(matrix, settings, codes, where)
    if isinstance(text, Mapping) and kind not in ON_LINKS:
        return {"text": [_parallel(matrix, text[code], code, where) for code in codes]}
    learned = [code for code in codes if not matrix.keeps(code)]
    matrix.inputs.mistakes += [f"{where}: {_learned(matrix, code)}" for code in learned]
    return {"pairs": [matrix.scored(code) for code in codes]}


def _learned(matrix: Matrix, code: str) -> str:
    """That all words of a language are learned from, and what to give."""
    if code not in matrix.recipe.links.pairs:
        return _nothing("words")
    what = f"all of links.pairs.{code} is learned from"
    return f"{what} (give scored.pairs.{code}, or the folder that `calque link --test 500` wrote)"


def _words(matrix: Matrix, settings: Mapping[str, Any], codes: Sequence[str], where: str) -> dict[str, Any]:
    """Dictionaries, and text that their words occur in."""
    given, text, file = settings.get("dictionary"), settings.get("text"), matrix.inputs.file
    if not isinstance(given, Mapping):
        matrix.inputs.mistakes.append(f"{where}: {_nothing('lexicon')}")
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
