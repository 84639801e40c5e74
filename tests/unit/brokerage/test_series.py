"""What may be asked of counts over time, and that their rows become lines without gaps, whatever rows there are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.facts.rollups import Family
from brokerage.rules.facts.series import MOST_LINES, OTHERS, Asked, filled, read

NOW = datetime(2026, 5, 4, 12, 34, 56, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sent", "asked"),
    [
        ({}, Asked()),
        ({"what": "running,failed", "window": "1h"}, Asked(("running", "failed"), 3600, 60)),
        ({"window": "7d", "by": "queue"}, Asked(window_s=7 * 86400, step_s=3600, by="queue")),
        ({"window": "1w", "step": "5m"}, Asked(window_s=7 * 86400)),
        (
            {"window": "90d", "share": "x", "kind": "merge"},
            Asked(window_s=90 * 86400, step_s=86400, only={"share": "x", "kind": 4}),
        ),
        ({"user": "ada", "vo": "demo"}, Asked(only={"user_name": "ada", "vo": "demo"})),
        ({"what": "failed", "by": "error", "queue": ""}, Asked(("failed",), by="error")),
    ],
)
def test_parameters_put_a_question(sent: dict[str, str], asked: Asked) -> None:
    assert read(sent) == (asked, [])


@pytest.mark.parametrize(
    ("sent", "fields"),
    [
        ({"what": "begun"}, ["what"]),
        ({"window": "-1h"}, ["window"]),
        ({"window": "0h"}, ["window"]),
        ({"window": "999999w"}, ["window"]),
        ({"window": "7d", "step": "1m"}, ["window"]),
        ({"window": "90m", "step": "1h"}, ["window"]),
        ({"window": "63d", "step": "1h", "by": "queue"}, ["window"]),
        ({"step": "2m"}, ["step"]),
        ({"by": "colour"}, ["by"]),
        ({"kind": "large"}, ["kind"]),
        ({"user": "ada", "queue": "ALPHA"}, ["by"]),
        ({"by": "error"}, ["what"]),
        ({"queue": "a\0b"}, ["queue"]),
        ({"colour": "red", "what": "x"}, ["colour", "what"]),
    ],
)
def test_bad_parameters_are_named(sent: dict[str, str], fields: list[str]) -> None:
    asked, problems = read(sent)
    assert asked is None
    assert [problem.field for problem in problems] == fields


def test_the_family_with_the_fewest_rows_answers() -> None:
    assert Asked().family == Family.VO
    assert Asked(only={"share": "x"}).family == Family.SHARE
    assert Asked(by="kind", only={"share": "x"}).family == Family.SHARE
    assert Asked(by="queue", only={"vo": "x"}).family == Family.QUEUE
    assert Asked(by="queue", only={"share": "x"}).family == Family.PLACE
    assert Asked(by="user").family == Family.USER
    assert Asked(("failed",), by="error", only={"queue": "x"}).family == Family.ERROR_AT
    assert Asked(("failed",), by="error").family == Family.ERROR


times = st.integers(0, 30 * 60 - 1)


@given(st.lists(st.tuples(st.sampled_from(["running", "activated"]), times, st.integers(-1, 1)), max_size=40))
def test_levels_are_those_that_a_count_at_the_end_of_each_bucket_gives(moves: list[tuple[str, int, int]]) -> None:
    asked = Asked(("running", "activated", "failed"), 1800, 60)
    span = asked.span(NOW)
    base = 50  # so many were there before
    rows = [(what, "", span[0] + timedelta(seconds=s // 60 * 60), n) for what, s, n in moves]
    now = [(what, "", base + sum(n for w, _, n in moves if w == what)) for what in ("running", "activated")]
    found = filled(asked, span, NOW, rows, now)
    for what in ("running", "activated"):
        expected = [base + sum(n for w, s, n in moves if w == what and s < 60 * (i + 1)) for i in range(30)]
        assert list(found.line(what).points) == expected
    assert list(found.line("failed").points) == [0] * 30
    assert found.times[0] == span[0]
    assert found.times[-1] + timedelta(seconds=60) == span[1] > NOW


@given(st.lists(st.tuples(st.sampled_from(["started", "failed"]), st.sampled_from("abc"), times), max_size=60))
def test_flows_are_the_sums_of_their_buckets(events: list[tuple[str, str, int]]) -> None:
    asked = Asked(("started", "failed"), 1800, 300, by="queue")
    span = asked.span(NOW)
    found = filled(asked, span, NOW, [(what, of, span[0] + timedelta(seconds=s), 1) for what, of, s in events], [])
    assert sum(line.total for line in found.lines) == len(events)
    assert all(len(line.points) == 6 for line in found.lines)
    for line in found.lines:
        at = [s // 300 for what, of, s in events if (what, of) == (line.what, line.of)]
        assert list(line.points) == [at.count(i) for i in range(6)]


def test_lines_beyond_the_largest_are_added_up() -> None:
    asked = Asked(("failed",), 3600, 3600, by="user")
    start, _ = span = asked.span(NOW)
    found = filled(asked, span, None, [("failed", f"u{n}", start, n + 1) for n in range(MOST_LINES + 3)], [])
    assert [line.of for line in found.lines][-1] == OTHERS
    assert len(found.lines) == MOST_LINES + 1
    assert found.lines[0].points == [MOST_LINES + 3]
    assert found.lines[-1].points == [1 + 2 + 3]
