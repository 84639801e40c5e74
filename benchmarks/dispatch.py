"""Dispatch: what handing a job to a pilot costs beside the bare claim of a row.

Ours is the full verb: read what the pilot says, choose the task queue by all that it requires, lease its first job with the
history row, mint the job token. The reference is one statement on a bare table of as many rows.

With --snapshot: the rate while another session holds an old snapshot, beside the rate before. With --cycles: the rate of the
last tenth of that many jobs taken and ended, beside that of the first tenth, and how much larger the table has become.
"""

from __future__ import annotations

import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

from benchmarks import filling, http, requirements
from benchmarks.asking import Client
from benchmarks.crew import Crew
from benchmarks.harness import Lap, Line, add_rounds, compare, watched
from benchmarks.server import Bench, bench

MOST_PER_ROUND = 8000
OLD_SNAPSHOT = 10_000
"""Claims while a snapshot is held, before the rate is taken."""
JOBS_SIZE = "SELECT pg_total_relation_size('brokerage_job')"


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--waiting", type=int, default=10_000, metavar="N", help="jobs that wait (default 10000)")
    parser.add_argument("--task-queues", type=int, default=50, metavar="Q", help="task queues they wait in (default 50)")
    parser.add_argument("--clients", type=int, default=4, metavar="C", help="client processes (default 4)")
    parser.add_argument("--queues", type=int, default=1, metavar="G", help="computing queues, at most 200 (default 1)")
    kinds = (requirements.FULL, requirements.SIMPLE)
    parser.add_argument(
        "--kinds", choices=kinds, default=kinds[0], help="all that jobs can require, or sizes only (default full)"
    )
    late = f"jobs are open to {requirements.OPEN_TO} of the queues (to all, where there are fewer) until they are leased"
    parser.add_argument("--late", action="store_true", help=late)
    limits = "at sites with an advertisement and running limits, beside other sites; at least 2 queues, jobs with their documents"
    parser.add_argument("--limits", action="store_true", help=limits)
    parser.add_argument("--snapshot", action="store_true", help="before and after 10000 claims beside an old snapshot")
    parser.add_argument("--cycles", type=int, default=0, metavar="N", help="take and end so many jobs; the last tenth")
    parser.add_argument("--http", action="store_true", help="through the web server, 16 connections; one queue, sizes only")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="with --http: jobs that an ask is for (default 1)")
    add_rounds(parser)


class Stock:
    """The waiting jobs of both legs, brought back to N before half of them is gone."""

    def __init__(self, server: Bench, waiting: int, grid: requirements.Grid, *, files: bool) -> None:
        self.server, self.waiting, self.files = server, waiting, files
        self.queue_ids = list(grid.queues)
        self.place = filling.task(self.queue_ids[0])
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


class Latencies:
    """Milliseconds that the operations of each leg took."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._of_legs: dict[str, list[tuple[float, float]]] = {}

    def note(self, leg: str) -> None:
        """A round of the leg is over."""
        seconds = [each for some in self._crew.tell("latencies", 0) for each in some]
        cuts = statistics.quantiles(seconds, n=100)
        self._of_legs.setdefault(leg, []).append((cuts[49] * 1000, cuts[98] * 1000))

    def told(self) -> dict[str, list[float]]:
        """Median, and what one of 100 exceeds, of each leg; the middle of its rounds."""
        return {
            leg: [round(statistics.median(some), 2) for some in zip(*rounds, strict=True)]
            for leg, rounds in self._of_legs.items()
        }


def run(options: Namespace) -> Iterator[Line]:
    """A line for each round, then the result: jobs in a second."""
    sizes: Line = {"waiting": options.waiting, "task_queues": options.task_queues}
    with bench() as server:
        if options.http:
            yield from _over_http(server, options, sizes)
            return
        sizes |= {"clients": options.clients, "kinds": options.kinds, "late": options.late}
        sizes["queues"] = queues = max(options.queues, 2) if options.limits else options.queues
        grid = requirements.grid(options.task_queues, queues, options.kinds, late=options.late)
        stock = Stock(server, options.waiting + options.cycles, grid, files=options.limits or options.cycles > 0)
        with Crew(options.clients, Client, [*grid.queues.values()], options.kinds, server.url) as crew:
            if options.cycles:
                yield from _cycles(server, crew, stock, sizes, options.cycles)
            elif options.limits:
                requirements.limit_every_other_site(grid)
                yield from _beside_sites_without_limits(server, crew, stock, {**sizes, "limits": True}, options.rounds)
            elif options.snapshot:
                yield from _beside_a_snapshot(server, crew, stock, sizes, options.rounds)
            else:
                yield from _against_bare(server, crew, stock, sizes, options.rounds)


def _over_http(server: Bench, options: Namespace, sizes: Line) -> Iterator[Line]:
    grid = requirements.Grid({filling.grid(options.task_queues): filling.QUEUE}, late=False)
    stock = Stock(server, options.waiting, grid, files=True)
    n = _operations(options.waiting, http.CONNECTIONS)
    take = partial(stock.take, "brokerage_job", n)

    def ready(crew: Crew) -> None:
        take()
        server.execute(http.FREE)
        crew.tell("jobs_an_ask", options.jobs)

    sizes = {**sizes, "jobs": options.jobs}
    with http.asked(server, stock.place.queue_id) as asked:
        yield from asked.measured("dispatch", sizes, "match", n, options.rounds, ready)


def _operations(waiting: int, clients: int) -> int:
    return max(clients, min(MOST_PER_ROUND, waiting * 2 // 5))


def _against_bare(server: Bench, crew: Crew, stock: Stock, sizes: Line, rounds: int) -> Iterator[Line]:
    legs = Legs(server, crew, stock)
    ours, reference = legs.of("ours", "brokerage_job"), legs.of("reference", "bare")
    for line in compare("dispatch", "jobs/s", ours, reference, sizes, rounds):
        yield {**line, **legs.told()} if "ratio" in line else line


def _beside_sites_without_limits(server: Bench, crew: Crew, stock: Stock, sizes: Line, rounds: int) -> Iterator[Line]:
    """Ours: at the sites with limits; the reference: the same verb at the others."""
    crew.tell("registered", stock.queue_ids)
    legs = Legs(server, crew, stock, few_pilots=True)
    ours, reference = legs.of("limited", "brokerage_job"), legs.of("unlimited", "brokerage_job")
    for line in compare("dispatch", "jobs/s", ours, reference, sizes, rounds):
        yield {**line, **legs.told()} if "ratio" in line else line


class Legs:
    """The legs of a run, and what each took. `few_pilots`: what they hold is taken from them between rounds."""

    def __init__(self, server: Bench, crew: Crew, stock: Stock, *, few_pilots: bool = False) -> None:
        self._server, self._crew, self._stock, self._few_pilots = server, crew, stock, few_pilots
        # A leg of few pilots takes jobs of half of the queues only.
        waiting = stock.waiting // 3 if few_pilots else stock.waiting
        self._n, self._latencies = _operations(waiting, crew.size), Latencies(crew)

    def of(self, method: str, table: str) -> Callable[[], Lap]:
        """The leg that calls this method of the clients, which takes jobs of this table."""

        def lap() -> Lap:
            if self._few_pilots:
                self._server.execute(http.FREE)
            self._stock.take(table, self._n)
            self._crew.tell("prepare", self._n // self._crew.size)
            done = watched(lambda: self._crew.do(method, self._n), self._server.cpu_s)
            self._latencies.note(method)
            return done

        return lap

    def told(self) -> Line:
        """What stands beside the rates."""
        return {"p50_p99_ms": self._latencies.told(), "in_vain": _in_vain(self._crew)}


def _in_vain(crew: Crew) -> float:
    """The part of all asks that found nothing."""
    asks, vain = (sum(some) for some in zip(*crew.tell("vain", 0), strict=True))
    return round(vain / max(asks, 1), 4)


def _beside_a_snapshot(server: Bench, crew: Crew, stock: Stock, sizes: Line, rounds: int) -> Iterator[Line]:
    """Ours: after 10,000 claims while a snapshot is held; the reference: just before it."""
    claims = min(OLD_SNAPSHOT, stock.waiting // 4)
    n = max(crew.size, claims // 5)
    before: list[Lap] = []

    def after() -> Lap:
        stock.take("brokerage_job", claims + 2 * n)
        before.append(watched(lambda: crew.do("ours", n), server.cpu_s))
        with closing(server.connect()) as other, other.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM brokerage_taskqueue")
            crew.do("ours", claims)
            return watched(lambda: crew.do("ours", n), server.cpu_s)

    sizes = {**sizes, "snapshot": True, "claims": claims}
    yield from compare("dispatch", "jobs/s", after, lambda: before[-1], sizes, rounds)


def _cycles(server: Bench, crew: Crew, stock: Stock, sizes: Line, cycles: int) -> Iterator[Line]:
    """Ours: the last tenth of so many full cycles; the reference: the first tenth."""
    server.settle("brokerage_job", "brokerage_jobchange", "workqueues_file")
    fresh = server.number(JOBS_SIZE)
    crew.do("cycle", max(crew.size, cycles // 100))
    tenths = []
    for number in range(1, 11):
        lap = watched(lambda: crew.do("cycle", max(crew.size, cycles * 99 // 1000)), server.cpu_s)
        tenths.append(lap.per_s)
        yield {"name": "dispatch", "tenth": number, "ours": round(lap.per_s, 1), "size": server.number(JOBS_SIZE) / fresh}
    yield {
        "name": "dispatch",
        "ours": round(tenths[-1], 1),
        "reference": round(tenths[0], 1),
        "ratio": round(tenths[-1] / tenths[0], 3),
        "unit": "cycles/s",
        **sizes,
        "cycles": cycles,
        "size_ratio": round(server.number(JOBS_SIZE) / fresh, 3),
        "fresh_mb": round(fresh / 1e6, 1),
        "in_vain": _in_vain(crew),
    }
