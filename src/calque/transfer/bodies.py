"""What may stand between an encoder's vectors and a head: a mix of layers, then layers of its own.

A body takes vectors of units and which units are real (real ones come first, at least one a row), and gives
vectors of its own width `out`. What stands beyond a row's end never changes what it gives for real units.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch

from calque.errors import BadInput, BadSetting
from calque.recipe import Choice


class Mixing(Choice):
    """How the vectors of several layers become one.

    weighted: a learned mean times a learned number (W, as ELMo does). sum: their sum (K). mean: their mean.
    """

    WEIGHTED = "weighted"
    SUM = "sum"
    MEAN = "mean"


class BodyKind(Choice):
    """What follows frozen vectors.

    none: nothing. bilstm: recurrent layers in both directions (K). transformer: attention layers (W, U).
    """

    NONE = "none"
    BILSTM = "bilstm"
    TRANSFORMER = "transformer"


class Norm(Choice):
    """Where attention layers normalise: post, after each part (W), or pre, before it."""

    POST = "post"
    PRE = "pre"


class Positions(Choice):
    """What tells attention layers the order of units.

    none: only what the vectors hold of it (W). sinusoidal: fixed waves. learned: a vector a place.
    """

    NONE = "none"
    SINUSOIDAL = "sinusoidal"
    LEARNED = "learned"


class LayerMix(torch.nn.Module):
    """Vectors of several layers to one each. Weighted, it begins as the mean; one layer stays as it is."""

    def __init__(self, layers: int, how: str = "weighted") -> None:
        super().__init__()
        at_least_one(layers=layers)
        self.layers, self.how = layers, Mixing.parse(how)
        if layers > 1 and self.how is Mixing.WEIGHTED:
            self.weights = torch.nn.Parameter(torch.zeros(layers))
            self.gamma = torch.nn.Parameter(torch.ones(()))

    def forward(self, stacked: torch.Tensor) -> torch.Tensor:
        """Shape: (layers, batch, units, d) to (batch, units, d)."""
        if len(stacked) != self.layers:
            raise BadInput(f"vectors of {len(stacked)} layers", remedy=f"{self.layers} were announced")
        if self.layers == 1:
            return stacked[0]
        if self.how is Mixing.WEIGHTED:
            mixed: torch.Tensor = torch.tensordot(self.gamma * self.weights.softmax(0), stacked, 1)
            return mixed
        return stacked.sum(0) if self.how is Mixing.SUM else stacked.mean(0)


class Body(torch.nn.Module):
    """Vectors of units to vectors of width `out`; by itself, no change."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self.out = out

    def forward(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Shape: (batch, units, d), (batch, units) to (batch, units, out)."""
        return vectors


class BiLstm(Body):
    """Recurrent layers in both directions, `width` wide each; dropout before every layer and at the end.

    Two one-way networks a layer, of which one reads rows backwards from their own ends: nothing has to be
    packed, which costs half as much again on a CPU.
    """

    def __init__(self, d: int, *, width: int = 200, layers: int = 2, dropout: float = 0.1) -> None:
        super().__init__(2 * width)
        widths = list(pairwise([d] + [2 * width] * layers))
        self.forth = torch.nn.ModuleList(torch.nn.LSTM(a, b // 2, batch_first=True) for a, b in widths)
        self.back = torch.nn.ModuleList(torch.nn.LSTM(a, b // 2, batch_first=True) for a, b in widths)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Shape: (batch, units, d), (batch, units) to (batch, units, 2 width)."""
        turn = turned(mask)[..., None]
        for forth, back in zip(self.forth, self.back, strict=True):
            vectors = self.dropout(vectors)
            behind, _ = back(vectors.take_along_dim(turn, 1))
            vectors = torch.cat([forth(vectors)[0], behind.take_along_dim(turn, 1)], -1)
        dropped: torch.Tensor = self.dropout(vectors)
        return dropped


def turned(mask: torch.Tensor) -> torch.Tensor:
    """Places that read each row backwards from its own end; padding stays. Shape: (batch, units).

    >>> turned(torch.tensor([[True, True, True, False]])).tolist()
    [[2, 1, 0, 3]]
    """
    place = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - place, place)


class Transformer(Body):
    """Attention layers, four times as wide inside, on vectors brought to `width` where theirs is another."""

    def __init__(
        self,
        d: int,
        *,
        width: int | None = None,
        layers: int = 4,
        dropout: float = 0.1,
        heads: int | None = None,
        norm: str = "post",
        positions: str = "none",
        longest: int = 512,
    ) -> None:
        super().__init__(width or d)
        heads = heads or math.gcd(12, self.out)
        if self.out % heads:
            raise BadSetting(f"{heads} attention heads on vectors {self.out} wide", remedy="a divisor of it")
        first = Norm.parse(norm) is Norm.PRE
        self.project = torch.nn.Identity() if self.out == d else torch.nn.Linear(d, self.out)
        self.places = make_places(positions, self.out, longest)
        self.dropout = torch.nn.Dropout(dropout)
        layer = torch.nn.TransformerEncoderLayer(
            self.out, heads, 4 * self.out, dropout, batch_first=True, norm_first=first
        )
        last = torch.nn.LayerNorm(self.out) if first else None
        # Nested tensors would cut off columns in which no row has a unit.
        self.layers = torch.nn.TransformerEncoder(layer, layers, last, enable_nested_tensor=False)
        for matrix in self.layers.parameters():  # the layers are copies of one another as torch makes them
            if matrix.ndim > 1:
                torch.nn.init.xavier_uniform_(matrix)

    def forward(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Shape: (batch, units, d), (batch, units) to (batch, units, out)."""
        vectors = self.dropout(self.places(self.project(vectors)))
        attended: torch.Tensor = self.layers(vectors, src_key_padding_mask=~mask)
        return attended


class Sinusoids(torch.nn.Module):
    """Adds waves of many lengths, sines in even and cosines in odd columns (Vaswani et al. 2017)."""

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Shape: (batch, units, d), kept."""
        units, d = vectors.shape[1:]
        place = torch.arange(units, device=vectors.device, dtype=torch.float32)[:, None]
        column = torch.arange(d, device=vectors.device)
        angle = place * torch.exp(-math.log(1e4) * (column - column % 2) / d)
        return vectors + torch.where(column % 2 == 0, angle.sin(), angle.cos()).to(vectors.dtype)


class LearnedPlaces(torch.nn.Module):
    """Adds a learned vector a place, for rows of at most `longest` units."""

    def __init__(self, d: int, longest: int) -> None:
        super().__init__()
        self.vectors = torch.nn.Parameter(0.02 * torch.randn(longest, d))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Shape: (batch, units, d), kept."""
        units, longest = vectors.shape[1], len(self.vectors)
        if units > longest:
            raise BadInput(f"a row of {units} units", remedy=f"there are {longest} learned places")
        return vectors + self.vectors[:units]


def make_places(kind: str, d: int, longest: int) -> torch.nn.Module:
    """What adds positions to vectors of width d."""
    match Positions.parse(kind):
        case Positions.NONE:
            return torch.nn.Identity()
        case Positions.SINUSOIDAL:
            return Sinusoids()
        case Positions.LEARNED:
            at_least_one(longest=longest)
            return LearnedPlaces(d, longest)


def make_body(
    kind: str,
    d: int,
    *,
    width: int | None = None,
    layers: int | None = None,
    dropout: float = 0.1,
    heads: int | None = None,
    norm: str = "post",
    positions: str = "none",
    longest: int = 512,
) -> Body:
    """A body for vectors of width d.

    `width` is that of a bilstm in one direction (200 unless said) or of a transformer's vectors (d unless
    said); `layers` are 2 or 4 unless said. `heads`, `norm`, `positions` and `longest` are the transformer's.

    >>> make_body("bilstm", 8, width=3).out, make_body("transformer", 8).out, make_body("none", 8).out
    (6, 8, 8)
    """
    at_least_one(d=d, **{name: n for name, n in (("width", width), ("layers", layers)) if n is not None})
    a_share(dropout=dropout)
    match BodyKind.parse(kind):
        case BodyKind.NONE:
            return Body(d)
        case BodyKind.BILSTM:
            return BiLstm(d, width=width or 200, layers=layers or 2, dropout=dropout)
        case BodyKind.TRANSFORMER:
            return Transformer(
                d,
                width=width,
                layers=layers or 4,
                dropout=dropout,
                heads=heads,
                norm=norm,
                positions=positions,
                longest=longest,
            )


def at_least_one(**sizes: int) -> None:
    """Refuse sizes below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise BadSetting(f"{name} is {size}", remedy="at least 1")


def a_share(**shares: float) -> None:
    """Refuse what is not from 0 to below 1."""
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise BadSetting(f"{name} is {share}", remedy="from 0 to below 1")
