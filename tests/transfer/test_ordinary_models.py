"""Task models as Hugging Face has them: what is written says the same there, what is read says it here."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from paired_encoders import paired, tokenizer
from tiny_encoders import FAMILIES, SIZES

from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.errors import BadInput
from calque.pipeline.taskmodels import known_settings, opened_model
from calque.transfer.heads import HeadKind, TaskModel, make_model
from calque.transfer.saving import (
    ORDINARY,
    Ordinary,
    as_ordinary,
    ordinary_head,
    read_ordinary,
    save_ordinary,
)
from calque.transfer.task import Labels
from calque.transfer.tasks import task_named

NAMES = Labels(("B-x", "I-x", "O"))
KINDS = ("pooled", "tag", "span")


def head(kind: str, **how: Any) -> TaskModel:
    """A head with weights that are not those of any other."""
    labels = None if kind == "span" else 3
    return make_model(kind, width=24, labels=labels, seed=5, **{"mix": "mean"} | how)


def logits(encoder: HuggingFaceEncoder, model: TaskModel, rows: dict[str, torch.Tensor], kind: str) -> Any:
    """What our head says, from the encoder's last layer."""
    model.eval()
    with torch.no_grad():
        last = encoder.model(**rows).last_hidden_state
        return model.head.out(last[:, 0] if kind == "pooled" else last)


def theirs(model: Any, rows: dict[str, torch.Tensor], kind: str) -> torch.Tensor:
    with torch.no_grad():
        out = model.eval()(**rows)
    return torch.stack([out.start_logits, out.end_logits], -1) if kind == "span" else out.logits


def some_rows(family: str) -> dict[str, torch.Tensor]:
    """Two texts in a row, of different lengths, padded."""
    known = tokenizer(family)
    return dict(
        known(["the cat", "Die Katze saß auf"], ["it", "der Matte"], padding=True, return_tensors="pt")
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_what_is_written_says_the_same(family: str, kind: str, tmp_path: Path) -> None:
    encoder, model = paired(family), head(kind)
    model.train()
    assert save_ordinary(tmp_path, encoder, model, HeadKind(kind), NAMES)
    assert model.training and not encoder.model.training, "as they were"
    auto = getattr(transformers, f"AutoModel{ORDINARY[HeadKind(kind)]}")
    written, info = auto.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    rows = some_rows(family)
    ours = logits(encoder, model, rows, kind)
    keep = rows["attention_mask"].bool() if kind != "pooled" else slice(None)
    torch.testing.assert_close(theirs(written, rows, kind)[keep], ours[keep], atol=1e-5, rtol=1e-4)
    again = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert again("the cat", "it")["input_ids"] == tokenizer(family)("the cat", "it")["input_ids"]
    if kind != "span":
        assert written.config.id2label == dict(enumerate(NAMES.names))
        assert written.config.label2id == {"B-x": 0, "I-x": 1, "O": 2}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_what_was_written_is_read_again(family: str, kind: str, tmp_path: Path) -> None:
    encoder, model = paired(family), head(kind)
    save_ordinary(tmp_path, encoder, model, HeadKind(kind), NAMES)
    held = read_ordinary(tmp_path, torch.float32, None)
    assert held.kind == kind and held.labels == (Labels(()) if kind == "span" else NAMES)
    again = head(kind, dropout=0.3)
    with torch.no_grad():
        for one in again.parameters():
            one.zero_()
    again.load_state_dict(ordinary_head(held, tmp_path))
    for (name, a), b in zip(model.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    opened = HuggingFaceEncoder.from_model(held.model, held.tokenizer, family)
    rows = some_rows(family)
    torch.testing.assert_close(logits(opened, again, rows, kind), theirs(held.model, rows, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_others_are_read(kind: str, tmp_path: Path) -> None:
    """A model that Hugging Face made by itself, its labels in an order that is not alphabetical."""
    known = tokenizer("bert")
    torch.manual_seed(8)
    config = transformers.BertConfig(vocab_size=len(known), id2label={0: "yes", 1: "no"}, **SIZES)
    made = getattr(transformers, f"Bert{ORDINARY[HeadKind(kind)]}")(config)
    made.save_pretrained(tmp_path)
    known.save_pretrained(tmp_path)
    held = read_ordinary(
        tmp_path, torch.float32, task_named({"pooled": "nli", "tag": "ner", "span": "qa"}[kind])
    )
    assert held.labels.names == (() if kind == "span" else ("yes", "no"))
    model = make_model(kind, width=24, labels=2, mix="mean")
    model.load_state_dict(ordinary_head(held, tmp_path))
    rows = some_rows("bert")
    ours = logits(HuggingFaceEncoder.from_model(held.model, known, "x"), model, rows, kind)
    torch.testing.assert_close(ours, theirs(made, rows, kind), atol=1e-6, rtol=1e-5)


def test_an_encoder_that_was_for_other_labels_still_answers_questions(tmp_path: Path) -> None:
    encoder = paired("bert")
    encoder.model.config.id2label = {0: "a", 1: "b", 2: "c"}
    assert as_ordinary(encoder, head("span"), HeadKind.SPAN, Labels(())) is not None
    assert encoder.model.config.num_labels == 3, "the encoder's own settings stay"


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_is_compared_as_closely_as_it_can_be(kind: str) -> None:
    encoder = paired("bert")
    encoder.model.to(torch.bfloat16)
    encoder.dtype = torch.bfloat16
    made = as_ordinary(encoder, head(kind), HeadKind(kind), NAMES)
    assert made is not None and made.dtype == torch.bfloat16


def test_what_has_no_ordinary_form_is_not_written(tmp_path: Path) -> None:
    bert = paired("bert")
    assert as_ordinary(bert, head("crf"), HeadKind.CRF, NAMES) is None
    assert as_ordinary(bert, head("classify"), HeadKind.CLASSIFY, NAMES) is None
    assert as_ordinary(bert, head("tag", body="bilstm", body_width=12), HeadKind.TAG, NAMES) is None, "a body"
    assert as_ordinary(bert, head("tag", layers=4), HeadKind.TAG, NAMES) is None, "several layers"
    assert as_ordinary(paired("t5"), head("tag"), HeadKind.TAG, NAMES) is None, "half a model"
    modern = paired("modernbert")
    for kind in ("pooled", "tag"):  # another layer and norm before the labels
        assert as_ordinary(modern, head(kind), HeadKind(kind), NAMES) is None
    assert as_ordinary(paired("llama"), head("pooled"), HeadKind.POOLED, NAMES) is None, (
        "it reads the last token"
    )
    folder = tmp_path / "none"
    assert not save_ordinary(folder, modern, head("tag"), HeadKind.TAG, NAMES) and not folder.exists()
    deberta = paired("deberta-v2")
    assert as_ordinary(deberta, head("pooled"), HeadKind.POOLED, NAMES) is None, "gelu where others have tanh"
    assert as_ordinary(deberta, head("tag"), HeadKind.TAG, NAMES) is not None


def test_an_architecture_without_such_a_head_is_none() -> None:
    known = tokenizer("xlm-roberta")
    torch.manual_seed(0)
    config = transformers.DPRConfig(vocab_size=len(known), **SIZES)
    encoder = paired("bert")
    encoder.model.config = config
    assert as_ordinary(encoder, head("tag"), HeadKind.TAG, NAMES) is None


@pytest.mark.parametrize("family", ["deberta-v2", "modernbert", "distilbert"])
def test_a_head_that_is_not_the_usual_one_is_refused(family: str, tmp_path: Path) -> None:
    """Two linear layers do not make it ours: between them is gelu, relu or a norm, where ours is tanh."""
    known = tokenizer("bert" if family == "distilbert" else family)
    if family == "distilbert":
        config: Any = transformers.DistilBertConfig(
            vocab_size=len(known), dim=24, n_layers=2, n_heads=4, hidden_dim=48, num_labels=3
        )
    else:
        config = FAMILIES[family]()[0].config
        config.num_labels = 3
    torch.manual_seed(2)
    made = transformers.AutoModelForSequenceClassification.from_config(config)
    held = Ordinary(made, known, NAMES, HeadKind.POOLED)
    with pytest.raises(BadInput, match="not the usual one of …ForSequenceClassification"):
        ordinary_head(held, tmp_path)


def test_folders_that_are_no_task_models_are_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    paired("bert").save(plain)
    with pytest.raises(BadInput, match=r"plain: a model of kind BertModel, without a head.*ForTokenClass"):
        read_ordinary(plain, torch.float32, None)
    with pytest.raises(BadInput, match="cannot be loaded as a task model"):
        read_ordinary(tmp_path, torch.float32, None)
    tagger = tmp_path / "tagger"
    save_ordinary(tagger, paired("bert"), head("tag"), HeadKind.TAG, NAMES)
    with pytest.raises(BadInput, match="ForTokenClassification, which is not for nli"):
        read_ordinary(tagger, torch.float32, task_named("nli"))
    lost = tmp_path / "lost"
    encoder = paired("bert")
    encoder.save(lost)
    config = transformers.BertConfig.from_pretrained(lost)
    config.architectures = ["BertForTokenClassification"]
    config.save_pretrained(lost)
    with pytest.raises(BadInput, match="2 of its weights are missing, such as classifier"):
        read_ordinary(lost, torch.float32, None)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([], "not a task model of calque"),
        ({"task": "ner"}, "not a task model of calque: KeyError"),
        ({"task": "ner", "regime": "finetune", "labels": ["O"]}, "KeyError: 'ordinary'"),
        ({"task": "ner", "regime": "finetune", "labels": "O", "ordinary": False}, "not all texts"),
        ({"task": "ner", "regime": "features", "labels": ["O"], "ordinary": False}, "are missing"),
    ],
)
def test_a_task_model_of_another_shape_is_refused(tmp_path: Path, told: object, said: str) -> None:
    (tmp_path / "task.json").write_text(json.dumps(told))
    for read in (
        lambda: opened_model(str(tmp_path), EncoderOptions()),
        lambda: known_settings(str(tmp_path)),
    ):
        with pytest.raises(BadInput, match=rf"task.json: .*{said}.*train it again"):
            read()
