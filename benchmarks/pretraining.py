"""Masked language modelling against transformers' Trainer with its data collator, on the same text.

Pieces a second of `calque pretrain`'s loop, of a plain `Trainer` with `DataCollatorForLanguageModeling`, and
of the same `Trainer` with the softmax computed at hidden places only. All have one model, one tokenizer, the
same sentences, as many sentences a batch on average, AdamW with the same schedule, and one thread count.

    python benchmarks/pretraining.py [--steps 60] [--layers 4] [--width 256] [--vocabulary 16000] \\
        [--text FILE]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from calque.encoders.tokens import Reader
from calque.pretrain.masked import Learned, MaskedLanguageModel, MaskedOptions
from calque.pretrain.masking import Masker
from calque.pretrain.texts import Plain
from calque.pretrain.vocabulary import Cutting, train_tokenizer
from calque.text.bitext import read_sentences
from calque.text.world import world_sentences
from calque.training.loop import TrainOptions, train
from calque.types import Sentences

SHARE, RATE = 0.15, 1e-3


def main() -> None:
    given = arguments()
    torch.set_num_threads(given.threads)
    text = read_sentences(given.text, "en", limit=20_000) if given.text else world_sentences(20_000, "en")
    text = text.select(np.flatnonzero(text.lengths))
    tokenizer = train_tokenizer([text], given.vocabulary, Cutting.UNIGRAM, max_length=given.longest)
    layout = Reader(tokenizer, limit=given.longest).layout(text)
    rows = max(1, round(given.tokens / float(layout.lengths.mean())))
    print(
        f"{given.layers} layers of {given.width}, {len(tokenizer):,} pieces, {layout.lengths.mean():.1f} "
        f"a sentence; batches of {given.tokens} pieces or {rows} sentences; {given.threads} threads"
    )
    runs = {
        "calque": lambda: ours(given, tokenizer, layout),
        "Trainer": lambda: theirs(given, tokenizer, text, rows, Trainer),
        "Trainer, softmax at hidden places": lambda: theirs(given, tokenizer, text, rows, MaskedTrainer),
    }
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(given.rounds):
        for name, run in runs.items():
            found[name].append(run())
    for name, speeds in found.items():
        ratios = [a / b for a, b in zip(found["calque"], speeds, strict=True)]
        print(
            f"{name:36s} {np.median(speeds):9,.0f} pieces/s   calque is {np.median(ratios):.2f} times as fast"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    sizes = {"steps": 60, "layers": 4, "width": 256, "vocabulary": 4500, "tokens": 2048, "longest": 128}
    for name, usual in {**sizes, "rounds": 3, "threads": torch.get_num_threads()}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--text", help="English text, a sentence a line; the world's without")
    return parser.parse_args()


def model(given: argparse.Namespace, tokenizer: Any) -> BertForMaskedLM:
    torch.manual_seed(0)
    return BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer), hidden_size=given.width, num_hidden_layers=given.layers,
            num_attention_heads=4, intermediate_size=4 * given.width, max_position_embeddings=given.longest,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip


def ours(given: argparse.Namespace, tokenizer: Any, layout: Any) -> float:
    """Pieces of text a second, padding not counted; the first third of the steps is left out."""
    held = Learned(Plain(layout), model(given, tokenizer), Masker.of(tokenizer, SHARE))
    task = MaskedLanguageModel([held], MaskedOptions(given.tokens))
    options = TrainOptions(learning_rate=RATE, steps=given.steps, save_every=10**6, cpu=True)
    with tempfile.TemporaryDirectory() as folder:
        log = train(task, options, Path(folder))
    counted = log.history[given.steps // 3 :]
    return sum(one["units"] for one in counted) / sum(one["seconds"] for one in counted)


class Clock(TrainerCallback):  # type: ignore[misc]
    """When each step ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, *args: Any, **more: Any) -> None:
        self.ends.append(time.perf_counter())


class Counting(DataCollatorForLanguageModeling):  # type: ignore[misc]
    """The collator, counting pieces that are no padding."""

    def __call__(self, features: Any, return_tensors: Any = None) -> Any:
        batch = super().__call__(features, return_tensors)
        self.pieces.append(int(batch["attention_mask"].sum()))
        return batch


class MaskedTrainer(Trainer):  # type: ignore[misc]
    """The softmax at hidden places only."""

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **more: Any) -> Any:
        labels = inputs.pop("labels")
        asked = labels != -100
        return cross_entropy(model.cls(model.bert(**inputs).last_hidden_state[asked]), labels[asked])


def theirs(
    given: argparse.Namespace, tokenizer: Any, text: Sentences, rows: int, kind: type[Trainer]
) -> float:
    cut = [tokenizer(words, is_split_into_words=True, truncation=True) for words in text.select(range(4000))]
    collator, clock = Counting(tokenizer, mlm_probability=SHARE), Clock()
    collator.pieces = []
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            folder, max_steps=given.steps, per_device_train_batch_size=rows, learning_rate=RATE, use_cpu=True,
            save_strategy="no", report_to=[], logging_strategy="no", disable_tqdm=True, warmup_steps=6,
        )  # fmt: skip
        trainer = kind(model(given, tokenizer), options, collator, cut, callbacks=[clock])
        trainer.train()
    first = given.steps // 3
    return sum(collator.pieces[first : given.steps]) / (clock.ends[-1] - clock.ends[first - 1])


if __name__ == "__main__":
    main()
