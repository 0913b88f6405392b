"""Every reader on inputs that are nearly right: a few of each now, 100,000 of each with `make slow`.

`python tests/fuzz/run.py` runs more of them, and with coverage for a guide.
"""

import random

import pytest
from mutation import mutate
from run import fuzz
from targets import targets

from calque.documents import _DEEPEST, parse_json, parse_toml, shaped
from calque.errors import BadInput


@pytest.mark.parametrize("name", targets())
def test_inputs_are_read_or_refused_in_words(name: str) -> None:
    refused, _ = fuzz(name, 150)
    assert name in ("names", "words") or 0 < refused < 150 or name in ("compressed", "plan")


@pytest.mark.slow
@pytest.mark.parametrize("name", targets())
def test_a_hundred_thousand_inputs(name: str) -> None:
    fuzz(name, 10_000 if name == "plan" else 100_000, seed=1)


def test_an_input_has_a_name() -> None:
    """The same numbers give the same bytes, and most inputs differ from the valid ones."""
    seeds = list(targets()["nli"].seeds)
    made = [[mutate(random.Random(f"nli 0 {k}"), seeds) for k in range(50)] for _ in range(2)]
    assert made[0] == made[1]
    assert len({*made[0]} - {data for _, data in seeds}) > 40


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
