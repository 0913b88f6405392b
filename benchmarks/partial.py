"""What partial training saves on an encoder of the size of XLM-R base: parameters, memory, time a step.

    python benchmarks/partial.py news.en-ru.tsv --languages en ru --pairs 10000

Weights are random (their values cost nothing to train or not), pieces are those of `e5-small-q4`, which has
XLM-R's vocabulary. Each way runs in a process of its own: a few steps of AdamW on batches of sentences from
the file. Memory is the most that the process held, weights and all.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import torch
import transformers

from calque.encoders.bundled import bundled_directory
from calque.encoders.encoder import HuggingFaceEncoder
from calque.text.bitext import read_bitext
from calque.training.partial import add_lora, freeze, parameter_count
from calque.training.trim import Trimmed, trim_vocabulary, used_pieces
from calque.types import Bitext

WAYS: dict[str, Callable[[HuggingFaceEncoder, Bitext], object]] = {
    "everything": lambda encoder, text: None,
    "vocabulary trimmed": lambda encoder, text: trim(encoder, text),
    "embeddings frozen": lambda encoder, text: freeze(encoder, embeddings=True),
    "embeddings and 6 layers frozen": lambda encoder, text: freeze(encoder, embeddings=True, layers=6),
    "LoRA, rank 8": lambda encoder, text: add_lora(encoder, rank=8),
}


def main() -> None:
    options = arguments()
    if options.way:
        print(json.dumps(measure(options)))
        return
    for way in WAYS:
        run = subprocess.run([sys.executable, *sys.argv, "--way", way], capture_output=True, check=True)
        found = json.loads(run.stdout.splitlines()[-1])
        print(
            f"{way:32} {found['trained']:>12,} of {found['all']:>12,}  {found['memory']:5.2f} GB  "
            f"{found['seconds']:6.2f} s a step",
            flush=True,
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What partial training saves.")
    parser.add_argument("file", help="a bitext")
    parser.add_argument("--languages", nargs=2, default=["en", "ru"])
    parser.add_argument("--pairs", type=int, default=10_000, help="how many the vocabulary is trimmed to")
    parser.add_argument("--batch", type=int, default=4, help="sentence pairs a step")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--way", choices=WAYS, help="only this one, in this process")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> dict[str, float]:
    torch.set_num_threads(options.threads)
    text = read_bitext([options.file], tuple(options.languages), limit=options.pairs)
    encoder = random_base()
    held = WAYS[options.way](encoder, text)
    count = parameter_count(encoder.model)
    adam = torch.optim.AdamW([p for p in encoder.model.parameters() if p.requires_grad], lr=1e-5, fused=True)
    spent = [step(encoder, text.select(range(options.batch)), adam) for _ in range(options.steps)]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    del held  # until here: a trimmed encoder's whole matrix waits in memory
    return {"trained": count.trained, "all": count.all, "memory": most, "seconds": min(spent)}


def random_base() -> HuggingFaceEncoder:
    """XLM-R base without what it learned."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(bundled_directory())
    config = transformers.XLMRobertaConfig(vocab_size=250_002, max_position_embeddings=514, type_vocab_size=1)
    return HuggingFaceEncoder.from_model(transformers.XLMRobertaModel(config), tokenizer, "random base")


def trim(encoder: HuggingFaceEncoder, text: Bitext) -> Trimmed:
    return trim_vocabulary(encoder, used_pieces(encoder, [text.source, text.target]))


def step(encoder: HuggingFaceEncoder, text: Bitext, adam: torch.optim.Optimizer) -> float:
    """Pull the first pieces of both sides together. Processor time, which a busy machine does not stretch."""
    began = time.process_time()
    ours, theirs = (
        encoder.states(encoder.batch(side), [12]).hidden[0] for side in (text.source, text.target)
    )
    (ours[:, 0] - theirs[:, 0]).square().sum().backward()
    adam.step()
    adam.zero_grad()
    return time.process_time() - began


if __name__ == "__main__":
    main()
