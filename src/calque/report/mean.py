"""Several language pairs as one: the plain mean of their figures, tested over the items of all of them.

Every language counts the same, however many words were scored in it. Translations of the same sentence of the
language that all pairs share are resampled together, wherever it stands in each text: their words are not
independent. Sentences that one pair alone has are resampled by themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from math import isclose
from typing import Any

import numpy as np

from calque.report.collect import Panel
from calque.stats.intervals import Interval, resamples
from calque.stats.significance import paired
from calque.store import items_path, load_items
from calque.types import BESIDE, Doubles, Items, Longs, Result


def verdict_layer(panels: Sequence[Panel]) -> int | None:
    """The layer a verdict is about: where the baseline is best, on average over the languages.

    It is chosen without looking at the encoders that are judged, so that the choice cannot flatter them.
    """
    first = panels[0]
    base = first.baseline or first.encoders[0]
    layers = shared_layers(panels, first.encoders) or shared_layers(panels, [base])
    return _best(panels, base, layers) if layers else first.best_layer(base)


def _best(panels: Sequence[Panel], encoder: str, layers: Sequence[int | None]) -> int | None:
    """The layer at which an encoder's mean is best, the lowest of equals; None where nothing has a mean."""
    sign = -1 if panels[0].reading.lower else 1
    means = {layer: sign * m.value for layer in layers if (m := _mean(panels, encoder, layer))}
    return max(means, key=means.__getitem__, default=None)


def shared_layers(panels: Sequence[Panel], encoders: Sequence[str]) -> tuple[int | None, ...]:
    """Layers at which all of these encoders were measured in every language."""
    return tuple(
        layer
        for layer in panels[0].layers
        if all(panel.score(name, layer) for panel in panels for name in encoders)
    )


def mean_panel(
    panels: Sequence[Panel], *, judged: bool = True, only: Collection[int | None] | None = None
) -> Panel:
    """The mean of several languages as a panel: scores and differences at every layer, with intervals; where
    it is judged, tests at the layers that the verdict is about, which are its own and the last. With `only`
    there is nothing but these layers, each of them tested."""
    first = panels[0]
    shared = {name: shared_layers(panels, [name]) for name in first.encoders}
    layers = {name: [at for at in held if only is None or at in only] for name, held in shared.items()}
    items = {(name, layer): _values(panels, name, layer) for name in layers for layer in layers[name]}
    made: list[tuple[Result, Sequence[Gains] | None]] = []
    for name, layer in items:
        if score := _mean(panels, name, layer):
            made.append((score, items[name, layer]))
    for name in layers:
        changes = [_plain_mean([panel.change(name, layer) for panel in panels]) for layer in layers[name]]
        compared = [change for change in changes if change is not None and change.baseline is not None]
        tested = set() if not judged else set(only) if only is not None else _tested(panels, compared)
        for change in compared:
            gains = _differences(items.get((str(change.baseline), change.layer)), items[name, change.layer])
            if gains is not None:
                p = mean_test(gains) if change.layer in tested else None
                change = replace(change, p=p, note="permutation")
            made.append((change, gains))
    ends = iter(mean_intervals([gains for _, gains in made if gains is not None]))
    results = tuple(r if gains is None else replace(r, **asdict(next(ends))) for r, gains in made)
    return replace(first, results=results, name=f"mean of {len(panels)} languages")


def _mean(panels: Sequence[Panel], encoder: str, layer: int | None) -> Result | None:
    return _plain_mean([panel.score(encoder, layer) for panel in panels])


def _tested(panels: Sequence[Panel], compared: Sequence[Result]) -> set[int | None]:
    """The layers that a verdict on these differences is about."""
    layers = [change.layer for change in compared]
    base = compared[0].baseline if compared else None
    known = layers if base is None else [at for at in layers if _mean(panels, base, at)]
    best = [_best(panels, base, known)] if base is not None and known else []
    return {verdict_layer(panels), *layers[-1:], *best}


def _differences(before: Sequence[Gains] | None, after: Sequence[Gains] | None) -> list[Gains] | None:
    """What was gained on every item of every language; None where either is not known."""
    if before is None or after is None:
        return None
    return [replace(b, gain=b.gain - a.gain) for a, b in zip(before, after, strict=True)]


def _plain_mean(held: Sequence[Result | None]) -> Result | None:
    """The mean of the languages' figures, without interval and test; None where a language has none."""
    found = [one for one in held if one is not None]
    if len(found) < len(held):
        return None
    value, count = float(np.mean([one.value for one in found])), sum(one.count for one in found)
    empty: dict[str, Any] = {"low": None, "high": None, "p": None, "note": "", "items": None, "signature": ""}
    return replace(found[0], value=value, count=count, **empty)


@dataclass(frozen=True, eq=False)
class Gains:
    """What was gained on the items of one language, and their sentences, by a number that is the same for the
    same sentence in all languages. Shape: both (items,)."""

    gain: Doubles
    sentence: Longs


def mean_intervals(
    figures: Sequence[Sequence[Gains]], *, rounds: int = 1000, seed: int = 0
) -> list[Interval]:
    """95% interval of the mean of the languages' means, of every figure: sentences are resampled in all
    languages at once. Figures over the same sentences are resampled together, which changes none of them."""
    alike: dict[bytes, list[int]] = {}
    tables = [_by_sentence(languages) for languages in figures]
    for place, held in enumerate(tables):
        told = [column.tobytes() for one in held for column in (one.sentence, one.size)]
        alike.setdefault(b" ".join(told), []).append(place)
    found: dict[int, Interval] = {}
    for places in alike.values():
        means = _resampled([tables[place] for place in places], rounds, seed)
        low, high = np.quantile(means, [0.025, 0.975], axis=0)
        found |= {place: Interval(float(a), float(b)) for place, a, b in zip(places, low, high, strict=True)}
    return [found[place] for place in range(len(figures))]


@dataclass(frozen=True, eq=False)
class _Sums:
    """The items of one language by its own sentences, which are numbered over all languages.

    Shape: all (own sentences,).
    """

    sentence: Longs
    total: Doubles
    size: Longs


def _resampled(figures: Sequence[Sequence[_Sums]], rounds: int, seed: int) -> Doubles:
    """Means of the languages' means, of figures over the same sentences. Shape: (rounds, figures)."""
    own = figures[0]
    totals = [np.stack([held[place].total for held in figures], 1) for place in range(len(own))]
    count = 1 + max(int(one.sentence.max()) for one in own)
    means = []
    for weights in resamples(count, rounds, seed):
        drawn = (weights[:, one.sentence] for one in own)
        each = [
            (times @ total) / np.maximum(times @ one.size, 1)[:, None]
            for times, total, one in zip(drawn, totals, own, strict=True)
        ]
        means.append(np.mean(each, axis=0))
    return np.concatenate(means)


def _by_sentence(languages: Sequence[Gains]) -> list[_Sums]:
    """The items of every language by sentence."""
    found = []
    for place, one in zip(_numbered(languages), languages, strict=True):
        sentence, where = np.unique(place, return_inverse=True)
        total = np.asarray(np.bincount(where, one.gain), np.float64)
        found.append(_Sums(sentence, total, np.bincount(where)))
    return found


def _numbered(languages: Sequence[Gains]) -> list[Longs]:
    """The sentences of all languages in the order in which they first occur. Shape: each (items,)."""
    every = np.concatenate([one.sentence for one in languages])
    _, first, place = np.unique(every, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))[place]
    return np.split(rank, np.cumsum([len(one.sentence) for one in languages])[:-1])


def mean_test(languages: Sequence[Gains]) -> float:
    """p of a gain this far from none: before and after exchanged sentence by sentence, in all languages."""
    scaled = np.concatenate([one.gain / len(one.gain) for one in languages])
    return paired(np.zeros_like(scaled), scaled, np.concatenate(_numbered(languages))).p


def _values(panels: Sequence[Panel], encoder: str, layer: int | None) -> list[Gains] | None:
    """The items of one encoder's layer in all languages; None where a run does not hold them."""
    held = [_items(panel, encoder, layer) for panel in panels]
    found = [items for items in held if items is not None]
    direction = panels[0].directions[0]
    if len(found) < len(panels):
        return None
    return [Gains(i.values[direction], _sentences(i, turned=_turned(panels))) for i in found]


def _turned(panels: Sequence[Panel]) -> bool:
    """Whether the pairs share their other language, and not their first."""
    first, other = (len({panel.languages[side] for panel in panels}) for side in (0, 1))
    return other == 1 < first


def _sentences(items: Items, *, turned: bool) -> Longs:
    """The sentences of items by the language that is shared; older runs do not tell the other's."""
    return items.keys.get(BESIDE, items.cluster) if turned else items.cluster


def _items(panel: Panel, encoder: str, layer: int | None) -> Items | None:
    score = panel.score(encoder, layer)
    if score is None or score.items is None or panel.items is None:
        return None
    if not items_path(panel.items, score.items).is_file():
        return None
    items = load_items(panel.items, score.items)
    values = items.values.get(panel.directions[0])
    # A figure that is not the mean of its items (an area, a quotient) cannot be resampled as one.
    return (
        items
        if values is not None and isclose(values.mean(), score.value, rel_tol=1e-5, abs_tol=1e-6)
        else None
    )
