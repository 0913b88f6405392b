"""What README and docs tell people to type: every option exists, every Python block compiles."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import typer

from calque.cli import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def blocks(page: Path, *kinds: str) -> list[str]:
    return [body for kind, body in FENCE.findall(page.read_text(encoding="utf-8")) if kind in kinds]


def commands(page: Path) -> list[str]:
    text = "\n".join(blocks(page, "", "sh", "bash", "console")).replace("\\\n", " ")
    found = (re.match(r"^(?:\$ )?(?:\S*/)?calque (.*)", line) for line in text.splitlines())
    return [match.group(1).split("  #")[0].split(" | ")[0].split(" > ")[0] for match in found if match]


def unknown_options(line: str) -> list[str]:
    words, command = shlex.split(line), typer.main.get_command(app)
    while words and hasattr(command, "commands"):
        if words[0] not in command.commands:
            return [] if words[0].startswith("-") else [words[0]]
        command = command.commands[words.pop(0)]
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}
    return [word for word in words if re.match(r"--?[a-z]", word) and word.split("=")[0] not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_on_the_page_exist(page: Path) -> None:
    wrong = {line: unknown for line in commands(page) if (unknown := unknown_options(line))}
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_the_page_compiles_and_imports_what_exists(page: Path) -> None:
    for block in blocks(page, "python"):
        if ">>>" in block:
            continue
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("calque"):
                module = __import__(node.module, fromlist=["_"])
                assert all(hasattr(module, alias.name) for alias in node.names), ast.unparse(node)


def test_the_check_itself_sees_a_wrong_option() -> None:
    assert unknown_options("measure words --encoder a --nonsense 3") == ["--nonsense"]
    assert unknown_options("measure word --encoder a") == ["word"]


def test_the_readme_has_exactly_two_set_up_commands_and_ci_runs_the_second() -> None:
    lines = [
        line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("python3 -m venv")
    ]
    assert len(lines) == 2
    assert lines[1].endswith("pytest") and "pytest" not in lines[0]
    assert "grep -m1 -E '^python3 -m venv .*pytest' README.md" in (ROOT / ".ci" / "run").read_text()
