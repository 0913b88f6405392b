"""Maps folded into modules, and tokenizers that put a prefix before every text."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import tiny_encoders

from calque.encoders.sentence_model import Affine, reframed, stages
from calque.types import Matrix, Scale, Shift, SpaceMap, Step, Unit

D = 5


def random_steps(rng: np.random.Generator) -> list[Step]:
    kinds: list[Step] = [
        Unit(), Shift(rng.normal(size=D)), Scale(rng.normal(size=D)), Matrix(rng.normal(size=(D, D))),
    ]  # fmt: skip
    return [kinds[i] for i in rng.integers(0, 4, rng.integers(0, 9))]


def test_stages_move_vectors_as_the_steps_do() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        steps, x = random_steps(rng), rng.normal(size=(7, D))
        wanted = SpaceMap(tuple(steps)).apply(x)
        found = stages(SpaceMap(tuple(steps)), D)
        for stage in found:
            x = x @ stage.matrix.T + stage.offset if isinstance(stage, Affine) else stage.apply(x)
        np.testing.assert_allclose(x, wanted, rtol=1e-9, atol=1e-9)
        linear = [isinstance(stage, Affine) for stage in found]
        assert not any(a and b for a, b in pairwise(linear)), "linear steps are one"


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert", "llama"])
def test_a_reframed_tokenizer_surrounds_texts_by_new_pieces(family: str) -> None:
    tokenizer: Any = tiny_encoders.build(family).tokenizer
    whole = tokenizer("cat dog")["input_ids"]
    bare = tokenizer("cat dog", add_special_tokens=False)["input_ids"]
    at = next(i for i in range(len(whole)) if whole[i : i + len(bare)] == bare)
    first, last = whole[:at], whole[at + len(bare) :]
    made, new = reframed(tokenizer, first, 2, last, "")
    assert made("cat dog")["input_ids"] == [*first, *new, *bare, *last]
    assert made("cat dog", add_special_tokens=False)["input_ids"] == bare
    assert min(new) >= len(tokenizer) and len(set(new)) == 2 and made.pad_token is not None
    assert tokenizer("cat dog")["input_ids"] == whole, "the one it was made of stays as it is"
    spaced, _ = reframed(tokenizer, first, 0, last, " ")
    again = tokenizer(" cat dog", add_special_tokens=False)["input_ids"]
    assert spaced("cat dog")["input_ids"] == [*first, *again, *last]
