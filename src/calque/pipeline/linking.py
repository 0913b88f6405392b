"""`calque link`: a bitext to linked words, split into train, dev and test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from calque.encoders.bylanguage import LanguageEncoders
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.open import open_encoder
from calque.errors import BadInput, BadSetting
from calque.files import is_done, read_json, write_json
from calque.links.filters import FilterStep, apply_filters, parse_filter
from calque.links.gold import LinkScores, score_links
from calque.links.linker import Linker
from calque.links.pharaoh import read_gold, read_links, write_links
from calque.links.similarity import SimilarityLinker, SimilarityMethod
from calque.links.statistical import StatisticalLinker, StatisticalModel, TrainedLinker, load_linker
from calque.links.symmetrise import Symmetrisation
from calque.pipeline.runs import EncoderRecipe, Running, input_digests, links_grid, running
from calque.progress import say
from calque.recipe import parse_layers, suggestion
from calque.stats.signature import signature
from calque.store import load_pairs, load_results, save_pairs, save_results
from calque.text.bitext import read_bitext
from calque.text.clean import Cleaning
from calque.text.languages import check_language
from calque.text.readers import BitextFormat, holds_links
from calque.types import Bitext, Encoder, Result, WordPairs

SPLITS = ("train", "dev", "test")
LINKERS = tuple(member.value for member in StatisticalModel)
SIMILAR = tuple(member.value for member in SimilarityMethod)


class LinkRecipe(EncoderRecipe):
    """Settings of `calque link`.

    `linker` is a statistical model (eflomal, fast-align, hmm, ibm1 … ibm4) or a way to link by an encoder's
    similarities (mutual, iterative, softmax). The last `test` pairs and the `dev` before them are held out.
    """

    verb: ClassVar[str] = "link"
    places: ClassVar[frozenset[str]] = frozenset({"paths", "links", "gold", "trained", "encoder"})

    paths: list[str]
    languages: tuple[str, str]
    format: BitextFormat | None = None
    tokenised: bool = False
    max_words: int = Field(100, ge=1)
    max_ratio: float = Field(9.0, ge=0)
    keep_duplicates: bool = False
    limit: int | None = Field(None, ge=1)

    linker: str = "eflomal"
    symmetrise: Symmetrisation = Symmetrisation.INTERSECTION
    iterations: int | None = None
    encoder: str | None = None
    layer: str = "-5"
    threshold: float = 0.001
    subwords: bool = False
    links: str | None = None
    one_based: bool = False
    trained: str | None = None
    keep_linker: bool = False

    filters: tuple[str, ...] = ()
    dev: int = Field(0, ge=0)
    test: int = Field(0, ge=0)
    gold: str | None = None
    plain: bool = False


@dataclass(frozen=True, eq=False)
class LinkRun:
    """What `link` wrote: the pairs of each split, what was dropped, and scores against gold links."""

    folder: Path
    splits: Mapping[str, WordPairs]
    dropped: Mapping[str, int]
    filters: Sequence[FilterStep]
    scores: Sequence[Result]


def link(
    paths: str | Path | Sequence[str | Path],
    languages: tuple[str, str],
    *,
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> LinkRun:
    """Link the words of a bitext and write the pairs; settings are those of `LinkRecipe`.

    The linker sees the whole text; `dev` and `test` are then cut off its end.
    """
    files = [str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    codes = (check_language(languages[0]), check_language(languages[1]))
    recipe = LinkRecipe.build(paths=files, languages=codes, **settings)
    check_links(recipe)
    encoder = None if recipe.encoder is None else open_encoder(recipe.encoder, recipe.options(device))
    recipe = recipe.model_copy(update={"inputs": _inputs(recipe, encoder)})
    folder = Path(out)
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        for path in files:
            if recipe.links is None and path != recipe.gold and holds_links(path):
                say(f"{path}: the word links in its third column are left aside: --links {path} takes them")
        with running(recipe, folder, overwrite=overwrite) as run:
            _run(recipe, run, encoder)
    return _load(folder)


def check_links(recipe: LinkRecipe) -> None:
    """What can be told before anything is read."""
    for name in recipe.filters:
        parse_filter(name)
    if recipe.linker not in (*LINKERS, *SIMILAR):
        raise BadSetting(
            f"unknown linker {recipe.linker!r}", remedy=suggestion(recipe.linker, [*LINKERS, *SIMILAR])
        )
    if recipe.linker in SIMILAR and recipe.encoder is None:
        raise BadSetting(f"linker {recipe.linker} needs an encoder", remedy="name it with --encoder")
    if recipe.languages[0] == recipe.languages[1]:
        raise BadSetting(f"source and target are both {recipe.languages[0]}", remedy="give two languages")
    if len(set(recipe.paths)) < len(recipe.paths):
        raise BadInput(
            "given twice", where=recipe.paths[0], remedy="give two line-aligned files, or one bitext"
        )
    if recipe.gold in recipe.paths and not recipe.tokenised:
        raise BadSetting("the gold links count the file's own words", remedy="add --tokenised")
    if recipe.trained is not None and not Path(recipe.trained).is_dir():
        raise BadInput("no such folder", where=recipe.trained, remedy="make it with --keep-linker")


def _inputs(recipe: LinkRecipe, encoder: Encoder | None) -> dict[str, str]:
    folder = Path(recipe.trained or "")
    kept = sorted(file for file in folder.iterdir() if file.is_file()) if recipe.trained else []
    extra = [path for path in (recipe.links, recipe.gold) if path is not None]
    found = input_digests([*recipe.paths, *extra, *kept])
    return found | ({} if encoder is None else {"encoder": encoder.fingerprint})


def _run(recipe: LinkRecipe, run: Running, encoder: Encoder | None) -> None:
    with run.stage("read"):
        bitext = _read(recipe, encoder)
    # Links made elsewhere may all be there to score with.
    if recipe.dev + recipe.test >= len(bitext) + (recipe.links is not None):
        raise BadSetting(
            f"--dev {recipe.dev} and --test {recipe.test} leave nothing to train on",
            remedy=f"the corpus holds {len(bitext)} pairs after cleaning",
        )
    with run.stage("link"):
        pairs = _link(recipe, run, bitext, encoder)
    scores: list[Result] = []
    if recipe.gold is not None:
        gold = read_gold(Path(recipe.gold), bitext, one_based=recipe.one_based)
        scores = _score_results(score_links(pairs, gold), pairs, recipe)
    kept, steps = apply_filters(pairs, recipe.filters, seed=recipe.seed)
    if not len(kept):
        raise BadInput(
            "no links left", where=bitext.origin, remedy="more text, another linker, or fewer filters"
        )
    _write_splits(recipe, run.folder, kept)
    save_results(run.folder / "results.jsonl", scores)
    counts = {
        "kept": len(bitext),
        "dropped": dict(bitext.dropped),
        "links": len(kept),
        "filters": [vars(step) for step in steps],
    }
    write_json(run.folder / "artifacts" / "counts.json", counts)
    write_json(run.folder / "artifacts" / "links.json", links_grid(kept))


def _read(recipe: LinkRecipe, encoder: Encoder | None) -> Bitext:
    bitext = read_bitext(
        recipe.paths,
        recipe.languages,
        format=recipe.format,
        tokenised=recipe.tokenised,
        cleaning=Cleaning(recipe.max_words, recipe.max_ratio, not recipe.keep_duplicates),
        limit=recipe.limit,
    )
    if not recipe.subwords:
        return bitext
    if isinstance(encoder, LanguageEncoders):
        raise BadSetting(
            f"--subwords links the pieces of one encoder, and {encoder.name} has others for each language",
            remedy="link words",
        )
    if not isinstance(encoder, HuggingFaceEncoder):
        raise BadSetting("--subwords links an encoder's own pieces", remedy="give a Hugging Face --encoder")
    return encoder.bitext_pieces(bitext)


def _link(recipe: LinkRecipe, run: Running, bitext: Bitext, encoder: Encoder | None) -> WordPairs:
    if recipe.links is not None:
        return read_links(Path(recipe.links), bitext, one_based=recipe.one_based)
    if recipe.trained is not None:
        return load_linker(Path(recipe.trained)).link(bitext)
    linker = make_linker(recipe, encoder)
    if not recipe.keep_linker:
        return linker.link(bitext)
    if not isinstance(linker, StatisticalLinker):
        raise BadSetting("--keep-linker keeps a trained statistical linker", remedy="leave it out")
    trained: TrainedLinker = linker.train(bitext)
    trained.save(run.folder / "linker")
    return trained.training_links()


def make_linker(recipe: LinkRecipe, encoder: Encoder | None) -> Linker:
    """The linker that a recipe names."""
    if encoder is None or recipe.linker in LINKERS:
        return StatisticalLinker(
            StatisticalModel(recipe.linker), recipe.symmetrise, recipe.seed, recipe.iterations
        )
    (layer,) = parse_layers(recipe.layer, encoder.depth)
    return SimilarityLinker(encoder, layer, SimilarityMethod(recipe.linker), threshold=recipe.threshold)


def _score_results(scores: LinkScores, pairs: WordPairs, recipe: LinkRecipe) -> list[Result]:
    made = signature(task="links", linker=pairs.linker, gold=scores.sentences, recipe=recipe.digest()[:12])
    return [
        Result(
            task="links",
            metric=name,
            value=getattr(scores, name),
            languages=pairs.languages,
            encoder=pairs.linker,
            count=scores.sentences,
            seed=recipe.seed,
            signature=made,
        )
        for name in ("precision", "recall", "f1", "aer")
    ]


def _write_splits(recipe: LinkRecipe, folder: Path, pairs: WordPairs) -> None:
    total = len(pairs.bitext)
    train, dev = total - recipe.dev - recipe.test, total - recipe.test
    for name, first, last in zip(SPLITS, (0, train, dev), (train, dev, total), strict=True):
        if first == last:
            continue
        part = pairs.sentences(np.arange(first, last))
        if not len(part):
            raise BadInput(f"no links left in {name}", remedy="fewer filters, or a larger split")
        save_pairs(folder / name, part)
        if recipe.plain:
            write_links(folder / f"{name}.links", part, scored=True)
            _write_text(folder / f"{name}.tsv", part.bitext)


def _write_text(path: Path, bitext: Bitext) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as handle:
        for source, target in zip(bitext.source, bitext.target, strict=True):
            # A treebank's word may hold a space ("5 000"); in a plain file it must stay one word.
            sides = (" ".join(word.replace(" ", "␣") for word in words) for words in (source, target))
            handle.write("\t".join(sides) + "\n")


def _load(folder: Path) -> LinkRun:
    counts = read_json(folder / "artifacts" / "counts.json")
    return LinkRun(
        folder,
        {name: load_pairs(folder / name) for name in SPLITS if (folder / name).is_dir()},
        counts["dropped"],
        [FilterStep(**step) for step in counts["filters"]],
        load_results(folder / "results.jsonl"),
    )
