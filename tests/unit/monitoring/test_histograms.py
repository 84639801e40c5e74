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


def test_numbers_are_written_out_with_their_unit() -> None:
    assert Histogram("Memory", "MB", [12_345.0, 12_345.0, 99.5], 1_200_000).words == (
        "3 jobs: half below 12,345 MB, the most 12,345 MB, 1,200,000 MB allowed."
    )
    assert Histogram("Run time", "h", [1.9], None).words == "1 job: half below 1.9 h, the most 1.9 h."
