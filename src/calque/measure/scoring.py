"""Values of queries to figures: means with intervals, by bin, and against the first encoder.

What every measure shares. A measure finds out how each of its queries fared under each encoder and layer;
`Scorer` turns that into results and items, `Measurement` is what it hands back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from calque.errors import BadSetting
from calque.measure.breakdown import DIRECTIONS, Bins, bin_scores, queries
from calque.stats.intervals import bootstrap_mean
from calque.stats.signature import signature
from calque.stats.significance import paired
from calque.store import save_items
from calque.text.languages import language_name
from calque.text.names import sentence_names
from calque.types import BESIDE, Bitext, Doubles, Encoder, Flags, Ints, Items, Longs, Result

#: How each query fared, by encoder and layer. Shape: each (ways, queries of a way).
Fared = Mapping[tuple[str, int], Flags | Doubles]


@dataclass(frozen=True, eq=False)
class Measurement:
    """What a measure hands back.

    The `items` field of a result is a key of `items` here; `save` turns it into the digest of a file.
    `counts` say what was scored and what was left out, by reason; `artifacts` are the data of pictures and
    examples for a person to read, by name.
    """

    results: list[Result]
    items: dict[str, Items] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    artifacts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def save(self, folder: Path) -> list[Result]:
        """Write the items into a folder; the results, naming their files."""
        digests = {key: save_items(folder, items) for key, items in self.items.items()}
        return [r if r.items is None else replace(r, items=digests[r.items]) for r in self.results]


@dataclass(frozen=True, eq=False)
class Scorer:
    """Turns how queries fared into results; holds what all of them share.

    `about` says what is measured, without a figure. `encoders` are fingerprints by label, the first is the
    baseline. `keys` name the items, `cluster` is what is resampled together. `signed` are the settings that
    a signature tells. `ways` are the rows of each direction. `names` stand for the clusters in the items,
    where other languages have the same ones: by the sentence of the first language, and of the other.
    Shape: each of keys (queries,), cluster (queries,), names (2, queries) or (1, queries).
    """

    about: Result
    encoders: Mapping[str, str]
    keys: Mapping[str, Longs]
    cluster: Longs
    signed: Mapping[str, object]
    bins: Mapping[str, Bins] = field(default_factory=dict)
    ways: Mapping[str, list[int]] = field(default_factory=lambda: DIRECTIONS)
    rounds: int = 1000
    names: Longs | None = None

    def measurement(self, fared: Fared, **more: Any) -> Measurement:
        """All figures, with their items."""
        items = {self._key(*at): self.items(own) for at, own in fared.items()}
        return Measurement(list(self.results(fared)), items, **more)

    def results(self, fared: Fared) -> Iterator[Result]:
        """Every figure: whole, by bin, and against the first encoder."""
        baseline = next(iter(self.encoders))
        for (label, layer), own in fared.items():
            for direction in self.ways:
                about = self._about(label, layer, direction)
                yield self._whole(about, own)
                yield from self._binned(about, own)
                if label != baseline and (baseline, layer) in fared:
                    yield self._against(baseline, about, own, fared[baseline, layer])

    def items(self, fared: Flags | Doubles) -> Items:
        """One item a query, with one value a direction."""
        keys = {name: column.astype(np.int64) for name, column in self.keys.items()}
        values = {direction: fared[ways].mean(0) for direction, ways in self.ways.items()}
        cluster, *other = [self.cluster] if self.names is None else self.names
        return Items(keys | dict(zip([BESIDE], other, strict=False)), cluster, values)

    def _whole(self, about: Result, fared: Flags | Doubles) -> Result:
        values, cluster = queries(self.ways[about.direction], fared, self.cluster)
        ends = bootstrap_mean(values, cluster, rounds=self.rounds, seed=self.about.seed)
        figures = {"value": float(values.mean()), "count": len(values), **asdict(ends)}
        return replace(about, items=self._key(about.encoder, about.layer), **figures)

    def _binned(self, about: Result, fared: Flags | Doubles) -> Iterator[Result]:
        sampling = {"rounds": self.rounds, "seed": self.about.seed}
        for name, bins in self.bins.items():
            ways = self.ways[about.direction]
            for score in bin_scores(name, bins, ways, fared, self.cluster, **sampling):
                yield replace(about, **asdict(score))

    def _against(self, baseline: str, about: Result, own: Flags | Doubles, other: Flags | Doubles) -> Result:
        ways = self.ways[about.direction]
        before, cluster = queries(ways, other, self.cluster)
        after, _ = queries(ways, own, self.cluster)
        figures = asdict(paired(before, after, cluster, seed=self.about.seed))
        value, note = figures.pop("difference"), figures.pop("test")
        return replace(about, baseline=baseline, value=value, note=note, **figures)

    def _about(self, label: str, layer: int, direction: str) -> Result:
        """A result that says what it is of, and no figure yet."""
        told = {**self.signed, "encoder": self.encoders[label][:12], "layer": layer, "direction": direction}
        made_with = signature(task=self.about.task, **told, seed=self.about.seed)
        return replace(self.about, encoder=label, layer=layer, direction=direction, signature=made_with)

    def _key(self, label: str, layer: int | None) -> str:
        """Where the items of one encoder's layer are held; other scorers of a measure have other names."""
        about = self.about
        return "/".join([about.task, about.metric, about.variant, *self.ways, label, str(layer)])


def by_sentence(bitext: Bitext, sentence: Ints | Longs) -> tuple[Longs, Longs]:
    """Clusters of queries, and their names, which are the same for the same sentence of any bitext.

    A cluster's number is that of the first sentence that reads alike, so that a resampling draws the same
    whatever the names are. Shape: sentence (queries,) to (queries,) and (2, queries), by either language.
    """
    names = np.stack([sentence_names(side) for side in (bitext.source, bitext.target)])
    _, first, place = np.unique(names[0], return_index=True, return_inverse=True)
    return first[place][sentence].astype(np.int64), names[:, sentence]


def layers_of(
    encoders: Mapping[str, Encoder], layers: Mapping[str, Sequence[int]] | Sequence[int]
) -> dict[str, tuple[int, ...]]:
    """The layers to measure of each encoder, checked and in order."""
    if not encoders:
        raise BadSetting("no encoder to measure", remedy="give one or more, the first is the baseline")
    chosen = {}
    for label, encoder in encoders.items():
        asked = layers.get(label, ()) if isinstance(layers, Mapping) else layers
        chosen[label] = tuple(sorted(set(asked)))
        wrong = [layer for layer in chosen[label] if not 0 <= layer <= encoder.depth]
        if wrong or not chosen[label]:
            what = f"has no layer {wrong[0]}" if wrong else "was given no layer to measure"
            raise BadSetting(f"encoder {label!r} {what}", remedy=f"its layers are 0 to {encoder.depth}")
    return chosen


def check_languages(encoders: Mapping[str, Encoder], languages: tuple[str, str]) -> None:
    """Refuse languages that an encoder was not made for."""
    for label, encoder in encoders.items():
        missing = set() if encoder.languages is None else set(languages) - encoder.languages
        if missing:
            raise BadSetting(
                f"encoder {label!r} was not made for {', '.join(sorted(missing))}",
                remedy=f"it takes {', '.join(sorted(encoder.languages or ()))}",
            )


def telling(hits: Flags, count: int, seed: int) -> list[tuple[int, int]]:
    """Way and query of some retrievals for a person to read, first those on which the encoders differ.

    Then come those that all get wrong. Shape: hits (encoders, ways, queries).
    """
    dull = np.where((hits != hits[0]).any(0), 0, 1 + hits[0]).ravel()
    mixed = np.random.default_rng(seed).permutation(dull.size)
    chosen = mixed[np.argsort(dull[mixed], kind="stable")][:count]
    ways, queried = np.divmod(chosen, hits.shape[2])
    return list(zip(ways.tolist(), queried.tolist(), strict=True))


def by_name(languages: Sequence[str]) -> str:
    """Languages as a person reads them. From Python any string may stand for one, and then for itself.

    >>> by_name(("en", "de")), by_name(("my own",))
    ('English–German', 'my own')
    """
    return "–".join(map(_name, languages))


def _name(code: str) -> str:
    try:
        return language_name(code)
    except ValueError:
        return code
