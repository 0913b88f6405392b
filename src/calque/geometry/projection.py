"""Vectors in two dimensions, and how far the picture can be believed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from calque.errors import BadInput, BadSetting, MissingExtra
from calque.recipe import Choice
from calque.types import Doubles, Longs

#: Rows whose distances to all others are held at once.
_ROWS = 512


class Method(Choice):
    """How vectors are brought onto a plane: tsne (who is near whom) or pca (the widest directions)."""

    TSNE = "tsne"
    PCA = "pca"


def project(x: NDArray[Any], method: Method, *, perplexity: float | None = None, seed: int = 0) -> Doubles:
    """Points on a plane. Shape: (n, d) to (n, 2)."""
    points = np.asarray(x, np.float64)
    if not np.isfinite(points).all():
        raise BadInput("vectors hold NaN or infinity", remedy="check the encoder's output and its precision")
    if len(points) < 4 or (points == points[0]).all():
        told = f"{len(points)} points are" if len(points) < 4 else "all vectors are equal, which is"
        raise BadInput(f"{told} too little to draw", remedy="give more words, or another layer")
    return pca(points) if method is Method.PCA else tsne(points, perplexity=perplexity, seed=seed)


def pca(x: Doubles) -> Doubles:
    """The two directions along which the points differ most; the largest value of each is positive.

    Shape: (n, d) to (n, 2).

    >>> pca(np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]]))[:, 0].round(2).tolist()
    [-2.0, -1.0, 3.0]
    """
    with threadpool_limits(1, user_api="blas"):
        u, sigma, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    plane = np.zeros((len(x), 2))
    plane[:, : len(sigma)] = (u * sigma)[:, :2]
    largest = plane[np.abs(plane).argmax(0), [0, 1]]
    return plane * np.where(largest < 0, -1, 1)


def tsne(x: Doubles, *, perplexity: float | None = None, seed: int = 0) -> Doubles:
    """t-SNE from a PCA, the same for the same seed. Shape: (n, d) to (n, 2).

    `perplexity` is about how many neighbours a point holds on to, by default 30 or a third of the points.
    """
    most = (len(x) - 1) / 3
    perplexity = min(30.0, most) if perplexity is None else perplexity
    if not 1 <= perplexity <= most:
        raise BadSetting(
            f"perplexity {perplexity:g} with {len(x)} points",
            remedy=f"1 to {most:.0f}, a third of the points; or more words or occurrences"
            if most >= 1
            else "give more words or occurrences",
        )
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise MissingExtra("t-SNE", "projection") from None
    # Threads would sum in another order every time.
    with threadpool_limits(1):
        fitted = TSNE(perplexity=perplexity, init="pca", learning_rate="auto", random_state=seed, n_jobs=1)
        return np.asarray(fitted.fit_transform(x), np.float64)


def turned_onto(points: Doubles, other: Doubles) -> Doubles:
    """Points turned and mirrored to lie as others do, all distances as they were. Shape: both (n, 2)."""
    centred, towards = points - points.mean(0), other - other.mean(0)
    u, _, vt = np.linalg.svd(centred.T @ towards)
    return np.asarray(centred @ u @ vt)


def trustworthiness(x: NDArray[Any], plane: NDArray[Any], k: int) -> Doubles:
    """Of each point, how far its k neighbours on the plane are its neighbours in truth: 1 when all are.

    The mean is that of Venna and Kaski: a neighbour on the plane that is only the r-th nearest in truth costs
    r − k. Shape: x (n, d), plane (n, 2) to (n,).
    """
    n = len(x)
    if not 1 <= k < n / 2:
        raise BadSetting(f"{k} neighbours of {n} points", remedy=f"1 to {max(1, (n - 1) // 2)}")
    scale = 2 / (k * (2 * n - 3 * k - 1))
    costs = []
    for start in range(0, n, _ROWS):
        rows = np.arange(start, min(start + _ROWS, n))
        drawn = np.argsort(_distances(plane, rows), axis=1, kind="stable")[:, :k]
        order = np.argsort(_distances(x, rows), axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(1, n + 1)[None], 1)
        costs.append(np.maximum(np.take_along_axis(rank, drawn, 1) - k, 0).sum(1))
    return 1 - scale * np.concatenate(costs)


def nearest(x: NDArray[Any]) -> Longs:
    """The other row nearest to each, the lowest of equals. Shape: (n, d) to (n,)."""
    blocks = (np.arange(start, min(start + _ROWS, len(x))) for start in range(0, len(x), _ROWS))
    return np.concatenate([_distances(x, rows).argmin(1) for rows in blocks])


def _distances(x: NDArray[Any], rows: Longs) -> Doubles:
    """Squared distances of some rows to all, in units of their own, a row's to itself infinite.

    Shape: (rows, n).
    """
    points = np.asarray(x, np.float64)
    points = points - points.mean(0)
    squares = (points * points).sum(1)
    with threadpool_limits(1, user_api="blas"):
        distances = squares[rows, None] + squares[None] - 2 * points[rows] @ points.T
    # Copies of a row lie at one distance but for rounding, which must not put them in order.
    finest = 1e-12 * max(float(squares.max()), np.finfo(np.float64).tiny)
    distances = np.round(distances / finest)
    distances[np.arange(len(rows)), rows] = np.inf
    return np.asarray(distances)
