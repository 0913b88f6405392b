"""Whole verbs on real sizes, beside the products of matrices that they cannot do without.

    calque link news.en-de.tsv --languages en de --linker fast-align --out links
    python benchmarks/verbs.py links/train --pairs 1000
    python benchmarks/verbs.py links/train --pairs 30000 --ways rotation
    python benchmarks/verbs.py links/train --pairs 500 --encoder base

A verb is called as a program would call it, with an empty cache, at one thread, in a process of its own, and
its processor time is counted from the call on: reading transformers, opening the encoder, cutting text into
pieces, reading it, searching, intervals, writing. `bare` are the products (`bare.py`): the encoder's for all
texts at their own lengths, those of words with all words where a verb searches or learns a map. `--parts`
calls it once more under cProfile, which makes small functions slower than they are. `base` has the shape of
XLM-R base, with random weights.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bare import Products, Shape
from calque.encoders.bundled import bundled_directory
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.spans import batches
from calque.pipeline import align, measure_lexicon, measure_sentences, measure_words
from calque.progress import shown
from calque.store import load_pairs, save_pairs
from calque.types import Bitext, Sentences
from partial import random_base

#: What a verb does, by the functions that do it: none of them calls another of the list.
PARTS = {
    "opening the encoder": ("hub.py", ("read_model",)),
    "fingerprints": ("encoder.py", ("fingerprint",)),
    "pieces": ("tokens.py", ("layout",)),
    "the encoder": ("encoder.py", ("_read_into",)),
    "sums for maps": ("moments.py", ("add",)),
    "search": ("neighbours.py", ("two_way",)),
    "intervals and tests": ("scoring.py", ("measurement",)),
    "writing arrays": ("store.py", ("save_array",)),
    "reading the cache": ("cached.py", ("_read",)),
}


@dataclass(frozen=True)
class Verb:
    """What is timed, into a folder; and, of an encoder and a bitext, products beyond the encoder's own."""

    run: Callable[[str, Path, Path], object]
    more: Callable[[HuggingFaceEncoder, Bitext], None]


def main() -> None:
    given = arguments()
    if given.way:
        print(json.dumps(measure(given)))
        return
    for way in given.ways or WAYS:
        run = subprocess.run([sys.executable, *sys.argv, "--way", way], capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(run.stderr)
        found = json.loads(run.stdout.splitlines()[-1])
        parts = [f"{name} {share:.0%}" for name, share in found["parts"].items() if share >= 0.01]
        told = f"  ({', '.join(parts)})" if parts else ""
        ratio = found["seconds"] / found["bare"]
        print(
            f"{way:10} {found['pairs']:,} pairs {found['seconds']:8.1f} s  bare products "
            f"{found['bare']:8.1f} s  ratio {ratio:.2f}  {found['memory']:.2f} GB{told}",
            flush=True,
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Whole verbs beside the bare products.")
    parser.add_argument("links", type=Path, help="a folder of links")
    parser.add_argument("--pairs", type=int, default=1000, help="the first so many pairs of sentences")
    parser.add_argument("--encoder", default="e5-small-q4", choices=("e5-small-q4", "base"))
    parser.add_argument("--ways", nargs="*", choices=WAYS, help="only these")
    parser.add_argument("--parts", action="store_true", help="say what shares of the time parts take")
    parser.add_argument("--way", choices=WAYS, help="only this one, in this process")
    return parser.parse_args()


def measure(given: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root, shown(False):
        folder, verb = Path(root), WAYS[given.way]
        spec, links = an_encoder(given.encoder, folder), folder / "links"
        pairs = load_pairs(given.links)
        pairs = pairs.sentences(np.arange(min(given.pairs, len(pairs.bitext))))
        links.mkdir()
        save_pairs(links, pairs)
        os.environ["CALQUE_CACHE"] = str(folder / "cache")
        began = time.process_time()
        verb.run(spec, links, folder / "run")
        found: dict[str, Any] = {"seconds": time.process_time() - began, "memory": peak()}
        found["bare"] = bare_products(HuggingFaceEncoder.load(spec), pairs.bitext, verb)
        found["parts"] = {}
        if given.parts:
            os.environ["CALQUE_CACHE"] = str(folder / "another")
            found["parts"] = profiled(lambda: verb.run(spec, links, folder / "again"))
    return {"pairs": len(pairs.bitext), **found}


def an_encoder(name: str, folder: Path) -> str:
    """A folder with the encoder in it, so that no run decodes it."""
    if name == "base":
        random_base().save(folder / "base")
        return str(folder / "base")
    return str(shutil.copytree(bundled_directory(name), folder / name))


def profiled(run: Callable[[], object]) -> dict[str, float]:
    """Shares of a call by PARTS, and of what is left."""
    profile, began = cProfile.Profile(time.process_time), time.process_time()
    profile.runcall(run)
    seconds = time.process_time() - began
    stats = pstats.Stats(profile)
    spent = {
        part: sum(
            row[3]  # cumulative
            for (path, _, name), row in stats.stats.items()  # type: ignore[attr-defined]
            if Path(path).name == file and name in names
        )
        for part, (file, names) in PARTS.items()
    }
    return {part: s / seconds for part, s in spent.items()} | {"other": 1 - sum(spent.values()) / seconds}


def peak() -> float:
    """The most that this process has held, in GB."""
    told = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(told["VmHWM"].split()[0]) * 1024 / 1e9


def bare_products(encoder: HuggingFaceEncoder, bitext: Bitext, verb: Verb) -> float:
    lots = []
    for side in (bitext.source, bitext.target):
        lengths = encoder.reader.layout(side).lengths
        lots += [lengths[rows] for rows in batches(lengths, encoder.batch_tokens)]
    bound = Products(Shape.of(encoder.body.config), max(int(lot.sum()) for lot in lots))
    began = time.process_time()
    bound.all(lots)
    verb.more(encoder, bitext)
    return time.process_time() - began


def every_word(encoder: HuggingFaceEncoder, bitext: Bitext) -> None:
    """All words of one side with all of the other, at the last layer."""
    product(len(bitext.source.ids), len(bitext.target.ids), encoder.width)


def every_sentence(encoder: HuggingFaceEncoder, bitext: Bitext) -> None:
    product(len(bitext), len(bitext), encoder.width)


def every_type(encoder: HuggingFaceEncoder, bitext: Bitext) -> None:
    product(types(bitext.source), types(bitext.target), encoder.width)


def a_map(encoder: HuggingFaceEncoder, bitext: Bitext) -> None:
    """Each side's vectors with the other's, summed over about as many links as words."""
    x = torch.randn(4096, encoder.width)
    for _ in range(len(bitext.source.ids) // 4096):
        x.T @ x


def product(rows: int, columns: int, width: int, block: int = 4096) -> None:
    x, y = torch.randn(block, width), torch.randn(block, width)
    for _ in range(max(1, round(rows * columns / block**2))):
        x @ y.T


def types(sentences: Sentences) -> int:
    return len(np.unique(sentences.ids))


def dictionary(links: Path) -> str:
    """The pairs of words that are linked most often, as a dictionary."""
    pairs, path = load_pairs(links), links / "en-de.txt"
    strings = pairs.bitext.source.vocabulary.strings
    both, count = np.unique(np.stack([pairs.source_ids, pairs.target_ids], 1), axis=0, return_counts=True)
    chosen = both[np.argsort(-count, kind="stable")[:1500]].tolist()
    lines = (f"{strings[a]}\t{strings[b]}\n" for a, b in chosen)
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


WAYS: dict[str, Verb] = {
    "rotation": Verb(lambda e, links, out: align(e, links, method="rotation", out=out), a_map),
    "words": Verb(lambda e, links, out: measure_words(e, links, layers="last", out=out), every_word),
    "sentences": Verb(
        lambda e, links, out: measure_sentences(e, links, layers="last", out=out), every_sentence
    ),
    "lexicon": Verb(
        lambda e, links, out: measure_lexicon(e, dictionary(links), pairs=links, layers="last", out=out),
        every_type,
    ),
}


if __name__ == "__main__":
    main()
