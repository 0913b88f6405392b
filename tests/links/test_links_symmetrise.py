"""Symmetrisation against thot's own, on random matrices and on real text."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.links.symmetrise import Symmetrisation, symmetrise
from calque.types import Bitext, WordPairs

thot_common = pytest.importorskip("thot.common")

THOT = {
    Symmetrisation.INTERSECTION: "intersect",
    Symmetrisation.UNION: "union",
    Symmetrisation.GROW_DIAG: "grow_diag",
    Symmetrisation.GROW_DIAG_FINAL: "grow_diag_final",
    Symmetrisation.GROW_DIAG_FINAL_AND: "grow_diag_final_and",
}


def by_thot(forward: np.ndarray, backward: np.ndarray, how: Symmetrisation) -> np.ndarray:
    one, other = (thot_common.WordAlignmentMatrix(*forward.shape) for _ in range(2))
    for matrix, links in ((one, forward), (other, backward)):
        for i, j in np.argwhere(links).tolist():
            matrix[i, j] = True
    combined = getattr(one, THOT[how])(other)
    return np.asarray((one if combined is None else combined).to_numpy(), bool)


def as_pairs(matrices: list[np.ndarray], score: float = 1.0) -> WordPairs:
    text = Bitext.of(
        ("aa", "bb"), [["x"] * m.shape[0] for m in matrices], [["y"] * m.shape[1] for m in matrices]
    )
    rows = [(k, i, j) for k, matrix in enumerate(matrices) for i, j in np.argwhere(matrix)]
    columns = np.asarray(rows, int).reshape(-1, 3).T
    return WordPairs.of(text, *columns, np.full(len(rows), score))


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sentences linked both ways: some as a model would (one word each), some with any links at all."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    forward, backward = [], []
    for _ in range(draw(st.integers(1, 6))):
        n, m = draw(st.integers(1, 9)), draw(st.integers(1, 9))
        if draw(st.booleans()):
            one = np.eye(n + 1, dtype=bool)[rng.integers(0, n + 1, m)].T[:n]
            other = np.eye(m + 1, dtype=bool)[rng.integers(0, m + 1, n)][:, :m]
        else:
            one, other = rng.random((2, n, m)) < rng.random() / 2
        forward.append(one)
        backward.append(other)
    return forward, backward


@pytest.mark.parametrize("how", Symmetrisation)
@given(corpus=corpora())
def test_equals_thot(how: Symmetrisation, corpus: tuple[list[np.ndarray], list[np.ndarray]]) -> None:
    forward, backward = corpus
    links = symmetrise(as_pairs(forward), as_pairs(backward), how)
    for k, (one, other) in enumerate(zip(forward, backward, strict=True)):
        mine = np.zeros(one.shape, bool)
        mine[links.source[links.sentence == k], links.target[links.sentence == k]] = True
        np.testing.assert_array_equal(mine, by_thot(one, other, how))


@pytest.mark.parametrize("how", Symmetrisation)
def test_equals_thot_on_real_text(how: Symmetrisation, shared_data: Path) -> None:
    import thot.alignment

    lines = (shared_data / "gold_alignments/xl-wa/es/test.tsv").read_text(encoding="utf-8").splitlines()
    text = [(line.split("\t")[0].split(), line.split("\t")[1].split()) for line in lines]
    models = [thot.alignment.FastAlignModel() for _ in range(2)]
    for model, flip in zip(models, (1, -1), strict=True):
        model.emit_training_alignments = True
        for pair in text:
            model.add_sentence_pair(*pair[::flip])
        model.start_training()
        for _ in range(3):
            model.train()
        model.end_training()
    theirs = thot.alignment.SymmetrizedAlignmentModel(*models)
    theirs.heuristic = getattr(thot.alignment.SymmetrizationHeuristic, how.name)
    matrices = [[m.get_training_alignment(k)[1].to_numpy() for k in range(len(text))] for m in models]
    links = symmetrise(as_pairs(matrices[0]), as_pairs([m.T for m in matrices[1]]), how)
    expected = as_pairs([theirs.get_training_alignment(k)[1].to_numpy() for k in range(len(text))])
    assert len(links) > 2000
    np.testing.assert_array_equal(links.sentence, expected.sentence)
    np.testing.assert_array_equal(links.source, expected.source)
    np.testing.assert_array_equal(links.target, expected.target)


def test_scores_are_means() -> None:
    forward = as_pairs([np.array([[1, 1], [0, 0]], bool)], score=0.8)
    backward = as_pairs([np.array([[1, 0], [0, 1]], bool)], score=0.4)
    union = symmetrise(forward, backward, Symmetrisation.UNION)
    assert union.score.tolist() == pytest.approx([0.6, 0.4, 0.2])


def test_no_links_at_all() -> None:
    nothing = as_pairs([np.zeros((2, 3), bool)])
    for how in Symmetrisation:
        assert len(symmetrise(nothing, nothing, how)) == 0


def test_two_texts_are_refused() -> None:
    with pytest.raises(BadInput, match="different text"):
        symmetrise(as_pairs([np.eye(2, dtype=bool)]), as_pairs([np.eye(3, dtype=bool)]), Symmetrisation.UNION)
