"""The last asks of every queue and how many ended in which way: gathered in memory, written about once a second (decision H9).

An ask costs a few microseconds here, and no statement. Of each queue at most NEWEST asks are written at a time: of a queue that
is asked more often the rest is counted only. What a process that dies has not written is lost.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock

from django.db import DatabaseError, connection, transaction

from brokerage.queries.waiting import WAITING
from brokerage.rules.dispatch.queue_asks import EndedAsk, offer_of

RING = 100
"""Asks of a queue that are kept."""
EVERY_S = 1.0
AT_MOST = 50
"""Writing takes at most so small a part of the time of a process."""
NEWEST, MOST_WRITTEN = 10, 1000
"""Asks of a queue, and of all queues, that are written at a time: the newest ones."""
CLOSELY = 20
"""Asks in vain for which the closest task queue is looked for at a time."""

_ADD = """
INSERT INTO brokerage_queueask (queue_id, at, pilot_id, outcome, jobs, offer, told, vo, unknown, took_ms)
SELECT v.queue, to_timestamp(v.at), v.pilot, v.outcome, v.jobs, v.offer, v.told, v.vo, v.unknown, v.took_ms
FROM jsonb_to_recordset(%s) AS v(queue bigint, at float8, pilot uuid, outcome text, jobs bigint[], offer jsonb, told jsonb,
    vo text, unknown text[], took_ms float8, number int)
WHERE EXISTS (SELECT FROM brokerage_computingqueue q WHERE q.id = v.queue) ORDER BY v.number
"""
_TRIM = """
DELETE FROM brokerage_queueask WHERE id IN (
    SELECT a.id FROM unnest(%(queues)s::bigint[]) AS of(queue) CROSS JOIN LATERAL (
        SELECT k.id FROM brokerage_queueask k WHERE k.queue_id = of.queue ORDER BY k.id DESC OFFSET %(ring)s LIMIT 1) AS last
    JOIN brokerage_queueask a ON a.queue_id = of.queue AND a.id <= last.id
    FOR UPDATE OF a SKIP LOCKED)
"""
_COUNT = """
INSERT INTO brokerage_askhour AS h (queue_id, outcome, hour, minutes)
SELECT v.queue, v.outcome, %(hour)s, array_fill(0, ARRAY[%(minute)s]) || v.n || array_fill(0, ARRAY[59 - %(minute)s])
FROM jsonb_to_recordset(%(counts)s) AS v(queue bigint, outcome text, n int)
WHERE EXISTS (SELECT FROM brokerage_computingqueue q WHERE q.id = v.queue) ORDER BY v.queue, v.outcome
ON CONFLICT (queue_id, hour, outcome) DO UPDATE SET minutes[%(minute)s + 1] = h.minutes[%(minute)s + 1]
    + excluded.minutes[%(minute)s + 1]
"""
_FORGET = "DELETE FROM brokerage_askhour WHERE hour < now() - make_interval(hours => %s)"
_FORGET_ASKS = "DELETE FROM brokerage_queueask WHERE at < now() - make_interval(hours => %s)"
COUNTS_KEPT_H = 25
ASKS_KEPT_H = 24 * 30

logger = logging.getLogger(__name__)

Counts = Counter[tuple[int, int, str]]
"""(minute since 1970, queue, outcome) -> asks."""


@dataclass(slots=True)
class LastAsks:
    """What a process has not written yet. Thread safe."""

    by_server: bool = False
    """Whether the web server sees to the writing; else the asks themselves do."""
    _asks: dict[int, deque[EndedAsk]] = field(default_factory=dict)
    _counts: Counts = field(default_factory=Counter)
    _due: float = 0.0
    _lock: Lock = field(default_factory=Lock)
    _writing: Lock = field(default_factory=Lock)

    def note(self, queue_id: int, ask: EndedAsk) -> None:
        """An ask at the queue has ended."""
        with self._lock:
            asks = self._asks.get(queue_id)
            if asks is None:
                asks = self._asks[queue_id] = deque(maxlen=NEWEST)
            asks.append(ask)
            self._counts[int(ask.at) // 60, queue_id, ask.outcome] += 1
        if not self.by_server and self.is_due():
            self.write()

    def is_due(self) -> bool:
        """Whether there is something to write, and the last time was long enough ago."""
        return bool(self._counts) and time.monotonic() >= self._due

    def write(self) -> None:
        """Write what there is, in the calling thread; one thread at a time. What cannot be written is lost."""
        if not self._writing.acquire(blocking=False):
            return
        try:
            began = time.monotonic()
            with self._lock:
                asks, self._asks = self._asks, {}
                counts, self._counts = self._counts, Counter()
            self._due = began + EVERY_S
            most = max(1, min(NEWEST, MOST_WRITTEN // max(len(asks), 1)))
            _write_or_lose({queue: list(some)[-most:] for queue, some in asks.items()}, counts)
            self._due = max(self._due, time.monotonic() + AT_MOST * (time.monotonic() - began))
        finally:
            self._writing.release()

    def forget(self) -> None:
        """Know nothing, as a new process."""
        with self._lock:
            self._asks, self._counts, self._due = {}, Counter(), 0.0


LAST_ASKS = LastAsks()


def forget_old_asks() -> None:
    """Remove counts that are older than about a day, and asks of queues that nobody has asked for a month."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [COUNTS_KEPT_H])
        cursor.execute(_FORGET_ASKS, [ASKS_KEPT_H])


def _write_or_lose(asks: Mapping[int, Sequence[EndedAsk]], counts: Counts) -> None:
    try:
        _write(asks, counts)
    except DatabaseError as error:
        logger.warning("%d asks of pilots are not noted: %s", counts.total(), error)


def _write(asks: Mapping[int, Sequence[EndedAsk]], counts: Counts) -> None:
    rows = [
        {
            "queue": queue,
            "at": ask.at,
            "pilot": str(ask.pilot),
            "outcome": ask.outcome,
            "jobs": list(ask.jobs),
            "offer": offer_of(ask.resource),
            "told": ask.nothing.document() if ask.nothing else {"task_queue": ask.task_queue or None},
            "vo": ask.nothing.vo if ask.nothing else ask.vo,
            "unknown": list(ask.unknown),
            "took_ms": round(ask.took_ms, 3),
            "number": number,
        }
        for number, (queue, ask) in enumerate(_closely(asks))
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_ADD, [json.dumps(rows)])
        cursor.execute(_TRIM, {"queues": sorted(asks), "ring": RING})
        for minute in sorted({minute for minute, _, _ in counts}):
            mine = [{"queue": queue, "outcome": why, "n": n} for (at, queue, why), n in counts.items() if at == minute]
            hour = datetime.fromtimestamp(minute // 60 * 3600, UTC)
            cursor.execute(_COUNT, {"counts": json.dumps(mine), "hour": hour, "minute": minute % 60})


def _closely(asks: Mapping[int, Sequence[EndedAsk]]) -> Iterable[tuple[int, EndedAsk]]:
    """The asks in the order in which they came; those that no job suited with the closest task queue, as far as that is cheap."""
    left = CLOSELY
    for queue, ask in sorted(((queue, ask) for queue, some in asks.items() for ask in some), key=lambda one: one[1].at):
        why = ask.nothing
        if why is not None and why.reason == "no_fit" and not why.lacks and left:
            left -= 1
            close = WAITING.why(queue, ask.resource, closely=True)
            yield queue, ask._replace(nothing=close if close.reason == "no_fit" else why)
        else:
            yield queue, ask
