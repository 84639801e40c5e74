"""What a supervisor, a load balancer and Prometheus see."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from django.test import Client
from pytest_django import Settings

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.duties import AGENTS, late_after_s
from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.kernel import clock
from broker_site.roof import readiness
from brokerage.models import IdleHour, LocalCopy, TallyGroup, TallyLevel, TallyMark, TaskLevel
from brokerage.queries.file_arrival import arrival_of
from brokerage.rules.explain.file_arrival import sentence
from monitoring.queries.agents import agent_rows
from tests.builders import grid
from tests.moving import asked, marked_grid, stored_files, wanted

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_seen() -> Iterator[None]:
    readiness.forget()
    yield
    readiness.forget()


def test_a_system_whose_agents_never_ran_is_alive_and_not_ready(client: Client) -> None:
    assert client.get("/healthz").content == b"ok\n"
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "agent refine has never ended a run" in answer.json()["problems"]


@pytest.mark.django_db(transaction=True)
def test_a_system_is_ready_when_every_agent_ended_a_run_lately(client: Client, redis_settings: str) -> None:
    all_agents_well()
    answer = client.get("/readyz")
    assert answer.json() == {"ready": True, "problems": []}
    assert answer.status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("seconds", "late"), [(-5, False), (5, True)])
def test_an_agent_is_late_at_the_same_age_here_and_on_the_page(
    client: Client, redis_settings: str, seconds: float, late: bool
) -> None:
    all_agents_well()
    age = timedelta(seconds=late_after_s(gdpconfig.value("agents", "PERIOD_refine")) + seconds)
    Agent.objects.filter(name="refine").update(last_success=clock.now() - age)
    told = [problem for problem in client.get("/readyz").json()["problems"] if problem.startswith("agent refine last ended")]
    assert (bool(told), {row.name: row.health for row in agent_rows()}["refine"]) == (late, "late" if late else "well")


@pytest.mark.django_db(transaction=True)
def test_copies_that_no_mover_takes_are_told_after_a_minute(client: Client, redis_settings: str, tmp_path: Path) -> None:
    all_agents_well()
    marked_grid(tmp_path, "ALPHA", "BETA")
    transfer, _ = asked(*map(wanted, stored_files(tmp_path, [b"first", b"second"], "ALPHA")))
    run_agent("transfer", looked=True)
    assert client.get("/readyz").json()["problems"] == []
    assert "it waits for a mover since" in sentence(arrival_of(transfer.file, "BETA_DISK"))
    LocalCopy.objects.update(created_at=TransactionNow() - timedelta(seconds=70))
    readiness.forget()
    (told,) = client.get("/readyz").json()["problems"]
    assert told == "2 copies wait for a mover, the oldest for 70 s: no process `manage.py mover` is at work"
    LocalCopy.objects.filter(key=LocalCopy.objects.first().key).update(  # type: ignore[union-attr]
        status="copying", mover="m", claimed_until=Now() + timedelta(minutes=1)
    )
    readiness.forget()
    assert client.get("/readyz").json()["problems"] == [], "the other one has its turn"


def all_agents_well() -> None:
    Agent.objects.bulk_create(Agent(name=name, last_success=clock.now()) for name in AGENTS)


def written() -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT at, length(filler) FROM agency_writeprobe")
        return cursor.fetchall()


@pytest.mark.django_db(transaction=True)
def test_it_writes_once_in_five_seconds_whoever_asks(
    client: Client, redis_settings: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_agents_well()
    assert client.get("/readyz").status_code == 200
    first = written()
    assert [size for _, size in first] == [readiness.FILLER]
    with monkeypatch.context() as patch:
        patch.setattr(readiness.redis.Redis, "set", lambda *args, **more: pytest.fail("looked again"))
        assert client.get("/readyz").status_code == 200
    readiness.forget()  # as another process would ask
    assert client.get("/readyz").status_code == 200
    assert written() == first
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agency_writeprobe SET at = at - interval '6 s'")
    readiness.forget()
    assert client.get("/readyz").status_code == 200
    assert written() != first


FAULTS = {
    "disk_full": "the disk of the database is full",
    "out_of_memory": "the database is out of memory",
    "read_only_sql_transaction": "the database takes no writes",
    "insufficient_privilege": "the role of this process may not write to the database",
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_write_that_fails_is_told_by_its_cause(client: Client, redis_settings: str, fault: str) -> None:
    """PostgreSQL itself raises the error, at the write."""
    all_agents_well()
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE agency_writeprobe")
        cursor.execute(
            f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE {fault}; END $$;"
            " CREATE TRIGGER fail BEFORE INSERT ON agency_writeprobe EXECUTE FUNCTION fail()"
        )
        try:
            answer = client.get("/readyz")
        finally:
            cursor.execute("DROP FUNCTION fail CASCADE")
    assert answer.status_code == 503
    assert answer.json()["problems"] == [FAULTS[fault]]


@pytest.mark.django_db(transaction=True)
def test_a_lock_on_what_it_writes_does_not_hold_it_for_long(client: Client, redis_settings: str) -> None:
    all_agents_well()
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE agency_writeprobe")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE agency_writeprobe")
        assert client.get("/readyz").json()["problems"] == ["the database did not take a write within 3 s"]


@pytest.mark.django_db(transaction=True)
def test_too_many_clients_are_told_in_words(client: Client, redis_settings: str) -> None:
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 0')
        try:
            user = connection.settings_dict["USER"]
            cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
            if cursor.fetchone() == (True,):
                pytest.skip(f"the limit does not hold for a superuser, {user}")
            answer = client.get("/readyz")
        finally:
            cursor.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT -1')
    assert answer.json()["problems"] == ["the database has no connection left: too many clients"]


@pytest.mark.django_db(transaction=True)
def test_a_redis_that_is_down_is_the_first_cause(client: Client, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["problems"][0] == "Redis does not answer: no messages between agents, no limits of requests"
    assert "agent refine has never ended a run" in answer.json()["problems"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FATAL:  sorry, too many clients already", "the database has no connection left: too many clients"),
        ('connection to server at "10.0.0.7" failed: Connection refused', "nothing listens at the address of the database"),
        ("FATAL:  the database system is starting up", "the database is starting"),
        ("FATAL:  could not write init file: No space left on device", "the disk of the database is full"),
        ("timeout expired", "the database does not answer within 3 s"),
        ("something of a new release", "the database fails: OperationalError"),
    ],
)
def test_why_no_connection_can_be_had_is_told_without_hosts_and_users(text: str, words: str) -> None:
    assert readiness.in_words(OperationalError(text)) == words


def test_metrics_are_for_who_may_read_agents(client: Client, admin_client: Client) -> None:
    assert client.get("/metrics").status_code == 401
    group = TallyGroup.objects.create(family="vo", vo="demo")
    TallyLevel.objects.create(group=group, what="running", n=3)
    TaskLevel.objects.create(vo="demo", state="registered", n=1)
    TallyMark.objects.create(seen="1:1:", counted_at=datetime(2026, 5, 4, tzinfo=UTC))
    text = admin_client.get("/metrics").content.decode()
    assert 'gridbroker_tasks{status="registered"} 1.0' in text
    assert 'gridbroker_jobs{status="running"} 3.0' in text, "as the agent tally counted them"
    assert "gridbroker_jobs_counted_timestamp_seconds 1.7778528e+09" in text


def test_metrics_say_how_many_slots_idle_beside_what(admin_client: Client) -> None:
    alpha, beta = grid("ALPHA", "BETA")
    now = clock.now()
    IdleHour.objects.create(queue=alpha, hour=now, looked_at=now, idle_s=60, beside_s=20, held_s=10, idle=3, beside=1, held=0)
    IdleHour.objects.create(queue=beta, hour=now, looked_at=now - timedelta(minutes=9), idle_s=5, idle=1)
    text = admin_client.get("/metrics").content.decode()
    assert 'gridbroker_idle_slots{beside="work",queue="ALPHA"} 1.0' in text
    assert 'gridbroker_idle_slots{beside="nothing",queue="ALPHA"} 2.0' in text
    assert 'gridbroker_idle_seconds_last_day{beside="nothing",queue="ALPHA"} 30.0' in text
    assert 'gridbroker_idle_slots{beside="nothing",queue="BETA"} 0.0' in text, "nobody has looked lately"
    assert 'gridbroker_idle_seconds_last_day{beside="nothing",queue="BETA"} 5.0' in text
