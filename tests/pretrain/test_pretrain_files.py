"""Text of one's own: files, both sides of a bitext, datasets, dictionaries; what is wrong is told."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForMaskedLM
from typer.testing import CliRunner

from calque.cli import app
from calque.errors import BadInput, BadSetting, CalqueError
from calque.pipeline.pretraining import pretrain
from calque.pipeline.pretraintext import file_corpora
from calque.text.world import generate

SMALL: dict[str, Any] = {
    "vocabulary": 500, "layers": 1, "width": 16, "heads": 2, "inner": 16, "steps": 6, "batch_tokens": 256,
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """English and the near language as German, in files of several kinds."""
    folder = tmp_path_factory.mktemp("files")
    drawn = list(generate(120, seed=9))
    english, german = ([" ".join(one.sides[code].words) for one in drawn] for code in ("en", "near"))
    (folder / "text.en").write_text("\n".join(["", *english[:80]]) + "\n")
    (folder / "text.de").write_text("\n".join(german[40:]) + "\n")
    (folder / "both.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(english, german, strict=True)))
    (folder / "en-de.txt").write_text("the me\nuniversity fefok\nwords\tme\n")
    return folder


def test_texts_are_gathered_by_language(files: Path) -> None:
    held = file_corpora(
        [f"en={files / 'text.en'}", f"en,de={files / 'both.tsv'}", f"de={files / 'text.de'}"],
        limit=None, bitext=[f"en,de={files / 'both.tsv'}"], dictionaries=[str(files / "en-de.txt")],
    )  # fmt: skip
    assert held.languages == ["en", "de"]
    english, german, more_english, more_german = (
        [tuple(words) for words in text] for text in (*held.texts, *held.held_out)
    )
    for read, kept in ((english, more_english), (german, more_german)):
        whole = [*read, *kept]
        assert len(set(whole)) == len(whole), "what stands in two files is read once"
        assert 100 < len(whole) <= 120, "empty lines are not text"
        assert len(kept) == len(whole) // 10, "one in ten is held out"
    assert len(held.pairs[0]) == 120
    assert held.translations is not None
    assert held.translations["de"]["me"] == {"the": 1.0, "words": 1.0}
    few = file_corpora([f"en={files / 'text.en'}"], limit=11)
    assert len(few.texts[0]) + len(few.held_out[0]) == 10


def test_text_to_choose_by_is_of_the_first_language_and_of_no_other_use(files: Path) -> None:
    text = [f"en={files / 'text.en'}", f"de={files / 'text.de'}"]
    held, without = file_corpora(text, dev=True), file_corpora(text)
    assert held.dev is not None and held.dev.language == "en" and without.dev is None
    parts = [{tuple(words) for words in one} for one in (held.texts[0], held.dev, held.held_out[0])]
    assert sum(map(len, parts)) == len(set.union(*parts)), "no sentence stands in two of them"
    assert set.union(*parts[:2]) == {tuple(words) for words in without.texts[0]}
    assert [tuple(words) for words in held.texts[1]] == [tuple(words) for words in without.texts[1]]


def test_one_language_and_streams_through_the_command_line(files: Path, tmp_path: Path) -> None:
    command = [
        "pretrain",
        "--text",
        f"en={files / 'text.en'}",
        "--rows",
        "streams",
        "--schedule",
        "inverse-sqrt",
    ]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    told = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "model"), "--json"])
    assert told.exit_code == 0, told.output
    scores = json.loads(told.output)["scores"]
    assert {tuple(one["language"]) for one in scores} == {("en", "en")}
    assert AutoModelForMaskedLM.from_pretrained(tmp_path / "model").config.vocab_size <= 500


def test_dictionary_and_pairs_of_files(files: Path, tmp_path: Path) -> None:
    text = [f"en={files / 'text.en'}", f"de={files / 'text.de'}"]
    pretrain(tmp_path / "pairs", text=text, bitext=[f"en,de={files / 'both.tsv'}"], paired=0.4, **SMALL)
    pretrain(tmp_path / "anchors", text=text, share="extra-anchors", dictionary=[str(files / "en-de.txt")],
             **SMALL)  # fmt: skip
    recipe = (tmp_path / "anchors" / "recipe.toml").read_text()
    assert 'share = "extra-anchors"' in recipe and "inputs" in recipe


def test_a_changed_file_is_another_recipe(files: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.en"
    own.write_text((files / "text.en").read_text())
    pretrain(tmp_path / "model", text=[f"en={own}"], **SMALL)
    moved = own.rename(tmp_path / "moved.en")
    pretrain(tmp_path / "model", text=[f"en={moved}"], **SMALL)
    moved.write_text(moved.read_text() + "one more\n")
    with pytest.raises(BadSetting, match="another recipe"):
        pretrain(tmp_path / "model", text=[f"en={moved}"], **SMALL)


def test_a_dataset_by_name(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    lines = [f"the dog {i} sleeps\nand the cat {i} eats" for i in range(30)]
    datasets.Dataset.from_dict({"text": lines}).save_to_disk(str(tmp_path / "made"))
    datasets.Dataset.from_dict({"words": lines}).save_to_disk(str(tmp_path / "other"))
    held = file_corpora([f"en=hf:{tmp_path / 'made'}"])
    assert len(held.texts[0]) + len(held.held_out[0]) == 60
    with pytest.raises(BadInput, match="it holds words"):
        file_corpora([f"en=hf:{tmp_path / 'other'}"])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"text": ["en=nowhere.txt"]}, "no such file"),
        ({"text": ["en"]}, "not understood"),
        ({"text": ["en={files}/empty.txt"]}, "0 different sentences of en"),
        ({"text": ["zz-9={files}/text.en"]}, "zz-9"),
        ({"text": ["en={files}/text.en"], "share": "extra-anchors"}, "need a dictionary"),
        ({"text": ["en={files}/text.en", "fr={files}/text.en"], "share": "extra-anchors",
          "dictionary": ["{files}/en-de.txt"]}, "languages there is text of"),
        ({"text": ["en={files}/text.en"], "paired": 0.5}, "need a bitext"),
        ({"text": ["en={files}/text.en", "fr={files}/text.en"], "paired": 0.5,
          "bitext": ["en,de={files}/both.tsv"]}, "no text"),
        ({"text": ["en={files}/text.en"], "share": "no-anchors"}, "en is the only language"),
        ({"text": ["en,en={files}/both.tsv"]}, "en twice"),
        ({"text": ["en="]}, "en=FILE"),
        ({"text": ["en={files}/text.en"], "languages": ("en", "near")}, "are of the world"),
        ({"text": ["en={files}/text.en"], "minutes": 1}, "--steps or --minutes"),
        ({"text": ["en={files}/text.en"], "max_length": 3}, "at least 8"),
        ({"text": ["en={files}/text.en"], "vocabulary": 20}, "at least"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_and_nothing_written(
    files: Path, tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    (files / "empty.txt").write_text("\n\n")

    def filled(value: Any) -> Any:
        return [one.format(files=files) for one in value] if isinstance(value, list) else value

    with pytest.raises(CalqueError, match=told):
        pretrain(tmp_path / "model", **SMALL | {name: filled(value) for name, value in settings.items()})
    assert not (tmp_path / "model").exists()


def test_text_is_asked_for(tmp_path: Path) -> None:
    for more in ([], ["--world", "--text", "en=a.txt"]):
        told = CliRunner().invoke(app, ["pretrain", "--out", str(tmp_path / "model"), *more])
        assert isinstance(told.exception, BadSetting)
        assert "--text en=FILE" in str(told.exception)
