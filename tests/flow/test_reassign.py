"""A task that is reassigned waits for the jobs that are to go, then goes on at its new site, or with another nucleus."""

from __future__ import annotations

import pytest
from django.contrib.postgres.functions import TransactionNow

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.models import Audit
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.ledger.task_changes import change_task
from brokerage.models import ComputingQueue, Job, JobChange, Site, StorageEndpoint
from brokerage.rules.dispatch.settlement import Report
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import end, run_agents, run_jobs, take, try_take
from workqueues.ledger.commands import command
from workqueues.ledger.task_changes import Changed
from workqueues.ledger.throttles import Cause, throttle_while
from workqueues.models import Dataset, File, Replica, Task, TaskChange
from workqueues.rules.task.changes import CHANGES
from workqueues.rules.throttle.user_caps import CAUSE

pytestmark = pytest.mark.django_db

OLGA = Principal("user", "olga", roles={"demo": frozenset({"operator"})})
KILLED = Report("failed", killed=True, error_code="KILLED")
PLACE = ("refine", "feed", "assign", "generate", "command", "wake")


@pytest.fixture
def queues() -> list[ComputingQueue]:
    gdpconfig.set_override("jobbroker", "NQUEUELIMITSITE", 100_000, who="ada", why="never full")
    gdpconfig.set_override("core", "POLICY_analysis", "generic", who="ada", why="test")
    return grid("ALPHA", "BETA")


def running(site: str = "ALPHA", files: int = 3, **more: object) -> Task:
    """A task with a job for each file, which wait at a site."""
    dataset = catalogue_dataset("in.data", files)
    Replica.objects.bulk_create(Replica(file=file, storage="BETA_DISK") for file in dataset.files.all())
    task = submitted(reading("t", "in.data", **{"nFilesPerJob": 1, "site": site, **more}))
    run_agents(1, ("refine", "feed", "assign", "generate"))
    task.refresh_from_db()
    return task


def reassign(task: Task, **wish: object) -> Changed:
    asked, problems = CHANGES["reassign"].read(wish)
    assert not problems
    changed = change_task(OLGA, task, CHANGES["reassign"], asked)[1]
    task.refresh_from_db()
    return changed


def at() -> dict[str, list[str]]:
    """Queue -> the states of its live jobs."""
    found: dict[str, list[str]] = {}
    for name, state in Job.objects.filter(ended_at=None).order_by("id").values_list("computing_queue__name", "status"):
        found.setdefault(name, []).append(state)
    return found


def test_jobs_of_a_reassigned_task_are_closed_and_made_at_the_other_site(queues: list[ComputingQueue]) -> None:
    task = running()
    assert at() == {"ALPHA": ["activated"] * 3}
    held = take(queues[0])
    changed = reassign(task, site="BETA", comment="ALPHA is slow")
    assert changed.told == f"Task {task.id} is reassigned to site BETA: it goes on as running once 3 jobs have ended."
    assert (task.status, task.old_status, task.site) == ("pending", "running", "BETA")
    assert task.error_dialog == "reassigned to site BETA: ALPHA is slow, waiting for 3 jobs"
    run_agents(1, PLACE)
    assert at() == {"ALPHA": ["running"]}
    (renewed,) = beat([SignOfLife(held.job_id, held.epoch)])
    assert renewed is not None
    assert renewed.kill
    task.refresh_from_db()
    assert task.status == "pending", "it waits for the pilot"
    assert task.error_dialog == "reassigned to site BETA: ALPHA is slow, waiting for 1 job"
    assert end(held, KILLED) == "closed"
    run_agents(2, PLACE)
    task.refresh_from_db()
    assert (task.status, task.command, task.command_by) == ("running", "", "")
    assert at() == {"BETA": ["activated"] * 3}
    assert set(File.objects.filter(type="input").values_list("attempt_nr", "failed_attempt")) == {(1, 0)}
    closed = JobChange.objects.filter(new="closed", old="activated").values_list("who", "why")
    assert set(closed) == {("user:olga", "its task is reassigned to site BETA: ALPHA is slow")}
    assert Audit.objects.get(act="task.reassign").after == {"site": "BETA", "jobs": "kill"}
    assert run_jobs(queues[1]) == 3
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


def test_soft_lets_jobs_that_run_end_there_and_nokill_all(queues: list[ComputingQueue]) -> None:
    task = running()
    take(queues[0])
    reassign(task, site="BETA", jobs="soft")
    run_agents(2, PLACE)
    assert at() == {"ALPHA": ["running"], "BETA": ["activated"] * 2}
    reassign(task, site="ALPHA", jobs="nokill")
    run_agents(2, PLACE)
    task.refresh_from_db()
    assert (task.status, task.site) == ("running", "ALPHA")
    assert at() == {"ALPHA": ["running"], "BETA": ["activated"] * 2}


def test_an_empty_site_is_brokered_again(queues: list[ComputingQueue]) -> None:
    task = running()
    ComputingQueue.objects.filter(name="ALPHA").update(status="brokeroff")
    reassign(task, site="")
    run_agents(2, PLACE)
    task.refresh_from_db()
    assert (task.status, task.site) == ("running", "")
    assert at() == {"BETA": ["activated"] * 3}


def test_a_pending_task_is_reassigned_too(queues: list[ComputingQueue]) -> None:
    task = running("GAMMA")
    assert (task.status, task.old_status) == ("pending", "ready")
    n = TaskChange.objects.count()
    changed = reassign(task, site="BETA")
    assert "goes on as ready at once" in changed.told
    assert (task.status, TaskChange.objects.count()) == ("pending", n)
    run_agents(2, PLACE)
    assert at() == {"BETA": ["activated"] * 3}


def test_a_task_of_production_is_given_another_nucleus_where_its_outputs_are_then_collected(
    queues: list[ComputingQueue],
) -> None:
    Site.objects.update(nucleus=True)
    StorageEndpoint.objects.update(free_gb=50_000)
    task = running(site="", prodSourceLabel="managed", nucleus="SITE_ALPHA")
    assert (task.status, task.nucleus) == ("running", "SITE_ALPHA")
    assert set(Dataset.objects.filter(type="output").values_list("collected_at", flat=True)) == {"ALPHA_DISK"}
    changed = reassign(task, nucleus="SITE_BETA")
    assert "gets a nucleus once" in changed.told
    run_agents(3, PLACE)
    task.refresh_from_db()
    assert (task.status, task.nucleus) == ("running", "SITE_BETA")
    assert set(Dataset.objects.filter(type="output").values_list("collected_at", flat=True)) == {"BETA_DISK"}
    reassign(task, nucleus="")
    assert (task.old_status, task.nucleus) == ("assigning", "")
    run_agents(3, PLACE)
    task.refresh_from_db()
    assert task.status == "running"
    assert task.nucleus


def test_an_exhausted_task_is_tried_at_the_other_site(queues: list[ComputingQueue]) -> None:
    task = running()
    Task.objects.filter(id=task.id).update(status="exhausted", old_status="running")
    reassign(task, site="BETA")
    run_agents(2, PLACE)
    task.refresh_from_db()
    assert task.status == "running"
    assert at() == {"BETA": ["activated"] * 3}


def test_a_task_that_is_just_being_resumed_is_reassigned_once_its_jobs_are_let_go(queues: list[ComputingQueue]) -> None:
    task = running()
    command(task.id, "pause", "user:ada")
    run_agents(1, ["command"])
    command(task.id, "resume", "user:ada")
    with pytest.raises(Refused, match="resume; ask again"):
        reassign(task, site="BETA", jobs="nokill")
    run_agents(1, ["command"])
    reassign(task, site="BETA", jobs="nokill")
    run_agents(1, PLACE)
    assert at() == {"ALPHA": ["activated"] * 3}


def test_a_kill_meanwhile_wins(queues: list[ComputingQueue]) -> None:
    task = running()
    held = take(queues[0])
    reassign(task, site="BETA")
    command(task.id, "kill", "user:ada")
    run_agents(1, PLACE)
    end(held, KILLED)
    run_agents(2, PLACE)
    task.refresh_from_db()
    assert task.status == "aborted"
    assert try_take(queues[0]) is None
    assert try_take(queues[1]) is None


def test_it_is_not_paused_before_its_jobs_have_gone(queues: list[ComputingQueue]) -> None:
    """Else they would be handed out at the old site once it is resumed."""
    task = running()
    reassign(task, site="BETA")
    with pytest.raises(Refused) as refused:
        command(task.id, "pause", "user:ada")
    assert refused.value.status == 409
    run_agents(2, PLACE)
    command(task.id, "pause", "user:ada")
    run_agents(1, PLACE)
    command(task.id, "resume", "user:ada")
    run_agents(2, PLACE)
    assert at() == {"BETA": ["activated"] * 3}


@pytest.mark.parametrize("who", ["a cap", "its time"])
def test_a_reassigned_task_waits_for_its_jobs_whoever_comes_before_the_agent_that_ends_them(
    queues: list[ComputingQueue], who: str
) -> None:
    task = running()
    reassign(task, site="BETA")
    if who == "a cap":
        throttle_while([Cause(task.id, CAUSE, "too many jobs run")], [], CAUSE, "agent:limit")
    else:
        Task.objects.update(next_look_at=TransactionNow())
        run_agents(1, ("wake", "generate"))
    task.refresh_from_db()
    assert (task.status, task.command) == ("pending", "reassign")
    run_agents(2, PLACE)
    assert at() == {"BETA": ["activated"] * 3}
