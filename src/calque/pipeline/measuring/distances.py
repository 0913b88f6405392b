"""`calque measure distances`: how far linked words lie from each other, beside words that are unrelated."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from calque.measure.distances import Distance, DistanceOptions, distances
from calque.measure.scoring import Measurement
from calque.pipeline.measuring.common import (
    Many,
    MeasureRecipe,
    MeasureRun,
    common_pooling,
    measured_on_pairs,
    meeting,
)
from calque.types import Encoder, Pooling, WordPairs


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
    return measured_on_pairs(recipe, out, _measure, device=device, overwrite=overwrite)


def _measure(recipe: DistancesRecipe, opened: Mapping[str, Encoder], pairs: WordPairs) -> Measurement:
    encoders = meeting(opened, pairs.languages)
    return distances(
        encoders,
        pairs,
        recipe.chosen_layers(encoders),
        options=recipe.measuring(common_pooling(recipe.pooling, opened)),
        recipe=recipe.digest(),
    )
