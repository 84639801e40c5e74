"""Histograms: every number is in one bar, bars are round and few, and the picture keeps inside its frame."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from monitoring.histograms import HEIGHT, MOST_BARS, WIDTH, Histogram, draw_histogram


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=200), st.none() | st.floats(1, 1e9))
def test_every_job_is_in_one_bar_and_inside_the_picture(values: list[float], limit: float | None) -> None:
    shown = Histogram("<Run>", "s", values, limit)
    bars = shown.bars
    assert sum(bar.n for bar in bars) == len(values)
    assert len(bars) <= MOST_BARS + 1
    picture = ET.fromstring(draw_histogram(shown, "p"))  # noqa: S314 - our own picture
    assert picture.findtext("title") == "<Run>, s"
    drawn = [{name: float(rect.get(name) or "nan") for name in ("x", "y", "width", "height")} for rect in picture.iter("rect")]
    assert len(drawn) == sum(bar.n > 0 for bar in bars)
    assert all(at["x"] >= 0 and at["x"] + at["width"] <= WIDTH and 0 <= at["y"] + at["height"] <= HEIGHT for at in drawn)
