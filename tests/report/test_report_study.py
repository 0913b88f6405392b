"""The page of a study: every figure where it belongs, the verdict in words, what is missing by name."""

import csv
import html
import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from scipy.stats import spearmanr
from test_report_page import NASTY, Seen, page, safe

from calque.errors import BadInput
from calque.files import write_json
from calque.report.collect import collect
from calque.report.export import exported
from calque.report.page import write_page
from calque.report.published import matching
from calque.report.study.over_seeds import seed_measures
from calque.report.study.page import MOST_BYTES, render_study
from calque.report.study.reading import read_study
from calque.report.study.table import (
    MOST_COLUMNS,
    BigTable,
    Column,
    Head,
    RowBlock,
    Scores,
    SeedScore,
    StudyRow,
)
from calque.report.study.told import merged
from calque.report.tasks import Metric
from calque.stats.seeds import Spread
from calque.store import load_results, save_results
from calque.text.typology import distance
from calque.types import Result
from run_folders import make_run
from study_folders import METRICS, StudyMaker, study

NAMES = {"en": "English", "de": "German", "fr": "French", "ru": "Russian", "hi": "Hindi", "zh": "Chinese"}
TWO: dict[str, Any] = {
    "encoders": ("e5", "mini"),
    "gains": {"centring": 0.1, "rotation": -1.5, "weak": 3.0},
    "tasks": {"ner": False, "nli": True, "pos": False},
    "languages": ("hi", "de", "zh", "ru", "fr"),
    "broken": [("align", "mini weak")],
}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> StudyMaker:
    """Two encoders, three methods of which one failed on the second, three tasks, five languages."""
    made = StudyMaker(tmp_path_factory.mktemp("studies") / "two", **TWO)
    made.build()
    return made


@pytest.fixture(scope="module")
def shown(two: StudyMaker) -> tuple[str, Seen]:
    return page(two.folder)


def plain(cell: str) -> str:
    return " ".join(html.unescape(re.sub(r"<.*?>", " ", cell)).split())


def tables(text: str, label: str) -> list[tuple[list[str], list[list[str]]]]:
    """The last line of the head and the rows of every table that scrolls under a label."""
    found = []
    for region in re.findall(rf'aria-label="{label}[^"]*">\s*<table.*?</table>', text, re.S):
        head, *bodies = re.split(r"<tbody[^>]*>", region)
        rows = [row for body in bodies for row in re.findall(r"<tr.*?</tr>", body, re.S)]
        cells = [[plain(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)] for row in rows]
        heads = [plain(one) for one in re.findall(r"<th .*?</th>", head.split("<tr>")[-1], re.S)]
        found.append((heads, cells))
    return found


def percent(value: float, form: str = ".1f") -> str:
    return f"{100 * value:{form}}".replace("-", "−")


def comparisons(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("cells/*/artifacts/comparison.json"))]


# --------------------------------------------------------------------------------------- the big table


def test_every_figure_of_every_seed_is_in_its_cell(two: StudyMaker, shown: tuple[str, Seen]) -> None:
    """Means and deviations as planted, marks and stars as compared; nothing of what failed."""
    safe(*shown)
    records = {
        (held["baseline"], one["method"], one["task"], one["language"]): one
        for held in comparisons(two.folder)
        for one in (*held["rows"], *held["tasks"])
    }
    order = ["en", "fr", "de", "ru", "zh", "hi"]
    assert order == sorted(order, key=lambda code: (distance("en", code), NAMES[code]))
    parts = tables(shown[0], "Every figure")
    heads = [head for part, _ in parts for head in part]
    assert heads == (["English trained on", *(NAMES[code] for code in order[1:]), "mean of 5"]) * 3
    rows = [[cell for _, cells in parts for cell in cells[place][1:]] for place in range(len(parts[0][1]))]
    labels = [row[0] for row in parts[0][1]]
    assert labels == [
        "e5", "e5 baseline", "centring", "rotation", "weak", "mini", "mini baseline", "centring", "rotation",
    ]  # fmt: skip
    marks, group = set(), ""
    for label, cells in zip(labels, rows, strict=True):
        if not cells:
            group = label
            continue
        method = "" if "baseline" in label else f"{group} {label}"
        spots = [(task, code) for task in TWO["tasks"] for code in (*order, "mean")]
        for (task, code), cell in zip(spots, cells, strict=True):
            codes = order[1:] if code == "mean" else [code]
            values = [
                fmean(two.score(task, method or group, one, seed) for one in codes) for seed in two.seeds
            ]
            one = records.get((group, method, task, code))
            mark = {"better": "▲", "worse": "▼", "": ""}[one["mark"]] if one else ""
            star = "*" if one and one["holm"] < 0.05 else ""
            marks.add((mark, star))
            told = " ".join(filter(None, (percent(fmean(values)), mark, star, f"±{percent(stdev(values))}")))
            assert cell == told, (method, task, code)
    assert len(marks) >= 5, "all kinds of marks are there"


def test_a_table_is_cut_into_parts_that_hold_every_column_once() -> None:
    wide = [3, 50, 1, 20]
    heads = tuple(
        Head(f"t{k}", f"t{k}", "F1", Metric(), tuple(Column(f"{k}-{i}") for i in range(size)))
        for k, size in enumerate(wide)
    )
    cells = tuple(SeedScore(Spread(place / 100, None, 1)) for place in range(sum(wide)))
    lonely = StudyRow("lonely", 2, (cells[0], *[None] * (sum(wide) - 1)))
    parts = BigTable(heads, (RowBlock("e5", (StudyRow("a", 1, cells), lonely)),)).cut()
    assert max(part.columns for part in parts) <= MOST_COLUMNS
    told = [
        (column.language, cell.spread.mean)
        for part in parts
        for column, cell in zip(
            [one for head in part.heads for one in head.columns], part.blocks[0].rows[0].cells, strict=True
        )
        if cell
    ]
    names = [f"{k}-{i}" for k, size in enumerate(wide) for i in range(size)]
    assert told == [(name, place / 100) for place, name in enumerate(names)]
    assert [len(part.blocks[0].rows) for part in parts] == [2, *[1] * (len(parts) - 1)], (
        "empty rows are left out"
    )


def test_published_figures_stand_apart_and_say_so(tmp_path: Path) -> None:
    """In the table itself where a paper is named and few rows fit; otherwise folded below it."""
    named = study(tmp_path / "named", paper="cao2020", tasks={"nli": True}, languages=("de", "fr"))
    text, seen = page(named)
    safe(text, seen)
    (_, rows), *_ = tables(text, "Every figure")
    at = next(place for place, row in enumerate(rows) if row[0].startswith("Published: Cao et al. 2020"))
    cells = matching("cao2020", task="nli", language="de", metric="accuracy")
    printed = [row for row in rows[at + 1 :] if len(row) > 1]
    assert len(cells) > 3 and [row[3].split()[0] for row in printed] == [
        f"{cell.value:.1f}" for cell in cells
    ]
    assert {row[4] for row in printed} == {"–"}, "a paper’s mean is over other languages"
    assert "Published figures are as printed: other encoders" in seen.text and "XNLI" in seen.text
    text, seen = page(study(tmp_path / "all", tasks={"nli": True, "ner": None}))
    assert "Published" not in text[: text.index("What papers report of these tasks")].split("<main")[1]
    held = {cell.paper for code in ("de", "ru") for cell in matching(task="ner", language=code, metric="f1")}
    assert len(held) > 1 and "Wu &amp; Dredze 2020, table 3" in text
    unknown, _ = page(study(tmp_path / "none", tasks={"slots": None}, languages=("zh", "ja")))
    assert "What papers report" not in unknown


# ---------------------------------------------------------------------------------------- the verdict


def test_the_verdict_names_methods_tasks_and_languages(shown: tuple[str, Seen]) -> None:
    text, seen = shown
    headline = plain(re.search(r'<h2 class="headline.*?</h2>', text, re.S)[0])
    assert (
        "e5 weak helped on all 3 tasks" in headline and "no evidence either way for e5 centring" in headline
    )
    assert text.index("headline") < text.index("<table"), "the verdict comes first"
    told = [plain(one) for one in re.findall(r'<p class="sentence">.*?</p>', text, re.S)]
    titles = [plain(one) for one in re.findall(r"<dt.*?</dt>", text, re.S)]
    assert [title.split(" (")[0] for title in titles[:3]] == [
        "Named entities", "Natural language inference", "Parts of speech",
    ]  # fmt: skip
    assert titles[3:5] == ["Word retrieval accuracy", "Sentence retrieval accuracy"] and len(told) == 5
    assert re.match(r"e5 weak \(\+2\.\d points\) helped on average over 5 languages \(p", told[0])
    assert "e5 rotation (−1" in told[0] and "mini rotation (−1" in told[0] and " hurt " in told[0]
    assert told[0].endswith("no evidence either way for e5 centring and mini centring.")
    assert "at layer 8" in told[3] and re.search(r"e5 weak \(\+\d+\.\d points\)", told[3])
    assert "Over 3 seeds +" in seen.text


def test_few_methods_are_told_in_full(tmp_path: Path) -> None:
    folder = study(tmp_path / "run", tasks={"ner": False}, languages=("de", "zh"))
    (held,) = comparisons(folder)
    (mean,) = [one for one in held["tasks"] if one["method"] == "weak"]
    sentence = plain(re.search(r'<p class="sentence">.*?</p>', page(folder)[0], re.S)[0])
    ends = " to ".join(percent(mean[end], "+.1f") for end in ("low", "high"))
    size = percent(mean["difference"], "+.1f")
    assert sentence.startswith(
        f"weak helped: {size} points on average over 2 languages (95% interval {ends}, p"
    )
    assert sentence.endswith("helped in each of them); no evidence either way for centring.")


def test_cells_that_failed_or_were_left_out_are_named_right_below(
    two: StudyMaker, shown: tuple[str, Seen]
) -> None:
    text, seen = shown
    note = re.search(r'<div class="warning missing">.*?</div>', text, re.S)
    assert note and text.index('class="headline') < note.start() < text.index('class="findings"')
    told = plain(note[0])
    assert "3 failed and 9 left out" in told and "RuntimeError: out of memory" in told
    for name in (
        "align mini weak",
        "transfer ner: mini weak",
        "transfer nli: mini weak",
        "transfer pos: mini weak",
    ):
        assert f"{name} (seeds 0, 1 and 2)" in told
    assert told.count("RuntimeError") == 1 and told.count("needs mini weak") == 1, "a reason is told once"
    assert str(two.folder) not in text, "paths are told from the study’s folder"
    assert "<details" not in note[0].split("</ul>")[0], "they are seen without unfolding"
    assert "mini weak" not in plain(re.search(r'<dl class="findings">.*?</dl>', text, re.S)[0])
    assert "This study is not finished" not in seen.text


def test_encoders_beside_each_other_do_better_and_do_not_help(tmp_path: Path) -> None:
    text, seen = page(study(tmp_path / "run", encoders=("tiny", "mBERT", "XLM-R"), gains={}))
    safe(text, seen)
    assert "did better on both tasks" in seen.text and "Every encoder, task and language" in seen.text
    shown_above = text[: text.index('id="measures"')]
    assert not re.search(r"helped|hurt", plain(re.sub(r"<(style|svg).*?</\1>", "", shown_above, flags=re.S)))


def test_many_methods_are_counted_and_names_with_commas_are_quoted(tmp_path: Path) -> None:
    """A list of names must not run into the next."""
    many = {f"method {k}": 0.0 for k in range(8)}
    folder = study(tmp_path / "many", gains=many, tasks={"ner": None}, measures=())
    sentence = re.search(r'<p class="sentence">(.*?)</p>', page(folder)[0], re.S)
    assert sentence and sentence[1] == "No evidence either way for any of 8 methods."
    two_ = {"rotation, supervision words": 0.0, "rotation, supervision sentences": 0.0}
    _, seen = page(study(tmp_path / "two", gains=two_, tasks={"ner": None}, measures=()))
    assert "for “rotation, supervision words” and “rotation, supervision sentences”." in seen.text


# -------------------------------------------------------------------------- distance and kinds of tests


def test_gains_are_ordered_by_distance_and_correlated_with_it(
    two: StudyMaker, shown: tuple[str, Seen]
) -> None:
    parts = tables(shown[0], "Gains by distance over e5")
    held = {(one["task"], one["method"], one["language"]): one for one in comparisons(two.folder)[0]["rows"]}
    codes = ["fr", "de", "ru", "zh", "hi"]
    columns = [(task, f"e5 {method}") for task in TWO["tasks"] for method in TWO["gains"]]
    *rows, last = parts[0][1]
    assert [row[0].split()[0] for row in rows] == [NAMES[code] for code in codes]
    assert [float(row[1]) for row in rows] == [
        pytest.approx(distance("en", code), abs=0.005) for code in codes
    ]
    assert rows[1][0] == "German Germanic, Latin script, no dominant order"
    for place, (task, method) in enumerate(columns, 2):
        own = [held[task, method, code] for code in codes]
        for row, one in zip(rows, own, strict=True):
            told = percent(one["difference"], "+.1f").replace("+0.0", "0.0").replace("−0.0", "0.0")
            assert row[place] == told + (" *" if one["holm"] < 0.05 else ""), (task, method)
        rho = spearmanr([distance("en", code) for code in codes], [one["difference"] for one in own])[0]
        assert last[place] == f"{rho:.2f}".replace("-", "−")
    assert any("Word retrieval" in head for head in re.findall(r"Gains by distance over e5:[^\"]*", shown[0]))


def test_translated_tests_stand_beside_others(two: StudyMaker, shown: tuple[str, Seen]) -> None:
    ((heads, rows),) = tables(shown[0], "Gains by kind of test")
    assert heads[1:] == [
        "translated natural language inference",
        "not translated named entities, parts of speech",
    ]
    cells = {row[0]: row[1:] for row in rows}
    assert list(cells) == ["e5 centring", "e5 rotation", "e5 weak", "mini centring", "mini rotation"]
    rows_of = [one for held in comparisons(two.folder) for one in held["rows"] if one["language"] != "en"]
    for label, told in cells.items():
        for tasks, cell in ((("nli",), told[0]), (("ner", "pos"), told[1])):
            own = [one for one in rows_of if one["method"] == label and one["task"] in tasks]
            mean = percent(fmean(one["difference"] for one in own), "+.1f")
            assert cell.split()[0] == mean.replace("+0.0", "0.0").replace("−0.0", "0.0")
            sure = [one["difference"] > 0 for one in own if one["holm"] < 0.05]
            assert f"of {len(own)}" in cell and (f"better in {sum(sure)} " in cell or not sum(sure))


def test_tests_of_one_kind_are_not_compared(tmp_path: Path) -> None:
    _, seen = page(study(tmp_path / "one", tasks={"ner": True}, measures=()))
    assert "All tests are of one kind" in seen.text
    text, _ = page(study(tmp_path / "unknown", tasks={"ner": None}, measures=()))
    assert 'id="translated"' not in text
    _, seen = page(study(tmp_path / "both", tasks={"ner": None, "nli": True}, measures=()))
    assert "not told named entities" in seen.text


# ----------------------------------------------------------------------------- retrieval and transfer


def test_a_point_a_method_language_and_task(two: StudyMaker, shown: tuple[str, Seen]) -> None:
    """Gains of word retrieval over all seeds beside gains of the task, correlated by rank."""
    ((_, rows),) = tables(shown[0], "What word retrieval gains")
    transfer = {
        (one["method"], NAMES[one["language"]], one["task"]): 100 * one["difference"]
        for held in comparisons(two.folder)
        for one in held["rows"]
        if one["language"] != "en"
    }
    names = {"named entities": "ner", "natural language inference": "nli", "parts of speech": "pos"}
    found = {}
    for what, x, y, task in rows:
        method, language = what.split(", ")
        found[method, language, names[task]] = (float(x.replace("−", "-")), float(y.replace("−", "-")))
    assert found.keys() == transfer.keys() and len(found) == (3 + 2) * 5 * 3
    exact = {}
    for (method, language, task), (x, y) in found.items():
        code = next(code for code, name in NAMES.items() if name == language)
        both = [
            [two.retrieval("words", label, code, 8, seed) for seed in two.seeds]
            for label in (method.split()[0], method)
        ]
        gain = 100 * (fmean(both[1]) - fmean(both[0]))
        assert x == pytest.approx(gain, rel=1e-3, abs=1e-3)
        assert y == pytest.approx(transfer[method, language, task], rel=1e-3, abs=1e-3)
        exact[method, language, task] = (round(gain, 9), round(transfer[method, language, task], 9))
    for name, task in names.items():
        own = [point for (*_, one), point in exact.items() if one == task]
        rho = spearmanr(*zip(*own, strict=True))[0]
        assert f"{name.capitalize()}: Spearman’s ρ {rho:.3f}" in shown[1].text


def test_three_points_have_no_correlation(tmp_path: Path) -> None:
    """Gains of one method in three languages; of scores there are twice as many, with the baseline's."""
    kept: dict[str, Any] = {"gains": {"weak": 2.0}, "languages": ("de", "zh", "hi"), "tasks": {"ner": None}}
    text, _ = page(study(tmp_path / "run", **kept))
    gains, scores = text[text.index('id="beside"') :].split("The same as scores", 1)
    assert "What word retrieval gains, and what tasks gain" in gains and "Spearman’s" not in gains
    assert "over 6 points" in scores


# ------------------------------------------------------------------------------------------- measures


def test_measures_are_told_over_seeds(two: StudyMaker, shown: tuple[str, Seen]) -> None:
    parts = tables(shown[0], "Measures")
    cells = [cell for heads, rows in parts for cell in rows[4][1:]]
    assert parts[0][1][4][0] == "weak", "of e5"
    spots = [(measure, code) for measure in two.measures for code in ("fr", "de", "ru", "zh", "hi", "mean")]
    for (measure, code), cell in zip(spots, cells, strict=True):
        codes = two.languages if code == "mean" else [code]
        values = [
            fmean(two.retrieval(measure, "e5 weak", one, 8, seed) for one in codes) for seed in two.seeds
        ]
        figures = cell.replace("*", "").split()
        assert figures == [percent(fmean(values)), f"±{percent(stdev(values))}"], (measure, code)


def test_pictures_and_examples_are_of_the_first_seed_and_folded(tmp_path: Path) -> None:
    made = ("words", "sentences", "cka", "distances", "projection")
    text, seen = page(study(tmp_path / "run", measures=made, seeds=(3, 4)))
    safe(text, seen)
    folds = re.findall(r'<details class="fold measure">', text)
    assert len(folds) == 5 and "of seed 3, one of 2" in seen.text
    for words in (
        "Layer against layer",
        "Linked and unrelated words",
        "One word, several translations",
        "More examples",
    ):
        assert words in seen.text
    assert text.count('class="cloud"') == 3 + 2, "a plane an encoder, and two scatters"
    measures = seed_measures(read_study(tmp_path / "run"))
    assert {one.seeds for one in measures} == {(3, 4)}


def test_languages_that_were_measured_apart_are_tested_together(tmp_path: Path) -> None:
    """Their items lie in different folders."""
    apart = read_study(study(tmp_path / "apart", together=False, tasks={}))
    whole = read_study(study(tmp_path / "whole", tasks={}))
    (a, _), (b, _) = seed_measures(apart), seed_measures(whole)
    assert len(apart.measures[0].first.beside) == 3 and not whole.measures[0].first.beside
    verdicts = [{v.encoder: (v.word, v.best.p) for v in one.held.verdicts} for one in (a, b)]
    assert verdicts[0] == verdicts[1] and verdicts[0]["weak"][0] == "helped"
    assert a.score("weak") == b.score("weak")


# ------------------------------------------------------------------------- measures where seeds differ


def rewritten(folder: Path, seed: int, change: Callable[[Result], Result | None]) -> None:
    """Every result of the measures of a seed as something else, or gone."""
    for cell in json.loads((folder / "study.json").read_text())["cells"]:
        if cell["verb"].startswith("measure") and cell["axes"]["seed"] == str(seed):
            path = folder / "cells" / cell["key"] / "results.jsonl"
            save_results(path, [new for r in load_results(path) if (new := change(r)) is not None])


def failing(folder: Path, gone: Callable[[dict[str, Any]], bool]) -> Path:
    """The study with these cells failed."""
    told = json.loads((folder / "study.json").read_text())
    for cell in told["cells"]:
        if gone(cell):
            cell |= {"status": "failed", "error": "out of memory"}
    write_json(folder / "study.json", told)
    return folder


def measured_in(code: str, seed: int) -> Callable[[dict[str, Any]], bool]:
    return lambda cell: cell["title"].startswith(f"words {code},") and cell["axes"]["seed"] == str(seed)


#: One measure of one method, nothing else.
BARE: dict[str, Any] = {"tasks": {}, "gains": {"weak": 3.0}, "measures": ("words",)}


def test_a_verdict_is_about_the_layer_of_the_first_seed(tmp_path: Path) -> None:
    """Another seed of a pretrained baseline may be best elsewhere: there the method gains ten points."""
    folder = study(tmp_path / "run", **BARE, languages=("de",))
    for seed in (0, 1, 2):

        def planted(r: Result, seed: int = seed) -> Result:
            best = {4: 0.6, 8: 0.5} if seed == 0 else {4: 0.5, 8: 0.8}
            base, gain = best.get(r.layer or 0, 0.3), 0.1 if r.layer == 8 else 0.0
            if r.baseline is not None:
                return replace(r, value=gain, low=gain - 0.01, high=gain + 0.01, p=0.0002 if gain else 0.9)
            return replace(r, value=base + (gain if r.encoder == "weak" else 0.0), items=None)

        rewritten(folder, seed, planted)
    (one,) = seed_measures(read_study(folder))
    (verdict,) = one.held.verdicts
    assert verdict.best.layer == one.held.layer == 4 and verdict.word == "no evidence"
    change, score = one.change("weak"), one.score("weak")
    assert change is not None and score is not None
    assert verdict.best.change.value == change.mean == 0.0
    assert verdict.best.after.value == pytest.approx(score.mean)
    _, seen = page(folder)
    assert "no evidence" in seen.text.lower() and "10.0 points" not in seen.text


@pytest.mark.parametrize("lost", [0, 1])
def test_a_seed_without_a_language_is_in_no_mean_of_all(tmp_path: Path, lost: int) -> None:
    """Its other languages count; the first seed that is shown is one that has all."""
    folder = study(tmp_path / "run", **BARE, languages=("de", "zh"), together=False)
    kept = [seed for seed in (0, 1, 2) if seed != lost]
    held = read_study(failing(folder, measured_in("zh", lost)))
    (one,) = seed_measures(held)
    (verdict,) = one.held.verdicts
    change = one.change("weak")
    assert change is not None and change.seeds == 2 and verdict.best.seeds == 2
    assert verdict.best.change.value == pytest.approx(change.mean)
    assert one.measure.first is one.measure.runs[kept[0]]
    for code, seeds in (("de", 3), ("zh", 2)):
        contrast, single = one.contrast("weak", ("en", code)), one.change("weak", ("en", code))
        assert contrast is not None and single is not None and contrast.seeds == single.seeds == seeds
        assert contrast.change.value == pytest.approx(single.mean)
    assert f"tests of seed {kept[0]}, one of 3" in page(folder)[1].text


def test_a_group_that_lacks_a_language_has_no_mean_under_that_of_all(tmp_path: Path) -> None:
    folder = study(
        tmp_path / "run", **BARE, languages=("de", "zh"), encoders=("a", "b"), together=False
    )  # fmt: skip

    def of_a(cell: dict[str, Any]) -> bool:
        return cell["title"].startswith("words zh, a,")

    ((heads, rows),) = tables(page(failing(folder, of_a))[0], "Measures")
    assert heads == ["German", "Chinese", "mean of 2"]
    cells = [row[1:] for row in rows if len(row) > 1]
    assert [row[1:] == ["–", "–"] for row in cells] == [True, True, False, False]
    assert all("–" not in row for row in cells[2:])


def test_a_difference_to_another_encoder_is_not_one_to_the_baseline(tmp_path: Path) -> None:
    """Where the baseline of a seed failed, its measure compares with the encoder after it."""
    gains = {"centring": 0.0, "weak": 3.0}
    folder = study(tmp_path / "run", **{**BARE, "gains": gains}, languages=("de",))

    def beheaded(r: Result) -> Result | None:
        if "e5" in (r.encoder,) or (r.baseline and r.encoder == "centring"):
            return None
        return replace(r, baseline="centring", value=0.7) if r.baseline else r

    rewritten(folder, 0, beheaded)
    (one,) = seed_measures(read_study(folder))
    assert list(one.measure.runs) == [1, 2, 0], "the first is one that can be judged"
    by_name = {verdict.encoder: verdict for verdict in one.held.verdicts}
    change = one.change("weak")
    assert change is not None and by_name["weak"].best.seeds == change.seeds == 2
    assert by_name["weak"].best.change.value == pytest.approx(change.mean) != 0.7
    rows = csv.DictReader(io.StringIO(exported(read_study(folder), "csv"), newline=""))
    assert {row["baseline"] for row in rows} == {"", "e5"}


# ----------------------------------------------------------------------------------------------- cost


def test_the_cost_of_a_method_is_the_mean_over_its_seeds(tmp_path: Path) -> None:
    made = StudyMaker(tmp_path / "run", tasks={"ner": False}, measures=())
    made.build()
    text, seen = page(made.folder)
    ((heads, rows),) = tables(text, "Cost")
    assert [head.split()[0] for head in heads] == ["method", "align", "ner"]
    for row in rows:
        for verb, cell in zip(("align", "transfer"), row[1:], strict=True):
            own = [c for c in made.cells if c["verb"] == verb and c["axes"]["method"] == row[0]]
            if own:
                seconds = fmean(one["seconds"] for one in own)
                memory = fmean(one["peak_memory_mb"] for one in own)
                told = f"{memory:.0f} MB" if memory < 1024 else f"{memory / 1024:.1f} GB"
                assert cell == f"{int(seconds // 60)} min {seconds % 60:.0f} s {told}"
            else:
                assert cell == "–" and row[0] == "e5"
    assert f"all cells {int(sum(c['seconds'] for c in made.cells)) // 60} min" in seen.text


def test_everything_to_repeat_it_is_there(two: StudyMaker, shown: tuple[str, Seen]) -> None:
    text, seen = shown
    assert "calque study two/recipe.toml --out two" in seen.text and "Seeds: 0, 1, 2" in seen.text
    assert (
        html.escape((two.folder / "recipe.toml").read_text(), quote=True).replace("&quot;", "&#34;") in text
    )
    assert "torch 2.9.0" in " ".join(re.sub("packages, ", "", seen.text).split())
    ((_, rows),) = tables(text, "Cells")
    assert [row[2] for row in rows] == [one["status"] for one in two.cells]
    assert [row[-1] for row in rows] == [one["key"] for one in two.cells]


# ------------------------------------------------------------------------------------- kinds of studies


@pytest.mark.parametrize(
    ("kind", "there", "absent"),
    [
        ({"tasks": {}}, ["distance", "measures", "cost"], ["table", "languages", "translated", "beside"]),
        ({"measures": ()}, ["table", "languages", "distance", "translated", "cost"], ["measures", "beside"]),
        ({"gains": {"weak": 2.0}}, ["table", "languages", "distance", "beside", "measures"], []),
        ({"seeds": (0,)}, ["table", "languages", "distance", "beside", "measures"], []),
        ({"encoders": ("a", "b"), "gains": {}}, ["table", "languages", "distance", "beside", "measures"], []),
        ({"encoders": ("a",), "gains": {}}, ["table", "beside", "measures"], ["languages", "distance"]),
        ({"languages": ("de",)}, ["table", "languages", "measures"], ["distance"]),
        ({"languages": ("x-mine", "qaa")}, ["table", "languages", "distance"], []),
        ({"tasks": {}, "measures": ()}, ["repeat"], ["table", "measures"]),
        ({"tasks": {"ner": None, "news": True}, "kinds": {"news": "ner"}}, ["table", "languages"], []),
    ],
    ids=lambda one: "-".join(one) if isinstance(one, dict) else "",
)  # fmt: skip
def test_small_studies_show_what_they_have(
    tmp_path: Path, kind: dict[str, Any], there: list[str], absent: list[str]
) -> None:
    text, seen = page(study(tmp_path / "run", **kind))
    safe(text, seen)
    for name in there:
        assert f'id="{name}"' in text, name
    for name in absent:
        assert f'id="{name}"' not in text, name
    targets = {attributes["href"][1:] for tag, attributes in seen.elements if tag == "a"}
    ids = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert targets <= set(ids) and len(ids) == len(set(ids))
    words = seen.text.split()
    assert "None" not in words and "nan" not in words and "Undefined" not in seen.text
    if kind.get("seeds"):
        assert "Cannot tell" in seen.text and "±" not in plain(tables(text, "Every figure")[0][1][1][1])


def test_one_task_on_two_data_is_told_apart(tmp_path: Path) -> None:
    made = StudyMaker(tmp_path / "run", tasks={"ner": False, "news": None}, kinds={"news": "ner"})
    made.build()
    held = read_study(made.folder)
    assert held.kinds == {"ner": "ner", "news": "ner"} and len(held.comparisons) == 2
    whole = merged(held)
    assert whole is not None and whole.names == ("ner", "news")
    scores = Scores(held)
    for name in ("ner", "news"):
        figure = scores.figure(name, "weak", "de")
        assert figure is not None
        assert figure.spread.mean == pytest.approx(
            fmean(made.score(name, "weak", "de", s) for s in made.seeds)
        )
    _, seen = page(made.folder)
    assert "Named entities (NER): news" in seen.text and "weak helped on both tasks" in seen.text


def test_an_unfinished_study_shows_what_is_there(tmp_path: Path) -> None:
    folder = study(tmp_path / "run", finished=False)
    text, seen = page(folder)
    assert "This study is not finished" in seen.text and "weak helped on both tasks" in seen.text
    told = json.loads((folder / "study.json").read_text())
    for cell in told["cells"]:
        if cell["verb"] == "compare":
            cell["status"] = "waiting"
            (folder / "cells" / cell["key"] / "finished.json").unlink()
    write_json(folder / "study.json", told)
    (folder / "results.jsonl").unlink()
    text, seen = page(folder)
    safe(text, seen)
    assert "1 not run yet" in seen.text and "nothing was compared" in seen.text
    assert "F1 on average over 4 languages: e5 " in seen.text


def test_a_study_that_did_nothing_yet_has_a_page(tmp_path: Path) -> None:
    folder = study(tmp_path / "run")
    told = json.loads((folder / "study.json").read_text())
    told["cells"] = [{**one, "status": "left out", "error": "needs links"} for one in told["cells"]]
    write_json(folder / "study.json", told)
    text, seen = page(folder)
    safe(text, seen)
    assert "Nothing was measured yet" in seen.text and "32 left out" in seen.text


# ---------------------------------------------------------------------------------- size, safety, repeat


def test_a_study_of_two_hundred_cells_is_quick_and_small(tmp_path: Path) -> None:
    """Processor time, the better of two, so that a busy machine does not fail it."""
    made = StudyMaker(
        tmp_path / "run",
        encoders=("e5", "mbert"),
        gains={f"method {k}": k - 2.0 for k in range(5)},
        tasks={"ner": False, "nli": True, "pos": False, "parsing": False},
        languages=("de", "fr", "ru", "hi", "zh", "ar", "th", "ja"),
        measures=("words", "sentences", "cka", "distances", "projection"),
    )
    made.build()
    assert len(made.cells) >= 200
    write_page(study(tmp_path / "warm"))
    spent = []
    for _ in range(2):
        began = time.process_time()
        path = write_page(made.folder)
        spent.append(time.process_time() - began)
    assert min(spent) < 2.0
    assert path.stat().st_size < MOST_BYTES == 3_000_000
    safe(path.read_text(encoding="utf-8"), Seen(path.read_text(encoding="utf-8")))


def test_a_large_study_leaves_out_layers_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = study(tmp_path / "run", measures=("words", "sentences", "cka"))
    whole = render_study(read_study(folder))
    monkeypatch.setattr("calque.report.study.page.MOST_BYTES", int(len(whole.encode()) * 0.9))
    lean = render_study(read_study(folder))
    assert len(lean.encode()) < 0.9 * len(whole.encode())
    assert "are left out, so that the page can be sent" in lean and "are left out, so" not in whole
    assert lean.count("Every figure</h4>") == 0 < whole.count("Every figure</h4>")
    safe(lean, Seen(lean))


def test_the_page_is_the_same_every_time(two: StudyMaker, shown: tuple[str, Seen], tmp_path: Path) -> None:
    again = write_page(study(tmp_path / "two", **TWO)).read_text(encoding="utf-8")
    assert again == shown[0]


def test_all_text_is_escaped(tmp_path: Path) -> None:
    folder = study(
        tmp_path / "run", measures=("words", "projection"), paper="wu2020", broken=[("align", "centring")]
    )
    about = (folder / "study.json").read_text(encoding="utf-8")
    told = json.loads(about)
    told["about"] = NASTY
    for cell in told["cells"]:
        cell["title"] += NASTY
        cell["error"] = NASTY
    write_json(folder / "study.json", told)
    nasty = json.dumps(NASTY)[1:-1]
    for path in (
        *folder.glob("cells/*/**/*.json"),
        *folder.glob("cells/*/results.jsonl"),
        folder / "study.json",
    ):
        text = path.read_text(encoding="utf-8")
        path.write_text(
            re.sub(r'"weak"', lambda _: f'"{nasty}"', text).replace('"e5"', f'"e5 {nasty}"'), "utf-8"
        )
    for path in folder.glob("cells/*/recipe.toml"):
        path.write_text("level = 0.05\n", encoding="utf-8")
    (folder / "recipe.toml").write_text(NASTY, encoding="utf-8")
    write_json(folder / "environment.json", {NASTY: NASTY})
    text, seen = page(folder)
    safe(text, seen)
    assert "".join(seen.words).count(NASTY) > 50
    assert "Every method, task and language" in seen.text and "What it cost" in seen.text


@pytest.mark.parametrize("broken", ["groups", "cells", "seeds", "source"])
def test_a_broken_study_is_an_error_that_names_the_file(tmp_path: Path, broken: str) -> None:
    folder = study(tmp_path / "run", measures=(), tasks={})
    told = json.loads((folder / "study.json").read_text())
    for value in (None, [], "x"):
        if value == [] and broken in ("cells", "seeds", "source"):
            continue
        if value == "x" and broken == "source":
            continue
        write_json(
            folder / "study.json", {**told, broken: value} if value is not None else _without(told, broken)
        )
        with pytest.raises(BadInput, match=r"study\.json"):
            write_page(folder)


def test_an_endless_seed_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    folder = study(tmp_path / "run", measures=(), tasks={})
    told = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**told, "seeds": [float("inf")]}))
    with pytest.raises(BadInput, match=r"study\.json: does not fit"):
        write_page(folder)


def _without(told: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key != name}


def test_a_folder_of_runs_leaves_studies_to_their_own_pages(tmp_path: Path, scored: Any) -> None:
    study(tmp_path / "runs" / "study", measures=(), tasks={})
    with pytest.raises(BadInput, match=r"calque report .*study"):
        collect(tmp_path / "runs")
    make_run(tmp_path / "runs" / "words", scored(bins=False))
    assert [run.name for run in collect(tmp_path / "runs").runs] == ["words"]


def test_a_study_is_shown_without_torch(tmp_path: Path) -> None:
    folder = study(tmp_path / "run")
    line = (
        "import sys; from pathlib import Path; from calque.report.page import write_page;"
        f"write_page(Path({str(folder)!r}));"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", line], check=True)


def test_metrics_of_the_fixture_are_those_of_tasks() -> None:
    """The planted figures are compared by the figure that each task is judged by."""
    from calque.report.tasks import TASKS

    assert all(TASKS[f"transfer-{task}"].metrics[0] == metric for task, metric in METRICS.items())
