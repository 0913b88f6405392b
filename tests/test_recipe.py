"""Settings: layers by name, mistakes told, digests that know what matters."""

from pathlib import Path
from typing import ClassVar

import pytest

from calque.errors import BadInput, BadSetting
from calque.recipe import Device, Recipe, parse_layers


class Toy(Recipe):
    verb: ClassVar[str] = "toy"
    places: ClassVar[frozenset[str]] = frozenset({"path"})
    path: str = ""
    width: int = 3
    names: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("all", tuple(range(13))),
        ("last", (12,)),
        ("last4", (9, 10, 11, 12)),
        ("0", (0,)),
        ("-1", (12,)),
        ("-13", (0,)),
        ("8-12", (8, 9, 10, 11, 12)),
        ("3, 1,3", (1, 3)),
        ("0,last2", (0, 11, 12)),
    ],
)
def test_layers_by_name(text: str, layers: tuple[int, ...]) -> None:
    assert parse_layers(text, 12) == layers


@pytest.mark.parametrize("text", ["13", "-14", "last14", "last0", "5-3", "8-13", "", "top", "1,,2", "1.5"])
def test_layers_that_are_not_there(text: str) -> None:
    with pytest.raises(BadSetting, match="layer"):
        parse_layers(text, 12)


def test_every_mistake_is_told_with_the_nearest_name() -> None:
    with pytest.raises(BadSetting, match=r"width.*whole number.*did you mean names"):
        Toy.build(width="wide", nmaes=("a",))


def test_the_digest_knows_inputs_and_settings_but_not_places() -> None:
    plain = Toy.build(path="a", inputs={"0": "abc"})
    assert plain.digest() == Toy.build(path="b", inputs={"0": "abc"}).digest()
    assert plain.digest() != Toy.build(path="a", inputs={"0": "abd"}).digest()
    assert plain.digest() != Toy.build(path="a", inputs={"0": "abc"}, seed=1).digest()


def test_a_recipe_survives_the_disk(tmp_path: Path) -> None:
    toy = Toy.build(path='ü\n"', names=("a", "b"), inputs={"x y": "1"})
    toy.save(tmp_path / "recipe.toml")
    assert Toy.load(tmp_path / "recipe.toml") == toy
    (tmp_path / "recipe.toml").write_text('verb = "toy"\nwdith = 3\n')
    with pytest.raises(BadInput, match="did you mean width"):
        Toy.load(tmp_path / "recipe.toml")
    (tmp_path / "recipe.toml").write_text("= 3\n")
    with pytest.raises(BadInput, match="not TOML"):
        Toy.load(tmp_path / "recipe.toml")
    with pytest.raises(BadInput, match="no such file"):
        Toy.load(tmp_path / "nowhere.toml")


def test_choices_suggest() -> None:
    assert Device.parse("cpu") is Device.CPU
    with pytest.raises(BadSetting, match="did you mean cuda"):
        Device.parse("cud")


@pytest.mark.parametrize("value", ["nan", "inf", "0x" + "f" * 5000, "99999999999999999999"])
def test_numbers_that_no_setting_can_be(tmp_path: Path, value: str) -> None:
    (tmp_path / "recipe.toml").write_text(f'verb = "toy"\nwidth = {value}\n')
    with pytest.raises(BadInput, match=r"recipe.toml: width: .*(finite|too large)"):
        Toy.load(tmp_path / "recipe.toml")


@pytest.mark.parametrize("seed", [-1, 2**31, 2**63, 10**30])
def test_seeds_that_nothing_takes(seed: int) -> None:
    with pytest.raises(BadSetting, match="seed"):
        Toy.build(seed=seed)


@pytest.mark.parametrize("text", ["last²", "²", "٣", "9" * 5000, "0-" + "9" * 30, "\0"])
def test_numbers_that_only_look_like_layers(text: str) -> None:
    with pytest.raises(BadSetting, match="layer"):
        parse_layers(text, 12)


def test_a_recipe_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_bytes(b'verb = "toy"\npath = "\xff"\n')
    with pytest.raises(BadInput, match=r"recipe.toml:2: byte 0xff at offset 21 is not UTF-8"):
        Toy.load(tmp_path / "recipe.toml")


def test_a_name_that_is_not_utf8_is_refused_before_the_work() -> None:
    with pytest.raises(BadSetting, match=r"^names: fa\\udcfcr\.tsv is not UTF-8; rename it"):
        Toy.build(names=["fa\udcfcr.tsv"])
