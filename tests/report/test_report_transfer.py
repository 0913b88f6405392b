import html
import json
import math
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_report_page import NASTY, Seen, page, safe

from calque.errors import BadInput
from calque.files import write_json, write_text
from calque.report.collect import collect
from calque.report.figures import RowBar, row_bars
from calque.report.page import write_page
from calque.report.svg import Mark
from calque.report.tables import markdown, summary_table, verdict_line
from calque.report.transfer import Comparison, Contrasted, Setup, Trained, Training, trained
from calque.report.transfer_shown import comparison_view, headline
from calque.store import load_results, save_items, save_results
from calque.types import Items, Result
from run_folders import (
    FORTY,
    VARIES,
    comparison,
    comparison_run,
    contrast,
    judged,
    many_gains,
    portion,
    transfer_run,
)

SVG = "{http://www.w3.org/2000/svg}"
NOTE = "chosen on dev data of de: not zero-shot"
TWO = {"centring": 0.02, "joint": -0.02}
FIVE = {"centring": 0.02, "rotation": 0.0, "joint": -0.02, "contrastive, strong": 0.004, "continual": 0.03}


def compared(folder: Path, gains: Mapping[str, Any] | None = None, **changed: Any) -> Path:
    held = comparison(gains or many_gains(["de", "hi", "zh"], TWO), **changed)
    return comparison_run(folder / "compared", held)


def tables(text: str, kind: str = "seeds") -> list[list[list[str]]]:
    """Every table of a class as rows of cells, entities and elements taken out."""
    found = re.findall(rf'<table class="figures[^"]* {kind}">.*?<tbody>(.*?)</tbody>', text, re.S)
    rows = [re.findall(r"<tr.*?</tr>", body, re.S) for body in found]
    return [
        [[plain(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)] for row in own] for own in rows
    ]


def plain(cell: str) -> str:
    return " ".join(html.unescape(re.sub(r"<.*?>", " ", cell)).split())


def percent(value: float, form: str = ".1f") -> str:
    return f"{100 * value:{form}}".replace("-", "−")


# --------------------------------------------------------------------------------------- the big table


@pytest.mark.parametrize("methods", [{"centring": 0.009}, {"centring": 0.009, "joint": -0.009}])
def test_every_figure_of_a_comparison_is_in_its_cell(tmp_path: Path, methods: dict[str, float]) -> None:
    held = comparison(many_gains(["de", "hi", "zh"], methods))
    text, seen = page(comparison_run(tmp_path / "run", held))
    safe(text, seen)
    (table,) = tables(text)
    records = {(one["language"], one["method"]): one for one in (*held["rows"], *held["tasks"])}
    shown = {(f"{one['p']:.3f}" == f"{one['holm']:.3f}", one["holm"] < 0.05) for one in records.values()}
    assert {False, True} == {same for same, _ in shown} == {sure for _, sure in shown}, "all kinds are there"
    assert [row[0].split(" of")[0] for row in table] == ["German", "Hindi", "Chinese", "mean"]
    width = 6 if len(methods) == 1 else 5
    for row, code in zip(table, ("de", "hi", "zh", "mean"), strict=True):
        base = records[code, "centring"]
        assert row[1] == f"{percent(base['baseline mean'])} ±0.8" and len(row) == 2 + width * len(methods)
        for place, method in enumerate(methods):
            one, cells = records[code, method], row[2 + width * place :][:width]
            arrow = {"better": " ▲", "worse": " ▼", "": ""}[one["mark"]]
            star = " *" if one["holm"] < 0.05 else ""
            assert cells[0] == f"{percent(one['method mean'])} ±0.8{arrow}"
            assert cells[1] == percent(one["difference"], "+.1f") + star
            assert cells[2] == f"{percent(one['low'], '+.1f')} to {percent(one['high'], '+.1f')}"
            for shown, name in zip(cells[3:5], ("p", "holm"), strict=True):
                assert shown == (f"{one[name]:.3f}" if one[name] >= 0.001 else "<0.001")
            assert cells[5:] == ([percent(one["detectable"])] if width == 6 else [])


def test_forty_languages_and_five_methods_are_one_table_with_the_rest_folded(tmp_path: Path) -> None:
    held = comparison(many_gains(FORTY, FIVE))
    text, seen = page(comparison_run(tmp_path / "run", held))
    safe(text, seen)
    whole, *singles = tables(text)
    assert {len(row) for row in whole} == {7} and len(whole) == 41 and len(singles) == 5
    assert {len(row) for table in singles for row in table} == {8}
    for one in held["rows"]:
        row = whole[FORTY.index(one["language"])]
        cell = row[2 + list(FIVE).index(one["method"])]
        star = " *" if one["holm"] < 0.05 else ""
        ends = f"({percent(one['low'], '+.1f')} to {percent(one['high'], '+.1f')})".replace("+0.0", "0.0")
        assert cell.startswith(percent(one["method mean"]))
        assert f"{percent(one['difference'], '+.1f').replace('+0.0', '0.0')}{star} {ends}".replace(
            "−0.0", "0.0"
        ) in cell.replace("−0.0", "0.0")
    folded = text[text.index('class="more"') :]
    assert all(f"{method} in full" in folded for method in FIVE) and text.count("<svg xmlns") == 5
    assert text.count('class="scroll tall"') == 6 and len(text.encode()) < 400_000


def test_a_very_large_comparison_can_still_be_sent(tmp_path: Path) -> None:
    """Pictures and the tables of single methods give way; every p-value stays."""
    methods = {f"method {k}": 0.002 * k for k in range(9)}
    tasks = ("nli", "ner", "slots", "pos", "parsing", "qa")
    held = comparison(many_gains([*FORTY, "en"], methods, tasks))
    text, seen = page(comparison_run(tmp_path / "run", held))
    assert len(text.encode()) < 2_000_000 and "<svg xmlns" not in text
    assert "2,214 comparisons, pictures and the tables of single methods are left out" in seen.text
    assert len(tables(text)) == 6 + 1 + 9, "a table a task, and one of tasks with one a method"
    written = html.unescape(text[text.index("The figures as Markdown") :])
    assert len(re.findall(r"^\| .*\| method \d \|", written, re.M)) == len(held["rows"]) + len(held["tasks"])


def test_a_method_that_was_not_run_on_a_task_leaves_its_cells_empty(tmp_path: Path) -> None:
    gains = many_gains(["de", "hi"], TWO, ("ner", "nli"))
    del gains["nli"]["joint"]
    text, seen = page(compared(tmp_path, gains))
    safe(text, seen)
    overview, ner, nli = tables(text)
    assert [row[0] for row in overview] == ["Named entities F1", "Natural language inference accuracy"]
    assert overview[1][-1] == "–" and len(overview[1]) == 2 + 5 + 1
    assert {len(row) for row in ner} == {12} and {len(row) for row in nli} == {8}
    assert "None" not in seen.text


def test_languages_of_the_training_data_are_marked_where_they_are_told(tmp_path: Path) -> None:
    gains = many_gains(["en", "de", "hi"], {"centring": 0.01})
    whole = comparison(gains)
    assert "mean of 3 languages" in page(comparison_run(tmp_path / "all", whole))[1].text
    whole["tasks"][0]["items"] = 2000
    _, seen = page(comparison_run(tmp_path / "some", {**whole, "trained": ["en"]}))
    assert "English trained on" in seen.text and "mean of languages not trained on" in seen.text
    assert "learned the task in English" in seen.text
    by_run = {"mBERT": ["en"], "centring": ["de", "hi"]}
    _, seen = page(comparison_run(tmp_path / "apart", {**whole, "trained by run": by_run}))
    assert "learned the task (mBERT in English; centring in German and Hindi) and was tested" in seen.text
    whole["tasks"][0] |= {"items": 1000, "languages": ["hi"]}
    told = {**whole, "trained": {"ner": ["en"], "pos": ["de"]}}
    table = tables(page(comparison_run(tmp_path / "one", told))[0])[0]
    assert [row[0] for row in table] == ["English trained on", "German", "Hindi", "mean of Hindi"]


# ------------------------------------------------------------------------------------------ the verdict


def record(method: str, gain: float, **changed: Any) -> dict[str, Any]:
    return contrast("mean", method, gain, **changed)


ONE_SEED = {"seeds": [1, 1], "baseline std": None, "method std": None, "given": "these seeds", "mark": ""}
HEADLINES = [
    ([record("a", 0.02)], "A helped: +2.0 points"),
    ([record("a", -0.02)], "A hurt: −2.0 points"),
    ([record("a", 0.004)], "No evidence that a helped or hurt"),
    ([record("a", 0.2, **ONE_SEED)], "Cannot tell whether a helped"),
    ([record("a", 0.02, given="these seeds")], "A helped: +2.0 points, given these seeds only"),
    (
        [record("a", 0.02), record("b", -0.03), record("c", 0.0), record("d", 0.001)],
        "A (+2.0 points) helped; b (−3.0 points) hurt; no evidence that c or d helped or hurt",
    ),
    (
        [record("a", 0.02), record("b", 0.2, **ONE_SEED)],
        "A (+2.0 points) helped; cannot tell whether b helped",
    ),
    (
        [record("a", gain, task=task) for task, gain in (("ner", 0.02), ("nli", 0.001), ("pos", -0.02))],
        "A helped on named entities (1 of 3 tasks) and hurt on parts of speech (1 of 3 tasks)",
    ),
    (
        [record(m, g, task=t) for m, g in (("a", 0.02), ("b", 0.001)) for t in ("ner", "nli")],
        "A helped on both tasks; no evidence either way for b",
    ),
    (
        [record(m, g, task=t) for m, g in zip("abc", (0.02, -0.02, 0), strict=True) for t in ("ner", "qa")]
        + [record("d", 0.02, task="ner"), record("d", 0.0, task="qa")],
        "A helped on both tasks; b hurt on both tasks; d helped on 1 of 2 tasks; "
        "no evidence either way for c",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("records", "words"), HEADLINES)
def test_the_verdict_comes_first_in_words(tmp_path: Path, records: list[dict[str, Any]], words: str) -> None:
    rows = [{**one, "language": "de"} for one in records]
    folder = compared(tmp_path, rows=judged(rows), tasks=judged(records))
    text, seen = page(folder)
    safe(text, seen)
    first = re.search(r"<h2.*?</h2>", text, re.S)[0]
    assert plain(first) == words and text.index(first) < text.index("<svg")
    for one in judged(records):
        assert one["finding"] in seen.text[seen.text.index(words) :]


def test_a_card_tells_interval_test_seeds_and_what_could_have_been_seen(tmp_path: Path) -> None:
    text, _ = page(compared(tmp_path, many_gains(["de", "hi"], {"centring": 0.02}, spread=0.0)))
    card = plain(re.search(r'<li class="card.*?</li>', text, re.S)[0])
    assert card == (
        "centring helped +2.0 points F1 47.0% ± 0.8 → 49.0% ± 0.8 "
        "95% interval +1.2 to +2.8; p < 0.001. 5 seeds, 2,000 test items. "
        "Smallest true difference that would be seen: 1.1 points."
    )


def test_of_several_tasks_each_has_its_finding_and_all_have_one(tmp_path: Path) -> None:
    gains = many_gains(["de", "hi"], {"centring": 0.02}, ("ner", "pos"), spread=0.0)
    gains["pos"]["centring"] = {"de": 0.001, "hi": 0.002}
    text, _ = page(compared(tmp_path, gains))
    card = plain(re.search(r'<li class="card.*?</li>\s*</ul>\s*</li>', text, re.S)[0])
    assert "Overall: helped on named entities; no evidence either way on parts of speech" in card
    assert "Named entities: helped +2.0 points 95% interval +1.2 to +2.8" in card
    assert "Parts of speech: no evidence either way +0.1 points" in card or "+0.2 points" in card
    assert card.count("Smallest true difference that would be seen: 1.1 points") == 2


@pytest.mark.parametrize(
    ("test", "given", "words"),
    [
        ("item-t", "these seeds", "conditional on these seeds"),
        ("randomisation", "these seeds", "conditional on these seeds"),
        ("seed-t", "these items", "conditional on these test items"),
        ("seeds-and-items", "", ""),
    ],
)
def test_conditional_tests_say_so_wherever_their_p_stands(tmp_path: Path, test, given, words) -> None:
    held = comparison(many_gains(["de", "hi"], {"centring": 0.03}, spread=0.0), test=test)
    for one in (*held["rows"], *held["tasks"]):
        one["given"] = given
    text, seen = page(comparison_run(tmp_path / "run", held))
    assert ("given" in seen.text.split("How it was made")[0]) == bool(given)
    if given:
        assert words in seen.text and f"helped, given {given}" in seen.text
        heads = [plain(head) for head in re.findall(r"<th scope=\"col\".*?</th>", text, re.S)]
        assert f"p given {given}" in heads and f"p, Holm given {given}" in heads
        assert f"Every p and interval here is given {given}: it says nothing of others." in seen.text


def test_what_a_seed_varies_and_paired_seeds_are_said(tmp_path: Path) -> None:
    folder = compared(tmp_path)
    assert f"a seed varies {VARIES}" in page(folder)[1].text
    assert "share their luck" not in page(folder)[1].text and "*: p < 0.05 after Holm" in page(folder)[1].text
    write_text(folder / "recipe.toml", 'verb = "compare"\npaired_seeds = true\nlevel = 0.01\n')
    _, seen = page(folder)
    assert "Runs of one seed are taken to share their luck" in seen.text
    assert "*: p < 0.01 after Holm" in seen.text


# -------------------------------------------------------------------------------------------- the notes


def around(text: str) -> list[str]:
    """Every table with what stands between it and the next."""
    starts = [found.start() for found in re.finditer(r'<div class="scroll', text)]
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


@pytest.mark.parametrize("methods", [TWO, FIVE])
def test_a_note_stands_with_every_table_that_shows_its_run(tmp_path: Path, methods: dict[str, float]) -> None:
    gains = many_gains(["de", "hi"], methods, ("ner", "nli"))
    text, _ = page(compared(tmp_path, gains, notes=[f"joint: {NOTE}"]))
    parts = [part for part in around(text) if "seeds" in part[:300]]
    assert len(parts) == (3 if methods is TWO else 3 * 6)
    for part in parts:
        shows = "joint" in part[: part.index("</thead>")]
        assert (f"† joint: {NOTE}" in plain(part)) == shows
        assert ("joint<sup>†</sup>" in part) == shows
    assert f'<p class="warning">joint: {NOTE}</p>' in text[: text.index("<svg")], "and with the verdict"


def test_a_note_of_the_baseline_and_one_of_nobody_stand_everywhere(tmp_path: Path) -> None:
    notes = [f"mBERT: {NOTE}", "read with care"]
    text, _ = page(compared(tmp_path, many_gains(["de"], FIVE), notes=notes))
    for part in (part for part in around(text) if "seeds" in part[:300]):
        assert all(note in part for note in notes)


def test_a_note_belongs_to_the_longest_name_that_fits() -> None:
    held = comparison(many_gains(["de"], {"a": 0.1, "a: b": 0.1}))
    rows = tuple(Contrasted.of(one) for one in held["rows"])
    found = Comparison("base", "", "", rows, (), "", ("a: b: note", "a: other"))
    assert found.noted(["a"]) == ("a: other",) and found.noted(["a: b"]) == ("a: b: note",)


# ------------------------------------------------------------------------------------------- one run

SCORES = {"en": [0.9, 0.8, 0.85], "de": [0.7, 0.72, 0.8], "hi": [0.5, 0.41, 0.43], "de+en": [0.6, 0.6, 0.6]}


def test_a_single_run_shows_mean_and_deviation_by_language(tmp_path: Path) -> None:
    text, seen = page(transfer_run(tmp_path / "run", SCORES))
    safe(text, seen)
    table = tables(text, "sortable")[0]
    names = ["English trained on", "German", "Hindi", "German + English"]
    assert [row[0] for row in table] == [*names, "mean of 3 languages not trained on"]
    foreign = np.array([SCORES[code] for code in ("de", "hi", "de+en")])
    held = [*(np.array(values) for values in SCORES.values()), foreign.mean(0)]
    for row, values in zip(table, held, strict=True):
        assert row[2] == f"{100 * values.mean():.1f} ±{100 * values.std(ddof=1):.1f}"
        assert row[3].startswith(f"{100 * values.mean() + 2:.1f} ±")
    heads = [plain(head) for head in re.findall(r"<th scope=\"col\">.*?</th>", text)][:5]
    assert heads == ["language", "items", "F1 %", "F1 of words %", "accuracy %"]
    mean, std = foreign.mean(), foreign.mean(0).std(ddof=1)
    first = plain(re.search(r"<h2.*?</h2>", text, re.S)[0])
    assert first == (
        f"F1 {100 * mean:.1f}% ± {100 * std:.1f} on names, on average over 3 languages "
        "that it was not trained on"
    )


def test_every_seed_is_there_but_folded(tmp_path: Path) -> None:
    text, _ = page(transfer_run(tmp_path / "run", SCORES))
    start = text.index("<summary>Every seed")
    assert text[:start].rstrip().endswith('<details class="more">'), "folded"
    folded = tables(text[start:], "sortable")[0]
    for row, values in zip(folded, SCORES.values(), strict=False):
        assert row[1:] == [f"{100 * value:.1f}" for value in values]


def test_data_training_and_choice_are_told(tmp_path: Path) -> None:
    folder = transfer_run(
        tmp_path / "run",
        {"de": [0.7, 0.8]},
        test=[portion("de", 1234, no_answer=7, too_long=2)],
        regime="features",
    )
    text, seen = page(folder)
    for words in (
        "learned from 20,000 items in English",
        "tested on 1,234 items in German",
        "features: the encoder stays as it is",
        "those that score best on dev data in the training language (English): F1 80.5% ± 0.7",
        f"0, 1; a seed varies {VARIES}",
        "21 dropped",
        "7 no answer, 2 too long",
        "12 no label",
        "3,130",
        "Nothing was compared",
        "calque compare BASE run --out compared",
    ):
        assert words in seen.text, words
    assert "trained on" not in plain(text[text.index("<table") : text.index("</table>")])


def test_without_dev_data_the_last_weights_were_kept(tmp_path: Path) -> None:
    folder = transfer_run(tmp_path / "run", {"de": [0.7]}, dev=())
    write_json(folder / "artifacts" / "training.json", {"seed-0@en": {"seed": 0, "best": None, "steps": 6}})
    _, seen = page(folder)
    assert "those after the last step: there were no dev data" in seen.text
    assert "with one seed nobody can tell how much of it is luck" in seen.text
    assert "space" in seen.text and "en 6 –" in seen.text and "None" not in seen.text


def test_the_epoch_is_told_where_it_is_known(tmp_path: Path) -> None:
    folder = transfer_run(tmp_path / "run", {"de": [0.7]})
    assert "epoch kept" not in page(folder)[1].text
    best = {"seed-0": {"seed": 0, "best": 0.81, "steps": 6, "epoch": 4}}
    write_json(folder / "artifacts" / "training.json", best)
    assert "seed steps epoch kept F1 % on dev data 0 6 4 81.0" in page(folder)[1].text


def test_a_note_stands_with_every_table_of_a_single_run(tmp_path: Path) -> None:
    text, _ = page(transfer_run(tmp_path / "run", {"de": [0.7, 0.8], "hi": [0.4, 0.5]}, note=NOTE))
    assert NOTE in text[: text.index("<svg")]
    for part in around(text):
        if 'aria-label="Data"' not in part:
            assert NOTE in plain(part)


@pytest.mark.parametrize("task", ["nli", "ner", "slots", "pos", "parsing", "qa"])
def test_every_task_is_told_in_words(tmp_path: Path, task: str) -> None:
    from calque.report.tasks import metric_of, task_of
    from calque.stats.tasks import METRICS

    names = [metric.name for metric in METRICS[task]]
    about = task_of(f"transfer-{task}")
    assert list(about.metrics) == names
    _, seen = page(transfer_run(tmp_path / "run", {"de": [0.4, 0.5]}, task=task, metrics=names))
    assert about.asked in seen.text and about.title in seen.text and "45.0% ± 7.1" in seen.text
    for name in names:
        assert metric_of(name).percent and not metric_of(name).lower
        assert f"{metric_of(name).name or name} %" in seen.text


values_ = st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5)


@given(values_)
def test_means_over_seeds_and_languages_are_numpys(values: list[list[float]]) -> None:
    codes = ["en", "de", "hi", "ru", "zh"][: len(values)]
    made = tuple(
        Result("transfer-nli", "accuracy", value, ("en", code), "x", seed=seed, count=3)
        for code, own in zip(codes, values, strict=True)
        for seed, value in enumerate(own)
    )
    (one,) = trained(made, None)
    table = np.array(values)
    for row, code in zip(table, codes, strict=True):
        found = one.spread(code, "accuracy")
        assert found.mean == pytest.approx(row.mean()) and found.std == pytest.approx(
            row.std(ddof=1), abs=1e-9
        )
    foreign = table[1:].mean(0) if len(table) > 1 else table[0]
    whole = one.spread("mean", "accuracy")
    assert whole.mean == pytest.approx(foreign.mean())
    assert whole.std == pytest.approx(foreign.std(ddof=1), abs=1e-9)


def test_a_mean_is_over_seeds_that_every_language_has() -> None:
    made = [Result("transfer-nli", "accuracy", v, ("en", c), "x", seed=s) for c, s, v in
            (("de", 0, 0.5), ("de", 1, 0.7), ("hi", 0, 0.3))]  # fmt: skip
    one = Trained("transfer-nli", "x", tuple(made))
    assert one.spread("mean", "accuracy").seeds == 1 and one.spread("mean", "accuracy").mean == 0.4
    assert one.spread("de", "accuracy").seeds == 2


# --------------------------------------------------------------------------------- beside other runs


def test_transfer_makes_no_panels_of_seeds(tmp_path: Path) -> None:
    for folder in (transfer_run(tmp_path / "run", SCORES), compared(tmp_path)):
        run = collect(folder)
        assert run.panels == () and summary_table(run).row_count == 0
        text, seen = page(folder)
        for words in ("Layer by layer", "Every figure", "Nothing was measured", "On your own bitext"):
            assert words not in seen.text
        assert len(re.findall(r"<h1", text)) == 1
        levels = [int(level) for level in re.findall(r"<h(\d)", text)]
        assert all(b <= a + 1 for a, b in pairwise(levels)), levels


def test_a_folder_of_runs_leads_with_the_comparison(tmp_path: Path) -> None:
    transfer_run(tmp_path / "base", SCORES)
    transfer_run(tmp_path / "aligned", SCORES, label="centring")
    held = comparison(many_gains(["de", "hi"], {"centring": 0.02}, spread=0.0))
    comparison_run(tmp_path / "verdict", held)
    text, seen = page(tmp_path)
    safe(text, seen)
    assert re.findall(r'<article id="run\d">.*?· ([\w ]+)</p>', text, re.S) == ["verdict", "aligned", "base"]
    overview = plain(text[: text.index("<article")])
    assert "centring against mBERT Helped Named entities: +2.0 points" in overview
    assert "on average over 3 languages" in overview and 'class="helped"' in text


def test_the_verdict_in_the_terminal(tmp_path: Path) -> None:
    held = comparison(
        many_gains(["de"], {"centring": 0.02}), overall="centring: helped on ner", notes=["x: y"]
    )
    lines = verdict_line(collect(comparison_run(tmp_path / "compared", held))).splitlines()
    assert lines == [held["tasks"][0]["line"], "centring: helped on ner", "x: y"]
    (line,) = verdict_line(
        collect(transfer_run(tmp_path / "run", {"de": [0.5, 0.7]}, note=NOTE))
    ).splitlines()
    assert line == (
        f"named entities: mBERT has F1 60.0% ± 14.1 in German, 2 seeds ({NOTE}). Nothing was compared."
    )


def test_markdown_holds_every_row(tmp_path: Path) -> None:
    held = comparison(many_gains(["de", "hi"], TWO), notes=[f"joint: {NOTE}"])
    text = markdown(collect(comparison_run(tmp_path / "compared", held)))
    for one in held["rows"]:
        p = f"{one['p']:.3f}" if one["p"] >= 0.001 else "< 0.001"
        found = [line for line in text.splitlines() if percent(one["difference"], "+.1f") in line]
        assert any(p in line and one["method"] in line for line in found)
    assert f"joint: {NOTE}" in text
    single = markdown(collect(transfer_run(tmp_path / "run", {"de": [0.5, 0.7]})))
    assert "| German | 60.0 ± 14.1 | 62.0 ± 14.1 | 64.0 ± 14.1 |" in single


def test_the_command_makes_a_run_of_transfer_again(tmp_path: Path) -> None:
    folder = transfer_run(tmp_path / "run", {"de": [0.5]})
    recipe = [
        'verb = "transfer"', 'task = "ner"', 'train = ["en=a.tsv"]', 'test = ["de=b.tsv", "hi=c.tsv"]',
        "seeds = [3, 7]", "betas = [0.9, 0.999]", "dropout = false", "root_loss = true", "skip_bad = false",
    ]  # fmt: skip
    write_text(folder / "recipe.toml", "\n".join(recipe))
    text, _ = page(folder)
    command = html.unescape(re.search(r"<pre>(calque transfer.*?)</pre>", text, re.S)[1])
    assert shlex.split(command.replace("\\\n", "")) == [
        "calque", "transfer", "ner", "--train", "en=a.tsv", "--test", "de=b.tsv", "--test", "hi=c.tsv",
        "--seed-list", "3,7", "--betas", "0.9", "0.999", "--no-dropout", "--root-loss", "--out", "run",
    ]  # fmt: skip


# -------------------------------------------------------------------------------- what cannot be trusted


def test_hostile_strings_are_escaped(tmp_path: Path) -> None:
    other = NASTY + "2"
    held = comparison(
        {NASTY: {NASTY: {NASTY: 0.02, "de": 0.1}, other: {NASTY: 0.01, "de": 0.0}}},
        baseline=f"{NASTY} base",
        notes=[f"{NASTY}: {NASTY}"],
        test=NASTY,
        trained=[NASTY],
        overall=NASTY,
        **{"a seed varies": NASTY},
    )
    for one in (*held["rows"], *held["tasks"]):
        one |= {"metric": NASTY, "given": NASTY, "line": NASTY}
    many = comparison({"ner": {f"{NASTY}{k}": {"de": 0.02} for k in range(4)}}, notes=[NASTY])
    portions = [{**portion(NASTY), "file": NASTY, "dropped": {NASTY: 3}}]
    single = transfer_run(
        tmp_path / "single", {NASTY: [0.4, 0.5], "de": [0.4, 0.5]}, label=NASTY, note=NASTY, task="ner",
        metrics=[NASTY], regime=NASTY, train=portions, dev=portions, test=portions,
        **{"a seed varies": NASTY, "selected on": NASTY},
    )  # fmt: skip
    write_json(
        single / "artifacts" / "training.json", {f"seed-0@{NASTY}": {"seed": 0, "best": None, "steps": 1}}
    )
    unknown = transfer_run(tmp_path / "unknown", {"de": [0.5]}, task=NASTY.replace('"', "'"), metrics=[NASTY])
    for folder in (
        comparison_run(tmp_path / "<b>one", held), comparison_run(tmp_path / "many", many), single, unknown,
        tmp_path,
    ):  # fmt: skip
        text, seen = page(folder)
        safe(text, seen)
        assert "<script>alert" not in text and NASTY in "".join(seen.words)


BAD = [
    ("rows.1.p", "small", "rows, record 2"),
    ("rows.1.p", math.nan, "rows, record 2"),
    ("rows.0.low", "x", "rows, record 1"),
    ("rows.0.finding", "won", "rows, record 1"),
    ("rows.0.mark", "up", "rows, record 1"),
    ("rows.0.seeds", [5], "rows, record 1"),
    ("rows.0.seeds", [5, -1], "rows, record 1"),
    ("rows.0.items", 1.5, "rows, record 1"),
    ("tasks.0.difference", None, "tasks, record 1"),
    ("tasks.0", "x", "tasks, record 1"),
    ("tasks", {}, "tasks is not a list"),
    ("rows", None, "rows is not a list"),
    ("baseline", ..., "baseline"),
    ("notes", "x", "notes"),
]


@pytest.mark.parametrize(("path", "value", "told"), BAD)
def test_a_comparison_that_does_not_fit_is_named(tmp_path: Path, path: str, value: Any, told: str) -> None:
    held = json.loads(json.dumps(comparison(many_gains(["de", "hi"], TWO))))
    folder = compared(tmp_path)
    *above, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inside: Any = held
    for step in above:
        inside = inside[step]
    if value is ...:
        del inside[last]
    else:
        inside[last] = value
    (folder / "artifacts" / "comparison.json").write_text(json.dumps(held), encoding="utf-8")
    with pytest.raises(BadInput, match=r"comparison\.json") as error:
        collect(folder)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("data", {"task": "ner"}),
        ("data", {"train": [{"language": "en"}]}),
        ("training", {"seed-0": {"seed": "first", "best": None, "steps": 3}}),
        ("training", {"seed-0": 3}),
    ],
)
def test_data_and_training_that_do_not_fit_are_named(tmp_path: Path, name: str, held: Any) -> None:
    folder = transfer_run(tmp_path / "run", {"de": [0.5]})
    write_json(folder / "artifacts" / f"{name}.json", held)
    with pytest.raises(BadInput, match=rf"{name}.json.*does not fit|does not fit.*{name}.json"):
        collect(folder)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
FIELDS = sorted({*comparison({}), *contrast("de", "a", 0.1), "holm", "finding", "trained"})


@given(st.dictionaries(st.sampled_from(FIELDS), ANYTHING), st.data())
@settings(max_examples=60)
def test_whatever_a_comparison_holds_it_is_shown_or_named(
    tmp_path_factory, odd: dict, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("odd") / "comparison.json"
    held = comparison({"ner": {"a": {"de": 0.1}}})
    kind = data.draw(st.sampled_from(["rows", "tasks", "above"]))
    (held if kind == "above" else held[kind][0]).update(odd)
    path.write_text(json.dumps(held), encoding="utf-8")
    try:
        found = Comparison.read(path)
    except BadInput:
        return
    assert found is not None and comparison_view(found).headline == headline(found)


def test_runs_without_their_data_are_shown_as_far_as_results_go(tmp_path: Path) -> None:
    folder = transfer_run(tmp_path / "run", SCORES)
    for name in ("data", "training"):
        (folder / "artifacts" / f"{name}.json").unlink()
    text, seen = page(folder)
    safe(text, seen)
    assert "English trained on" in seen.text and "tested in" in seen.text and "regime" not in seen.text
    assert Setup.read(folder / "artifacts" / "data.json", folder / "x") is None


def test_an_empty_comparison_says_so(tmp_path: Path) -> None:
    text, seen = page(compared(tmp_path, rows=[], tasks=[]))
    safe(text, seen)
    assert "Nothing was compared" in seen.text


def test_a_space_is_told_apart_from_its_seed() -> None:
    assert Training.of("seed-3@de@x", {"seed": 3, "best": 0.5, "steps": 2}) == Training(
        3, "de@x", 2, 0.5, None
    )


# ------------------------------------------------------------------------------------------ the pictures


def test_bars_reach_from_zero_to_their_figures() -> None:
    """Positions across are as far apart as the figures are, on an axis that holds zero."""
    marks = [Mark(-1.0, -2.0, 0.5), Mark(3.0, 2.5, 4.0), Mark(0.0)]
    rows = [RowBar(f"row {k}", mark, "", f"told {k}", sure=k == 1) for k, mark in enumerate(marks)]
    root = ET.fromstring(row_bars(rows, title="t"))
    number = lambda element, name: float(element.get(name).rstrip("%"))  # noqa: E731
    (zero,) = {number(e, "x1") for e in root.iter(f"{SVG}line") if e.get("class") == "axis"}
    bars = [(number(e, "x"), number(e, "width"), e.get("class")) for e in root.iter(f"{SVG}rect")]
    scale = bars[1][1] / 3.0
    assert bars[1][0] == pytest.approx(zero, abs=0.02)
    assert bars[0][0] + bars[0][1] == pytest.approx(zero, abs=0.02) and bars[0][1] == pytest.approx(
        scale, abs=0.02
    )
    assert bars[2][1] == 0 and [kind.endswith("pale") for *_, kind in bars] == [True, False, True]
    ends = [
        (number(e, "x1"), number(e, "x2")) for e in root.iter(f"{SVG}line") if e.get("class") == "whisker"
    ]
    expected = [(zero + low * scale, zero + high * scale) for low, high in ((-2.0, 0.5), (2.5, 4.0))]
    assert np.array(ends) == pytest.approx(np.array(expected), abs=0.03)
    assert root.find(f"{SVG}desc").text == "told 0. told 1. told 2."


def test_all_methods_share_one_axis_that_is_a_point_wide_at_least(tmp_path: Path) -> None:
    for gains, least in ((TWO, 4.0), ({"a": 0.0001, "b": 0.0}, 1.0)):
        held = comparison(many_gains(["de"], gains, spread=0.0))
        for one in (*held["rows"], *held["tasks"]):
            one |= {"low": None, "high": None}
        view = comparison_view(
            Comparison.read(comparison_run(tmp_path / f"{least}", held) / "artifacts" / "comparison.json")
        )
        ticks = [
            re.findall(r'class="tick"[^>]*>(.*?)<', str(figure)) for _, _, figure in view.tasks[0].pictures
        ]
        assert ticks[0] == ticks[1] and "0" in ticks[0]
        assert float(ticks[0][-1]) - float(ticks[0][0].replace("−", "-")) >= least - 1e-9


# -------------------------------------------------------------------------------------- the real thing


def real_run(folder: Path, shares: Mapping[str, float], label: str, luck: int, **more: Any) -> Path:
    """A run of NLI with items, each seed right in about a share of them."""
    rng = np.random.default_rng(luck)
    hits = {code: rng.random((3, 400)) < share for code, share in shares.items()}
    scores = {code: held.mean(1).tolist() for code, held in hits.items()}
    transfer_run(folder, scores, task="nli", metrics=["accuracy"], label=label, **more)
    made = []
    for r in load_results(folder / "results.jsonl"):
        right = hits[r.languages[1]][r.seed].astype(float)
        clusters = np.arange(400, dtype=np.int64)
        items = Items({"item": clusters}, clusters, {"right": right, "count": np.ones(400)})
        made.append(replace(r, items=save_items(folder / "items", items)))
    save_results(folder / "results.jsonl", made)
    return folder


def test_what_compare_writes_is_what_the_page_shows(tmp_path: Path) -> None:
    from calque.pipeline.comparing import compare

    base = real_run(tmp_path / "base", {"en": 0.8, "de": 0.6, "hi": 0.5}, "mBERT", 0)
    other = real_run(tmp_path / "other", {"en": 0.8, "de": 0.75, "hi": 0.65}, "centring", 1, note=NOTE)
    found = compare([str(base), str(other)], out=tmp_path / "compared")
    text, seen = page(tmp_path / "compared")
    safe(text, seen)
    (table,) = tables(text)
    for row, told in zip(table, [*found.rows, *found.tasks], strict=True):
        one = told.comparison
        assert row[1].startswith(percent(one.baseline.mean)) and row[2].startswith(percent(one.method.mean))
        assert row[3].split(" ")[0] == percent(one.difference, "+.1f").replace("+0.0", "0.0").replace(
            "−0.0", "0.0"
        )
        assert ("*" in row[3]) == (told.verdict.finding != "no evidence either way")
        assert row[5] == (f"{one.p:.3f}" if one.p >= 0.001 else "<0.001")
    assert "Centring helped: +" in seen.text and f"† centring: {NOTE}" in plain(text)
    assert "mean of 2 languages not trained on" in seen.text
    assert found.tasks[0].verdict.line() in verdict_line(collect(tmp_path / "compared"))


def test_a_page_of_transfer_needs_no_torch(tmp_path: Path) -> None:
    compared(tmp_path), transfer_run(tmp_path / "run", SCORES)
    code = (
        "import sys; from pathlib import Path; from calque.report.page import write_page;"
        "write_page(Path(sys.argv[1])); assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_the_page_is_the_same_twice(tmp_path: Path) -> None:
    folder = compared(tmp_path)
    first = write_page(folder).read_bytes()
    assert write_page(folder).read_bytes() == first and Seen(first.decode()).elements
