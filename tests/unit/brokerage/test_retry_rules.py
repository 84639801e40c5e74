"""Which retry rules hold for a job that failed: what they match, which of several wins, and that none does harm."""

from __future__ import annotations

import time
from typing import Any

import pytest

from brokerage.rules.dispatch.retry_rules import FailedJob, JobError, Rule, chosen, fault_of_pattern
from brokerage.rules.dispatch.settlement import Report, Settlement, errors_of

JOB = FailedJob(
    (JobError("pilot", "PAYLOAD_EXIT", "exit code 134\nlong"), JobError("payload", "134", "exit code 134")),
    vo="demo", architecture="x86_64", release="Athena-25.0.1", computing_queue="ALPHA", work_queue=3,
)  # fmt: skip


def names(*rules: Rule, job: FailedJob = JOB) -> list[str]:
    return [rule.name for rule in chosen(rules, job).rules]


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ({}, True),
        ({"component": "pilot", "code": "PAYLOAD_EXIT"}, True),
        ({"component": "payload", "code": "134"}, True),
        ({"component": "broker"}, False),
        ({"code": "135"}, False),
        ({"pattern": "exit code 1[0-9]+"}, True),
        ({"pattern": "code"}, False),
        ({"pattern": ".*long$"}, True),
        ({"pattern": "("}, False),
        ({"vo": "demo", "architecture": "x86_64", "release": "Athena-25.0.1", "computing_queue": "ALPHA", "work_queue": 3}, True),
        ({"vo": "cms"}, False),
        ({"architecture": "x86"}, False),
        ({"release": "Athena"}, False),
        ({"computing_queue": "BETA"}, False),
        ({"work_queue": 4}, False),
    ],
)
def test_all_that_a_rule_says_must_be_so(asked: dict[str, Any], holds: bool) -> None:
    assert names(Rule("r", "no_retry", **asked)) == (["r"] if holds else [])


def test_the_rule_that_says_most_of_the_job_wins_then_the_stricter_one() -> None:
    general, stricter = Rule("general", "no_retry"), Rule("five", "limit_retry", max_attempt=5)
    assert names(stricter, general) == ["general"]
    of_queue = Rule("queue", "limit_retry", computing_queue="ALPHA", max_attempt=7)
    assert names(stricter, general, of_queue) == ["queue"]
    assert names(of_queue, Rule("both", "limit_retry", computing_queue="ALPHA", vo="demo", max_attempt=9)) == ["both"]
    ten = Rule("ten", "limit_retry", max_attempt=10)
    assert names(ten, stricter) == ["five"], "numbers are compared, not texts"
    assert names(Rule("code", "limit_retry", code="PAYLOAD_EXIT", max_attempt=10), general) == ["code"]


def test_each_action_holds_once_and_only_for_the_first_error_that_has_one() -> None:
    more = Rule("more", "increase_memory", code="PAYLOAD_EXIT")
    again = Rule("again", "increase_memory", code="PAYLOAD_EXIT", vo="demo")
    less = Rule("less", "reduce_input_per_job")
    of_payload = Rule("never", "no_retry", component="payload")
    assert sorted(names(more, again, less, of_payload)) == ["again", "less"]
    assert names(of_payload) == ["never"]


def test_what_is_not_active_is_told_and_is_in_no_ones_way() -> None:
    idle = Rule("idle", "no_retry", vo="demo", active=False)
    found = chosen([idle, Rule("three", "limit_retry", max_attempt=3)], JOB)
    assert ([r.name for r in found.rules], [r.name for r in found.idle]) == (["three"], ["idle"])


def test_a_pattern_that_would_never_end_matches_nothing_at_once() -> None:
    evil = "(a+)+$"
    assert "repeated" in fault_of_pattern(evil)
    begin = time.perf_counter()
    job = FailedJob([JobError("pilot", "X", "a" * 500 + "b")])
    assert names(Rule("evil", "no_retry", pattern=evil), job=job) == []
    assert names(Rule("slow", "no_retry", pattern=".*a.*b"), job=job) == [], "only the beginning of a message is looked at"
    assert time.perf_counter() - begin < 2


@pytest.mark.parametrize(
    ("report", "errors"),
    [
        (Report("failed", exit_code=3), [("pilot", "PAYLOAD", "why"), ("payload", "3", "why")]),
        (Report("failed", exit_code=0), [("pilot", "PAYLOAD", "why")]),
        (Report("finished"), [("broker", "PAYLOAD", "why")]),
    ],
)
def test_who_says_what_went_wrong(report: Report, errors: list[tuple[str, str, str]]) -> None:
    assert [tuple(e) for e in errors_of(Settlement("failed", "", "PAYLOAD", "why"), report)] == errors
