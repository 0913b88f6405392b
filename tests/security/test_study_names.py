"""What a recipe of somebody else names: files of its folders, and nothing that only calque may say."""

from pathlib import Path

import pytest

from calque.study.plan import make_plan
from calque.study.recipe import load_study

RECIPE = """
[world]
count = 20
[encoders]
one = "{encoder}"
[links]
tokenised = true
text.near = "{text}"
[align]
methods = ["centring"]
"""
GOOD = {"encoder": "world:encoder", "text": "world:text/en-near.tsv"}


def mistakes(folder: Path, **changed: str) -> list[str]:
    path = folder / "study.toml"
    path.write_text(RECIPE.format(**{**GOOD, **changed}), encoding="utf-8")
    return list(make_plan(load_study(path)).mistakes)


@pytest.mark.parametrize(
    "name",
    ["data:../secret.tsv", "data:/etc/passwd", "data:~/secret", "world:../../x", "world:/etc/passwd",
     "cell://a/../../x", "file:///etc/passwd", "en.tsv,cell://a"],
)  # fmt: skip
@pytest.mark.parametrize("place", list(GOOD))
def test_a_name_does_not_lead_out_of_its_folder(place: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "secret.tsv").write_text("a\tb\n")
    assert mistakes(tmp_path) == []
    told = " ".join(mistakes(tmp_path, **{place: name}))
    assert "leads out of its folder" in told or "are not for recipes" in told
