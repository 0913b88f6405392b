import io
import tracemalloc
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from calque.report.collect import Panel, collect
from calque.report.mean import Gains, mean_intervals, mean_panel, mean_test, verdict_layer
from calque.report.tables import summary_table, verdict_line
from calque.report.verdict import Compared, compared
from calque.store import save_items
from calque.types import BESIDE, Items, Result


def gains(values: list[float], sentences: list[int]) -> Gains:
    return Gains(np.array(values), np.array(sentences))


def test_the_test_is_that_of_every_exchange() -> None:
    """All 2^6 ways to exchange before and after within sentences, counted by hand."""
    one = gains([1, 0, 1, 1, 0, -1, 1], [0, 0, 1, 2, 3, 4, 5])
    other = gains([1, 1, 0, 0], [0, 1, 2, 5])
    sizes = [sum(g.gain[g.sentence == k].sum() / len(g.gain) for g in (one, other)) for k in range(6)]
    every = [abs(np.dot(signs, sizes)) for signs in product((-1, 1), repeat=6)]
    exact = np.mean([total >= abs(sum(sizes)) - 1e-9 for total in every])
    assert mean_test([one, other]) == pytest.approx(exact, abs=0.015)


def test_the_interval_is_that_of_the_mean_of_means() -> None:
    rng = np.random.default_rng(3)
    small, large = rng.integers(0, 20, 60), rng.integers(0, 80, 700)
    one = Gains(0.9 + 0.05 * rng.normal(size=60), small)
    other = Gains(0.1 + 0.05 * rng.normal(size=700), large)
    draws = []
    for _ in range(2000):
        times = np.bincount(rng.integers(0, 80, 80), minlength=80)
        draws.append(
            np.mean([np.average(g.gain, weights=np.maximum(times[g.sentence], 1e-12)) for g in (one, other)])
        )
    (found,) = mean_intervals([[one, other]], rounds=2000)
    assert (found.low, found.high) == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.004)
    assert found.high - found.low < 0.05, "that languages differ is no uncertainty about their mean"


def test_sentences_are_matched_by_name_wherever_they_stand() -> None:
    """One language lacks a sentence; names need not rise, and change nothing of which is drawn when."""
    rng = np.random.default_rng(6)
    names, values = rng.integers(0, 2**62, 40), rng.normal(0.4, 1, 40)
    one, other = Gains(values, names), Gains(values[1:], names[1:])
    apart = Gains(values[1:], names[1:] + 1)
    (matched,), (alone,) = mean_intervals([[one, other]]), mean_intervals([[one, apart]])
    assert matched.high - matched.low > 1.2 * (alone.high - alone.low)
    assert mean_test([one, other]) > 1.3 * mean_test([one, apart])
    numbered = [Gains(values, np.arange(40)), Gains(values[1:], np.arange(1, 40))]
    assert mean_intervals([numbered]) == [matched] and mean_test(numbered) == mean_test([one, other])


def test_sentences_are_those_of_the_language_that_pairs_share(tmp_path: Path) -> None:
    """Whether it is their first or their other; items of before tell the first's alone."""
    rng = np.random.default_rng(2)
    english, values = rng.integers(0, 2**62, 30), rng.normal(0.4, 1, (2, 30))
    found = {}
    for shared in (0, 1):
        made = []
        for place, code in enumerate(("de", "es")):
            own = rng.integers(0, 2**62, 30)
            first, other = (english, own) if shared == 0 else (own, english)
            items = Items({BESIDE: other}, first, {"forward": values[place]})
            name = save_items(tmp_path / str(shared), items)
            pair = ("en", code) if shared == 0 else (code, "en")
            score = Result("word-retrieval", "p@1", float(values[place].mean()), pair, "base", layer=1,
                           direction="forward", count=30, items=name)  # fmt: skip
            about = ("run", "word-retrieval", "p@1", "", pair, 0)
            made.append(Panel(*about, (score,), ("base",), tmp_path / str(shared)))
        mean = mean_panel(made).score("base", 1)
        found[shared] = mean.low, mean.high
    assert found[0] == found[1]
    alone = mean_intervals([[Gains(one, rng.integers(0, 2**62, 30)) for one in values]])
    assert found[0] != pytest.approx((alone[0].low, alone[0].high), abs=1e-3), "sentences do matter here"


def test_many_languages_of_sentences_of_their_own_take_little_memory() -> None:
    rng = np.random.default_rng(4)
    names = rng.integers(0, 2**62, (20, 2000))
    figures = [[Gains(rng.random(2000), own) for own in names] for _ in range(20)]
    tracemalloc.start()
    mean_intervals(figures, rounds=20)
    assert tracemalloc.get_traced_memory()[1] < 120e6, "dense tables take twenty times 20 ∙ 40,000 numbers"
    tracemalloc.stop()


def test_figures_resampled_together_are_those_of_each_alone() -> None:
    """Whether they are over the same sentences or not."""
    rng = np.random.default_rng(5)
    sentences = np.repeat(np.arange(40), 3)
    held = [[Gains(rng.random(120), sentences), Gains(rng.random(60), sentences[::2])] for _ in range(3)]
    held.insert(1, [Gains(rng.random(50), rng.integers(0, 25, 50))])
    for one, together in zip(held, mean_intervals(held), strict=True):
        (alone,) = mean_intervals([one])
        assert (together.low, together.high) == pytest.approx((alone.low, alone.high), abs=1e-12)
    assert mean_intervals([]) == []


def test_a_figure_that_is_not_the_mean_of_its_items_is_not_resampled(five: Path) -> None:
    """Such as a quotient: its mean over languages is told without interval and test."""
    from dataclasses import replace

    panels = [
        replace(panel, results=tuple(replace(r, value=r.value / 2) for r in panel.results))
        for panel in collect(five).panels
    ]
    mean = mean_panel(panels)
    assert mean.score("base", 1).low is None and mean.change("centring", 1).p is None


def test_what_stands_beside_is_not_tested(five: Path) -> None:
    mean = mean_panel(collect(five).panels, judged=False)
    assert mean.change("centring", 1).p is None and mean.change("centring", 1).low is not None


def test_one_language_alone_is_its_own_mean(five: Path) -> None:
    panel = collect(five).panels[0]
    mean = mean_panel([panel])
    for name in panel.encoders:
        assert mean.score(name, 1).value == pytest.approx(panel.score(name, 1).value)
        assert mean.score(name, 1).low == pytest.approx(panel.score(name, 1).low, abs=0.01)


def test_every_language_counts_the_same(five: Path) -> None:
    panels = collect(five).panels
    mean = mean_panel(panels)
    sizes = [panel.score("base", 1).count for panel in panels]
    assert len(set(sizes)) == 5
    for name in ("base", "centring"):
        by_hand = np.mean([panel.score(name, 1).value for panel in panels])
        assert mean.score(name, 1).value == pytest.approx(by_hand)


def test_the_layer_is_chosen_by_the_baseline_alone(five: Path, tmp_path: Path, drawn) -> None:
    from dataclasses import replace

    from calque.store import save_results

    run = collect(five)
    assert verdict_layer(run.panels) == 1
    flattered = [
        replace(r, value=0.99) if r.encoder == "centring" and r.layer == 2 and r.baseline is None else r
        for r in run.results
    ]
    save_results(five / "results.jsonl", flattered)
    assert verdict_layer(collect(five).panels) == 1


def test_words_of_the_mean_and_of_each_language(five: Path) -> None:
    (held,) = compared(collect(five))
    assert {v.encoder: v.word for v in held.verdicts} == {"centring": "helped", "centred rotation": "hurt"}
    words = {key: contrast.word for key, contrast in held.contrasts.items()}
    assert words["centring", "German"] == "helped" and words["centring", "Chinese"] == "no evidence"
    assert held.names == ("German", "Spanish", "Hindi", "Russian", "Chinese")
    tested = [c.change.p for c in held.contrasts.values()]
    assert min(c.p for c in held.contrasts.values()) == pytest.approx(10 * min(tested))


def test_languages_are_named_by_what_tells_them_apart(five: Path) -> None:
    from dataclasses import replace

    panels = collect(five).panels
    turned = tuple(replace(p, languages=p.languages[::-1]) for p in panels[:2])
    assert Compared(turned).names == ("German", "Spanish")
    assert Compared((panels[0], replace(panels[1], languages=("fr", "ru")))).names == (
        "English–German",
        "French–Russian",
    )


def test_the_terminal_fits_eighty_columns(five: Path) -> None:
    run = collect(five)
    console = Console(width=80, file=io.StringIO())
    with console.capture() as caught:
        console.print(summary_table(run))
    table, lines = caught.get().splitlines(), verdict_line(run).splitlines()
    assert max(map(len, [*table, *lines])) <= 80
    names = (*compared(run)[0].names, "mean")
    rows = [line for line in table if line.startswith(names)]
    assert len(rows) == 6
    for panel, row in zip(run.panels, rows, strict=False):
        for name in panel.encoders:
            assert f"{panel.score(name, 1).value * 100:.1f} ±" in row
    text = " ".join(" ".join(lines).split())
    assert text.startswith("centring helped: +4.") and "centred rotation hurt: −10." in text
    assert "At layer 1, where base is best, word retrieval (mean of 5 languages) went from" in text
    assert "95% interval" in text and "paired permutation test p < 0.001" in text
    assert "Helped in German, Spanish, Hindi and Russian; no evidence in Chinese." in text


def test_without_items_nothing_is_claimed_of_the_mean(five: Path) -> None:
    for path in (five / "items").iterdir():
        path.unlink()
    (held,) = compared(collect(five))
    assert {v.word for v in held.verdicts} == {"untested"}
    assert held.headline.startswith("centring helped in German")
