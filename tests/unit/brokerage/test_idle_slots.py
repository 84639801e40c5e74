"""Which idle slots stand beside work: each job beside one slot, eligible work before held work."""

from __future__ import annotations

import brokerage.policies  # noqa: F401 - declares the policies
from brokerage.rules.decision.declare import POLICIES
from brokerage.rules.dispatch.idle_slots import Work, misfits, served_by, work_beside
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


def test_jobs_bound_to_a_queue_are_misfits_where_none_of_its_idle_slots_fits_them() -> None:
    small = SLOT._replace(memory_mb=500)
    fits_one, large, elsewhere, open_one = (
        work(1)._replace(task_queue_id=1),
        work(5, memory_mb=4000)._replace(task_queue_id=2),
        work(5, memory_mb=4000, queues=("BETA",))._replace(task_queue_id=3),
        work(5, memory_mb=4000, queues=("ALPHA", "BETA")),
    )
    jobs = [fits_one, large, elsewhere, open_one]
    assert misfits([SLOT, small], jobs, {"ALPHA"}) == {"ALPHA": [2]}
    assert misfits([small], jobs, {"ALPHA"}) == {"ALPHA": [1, 2]}


def test_a_job_finds_a_slot_only_where_one_idles_that_it_fits() -> None:
    slots = [SLOT, SLOT._replace(queue="BETA", memory_mb=500)]
    needs = [Requirement(queue, 1, 1000) for queue in ("ALPHA", "BETA", "GAMMA")]
    assert served_by(needs, slots) == {"ALPHA"}
