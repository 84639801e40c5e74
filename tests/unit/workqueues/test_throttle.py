"""The throttler: each rule decides alone, at its limit, and says why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.throttle.throttler import PRACTICE, Counts, Limits, throttled


@pytest.mark.parametrize(
    ("counts", "limits", "decision", "rule", "jobs", "lock"),
    [
        (Counts(running=100, activated=200), Limits(), "PASS", "pass", 250, True),
        (Counts(running=100, activated=150, defined=51), Limits(), "SKIP", "ratio", 0, False),
        (Counts(), Limits(), "PASS", "pass", 250, True),
        (Counts(starting=1), Limits(), "SKIP", "ratio", 0, False),
        (Counts(running=290, assigned=20), Limits(), "PASS", "pass", 280, True),
        (Counts(starting=99), Limits(lower=100), "PASS", "pass", 250, True),
        (Counts(starting=89), Limits(lower=100), "PASS", "pass", 250, False),
        (Counts(starting=100), Limits(lower=100), "SKIP", "ratio", 0, False),
        (Counts(running=1000, activated=1000), Limits(cap=1000), "PASS", "pass", 200, True),
        (Counts(), Limits(cap=3), "PASS", "pass", 1, True),
        (Counts(running=1000, activated=1001), Limits(cap=1000), "SKIP", "cap", 0, False),
        (Counts(running=50), Limits(running_cap=50), "PASS", "pass", 250, True),
        (Counts(running=51), Limits(running_cap=50), "SKIP", "running_cap", 0, False),
        (Counts(running=1, activated=9000), Limits(unthrottled=True), "PASS", "unthrottled", None, False),
        (Counts(running=10, activated=30), Limits(ratio=3), "PASS", "pass", 250, True),
        (Counts(running=10, activated=31), Limits(ratio=3), "SKIP", "ratio", 0, False),
        (Counts(running=90, activated=63), Limits(ratio=0.7), "PASS", "pass", 250, True),
        (Counts(running=90, activated=64), Limits(ratio=0.7), "SKIP", "ratio", 0, False),
        # Rules of practice, each off unless asked for.
        (Counts(running=4000, defined=2401), Limits(), "PASS", "pass", 300, True),
        (Counts(running=4000, defined=2401), Limits(practice=PRACTICE), "SKIP", "brokerage_stuck", 0, False),
        (Counts(running=4000, defined=2400), Limits(practice=PRACTICE), "PASS", "pass", 300, True),
        (Counts(running=100, waiting=1001), Limits(practice=PRACTICE), "SKIP", "waiting", 0, False),
        (Counts(running=100, waiting=1000), Limits(practice=PRACTICE), "PASS", "pass", 250, True),
        (Counts(activated=2001), Limits(practice=PRACTICE), "SKIP", "ratio", 0, False),
        (Counts(activated=2001, walltime_s=5e7), Limits(practice=PRACTICE), "PASS", "pass", 250, True),
        (Counts(activated=2001, walltime_s=5.1e7), Limits(practice=PRACTICE), "SKIP", "ratio", 0, False),
    ],
)
def test_a_unit_is_judged(counts: Counts, limits: Limits, decision: str, rule: str, jobs: int | None, lock: bool) -> None:
    verdict = throttled(counts, limits)
    assert (verdict.decision, verdict.rule, verdict.max_jobs, verdict.lock) == (decision, rule, jobs, lock)
    assert verdict.reason


@pytest.mark.parametrize(
    ("top", "starting", "priority", "passes"),
    [(500, 2100, 501, True), (500, 2100, 500, False), (500, 2100, 499, False), (None, 2100, 1, True), (500, 2100, None, False)],
)
def test_a_task_above_every_job_passes_where_practice_is_followed(
    top: int | None, starting: int, priority: int | None, passes: bool
) -> None:
    counts = Counts(starting=starting, top_priority=top)
    verdict = throttled(counts, Limits(practice=PRACTICE), priority)
    assert (verdict.decision == "PASS") is passes
    assert verdict.least_priority == (priority if passes else None)
    assert throttled(counts, Limits(), priority).decision == "SKIP"


def test_the_same_priority_passes_while_few_jobs_wait_and_a_running_cap_holds_for_all() -> None:
    stuck = Counts(starting=499, defined=2002, top_priority=500)
    assert throttled(stuck, Limits(practice=PRACTICE), 500).rule == "high_priority"
    assert throttled(Counts(running=51, top_priority=1), Limits(practice=PRACTICE, running_cap=50), 900).rule == "running_cap"


numbers = st.integers(0, 20_000)


@given(st.builds(Counts, *[numbers] * 6), st.builds(Limits, st.none() | numbers, st.none() | numbers, st.none() | numbers))
def test_it_is_total_and_never_makes_jobs_on_skip(counts: Counts, limits: Limits) -> None:
    verdict = throttled(counts, limits)
    if verdict.decision == "SKIP":
        assert (verdict.max_jobs, verdict.lock) == (0, False)
    else:
        assert verdict.max_jobs is not None
        assert limits.cap is None or counts.queued <= limits.cap


def test_each_rule_of_practice_is_switched_on_by_itself() -> None:
    stuck = Counts(running=4000, defined=2401, waiting=20_000)
    assert throttled(stuck, Limits(practice=frozenset({"waiting"}))).rule == "waiting"
    assert throttled(stuck, Limits(practice=frozenset({"brokerage_stuck"}))).rule == "brokerage_stuck"
    assert throttled(Counts(activated=1999), Limits(practice=frozenset({"limit"}))).decision == "PASS"
    short = Counts(activated=9999, walltime_s=1.0)
    assert throttled(short, Limits(practice=frozenset({"walltime"}))).decision == "PASS"
    assert throttled(short, Limits(practice=PRACTICE - {"walltime"})).decision == "SKIP"
    assert throttled(short, Limits(practice=frozenset({"high_priority"})), 900).rule == "high_priority"


def test_each_cap_is_compared_with_the_jobs_at_its_level() -> None:
    own, whole = Counts(running=10), Counts(running=500, activated=900)
    assert throttled(own, Limits(cap=800), at_cap=whole).rule == "cap"
    assert throttled(own, Limits(cap=800)).decision == "PASS"
    assert throttled(own, Limits(running_cap=499), at_running_cap=whole).rule == "running_cap"
    assert throttled(own, Limits(running_cap=499)).decision == "PASS"


limits_of_documents = st.builds(Limits, st.none() | numbers, st.none() | numbers, st.none() | numbers)


@given(st.builds(Counts, *[numbers] * 5), limits_of_documents, numbers)
def test_with_more_waiting_no_unit_gets_more_jobs(counts: Counts, limits: Limits, more: int) -> None:
    before, after = throttled(counts, limits), throttled(counts + Counts(activated=more), limits)
    assert before.max_jobs is not None
    assert after.max_jobs is not None
    assert after.max_jobs <= before.max_jobs


@given(st.builds(Counts, *[numbers] * 5), limits_of_documents, numbers)
def test_with_more_running_a_unit_that_passes_still_does_without_a_cap_of_them(counts: Counts, limits: Limits, more: int) -> None:
    free = replace(limits, running_cap=None)
    if throttled(counts, free).decision == "PASS":
        assert throttled(counts + Counts(running=more), free).decision == "PASS"


@given(st.builds(Counts, *[numbers] * 5), limits_of_documents, numbers, numbers)
def test_a_higher_limit_never_holds_a_unit_back(counts: Counts, limits: Limits, lower: int, more: int) -> None:
    if throttled(counts, replace(limits, lower=lower)).decision == "PASS":
        assert throttled(counts, replace(limits, lower=lower + more)).decision == "PASS"
