"""Asks of pilots that wait for a job: they get it at once, hold no thread, are bounded, and are answered when the server ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from broker_site.foundation.access.credentials import issue_enrolment
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger import ready_jobs
from brokerage.models import ComputingQueue, DeclaredSlots, IdleSlot, Job
from brokerage.queries.pilots import FRESH_S
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from tests.web.serving import Server, serving
from tests.web.test_attacks import ask

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]

Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(autouse=True)
def redis_of_the_server(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told here is heard by the server."""
    client = redis.Redis.from_url(redis_url)
    monkeypatch.setattr(ready_jobs, "_redis", lambda: client)


@pytest.fixture
def queue() -> ComputingQueue:
    (made,) = grid("ALPHA")
    DeclaredSlots.objects.create(queue=made, n=60)
    time.sleep(FRESH_S)  # what the server knows of the queue of another test
    return made


def pilot(server: Server, long_poll_s: float = 30) -> str:
    """The token of a new pilot at ALPHA, which learns how long it may wait."""
    register = {"queue": "ALPHA", "host": "wn7", "slot": f"s{uuid4().hex[:8]}", "cores": 1}
    status, _, body = ask(server, "/api/v1/pilots/", issue_enrolment("ALPHA").text, register)
    assert status == 201, body
    assert json.loads(body)["long_poll_s"] == long_poll_s
    return str(json.loads(body)["token"])


def match(server: Server, token: str, wait_s: float = 20.0) -> tuple[Answer, float]:
    """The answer to an ask that may wait, and how long it took."""
    began = time.monotonic()
    answer = ask(server, "/api/v1/pilots/match/", token, {"request": str(uuid4()), "cores": 1, "wait_s": wait_s}, 40)
    return answer, time.monotonic() - began


def jobs(n: int) -> None:
    """A task of so many jobs, made now."""
    submitted(parameters(f"t{uuid4().hex[:6]}", nEvents=10 * n, nEventsPerJob=10, site="ALPHA"))
    run_agents(1, ("refine", "feed", "assign", "generate"))


def until(true: Callable[[], bool]) -> None:
    """Wait for it."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_an_ask_that_waits_gets_the_job_as_soon_as_it_is_made(server: Server, queue: ComputingQueue) -> None:
    token = pilot(server)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(match, server, token)
        time.sleep(1.0)
        assert not waiting.done()
        jobs(1)
        made = time.monotonic()
        (status, _, body), _ = waiting.result(10)
        assert status == 200, body
        assert time.monotonic() - made < 2
    assert Job.objects.get(id=json.loads(body)["job"]["id"]).status == "sent"


def test_more_asks_wait_than_there_are_threads_and_each_gets_one_of_the_jobs(server: Server, queue: ComputingQueue) -> None:
    tokens = [pilot(server) for _ in range(24)]
    with ThreadPoolExecutor(24) as pool:
        waiting = [pool.submit(match, server, token) for token in tokens]
        time.sleep(1.0)
        began = time.monotonic()
        assert server.ask("GET", "/healthz")[0] == 200
        assert match(server, pilot(server), 0.0)[0][0] == 204, "asks that wait keep nobody from a thread"
        assert time.monotonic() - began < 5
        jobs(24)
        answers = [each.result(30)[0] for each in waiting]
    assert [status for status, _, _ in answers] == [200] * 24
    assert len({json.loads(body)["job"]["id"] for _, _, body in answers}) == 24


def test_the_time_of_a_wait_is_kept_and_after_it_the_pilot_may_ask_at_once(server: Server, queue: ComputingQueue) -> None:
    (status, headers, _), took = match(server, pilot(server), 1.2)
    assert (status, headers["retry-after"]) == (204, "0")
    assert 1.1 < took < 4
    (status, headers, _), took = match(server, pilot(server), 0.0)
    assert (status, headers["retry-after"]) == (204, "1")
    assert took < 1


def test_without_the_key_nobody_waits(queue: ComputingQueue, redis_url: str, tmp_path: Path) -> None:
    set_override("dispatch", "LONG_POLL", 0, who="ada", why="test")
    with serving(tmp_path / "rsgi.log", REDIS_URL=redis_url) as ours:
        assert match(ours, pilot(ours, long_poll_s=0), 20.0)[1] < 2


def test_a_client_that_leaves_frees_its_place_and_gets_no_job(server: Server, queue: ComputingQueue) -> None:
    token = pilot(server)
    body = json.dumps({"request": str(uuid4()), "cores": 1, "wait_s": 20}).encode()
    head = (
        f"POST /api/v1/pilots/match/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    for _ in range(8):  # twice as many as one credential may have waiting
        line = server.connect(head.encode() + body)
        until(IdleSlot.objects.exists)
        line.close()
        until(lambda: not IdleSlot.objects.exists())  # nobody knows whether the slot is still there
    jobs(1)
    time.sleep(1.0)
    assert not Job.objects.filter(status="sent").exists()
    assert match(server, token)[0][0] == 200


def test_one_pilot_has_so_many_asks_waiting_and_no_more(server: Server, queue: ComputingQueue) -> None:
    token = pilot(server)
    with ThreadPoolExecutor(6) as pool:
        answers = [each.result(20)[0] for each in [pool.submit(match, server, token, 2.0) for _ in range(6)]]
    assert sorted(status for status, _, _ in answers) == [204] * 4 + [503] * 2
    refused = next(body for status, _, body in answers if status == 503)
    assert json.loads(refused)["title"] == "Too many asks wait"


def test_a_server_that_ends_answers_who_waits_within_a_second(queue: ComputingQueue, redis_url: str, tmp_path: Path) -> None:
    with serving(tmp_path / "rsgi.log", REDIS_URL=redis_url) as ours:
        token = pilot(ours)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(match, ours, token)
            time.sleep(1.0)
            ours.process.terminate()
            (status, _, _), took = waiting.result(10)
        assert (status, took < 2.5) == (204, True), took


def test_without_redis_a_wait_ends_at_its_time(queue: ComputingQueue, tmp_path: Path) -> None:
    with serving(tmp_path / "rsgi.log", REDIS_URL="redis://127.0.0.1:1/0") as ours:
        (status, _, _), took = match(ours, pilot(ours), 1.5)
        assert (status, took < 5) == (204, True)


def test_a_job_made_while_an_ask_is_answered_is_not_missed(server: Server, queue: ComputingQueue) -> None:
    slowest = 0.0
    for _ in range(5):
        token = pilot(server)
        maker = threading.Thread(target=ready_jobs.tell, args=({queue.id: 1},))
        maker.start()
        jobs(1)
        (status, _, _), took = match(server, token)
        maker.join()
        assert status == 200
        slowest = max(slowest, took)
    assert slowest < 3


def test_asks_that_wait_leave_connections_for_everybody_else(queue: ComputingQueue, redis_url: str, tmp_path: Path) -> None:
    with serving(tmp_path / "rsgi.log", REDIS_URL=redis_url, GRANIAN_BACKPRESSURE="20") as ours:
        tokens = [pilot(ours) for _ in range(8)]
        with ThreadPoolExecutor(24) as pool:
            waiting = [pool.submit(match, ours, token, 8.0) for token in tokens for _ in range(3)]
            time.sleep(2.0)
            assert ours.ask("GET", "/healthz", seconds=3)[0] == 200
            answers = [each.result(30)[0][0] for each in waiting]
    assert sorted(answers) == [204] * 10 + [503] * 14


def test_who_is_refused_since_too_many_asks_wait_keeps_no_connection(server: Server, queue: ComputingQueue) -> None:
    token = pilot(server)
    with ThreadPoolExecutor(5) as pool:
        answers = [each.result(20)[0] for each in [pool.submit(match, server, token, 2.0) for _ in range(5)]]
    assert [headers["connection"] for status, headers, _ in answers if status == 503] == ["close"]


def test_a_large_ask_is_answered_at_once_and_is_not_kept_in_memory(server: Server, queue: ComputingQueue) -> None:
    token, began = pilot(server), time.monotonic()
    wish = {"request": str(uuid4()), "cores": 1, "wait_s": 20, "note": "x" * 100_000}
    assert ask(server, "/api/v1/pilots/match/", token, wish, 40)[:1] == (204,)
    status, headers, _ = ask(server, "/api/v1/pilots/match/", token, wish | {"request": str(uuid4())}, 40)
    assert (status, headers["retry-after"]) == (204, "1")
    assert time.monotonic() - began < 5
