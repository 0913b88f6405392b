"""The cells that learn tasks, and those that compare what came of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calque.pipeline.transfersettings import TransferRecipe
from calque.study.matrix import Group, Matrix, languages_of
from calque.study.variants import Variant

#: What differs between runs of a task with different seeds; and where alignments do as well.
VARIES = "the head's first weights, the order of batches, dropout"
ALIGNED_TOO = "alignment where it is trained or sampled, "

#: Files by language.
Files = Mapping[str, str]


def add_tasks(matrix: Matrix, group: Group) -> None:
    """Every task with every seed, and the comparisons of a group."""
    runs: dict[int, list[str]] = {}
    seen: list[str] = []
    for name, held in matrix.recipe.transfer.tasks.items():
        kind = str(held.get("task", name))
        # Two tables of one task cannot be told apart in one comparison.
        number = seen.count(kind)
        seen.append(kind)
        own = [one for seed in matrix.recipe.seeds for one in _task(matrix, name, held, group, seed)]
        runs.setdefault(number, []).extend(one for one in own if not matrix.dead(one))
    for number, found in runs.items():
        more = f" {number + 1}" if number else ""
        _compare(matrix, group, found, group.baseline, f"{group.encoder}{more}")
        for base, others in _contrasts(matrix, group).items():
            chosen = [one for one in found if matrix.cell(one).settings["label"] in (base, *others)]
            title = f"{group.encoder} against {base}{more}"
            _compare(matrix, group, chosen, base, title, against=base)


def _contrasts(matrix: Matrix, group: Group) -> dict[str, list[str]]:
    """Methods that others are compared with beside the baseline, with these others, by label."""
    found: dict[str, list[str]] = {}
    variants = matrix.aligning(group.encoder)
    for one in variants:
        for other in variants:
            if other.name == one.against and one.beside(other):
                base = matrix.label(group.encoder, other)
                found.setdefault(base, []).append(matrix.label(group.encoder, one))
    return found


def _compare(
    matrix: Matrix, group: Group, runs: Sequence[str], baseline: str, title: str, **axes: str
) -> None:
    labels = {matrix.cell(one).settings["label"] for one in runs}
    if len(labels) < 2 or baseline not in labels:
        return
    aligned = any(one.varies for one in matrix.aligning(group.encoder))
    settings = {
        **matrix.recipe.compare,
        "runs": list(runs),
        "baseline": baseline,
        "pool": True,
        "varies": f"{ALIGNED_TOO if aligned else ''}{VARIES}",
    }
    matrix.add("compare", title, settings, "compare", encoder=group.encoder, **axes)


def _task(matrix: Matrix, name: str, held: Mapping[str, Any], group: Group, seed: int) -> Iterator[str]:
    """The runs of a task with one seed, the baseline's first."""
    where, together = f"transfer.{name}", matrix.recipe.align.together
    given = {"keep_models": "none", **matrix.recipe.transfer.shared, **held}
    given.pop("translated", None)
    data: dict[str, Files] = {
        part: _labelled(matrix, given.pop(part, {}), f"{where}.{part}") for part in ("train", "dev", "test")
    }
    mixed = given.pop("mixed", [])
    data["mixed"] = {str(one): matrix.inputs.spec(str(one), f"{where}.mixed") for one in mixed}
    given = matrix.inputs.located(TransferRecipe, given, where)
    kind = given.pop("task", name)
    for encoder, variant in matrix.rows(group):
        label = matrix.label(encoder, variant)
        for codes, files in _parts(matrix, variant, data):
            settings = {
                **given,
                "task": kind,
                "encoder": matrix.encoder(encoder, variant, seed, codes),
                "label": label,
                "seeds": [seed],
                **{part: dict(own) for part, own in files.items() if part != "mixed"},
            }
            if files["mixed"]:
                settings["mixed"] = list(files["mixed"].values())
            if variant is not None:
                settings |= _beside(matrix, variant, codes)
            alone = f" {codes[0]}" if len(codes) == 1 and not together else ""
            axes = {"encoder": encoder, "method": label, "task": name, "seed": seed}
            yield matrix.add("transfer", f"{name}: {label}{alone}, seed {seed}", settings, where, **axes)


def _labelled(matrix: Matrix, given: object, where: str) -> dict[str, str]:
    if not isinstance(given, Mapping):
        matrix.inputs.mistakes.append(f"{where}: a file for each language: {where}.de = FILE")
        return {}
    return {str(code): matrix.inputs.file(path, f"{where}.{code}") for code, path in given.items()}


def _parts(
    matrix: Matrix, variant: Variant | None, data: Mapping[str, Files]
) -> Iterator[tuple[list[str], dict[str, Files]]]:
    """Languages that an encoder is aligned to, with the data that it can read.

    Where each has an encoder of its own, so it has in a task. One that is not aligned is trained once for
    all, unless dev data of a language that is tested choose among epochs.
    """
    whole = matrix.recipe.align.together or (variant is None and set(data["dev"]) <= set(data["train"]))
    each = [matrix.aligned] if whole else [[code] for code in matrix.spoken(variant)]
    if variant is None and not whole:
        each = [*each, []]

    def wanted(part: str, spec: str, codes: Sequence[str]) -> bool:
        if part == "train" or (part == "dev" and spec in data["train"]):
            return True
        return matrix.readable(variant, spec) and (whole or _about(matrix, spec, codes))

    for codes in each:
        found: dict[str, Files] = {
            part: {spec: path for spec, path in files.items() if wanted(part, spec, codes)}
            for part, files in data.items()
        }
        if found["test"] or found["mixed"]:
            yield codes, found


def _about(matrix: Matrix, spec: str, codes: Sequence[str]) -> bool:
    """Whether data are in one of these languages, or, if there are none, in none that is aligned."""
    spoken = languages_of(spec)
    return not spoken.isdisjoint(codes) if codes else spoken.isdisjoint(matrix.aligned)


def _beside(matrix: Matrix, variant: Variant, codes: Sequence[str]) -> dict[str, Any]:
    """Settings of the task that belong to a method: alignment that goes on while it is learned."""
    settings = dict(variant.task)
    if settings.get("continual") is True:
        spoken = [code for code in matrix.spoken(variant) if code in codes]
        settings["continual"] = [matrix.linked(code) for code in spoken]
    return settings
