"""The world as word pairs, as sentences and as files."""

from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from calque.errors import BadSetting
from calque.text.bitext import read_bitext
from calque.text.conllu import read_conllu
from calque.text.dictionaries import read_dictionary
from calque.text.labelled.open import READERS, read_labelled
from calque.text.world import (
    LANGUAGES,
    generate,
    world_pairs,
    world_sentences,
    world_task,
    write_tasks,
    write_world,
)
from calque.types import UPOS


@pytest.mark.parametrize("languages", [("en", "far"), ("near", "far"), ("far", "en")])
def test_pairs_are_what_was_drawn(languages: tuple[str, str]) -> None:
    pairs = world_pairs(80, languages, seed=3)
    drawn = list(generate(80, seed=3, languages=languages))
    assert pairs.languages == languages
    assert pairs.linker == "gold"
    for side, name in zip((pairs.bitext.source, pairs.bitext.target), languages, strict=True):
        assert [tuple(words) for words in side] == [sentence.sides[name].words for sentence in drawn]
        assert side.tags is not None
        told = chain.from_iterable(sentence.sides[name].upos for sentence in drawn)
        assert [UPOS[tag] for tag in side.tags] == list(told)
    rows = zip(pairs.sentence.tolist(), pairs.source.tolist(), pairs.target.tolist(), strict=True)
    assert list(rows) == [(k, i, j) for k, sentence in enumerate(drawn) for i, j in sentence.links[languages]]


def test_links_turn_round_with_the_languages() -> None:
    there, back = world_pairs(50, ("en", "far")), world_pairs(50, ("far", "en"))
    rows = {tuple(row) for row in np.stack([there.sentence, there.target, there.source], 1).tolist()}
    assert {tuple(row) for row in np.stack([back.sentence, back.source, back.target], 1).tolist()} == rows


def test_sentences_are_those_of_the_pairs() -> None:
    alone = world_sentences(60, "near", seed=2)
    paired = world_pairs(60, ("en", "near"), seed=2).bitext.target
    assert list(alone) == list(paired)
    assert alone.fingerprint == paired.fingerprint
    assert alone.tags is not None and paired.tags is not None
    assert (alone.tags == paired.tags).all()


def test_nothing_drawn_is_an_empty_world() -> None:
    assert len(world_pairs(0)) == len(world_pairs(0).bitext) == len(world_sentences(0, "en")) == 0


def test_an_unknown_language_is_named() -> None:
    with pytest.raises(BadSetting, match="'fr'"):
        world_sentences(1, "fr")


def test_files_hold_what_was_drawn(tmp_path: Path) -> None:
    write_world(tmp_path / "world", 40, seed=6)
    drawn = list(generate(40, seed=6))
    names = {
        "en-near.tsv",
        "en-far.tsv",
        "en-near.links",
        "en-far.links",
        "en.conllu",
        "near.conllu",
        "far.conllu",
        *(f"en-{other}.{part}.txt" for other in ("near", "far") for part in ("train", "test")),
    }
    assert {path.name for path in (tmp_path / "world").iterdir()} == names
    bitext = read_bitext(
        [str(tmp_path / "world" / "en-far.tsv")], ("en", "far"), tokenised=True, cleaning=None
    )
    assert [tuple(words) for words in bitext.target] == [sentence.sides["far"].words for sentence in drawn]
    links = (tmp_path / "world" / "en-far.links").read_text("utf-8").splitlines()
    read = [tuple((int(i), int(j)) for i, j in (pair.split("-") for pair in line.split())) for line in links]
    assert read == [sentence.links["en", "far"] for sentence in drawn]
    for language in LANGUAGES:
        for tree, sentence in zip(read_conllu(tmp_path / "world" / f"{language}.conllu"), drawn, strict=True):
            held = sentence.sides[language]
            assert (tree.words, tree.upos, tree.heads, tree.labels) == (
                held.words, held.upos, held.heads, held.labels,
            )  # fmt: skip


def test_dictionaries_hold_the_words_of_the_links(tmp_path: Path) -> None:
    write_world(tmp_path / "world", 400, languages=("en", "far"), seed=3)
    train, test = (read_dictionary(tmp_path / "world" / f"en-far.{part}.txt") for part in ("train", "test"))
    assert not set(train.translations) & set(test.translations), "no word is in both"
    assert 2 < len(train.translations) / len(test.translations) < 4
    counts = Counter(
        (s.sides["en"].words[i].lower(), s.sides["far"].words[j].lower())
        for s in generate(400, seed=3)
        for i, j in s.links["en", "far"]
    )
    assert {*train.pairs, *test.pairs} == {pair for pair, count in counts.items() if count > 1}


def test_treebanks_tell_entities_slots_senses_and_intents(tmp_path: Path) -> None:
    write_world(tmp_path / "world", 60, languages=("en",), seed=6)
    assert [path.name for path in (tmp_path / "world").iterdir()] == ["en.conllu"]
    blocks = (tmp_path / "world" / "en.conllu").read_text("utf-8").strip("\n").split("\n\n")
    for block, sentence in zip(blocks, generate(60, seed=6), strict=True):
        side, lines = sentence.sides["en"], block.splitlines()
        rows = [line.split("\t") for line in lines if not line.startswith("#")]
        told = [dict(pair.split("=") for pair in row[9].split("|") if "=" in pair) for row in rows]
        assert tuple(word.get("Entity", "O") for word in told) == side.entities
        assert tuple(word.get("Slot", "O") for word in told) == side.slots
        assert tuple(word.get("Sense", "") for word in told) == side.senses
        assert (f"# intent = {sentence.intent}" in lines) == bool(sentence.intent)


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    write_world(tmp_path / "world", 5)
    write_world(tmp_path / "world", 5, languages=("en", "far"))
    assert not (tmp_path / "world" / "near.conllu").exists()
    with pytest.raises(BadSetting):
        write_world(tmp_path / "world", 5, languages=("en", "fr"))
    assert (tmp_path / "world" / "far.conllu").exists()


@pytest.mark.parametrize("task", READERS)
def test_tasks_are_read_back_as_they_were_drawn(task: str, tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks", 40, seed=2)
    paths = sorted((tmp_path / "tasks" / task).iterdir())
    assert len(paths) == 9, "three parts in three languages"
    for path in paths:
        language, part, _ = path.name.split(".")
        count, seed = {"train": (40, 8), "dev": (10, 9), "test": (10, 11)}[part]
        read = read_labelled(task, path, language, subtypes=task == "parsing")
        assert [replace(item, line=0) for item in read.items] == [
            *world_task(task, count, language, seed=seed).items
        ]
        assert not read.dropped and not read.changed


def test_the_least_task_has_an_item_of_each_part(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks", 1, languages=("en",))
    assert len(list((tmp_path / "tasks").glob("*/en.*"))) == 3 * len(READERS)
    assert len(read_labelled("qa", tmp_path / "tasks" / "qa" / "en.test.json", "en")) == 1
