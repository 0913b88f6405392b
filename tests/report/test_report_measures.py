"""Measures of every kind on one page, in words for a reader who has not met them."""

import html
import re
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from calque.report.collect import collect
from calque.report.page import MOST_BYTES, render, write_page
from calque.report.tables import rows, summary_table, verdict_line
from calque.report.tasks import TASKS, metric_of, task_of
from calque.report.verdict import measured as measures_of
from calque.types import Result
from run_folders import (
    LABELS,
    PAIRS,
    heatmap,
    histogram,
    measured,
    projection,
    scatter,
    write_run,
)

NEARER = "A linked pair lies nearer than an unrelated one with probability"


def words(text: str) -> str:
    """What a reader sees of a page, folded or not."""
    text = re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def headings(text: str) -> list[str]:
    return [words(found) for found in re.findall(r"<h[1-6].*?</h[1-6]>", text, re.S)]


@pytest.fixture(scope="session")
def page(measures: Path) -> str:
    return write_page(measures).read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------- metrics


@pytest.mark.parametrize(
    ("metric", "percent", "lower", "neutral"),
    [
        ("accuracy", True, False, False),
        ("p@1", True, False, False),
        ("p@10", True, False, False),
        ("auc", False, False, False),
        ("overlap", False, True, False),
        ("d-prime", False, False, False),
        ("top-10 share", False, False, True),
        ("top-100 share", False, False, True),
        ("anisotropy", False, True, False),
        ("cka", False, False, True),
        ("pearson", False, False, True),
        ("spearman", False, False, True),
        ("aer", True, True, False),
    ],
)
def test_how_a_metric_is_read(metric: str, percent: bool, lower: bool, neutral: bool) -> None:
    reading = metric_of(metric)
    assert (reading.percent, reading.lower, reading.neutral) == (percent, lower, neutral)


def test_every_task_says_what_was_asked_and_what_came_out() -> None:
    for task in TASKS.values():
        assert task.asked.endswith((".", "?")) and task.metrics
        assert task.counted or task.asked[0].isupper()
        assert task.alone.format(value="12%", figure="CKA").count("12%") == 1
    assert task_of("nli").name == "nli"


# --------------------------------------------------------------------------------- leading and beside


def test_one_figure_leads_and_the_others_stand_beside_it(measures: Path) -> None:
    def led(name: str) -> tuple[tuple[str, str], list[tuple[str, str]]]:
        (one,) = measures_of(collect(measures / name))
        named = [(held.whole.metric, held.whole.variant) for held in one.sets]
        return named[0], named[1:]

    assert led("lexicon") == (("p@1", "anchors"), [("p@5", "anchors"), ("p@10", "anchors")])
    assert led("cka") == (("cka", "linear"), [("cka", "debiased")])
    leading, beside = led("distances")
    assert leading == ("auc", "l2")
    assert beside[:4] == [
        ("overlap", "l2"),
        ("d-prime", "l2"),
        ("top-10 share", "l2"),
        ("top-100 share", "l2"),
    ]
    assert beside[4] == ("auc", "cosine") and ("anisotropy", "cosine") in beside


def test_variants_that_are_not_measured_at_once_are_measures_of_their_own(made, scored) -> None:
    base = scored(layers=(1,), bins=False)
    run = collect(made("run", base + [replace(r, variant="program") for r in base]))
    assert [one.leading.whole.variant for one in measures_of(run)] == ["contextual", "program"]


def test_an_encoder_without_a_figure_there_has_not_anothers(made) -> None:
    """As one of another depth, measured at its own last layer alone."""
    places = {"small": (4, 0.8), "large": (12, 0.3)}
    told = {"low": 0.1, "high": 0.9, "count": 9}
    results = [
        Result("cka", "cka", value, ("en", "de"), name, layer=layer, variant=variant, **told)
        for name, (layer, value) in places.items()
        for variant in ("linear", "debiased")
    ]
    line = " ".join(verdict_line(collect(made("run", results))).split())
    assert "large: CKA (debiased) 0.800" not in line and "small: CKA (debiased) 0.300" not in line


def test_the_verdict_line_adds_the_other_figures(measures: Path) -> None:
    line = verdict_line(collect(measures / "lexicon"))
    assert "Beside it at layer 8, centred rotation: P@5 67.8% → 75.3%, P@10 72.8% → 80.3%." in line
    assert "Helped in German and Russian." in " ".join(line.split())


def test_a_floor_is_not_told_as_what_came_after(made) -> None:
    def one(name: str, variant: str, value: float, **more) -> Result:
        told = dict(layer=6, variant=variant, low=value - 0.1, high=value + 0.1, count=9)
        return Result("cka", "cka", value, ("en", "de"), name, **told | more)

    figures = {"before": 0.8, "after": 0.9, "before floor": 0.5}
    results = [one(name, variant, v) for name, v in figures.items() for variant in ("linear", "debiased")]
    results += [one("after", v, 0.1, baseline="before", p=0.001, low=0.05) for v in ("linear", "debiased")]
    folder = made("run", results)
    assert "The baseline is before; compared with it is after." in words(render(collect(folder)))
    line = " ".join(verdict_line(collect(folder)).split())
    assert "Beside it at layer 6, after: CKA (debiased) 0.800 → 0.900." in line
    assert "Beside it at layer 6, before floor: CKA (debiased) 0.500." in line


def test_the_terminal_shows_the_leading_figure_by_language(measures: Path) -> None:
    table = summary_table(collect(measures / "lexicon"))
    assert str(table.title) == "lexicon induction: P@1 % at layer 8, where e5-small-q4 is best"
    assert table.row_count == 3


# -------------------------------------------------------------------------------- nothing was compared


@pytest.mark.parametrize(
    ("task", "metric", "words"),
    [
        ("word-retrieval", "accuracy", "50.0% of the words find their translation at layer 12"),
        ("lexicon", "p@1", "50.0% of the dictionary’s words find a translation first at layer 12"),
        ("sentence-retrieval", "accuracy", "50.0% of the sentences find their translation at layer 12"),
        ("cka", "cka", "CKA is 0.500 at its highest, layer 12"),
        ("distances", "auc", f"{NEARER} 0.500 at layer 12"),
        ("something-new", "f1", "F1 at its best: e5-small-q4 50.0% (layer 12)"),
    ],
)  # fmt: skip
def test_a_single_encoder_is_told_where_it_is_best(tmp_path: Path, task, metric, words: str) -> None:
    held = measured(task, metric, "", lambda depth, rank: 0.5 * depth, compared=False)
    held = [r for r in held if r.encoder == LABELS[0] and r.languages == PAIRS[0]]
    run = collect(write_run(tmp_path / "run", "measure", held))
    assert measures_of(run)[0].leading.headline == words
    assert "helped" not in verdict_line(run)


def test_ways_that_were_not_taken_together_are_named(tmp_path: Path) -> None:
    held = measured(
        "ambiguous-words", "accuracy", "", lambda depth, rank: 0.5, directions=("forward", "backward")
    )
    held = [r for r in held if r.languages == PAIRS[0] and r.layer == 8]
    run = collect(write_run(tmp_path / "run", "measure examples", held))
    assert "finding the right sense (English → German) went from 50.0%" in verdict_line(run)
    alone = [r for r in held if r.encoder == LABELS[0]]
    run = collect(write_run(tmp_path / "alone", "measure examples", alone))
    words = "50.0% of the occurrences find their translation at layer 8, English → German"
    assert measures_of(run)[0].leading.headline == words and "at layer 8." in verdict_line(run)


def test_several_languages_are_told_by_their_mean(tmp_path: Path) -> None:
    held = measured("cka", "cka", "linear", lambda depth, rank: 0.5 * depth + 0.1 * rank, compared=False)
    folder = write_run(tmp_path / "run", "measure cka", held)
    each = "e5-small-q4 0.500 (layer 12), centred rotation 0.600 (layer 12)"
    headline = f"CKA at its highest: {each}, on average over 2 languages"
    assert measures_of(collect(folder))[0].leading.headline == headline
    text = write_page(folder).read_text(encoding="utf-8")
    assert headings(text)[:3] == [
        "Shape of the spaces (CKA): English with German and Russian",
        headline,
        "Language by language",
    ]
    assert "difference" not in words(text) and "Nothing was compared" not in text.split("Markdown")[0]


def test_encoders_of_different_depth_in_several_languages(tmp_path: Path) -> None:
    """Each has its mean at its own last layer, where nothing can be compared."""
    held = measured(
        "sentence-retrieval", "accuracy", "mean", lambda depth, rank: 0.4 + 0.1 * rank, compared=False
    )
    held = [r for r in held if r.layer == (12 if r.encoder == LABELS[0] else 6)]
    folder = write_run(tmp_path / "run", "measure sentences", held)
    (one,) = measures_of(collect(folder))
    each = "e5-small-q4 40.0% (layer 12), centred rotation 50.0% (layer 6)"
    assert one.leading.headline == f"Accuracy at its best: {each}, on average over 2 languages"
    text = words(write_page(folder).read_text(encoding="utf-8"))
    assert "German 40.0" in text and "None" not in text


def test_a_figure_of_all_layers_together_is_a_row_of_its_own(tmp_path: Path) -> None:
    """It is no layer: neither best, nor last, nor in the curves."""
    held = measured("cka", "cka", "linear", lambda depth, rank: 0.5 + 0.1 * rank)
    held = [r for r in held if r.languages == PAIRS[0]]
    whole = [replace(r, layer=None) for r in held if r.layer == 5]
    run = collect(write_run(tmp_path / "run", "measure cka", held + whole))
    (panel,) = run.panels
    assert panel.layers == tuple(range(13)) and panel.best_layer(LABELS[0]) == 0
    assert [row.label for row in rows(panel)] == [*map(str, range(13)), "all"]
    assert measures_of(run)[0].leading.layer == 0


# --------------------------------------------------------------------------------------- the whole page


def test_the_overview_has_a_line_a_measure_in_their_order(page: str) -> None:
    table = page[page.index('<table class="overview">') : page.index("</table>")]
    lines = [
        [words(cell) for cell in re.findall(r"<td.*?</td>", row, re.S)] for row in table.split("<tr>")[2:]
    ]
    assert [line[0] for line in lines] == [
        "words", "lexicon", "sentences", "cka", "distances", "correlation", "projection",
    ]  # fmt: skip
    assert lines[1] == [
        "lexicon",
        "Lexicon induction, P@1 (anchors)",
        "Centred rotation helped in German and Russian centred rotation 52.8% → 60.3%",
    ]
    assert lines[2][2].startswith("Centred rotation: no evidence in German and Russian")
    assert lines[3][1] == "CKA" and lines[6] == [
        "projection",
        "Words on a plane: English with German and Russian",
        "",
    ]
    assert re.findall(r'<a href="(#run\d)"', table) == re.findall(r'<article id="(run\d)"', page) or [
        f"#{found}" for found in re.findall(r'<article id="(run\d)"', page)
    ] == re.findall(r'<a href="(#run\d)"', table)


def test_every_measure_has_its_parts(page: str) -> None:
    found = headings(page)
    for title in (
        "Word retrieval from English to German and Russian, and back",
        "Lexicon induction from English to German and Russian, and back",
        "Sentence retrieval from English to German and Russian, and back",
        "Shape of the spaces (CKA): English with German and Russian",
        "Layer against layer",
        "Distances of linked words: English with German and Russian",
        "Linked and unrelated words",
        "Words on a plane: English with German and Russian",
        "English–German, layer 8, t-SNE",
        "English–Russian, layer 8, t-SNE",
        "Pearson’s r is 0.930",
    ):
        assert found.count(title) == 1, title
    assert found.count("Two measures against each other: English with German") == 1
    assert found.count("CKA and sentence retrieval over the layers") == 1
    assert found.count("Other figures") == 3 and found.count("On your own bitext") == 1


def test_levels_of_headings_do_not_jump(page: str, measures: Path) -> None:
    for text in (
        page,
        *(write_page(folder).read_text("utf-8") for folder in measures.iterdir() if folder.is_dir()),
    ):
        levels = [int(level) for level in re.findall(r"<h(\d)", text)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(b <= a + 1 for a, b in pairwise(levels)), levels


def test_figures_are_explained_once(page: str) -> None:
    text = words(page)
    for about in (
        metric_of(name).about for name in ("auc", "overlap", "d-prime", "anisotropy", "top-10 share")
    ):
        assert about and text.count(about) == 1, about


def test_histograms_carry_the_figures_that_sum_them_up(page: str) -> None:
    assert "AUC 0.900, overlap 0.300" in page and "AUC 0.950, overlap 0.200" in page


def test_sentences_that_were_found_are_shown_whole(page: str) -> None:
    part = words(page[page.index("More examples") :])
    for line in ("Die Bank ist heute zu.", "The bank is closed today.", "The bench is free today."):
        assert line in part
    assert "German → English" in part


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    held = {
        "heatmaps": [heatmap(layers=2, title=f"map {k}") for k in range(40)],
        "histograms": [histogram(layer=k) for k in range(30)],
        "projections": [projection(pairs=200, layer=k) for k in range(20)],
    }
    text = words(write_page(write_run(tmp_path / "run", "measure", [], **held)).read_text(encoding="utf-8"))
    assert "24 of 40 heat maps are shown." in text and "18 more heat maps" in text
    assert re.search(r"1\d of 30 histograms are shown\.", text)
    assert "8 of 20 planes are shown." in text and "300 of 400 words are shown." in text


def test_maps_of_two_languages_come_before_encoders_in_one(tmp_path: Path) -> None:
    one = [heatmap(("de", "de"), layers=2, title=f"one {k}") for k in range(30)]
    two = [heatmap(layers=2, title=f"two {k}") for k in range(10)]
    text = words(
        write_page(write_run(tmp_path / "run", "measure", [], heatmaps=one + two)).read_text(encoding="utf-8")
    )
    shown = list(dict.fromkeys(re.findall(r"(?:one|two) \d+", text)))
    assert shown[:10] == [f"two {k}" for k in range(10)] and len(shown) == 24
    assert shown[10:] == sorted(shown[10:], key=lambda name: int(name[4:])) and shown[-1] == "one 29"


# ----------------------------------------------------------------------------------------- size and time


def crowded(root: Path) -> Path:
    """Runs that together have more than a page can hold."""
    long = [f"слово{k}" for k in range(60)]
    for number in range(4):
        planes = [projection(label, pairs=300, layer=k) for k in range(4) for label in LABELS]
        for plane in planes:
            for point in plane["points"]:
                point |= {"sentence": [*long, point["word"]], "index": 60}
        write_run(
            root / f"run{number}",
            "measure projection",
            measured("sentence-retrieval", "accuracy", "mean", lambda d, i: 0.3 + 0.4 * d + 0.1 * i),
            projections=planes,
            heatmaps=[heatmap(layers=25) for _ in range(40)],
            histograms=[histogram(layer=k) for k in range(25)],
        )
    return root


def test_a_page_that_would_be_too_large_shows_less(tmp_path: Path) -> None:
    text = render(collect(crowded(tmp_path)))
    assert 200_000 < len(text.encode()) < MOST_BYTES
    assert re.search(r"\d+ of 600 words are shown", words(text))


def test_ten_runs_are_drawn_in_two_seconds(measures: Path, tmp_path: Path) -> None:
    for number in range(2):
        for folder in (one for one in measures.iterdir() if one.is_dir()):
            if number == 0 or folder.name in ("words", "cka", "projection"):
                (tmp_path / f"{folder.name}{number}").symlink_to(folder)
    run = collect(tmp_path)
    assert len(run.parts) == 10
    began = time.process_time()
    render(run)
    assert time.process_time() - began < 2


def test_scatters_and_results_of_a_correlation_are_told_once(tmp_path: Path) -> None:
    about = Result("correlation", "pearson", 0.93, ("en", "de"), LABELS[0], None, "x ~ y", low=0.8, high=0.98)
    held = [about, replace(about, metric="spearman", value=0.9)]
    folder = write_run(tmp_path / "run", "measure correlation", held, scatters=[scatter()])
    text = write_page(folder).read_text(encoding="utf-8")
    title = "Two measures against each other: English with German"
    assert headings(text)[:3] == [title, "Pearson’s r is 0.930", scatter()["title"]]
    assert "Other figures" not in text
