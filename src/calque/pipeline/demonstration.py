"""`calque world` and `calque demo`: a small universe to try everything on, offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from calque.encoders.counts import count_encoder
from calque.encoders.static import save_static
from calque.files import is_done
from calque.pipeline.aligning import align
from calque.pipeline.linking import link
from calque.pipeline.measuring import measure_words
from calque.pipeline.reporting import report
from calque.pipeline.runs import running
from calque.recipe import Recipe
from calque.text.world import LANGUAGES, world_sentences, write_world

#: How the demo aligns: training-free rows first, so that a win of rotation can be attributed.
DEMO_METHODS = ("centring", "rotation", "centred-rotation")


class WorldRecipe(Recipe):
    """Settings of `calque world`. `width` is that of the count vectors."""

    verb: ClassVar[str] = "world"

    count: int = 5000
    width: int = 100


def world(out: str | Path, *, overwrite: bool = False, **settings: object) -> Path:
    """Write the world's parallel text, gold links and treebanks, and an encoder of it.

    The encoder holds count vectors (PPMI and SVD), learned for each language by itself, without any parallel
    signal, from text that is not in the bitext.
    """
    recipe = WorldRecipe.build(**settings)
    folder = Path(out)
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        with running(recipe, folder) as run:
            write_world(run.folder / "text", recipe.count, seed=recipe.seed)
            texts = [
                world_sentences(4 * recipe.count, language, seed=recipe.seed + 1 + place)
                for place, language in enumerate(LANGUAGES)
            ]
            encoder = count_encoder(texts, width=recipe.width, seed=recipe.seed)
            save_static(run.folder / "encoder", encoder)
    return folder


def demo(
    out: str | Path = "runs/demo", *, seed: int = 0, tell: Callable[[str], None] = lambda line: None
) -> Path:
    """The whole flow on the world: link, align three ways, measure, page. Returns the page's path.

    Steps that stand from an earlier call are not done again. `tell` is told each step as a command line.
    """
    folder = Path(out)
    tell(f"calque world --out {folder / 'world'}")
    made = world(folder / "world", seed=seed)
    text = made / "text" / "en-far.tsv"
    tell(f"calque link {text} --languages en far --tokenised --dev 500 --test 500 --out {folder / 'links'}")
    link(text, ("en", "far"), out=folder / "links", tokenised=True, dev=500, test=500, seed=seed)
    encoders = [str(made / "encoder")]
    for method in DEMO_METHODS:
        target = folder / method
        tell(
            f"calque align --encoder {encoders[0]} --pairs {folder / 'links' / 'train'} "
            f"--method {method} --out {target}"
        )
        align(encoders[0], folder / "links" / "train", out=target, method=method, seed=seed)
        encoders.append(str(target))
    return _measured(encoders, folder, seed, tell)


def _measured(encoders: Sequence[str], folder: Path, seed: int, tell: Callable[[str], None]) -> Path:
    named = " ".join(f"--encoder {encoder}" for encoder in encoders)
    test, out = folder / "links" / "test", folder / "words"
    tell(f"calque measure words {named} --pairs {test} --sentence-augmented --include-seen --out {out}")
    # Static vectors know no context, so that of the sentence is added. The world is small, so nearly all its
    # words are seen in training: seen and unseen are told apart in the breakdown.
    labels = ["count vectors", *DEMO_METHODS]
    measure_words(
        encoders, test, out=out, labels=labels, sentence_augmented=True, include_seen=True, seed=seed
    )
    tell(f"calque report {folder / 'words'}")
    return report(folder / "words")
