"""Words of two languages on one plane, in every encoder the same words, and what the picture is worth.

A picture convinces easily, so figures stand beside it: how far neighbours on the plane are neighbours in
truth, and of how many words the nearest one in truth is of the other language, or the very one it is linked
to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from calque.errors import BadInput, BadSetting
from calque.geometry.neighbours import unit_rows
from calque.geometry.projection import Method, nearest, project, trustworthiness, turned_onto
from calque.measure.breakdown import DIRECTIONS
from calque.measure.examples import commonest, in_sentence
from calque.measure.scoring import Measurement, Scorer, by_sentence, check_languages, layers_of
from calque.progress import bar
from calque.types import (
    Doubles,
    Encoder,
    Flags,
    Longs,
    Pooling,
    Result,
    Sentences,
    WordIndex,
    WordPairs,
)

TASK = "projection"
#: What is told of each point: its share of the picture's trustworthiness, and who is nearest in truth.
TRUST, OTHER, LINK = "trustworthiness", "nearest in the other language", "nearest is the link"
NEIGHBOURS = 10
#: The commonest types that make up this share of the running words are not chosen by themselves.
_COMMON = 0.45


@dataclass(frozen=True)
class ProjectionOptions:
    """Which words are drawn, how many times each, and how.

    Without `words`, they are the `types` most frequent source words that are not among the commonest. The
    perplexity of t-SNE is 30 by default, less where there are few points.
    """

    words: tuple[str, ...] = ()
    types: int = 12
    occurrences: int = 15
    method: Method = Method.TSNE
    perplexity: float | None = None
    pooling: Pooling = "mean"
    rounds: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("types", "occurrences", "rounds"):
            if getattr(self, name) < 1:
                raise BadSetting(f"{name} is {getattr(self, name)}", remedy="1 or more")
        if self.pooling not in get_args(Pooling):
            raise BadSetting(f"unknown pooling {self.pooling!r}", remedy="one of first, last, mean")


@dataclass(frozen=True, eq=False)
class Drawn:
    """The links that are drawn, and the chosen word that each belongs to. Shape: group (links,)."""

    pairs: WordPairs
    group: NDArray[np.str_]


def projection(
    encoders: Mapping[str, Encoder],
    pairs: WordPairs,
    layers: Mapping[str, Sequence[int]] | Sequence[int],
    *,
    options: ProjectionOptions = ProjectionOptions(),
    recipe: str = "",
) -> Measurement:
    """Both words of the chosen links in every encoder, on planes that are turned to lie as the first does.

    A link that one of the encoders could not see is drawn in none of them.
    """
    chosen = layers_of(encoders, layers)
    check_languages(encoders, pairs.languages)
    asked = choose_links(pairs, options)
    spaces, seen = _encode(encoders, asked.pairs, chosen, options)
    drawn = Drawn(asked.pairs.keep(seen), asked.group[seen])
    planes: dict[tuple[str, int], Doubles] = {}
    fared: dict[str, dict[tuple[str, int], Doubles]] = {TRUST: {}, OTHER: {}, LINK: {}}
    with bar("projection", len(spaces), "layers") as advance:
        for at, space in spaces.items():
            plane = project(space, options.method, perplexity=options.perplexity, seed=options.seed)
            planes[at] = turned_onto(plane, next(iter(planes.values()), plane))
            for metric, values in _points(space, plane).items():
                fared[metric][at] = values.reshape(2, -1)
            advance(1)
    scorer = _scorer(encoders, pairs, drawn.pairs, options, recipe)
    parts = [_metric(scorer, metric).measurement(values) for metric, values in fared.items()]
    return Measurement(
        [result for part in parts for result in part.results],
        {key: items for part in parts for key, items in part.items.items()},
        {
            "points": 2 * len(drawn.group),
            "words": len(np.unique(drawn.group)),
            "no vector": len(asked.group) - len(drawn.group),
        },
        {"projections": [_picture(drawn, plane, at, options) for at, plane in planes.items()]},
    )


# --------------------------------------------------------------------------------------- which words


def choose_links(pairs: WordPairs, options: ProjectionOptions) -> Drawn:
    """Links of the chosen words, of each so many from all over the text.

    Words without letters and links between equal strings are not drawn.
    """
    known: dict[str, int] = {}
    types = np.array(
        [known.setdefault(w.casefold(), len(known)) for w in pairs.bitext.source.vocabulary], int
    )
    letters = np.array([any(map(str.isalpha, name)) for name in known], bool)
    sides = types[pairs.source_ids], types[pairs.target_ids]
    usable = letters[sides[0]] & letters[sides[1]] & (pairs.source_ids != pairs.target_ids)
    if options.words:
        wanted = _named(options.words, known, sides, usable)
    else:
        running = np.bincount(types[pairs.bitext.source.ids], minlength=len(known))
        wanted = _frequent(list(known), sides[0], usable & ~commonest(running, _COMMON)[sides[0]], options)
    if not wanted:
        raise BadInput("no links to draw", remedy="give more linked sentences, or name words")
    group = {row: word for word, links in wanted.items() for row in _spread(links, options.occurrences)}
    kept = pairs.keep(np.array(sorted(group)))
    return Drawn(kept.sentences(np.unique(kept.sentence)), np.array([group[row] for row in sorted(group)]))


def _frequent(
    names: Sequence[str], source: Longs, usable: Flags, options: ProjectionOptions
) -> dict[str, list[int]]:
    """The links of the source types that have most of them."""
    counts = np.bincount(source[usable], minlength=len(names))
    order = np.argsort(-counts, kind="stable")[: options.types]
    return {names[i]: np.flatnonzero(usable & (source == i)).tolist() for i in order if counts[i]}


def _named(
    words: Sequence[str], known: Mapping[str, int], sides: tuple[Longs, Longs], usable: Flags
) -> dict[str, list[int]]:
    """The links of these words of either language."""
    found = {}
    for word in dict.fromkeys(word.casefold() for word in words):
        number = known.get(word, -1)
        links = np.flatnonzero(usable & ((sides[0] == number) | (sides[1] == number))).tolist()
        if not links:
            linked = np.unique(np.concatenate([side[usable] for side in sides]))
            names = list(known)
            near = get_close_matches(word, [names[i] for i in linked.tolist()], 1)
            remedy = f"did you mean {near[0]}?" if near else "give a word of the text that is linked"
            raise BadInput(f"no link of {word!r} in these pairs", remedy=remedy)
        found[word] = links
    return found


def _spread(links: Sequence[int], most: int) -> list[int]:
    """At most so many, evenly spaced."""
    at = np.linspace(0, len(links) - 1, min(most, len(links))).round().astype(int)
    return [links[i] for i in at]


# ------------------------------------------------------------------------------------------- vectors


def _encode(
    encoders: Mapping[str, Encoder],
    pairs: WordPairs,
    layers: Mapping[str, Sequence[int]],
    options: ProjectionOptions,
) -> tuple[dict[tuple[str, int], Doubles], Flags]:
    """Source words then target words at unit length, by encoder and layer, and which links all encoders see.

    Shape: each (2 links seen, d), and (links,).
    """
    found = {
        label: [
            encoder.word_vectors(
                side, WordIndex(pairs.sentence, word), layers=layers[label], pooling=options.pooling
            )
            for side, word in _sides(pairs)
        ]
        for label, encoder in encoders.items()
    }
    seen = np.logical_and.reduce([side.present for sides in found.values() for side in sides])
    if not seen.any():
        raise BadInput("an encoder sees none of the chosen words", remedy="choose others, or other encoders")
    spaces = {}
    for label, layer in [(name, layer) for name in found for layer in layers[name]]:
        rows = [side.layer(layer)[seen[side.present]] for side in found[label]]
        spaces[label, layer] = np.asarray(unit_rows(np.concatenate(rows)), np.float64)
    return spaces, seen


def _sides(pairs: WordPairs) -> tuple[tuple[Sentences, NDArray[Any]], tuple[Sentences, NDArray[Any]]]:
    return (pairs.bitext.source, pairs.source), (pairs.bitext.target, pairs.target)


def _points(space: Doubles, plane: Doubles) -> dict[str, Doubles]:
    """How every point fares, source words first.

    Shape: space (points, d), plane (points, 2), each value (points,).
    """
    links, near = len(space) // 2, nearest(space)
    own = np.arange(len(space))
    return {
        TRUST: trustworthiness(space, plane, min(NEIGHBOURS, (len(space) - 1) // 2)),
        OTHER: ((near < links) != (own < links)).astype(np.float64),
        LINK: (near == (own + links) % (2 * links)).astype(np.float64),
    }


# ------------------------------------------------------------------------------------------- records


def _picture(drawn: Drawn, plane: Doubles, at: tuple[str, int], options: ProjectionOptions) -> dict[str, Any]:
    told = [
        {"language": side.language, **in_sentence(side, int(sentence), int(word))}
        for side, words in _sides(drawn.pairs)
        for sentence, word in zip(drawn.pairs.sentence, words, strict=True)
    ]
    places = [{"x": float(f"{x:.5g}"), "y": float(f"{y:.5g}")} for x, y in plane.tolist()]
    groups = [{"group": str(word)} for word in (*drawn.group, *drawn.group)]
    return {
        "title": f"{len(np.unique(drawn.group))} words and their translations",
        "languages": list(drawn.pairs.languages),
        "layer": at[1],
        "method": options.method.value,
        "encoder": at[0],
        "points": [place | one | group for place, one, group in zip(places, told, groups, strict=True)],
    }


def _scorer(
    encoders: Mapping[str, Encoder],
    pairs: WordPairs,
    drawn: WordPairs,
    options: ProjectionOptions,
    recipe: str,
) -> Scorer:
    keys = {"line": drawn.bitext.line[drawn.sentence], "source": drawn.source, "target": drawn.target}
    columns = {name: np.asarray(column, np.int64) for name, column in keys.items()}
    cluster, names = by_sentence(drawn.bitext, drawn.sentence)
    return Scorer(
        Result(TASK, "", 0.0, pairs.languages, "", variant=options.method.value, seed=options.seed),
        {label: encoder.fingerprint for label, encoder in encoders.items()},
        columns,
        cluster,
        {
            "method": options.method.value,
            "perplexity": options.perplexity if options.method is Method.TSNE else None,
            "pooling": options.pooling,
            "linker": pairs.linker or None,
            "data": pairs.fingerprint[:12],
            "recipe": recipe[:12] or None,
        },
        rounds=options.rounds,
        names=names,
    )


def _metric(scorer: Scorer, metric: str) -> Scorer:
    """The picture is of both languages, so only who is nearest can be asked of each."""
    ways = {"both": DIRECTIONS["both"]} if metric == TRUST else DIRECTIONS
    return replace(scorer, about=replace(scorer.about, metric=metric), ways=ways)
