"""`calque measure projection`: words of two languages on one plane, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from calque.geometry.projection import Method
from calque.links.filters import one_to_one
from calque.measure.projection import ProjectionOptions, projection
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


class ProjectionRecipe(MeasureRecipe):
    """Settings of `calque measure projection`.

    Drawn are `words` of either language, by default the `types` most frequent ones that are linked, and of
    each `occurrences` links. Words with several links are left out.
    """

    verb: ClassVar[str] = "measure projection"

    layers: str = "last"
    words: tuple[str, ...] = ()
    types: int = Field(12, ge=1)
    occurrences: int = Field(15, ge=1)
    projection: Method = Method.TSNE
    perplexity: float | None = None

    def drawing(self, pooling: Pooling) -> ProjectionOptions:
        return ProjectionOptions(
            words=self.words,
            types=self.types,
            occurrences=self.occurrences,
            method=self.projection,
            perplexity=self.perplexity,
            pooling=pooling,
            rounds=self.rounds,
            seed=self.seed,
        )


def measure_projection(
    encoders: Many,
    pairs: Many,
    *,
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> MeasureRun:
    """The same words in every encoder, of every set of pairs; settings as in `ProjectionRecipe`."""
    recipe = ProjectionRecipe.of(encoders, pairs, **settings)
    return measured_on_pairs(recipe, out, _measure, device=device, overwrite=overwrite)


def _measure(recipe: ProjectionRecipe, opened: Mapping[str, Encoder], pairs: WordPairs) -> Measurement:
    encoders = meeting(opened, pairs.languages)
    return projection(
        encoders,
        one_to_one(pairs),
        recipe.chosen_layers(encoders),
        options=recipe.drawing(common_pooling(recipe.pooling, opened)),
        recipe=recipe.digest(),
    )
