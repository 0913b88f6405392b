"""`calque measure examples`: ambiguous words in context and what each encoder finds, for a person to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from calque.errors import BadSetting
from calque.geometry.neighbours import Similarity
from calque.links.filters import one_to_one
from calque.measure.ambiguity import AmbiguityOptions, ambiguous_words, choose_words
from calque.measure.word_retrieval import RetrievalOptions
from calque.pipeline.measuring.common import (
    Many,
    MeasureRecipe,
    MeasureRun,
    common_pooling,
    load_any_pairs,
    measured,
    meeting,
    save_measurements,
    torch_device,
)
from calque.pipeline.runs import Running
from calque.types import Encoder


class ExamplesRecipe(MeasureRecipe):
    """Settings of `calque measure examples`.

    Of each language the `types` most ambiguous words are chosen, by the links of all sentences given; of each
    word `occurrences` are shown. These search `sentences` sentences, those that are shown among them.
    """

    verb: ClassVar[str] = "measure examples"

    layers: str = "last"
    types: int = Field(20, ge=1)
    occurrences: int = Field(4, ge=2)
    sentences: int = Field(300, ge=1)
    similarity: Similarity = Similarity.CSLS
    radius_k: int = Field(10, ge=1)

    def ambiguity(self) -> AmbiguityOptions:
        return AmbiguityOptions(self.types, self.occurrences, self.sentences)

    def retrieval(self, encoders: Mapping[str, Encoder]) -> RetrievalOptions:
        return RetrievalOptions(
            similarity=self.similarity,
            radius_k=self.radius_k,
            pooling=common_pooling(self.pooling, encoders),
            rounds=self.rounds,
            seed=self.seed,
            device=torch_device(encoders),
        )

    def layer_of_each(self, encoders: Mapping[str, Encoder]) -> dict[str, int]:
        """One layer of each encoder."""
        chosen = self.chosen_layers(encoders)
        if any(len(layers) > 1 for layers in chosen.values()):
            raise BadSetting(f"layers {self.layers!r} are several", remedy="examples are shown at one layer")
        return {label: layers[0] for label, layers in chosen.items()}


def measure_examples(
    encoders: Many,
    pairs: Many,
    *,
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> MeasureRun:
    """Ambiguous words of every set of pairs in every encoder; settings as in `ExamplesRecipe`."""
    recipe = ExamplesRecipe.of(encoders, pairs, **settings)
    loaded = [load_any_pairs(Path(path), recipe.limit) for path in recipe.pairs]
    opened = recipe.opened(device)
    layers = recipe.layer_of_each(opened)
    recipe = recipe.knowing({f"pairs {i}": one.fingerprint for i, one in enumerate(loaded)}, opened)

    def write(run: Running) -> None:
        linked = [one_to_one(one) for one in loaded]
        parts = []
        with run.stage("choice"):
            chosen = choose_words(linked, recipe.ambiguity())
        for one, words in zip(linked, chosen, strict=True):
            if words:
                with run.stage("-".join(one.languages)):
                    parts.append(
                        ambiguous_words(
                            meeting(opened, one.languages),
                            one,
                            layers,
                            words,
                            options=recipe.ambiguity(),
                            retrieval=recipe.retrieval(opened),
                            recipe=recipe.digest(),
                        )
                    )
        save_measurements(run.folder, parts)

    return measured(recipe, out, write, overwrite=overwrite)
