"""Pilots on pages: their list in the order of registration with pages and filters, one with its jobs, and workers by queue."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.kernel import clock
from brokerage.ledger.pilots import register
from brokerage.models import ComputingQueue, IdleSlot, Job, Pilot
from monitoring.queries import pilots as queries
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import run_agents, take
from tests.monitoring.answers import counted, text
from tests.pages.scene import visitor

pytestmark = pytest.mark.django_db
MOST_STATEMENTS = 12


def ids(answer: object) -> list[str]:
    return re.findall(r'<a href="/pilots/([0-9a-f-]{36})/"', text(answer))


@pytest.fixture
def asking(client: Client) -> Client:
    client.force_login(visitor())
    return client


def some(queue: ComputingQueue, n: int) -> list[str]:
    """Pilots of a queue, two of each moment, so that the order needs more than the time; newest first as they are listed."""
    now, made = clock.now(), [uuid4() for _ in range(n)]
    for i, number in enumerate(made):
        register(Pilot(id=number, queue=queue, host=f"wn{i}", slot="s", core_count=1))
        Pilot.objects.filter(id=number).update(registered_at=now - timedelta(hours=1 + i // 2))
    found = Pilot.objects.filter(id__in=made).order_by("-registered_at", "-id").values_list("id", flat=True)
    return [str(number) for number in found]


def test_pages_follow_one_another_and_back_and_csv_has_all(asking: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    (queue,) = grid("ALPHA")
    Pilot.objects.all().delete()
    wanted = some(queue, 7)
    seen, address = [], "/pilots.json?limit=3"
    while address:
        page = asking.get(address).json()
        seen += [row["id"] for row in page["rows"]]
        before, address = page["previous"], page["next"]
    assert seen == wanted
    assert [row["id"] for row in asking.get(before).json()["rows"]] == wanted[3:6]
    seen, address = [], "/api/v1/pilots/?page_size=3"
    while address:
        page = asking.get(address).json()
        seen += [row["id"] for row in page["results"]]
        before, address = page["previous"], page["next"]
    assert seen == wanted
    assert [row["id"] for row in asking.get(before).json()["results"]] == wanted[3:6]
    assert [line.split(",")[0] for line in text(asking.get("/pilots.csv")).splitlines()[1:]] == wanted
    monkeypatch.setattr(queries, "LOOKED_AT", 3)  # what is looked for among few at a time is found all the same
    assert ids(asking.get("/pilots/?host=wn6")) == []
    assert "among the pilots looked at so far" in text(asking.get("/pilots/?host=wn6"))
    assert [line.split(",")[4] for line in text(asking.get("/pilots.csv?host=wn6")).splitlines()[1:]] == ["wn6"]
    Pilot.objects.update(registered_at=clock.now())  # together: nobody is listed twice
    told = [line.split(",")[0] for line in text(asking.get("/pilots.csv?slot=s")).splitlines()[1:]]
    assert sorted(told) == sorted(wanted)


def test_a_list_tells_what_each_does_and_a_page_its_jobs(asking: Client) -> None:
    alpha, beta = grid("ALPHA", "BETA")
    submitted(parameters("t1"))
    run_agents()
    waiting = Job.objects.filter(status="activated").latest("id").computing_queue_id
    leased = take(alpha if waiting == alpha.id else beta)
    holder = Job.objects.get(id=leased.job_id).lease_holder
    assert holder is not None
    busy = Pilot.objects.get(id=holder)
    idle, gone = pilot(alpha, "idle"), pilot(alpha, "gone")
    now = clock.now()
    IdleSlot.objects.create(pilot_id=idle, queue=alpha, core_count=1, until=now + timedelta(minutes=1))
    Pilot.objects.filter(id=gone).update(last_seen=now - timedelta(hours=2))
    states = {row["id"]: row["state"] for row in asking.get("/pilots.json").json()["rows"]}
    assert (states[str(busy.id)], states[str(idle)], states[str(gone)]) == ("busy", "idle", "gone")
    for state in ("busy", "idle", "quiet", "gone"):
        found = {row["id"] for row in asking.get(f"/pilots.json?state={state}").json()["rows"]}
        assert found == {number for number, told in states.items() if told == state}
    with CaptureQueriesContext(connection) as statements:
        page = text(asking.get(f"/pilots/{busy.id}/"))
    assert counted(statements) <= MOST_STATEMENTS
    assert f'<a href="/jobs/{leased.job_id}/">job {leased.job_id}</a>' in page
    assert asking.get(f"/pilots/{busy.id}.json").json()["jobs"] == [leased.job_id]
    rest = asking.get(f"/api/v1/pilots/{busy.id}/").json()
    assert (rest["state"], rest["jobs"], [job["id"] for job in rest["holds"]]) == ("busy", [leased.job_id], [leased.job_id])
    assert rest["last_seen"] and rest["ended"] == []
    assert asking.get(f"/api/v1/pilots/{uuid4()}/").status_code == 404
    assert asking.delete("/api/v1/pilots/")["Allow"] == "GET, HEAD, OPTIONS, POST"
    with CaptureQueriesContext(connection) as statements:
        workers = asking.get("/workers.json").json()["rows"]
    assert counted(statements) <= MOST_STATEMENTS
    told = {row["queue"]: (row["busy"], row["idle"], row["quiet"]) for row in workers}
    assert sum(busy for busy, _, _ in told.values()) == 1
    assert told["ALPHA"][1:] == (1, sum(s == "quiet" for s in states.values()) - told["BETA"][2])
    assert asking.get(f"/pilots/{uuid4()}/").status_code == 404


def test_jobs_of_other_vos_are_counted_but_not_named(asking: Client) -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters("t1", vo="demo"))
    run_agents()
    leased = take(queue)
    stranger = Client()
    stranger.force_login(ensure_user("eve", roles=[("other", "operator")]))
    (row,) = stranger.get("/pilots.json?state=busy").json()["rows"]
    (same,) = stranger.get("/api/v1/pilots/?state=busy").json()["results"]
    assert (same["jobs"], same["others"]) == ([], 1)
    assert (row["jobs"], row["others"]) == ([], 1)
    assert f"/jobs/{leased.job_id}/" not in text(stranger.get(f"/pilots/{row['id']}/"))


def test_the_list_is_read_along_its_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {Pilot.objects.order_by('-registered_at', '-id')[:10].query}")
        assert "pilot_by_time" in str(cursor.fetchall())
