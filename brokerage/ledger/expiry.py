"""Ending jobs in bulk: leases that ran out, states that lasted too long, commands.

One job that moved meanwhile, that is locked or that cannot be ended does not hold up the rest.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from django.db import connection

from broker_site.foundation.agency.batches import LOCKED, code_of, in_halves, in_words
from broker_site.foundation.gdpconfig.texts import duration_text
from brokerage.ledger.unreported_ends import end_jobs
from brokerage.models.job import TO_REASSIGN
from brokerage.queries.movable_jobs import KEPT_TASKS
from brokerage.rules.dispatch.settlement import Ending, JobVersion
from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB
from workqueues.ledger.moves import Stale
from workqueues.rules.task.automatic_steps import LEASE_OVER, TOO_LONG

BATCH = 200
logger = logging.getLogger(__name__)
SUB_STATUS: dict[Ending, str] = {"closed": TO_REASSIGN, "failed": "timeout", "cancelled": "", "finished": ""}
"""What the sub-status says of a job that was ended for staying too long."""


Leave = Callable[[JobVersion, Exception], None]
"""What becomes of a job that cannot be ended now."""


def log_left(job: JobVersion, error: Exception) -> None:
    """Say so in the log, where nobody else is to be told."""
    logger.warning("job %s cannot be ended: %s", job.id, in_words(error))


def end_seen(
    jobs: Sequence[JobVersion],
    ending: Ending,
    who: str,
    why: str,
    *,
    sub_status: str = "",
    only: str = "any",
    code: str = "",
    leave: Leave = log_left,
) -> int:
    """End those of `jobs` that are still as seen, with this error code: how many.

    In batches, of which one that cannot be ended stops no other.
    """

    def end(batch: Sequence[JobVersion]) -> int:
        ids, epochs = [j.id for j in batch], [j.epoch for j in batch]
        sources = sorted({j.status for j in batch})
        end_jobs(ids, ending, who, why, sub_status=sub_status, sources=sources, epochs=epochs, only=only, code=code)
        return len(batch)

    locked: dict[int, Exception] = {}

    def leave_unless_moved(job: JobVersion, error: Exception) -> None:
        if not isinstance(error, Stale):  # else somebody else has it by now
            leave(job, error)
        if code_of(error) in LOCKED:
            locked[job.task_id] = error

    total, ordered = 0, sorted(jobs, key=lambda j: j.id)
    for at in range(0, len(ordered), BATCH):
        batch = ordered[at : at + BATCH]
        for job in batch:
            if job.task_id in locked:  # its rows were waited for once, that is enough
                leave(job, locked[job.task_id])
        batch = [job for job in batch if job.task_id not in locked]
        total += sum(in_halves(batch, end, leave_unless_moved, group=lambda j: j.task_id))
    return total


@dataclass(frozen=True, slots=True)
class Overdue(JobVersion):
    """A job that is ended for its time. `limit_s`: what it had, s; `of`: its lease, its state, or signs of life in that."""

    limit_s: float = 0.0
    of: Literal["lease", "state", "signs"] = "state"

    @property
    def why(self) -> str:
        """The sentence of its history and result."""
        limit = duration_text(self.limit_s)
        if self.of == "lease":
            return f"{LEASE_OVER} of {limit}"
        return f"{TOO_LONG}{self.status}: {'over' if self.of == 'state' else 'silent for over'} {limit}"


_EXPIRED = f"""
SELECT j.id, j.epoch, j.status, j.task_id, j.lease_s, 'lease' FROM brokerage_job j
WHERE j.lease_holder IS NOT NULL AND j.lease_until < now() AND coalesce(j.computing_queue_id, 0) <> ALL (%(suspended)s)
    AND (j.kill_requested OR j.task_id NOT IN ({KEPT_TASKS})) AND j.id > %(after)s ORDER BY j.id LIMIT %(limit)s
"""


def expire_leases(who: str, limit: int, suspended: Sequence[int] = (), leave: Leave = log_left) -> int:
    """Fail the jobs whose lease ran out by the database's clock, but not at the `suspended` queues, nor those of tasks with
    disableReassign unless they are to be killed: how many.

    `limit` at a time; where some could not be ended, those behind them come in the same run.
    """

    def end(expired: Sequence[Overdue]) -> int:
        return sum(
            end_seen(some, "failed", who, why, sub_status="lost_heartbeat", only="lease over", leave=leave)
            for why, some in _by_why(expired).items()
        )

    return page_by_page(_EXPIRED, {"suspended": list(suspended)}, limit, end)


def _by_why(jobs: Sequence[Overdue]) -> Mapping[str, list[Overdue]]:
    by: dict[str, list[Overdue]] = defaultdict(list)
    for job in jobs:
        by[job.why].append(job)
    return by


def page_by_page(sql: str, values: Mapping[str, Any], limit: int, end: Callable[[Sequence[Overdue]], int]) -> int:
    """End the jobs of a statement, `limit` at a time, on to the next ones while some of a page stay as they are: how many."""
    total, after = 0, 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(sql, {**values, "after": after, "limit": limit})
            page = [Overdue(*row) for row in cursor.fetchall()]
        ended = end(page) if page else 0
        total += ended
        if ended == len(page) or len(page) < limit:
            return total
        after = page[-1].id


@dataclass(frozen=True, slots=True)
class Limit:
    """How long (seconds) a job of these kinds may stay in a state at a queue (None: while it is open to several, in one of
    `task_queues`): below the priority that counts as high, and from it on.
    """

    queue_id: int | None
    status: str
    low_s: float
    high_s: float
    kinds: tuple[JobKind, ...] = tuple(JobKind)
    task_queues: Sequence[int] = ()


_OVERDUE = f"""
SELECT j.id, j.epoch, j.status, j.task_id, CASE WHEN o.over THEN o.seconds ELSE j.lease_s END,
    CASE WHEN o.over THEN 'state' ELSE 'signs' END
FROM unnest(%(queues)s::int[], %(states)s::text[], %(lows)s::float8[], %(highs)s::float8[], %(kinds)s::int[])
    AS l(queue, state, low, high, kinds)
JOIN brokerage_job j ON {{at}} AND j.status = l.state AND j.ended_at IS NULL
CROSS JOIN LATERAL (
    SELECT seconds, j.status_since < now() - make_interval(secs => seconds) AS over
    FROM (SELECT CASE WHEN j.priority >= %(urgent)s THEN l.high ELSE l.low END AS seconds) AS s) AS o
WHERE (l.kinds >> j.kind) & 1 = 1
    AND (o.over
        OR l.state = 'transferring' AND j.sub_status <> '' AND j.lease_s > 0
            AND greatest(j.last_seen, j.status_since) < now() - make_interval(secs => j.lease_s))
    AND j.task_id NOT IN ({KEPT_TASKS}) AND j.id > %(after)s
ORDER BY j.id LIMIT %(limit)s
"""
"""A kind is a bit of `kinds`. A transferring job with a sub status is staged out by means of its site's own, which give signs of
life: it may be silent for as long as its lease was, the heartbeat limit of its workflow.
"""
_OVERDUE_AT_QUEUES = _OVERDUE.format(at="j.computing_queue_id = l.queue")
_OVERDUE_OPEN = _OVERDUE.format(at="j.computing_queue_id IS NULL AND j.task_queue_id = ANY (%(task_queues)s)")


def end_overdue(
    limits: Sequence[Limit],
    high_priority: int,
    endings: Mapping[str, Ending],
    who: str,
    batch: int,
    leave: Leave = log_left,
) -> int:
    """End jobs that stayed in their state for longer than allowed, as `endings` says per state, but for those of tasks with
    disableReassign: how many.
    """

    def end(jobs: Sequence[Overdue]) -> int:
        total = 0
        for why, alike in _by_why(jobs).items():
            ending = endings[alike[0].status]
            total += end_seen(alike, ending, who, why, sub_status=SUB_STATUS[ending], leave=leave)
        return total

    of_open = groupby((x for x in limits if x.queue_id is None), key=lambda limit: limit.task_queues)
    total = page_by_page(_OVERDUE_AT_QUEUES, _columns([x for x in limits if x.queue_id is not None], high_priority), batch, end)
    for task_queues, some in of_open:
        values = {**_columns(list(some), high_priority), "task_queues": list(task_queues)}
        total += page_by_page(_OVERDUE_OPEN, values, batch, end)
    return total


def _columns(limits: Sequence[Limit], high_priority: int) -> dict[str, Any]:
    return {
        "queues": [x.queue_id for x in limits],
        "states": [x.status for x in limits],
        "lows": [x.low_s for x in limits],
        "highs": [x.high_s for x in limits],
        "kinds": [sum(1 << kind for kind in x.kinds) for x in limits],
        "urgent": high_priority,
    }


def kill_jobs(jobs: Sequence[JobVersion], who: str, why: str, outcome: Ending = "cancelled") -> int:
    """Kill jobs: those that no pilot holds end at once, for the others the next heartbeat is answered with the kill.

    How many were new. One that is locked at this moment is left for the next time.
    """
    waiting = [j for j in jobs if j.status not in JOB.leased]
    held = [j.id for j in jobs if j.status in JOB.leased]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE brokerage_job SET kill_requested = true, kill_outcome = %s, kill_why = %s
            WHERE id IN (
                SELECT id FROM brokerage_job WHERE id = ANY(%s) AND NOT kill_requested AND ended_at IS NULL
                ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
            """,
            [outcome, f"{why[:120]} ({who})"[:255], held],
        )
        requested = int(cursor.rowcount)
    return requested + end_seen(waiting, outcome, who, why, sub_status=SUB_STATUS[outcome])
