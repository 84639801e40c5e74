"""Jobs that several queues may run: which tasks have them, how they are cut, what they ask of a slot, and where they count."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_site.foundation.gdpconfig.values import Config
from brokerage.rules.dispatch.timeouts import QueueFacts, as_one, limit_s
from brokerage.rules.placement.binding import (
    EARLY,
    ONE_PLACE,
    VARYING_CORES,
    WRITTEN_FOR_QUEUE,
    Binding,
    any_of,
    binding_of,
    spread,
    told,
)
from brokerage.rules.placement.distribution import Block, ChosenQueue
from brokerage.rules.placement.new_job import Place, PlacedJob
from brokerage.rules.placement.open_jobs import (
    OPEN,
    OpenSlots,
    jobs_by_queue,
    one_then_others,
    only_early,
    open_jobs,
    smallest,
    to_be_opened,
    together,
)
from brokerage.rules.placement.slots import Slot, SlotsAt
from tests.unit.brokerage.grids import ask, piloted
from workqueues.rules.jobs.job_size import Budget
from workqueues.splitters.protocol import JobLimits, JobPlan

SHIPPED = dict(Config().component("dispatch"))
LATE, LATER = {"binding": "late"}, {"binding": "late_after"}
ONE_EVENT = JobPlan(0, 1, n_events=1, size=10**6)


@pytest.mark.parametrize(
    ("parameters", "keys", "activity", "expected"),
    [
        ({}, {}, "production", EARLY),
        (LATE, {}, "production", Binding("late")),
        (LATER, {}, "production", Binding("late_after", 1800)),
        (LATER, {"BINDING_AFTER": 60}, "production", Binding("late_after", 60)),
        ({**LATER, "bindingAfter": 7}, {"BINDING_AFTER": 60}, "production", Binding("late_after", 7)),
        ({**LATE, "bindingAfter": 7}, {}, "production", Binding("late")),
        ({}, {"BINDING": "late"}, "generic", Binding("late")),
        ({}, {"BINDING": "late", "BINDING_analysis": "early"}, "analysis", EARLY),
        ({}, {"BINDING": "early", "BINDING_analysis": "late"}, "analysis", Binding("late")),
        ({}, {"BINDING_analysis": "late"}, "production", EARLY),
        ({"binding": "early"}, {"BINDING": "late", "BINDING_production": "late"}, "production", EARLY),
        ({}, {"BINDING_production": "late_after", "BINDING_AFTER": 5}, "production", Binding("late_after", 5)),
    ],
)
def test_the_task_says_else_the_key_of_its_activity_else_that_of_its_vo(
    parameters: dict[str, Any], keys: dict[str, Any], activity: str, expected: Binding
) -> None:
    assert binding_of(parameters, activity, 1, {**SHIPPED, **keys}) == expected


@pytest.mark.parametrize(
    ("more", "cores", "writes", "why"),
    [
        ({}, 1, False, ""),
        ({}, None, False, ""),
        ({}, 8, False, ""),
        ({}, 0, False, VARYING_CORES),
        ({"site": "ALPHA"}, 1, False, ONE_PLACE),
        ({"site": " ALPHA, "}, 1, False, ONE_PLACE),
        ({"site": "ALPHA,BETA"}, 1, False, ""),
        ({"site": ""}, 1, False, ""),
        ({"site": None}, 1, False, ""),
        ({}, 1, True, WRITTEN_FOR_QUEUE),
        ({"site": "ALPHA"}, 0, True, VARYING_CORES),
    ],
)
@pytest.mark.parametrize("mode", ["late", "late_after"])
def test_what_keeps_a_task_from_it_is_told(mode: str, more: dict[str, Any], cores: int | None, writes: bool, why: str) -> None:
    binding = binding_of({"binding": mode, **more}, "production", cores, SHIPPED, writes_parameters=writes)
    assert (binding.why_early, binding.is_late, binding.mode) == (why, not why, mode)
    assert ("get their queue when they are made, as" in told(binding, "30 min")) == bool(why)
    early = binding_of({"binding": "early", **more}, "production", cores, SHIPPED, writes_parameters=writes)
    assert (early, early.is_late) == (EARLY, False), "who wishes for nothing else is not told of hindrances"


@pytest.mark.parametrize(
    ("binding", "queues", "why"),
    [
        (EARLY, 0, ""),
        (EARLY, 1, ""),
        (Binding("late"), 2, ""),
        (Binding("late"), 1, "one queue only may run them and has their input"),
        (Binding("late"), 0, "no queue has all of their input"),
        (Binding("late_after", 5), 1, "one queue only may run them and has their input"),
        (Binding("late", 0, ONE_PLACE), 1, ONE_PLACE),
        (Binding("late", 0, ONE_PLACE), 9, ONE_PLACE),
    ],
)
def test_jobs_of_fewer_than_two_queues_are_not_open(binding: Binding, queues: int, why: str) -> None:
    assert only_early(binding, queues) == why


@given(n=st.integers(0, 500), k=st.integers(1, 40), turn=st.integers(0, 10**9))
def test_open_jobs_count_whole_and_evenly(n: int, k: int, turn: int) -> None:
    parts = spread(n, k, turn)
    assert (sum(parts), len(parts), max(parts) - min(parts) <= 1) == (n, k, True)
    assert [sum(turns) for turns in zip(*(spread(n, k, turn + i) for i in range(k)), strict=True)] == [n] * k, "odd ones in turns"


def test_many_queues_are_not_all_named() -> None:
    assert any_of(["A", "B"]) == "any of 2 queues: A, B"
    assert any_of(list("ABCDEFG")) == "any of 7 queues: A, B, C, D, E and 2 more"


budgets = st.builds(
    Budget, st.sampled_from([0.0, 1e-6, 2e-6]), st.sampled_from([0.0, 10.0]), st.floats(0, 1e6), st.booleans(), st.booleans()
)
limits = st.builds(JobLimits, st.integers(1, 200), st.integers(1, 1000), st.lists(budgets, max_size=4).map(tuple))


@given(st.lists(limits, min_size=1, max_size=6))
def test_a_job_is_cut_by_the_smallest_of_all_limits(each: list[JobLimits]) -> None:
    least = smallest(each)
    assert (least.max_files, least.max_inputs) == (min(x.max_files for x in each), min(x.max_inputs for x in each))
    of_all = [budget for x in each for budget in x.budgets]
    for budget in of_all:
        same = [
            b
            for b in least.budgets
            if (b.per_byte, b.per_event, b.below, b.hard) == (budget.per_byte, budget.per_event, budget.below, budget.hard)
        ]
        assert len(same) == 1 and same[0].most <= budget.most, "each holds, and is named once"
    assert all(budget in of_all for budget in least.budgets), "nothing else does"


limit = st.sampled_from([0.0, 500.0, 2000.0, 2100.0, 3600.0, 8000.0, 86_400.0, 1e6])
rows = st.lists(
    st.fixed_dictionaries(
        {"maxrss": limit, "maxwdir": limit, "maxtime": limit, "corepower": st.sampled_from([0.0, 1.0, 10.0, 12.5, 40.0])}
    ),
    min_size=1,
    max_size=6,
)
tasks = st.fixed_dictionaries(
    {
        "core_count": st.sampled_from([1, 8]),
        "ram_count": st.sampled_from([0, 100, 1000, 4000]),
        "ram_unit": st.sampled_from(["MB", "MBPerCore"]),
        "cpu_time": st.sampled_from([None, 1.0, 100.0, 5000.0]),
        "cpu_time_unit": st.just("HS06sPerEvent"),
        "work_disk_count": st.sampled_from([0, 1000]),
        "work_disk_unit": st.just("MB"),
        "base_walltime": st.sampled_from([0, 600]),
    }
)
plans = st.builds(JobPlan, st.just(0), st.just(1), st.integers(0, 10_000), st.sampled_from([0, 10**6, 10**9, 10**13]))


def open_slots(values: dict[str, Any], some: list[dict[str, Any]]) -> tuple[OpenSlots, list[SlotsAt]]:
    table = piloted(
        {"name": f"Q{i}", "storage": f"Q{i}_DISK", "corecount": values["core_count"], **row} for i, row in enumerate(some)
    )
    task = ask(**values)
    chosen = [ChosenQueue(f"Q{i}", 1.0, room=5) for i in range(len(some))]
    ids = {f"Q{i}": 100 + i for i in range(len(some))}
    return OpenSlots(task, table, chosen, ids, 0.9), [SlotsAt(task, table, row, 0.9) for row in range(len(some))]


@given(values=tasks, some=rows, plan=plans)
def test_a_job_fits_and_is_enough_at_every_queue_to_which_it_is_open(
    values: dict[str, Any], some: list[dict[str, Any]], plan: JobPlan
) -> None:
    slots, at = open_slots(values, some)
    slot, places = slots.of(plan)
    numbers = [place.queue_id - 100 for place in places]
    assert all(a < b for a, b in pairwise(numbers)), "in the order of the queues, each once"
    for place, i in zip(places, numbers, strict=True):
        need, row = at[i].need(plan.size, plan.n_events), some[i]
        assert (place.queue, place.storage, slot.core_count) == (f"Q{i}", f"Q{i}_DISK", values["core_count"])
        for asked, needed, most in (
            (slot.ram_mb, need.ram_mb, row["maxrss"]),
            (slot.disk_mb, need.disk_mb, row["maxwdir"]),
            (slot.walltime_s, need.walltime_s, row["maxtime"]),
        ):
            assert not most or asked <= most, "no queue is asked for more than its slots give"
            assert asked >= int(needed), "and the job has what it needs there"


@given(values=tasks, some=rows, plan=plans)
def test_no_queue_that_suits_as_well_as_the_others_is_left_out(
    values: dict[str, Any], some: list[dict[str, Any]], plan: JobPlan
) -> None:
    """By trying every walltime that a queue needs: none suits more queues."""
    slots, at = open_slots(values, some)
    _, places = slots.of(plan)
    needs = [each.need(plan.size, plan.n_events) for each in at]
    ram, disk = max(need.ram_mb for need in needs), max(need.disk_mb for need in needs)

    def suited(walltime: float) -> int:
        return sum(
            need.walltime_s <= walltime
            and all(
                not row[name] or needed <= row[name]
                for name, needed in (("maxrss", ram), ("maxwdir", disk), ("maxtime", walltime))
            )
            for need, row in zip(needs, some, strict=True)
        )

    assert len(places) == max(suited(need.walltime_s) for need in needs)


def test_a_slow_queue_with_short_slots_keeps_out_no_other() -> None:
    task: dict[str, Any] = {
        "core_count": 1,
        "ram_count": 100,
        "ram_unit": "MB",
        "cpu_time": 36_000.0,
        "cpu_time_unit": "HS06sPerEvent",
    }
    row = {"maxrss": 8000.0, "maxwdir": 0.0, "maxtime": 86_400.0, "corepower": 10.0}
    slots, _ = open_slots(task, [row, {**row, "corepower": 0.1}, {**row, "maxtime": 90_000.0}])
    slot, places = slots.of(ONE_EVENT)
    assert [place.queue for place in places] == ["Q0", "Q2"]
    assert 3600 <= slot.walltime_s <= 86_400


PLACES = (Place(1, "A", "A_DISK"), Place(2, "B", "B_DISK"), Place(3, "C", "C_DISK"))
SLOT = Slot(1, 100, 0, 0)


def test_the_jobs_of_all_queues_together_have_the_room_of_all() -> None:
    queues = [ChosenQueue("A", 1.0, room=3), ChosenQueue("B", 2.0, room=0), ChosenQueue("C", 1.0, room=-4)]
    assert (together(queues).name, together(queues).room) == (OPEN, 3)
    assert together([*queues, ChosenQueue("D", 1.0)]).room == inf


def test_chosen_queues_without_the_input_come_last_and_first_jobs_are_not_for_them() -> None:
    there = [ChosenQueue("A", 1.0, room=3), ChosenQueue("B", 2.0, room=1)]
    beside = ChosenQueue("C", 5.0, queued=2, room=4, untouched=True)
    assert one_then_others(there, [there[0], beside, there[1]]) == [
        ChosenQueue(OPEN, 1.0, room=4),
        ChosenQueue("C", 5.0, queued=2, room=4, last=True),
    ]
    assert one_then_others(there, there) == [ChosenQueue(OPEN, 1.0, room=4)]


def test_what_fewer_than_two_queues_can_run_comes_back_as_it_is() -> None:
    task: dict[str, Any] = {"core_count": 1, "ram_count": 100, "ram_unit": "MB", "work_disk_count": 0, "work_disk_unit": "MB"}
    slots, _ = open_slots(task, [{"maxwdir": 1000.0}, {"maxwdir": 1000.0}, {"maxwdir": 90_000.0}])
    small, large = JobPlan(0, 1, size=10**6), JobPlan(1, 2, size=10**10)
    first, second = open_jobs(Block(OPEN, (small, large)), slots)
    assert isinstance(first, PlacedJob) and (first.is_open, len(first.places), first.queue) == (True, 3, "Q0")
    assert second is large


def test_a_job_is_opened_later_only_to_others_and_where_it_is_itself() -> None:
    task: dict[str, Any] = {"core_count": 1, "ram_count": 100, "ram_unit": "MB", "work_disk_count": 0, "work_disk_unit": "MB"}
    slots, _ = open_slots(task, [{"maxwdir": 1000.0}, {"maxwdir": 1000.0}, {"maxwdir": 90_000.0}])
    at_first = PlacedJob(100, "Q0", "Q0_DISK", JobPlan(0, 1, size=10**6), SLOT)
    opened = to_be_opened(at_first, slots)
    assert ([place.queue for place in opened.places], opened.is_open, opened.queue) == (["Q0", "Q1", "Q2"], False, "Q0")
    elsewhere = at_first._replace(queue="Q9")
    assert to_be_opened(elsewhere, slots) == elsewhere, "its own queue cannot read the input yet"
    large = at_first._replace(plan=JobPlan(0, 1, size=10**10))
    assert to_be_opened(large, slots) == large, "no other queue can run it"


@given(n_open=st.integers(0, 50), n_bound=st.integers(0, 20), turn=st.integers(0, 100))
def test_each_job_counts_once_over_all_queues(n_open: int, n_bound: int, turn: int) -> None:
    bound = PlacedJob(1, "A", "A_DISK", ONE_EVENT, SLOT)
    opened = PlacedJob(1, "A", "A_DISK", ONE_EVENT, SLOT, PLACES, is_open=True)
    later = bound._replace(places=PLACES)
    counts = jobs_by_queue([*[bound] * n_bound, *[opened] * n_open, later], turn)
    assert counts.total() == n_open + n_bound + 1
    assert counts["A"] - n_bound - 1 <= n_open // 3 + 1


ONLINE, PAUSED, KEEPS = QueueFacts(), QueueFacts(status="paused"), QueueFacts(catchall="disableReassign")
IDLE, BUSY = QueueFacts(idle_s=3 * 3600.0), QueueFacts(idle_s=60.0)
TIMEOUTS = dict(Config().component("job_timeout", app="pandaserver"))


@pytest.mark.parametrize(
    ("queues", "hours"),
    [
        ([], 48),
        ([ONLINE], 48),
        ([PAUSED], None),
        ([PAUSED, KEEPS], None),
        ([PAUSED, ONLINE], 48),
        ([KEEPS, ONLINE, PAUSED], 48),
        ([IDLE], 4),
        ([IDLE, IDLE], 4),
        ([IDLE, BUSY], 48),
        ([IDLE, ONLINE], 48),
        ([IDLE, PAUSED], 4),
        ([IDLE, KEEPS, BUSY], 48),
    ],
)
def test_an_urgent_open_job_waits_as_long_as_at_any_queue_that_serves_it(queues: list[QueueFacts], hours: int | None) -> None:
    limit = limit_s("activated", 800, as_one(queues), TIMEOUTS)
    assert limit == (None if hours is None else hours * 3600)
