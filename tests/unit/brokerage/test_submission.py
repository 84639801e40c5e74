"""Submission of jobs to sites: thresholds hold, a higher priority may exceed them a little, and the state of a site counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.submission.open_sites import GRACE_S, OpenSites, open_sites
from brokerage.rules.submission.pulling_sites import fewer_priorities
from brokerage.rules.submission.site_thresholds import thresholds
from brokerage.rules.submission.under_thresholds import JobGroup, Load, SiteLoad, submit

FULL = {"A": SiteLoad(Load(100, 1000, 100, 0, 500), {"Processing": Load(100, 1000, 100, 0, 500), "Merge": Load(50, 50)})}


@pytest.mark.parametrize(
    ("kind", "priority", "submitted", "why"),
    [
        ("Processing", 501, 20, {}),
        ("Processing", 500, 0, {"A": "NoPendingSlot"}),
        ("Processing", 499, 0, {"A": "NoPendingSlot"}),
        ("Merge", 900, 0, {"A": "NoPendingSlot"}),
    ],
)
def test_only_a_higher_priority_exceeds_a_threshold(kind: str, priority: int, submitted: int, why: dict[str, str]) -> None:
    done = submit([JobGroup("g", kind, 0, priority, 20, ["A"])], FULL)
    assert sum(done.jobs.values()) == submitted
    assert done.why_not.get("g", {}) == why


@pytest.mark.parametrize(
    ("site", "kind", "why"),
    [
        (Load(10, 10, 10), Load(10, 10), "NoPendingSlot"),
        (Load(10, 10), Load(5, 10, 5), "NoTaskPendingSlot"),
        (Load(10, 10, 5, 15), Load(10, 10), "NoRunningSlot"),
        (Load(10, 10), Load(5, 5, 0, 10), "NoTaskRunningSlot"),
    ],
)
def test_the_condition_that_stops_a_job_is_told(site: Load, kind: Load, why: str) -> None:
    done = submit([JobGroup("g", "Processing", 0, 1, 3, ["A", "B"])], {"A": SiteLoad(site, {"Processing": kind})})
    assert (done.jobs, done.why_not) == ({}, {"g": {"A": why}})


def test_a_job_goes_to_the_first_of_its_sites_with_room() -> None:
    load = {name: SiteLoad(Load(n, 10), {"Processing": Load(n, 10)}) for name, n in (("A", 3), ("B", 0), ("C", 5))}
    done = submit([JobGroup("low", "Processing", 0, 1, 9, ["B", "A", "C"]), JobGroup("high", "Processing", 0, 2, 2, ["A"])], load)
    assert done.jobs == {("high", "A"): 2, ("low", "A"): 1, ("low", "C"): 5}


LOADS = st.builds(
    Load, st.integers(0, 40), st.integers(0, 80), st.integers(0, 60), st.integers(0, 60), st.none() | st.integers(0, 5)
)
GROUPS = st.lists(
    st.builds(JobGroup, st.uuids().map(str), st.sampled_from(["Processing", "Merge"]), st.sampled_from([0, 5]), st.integers(0, 9),
        st.integers(1, 100), st.permutations(["A", "B"])),
    max_size=6,
)  # fmt: skip


SITE_LOADS = st.builds(SiteLoad, LOADS, st.fixed_dictionaries({"Processing": LOADS, "Merge": LOADS}))


@given(st.fixed_dictionaries({"A": SITE_LOADS, "B": SITE_LOADS}), GROUPS, st.integers(0, 300))
def test_no_threshold_is_exceeded_beyond_what_higher_priorities_may(
    load: dict[str, SiteLoad], groups: list[JobGroup], most: int
) -> None:
    done = submit(groups, load, most)
    assert sum(done.jobs.values()) <= most
    for group in groups:
        assert sum(n for (name, _), n in done.jobs.items() if name == group.name) <= group.jobs
    for name, site in load.items():
        for before, after in [
            (site.site, done.load[name].site),
            *((site.kinds[k], done.load[name].kinds[k]) for k in site.kinds),
        ]:
            if after.pending > before.pending:
                assert after.pending <= max(before.pending_slots, before.pending) + 0.2 * before.pending_slots + 1
                total = max(before.pending_slots, before.pending) + 0.2 * before.pending_slots + before.running_slots
                assert after.pending + after.running <= total + 1


@pytest.mark.parametrize(
    ("kind", "states", "age", "told"),
    [
        ("Processing", {"A": "Draining", "B": "Normal", "C": "Down"}, {}, OpenSites("submit", ("B",))),
        ("LogCollect", {"A": "Draining", "B": "Normal", "C": "Down"}, {}, OpenSites("submit", ("A", "B"))),
        ("Processing", {"A": "Draining", "B": "Draining", "C": "Down"}, {"A": GRACE_S + 1, "B": 60}, OpenSites("wait")),
        ("Processing", {"A": "Draining"}, {}, OpenSites("wait")),
    ],
)
def test_a_job_goes_to_sites_that_are_open(kind: str, states: dict[str, str], age: dict[str, float], told: OpenSites) -> None:
    assert open_sites(kind, states, states, age) == told


@given(st.integers(0, 10**5), st.integers(0, 10**4), st.integers(0, 50))
def test_a_site_shared_by_more_brokers_lets_each_have_no_more(cpu: int, io: int, brokers: int) -> None:
    some, more = thresholds(cpu, io, brokers), thresholds(cpu, io, brokers + 1)
    assert all(a.pending >= b.pending and a.running == b.running for a, b in zip(some, more, strict=True))
    assert some.cpu_kind.pending <= some.site.pending


@pytest.mark.parametrize(("cpu", "brokers", "waiting"), [(1220, 9, 61), (2440, 18, 61), (4700, 9, 235)])
def test_parts_of_slots_are_reckoned_exactly(cpu: int, brokers: int, waiting: int) -> None:
    """45 % of these are whole numbers, which floating point misses by one."""
    assert thresholds(cpu, cpu, brokers).cpu_kind.pending == waiting


def test_priorities_of_jobs_that_wait_are_told_as_few_and_never_as_less_urgent() -> None:
    counts = {float(priority): 2.0 for priority in range(10)}
    assert fewer_priorities(counts, 10) == counts
    few = fewer_priorities(counts, 3)
    assert few == {9.0: 2.0, 8.0: 2.0, 7.0: 16.0}
    for priority in counts:
        assert sum(n for p, n in few.items() if p >= priority) >= sum(n for p, n in counts.items() if p >= priority)
