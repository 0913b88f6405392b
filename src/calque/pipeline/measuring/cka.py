"""`calque measure cka`: how alike languages and encoders are, layer by layer, over sentences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from calque.encoders.cached import CachedEncoder
from calque.encoders.untrained import untrained
from calque.measure.cka import CkaOptions, cka
from calque.measure.scoring import Measurement
from calque.pipeline.measuring.common import (
    Many,
    MeasureRun,
    each,
    measured,
    meeting,
    save_measurements,
)
from calque.pipeline.measuring.parallel import Parallel, ParallelRecipe
from calque.pipeline.runs import Running
from calque.types import Bitext, Encoder


class CkaRecipe(ParallelRecipe):
    """Settings of `calque measure cka`.

    `floor` reads the target side with random weights too, drawn by `seed`, where an encoder has an
    architecture. `same_layer` leaves out layer by layer, which is most of the work.
    """

    verb: ClassVar[str] = "measure cka"

    same_layer: bool = False
    floor: bool = True

    def measuring(self) -> CkaOptions:
        return CkaOptions(
            pooling=self.pooling, same_layer=self.same_layer, rounds=self.rounds, seed=self.seed
        )


def measure_cka(
    encoders: Many,
    pairs: Many = (),
    *,
    text: Many = (),
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> MeasureRun:
    """CKA of every encoder's languages and between encoders; settings as in `CkaRecipe`."""
    recipe = CkaRecipe.of(encoders, pairs, text=tuple(each(text)), **settings)
    held = Parallel.load(recipe, device)
    recipe, opened = held.recipe, held.encoders

    def write(run: Running) -> None:
        parts: list[Measurement] = []
        floors, done = _floors(recipe, opened), set[str]()
        for one in held.bitexts:
            with run.stage("-".join(one.languages)):
                parts.append(_measure(recipe, opened, floors, one, done))
            done |= set(one.languages)
        save_measurements(run.folder, parts)

    return measured(recipe, out, write, overwrite=overwrite)


def _measure(
    recipe: CkaRecipe,
    opened: Mapping[str, Encoder],
    floors: Mapping[str, Encoder],
    bitext: Bitext,
    done: set[str],
) -> Measurement:
    """One bitext; encoders are compared in the languages that were not done before."""
    met = meeting(opened, bitext.languages)
    return cka(
        met,
        bitext,
        recipe.chosen_layers(met),
        floors=floors,
        between=set(bitext.languages) - done,
        options=recipe.measuring(),
        recipe=recipe.digest(),
    )


def _floors(recipe: CkaRecipe, opened: Mapping[str, Encoder]) -> dict[str, Encoder]:
    """A random twin of every encoder that can have one, but one only of those that are built alike."""
    floors: dict[str, Encoder] = {}
    for label, one in opened.items() if recipe.floor else ():
        twin = untrained(one, recipe.seed)
        if twin is not None and all(twin.fingerprint != other.fingerprint for other in floors.values()):
            floors[label] = CachedEncoder(twin)
    return floors
