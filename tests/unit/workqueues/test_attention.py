"""Which tasks need the attention of their owner."""

from __future__ import annotations

import pytest

from workqueues.rules.task.attention import Course, attention

HOUR = 3600.0


@pytest.mark.parametrize(
    ("course", "told"),
    [
        (Course("running", 9 * HOUR), ""),
        (Course("done", 9 * HOUR, 90, 10), ""),
        (Course("exhausted", 1.0), "stopped: tell it to retry, to finish, or kill it"),
        (Course("broken", 1.0), "ended badly"),
        (Course("failed", 1.0, 0, 5), "ended badly"),
        (Course("pending", HOUR), ""),
        (Course("pending", HOUR + 1), "pending for 1 h"),
        (Course("pending", 80 * HOUR), "pending for 3 days"),
        (Course("running", 1.0, 7, 3), ""),
        (Course("running", 1.0, 6, 4), "4 of 10 ended files failed"),
        (Course("running", 1.0, 0, 9), ""),
        (Course("scouting", 1.0, 0, 0, 0, 10), "all 10 ended jobs failed"),
        (Course("scouting", 1.0, 0, 0, 0, 4), ""),
        (Course("running", 1.0, 0, 0, 5, 5), ""),
        (Course("running", 1.0, 0, 0, 4, 6), "6 of 10 ended jobs failed"),
        (Course("running", 1.0, 0, 0, 1, 19), "19 of the last 20 ended jobs failed"),
        (Course("running", 1.0, 0, 0, 0, 20), "the last 20 ended jobs failed"),
        (Course("done", 1.0, 0, 0, 4, 6), ""),
    ],
)
def test_what_waits_for_its_owner_or_goes_badly_needs_attention(course: Course, told: str) -> None:
    assert attention(course) == told
