"""Folders that calque or others wrote: models, task models, linkers, checkpoints, runs and studies.

All are as small as they can be, so that one is read in milliseconds.
"""

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from frame import KINDS, Target, in_folder
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

import run_folders
import study_folders
from calque.encoders.bylanguage import LanguageEncoders
from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.encoders.hub import quiet
from calque.encoders.open import open_encoder
from calque.files import write_json
from calque.links.statistical import StatisticalLinker, StatisticalModel, load_linker
from calque.pipeline.taskmodels import HEAD, TASK, known_settings, opened_model
from calque.report.collect import collect
from calque.report.page import write_page
from calque.report.study.reading import read_study
from calque.store import load_results
from calque.training import checkpoint
from calque.transfer.heads import HeadKind, make_model
from calque.transfer.tasks import TASKS
from calque.types import Bitext, Sentences

TEXT = Sentences.of("en", [["a", "b"], ["ab"]])
FAR = Sentences.of("de", [["b", "zz"]])
BITEXT = Bitext.of(("en", "de"), [["a", "b"], ["c"], ["d", "e"]], [["x"], ["y", "z"], ["u", "v"]])
LABELS = ("O", "B-X", "I-X")


@cache
def _tokenizer() -> Any:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "##a", "##b"]
    backend = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), pieces, strict=False))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def _config(**more: Any) -> Any:
    return transformers.BertConfig(
        vocab_size=8,
        hidden_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=4,
        max_position_embeddings=32,
        **more,
    )


def _bert(seed: int = 0) -> HuggingFaceEncoder:
    torch.manual_seed(seed)
    return HuggingFaceEncoder.from_model(transformers.BertModel(_config()), _tokenizer(), "bert")


def _make_model(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    _bert().save(folder)


def _read_model(folder: Path) -> None:
    found = open_encoder(str(folder), own=True)
    vectors = found.word_vectors(TEXT, layers=[0, found.depth])
    assert vectors.vectors.shape[2] == found.width and len(found.fingerprint) == 64


def _make_by_language(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    LanguageEncoders({"en": _bert(), "de": _bert(1)}).save(folder)


def _read_by_language(folder: Path) -> None:
    found = open_encoder(str(folder), own=True)
    for text in (TEXT, FAR):
        found.word_vectors(text, layers=[found.depth])


def _make_task_model(folder: Path) -> None:
    """As `calque transfer` writes it where the head is not one of Hugging Face's."""
    _make_model(folder)
    torch.manual_seed(0)
    head = make_model(HeadKind.CRF, width=4, labels=len(LABELS), mix="mean")
    save_file({name: one.contiguous() for name, one in head.state_dict().items()}, folder / HEAD)
    told = {
        "task": "ner",
        "regime": "finetune",
        "head": "crf",
        "layers": "last",
        "mix": "mean",
        "body": "none",
    }
    write_json(folder / TASK, {**told, "labels": LABELS, "space": "", "ordinary": False, "max_length": 32})


def _make_plain_task_model(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    torch.manual_seed(0)
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {name: k for k, name in enumerate(LABELS)}}
    with quiet():
        transformers.BertForTokenClassification(_config(**names)).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)


def _read_task_model(folder: Path) -> None:
    known_settings(str(folder))
    found = opened_model(str(folder), EncoderOptions(), TASKS["ner"])
    assert found.weights and len(found.fingerprint) == 64


def _make_linker(folder: Path) -> None:
    StatisticalLinker(StatisticalModel.IBM1, iterations=1).train(BITEXT).save(folder)


def _read_linker(folder: Path) -> None:
    load_linker(folder)


@cache
def _trained() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    module = torch.nn.Linear(2, 2)
    optimiser = torch.optim.AdamW(module.parameters())
    module(torch.ones(1, 2)).sum().backward()
    optimiser.step()
    return module, optimiser


def _make_checkpoint(folder: Path) -> None:
    module, optimiser = _trained()
    named = dict(module.named_parameters())
    made = checkpoint.save_checkpoint(folder, checkpoint.Position(step=1), named, optimiser, {})
    for file in made.iterdir():
        shutil.move(file, folder / file.name)
    made.rmdir()


def _read_checkpoint(folder: Path) -> None:
    module, optimiser = _trained()
    checkpoint.load_position(folder)
    checkpoint.load_weights(folder, dict(module.named_parameters()))
    checkpoint.load_optimiser(folder, dict(module.named_parameters()), optimiser)


def _make_run(folder: Path) -> None:
    """Every picture and list that lies beside results."""
    with tempfile.TemporaryDirectory() as place:
        results = load_results(run_folders.every_measure(Path(place)) / "words" / "results.jsonl")
    pictures: dict[str, Any] = {
        "heatmaps": [run_folders.heatmap(layers=3)],
        "histograms": [run_folders.histogram()],
        "projections": [run_folders.projection(pairs=3)],
        "scatters": [run_folders.scatter()],
        "senses": [run_folders.sense("bank", "de", [("a bank", "Ufer", "ein Ufer", {"e5": "Bank"})])],
        "examples": run_folders.EXAMPLES[:2],
        "links": [{"source": ["a", "b"], "target": ["c"], "links": [[0, 0, 0.5]], "languages": ["en", "de"]}],
        "about": {"title": "t", "summary": "s", "next": [{"text": "a", "command": "b"}]},
    }
    run_folders.write_run(folder, "measure", results[:12] + results[-12:], **pictures)


def _read_run(folder: Path) -> None:
    run = collect(folder)
    for panel in run.panels:
        assert panel.title and panel.told and panel.encoders is not panel.groups
        panel.changes()
    assert None not in (run.sets, run.trained, run.link_scores, run.pictures)
    write_page(folder)


def _make_study(folder: Path) -> None:
    study_folders.study(folder)
    shutil.rmtree(folder / "cells")
    (folder / "results.jsonl").unlink()


def _read_study(folder: Path) -> None:
    found = read_study(folder)
    assert found.labels is not found.cells


@cache
def folders() -> dict[str, Target]:
    """Every target by name."""
    return {
        "model-folder": in_folder(_make_model, _read_model, KINDS),
        "by-language": in_folder(_make_by_language, _read_by_language, KINDS),
        "task-model": in_folder(_make_task_model, _read_task_model, KINDS),
        "plain-task-model": in_folder(_make_plain_task_model, _read_task_model, KINDS),
        # thot's own tables end the process when they are broken, which is why they are sealed.
        "linker": in_folder(_make_linker, _read_linker, KINDS, only="linker.json"),
        "checkpoint": in_folder(_make_checkpoint, _read_checkpoint, KINDS),
        "run-page": in_folder(_make_run, _read_run, KINDS),
        "study-folder": in_folder(_make_study, _read_study, KINDS),
    }
