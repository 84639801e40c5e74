"""One process that asks for jobs as pilots do, through the functions of the verb, beside the bare claim of a row."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg2
from psycopg2.extras import register_uuid

from benchmarks import requirements

if TYPE_CHECKING:
    from broker_site.foundation.access.principal import Principal

PILOTS = 64
"""Kinds of pilots in each process; the amounts that they have left differ from ask to ask."""
MOST_IN_VAIN = 2000
"""Asks in a row that find nothing before a leg is given up."""

CLAIM = """
PREPARE claim (uuid) AS
UPDATE bare SET status = 'sent', ready_priority = NULL, holder = $1, lease_until = now() + interval '2 hours'
WHERE id = (SELECT id FROM bare WHERE ready_priority IS NOT NULL ORDER BY ready_priority, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id
"""


class Client:
    """One process that asks for jobs."""

    def __init__(self, number: int, queues: list[str], kinds: str, url: str) -> None:
        from benchmarks import verb
        from broker_site.foundation.access.principal import Principal
        from brokerage.ledger.lease import HeldAtMost

        self.verb = verb
        self.dice = Random(number)
        self.most = HeldAtMost(8, 1)
        self.pilots = [Principal("pilot", "bench", queues=(queue,), vo=requirements.VO, credential=1) for queue in queues]
        self.said = list(islice(requirements.descriptions(self.dice, kinds), PILOTS))
        self.said_by: list[tuple[uuid.UUID, dict[str, Any]]] = []
        self.seconds: list[float] = []
        self.in_vain = self.asks = 0
        self.held: list[tuple[int, int]] = []
        register_uuid()
        connection = psycopg2.connect(url)
        connection.autocommit = True
        self.cursor = connection.cursor()
        self.cursor.execute(CLAIM)

    def prepare(self, n: int) -> None:
        """Make what `n` pilots will say, each with its number: that is their work, not the server's."""
        self.said_by = [(uuid.uuid4(), self._said()) for _ in range(n)]

    def ours(self, n: int) -> None:
        """Take `n` jobs as the verb does, each for another pilot, since one holds one job."""
        take = self.verb.take_with_token
        self._timed(n, lambda pilot, said: take(said, self.dice.choice(self.pilots), pilot, self.most))

    def cycle(self, n: int) -> None:
        """Take `n` jobs and end each as finished by the set statement, ten at a time."""
        from benchmarks import filling
        from brokerage.ledger.settle import LastWord, settle_jobs
        from brokerage.rules.dispatch.settlement import Report, ReportedOutput

        done = 0
        while done < n:
            self.held.clear()
            self._timed(min(10, n - done), self._hold)
            words = [
                LastWord(job_id, epoch, Report("finished", [ReportedOutput(**x) for x in filling.outputs_of(job_id)]), "bench")
                for job_id, epoch in self.held
            ]
            assert settle_jobs(words) == ["finished"] * len(words)
            done += len(words)

    def registered(self, queue_ids: list[int]) -> None:
        """Pilots of the queues register; they may hold any number of jobs."""
        from brokerage.ledger.lease import HeldAtMost
        from brokerage.models import Pilot

        made = [Pilot(queue_id=queue_ids[i % len(queue_ids)], host="bench", slot=str(i)) for i in range(PILOTS)]
        self.registered_pilots = [pilot.id for pilot in Pilot.objects.bulk_create(made)]
        self.most = HeldAtMost(32_000, 0)

    def limited(self, n: int) -> None:
        """Take `n` jobs with the whole verb but its HTTP, at the queues whose sites have limits: every other one."""
        self._timed(n, lambda _pilot, said: self._answered(said, self.pilots[::2]))

    def unlimited(self, n: int) -> None:
        """The same at the other queues."""
        self._timed(n, lambda _pilot, said: self._answered(said, self.pilots[1::2]))

    def reference(self, n: int) -> None:
        """Take `n` rows of the bare table."""
        for _ in range(n):
            holder, _said = self._next()
            began = time.perf_counter()
            self.cursor.execute("EXECUTE claim (%s)", (holder,))
            assert self.cursor.fetchone() is not None
            self.seconds.append(time.perf_counter() - began)

    def latencies(self, _n: int) -> list[float]:
        """Seconds that each operation since the last call took."""
        taken, self.seconds = self.seconds, []
        return taken

    def vain(self, _n: int) -> tuple[int, int]:
        """Asks so far, and those that found nothing."""
        return self.asks, self.in_vain

    def _timed(self, n: int, act: Callable[[uuid.UUID, dict[str, Any]], object]) -> None:
        in_a_row = 0
        while n:
            pilot, said = self._next()
            began = time.perf_counter()
            got = act(pilot, said)
            self.seconds.append(time.perf_counter() - began)
            self.asks += 1
            if got is None:
                self.in_vain += 1
                in_a_row += 1
                assert in_a_row < MOST_IN_VAIN, "no pilot finds a job any more"
                continue
            in_a_row = 0
            n -= 1

    def _next(self) -> tuple[uuid.UUID, dict[str, Any]]:
        """The next pilot, with what it says."""
        if not self.said_by:
            self.prepare(100)
        return self.said_by.pop()

    def _said(self) -> dict[str, Any]:
        """What the next pilot says: one of the kinds, with less time left than before."""
        said = self.dice.choice(self.said)
        if "cpu_time_s" in said:
            said = {**said, "cpu_time_s": said["cpu_time_s"] - self.dice.randint(0, 50_000)}
        return {**said, "request": str(uuid.uuid4())}

    def _answered(self, said: dict[str, Any], pilots: list[Principal]) -> bool | None:
        """Whether the answer to an ask of a registered pilot has a job; None: it has none."""
        match = self.verb.match(said, self.dice.choice(pilots), self.dice.choice(self.registered_pilots), self.most)
        return match.tell([]).status_code == 200 or None

    def _hold(self, pilot: uuid.UUID, said: dict[str, Any]) -> tuple[int, int] | None:
        taken = self.verb.take(said, self.dice.choice(self.pilots), pilot, self.most)
        if taken is not None:
            self.held.append(taken)
        return taken
