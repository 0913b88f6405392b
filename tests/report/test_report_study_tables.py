"""Every table of a study's page can be had as Markdown, LaTeX and CSV, and holds what the study says."""

import csv
import io
import json
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from pylatexenc.latexwalker import LatexWalker

from calque.files import write_json
from calque.report.export import exported, table_names, tables_of
from calque.report.study.content import Content
from calque.report.study.page import render_study
from calque.report.study.reading import read_study
from calque.report.study.table import Scores
from calque.report.transfer_shown import comparison_view
from calque.store import load_results, save_results
from calque.text.typology import distance
from study_folders import StudyMaker

OWN = ["tasks", "compared-ner", "compared-nli", "published", "distance", "translated", "retrieval-gains",
       "retrieval-scores", "measures"]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = StudyMaker(tmp_path_factory.mktemp("study") / "one", tasks={"ner": False, "nli": True})
    return made.build()


@pytest.fixture(scope="module")
def lines(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Rows of the CSV by table."""
    found = defaultdict(list)
    for row in csv.DictReader(io.StringIO(exported(tables_of(folder), "csv"), newline="")):
        found[row["table"]].append(row)
    return found


def test_tables_stand_in_the_order_of_the_page(folder: Path) -> None:
    names = table_names(tables_of(folder))
    assert [name for name in names if not name.startswith(("words-", "sentences-"))] == [*OWN, "cost", "time"]


def test_gains_are_those_of_the_comparisons_with_distances_from_elsewhere(lines) -> None:
    compared = {
        (row["encoder"], row["target"], row["task"].removeprefix("transfer-")): float(row["difference"])
        for task in ("ner", "nli")
        for row in lines[f"compared-{task}"]
    }
    tasks = [row for row in lines["distance"] if row["task"].startswith("transfer-")]
    assert len(tasks) == 2 * 2 * 4
    for row in tasks:
        assert float(row["difference"]) == compared[row["encoder"], row["target"], row["name"]]
        assert float(row["distance"]) == distance("en", row["target"])


def test_kinds_of_tests_are_means_of_gains(lines) -> None:
    for row in lines["translated"]:
        task = "nli" if row["bin"] == "translated" else "ner"
        gains = [
            float(one["difference"])
            for one in lines["distance"]
            if (one["name"], one["encoder"]) == (task, row["encoder"])
        ]
        assert float(row["difference"]) == pytest.approx(fmean(gains)) and int(row["items"]) == len(gains)


def test_points_are_figures_of_the_other_tables(lines) -> None:
    gained = {(r["name"], r["encoder"], r["target"]): r["difference"] for r in lines["distance"]}
    reached = {(r["name"], r["encoder"], r["target"]): r["value"] for r in lines["tasks"]}
    measured = {(r["encoder"], r["target"]): r["value"] for r in lines["measures"] if r["name"] == "words"}
    assert len(lines["retrieval-gains"]) == 16 and len(lines["retrieval-scores"]) == 24
    for row in lines["retrieval-gains"]:
        assert row["difference"] == gained[row["name"], row["encoder"], row["target"]]
        words = gained["words", row["encoder"], row["target"]]
        assert row["beside"] == words
    for row in lines["retrieval-scores"]:
        assert row["value"] == reached[row["name"], row["encoder"], row["target"]]
        assert row["beside"] == measured[row["encoder"], row["target"]]


def test_costs_are_means_of_cells(lines, folder: Path) -> None:
    cells = json.loads((folder / "study.json").read_text())["cells"]
    timed = [cell for cell in cells if cell.get("seconds") is not None]
    spent = {(r["name"], r["encoder"]): float(r["value"]) for r in lines["cost"] if r["metric"] == "seconds"}
    for label in ("e5", "centring", "weak"):
        own = [
            c["seconds"]
            for c in timed
            if c["verb"] == "transfer"
            and c["axes"].get("task") == "ner"
            and c["axes"].get("method", "e5") == label
        ]
        assert spent["ner", label] == pytest.approx(fmean(own))
    assert sum(float(r["value"]) for r in lines["time"]) == pytest.approx(sum(c["seconds"] for c in timed))


def test_every_table_is_sound_in_every_form(folder: Path) -> None:
    held = tables_of(folder)
    for name in table_names(held):
        tex = exported(held, "tex", [name])
        LatexWalker(tex, tolerant_parsing=False).get_latex_nodes()
        rows = [line for line in exported(held, "md", [name]).splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in rows}) == 1 and len(rows) > 2, name
        body = tex.split("\\midrule")[1].split("\\bottomrule")[0]
        assert body.count("\\\\") == len(rows) - 2, name
        assert len(exported(held, "csv", [name]).splitlines()) > 1


@pytest.mark.parametrize(
    ("given", "there", "absent"),
    [
        ({"tasks": {}}, ["distance", "measures", "cost"], ["tasks", "translated", "retrieval-gains"]),
        ({"measures": ()}, ["distance", "cost"], ["measures", "retrieval-gains"]),
        ({"seeds": (0,)}, ["distance", "retrieval-gains"], ["measures"]),
        ({"languages": ("de",)}, ["compared-ner"], ["distance"]),
    ],
)
def test_what_a_study_does_not_have_has_no_table(given, there, absent, tmp_path: Path) -> None:
    names = table_names(tables_of(StudyMaker(tmp_path / "one", **given).build()))
    assert set(there) <= set(names) and not set(absent) & set(names)


def test_two_encoders_are_told_apart(tmp_path: Path) -> None:
    names = table_names(tables_of(StudyMaker(tmp_path / "one", encoders=("a", "b")).build()))
    assert {"a-distance", "b-distance", "a-compared-ner", "b-compared-ner", "tasks"} <= set(names)
    words = [name for name in names if "word-retrieval" in name]
    assert {f"{one}-words-word-retrieval-accuracy-contextual-en-de" for one in "ab"} <= set(words)
    assert not any(re.search(r"-en-..-\d$", name) for name in words), "each has a name of its own"


def test_one_thing_has_one_name(tmp_path: Path) -> None:
    """Tasks and metrics are as in results; a task that is there on two data is told apart by its name."""
    tasks = {"ner": False, "news": None}
    study = read_study(StudyMaker(tmp_path / "one", tasks=tasks, kinds={"news": "ner"}).build())
    rows = list(csv.DictReader(io.StringIO(exported(study, "csv"), newline="")))
    own = [row for row in rows if row["table"] not in ("published", "time", "translated")]
    pairs = {(row["name"], row["task"]) for row in own if row["task"] != "align"}
    assert pairs == {
        ("ner", "transfer-ner"), ("news", "transfer-ner"), ("words", "word-retrieval"),
        ("sentences", "sentence-retrieval"),
    }  # fmt: skip
    assert {row["metric"] for row in own} - {""} == {"f1", "accuracy", "seconds", "megabytes"}


def test_figures_that_nobody_compared_are_there(tmp_path: Path) -> None:
    """One task: the comparison has German alone, the runs of both encoders French too."""
    made = StudyMaker(tmp_path / "one", gains={"centring": 0.0}, able={"centring": ("de",)}, measures=(),
                      tasks={"ner": None}, languages=("de", "fr"))  # fmt: skip
    rows = csv.DictReader(io.StringIO(exported(read_study(made.build()), "csv"), newline=""))
    found = {row["encoder"]: float(row["value"]) for row in rows
             if row["target"] == "fr" and row["table"] != "published"}  # fmt: skip
    assert found == {"e5": pytest.approx(fmean(made.score("ner", "e5", "fr", seed) for seed in made.seeds))}


def test_what_no_seed_changes_has_no_deviation(tmp_path: Path) -> None:
    """Centring is the same with every seed; a method that is drawn may have equal figures, and says so."""
    folder = StudyMaker(tmp_path / "one", tasks={}, measures=("words",)).build()
    told = json.loads((folder / "study.json").read_text())
    told["cells"] = [
        {**cell, "axes": {name: value for name, value in cell["axes"].items() if name != "seed"}}
        if cell["verb"] == "align" and cell["axes"]["method"] == "centring"
        else cell
        for cell in told["cells"]
    ]
    write_json(folder / "study.json", told)
    for path in folder.glob("cells/measure-*/results.jsonl"):
        save_results(
            path, [replace(r, value=0.1 if r.baseline else 0.5, items=None) for r in load_results(path)]
        )
    study = read_study(folder)
    rows = csv.DictReader(io.StringIO(exported(study, "csv", ["measures"]), newline=""))
    spreads = {row["encoder"]: (row["seeds"], row["std"]) for row in rows}
    assert spreads == {"e5": ("1", ""), "centring": ("1", ""), "weak": ("3", "0.0")}
    lines = {line.label: " ".join(line.sure) for one in Content(study).findings for line in one.lines}
    assert "Over 3 seeds" in lines["weak"] and "Over" not in lines["centring"]


def test_a_method_costs_all_of_its_languages_and_what_it_shares(tmp_path: Path) -> None:
    """Languages apart, 110 s each with the first seed; who shares the alignment has its cost too."""
    folder = StudyMaker(tmp_path / "one", tasks={"ner": None}, measures=(), seeds=(0, 1)).build()
    told = json.loads((folder / "study.json").read_text())
    cells = [cell for cell in told["cells"] if cell["verb"] != "align"]
    aligned = {(code, seed): {"key": f"align-{code}-{seed}", "verb": "align", "title": code, "status": "done",
                              "axes": {"encoder": "e5", "method": "weak", "seed": str(seed)}, "needs": [],
                              "seconds": 110.0 + 10 * seed, "peak_memory_mb": {"de": 900, "zh": 1000}[code]}
               for code in ("de", "zh") for seed in (0, 1)}  # fmt: skip
    for cell in cells:
        if cell["verb"] == "transfer" and cell["axes"]["method"] in ("weak", "centring"):
            cell["needs"] = [f"align-{code}-{cell['axes']['seed']}" for code in ("de", "zh")]
    write_json(folder / "study.json", {**told, "cells": [*aligned.values(), *cells]})
    rows = {row.label: row.aligned for row in Content(read_study(folder)).cost.rows}
    assert rows["e5"] is None
    for label in ("weak", "centring"):
        spent = rows[label]
        assert spent is not None and (spent.seconds, spent.memory, spent.cells) == (230.0, 1000.0, 4)
    aligned["zh", 1]["status"] = "failed"
    write_json(folder / "study.json", {**told, "cells": [*aligned.values(), *cells]})
    spent = {row.label: row.aligned for row in Content(read_study(folder)).cost.rows}["weak"]
    assert spent is not None and spent.seconds == 220.0, "what a seed that lacks a cell cost is not told"


# --------------------------------------------------------------------- what means are over, what was learned


ALONE = {"gains": {"centring": 0.0, "weak": 3.0}, "able": {"centring": ("de",)}}


def test_a_mean_of_one_language_is_called_by_it(tmp_path: Path) -> None:
    """A map for German alone beside a method that reads all: what both have in common is German."""
    made = StudyMaker(tmp_path / "one", tasks={"ner": False}, measures=(), **ALONE)
    study = read_study(made.build())
    content = Content(study)
    assert [column.language for column in content.tasks.heads[0].columns] == ["en", "de", "ru", "zh", "hi"]
    (found,) = content.findings
    (row,) = [row for row in study.comparisons[0].held.tasks if row.method == "weak"]
    size = f"{100 * row.difference:+.1f} points"
    assert found.sentence.startswith(f"weak helped: {size} in German (95%")
    assert "taken singly, helped in German (+" in found.sentence and "them" not in found.sentence
    assert not any("them" in told for line in found.lines for told in line.sure)
    text = render_study(study)
    assert "> of German</small>" in text and "Mean of German" in text and "of 4 languages" not in text
    lines = csv.DictReader(io.StringIO(exported(study, "csv"), newline=""))
    assert {(one["target"], one["over"]) for one in lines if one["table"] == "compared-ner"} >= {
        ("mean", "de"), ("de", ""),
    }  # fmt: skip


def test_a_mean_is_over_the_languages_that_its_methods_share(tmp_path: Path) -> None:
    able = {"a centring": ("de", "ru")}
    made = StudyMaker(tmp_path / "one", encoders=("a", "b"), tasks={"ner": False}, measures=(), able=able)
    study = read_study(made.build())
    content = Content(study)
    (head,) = content.tasks.heads
    means = [(column.about, column.over) for column in head.columns if column.mean]
    assert means == [("of 4", {"de", "ru", "hi", "zh"}), ("of 2", {"de", "ru"})]
    cells = {
        row.name: [None if one is None else one.spread.mean for one in row.cells[-2:]]
        for block in content.tasks.blocks
        for row in block.rows
    }
    scores = {row.method: row.after.mean for one in study.comparisons for row in one.held.tasks} | {
        one.held.baseline: one.held.tasks[0].before.mean for one in study.comparisons
    }
    assert cells["a centring"] == [None, scores["a centring"]], "which was tested in two languages"
    assert [cells[label][1] for label in ("a", "a weak")] == [scores["a"], scores["a weak"]]
    assert cells["a weak"][0] == pytest.approx(
        fmean(made.score("ner", "a weak", code, seed) for code in made.languages for seed in made.seeds)
    )
    assert cells["b"] == [scores["b"], None]
    assert cells["b weak"] == [scores["b weak"], None]
    told = content.findings[0].sentence
    assert "a weak helped: +" in told and "on average over 2 languages" in told
    assert "b weak helped: +" in told and "on average over 4 languages" in told


def test_each_task_has_the_languages_that_it_was_learned_in(tmp_path: Path) -> None:
    made = StudyMaker(tmp_path / "one", learned={"ner": "de"}, measures=())
    study = read_study(made.build())
    content = Content(study)
    about = {
        head.key: {column.language: column.about for column in head.columns} for head in content.tasks.heads
    }
    assert about["nli"]["en"] == about["ner"]["de"] == "trained on"
    assert about["nli"]["de"] == about["ner"]["en"] == ""
    gained = {(source.key, row.code) for table in content.gains for row in table.rows
              for (source, *_), cell in zip(table.columns, row.cells, strict=True) if cell}  # fmt: skip
    assert {("nli", "de"), ("ner", "en")} <= gained and not {("nli", "en"), ("ner", "de")} & gained
    lines = list(csv.DictReader(io.StringIO(exported(study, "csv"), newline="")))
    assert {(r["table"], r["source"]) for r in lines if r["table"].startswith("compared")} == {
        ("compared-ner", "de"), ("compared-nli", "en"),
    }  # fmt: skip


def test_comparisons_of_before_tell_less_and_are_read(tmp_path: Path) -> None:
    """One list of languages for all tasks: runs know better, where they are there."""
    made = StudyMaker(tmp_path / "one", learned={"ner": "de"}, measures=())
    (path,) = made.build().glob("cells/*/artifacts/comparison.json")
    held = json.loads(path.read_text())
    for row in held["tasks"]:
        del row["languages"]
    write_json(path, {**held, "trained": ["de", "en"]})
    scores = Scores(read_study(made.folder))
    assert scores.learned_in("nli") == {"en"} and scores.learned_in("ner") == {"de"}
    assert scores.means("nli") == [{"de", "ru", "hi", "zh"}]
    assert scores.study.comparisons[0].held.learned_in("nli") == ("de", "en")


@pytest.mark.parametrize("order", [("centring", "weak"), ("weak", "centring")])
def test_the_baseline_has_all_of_its_seeds_whatever_the_order_of_methods(order, tmp_path: Path) -> None:
    gains = dict.fromkeys(order, 1.0)
    made = StudyMaker(tmp_path / "one", tasks={"ner": None}, gains=gains, measures=())
    (path,) = made.build().glob("cells/*/artifacts/comparison.json")
    held = json.loads(path.read_text())
    for row in (*held["rows"], *held["tasks"]):
        if row["method"] == "weak":
            row |= {"seeds": [2, 2], "baseline mean": 0.1}
    write_json(path, held)
    scores = Scores(read_study(made.folder))
    for language, over in (("de", frozenset()), ("mean", scores.means("ner")[0])):
        found = scores.figure("ner", "e5", language, over)
        assert found is not None and found.spread.seeds == 3 and found.spread.mean > 0.1
    view = comparison_view(scores.study.comparisons[0].held)
    assert {row.before.seeds for row in view.tasks[0].table.rows} == {3}
