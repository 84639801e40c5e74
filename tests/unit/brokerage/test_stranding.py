"""When jobs that wait at a queue cannot start there, and when they are closed to run elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from brokerage.rules.dispatch.stranding import QueueService, names_place

MIN, HOUR = 60.0, 3600.0


def queue(**facts: Any) -> QueueService:
    return QueueService(1, "GAMMA", **facts)


@pytest.mark.parametrize(
    ("facts", "none"),
    [
        ({}, False),
        ({"status": "brokeroff"}, False),
        ({"status": "test"}, False),
        ({"status": "offline"}, True),
        ({"status": "standby"}, True),
        ({"status": "paused"}, True),
        ({"storage_down": True}, True),
        ({"silent_s": 3 * HOUR}, False),
        ({"silent_s": 3 * HOUR + 1}, True),
        ({"silent_s": 9 * HOUR, "workers": 1}, False),
        ({"silent_s": 9 * HOUR, "catchall": "allow_no_pilot"}, False),
        ({"silent_s": 9 * HOUR, "params": {"allow_no_pilot": True}}, False),
    ],
)
def test_jobs_cannot_start_where_nothing_is_handed_out_or_no_pilot_comes(facts: dict[str, Any], none: bool) -> None:
    assert queue(**facts).starts_none(3 * HOUR) is none


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"status": "offline", "status_s": 15 * MIN}, ""),
        ({"status": "offline", "status_s": 16 * MIN}, "GAMMA has been offline for 16 min"),
        ({"status": "brokeroff", "status_s": 9 * HOUR}, ""),
        ({"status": "test", "status_s": 9 * HOUR}, ""),
        ({"status": "paused", "status_s": 9 * HOUR, "silent_s": 9 * HOUR}, ""),
        ({"status": "offline", "status_s": 9 * HOUR, "catchall": "disableReassign"}, ""),
        ({"storage_down": True, "status_s": 9 * HOUR}, ""),
        ({"silent_s": 3.5 * HOUR}, "no pilot of GAMMA was seen for 3.5 h"),
        ({"silent_s": 3.5 * HOUR, "workers": 2}, ""),
        ({"silent_s": 3.5 * HOUR, "catchall": "disableReassign"}, ""),
    ],
)
def test_jobs_leave_a_queue_that_is_offline_or_without_pilots_for_long(facts: dict[str, Any], why: str) -> None:
    assert queue(**facts).left(15 * MIN, 3 * HOUR) == why


@pytest.mark.parametrize(
    ("site", "included", "named"),
    [
        ("", (), False),
        ("GAMMA", (), True),
        (" ELSEWHERE ,", (), True),
        ("", ("GAMMA", "ALPHA"), True),
        ("", ("GAMMA_SITE",), True),
        ("", ("ALPHA", "AUTO", "GAM*"), False),
    ],
)
def test_a_task_that_says_where_it_runs_stays(site: str, included: tuple[str, ...], named: bool) -> None:
    assert names_place({"GAMMA", "GAMMA_SITE"}, site, included) is named
