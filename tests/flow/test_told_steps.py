"""Each step that the system takes by itself is told with its rule, numbers, keys and time: on the page, as JSON, by `explain`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any, NamedTuple

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.core.management import call_command
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.gdpconfig.changesets import split_key
from broker_site.foundation.gdpconfig.keys import KEYS
from brokerage.ledger.urgency import Urgency, raise_tasks
from brokerage.models import ComputingQueue, Job, JobChange
from brokerage.queries.automatic_steps import steps_of
from tests.api.people import person
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow import test_memory_retry, test_moving_inputs, test_scouts
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.models import FileChange, Task
from workqueues.rules.task import automatic_steps
from workqueues.rules.task.automatic_steps import OF_CAUSES, AutomaticStep

pytestmark = pytest.mark.django_db
Capture = Callable[..., Any]
LONG = timedelta(days=400)


class Told(NamedTuple):
    """What is to be told, and of which job; none: of the task. `in_words`: as people read it, where that is not `number`."""

    task: int
    rule: str
    key: str
    number: str
    job: int = 0
    in_words: str = ""

    @property
    def words(self) -> str:
        return self.in_words or self.number


def running(**more: Any) -> tuple[Task, ComputingQueue]:
    (queue,) = grid("ALPHA")
    task = submitted(parameters("t", **more))
    run_agents()
    return task, queue


def of_job(task: Task, status: str, rule: str, key: str, number: str) -> Told:
    job = JobChange.objects.filter(new=status).latest("id").job_id
    return Told(task.id, rule, key, number, job)


def boosted() -> Told:
    task, _ = running()
    raise_tasks([Urgency(task.id, 900, "", "96.0 % of its files are through, jobs left: about 3")])
    return Told(task.id, "boost", "task_watcher.BOOST_PROGRESS", "96.0 %")


def asks_for_more_memory() -> Told:
    set_override("jobbroker", "MEMORY_RAISE_MIN_JOBS", 1, who="ada", why="test")
    task, queue = test_memory_retry.task_of(1)
    end(take(queue), test_memory_retry.out_of_memory())
    return Told(task.id, "memory ladder", "jobbroker.MEMORY_RAISE_MIN_JOBS", "1 of the latest 1 jobs ran out of memory")


def file_gets_more_memory() -> Told:
    task, queue = test_memory_retry.task_of(1)
    end(take(queue), test_memory_retry.out_of_memory())
    return Told(task.id, "memory ladder", "jobbroker.MEMORY_COMPENSATION", "2000 MB for the next try")


def scouts_fail() -> Told:
    task, queue = test_scouts.scouting(nScouts=2, maxAttempt=2)
    for _ in range(3):
        run_jobs(queue, BAD)
        run_agents()
    return Told(task.id, "scouts", "dbproxy.SCOUT_NUM_SHORT", "none of its first jobs succeeded, 4 failed")


def measured() -> Told:
    task, queue = test_scouts.scouting(ramCount=2000)
    test_scouts.run_scouts(queue, 5, max_pss_mb=700, cpu_s=10)
    test_scouts.last_run(1600)
    run_agents(1)
    return Told(
        task.id, "needs measured by its jobs", "dbproxy.SCOUT_RAMCOUNT_METHOD", "ram_count", in_words="memory from 2,000 to "
    )


def given_up() -> Told:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 1)
    task = submitted(reading("t", "in.data", prodSourceLabel="managed", maxAttempt=1))
    run_agents()
    run_jobs(queue, BAD)
    return Told(task.id, "no try left", "jobbroker.RETRY_PAUSE", "tries 1 of 1")


def throttled_by_a_cap() -> Told:
    task, queue = running()
    for _ in range(3):
        take(queue)
    set_override("prio_mgr", "CAP_RUNNING_USER_JOBS", 2, who="ada", why="test", app="pandaserver")
    run_agents(1, ["limit"])
    return Told(task.id, "cap of a user or group", "pandaserver:prio_mgr.CAP_RUNNING_USER_JOBS", "3 running jobs, 2 at most")


def job_held_by_a_cap() -> Told:
    told = throttled_by_a_cap()
    return of_job(Task.objects.get(), "throttled", told.rule, told.key, "")


def pending_for_too_long() -> Told:
    (queue,) = grid("ALPHA")
    ComputingQueue.objects.filter(id=queue.id).update(status="offline")
    task = submitted(parameters("t"))
    run_agents()
    Task.objects.update(next_look_at=TransactionNow(), frozen_time=TransactionNow() - LONG)
    run_agents(1, ["wake"])
    return Told(task.id, "pending for too long", "watchdog.PENDING_TIMEOUT_<label>", "pending for over 7d")


def job_times_out() -> Told:
    task, _ = running()
    Job.objects.update(status_since=TransactionNow() - LONG)
    run_agents(1, ["reap"])
    return of_job(task, "closed", "time-out", "pandaserver:job_timeout.TIMEOUT_activated", "too long in activated: over 2d")


def pilot_is_silent() -> Told:
    task, queue = running()
    take(queue)
    Job.objects.exclude(lease_until=None).update(lease_until=TransactionNow() - LONG)
    run_agents(1, ["reap"])
    key = "pandaserver:watcher.HEARTBEAT_TIMEOUT_<workflow>"
    return of_job(task, "failed", "no sign of life", key, "no sign of life within the lease of 1min")


def brokered_anew() -> Told:
    task, queue = running()
    ComputingQueue.objects.filter(id=queue.id).update(status="offline", status_since=TransactionNow() - timedelta(hours=1))
    run_agents(1, ["reap"])
    return of_job(task, "closed", "brokered anew", "jobbroker.REBROKER_STOPPED", "ALPHA")


def merges() -> Told:
    (queue,) = grid("ALPHA", path="/data")
    task = submitted(parameters(mergeOutput=True))
    run_agents()
    end(take(queue))
    return of_job(task, "merging", "merge", "jobbroker.MERGE_SCOPE", "")


def waits_for_a_transfer() -> Told:
    task, _ = test_moving_inputs.away()
    return of_job(task, "assigned", "transfer", "transfers.MAX_ATTEMPTS", "")


STEPS: tuple[Callable[[], Told], ...] = (
    boosted, asks_for_more_memory, file_gets_more_memory, scouts_fail, measured, given_up, throttled_by_a_cap,
    job_held_by_a_cap, pending_for_too_long, job_times_out, pilot_is_silent, brokered_anew, merges, waits_for_a_transfer,
)  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_it_is_told_everywhere(step: Callable[[], Told], django_capture_on_commit_callbacks: Capture) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        told = step()
    browser = Client()
    browser.force_login(ensure_user("eve", roles=[("demo", "auditor")]))
    reader = person("eve", ("demo", "auditor"))
    if told.job:
        page = browser.get(f"/jobs/{told.job}/")
        steps = [move for move in reader.get(f"jobs/{told.job}/").json()["history"] if move["rule"] == told.rule]
    else:
        page = browser.get(f"/tasks/{told.task}/plots/")
        answer = reader.get(f"tasks/{told.task}/steps/")
        assert answer.status_code == 200, answer.content
        steps = [one for one in answer.json() if one["rule"] == told.rule]
        timeline = browser.get(f"/tasks/{told.task}/plots.json").json()["timeline"]
        of_rule = [one for one in timeline if one["rule"] == told.rule and told.key in one["keys"]]
        assert any(told.words in one["why"] for one in of_rule), timeline
        out = io.StringIO()
        call_command("explain", str(told.task), stdout=out)
        (line,) = [line for line in out.getvalue().splitlines() if f" {told.rule}: " in line and told.words in line][:1]
        assert told.key in line
        assert f"{steps[0]['at'][:10]} " in line
        out = io.StringIO()
        call_command("explain", str(told.task), "--json", stdout=out)
        assert told.rule in {one["rule"] for one in json.loads(out.getvalue())["steps"]}
    assert any(told.number in f"{one['why']} {one.get('after')}" and told.key in one["keys"] and one["at"] for one in steps), (
        steps
    )
    shown = unescape(page.content.decode())
    assert f"Rule: {told.rule}" in shown
    assert told.key in shown
    assert (told.number if told.job else told.words) in shown


def test_of_many_notes_of_files_the_newest_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brokerage.queries.automatic_steps.MOST_FILES", 2)
    task = submitted(parameters("t"))
    note = {"task_id": task.id, "old": "ready", "who": "agent:feed"}
    for n, why in enumerate(["first", "first", "first", "last", "last"]):
        FileChange.objects.create(file_id=n, new="limited", why=why, **note)
    assert [step.why for step in steps_of(task.id)] == ["2 files: last"]


def test_every_key_that_a_rule_names_is_declared() -> None:
    known = {str(key) for key in KEYS}
    rules = [each for each in vars(automatic_steps).values() if isinstance(each, AutomaticStep)] + list(OF_CAUSES.values())
    timeouts = [automatic_steps.of_job(state, "closed", "agent:reap", f"too long in {state}") for state in ("holding", "running")]
    named = {key for step in (*rules, *timeouts) if step for key in step.keys}
    assert len(named) > 25
    assert named <= known, sorted(named - known)
    assert all(split_key(key)[1] for key in named)
