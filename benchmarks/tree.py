"""Pulls of child brokers: 200 children with 20 sites each ask the production web server over 16 connections.

Pulls of one element stand beside a view that does nothing (`ratio`), pulls of 100 beside a bare UPDATE .. SKIP LOCKED of 100 rows
(`ratio_100`), all in elements, or requests, a second; and both beside their own rates at 10,000 elements (`of_few`: the ratio of
ratios). Between turns what was pulled waits again. `statements` are those of one pull with few and with all elements.
"""

from __future__ import annotations

import json
import uuid
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import psycopg2

from benchmarks import filling, filling_elements
from benchmarks.crew import Crew
from benchmarks.filling_elements import Child
from benchmarks.harness import Lap, Line, add_rounds, compare, watched
from benchmarks.http import CONNECTIONS, Load, bare, request, web
from benchmarks.server import Bench, bench, tree_cpu_s
from broker_site.roof.supervisor import System

FEW = 10_000
MANY = 100
"""Elements of a large pull."""
BARE_CLIENTS = 4
BARE_ROWS = 50_000
FULL_SITES = 2
"""Sites of each child that have no slot."""
SLOTS = {"pending_slots": 5000, "running_slots": 10_000}
BARE_MANY = f"""
PREPARE many (uuid) AS
UPDATE bare SET status = 'sent', ready_priority = NULL, holder = $1, lease_until = now() + interval '2 hours'
WHERE id IN (
    SELECT id FROM bare WHERE ready_priority IS NOT NULL ORDER BY ready_priority, id LIMIT {MANY} FOR UPDATE SKIP LOCKED
)
"""
BARE_AGAIN = "UPDATE bare SET status = 'activated', ready_priority = -(500 + id * 7919 % 11)::int WHERE ready_priority IS NULL"


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--children", type=int, default=200, metavar="N", help="child brokers, at most 200 (default 200)")
    parser.add_argument("--elements", type=int, default=1_000_000, metavar="M", help="elements that wait (default 1000000)")
    parser.add_argument("--turns", type=int, default=3, metavar="T", help="pulls of each child in a round (default 3)")
    add_rounds(parser)


def bodies(child: Child, most: int) -> tuple[bytes, bytes]:
    """The message of a pull, before and after its key."""
    full, rest = child.sites[:FULL_SITES], child.sites[FULL_SITES:]
    sites = dict.fromkeys(rest, SLOTS) | {site: {"pending_slots": 0, "running_slots": 0} for site in full}
    hello = {"protocol": 1, "version": "bench", "instance": _id(child, "i"), "incarnation": _id(child, "b")}
    said = {**hello, "now": datetime.now(UTC).isoformat(), "sites": sites, "most": most, "key": "KEY"}
    said["jobs"] = {site: {"500": 40, "505": 20, "510": 5} for site in rest}
    before, _, after = json.dumps(said).partition("KEY")
    return before.encode(), after.encode()


def _id(child: Child, what: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, child.token + what))


class Client:
    """The process that makes the load: children that pull, and requests that ask for nothing."""

    def __init__(self, number: int, url: str, bare_url: str, children: list[Child]) -> None:
        where, nothing = urlsplit(url), urlsplit(bare_url)
        self.host, self.bare_host, self.children = where.netloc, nothing.netloc, children
        self.load = Load(where.hostname or "", where.port or 0)
        self.bare = Load(nothing.hostname or "", nothing.port or 0)
        self.said = {most: [(child.token, *bodies(child, most)) for child in children] for most in (1, MANY)}
        self.turn = 0

    def pull_one(self, n: int) -> None:
        """So many pulls of at most one element, each of another child."""
        self._pull(n, 1)

    def pull_many(self, n: int) -> None:
        """So many pulls of a hundred."""
        self._pull(n, MANY)

    def reference(self, n: int) -> None:
        """So many requests that the server answers by doing nothing."""
        nothing = request(self.bare_host, "/healthz")
        self.bare.run(n, lambda connection: nothing)

    def _pull(self, n: int, most: int) -> None:
        said = self.said[most]

        def ask(connection: int) -> bytes:
            self.turn += 1
            token, before, after = said[self.turn % len(said)]
            body = before + str(uuid.uuid4()).encode() + after
            head = (
                f"POST /api/v1/tree/pull/ HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            return head.encode() + body

        self.load.run(n, ask)


class BareClient:
    """A session that takes a hundred rows of a bare table at a time."""

    def __init__(self, number: int, url: str) -> None:
        connection = psycopg2.connect(url)
        connection.autocommit = True
        self.cursor = connection.cursor()
        self.cursor.execute(BARE_MANY)

    def take(self, n: int) -> None:
        """So many statements."""
        for _ in range(n):
            self.cursor.execute("EXECUTE many (%s)", (str(uuid.uuid4()),))
            assert self.cursor.rowcount == MANY


@dataclass(frozen=True, slots=True)
class Legs:
    """Who answers, who asks, and how many pulls a round has."""

    server: Bench
    system: System
    crew: Crew
    bare: Crew
    children: int
    turns: int

    def pulls(self, method: str, at_once: int) -> Callable[[], Lap]:
        """The leg of so many pulls with this method in each turn; each must give all that was asked for."""
        most = 1 if method == "pull_one" else MANY

        def lap() -> Lap:
            self.server.settle(*filling_elements.MADE_OF)
            laps = []
            for _ in range(self.turns):
                laps.append(watched(lambda: self.crew.do(method, at_once), self.cpu_s))
                got = self.server.number("SELECT count(*) FROM workqueues_element WHERE status = 'Negotiating'")
                assert got == at_once * most, f"{at_once} pulls of {most} gave {got:.0f}"
                self.server.execute(filling_elements.RETURNED)
            return together(laps)

        return lap

    def nothing(self, n: int) -> Callable[[], Lap]:
        """The leg of requests that do nothing."""
        return lambda: watched(lambda: self.crew.do("reference", n), self.cpu_s)

    def rows(self, n: int) -> Callable[[], Lap]:
        """The leg of bare statements of a hundred rows."""

        def lap() -> Lap:
            self.server.execute(BARE_AGAIN)
            self.server.settle("bare")
            return watched(lambda: self.bare.do("take", n), self.server.cpu_s)

        return lap

    def cpu_s(self) -> float | None:
        """CPU seconds of database and web servers."""
        database, leaders = self.server.cpu_s(), [child.pid for child in self.system.children.values()]
        return None if database is None else database + sum(tree_cpu_s(pid) for pid in leaders if pid)


def together(laps: list[Lap]) -> Lap:
    """One lap of several."""
    cpu = [lap.server_cpu_s for lap in laps if lap.server_cpu_s is not None]
    return Lap(
        sum(lap.operations for lap in laps),
        sum(lap.seconds for lap in laps),
        sum(lap.client_cpu_s for lap in laps),
        sum(cpu) if cpu else None,
        sum(lap.foreign for lap in laps) / len(laps),
    )


def run(options: Namespace) -> Iterator[Line]:
    """A line for each round with few elements and with all; the last line is the result."""
    children, elements = options.children, options.elements
    few = min(FEW, max(elements // 2, 1))
    with bench() as server:
        asking = filling_elements.fill_unguarded(server)[:children]
        server.execute(*filling.BARE)
        filling.bare_jobs(server, 1, BARE_ROWS)
        filling_elements.elements(server, 1, few)
        with (
            web(server) as system, bare(system) as nothing, Crew(1, Client, system.url, nothing, asking) as crew,
            Crew(BARE_CLIENTS, BareClient, server.url) as bare_crew,
        ):  # fmt: skip
            legs = Legs(server, system, crew, bare_crew, children, options.turns)
            rates: list[Line] = []
            yield from _rates(legs, few, few, options.rounds, rates)
            statements = [_statements(asking[0])]
            filling_elements.elements(server, few + 1, elements)
            yield from _rates(legs, elements, few, options.rounds, rates)
            statements.append(_statements(asking[0]))
    one_few, many_few, one, many = rates
    yield {
        **one, "name": "tree", "children": children, "turns": options.turns, "ratio_100": many["ratio"],
        "of_few": round(one["ratio"] / one_few["ratio"], 3),
        "of_few_100": round(many["ratio"] / many_few["ratio"], 3),
        "ours_100": many["ours"], "reference_100": many["reference"], "cpu_us_100": many["cpu_us"],
        "statements": statements,
    }  # fmt: skip


def _rates(legs: Legs, elements: int, few: int, rounds: int, last: list[Line]) -> Iterator[Line]:
    """The lines of both sizes of pulls, with so many elements; their last ones also go to `last`."""
    sizes: Line = {"elements": elements, "connections": CONNECTIONS}
    # With few elements they must not run out, and with many a round is to be the same.
    n_many = max(1, min(legs.children, few // MANY // 4))
    n_one = min(legs.children, max(1, few // 4))
    for name, unit, ours, reference in (
        ("tree.one", "pulls/s", legs.pulls("pull_one", n_one), legs.nothing(2 * n_one * legs.turns)),
        ("tree.hundred", "pulls/s", legs.pulls("pull_many", n_many), legs.rows(n_many * legs.turns)),
    ):
        for line in compare(name, unit, ours, reference, sizes, rounds):
            yield line
        last.append(line)


def _statements(child: Child) -> list[int]:
    """Statements of a pull of one element and of a hundred, each the second one in this process."""
    from django.db import connection
    from django.test import Client as Browser

    browser = Browser(headers={"Authorization": f"Bearer {child.token}", "Host": "127.0.0.1"})

    def pull(most: int) -> None:
        before, after = bodies(child, most)
        body = before + str(uuid.uuid4()).encode() + after
        answer = browser.post("/api/v1/tree/pull/", body, content_type="application/json")
        assert answer.status_code == 200, answer.content
        with connection.cursor() as cursor:
            cursor.execute(filling_elements.RETURNED)

    told = []
    for most in (1, MANY):
        pull(most)
        connection.ensure_connection()
        was = connection.connection.cursor_factory
        connection.connection.cursor_factory = Counting
        Counting.sent = -1  # the return of what was pulled
        try:
            pull(most)
        finally:
            connection.connection.cursor_factory = was
        told.append(Counting.sent)
    return told


class Counting(psycopg2.extensions.cursor):
    """A cursor that counts what is sent to the database."""

    sent = 0

    def execute(self, *arguments: Any) -> None:
        """Run a statement, or several in one message."""
        Counting.sent += 1
        super().execute(*arguments)
