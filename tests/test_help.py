"""The help: its examples are typed as printed, its values and defaults are those of the recipes."""

import re
import shlex
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest
import typer

from calque.cli import CHOICES, app, main

Told = Callable[[str], str]
E5 = "e5-small-q4"


@pytest.fixture
def calque(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Type a command line; it must end with this exit code. Returns all it printed."""

    def run(command: str, code: int = 0) -> str:
        monkeypatch.setattr("sys.argv", shlex.split(command))
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        assert (stop.value.code or 0) == code, f"{command}\n{told.out}{told.err}"
        return told.out + told.err

    return run


def verbs(command: Any = None, path: tuple[str, ...] = ("calque",)) -> Iterator[tuple[str, ...]]:
    """Every command and group of commands, as one would type it."""
    command = command or typer.main.get_command(app)
    yield path
    for name in command.list_commands(None) if hasattr(command, "commands") else ():
        yield from verbs(command.commands[name], (*path, name))


VERBS = [" ".join(path) for path in verbs()]


def printed_examples(help_text: str) -> list[str]:
    """The commands below `Examples`, continued lines joined as a shell joins them."""
    _, _, end = help_text.partition("\n Examples")
    return [line.strip() for line in end.replace("\\\n", "").splitlines() if line.startswith("  calque ")]


def all_examples(calque: Told) -> list[str]:
    return list(dict.fromkeys(line for verb in VERBS for line in printed_examples(calque(f"{verb} --help"))))


@pytest.mark.parametrize("verb", VERBS)
def test_every_help_ends_with_examples_of_that_verb(
    verb: str, calque: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {}
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        told[width] = calque(f"{verb} --help")
        assert not re.search(r"<bool>|<list|<class|NoneType", told[width])
    found = printed_examples(told[80])
    assert found and all(f"{line} ".startswith(f"{verb} ") for line in found)
    assert printed_examples(told[60]) == printed_examples(told[120]) == found, "whole at any width"
    assert all(len(line) <= 80 for line in told[80].splitlines())


def test_the_examples_work_as_printed_in_an_empty_folder(
    calque: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in all_examples(calque):
        if E5 not in command and not command.startswith("calque demo"):
            calque(command)
    made = {folder.name for folder in tmp_path.iterdir()}
    assert made == {
        "world", "model", "apart", "extended",
        "links", "near", "aligned", "centred", "trained", "words", "cosine", "vectors",
        "retrieved", "margin", "mined", "scored", "alike", "likeness", "distances", "angles", "related",
        "picture", "senses", "examples", "everything", "lexicon", "anchors", "refined",
        "entities", "continual", "tags", "helped", "labelled.tsv", "exported", "shorter",
        "helped.tex", "everything.csv", "study",
    }  # fmt: skip
    assert (tmp_path / "words" / "report.html").is_file()


@pytest.mark.slow
def test_the_examples_with_a_real_encoder_and_the_demo_work_as_printed(
    calque: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, e5_directory: Path
) -> None:
    monkeypatch.setenv("CALQUE_CACHE", str(e5_directory.parents[1]))
    monkeypatch.chdir(tmp_path)
    commands = all_examples(calque)
    chosen = [line for line in commands if E5 in line or line.startswith("calque demo")]
    assert len(chosen) > 1
    for command in [commands[[line.split()[1] for line in commands].index("world")], *chosen]:
        calque(command)


# ---------------------------------------------------------------------------------- values and defaults


def recipes() -> dict[str, Any]:
    from calque.pipeline import (
        AlignRecipe,
        CkaRecipe,
        CompareRecipe,
        CorrelationRecipe,
        DistancesRecipe,
        EncodeRecipe,
        ExamplesRecipe,
        ExportRecipe,
        ExtendRecipe,
        FinetuneRecipe,
        LexiconRecipe,
        LinkRecipe,
        MineRecipe,
        PretrainRecipe,
        ProjectionRecipe,
        ScoreRecipe,
        SentencesRecipe,
        TransferRecipe,
        WholeRecipe,
        WordsRecipe,
        WorldRecipe,
    )

    kinds = (
        LinkRecipe, AlignRecipe, FinetuneRecipe, WordsRecipe, EncodeRecipe, WorldRecipe, PretrainRecipe,
        SentencesRecipe, MineRecipe, ScoreRecipe, CkaRecipe, DistancesRecipe, CorrelationRecipe,
        ExamplesRecipe, ProjectionRecipe, WholeRecipe, LexiconRecipe, TransferRecipe, CompareRecipe,
        ExtendRecipe, ExportRecipe,
    )  # fmt: skip
    return {kind.__name__: kind for kind in kinds}


def options(verb: str) -> dict[str, Any]:
    command: Any = typer.main.get_command(app)
    for word in verb.split():
        command = command.commands[word]
    return {param.name: param for param in command.params}


def values(annotation: Any) -> set[str] | None:
    """The values of an enum or a literal, perhaps optional; None for any other type."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {member.value for member in annotation}
    parts = [part for part in get_args(annotation) if part is not NoneType]
    return values(parts[0]) if len(parts) == 1 and get_origin(annotation) not in (list, tuple) else None


@pytest.mark.parametrize(
    "name",
    [
        *("Link", "Align", "Finetune", "Words", "Encode", "World", "Pretrain", "Sentences", "Mine", "Score"),
        *("Cka", "Distances", "Correlation", "Examples", "Projection", "Whole"),
        *("Lexicon", "Transfer", "Compare", "Extend", "Export"),
    ],
)
def test_options_are_the_recipe_with_its_values_and_defaults(name: str) -> None:
    recipe = recipes()[f"{name}Recipe"]
    given = options(recipe.verb)
    fields = recipe.model_fields
    assert set(fields) - {"inputs"} <= set(given), "every setting can be given"
    for name, field in fields.items():
        known = values(field.annotation)
        if known is not None and name != "power":
            # `align` is two families of methods, which share some options; a sentence has no last piece.
            fewer = recipe.verb == "align" or name == "pooling"
            assert known == set(CHOICES[name]) or (fewer and known < set(CHOICES[name]))
            assert all(value in given[name].help for value in known)
        default = given[name].default if name in given else None
        # Of seeds the command is told how many, the recipe which.
        if default is not None and name != "seeds" and not (given[name].required or field.is_required()):
            stated = getattr(field.default, "value", field.default)
            assert default == stated or float(default) == stated, name


def test_other_values_are_those_of_their_rooms() -> None:
    from calque.measure.breakdown import BREAKDOWNS
    from calque.pipeline.linking import LINKERS, SIMILAR
    from calque.recipe import Device

    assert CHOICES["linker"] == (*LINKERS, *SIMILAR)
    assert set(CHOICES["breakdowns"]) == set(BREAKDOWNS)
    assert set(CHOICES["device"]) == {device.value for device in Device}


# ------------------------------------------------------------------------------- completion and mistakes


@pytest.mark.parametrize(
    "typed, completed",
    [
        ("calque al", ["align"]),
        ("calque align --meth", ["--method"]),
        ("calque align --method r", ["rotation"]),
        ("calque align --supervision cls", ["cls", "cls+sep"]),
        ("calque link --linker fast", ["fast-align"]),
        ("calque measure words --similarity c", ["csls", "cosine"]),
        ("calque encode --pooling ", ["mean", "first", "last"]),
        ("calque measure words --by s", ["script", "sense", "seen"]),
    ],
)
def test_the_shell_completes_names_and_values(
    typed: str, completed: list[str], calque: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_CALQUE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    assert calque("calque").split() == completed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_calls_calque(
    shell: str, calque: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_CALQUE_COMPLETE", f"source_{shell}")
    assert f"_CALQUE_COMPLETE=complete_{shell}" in calque("calque")


@pytest.mark.parametrize(
    "typed, hint",
    [
        ("calque algin", "Did you mean 'align'"),
        ("calque measure wrods", "Did you mean 'words'"),
        ("calque align --metod rotation", "--method"),
        ("calque link a.tsv --langauges en de", "--languages"),
    ],
)
def test_a_mistyped_verb_or_option_is_answered_with_the_right_one(
    typed: str, hint: str, calque: Callable[..., str]
) -> None:
    assert hint in calque(typed, code=2)
