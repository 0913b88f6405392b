"""Projection: PCA and neighbours against scikit-learn, t-SNE on planted clusters."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness as published

from calque.errors import BadInput, BadSetting, MissingExtra
from calque.geometry.projection import Method, nearest, pca, project, trustworthiness, tsne, turned_onto


def clusters(count: int = 8, size: int = 15, width: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(count), size)
    return rng.normal(size=(count, width))[of] * 3 + rng.normal(size=(count * size, width)) * 0.5, of


def test_pca_is_scikit_learns_but_for_signs() -> None:
    x = np.random.default_rng(1).normal(size=(60, 12)) @ np.diag(np.arange(12.0))
    expected = PCA(2).fit_transform(x)
    assert np.allclose(np.abs(pca(x)), np.abs(expected))
    assert (pca(x).max(0) == np.abs(pca(x)).max(0)).all(), "the sign is settled"
    assert np.allclose(pca(x), pca(x + 100.0))


def test_pca_of_points_on_a_line_has_a_flat_second_axis() -> None:
    assert np.allclose(pca(np.outer(np.arange(5.0), [1.0, 2.0]))[:, 1], 0)
    assert pca(np.arange(5.0)[:, None]).shape == (5, 2)


@pytest.mark.parametrize("method", Method)
def test_planted_clusters_stay_together(method: Method) -> None:
    x, of = clusters(count=8 if method is Method.TSNE else 3)
    plane = project(x, method, perplexity=12)
    assert (of[nearest(plane)] == of).all()
    if method is Method.TSNE:
        nearer = np.linalg.norm(plane[:, None] - plane[None], axis=-1)
        np.fill_diagonal(nearer, np.inf)
        neighbours = of[np.argsort(nearer, 1)[:, :10]]
        assert (neighbours == of[:, None]).mean() > 0.99, "neighbours on the plane are of the same cluster"
        assert trustworthiness(x, plane, 10).mean() > 0.9


def test_tsne_is_the_same_for_a_seed() -> None:
    x, _ = clusters(count=4)
    assert np.array_equal(tsne(x, perplexity=8, seed=3), tsne(x, perplexity=8, seed=3))


@settings(max_examples=40)
@given(st.integers(8, 60), st.integers(0, 10**6), st.data())
def test_trustworthiness_is_scikit_learns(n: int, seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    x, plane = rng.normal(size=(n, 5)), rng.normal(size=(n, 2))
    k = data.draw(st.integers(1, (n - 1) // 2))
    own = trustworthiness(x, plane, k)
    assert own.shape == (n,) and own.mean() == pytest.approx(published(x, plane, n_neighbors=k))
    assert np.allclose(trustworthiness(plane, plane, k), 1), "nothing is lost by no projection"


def test_trustworthiness_in_blocks_is_that_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    x, plane = rng.normal(size=(1100, 4)), rng.normal(size=(1100, 2))
    assert trustworthiness(x, plane, 12).mean() == pytest.approx(published(x, plane, n_neighbors=12))


def test_the_nearest_is_that_of_brute_force_and_copies_do_not_shuffle() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(700, 6)) + 100
    distances = ((x[:, None] - x[None]) ** 2).sum(-1)
    np.fill_diagonal(distances, np.inf)
    assert (nearest(x) == distances.argmin(1)).all()
    copies = np.repeat(rng.normal(size=(5, 300)) + 50, 4, axis=0)
    assert nearest(copies).tolist() == [k // 4 * 4 + (k % 4 == 0) for k in range(20)]


def test_turning_undoes_a_rotation_and_keeps_distances() -> None:
    rng = np.random.default_rng(3)
    plane = rng.normal(size=(30, 2))
    angle = 1.1
    spun = plane @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * [1, -1] + 5
    assert np.allclose(turned_onto(spun, plane), plane - plane.mean(0))


def test_mistakes_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = clusters(count=2, size=10)
    with pytest.raises(BadSetting, match=r"perplexity 30 with 20 points \(1 to 6, a third"):
        project(x, Method.TSNE, perplexity=30)
    with pytest.raises(BadSetting, match=r"perplexity 0\.5 with 20 points"):
        project(x, Method.TSNE, perplexity=0.5)
    with pytest.raises(BadInput, match="3 points are too little"):
        project(x[:3], Method.PCA)
    with pytest.raises(BadInput, match="all vectors are equal"):
        project(np.ones((9, 4)), Method.TSNE, perplexity=2)
    with pytest.raises(BadInput, match="NaN or infinity"):
        project(np.full((9, 4), np.nan), Method.PCA)
    with pytest.raises(BadSetting, match=r"10 neighbours of 20 points \(1 to 9"):
        trustworthiness(x, x[:, :2], 10)
    real = builtins.__import__

    def missing(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"t-SNE needs .*pip install 'calque\[projection\]'"):
        tsne(x, perplexity=5)
