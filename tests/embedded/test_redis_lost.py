"""Redis may die at any moment: the worker goes on with the one that comes after, by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg2
import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from broker_site.roof.embedded import Instance
from broker_site.roof.supervisor import System, running

pytestmark = pytest.mark.servers
INSTANCE = "redis-lost"
BUSY = ("reap", "wake")
"""As many agents as the worker has processes."""


@pytest.fixture
def system() -> Iterator[System]:
    """A worker with its servers, and no beat: the test sends the messages."""
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
