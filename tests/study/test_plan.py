"""What a study plans: what cells are named by, what they are called, and what is compared with what."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_study

from calque.files import read_json
from calque.store import load_results
from calque.study import check_study, prune_study, study
from calque.study.cells import Cell, file_reference
from calque.study.inputs import Inputs
from calque.study.plan import Plan, make_plan
from calque.study.recipe import Mistakes, load_study
from calque.study.verbs import RECIPES
from calque.text.world import write_world

#: A study that names a file in every way that its verbs' settings do.
EVERYWHERE = """
source = "en"
[encoders]
small = "here"
made = { text = ["en=text.en", "en,de=both.tsv"], bitext = ["en,de=both.tsv"], dictionary = ["words.txt"], steps = 2 }
longer = { encoder = "here", text = ["de=text.de"], pieces = 5 }
[links]
test = 5
text.de = "both.tsv"
links.de = "gold.links"
trained = "linker"
[scored]
pairs.de = "scored"
[align]
methods = ["own", "paper", "trained", "checked", "refined"]
own = { method = "rotation", supervision = "dictionary", dictionary = ["own.txt"] }
paper = { preset = "paper.toml" }
trained = { preset = "trained.toml" }
checked = { method = "l2", dev = ["dev"] }
refined = { method = "rotation", refine = 1, text = ["de=more.de"] }
[measure.words]
[measure.sentences]
text.de = ["lines.en", "lines.de"]
[measure.lexicon]
dictionary.de = "test.txt"
text = { en = "lexicon.en" }
[transfer]
[transfer.ner]
train.en = "ner.en"
dev.en = "dev.ner"
test.de = "ner.de"
mixed = ["de=mixed.de,en=mixed.en"]
continual = ["linked"]
continual_preset = "going.toml"
preset = "task.toml"
"""  # noqa: E501
FOLDERS = ("here", "linker", "scored", "dev", "linked", "predev")
FILES = (
    "text.en", "text.de", "both.tsv", "words.txt", "gold.links", "own.txt", "paper.toml", "more.de",
    "lines.en", "lines.de", "test.txt", "lexicon.en", "ner.en", "dev.ner", "ner.de", "mixed.de", "mixed.en",
    "trained.toml", "going.toml", "task.toml", "original",
)  # fmt: skip
PRESETS = {
    "paper.toml": '[align]\nmethod = "centring"\n',
    "trained.toml": '[align]\nmethod = "l2"\ndev = ["predev"]\n',
    "going.toml": '[align]\nmethod = "l2"\n',
    "task.toml": '[transfer]\noriginal = "original"\n',
}


def everywhere(folder: Path) -> Path:
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
        (folder / name / "held").write_text(name)
    for name in FILES:
        (folder / name).write_text(PRESETS.get(name, name))
    return small_study.write(folder, EVERYWHERE)


def plan_of(recipe: Path, *changes: str) -> Plan:
    return make_plan(load_study(recipe, changes))


def test_whatever_file_is_named_is_part_of_a_key(tmp_path: Path) -> None:
    recipe = everywhere(tmp_path / "study, with = odd characters")
    first = plan_of(recipe)
    assert list(first.mistakes) == []
    for name in (*FILES, *(f"{folder}/held" for folder in FOLDERS)):
        path = recipe.parent / name
        before = path.read_text()
        path.write_text(before + "\n# other\n")
        changed = plan_of(recipe)
        assert set(changed.cells) != set(first.cells), name
        path.write_text(before)
        assert set(plan_of(recipe).cells) == set(first.cells)


def places() -> Iterator[tuple[type[Any], str]]:
    return ((kind, name) for kind in dict.fromkeys(RECIPES.values()) for name in sorted(kind.places))


@pytest.mark.parametrize(("kind", "name"), places())
def test_every_setting_that_is_a_file_is_looked_up(kind: type[Any], name: str, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("a")
    inputs = Inputs(load_study(small_study.write(tmp_path)), lambda where: "")
    told = {one: inputs.located(kind, {name: one}, "x")[name] for one in ("there", "en=there")}
    assert told["there"] == file_reference(tmp_path / "there")
    if name not in ("encoder", "model"):
        assert told["en=there"] == f"en={file_reference(tmp_path / 'there')}"
        assert not inputs.mistakes
        inputs.located(kind, {name: "nowhere"}, "x")
        assert inputs.mistakes == [f"x.{name}: no such file: nowhere"]


def test_paths_with_odd_characters_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a, b=c%20 ü\udcff.tsv"
    path.write_text("a")
    cell = Cell.of("link", "x", {"paths": [file_reference(path)], "say": "100%"}, {}, "")
    assert cell.resolved(tmp_path) == {"paths": [str(path)], "say": "100%"}


def test_a_title_is_no_part_of_a_key(tmp_path: Path) -> None:
    recipe = small_study.write(tmp_path)
    text = recipe.read_text()
    first = set(plan_of(recipe).cells)
    recipe.write_text(text.replace("[links]", 'other = "world:encoder"\n\n[links]'))
    assert plan_of(recipe).groups[0].methods[0] == "counts centring"
    assert {key for key in first if key.startswith("align")} <= set(plan_of(recipe).cells)
    recipe.write_text(text.replace('"gradient"', '"by-steps"').replace("\ngradient.", "\nby-steps."))
    renamed = set(plan_of(recipe).cells)
    assert {key.split("-")[0] for key in first - renamed} == {"measure"}, (
        "their labels are in what they write"
    )


def test_tables_reach_verbs_in_one_order_however_they_are_written(tmp_path: Path) -> None:
    """Else one key would stand for two results: they name languages in the order of tables."""
    files = {code: f'{code} = "world:tasks/ner/{code}.train.tsv"' for code in ("en", "near", "far")}
    given = []
    for codes in (("near", "far", "en"), ("en", "far", "near")):
        table = ", ".join(files[code] for code in codes)
        (tmp_path / codes[0]).mkdir()
        plan = plan_of(
            small_study.write(tmp_path / codes[0], small_study.TASK), f"transfer.ner.train={{{table}}}"
        )
        (one, *_) = (cell for cell in plan.cells.values() if cell.verb == "transfer")
        given.append((one.key, list(one.settings["train"]), list(one.settings["test"])))
    assert given[0] == given[1]


# ----------------------------------------------------------------------------------------- baselines

TINY = "languages = ['en', 'near'], sentences = 100, vocabulary = 400, layers = 1, width = 16, heads = 2"
#: Encoders beside each other, of which the first is the baseline.
BESIDE = f"""
seeds = [0, 1]

[world]
count = 80

[encoders]
first = {{ {TINY}, inner = 16, steps = 2 }}
second = {{ {TINY}, inner = 17, steps = 2 }}
third = {{ {TINY}, inner = 18, steps = 2, seed = 0 }}

[scored]
tokenised = true
linker = "ibm1"
text.near = "world:text/en-near.tsv"

[measure.words]
rounds = 10
"""


def measures(plan: Plan, seed: int) -> Cell:
    (found,) = (
        cell
        for cell in plan.cells.values()
        if cell.verb.startswith("measure") and cell.axes["seed"] == str(seed)
    )
    return found


def test_nothing_else_becomes_the_baseline_of_a_measure(tmp_path: Path) -> None:
    recipe = load_study(small_study.write(tmp_path, BESIDE))
    whole = make_plan(recipe)
    made = {cell.title: key for key, cell in whole.cells.items() if cell.verb == "pretrain"}
    without = make_plan(recipe, frozenset({made["second, seed 0"]}))
    assert measures(without, 0).settings["labels"] == ["first", "third"]
    assert measures(without, 1) == measures(whole, 1)
    # It is left out as a whole, of this seed alone, as what needs the cell that failed.
    gone = make_plan(recipe, frozenset({made["first, seed 0"]}))
    assert measures(gone, 0) == measures(whole, 0) and made["first, seed 0"] in measures(gone, 0).needs
    assert measures(gone, 1) == measures(whole, 1)


def test_a_measure_without_its_baseline_is_told_as_left_out(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("a\n")
    first = f"first = {{ {TINY}, inner = 16, steps = 2 }}"
    text = BESIDE.replace("seeds = [0, 1]", "seeds = [0]").replace(
        first, first.replace("languages = ['en', 'near'], sentences = 100", "text = ['en=short.txt']")
    )
    out = tmp_path / "out"
    run = study(small_study.write(tmp_path, text), out=out, threads=1)
    assert [key.split("-")[0] for key in run.failed] == ["pretrain"]
    cells = {cell["verb"]: cell for cell in read_json(out / "study.json")["cells"]}
    assert cells["measure words"]["status"] == "left out"
    assert cells["measure words"]["error"] == "needs first, seed 0"
    assert not any(one.task == "word-retrieval" for one in load_results(out / "results.jsonl"))


# ----------------------------------------------------------------------------------------- folders of links

GIVEN = """
[encoders]
small = "e5-small-q4"
[links]
pairs.de = "linked"
[align]
methods = ["centring"]
[measure.words]
"""


def linked(folder: Path, *splits: str) -> Path:
    """A study of a folder of links that has these parts."""
    for split in splits:
        (folder / "linked" / split).mkdir(parents=True)
        (folder / "linked" / split / "pairs.json").write_text(split)
    return small_study.write(folder, GIVEN)


def read_by(plan: Plan, verb: str) -> list[str]:
    (cell,) = (one for one in plan.cells.values() if one.verb == verb)
    return [Path(path).name for path in cell.resolved(Path())["pairs"]]


def test_the_parts_of_a_folder_of_links_are_told_apart(tmp_path: Path) -> None:
    plan = plan_of(linked(tmp_path, "train", "test"))
    assert not plan.mistakes
    assert read_by(plan, "align") == ["train"] and read_by(plan, "measure words") == ["test"]


@pytest.mark.parametrize("splits", [("",), ("train",)])
def test_what_was_learned_is_not_measured_on(splits: tuple[str, ...], tmp_path: Path) -> None:
    recipe = linked(tmp_path, *splits)
    (told,) = plan_of(recipe).mistakes
    assert told.startswith("measure.words: all of links.pairs.de is learned from (give scored.pairs.de")
    other = tmp_path / "other" / "test"
    other.mkdir(parents=True)
    (other / "pairs.json").write_text("other")
    plan = plan_of(recipe, "scored.pairs.de=other")
    assert not plan.mistakes and read_by(plan, "measure words") == ["test"]
    plan = plan_of(recipe, "scored.pairs.de=other/test")
    assert not plan.mistakes and read_by(plan, "measure words") == ["test"]


def test_pairs_that_are_to_come_may_have_parts(tmp_path: Path) -> None:
    plan = plan_of(small_study.write(tmp_path, GIVEN), "links.pairs.de=data:linked")
    assert not plan.mistakes and plan.missing == ["linked"]


# ----------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ('align.methods=["rotation","rotation"]', "two encoders would be called 'rotation'"),
        ('encoders={rotation="world:encoder"}', "two encoders would be called 'rotation'"),
        ('align.gradient.against="rotatoin"', "did you mean rotation"),
        ('align.gradient.against="gradient"', "no other method gradient"),
        ('align.gradient={against="rotation",vary={size=[20,30]}}', ""),
        ('align.rotation={vary={size=[20,30]}}', ""),
    ],
)  # fmt: skip
def test_names_that_do_not_fit(change: str, told: str, tmp_path: Path) -> None:
    plan = plan_of(small_study.write(tmp_path), change)
    assert any(told in one for one in plan.mistakes) if told else not plan.mistakes, plan.mistakes


def test_one_of_several_settings_cannot_be_meant_by_against(tmp_path: Path) -> None:
    changes = ["align.rotation={vary={size=[20,30]}}", 'align.gradient.against="rotation"']
    (told,) = plan_of(small_study.write(tmp_path), *changes).mistakes
    assert "stands beside 2 of rotation" in told
    both = ["align.vary={size=[20,30]}", 'align.gradient.against="rotation"']
    assert not plan_of(small_study.write(tmp_path), *both).mistakes


# ----------------------------------------------------------------------------------------- tasks


def compares(plan: Plan) -> list[Cell]:
    return [cell for cell in plan.cells.values() if cell.verb == "compare"]


def test_a_method_is_compared_with_another_one(tmp_path: Path) -> None:
    recipe = small_study.write(tmp_path, small_study.TASK)
    usual, beside = compares(plan_of(recipe, 'align.weak.against="centring"'))
    assert usual.settings["baseline"] == "mlm" and "against" not in usual.axes
    assert beside.settings["baseline"] == "centring" == beside.axes["against"]
    plan = plan_of(recipe, 'align.weak.against="centring"')
    labels = {plan.cells[key].settings["label"] for key in beside.needs}
    assert labels == {"centring", "weak"}


def test_seeds_are_said_to_vary_what_they_do(tmp_path: Path) -> None:
    recipe = small_study.write(tmp_path, small_study.TASK)
    (drawn,) = compares(plan_of(recipe))
    (fixed,) = compares(plan_of(recipe, "align.seed=0"))
    assert "alignment" in drawn.settings["varies"]
    assert "alignment" not in fixed.settings["varies"] and "first weights" in fixed.settings["varies"]


TWICE = """
[transfer.made]
task = "ner"
translated = true
epochs = 1
train.en = "world:tasks/ner/en.train.tsv"
test.near = "world:tasks/ner/near.dev.tsv"
"""


def test_two_tables_of_one_task_are_told_apart(tmp_path: Path) -> None:
    text = small_study.TASK.replace("[0, 1, 2]", "[0]").replace("[compare]", f"{TWICE}\n[compare]")
    text = text.replace("[transfer.ner]", "[transfer.ner]\ntranslated = false")
    out = tmp_path / "out"
    run = study(small_study.write(tmp_path, text), out=out, threads=1)
    assert not run.failed
    assert read_json(out / "study.json")["tasks"] == {
        "ner": {"translated": False}, "made": {"translated": True},
    }  # fmt: skip
    scores = [one for one in load_results(out / "results.jsonl") if one.baseline is None]
    assert {(one.task, one.encoder) for one in scores if one.task.startswith("transfer")} == {
        (task, label) for task in ("transfer-ner", "transfer-made") for label in ("mlm", "centring", "weak")
    }
    learned = [cell for cell in read_json(out / "study.json")["cells"] if cell["verb"] == "transfer"]
    assert len(learned) == 6


# ----------------------------------------------------------------------------------------- the folder


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of files of one's own, run, and its recipe gone elsewhere."""
    folder = tmp_path_factory.mktemp("own")
    write_world(folder / "world", 80, languages=("en", "near"))
    shutil.copy(folder / "world" / "en-near.tsv", folder / "near.tsv")
    recipe = small_study.RECIPE.replace("world:text/en-near.tsv", "near.tsv").replace(
        'text.far = "world:text/en-far.tsv"\n', ""
    )
    recipe = recipe.replace('methods = ["centring", "rotation", "gradient"]', 'methods = ["centring"]')
    written = small_study.write(folder, recipe.replace("gradient", "idle-method"))
    assert not study(written, out=folder / "out", threads=1).failed
    written.unlink()
    return folder / "out"


def test_the_folder_itself_can_be_run_again(done: Path) -> None:
    again = study(done / "recipe.toml", out=done)
    assert again.computed == [] and not again.failed
    assert read_json(done / "environment.json")["threads"] == 1, "as the cells that stand had"
    assert not Path(read_json(done / "study.json")["base"]).is_absolute()


def test_a_mistake_in_a_path_is_still_told(done: Path, tmp_path: Path) -> None:
    """Only a study's own recipe has a place of its own."""
    shutil.copy(done / "study.json", tmp_path)
    shutil.copy(done / "recipe.toml", tmp_path / "mine.toml")
    with pytest.raises(Mistakes, match=r"no such file: near\.tsv"):
        check_study(tmp_path / "mine.toml")


def test_other_threads_are_told(done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    shutil.copytree(done, out)
    told = done.parent / "near.tsv"
    assert told.is_file()
    recipe = tmp_path / "recipe.toml"
    text = (done / "recipe.toml").read_text().replace('"near.tsv"', f'"{told}"')
    recipe.write_text(text)
    study(recipe, out=out, threads=2, changes=["measure.words.rounds=11"], show=True)
    assert read_json(out / "environment.json")["threads"] == [1, 2]
    assert "cells with 1 thread stand here" in capsys.readouterr().err


def test_what_is_left_of_trainings_is_pruned(done: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(done, out)
    (out / "cells" / ".align-0123456789ab.training" / "step-1").mkdir(parents=True)
    (out / "failures").mkdir(exist_ok=True)
    (out / "failures" / "align-0123456789ab.txt").write_text("gone")
    recipe = done / "recipe.toml"
    assert [one.key for one in prune_study(recipe, out=out)] == [".align-0123456789ab.training"]
    assert not list((out / "cells").glob(".*.training")) and not list((out / "failures").iterdir())
