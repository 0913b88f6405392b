"""Run folders for the report's tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calque.files import write_text
from calque.types import Result
from run_folders import FIVE, every_measure, make_run, planted_results, scores, sense


@pytest.fixture(scope="session")
def measures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs, one a measure, with every kind of artifact."""
    return every_measure(tmp_path_factory.mktemp("measures"))


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """A run in five languages: centring helps in four of them, centred rotation hurts in all."""
    folder = tmp_path / "five"
    folder.mkdir()
    recipe = 'verb = "measure words"\nlabels = ["base", "centring", "centred rotation"]\n'
    make_run(folder, planted_results(folder, FIVE), examples=None)
    write_text(folder / "recipe.toml", recipe)
    return folder


@pytest.fixture
def sensed() -> Callable[..., dict[str, Any]]:
    return sense


@pytest.fixture
def drawn() -> Callable[..., list[Result]]:
    return planted_results


@pytest.fixture
def scored() -> Callable[..., list[Result]]:
    return scores


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    return lambda name, *args, **kwargs: make_run(tmp_path / name, *args, **kwargs)
