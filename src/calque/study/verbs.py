"""Verbs of cells: the function that computes each, and the check of its settings before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from calque.errors import BadSetting
from calque.files import is_done
from calque.links.filters import sample_sentences
from calque.pipeline import (
    CkaRecipe,
    CompareRecipe,
    DistancesRecipe,
    ExamplesRecipe,
    ExtendRecipe,
    LexiconRecipe,
    LinkRecipe,
    ProjectionRecipe,
    SentencesRecipe,
    WordsRecipe,
    WorldRecipe,
    align,
    compare,
    extend,
    link,
    measure_cka,
    measure_distances,
    measure_examples,
    measure_lexicon,
    measure_projection,
    measure_sentences,
    measure_words,
    pretrain,
    transfer,
    world,
)
from calque.pipeline.aligning import align_recipe
from calque.pipeline.finetuning import FinetuneRecipe
from calque.pipeline.linking import check_links
from calque.pipeline.pretraining import pretrain_recipe
from calque.pipeline.runs import running
from calque.pipeline.transferring import transfer_recipe
from calque.recipe import Recipe, parse_layers
from calque.store import load_pairs, save_pairs
from calque.study.smoke import SmokeRecipe, smoke_world
from calque.study.variants import LOSSES

#: More layers than any encoder has: enough to see whether layers are written well.
DEEP = 1000


class SampleRecipe(Recipe):
    """Some sentences of a set of links, drawn at random."""

    verb: ClassVar[str] = "sample"
    places: ClassVar[frozenset[str]] = frozenset({"pairs"})

    pairs: str
    sentences: int = Field(ge=1)


def sample(pairs: str | Path, *, out: str | Path, **settings: Any) -> Path:
    """Write a sample of the sentences of linked text, with all their links; too few are refused."""
    loaded, folder = load_pairs(Path(pairs)), Path(out)
    recipe = SampleRecipe.build(pairs=str(pairs), inputs={"pairs": loaded.fingerprint}, **settings)
    if recipe.sentences > len(loaded.bitext):
        raise BadSetting(
            f"{recipe.sentences:,} sentences of {len(loaded.bitext):,}",
            remedy=f"a size of at most {len(loaded.bitext)}",
        )
    if not is_done(folder, recipe.digest()):
        with running(recipe, folder) as run:
            drawn = sample_sentences(loaded, float(recipe.sentences), recipe.seed)
            save_pairs(run.folder / "train", drawn)
    return folder


RUN: Mapping[str, Callable[..., object]] = {
    "world": world,
    "smoke world": smoke_world,
    "link": link,
    "sample": sample,
    "pretrain": pretrain,
    "extend": extend,
    "align": align,
    "measure words": measure_words,
    "measure sentences": measure_sentences,
    "measure lexicon": measure_lexicon,
    "measure cka": measure_cka,
    "measure distances": measure_distances,
    "measure projection": measure_projection,
    "measure examples": measure_examples,
    "transfer": transfer,
    "compare": compare,
}
RECIPES: Mapping[str, type[Recipe]] = {
    "world": WorldRecipe,
    "smoke world": SmokeRecipe,
    "sample": SampleRecipe,
    "compare": CompareRecipe,
    "extend": ExtendRecipe,
    "measure words": WordsRecipe,
    "measure sentences": SentencesRecipe,
    "measure lexicon": LexiconRecipe,
    "measure cka": CkaRecipe,
    "measure distances": DistancesRecipe,
    "measure projection": ProjectionRecipe,
    "measure examples": ExamplesRecipe,
}
#: Verbs that run on a device.
ON_DEVICE = frozenset(name for name in RUN if name.startswith("measure")) | {
    "link",
    "pretrain",
    "extend",
    "align",
    "transfer",
}


def compute(verb: str, settings: Mapping[str, Any], out: Path, device: str) -> None:
    """Compute a cell; a training that was stopped goes on."""
    how: dict[str, Any] = {"device": device} if verb in ON_DEVICE else {}
    if verb in ("pretrain", "extend") or (verb == "align" and _trained(settings)):
        how["resume"] = True
    RUN[verb](out=out, **settings, **how)


def check_settings(verb: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings that the verb would refuse, without opening anything."""
    given = dict(settings)
    if isinstance(layers := given.get("layers"), str):
        parse_layers(layers, DEEP)
    if verb == "align":
        _check_training(align_recipe(**given)[0])
    elif verb == "transfer":
        transfer_recipe(**given).settled().training(0)
    elif verb == "pretrain":
        pretrain_recipe(**given)
    elif verb == "link":
        check_links(LinkRecipe.build(**given))
    else:
        RECIPES[verb].build(**given)


def _check_training(recipe: Recipe) -> None:
    """What the training loop and the losses would refuse."""
    if isinstance(recipe, FinetuneRecipe):
        recipe.training()
        recipe.finetuning(DEEP)


def _trained(settings: Mapping[str, Any]) -> bool:
    return settings.get("method") in LOSSES
