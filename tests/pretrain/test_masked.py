"""The task: Hugging Face's own loss, shares that add up, languages in proportion, something learned."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from calque.encoders.tokens import Reader
from calque.errors import BadInput, BadSetting
from calque.pretrain.masked import (
    Learned,
    MaskedBatch,
    MaskedLanguageModel,
    MaskedOptions,
    language_counts,
    masked_score,
    visited,
)
from calque.pretrain.masking import Masker
from calque.pretrain.texts import Plain
from calque.pretrain.vocabulary import train_tokenizer
from calque.text.world import world_sentences
from calque.training.crew import Crew
from calque.training.loop import TrainOptions, train
from calque.types import Sentences

TEXTS = [world_sentences(count, language, seed=1) for count, language in ((120, "en"), (40, "far"))]


def make(texts: list[Sentences], *, share: float = 0.15, **options: Any) -> MaskedLanguageModel:
    tokenizer = train_tokenizer(texts, 400)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    reader = Reader(tokenizer, limit=64)
    model, masker = BertForMaskedLM(config).train(), Masker.of(tokenizer, share)
    held = [Learned(Plain(reader.layout(text)), model, masker) for text in texts]
    return MaskedLanguageModel(held, MaskedOptions(**options))


@pytest.fixture(scope="module")
def task() -> MaskedLanguageModel:
    return make(TEXTS, batch_tokens=300, alpha=0.5, seed=3)


def gradients(model: Any) -> torch.Tensor:
    held = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    model.zero_grad()
    return held


def test_loss_and_gradient_are_those_of_hugging_face(task: MaskedLanguageModel) -> None:
    batch = MaskedBatch(0, np.arange(12), (0, 0, 0))
    held = task.texts[0]
    pieces, there = held.text.held.rows(batch.rows, 0)
    assert not there.all()
    shown, labels = held.masker.hide(pieces, np.random.default_rng(batch.draw))
    theirs = held.model(
        torch.from_numpy(shown), attention_mask=torch.from_numpy(there), labels=torch.from_numpy(labels)
    ).loss
    theirs.backward()
    expected = gradients(held.model)
    ours = task.step(batch, Crew.alone()).losses["masked"]
    ours.backward()
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)
    torch.testing.assert_close(gradients(held.model), expected, atol=1e-6, rtol=1e-4)


def test_shares_of_several_processes_add_up_to_the_whole(task: MaskedLanguageModel) -> None:
    batch = MaskedBatch(1, np.arange(3), (5, 0, 0))
    whole = task.step(batch, Crew.alone())
    # More processes than sentences: the last one has nothing to do.
    shares = [task.step(batch, Crew(rank, 4)) for rank in range(4)]
    total = sum(share.losses["masked"].item() for share in shares)
    assert total == pytest.approx(whole.losses["masked"].item(), rel=1e-5)
    assert sum(share.units for share in shares) == whole.units == int(task.texts[1].text.lengths[:3].sum())


def test_parts_of_a_batch_add_up_to_the_whole(task: MaskedLanguageModel) -> None:
    batch, model = max(task.batches(0), key=lambda one: len(one.rows)), task.texts[0].model
    whole = task.step(batch, Crew.alone()).losses["masked"]
    whole.backward()
    expected = gradients(model)
    model.zero_grad()
    assert task.read_in(4)
    parts = task.step(batch, Crew.alone()).losses["masked"]
    parts.backward()
    assert parts.item() == pytest.approx(whole.item(), rel=1e-5)
    torch.testing.assert_close(gradients(model), expected, atol=1e-5, rtol=1e-4)
    assert task.read_in(len(batch.rows)) and not task.read_in(2 * len(batch.rows))
    task.read_in(1)


def test_batches_are_a_function_of_the_epoch(task: MaskedLanguageModel) -> None:
    first, again, later = (task.batches(epoch) for epoch in (0, 0, 1))
    told = [
        [(batch.text, batch.rows.tolist(), batch.draw) for batch in some] for some in (first, again, later)
    ]
    assert told[0] == told[1] != told[2]
    assert len({batch.draw for batch in (*first, *later)}) == len(first) + len(later)


def test_batches_keep_their_budget_and_the_proportion_of_languages(task: MaskedLanguageModel) -> None:
    counts: Counter[int] = Counter()
    for batch in task.batches(0):
        assert len(batch.rows) * task.texts[batch.text].text.lengths[batch.rows].max() <= 300
        counts[batch.text] += len(batch.rows)
    assert [counts[0], counts[1]] == language_counts([120, 40], 0.5) == [101, 59]


@pytest.mark.parametrize(("size", "count"), [(10, 3), (10, 10), (4, 11)])
def test_every_sentence_is_read_equally_often_but_for_one(size: int, count: int) -> None:
    seen: Counter[int] = Counter(dict.fromkeys(range(size), 0))
    for epoch in range(7):
        seen.update(visited(size, count, epoch, (0,)).tolist())
        assert sum(seen.values()) == count * (epoch + 1)
        assert max(seen.values()) - min(seen.values()) <= 1


def test_what_follows_from_the_neighbour_is_learned(tmp_path: Path) -> None:
    """Every word has one partner that stands beside it: hidden, it can be told from the partner alone."""
    rng = np.random.default_rng(0)
    texts = [
        Sentences.of(name, [[f"{a}{i}", f"{b}{i}"] for i in rng.integers(10, 30, 300)])
        for name, a, b in (("en", "a", "b"), ("far", "c", "d"))
    ]
    task = make(texts, share=0.4, batch_tokens=256, alpha=1.0)
    before = masked_score(task.texts[0])
    train(task, TrainOptions(learning_rate=3e-3, steps=400, save_every=400), tmp_path)
    for text in task.texts:
        score = masked_score(text)
        # Both words hidden, or one replaced by chance, cannot be told: a quarter to a half of the cases.
        assert score.accuracy > 0.4 > 5 * score.commonest > 0
        assert score.loss < before.loss / 2


def test_score_of_a_model_that_always_says_the_same(task: MaskedLanguageModel) -> None:
    text, masker = task.texts[0].text, task.texts[0].masker
    pieces, there = text.held.rows(np.arange(len(text.lengths)), 0)
    held = pieces[there & masker.ordinary[pieces]]
    commonest = int(np.bincount(held).argmax())
    model = make(TEXTS).texts[0].model
    with torch.no_grad():
        model.cls.predictions.bias[commonest] = 1e3
    score = masked_score(Learned(text, model, Masker(masker.mask, masker.ordinary, 1.0)))
    assert score.count == len(held)
    assert score.accuracy == score.commonest == pytest.approx((held == commonest).mean())


def test_bad_settings_are_refused() -> None:
    with pytest.raises(BadSetting, match="alpha"):
        MaskedOptions(alpha=1.5)
    with pytest.raises(BadSetting, match="paired"):
        MaskedOptions(paired=1.0)
    with pytest.raises(BadInput, match="no sentences"):
        MaskedLanguageModel([], MaskedOptions())
