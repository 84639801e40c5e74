"""The throttler: each rule decides alone, at its limit, and says why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.throttle import PRACTICE, Counts, Limits, throttled


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
        (Counts(running=1000, activated=1001), Limits(cap=1000), "SKIP", "cap", 0, False),
        (Counts(running=50), Limits(running_cap=50), "PASS", "pass", 250, True),
        (Counts(running=51), Limits(running_cap=50), "SKIP", "running_cap", 0, False),
        (Counts(running=1, activated=9000), Limits(unthrottled=True), "PASS", "unthrottled", None, False),
        (Counts(running=10, activated=30), Limits(ratio=3), "PASS", "pass", 250, True),
        (Counts(running=10, activated=31), Limits(ratio=3), "SKIP", "ratio", 0, False),
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
