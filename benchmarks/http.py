"""The same verbs through the real web server, over 16 connections that stay open, beside a view that does nothing.

The server is started as `up` starts it, and beside it Django's bare handler for the view that does nothing: what it costs to ask
Django at all, without our adapter. One process with plain sockets makes the load.
"""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from benchmarks import filling
from benchmarks.crew import Crew
from benchmarks.harness import Lap, Line, compare, watched
from benchmarks.server import INSTANCE, Bench, tree_cpu_s
from broker_site.roof.embedded.process import free_port
from broker_site.roof.supervisor import System, running
from broker_site.roof.supervisor.system import WEB_WORKERS
from brokerage.pilot import messages

CONNECTIONS = 16
LEASE_S = 7200.0
PILOTS = 64
UNITS = {"match": "jobs/s", "heartbeat": "requests/s", "settle": "ends/s"}
"""What a method of the client does so many of; the view that does nothing makes requests/s."""
FREE = "UPDATE brokerage_job SET lease_holder = gen_random_uuid() WHERE lease_holder IS NOT NULL"
"""What the pilots hold is taken from them between rounds: nothing ends here, and none would hold hundreds of jobs."""

OFFER = messages.Resources(cores=8, memory_mb=8000, disk_mb=20000, walltime_s=86000)


def request(host: str, path: str, body: object = None, token: str = "") -> bytes:
    """One HTTP/1.1 request as bytes: POST where there is a body, else GET."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", f"Host: {host}"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, "", ""]).encode() + content


class Load:
    """Open connections, each with one request on its way at a time."""

    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)
        self.selector = selectors.DefaultSelector()
        self.sockets = [self._opened(number) for number in range(CONNECTIONS)]
        self.seconds: list[float] = []

    def run(self, n: int, make: Callable[[int], bytes]) -> None:
        """Send `n` requests, `make(connection number)` each; every answer must be 200."""
        for key, _ in self.selector.select(0):  # closed by the server, which keeps no connection without requests for long
            self.selector.unregister(key.fileobj)
            self.sockets[key.data].close()
            self.sockets[key.data] = self._opened(key.data)
        started = [0.0] * CONNECTIONS
        received = [b""] * CONNECTIONS
        left = n
        for number in range(min(CONNECTIONS, n)):
            left -= 1
            self._send(number, make, started)
        waiting = min(CONNECTIONS, n)
        while waiting:
            for key, _ in self.selector.select(30):
                number = key.data
                if not (part := self.sockets[number].recv(65536)):
                    raise BadAnswer("the server closed the connection")
                received[number] += part
                if not complete(received[number]):
                    continue
                received[number] = b""
                self.seconds.append(time.perf_counter() - started[number])
                if left:
                    left -= 1
                    self._send(number, make, started)
                else:
                    waiting -= 1

    def _opened(self, number: int) -> socket.socket:
        one = socket.create_connection(self.address)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(one, selectors.EVENT_READ, number)
        return one

    def _send(self, number: int, make: Callable[[int], bytes], started: list[float]) -> None:
        message = make(number)
        started[number] = time.perf_counter()
        self.sockets[number].sendall(message)


class BadAnswer(Exception):
    """The server did not answer 200."""


def complete(received: bytes) -> bool:
    """Whether a whole answer is there; BadAnswer when it is not a 200."""
    head, end, body = received.partition(b"\r\n\r\n")
    if not end:
        return False
    if not head.startswith(b"HTTP/1.1 200"):
        raise BadAnswer(received.decode(errors="replace")[:2000])
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return len(body) >= int(length.split(b":")[1])


class Client:
    """The process that makes the load: pilots that ask, jobs that report, or requests that ask for nothing."""

    def __init__(self, number: int, url: str, bare_url: str, pilots: list[tuple[str, int]]) -> None:
        where, bare = urlsplit(url), urlsplit(bare_url)
        self.host, self.pilots = where.netloc, pilots
        self.load = Load(where.hostname or "", where.port or 0)
        self.bare_host = bare.netloc
        self.bare = Load(bare.hostname or "", bare.port or 0)
        self.beats: list[bytes] = []
        self.last_words: list[bytes] = []
        self.turn = 0
        self.asked_for = 1

    def jobs(self, n: int) -> None:
        """Write the heartbeats of the jobs 1 to `n`."""
        from broker_site.foundation.access.tokens import mint_job_token

        self.beats = [
            request(
                self.host,
                *messages.heartbeat(job_id, "running", 10.5, 8e8),
                mint_job_token(job_id, 1, LEASE_S, pilot=self.pilots[0][1]),
            )
            for job_id in range(1, n + 1)
        ]

    def ends(self, jobs: tuple[int, int, int]) -> None:
        """Write the last words of jobs of the first pilot: from which id on, how many, how many in a request."""
        from broker_site.foundation.access.tokens import mint_job_token

        first, n, together = jobs
        token, credential = self.pilots[0]

        def word(job_id: int) -> tuple[str, dict[str, Any], str]:
            path, said = messages.report(job_id, None)
            said["outputs"] = filling.outputs_of(job_id)
            return path, said, mint_job_token(job_id, 1, LEASE_S, pilot=credential)

        words = [word(job_id) for job_id in range(first, first + n)]
        if together == 1:
            self.last_words = [request(self.host, *each) for each in words]
        else:
            groups = [words[i : i + together] for i in range(0, n, together)]
            bodies = [{"jobs": [{"token": job_token, **said} for _, said, job_token in group]} for group in groups]
            self.last_words = [request(self.host, "/api/v1/pilots/reports/", body, token) for body in bodies]

    def settle(self, n: int) -> None:
        """All of those jobs end."""
        self.load.run(len(self.last_words), lambda connection: self.last_words.pop())

    def jobs_an_ask(self, n: int) -> None:
        """Asks are for so many jobs from now on."""
        self.asked_for = n

    def match(self, n: int) -> None:
        """Pilots ask until they have `n` jobs, as many in an ask as was said."""

        def ask(connection: int) -> bytes:
            self.turn += 1
            path, body = messages.match(OFFER)
            many = {"n": self.asked_for} if self.asked_for > 1 else {}
            return request(self.host, path, {**body, **many}, self.pilots[self.turn % len(self.pilots)][0])

        self.load.run(n // self.asked_for, ask)

    def heartbeat(self, n: int) -> None:
        """`n` times a job says that it runs."""

        def beat(connection: int) -> bytes:
            self.turn += 1
            return self.beats[self.turn * 7919 % len(self.beats)]

        self.load.run(n, beat)

    def reference(self, n: int) -> None:
        """`n` requests that the server answers by doing nothing."""
        nothing = request(self.bare_host, "/healthz")
        self.bare.run(n, lambda connection: nothing)

    def latency(self, n: int) -> list[float]:
        """Milliseconds that the answers since the last call took: median, and what one of 100 exceeds."""
        seconds = self.load.seconds + self.bare.seconds  # one of them made the last round
        cuts = statistics.quantiles(seconds, n=100)
        self.load.seconds.clear()
        self.bare.seconds.clear()
        return [round(cuts[49] * 1000, 2), round(cuts[98] * 1000, 2)]


@contextmanager
def web(server: Bench) -> Iterator[System]:
    """The web server as `up` starts it, on the database of this run; no worker, no beat, no pilots."""
    database = {"DATABASE_URL": server.url, "MONITORING_DATABASE_URL": ""}
    with running(INSTANCE, prepare=lambda system: (), worker=False, beat=False, environment=database) as it:
        yield it


@contextmanager
def bare(system: System) -> Iterator[str]:
    """Django's handler under granian with nothing between."""
    port = free_port()
    ours = system.children["web"].spec
    command = (
        *(sys.executable, "-m", "granian", "--interface", "wsgi", "--http", "1", "--host", "127.0.0.1", "--port", str(port)),
        *("--workers", str(WEB_WORKERS), "--blocking-threads", "4", "--no-ws", "--log-level", "warning"),
        "broker_site.wsgi:application",
    )
    system.supervisor.add(replace(ours, name="bare", command=command))
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
    time.sleep(2)  # granian listens before its processes have loaded the application
    yield f"http://127.0.0.1:{port}"


def pilots(queue_id: int) -> list[tuple[str, int]]:
    """Registered pilots: the token of each, and the id of its credential. They hold jobs without end, and ask without pause."""
    from broker_site.foundation.access.authentication import principal_of_token
    from broker_site.foundation.access.credentials import issue_enrolment, issue_pilot_token
    from broker_site.foundation.gdpconfig import set_override
    from brokerage.ledger.pilots import register
    from brokerage.models import Pilot

    for key, value in (("LEASES_PER_SLOT", 0), ("MATCH_RATE", 1e6)):
        set_override("dispatch", key, value, who="benchmark", why="few pilots make the load of many")
    enrolment = principal_of_token(issue_enrolment(filling.QUEUE).text)
    made = []
    for number in range(PILOTS):
        pilot = Pilot(id=uuid.uuid4(), queue_id=queue_id, host="bench", slot=f"slot{number}", core_count=32_000, memory_mb=8000)
        register(pilot)
        issued = issue_pilot_token(enrolment, pilot.id)
        made.append((issued.text, issued.credential.pk))
    return made


@contextmanager
def asked(server: Bench, queue_id: int) -> Iterator[Asked]:
    """Both web servers, and the client with its pilots at the queue."""
    with web(server) as system, bare(system) as bare_url, Crew(1, Client, system.url, bare_url, pilots(queue_id)) as crew:
        yield Asked(server, system, crew)


@dataclass(frozen=True, slots=True)
class Asked:
    """What answers, and who asks."""

    server: Bench
    system: System
    crew: Crew

    def measured(self, name: str, sizes: Line, method: str, n: int, rounds: int, ready: Callable[[Crew], None]) -> Iterator[Line]:
        """`method` of the load against the view that does nothing; `ready` is called before each round of ours."""
        latency: dict[str, list[list[float]]] = {"ours": [], "reference": []}

        def leg(which: str, what: str, before: Callable[[Crew], None]) -> Callable[[], Lap]:
            def lap() -> Lap:
                before(self.crew)
                done = watched(lambda: self.crew.do(what, n), self._cpu_s)
                latency[which] += self.crew.tell("latency", 0)
                return done

            return lap

        ours, reference = leg("ours", method, ready), leg("reference", "reference", lambda crew: None)
        sizes = {**sizes, "connections": CONNECTIONS, "http": True}
        for line in compare(name, UNITS[method], ours, reference, sizes, rounds):
            if "ratio" in line:
                line["p50_p99_ms"] = {
                    which: [statistics.median(x) for x in zip(*all_, strict=True)] for which, all_ in latency.items()
                }
            yield line

    def _cpu_s(self) -> float | None:
        database, leaders = self.server.cpu_s(), [child.pid for child in self.system.children.values()]
        return None if database is None else database + sum(tree_cpu_s(pid) for pid in leaders if pid)
