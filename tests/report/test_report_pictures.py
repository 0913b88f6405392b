import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.report.clouds import cloud, draw_cloud, draw_scatter, plane
from calque.report.collect import collect
from calque.report.histograms import histogram as draw_histogram
from calque.report.pictures import Heatmap, Histogram, Projection, Scatter, side_by_side
from calque.report.shown import correlated, heat_view, histogram_views, short
from run_folders import LABELS, heatmap, histogram, projection, scatter, write_run

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<script>alert(\"1\")</script> & 'x'"
POINT = {"x": 0, "y": 0, "word": "a", "language": "en"}


def run_of(folder: Path, **artifacts: Any) -> Path:
    return write_run(folder / "run", "measure", [], **artifacts)


# -------------------------------------------------------------------------------------------- reading


def test_every_kind_of_picture_is_read(tmp_path: Path) -> None:
    found = collect(
        run_of(
            tmp_path,
            heatmaps=[heatmap()],
            histograms=[histogram()],
            projections=[projection()],
            scatters=[scatter()],
        )
    )
    (heat,), (hist,), (words,), (dots,) = found.heatmaps, found.histograms, found.projections, found.scatters
    assert [list(row) for row in heat.values] == heatmap()["values"] and heat.languages == ("en", "de")
    assert hist.of_kind(LABELS[1], "linked").counts == tuple(histogram()["series"][2]["counts"])
    assert sum(hist.of_kind(LABELS[0], "unrelated").shares) == pytest.approx(1)
    point = projection()["points"][7]
    assert (words.points[7].x, words.points[7].y) == (point["x"], point["y"])
    assert words.points[7].place.sentence[point["index"]] == point["word"] == words.points[7].place.word
    assert [(dot.x, dot.label) for dot in dots.points] == [(p["x"], p["label"]) for p in scatter()["points"]]
    assert dots.figures[0].p == 0.0004 and dots.figures[0].count == 13


def changed(record: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A record with one thing in it replaced, or left out."""
    *above, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    held: Any = record
    for step in above:
        held = held[step]
    if value is None:
        del held[last]
    else:
        held[last] = value
    return record


BAD = [
    ("heatmaps", heatmap, "values", [[0.1, 0.2], [0.3]], "13 rows of 13"),
    ("heatmaps", heatmap, "values", [], "13 rows of 13"),
    ("heatmaps", heatmap, "values.3.4", math.nan, "nan is not a number"),
    ("heatmaps", heatmap, "values.3.4", "0.5", "'0.5' is not a number"),
    ("heatmaps", heatmap, "rows.ticks", "0123", "one word"),
    ("heatmaps", heatmap, "columns", None, "columns"),
    ("heatmaps", heatmap, "languages", ["en"], "two codes"),
    ("heatmaps", heatmap, "low", 2, "low is 2, high is 1"),
    ("heatmaps", heatmap, "title", None, "title"),
    ("histograms", histogram, "edges.3", 0.0, "do not rise"),
    ("histograms", histogram, "edges.0", -math.inf, "-inf is not a number"),
    ("histograms", histogram, "series", [], "does not have 40 counts"),
    ("histograms", histogram, "series.1.counts", [1, 2], "does not have 40 counts"),
    ("histograms", histogram, "series.1.counts.0", -1, "-1 is not a count"),
    ("histograms", histogram, "series.1.counts.0", 1.5, "1.5 is not a count"),
    ("histograms", histogram, "series.0.kind", "other", "kind 'other'"),
    ("histograms", histogram, "layer", "eight", "'eight' is not a count"),
    ("histograms", histogram, "axis", None, "axis"),
    ("projections", projection, "points", [], "no points"),
    ("projections", projection, "points.5.x", math.inf, "inf is not a number"),
    ("projections", projection, "points.5.y", True, "True is not a number"),
    ("projections", projection, "points.5.y", -1e300, "too large"),
    ("projections", projection, "points.5.word", None, "word"),
    ("projections", projection, "points.5", "x", "TypeError"),
    ("projections", projection, "encoder", None, "encoder"),
    ("scatters", scatter, "points", [], "no points"),
    ("scatters", scatter, "x", None, "'x'"),
    ("scatters", scatter, "points.0.y", math.nan, "nan is not a number"),
    ("scatters", scatter, "figures.0.value", None, "value"),
    ("scatters", scatter, "figures.1.p", "small", "'small' is not a number"),
]


@pytest.mark.parametrize(("name", "make", "path", "value", "told"), BAD)
def test_a_record_that_does_not_fit_is_named(tmp_path: Path, name, make, path, value, told) -> None:
    folder = run_of(tmp_path, **{name: [changed(make(), path, value)]})
    with pytest.raises(
        BadInput, match="record 1 does not fit: .*" + re.escape(told).replace("'", ".")
    ) as error:
        collect(folder)
    assert f"{name}.json" in str(error.value)


def test_the_second_record_is_the_second(tmp_path: Path) -> None:
    folder = run_of(tmp_path, heatmaps=[heatmap(), {}])
    with pytest.raises(BadInput, match="record 2 does not fit"):
        collect(folder)


NAMES = st.sampled_from(["title", "values", "points", "series", "edges", "x", "rows", "languages"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
)


@given(ANYTHING)
def test_no_record_breaks_the_reading_in_another_way(record: Any) -> None:
    for kind in (Heatmap, Histogram, Projection, Scatter):
        with pytest.raises((KeyError, TypeError, ValueError, AttributeError, IndexError)):
            kind.of(record)


# ------------------------------------------------------------------------------------------ heat maps


def test_cells_hold_the_figures_and_darken_with_them() -> None:
    view = heat_view(Heatmap.of(heatmap()))
    cells = [cell for _, row in view.rows for cell in row]
    values = [value for row in heatmap()["values"] for value in row]
    assert [float(cell.full) for cell in cells] == pytest.approx(values, rel=1e-3)
    assert all(a.shade <= b.shade for a, b in combinations(sorted(cells, key=lambda c: float(c.full)), 2))
    assert [cell.same for cell in cells] == [i == j for i in range(13) for j in range(13)]


def test_colours_reach_from_the_lowest_to_the_highest_value_named() -> None:
    view = heat_view(Heatmap.of(heatmap(low=-1, high=0, values=[[-1.0] * 13] * 12 + [[0.0] * 13])))
    assert {cell.shade for _, row in view.rows[:12] for cell in row} == {0}
    assert {cell.shade for cell in view.rows[12][1]} == {20}


@given(st.floats(-99, 99))
def test_a_short_figure_is_near_the_long_one(value: float) -> None:
    text = short(value)
    assert len(text.lstrip("−")) <= 3
    assert float(text.replace("−", "-")) == pytest.approx(value, abs=0.5 if abs(value) > 9 else 0.051)


# ----------------------------------------------------------------------------------------- histograms


def drawn(record: dict[str, Any]) -> ET.Element:
    held = Histogram.of(record)
    return ET.fromstring(draw_histogram(held, colours={}, notes=dict.fromkeys(held.encoders, "AUC 0.9")))


def steps(path: str) -> tuple[list[float], list[float]]:
    """Where the columns of an outline end, and how high they are, from its moves."""
    floor = float(re.match(r"M[\d.]+ ([\d.]+)", path)[1])
    columns = re.findall(r"V([\d.]+)H([\d.]+)", path)
    return [float(x) for _, x in columns], [floor - float(y) for y, _ in columns]


def test_columns_are_as_high_as_their_shares_and_share_one_axis() -> None:
    """Twice as many pairs of one kind change nothing: what is drawn are shares."""
    record = histogram()
    record["series"][1]["counts"] = [2 * count for count in record["series"][1]["counts"]]
    root, held = drawn(record), Histogram.of(record)
    outlines = [steps(path.get("d")) for path in root.iter(f"{SVG}path")]
    assert len(outlines) == 4 and all(ends == outlines[0][0] for ends, _ in outlines)
    every = [one.shares for one in held.series]
    tallest = max(map(max, every))
    for (_, heights), shares in zip(outlines, every, strict=True):
        assert heights == pytest.approx([92 * share / tallest for share in shares], abs=0.02)


def test_columns_say_what_they_are_when_pointed_at() -> None:
    record = histogram(edges=[0, 1, 2], series=[
        {"encoder": NASTY, "kind": "linked", "counts": [3, 1]},
        {"encoder": NASTY, "kind": "unrelated", "counts": [0, 8]},
    ])  # fmt: skip
    told = [title.text for title in drawn(record).iter(f"{SVG}title")][1:]
    assert told == [
        f"{NASTY}, L2 distance 0 to 1: 75.0% of linked pairs",
        f"{NASTY}, L2 distance 1 to 2: 25.0% of linked, 100.0% of unrelated pairs",
    ]


def test_no_pairs_and_one_kind_alone_are_drawn() -> None:
    for series in (
        [{"encoder": "a", "kind": "linked", "counts": [0, 0]}],
        [{"encoder": "a", "kind": "unrelated", "counts": [0, 2]}],
    ):
        assert drawn(histogram(edges=[0, 1, 2], series=series)).find(f"{SVG}desc").text


def test_histograms_at_the_verdicts_layer_and_the_last_come_first(tmp_path: Path) -> None:
    held = [histogram(layer=layer) for layer in range(13)]
    run = collect(run_of(tmp_path, histograms=held))
    views = list(histogram_views(run, LABELS, 7, 4))
    assert [(view.title[-2:].strip(), view.first) for view in views] == [
        ("7", True), ("12", True), ("0", False), ("3", False), ("8", False), ("11", False),
    ]  # fmt: skip


# ---------------------------------------------------------------------------------- words on a plane


def places(picture: str) -> dict[int, tuple[float, float]]:
    """Points by their number, in the picture's units."""
    root, found = ET.fromstring(picture), {}
    for one in root.iter():
        if one.get("data-k") is not None:
            path = re.match(r"M([\d.]+) ([\d.]+)m", one.get("d") or "")
            x, y = (path[1], path[2]) if path else (one.get("cx"), one.get("cy"))
            found[int(one.get("data-k"))] = float(x), float(y)
    return found


def test_points_lie_as_they_were_given_up_to_one_factor() -> None:
    one = Projection.of(projection())
    whole = cloud([one], 1000)
    where = places(draw_cloud(whole, one, "a"))
    assert len(where) == len(whole.points) == 80
    assert all(0 <= x <= 440 and 0 <= y <= 440 for x, y in where.values())
    pairs = list(combinations(range(0, 80, 9), 2))
    own = [math.dist(*((whole.points[k].x, whole.points[k].y) for k in pair)) for pair in pairs]
    drawn = [math.dist(where[i], where[j]) for i, j in pairs]
    assert [a / b for a, b in zip(drawn, own, strict=True)] == pytest.approx(
        [drawn[0] / own[0]] * len(own), rel=0.01
    )
    highest = max(range(80), key=lambda k: whole.points[k].y)
    assert where[highest][1] == min(y for _, y in where.values()), "up is up"


def test_the_same_word_has_the_same_number_in_every_encoder() -> None:
    before, after = (
        Projection.of(projection(label, apart=apart)) for label, apart in zip(LABELS, (9, 0), strict=True)
    )
    whole = cloud([before, after], 1000)
    one, other = places(draw_cloud(whole, before, "a")), places(draw_cloud(whole, after, "a"))
    assert one.keys() == other.keys() == set(range(80))
    apart = [[math.dist(held[2 * k], held[2 * k + 1]) for k in range(40)] for held in (one, other)]
    assert max(apart[1]) < min(apart[0]), "translations meet after"


def test_languages_differ_in_shape_and_colour_and_pairs_are_joined() -> None:
    one = Projection.of(projection(pairs=7))
    picture = draw_cloud(cloud([one], 99), one, "a")
    assert picture.count('class="point round s1"') == picture.count('class="point cornered s2"') == 7
    assert len(re.findall(r'<path d="M[\d.]+ [\d.]+L', picture)) == 7


def test_few_groups_have_a_colour_each_and_languages_a_shape() -> None:
    record = projection(pairs=6)
    for place, point in enumerate(record["points"]):
        point["group"] = f"sense {place // 2 % 3}"
    one = Projection.of(record)
    whole = cloud([one], 99)
    picture = draw_cloud(whole, one, "a")
    assert whole.grouped and {f"s{k}" for k in (1, 2, 3)} == set(
        re.findall(r'class="point \w+ (s\d)"', picture)
    )
    assert picture.count("point round") == picture.count("point cornered") == 6
    assert not re.search(r'<path d="M[\d.]+ [\d.]+L', picture), "four words of a group are not joined"


def test_words_are_joined_with_their_translations_by_the_order_of_the_points() -> None:
    """Several occurrences of one word: all of one language, then in the same order those of the other."""
    record = projection(pairs=6)
    points = [{**point, "group": "word"} for point in record["points"]]
    joined = Projection.of({**record, "points": points[::2] + points[1::2]})
    assert [(a.place.sentence[-1], b.place.sentence[-1]) for a, b in joined.links] == [
        (str(k), str(k)) for k in range(6)
    ]
    picture = draw_cloud(cloud([joined], 99), joined, "a")
    assert len(re.findall(r'<path d="M[\d.]+ [\d.]+L', picture)) == 6
    assert Projection.of({**record, "points": points}).links == (), "in another order nobody knows"
    assert len(Projection.of(record).links) == 6, "but for two alone in a group"


@given(st.integers(1, 100))
def test_at_most_so_many_words_are_shown_and_groups_stay_whole(most: int) -> None:
    whole = cloud([Projection.of(projection())], most)
    assert 1 <= len(whole.points) <= max(most, 1) and len(whole.points) + whole.left_out == 80
    if most > 1:
        groups = [point.group for point in whole.points]
        assert all(groups.count(group) == 2 for group in groups)


def test_names_do_not_cover_each_other() -> None:
    one = Projection.of(projection())
    root = ET.fromstring(draw_cloud(cloud([one], 999), one, "a"))
    rows = [
        (float(t.get("x")), float(t.get("y")), t.get("text-anchor"), len(t.text))
        for t in root.iter(f"{SVG}text")
    ]
    boxes = [
        (x if at == "start" else x - 5 * n, y, x + 5 * n if at == "start" else x) for x, y, at, n in rows
    ]
    assert 20 < len(boxes) < 80
    for (left, y, right), (other, z, end) in combinations(boxes, 2):
        assert abs(y - z) >= 11 or right <= other or end <= left


@pytest.mark.parametrize(
    "points", [[POINT], [POINT, POINT], [POINT, {**POINT, "x": 1e9}], [{**POINT, "language": "xx"}]]
)
def test_odd_planes_are_drawn(points: list[dict[str, Any]]) -> None:
    one = Projection.of(projection(points=points))
    assert all(math.isfinite(x + y) for x, y in places(draw_cloud(cloud([one], 9), one, "a")).values())


def test_what_belongs_side_by_side_is_told_by_languages_layer_and_method() -> None:
    one = Projection.of(projection())
    others = [
        replace(one, layer=2),
        replace(one, method="pca"),
        replace(one, encoder="b"),
        replace(one, languages=("en", "ru")),
    ]
    held = side_by_side([one, *others])
    assert [len(found) for found in held] == [2, 1, 1, 1] and [p.encoder for p in held[0]] == [LABELS[0], "b"]


# ------------------------------------------------------------------------------------------- scatters


def test_a_scatter_is_drawn_where_its_points_are() -> None:
    held = Scatter.of(scatter())
    where = places(draw_scatter(plane(held), "a"))
    ends = [(point["x"], point["y"]) for point in scatter()["points"]]
    for axis, sign in ((0, 1), (1, -1)):
        order = sorted(range(13), key=lambda k: ends[k][axis])
        drawn = [sign * where[k][axis] for k in order]
        assert drawn == sorted(drawn)


def test_one_point_and_no_groups_are_drawn() -> None:
    for points in ([{"x": 0.5, "y": 0.5}], [{"x": 1, "y": 1, "label": NASTY, "group": NASTY}] * 2):
        picture = draw_scatter(plane(Scatter.of(scatter(points=points, figures=[]))), "a")
        assert len(places(picture)) == len(points) and "<script>" not in picture


def test_correlations_are_told_with_what_is_known_of_them() -> None:
    figure = Scatter.of(scatter()).figures[0]
    assert correlated(figure) == (
        "Pearson’s r 0.930 (95% interval 0.810 to 0.980), permutation test p < 0.001, over 13 points"
    )
    bare = replace(figure, value=-0.5, low=None, p=None, count=0)
    assert correlated(bare) == "Pearson’s r −0.500"
