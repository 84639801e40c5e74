"""Work that a commit leaves is told to its agent: once for a burst, again where a run may have missed it, and soon."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis
from django.db import transaction

from broker_site.celery import app
from broker_site.foundation import gdpconfig
from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.agency import look as looks
from broker_site.foundation.agency.look import LaterLooks, look, look_after_commit, look_later
from broker_site.foundation.agency.run import BODIES, Run, run_agent
from broker_site.foundation.agency.silence import REST_S, SILENCE
from broker_site.foundation.kernel import clock
from brokerage.ledger import ready_jobs
from brokerage.ledger.grid_overrides import change_overrides
from brokerage.models import ComputingQueue
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.ledger.commands import command

pytestmark = pytest.mark.django_db(transaction=True)
BURST = 200


@pytest.fixture
def server(redis_settings: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[redis.Redis]:
    """The private Redis, empty, where messages go."""
    with redis.Redis.from_url(redis_settings) as client:
        client.flushdb()
        looks._redis.cache_clear()
        monkeypatch.setitem(app.conf, "broker_url", redis_settings)
        monkeypatch.setattr(app.amqp, "_producer_pool", None)
        yield client
        client.flushdb()
    looks._redis.cache_clear()


def messages(server: redis.Redis) -> list[str]:
    """The agents that messages wait for, the oldest first; they are taken out."""
    sent = [str(raw) for raw in reversed(server.lrange("agents", 0, -1))]
    server.delete("agents")
    return [name for text in sent for name in BODIES if f'"agent.{name}"' in text]


def test_a_burst_is_one_message_and_what_comes_in_the_pause_after_it_one_more(server: redis.Redis) -> None:
    gdpconfig.set_override("agents", "LOOK_PAUSE", "1min", who="test", why="longer than the bursts take")
    for _ in range(BURST):
        look("refine")
    assert messages(server) == ["refine"]
    run_agent("refine", looked=True)
    for _ in range(BURST):
        look("refine")
    assert messages(server) == [], "it has its pause"
    server.pexpire("look-pause:refine", 50)
    LaterLooks().wait(1.0)
    assert messages(server) == ["refine"]
    run_agent("refine", looked=True)
    LaterLooks().wait(0.5)
    assert messages(server) == [], "nothing came after it"


def test_a_later_look_comes_when_it_is_due_and_one_before_makes_it_void(server: redis.Redis) -> None:
    later = LaterLooks()
    look_later("refine", 0.4)
    later.wait(0.2)
    assert messages(server) == []
    later.wait(0.4)
    assert messages(server) == ["refine"]
    look_later("refine", 0.4)
    look_later("refine", 0.1)
    later.wait(0.3)
    assert messages(server) == ["refine"]
    later.wait(0.4)
    assert messages(server) == [], "the one before was told instead"


def test_another_agent_is_told_at_once_in_the_pause_of_one(server: redis.Redis) -> None:
    look("refine")
    look("refine", "feed")
    assert messages(server) == ["refine", "feed"]


def test_who_is_told_while_it_looks_looks_again_though_it_found_nothing(
    server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that the look begins may find the rows in the hands of this one."""

    def hold(run: Run) -> int:
        look("feed")
        messages(server)
        assert run_agent_beside() == 0
        return 0

    def run_agent_beside() -> int | None:
        monkeypatch.setitem(BODIES, "feed", lambda run: 0)
        return run_agent("feed", looked=True)

    monkeypatch.setitem(BODIES, "feed", hold)
    assert run_agent("feed", looked=True) == 0
    LaterLooks().wait(0.5)
    assert messages(server) == ["feed"]
    assert run_agent("feed", looked=True) == 0
    LaterLooks().wait(0.5)
    assert messages(server) == [], "two runs do not tell each other for ever"


def test_a_transaction_tells_each_agent_once_and_only_when_it_is_committed(server: redis.Redis) -> None:
    with transaction.atomic():
        look_after_commit("refine", "feed")
        with transaction.atomic():
            look_after_commit("feed", "assign")
        assert messages(server) == []
    assert messages(server) == ["refine", "feed", "assign"]
    assert server.get("looks:feed") == b"1"


def test_a_look_of_an_undone_part_takes_no_later_one_with_it(server: redis.Redis) -> None:
    with transaction.atomic():
        with transaction.atomic():
            look_after_commit("feed")
            transaction.set_rollback(True)
        look_after_commit("feed")
    assert messages(server) == ["feed"]


def test_every_step_of_a_task_is_told_to_the_agent_that_takes_it_next(server: redis.Redis) -> None:
    grid("ALPHA")
    task = submitted(parameters(nEvents=40, nEventsPerJob=10, prodSourceLabel="managed"))
    for step, following in (("refine", "feed"), ("feed", "assign"), ("assign", "generate")):
        server.flushdb()
        assert run_agent(step, looked=True)
        assert following in messages(server), step
    run_agents(1)
    server.flushdb()
    command(task.id, "kill", "test")
    assert messages(server) == ["command"]


def test_without_redis_nothing_fails(settings: pytest.FixtureRequest) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # type: ignore[attr-defined]
    looks._redis.cache_clear()
    look("refine")
    assert run_agent("wake", looked=True) == 0
    LaterLooks().wait(0.05)
    looks._redis.cache_clear()


def test_a_redis_that_does_not_answer_costs_one_commit_its_patience_and_not_each(
    server: redis.Redis, settings: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(SILENCE, "clock", lambda: now)
    good = settings.REDIS_URL  # type: ignore[attr-defined]
    with socket.create_server(("127.0.0.1", 0)) as dumb:  # the kernel takes connections, nobody reads them
        settings.REDIS_URL = f"redis://127.0.0.1:{dumb.getsockname()[1]}/0"  # type: ignore[attr-defined]
        for each in (looks._redis, ready_jobs._redis):
            each.cache_clear()
        began = time.monotonic()
        for number in range(20):
            look("refine")
            ready_jobs.tell({number: 1})
        assert time.monotonic() - began < 3, "half a second for the first, none for the others"
    settings.REDIS_URL = good  # type: ignore[attr-defined]
    for each in (looks._redis, ready_jobs._redis):
        each.cache_clear()
    look("refine")
    assert messages(server) == []
    now += REST_S
    look("refine")
    look("feed")
    assert messages(server) == ["refine", "feed"], "the first that is answered ends the rest"


def test_an_override_of_a_queue_ends_at_its_time_not_at_the_next_period(server: redis.Redis) -> None:
    grid("ALPHA")
    later = LaterLooks()
    gdpconfig.set_override("agents", "LOOK_PAUSE", "10ms", who="test", why="looks are told at once")
    told = ComputingQueue.objects.get(name="ALPHA").maxrss
    change_overrides(SYSTEM, "queue", "ALPHA", {"maxrss": "9000"}, "water leak", clock.now() + timedelta(seconds=1))
    assert "refresh" in messages(server), "it learns when the next end is"
    assert run_agent("refresh", looked=True) == 0
    assert ComputingQueue.objects.get(name="ALPHA").maxrss == 9000
    later.wait(1.5)
    assert "refresh" in messages(server)
    assert run_agent("refresh", looked=True) == 1
    assert ComputingQueue.objects.get(name="ALPHA").maxrss == told


def test_an_end_that_a_tick_comes_before_is_left_to_the_tick(server: redis.Redis) -> None:
    grid("ALPHA")
    change_overrides(SYSTEM, "queue", "ALPHA", {"maxrss": "9000"}, "water leak", clock.now() + timedelta(hours=1))
    server.delete(looks.LATER)
    run_agent("refresh", looked=True)
    assert server.llen(looks.LATER) == 0
