"""README and docs: commands exist, Python compiles, links lead somewhere; what is told in steps is done."""

import ast
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_encoders
import transformers
import typer

from calque.cli import app, main
from calque.demo.corpus import sentences, write_corpus
from calque.encoders.encoder import HuggingFaceEncoder
from calque.report.collect import collect

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PRESETS = ROOT / "docs" / "studies-presets.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"""(?:\]\(|src="|srcset=")([^)"\s]+)""")
E5, HUB = "e5-small-q4", "FacebookAI/xlm-roberta-base"
#: What a page asks of a larger text than tests have.
SMALL = {"--test 500": "--test 40", "test = 500": "test = 40", "[100, 500]": "[20, 40]"}
Follow = Callable[[Path, dict[str, str]], None]


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
    assert "&& .venv/bin/pytest" in lines[1] and "pytest" not in lines[0]
    assert "grep -m1 -E '^python3 -m venv .*pytest' README.md" in (ROOT / ".ci" / "run").read_text()


# ---------------------------------------------------------------------------------------------- links


def relative_links(page: Path) -> list[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [link.split("#")[0] for link in LINK.findall(text) if not re.match(r"\w+:|#", link)]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_relative_links_lead_to_files(page: Path) -> None:
    assert not [link for link in relative_links(page) if not (page.parent / link).exists()]


def test_readme_links_to_every_page_of_the_docs() -> None:
    linked = {(ROOT / link).resolve() for link in relative_links(ROOT / "README.md")}
    # Studies of the papers have a list of their own.
    listed = {(PRESETS.parent / link).resolve() for link in relative_links(PRESETS)}
    assert set(PAGES[1:]) <= linked | {page for page in listed if page.parent.name == "presets"}
    shown = {(page.parent / link).resolve() for page in PAGES for link in relative_links(page)}
    assert set((ROOT / "docs" / "images").iterdir()) <= shown


# -------------------------------------------------------------------------------------------- running


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Follow:
    """Do what a page says, these words replaced, from top to bottom, beside the demo's text and two files."""
    write_corpus(tmp_path / "runs" / "demo" / "text")
    for code in ("en", "ru"):
        lines = [" ".join(words) for words in sentences(code)]
        (tmp_path / f"corpus.{code}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def run(page: Path, replaced: dict[str, str]) -> None:
        text, names = page.read_text(encoding="utf-8"), {"__name__": page.stem}
        for old, new in replaced.items():
            text = text.replace(old, new)
        for kind, body in FENCE.findall(text):
            if kind == "toml":
                Path("study.toml").write_text(body, encoding="utf-8")
            elif kind == "python":
                exec(compile(body, page.name, "exec"), names)
            elif kind == "sh":
                for line in body.replace("\\\n", " ").splitlines():
                    type_in(line)

    def type_in(line: str) -> None:
        monkeypatch.setattr("sys.argv", shlex.split(line))
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        assert not stop.value.code, f"{line}\n{told.out}{told.err}"

    return run


@pytest.fixture(scope="module")
def twelve_layers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with an encoder as deep as e5-small-q4, but tiny and random."""
    tokenizer = tiny_encoders.wordpiece()
    sizes = {**tiny_encoders.SIZES, "num_hidden_layers": 12}
    model = transformers.BertModel(transformers.BertConfig(vocab_size=len(tokenizer), **sizes))
    folder = tmp_path_factory.mktemp("encoders") / "tiny"
    HuggingFaceEncoder.from_model(model, tokenizer, "tiny").save(folder)
    return str(folder)


def test_the_python_of_readme_is_ten_lines_and_runs(
    follow: Follow, twelve_layers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in block.splitlines() if line.strip()]) == 10
    follow(ROOT / "README.md", {E5: twelve_layers})
    assert capsys.readouterr().out.endswith("runs/words/report.html\n")


def test_the_tutorial_runs_from_top_to_bottom(follow: Follow, twelve_layers: str) -> None:
    for text in Path().glob("corpus.*"):
        text.write_text("\n".join(text.read_text(encoding="utf-8").splitlines()[:120]), encoding="utf-8")
    follow(TUTORIAL, {E5: twelve_layers, HUB: twelve_layers, **SMALL})
    assert {result.encoder for result in collect(Path("study")).results} >= {"e5", "centring, size 20"}
    assert {result.encoder for result in collect(Path("words")).results} == {"tiny", "centred", "rotated"}
    assert Path("words/report.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("page", [ROOT / "README.md", TUTORIAL], ids=lambda page: page.name)
def test_they_run_with_e5(
    page: Path, follow: Follow, e5_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALQUE_CACHE", str(e5_directory.parents[1]))
    follow(page, {HUB: E5, **SMALL, "[100, 500]": "[80, 160]"})  # pairs enough for 384 dimensions
