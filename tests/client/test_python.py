"""The Python client, in this process against the real server: submit, list, wait, why, jobs, errors, commands."""

from __future__ import annotations

import threading

import pytest

from broker_site.client import Client, Refused, TimedOut, Unreachable, Unusable
from broker_site.roof.embedded.process import free_port
from tests.api.people import person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import BAD, run_agents, run_jobs
from workqueues.models import Task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]


@pytest.fixture
def client(url: str) -> Client:
    return Client(url, person("ada", ("demo", "submitter")).token)


def test_a_task_is_submitted_and_waited_for(client: Client) -> None:
    (queue,) = grid()
    task = client.tasks.submit(parameters("t1"))
    assert (task.status, task.name, task.ended) == ("registered", "t1", False)
    with pytest.raises(TimedOut, match=r"it is registered after 0\.1 s, and goes on"):
        task.wait(0.1)
    seen: list[str] = []
    waiting = threading.Thread(target=lambda: task.wait(30, lambda each: seen.append(each.status)))
    waiting.start()
    run_agents()
    run_jobs(queue)
    run_agents()
    waiting.join(40)
    assert (task.status, task.ended, task.well, seen[-1]) == ("done", True, True, "done")
    assert (task.progress().done, task.progress().total, task.progress().percent) == (4, 4, 100)
    assert [job.status for job in task.jobs()] == ["finished"] * 4
    assert {file["lfn"] for file in task.files(type="output")} == {f"t1.EVT.{n:06d}.txt" for n in (1, 2, 3, 4)}
    assert [move["new"] for move in task.history()][-1] == "done"
    assert next(task.jobs(limit=1)).whole()["result"]["exit_code"] is None


def test_a_key_makes_one_task_of_two_submissions(client: Client) -> None:
    assert client.tasks.submit(parameters("t1"), "k").id == client.tasks.submit(parameters("t1"), "k").id
    with pytest.raises(Refused) as refused:
        client.tasks.submit(parameters("t1", nEvents=50), "k")
    assert (refused.value.status, refused.value.exit_code) == (422, 5)


def test_lists_go_over_their_pages_and_stop_where_told(client: Client) -> None:
    made = [submitted(parameters(f"t{n}")).id for n in range(5)]
    assert [task.id for task in client.tasks.list(limit=3)] == made[:1:-1]
    assert [task.id for task in client.tasks.list(limit=None, task_name="t*")] == made[::-1]
    assert list(client.tasks.list(status="done")) == []
    assert [row["name"] for row in client.queues.list()] == []


def test_why_errors_and_commands(client: Client) -> None:
    (queue,) = grid()
    task = client.tasks.submit(parameters("t1", nEvents=10, maxAttempt=1))
    run_agents()
    run_jobs(queue, BAD)
    run_agents()
    (error,) = client.tasks.get(task.id).errors()
    assert (error["code"], error["n_jobs"], error["message"]) == ("PAYLOAD_EXIT", 1, "exit code 1")
    assert task.retry(comment="once more")
    run_agents()
    assert task.refresh().status == "running"
    assert task.pause("look")
    assert task.refresh().why().headline.startswith("Paused")
    assert task.kill()
    run_agents()
    assert task.wait(5).status == "aborted"
    assert Task.objects.get().status == "aborted"


def test_what_is_refused_has_its_faults_by_field(client: Client, url: str) -> None:
    with pytest.raises(Refused) as refused:
        client.tasks.submit(parameters("t1", nEvents="many", nope=1))
    assert {(fault.field, fault.rule) for fault in refused.value.faults} >= {("nEvents", "type"), ("nope", "unknown")}
    assert refused.value.trace_id
    with pytest.raises(Refused, match="Not found"):
        client.tasks.get(999)
    with pytest.raises(Unreachable, match="does not answer"):
        Client(f"http://127.0.0.1:{free_port()}", "gbu_x").tasks.get(1)
    with pytest.raises(Unusable, match="Not the address of a server"):
        Client("broker.example.org", "gbu_x")
    with pytest.raises(Unusable, match="Not a name"):
        client.queues.get("..")
