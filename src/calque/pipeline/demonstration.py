"""`calque world` and `calque demo`: the whole flow on real languages or on an invented one, offline."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from pydantic import Field

from calque.demo.corpus import PIVOT, languages, scored_count, sentences, write_corpus
from calque.encoders.counts import count_encoder
from calque.encoders.encoder import EncoderOptions
from calque.encoders.open import open_encoder
from calque.encoders.static import save_static
from calque.errors import BadSetting, MissingExtra
from calque.files import is_done, write_json
from calque.pipeline.aligning import align
from calque.pipeline.linking import link
from calque.pipeline.measuring import measure_words
from calque.pipeline.reporting import report
from calque.pipeline.runs import running
from calque.recipe import Device, Recipe
from calque.text.languages import language_name
from calque.text.world import LANGUAGES, world_sentences, write_tasks, write_world

#: Is told what the demo does, each step as the command line that does the same.
Tell: TypeAlias = Callable[[str], None]

MARKER = "demo.json"
DEMO_ENCODER = "e5-small-q4"
#: The layer whose similarities link: in the middle, where words are told apart best.
LINK_LAYER = "8"
#: How real languages are aligned: centring by itself, so that a win of the rotation can be attributed.
DEMO_METHODS: Mapping[str, dict[str, Any]] = {"centring": {}, "centred-rotation": {"shrink": "auto"}}
WORLD_METHODS = ("centring", "rotation", "centred-rotation")

OWN_BITEXT = (
    (
        "Link the words of two files, a sentence a line (by Eflomal, which needs no encoder).",
        "calque link corpus.en corpus.de --languages en de --test 500 --out links",
    ),
    (
        "Centre the languages: the simplest alignment, often as good as any.",
        f"calque align --encoder {DEMO_ENCODER} --pairs links/train --layers all "
        "--method centring --out centred",
    ),
    (
        "Rotate one onto the other.",
        f"calque align --encoder {DEMO_ENCODER} --pairs links/train --layers all --shrink auto --out rotated",
    ),
    (
        "See whether they helped, on sentences they have not learned from.",
        f"calque measure words --encoder {DEMO_ENCODER} --encoder centred --encoder rotated "
        "--pairs links/test --out words",
    ),
    ("Make a page such as this one.", "calque report words"),
)


class WorldRecipe(Recipe):
    """Settings of `calque world`.

    `width` is that of the count vectors, `tasks` how many items each task is learned from, if any.
    """

    verb: ClassVar[str] = "world"

    count: int = 5000
    width: int = 100
    tasks: int | None = Field(None, ge=1)


def world(out: str | Path, *, overwrite: bool = False, **settings: object) -> Path:
    """Write the world's parallel text, gold links and treebanks, and an encoder of it.

    The encoder holds count vectors (PPMI and SVD), learned for each language by itself, without any parallel
    signal, from text that is not in the bitext. With `tasks`, labelled files to train, choose and test by.
    """
    recipe = WorldRecipe.build(**settings)
    folder = Path(out)
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        with running(recipe, folder, overwrite=overwrite) as run:
            write_world(run.folder / "text", recipe.count, seed=recipe.seed)
            if recipe.tasks is not None:
                write_tasks(run.folder / "tasks", recipe.tasks, seed=recipe.seed)
            texts = [
                world_sentences(4 * recipe.count, language, seed=recipe.seed + 1 + place)
                for place, language in enumerate(LANGUAGES)
            ]
            encoder = count_encoder(texts, width=recipe.width, seed=recipe.seed)
            save_static(run.folder / "encoder", encoder)
    return folder


def demo(
    out: str | Path = "runs/demo",
    *,
    world: bool = False,
    seed: int = 0,
    device: str = "auto",
    tell: Tell = lambda line: None,
) -> Path:
    """The whole flow: link, align, measure, page. Returns the page's path.

    On real languages with e5-small-q4; on an invented world when asked, or without the extra e5. Steps that
    stand from an earlier call are not done again.
    """
    folder = Path(out)
    _claim(folder)
    if not world:
        try:
            return _on_languages(folder, seed, device, tell)
        except MissingExtra as missing:
            tell(f"{missing}; running on an invented world instead")
    return _on_the_world(folder / "world", seed, tell)


def _claim(folder: Path) -> None:
    """Take a new or empty folder, or that of an earlier demo; one with anything else in it is refused."""
    if folder.exists() and not (folder / MARKER).is_file() and (folder.is_file() or any(folder.iterdir())):
        raise BadSetting("exists and is not a demo of calque", where=folder, remedy="choose another --out")
    write_json(folder / MARKER, {"verb": "demo"})


# ------------------------------------------------------------------------------------- real languages


def _on_languages(folder: Path, seed: int, device: str, tell: Tell) -> Path:
    # Held here, so that every verb finds it in use and none reads it again.
    encoder = open_encoder(DEMO_ENCODER, EncoderOptions(device=Device.parse(device)))
    count, text = len(languages()), folder / "text"
    tell(f"The corpus: {len(sentences(PIVOT))} sentences in {count + 1} languages, in {text}")
    write_corpus(text)
    tell(f"1 of 4: link words in {count} languages, by machine to learn from, by hand to score")
    shared: dict[str, Any] = {"seed": seed, "device": device}
    pairs = [f"{PIVOT}-{code}" for code in languages()]
    for pair in pairs:
        _link_pair(folder, pair, tell, **shared)
    learned = [folder / "links" / pair / "train" for pair in pairs]
    encoders = [DEMO_ENCODER]
    tell(f"2 of 4: align, {len(DEMO_METHODS)} ways")
    for method, settings in DEMO_METHODS.items():
        given: dict[str, Any] = {"method": method, "layers": "all", **settings, "out": folder / method}
        tell(command("align", encoder=DEMO_ENCODER, pairs=learned, **given, **shared))
        align(DEMO_ENCODER, learned, **given, **shared)
        encoders.append(str(folder / method))
    scored, out = [folder / "gold" / pair / "test" for pair in pairs], folder / "words"
    labels = [DEMO_ENCODER, *(method.replace("-", " ") for method in DEMO_METHODS)]
    tell("3 of 4: measure before and after, on sentences that were not learned from")
    tell(command("measure words", encoder=encoders, label=labels, pairs=scored, out=out, **shared))
    run = measure_words(encoders, scored, labels=labels, out=out, **shared)
    write_json(out / "artifacts" / "about.json", _about(run.counts))
    tell("4 of 4: the page")
    tell(command("report", out))
    del encoder
    return report(out)


def _link_pair(folder: Path, pair: str, tell: Tell, **shared: Any) -> None:
    """Link the sentences to learn from by similarity; take the hand-made links of the others to score."""
    text, codes = folder / "text", (PIVOT, pair.removeprefix(f"{PIVOT}-"))
    similar: dict[str, Any] = {
        "linker": "mutual",
        "encoder": DEMO_ENCODER,
        "layer": LINK_LAYER,
        "out": folder / "links" / pair,
    }
    by_hand: dict[str, Any] = {
        "links": str(text / f"{pair}.test.links"),
        "test": scored_count(),
        "out": folder / "gold" / pair,
    }
    for part, given in (("train", similar), ("test", by_hand)):
        tell(command("link", text / f"{pair}.{part}.tsv", languages=codes, tokenised=True, **given, **shared))
        link(text / f"{pair}.{part}.tsv", codes, tokenised=True, **given, **shared)


def _about(counts: Mapping[str, int]) -> dict[str, Any]:
    """What the page says at its top and its end."""
    names = [language_name(code) for code in languages()]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    learned = len(sentences(PIVOT)) - scored_count()
    return {
        "title": f"Does alignment help {DEMO_ENCODER} in {listed}?",
        "summary": (
            f"Words of {learned} English sentences and their translations were linked by machine, and by "
            f"these links {DEMO_ENCODER} was aligned: each language centred, or rotated onto English. Before "
            f"and after, it had to find the translations of words in {scored_count()} other sentences, both "
            f"ways: {counts['scored']:,} of {counts['links']:,} links made by hand, no word pairs that it "
            "had seen."
        ),
        "next": [{"text": text, "command": line} for text, line in OWN_BITEXT],
    }


# ---------------------------------------------------------------------------------------------- world


def _on_the_world(folder: Path, seed: int, tell: Tell) -> Path:
    tell(command("world", out=folder / "made", seed=seed))
    made = world(folder / "made", seed=seed)
    text, links = made / "text" / "en-far.tsv", folder / "links"
    split: dict[str, Any] = {
        "languages": ("en", "far"),
        "tokenised": True,
        "dev": 500,
        "test": 500,
        "out": links,
        "seed": seed,
    }
    tell(command("link", text, **split))
    link(text, **split)
    encoders = [str(made / "encoder")]
    for method in WORLD_METHODS:
        told: dict[str, Any] = {"method": method, "out": folder / method, "seed": seed}
        tell(command("align", encoder=encoders[0], pairs=links / "train", **told))
        align(encoders[0], links / "train", **told)
        encoders.append(str(folder / method))
    # Static vectors know no context, so that of the sentence is added. The world is small, so nearly all its
    # words are seen in training: seen and unseen are told apart in the breakdown.
    given: dict[str, Any] = {"sentence_augmented": True, "include_seen": True, "seed": seed}
    labels, out = ["count vectors", *WORLD_METHODS], folder / "words"
    tell(command("measure words", encoder=encoders, label=labels, pairs=links / "test", out=out, **given))
    measure_words(encoders, links / "test", labels=labels, out=out, **given)
    tell(command("report", out))
    return report(out)


#: What a command need not say.
USUAL: Mapping[str, object] = {"seed": 0, "device": "auto"}


def command(verb: str, *arguments: object, **options: object) -> str:
    """The command line with these options, but for usual ones.

    Lists are repeated, tuples follow their option, flags stand alone.

    >>> command("link", "a b.tsv", languages=("en", "de"), pairs=["x", "y"], tokenised=True, seed=0)
    "calque link 'a b.tsv' --languages en de --pairs x --pairs y --tokenised"
    """
    words = ["calque", *verb.split(), *map(str, arguments)]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if name in USUAL and value == USUAL[name]:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, tuple):
            words += [flag, *map(str, value)]
        else:
            for one in value if isinstance(value, list) else [value]:
                words += [flag, str(one)]
    return shlex.join(words)
