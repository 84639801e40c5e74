"""A periodic task: every period so many jobs, each once, until its time is over or it is told to end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from brokerage.models import ComputingQueue, Job
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import headline
from tests.api.people import faults, person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents, run_jobs
from workqueues.ledger.commands import command
from workqueues.models import Dataset, File, Task
from workqueues.rules.jobs.open_inputs import Round, round_due

pytestmark = pytest.mark.django_db

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def queue() -> ComputingQueue:
    return grid()[0]


def periodic(**more: object) -> Task:
    return submitted(parameters("t", **{"nEvents": None, "period": 3600, "periodJobs": 2, **more}))


def let_period_pass(hours: float = 1) -> None:
    """Time goes by until the next round is due."""
    past = timedelta(hours=hours, seconds=30)
    Dataset.objects.filter(state_check_expiration__isnull=False).update(state_check_expiration=F("state_check_expiration") - past)
    Task.objects.filter(status="defined").update(next_look_at=F("next_look_at") - past)


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def records(task: Task) -> list[tuple[str, int | None]]:
    return list(File.objects.filter(task=task, type="pseudo_input").order_by("id").values_list("lfn", "first_event"))


def test_every_period_a_round_of_jobs_is_made_and_no_job_twice(queue: ComputingQueue) -> None:
    task = periodic()
    run_agents(3)
    assert run_jobs(queue) == 2
    run_agents(3)
    assert status(task) == "defined"
    assert headline(task_status(task)) == ("Defined: all rounds so far are through; the next one begins when its time has come")
    assert run_jobs(queue) == 0
    for _ in range(2):
        let_period_pass()
        run_agents(3)
        assert run_jobs(queue) == 2
        run_agents(2)
    assert status(task) == "defined"
    assert records(task) == [(f"pseudo_{i + 1:06d}", 1 + 10 * i) for i in range(6)]


def test_rounds_come_whether_or_not_the_jobs_before_have_ended(queue: ComputingQueue) -> None:
    task = periodic()
    run_agents()
    let_period_pass()
    run_agents()
    assert Job.objects.filter(task_id=task.id).count() == 4
    assert status(task) == "running"


def test_rounds_that_were_missed_are_left_out(queue: ComputingQueue) -> None:
    task = periodic()
    run_agents()
    let_period_pass(10)
    run_agents(3)
    assert len(records(task)) == 4


def test_the_task_ends_when_its_time_is_over(queue: ComputingQueue) -> None:
    task = periodic(periodUntil=(datetime.now(UTC) + timedelta(minutes=30)).isoformat())
    run_agents()
    assert run_jobs(queue) == 2
    run_agents(2)
    assert status(task) == "defined"
    task.params.task_params["periodUntil"] = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    task.params.save()
    let_period_pass()
    run_agents(3)
    assert status(task) == "done"
    assert len(records(task)) == 2


def test_the_task_ends_when_it_is_told_to(queue: ComputingQueue) -> None:
    task = periodic()
    run_agents()
    run_jobs(queue)
    run_agents(2)
    command(task.id, "finish", "user:ada")
    run_agents(3)
    assert status(task) == "done"


def test_a_round_keeps_its_beat_and_ends_in_time() -> None:
    late = NOON + timedelta(seconds=20)
    assert round_due(None, 60, None, NOON, first=True) == Round(True, NOON + timedelta(seconds=60))
    assert round_due(NOON, 60, None, late, first=False) == Round(True, NOON + timedelta(seconds=60))
    assert round_due(late, 60, None, NOON, first=False) == Round(False, late)
    assert round_due(NOON, 60, late, NOON, first=False) == Round(True, late)
    assert round_due(NOON, 60, NOON, late, first=False) == Round(False, None)


def test_what_does_not_go_with_a_period_is_refused() -> None:
    grid()
    ada = person("ada", ("demo", "submitter"))
    good = parameters("t", nEvents=None, period=60)
    assert ("nEvents", "contradiction") in faults(ada.submit({**good, "nEvents": 40}))
    assert ("period", "required") in faults(ada.submit({**parameters("t"), "periodJobs": 2}))
    for until in ("soon", "0001-01-01T00:00:00+05:00", "0001-01-01", "9999-12-31T23:59:59-05:00"):
        told = {("periodUntil", "format")}
        assert faults(ada.submit({**good, "periodUntil": until})) == told
        assert faults(ada.post("tasks/check/", {**good, "periodUntil": until})) == told
    assert ada.submit(good).status_code == 201
