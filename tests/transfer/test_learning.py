"""Learning a task: losses by hand, shares that add up, planted tasks learned, and the same bits again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from paired_encoders import paired
from small_tasks import DATA, TAGS, learner, questions, tagged
from torch.nn.functional import log_softmax

from calque.align.continual import ContinualAlignment
from calque.align.finetune import FinetuneAligner, FinetuneOptions, Loss
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.rows import Row, Rows
from calque.progress import shown
from calque.stats.tasks import task_scores
from calque.text.labelled.items import Labelled, Tagged
from calque.training.crew import Crew
from calque.training.loop import Taken, TrainOptions
from calque.transfer import learning
from calque.transfer.heads import TaskModel, make_model
from calque.transfer.inputs import Inputs
from calque.transfer.learner import Learner, still
from calque.transfer.learning import Batch, GoldLabels, Material, TransferTask, decoded
from calque.transfer.task import Reading
from calque.types import Bitext, Longs, WordPairs

CPU = torch.device("cpu")
D = 6


# ------------------------------------------------------------------------------------------------ labels


def sequences(lengths: list[int]) -> Inputs:
    """Rows of one unit a piece, nothing more."""
    rows = [
        Row(np.full(n, 7, np.int32), np.zeros(n, np.int32), np.stack([np.arange(n), np.arange(n) + 1], 1))
        for n in lengths
    ]
    whole = Rows.of(rows)
    return Inputs(
        whole,
        np.arange(len(whole.units)),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.arange(len(lengths)),
        ("en",),
        np.zeros(len(whole.units), np.int64),
    )


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.data())
def test_labels_of_chosen_sequences_are_padded_with_none(lengths: list[int], data: st.DataObject) -> None:
    total = sum(lengths)
    tags = np.array(data.draw(st.lists(st.integers(0, 9), min_size=total, max_size=total)), np.int64)
    gold = GoldLabels({"tags": tags, "allowed": tags > 4}, {"label": np.arange(len(lengths)) * 10})
    chosen = data.draw(st.lists(st.sampled_from(range(len(lengths))), min_size=1, unique=True))
    found = gold.of(sequences(lengths), np.array(chosen), CPU)
    width, first = max(lengths[k] for k in chosen), np.cumsum([0, *lengths])
    for place, k in enumerate(chosen):
        own, rest = tags[first[k] : first[k + 1]], width - lengths[k]
        assert found["tags"][place].tolist() == [*own, *[-1] * rest]
        assert found["allowed"][place].tolist() == [*(own > 4), *[False] * rest]
    assert found["allowed"].dtype == torch.bool and found["label"].tolist() == [10 * k for k in chosen]
    assert set(gold.flags().units) == {"allowed"} and not gold.flags().sequences


# ------------------------------------------------------------------------------------------------- steps


class Given:
    """Vectors that are simply there."""

    def __init__(self, lengths: list[int], seed: int) -> None:
        self.inputs = sequences(lengths)
        self.vectors = torch.randn(1, sum(lengths), D, generator=torch.Generator().manual_seed(seed))
        self.asked: list[list[int]] = []

    @property
    def sizes(self) -> Longs:
        return self.inputs.lengths

    def of(self, chosen: Longs) -> tuple[torch.Tensor, torch.Tensor]:
        self.asked.append(chosen.tolist())
        lengths = torch.from_numpy(self.inputs.lengths[chosen])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        out = torch.zeros(1, *mask.shape, D)
        for row, k in enumerate(chosen.tolist()):
            a, b = self.inputs.first[k : k + 2]
            out[:, row, : b - a] = self.vectors[:, a:b]
        return out, mask


LENGTHS = ([3, 1, 4, 2, 2], [5, 2, 1])


def two_languages(seed: int = 0) -> list[Material]:
    """Tags of units; one in four is not labelled."""
    random = np.random.default_rng(seed)
    made = []
    for number, lengths in enumerate(LENGTHS):
        tags = random.integers(-1, 3, sum(lengths))
        made.append(Material(Given(list(lengths), number), GoldLabels({"tags": tags}, {})))
    return made


def tagger() -> TaskModel:
    return make_model("tag", width=D, labels=3, mix="mean", dropout=0.0, seed=1)


def mean_by_hand(model: TaskModel, materials: list[Material], rows: list[int]) -> float:
    """−log p of every labelled unit of these sequences, numbered through, and its mean."""
    found = []
    for row in rows:
        which, k = (0, row) if row < len(LENGTHS[0]) else (1, row - len(LENGTHS[0]))
        held: Any = materials[which].vectors
        for unit in range(*held.inputs.first[k : k + 2].tolist()):
            tag = int(materials[which].gold.units["tags"][unit])
            if tag >= 0:
                scores = log_softmax(model.head.out(held.vectors[0, unit]), -1)
                found.append(-scores[tag].item())
    return float(np.mean(found))


def test_the_loss_is_the_mean_over_the_labels_of_all_languages() -> None:
    materials, model = two_languages(), tagger()
    task = TransferTask(model, materials, batch=4, seed=0)
    for rows in ([0, 2, 5, 7], [6], [1, 3, 4], list(range(8))):
        taken = task.step(Batch(np.array(rows)), Crew.alone())
        assert taken.losses["task"].item() == pytest.approx(mean_by_hand(model, materials, rows), rel=1e-5)
        assert taken.units == len(rows) and list(taken.losses) == ["task"]


@dataclass(frozen=True)
class OneOf(Crew):
    """One of two processes, of which the other's counts are known."""

    counts: list[float] = field(default_factory=list)

    def total(self, value: Any) -> torch.Tensor:
        self.counts.append(float(value))
        return torch.tensor(sum(self.counts), dtype=torch.float64)


def shares(task: TransferTask, rows: list[int]) -> list[torch.Tensor]:
    """The losses of two processes; each divides by what both have."""
    first = OneOf(0, 2, CPU, [])
    task.step(Batch(np.array(rows)), first)
    second = OneOf(1, 2, CPU, list(first.counts))
    b = task.step(Batch(np.array(rows)), second).losses["task"]
    a = task.step(Batch(np.array(rows)), OneOf(0, 2, CPU, second.counts[1:])).losses["task"]
    return [a, b]


def test_shares_of_two_processes_add_up_to_the_loss() -> None:
    task = TransferTask(tagger(), two_languages(), batch=4, seed=0)
    for rows in ([0, 2, 5, 7, 1], [6]):
        whole = task.step(Batch(np.array(rows)), Crew.alone()).losses["task"]
        assert sum(one.item() for one in shares(task, rows)) == pytest.approx(whole.item(), rel=1e-6)
    none = shares(task, [6])[1]
    assert none.item() == 0 and not none.requires_grad, "a process without a share has nothing to learn from"


def test_an_epoch_has_every_sequence_once_and_each_epoch_its_own_order() -> None:
    task = TransferTask(tagger(), two_languages(), batch=3, seed=0)
    epochs = [[batch.rows.tolist() for batch in task.batches(epoch)] for epoch in range(4)]
    for epoch in epochs:
        assert sorted(row for batch in epoch for row in batch) == list(range(8))
        assert [len(batch) <= 3 for batch in epoch] == [True] * 3
    assert len({str(epoch) for epoch in epochs}) > 1
    assert [batch.rows.tolist() for batch in task.batches(2)] == epochs[2]
    other = TransferTask(tagger(), two_languages(), batch=3, seed=1)
    assert [[b.rows.tolist() for b in other.batches(epoch)] for epoch in range(4)] != epochs


class Other:
    """Another loss, which counts what it is asked for."""

    def __init__(self) -> None:
        self.weight = torch.nn.Linear(1, 1, bias=False)
        self.terms = ["a term"]
        self.modules = {"line": self.weight}
        self.given: list[Any] = []
        self.loaded: Mapping[str, torch.Tensor] = {}

    def batches(self, epoch: int, count: int) -> list[str]:
        return [f"{epoch}/{number}" for number in range(count)]

    def step(self, batch: Any, crew: Crew) -> Taken:
        self.given.append(batch)
        return Taken({"other": 0.5 * self.weight.weight.sum()}, 9, {"cosine": 0.25})

    def state(self) -> dict[str, torch.Tensor]:
        return {"kept": torch.ones(2)}

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        self.loaded = state


def test_another_loss_is_added_with_batches_of_its_own() -> None:
    other: Any = Other()
    materials, model = two_languages(), tagger()
    plain = TransferTask(model, materials, batch=3, seed=0)
    task = TransferTask(model, materials, batch=3, seed=0, auxiliary=other)
    assert [batch.other for batch in task.batches(2)] == ["2/0", "2/1", "2/2"]
    batch = task.batches(2)[1]
    assert batch.rows.tolist() == plain.batches(2)[1].rows.tolist()
    taken = task.step(batch, Crew.alone())
    assert other.given == ["2/1"] and taken.units == 3 and taken.watched == {"cosine": 0.25}
    assert taken.losses["other"].item() == pytest.approx(0.5 * other.weight.weight.item())
    assert taken.losses["task"].item() == pytest.approx(plain.step(batch, Crew.alone()).losses["task"].item())
    assert list(task.modules) == ["model", "other line"] and task.terms == ["a term"]
    task.load_state(task.state())
    assert other.loaded["kept"].tolist() == [1, 1]
    assert plain.state() == {} and plain.terms == () and list(plain.modules) == ["model"]


def test_a_loss_that_leaves_the_task_no_say_is_told_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    for weight, told in ((0.1, 0), (1e3, 1)):
        other: Any = Other()
        torch.nn.init.constant_(other.weight.weight, weight)
        task = TransferTask(tagger(), two_languages(), batch=3, seed=0, auxiliary=other)
        with shown(True):
            for batch in task.batches(0):
                task.step(batch, Crew.alone())
        said = capsys.readouterr()
        assert (said.out + said.err).count("times as much as the task") == told


# ------------------------------------------------------------------------------------------- predictions


def test_predictions_come_back_in_order_whatever_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [3, 1, 7, 2, 5, 5, 1, 4]
    material, model = Material(Given(lengths, 3), GoldLabels({}, {})), tagger()
    model.train()
    model.head.out[0].p = 0.9  # dropout must not be heard of
    held: Any = material.vectors
    tags = model.head.out[1](held.vectors[0]).argmax(-1)
    expected = [tags[a:b].tolist() for a, b in pairwise(held.inputs.first.tolist())]
    for most in (8192, 8, 1):
        monkeypatch.setattr(learning, "DECODED", most)
        held.asked.clear()
        assert decoded(model, material) == expected
        assert all(len(rows) == 1 or max(lengths[k] for k in rows) * len(rows) <= most for rows in held.asked)
    assert model.training


def test_spans_are_told_where_an_answer_may_be() -> None:
    allowed = np.array([True, False, True, True, True, False, False, True])
    gold = GoldLabels({"allowed": allowed}, {"start": np.array([0, 0]), "end": np.array([0, 0])})
    model = make_model("span", width=D, mix="mean")
    first, second = decoded(model, Material(Given([5, 3], 0), gold))
    for (start, end), may in ((first, allowed[:5]), (second, np.array([True, False, True]))):
        assert (np.isfinite(start) == may).all() and (np.isfinite(end) == may).all(), "the first always is"
        assert np.exp(start).sum() == pytest.approx(1, rel=1e-5)


# -------------------------------------------------------------------------------------------- end to end

WIDE = Reading(longest=24, every_piece=True)
BODY = {"body": "bilstm", "body_width": 16, "body_layers": 1}


def options(**settings: Any) -> TrainOptions:
    held: dict[str, Any] = {"learning_rate": 3e-3, "epochs": 10, "save_every": 10**6, "dropout": False}
    return TrainOptions(**held | settings)


@pytest.mark.parametrize(
    ("task", "regime", "epochs", "how"),
    [
        ("ner", "features", 14, {"layers": (0, 3)}),
        ("ner", "features", 14, {"layers": (0, 3), "head": "crf"}),
        ("ner", "finetune", 16, {}),
        ("pos", "features", 12, {"layers": (0, 3), "body": "transformer", "body_layers": 1}),
        ("nli", "features", 40, {"layers": (0, 3), "head": "classify", "reading": WIDE, **BODY}),
        ("nli", "finetune", 40, {}),
        ("parsing", "features", 20, {"layers": (0, 1, 2, 3)}),
        ("parsing", "finetune", 20, {}),
        ("qa", "features", 12, {"layers": (0, 3)}),
        ("qa", "finetune", 14, {}),
    ],
)
def test_a_planted_task_is_learned(
    task: str, regime: str, epochs: int, how: dict[str, Any], tmp_path: Path
) -> None:
    encoder = paired("bert")
    before = {name: one.clone() for name, one in encoder.model.state_dict().items()}
    held, data = learner(task, encoder, regime, **how), DATA[task]()
    model = held.model(0)
    rate = {"features": 0.05, "finetune": 3e-3}[regime] if "body" not in how else 0.02
    rate = 5e-3 if task == "parsing" else rate
    log = held.learn(model, [data], [], options(learning_rate=rate, epochs=epochs), tmp_path, batch=4)
    tested = held.test(model, data)
    assert min(task_scores(task, tested.values).values()) >= 0.98
    assert log.best is None and log.steps == epochs * -(-len(data) // 4)
    same = all(torch.equal(one, before[name]) for name, one in encoder.model.state_dict().items())
    assert same == (regime == "features"), "only fine-tuning changes the encoder"
    assert not encoder.model.training and len(held.predict(model, data)) == len(data)
    items = held.items(data, tested.values)
    assert items.keys["item"].tolist() == list(range(len(data))) and items.values == tested.values


def test_rows_without_text_are_left_out_and_nothing_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, sizes = [], []
    for trims in (True, False):
        if not trims:
            monkeypatch.setattr("calque.transfer.learner.harmless", lambda encoder, weight_decay: False)
        held = learner("ner", paired("bert"), "finetune")
        how = options(epochs=3, save_every=2, dropout=True)
        held.learn(held.model(0), [tagged()], [tagged(5, 2)], how, tmp_path / str(trims), batch=4)
        (last, *_) = sorted((tmp_path / str(trims)).glob("step-*/weights.safetensors"))
        sizes.append(last.stat().st_size)
        weights.append({name: one.clone() for name, one in held.encoder.model.state_dict().items()})
    assert sizes[0] < sizes[1] and weights[0].keys() == weights[1].keys()
    for name, whole in weights[1].items():
        torch.testing.assert_close(weights[0][name], whole, atol=1e-5, rtol=0)


def test_questions_are_answered_in_whatever_window_has_the_answer(tmp_path: Path) -> None:
    data = questions(words=30, count=12)
    held = learner("qa", paired("bert"), layers=(0, 3), reading=Reading(longest=18, overlap=4))
    prepared = held.prepare(data)
    assert len(prepared.inputs) > 2 * len(data)
    model = held.model(0)
    held.learn(model, [data], [], options(learning_rate=0.05, epochs=20), tmp_path, batch=8)
    assert task_scores("qa", held.test(model, data).values) == {"f1": 1.0, "em": 1.0}


def test_long_sentences_are_tagged_across_windows(tmp_path: Path) -> None:
    data = tagged(6, longest=60)
    held = learner("ner", paired("bert"), "finetune", reading=Reading(longest=12, overlap=4))
    model = held.model(0)
    held.learn(model, [data], [], options(epochs=12), tmp_path, batch=2)
    tested = held.test(model, data)
    assert task_scores("ner", tested.values)["accuracy"] >= 0.98
    assert [len(tags) for tags in tested.predictions] == [len(item) for item in data.items]


def beside(encoder: HuggingFaceEncoder, seed: int) -> ContinualAlignment:
    """An alignment that goes on, with a head and a queue that must survive."""
    source, target = (
        [["the", "cat"], ["dog", "it"], ["life"]] * 3,
        [["die", "Katze"], ["Hund", "es"], ["Leben"]] * 3,
    )
    links = [(s, k, k) for s, words in enumerate(source) for k in range(len(words))]
    pairs = WordPairs.of(Bitext.of(("en", "de"), source, target), *np.array(links).T)
    how = FinetuneOptions(layers=(3,), loss=Loss.WEAK, head=8, queue=5, batch=3, batch_of="all")
    return ContinualAlignment(FinetuneAligner(how).task(encoder, [pairs], seed=seed, batches=1), alpha=0.5)


def run(
    folder: Path, seed: int = 0, regime: str = "finetune", aligned: bool = False
) -> tuple[Any, torch.Tensor]:
    """Predictions and scores of a short training with dropout."""
    held = learner("ner", paired("bert"), regime)
    model = held.model(seed)
    how = options(dropout=True, seed=seed, epochs=3, save_every=2)
    more = beside(held.encoder, seed) if aligned else None
    data = [tagged(), tagged(6, 1, "de")]
    log = held.learn(model, data, [tagged(5, 2)], how, folder, batch=4, auxiliary=more)
    assert [*log.history[0]["losses"]] == (["task", "weak", "hidden"] if aligned else ["task"])
    material = held.material(held.prepare(tagged(9, 3)))
    with torch.no_grad():
        vectors, mask = material.vectors.of(np.arange(9))
        scores = model.head.out(model(vectors, mask))
    return held.test(model, tagged(9, 3)).predictions, scores


@pytest.mark.parametrize("regime", ["finetune", "features"])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(regime: str, tmp_path: Path) -> None:
    one, two, other = (run(tmp_path / str(n), seed, regime) for n, seed in enumerate((0, 0, 1)))
    assert one[0] == two[0] and torch.equal(one[1], two[1])
    assert not torch.equal(one[1], other[1])


@pytest.mark.parametrize(("moment", "aligned"), [(2, False), (11, False), (8, True)])
def test_a_killed_training_goes_on_to_the_same_bits(
    moment: int, aligned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(tmp_path / "whole", aligned=aligned)
    step, count = TransferTask.step, 0

    def killed(self: TransferTask, batch: Batch, crew: Crew) -> Taken:
        nonlocal count
        count += 1
        if count == moment:
            raise KeyboardInterrupt
        return step(self, batch, crew)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(TransferTask, "step", killed)
        run(tmp_path / "cut", aligned=aligned)
    resumed = run(tmp_path / "cut", aligned=aligned)
    assert resumed[0] == whole[0] and torch.equal(resumed[1], whole[1])


def test_the_epoch_that_is_best_on_dev_data_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learned is wrong of one dev set, and the more so the longer it is learned."""
    held = learner("ner", paired("bert"), layers=(0, 3))
    turned = dict(zip(TAGS, ["O", "O", "B-ANIMAL", "B-THING", "O", "B-THING"], strict=True))
    wrong = [Tagged(one.words, tuple(turned[word] for word in one.words)) for one in tagged(6, 5).items]
    dev = [Labelled("en", tuple(wrong)), Labelled("de", tuple(wrong[:2]))]
    tests, scores = Learner._tested, []

    def watched(self: Learner, *args: Any) -> Any:
        found = tests(self, *args)
        scores.append(task_scores("ner", found.values)["f1"])
        return found

    monkeypatch.setattr(Learner, "_tested", watched)
    model = held.model(0)
    log = held.learn(model, [tagged()], dev, options(learning_rate=0.02, epochs=6), tmp_path, batch=4)
    means = [(a + b) / 2 for a, b in zip(scores[::2], scores[1::2], strict=True)]
    assert len(means) == 6, "once an epoch"
    assert log.best == max(means) > means[-1]
    kept = [task_scores("ner", held.test(model, one).values)["f1"] for one in dev]
    assert sum(kept) / 2 == log.best


def test_a_head_for_many_labels_and_layers_is_the_same_for_the_same_seed() -> None:
    held = learner("ner", paired("bert"), layers=(1, 2, 3), mix="weighted", body="transformer", body_layers=1)
    a, b, c = (held.model(seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(a[name], b[name]) for name in a) and any((a[n] != c[n]).any() for n in a)
    assert a["mix.weights"].shape == (3,) and len(held.labels) == 5


def test_predictions_in_the_middle_of_training_know_no_dropout() -> None:
    held = learner("ner", paired("bert"), "finetune")
    model, data = held.model(0), tagged(20)
    expected = held.predict(model, data)
    for part in (*held.encoder.model.modules(), *model.modules()):
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.9
    held.encoder.model.train(), model.train()
    assert held.predict(model, data) == expected
    assert held.encoder.model.training and model.training


def test_still_leaves_modes_as_they_were() -> None:
    module = torch.nn.Sequential(torch.nn.Dropout(0.5))
    for mode in (True, False):
        module.train(mode)
        with pytest.raises(ValueError), still(module):
            assert not module[0].training
            raise ValueError
        assert module[0].training is mode


def test_vectors_that_do_not_fit_the_cache_are_computed_for_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, found = DATA["ner"](), []
    for gigabytes in ("20", "0"):
        monkeypatch.setenv("CALQUE_CACHE_GB", gigabytes)
        held = learner("ner", paired("bert"), "features", layers=(0, 3))
        model = held.model(0)
        held.learn(model, [data], [], options(learning_rate=0.05, epochs=6), tmp_path / gigabytes, batch=4)
        found.append(task_scores("ner", held.test(model, data).values)["f1"])
        assert all(one.grad is None for one in held.encoder.model.parameters())
    assert found[0] == pytest.approx(found[1], abs=0.05), "but for rounding to half precision"
