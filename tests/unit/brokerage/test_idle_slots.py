"""Which idle slots stand beside work: each job beside one slot, eligible work before held work."""

from __future__ import annotations

import brokerage.policies  # noqa: F401 - declares the policies
from brokerage.rules.decision.declare import POLICIES
from brokerage.rules.dispatch.idle_slots import Work, served_by, unserved, work_beside
from brokerage.rules.dispatch.requirement import Requirement, Resource
from brokerage.rules.placement.passed_queues import CAPS, SHARES

SLOT = Resource("ALPHA", cores=1, memory_mb=2000)


def work(n: int, why: str = "", *, held: bool = False, queues: tuple[str, ...] = ("ALPHA",), memory_mb: int = 1000) -> Work:
    return Work(tuple(Requirement(queue, 1, memory_mb) for queue in queues), n, why, held)


def test_without_work_nothing_stands_beside_any() -> None:
    assert work_beside([SLOT, SLOT], []) == [None, None]
    assert work_beside([], [work(1)]) == []


def test_each_job_stands_beside_one_slot_only_wherever_it_may_run() -> None:
    either = work(2, queues=("ALPHA", "BETA"))
    slots = [SLOT, SLOT._replace(queue="BETA"), SLOT, SLOT._replace(queue="GAMMA")]
    assert work_beside(slots, [either]) == [either, either, None, None]


def test_eligible_work_goes_before_held_work() -> None:
    held, eligible = work(5, "cap", held=True), work(1)
    assert work_beside([SLOT, SLOT, SLOT], [held, eligible]) == [eligible, held, held]


def test_work_that_does_not_fit_leaves_the_slot_to_what_does() -> None:
    large, small = work(5, memory_mb=4000), work(1)
    assert work_beside([SLOT, SLOT._replace(memory_mb=0)], [large, small]) == [small, large], "0 sets no condition"


def test_the_criteria_that_count_as_limits_are_those_of_policies() -> None:
    labels = {criterion.label for policy in POLICIES.values() for criterion in policy.criteria}
    assert labels >= CAPS | SHARES


def test_slots_that_no_waiting_job_fits_are_told_with_the_jobs_that_fit_one_that_idles() -> None:
    small = SLOT._replace(memory_mb=500)
    jobs = [work(1)._replace(share="A"), work(5, memory_mb=4000)._replace(share="A"), work(0)._replace(share="B")]
    (idle,) = unserved([SLOT, small, SLOT], jobs).values()
    assert (list(idle.slots), idle.waiting) == ([small, SLOT], {"A": 1, "B": 0})
    assert unserved([SLOT], jobs) == {}, "a job fits, and the slot takes it at its next ask"


def test_open_jobs_serve_a_slot_and_are_not_counted_among_those_bound_to_its_queue() -> None:
    (idle,) = unserved([SLOT, SLOT], [work(1)]).values()
    assert (list(idle.slots), idle.waiting) == ([SLOT], {})


def test_a_job_finds_a_slot_only_where_one_idles_that_it_fits() -> None:
    idle = unserved([SLOT, SLOT._replace(queue="BETA", memory_mb=500)], [])
    needs = [Requirement(queue, 1, 1000) for queue in ("ALPHA", "BETA", "GAMMA")]
    assert served_by(needs, idle) == {"ALPHA"}
