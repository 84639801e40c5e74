"""The ends of merge jobs and of the jobs that they merge, at the same time: each settled once, nobody waits for ever."""

from __future__ import annotations

from functools import partial

import pytest

from broker_site.foundation.agency.run import run_agent
from brokerage.ledger.expiry import expire_leases, kill_jobs
from brokerage.ledger.settle import settle_job
from brokerage.models import ComputingQueue, Job
from brokerage.queries.invariants import check
from brokerage.queries.jobs import live_jobs
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.rules.facts.job_kind import JobKind
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import good, run_agents, run_jobs, take
from tests.ledger.test_races import expired, together
from workqueues.ledger.commands import command
from workqueues.ledger.moves import Stale
from workqueues.models import File, Task

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 5


def merging(number: int, queue: ComputingQueue) -> Task:
    """A task of four jobs, which wait to be merged."""
    catalogue_dataset(f"in{number}", 8)
    task = submitted(reading(f"t{number}", f"in{number}", mergeOutput=True, maxAttempt=50))
    run_agents(1)
    assert run_jobs(queue) == 4
    return task


def versions(task: Task, kind: JobKind) -> list[JobVersion]:
    """The live jobs of a kind."""
    kinds = set(Job.objects.filter(task_id=task.id, kind=kind).values_list("id", flat=True))
    return [job for job in live_jobs(task.id) if job.id in kinds]


def over(task: Task) -> None:
    """The task is killed, with all that is left of it."""
    command(task.id, "kill", "user:ada")
    run_agents(2, ("command",))
    task.refresh_from_db()
    assert (task.status, live_jobs(task.id)) == ("aborted", [])


def holds() -> None:
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


def test_a_merge_job_ends_while_jobs_that_it_merges_are_killed() -> None:
    (queue,) = grid("ALPHA")
    for number in range(ROUNDS):
        task = merging(number, queue)
        run_agents(1, ("merge",))
        leased = take(queue)
        report = good(leased.job_id)
        victims = versions(task, JobKind.NORMAL)[:2]
        answer, _ = together(
            partial(settle_job, leased.job_id, leased.epoch, report, "pilot"),
            partial(kill_jobs, victims, "user:ada", "not wanted"),
        )
        merge = Job.objects.get(id=leased.job_id)
        states = list(Job.objects.filter(task_id=task.id, kind=JobKind.NORMAL).order_by("id").values_list("status", flat=True))
        if answer == "finished":
            assert (merge.status, states) == ("finished", ["finished"] * 4)
        else:
            assert isinstance(answer, Stale)
            assert (merge.status, states) == ("cancelled", ["cancelled"] * 2 + ["merging"] * 2)
        holds()
        over(task)


def test_a_merge_job_is_made_while_a_job_that_waits_for_it_is_killed() -> None:
    (queue,) = grid("ALPHA")
    for number in range(ROUNDS):
        task = merging(number, queue)
        victim = versions(task, JobKind.NORMAL)[number % 4]
        together(partial(run_agent, "merge", looked=True), partial(kill_jobs, [victim], "user:ada", "not wanted"))
        assert Job.objects.get(id=victim.id).status == "cancelled"
        assert not File.objects.filter(out_job_id=victim.id).exclude(status="failed").exists()
        holds()
        over(task)


def test_a_merge_job_reports_when_its_lease_is_over_while_its_task_is_killed() -> None:
    (queue,) = grid("ALPHA")
    for number in range(ROUNDS):
        task = merging(number, queue)
        run_agents(1, ("merge",))
        leased = expired(take(queue))
        report = good(leased.job_id)
        together(
            partial(settle_job, leased.job_id, leased.epoch, report, "pilot"),
            partial(expire_leases, "agent:reap", 100),
            partial(kill_jobs, versions(task, JobKind.NORMAL), "user:ada", "not wanted"),
        )
        holds()
        over(task)
