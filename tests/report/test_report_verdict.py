import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from calque.report.collect import Panel, Run, collect
from calque.report.tables import links_table, markdown, rows, summary_table, verdict_line
from calque.report.tasks import Metric
from calque.report.verdict import Contrast, agreed, together, verdicts
from calque.report.words import points
from calque.stats.significance import holm
from calque.types import Result


def panel_of(results: list[Result], metric: str = "accuracy") -> Panel:
    return Panel("run", "word-retrieval", metric, "", ("en", "ru"), 0, tuple(results))


def shown(table, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as caught:
        console.print(table)
    return caught.get()


@pytest.mark.parametrize(
    ("gain", "p", "metric", "word"),
    [
        (0.1, 0.0001, "accuracy", "helped"),
        (-0.1, 0.0001, "accuracy", "hurt"),
        (0.1, 0.3, "accuracy", "no evidence"),
        (0.0, 0.0001, "accuracy", "no evidence"),
        (0.1, 0.0001, "distance", "hurt"),
        (-0.1, 0.0001, "distance", "helped"),
        (0.1, None, "accuracy", "helped"),
        (0.01, None, "accuracy", "no evidence"),
        (0.1, None, "overlap", "hurt"),
        (-0.1, 0.0001, "anisotropy", "helped"),
        (0.1, 0.0001, "cka", "raised"),
        (-0.1, None, "cka", "lowered"),
        (0.1, 0.3, "cka", "no evidence"),
    ],
)
def test_the_word_follows_sign_test_and_metric(scored, gain, p, metric, word) -> None:
    """Where there is no test, the interval decides."""
    (verdict,) = verdicts(panel_of(scored(gain=gain, p=p, bins=False), metric))
    assert verdict.word == word


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("accuracy", "rotated helped: +7.4 points"),
        ("auc", "rotated helped: AUC +0.074"),
        ("overlap", "rotated hurt: overlap +0.023"),
    ],
)
def test_a_headline_names_a_figure_that_is_no_share(scored, metric: str, words: str) -> None:
    (verdict,) = verdicts(panel_of(scored(gain=0.1, bins=False), metric))
    assert verdict.headline == words


@pytest.mark.parametrize("metric", ["accuracy", "cka"])
def test_without_test_and_interval_nothing_is_said(scored, metric: str) -> None:
    results = [replace(r, low=None, high=None) for r in scored(p=None, bins=False)]
    (verdict,) = verdicts(panel_of(results, metric))
    assert verdict.word == "untested" and verdict.headline == "rotated was not tested against base"


@pytest.mark.parametrize(
    ("gain", "p", "words"),
    [
        (0.1, 0.0001, "rotated raised CKA: +0.074"),
        (-0.1, 0.0001, "rotated lowered CKA: −0.074"),
        (0.1, 0.3, "No evidence that rotated raised or lowered CKA"),
    ],
)
def test_a_figure_that_is_neither_good_nor_bad_is_named(scored, gain, p, words) -> None:
    (verdict,) = verdicts(panel_of(scored(gain=gain, p=p, bins=False), "cka"))
    assert verdict.headline == words
    assert "At layer 8, where base is highest, " in verdict.figures[0]
    pair = verdicts(panel_of(scored(("a", "b", "c"), gain=gain, p=p, bins=False), "cka"))
    assert together(pair) == (
        f"b ({pair[0].size}) and c ({pair[1].size}) {pair[0].word} CKA"
        if p < 0.05
        else "No evidence for or against b and c"
    )


def test_the_two_layers_are_the_last_and_the_best_of_the_baseline(scored) -> None:
    results = scored(bins=False)
    (verdict,) = verdicts(panel_of(results))
    base = {r.layer: r.value for r in results if r.encoder == "base" and r.direction == "both"}
    assert verdict.last.layer == 12 and verdict.best.layer == max(base, key=base.__getitem__)


def test_a_verdict_corrects_over_what_it_speaks_of(scored) -> None:
    """p = 0.02 passes alone and falls when two encoders at two layers make four tests of it."""
    alone = verdicts(panel_of(scored(layers=(12,), p=0.02, bins=False)))
    assert alone[0].last.p == pytest.approx(0.02) and alone[0].word == "helped"
    many = verdicts(panel_of(scored(("a", "b", "c"), p=0.02, bins=False)))
    assert [v.last.p for v in many] == pytest.approx([0.08, 0.08]) and many[0].word == "no evidence"


def test_layers_that_disagree_are_told(scored) -> None:
    results = scored(bins=False)

    def at(layer: int, **changed) -> list[Result]:
        return [replace(r, **changed) if r.baseline and r.layer == layer else r for r in results]

    (mixed,) = verdicts(panel_of(at(12, value=-0.1)))
    assert mixed.word == "mixed"
    assert mixed.headline == "rotated hurt at the last layer and helped at the best layer of base"
    (only,) = verdicts(panel_of(at(12, p=0.9)))
    assert only.word == "helped" and only.headline.endswith("only at the best layer of base: +8.9 points")


def test_the_verdict_line_says_figures_interval_and_test(made, scored) -> None:
    line = verdict_line(collect(made("run", scored(bins=False))))
    assert line.startswith(
        "rotated helped: +8.9 points. At layer 8, where base is best, word retrieval (English–Russian) went "
        "from 59.3% to 68.3%, +8.9 points (95% interval +6.9 to +11.0; paired permutation test p < 0.001, "
        "Holm-corrected over 2 tests)."
    )
    assert "At the last layer (12) it went from 46.0% to 58.0%, +12.0 points (95% interval +10.0" in line


def test_an_encoder_that_ends_earlier_is_judged_where_both_are(scored) -> None:
    results = [r for r in scored(bins=False) if r.layer <= 6 or (r.encoder == "base")]
    (verdict,) = verdicts(panel_of(results))
    assert verdict.last.layer == 6 and "the last layer of both" in verdict.figures[1]


def test_without_a_comparison_nothing_is_claimed(made, scored) -> None:
    line = verdict_line(collect(made("run", scored(("base",), bins=False))))
    assert line.endswith("Nothing was compared.") and "46.0%" in line and "59.3%" in line
    assert "helped" not in line


def test_links_are_spoken_of_in_order(made) -> None:
    values = {"aer": 0.134, "f1": 0.866, "precision": 0.93, "recall": 0.81}
    results = [Result("links", metric, value, ("en", "ru"), "eflomal") for metric, value in values.items()]
    run = collect(made("run", results, verb="link"))
    assert verdict_line(run) == (
        "Against the gold standard eflomal has precision 93.0%, recall 81.0%, F1 86.6%, AER 13.4%."
    )
    text = shown(links_table(run))
    assert all(f"{value * 100:.1f}" in text for value in values.values())


def test_an_empty_run_says_so(tmp_path) -> None:
    assert verdict_line(Run(tmp_path)) == "Nothing was measured in this run."


def test_rows_correct_over_the_whole_table(scored) -> None:
    results = [
        replace(r, p=0.001 * (r.layer + 1)) if r.baseline else r for r in scored(("a", "b", "c"), bins=False)
    ]
    table = rows(panel_of(results))
    told = [cell for row in table for cell in row.cells if cell and cell.change]
    by_hand = holm([cell.change.p for cell in told])
    assert len(told) == 26 and [cell.p for cell in told] == pytest.approx(by_hand)


def test_the_terminal_table_holds_the_results(made, scored) -> None:
    results = scored(("base", "rotated", "fine-tuned"), bins=False)
    text = shown(summary_table(collect(made("run", results))))
    lines = {line.split()[0]: line for line in text.splitlines() if line.split()}
    for r in results:
        if r.direction == "both" and r.baseline is None:
            assert f"{r.value * 100:.1f} ±1." in lines[str(r.layer)]
        elif r.direction == "both":
            assert f"{r.value * 100:+.1f}*" in lines[str(r.layer)]
    assert max(map(len, text.splitlines())) <= 80


def test_many_layers_are_folded_around_best_and_last(made, scored) -> None:
    results = [replace(r, value=r.value / 4) for r in scored(layers=range(25), bins=False)]
    panel = collect(made("run", results)).panels[0]
    text = shown(summary_table(collect(made("run", results))))
    numbers = [int(line.split()[0]) for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert len(numbers) <= 14 and {0, 24, panel.best_layer("base"), panel.best_layer("rotated")} <= set(
        numbers
    )
    assert numbers == sorted(numbers)


def test_long_names_and_many_encoders_fit_80_columns(made, scored) -> None:
    names = [f"sentence-transformers/an-encoder-with-a-long-name-{k}" for k in range(6)]
    text = shown(summary_table(collect(made("run", scored(names, layers=(0, 12), bins=False)))))
    assert max(map(len, text.splitlines())) <= 80


def test_markup_in_names_is_not_read_as_markup(made, scored) -> None:
    text = shown(summary_table(collect(made("run", scored(("[red]a[/red]", "[b"), layers=(1,), bins=False)))))
    assert "[red]a[/red]" in text and "[b" in text


def test_markdown_is_a_table_that_holds_the_results(made, scored) -> None:
    results = scored(("base", "a|b"), layers=(0, 12), bins=False)
    text = markdown(collect(made("run", results)))
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 4 and {line.replace("\\|", "").count("|") for line in table} == {4}
    assert "| 12 | 46.0 ±1.9 | 58.0 ±1.9 +12.0 (p < 0.001) |" in table


def test_several_verdicts_make_one_headline(scored) -> None:
    def changed(result: Result) -> Result:
        if result.baseline is None:
            return result
        return {"b": result, "c": replace(result, p=0.8), "d": result, "e": replace(result, value=-0.1)}[
            result.encoder
        ]

    found = verdicts(panel_of([changed(r) for r in scored(tuple("abcde"), bins=False)]))
    assert together(found) == (
        "b (+8.9 points) and d (+26.8 points) helped; e (−10.0 points) hurt; no evidence for or against c"
    )
    assert together(found[1:2]) == "No evidence that c helped or hurt"


def test_a_headline_of_several_says_where_when_it_is_not_everywhere(scored) -> None:
    results = [
        replace(r, p=0.9) if r.baseline and r.layer == 12 else r for r in scored(tuple("abc"), bins=False)
    ]
    assert together(verdicts(panel_of(results))) == (
        "b (+8.9 points at layer 8 only) and c (+17.8 points at layer 8 only) helped"
    )
    results = [
        replace(r, p=0.9) if r.baseline and r.layer == 8 else r for r in scored(tuple("abc"), bins=False)
    ]
    assert together(verdicts(panel_of(results))).startswith("b (+12.0 points at layer 12 only)")


@given(st.floats(1e-5, 1), st.booleans(), st.booleans())
def test_a_difference_is_never_told_as_nothing(size: float, falls: bool, percent: bool) -> None:
    """A headline that says “hurt: 0.000” helps nobody."""
    told = points(-size if falls else size, Metric(percent=percent))
    assert told[0] == ("−" if falls else "+")
    number, unit = float(told[1:].removesuffix(" points")), 0.01 if percent else 1
    assert 0.5 * size < number * unit < 2 * size
    assert points(0.0, Metric(percent=percent)).startswith("0.0")


def test_of_several_seeds_the_least_sure_decides() -> None:
    def contrast(gain: float, p: float | None) -> Contrast:
        base = Result("word-retrieval", "accuracy", 0.5, "e5", ("en", "de"), layer=3)
        after = replace(base, encoder="l2", value=0.5 + gain)
        change = replace(after, baseline="e5", value=gain, low=gain - 0.1, high=gain + 0.1, p=p)
        return Contrast(base, after, change, p, Metric())

    first = contrast(0.2, 0.001)
    assert agreed(first, []) is first and agreed(first, [None]) is first
    sure = agreed(first, [contrast(0.3, 0.04), contrast(0.4, 0.0)])
    assert (sure.word, sure.p, sure.seeds) == ("helped", 0.04, 3)
    assert sure.change.value == pytest.approx(0.3) and sure.after.value == pytest.approx(0.8)
    assert (sure.change.low, sure.change.high) == pytest.approx((0.1, 0.5))
    assert agreed(first, [contrast(0.3, 0.2)]).word == "no evidence"
    # Each is sure, and they do not go the same way.
    assert agreed(first, [contrast(-0.3, 0.001)]).word == "no evidence"
    # Without tests the interval that holds those of all seeds decides.
    bare = [contrast(gain, None) for gain in (0.2, 0.3, 0.05)]
    assert agreed(bare[0], bare[1:2]).word == "helped" and agreed(bare[0], bare[1:]).word == "no evidence"
