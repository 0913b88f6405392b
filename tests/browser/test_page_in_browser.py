"""The page in a real Chromium: what a reader does with it, on a screen, on a telephone, on paper."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from chromium import NAMES, Browser, Page, installed

from calque.report.page import write_page
from run_folders import LABELS, every_measure, heatmap, histogram, measured, projection, scatter, write_run

OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
FOLDED = "document.querySelectorAll('details:not([open])').length"
POINT = ".planes svg.cloud [data-k]"


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


def rows(page: Page, table: str) -> list[list[str]]:
    """The cells of the first table that a selector finds."""
    body = f"[...document.querySelector('{table}').tBodies[0].rows]"
    cells = "[...row.cells].map((cell) => cell.textContent.replace('−', '-').trim())"
    return page.run(f"{body}.map((row) => {cells})")


def texts(page: Page, table: str, column: int) -> list[str]:
    return [row[column] for row in rows(page, table)]


def tip(page: Page) -> str | None:
    """What is told of what is pointed at; None where nothing is."""
    return page.run("(({hidden, innerText}) => hidden ? null : innerText)(document.getElementById('tip'))")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_loads_nothing_and_complains_of_nothing(browser: Browser, report: Path, scheme: str) -> None:
    with browser.page(report, color_scheme=scheme) as page:
        page.run(OPEN_ALL)
        page.hover(POINT)
        page.click("button.sort")
        assert page.complaints() == []
        assert set(page.requests()) <= {report.resolve().as_uri(), "data:,"}
        paper = page.run("getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", paper)[0]) < 80) == (scheme == "dark")


def test_the_content_policy_stops_the_network_and_scripts_of_others(browser: Browser, report: Path) -> None:
    """Not only does the page ask for nothing: it could not."""
    with browser.page(report) as page:
        assert page.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'stopped')") == "stopped"
        page.run(
            "document.body.append(Object.assign(document.createElement('script'), {text: 'caught = 1'}))"
        )
        page.run("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}))")
        page.run("document.body.insertAdjacentHTML('beforeend', '<p onclick=\"caught = 1\">')")
        page.run("document.body.lastElementChild.click()")
        assert " ".join(page.complaints()).count("Content Security Policy") >= 4
        assert page.run("window.caught") is None


# -------------------------------------------------------------------------------------------- sorting


def test_a_heading_sorts_rising_then_falling_then_as_it_was(browser: Browser, tmp_path: Path) -> None:
    """Figures as numbers, with signs and stars; what has none comes last whatever the way."""
    held = measured("word-retrieval", "accuracy", "contextual", lambda d, i: 0.2 + d * (i - 0.4) * (0.8 - d))
    held = [r for r in held if r.languages[1] == "de" and (r.layer != 3 or r.encoder == LABELS[0])]
    report = write_page(write_run(tmp_path / "run", "measure words", held))
    changes = sorted(r.value for r in held if r.baseline)
    assert changes[0] < 0 < changes[-1]
    with browser.page(report) as page:
        page.run(OPEN_ALL)
        for way, order in (("ascending", changes), ("descending", changes[::-1])):
            page.click("button.sort", 3)
            assert page.run("[...document.querySelectorAll('[aria-sort]')].map((one) => one.ariaSort)") == [
                way
            ]
            *given, missing = rows(page, ".sortable")
            shown = [float(row[3].split()[0].rstrip("*")) for row in given]
            assert shown == pytest.approx([100 * change for change in order], abs=0.051)
            assert missing[0] == "3"
        page.click("button.sort", 3)
        assert texts(page, ".sortable", 0) == [str(k) for k in range(13)]
        assert page.run("document.querySelector('[aria-sort]')") is None
        page.click("button.sort", 0)
        page.click("button.sort", 0)
        assert texts(page, ".sortable", 0) == [str(k) for k in reversed(range(13))]


def test_tables_sort_from_the_keyboard_and_words_by_letter(browser: Browser, report: Path) -> None:
    with browser.page(report) as page:
        page.run(OPEN_ALL)
        page.run("document.querySelector('.told button.sort').focus()")
        page.key("Enter")
        words = [
            word.casefold() for word in texts(page, ".told", 0) if word[0].isascii() and word[0].isalpha()
        ]
        assert words == sorted(words) and len(words) > 60
        assert page.run("document.querySelector('.told th').ariaSort") == "ascending"


def test_the_mean_of_languages_stays_below(browser: Browser, report: Path) -> None:
    with browser.page(report) as page:
        page.run(OPEN_ALL)
        for order in (["German", "Russian"], ["Russian", "German"]):
            page.click(".named.sortable button.sort", 0)
            assert texts(page, ".named.sortable", 0) == [*order, "mean"]


# ------------------------------------------------------------------------------------------- pointing


def test_a_point_shows_its_word_its_language_and_its_sentence(browser: Browser, report: Path) -> None:
    """What is shown is what the table of words says under the point's number, the word marked."""
    with browser.page(report) as page:
        for place in (0, 1, 37, 79, 80, 159):
            page.hover(POINT, place)
            row = page.run(
                f"""(() => {{ const point = document.querySelectorAll('{POINT}')[{place}];
                const rows = point.closest('svg').dataset.rows;
                const row = document.getElementById(rows + '-' + point.dataset.k);
                return [...row.cells].map((cell) => cell.textContent.trim()); }})()"""
            )
            told = " ".join(tip(page).split())
            assert row[1] in ("English", "German") and told.startswith(f"{row[0]} {row[1]} {row[-1]}")
            marked, translation = page.run("[...tip.querySelectorAll('mark')].map((one) => one.textContent)")
            assert marked == row[0] and translation in told.removeprefix(f"{row[0]} {row[1]} {row[-1]}")
        page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        assert tip(page) is None


def test_what_belongs_to_a_point_lights_up_in_every_encoder(browser: Browser, report: Path) -> None:
    with browser.page(report) as page:
        page.hover(POINT)
        lit = page.run(
            "[...document.querySelectorAll('.planes')].map((plane) => [...plane.querySelectorAll('svg')]"
            ".map((svg) => svg.querySelectorAll('.point.lit').length))"
        )
        assert lit == [[2, 2], [0, 0]], "the word and its translation"


def test_points_are_reached_from_the_keyboard(browser: Browser, report: Path) -> None:
    with browser.page(report) as page:
        stops = "document.querySelectorAll('.planes svg.cloud [tabindex=\"0\"]')"
        page.run(f"{stops}[0].focus()")
        word = tip(page)
        page.key("ArrowRight")
        other = tip(page)
        page.key("ArrowLeft")
        assert word and other and word != other and tip(page) == word
        page.key("Escape")
        assert tip(page) is None
        assert page.run(f"{stops}.length") == 4, "one stop a picture"


def test_a_touch_shows_a_point_and_one_elsewhere_hides_it(browser: Browser, report: Path) -> None:
    with browser.page(report, width=390, height=844) as page:
        page.tap(POINT, 3)
        assert "German" in tip(page)
        box = page.run(
            "(({left, right}) => [left, right])(document.getElementById('tip').getBoundingClientRect())"
        )
        assert 0 <= box[0] < box[1] <= 390
        page.tap("h1")
        assert tip(page) is None


def test_a_scatter_tells_both_figures(browser: Browser, report: Path) -> None:
    with browser.page(report) as page:
        page.hover(".scatter [data-k]", 4)
        for words in ("layer 4", "CKA: 0.4", "accuracy of sentence retrieval: 0.51"):
            assert words in tip(page)


def test_a_heat_map_tells_its_cells_in_full(browser: Browser, report: Path) -> None:
    values = heatmap()["values"]
    with browser.page(report) as page:
        for row, column in ((0, 0), (3, 7), (12, 11)):
            page.hover(".heat td[data-full]", row * 13 + column)
            value, where = filter(None, tip(page).split("\n"))
            assert value == f"{values[row][column]:.4g}"
            assert where == f"en layer {row}, de layer {column}"


# --------------------------------------------------------------------------------- telephone and paper


@pytest.mark.parametrize("width", [320, 390, 768])
def test_it_fits_narrow_screens(browser: Browser, report: Path, width: int) -> None:
    """Folded or not, nothing makes the page scroll sideways; wide tables scroll by themselves."""
    with browser.page(report, width=width, height=844) as page:
        for action in ("0", OPEN_ALL):
            page.run(action)
            assert (
                page.run("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)") <= width
            )
            apart = f"!one.closest('.scroll, pre, svg') && one.getBoundingClientRect().right > {width} + 1"
            assert page.run(f"[...document.querySelectorAll('main *')].filter((one) => {apart}).length") == 0


def test_what_a_figure_means_leaves_room_for_the_figure_on_a_phone(browser: Browser, report: Path) -> None:
    cell = "[...document.querySelectorAll('.glossed tbody td:nth-child(2)')]"
    with browser.page(report, width=390, height=844) as page:
        right = page.run(f"{cell}.map((one) => one.getBoundingClientRect().right)")
        assert right and max(right) <= 390


def test_many_layers_and_long_names_fit_as_well(browser: Browser, tmp_path: Path) -> None:
    name = "sentence-transformers/paraphrase-multilingual-mpnet-base-v2"
    folder = write_run(
        tmp_path / "run",
        "measure cka",
        [],
        heatmaps=[heatmap(layers=25, title=name * 2)],
        histograms=[histogram(axis=name)],
        projections=[projection(name, pairs=3)],
        scatters=[scatter(title=name * 3, x={"name": name}, y={"name": name})],
    )
    with browser.page(write_page(folder), width=390, height=844) as page:
        assert page.run("document.documentElement.scrollWidth") <= 390
        assert page.complaints() == []


def test_it_prints_with_everything_unfolded(browser: Browser, report: Path) -> None:
    with browser.page(write_page(report.parent / "projection")) as page:
        closed = page.run(FOLDED)
        page.run(f"addEventListener('beforeprint', () => {{ window.folded = {FOLDED}; }})")
        pages = re.findall(rb"/Type\s*/Page\b", page.pdf())
        assert closed >= 4 and page.run("window.folded") == 0 and len(pages) >= 4
        assert page.run(FOLDED) == closed, "and folded again"


def test_without_its_script_it_prints_unfolded_and_names_its_points(
    browser: Browser, report: Path, tmp_path: Path
) -> None:
    plain, text = tmp_path / "plain.html", report.read_text(encoding="utf-8")
    plain.write_text(re.sub(r"<script>.*?</script>", "", text, flags=re.S), encoding="utf-8")
    hidden = "[...document.querySelectorAll('details table')].filter((one) => !one.checkVisibility()).length"
    with browser.page(plain) as page:
        assert page.run("document.scripts.length") == 0 and page.run(hidden) > 5
        page.media("print")
        assert page.run(hidden) == 0
        named = "[...document.querySelectorAll('[data-k]')].every((one) => one.textContent)"
        assert page.run(named) and page.complaints() == []


def test_on_paper_nothing_is_wider_than_the_page(browser: Browser, report: Path) -> None:
    """A4, less usual margins."""
    with browser.page(report, width=718, height=1000) as page:
        page.media("print")
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert page.run("document.documentElement.scrollWidth") <= 718


# -------------------------------------------------------------------------------------- hostile strings

NASTY = "</script><script>caught = 1</script><img src=x onerror='caught = 1'>\"'`${caught}</style></svg>"


def hostile(folder: Path) -> Path:
    """A run with a hostile string wherever data can put one."""
    scores = measured("cka", "cka", "linear", lambda depth, rank: 0.5 + 0.1 * depth)
    results = [replace(r, encoder=NASTY, variant=NASTY) for r in scores if r.encoder == LABELS[0]]
    word = {"word": NASTY, "sentence": [NASTY, "b"], "index": 0, "group": NASTY}
    points = [{"x": k, "y": 0, "language": code, **word} for k, code in enumerate((NASTY, "de"))]
    dots = [{"x": k, "y": 0.2, "label": NASTY, "group": NASTY} for k in range(2)]
    side = {"name": NASTY, "ticks": [NASTY, "b"]}
    about = {"title": NASTY, "languages": [NASTY, "de"]}
    series = [{"encoder": NASTY, "kind": "linked", "counts": [1, 2]}]
    found = {"query": NASTY, "gold": NASTY, "retrieved": {NASTY: {"sentence": NASTY}}, "direction": NASTY}
    plane = {"layer": 8, "method": NASTY, "encoder": NASTY, "points": points}
    return write_run(
        folder,
        "measure cka",
        results,
        heatmaps=[heatmap(rows=side, columns=side, values=[[0, 1], [1, 0.5]]) | about],
        histograms=[histogram(axis=NASTY, edges=[0, 1, 2], series=series) | about],
        projections=[plane | about],
        scatters=[scatter(title=NASTY, x={"name": NASTY}, y={"name": NASTY}, points=dots)],
        sentences=[found],
    )


def test_hostile_strings_are_shown_and_not_run(browser: Browser, tmp_path: Path) -> None:
    """Neither when the page is read, nor when they are shown on pointing, nor when tables are sorted."""
    with browser.page(write_page(hostile(tmp_path / "<b>run"))) as page:
        page.run(OPEN_ALL)
        for pointed in (POINT, ".scatter [data-k]", ".heat td[data-full]"):
            page.hover(pointed)
            assert NASTY in tip(page)
        page.run("document.querySelectorAll('button.sort').forEach((one) => one.click())")
        assert page.run("window.caught") is None
        assert page.run("[document.scripts.length, document.images.length]") == [1, 0]
        assert page.complaints() == [] and len(set(page.requests())) <= 2
