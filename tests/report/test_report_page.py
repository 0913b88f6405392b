import base64
import hashlib
import html
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

import calque.report
from calque.errors import BadInput
from calque.files import write_json, write_text
from calque.report.page import write_page
from calque.types import Result

NASTY = "<script>alert(\"1\")</script><img src=x onerror='y'> & {{ 7 * 7 }}"
VOID = {"meta", "link", "br", "img", "circle", "line", "rect", "polyline", "polygon"}


class Seen(HTMLParser):
    """Elements, their attributes and text, with a check that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID - {"circle", "rect"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def page(folder: Path) -> tuple[str, Seen]:
    path = write_page(folder)
    assert path == folder / "report.html"
    text = path.read_text(encoding="utf-8")
    return text, Seen(text)


OWN = Path(calque.report.__file__).parent / "templates"


def safe(text: str, seen: Seen) -> None:
    """Nothing runs but the page's own script, nothing is fetched; the content policy sees to both."""
    own = {"script": (OWN / "page.js").read_text("utf-8"), "style": (OWN / "style.css").read_text("utf-8")}
    tags = [tag for tag, _ in seen.elements]
    assert not set(tags) & {"img", "iframe", "object", "embed"}
    (policy,) = [held["content"] for tag, held in seen.elements if "http-equiv" in held]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for tag, held in own.items():
        digest = base64.b64encode(hashlib.sha256(held.encode()).digest()).decode()
        assert tags.count(tag) == 1 and f"<{tag}>{held}</{tag}>" in text
        assert f"{tag}-src 'sha256-{digest}'" in policy
    for tag, attributes in seen.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (
            tag,
            attributes,
        )
        for name in ("src", "href", "action"):
            assert not (attributes.get(name) or "#").startswith(("http", "//", "javascript", "file")), (
                attributes
            )
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "@import" not in text and "url(" not in text and "eval(" not in text


def test_the_page_holds_what_the_results_say(made, scored) -> None:
    results = scored(("base", "rotated", "fine-tuned"))
    text, seen = page(made("run", results))
    safe(text, seen)
    for r in results:
        if r.direction == "both" and r.group is None:
            value = f"{r.value * 100:.1f}" if r.baseline is None else f"{r.value * 100:+.1f}"
            assert value.replace("-", "−") in seen.text, r
        if r.direction == "both" and r.group is not None and r.layer == 8:
            assert f"{r.group[1]}, {r.encoder}: {r.value * 100:.1f}%" in seen.text, r
    assert len(text.encode()) < 300_000


def test_the_table_holds_each_figure_in_its_cell(made, scored) -> None:
    results = scored(bins=False)
    text, _ = page(made("run", results))
    body = re.search(r"<tbody>(.*?)</tbody>", text, re.S)[1]
    rows = [[re.sub(r"<.*?>", "", cell).split() for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)]
            for row in re.findall(r"<tr>(.*?)</tr>", body, re.S)]  # fmt: skip
    held = {(r.encoder, r.layer, r.baseline): r for r in results if r.direction == "both"}
    assert len(rows) == 13
    for layer, (label, base, rotated, change, p, corrected) in enumerate(rows):
        assert label == [str(layer)]
        assert base[0] == f"{held['base', layer, None].value * 100:.1f}"
        assert rotated[0] == f"{held['rotated', layer, None].value * 100:.1f}"
        assert change[0] == f"{held['rotated', layer, 'base'].value * 100:+.1f}*"
        assert p == ["&lt;0.001"] and corrected == ["0.001"]


@pytest.mark.parametrize(
    ("gain", "p", "words"),
    [
        (0.12, 0.0001, "rotated helped"),
        (-0.1, 0.0001, "rotated hurt"),
        (0.01, 0.4, "No evidence that rotated helped or hurt"),
    ],
)
def test_the_verdict_comes_first(made, scored, gain: float, p: float, words: str) -> None:
    text, _ = page(made("run", scored(gain=gain, p=p, bins=False)))
    first = re.search(r"<h2.*?</h2>", text, re.S)[0]
    assert words.lower() in first.lower() and text.index(first) < text.index("<svg")
    assert "<h1" in text[: text.index(first)]


def test_all_text_is_escaped(made, scored) -> None:
    example = {
        "direction": "forward",
        "query": NASTY,
        "sentence": [NASTY, "x"],
        "index": 0,
        "gold": {"word": NASTY, "sentence": [NASTY], "index": 0},
        "retrieved": {NASTY: {"word": NASTY, "sentence": [NASTY], "index": 0, "hit": False}},
    }
    grid = {"source": [NASTY], "target": [NASTY], "links": [[0, 0, 1.0]]}
    results = scored(("base", NASTY), languages=(NASTY, 'ru" onload="x'))
    results += [Result("links", "f1", 0.5, ("en", "ru"), NASTY)]
    folder = made("run", results, examples=[example], links=[grid])
    write_json(folder / "environment.json", {NASTY: NASTY, "command": NASTY})
    write_json(folder / "artifacts" / "counts.json", {NASTY: 3})
    write_text(folder / "recipe.toml", f"verb = '''{NASTY}'''\n")
    text, seen = page(folder)
    safe(text, seen)
    assert NASTY in "".join(seen.words)


def test_words_carry_their_language_and_direction(made, scored) -> None:
    example = {
        "direction": "backward",
        "query": "عين",
        "sentence": ["شربنا", "من", "عين", "صغيرة"],
        "index": 2,
        "gold": {"word": "spring", "sentence": ["a", "small", "spring"], "index": 2},
        "retrieved": {"base": {"word": "eye", "sentence": ["one", "eye"], "index": 1, "hit": False}},
    }
    text, seen = page(made("run", scored(languages=("en", "ar"), bins=False), examples=[example]))
    said = [attributes for tag, attributes in seen.elements if attributes.get("class") == "said"]
    assert [(a["lang"], a["dir"]) for a in said] == [("ar", "auto"), ("en", "auto"), ("en", "auto")]
    assert "شربنا من <mark>عين</mark> صغيرة" in text and "one <mark>eye</mark>" in text


@pytest.mark.parametrize("kind", ["one layer", "one encoder", "no layer", "no results", "bare", "links"])
def test_pages_of_small_runs(made, scored, kind: str) -> None:
    grid = [{"source": ["a"], "target": ["b"], "links": []}]
    scores = [Result("links", m, 0.8, ("en", "ru"), "eflomal") for m in ("precision", "recall", "f1", "aer")]
    folder = {
        "one layer": lambda: made("run", scored(layers=(12,), bins=False), examples=None),
        "one encoder": lambda: made("run", scored(("base",)), examples=None),
        "no layer": lambda: made("run", scored(layers=(None,)), examples=None),
        "no results": lambda: made("run", None, examples=None, links=grid, verb="link"),
        "bare": lambda: made("run", [], examples=[]),
        "links": lambda: made("run", scores, examples=None, links=grid, verb="link"),
    }[kind]()
    text, seen = page(folder)
    safe(text, seen)
    assert "None" not in seen.text and "nan" not in seen.text.lower().split()
    assert ("Layer by layer" in seen.text) == (kind == "one encoder")
    assert ("Before and after" in seen.text) == (kind in ("one layer", "no layer"))
    assert ("By kind of word" in seen.text) == (kind in ("one encoder", "no layer"))
    assert ("Linked words" in seen.text) == (kind in ("no results", "links"))
    assert ("Nothing was measured" in seen.text) == (kind == "bare")


def test_a_folder_of_runs_makes_one_page(made, scored, tmp_path: Path) -> None:
    made("first", scored(bins=False)), made("second", scored(gain=-0.1, bins=False))
    text, seen = page(tmp_path)
    safe(text, seen)
    targets = {attributes["href"] for tag, attributes in seen.elements if tag == "a"}
    assert targets == {f"#{a['id']}" for _, a in seen.elements if "id" in a} == {"#top", "#run0", "#run1"}
    assert re.search("first Word retrieval, accuracy Rotated helped: .8.9 points", seen.text)
    assert "second Word retrieval, accuracy Rotated hurt" in seen.text
    assert len(headings(text, "On your own bitext")) == 1


def test_how_it_was_made_is_told(made, scored) -> None:
    _, seen = page(made("run", scored(bins=False)))
    for words in (
        "3 min 12 s",
        "2.1 GB",
        "numpy 2.4.0",
        "task:word-retrieval|encoder:base",
        "calque measure",
    ):
        assert words in seen.text
    assert seen.text.index("links 3,120") < seen.text.index("scored 2,586") < seen.text.index("identical 301")


def test_languages_that_cannot_be_tested_together_are_tallied(made, scored) -> None:
    results = scored(bins=False) + scored(languages=("en", "de"), gain=-0.1, bins=False)
    results += scored(languages=("en", "zh"), gain=0.01, p=0.5, bins=False)
    text, seen = page(made("run", results))
    safe(text, seen)
    first = re.search(r"<h2.*?</h2>", text, re.S)[0]
    assert "Rotated helped in Russian; hurt in German; no evidence in Chinese" in first
    assert len(headings(text, "Language by language")) == 1 and "untested" in seen.text


def headings(text: str, words: str) -> list[str]:
    return [found for found in re.findall(r"<h\d.*?</h\d>", text, re.S) if words in found]


def test_five_languages_are_one_page(five: Path) -> None:
    text, seen = page(five)
    safe(text, seen)
    first = re.search(r"<h2.*?</h2>", text, re.S)[0]
    assert re.search(r"Centring \(\+4\.\d points\) helped; centred rotation \(−10\.\d points\) hurt", first)
    for words in ("Language by language", "Layer by layer", "Every figure", "On your own bitext"):
        assert len(headings(text, words)) == 1, words
    assert len(re.findall("<svg xmlns", text)) == 1 + 6 + 6, (
        "one of all languages; curves and gains, a mean each"
    )
    assert "Helped in German, Spanish, Hindi and Russian; no evidence in Chinese." in seen.text
    assert "Hurt in all 5 languages." in seen.text
    assert "Layer 1, where base is best" in seen.text or "layer 1, where base is best" in seen.text
    assert len(text.encode()) < 2_000_000


def test_headings_come_in_order(five: Path, made, scored, tmp_path: Path) -> None:
    made("second", scored())
    for folder in (five, tmp_path / "second", tmp_path):
        text, _ = page(folder)
        levels = [int(level) for level in re.findall(r"<h(\d)", text)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(b <= a + 1 for a, b in pairwise(levels)), levels


BANK = [
    ("We sat on the bank .", "Ufer", "Wir saßen am Ufer .",
     {"base": "Bank", "centring": "Ufer", "centred rotation": "Ufer"}),
    ("The bank is closed .", "Bank", "Die Bank ist zu .",
     {"base": "Bank", "centring": "Bank", "centred rotation": "Bank"}),
]  # fmt: skip


def test_ambiguous_words_show_each_sentence_once_with_all_languages(five: Path, sensed) -> None:
    chinese = [
        (said, right, target, dict.fromkeys(found, right))
        for (said, *_, found), (right, target) in zip(
            BANK, [("岸", "我们 坐 在 岸 上 。"), ("银行", "银行 关门 了 。")], strict=True
        )
    ]
    senses = [sensed("bank", "de", BANK), sensed("bank", "zh", chinese)]
    write_json(five / "artifacts" / "senses.json", senses)
    text, seen = page(five)
    safe(text, seen)
    part = text[text.index("One word, several translations") : text.index("Every figure")]
    assert part.count("We sat on the <mark>bank</mark>.") == 1
    assert part.count("The <mark>bank</mark> is closed.") == 1
    rows = re.findall(r'<tr><th scope="row">(\w+)</th>(.*?)</tr>', part, re.S)
    cell = re.compile(r'<td class="(hit|miss)">(?:<bdi lang="\w+">)?(\w+)')
    said = [(name, cell.findall(row)) for name, row in rows]
    right = [("hit", "found")] * 3
    assert said == [
        ("German", [("miss", "Bank"), *right[1:]]), ("Chinese", right), ("German", right), ("Chinese", right),
    ]  # fmt: skip
    assert "我们坐在<mark>岸</mark>上。" in part and 'lang="zh"' in part


def test_few_words_are_open_and_the_rest_folded(five: Path, sensed) -> None:
    senses = [sensed(f"w{k}", "de", [(f"a w{k} b", "x", "x y", {"base": "x"})]) for k in range(24)]
    write_json(five / "artifacts" / "senses.json", senses)
    text, _ = page(five)
    folded = text[text.index("16 more words") :]
    assert text.count('class="ambiguous"') == 24 and folded.count('class="ambiguous"') == 16


def test_what_the_run_says_of_itself_comes_first_and_last(five: Path) -> None:
    about = {
        "title": f"Title {NASTY}",
        "summary": "One. Two.",
        "next": [{"text": "Do <this>", "command": "calque demo --out 'a b'"}],
    }
    write_json(five / "artifacts" / "about.json", about)
    text, seen = page(five)
    safe(text, seen)
    own = text[text.index("On your own bitext") :]
    assert html.unescape(re.search(r"<h1.*?>(.*?)</h1>", text)[1]) == about["title"]
    assert "One. Two." in seen.text and "calque demo --out 'a b'" in html.unescape(own)
    assert "calque link" not in own


def test_a_large_page_of_five_languages_stays_below_two_megabytes(made, scored, sensed) -> None:
    names = ("e5-small-q4", "centring", "centred rotation")
    results = [r for code in ("de", "es", "hi", "ru", "zh") for r in scored(names, languages=("en", code))]
    long = " ".join(["слово"] * 40)
    found = dict.fromkeys(names, "другое")
    held = [(f"w {k} {long} bank", "берег", f"{long} берег {k}", found) for k in range(6)]
    codes = ("de", "es", "hi", "ru", "zh")
    senses = [sensed("bank", code, held) | {"word": f"w{k}"} for k in range(24) for code in codes]
    folder = made("run", results)
    write_json(folder / "artifacts" / "senses.json", senses)
    assert write_page(folder).stat().st_size < 2_000_000


def test_examples_may_name_their_own_languages(made, scored) -> None:
    example = {
        "direction": "backward",
        "languages": ["en", "de"],
        "query": "Bank",
        "gold": {"word": "bench"},
        "retrieved": {"base": {"word": "bank", "hit": False}},
    }
    results = scored(bins=False) + scored(languages=("en", "de"), bins=False)
    _, seen = page(made("run", results, examples=[example]))
    said = [attributes["lang"] for _, attributes in seen.elements if attributes.get("class") == "said"]
    assert said == ["de", "en", "en"] and "German → English" in seen.text


def test_the_command_makes_the_run_again(made, scored) -> None:
    folder = made("words run", scored(bins=False))
    recipe = [
        'verb = "measure words"',
        'encoders = ["base", "my encoder"]',
        'labels = ["a", "b"]',
        'languages = ["en", "ru"]',
        'pairs = ["links/test"]',
        "include_seen = true",
        "keep_identical = false",
        'prefix = ""',
        "seed = 3",
        '[inputs]\nencoder = "0123"',
    ]
    write_text(folder / "recipe.toml", "\n".join(recipe))
    text, _ = page(folder)
    command = html.unescape(re.search(r"<pre>(calque.*?)</pre>", text, re.S)[1])
    assert shlex.split(command.replace("\\\n", "")) == [
        "calque", "measure", "words", "--encoder", "base", "--encoder", "my encoder", "--label", "a",
        "--label", "b", "--languages", "en", "ru", "--pairs", "links/test", "--include-seen", "--seed", "3",
        "--out", "words run",
    ]  # fmt: skip


def test_counts_and_cost_inside_others_are_told(made, scored) -> None:
    folder = made("run", [], links=[{"source": ["a"], "target": ["b"], "links": [[0, 0]]}], verb="link")
    filters = [{"name": "one-to-one", "kept": 90, "dropped": 10}]
    counts = {"links": 90, "kept": 40, "dropped": {"too long": 3}, "filters": filters}
    write_json(folder / "artifacts" / "counts.json", counts)
    write_json(folder / "cost.json", {"seconds": {"total": 7380, "read": 0.25}, "peak_memory_mb": 150})
    _, seen = page(folder)
    for words in ("by 90 links in 40 sentence pairs", "dropped, too long 3", "one-to-one, dropped 10"):
        assert words in seen.text
    for words in ("total 2 h 3 min", "read 0.2 s", "peak memory 150 MB"):
        assert words in seen.text


def test_the_page_is_the_same_twice(made, scored) -> None:
    folder = made("run", scored())
    first = write_page(folder).read_bytes()
    assert write_page(folder).read_bytes() == first


def test_a_large_run_stays_small(made, scored) -> None:
    folder = made("run", scored(tuple("abcdef"), layers=range(25)), examples=[])
    assert write_page(folder).stat().st_size < 1_000_000


def test_not_a_run_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        write_page(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_page_needs_no_torch(made, scored) -> None:
    folder = made("run", scored(bins=False))
    code = (
        "import sys; from pathlib import Path; from calque.report.page import write_page;"
        "write_page(Path(sys.argv[1])); assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)


def test_the_commands_for_a_bitext_of_ones_own_work(
    made, scored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calque.cli import main
    from calque.pipeline import world

    monkeypatch.chdir(tmp_path)
    world("world", count=700, width=20)
    folder = made("run", scored(languages=("en", "far"), layers=(0,), bins=False))
    write_text(folder / "recipe.toml", 'verb = "measure words"\nencoders = ["world/encoder"]\n')
    text, _ = page(folder)
    own = html.unescape(text[text.index("On your own bitext") :])
    commands = [shlex.split(command) for command in re.findall(r"<pre>(calque .*?)</pre>", own)]
    assert [command[1] for command in commands] == ["link", "align", "measure", "report"]
    Path("my.tsv").write_bytes(Path("world/text/en-far.tsv").read_bytes())
    for command in commands:
        monkeypatch.setattr(sys, "argv", command)
        with suppress(SystemExit):
            main()
    assert (tmp_path / "runs" / "words" / "report.html").is_file()
