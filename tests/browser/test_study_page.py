"""The page of a study in a real Chromium: on a screen, on a telephone, on paper."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import NAMES, Browser, Page, installed
from test_page_in_browser import FOLDED, NASTY, OPEN_ALL, tip

from calque.files import write_json
from calque.report.page import write_page
from study_folders import study

SIZE = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
EVERY = ("words", "sentences", "cka", "distances", "projection")
KINDS = ["whole", "measures", "transfer", "encoders"]


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
    """All that a study can have, with cells that failed; one of measures alone, of tasks, of encoders."""
    root = tmp_path_factory.mktemp("studies")
    gains = {"centring": 0.1, "rotation": -1.5, "contrastive, weak": 3.0}
    return {
        "whole": write_page(
            study(
                root / "whole",
                encoders=("e5-small-q4", "mini-mbert"),
                gains=gains,
                tasks={"ner": False, "nli": True, "pos": False},
                languages=("de", "fr", "ru", "hi", "zh", "ar"),
                measures=EVERY,
                broken=[("align", "mini-mbert centring")],
                paper="wu2020",
            )
        ),
        "measures": write_page(study(root / "measures", tasks={}, measures=EVERY)),
        "transfer": write_page(study(root / "transfer", measures=(), gains=gains)),
        "encoders": write_page(study(root / "encoders", encoders=("tiny", "mBERT", "XLM-R"), gains={})),
    }


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_they_load_nothing_and_complain_of_nothing(
    browser: Browser, pages: dict[str, Path], name: str, scheme: str
) -> None:
    with browser.page(pages[name], color_scheme=scheme) as page:
        page.run(OPEN_ALL)
        page.run("document.querySelectorAll('button.sort').forEach((one) => one.click())")
        assert page.complaints() == []
        assert set(page.requests()) <= {pages[name].resolve().as_uri(), "data:,"}
        paper = page.run("getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", paper)[0]) < 80) == (scheme == "dark")


# -------------------------------------------------------------------------------------------- sorting


def bodies(page: Page, label: str) -> list[list[list[str]]]:
    """The cells of every body of the first table that scrolls under a label."""
    found = f"document.querySelector('[aria-label^=\"{label}\"] table')"
    cells = "[...row.cells].map((cell) => cell.textContent.trim())"
    return page.run(f"[...{found}.tBodies].map((body) => [...body.rows].map((row) => {cells}))")


def test_methods_sort_within_their_encoder(browser: Browser, pages: dict[str, Path]) -> None:
    """The name of an encoder stays above its rows, and rows stay whole."""
    with browser.page(pages["whole"]) as page:
        before = bodies(page, "Every figure")
        assert [len(body) for body in before] == [5, 4], "the name, the baseline, and the methods"
        for way in (sorted, lambda held: sorted(held, reverse=True)):
            page.click("#table button.sort", 3)
            after = bodies(page, "Every figure")
            for old, new in zip(before, after, strict=True):
                assert old[0] == new[0] and sorted(old) == sorted(new)
                figures = [float(re.match(r"[\d.]+", row[3])[0]) for row in new[1:]]
                assert figures == way(figures) and len(set(figures)) > 2
        page.click("#table button.sort", 3)
        assert bodies(page, "Every figure") == before


def test_languages_sort_by_gain_and_the_correlation_stays_below(
    browser: Browser, pages: dict[str, Path]
) -> None:
    with browser.page(pages["whole"]) as page:
        page.click("#distance button.sort", 4)
        (rows,) = bodies(page, "Gains by distance")
        *moved, last = rows
        figures = [float(row[4].replace("−", "-").rstrip("*")) for row in moved]
        assert figures == sorted(figures) and last[0].startswith("rank correlation")


def test_costs_sort_by_time_and_not_by_letters(browser: Browser, pages: dict[str, Path]) -> None:
    with browser.page(pages["whole"]) as page:
        page.click("#cost button.sort", 1)
        cells = "[...document.querySelectorAll('#cost td[data-value]:nth-child(2)')]"
        found = page.run(f"{cells}.map((one) => +one.dataset.value)")
        assert found == sorted(found) and len(set(found)) > 2


# ------------------------------------------------------------------------------------------- pointing


def test_a_point_tells_its_method_language_and_both_gains(browser: Browser, pages: dict[str, Path]) -> None:
    with browser.page(pages["whole"]) as page:
        page.hover("#beside svg.cloud [data-k]", 3)
        told = tip(page)
        assert "Word retrieval: gain in points: " in told and "Task: gain in points: " in told
        assert any(
            language in told for language in ("German", "French", "Russian", "Hindi", "Chinese", "Arabic")
        )


# --------------------------------------------------------------------------------- telephone and paper


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("width", [320, 390, 768])
def test_they_fit_narrow_screens(browser: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    """Folded or not, nothing makes the page scroll sideways; wide tables scroll by themselves."""
    with browser.page(pages[name], width=width, height=844) as page:
        for action in ("0", OPEN_ALL):
            page.run(action)
            assert page.run(SIZE) <= width
            apart = f"!one.closest('.scroll, pre, svg') && one.getBoundingClientRect().right > {width} + 1"
            assert page.run(f"[...document.querySelectorAll('main *')].filter((one) => {apart}).length") == 0


def test_the_big_table_scrolls_and_names_stay_in_sight(browser: Browser, pages: dict[str, Path]) -> None:
    with browser.page(pages["whole"], width=390, height=844) as page:
        wide = page.run(
            """(() => { const box = document.querySelector('#table .scroll');
            box.scrollLeft = 300;
            const name = box.querySelector('tbody tr:nth-child(2) th').getBoundingClientRect();
            const head = box.querySelector('tbody .head span').getBoundingClientRect();
            return [box.scrollWidth > box.clientWidth, name.left, head.left]; })()"""
        )
        assert wide[0] and all(0 <= left < 60 for left in wide[1:])


def test_letters_of_a_table_do_not_lie_over_each_other(browser: Browser, pages: dict[str, Path]) -> None:
    """What is written in a cell stays in it, on a telephone and on paper."""
    met = """[...document.querySelectorAll('.matrix th, .matrix td')].filter((cell) => {
        const range = document.createRange(); range.selectNodeContents(cell);
        const box = cell.getBoundingClientRect(), text = range.getBoundingClientRect();
        return text.width && cell.colSpan === 1 && (text.right > box.right + 1 || text.left < box.left - 1);
        }).map((cell) => cell.textContent)"""
    for width, kind in ((390, ""), (1200, ""), (718, "print")):
        with browser.page(pages["whole"], width=width, height=1000) as page:
            page.media(kind)
            page.run(OPEN_ALL)
            assert page.run(met) == [], (width, kind)


@pytest.mark.parametrize("name", KINDS)
def test_they_print_unfolded_and_no_wider_than_paper(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    """A4, less usual margins. What scrolls on a screen is whole on paper."""
    with browser.page(pages[name], width=718, height=1000) as page:
        closed = page.run(FOLDED)
        page.media("print")
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert closed > 0 and page.run(FOLDED) == 0 and page.run(SIZE) <= 718
        cut = "(one) => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1"
        assert page.run(f"[...document.querySelectorAll('.scroll')].filter({cut}).length") == 0
        page.run("dispatchEvent(new Event('afterprint'))")
        assert page.run(FOLDED) == closed
        page.media("")
        assert len(re.findall(rb"/Type\s*/Page\b", page.pdf())) >= 2


def test_without_its_script_it_says_the_same(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    plain, text = tmp_path / "plain.html", pages["whole"].read_text(encoding="utf-8")
    plain.write_text(re.sub(r"<script>.*?</script>", "", text, flags=re.S), encoding="utf-8")
    read = "document.querySelector('main').textContent.replace(/\\s+/g, '')"
    with browser.page(plain) as page:
        said = page.run(read)
        assert page.run("document.scripts.length") == 0 and page.complaints() == []
    with browser.page(pages["whole"]) as page:
        assert page.run("document.querySelectorAll('button.sort').length") > 20
        titles = "[...document.querySelectorAll('svg.cloud title')].map((one) => one.textContent).join('')"
        assert len(said) >= len(page.run(read)) > 0.5 * len(said) and page.run(titles) == ""


# -------------------------------------------------------------------------------------- hostile strings


def test_hostile_strings_are_shown_and_not_run(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path / "run", broken=[("align", "centring")], measures=("words",))
    told = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    told["about"] = NASTY
    for cell in told["cells"]:
        cell |= {"title": NASTY, "error": NASTY} if cell["status"] != "done" else {"title": NASTY}
    write_json(folder / "study.json", told)
    nasty = json.dumps(NASTY)
    for path in (*folder.glob("cells/*/**/*.json*"), folder / "study.json"):
        path.write_text(path.read_text(encoding="utf-8").replace('"weak"', nasty), encoding="utf-8")
    (folder / "recipe.toml").write_text(NASTY, encoding="utf-8")
    with browser.page(write_page(folder)) as page:
        page.run(OPEN_ALL)
        page.run("document.querySelectorAll('button.sort').forEach((one) => one.click())")
        for part in ("h1", ".headline", ".missing", ".sentence", ".matrix", "#cost", "#cells", "#repeat pre"):
            found = page.run(f"[...document.querySelectorAll('{part}')].map((one) => one.textContent)")
            assert "caught = 1" in " ".join(found), part
        assert page.run("window.caught") is None
        assert page.run("[document.scripts.length, document.images.length]") == [1, 0]
        assert page.complaints() == [] and len(set(page.requests())) <= 2
