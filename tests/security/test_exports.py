"""Tables and cards of hostile names: a spreadsheet computes none, LaTeX runs none, Markdown shows them."""

import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from calque.pipeline.card import code, front_matter, table
from calque.report.collect import collect
from calque.report.export import exported
from calque.report.latex import escaped
from calque.report.page import write_page
from calque.report.written import Block, markdown_text
from run_folders import LABELS, measured, write_run

HOSTILE = [
    "<script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "</style></title></textarea><!--",
    "{{7*7}}{% raw %}",
    "[a](javascript:alert(1))",
    "![a](http://127.0.0.1:9/x.png)",
    "a\u202etxt.exe",
    "\\input{/etc/passwd}\\write18{ls} 50% & # $x^2$ ~ _",
    "=cmd|' /C calc'!A0",
    "+1+cmd()",
    "-strong",
    "@SUM(A1)",
    "\t=1+1",
    "a|b\\|c`d",
    "a\n---\nlicense: stolen\n# b",
    "&lt;b&gt;&#60;",
]


def run_of(folder: Path, name: str) -> Path:
    """A run with a hostile encoder, task and variant."""
    held = measured("word-retrieval", "accuracy", "contextual", lambda depth, rank: 0.5 + 0.1 * depth)
    other = LABELS[1]
    results = [replace(r, encoder=name if r.encoder == other else r.encoder, variant=name) for r in held]
    return write_run(folder / "run", "measure words", results)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_spreadsheet_computes_no_label(name: str, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(collect(run_of(tmp_path, name)), "csv"))))
    assert name.strip() in {row["encoder"].removeprefix("'").strip() for row in rows}
    for row in rows:
        assert not [cell for cell in row.values() if cell.lstrip().startswith(("=", "+", "@"))]
        assert not [cell for cell in row.values() if cell.lstrip().startswith("-") and not is_number(cell)]
        assert is_number(row["value"])
    assert any(row["difference"].startswith("-") for row in rows) or any(row["difference"] for row in rows)


def is_number(text: str) -> bool:
    try:
        return bool(float(text)) or True
    except ValueError:
        return False


class Tags(HTMLParser):
    """The tags of a text, in the order in which they begin."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_shows_it_as_it_is(name: str, tmp_path: Path) -> None:
    text = markdown_text(name)
    assert "\n" not in text
    assert not re.search(r"(?<!\\)(<[A-Za-z/!?]|\]\()", text) and not re.search(r"(?<!\\)(\\\\)*\|", text)
    assert re.sub(r"\\([\\`|<(\[&])", r"\1", text) == " ".join(name.split()) or "\n" not in name
    block = Block("t", name, ("a", name), ((name, "b"),), (name,), name)
    rows = [line for line in block.markdown.splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows] == [3, 3, 3]
    written = exported(collect(run_of(tmp_path, name)), "md")
    assert not re.search(r"(?<!\\)<(script|img|/style|!--)", written)


@pytest.mark.parametrize("name", HOSTILE)
def test_latex_runs_nothing(name: str) -> None:
    plain = re.sub(r"\\[{}$&#_%]|\\text\w+\{\}|\$[<>|]\$", "", escaped(name))
    assert not re.search(r"[\\%&#_~^]", plain)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_card_is_not_led_astray(name: str) -> None:
    """Neither its front matter nor its Markdown."""
    text = front_matter({"tags": [name], "base_model": name})
    assert yaml.safe_load(text[4:-4]) == {"tags": [name], "base_model": name}
    assert re.findall("^---$", text, re.M) == ["---", "---"]
    (row,) = table(("a", "b"), iter([(code(name), "c")])).splitlines()[2:]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3
    fence = re.match("`+", code(name))
    assert fence and code(name).endswith(fence[0]) and "\n" not in code(name)


def test_a_page_has_the_tags_of_a_harmless_one(tmp_path: Path) -> None:
    """Whatever names say, a page is made of the same elements; and no text is turned around."""
    pages = []
    for place, name in enumerate(["harmless", " ".join(HOSTILE)]):
        text = write_page(run_of(tmp_path / str(place), name)).read_text(encoding="utf-8")
        assert "\u202e" not in text and text.count("<script>") == 1
        pages.append(Tags(text).found)
    assert pages[0] == pages[1]
