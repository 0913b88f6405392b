"""A study end to end: what is computed when, by whom, and what comes of failures and kills."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import small_study

from calque.cli import main
from calque.errors import BadInput, BadSetting, CannotWrite
from calque.files import read_json
from calque.locks import locked
from calque.report.page import write_page
from calque.report.study.reading import DONE, read_study
from calque.study import check_study, plan_study, prune_study, study
from calque.study.cells import Cell
from calque.study.folder import claim, heal
from calque.study.folder import results as study_results
from calque.study.plan import Plan
from calque.study.recipe import Mistakes, load_study
from calque.study.verbs import compute
from calque.text.world import write_world


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_study.write(tmp_path_factory.mktemp("recipe"))


@pytest.fixture(scope="module")
def done(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small study, run undisturbed."""
    out = tmp_path_factory.mktemp("study") / "run"
    run = study(recipe, out=out, threads=1)
    assert not run.failed and not run.left_out
    return out


def results(folder: Path) -> bytes:
    return (folder / "results.jsonl").read_bytes()


def test_every_method_is_measured_with_every_seed_that_matters(done: Path) -> None:
    told = read_json(done / "study.json")
    verbs = [cell["verb"] for cell in told["cells"]]
    # World, two bitexts, two methods without a seed and one with two, and each measure twice.
    assert {verb: verbs.count(verb) for verb in set(verbs)} == {
        "world": 1, "link": 2, "align": 4, "measure words": 2, "measure sentences": 2,
    }  # fmt: skip
    assert told["groups"] == [
        {"encoder": "counts", "baseline": "counts", "methods": ["centring", "rotation", "gradient"]}
    ]
    held = [json.loads(line) for line in results(done).splitlines()]
    found = {(one["encoder"], one.get("seed", 0)) for one in held if one["task"] == "word-retrieval"}
    assert found == {
        (label, seed) for label in ("counts", "centring", "rotation", "gradient") for seed in (0, 1)
    }
    assert (done / "report.html").stat().st_size > 10_000
    assert read_json(done / "finished.json")["verb"] == "study"


def test_nothing_is_computed_twice(recipe: Path, done: Path) -> None:
    before = results(done)
    again = study(recipe, out=done, threads=1)
    assert again.computed == [] and len(again.done) == 11
    assert results(done) == before


def test_a_change_recomputes_only_what_depends_on_it(recipe: Path, done: Path) -> None:
    planned = plan_study(recipe, out=done, changes=["align.gradient.steps=21"])
    new = [cell for key, cell in planned.plan.cells.items() if key not in planned.standing]
    assert sorted({cell.verb for cell in new}) == ["align", "measure sentences", "measure words"]
    assert {cell.title.split(",")[0] for cell in new if cell.verb == "align"} == {"gradient"}
    # An estimate is that of cells like it.
    assert all(planned.seconds[key] is not None for key in planned.plan.cells)


def test_a_changed_file_is_another_cell_and_a_moved_one_is_not(
    recipe: Path, done: Path, tmp_path: Path
) -> None:
    text = next((done / "cells").glob("world-*")) / "text"
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for code in ("near", "far"):
            (tmp_path / folder / f"{code}.tsv").write_bytes((text / f"en-{code}.tsv").read_bytes())

    def keys(folder: str) -> set[str]:
        changes = [f"links.text.{code}={tmp_path / folder / f'{code}.tsv'}" for code in ("near", "far")]
        planned = plan_study(recipe, out=tmp_path / "out", changes=changes)
        return {(key, cell.title) for key, cell in planned.plan.cells.items()}

    first = keys("one")
    assert keys("two") == first
    (tmp_path / "two" / "far.tsv").write_text("a b\tc d\n" * 40, encoding="utf-8")
    changed = keys("two")
    assert {title for _, title in first & changed} == {"", "links near"}


def test_processes_give_the_same_bytes(recipe: Path, done: Path, tmp_path: Path) -> None:
    run = study(recipe, out=tmp_path / "two", workers=2, threads=1)
    assert len(run.computed) == 11
    assert results(tmp_path / "two") == results(done)


@pytest.mark.slow
def test_ray_gives_the_same_bytes(recipe: Path, done: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    run = study(recipe, out=tmp_path / "ray", workers="ray", threads=1)
    assert len(run.computed) == 11
    assert results(tmp_path / "ray") == results(done)


def test_killed_twenty_times_it_ends_the_same(recipe: Path, done: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    driver = Path(small_study.__file__).with_name("killed.py")
    ended = subprocess.run(
        [sys.executable, str(driver), str(recipe), str(out), "20"],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "20 kills" in ended.stdout, ended.stdout
    assert results(out) == results(done)
    cells = {path.name for path in (out / "cells").iterdir() if not path.name.startswith(".")}
    assert cells == {path.name for path in (done / "cells").iterdir() if not path.name.startswith(".")}


def test_a_failing_cell_does_not_stop_the_others(recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    # More sentences than there are: found out only when the links are there.
    changes = ["align.gradient.vary={size=[10000]}"]
    run = study(recipe, out=out, changes=changes, threads=1)
    assert run.failed and all(key.startswith("sample-") for key in run.failed)
    assert all("at most" in told for told in run.failed.values())
    told = read_json(out / "study.json")
    states = {cell["title"]: cell["status"] for cell in told["cells"]}
    assert states["gradient, size 10000, seed 0"] == "left out"
    assert all(cell["status"] == "done" for cell in told["cells"] if cell["verb"].startswith("measure"))
    held = [json.loads(line) for line in results(out).splitlines()]
    assert {one["encoder"] for one in held if one["task"] == "word-retrieval"} == {
        "counts",
        "centring",
        "rotation",
    }
    assert not (out / "finished.json").exists()
    assert "at most" in next((out / "failures").iterdir()).read_text()
    # Mended, it goes on: only what failed and what rests on it is new.
    mended = study(recipe, out=out, changes=["align.gradient.vary={size=[40]}"], threads=1)
    assert not mended.failed
    assert {key.split("-")[0] for key in mended.computed} == {"sample", "align", "measure"}


def test_tasks_are_compared_over_seeds_of_alignment_and_task(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = study(small_study.write(tmp_path, small_study.TASK), out=out, threads=1)
    assert not run.failed
    (compared,) = (out / "cells").glob("compare-*")
    told = read_json(compared / "artifacts" / "comparison.json")
    assert told["baseline"] == "mlm"
    assert {(row["method"], tuple(row["seeds"])) for row in told["rows"]} == {
        ("centring", (3, 3)), ("weak", (3, 3)),
    }  # fmt: skip
    # Every seed's task is learned over the alignment of that seed.
    encoders = {
        (cell["axes"]["seed"], need)
        for cell in read_json(out / "study.json")["cells"]
        if cell["verb"] == "transfer" and cell["axes"]["method"] == "weak"
        for need in cell["needs"]
        if need.startswith("align")
    }
    assert len(encoders) == 3 and len({need for _, need in encoders}) == 3


# ----------------------------------------------------------------------------------------- mistakes


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    text = small_study.RECIPE.replace('"rotation"', '"rotatoin"').replace("test = 30", "tset = 30")
    text = text.replace("[measure.words]", "[measure.wrds]").replace("text.far", "text.faar")
    text += (
        '\n[transfer.ner]\ntrain.en = "nowhere.tsv"\ntest.far = "world:tasks/ner/far.test.tsv"\nepoch = 3\n'
    )
    with pytest.raises(Mistakes) as caught:
        check_study(small_study.write(tmp_path, text))
    told = "\n".join(caught.value.found)
    assert "align.rotatoin: unknown method 'rotatoin' (did you mean rotation?" in told
    assert "links: tset" in told and "did you mean test?" in told
    assert "measure.wrds: unknown measure; did you mean words?" in told
    assert "faar" in told
    assert "transfer.ner.train.en: no such file: nowhere.tsv" in told
    assert "epoch: unknown setting; did you mean epochs?" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("seeds = [0", "not TOML"),
        ("encoder = {}\n", "did you mean encoders?"),
        ("[encoders]\n", "encoders"),
        ('seeds = ["a"]\n[encoders]\na = "b"\n', "seeds.0"),
        (
            '[encoders]\na = "b"\n[align]\nmehtods = ["l2"]\n',
            "align.mehtods: unknown setting; did you mean methods?",
        ),
        ('[encoders]\na = "b"\n[align]\nmethods = ["l2"]\n', "nothing to align by"),
    ],
)
def test_bad_recipes(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_study(small_study.write(tmp_path, text))
    assert told in str(caught.value)


def test_settings_are_changed_by_name(recipe: Path) -> None:
    changed = load_study(
        recipe, ["align.methods=centring", "seeds=5", "align.vary.size=10,20", "about=so"]
    ).recipe
    assert changed.align.methods == ("centring",)
    assert changed.seeds == (5,) and changed.about == "so"
    assert changed.align.vary == {"size": [10, 20]}
    for wrong in ("align.methods", "=3", "seeds.a=3"):
        with pytest.raises(BadSetting):
            load_study(recipe, [wrong])


def test_unknown_names_are_told(tmp_path: Path, recipe: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        load_study(tmp_path / "none.toml")
    with pytest.raises(BadSetting, match="unknown study"):
        load_study("wu2021-table3")
    for wrong in ("0", "two"):
        with pytest.raises(BadSetting, match="workers"):
            study(recipe, out=tmp_path / "out", workers=wrong)


def test_a_folder_of_something_else_is_refused(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(BadSetting, match="not a study"):
        study(recipe, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("names", [["recipe.toml"], ["results.jsonl"], ["recipe.toml", "finished.json"]])
def test_a_recipe_of_ones_own_is_not_replaced(names: list[str], recipe: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for name in names:
        shutil.copyfile(recipe, own / name)
    with pytest.raises(BadSetting, match="exists and is not a study of calque"):
        study(own / names[0], out=own, changes=["seeds=0"])
    assert all((own / name).read_bytes() == recipe.read_bytes() for name in names)


def test_a_place_that_can_be_no_folder_is_told(recipe: Path, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"^/: exists and is not a study"):
        study(recipe, out="/")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CannotWrite, match=r"link: cannot be written.*\(.*another --out"):
        study(recipe, out=tmp_path / "link")


def test_two_at_once_are_refused(recipe: Path, done: Path) -> None:
    with locked(done), ThreadPoolExecutor(1) as other:
        with pytest.raises(BadSetting, match="another process is computing this study"):
            other.submit(study, recipe, out=done).result()


def test_encoders_that_are_made_are_told_by_their_names(tmp_path: Path) -> None:
    cells = [
        Cell.of(verb, name, {"seed": 0, "width": width}, {"encoder": name, "seed": "0"}, "encoders")
        for verb, name, width in (
            ("pretrain", "small", 8),
            ("pretrain", "large", 16),
            ("extend", "longer", 8),
        )
    ]
    for cell in cells:
        folder = tmp_path / "cells" / cell.key
        folder.mkdir(parents=True)
        (folder / "results.jsonl").write_text('{"encoder": "4x96", "task": "masked", "value": 0.5}\n')
    plan = Plan({cell.key: cell for cell in cells}, (), {}, {}, ())
    held = [json.loads(line) for line in study_results(tmp_path, plan.cells, frozenset(plan.cells))]
    assert [one["encoder"] for one in held] == ["large", "longer", "small"]


def sizes(out: Path) -> dict[int, int]:
    """Bytes by inode: what lies in a folder's cells, shared files once."""
    told = (path.stat() for path in (out / "cells").rglob("*") if path.is_file())
    return {one.st_ino: one.st_size for one in told}


def test_cells_of_earlier_settings_are_removed_when_asked(recipe: Path, done: Path, tmp_path: Path) -> None:
    out, fewer = tmp_path / "study", ["align.methods=centring"]
    shutil.copytree(done, out)
    before = {path.name for path in (out / "cells").iterdir()}
    assert prune_study(recipe, out=out) == [], "all are still named"
    left = {one.key for one in prune_study(recipe, out=out, changes=fewer, dry_run=True)}
    kept = set(plan_study(recipe, out=out, changes=fewer).plan.cells)
    assert left and left == before - kept
    assert {path.name for path in (out / "cells").iterdir()} == before, "a dry run removes nothing"
    size = sizes(out)
    removed = prune_study(recipe, out=out, changes=fewer)
    assert {one.key for one in removed} == left and all(one.size > 0 for one in removed)
    assert sum(one.size for one in removed) == sum(size.values()) - sum(sizes(out).values())
    assert {path.name for path in (out / "cells").iterdir()} == before & kept
    assert not before & set(study(recipe, out=out, changes=fewer).computed), "what is named was left"
    with pytest.raises(BadSetting, match="no study here"):
        prune_study(recipe, out=tmp_path / "nowhere")


def test_only_cells_are_removed(recipe: Path, done: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    shutil.copytree(done, out)
    for name in ("thesis", "notes-2024", "align-000000000000"):
        (out / "cells" / name).mkdir()
    (out / "failures").mkdir(exist_ok=True)
    (out / "failures" / "mine.txt").touch()
    assert [one.key for one in prune_study(recipe, out=out)] == ["align-000000000000"]
    assert (out / "cells" / "thesis").is_dir() and (out / "failures" / "mine.txt").is_file()


@pytest.mark.parametrize("theirs", ["cells/stem/data.csv", "cells/data.csv", "cells/align-000000000000", "x"])
def test_a_folder_of_something_else_is_left_alone(theirs: str, recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / theirs).parent.mkdir(exist_ok=True)
    (tmp_path / theirs).write_text("theirs")
    if theirs.endswith("0"):
        (tmp_path / "analysis.ipynb").touch()
    before = sorted(tmp_path.rglob("*"))
    for run in (study, prune_study):
        with pytest.raises(BadSetting, match="is not a study of calque"):
            run(recipe, out=tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_a_killed_study_left_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "cells" / ".align-000000000000.training").mkdir(parents=True)
    (tmp_path / "cells" / "align-000000000000").mkdir()
    for name in ("recipe.toml", ".study.json.ab12cd34.partial", "report.html"):
        (tmp_path / name).touch()
    before = sorted(tmp_path.rglob("*"))
    claim(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_study_that_failed_in_part_keeps_what_its_page_rests_on(recipe: Path, tmp_path: Path) -> None:
    out, changes = tmp_path / "study", ["align.gradient.vary={size=[10000]}"]
    run = study(recipe, out=out, changes=changes, threads=1)
    assert run.failed
    before = results(out)
    assert prune_study(recipe, out=out, changes=changes) == []
    study(recipe, out=out, changes=changes, threads=1)
    assert results(out) == before


def test_parts_of_a_task_that_was_cut_off_are_kept_while_it_is_named(
    recipe: Path, done: Path, tmp_path: Path
) -> None:
    out = tmp_path / "study"
    shutil.copytree(done, out)
    named = next((out / "cells").glob("align-*")).name
    for name in (f".{named}.parts", f".{named}.training", ".align-000000000000.parts"):
        (out / "cells" / name).mkdir()
    assert [one.key for one in prune_study(recipe, out=out)] == [".align-000000000000.parts"]


# --------------------------------------------------------------------------------------- under way


def of_ones_own(folder: Path) -> tuple[Path, Path]:
    """The small study of a text that lies beside it, and that text."""
    write_world(folder / "world", 80, languages=("en", "near"))
    text = small_study.RECIPE.replace("world:text/en-near.tsv", "world/en-near.tsv")
    text = text.replace('text.far = "world:text/en-far.tsv"\n', "")
    return small_study.write(folder, text), folder / "world" / "en-near.tsv"


def edited(path: Path, change: Callable[[], None]) -> Callable[..., object]:
    """Changes a file when the first cell begins, and puts it back when the next one does."""
    before, calls = path.read_bytes(), []

    def begin(verb: str, *args: object) -> object:
        calls.append(verb)
        if len(calls) == 1:
            change()
        elif len(calls) == 2:
            path.write_bytes(before)
        return compute(verb, *args)

    return begin


def test_what_read_a_file_that_was_edited_meanwhile_does_not_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, path = of_ones_own(tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    swap = edited(path, lambda: path.write_text("".join(reversed(lines)), encoding="utf-8"))
    monkeypatch.setattr("calque.study.verbs.compute", swap)
    run = study(written, out=tmp_path / "out", threads=1)
    assert any("changed while the study ran" in told for told in run.failed.values())
    monkeypatch.undo()
    assert not study(written, out=tmp_path / "out", threads=1).failed
    study(written, out=tmp_path / "clean", threads=1)
    assert results(tmp_path / "out") == results(tmp_path / "clean")


def test_a_study_that_was_cut_off_has_a_page(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, count = tmp_path / "study", iter(range(100))

    def some(verb: str, *args: object) -> object:
        if verb == "measure sentences" and next(count) == 1:
            raise KeyboardInterrupt
        return compute(verb, *args)

    monkeypatch.setattr("calque.study.verbs.compute", some)
    with pytest.raises(KeyboardInterrupt):
        study(recipe, out=out, threads=1)
    held = read_study(out)
    planned = plan_study(recipe, out=out, changes=["align.centring.layers=last"])
    fresh = [
        key for key, one in planned.plan.cells.items() if key not in planned.standing and one.verb == "align"
    ]
    assert fresh and all(planned.seconds[key] for key in fresh), "as those took that were there before"
    assert held.waiting and held.of_status(DONE) and all(cell.seconds for cell in held.of_status(DONE))
    page = write_page(out).read_text(encoding="utf-8")
    assert "not run yet" in page and not (out / "finished.json").exists()
    monkeypatch.undo()
    study(recipe, out=out, threads=1)
    assert (out / "finished.json").exists() and not read_study(out).waiting


def test_a_cell_that_lost_results_is_computed_again(recipe: Path, done: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    shutil.copytree(done, out)
    lines = next((out / "cells").glob("measure-words-*/results.jsonl"))
    lines.write_bytes(b"".join(lines.read_bytes().splitlines(keepends=True)[:-1]))
    run = study(recipe, out=out, threads=1)
    assert run.computed == [lines.parent.name] and results(out) == results(done)


def test_a_damaged_cell_is_computed_again(recipe: Path, done: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    shutil.copytree(done, out)
    links = next((out / "cells").glob("link-*/train/*.npy"))
    links.write_bytes(links.read_bytes()[:-1] + b"?")
    run = study(recipe, out=out, threads=1)
    assert len(run.computed) == 1 and run.computed[0].startswith("link") and results(out) == results(done)


def test_what_cannot_be_read_today_is_not_removed(
    recipe: Path, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "study"
    shutil.copytree(done, out)

    def broken(path: Path) -> int:
        raise OSError(errno.EIO, "Input/output error", str(path))

    monkeypatch.setattr("calque.study.folder.checksum", broken)
    heal(out, plan_study(recipe, out=out).plan.cells)
    assert {path.name for path in (out / "cells").iterdir()} == {p.name for p in (done / "cells").iterdir()}


def test_what_failed_earlier_is_known_after_a_run_that_was_cut_off(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, changes = tmp_path / "study", ["align.gradient.vary={size=[10000]}"]
    assert study(recipe, out=out, changes=changes, threads=1).failed

    def stop(*args: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("calque.study.verbs.compute", stop)
    with pytest.raises(KeyboardInterrupt):
        study(recipe, out=out, changes=changes, threads=1)
    assert prune_study(recipe, out=out, changes=changes, dry_run=True) == []
    monkeypatch.undo()
    assert study(recipe, out=out, changes=["align.methods=centring"], threads=1).failed == {}


def test_damage_in_what_stands_in_place_of_what_failed_is_mended(recipe: Path, tmp_path: Path) -> None:
    out, changes = tmp_path / "study", ["align.gradient.vary={size=[10000]}"]
    study(recipe, out=out, changes=changes, threads=1)
    before = results(out)
    lines = next((out / "cells").glob("measure-words-*/results.jsonl"))
    lines.write_bytes(b"".join(lines.read_bytes().splitlines(keepends=True)[:-1]))
    run = study(recipe, out=out, changes=changes, threads=1)
    assert lines.parent.name in run.computed and results(out) == before


def test_a_file_that_stays_edited_is_read_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, path = of_ones_own(tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)

    def edit(verb: str, *args: object) -> object:
        path.write_text("".join(reversed(lines)), encoding="utf-8")
        return compute(verb, *args)

    monkeypatch.setattr("calque.study.verbs.compute", edit)
    run = study(written, out=tmp_path / "out", threads=1)
    assert run.failed == {} and run.left_out == [] and (tmp_path / "out" / "finished.json").exists()
    monkeypatch.undo()
    assert study(written, out=tmp_path / "out", threads=1).computed == []


@pytest.mark.parametrize("name", ["study.json", "cost.json", "environment.json"])
@pytest.mark.parametrize("held", ["{", "[]", '{"cells": [1, {}]}', '{"cells": 3, "threads": "x"}', ""])
def test_files_that_can_be_made_again_stop_nothing(
    recipe: Path, done: Path, tmp_path: Path, name: str, held: str
) -> None:
    out = tmp_path / "study"
    shutil.copytree(done, out)
    for path in (out / name, *(out / "cells").glob(f"*/{name}")):
        path.write_text(held)
    assert prune_study(recipe, out=out) == []
    assert plan_study(recipe, out=out).standing
    run = study(recipe, out=out, threads=1)
    assert not run.failed and run.page and results(out) == results(done)
    assert run.computed == []


def test_threads_are_those_of_the_cells_that_stand(recipe: Path, done: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    shutil.copytree(done, out)
    study(recipe, out=out, threads=2)
    assert read_json(out / "environment.json")["threads"] == 1, "nothing was computed with two"
    shutil.rmtree(next((out / "cells").glob("measure-*")))
    study(recipe, out=out, threads=2)
    assert read_json(out / "environment.json")["threads"] == [1, 2]


def test_a_failure_without_words_is_none_the_less_one(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def silent(*args: object) -> None:
        raise TimeoutError

    monkeypatch.setattr("calque.study.verbs.compute", silent)
    run = study(recipe, out=tmp_path / "study", threads=1, show=True)
    assert set(run.failed.values()) == {"TimeoutError"}
    assert "failed: TimeoutError" in capfd.readouterr().err
    assert run.page is None


def test_measures_of_one_kind_are_told_apart(recipe: Path, done: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    shutil.copytree(done, out)
    study(recipe, out=out, changes=["measure.many={measure='words', keep_many=true, rounds=10}"], threads=1)
    held = [json.loads(line) for line in results(out).splitlines()]
    tasks = {one["task"] for one in held}
    assert {"word-retrieval", "word-retrieval-many"} <= tasks
    assert [one for one in held if one["task"] == "word-retrieval"] == [
        one for one in map(json.loads, results(done).splitlines()) if one["task"] == "word-retrieval"
    ]


def test_a_quiet_study_tells_what_failed(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    given = ["--set", "align.gradient.vary={size=[10000]}", "--threads", "1", "--quiet"]
    monkeypatch.setattr("sys.argv", ["calque", "study", str(recipe), "--out", str(tmp_path / "out"), *given])
    with pytest.raises(SystemExit) as stop:
        main()
    told = capfd.readouterr()
    assert stop.value.code == 1 and told.out == "" and "failed: sample 10000 of near, seed 0" in told.err
