"""How time and memory grow with the data: every size of every work in a process of its own.

    cat news.en-de.tsv news.en-es.tsv | shuf > pairs.tsv
    python benchmarks/growth.py pairs.tsv                          # all
    python benchmarks/growth.py pairs.tsv --only linking-eflomal   # one of them
    python benchmarks/growth.py --draw growth.json docs/images/growth.svg

Before the clock starts, a process loads the libraries, makes the input of its size and does the same work
once at the smallest size. Memory is the most it holds during the work less what it held when the work
began: where that is the same at every size, memory is flat. So an input that the caller holds as one array
(neighbours, mining, scoring) does not count, and one that is read or made block by block does. Seconds are
of the processor, on one thread. Linux only, which tells the peak of a stretch of time.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

Work = Callable[[], object]
#: Makes the input of a size in a folder, and tells what is to be timed.
Make = Callable[[int, Path, Path], Work]
WIDTH, LAYERS, BLOCK = 384, 2, 4096
SWEEPS = {"eflomal": 6, "fast-align": 2}


class Kind(NamedTuple):
    """A work, the sizes it is done at, and what a size counts."""

    make: Make
    sizes: tuple[int, ...]
    unit: str


# --------------------------------------------------------------------------------------------- encoders


def extraction(encoder: Callable[[], object], count: int, text: Path, folder: Path) -> Work:
    """Vectors of all words at two layers, written into a cache that is empty."""
    from calque.encoders.cached import CachedEncoder
    from calque.files import Cache
    from calque.text.bitext import read_sentences

    path = folder / f"{count}.txt"
    path.write_text("\n".join(sides(text, count)[0]) + "\n", encoding="utf-8")
    sentences = read_sentences(str(path), "en")
    inner = encoder()

    def work() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as root:
            cached = CachedEncoder(inner, Cache(Path(root), limit=10**12))  # type: ignore[arg-type]
            cached.word_vectors(sentences, layers=[0, inner.depth])  # type: ignore[attr-defined]

    return work


def small() -> object:
    """e5-small-q4."""
    from calque.encoders.open import open_encoder

    return open_encoder("e5-small-q4")


def tiny() -> object:
    """One layer, 32 wide, weights drawn at random, the pieces of e5-small-q4."""
    import torch
    from transformers import BertConfig, BertModel

    from calque.encoders.encoder import HuggingFaceEncoder

    tokenizer = small().tokenizer  # type: ignore[attr-defined]
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    model = BertModel(BertConfig(vocab_size=len(tokenizer), **shape)).eval()
    return HuggingFaceEncoder.from_model(model, tokenizer, "tiny")


# --------------------------------------------------------------------------------------------- vectors


def rotation(count: int, text: Path, folder: Path) -> Work:
    """A rotation learned from paired vectors that come block by block."""
    from calque.geometry.moments import PairMoments
    from calque.geometry.solvers import CLOSED_FORM, NEEDS, Method, SolverOptions

    def work() -> None:
        moments = PairMoments(NEEDS[Method.ROTATION])
        for source, target in blocks(count):
            moments.add(source, target)
        CLOSED_FORM[Method.ROTATION](moments, SolverOptions())

    return work


def cka(count: int, text: Path, folder: Path) -> Work:
    """CKA of two layers a side, with its jackknife, in two passes over blocks."""
    from calque.geometry.cka import ViewSums

    names = [(("source", i), ("target", j)) for i in range(LAYERS) for j in range(LAYERS)]
    same = [pair for pair in names if pair[0][1] == pair[1][1]]

    def views() -> object:
        for source, target in blocks(count):
            yield {
                (side, k): v for side, v in (("source", source), ("target", target)) for k in range(LAYERS)
            }

    def work() -> None:
        sums = ViewSums(names)
        for block in views():  # type: ignore[attr-defined]
            sums.add(block)
        for block in views():  # type: ignore[attr-defined]
            for _ in sums.without_each(block, same):
                pass

    return work


def neighbours(count: int, text: Path, folder: Path) -> Work:
    """CSLS both ways. Time grows with the product of the sides."""
    from calque.geometry.neighbours import two_way

    source, target = paired(count)
    return lambda: two_way(source, target)


def mining(count: int, text: Path, folder: Path) -> Work:
    """Pairs by margin among two sides that are not aligned."""
    from calque.geometry.mining import mine_pairs

    source, target = paired(count)
    return lambda: mine_pairs(source, target)


def scoring(count: int, text: Path, folder: Path) -> Work:
    """A score for each pair of a noisy bitext."""
    from calque.geometry.mining import pair_scores

    source, target = paired(count)
    rows = np.tile(np.arange(count), (2, 1))
    return lambda: pair_scores(source, target, rows)


def blocks(count: int) -> object:
    """Shape: both (block, d). Made anew at each pass, as an encoder would."""
    rng = np.random.default_rng(0)
    for start in range(0, count, BLOCK):
        source = rng.standard_normal((min(BLOCK, count - start), WIDTH), "f")
        yield source, source + rng.standard_normal(source.shape, "f")


def paired(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Shape: both (count, d); row k of one is the translation of row k of the other."""
    rng = np.random.default_rng(0)
    source, noise = (rng.standard_normal((count, WIDTH), "f") for _ in range(2))
    noise += source
    return source, noise


# ------------------------------------------------------------------------------------------------ text


def linking(model: str, count: int, text: Path, folder: Path) -> Work:
    """Both directions by few sweeps, symmetrised, from a bitext that is held.

    Eflomal left alone takes fewer sweeps the larger a text is; memory depends on them hardly.
    """
    from calque.links.statistical import StatisticalLinker, StatisticalModel
    from calque.text.bitext import read_bitext

    bitext = read_bitext([str(bitext_of(count, text, folder))], ("en", "de"), cleaning=None)
    return lambda: StatisticalLinker(StatisticalModel(model), iterations=SWEEPS[model]).link(bitext)


def reading(count: int, text: Path, folder: Path) -> Work:
    """A bitext read, tokenised, cleaned and held as word ids."""
    from calque.text.bitext import read_bitext

    path = bitext_of(count, text, folder)
    return lambda: read_bitext([str(path)], ("en", "de"))


def tagged(count: int, text: Path, folder: Path) -> Work:
    """Sentences with entities in BIO, held."""
    from calque.text.labelled.tags import read_ner

    path = folder / f"{count}.bio"
    with path.open("w", encoding="utf-8") as handle:
        for sentence in sides(text, count)[0]:
            handle.writelines(f"{word}\t{'B-PER' if word.istitle() else 'O'}\n" for word in sentence.split())
            handle.write("\n")
    return lambda: read_ner(path, "en", format="conll")


def treebank(count: int, text: Path, folder: Path) -> Work:
    """CoNLL-U trees, held."""
    from calque.text.conllu import read_conllu

    path = folder / f"{count}.conllu"
    with path.open("w", encoding="utf-8") as handle:
        for sentence in sides(text, count)[0]:
            for i, word in enumerate(sentence.split(), 1):
                handle.write(f"{i}\t{word}\t_\tNOUN\t_\t_\t{i - 1}\t{'dep' if i > 1 else 'root'}\t_\t_\n")
            handle.write("\n")
    return lambda: read_conllu(path)


def sides(text: Path, count: int) -> tuple[list[str], list[str]]:
    """The last two columns of this many lines; those of further rounds differ from the first by a word."""
    with text.open(encoding="utf-8") as handle:
        rows = [line.rstrip("\n").split("\t")[-2:] for line in islice(handle, count)]
    more = (
        [f"{a} {k // len(rows)}", b] if k >= len(rows) else [a, b] for k, (a, b) in enumerate(cycle(rows))
    )
    source, target = zip(*islice(more, count), strict=True)
    return list(source), list(target)


def bitext_of(count: int, text: Path, folder: Path) -> Path:
    path = folder / f"{count}.tsv"
    with path.open("w", encoding="utf-8") as handle:
        handle.writelines(f"{a}\t{b}\n" for a, b in zip(*sides(text, count), strict=True))
    return path


# --------------------------------------------------------------------------------------------- reports


def report(count: int, text: Path, folder: Path) -> Work:
    """The page of a run that measured this many items of each of two encoders at three layers."""
    from calque.measure.breakdown import DIRECTIONS
    from calque.measure.scoring import Scorer
    from calque.report.page import write_page
    from calque.store import save_results
    from calque.types import Result

    rng = np.random.default_rng(0)
    fared = {(name, k): rng.random((2, count)) < 0.8 for name in ("base", "aligned") for k in range(3)}
    about = Result("word-retrieval", "accuracy", 0.0, ("en", "de"), "", variant="contextual")
    keys = {"sentence": np.arange(count) // 10, "source": np.arange(count) % 10}
    prints = {"base": "0" * 12, "aligned": "1" * 12}
    scorer = Scorer(about, prints, keys, np.arange(count) // 10, {}, ways=DIRECTIONS)
    run = folder / f"run{count}"
    run.mkdir()
    save_results(run / "results.jsonl", scorer.measurement(fared).save(run))
    return lambda: write_page(run)


def study(count: int, text: Path, folder: Path) -> Work:
    """The page of a study of about this many cells."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from calque.report.page import write_page
    from study_folders import StudyMaker

    seeds = tuple(range(max(1, round(count / 10))))
    made = StudyMaker(folder / f"study{count}", seeds=seeds, tasks={"ner": False, "nli": True}).build()
    return lambda: write_page(made)


# ------------------------------------------------------------------------------------------------ runs


def of(make: Callable[..., Work], first: object) -> Make:
    return lambda count, text, folder: make(first, count, text, folder)


THOUSANDS = (1000, 10_000, 100_000)
KINDS: dict[str, Kind] = {
    "extraction": Kind(of(extraction, small), (300, 1000, 3000, 10_000), "sentences"),
    "extraction-tiny": Kind(of(extraction, tiny), THOUSANDS, "sentences"),
    "rotation": Kind(rotation, (*THOUSANDS, 1_000_000), "pairs"),
    "cka": Kind(cka, THOUSANDS, "pairs"),
    "neighbours": Kind(neighbours, THOUSANDS, "rows a side"),
    "mining": Kind(mining, THOUSANDS, "rows a side"),
    "scoring": Kind(scoring, THOUSANDS, "rows a side"),
    "report": Kind(report, (*THOUSANDS, 1_000_000), "items"),
    "study": Kind(study, (50, 200, 800), "cells"),
    "reading": Kind(reading, (*THOUSANDS, 1_000_000), "pairs"),
    "bio": Kind(tagged, THOUSANDS, "sentences"),
    "conllu": Kind(treebank, THOUSANDS, "sentences"),
    "linking-eflomal": Kind(of(linking, "eflomal"), THOUSANDS, "pairs"),
    "linking-fast-align": Kind(of(linking, "fast-align"), THOUSANDS, "pairs"),
}


def held(most: bool = False) -> float:
    """MB that this process holds, or the most it held since `forget`."""
    told = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(told["VmHWM" if most else "VmRSS"].split()[0]) * 1024 / 1e6


def forget() -> None:
    """From here on the most is counted anew."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")


def alone(name: str, count: int, text: Path) -> dict[str, float]:
    """One work at one size, in this process."""
    import torch

    torch.set_num_threads(1)
    kind = KINDS[name]
    with tempfile.TemporaryDirectory() as root:
        folders = [Path(root) / part for part in ("first", "own")]
        for folder in folders:
            folder.mkdir()
        first, work = (kind.make(n, text, at) for n, at in zip((kind.sizes[0], count), folders, strict=True))
        first()
        forget()
        before, wall, processor = held(), time.perf_counter(), time.process_time()
        work()
        spent = {"seconds": time.process_time() - processor, "wall": time.perf_counter() - wall}
        return {"size": count, **spent, "before": before, "memory": held(most=True) - before}


def measured(name: str, count: int, text: Path) -> dict[str, float]:
    """The same, in a process of its own."""
    told = subprocess.run(
        [sys.executable, __file__, str(text), "--only", name, "--size", str(count)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True,
        text=True,
    )
    if told.returncode:
        raise SystemExit(told.stderr)
    found: dict[str, float] = json.loads(told.stdout.splitlines()[-1])
    return found


def drawn(held: dict[str, list[dict[str, float]]]) -> str:
    """Memory over size, both by powers of ten, a line a work, as an SVG that stands alone."""
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777")

    def x(size: float) -> float:
        return 70 + 130 * (math.log10(size) - math.log10(50))

    def y(memory: float) -> float:
        return 340 - 80 * math.log10(max(1.0, memory))

    body = []
    for k in range(5):
        body.append(f'<path d="M70 {y(10**k):.0f}H640" stroke="#8884"/>')
        body.append(f'<text x="62" y="{y(10**k) + 4:.0f}" text-anchor="end">{10**k:,}</text>')
        body.append(f'<text x="{x(100 * 10**k):.0f}" y="360" text-anchor="middle">{100 * 10**k:,}</text>')
    last = sorted((y(rows[-1]["memory"]), name) for name, rows in held.items())
    place = -math.inf
    for k, (end, name) in enumerate(last):
        place = max(end, place + 15)
        points = " ".join(f"{x(row['size']):.1f},{y(row['memory']):.1f}" for row in held[name])
        colour = colours[k % len(colours)]
        body.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body.append(f'<path d="M{points.split()[-1]}L655 {place:.0f}" stroke="{colour}66"/>')
        body.append(f'<text x="660" y="{place + 4:.0f}" fill="{colour}">{name}</text>')
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 380" font-family="sans-serif" '
        'font-size="12" fill="#777"><text x="8" y="12">MB held by the work, over the size of its input'
        "</text>" + "\n".join(body) + "</svg>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path, nargs="?", help="TSV, its last two columns a bitext")
    parser.add_argument("--only", choices=KINDS, nargs="+")
    parser.add_argument("--size", type=int, help="this size alone, in this process")
    parser.add_argument("--out", type=Path, default=Path("growth.json"), help="figures are added to it")
    parser.add_argument("--draw", type=Path, nargs=2, metavar=("JSON", "SVG"))
    options = parser.parse_args()
    if options.draw:
        source, target = options.draw
        target.write_text(drawn(json.loads(source.read_text())), encoding="utf-8")
    elif options.text is None:
        parser.error("give a bitext")
    elif options.size:
        print(json.dumps(alone(options.only[0], options.size, options.text)))
    else:
        found = json.loads(options.out.read_text()) if options.out.exists() else {}
        for name in options.only or KINDS:
            unit, found[name] = KINDS[name].unit, []
            for count in KINDS[name].sizes:
                one = measured(name, count, options.text)
                found[name].append(one)
                print(f"{name:18} {count:>9,} {unit:11} {one['seconds']:8.2f} s ({one['wall']:.1f} s)"
                      f"  {one['memory']:+7.0f} MB beyond {one['before']:.0f}", flush=True)  # fmt: skip
            options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
