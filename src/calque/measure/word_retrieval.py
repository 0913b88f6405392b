"""Contextual word retrieval: does a word find its own translation among all words of the other side?

Every linked word of one side searches all words of the other side of the corpus; it is a hit only when what
it finds is the very word that it is linked to, in the very sentence. The figure is the share of hits, in
both directions and pooled. Encoders are compared on the same queries among the same candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, get_args

import numpy as np
import torch

from calque.errors import BadInput, BadSetting
from calque.geometry.neighbours import Similarity, two_way
from calque.measure.breakdown import DIRECTIONS, Bins, Linked, bin_links, piece_counts
from calque.measure.examples import Finds, turned
from calque.measure.scoring import Measurement, Scorer, by_sentence, check_languages, layers_of, telling
from calque.measure.vectors import check_sides
from calque.progress import bar
from calque.recipe import Choice
from calque.text.frequency import Frequencies
from calque.types import (
    Encoder,
    Flags,
    Floats,
    Longs,
    Pooling,
    Result,
    Sentences,
    WordPairs,
    WordVectors,
)

TASK, METRIC = "word-retrieval", "accuracy"
EXAMPLES = 24


class Variant(Choice):
    """Which words take part, and how they are compared.

    contextual: every linked word searches all words of the other side.
    first-occurrence: only the first occurrence of each word type takes part, as query and as candidate; a
    link is scored when both its words are first occurrences.
    program: as the published program has it, not its paper: candidates are the words of scored links only,
    and candidates are divided by the norm of the whole array, so that their lengths count and the penalty
    for hubs all but vanishes.
    """

    CONTEXTUAL = "contextual"
    FIRST_OCCURRENCE = "first-occurrence"
    PROGRAM = "program"


@dataclass(frozen=True)
class RetrievalOptions:
    """How to search, what to leave out of the queries, and how to make intervals.

    `radius_k` neighbours make the radius of CSLS and margin. `drop_identical` leaves out links between equal
    strings, which stay candidates; `include_seen` keeps the word pairs that an encoder was trained on.
    """

    variant: Variant = Variant.CONTEXTUAL
    similarity: Similarity = Similarity.CSLS
    radius_k: int = 10
    pooling: Pooling = "mean"
    drop_identical: bool = True
    include_seen: bool = False
    rounds: int = 1000
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("radius_k", "rounds"):
            if getattr(self, name) < 1:
                raise BadSetting(f"{name} is {getattr(self, name)}", remedy="1 or more")
        if self.pooling not in get_args(Pooling):
            raise BadSetting(f"unknown pooling {self.pooling!r}", remedy="one of first, last, mean")
        if self.variant is Variant.PROGRAM and self.similarity is not Similarity.CSLS:
            raise BadSetting(
                "the program variant has a similarity of its own", remedy="leave the similarity at csls"
            )


@dataclass(frozen=True, eq=False)
class WordMeasurement(Measurement):
    """`finds` and `backward` are what each query found, from which more examples can be made.

    Shape: kept (links given,), which of them were scored.
    """

    finds: Finds = field(kw_only=True)
    backward: Finds = field(kw_only=True)
    kept: Flags = field(kw_only=True)


def word_retrieval(
    encoders: Mapping[str, Encoder],
    pairs: WordPairs,
    layers: Mapping[str, Sequence[int]] | Sequence[int],
    *,
    seen: AbstractSet[tuple[str, str]] = frozenset(),
    options: RetrievalOptions = RetrievalOptions(),
    breakdowns: Sequence[str] = (),
    frequencies: tuple[Frequencies, Frequencies] | None = None,
    recipe: str = "",
) -> WordMeasurement:
    """Score every encoder at every layer asked for, and compare each with the first at the same layer.

    A query is a link in one direction: a word with two links asks twice and can be right once. `seen` are
    pairs of (source, target) word types that any of the encoders was trained on. A word that one of the
    encoders could not see (cut off, or tokenised to nothing) takes part for none of them. The `count` of a
    result is its number of queries, so that of direction "both" is twice that of one direction.
    """
    chosen = layers_of(encoders, layers)
    check_languages(encoders, pairs.languages)
    if "seen" in breakdowns and not options.include_seen:
        raise BadSetting(
            "no seen breakdown: the pairs seen in training are left out", remedy="set include_seen"
        )
    known = _seen_links(pairs, seen)
    first = next(iter(encoders.values()))
    pieces = piece_counts(first, pairs.bitext) if "pieces" in breakdowns else None
    bins = bin_links(breakdowns, Linked(pairs, known, frequencies, pieces))
    vectors = {label: _encode(encoders[label], pairs, chosen[label], options) for label in encoders}
    search = _search(pairs, known, list(vectors.values()), options)
    found = _retrieve_all(vectors, chosen, search, options)
    hits = {at: search.hits(rows) for at, rows in found.items()}
    kept = {name: held.keep(search.kept) for name, held in bins.items()}
    last = {at: rows for at, rows in found.items() if at[1] == chosen[at[0]][-1]}
    whole = _scorer(encoders, search.pairs, kept, options, recipe).measurement(hits)
    back = turned(search.pairs)
    return WordMeasurement(
        whole.results,
        whole.items,
        {**search.counts, **_dropped(vectors)},
        {"examples": _examples(search, last, options.seed)},
        finds=Finds(search.pairs, {at: search.places(1)[rows[0]] for at, rows in found.items()}),
        backward=Finds(back.pairs, {at: search.places(0)[rows[1, back.row]] for at, rows in found.items()}),
        kept=search.kept,
    )


# -------------------------------------------------------------------------------------- what is asked


def _seen_links(pairs: WordPairs, seen: AbstractSet[tuple[str, str]]) -> Flags:
    """Which links join a pair of word types in `seen`. Shape: (links,)."""
    strings = pairs.bitext.source.vocabulary.strings if seen else []
    types, inverse = np.unique(np.stack([pairs.source_ids, pairs.target_ids], 1), axis=0, return_inverse=True)
    known = [bool(seen) and (strings[a], strings[b]) in seen for a, b in types.tolist()]
    return np.array(known, bool)[inverse.ravel()]


def _encode(
    encoder: Encoder, pairs: WordPairs, layers: Sequence[int], options: RetrievalOptions
) -> tuple[WordVectors, WordVectors]:
    source, target = (
        encoder.word_vectors(side, layers=layers, pooling=options.pooling)
        for side in (pairs.bitext.source, pairs.bitext.target)
    )
    return source, target


def _dropped(vectors: Mapping[str, tuple[WordVectors, WordVectors]]) -> dict[str, int]:
    """Words that each encoder could not see, by reason."""
    counts: dict[str, int] = {}
    for label, sides in vectors.items():
        for reason, count in chain.from_iterable(side.dropped.items() for side in sides):
            key = f"words {reason} ({label})"
            counts[key] = counts.get(key, 0) + count
    return {key: count for key, count in counts.items() if count}


# ---------------------------------------------------------------------------------------- the search


@dataclass(frozen=True, eq=False)
class _Search:
    """The links that are scored and the words that can be found.

    Shape: kept (all links,), candidates (words of a side,) twice, rows (2, links): where each link's source
    and target word stand among the candidates of their side.
    """

    pairs: WordPairs
    kept: Flags
    candidates: tuple[Flags, Flags]
    rows: Longs
    counts: dict[str, int]

    def hits(self, found: Longs) -> Flags:
        """Whether what was found is what is linked. Shape: found (2, links) to (2, links)."""
        return np.equal(found, self.rows[::-1])

    def places(self, side: int) -> Longs:
        """Where the candidates of a side stand among all its words. Shape: (candidates,)."""
        return np.flatnonzero(self.candidates[side])

    def vectors(self, side: int, vectors: WordVectors, layer: int) -> Floats:
        """One side's candidates at one layer. Shape: (candidates, d)."""
        return vectors.layer(layer)[self.candidates[side][vectors.present]]

    def word(self, side: int, row: int) -> dict[str, Any]:
        """A candidate in its sentence, for a person to read."""
        text = (self.pairs.bitext.source, self.pairs.bitext.target)[side]
        place = self.places(side)[row]
        sentence = int(np.searchsorted(text.offsets, place, "right")) - 1
        index = int(place - text.offsets[sentence])
        return {"word": text.word(sentence, index), "sentence": text[sentence], "index": index}


def _search(
    pairs: WordPairs,
    seen: Flags,
    vectors: Sequence[tuple[WordVectors, WordVectors]],
    options: RetrievalOptions,
) -> _Search:
    sides = (pairs.bitext.source, pairs.source), (pairs.bitext.target, pairs.target)
    words = np.stack([side.offsets[pairs.sentence] + word for side, word in sides])
    visible = [np.logical_and.reduce([both[i].present for both in vectors]) for i in (0, 1)]
    candidates = visible
    if options.variant is Variant.FIRST_OCCURRENCE:
        candidates = [_first_occurrences(side, visible[i]) for i, (side, _) in enumerate(sides)]
    reasons = {
        "identical": (pairs.source_ids == pairs.target_ids) & options.drop_identical,
        "seen in training": seen & (not options.include_seen),
        "no vector": ~(visible[0][words[0]] & visible[1][words[1]]),
        "later occurrence": ~(candidates[0][words[0]] & candidates[1][words[1]]),
    }
    kept, counts = _leave_out(reasons, len(pairs))
    if len(np.unique(pairs.sentence[kept])) < 2:
        raise BadInput(
            "links to score in one sentence only: how far the figure is luck cannot be told",
            where=pairs.bitext.origin or None,
            remedy="give two linked sentences or more",
        )
    words = words[:, kept]
    if options.variant is Variant.PROGRAM:
        candidates = [np.isin(np.arange(len(side.ids)), words[i]) for i, (side, _) in enumerate(sides)]
    rows = np.stack([np.cumsum(candidates[i])[words[i]] - 1 for i in (0, 1)])
    sizes = {f"{name} candidates": int(candidates[i].sum()) for i, name in enumerate(("source", "target"))}
    return _Search(pairs.keep(kept), kept, (candidates[0], candidates[1]), rows, counts | sizes)


def _first_occurrences(side: Sentences, visible: Flags) -> Flags:
    """The first visible occurrence of each word type. Shape: (words,)."""
    places = np.flatnonzero(visible)
    first = np.zeros(len(visible), bool)
    first[places[np.unique(side.ids[places], return_index=True)[1]]] = True
    return first


def _leave_out(reasons: Mapping[str, Flags], links: int) -> tuple[Flags, dict[str, int]]:
    """The links that no reason speaks against, and how many fell to each (the first that applies)."""
    why = np.select(list(reasons.values()), list(range(1, len(reasons) + 1)), 0)
    tally = np.bincount(why, minlength=len(reasons) + 1).tolist()
    left_out = dict(zip(reasons, tally[1:], strict=True))
    if not tally[0]:
        told = "; ".join(f"{name} {count}" for name, count in left_out.items() if count)
        raise BadInput(
            f"no links left to score of {links}" + (f": {told}" if told else ""),
            remedy="give more linked sentences, or keep identical words or pairs seen in training",
        )
    return why == 0, {"links": links, "scored": tally[0], **left_out}


# ---------------------------------------------------------------------------------------- the finding


def _retrieve_all(
    vectors: Mapping[str, tuple[WordVectors, WordVectors]],
    layers: Mapping[str, Sequence[int]],
    search: _Search,
    options: RetrievalOptions,
) -> dict[tuple[str, int], Longs]:
    """What every query finds, by encoder and layer. Shape: each (2, links)."""
    found = {}
    with bar("retrieval", sum(map(len, layers.values())), "layers") as advance:
        for label, layer in [(name, layer) for name in vectors for layer in layers[name]]:
            source, target = (search.vectors(side, v, layer) for side, v in enumerate(vectors[label]))
            check_sides(source, target, label, layer, search.pairs.languages)
            found[label, layer] = retrieve(source, target, search.rows, options)
            advance(1)
    return found


def retrieve(source: Floats, target: Floats, rows: Longs, options: RetrievalOptions) -> Longs:
    """The nearest candidate of each linked word.

    Shape: source (n, d), target (m, d), rows (2, links) into source and target; returns (2, links): the
    target found by each source word, the source found by each target word.
    """
    if options.variant is Variant.PROGRAM:
        ways = _program(source, target, options), _program(target, source, options)
        return np.stack([way[at] for way, at in zip(ways, rows, strict=True)])
    (first, to_first), (second, to_second) = (np.unique(at, return_inverse=True) for at in rows)
    nearest = two_way(
        source,
        target,
        similarity=options.similarity,
        radius_k=options.radius_k,
        queries=(first, second),
        device=options.device,
    )
    return np.stack([nearest.forward.index[to_first, 0], nearest.backward.index[to_second, 0]])


def _program(queries: Floats, candidates: Floats, options: RetrievalOptions, block: int = 1024) -> Longs:
    """The published program's search. Shape: (n, d), (m, d) to (n,).

    Trap: its `normalize` divides an array by the norm of the whole array. A single query thus gets unit
    length; candidates keep their lengths, and radii come out smaller than similarities by the root of n.
    """
    x, y = (torch.from_numpy(side).to(options.device) for side in (queries, candidates))
    k, whole = min(options.radius_k, len(x)), x.norm().clamp(min=1e-12)
    radius = torch.cat([(part @ x.T).topk(k).values.mean(1) for part in torch.split(y, block)]) / whole
    unit = x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)
    found = torch.cat([(2 * part @ y.T - radius).argmax(1) for part in torch.split(unit, block)])
    return np.asarray(found.cpu(), np.int64)


# ---------------------------------------------------------------------------------------- the figures


def _scorer(
    encoders: Mapping[str, Encoder],
    pairs: WordPairs,
    bins: Mapping[str, Bins],
    options: RetrievalOptions,
    recipe: str,
) -> Scorer:
    radius = "" if options.similarity is Similarity.COSINE else options.radius_k
    columns = {"sentence": pairs.sentence, "source": pairs.source, "target": pairs.target}
    cluster, names = by_sentence(pairs.bitext, pairs.sentence)
    return Scorer(
        Result(TASK, METRIC, 0.0, pairs.languages, "", variant=options.variant.value, seed=options.seed),
        {label: encoder.fingerprint for label, encoder in encoders.items()},
        {name: column.astype(np.int64) for name, column in columns.items()},
        cluster,
        {
            "variant": options.variant.value,
            "sim": f"{options.similarity.value}{radius}",
            "pooling": options.pooling,
            "identical": not options.drop_identical,
            "seen": options.include_seen,
            "linker": pairs.linker or None,
            "data": pairs.fingerprint[:12],
            "recipe": recipe[:12] or None,
        },
        bins,
        rounds=options.rounds,
        names=names,
    )


# --------------------------------------------------------------------------------------- the examples


def _examples(search: _Search, found: Mapping[tuple[str, int], Longs], seed: int) -> list[dict[str, Any]]:
    """Some queries and what they found, first those on which the encoders differ.

    Shape: each of found (2, links), one an encoder.
    """
    hits = np.stack([search.hits(rows) for rows in found.values()])
    return [_example(search, found, *at) for at in telling(hits, EXAMPLES, seed)]


def _example(search: _Search, found: Mapping[tuple[str, int], Longs], way: int, link: int) -> dict[str, Any]:
    query, gold = (search.word(side, search.rows[side, link]) for side in (way, 1 - way))
    retrieved = {
        label: {
            **search.word(1 - way, rows[way, link]),
            "hit": bool(search.hits(rows)[way, link]),
            "layer": layer,
        }
        for (label, layer), rows in found.items()
    }
    return {
        "languages": list(search.pairs.languages),
        "direction": list(DIRECTIONS)[way],
        "query": query["word"],
        "sentence": query["sentence"],
        "index": query["index"],
        "gold": gold,
        "retrieved": retrieved,
    }
