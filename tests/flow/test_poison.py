"""One row that nobody can work on stops at most its own task, with the reason on it: its neighbours end as if there were none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client

from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.expiry import expire_leases
from brokerage.models import ComputingQueue, Job, JobChange, StorageEndpoint
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import reasons
from tests.api.people import person
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import run_agents, run_jobs, take
from tests.locks import locked
from workqueues.ledger.commands import command
from workqueues.models import CatalogueFile, Dataset, File, Task, TaskParams

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def queue() -> Iterator[ComputingQueue]:
    """One computing queue; locks are waited for shortly, as by the agents of `up`."""
    (made,) = grid("ALPHA")
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
        yield made
        cursor.execute("RESET lock_timeout")


def task_of(name: str, files: int = 2, **more: object) -> Task:
    """A task that reads a dataset of its own."""
    catalogue_dataset(f"{name}.in", files)
    return submitted(reading(name, f"{name}.in", **more))


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def work_off(queue: ComputingQueue) -> None:
    for _ in range(3):
        run_agents(1)
        run_jobs(queue)
    run_agents(2)


def sql(text: str, *values: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text, values)


def no_database_text(task: Task) -> bool:
    """Whether what the task says is ours, not the database's."""
    task.refresh_from_db()
    return not any(word in task.error_dialog for word in ("DataError", "out of range", "violates", "workqueues_", "DETAIL"))


def test_sizes_whose_sum_no_number_of_the_database_holds(queue: ComputingQueue) -> None:
    huge, neighbour = task_of("huge", 4), task_of("small")
    CatalogueFile.objects.filter(dataset__name="huge.in").update(fsize=2**63 - 1)
    work_off(queue)
    assert status(neighbour) == "done"
    assert status(huge) != "broken"
    assert no_database_text(huge)


def test_events_whose_numbers_go_beyond_two_thousand_million(queue: ComputingQueue) -> None:
    many, neighbour = task_of("many", 4), task_of("few")
    CatalogueFile.objects.filter(dataset__name="many.in").update(n_events=2**31 - 1)
    work_off(queue)
    assert (status(neighbour), status(many)) == ("done", "done")
    assert File.objects.get(task_id=many.id, lfn="many.in.000003", type="input").first_event == 3 * (2**31 - 1) + 1


def test_parameters_that_cannot_be_read(queue: ComputingQueue) -> None:
    bad, neighbour = task_of("bad"), task_of("good")
    run_agents(1, ("refine", "feed", "assign"))
    assert (status(bad), status(neighbour)) == ("ready", "ready")
    digits = "9" * 5000
    sql(f"UPDATE workqueues_taskparams SET task_params = '{{\"nEvents\": {digits}}}' WHERE task_id = %s", bad.id)
    work_off(queue)
    assert status(neighbour) == "done"
    assert status(bad) == "ready"
    assert bad.error_dialog.startswith("agent generate failed on this task: ValueError")
    assert f"task {bad.id}: " in Agent.objects.get(name="generate").left_out or bad.next_look_at is not None
    assert Agent.objects.get(name="generate").last_error == ""


def let_look(task: Task) -> timedelta:
    """Time goes by until the task is looked at again: how long that is."""
    task.refresh_from_db()
    assert task.next_look_at is not None
    Task.objects.filter(id=task.id).update(next_look_at=datetime.now(UTC))
    return task.next_look_at - datetime.now(UTC)


def test_a_task_on_which_an_agent_fails_five_times_is_left_alone_until_its_owner_retries_it(
    queue: ComputingQueue, admin_client: Client
) -> None:
    bad, neighbour = task_of("bad"), task_of("good")
    run_agents(1, ("refine", "feed", "assign"))
    sound = TaskParams.objects.get(task_id=bad.id).task_params
    sql(f"UPDATE workqueues_taskparams SET task_params = '{{\"nEvents\": {'9' * 5000}}}' WHERE task_id = %s", bad.id)
    for minutes in (1, 2, 4, 8):
        run_agent("generate", looked=True)
        assert timedelta(minutes=minutes - 0.2) < let_look(bad) <= timedelta(minutes=minutes)
    assert bad.error_dialog.endswith("(4 of 5 times; it is tried again)")
    run_agent("generate", looked=True)
    assert f"task {bad.id} is in quarantine" in Agent.objects.get(name="generate").left_out
    ada = person("ada", ("demo", "submitter"))
    assert "gridbroker_tasks_quarantined 1.0" in admin_client.get("/metrics").text
    assert "1 task is in quarantine" in admin_client.get("/agents/").text
    let_look(bad)
    work_off(queue)
    assert (status(neighbour), status(bad)) == ("done", "ready")
    assert bad.error_dialog.startswith("agent generate failed on this task: ValueError")
    assert bad.error_dialog.endswith("(5 of 5 times; no agent works on it until it is retried)")
    assert [r.kind for r in reasons(task_status(bad))] == ["reason"]
    assert ada.post(f"tasks/{neighbour.id}/retry/").status_code == 409
    TaskParams.objects.filter(task_id=bad.id).update(task_params=sound)
    answer = ada.post(f"tasks/{bad.id}/retry/")
    assert (answer.status_code, answer.json()["quarantined_at"]) == (202, None)
    work_off(queue)
    assert status(bad) == "done"
    assert (bad.agent_faults, bad.faulty_agent) == (0, "")


def test_a_task_in_quarantine_can_be_killed(queue: ComputingQueue) -> None:
    bad = task_of("bad")
    Task.objects.filter(id=bad.id).update(quarantined_at=datetime.now(UTC), agent_faults=5, faulty_agent="refine")
    run_agents(1)
    assert status(bad) == "registered"
    command(bad.id, "kill", "user:ada", "")
    run_agents(1)
    assert status(bad) == "aborted"


def test_failures_count_in_a_row(queue: ComputingQueue) -> None:
    bad = task_of("bad")
    Task.objects.filter(id=bad.id).update(agent_faults=4, faulty_agent="refine")
    run_agents(1, ("refine",))
    assert (status(bad), bad.agent_faults) == ("defined", 0)


def test_rows_of_a_task_that_somebody_keeps_locked(queue: ComputingQueue) -> None:
    bad, neighbour = task_of("bad", 6), task_of("good")
    run_agents(1)
    held = [take(queue) for _ in range(4)]
    Job.objects.filter(id__in=[lease.job_id for lease in held]).update(lease_until="2020-01-01T00:00Z")
    with locked(f"SELECT id FROM workqueues_dataset WHERE task_id = {bad.id} FOR UPDATE"):
        run_agent("reap", looked=True)
        assert not Job.objects.filter(task_id=neighbour.id, status="running").exists()
        assert Job.objects.filter(task_id=bad.id, status="running").count() == 3
        agent = Agent.objects.get(name="reap")
        assert (agent.last_error, agent.rows) == ("", 1)
        bad.refresh_from_db()
        assert bad.agent_faults == 0, "it is not to blame"
        assert f"of task {bad.id}: its rows are locked by another transaction" in agent.left_out
        run_agents(1)
        run_jobs_of(queue, neighbour)
    run_agents(2)
    assert status(neighbour) == "done"
    assert not Job.objects.filter(task_id=bad.id, status="running").exists()
    assert Agent.objects.get(name="reap").left_out == ""


def run_jobs_of(queue: ComputingQueue, task: Task) -> None:
    """The jobs of one task, with those of others put last."""
    Job.objects.filter(status="activated").exclude(task_id=task.id).update(ready_priority=10**6)
    run_jobs(queue)


def test_locked_jobs_behind_which_others_wait_do_not_fill_the_page(queue: ComputingQueue) -> None:
    bad, neighbour = task_of("bad", 6), task_of("good")
    run_agents(1)
    held = [take(queue) for _ in range(4)]
    Job.objects.filter(id__in=[lease.job_id for lease in held]).update(lease_until="2020-01-01T00:00Z")
    first, second = sorted((bad, neighbour), key=lambda task: Job.objects.filter(task_id=task.id).earliest("id").id)
    with locked(f"SELECT id FROM workqueues_dataset WHERE task_id = {first.id} FOR UPDATE"):
        expected = Job.objects.filter(task_id=second.id, status="running").count()
        assert expire_leases("agent:reap", 1) == expected


def test_a_job_whose_end_breaks_a_rule_of_the_database(queue: ComputingQueue) -> None:
    bad, neighbour = task_of("bad"), task_of("good")
    run_agents(1)
    held = [take(queue) for _ in range(2)]
    File.objects.filter(task_id=bad.id, type="input").update(attempt_nr=3, max_attempt=3)
    Job.objects.filter(id__in=[lease.job_id for lease in held]).update(lease_until="2020-01-01T00:00Z")
    run_agent("reap", looked=True)
    assert Job.objects.get(task_id=neighbour.id).status == "failed"
    job = Job.objects.get(task_id=bad.id)
    assert job.status == "running"
    bad.refresh_from_db()
    assert bad.error_dialog == f"job {job.id} cannot be ended: it would break a rule that the database keeps"
    work_off(queue)
    assert status(neighbour) == "done"


def test_counters_of_a_dataset_that_cannot_be(queue: ComputingQueue) -> None:
    bad, neighbour = task_of("bad"), task_of("good")
    run_agents(1, ("refine", "feed", "assign"))
    Dataset.objects.filter(task_id=bad.id, type="output").update(n_files=2**31 - 1, n_files_to_be_used=2**31 - 1)
    work_off(queue)
    assert status(neighbour) == "done"
    assert "a value is larger than can be stored" in Task.objects.get(id=bad.id).error_dialog
    assert no_database_text(bad)


def test_a_storage_at_which_looking_fails(queue: ComputingQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    StorageEndpoint.objects.filter(name="ALPHA_DISK").update(path="/nowhere/alpha", mark="canary:not a number:x")
    run_agent("storage", looked=True)
    assert Agent.objects.get(name="storage").last_error == ""


def test_times_that_python_cannot_hold_hide_nothing_else(queue: ComputingQueue) -> None:
    task = task_of("old")
    run_agents(1)
    job = Job.objects.get(task_id=task.id)
    JobChange.objects.filter(job_id=job.id).update(at="2020-01-01T00:00Z")
    sql("UPDATE brokerage_job SET status_since = '0044-03-15 12:00+00 BC' WHERE id = %s", job.id)
    sql("UPDATE brokerage_jobchange SET at = '294276-12-31 23:59+00' WHERE job_id = %s", job.id)
    ada = person("ada", ("demo", "submitter"))
    for path in ("jobs/", f"jobs/{job.id}/"):
        assert ada.get(path).status_code == 200, path


@pytest.mark.parametrize("policy", ["panda", "dirac"])
def test_a_job_of_so_many_cores_and_days_that_no_number_of_the_database_holds_its_cpu_time(policy: str) -> None:
    """4,096 cores for a week: it is handed out, and so is what waits beside it."""
    set_override("dispatch", "DISPATCH_POLICY", policy, vo="demo", who="test", why="it is tried")
    (wide,) = grid("WIDE")
    ComputingQueue.objects.update(maxtime=0, maxrss=0, corecount=4096)
    week = {"coreCount": 4096, "cpuTime": 1, "cpuTimeUnit": "HS06sPerEvent", "baseWalltime": 7 * 86_400}
    large = submitted(parameters("large", nEvents=1, nEventsPerJob=1, **week))
    small = submitted(parameters("small", nEvents=1, nEventsPerJob=1, coreCount=4096))
    run_agents(1)
    assert {Job.objects.get(task_id=task.id).status for task in (large, small)} == {"activated"}
    assert {take(wide).job_id for _ in range(2)} == set(Job.objects.values_list("id", flat=True))
