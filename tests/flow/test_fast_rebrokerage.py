"""Jobs of a share leave a queue where far more of them wait than run, and each end says where the other is."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.agency.run import run_agent
from brokerage.config_keys import SERVER
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.models import ComputingQueue, Job, JobChange, JobRetryHistory
from brokerage.models.grid_facts import DeclaredSlots
from brokerage.queries.invariants import look
from brokerage.rules.facts.job_kind import JobKind
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import run_agents, take
from tests.ledger.test_races import together
from workqueues.models import File, GlobalShare, Task, WorkQueue

pytestmark = pytest.mark.django_db
LONG = timedelta(minutes=11)


def configure(key: str, value: object, component: str = "rebroker", app: str = SERVER) -> None:
    gdpconfig.set_override(component, key, value, app=app, who="ada", why="test")


@pytest.fixture
def gamma() -> ComputingQueue:
    """A queue where 2 jobs of the share MC run and 38 wait, when the queue ALPHA comes; the threshold of MC is 10."""
    configure("POLICY_analysis", "generic", "core", "jedi")
    configure("JOBS_PER_BLOCK", 1000, "jobbroker", "jedi")
    configure("NQUEUELIMITSITE", 1000, "jobbroker", "jedi")
    configure("FAST_REBRO_THRESHOLD_NQUEUE_MC", 10)
    (gamma,) = grid("GAMMA")
    GlobalShare.objects.create(name="MC", vo="demo", value=1, processing_type="evgen", throttled=False)
    return gamma


def work(queue: ComputingQueue, **more: Any) -> Task:
    """A task of 40 jobs, of which 2 run and 38 have waited for 11 minutes at the queue."""
    task = submitted(parameters(nEvents=40, nEventsPerJob=1, **more))
    run_agents(names=("refine", "feed", "assign", "generate"))
    for _ in range(2):
        take(queue)
    Job.objects.filter(status="activated").update(status_since=F("status_since") - LONG)
    assert Counter(Job.objects.values_list("status", flat=True)) == {"running": 2, "activated": 38}
    return task


def closed() -> list[int]:
    return list(Job.objects.filter(status="closed").order_by("id").values_list("id", flat=True))


def test_the_oldest_jobs_that_are_too_many_are_made_anew_elsewhere(gamma: ComputingQueue) -> None:
    """38 wait, and more than 3 x 2, 0.3 x 38 and 10: 38 - 11.4 are too many."""
    task = work(gamma)
    lowest = list(Job.objects.filter(status="activated").order_by("id").values_list("id", flat=True)[:27])
    assert run_agent("reap", looked=True) == 27
    assert closed() == lowest
    assert set(Job.objects.filter(status="closed").values_list("sub_status", flat=True)) == {"toreassign"}
    assert File.objects.filter(task_id=task.id, type="pseudo_input", status="ready", failed_attempt=0).count() == 27
    assert run_agent("reap", looked=True) == 0, "those that left count nowhere yet"
    grid("ALPHA")
    ComputingQueue.objects.filter(id=gamma.id).update(status="brokeroff")
    run_agents(names=("generate",))
    anew = Job.objects.filter(id__gt=max(Job.objects.filter(computing_queue=gamma).values_list("id", flat=True)))
    assert Counter(anew.values_list("computing_queue__name", "status")) == {("ALPHA", "activated"): 27}
    assert run_agent("reap", looked=True) == 0
    assert [found.invariant.name for found in look() if found.violations] == []


def test_both_ends_are_linked_in_the_history_and_on_the_pages(gamma: ComputingQueue, client: Client) -> None:
    work(gamma)
    run_agent("reap", looked=True)
    grid("ALPHA")
    run_agents(names=("generate",))
    why = "fast rebrokerage: 38 jobs of share MC waited at GAMMA where 2 ran, of 38 in all; more than 3 x 2, 0.3 x 38 and 10"
    assert set(JobChange.objects.filter(new="closed").values_list("why", flat=True)) == {why}
    links = JobRetryHistory.objects.filter(old_job_id__in=closed())
    assert Counter(links.values_list("relation_type", flat=True)) == {"rebroker": 27}
    link = links.earliest("id")
    client.force_login(ensure_user("ada", roles=[("demo", "submitter")]))
    old, new = (client.get(f"/jobs/{id_}/").content.decode() for id_ in (link.old_job_id, link.new_job_id))
    assert f'Brokered anew as job <a href="/jobs/{link.new_job_id}/">{link.new_job_id}</a>.' in old
    assert f'<dt>Came from</dt><dd>job <a href="/jobs/{link.old_job_id}/">{link.old_job_id}</a>' in new
    assert f"at GAMMA: {why}" in new


def test_a_retry_after_a_failure_is_no_rebrokerage(gamma: ComputingQueue) -> None:
    work(gamma)
    Job.objects.filter(status="running").update(lease_until=Now() - LONG)
    configure("FAST_REBRO_THRESHOLD_NQUEUE_MC", 1000)
    assert run_agent("reap", looked=True) == 2
    run_agents(names=("generate",))
    assert list(JobRetryHistory.objects.values_list("relation_type", flat=True)) == ["retry", "retry"]


def test_without_a_threshold_of_the_share_all_stay(gamma: ComputingQueue) -> None:
    configure("FAST_REBRO_THRESHOLD_NQUEUE_MC", "unset")
    work(gamma)
    assert run_agent("reap", looked=True) == 0


@pytest.mark.parametrize(
    "keeps",
    [
        lambda queue: ComputingQueue.objects.update(status="paused"),
        lambda queue: ComputingQueue.objects.update(catchall="disableReassign"),
        lambda queue: DeclaredSlots.objects.create(queue=queue, share="other", n=0),
        lambda queue: WorkQueue.objects.update(queue_function="Resource"),
        lambda queue: Job.objects.filter(status="activated").update(status_since=TransactionNow() - timedelta(minutes=9)),
        lambda queue: Job.objects.filter(status="activated").update(kind=JobKind.MERGE),
        lambda queue: Task.objects.update(gshare="other"),
    ],
    ids=["paused", "disableReassign", "slots", "Resource", "young", "merging", "share"],
)
def test_they_stay(gamma: ComputingQueue, keeps: Any) -> None:
    work(gamma)
    keeps(gamma)
    assert run_agent("reap", looked=True) == 0
    assert closed() == []


def test_declared_slots_that_have_expired_keep_nobody(gamma: ComputingQueue) -> None:
    work(gamma)
    DeclaredSlots.objects.create(queue=gamma, n=5, expires=TransactionNow() - timedelta(minutes=1))
    assert run_agent("reap", looked=True) == 27


@pytest.mark.parametrize("more", [{"site": "GAMMA"}, {"includedSite": ["GAMMA"]}, {"disableReassign": True}])
def test_they_stay_where_their_task_says_so(gamma: ComputingQueue, more: dict[str, Any]) -> None:
    work(gamma, **more)
    assert run_agent("reap", looked=True) == 0


def test_the_young_ones_stay_and_older_ones_leave(gamma: ComputingQueue) -> None:
    work(gamma)
    waiting = Job.objects.filter(status="activated").order_by("id")
    young = list(waiting.values_list("id", flat=True)[:20])
    Job.objects.filter(id__in=young).update(status_since=Now())
    assert run_agent("reap", looked=True) == 18
    assert not set(closed()) & set(young)


def test_a_job_that_starts_for_long_leaves_and_its_pilot_is_refused(gamma: ComputingQueue) -> None:
    work(gamma)
    third = Job.objects.filter(id=Job.objects.filter(status="activated").earliest("id").id)
    lease = {"lease_holder": pilot(gamma, "slow"), "lease_slot": 0, "lease_until": Now() + LONG, "lease_s": 3600, "epoch": 1}
    third.update(status="sent", ready_priority=None, status_since=Now(), **lease)
    job_id = third.get().id
    assert beat([SignOfLife(job_id, 1, "starting")]) != [None]
    assert run_agent("reap", looked=True) == 27
    assert third.get().status == "starting", "it has just begun to start"
    Job.objects.all().update(ended_at=F("ended_at") - LONG)
    Job.objects.filter(status="starting").update(status_since=Now() - LONG)
    configure("FAST_REBRO_THRESHOLD_NQUEUE_MC", 1)
    assert run_agent("reap", looked=True) == 5, "11 wait, 2 run"
    assert third.get().status == "closed"
    assert beat([SignOfLife(job_id, 1, "running")]) == [None]


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_once_close_no_more_than_one(gamma: ComputingQueue) -> None:
    work(gamma)
    together(*[partial(run_agent, "reap", looked=True)] * 3)
    assert len(closed()) == 27
    assert len(JobChange.objects.filter(new="closed")) == 27
