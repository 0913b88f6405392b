"""`calque measure words`: how often a word finds its translation, by layer, for one encoder or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.open import trained_prefix
from calque.encoders.static import SentenceAugmented
from calque.errors import BadSetting
from calque.files import is_done, read_json, write_json
from calque.geometry.neighbours import Similarity
from calque.links.filters import one_to_one
from calque.links.pharaoh import is_pud, read_pud
from calque.measure.examples import senses
from calque.measure.word_retrieval import Measurement, RetrievalOptions, Variant, word_retrieval
from calque.pipeline.runs import EncoderRecipe, links_grid, open_for, running
from calque.recipe import parse_layers
from calque.report.collect import Run
from calque.report.mean import verdict_layer
from calque.store import load_pairs, load_results, save_results
from calque.types import Encoder, Pooling, Result, WordPairs


class WordsRecipe(EncoderRecipe):
    """Settings of `calque measure words`.

    The first encoder is the baseline of every comparison. Word pairs that any of the encoders was trained on
    are left out for all of them, unless `include_seen`; so are words with several links, which have no one
    right answer, unless `keep_many`. `sentence_augmented` adds mean, maximum and minimum
    over the sentence to each word's vector, which gives static vectors a context.
    """

    verb: ClassVar[str] = "measure words"
    places: ClassVar[frozenset[str]] = frozenset({"pairs", "encoders"})

    encoders: list[str]
    labels: tuple[str, ...] = ()
    pairs: list[str]
    layers: str = "all"
    variant: Variant = Variant.CONTEXTUAL
    similarity: Similarity = Similarity.CSLS
    radius_k: int = 10
    pooling: Pooling | None = None
    include_seen: bool = False
    keep_identical: bool = False
    keep_many: bool = False
    sentence_augmented: bool = False
    breakdowns: tuple[str, ...] | None = None
    rounds: int = Field(1000, ge=1)
    limit: int | None = Field(None, ge=1)

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


@dataclass(frozen=True)
class MeasureRun:
    """What a measure wrote."""

    folder: Path
    results: Sequence[Result]
    counts: Mapping[str, int]


def measure_words(
    encoders: str | Path | Sequence[str | Path],
    pairs: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> MeasureRun:
    """Contextual word retrieval of every encoder on every set of pairs; settings as in `WordsRecipe`."""
    specs, folders = (
        [str(one) for one in ([many] if isinstance(many, str | Path) else many)] for many in (encoders, pairs)
    )
    recipe = WordsRecipe.build(encoders=specs, pairs=folders, **settings)
    recipe = recipe.model_copy(update={"prefix": _prefix(recipe)})
    loaded = [load_any_pairs(Path(path), recipe.limit) for path in recipe.pairs]
    labels = recipe.labels or tuple(default_labels(specs))
    if len(labels) != len(specs) or len(set(labels)) != len(labels):
        raise BadSetting(f"labels {labels} for {len(specs)} encoders", remedy="one different label each")
    opened = dict(
        zip(labels, (open_for(spec, recipe.options(device), cached=True) for spec in specs), strict=True)
    )
    inputs = {f"pairs {i}": one.fingerprint for i, one in enumerate(loaded)}
    inputs |= {f"encoder {label}": one.fingerprint for label, one in opened.items()}
    recipe = recipe.model_copy(update={"inputs": inputs, "labels": labels})
    folder = Path(out)
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        with running(recipe, folder) as run:
            measured = []
            for one in loaded:
                with run.stage("-".join(one.languages)):
                    measured.append(_measure(recipe, opened, one))
            _write(run.folder, measured)
            grids = [grid for one in loaded for grid in links_grid(one, 4)]
            write_json(run.folder / "artifacts" / "links.json", grids)
    counts = read_json(folder / "artifacts" / "counts.json")
    return MeasureRun(folder, load_results(folder / "results.jsonl"), counts)


def load_any_pairs(folder: Path, limit: int | None = None) -> WordPairs:
    """Pairs written by `calque link`, or a folder of hand-made links in the PUD layout; the first `limit`."""
    pairs = read_pud(folder) if is_pud(folder) else load_pairs(folder)
    return pairs if limit is None else pairs.sentences(np.arange(min(limit, len(pairs.bitext))))


def default_labels(specs: Sequence[str]) -> list[str]:
    """Short names for encoders: the last part of a path, the whole where that is not enough."""
    short = [Path(spec).name or spec for spec in specs]
    return [spec if short.count(name) > 1 else name for spec, name in zip(specs, short, strict=True)]


def _measure(recipe: WordsRecipe, opened: dict[str, Encoder], pairs: WordPairs) -> Measurement:
    encoders: dict[str, Encoder] = {}
    seen: set[tuple[str, str]] = set()
    for label, encoder in opened.items():
        if isinstance(encoder, AlignedEncoder):
            encoder = encoder.meeting(pairs.languages)
            seen |= encoder.seen_by(pairs.languages)
        encoders[label] = SentenceAugmented(encoder) if recipe.sentence_augmented else encoder
    scored = pairs if recipe.keep_many else one_to_one(pairs)
    measured = word_retrieval(
        encoders,
        scored,
        {label: parse_layers(recipe.layers, one.depth) for label, one in encoders.items()},
        seen=seen,
        options=recipe.retrieval(_pooling(recipe, opened), _torch_device(opened)),
        breakdowns=_breakdowns(recipe, pairs),
        recipe=recipe.digest()[:12],
    )
    several = {"links": len(pairs), "several links": len(pairs) - len(scored)}
    return replace(measured, counts=measured.counts | several)


def _prefix(recipe: WordsRecipe) -> str:
    """As asked, or as the aligned encoders were trained: the same for all, so that the comparison is fair."""
    if recipe.prefix is not None:
        return recipe.prefix
    trained = {prefix for spec in recipe.encoders if (prefix := trained_prefix(spec)) is not None}
    if len(trained) > 1:
        raise BadSetting(
            f"aligned encoders were trained with different prefixes: {sorted(trained)}",
            remedy="choose one with --prefix",
        )
    return trained.pop() if trained else ""


def _pooling(recipe: WordsRecipe, encoders: dict[str, Encoder]) -> Pooling:
    """As asked, or as the aligned encoders were trained."""
    if recipe.pooling is not None:
        return recipe.pooling
    trained = {one.pooling for one in encoders.values() if isinstance(one, AlignedEncoder)}
    if len(trained) > 1:
        raise BadSetting(
            f"aligned encoders were trained with different pooling: {', '.join(sorted(trained))}",
            remedy="choose one with --pooling",
        )
    return trained.pop() if trained else "mean"


def _torch_device(encoders: dict[str, Encoder]) -> str:
    devices = {str(getattr(getattr(one, "inner", one), "device", "cpu")) for one in encoders.values()}
    return devices.pop() if len(devices) == 1 else "cpu"


def _breakdowns(recipe: WordsRecipe, pairs: WordPairs) -> Sequence[str]:
    """As asked, or all that these pairs allow."""
    if recipe.breakdowns is not None:
        return recipe.breakdowns
    tagged = pairs.bitext.source.tags is not None and pairs.bitext.target.tags is not None
    return ["rank-gap", "script", *(["pos"] if tagged else []), *(["seen"] if recipe.include_seen else [])]


def _write(folder: Path, measured: Sequence[Measurement]) -> None:
    results = [result for one in measured for result in one.save(folder / "items")]
    save_results(folder / "results.jsonl", results)
    counts: Counter[str] = Counter()
    examples: list[dict[str, Any]] = []
    for one in measured:
        counts.update(one.counts)
        examples += one.examples
    write_json(folder / "artifacts" / "counts.json", dict(counts))
    write_json(folder / "artifacts" / "examples.json", examples)
    write_json(folder / "artifacts" / "senses.json", _senses(folder, results, measured))


def _senses(folder: Path, results: Sequence[Result], measured: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Ambiguous words at the layer that the report's verdict is about."""
    (panels,) = Run(folder, results=tuple(results)).sets
    layer = verdict_layer(panels)
    return [] if layer is None else senses([one.finds for one in measured], layer)
