"""Studies that come with calque: each can be run, says what its paper's table asks, and can be tried out."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from calque.report.published import PAPERS
from calque.study import check_study, study
from calque.study.cells import Cell
from calque.study.checking import ready
from calque.study.plan import Plan
from calque.study.recipe import load_study, study_names
from calque.study.smoke import smoke_study

NAMES = study_names()
DOCS = Path(__file__).resolve().parents[2] / "docs"
#: One that is tried out whenever tests are run; the others take up to a minute each.
QUICK = "cao2020-table3-fasttext"


def cells(plan: Plan, verb: str, **axes: str) -> list[Cell]:
    found = [cell for cell in plan.cells.values() if cell.verb == verb]
    return [cell for cell in found if axes.items() <= cell.axes.items()]


def settings(plan: Plan, verb: str, **axes: str) -> list[dict[str, Any]]:
    return [dict(cell.settings) for cell in cells(plan, verb, **axes)]


def test_every_paper_has_its_tables_and_a_small_version() -> None:
    for paper in PAPERS:
        own = [name for name in NAMES if name.startswith(paper)]
        assert {f"{paper}-world"} < set(own)
        assert all(load_study(name).recipe.paper == paper for name in own)


def test_the_list_names_each_and_no_other() -> None:
    told = re.findall(
        r"\(presets/([a-z0-9-]+)\.md\)", (DOCS / "studies-presets.md").read_text(encoding="utf-8")
    )
    assert sorted(told) == sorted(set(NAMES) - {"first-study"})
    assert {file.stem for file in (DOCS / "presets").glob("*.md")} == set(told)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"first-study"}))
def test_its_page_says_what_it_computes_and_needs(name: str) -> None:
    page, plan = (DOCS / "presets" / f"{name}.md").read_text(encoding="utf-8"), check_study(name)
    row = re.search(r"^\| cells \| (\d+): (.*) \|$", page, re.M)
    assert row is not None and int(row.group(1)) == len(plan.cells)
    counted = Counter(cell.verb for cell in plan.cells.values())
    assert row.group(2) == ", ".join(f"{count} {verb}" for verb, count in counted.items())
    assert all(f"`{file}`" in page for file in plan.missing)
    listed = (DOCS / "studies-presets.md").read_text(encoding="utf-8")
    assert re.search(rf"\[{name}\].*\| {len(plan.cells)} \|", listed)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_no_mistakes(name: str) -> None:
    plan = check_study(name)
    assert any(verb.startswith(("measure", "transfer")) for verb in (one.verb for one in plan.cells.values()))
    if name.endswith("-world") or name == "first-study":
        assert not plan.missing


@pytest.mark.parametrize("name", NAMES)
def test_trying_it_out_leaves_no_table_out(name: str) -> None:
    whole = load_study(name)
    small = smoke_study(whole)
    before, after = whole.recipe, small.recipe
    assert list(after.encoders) == list(before.encoders)
    assert after.align.methods == before.align.methods
    assert after.measure.keys() == before.measure.keys()
    assert after.transfer.tasks.keys() == before.transfer.tasks.keys()
    for task, held in after.transfer.tasks.items():
        for part, files in before.transfer.tasks[task].items():
            assert part not in ("train", "dev", "test", "mixed") or not files or held[part]
    plan = ready(small)
    assert {cell.verb for cell in plan.cells.values()} >= {
        cell.verb for cell in check_study(name).cells.values() if cell.verb not in ("world", "pretrain")
    }


def smoke(name: str, out: Path) -> None:
    run = study(name, out=out, smoke=True, threads=1)
    assert not run.failed and not run.left_out
    assert (out / "finished.json").is_file() and (out / "report.html").is_file()


def test_one_can_be_tried_out(tmp_path: Path) -> None:
    smoke(QUICK, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != QUICK])
def test_all_others_can_be_tried_out(name: str, tmp_path: Path) -> None:
    smoke(name, tmp_path / "out")


# ----------------------------------------------------------------------- what the papers' tables ask for


def test_wu_aligns_once_and_the_larger_encoder_stands_beside() -> None:
    plan = check_study("wu2020-table3")
    # Four ways to align two encoders; every task with five seeds.
    assert len(cells(plan, "align")) == 8
    assert {one["seed"] for one in settings(plan, "align")} == {0}
    assert len(cells(plan, "transfer")) == 5 * 4 * (2 * 6 + 1)
    groups = {group.encoder: len(group.methods) for group in plan.groups}
    assert groups == {"mbert": 5, "xlmr-base": 5, "xlmr-large": 0}
    presets = {one["label"]: one["preset"] for one in settings(plan, "transfer", encoder="mbert")}
    assert presets == {
        "mbert": "wu2020-finetune",
        "mbert linear-mapping": "wu2020-features",
        "mbert features": "wu2020-features",
        "mbert l2": "wu2020-finetune",
        "mbert weak": "wu2020-finetune",
        "mbert strong": "wu2020-finetune",
    }


def test_kulshreshtha_chooses_by_the_language_that_is_tested() -> None:
    plan = check_study("kulshreshtha2020-table3")
    runs = settings(plan, "transfer", task="conll", seed="0")
    # Three languages; the encoder as it is, two rotations by two kinds of pairs, two directions of training.
    assert len(runs) == 3 * 7
    assert all(len(one["test"]) == 1 and one["dev"].keys() == one["test"].keys() for one in runs)
    supervised = {one["supervision"] for one in settings(plan, "align") if "supervision" in one}
    assert supervised == {"dictionary", "words"}
    assert all(len(one["pairs"]) == 1 for one in settings(plan, "align"))


def test_efimov_goes_on_from_the_same_adjusted_encoder() -> None:
    plan = check_study("efimov2022-table2")
    assert len(cells(plan, "align")) == len(cells(plan, "sample")) == 4 * 5
    runs = settings(plan, "transfer", seed="0")
    began = {
        (label, *one["test"]): one["encoder"]
        for one in runs
        if (label := one["label"]) in ("adjusted", "continual")
    }
    for code in ("es", "ru", "vi", "hi"):
        assert began["adjusted", code] == began["continual", code]
    for one in runs:
        mixed = {spec.partition("=")[0] for spec in one["mixed"]}
        assert mixed == set(one["test"]) and len(mixed) == (4 if one["label"] == "mbert" else 1)
        assert len(one.get("continual", [])) == (1 if one["label"] == "continual" else 0)


def test_efimovs_questions_in_two_languages_go_with_the_language_that_is_aligned() -> None:
    plan = check_study("efimov2022-table4-mlqa")
    found = {frozenset(one["test"]) for one in settings(plan, "transfer", method="adjusted")}
    assert found == {frozenset((code, f"{code}/en", f"en/{code}")) for code in ("es", "vi", "hi")}


def test_sizes_are_not_cut_by_the_paper_s_own() -> None:
    plan = check_study("efimov2022-table5")
    assert {one["max_pairs"] for one in settings(plan, "align")} == {5000, 10000, 30000, 100000, 250000}
    assert {one["sentences"] for one in settings(plan, "sample")} == {5000, 10000, 30000, 100000, 250000}
    others = check_study("efimov2022-table7")
    assert {one["sentences"] for one in settings(others, "sample")} == {30000}


def test_a_method_may_be_for_some_languages() -> None:
    plan = check_study("efimov2022-table8")
    assert len(cells(plan, "align")) == 4 * 5
    tested = {(one["label"], *one["test"]) for one in settings(plan, "transfer", task="squad")}
    assert tested == {
        (label, "en") for label in ("mbert", *(f"adjusted-{c}" for c in ("es", "ru", "vi", "hi")))
    }


def test_a_larger_vocabulary_is_made_once() -> None:
    plan = check_study("efimov2022-table9")
    (made,) = cells(plan, "extend")
    assert all(made.key in one["encoder"] for one in settings(plan, "align"))


def test_encoders_that_never_met_begin_with_other_seeds() -> None:
    plan = check_study("conneau2020-section5-world")
    apart = {cell.title: cell.settings["seed"] for cell in cells(plan, "pretrain", encoder="apart")}
    assert apart == {f"apart {code}, seed {seed}": seed for code, seed in (
        ("en", 0), ("far", 1000), ("en", 1), ("far", 1001),
    )}  # fmt: skip
    (spec,) = {one["encoder"] for one in settings(plan, "transfer", method="apart", seed="0")}
    assert [part.partition("=cell://pretrain-")[0] for part in spec.split(",")] == ["en", "far"]
