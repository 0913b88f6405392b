"""Distances: are linked words nearer to each other than words that have nothing to do with each other?

Every link has two distances: between its own words, and between its source word and the target word of a link
in another sentence, drawn at random. All encoders see the same pairs. How well the two kinds can be told
apart is what AUC, overlap coefficient and d′ say, which do not depend on an encoder's scale; histograms do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from calque.errors import BadInput, BadSetting
from calque.measure.breakdown import Bins
from calque.measure.scoring import Measurement, Scorer, by_sentence, check_languages, layers_of
from calque.measure.vectors import check_sides
from calque.progress import bar
from calque.recipe import Choice
from calque.stats.separation import auc, d_prime, overlap, share
from calque.types import (
    Doubles,
    Encoder,
    Flags,
    Floats,
    Longs,
    Pooling,
    Result,
    Sentences,
    Unit,
    WordPairs,
    WordVectors,
)

TASK = "distances"
#: How many of the dimensions that differ most are asked for their share of the squared distance.
TOP = (10, 100)
BARS = 60

_ROWS = 1 << 12


class Distance(Choice):
    """How far two words are from each other.

    l2: the length of the difference of their vectors.
    cosine: the cosine of their vectors, which grows as they come nearer; vectors are brought to unit length.
    """

    L2 = "l2"
    COSINE = "cosine"


#: What a histogram's axis is called.
AXES = {Distance.L2: "L2 distance", Distance.COSINE: "cosine"}


@dataclass(frozen=True)
class DistanceOptions:
    """How to measure, and how to make intervals.

    `scaled` divides the distances of a histogram by the mean distance of unrelated words, encoder by encoder,
    so that encoders of different scale can be read on one axis; no figure depends on it. `seed` draws the
    unrelated words.
    """

    distance: Distance = Distance.L2
    scaled: bool = False
    pooling: Pooling = "mean"
    rounds: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise BadSetting(f"rounds is {self.rounds}", remedy="1 or more")
        if self.pooling not in get_args(Pooling):
            raise BadSetting(f"unknown pooling {self.pooling!r}", remedy="one of first, last, mean")
        if self.scaled and self.distance is Distance.COSINE:
            raise BadSetting("cosines are of one scale already", remedy="leave scaled out")


def distances(
    encoders: Mapping[str, Encoder],
    pairs: WordPairs,
    layers: Mapping[str, Sequence[int]] | Sequence[int],
    *,
    options: DistanceOptions = DistanceOptions(),
    recipe: str = "",
) -> Measurement:
    """Distances of every encoder at every layer asked for, each compared with the first at the same layer.

    Links of which an encoder could not see a word (cut off, or tokenised to nothing) take part for none.
    """
    chosen = layers_of(encoders, layers)
    check_languages(encoders, pairs.languages)
    vectors = {label: _encode(encoders[label], pairs, chosen[label], options) for label in encoders}
    drawn = _draw(pairs, list(vectors.values()), options.seed)
    links = _scorer(encoders, drawn.pairs, options, recipe)
    words = _of_words(links, drawn)
    parts, histograms = [], []
    with bar("distances", sum(map(len, chosen.values())), "layers") as advance:
        for layer in sorted({layer for layers in chosen.values() for layer in layers}):
            told = {}
            for label in (label for label in encoders if layer in chosen[label]):
                told[label] = _tell(label, layer, vectors[label], drawn, options)
                advance(1)
            parts += list(_figures(told, layer, links, words))
            histograms.append(_histogram(told, layer, pairs.languages, options))
    return Measurement(
        [result for part in parts for result in part.results],
        {key: items for part in parts for key, items in part.items.items()},
        {"links": len(pairs), "scored": len(drawn.pairs), "no vector": len(pairs) - len(drawn.pairs)},
        {"histograms": histograms},
    )


# -------------------------------------------------------------------------------------- what is drawn


def _encode(
    encoder: Encoder, pairs: WordPairs, layers: Sequence[int], options: DistanceOptions
) -> tuple[WordVectors, WordVectors]:
    source, target = (
        encoder.word_vectors(side, layers=layers, pooling=options.pooling)
        for side in (pairs.bitext.source, pairs.bitext.target)
    )
    return source, target


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The links that are scored, their words, and random ones.

    Shape: source, target, unrelated (links,): places of words in the text; random[side] (2, links): words of
    one language, of two different sentences.
    """

    pairs: WordPairs
    source: Longs
    target: Longs
    unrelated: Longs
    random: tuple[Longs, Longs]


def _draw(pairs: WordPairs, vectors: Sequence[tuple[WordVectors, WordVectors]], seed: int) -> _Drawn:
    """The pairs that all encoders are asked for, among the words that all of them can see."""
    bitext, rng = pairs.bitext, np.random.default_rng(seed)
    seen = [np.logical_and.reduce([both[i].present for both in vectors]) for i in (0, 1)]
    source = bitext.source.offsets[pairs.sentence] + pairs.source
    target = bitext.target.offsets[pairs.sentence] + pairs.target
    kept = np.flatnonzero(seen[0][source] & seen[1][target])
    if not len(kept):
        raise BadInput(
            f"no links left to score of {len(pairs)}: no encoder sees both words of one",
            where=bitext.origin or None,
            remedy="give more linked sentences, or words that every encoder knows",
        )
    left = pairs.keep(kept)
    sentence = left.sentence.astype(np.int64)
    if sentence[0] == sentence[-1]:
        raise BadInput(
            "links in one sentence only: there are no words of another to set them against",
            where=bitext.origin or None,
            remedy="give two linked sentences or more",
        )
    partner = _elsewhere(sentence, sentence, rng)
    random = tuple(_random(side, seen[i], len(left), rng) for i, side in enumerate(_sides(left)))
    return _Drawn(left, source[kept], target[kept], target[kept][partner], (random[0], random[1]))


def _sides(pairs: WordPairs) -> tuple[Sentences, Sentences]:
    return pairs.bitext.source, pairs.bitext.target


def _elsewhere(sentence: Longs, among: Longs, rng: np.random.Generator) -> Longs:
    """A random place in `among` of another sentence. Shape: sentence (n,), among (m,) in rising order."""
    first, last = (np.searchsorted(among, sentence, side) for side in ("left", "right"))
    drawn = rng.integers(0, len(among) - (last - first))
    return drawn + np.where(drawn >= first, last - first, 0)


def _random(side: Sentences, seen: Flags, count: int, rng: np.random.Generator) -> Longs:
    """Pairs of words of different sentences. Shape: (2, count)."""
    places = np.flatnonzero(seen)
    sentence = _sentence(side, places)
    one = rng.integers(0, len(places), count)
    return np.stack([places[one], places[_elsewhere(sentence[one], sentence, rng)]])


def _sentence(side: Sentences, places: Longs) -> Longs:
    """The sentence of each word, by its place in the text. Shape: (n,) to (n,)."""
    return np.searchsorted(side.offsets, places, "right") - 1


# -------------------------------------------------------------------------------------- the distances


@dataclass(frozen=True, eq=False)
class _Told:
    """One encoder's layer: how far linked and unrelated words are, and what else there is to say of them.

    Cosines are negative here, so that less is always nearer. Shape: linked, unrelated, squared (links,), each
    of top (links,): the part of the most different dimensions in `squared`; cosines (2, links) by language.
    """

    linked: Doubles
    unrelated: Doubles
    squared: Doubles
    top: dict[int, Doubles]
    cosines: Doubles


def _tell(
    label: str,
    layer: int,
    vectors: tuple[WordVectors, WordVectors],
    drawn: _Drawn,
    options: DistanceOptions,
) -> _Told:
    sides = [_Words(side.layer(layer), np.cumsum(side.present) - 1) for side in vectors]
    check_sides(sides[0].vectors, sides[1].vectors, label, layer, drawn.pairs.languages)
    units = [_Words(np.asarray(Unit().apply(side.vectors)), side.row) for side in sides]
    source, target = units if options.distance is Distance.COSINE else sides
    squared, by_dimension = _squares(source, target, drawn.source, drawn.target)
    if options.distance is Distance.COSINE:
        linked = -_products(source, target, drawn.source, drawn.target)
        unrelated = -_products(source, target, drawn.source, drawn.unrelated)
    else:
        linked = np.sqrt(squared)
        unrelated = np.sqrt(_squares(source, target, drawn.source, drawn.unrelated)[0])
    if np.ptp(linked) + np.ptp(unrelated) <= 1e-9 * np.abs(unrelated).max():
        raise BadInput(
            f"encoder {label!r} puts all words equally far apart at layer {layer}",
            remedy="leave this layer out",
        )
    most = np.argsort(-by_dimension, kind="stable")
    top = {
        count: _squares(source, target, drawn.source, drawn.target, most[:count])[0]
        for count in TOP
        if count < len(most)
    }
    cosines = np.stack([_products(side, side, *at) for side, at in zip(units, drawn.random, strict=True)])
    return _Told(linked, unrelated, squared, top, cosines)


@dataclass(frozen=True, eq=False)
class _Words:
    """Vectors of one side, and the row of each word of the text among them. Shape: (rows, d), (words,)."""

    vectors: Floats
    row: Longs

    def at(self, places: Longs) -> Doubles:
        return self.vectors[self.row[places]].astype(np.float64)


def _squares(
    x: _Words, y: _Words, left: Longs, right: Longs, dimensions: Longs | None = None
) -> tuple[Doubles, Doubles]:
    """Squared differences of pairs, in all or some dimensions: a sum a pair, and the sum of each dimension.

    Shape: left, right (n,) to (n,), (d,).
    """
    sums, total = np.empty(len(left)), np.zeros(x.vectors.shape[1])
    for start in range(0, len(left), _ROWS):
        part = slice(start, start + _ROWS)
        square = (x.at(left[part]) - y.at(right[part])) ** 2
        total += square.sum(0)
        sums[part] = (square if dimensions is None else square[:, dimensions]).sum(1)
    return sums, total


def _products(x: _Words, y: _Words, left: Longs, right: Longs) -> Doubles:
    """Inner products of pairs. Shape: left, right (n,) to (n,)."""
    sums = np.empty(len(left))
    for start in range(0, len(left), _ROWS):
        part = slice(start, start + _ROWS)
        sums[part] = np.einsum("nd,nd->n", x.at(left[part]), y.at(right[part]))
    return sums


# ---------------------------------------------------------------------------------------- the figures


def _figures(told: Mapping[str, _Told], layer: int, links: Scorer, words: Scorer) -> Iterator[Measurement]:
    """Every figure of one layer, encoder by encoder and against the first."""
    for metric, values in _link_values(told).items():
        scorer = replace(links, about=replace(links.about, metric=metric))
        yield scorer.measurement({(label, layer): value[None] for label, value in values.items()})
    yield words.measurement({(label, layer): one.cosines.reshape(1, -1) for label, one in told.items()})


def _link_values(told: Mapping[str, _Told]) -> dict[str, dict[str, Doubles]]:
    """A value a link by metric and encoder. Shape: each (links,)."""
    apart = {"auc": auc, "overlap": overlap, "d-prime": d_prime}
    found = {
        metric: {label: values(one.linked, one.unrelated) for label, one in told.items()}
        for metric, values in apart.items()
    }
    for count in TOP:
        found[f"top-{count} share"] = {
            label: share(one.top[count], one.squared)
            for label, one in told.items()
            if count in one.top and one.squared.any()
        }
    return found


def _scorer(
    encoders: Mapping[str, Encoder], pairs: WordPairs, options: DistanceOptions, recipe: str
) -> Scorer:
    """Scores links; its metric is still to be named."""
    variant = options.distance.value
    columns = {"sentence": pairs.sentence, "source": pairs.source, "target": pairs.target}
    cluster, names = by_sentence(pairs.bitext, pairs.sentence)
    return Scorer(
        Result(TASK, "", 0.0, pairs.languages, "", variant=variant, seed=options.seed),
        {label: encoder.fingerprint for label, encoder in encoders.items()},
        {name: column.astype(np.int64) for name, column in columns.items()},
        cluster,
        {
            "variant": variant,
            "pooling": options.pooling,
            "linker": pairs.linker or None,
            "data": pairs.fingerprint[:12],
            "recipe": recipe[:12] or None,
        },
        ways={"": [0]},
        rounds=options.rounds,
        names=names,
    )


def _of_words(links: Scorer, drawn: _Drawn) -> Scorer:
    """Scores pairs of random words, of both languages and of each."""
    pairs = drawn.pairs
    language = np.repeat([0, 1], len(pairs))
    first = [_sentence(side, at[0]) for side, at in zip(_sides(pairs), drawn.random, strict=True)]
    cluster, names = by_sentence(pairs.bitext, np.concatenate(first))
    bins = {"language": Bins(pairs.languages, language[None])} if len(set(pairs.languages)) == 2 else {}
    return replace(
        links,
        about=replace(links.about, metric="anisotropy"),
        keys={"language": language, "pair": np.tile(np.arange(len(pairs)), 2)},
        cluster=cluster,
        names=names,
        bins=bins,
    )


# ------------------------------------------------------------------------------------- the histograms


def _histogram(
    told: Mapping[str, _Told], layer: int, languages: tuple[str, str], options: DistanceOptions
) -> dict[str, Any]:
    """Both kinds of pairs of every encoder, on one axis."""
    series = [
        (label, kind, values)
        for label, one in told.items()
        for kind, values in zip(("linked", "unrelated"), _shown(one, options), strict=True)
    ]
    every = [values for _, _, values in series]
    low, high = min(v.min() for v in every), max(v.max() for v in every)
    digits = 3 - int(np.floor(np.log10((high - low) / BARS)))
    edges = np.linspace(low, high, BARS + 1).round(max(digits, 0))
    scaled = ", divided by the mean of unrelated words" if options.scaled else ""
    return {
        "title": f"linked and unrelated words, {'–'.join(languages)}, layer {layer}{scaled}",
        "languages": list(languages),
        "layer": layer,
        "axis": AXES[options.distance],
        "edges": edges.tolist(),
        "series": [
            {"encoder": label, "kind": kind, "counts": _counts(values, edges)}
            for label, kind, values in series
        ],
    }


def _shown(told: _Told, options: DistanceOptions) -> tuple[Doubles, Doubles]:
    if options.distance is Distance.COSINE:
        return -told.linked, -told.unrelated
    scale = told.unrelated.mean() if options.scaled else 1.0
    return told.linked / scale, told.unrelated / scale


def _counts(values: Doubles, edges: Doubles) -> list[int]:
    """How many lie between each two edges; rounding has moved the outer ones a little."""
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return [int(count) for count in counts]
