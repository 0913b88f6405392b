"""CKA of a million rows: time beside the bare products, memory that stays flat.

python benchmarks/cka.py [--rows 10000 100000 1000000] [--width 384] [--layers 2] [--block 4096]
Rows are made block by block, twice the same for the second pass of the jackknife; making them is not timed.
Times are of the processor, which says more on a machine that others use too. Every number of rows runs in a
process of its own, so that each tells its own peak of memory.
"""

import argparse
import multiprocessing
import resource
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from calque.geometry.cka import ViewSums

View = tuple[str, int]


class Spent(NamedTuple):
    """Seconds of either pass and of the bare products in double precision, megabytes before and at most."""

    first: float
    second: float
    bare: float
    before: float
    most: float
    figure: float


def blocks(rows: int, width: int, layers: int, block: int) -> Iterator[dict[View, np.ndarray]]:
    """Shape: each (block, d). A target row is its source row with as much noise, so that CKA is 0.5."""
    rng = np.random.default_rng(0)
    for start in range(0, rows, block):
        size = (min(block, rows - start), width)
        source = {("source", layer): rng.standard_normal(size, "f") + 3 for layer in range(layers)}
        target = {
            ("target", layer): source["source", layer] + rng.standard_normal(size, "f")
            for layer in range(layers)
        }
        yield source | target


def bare(rows: int, width: int, block: int, products: int) -> float:
    """Seconds for this many products of blocks already in double precision."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, min(block, rows), width))
    total, rounds, began = np.zeros((width, width)), 5, time.process_time()
    for _ in range(rounds):
        total += x.T @ y
    return (time.process_time() - began) / rounds * products * rows / len(x)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measured(rows: int, width: int, layers: int, block: int) -> Spent:
    """All layers of one side with all of the other, and the jackknife of equal layers."""
    every = [(("source", i), ("target", j)) for i in range(layers) for j in range(layers)]
    same = [pair for pair in every if pair[0][1] == pair[1][1]]
    before, first, second = peak(), 0.0, 0.0
    sums = ViewSums(every)
    for views in blocks(rows, width, layers, block):
        began = time.process_time()
        sums.add(views)
        first += time.process_time() - began
    for views in blocks(rows, width, layers, block):
        began = time.process_time()
        for _ in sums.without_each(views, same):
            pass
        second += time.process_time() - began
    products = len(every) + 2 * layers
    return Spent(
        first, second, bare(rows, width, block, products), before, peak(), float(sums.cka(*same[0])[1])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--block", type=int, default=4096)
    options = parser.parse_args()
    size = (options.width, options.layers, options.block)
    products = options.layers**2 + 2 * options.layers
    print(f"d = {options.width}, {options.layers} layers a side, {products} products")
    for rows in options.rows:
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            spent = alone.apply(measured, (rows, *size))
        times, more = spent.first / spent.bare, spent.most - spent.before
        print(
            f"{rows:>9} rows  sums {spent.first:.1f} s, {times:.2f} times as long as the bare products; "
            f"jackknife {spent.second:.1f} s; peak {spent.most:.0f} MB, {more:.0f} MB of them for this; "
            f"debiased CKA {spent.figure:.4f}"
        )


if __name__ == "__main__":
    main()
