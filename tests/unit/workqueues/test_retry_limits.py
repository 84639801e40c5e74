"""Limits of retries: which one a task is beyond, and what becomes of it then."""

from __future__ import annotations

import pytest

from workqueues.rules.task.retry_limits import RetryFigures, retry_excess

TASK = RetryFigures(2, n_finished=6, n_failed=2, work_finished=30.0, work_failed=10.0, cpu_percent=40.0, max_attempt=6)


@pytest.mark.parametrize(
    ("name", "least", "reason"),
    [
        ("TASK_MAX_ATTEMPT", 2, "it was retried 2 times, the limit is 2"),
        ("MAX_FAILED_HEP_SCORE_HOURS", 10, "its failed jobs used 10 HEP-score hours, the limit is 10"),
        ("MAX_FAILED_HEP_SCORE_RATE", 0.25, "its failed jobs did 25% of the work, the limit is 25%"),
        ("MAX_JOB_FAILURE_RATE", 0.25, "2 of its 8 jobs failed, the limit is 25%"),
        ("JOB_MAX_ATTEMPT", 6, "a file of it may have 6 tries already, the limit is 6"),
    ],
)
def test_a_limit_that_is_reached_holds(name: str, least: float, reason: str) -> None:
    excess = retry_excess(TASK, {name: least}, "managed")
    assert excess is not None
    assert (excess.reason, excess.exhausts) == (f"{reason} ({name}_managed)", name != "JOB_MAX_ATTEMPT")
    assert retry_excess(TASK, {name: least * 1.01}, "managed") is None
    assert retry_excess(TASK, {name: 0}, "managed") is None
    assert retry_excess(TASK, {name: None}, "managed") is None


def test_the_efficiency_must_not_be_below_its_limit() -> None:
    assert retry_excess(TASK, {"MIN_CPU_EFFICIENCY": 40}, "user") is None
    excess = retry_excess(TASK, {"MIN_CPU_EFFICIENCY": 41}, "user")
    assert excess is not None
    assert excess.reason == "its jobs used 40 % of their cores, the limit is 41 % (MIN_CPU_EFFICIENCY_user)"
    assert retry_excess(TASK._replace(cpu_percent=None), {"MIN_CPU_EFFICIENCY": 41}, "user") is None


def test_without_jobs_no_rate_is_reached() -> None:
    limits = {"MAX_JOB_FAILURE_RATE": 0.01, "MAX_FAILED_HEP_SCORE_RATE": 0.01}
    assert retry_excess(RetryFigures(0), limits, "user") is None


def test_the_first_limit_in_their_order_is_told() -> None:
    excess = retry_excess(TASK, {"JOB_MAX_ATTEMPT": 1, "TASK_MAX_ATTEMPT": 1}, "user")
    assert excess is not None
    assert "TASK_MAX_ATTEMPT" in excess.reason
