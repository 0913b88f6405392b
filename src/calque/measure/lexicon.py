"""Lexicon induction: does a word find its translation among all words of the other language?

Every word of a dictionary is asked for once, as a word type: by its anchor (the mean of its vectors over a
text), its embedding or its static vector. It is right at k when any of its translations is among its k
nearest. Encoders are compared on the same words among the same candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias, get_args

import numpy as np

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.anchors import Anchors, anchors
from calque.encoders.wordtypes import Types, folded
from calque.errors import BadInput, BadSetting
from calque.files import Cache, text_digest
from calque.geometry.neighbours import Distinct, Similarity, two_way
from calque.measure.breakdown import Bins, stepped
from calque.measure.scoring import Measurement, Scorer, check_languages, layers_of, telling
from calque.measure.vectors import check_sides
from calque.progress import bar
from calque.recipe import Choice
from calque.text.dictionaries import Dictionary
from calque.text.names import text_names
from calque.types import Encoder, Flags, Longs, Pooling, Result, SpaceMap, Unit

TASK = "lexicon"
#: How many of the nearest words may hold the translation.
AT = (1, 5, 10)
#: The lowest place in the frequency list, counted from 0, of each bin.
RANKS = {"0-999": 0, "1000-4999": 1000, "5000-19999": 5000, "20000+": 20000}
EXAMPLES = 24
WAYS = ("forward", "backward")
#: Why a word of a dictionary is not asked for, or cannot be right.
IDENTICAL, SEEN, UNKNOWN, UNTRANSLATED = REASONS = (
    "identical",
    "seen in training",
    "not in the vocabulary",
    "no translation in the vocabulary",
)

#: What the queries of each direction find, best first. Shape: each (queries, k), -1 for nothing.
Finds: TypeAlias = Mapping[str, Longs]


class TypeVector(Choice):
    """What a word's vector is.

    anchors: the mean of its vectors over all its occurrences in a text.
    embeddings: layer 0 of the word by itself, for words that are a single piece.
    static: a row of a table of word vectors.
    """

    ANCHORS = "anchors"
    EMBEDDINGS = "embeddings"
    STATIC = "static"


class Oov(Choice):
    """What becomes of words that have no vector, or none of whose translations has one.

    skip: they are left out, and counted. wrong: they are not found, and so count as wrong.
    """

    SKIP = "skip"
    WRONG = "wrong"


@dataclass(frozen=True)
class LexiconOptions:
    """How to search, what to leave out of the queries, and how to make intervals.

    `vectors` is told in the results; which words there are says more. `radius_k` neighbours make the radius
    of CSLS and margin. `drop_identical` leaves out words that are their own translation. `include_seen` keeps
    words of which a translation was among the word pairs that an encoder was trained on.
    """

    vectors: TypeVector = TypeVector.ANCHORS
    similarity: Similarity = Similarity.CSLS
    radius_k: int = 10
    pooling: Pooling = "mean"
    oov: Oov = Oov.SKIP
    drop_identical: bool = False
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


def lexicon_induction(
    encoders: Mapping[str, Encoder],
    types: tuple[Types, Types],
    dictionaries: Mapping[str, Dictionary],
    layers: Mapping[str, Sequence[int]] | Sequence[int],
    *,
    seen: AbstractSet[tuple[str, str]] = frozenset(),
    options: LexiconOptions = LexiconOptions(),
    cache: Cache | None = None,
    recipe: str = "",
) -> Measurement:
    """Score every encoder at every layer asked for, and compare each with the first at the same layer.

    `dictionaries` are one a direction: "forward" translates words of the first language, "backward" those of
    the second. A query is a word of a dictionary, once, however many translations it has. `seen` are pairs of
    (source, target) words that any of the encoders was trained on. A word for which one of the encoders has
    no vector is there for none of them. With a cache, anchors are kept in it.
    """
    languages = types[0].language, types[1].language
    chosen = layers_of(encoders, layers)
    check_languages(encoders, languages)
    spaces = {
        label: _Space.of(encoder, types, chosen[label], options.pooling, cache)
        for label, encoder in encoders.items()
    }
    kept = [_common(side, [space.counts[i] for space in spaces.values()]) for i, side in enumerate(types)]
    candidates = types[0].keep(kept[0]), types[1].keep(kept[1])
    ways = _ways(candidates, dictionaries, seen, options)
    found: dict[tuple[str, int], Finds] = {}
    with bar("lexicon", sum(map(len, chosen.values())), "layers") as advance:
        for label, space in spaces.items():
            for layer in chosen[label]:
                sides = [space.rows(side, layer, kept[side]) for side in (0, 1)]
                check_sides(sides[0].rows, sides[1].rows, label, layer, languages)
                found[label, layer] = _nearest(sides, ways, options)
                del sides
                advance(1)
    parts = [
        scorer.measurement({at: scored.ranks(finds)[None] < k for at, finds in found.items()})
        for scored in _scored(ways)
        for k, scorer in _scorers(scored, encoders, types, options, recipe).items()
    ]
    last = {label: (layer, found[label, layer]) for label in chosen for layer in chosen[label][-1:]}
    return Measurement(
        [result for part in parts for result in part.results],
        {key: items for part in parts for key, items in part.items.items()},
        _counts(ways, candidates),
        {"examples": _examples(languages, ways, last, options.seed)},
    )


# ---------------------------------------------------------------------------------------- the vectors


@dataclass(frozen=True, eq=False)
class _Space:
    """One encoder's vectors of the word types of two languages, a layer at a time.

    A map without unit lengths takes the mean of some vectors to the mean of what it makes of each. So under
    such maps the anchors are those of the encoder inside, which all its alignments share.
    """

    encoder: Encoder
    maps: Mapping[tuple[str, int], SpaceMap]
    types: tuple[Types, Types]
    held: tuple[Anchors, Anchors]
    pooling: Pooling

    @classmethod
    def of(
        cls,
        encoder: Encoder,
        types: tuple[Types, Types],
        layers: tuple[int, ...],
        pooling: Pooling,
        cache: Cache | None,
    ) -> _Space:
        inner, maps = _inside(encoder, [side.language for side in types], layers)

        def held(side: Types) -> Anchors:
            # Words by themselves are encoded again when a layer is asked for: cheaper than to hold them.
            if side.alone:
                return replace(anchors(inner, side, layers=layers[:1], pooling=pooling), vectors=())
            return anchors(inner, side, layers=layers, pooling=pooling, cache=cache)

        return cls(inner, maps, types, (held(types[0]), held(types[1])), pooling)

    @property
    def counts(self) -> tuple[Longs, Longs]:
        """How often each type was seen. Shape: (types,) of either language."""
        return self.held[0].counts, self.held[1].counts

    def rows(self, side: int, layer: int, kept: Longs) -> Distinct:
        """Some types of a language, ready to be searched. Shape: kept (n,) to (n, d)."""
        types = self.types[side]
        if types.alone:
            part = types if len(kept) == len(types) else types.keep(kept)
            vectors = anchors(self.encoder, part, layers=[layer], pooling=self.pooling).layer(layer)
        else:
            vectors = np.asarray(self.held[side].layer(layer)[kept], np.float32)
        return Distinct.of(self.maps.get((types.language, layer), SpaceMap()).apply(vectors))


def _inside(
    encoder: Encoder, languages: Sequence[str], layers: Sequence[int]
) -> tuple[Encoder, dict[tuple[str, int], SpaceMap]]:
    """The encoder whose means are to be taken, and the maps to be applied to them."""
    if not isinstance(encoder, AlignedEncoder):
        return encoder, {}
    maps = {(code, layer): encoder.map_for(code, layer) for code in languages for layer in layers}
    bends = any(isinstance(step, Unit) for one in maps.values() for step in one.steps)
    return (encoder, {}) if bends else (encoder.inner, maps)


def _common(types: Types, counts: Sequence[Longs]) -> Longs:
    """Types that every encoder has a vector for. Shape: each of counts (types,) to (n,)."""
    kept = np.flatnonzero(np.logical_and.reduce([one > 0 for one in counts]))
    if not len(kept):
        raise BadInput(
            f"none of the {len(types)} {types.language} words has a vector",
            remedy="check the language, and the text or the table of vectors",
        )
    return kept


# ---------------------------------------------------------------------------------------- the queries


@dataclass(frozen=True, eq=False)
class _Way:
    """The queries of one direction.

    Shape: word (queries,), the place of each among the words of the dictionary; row (queries,) of its vector,
    -1 without; right (pairs, 2): a query, and the row of a translation that it can find; seen (queries,).
    """

    direction: str
    queries: tuple[str, ...]
    translations: tuple[tuple[str, ...], ...]
    candidates: Types
    word: Longs
    row: Longs
    right: Longs
    seen: Flags
    counts: Mapping[str, int]

    def rank(self, found: Longs) -> Longs:
        """The place, from 0, of the first translation among what each found; the last place and one without.

        Shape: found (queries, k), -1 for nothing, to (queries,).
        """
        size = len(self.candidates)
        keys = np.arange(len(found))[:, None] * size + found
        hits = np.isin(keys, self.right[:, 0] * size + self.right[:, 1]) & (found >= 0)
        return np.where(hits.any(1), hits.argmax(1), AT[-1])


def _ways(
    candidates: tuple[Types, Types],
    dictionaries: Mapping[str, Dictionary],
    seen: AbstractSet[tuple[str, str]],
    options: LexiconOptions,
) -> list[_Way]:
    wrong = [name for name in dictionaries if name not in WAYS]
    if wrong or not dictionaries:
        raise BadSetting(
            f"no direction {wrong[0]!r}" if wrong else "no dictionary", remedy=f"one for {' or '.join(WAYS)}"
        )
    ways = []
    for direction in (name for name in WAYS if name in dictionaries):
        turned = direction == "backward"
        sides = candidates[::-1] if turned else candidates
        known = {(b, a) for a, b in seen} if turned else set(seen)
        ways.append(_way(direction, sides, dictionaries[direction], known, options))
    if not sum(way.counts["covered"] for way in ways):
        told = "; ".join(f"{name} {count}" for name, count in _reasons(ways).items() if count)
        raise BadInput(
            f"none of the {sum(way.counts['words'] for way in ways)} words of the dictionary is left: {told}",
            remedy="another dictionary or direction, more text, or keep the pairs seen in training",
        )
    return ways


def _way(
    direction: str,
    sides: tuple[Types, Types],
    dictionary: Dictionary,
    seen: AbstractSet[tuple[str, str]],
    options: LexiconOptions,
) -> _Way:
    source, target = sides
    entries = _entries(dictionary, source.fold)
    known = {(folded(a, source.fold), folded(b, source.fold)) for a, b in seen}
    rows = source.find(entries)
    answers = [target.find(translations) for translations in entries.values()]
    trained = np.array([any((a, b) in known for b in entries[a]) for a in entries], bool)
    reasons = {
        IDENTICAL: np.array([a in entries[a] for a in entries], bool) & options.drop_identical,
        SEEN: trained & (not options.include_seen),
        UNKNOWN: rows < 0,
        UNTRANSLATED: np.array([bool((rows < 0).all()) for rows in answers], bool),
    }
    why = np.select(list(reasons.values()), list(range(1, 1 + len(reasons))), 0)
    kept = np.flatnonzero((why == 0) | ((why > 2) & (options.oov is Oov.WRONG)))
    tally = np.bincount(why, minlength=1 + len(reasons)).tolist()
    counts = {"words": len(entries), "covered": tally[0], "scored": len(kept)}
    words = list(entries)
    pairs = [(query, row) for query, i in enumerate(kept.tolist()) for row in answers[i].tolist() if row >= 0]
    return _Way(
        direction,
        tuple(words[i] for i in kept.tolist()),
        tuple(tuple(entries[words[i]]) for i in kept.tolist()),
        target,
        kept,
        rows[kept],
        np.array(pairs, np.int64).reshape(-1, 2),
        trained[kept],
        counts | dict(zip(reasons, tally[1:], strict=True)),
    )


def _entries(dictionary: Dictionary, fold: bool) -> dict[str, list[str]]:
    """Every word that is asked for, with its translations, as they are compared."""
    entries: dict[str, dict[str, None]] = {}
    for word, translations in dictionary.translations.items():
        entries.setdefault(folded(word, fold), {}).update(
            dict.fromkeys(folded(t, fold) for t in translations)
        )
    return {word: list(translations) for word, translations in entries.items()}


def _reasons(ways: Sequence[_Way]) -> dict[str, int]:
    return {name: sum(way.counts[name] for way in ways) for name in REASONS}


def _counts(ways: Sequence[_Way], candidates: tuple[Types, Types]) -> dict[str, int]:
    total = {name: sum(way.counts[name] for way in ways) for name in ("words", "covered", "scored")}
    sizes = {"source candidates": len(candidates[0]), "target candidates": len(candidates[1])}
    return total | _reasons(ways) | sizes


# ---------------------------------------------------------------------------------------- the finding


def _nearest(sides: Sequence[Distinct], ways: Sequence[_Way], options: LexiconOptions) -> Finds:
    """Candidates that each query finds, best first, by direction. Shape: each (queries, k), -1 for none."""
    rows = {way.direction: way.row[way.row >= 0] for way in ways}
    nothing = np.zeros(0, np.int64)
    both = two_way(
        sides[0],
        sides[1],
        similarity=options.similarity,
        k=AT[-1],
        radius_k=options.radius_k,
        queries=(rows.get("forward", nothing), rows.get("backward", nothing)),
        device=options.device,
    )
    near = {"forward": both.forward.index, "backward": both.backward.index}
    found = {}
    for way in ways:
        found[way.direction] = np.full((len(way.queries), near[way.direction].shape[1]), -1, np.int64)
        found[way.direction][way.row >= 0] = near[way.direction]
    return found


# ---------------------------------------------------------------------------------------- the figures


@dataclass(frozen=True, eq=False)
class _Scored:
    """The queries that one figure is about: those of one direction, or of both."""

    direction: str
    ways: tuple[_Way, ...]

    def ranks(self, finds: Finds) -> Longs:
        """Shape: (queries,)."""
        return np.concatenate([way.rank(finds[way.direction]) for way in self.ways])

    def column(self, name: str) -> Longs:
        """What all ways say of their queries. Shape: (queries,)."""
        return np.concatenate([getattr(way, name) for way in self.ways]).astype(np.int64)


def _scored(ways: Sequence[_Way]) -> list[_Scored]:
    asked = [way for way in ways if way.queries]
    both = [_Scored("both", tuple(asked))] if len(asked) > 1 else []
    return [_Scored(way.direction, (way,)) for way in asked] + both


def _scorers(
    scored: _Scored,
    encoders: Mapping[str, Encoder],
    types: tuple[Types, Types],
    options: LexiconOptions,
    recipe: str,
) -> dict[int, Scorer]:
    """A scorer for each k."""
    radius = "" if options.similarity is Similarity.COSINE else options.radius_k
    dictionary = chain.from_iterable(
        zip(way.queries, map(str, way.translations), strict=True) for way in scored.ways
    )
    signed = {
        "vectors": options.vectors.value,
        "sim": f"{options.similarity.value}{radius}",
        "pooling": options.pooling,
        "oov": options.oov.value,
        "identical": not options.drop_identical,
        "seen": options.include_seen,
        "words": text_digest(types[0].fingerprint, types[1].fingerprint)[:12],
        "data": text_digest(*chain.from_iterable(dictionary))[:12],
        "recipe": recipe[:12] or None,
    }
    place = np.repeat(np.arange(len(scored.ways)), [len(way.queries) for way in scored.ways])
    languages = types[0].language, types[1].language
    spoken = dict(zip(("forward", "backward"), languages, strict=True))
    asked = (f"{spoken[way.direction]} {query}" for way in scored.ways for query in way.queries)
    names = text_names(asked)[None]
    return {
        k: Scorer(
            Result(TASK, f"p@{k}", 0.0, languages, "", variant=options.vectors.value, seed=options.seed),
            {label: encoder.fingerprint for label, encoder in encoders.items()},
            {"way": place, "word": scored.column("word")},
            np.arange(len(place)),
            signed,
            _bins(scored, options),
            ways={scored.direction: [0]},
            rounds=options.rounds,
            names=names,
        )
        for k in AT
    }


def _bins(scored: _Scored, options: LexiconOptions) -> dict[str, Bins]:
    """By the query's place in the frequency list, and by whether it was seen in training."""
    row = scored.column("row")
    code = np.where(row < 0, len(RANKS), stepped(np.maximum(row, 0), RANKS))
    bins = {"rank": Bins((*RANKS, UNKNOWN), code[None])}
    if options.include_seen:
        bins["seen"] = Bins(("unseen", "seen"), scored.column("seen")[None])
    return bins


# --------------------------------------------------------------------------------------- the examples


def _examples(
    languages: tuple[str, str],
    ways: Sequence[_Way],
    last: Mapping[str, tuple[int, Finds]],
    seed: int,
) -> list[dict[str, Any]]:
    """Some queries and what they found, first those on which the encoders differ."""
    every = [(way, query) for way in ways for query in range(len(way.queries)) if way.row[query] >= 0]
    ranks = {
        label: {way.direction: way.rank(finds[way.direction]) for way in ways}
        for label, (_, finds) in last.items()
    }
    hits = np.array([[[held[way.direction][query] == 0 for way, query in every]] for held in ranks.values()])
    chosen = [every[place] for _, place in telling(hits, EXAMPLES, seed)]
    return [
        {
            "languages": list(languages),
            "direction": way.direction,
            "query": way.queries[query],
            "gold": {"word": ", ".join(way.translations[query])},
            "retrieved": {
                label: {
                    "word": way.candidates.words[finds[way.direction][query, 0]],
                    "hit": bool(ranks[label][way.direction][query] == 0),
                    "layer": layer,
                }
                for label, (layer, finds) in last.items()
            },
        }
        for way, query in chosen
    ]
