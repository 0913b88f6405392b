"""calque beside other programs: the same work in one process, a ratio of times, and how results differ.

    pip install -e '.[bench]'
    pip install eflomal supar    # the first has no wheel and needs a C compiler
    python benchmarks/peers.py news.en-de.tsv panx.en.dev.tsv [--threads 2] [--only links neighbours]

Each does the work in turn, `--rounds` times, and the best time counts: of the processor on one thread (with
that of programs it starts), by the clock on several. A peer that is not installed is said and left out.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from neighbours import words


class Contest(NamedTuple):
    """Two ways to do one work, and what to say of their two results."""

    what: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    differ: Callable[[Any, Any], str]


class Given(NamedTuple):
    """What to work on."""

    text: Path
    tags: Path
    threads: int
    folder: Path

    def bitext(self, count: int) -> Any:
        from calque.text.bitext import read_bitext

        return read_bitext([str(self.text)], ("en", "de"), limit=count)


def links(given: Given) -> Contest:
    """simalign: mutual argmax of word vectors, one sentence pair at a time."""
    from simalign import SentenceAligner

    from calque.encoders.open import open_encoder
    from calque.links.similarity import SimilarityLinker

    folder, layer = given.folder / "plain", 8
    encoder = open_encoder("e5-small-q4")
    encoder.model.save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    peer = SentenceAligner(str(folder), "word", matching_methods="a", layer=layer)
    bitext = given.bitext(200)

    def theirs() -> set[tuple[int, int, int]]:
        pairs = enumerate(zip(bitext.source, bitext.target, strict=True))
        return {(k, i, j) for k, (a, b) in pairs for i, j in peer.get_word_aligns(a, b)["inter"]}

    def ours() -> set[tuple[int, int, int]]:
        return rows(SimilarityLinker(encoder, layer).link(bitext))

    return Contest("simalign, 200 pairs, mutual argmax", ours, theirs, common)


def statistical(given: Given) -> Contest:
    """The original eflomal, both directions, and their intersection."""
    import eflomal

    from calque.links.statistical import StatisticalLinker

    bitext = given.bitext(3000)

    def theirs() -> set[tuple[int, int, int]]:
        sides = [[" ".join(words).lower() for words in side] for side in (bitext.source, bitext.target)]
        files = [given.folder / name for name in ("forward", "backward")]
        eflomal.Aligner().align(*sides, links_filename_fwd=str(files[0]), links_filename_rev=str(files[1]))
        return set.intersection(*({*pharaoh(file)} for file in files))

    return Contest(
        "eflomal, 3,000 pairs, both directions",
        lambda: rows(StatisticalLinker().link(bitext)),
        theirs,
        common,
    )


def neighbours(given: Given) -> Contest:
    """faiss: the ten nearest by cosine, both ways, all of them exact."""
    import faiss

    from calque.geometry.neighbours import Similarity, two_way

    faiss.omp_set_num_threads(given.threads)
    source, target = words(10_000, 384, seed=0)

    def ours() -> list[np.ndarray]:
        found = two_way(source, target, similarity=Similarity.COSINE, k=10)
        return [found.forward.index, found.backward.index]

    def theirs() -> list[np.ndarray]:
        sides = [np.ascontiguousarray(x / np.linalg.norm(x, axis=1, keepdims=True)) for x in (source, target)]
        found = []
        for queries, candidates in (sides, sides[::-1]):
            index = faiss.IndexFlatIP(candidates.shape[1])
            index.add(candidates)
            found.append(index.search(queries, 10)[1])
        return found

    def differ(a: list[np.ndarray], b: list[np.ndarray]) -> str:
        first = np.mean([(x[:, 0] == y[:, 0]).mean() for x, y in zip(a, b, strict=True)])
        every = np.mean([(np.sort(x) == np.sort(y)).all(1).mean() for x, y in zip(a, b, strict=True)])
        return f"nearest the same for {first:.2%}, all ten for {every:.2%}"

    return Contest("faiss, 10 nearest of 10,000 × 10,000, d = 384", ours, theirs, differ)


def sentences(given: Given) -> Contest:
    """sentence-transformers: the encoder as `calque export` writes it, batches of 32, its default."""
    from sentence_transformers import SentenceTransformer

    from calque.encoders.open import open_encoder
    from calque.pipeline import export
    from calque.text.bitext import read_sentences

    folder = given.folder / "exported"
    export("e5-small-q4", out=str(folder), pooling="mean")
    peer, encoder = SentenceTransformer(str(folder), device="cpu"), open_encoder("e5-small-q4")
    path = given.folder / "sentences.txt"
    path.write_text("\n".join(" ".join(words) for words in given.bitext(600).source), encoding="utf-8")
    text = read_sentences(str(path), "en", tokenised=True)
    raw = path.read_text(encoding="utf-8").split("\n")

    def ours() -> np.ndarray:
        return np.asarray(encoder.sentence_vectors(text, layers=[encoder.depth])[0])

    def differ(a: np.ndarray, b: np.ndarray) -> str:
        return f"greatest difference {np.abs(a - b).max():.1e}"

    return Contest("sentence-transformers, 600 sentences", ours, lambda: peer.encode(raw), differ)


def entities(given: Given) -> Contest:
    """seqeval: F1 of spans, where a tenth of the tags are others."""
    from seqeval.metrics import f1_score

    from calque.stats.spans import spans
    from calque.text.labelled.tags import read_ner

    rng = np.random.default_rng(0)
    gold = [list(item.tags) for item in read_ner(given.tags, "en").items]
    kinds = sorted({tag for tags in gold for tag in tags})
    said = [[str(rng.choice(kinds)) if rng.random() < 0.1 else tag for tag in tags] for tags in gold]

    def ours() -> float:
        pairs = [(spans(a), spans(b)) for a, b in zip(gold, said, strict=True)]
        hits, every = (sum(f(a, b) for a, b in pairs) for f in (overlap, together))
        return 2 * hits / every

    def differ(a: float, b: float) -> str:
        return f"F1 {a:.4f} and {b:.4f}"

    return Contest(f"seqeval, F1 of {len(gold):,} sentences", ours, lambda: f1_score(gold, said), differ)


def crf(given: Given) -> Contest:
    """pytorch-crf: likelihood with its gradient, and the likeliest tags."""
    from torchcrf import CRF

    from calque.transfer.crf import Crf

    torch.manual_seed(0)
    labels, own, peer = 15, Crf(15), CRF(15, batch_first=True)
    peer.start_transitions.data, peer.end_transitions.data = own.start.data, own.end.data
    peer.transitions.data = own.transition.data
    emissions = torch.randn(32, 60, labels, requires_grad=True)
    tags, lengths = torch.randint(labels, (32, 60)), torch.randint(1, 61, (32, 1))
    mask = torch.arange(60) < lengths

    def run(total: Callable[[], torch.Tensor], decode: Callable[..., Any]) -> Any:
        for _ in range(20):
            emissions.grad = None
            value = total()
            value.backward()
            best = decode(emissions, mask)
        return float(value.detach()), emissions.grad.clone(), best

    def differ(a: Any, b: Any) -> str:
        same = "the same tags" if a[2] == b[2] else "other tags"
        return f"log p {a[0]:.3f} and {b[0]:.3f}, gradient off by {(a[1] - b[1]).abs().max():.0e}, {same}"

    return Contest(
        "pytorch-crf, 32 × 60 words, 15 labels",
        lambda: run(lambda: own.log_likelihood(emissions, tags, mask).sum(), own.decode),
        lambda: run(lambda: peer(emissions, tags, mask, reduction="sum"), peer.decode),
        differ,
    )


def parsing(given: Given) -> Contest:
    """supar: the best trees of a batch."""
    from supar.structs import MatrixTree

    from calque.transfer.trees import single_root_tree

    scores = arcs(60)
    lengths = torch.tensor([len(one) - 1 for one in scores])
    batch = torch.full((60, int(lengths.max()) + 1, int(lengths.max()) + 1), -1e4)
    for row, one in zip(batch, scores, strict=True):
        row[: len(one), : len(one)] = torch.from_numpy(one)

    def theirs() -> list[list[int]]:
        heads = MatrixTree(batch, lengths).argmax
        return [row[1 : n + 1].tolist() for row, n in zip(heads, lengths.tolist(), strict=True)]

    return Contest(
        "supar, 60 dependency trees", lambda: [single_root_tree(x).tolist() for x in scores], theirs, alike
    )


def trees(given: Given) -> Contest:
    """networkx: the best tree, with scores under which one word alone can hang from the root."""
    import networkx

    from calque.transfer.trees import single_root_tree

    scores = arcs(60)

    def theirs() -> list[list[int]]:
        found = []
        for one in scores:
            graph = networkx.DiGraph()
            n = len(one)
            arcs = ((h, d, {"weight": one[d, h]}) for d in range(1, n) for h in range(n) if h != d)
            graph.add_edges_from(arcs)
            best = networkx.maximum_spanning_arborescence(graph)
            found.append([next(best.predecessors(d)) for d in range(1, n)])
        return found

    return Contest(
        "networkx, 60 dependency trees",
        lambda: [single_root_tree(x).tolist() for x in scores],
        theirs,
        alike,
    )


# ------------------------------------------------------------------------------------------- together


def arcs(count: int) -> list[np.ndarray]:
    """Scores under which one word alone can hang from the root. Shape: each (n + 1, n + 1)."""
    rng = np.random.default_rng(0)
    scores = [rng.standard_normal((n + 1, n + 1)) for n in rng.integers(5, 25, count)]
    for one in scores:
        one[:, 0] -= 100
    return scores


def alike(a: list[list[int]], b: list[list[int]]) -> str:
    return f"{sum(x == y for x, y in zip(a, b, strict=True))} of {len(a)} trees the same"


def overlap(a: set[Any], b: set[Any]) -> int:
    return len(a & b)


def together(a: set[Any], b: set[Any]) -> int:
    return len(a) + len(b)


def rows(pairs: Any) -> set[tuple[int, int, int]]:
    return set(zip(pairs.sentence.tolist(), pairs.source.tolist(), pairs.target.tolist(), strict=True))


def pharaoh(path: Path) -> set[tuple[int, int, int]]:
    lines = enumerate(path.read_text().splitlines())
    return {(k, *map(int, link.split("-"))) for k, line in lines for link in line.split()}  # type: ignore[misc]


def common(a: set[Any], b: set[Any]) -> str:
    return f"{len(a):,} and {len(b):,} links, {overlap(a, b):,} in common"


CONTESTS: dict[str, Callable[[Given], Contest]] = {
    "links": links,
    "eflomal": statistical,
    "neighbours": neighbours,
    "sentences": sentences,
    "ner": entities,
    "crf": crf,
    "networkx": trees,
    "supar": parsing,
}


def spent(work: Callable[[], Any], clock: Callable[[], float]) -> tuple[float, Any]:
    """Python's collector rests meanwhile: going once through all that is imported takes 0.15 s."""
    gc.collect()
    gc.disable()
    try:
        began = clock()
        result = work()
        return clock() - began, result
    finally:
        gc.enable()


def processor() -> float:
    """Seconds of this process and of those that it started and that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path, help="TSV of English and German")
    parser.add_argument("tags", type=Path, help="a word a line with its BIO tag")
    parser.add_argument("--only", choices=CONTESTS, nargs="+", default=list(CONTESTS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.update(TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS=str(options.threads))
    logging.disable(logging.WARNING)
    torch.set_num_threads(options.threads)
    clock = processor if options.threads == 1 else time.perf_counter
    print(f"threads: {options.threads}\n| beside | calque s | peer s | ratio | results |\n{'|---' * 5}|")
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder:
            given = Given(options.text, options.tags, options.threads, Path(folder))
            try:
                contest = CONTESTS[name](given)
            except ImportError as error:
                print(f"| {name} | | | | not run: {error} |", flush=True)
                continue
            best, results = [np.inf, np.inf], [None, None]
            for _ in range(options.rounds):
                for side, work in enumerate((contest.ours, contest.theirs)):
                    seconds, results[side] = spent(work, clock)
                    best[side] = min(best[side], seconds)
            told = contest.differ(*results)
        print(
            f"| {contest.what} | {best[0]:.3f} | {best[1]:.3f} | {best[1] / best[0]:.2f} | {told} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
