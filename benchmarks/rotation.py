"""A rotation learned from a million streamed pairs: time beside the bare products, memory that stays flat.

python benchmarks/rotation.py [pairs] [--width 768] [--block 8192]
Pairs are made block by block from a planted rotation; making them is not timed.
"""

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np

from calque.geometry.moments import PairMoments
from calque.geometry.solvers import CLOSED_FORM, NEEDS, Method, SolverOptions


def pairs(count: int, turn: np.ndarray, block: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Shape: both (block, d), about a mean that is far greater than their spread."""
    rng = np.random.default_rng(0)
    for start in range(0, count, block):
        source = rng.standard_normal((min(block, count - start), len(turn)), dtype="f") + 3
        yield source, source @ turn.T


def learned(count: int, turn: np.ndarray, block: int) -> tuple[float, float]:
    """Seconds to learn, and the greatest error of the matrix found."""
    moments, spent = PairMoments(NEEDS[Method.ROTATION]), 0.0
    for source, target in pairs(count, turn, block):
        began = time.perf_counter()
        moments.add(source, target)
        spent += time.perf_counter() - began
    began = time.perf_counter()
    [step] = CLOSED_FORM[Method.ROTATION](moments, SolverOptions()).moves.steps
    return spent + time.perf_counter() - began, float(np.abs(step.matrix - turn).max())


def bare(count: int, turn: np.ndarray, block: int, dtype: str) -> float:
    """Seconds for the products alone, on blocks already in this precision."""
    source, target = (x.astype(dtype) for x in next(pairs(block, turn, block)))
    total, began = np.zeros(turn.shape, dtype), time.perf_counter()
    for _ in range(10):
        total += target.T @ source
    return (time.perf_counter() - began) / 10 * count / block


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--block", type=int, default=8192)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.standard_normal((options.width, options.width)))[0].astype("f")
    tenth, _ = learned(options.pairs // 10, turn, options.block)
    before = peak()
    whole, error = learned(options.pairs, turn, options.block)
    double, single = (bare(options.pairs, turn, options.block, dtype) for dtype in ("d", "f"))
    print(f"{options.pairs // 10:>9} pairs  {tenth:7.1f} s, peak {before:.0f} MB")
    print(f"{options.pairs:>9} pairs  {whole:7.1f} s, peak {peak():.0f} MB ({peak() - before:+.0f} MB)")
    print(f"greatest error of the rotation {error:.1e}")
    print(f"bare products: double {double:.1f} s ({whole / double:.2f} times as long with everything), "
          f"single {single:.1f} s ({whole / single:.2f} times)")  # fmt: skip


if __name__ == "__main__":
    main()
