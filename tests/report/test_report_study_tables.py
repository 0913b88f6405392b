"""Every table of a study's page can be had as Markdown, LaTeX and CSV, and holds what the study says."""

import csv
import io
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest
from pylatexenc.latexwalker import LatexWalker

from calque.report.export import exported, table_names, tables_of
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
    tasks = [row for row in lines["distance"] if row["task"] in ("ner", "nli")]
    assert len(tasks) == 2 * 2 * 4
    for row in tasks:
        assert float(row["difference"]) == compared[row["encoder"], row["target"], row["task"]]
        assert float(row["distance"]) == distance("en", row["target"])


def test_kinds_of_tests_are_means_of_gains(lines) -> None:
    for row in lines["translated"]:
        task = "nli" if row["bin"] == "translated" else "ner"
        gains = [
            float(one["difference"])
            for one in lines["distance"]
            if (one["task"], one["encoder"]) == (task, row["encoder"])
        ]
        assert float(row["difference"]) == pytest.approx(fmean(gains)) and int(row["items"]) == len(gains)


def test_points_are_figures_of_the_other_tables(lines) -> None:
    gained = {(r["task"], r["encoder"], r["target"]): r["difference"] for r in lines["distance"]}
    reached = {(r["task"], r["encoder"], r["target"]): r["value"] for r in lines["tasks"]}
    measured = {
        (r["encoder"], r["target"]): r["value"] for r in lines["measures"] if r["task"].startswith("words")
    }
    assert len(lines["retrieval-gains"]) == 16 and len(lines["retrieval-scores"]) == 24
    for row in lines["retrieval-gains"]:
        assert row["difference"] == gained[row["task"], row["encoder"], row["target"]]
        words = gained["words", row["encoder"], row["target"]]
        assert row["beside"] == words
    for row in lines["retrieval-scores"]:
        assert row["value"] == reached[row["task"], row["encoder"], row["target"]]
        assert row["beside"] == measured[row["encoder"], row["target"]]


def test_costs_are_means_of_cells(lines, folder: Path) -> None:
    cells = json.loads((folder / "study.json").read_text())["cells"]
    timed = [cell for cell in cells if cell.get("seconds") is not None]
    spent = {(r["task"], r["encoder"]): float(r["value"]) for r in lines["cost"] if r["metric"] == "seconds"}
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
