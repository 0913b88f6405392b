"""`calque measure distances`: how far linked words lie from each other, beside words that are unrelated."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from calque.measure.distances import Distance, DistanceOptions, distances
from calque.pipeline.measuring.common import (
    Many,
    MeasureRecipe,
    MeasureRun,
    common_pooling,
    load_any_pairs,
    measured,
    meeting,
    save_measurements,
)
from calque.pipeline.runs import Running
from calque.types import Pooling


class DistancesRecipe(MeasureRecipe):
    """Settings of `calque measure distances`.

    `scaled` divides the distances of histograms by the mean of unrelated words, encoder by encoder; `seed`
    draws the unrelated words.
    """

    verb: ClassVar[str] = "measure distances"

    distance: Distance = Distance.L2
    scaled: bool = False

    def measuring(self, pooling: Pooling) -> DistanceOptions:
        return DistanceOptions(
            distance=self.distance, scaled=self.scaled, pooling=pooling, rounds=self.rounds, seed=self.seed
        )


def measure_distances(
    encoders: Many,
    pairs: Many,
    *,
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> MeasureRun:
    """Distances of every encoder on every set of pairs; settings as in `DistancesRecipe`."""
    recipe = DistancesRecipe.of(encoders, pairs, **settings)
    recipe.measuring("mean")  # what cannot go together is told before anything is read
    loaded = [load_any_pairs(Path(path), recipe.limit) for path in recipe.pairs]
    opened = recipe.opened(device)
    recipe = recipe.knowing({f"pairs {i}": one.fingerprint for i, one in enumerate(loaded)}, opened)
    options = recipe.measuring(common_pooling(recipe.pooling, opened))

    def write(run: Running) -> None:
        parts = []
        for one in loaded:
            with run.stage("-".join(one.languages)):
                met = meeting(opened, one.languages)
                layers = recipe.chosen_layers(met)
                parts.append(distances(met, one, layers, options=options, recipe=recipe.digest()))
        save_measurements(run.folder, parts)

    return measured(recipe, out, write, overwrite=overwrite)
