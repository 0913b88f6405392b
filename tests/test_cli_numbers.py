"""Every numeric option of the verbs with odd numbers: it works, or ends with a message and exit code 2."""

import inspect
import random
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from calque.cli import app
from calque.errors import CalqueError

NUMBERS = (
    "-1",
    "0",
    "-0.5",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1" + "0" * 30,
    "-1" + "0" * 30,
    "9" * 5000,
    "²",
    "",
)
#: What stands for each verb's folders and files, so that it comes to its numbers.
CALLS = {
    "link": "{corpus}/text.tsv --languages en de --tokenised --linker hmm --out {out}",
    "align": "--encoder {bert} --pairs {corpus}/links/train --out {out}",
    "measure words": "--encoder {bert} --pairs {corpus}/links/test --include-seen --layers 0 --out {out}",
    "measure sentences": "--encoder {bert} --pairs {corpus}/links/test --layers 0 --out {out}",
    "measure cka": "--encoder {bert} --pairs {corpus}/links/test --layers 0 --out {out}",
    "measure distances": "--encoder {bert} --pairs {corpus}/links/test --layers 0 --out {out}",
    "measure projection": "--encoder {bert} --pairs {corpus}/links/test --method pca --out {out}",
    "measure examples": "--encoder {bert} --pairs {corpus}/links/test --out {out}",
    "measure lexicon": "--encoder {bert} --dictionary {corpus}/words.txt --languages en de --out {out}",
    "mine": "{corpus}/text.tsv {corpus}/text.tsv --languages en de --encoder {bert} --out {out}",
    "score": "{corpus}/text.tsv --languages en de --encoder {bert} --out {out}",
    "encode": "{corpus}/text.tsv --language en --encoder {bert} --out {out}",
    "world": "--count 20 --out {out}",
    "pretrain": "--world --sentences 50 --steps 1 --vocabulary 300 --width 16 --heads 2 --layers 1 "
    "--out {out}",
    "extend": "--encoder {bert} --text en={corpus}/text.tsv --pieces 5 --steps 1 --out {out}",
    "transfer": "ner --encoder {bert} --train en={corpus}/ner --test de={corpus}/ner --out {out}",
    "cache prune": "",
}  # fmt: skip
#: Beside an option of which a sound value would make a long run.
SHORT = {"align": "--method weak --steps 1"}


def options() -> Iterator[tuple[str, str]]:
    """Every numeric option of every verb, by the signatures that they are declared with."""
    groups = [("", app), *((f"{one.name} ", one.typer_instance) for one in app.registered_groups)]
    for group, held in groups:
        for command in held.registered_commands if held else ():
            assert command.callback is not None
            for name, one in inspect.signature(command.callback, eval_str=True).parameters.items():
                kind, told = (*get_args(one.annotation), None, None)[:2]
                if {int, float} & {kind, *get_args(kind)}:
                    own = [flag for flag in getattr(told, "param_decls", None) or () if flag.startswith("--")]
                    yield f"{group}{command.name}", own[0] if own else f"--{name.replace('_', '-')}"


#: A demonstration has no number but the seed, which it shares with all verbs, and takes long.
OPTIONS = sorted(one for one in options() if one[0] != "demo")


def refuse(verb: str, option: str, number: str, places: dict[str, Path], seed: int) -> None:
    out = places["corpus"] / f"out-{seed}"
    given = CALLS.get(verb, "").format(**places, out=out).split()
    told = CliRunner().invoke(
        app, [*verb.split(), *given, f"{option}={number}", *SHORT.get(verb, "").split()]
    )
    said = f"{verb} {option}={number}: {told.exception!r} {told.output[-300:]}"
    assert told.exit_code in (0, 2) or isinstance(told.exception, CalqueError | OSError), said
    assert told.exit_code == 0 or not out.exists(), said


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, corpus: Path, bert: Path) -> dict[str, Path]:
    (corpus / "ner").write_text("a\tO\nb\tB-X\n\n")
    return {"corpus": corpus, "bert": bert}


def test_there_are_such_options() -> None:
    assert len(OPTIONS) > 60 and {verb for verb, _ in OPTIONS} >= {"link", "align", "measure words", "world"}


@pytest.mark.parametrize("case", range(12))
def test_some_numbers_are_refused_in_words(case: int, places: dict[str, Path]) -> None:
    draw = random.Random(case)
    for number in draw.sample(range(1_000_000), 3):
        refuse(*draw.choice(OPTIONS), draw.choice(NUMBERS), places, number)


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "option"), OPTIONS)
def test_all_numbers_are_refused_in_words(verb: str, option: str, places: dict[str, Path]) -> None:
    for place, number in enumerate(NUMBERS):
        refuse(verb, option, number, places, place + 1000 * OPTIONS.index((verb, option)))
