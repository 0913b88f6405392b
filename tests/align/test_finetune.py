"""Alignment by training: a step's losses against vectors taken one by one, and what training does."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from linked_text import linked_text
from tiny_encoders import build

from calque.align.finetune import UNRELATED, FinetuneAligner, FinetuneOptions, FinetuneTask, Loss
from calque.align.regularisers import Regulariser
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.open import open_encoder, save_aligned
from calque.errors import BadInput, BadSetting
from calque.geometry.losses import Contrast, Linked, strong, weak
from calque.training.crew import Crew
from calque.training.loop import TrainOptions, train
from calque.types import FIRST_SPECIAL, LAST_SPECIAL, WordIndex, WordPairs

ALONE = Crew.alone()
NONE = Regulariser.NONE


def make(*pairs: WordPairs, encoder: HuggingFaceEncoder | None = None, **settings: Any) -> FinetuneTask:
    options = FinetuneOptions(**{"layers": (3,), "batch": 100, "regulariser": NONE} | settings)
    return FinetuneAligner(options).task(encoder or build("bert"), pairs or (linked_text(),))


def shaken(encoder: HuggingFaceEncoder) -> None:
    """Move the weights a little, the same way every time."""
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for one in encoder.model.parameters():
            one.add_(0.05 * torch.randn(one.shape, generator=noise))


def vectors(
    encoder: HuggingFaceEncoder, pairs: WordPairs, side: str, layer: int, pooling: str = "mean"
) -> np.ndarray:
    words = WordIndex(pairs.sentence, getattr(pairs, side))
    return encoder.word_vectors(getattr(pairs.bitext, side), words, layers=(layer,), pooling=pooling).layer(
        layer
    )


def only_batch(task: FinetuneTask) -> Any:
    (batch,) = task.batches(0)
    return batch


@pytest.mark.parametrize("pooling", ["first", "last", "mean"])
@pytest.mark.parametrize(("power", "reduction"), [(1, "sum"), (2, "mean")])
def test_l2_is_the_distance_of_linked_words_summed_over_layers(
    power: int, reduction: str, pooling: str
) -> None:
    pairs = linked_text()
    task = make(pairs, layers=(1, 3), power=power, reduction=reduction, pooling=pooling)
    expected = 0.0
    for layer in (1, 3):
        a, b = (vectors(task.encoder, pairs, side, layer, pooling) for side in ("source", "target"))
        apart = np.linalg.norm(a - b, axis=1) ** power
        expected += apart.mean() if reduction == "mean" else apart.sum()
    taken = task.step(only_batch(task), ALONE)
    assert taken.losses["l2"].item() == pytest.approx(expected, rel=1e-5)
    assert taken.units == len(pairs.bitext.source.ids) + len(pairs.bitext.target.ids)


@pytest.mark.parametrize("name", ["weak", "strong"])
def test_contrastive_losses_see_all_languages_and_the_head(name: str) -> None:
    pairs = [linked_text("de"), linked_text("ru", seed=1)]
    task = make(*pairs, loss=Loss(name), temperature=0.2)
    parts, known = [], {}
    for one in pairs:
        a, b = (torch.from_numpy(vectors(task.encoder, one, side, 3)) for side in ("source", "target"))
        strings = one.bitext.source.vocabulary.strings
        numbers = [
            torch.tensor([known.setdefault((language, strings[i]), len(known)) for i in ids.tolist()])
            for language, ids in zip(one.languages, (one.source_ids, one.target_ids), strict=True)
        ]
        head = task.modules["heads"][0]
        parts.append(Linked(head(a), head(b), *numbers))
    expected = {"weak": weak, "strong": strong}[name](parts[0].then(parts[1]), Contrast(0.2))
    taken = task.step(only_batch(task), ALONE)
    assert taken.losses[name].item() == pytest.approx(expected.item(), rel=1e-5)


def test_without_a_head_vectors_are_compared_themselves() -> None:
    task = make(loss=Loss.WEAK, head=0)
    assert list(task.modules) == ["encoder"]
    pairs = linked_text()
    a, b = (torch.from_numpy(vectors(task.encoder, pairs, side, 3)) for side in ("source", "target"))
    ids = [torch.from_numpy(np.asarray(ids, np.int64)) for ids in (pairs.source_ids, pairs.target_ids)]
    expected = weak(Linked(a, b, *ids), Contrast())
    assert task.step(only_batch(task), ALONE).losses["weak"].item() == pytest.approx(
        expected.item(), rel=1e-5
    )


@pytest.mark.parametrize(("supervision", "marks"), [("cls", [-1]), ("cls+sep", [-1, -2]), ("all", [-1, -2])])
def test_special_tokens_are_linked_on_request(supervision: str, marks: list[int]) -> None:
    assert (FIRST_SPECIAL, LAST_SPECIAL) == (-1, -2)
    pairs = linked_text()
    task = make(pairs, supervision=supervision, reduction="sum")
    expected = 0.0
    for mark in marks:
        every = np.arange(len(pairs.bitext), dtype=np.int32)
        a, b = (
            task.encoder.word_vectors(text, WordIndex(every, np.full_like(every, mark)), layers=(3,)).layer(3)
            for text in (pairs.bitext.source, pairs.bitext.target)
        )
        expected += ((a - b) ** 2).sum()
    if supervision == "all":
        expected += (
            (vectors(task.encoder, pairs, "source", 3) - vectors(task.encoder, pairs, "target", 3)) ** 2
        ).sum()
    taken = task.step(only_batch(task), ALONE)
    assert taken.losses["l2"].item() == pytest.approx(expected, rel=1e-5)
    assert bool(task.corpora[0].types) == (supervision == "all")


def test_special_tokens_of_other_sentences_are_negatives() -> None:
    task = make(linked_text(), linked_text("ru"), supervision="cls+sep")
    words = [corpus.held.word for corpus in task.corpora]
    assert len(np.unique(np.concatenate(words))) == sum(map(len, words))


@pytest.mark.parametrize("moves", ["target", "source"])
@pytest.mark.parametrize("kept", [True, False])
def test_the_hidden_regulariser_holds_one_side(moves: str, kept: bool) -> None:
    pairs, encoder = linked_text(), build("bert")
    held = pairs.bitext.source if moves == "target" else pairs.bitext.target
    before = encoder.word_vectors(held, layers=(3,)).layer(3)
    settings = {"regulariser": Regulariser.HIDDEN, "hidden_weight": 0.5, "moves": moves}
    task = make(pairs, encoder=encoder, originals_gb=2.0 if kept else 0.0, **settings)
    assert task.step(only_batch(task), ALONE).losses["hidden"].item() == pytest.approx(0, abs=1e-8)
    shaken(encoder)
    now = encoder.word_vectors(held, layers=(3,)).layer(3)
    expected = 0.5 * ((now - before) ** 2).sum(1).mean()
    assert task.step(only_batch(task), ALONE).losses["hidden"].item() == pytest.approx(expected, rel=1e-4)
    assert ("kept" if kept else "frozen copy") in task.about()["original"]


def test_only_linked_words_are_held_on_request() -> None:
    pairs, encoder = linked_text(share=0.3), build("bert")
    before = vectors(encoder, pairs, "source", 3)
    task = make(pairs, encoder=encoder, regulariser=Regulariser.HIDDEN, hidden_words="linked", power=1)
    shaken(encoder)
    expected = np.linalg.norm(vectors(encoder, pairs, "source", 3) - before, axis=1).mean()
    assert task.step(only_batch(task), ALONE).losses["hidden"].item() == pytest.approx(expected, rel=1e-4)


def test_what_words_are_pulled_to() -> None:
    pairs, found, slopes = linked_text(), {}, {}
    for pulled in ("trained", "detached", "frozen"):
        encoder = build("bert")
        task = make(pairs, encoder=encoder, pulled_to=pulled)
        original = vectors(encoder, pairs, "source", 3)
        shaken(encoder)
        loss = task.step(only_batch(task), ALONE).losses["l2"]
        loss.backward()
        found[pulled], slopes[pulled] = loss.item(), encoder.body.get_input_embeddings().weight.grad
    now = {side: vectors(encoder, pairs, side, 3) for side in ("source", "target")}
    assert found["trained"] == found["detached"]
    assert found["trained"] == pytest.approx(((now["source"] - now["target"]) ** 2).sum(1).mean(), rel=1e-5)
    assert found["frozen"] == pytest.approx(((original - now["target"]) ** 2).sum(1).mean(), rel=1e-4)
    # The word for "cat" is English only: nothing pulls at it unless its side is trained.
    english = set(encoder.batch(pairs.bitext.source).pieces.unique().tolist())
    german = set(encoder.batch(pairs.bitext.target).pieces.unique().tolist())
    rows = sorted(english - german)
    assert rows and slopes["trained"][rows].abs().sum() > 0
    assert slopes["detached"][rows].abs().sum() == slopes["frozen"][rows].abs().sum() == 0


def test_both_sides_of_all_languages_go_through_in_one_pass() -> None:
    task = make(linked_text("de", sentences=10), linked_text("ru", sentences=4), batch=3)
    batches, calls = task.batches(0), []
    task.step(batches[0], ALONE)  # the first time, the encoder finds out what it consists of
    task.encoder.body.register_forward_hook(lambda *given: calls.append(1))
    task.step(batches[0], ALONE)
    assert len(calls) == 1
    assert sorted(len(batch) for batch in batches) == [1, 3, 3, 3]
    rows = np.concatenate(batches)
    assert sorted(rows[:, 0].tolist()) == list(range(10))
    assert sorted(np.bincount(rows[:, 1]).tolist()) == [2, 2, 3, 3]


def test_batches_of_all_languages_and_of_tokens() -> None:
    pairs = [linked_text("de", sentences=30), linked_text("ru", sentences=30, seed=1)]
    together = make(*pairs, batch=8, batch_of="all").batches(0)
    assert {batch.shape for batch in together} <= {(4, 2), (2, 2)}
    task = make(*pairs, batch_tokens=150)
    for batch in task.batches(0):
        read = task._read(batch, np.arange(len(batch))).batch
        assert read.pieces.numel() <= 150 or len(batch) == 1
    assert sorted(np.concatenate(task.batches(1))[:, 0].tolist()) == list(range(30))


def test_what_cannot_be_used_is_counted() -> None:
    pairs = linked_text(longest=14)
    short = build("bert", max_length=16)
    task = make(pairs, encoder=short)
    coverage = task.corpora[0].coverage
    assert coverage["truncated"] > 0 and coverage["used"] < len(pairs)
    assert coverage["used"] == len(task.corpora[0].held.at)
    task.step(only_batch(task), ALONE)
    unlinked = pairs.keep(pairs.sentence != 3)
    assert make(unlinked).corpora[0].coverage["sentences without links"] == 1
    with pytest.raises(BadInput, match=r"en-de: no links to train on; .*24 sentences without links"):
        make(pairs.keep(pairs.sentence < 0))


def test_pairs_are_drawn_and_the_words_trained_on_are_known() -> None:
    pairs = linked_text(sentences=40)
    task = make(pairs, max_pairs=5)
    assert len(task.corpora[0].first) == 6
    assert task.corpora[0].types < pairs.types()
    assert make(pairs).aligned().seen == {("en", "de"): frozenset(pairs.types())}


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong in ({"temperature": 0}, {"batch": 0}, {"layers": ()}, {"queue": 5}, {"head": -1}):
        with pytest.raises(BadSetting):
            FinetuneOptions(**{"layers": (1,)} | wrong)


# ------------------------------------------------------------------------------------------- training


def fit(task: FinetuneTask, folder: Path, *, resume: bool = False, **settings: Any) -> list[dict[str, Any]]:
    options = {"learning_rate": 2e-3, "steps": 30, "warmup": 0.0, "dropout": False} | settings
    return list(train(task, TrainOptions(**options), folder, resume=resume).history)


def test_words_meet_and_without_a_regulariser_all_words_do(tmp_path: Path) -> None:
    pairs = linked_text(sentences=60)
    free = fit(make(pairs, batch=20), tmp_path / "free", steps=60)
    held = fit(make(pairs, batch=20, regulariser=Regulariser.HIDDEN), tmp_path / "held", steps=60)
    contrast = fit(make(pairs, batch=20, loss=Loss.WEAK, head=0), tmp_path / "weak", steps=60)
    for log in (free, held, contrast):
        name = next(iter(log[0]["losses"]))
        assert log[-1]["losses"][name] < 0.7 * log[0]["losses"][name]
    last = {name: log[-1]["watched"][UNRELATED] for name, log in
            (("free", free), ("held", held), ("weak", contrast))}  # fmt: skip
    assert last["free"] > 0.9 and last["held"] < last["free"] - 0.1 and last["weak"] < 0.5


def test_parameters_stay_nearer_with_their_regulariser(tmp_path: Path) -> None:
    moved = {}
    for kind in (NONE, Regulariser.PARAMETERS):
        task = make(regulariser=kind, parameter_weight=5.0)
        first = [one.detach().clone() for one in task.encoder.model.parameters()]
        log = fit(task, tmp_path / kind.value)
        now = task.encoder.model.parameters()
        moved[kind] = sum((a - b).square().sum().item() for a, b in zip(now, first, strict=True))
    assert moved[Regulariser.PARAMETERS] < 0.7 * moved[NONE]
    assert "parameters" in log[0]["losses"]


def test_a_queue_survives_a_stop(tmp_path: Path) -> None:
    settings = {"loss": Loss.STRONG, "queue": 40, "batch": 5, "regulariser": Regulariser.BOTH}
    whole = make(**settings)
    log = fit(whole, tmp_path / "whole", steps=8, save_every=3, dropout=True)
    assert {len(column) for column in whole.state().values()} == {40}
    again = make(**settings)
    (tmp_path / "whole" / "step-00000006").rename(tmp_path / "later")
    rest = fit(again, tmp_path / "whole", resume=True, steps=8, save_every=3, dropout=True)
    assert [one["losses"] for one in rest] == [one["losses"] for one in log]
    for a, b in zip(whole.encoder.model.parameters(), again.encoder.model.parameters(), strict=True):
        assert torch.equal(a, b)
    for name, column in whole.state().items():
        assert torch.equal(column, again.state()[name])


def two_processes_task(loss: str, folder: Path) -> list[dict[str, Any]]:
    """What one process, or each of two, trains. Some batches are too small for both to have a share."""
    pairs = [linked_text("de", sentences=9), linked_text("ru", sentences=5, seed=1)]
    encoder = HuggingFaceEncoder.load(str(folder / "encoder"))
    queue = 0 if loss == "l2" else 30
    task = make(*pairs, encoder=encoder, loss=Loss(loss), queue=queue, batch=4, regulariser=Regulariser.BOTH)
    return fit(task, folder / f"{loss} {os.environ.get('RANK')}", steps=10, learning_rate=1e-4)


def test_two_processes_give_the_losses_of_one(tmp_path: Path) -> None:
    here = Path(__file__).parent
    build("bert").save(tmp_path / "encoder")
    paths = [str(here), str(here.parent / "encoders"), *filter(None, [os.environ.get("PYTHONPATH")])]
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(here / "two_aligners.py"), str(tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
        check=True, capture_output=True, timeout=200,
    )  # fmt: skip
    two = json.loads((tmp_path / "losses.json").read_text())
    for loss, theirs in two.items():
        alone = [one["losses"] for one in two_processes_task(loss, tmp_path)]
        assert len(theirs) == 10 and min(len(one) for one in theirs) == 3
        for mine, other in zip(alone, theirs, strict=True):
            assert other == pytest.approx(mine, abs=1e-5)


# ---------------------------------------------------------------------------------------------- on disk


@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_plain_transformers_gives_the_vectors_of_calque(family: str, tmp_path: Path) -> None:
    pairs = linked_text()
    task = make(pairs, encoder=build(family, prefix="the"), layers=(2, 3), pooling="last")
    before = task.encoder.word_vectors(pairs.bitext.target, layers=(3,)).layer(3)
    fit(task, tmp_path / "run", steps=5)
    out = tmp_path / "out"
    out.mkdir()
    save_aligned(out, task.aligned())
    opened = open_encoder(str(out))
    assert isinstance(opened, AlignedEncoder) and opened.pooling == "last" and not opened.maps
    mine = opened.word_vectors(pairs.bitext.target, layers=(3,)).layer(3)
    assert np.abs(mine - before).max() > 1e-2
    assert np.allclose(mine, task.encoder.word_vectors(pairs.bitext.target, layers=(3,)).layer(3), atol=1e-6)

    (out / "alignment.json").unlink()
    (out / "seen.tsv.gz").unlink()
    model = transformers.AutoModel.from_pretrained(out).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    row = 0
    for words in pairs.bitext.target:
        read = tokenizer(["the", *words], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**read).last_hidden_state[0]
        for number in range(len(words)):
            own = [k for k, word in enumerate(read.word_ids()) if word == number + 1]
            # The lone space mark of SentencePiece is no part of a word.
            own = [k for k in own if tokenizer.convert_ids_to_tokens(int(read["input_ids"][0, k])) != "▁"]
            assert np.allclose(hidden[own].mean(0).numpy(), mine[row], atol=1e-5)
            row += 1
    assert row == len(mine)


def test_an_encoder_aligned_by_training_takes_any_language_and_knows_what_it_has_seen(tmp_path: Path) -> None:
    pairs = linked_text()
    task = make(pairs, loss=Loss.WEAK)
    save_aligned(tmp_path, task.aligned())
    about = json.loads((tmp_path / "alignment.json").read_text())
    assert about["method"] == "weak" and about["layers"] == [3] and about["maps"] == []
    assert about["coverage"]["en-de"]["used"] == len(pairs) and "AutoModel" in about["note"]
    assert not (tmp_path / "maps.safetensors").exists()
    opened = open_encoder(str(tmp_path))
    assert isinstance(opened, AlignedEncoder)
    assert opened.languages is None and opened.meeting(("fi", "ru")) is opened
    assert opened.seen_by(("de", "en")) == {(b, a) for a, b in pairs.types()}
    assert opened.name == "bert+weak" and opened.about["options"]["temperature"] == 0.1
    russian = linked_text("ru").bitext.target
    assert opened.word_vectors(russian, layers=(3,)).present.all()
    assert opened.sentence_vectors(russian, layers=(3,)).shape == (1, len(russian), 24)
