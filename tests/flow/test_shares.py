"""Shares drive dispatch and generation: the share that used least of its target comes first, then the priority."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import run_agent
from brokerage.models import Job
from tests.builders import grid, parameters, submitted
from tests.flow.steps import ROUND, run_agents, take
from workqueues.ledger.claims import claim_tasks
from workqueues.models import GlobalShare, ShareStanding, Task, WorkQueue, WorkQueueStanding

pytestmark = pytest.mark.django_db

JOBS = {"nEvents": 40, "nEventsPerJob": 10}


@pytest.fixture
def halves() -> None:
    """Two shares of the same weight in the VO demo."""
    GlobalShare.objects.create(name="MC", vo="demo", value=50, processing_type="evgen")
    GlobalShare.objects.create(name="Data", vo="demo", value=50, processing_type="reco")


def share_of(job_id: int) -> str:
    """The share of the task of a job."""
    return Task.objects.get(id=Job.objects.get(id=job_id).task_id).gshare


def test_a_pilot_gets_work_of_the_share_that_is_behind_whatever_its_priority(halves: None) -> None:
    (alpha,) = grid("ALPHA")
    submitted(parameters("mc", processingType="evgen", taskPriority=900, **JOBS))
    submitted(parameters("data", processingType="reco", taskPriority=100, **JOBS))
    run_agents(names=ROUND)
    first = take(alpha)
    assert share_of(first.job_id) == "Data"  # both have nothing yet: ties go by name
    run_agents(1, ROUND)
    assert share_of(take(alpha).job_id) == "MC"
    rest = [share_of(take(alpha).job_id) for _ in range(4)]
    # What was handed out counts at once, before it is counted anew. Both run as much now; for a moment Data ran alone.
    assert rest == ["MC", "Data", "MC", "Data"]


def test_work_of_no_leaf_comes_last_and_a_vo_without_shares_has_its_turns_beside_the_others(halves: None) -> None:
    (alpha,) = grid("ALPHA")
    submitted(parameters("merge", processingType="merge", taskPriority=900, **JOBS))
    submitted(parameters("other", vo="other", taskPriority=900, **JOBS))
    submitted(parameters("data", processingType="reco", taskPriority=100, **JOBS))
    run_agents(names=ROUND)
    shares = [share_of(take(alpha).job_id) for _ in range(12)]
    assert [share for share in shares if share] == ["Data"] * 4 + ["Undefined"] * 4
    assert shares.count("") == 4  # whenever its VO had a turn


def test_a_vo_without_shares_does_not_wait_until_the_shares_of_others_are_served(halves: None) -> None:
    (alpha,) = grid("ALPHA")
    many = {"nEvents": 400, "nEventsPerJob": 10, "taskPriority": 900, "skipScout": True}
    submitted(parameters("mc", processingType="evgen", **many))
    submitted(parameters("data", processingType="reco", **many))
    submitted(parameters("other", vo="other", **{**many, "taskPriority": 100}))
    run_agents(names=(*ROUND[:3], "share"))
    shares: Counter[str] = Counter()
    for _ in range(10):
        run_agents(1, ROUND)
        shares += Counter(share_of(take(alpha).job_id) for _ in range(4))
    assert shares[""] >= 8
    assert min(shares["MC"], shares["Data"]) >= 4


def test_jobs_are_made_first_for_the_share_that_is_behind(halves: None) -> None:
    (alpha,) = grid("ALPHA")
    submitted(parameters("mc", processingType="evgen", taskPriority=900, **JOBS))
    run_agents(names=ROUND)
    take(alpha)
    run_agents(1, ROUND)
    more = submitted(parameters("more", processingType="evgen", taskPriority=900, **JOBS))
    data = submitted(parameters("data", processingType="reco", taskPriority=100, **JOBS))
    for agent in ("refine", "feed", "assign"):
        run_agent(agent, looked=True)
    claimed = claim_tasks("run-1", 60, ["ready"], 10, order="share")
    assert [task.id for task in claimed] == [data.id, more.id]


def test_a_share_that_is_removed_takes_its_standing_along(halves: None) -> None:
    grid("ALPHA")
    run_agents(1, ROUND)
    assert set(ShareStanding.objects.values_list("share_id", flat=True)) == {"MC", "Data"}
    GlobalShare.objects.filter(name="MC").delete()
    run_agents(1, ROUND)
    assert set(ShareStanding.objects.values_list("share_id", flat=True)) == {"Data"}


def test_every_agent_of_the_table_is_run_by_the_steps() -> None:
    from broker_site.foundation.agency.duties import AGENTS

    assert set(ROUND) == set(AGENTS)


def test_counting_leaves_nothing_that_would_have_to_be_counted_at_once_again(halves: None) -> None:
    # An agent that handled rows is told to look again, so a count that called its shares handled would never rest.
    assert run_agent("share", looked=True) == 0
    assert ShareStanding.objects.count() == 2


def queue(name: str, order: int, kind: str, share: int | None, **more: Any) -> WorkQueue:
    """A work queue of the VO demo for one kind of processing."""
    criteria = f"processingType = '{kind}'" if kind else ""
    return WorkQueue.objects.create(
        queue_name=name, queue_type="", vo="demo", queue_order=order, criteria=criteria, queue_share=share, **more
    )


def queue_of(job_id: int) -> str:
    """The work queue of the task of a job."""
    found = Task.objects.get(id=Job.objects.get(id=job_id).task_id).work_queue
    assert found is not None
    return found.queue_name


def test_work_queues_with_shares_drive_a_vo_without_tree() -> None:
    (alpha,) = grid("ALPHA")
    queue("evgen", 1, "evgen", 75)
    queue("reco", 2, "reco", 25)
    submitted(parameters("mc", processingType="evgen", taskPriority=100, nEvents=200, nEventsPerJob=10))
    submitted(parameters("data", processingType="reco", taskPriority=900, nEvents=200, nEventsPerJob=10))
    run_agents(names=ROUND)
    taken = []
    for _ in range(8):
        taken.append(queue_of(take(alpha).job_id))
        run_agents(1, ROUND)
    assert sorted(taken) == ["evgen"] * 6 + ["reco"] * 2
    standing = WorkQueueStanding.objects.get(work_queue__queue_name="evgen", vo="demo")
    assert (standing.percent, standing.jobs_running, standing.target) == (75, 6, 60)


def test_the_model_of_a_vo_chooses_between_its_tree_and_its_work_queues(halves: None) -> None:
    (alpha,) = grid("ALPHA")
    queue("first", 1, "reco", 99)
    queue("second", 2, "evgen", 1)
    submitted(parameters("mc", processingType="evgen", taskPriority=500, **JOBS))
    submitted(parameters("data", processingType="reco", taskPriority=500, **JOBS))
    run_agents(names=ROUND)
    assert not WorkQueueStanding.objects.exists()
    take(alpha)
    run_agents(1, ROUND)
    assert queue_of(take(alpha).job_id) == "second"  # each leaf has a half
    gdpconfig.set_override("shares", "SHARE_MODEL", "work_queue", vo="demo", who="ada", why="test")
    run_agents(1, ROUND)
    assert [queue_of(take(alpha).job_id) for _ in range(3)] == ["first"] * 3


def test_a_queue_without_tasks_leaves_its_share_to_stretchable_ones_and_sub_queues_share_that_of_their_partition() -> None:
    (alpha,) = grid("ALPHA")
    whole = queue("whole", 1, "", 60, is_partition=True)
    queue("s1", 2, "evgen", 50, partition=whole)
    queue("s2", 3, "reco", 30, partition=whole, stretchable=True)
    queue("s3", 4, "merge", 20, partition=whole)
    queue("other", 5, "simul", 40)
    for name, kind in (("mc", "evgen"), ("data", "reco"), ("sim", "simul")):
        submitted(parameters(name, processingType=kind, **JOBS))
    run_agents(names=ROUND)
    take(alpha)
    run_agents(1, ROUND)
    percent = dict(WorkQueueStanding.objects.filter(vo="demo").values_list("work_queue__queue_name", "percent"))
    assert percent == {"whole": 60, "s1": 30, "s2": 30, "s3": 0, "other": 40, "default": 0}


def test_jobs_are_made_last_for_a_share_that_runs_more_than_it_is_entitled_to() -> None:
    grid("ALPHA")
    GlobalShare.objects.create(name="MC", vo="demo", value=50, processing_type="evgen")
    GlobalShare.objects.create(name="Data", vo="demo", value=50, processing_type="reco")
    mc = submitted(parameters("mc", processingType="evgen", taskPriority=900, **JOBS))
    data = submitted(parameters("data", processingType="reco", taskPriority=100, **JOBS))
    for agent in ("refine", "feed", "assign", "share"):
        run_agent(agent, looked=True)
    ShareStanding.objects.filter(share="MC").update(place=0, above=True)
    ShareStanding.objects.filter(share="Data").update(place=0.5, above=False)
    claimed = claim_tasks("run-1", 60, ["ready"], 10, order="share")
    assert [task.id for task in claimed] == [data.id, mc.id]
