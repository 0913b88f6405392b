"""Speed of word-vector extraction: a sentence at a time, batches in file order, calque, bare products.

    python benchmarks/extraction.py news.en-de.tsv --sentences 1000 --encoder e5-small-q4 --threads 1

All four run in one process on the same sentences and give mean-pooled vectors of every word at every layer.
"Bare products" are the linear and attention products of the model at unpadded lengths and nothing else: no
program that computes these vectors with the same library can be faster.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from bare import Products, Shape
from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.encoders.spans import batches
from calque.types import Sentences


def main() -> None:
    options = arguments()
    torch.set_num_threads(options.threads)
    encoder = open_one(options)
    text = read(options.file, options.sentences)
    pieces = encoder.reader.layout(text).lengths
    print(
        f"{encoder.name}: {len(text)} sentences, {len(text.ids)} words, {pieces.sum()} pieces, "
        f"{encoder.depth + 1} layers, {options.threads} threads"
    )
    lots = [pieces[rows] for rows in batches(pieces, encoder.batch_tokens)]
    bound = Products(Shape.of(encoder.body.config), max(int(lot.sum()) for lot in lots))
    ways: dict[str, Callable[[], object]] = {
        "a sentence at a time": lambda: list(loop(encoder, text, 1)),
        "batches of 32 in file order": lambda: list(loop(encoder, text, 32)),
        "calque": lambda: encoder.word_vectors(text, layers=range(encoder.depth + 1)),
        "bare products": lambda: bound.all(lots),
    }
    # Processor time is immune to what else a shared machine is doing, but counts idle spinning of threads.
    clock = time.process_time if options.threads == 1 else time.perf_counter
    best = {name: np.inf for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            began = clock()
            way()
            best[name] = min(best[name], clock() - began)
    for name, spent in best.items():
        print(f"{name:28} {spent:8.2f} s {len(text) / spent:8.1f} sentences/s {spent / best['calque']:6.2f}")
    print(f"calque / bare products: {best['calque'] / best['bare products']:.2f}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Speed of word-vector extraction.")
    parser.add_argument("file", type=Path, help="text, one sentence a line; only the first column is read")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--encoder", default="e5-small-q4", help="anything that calque opens")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, help="pieces at once; default: calque's own")
    return parser.parse_args()


def open_one(options: argparse.Namespace) -> HuggingFaceEncoder:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from calque.encoders.open import open_encoder

    encoder = open_encoder(options.encoder, EncoderOptions(batch_tokens=options.batch_tokens))
    if not isinstance(encoder, HuggingFaceEncoder):
        raise SystemExit(f"{options.encoder} is not a Hugging Face encoder")
    return encoder


def read(path: Path, count: int) -> Sentences:
    with path.open(encoding="utf-8") as lines:
        return Sentences.of("en", [line.split("\t")[0].split() for line in islice(lines, count)])


def loop(encoder: HuggingFaceEncoder, text: Sentences, size: int) -> Iterator[torch.Tensor]:
    """What one writes first: batches in file order, every hidden state, a mean over each word's pieces."""
    for first in range(0, len(text), size):
        chosen = [text[i] for i in range(first, min(first + size, len(text)))]
        inputs = encoder.tokenizer(
            chosen,
            is_split_into_words=True,
            padding=True,
            truncation=True,
            max_length=512,
            return_tensors="pt",
        )
        with torch.inference_mode():
            hidden = torch.stack(encoder.body(**inputs, output_hidden_states=True).hidden_states)
        for row in range(len(chosen)):
            word_ids = np.array([-1 if word is None else word for word in inputs.word_ids(row)])
            for word in np.unique(word_ids[word_ids >= 0]):
                yield hidden[:, row, word_ids == word].mean(1)


if __name__ == "__main__":
    main()
