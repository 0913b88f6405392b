"""Dictionaries in the format of MUSE."""

from pathlib import Path

import pytest

from calque.errors import BadInput
from calque.pipeline.vocabularies import read_dictionaries
from calque.text.dictionaries import Dictionary, read_dictionary


def put(folder: Path, text: str) -> Path:
    path = folder / "en-de.txt"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_tabs_and_spaces_and_several_translations(tmp_path: Path) -> None:
    found = read_dictionary(
        put(tmp_path, "bank Bank\nbank\tUfer\r\nnew york\tNew York\n\nbank  Bank\ntree Baum")
    )
    assert found.pairs == (("bank", "Bank"), ("bank", "Ufer"), ("new york", "New York"), ("tree", "Baum"))
    assert found.translations == {"bank": ("Bank", "Ufer"), "new york": ("New York",), "tree": ("Baum",)}
    assert found.swapped().translations["Ufer"] == ("bank",)
    assert found.swapped().swapped() == found


@pytest.mark.parametrize("line", ["alone", "three words here", "a\tb\tc", "a\t", "\tb"])
def test_bad_lines_are_placed(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadInput, match=r"en-de\.txt:2: "):
        read_dictionary(put(tmp_path, f"tree Baum\n{line}\n"))


def test_empty_files(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no word pairs"):
        read_dictionary(put(tmp_path, "\n\n"))


def test_the_order_of_languages_is_as_asked(tmp_path: Path) -> None:
    one = put(tmp_path, "tree Baum\n")
    other = tmp_path / "de-en.txt"
    other.write_text("Haus house\n")
    there, back = Dictionary((("tree", "Baum"),)), Dictionary((("Baum", "tree"),))
    assert read_dictionaries([one], None) == read_dictionaries([one], ("en", "de")) == {("en", "de"): there}
    assert read_dictionaries([one], ("de", "en")) == {("de", "en"): back}
    assert read_dictionaries([one], ("de", "en-GB")) == {("de", "en-GB"): back}
    kinds = tmp_path / "en_GB-en_US.txt"
    kinds.write_text("colour color\n")
    assert read_dictionaries([kinds], ("en-US", "en-GB")) == {
        ("en-US", "en-GB"): Dictionary((("color", "colour"),))
    }
    both = read_dictionaries([one, other], ("de", "en"))
    assert list(both.items()) == [(("de", "en"), Dictionary((("Haus", "house"),))), (("en", "de"), there)]


def test_real_dictionaries(shared_data: Path) -> None:
    paths = sorted((shared_data / "dictionaries").iterdir())
    assert paths
    for path in paths:
        found: Dictionary = read_dictionary(path)
        assert len(found) == sum(1 for _ in path.open(encoding="utf-8"))
        assert len(found.translations) in (5001, 1500)
