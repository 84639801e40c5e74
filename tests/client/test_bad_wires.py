"""Servers that are away, busy, or no GridBroker; answers that are lost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection, transaction

from broker_site.roof.embedded.process import free_port
from tests.builders import grid, parameters, submitted
from tests.client.broker import Broker, ended
from tests.client.conftest import BrokerOf
from tests.client.relay import breaking
from tests.flow.steps import run_agents
from tests.web.serving import Server, serving
from workqueues.ledger.commands import command
from workqueues.models import Task, TaskChange

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]


def test_a_submission_whose_answer_is_lost_is_sent_again_and_is_one_task(server: Server, broker_of: BrokerOf) -> None:
    with breaking(server.port, 2) as url:
        said = broker_of("ada", ("demo", "submitter"), at=url)("submit", "-", "-q", stdin=json.dumps(parameters("t1")))
    assert (said.code, said.out) == (0, f"{Task.objects.get().id}\n"), said.err


def test_where_every_answer_is_lost_the_key_is_told_with_which_it_stays_one_task(server: Server, broker_of: BrokerOf) -> None:
    document = json.dumps(parameters("t1"))
    with breaking(server.port, 1000) as url:
        ada = broker_of("ada", ("demo", "submitter"), at=url)
        said = ada("submit", "-", "-q", stdin=document)
    assert said.code == 6
    key = said.err.partition("--key ")[2].split()[0]
    again = ada("submit", "-", "-q", "--key", key, stdin=document, GRIDBROKER_URL=f"http://127.0.0.1:{server.port}")
    assert (again.code, again.out) == (0, f"{Task.objects.get().id}\n")


def test_a_command_whose_answer_is_lost_is_not_given_twice(server: Server, broker_of: BrokerOf) -> None:
    task = submitted(parameters("t1"))
    with breaking(server.port, 1000) as url:
        said = broker_of("ada", ("demo", "submitter"), at=url)("pause", str(task.id))
    assert (said.code, "does not answer" in said.err) == (6, True)
    task.refresh_from_db()
    assert task.status == "paused"
    assert TaskChange.objects.filter(task_id=task.id, new="paused").count() == 1


def test_a_server_that_is_gone_is_6_after_some_tries(ada: Broker) -> None:
    began = time.monotonic()
    said = ada("ls", GRIDBROKER_URL=f"http://127.0.0.1:{free_port()}")
    assert (said.code, said.out) == (6, "")
    assert "does not answer: Connection refused" in said.err
    assert 1 < time.monotonic() - began < 15


def test_a_busy_server_is_asked_again_after_the_time_that_it_names(ada: Broker) -> None:
    """A lock on the table outlasts what a statement waits for; it is gone when the client comes again."""
    submitted(parameters("t1"))
    locked, free = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE workqueues_task IN ACCESS EXCLUSIVE MODE")
            locked.set()
            free.wait(30)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert locked.wait(10)
    running = ada.begin("ls", "-q")
    assert running.stderr is not None
    line = running.stderr.readline()
    free.set()
    holder.join()
    assert "the server is busy (503), next try in 2 s" in line
    out, _ = running.communicate(timeout=30)
    assert (running.returncode, out) == (0, f"{Task.objects.get().id}\n")


def test_a_watch_outlasts_a_server_that_starts_again(broker_of: BrokerOf, redis_url: str, tmp_path: Path) -> None:
    grid()
    task = submitted(parameters("t1"))
    with serving(tmp_path / "one.log", REDIS_URL=redis_url) as first:
        ada = broker_of("ada", ("demo", "submitter"), at=f"http://127.0.0.1:{first.port}")
        watching = ada.begin("watch", str(task.id), "--every", "0.2", "-q")
        assert watching.stderr is not None
        assert "registered" in watching.stderr.readline()
    command(task.id, "kill", "user:ada")
    run_agents()
    time.sleep(2)
    assert watching.poll() is None
    with serving(tmp_path / "two.log", at=str(first.port), REDIS_URL=redis_url):
        said = ended(watching)
    assert (said.code, said.out) == (1, f"{task.id}\n")
    assert "does not answer, next try" in said.err


@pytest.fixture
def other_site(tmp_path: Path) -> Iterator[str]:
    """A web server that is no GridBroker."""
    port = free_port()
    (tmp_path / "site").mkdir()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "-d", str(tmp_path / "site")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(10)


def test_what_is_no_gridbroker_is_told_so(ada: Broker, other_site: str) -> None:
    said = ada("ls", GRIDBROKER_URL=other_site)
    assert said.code in (3, 6)
    assert "gives a page instead of a problem document" in said.err
    assert "broker login --check" in said.err


def test_a_redirect_of_the_server_to_itself_is_followed_and_to_elsewhere_is_not(ada: Broker, url: str) -> None:
    task = submitted(parameters("t1"))
    assert ada("api", "GET", f"/tasks/{task.id}").documents[0]["id"] == task.id
    port = url.rpartition(":")[2]
    elsewhere = ada("api", "GET", f"/tasks/{task.id}", GRIDBROKER_URL=f"http://localhost:{port}/nowhere/..")
    assert elsewhere.code != 0
