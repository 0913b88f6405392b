"""What `calque check` says of settings that would do nothing, and of names that nothing has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import small_study

from calque.cli import main
from calque.errors import BadInput
from calque.pipeline import CompareRecipe
from calque.pipeline.linking import LinkRecipe
from calque.pipeline.measuring.common import MeasureRecipe
from calque.pipeline.transfersettings import TransferRecipe
from calque.study import check_study, load_study
from calque.study.names import BY_THE_STUDY
from calque.study.recipe import Mistakes
from calque.study.variants import SETTINGS


def told(recipe: Path, *changes: str) -> list[str]:
    """Every mistake in a recipe."""
    try:
        check_study(recipe, changes)
    except Mistakes as error:
        return error.found
    return []


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = small_study.write(tmp_path_factory.mktemp("task"), small_study.TASK)
    assert not told(recipe)
    return recipe


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = small_study.write(tmp_path_factory.mktemp("plain"))
    assert not told(recipe)
    return recipe


# ----------------------------------------------------------------------------------------- set by the study


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ("links.paths=[]", "give text.CODE"),
        ("links.languages=en,near", "give source, and text.CODE"),
        ("align.encoder=mlm", "give [encoders], and align.encoders for some of them"),
        ("align.weak.pairs=[]", "give [links]"),
        ("align.inputs={}", "leave it out: files are known by what they hold"),
        ('align.weak.vary.encoder=["mlm"]', "give [encoders], and align.encoders for some of them"),
        ("align.weak.transfer.seeds=5", "give seeds at the top"),
        ("measure.words.seed=3", "give seeds at the top"),
        ("measure.words.encoders=mlm", "give [encoders]"),
        ("measure.words.labels=a", "give names in [encoders] and align.methods"),
        ("measure.words.pairs=[]", "give [scored]"),
        ("transfer.seeds=5", "give seeds at the top"),
        ("transfer.ner.seed=5", "give seeds at the top"),
        ("transfer.ner.label=mine", "give names in [encoders] and align.methods"),
        ("transfer.ner.encoder=e5-small-q4", "give [encoders]"),
        ("compare.runs=[]", "give [transfer]"),
        ("compare.baseline=weak", "give against in the table of a method"),
        ("compare.pool=false", "leave it out: seeds are always pooled"),
    ],
)
def test_settings_that_the_study_sets_itself_are_mistakes(change: str, remedy: str, task: Path) -> None:
    where = change.partition("=")[0]
    extra = ["links.test=20"] if where.startswith("measure") else []
    assert f"{where}: the study sets this itself ({remedy})" in told(task, change, *extra)


def test_all_of_these_are_settings_of_their_verbs() -> None:
    known: dict[str, set[str]] = {
        "link": set(LinkRecipe.model_fields),
        "align": set(SETTINGS),
        "measure": set(MeasureRecipe.model_fields),
        "transfer": set(TransferRecipe.model_fields),
        "compare": set(CompareRecipe.model_fields),
    }
    assert BY_THE_STUDY.keys() == known.keys()
    for verb, names in BY_THE_STUDY.items():
        assert names.keys() <= known[verb]


# ----------------------------------------------------------------------------------------- names of nothing


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ("paper=wu2021", "paper: unknown paper 'wu2021' (did you mean wu2020?"),
        ("links.links.naer=here.links", "no links.text.naer that it links; did you mean near?"),
        ("links.links.naer=here.links", "links.links.naer: no such file: here.links"),
        ("align.dictionary.naer=here.txt", "align.dictionary.naer: no links of naer; did you mean near?"),
        ("align.dictionary.near=here.txt", "align.dictionary.near: no such file: here.txt"),
        ("align.dictionary.xx-notalang=here.txt", "align.dictionary.xx-notalang: unknown language"),
        ("transfer.ner.test.neer=world:a", "transfer.ner.test.neer: unknown language 'neer'"),
        ("transfer.ner.test={'near/xx-notalang'='world:a'}", "unknown language 'xx-notalang'"),
        ("transfer.ner.dev.neer=world:a", "transfer.ner.dev.neer: unknown language 'neer'"),
        ("transfer.ner.mixed=['neer=world:a,en=world:b']", "transfer.ner.mixed: unknown language 'neer'"),
        ("transfer.ner.test={}", "transfer.ner: nothing to test on (give transfer.ner.test.de = FILE)"),
        ("transfer={x=3}", "transfer.x: a setting of no task (give one a table, such as [transfer.ner])"),
        ("measure.sentences.text.neer=world:a", "measure.sentences.text.neer: unknown language 'neer'"),
        ("measure.words={}", "measure.words: nothing to measure on (give links.test = 500, or [scored])"),
        ("measure.lexicon.rounds=3", "measure.lexicon: no dictionary (give a file for each language"),
        ("encoders.v=neer=world:a.vec,en=world:b.vec", "encoders.v.neer: unknown language 'neer'"),
        ("encoders.v=/nowhere/at/all", "encoders.v: /nowhere/at/all: no such folder"),
        ("encoders.v=models/does/not/exist", "encoders.v: models/does/not/exist: no such folder"),
        ("encoders.v=en=nowhere.vec,de=b.vec", "encoders.v: no such file: nowhere.vec"),
        ("links.encoder=models/does/not/exist", "links.encoder: models/does/not/exist: no such folder"),
    ],
)  # fmt: skip
def test_names_of_nothing_are_mistakes(change: str, mistake: str, task: Path) -> None:
    found = told(task, change)
    assert any(mistake in one for one in found), found


def test_a_folder_beside_the_recipe_is_no_owner_on_a_hub(tmp_path: Path) -> None:
    recipe = small_study.write(tmp_path)
    assert not told(recipe, "encoders.v=models/tiny", "encoders.w=en=models/tiny,de=some/other")
    (tmp_path / "models" / "tny").mkdir(parents=True)
    found = told(recipe, "encoders.v=models/tiny", "encoders.w=en=models/tny,de=some/other")
    assert [one.partition(" (")[0] for one in found] == ["encoders.v: models/tiny: no such folder"]
    assert told(recipe, f"encoders.v={'long/' * 2000}v")


def test_measures_without_any_language_are_mistakes(tmp_path: Path) -> None:
    recipe = small_study.write(tmp_path, '[encoders]\nsmall = "e5-small-q4"\n[measure.words]\n')
    assert told(recipe) == ["measure.words: nothing to measure on (give links.test = 500, or [scored])"]


def test_settings_of_comparisons_are_checked_where_nothing_is_compared(plain: Path, task: Path) -> None:
    for recipe in (plain, task):
        (found,) = told(recipe, "compare.levl=0.1")
        assert found.startswith("compare: levl") and "did you mean level?" in found


# ----------------------------------------------------------------------------------------- --set


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("encoders.v=en=a.vec,de=b.vec", "en=a.vec,de=b.vec"),
        ("about=hello, world", "hello, world"),
        ("paper=a,b", "a,b"),
        ("data=one, two", "one, two"),
        ("align.dictionary.near=a, b.txt", "a, b.txt"),
        ("links.links.near=a, b.links", "a, b.links"),
        ("measure.words.layers=0,4,-1", "0,4,-1"),
        ("align.layers=0,last", "0,last"),
        ("seeds=3,4", [3, 4]),
        ("align.vary.layers=all,last", ["all", "last"]),
        ("align.methods=centring", ["centring"]),
        ("links.filters=different,one-to-one", ["different", "one-to-one"]),
        ("links.text.near=a.en,a.near", ["a.en", "a.near"]),
    ],
)
def test_a_list_is_set_only_where_there_may_be_one(change: str, found: object, plain: Path) -> None:
    held: Any = load_study(plain, [change]).recipe.model_dump(mode="json")
    for name in change.partition("=")[0].split("."):
        held = held[name]
    assert held == found


# ------------------------------------------------------------------------ told in words, each once


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("align.vary.method=['centring','rotation']", "align.vary.method: is no axis"),
        ("align.centring.vary={preset=['wu2020']}", "align.centring.vary.preset: is no axis"),
        ("align.rotatoin.layers='last'", "align.rotatoin: a table of no method; did you mean rotation?"),
        ("align.anything.steps=2", "align.anything: a table of no method"),
        ("align.methods=", "align.methods: one has no name"),
        ("align={methods=['l2'],l2={steps=-5}}", "align.l2: steps is -5 (at least 1)"),
        ("align={methods=['weak'],weak={temperature=0}}", "temperature"),
        ("source=eng", "source: language 'eng' (write en)"),
        ("links.text.ger='world:text/en-near.tsv'", "links.text.ger: language 'ger' (write de)"),
        ("seeds=[-1]", "seeds.0: should be at least 0 (given: -1)"),
        ("seeds=[]", "seeds: should have at least 1"),
        ("align.layers=99", 'layers: should be text, such as "last" (given: 99)'),
        ("align=3", "align: should be a table (given: 3)"),
        ("links.text.near='nowhere.tsv'", "links.text.near: no such file: nowhere.tsv"),
        ("align.vary.laers=['1']", "align.vary.laers: unknown setting; did you mean layers"),
        ("align.gradient={method='l2',vary={stepz=[1]}}", "align.gradient.vary.stepz: unknown"),
        ("align.gradient={method='l2',vary={steps=[]}}", "align.gradient.vary.steps: no values"),
        ("links.preset='small.toml'", "links: preset: unknown setting"),
        ("encoders.x=", "encoders.x: is empty"),
        ("encoders.x=e5-small-q5", "did you mean e5-small-q4?"),
        ("align.metods=['a']", "align.metods: unknown setting; did you mean methods?"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_once_and_in_words(change: str, told: str, tmp_path: Path) -> None:
    recipe = small_study.write(tmp_path, small_study.RECIPE.replace("gradient.steps = 20\n", ""))
    with pytest.raises(Mistakes) as found:
        check_study(recipe, [change])
    about = [one for one in found.value.found if told in one]
    assert about and (len(found.value.found) == 1 or not change.startswith(("seeds", "links", "align.vary")))
    assert not any("Input should" in one or "Tuple" in one for one in found.value.found)


def test_a_folder_is_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        check_study(tmp_path)
    (tmp_path / "recipe.toml").write_text("")
    with pytest.raises(BadInput, match=re.escape(f"give {tmp_path / 'recipe.toml'}")):
        check_study(tmp_path)


def test_mistakes_are_there_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["check", str(small_study.write(tmp_path)), "--set", "seeds=[-1]", "--json"]
    monkeypatch.setattr("sys.argv", ["calque", *asked])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert json.loads(capsys.readouterr().out) == {"mistakes": ["seeds.0: should be at least 0 (given: -1)"]}


def test_a_folder_with_a_name_like_that_of_an_encoder_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "e5-small-q8").mkdir()
    recipe = small_study.write(tmp_path)
    assert told(recipe, "encoders.counts=e5-small-q8") == []
    assert "did you mean e5-small-q4?" in told(recipe, "encoders.counts=e5-small-q9")[0]


def test_encoders_beside_each_other_may_be_measured_on_any_pairs(tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    text = '[encoders]\na = "x"\nb = "y"\n[links]\npairs.de = "pairs"\n[measure.words]\n'
    recipe = small_study.write(tmp_path, text)
    assert told(recipe) == []
    assert "links.pairs.de" in told(recipe, "align.methods=['centring']")[0]
