"""Redis may die at any moment: the worker goes on with the one that comes after, by itself."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg2
import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from broker_site.roof.embedded import Instance
from broker_site.roof.supervisor import System, running
from broker_site.roof.supervisor.child import Spec

pytestmark = pytest.mark.servers
INSTANCE = f"redis-lost-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
SCHEDULER = "broker_site.roof.beat_scheduler:PeriodScheduler"
BUSY = ("reap", "wake")
"""As many agents as the worker has processes."""


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """A worker with its servers, and no beat: the test sends the messages. One for both tests, since it takes long to begin."""
    with running(INSTANCE, web=False, beat=False, fresh=True) as made:
        yield made
    assert Instance(INSTANCE, environ={}).remove()


def until(happened: Callable[[], object], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.1)
    return False


def test_agents_whose_messages_were_lost_with_redis_do_not_keep_the_worker_from_later_ones(system: System) -> None:
    def look(*agents: str) -> None:
        with closing(Celery(broker=system.services.redis_url)) as app:
            for name in agents:
                app.send_task(f"agent.{name}", kwargs={"looked": True}, queue="agents", retry=False)

    def looked(*agents: str) -> bool:
        try:
            look(*agents)
        except (OperationalError, OSError):
            return False
        return True

    with closing(psycopg2.connect(system.services.database_url)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()

        def count(sql: str) -> int:
            cursor.execute(f"SELECT count(*) FROM {sql}")
            return int((cursor.fetchone() or (0,))[0])

        look(*BUSY)
        assert until(lambda: count("agency_agent WHERE last_success IS NOT NULL") == 2)
        with closing(psycopg2.connect(system.services.database_url)) as holder:
            holder.cursor().execute("SELECT FROM agency_agent FOR UPDATE")
            look(*BUSY)
            assert until(lambda: count("pg_locks WHERE NOT granted") == 2, 4), "both processes are at work"
            assert system.kill("redis")
            holder.rollback()  # both end while nobody listens
        before = count("agency_agent")
        assert until(lambda: looked("refine") and count("agency_agent") > before, 15), "it consumes nothing"
    assert system.children["worker"].starts == 1


def test_an_outage_costs_its_lines_once(system: System) -> None:
    """A beat without Redis: each tick of eight agents fails, for as long as the outage lasts."""
    command = ("celery", "-A", "broker_site.celery", "beat", "--scheduler", SCHEDULER, "--pidfile", "", "--max-interval", "1")
    environment = {**system.environment, "REDIS_URL": "redis://127.0.0.1:1/0"}
    beat = system.supervisor.add(Spec("beat", (sys.executable, "-m", *command), environment, system.root))
    assert until(lambda: b"refused" in beat.log.read_bytes(), 60)
    time.sleep(3)
    once = beat.log.read_bytes()
    time.sleep(5)
    assert beat.log.read_bytes() == once, "nothing new is said of an outage that goes on"
    beat.signal(signal.SIGTERM)
    assert until(lambda: b"times more until" in beat.log.read_bytes(), 10), "at the end it says how often"
