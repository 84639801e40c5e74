"""Dispatch: what handing a job to a pilot costs beside the bare claim of a row.

Ours is the full verb: choose the task queue, lease its first job with the history row, mint the job token. The reference is one
statement on a bare table of as many rows.
"""

from __future__ import annotations

import uuid
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from functools import partial

import psycopg2
from psycopg2.extras import register_uuid

from benchmarks import filling, http
from benchmarks.crew import Crew
from benchmarks.harness import Lap, Line, add_rounds, compare, watched
from benchmarks.server import Bench, bench

LEASE_S = 7200.0
MOST_PER_ROUND = 8000

CLAIM = """
PREPARE claim (uuid) AS
UPDATE bare SET status = 'sent', ready_priority = NULL, holder = $1, lease_until = now() + interval '2 hours'
WHERE id = (SELECT id FROM bare WHERE ready_priority IS NOT NULL ORDER BY ready_priority, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--waiting", type=int, default=10_000, metavar="N", help="jobs that wait (default 10000)")
    parser.add_argument("--task-queues", type=int, default=50, metavar="Q", help="task queues they wait in (default 50)")
    parser.add_argument("--clients", type=int, default=4, metavar="C", help="client processes (default 4)")
    parser.add_argument("--http", action="store_true", help="through the web server, 16 connections")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="with --http: jobs that an ask is for (default 1)")
    add_rounds(parser)


class Client:
    """One process that asks for jobs."""

    def __init__(self, number: int, queue_id: int, url: str) -> None:
        from brokerage.rules.dispatch.policies import Panda
        from brokerage.rules.dispatch.requirement import Resource

        self.queue_id = queue_id
        self.policy = Panda()
        self.offer = Resource(filling.QUEUE, 8, 8000, 20000, 86400)
        register_uuid()
        connection = psycopg2.connect(url)
        connection.autocommit = True
        self.cursor = connection.cursor()
        self.cursor.execute(CLAIM)

    def ours(self, n: int) -> None:
        """Take `n` jobs with the verb that the server uses, each for another pilot, since one holds one job."""
        from broker_site.foundation.access.tokens import mint_job_token
        from brokerage.ledger.lease import HeldAtMost, lease
        from brokerage.queries.waiting import WAITING, AskedQueue

        one = HeldAtMost(8, 1)
        asked = AskedQueue(self.queue_id, lambda vo: self.policy, {})
        for _ in range(n):
            leased = None
            for fresh in (False, True):
                offers = (waiting.id for waiting, _ in WAITING.offers(asked, self.offer, fresh=fresh))
                leased = lease(offers, uuid.uuid4(), uuid.uuid4(), LEASE_S, one)
                if leased is not None:
                    break
            assert leased is not None
            mint_job_token(leased.job_id, leased.epoch, LEASE_S)

    def reference(self, n: int) -> None:
        """Take `n` rows of the bare table."""
        for _ in range(n):
            self.cursor.execute("EXECUTE claim (%s)", (uuid.uuid4(),))
            assert self.cursor.fetchone() is not None


class Stock:
    """The waiting jobs of both legs, brought back to N before half of them is gone."""

    def __init__(self, server: Bench, waiting: int, task_queues: int, *, files: bool) -> None:
        self.server, self.waiting, self.files = server, waiting, files
        self.place = filling.task(filling.grid(task_queues))
        server.execute(*filling.BARE)
        self._next = {"brokerage_job": 1, "bare": 1}
        self._gone = {"brokerage_job": 0, "bare": 0}
        self._fill("brokerage_job", waiting)
        self._fill("bare", waiting)

    def take(self, table: str, n: int) -> None:
        """Make ready for a leg that takes `n` of `table`."""
        if (self._gone[table] + n) * 2 > self.waiting:
            self._fill(table, self._gone[table])
            self._gone[table] = 0
        self._gone[table] += n
        self.server.settle(*((table, "brokerage_jobchange") if table == "brokerage_job" else (table,)))

    def _fill(self, table: str, n: int) -> None:
        first = self._next[table]
        self._next[table] = last = first + n
        if table == "bare":
            self.server.execute("DELETE FROM bare WHERE ready_priority IS NULL")
            filling.bare_jobs(self.server, first, last - 1)
        else:
            filling.waiting_jobs(self.server, self.place, first, last - 1, files=self.files)


def run(options: Namespace) -> Iterator[Line]:
    """A line for each round, then the result: jobs in a second."""
    sizes: Line = {"waiting": options.waiting, "task_queues": options.task_queues}
    n = max(options.clients, min(MOST_PER_ROUND, options.waiting * 2 // 5))
    with bench() as server:
        stock = Stock(server, options.waiting, options.task_queues, files=options.http)
        queue_id = stock.place.queue_id
        if options.http:
            take = partial(stock.take, "brokerage_job", n)

            def ready(crew: Crew) -> None:
                take()
                server.execute(http.FREE)
                crew.tell("jobs_an_ask", options.jobs)

            sizes["jobs"] = options.jobs
            yield from http.measured("dispatch", server, queue_id, sizes, "match", n, options.rounds, ready)
            return
        with Crew(options.clients, Client, queue_id, server.url) as crew:

            def leg(method: str, table: str) -> Callable[[], Lap]:
                def lap() -> Lap:
                    stock.take(table, n)
                    return watched(lambda: crew.do(method, n), server.cpu_s)

                return lap

            ours, reference = leg("ours", "brokerage_job"), leg("reference", "bare")
            yield from compare("dispatch", "jobs/s", ours, reference, {**sizes, "clients": options.clients}, options.rounds)
