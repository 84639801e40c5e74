"""Broker anew at once: what waits at a queue, the jobs of a task, one job; by REST, command and button."""

from __future__ import annotations

from collections import Counter
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit, Role
from brokerage.models import ComputingQueue, Job, JobChange
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents, take
from workqueues.models import Task

pytestmark = pytest.mark.django_db
STEPS = ("refine", "feed", "assign", "generate")


@pytest.fixture
def task() -> Task:
    """Three jobs of a task wait at GAMMA and one runs there; new ones go to ALPHA."""
    gdpconfig.set_override("core", "POLICY_analysis", "generic", who="ada", why="test")
    (gamma,) = grid("GAMMA")
    task = submitted(parameters(nEvents=4, nEventsPerJob=1))
    run_agents(names=STEPS)
    take(gamma)
    ComputingQueue.objects.update(status="brokeroff")
    grid("ALPHA")
    return task


def person(name: str, *roles: str, vo: str = "demo") -> Client:
    user = ensure_user(name)
    for role in roles:
        Role.objects.create(user=user, vo=vo, role=role)
    client = Client()
    client.force_login(user)
    return client


def waiting() -> Counter[str]:
    return Counter(Job.objects.filter(status="activated").values_list("computing_queue__name", flat=True))


def job() -> int:
    """One of the jobs that wait at GAMMA."""
    return Job.objects.filter(status="activated").earliest("id").id


@pytest.mark.parametrize(("address", "n"), [("queues/GAMMA", 3), ("tasks/{task}", 3), ("jobs/{job}", 1)])
def test_an_operator_does_so_by_rest_and_the_jobs_are_made_elsewhere(task: Task, address: str, n: int) -> None:
    operator, path = person("op", "operator"), f"/api/v1/{address.format(task=task.id, job=job())}/rebroker/"
    answer = operator.post(path, {}, content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {"jobs": n, "stay": 0, "why": ""})
    target = address.format(task=task.id, job=path.split("/")[4]).replace("s/", " ")
    assert list(Audit.objects.filter(act="job.rebroker").values_list("who", "object")) == [("op", target)]
    moves = JobChange.objects.filter(new="closed").values_list("who", "why")
    assert list(moves) == [("op", "op asked for it to be brokered anew")] * n
    run_agents(names=STEPS)
    assert waiting() == {"GAMMA": 3 - n, "ALPHA": n} if n < 3 else {"ALPHA": 3}
    assert Job.objects.filter(status="running").count() == 1


@pytest.mark.parametrize("which", ["--queue GAMMA", "--task {task}", "--job {job}"])
def test_the_command_says_how_many(task: Task, which: str) -> None:
    out = StringIO()
    call_command("rebroker", *which.format(task=task.id, job=job()).split(), stdout=out)
    jobs = "1 waiting job of" if "job" in which else "3 waiting jobs of"
    assert out.getvalue().startswith(jobs)
    assert waiting()["GAMMA"] == (2 if "job" in which else 0)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("--task 999999", "there is no task 999999"),
        ("--queue GAMMO", "there is no computing queue GAMMO; the nearest name is GAMMA"),
        ("--job 999999", "there is no job 999999"),
    ],
)
def test_the_command_refuses_what_is_not_there(task: Task, which: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("rebroker", *which.split())


@pytest.mark.parametrize("page", ["/tasks/{task}/", "/queues/GAMMA/", "/jobs/{job}/"])
def test_the_pages_have_a_button(task: Task, page: str) -> None:
    operator, visitor = person("op", "operator"), person("eve", "auditor")
    address = page.format(task=task.id, job=job())
    button = f'action="{address}rebroker/"'
    assert button in operator.get(address).content.decode()
    assert button not in visitor.get(address).content.decode()
    assert visitor.post(f"{address}rebroker/").status_code == 403
    assert waiting() == {"GAMMA": 3}
    answer = operator.post(f"{address}rebroker/", follow=True)
    assert answer.redirect_chain == [(address, 302)]
    assert "brokered anew" in answer.content.decode()
    assert waiting()["GAMMA"] == (2 if "jobs" in page else 0)


def test_only_operators_and_only_in_their_vos(task: Task) -> None:
    stranger, owner = person("zoe", "operator", vo="other"), person(task.user_name, "submitter")
    for address in ("tasks", "jobs"):
        path = f"/api/v1/{address}/{task.id if address == 'tasks' else job()}/rebroker/"
        assert stranger.post(path, {}, content_type="application/json").status_code == 404
        assert owner.post(path, {}, content_type="application/json").status_code == 403
    at_queue = stranger.post("/api/v1/queues/GAMMA/rebroker/", {}, content_type="application/json")
    assert at_queue.json() == {"jobs": 0, "stay": 0, "why": ""}
    assert owner.post("/api/v1/queues/GAMMA/rebroker/", {}, content_type="application/json").status_code == 403
    assert waiting() == {"GAMMA": 3}


def test_what_is_to_stay_stays_and_the_answer_says_why(task: Task) -> None:
    operator, path = person("op", "operator"), f"/api/v1/jobs/{job()}/rebroker/"
    ComputingQueue.objects.filter(name="GAMMA").update(catchall="disableReassign")
    said = "its queue is paused, or disableReassign stands there"
    at_queue = operator.post("/api/v1/queues/GAMMA/rebroker/", {}, content_type="application/json")
    assert at_queue.json() == {"jobs": 0, "stay": 3, "why": said}
    refused = operator.post(path, {}, content_type="application/json")
    assert (refused.status_code, refused.json()["detail"]) == (409, f"Job {job()} stays where it is: {said}.")
    ComputingQueue.objects.update(catchall="")
    Task.objects.filter(id=task.id).update(site="GAMMA")
    assert "the task names its queue" in operator.post(path, {}, content_type="application/json").json()["detail"]
    running = Job.objects.get(status="running").id
    refused = operator.post(f"/api/v1/jobs/{running}/rebroker/", {}, content_type="application/json")
    assert (refused.status_code, "it does not wait for a pilot" in refused.json()["detail"]) == (409, True)
    assert waiting() == {"GAMMA": 3}
