"""Kill and retry of single jobs, over REST and by the buttons of the pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.models import ComputingQueue, Job, JobChange
from brokerage.rules.dispatch.settlement import Report
from tests.api.people import Person, faults
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.models import File, FileChange, Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue(db: None) -> ComputingQueue:
    """A running task of ada in demo, with three jobs of a file each, tried twice at most."""
    (made,) = grid("ALPHA")
    catalogue_dataset("in.data", 3)
    submitted(reading("t", "in.data", nFilesPerJob=1, maxAttempt=2))
    run_agents(1, ("refine", "feed", "assign", "generate"))
    assert Job.objects.count() == 3
    return made


def task() -> Task:
    return Task.objects.get()


def ids() -> list[int]:
    return list(Job.objects.filter(ended_at=None).order_by("id").values_list("id", flat=True))


def test_the_owner_kills_a_job_that_waits_and_its_input_gets_another(ada: Person, queue: ComputingQueue) -> None:
    job = ids()[0]
    answer = ada.post(f"jobs/{job}/kill/", {"comment": "stands still"})
    assert answer.status_code == 202, answer.content
    assert answer.json() == {
        "detail": "1 job is cancelled; inputs with tries left get other jobs.",
        "jobs": [{"job": job, "outcome": "cancelled", "why": ""}],
    }
    move = JobChange.objects.filter(job_id=job).latest("id")
    assert (move.new, move.who, move.why) == ("cancelled", "user:ada", "killed by ada: stands still")
    row = Audit.objects.get(act="job.kill")
    assert (row.who, row.object, row.vo, row.reason) == ("ada", f"job {job}", "demo", "stands still")
    run_agents(1)
    assert task().status == "running"
    assert len(ids()) == 3
    assert File.objects.filter(type="input", attempt_nr=1, failed_attempt=0).count() == 1


def test_a_pilot_is_told_of_the_kill_of_its_job_with_its_next_sign_of_life(ada: Person, queue: ComputingQueue) -> None:
    held = take(queue)
    answer = ada.post(f"jobs/{held.job_id}/kill/", {"comment": "stands still"})
    assert answer.json()["detail"] == "1 job ends with the next sign of life of its pilot."
    assert answer.json()["jobs"][0]["outcome"] == "asked"
    (renewed,) = beat([SignOfLife(held.job_id, held.epoch)])
    assert renewed is not None
    assert renewed.kill
    assert ada.get(f"jobs/{held.job_id}/").json()["kill_why"] == "killed by ada: stands still (user:ada)"
    assert end(held, Report("failed", killed=True, error_code="KILLED")) == "cancelled"
    last = JobChange.objects.filter(job_id=held.job_id).latest("id")
    assert last.why == "killed on request: killed by ada: stands still (user:ada)", "as with one that nobody held"
    assert ada.post(f"jobs/{held.job_id}/kill/").status_code == 409


def test_many_jobs_are_killed_at_once_and_each_gets_its_answer(ada: Person, queue: ComputingQueue) -> None:
    first, second, third = ids()
    end(take(queue))
    answer = ada.post("jobs/kill/", {"jobs": [third, first, 10**9, second, third]})
    assert answer.status_code == 202
    assert [(j["job"], j["outcome"], j["why"]) for j in answer.json()["jobs"]] == [
        (third, "cancelled", ""),
        (first, "refused", "it is finished already"),
        (10**9, "refused", "there is no such job"),
        (second, "cancelled", ""),
    ]
    assert answer.json()["detail"].endswith(f"2 jobs are not killed, the first of them job {first}: it is finished already.")
    row = Audit.objects.get(act="job.kill")
    assert (row.object, row.after) == (f"2 jobs of task {task().id}", {"task": task().id, "jobs": [second, third]})


def test_all_jobs_of_a_task_are_killed_and_the_task_goes_on(olga: Person, queue: ComputingQueue) -> None:
    answer = olga.post(f"tasks/{task().id}/kill-jobs/", {"comment": "bad node"})
    assert answer.json()["detail"].startswith("3 jobs are cancelled")
    assert olga.post(f"tasks/{task().id}/kill-jobs/").json() == {"detail": "There is no job to kill.", "jobs": []}
    run_agents(1)
    assert task().status == "running"
    assert len(ids()) == 3


@pytest.mark.parametrize("path", ["jobs/{job}/kill/", "jobs/{job}/retry/", "tasks/{task}/kill-jobs/"])
def test_others_may_not_and_for_another_vo_there_is_nothing(bob: Person, eve: Person, queue: ComputingQueue, path: str) -> None:
    address = path.format(job=ids()[0], task=task().id)
    faults(bob.post(address), 403)
    faults(eve.post(address), 404)
    (answer,) = bob.post("jobs/kill/", {"jobs": ids()[:1]}).json()["jobs"]
    assert (answer["outcome"], answer["why"]) == ("refused", f"bob may not kill jobs of task {task().id}")
    assert eve.post("jobs/kill/", {"jobs": ids()[:1]}).json()["jobs"][0]["why"] == "there is no such job"
    assert len(ids()) == 3
    assert not Audit.objects.filter(act="job.kill").exists()


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, ("jobs", "required")),
        ({"jobs": []}, ("jobs", "min_length")),
        ({"jobs": ["x"]}, ("jobs.0", "type")),
        ({"jobs": [1] * 1001}, ("jobs", "max_length")),
        ({"jobs": [1], "why": "x"}, ("why", "unknown")),
        ({"jobs": [1], "comment": "c" * 201}, ("comment", "max_length")),
    ],
)
def test_a_body_that_is_not_understood_is_refused(ada: Person, queue: ComputingQueue, body: Any, fault: tuple[str, str]) -> None:
    assert {(field.split("[")[0], rule) for field, rule in faults(ada.post("jobs/kill/", body))} == {fault}
    assert len(ids()) == 3


def test_a_failed_job_is_retried_while_its_task_lives(ada: Person, queue: ComputingQueue) -> None:
    File.objects.filter(type="input").update(max_attempt=1)
    end(take(queue), BAD)
    job = Job.objects.filter(status="failed").latest("id")
    answer = ada.post(f"jobs/{job.id}/retry/", {"comment": "the node is mended"})
    assert answer.status_code == 202, answer.content
    assert answer.json() == {"detail": f"1 input has more tries; task {task().id} makes another job.", "files": 1}
    assert FileChange.objects.get(why="more tries").who == "user:ada"
    row = Audit.objects.get(act="job.retry")
    assert (row.object, row.reason) == (f"job {job.id}", "the node is mended")
    answer = ada.post(f"jobs/{job.id}/retry/")
    faults(answer, 409)
    assert "none of its inputs was given up" in answer.json()["detail"]


def test_a_job_of_a_task_that_has_ended_is_not_retried(ada: Person, queue: ComputingQueue) -> None:
    for _ in range(3):
        run_jobs(queue, BAD)
        run_agents(2)
    assert task().status == "failed"
    answer = ada.post(f"jobs/{Job.objects.latest('id').id}/retry/")
    faults(answer, 409)
    assert "is failed; retry of a job is accepted in ready, running, scouting" in answer.json()["detail"]


def page(name: str, *roles: tuple[str, str]) -> Client:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ensure_user(name, roles=list(roles)))
    client.cookies["csrftoken"] = "t" * 32
    return client


def press(client: Client, address: str, **form: str) -> Any:
    return client.post(address, form, headers={"X-CSRFToken": "t" * 32})


def test_the_pages_have_buttons_for_those_who_may(queue: ComputingQueue) -> None:
    ada, bob = page("ada", ("demo", "submitter")), page("bob", ("demo", "submitter"))
    job = ids()[0]
    for where, address in ((f"/jobs/{job}/", f"/jobs/{job}/kill/"), (f"/tasks/{task().id}/", f"/tasks/{task().id}/kill-jobs/")):
        button = f'action="{address}"'
        assert button in ada.get(where).text
        assert button not in bob.get(where).text
        assert press(bob, address).status_code == 403
        assert ada.post(address).status_code == 403, "without the CSRF token"
        answer = press(ada, address, comment="enough")
        assert (answer.status_code, answer["Location"]) == (302, where)
        assert "cancelled; inputs with tries left get other jobs" in ada.get(where).text
    assert ids() == []


def test_the_page_of_a_failed_job_has_a_button_to_retry_it(queue: ComputingQueue) -> None:
    ada = page("ada", ("demo", "submitter"))
    held = take(queue)
    end(held, BAD)
    run_agents(1)
    assert "/retry/" in ada.get(f"/jobs/{held.job_id}/").text
    answer = press(ada, f"/jobs/{held.job_id}/retry/")
    assert "none of its inputs was given up" in ada.get(answer["Location"]).text
    File.objects.filter(type="input").update(max_attempt=2)
    held = take(queue)
    while end(held, BAD) and not File.objects.filter(type="input", status="failed").exists():
        run_agents(1)
        held = take(queue)
    answer = press(ada, f"/jobs/{held.job_id}/retry/")
    assert "1 input has more tries" in ada.get(answer["Location"]).text
