"""Ambiguous words in context: does each occurrence find its own translation, and what does it find instead?

A few occurrences of the most ambiguous types of both languages search all words of the sentences they stand
in, and of others to make it harder: the translations of all shown senses are among what can be found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calque.errors import BadInput, BadSetting
from calque.geometry.neighbours import Similarity
from calque.measure.examples import Ambiguous, Finds, choose, record, turned, turns
from calque.measure.scoring import Measurement, Scorer, by_sentence
from calque.measure.word_retrieval import RetrievalOptions, word_retrieval
from calque.types import Doubles, Encoder, Flags, Longs, Result, WordPairs

TASK, METRIC = "ambiguous-words", "accuracy"


@dataclass(frozen=True)
class AmbiguityOptions:
    """How many types of a language, occurrences of a type, and sentences to search among at the least."""

    types: int = 20
    occurrences: int = 4
    sentences: int = 300

    def __post_init__(self) -> None:
        for name, least in (("types", 1), ("occurrences", 2), ("sentences", 1)):
            if getattr(self, name) < least:
                raise BadSetting(f"{name} is {getattr(self, name)}", remedy=f"{least} or more")


@dataclass(frozen=True)
class Chosen:
    """Ambiguous types of the two languages of a text, each with the links of some occurrences."""

    source: tuple[Ambiguous, ...] = ()
    target: tuple[Ambiguous, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.source or self.target)


def choose_words(texts: Sequence[WordPairs], options: AmbiguityOptions) -> list[Chosen]:
    """The most ambiguous types of every language, and in each text the occurrences to show."""
    back = [turned(pairs) for pairs in texts]
    ways = [*texts, *(way.pairs for way in back)]
    rows = [*(np.arange(len(pairs)) for pairs in texts), *(way.row for way in back)]
    held: list[list[Ambiguous]] = [[] for _ in ways]
    for number, one in choose(ways, options.types):
        held[number].append(_renumbered(_shown(one, options.occurrences), rows[number]))
    if not any(held):
        raise BadInput(
            "no word has two senses in these links",
            remedy="give more linked sentences: a machine's links count when a translation is found again",
        )
    return [Chosen(tuple(held[k]), tuple(held[k + len(texts)])) for k in range(len(texts))]


def ambiguous_words(
    encoders: Mapping[str, Encoder],
    pairs: WordPairs,
    layers: Mapping[str, int],
    chosen: Chosen | None = None,
    *,
    options: AmbiguityOptions = AmbiguityOptions(),
    retrieval: RetrievalOptions = RetrievalOptions(),  # noqa: B008 (frozen)
    recipe: str = "",
) -> Measurement:
    """What the chosen occurrences find in every encoder, each at its own layer; figures by direction.

    Word pairs that an encoder was trained on take part: a sense is told by the context, not by the pair.
    """
    chosen = chosen or choose_words([pairs], options)[0]
    links = [link for one in (*chosen.source, *chosen.target) for link in turns(one.links)]
    among = _with_others(np.unique(pairs.sentence[links]), len(pairs.bitext), options.sentences)
    searched = np.isin(pairs.sentence, among)
    found = word_retrieval(
        encoders,
        pairs.sentences(among),
        {label: [layer] for label, layer in layers.items()},
        options=replace(retrieval, include_seen=True),
        recipe=recipe,
    )
    place = np.full(len(pairs), -1)
    place[np.flatnonzero(searched)[found.kept]] = np.arange(len(found.finds.pairs))
    turn = np.append(np.argsort(turned(found.finds.pairs).row), -1)
    ways = {
        "forward": (found.finds, [_renumbered(one, place) for one in chosen.source]),
        "backward": (found.backward, [_renumbered(one, turn[place]) for one in chosen.target]),
    }
    scorer = _scorer(encoders, pairs, retrieval, recipe)
    parts = []
    for direction, (finds, types) in ways.items():
        kept = [one for one in types if len(one.links) > 1]
        if kept:
            parts.append(_measured(replace(scorer, ways={direction: [0]}), finds, kept, layers))
    if not parts:
        raise BadInput("the encoders see none of the ambiguous words", remedy="give other encoders or text")
    told = [one for part in parts for one in part.artifacts["senses"]]
    return Measurement(
        [result for part in parts for result in part.results],
        {key: items for part in parts for key, items in part.items.items()},
        {"types": len(told), "sentences": len(among), "words": int(found.counts["target candidates"])},
        {"senses": told},
    )


def _shown(one: Ambiguous, occurrences: int) -> Ambiguous:
    """The type with some of its occurrences, every sense in turn."""
    kept = set(turns(one.links)[:occurrences])
    shown = (tuple(link for link in links if link in kept) for links in one.links)
    return replace(one, links=tuple(links for links in shown if links))


def _renumbered(one: Ambiguous, place: Longs) -> Ambiguous:
    """The type with other numbers for its links; those without one are left out. Shape: place (links,)."""
    links = (tuple(int(place[link]) for link in sense if place[link] >= 0) for sense in one.links)
    return replace(one, links=tuple(sense for sense in links if sense))


def _with_others(wanted: Longs, total: int, least: int) -> Longs:
    """These sentences, and others from all over the text until there are enough. Shape: (sentences,)."""
    others = np.setdiff1d(np.arange(total), wanted)
    more = min(max(least - len(wanted), 0), len(others))
    spread = np.linspace(0, len(others) - 1, more).round().astype(np.int64)
    return np.union1d(wanted, others[spread])


def _measured(
    scorer: Scorer, finds: Finds, types: Sequence[Ambiguous], layers: Mapping[str, int]
) -> Measurement:
    """Figures over all shown occurrences of one direction, and the types for a person to read."""
    links = np.sort([link for one in types for link in turns(one.links)])
    shown = finds.pairs.keep(links)
    rows = {label: finds.found[label, layer] for label, layer in layers.items()}
    fared: dict[tuple[str, int], Flags | Doubles] = {
        (label, layer): (rows[label] == finds.right)[links][None] for label, layer in layers.items()
    }
    keys = {"line": shown.bitext.line[shown.sentence], "source": shown.source, "target": shown.target}
    columns = {name: np.asarray(column, np.int64) for name, column in keys.items()}
    told = [record(one, finds, next(iter(layers.values())), rows, len(links)) for one in types]
    cluster, names = by_sentence(shown.bitext, shown.sentence)
    return replace(scorer, keys=columns, cluster=cluster, names=names).measurement(
        fared, artifacts={"senses": told}
    )


def _scorer(
    encoders: Mapping[str, Encoder], pairs: WordPairs, retrieval: RetrievalOptions, recipe: str
) -> Scorer:
    radius = retrieval.radius_k if retrieval.similarity is Similarity.CSLS else ""
    return Scorer(
        Result(TASK, METRIC, 0.0, pairs.languages, "", seed=retrieval.seed),
        {label: encoder.fingerprint for label, encoder in encoders.items()},
        {},
        np.zeros(0, np.int64),
        {
            "sim": f"{retrieval.similarity.value}{radius}",
            "pooling": retrieval.pooling,
            "linker": pairs.linker or None,
            "data": pairs.fingerprint[:12],
            "recipe": recipe[:12] or None,
        },
        rounds=retrieval.rounds,
    )
