"""`calque align`: an encoder and linked words to an aligned encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from calque.align.finetune import Loss
from calque.align.linear import LinearAligner, Moves
from calque.align.presets import load_preset
from calque.align.sources import DictionaryAnchors, SentencePairs, linked
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.cached import CachedEncoder
from calque.encoders.encoder import EncoderOptions
from calque.encoders.open import open_encoder, save_aligned
from calque.encoders.wordtypes import Types
from calque.errors import BadSetting
from calque.files import is_done
from calque.geometry.solvers import Method, SolverOptions
from calque.pipeline.finetuning import FinetuneRecipe, finetune
from calque.pipeline.runs import EncoderRecipe, input_digests, running
from calque.recipe import Device, parse_layers, suggestion
from calque.store import load_pairs
from calque.text.dictionaries import read_dictionary
from calque.types import Encoder, PairSource, Pooling, WordPairs

#: Settings of a training that change how it runs, not what comes of it.
HOW_TO_TRAIN = ("resume", "processes", "save_every", "tensorboard")
#: Bytes of vectors worth keeping for another method; a large corpus only streams.
KEPT_BELOW = 1 << 30

Supervision = Literal["words", "cls", "cls+sep", "all", "sentences", "dictionary"]


class AlignRecipe(EncoderRecipe):
    """Settings of `calque align`.

    `supervision` is what is paired: linked words, special tokens (cls, cls+sep), all of these, sentences, or
    the entries of a dictionary (one file for each of `pairs`) by their mean vectors over the text.
    `shrink` "auto" is chosen for each language and layer by cross-validation over the sentences.
    """

    verb: ClassVar[str] = "align"
    places: ClassVar[frozenset[str]] = frozenset({"pairs", "dictionary"})

    encoder: str
    pairs: list[str]
    method: Method = Method.CENTRED_ROTATION
    layers: str = "last"
    supervision: Supervision = "words"
    dictionary: tuple[str, ...] = ()
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
        return SolverOptions(
            shrink=0.0 if self.shrink == "auto" else self.shrink,
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
    pairs: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    method: str | None = None,
    preset: str | None = None,
    overwrite: bool = False,
    device: str = "auto",
    **settings: Any,
) -> AlignedEncoder:
    """Align an encoder by linked words and write it.

    By linear maps, with settings as in `AlignRecipe`; or by training with the methods l2, weak and strong,
    with settings as in `FinetuneRecipe`, and those of `finetune` on how to run it. A preset is the settings
    of a paper, by name or as a TOML file; settings that are given win over it.
    """
    folders = [str(path) for path in ([pairs] if isinstance(pairs, str | Path) else pairs)]
    if preset is not None:
        settings = {**load_preset(preset).align, "preset": Path(preset).stem, **settings}
    chosen = method or settings.pop("method", Method.CENTRED_ROTATION)
    given = {**settings, "encoder": str(encoder), "pairs": folders, "method": chosen}
    known = [member.value for kind in (Method, Loss) for member in kind]
    if chosen not in known:
        raise BadSetting(f"unknown method {chosen!r}", remedy=suggestion(chosen, known))
    if chosen in list(Loss):
        how = {name: given.pop(name) for name in HOW_TO_TRAIN if name in given}
        finetune(FinetuneRecipe.build(**given), Path(out), overwrite=overwrite, device=device, **how)
    else:
        _learn_maps(AlignRecipe.build(**given), Path(out), overwrite, device)
    found = open_encoder(str(out), EncoderOptions(Device.parse(device)))
    assert isinstance(found, AlignedEncoder)
    return found


def _learn_maps(recipe: AlignRecipe, folder: Path, overwrite: bool, device: str) -> None:
    loaded = [load_pairs(Path(path)) for path in recipe.pairs]
    opened = open_encoder(recipe.encoder, recipe.options(device))
    if isinstance(opened, AlignedEncoder):
        raise BadSetting(f"{recipe.encoder} is aligned already", remedy="align the encoder it was made from")
    inputs = {str(i): one.fingerprint for i, one in enumerate(loaded)} | {"encoder": opened.fingerprint}
    inputs |= {f"dictionary {i}": digest for i, digest in input_digests(recipe.dictionary).items()}
    recipe = recipe.model_copy(update={"inputs": inputs})
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        aligner, layers = recipe.aligner(), parse_layers(recipe.layers, opened.depth)
        with running(recipe, folder) as run:
            with run.stage("fit"):
                inner = _kept(opened, loaded, len(layers))
                aligned = aligner.fit(inner, make_sources(recipe, loaded), layers)
            save_aligned(run.folder, replace(aligned, inner=opened))


def _kept(encoder: Encoder, pairs: Sequence[WordPairs], layers: int) -> Encoder:
    """The encoder with the vector cache where all vectors fit easily, so that the next method finds them."""
    size = 2 * np.dtype(np.float16).itemsize * encoder.width * layers * sum(map(len, pairs))
    return CachedEncoder(encoder) if size <= KEPT_BELOW else encoder


def make_sources(recipe: AlignRecipe, pairs: Sequence[WordPairs]) -> list[PairSource]:
    """What the recipe pairs, one source for each set of pairs."""
    if recipe.supervision == "sentences":
        return [SentencePairs(one.bitext) for one in pairs]
    if recipe.supervision != "dictionary":
        if recipe.dictionary:
            raise BadSetting("--dictionary is not used", remedy="add --supervision dictionary")
        return [linked(one, recipe.supervision) for one in pairs]
    if len(recipe.dictionary) != len(pairs):
        raise BadSetting(
            f"{len(pairs)} sets of pairs and {len(recipe.dictionary)} dictionaries",
            remedy="give one --dictionary for each --pairs, in the same order",
        )
    return [
        DictionaryAnchors(
            read_dictionary(Path(path)), (Types.of_text(one.bitext.source), Types.of_text(one.bitext.target))
        )
        for path, one in zip(recipe.dictionary, pairs, strict=True)
    ]
