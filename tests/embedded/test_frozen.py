"""A process that has a pid and does not answer is as good as dead: it is ended and started anew, and the console says so."""

from __future__ import annotations

import os
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator

import psutil
import psycopg2
import pytest
import redis

from broker_site.roof.embedded import Instance
from broker_site.roof.embedded.process import Identity
from broker_site.roof.supervisor import Pilot, System, running
from broker_site.roof.supervisor.child import Spec

pytestmark = pytest.mark.servers
INSTANCE = f"frozen-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
FROZEN_S = 2.0
LOG_BYTES = 100_000
CHATTER = ("/bin/sh", "-c", "while :; do echo a line of a fault that does not end; done")


def nothing(system: System) -> tuple[Pilot, ...]:
    return ()


def until(happened: Callable[[], object], seconds: float = 40.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.05)
    return False


def answers(system: System) -> bool:
    try:
        with urllib.request.urlopen(f"{system.url}/healthz", timeout=2) as answer:  # noqa: S310 - our own http URL
            return bool(answer.status == 200)
    except OSError:
        return False


def stop(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


@pytest.fixture(scope="module")
def said() -> list[str]:
    return []


@pytest.fixture(scope="module")
def system(said: list[str]) -> Iterator[System]:
    """Web and both servers; a silence of two seconds counts."""
    with running(
        INSTANCE,
        prepare=nothing,
        worker=False,
        beat=False,
        say=said.append,
        frozen_s=FROZEN_S,
        log_bytes=LOG_BYTES,
    ) as made:
        yield made
    assert Instance(INSTANCE, environ={}).remove()


def test_a_frozen_web_server_is_started_anew(system: System, said: list[str]) -> None:
    web = system.children["web"]
    before = web.pids()
    stop(before)
    assert until(lambda: web.starts == 2 and answers(system))
    assert not set(before) & set(web.pids())
    assert [line for line in said if "web has not answered for" in line]


def test_one_frozen_process_of_the_web_server_is_replaced(system: System) -> None:
    web = system.children["web"]
    frozen = Identity.of(web.pids()[-1])
    assert frozen
    frozen.signal(signal.SIGSTOP)
    assert until(lambda: not frozen.alive() and answers(system))


def test_a_frozen_redis_is_started_anew(system: System, said: list[str]) -> None:
    server = system.instance.redis
    assert server
    assert server.known
    before = server.known.pid
    stop([before])
    client = redis.Redis.from_url(system.services.redis_url, socket_timeout=1, socket_connect_timeout=1)

    def pings() -> bool:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False

    assert until(pings)
    now = server.identity()
    assert now
    assert now.pid != before
    client.close()
    assert [line for line in said if "Redis has not answered for" in line]


def test_a_frozen_postgresql_is_started_anew(system: System, said: list[str]) -> None:
    server = system.instance.postgres
    assert server
    identity = server.identity()
    assert identity
    stop([identity.pid, *(each.pid for each in psutil.Process(identity.pid).children())])

    def selects() -> bool:
        try:
            psycopg2.connect(system.services.database_url, connect_timeout=2).close()
        except psycopg2.OperationalError:
            return False
        return True

    began = time.monotonic()
    assert until(selects)
    assert time.monotonic() - began < 20, "frozen processes are not waited for"
    assert [line for line in said if "PostgreSQL has not answered for" in line]


def test_an_answering_server_that_refuses_is_left_alone(system: System) -> None:
    """Too many clients, a wrong password, a recovery: the server has said so itself, it is not frozen."""
    server = system.instance.postgres
    assert server
    identity = server.identity()
    with server.administer() as connection, connection.cursor() as cursor:
        cursor.execute("ALTER ROLE gridbroker CONNECTION LIMIT 0")
        time.sleep(2 * FROZEN_S)
        cursor.execute("ALTER ROLE gridbroker CONNECTION LIMIT -1")
    assert server.identity() == identity


def test_what_dies_again_and_again_waits_longer_and_costs_one_line(system: System, said: list[str]) -> None:
    child = system.supervisor.add(Spec("crashing", ("/bin/false",), {}, system.folder))
    assert until(lambda: child.starts >= 4)
    lines = [line for line in said if line.startswith("crashing")]
    assert len(lines) == 1, "one line a cause"
    assert "exit code 1" in lines[0]


def test_a_postgresql_that_cannot_start_is_tried_ever_more_seldom_and_costs_one_line(system: System, said: list[str]) -> None:
    server = system.instance.postgres
    assert server
    control = server.place.data / "global" / "pg_control"
    control.rename(control.with_suffix(".away"))
    before = len(said)
    system.kill("postgres")
    assert until(lambda: any("PostgreSQL cannot be started" in line for line in said[before:]))
    log = server.place.logs / "postgres.log"
    at = log.stat().st_size
    time.sleep(4)
    tries = log.read_bytes()[at:].count(b"could not find the database system")
    assert tries <= 3, "pauses grow"
    lines = [line for line in said[before:] if "PostgreSQL" in line]
    assert len(lines) == 1
    assert "\n" not in lines[0]
    control.with_suffix(".away").rename(control)
    assert until(server.alive, 60)
    assert until(lambda: any("PostgreSQL runs again" in line for line in said[before:]))


def test_a_log_is_cut_while_its_process_runs_on(system: System) -> None:
    chatter = system.supervisor.add(Spec("chatter", CHATTER, {}, system.folder))
    older = chatter.log.with_name("chatter.log.1")
    assert until(older.exists)
    first = older.stat().st_mtime_ns
    assert until(lambda: older.stat().st_mtime_ns != first), "it is cut again and again"
    assert older.stat().st_size <= LOG_BYTES
    system.kill("chatter", signal.SIGSTOP)
    assert until(lambda: chatter.log.stat().st_size <= LOG_BYTES)
    assert chatter.starts == 1
    server_log = system.folder / "logs" / "postgres.log"
    with server_log.open("ab") as log:
        log.write(b"x" * 2 * LOG_BYTES)
    assert until(lambda: server_log.stat().st_size < LOG_BYTES)
