"""Pages of transfer and of comparisons in a real Chromium: on a screen, on a telephone, on paper."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import NAMES, Browser, Page, installed
from test_page_in_browser import FOLDED, NASTY, OPEN_ALL, rows, texts

from calque.report.page import write_page
from run_folders import FORTY, comparison, comparison_run, many_gains, portion, transfer_run

NOTE = "chosen on dev data of de: not zero-shot"
FIVE = {"centring": 0.02, "rotation": 0.0, "joint": -0.02, "contrastive, strong": 0.004, "continual": 0.03}
SCORES = {"en": [0.9, 0.8], "de": [0.7, 0.72], "hi": [0.5, 0.41], "ru": [0.6, 0.61], "zh": [0.4, 0.5]}
SIZE = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = installed()
    if program is None:
        pytest.skip(f"none of {', '.join(NAMES)} here; on Debian: apt-get install chromium")
    browser = Browser(program)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A single run, a comparison of two methods on three tasks, and one of five in forty languages."""
    root = tmp_path_factory.mktemp("transfer")
    tasks = many_gains(["de", "hi", "zh"], {"centring": 0.02, "joint": -0.01}, ("nli", "ner", "parsing"))
    large = comparison(many_gains(FORTY, FIVE), notes=[f"joint: {NOTE}"])
    return {
        "single": write_page(transfer_run(root / "single", SCORES, note=NOTE)),
        "tasks": write_page(comparison_run(root / "tasks", comparison(tasks))),
        "large": write_page(comparison_run(root / "large", large)),
    }


@pytest.mark.parametrize("name", ["single", "tasks", "large"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_they_load_nothing_and_complain_of_nothing(
    browser: Browser, pages: dict[str, Path], name: str, scheme: str
) -> None:
    with browser.page(pages[name], color_scheme=scheme) as page:
        page.run(OPEN_ALL)
        page.run("document.querySelectorAll('button.sort').forEach((one) => one.click())")
        assert page.complaints() == []
        assert set(page.requests()) <= {pages[name].resolve().as_uri(), "data:,"}


# -------------------------------------------------------------------------------------------- sorting


def numbers(page: Page, table: str, column: int) -> list[float]:
    """The first number in each cell of a column but the last row's, which is the mean."""
    found = [re.match(r"[<+]?(-?[\d.]+)", text.replace("−", "-")) for text in texts(page, table, column)[:-1]]
    return [float(one[1]) for one in found if one]


@pytest.mark.parametrize("column", [1, 2, 3, 5, 6])
def test_the_big_table_sorts_by_every_figure_and_the_mean_stays_below(
    browser: Browser, tmp_path: Path, column: int
) -> None:
    """Scores, differences with stars, p-values with their signs."""
    held = comparison(many_gains(FORTY[:12], {"centring": 0.01, "joint": -0.01}))
    with browser.page(write_page(comparison_run(tmp_path / "run", held))) as page:
        before = rows(page, "table.seeds")
        for order in (sorted, lambda held: sorted(held, reverse=True)):
            page.click("table.seeds button.sort", column)
            found = numbers(page, "table.seeds", column)
            assert len(found) == 12 and found == order(found) and len(set(found)) > 2
            assert texts(page, "table.seeds", 0)[-1].startswith("mean")
        page.click("table.seeds button.sort", column)
        assert rows(page, "table.seeds") == before


def test_rows_stay_whole_when_they_are_sorted(browser: Browser, pages: dict[str, Path]) -> None:
    with browser.page(pages["large"]) as page:
        before = {row[0]: row for row in rows(page, "table.seeds")}
        page.click("table.seeds button.sort", 4)
        after = rows(page, "table.seeds")
        assert len(after) == 41 and all(before[row[0]] == row for row in after)
        assert [row[0] for row in after] != list(before)


def test_languages_and_data_of_a_single_run_sort(browser: Browser, pages: dict[str, Path]) -> None:
    with browser.page(pages["single"]) as page:
        page.click("button.sort", 2)
        assert [name.split()[0] for name in texts(page, ".sortable", 0)] == [
            "Chinese", "Hindi", "Russian", "German", "English", "mean",
        ]  # fmt: skip
        page.click("[aria-label=Data] button.sort", 2)
        items = [row[2] for row in rows(page, "[aria-label=Data] table")]
        assert items == ["1,000"] * 6 + ["20,000"]


def test_the_head_and_the_mean_of_a_long_table_stay_in_sight(
    browser: Browser, pages: dict[str, Path]
) -> None:
    with browser.page(pages["large"]) as page:
        page.run("document.querySelector('.tall').scrollIntoView({block: 'center', behavior: 'instant'})")
        page.run("document.querySelector('.tall').scrollTop = 400")
        seen = page.run(
            """(() => { const box = document.querySelector('.tall').getBoundingClientRect();
            return ['.tall thead', '.tall .mean th'].map((one) => {
                const at = document.querySelector(one).getBoundingClientRect();
                return at.top >= box.top - 1 && at.bottom <= box.bottom + 1; }); })()"""
        )
        assert seen == [True, True]


# --------------------------------------------------------------------------------- telephone and paper


@pytest.mark.parametrize("name", ["single", "tasks", "large"])
@pytest.mark.parametrize("width", [320, 390, 768])
def test_they_fit_narrow_screens(browser: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    with browser.page(pages[name], width=width, height=844) as page:
        for action in ("0", OPEN_ALL):
            page.run(action)
            assert page.run(SIZE) <= width
            apart = f"!one.closest('.scroll, pre, svg') && one.getBoundingClientRect().right > {width} + 1"
            assert page.run(f"[...document.querySelectorAll('main *')].filter((one) => {apart}).length") == 0


@pytest.mark.parametrize("name", ["single", "tasks", "large"])
def test_labels_and_figures_of_pictures_do_not_meet(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    """On a telephone names end before the bars begin, and figures begin after they end."""
    with browser.page(pages[name], width=390, height=844) as page:
        met = page.run(
            """[...document.querySelectorAll('.diffs svg')].flatMap((svg) => {
            const lines = [...svg.querySelectorAll('.grid, .axis')];
            const ends = lines.map((one) => one.getBoundingClientRect().x);
            const [low, high] = [Math.min(...ends), Math.max(...ends)];
            return [...svg.querySelectorAll('text')].filter((one) => {
                const at = one.getBoundingClientRect();
                if (one.classList.contains('row')) return at.right > low;
                return one.classList.contains('figure-value') && at.left < high; }); })
            .map((one) => one.textContent)"""
        )
        assert met == []


@pytest.mark.parametrize("name", ["single", "tasks", "large"])
def test_they_print_unfolded_and_no_wider_than_paper(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    """A4, less usual margins. A table that scrolls on a screen is whole on paper."""
    with browser.page(pages[name], width=718, height=1000) as page:
        closed = page.run(FOLDED)
        page.media("print")
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert closed > 0 and page.run(FOLDED) == 0 and page.run(SIZE) <= 718
        cut = "(one) => one.scrollHeight > one.clientHeight + 1"
        assert page.run(f"[...document.querySelectorAll('.scroll')].filter({cut}).length") == 0
        page.run("dispatchEvent(new Event('afterprint'))")
        assert page.run(FOLDED) == closed
        page.media("")
        assert len(re.findall(rb"/Type\s*/Page\b", page.pdf())) >= 2


# -------------------------------------------------------------------------------------- hostile strings


def test_hostile_strings_are_shown_and_not_run(browser: Browser, tmp_path: Path) -> None:
    held = comparison(
        {NASTY: {NASTY: {NASTY: 0.02, "de": 0.1}, f"{NASTY} 2": {NASTY: 0.01, "de": 0.0}}},
        baseline=f"base {NASTY}",
        notes=[f"{NASTY}: {NASTY}"],
        test=NASTY,
        trained=[NASTY],
        **{"a seed varies": NASTY},
    )
    for one in (*held["rows"], *held["tasks"]):
        one |= {"metric": NASTY, "given": NASTY}
    comparison_run(tmp_path / "compared", held)
    data = [{**portion(NASTY), "file": NASTY, "dropped": {NASTY: 3}}]
    named = {"a seed varies": NASTY, "selected on": NASTY}
    scores = {NASTY: [0.4, 0.5], "de": [0.4, 0.5]}
    transfer_run(
        tmp_path / "run", scores, label=NASTY, note=NASTY, regime=NASTY, train=data, dev=data, **named
    )
    with browser.page(write_page(tmp_path)) as page:
        page.run(OPEN_ALL)
        page.run("document.querySelectorAll('button.sort').forEach((one) => one.click())")
        for part in (".headline", ".warning", ".seeds thead", ".facts", "[aria-label=Data]", ".diffs svg"):
            told = page.run(f"[...document.querySelectorAll('{part}')].map((one) => one.textContent)")
            assert "caught = 1" in " ".join(told), part
        assert page.run("window.caught") is None
        assert page.run("[document.scripts.length, document.images.length]") == [1, 0]
        assert page.complaints() == [] and len(set(page.requests())) <= 2
