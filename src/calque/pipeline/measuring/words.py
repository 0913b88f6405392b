"""`calque measure words`: how often a word finds its translation, by layer, for one encoder or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.static import SentenceAugmented
from calque.files import write_json
from calque.geometry.neighbours import Similarity
from calque.links.filters import one_to_one
from calque.measure.breakdown import has_pieces
from calque.measure.examples import senses
from calque.measure.word_retrieval import RetrievalOptions, Variant, WordMeasurement, word_retrieval
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
from calque.pipeline.runs import Running, links_grid
from calque.report.collect import Run
from calque.report.mean import verdict_layer
from calque.text.languages import WORLD
from calque.types import Encoder, Pooling, Result, WordPairs


class WordsRecipe(MeasureRecipe):
    """Settings of `calque measure words`.

    Word pairs that any of the encoders was trained on are left out for all of them, unless `include_seen`; so
    are words with several links, which have no one right answer, unless `keep_many`. `sentence_augmented`
    adds mean, maximum and minimum over the sentence to each word's vector, which gives static vectors a
    context.
    """

    verb: ClassVar[str] = "measure words"

    variant: Variant = Variant.CONTEXTUAL
    similarity: Similarity = Similarity.CSLS
    radius_k: int = 10
    include_seen: bool = False
    keep_identical: bool = False
    keep_many: bool = False
    sentence_augmented: bool = False
    breakdowns: tuple[str, ...] | None = None

    def retrieval(self, pooling: Pooling, device: str) -> RetrievalOptions:
        return RetrievalOptions(
            variant=self.variant,
            similarity=self.similarity,
            radius_k=self.radius_k,
            pooling=pooling,
            drop_identical=not self.keep_identical,
            include_seen=self.include_seen,
            rounds=self.rounds,
            seed=self.seed,
            device=device,
        )


def measure_words(
    encoders: Many,
    pairs: Many,
    *,
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> MeasureRun:
    """Contextual word retrieval of every encoder on every set of pairs; settings as in `WordsRecipe`."""
    recipe = WordsRecipe.of(encoders, pairs, **settings)
    loaded = [load_any_pairs(Path(path), recipe.limit) for path in recipe.pairs]
    opened = recipe.opened(device)
    recipe = recipe.knowing({f"pairs {i}": one.fingerprint for i, one in enumerate(loaded)}, opened)

    def write(run: Running) -> None:
        parts = []
        for one in loaded:
            with run.stage("-".join(one.languages)):
                parts.append(_measure(recipe, opened, one))
        results = save_measurements(run.folder, parts)
        artifacts = run.folder / "artifacts"
        write_json(artifacts / "senses.json", _senses(run.folder, results, parts))
        write_json(artifacts / "links.json", [grid for one in loaded for grid in links_grid(one, 4)])

    return measured(recipe, out, write, overwrite=overwrite)


def _measure(recipe: WordsRecipe, opened: Mapping[str, Encoder], pairs: WordPairs) -> WordMeasurement:
    encoders = meeting(opened, pairs.languages)
    seen = {
        types
        for one in encoders.values()
        if isinstance(one, AlignedEncoder)
        for types in one.seen_by(pairs.languages)
    }
    if recipe.sentence_augmented:
        encoders = {label: SentenceAugmented(one) for label, one in encoders.items()}
    scored = pairs if recipe.keep_many else one_to_one(pairs)
    found = word_retrieval(
        encoders,
        scored,
        recipe.chosen_layers(encoders),
        seen=seen,
        options=recipe.retrieval(common_pooling(recipe.pooling, opened), torch_device(opened)),
        breakdowns=_breakdowns(recipe, pairs, next(iter(encoders.values()))),
        recipe=recipe.digest()[:12],
    )
    several = {"links": len(pairs), "several links": len(pairs) - len(scored)}
    return replace(found, counts=found.counts | several)


def _breakdowns(recipe: WordsRecipe, pairs: WordPairs, first: Encoder) -> Sequence[str]:
    """As asked, or all that these pairs and the first encoder allow."""
    if recipe.breakdowns is not None:
        return recipe.breakdowns
    possible = {
        "rank-gap": True,
        "script": True,
        "pos": pairs.bitext.source.tags is not None and pairs.bitext.target.tags is not None,
        "pieces": has_pieces(first, pairs.bitext.source),
        "sense": not WORLD.isdisjoint(pairs.languages),
        "seen": recipe.include_seen,
    }
    return [name for name, allowed in possible.items() if allowed]


def _senses(
    folder: Path, results: Sequence[Result], parts: Sequence[WordMeasurement]
) -> list[dict[str, Any]]:
    """Ambiguous words at the layer that the report's verdict is about."""
    (panels,) = Run(folder, results=tuple(results)).sets
    layer = verdict_layer(panels)
    return [] if layer is None else senses([one.finds for one in parts], layer)
