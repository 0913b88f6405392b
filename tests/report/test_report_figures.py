import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calque.report.figures import (
    After,
    Axis,
    Bars,
    Mark,
    Pair,
    Series,
    breakdown_bars,
    dumbbells,
    layer_curve,
    links_grid,
)

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<script>alert(\"1\")</script> & 'x'"
finite = st.floats(-1e6, 1e6, allow_nan=False)
word = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)


def parsed(figure: str) -> ET.Element:
    root = ET.fromstring(figure)
    assert root.get("role") == "img" and root.find(f"{SVG}title").text and root.find(f"{SVG}desc").text
    return root


def percent(text: str) -> float:
    return float(text.removesuffix("%"))


@given(st.lists(finite, min_size=1, max_size=20), st.booleans())
@example([-1e6, -999999.9999999999], False)
def test_an_axis_holds_its_values_and_its_ticks_are_even(values: list[float], zero: bool) -> None:
    axis = Axis.over(values, zero=zero)
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(values) and max(values) <= axis.high + slack
    assert 2 <= len(axis.ticks) <= 9
    assert not zero or axis.low <= 0
    steps = [b - a for a, b in pairwise(axis.ticks)]
    assert max(steps) == pytest.approx(min(steps))
    assert 0 <= axis.at(values[0]) <= 100


@pytest.mark.parametrize(("values", "least"), [([0.5, 0.5 + 1e-9], 0.01), ([99.9, 100.0], 1.0), ([0.0], 1.0)])
def test_noise_does_not_fill_an_axis(values: list[float], least: float) -> None:
    axis = Axis.over(values, least=least, most=100.0)
    assert axis.high - axis.low >= least * 0.99 and axis.low >= 0 and axis.high <= 100
    assert axis.low <= min(values) and max(values) <= axis.high and len({f"{t:g}" for t in axis.ticks}) > 1


def test_shares_stop_at_a_hundred() -> None:
    axis = Axis.over([41.0, 99.5], most=100.0)
    assert axis.high == 100.0 and axis.low >= 0


def test_a_curve_is_drawn_where_its_points_are() -> None:
    series = [
        Series("base", tuple((k, Mark(10.0 * k, 10.0 * k - 2, 10.0 * k + 2)) for k in range(5))),
        Series("after", ((0, Mark(5.0)), (4, Mark(45.0)))),
    ]
    root = parsed(layer_curve(series, title="t"))
    dots = root.findall(f"{SVG}circle")
    first = [dot for dot in dots if "s0" in dot.get("class")]
    xs, ys = [percent(dot.get("cx")) for dot in first], [float(dot.get("cy")) for dot in first]
    assert [b - a for a, b in pairwise(xs)] == pytest.approx([xs[1] - xs[0]] * 4, abs=0.02)
    assert [a - b for a, b in pairwise(ys)] == pytest.approx([ys[0] - ys[1]] * 4, abs=0.02)
    assert len(dots) == 7 and len(root.findall(f".//{SVG}polygon")) == 1
    curve = root.find(f".//{SVG}polyline").get("points").split()
    assert [tuple(map(float, p.split(","))) for p in curve] == list(zip(xs, ys, strict=True))


def test_bars_are_as_long_as_their_values() -> None:
    groups = [Bars("NOUN", 1200, (Mark(20.0, 18, 22), Mark(40.0))), Bars("VERB", 30, (None, Mark(80.0)))]
    root = parsed(breakdown_bars(groups, ["a", "b"], title="t"))
    widths = [percent(bar.get("width")) for bar in root.findall(f"{SVG}rect")]
    assert len(widths) == 3 and [w / widths[0] for w in widths] == pytest.approx([1, 2, 4], abs=0.01)
    text = "".join(root.itertext())
    assert "n = 1,200" in text and "NOUN, a: 20.0% (18.0 to 22.0)" in text
    assert len([line for line in root.findall(f"{SVG}line") if line.get("class") == "whisker"]) == 1


def test_a_dumbbell_goes_from_before_to_after() -> None:
    after = (After(Mark(40.0), "60 → 40", "−20 hurt"), None, After(Mark(70.0), "60 → 70", "+10 helped"))
    root = parsed(dumbbells([Pair("x", Mark(60.0), after)], ("a", "b", "c", "d"), title="t"))
    bonds = [line for line in root.findall(f"{SVG}line") if line.get("class").startswith("bond")]
    lengths = [percent(bond.get("x2")) - percent(bond.get("x1")) for bond in bonds]
    assert lengths[0] == pytest.approx(-2 * lengths[1], abs=0.02) and lengths[1] > 0
    assert [bond.get("class") for bond in bonds] == ["bond s1", "bond s3"]
    dots = root.findall(f"{SVG}circle")
    assert [(dot.get("cx"), dot.get("class")) for dot in dots] == [
        (bonds[0].get("x1"), "hollow s0"), (bonds[0].get("x2"), "full s1"),
        (bonds[1].get("x1"), "hollow s0"), (bonds[1].get("x2"), "full s3"),
    ]  # fmt: skip
    assert "d 70.0%, +10 helped" in root.find(f"{SVG}desc").text


def test_the_marked_layer_stands_where_its_dots_stand() -> None:
    line = Series("a", tuple((layer, Mark(10.0 * layer)) for layer in range(25)))
    root = parsed(layer_curve([line], title="t", small=True, marked=7))
    (marked,) = [line for line in root.findall(f"{SVG}line") if line.get("class") == "marked"]
    assert marked.get("x1") == marked.get("x2") == root.findall(f"{SVG}circle")[7].get("cx")
    numbers = [text.text for text in root.findall(f"{SVG}text") if text.get("text-anchor") == "middle"]
    assert len(numbers) <= 8 and "24" in numbers


def test_a_grid_fills_the_linked_cells_by_score() -> None:
    grid = links_grid(
        ["a", "b"], ["x", "y", "z"], [(0, 2, 0.2), (1, 0, 1.0)], title="t", languages=("en", "ar")
    )
    root = parsed(grid)
    cells = root.findall(f"{SVG}rect")
    assert float(cells[0].get("x")) - float(cells[1].get("x")) == pytest.approx(2 * 24)
    assert float(cells[1].get("y")) - float(cells[0].get("y")) == pytest.approx(24)
    assert float(cells[0].get("fill-opacity")) < float(cells[1].get("fill-opacity")) == 1.0
    words = [text for text in root.findall(f"{SVG}text") if text.get("class") == "word"]
    assert [(text.text, text.get("lang")) for text in words] == [
        ("a", "en"), ("b", "en"), ("x", "ar"), ("y", "ar"), ("z", "ar"),
    ]  # fmt: skip


@given(word)
def test_any_word_survives_every_figure(text: str) -> None:
    mark = Mark(12.0, 10.0, 14.0)
    figures = [
        layer_curve([Series(text, ((0, mark), (1, mark)))], title=text),
        breakdown_bars([Bars(text, 3, (mark,))], [text], title=text),
        dumbbells([Pair(text, mark, (After(mark, text, text),))], (text, text), title=text),
        links_grid([text], [text], [(0, 0, 1.0)], title=text, languages=(text, text)),
    ]
    for figure in figures:
        assert text in "".join(ET.fromstring(figure).itertext())


def test_nothing_in_a_word_becomes_an_element() -> None:
    figure = links_grid([NASTY], [NASTY], [(0, 0, 1.0)], title=NASTY, languages=('en" onload="x', "ru"))
    root = parsed(figure)
    assert not root.findall(f".//{SVG}script") and not root.findall(".//script")
    assert all(not name.startswith("on") for element in root.iter() for name in element.attrib)


@pytest.mark.parametrize("values", [[0.0], [100.0], [50.0, 50.0], [-3.0, 4.0], [1e-9]])
def test_flat_and_odd_values_still_draw(values: list[float]) -> None:
    points = tuple((k, Mark(value)) for k, value in enumerate(values))
    assert "nan" not in layer_curve([Series("a", points)], title="t").lower()
    assert "nan" not in breakdown_bars([Bars("a", 1, (Mark(values[0]),))], ["a"], title="t").lower()


def test_pictures_side_by_side_can_share_an_axis() -> None:
    def width(*also: Mark) -> float:
        figure = breakdown_bars([Bars("a", 1, (Mark(10.0),))], ["x"], title="t", also=also)
        return percent(parsed(figure).find(f"{SVG}rect").get("width"))

    assert width() == pytest.approx(4 * width(Mark(40.0)), rel=0.01)
