"""Heads: losses by hand, planted mappings learned, predictions that padding and dropout do not touch."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import BadInput, BadSetting
from calque.transfer.heads import (
    Classifier,
    CrfTagger,
    Gold,
    Head,
    Parser,
    SharedDropout,
    Spans,
    Tagger,
    TaskModel,
    best_span,
    evaluating,
    hidden,
    make_model,
)
from calque.transfer.trees import is_tree

D = 8
SIZES: dict[str, dict[str, Any]] = {
    "classify": {"labels": 3},
    "tag": {"labels": 4},
    "crf": {"labels": 4},
    "parse": {"relations": 3, "arc": 7, "relation": 5},
    "span": {},
}


def rows(lengths: list[int], seed: int = 0, d: int = D) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.randn(*mask.shape, d, generator=draw), mask


def gold_for(kind: str, lengths: list[int], seed: int = 0) -> Gold:
    """Random labels; beyond a row's end a number that no label may have."""
    draw = np.random.default_rng(seed)
    units, wide = np.full((len(lengths), max(lengths)), 99), {}
    for row, n in enumerate(lengths):
        units[row, :n] = draw.integers(0, 4, n)
    if kind in ("tag", "crf"):
        wide["tags"] = units
    if kind == "classify":
        wide["label"] = draw.integers(0, 3, len(lengths))
    if kind == "parse":
        heads = units.copy()
        for row, n in enumerate(lengths):
            heads[row, :n] = draw.integers(0, n + 1, n)
        wide |= {"heads": heads, "relations": np.where(units < 99, units % 3, 99)}
    if kind == "span":
        pairs = np.array([sorted(draw.integers(0, n, 2)) for n in lengths])
        wide |= {"start": pairs[:, 0], "end": pairs[:, 1]}
    return {name: torch.from_numpy(array) for name, array in wide.items()}


def model(kind: str, seed: int = 0, **options: Any) -> TaskModel:
    """A model whose weights are all random: a parser begins with zeros."""
    made = make_model(kind, width=D, **(SIZES[kind] | options), seed=seed)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for one in made.head.parameters():
            one.copy_(torch.randn(one.shape, generator=draw))
    return made


def head(kind: str, seed: int = 0, **options: Any) -> Head[Any]:
    return model(kind, seed, **options).head.eval()


def assert_same(found: list[Any], expected: list[Any]) -> None:
    """The same predictions: numbers nearly, everything else exactly."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, tuple) and isinstance(one[0], np.ndarray):
            for side, other_side in zip(one, other, strict=True):
                np.testing.assert_allclose(side, other_side, atol=1e-4)
        else:
            assert one == other


# ------------------------------------------------------------------------------------ what all have in common


@pytest.mark.parametrize("kind", SIZES)
@settings(max_examples=25)
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4), seed=st.integers(0, 500))
def test_rows_add_up_and_padding_changes_nothing(kind: str, lengths: list[int], seed: int) -> None:
    """What several processes rely on: the loss of a batch is the sum of its rows', and so are counts."""
    one = head(kind, seed)
    vectors, mask = rows(lengths, seed)
    vectors[~mask] = 50.0
    gold = gold_for(kind, lengths, seed)
    loss, count = one.loss(vectors, mask, gold)
    found = one.decode(vectors, mask)
    apart = []
    for k, n in enumerate(lengths):
        cut = {name: part[k : k + 1, :n] if part.ndim > 1 else part[k : k + 1] for name, part in gold.items()}
        apart.append(one.loss(vectors[k : k + 1, :n], mask[k : k + 1, :n], cut))
        assert_same(one.decode(vectors[k : k + 1, :n], mask[k : k + 1, :n]), found[k : k + 1])
    torch.testing.assert_close(loss, torch.stack([part for part, _ in apart]).sum(), rtol=1e-4, atol=1e-4)
    assert (
        count
        == sum(number for _, number in apart)
        == (sum(lengths) if kind in ("tag", "parse") else len(lengths))
    )


@pytest.mark.parametrize("kind", SIZES)
def test_nothing_labelled_is_zero_with_a_gradient(kind: str) -> None:
    one = model(kind).train()
    vectors, mask = rows([3, 1])
    none = {name: torch.full_like(part, -1) for name, part in gold_for(kind, [3, 1]).items()}
    loss, count = one.loss(vectors[None].requires_grad_(), mask, none)
    loss.backward()
    assert loss.item() == 0 and count == 0
    assert all(p.grad is None or not bool(p.grad.any()) for p in one.parameters())


@pytest.mark.parametrize("kind", SIZES)
def test_the_gradient_is_finite_and_reaches_every_weight(kind: str) -> None:
    one = model(kind, layers=2, body="transformer", body_layers=1).train()
    vectors, mask = rows([5, 1, 4])
    loss, _ = one.loss(torch.stack([vectors, vectors.flip(-1)]), mask, gold_for(kind, [5, 1, 4]))
    loss.backward()
    for name, part in one.named_parameters():
        assert part.grad is not None and bool(torch.isfinite(part.grad).all()), name
        assert bool(part.grad.any()), name


@pytest.mark.parametrize("kind", SIZES)
def test_predictions_are_made_without_dropout_and_training_goes_on(kind: str) -> None:
    one = model(kind, layers=2, body="transformer", dropout=0.5, body_dropout=0.5).train()
    one.body.eval()
    stacked = torch.stack([rows([5, 3])[0], rows([5, 3], 1)[0]]).requires_grad_()
    mask = rows([5, 3])[1]
    first = one.decode(stacked, mask)
    for _ in range(5):
        assert_same(one.decode(stacked, mask), first)
    assert one.training and one.head.training and not one.body.training
    with evaluating(one):
        vectors = one(stacked, mask)
    assert_same(one.head.decode(vectors, mask), first)


@pytest.mark.parametrize("kind", SIZES)
def test_the_same_seed_gives_the_same_weights_and_disturbs_nobody(kind: str) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    options = SIZES[kind] | {"width": D, "layers": 2, "body": "transformer"}
    a, b, c = (make_model(kind, seed=seed, **options).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not all(torch.equal(a[name], c[name]) for name in a)


def test_cached_half_precision_vectors_are_taken() -> None:
    one = model("tag", layers=2, mix="sum")
    vectors, mask = rows([4, 2])
    stacked = torch.stack([vectors, vectors]).half()
    assert one.decode(stacked, mask) == one.decode(stacked.float(), mask)
    assert one.loss(stacked, mask, gold_for("tag", [4, 2]))[0].dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_what_may_not_be_chosen_is_finite_in_any_precision(dtype: torch.dtype) -> None:
    scores = hidden(torch.tensor([[1.0, 2.0, 3.0]], dtype=dtype), torch.tensor([True, True, False]))
    assert bool(torch.isfinite(scores).all())
    assert scores.softmax(-1)[0, 2] == 0


def test_evaluating_restores_what_was_when_something_fails() -> None:
    part = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Dropout(0.5))
    part[1].eval()
    with pytest.raises(RuntimeError), evaluating(part):
        assert not part.training and not torch.is_grad_enabled()
        raise RuntimeError
    assert [one.training for one in (part, part[0], part[1])] == [True, True, False]
    assert torch.is_grad_enabled()


# ----------------------------------------------------------------------------------------- one head at a time


def log_softmax(scores: list[float]) -> list[float]:
    total = math.log(sum(map(math.exp, scores)))
    return [score - total for score in scores]


def test_a_classifier_reads_the_first_unit() -> None:
    one = head("classify")
    assert isinstance(one, Classifier)
    vectors, mask = rows([3, 1, 2])
    linear = one.out[1]
    logits = [(linear.weight @ vectors[k, 0] + linear.bias).tolist() for k in range(3)]
    loss, count = one.loss(vectors, mask, {"label": torch.tensor([2, -1, 0])})
    assert loss.item() == pytest.approx(-log_softmax(logits[0])[2] - log_softmax(logits[2])[0], rel=1e-5)
    assert count == 2
    assert one.decode(vectors, mask) == [int(np.argmax(row)) for row in logits]
    np.testing.assert_allclose(one.scores(vectors, mask)[1], np.exp(log_softmax(logits[1])), rtol=1e-4)


def test_a_tagger_counts_what_is_labelled() -> None:
    one = head("tag")
    assert isinstance(one, Tagger)
    vectors, mask = rows([3, 2])
    tags = torch.tensor([[1, -1, 0], [3, -1, 2]])  # the last is beyond its row
    linear = one.out[1]
    expected = -sum(
        log_softmax((linear.weight @ vectors[row, unit] + linear.bias).tolist())[tag]
        for row, unit, tag in [(0, 0, 1), (0, 2, 0), (1, 0, 3)]
    )
    loss, count = one.loss(vectors, mask, {"tags": tags})
    assert loss.item() == pytest.approx(expected, rel=1e-5) and count == 3
    assert list(map(len, one.decode(vectors, mask))) == [3, 2]


def test_a_crf_has_labels_for_all_units_or_none() -> None:
    one = head("crf")
    assert isinstance(one, CrfTagger)
    vectors, mask = rows([3, 2, 2])
    tags = torch.tensor([[1, 0, 0], [-1, -1, 3], [2, 3, -1]])
    loss, count = one.loss(vectors, mask, {"tags": tags})
    likely = one.crf.log_likelihood(one.out(vectors), tags.clamp(min=0), mask)
    assert count == 2 and loss.item() == pytest.approx(-(likely[0] + likely[2]).item(), rel=1e-5)
    tags[0, 1] = -1
    with pytest.raises(BadInput, match="some of its units"):
        one.loss(vectors, mask, {"tags": tags})


def parser_by_hand(one: Parser, vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Arc scores (n, n + 1) and relation scores (n, n + 1, relations) of one row, term by term."""
    nodes = [one.root, *vectors]

    def seen(side: Any, vector: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.elu(side[1](vector))

    n, arc, relation = len(vectors), one.arc.weight, one.relation.weight
    wide = one.relation_head[1].out_features
    form = torch.cat([relation, one.relation.bias[:, None]], 1).view(one.relations, wide + 1, wide + 1)
    arcs, relations = torch.zeros(n, n + 1), torch.zeros(n, n + 1, one.relations)
    for k in range(n):
        for h in range(n + 1):
            a, b = seen(one.arc_dependent, nodes[k + 1]), seen(one.arc_head, nodes[h])
            arcs[k, h] = b @ arc @ a + one.arc.bias @ b
            a, b = seen(one.relation_dependent, nodes[k + 1]), seen(one.relation_head, nodes[h])
            a, b = (torch.cat([side, torch.ones(1)]) for side in (a, b))
            for r in range(one.relations):
                relations[k, h, r] = b @ form[r] @ a
    return arcs, relations


@pytest.mark.parametrize("root_loss", [True, False])
def test_a_parser_is_its_formulas(root_loss: bool) -> None:
    one = head("parse", root_loss=root_loss)
    assert isinstance(one, Parser)
    with torch.no_grad():
        for part in one.parameters():  # so that no head is out of the question, and so leaves no trace
            part.mul_(0.3)
    vectors, mask = rows([4, 2])
    heads = torch.tensor([[2, 0, -1, 1], [0, 1, -1, -1]])
    names = torch.tensor([[1, 0, 2, -1], [2, 1, 0, 0]])
    expected, roots = 0.0, []
    for row, n in enumerate([4, 2]):
        with torch.no_grad():
            arcs, relations = parser_by_hand(one, vectors[row, :n])
        if not root_loss:
            arcs[:, 0] = -torch.inf
        chances = arcs.log_softmax(-1)
        for word in range(n):
            above, name = int(heads[row, word]), int(names[row, word])
            if above > 0 or (above == 0 and root_loss):
                expected -= float(chances[word, above])
            if above >= 0 and name >= 0:
                expected -= float(relations[word, above].log_softmax(-1)[name])
        best, named = one.decode(vectors, mask)[row]
        assert is_tree(best) is None and len(best) == n
        assert named == [int(relations[word, above].argmax()) for word, above in enumerate(best)]
        chances[:, 0] = chances[:, 0] if root_loss else 0
        roots.append((chances, best))
    loss, count = one.loss(vectors, mask, {"heads": heads, "relations": names})
    assert loss.item() == pytest.approx(expected, rel=1e-4) and count == 5
    for chances, best in roots:  # no change of one word, or exchange of the root, is better
        own = sum(float(chances[word, above]) for word, above in enumerate(best))
        for other in np.ndindex(*(len(best) + 1 for _ in best)):
            if is_tree(other) is None:
                assert sum(float(chances[w, a]) for w, a in enumerate(other)) <= own + 1e-4


def test_a_parser_begins_with_all_heads_alike() -> None:
    one = make_model("parse", width=D, relations=3).head.eval()
    vectors, mask = rows([4, 2])
    gold = gold_for("parse", [4, 2])
    expected = 4 * math.log(5) + 2 * math.log(3) + 6 * math.log(3)
    assert one.loss(vectors, mask, gold)[0].item() == pytest.approx(expected, rel=1e-5)


def test_a_parser_drops_the_same_columns_in_all_words_of_a_row() -> None:
    torch.manual_seed(0)
    left = SharedDropout(0.25).train()(torch.ones(200, 3, 50))
    assert torch.equal(left, left[:, :1].expand_as(left)) and not torch.equal(left[0], left[1])
    assert set(left.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert (left == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)


def test_a_row_of_one_word_hangs_from_the_root() -> None:
    vectors, mask = rows([1, 1])
    for root_loss in (True, False):
        one = head("parse", root_loss=root_loss)
        assert [heads for heads, _ in one.decode(vectors, mask)] == [[0], [0]]
        loss, count = one.loss(vectors, mask, {"heads": torch.zeros(2, 1), "relations": torch.ones(2, 1)})
        assert math.isfinite(loss.item()) and count == 2


def test_spans_are_sought_where_they_may_be() -> None:
    one = head("span")
    assert isinstance(one, Spans)
    vectors, mask = rows([5, 3])
    allowed = torch.tensor([[False, False, True, True, True], [False, True, True, True, True]])
    gold = {"start": torch.tensor([2, 0]), "end": torch.tensor([4, 0]), "allowed": allowed}
    linear, expected = one.out[1], 0.0
    start, end = one.scores(vectors, mask, allowed)
    for row, (units, first, last) in enumerate([([0, 2, 3, 4], 2, 4), ([0, 1, 2], 0, 0)]):
        for side, (given_side, place) in enumerate([(start, first), (end, last)]):
            chances = log_softmax(
                [(linear.weight[side] @ vectors[row, k] + linear.bias[side]).item() for k in units]
            )
            expected -= chances[units.index(place)] / 2
            np.testing.assert_allclose(given_side[row, units], chances, rtol=1e-4, atol=1e-5)
            assert all(given_side[row, k] == -math.inf for k in set(range(5)) - set(units))
    loss, count = one.loss(vectors, mask, gold)
    assert loss.item() == pytest.approx(expected, rel=1e-5) and count == 2
    as_numbers = gold | {"allowed": allowed.long().masked_fill(~mask, -1)}
    assert one.loss(vectors, mask, as_numbers)[0].item() == loss.item()
    model_of = TaskModel(make_model("span", width=D).mix, make_model("span", width=D).body, one)
    found = model_of.decode(vectors[None], mask, allowed=allowed)
    assert [len(side) for row in found for side in row] == [5, 5, 3, 3]
    np.testing.assert_array_equal(found[1][1], end[1, :3])
    everywhere = one.scores(vectors, mask)[0]
    assert bool(torch.isfinite(everywhere[mask]).all()) and float(everywhere[0].exp().sum()) == pytest.approx(
        1
    )


@given(
    st.lists(st.tuples(st.integers(-4, 0), st.integers(-4, 0)), min_size=1, max_size=12),
    st.integers(1, 14),
    st.data(),
)
def test_no_span_is_better(sides: list[tuple[int, int]], longest: int, data: st.DataObject) -> None:
    start, end = np.array(sides, float).T
    closed = data.draw(st.lists(st.integers(0, len(start) - 1)))
    start[closed] = end[closed] = -np.inf
    every = [
        (start[i] + end[j], -i, -j) for i in range(len(start)) for j in range(i, min(len(start), i + longest))
    ]
    found = best_span(start, end, longest)
    assert found.score == max(every)[0]
    if math.isfinite(found.score):
        assert (found.score, -found.first, -found.last) == max(every)
    assert 0 <= found.first <= found.last < min(len(start), found.first + longest)


# ------------------------------------------------------------------------------------------------- bad inputs


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("classify", {"label": torch.tensor([3, 0])}),
        ("classify", {"label": torch.tensor([0, 1, 1])}),
        ("tag", {"tags": torch.full((2, 3), -2)}),
        ("tag", {"tags": torch.full((2, 3), 4)}),
        ("tag", {"tags": torch.zeros(2, 4)}),
        ("crf", {"tags": torch.full((2, 3), 4)}),
        ("parse", {"heads": torch.tensor([[0, 1, 2], [0, 3, -1]])}),  # its row has two words
        ("parse", {"relations": torch.full((2, 3), 3)}),
        ("span", {"start": torch.tensor([0, 2])}),  # beyond its row
        ("span", {"start": torch.tensor([2, 1]), "end": torch.tensor([1, 1])}),
        ("span", {"allowed": torch.zeros(2, 3, dtype=torch.bool), "end": torch.tensor([1, 1])}),
    ],
)
def test_labels_that_cannot_be_are_refused(kind: str, changed: Gold) -> None:
    vectors, mask = rows([3, 2])
    with pytest.raises(BadInput):
        head(kind).loss(vectors, mask, {**gold_for(kind, [3, 2]), **changed})


@pytest.mark.parametrize("kind", SIZES)
def test_missing_labels_are_named(kind: str) -> None:
    vectors, mask = rows([3, 2])
    with pytest.raises(BadInput, match="no gold"):
        head(kind).loss(vectors, mask, {})


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "classify"},
        {"kind": "parse", "labels": 3},
        {"kind": "guess"},
        {"kind": "tag", "labels": 0},
        {"kind": "tag", "labels": 2, "dropout": 1.5},
        {"kind": "parse", "relations": 2, "dropout": -0.1},
        {"kind": "span", "mix": "concat"},
    ],
)
def test_options_that_make_no_model_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        make_model(width=D, **options)


@pytest.mark.parametrize(
    ("start", "end", "longest"),
    [([], [], 3), ([0.0], [0.0, 1.0], 3), ([math.nan], [0.0], 3), ([math.inf], [0.0], 3)],
)
def test_scores_that_hold_no_span_are_refused(start: list[float], end: list[float], longest: int) -> None:
    with pytest.raises(BadInput):
        best_span(start, end, longest)
    with pytest.raises(BadSetting):
        best_span([0.0], [0.0], 0)


# ------------------------------------------------------------------------------------------- planted mappings


def learned(
    one: TaskModel, stacked: torch.Tensor, mask: torch.Tensor, gold: Gold, steps: int = 60
) -> list[Any]:
    one.train()
    steering = torch.optim.Adam(one.parameters(), lr=0.02)
    for _ in range(steps):
        loss, count = one.loss(stacked, mask, gold)
        steering.zero_grad()
        (loss / count).backward()
        steering.step()
    return one.decode(stacked, mask)


def planted(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    vectors, mask = rows([6, 4, 5, 1, 6, 3, 2, 6], seed, d=16)
    return torch.stack(
        [vectors, torch.randn(vectors.shape, generator=torch.Generator().manual_seed(9))]
    ), mask


@pytest.mark.parametrize("body", ["none", "bilstm", "transformer"])
@pytest.mark.parametrize("kind", ["classify", "tag", "crf"])
def test_labels_are_learned(kind: str, body: str) -> None:
    stacked, mask = planted()
    tags = stacked[0] @ torch.randn(16, 3, generator=torch.Generator().manual_seed(1))
    best = tags.argmax(-1)
    gold = {"label": best[:, 0]} if kind == "classify" else {"tags": best.masked_fill(~mask, -1)}
    one = make_model(kind, width=16, layers=2, labels=3, body=body, body_width=16, body_layers=1)
    found = learned(one, stacked, mask, gold)
    right = best[:, 0].tolist() if kind == "classify" else [row[:n] for row, n in zip(best.tolist(), mask.sum(1).tolist(), strict=True)]  # fmt: skip # noqa: E501
    assert found == right
    weights = one.mix.weights.softmax(0)
    assert body != "none" or weights[0] > weights[1]  # the other layer is noise


def test_a_crf_learns_what_units_alone_do_not_show() -> None:
    """All units but the first look alike; tags alternate."""
    vectors = torch.zeros(4, 6, 4)
    vectors[:, 0, 0] = torch.tensor([1.0, -1.0, 1.0, -1.0])
    tags = (torch.arange(6) + torch.tensor([[0], [1], [0], [1]])) % 2
    mask = torch.ones(4, 6, dtype=torch.bool)
    gold = {"tags": tags}
    assert learned(make_model("crf", width=4, labels=2), vectors[None], mask, gold, 150) == tags.tolist()
    assert learned(make_model("tag", width=4, labels=2), vectors[None], mask, gold, 150) != tags.tolist()


def test_trees_are_learned() -> None:
    stacked, mask = planted()
    draw, trees = np.random.default_rng(0), []
    for n in mask.sum(1).tolist():
        order, heads = draw.permutation(n) + 1, [0] * n
        for place, word in enumerate(order[1:].tolist(), 1):
            heads[word - 1] = int(order[draw.integers(place)])
        trees.append((heads, draw.integers(0, 3, n).tolist()))
    gold = {
        name: torch.tensor([row[side] + [-1] * (mask.shape[1] - len(row[side])) for row in trees])
        for side, name in enumerate(("heads", "relations"))
    }
    one = make_model("parse", width=16, layers=2, relations=3, arc=32, relation=16, dropout=0.0)
    assert learned(one, stacked, mask, gold) == trees


def test_answers_are_learned() -> None:
    stacked, mask = planted()
    lengths = mask.sum(1).tolist()
    start, end = torch.tensor([n // 2 for n in lengths]), torch.tensor([n - 1 for n in lengths])
    one = make_model("span", width=16, layers=2, body="bilstm", body_width=16)
    found = learned(one, stacked, mask, {"start": start, "end": end}, 100)
    assert [best_span(*row)[:2] for row in found] == list(zip(start.tolist(), end.tolist(), strict=True))
