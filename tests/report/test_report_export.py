"""Tables as Markdown, LaTeX and CSV: read back with other programs, they say what the results say."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db
from pylatexenc.latexwalker import LatexEnvironmentNode, LatexWalker

from calque.cli import CHOICES
from calque.errors import BadInput, BadSetting
from calque.files import write_json, write_text
from calque.report.collect import collect
from calque.report.export import COLUMNS, Form, exported, table_names, tables_of
from calque.report.latex import escaped, figure, latex
from calque.report.tables import markdown
from calque.report.written import Block, Figure
from calque.stats.significance import holm
from calque.store import save_results
from calque.types import Result
from run_folders import comparison, comparison_run, make_run, many_gains, transfer_run

HOSTILE = "a_b & 50% $x$ \\cmd"
NASTY = [
    HOSTILE, "{", "}", "}{", "\\", "\\\\", "[2cm]", "*", "a|b", "#1 ~^", "\\end{tabular}", "% gone", "a\nb",
    '"quoted"', "--", "---", "<b>&amp;</b>", "$$", "|", "\\|", "weak—", "日本語", "=1+1", "é ñ ß", "a,b;c",
]  # fmt: skip
#: Words that the parser does not know by itself.
WORDS = get_default_latex_context_db()
WORDS.add_context_category(
    "signs", [MacroTextSpec("textasciitilde", "~"), MacroTextSpec("textasciicircum", "^")], prepend=True
)
TWO = {"centring": 0.02, "joint": -0.02}


def lines_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def number(text: str) -> float | None:
    return float(text) if text else None


def rows_of(tex: str) -> list[list[str]]:
    """The cells of every row of every tabular, as a reader of LaTeX sees them, by a parser of others."""
    nodes, _, _ = LatexWalker(tex, tolerant_parsing=False).get_latex_nodes()
    found = []
    for table in nodes:
        if isinstance(table, LatexEnvironmentNode):
            assert table.environmentname == "table"
            (tabular,) = [one for one in table.nodelist if isinstance(one, LatexEnvironmentNode)]
            found += _cells(tabular)
    return found


def _cells(tabular: Any) -> list[list[str]]:
    rows: list[list[list[Any]]] = [[[]]]
    for node in tabular.nodelist:
        name = getattr(node, "macroname", "")
        if name == "\\":
            rows.append([[]])
        elif getattr(node, "specials_chars", "") == "&":
            rows[-1].append([])
        elif name not in ("toprule", "midrule", "bottomrule"):
            rows[-1][-1].append(node)
    read = LatexNodes2Text(WORDS, math_mode="text", strict_latex_spaces=True, keep_braced_groups=False)
    assert len(rows[-1]) == 1, "the last row ended"
    return [[read.nodelist_to_text(cell).strip() for cell in row] for row in rows[:-1]]


# ------------------------------------------------------------------------------------------------ CSV


def test_csv_holds_every_measured_figure(made, scored) -> None:
    results = scored(("base", HOSTILE, 'x,"y"\nz'), layers=(0, 7, 12))
    text = exported(collect(made("run", results)), "csv")
    assert text.splitlines()[0] == ",".join(COLUMNS)
    lines = lines_of(text)
    found = {
        (r["encoder"], r["layer"], r["direction"], r["group"], r["bin"]): r for r in lines
    }  # fmt: skip
    scores = [r for r in results if r.baseline is None]
    assert len(found) == len(lines) == len(scores)
    for r in results:
        line = found[r.encoder, str(r.layer), r.direction, *(r.group or ("", ""))]
        if r.baseline is None:
            assert (float(line["value"]), float(line["low"]), float(line["high"])) == (r.value, r.low, r.high)
            about = (r.task, r.metric, r.variant, *r.languages, r.count, r.seed)
            names = ("task", "metric", "variant", "source", "target", "items", "seed")
            assert tuple(line[name] for name in names) == tuple(map(str, about))
        else:
            ends = (line["difference"], line["difference_low"], line["difference_high"], line["p"])
            assert tuple(map(float, ends)) == (r.value, r.low, r.high, r.p) and line["baseline"] == r.baseline
    assert {line["table"] for line in lines} == {"word-retrieval-accuracy-contextual-en-ru"}


def test_csv_corrects_what_the_table_corrects(made, scored) -> None:
    results = scored(("base", "a", "b"), layers=(1, 2, 3), p=0.004, bins=False)
    lines = [one for one in lines_of(exported(collect(made("run", results)), "csv")) if one["p"]]
    whole = [one for one in lines if one["direction"] == "both"]
    expected = holm([0.004] * 6)
    assert [float(one["p_corrected"]) for one in whole] == pytest.approx(expected)
    assert all(one["p_corrected"] == "" for one in lines if one["direction"] != "both")
    assert all(
        float(one["value"]) - float(one["baseline_value"]) == pytest.approx(float(one["difference"]))
        for one in whole
    )


def test_csv_of_transfer_is_mean_and_deviation_of_the_seeds(tmp_path: Path) -> None:
    scores = {"en": [0.91, 0.93, 0.92], "de": [0.5, 0.7, 0.61], "hi": [0.3, 0.31, 1 / 3]}
    folder = transfer_run(tmp_path / "run", scores)
    lines = {(one["target"], one["metric"]): one for one in lines_of(exported(collect(folder), "csv"))}
    for language, values in scores.items():
        line = lines[language, "f1"]
        assert float(line["value"]) == pytest.approx(fmean(values), abs=1e-15)
        assert float(line["std"]) == pytest.approx(stdev(values), abs=1e-15)
        assert (line["seeds"], line["items"], line["encoder"]) == ("3", "1000", "mBERT")
    both = [(a + b) / 2 for a, b in zip(scores["de"], scores["hi"], strict=True)]
    assert float(lines["mean", "f1"]["value"]) == pytest.approx(fmean(both), abs=1e-15)
    assert float(lines["mean", "f1"]["std"]) == pytest.approx(stdev(both), abs=1e-15)


def test_csv_of_a_comparison_is_the_comparison(tmp_path: Path) -> None:
    held = comparison(many_gains(["de", "hi"], TWO, tasks=("ner", "pos")))
    lines = lines_of(exported(collect(comparison_run(tmp_path / "compared", held)), "csv"))
    records = [*held["rows"], *held["tasks"]]
    assert len(lines) == len(records)
    found = {(one["task"], one["target"], one["encoder"]): one for one in lines}
    pairs = {
        "value": "method mean", "std": "method std", "baseline_value": "baseline mean",
        "baseline_std": "baseline std", "difference": "difference", "difference_low": "low",
        "difference_high": "high", "p": "p", "p_corrected": "holm",
    }  # fmt: skip
    for record in records:
        line = found[f"transfer-{record['task']}", record["language"], record["method"]]
        assert {name: number(line[name]) for name in pairs} == {
            name: record[key] for name, key in pairs.items()
        }
        assert (line["mark"], line["finding"]) == (record["mark"], record["finding"])
        assert (line["seeds"], line["baseline_seeds"], line["baseline"]) == ("5", "5", held["baseline"])


# ---------------------------------------------------------------------------------------------- LaTeX


def plain(text: str) -> str:
    """What is left of a label in print: dashes and quotation marks alike, one space between words."""
    alike = str.maketrans({"“": '"', "”": '"', "’": "'", "\t": " ", "\n": " "})
    return " ".join(text.translate(alike).split())


@pytest.mark.parametrize("label", NASTY)
def test_a_label_is_printed_as_it_is_and_does_nothing(label: str) -> None:
    body = ((label, label, (Figure("61.2 ± 0.8", "▲*"),)), ("[x]", "*", (Figure("−1.2 to +3.4"),)))
    block = Block("name", label, ("layer", label, "figure"), body, (label,), label)
    rows = rows_of(latex([block, block]))
    assert [len(row) for row in rows] == [3] * 6
    assert [[plain(cell) for cell in row[:2]] for row in rows[:3]] == [
        ["layer", plain(label)], [plain(label), plain(label)], ["[x]", "*"],
    ]  # fmt: skip
    assert (rows[1][2], rows[2][2]) == ("61.2 ±0.8^↑*", "-1.2 to +3.4")


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_no_text_leaves_its_cell(label: str) -> None:
    """Braces balance, no bare sign is left, and a parser that forgives nothing reads a row of two cells."""
    rows = rows_of(latex([Block("name", label, ("a", "b"), ((label, label),), (label,))]))
    assert [len(row) for row in rows] == [2, 2]
    bare = re.sub(r"\$[^$]*\$|\\[{}$&#_%]|\\[a-z]+", "", escaped(label).replace("\\$", ""))
    assert not re.search(r"[\\$&#_%^]", bare) and bare.count("{") == bare.count("}")
    assert "\n" not in escaped(label)


def test_the_shape_of_a_table(made, scored) -> None:
    text = exported(collect(made("run", scored(("base", HOSTILE), layers=(0, 12), bins=False))), "tex")
    for inside in ("table", "tabular"):
        assert text.count(rf"\begin{{{inside}}}") == text.count(rf"\end{{{inside}}}") == 1
    for rule in ("toprule", "midrule", "bottomrule"):
        assert text.count(rf"\{rule}") == 1
    assert r"\begin{tabular}{lrr}" in text and r"\usepackage{booktabs}" in text
    assert r"layer & base & a\_b \& 50\% \$x\$ \textbackslash{}cmd \\" in text
    assert r"12 & $46.0 \pm 1.9$ & $58.0 \pm 1.9$ $+12.0^{*}$ \\" in text
    assert r"\label{tab:word-retrieval-accuracy-contextual-en-ru}" in text
    assert r"$\pm$ half of the 95\% interval" in text


def test_marks_are_raised(tmp_path: Path) -> None:
    held = comparison(many_gains(["de"], TWO))
    rows = exported(collect(comparison_run(tmp_path / "compared", held)), "tex").splitlines()
    for record in held["rows"]:
        (line,) = [row for row in rows if f"German & {record['method']}" in row]
        arrow = {"better": r"\uparrow", "worse": r"\downarrow", "": ""}[record["mark"]]
        star = "*" if record["finding"] in ("helped", "hurt") else ""
        raised = " ".join(filter(None, (arrow, star)))
        score = f"{100 * record['method mean']:.1f} \\pm {100 * record['method std']:.1f}"
        assert f"& ${score}^{{{raised}}}$ &" in line
        assert f"${100 * record['difference']:+.1f}$" in line
    assert figure(Figure("–", "*")) == "--${}^{*}$"


# ------------------------------------------------------------------------------------------- Markdown


def cells_of(line: str) -> list[str]:
    """The cells of a row of Markdown, by its own rules: a bar ends a cell unless it is escaped."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_markdown_is_that_of_the_page_and_bars_are_escaped(made, scored) -> None:
    run = collect(made("run", scored(("base", "a|b", "x\ny | z"), layers=(0, 12), bins=False)))
    text = exported(run, "md")
    assert text == markdown(run)
    table = [cells_of(line) for line in text.splitlines() if line.startswith("|")]
    assert table[0] == ["layer", "base", "a|b", "x y | z"] and {len(row) for row in table} == {4}


# ------------------------------------------------------------------------------- folders, names, mistakes


@pytest.fixture
def folder(tmp_path: Path, scored: Callable[..., list[Result]]) -> Path:
    """A folder of runs: words, a task, a comparison, links with a gold standard."""
    held = tmp_path / "runs"
    make_run(held / "words", scored(("base", "rotated"), layers=(1, 2), bins=False), examples=None)
    transfer_run(held / "task", {"de": [0.5, 0.7]})
    comparison_run(held / "whether", comparison(many_gains(["de"], TWO)))
    gold = [Result("links", metric, value, ("en", "de"), "hmm", count=40)
            for metric, value in (("precision", 0.9), ("aer", 0.125))]  # fmt: skip
    make_run(held / "linked", gold, examples=None, verb="link")
    return held


def test_a_folder_of_runs_has_the_tables_of_all(folder: Path) -> None:
    run = tables_of(folder)
    names = table_names(run)
    assert names == [
        "linked-links", "task-ner-mbert", "whether-compared-ner",
        "words-word-retrieval-accuracy-contextual-en-ru",
    ]  # fmt: skip
    lines = lines_of(exported(run, "csv"))
    assert {one["table"] for one in lines} == set(names)
    assert {one["run"] for one in lines} == {"linked", "task", "whether", "words"}
    assert [float(one["value"]) for one in lines if one["task"] == "links"] == [0.9, 0.125]
    assert exported(run, "tex").count(r"\begin{table}") == 4
    text = exported(run, "md")
    assert all(f"\n{name}: " in text for name in ("linked", "task", "whether", "words"))


def test_a_table_by_its_name(folder: Path) -> None:
    run = tables_of(folder)
    assert {one["table"] for one in lines_of(exported(run, "csv", ["linked-links"]))} == {"linked-links"}
    assert exported(run, "tex", ["task-ner-mbert", "linked-links"]).count(r"\begin{table}") == 2
    assert exported(run, "md", ["linked-links"]).startswith("linked: links against the gold standard")
    with pytest.raises(BadSetting, match="did you mean linked-links"):
        exported(run, "md", ["linked-link"])


def test_tables_of_one_name_are_told_apart(made, scored) -> None:
    results = scored(("base",), layers=(1,), bins=False)
    other = [Result(**{**vars(r), "variant": "CONTEXTUAL"}) for r in results]
    names = table_names(collect(made("run", results + other)))
    assert len(names) == len(set(names)) == 2 and names[1] == f"{names[0]}-2"


def test_a_study_has_its_comparisons_and_measures(tmp_path: Path, scored) -> None:
    study = tmp_path / "study"
    cells = [("words-0", "measure words", 0), ("words-1", "measure words", 1), ("compare", "compare", None)]
    results = scored(("base", "centring"), layers=(1, 2), bins=False)
    for key, _, seed in cells[:2]:
        make_run(study / "cells" / key, [Result(**{**vars(r), "seed": seed}) for r in results], examples=None)
    held = comparison(many_gains(["de"], {"centring": 0.02}), baseline="base")
    comparison_run(study / "cells" / "compare", held)
    save_results(study / "results.jsonl", results)
    write_text(study / "recipe.toml", "")
    about = {
        "about": "", "paper": None, "source": "en", "seeds": [0, 1], "tasks": {"ner": {"translated": False}},
        "groups": [{"encoder": "base", "baseline": "base", "methods": ["centring"]}],
        "methods": {"centring": {"encoder": "base", "method": "centring", "axes": {}}},
        "cells": [{"key": key, "verb": verb, "title": key, "needs": [], "status": "done",
                   "axes": {} if seed is None else {"seed": str(seed)}} for key, verb, seed in cells],
    }  # fmt: skip
    write_json(study / "study.json", about)
    names = table_names(tables_of(study))
    own = ["tasks", "compared-ner", "published", "distance", "translated", "measures"]
    assert names[:6] == own and len(names) == 8 and names[7].endswith("seed1")
    lines = lines_of(exported(tables_of(study), "csv"))
    assert sorted({one["seed"] for one in lines if one["table"].startswith("word-")}) == ["0", "1"]
    assert held["tasks"][0]["line"] in exported(tables_of(study), "md")


def test_nothing_to_write_is_said(tmp_path: Path) -> None:
    make_run(tmp_path / "run", [], examples=None, verb="align")
    with pytest.raises(BadInput, match="no tables here"):
        exported(tables_of(tmp_path / "run"), "csv")


# ------------------------------------------------------------------------------------ the command line


def test_forms_are_those_of_the_help() -> None:
    assert CHOICES["tables"] == tuple(form.value for form in Form)


@pytest.fixture
def typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    from calque.cli import main

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["calque", "report", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        return int(stop.value.code or 0), told.out, told.err

    return run


def test_tables_are_printed_or_written(typed, folder: Path, tmp_path: Path) -> None:
    words = str(folder / "words")
    code, printed, _ = typed(words, "--tables", "csv")
    assert code == 0 and printed == exported(collect(folder / "words"), "csv")
    assert not (folder / "words" / "report.html").exists()
    out = tmp_path / "new" / "tables.tex"
    code, told, _ = typed(words, "--tables", "tex", "--out", str(out))
    assert code == 0 and str(out) in told.replace("\n", "")
    assert out.read_text(encoding="utf-8") == exported(collect(folder / "words"), "tex")
    assert [path.name for path in out.parent.iterdir()] == ["tables.tex"]
    code, told, _ = typed(str(folder), "--tables", "md", "--table", "linked-links", "--quiet")
    assert (code, told) == (0, "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--tables", "text"], "did you mean tex?"),
        (["--tables", "CSV"], "known: md, tex, csv"),
        (["--tables", "md", "--table", "task-ner"], "did you mean task-ner-mbert?"),
        (["--out", "x.md"], "add --tables"),
        (["--tables", "md", "--out", "."], "is a folder"),
    ],
)
def test_mistakes_are_named_and_leave_nothing(
    typed, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    code, out, err = typed(str(folder), *words)
    assert code == 2 and out == "" and says in err.replace("\n", " ")
    assert list(empty.iterdir()) == [] and not (folder / "report.html").exists()


def test_a_file_stays_as_it_was_where_writing_fails(
    typed, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "tables.csv"
    out.write_text("before")

    def broken(self: Path, target: Any) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(Path, "replace", broken)
    code, _, err = typed(str(folder), "--tables", "csv", "--out", str(out))
    assert code == 2 and "no room left on its disk" in err
    assert out.read_text() == "before" and sorted(p.name for p in tmp_path.iterdir()) == [
        "runs",
        "tables.csv",
    ]
