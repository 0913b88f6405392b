"""`calque align`: an encoder and linked words to an aligned encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from calque.align.finetune import Loss
from calque.align.linear import LinearAligner, Moves
from calque.align.refining import BARELY, check_refinable, refine_maps
from calque.align.sources import SentencePairs, linked
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.cached import CachedEncoder
from calque.encoders.encoder import EncoderOptions
from calque.encoders.open import open_encoder, save_aligned
from calque.encoders.static import is_static_spec, open_static_spec
from calque.errors import BadSetting
from calque.files import is_done
from calque.geometry.solvers import Method, SolverOptions
from calque.pipeline.card import write_card
from calque.pipeline.finetuning import FinetuneRecipe, finetune
from calque.pipeline.runs import EncoderRecipe, input_digests, running
from calque.pipeline.seeds import Seeds
from calque.pipeline.vocabularies import Texts
from calque.presets import load_preset
from calque.recipe import Device, parse_layers, suggestion
from calque.store import load_pairs
from calque.types import Encoder, PairSource, Pooling, WordPairs

#: Settings of a training that change how it runs, not what comes of it.
HOW_TO_TRAIN = ("resume", "processes", "save_every", "tensorboard")
#: Bytes of vectors worth keeping for another method; a large corpus only streams.
KEPT_BELOW = 1 << 30

Supervision = Literal[
    "words", "cls", "cls+sep", "all", "sentences", "dictionary", "embeddings", "identical", "numerals"
]
#: Supervision that pairs word types, of which there may be no parallel text at all.
OF_TYPES = ("dictionary", "embeddings", "identical", "numerals")


class AlignRecipe(EncoderRecipe):
    """Settings of `calque align`.

    `supervision` is what is paired: linked words, special tokens (cls, cls+sep), all of these, sentences, or
    word types by their mean vectors over the text of `pairs` or `text`, or by their rows in static vectors:
    the entries of a dictionary (one file for each of `pairs`), words written the same in both languages
    (identical), or those of them in figures (numerals). With embeddings the entries of a dictionary are taken
    by their vectors at layer 0, each word by itself.
    `shrink` "auto" is chosen for each language and layer by cross-validation over the sentences.
    `refine` is how often a map is learned again from words that find each other under the one before, among
    the `refine_words` most frequent ones. Of static vectors the first `max_vocab` words are read.
    """

    verb: ClassVar[str] = "align"
    places: ClassVar[frozenset[str]] = frozenset({"encoder", "pairs", "dictionary", "text"})

    encoder: str
    pairs: list[str] = Field(default_factory=list)
    method: Method = Method.CENTRED_ROTATION
    layers: str = "last"
    supervision: Supervision = "words"
    dictionary: tuple[str, ...] = ()
    languages: tuple[str, str] | None = None
    text: list[str] = Field(default_factory=list)
    tokenised: bool = False
    refine: int = Field(0, ge=0)
    refine_words: int = Field(20_000, ge=1)
    max_vocab: int | None = Field(None, ge=1)
    pooling: Pooling = "mean"
    moves: Moves = "target"
    shrink: float | Literal["auto"] = 0.0
    components: int = 3
    rounds: int = 5
    beta: float = 0.01
    steps: int = 20_000
    batch: int = 128
    learning_rate: float = 1e-4

    def aligner(self) -> LinearAligner:
        auto = self.shrink == "auto"
        return LinearAligner(self.method, self.solver(), self.pooling, self.moves, validate=auto)

    def solver(self) -> SolverOptions:
        shrink = 0.0 if self.shrink == "auto" else self.shrink
        return SolverOptions(
            shrink=max(shrink, BARELY) if self.refine else shrink,
            components=self.components,
            rounds=self.rounds,
            beta=self.beta,
            steps=self.steps,
            batch=self.batch,
            learning_rate=self.learning_rate,
            seed=self.seed,
        )


def align(
    encoder: str,
    pairs: str | Path | Sequence[str | Path] = (),
    *,
    out: str | Path,
    method: str | None = None,
    preset: str | None = None,
    overwrite: bool = False,
    device: str = "auto",
    **settings: Any,
) -> AlignedEncoder:
    """Align an encoder by linked words, or by word types without any pairs, and write it.

    By linear maps, with settings as in `AlignRecipe`; or by training with the methods l2, weak and strong,
    with settings as in `FinetuneRecipe`, and those of `finetune` on how to run it. A preset is the settings
    of a paper, by name or as a TOML file; settings that are given win over it.
    """
    recipe, how = align_recipe(encoder, pairs, method=method, preset=preset, **settings)
    if isinstance(recipe, FinetuneRecipe):
        finetune(recipe, Path(out), overwrite=overwrite, device=device, **how)
        return _written(Path(out), device)
    return _learn_maps(recipe, Path(out), overwrite, device)


def _written(folder: Path, device: str) -> AlignedEncoder:
    found = open_encoder(str(folder), EncoderOptions(Device.parse(device)))
    assert isinstance(found, AlignedEncoder)
    return found


def align_recipe(
    encoder: str,
    pairs: str | Path | Sequence[str | Path] = (),
    *,
    method: str | None = None,
    preset: str | None = None,
    **settings: Any,
) -> tuple[AlignRecipe | FinetuneRecipe, dict[str, Any]]:
    """What these settings ask for, and how a training is to be run; nothing is opened yet."""
    folders = [str(path) for path in ([pairs] if isinstance(pairs, str | Path) else pairs)]
    if preset is not None:
        settings = {**load_preset(preset).align, "preset": Path(preset).stem, **settings}
    chosen = method or settings.pop("method", Method.CENTRED_ROTATION)
    given = {**settings, "encoder": str(encoder), "pairs": folders, "method": chosen}
    known = [member.value for kind in (Method, Loss) for member in kind]
    if chosen not in known:
        raise BadSetting(f"unknown method {chosen!r}", remedy=suggestion(chosen, known))
    if not folders and (chosen in list(Loss) or given.get("supervision", "words") not in OF_TYPES):
        raise BadSetting(
            "no linked words to learn from", remedy="--pairs FOLDER, or --supervision dictionary or identical"
        )
    if chosen in list(Loss):
        how = {name: given.pop(name) for name in HOW_TO_TRAIN if name in given}
        return FinetuneRecipe.build(**given), how
    recipe = AlignRecipe.build(**given)
    _check_used(recipe)
    return recipe, {}


def _learn_maps(recipe: AlignRecipe, folder: Path, overwrite: bool, device: str) -> AlignedEncoder:
    loaded = [load_pairs(Path(path)) for path in recipe.pairs]
    texts = Texts.read(recipe.text, tokenised=recipe.tokenised)
    opened = _open(recipe, device)
    inputs = {str(i): one.fingerprint for i, one in enumerate(loaded)} | {"encoder": opened.fingerprint}
    inputs |= {f"dictionary {i}": digest for i, digest in input_digests(recipe.dictionary).items()}
    recipe = recipe.model_copy(update={"inputs": inputs | texts.fingerprints()})
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        aligner, layers = recipe.aligner(), parse_layers(recipe.layers, opened.depth)
        given = recipe.dictionary, recipe.languages, recipe.max_vocab
        seeds = Seeds(opened, layers, loaded, texts, *given, alone=recipe.supervision == "embeddings")
        if recipe.refine:
            check_refinable(aligner, len(seeds.sets))
        with running(recipe, folder, overwrite=overwrite) as run:
            inner = _kept(opened, loaded, len(layers))
            with run.stage("fit"):
                aligned = aligner.fit(inner, make_sources(recipe, loaded, seeds), layers)
            if recipe.refine:
                with run.stage("refine"):
                    aligned = refine_maps(
                        aligned, aligner, seeds.frequent(recipe.refine_words), recipe.refine
                    )
            made = replace(aligned, inner=opened)
            save_aligned(run.folder, made)
            write_card(run.folder, made, recipe)
    return _written(folder, device)  # while its encoder is in use, which is then not read again


def _check_used(recipe: AlignRecipe) -> None:
    """Refuse files that nothing would be done with."""
    if recipe.dictionary and recipe.supervision not in ("dictionary", "embeddings"):
        raise BadSetting("--dictionary is not used", remedy="add --supervision dictionary")
    if recipe.text and not recipe.refine and recipe.supervision not in OF_TYPES:
        raise BadSetting(
            "--text is not used", remedy="add --refine, or --supervision dictionary, identical or numerals"
        )


def _open(recipe: AlignRecipe, device: str) -> Encoder:
    if is_static_spec(recipe.encoder):
        return open_static_spec(recipe.encoder, limit=recipe.max_vocab)
    opened = open_encoder(recipe.encoder, recipe.options(device))
    if isinstance(opened, AlignedEncoder):
        raise BadSetting(f"{recipe.encoder} is aligned already", remedy="align the encoder it was made from")
    return opened


def _kept(encoder: Encoder, pairs: Sequence[WordPairs], layers: int) -> Encoder:
    """The encoder with the vector cache where all vectors fit easily, so that the next method finds them."""
    size = 2 * np.dtype(np.float16).itemsize * encoder.width * layers * sum(map(len, pairs))
    return CachedEncoder(encoder) if size <= KEPT_BELOW else encoder


def make_sources(recipe: AlignRecipe, pairs: Sequence[WordPairs], seeds: Seeds) -> list[PairSource]:
    """What the recipe pairs, one source for each set of pairs, or for each two languages without any."""
    if recipe.supervision in OF_TYPES:
        return list(seeds.sources(recipe.supervision))
    if recipe.supervision == "sentences":
        return [SentencePairs(one.bitext) for one in pairs]
    return [linked(one, recipe.supervision) for one in pairs]
