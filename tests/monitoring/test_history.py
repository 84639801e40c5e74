"""What queues, shares, users and tasks did over time: pages, JSON and CSV say what the histories of the jobs say."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.credentials import ensure_user
from brokerage.ledger.tally import count_changes
from brokerage.models import Job, JobChange, TallyGroup, TallyLevel
from brokerage.rules.dispatch.settlement import Samples
from brokerage.states import JOB
from monitoring.queries import task_history
from tests.api.test_series import lived
from tests.builders import grid, parameters, submitted
from tests.flow.steps import BAD, end, good, run_agents, try_take
from tests.monitoring.answers import counted, text
from tests.pages.scene import PASSWORD, visitor
from workqueues.models import Dataset, GlobalShare, TaskChange

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 5, 4, 10, tzinfo=UTC)
MOST = 12
"""Statements of a page over time."""


@pytest.fixture
def client() -> Client:
    made = Client()
    made.force_login(visitor())
    return made


def data(client: Client, address: str) -> dict[str, Any]:
    answer = client.get(address)
    assert answer.status_code == 200, text(answer)
    found: dict[str, Any] = json.loads(answer.content)
    return found


def lines(client: Client, address: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text(client.get(address)))))


def page(client: Client, address: str) -> str:
    with CaptureQueriesContext(connection) as statements:
        answer = client.get(address)
    assert answer.status_code == 200, text(answer)
    assert counted(statements) <= MOST, address
    return text(answer)


def moved(what: str, **jobs: object) -> int:
    """How many jobs made this move."""
    return JobChange.objects.filter(new=what, job_id__in=Job.objects.filter(**jobs).values("id")).count()


def test_a_queue_over_time_is_what_its_jobs_did(client: Client) -> None:
    lived(grid("ALPHA", "BETA"), random.Random(3))
    failed = Job.objects.filter(status="failed", spec__vo="demo").earliest("id")
    name = failed.placed_at.name
    at = {"computing_queue__name": name, "spec__vo": "demo"}
    found = data(client, f"/queues/{name}/plots.json")
    for what in ("finished", "failed"):
        assert sum(step[what] for step in found["rows"]) == moved(what, **at)
    alive = Counter(Job.objects.filter(ended_at=None, **at).values_list("status", flat=True))
    assert found["rows"][-1]["waiting"] == sum(alive[state] for state in JOB.waiting)
    assert [row["at"] for row in lines(client, f"/queues/{name}/plots.csv")] == [row["at"] for row in found["rows"]]
    shown = page(client, f"/queues/{name}/plots/?window=7d")
    assert f"finished {moved('finished', **at)}, failed {moved('failed', **at)}." in shown
    assert "jobbroker.NQUEUELIMITSITE" in shown
    errors = data(client, f"/errors.json?queue={name}")["rows"]
    assert sum(row["jobs"] for row in errors) == moved("failed", **at)
    assert f'href="/errors/?window=7d#error-{errors[0]["id"]}"' in shown
    assert client.get(f"/queues/{name}/plots.json?window=1y").status_code == 400
    assert "is no window" in page(client, f"/queues/{name}/plots/?window=1y")
    assert client.get("/queues/NONE/plots/").status_code == 404


def halves() -> None:
    """Two shares of VO demo below one; all its tasks are of the first."""
    GlobalShare.objects.create(name="Top", vo="demo", value=1)
    GlobalShare.objects.create(name="Data", vo="demo", value=60, parent_id="Top")
    GlobalShare.objects.create(name="Rest", vo="demo", value=40, parent_id="Top", position=1)


def test_a_share_over_time_says_what_it_used_what_it_should_have_and_who_uses_it(client: Client) -> None:
    halves()
    queues = grid("ALPHA", "BETA")
    lived(queues, random.Random(3))
    for _ in range(3):
        try_take(queues[0])
    while count_changes(1000):
        continue
    alive = Job.objects.filter(ended_at=None, spec__vo="demo")
    used = alive.filter(status__in=list(JOB.leased)).count()
    assert used
    for name, part in (("Data", 0.6), ("Rest", 0.4), ("Top", 1.0)):
        last = data(client, f"/shares/{name}.json")["rows"][-1]
        own = 0 if name == "Rest" else used
        assert (last["used"], last["used_by_all"], last["target"]) == (own, used, round(used * part, 1))
        assert last["waiting"] == (0 if name == "Rest" else alive.filter(status__in=list(JOB.waiting)).count())
    told = {user["user_name"]: user for user in data(client, "/shares/Top.json")["users"]}
    for name in ("ada", "bob"):
        own_jobs = alive.filter(spec__user_name=name)
        assert told[name]["running"] == own_jobs.filter(status__in=list(JOB.leased)).count()
        assert told[name]["failed"] == moved("failed", spec__user_name=name, spec__vo="demo")
        assert told[name]["shares"] == ["Data"]
    shown = page(client, "/shares/Data/?window=7d")
    assert f"Jobs at the end: used {used}, target {round(used * 0.6, 1)}." in shown
    assert 'href="/users/bob/"' in shown
    assert len(lines(client, "/shares/Data.csv")) == 288
    assert client.get("/shares/Data.csv?window=x").status_code == 400
    client.force_login(ensure_user("eve", password=PASSWORD, roles=[("other", "operator")]))
    assert client.get("/shares/Data/").status_code == 404


def test_users_are_listed_by_their_jobs_and_each_has_a_page(client: Client) -> None:
    halves()
    lived(grid("ALPHA", "BETA"), random.Random(3))
    odd = "/DC=ch/CN=<b>x</b>"
    group = TallyGroup.objects.create(family="user", vo="demo", share="Data", user_name=odd)
    TallyLevel.objects.create(group=group, what="running", n=2)
    alive = Counter(Job.objects.filter(ended_at=None, spec__vo="demo").values_list("spec__user_name", flat=True))
    found = data(client, "/users.json")
    assert {row["user_name"]: row["waiting"] + row["running"] for row in found["rows"]} == {"ada": 0, "bob": 0, odd: 2} | alive
    assert [row["user_name"] for row in lines(client, "/users.csv?q=AD&share=Top")] == ["ada"]
    assert data(client, "/users.json?share=Rest")["rows"] == []
    assert client.get("/users.json?colour=red").status_code == 400
    assert "&lt;b&gt;" in page(client, "/users/")
    for name in ("ada", quote(odd, safe="/")):
        shown = page(client, f"/users/{name}/?window=7d")
        assert "Live tasks" in shown
        assert "<b>" not in shown
    ada = data(client, "/users/ada.json")["rows"]
    assert sum(step["failed"] for step in ada) == moved("failed", spec__user_name="ada", spec__vo="demo")
    assert ("PAYLOAD_EXIT" in page(client, "/users/ada/")) == bool(moved("failed", spec__user_name="ada", spec__vo="demo"))
    assert client.get("/users/nobody/").status_code == 404
    client.force_login(ensure_user("eve", password=PASSWORD, roles=[("third", "operator")]))
    assert data(client, "/users.json")["rows"] == []
    assert client.get("/users/ada/").status_code == 404


def test_a_task_over_time_adds_up_and_tells_what_happened(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    queues = grid("ALPHA", "BETA", "GAMMA", "DELTA")
    task = submitted(parameters("t", nEvents=300, nEventsPerJob=10))
    run_agents(2)
    for n in range(24):
        leased = next(lease for queue in queues if (lease := try_take(queue)) is not None)
        told = replace(
            good(leased.job_id),
            start_time=NOW,
            end_time=NOW,
            metrics={"max_rss_mb": 700 + n},
            samples=Samples(1, [9, 700 + n], [0, 1]),
        )
        end(leased, BAD if n % 8 == 7 else told)
    run_agents(1)
    task.refresh_from_db()
    by_status = Counter(Job.objects.filter(task_id=task.id).values_list("status", flat=True))
    found = data(client, f"/tasks/{task.id}/plots.json")
    assert sum(step["finished"] for step in found["rows"]) == by_status["finished"] == found["jobs_last_hour"]
    assert sum(step["failed"] for step in found["rows"]) == by_status["failed"] == 3
    assert sum(step["events"] for step in found["rows"]) == 10 * by_status["finished"]
    assert sum((Counter(row["jobs"]) for row in found["queues"]), Counter()) == by_status
    for name in ("run_time", "memory"):
        assert sum(bar["n"] for bar in found[name]["bars"]) == by_status["finished"]
    assert found["memory"]["bars"][-1]["low"] <= 722 < found["memory"]["bars"][-1]["high"]
    assert [one["what"] for one in found["timeline"] if one["kind"] == "state"] == list(
        TaskChange.objects.filter(task_id=task.id).order_by("-epoch").values_list("new", flat=True)
    )
    files = Dataset.objects.get(task=task, type="pseudo_input")
    assert found["estimate"]["jobs_to_come"] == files.n_files - files.n_files_finished
    assert found["estimate"]["least_s"] < found["estimate"]["seconds"] < found["estimate"]["most_s"]
    shown = page(client, f"/tasks/{task.id}/plots/")
    for part in ("Done, as an estimate", "Jobs that ended so far", "Run time", "brokerage", "time in each state"):
        assert part in shown
    assert len(lines(client, f"/tasks/{task.id}/plots.csv")) == len(found["rows"])
    measured = Job.objects.filter(task_id=task.id, status="finished").latest("id").id
    shown = text(client.get(f"/jobs/{measured}/"))
    assert "MB at the end: used 7" in shown
    assert "Cores at the end: busy 1.0, of the job 1." in shown
    monkeypatch.setattr(task_history, "BIG", 1)  # as of a task with many jobs: what was read stands for some seconds, and says so
    first = data(client, f"/tasks/{task.id}/plots.json")
    Job.objects.filter(id=measured).update(ended_at=NOW)
    assert data(client, f"/tasks/{task.id}/plots.json") == first and f"{first['as_of'][11:19]} UTC" in page(
        client, f"/tasks/{task.id}/plots/"
    )
    monkeypatch.setattr(task_history, "KEPT_S", 0.0)
    later = data(client, f"/tasks/{task.id}/plots.json")
    assert later["as_of"] > first["as_of"] and later["jobs_last_hour"] == first["jobs_last_hour"] - 1
    client.force_login(ensure_user("eve", password=PASSWORD, roles=[("other", "operator")]))
    monkeypatch.setattr(task_history, "KEPT_S", 60.0)
    assert client.get(f"/tasks/{task.id}/plots.json").status_code == 404
