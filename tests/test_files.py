"""Files written whole or not at all, run folders, the cache, and what lies on disk."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from calque.errors import BadInput, BadSetting
from calque.files import (
    SUMS,
    Cache,
    atomic_directory,
    atomic_file,
    cache_limit,
    is_done,
    read_json,
    run_folder,
    write_json,
    write_text,
)
from calque.report.collect import collect
from calque.store import (
    load_array,
    load_items,
    load_pairs,
    load_results,
    result_line,
    save_items,
    save_pairs,
    save_results,
)
from calque.types import UPOS, Bitext, Items, Result, WordPairs
from flipped import flipped, places


def fail_in(block: object) -> None:
    with pytest.raises(RuntimeError), block as path:  # type: ignore[attr-defined]
        (path / "x" if path.is_dir() else path).write_text("half")
        raise RuntimeError


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.txt"
    fail_in(atomic_file(target))
    assert list(target.parent.iterdir()) == []
    write_text(target, "first")
    fail_in(atomic_file(target))
    assert target.read_text() == "first" and len(list(target.parent.iterdir())) == 1


def test_a_directory_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "run"
    fail_in(atomic_directory(target))
    assert list(tmp_path.iterdir()) == []
    with atomic_directory(target) as partial:
        (partial / "a").write_text("1")
    with atomic_directory(target) as partial:
        (partial / "b").write_text("2")
    assert [path.name for path in target.iterdir()] == ["b"] and list(tmp_path.iterdir()) == [target]


def test_a_run_folder_knows_its_recipe(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert not is_done(out, "one")
    with run_folder(out, "one", "link") as folder:
        (folder / "x").write_text("x")
    assert is_done(out, "one") and not is_done(out, "one", overwrite=True)
    with pytest.raises(BadSetting, match="another recipe"):
        is_done(out, "two")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(BadSetting, match="not a calque run"):
        is_done(tmp_path, "one")
    with pytest.raises(BadSetting, match="not a calque run"), run_folder(tmp_path, "one", "link"):
        pass
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_half_a_character_in_json_can_be_read(tmp_path: Path) -> None:
    """As the name of a file may have it."""
    write_json(tmp_path / "a.json", {"base": "../f\udcfc", "whole": "ü😀 \\u00fc"})
    assert read_json(tmp_path / "a.json") == {"base": "../f\\udcfc", "whole": "ü😀 \\u00fc"}


def test_overwrite_never_removes_what_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert not is_done(tmp_path, "one", overwrite=True)
    with pytest.raises(BadSetting, match="not a calque run"), run_folder(tmp_path, "one", "link"):
        pass
    assert (tmp_path / "thesis.tex").exists()


def test_the_cache_evicts_the_least_recently_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=2500)

    def fill(key: str) -> None:
        with cache.add(key, f"entry {key}") as folder:
            (folder / "v").write_bytes(bytes(1000))

    first, second, third = (letter * 64 for letter in "abc")
    for age, key in enumerate((first, second)):
        fill(key)
        os.utime(cache.root / key / "finished.json", (1000 + age, 1000 + age))
    assert cache.find(first) is not None, "used now, so the second is the older one"
    fill(third)
    assert [entry.key for entry in cache.entries()] == [third, first]
    assert cache.prune(0) and cache.entries() == []


def test_the_cache_leaves_alone_what_it_did_not_make(tmp_path: Path) -> None:
    """`vectors` is what others call their folders, too."""
    mine = tmp_path / "vectors" / "fasttext" / "wiki.en.vec"
    mine.parent.mkdir(parents=True)
    mine.write_text("years of work")
    write_run(tmp_path / "vectors" / "run")
    with Cache(tmp_path, limit=0).add("a" * 64, "label"):
        pass
    Cache(tmp_path).prune(0)
    assert mine.exists() and (tmp_path / "vectors" / "run" / "finished.json").exists()


def write_run(folder: Path) -> None:
    with run_folder(folder, "one", "link"):
        pass


def test_out_is_a_folder_that_another_can_be_renamed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("years of work")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    told = {"file": "is a file", "link": "is a link .*elsewhere", "here": "the folder you are", "": "are in"}
    for name, why in told.items():
        for overwrite in (True, False):
            with pytest.raises(BadSetting, match=why):
                is_done(tmp_path / name if name else Path(""), "one", overwrite=overwrite)
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path).name == "disk")
    with pytest.raises(BadSetting, match=r"a disk is mounted there .*a folder inside it"):
        is_done(tmp_path / "disk", "one")
    write_run(tmp_path / "elsewhere")
    assert is_done(tmp_path / "link", "one"), "a finished run is read wherever it lies"


def test_a_crash_while_filling_the_cache_leaves_no_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=1000)
    fail_in(cache.add("k", "label"))
    assert cache.find("k") is None and list(cache.root.iterdir()) == []


def test_the_cache_limit_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALQUE_CACHE_GB", "0.5")
    assert cache_limit() == 500_000_000
    monkeypatch.setenv("CALQUE_CACHE_GB", "lots")
    with pytest.raises(BadSetting, match="lots"):
        cache_limit()


word = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=5)
sentence = st.lists(word, min_size=1, max_size=4)


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=5), st.booleans(), st.data())
def test_pairs_survive_the_disk(
    tmp_path_factory: pytest.TempPathFactory,
    text: list[tuple[list[str], list[str]]],
    tagged: bool,
    data: st.DataObject,
) -> None:
    source, target = [a for a, _ in text], [b for _, b in text]
    tags = tuple(
        np.array([len(w) % len(UPOS) for words in side for w in words], np.uint8) if tagged else None
        for side in (source, target)
    )
    bitext = Bitext.of(("en", "de"), source, target, tags=tags, origin="x.tsv", dropped={"empty": 3})
    rows = [
        (s, data.draw(st.integers(0, len(a) - 1)), data.draw(st.integers(0, len(b) - 1)))
        for s, (a, b) in enumerate(text)
    ]
    pairs = WordPairs.of(bitext, *np.array(rows).T, score=np.linspace(0, 1, len(rows)), linker="gold")
    folder = tmp_path_factory.mktemp("pairs") / "p"
    save_pairs(folder, pairs)
    again = load_pairs(folder)
    assert list(again.bitext.source) == source and list(again.bitext.target) == target
    assert again.fingerprint == pairs.fingerprint and again.linker == "gold"
    assert dict(again.bitext.dropped) == {"empty": 3} and again.types() == pairs.types()
    if tagged:
        assert again.bitext.source.tags is not None and tags[0] is not None
        assert again.bitext.source.tags.tolist() == tags[0].tolist()


def test_pairs_that_are_not_there_or_broken_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="calque link"):
        load_pairs(tmp_path / "nowhere")
    bitext = Bitext.of(("en", "de"), [["a"]], [["b"]])
    save_pairs(tmp_path / "run" / "train", WordPairs.of(bitext, [0], [0], [0]))
    with pytest.raises(BadInput, match=r"did you mean .*train"):
        load_pairs(tmp_path / "run")
    (tmp_path / "run" / "train" / "links.npy").write_bytes(b"nonsense")
    with pytest.raises(BadInput, match=r"links\.npy"):
        load_pairs(tmp_path / "run" / "train")


def test_results_are_sorted_and_come_back(tmp_path: Path) -> None:
    results = [
        Result(
            "t", "accuracy", value, ("en", "de"), "e", layer=layer, group=("pos", "NOUN") if layer else None
        )
        for value, layer in ((0.5, 1), (0.25, 0), (1.0, None))
    ]
    save_results(tmp_path / "a", results)
    save_results(tmp_path / "b", results[::-1])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert set(map(result_line, load_results(tmp_path / "a"))) == set(map(result_line, results))
    (tmp_path / "a").write_text('{"task": "t"}\n')
    with pytest.raises(BadInput, match=":1: not a result"):
        load_results(tmp_path / "a")


def test_results_that_a_run_did_not_write_so_are_refused(tmp_path: Path) -> None:
    """A lost line would not be missed otherwise, and half of one would be told without a remedy."""
    out = tmp_path / "run"
    path, held = out / "results.jsonl", [Result("t", "f", k / 4, ("en", "de"), "e", layer=k) for k in (0, 1)]
    with run_folder(out, "one", "measure") as folder:
        save_results(folder / "results.jsonl", held)
    assert load_results(path) == held and collect(out).results == tuple(held)
    whole = path.read_bytes()
    for damaged in (whole[: whole.index(b"\n") + 1], whole[:-9], b"", whole.replace(b"0.25", b"0.75")):
        path.write_bytes(damaged)
        for read in (lambda: load_results(path), lambda: collect(out)):
            with pytest.raises(BadInput, match=r"results.jsonl: is damaged.*remove its folder"):
                read()
    write_json(out / "finished.json", {"recipe": "one", "verb": "measure"})  # before there were checksums
    path.write_bytes(whole[: whole.index(b"\n") + 1])
    assert load_results(path) == held[:1]
    path.write_bytes(whole[:-9])
    with pytest.raises(BadInput, match=r":2: not JSON.*\(measure again\)"):
        load_results(path)


def test_items_are_named_by_what_they_hold(tmp_path: Path) -> None:
    items = Items({"sentence": np.arange(3)}, np.array([0, 0, 1]), {"hit": np.array([1.0, 0.0, 1.0])})
    digest = save_items(tmp_path, items)
    assert save_items(tmp_path, items) == digest
    again = load_items(tmp_path, digest)
    assert again.values["hit"].tolist() == [1, 0, 1] and again.cluster.tolist() == [0, 0, 1]
    with pytest.raises(BadInput, match="no such items"):
        load_items(tmp_path, "0" * 16)


def test_a_flipped_byte_in_links_or_items_is_named(tmp_path: Path) -> None:
    bitext = Bitext.of(("en", "de"), [["a", "b"], ["c"]], [["d"], ["e", "f"]])
    save_pairs(tmp_path / "pairs", WordPairs.of(bitext, [0, 1], [1, 0], [0, 1]))
    for number, path in enumerate(sorted((tmp_path / "pairs").iterdir())):
        for place in places(4, seed=number):
            with flipped(path, place), pytest.raises(BadInput, match=r"damaged.*calque link"):
                load_pairs(tmp_path / "pairs")
    assert len(load_pairs(tmp_path / "pairs")) == 2
    digest = save_items(tmp_path, Items({"sentence": np.arange(3)}, np.arange(3), {"hit": np.ones(3)}))
    for place in places(6):
        with flipped(tmp_path / f"{digest}.safetensors", place), pytest.raises(BadInput, match="damaged"):
            load_items(tmp_path, digest)


@pytest.mark.parametrize("size", ["inf", "nan", "1e400", "-1", "", "twenty"])
def test_cache_sizes_that_are_none(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALQUE_CACHE_GB", size)
    with pytest.raises(BadSetting, match="CALQUE_CACHE_GB"):
        cache_limit()


def test_a_name_with_another_line_end_stays_in_its_line(tmp_path: Path) -> None:
    """U+2028 and U+0085 end no line of results.jsonl, though `str.splitlines` says so."""
    held = [Result("words", "accuracy", 0.5, ("en", "de"), encoder) for encoder in ("a\u2028b", "a\x85b")]
    save_results(tmp_path / "results.jsonl", held)
    assert {one.encoder for one in load_results(tmp_path / "results.jsonl")} == {"a\u2028b", "a\x85b"}


GOOD = json.dumps({"task": "w", "metric": "a", "value": 1, "languages": ["en", "de"], "encoder": "e"})


@pytest.mark.parametrize(
    "line",
    [
        "5",
        "[]",
        "null",
        GOOD.replace('["en", "de"]', '"en"'),
        GOOD.replace('["en", "de"]', "[]"),
        "[" * 5000,
        '{"task": 1}',
        '{"nosuch": 1}',
        '{"value": "a"}',
        '{"task": "\\ud800"}',
    ],
)
def test_lines_that_are_no_results(tmp_path: Path, line: str) -> None:
    (tmp_path / "results.jsonl").write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(BadInput, match=r"results.jsonl:2: "):
        load_results(tmp_path / "results.jsonl")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("links", np.array([[0, 0, 9]], np.int32)),
        ("links", np.array([[9, 0, 0]], np.int32)),
        ("links", np.array([0], np.int32)),
        ("links", np.array([[0.0, 0.0, 0.0]])),
        ("score", np.array([np.nan], np.float32)),
        ("source.ids", np.array([99], np.int32)),
        ("source.ids", np.array([-1], np.int32)),
        ("target.offsets", np.array([0, 5], np.int64)),
        ("line", np.array([1, 2], np.int64)),
    ],
)
def test_pairs_whose_parts_do_not_fit(tmp_path: Path, name: str, array: NDArray[Any]) -> None:
    bitext = Bitext.of(("en", "de"), [["a"]], [["x"]])
    save_pairs(tmp_path / "p", WordPairs.of(bitext, [0], [0], [0]))
    (tmp_path / "p" / SUMS).unlink()  # of a folder with its checksums, a changed file is damage
    np.save(tmp_path / "p" / f"{name}.npy", array)
    with pytest.raises(BadInput, match=r"its parts do not fit together.*make the folder again"):
        load_pairs(tmp_path / "p")


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00{'descr': (" + b" " * 200])
def test_an_array_with_a_broken_header(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(BadInput, match="not a readable array"):
        load_array(tmp_path / "a.npy")


@pytest.mark.parametrize("data", [b"", b"\xff" * 16, b"\x02\0\0\0\0\0\0\0{}"])
def test_items_that_are_broken(tmp_path: Path, data: bytes) -> None:
    digest = hashlib.sha256(data).hexdigest()
    (tmp_path / f"{digest}.safetensors").write_bytes(data)
    with pytest.raises(BadInput, match=r"safetensors: not an items file"):
        load_items(tmp_path, digest)
