"""How near calque comes to what the same products of matrices take by themselves, and where the rest goes.

    calque link news.en-de.tsv --languages en de --limit 300 --out links
    python benchmarks/limit.py links/train --labelled en=ner.en.tsv --task ner

For each way: processor time at one thread, that of the bare products, the ratio, and the five largest other
parts by torch's profiler, as shares of the whole. A training is its steps, without opening the encoder and
reading text. `--encoder base` has the shape of XLM-R base, with random weights. Each way runs in a process of
its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import bare
from bare import Back, Products, Shape
from calque.align.finetune import FinetuneAligner, FinetuneOptions, FinetuneTask, Loss
from calque.align.regularisers import Regulariser
from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.encoders.spans import batches
from calque.encoders.tokens import Reader
from calque.pipeline.finetuning import USUAL, own_encoder
from calque.pipeline.pretraining import PretrainRecipe
from calque.pretrain.masked import Learned, MaskedLanguageModel
from calque.pretrain.masking import NOT_ASKED, Masker
from calque.pretrain.texts import Plain
from calque.pretrain.vocabulary import Cutting, train_tokenizer
from calque.progress import shown
from calque.store import load_pairs
from calque.text.labelled.open import read_labelled
from calque.training.loop import Task, TrainOptions, train
from calque.training.partial import freeze
from calque.training.trim import trim_vocabulary, used_pieces
from calque.transfer.learner import HeadOptions, Learner, Regime
from calque.transfer.learning import TransferTask
from calque.transfer.task import Reading
from calque.transfer.tasks import task_named
from calque.transfer.vectors import Space
from calque.types import WordPairs
from partial import random_base

#: What the profiler calls products of matrices, attention's among them.
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "attention", "aten::mkldnn")


@dataclass(frozen=True, eq=False)
class Job:
    """Something to time, and the products that it cannot do without."""

    run: Callable[[], object]
    products: Callable[[], object]


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
        parts = {"products": found["products"]} | found["others"]
        told = ", ".join(f"{name} {share:.0%}" for name, share in parts.items())
        print(
            f"{way:18} {found['seconds']:7.2f} s  bare products {found['bare']:7.2f} s  "
            f"ratio {found['seconds'] / found['bare']:.2f}  ({told})",
            flush=True,
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How near calque comes to the bare products.")
    parser.add_argument("pairs", type=Path, help="a folder of links")
    parser.add_argument("--labelled", default="", help="labelled text as code=file, for the task's trainings")
    parser.add_argument("--task", default="ner")
    parser.add_argument("--encoder", default="e5-small-q4", help="anything that is trained, or base")
    parser.add_argument("--sentences", type=int, default=200, help="sentences whose words get vectors")
    parser.add_argument("--items", type=int, default=2000, help="items of labelled text that batches are of")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=16, help="sentence pairs a step")
    parser.add_argument("--whole-vocabulary", action="store_true", help="train without trimming it")
    parser.add_argument("--freeze-layers", type=int, default=0)
    parser.add_argument("--freeze-embeddings", action="store_true")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--ways", nargs="*", choices=WAYS, help="only these")
    parser.add_argument("--way", choices=WAYS, help="only this one, in this process")
    return parser.parse_args()


def measure(given: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    best = [np.inf, np.inf]
    with shown(False):
        job = WAYS[given.way](given)
        for _ in range(given.rounds):
            for number, run in enumerate((job.run, job.products)):
                began = time.process_time()
                run()
                best[number] = min(best[number], time.process_time() - began)
        products, others = shares(job.run)
    return {"seconds": best[0], "bare": best[1], "products": products, "others": others}


def shares(run: Callable[[], object], count: int = 5) -> tuple[float, dict[str, float]]:
    """The share of products as they ran, and of the largest other operations."""
    began = time.perf_counter()  # as the profiler measures: shares hold on a busy machine too
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run()
        whole = time.perf_counter() - began
    spent = {one.key: one.self_cpu_time_total / 1e6 for one in profile.key_averages()}
    products = sum(seconds for name, seconds in spent.items() if any(part in name for part in PRODUCTS))
    rest = {name: s for name, s in spent.items() if not any(part in name for part in PRODUCTS)}
    rest["outside torch"] = max(0.0, whole - sum(spent.values()))
    largest = sorted(rest, key=lambda name: -rest[name])[:count]
    return products / whole, {name: rest[name] / whole for name in largest}


# ----------------------------------------------------------------------------------------- the ways


def opened(given: argparse.Namespace) -> HuggingFaceEncoder:
    return random_base() if given.encoder == "base" else own_encoder(given.encoder, EncoderOptions())


def extraction(given: argparse.Namespace) -> Job:
    """Vectors of every word at every layer."""
    encoder, text = opened(given), load_pairs(given.pairs).bitext.source
    text = text.select(range(min(given.sentences, len(text))))
    lengths = encoder.reader.layout(text).lengths
    lots = [lengths[rows] for rows in batches(lengths, encoder.batch_tokens)]
    bound = Products(Shape.of(encoder.body.config), max(int(lot.sum()) for lot in lots))
    layers = range(encoder.depth + 1)
    return Job(lambda: encoder.word_vectors(text, layers=layers), lambda: bound.all(lots))


def alignment(loss: Loss) -> Callable[[argparse.Namespace], Job]:
    """Steps of `calque align` by training, as it is by default."""

    def job(given: argparse.Namespace) -> Job:
        encoder, pairs = opened(given), load_pairs(given.pairs)
        freeze(encoder, embeddings=given.freeze_embeddings, layers=given.freeze_layers)
        texts = [pairs.bitext.source, pairs.bitext.target]
        if not given.whole_vocabulary:
            trim_vocabulary(encoder, used_pieces(encoder, texts))
        options = FinetuneOptions(
            layers=(encoder.depth,), loss=loss, regulariser=USUAL[loss], batch=given.batch
        )
        task = FinetuneAligner(options).task(encoder, [pairs], batches=given.steps)
        return Job(steps(task, given), lambda: aligned_products(encoder, pairs, task, given))

    return job


def aligned_products(
    encoder: HuggingFaceEncoder, pairs: WordPairs, task: FinetuneTask, given: argparse.Namespace
) -> None:
    shape, back = Shape.of(encoder.body.config), frozen(given)
    (corpus,) = task.corpora
    held, moving = (encoder.reader.layout(side.text).lengths for side in (corpus.held, corpus.moving))
    bound = Products(shape, int(max(held.max(), moving.max())) * 2 * given.batch)
    for (rows,) in (lot.T for lot in task.batches(0)[: given.steps]):
        bound.batch(np.concatenate([held[rows], moving[rows]]), back)
        if task.options.regulariser is Regulariser.HIDDEN:  # what the original says of held words
            bound.batch(held[rows])
        if task.options.loss is not Loss.L2:
            contrastive(int((corpus.first[rows + 1] - corpus.first[rows]).sum()), shape.width, task.options)


def contrastive(links: int, width: int, options: FinetuneOptions) -> None:
    """The heads on linked words, and their cosines with each other."""
    for _ in range(2):
        bare.linear(links, width, width, back=True)
        bare.linear(links, width, options.head, back=True)
        for _ in range(1 + (options.loss is Loss.STRONG)):
            bare.linear(links, options.head, links, back=True)


def finetuning(given: argparse.Namespace) -> Job:
    """Steps of `calque transfer` that train encoder and head."""
    encoder, data = labelled(given)
    learner = a_learner(given, encoder, data, Regime.FINETUNE)
    freeze(encoder, embeddings=given.freeze_embeddings, layers=given.freeze_layers)
    material = learner.material(learner.prepare(data))
    if not given.whole_vocabulary:
        trim_vocabulary(encoder, material.vectors.inputs.rows.pieces)
    task = TransferTask(learner.model(0), [material], batch=32, seed=0, encoder=encoder.model)
    inputs = material.vectors.inputs
    lots = [
        inputs.rows.lengths[np.unique(inputs.rows.units.sentence[units_of(inputs, batch.rows)])]
        for batch in task.batches(0)[: given.steps]
    ]
    bound = Products(Shape.of(encoder.body.config), max(int(lot.sum()) for lot in lots))
    return Job(steps(task, given), lambda: bound.all(lots, frozen(given)))


def features(given: argparse.Namespace) -> Job:
    """Steps of `calque transfer --regime features`: attention layers and a head on kept vectors."""
    encoder, data = labelled(given)
    learner = a_learner(given, encoder, data, Regime.FEATURES)
    material = learner.material(learner.prepare(data))
    task = TransferTask(learner.model(0), [material], batch=128, seed=0)
    lengths = material.vectors.inputs.lengths
    lots = [lengths[batch.rows] for batch in task.batches(0)[: given.steps]]
    shape = Shape(encoder.width, 4 * encoder.width, 12, 4)
    bound = Products(shape, max(int(lot.sum()) for lot in lots))
    return Job(steps(task, given), lambda: bound.all(lots, Back(through=False)))


def labelled(given: argparse.Namespace) -> tuple[HuggingFaceEncoder, Any]:
    code, _, path = given.labelled.partition("=")
    if not path:
        raise SystemExit("this way needs --labelled code=file")
    return opened(given), read_labelled(given.task, path, code, limit=given.items)


def a_learner(given: argparse.Namespace, encoder: HuggingFaceEncoder, data: Any, regime: Regime) -> Learner:
    """A learner as `calque transfer` makes it by default."""
    task, kept = task_named(given.task), regime is Regime.FEATURES
    crf = kept and given.task in ("ner", "slots")
    head = next(one for one in task.heads() if not crf or one.value == "crf")
    body = {"body": "transformer"} if kept else {}
    return Learner(
        task, encoder, regime, task.labels([data]), Reading(longest=128, overlap=32, every_piece=kept),
        HeadOptions(head, **body), Space(None, range(encoder.depth + 1) if kept else [encoder.depth]),
    )  # fmt: skip


def units_of(inputs: Any, sequences: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([inputs.order[inputs.first[one] : inputs.first[one + 1]] for one in sequences])


def pretraining(**size: Any) -> Callable[[argparse.Namespace], Job]:
    """Steps of `calque pretrain` on the links' text."""

    def job(given: argparse.Namespace) -> Job:
        bitext = load_pairs(given.pairs).bitext
        recipe = PretrainRecipe(steps=given.steps, **size)
        texts = [bitext.source, bitext.target]
        tokenizer = train_tokenizer(texts, recipe.vocabulary, Cutting.UNIGRAM, max_length=recipe.max_length)
        reader, model = Reader(tokenizer, limit=recipe.max_length), recipe.model(tokenizer)
        masker = Masker.of(tokenizer, recipe.masked)
        held = [Learned(Plain(reader.layout(text)), model, masker) for text in texts]
        task = MaskedLanguageModel(held, recipe.reading())
        return Job(
            steps(task, given, recipe.training(save_every=10**9)),
            lambda: masked_products(task, model, len(tokenizer), given.steps),
        )

    return job


def masked_products(task: MaskedLanguageModel, model: Any, pieces: int, count: int) -> None:
    shape = Shape.of(model.config)
    chosen = list(endless(task, count))
    bound = Products(shape, max(int(task.texts[one.text].text.lengths[one.rows].sum()) for one in chosen))
    for one in chosen:
        held, rng = task.texts[one.text], np.random.default_rng(one.draw)
        bound.batch(held.text.lengths[one.rows], Back())
        asked = held.masker.hide(held.text.shown(one.rows, 0, rng).pieces, rng).labels != NOT_ASKED
        bare.linear(int(asked.sum()), shape.width, shape.width, back=True)
        bare.linear(int(asked.sum()), shape.width, pieces, back=True)


def endless(task: Task, count: int) -> Iterator[Any]:
    """So many batches, epoch after epoch."""
    epoch = 0
    while count > 0:
        made = task.batches(epoch)[:count]
        yield from made
        count, epoch = count - len(made), epoch + 1


def frozen(given: argparse.Namespace) -> Back:
    return Back(given.freeze_layers, through=not given.freeze_embeddings)


def steps(task: Any, given: argparse.Namespace, options: TrainOptions | None = None) -> Callable[[], object]:
    """So many steps of the training loop, from where the weights stand."""
    chosen = replace(options or TrainOptions(save_every=10**9), steps=given.steps, cpu=True)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            train(task, chosen, Path(folder))

    return run


WAYS: dict[str, Callable[[argparse.Namespace], Job]] = {
    "extraction": extraction,
    "l2": alignment(Loss.L2),
    "weak": alignment(Loss.WEAK),
    "strong": alignment(Loss.STRONG),
    "task, fine-tuned": finetuning,
    "task, features": features,
    "pretraining, 4x96": pretraining(),
    "pretraining, 4x256": pretraining(width=256, inner=1024, vocabulary=16000, batch_tokens=2048),
}


if __name__ == "__main__":
    main()
