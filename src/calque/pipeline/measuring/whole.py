"""`calque measure all`: every measure one after the other, each a run of its own, for one page."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from pydantic import Field

from calque.errors import BadInput, BadSetting, CalqueError
from calque.files import FINISHED
from calque.pipeline.measuring.cka import measure_cka
from calque.pipeline.measuring.common import Many, MeasureRecipe, MeasureRun, each, load_any_pairs
from calque.pipeline.measuring.distances import measure_distances
from calque.pipeline.measuring.lexicon import measure_lexicon
from calque.pipeline.measuring.projection import measure_projection
from calque.pipeline.measuring.sentences import measure_sentences
from calque.pipeline.measuring.words import measure_words
from calque.pipeline.runs import input_digests

#: Is told what became of each measure, in one line.
Tell: TypeAlias = Callable[[str], None]

#: Settings that all measures have.
SHARED = frozenset({"labels", "revision", "prefix", "max_length", "dtype", "rounds", "limit", "seed"})


class WholeRecipe(MeasureRecipe):
    """Settings of `calque measure all`, which are those of its measures.

    `layers` are those of every measure but the projection, which is of the last; `pooling` is that of words.
    """

    verb: ClassVar[str] = "measure all"

    dictionary: list[str] = Field(default_factory=list)
    include_seen: bool = False


@dataclass(frozen=True)
class WholeRun:
    """The runs of all measures by name, and why others could not be done."""

    folder: Path
    runs: Mapping[str, MeasureRun] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


def measure_all(
    encoders: Many,
    pairs: Many,
    *,
    dictionary: Many = (),
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    tell: Tell = lambda line: None,
    **settings: object,
) -> WholeRun:
    """Every measure of these encoders on these pairs, each in a folder of its name; what is done stands.

    A measure that cannot be done does not keep the others from it.
    """
    recipe = WholeRecipe.of(encoders, pairs, dictionary=each(dictionary), **settings)
    folder = Path(out)
    if (folder / FINISHED).is_file():
        raise BadSetting("holds a run of its own", where=folder, remedy="choose another --out")
    for path in recipe.pairs:
        load_any_pairs(Path(path), recipe.limit)
    input_digests(recipe.dictionary)  # all of them are there
    held = recipe.opened(device)  # so that every measure finds them in use, and none reads them again
    recipe.chosen_layers(held)
    runs: dict[str, MeasureRun] = {}
    failed: dict[str, str] = {}
    steps = _steps(recipe)
    for number, (name, measure) in enumerate(steps.items(), 1):
        began, standing = time.perf_counter(), (folder / name / FINISHED).is_file() and not overwrite
        try:
            runs[name] = measure(out=folder / name, overwrite=overwrite, device=device)
            told = "already there" if standing else f"done in {time.perf_counter() - began:.0f} s"
        except CalqueError as error:
            failed[name] = str(error)
            told = f"not done: {error}"
        tell(f"{number} of {len(steps)}: {name} {told}")
    del held
    if not runs:
        with suppress(OSError):
            folder.rmdir()
        raise BadInput("; ".join(f"{name}: {why}" for name, why in failed.items()), where=folder)
    return WholeRun(folder, runs, failed)


def _steps(recipe: WholeRecipe) -> dict[str, Callable[..., MeasureRun]]:
    """Every measure that these settings ask for, by the name of its folder."""
    shared = recipe.model_dump(include=set(SHARED), exclude_none=True)
    by_layer = {**shared, "layers": recipe.layers}
    of_words = {} if recipe.pooling is None else {"pooling": recipe.pooling}
    given, pairs = recipe.encoders, recipe.pairs
    seen = {"include_seen": recipe.include_seen}

    def step(measure: Callable[..., MeasureRun], *args: object, **fixed: Any) -> Callable[..., MeasureRun]:
        return lambda **more: measure(given, *args, **fixed, **more)

    lexicon = step(measure_lexicon, recipe.dictionary, pairs=pairs, **by_layer, **of_words, **seen)
    return {
        "words": step(measure_words, pairs, **by_layer, **of_words, **seen),
        **({"lexicon": lexicon} if recipe.dictionary else {}),
        "sentences": step(measure_sentences, pairs, **by_layer, **seen),
        "cka": step(measure_cka, pairs, **by_layer),
        "distances": step(measure_distances, pairs, **by_layer, **of_words),
        "projection": step(measure_projection, pairs, **shared, **of_words),
    }
