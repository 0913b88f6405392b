"""`calque compare` where runs are missing: what can be compared is, and what was left out is told."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from calque.errors import BadInput, BadSetting
from calque.files import write_json
from calque.pipeline import Comparison, compare
from calque.pipeline.comparing import Row, mean_of
from calque.pipeline.transferring import NOTHING_VARIES, VARIES
from calque.report.collect import collect
from calque.stats.ratios import Ratio
from calque.stats.seeds import Runs, SeedTest, compare_means
from calque.stats.significance import holm
from calque.stats.translations import shared_clusters
from calque.store import save_items, save_results
from calque.types import Items, Result
from run_folders import portion, transfer_run

ACCURACY = Ratio("accuracy", {"right": 1}, {"count": 1})
#: Items of every language; English is learned from.
SIZES = {"en": 50, "de": 60, "fr": 70, "hi": 80}
SHARES = {"base": 0.5, "centring": 0.6, "weak": 0.7}
#: A run: its task, label, language and seed.
Cell = tuple[str, str, str, int]


def cells(
    *, tasks: Sequence[str] = ("nli",), labels: Iterable[str] = ("base", "centring"), seeds: int = 3
) -> list[Cell]:
    """All runs of a study, by task, label, language and seed."""
    return list(product(tasks, labels, SIZES, range(seeds)))


def planted(cell: Cell) -> np.ndarray:
    """Which items a run got right. Shape: (items,)."""
    task, label, language, seed = cell
    rng = np.random.default_rng([len(task), list(SHARES).index(label), SIZES[language], seed])
    share = SHARES[label] + rng.normal(0, 0.03)
    return (rng.random(SIZES[language]) < share).astype(float)


def right(task: str, label: str, language: str, seeds: Iterable[int]) -> np.ndarray:
    """Shape: (seeds, items)."""
    return np.stack([planted((task, label, language, seed)) for seed in seeds])


def runs(task: str, label: str, language: str, seeds: Sequence[int]) -> Runs:
    hits = right(task, label, language, seeds)
    place = np.arange(hits.shape[1], dtype=np.int64)
    return Runs({"right": hits, "count": np.ones(hits.shape)}, place, tuple(seeds))


def write(folder: Path, held: Sequence[Cell]) -> Path:
    """One run of `calque transfer` with all of these, which are of one task and label."""
    (task, label), languages = held[0][:2], list(dict.fromkeys(cell[2] for cell in held))
    transfer_run(folder, {}, task=task, label=label, test=[portion(code) for code in languages])
    save_results(folder / "results.jsonl", list(told(folder, held)))
    return folder


def told(folder: Path, held: Sequence[Cell]) -> Iterator[Result]:
    for task, label, language, seed in held:
        hits = planted((task, label, language, seed))
        place = np.arange(len(hits), dtype=np.int64)
        items = Items({"item": place}, place, {"right": hits, "count": np.ones(len(hits))})
        yield Result(
            f"transfer-{task}", "accuracy", float(hits.mean()), ("en", language), label,
            count=len(hits), seed=seed, items=save_items(folder / "items", items),
        )  # fmt: skip


@pytest.fixture
def compared(tmp_path: Path) -> Callable[..., Comparison]:
    """The comparison of runs that are a folder each."""

    def run(held: Iterable[Cell], **settings: Any) -> Comparison:
        folders = [write(tmp_path / "-".join(map(str, cell)), [cell]) for cell in held]
        return compare(folders, baseline="base", pool=True, rounds=200, **settings)

    return run


def rows(found: Comparison) -> Mapping[tuple[str, str, str], Row]:
    return {(row.task, row.language, row.method): row for row in (*found.rows, *found.tasks)}


def notes(found: Comparison) -> list[str]:
    """All but that tests of so many items each are not translations, which is so in most of these tests."""
    return [note for note in found.notes if "taken as independent" not in note]


def without(held: Iterable[Cell], *lost: tuple[object, ...]) -> list[Cell]:
    """All but those that fit one of these; None fits anything."""

    def gone(cell: Cell) -> bool:
        return any(all(a in (None, b) for a, b in zip(one, cell, strict=True)) for one in lost)

    return [cell for cell in held if not gone(cell)]


# ------------------------------------------------------------------------------------------ complete


@pytest.mark.parametrize("more", [{}, {"paired_seeds": True}, {"test": "randomisation"}])
def test_parts_that_are_complete_are_compared_as_whole_runs_are(
    compared: Callable[..., Comparison], tmp_path: Path, more: dict[str, Any]
) -> None:
    held = cells(tasks=("nli", "pos"), labels=SHARES)
    found = compared(held, **more)
    whole = [
        write(tmp_path / f"{task}-{label}", [cell for cell in held if cell[:2] == (task, label)])
        for task, label in product(("nli", "pos"), SHARES)
    ]
    assert found.record() == compare(whole, baseline="base", rounds=200, **more).record()
    assert notes(found) == [] and len(found.rows) == 16 and len(found.tasks) == 4
    options: dict[str, Any] = {**more, "rounds": 200}
    options["test"] = SeedTest.parse(options.get("test", SeedTest.BOTH))
    for (task, language, method), row in rows(found).items():
        codes = ("de", "fr", "hi") if language == "mean" else (language,)
        pairs = [(runs(task, "base", code, range(3)), runs(task, method, code, range(3))) for code in codes]
        assert row.comparison == compare_means(pairs, ACCURACY, **options)


def test_p_values_of_languages_and_of_means_are_two_families(compared: Callable[..., Comparison]) -> None:
    found = compared(cells(tasks=("nli", "pos"), labels=SHARES))
    for family in (found.rows, found.tasks):
        assert [row.verdict.corrected for row in family] == holm([row.comparison.p for row in family])


# ----------------------------------------------------------------------------- seeds of a language


def test_a_mean_is_over_the_seeds_that_all_its_languages_have(compared: Callable[..., Comparison]) -> None:
    lost = ("nli", "centring", "fr", 1)
    found = compared(without(cells(labels=SHARES), lost), test="seed-t")
    assert notes(found) == ["centring: nli: seed 1 is missing in fr; in the mean it is left out of centring"]
    seeds = {"base": (0, 1, 2), "centring": (0, 2), "weak": (0, 1, 2)}
    means = {
        label: np.mean([right("nli", label, code, own).mean(1) for code in ("de", "fr", "hi")], axis=0)
        for label, own in seeds.items()
    }
    for method in ("centring", "weak"):
        one = rows(found)["nli", "mean", method].comparison
        assert one.p == pytest.approx(scipy.stats.ttest_ind(means[method], means["base"], equal_var=False)[1])
        assert one.difference == pytest.approx(means[method].mean() - means["base"].mean())
        assert (one.languages, one.baseline.seeds, one.method.seeds) == (3, 3, len(seeds[method]))
    for code, kept in (("de", (0, 1, 2)), ("fr", (0, 2))):
        single = rows(found)["nli", code, "centring"].comparison
        pair = runs("nli", "base", code, (0, 1, 2)), runs("nli", "centring", code, kept)
        assert single == compare_means([pair], ACCURACY, test=SeedTest.SEED_T)


def test_a_seed_that_the_baseline_lacks_is_told_once(compared: Callable[..., Comparison]) -> None:
    lost = ("nli", "base", "de", 0), ("nli", "base", "hi", 0), ("nli", "base", "hi", 3)
    found = compared(without(cells(labels=SHARES, seeds=4), *lost))
    assert notes(found) == [
        "base: nli: seed 0 is missing in de, hi; in the mean it is left out of base",
        "base: nli: seed 3 is missing in hi; in the mean it is left out of base",
    ]
    pairs = [
        (runs("nli", "base", code, (1, 2)), runs("nli", "weak", code, range(4)))
        for code in ("de", "fr", "hi")
    ]
    assert rows(found)["nli", "mean", "weak"].comparison == compare_means(pairs, ACCURACY)
    assert rows(found)["nli", "fr", "weak"].comparison.baseline.seeds == 4


def test_a_seed_missing_in_a_language_of_the_training_data_takes_nothing_from_the_mean(
    compared: Callable[..., Comparison],
) -> None:
    found = compared(without(cells(), ("nli", "centring", "en", 1)))
    assert notes(found) == []
    assert rows(found)["nli", "mean", "centring"].comparison.method.seeds == 3
    assert rows(found)["nli", "en", "centring"].comparison.method.seeds == 2


def test_one_seed_in_common_cannot_tell_and_none_gives_no_mean(compared: Callable[..., Comparison]) -> None:
    held = without(cells(labels=SHARES), *(("nli", "weak", "de", seed) for seed in (0, 1)))
    found = compared(without(held, *(("nli", "centring", *one) for one in (("de", 0), ("fr", 1), ("hi", 2)))))
    assert notes(found) == [
        "centring: nli: no mean, as no seed is there in all of de, fr, hi",
        "weak: nli: seeds 0, 1 are missing in de; in the mean they are left out of weak",
    ]
    assert [row.method for row in found.tasks] == ["weak"]
    assert found.tasks[0].verdict.finding == "cannot tell"
    assert found.tasks[0].verdict.line().startswith("nli by weak: one seed: cannot tell")
    assert len(found.rows) == 8


def test_where_no_mean_is_left_the_languages_stand(
    compared: Callable[..., Comparison], tmp_path: Path
) -> None:
    lost = (("nli", "centring", "de", 0), ("nli", "centring", "fr", 1), ("nli", "centring", "hi", 2))
    found = compared(without(cells(), *lost), out=tmp_path / "out")
    assert found.tasks == [] and len(found.rows) == 4
    assert found.overall == "no mean over languages could be compared"
    from calque.report.page import write_page

    assert "no seed is there in all of de, fr, hi" in write_page(tmp_path / "out").read_text(encoding="utf-8")


# -------------------------------------------------------------------------------------------- tasks


def test_a_task_without_its_baseline_does_not_take_the_others_with_it(
    compared: Callable[..., Comparison],
) -> None:
    held = cells(tasks=("ner", "nli"), labels=SHARES)
    found = compared(without(held, ("ner", "base", None, None)))
    alone = compared([cell for cell in held if cell[0] == "nli"])
    assert notes(found) == [
        "ner: not compared, as no run of the baseline base is here, only of centring, weak"
    ]
    assert {**found.record(), "notes": []} == {**alone.record(), "notes": []}


def test_a_method_that_was_not_run_on_a_task_is_told(compared: Callable[..., Comparison]) -> None:
    held = without(cells(tasks=("nli", "pos"), labels=SHARES), ("pos", "weak", None, None))
    found = compared(held)
    assert notes(found) == ["weak: pos: not compared, as no run of it is here"]
    assert {(row.task, row.method) for row in found.tasks} == {
        ("nli", "centring"), ("nli", "weak"), ("pos", "centring"),
    }  # fmt: skip


def test_each_task_has_training_data_of_its_own(tmp_path: Path) -> None:
    held = cells(tasks=("nli", "pos"))
    folders = []
    for task, label in product(("nli", "pos"), ("base", "centring")):
        folders.append(
            write(tmp_path / f"{task}-{label}", [cell for cell in held if cell[:2] == (task, label)])
        )
        path = folders[-1] / "artifacts" / "data.json"
        data = json.loads(path.read_text())
        data["train"] = [{**data["train"][0], "language": "de" if task == "pos" else "en"}]
        write_json(path, data)
    found = compare(folders, baseline="base", rounds=200, out=tmp_path / "out")
    assert found.record()["trained"] == {"nli": ["en"], "pos": ["de"]}
    assert [row.languages for row in found.tasks] == [("de", "fr", "hi"), ("en", "fr", "hi")]
    read = collect(tmp_path / "out").comparison
    assert read is not None and read.learned_in("pos") == ("de",)
    assert [row.languages for row in read.tasks] == [row.languages for row in found.tasks]


# ------------------------------------------------------------------------------------------- pairing


@pytest.mark.parametrize("more", [{"paired_seeds": True}, {"test": "randomisation"}])
def test_runs_that_are_compared_one_by_one_are_those_of_seeds_that_both_have(
    compared: Callable[..., Comparison], more: dict[str, Any]
) -> None:
    found = compared(without(cells(labels=SHARES), ("nli", "centring", None, 1)), **more)
    assert notes(found) == [
        "centring: nli: seed 1 is missing in de, fr, hi; in the mean it is left out of base",
        "centring: nli: seed 1 is missing in en, de, fr, hi; there it is left out of base",
    ]
    options: dict[str, Any] = {"paired_seeds": False, "test": SeedTest.BOTH, **more, "rounds": 200}
    for method, seeds in (("centring", (0, 2)), ("weak", (0, 1, 2))):
        pairs = {code: (runs("nli", "base", code, seeds), runs("nli", method, code, seeds)) for code in SIZES}
        for code, pair in pairs.items():
            assert rows(found)["nli", code, method].comparison == compare_means([pair], ACCURACY, **options)
        mean = [pairs[code] for code in ("de", "fr", "hi")]
        assert rows(found)["nli", "mean", method].comparison == compare_means(mean, ACCURACY, **options)


def test_paired_seeds_are_the_paired_test_of_scipy_on_what_is_left(
    compared: Callable[..., Comparison],
) -> None:
    lost = ("nli", "base", "de", 0), ("nli", "centring", "fr", 4)
    found = compared(without(cells(seeds=5), *lost), test="seed-t", paired_seeds=True)
    means = [
        np.mean([right("nli", label, code, (1, 2, 3)).mean(1) for code in ("de", "fr", "hi")], axis=0)
        for label in ("centring", "base")
    ]
    assert rows(found)["nli", "mean", "centring"].comparison.p == pytest.approx(
        scipy.stats.ttest_rel(*means).pvalue
    )
    single = [right("nli", label, "de", (1, 2, 3, 4)).mean(1) for label in ("centring", "base")]
    assert rows(found)["nli", "de", "centring"].comparison.p == pytest.approx(
        scipy.stats.ttest_rel(*single).pvalue
    )
    assert notes(found) == [
        "base: nli: seed 0 is missing in de; in the mean it is left out of base and centring",
        "base: nli: seed 0 is missing in de; there it is left out of centring",
        "centring: nli: seed 4 is missing in fr; in the mean it is left out of base and centring",
        "centring: nli: seed 4 is missing in fr; there it is left out of base",
    ]


def test_seeds_that_none_shares_are_told_and_not_compared(compared: Callable[..., Comparison]) -> None:
    held = without(cells(labels=SHARES), ("nli", "weak", "de", 0), ("nli", "weak", "de", 1))
    held = without(held, ("nli", "base", "de", 2))
    found = compared(held, paired_seeds=True)
    assert ("nli", "de", "weak") not in rows(found) and ("nli", "mean", "weak") not in rows(found)
    assert "weak: nli: not compared in de, as it has no seed in common with base" in notes(found)
    assert "weak: nli: no mean, as it has no seed in common with base" in notes(found)
    assert rows(found)["nli", "mean", "centring"].comparison.baseline.seeds == 2
    assert rows(found)["nli", "fr", "weak"].comparison.baseline.seeds == 3


# ----------------------------------------------------------------------------------------- languages


def test_a_language_that_the_baseline_lacks_is_left_out(compared: Callable[..., Comparison]) -> None:
    held = cells(labels=SHARES)
    found = compared(without(held, ("nli", "base", "fr", None)))
    assert notes(found) == [
        "nli: centring, weak not compared in fr, as the baseline base was not tested there",
        "nli: fr not in the mean, as not all runs were tested in it",
    ]
    alone = compared(without(held, (None, None, "fr", None)))
    assert {**found.record(), "notes": []} == {**alone.record(), "notes": []}


def test_a_language_that_a_method_lacks_is_in_no_mean(compared: Callable[..., Comparison]) -> None:
    found = compared(without(cells(labels=SHARES), ("nli", "weak", "fr", None)))
    assert notes(found) == [
        "nli: fr not in the mean, as not all runs were tested in it",
        "weak: nli: not compared in fr, as it was not tested there",
    ]
    assert {row.comparison.items for row in found.tasks} == {SIZES["de"] + SIZES["hi"]}
    assert ("nli", "fr", "centring") in rows(found)


def test_methods_without_a_language_in_common_have_means_of_their_own(
    compared: Callable[..., Comparison],
) -> None:
    lost = [("nli", "weak", "de", None), ("nli", "weak", "fr", None), ("nli", "centring", "hi", None)]
    found = compared(without(cells(labels=SHARES), *lost))
    assert notes(found)[1] == (
        "nli: no language was tested with all methods: the mean is over de, fr of centring; hi of weak"
    )
    assert {row.method: row.comparison.items for row in found.tasks} == {
        "centring": SIZES["de"] + SIZES["fr"], "weak": SIZES["hi"],
    }  # fmt: skip
    told = {row["method"]: row["languages"] for row in found.record()["tasks"]}
    assert told == {"centring": ["de", "fr"], "weak": ["hi"]}
    assert {row["method"]: row["languages"] for row in found.record()["rows"] if row["language"] == "hi"} == {
        "weak": ["hi"]
    }
    pairs = [(runs("nli", "base", "hi", range(3)), runs("nli", "weak", "hi", range(3)))]
    assert rows(found)["nli", "mean", "weak"].comparison == compare_means(pairs, ACCURACY)


def test_the_language_of_the_training_data_is_never_taken_for_transfer(
    compared: Callable[..., Comparison],
) -> None:
    lost = [("nli", "weak", code, None) for code in ("de", "fr", "hi")]
    found = compared(without(cells(labels=SHARES), *lost))
    assert notes(found) == [
        "weak: nli: no mean, as it and the baseline share no language but those of the training data",
        "weak: nli: not compared in de, fr, hi, as it was not tested there",
    ]
    assert {row.method: row.comparison.items for row in found.tasks} == {"centring": 60 + 70 + 80}
    assert ("nli", "en", "weak") in rows(found)
    base = compared(without(cells(), *(("nli", "base", code, None) for code in ("de", "fr", "hi"))))
    assert base.tasks == [] and [row.language for row in base.rows] == ["en"]


# ----------------------------------------------------------------------------- nothing, and no pool


def test_where_nothing_can_be_compared_it_is_an_error(compared: Callable[..., Comparison]) -> None:
    with pytest.raises(BadSetting, match="only the baseline base"):
        compared(cells(labels=["base"]))
    held = cells(tasks=("nli", "pos"))
    with pytest.raises(BadSetting, match="run with centring, but not with the baseline"):
        compared(without(held, ("pos", "base", None, None), ("nli", "centring", None, None)))
    apart = [cell for cell in cells() if (cell[1] == "base") == (cell[2] == "de")]
    with pytest.raises(BadInput, match="baseline was not tested in en, fr, hi"):
        compared(apart)
    odd = [cell for cell in cells() if (cell[1] == "base") == (cell[3] == 1)]
    with pytest.raises(BadInput, match="cannot be paired"):
        compared(odd, paired_seeds=True)


def test_runs_that_were_typed_one_by_one_are_all_compared_or_none(tmp_path: Path) -> None:
    def whole(name: str, held: list[Cell]) -> Path:
        return write(tmp_path / name, held)

    base, held = whole("base", cells(labels=["base"])), cells(labels=["centring"])
    fewer = whole("fewer", without(held, (None, None, None, 1)))
    with pytest.raises(BadInput, match="cannot be paired"):
        compare([base, fewer], paired_seeds=True)
    with pytest.raises(BadInput, match="one by one: 3 seeds against 2"):
        compare([base, fewer], test="randomisation")
    less = whole("less", without(cells(labels=["base"]), (None, None, "de", None)))
    with pytest.raises(BadInput, match="baseline was not tested in de"):
        compare([less, whole("other", held)])


def test_a_part_that_comes_later_makes_another_comparison(tmp_path: Path) -> None:
    held = [write(tmp_path / "-".join(map(str, cell)), [cell]) for cell in cells(seeds=3)]
    some = [path for path in held if not path.name.endswith("-2")]
    compare(some, pool=True, out=tmp_path / "out")
    with pytest.raises(BadSetting, match="finished run of another recipe"):
        compare(held, pool=True, out=tmp_path / "out")


def test_rounds_that_make_no_p_value_are_refused() -> None:
    with pytest.raises(BadSetting, match=r"rounds: should be at least 10 \(given: 9\)"):
        compare(["a", "b"], rounds=9)


def test_a_task_of_which_nothing_was_learned_says_so(
    compared: Callable[..., Comparison], monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = planted

    def nothing_of_ner(cell: Cell) -> np.ndarray:
        return np.zeros(SIZES[cell[2]]) if cell[0] == "pos" else learned(cell)

    monkeypatch.setitem(globals(), "planted", nothing_of_ner)
    found = compared(cells(tasks=("nli", "pos")))
    assert notes(found) == [
        "pos: accuracy is 0 in every run: nothing was learned, so nothing can be compared"
    ]


# ------------------------------------------------------------------------------------- translations


def test_translations_of_which_two_premises_are_one_are_still_translations() -> None:
    """As es and vi are in XNLI: joined, their items count once; by themselves they count as many."""
    whole = np.arange(300) // 3
    other = np.where(whole == 99, 3, whole)
    joined = shared_clusters([whole, other])
    assert joined is not None and np.array_equal(joined, other)
    rng = np.random.default_rng(0)
    hits = [(rng.random((3, 300)) < share).astype(float) for share in (0.5, 0.6)]

    def pairs(*clusters: np.ndarray) -> list[tuple[Runs, Runs]]:
        made = [
            [Runs({"right": h, "count": np.ones(h.shape)}, own, (0, 1, 2)) for h in hits] for own in clusters
        ]
        return [(a, b) for a, b in made]

    found = mean_of(pairs(whole, other), ACCURACY, {})
    assert found == mean_of(pairs(other, other), ACCURACY, {})
    assert found.clusters == 99


def test_tests_of_equally_many_items_that_belong_together_otherwise_are_not_translations() -> None:
    assert shared_clusters([np.arange(300) // 3, np.arange(300) // 2]) is None
    assert shared_clusters([np.arange(300), np.arange(299)]) is None


def test_tests_that_may_be_translations_and_are_not_taken_for_them_are_told(
    compared: Callable[..., Comparison],
) -> None:
    told = [note for note in compared(cells()).notes if "taken as independent" in note]
    assert len(told) == 1 and told[0].startswith("nli: the tests of de, fr, hi do not match item by item")
    assert compared(cells(tasks=("pos",))).notes == []


# --------------------------------------------------------------------------- languages that were learned


def about(folder: Path, **told: object) -> Path:
    """The same run, which tells other things of its data."""
    path = folder / "artifacts" / "data.json"
    write_json(path, json.loads(path.read_text()) | told)
    return folder


def learned(folder: Path, *languages: str, fingerprint: str = "0" * 64) -> Path:
    """The same run, trained on other data."""
    told = [{**portion(code, 20_000), "fingerprint": fingerprint} for code in languages]
    return about(folder, train=told)


def settled(folder: Path, **settings: object) -> Path:
    """The same run with other settings in its recipe."""
    path = folder / "recipe.toml"
    path.write_text(path.read_text() + "".join(f"{k} = {json.dumps(v)}\n" for k, v in settings.items()))
    return folder


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """A run of the baseline and one of a method, whole."""
    base, method = (
        write(tmp_path / label, cells(tasks=("pos",), labels=[label])) for label in ("base", "centring")
    )
    return base, method


def test_a_language_that_either_arm_learned_in_is_not_zero_shot(two: tuple[Path, Path]) -> None:
    learned(two[1], "fr")
    found = compare(two)
    assert [row.languages for row in found.tasks] == [("de", "hi")]
    assert "centring: pos: learned in fr, the baseline base in en" in found.notes
    assert found.record()["trained by run"] == {"base": ["en"], "centring": ["fr"]}
    learned(two[1], "en")
    assert compare(two).record()["trained by run"] == {}


def test_a_mean_that_is_not_of_transfer_says_so(tmp_path: Path) -> None:
    some = [cell for cell in cells(tasks=("pos",)) if cell[2] in ("en", "de")]
    base, method = (
        write(tmp_path / label, [cell for cell in some if cell[1] == label]) for label in ("base", "centring")
    )
    found = compare([base, learned(method, "de")])
    assert [row.languages for row in found.tasks] == [("de",)]
    assert "pos: centring learned in a language that the mean is over: that is not transfer" in found.notes


def test_a_run_that_learned_in_every_language_changes_no_mean_of_others(tmp_path: Path) -> None:
    base, weak, every = (
        write(tmp_path / label, cells(tasks=("pos",), labels=[label]))
        for label in ("base", "weak", "centring")
    )
    (alone,) = compare([base, weak]).tasks
    found = compare([base, weak, learned(every, "en", "de", "fr", "hi")])
    assert [row.languages for row in found.tasks] == 2 * [alone.languages] == 2 * [("de", "fr", "hi")]
    assert found.tasks[0].comparison.difference == alone.comparison.difference
    assert "pos: centring learned in a language that the mean is over: that is not transfer" in found.notes


# ------------------------------------------------------------------------------- settings that differ


def test_tests_that_were_read_otherwise_are_not_compared(two: tuple[Path, Path]) -> None:
    settled(two[1], words=3, longest_answer=1)
    settled(two[0], words=128)
    with pytest.raises(
        BadSetting, match=r"read or scored .*words 3 against 128, longest_answer 1 against 30"
    ):
        compare(two)


def test_what_was_trained_otherwise_is_told(two: tuple[Path, Path]) -> None:
    settled(two[0], epochs=3, betas=[0.9, 0.999], label="base")
    settled(two[1], epochs=12, freeze_layers=2, label="centring")
    learned(two[1], "en", fingerprint="1" * 64)
    assert compare(two).notes == [
        "centring: pos: trained otherwise than base: epochs 12 against 3, freeze_layers 2 against 0, "
        "training data en:11111111 (20,000 items) against en:00000000 (20,000 items)"
    ]


def parts(tmp_path: Path) -> list[Path]:
    """Runs of two methods, each with two seeds that are a folder each."""
    held = product(("base", "centring"), range(2))
    return [
        write(
            tmp_path / f"{label}-{seed}",
            [c for c in cells(tasks=("pos",), labels=[label]) if c[3] == seed],
        )
        for label, seed in held
    ]


def test_runs_that_were_trained_otherwise_are_not_one_method(tmp_path: Path) -> None:
    runs_ = parts(tmp_path)
    for place, one in enumerate(runs_):
        settled(one, epochs=1, learning_rate=1e-3, seed=place)
    assert len(compare(runs_, pool=True).tasks) == 1
    learned(runs_[3], "en", fingerprint="1" * 64)
    with pytest.raises(
        BadSetting, match=r"both are called centring: training data en:1+ .* against en:0+ \("
    ):
        compare(runs_, pool=True)
    learned(runs_[3], "en")
    settled(runs_[3], batch=7)
    with pytest.raises(BadSetting, match=r"called centring: batch 7 against none \("):
        compare(runs_, pool=True)


def test_encoders_of_one_method_differ_in_seeds_alone(tmp_path: Path) -> None:
    runs_ = parts(tmp_path)
    for place, one in enumerate(runs_):
        made = tmp_path / f"encoder-{place}"
        made.mkdir()
        recipe = 'verb = "align"\nmethod = "rotation"\nencoder = "models/mbert"\npairs = ["a/b"]\n'
        (made / "recipe.toml").write_text(f"{recipe}seed = {place}\n")
        settled(one, encoder=str(made))
        with (one / "recipe.toml").open("a") as file:
            file.write(f'[inputs]\nencoder = "{place}"\n')
    assert len(compare(runs_, pool=True).tasks) == 1
    (made / "recipe.toml").write_text(recipe.replace("rotation", "least-squares"))
    with pytest.raises(BadSetting, match="encoder's method least-squares against rotation"):
        compare(runs_, pool=True)
    (made / "recipe.toml").write_text(recipe.replace("mbert", "xlm-r"))
    with pytest.raises(BadSetting, match="encoder's base encoder xlm-r against mbert"):
        compare(runs_, pool=True)


def test_encoders_by_language_are_one_method_where_they_were_made_alike(tmp_path: Path) -> None:
    runs_ = parts(tmp_path)
    for place, one in enumerate(runs_):
        made = [tmp_path / f"pretrain-{code}-{'abcd'[place]}" for code in ("en", "far")]
        for folder in made:
            folder.mkdir()
            (folder / "recipe.toml").write_text(f'verb = "pretrain"\nlayers = 4\nseed = {place}\n')
        settled(one, encoder=f"en={made[0]},far={made[1]}")
        with (one / "recipe.toml").open("a") as file:
            file.write(f'[inputs]\nencoder = "{place}"\n')
    assert len(compare(runs_, pool=True).tasks) == 1
    (made[1] / "recipe.toml").write_text('verb = "pretrain"\nlayers = 6\nseed = 3\n')
    with pytest.raises(BadSetting, match="encoder's part 2's layers 6 against 4"):
        compare(runs_, pool=True)


def test_encoders_that_were_read_or_fetched_otherwise_are_not_one_method(tmp_path: Path) -> None:
    runs_ = parts(tmp_path)
    settled(runs_[0], prefix="")
    assert len(compare(runs_, pool=True).tasks) == 1, "no prefix, said or not"
    settled(runs_[3], prefix="query: ", revision="abc")
    with pytest.raises(BadSetting, match=r"revision abc against none, prefix query: +against none"):
        compare(runs_, pool=True)


def test_what_chose_among_epochs_is_no_note_where_one_side_is_in_parts(tmp_path: Path) -> None:
    held = [cell for cell in cells(tasks=("pos",), labels=["base"])]
    seeds = [write(tmp_path / f"base-{s}", [cell for cell in held if cell[3] == s]) for s in range(3)]
    whole = write(tmp_path / "whole", cells(tasks=("pos",), labels=["centring"]))
    for one in (*seeds, whole):
        about(one, dev=[portion("en")])
    assert compare([*seeds, whole], pool=True).notes == []
    other = about(write(tmp_path / "weak", cells(tasks=("pos",), labels=["weak"])), dev=[])
    assert compare([whole, other]).notes == [
        "weak: pos: trained otherwise than centring: dev data none against en:00000000 (1,000 items)"
    ]


# ------------------------------------------------------------------------- models that were only tested

TESTED: dict[str, Any] = {"a seed varies": NOTHING_VARIES}


def test_a_model_learned_in_what_it_tells(two: tuple[Path, Path]) -> None:
    about(two[1], train=[], learned=["de"], **TESTED)
    found = compare(two)
    assert [row.languages for row in found.tasks] == [("fr", "hi")]
    assert found.notes == ["centring: pos: learned in de, the baseline base in en"]
    about(two[1], learned=[])
    found = compare(two)
    assert found.notes == ["centring: pos: learned in what its model does not tell, the baseline base in en"]
    assert found.varies == VARIES, "the baseline was trained"


def test_models_that_are_pooled_differ_between_seeds(tmp_path: Path) -> None:
    runs_ = parts(tmp_path)
    for one in runs_:
        about(one, train=[], learned=["en"], **TESTED)
    assert compare(runs_, pool=True).varies == VARIES
    assert compare([runs_[0], runs_[2]]).varies == NOTHING_VARIES
