"""Shares drive dispatch and generation: the share that used least of its target comes first, then the priority."""

from __future__ import annotations

import pytest

from broker_site.agency.run import run_agent
from brokerage.models import Job
from tests.builders import grid, parameters, submitted
from tests.flow.steps import ROUND, run_agents, take
from workqueues.ledger.claims import claim_tasks
from workqueues.models import GlobalShare, ShareStanding, Task

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
    run_agents()
    first = take(alpha)
    assert share_of(first.job_id) == "Data"  # both have nothing yet: ties go by name
    run_agents(1)
    assert share_of(take(alpha).job_id) == "MC"
    assert share_of(take(alpha).job_id) == "MC"  # where shares stand is counted now and then, not at each job
    run_agents(1)
    assert share_of(take(alpha).job_id) == "Data"


def test_work_of_no_leaf_comes_last_and_of_a_vo_without_shares_in_the_middle(halves: None) -> None:
    (alpha,) = grid("ALPHA")
    submitted(parameters("merge", processingType="merge", taskPriority=900, **JOBS))
    submitted(parameters("other", vo="other", taskPriority=900, **JOBS))
    submitted(parameters("data", processingType="reco", taskPriority=100, **JOBS))
    run_agents()
    shares = [share_of(take(alpha).job_id) for _ in range(12)]
    assert shares == ["Data"] * 4 + [""] * 4 + ["Undefined"] * 4


def test_jobs_are_made_first_for_the_share_that_is_behind(halves: None) -> None:
    (alpha,) = grid("ALPHA")
    submitted(parameters("mc", processingType="evgen", taskPriority=900, **JOBS))
    run_agents()
    take(alpha)
    run_agents(1)
    more = submitted(parameters("more", processingType="evgen", taskPriority=900, **JOBS))
    data = submitted(parameters("data", processingType="reco", taskPriority=100, **JOBS))
    for agent in ("refine", "feed", "assign"):
        run_agent(agent, looked=True)
    claimed = claim_tasks("run-1", 60, ["ready"], 10, order="share")
    assert [task.id for task in claimed] == [data.id, more.id]


def test_a_share_that_is_removed_takes_its_standing_along(halves: None) -> None:
    grid("ALPHA")
    run_agents(1)
    assert set(ShareStanding.objects.values_list("share_id", flat=True)) == {"MC", "Data"}
    GlobalShare.objects.filter(name="MC").delete()
    run_agents(1)
    assert set(ShareStanding.objects.values_list("share_id", flat=True)) == {"Data"}


def test_every_agent_of_the_table_is_run_by_the_steps() -> None:
    from broker_site.beat import AGENTS

    assert set(ROUND) == {agent.name for agent in AGENTS}


def test_counting_leaves_nothing_that_would_have_to_be_counted_at_once_again(halves: None) -> None:
    # An agent that handled rows is told to look again, so a count that called its shares handled would never rest.
    assert run_agent("share", looked=True) == 0
    assert ShareStanding.objects.count() == 2
