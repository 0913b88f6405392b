"""Lexicon induction over whole vocabularies by CSLS: time beside the bare matrix product, and memory.

python benchmarks/lexicon.py [--size 200000] [--width 300] [--words 1500] [--all] [--threads 2] [--check]
Static vectors of two languages that meet but for noise. Words of a dictionary search all words of the other
language, both ways, and radii are taken over all words; with --all every word is asked for. Memory is the
peak of the whole process: interpreter, libraries, both tables and all the rest.
"""

import argparse
import resource
import time
from typing import NamedTuple

import numpy as np
import torch

from calque.encoders.static import StaticEncoder, WordTable
from calque.encoders.wordtypes import Types
from calque.geometry.neighbours import unit_rows
from calque.measure.lexicon import LexiconOptions, TypeVector, lexicon_induction
from calque.text.dictionaries import Dictionary

BLOCK = 4096


def languages(size: int, width: int, seed: int = 0) -> StaticEncoder:
    """Word k of both languages means the same; rare words, at the end, are noisier. Made block by block."""
    rng = np.random.default_rng(seed)
    fading = (np.arange(1, width + 1) ** -0.3).astype("f")
    topics = rng.standard_normal((max(1, size // 50), width), dtype="f")
    tables = {code: np.empty((size, width), "f") for code in ("en", "de")}
    for start in range(0, size, BLOCK):
        count = min(BLOCK, size - start)
        meaning = (
            rng.standard_normal((count, width), dtype="f") + 0.7 * topics[rng.integers(0, len(topics), count)]
        )
        noise = (1 + (start + np.arange(count, dtype="f")) / size)[:, None]
        for table in tables.values():
            table[start : start + count] = (
                meaning + noise * rng.standard_normal((count, width), dtype="f")
            ) * fading
    return StaticEncoder(
        {code: WordTable.of((f"{code}{k}" for k in range(size)), held) for code, held in tables.items()}
    )


class Cost(NamedTuple):
    """Seconds by the clock, and of processor time, which says more on a machine that others use too."""

    wall: float
    processor: float

    @classmethod
    def since(cls, before: tuple[float, float]) -> "Cost":
        return cls(time.perf_counter() - before[0], time.process_time() - before[1])


def clock() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def bare_product(size: int, width: int, most: int = 24) -> Cost:
    """The product of all vectors of one language with all of the other, of which some blocks are done."""
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(rng.standard_normal((BLOCK, width), dtype="f")) for _ in range(2))
    out = torch.empty(BLOCK, BLOCK)
    torch.mm(x, y.T, out=out)
    blocks = (size / BLOCK) ** 2
    done = max(1, min(most, round(blocks)))
    before = clock()
    for _ in range(done):
        torch.mm(x, y.T, out=out)
    cost = Cost.since(before)
    return Cost(cost.wall * blocks / done, cost.processor * blocks / done)


def peak() -> float:
    """Gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def brute_force(encoder: StaticEncoder, asked: np.ndarray) -> float:
    """P@1 of these words by the formula, in double precision."""
    x, y = (unit_rows(encoder.tables[code].vectors).numpy() for code in ("en", "de"))
    radius = np.concatenate(
        [np.partition(y[i : i + 500] @ x.T, -10, axis=1)[:, -10:].mean(1) for i in range(0, len(y), 500)]
    )
    best = [int((2 * y.astype("d") @ x[k].astype("d") - radius).argmax()) for k in asked]
    return float(np.mean(np.array(best) == asked))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=200_000, help="words of each language")
    parser.add_argument("--width", type=int, default=300)
    parser.add_argument("--words", type=int, default=1500, help="words of the dictionary, each way")
    parser.add_argument("--all", action="store_true", help="ask for every word")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="compare P@1 with brute force")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    encoder = languages(options.size, options.width)
    count = options.size if options.all else min(options.words, options.size)
    asked = np.sort(np.random.default_rng(1).permutation(options.size)[:count])
    dictionary = Dictionary(tuple((f"en{k}", f"de{k}") for k in asked.tolist()))
    types = tuple(Types.of_words(code, encoder.tables[code].words) for code in ("en", "de"))
    made = peak()
    before = clock()
    measured = lexicon_induction(
        {"static": encoder},
        types,
        {"forward": dictionary, "backward": dictionary.swapped()},
        [0],
        options=LexiconOptions(vectors=TypeVector.STATIC, rounds=100),
    )
    cost = Cost.since(before)
    most = peak()
    bare = bare_product(options.size, options.width)
    figures = {(r.metric, r.direction): r.value for r in measured.results if r.group is None}
    print(f"{options.size} x {options.size}, d = {options.width}, {count} words each way")
    print(f"lexicon induction    {cost.wall:8.1f} s, {cost.processor:8.1f} s of processor time")
    print(f"bare matrix product  {bare.wall:8.1f} s, {bare.processor:8.1f} s of processor time")
    print(f"ratio                {cost.wall / bare.wall:8.2f}    {cost.processor / bare.processor:8.2f}")
    print(f"peak memory          {most:8.2f} GB; {made:.2f} GB with the vectors made and nothing searched")
    print("both ways            " + ", ".join(f"P@{k} {figures[f'p@{k}', 'both']:.1%}" for k in (1, 5, 10)))
    if options.check:
        some = asked[:: max(1, count // 500)]
        few = {"forward": Dictionary(tuple((f"en{k}", f"de{k}") for k in some.tolist()))}
        found = lexicon_induction({"static": encoder}, types, few, [0], options=LexiconOptions(rounds=10))
        ours = next(r.value for r in found.results if r.metric == "p@1" and r.group is None)
        print(f"P@1 of {len(some)} words    {ours:.2%}, by brute force {brute_force(encoder, some):.2%}")


if __name__ == "__main__":
    main()
