"""Reports: what heartbeats and state reports of running jobs cost beside a bare UPDATE by key.

A result for each part (heartbeat, state, settle), then for the reports of a job's life: starting, heartbeat, running, heartbeat.
Through the web server: heartbeats, and settlement beside the view that does nothing.
"""

from __future__ import annotations

import uuid
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import psycopg2

from benchmarks import filling, http
from benchmarks.crew import Crew
from benchmarks.harness import Lap, Line, add_rounds, compare, watched
from benchmarks.server import Bench, bench
from brokerage.states import JOB

TOUCH = """
PREPARE touch (bigint) AS
UPDATE bare SET last_seen = now(), lease_until = now() + interval '2 hours' WHERE id = $1 RETURNING status
"""
PARTS = {"heartbeat": "heartbeats/s", "state": "reports/s", "settle": "ends/s"}


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--clients", type=int, default=4, metavar="C", help="client processes (default 4)")
    parser.add_argument("--jobs", type=int, default=4000, metavar="N", help="leased jobs, at least 4 a client (default 4000)")
    parser.add_argument("--http", action="store_true", help="through the web server, 16 connections")
    parser.add_argument("--together", type=int, default=1, metavar="K", help="jobs that are told of together (default 1)")
    add_rounds(parser)


class Client:
    """One process whose jobs report. It goes round its own jobs, and starts anew when they have been renewed."""

    def __init__(self, number: int, size: int, jobs: int, together: int, url: str) -> None:
        self.number, self.size, self.jobs, self.together, self.first, self.at = number, size, jobs, together, 0, 0
        connection = psycopg2.connect(url)
        connection.autocommit = True
        self.cursor = connection.cursor()
        self.cursor.execute(TOUCH)

    def _jobs(self, n: int) -> Iterator[int]:
        """Ids of the next `n` of this client's jobs, in an order that is not that of the table."""
        mine = self.jobs // self.size
        for _ in range(n):
            yield self.first + self.number + self.size * (self.at * 7919 % mine)
            self.at += 1

    def renewed(self, first: int) -> None:
        """The jobs are others now: from this id on."""
        self.first, self.at = first, 0

    def heartbeat(self, n: int) -> None:
        """Prolong `n` leases."""
        from brokerage.ledger.heartbeats import SignOfLife, beat

        for jobs in batched(self._jobs(n), self.together):
            assert None not in beat([SignOfLife(job_id, 1) for job_id in jobs])

    def state(self, n: int) -> None:
        """Report `n` moves: each job starts, then runs."""
        from brokerage.ledger.heartbeats import SignOfLife, beat

        for jobs in batched(self._jobs(n // 2), self.together):
            for status in JOB.heartbeat:
                assert {lease.status for lease in beat([SignOfLife(job_id, 1, status) for job_id in jobs]) if lease} == {status}

    def life(self, n: int) -> None:
        """Report `n` times: each job starts, is heard of, runs, is heard of."""
        from brokerage.ledger.heartbeats import SignOfLife, beat

        for jobs in batched(self._jobs(n // 4), self.together):
            for status in JOB.heartbeat:
                for _ in range(2):
                    assert None not in beat([SignOfLife(job_id, 1, status) for job_id in jobs])

    def settle(self, n: int) -> None:
        """End `n` jobs as finished, with two outputs each."""
        from brokerage.ledger.settle import LastWord, settle_jobs
        from brokerage.rules.dispatch.settlement import Report, ReportedOutput

        for jobs in batched(self._jobs(n), self.together):
            reports = {i: Report("finished", [ReportedOutput(**each) for each in filling.outputs_of(i)]) for i in jobs}
            words = [LastWord(job_id, 1, report, f"job:{job_id}") for job_id, report in reports.items()]
            assert settle_jobs(words) == ["finished"] * len(words)

    def reference(self, n: int) -> None:
        """Touch `n` rows of the bare table."""
        for _ in range(n):
            self.at += 1
            self.cursor.execute("EXECUTE touch (%s)", (1 + self.at * 7919 % self.jobs,))
            assert self.cursor.fetchone() is not None

    def flush(self, n: int) -> None:
        """Let the server count what this process has done so far."""
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush()")


class Leases:
    """The leased jobs, with a set of new ones for each round that moves them."""

    def __init__(self, server: Bench, jobs: int) -> None:
        self.server, self.jobs, self.first = server, jobs, 1
        self.place = filling.task(filling.grid(1))
        server.execute(*filling.BARE)
        filling.bare_jobs(server, 1, jobs)

    def renew(self, *, files: bool = False) -> int:
        """The id of the first of as many new jobs, which have just been sent; with `files` they can end."""
        first, self.first = self.first, self.first + self.jobs
        filling.waiting_jobs(self.server, self.place, first, self.first - 1, files=files)
        filling.send(self.server, str(uuid.uuid4()), first, self.first - 1)
        return first

    def updates(self) -> tuple[float, float]:
        """Updates of jobs so far, and how many of them stayed on their page (HOT)."""
        counted = "SELECT {} FROM pg_stat_user_tables WHERE relname = 'brokerage_job'"
        return self.server.number(counted.format("n_tup_upd")), self.server.number(counted.format("n_tup_hot_upd"))


def run(options: Namespace) -> Iterator[Line]:
    """The parts, then the result: reports in a second."""
    with bench() as server:
        leases = Leases(server, options.jobs)
        if options.http:
            yield from _over_http(server, leases, options.together, options.rounds)
            return
        sizes = {"jobs": options.jobs, "clients": options.clients, "together": options.together}
        with Crew(options.clients, Client, options.clients, options.jobs, options.together, server.url) as crew:
            yield from _parts(server, leases, crew, sizes, options.rounds)


def batched(jobs: Iterable[int], size: int) -> Iterator[tuple[int, ...]]:
    """The jobs in groups of at most `size`."""
    left = iter(jobs)
    while group := tuple(islice(left, size)):
        yield group


def _parts(server: Bench, leases: Leases, crew: Crew, sizes: Line, rounds: int) -> Iterator[Line]:
    def leg(method: str, n: int, *, new: bool = False) -> Callable[[], Lap]:
        def lap() -> Lap:
            if new:
                crew.tell("renewed", leases.renew(files=method == "settle"))
            server.settle("brokerage_job", "brokerage_jobchange", "workqueues_file", "bare")
            return watched(lambda: crew.do(method, n), server.cpu_s)

        return lap

    jobs = leases.jobs
    bare = leg("reference", jobs)
    crew.tell("renewed", leases.renew())
    crew.tell("flush", 0)
    before = leases.updates()
    for line in compare("reports.heartbeat", PARTS["heartbeat"], leg("heartbeat", jobs), bare, sizes, rounds):
        if "ratio" in line:
            crew.tell("flush", 0)
            done, hot = (now - then for now, then in zip(leases.updates(), before, strict=True))
            line["hot"] = round(hot / done, 3)
        yield line
    yield from compare("reports.state", PARTS["state"], leg("state", jobs, new=True), bare, sizes, rounds)
    yield from compare("reports.settle", PARTS["settle"], leg("settle", jobs // 2, new=True), bare, sizes, rounds)
    yield from compare("reports", "reports/s", leg("life", jobs, new=True), bare, sizes, rounds)


def _over_http(server: Bench, leases: Leases, together: int, rounds: int) -> Iterator[Line]:
    """Ends of jobs through the web server, then heartbeats of running ones, as many in a round as there are jobs."""
    leases.renew()
    server.execute("UPDATE brokerage_job SET status = 'running' WHERE status = 'sent'")
    jobs, queue_id = leases.jobs, leases.place.queue_id

    def beating(crew: Crew) -> None:
        crew.tell("jobs", jobs)
        server.settle("brokerage_job")

    def ending(crew: Crew) -> None:
        left = server.number(f"SELECT count(*) FROM brokerage_job WHERE id > {jobs} AND ended_at IS NULL")
        assert not left, f"{left:.0f} jobs did not end"
        crew.tell("ends", (leases.renew(files=True), jobs, together))
        server.settle("brokerage_job", "brokerage_jobchange", "workqueues_file")

    sizes = {"jobs": jobs, "together": together}
    with http.asked(server, queue_id) as asked:
        yield from asked.measured("reports.settle", sizes, "settle", jobs, rounds, ending)
        yield from asked.measured("reports", sizes, "heartbeat", jobs, rounds, beating)
