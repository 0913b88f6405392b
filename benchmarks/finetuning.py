"""Alignment by training (l2, hidden states kept): calque beside a loop as the published programs write it.

    calque link news.en-ru.tsv --languages en ru --limit 3000 --out links
    python benchmarks/finetuning.py links/train --encoder e5-small-q4 --sentences 480 --threads 2

Both train on the same sentence pairs, as many at a time, for one pass, each in a process of its own. The
plain loop takes pairs in random order, cuts them word by word, encodes the two sides one after the other,
the held side once more by a deep copy of the encoder, and pools and compares words in Python. Memory is the
most that the process held beyond what it held with the encoder open. Where calque's time goes is what
`limit.py` tells.
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from calque.align.finetune import FinetuneAligner, FinetuneOptions, FinetuneTask
from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.pipeline.finetuning import own_encoder
from calque.store import load_pairs
from calque.training.loop import TrainOptions, train
from calque.training.partial import freeze
from calque.training.trim import harmless, trim_vocabulary, used_pieces
from calque.types import WordPairs

RATE = 5e-5


def main() -> None:
    options = arguments()
    if options.way:
        print(json.dumps(measure(options)))
        return
    found = {way: in_process_of_its_own(way) for way in WAYS}
    for way, one in found.items():
        print(f"{way:12} {one['words']:,.0f} words/s  {one['memory']:.2f} GB", flush=True)
    plain, ours = found["plain loop"], found["calque"]
    print(f"calque is {ours['words'] / plain['words']:.2f} times as fast", end=" ")
    print(f"with {ours['memory'] / plain['memory']:.2f} of the memory")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Alignment by training, beside a plain loop.")
    parser.add_argument("pairs", type=Path, help="a folder of links")
    parser.add_argument("--encoder", default="e5-small-q4")
    parser.add_argument("--sentences", type=int, default=480)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--freeze-embeddings", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--way", choices=WAYS, help="only this one, in this process")
    return parser.parse_args()


def in_process_of_its_own(way: str) -> dict[str, Any]:
    run = subprocess.run([sys.executable, *sys.argv, "--way", way], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    held: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return held


def measure(options: argparse.Namespace) -> dict[str, float]:
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    pairs = load_pairs(options.pairs)
    pairs = pairs.sentences(np.arange(min(options.sentences, len(pairs.bitext))))
    encoder = own_encoder(options.encoder, EncoderOptions())
    freeze(encoder, embeddings=options.freeze_embeddings)
    before, began = memory(), time.perf_counter()
    WAYS[options.way](encoder, pairs, options.batch)
    spent, most = time.perf_counter() - began, memory() - before
    words = len(pairs.bitext.source.ids) + len(pairs.bitext.target.ids)
    return {"words": words / spent, "memory": most}


def memory() -> float:
    """The most memory held so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


# ------------------------------------------------------------------------------------------- two ways


def ours(encoder: HuggingFaceEncoder, pairs: WordPairs, batch: int) -> None:
    if harmless(encoder, weight_decay=0.0):
        trim_vocabulary(encoder, used_pieces(encoder, [pairs.bitext.source, pairs.bitext.target]))
    with tempfile.TemporaryDirectory() as folder:
        train(task(encoder, pairs, batch), TrainOptions(RATE, save_every=10**9), Path(folder))


def task(encoder: HuggingFaceEncoder, pairs: WordPairs, batch: int) -> FinetuneTask:
    return FinetuneAligner(FinetuneOptions(layers=(encoder.depth,), batch=batch)).task(encoder, [pairs])


def plain(encoder: HuggingFaceEncoder, pairs: WordPairs, batch: int) -> None:
    model, tokenizer = encoder.model, encoder.tokenizer
    base = copy.deepcopy(model).eval()
    model.train()
    adam = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE)
    source, target = pairs.bitext.source, pairs.bitext.target
    links: dict[int, list[tuple[int, int]]] = {}
    for s, i, j in zip(pairs.sentence.tolist(), pairs.source.tolist(), pairs.target.tolist(), strict=True):
        links.setdefault(s, []).append((i, j))
    order = np.random.default_rng(0).permutation(len(source)).tolist()
    for first in range(0, len(order), batch):
        rows = order[first : first + batch]
        here = [source[row] for row in rows]
        held = words(model, tokenizer, here)
        moved = words(model, tokenizer, [target[row] for row in rows])
        with torch.no_grad():
            then = words(base, tokenizer, here)
        loss: Any = 0.0
        for k, row in enumerate(rows):
            for i, j in links.get(row, []):
                loss = loss + (held[k][i] - moved[k][j]).square().sum()
            for now, before in zip(held[k], then[k], strict=True):
                loss = loss + (now - before).square().sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()


def words(model: Any, tokenizer: Any, sentences: list[list[str]]) -> list[list[torch.Tensor]]:
    """The mean of each word's pieces, sentence by sentence."""
    cut = [[tokenizer.encode(word, add_special_tokens=False) for word in one] for one in sentences]
    rows = [
        [tokenizer.cls_token_id, *(p for word in one for p in word), tokenizer.sep_token_id] for one in cut
    ]
    longest = max(map(len, rows))
    pieces = torch.tensor([row + [tokenizer.pad_token_id] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    hidden = model(pieces, attention_mask=mask).last_hidden_state
    found = []
    for row, one in zip(hidden, cut, strict=True):
        place, mine = 1, []
        for word in one:
            mine.append(row[place : place + len(word)].mean(0))
            place += len(word)
        found.append(mine)
    return found


WAYS: dict[str, Callable[[HuggingFaceEncoder, WordPairs, int], None]] = {"plain loop": plain, "calque": ours}


if __name__ == "__main__":
    main()
