"""Heads: vectors of units (words of a sentence, pieces of a row) to a loss and to predictions.

Everywhere `vectors` is (batch, units, d) and `mask` (batch, units), true for real units; these come first in
each row, at least one. Gold labels are whole numbers, and −1 is what is not labelled. A loss is a *sum*, with
the number of things it was summed over, so that several processes can divide by what all of them have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from torch.nn.functional import cross_entropy, pad

from calque.errors import BadInput, BadSetting
from calque.recipe import Choice
from calque.transfer.bodies import Body, LayerMix, a_share, at_least_one, make_body
from calque.transfer.crf import Crf, exact
from calque.transfer.trees import single_root_tree
from calque.types import Floats

Gold: TypeAlias = Mapping[str, torch.Tensor]
Prediction = TypeVar("Prediction")


class Head(torch.nn.Module, Generic[Prediction]):
    """What a task puts on top of vectors."""

    def loss(self, vectors: torch.Tensor, mask: torch.Tensor, gold: Gold) -> tuple[torch.Tensor, int]:
        """The summed loss of what is labelled, and how many labelled things that is."""
        raise NotImplementedError

    def decode(self, vectors: torch.Tensor, mask: torch.Tensor) -> list[Prediction]:
        """What is predicted for each row, without dropout or gradients."""
        raise NotImplementedError


class Classifier(Head[int]):
    """A label a row, from its first unit. gold: `label` (batch,)."""

    def __init__(self, d: int, labels: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.labels, self.out = labels, dropped_linear(d, labels, dropout)

    def loss(self, vectors: torch.Tensor, mask: torch.Tensor, gold: Gold) -> tuple[torch.Tensor, int]:
        """Cross-entropy, and how many rows are labelled."""
        label = labels_of(gold, "label", mask[:, 0], below=self.labels)
        return labelled_loss(self.out, vectors[:, 0], label)

    def scores(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Probabilities of the labels. Shape: (batch, labels)."""
        with evaluating(self):
            return exact(self.out(vectors[:, 0])).softmax(-1)

    def decode(self, vectors: torch.Tensor, mask: torch.Tensor) -> list[int]:
        """The likeliest label of each row."""
        found: list[int] = self.scores(vectors, mask).argmax(-1).tolist()
        return found


class PooledClassifier(Classifier):
    """A label a row, from its first unit through one more layer with tanh, as BERT and its kin have it."""

    def __init__(self, d: int, labels: int, dropout: float = 0.1) -> None:
        super().__init__(d, labels, dropout)
        self.out = torch.nn.Sequential(
            torch.nn.Dropout(dropout), torch.nn.Linear(d, d), torch.nn.Tanh(), self.out
        )


class Tagger(Head[list[int]]):
    """A label a unit. gold: `tags` (batch, units)."""

    def __init__(self, d: int, labels: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.labels, self.out = labels, dropped_linear(d, labels, dropout)

    def loss(self, vectors: torch.Tensor, mask: torch.Tensor, gold: Gold) -> tuple[torch.Tensor, int]:
        """Cross-entropy, and how many units are labelled."""
        return labelled_loss(self.out, vectors, labels_of(gold, "tags", mask, below=self.labels))

    def decode(self, vectors: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
        """The likeliest label of every real unit."""
        with evaluating(self):
            return trimmed(self.out(vectors).argmax(-1), mask)


class CrfTagger(Head[list[int]]):
    """A label a unit, chosen together with its neighbours'. gold: `tags` (batch, units).

    A row has labels for all its units or for none; what is counted is rows, not units.
    """

    def __init__(self, d: int, labels: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.labels, self.out, self.crf = labels, dropped_linear(d, labels, dropout), Crf(labels)

    def loss(self, vectors: torch.Tensor, mask: torch.Tensor, gold: Gold) -> tuple[torch.Tensor, int]:
        """− log p(tags), and how many rows are labelled."""
        tags = labels_of(gold, "tags", mask, below=self.labels)
        asked = (tags >= 0).any(1)
        if bool(((tags < 0) & mask)[asked].any()):
            raise BadInput(
                "a row has labels for some of its units", remedy="a CRF needs all of them, or none"
            )
        emissions = self.out(vectors[asked])
        likely = self.crf.log_likelihood(emissions, tags[asked], mask[asked])
        return -likely.sum(), len(likely)

    def decode(self, vectors: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
        """The likeliest labels of each row."""
        with evaluating(self):
            return self.crf.decode(self.out(vectors), mask)


class Parser(Head[tuple[list[int], list[int]]]):
    """Heads and relations by biaffine scores (Dozat & Manning 2017), decoded as a tree with one root.

    gold: `heads` (batch, units), 0 the root and k the k-th unit; `relations` (batch, units). The root is a
    learned vector before the units. Without `root_loss`, as in W's program, the root is no candidate, so that
    words that hang from it are trained on their relation only, and whichever of them costs least hangs from
    it in the end.
    """

    def __init__(
        self,
        d: int,
        relations: int,
        *,
        arc: int = 500,
        relation: int = 100,
        dropout: float = 0.33,
        root_loss: bool = True,
    ) -> None:
        super().__init__()
        at_least_one(relations=relations, arc=arc, relation=relation)
        self.relations, self.root_loss = relations, root_loss
        self.root = torch.nn.Parameter(torch.randn(d))
        self.arc_dependent, self.arc_head = _side(d, arc, dropout), _side(d, arc, dropout)
        self.relation_dependent, self.relation_head = _side(d, relation, dropout), _side(d, relation, dropout)
        # Linear from the dependent, with a bias, then a product with the head: all terms of a biaffine form
        # but those that are alike for all heads.
        self.arc = _zero(torch.nn.Linear(arc, arc))
        self.relation = _zero(torch.nn.Linear(relation, relations * (relation + 1)))

    def loss(self, vectors: torch.Tensor, mask: torch.Tensor, gold: Gold) -> tuple[torch.Tensor, int]:
        """Cross-entropy of heads, plus that of relations at the gold heads; how many words have a head."""
        heads = labels_of(gold, "heads", mask, below=mask.sum(1, keepdim=True) + 1)
        relations = labels_of(gold, "relations", mask, below=self.relations)
        nodes = self._with_root(vectors)
        asked = heads >= (0 if self.root_loss else 1)
        arcs = self._arcs(nodes, mask)[asked]
        both = (heads >= 0) & (relations >= 0)
        named = self._relations(nodes, heads, both)
        loss = cross_entropy(arcs, heads[asked], reduction="sum")
        return loss + cross_entropy(named, relations[both], reduction="sum"), int((heads >= 0).sum())

    def decode(self, vectors: torch.Tensor, mask: torch.Tensor) -> list[tuple[list[int], list[int]]]:
        """Heads and relations of each row's units."""
        with evaluating(self):
            nodes = self._with_root(vectors)
            arcs = self._arcs(nodes, mask).log_softmax(-1)
            if not self.root_loss:
                arcs[..., 0] = 0
            found = [_tree(row, n) for row, n in zip(arcs.cpu().numpy(), mask.sum(1).tolist(), strict=True)]
            heads = torch.zeros_like(mask, dtype=torch.long)
            heads[mask] = torch.tensor(list(chain.from_iterable(found)), device=mask.device)
            relations = torch.zeros_like(heads)
            relations[mask] = self._relations(nodes, heads, mask).argmax(-1)
        return list(zip(found, trimmed(relations, mask), strict=True))

    def _with_root(self, vectors: torch.Tensor) -> torch.Tensor:
        """Shape: (batch, units, d) to (batch, 1 + units, d)."""
        return torch.cat([self.root.to(vectors.dtype).expand(len(vectors), 1, -1), vectors], 1)

    def _arcs(self, nodes: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Scores of every word's heads. Shape: (batch, units, 1 + units)."""
        scores = self.arc(self.arc_dependent(nodes[:, 1:])) @ self.arc_head(nodes).transpose(1, 2)
        return hidden(exact(scores), pad(mask, (1, 0), value=self.root_loss)[:, None])

    def _relations(self, nodes: torch.Tensor, heads: torch.Tensor, asked: torch.Tensor) -> torch.Tensor:
        """Scores of relations of the words asked for to these heads. Shape: (asked, relations)."""
        row, word = asked.nonzero(as_tuple=True)
        dependent = self.relation(self.relation_dependent(nodes[:, 1:])[row, word])
        head = pad(self.relation_head(nodes)[row, heads[row, word]], (0, 1), value=1)
        forms = dependent.unflatten(-1, (self.relations, head.shape[-1]))
        return exact((forms @ head[..., None]).squeeze(-1))


class SharedDropout(torch.nn.Module):
    """Dropout of the same columns in all units of a row."""

    def __init__(self, share: float) -> None:
        super().__init__()
        a_share(dropout=share)
        self.dropout = torch.nn.Dropout(share)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Shape: (batch, units, d), kept."""
        return vectors * self.dropout(torch.ones_like(vectors[:, :1])) if self.training else vectors


def _side(d: int, out: int, dropout: float) -> torch.nn.Module:
    """A word as one side of an arc."""
    return torch.nn.Sequential(
        SharedDropout(dropout), torch.nn.Linear(d, out), torch.nn.ELU(), SharedDropout(dropout)
    )


def _zero(layer: torch.nn.Linear) -> torch.nn.Linear:
    """Begin where all heads, or relations, are equally likely."""
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    return layer


def _tree(arcs: Floats, n: int) -> list[int]:
    """Heads of the first n units. Shape: arcs (units, 1 + units)."""
    return [int(head) for head in single_root_tree(np.pad(arcs[:n, : n + 1], ((1, 0), (0, 0))))]


class Span(NamedTuple):
    """From one unit to another, both included, and the sum of their log-probabilities."""

    first: int
    last: int
    score: float


class Spans(Head[tuple[Floats, Floats]]):
    """Where an answer begins and ends. gold: `start` and `end` (batch,), unit 0 when it is not in this row.

    An answer may begin and end at units that are `allowed` (batch, units), true or 1; at all real ones when
    that is not given. Unit 0 always is.
    """

    def __init__(self, d: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.out = dropped_linear(d, 2, dropout)

    def loss(self, vectors: torch.Tensor, mask: torch.Tensor, gold: Gold) -> tuple[torch.Tensor, int]:
        """The mean of the cross-entropies of start and end, and how many rows have both."""
        may = _allowed(mask, gold.get("allowed"))
        ends = torch.stack(
            [labels_of(gold, name, mask[:, 0], below=mask.shape[1]) for name in ("start", "end")]
        )
        asked = (ends >= 0).all(0)
        chosen = ends[:, asked]
        if not bool(may[asked].gather(1, chosen.T).all()) or bool((chosen[0] > chosen[1]).any()):
            raise BadInput("an answer begins or ends where none may, or ends before it begins")
        scores = self._scores(vectors[asked], may[asked])
        return cross_entropy(scores.flatten(0, 1), chosen.flatten(), reduction="sum") / 2, chosen.shape[1]

    def scores(
        self, vectors: torch.Tensor, mask: torch.Tensor, allowed: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """log-probabilities of start and of end, −∞ where none may be. Shape: (batch, units) each."""
        may = _allowed(mask, allowed)
        with evaluating(self):
            start, end = self._scores(vectors, may).log_softmax(-1).masked_fill(~may, -torch.inf)
        return start, end

    def decode(
        self, vectors: torch.Tensor, mask: torch.Tensor, allowed: torch.Tensor | None = None
    ) -> list[tuple[Floats, Floats]]:
        """log-probabilities of start and end for the real units of each row, for `best_span`."""
        start, end = (side.cpu().numpy() for side in self.scores(vectors, mask, allowed))
        return [(start[row, :n], end[row, :n]) for row, n in enumerate(mask.sum(1).tolist())]

    def _scores(self, vectors: torch.Tensor, may: torch.Tensor) -> torch.Tensor:
        """Shape: (batch, units, d), (batch, units) to (2, batch, units)."""
        return hidden(exact(self.out(vectors)).permute(2, 0, 1), may)


def _allowed(mask: torch.Tensor, allowed: torch.Tensor | None) -> torch.Tensor:
    may = mask if allowed is None else mask & (allowed > 0)
    return torch.cat([mask[:, :1], may[:, 1:]], 1)


def best_span(start: ArrayLike, end: ArrayLike, longest: int = 30) -> Span:
    """The likeliest span of at most `longest` units; the earliest, then the shortest, of several.

    Shape: (units,) each, −∞ where a span may not begin or end. The score is −∞ when none may.

    >>> best_span([0, -1, -2, -9], [-9, -2, -9, -1])
    Span(first=0, last=3, score=-1.0)
    >>> best_span([0, -1, -2, -9], [-9, -2, -9, -1], longest=3)
    Span(first=0, last=1, score=-2.0)
    """
    begin, stop = np.asarray(start, np.float64), np.asarray(end, np.float64)
    if begin.shape != stop.shape or begin.ndim != 1 or not len(begin):
        raise BadInput(f"starts and ends have shapes {begin.shape} and {stop.shape}", remedy="(units,) each")
    if not ((begin < np.inf).all() and (stop < np.inf).all()):
        raise BadInput("a log-probability is not a number, or infinite")
    at_least_one(longest=longest)
    wide = min(longest, len(stop))
    ends = sliding_window_view(np.pad(stop, (0, wide - 1), constant_values=-np.inf), wide)
    best = begin + ends.max(1)
    first = int(best.argmax())
    return Span(first, first + int(ends[first].argmax()), float(best[first]))


class TaskModel(torch.nn.Module):
    """Vectors of an encoder's layers, mixed, through a body, to a head."""

    def __init__(self, mix: LayerMix, body: Body, head: Head[Any]) -> None:
        super().__init__()
        self.mix, self.body, self.head = mix, body, head

    def forward(self, stacked: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """What the head is given. Shape: (layers, batch, units, d), (batch, units) to (batch, units, out)."""
        vectors: torch.Tensor = self.body(self.mix(stacked.to(next(self.parameters()).dtype)), mask)
        return vectors

    def loss(self, stacked: torch.Tensor, mask: torch.Tensor, gold: Gold) -> tuple[torch.Tensor, int]:
        """The head's loss and count."""
        return self.head.loss(self(stacked, mask), mask, gold)

    def decode(self, stacked: torch.Tensor, mask: torch.Tensor, **more: torch.Tensor) -> list[Any]:
        """The head's predictions, without dropout or gradients; `more` is for spans: what is `allowed`."""
        with evaluating(self):
            return self.head.decode(self(stacked, mask), mask, **more)


class HeadKind(Choice):
    """What a task asks for.

    classify: a label a row. pooled: the same through a layer with tanh. tag: a label a unit. crf: labels of
    all units together. parse: a tree. span: a part of the row.
    """

    CLASSIFY = "classify"
    POOLED = "pooled"
    TAG = "tag"
    CRF = "crf"
    PARSE = "parse"
    SPAN = "span"


def make_head(
    kind: str,
    d: int,
    *,
    labels: int | None = None,
    relations: int | None = None,
    dropout: float | None = None,
    arc: int = 500,
    relation: int = 100,
    root_loss: bool = True,
) -> Head[Any]:
    """A head on vectors of width d; `dropout` is 0.33 for a parser and 0.1 for others unless said."""
    which = HeadKind.parse(kind)
    share = dropout if dropout is not None else 0.33 if which is HeadKind.PARSE else 0.1
    match which:
        case HeadKind.CLASSIFY:
            return Classifier(d, _needed("labels", labels, kind), share)
        case HeadKind.POOLED:
            return PooledClassifier(d, _needed("labels", labels, kind), share)
        case HeadKind.TAG:
            return Tagger(d, _needed("labels", labels, kind), share)
        case HeadKind.CRF:
            return CrfTagger(d, _needed("labels", labels, kind), share)
        case HeadKind.PARSE:
            count = _needed("relations", relations, kind)
            return Parser(d, count, arc=arc, relation=relation, dropout=share, root_loss=root_loss)
        case HeadKind.SPAN:
            return Spans(d, share)


def make_model(
    kind: str,
    *,
    width: int,
    layers: int = 1,
    labels: int | None = None,
    relations: int | None = None,
    mix: str = "weighted",
    body: str = "none",
    body_width: int | None = None,
    body_layers: int | None = None,
    body_heads: int | None = None,
    body_dropout: float = 0.1,
    norm: str = "post",
    positions: str = "none",
    longest: int = 512,
    dropout: float | None = None,
    arc: int = 500,
    relation: int = 100,
    root_loss: bool = True,
    seed: int = 0,
) -> TaskModel:
    """A model on vectors of `layers` layers of this `width`; the same seed gives the same first weights.

    Options are those of `LayerMix`, `make_body` and `make_head`. Nothing else's random numbers are touched.
    """
    with torch.random.fork_rng(devices=[]):
        # Of the CPU's generator only: `torch.manual_seed` would reach those of GPUs as well.
        torch.default_generator.manual_seed(seed)
        between = make_body(
            body,
            width,
            width=body_width,
            layers=body_layers,
            dropout=body_dropout,
            heads=body_heads,
            norm=norm,
            positions=positions,
            longest=longest,
        )
        head = make_head(
            kind,
            between.out,
            labels=labels,
            relations=relations,
            dropout=dropout,
            arc=arc,
            relation=relation,
            root_loss=root_loss,
        )
        return TaskModel(LayerMix(layers, mix), between, head)


def _needed(name: str, count: int | None, kind: str) -> int:
    if count is None:
        raise BadSetting(f"{kind} without a number of {name}", remedy=f"give {name}")
    return count


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Without dropout or gradients for a while; then every part is as it was."""
    parts = [part for part in module.modules() if part.training]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part in parts:
            part.training = True


def dropped_linear(d: int, out: int, dropout: float) -> torch.nn.Module:
    """Dropout, then a linear layer."""
    at_least_one(d=d, labels=out)
    a_share(dropout=dropout)
    return torch.nn.Sequential(torch.nn.Dropout(dropout), torch.nn.Linear(d, out))


def labels_of(gold: Gold, name: str, mask: torch.Tensor, *, below: int | torch.Tensor) -> torch.Tensor:
    """Gold labels, checked, −1 wherever there is no unit. Shape: that of mask."""
    if name not in gold:
        raise BadInput(f"no gold {name}", remedy=f"given: {', '.join(gold) or 'nothing'}")
    if gold[name].shape != mask.shape:
        shapes = tuple(gold[name].shape), tuple(mask.shape)
        raise BadInput(f"gold {name} of shape {shapes[0]}", remedy=f"{shapes[1]}, as there are units")
    labels = gold[name].long().masked_fill(~mask, -1)
    wrong = (labels < -1) | (labels >= below)
    if bool(wrong.any()):
        value = int(labels[wrong][0])
        most = below if isinstance(below, int) else int(below.expand_as(wrong)[wrong][0])
        raise BadInput(f"{value} among gold {name}", remedy=f"from 0 to {most - 1}, or -1 for none")
    return labels


def labelled_loss(
    out: torch.nn.Module, vectors: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, int]:
    """Cross-entropy summed over what is labelled, and how much that is. Shape: (…, d), (…)."""
    asked = labels >= 0
    guessed = exact(out(vectors[asked]))
    return cross_entropy(guessed, labels[asked], reduction="sum"), len(guessed)


def hidden(scores: torch.Tensor, may: torch.Tensor) -> torch.Tensor:
    """The lowest number there is wherever something may not be chosen, in any precision."""
    return scores.masked_fill(~may, torch.finfo(scores.dtype).min)


def trimmed(found: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
    """Rows without what lies beyond their ends. Shape: (batch, units) each."""
    return [row[:length] for row, length in zip(found.tolist(), mask.sum(1).tolist(), strict=True)]
