"""`calque score`: how sure it is that the two sides of each line of a bitext are translations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from calque.errors import BadInput
from calque.files import is_done, read_json, write_json, write_text
from calque.geometry.mining import pair_scores
from calque.pipeline.measuring.common import COUNTS, Many, each, torch_device
from calque.pipeline.pairing import PairingRecipe, reachable_threshold, sides_of, two_codes
from calque.pipeline.runs import Running, input_digests, running
from calque.text.bitext import read_bitext
from calque.text.lines import read_lines
from calque.text.readers import BitextFormat, read_pairs
from calque.types import Doubles, Encoder, Flags

SCORES, KEPT = "scores.txt", "kept.tsv"
QUANTILES, ENDS = "quantiles.json", "ends.json"
_SHARES, _ENDS = (5, 25, 50, 75, 95), 20
#: What a line scores that is empty on one side, or of which the encoder knows no word.
NOTHING = -1.0


class ScoreRecipe(PairingRecipe):
    """Settings of `calque score`."""

    verb: ClassVar[str] = "score"

    paths: list[str]
    format: BitextFormat | None = None


@dataclass(frozen=True)
class ScoreRun:
    """What `score` wrote: scores.txt with one score a line of the bitext, and kept.tsv where asked for.

    `ends` are a few of the best lines and of the worst, as score, source, target; best first.
    """

    folder: Path
    counts: Mapping[str, int]
    quantiles: Mapping[str, float]
    ends: Sequence[tuple[float, str, str]]

    @cached_property
    def scores(self) -> Doubles:
        """One score a line of the bitext, -1 where there is nothing to score. Shape: (lines,)."""
        return np.array([float(line) for line in read_lines(self.folder / SCORES)])


def score_bitext(
    paths: Many,
    languages: tuple[str, str],
    encoder: str,
    *,
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> ScoreRun:
    """Score every line of a bitext against all others, in its order; settings as in `ScoreRecipe`."""
    recipe = ScoreRecipe.build(
        paths=each(paths), languages=two_codes(languages), encoder=str(encoder), **settings
    )
    inputs, opened = input_digests(recipe.paths), recipe.opened(device)
    recipe = recipe.knowing(inputs, opened)
    folder = Path(out)
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        with running(recipe, folder, overwrite=overwrite) as run:
            _score(recipe, opened, run)
    artifacts = folder / "artifacts"
    ends = [(score, source, target) for score, source, target in read_json(artifacts / ENDS)]
    quantiles = sorted(read_json(artifacts / QUANTILES).items(), key=lambda item: item[1])
    return ScoreRun(folder, read_json(artifacts / COUNTS), dict(quantiles), ends)


def _score(recipe: ScoreRecipe, encoder: Encoder, run: Running) -> None:
    with run.stage("read"):
        bitext = read_bitext(
            recipe.paths,
            recipe.languages,
            format=recipe.format,
            tokenised=not recipe.words,
            cleaning=None,
            limit=recipe.limit,
        )
    with run.stage("encode"):
        where = [" ".join(recipe.paths)] * 2
        source, target = sides_of(recipe, encoder, (bitext.source, bitext.target), where)
    with run.stage("score"):
        rows = np.stack([side.row[side.held.which] for side in (source, target)])
        known: Flags = np.logical_and(*(rows >= 0))
        if not known.any():
            raise BadInput("no line has two sides to score", where=bitext.origin)
        scores = np.full(len(bitext), NOTHING)
        scores[known] = pair_scores(
            source.vectors,
            target.vectors,
            rows[:, known],
            margin=recipe.margin,
            k=recipe.neighbours,
            device=torch_device({"": encoder}),
        )
    write_text(run.folder / SCORES, "".join(f"{score:.6f}\n" for score in scores.tolist()))
    counts = {
        **source.counts("source"),
        **target.counts("target"),
        "lines": len(bitext),
        "scored": int(known.sum()),
    }
    artifacts = run.folder / "artifacts"
    if recipe.threshold is not None or recipe.keep is not None:
        kept = _kept(recipe, scores, known)
        _write_kept(recipe, run.folder, kept)
        counts["kept"] = int(kept.sum())
    shares = np.quantile(scores[known], np.array(_SHARES) / 100)
    write_json(artifacts / COUNTS, counts)
    write_json(artifacts / QUANTILES, {f"{p}%": round(v, 6) for p, v in zip(_SHARES, shares, strict=True)})
    write_json(artifacts / ENDS, _ends(recipe, scores, known))


def _ends(recipe: ScoreRecipe, scores: Doubles, known: Flags) -> list[tuple[float, str, str]]:
    """The best lines and the worst, for a person to read."""
    order = np.flatnonzero(known)[np.argsort(-scores[known], kind="stable")]
    chosen = order if len(order) <= 2 * _ENDS else np.concatenate([order[:_ENDS], order[-_ENDS:]])
    texts = {at: text for at, text in enumerate(_texts(recipe)) if at in set(chosen.tolist())}
    return [(round(float(scores[at]), 6), *texts[at]) for at in chosen.tolist()]


def _kept(recipe: ScoreRecipe, scores: Doubles, known: Flags) -> Flags:
    """Lines that reach the threshold, the best of them; of equals the earlier. Shape: all (lines,)."""
    reached = np.flatnonzero(known & (scores >= reachable_threshold(recipe, scores[known])))
    best = reached[np.argsort(-scores[reached], kind="stable")][: recipe.keep]
    kept = np.zeros(len(scores), np.bool_)
    kept[best] = True
    return kept


def _write_kept(recipe: ScoreRecipe, folder: Path, kept: Flags) -> None:
    """The lines that are kept, in the order of the file."""
    with (folder / KEPT).open("w", encoding="utf-8", newline="\n") as handle:
        for texts, stays in zip(_texts(recipe), kept.tolist(), strict=True):
            if stays:
                handle.write("\t".join(texts) + "\n")


def _texts(recipe: ScoreRecipe) -> Iterator[tuple[str, str]]:
    """The lines of the bitext as they are written; spaces and tabs inside a sentence are one space each."""
    for pair in read_pairs(recipe.paths, recipe.languages, format=recipe.format, limit=recipe.limit):
        yield " ".join(pair.source.split()), " ".join(pair.target.split())
