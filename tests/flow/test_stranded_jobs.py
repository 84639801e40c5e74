"""Jobs that wait at a queue which starts none: they do not hold their share, and in time they run elsewhere."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db.models import F

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import run_agent
from brokerage.ledger.pilots import note_vain_ask
from brokerage.models import ComputingQueue, IdleSlot, Job, JobChange, JobResult, Pilot
from brokerage.rules.dispatch.requirement import Resource
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import run_agents, take
from workqueues.models import File, GlobalShare, Task, ThrottleVerdict

pytestmark = pytest.mark.django_db

MIN_16, HOURS_4 = timedelta(minutes=16), timedelta(hours=4)


@pytest.fixture
def gamma() -> ComputingQueue:
    """A queue of a VO whose work has a share; ALPHA is not there yet."""
    gdpconfig.set_override("core", "POLICY_analysis", "generic", who="ada", why="test")
    (gamma,) = grid("GAMMA")
    GlobalShare.objects.create(name="MC", vo="demo", value=1, processing_type="evgen")
    return gamma


def work(name: str = "t", **more: Any) -> Task:
    """A task of eight jobs that wait at the queues there are."""
    task = submitted(parameters(name, nEvents=8, nEventsPerJob=1, **more))
    run_agents(names=("refine", "feed", "assign", "generate"))
    return task


def switch(queue: ComputingQueue, status: str, since: timedelta = MIN_16) -> None:
    ComputingQueue.objects.filter(id=queue.id).update(status=status, status_since=TransactionNow() - since)


def silence(queue: ComputingQueue, since: timedelta = HOURS_4) -> None:
    """Pilots were last seen so long ago."""
    Pilot.objects.filter(queue=queue).update(last_seen=TransactionNow() - since)


def waiting() -> Counter[str]:
    return Counter(Job.objects.filter(ended_at=None).values_list("computing_queue__name", flat=True))


def verdict() -> ThrottleVerdict:
    return ThrottleVerdict.objects.latest("id")


def test_jobs_at_an_offline_queue_do_not_hold_their_share(gamma: ComputingQueue) -> None:
    """Defect E7: new tasks made no job at idle pilots until the jobs at an offline queue timed out after two days."""
    work("first")
    switch(gamma, "offline", timedelta(0))
    (alpha,) = grid("ALPHA")
    work("second")
    assert waiting() == {"GAMMA": 8, "ALPHA": 8}
    for _ in range(2):
        take(alpha)
    work("third")
    assert waiting() == {"GAMMA": 8, "ALPHA": 8}
    assert verdict().reason == "6 jobs wait (8 more stand where they cannot start), more than 2 x 2 that run"
    assert (verdict().stranded, verdict().activated) == (8, 14)


def test_a_cap_counts_them_still(gamma: ComputingQueue) -> None:
    work("first")
    gdpconfig.set_override("anal_job_throttler", "NQUEUECAP_MC", 7, who="ada", why="test")
    switch(gamma, "offline", timedelta(0))
    grid("ALPHA")
    work("second")
    assert waiting() == {"GAMMA": 8}
    assert verdict().reason == "8 jobs wait, the cap is 7"


def test_jobs_where_no_pilot_comes_do_not_hold_their_share(gamma: ComputingQueue) -> None:
    work("first")
    silence(gamma, timedelta(hours=2))
    grid("ALPHA")
    work("second")
    assert waiting() == {"GAMMA": 8}
    gdpconfig.set_override("anal_job_throttler", "DEAD_QUEUE", "1h", who="ada", why="test")
    run_agent("generate", looked=True)
    assert waiting()["ALPHA"] > 0
    assert verdict().stranded == 8


def test_jobs_without_pilots_do_not_hold_their_share_from_slots_that_idle(gamma: ComputingQueue) -> None:
    """Seen: all pilots of two queues left, and for three hours a share made no jobs for the idle slots of others."""
    work("first")
    silence(gamma, timedelta(minutes=6))
    Pilot.objects.filter(queue=gamma).update(registered_at=TransactionNow() - HOURS_4)
    (alpha,) = grid("ALPHA")
    work("second")
    assert waiting() == {"GAMMA": 8}, "no slot idles: pilots may come where jobs wait"
    pilot_id = pilot(alpha, "idle")
    note_vain_ask(pilot_id, alpha.id, Resource("ALPHA", 1, 4000, 10000), 600.0)
    run_agent("generate", looked=True)
    assert waiting() == {"GAMMA": 8}, "it just began to idle"
    IdleSlot.objects.filter(pilot=pilot_id).update(since=TransactionNow() - timedelta(seconds=11), vo="other")
    run_agent("generate", looked=True)
    assert waiting() == {"GAMMA": 8}, "it takes jobs of another VO only"
    IdleSlot.objects.filter(pilot=pilot_id).update(vo="")
    run_agent("generate", looked=True)
    assert waiting() == {"GAMMA": 8, "ALPHA": 1}, "a job for the slot; the others stay, and start if pilots come back"


def test_waiting_jobs_leave_a_queue_that_is_offline_for_long(gamma: ComputingQueue) -> None:
    task = work()
    take(gamma)
    grid("ALPHA")
    switch(gamma, "offline")
    assert run_agent("reap", looked=True) == 7
    assert waiting() == {"GAMMA": 1}
    assert set(JobResult.objects.values_list("error_code", "error_message")) == {
        ("TOREASSIGN", "GAMMA has been offline for 16 min")
    }
    assert File.objects.filter(task_id=task.id, type="pseudo_input", status="ready", failed_attempt=0).count() == 7
    run_agents(names=("generate",))
    assert waiting() == {"GAMMA": 1, "ALPHA": 7}
    assert run_agent("reap", looked=True) == 0


def test_waiting_jobs_leave_a_queue_without_pilots(gamma: ComputingQueue) -> None:
    work()
    silence(gamma, timedelta(hours=2))
    grid("ALPHA")
    assert run_agent("reap", looked=True) == 0
    silence(gamma)
    assert run_agent("reap", looked=True) == 8
    assert set(JobChange.objects.filter(new="closed").values_list("why", flat=True)) == {"no pilot of GAMMA was seen for 4.0 h"}
    run_agents(names=("generate",))
    assert waiting() == {"ALPHA": 8}


def test_a_pilot_at_work_is_a_sign_that_pilots_come(gamma: ComputingQueue) -> None:
    work()
    take(gamma)
    silence(gamma)
    assert run_agent("reap", looked=True) == 0


@pytest.mark.parametrize(
    ("status", "catchall", "since"),
    [
        ("brokeroff", "", HOURS_4),
        ("test", "", HOURS_4),
        ("paused", "", HOURS_4),
        ("offline", "disableReassign", HOURS_4),
        ("offline", "", timedelta(minutes=14)),
    ],
)
def test_they_stay_where_the_queue_hands_out_or_operators_say_so(
    gamma: ComputingQueue, status: str, catchall: str, since: timedelta
) -> None:
    work()
    ComputingQueue.objects.update(catchall=catchall)
    switch(gamma, status, since)
    assert run_agent("reap", looked=True) == 0
    assert waiting() == {"GAMMA": 8}


def test_they_stay_without_pilots_where_none_is_needed(gamma: ComputingQueue) -> None:
    work()
    silence(gamma)
    ComputingQueue.objects.update(attributes={"params": {"allow_no_pilot": True}})
    assert run_agent("reap", looked=True) == 0
    ComputingQueue.objects.update(attributes={})
    assert run_agent("reap", looked=True) == 8


@pytest.mark.parametrize("named", [{"site": "GAMMA"}, {"includedSite": ["GAMMA"]}, {"includedSite": ["SITE_GAMMA"]}])
def test_they_stay_where_their_task_names_the_queue(gamma: ComputingQueue, named: dict[str, Any]) -> None:
    work(**named)
    switch(gamma, "offline")
    assert run_agent("reap", looked=True) == 0
    assert waiting() == {"GAMMA": 8}


def test_a_queue_to_which_a_pilot_never_came_has_its_time_from_the_first_job_on(gamma: ComputingQueue) -> None:
    Pilot.objects.all().delete()
    ComputingQueue.objects.update(catchall="allow_no_pilot")
    work()
    ComputingQueue.objects.update(catchall="")
    assert run_agent("reap", looked=True) == 0
    Job.objects.update(status_since=F("status_since") - HOURS_4)
    assert run_agent("reap", looked=True) == 8
