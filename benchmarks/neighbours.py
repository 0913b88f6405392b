"""CSLS both ways against two flat faiss searches for ten neighbours (which is only the first half of CSLS).

python benchmarks/neighbours.py [rows] [--width 384] [--threads 2] [--vectors source.npy target.npy]
Without --vectors: words in context as encoders give them. Frequent and rare words, a context shared by the
sentence, a common direction, components that fade. faiss is optional.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from calque.geometry.neighbours import Similarity, two_way, unit_rows


def words(count: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Shape: both (count, width); row k of one is the translation of row k of the other."""
    rng = np.random.default_rng(seed)
    fading = (np.arange(1, width + 1) ** -0.6).astype("f")
    kinds = np.minimum(rng.zipf(1.3, count), 20_000) - 1
    word = rng.standard_normal((20_000, width), dtype="f")[kinds]
    sentence = rng.standard_normal((count // 20 + 1, width), dtype="f")[np.arange(count) // 20]
    meaning = 1.0 * word + 0.6 * sentence + 0.5 * rng.standard_normal((count, width), dtype="f")
    common = 0.3 * rng.standard_normal(width, dtype="f")
    sides = [meaning + 0.5 * rng.standard_normal((count, width), dtype="f") + common for _ in range(2)]
    return sides[0] * fading, sides[1] * fading


class Cost(NamedTuple):
    """Seconds by the clock, and of processor time, which says more on a machine that others use too."""

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{self.wall:7.1f} s, {self.processor:7.1f} s of processor time"


def timed(work: Callable[[], object]) -> Cost:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - processor)


def faiss_both_ways(source: np.ndarray, target: np.ndarray, threads: int) -> None:
    import faiss

    faiss.omp_set_num_threads(threads)
    sides = [np.ascontiguousarray(x / np.linalg.norm(x, axis=1, keepdims=True)) for x in (source, target)]
    for queries, candidates in (sides, sides[::-1]):
        index = faiss.IndexFlatIP(candidates.shape[1])
        index.add(candidates)
        index.search(queries, 10)


def agreement(source: np.ndarray, target: np.ndarray, found: np.ndarray, rows: np.ndarray) -> float:
    """Share of sampled forward answers that score as high as the best by brute force in double precision."""
    s, t = (unit_rows(x).numpy().astype("d") for x in (source, target))
    radius = np.empty(len(t))
    for start in range(0, len(t), 500):
        near = t[start : start + 500] @ s.T
        radius[start : start + 500] = np.partition(near, -10, axis=1)[:, -10:].mean(1)
    scores = 2 * s[rows] @ t.T - radius
    chosen = np.take_along_axis(scores, found[rows], 1)[:, 0]
    return float((chosen > scores.max(1) - 3e-7).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=int, nargs="?", default=50_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vectors", nargs=2)
    parser.add_argument("--check", action="store_true", help="compare 500 answers with brute force")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.vectors:
        source, target = (np.load(path)[: options.rows].astype("f") for path in options.vectors)
    else:
        source, target = words(options.rows, options.width, seed=0)
    two_way(source[:2000], target[:2000])  # libraries wake up
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    held: list[np.ndarray] = []
    ours = timed(lambda: held.append(two_way(source, target).forward.index))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
    cosine = timed(lambda: two_way(source, target, similarity=Similarity.COSINE, k=10))
    print(f"{len(source)} x {len(target)}, d = {source.shape[1]}, {options.threads} threads")
    print(f"CSLS both ways       {ours}; at most {grown:.2f} GB beyond the inputs")
    print(f"cosine 10 both ways  {cosine}")
    try:
        theirs = timed(lambda: faiss_both_ways(source, target, options.threads))
        print(f"faiss, two searches  {theirs}")
        print(f"faiss takes {theirs.wall / ours.wall:.2f} times as long, "
              f"{theirs.processor / ours.processor:.2f} times the processor time")  # fmt: skip
    except ImportError:
        print("faiss is not installed: no comparison")
    if options.check:
        rows = np.random.default_rng(1).permutation(len(source))[:500]
        print(f"equal to brute force on {agreement(source, target, held[0], rows):.1%} of 500 queries")


if __name__ == "__main__":
    main()
