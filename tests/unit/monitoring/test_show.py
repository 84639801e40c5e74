"""How values stand on a page."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from broker_site.foundation.kernel import clock
from monitoring.charts import progress_bar, share_bar
from monitoring.measured import measured
from monitoring.queries.tasks import Files
from monitoring.templatetags.show import (
    age,
    age_to_a_minute,
    badge,
    compared,
    due,
    lasting,
    megabytes,
    next_look,
    number,
    parted,
    size,
    stamp,
)

NOW = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.032, "32 ms"), (0, "0 s"), (1.26, "1.3 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"),
        (5.0, "5 s"), (172800, "2 d"), (9e8, "10,416 d"), (None, "\N{EN DASH}"),
    ],
)  # fmt: skip
def test_a_duration_is_told_in_one_unit(seconds: float | None, said: str) -> None:
    assert lasting(seconds).replace("\N{NARROW NO-BREAK SPACE}", " ") == said


def test_an_age_has_the_time_itself_for_machines_and_for_who_points_at_it() -> None:
    with clock.frozen(NOW):
        shown = age(NOW - timedelta(minutes=5))
        assert "5\N{NARROW NO-BREAK SPACE}min ago" in shown
        assert 'datetime="2026-10-25T01:25:00Z"' in shown and 'title="2026-10-25 01:25:00 UTC"' in shown
        assert ">in 5\N{NARROW NO-BREAK SPACE}min<" in age(NOW + timedelta(minutes=5, seconds=1))


def test_what_is_noted_once_a_minute_is_not_told_to_a_second() -> None:
    with clock.frozen(NOW):
        assert age_to_a_minute(NOW - timedelta(seconds=57)) == "less than a minute ago"
        assert age_to_a_minute(NOW - timedelta(minutes=5)) == age(NOW - timedelta(minutes=5))


def test_a_next_look_whose_time_is_over_is_due() -> None:
    with clock.frozen(NOW):
        assert next_look(NOW + timedelta(minutes=5, seconds=1)).startswith("Next look <time ")
        assert next_look(NOW - timedelta(hours=3)).startswith("Next look due <time ")


def test_a_long_name_breaks_behind_what_parts_its_words_and_stays_text() -> None:
    assert parted("mc23.user_ada:run/1..x") == "mc23.<wbr>user_<wbr>ada:<wbr>run/<wbr>1..<wbr>x"
    assert parted("run 1.5: at 12:30, v2.x") == "run 1.5: at 12:30, v2.<wbr>x"
    assert parted("a.<b>&'.") == "a.<wbr>&lt;b&gt;&amp;&#x27;."


def test_what_a_pilot_measured_is_told_in_words_and_units() -> None:
    told = measured(
        {"written_bytes": 5, "max_rss_mb": 2, "cpu_s": 1.5, "gpu_time_s": 3, "hits": 7, "cpu_model_s": "fast", "s": 1}
    )
    assert [(each.what, each.value, each.unit) for each in told] == [
        ("CPU time", 1.5, "s"),
        ("Peak memory (RSS)", 2e6, "bytes"),
        ("Written to disk", 5, "bytes"),
        ("Cpu model s", "fast", ""),
        ("Gpu time", 3, "s"),
        ("Hits", 7, ""),
        ("S", 1, ""),
    ]
    assert measured(None) == []


def test_what_is_due_lies_ahead_or_is_now() -> None:
    with clock.frozen(NOW):
        assert ">in 5\N{NARROW NO-BREAK SPACE}min<" in due(NOW + timedelta(minutes=5, seconds=1))
        assert ">now<" in due(NOW - timedelta(seconds=21))
    assert due(None) == "\N{EN DASH}"


def test_times_are_utc_also_when_clocks_change() -> None:
    before, after = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert ">2026-10-25 00:30:00 UTC<" in stamp(before) and ">2026-10-25 01:30:00 UTC<" in stamp(after)


def test_sizes_are_powers_of_1000_with_their_unit() -> None:
    shown = [s.replace("\N{NARROW NO-BREAK SPACE}", " ") for s in (size(999), size(1500), size(2e9), megabytes(8000), size(3e15))]
    assert shown == ["999 B", "1.5 kB", "2 GB", "8 GB", "3 PB"]


def test_numbers_keep_what_is_worth_reading() -> None:
    assert [number(1234567), number(86400.0), number(0.123456), number(500.0)] == ["1,234,567", "86,400", "0.1235", "500"]
    assert [compared(""), compared(True), compared(["a"])] == ["nothing", "true", '[\n "a"\n]']


def test_a_badge_is_a_symbol_and_a_word_and_an_unknown_state_is_not_hidden() -> None:
    assert re.sub("<[^>]+>", "", badge("task", "done")) == "✓done"
    assert re.sub("<[^>]+>", "", badge("task", "<odd>")) == "?&lt;odd&gt;"


def test_the_bar_of_a_task_says_its_numbers_and_shows_also_a_single_failure() -> None:
    bar = progress_bar(Files(finished=999_999, failed=1))
    assert 'aria-label="999,999 done, 1 failed, 0 in jobs, 0 left"' in bar
    widths = {name: float(width) for name, width in re.findall(r'class="(\w+)" x="[\d.]+" y="0" width="([\d.]+)"', bar)}
    assert set(widths) == {"done", "failed"} and widths["failed"] > 1 and sum(widths.values()) == pytest.approx(100, abs=0.02)
    assert "style=" not in bar
    assert 'aria-label="no files yet"' in progress_bar(Files())
    assert 'aria-hidden="true"' in share_bar(1, 4)
