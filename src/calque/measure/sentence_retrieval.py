"""Sentence retrieval: does a sentence find its own translation among all sentences of the other side?

Every sentence of a bitext searches the other side; the figure is the share that find their translation, in
both directions and pooled, at every layer. Encoders are compared on the same queries among the same
candidates.

Sentences that stand in the text more than once are one candidate, and what was found is right when it stands
beside the query anywhere in the text: a copy of the right sentence is right.

Sentence pairs that an encoder was aligned on ask nothing; they stay among what can be found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from calque.encoders.cached import sentence_layers
from calque.errors import BadInput, BadSetting
from calque.geometry.neighbours import Similarity, two_way
from calque.measure.breakdown import DIRECTIONS, Bins, sentence_bins
from calque.measure.scoring import Measurement, Scorer, by_sentence, check_languages, layers_of, telling
from calque.measure.vectors import check_sides
from calque.progress import bar
from calque.text.distinct import Distinct
from calque.text.names import pair_names
from calque.types import Bitext, Encoder, Flags, Floats, Longs, Result, SentencePooling

TASK, METRIC = "sentence-retrieval", "accuracy"
EXAMPLES = 24
#: No sentence pairs that were seen.
NONE: Longs = np.zeros(0, np.int64)


@dataclass(frozen=True)
class SentenceOptions:
    """How to search, and how to make intervals.

    `pooling` is the mean of a sentence's pieces, or its first special token; `radius_k` neighbours make the
    radius of CSLS and margin. `include_seen` keeps the sentence pairs that an encoder was aligned on.
    """

    similarity: Similarity = Similarity.COSINE
    radius_k: int = 10
    pooling: SentencePooling = "mean"
    include_seen: bool = False
    rounds: int = 1000
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("radius_k", "rounds"):
            if getattr(self, name) < 1:
                raise BadSetting(f"{name} is {getattr(self, name)}", remedy="1 or more")
        if self.pooling not in get_args(SentencePooling):
            raise BadSetting(f"unknown pooling {self.pooling!r}", remedy="one of mean, first")

    @property
    def variant(self) -> str:
        """Pooling, and the similarity where it is not cosine."""
        plain = self.similarity is Similarity.COSINE
        return self.pooling if plain else f"{self.pooling}-{self.similarity.value}"


def sentence_retrieval(
    encoders: Mapping[str, Encoder],
    bitext: Bitext,
    layers: Mapping[str, Sequence[int]] | Sequence[int],
    *,
    seen: Longs = NONE,
    options: SentenceOptions = SentenceOptions(),
    recipe: str = "",
) -> Measurement:
    """Score every encoder at every layer asked for, and compare each with the first at the same layer.

    A query is a sentence pair in one direction. `seen` are the names of the sentence pairs that any of the
    encoders was aligned on, as `pair_names` gives them. A sentence of which an encoder knows no word asks in
    vain. The `count` of a result is its number of queries, so that of direction "both" is twice that of one.
    """
    chosen = layers_of(encoders, layers)
    check_languages(encoders, bitext.languages)
    search, counts = _Search.of(bitext), {}
    known_before = np.isin(pair_names(bitext), seen) if len(seen) else np.zeros(len(bitext), bool)
    asked = _asked(bitext, known_before, options)
    found: dict[tuple[str, int], Longs] = {}
    hits: dict[tuple[str, int], Flags] = {}
    with bar("retrieval", sum(map(len, chosen.values())), "layers") as advance:
        for label, encoder in encoders.items():
            for layer, source, target in search.vectors(encoder, label, chosen[label], options.pooling):
                known = search.known(source, target)
                found[label, layer] = search.find(source, target, options)
                hits[label, layer] = search.hits(found[label, layer]) & known
                counts[f"no vector ({label})"] = int((~known.all(0)).sum())
                advance(1)
    last = {at: rows for at, rows in found.items() if at[1] == chosen[at[0]][-1]}
    examples = _examples(search, last, {at: hits[at] for at in last}, asked, options.seed)
    counts["sentences seen in training"] = int(known_before.sum())
    whole = {**search.counts, **{name: count for name, count in counts.items() if count}}
    scorer = _scorer(encoders, bitext.select(asked), options, recipe)
    if options.include_seen:
        code = known_before.astype(np.int64)
        scorer = replace(
            scorer, bins={**scorer.bins, "seen": Bins(("unseen", "seen"), np.stack([code, code]))}
        )
    return scorer.measurement(
        {at: held[:, asked] for at, held in hits.items()}, counts=whole, artifacts={"sentences": examples}
    )


def _asked(bitext: Bitext, seen: Flags, options: SentenceOptions) -> Longs:
    """The sentence pairs that are queries. Shape: seen (sentences,) to (queries,)."""
    rows = np.flatnonzero(~seen | options.include_seen)
    if len(rows) < 2 <= len(bitext):
        raise BadInput(
            f"{seen.sum()} of {len(bitext)} sentence pairs were seen in training: {len(rows)} left to ask",
            where=bitext.origin or None,
            remedy="measure on sentences that no encoder was aligned on, or --include-seen",
        )
    return rows


# ---------------------------------------------------------------------------------------- the search


@dataclass(frozen=True, eq=False)
class _Search:
    """The sentences that can be found, and which of them are right.

    Shape: right (different pairs,) in rising order, each source · different targets + target.
    """

    bitext: Bitext
    source: Distinct
    target: Distinct
    right: Longs

    @classmethod
    def of(cls, bitext: Bitext) -> _Search:
        source, target = Distinct.of(bitext.source), Distinct.of(bitext.target)
        if min(len(source), len(target)) < 2:
            raise BadInput(
                f"{len(source)} and {len(target)} different sentences: nothing to choose among",
                where=bitext.origin or None,
                remedy="two sentence pairs or more",
            )
        return cls(bitext, source, target, np.unique(source.which * len(target) + target.which))

    @property
    def counts(self) -> dict[str, int]:
        """What is asked, and among how many; `repeated` are pairs one side of which stands there again."""
        again = np.bincount(self.source.which)[self.source.which] > 1
        again |= np.bincount(self.target.which)[self.target.which] > 1
        return {
            "sentences": len(self.bitext),
            "repeated": int(again.sum()),
            "source candidates": len(self.source),
            "target candidates": len(self.target),
            **self.bitext.dropped,
        }

    def vectors(
        self, encoder: Encoder, label: str, layers: Sequence[int], pooling: SentencePooling
    ) -> Iterator[tuple[int, Floats, Floats]]:
        """The candidates' vectors at each layer, source and target. Shape: (candidates, d) each."""
        source, target = (
            sentence_layers(encoder, side, layers=layers, pooling=pooling)
            for side in (self.bitext.source, self.bitext.target)
        )
        for layer, *sides in zip(layers, source, target, strict=True):
            x, y = (side[one.first] for side, one in zip(sides, (self.source, self.target), strict=True))
            check_sides(x, y, label, layer, self.bitext.languages)
            yield layer, x, y

    def known(self, source: Floats, target: Floats) -> Flags:
        """Queries that have a vector. Shape: (candidates, d) twice to (2, sentences)."""
        sides = (source, self.source), (target, self.target)
        return np.stack([(vectors != 0).any(1)[asked.which] for vectors, asked in sides])

    def find(self, source: Floats, target: Floats, options: SentenceOptions) -> Longs:
        """The candidate that each query finds. Shape: (candidates, d) twice to (2, sentences)."""
        nearest = two_way(
            source,
            target,
            similarity=options.similarity,
            radius_k=options.radius_k,
            device=options.device,
        )
        ways = (nearest.forward, self.source), (nearest.backward, self.target)
        return np.stack([way.index[:, 0][asked.which] for way, asked in ways])

    def hits(self, found: Longs) -> Flags:
        """Whether what was found stands beside the query somewhere. Shape: (2, sentences)."""
        pairs = np.stack([self.source.which, found[1]]), np.stack([found[0], self.target.which])
        return np.isin(pairs[0] * len(self.target) + pairs[1], self.right)

    def text(self, side: int, candidate: int) -> str:
        """A candidate for a person to read."""
        one, held = ((self.bitext.source, self.source), (self.bitext.target, self.target))[side]
        return " ".join(one[int(held.first[candidate])])


# ---------------------------------------------------------------------------------------- the figures


def _scorer(encoders: Mapping[str, Encoder], bitext: Bitext, options: SentenceOptions, recipe: str) -> Scorer:
    radius = "" if options.similarity is Similarity.COSINE else options.radius_k
    cluster, names = by_sentence(bitext, np.arange(len(bitext)))
    return Scorer(
        Result(TASK, METRIC, 0.0, bitext.languages, "", variant=options.variant, seed=options.seed),
        {label: encoder.fingerprint for label, encoder in encoders.items()},
        {"line": np.asarray(bitext.line, np.int64)},
        cluster,
        {
            "sim": f"{options.similarity.value}{radius}",
            "pooling": options.pooling,
            "seen": options.include_seen or None,
            "data": bitext.fingerprint[:12],
            "recipe": recipe[:12] or None,
        },
        sentence_bins(bitext),
        rounds=options.rounds,
        names=names,
    )


def _examples(
    search: _Search,
    found: Mapping[tuple[str, int], Longs],
    hits: Mapping[tuple[str, int], Flags],
    asked: Longs,
    seed: int,
) -> list[dict[str, Any]]:
    """Some queries and what they found, first those on which the encoders differ.

    Shape: each of found and hits (2, sentences), one an encoder; asked (queries,), their places.
    """
    sides = search.source.which, search.target.which
    chosen = telling(np.stack([held[:, asked] for held in hits.values()]), EXAMPLES, seed)
    return [
        {
            "languages": list(search.bitext.languages),
            "direction": list(DIRECTIONS)[way],
            "line": int(search.bitext.line[query]),
            "query": search.text(way, sides[way][query]),
            "gold": search.text(1 - way, sides[1 - way][query]),
            "retrieved": {
                label: {
                    "sentence": search.text(1 - way, rows[way, query]),
                    "hit": bool(hits[label, layer][way, query]),
                    "layer": layer,
                }
                for (label, layer), rows in found.items()
            },
        }
        for way, query in ((way, int(asked[place])) for way, place in chosen)
    ]
