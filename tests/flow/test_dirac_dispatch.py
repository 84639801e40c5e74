"""Under the policy `dirac`: the highest class of CPU time, task queues by chance and shares of groups, one of the oldest jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel import clock
from brokerage.agents.group_shares import GroupShares
from brokerage.ledger.handing_out import hand_out
from brokerage.ledger.lease import Ask, HeldAtMost
from brokerage.models import ComputingQueue, GroupUse, Job, TaskQueue
from brokerage.queries.dispatch_policies import policy_of
from brokerage.queries.job_document import Untold
from brokerage.queries.waiting import WAITING, AskedQueue
from brokerage.rules.dispatch.requirement import Resource
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import ROUND, run_agents, take, try_take
from workqueues.models import Task

pytestmark = pytest.mark.django_db

JOBS = {"nEvents": 8, "nEventsPerJob": 1}


@pytest.fixture(autouse=True)
def dirac() -> None:
    """The policy of the VO."""
    setting("DISPATCH_POLICY", "dirac")


def setting(name: str, value: Any) -> None:
    set_override("dispatch", name, value, vo="demo", who="test", why="it is tried")


def group_of(job_id: int) -> str:
    return Task.objects.get(id=Job.objects.get(id=job_id).task_id).working_group


def priorities() -> dict[str, float | None]:
    return dict(TaskQueue.objects.values_list("owner_group", "priority"))


def all_priorities() -> set[int]:
    return {round(priority or 0) for priority in TaskQueue.objects.values_list("priority", flat=True)}


def test_task_queues_have_the_shares_of_their_groups_and_are_served_by_them() -> None:
    setting("GROUPS", {"big": {"share": 3000}, "small": {"share": 1000}})
    (alpha,) = grid("ALPHA")
    for group in ("big", "small"):
        submitted(parameters(group, workingGroup=group, taskPriority=1, **JOBS))
    run_agents(names=ROUND)
    assert priorities() == {"big": 3000, "small": 1000}
    taken = Counter(group_of(take(alpha).job_id) for _ in range(16))
    assert taken == {"big": 8, "small": 8}
    assert try_take(alpha) is None


def test_a_new_task_queue_is_weighed_at_once_and_a_background_one_comes_last() -> None:
    setting("GROUPS", {"g": {"share": 100, "properties": ["JOB_SHARING"], "background": True}})
    grid("ALPHA")
    submitted(parameters("normal", workingGroup="g", taskPriority=1, **JOBS))
    run_agents(names=ROUND)
    submitted(parameters("background", userName="bob", workingGroup="g", taskPriority=0, **JOBS))
    run_agents(names=ROUND)
    assert dict(TaskQueue.objects.values_list("owner", "priority")) == {"bob": 0.001, "ada": 100}


def test_only_task_queues_that_differ_in_nothing_but_places_have_their_priorities_together() -> None:
    """Those of another share or label are others: of its group each has its part."""
    setting("GROUPS", {"g": {"share": 900}})
    grid("ALPHA", "BETA")
    for site in ("ALPHA", "BETA"):
        submitted(parameters(site, workingGroup="g", taskPriority=1, site=site, nEvents=1, nEventsPerJob=1))
        run_agents(names=ROUND)
    Job.objects.update(ready_priority=-1)
    GroupShares().run(clock.now())
    assert all_priorities() == {900}, "they differ in their queues"
    for column, value in (("gshare", "Express"), ("prod_source_label", "managed"), ("resource_type", "MCORE")):
        mine = TaskQueue.objects.filter(computing_queue__name="ALPHA")
        kept = mine.values_list(column, flat=True).get()
        mine.update(**{column: value})
        GroupShares().run(clock.now())
        assert all_priorities() == {450}, column
        mine.update(**{column: kept})


def test_a_group_that_used_more_than_its_share_gets_less() -> None:
    setting("GROUPS", {"a": {"share": 1000}, "b": {"share": 1000}})
    setting("SHARES_CORRECTION", [{"seconds": 86400, "weight": 1, "max": 3}])
    (alpha,) = grid("ALPHA")
    submitted(parameters("a", workingGroup="a", taskPriority=1, nEvents=2, nEventsPerJob=1))
    run_agents(names=ROUND)
    assert group_of(take(alpha).job_id) == "a"
    run_agent("share", looked=True)
    assert GroupUse.objects.get(owner_group="a").owner
    GroupUse.objects.update(hs06_s=1000)
    submitted(parameters("b", workingGroup="b", taskPriority=1, **JOBS))
    run_agents(names=ROUND)
    seen = priorities()
    assert seen["a"] is not None
    assert seen["b"] is not None
    assert (round(seen["a"]), round(seen["b"])) == (500, 3000)


def test_what_was_used_is_read_once_for_a_slice_whatever_the_number_of_groups(django_assert_max_num_queries: Any) -> None:
    setting("SHARES_CORRECTION", [{"seconds": 86400, "weight": 1, "max": 3}, {"seconds": 3600, "weight": 1, "max": 3}])
    grid("ALPHA")
    for group in "abcd":
        submitted(parameters(group, workingGroup=group, taskPriority=1, **JOBS))
    run_agents(names=ROUND)
    with django_assert_max_num_queries(1000) as seen:
        GroupShares().run(clock.now())
    assert len([each for each in seen if "sum(hs06_s) FROM brokerage_groupuse" in each["sql"]]) == 2
    assert len(priorities()) == 4


def test_one_of_the_ten_oldest_jobs_of_a_priority_is_taken() -> None:
    (alpha,) = grid("ALPHA")
    submitted(parameters("t", taskPriority=1, nEvents=20, nEventsPerJob=1))
    run_agents(names=ROUND)
    Job.objects.update(ready_priority=-1)
    ids = sorted(Job.objects.values_list("id", flat=True))
    task_queue, places = TaskQueue.objects.get().id, list[int]()
    for n in range(20):
        ask = Ask(task_queue, pilot(alpha, f"slot{n}"), uuid4(), 60, HeldAtMost(), first=(-1, 0), window=10)
        (got,) = hand_out([ask])
        assert not isinstance(got, Untold)
        (job,) = got
        places.append(ids.index(job.document["id"]))
    assert sorted(places) == list(range(20))
    assert all(place < 10 + n for n, place in enumerate(places))
    assert places != sorted(places)


def test_the_longest_class_of_cpu_time_that_a_pilot_can_run_comes_first() -> None:
    (alpha,) = grid("ALPHA")
    for name, seconds in (("short", 100), ("long", 30_000)):
        submitted(parameters(name, taskPriority=1, cpuTime=seconds * 10, cpuTimeUnit="HS06sPerEvent", baseWalltime=0, **JOBS))
    run_agents(names=ROUND)
    assert set(TaskQueue.objects.values_list("cpu_time_s", flat=True)) == {500, 50_000}
    names = {Task.objects.get(id=Job.objects.get(id=take(alpha).job_id).task_id).task_name for _ in range(6)}
    assert names == {"long"}


def test_a_job_that_fits_the_slot_by_its_time_gets_it_though_its_class_is_longer() -> None:
    """23.5 hours, with the efficiency of CPUs, in slots of a day: the class is 300,000 s."""
    (alpha,) = grid("ALPHA")
    submitted(parameters("t", cpuTime=76_000 * 10, cpuTimeUnit="HS06sPerEvent", baseWalltime=0, **JOBS))
    run_agents(names=ROUND)
    assert TaskQueue.objects.get().cpu_time_s == 300_000
    assert list(offered(alpha, cpu_time_s=86_400, walltime_s=86_400)) == [TaskQueue.objects.get().id]
    assert list(offered(alpha, cpu_time_s=80_000, walltime_s=80_000)) == []
    assert list(offered(alpha, cpu_time_s=300_000, walltime_s=80_000)) == []


def test_of_one_class_the_longer_job_is_not_before_the_shorter() -> None:
    (alpha,) = grid("ALPHA")
    for name, seconds in (("a", 6000), ("b", 40_000)):
        submitted(parameters(name, taskPriority=1, cpuTime=seconds * 10, cpuTimeUnit="HS06sPerEvent", baseWalltime=0, **JOBS))
    run_agents(names=ROUND)
    TaskQueue.objects.update(priority=1)
    firsts = {next(offered(alpha, cpu_time_s=10**6)) for _ in range(60)}
    assert firsts == set(TaskQueue.objects.values_list("id", flat=True))


def test_at_a_queue_with_this_policy_in_a_vo_with_another_one_groups_have_their_shares_too() -> None:
    setting("DISPATCH_POLICY", "panda")
    set_override("dispatch", "DISPATCH_POLICY_ALPHA", "dirac", who="test", why="it is tried")
    setting("GROUPS", {"big": {"share": 3000}, "small": {"share": 1000}})
    (alpha,) = grid("ALPHA")
    for group in ("big", "small"):
        submitted(parameters(group, workingGroup=group, taskPriority=1, **JOBS))
    run_agents(names=ROUND)
    assert priorities() == {"big": 3000, "small": 1000}
    assert Counter(group_of(take(alpha).job_id) for _ in range(16)) == {"big": 8, "small": 8}


def offered(queue: ComputingQueue, **offer: Any) -> Iterator[int]:
    """The task queues that a pilot with this offer is served from, in turn."""
    WAITING.forget()
    asked = AskedQueue(queue.id, partial(policy_of, queue.name), gdpconfig.component("dispatch"))
    yield from (one.id for one, _ in WAITING.offers(asked, Resource(queue.name, **offer)))
