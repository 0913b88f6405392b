import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.files import write_json, write_text
from calque.report.collect import Panel, collect, spread
from calque.report.page import write_page


def test_everything_in_a_run_folder_is_read(made, scored) -> None:
    results = scored()
    run = collect(
        made("run", results, links=[{"source": ["a", "b"], "target": ["c"], "links": [[1, 0, 0.5]]}])
    )
    assert sorted(run.results, key=repr) == sorted(results, key=repr)
    assert run.verb == "measure" and run.languages == ("en", "ru") and run.finished is not None
    assert run.grids[0].links == ((1, 0, 0.5),)
    assert run.examples[0].query.word == "bank" and run.examples[0].query.index == 4
    assert run.examples[0].retrieved["rotated"].hit and not run.examples[0].retrieved["base"].hit
    assert run.counts["scored"] == 2586 and run.cost["seconds"] == 192.4
    assert run.about is None and run.senses == ()


def test_missing_parts_are_empty(tmp_path: Path) -> None:
    write_text(tmp_path / "run" / "results.jsonl", "")
    run = collect(tmp_path / "run")
    assert (run.results, run.examples, run.grids, run.panels, run.finished) == ((), (), (), (), None)


def test_a_folder_of_runs_gives_each(made, scored, tmp_path: Path) -> None:
    made("b", scored(bins=False)), made("a", scored(bins=False)), (tmp_path / "other").mkdir()
    run = collect(tmp_path)
    assert [part.name for part in run.parts] == ["a", "b"]
    assert [panel.run for panel in run.panels] == ["a", "b"]


@pytest.mark.parametrize("exists", [True, False])
def test_what_is_no_run_is_refused_with_a_remedy(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "nothing"
    if exists:
        folder.mkdir()
    with pytest.raises(BadInput, match="nothing") as told:
        collect(folder)
    assert told.value.remedy


@pytest.mark.parametrize(
    ("name", "held", "told"),
    [
        ("links", [{"source": ["a"], "target": ["b"], "links": [[0, 1, 1.0]]}], "record 1.*link 0-1"),
        ("links", [{"source": ["a"], "links": []}], "record 1.*target"),
        ("examples", [{"query": "x", "gold": {"word": "y"}, "retrieved": ["z"]}], "record 1"),
        ("examples", {"query": "x"}, "list"),
        ("counts", [1, 2], "names and values"),
        ("senses", [{"word": "x", "languages": ["en"], "occurrences": []}], "record 1.*two codes"),
        ("senses", [{"languages": ["en", "de"], "occurrences": []}], "record 1.*word"),
        ("about", {"title": "t"}, "summary"),
        ("about", {"title": "t", "summary": "s", "next": [{"text": "x"}]}, "command"),
    ],
)
def test_a_broken_artifact_is_named(made, scored, name: str, held: object, told: str) -> None:
    folder = made("run", scored(layers=(1,), bins=False))
    write_json(folder / "artifacts" / f"{name}.json", held)
    with pytest.raises(BadInput, match=told) as error:
        collect(folder)
    assert f"{name}.json" in str(error.value)


@pytest.mark.parametrize("name", ["heatmaps", "histograms", "projections", "scatters", "senses", "counts"])
def test_an_artifact_that_is_no_json_is_named(made, name: str) -> None:
    folder = made("run", [])
    write_text(folder / "artifacts" / f"{name}.json", '[{"title": ')
    with pytest.raises(BadInput, match=rf"{name}\.json"):
        collect(folder)


def test_a_run_that_left_pictures_alone_is_a_run(tmp_path: Path) -> None:
    from run_folders import projection, write_run

    write_run(tmp_path / "plane", "measure projection", [], projections=[projection(pairs=2)])
    assert [part.name for part in collect(tmp_path).parts] == ["plane"]


@pytest.mark.parametrize("text", ["= 3", "verb ="])
def test_a_broken_recipe_is_named(made, text: str) -> None:
    folder = made("run", [])
    write_text(folder / "recipe.toml", text)
    with pytest.raises(BadInput, match=r"recipe\.toml: not TOML"):
        collect(folder)


def test_a_figure_that_is_not_a_number_is_refused(made, scored) -> None:
    folder = made("run", scored(layers=(1,), bins=False))
    held = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    bad = '{"task": "t", "metric": "m", "value": NaN, "languages": ["a", "b"], "encoder": "e"}'
    write_text(folder / "results.jsonl", "\n".join([held[0], bad]) + "\n")
    with pytest.raises(BadInput, match=r"results\.jsonl:2: .*not a number"):
        collect(folder)


def test_differences_whose_figures_are_lost_are_no_picture(made, scored) -> None:
    folder = made("run", [r for r in scored(layers=(1,), bins=False) if r.baseline is not None])
    assert collect(folder).results and collect(folder).panels == ()
    assert write_page(folder).is_file()


@pytest.mark.parametrize("huge", [10**400, 1e300, -(10**400)])
def test_numbers_beyond_all_bounds(made, scored, huge: float) -> None:
    folder = made("run", scored(layers=(1,), bins=False))
    write_json(folder / "cost.json", {"seconds": huge, "peak_memory_mb": huge})
    write_text(folder / "recipe.toml", 'verb = "measure"\nlabels = 5\n')
    assert write_page(folder).is_file()
    write_json(
        folder / "artifacts" / "links.json", [{"source": ["a"], "target": ["b"], "links": [[0, 0, huge]]}]
    )
    with pytest.raises(BadInput, match=r"record 1 does not fit.*too large"):
        collect(folder)


def test_the_baseline_leads_whatever_its_name(made, scored) -> None:
    panel = collect(made("run", scored(("zero", "alpha", "beta"), layers=(3, 12)))).panels[0]
    assert panel.encoders == ("zero", "alpha", "beta") and panel.baseline == "zero"
    assert panel.directions == ("both", "forward", "backward") and panel.layers == (3, 12)


def test_the_others_stand_as_the_recipe_names_them(made, scored) -> None:
    folder = made("run", scored(("m", "a", "z"), layers=(1,), bins=False))
    write_text(folder / "recipe.toml", 'labels = ["m", "z", "a"]\n')
    assert collect(folder).panels[0].encoders == ("m", "z", "a")


def test_runs_that_measured_nothing_do_not_crowd_a_folder(made, scored, tmp_path: Path) -> None:
    made("world", None, examples=None, verb="world"), made("words", scored(layers=(1,), bins=False))
    assert [part.name for part in collect(tmp_path).parts] == ["words"]


def test_the_best_layer_of_a_distance_is_the_lowest(scored) -> None:
    results = tuple(scored(("base",), bins=False))
    accuracy = Panel("run", "task", "accuracy", "", ("en", "ru"), 0, results)
    distance = Panel("run", "task", "distance", "", ("en", "ru"), 0, results)
    values = {r.layer: r.value for r in results if r.direction == "both"}
    assert accuracy.best_layer("base") == max(values, key=values.__getitem__)
    assert distance.best_layer("base") == min(values, key=values.__getitem__)


def test_bins_stand_by_number_or_by_size(made, scored) -> None:
    groups = collect(made("run", scored(layers=(12,)))).panels[0].groups
    assert groups["rank-gap"] == ("0-9", "10-99", "100-999", "1000-9999", "unranked")
    assert groups["pos"][:3] == ("NOUN", "VERB", "ADP") and groups["pos"][-1] == "NUM"


def test_seeds_and_variants_are_panels_of_their_own(made, scored) -> None:
    from dataclasses import replace

    base = scored(("base",), layers=(1,), bins=False)
    other = [replace(r, seed=1) for r in base] + [replace(r, variant="program") for r in base]
    assert len(collect(made("run", base + other)).panels) == 3


@given(st.lists(st.integers(), min_size=1, unique=True), st.integers(2, 9))
def test_spread_keeps_the_ends_and_the_order(values: list[int], most: int) -> None:
    kept = spread(values, most)
    assert len(kept) == min(most, len(values)) and kept == [v for v in values if v in set(kept)]
    assert kept[0] == values[0] and kept[-1] == values[-1]


@pytest.mark.parametrize(
    ("file", "held"),
    [
        ("environment.json", '{"python": [{"0": []}, ["3.11"]]}'),
        ("artifacts/counts.json", '{"scored": [{"0": 2586}, 2586]}'),
    ],
)
def test_lists_of_different_things_are_told_as_they_are(made, scored, file: str, held: str) -> None:
    folder = made("run", scored(layers=(1,), bins=False))
    write_text(folder / file, held)
    assert write_page(folder).is_file()


def test_links_and_figures_beyond_all_bounds(made, scored) -> None:
    folder = made("run", scored(layers=(1,), bins=False))
    results = (folder / "results.jsonl").read_text(encoding="utf-8")
    first = json.loads(results.splitlines()[0])
    write_text(folder / "results.jsonl", json.dumps({**first, "high": 1e308}) + "\n")
    with pytest.raises(BadInput, match=r"results\.jsonl:1: not a result: high is 1e\+308"):
        collect(folder)
    write_text(folder / "results.jsonl", results)
    links = [{"source": ["a"], "target": ["b"], "links": [[0, float("inf"), 0.5]]}]
    write_json(folder / "artifacts" / "links.json", links)
    with pytest.raises(BadInput, match="record 1 does not fit: OverflowError"):
        collect(folder)
