"""Model cards of aligned encoders: what they say, that a hub reads them, and that nothing depends on them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tiny_encoders
import yaml
from hypothesis import given
from hypothesis import strategies as st

import calque
from calque.encoders.bylanguage import LanguageEncoders
from calque.encoders.open import checkpoint_files, open_encoder
from calque.errors import BadSetting
from calque.files import read_json
from calque.pipeline import AlignRecipe, align
from calque.pipeline.card import CARD, card, front_matter, hub_names


def read(folder: Path) -> tuple[dict[str, Any], str]:
    """Front matter and text of a folder's card."""
    before, metadata, text = (folder / CARD).read_text(encoding="utf-8").split("---\n", 2)
    assert before == ""
    return yaml.safe_load(metadata), text


@pytest.fixture(scope="module")
def pairs(corpus: Path) -> Path:
    return corpus / "links" / "train"


@pytest.fixture(scope="module")
def rotated(pairs: Path, bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rotated") / "rotated"
    align(
        str(bert), pairs, out=folder, method="rotation", shrink=0.25, prefix="query: ", layers="2,3", seed=7
    )
    return folder


def test_a_card_of_maps_says_how_they_were_made_and_that_others_do_not_apply_them(
    rotated: Path, bert: Path
) -> None:
    metadata, text = read(rotated)
    assert metadata == {
        "language": ["de", "en"], "library_name": "calque", "tags": ["calque", "cross-lingual", "rotation"],
    }  # fmt: skip
    about = read_json(rotated / "alignment.json")
    used = about["coverage"]["en-de"]["used"]
    recipe = tomllib.loads((rotated / "recipe.toml").read_text(encoding="utf-8"))
    for told in (
        "| method | `rotation` |", "| layers | 2, 3 |", "| shrink | `0.25` |", '| prefix | `"query: "` |',
        "| seed | 7 |", f"| calque | {calque.__version__} |", f"| English–German | {used:,} | nothing |",
        f"fingerprint `{recipe['inputs']['encoder'][:12]}`", "WITHOUT the maps", "12 of English–German",
    ):  # fmt: skip
        assert told in text, told
    assert str(bert.parent) not in text, "no paths of the machine it was made on"


def test_a_card_of_a_training_says_that_any_program_loads_it(pairs: Path, bert: Path, tmp_path: Path) -> None:
    align(str(bert), pairs, out=tmp_path / "weak", method="weak", steps=2, batch=4)
    metadata, text = read(tmp_path / "weak")
    assert metadata["library_name"] == "transformers" and metadata["tags"][-1] == "weak"
    assert "needs nothing else" in text and "WITHOUT" not in text and "| steps | `2` |" in text


def test_cards_of_encoders_by_language_and_of_static_vectors(
    corpus: Path, pairs: Path, tmp_path: Path
) -> None:
    for code in ("en", "de"):
        tiny_encoders.build("bert").save(tmp_path / code)
    spec = f"en={tmp_path}/en,de={tmp_path}/de"
    made = align(spec, pairs, out=tmp_path / "both", method="rotation", shrink=0.3)
    assert isinstance(made.inner, LanguageEncoders)
    metadata, text = read(tmp_path / "both")
    assert metadata["language"] == ["de", "en"] and "`path/to" not in text
    assert '"path/to/this/folder/languages/de")` loads the weights but gives vectors WITHOUT' in text
    for code, words in (("en", "cat dog the"), ("de", "Katze Hund die")):
        rows = "".join(f"{word} {n} {n * n} 1\n" for n, word in enumerate(words.split(), 1))
        (tmp_path / f"{code}.vec").write_text(f"3 3\n{rows}", encoding="utf-8")
    static = f"en={tmp_path}/en.vec,de={tmp_path}/de.vec"
    align(
        static, out=tmp_path / "static", method="centring", supervision="dictionary",
        dictionary=(str(corpus / "words.txt"),), languages=("en", "de"),
    )  # fmt: skip
    metadata, text = read(tmp_path / "static")
    assert metadata["library_name"] == "calque" and "base_model" not in metadata
    assert "Word vectors, those of `en.vec+de.vec`, unchanged" in text and "AutoModel" not in text


def test_equal_runs_write_equal_cards(pairs: Path, bert: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        align(str(bert), pairs, out=tmp_path / name, method="centring")
    assert (tmp_path / "one" / CARD).read_bytes() == (tmp_path / "two" / CARD).read_bytes()


def test_nothing_depends_on_a_card_and_no_encoder_inherits_one(
    rotated: Path, pairs: Path, bert: Path, tmp_path: Path
) -> None:
    before = open_encoder(str(rotated)).fingerprint
    kept = (rotated / CARD).read_text(encoding="utf-8")
    (rotated / CARD).write_text("another", encoding="utf-8")
    assert open_encoder(str(rotated)).fingerprint == before
    assert CARD not in {file.name for file in checkpoint_files(rotated)}
    (rotated / CARD).write_text(kept, encoding="utf-8")
    align(str(bert), pairs, out=tmp_path / "weak", method="weak", steps=2, batch=4)
    with pytest.raises(BadSetting, match="aligned already"):
        align(str(tmp_path / "weak"), pairs, out=tmp_path / "moved", method="centring")
    (tmp_path / "weak" / "alignment.json").unlink()
    align(str(tmp_path / "weak"), pairs, out=tmp_path / "moved", method="centring")
    assert read(tmp_path / "moved")[0]["tags"][-1] == "centring"
    assert read(tmp_path / "weak")[0]["tags"][-1] == "weak", "what was linked to is not written through"


def test_a_hub_name_is_the_base_model_and_a_note_comes_first(rotated: Path) -> None:
    made, recipe = open_encoder(str(rotated)), AlignRecipe.load(rotated / "recipe.toml")
    named = recipe.model_copy(update={"encoder": "FacebookAI/xlm-roberta-base"})
    text = card(made, named, "**Stopped.**")  # type: ignore[arg-type]
    assert yaml.safe_load(text.split("---\n")[1])["base_model"] == "FacebookAI/xlm-roberta-base"
    assert "# `xlm-roberta-base`, aligned across languages\n\n**Stopped.**\n" in text
    assert "recipe.toml" not in text, "what stopped has none"
    assert hub_names("e5-small-q4") == hub_names(str(rotated)) == []


@given(st.dictionaries(st.text(min_size=1), st.lists(st.text()) | st.text()))
def test_any_name_survives_the_front_matter(held: dict[str, Any]) -> None:
    first, metadata, *rest = front_matter(held).split("---\n")
    whole = "---\n".join([metadata, *rest[:-1]])
    assert first == "" and yaml.safe_load(whole) == held


def test_languages_that_yaml_takes_for_something_else() -> None:
    assert yaml.safe_load(front_matter({"language": ["no", "on", "en"]}).strip("-\n"))["language"][0] == "no"
