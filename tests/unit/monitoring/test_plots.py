"""Plots: axes end at round numbers, curves stay inside, the table has every number, whatever there is to draw."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from monitoring.plots import HEIGHT, ROWS, WIDTH, Curve, Plot, _ceiling, draw

BEGIN = datetime(2026, 5, 4, 10, 20, tzinfo=UTC)


def plot(points: list[int], step_s: int = 300, *, stacked: bool = False, title: str = "All") -> Plot:
    times = [BEGIN + timedelta(seconds=step_s * i) for i in range(len(points))]
    curves = [Curve("started", "started", points), Curve("failed", "failed", points[::-1])]
    return Plot(title, times, step_s, curves, stacked)


@given(st.integers(0, 10**12))
def test_an_axis_ends_at_a_round_number_not_far_above(most: int) -> None:
    end = _ceiling(most)
    assert end >= most
    assert most <= 4 or end <= 2.5 * most
    assert re.fullmatch(r"(?:[4-9]|[12])0*", str(end))


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=300), st.booleans(), st.sampled_from([60, 300, 3600]))
def test_curves_stay_inside_and_the_table_has_all_numbers(points: list[int], stacked: bool, step_s: int) -> None:
    drawn = plot(points, step_s, stacked=stacked)
    picture = ET.fromstring(draw(drawn, "p"))  # noqa: S314 - our own picture
    for path in picture.iter("path"):
        for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path.get("d") or ""):
            assert 0 <= float(x) <= WIDTH
            assert 0 <= float(y) <= HEIGHT
    assert len(drawn.rows) <= ROWS
    if stacked:
        assert list(drawn.rows[0].numbers) == [points[-1], points[0]]
    else:
        assert [sum(column) for column in zip(*(row.numbers for row in drawn.rows), strict=True)] == [sum(points)] * 2


@given(st.integers(2, 60), st.sampled_from([1, 10, 60, 3600, 86_400]))
def test_no_time_along_the_lower_edge_is_cut(n: int, step_s: int) -> None:
    picture = ET.fromstring(draw(plot([1] * n, step_s), "p"))  # noqa: S314 - our own picture
    times = [each for each in picture.iter("text") if each.get("text-anchor") == "middle"]
    for each in times:
        assert float(each.get("x") or 0) + 7 * len(each.text or "") / 2 <= WIDTH, "a digit is some 7 wide"


@given(st.integers(0, 10**8))
def test_numbers_of_an_axis_are_few_and_short(most: int) -> None:
    picture = ET.fromstring(draw(plot([most, 0]), "p"))  # noqa: S314 - our own picture
    told = [each.text or "" for each in picture.iter("text") if each.get("text-anchor") == "end"]
    assert 5 <= len(told) <= 6
    assert all(len(text) <= len("100 k") for text in told)


def test_titles_are_text() -> None:
    title = '<script>"&'
    picture = ET.fromstring(draw(plot([1, 2], title=title), "p"))  # noqa: S314 - our own picture
    assert picture.findtext("title") == f"{title}, jobs per 5 min"
    assert picture.find("script") is None


def test_a_day_and_a_week_have_few_rows_of_whole_hours() -> None:
    assert (plot([0] * 288).row_length, len(plot([0] * 288).rows)) == ("1 h", 24)
    assert (plot([0] * 168, 3600).row_length, len(plot([0] * 168, 3600).rows)) == ("6 h", 28)
