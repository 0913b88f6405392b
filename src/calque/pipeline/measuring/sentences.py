"""`calque measure sentences`: how often a sentence finds its translation, by layer, for several encoders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from calque.encoders.aligned import AlignedEncoder
from calque.geometry.neighbours import Similarity
from calque.measure.scoring import Measurement
from calque.measure.sentence_retrieval import NONE, SentenceOptions, sentence_retrieval
from calque.pipeline.measuring.common import (
    Many,
    MeasureRun,
    each,
    measured,
    meeting,
    save_measurements,
    torch_device,
)
from calque.pipeline.measuring.parallel import Parallel, ParallelRecipe
from calque.pipeline.runs import Running
from calque.types import Bitext, Encoder


class SentencesRecipe(ParallelRecipe):
    """Settings of `calque measure sentences`.

    Sentence pairs that any of the encoders was aligned on are left out for all, unless `include_seen`.
    """

    verb: ClassVar[str] = "measure sentences"

    similarity: Similarity = Similarity.COSINE
    radius_k: int = 10
    include_seen: bool = False

    def retrieval(self, device: str) -> SentenceOptions:
        return SentenceOptions(
            similarity=self.similarity,
            radius_k=self.radius_k,
            pooling=self.pooling,
            include_seen=self.include_seen,
            rounds=self.rounds,
            seed=self.seed,
            device=device,
        )


def measure_sentences(
    encoders: Many,
    pairs: Many = (),
    *,
    text: Many = (),
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> MeasureRun:
    """Sentence retrieval of every encoder on every parallel text; settings as in `SentencesRecipe`."""
    recipe = SentencesRecipe.of(encoders, pairs, text=tuple(each(text)), **settings)
    held = Parallel.load(recipe, device)

    def write(run: Running) -> None:
        parts = []
        for one in held.bitexts:
            with run.stage("-".join(one.languages)):
                parts.append(_measure(held.recipe, held.encoders, one))
        save_measurements(run.folder, parts)

    return measured(held.recipe, out, write, overwrite=overwrite)


def _measure(recipe: SentencesRecipe, opened: Mapping[str, Encoder], bitext: Bitext) -> Measurement:
    encoders = meeting(opened, bitext.languages)
    read = [one.read for one in encoders.values() if isinstance(one, AlignedEncoder)]
    return sentence_retrieval(
        encoders,
        bitext,
        recipe.chosen_layers(encoders),
        seen=np.unique(np.concatenate([NONE, *read])),
        options=recipe.retrieval(torch_device(opened)),
        recipe=recipe.digest(),
    )
