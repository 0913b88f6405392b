"""Readers on inputs that are nearly right, algorithms on drawn ones: a few now, 100,000 with `make slow`.

`python tests/fuzz/run.py` runs more of them, and with coverage for a guide.
"""

import json

import pytest
from pieces import REAL
from run import fuzz, made
from targets import targets

from calque.documents import _DEEPEST, parse_json, parse_toml, shaped
from calque.errors import BadInput
from corners import CORNERS

#: Opening e5's own pieces takes longer than all else here.
QUICK = [name for name in targets() if not name.endswith(REAL) or name == "e5"]
#: Those that take whatever text there is, or packed text, in which nothing odd is to be seen.
TAKEN = ("names", "words")
MODELS = ("model-folder", "by-language", "task-model", "plain-task-model")
PACKED = ("compressed", "word2vec", "e5", "items", "static", "aligned", "pairs", "symmetrise", "trees")


@pytest.mark.parametrize("name", QUICK)
def test_inputs_are_read_or_refused_in_words(name: str) -> None:
    refused, _ = fuzz(name, 150)
    assert name in TAKEN or 0 < refused < 150 or name in ("compressed", "plan")


@pytest.mark.slow
@pytest.mark.parametrize("name", targets())
def test_a_hundred_thousand_inputs(name: str) -> None:
    """Fewer where transformers opens a whole model for each."""
    fuzz(name, 5_000 if name in MODELS else 100_000, seed=1)


def test_an_input_has_a_name() -> None:
    """The same numbers give the same bytes, and most inputs differ from the valid ones."""
    for name in ("nli", "spans-unigram", "trees"):
        inputs = [[made(name, 0, k) for k in range(50)] for _ in range(2)]
        assert inputs[0] == inputs[1]
        assert len({*inputs[0]} - {data for _, data in targets()[name].seeds}) > 40


@pytest.mark.parametrize("name", [name for name in targets() if name not in PACKED])
def test_every_corner_of_unicode_is_among_the_inputs(name: str) -> None:
    """As it stands, or as JSON writes it."""
    whole = b"".join(made(name, 1, k) for k in range(4000))
    for corner, held in CORNERS.items():
        forms = [(odd.encode("utf-8", "surrogatepass"), json.dumps(odd)[1:-1].encode()) for odd in held]
        assert any(form in whole for pair in forms for form in pair), corner


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5000, "a." * 200 + "b = 1", "a = 0x" + "f" * 5000, "a = 9" + "9" * 5000]
)
def test_toml_that_breaks_parsers(text: str) -> None:
    if "0x" in text:
        assert parse_toml(text, "x")["a"].bit_length() > 19_000  # settings refuse it, see test_recipe
        return
    with pytest.raises(BadInput, match=r"^x: not TOML"):
        parse_toml(text, "x")
    assert parse_toml("a." * (_DEEPEST - 1) + "b = 1", "x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 100_000, "nested too deep"),
        ("9" * 5000, "not JSON"),
        ('{"a": "\\ud800"}', "half a character"),
        ('{\n"a": }', "^x:2: not JSON"),
        ("", "not JSON"),
    ],
)
def test_json_that_breaks_parsers(text: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        parse_json(text, "x")


def test_a_misfit_names_its_file_once() -> None:
    with pytest.raises(BadInput, match=r"^a: broken: KeyError: 'b' \(again\)$"):
        with shaped("a", "again"):
            {}["b"]
    with pytest.raises(BadInput, match=r"^inner: told$"):
        with shaped("a", "again"):
            raise BadInput("told", where="inner")
