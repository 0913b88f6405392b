"""Sentence retrieval both ways by cosine, CSLS and margin, against the bare product of all pairs and faiss.

python benchmarks/sentences.py [--size 100000] [--width 384] [--threads 2] [--kind random|pairs] [--only NAME]
random: nothing is near anything, the hardest case for a search that looks only where something can be. pairs:
every sentence has a translation. Each is run in a process of its own, so that its memory can be told. The
bare product is what any exact search must compute once; faiss is optional, and searches each way for the ten
neighbours that CSLS and margin need before they can search.
"""

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import torch

from calque.geometry.neighbours import Similarity, two_way, unit_rows
from neighbours import faiss_both_ways, timed


def sentences(size: int, width: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Shape: both (size, width). With `pairs`, row k of one is the translation of row k of the other."""
    rng = np.random.default_rng(0)
    source, other = (rng.standard_normal((size, width), dtype="f") for _ in range(2))
    return source, source + other if kind == "pairs" else other


def bare(source: np.ndarray, target: np.ndarray, block: int = 1024) -> None:
    """All cosines, kept nowhere."""
    x, y = unit_rows(source), unit_rows(target)
    out = torch.empty((block, block))
    for i in range(0, len(x), block):
        for j in range(0, len(y), block):
            rows, columns = x[i : i + block], y[j : j + block]
            torch.mm(rows, columns.T, out=out[: len(rows), : len(columns)])


def methods(threads: int) -> dict[str, Callable[[np.ndarray, np.ndarray], object]]:
    def search(similarity: Similarity) -> Callable[[np.ndarray, np.ndarray], object]:
        return lambda source, target: two_way(source, target, similarity=similarity)

    ours = {similarity.value: search(similarity) for similarity in Similarity}
    return {"bare": bare, **ours, "faiss": lambda s, t: faiss_both_ways(s, t, threads)}


def run(name: str, options: argparse.Namespace) -> None:
    """Time one method, and print seconds, processor seconds and gigabytes beyond its inputs."""
    torch.set_num_threads(options.threads)
    source, target = sentences(options.size, options.width, options.kind)
    work = methods(options.threads)[name]
    work(source[:2000], target[:2000])  # libraries wake up
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cost = timed(lambda: work(source, target))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
    print(cost.wall, cost.processor, grown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kind", choices=("random", "pairs"), default="random")
    parser.add_argument("--only", choices=tuple(methods(1)), help="one of them, for another process to read")
    options = parser.parse_args()
    if options.only:
        run(options.only, options)
        return
    print(f"{options.size} x {options.size}, d = {options.width}, {options.kind}, {options.threads} threads")
    base = 0.0
    for name in methods(options.threads):
        given = [sys.executable, *sys.argv, "--only", name]
        told = subprocess.run(given, capture_output=True, text=True)
        if told.returncode:
            print(f"{name:7} not run: {told.stderr.strip().splitlines()[-1]}")
            continue
        wall, processor, grown = map(float, told.stdout.split())
        base = base or processor
        print(
            f"{name:7} {wall:8.1f} s, {processor:8.1f} s of processor time, "
            f"{processor / base:5.2f} times the bare product, {grown:.2f} GB beyond its inputs"
        )


if __name__ == "__main__":
    main()
