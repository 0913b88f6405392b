"""Alignment beside a task: what α multiplies, links pass after pass, and what the regulariser keeps near."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from linked_text import linked_text
from tiny_encoders import build

from calque.align.continual import SEPARATION, ContinualAlignment, one_link_each
from calque.align.finetune import RELATED, UNRELATED, FinetuneAligner, FinetuneOptions, FinetuneTask, Loss
from calque.align.regularisers import Regulariser
from calque.encoders.encoder import HuggingFaceEncoder
from calque.training.crew import Crew
from calque.training.loop import Taken, TrainOptions, train
from calque.types import WordPairs

ALONE = Crew.alone()


def shaken(encoder: HuggingFaceEncoder) -> HuggingFaceEncoder:
    """The encoder with its weights a little elsewhere: as if aligned."""
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for one in encoder.model.parameters():
            one.add_(0.05 * torch.randn(one.shape, generator=noise))
    return encoder


def make(
    *pairs: WordPairs, original: HuggingFaceEncoder | None = None, batches: int | None = 1, **settings: Any
) -> FinetuneTask:
    held = {"layers": (3,), "batch": 8, "batch_of": "all", "regulariser": Regulariser.HIDDEN} | settings
    encoder = shaken(build("bert"))
    return FinetuneAligner(FinetuneOptions(**held)).task(
        encoder, pairs or (linked_text(),), batches=batches, original=original
    )


# ---------------------------------------------------------------------------------------------------- α


@pytest.mark.parametrize("loss", ["l2", "weak", "strong"])
def test_alpha_multiplies_both_in_the_paper_and_the_alignment_alone_in_the_program(loss: str) -> None:
    task = make(original=build("bert"), loss=Loss(loss))
    (batch, *_) = task.batches(0)
    plain = task.step(batch, ALONE)
    assert plain.losses["hidden"].item() > 0 and set(plain.losses) == {loss, "hidden"}
    for form, kept in (("paper", 0.03), ("program", 1.0)):
        taken = ContinualAlignment(task, 0.03, form).step(batch, ALONE)  # type: ignore[arg-type]
        assert set(taken.losses) == set(plain.losses)
        assert taken.losses[loss].item() == pytest.approx(0.03 * plain.losses[loss].item(), rel=1e-5)
        assert taken.losses["hidden"].item() == pytest.approx(kept * plain.losses["hidden"].item(), rel=1e-5)
        assert taken.units == plain.units


def test_gradients_are_weighted_too() -> None:
    slopes = []
    for alpha in (1.0, 0.1):
        task = make(regulariser=Regulariser.NONE)
        sum(ContinualAlignment(task, alpha).step(task.batches(0)[0], ALONE).losses.values()).backward()
        slopes.append(task.encoder.model.encoder.layer[0].output.dense.weight.grad)
    torch.testing.assert_close(slopes[1], 0.1 * slopes[0])


def test_how_far_apart_words_are_is_watched() -> None:
    task = make()
    watched = ContinualAlignment(task).step(task.batches(0)[0], ALONE).watched
    assert set(watched) == {RELATED, UNRELATED, SEPARATION}
    assert watched[SEPARATION] == pytest.approx(watched[RELATED] - watched[UNRELATED])


# -------------------------------------------------------------------------------------------------- links


def words(pairs: WordPairs) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Every link as its two words in their sentences."""
    strings = pairs.bitext.source.vocabulary.strings
    return [
        (strings[a], strings[b], tuple(pairs.bitext.source[s]), tuple(pairs.bitext.target[s]))
        for s, a, b in zip(pairs.sentence.tolist(), pairs.source_ids, pairs.target_ids, strict=True)
    ]


def test_one_link_each_keeps_links_words_and_scores() -> None:
    pairs = linked_text()
    pairs = WordPairs.of(
        pairs.bitext, pairs.sentence, pairs.source, pairs.target, np.arange(len(pairs)) / 100, "by hand"
    )
    apart = one_link_each(pairs)
    assert len(apart) == len(apart.bitext) == len(pairs) > len(pairs.bitext)
    assert apart.sentence.tolist() == list(range(len(pairs)))
    assert words(apart) == words(pairs)
    assert apart.score.tolist() == pairs.score.tolist() and apart.linker == "by hand"
    assert apart.languages == pairs.languages


def test_a_batch_of_single_links_holds_so_many() -> None:
    pairs = one_link_each(linked_text())
    task = make(pairs, batch=5)
    seen = [task._read(batch, np.arange(len(batch))) for batch in task.batches(0)]
    counts = [len(read.held_at) for read in seen]
    assert sum(counts) == len(pairs) and set(counts[:-1]) | {5} >= {5} and max(counts) == 5
    assert sorted(counts)[1:] == [5] * (len(counts) - 1), "all but one are full"


@pytest.mark.parametrize("count", [1, 2, 7])
def test_batches_go_on_from_epoch_to_epoch_and_pass_to_pass(count: int) -> None:
    beside = ContinualAlignment(make(linked_text(sentences=22)))
    size = len(beside.task.batches(0))
    assert size == 3
    epochs = [beside.batches(epoch, count) for epoch in range(12)]
    assert all(len(batches) == count for batches in epochs)
    drawn = [batch.ravel().tolist() for batches in epochs for batch in batches]
    for first in range(0, len(drawn) - size + 1, size):
        held = sorted(row for batch in drawn[first : first + size] for row in batch)
        assert held == list(range(22)), "every sentence pair once a pass"
    passes = [str(drawn[first : first + size]) for first in range(0, len(drawn) - size + 1, size)]
    assert len(set(passes)) == len(passes), "in another order each time"
    again = ContinualAlignment(make(linked_text(sentences=22)))
    assert [b.ravel().tolist() for epoch in (5, 3) for b in again.batches(epoch, count)] == [
        b.ravel().tolist() for epoch in (5, 3) for b in epochs[epoch]
    ], "whenever it is asked"


def test_batches_of_pieces_go_on_too() -> None:
    """Batches that are counted in pieces are not as many in every pass."""
    pairs = [linked_text(sentences=40, longest=12), linked_text("ru", sentences=31, longest=12, seed=1)]
    beside = ContinualAlignment(make(*pairs, batch_tokens=150))
    sizes = [len(beside.task.batches(number)) for number in range(20)]
    assert len(set(sizes)) > 1
    drawn = [batch for epoch in range(20) for batch in beside.batches(epoch, 11)]
    assert len(drawn) == 220
    at = 0
    for number, size in enumerate(sizes):
        if at + size > len(drawn):
            break
        held = np.concatenate(drawn[at : at + size])
        assert sorted(held[:, 0].tolist()) == list(range(40)), f"pass {number}"
        at += size
    assert number > 5


# --------------------------------------------------------------------------------------------- the original


@pytest.mark.parametrize("batches", [1, None])
def test_what_is_kept_near_is_the_original_that_was_given(batches: int | None) -> None:
    """At the original's own weights nothing pulls; where the encoder was aligned to, it does."""
    original = build("bert")
    task = make(original=original, batches=batches)
    (batch, *_) = task.batches(0)

    def pull() -> float:
        return ContinualAlignment(task, 1.0).step(batch, ALONE).losses["hidden"].item()

    texts = task.corpora[0].held.text.select(batch[:, 0])
    now, then = (one.word_vectors(texts, layers=(3,)).layer(3) for one in (task.encoder, original))
    assert pull() == pytest.approx(((now - then) ** 2).sum(1).mean(), rel=1e-4) and pull() > 0.01
    task.encoder.model.load_state_dict(original.model.state_dict())
    assert pull() == pytest.approx(0, abs=1e-8)
    without = make(batches=batches)
    assert without.step(without.batches(0)[0], ALONE).losses["hidden"].item() == pytest.approx(0, abs=1e-8)


def test_the_original_is_not_trained() -> None:
    original = build("bert")
    before = {name: one.clone() for name, one in original.model.state_dict().items()}
    task = make(original=original)
    sum(ContinualAlignment(task).step(task.batches(0)[0], ALONE).losses.values()).backward()
    assert all(one.grad is None for one in original.model.parameters())
    assert all(torch.equal(one, before[name]) for name, one in original.model.state_dict().items())


# ------------------------------------------------------------------------------------------------ training


def test_heads_terms_and_queues_are_handed_on() -> None:
    task = make(loss=Loss.WEAK, queue=6, regulariser=Regulariser.PARAMETERS)
    beside = ContinualAlignment(task)
    assert list(beside.modules) == ["heads"], "the encoder is the task's own"
    assert beside.terms is task.terms and len(beside.terms) == 1
    assert beside.state() == {}
    beside.step(task.batches(0)[0], ALONE)
    state = beside.state()
    assert state["queue 0 source"].shape[0] == 6
    other = ContinualAlignment(make(loss=Loss.WEAK, queue=6, regulariser=Regulariser.PARAMETERS))
    other.load_state(state)
    assert all(torch.equal(other.state()[name], one) for name, one in state.items())


class Alone:
    """A task without a loss of its own, so that what trains is the alignment beside it."""

    unit = "steps"

    def __init__(self, beside: ContinualAlignment) -> None:
        self.beside, self.terms, self.modules = beside, beside.terms, {"encoder": beside.task.encoder.model}

    def batches(self, epoch: int) -> list[Any]:
        return self.beside.batches(epoch, 5)

    def step(self, batch: Any, crew: Crew) -> Taken:
        return self.beside.step(batch, crew)

    def state(self) -> dict[str, torch.Tensor]:
        return self.beside.state()

    def load_state(self, state: Any) -> None:
        self.beside.load_state(state)


def test_linked_words_come_nearer_while_it_goes_on(tmp_path: Path) -> None:
    beside = ContinualAlignment(make(original=build("bert"), hidden_weight=0.1), alpha=1.0)
    log = train(
        Alone(beside), TrainOptions(learning_rate=2e-3, epochs=6, dropout=False, save_every=10**6), tmp_path
    )
    first, last = (
        np.mean([one["losses"]["l2"] for one in part]) for part in (log.history[:5], log.history[-5:])
    )
    assert last < 0.5 * first and log.history[-1]["watched"][RELATED] > log.history[0]["watched"][RELATED]
