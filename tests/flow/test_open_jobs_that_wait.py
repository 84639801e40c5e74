"""How long open jobs wait, by the state of all queues that may run them, and what becomes of those that none runs (row X4)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from broker_site.foundation.access.principal import Principal
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.rebrokering import Rebrokered, rebroker_job, rebroker_task
from brokerage.models import ComputingQueue, Job, JobChange, RequirementPlace
from brokerage.queries.invariants import look
from brokerage.queries.movable_jobs import ALL_SUSPENDED
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import reasons
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import Task

pytestmark = pytest.mark.django_db

MAKING = ("refine", "feed", "assign", "generate")
LONG = timedelta(days=30)
WAITS = Counter({"activated": 4})
CLOSED = Counter({"closed": 4})


def late(**more: Any) -> Task:
    """A task of four open jobs."""
    task = submitted(parameters("t", **{"binding": "late", **more}))
    run_agents(names=MAKING)
    assert Job.objects.filter(computing_queue=None).count() == 4
    return task


def after(waited: timedelta) -> Counter[str]:
    """The states of the jobs once they have waited for so long, and somebody looked."""
    Job.objects.update(status_since=Now() - waited)
    run_agent("reap", looked=True)
    assert [f"{found.invariant.name}: {found.examples}" for found in look() if found.violations] == []
    return Counter(Job.objects.values_list("status", flat=True))


def told(task: Task) -> str:
    """Where its jobs are, in words."""
    return " ".join(reason.message for reason in reasons(task_status(task)))


def queue(name: str, **columns: Any) -> None:
    ComputingQueue.objects.filter(name=name).update(**columns)


def test_open_jobs_have_the_time_limits_of_others() -> None:
    grid("ALPHA", "BETA")
    late()
    assert after(timedelta(days=2) - timedelta(minutes=1)) == WAITS
    assert after(timedelta(days=2) + timedelta(minutes=1)) == CLOSED
    assert set(JobChange.objects.filter(new="closed").values_list("why", flat=True)) == {"too long in activated: over 2d"}


RESTS: list[dict[str, Any]] = [{"status": "paused"}, {"catchall": "disableReassign"}]


@pytest.mark.parametrize("rest", RESTS)
def test_no_time_limit_holds_while_it_does_at_none_of_their_queues(rest: dict[str, Any]) -> None:
    grid("ALPHA", "BETA", "GAMMA")
    late(excludedSite=["GAMMA"])
    queue("ALPHA", status="paused")
    queue("BETA", **rest)
    assert after(LONG) == WAITS
    queue("ALPHA", status="online")
    assert after(LONG) == CLOSED, "one of the queues runs jobs, and had time enough"


@pytest.mark.parametrize("rest", RESTS)
def test_jobs_that_are_held_back_stay_too_while_all_their_queues_rest(rest: dict[str, Any]) -> None:
    grid("ALPHA", "BETA")
    task = late()
    command(task.id, "pause", "user:ada")
    run_agent("command", looked=True)
    ComputingQueue.objects.update(**rest)
    assert after(LONG) == {"throttled": 4}
    ComputingQueue.objects.update(status="online", catchall="")
    assert after(timedelta(days=6)) == {"throttled": 4}
    assert after(LONG) == CLOSED


def test_of_a_task_with_disable_reassign_open_jobs_stay() -> None:
    grid("ALPHA", "BETA")
    late(disableReassign=True)
    assert after(LONG) == WAITS


def test_urgent_jobs_leave_queues_where_no_job_begins_once_that_is_so_at_all_of_them() -> None:
    grid("ALPHA", "BETA")
    late()
    Job.objects.update(priority=800, ready_priority=-800)
    five = timedelta(hours=5)
    assert after(five) == WAITS, "where no job ever began a queue is not known to be inactive"
    queue("ALPHA", last_start=Now() - timedelta(hours=3))
    assert after(five) == WAITS
    queue("BETA", last_start=Now() - timedelta(hours=1))
    assert after(five) == WAITS
    queue("BETA", last_start=Now() - timedelta(hours=3))
    Job.objects.filter(id=Job.objects.latest("id").id).update(priority=799, ready_priority=-799)
    assert after(five) == {"closed": 3, "activated": 1}


def test_a_queue_that_is_paused_does_not_say_whether_jobs_begin() -> None:
    grid("ALPHA", "BETA")
    late()
    Job.objects.update(priority=800, ready_priority=-800)
    queue("ALPHA", status="paused")
    queue("BETA", last_start=Now() - timedelta(hours=3))
    assert after(timedelta(hours=5)) == CLOSED


def test_the_jobs_of_each_task_have_the_limits_of_their_own_queues() -> None:
    grid("ALPHA", "BETA", "GAMMA", "DELTA")
    resting = late(includedSite=["ALPHA", "BETA"])
    other = submitted(parameters("u", binding="late", includedSite=["GAMMA", "DELTA"]))
    run_agents(names=MAKING)
    ComputingQueue.objects.filter(name__in=["ALPHA", "BETA"]).update(status="paused")
    assert after(LONG) == WAITS + CLOSED
    assert set(Job.objects.filter(task_id=resting.id).values_list("status", flat=True)) == {"activated"}
    assert set(Job.objects.filter(task_id=other.id).values_list("status", flat=True)) == {"closed"}


def test_a_job_that_left_its_open_task_queue_has_the_limits_of_its_queue() -> None:
    alpha, _ = grid("ALPHA", "BETA")
    late()
    leased = take(alpha)
    queue("BETA", status="paused")
    Job.objects.filter(id=leased.job_id).update(status_since=Now() - LONG)
    run_agent("reap", looked=True)
    assert Job.objects.get(id=leased.job_id).status == "closed"
    assert Job.objects.filter(status="activated").count() == 3


@pytest.mark.parametrize("lost", ["gone", "silent", "offline"])
def test_open_jobs_wait_for_no_queue_that_does_not_come_back(lost: str) -> None:
    """One queue has gone for good, the other stops: none is left, and they are brokered anew."""
    grid("ALPHA", "BETA")
    task = late()
    RequirementPlace.objects.filter(computing_queue__name="ALPHA").delete()
    assert after(timedelta()) == WAITS
    if lost == "gone":
        RequirementPlace.objects.all().delete()
    elif lost == "silent":
        set_override("jobbroker", "REBROKER_SILENT", 60, who="ada", why="test")
        ComputingQueue.objects.get(name="BETA").pilots.update(last_seen=Now() - timedelta(minutes=5))
    else:
        queue("BETA", status="offline", status_since=Now() - timedelta(hours=2))
    assert after(timedelta(minutes=10)) == CLOSED
    (gamma,) = grid("GAMMA")
    run_agents(names=MAKING)
    assert run_jobs(gamma) + run_jobs(ComputingQueue.objects.get(name="ALPHA")) == 4
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


def test_open_jobs_of_a_task_that_names_its_queues_wait_for_these_and_it_is_told() -> None:
    grid("ALPHA", "BETA", "GAMMA")
    task = late(includedSite=["ALPHA", "BETA"])
    ComputingQueue.objects.exclude(name="GAMMA").update(status="offline", status_since=Now() - timedelta(hours=2))
    assert after(timedelta(hours=3)) == WAITS
    assert "4 jobs wait at any of 2 queues, which are all offline." in told(task)
    queue("BETA", status="paused")
    assert "which are all offline or paused." in told(task)
    queue("BETA", status="online")
    assert "for a free pilot that suits" in told(task)
    queue("BETA", status="offline")
    assert after(LONG) == CLOSED, "as any job that waited too long"


def test_open_jobs_wait_while_one_of_their_queues_rests_and_the_others_have_gone() -> None:
    grid("ALPHA", "BETA")
    late()
    queue("ALPHA", status="offline", status_since=Now() - timedelta(hours=2))
    queue("BETA", status="paused", status_since=Now() - timedelta(hours=2))
    assert after(timedelta(hours=3)) == WAITS, "what is paused goes on"
    assert after(LONG) == CLOSED, "but not for ever: the other one serves no job"


def test_operators_broker_open_jobs_anew_but_not_while_all_their_queues_rest() -> None:
    grid("ALPHA", "BETA")
    task = late()
    operator = Principal("user", "op", roles={"demo": frozenset({"operator"})})
    ComputingQueue.objects.update(status="paused")
    assert rebroker_task(operator, task) == Rebrokered(0, 4, ALL_SUSPENDED)
    assert rebroker_job(operator, Job.objects.earliest("id"), "demo") == Rebrokered(0, 1, ALL_SUSPENDED)
    queue("ALPHA", status="online")
    assert rebroker_job(operator, Job.objects.earliest("id"), "demo") == Rebrokered(1)
    assert rebroker_task(operator, task) == Rebrokered(3)
    assert Counter(Job.objects.values_list("status", "sub_status")) == {("closed", "toreassign"): 4}
