"""`calque mine`: translations in two texts that are not aligned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from calque.errors import BadInput
from calque.files import is_done, read_json, write_json, write_text
from calque.geometry.mining import Mined, Strategy, mine_pairs
from calque.measure.mined import score_mined
from calque.pipeline.measuring.common import COUNTS, default_labels, torch_device
from calque.pipeline.pairing import PairingRecipe, Side, reachable_threshold, sides_of, two_codes
from calque.pipeline.runs import Running, input_digests, running
from calque.stats.metrics import Cut, Scores
from calque.stats.signature import signature
from calque.store import load_results, save_results
from calque.text.bitext import read_sentences
from calque.text.conllu import read_conllu
from calque.text.distinct import Distinct
from calque.text.lines import bare_suffix, read_lines
from calque.text.readers import TREEBANKS
from calque.text.words import tokeniser
from calque.types import Encoder, Longs, Result, Sentences

TASK = "mining"
PAIRS, LINES, BEST = "pairs.tsv", "lines.tsv", "best.json"


class MineRecipe(PairingRecipe):
    """Settings of `calque mine`; with `gold`, what was found is scored."""

    verb: ClassVar[str] = "mine"

    paths: tuple[str, str]
    strategy: Strategy = Strategy.MAX
    gold: str | None = None


@dataclass(frozen=True)
class MineRun:
    """What `mine` wrote: pairs.tsv (score, source, target), lines.tsv (score and line numbers), best first.

    `results` are precision, recall and F1 against gold pairs, as mined and at the best threshold.
    """

    folder: Path
    counts: Mapping[str, int]
    results: Sequence[Result]
    best: Cut | None

    @cached_property
    def pairs(self) -> list[tuple[float, str, str]]:
        """Score, source and target of every pair."""
        rows = (line.split("\t") for line in read_lines(self.folder / PAIRS))
        return [(float(score), source, target) for score, source, target in rows]


def mine(
    source: str | Path,
    target: str | Path,
    languages: tuple[str, str],
    encoder: str,
    *,
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> MineRun:
    """Find translations in two texts, one sentence a line; settings as in `MineRecipe`."""
    recipe = MineRecipe.build(
        paths=(str(source), str(target)), languages=two_codes(languages), encoder=str(encoder), **settings
    )
    read = [*recipe.paths, *([recipe.gold] if recipe.gold else [])]
    inputs, opened = input_digests(read), recipe.opened(device)
    recipe = recipe.knowing(inputs, opened)
    folder = Path(out)
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        with running(recipe, folder, overwrite=overwrite) as run:
            _mine(recipe, opened, run)
    artifacts, results = folder / "artifacts", load_results(folder / "results.jsonl")
    best = read_json(artifacts / BEST)
    held = Cut(best["threshold"], best["kept"], Scores(**best["scores"])) if best else None
    return MineRun(folder, read_json(artifacts / COUNTS), results, held)


def _mine(recipe: MineRecipe, encoder: Encoder, run: Running) -> None:
    with run.stage("read"):
        texts = [
            read_sentences(path, language, tokenised=not recipe.words, limit=recipe.limit)
            for path, language in zip(recipe.paths, recipe.languages, strict=True)
        ]
        gold = None if recipe.gold is None else _read_gold(recipe, texts)
    with run.stage("encode"):
        source, target = sides_of(recipe, encoder, texts, recipe.paths)
    with run.stage("search"):
        found = mine_pairs(
            source.vectors,
            target.vectors,
            margin=recipe.margin,
            strategy=recipe.strategy,
            k=recipe.neighbours,
            device=torch_device({"": encoder}),
        )
    found = Mined(source.sentence[found.source], target.sentence[found.target], found.score)
    kept = found.keep(found.score >= reachable_threshold(recipe, found.score)).keep(slice(recipe.keep))
    _write_pairs(recipe, run.folder, kept, source, target)
    counts = {
        **source.counts("source"), **target.counts("target"), "found": len(found), "kept": len(kept),
    }  # fmt: skip
    results, best = [], {}
    if gold is not None:
        scores = score_mined(found, len(kept), gold.pairs, _about(recipe, encoder))
        results, best = scores.results, asdict(scores.best)
        counts |= {"gold pairs": len(gold.pairs), "gold pairs not in the text": gold.lost}
    save_results(run.folder / "results.jsonl", results)
    write_json(run.folder / "artifacts" / COUNTS, counts)
    write_json(run.folder / "artifacts" / BEST, best)


def _about(recipe: MineRecipe, encoder: Encoder) -> Result:
    """What is scored, without a figure."""
    variant, layer = f"{recipe.margin}-{recipe.strategy}", recipe.one_layer(encoder)
    made_with = signature(
        task=TASK,
        variant=variant,
        neighbours=recipe.neighbours,
        encoder=encoder.fingerprint[:12],
        layer=layer,
        recipe=recipe.digest()[:12],
    )
    label = default_labels([recipe.encoder])[0]
    return Result(TASK, "", 0.0, recipe.languages, label, layer, variant, signature=made_with)


def _write_pairs(recipe: MineRecipe, folder: Path, mined: Mined, source: Side, target: Side) -> None:
    """Text as it stands in the files, from the lines where each sentence stands first."""
    lines = source.held.first[mined.source] + 1, target.held.first[mined.target] + 1
    texts = [_picked(path, set(at.tolist())) for path, at in zip(recipe.paths, lines, strict=True)]
    rows = list(zip(mined.score.tolist(), *(at.tolist() for at in lines), strict=True))
    text = "".join(f"{score:.6f}\t{texts[0][i]}\t{texts[1][j]}\n" for score, i, j in rows)
    write_text(folder / PAIRS, text)
    write_text(folder / LINES, "".join(f"{score:.6f}\t{i}\t{j}\n" for score, i, j in rows))


def _picked(path: str, wanted: set[int]) -> dict[int, str]:
    """Some lines of a text by number; spaces and tabs inside are one space each."""
    return {number: " ".join(line.split()) for number, line in enumerate(_lines(path), 1) if number in wanted}


def _lines(path: str) -> Iterator[str]:
    """Sentences as they are written."""
    if bare_suffix(path) in TREEBANKS:
        return (tree.text or " ".join(tree.words) for tree in read_conllu(path))
    return read_lines(path)


# ---------------------------------------------------------------------------------------------- gold


@dataclass(frozen=True, eq=False)
class _Gold:
    """Pairs of sentences that are translations, and how many more were given that are not in the text.

    Shape: pairs (n, 2), numbers among the different sentences of either side.
    """

    pairs: Longs
    lost: int


def _read_gold(recipe: MineRecipe, texts: Sequence[Sentences]) -> _Gold:
    """Gold pairs, a line each: two line numbers counted from 1, or two sentences, with a tab between."""
    path = str(recipe.gold)
    rows = [(number, line.split("\t")) for number, line in enumerate(read_lines(path), 1) if line.strip()]
    if not rows:
        raise BadInput("no pairs here", where=path)
    for number, row in rows:
        if len(row) != 2:
            raise BadInput(
                f"{len(row)} columns", where=path, line=number, remedy="two line numbers or two sentences"
            )
    numbered = all(field.strip().isdecimal() for _, row in rows for field in row)
    find = _by_line if numbered else _by_text
    pairs = find(recipe, texts, rows)
    there = (pairs >= 0).all(1)
    if not there.any():
        raise BadInput(
            "no pair of it is in the two texts", where=path, remedy="check the order of its columns"
        )
    return _Gold(np.unique(pairs[there], axis=0), int((~there).sum()))


_Rows = list[tuple[int, list[str]]]


def _by_line(recipe: MineRecipe, texts: Sequence[Sentences], rows: _Rows) -> Longs:
    lines = np.array([[int(field) for field in row] for _, row in rows], np.int64) - 1
    for (number, row), at in zip(rows, lines.tolist(), strict=True):
        for field, place, text, path in zip(row, at, texts, recipe.paths, strict=True):
            if place < 0 or (place >= len(text) and recipe.limit is None):
                raise BadInput(
                    f"line {field.strip()} of {path}, which has {len(text)}", where=recipe.gold, line=number
                )
    columns = []
    for text, at in zip(texts, lines.T, strict=True):
        inside = (at >= 0) & (at < len(text))
        columns.append(np.where(inside, Distinct.of(text).which[np.where(inside, at, 0)], -1))
    return np.stack(columns, 1)


def _by_text(recipe: MineRecipe, texts: Sequence[Sentences], rows: _Rows) -> Longs:
    columns = []
    for side, (text, language) in enumerate(zip(texts, recipe.languages, strict=True)):
        split = tokeniser(language, tokenised=not recipe.words)
        known = {" ".join(text[first]): place for place, first in enumerate(Distinct.of(text).first.tolist())}
        columns.append([known.get(" ".join(split(row[side])), -1) for _, row in rows])
    return np.array(columns, np.int64).T
