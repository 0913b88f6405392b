"""Nearest neighbours between two sets of vectors, by cosine or CSLS, in both directions at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from calque.errors import BadInput, BadSetting
from calque.recipe import Choice
from calque.types import Floats, Longs


class Similarity(Choice):
    """What near means: cosine, or csls (cosine corrected for crowded neighbourhoods)."""

    COSINE = "cosine"
    CSLS = "csls"


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The best candidates of each query, best first. Shape: index, score (queries, k)."""

    index: Longs
    score: Floats


@dataclass(frozen=True, eq=False)
class TwoWay:
    """Neighbours of source rows among the target rows (forward), and the other way round (backward)."""

    forward: Neighbours
    backward: Neighbours


def two_way(
    source: Any,
    target: Any,
    *,
    similarity: Similarity = Similarity.CSLS,
    k: int = 1,
    radius_k: int = 10,
    queries: tuple[Longs | None, Longs | None] = (None, None),
    device: str = "cpu",
    block: int = 1024,
) -> TwoWay:
    """The k most similar rows of the other side, in both directions.

    Shape: source (n, d), target (m, d), NumPy or torch, of any length: rows are brought to unit length here,
    and a row of zeros has cosine 0 with everything. `queries` are row numbers to search for on either side
    (None: all); candidates are always all rows. Fewer than k candidates give as many columns as there are.
    csls(x, y) = 2cos(x, y) − r_T(x) − r_S(y), r the mean cosine to the `radius_k` nearest rows of the other
    side, over all rows. Of equal candidates the lowest row number wins.

    >>> found = two_way(np.eye(3), np.eye(3)[[2, 0, 1]], radius_k=1)
    >>> found.forward.index.ravel().tolist(), found.backward.index.ravel().tolist()
    ([1, 2, 0], [2, 0, 1])
    """
    if k < 1 or radius_k < 1:
        raise BadSetting(f"k and radius_k must be at least 1, not {k} and {radius_k}")
    s, t = unit_rows(source, device), unit_rows(target, device)
    if s.shape[1] != t.shape[1]:
        raise BadInput(f"vectors of {s.shape[1]} and of {t.shape[1]} dimensions cannot be compared")
    r_s = r_t = None
    if similarity is Similarity.CSLS:
        r_s, r_t = _radius(s, t, radius_k, block), _radius(t, s, radius_k, block)
    return TwoWay(
        _search(s, t, (r_s, r_t), k, queries[0], block), _search(t, s, (r_t, r_s), k, queries[1], block)
    )


def unit_rows(rows: Any, device: str = "cpu") -> torch.Tensor:
    """Rows at unit length in single precision; rows of zeros stay. Shape: (n, d) to (n, d)."""
    x = torch.as_tensor(rows).to(device, torch.float32)
    if x.ndim != 2 or not x.numel():
        raise BadInput(f"no vectors to search among: shape {tuple(x.shape)}, not (n, d)")
    norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    if not torch.isfinite(norm).all():
        raise BadInput("vectors hold NaN or infinity", remedy="check the encoder's output and its precision")
    return x / torch.where(norm > 0, norm, 1)


def _radius(x: torch.Tensor, y: torch.Tensor, k: int, block: int) -> torch.Tensor:
    near = min(k, len(y))
    return torch.cat([(part @ y.T).topk(near, dim=1).values.mean(1) for part in torch.split(x, block)])


def _search(
    x: torch.Tensor,
    y: torch.Tensor,
    radii: tuple[torch.Tensor | None, torch.Tensor | None],
    k: int,
    queries: Longs | None,
    block: int,
) -> Neighbours:
    rows = torch.arange(len(x)) if queries is None else torch.as_tensor(np.asarray(queries, np.int64))
    index, score = [], []
    for part in torch.split(rows, block):
        scores = x[part] @ y.T
        if radii[0] is not None and radii[1] is not None:
            scores = 2 * scores - radii[0][part, None] - radii[1]
        ordered = scores.sort(dim=1, descending=True, stable=True)
        index.append(ordered.indices[:, :k])
        score.append(ordered.values[:, :k])
    return Neighbours(torch.cat(index).cpu().numpy(), torch.cat(score).cpu().numpy())
