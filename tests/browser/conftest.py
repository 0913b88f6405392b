"""A browser for the whole session, and a page with every kind of picture."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import NAMES, Browser, installed

from calque.report.page import write_page
from run_folders import every_measure


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = installed()
    if program is None:
        pytest.skip(f"none of {', '.join(NAMES)} here; on Debian: apt-get install chromium")
    browser = Browser(program)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One page for a folder of runs, one a measure."""
    return write_page(every_measure(tmp_path_factory.mktemp("measures")))
