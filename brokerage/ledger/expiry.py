"""Ending jobs in bulk: leases that ran out, states that lasted too long, commands.

One job that moved meanwhile does not hold up the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from brokerage.ledger.settle import end_jobs
from brokerage.rules.dispatch.settlement import Ending, JobVersion
from brokerage.states import JOB
from workqueues.ledger.moves import Stale

BATCH = 200


def end_seen(jobs: Sequence[JobVersion], ending: Ending, who: str, why: str, *, sub_status: str = "", only: str = "any") -> int:
    """End those of `jobs` that are still as seen: how many. In batches; a batch with a job that moved is done one by one."""
    total = 0
    ordered = sorted(jobs, key=lambda j: j.id)
    for at in range(0, len(ordered), BATCH):
        batch = ordered[at : at + BATCH]
        try:
            _end(batch, ending, who, why, sub_status, only)
            total += len(batch)
        except Stale:
            total += sum(_end_one(job, ending, who, why, sub_status, only) for job in batch)
    return total


def _end(batch: Sequence[JobVersion], ending: Ending, who: str, why: str, sub_status: str, only: str) -> None:
    end_jobs(
        [j.id for j in batch],
        ending,
        who,
        why,
        sub_status=sub_status,
        sources=sorted({j.status for j in batch}),
        epochs=[j.epoch for j in batch],
        only=only,
    )


def _end_one(job: JobVersion, ending: Ending, who: str, why: str, sub_status: str, only: str) -> int:
    try:
        _end([job], ending, who, why, sub_status, only)
    except Stale:
        return 0
    return 1


def expire_leases(who: str, limit: int, suspended: Sequence[int] = ()) -> int:
    """Fail the jobs whose lease ran out by the database's clock, but not at the `suspended` queues: how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT j.id, j.epoch, j.status FROM brokerage_job j
            WHERE j.lease_holder IS NOT NULL AND j.lease_until < now() AND j.computing_queue_id <> ALL(%s)
            ORDER BY j.id LIMIT %s
            """,
            [list(suspended), limit],
        )
        expired = [JobVersion(*row) for row in cursor.fetchall()]
    return end_seen(expired, "failed", who, "no sign of life within the lease", sub_status="lost_heartbeat", only="lease over")


@dataclass(frozen=True, slots=True)
class Limit:
    """How long (seconds) a job may stay in a state at a queue: below the priority that counts as high, and from it on."""

    queue_id: int
    status: str
    low_s: float
    high_s: float


def end_overdue(limits: Sequence[Limit], high_priority: int, endings: Mapping[str, Ending], who: str, batch: int) -> int:
    """End jobs that stayed in their state for longer than allowed, as `endings` says per state: how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT j.id, j.epoch, j.status
            FROM unnest(%(queues)s::int[], %(states)s::text[], %(lows)s::float8[], %(highs)s::float8[])
                AS l(queue, state, low, high)
            JOIN brokerage_job j ON j.computing_queue_id = l.queue AND j.status = l.state AND j.ended_at IS NULL
            WHERE j.status_since < now() - make_interval(secs => CASE WHEN j.priority >= %(urgent)s THEN l.high ELSE l.low END)
            ORDER BY j.id LIMIT %(batch)s
            """,
            {
                "queues": [x.queue_id for x in limits],
                "states": [x.status for x in limits],
                "lows": [x.low_s for x in limits],
                "highs": [x.high_s for x in limits],
                "urgent": high_priority,
                "batch": batch,
            },
        )
        overdue: dict[str, list[JobVersion]] = defaultdict(list)
        for job_id, epoch, status in cursor.fetchall():
            overdue[status].append(JobVersion(job_id, epoch, status))
    return sum(
        end_seen(jobs, endings[status], who, f"too long in {status}", sub_status=SUB_STATUS[endings[status]])
        for status, jobs in overdue.items()
    )


SUB_STATUS: dict[Ending, str] = {"closed": "toreassign", "failed": "timeout", "cancelled": "", "finished": ""}
"""What the sub-status says of a job that was ended for staying too long."""


def kill_jobs(jobs: Sequence[JobVersion], who: str, why: str, outcome: Ending = "cancelled") -> int:
    """Kill jobs: those that no pilot holds end at once, for the others the next heartbeat is answered with the kill.

    How many were new.
    """
    waiting = [j for j in jobs if j.status not in JOB.leased]
    held = [j.id for j in jobs if j.status in JOB.leased]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE brokerage_job SET kill_requested = true, kill_outcome = %s
            WHERE id IN (
                SELECT id FROM brokerage_job WHERE id = ANY(%s) AND NOT kill_requested AND ended_at IS NULL
                ORDER BY id FOR NO KEY UPDATE)
            """,
            [outcome, held],
        )
        asked = int(cursor.rowcount)
    return asked + end_seen(waiting, outcome, who, why)
